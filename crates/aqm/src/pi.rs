//! PI (Hollot, Misra, Towsley and Gong 2001), with the arithmetic of ns-2.35. The probability of a drop or mark is updated
//! periodically from two distances of the queue from its target: the present and the previous distance.
//!
//! The two constants of the controller depend on the number of flows, the round-trip time and the link. The default constants of
//! ns-2 are for 60 flows, a round-trip time of 0.246 s and a link of 3750 packets/s. [`Config::design`] computes the constants
//! for the link of the queue ([`pi`](crate::analysis::control::pi)). The queue length does not include the packet in
//! transmission.

use crate::analysis::control::{self, Flows};
use crate::discipline::{Decision, Discipline, DropCause, Offer};
use crate::text::{preset, table};
use crate::ticks::Ticks;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span, Time};

table! {
    /// Parameters. Lengths are in packets; with [`Config::bytes`] they are in bytes divided by [`Config::mean_packet_size`].
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped.
        limit: u32 = 100 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Target of the queue (`qref_`).
        target: f64 = 50.0 => number["target", NumberRange::POSITIVE, "target queue, in packets"];
        /// Increase of the probability per packet by which the queue exceeds the target (`a_`); 0 means the value of the design
        /// rule.
        a: f64 = 0.0
            => number["a", NumberRange::PART,
                "weight of the present distance from the target; 0: by the design rule"];
        /// Decrease of the probability per packet by which the queue exceeded the target at the previous update (`b_`); 0 means
        /// the value of the design rule.
        b: f64 = 0.0
            => number["b", NumberRange::PART,
                "weight of the previous distance from the target; 0: by the design rule"];
        /// Updates of the probability per second (`w_`).
        hz: f64 = 170.0 => number["hz", NumberRange::of(0.1, 1e6), "updates of the probability per second"];
        /// Minimum number of flows, for the design rule.
        flows: f64 = 60.0 => number["flows", NumberRange::POSITIVE, "design rule: minimum number of flows"];
        /// Longest round-trip time, for the design rule.
        rtt: Span = Span::from_millis(246)
            => seconds["rtt", NumberRange::up_to(100.0), "design rule: maximum round-trip time"];
        /// Mean packet size in bytes. It converts the link's rate to packets per second. With `bytes`, it is also the unit of
        /// queue lengths.
        mean_packet_size: u16 = 1000
            => whole["mean", 1, u16::MAX as u64, "size of a typical packet, in bytes"];
        /// Whether the queue is counted in bytes. Large packets are then dropped more often than small packets.
        bytes: bool = false => word["bytes", "the queue is counted in bytes"];
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    impl Default;

    impl Tabled for Config as "pi" with [
        preset("design", |config| *config = Config::design(), "a and b from the link, `flows` and `rtt`"),
        preset("ns2", |config| *config = Config::ns2(),
            "the constants of ns-2, for 60 flows, a round-trip time of 0.246 s and 3750 packets/s"),
    ] {
        type Built = Box<dyn Discipline>;

        fn fits(&self) -> Result<(), String> {
            match (self.a > 0.0, self.b > 0.0) {
                (true, false) | (false, true) => Err("a and b must be given together".to_owned()),
                (true, true) if self.a <= self.b => {
                    Err(format!("a is {}, but must be above b, {}", self.a, self.b))
                }
                _ => Ok(()),
            }
        }

        fn build(&self, rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Pi::new(*self, rate))
        }
    }
}

impl Config {
    /// Returns the default constants of ns-2. They were computed for 60 flows, a round-trip time of 0.246 s and a link of 3750
    /// packets/s.
    pub const fn ns2() -> Config {
        Config { a: 1.822e-5, b: 1.816e-5, ..Config::DEFAULT }
    }

    /// Returns a configuration whose constants are computed by the design rule for the link of the queue. Without other values,
    /// the rule uses 60 flows and a round-trip time of 0.246 s.
    pub const fn design() -> Config {
        Config::DEFAULT
    }
}

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Pi {
    /// The configuration, including the values that are computed for the link.
    config: Config,
    /// Probability of a drop or mark.
    p: f64,
    last: f64,
    ticks: Ticks,
}

impl Pi {
    /// Creates the discipline for a link of this rate. Constants of the design rule depend on the rate.
    pub fn new(config: Config, rate: Rate) -> Pi {
        let mut config = config;
        if config.a <= 0.0 {
            let flows = Flows {
                count: config.flows,
                rtt: config.rtt,
                packets_per_second: crate::packets_per_second(rate, config.mean_packet_size),
            };
            let gains = control::pi(&flows, 1.0 / config.hz);
            (config.a, config.b) = (gains.a, gains.b);
        }
        Pi { config, p: 0.0, last: 0.0, ticks: Ticks::every(Span::from_secs_f64(1.0 / config.hz)) }
    }

