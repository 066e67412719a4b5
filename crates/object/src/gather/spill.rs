//! Assembly of blocks when the source sends symbols of all blocks in turns (a fountain). All blocks of the content are then
//! incomplete at the same time.
//!
//! Nearly all blocks stay incomplete until shortly before the end of the transfer. Symbols that do not fit into memory are
//! therefore written to a sparse file. The file has one slot for each block, which holds symbols in the order of their arrival.
//! Each write appends all in-memory symbols of one block to its slot.
//!
//! Nearly all blocks have enough symbols at about the same time. Decoding takes longer than receiving, so these blocks wait in
//! memory or in the file until the caller begins to decode them ([`Gathering::begin_next`]).
//!
//! [`Gathering`] is the record of all symbols. It does no file access itself: it plans operations and processes their results.
//! [`Slots`] performs the operations in order.

use crate::ObjectError;
use crate::gather::assembly::Added;
use crate::host::disk::Disk;
use faircast_fec::{Shape, decode};
use rustix::fs::FallocateFlags;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Number of symbols beyond K for which a slot has room. If all these symbols do not suffice for decoding, the block is received
/// again from the start. With RaptorQ, each additional symbol makes a decoding failure a hundred times less likely.
const BEYOND: usize = 8;

/// Number of symbols beyond the necessary ones that a block takes before it is decoded, and again while it is decoded. The source
/// may have sent the block's last symbol before the decoding fails.
const SPARE: usize = 3;

/// Growth of a block's memory, symbols.
const STEP: usize = 16;

/// Maximum number of recalled blocks that the caller has not taken yet.
const RECALLED: usize = 4;

/// A file for symbols that do not fit into memory.
#[derive(Debug)]
pub struct SpillFile {
    /// The disk of the file.
    pub disk: Disk,
    /// The file. It should have no name, and no other process should use it.
    pub file: File,
    /// Its path, for errors.
    pub path: PathBuf,
}

/// The file with a slot for each block.
#[derive(Debug)]
pub struct Slots {
    room: SpillFile,
    /// Size of a slot in bytes.
    slot: u64,
}

