//! Member relays, and the downstream relays that they report.

use super::{MAX_MEMBERS, MemberRecord, Members, Pace};
use crate::event::RelayBelow;
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Tree, TreeNode};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Maximum number of known relays behind one member relay.
const MAX_DOWNSTREAM: usize = RelayBelow::MAX_RELAYS;

/// Maximum number of member relays whose downstream relays are known.
const MAX_TREES: usize = 256;

/// Maximum number of relays that are reported at a time.
const MAX_REPORTED: usize = 256;

/// Maximum depth of a chain of relays.
const MAX_DEPTH: u8 = RelayBelow::MAX_DEPTH;

/// A relay's report of its downstream relays.
#[derive(Debug, Default)]
pub struct Subtree {
    whole: Vec<TreeNode>,
    /// The received parts of a newer report.
    parts: Vec<TreeNode>,
}

impl Subtree {
    /// Adds a part of a report. The last part completes the report.
    fn on_part(&mut self, tree: &Tree) {
        let count = usize::from(tree.count).min(MAX_DOWNSTREAM);
        if tree.first == 0 {
            self.parts.clear();
        }
        if usize::from(tree.first) != self.parts.len() {
            return; // an earlier part was lost; all parts are repeated every second
        }
        let room = count.saturating_sub(self.parts.len());
        self.parts.extend(tree.relays.iter().take(room));
        if self.parts.len() == count {
            self.whole = std::mem::take(&mut self.parts);
            make_sense(&mut self.whole);
        }
    }
}

/// Limits a relay's report to possible values. No relay exceeds the maximum depth, each relay is at most one level below its
/// predecessor, and the completed receivers are at most as many as all receivers.
fn make_sense(relays: &mut Vec<TreeNode>) {
    relays.retain(|relay| relay.level + 1 < MAX_DEPTH);
    let mut most = 0;
    for relay in relays {
        relay.level = relay.level.min(most);
        most = relay.level + 1;
        relay.receivers = relay.receivers.min(MAX_MEMBERS as u32);
        relay.done = relay.done.min(relay.receivers);
        relay.rate = if relay.rate.is_finite() { relay.rate.max(0.0) } else { 0.0 };
    }
}

impl Members {
    /// Handles a relay's list of its downstream relays.
    pub fn on_tree(&mut self, tree: &Tree) {
        let Some(member) = self.known.get_mut(&tree.from).filter(|member| member.is_relay) else { return };
        if member.below.is_none() {
            if self.trees >= MAX_TREES {
                return;
            }
            self.trees += 1;
        }
        self.tally.update(member, |member| member.below.get_or_insert_default().on_part(tree));
    }

    /// Handles a new member. If the new member is a relay, marks earlier relays with the same name on the same host as replaced,
    /// until they send again.
    pub(super) fn replace_relay(&mut self, newest: ReceiverId) {
        let Some(new) = self.known.get(&newest).filter(|member| member.is_relay) else { return };
        let (host, place) = (new.host.clone(), new.address.ip());
        for (id, member) in &mut self.known {
            let is_same = member.is_relay && member.host == host && member.address.ip() == place;
            if is_same && *id != newest {
                self.tally.update(member, |member| member.is_replaced = true);
            }
        }
    }

    /// Marks relays as replaced if they have been silent for `span` and a relay of the same name has joined later from the same
    /// host. Late packets may have cleared an earlier mark.
    pub(super) fn replace_silent_relays(&mut self, now: Time, span: Span) {
        let mut newest: BTreeMap<(String, IpAddr), Time> = BTreeMap::new();
        for member in self.known.values().filter(|member| member.is_relay) {
            let joined = newest.entry((member.host.clone(), member.address.ip())).or_insert(member.joined_at);
            *joined = (*joined).max(member.joined_at);
        }
        for member in self.known.values_mut().filter(|member| member.is_relay && !member.is_replaced) {
            let joined = newest.get(&(member.host.clone(), member.address.ip()));
            if joined.is_some_and(|joined| *joined > member.joined_at)
                && now.since(member.last_received_at) > span
            {
                self.tally.update(member, |member| member.is_replaced = true);
            }
        }
    }

    /// Returns the active relays, each listed before its downstream relays.
    pub fn relays(&self) -> Vec<RelayBelow> {
        let here = self.known.iter().filter(|(_, member)| member.is_relay && member.pace != Pace::Gone);
        here.flat_map(|(_, member)| member.with_those_below()).take(MAX_REPORTED).collect()
    }
}

impl MemberRecord {
    /// Returns the number of completed receivers behind this member. If a relay was restarted, its downstream relays continue
    /// under its next process, with all their receivers. So for the earlier process, only directly attached receivers are
    /// counted. A receiver reported by ID is counted for one member only.
    pub fn verified(&self) -> u32 {
        let all = self.receivers_done;
        let Some(below) = self.below.as_ref().filter(|_| self.is_replaced) else { return self.named + all };
        let attached = below.whole.iter().filter(|node| node.level == 0);
        self.named + attached.fold(all, |left, node| left.saturating_sub(node.receivers))
    }

    /// Returns a relay and its downstream relays.
    fn with_those_below(&self) -> impl Iterator<Item = RelayBelow> {
        let itself = RelayBelow {
            depth: 1,
            host: self.host.clone(),
            address: self.address,
            receivers: self.counted().into(),
            done: self.verified().into(),
            rate: Rate::from_bps(f64::from(self.rate)),
        };
        let below = self.below.iter().flat_map(|below| &below.whole);
        std::iter::once(itself).chain(below.map(|node| RelayBelow::of(node, 2)))
    }
}

