//! Assembly of blocks from symbols.
//!
//! Source symbols are copied to their positions in the block. When all source symbols have arrived, the block is complete without
//! decoding. Repair symbols are stored, too. Decoding is possible once enough symbols of both kinds together have arrived.

use faircast_fec::{Shape, decode};
use std::collections::BTreeMap;

/// Blocks that are being received.
#[derive(Debug)]
pub struct Assembly {
    symbol_size: usize,
    /// The block of the latest symbol. It is outside the map because nearly every symbol belongs to it.
    current: Option<(u32, Block)>,
    others: BTreeMap<u32, Block>,
    /// Empty blocks whose memory is reused.
    spare: Vec<Block>,
    /// Buffers of blocks that are stored on disk, for reuse by later blocks. If another thread writes a block to disk, it returns
    /// the buffer later.
    spare_bytes: Vec<Vec<u8>>,
    /// Maximum number of bytes held by blocks.
    limit: usize,
    held: usize,
    /// Number of duplicate symbols.
    pub duplicates: u64,
    /// Number of blocks that needed decoding.
    pub decoded: u64,
    /// Number of blocks that were dropped because memory was full.
    pub evicted: u64,
}

#[derive(Debug, Default)]
struct Block {
    symbols: usize,
    source: Vec<u8>,
    have: Vec<u64>,
    have_count: usize,
    repair: Vec<u8>,
    repair_ids: Vec<u32>,
    /// Number of symbols required beyond K; it equals the number of failed attempts to decode the block.
    beyond: usize,
}

/// Effect of a symbol.
#[derive(Debug, PartialEq, Eq)]
pub enum Added {
    /// It is a duplicate or invalid.
    Useless,
    /// It is stored.
    Kept,
    /// The block is complete: call [`Assembly::take`] next.
    Complete,
}

impl Assembly {
    /// Creates an assembly for symbols of `symbol_size` bytes. Its blocks take at most about `limit` bytes of memory.
    pub fn new(symbol_size: usize, limit: usize) -> Assembly {
        Assembly {
            symbol_size,
            current: None,
            others: BTreeMap::new(),
            spare: Vec::new(),
            spare_bytes: Vec::new(),
            limit,
            held: 0,
            duplicates: 0,
            decoded: 0,
            evicted: 0,
        }
    }

    /// Adds a symbol of a block that has `symbols` source symbols. Decodes the block if its symbols suffice.
    pub fn add(&mut self, block: u32, symbols: u16, symbol: u32, payload: &[u8]) -> Added {
        let added = self.gather(block, symbols, symbol, payload);
        let Some((_, entry)) = self.current.as_mut().filter(|_| added == Added::Complete) else {
            return added;
        };
        if entry.have_count == entry.symbols {
            return Added::Complete;
        }
        if entry.decode(self.symbol_size) {
            self.decoded += 1;
            Added::Complete
        } else {
            entry.beyond += 1;
            Added::Kept
        }
    }

    /// Like [`Assembly::add`], but does not decode: returns [`Added::Complete`] when the symbols suffice for decoding.
    pub fn gather(&mut self, block: u32, symbols: u16, symbol: u32, payload: &[u8]) -> Added {
        if payload.len() != self.symbol_size || symbols == 0 {
            return Added::Useless;
        }
        if self.current.as_ref().is_none_or(|(current, _)| *current != block) {
            self.switch_to(block, usize::from(symbols));
        }
        let Some((_, entry)) = &mut self.current else { return Added::Useless };
        if entry.symbols != usize::from(symbols) {
            return Added::Useless; // contradicts what came before
        }
        if !entry.put(symbol, payload) {
            self.duplicates += 1;
            return Added::Useless;
        }
        let is_enough = entry.have_count == entry.symbols
            || entry.have_count + entry.repair_ids.len() >= entry.symbols + entry.beyond;
        if is_enough { Added::Complete } else { Added::Kept }
    }

    /// Takes the symbols of the block that [`Assembly::gather`] has just completed.
    pub fn take_gathered(&mut self) -> Option<(u32, Gathered)> {
        let (block, entry) = self.current.take()?;
        self.held -= entry.symbols * self.symbol_size;
        Some((block, Gathered { entry, symbol_size: self.symbol_size }))
    }

    /// Puts back the symbols of a block that could not be decoded and needs more symbols.
    pub fn put_back(&mut self, block: u32, gathered: Gathered) {
        let mut entry = gathered.entry;
        entry.beyond += 1;
        self.held += entry.symbols * self.symbol_size;
        if let Some(newer) = self.others.insert(block, entry) {
            let symbols = self.retire(newer);
            self.held -= symbols * self.symbol_size;
        }
    }

    /// Reuses the memory of a block after its bytes were taken.
    pub fn reuse(&mut self, gathered: Gathered) {
        self.decoded += u64::from(gathered.entry.have_count < gathered.entry.symbols);
        self.spare.push(gathered.entry);
    }

