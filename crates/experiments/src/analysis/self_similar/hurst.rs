//! Estimators of the Hurst parameter of a series of counts.
//!
//! R/S and the variance-time plot are the methods of older publications. The other methods are more accurate if the series meets
//! their assumptions: fractional Gaussian noise for Whittle's estimator, long memory for local Whittle and wavelets.

use super::fourier;
use std::fmt;

/// Minimum number of values for an estimate.
pub const MIN: usize = 256;

/// Reason why there is no estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoEstimate {
    /// Too few values.
    #[error("{0} values are too few for an estimate; provide at least {MIN}, better several thousand")]
    TooShort(usize),
    /// All values are equal.
    #[error("all values are equal")]
    Constant,
    /// A value is not finite. The number is the index of the value.
    #[error("value {0} is not a finite number")]
    NotFinite(usize),
}

/// An estimation method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The rescaled range of blocks grows with the length n of the blocks as n^H (Hurst 1951).
    RescaledRange,
    /// The variance of the means of blocks falls with the length m of the blocks as m^(2H-2).
    VarianceTime,
    /// Whittle's likelihood of fractional Gaussian noise, with Paxson's approximation of the noise's spectrum.
    Whittle,
    /// Robinson's local likelihood, which uses only the lowest frequencies and assumes nothing about higher frequencies.
    LocalWhittle,
    /// Energies of Daubechies' wavelets with three vanishing moments grow with the wavelets' scale as 2^(j(2H-1)) (Abry and
    /// Veitch 1998).
    Wavelet,
}

/// All methods.
pub const METHODS: [Method; 5] =
    [Method::RescaledRange, Method::VarianceTime, Method::Whittle, Method::LocalWhittle, Method::Wavelet];

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::RescaledRange => "R/S",
            Method::VarianceTime => "variance-time",
            Method::Whittle => "Whittle",
            Method::LocalWhittle => "local Whittle",
            Method::Wavelet => "wavelet",
        })
    }
}

/// An estimate of the Hurst parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimated value.
    pub hurst: f64,
    /// Half of the width of a 95 % confidence interval, if the method provides an interval.
    pub margin: Option<f64>,
}

/// Estimates the Hurst parameter of a series. The two estimators of Whittle use only the first `2^k` values of the series, with
/// the largest possible `k`.
///
/// # Errors
/// If the series is too short or constant, or has a value that is not finite.
pub fn estimate(series: &[f64], method: Method) -> Result<Estimate, NoEstimate> {
    if series.len() < MIN {
        return Err(NoEstimate::TooShort(series.len()));
    }
    if let Some(place) = series.iter().position(|value| !value.is_finite()) {
        return Err(NoEstimate::NotFinite(place));
    }
    if series.iter().all(|value| *value == series[0]) {
        return Err(NoEstimate::Constant);
    }
    let plain = |hurst| Estimate { hurst, margin: None };
    Ok(match method {
        Method::RescaledRange => plain(rescaled_range(series)),
        Method::VarianceTime => plain(variance_time(series)),
        Method::Whittle => whittle(series),
        Method::LocalWhittle => local_whittle(series),
        Method::Wavelet => wavelet(series),
    })
}

/// Fits a straight line to weighted points by least squares. Returns the slope of the line. Also returns the weighted sum of the
/// squared distances of the abscissas from their mean.
fn slope(points: &[(f64, f64, f64)]) -> (f64, f64) {
    let total: f64 = points.iter().map(|(_, _, w)| w).sum();
    let mean_x = points.iter().map(|(x, _, w)| w * x).sum::<f64>() / total;
    let mean_y = points.iter().map(|(_, y, w)| w * y).sum::<f64>() / total;
    let squares: f64 = points.iter().map(|(x, _, w)| w * (x - mean_x).powi(2)).sum();
    let products: f64 = points.iter().map(|(x, y, w)| w * (x - mean_x) * (y - mean_y)).sum();
    (products / squares, squares)
}

