//! The chunk table of a manifest of version 3: the lengths and hashes of the chunks of files. A receiver looks for these chunks in
//! its own files.
//!
//! ```text
//! table:  u8 size class ‖ the chunks of each file of an average chunk or more, in the order of the entries
//! chunk:  length ‖ u64 hash      (the lengths of the chunks of a file add up to its size)
//! ```

use super::{Entry, Kind, ManifestError, Reader, put_number};
use crate::block::hash_of;

/// Maximum number of chunks of a manifest. A source reaches at most four chunks for each average chunk of content, and one for
/// each file.
const MAX_CHUNKS: usize = 5 << 20;

/// Maximum number of average chunks in the content. Larger content has larger chunks.
const MOST_ON_AVERAGE: u64 = 1 << 20;

/// Sizes of chunks: a class of an average, a smallest and a largest size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSizes {
    /// The logarithm to base 2 of the average.
    class: u8,
}

impl ChunkSizes {
    /// 4 KiB: the table takes about 0.2 % of the content.
    const SMALLEST: u8 = 12;
    /// 4 MiB: the chunker's largest average.
    const LARGEST: u8 = 22;

    fn new(class: u8) -> Option<ChunkSizes> {
        (ChunkSizes::SMALLEST..=ChunkSizes::LARGEST).contains(&class).then_some(ChunkSizes { class })
    }

    /// Returns the sizes for this number of bytes of content; `None` if the content has too many bytes for a table.
    pub(crate) fn for_content(bytes: u64) -> Option<ChunkSizes> {
        let average = bytes.div_ceil(MOST_ON_AVERAGE).max(1).next_power_of_two();
        ChunkSizes::new((average.trailing_zeros() as u8).max(ChunkSizes::SMALLEST))
    }

    pub(crate) const fn average(self) -> u32 {
        1 << self.class
    }

    pub(crate) const fn smallest(self) -> u32 {
        self.average() / 4
    }

    pub(crate) const fn largest(self) -> u32 {
        self.average() * 4
    }

    /// Returns whether the table has the chunks of this entry. Smaller files would make the table large.
    pub(crate) fn include(self, entry: &Entry) -> bool {
        matches!(entry.kind, Kind::File { size } if size >= self.average().into())
    }
}

/// A chunk of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chunk {
    /// The first 8 bytes of the BLAKE3 hash of its bytes. The hash only finds candidates: the blocks are verified.
    pub(crate) hash: u64,
    /// Number of bytes.
    pub(crate) len: u32,
}

impl Chunk {
    /// Returns the chunk with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Chunk {
        let [a, b, c, d, e, f, g, h, ..] = hash_of(bytes).0;
        Chunk { hash: u64::from_le_bytes([a, b, c, d, e, f, g, h]), len: bytes.len() as u32 }
    }
}

/// The chunks of all files that are large enough, in the order of the entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    pub(crate) sizes: ChunkSizes,
    pub(crate) all: Vec<Chunk>,
}

impl Chunks {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.push(self.sizes.class);
        for chunk in &self.all {
            put_number(out, chunk.len.into());
            out.extend(chunk.hash.to_le_bytes());
        }
    }

    pub(super) fn read(from: &mut Reader<'_>, entries: &[Entry]) -> Result<Chunks, ManifestError> {
        let class = from.byte()?;
        let sizes = ChunkSizes::new(class).ok_or(ManifestError::ChunkSizes(class))?;
        let mut all = Vec::new();
        for (n, entry) in entries.iter().enumerate().filter(|(_, entry)| sizes.include(entry)) {
            let mut left = entry.size();
            while left > 0 {
                let len = from.number()?;
                if len == 0 || len > left.min(sizes.largest().into()) || all.len() == MAX_CHUNKS {
                    return Err(ManifestError::Chunk { entry: n });
                }
                all.push(Chunk { hash: from.word()?, len: len as u32 });
                left -= len;
            }
        }
        Ok(Chunks { sizes, all })
    }

    /// Calls `each` for each chunk with its entry and its offset in the file.
    pub(crate) fn each(&self, entries: &[Entry], mut each: impl FnMut(Chunk, u32, u64)) {
        let mut chunks = self.all.iter();
        for (n, entry) in (0..).zip(entries).filter(|(_, entry)| self.sizes.include(entry)) {
            let mut at = 0;
            while at < entry.size() {
                let Some(chunk) = chunks.next() else { return };
                each(*chunk, n, at);
                at += u64::from(chunk.len);
            }
        }
    }
}
