//! The input and the decisions of a discipline that decides at arrival.

use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Time};
use std::fmt;

/// A packet that arrives at a queue, and the state of the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offer {
    /// Time of its arrival.
    pub now: Time,
    /// Its size, in bytes.
    pub size: u16,
    /// The packet's flow, for disciplines that distinguish flows.
    pub flow: u32,
    /// Its ECN field (RFC 3168).
    pub ecn: Ecn,
    /// Number of waiting packets without the one in transmission.
    pub waiting: u32,
    /// Bytes of these packets.
    pub waiting_bytes: u64,
    /// Bytes of the packet in transmission; 0 when the link is idle.
    pub in_transmission: u16,
    /// Beginning of the idle time of the link; `None` when it is busy.
    pub idle_since: Option<Time>,
}

/// The ECN field of a packet (RFC 3168, 5; RFC 9331, 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECT(0): its sender responds to a mark as to a loss.
    Ect0,
    /// ECT(1): its sender responds to the fraction of marks and needs a short queue (L4S).
    Ect1,
    /// CE: marked already; the former value is unknown.
    Ce,
}

impl Ecn {
    /// Whether a queue may mark the packet instead of an early drop.
    #[inline]
    pub const fn may_be_marked(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }

    /// Whether the packet belongs to the low-latency queue (RFC 9332, 2.3).
    #[inline]
    pub const fn is_l4s(self) -> bool {
        matches!(self, Ecn::Ect1 | Ecn::Ce)
    }
}

/// ECT(0) if the packet may be marked.
impl From<bool> for Ecn {
    #[inline]
    fn from(may_be_marked: bool) -> Ecn {
        if may_be_marked { Ecn::Ect0 } else { Ecn::NotEct }
    }
}

impl Offer {
    /// Returns the decision for an early congestion signal on this packet: a mark if the queue marks and the packet is
    /// ECN-capable, otherwise a drop.
    pub fn warned(&self, marks: bool) -> Decision {
        if marks && self.ecn.may_be_marked() { Decision::Mark } else { Decision::Drop(DropCause::Early) }
    }
}

/// Decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The packet is queued.
    Accept,
    /// The packet is queued with its congestion mark set.
    Mark,
    /// The packet is dropped.
    Drop(DropCause),
}

/// Reason of a drop by a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCause {
    /// The buffer is full, or the discipline must drop ("forced").
    Overflow,
    /// An early congestion signal of the discipline ("unforced").
    Early,
}

/// A queue discipline that decides at arrival about packets that leave first in, first out. A discipline that decides at
/// departure, or reorders packets, is a [`Qdisc`](crate::qdisc::Qdisc).
pub trait Discipline: fmt::Debug + Send {
    /// Decides about this packet.
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision;
    /// Sets the link's rate, if the discipline needs it. Called at the start and at every change.
    fn set_rate(&mut self, _rate: Rate) {}
    /// Returns the time of the next call of [`Discipline::on_timer`]. It precedes every packet that arrives later.
    fn timer(&self) -> Time {
        Time::NEVER
    }
    /// Handles the timer, with this state of the queue.
    fn on_timer(&mut self, _queue: &Offer) {}
    /// From the present timer until `until`, no packet waits or arrives. A discipline whose state does not change meanwhile may
    /// move its timer beyond, so that a long silence does not cost a step for each period.
    fn on_silence(&mut self, _until: Time) {}
    /// Returns the events that the discipline needs in addition to arrivals. Called once.
    fn watches(&self) -> Watches {
        Watches::Arrivals
    }
    /// Handles a packet that left the queue. Called in order, before any later event.
    fn on_departure(&mut self, _departure: &Departure) {}
    /// The last packet's transmission ended at `since`, and no packet waited: the link has been idle since.
    fn on_idle(&mut self, _since: Time) {}
    /// The link went down, and all waiting packets are lost.
    fn on_flush(&mut self) {}
}

/// Events of which a discipline is notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watches {
    /// Arrivals only.
    Arrivals,
    /// Departures and the beginning of idle times, too. The link then records every packet.
    Departures,
}

/// The beginning of a packet's transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Time of the beginning.
    pub at: Time,
    /// Its flow.
    pub flow: u32,
    /// Its size, in bytes.
    pub size: u16,
    /// Number of packets left in the queue.
    pub waiting: u32,
    /// Bytes of these packets.
    pub waiting_bytes: u64,
}
