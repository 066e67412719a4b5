//! A link: a queue in front of a transmitter of a given rate, then a wire with a delay and losses.
//!
//! With a first-in-first-out queue that decides at arrival, [`Link::offer`] immediately returns the packet's arrival time at the
//! other end. Otherwise the packet is queued, and the driver has two more duties. After every call with a time, the driver calls
//! [`Link::dequeue`] until no packet is returned. The driver calls [`Link::dequeue`] again at the time [`Link::next_dequeue`],
//! before any other event of the link at this time. The driver stores the packets; the link stores only times, sizes and counts.

use crate::any::AnyDiscipline;
use crate::discipline::{Decision, DropCause, Ecn};
use crate::limit::Limit;
use crate::loss::{Loss, LossSpec};
use crate::qdisc::Ticket;
use crate::spec::QueueSpec;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use rest::{Decides, FullState, Record, Reported, Rest, State, Uniform, Waiting};
use std::sync::Arc;

mod queue;
mod rest;

/// Specification of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSpec {
    /// Bit rate of the transmitter; [`Rate::UNLIMITED`] for a link without transmission time.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// The queue before the transmitter.
    pub queue: QueueSpec,
    /// Losses on the wire, after the transmitter.
    pub loss: Option<LossSpec>,
    /// Maximum random addition to the propagation delay of each packet. Packets stay in order. The jitter models the irregular
    /// delays of hosts and networks.
    pub jitter: Span,
}

impl LinkSpec {
    /// Creates a link without losses and with a constant delay.
    pub const fn new(rate: Rate, delay: Span, queue: QueueSpec) -> LinkSpec {
        LinkSpec { rate, delay, queue, loss: None, jitter: Span::ZERO }
    }
}

/// Fate of a packet that is offered to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferResult {
    /// The packet arrives at the other end.
    Arrives {
        /// Arrival time of the last bit of the packet.
        at: Time,
        /// Whether the queue set the packet's congestion mark.
        marked: bool,
    },
    /// The packet waits. [`Link::dequeue`] will report its fate.
    Queued(Ticket),
    /// The packet is lost.
    Lost(LossCause),
}

/// Fate of a packet that was queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dequeued {
    /// The packet's transmission begins, and the packet will arrive at the other end.
    Arrives {
        /// The packet's ticket.
        ticket: Ticket,
        /// Arrival time of the last bit of the packet.
        at: Time,
        /// Whether the queue set the packet's congestion mark.
        marked: bool,
    },
    /// The packet is lost.
    Lost {
        /// The packet's ticket.
        ticket: Ticket,
        /// Reason of the loss.
        cause: LossCause,
    },
}

/// Cause of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// The queue dropped the packet.
    Queue(DropCause),
    /// The packet was lost on the wire.
    Wire,
    /// The link is down.
    Down,
}

/// Counters of a link since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounts {
    /// Number of offered packets.
    pub offered: u64,
    /// Number of packets that the queue accepted and did not drop later.
    pub accepted: u64,
    /// Bytes of the accepted packets.
    pub accepted_bytes: u64,
    /// Number of drops by a full buffer.
    pub overflow: u64,
    /// Number of early drops by the discipline.
    pub early: u64,
    /// Number of marked packets.
    pub marked: u64,
    /// Number of packets lost on the wire or because the link was down.
    pub lost: u64,
}

/// Number of fractional bits in the transmission time of a byte.
const FRACTION: u32 = 20;

/// Maximum transmission time of a byte, 134 ms. The time for 65,535 bytes then fits in 64 bits. Rates below 60 bit/s count as 60
/// bit/s.
const SLOWEST: u64 = u64::MAX >> 17;

/// One direction of a link. The fields that every packet uses fit in a cache line; all other fields are in a box.
#[derive(Debug)]
#[repr(C)]
pub struct Link {
    /// End of the transmission of all accepted packets.
    free_at: Time,
    delay: Span,
    /// Transmission time of a packet, if all waiting packets and the packet in transmission have the same size. The number of
    /// these packets then follows from `free_at`.
    each: Span,
    /// Maximum time from an arrival until `free_at` for which a drop-tail buffer accepts the arriving packet, if it has the
    /// common size.
    patience: Span,
    rest: Rest,
    /// Number of packets of the common size that the fast path accepted. `rest` counts all other packets.
    accepted: u32,
    /// Common size of the packets, in bytes.
    size: u16,
    /// [`SHORT`], [`KEPT`] and [`LAST`].
    flags: u8,
    /// Number of packets accepted since the link was last idle, not counting the latest packet.
    streak: u8,
}

