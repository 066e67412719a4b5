//! Stochastic fair BLUE (Feng, Kandlur, Saha and Shin 1999). There are several levels of bins, and each bin runs BLUE. In each
//! level, a hash assigns a flow to a bin. The drop probability of a flow's packets is the smallest probability among the flow's
//! bins. A flow whose bins all have probability 1 counts as unresponsive and gets a small rate.
//!
//! The constants are those of Linux (`sch_sfb`). Unlike in Linux, the hashes do not change over time.

use crate::discipline::{Decision, Departure, Discipline, DropCause, Offer, Watches};
use crate::text::table;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span, Time};

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped.
        limit: u32 = 100 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Levels of bins ("L").
        levels: u32 = 2 => whole["levels", 1, 16, "number of levels of bins"];
        /// Bins of a level ("N").
        bins: u32 = 23 => whole["bins", 1, 65536, "number of bins per level"];
        /// Number of packets in a bin from which on the bin's probability grows.
        size: u32 = 20
            => whole["size", 1, u32::MAX as u64, "packets in a bin from which on its probability grows"];
        /// Increase of a bin's probability at an arrival that finds at least `size` packets in the bin ("d1").
        increase: f64 = 0.001
            => number["increase", NumberRange::up_to(1.0),
                "increase of the probability at an arrival at a full bin"];
        /// Decrease of a bin's probability at an arrival that finds the bin empty ("d2").
        decrease: f64 = 0.00017
            => number["decrease", NumberRange::up_to(1.0),
                "decrease of the probability at an arrival at an empty bin"];
        /// Rate of all unresponsive flows together, in packets per second.
        penalty: f64 = 10.0
            => number["penalty", NumberRange::of(0.0, 1e9),
                "packets per second of all unresponsive flows together"];
        /// Whether ECN-capable packets are marked instead of dropped at random.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    impl Default;

    impl Tabled for Config as "sfb" {
        type Built = Box<dyn Discipline>;

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Sfb::new(*self))
        }
    }
}

/// Maximum number of packets that unresponsive flows may send together after a silence.
const PENALTY_BURST: f64 = 20.0;

/// A bin.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    waiting: u32,
    p: f64,
}

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Sfb {
    config: Config,
    /// The bins, level by level.
    bins: Vec<Bin>,
    /// Tokens that unresponsive flows share, in packets.
    tokens: f64,
    counted_at: Time,
}

impl Sfb {
    /// Creates the discipline with probability zero in all bins.
    pub fn new(config: Config) -> Sfb {
        let bins = vec![Bin::default(); config.levels as usize * config.bins as usize];
        Sfb { config, bins, tokens: PENALTY_BURST, counted_at: Time::ZERO }
    }

    /// Returns the index of a flow's bin in a level. Each level has a different hash.
    fn place(&self, flow: u32, level: u32) -> usize {
        // The finalizer of SplitMix64.
        let mut hash = (u64::from(flow) | u64::from(level + 1) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        level as usize * self.config.bins as usize + (hash % u64::from(self.config.bins)) as usize
    }

    /// Returns the flow's probability.
    pub fn probability(&self, flow: u32) -> f64 {
        (0..self.config.levels).map(|level| self.bins[self.place(flow, level)].p).fold(1.0, f64::min)
    }

    /// Updates the bins of a flow at an arrival. Returns the flow's probability.
    fn learn(&mut self, flow: u32) -> f64 {
        let Config { size, increase, decrease, levels, .. } = self.config;
        for level in 0..levels {
            let place = self.place(flow, level);
            let bin = &mut self.bins[place];
            if bin.waiting >= size {
                bin.p = (bin.p + increase).min(1.0);
            } else if bin.waiting == 0 {
                bin.p = (bin.p - decrease).max(0.0);
            }
        }
        self.probability(flow)
    }

    /// Whether an unresponsive flow may send a packet now.
    fn spares(&mut self, now: Time) -> bool {
        let since = now.since(self.counted_at).as_secs_f64();
        self.tokens = (self.tokens + since * self.config.penalty).min(PENALTY_BURST);
        self.counted_at = now;
        let spares = self.tokens >= 1.0;
        if spares {
            self.tokens -= 1.0;
        }
        spares
    }
}

impl Discipline for Sfb {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        let p = self.learn(offer.flow);
        if offer.waiting >= self.config.limit {
            return Decision::Drop(DropCause::Overflow);
        }
        if p >= 1.0 && !self.spares(offer.now) {
            return Decision::Drop(DropCause::Early);
        }
        let decision =
            if p < 1.0 && rng.chance(p) { offer.warned(self.config.ecn) } else { Decision::Accept };
        if !matches!(decision, Decision::Drop(_)) {
            for level in 0..self.config.levels {
                let place = self.place(offer.flow, level);
                self.bins[place].waiting += 1;
            }
        }
        decision
    }

