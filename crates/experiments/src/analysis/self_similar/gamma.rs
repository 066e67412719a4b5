//! The gamma function.

/// Lanczos' coefficients for g = 7.
const COEFFICIENTS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// Returns the logarithm of the gamma function of a positive number.
pub(super) fn log_gamma(x: f64) -> f64 {
    let pi = std::f64::consts::PI;
    if x < 0.5 {
        return (pi / (pi * x).sin()).ln() - log_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + 7.5;
    let terms = COEFFICIENTS.iter().enumerate().skip(1).map(|(k, c)| c / (x + k as f64));
    let sum = COEFFICIENTS[0] + terms.sum::<f64>();
    0.5 * (2.0 * pi).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// Returns the gamma function of a positive number.
pub(super) fn gamma(x: f64) -> f64 {
    log_gamma(x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_function_matches_factorials_and_the_root_of_pi() {
        for (x, expected) in [
            (1.0, 1.0),
            (2.0, 1.0),
            (5.0, 24.0),
            (0.5, std::f64::consts::PI.sqrt()),
            (0.1, 9.513_507_698_668_732),
        ] {
            assert!((gamma(x) / expected - 1.0).abs() < 1e-12, "{x}: {}", gamma(x));
        }
    }
}
