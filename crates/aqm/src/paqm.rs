//! PAQM (paper 002, chapter 5). It predicts the traffic of the next two short intervals. It then drops or marks a part of this
//! traffic, large enough to bring the queue to its target.
//!
//! Paper gap: (5.1) as printed is the mean size of packets. The text, the controller and the figures need the amount that arrives
//! in an interval, including dropped packets.
//!
//! Paper gap: the solution (5.11) and its cases C1 to C4 are not the optimum of (5.9). [`Solution`] has both.

use crate::discipline::{Decision, Discipline, DropCause, Offer};
use crate::text::table;
use crate::ticks::Ticks;
use control::Problem;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span, Time};
use predict::History;

mod control;
mod predict;

table! {
    /// Parameters. Amounts are in packets; with [`Config::bytes`] they are in bytes divided by [`Config::mean_packet_size`].
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped.
        limit: u32 = 100 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Target of the queue ("Q_opt").
        target: f64 = 20.0
            => number["target", NumberRange::of(0.0, f64::INFINITY), "target queue, in packets"];
        /// Length of an interval ("tau"; 0.02 to 0.05 s in the paper).
        interval: Span = Span::from_millis(20)
            => seconds["interval", NumberRange::of(0.001, 10.0), "time between two predictions"];
        /// Number of intervals in a prediction ("n").
        order: u32 = 20 => whole["order", 1, 200, "number of intervals that a prediction uses"];
        /// Number of stored intervals. If this number equals `order`, the predictor is the formula as printed in the paper.
        history: u32 = 20 => whole["history", 4, 10_000, "number of intervals that are stored"];
        /// Predictor of the next intervals.
        predictor: Predictor = Predictor::Lmmse
            => choice["predictor", { "lmmse" => Lmmse, "adaptive" => Adaptive, "last" => Last },
                "linear with the least squared error (lmmse), with parameters that adapt (adaptive), or the last interval (last)"];
        /// Cost of a drop in the first interval ("b_0").
        b0: f64 = 0.0 => number["b0", NumberRange::of(0.0, 1e6), "cost of drops in the next interval"];
        /// Cost of a drop in the second interval ("b_1").
        b1: f64 = 0.0
            => number["b1", NumberRange::of(0.0, 1e6), "cost of drops in the interval after the next"];
        /// Method for the controller's optimum.
        solution: Solution = Solution::Exact
            => choice["solution", { "exact" => Exact, "clamp" => Clamp, "literal" => Literal },
                "the optimum (exact), the optimum without bounds moved into them (clamp), or the printed cases (literal)"];
        /// Mean packet size in bytes. It converts the link's rate to packets per second. With `bytes`, it is also the unit of
        /// queue lengths.
        mean_packet_size: u16 = 1000
            => whole["mean", 1, u16::MAX as u64, "size of a typical packet, in bytes"];
        /// Whether amounts and the queue are counted in bytes.
        bytes: bool = false => word["bytes", "the queue is counted in bytes"];
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    /// Values of the paper; a buffer of 100 packets.
    impl Default;

    impl Tabled for Config as "paqm" {
        type Built = Box<dyn Discipline>;

        fn fits(&self) -> Result<(), String> {
            if self.history < self.order {
                return Err(format!("history is {}, but must be order, {}, at least", self.history, self.order));
            }
            Ok(())
        }

        fn build(&self, rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Paqm::new(*self, rate))
        }
    }
}

/// Predictor of the next intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predictor {
    /// Linear, with the least mean squared error over the stored intervals (5.2 to 5.5).
    Lmmse,
    /// With weights that adapt to each error (5.7).
    Adaptive,
    /// The latest value.
    Last,
}

/// Method for the controller's optimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Solution {
    /// The exact optimum.
    Exact,
    /// The optimum without bounds, clamped to the bounds: the function of figure 5.6.
    Clamp,
    /// The printed solution: (5.11) with its cases C1 to C4.
    Literal,
}

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Paqm {
    config: Config,
    /// Number of packets that the link sends in an interval ("C").
    capacity: f64,
    /// Arrivals in this interval.
    arrived: f64,
    history: History,
    predicted: (f64, f64),
    p: f64,
    ticks: Ticks,
}

impl Paqm {
    /// Creates the discipline for a link of this rate.
    pub fn new(config: Config, rate: Rate) -> Paqm {
        let mut paqm = Paqm {
            config,
            capacity: 0.0,
            arrived: 0.0,
            history: History::new(config.predictor, config.history as usize, config.order as usize),
            predicted: (0.0, 0.0),
            p: 0.0,
            ticks: Ticks::every(config.interval),
        };
        paqm.set_rate(rate);
        paqm
    }

    /// Returns the present probability.
    pub const fn probability(&self) -> f64 {
        self.p
    }

    /// Returns the expected number of arrivals in this interval and in the next interval.
    pub const fn predicted(&self) -> (f64, f64) {
        self.predicted
    }

    fn amount(&self, packets: f64, bytes: f64) -> f64 {
        if self.config.bytes { bytes / f64::from(self.config.mean_packet_size) } else { packets }
    }
}

/// Returns the drop probability for a queue, the expected arrivals of two intervals, and the link's capacity per interval. All
/// amounts are in packets.
pub fn probability(config: &Config, queue: f64, expected: (f64, f64), capacity: f64) -> f64 {
    let x = queue + expected.0 - capacity - config.target;
    let problem = Problem { x, y: expected.1 - capacity, f: expected, b: (config.b0, config.b1) };
    if expected.0 < 1.0 {
        return 0.0;
    }
    (problem.solve(config.solution).0 / expected.0).clamp(0.0, 1.0)
}

impl Discipline for Paqm {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        self.arrived += self.amount(1.0, f64::from(offer.size));
        if offer.waiting >= self.config.limit {
            return Decision::Drop(DropCause::Overflow);
        }
        if rng.chance(self.p) { offer.warned(self.config.ecn) } else { Decision::Accept }
    }

    fn set_rate(&mut self, rate: Rate) {
        let packets = crate::packets_per_second(rate, self.config.mean_packet_size);
        self.capacity = packets * self.config.interval.as_secs_f64();
    }

    fn timer(&self) -> Time {
        self.ticks.next()
    }

    fn on_timer(&mut self, queue: &Offer) {
        self.ticks.advance();
        self.history.push(std::mem::take(&mut self.arrived));
        self.predicted = self.history.predict();
        let waiting = self.amount(f64::from(queue.waiting), queue.waiting_bytes as f64);
        self.p = probability(&self.config, waiting, self.predicted, self.capacity);
    }

    fn on_silence(&mut self, until: Time) {
        if self.p == 0.0 && self.arrived == 0.0 && self.history.is_silent() {
            self.ticks.skip_to(until);
        }
    }
}

#[cfg(test)]
mod tests;