const _: () = assert!(size_of::<Link>() <= 56);

/// Flag of the fast path: a drop-tail queue with packets of one size, and a wire without losses.
const SHORT: u8 = 1;
/// Flag: the common size has changed since the link was last idle, so [`LAST`] decides about the rank.
const KEPT: u8 = 2;
/// Flag: the delay exceeded the transmission time of a packet when the link was last idle. See [`Link::rank`].
const LAST: u8 = 4;

impl Link {
    /// Creates an idle link with the random stream `rng`.
    pub fn new(spec: &LinkSpec, rng: Rng) -> Link {
        Link::with_discipline(spec, spec.queue.build(spec.rate, spec.delay), rng)
    }

    /// Creates a link with this discipline instead of the discipline that `spec` names.
    pub fn with_discipline(spec: &LinkSpec, discipline: AnyDiscipline, rng: Rng) -> Link {
        Link::idle(spec.delay, Rest::Full(Box::new(FullState::new(spec, discipline, rng))))
    }

    /// Creates an idle link that shares the specification with similar links, if it needs no random stream. Its losses on the wire
    /// cannot be changed later.
    pub fn sharing(spec: &Arc<LinkSpec>, rng: Rng) -> Link {
        let is_plain =
            matches!(spec.queue, QueueSpec::DropTail(_)) && spec.loss.is_none() && spec.jitter == Span::ZERO;
        if is_plain { Link::idle(spec.delay, Rest::plain(spec)) } else { Link::new(spec, rng) }
    }

    const fn idle(delay: Span, rest: Rest) -> Link {
        Link {
            free_at: Time::ZERO,
            delay,
            each: Span::ZERO,
            patience: Span::ZERO,
            rest,
            accepted: 0,
            size: 0,
            flags: 0,
            streak: 0,
        }
    }

    /// Offers a packet of `size` bytes of `flow`. `now` must not decrease from call to call.
    #[inline]
    pub fn offer(&mut self, now: Time, size: u16, flow: u32, ecn: impl Into<Ecn>) -> OfferResult {
        if self.flags & SHORT != 0 && self.size == size {
            if self.free_at.since(now) > self.patience {
                self.rest.count_overflow();
                return OfferResult::Lost(LossCause::Queue(DropCause::Overflow));
            }
            if self.flags & KEPT != 0 && self.free_at <= now {
                self.set(KEPT, false);
            }
            self.go_on(now);
            self.free_at = self.free_at.max(now) + self.each;
            self.accepted += 1;
            if self.accepted == u32::MAX {
                self.fold();
            }
            return OfferResult::Arrives { at: self.free_at + self.delay, marked: false };
        }
        self.offer_long(now, size, flow, ecn.into())
    }

    /// Returns the rank of the latest accepted packet. If packets of several links arrive at the same time, packets with lower
    /// ranks are first. The rank depends on the number of packets before this packet since the link was last idle. A link on
    /// which a packet arrives exactly at the end of a transmission does not count as idle.
    ///
    /// This order follows ns-2, which executes simultaneous events in the order of their causes. The cause of the end of a
    /// transmission is the beginning of the transmission. The cause of the arrival of an acknowledgement is the transmission of
    /// the acknowledgement over a link of about the same delay. Therefore, packets of a burst are last on links whose delay
    /// exceeds a packet's transmission time, and first on other links.
    #[inline]
    pub const fn rank(&self) -> u8 {
        if self.is_last() { self.streak } else { u8::MAX - self.streak }
    }

    /// Returns whether the packets of a burst are last among simultaneous arrivals.
    #[inline]
    const fn is_last(&self) -> bool {
        if self.flags & KEPT == 0 {
            self.each.as_nanos() < self.delay.as_nanos()
        } else {
            self.flags & LAST != 0
        }
    }

    const fn set(&mut self, flag: u8, is_set: bool) {
        self.flags = if is_set { self.flags | flag } else { self.flags & !flag };
    }

