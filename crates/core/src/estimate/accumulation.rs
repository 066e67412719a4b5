//! Accumulation: the number of bytes of a flow that are queued in the network (paper 000, 5.1.1, 5.1.2 and D.1).
//!
//! The source flags some packets as *control packets*. The receiver calculates the expected arrival time of a control packet. It
//! uses the arrival time of an earlier control packet, the *synchronisation point*, and the sending times of both packets. The
//! accumulation is the number of bytes that arrive between the expected and the actual arrival, because queues on the path have
//! delayed them:
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
//! The clocks of source and receiver are not compared, only the times that each clock measures since the synchronisation point.
//! If a control packet arrives before its expected time, the synchronisation point itself was delayed, and the control packet
//! becomes the new synchronisation point.
//!
//! # Thresholds
//!
//! In the paper, congestion starts at an accumulation of two packets and ends at an accumulation of one packet. The paper's
//! simulated sources send evenly and have exact clocks. The paper recommends higher thresholds if hosts add noise (5.1.2).
//! [`Measuring::transport`] has four protections, one for each kind of noise:
//!
//! - *Bursts of the source*: a control packet is the first packet of a burst ([`ControlClock`]), so it does not wait behind packets
//!   that were sent at the same moment.
//! - *Noise in the times of packets* (interrupts, timers): the threshold is at least the amount that the source sends in a certain
//!   time. This time is `floor` plus `noise` times the mean difference between the delays of two consecutive control packets. The
//!   difference is measured continuously. A queue hardly affects it, because queues grow slowly from one control packet to the next.
//! - *Late wake-ups*: congestion counts only if `confirm` consecutive control packets show congestion, over at least `persist`. After
//!   each cut, congestion must be confirmed again. A receiver that wakes late delays only the packets of that moment. A source that
//!   wakes late sends up to 10 ms of packets at once. A path with a fifth of spare capacity delivers them within 40 ms. Only a queue
//!   that an excessive rate has caused lasts longer.
//! - *Clocks of different speed*: after every `resync`, a moment without congestion becomes the synchronisation point. Within these
//!   5 s the clocks drift apart by less than half a millisecond (100 millionths), half of `floor`.

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

/// Parameters of the accumulation measurement, a part of a scheme's configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measuring {
    /// Interval of control packets, "T".
    pub interval: Interval,
    /// Accumulation at which congestion starts, in packets ("H_thresh").
    pub high: f64,
    /// Accumulation at which congestion ends, in packets ("L_thresh").
    pub low: f64,
    /// Minimum accumulation at which congestion starts, as the time in which the source sends this number of bytes.
    pub floor: Span,
    /// Factor. The mean difference between the delays of consecutive control packets, times this factor, is added to `floor`.
    pub noise: f64,
    /// Number of consecutive control packets since the latest cut that must show congestion to confirm it.
    pub confirm: u8,
    /// Minimum duration of the confirmation.
    pub persist: Span,
    /// Part of the accumulation that is carried from one epoch of congestion to the next.
    pub carry: Carry,
    // Paper gap: D.1 assumes that clocks do not drift between two points. Here a moment without congestion becomes the
    // synchronisation point regularly, every minute in `Measuring::published`.
    /// Interval at which a moment without congestion becomes the new synchronisation point.
    pub resync: Span,
    // Paper gap: D.1 cannot distinguish a longer route from a queue. With this option, an accumulation that stays the same after
    // cuts of the rate counts as a longer route. Off in `Measuring::published`.
    /// Number of consecutive control packets. If the accumulation remains unchanged above the low threshold for this number of packets,
    /// the cause is a longer route; `None`: never.
    pub reroute: Option<u16>,
}

/// Number of bytes that are assumed to be queued at the new synchronisation point when an epoch of congestion ends.
// Paper gap: D.1 carries the whole accumulation, which includes the control packet although it has arrived. The packet would
// count again in the next measurement. Then one carried packet and any delay of a control packet are congestion, which a slow
// session can never end. Here the control packet is not carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carry {
    /// The accumulation minus the control packet.
    Rest,
    /// The whole accumulation, literally as in the paper.
    All,
}

/// Assumed noise before the first measurement, in seconds.
const FIRST_NOISE: f32 = 1e-3;
const NOISE_GAIN: f32 = 1.0 / 16.0;
/// Maximum difference between two consecutive delays, in seconds; larger differences count as this one. A host that stopped for a
/// while is not evidence of ordinary noise.
const MAX_STEP: f32 = 5e-3;
/// Maximum contribution of noise to a threshold, in seconds, so that a queue of a few tens of milliseconds is always detected.
const MAX_NOISE: f64 = 10e-3;
/// Fraction of the sending rate at the first of several consecutive high accumulations. If the source sends below this fraction,
/// it has responded to the congestion, whether or not its cut is sufficient.
const ANSWERED: f64 = 0.97;
/// The accumulation of several control packets counts as unchanged if its minimum exceeds this fraction of its maximum.
const UNCHANGED: f64 = 0.5;

