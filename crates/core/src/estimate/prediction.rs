//! Linear prediction of a series from its latest values, by two methods. The Levinson-Durbin recursion computes the prediction
//! with the smallest mean squared error (paper 002, 5.2.1). The adaptive predictor learns from its errors (paper 002, (5.7)).

/// Variance of the prediction error, as a fraction of the variance of the series, below which the recursion ends.
const NOTHING_LEFT: f64 = 1e-9;

/// Computes the best weights for predicting a series with these autocovariances. `covariances[0]` is the variance, and
/// `weights[0]` belongs to the newest value. The shorter slice limits the number of computed weights. Returns the variance of the
/// prediction error.
///
/// If a few weights predict the series exactly, the remaining weights are zero.
pub fn levinson(covariances: &[f64], weights: &mut [f64]) -> f64 {
    weights.fill(0.0);
    let Some(&variance) = covariances.first() else { return 0.0 };
    let mut left = variance;
    let order = weights.len().min(covariances.len() - 1);
    for k in 0..order {
        if left < NOTHING_LEFT * variance || left <= 0.0 {
            break;
        }
        let known: f64 = (0..k).map(|j| weights[j] * covariances[k - j]).sum();
        let reflection = (covariances[k + 1] - known) / left;
        // Computes weights[j] -= reflection * weights[k - 1 - j] for all j simultaneously, in pairs from both ends.
        for j in 0..k / 2 {
            let (low, high) = (weights[j], weights[k - 1 - j]);
            weights[j] = low - reflection * high;
            weights[k - 1 - j] = high - reflection * low;
        }
        if k % 2 == 1 {
            weights[k / 2] -= reflection * weights[k / 2];
        }
        weights[k] = reflection;
        left *= 1.0 - reflection * reflection;
    }
    left.max(0.0)
}

/// Computes the autocovariances of a series around `mean` into `found`. The divisor is always the length of the series, so the
/// matrix of the normal equations has no negative eigenvalue. Autocovariances at lags beyond the length of the series are zero.
pub fn covariances(series: &[f64], mean: f64, found: &mut [f64]) {
    let count = series.len().max(1) as f64;
    for (lag, place) in found.iter_mut().enumerate() {
        let pairs = series.iter().zip(series.iter().skip(lag));
        *place = pairs.map(|(early, late)| (early - mean) * (late - mean)).sum::<f64>() / count;
    }
}

/// An adaptive predictor: after each value, its weights move towards weights that would have predicted the value (normalised
/// least mean squares).
#[derive(Debug, Clone)]
pub struct Adaptive {
    weights: Vec<f64>,
    /// Step size of the adaptation. The predictor is stable if it is below 2. With 1, the adapted weights would have predicted
    /// the latest value exactly.
    step: f64,
}

impl Adaptive {
    /// Creates a predictor with `order` weights. Until it adapts, the prediction is the newest value.
    pub fn new(order: usize, step: f64) -> Adaptive {
        let mut weights = vec![0.0; order.max(1)];
        weights[0] = 1.0;
        Adaptive { weights, step }
    }

    /// Returns the weights; the first one belongs to the newest value.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the prediction of the value that follows the values `newest_first`. Missing values count as zero.
    pub fn predict(&self, newest_first: impl Iterator<Item = f64>) -> f64 {
        self.weights.iter().zip(newest_first).map(|(weight, value)| weight * value).sum()
    }

    /// Adapts the weights to `value`, which followed the values `newest_first`.
    pub fn learn(&mut self, value: f64, newest_first: impl Iterator<Item = f64> + Clone) {
        let error = value - self.predict(newest_first.clone());
        let power: f64 = newest_first.clone().take(self.weights.len()).map(|value| value * value).sum();
        let step = self.step * error / (1e-9 + power);
        for (weight, value) in self.weights.iter_mut().zip(newest_first) {
            *weight += step * value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Solves the normal equations by elimination with pivots.
    fn dense(covariances: &[f64]) -> Vec<f64> {
        let n = covariances.len() - 1;
        let mut rows: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                let row = (0..n).map(|j| covariances[i.abs_diff(j)]);
                row.chain(std::iter::once(covariances[i + 1])).collect()
            })
            .collect();
        for column in 0..n {
            let pivot = (column..n)
                .max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))
                .expect("rows are left");
            rows.swap(column, pivot);
            let head = rows[column].clone();
            for row in rows.iter_mut().skip(column + 1) {
                let factor = row[column] / head[column];
                row.iter_mut().zip(&head).for_each(|(value, above)| *value -= factor * above);
            }
        }
        let mut solution = vec![0.0; n];
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|j| rows[i][j] * solution[j]).sum();
            solution[i] = (rows[i][n] - known) / rows[i][i];
        }
        solution
    }

    #[test]
    fn the_recursion_solves_the_normal_equations() {
        let mut rng = Rng::new(5, 2);
        for order in [1, 2, 3, 7, 20] {
            let series: Vec<f64> = (0..200).map(|_| rng.unit() + rng.unit()).collect();
            let mut found = vec![0.0; order + 1];
            covariances(&series, 1.0, &mut found);
            found[0] *= 1.0 + 1e-6;
            let mut weights = vec![0.0; order];
            let left = levinson(&found, &mut weights);
            let exact = dense(&found);
            for (ours, theirs) in weights.iter().zip(&exact) {
                assert!((ours - theirs).abs() < 1e-9, "{order}: {ours} {theirs}");
            }
            let explained: f64 = exact.iter().zip(&found[1..]).map(|(weight, r)| weight * r).sum();
            assert!((left - (found[0] - explained)).abs() < 1e-9);
        }
    }

    #[test]
    fn only_the_newest_value_predicts_a_first_order_process() {
        let found: Vec<f64> = (0..=20).map(|lag| 0.8f64.powi(lag)).collect();
        let mut weights = [0.0; 20];
        let left = levinson(&found, &mut weights);
        assert!((weights[0] - 0.8).abs() < 1e-12 && weights[1..].iter().all(|w| w.abs() < 1e-12));
        assert!((left - 0.36).abs() < 1e-12);
    }

    #[test]
    fn constant_series_is_predicted_without_error() {
        let mut found = [1.0; 6];
        let mut weights = [0.0; 5];
        assert_eq!(levinson(&found, &mut weights), 0.0);
        assert_eq!(weights, [1.0, 0.0, 0.0, 0.0, 0.0]);
        found.fill(0.0);
        assert_eq!(levinson(&found, &mut weights), 0.0);
        assert_eq!(weights, [0.0; 5]);
    }

    #[test]
    fn covariances_match_a_calculation_by_hand() {
        let mut found = [0.0; 4];
        covariances(&[1.0, 3.0, 2.0], 2.0, &mut found);
        assert_eq!(found, [2.0 / 3.0, -1.0 / 3.0, 0.0, 0.0]);
    }

    #[test]
    fn adaptive_predictor_learns_a_first_order_process() {
        let (mut rng, mut adaptive) = (Rng::new(9, 1), Adaptive::new(3, 0.002));
        let mut past = [0.0; 3];
        for _ in 0..200_000 {
            let value = 0.8 * past[0] + rng.unit() - 0.5;
            adaptive.learn(value, past.iter().copied());
            past.rotate_right(1);
            past[0] = value;
        }
        let weights = adaptive.weights();
        assert!((weights[0] - 0.8).abs() < 0.1 && weights[1].abs() < 0.12, "{weights:?}");
    }
}
