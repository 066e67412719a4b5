//! The mean round-trip time of the paths on which packets are lost, and the durations that are derived from it (paper 000,
//! 2.1.1).

use super::config::{Config, Part};
use crate::time::Span;

/// The mean round-trip time and its deviation, "SRTT" and "sigma", in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundTrip {
    mean: f64,
    deviation: f64,
    is_sampled: bool,
    /// Number of consecutive samples that were too small.
    pruned: u8,
    prune: Part,
    literal: Part,
    shortest: Span,
}

/// The weight of a sample.
const GAIN: f64 = 0.125;
/// Fraction of the mean: a sample below it is pruned.
const SMALL: f64 = 0.5;
/// The number of consecutive pruned samples after which small samples are accepted.
// Paper gap: 2.1.1 prunes "a large fraction" of the samples below SRTT / 2, appendix A prunes no samples. Here all of these
// samples are pruned until there are 16 in a row, which show that the path has become faster.
const PRUNED_IN_A_ROW: u8 = 16;

impl RoundTrip {
    /// Creates the state before any sample.
    // Paper gap: appendix A has no values before the first sample. Here they are the assumed round-trip time and half of
    // it; the first sample replaces both.
    pub(super) fn new(config: &Config, assumed: Span) -> RoundTrip {
        let mean = assumed.as_secs_f64();
        RoundTrip {
            mean,
            deviation: mean / 2.0,
            is_sampled: false,
            pruned: 0,
            prune: config.prune,
            literal: config.rtt_literal,
            shortest: config.sending.min_rtt,
        }
    }

    /// Adds a sample, or prunes it: a small sample is of a path that does not limit the rate.
    // Paper gap: appendix A prints an update with the weight 7/8 for the new sample, while 2.1.1 calls it similar to TCP's. Here
    // the new sample has the weight 1/8, as in TCP; `rtt-literal` uses the printed update.
    pub(super) fn add(&mut self, sample: Span) {
        let sample = sample.as_secs_f64();
        if !self.is_sampled {
            (self.mean, self.deviation, self.is_sampled) = (sample, sample / 2.0, true);
            return;
        }
        if self.prune == Part::On && self.is_pruned(sample) {
            return;
        }
        let error = sample - self.mean;
        self.deviation += GAIN * (error.abs() - self.deviation);
        self.mean = match self.literal {
            Part::Off => self.mean + GAIN * error,
            Part::On => sample - GAIN * error,
        };
    }

    fn is_pruned(&mut self, sample: f64) -> bool {
        if sample >= self.mean * SMALL {
            self.pruned = 0;
            return false;
        }
        let prune = self.pruned < PRUNED_IN_A_ROW;
        self.pruned += u8::from(prune);
        prune
    }

    /// Returns "SRTT".
    pub(super) fn mean(&self) -> Span {
        Span::from_secs_f64(self.mean).max(self.shortest)
    }

    /// Returns "sigma".
    pub(super) fn deviation(&self) -> Span {
        Span::from_secs_f64(self.deviation)
    }

    /// Returns SRTT + 2 sigma: the minimum interval between loss events, and between increases.
    pub(super) fn window(&self) -> Span {
        self.mean() + self.deviation() * 2
    }

    /// Returns SRTT + 4 sigma.
    pub(super) fn timeout(&self) -> Span {
        self.mean() + self.deviation() * 4
    }

    /// Returns the duration of silence after a reduction: half the timeout.
    pub(super) fn silence(&self) -> Span {
        self.timeout() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(config: Config, millis: impl IntoIterator<Item = u64>) -> RoundTrip {
        let mut round_trip = RoundTrip::new(&config, Span::from_millis(100));
        millis.into_iter().for_each(|sample| round_trip.add(Span::from_millis(sample)));
        round_trip
    }

    #[test]
    fn first_sample_replaces_the_assumed_round_trip_time() {
        let assumed = after(Config::published(), []);
        assert_eq!((assumed.mean(), assumed.window()), (Span::from_millis(100), Span::from_millis(200)));
        let sampled = after(Config::published(), [20]);
        assert_eq!((sampled.mean(), sampled.deviation()), (Span::from_millis(20), Span::from_millis(10)));
        assert_eq!((sampled.timeout(), sampled.silence()), (Span::from_millis(60), Span::from_millis(30)));
    }

    #[test]
    fn new_sample_weighs_one_eighth_or_seven_eighths_if_literal() {
        let tcp = after(Config::published(), [80, 160]);
        assert_eq!((tcp.mean(), tcp.deviation()), (Span::from_millis(90), Span::from_millis(45)));
        let printed = after(Config { rtt_literal: Part::On, ..Config::published() }, [80, 160]);
        assert_eq!((printed.mean(), printed.deviation()), (Span::from_millis(150), Span::from_millis(45)));
    }

    #[test]
    fn samples_below_half_the_mean_are_pruned() {
        assert_eq!(after(Config::published(), [80, 39, 1]).mean(), Span::from_millis(80));
        assert_eq!(after(Config::published(), [80, 40]).mean(), Span::from_millis(75));
        let off = Config { prune: Part::Off, ..Config::published() };
        assert_eq!(after(off, [80, 8]).mean(), Span::from_millis(71));
    }

    #[test]
    fn much_lower_rtt_is_accepted_after_16_pruned_samples() {
        let samples = |count: usize| std::iter::once(80).chain(std::iter::repeat_n(10, count));
        assert_eq!(after(Config::published(), samples(16)).mean(), Span::from_millis(80));
        assert!(after(Config::published(), samples(17)).mean() < Span::from_millis(80));
        assert!(after(Config::published(), samples(60)).mean() < Span::from_millis(12));
    }
}
