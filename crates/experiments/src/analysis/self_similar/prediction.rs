//! Accuracy of predictions of self-similar series (paper 002, figure 5.2): the mean squared error one step ahead, as a share of
//! the variance.

use super::fgn;
use super::gamma::{gamma, log_gamma};
use faircast_core::estimate::prediction::levinson;

/// Returns the error of the best prediction of fractional Brownian motion from all past values (Gripenberg and Norros 1996).
pub fn brownian_error(hurst: f64) -> f64 {
    let angle = std::f64::consts::PI * (hurst - 0.5);
    if angle.abs() < 1e-9 {
        return 1.0;
    }
    angle.sin() / angle * gamma(1.5 - hurst).powi(2) / gamma(2.0 - 2.0 * hurst)
}

/// Returns the weights of the latest `order` increments of fractional Brownian motion in the prediction of the next increment
/// (Gripenberg and Norros). The weight of the newest increment is the first.
pub fn brownian_weights(hurst: f64, order: u32) -> Vec<f64> {
    const PARTS: u32 = 200;
    let past = f64::from(order);
    let factor = (std::f64::consts::PI * (hurst - 0.5)).sin() / std::f64::consts::PI;
    let power = hurst - 0.5;
    // Weight of the past at the time `t` before the present, in the prediction of the next step. The substitution s = v^2 removes
    // the singularity at 0.
    let weight = |t: f64| {
        let integral: f64 = (0..PARTS)
            .map(|k| {
                let v = (f64::from(k) + 0.5) / f64::from(PARTS);
                let s = v * v;
                (s * (s + past)).powf(power) / (s + t) * 2.0 * v / f64::from(PARTS)
            })
            .sum();
        factor * (t * (past - t)).powf(-power) * integral
    };
    let over_a_step = |step: u32| {
        let parts = (0..PARTS).map(|k| {
            // The substitution removes the singularities of the weight at both ends of the observed past.
            let u = (f64::from(k) + 0.5) / f64::from(PARTS);
            let (t, slope) = (u * u * (3.0 - 2.0 * u), 6.0 * u * (1.0 - u));
            weight(f64::from(step) + t) * slope / f64::from(PARTS)
        });
        parts.sum()
    };
    (0..order).map(over_a_step).collect()
}

/// Returns the error of the best prediction of fractional ARIMA (0, d, 0), with `d = H - 1/2`. The prediction uses `order`
/// values, or all past values if `order` is `None`.
pub fn farima_error(hurst: f64, order: Option<u32>) -> f64 {
    let d = hurst - 0.5;
    match order {
        None => gamma(1.0 - d).powi(2) / gamma(1.0 - 2.0 * d),
        Some(order) => (1..=order).map(|j| 1.0 - (d / (f64::from(j) - d)).powi(2)).product(),
    }
}

/// Returns the weights of the latest `order` values of fractional ARIMA (0, d, 0) in the prediction of the next value. The weight
/// of the newest value is the first. `d` must be positive.
pub fn farima_weights(hurst: f64, order: u32) -> Vec<f64> {
    let (d, k) = (hurst - 0.5, f64::from(order));
    // The logarithm of -Gamma(-d).
    let minus = log_gamma(1.0 - d) - d.ln();
    let weight = |j: u32| {
        let j = f64::from(j);
        let choices = log_gamma(k + 1.0) - log_gamma(j + 1.0) - log_gamma(k - j + 1.0);
        (choices + log_gamma(j - d) + log_gamma(k - d - j + 1.0) - minus - log_gamma(k - d + 1.0)).exp()
    };
    (1..=order).map(weight).collect()
}

/// Kind of autocorrelation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Correlation {
    /// The exact autocorrelation of fractional Gaussian noise.
    Exact,
    /// The correlation at large lags (5.6).
    Asymptotic,
}

impl Correlation {
    fn at(self, hurst: f64, lag: u32) -> f64 {
        match self {
            Correlation::Exact => fgn::autocorrelation(hurst, lag),
            Correlation::Asymptotic => fgn::asymptotic_autocorrelation(hurst, lag),
        }
    }
}

