//! Cache of a relay. The symbols of each block are stored in order of arrival, in memory of limited size and in a file.
//!
//! Blocks are stored as a whole, with their symbols in order of arrival. So a branch needs only a position in this order to
//! record which symbols it has sent.

use crate::object::gather::spill::SpillFile;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

/// Number of repair symbols cached per block, in addition to the source symbols. Repair symbols can replace any lost symbols.
const SPARE: usize = 16;

/// Divisor of the memory limit. The quotient is the number of bytes freed at a time.
const ROOM: usize = 16;

/// Maximum number of emptied blocks whose memory is reused.
const MAX_SPARE: usize = 8;

/// The cached blocks.
#[derive(Debug)]
pub(super) struct Cache {
    /// Length of a relayed symbol, bytes.
    symbol_len: usize,
    /// Number of source symbols of a full block. The first block determines this number, because only the last block may have
    /// fewer symbols.
    most_symbols: u16,
    limit: usize,
    held: usize,
    blocks: BTreeMap<u32, CachedBlock>,
    /// Blocks that have been complete in the cache, or were evicted.
    had: BTreeSet<u32>,
    /// Number of the first block that has not been discarded.
    first: u32,
    spare: Vec<CachedBlock>,
    /// File for blocks that do not fit in memory. Without a file, such blocks are discarded.
    room: Option<SpillFile>,
    /// Whether the file accepts no more bytes.
    is_full: bool,
    /// Bytes written to the file.
    pub(super) written: u64,
    /// Bytes evicted to make room for other blocks.
    pub(super) evicted: u64,
}

/// Cached symbols of a block.
#[derive(Debug, Default)]
pub(super) struct CachedBlock {
    /// Number of source symbols of the block.
    pub(super) symbols: u16,
    /// Whether symbols of the block are fetched and sent only on request: the block was cached before and evicted, or the first
    /// pass of the source has skipped it.
    pub(super) on_request: bool,
    ids: Vec<u32>,
    /// Number of symbols in the file: the first ones in order of arrival.
    in_file: usize,
    /// Bytes of the symbols that are not in the file.
    bytes: Vec<u8>,
}

/// Result of freeing memory.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// Evicted blocks.
    pub(super) gone: Vec<u32>,
    /// New error of the file; no more bytes are written to the file afterwards.
    pub(super) failed: Option<io::Error>,
}

/// Reason for which a symbol arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The first pass brings it.
    Front,
    /// Another member has requested symbols of the block.
    Repair,
    /// This relay has requested symbols of the block.
    Wanted,
}

/// Effect of a received symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// Not cached: the symbol is a duplicate, unwanted or invalid.
    Useless,
    /// The symbol is cached.
    Kept,
    /// The symbol is cached, and completes its block.
    Whole,
}

impl CachedBlock {
    /// Returns the number of cached symbols.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns the encoding symbol ID of symbol number `at` in order of arrival.
    pub(super) fn id(&self, at: usize) -> u32 {
        self.ids[at]
    }

    /// Returns the position of the symbol with this ID in order of arrival.
    pub(super) fn place_of(&self, id: u32) -> Option<usize> {
        self.ids.iter().position(|here| *here == id)
    }

    /// Returns the number of symbols that the block still lacks.
    pub(super) fn needed(&self) -> u16 {
        usize::from(self.symbols).saturating_sub(self.ids.len()) as u16
    }
}

impl Cache {
    /// Creates an empty cache. It stores about `limit` bytes of symbols in memory, and further symbols in the file `room`.
    pub(super) fn new(limit: usize, room: Option<SpillFile>) -> Cache {
        Cache {
            symbol_len: 0,
            most_symbols: 0,
            limit,
            held: 0,
            blocks: BTreeMap::new(),
            had: BTreeSet::new(),
            first: 0,
            spare: Vec::new(),
            room,
            is_full: false,
            written: 0,
            evicted: 0,
        }
    }

