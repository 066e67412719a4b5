//! What a discipline sees and decides.

use crate::drop_tail::DropTail;
use crate::red::{self, Red};
use faircast_core::rng::Rng;
use faircast_core::spec::{self, SpecError};
use faircast_core::time::{Rate, Span, Time};
use std::fmt;
use std::str::FromStr;

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

/// A discipline as text: `NAME` alone, or `NAME,OPTIONS`.
pub(crate) trait Written: Sized {
    /// Its name.
    const NAME: &'static str;
    /// How it is written, for those who wrote something else.
    const FORM: &'static str;
    /// From what stands behind the name.
    fn read(options: &str) -> Result<Self, SpecError>;
    /// Whether the values fit one another and make sense.
    fn check(&self) -> Result<(), SpecError>;
    /// What stands behind the name, in full: it reads back as the same.
    fn options(&self) -> String;
}

/// Reads, checks and shows every discipline: the variants of an enum that hold one [`Written`] each.
macro_rules! written {
    ($name:ident, $kind:literal, $($variant:ident($held:ty)),+ $(,)?) => {
        impl $name {
            /// This, if it makes sense.
            ///
            /// # Errors
            /// The first value that does not.
            pub fn checked(self) -> Result<$name, SpecError> {
                match &self {
                    $($name::$variant(held) => held.check().map(|()| self),)+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = SpecError;

            fn from_str(text: &str) -> Result<$name, SpecError> {
                let (name, options) = spec::split(text);
                $(if name == <$held>::NAME {
                    return <$held>::read(options).map($name::$variant).and_then($name::checked);
                })+
                let known = [$(<$held>::FORM),+].join(", ");
                Err(SpecError::UnknownName { kind: $kind, name: name.to_owned(), known })
            }
        }

        /// In full, so that it reads back as the same.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $($name::$variant(held) => write!(f, "{},{}", <$held>::NAME, held.options()),)+
                }
            }
        }
    };
}
written!(QueueSpec, "queue", DropTail(Limit), Red(red::Config));

impl FromStr for Limit {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Limit, SpecError> {
        let refuse = || SpecError::BadValue {
            option: "size",
            value: text.to_owned(),
            takes: "packets (`50`), bytes (`50kB`) or `unlimited`".to_owned(),
            meaning: "what the buffer holds",
        };
        if text == "unlimited" {
            return Ok(Limit::Packets(u32::MAX));
        }
        let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit);
        let factor = match unit {
            "" => return number.parse().map(Limit::Packets).map_err(|_| refuse()),
            "B" => 1.0,
            "kB" => 1e3,
            "MB" => 1e6,
            _ => return Err(refuse()),
        };
        let bytes = number.parse::<f64>().map_err(|_| refuse())? * factor;
        let whole = (bytes.fract() == 0.0 && bytes <= f64::from(u32::MAX)).then_some(bytes as u32);
        whole.map(Limit::Bytes).ok_or_else(refuse)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(u32::MAX) => f.write_str("unlimited"),
            Limit::Packets(packets) => write!(f, "{packets}"),
            Limit::Bytes(bytes) => write!(f, "{bytes}B"),
        }
    }
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
