//! Proportional integral controller enhanced (RFC 8033): PI on the queueing delay. The gains of the controller grow with the
//! probability. After a quiet period, a burst may pass without drops.
//!
//! With [`Delay::Stamps`], the delay is the delay of the latest departed packet (RFC 8033, 5.2, as in ns-3 and FreeBSD). With
//! [`Delay::Length`], the delay is the queue's length divided by the link's rate, and departures are not reported.

use crate::discipline::{Decision, Departure, Discipline, DropCause, Offer, Watches};
use crate::text::table;
use crate::ticks::Ticks;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped.
        limit: u32 = 1000 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Target delay (QDELAY_REF).
        target: Span = Span::from_millis(15)
            => seconds["target", NumberRange::up_to(1.0), "target time in the queue"];
        /// Interval between updates of the probability (T_UPDATE).
        update: Span = Span::from_millis(15)
            => seconds["update", NumberRange::up_to(1.0), "time between two updates of the probability"];
        /// Increase of the probability at each update, per second by which the delay exceeds the target (alpha).
        alpha: f64 = 0.125
            => number["alpha", NumberRange::up_to(1e3), "gain for the delay above the target, per second"];
        /// Increase of the probability at each update, per second by which the delay has grown since the previous update (beta).
        beta: f64 = 1.25
            => number["beta", NumberRange::of(0.0, 1e3), "gain for the growth of the delay, per second"];
        /// Maximum duration of a burst without drops after a quiet period (MAX_BURST).
        burst: Span = Span::from_millis(150)
            => seconds["burst", NumberRange::of(0.0, 10.0),
                "length of a burst without drops after an idle time"];
        /// Maximum probability at which packets are marked. Above it, packets are dropped instead (mark_ecnth).
        mark_p: f64 = 0.1
            => number["mark", NumberRange::PART, "probability below which packets are marked, not dropped"];
        /// Whether drops are spread evenly (RFC 8033, 5.4).
        even: bool = false => word["even", "drops are spread evenly"];
        /// Measurement of the delay.
        delay: Delay = Delay::Stamps
            => choice["delay", { "stamps" => Stamps, "length" => Length },
                "measurement of the time: that of the latest departed packet (stamps), or the queue's length over the link's rate (length)"];
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    /// Values of RFC 8033; a buffer of 1000 packets.
    impl Default;

    impl Tabled for Config as "pie" {
        type Built = Box<dyn Discipline>;

        fn build(&self, rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Pie::new(*self, rate))
        }
    }
}

/// Measurement of the delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// Delay of the latest departed packet.
    Stamps,
    /// Delay computed from the queue's length and the link's rate.
    Length,
}

/// Maximum increase of the probability at an update, if the probability is at least 0.1 (RFC 8033, 5.5).
const CAP: f64 = 0.02;
/// Minimum duration of a quiet period before another burst may pass.
const QUIET: Span = Span::from_millis(1500);

/// The discipline's state. The names in brackets are those of the RFC.
#[derive(Debug, Clone)]
pub struct Pie {
    config: Config,
    rate: Rate,
    p: f64,
    /// The delay of the latest departed packet.
    delay: f64,
    old_delay: f64,
    /// Sum of the drop probabilities of all packets since the last drop (accu_prob).
    due: f64,
    burst: Burst,
    /// Remaining time for which a burst passes without drops (burst_allowance).
    allowance: Span,
    ticks: Ticks,
    /// Arrival times of the waiting packets; empty unless the delay is measured by stamps.
    stamps: VecDeque<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Burst {
    /// The next burst may pass.
    Awaited,
    /// A burst passes or has passed.
    Passes,
    /// Quiet for this number of updates.
    Quiet(u64),
}

impl Pie {
    /// Creates the discipline for a link of this rate.
    pub fn new(config: Config, rate: Rate) -> Pie {
        Pie {
            config,
            rate,
            p: 0.0,
            delay: 0.0,
            old_delay: 0.0,
            due: 0.0,
            burst: Burst::Awaited,
            allowance: Span::ZERO,
            ticks: Ticks::every(config.update),
            stamps: VecDeque::new(),
        }
    }

