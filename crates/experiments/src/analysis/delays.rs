//! Number of early answers of a group, if the delays of the answers have a truncated exponential distribution (paper 000, 3.1.4).

use faircast_core::suppress::TruncatedExponential;

/// Returns the probability that a delay is below `part`, a share of the longest delay.
pub fn probability_below(law: TruncatedExponential, part: f64) -> f64 {
    let steepness = f64::from(law.steepness());
    (steepness * part.clamp(0.0, 1.0)).exp_m1() / steepness.exp_m1()
}

/// Returns the mean delay, as a share of the longest delay.
pub fn mean(law: TruncatedExponential) -> f64 {
    let steepness = f64::from(law.steepness());
    1.0 + 1.0 / steepness.exp_m1() - 1.0 / steepness
}

/// Returns the expected number of answers of a group of `receivers` receivers. The first answer has the delay `first` and
/// suppresses answers whose delays end more than `silencing` later, which corresponds to a round-trip time. `first` and
/// `silencing` are shares of the longest delay.
pub fn early(law: TruncatedExponential, receivers: u32, first: f64, silencing: f64) -> f64 {
    f64::from(receivers) * probability_below(law, first + silencing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;

    /// Analysis A7.
    #[test]
    fn most_delays_are_close_to_the_maximum() {
        let law = TruncatedExponential::new(10.0);
        let near =
            |value: f64, expected: f64| assert!((value - expected).abs() < 5e-4, "{value} not {expected}");
        near(law.quantile(0.5), 0.931);
        near(law.quantile(0.1), 0.770);
        near(mean(law), 0.900);
        for probability in [0.01, 0.3, 0.99] {
            near(probability_below(law, law.quantile(probability)), probability);
        }
        assert_eq!((probability_below(law, -1.0), probability_below(law, 2.0)), (0.0, 1.0));
    }

    /// Analysis A6: in a large group, few receivers answer early.
    #[test]
    fn number_of_early_answers_matches_the_formula() {
        let (law, mut rng, receivers) = (TruncatedExponential::new(10.0), Rng::new(8, 8), 1000);
        let (mut answers, mut computed) = (0.0, 0.0);
        for _ in 0..300 {
            let delays: Vec<f64> = (0..receivers).map(|_| law.quantile(rng.unit())).collect();
            let first = delays.iter().copied().fold(1.0, f64::min);
            answers += delays.iter().filter(|delay| **delay <= first + 0.2).count() as f64;
            computed += early(law, receivers, first, 0.2);
        }
        assert!((answers / computed - 1.0).abs() < 0.1, "{answers} and {computed} of 300 groups");
        assert!(answers / 300.0 < 20.0);
    }
}
