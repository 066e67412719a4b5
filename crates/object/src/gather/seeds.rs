//! Source symbols of incomplete blocks whose bytes are on the disk already. Their bytes are read when the block is decoded.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Reads bytes of a block, given by their range in the block.
pub type ReadBlock = Arc<dyn Fn(u32, Range<usize>, &mut [u8]) -> io::Result<()> + Send + Sync>;

/// The symbols on the disk, by block.
pub struct Seeds {
    blocks: BTreeMap<u32, Seed>,
    /// Number of symbols of all blocks.
    symbols: u64,
    read: ReadBlock,
}

/// Symbols of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Number of source symbols of the block.
    symbols: u16,
    /// Bit map of the symbols on the disk.
    have: Vec<u64>,
    count: u16,
}

impl Seed {
    /// Creates a record of a block with this number of source symbols.
    pub(crate) fn new(symbols: u16) -> Seed {
        Seed { symbols, have: vec![0; usize::from(symbols).div_ceil(64)], count: 0 }
    }

    pub(crate) fn insert(&mut self, symbol: u16) {
        let (word, bit) = (usize::from(symbol / 64), 1 << (symbol % 64));
        self.count += u16::from(self.have[word] & bit == 0);
        self.have[word] |= bit;
    }

    /// Returns the number of these symbols.
    pub(crate) fn count(&self) -> u16 {
        self.count
    }

    /// Returns the number of symbols that the block lacks.
    pub(super) fn needed(&self) -> u16 {
        (self.symbols - self.count).max(1)
    }

    /// Returns the number of source symbols of the block.
    pub(super) fn symbols(&self) -> u16 {
        self.symbols
    }

    pub(super) fn have(&self) -> &[u64] {
        &self.have
    }
}

impl Seeds {
    /// Creates an empty record; `read` reads the symbols.
    pub(crate) fn new(read: ReadBlock) -> Seeds {
        Seeds { blocks: BTreeMap::new(), symbols: 0, read }
    }

    pub(crate) fn insert(&mut self, block: u32, seed: Seed) {
        if seed.count() > 0 {
            self.symbols += u64::from(seed.count());
            self.blocks.insert(block, seed);
        }
    }

    pub(super) fn get(&self, block: u32) -> Option<&Seed> {
        self.blocks.get(&block)
    }

    /// Removes the symbols of this block.
    pub(super) fn remove(&mut self, block: u32) {
        let removed = self.blocks.remove(&block);
        self.symbols -= removed.map_or(0, |seed| u64::from(seed.count));
    }

    pub(super) fn reader(&self) -> ReadBlock {
        Arc::clone(&self.read)
    }

    /// Returns the number of symbols of all blocks.
    pub(crate) fn symbols(&self) -> u64 {
        self.symbols
    }
}

impl fmt::Debug for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seeds").field("blocks", &self.blocks.len()).finish_non_exhaustive()
    }
}
