//! Fractional Gaussian noise: exact samples by circulant embedding (Davies and Harte 1987).

use super::fourier::{self, Complex};
use faircast_core::rng::Rng;

/// Returns the autocorrelation of fractional Gaussian noise at this lag.
pub fn autocorrelation(hurst: f64, lag: u32) -> f64 {
    let (k, power) = (f64::from(lag), 2.0 * hurst);
    (((k + 1.0).powf(power) + (k - 1.0).abs().powf(power)) - 2.0 * k.powf(power)) / 2.0
}

/// Returns the asymptotic autocorrelation, which is accurate for large lags (paper 002, (5.6)); 1 for lag zero.
pub fn asymptotic_autocorrelation(hurst: f64, lag: u32) -> f64 {
    if lag == 0 {
        return 1.0;
    }
    hurst * (2.0 * hurst - 1.0) * f64::from(lag).powf(2.0 * hurst - 2.0)
}

/// Draws `length` values with mean 0 and variance 1.
pub fn noise(hurst: f64, length: usize, rng: &mut Rng) -> Vec<f64> {
    let half = length.next_power_of_two().max(2);
    let around = (0..=half).chain((1..half).rev());
    let mut eigenvalues: Vec<Complex> = around.map(|lag| (autocorrelation(hurst, lag as u32), 0.0)).collect();
    fourier::transform(&mut eigenvalues);
    let scale = 1.0 / (2.0 * half as f64);
    let mut values: Vec<Complex> = eigenvalues
        .iter()
        .map(|(eigenvalue, _)| {
            // The exact eigenvalues are not negative; rounding can make them negative.
            let size = (eigenvalue.max(0.0) * scale).sqrt();
            let (a, b) = normal_pair(rng);
            (size * a, size * b)
        })
        .collect();
    fourier::transform(&mut values);
    values.truncate(length);
    values.into_iter().map(|(re, _)| re).collect()
}

/// Draws the values of a load from fractional Gaussian noise, with this mean and standard deviation. Negative values become zero.
pub fn load(hurst: f64, (mean, deviation): (f64, f64), length: usize, rng: &mut Rng) -> Vec<f64> {
    noise(hurst, length, rng).into_iter().map(|value| (mean + deviation * value).max(0.0)).collect()
}

/// Draws two independent values of a normal distribution (Box and Muller).
pub fn normal_pair(rng: &mut Rng) -> (f64, f64) {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    let (sin, cos) = (2.0 * std::f64::consts::PI * rng.unit()).sin_cos();
    (radius * cos, radius * sin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::estimate::prediction;

    #[test]
    fn samples_have_the_requested_autocorrelation() {
        let mut found = [0.0; 6];
        for hurst in [0.55, 0.75, 0.9] {
            let mut sum = [0.0; 6];
            for seed in 0..40 {
                let series = noise(hurst, 4096, &mut Rng::new(seed, 1));
                prediction::covariances(&series, 0.0, &mut found);
                sum.iter_mut().zip(found).for_each(|(sum, value)| *sum += value / 40.0);
            }
            for (lag, value) in sum.iter().enumerate() {
                let expected = autocorrelation(hurst, lag as u32);
                assert!((value - expected).abs() < 0.05, "{hurst}, {lag}: {value} beside {expected}");
            }
        }
    }

    #[test]
    fn autocorrelation_is_zero_at_a_hurst_parameter_of_one_half() {
        assert_eq!(autocorrelation(0.7, 0), 1.0);
        assert!((1..5).all(|lag| autocorrelation(0.5, lag).abs() < 1e-12));
        let (exact, far) = (autocorrelation(0.8, 50), asymptotic_autocorrelation(0.8, 50));
        assert!((exact / far - 1.0).abs() < 1e-3);
    }

    #[test]
    fn generated_loads_are_never_negative() {
        let load = load(0.8, (1.0, 1.0), 1000, &mut Rng::new(1, 1));
        assert_eq!(load.len(), 1000);
        assert!(load.iter().all(|value| *value >= 0.0));
    }
}
