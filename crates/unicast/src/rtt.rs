//! The round-trip time shared by neighbours on the same path.

use faircast_core::time::Span;

/// A sender's round-trip time, for sharing with neighbours on the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttEstimate {
    /// The smoothed round-trip time (`SRTT`; RFC 6298, 2).
    pub mean: Span,
    /// Its mean deviation (`RTTVAR`).
    pub deviation: Span,
}
