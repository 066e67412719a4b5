//! Sums of bytes by bin, and the moments up to which flows are counted.

use std::ops::Range;

/// No moment.
const NEVER: u64 = u64::MAX;

/// The moments, in order.
#[derive(Debug, Default)]
pub struct Moments(pub Box<[u64]>);

impl Moments {
    /// Those at which nobody counted who did at all before `end`, up to `now`.
    fn passed(&self, end: u64, now: u64) -> Range<usize> {
        self.0.partition_point(|at| *at < end)..self.0.partition_point(|at| *at <= now)
    }

    /// The places for those to come, and for the whole run.
    pub fn left(&self, end: u64) -> Range<usize> {
        self.0.partition_point(|at| *at < end)..self.0.len() + 1
    }
}

/// Adds up bytes of the present bin.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meter {
    /// End of the present bin or the next moment to count at, in nanoseconds; 0 before the first packet.
    pub end: u64,
    pub bytes: u64,
}

impl Meter {
    /// Whether something is to be put away before a packet of this moment counts.
    #[inline]
    pub const fn is_over(&self, at: u64) -> bool {
        at >= self.end
    }

    /// Bytes of a bin that is over at `now` and was not put away yet.
    pub const fn over(&self, now: u64) -> u64 {
        if self.end <= now { self.bytes } else { 0 }
    }

    /// The present bin ends here.
    pub fn finish(&mut self, bin: u64) -> Option<(usize, u64)> {
        let bytes = std::mem::take(&mut self.bytes);
        (self.end != 0 && bin != NEVER && bytes > 0).then(|| (((self.end - 1) / bin) as usize, bytes))
    }

    /// The bin is over, or a moment has come: the places of the moments since, and the bytes of the bin with its number.
    pub fn turn(&mut self, now: u64, bin: u64, moments: &Moments) -> (Range<usize>, Option<(usize, u64)>) {
        let passed = moments.passed(self.end, now);
        let done = self.finish(bin);
        let next = moments.0.get(passed.end).copied().unwrap_or(NEVER);
        self.end = if bin == NEVER { next } else { next.min((now / bin + 1) * bin) };
        (passed, done)
    }
}
