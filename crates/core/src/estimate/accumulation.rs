//! Accumulation: how many of a flow's own bytes wait inside the network (paper 000, 5.1.1, 5.1.2 and D.1).
//!
//! The source flags a packet now and then as a *control packet*. Its receiver knows how far apart two of them left, so
//! it knows when the second one should come; what arrives between that moment and the moment when it really comes was
//! held up by queues on the way:
//!
//! ```text
//!   source     CP───────────── interval ─────────────CP
//!               \                                     \
//!                \                                     \·····\  queues
//!   receiver      SP───────────── interval ────────────┊·····CP
//!          synchronised: no queue seen              expected  |
//!                                                      └─────┘ bytes that arrive here = accumulation
//! ```
//!
//! No clocks are compared but differences since the *synchronisation point*. A packet that comes earlier than expected
//! shows that the point itself was late, and becomes the point.
//!
//! # Thresholds
//!
//! The paper takes two packets for congestion and one for its end, in a simulator whose sources send evenly and whose
//! clocks are exact. It asks for higher ones where hosts add noise (5.1.2). [`Measuring::transport`] defends itself at
//! four places, each against one kind of noise:
//!
//! - *Bursts of the sender*: a control packet is the first of a burst, never in the middle of one ([`ControlClock`]). It does not wait
//!   behind packets that its own source sent at the same moment.
//! - *Noise of every packet's time* (interrupts, timers): thresholds are at least the amount that the flow sends in `floor` plus `noise`
//!   times the mean difference between the delays of two consecutive control packets. That difference is measured all the time; a queue
//!   hardly affects it, because queues grow slowly from one control packet to the next.
//! - *Late wake-ups*: congestion counts when `confirm` control packets in a row show it over at least `persist`, and again after each cut.
//!   A receiver that wakes late delays the packets of that moment only. A sender that wakes late catches up by up to 10 ms of packets at
//!   once; a path with a fifth to spare has carried them off 40 ms later. The queue of a rate that is too high stays.
//! - *Clocks of different speed*: a quiet moment becomes the synchronisation point every `resync` (5 s: clocks differ
//!   by less than 100 millionths, or half a millisecond in that time, half of `floor`).

mod control;
mod detector;
#[cfg(test)]
mod hosts;
mod log;
#[cfg(test)]
mod tests;

pub use control::{ControlClock, Interval};
pub use detector::{Detector, Instance};

use self::log::ArrivalLog;
use crate::time::{Rate, Span, Time};

/// How accumulation is measured: a part of a scheme's configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measuring {
    /// How often a control packet leaves, "T".
    pub interval: Interval,
    /// Congestion from this accumulation on, in packets ("H_thresh").
    pub high: f64,
    /// The end of congestion at this accumulation, in packets ("L_thresh").
    pub low: f64,
    /// Congestion is at least the amount sent in this time.
    pub floor: Span,
    /// And in this many mean differences of successive delays.
    pub noise: f64,
    /// The number of consecutive control packets, all after the latest cut of the rate, that confirm congestion.
    pub confirm: u8,
    /// And for at least this long.
    pub persist: Span,
    /// The amount that is carried from one epoch of congestion to the next.
    pub carry: Carry,
    // Paper gap: D.1 assumes that clocks do not drift between two points. Every minute (`Measuring::published`) a quiet
    // moment becomes the synchronisation point.
    /// After this time a quiet moment becomes the synchronisation point.
    pub resync: Span,
    // Paper gap: D.1 cannot tell a longer route from a queue. Where this is set, an accumulation that cuts of the rate
    // did not change for so many control packets counts as a longer route. Off in `Measuring::published`.
    /// The number of consecutive control packets without a quiet moment, and without any change, that mean another route; `None` for never.
    pub reroute: Option<u16>,
}

/// The amount that is assumed to wait at a synchronisation point that ends congestion.
// Paper gap: D.1 carries the whole accumulation, in which the control packet counts although it has arrived. It counts
// again in the next measurement, so one packet carried is congestion as soon as a control packet is late at all: a slow
// session never gets out of that. Here the control packet is not carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carry {
    /// The accumulation less the control packet.
    Rest,
    /// All of it (the letter of the paper).
    All,
}

/// Noise that is reckoned with before the first measurement, in seconds.
const FIRST_NOISE: f32 = 1e-3;
const NOISE_GAIN: f32 = 1.0 / 16.0;
/// A larger difference between two consecutive delays counts as this much, in seconds: a host that stood still for a while is no evidence
/// of ordinary noise.
const MAX_STEP: f32 = 5e-3;
/// Noise adds at most this to a threshold, so that a queue of a few tens of milliseconds is always noticed.
const MAX_NOISE: f64 = 10e-3;
/// The source has answered when it sends at less than this part of its rate: whether that is enough is another question.
const ANSWERED: f64 = 0.97;
/// An accumulation that has not fallen to this part of itself has not changed.
const UNCHANGED: f64 = 0.5;

