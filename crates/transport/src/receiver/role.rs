//! The part of a relay in the session above it: its receiver is one member, and speaks for those below.

use super::symbol_sink::SymbolSink;
use crate::error::Seen;
use crate::object::Geometry;
use faircast_core::delivery::request_scheduler::RequestScheduler;
use faircast_core::node::Receiver;
use faircast_core::packet::{ReceiverId, Seq, SessionId};
use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_wire::{Announce, DataPacket, Receipt, TreeNode};

/// A relay as the receiver of its session above sees it. A receiver that is no relay has none.
pub(crate) trait Relaying: Send {
    /// Whether this process may follow an announced session: no other part of it does, and it does not announce the session itself.
    fn may_follow(&self, session: SessionId, announce: &Announce) -> bool;
    /// Take this session for this part of the process; `false`: another part has it.
    fn claim(&self, session: SessionId) -> bool;
    /// Whether another part of this process has the session.
    fn is_anothers(&self, session: SessionId) -> bool;
    /// Why it cannot take part in a session of this congestion control.
    fn why_not(&self, scheme: Option<&Scheme>) -> Option<Seen>;
    /// A parent has answered.
    fn note_fed(&self);
    /// Begin to pass a session on: the place of its symbols.
    fn begin(
        &self,
        session: SessionId,
        announce: &Announce,
        geometry: Geometry,
        requests: RequestScheduler,
        now: Time,
    ) -> Box<dyn SymbolSink>;
    /// The congestion control at this end; `None`: that of a receiver.
    fn control(&self) -> Option<Box<dyn Receiver + Send>>;

    /// Whether datagrams of the source are wanted as they came: data, and everything else.
    fn wants_raw(&self) -> (bool, bool);
    /// A datagram of the source as it came; data have a number.
    fn on_raw(&self, seq: Option<Seq>, raw: &[u8]);
    /// A data packet of `size` bytes, IP header included.
    fn on_packet(&self, packet: &DataPacket<'_>, size: u16, now: Time);

    /// Look after those below; `is_rooted`: the parent counts this member. Whether the limit of their buffers is to be told.
    fn tick(&self, is_rooted: bool, now: Time) -> bool;
    /// When [`Relaying::tick`] is due.
    fn tick_at(&self) -> Time;
    /// The first number that the buffers below have no room for.
    fn limit(&self) -> Seq;

    /// How many receivers below are to be told above, and how many of them have everything.
    fn receivers(&self) -> (u32, u32);
    /// The relays below.
    fn tree(&self) -> Vec<TreeNode>;
    /// Up to `most` receivers below that have everything and are not confirmed; all of them in turn.
    fn verified(&self, most: usize) -> Vec<ReceiverId>;
    /// Whether one of them was not told yet.
    fn has_untold(&self) -> bool;
    /// Whether one of them is not confirmed.
    fn waits_for_confirmations(&self) -> bool;
    /// The parent confirms receivers by number or does not, and these are confirmed.
    fn on_confirmed(&self, confirms: bool, ids: &[ReceiverId], now: Time);
    /// Another parent.
    fn on_other_parent(&self);

    /// Whether receipts have come from below.
    fn has_receipts(&self) -> bool;
    /// Those; their answers are awaited from now on.
    fn take_receipts(&self) -> Vec<Receipt>;
    /// The parent takes receipts or does not.
    fn note_receipts_taken(&self, taken: bool);
    /// The number of receipts whose answers are awaited.
    fn note_receipts_waiting(&self, waiting: usize);
}
