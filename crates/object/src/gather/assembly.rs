//! Assembly of blocks from symbols.
//!
//! Source symbols are copied to their positions in the block. When all source symbols have arrived, the block is complete without
//! decoding. Repair symbols are stored, too. Decoding is possible once enough symbols of both kinds together have arrived.

use super::seeds::{ReadBlock, Seed, Seeds};
use faircast_fec::{Shape, decode};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

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
    /// Symbols on the disk, which count as present.
    seeds: Option<Seeds>,
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
    /// Symbols in `have` whose bytes are still on the disk.
    seeded: Vec<u64>,
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
            seeds: None,
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
        let read = self.seeds.as_ref().filter(|_| entry.is_seeded()).map(Seeds::reader);
        let needed = (entry.symbols
            - entry.seeded.iter().map(|word| word.count_ones() as usize).sum::<usize>())
            as u16;
        let on_disk = read.map(|read| (block, read));
        Some((block, Gathered { entry, symbol_size: self.symbol_size, needed, on_disk }))
    }

    /// Counts symbols on the disk as present from now on.
    pub fn seed(&mut self, seeds: Seeds) {
        let current = self.current.iter_mut().map(|(block, entry)| (&*block, entry));
        for (block, entry) in current.chain(&mut self.others) {
            seeds.get(*block).into_iter().for_each(|seed| entry.seed(seed));
        }
        self.seeds = Some(seeds);
    }

    /// Returns the number of bytes of the symbols on the disk, also those of complete blocks.
    pub fn seeded_bytes(&self) -> u64 {
        self.seeds.as_ref().map_or(0, Seeds::symbols) * self.symbol_size as u64
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

    /// Removes the symbols of this block, also those on the disk.
    pub fn forget(&mut self, block: u32) {
        if let Some(seeds) = &mut self.seeds {
            seeds.remove(block);
        }
        let current = self.current.take_if(|(current, _)| *current == block).map(|(_, entry)| entry);
        if let Some(entry) = current.or_else(|| self.others.remove(&block)) {
            let symbols = self.retire(entry);
            self.held -= symbols * self.symbol_size;
        }
    }

    fn seed_of(&self, block: u32) -> Option<&Seed> {
        self.seeds.as_ref()?.get(block)
    }

    fn entry(&self, block: u32) -> Option<&Block> {
        match &self.current {
            Some((current, entry)) if *current == block => Some(entry),
            _ => self.others.get(&block),
        }
    }

    /// Returns the number of symbols that `block` still needs; `None` if it has no symbol.
    pub fn needed(&self, block: u32) -> Option<u16> {
        let Some(entry) = self.entry(block) else { return self.seed_of(block).map(Seed::needed) };
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

    /// Returns a bit map of the present source symbols of `block`: symbol `k` is bit `k % 8` of byte `k / 8`. Returns `None` if
    /// the block has no symbol, or more than 256 source symbols.
    pub fn held(&self, block: u32) -> Option<[u8; 32]> {
        let (symbols, have) = match self.entry(block) {
            Some(entry) => (entry.symbols, entry.have.as_slice()),
            None => self.seed_of(block).map(|seed| (usize::from(seed.symbols()), seed.have()))?,
        };
        let mut map = [0; 32];
        if symbols > map.len() * 8 {
            return None;
        }
        for (bytes, word) in map.chunks_exact_mut(8).zip(have) {
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
            let seed = self.seeds.as_ref().and_then(|seeds| seeds.get(block));
            seed.into_iter().for_each(|seed| entry.seed(seed));
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
pub struct Gathered {
    entry: Block,
    symbol_size: usize,
    needed: u16,
    /// The number of the block, and a reader of its symbols on the disk, if it has any.
    on_disk: Option<(u32, ReadBlock)>,
}

impl Gathered {
    /// Returns the number of source symbols of the block that were not on the disk.
    pub fn needed(&self) -> u16 {
        self.needed
    }

    /// Returns whether all source symbols are in memory; neither decoding nor reading is then needed.
    pub fn is_whole(&self) -> bool {
        self.entry.have_count == self.entry.symbols && !self.entry.is_seeded()
    }

    /// Returns whether some of the symbols come from the disk. They may be wrong.
    pub fn is_seeded(&self) -> bool {
        self.on_disk.is_some()
    }

    /// Decodes the block and returns its bytes; `None` if these symbols do not suffice. If symbols cannot be read from the disk,
    /// the bytes are wrong, as with wrong symbols.
    pub fn decode(&mut self) -> Option<Vec<u8>> {
        let is_read = self.on_disk.as_ref().is_none_or(|(block, read)| {
            self.entry.read_seeded(self.symbol_size, |range, into| read(*block, range, into)).is_ok()
        });
        let is_decoded = !is_read || self.is_whole() || self.entry.decode(self.symbol_size);
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
        self.seeded.clear();
        self.repair.clear();
        self.repair_ids.clear();
        self.beyond = 0;
    }

    /// Counts symbols on the disk as present.
    fn seed(&mut self, seed: &Seed) {
        if usize::from(seed.symbols()) != self.symbols {
            return;
        }
        self.seeded.resize(self.have.len(), 0);
        for ((have, seeded), on_disk) in self.have.iter_mut().zip(&mut self.seeded).zip(seed.have()) {
            let new = on_disk & !*have;
            *have |= new;
            *seeded |= new;
            self.have_count += new.count_ones() as usize;
        }
    }

    fn is_seeded(&self) -> bool {
        self.seeded.iter().any(|word| *word != 0)
    }

    /// Reads the bytes of the symbols on the disk; `read` reads a range of bytes of the block.
    fn read_seeded(
        &mut self,
        symbol_size: usize,
        read: impl Fn(Range<usize>, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let is_seeded = |index: usize| self.seeded[index / 64] & (1 << (index % 64)) != 0;
        let mut start = 0;
        while start < self.symbols && !self.seeded.is_empty() {
            let run = (start..self.symbols).take_while(|index| is_seeded(*index)).count();
            if run > 0 {
                let bytes = start * symbol_size..(start + run) * symbol_size;
                read(bytes.clone(), &mut self.source[bytes])?;
            }
            start += run + 1;
        }
        self.seeded.clear();
        Ok(())
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

    /// Seeds with these symbols of block 7, which has 4; the disk has bytes equal to their symbol numbers, or no bytes.
    fn seeds(symbols: &[u16], is_there: bool) -> Seeds {
        let read = move |_, range: Range<usize>, into: &mut [u8]| {
            into.iter_mut().zip(range).for_each(|(byte, at)| *byte = (at / T) as u8);
            if is_there { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        };
        let (mut seeds, mut seed) = (Seeds::new(std::sync::Arc::new(read)), Seed::new(4));
        symbols.iter().for_each(|symbol| seed.insert(*symbol));
        seeds.insert(7, seed);
        seeds
    }

    #[test]
    fn symbols_on_the_disk_count_before_and_after_others_arrive() {
        for is_early in [false, true] {
            let mut assembly = Assembly::new(T, 1 << 20);
            if is_early {
                assert_eq!(assembly.gather(7, 4, 1, &symbol(1)), Added::Kept);
            }
            assembly.seed(seeds(&[0, 1, 3], true));
            assert_eq!((assembly.needed(7), assembly.held(7).map(|map| map[0])), (Some(1), Some(0b1011)));
            assert_eq!(assembly.needed(8), None);
            assert_eq!(assembly.gather(7, 4, 1, &symbol(1)), Added::Useless);
            assert_eq!(assembly.gather(7, 4, 2, &symbol(2)), Added::Complete);
            let (_, mut gathered) = assembly.take_gathered().expect("complete");
            assert!(gathered.is_seeded() && !gathered.is_whole());
            let bytes = gathered.decode().expect("whole");
            assert_eq!(bytes, (0..4).flat_map(symbol).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn block_with_wrong_symbols_on_the_disk_needs_all_symbols() {
        let mut assembly = Assembly::new(T, 1 << 20);
        assembly.seed(seeds(&[0, 1, 3], false));
        assert_eq!(assembly.gather(7, 4, 2, &symbol(2)), Added::Complete);
        let (_, mut gathered) = assembly.take_gathered().expect("complete");
        assert!(gathered.decode().is_some_and(|bytes| bytes.len() == 4 * T), "its hash will be wrong");
        assembly.reuse(gathered);
        assert_eq!((assembly.needed(7), assembly.seeded_bytes()), (Some(1), 3 * T as u64));
        assembly.forget(7);
        assert_eq!((assembly.needed(7), assembly.seeded_bytes()), (None, 0));
        assert_eq!(assembly.gather(7, 4, 2, &symbol(2)), Added::Kept);
        assert_eq!(assembly.needed(7), Some(3));
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
