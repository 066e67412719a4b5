//! The window of a node over its children: Vegas, with queueing delays instead of round-trip times (paper 001, 3.1).

use super::config::{Config, LossFilter, SlowStart};
use crate::time::Time;

/// A congestion window.
#[derive(Debug, Clone)]
pub(super) struct Window {
    size: f64,
    threshold: f64,
    /// Losses of packets below this number cause no second cut.
    recover: u64,
    /// The round ends when all packets below this number are acknowledged.
    mark: u64,
    marked_at: Time,
    /// Whether the window grows in this round of slow start (Vegas).
    grows: bool,
    /// Whether no packet was acknowledged since the latest timeout.
    is_stalled: bool,
    /// Whether the window grows in avoidance: by one packet per round, or not at all.
    growth: Growth,
    /// The loss that the loss filter has spared in this round or the previous one.
    spared: Option<Spared>,
    rounds: u64,
    pub(super) cuts: u64,
    pub(super) slow_starts: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    Hold,
    PerRound,
}

#[derive(Debug, Clone, Copy)]
struct Spared {
    seq: u64,
    round: u64,
}

/// Maximum window. A summary carries the window as a float.
const MAX: f64 = 1e6;

impl Window {
    pub(super) const fn new(size: f64, threshold: f64, next: u64, now: Time) -> Window {
        Window {
            size,
            threshold,
            recover: next,
            mark: next,
            marked_at: now,
            grows: true,
            is_stalled: false,
            growth: Growth::PerRound,
            spared: None,
            rounds: 0,
            cuts: 0,
            slow_starts: 0,
        }
    }

    pub(super) const fn size(&self) -> f64 {
        self.size
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    pub(super) fn cap(&mut self, most: f64) {
        self.size = self.size.min(most.max(1.0));
    }

    /// Grows the window after all children have acknowledged `packets` further packets.
    pub(super) fn on_acknowledged(&mut self, packets: u64) {
        let packets = packets as f64;
        if self.is_in_slow_start() {
            if self.grows {
                self.size = (self.size + packets).min(self.threshold);
            }
        } else if self.growth == Growth::PerRound {
            self.size += packets / self.size;
        }
        self.size = self.size.min(MAX);
    }

    /// Records that all children have received a further packet. After timeouts, packets below `next` were sent before any
    /// acknowledgement, so their loss belongs to the same congestion event.
    pub(super) fn on_progress(&mut self, next: u64) {
        if std::mem::take(&mut self.is_stalled) {
            self.recover = self.recover.max(next);
        }
    }

    /// Returns whether all packets in flight at the start of the round are acknowledged.
    pub(super) const fn is_round_over(&self, acknowledged: u64) -> bool {
        acknowledged >= self.mark
    }

    pub(super) const fn marked_at(&self) -> Time {
        self.marked_at
    }

    /// Ends a round in which `queued` packets were in queues; `None` if this number is unknown. The next round ends with packet
    /// `next`.
    pub(super) fn end_round(&mut self, queued: Option<f64>, next: u64, config: &Config, now: Time) {
        if self.is_in_slow_start() {
            self.grows = config.slow_start == SlowStart::Every || !self.grows;
            if queued.is_some_and(|queued| queued > config.gamma) {
                self.size = (self.size - self.size / 8.0).max(2.0);
                self.threshold = self.size;
                self.growth = Growth::Hold;
            }
        } else {
            let grows = queued.is_none_or(|queued| queued < config.alpha);
            self.growth = if grows { Growth::PerRound } else { Growth::Hold };
            if queued.is_some_and(|queued| queued > config.beta) {
                self.size = (self.size - 1.0).max(2.0);
            }
        }
        self.rounds += 1;
        (self.mark, self.marked_at) = (next, now);
    }

    /// Handles the loss of packet `seq`; packets below `next` have been sent. Returns whether the loss closed the window, which
    /// happens at most once per round.
    pub(super) fn on_loss(&mut self, seq: u64, next: u64, config: &Config) -> bool {
        if seq < self.recover {
            return false;
        }
        if config.loss_filter == LossFilter::On {
            let spared = self.spared.filter(|spared| spared.seq != seq && self.rounds - spared.round <= 1);
            if spared.is_none() {
                self.spared = Some(Spared { seq, round: self.rounds });
                return false;
            }
            self.spared = None;
        }
        self.recover = next;
        self.size = (self.size * config.decrease).max(2.0).min(self.size);
        self.threshold = self.size.max(2.0);
        self.growth = Growth::Hold;
        self.cuts += 1;
        true
    }

    /// Handles the timeout of packet `seq`. Returns whether the timeout causes a slow start. Only the first of consecutive
    /// timeouts sets the threshold to half the window (RFC 5681, 3.1).
    pub(super) fn on_timeout(&mut self, seq: u64, next: u64) -> bool {
        if seq < self.recover {
            return false;
        }
        self.restart(if self.is_stalled { self.threshold } else { self.size / 2.0 });
        self.is_stalled = true;
        self.recover = next;
        self.slow_starts += 1;
        self.cuts += 1;
        true
    }

    /// Restarts in slow start, with this threshold.
    pub(super) const fn restart(&mut self, threshold: f64) {
        self.threshold = threshold.max(2.0);
        self.size = 1.0;
        self.grows = true;
        self.growth = Growth::PerRound;
    }
}
