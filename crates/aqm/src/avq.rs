//! Adaptive virtual queue (Kunniyur and Srikant 2001). A virtual queue, which is only a counter, has a service rate slightly
//! below the link's rate. A packet that would overflow the virtual queue is dropped or marked. The service rate adapts so that
//! the arrival rate approaches `gamma` times the link's rate.
//!
//! [`Order::Paper`] updates the virtual rate at every arrival. [`Order::Ns2`] follows ns-2.35: a dropped packet does not count as
//! an arrival and does not update the virtual rate. Paper 002, (5.14), states the adaptation as a differential equation.

use crate::discipline::{Decision, Discipline, DropCause, Offer};
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
        /// Target of the arrival rate, as a share of the link's rate.
        gamma: f64 = 0.98
            => number["gamma", NumberRange::up_to(1.0),
                "target rate of arrivals, as a fraction of the link's rate"];
        /// Adaptation gain of the virtual rate.
        alpha: f64 = 0.15
            => number["alpha", NumberRange::up_to(100.0), "speed of adaptation of the virtual rate"];
        /// Initial virtual rate, as a share of the link's rate (`ecnlim_`).
        initial: f64 = 0.8
            => number["initial", NumberRange::PART, "initial virtual rate, as a fraction of the link's rate"];
        /// Size of the virtual buffer, as a share of the size of the real buffer (`buflim_`).
        buffer: f64 = 1.0
            => number["buffer", NumberRange::up_to(100.0), "virtual buffer, as a fraction of the real one"];
        /// Mean packet size in bytes: the unit of the virtual buffer.
        mean_packet_size: u16 = 1000
            => whole["mean", 1, u16::MAX as u64, "size of a typical packet, in bytes"];
        /// Whether every packet counts as a packet of mean size.
        packets: bool = false => word["packets", "every packet counts as one of mean size"];
        /// Effect of a dropped packet on the virtual rate.
        order: Order = Order::Paper
            => choice["order", { "paper" => Paper, "ns2" => Ns2 },
                "effect of a dropped packet: that of an arrival (paper), or none (ns2); under `ns2` packets that may not be marked pass where others are marked"];
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    /// Values of ns-2, with the paper's order.
    impl Default;

    impl Tabled for Config as "avq" {
        type Built = Box<dyn Discipline>;

        fn build(&self, rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Avq::new(*self, rate))
        }
    }
}

/// Effect of a dropped packet on the virtual rate, and treatment of packets that are not ECN-capable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A dropped packet counts as any other arrival. If ECN-capable packets are marked, other packets are dropped instead.
    Paper,
    /// A dropped packet does not count. If ECN-capable packets are marked, other packets are accepted.
    Ns2,
}

/// The discipline's state, in bytes and seconds.
#[derive(Debug, Clone)]
pub struct Avq {
    config: Config,
    /// The link's rate.
    capacity: f64,
    /// The virtual rate; 0 before the first packet.
    virtual_rate: f64,
    virtual_queue: f64,
    /// Time of the latest service of the virtual queue.
    served: Time,
    /// Time of the latest adaptation of the virtual rate.
    adapted: Option<Time>,
}

impl Avq {
    /// Creates the discipline for a link of this rate.
    pub fn new(config: Config, rate: Rate) -> Avq {
        let capacity = bytes_per_second(rate);
        let virtual_rate = config.initial * capacity;
        Avq { config, capacity, virtual_rate, virtual_queue: 0.0, served: Time::ZERO, adapted: None }
    }

    /// Returns the virtual rate as a share of the link's rate.
    pub fn virtual_share(&self) -> f64 {
        self.virtual_rate / self.capacity
    }

    fn adapt(&mut self, now: Time, size: f64) {
        let Config { alpha, gamma, order, .. } = self.config;
        let elapsed = now.since(self.adapted.unwrap_or(now)).as_secs_f64();
        let grown = self.virtual_rate + alpha * gamma * self.capacity * elapsed;
        // ns-2 limits the sum of the increase and the decrease to the valid range; the paper limits the result of each.
        self.virtual_rate = match order {
            Order::Paper => (grown.min(self.capacity) - alpha * size).max(0.0),
            Order::Ns2 => (grown - alpha * size).clamp(0.0, self.capacity),
        };
        self.adapted = Some(now);
    }
}

