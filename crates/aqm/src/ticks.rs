//! Periodic times of a discipline.

use faircast_core::time::{Span, Time};

/// Times at every period, from one period after the start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    next: Time,
    period: Span,
}

impl Ticks {
    /// Creates times with this period; a period of zero counts as a nanosecond.
    pub fn every(period: Span) -> Ticks {
        let period = period.max(Span::from_nanos(1));
        Ticks { next: Time::ZERO + period, period }
    }

    /// Returns the next time.
    pub const fn next(&self) -> Time {
        self.next
    }

    /// Returns the period.
    pub const fn period(&self) -> Span {
        self.period
    }

    /// Advances to the next time.
    pub fn advance(&mut self) {
        self.next += self.period;
    }

    /// Skips to the last time that is not later than `until`, unless the next time is later already.
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
