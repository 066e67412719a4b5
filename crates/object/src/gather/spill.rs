//! Assembly of blocks from the symbols of a fountain: all blocks of the content fill up at the same time.
//!
//! Until shortly before the end every block is incomplete, so what does not fit into memory goes to a file:
//! one slot a block, symbols in the order of their arrival. A block's symbols are written together, as
//! many as have gathered in memory since it was its turn, and the file is sparse.
//!
//! [`Gathering`] is the record. It touches no file: it plans operations, which [`Slots`] perform in their order, and takes their results.

use crate::ObjectError;
use crate::gather::assembly::Added;
use crate::host::disk::Disk;
use faircast_fec::{Shape, decode};
use rustix::fs::FallocateFlags;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Symbols beyond a block's own that a slot has room for. A block that does not decode with all of them is begun again; with
/// RaptorQ each one more makes that a hundred times less likely.
const BEYOND: usize = 8;

/// Growth of a block's memory, symbols.
const STEP: usize = 16;

/// Complete blocks that are read back at a time.
const RECALLED: usize = 4;

/// Where symbols go that memory has no room for.
#[derive(Debug)]
pub struct SpillFile {
    /// The disk that it lies on.
    pub disk: Disk,
    /// A file of its own, best without a name.
    pub file: File,
    /// Where it is, for errors.
    pub path: PathBuf,
}

/// The file with a slot for each block.
#[derive(Debug)]
pub struct Slots {
    room: SpillFile,
    /// Bytes of a slot.
    slot: u64,
}

