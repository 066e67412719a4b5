//! A link: a queue in front of a transmitter of a given rate, then a wire with a delay and losses.
//!
//! First in, first out and decided at arrival, so [`Link::offer`] can say at once when a packet will come out at the
//! other end. Whoever drives the link keeps the packets; the link keeps only times and counts.

use crate::discipline::{AnyDiscipline, Decision, Discipline, DropCause, Limit, Offer, QueueSpec};
use crate::loss::{Loss, LossSpec};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;

/// A link to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSpec {
    /// Bit rate of the transmitter; [`Rate::UNLIMITED`] for a wire without one.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// The queue before the transmitter.
    pub queue: QueueSpec,
    /// Losses on the wire, after the transmitter.
    pub loss: Option<LossSpec>,
}

/// What becomes of a packet that is offered to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It comes out at the other end.
    Arrives {
        /// When its last bit does.
        at: Time,
        /// Whether the queue set its congestion mark.
        marked: bool,
    },
    /// It does not.
    Lost(LossCause),
}

/// Where a packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// In the queue.
    Queue(DropCause),
    /// On the wire.
    Wire,
    /// The link is down.
    Down,
}

/// What a link has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounts {
    /// Packets offered.
    pub offered: u64,
    /// Packets that passed the queue.
    pub accepted: u64,
    /// Their bytes.
    pub accepted_bytes: u64,
    /// Dropped by a full buffer.
    pub overflow: u64,
    /// Dropped early by the discipline.
    pub early: u64,
    /// Marked.
    pub marked: u64,
    /// Lost on the wire or because the link was down.
    pub lost: u64,
}

/// How many fractional bits a byte's transmission time has.
const FRACTION: u32 = 20;

/// The longest transmission time of a byte, 134 ms, so that 65,535 bytes fit 64 bits: rates below 60 bit/s count as that.
const SLOWEST: u64 = u64::MAX >> 17;

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct Link {
    /// When the transmitter has sent all that it has taken so far.
    free_at: Time,
    delay: Span,
    /// Transmission time of a byte, in 2^-20 ns.
    byte_time: u64,
    backlog: Backlog,
    discipline: AnyDiscipline,
    rng: Rng,
    loss: Option<Box<Loss>>,
    up: bool,
    rate: Rate,
    last_arrival: Time,
    counts: LinkCounts,
}

/// What waits or is being sent. As long as all packets are of one size, and rate and delay as they were at the start,
/// their number follows from `free_at` alone.
#[derive(Debug, Clone)]
enum Backlog {
    /// Packets of one size; `each` is the transmission time of one.
    Uniform { size: u16, each: Span },
    /// Packets of several sizes, the oldest first, with the times at which their transmission begins and ends.
    Mixed(Box<Mixed>),
}

#[derive(Debug, Clone, Default)]
struct Mixed {
    packets: VecDeque<Waiting>,
    bytes: u32,
    /// When the last packet arrives that is not among these any more.
    sent_arrives: Time,
    /// Bytes that were accepted and then lost because the link went down.
    flushed_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    begins: Time,
    ends: Time,
    /// The propagation delay at the time it came.
    delay: Span,
    size: u16,
}

impl Waiting {
    /// When it arrives if the packet before it arrives at `last`. It never overtakes, and if it takes any time to be
    /// sent it comes a nanosecond later at least, so that a moment is between the two.
    fn arrives_after(&self, last: Time) -> Time {
        let gap = self.ends.since(self.begins).min(Span::from_nanos(1));
        (self.ends + self.delay).max(last + gap)
    }
}

impl Link {
    /// An idle link; `rng` is its own random stream.
    pub fn new(spec: &LinkSpec, rng: Rng) -> Link {
        let mut discipline = spec.queue.build(spec.rate, spec.delay);
        discipline.set_rate(spec.rate);
        Link {
            free_at: Time::ZERO,
            delay: spec.delay,
            byte_time: byte_time(spec.rate),
            backlog: Backlog::Uniform { size: 0, each: Span::ZERO },
            discipline,
            rng,
            loss: spec.loss.map(|loss| Box::new(Loss::new(loss))),
            up: true,
            rate: spec.rate,
            last_arrival: Time::ZERO,
            counts: LinkCounts::default(),
        }
    }

    /// A packet of `size` bytes of `flow` arrives at the queue. Times must not run backwards.
    #[inline]
    pub fn offer(&mut self, now: Time, size: u16, flow: u32, ecn_capable: bool) -> Fate {
        self.counts.offered += 1;
        if !self.up {
            self.counts.lost += 1;
            return Fate::Lost(LossCause::Down);
        }
        let marked = match self.decide(now, size, flow, ecn_capable) {
            Decision::Accept => false,
            Decision::Mark => {
                self.counts.marked += 1;
                true
            }
            Decision::Drop(cause) => {
                match cause {
                    DropCause::Overflow => self.counts.overflow += 1,
                    DropCause::Early => self.counts.early += 1,
                }
                return Fate::Lost(LossCause::Queue(cause));
            }
        };
        let at = self.take(now, size);
        self.counts.accepted += 1;
        self.counts.accepted_bytes += u64::from(size);
        if let Some(loss) = &mut self.loss
            && loss.strikes(&mut self.rng)
        {
            self.counts.lost += 1;
            return Fate::Lost(LossCause::Wire);
        }
        Fate::Arrives { at, marked }
    }

