//! TCP's rate at a loss event rate (RFC 4654, 2.1), without a limit on the contribution of timeouts.
//!
//! [`crate::rate::formula`] is the original formula, whose probability of timeouts is at most one. RFC 4654 and RFC 5348 omit
//! this limit. The formulas differ if more than three packets in ten are lost.

use crate::time::{Rate, Span};

/// Returns the rate at loss event rate `loss`; unlimited without loss.
pub(super) fn rate(packet_size: f64, rtt: Span, loss: f64) -> Rate {
    let per_rtt =
        (2.0 * loss / 3.0).sqrt() + 12.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
    let secs = rtt.as_secs_f64() * per_rtt;
    if secs > 0.0 { Rate::from_bps(8.0 * packet_size / secs) } else { Rate::UNLIMITED }
}

/// Returns the loss interval before the first loss event, at least one packet. The interval is calculated from the received rate
/// with the square-root term only (RFC 4654, 5.6).
pub(super) fn first_interval(packet_size: f64, received: Rate, rtt: Span) -> f64 {
    let packets = received.bps() * rtt.as_secs_f64() / (8.0 * packet_size);
    (packets * packets / 1.5).max(1.0)
}

/// Returns the first loss interval by the whole equation (RFC 5348, 6.3.1). With this interval the equation yields the received
/// rate.
pub(super) fn first_interval_exactly(packet_size: f64, received: Rate, rtt: Span) -> f64 {
    let (mut low, mut high) = (1e-8f64, 1.0f64);
    // Each step halves the search interval on a logarithmic scale.
    for _ in 0..32 {
        let middle = (low * high).sqrt();
        if rate(packet_size, rtt, middle).bps() > received.bps() { low = middle } else { high = middle }
    }
    1.0 / (low * high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_at_a_loss_event_rate_matches_the_equation() {
        for (secs, loss, bps) in [
            (0.1, 0.01, 898_658.0),
            (0.1, 0.001, 3_070_749.0),
            (0.5, 0.01, 179_732.0),
            (0.1, 0.1, 141_608.0),
            (0.1, 1.0, 328.8),
        ] {
            let found = rate(1000.0, Span::from_secs_f64(secs), loss).bps();
            assert!((found / bps - 1.0).abs() < 2e-4, "{found} at {loss}");
        }
        assert_eq!(rate(1000.0, Span::from_secs(1), 0.0), Rate::UNLIMITED);
    }

    #[test]
    fn one_mbit_at_100_ms_gives_a_first_interval_of_104_packets() {
        let interval = first_interval(1000.0, Rate::from_mbps(1.0), Span::from_millis(100));
        assert!((interval - 104.17).abs() < 0.01, "{interval}");
        assert_eq!(first_interval(1000.0, Rate::ZERO, Span::from_millis(100)), 1.0);
    }

    #[test]
    fn exact_first_interval_reproduces_the_received_rate() {
        let rtt = Span::from_millis(120);
        for kbps in [30.0, 80.0, 1000.0, 50_000.0] {
            let received = Rate::from_bps(kbps * 1e3);
            let back = rate(1000.0, rtt, 1.0 / first_interval_exactly(1000.0, received, rtt));
            assert!((back.bps() / received.bps() - 1.0).abs() < 1e-3, "{kbps}: {back}");
        }
        let received = Rate::from_bps(80e3);
        let rough = rate(1000.0, rtt, 1.0 / first_interval(1000.0, received, rtt));
        assert!(rough.bps() < 0.05 * received.bps(), "{rough}");
    }

    #[test]
    fn equation_agrees_with_the_original_formula_at_low_loss() {
        let path = crate::rate::formula::Path::new(1000, Span::from_millis(80));
        for loss in [1e-4, 0.003, 0.04, 0.25] {
            let (here, there) = (rate(1000.0, path.rtt, loss), path.tcp_rate(loss));
            assert!((here.bps() / there.bps() - 1.0).abs() < 1e-9, "{loss}");
        }
    }
}
