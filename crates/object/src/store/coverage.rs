//! The parts of an object stream that are on the disk.

use crate::gather::seeds::Seed;
use crate::geometry::Geometry;
use std::ops::Range;

/// Ranges of bytes of an object stream, sorted, without gaps of zero bytes between them.
#[derive(Debug, Default)]
pub(super) struct Coverage(Vec<Range<u64>>);

impl FromIterator<Range<u64>> for Coverage {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Coverage {
        let mut ranges: Vec<Range<u64>> = ranges.into_iter().collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Coverage(merged)
    }
}

impl Coverage {
    /// Returns whether all bytes of this range are on the disk.
    pub(super) fn covers(&self, bytes: &Range<u64>) -> bool {
        let after = self.0.partition_point(|range| range.start <= bytes.start);
        after.checked_sub(1).is_some_and(|last| self.0[last].end >= bytes.end)
    }

    /// Returns the number of bytes that are on the disk.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns the source symbols of block `index` whose bytes are all on the disk. The last symbols contain the trailer of the
    /// block, which is not.
    pub(super) fn symbols_of(&self, geometry: &Geometry, index: u32) -> Seed {
        let (block, size) = (geometry.range(index), u64::from(geometry.symbol_size));
        let mut seed = Seed::new(geometry.symbols(index));
        let first = self.0.partition_point(|range| range.end <= block.start);
        for range in self.0[first..].iter().take_while(|range| range.start < block.end) {
            let start = range.start.max(block.start) - block.start;
            let end = range.end.min(block.end) - block.start;
            (start.div_ceil(size)..end / size).for_each(|symbol| seed.insert(symbol as u16));
        }
        seed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(ranges: &[(u64, u64)]) -> Coverage {
        ranges.iter().map(|&(start, end)| start..end).collect()
    }

    #[test]
    fn ranges_that_touch_or_overlap_are_merged() {
        let found = coverage(&[(50, 60), (0, 10), (10, 20), (15, 30), (70, 80)]);
        assert_eq!(found.0, [0..30, 50..60, 70..80]);
        for (range, is_covered) in
            [(0..30, true), (29..30, true), (29..31, false), (55..75, false), (90..91, false)]
        {
            assert_eq!(found.covers(&range), is_covered, "{range:?}");
        }
        assert!(!coverage(&[]).covers(&(0..1)));
    }

    #[test]
    fn only_whole_source_symbols_without_the_trailer_count() {
        // 4 symbols of 64 bytes hold 220 bytes of data.
        let geometry =
            Geometry { stream_len: Some(500), manifest_len: 1, symbol_size: 64, symbols_per_block: 4 };
        let count = |ranges: &[(u64, u64)], index| coverage(ranges).symbols_of(&geometry, index).count();
        assert_eq!(count(&[(0, 500)], 0), 3);
        assert_eq!(count(&[(0, 500)], 2), 0, "60 bytes and the trailer");
        assert_eq!(count(&[(220, 284), (285, 440)], 1), 2);
        assert_eq!(count(&[(0, 63), (65, 220)], 0), 1);
        assert_eq!(count(&[(63, 129)], 0), 1);
        assert_eq!(count(&[(0, 220)], 1), 0);
    }
}
