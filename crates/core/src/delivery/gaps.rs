//! Loss detection by gaps in the packet numbers, with tolerance for reordering.
//!
//! A missing packet is lost when `tolerance` packets with higher numbers have arrived. A tolerance of 1 suits FIFO networks and
//! the papers' simulations. A tolerance of 3 suits real networks (the rule of three duplicate acknowledgements, RFC 5681, 3.2).

use crate::packet::{Arrival, Seq};

/// Maximum number of stored gaps. Beyond it, the packets of the oldest gap are declared lost.
const OPEN_GAPS: usize = 32;

/// Maximum size of a gap, in packets. A larger gap is a restart of the stream, not a series of losses.
const RESYNC: u64 = 1 << 15;

/// Detects losses in one layer's stream, with a fixed amount of memory.
#[derive(Debug, Clone)]
pub struct Gaps {
    tolerance: u8,
    started: bool,
    next: Seq,
    open: [Gap; OPEN_GAPS],
    count: usize,
    lost: u64,
    received: u64,
}

/// Packets `from..to` are missing, and `later` packets with higher numbers have arrived.
#[derive(Debug, Clone, Copy, Default)]
struct Gap {
    from: u64,
    to: u64,
    later: u8,
}

impl Gaps {
    /// Creates a detector that declares a packet lost after `tolerance` packets with higher numbers (at least 1).
    pub fn new(tolerance: u8) -> Gaps {
        Gaps {
            tolerance: tolerance.max(1),
            started: false,
            next: Seq(0),
            open: [Gap::default(); OPEN_GAPS],
            count: 0,
            lost: 0,
            received: 0,
        }
    }

    /// Records the arrival of a packet. The first packet starts the stream and reveals no loss.
    pub fn on_arrival(&mut self, seq: Seq) -> Arrival {
        self.received += 1;
        if !self.started {
            self.started = true;
            self.next = seq.next();
            return Arrival::default();
        }
        if seq < self.next {
            let lost = self.fill(seq);
            self.lost += u64::from(lost);
            return Arrival { late: true, lost, ..Arrival::default() };
        }
        let missing = seq.0 - self.next.0;
        let mut lost = 0;
        if missing > RESYNC {
            self.count = 0;
            lost = 1;
        } else if missing > 0 {
            if self.count == OPEN_GAPS {
                lost += self.close_oldest();
            }
            self.open[self.count] = Gap { from: self.next.0, to: seq.0, later: 0 };
            self.count += 1;
        }
        self.next = seq.next();
        lost += self.age();
        self.lost += u64::from(lost);
        Arrival { lost, ..Arrival::default() }
    }

    /// Returns the number after the highest received one.
    pub fn next(&self) -> Seq {
        self.next
    }

    /// Returns the number of packets declared lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of packets received so far, including duplicates.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns whether any missing packet is not declared lost yet.
    pub fn is_waiting(&self) -> bool {
        self.count > 0
    }

    /// Removes an arrived packet from its gap. Returns the number of other packets declared lost: if the packet splits a gap and
    /// there is no room for another gap, the packets of the oldest gap are declared lost.
    fn fill(&mut self, seq: Seq) -> u32 {
        let Some(mut at) = self.open[..self.count].iter().position(|gap| (gap.from..gap.to).contains(&seq.0))
        else {
            return 0;
        };
        let Gap { from, to, later } = self.open[at];
        let (mut lost, falls_in_two) = (0, from < seq.0 && seq.0 + 1 < to);
        if falls_in_two && self.count == OPEN_GAPS {
            if at == 0 {
                self.open[0].from = seq.0 + 1;
                return (seq.0 - from) as u32;
            }
            lost = self.close_oldest();
            at -= 1;
        }
        if from == seq.0 {
            self.open[at].from += 1;
        } else {
            self.open[at].to = seq.0;
            if falls_in_two {
                self.open.copy_within(at + 1..self.count, at + 2);
                self.open[at + 1] = Gap { from: seq.0 + 1, to, later };
                self.count += 1;
            }
        }
        if self.open[at].from == self.open[at].to {
            self.remove(at);
        }
        lost
    }

    /// Counts one later packet for every stored gap. Returns the number of packets that are declared lost as a result.
    fn age(&mut self) -> u32 {
        for gap in &mut self.open[..self.count] {
            gap.later += 1;
        }
        let mut lost = 0;
        while self.count > 0 && self.open[0].later >= self.tolerance {
            lost += self.close_oldest();
        }
        lost
    }

    fn close_oldest(&mut self) -> u32 {
        let Gap { from, to, .. } = self.open[0];
        self.remove(0);
        (to - from) as u32
    }

    fn remove(&mut self, at: usize) {
        self.open.copy_within(at + 1..self.count, at);
        self.count -= 1;
    }
}

/// Detects losses in networks that do not reorder packets: a packet that is missing when a later one arrives is lost. Equivalent
/// to [`Gaps`] with tolerance 1, but needs only 16 bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct InOrder {
    /// The highest received number plus 2; 0 before the first packet.
    next: u64,
    lost: u64,
}

