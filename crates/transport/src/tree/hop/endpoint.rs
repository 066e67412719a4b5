//! An exit of an active router as an endpoint: it sends packets to its group, and receives the members' answers.

use super::super::Node;
use super::Hop;
use crate::endpoint::{Datagram, Endpoint, HostEvent, Transmit};
use crate::event::Event;
use crate::relay::{End, SessionHandle};
use faircast_core::time::{Span, Time};
use std::net::SocketAddr;

/// Interval at which the recorded state is updated.
const TELL_EVERY: Span = Span::from_millis(200);

/// Duration for which closing messages are sent after the end of the session. The next constant is the interval of these
/// messages.
const LAST_WORDS: Span = Span::from_secs(1);
const LAST_EVERY: Span = Span::from_millis(100);

/// Endpoint of an exit.
pub(crate) struct HopExit {
    shared: SessionHandle,
    hop: Node<Hop>,
    place: usize,
    /// Number of the exit at the active router.
    exit: usize,
    group: SocketAddr,
    report_at: Time,
    reported_done: u64,
    close_at: Time,
    ends_at: Time,
    is_finished: bool,
}

impl HopExit {
    /// Creates the endpoint of exit number `exit`. `place` is its number among the branches.
    pub(crate) fn new(
        shared: SessionHandle,
        hop: Node<Hop>,
        place: usize,
        exit: usize,
        group: SocketAddr,
    ) -> HopExit {
        HopExit {
            shared,
            hop,
            place,
            exit,
            group,
            report_at: Time::ZERO,
            reported_done: 0,
            close_at: Time::ZERO,
            ends_at: Time::NEVER,
            is_finished: false,
        }
    }

    /// Updates the state that queries of the relay's status return: at intervals, and whenever a receiver completes.
    fn emit_progress(&mut self, now: Time) {
        let tally = self.hop.with(|hop| hop.tally_of(self.exit));
        if now < self.report_at && tally.done == self.reported_done {
            return;
        }
        (self.report_at, self.reported_done) = (now + TELL_EVERY, tally.done);
        let (relays, status) = self.hop.with(|hop| (hop.relays_of(self.exit), hop.status()));
        self.shared.note_branch(self.place, tally, self.group, relays);
        self.shared.note_hop(status);
    }
}

impl Endpoint for HopExit {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        let waited = now.since(datagram.arrived);
        self.shared.before_those_below(now);
        let (bytes, from) = (datagram.bytes, datagram.from);
        let receipt = self.hop.with(|hop| hop.on_child(self.exit, bytes, from, waited, now));
        if let Some(receipt) = receipt.filter(|receipt| self.shared.keep_receipt(receipt)) {
            self.hop.with(|hop| hop.acknowledge(self.exit, &receipt, now));
        }
        self.shared.after_those_below(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.hop.with(|hop| hop.tick(now));
        self.emit_progress(now);
        let end = self.shared.end_above();
        if end == End::Over && now >= self.close_at {
            self.close_at = now + LAST_EVERY;
            self.ends_at = self.ends_at.min(now + LAST_WORDS);
            self.hop.with(|hop| hop.send_closing(self.exit, now));
        }
        self.is_finished |= now >= self.ends_at || end == End::Lost;
    }

    fn handle_host_event(&mut self, notice: HostEvent<'_>, _now: Time) {
        if let HostEvent::NetworkChanged { local: Some(local) } = notice {
            self.shared.announces_from(local);
            self.hop.with(|hop| hop.move_exit(self.exit, local));
        }
    }

    fn poll_transmit(&mut self, _now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let has_any = self.hop.with(|hop| hop.next_of(self.exit, out));
        has_any.then_some(Transmit { segment: out.len(), to: self.group, hops: None })
    }

    fn poll_timeout(&self, now: Time) -> Time {
        if self.hop.with(|hop| hop.has_for(self.exit)) {
            return now;
        }
        let tick = self.hop.with(|hop| hop.tick_at());
        let end = if self.shared.end_above() == End::No { Time::NEVER } else { now + LAST_EVERY / 2 };
        tick.min(end).min(now + Span::from_secs(1))
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn stop(&mut self, _now: Time) {
        self.is_finished = true;
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }
}
