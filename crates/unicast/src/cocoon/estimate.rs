//! The round-trip time of a group: one estimator that takes the samples of all members (paper 002, 4.2; RFC 6298, 2).

use crate::rtt::RttEstimate;
use faircast_core::time::Span;

/// Mean and deviation of a group's round-trip times.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct GroupRoundTrip {
    known: Option<RttEstimate>,
    /// Number of changes so far. By this number, a member detects whether the estimate has changed since the member last read it.
    version: u32,
}

impl GroupRoundTrip {
    pub(super) fn sample(&mut self, rtt: Span) {
        let rtt = rtt.as_nanos().clamp(1, 1 << 50);
        let known = match self.known {
            None => RttEstimate { mean: Span::from_nanos(rtt), deviation: Span::from_nanos(rtt / 2) },
            Some(RttEstimate { mean, deviation }) => {
                let (mean, deviation) = (mean.as_nanos(), deviation.as_nanos());
                RttEstimate {
                    mean: Span::from_nanos((7 * mean + rtt) / 8),
                    deviation: Span::from_nanos((3 * deviation + mean.abs_diff(rtt)) / 4),
                }
            }
        };
        self.set(known);
    }

    pub(super) fn set(&mut self, estimate: RttEstimate) {
        self.known = Some(estimate);
        self.version = self.version.wrapping_add(1);
    }

    pub(super) const fn estimate(&self) -> Option<RttEstimate> {
        self.known
    }

    pub(super) const fn version(&self) -> u32 {
        self.version
    }

    /// Returns the timeout `SRTT + max(G, 4 * RTTVAR)`, limited to `least..=most`; `None` before the first sample.
    pub(super) fn timeout(&self, granularity: Span, least: Span, most: Span) -> Option<Span> {
        let RttEstimate { mean, deviation } = self.known?;
        Some((mean + (deviation * 4).max(granularity)).max(least).min(most))
    }
}
