//! BLUE (Feng, Kandlur, Saha and Shin 1999). The probability of a drop or mark grows when the queue overflows and shrinks when
//! the link is idle, each at most once per "freeze time". Nothing else changes the probability.

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
        /// Increase of the probability at an overflow ("d1"; paper 002, 5.4, has a single "delta" for the increase and the
        /// decrease).
        increase: f64 = 0.02
            => number["increase", NumberRange::up_to(1.0), "increase of the probability at an overflow"];
        /// Decrease of the probability on an idle link ("d2").
        decrease: f64 = 0.002
            => number["decrease", NumberRange::up_to(1.0), "decrease of the probability on an idle link"];
        /// Minimum time between two changes of the probability.
        freeze: Span = Span::from_millis(100)
            => seconds["freeze", NumberRange::up_to(100.0), "minimum time between two changes"];
        /// Whether ECN-capable packets are marked instead of dropped early.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    impl Default;

    impl Tabled for Config as "blue" {
        type Built = Box<dyn Discipline>;

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Discipline> {
            Box::new(Blue::new(*self))
        }
    }
}

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Blue {
    config: Config,
    p: f64,
    /// Earliest time of the next change.
    frozen_until: Time,
}

impl Blue {
    /// Creates the discipline with probability zero.
    pub const fn new(config: Config) -> Blue {
        Blue { config, p: 0.0, frozen_until: Time::ZERO }
    }

    /// Returns the present probability.
    pub const fn probability(&self) -> f64 {
        self.p
    }

    /// Handles an idle period from `since` to `now`. The probability decreases once at the beginning of the period, or at the end
    /// of the present freeze time. It decreases again after each further freeze time.
    fn idled(&mut self, since: Time, now: Time) {
        let first = self.frozen_until.max(since);
        if first > now || self.p == 0.0 {
            return;
        }
        let freeze = self.config.freeze.as_nanos().max(1);
        let later = now.since(first).as_nanos() / freeze;
        self.p = (self.p - self.config.decrease * (later + 1) as f64).max(0.0);
        self.frozen_until = first + self.config.freeze * (later + 1);
    }
}

impl Discipline for Blue {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        if let Some(since) = offer.idle_since {
            self.idled(since, offer.now);
        }
        if offer.waiting >= self.config.limit {
            if offer.now >= self.frozen_until {
                self.p = (self.p + self.config.increase).min(1.0);
                self.frozen_until = offer.now + self.config.freeze;
            }
            return Decision::Drop(DropCause::Overflow);
        }
        if rng.chance(self.p) { offer.warned(self.config.ecn) } else { Decision::Accept }
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

    #[test]
    fn overflows_within_the_freeze_time_count_once() {
        let mut blue = Blue::new(Config { limit: 10, ..Config::default() });
        for at in 0..250 {
            let full = Offer { now: millis(at), ..bench::busy(10) };
            assert_eq!(blue.on_arrival(&full, &mut Rng::new(1, 1)), Decision::Drop(DropCause::Overflow));
        }
        assert!((blue.probability() - 0.06).abs() < 1e-12, "at 0, 100 and 200 ms");
    }

    #[test]
    fn idle_link_lowers_the_probability_once_per_freeze_time() {
        let mut blue =
            Blue { p: 0.5, ..Blue::new(Config { freeze: Span::from_millis(10), ..Config::default() }) };
        let mut idle = |since, now| {
            let offer = Offer { now: millis(now), idle_since: Some(millis(since)), ..bench::busy(0) };
            blue.on_arrival(&offer, &mut Rng::new(1, 1));
            blue.probability()
        };
        assert!((idle(100, 101) - 0.498).abs() < 1e-12, "at 100 ms");
        assert!((idle(105, 106) - 0.498).abs() < 1e-12, "frozen until 110 ms");
        assert!((idle(108, 135) - 0.492).abs() < 1e-12, "at 110, 120 and 130 ms");
        assert_eq!(idle(200, 20_000), 0.0);
    }

    #[test]
    fn ecn_capable_packets_are_marked() {
        let mut blue = Blue { p: 1.0, ..Blue::new(Config { ecn: true, ..Config::default() }) };
        let offer = Offer { ecn: Ecn::Ect0, ..bench::busy(1) };
        assert_eq!(blue.on_arrival(&offer, &mut Rng::new(1, 1)), Decision::Mark);
        assert_eq!(blue.on_arrival(&bench::busy(1), &mut Rng::new(1, 1)), Decision::Drop(DropCause::Early));
    }
}
