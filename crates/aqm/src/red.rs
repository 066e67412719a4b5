//! Random early detection (Floyd and Jacobson 1993), with the arithmetic of ns-2.35.
//!
//! An average of the queue's length is updated at every arrival. Between two thresholds, packets are dropped or marked with a
//! probability that grows with the average. The drops are spread: the gaps between them have a uniform instead of a geometric
//! distribution. Above the upper threshold, the probability becomes one: either immediately, or gradually up to twice the
//! threshold ("gentle"). The average does not include the packet in transmission.
//!
//! With [`Config::adaptive`], the maximum probability is updated every half second. The update keeps the average midway between
//! the thresholds (Floyd, Gummadi and Shenker 2001).

use crate::discipline::{Decision, Discipline, DropCause, Offer};
use crate::text::{preset, table};
use faircast_core::rng::Rng;
use faircast_core::spec::{NumberRange, Opt};
use faircast_core::time::{Rate, Span, Time};

table! {
    /// Parameters. Lengths are in packets; with [`Config::bytes`] they are in bytes divided by [`Config::mean_packet_size`].
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped.
        limit: u32 = 50 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Lower threshold of the average; 0 means `max(5, half of the packets that the link sends in 5 ms)`.
        min_th: f64 = 0.0 => number["min", NOT_NEGATIVE, "lower threshold, in packets; 0: from the link"];
        /// Upper threshold of the average; 0 means three times the lower threshold.
        max_th: f64 = 0.0
            => number["max", NOT_NEGATIVE,
                "upper threshold, in packets; 0: three times the lower one; equal to min: a single step"];
        /// Weight of the queue length in its average at each arrival; 0 means a time constant of ten round-trip times. The
        /// round-trip time is assumed to be `max(100 ms, 3 (delay + a packet's transmission))`.
        w_q: f64 = 0.0
            => number["w", NumberRange::of(0.0, 1.0), "weight of the queue in its average; 0: from the link"];
        /// Probability at the upper threshold.
        max_p: f64 = 0.1 => number["p", NumberRange::up_to(1.0), "probability at the upper threshold"];
        /// Mean packet size in bytes. It determines the number of packets that an idle link would have sent. With `bytes`, it is
        /// also the unit of queue lengths.
        mean_packet_size: u16 = 1000
            => whole["mean", 1, u16::MAX as u64, "size of a typical packet, in bytes"];
        /// Maximum probability at which packets are marked, before the drops are spread. Above it, packets are dropped instead
        /// (`mark_p_` of ns-2, 0.1 since 2005). 1 means no maximum.
        mark_p: f64 = 1.0
            => number["mark", NumberRange::PART, "probability below which packets are marked, not dropped"];
        /// Whether the probability rises gradually from `max_p` to 1 between `max_th` and `2 max_th`, instead of jumping to 1 at
        /// `max_th`.
        gentle: bool = true => word["gentle", "probability 1 at twice the upper threshold"]
            => not["abrupt", "probability 1 at the upper threshold"];
        /// Whether at least the expected number of packets separates two drops ("wait").
        wait: bool = true => word["wait", "drops are spread evenly"]
            => not["nowait", "drops may follow each other directly"];
        /// Whether the queue is counted in bytes. Large packets are then dropped more often than small packets.
        bytes: bool = false => word["bytes", "the queue is counted in bytes"]
            => not["packets", "the queue is counted in packets"];
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
        /// Whether `max_p` adapts.
        adaptive: bool = false => word["adaptive", "p follows the average"];
    }

    impl Default;

    impl Tabled for Config as "red" with [
        preset("auto", |config| *config = Config::auto(), "thresholds and weight from the link"),
        preset("floyd", |config| *config = Config::red_parameters(), "the recommendation of Floyd's page"),
        preset("ns2.1b7a", |config| *config = Config::ns21b7a(), "the defaults of ns-2 before April 2001"),
        Opt::first(Opt::other(
            "buffer",
            "1 or more packets",
            |config| config.limit.to_string(),
            |config, text| {
                *config = Config::experiments_e2e(text.parse().ok().filter(|buffer| *buffer > 0)?);
                Some(())
            },
            "buffer, with thresholds of a sixth and a half of it",
        )),
    ] {
        type Built = Box<dyn Discipline>;

        fn fits(&self) -> Result<(), String> {
            let (min, max) = (self.min_th, self.max_th);
            if max > 0.0 && max < min {
                return Err(format!("max is {max}, but must not be below min, {min}"));
            }
            if min == 0.0 && max > 0.0 {
                return Err("min must be given where max is".to_owned());
            }
            Ok(())
        }

        fn build(&self, rate: Rate, delay: Span) -> Box<dyn Discipline> {
            Box::new(Red::new(*self, rate, delay))
        }
    }
}

impl Config {
    /// Returns a configuration whose thresholds are computed from the link, as in ns-2 since 2001. Packets have 1000 bytes, and
    /// the buffer has 50 packets.
    pub const fn auto() -> Config {
        Config::DEFAULT
    }

