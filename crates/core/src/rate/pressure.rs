//! Receivers' own limits: a host that cannot take more, though the network would carry it.
//!
//! This is flow control, not congestion control. A cap lies on top of the scheme's rate; it falls
//! to what a receiver says it can take, by half at most and once per round-trip time, and recovers
//! by itself, so a receiver that got faster or left need not say so.

use crate::time::{Rate, Span, Time};

/// The cap from receivers' own limits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pressure {
    cap: Option<Rate>,
    lowered_at: Option<Time>,
    moved_at: Time,
}

/// How much the cap recovers per step.
const RECOVERY: f64 = 1.05;
/// The shortest step.
const SHORTEST_STEP: Span = Span::from_millis(10);
/// A cap this many times above the scheme's rate is no cap any more.
const IRRELEVANT: f64 = 4.0;

impl Pressure {
    /// The lower of `rate` and the cap.
    pub fn applied_to(&self, rate: Rate) -> Rate {
        self.cap.map_or(rate, |cap| rate.min(cap))
    }

    /// The cap, while there is one.
    pub const fn cap(&self) -> Option<Rate> {
        self.cap
    }

    /// A receiver can take `sustainable` and no more, while we send at `current`. Ignored within a round-trip time
    /// of the latest lowering, and when it is not a usable rate.
    pub fn on_report(&mut self, sustainable: Rate, current: Rate, now: Time, rtt: Span) {
        let too_soon = self.lowered_at.is_some_and(|lowered| now.since(lowered) < rtt);
        if too_soon || !sustainable.is_usable() || sustainable.bps() >= current.bps() {
            return;
        }
        self.cap = Some(sustainable.max(current * 0.5));
        (self.lowered_at, self.moved_at) = (Some(now), now);
    }

    /// Time has passed: recover. `rate` is what the scheme allows.
    pub fn recover(&mut self, rate: Rate, now: Time, rtt: Span) {
        let Some(cap) = self.cap else { return };
        let step = rtt.max(SHORTEST_STEP);
        let steps = now.since(self.moved_at).as_nanos() / step.as_nanos();
        if steps == 0 {
            return;
        }
        self.moved_at += step * steps;
        let recovered = cap * RECOVERY.powi(steps.min(1000) as i32);
        self.cap = (recovered.bps() < rate.bps() * IRRELEVANT).then_some(recovered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(20);

    fn mbps(rate: f64) -> Rate {
        Rate::from_mbps(rate)
    }

    #[test]
    fn pressure_halves_the_rate_at_most_and_once_per_round_trip() {
        let mut pressure = Pressure::default();
        pressure.on_report(mbps(1.0), mbps(100.0), Time::ZERO, RTT);
        assert_eq!(pressure.applied_to(mbps(100.0)), mbps(50.0));
        pressure.on_report(mbps(1.0), mbps(50.0), Time::from_secs_f64(0.019), RTT);
        assert_eq!(pressure.cap(), Some(mbps(50.0)));
        pressure.on_report(mbps(40.0), mbps(50.0), Time::from_secs_f64(0.02), RTT);
        assert_eq!(pressure.cap(), Some(mbps(40.0)));
    }

    #[test]
    fn the_cap_recovers_by_a_twentieth_per_round_trip_and_vanishes() {
        let mut pressure = Pressure::default();
        pressure.on_report(mbps(60.0), mbps(100.0), Time::ZERO, RTT);
        pressure.recover(mbps(100.0), Time::from_secs_f64(0.041), RTT);
        let expected = 60.0 * 1.05 * 1.05;
        assert!((pressure.cap().expect("still there").bps() / 1e6 - expected).abs() < 1e-9);
        pressure.recover(mbps(100.0), Time::from_secs_f64(2.0), RTT);
        assert_eq!(pressure.cap(), None);
    }

    #[test]
    fn absurd_rates_and_rates_above_ours_are_no_pressure() {
        let mut pressure = Pressure::default();
        for rate in [f64::NAN, f64::INFINITY, 0.0, -5.0, 200e6] {
            pressure.on_report(Rate::from_bps(rate), mbps(100.0), Time::ZERO, RTT);
        }
        assert_eq!(pressure.cap(), None);
    }
}
