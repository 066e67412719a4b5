//! Moments in nanoseconds, and the small tasks that are due at them.

use faircast_core::time::Time;

/// No moment.
pub const NEVER: u64 = u64::MAX;

/// Whether a moment lies in one of these spans, which are in order and apart.
pub fn covers(spans: &[(u64, u64)], at: u64) -> bool {
    let begun = spans.partition_point(|&(from, _)| from <= at);
    begun > 0 && at < spans[begun - 1].1
}

/// Where a sender is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Running,
    Stopped,
}

/// Put bytes into a bin.
pub fn put(bins: &mut Vec<u64>, (bin, bytes): (usize, u64)) {
    if bins.len() <= bin {
        bins.resize(bin + 1, 0);
    }
    bins[bin] += bytes;
}

/// Continue a hash with an arrival.
#[inline]
pub const fn mix(hash: u64, at: u64, what: u64) -> u64 {
    (hash.rotate_left(23) ^ at ^ (what << 44) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// From the simulator's nanoseconds.
#[inline]
pub const fn time(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}