fn rescaled_range(series: &[f64]) -> f64 {
    let mut points = Vec::new();
    let mut length = 16;
    while length <= series.len() / 8 {
        let ratios: Vec<f64> = series.chunks_exact(length).filter_map(range_over_deviation).collect();
        if !ratios.is_empty() {
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            points.push(((length as f64).ln(), mean.ln(), 1.0));
        }
        length *= 2;
    }
    slope(&points).0
}

/// Returns the range of the cumulative sums of deviations from the mean, divided by the standard deviation.
fn range_over_deviation(block: &[f64]) -> Option<f64> {
    let count = block.len() as f64;
    let mean = block.iter().sum::<f64>() / count;
    let variance = block.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let (mut sum, mut least, mut most) = (0.0f64, 0.0f64, 0.0f64);
    for value in block {
        sum += value - mean;
        (least, most) = (least.min(sum), most.max(sum));
    }
    (variance > 0.0).then(|| (most - least) / variance.sqrt())
}

fn variance_time(series: &[f64]) -> f64 {
    let last = (series.len() as f64 / 50.0).log10();
    let steps = 20;
    let sizes = (0..=steps).map(|k| 10f64.powf(0.5 + (last - 0.5) * f64::from(k) / f64::from(steps)));
    let mut sizes: Vec<usize> = sizes.map(|size| size as usize).collect();
    sizes.dedup();
    let mut points = Vec::new();
    for size in sizes {
        let means: Vec<f64> =
            series.chunks_exact(size).map(|block| block.iter().sum::<f64>() / size as f64).collect();
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let variance = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / means.len() as f64;
        if variance > 0.0 {
            points.push(((size as f64).ln(), variance.ln(), 1.0));
        }
    }
    1.0 + slope(&points).0 / 2.0
}

/// Returns the spectrum of fractional Gaussian noise at a frequency, up to a constant factor. The infinite sum is approximated by
/// three terms and a correction for the remaining terms (Paxson 1997).
fn spectrum(frequency: f64, hurst: f64) -> f64 {
    let (d, rest) = (-2.0 * hurst - 1.0, -2.0 * hurst);
    let turn = 2.0 * std::f64::consts::PI;
    let both = |k: f64, power: f64| (turn * k + frequency).powf(power) + (turn * k - frequency).powf(power);
    let sum = both(1.0, d) + both(2.0, d) + both(3.0, d);
    let others = (both(3.0, rest) + both(4.0, rest)) / (8.0 * hurst * std::f64::consts::PI);
    (1.0 - frequency.cos()) * (frequency.powf(d) + sum + others)
}

/// Returns the position of a function's minimum between two numbers, by golden-section search. The function must have only one
/// minimum between them.
fn min_between(mut low: f64, mut high: f64, value: impl Fn(f64) -> f64) -> f64 {
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let mut places = [high - golden * (high - low), low + golden * (high - low)];
    let mut values = places.map(&value);
    while high - low > 1e-4 {
        if values[0] < values[1] {
            high = places[1];
            places = [high - golden * (high - low), places[0]];
            values = [value(places[0]), values[0]];
        } else {
            low = places[0];
            places = [places[1], low + golden * (high - low)];
            values = [values[1], value(places[1])];
        }
    }
    (low + high) / 2.0
}

fn power_of_two(series: &[f64]) -> &[f64] {
    &series[..1 << series.len().ilog2()]
}

fn whittle(series: &[f64]) -> Estimate {
    let series = power_of_two(series);
    let found = fourier::periodogram(series);
    let step = 2.0 * std::f64::consts::PI / series.len() as f64;
    let count = found.len() as f64;
    let cost = |hurst: f64| {
        let (mut ratios, mut logs) = (0.0, 0.0);
        for (j, power) in found.iter().enumerate() {
            let expected = spectrum(step * (j + 1) as f64, hurst);
            ratios += power / expected;
            logs += expected.ln();
        }
        (ratios / count).ln() + logs / count
    };
    let hurst = min_between(0.02, 0.999, cost);
    // Derivative of the spectrum's logarithm by the Hurst parameter. The variance of this derivative is the information.
    let derivative: Vec<f64> = (1..200)
        .map(|k| {
            let at = std::f64::consts::PI * f64::from(k) / 200.0;
            (spectrum(at, hurst + 1e-4).ln() - spectrum(at, hurst - 1e-4).ln()) / 2e-4
        })
        .collect();
    let mean = derivative.iter().sum::<f64>() / derivative.len() as f64;
    let variance = derivative.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / derivative.len() as f64;
    Estimate { hurst, margin: Some(1.96 * (2.0 / (series.len() as f64 * variance)).sqrt()) }
}