impl Measuring {
    /// Returns the values of the thesis's simulations: thresholds of two packets and one packet.
    // Paper gap: D.1 does not state the interval of control packets. Here it is 50 ms, half of the assumed round-trip time.
    // Paper gap: 5.1.2 requires more than two packets, D.1 at least the threshold. Here D.1 applies.
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

    /// Returns the values for real hosts; see the module documentation. The threshold is four packets, because a late host sends
    /// three at once.
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
    /// The control packet is the new synchronisation point.
    Synchronised,
    /// Accumulation in bytes, at most the low threshold.
    Quiet(u64),
    /// Accumulation in bytes that shows neither congestion nor the end of congestion.
    Between(u64),
    /// Accumulation in bytes that shows congestion.
    Congested(u64),
}

/// State of a receiver's accumulation measurement.
#[derive(Debug, Clone)]
pub struct Accumulation {
    measuring: Measuring,
    log: Box<ArrivalLog>,
    point: Option<Point>,
    /// Whether there was congestion since the synchronisation point.
    epoch: Epoch,
    /// Sending time of the newest control packet. Control packets that were sent before it are late and carry no information.
    newest: Time,
    /// Time of the latest detected loss.
    lost_at: Option<Time>,
    noise: Noise,
    run: Run,
    stuck: Stuck,
    max_packet: u16,
}

/// The synchronisation point: a control packet that is assumed to have met no queue.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// Arrival time, "t_s".
    at: Time,
    /// Sending time by the source's clock.
    sent: Time,
    /// Number of bytes that are assumed to have been queued when this packet arrived, "accu_g".
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
    /// Delay of the latest control packet: the receiver's clock at its arrival minus the source's clock at its transmission, in
    /// nanoseconds.
    delay: Option<i64>,
    mean: f32,
}

/// Consecutive control packets with an accumulation above the high threshold.
#[derive(Debug, Clone, Copy)]
struct Run {
    count: u8,
    since: Time,
    /// Sending rate at the first of these control packets.
    rate: Rate,
}

/// Consecutive control packets with an accumulation above the low threshold.
#[derive(Debug, Clone, Copy)]
struct Stuck {
    count: u16,
    lowest: u64,
    highest: u64,
}

const NO_RUN: Run = Run { count: 0, since: Time::ZERO, rate: Rate::ZERO };
const NOT_STUCK: Stuck = Stuck { count: 0, lowest: u64::MAX, highest: 0 };

impl Accumulation {
    /// Creates the state before the first packet.
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

    /// Records the arrival of a packet of `size` bytes, whether or not it is a control packet.
    #[inline]
    pub fn on_arrival(&mut self, size: u16, now: Time) {
        self.max_packet = self.max_packet.max(size);
        self.log.record(size, now);
    }

    /// Records that the packet that arrives now reveals a loss.
    pub fn on_loss(&mut self, now: Time) {
        self.lost_at = Some(now);
    }

    /// Evaluates a control packet that arrives now. It was sent at `sent`, while the source sent at `rate`. Must be called after
    /// [`Accumulation::on_arrival`].
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
        // Losses reduce the measured accumulation, so a measurement during which a packet was lost does not end an epoch.
        let lost = self.lost_at.is_some_and(|lost| lost > expected);
        let due = now.since(point.at) >= self.measuring.resync;
        match self.epoch {
            _ if lost => Reading::Quiet(bytes),
            Epoch::Congested => self.synchronise(sent, self.left(bytes), now),
            Epoch::Calm if due => self.synchronise(sent, 0, now),
            Epoch::Calm => Reading::Quiet(bytes),
        }
    }

    /// Returns the number of bytes carried to the next epoch if the current epoch ends with an accumulation of `bytes`.
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

    /// Detects a longer route: the accumulation stays above the low threshold and does not change.
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

    /// Returns the accumulation in bytes at which congestion starts if the source sends at `rate`.
    pub fn threshold(&self, rate: Rate) -> u64 {
        let Measuring { high, floor, noise, .. } = self.measuring;
        let span = floor.as_secs_f64() + (noise * f64::from(self.noise.mean)).min(MAX_NOISE);
        let sent = if rate.is_usable() { rate.bps() * span / 8.0 } else { 0.0 };
        (high * f64::from(self.max_packet)).max(sent) as u64
    }

    /// Returns the arrival rate. It is measured over the `window` of [`Accumulation::measure_over`] or the latest eight packets,
    /// whichever is longer. `None` before the ninth packet.
    pub fn egress(&self, now: Time) -> Option<Rate> {
        self.log.rate(now)
    }

    /// Sets the time over which arrival rates are measured.
    #[inline]
    pub fn measure_over(&mut self, window: Span) {
        self.log.window = window;
    }

    /// Restarts the measurement of the arrival rate, because earlier arrivals do not represent the current rate.
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