    /// Returns the recommendation of Floyd's "REDparameters": thresholds 5 and 15, weight 0.002, probability 0.1, gentle.
    pub const fn red_parameters() -> Config {
        Config { min_th: 5.0, max_th: 15.0, w_q: 0.002, ..Config::auto() }
    }

    /// Returns the defaults of ns-2.1b7a (October 2000) and versions of that time: [`Config::red_parameters`] with a mean packet
    /// size of 500 bytes, not gentle. "Gentle" is the default of ns-2 since 23 April 2001. Since 29 December 2001, ns-2 computes
    /// its thresholds from the link.
    pub const fn ns21b7a() -> Config {
        Config { gentle: false, mean_packet_size: 500, ..Config::red_parameters() }
    }

    /// Returns parameters for a buffer of `buffer` packets: thresholds at a sixth and at a half of the buffer, weight 0.002,
    /// probability 0.1, gentle.
    pub fn experiments_e2e(buffer: u32) -> Config {
        let size = f64::from(buffer);
        Config { limit: buffer, min_th: size / 6.0, max_th: size / 2.0, ..Config::red_parameters() }
    }
}

const NOT_NEGATIVE: NumberRange = NumberRange::of(0.0, f64::INFINITY);

/// Interval between adaptations of `max_p`.
const INTERVAL: Span = Span::from_millis(500);
/// Maximum increase of `max_p` at an adaptation. `DECREASE` is the factor of a decrease.
const INCREASE: f64 = 0.01;
const DECREASE: f64 = 0.9;
/// Bounds of the adaptation of `max_p`. `max_p` does not increase above `TOP`. It does not decrease below `BOTTOM`, or below
/// `BOTTOM_RATE` (bit/s) divided by the link's rate.
const TOP: f64 = 0.5;
const BOTTOM: f64 = 0.01;
const BOTTOM_RATE: f64 = 80_000.0;

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Red {
    /// The configuration, including the values that are computed for the link. Thresholds are in bytes if the queue is counted in
    /// bytes.
    config: Config,
    /// Buffer, in the unit of the thresholds.
    limit: f64,
    /// Number of packets of mean size that the link sends per second.
    packet_rate: f64,
    average: f64,
    /// The present `max_p`.
    max_p: f64,
    bottom: f64,
    /// Number of packets since the last drop or mark, and the bytes of these packets (`count_bytes`).
    count: u64,
    count_bytes: u64,
    /// Zone of the average at the latest arrival.
    zone: Zone,
    adapt_at: Time,
}

/// Whether early drops are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    /// The average is below the lower threshold, or the queue has almost no packets.
    Calm,
    /// The average is above the lower threshold.
    Alert,
}

impl Red {
    /// Creates the discipline for a link of this rate and delay. The values that the configuration leaves open are computed from
    /// the rate and the delay.
    pub fn new(config: Config, rate: Rate, delay: Span) -> Red {
        let packet_rate = packets_per_second(config, rate);
        let mut config = complete(config, packet_rate, delay);
        let mut limit = f64::from(config.limit);
        if config.bytes {
            let unit = f64::from(config.mean_packet_size);
            (config.min_th, config.max_th, limit) =
                (config.min_th * unit, config.max_th * unit, limit * unit);
        }
        Red {
            config,
            limit,
            packet_rate,
            average: 0.0,
            max_p: config.max_p,
            bottom: bottom(rate),
            count: 0,
            count_bytes: 0,
            zone: Zone::Calm,
            adapt_at: if config.adaptive { Time::ZERO + INTERVAL } else { Time::NEVER },
        }
    }

    /// Returns the average queue, in packets or bytes.
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// Returns the present probability at the upper threshold.
    pub const fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Returns the lower and the upper threshold, in the unit of the average.
    pub const fn thresholds(&self) -> (f64, f64) {
        (self.config.min_th, self.config.max_th)
    }

    /// Returns the weight of the queue length in its average.
    pub const fn weight(&self) -> f64 {
        self.config.w_q
    }

    /// Updates the average at an arrival. `queue` is the present length. `idle` is the number of packets that the link could have
    /// sent in the idle time before the arrival.
    fn average_in(&mut self, queue: f64, idle: u32) {
        let keep = 1.0 - self.config.w_q;
        self.average = self.average * power(keep, idle.saturating_add(1)) + self.config.w_q * queue;
    }

    /// Whether the average requires a drop of every packet.
    fn is_hopeless(&self) -> bool {
        let ceiling = if self.config.gentle { 2.0 * self.config.max_th } else { self.config.max_th };
        self.average >= ceiling
    }