impl InOrder {
    /// Records the arrival of a packet. The first packet starts the stream and reveals no loss.
    #[inline]
    pub fn on_arrival(&mut self, seq: Seq) -> Arrival {
        if self.next == 0 {
            self.next = seq.0 + 2;
            return Arrival::default();
        }
        let Some(missing) = (seq.0 + 1).checked_sub(self.next) else {
            return Arrival { late: true, ..Arrival::default() };
        };
        self.next = seq.0 + 2;
        let lost = if missing > RESYNC { 1 } else { missing as u32 };
        self.lost += u64::from(lost);
        Arrival { lost, ..Arrival::default() }
    }

    /// Returns the number of packets declared lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_detector_agrees_with_gap_detector_of_tolerance_1() {
        let (mut rng, mut gaps, mut in_order) =
            (crate::rng::Rng::new(5, 5), Gaps::new(1), InOrder::default());
        let mut seq = 17;
        for _ in 0..10_000 {
            seq += 1 + rng.below(4) * rng.below(2) + if rng.chance(0.001) { RESYNC + 5 } else { 0 };
            let seq = if rng.chance(0.01) { seq - rng.below(3) } else { seq };
            assert_eq!(in_order.on_arrival(Seq(seq)), gaps.on_arrival(Seq(seq)));
        }
        assert_eq!(in_order.lost(), gaps.lost());
    }

    /// Returns the number of missing packets that are not declared lost.
    fn waiting(gaps: &Gaps) -> u64 {
        gaps.open[..gaps.count].iter().map(|gap| gap.to - gap.from).sum()
    }

    #[test]
    fn each_packet_counts_once_when_gaps_exceed_the_limit() {
        let (mut most, mut split) = (0, 0);
        for seed in 0..40 {
            let (mut rng, mut gaps) = (crate::rng::Rng::new(seed, 7), Gaps::new(200));
            let first = 1_000;
            gaps.on_arrival(Seq(first));
            // Number of packets that arrived before they were declared lost: the first packet, each newest packet, and packets
            // that filled a gap.
            let mut came = 1;
            for _ in 0..3_000 {
                let next = gaps.next().0;
                let seq = match rng.below(3) {
                    0 => next + rng.below(2) * rng.below(9),
                    _ => next.saturating_sub(1 + rng.below(300)).max(first),
                };
                let in_gap = gaps.open[..gaps.count].iter().any(|gap| (gap.from..gap.to).contains(&seq));
                let was_full = gaps.count == OPEN_GAPS;
                let arrival = gaps.on_arrival(Seq(seq));
                came += u64::from(seq >= next || in_gap);
                assert_eq!(arrival.late, seq < next);
                assert_eq!(came + gaps.lost() + waiting(&gaps), gaps.next().0 - first, "packet {seq}");
                most = most.max(gaps.count);
                split += u32::from(was_full && in_gap && arrival.lost > 0);
            }
        }
        assert!(
            most == OPEN_GAPS && split > 100,
            "{most} gaps, {split} of them fell in two where there was no room"
        );
    }

    fn losses(tolerance: u8, seqs: &[u64]) -> Vec<u32> {
        let mut gaps = Gaps::new(tolerance);
        seqs.iter().map(|&seq| gaps.on_arrival(Seq(seq)).lost).collect()
    }

    #[test]
    fn the_first_packet_reveals_no_loss() {
        assert_eq!(losses(1, &[70, 71]), [0, 0]);
    }

    #[test]
    fn missing_packets_are_lost_at_once_with_tolerance_one() {
        assert_eq!(losses(1, &[0, 4, 5]), [0, 3, 0]);
    }

    #[test]
    fn packet_is_declared_lost_after_three_later_packets() {
        assert_eq!(losses(3, &[0, 2, 3, 4, 5]), [0, 0, 0, 1, 0]);
    }

    #[test]
    fn reordered_packet_is_not_counted_as_lost() {
        assert_eq!(losses(3, &[0, 2, 3, 1, 4, 5, 6]), [0; 7]);
    }

    #[test]
    fn packet_from_the_middle_of_a_gap_splits_the_gap() {
        assert_eq!(losses(3, &[0, 6, 3, 7, 8, 9]), [0, 0, 0, 0, 4, 0]);
    }

    #[test]
    fn duplicate_is_late_and_does_not_count_as_loss() {
        let mut gaps = Gaps::new(3);
        gaps.on_arrival(Seq(0));
        assert!(gaps.on_arrival(Seq(0)).late);
        assert_eq!(gaps.lost(), 0);
    }

    #[test]
    fn gap_of_a_million_packet_numbers_counts_as_one_loss() {
        assert_eq!(losses(3, &[0, 1_000_000, 1_000_001]), [0, 1, 0]);
    }

    #[test]
    fn loss_of_every_second_packet_is_counted_exactly() {
        let mut gaps = Gaps::new(3);
        (0..10_000).for_each(|seq| _ = gaps.on_arrival(Seq(seq * 2)));
        assert_eq!(gaps.lost(), 9_997, "the two newest gaps wait");
    }
}
