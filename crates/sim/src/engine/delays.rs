//! How long packets took through the queues of probed links, packet by packet.

use crate::delays::DelayCounts;
use std::collections::VecDeque;

/// A probe's counts of packets.
#[derive(Debug)]
pub struct Delays {
    /// Moments that separate spans, in order.
    moments: Vec<u64>,
    spans: Vec<DelayCounts>,
    /// Propagation, which is no delay of the queue.
    pub propagation: u64,
    /// When packets were offered and when they will arrive, while a change of the rate may move that.
    pending: VecDeque<(u64, u64)>,
    /// When the latest of those that have left had come.
    latest: u64,
}

impl Delays {
    pub fn new(moments: Vec<u64>, propagation: u64) -> Delays {
        let spans = vec![DelayCounts::default(); moments.len() + 1];
        Delays { moments, spans, propagation, pending: VecDeque::new(), latest: 0 }
    }

    /// A packet that was offered then will have arrived at `at`.
    pub fn note(&mut self, offered: u64, at: u64) {
        let span = self.moments.partition_point(|moment| *moment <= offered);
        let seconds = at.saturating_sub(offered).saturating_sub(self.propagation) as f64 * 1e-9;
        self.spans[span].add(seconds);
        if offered < self.latest {
            self.spans[span].note_reordered();
        }
        self.latest = self.latest.max(offered);
    }

    /// The same, but its arrival may yet move.
    pub fn expect(&mut self, offered: u64, at: u64) {
        self.settle(offered);
        self.pending.push_back((offered, at));
    }

    /// Those that have arrived by `now` are counted.
    pub fn settle(&mut self, now: u64) {
        while let Some(&(offered, at)) = self.pending.front().filter(|(_, at)| *at <= now) {
            self.pending.pop_front();
            self.note(offered, at);
        }
    }

    /// Arrivals move: pairs of old and new, in order.
    pub fn shift(&mut self, moves: impl Iterator<Item = (u64, u64)>) {
        let mut moves = moves.peekable();
        for (_, at) in &mut self.pending {
            while moves.next_if(|(old, _)| old < at).is_some() {}
            if let Some((_, new)) = moves.next_if(|(old, _)| old == at) {
                *at = new;
            }
        }
    }

    /// The link went down: what had not arrived is lost.
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
    fn spans_are_kept_apart_and_moved_arrivals_count_as_moved() {
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
