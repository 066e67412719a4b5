//! COBALT, the discipline of CAKE's queues (Palmei and others 2019; Linux, `sch_cake`). COBALT combines two disciplines: CoDel,
//! whose drop count decreases gradually when delays fall, and BLUE for unresponsive flows.
//!
//! The probability of BLUE grows when the buffer overflows or delays are very long, and falls when the queue is empty. BLUE drops
//! packets and never marks them. All flows share one queue.

use crate::codel;
use crate::discipline::{Decision, DropCause, Offer};
use crate::limit::{self, Limit};
use crate::qdisc::{Dropped, PacketQueue, Qdisc, Queued, Sent, Ticket};
use crate::text::table;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span, Time};

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Acceptable time in the queue.
        target: Span = Span::from_millis(5)
            => seconds["target", NumberRange::up_to(1.0), "acceptable time in the queue"];
        /// Duration for which delays may exceed the target before the first drop.
        interval: Span = Span::from_millis(100)
            => seconds["interval", NumberRange::up_to(100.0), "time above the target before the first drop"];
        /// Buffer, without the packet in transmission.
        limit: Limit = Limit::Packets(1000)
            => option[limit::option!("buffer, without the packet in transmission")];
        /// Number of events that raise BLUE's probability from 0 to 1. An event is an overflow, or a packet with a delay longer
        /// than `blue`.
        rise: u32 = 256
            => whole["rise", 1, 1_000_000, "number of overflows that raise BLUE's probability from 0 to 1"];
        /// Number of times at which the queue is found empty until BLUE's probability has fallen from 1 to 0.
        fall: u32 = 4096
            => whole["fall", 1, 1_000_000,
                "number of times that the queue is empty until BLUE's probability is 0 again"];
        /// Delay above which BLUE's probability grows.
        blue: Span = Span::from_millis(400)
            => seconds["blue", NumberRange::up_to(100.0),
                "time in the queue from which on BLUE's probability also grows"];
        /// Whether CoDel marks ECN-capable packets instead of dropping them.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    /// Values of CAKE and ns-3; a buffer of 1000 packets.
    impl Default;

    impl Tabled for Config as "cobalt" {
        type Built = Box<dyn Qdisc>;

        fn fits(&self) -> Result<(), String> {
            codel::below(self.target, self.interval)
        }

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Qdisc> {
            Box::new(Cobalt::new(*self))
        }
    }
}

/// The discipline's state.
#[derive(Debug)]
pub struct Cobalt {
    config: Config,
    packets: PacketQueue,
    state: State,
    /// Drop count of CoDel. The time between two drops is `interval / sqrt(count)`.
    count: u32,
    /// Time at which CoDel drops a packet or decreases the count next.
    due: Time,
    /// BLUE's probability.
    p: f64,
    /// Earliest time of the next change.
    frozen_until: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Dropping,
}

/// Verdict on the oldest packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Goes,
    Marked,
    Dropped,
}

impl Cobalt {
    /// Creates an empty queue.
    pub fn new(config: Config) -> Cobalt {
        Cobalt {
            config,
            packets: PacketQueue::default(),
            state: State::Idle,
            count: 0,
            due: Time::ZERO,
            p: 0.0,
            frozen_until: Time::ZERO,
        }
    }

    /// Returns BLUE's probability.
    pub const fn probability(&self) -> f64 {
        self.p
    }

    fn after(&self, from: Time) -> Time {
        let apart = self.config.interval.as_secs_f64() / f64::from(self.count.max(1)).sqrt();
        from + Span::from_secs_f64(apart)
    }

    fn move_probability(&mut self, now: Time, by: f64) {
        if now > self.frozen_until {
            self.p = (self.p + by).clamp(0.0, 1.0);
            self.frozen_until = now + self.config.target;
        }
    }

    fn overflows(&mut self, now: Time) {
        self.move_probability(now, 1.0 / f64::from(self.config.rise));
        (self.state, self.due) = (State::Dropping, now);
        self.count = self.count.max(1);
    }

    fn is_empty_at(&mut self, now: Time) {
        if self.p > 0.0 {
            self.move_probability(now, -1.0 / f64::from(self.config.fall));
        }
        self.state = State::Idle;
        if self.count > 0 && now >= self.due {
            self.count -= 1;
            self.due = self.after(self.due);
        }
    }

    fn judge(&mut self, packet: &Queued, now: Time, rng: &mut Rng) -> Verdict {
        let sojourn = now.since(packet.since);
        let was_due = self.count > 0 && now >= self.due;
        if sojourn > self.config.target {
            if self.state == State::Idle {
                self.state = State::Dropping;
                self.due = self.after(now);
            }
            self.count = self.count.max(1);
        } else {
            self.state = State::Idle;
        }
        let mut verdict = Verdict::Goes;
        if was_due && self.state == State::Dropping {
            verdict = if self.config.ecn && packet.ecn.may_be_marked() {
                Verdict::Marked
            } else {
                Verdict::Dropped
            };
            self.count = self.count.saturating_add(1);
            self.due = self.after(self.due);
        } else {
            let mut due = was_due;
            while due {
                self.count -= 1;
                self.due = self.after(self.due);
                due = self.count > 0 && now >= self.due;
            }
        }
        if sojourn > self.config.blue {
            self.move_probability(now, 1.0 / f64::from(self.config.rise));
        }
        if self.p > 0.0 && rng.chance(self.p) {
            verdict = Verdict::Dropped;
        }
        if self.count == 0 {
            self.due = now + self.config.interval;
        } else if now > self.due && verdict != Verdict::Dropped {
            self.due = now;
        }
        verdict
    }
}