/// Returns the error of the best linear prediction (least squared error) from `order` values (5.5).
pub fn linear_error(hurst: f64, order: u32, correlation: Correlation) -> f64 {
    let covariances: Vec<f64> = (0..=order).map(|lag| correlation.at(hurst, lag)).collect();
    let mut weights = vec![0.0; order as usize];
    levinson(&covariances, &mut weights) / covariances[0]
}

/// Returns the error of a prediction with arbitrary weights for fractional Gaussian noise. The weight of the newest value is the
/// first.
pub fn error_of(weights: &[f64], hurst: f64) -> f64 {
    let at = |lag: usize| fgn::autocorrelation(hurst, lag as u32);
    let with_next: f64 = weights.iter().enumerate().map(|(j, weight)| weight * at(j + 1)).sum();
    let pairs = weights
        .iter()
        .enumerate()
        .flat_map(|(i, a)| weights.iter().enumerate().map(move |(j, b)| (a * b, i.abs_diff(j))));
    1.0 - 2.0 * with_next + pairs.map(|(product, lag)| product * at(lag)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HURST: [f64; 10] = [0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95, 0.99];

    #[track_caller]
    fn check(found: impl Fn(f64) -> f64, expected: [f64; 10]) {
        for (hurst, expected) in HURST.into_iter().zip(expected) {
            assert!((found(hurst) - expected).abs() < 6e-5, "{hurst}: {} beside {expected}", found(hurst));
        }
    }

    /// The curves of figure 5.2 match independently computed values.
    #[test]
    fn curves_of_figure_5_2_match_computed_values() {
        check(
            brownian_error,
            [0.9915, 0.9648, 0.9185, 0.8515, 0.7628, 0.6520, 0.5194, 0.3656, 0.1918, 0.0397],
        );
        check(
            |hurst| farima_error(hurst, Some(20)),
            [0.9957, 0.9814, 0.9545, 0.9120, 0.8498, 0.7630, 0.6449, 0.4869, 0.2773, 0.0619],
        );
        check(
            |hurst| linear_error(hurst, 20, Correlation::Exact),
            [0.9933, 0.9720, 0.9339, 0.8769, 0.7986, 0.6964, 0.5679, 0.4105, 0.2219, 0.0471],
        );
        check(
            |hurst| linear_error(hurst, 20, Correlation::Asymptotic),
            [0.9953, 0.9788, 0.9465, 0.8950, 0.8209, 0.7208, 0.5915, 0.4300, 0.2335, 0.0498],
        );
    }

    #[test]
    fn farima_weights_solve_the_normal_equations() {
        // Autocorrelations of fractional ARIMA: r_k / r_{k-1} = (k - 1 + d) / (k - d).
        let (hurst, d) = (0.8, 0.3);
        let mut covariances = vec![1.0];
        for k in 1..=20 {
            let k = f64::from(k);
            covariances.push(covariances[covariances.len() - 1] * (k - 1.0 + d) / (k - d));
        }
        let mut weights = vec![0.0; 20];
        let left = levinson(&covariances, &mut weights);
        assert!((left - farima_error(hurst, Some(20))).abs() < 1e-12);
        for (ours, theirs) in farima_weights(hurst, 20).iter().zip(&weights) {
            assert!((ours - theirs).abs() < 1e-12, "{ours} {theirs}");
        }
        assert!((farima_error(hurst, Some(100_000)) - farima_error(hurst, None)).abs() < 1e-5);
    }

    #[test]
    fn brownian_weights_are_nearly_optimal() {
        for hurst in [0.6, 0.75, 0.9] {
            let best = linear_error(hurst, 20, Correlation::Exact);
            let found = error_of(&brownian_weights(hurst, 20), hurst);
            assert!(found >= best - 1e-9 && found < 1.05 * best, "{hurst}: {found} beside {best}");
        }
    }
}
