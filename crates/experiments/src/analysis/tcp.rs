//! Rate of TCP by the formula without timeouts. [`Path`] has the formula with timeouts.

pub use faircast_core::rate::formula::Path;

use faircast_core::time::{Rate, Span};

/// Returns the mean window in packets at the loss event rate `loss`, without timeouts. An acknowledgement covers
/// `packets_per_ack` packets.
pub fn window(loss: f64, packets_per_ack: f64) -> f64 {
    (3.0 / (2.0 * packets_per_ack * loss)).sqrt()
}

/// Returns the largest window in packets, which is the window at a loss.
pub fn window_at_loss(loss: f64, packets_per_ack: f64) -> f64 {
    (8.0 / (3.0 * packets_per_ack * loss)).sqrt()
}

/// Returns the rate without timeouts, 1.22 s / (RTT sqrt(p)). Paper 000, 2.2.2, compares its flows with this rate.
pub fn rate_without_timeouts(packet_size: u16, rtt: Span, loss: f64) -> Rate {
    Rate::of(u64::from(packet_size), rtt) * window(loss, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_constant_without_timeouts_is_1_22() {
        assert!((window(1.0, 1.0) - 1.22).abs() < 0.005);
        // The window is a sawtooth between half of its maximum and its maximum. The mean window is three quarters of the maximum.
        // One packet is lost per cycle, which has 3/8 of the square of the maximum in packets.
        let largest = window_at_loss(0.001, 1.0);
        assert!((3.0 / 8.0 * largest * largest - 1000.0).abs() < 1e-6);
        assert!((window(0.001, 1.0) / largest - 0.75).abs() < 1e-12);
    }

    #[test]
    fn tcp_formulas_agree_at_a_small_loss_rate() {
        let rtt = Span::from_millis(100);
        let (with, without) = (Path::new(1000, rtt).tcp_rate(1e-5), rate_without_timeouts(1000, rtt, 1e-5));
        assert!((with.bps() / without.bps() - 1.0).abs() < 0.01);
    }

    /// Analysis A10: 32 loss events in 167,762 packets give the fair share, at the round-trip time of paper 000, figure 2.5.
    #[test]
    fn loss_event_rate_of_figure_2_6_gives_the_fair_share() {
        let queueing = Rate::from_mbps(5.0).span_of(125 * 560);
        let rtt = Span::from_millis(280) + queueing;
        assert_eq!(rtt, Span::from_millis(392));
        let rate = Path::new(560, rtt).tcp_rate(32.0 / 167_762.0);
        assert!((rate.bps() / 1.014e6 - 1.0).abs() < 0.005, "{rate}");
    }
}
