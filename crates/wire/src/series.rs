//! The place of a session in a series of sessions of one source.

/// The place of a session in a series. Receivers that cannot ask the source for missing sessions find gaps in the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    /// Random number of the series. It stays the same when the source starts again.
    pub id: u64,
    /// Number of the session in the series; the first one has the number 1.
    pub number: u64,
}