impl Measuring {
    /// As the thesis simulates it: two packets and one.
    // Paper gap: D.1 leaves the interval of control packets open. Here it is 50 ms, half of the assumed round-trip time.
    // Paper gap: 5.1.2 says "larger than two packets", D.1 at least the threshold. Here D.1.
    pub const fn published() -> Measuring {
        Measuring {
            interval: Interval::Every(Span::from_millis(50)),
            high: 2.0,
            low: 1.0,
            floor: Span::ZERO,
            noise: 0.0,
            confirm: 1,
            persist: Span::ZERO,
            carry: Carry::Rest,
            resync: Span::from_secs(60),
            reroute: None,
        }
    }

    /// For real hosts; see the head of this module. Four packets, because a host that is late sends three at once.
    pub const fn transport() -> Measuring {
        Measuring {
            interval: Interval::OfRtt,
            high: 4.0,
            low: 2.0,
            floor: Span::from_millis(1),
            noise: 4.0,
            confirm: 3,
            persist: Span::from_millis(50),
            carry: Carry::Rest,
            resync: Span::from_secs(5),
            reroute: Some(64),
        }
    }
}

/// The result of a control packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It is the new synchronisation point.
    Synchronised,
    /// This number of bytes, not more than the low threshold.
    Quiet(u64),
    /// This number of bytes, neither congestion nor its end.
    Between(u64),
    /// This number of bytes: congestion.
    Congested(u64),
}

/// A receiver's measurement.
#[derive(Debug, Clone)]
pub struct Accumulation {
    measuring: Measuring,
    log: Box<ArrivalLog>,
    point: Option<Point>,
    /// Whether there was congestion since the synchronisation point.
    epoch: Epoch,
    /// When the newest control packet left: older ones are late and carry no information.
    newest: Time,
    /// When a loss was last seen.
    lost_at: Option<Time>,
    noise: Noise,
    run: Run,
    stuck: Stuck,
    max_packet: u16,
}

/// The synchronisation point: a control packet that met no queue, as far as we know.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// When it arrived, "t_s".
    at: Time,
    /// When it left, in the source's time.
    sent: Time,
    /// The bytes that are assumed to have waited then, "accu_g".
    carried: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Epoch {
    Calm,
    Congested,
}

/// Differences between the delays of successive control packets, in seconds.
#[derive(Debug, Clone, Copy)]
struct Noise {
    /// The latest delay, in nanoseconds between two clocks.
    delay: Option<i64>,
    mean: f32,
}

/// Control packets in a row that found the accumulation high.
#[derive(Debug, Clone, Copy)]
struct Run {
    count: u8,
    since: Time,
    /// How fast the source sent at its beginning.
    rate: Rate,
}

/// Control packets in a row that did not find it low.
#[derive(Debug, Clone, Copy)]
struct Stuck {
    count: u16,
    lowest: u64,
    highest: u64,
}

const NO_RUN: Run = Run { count: 0, since: Time::ZERO, rate: Rate::ZERO };
const NOT_STUCK: Stuck = Stuck { count: 0, lowest: u64::MAX, highest: 0 };

impl Accumulation {
    /// Before the first packet.
    pub fn new(measuring: Measuring) -> Accumulation {
        Accumulation {
            measuring,
            log: Box::default(),
            point: None,
            epoch: Epoch::Calm,
            newest: Time::ZERO,
            lost_at: None,
            noise: Noise { delay: None, mean: FIRST_NOISE },
            run: NO_RUN,
            stuck: NOT_STUCK,
            max_packet: 0,
        }
    }

    /// A packet of `size` bytes arrives, whichever it is.
    #[inline]
    pub fn on_arrival(&mut self, size: u16, now: Time) {
        self.max_packet = self.max_packet.max(size);
        self.log.record(size, now);
    }

    /// The packet that arrives now reveals a loss.
    pub fn on_loss(&mut self, now: Time) {
        self.lost_at = Some(now);
    }

