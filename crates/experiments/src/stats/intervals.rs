//! Confidence intervals of the mean of independent runs.

use super::{deviation, mean, quantile, student_t};
use faircast_core::rng::Rng;
use std::f64::consts::SQRT_2;

/// Returns the ends of the confidence interval of the mean, by Student's t. For fewer than two values, both ends equal the mean.
pub fn student_interval(values: &[f64], confidence: f64) -> (f64, f64) {
    let mean = mean(values);
    if values.len() < 2 {
        return (mean, mean);
    }
    let half = student_t(confidence, values.len() - 1) * deviation(values) / (values.len() as f64).sqrt();
    (mean - half, mean + half)
}

/// Returns the ends of the confidence interval of the mean, by the bootstrap with bias correction and acceleration (B. Efron and
/// R. Tibshirani, An Introduction to the Bootstrap, 1993, 14.3). The same seed gives the same interval. For fewer than two
/// values, both ends equal the mean.
pub fn bootstrap_interval(values: &[f64], confidence: f64, resamples: usize, seed: u64) -> (f64, f64) {
    let (n, observed) = (values.len(), mean(values));
    if n < 2 || values.iter().all(|value| *value == values[0]) {
        return (observed, observed);
    }
    let mut rng = Rng::new(seed, 0);
    let mut resample = || {
        let sum: f64 = (0..n).map(|_| values[rng.below(n as u64) as usize]).sum();
        sum / n as f64
    };
    let means: Vec<f64> = (0..resamples).map(|_| resample()).collect();
    let below = means.iter().filter(|mean| **mean < observed).count() as f64;
    let ties = means.iter().filter(|mean| **mean == observed).count() as f64;
    // The share is kept away from 0 and 1, where the correction would be infinite.
    let share =
        ((below + ties / 2.0) / resamples as f64).clamp(0.5 / resamples as f64, 1.0 - 0.5 / resamples as f64);
    let bias = normal_quantile(share);
    // The mean without value i differs from the mean of these means by (mean - value i) / (n - 1).
    let (cubes, squares) = values.iter().fold((0.0, 0.0), |(cubes, squares), value| {
        let difference = observed - value;
        (cubes - difference.powi(3), squares + difference.powi(2))
    });
    let acceleration = cubes / (6.0 * squares.powf(1.5));
    let end = |tail: f64| {
        let z = bias + normal_quantile(tail);
        quantile(&means, normal_share(bias + z / (1.0 - acceleration * z)))
    };
    let tail = (1.0 - confidence) / 2.0;
    (end(tail), end(1.0 - tail))
}

/// Returns the probability that a standard normal variable is below `z`, with an error below 1e-7 (Abramowitz and Stegun,
/// 7.1.26, for large arguments with the asymptotic form).
pub(super) fn normal_share(z: f64) -> f64 {
    let x = z.abs() / SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let tail = 0.5 * series * (-x * x).exp();
    if z < 0.0 { tail } else { 1.0 - tail }
}

/// Returns the value below which a standard normal variable is with this probability, by bisection.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if normal_share(middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_shares_and_quantiles_agree_with_tables() {
        for (z, share) in [(0.0, 0.5), (1.0, 0.841_344_7), (1.959_964, 0.975), (-2.575_829, 0.005)] {
            assert!((normal_share(z) - share).abs() < 2e-7, "{z}: {}", normal_share(z));
            assert!((normal_quantile(share) - z).abs() < 1e-4, "{share}: {}", normal_quantile(share));
        }
    }

    /// Draws samples of an exponential variable, and counts how many intervals contain its mean.
    #[test]
    fn intervals_contain_the_mean_about_as_often_as_stated() {
        let mut rng = Rng::new(1, 0);
        let (samples, size) = (400, 40);
        let mut covered = [0; 2];
        for sample in 0..samples {
            let values: Vec<f64> = (0..size).map(|_| -(1.0 - rng.unit()).ln()).collect();
            let intervals = [student_interval(&values, 0.9), bootstrap_interval(&values, 0.9, 500, sample)];
            for (count, (low, high)) in covered.iter_mut().zip(intervals) {
                *count += usize::from(low <= 1.0 && 1.0 <= high);
            }
        }
        for count in covered {
            let share = count as f64 / samples as f64;
            assert!((0.84..=0.94).contains(&share), "{share}");
        }
    }
}
