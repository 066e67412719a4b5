//! REM (Athuraliya, Li, Low and Yin 2001), with the arithmetic of ns-2.35. A price grows while arrivals exceed the link's rate or
//! the queue exceeds a target. The probability of a drop or mark is `1 - phi^-price`.
//!
//! ns-2 marks packets at departure and drops them at arrival. [`Marks::Departure`] does the same: the queue then holds its
//! packets, and packets that are not ECN-capable get no early signal. Paper 002, (5.12) and (5.13), defines the same price with
//! other names of the variables.

use crate::any::AnyDiscipline;
use crate::discipline::{Decision, Discipline, DropCause, Offer};
use crate::qdisc::{Dropped, PacketQueue, Qdisc, Queued, Sent, Ticket};
use crate::text::table;
use crate::ticks::Ticks;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span, Time};

table! {
    /// Parameters. Lengths are in packets.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Length of the buffer in packets; an arrival at a full buffer is dropped.
        limit: u32 = 100 => whole["limit", 1, u32::MAX as u64, "buffer, in waiting packets"];
        /// Target of the queue (`pbo_`).
        target: f64 = 20.0
            => number["target", NumberRange::of(0.0, f64::INFINITY), "target queue, in packets"];
        /// Weight of a queued packet relative to an arrival ("alpha"; 0.1 in ns-2).
        alpha: f64 = 0.1
            => number["alpha", NumberRange::of(0.0, 1e3),
                "weight of a waiting packet relative to an arriving one"];
        /// Change of the price per packet.
        gamma: f64 = 0.001 => number["gamma", NumberRange::up_to(1e3), "gain of the price"];
        /// Base of the probability.
        phi: f64 = 1.001 => number["phi", NumberRange::of(1.000_000_001, 1e6), "base of the probability"];
        /// Interval between updates of the price.
        update: Span = Span::from_millis(2)
            => seconds["update", NumberRange::up_to(10.0), "time between two updates of the price"];
        /// Mean packet size in bytes. It converts the link's rate to packets per second.
        mean_packet_size: u16 = 1000
            => whole["mean", 1, u16::MAX as u64, "size of a typical packet, in bytes"];
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
        /// Time of marking.
        marks: Marks = Marks::Arrival
            => choice["marks", { "arrival" => Arrival, "departure" => Departure },
                "time of marks; at departure, packets that may not be marked are not dropped early"];
    }

    /// Values of ns-2.
    impl Default;

    impl Tabled for Config as "rem" {
        type Built = AnyDiscipline;

        fn build(&self, rate: Rate, _delay: Span) -> AnyDiscipline {
            let rem = Rem::new(*self, rate);
            if self.ecn && self.marks == Marks::Departure {
                let held: Box<dyn Qdisc> = Box::new(MarksAtDeparture { rem, packets: PacketQueue::default() });
                return held.into();
            }
            let decides: Box<dyn Discipline> = Box::new(rem);
            decides.into()
        }
    }
}

/// Time of marking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// At arrival.
    Arrival,
    /// At departure.
    Departure,
}

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Rem {
    config: Config,
    packets_per_second: f64,
    price: f64,
    /// The probability for the price.
    p: f64,
    /// Number of arrivals since the latest update of the price.
    arrivals: u32,
    ticks: Ticks,
}

impl Rem {
    /// Creates the discipline for a link of this rate.
    pub fn new(config: Config, rate: Rate) -> Rem {
        let packets_per_second = crate::packets_per_second(rate, config.mean_packet_size);
        Rem {
            config,
            packets_per_second,
            price: 0.0,
            p: 0.0,
            arrivals: 0,
            ticks: Ticks::every(config.update),
        }
    }

    /// Returns the present price.
    pub const fn price(&self) -> f64 {
        self.price
    }

    /// Returns the present probability.
    pub const fn probability(&self) -> f64 {
        self.p
    }

    fn update(&mut self, waiting: u32) {
        self.ticks.advance();
        let Config { target, alpha, gamma, phi, .. } = self.config;
        let capacity = self.packets_per_second * self.ticks.period().as_secs_f64();
        let mismatch = f64::from(self.arrivals) + alpha * (f64::from(waiting) - target) - capacity;
        self.price = (self.price + gamma * mismatch).max(0.0);
        self.p = 1.0 - (-self.price * phi.ln()).exp();
        self.arrivals = 0;
    }

    fn rest(&mut self, until: Time) {
        if self.price == 0.0 && self.arrivals == 0 {
            self.ticks.skip_to(until);
        }
    }

    /// Counts an arrival. Returns whether the buffer has room for the packet.
    fn count(&mut self, waiting: u32) -> bool {
        self.arrivals = self.arrivals.saturating_add(1);
        waiting < self.config.limit
    }
}