fn local_whittle(series: &[f64]) -> Estimate {
    let series = power_of_two(series);
    let found = fourier::periodogram(series);
    let count = ((series.len() as f64).powf(0.65) as usize).min(found.len());
    let step = 2.0 * std::f64::consts::PI / series.len() as f64;
    let frequencies: Vec<f64> = (1..=count).map(|j| step * j as f64).collect();
    let mean_log = frequencies.iter().map(|frequency| frequency.ln()).sum::<f64>() / count as f64;
    let cost = |d: f64| {
        let powers = frequencies.iter().zip(&found).map(|(frequency, power)| frequency.powf(2.0 * d) * power);
        (powers.sum::<f64>() / count as f64).ln() - 2.0 * d * mean_log
    };
    let hurst = min_between(-0.48, 0.98, cost) + 0.5;
    Estimate { hurst, margin: Some(1.96 / (2.0 * (count as f64).sqrt())) }
}

/// Daubechies' low-pass filter with three vanishing moments.
const FILTER: [f64; 6] = [
    0.332_670_552_950_956_9,
    0.806_891_509_313_338_8,
    0.459_877_502_119_331_3,
    -0.135_011_020_010_390_84,
    -0.085_441_273_882_241_49,
    0.035_226_291_882_138_44,
];

fn wavelet(series: &[f64]) -> Estimate {
    let octaves = series.len().ilog2();
    let (first, last) = (4.min(octaves - 4), octaves - 3);
    let mut smooth = series.to_vec();
    let mut points = Vec::new();
    for octave in 1..=last {
        let pairs = smooth.windows(FILTER.len()).step_by(2);
        let detail = |window: &[f64]| -> f64 {
            let filter = FILTER.iter().rev().enumerate();
            filter
                .zip(window)
                .map(|((k, weight), value)| if k % 2 == 0 { weight * value } else { -weight * value })
                .sum()
        };
        let energies: Vec<f64> = pairs.clone().map(|window| detail(window).powi(2)).collect();
        let count = energies.len() as f64;
        let energy = energies.iter().sum::<f64>() / count;
        if octave >= first && energy > 0.0 && count >= 2.0 {
            // On average, the logarithm of a mean of `n` squares is too small by ln(n/2) - digamma(n/2), about 1/n.
            points.push((f64::from(octave), energy.log2() + 1.0 / (count * std::f64::consts::LN_2), count));
        }
        smooth = pairs
            .map(|window| window.iter().zip(&FILTER).map(|(value, weight)| value * weight).sum())
            .collect();
        if smooth.len() < FILTER.len() {
            break;
        }
    }
    let (rise, squares) = slope(&points);
    // The binary logarithm of a mean of `n` squares has the variance 2 / (n ln(2)^2).
    let deviation = (2.0 / squares).sqrt() / std::f64::consts::LN_2;
    Estimate { hurst: (rise + 1.0) / 2.0, margin: Some(1.96 * deviation / 2.0) }
}

/// Returns the mean absolute difference between predicted and real values, divided by the mean of the real values. This is the
/// "estimation error" of figure 5.4.
pub fn estimation_error(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (off, came) = pairs
        .fold((0.0, 0.0), |(off, came), (predicted, value)| (off + (predicted - value).abs(), came + value));
    off / came
}

/// Returns the Hurst parameter of the traffic of many sources. The on times or the off times of the sources have a Pareto
/// distribution of this shape (Willinger and others 1997).
pub fn of_on_off(shape: f64) -> f64 {
    (3.0 - shape) / 2.0
}

#[cfg(test)]
mod tests;
