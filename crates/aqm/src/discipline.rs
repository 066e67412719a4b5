//! What a discipline sees and decides.

use crate::drop_tail::DropTail;
use crate::red::{self, Red};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};

/// A packet that wants to wait in a queue, and how the queue looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offer {
    /// The moment of its arrival.
    pub now: Time,
    /// Its size, in bytes.
    pub size: u16,
    /// Which flow it belongs to, for disciplines that tell flows apart.
    pub flow: u32,
    /// Whether it may be marked in place of an early drop (RFC 3168).
    pub ecn_capable: bool,
    /// Packets that wait; the one in transmission does not count.
    pub waiting: u32,
    /// Their bytes.
    pub waiting_bytes: u32,
    /// Bytes of the packet in transmission; 0 when the link is idle.
    pub in_transmission: u16,
    /// Since when the link is idle; `None` when it is busy.
    pub idle_since: Option<Time>,
}

/// What becomes of it.
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

/// A queue discipline that decides at arrival.
pub trait Discipline {
    /// Decide about this packet.
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision;
    /// The link's rate, where the discipline needs it; told at the start and at every change.
    fn set_rate(&mut self, _rate: Rate) {}
    /// When [`Discipline::on_timer`] wants to be called next; it is called before any packet that arrives later.
    fn timer(&self) -> Time {
        Time::NEVER
    }
    /// The timer has come, with this queue.
    fn on_timer(&mut self, _queue: &Offer) {}
}

/// How much a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Packets.
    Packets(u32),
    /// Bytes.
    Bytes(u32),
}

/// A discipline to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueSpec {
    /// First in, first out, and the arriving packet is dropped when the buffer is full. The limit counts the packet
    /// in transmission too: a buffer holds a packet until its last bit has left.
    DropTail(Limit),
    /// Random early detection.
    Red(red::Config),
}

/// Any discipline.
#[derive(Debug, Clone)]
pub enum AnyDiscipline {
    /// [`drop_tail`](crate::drop_tail).
    DropTail(DropTail),
    /// [`red`].
    Red(Box<Red>),
}

impl QueueSpec {
    /// A buffer that never drops.
    pub const UNLIMITED: QueueSpec = QueueSpec::DropTail(Limit::Packets(u32::MAX));

    /// The discipline, for a link of this rate and propagation delay.
    pub fn build(&self, rate: Rate, delay: Span) -> AnyDiscipline {
        match self {
            QueueSpec::DropTail(limit) => AnyDiscipline::DropTail(DropTail::new(*limit)),
            QueueSpec::Red(config) => AnyDiscipline::Red(Box::new(Red::new(*config, rate, delay))),
        }
    }
}

impl Discipline for AnyDiscipline {
    #[inline]
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        match self {
            AnyDiscipline::DropTail(discipline) => discipline.on_arrival(offer, rng),
            AnyDiscipline::Red(discipline) => discipline.on_arrival(offer, rng),
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        match self {
            AnyDiscipline::DropTail(discipline) => discipline.set_rate(rate),
            AnyDiscipline::Red(discipline) => discipline.set_rate(rate),
        }
    }

    #[inline]
    fn timer(&self) -> Time {
        match self {
            AnyDiscipline::DropTail(_) => Time::NEVER,
            AnyDiscipline::Red(discipline) => discipline.timer(),
        }
    }

    fn on_timer(&mut self, queue: &Offer) {
        match self {
            AnyDiscipline::DropTail(_) => {}
            AnyDiscipline::Red(discipline) => discipline.on_timer(queue),
        }
    }
}
