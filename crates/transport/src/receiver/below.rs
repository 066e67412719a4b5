//! At a relay: the calls that its receiver's session makes for those below, and the messages about them to the parent.

use super::feedback::datagram;
use super::{Phase, ReceiverSession};
use faircast_core::packet::{ReceiverId, Seq};
use faircast_core::time::Time;
use faircast_wire::{Kind, Message, Tree, TreeNode, Verified, Window, encode, peek};
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

    /// A datagram as it came, before it is opened in place, if children may need it.
    pub(super) fn raw_for_children(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (data, others) = self.setup.relay.as_ref()?.wants_raw();
        let is_of_use = match peek(bytes).ok()?.kind {
            Kind::Data => data,
            Kind::Announce | Kind::Status | Kind::Hashes => others,
            _ => false,
        };
        is_of_use.then(|| {
            let mut raw = std::mem::take(&mut self.under.raw);
            raw.clear();
            raw.extend_from_slice(bytes);
            raw
        })
    }

    /// At a relay: the datagram was the source's, so that a hop passes its packet on; an agent keeps the datagram under its number, or
    /// passes it on to children that do not hear the source.
    pub(super) fn hand_on(&mut self, raw: Option<Vec<u8>>, message: &Message<'_>, size: u16, now: Time) {
        let Some(relay) = &self.setup.relay else { return };
        let packet = if let Message::Data(packet) = message { Some(packet) } else { None };
        if let Some(raw) = raw {
            relay.on_raw(packet.map(|packet| packet.data.seq), &raw);
            self.under.raw = raw;
        }
        if let Some(packet) = packet {
            relay.on_packet(packet, size, now);
        }
    }

    /// As a relay within the session: what the answers of those below make it say, and how far their buffers go.
    pub(super) fn speak_for_children(&mut self, now: Time) {
        let is_rooted = self.stream.as_ref().is_some_and(|stream| stream.registered);
        if self.setup.relay.as_ref().is_some_and(|relay| relay.tick(is_rooted, now)) {
            self.tell_window(self.under.own_limit, now);
        }
    }

    /// The same as a limit of its own.
    pub(super) fn limit_below(&self) -> Seq {
        self.setup.relay.as_ref().map_or(Window::UNLIMITED, |relay| relay.limit())
    }

    /// The parent confirms receivers below by number or does not, and these are confirmed.
    pub(super) fn on_confirmed(&self, confirms: bool, ids: &[ReceiverId], now: Time) {
        if let Some(relay) = &self.setup.relay {
            relay.on_confirmed(confirms, ids, now);
        }
    }

    /// When [`ReceiverSession::speak_for_children`] wants to be called.
    pub(super) fn speak_at(&self) -> Time {
        // Who is not receiving any more does not speak for others: it would be called for that again and again.
        let relay = self.setup.relay.as_ref().filter(|_| self.phase == Phase::Receiving);
        relay.map_or(Time::NEVER, |relay| relay.tick_at())
    }
}

/// Where the relays are that are attached to who tells of these.
fn children(relays: &[TreeNode]) -> Vec<SocketAddr> {
    relays.iter().filter(|relay| relay.level == 0).map(|relay| relay.address).collect()
}