    /// The fast way for what is most common, an ample or full drop-tail buffer of packets of one size; else the long one.
    #[inline]
    fn decide(&mut self, now: Time, size: u16, flow: u32, ecn_capable: bool) -> Decision {
        if let (AnyDiscipline::DropTail(drop_tail), Backlog::Uniform { size: uniform, each }) =
            (&self.discipline, &self.backlog)
            && (*uniform == size || self.free_at <= now)
        {
            // `free_at - now` is longer than `packets - 1` transmissions when at least `packets` are there.
            let busy = self.free_at.since(now).as_nanos();
            let limit = match drop_tail.limit() {
                Limit::Packets(limit) => limit,
                Limit::Bytes(limit) => limit / u32::from(size.max(1)),
            };
            let full = match limit {
                0 => true,
                limit => u128::from(busy) > u128::from(each.as_nanos()) * u128::from(limit - 1),
            };
            return if full { Decision::Drop(DropCause::Overflow) } else { Decision::Accept };
        }
        self.decide_by_discipline(now, size, flow, ecn_capable)
    }

    #[inline(never)]
    fn decide_by_discipline(&mut self, now: Time, size: u16, flow: u32, ecn_capable: bool) -> Decision {
        while self.discipline.timer() <= now {
            let moment = self.discipline.timer();
            let queue = self.look(moment, 0, 0, false);
            self.discipline.on_timer(&queue);
        }
        let offer = self.look(now, size, flow, ecn_capable);
        self.discipline.on_arrival(&offer, &mut self.rng)
    }

    /// The queue as a packet finds it.
    fn look(&mut self, now: Time, size: u16, flow: u32, ecn_capable: bool) -> Offer {
        self.forget_sent(now);
        let (packets, bytes, in_transmission) = self.backlog(now);
        Offer {
            now,
            size,
            flow,
            ecn_capable,
            waiting: packets.saturating_sub(u32::from(in_transmission > 0)),
            waiting_bytes: bytes - u32::from(in_transmission),
            in_transmission,
            idle_since: (self.free_at <= now).then_some(self.free_at),
        }
    }

    /// Packets and bytes that have not left, and the size of the one in transmission.
    fn backlog(&self, now: Time) -> (u32, u32, u16) {
        let busy = self.free_at.since(now).as_nanos();
        match &self.backlog {
            _ if busy == 0 => (0, 0, 0),
            Backlog::Uniform { size, each } => {
                let packets = busy.div_ceil(each.as_nanos().max(1)) as u32;
                (packets, packets * u32::from(*size), *size)
            }
            Backlog::Mixed(mixed) => {
                let gone = mixed.packets.iter().take_while(|packet| packet.ends <= now);
                let (count, bytes) = gone.fold((0, 0), |(n, b), packet| (n + 1, b + u32::from(packet.size)));
                let first = mixed.packets.get(count).map_or(0, |packet| packet.size);
                ((mixed.packets.len() - count) as u32, mixed.bytes - bytes, first)
            }
        }
    }

    fn forget_sent(&mut self, now: Time) {
        if let Backlog::Mixed(mixed) = &mut self.backlog {
            while let Some(gone) = mixed.packets.front().filter(|packet| packet.ends <= now) {
                mixed.bytes -= u32::from(gone.size);
                mixed.sent_arrives = gone.arrives_after(mixed.sent_arrives);
                mixed.packets.pop_front();
            }
        }
    }

    /// The packet waits, is sent, and occupies the transmitter until `free_at`. When it will arrive.
    #[inline]
    fn take(&mut self, now: Time, size: u16) -> Time {
        let begins = self.free_at.max(now);
        if let Backlog::Uniform { size: uniform, each } = &mut self.backlog {
            if *uniform != size {
                if self.free_at > now {
                    self.mix(now);
                    return self.take_mixed(begins, size, now);
                }
                *uniform = size;
                *each = Span::from_nanos((u64::from(size) * self.byte_time) >> FRACTION);
            }
            self.free_at = begins + *each;
            self.last_arrival = self.free_at + self.delay;
            return self.last_arrival;
        }
        self.take_mixed(begins, size, now)
    }

    #[inline(never)]
    fn take_mixed(&mut self, begins: Time, size: u16, now: Time) -> Time {
        let each = Span::from_nanos((u64::from(size) * self.byte_time) >> FRACTION);
        self.free_at = begins + each;
        let packet = Waiting { begins, ends: self.free_at, delay: self.delay, size };
        self.last_arrival = packet.arrives_after(self.last_arrival);
        self.forget_sent(now);
        if let Backlog::Mixed(mixed) = &mut self.backlog {
            mixed.packets.push_back(packet);
            mixed.bytes += u32::from(size);
        }
        self.last_arrival
    }

