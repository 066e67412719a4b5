//! SFC (paper 002, chapter 6). The probability of a drop or mark is a linear function of the queue and of the arrival rate: `p =
//! bias + k1 (q - q0) + k2 (R - C) / C`.
//!
//! The design uses deviations from an equilibrium with the probability p0, but the algorithm of figure 6.6 has no p0. With the
//! printed algorithm (the default), the equilibrium queue would be p0 / k1 packets above its target, which exceeds the
//! buffer. The real queue is shorter: the probability cannot be negative, so noise in the measured rate raises the mean
//! probability. [`Config::integral`], our law, adds an integral of the queue's distance from its target. The integral converges to p0.
//!
//! Paper gap: neither the bias nor the measurement of the arrival rate is specified (paper 002, 6.5).

use crate::analysis::sfc::{Link, Model};
use crate::discipline::{Decision, Discipline, DropCause, Offer};
use crate::text::{preset, table};
use faircast_core::rng::Rng;
use faircast_core::spec::{Form, NumberRange, Opt};
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;

table! {
    /// Parameters. Lengths are in packets.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped ("Q_lim").
        limit: u32 = 100 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Target of the queue ("q0").
        target: f64 = 50.0
            => number["target", NumberRange::of(0.0, f64::INFINITY), "target queue, in packets"];
        /// Increase of the probability per packet by which the queue exceeds the target.
        k1: f64 = 0.0005
            => number["k1", NumberRange::of(0.0, 1e3), "gain for the queue above the target, per packet"];
        /// Increase of the probability if packets arrive at twice the link's rate.
        k2: f64 = 0.2
            => number["k2", NumberRange::of(0.0, 1e3), "gain for arrivals at twice the link's rate"];
        /// Measurement of the arrival rate.
        measured: Measured = Measured::Gaps(2)
            => option[Opt::formed(
                "measured",
                || Form::list(MEASURED),
                |config| config.measured.text(),
                |config, text| {
                    config.measured = Form::read_any(MEASURED, text)?;
                    Some(Ok(()))
                },
                "rate of arrivals: over M gaps, as an average, or in a window, in seconds",
            )];
        /// Probability at the target.
        bias: Bias = Bias::None
            => choice["bias", { "none" => None, "design" => Design, "integral" => Integral },
                "probability at the target: none, from `flows` and `rtt` (design), or from an integral (integral)"];
        /// Increase of the integral per second, and per packet by which the queue exceeds the target.
        ki: f64 = 2e-4
            => number["ki", NumberRange::of(0.0, 1e3),
                "gain of the integral, per second and packet above the target"];
        /// Number of flows, for the designed bias.
        flows: f64 = 100.0 => number["flows", NumberRange::POSITIVE, "designed bias: number of flows"];
        /// Round-trip time, for the designed bias.
        rtt: Span = Span::from_millis(240)
            => seconds["rtt", NumberRange::up_to(100.0), "designed bias: round-trip time"];
        /// Packets per acknowledgement ("b"), for the designed bias.
        per_ack: f64 = 1.0
            => number["per_ack", NumberRange::of(1.0, 16.0), "designed bias: packets per acknowledgement"];
        /// Mean packet size in bytes. It converts the link's rate to packets per second.
        mean_packet_size: u16 = 1000
            => whole["mean", 1, u16::MAX as u64, "size of a typical packet, in bytes"];
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    impl Default;

    impl Tabled for Config as "sfc" with [
        preset("integral", |config| *config = Config::integral(),
            "faircast's own law: an averaged rate, and a bias from an integral"),
    ] {
        type Built = Box<dyn Discipline>;

        fn build(&self, rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Sfc::new(*self, rate))
        }
    }
}

/// Measurement of the arrival rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measured {
    /// Rate over this number of gaps. A gap is the time between two consecutive arrivals; the latest gaps count.
    Gaps(u32),
    /// Exponential average with this time constant, as in core-stateless fair queueing.
    Average(Span),
    /// Number of arrivals in a window of this length.
    Window(Span),
}

/// Probability of a drop or mark when the queue is at its target and packets arrive at the link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bias {
    /// Zero, as printed.
    None,
    /// The probability of the design's equilibrium.
    Design,
    /// An integral of the distance from the target.
    Integral,
}

const MEASURED: &[Form<Measured>] = &[
    Form::numbers("gaps", &[("M", NumberRange::of(1.0, 1000.0))], |of| Measured::Gaps(of[0] as u32)),
    Form::numbers("average", &[("S", NumberRange::up_to(100.0))], |of| {
        Measured::Average(Span::from_secs_f64(of[0]))
    }),
    Form::numbers("window", &[("S", NumberRange::up_to(100.0))], |of| {
        Measured::Window(Span::from_secs_f64(of[0]))
    }),
];

