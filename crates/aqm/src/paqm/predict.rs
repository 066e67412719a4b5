//! Prediction of the arrivals in the next two intervals (paper 002, 5.2).

use super::Predictor;
use faircast_core::estimate::prediction::{self, Adaptive};

/// Paper gap: ridge, as a share of the variance that is added to it, so that the normal equations have one solution.
const RIDGE: f64 = 1e-6;
/// Upper bound of a prediction, as a multiple of the largest stored value.
const MAX: f64 = 4.0;
/// Step of the adaptive predictor, as a share of the power of the stored values.
const STEP: f64 = 0.5;

/// The latest values, and buffers for the computation.
#[derive(Debug, Clone)]
pub(super) struct History {
    predictor: Predictor,
    /// The latest values, the oldest first.
    values: Vec<f64>,
    length: usize,
    covariances: Vec<f64>,
    weights: Vec<f64>,
    adaptive: Adaptive,
}

impl History {
    /// Returns a history of `length` values. A prediction uses `order` of these values.
    pub fn new(predictor: Predictor, length: usize, order: usize) -> History {
        History {
            predictor,
            values: Vec::with_capacity(length + 1),
            length,
            covariances: vec![0.0; order + 1],
            weights: vec![0.0; order],
            adaptive: Adaptive::new(order, STEP),
        }
    }

    /// Whether all stored values are zero.
    pub fn is_silent(&self) -> bool {
        self.values.iter().all(|value| *value == 0.0)
    }

    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        if self.predictor == Predictor::Adaptive {
            self.adaptive.learn(value, self.values.iter().rev().copied());
        }
        if self.values.len() == self.length {
            self.values.rotate_left(1);
            self.values.pop();
        }
        self.values.push(value);
    }

    /// Returns predictions of the next two values. Predictions are never negative.
    pub fn predict(&mut self) -> (f64, f64) {
        let newest = self.values.last().copied().unwrap_or(0.0);
        let (one, two) = match self.predictor {
            Predictor::Last => (newest, newest),
            _ if self.values.len() < 4 => (newest, newest),
            Predictor::Adaptive => {
                let past = || self.values.iter().rev().copied();
                let one = self.adaptive.predict(past());
                (one, self.adaptive.predict(std::iter::once(one).chain(past())))
            }
            Predictor::Lmmse => self.linear(),
        };
        let most = MAX * self.values.iter().copied().fold(0.0, f64::max);
        (one.clamp(0.0, most), two.clamp(0.0, most))
    }

    /// Returns the linear predictions with the least mean squared error.
    ///
    /// Paper gap: (5.4) has `order` values, so the last covariance is an empty sum. Here the history is longer; with `order`
    /// values it is the printed formula.
    fn linear(&mut self) -> (f64, f64) {
        let count = self.values.len();
        let mean = self.values.iter().sum::<f64>() / count as f64;
        let order = self.weights.len().min(if count < self.length { count / 2 } else { count });
        let covariances = &mut self.covariances[..=order];
        prediction::covariances(&self.values, mean, covariances);
        if covariances[0] < 1e-9 {
            return (mean, mean);
        }
        covariances[0] *= 1.0 + RIDGE;
        let weights = &mut self.weights[..order];
        prediction::levinson(covariances, weights);
        let past = || self.values.iter().rev().map(|value| value - mean);
        let sum = |values: &mut dyn Iterator<Item = f64>| -> f64 {
            weights.iter().zip(values).map(|(weight, value)| weight * value).sum()
        };
        let one = sum(&mut past());
        let two = sum(&mut std::iter::once(one).chain(past()));
        (mean + one, mean + two)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;

    fn fed(predictor: Predictor, values: impl Iterator<Item = f64>) -> History {
        let mut history = History::new(predictor, 100, 20);
        values.for_each(|value| history.push(value));
        history
    }

    #[test]
    fn predictors_repeat_the_last_value_after_few_values() {
        for predictor in [Predictor::Lmmse, Predictor::Adaptive] {
            assert_eq!(fed(predictor, [5.0, 7.0].into_iter()).predict(), (7.0, 7.0));
            assert_eq!(fed(predictor, [].into_iter()).predict(), (0.0, 0.0));
        }
    }

    #[test]
    fn constant_and_absent_traffic_are_predicted_exactly() {
        for value in [0.0, 30.0] {
            let (one, two) = fed(Predictor::Lmmse, std::iter::repeat_n(value, 150)).predict();
            assert!((one - value).abs() < 1e-9 && (two - value).abs() < 1e-9, "{value}: {one} {two}");
        }
    }

    #[test]
    fn predictors_have_a_smaller_error_than_the_last_value() {
        let mut rng = Rng::new(2, 2);
        let mut errors = [0.0; 3];
        let predictors = [Predictor::Lmmse, Predictor::Adaptive, Predictor::Last];
        let mut histories = predictors.map(|predictor| History::new(predictor, 100, 20));
        let mut noise = [0.0; 2];
        for step in 0..20_000 {
            // Values of a moving average. The latest value alone predicts them poorly.
            noise = [rng.unit() - 0.5, noise[0]];
            let value = 10.0 + 4.0 * (noise[0] - 0.9 * noise[1]);
            for (history, error) in histories.iter_mut().zip(&mut errors) {
                if step > 200 {
                    *error += (history.predict().0 - value).powi(2);
                }
                history.push(value);
            }
        }
        assert!(errors[0] < 0.5 * errors[2], "{errors:?}");
    }

    #[test]
    fn predictions_stay_within_four_times_the_largest_value() {
        let (one, two) = fed(Predictor::Lmmse, (0..100).map(|k| 1.5f64.powi(k % 40))).predict();
        let most = 4.0 * 1.5f64.powi(39);
        assert!((0.0..=most).contains(&one) && (0.0..=most).contains(&two), "{one} {two}");
    }
}
