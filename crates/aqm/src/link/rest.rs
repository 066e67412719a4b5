//! State of a link beyond the fast path.

use super::queue::Queue;
use super::{LinkSpec, byte_time};
use crate::any::AnyDiscipline;
use crate::discipline::{Decision, Departure, Discipline, Ecn, Offer, Watches};
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
    Plain {
        spec: Arc<LinkSpec>,
        /// Number of drops by a full buffer.
        overflow: u32,
    },
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
    pub fn plain(spec: &Arc<LinkSpec>) -> Rest {
        Rest::Plain { spec: Arc::clone(spec), overflow: 0 }
    }

    /// Returns the state of a link that is not plain.
    #[inline]
    pub fn full(&self) -> Option<&FullState> {
        match self {
            Rest::Plain { .. } => None,
            Rest::Full(full) => Some(full),
        }
    }

    /// Returns the transmission time of a byte, in 2^-20 ns.
    #[inline]
    pub fn byte_time(&self) -> u64 {
        match self {
            Rest::Plain { spec, .. } => byte_time(spec.rate),
            Rest::Full(full) => full.byte_time,
        }
    }

    pub fn rate(&self) -> Rate {
        match self {
            Rest::Plain { spec, .. } => spec.rate,
            Rest::Full(full) => full.rate,
        }
    }

    /// Returns the buffer's size of a drop-tail link that is up, loses nothing on the wire, and records only the number of packets.
    pub fn plain_limit(&self) -> Option<Limit> {
        match self {
            Rest::Plain { spec, .. } => match spec.queue {
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

    /// Returns whether packets are recorded one by one, and all that have not departed at `now` have this size. Their number then
    /// suffices.
    pub fn has_only(&mut self, size: u16, now: Time) -> bool {
        let Rest::Full(full) = self else { return false };
        let Some(rare) = full.rare.as_mut().filter(|_| full.record == Record::Number) else { return false };
        if rare.mixed.packets.back().is_none_or(|last| last.size != size) {
            return false;
        }
        rare.mixed.forget_sent(now);
        rare.mixed.alike >= rare.mixed.packets.len()
    }

    pub fn overflow(&self) -> u64 {
        match self {
            Rest::Plain { overflow, .. } => (*overflow).into(),
            Rest::Full(full) => full.overflow,
        }
    }

    /// Counts a drop by a full buffer.
    #[inline]
    pub fn count_overflow(&mut self) {
        match self {
            Rest::Plain { overflow, .. } if *overflow < u32::MAX => *overflow += 1,
            _ => self.expand().overflow += 1,
        }
    }

    /// Returns the state, and allocates it if the link was plain.
    #[inline]
    pub fn expand(&mut self) -> &mut FullState {
        if let Rest::Plain { .. } = self {
            self.allocate();
        }
        match self {
            Rest::Full(full) => full,
            Rest::Plain { .. } => unreachable!("it was allocated"),
        }
    }

    #[cold]
    #[inline(never)]
    fn allocate(&mut self) {
        let Rest::Plain { spec, overflow } = self else { return };
        // Nothing draws random numbers: drop-tail queues do not, and the link has neither losses nor jitter.
        let full = FullState::new(spec, spec.queue.build(spec.rate, spec.delay), Rng::new(0, 0));
        *self = Rest::Full(Box::new(FullState { overflow: (*overflow).into(), ..full }));
    }
}

/// State of the transmitter of a link whose packets have a common size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uniform {
    pub free_at: Time,
    pub each: Span,
    pub size: u16,
}

impl Uniform {
    /// Returns the number and the bytes of the packets that have not departed, and the size of the packet in transmission.
    #[inline]
    pub fn backlog(self, now: Time) -> (u32, u64, u16) {
        let busy = self.free_at.since(now).as_nanos();
        if busy == 0 {
            return (0, 0, 0);
        }
        let packets = busy.div_ceil(self.each.as_nanos().max(1)) as u32;
        (packets, u64::from(packets) * u64::from(self.size), self.size)
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

    pub fn decide(&mut self, uniform: Uniform, now: Time, size: u16, flow: u32, ecn: Ecn) -> Decision {
        while let Some(moment) = self.decides.timer().filter(|moment| *moment <= now) {
            self.tell(uniform.free_at, moment);
            let queue = self.look(uniform, moment, 0, 0, Ecn::NotEct);
            if let Decides::AtArrival(discipline) = &mut self.decides {
                discipline.on_timer(&queue);
                if uniform.free_at <= moment {
                    discipline.on_silence(now);
                }
            }
        }
        self.tell(uniform.free_at, now);
        let offer = self.look(uniform, now, size, flow, ecn);
        match &mut self.decides {
            Decides::DropTail(drop_tail) => drop_tail.on_arrival(&offer, &mut self.rng),
            Decides::AtArrival(discipline) => discipline.on_arrival(&offer, &mut self.rng),
            Decides::Holds(_) => unreachable!("packets of a link that queues do not come here"),
        }
    }

    /// Reports departures until `now`, and the time at which the link became idle, to a discipline that watches departures.
    pub fn tell(&mut self, free_at: Time, now: Time) {
        let (Decides::AtArrival(discipline), Watches::Departures) = (&mut self.decides, self.watches) else {
            return;
        };
        let mixed = &mut self.rare.get_or_insert_default().mixed;
        while let Some(left) = mixed.packets.get(mixed.reported.packets).filter(|packet| packet.begins <= now)
        {
            mixed.reported.packets += 1;
            mixed.reported.bytes += u64::from(left.size);
            discipline.on_departure(&Departure {
                at: left.begins,
                flow: left.flow,
                size: left.size,
                waiting: (mixed.packets.len() - mixed.reported.packets) as u32,
                waiting_bytes: mixed.bytes - mixed.reported.bytes,
            });
        }
        if free_at <= now && free_at > mixed.reported.idle {
            mixed.reported.idle = free_at;
            discipline.on_idle(free_at);
        }
    }

    /// Returns the state of the queue at a packet's arrival.
    fn look(&self, uniform: Uniform, now: Time, size: u16, flow: u32, ecn: Ecn) -> Offer {
        let (packets, bytes, in_transmission) = self.backlog(uniform, now);
        Offer {
            now,
            size,
            flow,
            ecn,
            waiting: packets.saturating_sub(u32::from(in_transmission > 0)),
            waiting_bytes: bytes - u64::from(in_transmission),
            in_transmission,
            idle_since: (uniform.free_at <= now).then_some(uniform.free_at),
        }
    }

    /// Returns the number and the bytes of the packets that have not departed, and the size of the packet in transmission.
    pub fn backlog(&self, uniform: Uniform, now: Time) -> (u32, u64, u16) {
        if uniform.free_at <= now {
            return (0, 0, 0);
        }
        match self.mixed() {
            None if self.record == Record::Each => (0, 0, 0),
            None => uniform.backlog(now),
            Some(mixed) => {
                let gone = mixed.packets.iter().take_while(|packet| packet.ends <= now);
                let (count, bytes) = gone.fold((0, 0), |(n, b), packet| (n + 1, b + u64::from(packet.size)));
                let first = mixed.packets.get(count).map_or(0, |packet| packet.size);
                ((mixed.packets.len() - count) as u32, mixed.bytes - bytes, first)
            }
        }
    }

    /// Whether only the number of packets is recorded, because they have a common size.
    pub fn is_uniform(&self) -> bool {
        self.record == Record::Number && self.mixed().is_none()
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
    /// Number of latest packets that have the same size. It may include packets that were removed.
    pub alike: usize,
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
    pub fn push(&mut self, packet: Waiting) {
        let is_alike = self.packets.back().is_some_and(|last| last.size == packet.size);
        self.alike = if is_alike { self.alike + 1 } else { 1 };
        self.bytes += u64::from(packet.size);
        self.packets.push_back(packet);
    }

    pub fn clear(&mut self) {
        self.packets.clear();
        (self.bytes, self.alike) = (0, 0);
    }

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
