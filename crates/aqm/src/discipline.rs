//! The input and the decisions of a discipline that decides at arrival.

use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Time};
use std::fmt;

/// A packet that arrives at a queue, and the state of the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offer {
    /// Arrival time of the packet.
    pub now: Time,
    /// Size of the packet, in bytes.
    pub size: u16,
    /// The packet's flow, for disciplines that distinguish flows.
    pub flow: u32,
    /// ECN field of the packet (RFC 3168).
    pub ecn: Ecn,
    /// Number of waiting packets, without the packet in transmission.
    pub waiting: u32,
    /// Bytes of the waiting packets.
    pub waiting_bytes: u64,
    /// Number of bytes of the packet in transmission; 0 when the link is idle.
    pub in_transmission: u16,
    /// Time since which the link has been idle; `None` while the link is busy.
    pub idle_since: Option<Time>,
}

/// The ECN field of a packet (RFC 3168, 5; RFC 9331, 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECT(0): the sender responds to a mark as to a loss.
    Ect0,
    /// ECT(1): the sender responds to the fraction of marks and needs a short queue (L4S).
    Ect1,
    /// CE: a packet that is already marked. Whether it was ECT(0) or ECT(1) before the mark is unknown.
    Ce,
}

impl Ecn {
    /// Whether a queue may mark the packet instead of dropping it early.
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
    /// The buffer is full, or the discipline drops every packet at present ("forced").
    Overflow,
    /// An early congestion signal of the discipline ("unforced").
    Early,
}

/// A discipline that decides about a packet at its arrival; packets depart first in, first out. A discipline that decides at
/// departure, or reorders packets, is a [`Qdisc`](crate::qdisc::Qdisc).
pub trait Discipline: fmt::Debug + Send {
    /// Decides about an arriving packet.
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision;
    /// Sets the link's rate, for disciplines that use the rate. Called at the start and at every change.
    fn set_rate(&mut self, _rate: Rate) {}
    /// Returns the time of the next call of [`Discipline::on_timer`]. The call precedes every packet that arrives later than this
    /// time.
    fn timer(&self) -> Time {
        Time::NEVER
    }
    /// Handles the timer. `queue` is the state of the queue.
    fn on_timer(&mut self, _queue: &Offer) {}
    /// Reports that no packet waits or arrives before `until`. A discipline whose state does not change before `until` may set
    /// its timer to a later time. This saves a call for each period of a long silence.
    fn on_silence(&mut self, _until: Time) {}
    /// Returns the events that the discipline needs in addition to arrivals. Called once.
    fn watches(&self) -> Watches {
        Watches::Arrivals
    }
    /// Handles the departure of a packet from the queue. Called in the order of departures, before any later event.
    fn on_departure(&mut self, _departure: &Departure) {}
    /// Reports that the link has been idle since `since`: a transmission ended, and no packet waited.
    fn on_idle(&mut self, _since: Time) {}
    /// Reports that the link went down and all waiting packets are lost.
    fn on_flush(&mut self) {}
}

/// Events that are reported to a discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watches {
    /// Arrivals only.
    Arrivals,
    /// Arrivals, departures and beginnings of idle times. The link then records every packet.
    Departures,
}

/// The beginning of a packet's transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Time of the beginning.
    pub at: Time,
    /// Flow of the packet.
    pub flow: u32,
    /// Size of the packet, in bytes.
    pub size: u16,
    /// Number of packets left in the queue.
    pub waiting: u32,
    /// Bytes of the packets left in the queue.
    pub waiting_bytes: u64,
}
