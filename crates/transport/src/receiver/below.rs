//! At a relay: what it tells of those below it.

use super::ReceiverSession;
use super::feedback::datagram;
use faircast_core::time::Time;
use faircast_wire::{Message, Tree, TreeNode, Verified, encode};
use std::net::SocketAddr;

/// So many datagrams of receivers that are done are told with one report.
const VERIFIED_AT_ONCE: usize = 4;

impl ReceiverSession {
    /// At a relay: tell of the relays below, once a second.
    pub(super) fn tell_tree(&mut self, now: Time) {
        let (Some(relay), Some(stream)) = (&self.setup.relay, &mut self.stream) else { return };
        let relays = relay.tree();
        if !stream.registered || relays.is_empty() && stream.told_tree.is_empty() {
            return;
        }
        stream.told_tree = children(&relays);
        let (session, from, count) = (stream.session, self.setup.id, relays.len() as u16);
        let tree = |first: usize, relays: &[TreeNode]| {
            Message::Tree(Tree { from, first: first as u16, count, relays: relays.to_vec() })
        };
        if relays.is_empty() {
            self.outbox.add(session, tree(0, &[]), now);
        }
        let most = encode::most_relays(datagram(&stream.announced, self.setup.overhead)).max(1);
        for (part, relays) in relays.chunks(most).enumerate() {
            self.outbox.add(session, tree(part * most, relays), now);
        }
    }

    /// At a relay: others are attached to it than it has told of. That is told before how many receivers there are, as those of a relay
    /// that comes to another process are no more than they were.
    pub(super) fn tell_new_children(&mut self, now: Time) {
        if let (Some(relay), Some(stream)) = (&self.setup.relay, &self.stream)
            && children(&relay.tree()) != stream.told_tree
        {
            self.tell_tree(now);
        }
    }

    /// At a relay: who is done below and not confirmed, with each report.
    pub(super) fn tell_verified(&mut self, now: Time) {
        let (Some(relay), Some(stream)) = (&self.setup.relay, &self.stream) else { return };
        let most = encode::most_verified(datagram(&stream.announced, self.setup.overhead)).max(1);
        let receivers = relay.verified(most * VERIFIED_AT_ONCE);
        let (session, from) = (stream.session, self.setup.id);
        for part in receivers.chunks(most) {
            self.outbox.add(session, Message::Verified(Verified { from, receivers: part.to_vec() }), now);
        }
    }
}

/// Where the relays are that are attached to who tells of these.
fn children(relays: &[TreeNode]) -> Vec<SocketAddr> {
    relays.iter().filter(|relay| relay.level == 0).map(|relay| relay.address).collect()
}