    /// Returns the present probability.
    pub const fn probability(&self) -> f64 {
        self.p
    }

    /// Whether this packet gets an early signal (drop_early).
    fn is_unlucky(&mut self, waiting: u32, rng: &mut Rng) -> bool {
        if self.allowance > Span::ZERO {
            return false;
        }
        if self.burst == Burst::Awaited {
            self.burst = Burst::Passes;
            self.allowance = self.config.burst;
        }
        let half = self.config.target.as_secs_f64() / 2.0;
        if (self.old_delay < half && self.p < 0.2) || waiting <= 2 {
            return false;
        }
        if self.config.even {
            self.due = if self.p == 0.0 { 0.0 } else { self.due + self.p };
            if self.due < 0.85 {
                return false;
            }
            if self.due >= 8.5 {
                return true;
            }
        }
        rng.chance(self.p)
    }

    /// Returns the change of the probability for this delay.
    fn step(&self, delay: f64) -> f64 {
        let Config { alpha, beta, target, .. } = self.config;
        let step = alpha * (delay - target.as_secs_f64()) + beta * (delay - self.old_delay);
        // The gains are divided at small probabilities: upper bounds of the probability, each with the divisor (RFC 8033, 4.2).
        const SCALES: [(f64, f64); 6] =
            [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
        match SCALES.iter().find(|(below, _)| self.p < *below) {
            Some((_, divisor)) => step / divisor,
            None => step.min(CAP),
        }
    }

    fn update(&mut self, delay: f64) {
        let mut p = if self.allowance > Span::ZERO { 0.0 } else { self.p + self.step(delay) };
        if delay == 0.0 && self.old_delay == 0.0 {
            p *= 0.98;
        }
        self.p = p.clamp(0.0, 1.0);
        self.allowance = self.allowance.saturating_sub(self.config.update);
        let half = self.config.target.as_secs_f64() / 2.0;
        let is_quiet = delay < half && self.old_delay < half && self.p == 0.0 && self.allowance == Span::ZERO;
        let enough = QUIET.as_nanos() / self.ticks.period().as_nanos();
        self.burst = match self.burst {
            Burst::Passes if is_quiet => Burst::Quiet(0),
            Burst::Quiet(moves) if is_quiet && moves >= enough => Burst::Awaited,
            Burst::Quiet(moves) if is_quiet => Burst::Quiet(moves + 1),
            Burst::Quiet(_) => Burst::Quiet(0),
            state => state,
        };
        self.old_delay = delay;
    }
}

impl Discipline for Pie {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        let mut decision = Decision::Accept;
        if offer.waiting >= self.config.limit {
            decision = Decision::Drop(DropCause::Overflow);
        } else if self.is_unlucky(offer.waiting, rng) {
            decision = offer.warned(self.config.ecn && self.p < self.config.mark_p);
        }
        match decision {
            Decision::Drop(_) => self.due = 0.0,
            _ if self.config.delay == Delay::Stamps => self.stamps.push_back(offer.now),
            _ => {}
        }
        decision
    }

    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    fn timer(&self) -> Time {
        self.ticks.next()
    }

    fn on_timer(&mut self, queue: &Offer) {
        self.ticks.advance();
        let delay = match self.config.delay {
            Delay::Stamps => self.delay,
            Delay::Length => self.rate.span_of(queue.waiting_bytes).as_secs_f64(),
        };
        self.update(delay);
    }

    fn on_silence(&mut self, until: Time) {
        let is_still = self.p == 0.0 && self.delay == 0.0 && self.old_delay == 0.0;
        if is_still && self.burst == Burst::Awaited && self.allowance == Span::ZERO {
            self.ticks.skip_to(until);
        }
    }

    fn watches(&self) -> Watches {
        match self.config.delay {
            Delay::Stamps => Watches::Departures,
            Delay::Length => Watches::Arrivals,
        }
    }

    fn on_departure(&mut self, departure: &Departure) {
        let came = self.stamps.pop_front().unwrap_or(departure.at);
        let waited = departure.at.since(came).as_secs_f64();
        self.delay = if departure.waiting == 0 { 0.0 } else { waited };
    }

