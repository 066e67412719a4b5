//! Times in nanoseconds, and helper functions for them.

use faircast_core::time::Time;

/// A time that is never reached.
pub const NEVER: u64 = u64::MAX;

/// Whether a time lies in one of these spans, which are in order and do not overlap.
pub fn covers(spans: &[(u64, u64)], at: u64) -> bool {
    let begun = spans.partition_point(|&(from, _)| from <= at);
    begun > 0 && at < spans[begun - 1].1
}

/// Phase of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Running,
    Stopped,
}

/// Adds bytes to a bin.
pub fn put(bins: &mut Vec<u64>, (bin, bytes): (usize, u64)) {
    if bins.len() <= bin {
        bins.resize(bin + 1, 0);
    }
    bins[bin] += bytes;
}

/// Extends a hash by an arrival.
#[inline]
pub const fn mix(hash: u64, at: u64, what: u64) -> u64 {
    (hash.rotate_left(23) ^ at ^ (what << 44) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Converts the simulator's nanoseconds.
#[inline]
pub const fn time(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}
