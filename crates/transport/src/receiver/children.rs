//! Relay side of a receiver's session: its calls for the receivers below, and the messages about them to the parent.

use super::feedback::datagram;
use super::{Phase, ReceiverSession};
use faircast_core::packet::{ReceiverId, Seq};
use faircast_core::time::Time;
use faircast_wire::{Kind, Message, Tree, TreeNode, Verified, Window, encode, peek};
use std::net::SocketAddr;

/// The number of datagrams about receivers that are done with one report.
const VERIFIED_AT_ONCE: usize = 4;

impl ReceiverSession {
    /// At a relay: reports the relays below, once a second.
    pub(super) fn send_tree(&mut self, now: Time) {
        let (Some(relay), Some(stream)) = (&self.setup.relay, &mut self.stream) else { return };
        let relays = relay.tree();
        if !stream.registered || relays.is_empty() && stream.reported_tree.is_empty() {
            return;
        }
        stream.reported_tree = children(&relays);
        let (session, from, count) = (stream.session, self.setup.id, relays.len() as u16);
        let tree = |first: usize, relays: &[TreeNode]| {
            Message::Tree(Tree { from, first: first as u16, count, relays: relays.to_vec() })
        };
        if relays.is_empty() {
            self.outbox.add(session, tree(0, &[]), now);
        }
        let most = encode::max_relays(datagram(&stream.announced, self.setup.overhead)).max(1);
        for (part, relays) in relays.chunks(most).enumerate() {
            self.outbox.add(session, tree(part * most, relays), now);
        }
    }

    /// At a relay: reports a change of the attached relays. It is sent before the number of receivers, because the receivers of a relay
    /// that moves to another process do not increase that number.
    pub(super) fn report_new_children(&mut self, now: Time) {
        if let (Some(relay), Some(stream)) = (&self.setup.relay, &self.stream)
            && children(&relay.tree()) != stream.reported_tree
        {
            self.send_tree(now);
        }
    }

    /// At a relay: reports the receivers below that are done and not confirmed, with each report.
    pub(super) fn report_verified(&mut self, now: Time) {
        let (Some(relay), Some(stream)) = (&self.setup.relay, &self.stream) else { return };
        let most = encode::max_verified(datagram(&stream.announced, self.setup.overhead)).max(1);
        let receivers = relay.verified(most * VERIFIED_AT_ONCE);
        let (session, from) = (stream.session, self.setup.id);
        for part in receivers.chunks(most) {
            self.outbox.add(session, Message::Verified(Verified { from, receivers: part.to_vec() }), now);
        }
    }

    /// Returns a copy of a datagram as received, before it is opened in place, if children may need it.
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

    /// At a relay: the datagram was the source's, so a hop forwards its packet. An agent stores the datagram under its number, or forwards
    /// it to children that do not receive the source.
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

    /// As a relay within the session: sends the messages that feedback from below causes, and the limit of the buffers below.
    pub(super) fn speak_for_children(&mut self, now: Time) {
        let is_rooted = self.stream.as_ref().is_some_and(|stream| stream.registered);
        if self.setup.relay.as_ref().is_some_and(|relay| relay.tick(is_rooted, now)) {
            self.send_window(self.under.own_limit, now);
        }
    }

    /// Returns the buffers below as a limit of this host.
    pub(super) fn limit_below(&self) -> Seq {
        self.setup.relay.as_ref().map_or(Window::UNLIMITED, |relay| relay.limit())
    }

    /// The parent does or does not confirm receivers below by number, and has confirmed these.
    pub(super) fn on_confirmed(&self, confirms: bool, ids: &[ReceiverId], now: Time) {
        if let Some(relay) = &self.setup.relay {
            relay.on_confirmed(confirms, ids, now);
        }
    }

    /// Returns when [`ReceiverSession::speak_for_children`] has to be called.
    pub(super) fn speak_at(&self) -> Time {
        // A session that does not receive any more does not speak for children: it would be called for that again and again.
        let relay = self.setup.relay.as_ref().filter(|_| self.phase == Phase::Receiving);
        relay.map_or(Time::NEVER, |relay| relay.tick_at())
    }
}

/// Returns the addresses of the relays that are attached to the reporter of these.
fn children(relays: &[TreeNode]) -> Vec<SocketAddr> {
    relays.iter().filter(|relay| relay.level == 0).map(|relay| relay.address).collect()
}
