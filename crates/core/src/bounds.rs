//! Limits of a sending rate, and a meter of the part of the permitted rate that is used.

use crate::time::{Rate, Span, Time};

/// Minimum and maximum permitted rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Minimum rate.
    pub min: Rate,
    /// Maximum rate; may be [`Rate::UNLIMITED`].
    pub max: Rate,
}

/// Upper bound on all rates, 1 Tbit/s, which applies even if no maximum is configured, because pacing uses whole nanoseconds.
const FASTEST: Rate = Rate::from_bps(1e12);
/// Lower bound on all rates, 1 bit/s.
const SLOWEST: Rate = Rate::from_bps(1.0);

impl Bounds {
    /// Returns `rate` clamped to the limits; the result is finite and above zero. If the minimum exceeds the maximum, the maximum
    /// applies.
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
    /// The guard is not applied; the papers define none.
    Off,
    /// The guard is applied.
    On,
}

/// Meter that compares the sending rate with the permitted rate.
///
/// While a permitted rate is not fully used, it must not grow, because nobody knows how the network would respond to the full
/// rate.
#[derive(Debug, Clone, Copy)]
pub struct SendMeter {
    since: Time,
    bytes: u64,
    /// Permitted rate at the start of the measurement.
    allowed: Rate,
    usage: Usage,
}

/// Extent to which the application uses the permitted rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// The sending rate is at least half of the permitted rate.
    Full,
    /// The sending rate is less than half of the permitted rate.
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

    /// Returns the usage in the latest complete measurement. A measurement lasts for a round-trip time or for the sending time of
    /// four packets, whichever is longer.
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
    fn clamped_rate_is_finite_even_without_limits() {
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
