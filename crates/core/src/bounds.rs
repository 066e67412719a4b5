//! Limits of a rate, and the meter of its use.

use crate::time::{Rate, Span, Time};

/// Minimum and maximum permitted rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Minimum rate.
    pub min: Rate,
    /// Maximum rate; may be [`Rate::UNLIMITED`].
    pub max: Rate,
}

/// Upper bound of a terabit per second on all rates, regardless of the limits, because pacing uses whole nanoseconds.
const FASTEST: Rate = Rate::from_bps(1e12);
/// Lower bound of a bit per second on all rates.
const SLOWEST: Rate = Rate::from_bps(1.0);

impl Bounds {
    /// Returns `rate` clamped to the limits: a finite number above zero. If the minimum exceeds the maximum, the maximum applies.
    pub fn clamp(&self, rate: Rate) -> Rate {
        let wanted = if rate.bps().is_nan() { self.min } else { rate };
        wanted.max(self.min).min(self.max).min(FASTEST).max(SLOWEST)
    }

    /// Returns whether `rate` has reached the maximum.
    pub fn is_at_max(&self, rate: Rate) -> bool {
        rate.bps() >= self.max.min(FASTEST).bps()
    }
}

/// Whether a guard is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// The guard is not applied, as in the paper.
    Off,
    /// The guard is applied.
    On,
}

/// Compares the sent amount with the permitted amount.
///
/// An unused rate must not grow, because its effect on the network is unknown.
#[derive(Debug, Clone, Copy)]
pub struct SendMeter {
    since: Time,
    bytes: u64,
    /// Permitted rate at the start of the measurement.
    allowed: Rate,
    usage: Usage,
}

/// Use of the rate by the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// At least half of the permitted amount is sent.
    Full,
    /// Less than half of the permitted amount is sent.
    Partial,
}

impl SendMeter {
    /// Starts a measurement at `now`, assuming full use.
    pub const fn new(now: Time) -> SendMeter {
        SendMeter { since: now, bytes: 0, allowed: Rate::UNLIMITED, usage: Usage::Full }
    }

    /// Records a sent packet.
    pub fn record(&mut self, size: u16) {
        self.bytes += u64::from(size);
    }

    /// Returns the use over the latest round-trip time, or over the time of four packets if that is longer.
    pub fn usage(&mut self, now: Time, allowed: Rate, rtt: Span, packet_size: u16) -> Usage {
        let passed = now.since(self.since);
        if passed >= rtt.max(allowed.span_of(4 * u64::from(packet_size))) {
            let sent = Rate::of(self.bytes, passed);
            let least = allowed.min(self.allowed);
            let usage = if sent.bps() >= least.bps() / 2.0 { Usage::Full } else { Usage::Partial };
            *self = SendMeter { since: now, bytes: 0, allowed, usage };
        }
        self.usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_is_clamped_to_the_limits() {
        let bounds = Bounds { min: Rate::from_bps(1400.0), max: Rate::from_mbps(5.0) };
        for (wanted, got) in
            [(0.0, 1400.0), (f64::NAN, 1400.0), (2e6, 2e6), (f64::INFINITY, 5e6), (-1.0, 1400.0)]
        {
            assert_eq!(bounds.clamp(Rate::from_bps(wanted)).bps(), got);
        }
        assert!(bounds.is_at_max(Rate::from_mbps(5.0)));
    }

    #[test]
    fn a_rate_without_limits_is_still_finite() {
        let bounds = Bounds { min: Rate::ZERO, max: Rate::UNLIMITED };
        assert_eq!(bounds.clamp(Rate::UNLIMITED), FASTEST);
        assert_eq!(bounds.clamp(Rate::ZERO), SLOWEST);
    }

    #[test]
    fn source_that_sends_a_third_of_its_rate_has_partial_usage() {
        let (rtt, allowed) = (Span::from_millis(100), Rate::from_mbps(1.0));
        for (sent, usage) in [(4, Usage::Partial), (12, Usage::Full)] {
            let mut meter = SendMeter::new(Time::ZERO);
            (0..sent).for_each(|_| meter.record(1000));
            assert_eq!(
                meter.usage(Time::from_secs_f64(0.05), allowed, rtt, 1000),
                Usage::Full,
                "too early to say"
            );
            assert_eq!(meter.usage(Time::from_secs_f64(0.1), allowed, rtt, 1000), usage);
        }
    }
}
