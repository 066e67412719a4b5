//! Rate policies: what a tick and a congestion report do to the rate.

use crate::time::{Rate, Span};

/// The point at which a source works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operating {
    /// The rate now.
    pub rate: Rate,
    /// The round-trip time that counts.
    pub rtt: Span,
    /// Packet size in bytes.
    pub packet_size: u16,
}

/// How a rate adapts. The scheme says when; limits and gates are applied around it.
pub trait RatePolicy {
    /// The rate after a round-trip time without congestion.
    fn on_tick(&mut self, at: Operating) -> Rate;
    /// The rate after a congestion report with this throughput at congestion; never above `at.rate`.
    fn on_congestion(&mut self, at: Operating, level: Rate) -> Rate;
}

/// Additive increase by a packet per round-trip time, decrease to a part of the throughput at
/// congestion (seed 000, 3.1.5).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aimd {
    /// Decrease factor, "beta".
    pub beta: f64,
}

impl RatePolicy for Aimd {
    fn on_tick(&mut self, at: Operating) -> Rate {
        at.rate + Rate::of(u64::from(at.packet_size), at.rtt)
    }

    fn on_congestion(&mut self, at: Operating, level: Rate) -> Rate {
        at.rate.min(level * self.beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Operating =
        Operating { rate: Rate::from_mbps(1.0), rtt: Span::from_millis(100), packet_size: 1000 };

    #[test]
    fn a_tick_adds_a_packet_per_round_trip() {
        assert_eq!(Aimd { beta: 0.75 }.on_tick(AT), Rate::from_bps(1_080_000.0));
    }

    #[test]
    fn congestion_cuts_to_a_part_of_the_level_and_never_raises() {
        let mut policy = Aimd { beta: 0.75 };
        assert_eq!(policy.on_congestion(AT, Rate::from_mbps(0.8)), Rate::from_mbps(0.8) * 0.75);
        assert_eq!(policy.on_congestion(AT, Rate::from_mbps(8.0)), AT.rate);
    }
}
