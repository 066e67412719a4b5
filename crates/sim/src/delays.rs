//! Histogram of the delays of packets in a queue.

/// Histogram of packet delays in one interval between counted moments. It has 48 cells per decade from 1 us to 1000 s, one cell
/// for smaller delays, and one cell for larger delays.
#[derive(Debug, Clone, PartialEq)]
pub struct DelayCounts {
    cells: Vec<u32>,
    packets: u64,
    /// Sum of the delays, in seconds.
    sum: f64,
    /// Number of reordered packets: packets that left after a packet that had arrived later.
    reordered: u64,
}

const CELLS_PER_DECADE: f64 = 48.0;
const MIN: f64 = 1e-6;
const CELLS: usize = 9 * 48 + 2;

impl Default for DelayCounts {
    fn default() -> DelayCounts {
        DelayCounts { cells: vec![0; CELLS], packets: 0, sum: 0.0, reordered: 0 }
    }
}

impl DelayCounts {
    /// Adds the delay of a packet, in seconds.
    pub(crate) fn add(&mut self, seconds: f64) {
        let cell = (seconds.max(MIN * 0.5) / MIN).log10() * CELLS_PER_DECADE + 1.0;
        self.cells[(cell.max(0.0) as usize).min(CELLS - 1)] += 1;
        self.packets += 1;
        self.sum += seconds;
    }

    /// Counts a packet that left after a packet that had arrived later.
    pub(crate) const fn note_reordered(&mut self) {
        self.reordered += 1;
    }

    /// Adds the delays of another interval.
    pub fn merge(&mut self, other: &DelayCounts) {
        self.cells.iter_mut().zip(&other.cells).for_each(|(mine, theirs)| *mine += theirs);
        self.packets += other.packets;
        self.sum += other.sum;
        self.reordered += other.reordered;
    }

    /// Returns the number of counted packets.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of reordered packets: packets that left after a packet that had arrived later.
    pub const fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Returns the mean delay in seconds; `None` without packets.
    pub fn mean(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.sum / self.packets as f64)
    }

    /// Returns the `share` quantile of the delays in seconds, accurate to within 5 %; `None` without packets.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = share.clamp(0.0, 1.0) * self.packets as f64;
        let mut below = 0.0;
        for (place, cell) in self.cells.iter().enumerate().filter(|(_, cell)| **cell > 0) {
            let here = f64::from(*cell);
            if below + here >= wanted {
                let within = ((wanted - below) / here).clamp(0.0, 1.0);
                return Some(MIN * 10_f64.powf((place as f64 - 1.0 + within) / CELLS_PER_DECADE));
            }
            below += here;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_quantiles_are_accurate_to_within_one_cell() {
        let mut delays = DelayCounts::default();
        (1..=1000).for_each(|n| delays.add(f64::from(n) * 1e-4));
        for share in [0.05, 0.5, 0.95, 0.99] {
            let found = delays.quantile(share).expect("there are packets");
            assert!((found / (share * 0.1) - 1.0).abs() < 0.05, "{share}: {found}");
        }
        assert!((delays.mean().expect("there are packets") - 0.05005).abs() < 1e-9);
        assert_eq!(DelayCounts::default().quantile(0.5), None);
    }
}
