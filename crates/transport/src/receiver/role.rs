//! Relay side of the session above it: its receiver is one member, and speaks for those below.

use super::symbol_sink::SymbolSink;
use crate::error::JoinObstacle;
use crate::object::Geometry;
use faircast_core::delivery::request_scheduler::RequestScheduler;
use faircast_core::node::Receiver;
use faircast_core::packet::{ReceiverId, Seq, SessionId};
use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_wire::{Announce, DataPacket, Receipt, TreeNode};

/// The interface of a relay to the receiver of its upstream session. A receiver that is not a relay has none.
pub(crate) trait Relaying: Send {
    /// Whether this process may follow an announced session: no other part of it does, and it does not announce the session itself.
    fn may_follow(&self, session: SessionId, announce: &Announce) -> bool;
    /// Claims this session for this part of the process; `false`: another part has it.
    fn claim(&self, session: SessionId) -> bool;
    /// Whether another part of this process has the session.
    fn is_anothers(&self, session: SessionId) -> bool;
    /// Returns why it cannot take part in a session of this congestion control.
    fn why_not(&self, scheme: Option<&Scheme>) -> Option<JoinObstacle>;
    /// A parent has answered.
    fn note_upstream_alive(&self);
    /// Begins to forward a session: returns the sink of its symbols.
    fn begin(
        &self,
        session: SessionId,
        announce: &Announce,
        geometry: Geometry,
        requests: RequestScheduler,
        now: Time,
    ) -> Box<dyn SymbolSink>;
    /// Returns the congestion control at this end; `None`: that of a receiver.
    fn control(&self) -> Option<Box<dyn Receiver + Send>>;

    /// Whether datagrams of the source are wanted in their received form: data, and all others.
    fn wants_raw(&self) -> (bool, bool);
    /// A datagram of the source in its received form; data have a number.
    fn on_raw(&self, seq: Option<Seq>, raw: &[u8]);
    /// A data packet of `size` bytes, IP header included.
    fn on_packet(&self, packet: &DataPacket<'_>, size: u16, now: Time);

    /// Serves the receivers below; `is_rooted`: the parent counts this member. Returns whether the limit of their buffers is to be
    /// reported.
    fn tick(&self, is_rooted: bool, now: Time) -> bool;
    /// Returns when [`Relaying::tick`] is due.
    fn tick_at(&self) -> Time;
    /// Returns the first packet number for which the buffers below have no room.
    fn limit(&self) -> Seq;

    /// Returns the number of receivers below to report upstream, and the number of those that have everything.
    fn receivers(&self) -> (u32, u32);
    /// Returns the relays below.
    fn tree(&self) -> Vec<TreeNode>;
    /// Returns up to `most` receivers below that have everything and are not confirmed; all of them in turn.
    fn verified(&self, most: usize) -> Vec<ReceiverId>;
    /// Whether one of them was not reported yet.
    fn has_unsent(&self) -> bool;
    /// Whether one of them is not confirmed.
    fn waits_for_confirmations(&self) -> bool;
    /// The parent does or does not confirm receivers by number, and has confirmed these.
    fn on_confirmed(&self, confirms: bool, ids: &[ReceiverId], now: Time);
    /// The parent has changed.
    fn on_other_parent(&self);

    /// Whether receipts have come from below.
    fn has_receipts(&self) -> bool;
    /// Takes these receipts; their answers are awaited from now on.
    fn take_receipts(&self) -> Vec<Receipt>;
    /// The parent does or does not accept receipts.
    fn note_receipts_taken(&self, taken: bool);
    /// Takes the number of receipts whose answers are awaited.
    fn note_receipts_waiting(&self, waiting: usize);
}
