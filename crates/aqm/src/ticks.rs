//! The moments at which a discipline does something periodically.

use faircast_core::time::{Span, Time};

/// Every period, from one period after the start of time on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    next: Time,
    period: Span,
}

impl Ticks {
    /// With this period; one of zero counts as a nanosecond.
    pub fn every(period: Span) -> Ticks {
        let period = period.max(Span::from_nanos(1));
        Ticks { next: Time::ZERO + period, period }
    }

    /// The next one.
    pub const fn next(&self) -> Time {
        self.next
    }

    /// The period.
    pub const fn period(&self) -> Span {
        self.period
    }

    /// It has come.
    pub fn advance(&mut self) {
        self.next += self.period;
    }

    /// The next one is the last that is not later than `until`, or a later one if it is already.
    pub fn skip_to(&mut self, until: Time) {
        let periods = until.since(self.next).as_nanos() / self.period.as_nanos();
        self.next += self.period * periods;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_skipped_in_whole_periods() {
        let millis = |millis| Time::ZERO + Span::from_millis(millis);
        let mut ticks = Ticks::every(Span::from_millis(3));
        ticks.skip_to(millis(11));
        assert_eq!(ticks.next(), millis(9));
        ticks.advance();
        ticks.skip_to(millis(5)); // earlier than the next one
        assert_eq!(ticks.next(), millis(12));
    }
}