/// One operation on the file. Operations are performed one after the other.
#[derive(Debug)]
pub enum Operation {
    /// Write these bytes into the slot of a block, from this byte of the slot on.
    Write {
        /// The block.
        block: u32,
        /// The first byte in its slot.
        at: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Read this number of bytes from the slot of a block.
    Read {
        /// The block.
        block: u32,
        /// The number of bytes.
        len: usize,
    },
    /// Give the space of a slot back.
    Free(u32),
}

/// The result of an [`Operation`].
#[derive(Debug)]
pub enum Performed {
    /// This memory is not needed any more.
    Written(usize),
    /// The bytes of a slot.
    Read(u32, Vec<u8>),
    /// The space is free, as far as the filesystem can do that.
    Freed,
}

/// Blocks that are being received.
#[derive(Debug)]
pub struct Gathering {
    symbol_size: usize,
    /// Bytes of a slot.
    slot: u64,
    /// Bytes in memory at most, when there is a file.
    limit: usize,
    /// Bytes in memory, those that are being written with them.
    held: usize,
    /// Bytes that are being written.
    writing: usize,
    blocks: BTreeMap<u32, Block>,
    /// Blocks with enough symbols, some of which are read from the file.
    reading: BTreeMap<u32, Block>,
    /// Blocks with enough symbols in memory.
    ready: VecDeque<(u32, Symbols)>,
    /// Complete blocks that cannot be placed yet.
    stored: BTreeMap<u32, BlockPlace>,
    /// The blocks among them that can be placed.
    recalled: VecDeque<(u32, Vec<u8>)>,
    has_room: bool,
    operations: VecDeque<Operation>,
    /// Turn for writing to the file.
    turn: u32,
    /// Symbols that were of no use: duplicates.
    pub duplicates: u64,
    /// Blocks that needed decoding.
    pub decoded: u64,
    /// Bytes that went to the file.
    pub spilled: u64,
}

/// Where a complete block is.
#[derive(Debug)]
enum BlockPlace {
    InMemory(Vec<u8>),
    /// In its slot: number of bytes.
    Written(usize),
    /// On its way to its place.
    Recalled,
}

#[derive(Debug)]
struct Block {
    symbols: usize,
    /// IDs of all symbols, in the order of arrival: those in the slot, then those in memory.
    ids: Vec<u32>,
    staged: Vec<u8>,
    /// Symbols needed beyond K: the number of failed decoding attempts.
    beyond: usize,
}

/// Symbols of one block that are enough to decode it.
#[derive(Debug)]
pub struct Symbols {
    block: Block,
    /// Those from the file.
    written: Vec<u8>,
    symbol_size: usize,
}

impl Slots {
    /// Perform an operation.
    ///
    /// # Errors
    /// When the file cannot be written or read.
    pub fn perform(&mut self, operation: Operation) -> Result<Performed, ObjectError> {
        let room = &self.room;
        match operation {
            Operation::Write { block, at, bytes } => {
                let written = room.disk.write_all_at(&room.file, &bytes, u64::from(block) * self.slot + at);
                written.map_err(|error| {
                    ObjectError::writing(&room.path, "keep symbols in it", error, bytes.len() as u64)
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
                // A filesystem that cannot give space back keeps it until the end.
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let _ = rustix::fs::fallocate(&room.file, hole, u64::from(block) * self.slot, self.slot);
                Ok(Performed::Freed)
            }
        }
    }
}

impl Gathering {
    /// Blocks of at most `symbols_per_block` symbols of `symbol_size` bytes; about `limit` bytes of them stay in memory once there is a
    /// file ([`Gathering::give_room`]), and everything without one.
    pub fn new(symbol_size: usize, symbols_per_block: u16, limit: usize) -> Gathering {
        Gathering {
            symbol_size,
            slot: (usize::from(symbols_per_block) + BEYOND) as u64 * symbol_size as u64,
            limit,
            held: 0,
            writing: 0,
            blocks: BTreeMap::new(),
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

    /// From now on symbols that memory has no room for go there.
    pub fn give_room(&mut self, room: SpillFile) -> Slots {
        self.has_room = true;
        self.relieve();
        Slots { room, slot: self.slot }
    }

    /// Bytes in memory beyond the limit: they are being written, or wait for a file.
    pub fn excess(&self) -> u64 {
        if self.has_room { self.writing as u64 } else { self.held.saturating_sub(self.limit) as u64 }
    }

    /// A symbol of a block of `symbols` source symbols has arrived. A block with enough of them is taken with
    /// [`Gathering::next_ready`].
    pub fn add(&mut self, block: u32, symbols: u16, symbol: u32, payload: &[u8]) -> Added {
        let symbols = usize::from(symbols);
        let fits = symbols > 0 && ((symbols + BEYOND) * self.symbol_size) as u64 <= self.slot;
        let is_whole = self.stored.contains_key(&block) || self.reading.contains_key(&block);
        if payload.len() != self.symbol_size || !fits || is_whole {
            return Added::Useless;
        }
        let entry = self.blocks.entry(block).or_insert_with(|| Block::new(symbols));
        if entry.symbols != symbols {
            return Added::Useless; // contradicts what came before
        }
        if entry.ids.contains(&symbol) {
            self.duplicates += 1;
            return Added::Useless;
        }
        entry.ids.push(symbol);
        self.held += entry.stage(payload);
        if entry.ids.len() >= symbols + entry.beyond {
            self.assemble(block);
            return Added::Complete;
        }
        self.relieve();
        Added::Kept
    }

    /// The operations that are planned, in their order.
    pub fn take_operations(&mut self) -> VecDeque<Operation> {
        std::mem::take(&mut self.operations)
    }

    /// Take the result of an operation.
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

    /// A block with enough symbols. It is decoded elsewhere: [`Gathering::on_decoded`] or [`Gathering::put_back`] follows.
    pub fn next_ready(&mut self) -> Option<(u32, Symbols)> {
        self.ready.pop_front()
    }

    /// The block has been decoded.
    pub fn on_decoded(&mut self, block: u32, symbols: &Symbols) {
        self.decoded += u64::from(!symbols.is_source());
        self.free_unless_empty(block, symbols.written.len());
    }

    /// These symbols do not decode: the block needs more.
    pub fn put_back(&mut self, block: u32, symbols: Symbols) {
        let Symbols { block: mut entry, written, .. } = symbols;
        entry.beyond += 1;
        if entry.beyond > BEYOND {
            return self.free_unless_empty(block, written.len());
        }
        self.held += entry.staged.capacity();
        self.blocks.insert(block, entry);
    }

    /// Keep a complete block that cannot be placed yet.
    pub fn keep(&mut self, block: u32, bytes: Vec<u8>) {
        self.held += bytes.capacity();
        if self.held - self.writing <= self.limit || !self.has_room {
            self.stored.insert(block, BlockPlace::InMemory(bytes));
            return;
        }
        self.stored.insert(block, BlockPlace::Written(bytes.len()));
        self.write(block, 0, bytes);
    }

    /// Returns the first of the stored blocks, if another one may be recalled.
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

    /// Whether this block is stored.
    pub fn is_stored(&self, block: u32) -> bool {
        self.stored.contains_key(&block)
    }

    /// A block that is kept can be placed: [`Gathering::next_recalled`] has it, soon or at once.
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

    /// A block that was recalled.
    pub fn next_recalled(&mut self) -> Option<(u32, Vec<u8>)> {
        let (block, bytes) = self.recalled.pop_front()?;
        self.stored.remove(&block);
        Some((block, bytes))
    }

    /// Symbols that `block` still needs; `None` when none of it has arrived.
    pub fn needed(&self, block: u32) -> Option<u16> {
        let entry = self.blocks.get(&block)?;
        Some((entry.symbols + entry.beyond).saturating_sub(entry.ids.len()).max(1) as u16)
    }

    /// Forget the blocks below `oldest`.
    pub fn drop_before(&mut self, oldest: u32) {
        let below = |block: &u32| *block < oldest;
        let mut blocks: Vec<u32> = self.blocks.keys().copied().take_while(below).collect();
        blocks.extend(self.reading.keys().copied().take_while(below));
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

    /// Forget all blocks.
    pub fn forget_all(&mut self) {
        self.drop_before(u32::MAX);
        self.ready.clear();
    }

    /// Forget the symbols of this block, unless it is complete.
    pub fn forget(&mut self, block: u32) {
        if let Some(entry) = self.blocks.remove(&block).or_else(|| self.reading.remove(&block)) {
            self.held -= entry.staged.capacity();
            self.free_unless_empty(block, entry.written(self.symbol_size));
        }
    }

    /// Put the symbols of a block together.
    fn assemble(&mut self, block: u32) {
        let Some(entry) = self.blocks.remove(&block) else { return };
        match entry.written(self.symbol_size) * self.symbol_size {
            0 => self.make_ready(block, entry, Vec::new()),
            len => {
                self.reading.insert(block, entry);
                self.operations.push_back(Operation::Read { block, len });
            }
        }
    }

    fn make_ready(&mut self, block: u32, entry: Block, written: Vec<u8>) {
        self.held -= entry.staged.capacity();
        self.ready.push_back((block, Symbols { block: entry, written, symbol_size: self.symbol_size }));
    }

    /// Write symbols until memory has room again.
    fn relieve(&mut self) {
        while self.has_room && self.held - self.writing > self.limit {
            let Some(block) = self.next_to_spill() else { break };
            self.spill(block);
        }
    }

    /// The next block in turn that has something in memory.
    fn next_to_spill(&mut self) -> Option<u32> {
        let has = |(block, entry): (&u32, &Block)| (!entry.staged.is_empty()).then_some(*block);
        let found = self
            .blocks
            .range(self.turn..)
            .find_map(has)
            .or_else(|| self.blocks.range(..self.turn).find_map(has))?;
        self.turn = found.wrapping_add(1);
        Some(found)
    }

    /// Writes a block's symbols in memory behind those in its slot.
    fn spill(&mut self, block: u32) {
        let Some(entry) = self.blocks.get_mut(&block) else { return };
        let at = entry.written(self.symbol_size) * self.symbol_size;
        let staged = std::mem::take(&mut entry.staged);
        self.write(block, at as u64, staged);
    }

    fn write(&mut self, block: u32, at: u64, bytes: Vec<u8>) {
        self.writing += bytes.capacity();
        self.spilled += bytes.len() as u64;
        self.operations.push_back(Operation::Write { block, at, bytes });
    }

    /// Give the slot's space back, if it has this much.
    fn free_unless_empty(&mut self, block: u32, written: usize) {
        if written > 0 {
            self.operations.push_back(Operation::Free(block));
        }
    }
}

impl Symbols {
    /// The number of source symbols of the block.
    pub fn symbols(&self) -> u16 {
        self.block.symbols as u16
    }

    /// Whether all of them are source symbols.
    fn is_source(&self) -> bool {
        self.block.ids.iter().all(|&id| (id as usize) < self.block.symbols)
    }

    /// The bytes of the block; `None` when these symbols do not decode.
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

    /// Keep a symbol in memory; by how much memory has grown.
    fn stage(&mut self, payload: &[u8]) -> usize {
        let before = self.staged.capacity();
        if before - self.staged.len() < payload.len() {
            self.staged.reserve_exact(STEP * payload.len());
        }
        self.staged.extend_from_slice(payload);
        self.staged.capacity() - before
    }

    /// Symbols in the slot, or on their way there.
    fn written(&self, symbol_size: usize) -> usize {
        self.ids.len() - self.staged.len() / symbol_size
    }
}

#[cfg(test)]
mod tests;
