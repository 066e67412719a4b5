//! The parent of a receiver: the source, or an agent (MTCP). In both cases data comes from the source; feedback is sent to the
//! parent.
//!
//! ```text
//!   Source   -- an agent has answered: ask it --------> Asking -- it serves --> Agent
//!   Agent    -- serves nothing -----------------------> Source
//!            -- silent --> Seeking another -- found --> Asking
//!                             \-- none -----------------> Source
//! ```
//!
//! A receiver that no agent serves in time remains the source's child until the end of the session. So no receiver is counted
//! twice for long. Agents and relays do not search for another agent, because it could be downstream of themselves.

use super::reachability::MOVED_AFTER;
use super::{JOINED, Phase, ReceiverSession};
use crate::announced::scheme_of;
use crate::event::Event;
use crate::membership::MOVED;
use faircast_core::node::Cx;
use faircast_core::packet::{Data, Echo, Flags, Order, OrderContent, ReceiverId, Seq, SessionId, Signal};
use faircast_core::time::{Span, Time};
use faircast_wire::{Kind, MemberState, Message, Order as Word, OrderAction, Status, Window, peek};
use std::borrow::Cow;
use std::net::SocketAddr;

/// Time within which an agent must answer; otherwise it does not serve this session.
const ANSWERS_WITHIN: Span = Span::from_secs(3);

/// Interval of queries to an agent.
const ASK_EVERY: Span = Span::from_millis(200);

/// Duration of the search for another agent.
const SEEK_FOR: Span = Span::from_secs(4);

/// Additional time for repairs by an agent, before symbols are requested.
const AGENT_REPAIRS: Span = Span::from_millis(50);

/// Time within which the source answers a request of an agent's child.
const ANSWERED_AFTER: Span = Span::from_millis(300);

/// Duration of the agent's silence after which no packets count as in flight.
const STALLED: Span = Span::from_secs(1);

/// The kind of parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    /// The receiver is a child of the source.
    Source,
    /// An agent has been queried and has not answered yet.
    Asking { agent: SocketAddr, until: Time, next_at: Time },
    /// The receiver is a child of this agent.
    Agent { at: SocketAddr, last_received_at: Time },
    /// The agent is silent; another agent is searched for.
    Seeking { until: Time },
}

/// The position of a receiver in a tree.
#[derive(Debug)]
pub(super) struct ParentLink {
    pub(super) parent: Parent,
    /// Number of the agent's group that this receiver has joined; 0 if the receiver listens to the source's group.
    group: u8,
    /// Whether no agent serves this receiver in this session. The receiver then queries no agent any longer.
    is_alone: bool,
    /// The former agent, which must be notified of the move.
    left: Option<SocketAddr>,
    /// Time of the first query to an agent during the search for a session.
    asked_since: Option<Time>,
    /// The latest advertised limit of this host's own window.
    pub(super) own_limit: Seq,
    /// A status of the source about packets that have not yet passed the agent.
    held_status: Option<Box<Status>>,
    /// Whether symbols may be requested; `answers_from`: earliest time at which a status shows whether the latest request was
    /// answered.
    may_ask: bool,
    answers_from: Time,
    /// Buffer for a datagram as an agent has received it, before decryption.
    pub(super) raw: Vec<u8>,
}

impl Default for ParentLink {
    fn default() -> ParentLink {
        ParentLink {
            parent: Parent::Source,
            group: 0,
            is_alone: false,
            left: None,
            asked_since: None,
            own_limit: Window::UNLIMITED,
            held_status: None,
            may_ask: false,
            answers_from: Time::ZERO,
            raw: Vec::new(),
        }
    }
}

