//! An exponentially weighted mean with its mean deviation (paper 000, 3.1.2).

/// A smoothed mean and mean deviation. Without a sample there is neither.
// Paper gap: 3.1.2 prints the update of the mean before that of the deviation and does not say which mean the
// deviation takes. Here the error is taken from the old mean, as appendix D.3 demands for its own average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ewma {
    gain: f64,
    mean: Option<f64>,
    deviation: f64,
}

impl Ewma {
    /// Without samples; `gain` is the weight of a new sample, 0 to 1.
    pub const fn new(gain: f64) -> Ewma {
        Ewma { gain, mean: None, deviation: 0.0 }
    }

    /// Takes a sample. The first one becomes the mean, with the deviation `first_deviation`.
    pub fn add(&mut self, sample: f64, first_deviation: f64) {
        let Some(mean) = self.mean else { return self.restart(sample, first_deviation) };
        let error = sample - mean;
        self.deviation = (1.0 - self.gain) * self.deviation + self.gain * error.abs();
        self.mean = Some(mean + self.gain * error);
    }

    /// Forgets the past, and restarts with this mean and deviation.
    pub fn restart(&mut self, mean: f64, deviation: f64) {
        self.mean = Some(mean);
        self.deviation = deviation;
    }

    /// The mean, if there was a sample.
    pub const fn mean(&self) -> Option<f64> {
        self.mean
    }

    /// The mean deviation; zero without samples.
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
    fn the_error_is_measured_from_the_old_mean() {
        let mut average = Ewma::new(0.125);
        average.add(8.0, 0.0);
        average.add(16.0, 0.0);
        assert_eq!((average.mean(), average.deviation()), (Some(9.0), 1.0));
    }
}
