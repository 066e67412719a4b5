//! Delays of packets in the queues of probed links.

use crate::delays::DelayCounts;
use std::collections::VecDeque;

/// Delays of a probed link's packets: one histogram for each interval, and the packets whose delays are not known yet.
#[derive(Debug)]
pub struct Delays {
    /// Counted moments, which separate the intervals, in order.
    moments: Vec<u64>,
    spans: Vec<DelayCounts>,
    /// Propagation delay, which is not counted as a delay of the queue.
    pub propagation: u64,
    /// Offer times and arrival times of pending packets. A change of the link rate may move the arrivals.
    pending: VecDeque<(u64, u64)>,
    /// Latest offer time of the packets that have left.
    latest: u64,
}

impl Delays {
    pub fn new(moments: Vec<u64>, propagation: u64) -> Delays {
        let spans = vec![DelayCounts::default(); moments.len() + 1];
        Delays { moments, spans, propagation, pending: VecDeque::new(), latest: 0 }
    }

    /// Records a packet that was offered at `offered` and arrives at `at`.
    pub fn note(&mut self, offered: u64, at: u64) {
        let span = self.moments.partition_point(|moment| *moment <= offered);
        let seconds = at.saturating_sub(offered).saturating_sub(self.propagation) as f64 * 1e-9;
        self.spans[span].add(seconds);
        if offered < self.latest {
            self.spans[span].note_reordered();
        }
        self.latest = self.latest.max(offered);
    }

    /// Records a pending packet whose arrival time may still change.
    pub fn expect(&mut self, offered: u64, at: u64) {
        self.settle(offered);
        self.pending.push_back((offered, at));
    }

    /// Counts the pending packets that have arrived by `now`.
    pub fn settle(&mut self, now: u64) {
        while let Some(&(offered, at)) = self.pending.front().filter(|(_, at)| *at <= now) {
            self.pending.pop_front();
            self.note(offered, at);
        }
    }

    /// Moves the arrivals of pending packets. `moves` contains pairs of old and new times, in order.
    pub fn shift(&mut self, moves: impl Iterator<Item = (u64, u64)>) {
        let mut moves = moves.peekable();
        for (_, at) in &mut self.pending {
            while moves.next_if(|(old, _)| old < at).is_some() {}
            if let Some((_, new)) = moves.next_if(|(old, _)| old == at) {
                *at = new;
            }
        }
    }

    /// Discards all pending packets, which were lost because the link failed.
    pub fn forget(&mut self) {
        self.pending.clear();
    }

    pub fn finish(mut self, now: u64) -> Vec<DelayCounts> {
        self.settle(now);
        self.spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_counted_per_interval_with_shifted_arrivals() {
        let mut delays = Delays::new(vec![1_000_000], 100_000);
        delays.expect(0, 600_000);
        delays.expect(500_000, 2_100_000);
        delays.shift([(600_000, 600_000), (2_100_000, 4_600_000)].into_iter());
        delays.note(2_000_000, 2_200_000);
        let spans = delays.finish(u64::MAX);
        assert_eq!((spans[0].packets(), spans[0].reordered()), (2, 2), "both left after the third");
        assert!((spans[0].mean().expect("two") - (0.0005 + 0.004) / 2.0).abs() < 1e-12);
        assert!((spans[1].mean().expect("one") - 0.0001).abs() < 1e-12);
    }
}