/// One operation on the spill file. Operations are performed one after the other.
#[derive(Debug)]
pub enum Operation {
    /// Writes bytes into the slot of a block.
    Write {
        /// The block.
        block: u32,
        /// Offset of the first byte in the slot.
        at: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Reads bytes from the start of a block's slot.
    Read {
        /// The block.
        block: u32,
        /// The number of bytes.
        len: usize,
    },
    /// Frees the space of a slot.
    Free(u32),
}

/// The result of an [`Operation`].
#[derive(Debug)]
pub enum Performed {
    /// The bytes are written; the memory that held them can be reused.
    Written(usize),
    /// The bytes of a slot.
    Read(u32, Vec<u8>),
    /// The space of the slot is freed, if the filesystem supports holes in files.
    Freed,
}

/// Blocks that are being received.
#[derive(Debug)]
pub struct Gathering {
    symbol_size: usize,
    /// Size of a slot in bytes.
    slot: u64,
    /// Maximum number of bytes of symbols in memory once there is a file.
    limit: usize,
    /// Bytes of symbols and blocks in memory, including bytes that are being written to the file.
    held: usize,
    /// Bytes that are being written.
    writing: usize,
    /// Blocks that lack symbols.
    blocks: BTreeMap<u32, Block>,
    /// Blocks that have enough symbols and wait to be decoded.
    full: BTreeMap<u32, Block>,
    /// Blocks that are about to be decoded and wait until their symbols are read from the file.
    reading: BTreeMap<u32, Block>,
    /// Symbols that arrived for blocks that are being read or decoded.
    spares: BTreeMap<u32, Block>,
    /// Blocks that can be decoded at once: their symbols are in memory.
    ready: VecDeque<(u32, Symbols)>,
    /// Complete blocks that cannot be placed yet.
    stored: BTreeMap<u32, BlockPlace>,
    /// Recalled blocks that are in memory and can be placed.
    recalled: VecDeque<(u32, Vec<u8>)>,
    has_room: bool,
    operations: VecDeque<Operation>,
    /// Block at which the round-robin search for the next block to write begins.
    turn: u32,
    /// Number of duplicate symbols.
    pub duplicates: u64,
    /// Number of blocks that needed decoding.
    pub decoded: u64,
    /// Number of bytes written to the file.
    pub spilled: u64,
}

/// Location of a complete block.
#[derive(Debug)]
enum BlockPlace {
    InMemory(Vec<u8>),
    /// In its slot, with this number of bytes.
    Written(usize),
    /// Recalled: it is about to be placed.
    Recalled,
}

#[derive(Debug)]
struct Block {
    symbols: usize,
    /// IDs of all symbols of the block in the order of arrival: first the symbols in the slot, then the symbols in memory.
    ids: Vec<u32>,
    staged: Vec<u8>,
    /// Number of symbols required beyond K, after failed attempts to decode the block.
    beyond: usize,
}

/// Symbols of one block that suffice to decode it.
#[derive(Debug)]
pub struct Symbols {
    block: Block,
    /// Symbols from the file.
    written: Vec<u8>,
    symbol_size: usize,
}

impl Slots {
    /// Performs an operation.
    ///
    /// # Errors
    /// When the file cannot be written or read.
    pub fn perform(&mut self, operation: Operation) -> Result<Performed, ObjectError> {
        let room = &self.room;
        match operation {
            Operation::Write { block, at, bytes } => {
                let written = room.disk.write_all_at(&room.file, &bytes, u64::from(block) * self.slot + at);
                written.map_err(|error| {
                    ObjectError::writing(&room.path, "store symbols in it", error, bytes.len() as u64)
                })?;
                Ok(Performed::Written(bytes.capacity()))
            }
            Operation::Read { block, len } => {
                let mut bytes = vec![0; len];
                let read = room.file.read_exact_at(&mut bytes, u64::from(block) * self.slot);
                read.map_err(|error| ObjectError::io(&room.path, "read back symbols from it", error))?;
                Ok(Performed::Read(block, bytes))
            }
            Operation::Free(block) => {
                // If the filesystem cannot punch holes, the space stays allocated until the file is deleted.
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let _ = rustix::fs::fallocate(&room.file, hole, u64::from(block) * self.slot, self.slot);
                Ok(Performed::Freed)
            }
        }
    }
}

impl Gathering {
    /// Creates a record for blocks of at most `symbols_per_block` symbols of `symbol_size` bytes. Before [`Gathering::give_room`]
    /// sets a file, all symbols stay in memory. Afterwards at most about `limit` bytes stay in memory.
    pub fn new(symbol_size: usize, symbols_per_block: u16, limit: usize) -> Gathering {
        Gathering {
            symbol_size,
            slot: (usize::from(symbols_per_block) + BEYOND) as u64 * symbol_size as u64,
            limit,
            held: 0,
            writing: 0,
            blocks: BTreeMap::new(),
            full: BTreeMap::new(),
            spares: BTreeMap::new(),
            reading: BTreeMap::new(),
            ready: VecDeque::new(),
            stored: BTreeMap::new(),
            recalled: VecDeque::new(),
            has_room: false,
            operations: VecDeque::new(),
            turn: 0,
            duplicates: 0,
            decoded: 0,
            spilled: 0,
        }
    }

    /// Sets the file for symbols that do not fit into memory.
    pub fn give_room(&mut self, room: SpillFile) -> Slots {
        self.has_room = true;
        self.relieve();
        Slots { room, slot: self.slot }
    }

    /// Returns the number of bytes by which the memory exceeds its limit. These bytes are being written to the file, or wait
    /// until there is a file.
    pub fn excess(&self) -> u64 {
        if self.has_room { self.writing as u64 } else { self.held.saturating_sub(self.limit) as u64 }
    }

