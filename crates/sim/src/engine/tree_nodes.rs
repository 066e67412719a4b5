//! Nodes of a session's tree, one for each member.

use crate::outcome::TreeOutcome;
use crate::routes::NONE;
use faircast_core::node::Relay;

/// A session's tree during a run.
#[derive(Debug)]
pub struct SessionTree {
    /// Nodes of the tree, by member.
    pub places: Vec<TreeNode>,
    /// Branches to the children of each member; the last element belongs to the source.
    pub scopes: Vec<(u32, u32)>,
    /// Outcome of the tree so far.
    pub outcome: TreeOutcome,
}

/// The state of a member in the tree.
#[derive(Debug)]
pub struct TreeNode {
    /// Path to the parent, followed by paths to ancestors that replace an absent parent, the nearest first.
    pub ways: Vec<ParentPath>,
    /// Index of the current path in `ways`.
    pub way: usize,
    /// Number of changes of the parent, modulo 256. Reports to earlier parents are lost.
    pub epoch: u8,
    /// Gate of the session's tree at the member's last hop.
    pub gate: u32,
    /// The member's group among the groups of its parent.
    pub group: u8,
    pub is_there: bool,
    pub agent: Option<Box<dyn Relay + Send>>,
    /// Members that are assigned to this member as children.
    pub children: Vec<u32>,
    pub seen: ReceivedPackets,
    pub slow_starts: u64,
}

/// A parent, and the paths to and from the parent.
#[derive(Debug, Clone, Copy)]
pub struct ParentPath {
    /// Member number of the parent; [`NONE`] for the source.
    pub parent: u32,
    pub up: u32,
    pub down: u32,
    /// First gate of the parent's two groups at this member's last hop.
    pub gates: u32,
}

/// Numbers of received packets: all numbers below a base, and a bit for each of the following numbers.
#[derive(Debug, Default)]
pub struct ReceivedPackets {
    base: Option<u64>,
    bits: [u64; 32],
}

impl ReceivedPackets {
    const SPAN: u64 = 32 * 64;

    /// Records a packet number. Returns whether it is new.
    pub fn note(&mut self, seq: u64) -> bool {
        // The first packet received may not be the one with the lowest number.
        let base = self.base.get_or_insert(seq.saturating_sub(ReceivedPackets::SPAN / 2));
        if seq < *base {
            return false;
        }
        while seq - *base >= ReceivedPackets::SPAN {
            self.bits[(*base % ReceivedPackets::SPAN / 64) as usize] &= !(1 << (*base % 64));
            *base += 1;
        }
        let (word, bit) = ((seq % ReceivedPackets::SPAN / 64) as usize, 1 << (seq % 64));
        let is_new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        loop {
            let (word, bit) = ((*base % ReceivedPackets::SPAN / 64) as usize, 1 << (*base % 64));
            if self.bits[word] & bit == 0 {
                return is_new;
            }
            self.bits[word] &= !bit;
            *base += 1;
        }
    }
}

impl SessionTree {
    /// Returns the outcome, including the counters of the agents at the end.
    pub fn finish(&mut self) -> TreeOutcome {
        for (member, place) in (0..).zip(&self.places) {
            let Some(windows) = place.agent.as_ref().and_then(|agent| agent.windows()) else { continue };
            self.outcome.repairs += windows.repairs;
            self.outcome.moves += windows.moves;
            self.outcome.agents.push((member, windows));
        }
        std::mem::take(&mut self.outcome)
    }

    /// Returns the first hop from a member to its assigned parent.
    pub fn way_up(&self, member: usize) -> u32 {
        self.places[member].ways[0].up
    }

    /// Returns the number of present children of the source.
    pub fn at_the_top(&self) -> usize {
        self.places.iter().filter(|place| place.is_there && place.ways[place.way].parent == NONE).count()
    }
}

impl SessionTree {
    /// Returns the members whose assigned parent is this member, or becomes this member when other parents are absent.
    pub fn below(&self, number: u32) -> Vec<u32> {
        let may = |place: &TreeNode| place.ways.iter().any(|way| way.parent == number);
        (0..).zip(&self.places).filter(|(_, place)| may(place)).map(|(member, _)| member).collect()
    }

    /// Returns for each member whether it can be a parent now.
    pub fn parents_there(&self) -> Vec<bool> {
        self.places.iter().map(|place| place.is_there && place.agent.is_some()).collect()
    }
}

impl TreeNode {
    /// Returns the index of the path to the nearest ancestor that is present.
    pub fn nearest(&self, there: &[bool]) -> usize {
        let found =
            self.ways.iter().position(|way| there.get(way.parent as usize).is_none_or(|there| *there));
        found.unwrap_or(self.ways.len() - 1)
    }

    /// Returns the member number of the current parent; [`NONE`] for the source.
    #[inline]
    pub fn parent(&self) -> u32 {
        self.ways.get(self.way).map_or(NONE, |way| way.parent)
    }

    /// Returns the gates of the member's group.
    pub fn gates(&self) -> [u32; 2] {
        let of_parent = self.ways[self.way].gates;
        if self.group == 0 { [self.gate, of_parent] } else { [NONE, of_parent + 1] }
    }
}