    fn watches(&self) -> Watches {
        Watches::Departures
    }

    fn on_departure(&mut self, departure: &Departure) {
        for level in 0..self.config.levels {
            let place = self.place(departure.flow, level);
            self.bins[place].waiting = self.bins[place].waiting.saturating_sub(1);
        }
    }

    fn on_flush(&mut self) {
        self.bins.iter_mut().for_each(|bin| bin.waiting = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;

    fn arrive(sfb: &mut Sfb, flow: u32, rng: &mut Rng) -> Decision {
        sfb.on_arrival(&Offer { flow, ..bench::busy(30) }, rng)
    }

    #[test]
    fn probability_grows_in_full_bins_and_shrinks_in_empty_bins() {
        let mut sfb = Sfb::new(Config { size: 3, increase: 0.25, decrease: 0.5, ..Config::default() });
        let mut rng = Rng::new(1, 1);
        (0..3).for_each(|_| assert_eq!(arrive(&mut sfb, 7, &mut rng), Decision::Accept));
        assert_eq!(sfb.probability(7), 0.0, "three wait, and the third found two");
        arrive(&mut sfb, 7, &mut rng);
        assert_eq!(sfb.probability(7), 0.25);
        let at = bench::busy(0).now;
        (0..4).for_each(|_| {
            sfb.on_departure(&Departure { at, flow: 7, size: 1000, waiting: 0, waiting_bytes: 0 })
        });
        arrive(&mut sfb, 7, &mut rng);
        assert_eq!(sfb.probability(7), 0.0);
    }

    #[test]
    fn only_unresponsive_flows_are_limited() {
        let mut sfb = Sfb::new(Config { size: 3, increase: 0.25, ..Config::default() });
        let mut rng = Rng::new(1, 1);
        (0..40).for_each(|_| _ = arrive(&mut sfb, 7, &mut rng));
        assert_eq!(sfb.probability(7), 1.0);
        let passed = (0..100).filter(|_| arrive(&mut sfb, 7, &mut rng) == Decision::Accept).count();
        assert!(passed <= PENALTY_BURST as usize, "{passed} at one moment");
        let others = (100..130).filter(|flow| sfb.probability(*flow) == 0.0).count();
        assert!(others >= 25, "one bin of 23 in each of two levels is bad: {others} of 30 are free");
        let free: Vec<u32> = (100..130).filter(|flow| sfb.probability(*flow) == 0.0).collect();
        assert!(free.iter().all(|flow| arrive(&mut sfb, *flow, &mut rng) == Decision::Accept));
    }

    #[test]
    fn flow_has_probability_one_only_if_its_bins_of_both_levels_do() {
        let mut sfb = Sfb::new(Config { size: 1, increase: 1.0, bins: 4, ..Config::default() });
        let mut rng = Rng::new(1, 1);
        (0..2).for_each(|_| _ = arrive(&mut sfb, 7, &mut rng));
        let shares = |level| (0..1000).filter(|flow| sfb.place(*flow, level) == sfb.place(7, level)).count();
        let bad = (0..1000).filter(|flow| sfb.probability(*flow) == 1.0).count();
        assert!((200..300).contains(&shares(0)) && (200..300).contains(&shares(1)));
        assert!((40..90).contains(&bad), "a sixteenth of the flows: {bad}");
    }
}
