//! Packets that a receiver got out of order, beyond the first missing packet, and the ranges of these packets in
//! acknowledgements.

use std::collections::VecDeque;

/// Ranges of packets that arrived out of order, and the order of the latest arrivals in them. The cost of an arrival does not
/// grow with the number of ranges, unless the arrival inserts a range between others.
#[derive(Debug, Clone, Default)]
pub(super) struct OutOfOrder {
    /// Ranges in ascending order that do not touch.
    ranges: VecDeque<Range>,
    /// Copies of ranges, each made at an arrival; the newest copy is the last. A copy is outdated if its range has since grown or
    /// been removed.
    recent: Vec<Range>,
    arrivals: u32,
}

/// Packets `from..to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    from: u32,
    to: u32,
    /// The number of its latest arrival.
    arrival: u32,
}

/// Number of outdated copies in [`OutOfOrder::recent`] above which they are removed.
const FEW: usize = 16;

impl OutOfOrder {
    /// Adds packet `seq`, which may be a duplicate. Returns the range that contains it.
    pub(super) fn add(&mut self, seq: u32) -> Range {
        let first = match self.ranges.back() {
            // Most arrivals are the newest packets.
            Some(last) if last.from <= seq => self.ranges.len() - usize::from(seq <= last.to),
            _ => self.ranges.partition_point(|range| range.to < seq),
        };
        self.arrivals = self.arrivals.wrapping_add(1);
        let mut new = Range { from: seq, to: seq + 1, arrival: self.arrivals };
        let mut end = first;
        while let Some(touched) = self.ranges.get(end).filter(|range| range.from <= seq + 1) {
            new = Range { from: new.from.min(touched.from), to: new.to.max(touched.to), ..new };
            end += 1;
        }
        if first == end {
            self.ranges.insert(first, new);
        } else {
            self.ranges[first] = new;
            if end > first + 1 {
                self.ranges.drain(first + 1..end);
            }
        }
        new
    }

    /// Marks the range for reporting in acknowledgements.
    pub(super) fn report(&mut self, range: Range) {
        if self.recent.len() > 2 * self.ranges.len() + FEW {
            let OutOfOrder { ranges, recent, .. } = self;
            recent.retain(|range| is_current(ranges, range));
        }
        self.recent.push(range);
    }

    /// If a range begins at `next`, removes the range and returns its end.
    pub(super) fn take_from(&mut self, next: u32) -> Option<u32> {
        let range = *self.ranges.front().filter(|range| range.from == next)?;
        self.ranges.pop_front();
        Some(range.to)
    }

    /// Returns the three reported ranges with the latest arrivals, the latest first (RFC 2018, 4); `0..0` if there are fewer
    /// ranges.
    pub(super) fn newest(&mut self) -> [(u32, u32); 3] {
        let mut blocks = [(0, 0); 3];
        if self.recent.is_empty() {
            return blocks;
        }
        let mut kept = [None; 3];
        let mut count = 0;
        while count < blocks.len()
            && let Some(range) = self.recent.pop()
        {
            if is_current(&self.ranges, &range) {
                blocks[count] = (range.from, range.to);
                kept[count] = Some(range);
                count += 1;
            }
        }
        self.recent.extend(kept.into_iter().rev().flatten());
        blocks
    }
}

fn is_current(ranges: &VecDeque<Range>, range: &Range) -> bool {
    ranges.binary_search_by_key(&range.from, |known| known.from).is_ok_and(|at| ranges[at] == *range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;

    /// The list of ranges by RFC 2018; the range with the latest arrival is the first.
    #[derive(Default)]
    struct List(Vec<(u32, u32)>);

    impl List {
        fn add(&mut self, seq: u32) {
            let mut new = (seq, seq + 1);
            self.0.retain(|&(from, to)| {
                let touches = from <= new.1 && new.0 <= to;
                if touches {
                    new = (new.0.min(from), new.1.max(to));
                }
                !touches
            });
            self.0.insert(0, new);
        }

        fn take_from(&mut self, next: u32) -> Option<u32> {
            let index = self.0.iter().position(|range| range.0 == next)?;
            Some(self.0.remove(index).1)
        }

        fn newest(&self) -> [(u32, u32); 3] {
            let mut blocks = [(0, 0); 3];
            blocks.iter_mut().zip(&self.0).for_each(|(block, range)| *block = *range);
            blocks
        }
    }

    #[test]
    fn reported_sack_blocks_equal_the_ranges_of_a_plain_list() {
        for (seed, width) in [(1, 8), (2, 60), (3, 600)] {
            let mut rng = Rng::new(seed, 7);
            let (mut held, mut list, mut next) = (OutOfOrder::default(), List::default(), 0);
            for _ in 0..20_000 {
                let seq = next + rng.below(width) as u32;
                if seq == next {
                    next += 1;
                    let end = held.take_from(next);
                    assert_eq!(end, list.take_from(next));
                    next = end.unwrap_or(next);
                } else {
                    let range = held.add(seq);
                    held.report(range);
                    list.add(seq);
                    assert!(held.recent.len() <= 2 * held.ranges.len() + FEW + 1, "outdated entries go");
                }
                assert_eq!(held.newest(), list.newest());
            }
        }
    }
}
