//! The receiver's session as an endpoint.

use super::{Phase, ReceiverSession};
use crate::endpoint::{Datagram, Endpoint, HostEvent, Transmit};
use crate::event::Event;
use faircast_core::packet::Layer;
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use std::net::SocketAddr;

impl Endpoint for ReceiverSession {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        let is_marked = datagram.ecn == Ecn::Ce;
        self.on_datagram(datagram.bytes, &datagram.from, is_marked, datagram.arrived, now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.on_time(now);
    }

    fn handle_host_event(&mut self, notice: HostEvent<'_>, now: Time) {
        match notice {
            HostEvent::Backlog(backlog) => self.on_backlog(backlog, now),
            HostEvent::JoinFailed { place, why } => self.on_join_failed(Layer(place as u8 + 1), why, now),
            HostEvent::Drained => self.look_after_storage(now),
            HostEvent::NetworkChanged { .. } => {}
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        self.next_feedback(now, out)
    }

    fn poll_timeout(&self, now: Time) -> Time {
        if !self.outbox.waiting.is_empty() { now } else { self.next_timeout(now) }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.next_event()
    }

    fn groups(&self) -> &[SocketAddr] {
        self.wanted_groups()
    }

    fn receives_group(&self) -> bool {
        self.receives_the_group()
    }

    fn accepts(&mut self, now: Time) -> bool {
        !self.waits_for_output(now)
    }

    fn silence(&self, now: Time) -> Option<Span> {
        self.source_silence(now)
    }

    fn stop(&mut self, now: Time) {
        self.leave(now);
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Over
    }
}
