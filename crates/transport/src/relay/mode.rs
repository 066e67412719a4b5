//! Relays that are part of a session without terminating it: agents and active routers.
//!
//! To its parent, such a relay is one member. It stores no content, and reports in place of its downstream receivers.

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

/// Role of a relay within its session, as called by the upstream side.
pub(crate) trait RelayMode: fmt::Debug + Send {
    /// Returns the reason why the relay cannot take part in a session with this congestion control; `None` if it can.
    fn why_not(&self, scheme: Option<&Scheme>) -> Option<JoinObstacle>;

    /// Whether the relay forwards packets at exits. Such a relay serves no hosts by unicast.
    fn has_exits(&self) -> bool;

    /// Takes part in this session; returns whether that is possible.
    fn begin(&mut self, session: SessionId, announce: &Announce, now: Time) -> bool;

    /// Records whether the parent counts the relay as a member.
    fn note_rooted(&mut self, is_rooted: bool);

    /// Passes a data packet to the congestion control.
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, now: Time);
    /// Passes an order of the parent to the congestion control.
    fn on_order(&mut self, order: &Order, now: Time);
    /// Processes an expired timer of the congestion control.
    fn on_deadline(&mut self, now: Time);
    /// Returns the time of the next call of [`RelayMode::on_deadline`], or of the next report.
    fn deadline(&self) -> Time;
    /// Takes the next report for the parent.
    fn take_report(&mut self) -> Option<Report>;

    /// Maintains the downstream side at intervals. Called even if there are no downstream sockets.
    fn tick(&mut self, _now: Time) {}
    /// Returns the time of the next call of [`RelayMode::tick`].
    fn tick_at(&self) -> Time {
        Time::NEVER
    }

    /// Returns the smallest downstream window, if it has changed and is to be reported.
    fn limit_due(&mut self, now: Time) -> Option<Seq>;
    /// Returns the time of the next report by [`RelayMode::limit_due`].
    fn limit_at(&self) -> Time;
    /// Returns the smallest downstream window.
    fn limit(&self) -> Seq;

    /// Returns the tally of all downstream receivers.
    fn tally(&self) -> Tally;
    /// Returns the largest number of blocks that a downstream receiver lacks; `None` without receivers.
    fn most_missing(&self) -> Option<u32>;
    /// Returns the receivers that have completed since the last call.
    fn take_numbers(&mut self) -> Vec<ReceiverId>;
    /// Sets whether completed receivers are confirmed without waiting for the source.
    fn answer_at_once(&mut self, at_once: bool);
    /// Records that the source has confirmed these completed receivers.
    fn on_known(&mut self, ids: &[ReceiverId], now: Time);
    /// Returns the downstream relays.
    fn relays(&self) -> Vec<RelayBelow>;
    /// Returns the symbols and pages that the downstream receivers need.
    fn needs(&mut self) -> Option<&mut needs::Needs>;

    /// Whether the relay needs unchanged datagrams of the source. First value: data packets; second value: other packets.
    fn wants_raw(&self) -> (bool, bool) {
        (false, false)
    }
    /// Caches an unchanged data packet.
    fn keep(&mut self, _seq: Seq, _raw: &[u8]) {}
    /// Forwards an unchanged packet of the source, other than a data packet, to all receivers.
    fn pass_on(&mut self, _raw: &[u8]) {}

    /// Processes a received data packet of `size` bytes, IP header included.
    fn on_packet(&mut self, _packet: &DataPacket<'_>, _size: u16, _now: Time) {}
    /// Handles a status of the source.
    fn on_status(&mut self, _status: &Status, _now: Time) {}
    /// Processes a repeated or changed announcement; returns whether the session can continue.
    fn on_announce(&mut self, _announce: &Announce, _now: Time) -> bool {
        true
    }
    /// Processes a received page of hashes.
    fn on_page(&mut self, _page: &Hashes, _now: Time) {}
}

/// A shared relay mode.
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

/// Methods for the downstream endpoints of a relay within a session.
impl SessionHandle {
    /// Returns the relay process.
    pub(crate) const fn process(&self) -> &RelayHandle {
        &self.process
    }

    /// Returns the state of the upstream session.
    pub(crate) fn end_above(&self) -> End {
        self.lock().end
    }

    /// Whether the branch in this place must end, for example because another child has been given the place.
    pub(crate) fn is_replaced(&self, place: usize) -> bool {
        self.lock().branches[place].is_replaced
    }

    /// Ends this branch, which serves no receiver from now on.
    pub(crate) fn end_branch(&self, place: usize) {
        self.lock().end_branch(place);
    }

    /// Records the receivers, the destination and the relays of a branch.
    pub(crate) fn note_branch(&self, place: usize, tally: Tally, to: SocketAddr, relays: Vec<RelayBelow>) {
        let state = &mut self.lock().branches[place];
        if !state.is_replaced {
            (state.tally, state.to, state.relays) = (tally, Some(to), relays);
        }
    }

    /// Records the counters of an agent.
    pub(crate) fn note_agent(&self, status: AgentStatus) {
        self.lock().agent_status = Some(status);
    }

    /// Records the counters of an active router.
    pub(crate) fn note_hop(&self, status: HopStatus) {
        self.lock().hop_status = Some(status);
    }

    /// Call this before the relay handles a packet from downstream. The call determines whether completed receivers are confirmed
    /// at once, or wait for the source.
    pub(crate) fn before_those_below(&self, now: Time) {
        let at_once = self.lock().answers_at_once(now);
        self.with_mode(|mode| mode.answer_at_once(at_once));
    }

    /// Call this after the relay has handled a packet from downstream. The call schedules reports of newly completed receivers,
    /// and confirms receivers that the source has already confirmed.
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
