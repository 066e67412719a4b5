//! Mapping between bytes of the object stream and files.

use super::geometry::Geometry;
use super::manifest::{Kind, MAX_VOID, Manifest, ManifestError};
use std::ops::Range;

/// Position of the content of each file in the object stream.
#[derive(Debug, Clone)]
pub struct Layout {
    manifest_len: u64,
    /// For each file that is not empty: the end of its content in the object stream, and the number of its entry.
    files: Vec<(u64, u32)>,
    /// Runs of blocks that lie in holes of files, in order.
    void: Vec<Range<u32>>,
}

/// A run of bytes of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The manifest's entry.
    pub(crate) entry: u32,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Number of bytes.
    pub(crate) len: usize,
}

impl Layout {
    /// Computes the layout of this manifest's files and checks it against the geometry.
    pub(crate) fn new(manifest: &Manifest, geometry: &Geometry) -> Result<Layout, ManifestError> {
        let manifest_len = u64::from(geometry.manifest_len);
        let mut end = manifest_len;
        let (mut files, mut holes) = (Vec::new(), Vec::<Range<u64>>::new());
        for (n, entry) in (0..).zip(manifest.entries()) {
            match entry.kind {
                Kind::File { size } if size > 0 => {
                    let start = end;
                    end = end.checked_add(size).ok_or(ManifestError::Sizes)?;
                    for hole in entry.holes() {
                        let hole = start + hole.start..start + hole.end;
                        match holes.last_mut() {
                            Some(before) if before.end == hole.start => before.end = hole.end,
                            _ => holes.push(hole),
                        }
                    }
                    files.push((end, n));
                }
                Kind::Stream => {
                    end = u64::MAX;
                    files.push((end, n));
                }
                Kind::File { .. } | Kind::Dir | Kind::Symlink { .. } | Kind::HardLink { .. } => {}
            }
        }
        let fits = manifest.is_stream() || geometry.stream_len == Some(end);
        let void = void_runs(&holes, geometry);
        if void.iter().map(|run| u64::from(run.end - run.start)).sum::<u64>() > MAX_VOID {
            return Err(ManifestError::TooMuchVoid);
        }
        if fits { Ok(Layout { manifest_len, files, void }) } else { Err(ManifestError::Sizes) }
    }

    /// Returns the layout of a manifest without content.
    pub(crate) fn without_content(manifest_len: u64) -> Layout {
        Layout { manifest_len, files: Vec::new(), void: Vec::new() }
    }

    /// Returns the runs of blocks that lie in holes of files, in order. Such a block is zeros and is not sent.
    pub fn void(&self) -> &[Range<u32>] {
        &self.void
    }

    /// Returns whether a block lies in holes of files.
    pub fn is_void(&self, block: u32) -> bool {
        let at = self.void.partition_point(|run| run.end <= block);
        self.void.get(at).is_some_and(|run| run.contains(&block))
    }

    /// Returns the number of blocks in holes from this block on.
    pub fn void_from(&self, block: u32) -> u32 {
        let at = self.void.partition_point(|run| run.end <= block);
        self.void[at..].iter().map(|run| run.end - run.start.max(block)).sum()
    }

    /// Returns the range of the object stream that holds the content of this entry; `None` if the entry has no content.
    pub fn range_of(&self, entry: u32) -> Option<Range<u64>> {
        let at = self.files.binary_search_by_key(&entry, |&(_, entry)| entry).ok()?;
        let start = at.checked_sub(1).map_or(self.manifest_len, |before| self.files[before].0);
        Some(start..self.files[at].0)
    }

    /// Returns the length of the manifest, which precedes the content, in bytes.
    pub(crate) fn manifest_len(&self) -> u64 {
        self.manifest_len
    }

    /// Returns the number of files that are not empty.
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// Returns the parts of files in this range of the object stream, in order.
    pub(crate) fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = Piece> + '_ {
        let mut at = range.start.max(self.manifest_len);
        let first = self.files.partition_point(|&(end, _)| end <= at);
        (first..self.files.len()).map_while(move |n| {
            let (end, entry) = self.files[n];
            let start = if n == 0 { self.manifest_len } else { self.files[n - 1].0 };
            let stop = end.min(range.end);
            (at < stop).then(|| {
                let piece = Piece { entry, offset: at - start, len: (stop - at) as usize };
                at = stop;
                piece
            })
        })
    }
}

/// Returns the runs of whole blocks in these ranges of the object stream.
fn void_runs(holes: &[Range<u64>], geometry: &Geometry) -> Vec<Range<u32>> {
    let capacity = geometry.capacity();
    let blocks = holes.iter().map(|hole| {
        let end = match geometry.stream_len {
            Some(len) if len == hole.end => len.div_ceil(capacity), // the last block may be short
            _ => hole.end / capacity,
        };
        hole.start.div_ceil(capacity) as u32..end as u32 // a checked geometry has 32-bit numbers
    });
    blocks.filter(|run| !run.is_empty()).collect()
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "some files have one hole")]
mod tests {
    use super::*;
    use crate::manifest::Entry;

    #[test]
    fn only_blocks_that_lie_wholly_in_holes_are_void() {
        let sparse = |path: &str, size, holes: &[Range<u64>]| {
            let mut entry = Entry::new(path, Kind::File { size }, 0o644, 0);
            entry.holes = (!holes.is_empty()).then(|| holes.into());
            entry
        };
        // Blocks of 28 bytes: 0..28, 28..56, 56..84, and so on. The holes of b and c meet.
        let entries =
            vec![sparse("a", 60, &[3..59]), sparse("b", 100, &[40..100]), sparse("c", 50, &[0..50])];
        let manifest = Manifest::new(entries).expect("in order");
        let manifest_len = 10;
        let geometry = Geometry {
            stream_len: Some(manifest_len + 210),
            manifest_len: manifest_len as u32,
            symbol_size: 16,
            symbols_per_block: 4,
        };
        let layout = Layout::new(&manifest, &geometry).expect("it fits");
        // a: 13..69 holds block 1. b and c: 110..220 holds blocks 4 to 7; the last block is short.
        assert_eq!(layout.void(), [1..2, 4..8]);
        let is_void: Vec<u32> = (0..9).filter(|block| layout.is_void(*block)).collect();
        assert_eq!(is_void, [1, 4, 5, 6, 7]);
        assert_eq!(
            (0..9).map(|block| layout.void_from(block)).collect::<Vec<_>>(),
            [5, 5, 4, 4, 4, 3, 2, 1, 0]
        );
    }

    #[test]
    fn manifest_with_too_many_blocks_in_holes_is_refused() {
        let size = (MAX_VOID + 2) * 1_396;
        let mut entry = Entry::new("sparse", Kind::File { size }, 0o644, 0);
        entry.holes = Some([0..size].into());
        let manifest = Manifest::new(vec![entry]).expect("in order");
        let geometry = Geometry {
            stream_len: Some(size + 10),
            manifest_len: 10,
            symbol_size: 1432,
            symbols_per_block: 1,
        };
        assert_eq!(Layout::new(&manifest, &geometry).err(), Some(ManifestError::TooMuchVoid));
    }
}
