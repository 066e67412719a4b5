//! Disciplines that hold packets: they also decide at departure, and may reorder packets.
//!
//! A discipline does not hold the content of packets. It identifies a packet by its [`Ticket`]; the driver of the link stores the
//! packet.

use crate::discipline::{Decision, DropCause, Ecn, Offer};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Time};
use std::collections::VecDeque;
use std::fmt;

/// Number of a waiting packet on its link, from the offer until the link reports its fate. Numbers are small and reused, so that
/// a driver can store packets in a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u32);

/// A queue discipline that holds packets (Linux: qdisc).
pub trait Qdisc: fmt::Debug + Send {
    /// Adds an arriving packet. Packets that are dropped to make room, except the new one, are written to `dropped`.
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        rng: &mut Rng,
        dropped: &mut Vec<Dropped>,
    ) -> Decision;
    /// Returns the packet to send now that the transmitter is free, and writes packets dropped before it to `dropped`. `None` if
    /// the queue is empty.
    fn dequeue(&mut self, now: Time, rng: &mut Rng, dropped: &mut Vec<Dropped>) -> Option<Sent>;
    /// Returns the number of waiting packets and their bytes.
    fn backlog(&self) -> (u32, u64);
    /// The link went down: writes all waiting packets to `lost`.
    fn flush(&mut self, lost: &mut Vec<Ticket>);
    /// Sets the link's rate, if the discipline needs it. Called at the start and at every change.
    fn set_rate(&mut self, _rate: Rate) {}
    /// Returns the time of the next call of [`Qdisc::on_timer`]. It precedes every later event.
    fn timer(&self) -> Time {
        Time::NEVER
    }
    /// Handles the timer, and sets a later one.
    fn on_timer(&mut self, _now: Time) {}
    /// From the present timer until `until`, no packet waits or arrives. A discipline whose state does not change meanwhile may
    /// move its timer beyond.
    fn on_silence(&mut self, _until: Time) {}
    /// The last packet's transmission ended at `since`, and no packet waited: the link has been idle since. Called before the
    /// next arrival.
    fn on_idle(&mut self, _since: Time) {}
}

/// A waiting packet that was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// The packet's ticket.
    pub ticket: Ticket,
    /// Reason of the drop.
    pub cause: DropCause,
}

/// A packet whose transmission begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The packet's ticket.
    pub ticket: Ticket,
    /// Whether it has a congestion mark at departure.
    pub marked: bool,
}

/// State of a waiting packet that a discipline sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// The packet's ticket.
    pub ticket: Ticket,
    /// Time of its arrival.
    pub since: Time,
    /// Its flow.
    pub flow: u32,
    /// Its size, in bytes.
    pub size: u16,
    /// Its ECN field.
    pub ecn: Ecn,
}

impl Queued {
    /// Creates the state of an offered packet.
    pub const fn new(offer: &Offer, ticket: Ticket) -> Queued {
        let Offer { now, size, flow, ecn, .. } = *offer;
        Queued { ticket, since: now, flow, size, ecn }
    }
}

/// Packets in the order of arrival, and their bytes: the building block of disciplines.
#[derive(Debug, Clone, Default)]
pub struct PacketQueue {
    packets: VecDeque<Queued>,
    bytes: u64,
}

impl PacketQueue {
    /// Appends a packet.
    pub fn push(&mut self, packet: Queued) {
        self.bytes += u64::from(packet.size);
        self.packets.push_back(packet);
    }

    /// Removes the oldest packet.
    pub fn pop(&mut self) -> Option<Queued> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// Returns the oldest packet.
    pub fn front(&self) -> Option<&Queued> {
        self.packets.front()
    }

    /// Returns the number of packets and their bytes.
    pub fn backlog(&self) -> (u32, u64) {
        (self.packets.len() as u32, self.bytes)
    }

    /// Removes all packets, the oldest first.
    pub fn flush(&mut self, lost: &mut Vec<Ticket>) {
        lost.extend(self.packets.drain(..).map(|packet| packet.ticket));
        self.bytes = 0;
    }
}
