//! Delays on `[0, T]` with an exponentially rising density (paper 000, 3.1.4): few receivers have a short delay, and their
//! answers suppress the answers of the many other receivers.

use crate::rng::Rng;
use crate::time::Span;

/// The distribution with density `L / (T (e^L - 1)) * e^(L x / T)` on `[0, T]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TruncatedExponential {
    steepness: f32,
}

impl TruncatedExponential {
    /// Creates a distribution with steepness `L` > 0. A larger steepness gives fewer answers in large groups, and longer delays
    /// in small groups.
    pub const fn new(steepness: f32) -> TruncatedExponential {
        TruncatedExponential { steepness }
    }

    /// Returns the steepness.
    pub const fn steepness(&self) -> f32 {
        self.steepness
    }

    /// Returns a random delay between zero and `longest`.
    pub fn delay(&self, longest: Span, rng: &mut Rng) -> Span {
        longest.scaled(self.quantile(rng.unit())).min(longest)
    }

    /// Returns the quantile for `probability`, as a fraction of the longest delay.
    pub fn quantile(&self, probability: f64) -> f64 {
        let steepness = f64::from(self.steepness);
        (1.0 + probability * steepness.exp_m1()).ln() / steepness
    }
}

// Paper gap: 3.1.4 does not state the steepness (it prints the letter lambda). 10 is ln(N) + 1 for about 8000 receivers.
impl Default for TruncatedExponential {
    fn default() -> TruncatedExponential {
        TruncatedExponential::new(10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Kolmogorov-Smirnov distance is below the critical value for a significance level of 1 in 1000.
    #[test]
    fn delays_follow_the_truncated_exponential_law() {
        let (law, longest, draws) = (TruncatedExponential::default(), Span::from_millis(200), 20_000);
        let mut rng = Rng::new(3, 14);
        let mut delays: Vec<f64> =
            (0..draws).map(|_| law.delay(longest, &mut rng).as_secs_f64() / 0.2).collect();
        delays.sort_by(f64::total_cmp);
        let distance = delays.iter().enumerate().fold(0f64, |worst, (below, x)| {
            let expected = (10.0 * x).exp_m1() / 10f64.exp_m1();
            worst.max((expected - below as f64 / draws as f64).abs())
        });
        assert!(distance < 1.95 / (draws as f64).sqrt(), "{distance}");
    }

    #[test]
    fn the_mean_delay_is_nine_tenths_of_the_longest() {
        let (law, mut rng) = (TruncatedExponential::default(), Rng::new(1, 1));
        let mean = (0..50_000).map(|_| law.quantile(rng.unit())).sum::<f64>() / 50_000.0;
        assert!((mean - 0.9).abs() < 0.002, "{mean}");
    }
}
