//! Stabilized RED (Ott, Lakshman and Wong 1999): the number of flows is estimated from a list of recently seen flows. The
//! probability of a drop follows from this number and from the length of the queue. No average of the queue is computed.
//!
//! Every arrival is compared with a random entry of the list. With N equal flows, the arrival and the entry belong to the same
//! flow (a hit) with probability 1/N. Therefore, the inverse of the hit frequency estimates N.

use crate::discipline::{Decision, Discipline, DropCause, Offer};
use crate::text::table;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span};

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped ("B").
        limit: u32 = 100 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Length of the list ("M").
        list: u32 = 1000 => whole["list", 1, 1_000_000, "number of entries in the list of recent flows"];
        /// Weight of an arrival in the hit frequency ("alpha"; paper 002, 5.5: 0.001).
        alpha: f64 = 0.001
            => number["alpha", NumberRange::up_to(1.0), "weight of an arrival in the hit frequency"];
        /// Probability that an entry is overwritten after a comparison without a hit.
        replace: f64 = 0.25
            => number["replace", NumberRange::PART, "probability that an entry without a hit is overwritten"];
        /// Probability of a drop if at least a third of the buffer is used and there are at least `flows` flows ("pmax").
        max_p: f64 = 0.15
            => number["p", NumberRange::up_to(1.0),
                "probability from a third of the buffer on, with few flows"];
        /// Number of flows above which the probability stays constant.
        flows: f64 = 256.0
            => number["flows", NumberRange::POSITIVE, "number of flows from which on `p` applies"];
        /// Variant of the algorithm.
        mode: Mode = Mode::Full
            => choice["mode", { "simple" => Simple, "full" => Full, "drcl" => Drcl },
                "whether hits are dropped more often; drcl: a third of the buffer in place of `flows`"];
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    /// Values of paper 002. Values that this paper does not give are from the paper about SRED.
    impl Default;

    impl Tabled for Config as "sred" {
        type Built = Box<dyn Discipline>;

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Sred::new(*self))
        }
    }
}

/// Computation of the probability from the hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// From the hit frequency alone.
    Simple,
    /// From the hit frequency. The probability is larger for a packet that was a hit.
    Full,
    /// Like `Full`, but a third of the buffer replaces [`Config::flows`], as in the DRCL simulator.
    Drcl,
}

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Sred {
    config: Config,
    /// Recently seen flows. The counts of SRED's list entries are not stored, because the algorithm does not use them.
    list: Vec<u32>,
    /// The hit frequency ("P").
    frequency: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hit {
    Yes,
    No,
}

impl Sred {
    /// Creates the discipline with an empty list.
    pub fn new(config: Config) -> Sred {
        Sred { config, list: Vec::with_capacity(config.list as usize), frequency: 0.0 }
    }

    /// Returns the estimated number of flows; infinite before the first hit.
    pub fn flows(&self) -> f64 {
        1.0 / self.frequency
    }

    fn look_up(&mut self, flow: u32, rng: &mut Rng) -> Hit {
        if self.list.len() < self.config.list as usize {
            self.list.push(flow);
            return Hit::No;
        }
        let place = rng.below(self.list.len() as u64) as usize;
        if self.list[place] == flow {
            return Hit::Yes;
        }
        if rng.chance(self.config.replace) {
            self.list[place] = flow;
        }
        Hit::No
    }

    /// Returns the probability that follows from the use of the buffer alone (p_sred).
    fn of_buffer(&self, waiting: u32) -> f64 {
        let (queue, buffer) = (f64::from(waiting), f64::from(self.config.limit));
        match () {
            () if queue >= buffer / 3.0 => self.config.max_p,
            () if queue >= buffer / 6.0 => self.config.max_p / 4.0,
            () => 0.0,
        }
    }

    /// Returns the probability for a packet that arrives at this queue (p_zap).
    fn probability(&self, waiting: u32, hit: Hit) -> f64 {
        let flows = match self.config.mode {
            Mode::Simple | Mode::Full => self.config.flows,
            Mode::Drcl => f64::from(self.config.limit) / 3.0,
        };
        let share = (1.0 / (flows * self.frequency).powi(2)).min(1.0);
        let p = self.of_buffer(waiting) * share;
        match (self.config.mode, hit) {
            (Mode::Full | Mode::Drcl, Hit::Yes) if self.frequency > 0.0 => p * (1.0 + 1.0 / self.frequency),
            _ => p,
        }
    }
}

impl Discipline for Sred {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        let hit = self.look_up(offer.flow, rng);
        let Config { alpha, ecn, limit, .. } = self.config;
        self.frequency += alpha * (f64::from(u8::from(hit == Hit::Yes)) - self.frequency);
        let p = self.probability(offer.waiting, hit);
        let decision = if rng.chance(p) { offer.warned(ecn) } else { Decision::Accept };
        match decision {
            Decision::Accept | Decision::Mark if offer.waiting >= limit => {
                Decision::Drop(DropCause::Overflow)
            }
            decision => decision,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;

    #[test]
    fn inverse_hit_frequency_estimates_the_number_of_flows() {
        for flows in [2, 10, 50, 200] {
            let mut sred = Sred::new(Config { max_p: 1e-9, ..Config::default() });
            let mut rng = Rng::new(flows, 1);
            let mut mean = 0.0;
            for arrival in 0..200_000 {
                let flow = rng.below(flows) as u32;
                sred.on_arrival(&Offer { flow, ..bench::busy(0) }, &mut rng);
                mean += if arrival < 20_000 { 0.0 } else { sred.frequency / 180_000.0 };
            }
            assert!((1.0 / mean / flows as f64 - 1.0).abs() < 0.2, "{flows}: {}", 1.0 / mean);
        }
    }

    #[test]
    fn drop_probability_matches_hand_computed_values() {
        let sred = Sred { frequency: 0.01, ..Sred::new(Config { limit: 60, ..Config::default() }) };
        // 1 / (256 * 0.01)^2 = 0.152588.
        assert!((sred.probability(20, Hit::No) - 0.15 * 0.152_587_890_625).abs() < 1e-12);
        assert!((sred.probability(19, Hit::No) - 0.0375 * 0.152_587_890_625).abs() < 1e-12);
        assert_eq!(sred.probability(9, Hit::No), 0.0);
        assert!((sred.probability(20, Hit::Yes) - 101.0 * 0.15 * 0.152_587_890_625).abs() < 1e-9);
        let drcl = Sred { config: Config { mode: Mode::Drcl, ..sred.config }, ..sred.clone() };
        assert_eq!(drcl.probability(20, Hit::No), 0.15, "1 / (20 * 0.01)^2 is 25");
        let simple = Sred { config: Config { mode: Mode::Simple, ..sred.config }, ..sred.clone() };
        assert_eq!(simple.probability(20, Hit::Yes), simple.probability(20, Hit::No));
    }

    #[test]
    fn probability_without_hits_assumes_very_many_flows() {
        let sred = Sred::new(Config::default());
        assert_eq!(sred.probability(40, Hit::No), 0.15);
    }
}
