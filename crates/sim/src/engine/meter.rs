//! Sums of bytes per bin, and the moments at which flows are counted.

use std::ops::Range;

/// A time that is never reached.
const NEVER: u64 = u64::MAX;

/// The moments at which flows are counted, in order.
#[derive(Debug, Default)]
pub struct Moments(pub Box<[u64]>);

impl Moments {
    /// Returns the indices of the moments from `end` to `now`. Their counts are not recorded yet.
    fn passed(&self, end: u64, now: u64) -> Range<usize> {
        self.0.partition_point(|at| *at < end)..self.0.partition_point(|at| *at <= now)
    }

    /// Returns the indices of all moments that are not before `end`, and the index of the whole run.
    pub fn left(&self, end: u64) -> Range<usize> {
        self.0.partition_point(|at| *at < end)..self.0.len() + 1
    }
}

/// Sum of the bytes of the current bin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meter {
    /// End of the current bin or the next counted moment, nanoseconds; 0 before the first packet.
    pub end: u64,
    pub bytes: u64,
}

impl Meter {
    /// Whether the current bin or interval has ended at `at`, and must be recorded before a packet is counted.
    #[inline]
    pub const fn is_over(&self, at: u64) -> bool {
        at >= self.end
    }

    /// Returns the bytes of a bin that has ended at `now` but is not recorded yet.
    pub const fn over(&self, now: u64) -> u64 {
        if self.end <= now { self.bytes } else { 0 }
    }

    /// Ends the current bin. Returns the number and the bytes of the bin.
    pub fn finish(&mut self, bin: u64) -> Option<(usize, u64)> {
        let bytes = std::mem::take(&mut self.bytes);
        (self.end != 0 && bin != NEVER && bytes > 0).then(|| (((self.end - 1) / bin) as usize, bytes))
    }

    /// Ends the current bin or interval. Returns the indices of the counted moments that have passed by `now`, and the number and
    /// bytes of the bin.
    pub fn turn(&mut self, now: u64, bin: u64, moments: &Moments) -> (Range<usize>, Option<(usize, u64)>) {
        let passed = moments.passed(self.end, now);
        let done = self.finish(bin);
        let next = moments.0.get(passed.end).copied().unwrap_or(NEVER);
        self.end = if bin == NEVER { next } else { next.min((now / bin + 1) * bin) };
        (passed, done)
    }
}
