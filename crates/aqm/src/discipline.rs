//! The input and the decisions of a discipline that decides at arrival.

use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Time};
use std::fmt;

/// A packet that wants to wait in a queue, and how the queue looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offer {
    /// The moment of its arrival.
    pub now: Time,
    /// Its size, in bytes.
    pub size: u16,
    /// The packet's flow, for disciplines that distinguish flows.
    pub flow: u32,
    /// Whether it may be marked in place of an early drop (RFC 3168).
    pub ecn: Ecn,
    /// Packets that wait; the one in transmission does not count.
    pub waiting: u32,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Bytes of the packet in transmission; 0 when the link is idle.
    pub in_transmission: u16,
    /// Since when the link is idle; `None` when it is busy.
    pub idle_since: Option<Time>,
}

/// Meaning of a packet's two bits for congestion marks (RFC 3168, 5; RFC 9331, 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// It may not be marked.
    #[default]
    NotEct,
    /// ECT(0): its sender answers a mark as it answers a loss.
    Ect0,
    /// ECT(1): its sender takes marks by their share, and wants a short queue (L4S).
    Ect1,
    /// Marked already; the former value is unknown.
    Ce,
}

impl Ecn {
    /// Whether a queue may mark it in place of an early drop.
    #[inline]
    pub const fn may_be_marked(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }

    /// Whether it belongs to the queue of low latency (RFC 9332, 2.3).
    #[inline]
    pub const fn is_l4s(self) -> bool {
        matches!(self, Ecn::Ect1 | Ecn::Ce)
    }
}

/// ECT(0) if it may be marked.
impl From<bool> for Ecn {
    #[inline]
    fn from(may_be_marked: bool) -> Ecn {
        if may_be_marked { Ecn::Ect0 } else { Ecn::NotEct }
    }
}

impl Offer {
    /// Returns the effect of an early warning of congestion on this packet: a mark where the queue marks and
    /// the packet may be marked, otherwise a drop.
    pub fn warned(&self, marks: bool) -> Decision {
        if marks && self.ecn.may_be_marked() { Decision::Mark } else { Decision::Drop(DropCause::Early) }
    }
}

/// Decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It waits.
    Accept,
    /// It waits, with its congestion mark set.
    Mark,
    /// It is dropped.
    Drop(DropCause),
}

/// Why a queue dropped a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCause {
    /// The buffer is full, or the discipline has no choice ("forced").
    Overflow,
    /// A discipline's early warning ("unforced").
    Early,
}

/// A queue discipline that decides at arrival about packets that leave first in, first out. One that decides at departure,
/// or in which order packets leave, is a [`Qdisc`](crate::qdisc::Qdisc).
pub trait Discipline: fmt::Debug + Send {
    /// Decide about this packet.
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision;
    /// Sets the link's rate, where the discipline needs it; called at the start and at every change.
    fn set_rate(&mut self, _rate: Rate) {}
    /// When [`Discipline::on_timer`] wants to be called next; it is called before any packet that arrives later.
    fn timer(&self) -> Time {
        Time::NEVER
    }
    /// The timer has come, with this queue.
    fn on_timer(&mut self, _queue: &Offer) {}
    /// Nothing waits from the present timer until `until`, and nothing arrives: a discipline in which nothing changes meanwhile
    /// may move its timer beyond, so that a long silence costs no step for each period.
    fn on_silence(&mut self, _until: Time) {}
    /// Returns the events besides arrivals that the discipline needs; called once.
    fn watches(&self) -> Watches {
        Watches::Arrivals
    }
    /// A packet has left the queue. Called in order, before any later event.
    fn on_departure(&mut self, _departure: &Departure) {}
    /// The last packet's transmission has ended at this moment, and none waited: the link has been idle since.
    fn on_idle(&mut self, _since: Time) {}
    /// The link went down: all that waited is lost.
    fn on_flush(&mut self) {}
}

/// Events of which a discipline is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watches {
    /// Arrivals alone.
    Arrivals,
    /// Departures and the beginning of idle times, too. The link then writes down every packet.
    Departures,
}

/// A packet's transmission begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// When.
    pub at: Time,
    /// Its flow.
    pub flow: u32,
    /// Its size, in bytes.
    pub size: u16,
    /// Packets that it leaves behind.
    pub waiting: u32,
    /// Their bytes.
    pub waiting_bytes: u64,
}
