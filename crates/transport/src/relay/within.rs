//! Relays that take part in a session without ending it: agents, and hops whose routers help it.
//!
//! To their parent they are one member, which keeps no content and speaks for those below.

mod above;
pub(super) mod needs;

pub(super) use above::WithinAbove;

use super::{AgentStatus, End, HopStatus, RelayHandle, Shared};
use crate::error::Seen;
use crate::event::RelayBelow;
use crate::members::Tally;
use faircast_core::packet::{Arrival, Data, Layer, Order, ReceiverId, Report, Seq, SessionId};
use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_wire::{Announce, DataPacket, Hashes, Status};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// What a relay is within its session, as its side towards the source sees it.
pub(crate) trait Within: fmt::Debug + Send {
    /// Why it cannot take part in a session of this congestion control.
    fn why_not(&self, scheme: Option<&Scheme>) -> Option<Seen>;

    /// Whether it passes packets on at exits, and so serves no hosts by unicast.
    fn has_exits(&self) -> bool;

    /// Take part in this session; whether it can.
    fn begin(&mut self, session: SessionId, announce: &Announce, now: Time) -> bool;

    /// Whether its parent counts it.
    fn note_rooted(&mut self, is_rooted: bool);

    /// The congestion control at this end.
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, now: Time);
    /// The same.
    fn on_order(&mut self, order: &Order, now: Time);
    /// The same.
    fn on_deadline(&mut self, now: Time);
    /// When it wants to be called, or has something to say.
    fn deadline(&self) -> Time;
    /// The next report for its own parent.
    fn take_report(&mut self) -> Option<Report>;

    /// Look after those below, every now and then: also when none of their sockets is open any more.
    fn tick(&mut self, _now: Time) {}
    /// When [`Within::tick`] wants to be called.
    fn tick_at(&self) -> Time {
        Time::NEVER
    }

    /// The smallest window below, when that is to be told: it has changed.
    fn limit_due(&mut self, now: Time) -> Option<Seq>;
    /// When [`Within::limit_due`] has something.
    fn limit_at(&self) -> Time;
    /// The smallest window below.
    fn limit(&self) -> Seq;

    /// All receivers below.
    fn tally(&self) -> Tally;
    /// Who is done and was not when this was asked last.
    fn take_numbers(&mut self) -> Vec<ReceiverId>;
    /// Whether who is done hears so before the source knows it.
    fn answer_at_once(&mut self, at_once: bool);
    /// The source knows that these are done.
    fn on_known(&mut self, ids: &[ReceiverId], now: Time);
    /// The relays below.
    fn relays(&self) -> Vec<RelayBelow>;
    /// What those below lack.
    fn needs(&mut self) -> Option<&mut needs::Needs>;

    /// Whether datagrams of the source are wanted as they came: data, and everything else.
    fn wants_raw(&self) -> (bool, bool) {
        (false, false)
    }
    /// A data packet of the session, as it came.
    fn keep(&mut self, _seq: Seq, _raw: &[u8]) {}
    /// Something else that the source says to all, as it came.
    fn pass_on(&mut self, _raw: &[u8]) {}

    /// A data packet of `size` bytes, IP header included, has come.
    fn on_packet(&mut self, _packet: &DataPacket<'_>, _size: u16, _now: Time) {}
    /// The source says how far it is.
    fn on_status(&mut self, _status: &Status, _now: Time) {}
    /// It announces the session, again or in other words; whether that can go on.
    fn on_announce(&mut self, _announce: &Announce, _now: Time) -> bool {
        true
    }
    /// A page of hashes has come.
    fn on_page(&mut self, _page: &Hashes, _now: Time) {}
}

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct Inside(Arc<Mutex<dyn Within>>);

impl Inside {
    pub(super) fn new(node: Arc<Mutex<dyn Within>>) -> Inside {
        Inside(node)
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut dyn Within) -> T) -> T {
        act(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// For the endpoints below of a relay within a session.
impl Shared {
    /// The process that it is part of.
    pub(crate) const fn process(&self) -> &RelayHandle {
        &self.process
    }

    /// Whether the session above goes on.
    pub(crate) fn end_above(&self) -> End {
        self.lock().end
    }

    /// Whether another child has this place among the branches.
    pub(crate) fn is_replaced(&self, place: usize) -> bool {
        self.lock().branches[place].is_replaced
    }

    /// This branch is over, and serves nobody.
    pub(crate) fn end_branch(&self, place: usize) {
        self.lock().end_branch(place);
    }

    /// The receivers and relays of a branch, and the place that it sends to.
    pub(crate) fn note_branch(&self, place: usize, tally: Tally, to: SocketAddr, relays: Vec<RelayBelow>) {
        let state = &mut self.lock().branches[place];
        if !state.is_replaced {
            (state.tally, state.to, state.relays) = (tally, Some(to), relays);
        }
    }

    /// The counters of an agent.
    pub(crate) fn note_agent(&self, status: AgentStatus) {
        self.lock().agent_status = Some(status);
    }

    /// The counters of a hop.
    pub(crate) fn note_hop(&self, status: HopStatus) {
        self.lock().hop_status = Some(status);
    }

    /// Something has come from below: whoever says that it is done is told that the source knows it, or waits.
    pub(crate) fn before_those_below(&self, now: Time) {
        let at_once = self.lock().answers_at_once(now);
        self.with_inside(|inside| inside.answer_at_once(at_once));
    }

    /// It was heard: who has become done is told above, by number; who is known there already hears so.
    pub(crate) fn after_those_below(&self, now: Time) {
        let fresh = self.with_inside(|inside| inside.take_numbers()).unwrap_or_default();
        if fresh.is_empty() {
            return;
        }
        let known: Vec<ReceiverId> = {
            let mut passing = self.lock();
            fresh.into_iter().filter(|id| passing.confirmations.add(*id)).collect()
        };
        self.with_inside(|inside| inside.on_known(&known, now));
    }
}
