//! BRED, balanced RED (Anjum and Tassiulas 1999). Every flow with packets in the queue has its own thresholds, computed from the
//! buffer and the number of these flows. The thresholds balance the flows' shares of the queue, and with them the flows' rates.

use crate::discipline::{Decision, Departure, Discipline, DropCause, Offer, Watches};
use crate::flows::Flows;
use crate::text::table;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span};

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped.
        limit: u32 = 100 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Probability between the first two thresholds ("p1").
        first: f64 = 0.1
            => number["first", NumberRange::of(0.0, 1.0),
                "probability of a drop from half of a flow's share on"];
        /// Probability of a drop or mark between the second and the third threshold ("p2").
        second: f64 = 0.5
            => number["second", NumberRange::of(0.0, 1.0),
                "probability of a drop from a flow's whole share on; from twice the share on all packets are dropped"];
        /// Whether ECN-capable packets are marked instead of dropped at random.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    impl Default;

    impl Tabled for Config as "bred" {
        type Built = Box<dyn Discipline>;

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Bred::new(*self))
        }
    }
}

/// A flow with waiting packets.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    waiting: u32,
    /// Packets accepted since the latest drop ("gap").
    gap: u32,
}

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Bred {
    config: Config,
    flows: Flows<Record>,
}

impl Bred {
    /// Creates the discipline without flows.
    pub fn new(config: Config) -> Bred {
        Bred { config, flows: Flows::with_room_for(config.limit.min(1000) as usize + 1) }
    }

    /// Returns the three thresholds in packets: half of a flow's share of the buffer, the share, and twice the share. They are at
    /// least 1, 2 and 4.
    fn thresholds(&self) -> [f64; 3] {
        let share = f64::from(self.config.limit) / self.flows.len().max(1) as f64;
        [(share / 2.0).max(1.0), share.max(2.0), (2.0 * share).max(4.0)]
    }
}

impl Discipline for Bred {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        let Config { limit, first, second, ecn } = self.config;
        if offer.waiting >= limit {
            return Decision::Drop(DropCause::Overflow);
        }
        let [low, middle, high] = self.thresholds();
        let record = self.flows.get(offer.flow).copied().unwrap_or_default();
        let (waiting, gap) = (f64::from(record.waiting), f64::from(record.gap));
        let decision = match () {
            () if waiting >= high => Decision::Drop(DropCause::Early),
            () if waiting >= middle && gap > middle && rng.chance(second) => offer.warned(ecn),
            () if waiting >= low && waiting < middle && gap > low && rng.chance(first) => offer.warned(ecn),
            () => Decision::Accept,
        };
        if record.waiting == 0 && matches!(decision, Decision::Drop(_)) {
            return decision; // no record for a flow without packets
        }
        let record = self.flows.entry(offer.flow);
        record.gap = if decision == Decision::Accept { record.gap.saturating_add(1) } else { 0 };
        record.waiting += u32::from(!matches!(decision, Decision::Drop(_)));
        decision
    }

    fn watches(&self) -> Watches {
        Watches::Departures
    }

    fn on_departure(&mut self, departure: &Departure) {
        let record = self.flows.entry(departure.flow);
        record.waiting = record.waiting.saturating_sub(1);
        if record.waiting == 0 {
            self.flows.remove(departure.flow);
        }
    }

    fn on_flush(&mut self) {
        self.flows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;

    fn arrive(bred: &mut Bred, flow: u32, waiting: u32, rng: &mut Rng) -> Decision {
        bred.on_arrival(&Offer { flow, ..bench::busy(waiting) }, rng)
    }

    #[test]
    fn thresholds_are_shares_of_the_buffer_with_a_minimum() {
        let mut bred = Bred::new(Config::default());
        let mut rng = Rng::new(1, 1);
        assert_eq!(bred.thresholds(), [50.0, 100.0, 200.0]);
        (0..10).for_each(|flow| _ = arrive(&mut bred, flow, flow, &mut rng));
        assert_eq!(bred.thresholds(), [5.0, 10.0, 20.0], "ten flows");
        (10..80).for_each(|flow| _ = arrive(&mut bred, flow, flow, &mut rng));
        assert_eq!(bred.thresholds(), [1.0, 2.0, 4.0]);
    }

    #[test]
    fn flow_is_limited_to_twice_its_share_without_loss_to_others() {
        let mut bred = Bred::new(Config { first: 0.0, second: 0.0, ..Config::default() });
        let mut rng = Rng::new(1, 1);
        (1..10).for_each(|flow| _ = arrive(&mut bred, flow, flow, &mut rng));
        let accepted = (0..60).filter(|_| arrive(&mut bred, 0, 30, &mut rng) == Decision::Accept).count();
        assert_eq!(accepted, 20, "ten flows share a hundred packets");
        assert_eq!(arrive(&mut bred, 1, 30, &mut rng), Decision::Accept);
    }

    #[test]
    fn random_drops_are_separated_by_more_than_the_threshold() {
        let mut bred = Bred::new(Config { first: 1.0, second: 1.0, ..Config::default() });
        let mut rng = Rng::new(1, 1);
        (1..10).for_each(|flow| _ = arrive(&mut bred, flow, flow, &mut rng));
        // The thresholds are 5, 10 and 20 packets. The seventh packet is dropped: before it, more than five packets were
        // accepted, and more than five packets wait.
        let fates: Vec<bool> =
            (0..12).map(|_| arrive(&mut bred, 0, 20, &mut rng) == Decision::Accept).collect();
        let dropped: Vec<usize> =
            fates.iter().enumerate().filter(|(_, fate)| !**fate).map(|(n, _)| n).collect();
        assert_eq!(dropped, [6]);
    }

    #[test]
    fn flow_without_queued_packets_is_not_counted() {
        let mut bred = Bred::new(Config::default());
        let mut rng = Rng::new(1, 1);
        (0..2).for_each(|flow| _ = arrive(&mut bred, flow, flow, &mut rng));
        assert_eq!(bred.thresholds()[1], 50.0);
        let at = bench::busy(1).now;
        bred.on_departure(&Departure { at, flow: 1, size: 1000, waiting: 1, waiting_bytes: 1000 });
        assert_eq!(bred.thresholds()[1], 100.0);
    }
}