impl ParentLink {
    /// Returns the source's status that applies to this receiver now. In an agent's own group, packets arrive later than the
    /// status about them. So the status is held until the packets have had time to arrive, and packets in flight are not
    /// requested.
    pub(super) fn due_status<'a>(
        &mut self,
        status: &'a Status,
        newest: Echo,
        newest_at: Time,
        now: Time,
    ) -> Option<Cow<'a, Status>> {
        let is_here = |held: &Status| newest.seq.0.saturating_add(1) >= held.next_seq;
        if self.group == 0 || is_here(status) || now.since(newest_at) >= STALLED {
            (self.held_status, self.may_ask) = (None, true);
            return Some(Cow::Borrowed(status));
        }
        let held = self.held_status.take_if(|held| is_here(held));
        self.may_ask |= held.is_some();
        if !self.may_ask && now >= self.answers_from {
            self.held_status.get_or_insert_with(|| Box::new(status.clone()));
        }
        held.map(|held| Cow::Owned(*held))
    }

    /// Whether the source is the parent.
    pub(super) const fn is_of_the_source(&self) -> bool {
        matches!(self.parent, Parent::Source)
    }

    /// Whether symbols may be requested. In an agent's own group, the answer to a request is sent after all packets that already
    /// wait at the agent. Until the answer has had time to arrive, symbols are not requested again.
    pub(super) const fn may_ask(&self) -> bool {
        self.group == 0 || self.may_ask
    }

    /// Records that symbols were requested. A later status of the source shows when the answer must have arrived.
    pub(super) fn on_asked(&mut self, now: Time) {
        (self.may_ask, self.held_status, self.answers_from) = (false, None, now + ANSWERED_AFTER);
    }

    /// Returns the time that is added to a round trip before missing symbols are requested.
    pub(super) const fn repair_time(&self) -> Span {
        if matches!(self.parent, Parent::Agent { .. }) { AGENT_REPAIRS } else { Span::ZERO }
    }
}

impl ReceiverSession {
    /// Returns the address of the receiver's agent, or of the agent that is being queried.
    fn agent(&self) -> Option<SocketAddr> {
        match self.under.parent {
            Parent::Agent { at, .. } => Some(at),
            Parent::Asking { agent, .. } => Some(agent),
            Parent::Source | Parent::Seeking { .. } => self.agent_to_ask(),
        }
    }

    /// Returns the agent that has answered and may serve this receiver.
    fn agent_to_ask(&self) -> Option<SocketAddr> {
        let attaching = self.attaching.as_ref().filter(|_| !self.under.is_alone)?;
        attaching.agent()
    }

    /// Returns the host to query whether an announced source is active: the agent while it may still answer, and the source
    /// afterwards.
    pub(super) fn whom_to_ask(&mut self, source: SocketAddr, now: Time) -> SocketAddr {
        let Some(agent) = self.agent_to_ask().filter(|_| self.phase == Phase::Searching) else {
            return source;
        };
        let since = *self.under.asked_since.get_or_insert(now);
        if now.since(since) < ANSWERS_WITHIN {
            return agent;
        }
        self.under.is_alone = true;
        self.events.push_back(Event::warning(format!(
            "{agent} is an agent that has not joined this session, or is full; the source is the parent now"
        )));
        source
    }

    /// Returns the destination of feedback; `None` if the receiver has no parent.
    pub(super) fn sends_to(&self) -> Option<SocketAddr> {
        match self.under.parent {
            Parent::Source => self.stream.as_ref().map(|stream| stream.source),
            Parent::Agent { at, .. } => Some(at),
            Parent::Asking { .. } | Parent::Seeking { .. } => None,
        }
    }

    /// Whether a receiver with a parent also listens to the source's group.
    pub(super) fn receives_the_group(&self) -> bool {
        let has_agent = self.attaching.as_ref().is_some_and(|attaching| attaching.has_met_agent());
        has_agent && self.under.group == 0 && self.phase != Phase::Over
    }

    /// Whether an agent is searched for although the source is received.
    pub(super) fn seeks_an_agent(&self) -> bool {
        matches!(self.under.parent, Parent::Seeking { .. } | Parent::Asking { .. })
    }