    /// Adds a symbol of a block that has `symbols` source symbols.
    pub(super) fn add(&mut self, block: u32, symbols: u16, id: u32, payload: &[u8], why: Reason) -> Added {
        let wanted = why == Reason::Wanted;
        if self.symbol_len == 0 {
            (self.symbol_len, self.most_symbols) = (payload.len(), symbols);
        }
        let was_had = self.has_had(block);
        let is_new = !self.blocks.contains_key(&block);
        if payload.len() != self.symbol_len
            || payload.is_empty()
            || symbols == 0
            || is_new && was_had && !wanted
        {
            return Added::Useless;
        }
        let spare = &mut self.spare;
        let stored = self.blocks.entry(block).or_insert_with(|| {
            let stored = spare.pop().unwrap_or_default();
            CachedBlock { symbols, on_request: was_had || why != Reason::Front, ..stored }
        });
        let most = usize::from(symbols) + SPARE;
        let has_room = stored.ids.len() < most || wanted && stored.ids.len() < most * 2;
        if stored.symbols != symbols || !has_room || stored.place_of(id).is_some() {
            return Added::Useless;
        }
        stored.ids.push(id);
        stored.bytes.extend_from_slice(payload);
        self.held += payload.len();
        if stored.on_request || was_had || stored.ids.len() < usize::from(symbols) {
            return Added::Kept;
        }
        self.had.insert(block);
        Added::Whole
    }

    /// Fetches further symbols of this block only on request, if it is incomplete.
    pub(super) fn fetch_on_request(&mut self, block: u32) {
        if let Some(stored) = self.blocks.get_mut(&block).filter(|stored| stored.needed() > 0) {
            stored.on_request = true;
        }
    }

    /// Returns the number of the first block that has not been discarded.
    pub(super) const fn first(&self) -> u32 {
        self.first
    }

    /// Returns the cached part of a block.
    pub(super) fn get(&self, block: u32) -> Option<&CachedBlock> {
        self.blocks.get(&block)
    }

    /// Copies a symbol of a block to `out`; `at` is the symbol's position in order of arrival. Returns whether the symbol is
    /// cached.
    pub(super) fn symbol(&self, block: u32, at: usize, out: &mut Vec<u8>) -> bool {
        out.clear();
        let Some(stored) = self.blocks.get(&block).filter(|stored| at < stored.ids.len()) else {
            return false;
        };
        match (at.checked_sub(stored.in_file), &self.room) {
            (Some(at), _) => {
                let from = at * self.symbol_len;
                out.extend_from_slice(&stored.bytes[from..from + self.symbol_len]);
                true
            }
            (None, Some(room)) => {
                out.resize(self.symbol_len, 0);
                let place = self.slot(block, stored.symbols) + (at * self.symbol_len) as u64;
                room.file.read_exact_at(out, place).is_ok()
            }
            (None, None) => false,
        }
    }

    /// Returns the offset of a block's symbols in the file. All blocks have the same number of symbols, except that the last
    /// block may have fewer.
    fn slot(&self, block: u32, symbols: u16) -> u64 {
        let most = (usize::from(symbols.max(self.most_symbols)) + SPARE) * 2 * self.symbol_len;
        u64::from(block) * most as u64
    }

    /// Whether the block has been complete in the cache before, or was evicted.
    pub(super) fn has_had(&self, block: u32) -> bool {
        self.had.contains(&block)
    }

    /// Whether no symbol has ever been added.
    pub(super) fn is_untouched(&self) -> bool {
        self.symbol_len == 0
    }

