//! Additive increase, multiplicative decrease.

use super::policy::{Congestion, Operating, RatePolicy};
use crate::time::Rate;

/// Additive increase by a packet per round-trip time. At congestion, decrease to a fraction of the rate (paper 000, 3.1.5).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aimd;

impl RatePolicy for Aimd {
    fn on_tick(&mut self, at: Operating) -> Rate {
        at.rate + Rate::of(u64::from(at.packet_size), at.full_rtt)
    }

    fn on_congestion(&mut self, at: Operating, congestion: Congestion) -> Rate {
        at.rate.min(congestion.level * congestion.keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    const AT: Operating = Operating {
        rate: Rate::from_mbps(1.0),
        rtt: Span::from_millis(100),
        full_rtt: Span::from_millis(100),
        deviation: Span::ZERO,
        packet_size: 1000,
    };

    #[test]
    fn a_tick_adds_a_packet_per_round_trip() {
        assert_eq!(Aimd.on_tick(AT), Rate::from_bps(1_080_000.0));
    }

    #[test]
    fn cut_reduces_the_rate_to_a_fraction_of_a_lower_level_only() {
        let level = |mbps| Congestion { level: Rate::from_mbps(mbps), keep: 0.75 };
        assert_eq!(Aimd.on_congestion(AT, level(0.8)), Rate::from_mbps(0.8) * 0.75);
        assert_eq!(Aimd.on_congestion(AT, level(8.0)), AT.rate);
    }
}
