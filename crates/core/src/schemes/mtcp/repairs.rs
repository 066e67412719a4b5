//! The retransmission window: acknowledgements of repairs limit the rate of repairs (paper 001, 3.1).

use super::config::Config;
use crate::time::{Span, Time};
use std::collections::VecDeque;

/// Packets that children of one group miss, and the window of the repairs in flight.
#[derive(Debug, Clone)]
pub(super) struct Repairs {
    size: f64,
    threshold: f64,
    /// Missing packets, by number.
    list: VecDeque<Repair>,
    out: u32,
    /// Number of times that consecutive timeouts have doubled the timeout.
    backoff: u32,
    next_at: Time,
    /// Start of the period without missing packets.
    idle_since: Option<Time>,
    pub(super) sent: u64,
}

#[derive(Debug, Clone, Copy)]
struct Repair {
    seq: u64,
    sent_at: Option<Time>,
    /// Index of the child that the latest search found to miss the packet.
    wanting: usize,
}

/// Maximum number of times that consecutive timeouts double the timeout.
const MAX_BACKOFF: u32 = 6;
/// Minimum interval between two repairs.
const MIN_GAP: Span = Span::from_micros(50);

impl Repairs {
    pub(super) const fn new(config: &Config) -> Repairs {
        Repairs {
            size: 1.0,
            threshold: config.repair_threshold,
            list: VecDeque::new(),
            out: 0,
            backoff: 0,
            next_at: Time::ZERO,
            idle_since: None,
            sent: 0,
        }
    }

    /// Records that a child misses this packet.
    pub(super) fn ask(&mut self, seq: u64) {
        let place = self.list.partition_point(|repair| repair.seq < seq);
        if self.list.get(place).is_none_or(|repair| repair.seq != seq) {
            self.list.insert(place, Repair { seq, sent_at: None, wanting: 0 });
            self.idle_since = None;
        }
    }

    /// After acknowledgements, removes the packets that no child misses. Each removed packet that had been repaired opens the
    /// window. `wanted` gets the index of a child that missed the packet, and may change this index.
    pub(super) fn settle(&mut self, wanted: impl Fn(u64, &mut usize) -> bool, now: Time) {
        if self.list.is_empty() {
            return;
        }
        let (mut size, mut out, threshold) = (self.size, self.out, self.threshold);
        let mut progress = false;
        self.list.retain_mut(|repair| {
            let stays = wanted(repair.seq, &mut repair.wanting);
            if !stays && repair.sent_at.is_some() {
                out = out.saturating_sub(1);
                size += if size < threshold { 1.0 } else { 1.0 / size };
                progress = true;
            }
            stays
        });
        (self.size, self.out) = (size, out);
        if progress {
            self.backoff = 0;
        }
        if self.list.is_empty() {
            self.out = 0;
            self.idle_since = Some(now);
        }
    }

    /// Returns the next packet to be repaired, if the window allows a repair now.
    pub(super) fn next(&self, now: Time) -> Option<u64> {
        if self.next_at > now || f64::from(self.out) >= self.allowed() {
            return None;
        }
        self.list.iter().find(|repair| repair.sent_at.is_none()).map(|repair| repair.seq)
    }

    /// Returns the time at which [`Repairs::next`] may return a packet.
    pub(super) fn next_at(&self) -> Time {
        let waits =
            f64::from(self.out) < self.allowed() && self.list.iter().any(|repair| repair.sent_at.is_none());
        if waits { self.next_at } else { Time::NEVER }
    }

    /// Records a sent repair.
    pub(super) fn on_sent(&mut self, seq: u64, round: Option<Span>, now: Time) {
        let place = self.list.partition_point(|repair| repair.seq < seq);
        if let Some(repair) = self.list.get_mut(place) {
            repair.sent_at = Some(now);
            self.out += 1;
            self.sent += 1;
        }
        let gap = round.unwrap_or(Span::ZERO).scaled(0.5 / self.size.max(1.0));
        self.next_at = now + gap.max(MIN_GAP);
    }

    /// Gives up a packet that cannot be repaired here.
    pub(super) fn give_up(&mut self, seq: u64) {
        self.list.retain(|repair| repair.seq != seq);
    }

    /// Returns the time at which the oldest repair is late.
    pub(super) fn late_at(&self, timeout: Span) -> Time {
        let oldest = self.list.iter().filter_map(|repair| repair.sent_at).min();
        oldest.map_or(Time::NEVER, |at| at + timeout * (1 << self.backoff))
    }

    /// Handles a late repair: all missing packets are repeated one after the other.
    pub(super) fn on_late(&mut self) {
        self.threshold = (self.size / 2.0).max(1.0);
        self.size = 1.0;
        self.out = 0;
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.list.iter_mut().for_each(|repair| repair.sent_at = None);
    }

    /// Restarts the window after a round without repairs, because later losses are unrelated to the earlier losses.
    pub(super) fn restart(&mut self, round: Option<Span>, config: &Config, now: Time) {
        if let (Some(since), Some(round)) = (self.idle_since, round)
            && now.since(since) > round
        {
            (self.size, self.threshold, self.idle_since) = (1.0, config.repair_threshold, None);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.out = 0;
    }

    fn allowed(&self) -> f64 {
        self.size.max(1.0).floor()
    }

    #[cfg(test)]
    pub(super) const fn state(&self) -> (f64, u32) {
        (self.size, self.out)
    }
}
