//! Limits of a rate, and whether the application uses it.

use crate::time::{Rate, Span, Time};

/// The lowest and the highest rate that are allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Lowest rate.
    pub min: Rate,
    /// Highest rate; may be [`Rate::UNLIMITED`].
    pub max: Rate,
}

/// An upper bound of a terabit per second on all rates, regardless of the limits: pacing is in whole nanoseconds.
const FASTEST: Rate = Rate::from_bps(1e12);
/// A lower bound of a bit per second.
const SLOWEST: Rate = Rate::from_bps(1.0);

impl Bounds {
    /// `rate`, moved into the limits; always a finite number above zero. Where the two limits contradict each other,
    /// the highest rate rules.
    pub fn clamp(&self, rate: Rate) -> Rate {
        let wanted = if rate.bps().is_nan() { self.min } else { rate };
        wanted.max(self.min).min(self.max).min(FASTEST).max(SLOWEST)
    }

    /// Whether `rate` has come to the upper limit.
    pub fn is_at_max(&self, rate: Rate) -> bool {
        rate.bps() >= self.max.min(FASTEST).bps()
    }
}

/// Whether a guard is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Not applied: the paper's own behaviour.
    Off,
    /// Applied.
    On,
}

/// Compares the amount sent with the amount allowed.
///
/// A rate that is not used must not grow: its effect on the network is unknown.
#[derive(Debug, Clone, Copy)]
pub struct SendMeter {
    since: Time,
    bytes: u64,
    /// The rate that was allowed when the measurement began.
    allowed: Rate,
    usage: Usage,
}

/// How far the application uses its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// It sends at least half of the allowed amount.
    Full,
    /// It sends less than half.
    Partial,
}

impl SendMeter {
    /// Begins to measure now, assuming full use.
    pub const fn new(now: Time) -> SendMeter {
        SendMeter { since: now, bytes: 0, allowed: Rate::UNLIMITED, usage: Usage::Full }
    }

    /// A packet leaves.
    pub fn record(&mut self, size: u16) {
        self.bytes += u64::from(size);
    }

    /// The use over the latest round-trip time, or over the time of four packets where that is longer.
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
    fn every_rate_is_moved_into_the_limits() {
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
    fn a_source_that_sends_a_third_uses_its_rate_in_part() {
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
