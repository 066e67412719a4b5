//! A gate that permits at most one cut per time window (paper 000, 3.1.5).

use crate::time::{Span, Time};

/// Stores the time of the latest cut and counts all cuts.
#[derive(Debug, Clone, Copy, Default)]
pub struct CutGate {
    last: Option<Time>,
    cuts: u64,
}

impl CutGate {
    /// Returns whether at least `window` has passed since the latest cut.
    pub fn is_open(&self, now: Time, window: Span) -> bool {
        self.last.is_none_or(|last| now.since(last) >= window)
    }

    /// Records a cut at `now`.
    pub fn close(&mut self, now: Time) {
        self.last = Some(now);
        self.cuts += 1;
    }

    /// Returns the number of cuts so far.
    pub const fn cuts(&self) -> u64 {
        self.cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_gate_reopens_after_the_window() {
        let mut gate = CutGate::default();
        let (window, cut) = (Span::from_millis(100), Time::from_secs_f64(5.0));
        assert!(gate.is_open(Time::ZERO, window));
        gate.close(cut);
        assert!(!gate.is_open(cut + Span::from_millis(99), window));
        assert!(gate.is_open(cut + window, window));
        assert_eq!(gate.cuts(), 1);
    }
}
