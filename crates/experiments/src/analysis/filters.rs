//! Number of reports that pass the filters of LE-SBCC (paper 000, 2.1.1).

/// Returns the mean number of reports that pass if each report passes with a probability equal to its receiver's share of all
/// reports (LPRF). `counts` has the number of reports of each receiver. The result never exceeds the largest of these numbers.
// Paper gap: 2.1.1 evaluates an example, N - 1 receivers with n losses and one with 10 n, as (N + 99 n) / (N + 9). The preceding
// sum gives n (N + 99) / (N + 9), which is about n in a large group; no n makes it 10 n.
pub fn lprf_passes(counts: &[f64]) -> f64 {
    let sum: f64 = counts.iter().sum();
    if sum > 0.0 { counts.iter().map(|count| count * count).sum::<f64>() / sum } else { 0.0 }
}

/// Returns the mean number of reports that pass if each report passes with a probability equal to the worst receiver's share of
/// all reports (Max-LPRF). The result equals the worst receiver's number of reports.
pub fn max_lprf_passes(counts: &[f64]) -> f64 {
    counts.iter().copied().fold(0.0, f64::max)
}

/// Returns the multiple of the mean deviation that covers a sudden step of the round-trip time. The first sample after the step
/// moves both the mean and the mean deviation by the share `gain` of the step (MCA's bound of the round-trip time; paper 000,
/// D.2).
pub fn deviations_that_cover_a_step(gain: f64) -> f64 {
    (1.0 - gain) / gain
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::estimate::Ewma;

    /// Analysis A2.
    #[test]
    fn number_of_lprf_reports_matches_the_corrected_example() {
        for (n, receivers) in [(10.0, 1000), (10.0, 10), (1000.0, 1000)] {
            let mut counts = vec![n; receivers - 1];
            counts.push(10.0 * n);
            let count = receivers as f64;
            let expected = n * (count + 99.0) / (count + 9.0);
            assert!((lprf_passes(&counts) - expected).abs() < 1e-6 * expected);
            assert_eq!(max_lprf_passes(&counts), 10.0 * n);
        }
        let mut counts = vec![10.0; 999];
        counts.push(100.0);
        assert!((lprf_passes(&counts) - 10.89).abs() < 0.005);
    }

    #[test]
    fn lprf_passes_at_most_as_many_reports_as_max_lprf() {
        for counts in [&[3.0, 1.0, 4.0, 1.0, 5.0][..], &[7.0], &[2.0, 2.0], &[]] {
            assert!(lprf_passes(counts) <= max_lprf_passes(counts) + 1e-12);
        }
    }

    /// Analysis A11.
    #[test]
    fn seven_deviations_cover_a_step_of_the_round_trip_time() {
        let deviations = deviations_that_cover_a_step(0.125);
        assert_eq!(deviations, 7.0);
        let mut rtt = Ewma::new(0.125);
        rtt.add(0.1, 0.0);
        rtt.add(0.5, 0.0);
        let bound = |deviations| rtt.mean().expect("sampled") + deviations * rtt.deviation();
        assert!((bound(deviations) - 0.5).abs() < 1e-12);
        assert!(bound(deviations - 0.1) < 0.5);
    }
}