    /// Counts a packet of the present burst. Must be called before [`Link::free_at`] changes.
    #[inline]
    fn go_on(&mut self, now: Time) {
        self.streak = streak_at(now, self.free_at, self.streak);
    }

    /// Moves the count of the fast path to `rest`.
    #[cold]
    fn fold(&mut self) {
        let accepted = u64::from(std::mem::take(&mut self.accepted));
        let rest = self.rest.expand();
        rest.accepted += accepted;
        rest.accepted_bytes += accepted * u64::from(self.size);
    }

    /// Returns the transmitter's state if all packets have the common size.
    #[inline]
    const fn uniform(&self) -> Uniform {
        Uniform { free_at: self.free_at, each: self.each, size: self.size }
    }

    #[inline(never)]
    fn offer_long(&mut self, now: Time, size: u16, flow: u32, ecn: Ecn) -> OfferResult {
        if let Rest::Full(rest) = &mut self.rest {
            if let Decides::Holds(_) = rest.decides {
                return self.offer_queued(now, size, flow, ecn);
            }
            if rest.state == State::Down {
                rest.rare().refused += 1;
                return OfferResult::Lost(LossCause::Down);
            }
        }
        let is_idle = self.free_at <= now;
        if is_idle || self.rest.has_only(size, now) {
            if !is_idle {
                self.set(LAST, self.is_last());
            }
            self.set(KEPT, !is_idle);
            self.settle(size);
            if self.flags & SHORT != 0 {
                return self.offer(now, size, flow, ecn);
            }
        }
        let uniform = self.uniform();
        let rest = self.rest.expand();
        let marked = match rest.decide(uniform, now, size, flow, ecn) {
            Decision::Accept => false,
            Decision::Mark => {
                rest.rare().marked += 1;
                true
            }
            Decision::Drop(cause) => {
                match cause {
                    DropCause::Overflow => rest.overflow += 1,
                    DropCause::Early => rest.rare().early += 1,
                }
                return OfferResult::Lost(LossCause::Queue(cause));
            }
        };
        self.go_on(now);
        let at = self.take(now, size, flow);
        let rest = self.rest.expand();
        rest.accepted += 1;
        rest.accepted_bytes += u64::from(size);
        if let Some(rare) = &mut rest.rare
            && let Some(loss) = &mut rare.loss
            && loss.strikes(&mut rest.rng)
        {
            rare.lost += 1;
            return OfferResult::Lost(LossCause::Wire);
        }
        OfferResult::Arrives { at, marked }
    }

    /// Sets the common size of all further packets. The link must be idle, or all packets that have not departed must have this
    /// size.
    fn settle(&mut self, size: u16) {
        if let Rest::Full(rest) = &mut self.rest {
            if rest.record == Record::Each {
                return;
            }
            if let Some(rare) = &mut rest.rare {
                // The memory of the list is retained, because the link will probably have mixed sizes again.
                rare.mixed.clear();
            }
        }
        if self.size != size && self.accepted > 0 {
            self.fold();
        }
        self.size = size;
        self.each = self.transmission(size);
        self.choose_way();
    }

    fn transmission(&self, size: u16) -> Span {
        transmission(self.rest.byte_time(), size)
    }

    /// Selects the fast path if possible: for a plain drop-tail link whose packets have one size.
    fn choose_way(&mut self) {
        self.set(SHORT, false);
        let Some(limit) = self.rest.plain_limit().filter(|_| self.size > 0) else { return };
        let packets = match limit {
            Limit::Packets(limit) => limit,
            Limit::Bytes(limit) => limit / u32::from(self.size),
        };
        // If at least `packets` packets are queued, `free_at - now` is longer than `packets - 1` transmissions.
        if let Some(others) = packets.checked_sub(1) {
            self.patience = self.each * u64::from(others);
            self.set(SHORT, true);
        }
    }

    /// Returns the number and the bytes of the packets that have not departed, and the size of the packet in transmission.
    fn backlog(&self, now: Time) -> (u32, u64, u16) {
        let uniform = self.uniform();
        self.rest.full().map_or_else(|| uniform.backlog(now), |full| full.backlog(uniform, now))
    }