impl Qdisc for Cobalt {
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        _rng: &mut Rng,
        _dropped: &mut Vec<Dropped>,
    ) -> Decision {
        let (packets, bytes) = self.packets.backlog();
        if !self.config.limit.has_room(packets, bytes, offer.size) {
            self.overflows(offer.now);
            return Decision::Drop(DropCause::Overflow);
        }
        self.packets.push(Queued::new(offer, ticket));
        Decision::Accept
    }

    fn dequeue(&mut self, now: Time, rng: &mut Rng, dropped: &mut Vec<Dropped>) -> Option<Sent> {
        while let Some(packet) = self.packets.pop() {
            match self.judge(&packet, now, rng) {
                Verdict::Dropped => dropped.push(Dropped { ticket: packet.ticket, cause: DropCause::Early }),
                verdict => return Some(Sent { ticket: packet.ticket, marked: verdict == Verdict::Marked }),
            }
        }
        self.is_empty_at(now);
        None
    }

    fn backlog(&self) -> (u32, u64) {
        self.packets.backlog()
    }

    fn flush(&mut self, lost: &mut Vec<Ticket>) {
        self.packets.flush(lost);
    }

    fn on_idle(&mut self, since: Time) {
        self.is_empty_at(since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;
    use crate::discipline::Ecn;

    fn millis(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn filled(config: Config, packets: u32, at: Time) -> Cobalt {
        let mut cobalt = Cobalt::new(config);
        for ticket in 0..packets {
            let offer = Offer { now: at, ecn: Ecn::Ect0, ..bench::busy(0) };
            cobalt.enqueue(&offer, Ticket(ticket), &mut Rng::new(1, 1), &mut Vec::new());
        }
        cobalt
    }

    /// Returns the times of drops and marks in milliseconds. A packet departs every millisecond.
    fn events(cobalt: &mut Cobalt, from: u64, to: u64) -> Vec<u64> {
        let (mut events, mut dropped) = (Vec::new(), Vec::new());
        for at in from..to {
            let sent =
                cobalt.dequeue(millis(at), &mut Rng::new(1, 1), &mut dropped).expect("there are enough");
            events.extend(dropped.drain(..).map(|_| at));
            events.extend(sent.marked.then_some(at));
        }
        events
    }

    #[test]
    fn drop_intervals_shrink_with_the_square_root_of_the_count() {
        let config = Config { blue: Span::from_secs(100), ..Config::default() };
        let mut cobalt = filled(config, 1000, Time::ZERO);
        // The first packet with a delay above the target departs at 6 ms, so the first drop is at 106 ms. The times between the
        // next drops are 100 / sqrt(2), 100 / sqrt(3), 50 ms, and so on.
        let by_hand = [106.0, 176.711, 234.446, 284.446, 329.167];
        let by_hand: Vec<u64> = by_hand.iter().map(|at: &f64| at.ceil() as u64).collect();
        assert_eq!(events(&mut cobalt, 0, 331), by_hand);
        let mut marked = filled(Config { ecn: true, ..config }, 1000, Time::ZERO);
        assert_eq!(events(&mut marked, 0, 331), by_hand);
        assert_eq!(marked.backlog().0, 1000 - 331, "nothing was dropped");
    }

    #[test]
    fn drop_count_returns_to_zero_without_load() {
        let mut cobalt = filled(Config { blue: Span::from_secs(100), ..Config::default() }, 1000, Time::ZERO);
        events(&mut cobalt, 0, 331);
        assert_eq!(cobalt.count, 6);
        cobalt.flush(&mut Vec::new());
        for step in 0..100 {
            let now = millis(330 + 10 * step);
            let offer = Offer { now, ..bench::busy(0) };
            cobalt.enqueue(&offer, Ticket(0), &mut Rng::new(1, 1), &mut Vec::new());
            cobalt.dequeue(now, &mut Rng::new(1, 1), &mut Vec::new());
        }
        assert_eq!(cobalt.count, 0);
    }

    #[test]
    fn overflows_raise_the_blue_probability_once_per_target_time() {
        let mut cobalt = filled(Config { limit: Limit::Packets(5), ..Config::default() }, 5, Time::ZERO);
        for at in 1..=20 {
            let offer = Offer { now: millis(at), ..bench::busy(5) };
            let decision = cobalt.enqueue(&offer, Ticket(9), &mut Rng::new(1, 1), &mut Vec::new());
            assert_eq!(decision, Decision::Drop(DropCause::Overflow));
        }
        assert!((cobalt.probability() - 4.0 / 256.0).abs() < 1e-12, "at 1, 7, 13 and 19 ms");
        cobalt.on_idle(millis(100));
        assert!((cobalt.probability() - 4.0 / 256.0 + 1.0 / 4096.0).abs() < 1e-12);
    }
}