    /// Returns the incomplete blocks, with the number of symbols that each lacks.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        let open = self.blocks.iter().filter(|(_, stored)| !stored.on_request && stored.needed() > 0);
        open.map(|(block, stored)| (*block, stored.needed()))
    }

    /// Returns the maximum number of symbols in memory; unlimited while the length of symbols is unknown.
    pub(super) const fn room(&self) -> usize {
        match self.limit.checked_div(self.symbol_len) {
            Some(symbols) => symbols,
            None => usize::MAX,
        }
    }

    /// Whether the cache has room for this number of bytes.
    pub(super) const fn keeps(&self, bytes: u64) -> bool {
        self.room.is_some() || bytes <= self.limit as u64
    }

    /// Returns the number of bytes of symbols in memory.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Discards the blocks before this one.
    pub(super) fn forget_before(&mut self, block: u32) {
        while let Some(first) = self.blocks.first_entry().filter(|first| *first.key() < block) {
            let stored = first.remove();
            self.retire(stored);
        }
        self.had = self.had.split_off(&block);
        self.first = self.first.max(block);
    }

    /// If memory exceeds its limit, frees memory. Blocks are moved to the file, or evicted if there is no file, starting with the
    /// block whose next use is most distant. `next_use` returns a distance in blocks; `u32::MAX` means never.
    pub(super) fn make_room(&mut self, next_use: impl Fn(u32, &CachedBlock) -> u32) -> Moved {
        let mut moved = Moved::default();
        if self.held <= self.limit {
            return moved;
        }
        let in_memory = self.blocks.iter().filter(|(_, stored)| !stored.bytes.is_empty());
        let mut uses: Vec<(u32, u32)> =
            in_memory.map(|(block, stored)| (next_use(*block, stored), *block)).collect();
        uses.sort_unstable_by(|a, b| b.cmp(a));
        let enough = self.limit - self.limit / ROOM;
        for (_, block) in uses {
            if self.held <= enough {
                break;
            }
            match self.write(block) {
                Ok(true) => {}
                Ok(false) => self.let_go(block, &mut moved),
                Err(error) => {
                    // Stored bytes stay in the file; no further bytes are written to it.
                    moved.failed.get_or_insert(error);
                    self.is_full = true;
                    self.let_go(block, &mut moved);
                }
            }
        }
        moved
    }

    /// Writes the symbols of a block that are in memory to the file. Returns `false` if there is no file, or if the file is full.
    fn write(&mut self, block: u32) -> io::Result<bool> {
        let slot = self.blocks.get(&block).map(|stored| self.slot(block, stored.symbols));
        let (Some(room), Some(stored), Some(slot)) = (&self.room, self.blocks.get_mut(&block), slot) else {
            return Ok(false);
        };
        if self.is_full {
            return Ok(false);
        }
        room.file.write_all_at(&stored.bytes, slot + (stored.in_file * self.symbol_len) as u64)?;
        stored.in_file = stored.ids.len();
        self.held -= stored.bytes.len();
        self.written += stored.bytes.len() as u64;
        stored.bytes = Vec::new();
        Ok(true)
    }

    /// Evicts a block from the cache.
    fn let_go(&mut self, block: u32, moved: &mut Moved) {
        if let Some(stored) = self.blocks.remove(&block) {
            self.evicted += stored.bytes.len() as u64;
            // The block is cached again only if a child requests it.
            self.had.insert(block);
            self.retire(stored);
            moved.gone.push(block);
        }
    }

    /// Returns the cached blocks in this range.
    pub(super) fn blocks_in(&self, blocks: RangeInclusive<u32>) -> Vec<u32> {
        if blocks.is_empty() {
            Vec::new()
        } else {
            self.blocks.range(blocks).map(|(block, _)| *block).collect()
        }
    }

    /// Evicts a block that cannot be read.
    pub(super) fn lose(&mut self, block: u32) {
        self.let_go(block, &mut Moved::default());
    }

    /// Changes a bit of each symbol in memory.
    #[cfg(test)]
    pub(super) fn spoil(&mut self) {
        for stored in self.blocks.values_mut() {
            stored.bytes.chunks_mut(self.symbol_len).for_each(|symbol| symbol[0] ^= 1);
        }
    }

    fn retire(&mut self, mut stored: CachedBlock) {
        self.held -= stored.bytes.len();
        stored.ids.clear();
        stored.bytes.clear();
        stored.in_file = 0;
        if self.spare.len() < MAX_SPARE {
            self.spare.push(stored);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::host::disk::Disk;

    fn cache(limit: usize) -> Cache {
        Cache::new(limit, None)
    }

    fn fill(cache: &mut Cache, block: u32) -> Added {
        let adds = (0..4).map(|id| cache.add(block, 4, id, &[block as u8; 10], Reason::Front));
        adds.last().expect("there are four")
    }

    #[test]
    fn any_distinct_symbols_complete_a_block() {
        let mut cache = cache(1000);
        assert_eq!(cache.add(3, 2, 7, &[1; 10], Reason::Front), Added::Kept);
        assert_eq!(cache.add(3, 2, 7, &[1; 10], Reason::Front), Added::Useless);
        assert_eq!(cache.incomplete().collect::<Vec<_>>(), [(3, 1)]);
        assert_eq!(cache.add(3, 2, 0, &[2; 10], Reason::Front), Added::Whole);
        assert_eq!(cache.incomplete().count(), 0);
        assert_eq!((symbol(&cache, 3, 0), symbol(&cache, 3, 1)), (Some(vec![1; 10]), Some(vec![2; 10])));
        assert_eq!((symbol(&cache, 3, 2), symbol(&cache, 4, 0)), (None, None));
    }

    #[test]
    fn symbols_of_another_length_or_block_size_are_refused() {
        let mut cache = cache(1000);
        assert_eq!(cache.add(0, 4, 0, &[1; 10], Reason::Front), Added::Kept);
        assert_eq!(cache.add(0, 4, 1, &[1; 11], Reason::Front), Added::Useless);
        assert_eq!(cache.add(0, 5, 1, &[1; 10], Reason::Front), Added::Useless);
        assert_eq!(cache.add(1, 0, 1, &[1; 10], Reason::Front), Added::Useless);
    }

    #[test]
    fn number_of_cached_symbols_per_block_is_bounded() {
        let mut cache = cache(10_000);
        let stored =
            (0..1000).filter(|id| cache.add(0, 4, *id, &[0; 10], Reason::Front) != Added::Useless).count();
        assert_eq!(stored, 4 + SPARE);
    }

    #[test]
    fn bounded_memory_evicts_the_blocks_with_the_latest_next_use() {
        let mut cache = cache(200);
        for block in 0..6 {
            assert_eq!(fill(&mut cache, block), Added::Whole);
        }
        assert_eq!(cache.held(), 240);
        let moved = cache.make_room(|block, _| if block < 2 { u32::MAX } else { block });
        assert_eq!(moved.gone, [1, 0]);
        assert!(cache.held() <= 200 && cache.has_had(0) && cache.get(0).is_none());
        assert_eq!(
            cache.add(0, 4, 9, &[0; 10], Reason::Front),
            Added::Useless,
            "it does not come back by itself"
        );
        assert_eq!(cache.add(0, 4, 9, &[0; 10], Reason::Wanted), Added::Kept, "but when somebody asks");
        assert!(cache.get(0).is_some_and(|stored| stored.on_request) && cache.incomplete().count() == 0);
    }

    fn symbol(cache: &Cache, block: u32, at: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        cache.symbol(block, at, &mut out).then_some(out)
    }

    #[test]
    fn blocks_over_the_memory_limit_are_stored_in_a_file() {
        let file = tempfile::tempfile().expect("a temporary file");
        let mut cache =
            Cache::new(200, Some(SpillFile { disk: Disk::default(), file, path: "cache".into() }));
        for block in 0..50 {
            for id in [3, 0, 9, 1] {
                cache.add(block, 4, id, &[block as u8 ^ id as u8; 10], Reason::Front);
            }
            assert!(cache.make_room(|block, _| u32::MAX - block).gone.is_empty());
            assert!(cache.held() <= 200);
        }
        assert!(cache.written > 1500 && cache.evicted == 0, "{}", cache.written);
        assert_eq!(
            cache.add(0, 4, 2, &[0xaa; 10], Reason::Wanted),
            Added::Kept,
            "more of a block that lies in the file"
        );
        for _ in 0..2 {
            for block in 0..50 {
                for (at, id) in [3, 0, 9, 1].into_iter().enumerate() {
                    assert_eq!(symbol(&cache, block, at), Some(vec![block as u8 ^ id; 10]), "{block} {at}");
                }
            }
            assert_eq!(symbol(&cache, 0, 4), Some(vec![0xaa; 10]));
            cache.limit = 0;
            assert!(cache.make_room(|_, _| 0).gone.is_empty());
            assert_eq!(cache.held(), 0);
        }
    }

    #[test]
    fn failure_of_the_cache_file_evicts_blocks_and_is_reported_once() {
        let Ok(file) = std::fs::File::options().write(true).read(true).open("/dev/full") else { return };
        let mut cache =
            Cache::new(100, Some(SpillFile { disk: Disk::default(), file, path: "/dev/full".into() }));
        (0..5).for_each(|block| assert_eq!(fill(&mut cache, block), Added::Whole));
        let moved = cache.make_room(|block, _| block);
        assert!(moved.failed.is_some() && moved.gone.len() >= 3, "{moved:?}");
        (5..9).for_each(|block| assert_eq!(fill(&mut cache, block), Added::Whole));
        let again = cache.make_room(|block, _| block);
        assert!(again.failed.is_none() && !again.gone.is_empty(), "it is told once: {again:?}");
    }

    #[test]
    fn blocks_before_a_given_number_are_dropped() {
        let mut cache = cache(1000);
        (0..4).for_each(|block| assert_eq!(fill(&mut cache, block), Added::Whole));
        cache.forget_before(3);
        assert_eq!((cache.held(), cache.get(2).is_some(), cache.get(3).is_some()), (40, false, true));
    }
}