    /// Queues and sends a packet. The transmitter is then busy until the new `free_at`. Returns the packet's arrival time.
    fn take(&mut self, now: Time, size: u16, flow: u32) -> Time {
        let begins = self.free_at.max(now);
        let rest = self.rest.expand();
        let each = transmission(rest.byte_time, size);
        let uniform = size == self.size && rest.is_uniform();
        if !uniform {
            self.mix(now);
        }
        self.free_at = begins + each;
        if uniform {
            return self.free_at + self.delay;
        }
        let rest = self.rest.expand();
        let delay = self.delay + rest.draw_jitter();
        let packet = Waiting { begins, ends: self.free_at, delay, flow, size };
        let rare = rest.rare();
        rare.last_arrival = packet.arrives_after(rare.last_arrival);
        rare.mixed.forget_sent(now);
        rare.mixed.push(packet);
        rare.last_arrival
    }

    /// Replaces the number of waiting packets by a record of each packet. This is necessary when a packet of another size arrives
    /// or the link changes.
    fn mix(&mut self, now: Time) {
        self.set(SHORT, false);
        if !self.rest.expand().is_uniform() {
            return;
        }
        let (packets, bytes, _) = self.backlog(now);
        let (free_at, each, size, delay) = (self.free_at, self.each, self.size, self.delay);
        let latest = if self.accepted_bytes() == 0 { Time::ZERO } else { free_at + delay };
        let rare = self.rest.expand().rare();
        rare.last_arrival = latest;
        let mixed = &mut rare.mixed;
        mixed.clear();
        (mixed.bytes, mixed.alike) = (bytes, packets as usize);
        mixed.packets.extend((0..u64::from(packets)).rev().map(|later| {
            let ends = free_at - each * later;
            // The flow is unknown here. A discipline that needs flows has a record of each packet from the start.
            Waiting { begins: ends - each, ends, delay, flow: 0, size }
        }));
        // The latest packet on the wire, if any, arrives at this time or earlier.
        mixed.sent_arrives = mixed.packets.front().map_or(latest, |first| first.begins + delay);
    }

    /// Returns the number of packets that wait at `now` and their bytes, without the packet in transmission. `now` may be in the
    /// past if no packet was offered after `now`.
    pub fn waiting(&self, now: Time) -> (u32, u64) {
        if let Some(queue) = self.rest.queue() {
            return queue.backlog();
        }
        let (packets, bytes, in_transmission) = self.backlog(now);
        (packets.saturating_sub(u32::from(in_transmission > 0)), bytes - u64::from(in_transmission))
    }

    /// Returns the number of bytes that have left the transmitter by `now`, in whole packets.
    pub fn departed_bytes(&self, now: Time) -> u64 {
        if let Some(queue) = self.rest.queue() {
            return queue.departed_bytes(now);
        }
        let flushed = self.rest.extras().map_or(0, |rare| rare.flushed_bytes);
        self.accepted_bytes() - flushed - self.backlog(now).1
    }

    /// Returns the counters of the link since its start.
    pub fn counts(&self) -> LinkCounts {
        if let Some(queue) = self.rest.queue() {
            return queue.counts();
        }
        let accepted = self.rest.full().map_or(0, |rest| rest.accepted) + u64::from(self.accepted);
        let overflow = self.rest.overflow();
        let (early, marked, lost, refused) = self
            .rest
            .extras()
            .map_or((0, 0, 0, 0), |rare| (rare.early, rare.marked, rare.lost, rare.refused));
        LinkCounts {
            offered: accepted + overflow + early + refused,
            accepted,
            accepted_bytes: self.accepted_bytes(),
            overflow,
            early,
            marked,
            lost: lost + refused,
        }
    }

    fn accepted_bytes(&self) -> u64 {
        let before = self.rest.full().map_or(0, |rest| rest.accepted_bytes);
        before + u64::from(self.accepted) * u64::from(self.size)
    }

    /// The bit rate.
    pub fn rate(&self) -> Rate {
        self.rest.rate()
    }

    /// The propagation delay.
    pub const fn delay(&self) -> Span {
        self.delay
    }

    /// Sets the propagation delay of all further packets. Further packets do not overtake earlier packets.
    pub fn set_delay(&mut self, now: Time, delay: Span) {
        self.begin_change(now);
        self.delay = delay;
    }

