//! One child of an agent as an endpoint: what it says on its own socket, and what it is sent there.

use super::super::within::Within as _;
use super::super::{End, Shared};
use crate::endpoint::{Datagram, Endpoint, Transmit};
use crate::event::Event;
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Span, Time};
use faircast_wire::{Attach, Kind, Message, Newest, parse, peek};
use std::net::SocketAddr;

/// A host that has asked to be served and does not join within this wants another session.
const JOIN_WITHIN: Span = Span::from_secs(10);

/// How it is is noted so often.
const TELL_EVERY: Span = Span::from_millis(200);

/// When the session is over, children hear their last words for so long.
const LAST_WORDS: Span = Span::from_secs(1);

/// A child.
pub(crate) struct AgentChild {
    shared: Shared,
    place: usize,
    id: ReceiverId,
    address: SocketAddr,
    began: Option<Time>,
    /// Who has asked to be served, from where.
    asked: Option<(ReceiverId, SocketAddr)>,
    is_over: bool,
    ends_at: Time,
    tell_at: Time,
    /// How many receivers were done when it was said last.
    told_done: u64,
}

impl AgentChild {
    /// Who has asked from this address, in this place among the branches.
    pub(crate) fn new(shared: Shared, place: usize, id: ReceiverId, address: SocketAddr) -> AgentChild {
        shared.with_agent(|agent| agent.add_child(id));
        AgentChild {
            shared,
            place,
            id,
            address,
            began: None,
            asked: None,
            is_over: false,
            ends_at: Time::NEVER,
            tell_at: Time::ZERO,
            told_done: 0,
        }
    }

    /// It hears that the agent lives; another process in its place is served as another child.
    fn on_attach(&mut self, attach: &Attach, from: SocketAddr) {
        if attach.from == self.id {
            self.asked = Some((attach.from, from));
            return;
        }
        let tally = self.shared.with_agent(|agent| agent.tally_of(self.id)).unwrap_or_default();
        if tally.answering == 0 && tally.done == 0 {
            self.shared.lock().end_branch(self.place);
        }
    }

    fn end(&mut self, now: Time) {
        self.is_over = true;
        self.shared.with_agent(|agent| agent.remove_child(self.id, now));
    }

    /// Say how it is, for whoever asks the relay: every now and then, and when receivers are done.
    fn tell(&mut self, now: Time) {
        let done = self.shared.with_agent(|agent| agent.tally_of(self.id).done).unwrap_or_default();
        if now < self.tell_at && done == self.told_done {
            return;
        }
        (self.tell_at, self.told_done) = (now + TELL_EVERY, done);
        let told = self.shared.with_agent(|agent| (agent.tally_of(self.id), agent.status()));
        let Some((tally, status)) = told else { return };
        let relays = self.shared.with_agent(|agent| agent.relays()).unwrap_or_default();
        let mut passing = self.shared.lock();
        let state = &mut passing.branches[self.place];
        if !state.is_replaced {
            (state.tally, state.to) = (tally, Some(self.address));
            state.relays = relays.into_iter().filter(|relay| relay.address == self.address).collect();
        }
        passing.agent_status = Some(status);
        drop(passing);
        if tally.answering > 0 {
            self.shared.process.note_served(self.address);
        }
    }
}

impl Drop for AgentChild {
    fn drop(&mut self) {
        self.shared.vacate(self.place);
    }
}

impl Endpoint for AgentChild {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        if peek(datagram.bytes).is_ok_and(|header| header.kind == Kind::Attach) {
            if let Ok((_, Message::Attach(attach))) = parse(datagram.bytes, &Newest::default()) {
                self.on_attach(&attach, datagram.from);
            }
            return;
        }
        let waited = now.since(datagram.arrived);
        self.shared.before_those_below(now);
        let receipt = self
            .shared
            .with_agent(|agent| agent.on_child(self.id, datagram.bytes, datagram.from, waited, now));
        if let Some(receipt) = receipt.flatten().filter(|receipt| self.shared.keep_receipt(receipt)) {
            self.shared.with_agent(|agent| agent.acknowledge(&receipt));
        }
        self.shared.after_those_below(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        let began = *self.began.get_or_insert(now);
        if self.shared.with_agent(|agent| agent.tick_at()).is_some_and(|at| at <= now) {
            self.shared.with_agent(|agent| agent.tick(now));
        }
        self.tell(now);
        let (end, is_replaced) = {
            let passing = self.shared.lock();
            (passing.end, passing.branches[self.place].is_replaced)
        };
        // A relay below takes part as long as it is heard, whether it has receivers or not.
        let nobody = !self.shared.with_agent(|agent| agent.takes_part(self.id)).unwrap_or(false);
        if end != End::No {
            self.ends_at = self.ends_at.min(now + LAST_WORDS);
        }
        let is_vain = nobody && now.since(began) >= JOIN_WITHIN;
        if !self.is_over && (is_replaced || is_vain || now >= self.ends_at || end == End::Lost) {
            self.end(now);
        }
    }

    fn poll_transmit(&mut self, _now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((id, to)) = self.asked.take() {
            out.clear();
            if self.shared.process.put_token(id, to, out) {
                return Some(Transmit { segment: out.len(), to, hops: None });
            }
        }
        let has_any =
            self.shared.with_agent(|agent| agent.next_for(self.id, self.address, out)).unwrap_or(false);
        has_any.then_some(Transmit { segment: out.len(), to: self.address, hops: None })
    }

    fn poll_timeout(&self, now: Time) -> Time {
        let waits = self.shared.with_agent(|agent| agent.has_for(self.id, self.address)).unwrap_or(false);
        if waits || self.asked.is_some() {
            return now;
        }
        let tick = self.shared.with_agent(|agent| agent.tick_at()).unwrap_or(Time::NEVER);
        let end = if self.shared.lock().end == End::No { Time::NEVER } else { now + Span::from_millis(50) };
        tick.min(end).min(now + Span::from_secs(1))
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn stop(&mut self, now: Time) {
        self.end(now);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}
