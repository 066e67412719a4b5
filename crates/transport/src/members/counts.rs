//! Numbers of receivers behind a relay.

use std::ops::Add;

/// Receivers below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// How many there are.
    pub receivers: u64,
    /// Those that have everything.
    pub done: u64,
    /// Those, or relays, that are still served.
    pub unfinished: u64,
    /// Those among the unfinished that are heard, and reached.
    pub answering: u64,
}

/// Receivers below a relay's branch, as the relay reports them to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Those that the source does not know by number to be done.
    pub(crate) outstanding: u64,
    /// Those among them that have everything.
    pub(crate) done: u64,
    /// Those among these whose numbers have not been reported.
    pub(crate) unnamed: u64,
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            outstanding: self.outstanding + other.outstanding,
            done: self.done + other.done,
            unnamed: self.unnamed + other.unnamed,
        }
    }
}