    /// Adds a symbol of a block that has `symbols` source symbols. When the symbols of the block suffice, the block waits for
    /// [`Gathering::begin_next`].
    pub fn add(&mut self, block: u32, symbols: u16, symbol: u32, payload: &[u8]) -> Added {
        let symbols = usize::from(symbols);
        let fits = symbols > 0 && ((symbols + BEYOND) * self.symbol_size) as u64 <= self.slot;
        if payload.len() != self.symbol_size || !fits || self.is_whole(block) {
            return Added::Useless;
        }
        let (entry, step) = match self.full.get_mut(&block).or_else(|| self.spares.get_mut(&block)) {
            Some(entry) => (entry, 1),
            None => (self.blocks.entry(block).or_insert_with(|| Block::new(symbols)), STEP),
        };
        if entry.symbols != symbols {
            return Added::Useless; // contradicts what came before
        }
        if entry.ids.contains(&symbol) {
            self.duplicates += 1;
            return Added::Useless;
        }
        entry.ids.push(symbol);
        self.held += entry.stage(payload, step);
        let is_enough = entry.ids.len() >= symbols + entry.beyond;
        let completed = if is_enough { self.blocks.remove(&block) } else { None };
        let added = if completed.is_some() { Added::Complete } else { Added::Kept };
        self.full.extend(completed.map(|entry| (block, entry)));
        self.relieve();
        added
    }

    /// Takes the planned operations, in their order.
    pub fn take_operations(&mut self) -> VecDeque<Operation> {
        std::mem::take(&mut self.operations)
    }

    /// Takes the result of an operation.
    pub fn settle(&mut self, performed: Performed) {
        match performed {
            Performed::Written(bytes) => {
                self.held -= bytes;
                self.writing -= bytes;
            }
            Performed::Read(block, bytes) => {
                if let Some(entry) = self.reading.remove(&block) {
                    self.make_ready(block, entry, bytes);
                } else if let Some(BlockPlace::Recalled) = self.stored.get(&block) {
                    self.operations.push_back(Operation::Free(block));
                    self.recalled.push_back((block, bytes));
                }
            }
            Performed::Freed => {}
        }
    }

    /// Returns whether blocks have enough symbols and wait for [`Gathering::begin_next`].
    pub fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Returns the number of blocks whose symbols are being read from the file before they are decoded.
    pub fn being_read(&self) -> usize {
        self.reading.len()
    }

    /// Begins to decode the first block that has enough symbols: [`Gathering::next_ready`] returns its symbols. If some of them
    /// are in the file, plans a read of its slot first. Returns whether there was such a block.
    pub fn begin_next(&mut self) -> bool {
        let Some((block, entry)) = self.full.pop_first() else { return false };
        self.spares.insert(block, Block { ids: Vec::new(), staged: Vec::new(), ..entry });
        match entry.written(self.symbol_size) * self.symbol_size {
            0 => self.make_ready(block, entry, Vec::new()),
            len => {
                self.reading.insert(block, entry);
                self.operations.push_back(Operation::Read { block, len });
            }
        }
        true
    }

    /// Takes the symbols of a block that is about to be decoded. The caller decodes the block, then calls [`Gathering::on_decoded`]
    /// or [`Gathering::put_back`].
    pub fn next_ready(&mut self) -> Option<(u32, Symbols)> {
        self.ready.pop_front()
    }

    /// Records that the block has been decoded.
    pub fn on_decoded(&mut self, block: u32, symbols: &Symbols) {
        self.decoded += u64::from(!symbols.is_source());
        self.take_spares(block);
        self.free_unless_empty(block, symbols.written.len());
    }

    /// Puts back the symbols of a block that could not be decoded and needs more symbols.
    pub fn put_back(&mut self, block: u32, symbols: Symbols) {
        let Symbols { block: mut entry, written, symbol_size } = symbols;
        let spares = self.take_spares(block);
        entry.beyond = entry.ids.len() + 1 - entry.symbols;
        if entry.beyond > BEYOND {
            return self.free_unless_empty(block, written.len());
        }
        if let Some(spares) = spares {
            for (id, payload) in spares.ids.iter().zip(spares.staged.chunks_exact(symbol_size)) {
                if !entry.ids.contains(id) {
                    entry.ids.push(*id);
                    entry.staged.extend_from_slice(payload);
                }
            }
        }
        self.held += entry.staged.capacity();
        let is_enough = entry.ids.len() >= entry.symbols + entry.beyond;
        if is_enough { &mut self.full } else { &mut self.blocks }.insert(block, entry);
    }

