//! Delay of a receiver's report (RFC 4654, 6.4): most delays are long, and the few early reports suppress the late reports.

use super::config::TimerLaw;
use crate::rng::Rng;
use crate::time::Span;

/// Assumed upper bound of the number of receivers, "N". A larger group sends a few more reports per round.
pub(super) const RECEIVERS: f64 = 10_000.0;
/// Fraction of the delay that depends on the rate, in the rule of 2001.
const BIASED: f64 = 1.0 / 3.0;

/// Returns a random delay of at most `longest`. `part` is the receiver's rate divided by the source's rate.
pub(super) fn delay(law: TimerLaw, longest: Span, part: f64, rng: &mut Rng) -> Span {
    let uniform = 1.0 - rng.unit();
    let random = (1.0 + uniform.ln() / RECEIVERS.ln()).max(0.0);
    match law {
        TimerLaw::Rfc => longest.scaled(random),
        TimerLaw::Of2001 => {
            let bias = ((part - 0.5) / (0.9 - 0.5)).clamp(0.0, 1.0);
            longest.scaled(BIASED * bias + (1.0 - BIASED) * random)
        }
    }
}

/// Returns the maximum report delay in a round, "T", for this largest round-trip time.
pub(super) fn longest(law: TimerLaw, rtt_max: Span) -> Span {
    match law {
        TimerLaw::Rfc => rtt_max * 6,
        TimerLaw::Of2001 => rtt_max * 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One receiver in N reports at once. For the other receivers the logarithm of N^(t/T) is uniform.
    #[test]
    fn report_delays_follow_the_rfc_distribution() {
        let (mut rng, draws) = (Rng::new(6, 1), 400_000u32);
        let longest = Span::from_secs(1);
        let mut delays: Vec<f64> =
            (0..draws).map(|_| delay(TimerLaw::Rfc, longest, 1.0, &mut rng).as_secs_f64()).collect();
        let at_once = delays.iter().filter(|delay| **delay == 0.0).count();
        assert!((15..80).contains(&at_once), "{at_once} of {draws} at once, 40 expected");
        delays.sort_by(f64::total_cmp);
        for (rank, delay) in delays.iter().enumerate().step_by(97).filter(|(_, delay)| **delay > 0.0) {
            let (seen, expected) = (rank as f64 / f64::from(draws), RECEIVERS.powf(delay - 1.0));
            assert!((seen - expected).abs() < 0.004, "{delay}: {seen}, {expected}");
        }
        assert!(delays.iter().all(|delay| *delay <= 1.0));
    }

    #[test]
    fn timer_rule_of_2001_lets_slow_receivers_report_earlier() {
        let mean = |part| {
            let mut rng = Rng::new(1, 1);
            let law = TimerLaw::Of2001;
            (0..20_000).map(|_| delay(law, Span::from_secs(1), part, &mut rng).as_secs_f64()).sum::<f64>()
                / 20_000.0
        };
        assert!((mean(1.0) - mean(0.4) - 1.0 / 3.0).abs() < 1e-6);
        assert!((mean(0.7) - mean(0.4) - 1.0 / 6.0).abs() < 1e-6);
    }

    /// Counts the reports per round from many receivers, with equal and with different rates. A report suppresses later reports
    /// after one largest round-trip time.
    #[test]
    fn feedback_round_has_few_reports_and_nearly_the_lowest_rate() {
        let mut rng = Rng::new(7, 7);
        for spread in [0.0, 0.5] {
            for receivers in [10usize, 100, 1_000, 10_000] {
                let rounds = 60;
                let (mut reports, mut worst) = (0usize, 0f64);
                for _ in 0..rounds {
                    let (sent, error) = round(receivers, spread, &mut rng);
                    reports += sent;
                    worst = worst.max(error);
                }
                let mean = reports as f64 / f64::from(rounds);
                println!(
                    "{receivers} receivers, spread {spread}: {mean:.1} reports, lowest within {worst:.3}"
                );
                assert!(mean < 20.0, "{mean} reports of {receivers}");
                assert!(worst < 0.112, "{worst}");
            }
        }
    }

    /// Simulates one round. Returns the number of reports, and the relative difference between the lowest reported rate and the
    /// lowest rate of all receivers.
    fn round(receivers: usize, spread: f64, rng: &mut Rng) -> (usize, f64) {
        let rtt_max = 1.0;
        let mut all: Vec<(f64, f64)> = (0..receivers)
            .map(|_| {
                let waits = delay(TimerLaw::Rfc, Span::from_secs(6), 1.0, rng).as_secs_f64();
                (waits, 1.0 + spread * rng.unit())
            })
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lowest = all.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min);
        let mut sent: Vec<(f64, f64)> = Vec::new();
        for (at, rate) in all {
            let received = sent.iter().filter(|(other, _)| other + rtt_max <= at).map(|(_, rate)| 0.9 * rate);
            if received.fold(f64::INFINITY, f64::min) > rate {
                sent.push((at, rate));
            }
        }
        let found = sent.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min);
        (sent.len(), found / lowest - 1.0)
    }
}