    /// Handles a datagram from the agent. Returns `true` if it is a message of the agent itself. Other datagrams are forwarded
    /// datagrams of the source.
    pub(super) fn on_agents_word(&mut self, bytes: &mut [u8], from: SocketAddr, now: Time) -> bool {
        if peek(bytes).map(|header| header.kind) != Ok(Kind::Order) {
            return false;
        }
        match self.codec.open(bytes, from) {
            Ok((session, Message::Order(word))) if word.to == self.setup.id => {
                self.on_word(session, &word, from, now)
            }
            Ok(_) => self.totals.refused.sender += 1,
            Err(error) => self.totals.refused.count(&error),
        }
        true
    }

    /// Returns the address to which a session attributes this datagram, and whether an agent has forwarded it.
    pub(super) fn author(&mut self, bytes: &[u8], from: SocketAddr, now: Time) -> (SocketAddr, bool) {
        let handed_on = peek(bytes).is_ok_and(|header| {
            matches!(header.kind, Kind::Data | Kind::Announce | Kind::Status | Kind::Hashes)
        });
        match (&mut self.under.parent, &self.stream) {
            (Parent::Agent { at, last_received_at }, Some(stream)) if *at == from => {
                *last_received_at = now;
                if handed_on { (stream.source, true) } else { (from, false) }
            }
            _ => (from, false),
        }
    }

    /// Marks a packet that the agent has forwarded, for the congestion control.
    pub(super) fn mark_handed_on(&self, data: &mut Data) {
        let newest =
            self.stream.as_ref().map(|stream| stream.newest.seq).filter(|seq| seq.0 < Window::UNLIMITED.0);
        let is_new = newest.is_none_or(|newest| data.seq > newest);
        if self.under.group != 0 && is_new {
            data.signal = Signal::Local;
        } else {
            data.flags = data.flags.with(Flags::REPAIR);
        }
    }

    fn on_word(&mut self, session: SessionId, word: &Word, from: SocketAddr, now: Time) {
        let is_known = self.agent() == Some(from);
        let followed = self.stream.as_ref().map(|stream| stream.session) == Some(session);
        if !is_known {
            return;
        }
        if let Parent::Agent { last_received_at, .. } = &mut self.under.parent {
            *last_received_at = now;
        }
        let serves = word.action == OrderAction::Serves && word.nonce == self.setup.nonce;
        let begins = Parent::Agent { at: from, last_received_at: now };
        match (self.under.parent, self.phase) {
            (_, Phase::Searching) if serves => {
                if let Some(candidate) = self.candidates.take(session) {
                    self.under.parent = begins;
                    self.scope.moved(from, "agent", now);
                    self.accept(session, candidate.announce, candidate.source, now);
                }
            }
            (Parent::Asking { .. }, _) if serves && followed => {
                self.under.parent = begins;
                self.scope.moved(from, "agent", now);
                self.events.push_back(Event::warning(format!("the agent {from} is the parent now")));
                self.begin_under_another(now);
            }
            (Parent::Agent { .. }, phase) if followed => self.obey(word, phase, now),
            _ => {}
        }
    }

    fn obey(&mut self, word: &Word, phase: Phase, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        let content = match word.action {
            OrderAction::Serves => {
                let is_welcome = word.nonce == self.setup.nonce.wrapping_add(JOINED);
                if is_welcome && !std::mem::replace(&mut stream.registered, true) {
                    self.scope.admitted(now);
                }
                self.on_confirmed(word.number == Word::BY_NUMBER, &[], now);
                return self.on_receipt_answer(word.nonce, now);
            }
            OrderAction::Heard => {
                if let Some(below) = ReceiverId::new(word.number.into()) {
                    self.on_confirmed(true, &[below], now);
                    return;
                }
                if matches!(phase, Phase::Confirming { .. }) {
                    self.phase = Phase::Over;
                }
                return;
            }
            OrderAction::Join => OrderContent::Join { group: word.group, from: word.from },
            OrderAction::Poll => OrderContent::Poll,
        };
        if phase == Phase::Receiving && !stream.deferred {
            let order = Order { to: word.to, number: word.number, content };
            let mut cx = Cx { now, rng: &mut self.scheme_rng, effects: &mut self.effects };
            stream.receiver.on_order(&order, &mut cx);
            self.carry_out(Span::ZERO, now);
        }
    }