impl Measured {
    fn text(self) -> String {
        match self {
            Measured::Gaps(gaps) => format!("gaps:{gaps}"),
            Measured::Average(span) => format!("average:{}", span.as_secs_f64()),
            Measured::Window(span) => format!("window:{}", span.as_secs_f64()),
        }
    }
}

impl Config {
    /// Our law: an averaged rate and the integral.
    pub const fn integral() -> Config {
        Config {
            measured: Measured::Average(Span::from_millis(100)),
            bias: Bias::Integral,
            ..Config::DEFAULT
        }
    }
}

/// Duration without arrivals after which the arrival rate counts as zero.
const QUIET: Span = Span::from_secs(1);

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Sfc {
    config: Config,
    /// Packets of the mean size that the link sends per second ("C0").
    capacity: f64,
    rate: Arrivals,
    integral: f64,
    latest: Option<Time>,
    p: f64,
}

/// The measured rate, in packets per second.
#[derive(Debug, Clone)]
struct Arrivals {
    measured: Measured,
    /// The latest arrival times that the measurement needs.
    times: VecDeque<Time>,
    average: f64,
    /// Number of arrivals at the same time as the latest arrival.
    together: f64,
}

impl Arrivals {
    fn new(measured: Measured) -> Arrivals {
        let room = if let Measured::Gaps(gaps) = measured { gaps as usize + 2 } else { 0 };
        Arrivals { measured, times: VecDeque::with_capacity(room), average: 0.0, together: 0.0 }
    }

    /// Counts an arrival, `gap` after the previous arrival. Returns the arrival rate; `None` until the rate is known.
    fn count(&mut self, now: Time, gap: Option<Span>) -> Option<f64> {
        let is_quiet = gap.is_some_and(|gap| gap > QUIET);
        if is_quiet {
            self.times.clear();
            (self.average, self.together) = (0.0, 0.0);
        }
        match self.measured {
            Measured::Gaps(gaps) => {
                self.times.push_back(now);
                if self.times.len() > gaps as usize + 1 {
                    self.times.pop_front();
                }
                let span = now.since(*self.times.front()?).max(Span::from_nanos(1));
                let known = self.times.len() - 1;
                (known > 0).then(|| known as f64 / span.as_secs_f64()).or(is_quiet.then_some(0.0))
            }
            Measured::Average(constant) => {
                let gap = gap?;
                self.together += 1.0;
                if gap > Span::ZERO {
                    let keep = (-gap.as_secs_f64() / constant.as_secs_f64()).exp();
                    self.average = (1.0 - keep) * self.together / gap.as_secs_f64() + keep * self.average;
                    self.together = 0.0;
                }
                Some(self.average)
            }
            Measured::Window(length) => {
                self.times.push_back(now);
                while self.times.front().is_some_and(|first| now.since(*first) >= length) {
                    self.times.pop_front();
                }
                gap.map(|_| self.times.len() as f64 / length.as_secs_f64())
            }
        }
    }
}

impl Sfc {
    /// Creates the discipline for a link of this rate.
    pub fn new(config: Config, rate: Rate) -> Sfc {
        let capacity = crate::packets_per_second(rate, config.mean_packet_size);
        let rate = Arrivals::new(config.measured);
        Sfc { config, capacity, rate, integral: 0.0, latest: None, p: 0.0 }
    }

    /// Returns the latest probability.
    pub const fn probability(&self) -> f64 {
        self.p
    }

    fn bias(&self) -> f64 {
        let Config { bias, flows, rtt, per_ack, .. } = self.config;
        match bias {
            Bias::None => 0.0,
            Bias::Integral => self.integral,
            Bias::Design => {
                let link = Link { flows, rtt, packets_per_second: self.capacity, per_ack };
                link.equilibrium(Model::Corrected).loss.min(1.0)
            }
        }
    }

    /// Returns the probability by figure 6.6.
    fn law(&self, queue: f64, rate: f64) -> f64 {
        let Config { target, k1, k2, .. } = self.config;
        (self.bias() + k1 * (queue - target) + k2 * (rate / self.capacity - 1.0)).clamp(0.0, 1.0)
    }

    /// Updates the integral. While the queue is empty and the probability is zero, the integral does not decrease.
    fn integrate(&mut self, queue: f64, gap: Span) {
        if queue > 0.0 || self.p > 0.0 {
            let step = self.config.ki * (queue - self.config.target) * gap.as_secs_f64();
            self.integral = (self.integral + step).clamp(0.0, 1.0);
        }
    }
}

