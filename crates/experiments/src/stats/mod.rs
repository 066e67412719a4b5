//! Statistics of repeated runs and of series: means with confidence intervals, fairness, fitted lines, and the warm-up.

mod intervals;
mod series;

pub use intervals::{bootstrap_interval, student_interval};
pub use series::{mser5, trend};

use std::f64::consts::PI;

/// Confidence level of reported intervals, unless stated otherwise.
pub const CONFIDENCE: f64 = 0.95;

/// Returns the arithmetic mean; NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation of a sample (divisor `n - 1`); zero for fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Returns the coefficient of variation: standard deviation over mean.
pub fn variation(values: &[f64]) -> f64 {
    deviation(values) / mean(values)
}

/// Returns Jain's fairness index `(sum x)^2 / (n sum x^2)`: 1 for equal shares, `1/n` if only one share is not zero, NaN if all
/// shares are zero.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (shares.len() as f64 * squares)
}

/// Returns the quantile `p` (0 to 1), interpolated between neighbouring values; NaN without values.
pub fn quantile(values: &[f64], p: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = p.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// A mean of independent runs, and its accuracy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Number of runs.
    pub runs: usize,
    /// Mean of the runs.
    pub mean: f64,
    /// Sample standard deviation of the runs.
    pub deviation: f64,
    /// Half of the width of the confidence interval; NaN for fewer than two runs.
    pub half_width: f64,
}

impl Estimate {
    /// Computes the mean of these values, one per run, and its confidence interval with Student's t at [`CONFIDENCE`]. NaNs are
    /// ignored.
    pub fn of(values: &[f64]) -> Estimate {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let (runs, deviation) = (values.len(), deviation(&values));
        let half_width = match runs {
            0 | 1 => f64::NAN,
            _ => student_t(CONFIDENCE, runs - 1) * deviation / (runs as f64).sqrt(),
        };
        Estimate { runs, mean: mean(&values), deviation, half_width }
    }

    /// Returns the ends of the confidence interval. For fewer than two runs, both ends equal the mean.
    pub fn interval(&self) -> (f64, f64) {
        let half = if self.half_width.is_finite() { self.half_width } else { 0.0 };
        (self.mean - half, self.mean + half)
    }
}

/// Returns the `t` for which a variable with Student's distribution is within `-t .. t` with this probability (below 1).
pub fn student_t(probability: f64, freedom: usize) -> f64 {
    let mut above = 1.0;
    while student_within(above, freedom) < probability {
        above *= 2.0;
    }
    let mut below = 0.0;
    for _ in 0..80 {
        let middle = 0.5 * (below + above);
        if student_within(middle, freedom) < probability { below = middle } else { above = middle }
    }
    above
}

/// Returns the probability that a variable with Student's distribution and `freedom` degrees of freedom is within `-t .. t`
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn student_within(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let mut exponent = freedom % 2;
    let (mut term, mut sum) = (cos.powi(exponent as i32), 0.0);
    while exponent + 2 <= freedom {
        sum += term;
        term *= cos * cos * (exponent + 1) as f64 / (exponent + 2) as f64;
        exponent += 2;
    }
    if freedom % 2 == 1 { 2.0 / PI * (angle + sin * sum) } else { sin * sum }
}

/// A straight line through points, by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Change of the ordinate per unit of the abscissa.
    pub slope: f64,
    /// Value at zero.
    pub intercept: f64,
    /// Share of the variance that the line explains, "R^2".
    pub r_squared: f64,
}

/// Scale of the coordinates to which a line is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// The coordinates themselves.
    #[default]
    Linear,
    /// The logarithms of both coordinates. The slope is then an exponent.
    Logarithmic,
}

/// A property of a fitted line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trait {
    /// [`Fit::slope`].
    #[default]
    Slope,
    /// [`Fit::intercept`].
    Intercept,
    /// [`Fit::r_squared`].
    Explained,
}

impl Fit {
    /// Returns the selected property of the line.
    pub const fn get(&self, which: Trait) -> f64 {
        match which {
            Trait::Slope => self.slope,
            Trait::Intercept => self.intercept,
            Trait::Explained => self.r_squared,
        }
    }
}

impl Scale {
    /// Fits a line to points on this scale. Returns `None` for fewer than two different abscissas, or if a logarithm is
    /// undefined.
    pub fn fit(self, points: &[(f64, f64)]) -> Option<Fit> {
        let placed: Vec<(f64, f64)> = match self {
            Scale::Linear => points.to_vec(),
            Scale::Logarithmic => points.iter().map(|(x, y)| (x.ln(), y.ln())).collect(),
        };
        let sound = placed.iter().all(|(x, y)| x.is_finite() && y.is_finite());
        if sound { fit(&placed) } else { None }
    }
}

