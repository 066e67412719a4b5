//! The four conditions of paper 000, chapter 4 that compare attenuation factors.
//!
//! Each comparison tests whether one mean exceeds another mean with some confidence. It uses the *standard error* of each mean:
//! the standard deviation divided by the square root of the number of samples. With N samples, the paper writes the squared error
//! as `Sig^2 / N` under the root.

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
    /// Condition (4.1): returns whether this receiver is more congested than the representative and should replace it (paper 000,
    /// 4.1.2).
    pub(super) fn replaces(self, representative: Estimate) -> bool {
        let (bias, confidence) = WORSE;
        let margin = confidence * joint(self.error, bias * representative.error);
        self.mean > bias * representative.mean + margin
    }

    /// Condition (4.2): returns whether this receiver is far less congested than the representative (paper 000, 4.1.4.1).
    // Paper gap: (4.2) prints the representative's deviation without a square, so its unit differs from the other terms. Here it
    // is squared.
    pub(super) fn is_well_below(self, representative: Estimate) -> bool {
        let (bias, confidence) = BETTER;
        let margin = confidence * joint(bias * self.error, representative.error);
        representative.mean > bias * self.mean + margin
    }

    /// Condition (4.3): returns whether the two means differ only by chance (paper 000, 4.1.4.3).
    pub(super) fn is_like(self, other: Estimate) -> bool {
        (self.mean - other.mean).abs() <= SAME * joint(self.error, other.error)
    }

    /// Condition (4.4): returns whether this receiver may become the representative (paper 000, 4.1.4.4).
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

    /// (4.1): 1.25 * 2 + 1.64 * sqrt((0.6^2 + (1.25 * 0.4)^2) / 30) = 2.7338...
    #[test]
    fn receiver_a_quarter_more_congested_replaces_representative() {
        let representative = of(2.0, 0.4);
        assert!(!of(2.733, 0.6).replaces(representative));
        assert!(of(2.735, 0.6).replaces(representative));
    }

    /// (4.2): 2 * 0.5 + 2.58 * sqrt(((2 * 0.3)^2 + 0.8^2) / 30) = 1.4710...; with 0.8 instead of 0.8^2 the result would
    /// be 1.507.
    #[test]
    fn condition_4_2_squares_the_deviation_of_the_representative() {
        let me = of(0.5, 0.3);
        assert!(!me.is_well_below(of(1.471, 0.8)));
        assert!(me.is_well_below(of(1.4712, 0.8)));
    }

    /// (4.3): 1.64 * sqrt((0.1^2 + 0.2^2) / 30) = 0.06695...
    #[test]
    fn means_are_alike_if_they_differ_by_at_most_the_margin() {
        let steady = of(0.5, 0.1);
        for (mean, like) in [(0.566, true), (0.568, false), (0.434, true), (0.432, false)] {
            assert_eq!(of(mean, 0.2).is_like(steady), like, "{mean}");
        }
    }

    /// (4.4): 2 + 3.5 * sqrt((0.6^2 + 0.4^2) / 30) = 2.4608...
    #[test]
    fn slightly_more_congested_receiver_may_become_representative() {
        let representative = of(2.0, 0.4);
        assert!(!of(2.460, 0.6).may_replace(representative));
        assert!(of(2.462, 0.6).may_replace(representative));
    }
}