    /// Packets of another size come, or the link changes: write down the packets that were known by their number alone.
    #[inline(never)]
    fn mix(&mut self, now: Time) {
        let (packets, bytes, _) = self.backlog(now);
        if let Backlog::Uniform { size, each } = self.backlog {
            let places = (0..u64::from(packets)).rev();
            let packets = places.map(|later| {
                let ends = self.free_at - each * later;
                Waiting { begins: ends - each, ends, delay: self.delay, size }
            });
            let packets: VecDeque<_> = packets.collect();
            // A packet on the wire arrives by then; perhaps there is none.
            let sent_arrives = packets.front().map_or(self.last_arrival, |first| first.begins + self.delay);
            self.backlog = Backlog::Mixed(Box::new(Mixed { packets, bytes, sent_arrives, flushed_bytes: 0 }));
        }
    }

    /// Packets that wait at this moment, without the one in transmission, and their bytes. `now` may lie in the past
    /// as far as no packet was offered since.
    pub fn waiting(&self, now: Time) -> (u32, u32) {
        let (packets, bytes, in_transmission) = self.backlog(now);
        (packets.saturating_sub(u32::from(in_transmission > 0)), bytes - u32::from(in_transmission))
    }

    /// Bytes that have left the transmitter by this moment, in whole packets.
    pub fn departed_bytes(&self, now: Time) -> u64 {
        let flushed = match &self.backlog {
            Backlog::Uniform { .. } => 0,
            Backlog::Mixed(mixed) => mixed.flushed_bytes,
        };
        self.counts.accepted_bytes - flushed - u64::from(self.backlog(now).1)
    }

    /// What the link has done so far.
    pub const fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// The bit rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The propagation delay.
    pub const fn delay(&self) -> Span {
        self.delay
    }

    /// Packets that come from now on propagate this long. None overtakes an earlier one.
    pub fn set_delay(&mut self, now: Time, delay: Span) {
        self.forget_sent(now);
        self.mix(now);
        self.delay = delay;
    }

    /// From now on packets are lost on the wire like this.
    pub fn set_loss(&mut self, loss: Option<LossSpec>) {
        self.loss = loss.map(|spec| Box::new(Loss::new(spec)));
    }

    /// The rate changes. What waits is sent at the new one; the packet in transmission ends at the old one. The driver
    /// corrects the arrivals of its packets with what this returns.
    pub fn set_rate(&mut self, now: Time, rate: Rate) -> Shift {
        self.forget_sent(now);
        self.mix(now);
        self.rate = rate;
        self.byte_time = byte_time(rate);
        self.discipline.set_rate(rate);
        let mut shift = Shift { moves: Vec::new() };
        if let Backlog::Mixed(mixed) = &mut self.backlog {
            let mut free_at = now;
            let (mut old, mut new) = (mixed.sent_arrives, mixed.sent_arrives);
            for packet in &mut mixed.packets {
                old = packet.arrives_after(old);
                let waits = packet.begins >= now;
                if waits {
                    let each = Span::from_nanos((u64::from(packet.size) * self.byte_time) >> FRACTION);
                    (packet.begins, packet.ends) = (free_at, free_at + each);
                }
                new = packet.arrives_after(new);
                if waits {
                    shift.moves.push((old, new));
                }
                free_at = packet.ends;
            }
            self.free_at = mixed.packets.back().map_or(self.free_at, |last| last.ends);
            self.last_arrival = new;
        }
        shift
    }

    /// The link goes down: what waits or is being sent is lost (the driver drops packets that arrive after
    /// [`Down::kept_until`]), and so is what comes until it is up again.
    pub fn set_down(&mut self, now: Time) -> Down {
        self.forget_sent(now);
        self.mix(now);
        self.up = false;
        self.free_at = self.free_at.min(now);
        if let Backlog::Mixed(mixed) = &mut self.backlog {
            self.counts.lost += mixed.packets.len() as u64;
            mixed.flushed_bytes += u64::from(mixed.bytes);
            mixed.packets.clear();
            mixed.bytes = 0;
            self.last_arrival = mixed.sent_arrives;
        }
        Down { kept_until: self.last_arrival }
    }

    /// The link is up again, with an empty queue.
    pub fn set_up(&mut self) {
        self.up = true;
    }
}

/// New arrival times after a change of rate: pairs of old and new, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// From, to.
    pub moves: Vec<(Time, Time)>,
}

/// What a link keeps when it goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Down {
    /// Packets that arrive until this moment are on the wire already and do arrive.
    pub kept_until: Time,
}

/// In 2^-20 ns; zero for an unlimited rate.
fn byte_time(rate: Rate) -> u64 {
    if rate.bps() <= 0.0 {
        return SLOWEST;
    }
    ((8e9 * (1u64 << FRACTION) as f64 / rate.bps()).round() as u64).min(SLOWEST)
}