    /// Takes the bytes of the block that [`Assembly::add`] has just completed: K symbols of the symbol size. Return the buffer
    /// with [`Assembly::recycle`].
    pub fn take(&mut self) -> Option<(u32, Vec<u8>)> {
        let (block, mut entry) = self.current.take()?;
        self.held -= entry.symbols * self.symbol_size;
        let bytes = std::mem::take(&mut entry.source);
        self.spare.push(entry);
        Some((block, bytes))
    }

    /// Reuses the buffer of a block that was written to its destination.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if (self.spare_bytes.len() + 1) * bytes.capacity() <= self.limit {
            self.spare_bytes.push(bytes);
        }
    }

    /// Removes the blocks below `oldest`.
    pub fn drop_before(&mut self, oldest: u32) {
        let stored = self.others.split_off(&oldest);
        let mut dropped = std::mem::replace(&mut self.others, stored);
        if let Some((block, entry)) = self.current.take_if(|(block, _)| *block < oldest) {
            dropped.insert(block, entry);
        }
        for entry in dropped.into_values() {
            let symbols = self.retire(entry);
            self.held -= symbols * self.symbol_size;
        }
    }

    /// Removes the symbols of this block.
    pub fn forget(&mut self, block: u32) {
        let current = self.current.take_if(|(current, _)| *current == block).map(|(_, entry)| entry);
        if let Some(entry) = current.or_else(|| self.others.remove(&block)) {
            let symbols = self.retire(entry);
            self.held -= symbols * self.symbol_size;
        }
    }

    /// Returns the number of symbols that `block` still needs; `None` if no symbol of the block has arrived.
    pub fn needed(&self, block: u32) -> Option<u16> {
        let entry = match &self.current {
            Some((current, entry)) if *current == block => entry,
            _ => self.others.get(&block)?,
        };
        let got = entry.have_count + entry.repair_ids.len();
        Some((entry.symbols + entry.beyond).saturating_sub(got).max(1) as u16)
    }

    /// Returns the number of stored symbols, summed over all incomplete blocks.
    pub fn gathered(&self) -> u64 {
        let current = self.current.iter().map(|(_, entry)| entry);
        current
            .chain(self.others.values())
            .map(|entry| entry.have_count + entry.repair_ids.len())
            .sum::<usize>() as u64
    }

    /// Returns a bit map of the source symbols of `block` that have arrived: symbol `k` is bit `k % 8` of byte `k / 8`. Returns
    /// `None` if no symbol of the block has arrived, or if the block has more than 256 source symbols.
    pub fn held(&self, block: u32) -> Option<[u8; 32]> {
        let entry = match &self.current {
            Some((current, entry)) if *current == block => entry,
            _ => self.others.get(&block)?,
        };
        let mut map = [0; 32];
        if entry.symbols > map.len() * 8 {
            return None;
        }
        for (bytes, word) in map.chunks_exact_mut(8).zip(&entry.have) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Some(map)
    }

    fn switch_to(&mut self, block: u32, symbols: usize) {
        if let Some((old, entry)) = self.current.take() {
            self.others.insert(old, entry);
        }
        let entry = self.others.remove(&block).unwrap_or_else(|| {
            self.held += symbols * self.symbol_size;
            let mut entry = self.spare.pop().unwrap_or_default();
            if entry.source.capacity() == 0 {
                entry.source = self.spare_bytes.pop().unwrap_or_default();
            }
            entry.reset(symbols, self.symbol_size);
            entry
        });
        self.current = Some((block, entry));
        while self.held > self.limit && !self.others.is_empty() {
            // The block with the highest number is dropped first, because it will be repaired last.
            let Some((_, entry)) = self.others.pop_last() else { break };
            let symbols = self.retire(entry);
            self.held -= symbols * self.symbol_size;
            self.evicted += 1;
        }
    }

    fn retire(&mut self, entry: Block) -> usize {
        let symbols = entry.symbols;
        self.spare.push(entry);
        symbols
    }
}

/// Symbols of one block that suffice to decode it.
#[derive(Debug)]
pub struct Gathered {
    entry: Block,
    symbol_size: usize,
}

impl Gathered {
    /// Returns the number of source symbols of the block.
    pub fn symbols(&self) -> u16 {
        self.entry.symbols as u16
    }

    /// Returns whether all source symbols have arrived; no decoding is then needed.
    pub fn is_whole(&self) -> bool {
        self.entry.have_count == self.entry.symbols
    }

    /// Decodes the block and returns its bytes; `None` if these symbols do not suffice.
    pub fn decode(&mut self) -> Option<Vec<u8>> {
        let is_decoded = self.is_whole() || self.entry.decode(self.symbol_size);
        is_decoded.then(|| std::mem::take(&mut self.entry.source))
    }
}

impl Block {
    fn reset(&mut self, symbols: usize, symbol_size: usize) {
        self.symbols = symbols;
        self.source.resize(symbols * symbol_size, 0);
        self.have.clear();
        self.have.resize(symbols.div_ceil(64), 0);
        self.have_count = 0;
        self.repair.clear();
        self.repair_ids.clear();
        self.beyond = 0;
    }

