//! A child of an agent as an endpoint, with a separate socket for both directions.

use super::super::Node;
use super::Agent;
use crate::endpoint::{Datagram, Endpoint, Transmit};
use crate::event::Event;
use crate::relay::{End, RelayMode as _, SessionHandle};
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Span, Time};
use faircast_wire::{Attach, Kind, Message, Newest, parse, peek};
use std::net::SocketAddr;

/// Join timeout of an attached host. A host that does not join in this time is assumed to look for another session.
const JOIN_WITHIN: Span = Span::from_secs(10);

/// Interval at which the recorded state is updated.
const TELL_EVERY: Span = Span::from_millis(200);

/// Duration for which closing packets are sent to children after the end of the session.
const LAST_WORDS: Span = Span::from_secs(1);

/// Endpoint of a child.
pub(crate) struct AgentChild {
    shared: SessionHandle,
    agent: Node<Agent>,
    place: usize,
    id: ReceiverId,
    address: SocketAddr,
    began: Option<Time>,
    /// ID and address of a host that attaches again and waits for an answer.
    asked: Option<(ReceiverId, SocketAddr)>,
    is_finished: bool,
    ends_at: Time,
    report_at: Time,
    /// Number of completed receivers at the last update.
    reported_done: u64,
}

impl AgentChild {
    /// Creates the endpoint of the host that has attached from `address`. `place` is its number among the branches.
    pub(crate) fn new(
        shared: SessionHandle,
        agent: Node<Agent>,
        place: usize,
        id: ReceiverId,
        address: SocketAddr,
    ) -> AgentChild {
        agent.with(|agent| agent.add_child(id));
        AgentChild {
            shared,
            agent,
            place,
            id,
            address,
            began: None,
            asked: None,
            is_finished: false,
            ends_at: Time::NEVER,
            report_at: Time::ZERO,
            reported_done: 0,
        }
    }

    /// Schedules an answer to the host. The answer shows that the agent is alive. If another process attaches from the same
    /// address and the earlier process is silent, ends this branch. The other process then gets a new branch.
    fn on_attach(&mut self, attach: &Attach, from: SocketAddr) {
        if attach.from == self.id {
            self.asked = Some((attach.from, from));
            return;
        }
        let tally = self.agent.with(|agent| agent.tally_of(self.id));
        if tally.answering == 0 && tally.done == 0 {
            self.shared.end_branch(self.place);
        }
    }

    fn end(&mut self, now: Time) {
        self.is_finished = true;
        self.agent.with(|agent| agent.remove_child(self.id, now));
    }

    /// Updates the state that queries of the relay's status return: at intervals, and whenever a receiver completes.
    fn emit_progress(&mut self, now: Time) {
        let tally = self.agent.with(|agent| agent.tally_of(self.id));
        if now < self.report_at && tally.done == self.reported_done {
            return;
        }
        (self.report_at, self.reported_done) = (now + TELL_EVERY, tally.done);
        let (mut relays, status) = self.agent.with(|agent| (agent.relays(), agent.status()));
        relays.retain(|relay| relay.address == self.address);
        self.shared.note_branch(self.place, tally, self.address, relays);
        self.shared.note_agent(status);
        if tally.answering > 0 {
            self.shared.process().note_served(self.address);
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
        let receipt =
            self.agent.with(|agent| agent.on_child(self.id, datagram.bytes, datagram.from, waited, now));
        if let Some(receipt) = receipt.filter(|receipt| self.shared.keep_receipt(receipt)) {
            self.agent.with(|agent| agent.acknowledge(&receipt));
        }
        self.shared.after_those_below(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        let began = *self.began.get_or_insert(now);
        self.agent.with(|agent| agent.tick(now));
        self.emit_progress(now);
        let (end, is_replaced) = (self.shared.end_above(), self.shared.is_replaced(self.place));
        // A downstream relay takes part while it sends, even without receivers.
        let nobody = !self.agent.with(|agent| agent.takes_part(self.id));
        if end != End::No {
            self.ends_at = self.ends_at.min(now + LAST_WORDS);
        }
        let is_vain = nobody && now.since(began) >= JOIN_WITHIN;
        if !self.is_finished && (is_replaced || is_vain || now >= self.ends_at || end == End::Lost) {
            self.end(now);
        }
    }

    fn poll_transmit(&mut self, _now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((id, to)) = self.asked.take() {
            out.clear();
            if self.shared.process().put_token(id, to, out) {
                return Some(Transmit { segment: out.len(), to, hops: None });
            }
        }
        let has_any = self.agent.with(|agent| agent.next_for(self.id, self.address, out));
        has_any.then_some(Transmit { segment: out.len(), to: self.address, hops: None })
    }

    fn poll_timeout(&self, now: Time) -> Time {
        let waits = self.agent.with(|agent| agent.has_for(self.id, self.address));
        if waits || self.asked.is_some() {
            return now;
        }
        let tick = self.agent.with(|agent| agent.tick_at());
        let end = if self.shared.end_above() == End::No { Time::NEVER } else { now + Span::from_millis(50) };
        tick.min(end).min(now + Span::from_secs(1))
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn stop(&mut self, now: Time) {
        self.end(now);
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }
}
