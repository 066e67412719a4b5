//! Mapping between bytes of the object stream and files.

use super::geometry::Geometry;
use super::manifest::{Kind, Manifest, ManifestError};
use std::ops::Range;

/// Position of the content of each file in the object stream.
#[derive(Debug, Clone)]
pub struct Layout {
    manifest_len: u64,
    /// For each file that is not empty: the end of its content in the object stream, and the number of its entry.
    files: Vec<(u64, u32)>,
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
        let mut files = Vec::new();
        for (n, entry) in (0..).zip(manifest.entries()) {
            match entry.kind {
                Kind::File { size } if size > 0 => {
                    end = end.checked_add(size).ok_or(ManifestError::Sizes)?;
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
        if fits { Ok(Layout { manifest_len, files }) } else { Err(ManifestError::Sizes) }
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
