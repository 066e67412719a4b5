//! Binomial control: increase by `a / w^k` per round trip, decrease by `b * w^l` (Bansal and Balakrishnan, "Binomial
//! Congestion Control Algorithms", 2001).
//!
//! `w` is the rate in packets per round-trip time. With `k + l = 1` the control is fair to TCP. AIMD is the case `k = 0, l = 1`;
//! a smaller `l` gives a smoother rate.

use super::policy::{Congestion, Operating, RatePolicy};
use crate::time::Rate;

/// Exponents of binomial control. They determine the factors `a` and `b`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binomial {
    /// Exponent of the increase, 0 to 1.
    pub k: f64,
    /// Exponent of the decrease, 0 to 1.
    pub l: f64,
}

impl Binomial {
    /// Inverse increase, additive decrease.
    pub const IIAD: Binomial = Binomial { k: 1.0, l: 0.0 };
    /// Square-root control: both exponents are 0.5.
    pub const SQRT: Binomial = Binomial { k: 0.5, l: 0.5 };
}

/// Minimum window for the formulas, in packets.
const MIN: f64 = 1.0;

/// Returns the rate that sends one packet per round-trip time.
fn unit(at: Operating) -> Rate {
    Rate::of(u64::from(at.packet_size), at.rtt)
}

impl RatePolicy for Binomial {
    fn on_tick(&mut self, at: Operating) -> Rate {
        let unit = unit(at);
        let window = (at.rate.bps() / unit.bps()).max(MIN);
        at.rate + unit * window.powf(-self.k)
    }

    fn on_congestion(&mut self, at: Operating, congestion: Congestion) -> Rate {
        let unit = unit(at);
        let window = congestion.level.bps() / unit.bps();
        let lost = (1.0 - congestion.keep) * window.max(MIN).powf(self.l);
        at.rate.min(unit * (window - lost).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Aimd;
    use crate::time::Span;

    /// An operating point of sixteen packets per round trip.
    const AT: Operating = Operating {
        rate: Rate::from_bps(16.0 * 80_000.0),
        rtt: Span::from_millis(100),
        full_rtt: Span::from_millis(100),
        deviation: Span::ZERO,
        packet_size: 1000,
    };
    const EVENT: Congestion = Congestion { level: AT.rate, keep: 0.5 };

    #[test]
    fn binomial_with_exponents_0_and_1_equals_aimd() {
        let mut binomial = Binomial { k: 0.0, l: 1.0 };
        assert_eq!(binomial.on_tick(AT), Aimd.on_tick(AT));
        assert_eq!(binomial.on_congestion(AT, EVENT), Aimd.on_congestion(AT, EVENT));
    }

    #[test]
    fn sqrt_policy_uses_the_square_root_of_the_window() {
        let mut sqrt = Binomial::SQRT;
        assert_eq!(sqrt.on_tick(AT), AT.rate + Rate::from_bps(80_000.0 / 4.0));
        assert_eq!(sqrt.on_congestion(AT, EVENT), Rate::from_bps((16.0 - 2.0) * 80_000.0));
    }

    #[test]
    fn iiad_decreases_by_half_a_packet_at_any_window() {
        let mut iiad = Binomial::IIAD;
        assert_eq!(iiad.on_congestion(AT, EVENT), Rate::from_bps(15.5 * 80_000.0));
    }

    #[test]
    fn congestion_never_raises_the_rate_of_a_binomial_policy() {
        let event = Congestion { level: AT.rate * 3.0, keep: 0.5 };
        let mut sqrt = Binomial::SQRT;
        assert_eq!(sqrt.on_congestion(AT, event), AT.rate);
    }
}
