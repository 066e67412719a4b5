//! An exit of a hop as an endpoint: what it sends to its group, and what is answered there.

use super::super::{End, Shared};
use crate::endpoint::{Datagram, Endpoint, Notice, Transmit};
use crate::event::Event;
use faircast_core::time::{Span, Time};
use std::net::SocketAddr;

/// How it is is noted so often.
const TELL_EVERY: Span = Span::from_millis(200);

/// When the session is over, those below hear so for so long, so often.
const LAST_WORDS: Span = Span::from_secs(1);
const LAST_EVERY: Span = Span::from_millis(100);

/// An exit.
pub(crate) struct HopExit {
    shared: Shared,
    place: usize,
    /// Among the hop's exits.
    exit: usize,
    group: SocketAddr,
    tell_at: Time,
    told_done: u64,
    close_at: Time,
    ends_at: Time,
    is_over: bool,
}

impl HopExit {
    /// The exit of this number, which is in this place among the branches.
    pub(crate) fn new(shared: Shared, place: usize, exit: usize, group: SocketAddr) -> HopExit {
        HopExit {
            shared,
            place,
            exit,
            group,
            tell_at: Time::ZERO,
            told_done: 0,
            close_at: Time::ZERO,
            ends_at: Time::NEVER,
            is_over: false,
        }
    }

    /// Say how it is, for whoever asks the relay: every now and then, and when receivers are done.
    fn tell(&mut self, now: Time) {
        let tally = self.shared.with_hop(|hop| hop.tally_of(self.exit)).unwrap_or_default();
        if now < self.tell_at && tally.done == self.told_done {
            return;
        }
        (self.tell_at, self.told_done) = (now + TELL_EVERY, tally.done);
        let told = self.shared.with_hop(|hop| (hop.relays_of(self.exit), hop.status()));
        let Some((relays, status)) = told else { return };
        let mut passing = self.shared.lock();
        let state = &mut passing.branches[self.place];
        (state.tally, state.to, state.relays) = (tally, Some(self.group), relays);
        passing.hop_status = Some(status);
    }
}

impl Endpoint for HopExit {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        let waited = now.since(datagram.arrived);
        self.shared.before_those_below(now);
        let (bytes, from) = (datagram.bytes, datagram.from);
        let receipt = self.shared.with_hop(|hop| hop.on_child(self.exit, bytes, from, waited, now));
        if let Some(receipt) = receipt.flatten().filter(|receipt| self.shared.keep_receipt(receipt)) {
            self.shared.with_hop(|hop| hop.acknowledge(self.exit, &receipt, now));
        }
        self.shared.after_those_below(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.shared.with_hop(|hop| hop.tick_at()).is_some_and(|at| at <= now) {
            self.shared.with_hop(|hop| hop.tick(now));
        }
        self.tell(now);
        let end = self.shared.lock().end;
        if end == End::Over && now >= self.close_at {
            self.close_at = now + LAST_EVERY;
            self.ends_at = self.ends_at.min(now + LAST_WORDS);
            self.shared.with_hop(|hop| hop.say_closing(self.exit, now));
        }
        self.is_over |= now >= self.ends_at || end == End::Lost;
    }

    fn handle_notice(&mut self, notice: Notice<'_>, _now: Time) {
        if let Notice::NetworkChanged { local: Some(local) } = notice {
            self.shared.announces_from(local);
            self.shared.with_hop(|hop| hop.move_exit(self.exit, local));
        }
    }

    fn poll_transmit(&mut self, _now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let has_any = self.shared.with_hop(|hop| hop.next_of(self.exit, out)).unwrap_or(false);
        has_any.then_some(Transmit { segment: out.len(), to: self.group, hops: None })
    }

    fn poll_timeout(&self, now: Time) -> Time {
        if self.shared.with_hop(|hop| hop.has_for(self.exit)).unwrap_or(false) {
            return now;
        }
        let tick = self.shared.with_hop(|hop| hop.tick_at()).unwrap_or(Time::NEVER);
        let end = if self.shared.lock().end == End::No { Time::NEVER } else { now + LAST_EVERY / 2 };
        tick.min(end).min(now + Span::from_secs(1))
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn stop(&mut self, _now: Time) {
        self.is_over = true;
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}