    /// Returns the probability from the average alone.
    fn probability(&self) -> f64 {
        let Config { min_th, max_th, gentle, .. } = self.config;
        let p = if self.average < max_th {
            self.max_p * (self.average - min_th) / (max_th - min_th)
        } else if gentle {
            // As in ns-2, the line above the upper threshold starts at the configured `max_p`, even if `max_p` adapts.
            self.config.max_p + (1.0 - self.config.max_p) * (self.average - max_th) / max_th
        } else {
            1.0
        };
        p.min(1.0)
    }

    /// Returns the probability `p`, corrected for the number of packets since the last drop, and for the packet's size.
    fn spread(&self, p: f64, size: u16) -> f64 {
        let unit = self.config.mean_packet_size;
        let count = if self.config.bytes { self.count_bytes / u64::from(unit.max(1)) } else { self.count };
        let due = count as f64 * p;
        let spread = match self.config.wait {
            true if due < 1.0 => 0.0,
            true if due < 2.0 => p / (2.0 - due),
            false if due < 1.0 => p / (1.0 - due),
            _ => 1.0,
        };
        if self.config.bytes && spread < 1.0 {
            return (spread * f64::from(size) / f64::from(unit)).min(1.0);
        }
        spread.min(1.0)
    }

    /// Returns the decision that follows from the average. The limit of the buffer is not considered.
    fn early(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        if self.is_hopeless() {
            // Equal thresholds form a step: if the average is above the step, packets are marked, as in DCTCP (RFC 8257, 3.1).
            let steps = self.config.min_th == self.config.max_th && self.config.mark_p >= 1.0;
            let may_mark = steps && self.config.ecn && offer.ecn.may_be_marked();
            return if may_mark { Decision::Mark } else { Decision::Drop(DropCause::Overflow) };
        }
        if self.zone == Zone::Calm {
            self.zone = Zone::Alert;
            (self.count, self.count_bytes) = (1, u64::from(offer.size));
            return Decision::Accept;
        }
        let p = self.probability();
        if rng.unit() >= self.spread(p, offer.size) {
            return Decision::Accept;
        }
        self.restart_count();
        let may_mark = self.config.ecn && offer.ecn.may_be_marked() && p < self.config.mark_p;
        if may_mark { Decision::Mark } else { Decision::Drop(DropCause::Early) }
    }

    fn restart_count(&mut self) {
        (self.count, self.count_bytes) = (0, 0);
    }
}

impl Discipline for Red {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        let queue = if self.config.bytes { offer.waiting_bytes as f64 } else { f64::from(offer.waiting) };
        let idle =
            offer.idle_since.map_or(0.0, |since| self.packet_rate * offer.now.since(since).as_secs_f64());
        self.average_in(queue, idle as u32); // rounds down, saturates, and maps NaN to 0
        self.count += 1;
        self.count_bytes += u64::from(offer.size);
        let decision = if self.average >= self.config.min_th && queue > 1.0 {
            self.early(offer, rng)
        } else {
            self.zone = Zone::Calm;
            Decision::Accept
        };
        let forced = Decision::Drop(DropCause::Overflow);
        if queue >= self.limit || decision == forced {
            self.restart_count();
            return forced;
        }
        decision
    }

    /// The thresholds and the weight keep the values that were computed at the start.
    fn set_rate(&mut self, rate: Rate) {
        self.packet_rate = packets_per_second(self.config, rate);
        self.bottom = bottom(rate);
    }

    fn timer(&self) -> Time {
        self.adapt_at
    }

    fn on_timer(&mut self, queue: &Offer) {
        if !self.config.adaptive || queue.now < self.adapt_at {
            return;
        }
        self.adapt_at += INTERVAL;
        let margin = 0.4 * (self.config.max_th - self.config.min_th);
        if self.average > self.config.max_th - margin && self.max_p <= TOP {
            self.max_p += INCREASE.min(self.max_p / 4.0);
        } else if self.average < self.config.min_th + margin && self.max_p >= self.bottom {
            self.max_p *= DECREASE;
        }
    }
}

fn packets_per_second(config: Config, rate: Rate) -> f64 {
    rate.bps() / (8.0 * f64::from(config.mean_packet_size))
}

fn bottom(rate: Rate) -> f64 {
    BOTTOM.min(BOTTOM_RATE / rate.bps())
}

/// Completes values that depend on the link, by ns-2's rules.
fn complete(config: Config, packet_rate: f64, delay: Span) -> Config {
    let packet_rate = packet_rate.max(1e-9); // a link of rate zero
    let or = |given: f64, rule: f64| if given > 0.0 { given } else { rule };
    let min_th = or(config.min_th, (0.005 * packet_rate / 2.0).max(5.0));
    let max_th = or(config.max_th, 3.0 * min_th);
    let round_trip = (3.0 * (delay.as_secs_f64() + 1.0 / packet_rate)).max(0.1);
    let w_q = or(config.w_q, 1.0 - (-1.0 / (10.0 * round_trip * packet_rate)).exp());
    Config { min_th, max_th, w_q, ..config }
}

/// Computes a power by squaring, with the same result on every machine.
pub(crate) fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests;