impl Discipline for Avq {
    fn on_arrival(&mut self, offer: &Offer, _rng: &mut Rng) -> Decision {
        let Config { limit, buffer, mean_packet_size, packets, order, ecn, .. } = self.config;
        let usual = f64::from(mean_packet_size);
        let size = if packets { usual } else { f64::from(offer.size) };
        let now = offer.now;
        self.adapted.get_or_insert(now);
        let served = self.virtual_rate * now.since(self.served).as_secs_f64();
        self.virtual_queue = (self.virtual_queue - served).max(0.0);
        self.served = now;
        let mut decision = Decision::Accept;
        if self.virtual_queue + size > buffer * f64::from(limit) * usual {
            let passes = ecn && order == Order::Ns2 && !offer.ecn.may_be_marked();
            decision = if passes { Decision::Accept } else { offer.warned(ecn) };
        } else {
            self.virtual_queue += size;
        }
        if !matches!((decision, order), (Decision::Drop(_), Order::Ns2)) {
            self.adapt(now, size);
        }
        if offer.waiting >= limit && !matches!(decision, Decision::Drop(_)) {
            return Decision::Drop(DropCause::Overflow);
        }
        decision
    }

    fn set_rate(&mut self, rate: Rate) {
        let share = self.virtual_share();
        self.capacity = bytes_per_second(rate);
        self.virtual_rate = share * self.capacity;
    }
}

/// Converts a rate to bytes per second. An unlimited rate becomes a very high one.
fn bytes_per_second(rate: Rate) -> f64 {
    (rate.bps() / 8.0).clamp(1e-9, 1e15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;
    use crate::discipline::Ecn;

    /// A link of 1 MB/s transmits a packet of 1000 bytes in a millisecond.
    fn avq(config: Config) -> Avq {
        Avq::new(config, Rate::from_mbps(8.0))
    }

    fn arrives(avq: &mut Avq, micros: u64) -> Decision {
        let now = Time::ZERO + Span::from_micros(micros);
        avq.on_arrival(&Offer { now, ..bench::busy(0) }, &mut Rng::new(1, 1))
    }

    #[test]
    fn virtual_queue_and_rate_match_hand_computed_values() {
        let mut avq = avq(Config { limit: 2, order: Order::Ns2, ..Config::default() });
        assert_eq!(arrives(&mut avq, 0), Decision::Accept);
        // 800000 - 0.15 * 1000.
        assert!((avq.virtual_rate - 799_850.0).abs() < 1e-6 && avq.virtual_queue == 1000.0);
        assert_eq!(arrives(&mut avq, 1000), Decision::Accept);
        // Virtual queue: 1000 - 799.85 + 1000. Virtual rate: 799850 + 0.15 * 0.98 * 1e6 * 0.001 - 150.
        assert!((avq.virtual_queue - 1200.15).abs() < 1e-6 && (avq.virtual_rate - 799_847.0).abs() < 1e-6);
        // The virtual queue would be 1200.15 - 79.98 + 1000, which exceeds 2000. The dropped packet changes nothing.
        assert_eq!(arrives(&mut avq, 1100), Decision::Drop(DropCause::Early));
        assert!((avq.virtual_queue - 1120.1653).abs() < 1e-6 && (avq.virtual_rate - 799_847.0).abs() < 1e-6);
        // The next accepted packet updates the rate for the whole time since the latest accepted packet.
        assert_eq!(arrives(&mut avq, 2000), Decision::Accept);
        assert!((avq.virtual_rate - (799_847.0 + 0.15 * 980.0 - 150.0)).abs() < 1e-6);
    }

    #[test]
    fn paper_order_counts_dropped_packets_as_arrivals() {
        let mut avq = avq(Config { limit: 1, ..Config::default() });
        assert_eq!(arrives(&mut avq, 0), Decision::Accept);
        assert_eq!(arrives(&mut avq, 100), Decision::Drop(DropCause::Early));
        assert!((avq.virtual_rate - (799_850.0 + 0.15 * 98.0 - 150.0)).abs() < 1e-6);
    }

    #[test]
    fn full_virtual_queue_accepts_non_ecn_packets_only_in_ns2_order() {
        for (order, expected) in
            [(Order::Paper, Decision::Drop(DropCause::Early)), (Order::Ns2, Decision::Accept)]
        {
            let mut avq = avq(Config { limit: 1, order, ecn: true, ..Config::default() });
            assert_eq!(arrives(&mut avq, 0), Decision::Accept);
            assert_eq!(arrives(&mut avq, 100), expected);
        }
    }

    #[test]
    fn arrivals_above_gamma_lower_the_virtual_rate() {
        // An arrival every 1.01 ms means an arrival rate of 99 % of the link's rate. This lowers the virtual rate in each of 202
        // s by 0.15 * 0.01 of the link's rate. An arrival every 1.03 ms means 97 %.
        for (gap, expected) in [(1010, 0.49..0.50), (1030, 0.99..1.01)] {
            let mut avq = avq(Config { packets: true, ecn: true, ..Config::default() });
            for arrival in 0..200_000 {
                let now = Time::ZERO + Span::from_micros(gap * arrival);
                let offer = Offer { now, ecn: Ecn::Ect0, ..bench::busy(0) };
                avq.on_arrival(&offer, &mut Rng::new(1, 1));
            }
            assert!(expected.contains(&avq.virtual_share()), "{gap}: {}", avq.virtual_share());
        }
    }
}
