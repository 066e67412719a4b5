//! An exponentially weighted mean with its mean deviation (paper 000, 3.1.2).

/// A smoothed mean and a smoothed deviation from it. Both are undefined before the first sample.
// Paper gap: 3.1.2 prints the update of the mean before that of the deviation, and does not state which mean the deviation uses.
// Here the error is relative to the old mean, as appendix D.3 requires for its average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ewma {
    gain: f64,
    mean: Option<f64>,
    deviation: f64,
}

impl Ewma {
    /// Creates an estimate without samples. `gain` is the weight of a new sample, 0 to 1.
    pub const fn new(gain: f64) -> Ewma {
        Ewma { gain, mean: None, deviation: 0.0 }
    }

    /// Adds a sample. The first sample becomes the mean, with the deviation `first_deviation`.
    pub fn add(&mut self, sample: f64, first_deviation: f64) {
        let Some(mean) = self.mean else { return self.restart(sample, first_deviation) };
        let error = sample - mean;
        self.deviation = (1.0 - self.gain) * self.deviation + self.gain * error.abs();
        self.mean = Some(mean + self.gain * error);
    }

    /// Restarts with this mean and deviation.
    pub fn restart(&mut self, mean: f64, deviation: f64) {
        self.mean = Some(mean);
        self.deviation = deviation;
    }

    /// Returns the mean; `None` without samples.
    pub const fn mean(&self) -> Option<f64> {
        self.mean
    }

    /// Returns the mean deviation; zero without samples.
    pub const fn deviation(&self) -> f64 {
        self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_is_the_mean() {
        let mut average = Ewma::new(0.125);
        assert_eq!(average.mean(), None);
        average.add(8.0, 2.0);
        assert_eq!((average.mean(), average.deviation()), (Some(8.0), 2.0));
    }

    #[test]
    fn deviation_is_measured_from_the_old_mean() {
        let mut average = Ewma::new(0.125);
        average.add(8.0, 0.0);
        average.add(16.0, 0.0);
        assert_eq!((average.mean(), average.deviation()), (Some(9.0), 1.0));
    }
}
