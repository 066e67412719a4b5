//! Delay before a receiver joins a level again ([`super::Points::Every`]).

use super::config::LAYERS;
use crate::time::{Span, Time};

/// A receiver's record of each level.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryDelay {
    /// Bit set of the levels that were too fast at least once.
    left: u32,
    /// Number of consecutive short visits of each level.
    short: [u8; LAYERS],
    joined_at: Time,
    /// Cycle of the latest loss: the bursts up to this cycle are not evidence.
    quiet_from: u64,
}

/// Duration of a visit of a level. A shorter visit lengthens the delay before the next visit.
const SHORT: Span = Span::from_secs(8);
const MAX_DOUBLINGS: u8 = 4;
/// Base-2 logarithm of the factor by which the paper's distances are shortened. In the paper, synchronisation points of level i
/// are 2^i bursts apart; this suits a TCP flow with a round-trip time of tau sqrt(P W). A quarter of this distance suits a flow
/// with half the round-trip time.
const QUARTER: u32 = 2;

impl RetryDelay {
    pub(super) const fn new() -> RetryDelay {
        RetryDelay { left: 0, short: [0; LAYERS], joined_at: Time::ZERO, quiet_from: 0 }
    }

    pub(super) fn on_join(&mut self, now: Time) {
        self.joined_at = now;
    }

    /// Records that the receiver leaves `level` because of a loss in cycle `cycle`.
    pub(super) fn on_leave(&mut self, level: u8, cycle: u64, now: Time) {
        let index = usize::from(level).min(LAYERS - 1);
        self.left |= 1 << index;
        let was_short = now.since(self.joined_at) < SHORT;
        self.short[index] = if was_short { (self.short[index] + 1).min(MAX_DOUBLINGS) } else { 0 };
        self.quiet_from = cycle;
        // If the receiver leaves another level before it joins one, this does not count as a short visit.
        self.joined_at = Time::ZERO;
    }

    /// Returns whether the receiver may step from `level` to the next level after the burst of this cycle.
    pub(super) fn is_over(&self, level: u8, cycle: u64) -> bool {
        let next = usize::from(level + 1).min(LAYERS - 1);
        if self.left & 1 << next == 0 {
            return true;
        }
        let bursts = ((1u64 << level) >> QUARTER).max(1) << self.short[next];
        cycle.saturating_sub(self.quiet_from) >= bursts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    #[test]
    fn join_of_a_level_without_failures_is_not_delayed() {
        let patience = RetryDelay::new();
        assert!((0..15).all(|level| patience.is_over(level, 1)));
    }

    #[test]
    fn each_short_stay_doubles_the_retry_delay_up_to_the_limit() {
        let mut patience = RetryDelay::new();
        let waited = |patience: &RetryDelay, from: u64| {
            (1..).find(|n| patience.is_over(3, from + n)).expect("some time")
        };
        let mut seen = Vec::new();
        for visit in 1..=8 {
            patience.on_join(at(100 * visit));
            patience.on_leave(4, 100 * visit, at(100 * visit + 1));
            seen.push(waited(&patience, 100 * visit));
        }
        assert_eq!(seen, [4, 8, 16, 32, 32, 32, 32, 32]);
        patience.on_join(at(1000));
        patience.on_leave(4, 1000, at(1020));
        assert_eq!(waited(&patience, 1000), 2, "a long visit");
        assert!(patience.is_over(2, 1001), "what is below");
    }
}