    /// Returns the present probability.
    pub const fn probability(&self) -> f64 {
        self.p
    }

    /// Returns the constants a and b.
    pub const fn gains(&self) -> (f64, f64) {
        (self.config.a, self.config.b)
    }

    fn length(&self, queue: &Offer) -> f64 {
        if self.config.bytes {
            return queue.waiting_bytes as f64 / f64::from(self.config.mean_packet_size);
        }
        f64::from(queue.waiting)
    }
}

impl Discipline for Pi {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        if self.length(offer) >= f64::from(self.config.limit) {
            return Decision::Drop(DropCause::Overflow);
        }
        let share = if self.config.bytes {
            f64::from(offer.size) / f64::from(self.config.mean_packet_size)
        } else {
            1.0
        };
        if rng.chance(self.p * share) { offer.warned(self.config.ecn) } else { Decision::Accept }
    }

    fn timer(&self) -> Time {
        self.ticks.next()
    }

    fn on_timer(&mut self, queue: &Offer) {
        self.ticks.advance();
        let Config { a, b, target, .. } = self.config;
        let length = self.length(queue);
        self.p = (self.p + a * (length - target) - b * (self.last - target)).clamp(0.0, 1.0);
        self.last = length;
    }

    fn on_silence(&mut self, until: Time) {
        if self.p == 0.0 && self.last == 0.0 {
            self.ticks.skip_to(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;

    fn probability(pi: &mut Pi, queue: u32) -> f64 {
        pi.on_timer(&bench::busy(queue));
        pi.probability()
    }

    #[test]
    fn probability_matches_hand_computed_values() {
        let config = Config { a: 0.002, b: 0.001, target: 10.0, ..Config::ns2() };
        let mut pi = Pi::new(config, Rate::from_mbps(8.0));
        // The first change is 0.002 (30 - 10) - 0.001 (0 - 10), the second 0.002 (20 - 10) - 0.001 (30 - 10). The last change
        // would make the probability negative.
        assert!((probability(&mut pi, 30) - 0.05).abs() < 1e-12);
        assert!((probability(&mut pi, 20) - 0.05).abs() < 1e-12);
        assert!((probability(&mut pi, 0) - 0.02).abs() < 1e-12);
        assert!((probability(&mut pi, 0) - 0.01).abs() < 1e-12);
        assert!((probability(&mut pi, 0)).abs() < 1e-12);
        assert_eq!(probability(&mut pi, 0), 0.0);
    }

    #[test]
    fn design_rule_uses_the_rate_of_the_link() {
        // The link sends 3750 packets of 500 bytes per second, as in the example of the PI paper.
        let config = Config { mean_packet_size: 500, ..Config::design() };
        let (a, b) = Pi::new(config, Rate::from_mbps(15.0)).gains();
        assert!((a / 1.853e-5 - 1.0).abs() < 1e-3 && (b / 1.847e-5 - 1.0).abs() < 1e-3, "{a:e} {b:e}");
    }

    #[test]
    fn large_packets_are_dropped_more_often_in_byte_mode() {
        let config = Config { bytes: true, mean_packet_size: 1000, limit: 1000, ..Config::ns2() };
        let mut pi = Pi { p: 0.1, ..Pi::new(config, Rate::from_mbps(8.0)) };
        let mut rng = Rng::new(1, 1);
        let mut drops = |size| {
            let offer = Offer { size, ..bench::busy(5) };
            (0..10_000).filter(|_| pi.on_arrival(&offer, &mut rng) != Decision::Accept).count()
        };
        let (large, small) = (drops(1500), drops(500));
        assert!((1400..1600).contains(&large) && (430..570).contains(&small), "{large} {small}");
    }

    #[test]
    fn timer_skips_idle_time_only_at_probability_zero() {
        let mut pi = Pi::new(Config::ns2(), Rate::from_mbps(8.0));
        pi.on_silence(Time::from_secs_f64(1e6));
        assert!(pi.timer() > Time::from_secs_f64(1e6 - 0.01) && pi.timer() <= Time::from_secs_f64(1e6));
        pi.p = 0.5;
        let before = pi.timer();
        pi.on_silence(Time::from_secs_f64(2e6));
        assert_eq!(pi.timer(), before);
    }
}