impl RelayBelow {
    /// Returns a relay that was reported by its parent; `depth` is the depth of that parent's children.
    fn of(node: &TreeNode, depth: u8) -> RelayBelow {
        RelayBelow {
            depth: depth + node.level,
            host: node.name().to_string(),
            address: node.address,
            receivers: node.receivers.into(),
            done: node.done.into(),
            rate: Rate::from_bps(f64::from(node.rate)),
        }
    }

    /// Returns the form in which a relay is reported to the source.
    pub(crate) fn node(&self) -> TreeNode {
        let count = |count: u64| count.min(u64::from(u32::MAX)) as u32;
        TreeNode {
            level: self.depth.saturating_sub(1),
            receivers: count(self.receivers),
            done: count(self.done),
            rate: self.rate.bps() as f32,
            address: self.address,
            host: TreeNode::cut(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::RELAYS;
    use faircast_core::packet::{Echo, Seq};
    use faircast_wire::{Member, MemberState, Name, Words};
    use std::net::SocketAddr;

    fn id(number: u64) -> ReceiverId {
        ReceiverId::new(number).expect("not zero")
    }

    fn joins(members: &mut Members, number: u64, reason: u8) {
        let member = Member {
            from: id(number),
            nonce: 1,
            state: MemberState::Receiving,
            reason,
            receivers: 9,
            done: 4,
            verified_bytes: 0,
            resumed_bytes: 0,
            blocks_missing: 1,
            rate: 8e6,
            loss: 0.0,
            dropped_local: 0,
            unwritten_bytes: 0,
            activity: faircast_wire::Activity::Network,
            percent: 0,
            echo: Echo { seq: Seq(1), hold: Span::ZERO },
            host: Name::clipped("relay"),
            why: Words::default(),
        };
        let at = SocketAddr::from(([10, 0, 0, number as u8], 4000));
        members.on_report(&member, 1, at, Time::ZERO);
    }

    fn node(level: u8) -> TreeNode {
        let address = SocketAddr::from(([10, 1, 0, 1], 4000));
        TreeNode { level, receivers: 3, done: 2, rate: 1e6, address, host: TreeNode::cut("far") }
    }

    fn tree(number: u64, first: u16, count: u16, relays: Vec<TreeNode>) -> Tree {
        Tree { from: id(number), first, count, relays }
    }

    #[test]
    fn relays_are_listed_before_their_children() {
        let mut members = Members::default();
        joins(&mut members, 1, RELAYS);
        joins(&mut members, 2, 0);
        members.on_tree(&tree(1, 0, 3, vec![node(0), node(1)]));
        assert_eq!(members.relays().len(), 1, "a part is missing");
        members.on_tree(&tree(1, 2, 3, vec![node(0)]));
        let relays = members.relays();
        let depths: Vec<u8> = relays.iter().map(|relay| relay.depth).collect();
        assert_eq!(depths, [1, 2, 3, 2]);
        assert_eq!((relays[0].receivers, relays[0].done, relays[0].rate.bps()), (9, 4, 8e6));
        assert_eq!((relays[2].host.as_str(), relays[2].receivers, relays[2].done), ("far", 3, 2));
        // The report is forwarded unchanged. In the report, a relay's children are at level 0.
        let levels: Vec<u8> = relays.iter().map(|relay| relay.node().level).collect();
        assert_eq!(levels, [0, 1, 2, 1]);
        members.on_tree(&tree(1, 0, 0, Vec::new()));
        assert_eq!(members.relays().len(), 1, "they are gone");
    }

    #[test]
    fn stored_entries_of_forged_tree_reports_are_bounded() {
        let mut members = Members::default();
        joins(&mut members, 1, RELAYS);
        joins(&mut members, 2, 0);
        let liar = TreeNode { receivers: u32::MAX, done: u32::MAX, rate: f32::INFINITY, ..node(255) };
        let all = |level: u8| vec![TreeNode { level, ..liar }; 30];
        for round in 0..2_000 {
            let first = (round % 50) * 30;
            members.on_tree(&tree(1, first, u16::MAX, all(round as u8)));
            members.on_tree(&tree(2, 0, 30, all(0)));
            members.on_tree(&tree(3, 0, 30, all(0)));
        }
        let parts = members.known[&id(1)].below.as_ref().map_or(0, |below| below.parts.len());
        assert!(parts <= MAX_DOWNSTREAM, "{parts}");
        let relays = members.relays();
        assert!(relays.len() <= 1 + MAX_DOWNSTREAM, "{}", relays.len());
        assert!(relays.iter().all(|relay| relay.depth <= MAX_DEPTH), "at most 16 levels");
        assert!(
            relays.iter().all(|relay| relay.receivers <= MAX_MEMBERS as u64 && relay.done <= relay.receivers)
        );
        assert!(relays.iter().all(|relay| relay.rate.bps().is_finite()));
        assert!(members.known[&id(2)].below.is_none(), "that is no relay");
        for number in 10..1_000 {
            joins(&mut members, number, RELAYS);
            members.on_tree(&tree(number, 0, 1, vec![node(0)]));
        }
        assert!(members.trees <= MAX_TREES);
        assert!(members.relays().len() <= MAX_REPORTED);
    }
}
