//! Flow random early drop (Lin and Morris 1997): RED that also counts the queued packets of every flow. A flow below its share
//! has no early drops. A flow that does not respond to drops gets "strikes" and is limited to its share.
//!
//! Only flows with waiting packets have records, so the buffer bounds the number of records. The average is updated at arrivals
//! and departures.

use crate::discipline::{Decision, Departure, Discipline, DropCause, Offer, Watches};
use crate::flows::Flows;
use crate::red;
use crate::text::table;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span};

table! {
    /// Parameters. Lengths are in packets.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped.
        limit: u32 = 100 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Lower threshold of the average queue length; also the maximum number of queued packets of a flow ("max_q").
        min_th: f64 = 5.0
            => number["min", NumberRange::POSITIVE,
                "lower threshold, in packets, and maximum number of packets of a flow"];
        /// Upper threshold of the average.
        max_th: f64 = 15.0 => number["max", NumberRange::POSITIVE, "upper threshold, in packets"];
        /// Weight of the queue length in its average.
        w_q: f64 = 0.002
            => number["w", NumberRange::up_to(0.999_999_999), "weight of the queue in its average"];
        /// Probability at the upper threshold.
        max_p: f64 = 0.1 => number["p", NumberRange::up_to(1.0), "probability at the upper threshold"];
        /// Number of packets that every flow may have in the queue ("min_q"; 2 to 4 in the paper).
        min_q: u32 = 2 => whole["share", 1, 1_000_000, "number of packets permitted to every flow"];
        /// Mean packet size in bytes. It determines the number of packets that an idle link would have sent.
        mean_packet_size: u16 = 1000
            => whole["mean", 1, u16::MAX as u64, "size of a typical packet, in bytes"];
        /// Whether ECN-capable packets are marked instead of dropped at random.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    /// The thresholds of the paper's RED.
    impl Default;

    impl Tabled for Config as "fred" {
        type Built = Box<dyn Discipline>;

        fn fits(&self) -> Result<(), String> {
            if self.max_th <= self.min_th {
                return Err(format!("max is {}, but must be above min, {}", self.max_th, self.min_th));
            }
            Ok(())
        }

        fn build(&self, rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Fred::new(*self, rate))
        }
    }
}

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Fred {
    config: Config,
    packets_per_second: f64,
    average: f64,
    /// Number of packets since the last random drop, counting only packets within the share of their flow; `None` below the lower
    /// threshold.
    count: Option<u32>,
    flows: Flows<Record>,
}

/// A flow with waiting packets.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    waiting: u32,
    /// Number of times at which the flow exceeded its limit.
    strikes: u32,
}

impl Fred {
    /// Creates the discipline for a link of this rate.
    pub fn new(config: Config, rate: Rate) -> Fred {
        let packets_per_second = crate::packets_per_second(rate, config.mean_packet_size);
        let flows = Flows::with_room_for(config.limit.min(1000) as usize + 1);
        Fred { config, packets_per_second, average: 0.0, count: None, flows }
    }

    /// Returns the average queue length.
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// Returns the mean number of queued packets per flow ("avgcq").
    fn share(&self) -> f64 {
        (self.average / self.flows.len().max(1) as f64).max(1.0)
    }

    /// Whether a flow with this record exceeds its limit.
    fn is_beyond(&self, record: Record) -> bool {
        let (waiting, share) = (f64::from(record.waiting), self.share());
        let crowded = self.average >= self.config.max_th;
        let most = if crowded { 2.0 } else { self.config.min_th };
        waiting >= most || (crowded && waiting > 2.0 * share) || (waiting >= share && record.strikes > 1)
    }

    /// Whether RED would drop a packet of a flow that is within its share.
    fn random(&mut self, rng: &mut Rng) -> bool {
        let Config { min_th, max_th, max_p, .. } = self.config;
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        self.count = Some(count);
        let p = max_p * (self.average - min_th) / (max_th - min_th);
        let due = f64::from(count) * p;
        let spread = if due < 1.0 { p / (1.0 - due) } else { 1.0 };
        let drop = rng.chance(spread);
        if drop {
            self.count = Some(0);
        }
        drop
    }
}

