//! The retransmission timeout (RFC 6298).

use crate::estimate::Ewma;
use crate::time::Span;

const MEAN_GAIN: f64 = 0.125;
const DEVIATION_GAIN: f64 = 0.25;

/// Smoothed round-trip time of the acker and the timeout computed from it.
#[derive(Debug, Clone)]
pub(in crate::schemes) struct Timeout {
    mean: Ewma,
    /// Deviation in seconds, smoothed with a separate gain; the deviation of `mean` is unused.
    deviation: f64,
    shortest: Span,
    first: Span,
    longest: Span,
    doublings: u32,
}

impl Timeout {
    /// Creates a timeout between `shortest` and `longest`. Before the first sample the timeout is `first`.
    pub(in crate::schemes) fn new(shortest: Span, first: Span, longest: Span) -> Timeout {
        Timeout { mean: Ewma::new(MEAN_GAIN), deviation: 0.0, shortest, first, longest, doublings: 0 }
    }

    /// Removes all samples, because the group has changed.
    pub(in crate::schemes) fn forget(&mut self) {
        *self = Timeout::new(self.shortest, self.first, self.longest);
    }

    /// Adds a round-trip sample of the acker.
    pub(in crate::schemes) fn sample(&mut self, sample: Span) {
        let secs = sample.as_secs_f64();
        self.deviation = match self.mean.mean() {
            Some(mean) => self.deviation + DEVIATION_GAIN * ((secs - mean).abs() - self.deviation),
            None => secs / 2.0,
        };
        self.mean.add(secs, 0.0);
    }

    /// Restarts the estimate for a new acker, and ends the backoff.
    pub(in crate::schemes) fn restart(&mut self, sample: Option<Span>) {
        if let Some(sample) = sample {
            self.mean = Ewma::new(MEAN_GAIN);
            self.sample(sample);
        }
        self.doublings = 0;
    }

    /// Returns the smoothed round-trip time; `None` before the first sample.
    pub(in crate::schemes) fn smoothed(&self) -> Option<Span> {
        self.mean.mean().map(Span::from_secs_f64)
    }

    /// Returns the current timeout for an acknowledgement.
    #[inline]
    pub(in crate::schemes) fn span(&self) -> Span {
        let base = match self.mean.mean() {
            Some(mean) => Span::from_secs_f64(mean + 4.0 * self.deviation),
            None => self.first,
        };
        let base = base.max(self.shortest);
        (base * (1 << self.doublings)).min(self.longest.max(base))
    }

    /// Doubles the timeout after it has expired.
    pub(in crate::schemes) fn back_off(&mut self) {
        self.doublings = (self.doublings + 1).min(16);
    }

    /// Ends the backoff, because an acknowledgement has arrived.
    pub(in crate::schemes) fn end_back_off(&mut self) {
        self.doublings = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Timeout {
        Timeout::new(Span::from_millis(200), Span::from_secs(3), Span::from_secs(64))
    }

    #[test]
    fn timeout_is_three_times_the_first_round_trip_time_sample() {
        let mut timeout = published();
        assert_eq!(timeout.span(), Span::from_secs(3));
        timeout.sample(Span::from_millis(100));
        assert_eq!(timeout.span(), Span::from_millis(300));
        timeout.sample(Span::from_millis(180));
        // mean 110 ms; deviation 50 + (80 - 50) / 4 = 57.5 ms
        assert_eq!(timeout.span(), Span::from_millis(340));
    }

    #[test]
    fn the_timeout_doubles_up_to_64_s_until_acknowledgements_return() {
        let mut timeout = published();
        timeout.sample(Span::from_millis(10));
        assert_eq!(timeout.span(), Span::from_millis(200), "the shortest");
        (0..3).for_each(|_| timeout.back_off());
        assert_eq!(timeout.span(), Span::from_millis(1600));
        (0..30).for_each(|_| timeout.back_off());
        assert_eq!(timeout.span(), Span::from_secs(64));
        timeout.end_back_off();
        assert_eq!(timeout.span(), Span::from_millis(200));
    }
}
