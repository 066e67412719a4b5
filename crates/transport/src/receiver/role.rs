//! Relay side of the upstream session: a relay's receiver is one member, and reports for the downstream receivers.

use super::symbol_sink::SymbolSink;
use crate::error::JoinObstacle;
use crate::object::Geometry;
use faircast_core::delivery::request_scheduler::RequestScheduler;
use faircast_core::node::Receiver;
use faircast_core::packet::{ReceiverId, Seq, SessionId};
use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_wire::{Announce, DataPacket, Receipt, TreeNode};

/// The interface of a relay to the receiver of its upstream session. Receivers that are not relays have no such interface.
pub(crate) trait Relaying: Send {
    /// Whether this process may follow an announced session: no other part of the process follows it, and the process does not
    /// announce it itself.
    fn may_follow(&self, session: SessionId, announce: &Announce) -> bool;
    /// Claims this session for this part of the process. Returns `false` if another part has it.
    fn claim(&self, session: SessionId) -> bool;
    /// Whether another part of this process has the session.
    fn is_anothers(&self, session: SessionId) -> bool;
    /// Returns the reason that the relay cannot take part in a session of this congestion control.
    fn why_not(&self, scheme: Option<&Scheme>) -> Option<JoinObstacle>;
    /// Records that a parent has answered.
    fn note_upstream_alive(&self);
    /// Begins to forward a session. Returns the sink of its symbols.
    fn begin(
        &self,
        session: SessionId,
        announce: &Announce,
        geometry: Geometry,
        requests: RequestScheduler,
        now: Time,
    ) -> Box<dyn SymbolSink>;
    /// Returns the congestion control of the relay; `None` if it uses the congestion control of a receiver.
    fn control(&self) -> Option<Box<dyn Receiver + Send>>;

    /// Whether datagrams of the source are needed in their received form: data datagrams, and other datagrams.
    fn wants_raw(&self) -> (bool, bool);
    /// Handles a datagram of the source in its received form. Data datagrams have a number.
    fn on_raw(&self, seq: Option<Seq>, raw: &[u8]);
    /// Handles a data packet of `size` bytes, IP header included.
    fn on_packet(&self, packet: &DataPacket<'_>, size: u16, now: Time);

    /// Serves the downstream receivers. `is_rooted` states whether the parent counts this relay as a member. Returns whether to
    /// report the limit of the downstream buffers.
    fn tick(&self, is_rooted: bool, now: Time) -> bool;
    /// Returns the time of the next call of [`Relaying::tick`].
    fn tick_at(&self) -> Time;
    /// Returns the first packet number for which the downstream buffers have no room.
    fn limit(&self) -> Seq;

    /// Returns the number of downstream receivers and the number of completed ones, for the report to the parent.
    fn receivers(&self) -> (u32, u32);
    /// Returns the downstream relays.
    fn tree(&self) -> Vec<TreeNode>;
    /// Returns up to `most` completed but unconfirmed downstream receivers. Successive calls return all of them in turn.
    fn verified(&self, most: usize) -> Vec<ReceiverId>;
    /// Whether a completed downstream receiver has not been reported yet.
    fn has_unsent(&self) -> bool;
    /// Whether a completed downstream receiver has not been confirmed yet.
    fn waits_for_confirmations(&self) -> bool;
    /// Records whether the parent confirms receivers by ID, and the receivers that it has confirmed.
    fn on_confirmed(&self, confirms: bool, ids: &[ReceiverId], now: Time);
    /// Records a change of the parent.
    fn on_other_parent(&self);

    /// Whether downstream receipts have arrived.
    fn has_receipts(&self) -> bool;
    /// Takes the downstream receipts, which then wait for their answers.
    fn take_receipts(&self) -> Vec<Receipt>;
    /// Records whether the parent accepts receipts.
    fn note_receipts_taken(&self, taken: bool);
    /// Records the number of receipts that wait for their answers.
    fn note_receipts_waiting(&self, waiting: usize);
}