/// Fits a line to points. Returns `None` for fewer than two different abscissas.
pub fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let n = points.len() as f64;
    let (mean_x, mean_y) =
        (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sum =
        |f: &dyn Fn(f64, f64) -> f64| -> f64 { points.iter().map(|&(x, y)| f(x - mean_x, y - mean_y)).sum() };
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if points.len() < 2 || xx <= 0.0 {
        return None;
    }
    let r_squared = if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 };
    Some(Fit { slope: xy / xx, intercept: mean_y - mean_x * xy / xx, r_squared })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn mean_and_deviation_match_textbook_values() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        near(mean(&values), 5.0, 1e-12);
        near(deviation(&values), (32.0_f64 / 7.0).sqrt(), 1e-12);
        near(variation(&values), (32.0_f64 / 7.0).sqrt() / 5.0, 1e-12);
        assert!(mean(&[]).is_nan());
        assert_eq!(deviation(&[3.0]), 0.0);
    }

    #[test]
    fn students_t_quantiles_match_published_tables() {
        for (freedom, t) in [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (19, 2.093),
            (29, 2.045),
            (30, 2.042),
            (120, 1.980),
        ] {
            near(student_t(0.95, freedom), t, 6e-4);
        }
        near(student_t(0.99, 9), 3.250, 6e-4);
        near(student_t(0.90, 4), 2.132, 6e-4);
        near(student_t(0.95, 100_000), 1.959_98, 1e-4);
    }

    #[test]
    fn confidence_intervals_contain_the_mean_in_95_percent_of_draws() {
        // 2000 samples of ten normal values each: the intervals of 95 % of the samples contain the true mean.
        let mut rng = faircast_core::rng::Rng::new(7, 1);
        let mut normal = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let held = (0..2000)
            .filter(|_| {
                let values: Vec<f64> = (0..10).map(|_| normal()).collect();
                let (low, high) = Estimate::of(&values).interval();
                (low..=high).contains(&0.0)
            })
            .count();
        near(held as f64 / 2000.0, 0.95, 0.015);
    }

    #[test]
    fn single_run_has_no_confidence_interval_and_nans_are_ignored() {
        let one = Estimate::of(&[4.0]);
        assert!(one.half_width.is_nan());
        assert_eq!(one.interval(), (4.0, 4.0));
        assert_eq!(Estimate::of(&[1.0, f64::NAN, 3.0]).runs, 2);
        assert!(Estimate::of(&[]).mean.is_nan());
    }

    #[test]
    fn jains_index_ranges_from_one_nth_to_one() {
        near(jain(&[3.0, 3.0, 3.0]), 1.0, 1e-12);
        near(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25, 1e-12);
        near(jain(&[1.0, 2.0]), 0.9, 1e-12);
        assert!(jain(&[0.0]).is_nan());
    }

    #[test]
    fn quantiles_are_interpolated_between_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (1.0, 4.0));
        near(quantile(&values, 0.5), 2.5, 1e-12);
        near(quantile(&values, 0.25), 1.75, 1e-12);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn fit_recovers_a_line_and_noise_lowers_r_squared() {
        let exact = fit(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).expect("a line");
        near(exact.slope, 2.0, 1e-12);
        near(exact.intercept, 1.0, 1e-12);
        near(exact.r_squared, 1.0, 1e-12);
        let noisy = fit(&[(0.0, 1.0), (1.0, 4.0), (2.0, 5.0)]).expect("a line");
        near(noisy.r_squared, 12.0 / 13.0, 1e-12);
        assert_eq!(fit(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn logarithmic_fit_has_the_exponent_as_slope() {
        let law: Vec<(f64, f64)> = [0.001, 0.01, 0.1].map(|p: f64| (p, 7.0 / p.sqrt())).into();
        let fit = Scale::Logarithmic.fit(&law).expect("positive numbers have logarithms");
        near(fit.get(Trait::Slope), -0.5, 1e-12);
        near(fit.get(Trait::Intercept), 7f64.ln(), 1e-9);
        near(fit.get(Trait::Explained), 1.0, 1e-12);
        assert_eq!(Scale::Logarithmic.fit(&[(0.0, 1.0), (1.0, 2.0)]), None);
    }
}
