//! Disciplines that hold packets: they also decide at departure, and may reorder packets.
//!
//! A discipline does not hold the content of packets. The discipline identifies a packet by its [`Ticket`]; the driver of the
//! link stores the packet.

use crate::discipline::{Decision, DropCause, Ecn, Offer};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Time};
use std::collections::VecDeque;
use std::fmt;

/// Number of a waiting packet on its link. The ticket is valid from the offer until the link reports the packet's fate. Tickets
/// are small numbers and are reused, so that a driver can store packets in a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u32);

/// A queue discipline that holds packets (Linux: qdisc).
pub trait Qdisc: fmt::Debug + Send {
    /// Adds an arriving packet. Earlier packets that are dropped to make room are written to `dropped`.
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        rng: &mut Rng,
        dropped: &mut Vec<Dropped>,
    ) -> Decision;
    /// Returns the packet to send; `None` if the queue is empty. Called when the transmitter is free. Packets that are dropped
    /// before the returned packet are written to `dropped`.
    fn dequeue(&mut self, now: Time, rng: &mut Rng, dropped: &mut Vec<Dropped>) -> Option<Sent>;
    /// Returns the number of waiting packets and their bytes.
    fn backlog(&self) -> (u32, u64);
    /// Removes all waiting packets and writes them to `lost`. Called when the link goes down.
    fn flush(&mut self, lost: &mut Vec<Ticket>);
    /// Sets the link's rate, for disciplines that use the rate. Called at the start and at every change.
    fn set_rate(&mut self, _rate: Rate) {}
    /// Returns the time of the next call of [`Qdisc::on_timer`]. The call precedes every event that is later than this time.
    fn timer(&self) -> Time {
        Time::NEVER
    }
    /// Handles the timer, and sets a later one.
    fn on_timer(&mut self, _now: Time) {}
    /// Reports that no packet waits or arrives before `until`. A discipline whose state does not change before `until` may set
    /// its timer to a later time.
    fn on_silence(&mut self, _until: Time) {}
    /// Reports that the link has been idle since `since`: a transmission ended, and no packet waited. Called before the next
    /// arrival.
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

/// The properties of a waiting packet that a discipline can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// The packet's ticket.
    pub ticket: Ticket,
    /// Arrival time of the packet.
    pub since: Time,
    /// Flow of the packet.
    pub flow: u32,
    /// Size of the packet, in bytes.
    pub size: u16,
    /// ECN field of the packet.
    pub ecn: Ecn,
}

impl Queued {
    /// Creates the state of an offered packet.
    pub const fn new(offer: &Offer, ticket: Ticket) -> Queued {
        let Offer { now, size, flow, ecn, .. } = *offer;
        Queued { ticket, since: now, flow, size, ecn }
    }
}

/// Packets in the order of arrival, and the sum of their bytes: the building block of disciplines.
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