    /// Stores a symbol and returns whether it is new.
    fn put(&mut self, symbol: u32, payload: &[u8]) -> bool {
        let index = symbol as usize;
        if index < self.symbols {
            let (word, bit) = (index / 64, 1 << (index % 64));
            if self.have[word] & bit != 0 {
                return false;
            }
            self.have[word] |= bit;
            self.have_count += 1;
            self.source[index * payload.len()..][..payload.len()].copy_from_slice(payload);
            return true;
        }
        if self.repair_ids.contains(&symbol) {
            return false;
        }
        self.repair_ids.push(symbol);
        self.repair.extend_from_slice(payload);
        true
    }

    /// Recovers the source symbols and returns whether that succeeded.
    fn decode(&mut self, symbol_size: usize) -> bool {
        let source = (0..self.symbols)
            .filter(|index| self.have[index / 64] & (1 << (index % 64)) != 0)
            .map(|index| (index as u32, &self.source[index * symbol_size..][..symbol_size]));
        let repair = self.repair_ids.iter().copied().zip(self.repair.chunks_exact(symbol_size));
        let Ok(shape) = Shape::new(self.symbols as u16, symbol_size as u16) else { return false };
        match decode(shape, source.chain(repair)) {
            Some(bytes) => {
                self.source = bytes;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: usize = 16;

    fn symbol(number: u8) -> [u8; T] {
        [number; T]
    }

    #[test]
    fn block_is_complete_when_all_source_symbols_are_present() {
        let mut assembly = Assembly::new(T, 1 << 20);
        assert_eq!(assembly.add(7, 3, 2, &symbol(2)), Added::Kept);
        assert_eq!(assembly.needed(7), Some(2));
        assert_eq!(assembly.add(7, 3, 0, &symbol(0)), Added::Kept);
        assert_eq!(assembly.add(7, 3, 0, &symbol(0)), Added::Useless);
        assert_eq!(assembly.add(7, 3, 1, &symbol(1)), Added::Complete);
        let (block, bytes) = assembly.take().expect("complete");
        assert_eq!((block, &bytes[..T], &bytes[2 * T..]), (7, &symbol(0)[..], &symbol(2)[..]));
        assert_eq!(assembly.needed(7), None);
    }

    #[test]
    fn memory_of_stored_blocks_is_reused_by_later_blocks() {
        let mut assembly = Assembly::new(T, 1 << 20);
        let complete = |assembly: &mut Assembly, block| {
            assert_eq!(assembly.gather(block, 1, 0, &symbol(0)), Added::Complete);
            let (_, mut gathered) = assembly.take_gathered().expect("complete");
            let bytes = gathered.decode().expect("whole");
            assembly.reuse(gathered);
            bytes
        };
        let (first, second) = (complete(&mut assembly, 1), complete(&mut assembly, 2));
        let memory = [first.as_ptr(), second.as_ptr()];
        assembly.recycle(first);
        assembly.recycle(second);
        let again = [complete(&mut assembly, 3), complete(&mut assembly, 4)].map(|bytes| bytes.as_ptr());
        assert_eq!([again[1], again[0]], memory);
    }

    #[test]
    fn two_blocks_are_complete_after_their_interleaved_symbols() {
        let mut assembly = Assembly::new(T, 1 << 20);
        assembly.add(1, 2, 0, &symbol(0));
        assembly.add(2, 2, 0, &symbol(0));
        assert_eq!(assembly.add(1, 2, 1, &symbol(1)), Added::Complete);
        assert_eq!(assembly.take().map(|(block, _)| block), Some(1));
        assert_eq!(assembly.add(2, 2, 1, &symbol(1)), Added::Complete);
    }

    #[test]
    fn blocks_before_the_oldest_needed_block_release_their_memory() {
        let mut assembly = Assembly::new(T, 1 << 20);
        for block in [3, 9, 5] {
            assembly.add(block, 2, 0, &symbol(0));
        }
        assembly.drop_before(9);
        assert_eq!([3, 5, 9].map(|block| assembly.needed(block)), [None, None, Some(1)]);
        assert_eq!(assembly.held, 2 * T);
        assembly.drop_before(u32::MAX);
        assert_eq!((assembly.needed(9), assembly.held), (None, 0));
    }

    #[test]
    fn symbol_with_a_wrong_size_or_number_of_symbols_is_ignored() {
        let mut assembly = Assembly::new(T, 1 << 20);
        assert_eq!(assembly.add(1, 2, 0, &[0; 3]), Added::Useless);
        assert_eq!(assembly.add(1, 0, 0, &symbol(0)), Added::Useless);
        assembly.add(1, 2, 0, &symbol(0));
        assert_eq!(assembly.add(1, 9, 1, &symbol(0)), Added::Useless);
    }

    #[test]
    fn full_memory_drops_the_newest_blocks_but_not_the_current_one() {
        let mut assembly = Assembly::new(T, 3 * 2 * T);
        for block in 0..10 {
            assembly.add(block, 2, 0, &symbol(0));
        }
        assert_eq!(assembly.needed(0), Some(1));
        assert_eq!(assembly.needed(9), Some(1), "the current one");
        assert_eq!(assembly.evicted, 7);
    }
}
