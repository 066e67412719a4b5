//! Periodic times of a discipline.

use faircast_core::time::{Span, Time};

/// Multiples of a period, starting with the period itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    next: Time,
    period: Span,
}

impl Ticks {
    /// Creates ticks with this period; zero counts as a nanosecond.
    pub fn every(period: Span) -> Ticks {
        let period = period.max(Span::from_nanos(1));
        Ticks { next: Time::ZERO + period, period }
    }

    /// Returns the time of the next tick.
    pub const fn next(&self) -> Time {
        self.next
    }

    /// Returns the period.
    pub const fn period(&self) -> Span {
        self.period
    }

    /// Advances to the tick after the next one.
    pub fn advance(&mut self) {
        self.next += self.period;
    }

    /// Skips ticks. The next tick is then the last tick that is not later than `until`. Changes nothing if all ticks are later
    /// than `until`.
    pub fn skip_to(&mut self, until: Time) {
        let periods = until.since(self.next).as_nanos() / self.period.as_nanos();
        self.next += self.period * periods;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_skipped_in_whole_periods() {
        let millis = |millis| Time::ZERO + Span::from_millis(millis);
        let mut ticks = Ticks::every(Span::from_millis(3));
        ticks.skip_to(millis(11));
        assert_eq!(ticks.next(), millis(9));
        ticks.advance();
        ticks.skip_to(millis(5)); // earlier than the next one
        assert_eq!(ticks.next(), millis(12));
    }
}
