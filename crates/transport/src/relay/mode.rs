//! Relays that take part in a session without ending it: agents, and hops whose routers help it.
//!
//! To the parent they are one member, which stores no content and reports for the receivers downstream.

pub(super) mod needs;
mod upstream;

pub(super) use upstream::UpstreamMode;

use super::{AgentStatus, End, HopStatus, RelayHandle, SessionHandle};
use crate::error::JoinObstacle;
use crate::event::RelayBelow;
use crate::members::Tally;
use faircast_core::packet::{Arrival, Data, Layer, Order, ReceiverId, Report, Seq, SessionId};
use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_wire::{Announce, DataPacket, Hashes, Status};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Role of a relay within its session, as its upstream side sees it.
pub(crate) trait RelayMode: fmt::Debug + Send {
    /// Why it cannot take part in a session of this congestion control.
    fn why_not(&self, scheme: Option<&Scheme>) -> Option<JoinObstacle>;

    /// Whether it forwards packets at exits, and so serves no hosts by unicast.
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
    /// Returns when it wants to be called, or has something to send.
    fn deadline(&self) -> Time;
    /// The next report for its own parent.
    fn take_report(&mut self) -> Option<Report>;

    /// Maintains the downstream side at intervals, also when none of its sockets is open.
    fn tick(&mut self, _now: Time) {}
    /// When [`RelayMode::tick`] wants to be called.
    fn tick_at(&self) -> Time {
        Time::NEVER
    }

    /// Returns the smallest window downstream, if it has changed and is to be reported.
    fn limit_due(&mut self, now: Time) -> Option<Seq>;
    /// When [`RelayMode::limit_due`] has something.
    fn limit_at(&self) -> Time;
    /// Returns the smallest window downstream.
    fn limit(&self) -> Seq;

    /// All receivers below.
    fn tally(&self) -> Tally;
    /// Returns the receivers that are done since the last call.
    fn take_numbers(&mut self) -> Vec<ReceiverId>;
    /// Sets whether a completed receiver is confirmed before the source knows it.
    fn answer_at_once(&mut self, at_once: bool);
    /// The source knows that these are done.
    fn on_known(&mut self, ids: &[ReceiverId], now: Time);
    /// The relays below.
    fn relays(&self) -> Vec<RelayBelow>;
    /// Returns the needs of the receivers downstream.
    fn needs(&mut self) -> Option<&mut needs::Needs>;

    /// Whether datagrams of the source are wanted as they came: data, and everything else.
    fn wants_raw(&self) -> (bool, bool) {
        (false, false)
    }
    /// A data packet of the session, as it came.
    fn keep(&mut self, _seq: Seq, _raw: &[u8]) {}
    /// Forwards another packet of the source to all, unchanged.
    fn pass_on(&mut self, _raw: &[u8]) {}

    /// A data packet of `size` bytes, IP header included, has come.
    fn on_packet(&mut self, _packet: &DataPacket<'_>, _size: u16, _now: Time) {}
    /// Handles a status of the source.
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
pub(super) struct SharedMode(Arc<Mutex<dyn RelayMode>>);

impl SharedMode {
    pub(super) fn new(node: Arc<Mutex<dyn RelayMode>>) -> SharedMode {
        SharedMode(node)
    }

    pub(super) fn with<T>(&self, act: impl FnOnce(&mut dyn RelayMode) -> T) -> T {
        act(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// For the endpoints below of a relay within a session.
impl SessionHandle {
    /// The process that it is part of.
    pub(crate) const fn process(&self) -> &RelayHandle {
        &self.process
    }

    /// Returns whether the upstream session goes on.
    pub(crate) fn end_above(&self) -> End {
        self.lock().end
    }

    /// Whether another child has this place among the branches.
    pub(crate) fn is_replaced(&self, place: usize) -> bool {
        self.lock().branches[place].is_replaced
    }

    /// Ends this branch; it serves nobody from now on.
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

    /// Prepares for a packet from downstream: a receiver that reports that it is done is confirmed if the source knows it, and otherwise
    /// waits.
    pub(crate) fn before_those_below(&self, now: Time) {
        let at_once = self.lock().answers_at_once(now);
        self.with_mode(|mode| mode.answer_at_once(at_once));
    }

    /// Completes its handling: newly completed receivers are reported upstream by number; those known there are confirmed.
    pub(crate) fn after_those_below(&self, now: Time) {
        let fresh = self.with_mode(|mode| mode.take_numbers()).unwrap_or_default();
        if fresh.is_empty() {
            return;
        }
        let known: Vec<ReceiverId> = {
            let mut passing = self.lock();
            fresh.into_iter().filter(|id| passing.confirmations.add(*id)).collect()
        };
        self.with_mode(|mode| mode.on_known(&known, now));
    }
}
