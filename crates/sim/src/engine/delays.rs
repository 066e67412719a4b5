//! How long packets took through the queues of probed links, packet by packet.

use std::collections::VecDeque;

/// Delays between two counted moments, in a histogram of 48 cells a decade: from 1 us to 1000 s, and one cell below and above.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayCounts {
    cells: Vec<u32>,
    packets: u64,
    /// Sum of the delays, in seconds.
    sum: f64,
    /// Packets that left after others that had come later.
    reordered: u64,
}

const CELLS_PER_DECADE: f64 = 48.0;
const LEAST: f64 = 1e-6;
const CELLS: usize = 9 * 48 + 2;

impl Default for DelayCounts {
    fn default() -> DelayCounts {
        DelayCounts { cells: vec![0; CELLS], packets: 0, sum: 0.0, reordered: 0 }
    }
}

impl DelayCounts {
    /// A packet took so many seconds.
    pub(crate) fn add(&mut self, seconds: f64) {
        let cell = (seconds.max(LEAST * 0.5) / LEAST).log10() * CELLS_PER_DECADE + 1.0;
        self.cells[(cell.max(0.0) as usize).min(CELLS - 1)] += 1;
        self.packets += 1;
        self.sum += seconds;
    }

    /// Those of another span, too.
    pub fn merge(&mut self, other: &DelayCounts) {
        self.cells.iter_mut().zip(&other.cells).for_each(|(mine, theirs)| *mine += theirs);
        self.packets += other.packets;
        self.sum += other.sum;
        self.reordered += other.reordered;
    }

    /// Packets counted.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets that left after others that had come later.
    pub const fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Mean, in seconds; `None` without packets.
    pub fn mean(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.sum / self.packets as f64)
    }

    /// The delay that this share of the packets had at most, in seconds, to 5 %; `None` without packets.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = share.clamp(0.0, 1.0) * self.packets as f64;
        let mut below = 0.0;
        for (place, cell) in self.cells.iter().enumerate().filter(|(_, cell)| **cell > 0) {
            let here = f64::from(*cell);
            if below + here >= wanted {
                let within = ((wanted - below) / here).clamp(0.0, 1.0);
                return Some(LEAST * 10_f64.powf((place as f64 - 1.0 + within) / CELLS_PER_DECADE));
            }
            below += here;
        }
        None
    }
}

/// What a probe counts of packets.
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
        self.spans[span].reordered += u64::from(offered < self.latest);
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
    fn quantiles_are_right_to_a_cell() {
        let mut delays = DelayCounts::default();
        (1..=1000).for_each(|n| delays.add(f64::from(n) * 1e-4));
        for share in [0.05, 0.5, 0.95, 0.99] {
            let found = delays.quantile(share).expect("there are packets");
            assert!((found / (share * 0.1) - 1.0).abs() < 0.05, "{share}: {found}");
        }
        assert!((delays.mean().expect("there are packets") - 0.05005).abs() < 1e-9);
        assert_eq!(DelayCounts::default().quantile(0.5), None);
    }

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
