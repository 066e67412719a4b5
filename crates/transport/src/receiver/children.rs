//! Relay side of a receiver's session: service of the downstream receivers, and messages about them to the parent.

use super::feedback::datagram;
use super::{Phase, ReceiverSession};
use faircast_core::packet::{ReceiverId, Seq};
use faircast_core::time::Time;
use faircast_wire::{DataPacket, Header, Kind, Message, Tree, TreeNode, Verified, Window, encode};
use std::net::SocketAddr;

/// Number of datagrams about completed receivers that accompany one report.
const VERIFIED_AT_ONCE: usize = 4;

impl ReceiverSession {
    /// At a relay, reports the downstream relays to the parent, once a second.
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

    /// At a relay, reports a change of the attached relays. When a relay's receivers move to another process, the number of
    /// receivers stays the same. So this report is sent before the report of that number.
    pub(super) fn report_new_children(&mut self, now: Time) {
        if let (Some(relay), Some(stream)) = (&self.setup.relay, &self.stream)
            && children(&relay.tree()) != stream.reported_tree
        {
            self.send_tree(now);
        }
    }

    /// At a relay, sends the IDs of completed but unconfirmed downstream receivers to the parent. Called with each report.
    pub(super) fn report_verified(&mut self, now: Time) {
        let (Some(relay), Some(stream)) = (&self.setup.relay, &self.stream) else { return };
        let most = encode::max_verified(datagram(&stream.announced, self.setup.overhead)).max(1);
        let receivers = relay.verified(most * VERIFIED_AT_ONCE);
        let (session, from) = (stream.session, self.setup.id);
        for part in receivers.chunks(most) {
            self.outbox.add(session, Message::Verified(Verified { from, receivers: part.to_vec() }), now);
        }
    }

    /// Returns a copy of a received datagram if children may need it. The datagram itself is decrypted in place afterwards.
    pub(super) fn raw_for_children(&mut self, header: &Header, bytes: &[u8]) -> Option<Vec<u8>> {
        let (data, others) = self.setup.relay.as_ref()?.wants_raw();
        let is_of_use = match header.kind {
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

    /// At a relay, forwards a datagram of the source. An active router forwards the packet. An agent caches the datagram under
    /// its number, or forwards it to children that do not receive the source.
    pub(super) fn hand_on(
        &mut self,
        raw: Option<Vec<u8>>,
        packet: Option<&DataPacket<'_>>,
        size: u16,
        now: Time,
    ) {
        let Some(relay) = &self.setup.relay else { return };
        if let Some(raw) = raw {
            relay.on_raw(packet.map(|packet| packet.data.seq), &raw);
            self.under.raw = raw;
        }
        if let Some(packet) = packet {
            relay.on_packet(packet, size, now);
        }
    }

    /// At a relay, sends the limit of the downstream buffers, and the messages that result from downstream feedback.
    pub(super) fn speak_for_children(&mut self, now: Time) {
        let is_rooted = self.stream.as_ref().is_some_and(|stream| stream.registered);
        if self.setup.relay.as_ref().is_some_and(|relay| relay.tick(is_rooted, now)) {
            self.send_window(self.under.own_limit, now);
        }
    }

    /// Returns the window limit of the downstream buffers, which this host advertises as its own.
    pub(super) fn limit_below(&self) -> Seq {
        self.setup.relay.as_ref().map_or(Window::UNLIMITED, |relay| relay.limit())
    }

    /// Passes confirmations of the parent to a relay; `confirms`: whether the parent confirms receivers by ID.
    pub(super) fn on_confirmed(&self, confirms: bool, ids: &[ReceiverId], now: Time) {
        if let Some(relay) = &self.setup.relay {
            relay.on_confirmed(confirms, ids, now);
        }
    }

    /// Returns the time of the next call of [`ReceiverSession::speak_for_children`].
    pub(super) fn speak_at(&self) -> Time {
        // A session that does not receive any longer sends nothing for its children. Without this filter, this function would
        // return a time in the past again and again.
        let relay = self.setup.relay.as_ref().filter(|_| self.phase == Phase::Receiving);
        relay.map_or(Time::NEVER, |relay| relay.tick_at())
    }
}

/// Returns the addresses of the relays that are attached directly to the sender of this list.
fn children(relays: &[TreeNode]) -> Vec<SocketAddr> {
    relays.iter().filter(|relay| relay.level == 0).map(|relay| relay.address).collect()
}
