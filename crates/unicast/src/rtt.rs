//! The round-trip time that connections on the same path share.

use faircast_core::time::Span;

/// A sender's estimate of the round-trip time, which connections on the same path can share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttEstimate {
    /// The smoothed round-trip time (`SRTT`; RFC 6298, 2).
    pub mean: Span,
    /// Its mean deviation (`RTTVAR`).
    pub deviation: Span,
}