    /// The packet that arrives now is a control packet, which left at `sent`, while the source sent at `rate`. Called
    /// after [`Accumulation::on_arrival`].
    pub fn on_control(&mut self, sent: Time, rate: Rate, now: Time) -> Reading {
        let Some(point) = self.point else { return self.synchronise(sent, 0, now) };
        if sent <= self.newest {
            return Reading::Between(0);
        }
        self.newest = sent;
        self.noise.add(sent, now);
        let expected = point.at + sent.since(point.sent);
        if now < expected {
            return self.synchronise(sent, 0, now);
        }
        self.log.keep_from(expected);
        let bytes = self.log.bytes_after(expected) + point.carried;
        let high = self.threshold(rate);
        if bytes >= high {
            return self.on_high(bytes, sent, rate, now);
        }
        self.run = NO_RUN;
        if bytes as f64 > high as f64 * self.measuring.low / self.measuring.high {
            return self.on_not_low(Reading::Between(bytes), bytes, sent, now);
        }
        self.stuck = NOT_STUCK;
        // Losses make an accumulation look smaller, so one with a loss in it ends no epoch.
        let lost = self.lost_at.is_some_and(|lost| lost > expected);
        let due = now.since(point.at) >= self.measuring.resync;
        match self.epoch {
            _ if lost => Reading::Quiet(bytes),
            Epoch::Congested => self.synchronise(sent, self.left(bytes), now),
            Epoch::Calm if due => self.synchronise(sent, 0, now),
            Epoch::Calm => Reading::Quiet(bytes),
        }
    }

    /// The amount carried to the next epoch of an accumulation of `bytes` at the end of this one.
    fn left(&self, bytes: u64) -> u64 {
        match self.measuring.carry {
            Carry::All => bytes,
            Carry::Rest => bytes.saturating_sub(u64::from(self.max_packet)),
        }
    }

    fn synchronise(&mut self, sent: Time, carried: u64, now: Time) -> Reading {
        self.point = Some(Point { at: now, sent, carried });
        self.epoch = Epoch::Calm;
        self.newest = sent;
        (self.run, self.stuck) = (NO_RUN, NOT_STUCK);
        self.log.keep_from(now);
        Reading::Synchronised
    }

    fn on_high(&mut self, bytes: u64, sent: Time, rate: Rate, now: Time) -> Reading {
        let answered = rate.bps() < ANSWERED * self.run.rate.bps();
        if self.run.count == 0 || answered {
            self.run = Run { count: 0, since: now, rate };
        }
        self.run.count = self.run.count.saturating_add(1);
        let confirmed =
            self.run.count >= self.measuring.confirm && now.since(self.run.since) >= self.measuring.persist;
        if confirmed {
            self.epoch = Epoch::Congested;
        }
        let reading = if confirmed { Reading::Congested(bytes) } else { Reading::Between(bytes) };
        self.on_not_low(reading, bytes, sent, now)
    }

    /// An accumulation that neither ends nor changes is another route.
    fn on_not_low(&mut self, reading: Reading, bytes: u64, sent: Time, now: Time) -> Reading {
        let Some(most) = self.measuring.reroute else { return reading };
        self.stuck.count += 1;
        self.stuck.lowest = self.stuck.lowest.min(bytes);
        self.stuck.highest = self.stuck.highest.max(bytes);
        if self.stuck.count < most {
            return reading;
        }
        if self.stuck.lowest as f64 > UNCHANGED * self.stuck.highest as f64 {
            return self.synchronise(sent, 0, now);
        }
        self.stuck = NOT_STUCK;
        reading
    }

    /// From this accumulation on there is congestion, in bytes, while the source sends at `rate`.
    pub fn threshold(&self, rate: Rate) -> u64 {
        let Measuring { high, floor, noise, .. } = self.measuring;
        let span = floor.as_secs_f64() + (noise * f64::from(self.noise.mean)).min(MAX_NOISE);
        let sent = if rate.is_usable() { rate.bps() * span / 8.0 } else { 0.0 };
        (high * f64::from(self.max_packet)).max(sent) as u64
    }

    /// How fast packets arrive: over the latest `window` set by [`Accumulation::measure_over`] or the latest eight
    /// packets, whichever is longer. `None` before the ninth packet.
    pub fn egress(&self, now: Time) -> Option<Rate> {
        self.log.rate(now)
    }

    /// Arrival rates are taken over this time from now on.
    #[inline]
    pub fn measure_over(&mut self, window: Span) {
        self.log.window = window;
    }

    /// Restarts the measurement of the arrival rate: earlier arrivals are no evidence of it any longer.
    pub fn remeasure(&mut self) {
        self.log.forget_rate();
    }
}

impl Noise {
    fn add(&mut self, sent: Time, now: Time) {
        let delay = now.as_nanos().wrapping_sub(sent.as_nanos()) as i64;
        if let Some(before) = self.delay.replace(delay) {
            let step = (delay.wrapping_sub(before).unsigned_abs() as f32 / 1e9).min(MAX_STEP);
            self.mean += NOISE_GAIN * (step - self.mean);
        }
    }
}