    /// Switches to this group of the agent.
    pub(super) fn attend(&mut self, group: u8) {
        (self.under.group, self.under.may_ask) = (group, false);
    }

    /// Begins with another parent, which must count this receiver. The former parent must stop counting it; the message about
    /// this is sent twice, because it may be lost.
    fn begin_under_another(&mut self, now: Time) {
        self.under.group = 0;
        let before = self.under.left.take().filter(|before| self.sends_to() != Some(*before));
        if let (Some(before), Some(stream)) = (before, &self.stream) {
            let (session, member) = (stream.session, self.stranger(MemberState::Leaving, MOVED));
            for _ in 0..2 {
                self.outbox.add_to(session, Message::Member(member.clone()), before, now);
            }
        }
        let Some(stream) = &mut self.stream else { return };
        if let Some(scheme) = scheme_of(&stream.announced) {
            stream.receiver = self.setup.control(&scheme);
        }
        stream.registered = false;
        stream.sink.on_other_parent();
        if let Some(relay) = &self.setup.relay {
            relay.on_other_parent();
        }
        stream.reach.on_data(None);
        self.service.on_other_parent();
        (stream.member_at, stream.member_tries) = (now, 0);
    }

    /// Continues as a child of the source, because no agent serves this receiver.
    fn go_to_the_source(&mut self, now: Time) {
        (self.under.parent, self.under.is_alone) = (Parent::Source, true);
        if let Some(source) = self.sends_to() {
            self.scope.moved(source, "no agent", now);
        }
        self.events.push_back(Event::warning("no agent serves this receiver; the source is the parent now"));
        self.begin_under_another(now);
    }

    /// Checks whether the agent is alive, and searches for another agent if not.
    pub(super) fn watch_agent(&mut self, now: Time) {
        match self.under.parent {
            Parent::Source => {}
            Parent::Agent { at, .. } if self.has_forsaken(at) => {
                (self.under.group, self.under.left) = (0, Some(at));
                self.go_to_the_source(now);
            }
            Parent::Agent { at, last_received_at } if now.since(last_received_at) >= MOVED_AFTER => {
                (self.under.group, self.under.left) = (0, Some(at));
                let is_relay = self.setup.relay.is_some();
                match self.attaching.as_mut().filter(|_| !is_relay && self.phase == Phase::Receiving) {
                    Some(attaching) => {
                        attaching.lose(now);
                        self.under.parent = Parent::Seeking { until: now + SEEK_FOR };
                        self.events.push_back(Event::warning(format!("the agent {at} is silent")));
                    }
                    None => self.go_to_the_source(now),
                }
            }
            Parent::Agent { .. } => {}
            Parent::Asking { agent, until, next_at } => {
                if now >= until || self.phase != Phase::Receiving {
                    self.go_to_the_source(now);
                } else if now >= next_at {
                    self.under.parent = Parent::Asking { agent, until, next_at: now + ASK_EVERY };
                    let member = self.stranger(MemberState::Asking, 0);
                    if let Some(stream) = &self.stream {
                        self.outbox.add_to(stream.session, Message::Member(member), agent, now);
                    }
                }
            }
            Parent::Seeking { until } => match self.agent_to_ask() {
                Some(agent) => {
                    self.under.parent = Parent::Asking { agent, until: now + ANSWERS_WITHIN, next_at: now };
                }
                None if now >= until || self.phase != Phase::Receiving => self.go_to_the_source(now),
                None => {}
            },
        }
    }

    /// Returns the time of the next call of [`ReceiverSession::watch_agent`].
    pub(super) fn watch_at(&self) -> Time {
        match self.under.parent {
            Parent::Source => Time::NEVER,
            Parent::Agent { last_received_at, .. } => last_received_at + MOVED_AFTER,
            Parent::Asking { until, next_at, .. } => until.min(next_at),
            Parent::Seeking { until } => until,
        }
    }
}
