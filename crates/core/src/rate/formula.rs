//! The rate of TCP at a given loss event rate (Padhye et al. 1998; RFC 5348, 3.1).

use crate::time::{Rate, Span};

/// Inputs of the formula.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Packet size in bytes.
    pub packet_size: u16,
    /// Round-trip time.
    pub rtt: Span,
    /// Retransmission timeout.
    pub timeout: Span,
    /// Number of packets per acknowledgement, "b".
    pub packets_per_ack: f64,
}

impl Path {
    /// Creates a path on which TCP's timeout is four round trips and every packet is acknowledged.
    pub fn new(packet_size: u16, rtt: Span) -> Path {
        Path { packet_size, rtt, timeout: rtt * 4, packets_per_ack: 1.0 }
    }

    /// Returns TCP's rate at loss event rate `loss`; [`Rate::UNLIMITED`] without loss.
    pub fn tcp_rate(&self, loss: f64) -> Rate {
        let secs = self.secs_per_packet(loss);
        if secs <= 0.0 { Rate::UNLIMITED } else { Rate::from_bps(8.0 * f64::from(self.packet_size) / secs) }
    }

    /// Returns the loss event rate, between 10^-8 and 1, at which TCP would send at `rate`.
    pub fn loss_at(&self, rate: Rate) -> f64 {
        let (mut low, mut high) = (1e-8_f64, 1.0_f64);
        // Bisection on a logarithmic scale. After 24 steps the relative error is 10^-6.
        for _ in 0..24 {
            let middle = (low * high).sqrt();
            if self.tcp_rate(middle).bps() > rate.bps() { low = middle } else { high = middle }
        }
        (low * high).sqrt()
    }

    /// Returns the time between packets at loss event rate `p`.
    pub fn secs_per_packet(&self, p: f64) -> f64 {
        if p <= 0.0 {
            return 0.0;
        }
        let b = self.packets_per_ack;
        let sawtooth = self.rtt.as_secs_f64() * (2.0 * b * p / 3.0).sqrt();
        let timeouts = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0);
        sawtooth + self.timeout.as_secs_f64() * timeouts * p * (1.0 + 32.0 * p * p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_percent_loss_at_100_ms_gives_0_9_mbit() {
        // 0.1 sqrt(0.02 / 3) + 0.4 * 3 sqrt(0.03 / 8) * 0.01 * 1.0032 = 8.902 ms per packet
        let rate = Path::new(1000, Span::from_millis(100)).tcp_rate(0.01).bps();
        assert!((rate / 898_680.0 - 1.0).abs() < 1e-3, "{rate}");
    }

    #[test]
    fn loss_at_is_the_inverse_of_tcp_rate() {
        let path = Path::new(500, Span::from_millis(60));
        for loss in [1e-5, 0.003, 0.04, 0.3] {
            let found = path.loss_at(path.tcp_rate(loss));
            assert!((found / loss - 1.0).abs() < 1e-4, "{loss} {found}");
        }
    }
}