impl Discipline for Fred {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        let Config { limit, min_th, max_th, w_q, min_q, ecn, .. } = self.config;
        if let Some(since) = offer.idle_since {
            let slots = self.packets_per_second * offer.now.since(since).as_secs_f64();
            self.average *= red::power(1.0 - w_q, slots as u32);
        }
        self.average += w_q * (f64::from(offer.waiting) - self.average);
        let record = self.flows.get(offer.flow).copied().unwrap_or_default();
        if self.is_beyond(record) {
            if record.waiting > 0 {
                self.flows.entry(offer.flow).strikes += 1;
            }
            return Decision::Drop(DropCause::Early);
        }
        let mut decision = Decision::Accept;
        if self.average >= max_th {
            self.count = Some(0);
            return Decision::Drop(DropCause::Overflow);
        } else if self.average >= min_th {
            if f64::from(record.waiting) >= f64::from(min_q).max(self.share()) && self.random(rng) {
                decision = offer.warned(ecn);
            }
        } else {
            self.count = None;
        }
        if offer.waiting >= limit {
            return Decision::Drop(DropCause::Overflow);
        }
        if !matches!(decision, Decision::Drop(_)) {
            self.flows.entry(offer.flow).waiting += 1;
        }
        decision
    }

    fn set_rate(&mut self, rate: Rate) {
        self.packets_per_second = crate::packets_per_second(rate, self.config.mean_packet_size);
    }

    fn watches(&self) -> Watches {
        Watches::Departures
    }

    fn on_departure(&mut self, departure: &Departure) {
        self.average += self.config.w_q * (f64::from(departure.waiting) - self.average);
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
    use faircast_core::time::Time;

    fn fred() -> Fred {
        Fred::new(Config { w_q: 1e-9, ..Config::default() }, Rate::from_mbps(8.0))
    }

    fn with(average: f64, flows: &[(u32, u32)]) -> Fred {
        let mut fred = Fred { average, ..fred() };
        for (flow, waiting) in flows {
            fred.flows.entry(*flow).waiting = *waiting;
        }
        fred
    }

    fn arrives(fred: &mut Fred, flow: u32) -> Decision {
        fred.on_arrival(&Offer { flow, ..bench::busy(8) }, &mut Rng::new(1, 1))
    }

    #[test]
    fn packet_of_a_flow_at_min_th_is_dropped_and_counts_as_a_strike() {
        let mut fred = with(3.0, &[(1, 4), (2, 5)]);
        assert_eq!(arrives(&mut fred, 1), Decision::Accept);
        assert_eq!(arrives(&mut fred, 1), Decision::Drop(DropCause::Early));
        assert_eq!(arrives(&mut fred, 2), Decision::Drop(DropCause::Early));
        assert_eq!(fred.flows.get(2).expect("it has packets").strikes, 1);
    }

    #[test]
    fn flow_with_two_strikes_is_limited_to_its_share() {
        // Four flows have 8 packets in the queue, so the share is 2.
        let mut fred = with(8.0, &[(1, 2), (2, 2), (3, 2), (4, 2)]);
        fred.flows.entry(1).strikes = 2;
        assert_eq!(arrives(&mut fred, 1), Decision::Drop(DropCause::Early));
        assert_eq!(fred.flows.get(1).expect("it has packets").strikes, 3);
        assert_eq!(arrives(&mut fred, 5), Decision::Accept, "a new flow has nothing");
    }

    #[test]
    fn flow_below_its_share_has_no_drops_between_the_thresholds() {
        let mut fred = with(14.9, &[(1, 1), (2, 13)]);
        for _ in 0..200 {
            assert_eq!(arrives(&mut fred, 1), Decision::Accept);
            fred.on_departure(&Departure {
                at: Time::ZERO,
                flow: 1,
                size: 1000,
                waiting: 8,
                waiting_bytes: 8000,
            });
        }
    }

    #[test]
    fn flow_record_is_removed_with_its_last_packet() {
        let mut fred = with(0.0, &[]);
        assert_eq!(arrives(&mut fred, 7), Decision::Accept);
        assert_eq!(fred.flows.len(), 1);
        fred.on_departure(&Departure { at: Time::ZERO, flow: 7, size: 1000, waiting: 0, waiting_bytes: 0 });
        assert_eq!(fred.flows.len(), 0);
    }
}