    /// Takes the symbols that arrived while the block was decoded.
    fn take_spares(&mut self, block: u32) -> Option<Block> {
        let spares = self.spares.remove(&block)?;
        self.held -= spares.staged.capacity();
        Some(spares)
    }

    /// Stores a complete block that cannot be placed yet.
    pub fn keep(&mut self, block: u32, bytes: Vec<u8>) {
        self.held += bytes.capacity();
        if self.held - self.writing <= self.limit || !self.has_room {
            self.stored.insert(block, BlockPlace::InMemory(bytes));
            return;
        }
        self.stored.insert(block, BlockPlace::Written(bytes.len()));
        self.write(block, 0, bytes);
    }

    /// Returns the first stored block that is not recalled. Returns `None` if there is no such block or if the maximum number of
    /// blocks is recalled.
    pub fn first_stored(&self) -> Option<u32> {
        let mut recalled = 0;
        for (&block, stored) in &self.stored {
            match stored {
                BlockPlace::Recalled if recalled + 1 == RECALLED => return None,
                BlockPlace::Recalled => recalled += 1,
                BlockPlace::InMemory(_) | BlockPlace::Written(_) => return Some(block),
            }
        }
        None
    }

    /// Returns whether this block needs no symbols: it waits to be decoded or to be placed.
    pub fn is_whole(&self, block: u32) -> bool {
        let has_spare = |entry: &Block| entry.ids.len() >= entry.symbols + (entry.beyond + SPARE).min(BEYOND);
        self.stored.contains_key(&block)
            || self.spares.get(&block).is_some_and(|spares| spares.ids.len() >= SPARE)
            || self.full.get(&block).is_some_and(has_spare)
    }

    /// Recalls a stored block, which can be placed now. [`Gathering::next_recalled`] returns the block; if the block is in the
    /// file, it is read first.
    pub fn recall(&mut self, block: u32) {
        match self.stored.insert(block, BlockPlace::Recalled) {
            Some(BlockPlace::InMemory(bytes)) => {
                self.held -= bytes.capacity();
                self.recalled.push_back((block, bytes));
            }
            Some(BlockPlace::Written(len)) => self.operations.push_back(Operation::Read { block, len }),
            Some(BlockPlace::Recalled) => {}
            None => _ = self.stored.remove(&block),
        }
    }

    /// Takes a block that was recalled.
    pub fn next_recalled(&mut self) -> Option<(u32, Vec<u8>)> {
        let (block, bytes) = self.recalled.pop_front()?;
        self.stored.remove(&block);
        Some((block, bytes))
    }

    /// Returns the number of symbols that `block` still needs; `None` if no symbol of the block has arrived.
    pub fn needed(&self, block: u32) -> Option<u16> {
        let entry = self.blocks.get(&block)?;
        Some((entry.symbols + entry.beyond).saturating_sub(entry.ids.len()).max(1) as u16)
    }

    /// Removes the blocks below `oldest`.
    pub fn drop_before(&mut self, oldest: u32) {
        let keys = [&self.blocks, &self.full, &self.reading].into_iter().flat_map(BTreeMap::keys);
        let blocks: Vec<u32> = keys.copied().filter(|block| *block < oldest).collect();
        blocks.into_iter().for_each(|block| self.forget(block));
        let stored = self.stored.split_off(&oldest);
        for (block, stored) in std::mem::replace(&mut self.stored, stored) {
            match stored {
                BlockPlace::InMemory(bytes) => self.held -= bytes.capacity(),
                BlockPlace::Written(_) => self.operations.push_back(Operation::Free(block)),
                BlockPlace::Recalled => {}
            }
        }
        self.recalled.retain(|(block, _)| *block >= oldest);
    }

    /// Removes all blocks.
    pub fn forget_all(&mut self) {
        self.drop_before(u32::MAX);
        for (block, _) in std::mem::take(&mut self.ready) {
            self.take_spares(block);
        }
    }

