//! State of a link beyond the fast path.

use super::queue::Queue;
use super::{LinkSpec, byte_time};
use crate::any::AnyDiscipline;
use crate::discipline::{Discipline, Watches};
use crate::drop_tail::DropTail;
use crate::limit::Limit;
use crate::loss::Loss;
use crate::spec::QueueSpec;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Parameters of a link, and the state that the fast path does not use.
#[derive(Debug)]
pub(super) enum Rest {
    /// Drop-tail without losses and jitter; all packets so far had one size. Similar links share the specification.
    Plain(Arc<LinkSpec>),
    /// All other links.
    Full(Box<FullState>),
}

/// State of a link that is not plain.
#[derive(Debug)]
pub(super) struct FullState {
    /// Transmission time of a byte, in 2^-20 ns.
    pub byte_time: u64,
    pub decides: Decides,
    pub rng: Rng,
    pub rate: Rate,
    /// Number and bytes of accepted packets, and number of drops by a full buffer, without the packets that [`Link`](super::Link) counts.
    pub accepted: u64,
    pub accepted_bytes: u64,
    pub overflow: u64,
    pub rare: Option<Box<LinkExtras>>,
    pub state: State,
    pub record: Record,
    pub watches: Watches,
}

/// The discipline that decides about packets.
#[derive(Debug)]
pub(super) enum Decides {
    DropTail(DropTail),
    AtArrival(Box<dyn Discipline>),
    Holds(Box<Queue>),
}

/// State that most links do not need.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkExtras {
    /// All waiting packets, each with its times; used if packets have several sizes or the link was changed.
    pub mixed: Mixed,
    pub loss: Option<Loss>,
    /// Jitter of the wire. With jitter, packets are recorded one by one, each with its own delay.
    pub jitter: Span,
    /// Latest arrival; known only on the slow path.
    pub last_arrival: Time,
    /// Number of accepted bytes that were lost later because the link went down.
    pub flushed_bytes: u64,
    pub early: u64,
    pub marked: u64,
    pub lost: u64,
    pub refused: u64,
}

impl Rest {
    /// Returns the state of a link that is not plain.
    #[inline]
    pub fn full(&self) -> Option<&FullState> {
        match self {
            Rest::Plain(_) => None,
            Rest::Full(full) => Some(full),
        }
    }

    /// Returns the transmission time of a byte, in 2^-20 ns.
    #[inline]
    pub fn byte_time(&self) -> u64 {
        match self {
            Rest::Plain(spec) => byte_time(spec.rate),
            Rest::Full(full) => full.byte_time,
        }
    }

    pub fn rate(&self) -> Rate {
        match self {
            Rest::Plain(spec) => spec.rate,
            Rest::Full(full) => full.rate,
        }
    }

    /// Returns the buffer's size of a drop-tail link that is up, loses nothing on the wire, and records only the number of packets.
    pub fn plain_limit(&self) -> Option<Limit> {
        match self {
            Rest::Plain(spec) => match spec.queue {
                QueueSpec::DropTail(limit) => Some(limit),
                _ => None,
            },
            Rest::Full(full) => full.plain_limit(),
        }
    }

    /// Returns the queue of a link whose discipline holds packets.
    #[inline]
    pub fn queue(&self) -> Option<&Queue> {
        match self.full().map(|full| &full.decides) {
            Some(Decides::Holds(queue)) => Some(queue),
            _ => None,
        }
    }

    pub fn extras(&self) -> Option<&LinkExtras> {
        self.full().and_then(|full| full.rare.as_deref())
    }

    /// Returns the packets that are recorded one by one, if any.
    pub fn mixed(&self) -> Option<&Mixed> {
        self.full().and_then(FullState::mixed)
    }

    /// Whether each packet is recorded from the start.
    pub fn records_each(&self) -> bool {
        self.full().is_some_and(|full| full.record == Record::Each)
    }

    /// Returns the state, and allocates it if the link was plain.
    #[inline]
    pub fn expand(&mut self) -> &mut FullState {
        if let Rest::Plain(spec) = self {
            // Nothing draws random numbers: drop-tail queues do not, and the link has neither losses nor jitter.
            let full = FullState::new(spec, spec.queue.build(spec.rate, spec.delay), Rng::new(0, 0));
            *self = Rest::Full(Box::new(full));
        }
        match self {
            Rest::Full(full) => full,
            Rest::Plain(_) => unreachable!("it was expanded"),
        }
    }
}