impl Discipline for Rem {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        if !self.count(offer.waiting) {
            return Decision::Drop(DropCause::Overflow);
        }
        if rng.chance(self.p) { offer.warned(self.config.ecn) } else { Decision::Accept }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.packets_per_second = crate::packets_per_second(rate, self.config.mean_packet_size);
    }

    fn timer(&self) -> Time {
        self.ticks.next()
    }

    fn on_timer(&mut self, queue: &Offer) {
        self.update(queue.waiting);
    }

    fn on_silence(&mut self, until: Time) {
        self.rest(until);
    }
}

/// REM with marks at departure.
#[derive(Debug)]
struct MarksAtDeparture {
    rem: Rem,
    packets: PacketQueue,
}

impl Qdisc for MarksAtDeparture {
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        _rng: &mut Rng,
        _dropped: &mut Vec<Dropped>,
    ) -> Decision {
        if !self.rem.count(offer.waiting) {
            return Decision::Drop(DropCause::Overflow);
        }
        self.packets.push(Queued::new(offer, ticket));
        Decision::Accept
    }

    fn dequeue(&mut self, _now: Time, rng: &mut Rng, _dropped: &mut Vec<Dropped>) -> Option<Sent> {
        let packet = self.packets.pop()?;
        let marked = rng.chance(self.rem.p) && packet.ecn.may_be_marked();
        Some(Sent { ticket: packet.ticket, marked })
    }

    fn backlog(&self) -> (u32, u64) {
        self.packets.backlog()
    }

    fn flush(&mut self, lost: &mut Vec<Ticket>) {
        self.packets.flush(lost);
    }

    fn set_rate(&mut self, rate: Rate) {
        self.rem.set_rate(rate);
    }

    fn timer(&self) -> Time {
        self.rem.ticks.next()
    }

    fn on_timer(&mut self, _now: Time) {
        self.rem.update(self.packets.backlog().0);
    }

    fn on_silence(&mut self, until: Time) {
        self.rem.rest(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;
    use crate::discipline::Ecn;

    fn rem(config: Config) -> Rem {
        Rem::new(config, Rate::from_mbps(8.0)) // 1000 packets a second: 2 in 2 ms
    }

    #[test]
    fn price_matches_hand_computed_values() {
        let mut rem = rem(Config { gamma: 0.5, phi: 2.0, ..Config::default() });
        for _ in 0..5 {
            rem.on_arrival(&bench::busy(30), &mut Rng::new(1, 1));
        }
        // The price becomes 0.5 (5 + 0.1 (30 - 20) - 2) = 2, and the probability 1 - 2^-2.
        rem.on_timer(&bench::busy(30));
        assert!((rem.price() - 2.0).abs() < 1e-12 && (rem.probability() - 0.75).abs() < 1e-12);
        // Without arrivals the price becomes 2 + 0.5 (0 + 0 - 2).
        rem.on_timer(&bench::busy(20));
        assert!((rem.price() - 1.0).abs() < 1e-12 && (rem.probability() - 0.5).abs() < 1e-12);
        rem.on_timer(&bench::busy(0)); // 1 + 0.5 (0 - 2 - 2) is below zero
        assert_eq!((rem.price(), rem.probability()), (0.0, 0.0));
    }

    #[test]
    fn price_is_constant_at_the_target_queue_and_full_rate() {
        let mut rem = Rem { price: 3.0, ..rem(Config::default()) };
        for _ in 0..100 {
            rem.on_arrival(&bench::busy(20), &mut Rng::new(1, 1));
            rem.on_arrival(&bench::busy(20), &mut Rng::new(1, 1));
            rem.on_timer(&bench::busy(20));
        }
        assert!((rem.price() - 3.0).abs() < 1e-9);
    }

    #[test]
    fn ecn_capable_packet_is_marked_when_it_departs_from_the_queue() {
        let config = Config { ecn: true, marks: Marks::Departure, ..Config::default() };
        let mut held =
            MarksAtDeparture { rem: Rem { p: 1.0, ..rem(config) }, packets: PacketQueue::default() };
        let (mut rng, mut dropped) = (Rng::new(1, 1), Vec::new());
        for (ticket, ecn) in [(0, Ecn::Ect0), (1, Ecn::NotEct)] {
            let offer = Offer { ecn, ..bench::busy(0) };
            assert_eq!(held.enqueue(&offer, Ticket(ticket), &mut rng, &mut dropped), Decision::Accept);
        }
        let mut leaves = || held.dequeue(Time::ZERO, &mut rng, &mut dropped).expect("it waits").marked;
        assert_eq!((leaves(), leaves()), (true, false));
    }
}