    /// Sets the losses on the wire. The link must have been created with [`Link::new`] or [`Link::with_discipline`].
    pub fn set_loss(&mut self, loss: Option<LossSpec>) {
        debug_assert!(
            matches!(self.rest, Rest::Full(_)),
            "a link that shares its specification has no random stream"
        );
        self.rest.expand().rare().loss = loss.map(Loss::new);
        self.choose_way();
    }

    /// Makes a record of each waiting packet. The link stays on the slow path.
    fn begin_change(&mut self, now: Time) {
        if !self.queues() {
            self.rest.expand().tell(self.free_at, now);
            self.mix(now);
            self.rest.expand().rare().mixed.forget_sent(now);
        }
        self.rest.expand().record = Record::Each;
    }

    /// Changes the rate. Waiting packets are sent at the new rate; a transmission in progress ends at the old rate. The driver
    /// must correct the stored arrival times of packets by the returned shift.
    pub fn set_rate(&mut self, now: Time, rate: Rate) -> Shift {
        self.begin_change(now);
        let byte_time = byte_time(rate);
        let rest = self.rest.expand();
        (rest.rate, rest.byte_time) = (rate, byte_time);
        rest.decides.set_rate(rate);
        if self.queues() {
            return self.retime(now);
        }
        let mut shift = Shift { moves: Vec::new() };
        let rare = self.rest.expand().rare();
        let mut free_at = now;
        let (mut old, mut new) = (rare.mixed.sent_arrives, rare.mixed.sent_arrives);
        for packet in &mut rare.mixed.packets {
            old = packet.arrives_after(old);
            let waits = packet.begins >= now;
            if waits {
                let each = Span::from_nanos((u64::from(packet.size) * byte_time) >> FRACTION);
                (packet.begins, packet.ends) = (free_at, free_at + each);
            }
            new = packet.arrives_after(new);
            if waits {
                shift.moves.push((old, new));
            }
            free_at = packet.ends;
        }
        self.free_at = rare.mixed.packets.back().map_or(self.free_at, |last| last.ends);
        rare.last_arrival = new;
        shift
    }

    /// Takes the link down. Waiting packets and the packet in transmission are lost, and so is every packet that is offered
    /// before the link is up again. The driver drops packets that arrive after [`Down::kept_until`]. For queued packets,
    /// [`Link::dequeue`] reports the loss.
    pub fn set_down(&mut self, now: Time) -> Down {
        self.begin_change(now);
        self.free_at = self.free_at.min(now);
        let rest = self.rest.expand();
        rest.state = State::Down;
        match &mut rest.decides {
            Decides::Holds(queue) => return Down { kept_until: queue.go_down(now) },
            Decides::AtArrival(discipline) => discipline.on_flush(),
            Decides::DropTail(_) => {}
        }
        let rare = rest.rare();
        rare.lost += rare.mixed.packets.len() as u64;
        rare.flushed_bytes += rare.mixed.bytes;
        rare.mixed.clear();
        rare.mixed.reported = Reported { idle: self.free_at, ..Reported::default() };
        rare.last_arrival = rare.mixed.sent_arrives;
        Down { kept_until: rare.last_arrival }
    }

    /// Brings the link up, with an empty queue.
    pub fn set_up(&mut self) {
        self.rest.expand().state = State::Up;
    }
}

/// New arrival times of packets after a change of the rate: pairs of the old and the new time, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// Old and new arrival times.
    pub moves: Vec<(Time, Time)>,
}

/// Packets that survive when a link goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Down {
    /// Latest arrival time of the packets that are already on the wire. These packets still arrive.
    pub kept_until: Time,
}

/// Returns the number of packets since the link was last idle, not counting a packet that is accepted now.
#[inline]
fn streak_at(now: Time, free_at: Time, streak: u8) -> u8 {
    if free_at < now { 0 } else { streak.saturating_add(1) }
}

/// Returns the transmission time of a packet.
#[inline]
fn transmission(byte_time: u64, size: u16) -> Span {
    Span::from_nanos((u64::from(size) * byte_time) >> FRACTION)
}

/// Returns the transmission time of a byte in 2^-20 ns; zero for an unlimited rate.
fn byte_time(rate: Rate) -> u64 {
    if rate.bps() <= 0.0 {
        return SLOWEST;
    }
    ((8e9 * (1u64 << FRACTION) as f64 / rate.bps()).round() as u64).min(SLOWEST)
}