    /// Removes the symbols of this block, unless it was decoded.
    pub fn forget(&mut self, block: u32) {
        let entry = self.reading.remove(&block).inspect(|_| _ = self.take_spares(block));
        let entry = entry.or_else(|| self.blocks.remove(&block)).or_else(|| self.full.remove(&block));
        if let Some(entry) = entry {
            self.held -= entry.staged.capacity();
            self.free_unless_empty(block, entry.written(self.symbol_size));
        }
    }

    fn make_ready(&mut self, block: u32, entry: Block, written: Vec<u8>) {
        self.held -= entry.staged.capacity();
        self.ready.push_back((block, Symbols { block: entry, written, symbol_size: self.symbol_size }));
    }

    /// Plans writes of symbols to the file until the rest in memory is within the limit.
    fn relieve(&mut self) {
        while self.has_room && self.held - self.writing > self.limit {
            let Some(block) = self.next_to_spill() else { break };
            self.spill(block);
        }
    }

    /// Returns the next block that has symbols in memory: incomplete blocks in round-robin order, then the complete block that
    /// will be decoded last.
    fn next_to_spill(&mut self) -> Option<u32> {
        let has = |(block, entry): (&u32, &Block)| (!entry.staged.is_empty()).then_some(*block);
        let incomplete = self
            .blocks
            .range(self.turn..)
            .find_map(has)
            .or_else(|| self.blocks.range(..self.turn).find_map(has));
        if let Some(block) = incomplete {
            self.turn = block.wrapping_add(1);
        }
        incomplete.or_else(|| self.full.iter().rev().find_map(has))
    }

    /// Plans a write that appends the in-memory symbols of a block to the block's slot.
    fn spill(&mut self, block: u32) {
        let Some(entry) = self.blocks.get_mut(&block).or_else(|| self.full.get_mut(&block)) else { return };
        let at = entry.written(self.symbol_size) * self.symbol_size;
        let staged = std::mem::take(&mut entry.staged);
        self.write(block, at as u64, staged);
    }

    fn write(&mut self, block: u32, at: u64, bytes: Vec<u8>) {
        self.writing += bytes.capacity();
        self.spilled += bytes.len() as u64;
        self.operations.push_back(Operation::Write { block, at, bytes });
    }

    /// Plans to free a block's slot, unless `written` (number of symbols in the slot) is zero.
    fn free_unless_empty(&mut self, block: u32, written: usize) {
        if written > 0 {
            self.operations.push_back(Operation::Free(block));
        }
    }
}

impl Symbols {
    /// Returns the number of source symbols of the block.
    pub fn symbols(&self) -> u16 {
        self.block.symbols as u16
    }

    /// Returns whether all symbols are source symbols.
    fn is_source(&self) -> bool {
        self.block.ids.iter().all(|&id| (id as usize) < self.block.symbols)
    }

    /// Decodes the block and returns its bytes; `None` if these symbols do not suffice.
    pub fn decode(&self) -> Option<Vec<u8>> {
        let size = self.symbol_size;
        let symbols = self.written.chunks_exact(size).chain(self.block.staged.chunks_exact(size));
        let shape = Shape::new(self.block.symbols as u16, size as u16).ok()?;
        decode(shape, self.block.ids.iter().copied().zip(symbols))
    }
}

impl Block {
    fn new(symbols: usize) -> Block {
        Block { symbols, ids: Vec::with_capacity(symbols + 1), staged: Vec::new(), beyond: 0 }
    }

    /// Stores a symbol in memory that grows by `step` symbols. Returns the growth of the allocated memory in bytes.
    fn stage(&mut self, payload: &[u8], step: usize) -> usize {
        let before = self.staged.capacity();
        if before - self.staged.len() < payload.len() {
            self.staged.reserve_exact(step * payload.len());
        }
        self.staged.extend_from_slice(payload);
        self.staged.capacity() - before
    }

    /// Returns the number of symbols that are in the slot or being written to it.
    fn written(&self, symbol_size: usize) -> usize {
        self.ids.len() - self.staged.len() / symbol_size
    }
}

#[cfg(test)]
mod tests;
