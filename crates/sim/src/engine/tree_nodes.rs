//! Places of the members in a session's tree.

use crate::outcome::TreeOutcome;
use crate::routes::NONE;
use faircast_core::node::Relay;

/// A session's tree while it runs.
#[derive(Debug)]
pub struct SessionTree {
    /// By member.
    pub places: Vec<TreeNode>,
    /// The branches to the children of each member, and last of the source.
    pub scopes: Vec<(u32, u32)>,
    /// Members that are children of the source, or may become so.
    pub outcome: TreeOutcome,
}

/// A member's place.
#[derive(Debug)]
pub struct TreeNode {
    /// Its parent, and where it goes when that is away: ancestors, the nearest first.
    pub ways: Vec<ParentPath>,
    /// Which of them it has.
    pub way: usize,
    /// Grows with each change of the parent: reports to an earlier one are lost.
    pub epoch: u8,
    /// The gate of the session's tree at its last hop.
    pub gate: u32,
    /// Which of its parent's groups it is in.
    pub group: u8,
    pub is_there: bool,
    pub agent: Option<Box<dyn Relay + Send>>,
    /// Members that were assigned as its children.
    pub children: Vec<u32>,
    pub seen: ReceivedPackets,
    pub slow_starts: u64,
}

/// A parent, and the ways to it and back.
#[derive(Debug, Clone, Copy)]
pub struct ParentPath {
    /// A member; [`NONE`] for the source.
    pub parent: u32,
    pub up: u32,
    pub down: u32,
    /// Gates of its two groups, at this member's last hop.
    pub gates: u32,
}

/// Numbers of packets that a member has: all below one, and some of the next.
#[derive(Debug, Default)]
pub struct ReceivedPackets {
    base: Option<u64>,
    bits: [u64; 32],
}

impl ReceivedPackets {
    const SPAN: u64 = 32 * 64;

    /// Whether it is the first time.
    pub fn note(&mut self, seq: u64) -> bool {
        // The first ones may come later than others.
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
    /// Returns the sums of the agents' counters at the end.
    pub fn finish(&mut self) -> TreeOutcome {
        for (member, place) in (0..).zip(&self.places) {
            let Some(windows) = place.agent.as_ref().and_then(|agent| agent.windows()) else { continue };
            self.outcome.repairs += windows.repairs;
            self.outcome.moves += windows.moves;
            self.outcome.agents.push((member, windows));
        }
        std::mem::take(&mut self.outcome)
    }

    /// The first hop from a member to its first parent.
    pub fn way_up(&self, member: usize) -> u32 {
        self.places[member].ways[0].up
    }

    /// Children of the source that are there at the beginning.
    pub fn at_the_top(&self) -> usize {
        self.places.iter().filter(|place| place.is_there && place.ways[place.way].parent == NONE).count()
    }
}

impl SessionTree {
    /// Members that have this one as their parent, or may have it when others are away.
    pub fn below(&self, number: u32) -> Vec<u32> {
        let may = |place: &TreeNode| place.ways.iter().any(|way| way.parent == number);
        (0..).zip(&self.places).filter(|(_, place)| may(place)).map(|(member, _)| member).collect()
    }

    /// By member, whether it can be a parent now.
    pub fn parents_there(&self) -> Vec<bool> {
        self.places.iter().map(|place| place.is_there && place.agent.is_some()).collect()
    }
}

impl TreeNode {
    /// The way to the nearest ancestor that is there.
    pub fn nearest(&self, there: &[bool]) -> usize {
        let found =
            self.ways.iter().position(|way| there.get(way.parent as usize).is_none_or(|there| *there));
        found.unwrap_or(self.ways.len() - 1)
    }

    /// The gates of its group.
    pub fn gates(&self) -> [u32; 2] {
        let of_parent = self.ways[self.way].gates;
        if self.group == 0 { [self.gate, of_parent] } else { [NONE, of_parent + 1] }
    }
}