impl Discipline for Sfc {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        let gap = self.latest.map(|latest| offer.now.since(latest));
        self.latest = Some(offer.now);
        let queue = f64::from(offer.waiting);
        let rate = self.rate.count(offer.now, gap).unwrap_or(self.capacity);
        self.integrate(queue, gap.unwrap_or_default());
        self.p = self.law(queue, rate);
        if offer.waiting >= self.config.limit {
            return Decision::Drop(DropCause::Overflow);
        }
        if rng.chance(self.p) { offer.warned(self.config.ecn) } else { Decision::Accept }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.capacity = crate::packets_per_second(rate, self.config.mean_packet_size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;

    fn sfc(config: Config) -> Sfc {
        Sfc::new(config, Rate::from_mbps(10.0)) // 1250 packets of 1000 bytes a second
    }

    #[test]
    fn control_law_matches_hand_computed_values() {
        let sfc = sfc(Config::DEFAULT);
        assert!((sfc.law(60.0, 1250.0) - 0.005).abs() < 1e-12);
        assert!((sfc.law(50.0, 1875.0) - 0.1).abs() < 1e-12);
        assert_eq!(sfc.law(40.0, 1250.0), 0.0);
        assert_eq!(sfc.law(50.0, 1e9), 1.0);
    }

    fn millis(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn rate_after(measured: Measured, arrivals: &[u64]) -> Option<f64> {
        let mut rate = Arrivals::new(measured);
        let (mut latest, mut found) = (None, None);
        for at in arrivals {
            let now = millis(*at);
            found = rate.count(now, latest.map(|latest| now.since(latest)));
            latest = Some(now);
        }
        found
    }

    #[test]
    fn arrival_rate_matches_hand_computed_values() {
        assert_eq!(rate_after(Measured::Gaps(2), &[0]), None);
        assert_eq!(rate_after(Measured::Gaps(2), &[0, 4]), Some(250.0));
        assert_eq!(rate_after(Measured::Gaps(2), &[0, 4, 6, 9]), Some(400.0), "4, 6 and 9 ms");
        assert_eq!(rate_after(Measured::Gaps(2), &[0, 4, 6, 1500]), Some(0.0), "a second of silence");
        let window = Measured::Window(Span::from_millis(50));
        assert_eq!(rate_after(window, &[0, 10, 30, 55]), Some(60.0), "three in 50 ms");
        let average = rate_after(Measured::Average(Span::from_millis(100)), &[0, 10]).expect("a gap");
        assert!((average - (1.0 - (-0.1f64).exp()) * 100.0).abs() < 1e-9);
        let together = rate_after(Measured::Average(Span::from_millis(100)), &[0, 0, 0, 10]).expect("a gap");
        assert!((together - (1.0 - (-0.1f64).exp()) * 300.0).abs() < 1e-9, "{together}");
    }

    #[test]
    fn designed_bias_equals_the_equilibrium_probability() {
        let config = Config {
            flows: 300.0,
            rtt: Span::from_millis(600),
            per_ack: 2.0,
            bias: Bias::Design,
            ..Config::DEFAULT
        };
        assert!((sfc(config).law(50.0, 1250.0) - 0.1509).abs() < 1e-4);
    }

    #[test]
    fn integral_grows_above_the_target_and_is_constant_when_idle() {
        let mut sfc = sfc(Config::integral());
        sfc.integrate(150.0, Span::from_secs(1));
        assert!((sfc.integral - 0.02).abs() < 1e-12);
        sfc.p = 0.0;
        sfc.integrate(0.0, Span::from_secs(100));
        assert!((sfc.integral - 0.02).abs() < 1e-12);
        sfc.p = 0.1;
        sfc.integrate(0.0, Span::from_secs(100));
        assert_eq!(sfc.integral, 0.0);
    }

    #[test]
    fn noise_raises_the_mean_of_a_clipped_probability() {
        // Poisson arrivals at the link's rate, with the queue at its target and k2 = 0.2. If the rate is measured over one, two
        // or four gaps, the mean probability is 0.290, 0.167 or 0.087.
        for (gaps, expected) in [(1, 0.290), (2, 0.167), (4, 0.087)] {
            let mut sfc = sfc(Config { measured: Measured::Gaps(gaps), ..Config::DEFAULT });
            let (mut rng, mut now, mut sum) = (Rng::new(1, 8), 0.0, 0.0);
            for _ in 0..200_000 {
                now += rng.exponential(1.0 / 1250.0);
                let offer = Offer { now: Time::from_secs_f64(now), ..bench::busy(50) };
                sfc.on_arrival(&offer, &mut Rng::new(1, 1));
                sum += sfc.probability() / 200_000.0;
            }
            assert!((sum - expected).abs() < 0.006, "{gaps}: {sum}");
        }
    }
}
