//! The four comparisons of chapter 4 between attenuation factors.
//!
//! Each comparison tests whether one mean exceeds another mean with some confidence. It uses the *standard errors* of the means:
//! the standard deviation over the square root of the number of samples. The paper writes the squared error as `Sig^2 / N` under
//! the root once there are N samples.

/// A mean and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Estimate {
    /// The mean, "Theta" or "theta".
    pub(super) mean: f64,
    /// Standard error of the mean.
    pub(super) error: f64,
}

/// "alpha_1" and "alpha_2".
const WORSE: (f64, f64) = (1.25, 1.64);
/// "beta_1" and "beta_2".
const BETTER: (f64, f64) = (2.0, 2.58);
/// "gamma".
// Paper gap: 4.1.4.3 gives no value for gamma. 1.64 is the confidence of the first comparison, alpha_2.
const SAME: f64 = 1.64;
/// "omega".
const MAY_BE_WORSE: f64 = 3.5;

/// Returns the combined error of both means.
fn joint(a: f64, b: f64) -> f64 {
    (a * a + b * b).sqrt()
}

impl Estimate {
    /// (4.1): returns whether this receiver is more congested than the representative and should replace it (paper 000, 4.1.2).
    pub(super) fn replaces(self, representative: Estimate) -> bool {
        let (bias, confidence) = WORSE;
        let margin = confidence * joint(self.error, bias * representative.error);
        self.mean > bias * representative.mean + margin
    }

    /// (4.2): returns whether this receiver is far less congested than the representative (paper 000, 4.1.4.1).
    // Paper gap: (4.2) prints the representative's deviation without a square, so its unit differs from the other terms. Here it
    // is squared.
    pub(super) fn is_well_below(self, representative: Estimate) -> bool {
        let (bias, confidence) = BETTER;
        let margin = confidence * joint(bias * self.error, representative.error);
        representative.mean > bias * self.mean + margin
    }

    /// (4.3): returns whether the two means differ only by chance (paper 000, 4.1.4.3).
    pub(super) fn is_like(self, other: Estimate) -> bool {
        (self.mean - other.mean).abs() <= SAME * joint(self.error, other.error)
    }

    /// (4.4): returns whether this receiver may become the representative (paper 000, 4.1.4.4).
    pub(super) fn may_replace(self, representative: Estimate) -> bool {
        self.mean > representative.mean + MAY_BE_WORSE * joint(self.error, representative.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mean: f64, deviation: f64) -> Estimate {
        Estimate { mean, error: deviation / 30f64.sqrt() }
    }

    /// T-GM-2, (4.1): 1.25 * 2 + 1.64 * sqrt((0.6^2 + (1.25 * 0.4)^2) / 30) = 2.7338...
    #[test]
    fn representative_is_replaced_at_a_quarter_more_plus_margin() {
        let representative = of(2.0, 0.4);
        assert!(!of(2.733, 0.6).replaces(representative));
        assert!(of(2.735, 0.6).replaces(representative));
    }

    /// T-GM-2, (4.2): 2 * 0.5 + 2.58 * sqrt(((2 * 0.3)^2 + 0.8^2) / 30) = 1.4710...; with 0.8 unsquared it would be 1.507.
    #[test]
    fn the_second_comparison_squares_the_deviation() {
        let me = of(0.5, 0.3);
        assert!(!me.is_well_below(of(1.471, 0.8)));
        assert!(me.is_well_below(of(1.4712, 0.8)));
    }

    /// T-GM-2, (4.3): 1.64 * sqrt((0.1^2 + 0.2^2) / 30) = 0.06695...
    #[test]
    fn rate_shift_is_harmless_within_the_margin_on_both_sides() {
        let steady = of(0.5, 0.1);
        for (mean, like) in [(0.566, true), (0.568, false), (0.434, true), (0.432, false)] {
            assert_eq!(of(mean, 0.2).is_like(steady), like, "{mean}");
        }
    }

    /// T-GM-2, (4.4): 2 + 3.5 * sqrt((0.6^2 + 0.4^2) / 30) = 2.4608...
    #[test]
    fn receiver_above_the_unbiased_margin_may_become_representative() {
        let representative = of(2.0, 0.4);
        assert!(!of(2.460, 0.6).may_replace(representative));
        assert!(of(2.462, 0.6).may_replace(representative));
    }
}