impl FullState {
    pub fn new(spec: &LinkSpec, discipline: AnyDiscipline, rng: Rng) -> FullState {
        let mut decides = match discipline {
            AnyDiscipline::DropTail(drop_tail) => Decides::DropTail(drop_tail),
            AnyDiscipline::AtArrival(discipline) => Decides::AtArrival(discipline),
            AnyDiscipline::Holds(qdisc) => Decides::Holds(Box::new(Queue::new(qdisc))),
        };
        decides.set_rate(spec.rate);
        let watches = match &decides {
            Decides::AtArrival(discipline) => discipline.watches(),
            Decides::DropTail(_) | Decides::Holds(_) => Watches::Arrivals,
        };
        let LinkSpec { loss, jitter, .. } = *spec;
        let rare = (loss.is_some() || jitter > Span::ZERO)
            .then(|| Box::new(LinkExtras { loss: loss.map(Loss::new), jitter, ..LinkExtras::default() }));
        let each = watches == Watches::Departures || jitter > Span::ZERO;
        FullState {
            byte_time: byte_time(spec.rate),
            decides,
            rng,
            rate: spec.rate,
            accepted: 0,
            accepted_bytes: 0,
            overflow: 0,
            rare,
            state: State::Up,
            record: if each { Record::Each } else { Record::Number },
            watches,
        }
    }

    fn plain_limit(&self) -> Option<Limit> {
        let Decides::DropTail(drop_tail) = &self.decides else { return None };
        let lossless = self.rare.as_ref().is_none_or(|rare| rare.loss.is_none());
        let plain = lossless && self.state == State::Up && self.record == Record::Number;
        (plain && self.mixed().is_none()).then(|| drop_tail.limit())
    }

    pub fn draw_jitter(&mut self) -> Span {
        match &self.rare {
            Some(rare) if rare.jitter > Span::ZERO => {
                Span::from_nanos(self.rng.below(rare.jitter.as_nanos()))
            }
            _ => Span::ZERO,
        }
    }

    pub fn rare(&mut self) -> &mut LinkExtras {
        self.rare.get_or_insert_default()
    }

    /// Returns the packets that are recorded one by one, if any.
    pub fn mixed(&self) -> Option<&Mixed> {
        self.rare.as_ref().map(|rare| &rare.mixed).filter(|mixed| !mixed.packets.is_empty())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Up,
    Down,
}

/// Record of packets of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    /// Only the number of packets is recorded.
    Number,
    /// Each packet is recorded, because the link was changed, the link has jitter, or the discipline watches departures.
    Each,
}

/// Packets of several sizes, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Mixed {
    pub packets: VecDeque<Waiting>,
    pub bytes: u64,
    /// Arrival time of the packet that was last removed from this list.
    pub sent_arrives: Time,
    pub reported: Reported,
}

/// State that was reported to a discipline that watches departures.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reported {
    /// Number of packets in [`Mixed::packets`] whose departure was reported.
    pub packets: usize,
    /// Bytes of the packets whose departure was reported.
    pub bytes: u64,
    /// Beginning of the latest idle time that was reported.
    pub idle: Time,
}

/// A packet that waits or is in transmission.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub begins: Time,
    pub ends: Time,
    /// Propagation delay that applied when the packet arrived at the link.
    pub delay: Span,
    pub flow: u32,
    pub size: u16,
}

impl Waiting {
    /// Returns the packet's arrival time if the previous packet arrives at `last`. Packets do not overtake each other. If the
    /// transmission time is above zero, the packet arrives at least a nanosecond after `last`, so that the two arrival times
    /// differ.
    pub fn arrives_after(&self, last: Time) -> Time {
        let gap = self.ends.since(self.begins).min(Span::from_nanos(1));
        (self.ends + self.delay).max(last + gap)
    }
}

impl Decides {
    pub fn set_rate(&mut self, rate: Rate) {
        match self {
            Decides::DropTail(drop_tail) => drop_tail.set_rate(rate),
            Decides::AtArrival(discipline) => discipline.set_rate(rate),
            Decides::Holds(queue) => queue.set_rate(rate),
        }
    }

    /// Returns the next timer of a discipline that decides at arrival.
    pub fn timer(&self) -> Option<Time> {
        let Decides::AtArrival(discipline) = self else { return None };
        Some(discipline.timer())
    }
}

impl Mixed {
    pub fn forget_sent(&mut self, now: Time) {
        while let Some(gone) = self.packets.front().filter(|packet| packet.ends <= now) {
            self.bytes -= u64::from(gone.size);
            if self.reported.packets > 0 {
                self.reported.packets -= 1;
                self.reported.bytes -= u64::from(gone.size);
            }
            self.sent_arrives = gone.arrives_after(self.sent_arrives);
            self.packets.pop_front();
        }
    }
}