    fn on_flush(&mut self) {
        self.stamps.clear();
        self.delay = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;

    fn pie(config: Config) -> Pie {
        Pie::new(config, Rate::from_mbps(8.0)) // a packet of 1000 bytes takes a millisecond
    }

    fn by_length() -> Config {
        Config { delay: Delay::Length, ..Config::default() }
    }

    #[test]
    fn probability_matches_hand_computed_values() {
        let mut pie = Pie { p: 0.05, old_delay: 0.02, ..pie(by_length()) };
        // The first change of the probability is (0.125 (0.03 - 0.015) + 1.25 (0.03 - 0.02)) / 2.
        pie.on_timer(&bench::busy(30));
        assert!((pie.probability() - 0.057_187_5).abs() < 1e-9, "{}", pie.probability());
        let mut tiny = Pie { p: 0.0, old_delay: 0.0, ..pie.clone() };
        tiny.on_timer(&bench::busy(30)); // the same over 2048
        assert!((tiny.probability() - (0.001_875 + 0.0375) / 2048.0).abs() < 1e-12);
        let mut large = Pie { p: 0.3, old_delay: 0.0, ..pie.clone() };
        large.on_timer(&bench::busy(200));
        assert!((large.probability() - 0.32).abs() < 1e-12, "no more than 0.02 at once");
    }

    #[test]
    fn probability_decays_without_delay() {
        let mut pie = Pie { p: 0.5, ..pie(by_length()) };
        pie.on_timer(&bench::busy(0)); // (0.5 - 0.125 * 0.015) * 0.98
        assert!((pie.probability() - 0.488_162_5).abs() < 1e-9);
    }

    #[test]
    fn burst_after_idle_time_is_not_dropped() {
        let mut pie = pie(by_length());
        let mut rng = Rng::new(1, 1);
        let mut tick = |pie: &mut Pie, waiting| {
            let decision = pie.on_arrival(&bench::busy(waiting), &mut rng);
            pie.on_timer(&bench::busy(waiting));
            decision
        };
        for _ in 0..10 {
            assert_eq!(tick(&mut pie, 400), Decision::Accept);
            assert_eq!(pie.probability(), 0.0, "150 ms have not passed");
        }
        let drops = (0..400).filter(|_| tick(&mut pie, 400) != Decision::Accept).count();
        assert!(drops > 50, "{drops}");
        (0..400).for_each(|_| pie.on_timer(&bench::busy(0))); // six seconds without anybody
        assert_eq!((pie.burst, pie.probability()), (Burst::Awaited, 0.0));
    }

    #[test]
    fn delay_is_that_of_the_latest_departed_packet() {
        let mut pie = pie(Config::default());
        let millis = |millis| Time::ZERO + Span::from_millis(millis);
        for at in [0, 1] {
            pie.on_arrival(&Offer { now: millis(at), ..bench::busy(1) }, &mut Rng::new(1, 1));
        }
        let leaves =
            |at, waiting| Departure { at: millis(at), flow: 0, size: 1000, waiting, waiting_bytes: 0 };
        pie.on_departure(&leaves(20, 1));
        assert!((pie.delay - 0.02).abs() < 1e-12);
        pie.on_departure(&leaves(30, 0));
        assert_eq!(pie.delay, 0.0, "nobody waits any more");
    }

    #[test]
    fn gaps_between_evenly_spread_drops_are_bounded() {
        let mut pie =
            Pie { p: 0.1, old_delay: 0.1, burst: Burst::Passes, ..pie(Config { even: true, ..by_length() }) };
        let mut rng = Rng::new(3, 3);
        let drops: Vec<usize> =
            (0..100_000).filter(|_| pie.on_arrival(&bench::busy(50), &mut rng) != Decision::Accept).collect();
        let gaps: Vec<usize> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (least, most) = (gaps.iter().min().expect("drops"), gaps.iter().max().expect("drops"));
        assert!((8..=9).contains(least) && *most <= 86, "{least} {most}");
    }
}
