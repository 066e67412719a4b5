//! Disciplines that hold packets: they decide at departure too, and in which order packets leave.
//!
//! They hold no contents. A packet is known by its [`Ticket`]; the driver of the link stores the packet itself.

use crate::discipline::{Decision, DropCause, Ecn, Offer};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Time};
use std::collections::VecDeque;
use std::fmt;

/// A waiting packet's number on its link, from the offer until the link reports its fate. Numbers are small and
/// reused, so that a driver stores packets in a plain vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u32);

/// A queue discipline that holds packets (Linux: qdisc).
pub trait Qdisc: fmt::Debug + Send {
    /// A packet arrives. Packets that must go to make room for it are written into `dropped`; that may be any but itself.
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        rng: &mut Rng,
        dropped: &mut Vec<Dropped>,
    ) -> Decision;
    /// The transmitter is free: the packet that it sends now, after those that are dropped. `None` only when nothing is left.
    fn dequeue(&mut self, now: Time, rng: &mut Rng, dropped: &mut Vec<Dropped>) -> Option<Sent>;
    /// Packets that wait, and their bytes.
    fn backlog(&self) -> (u32, u64);
    /// The link went down: all that waits is lost, and named.
    fn flush(&mut self, lost: &mut Vec<Ticket>);
    /// Sets the link's rate, where the discipline needs it; called at the start and at every change.
    fn set_rate(&mut self, _rate: Rate) {}
    /// When [`Qdisc::on_timer`] wants to be called next; it is called before anything that happens later.
    fn timer(&self) -> Time {
        Time::NEVER
    }
    /// The timer has come. It must move on.
    fn on_timer(&mut self, _now: Time) {}
    /// Nothing waits and nothing arrives from the present timer until `until`: a discipline in which nothing changes meanwhile may move
    /// its timer beyond.
    fn on_silence(&mut self, _until: Time) {}
    /// The last packet's transmission ended at this moment, and none waited: the link has been idle since.
    /// Called before the next arrival.
    fn on_idle(&mut self, _since: Time) {}
}

/// A waiting packet that was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Which.
    pub ticket: Ticket,
    /// Why.
    pub cause: DropCause,
}

/// A packet whose transmission begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Which.
    pub ticket: Ticket,
    /// Whether its congestion mark is set at departure.
    pub marked: bool,
}

/// State of a waiting packet that a discipline sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// Which.
    pub ticket: Ticket,
    /// When it came.
    pub since: Time,
    /// Its flow.
    pub flow: u32,
    /// Its size, in bytes.
    pub size: u16,
    /// Whether it may be marked.
    pub ecn: Ecn,
}

impl Queued {
    /// The offered packet.
    pub const fn new(offer: &Offer, ticket: Ticket) -> Queued {
        let Offer { now, size, flow, ecn, .. } = *offer;
        Queued { ticket, since: now, flow, size, ecn }
    }
}

/// Packets in the order in which they came, and their bytes: what disciplines are made of.
#[derive(Debug, Clone, Default)]
pub struct PacketQueue {
    packets: VecDeque<Queued>,
    bytes: u64,
}

impl PacketQueue {
    /// A packet joins at the end.
    pub fn push(&mut self, packet: Queued) {
        self.bytes += u64::from(packet.size);
        self.packets.push_back(packet);
    }

    /// The oldest leaves.
    pub fn pop(&mut self) -> Option<Queued> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// The oldest.
    pub fn front(&self) -> Option<&Queued> {
        self.packets.front()
    }

    /// How many, and their bytes.
    pub fn backlog(&self) -> (u32, u64) {
        (self.packets.len() as u32, self.bytes)
    }

    /// All leave, the oldest first.
    pub fn flush(&mut self, lost: &mut Vec<Ticket>) {
        lost.extend(self.packets.drain(..).map(|packet| packet.ticket));
        self.bytes = 0;
    }
}
