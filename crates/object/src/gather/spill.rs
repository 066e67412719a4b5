//! Symbols of a fountain become blocks: all blocks of the content fill up at the same time.
//!
//! Until shortly before the end every block is incomplete, so what does not fit into memory goes to a file:
//! one slot a block, symbols in the order of their arrival. A block's symbols are written together, as
//! many as have gathered in memory since it was its turn, and the file is sparse.

use crate::ObjectError;
use crate::gather::assembly::Added;
use crate::host::disk::Disk;
use faircast_fec::{Shape, decode};
use rustix::fs::FallocateFlags;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Symbols beyond a block's own that a slot has room for. A block that all of them do not decode is begun anew; with
/// RaptorQ each one more makes that a hundred times less likely.
const BEYOND: usize = 8;

/// Memory of a block grows by so many symbols.
const STEP: usize = 16;

/// Where symbols go that memory has no room for.
#[derive(Debug)]
pub struct Room {
    /// The disk that it lies on.
    pub disk: Disk,
    /// A file of its own, best without a name.
    pub file: File,
    /// Where it is, for errors.
    pub path: PathBuf,
}

/// Blocks that are being received.
#[derive(Debug)]
pub struct Gathering {
    symbol_size: usize,
    /// Bytes of a slot.
    slot: u64,
    /// Bytes in memory at most, when there is a file.
    limit: usize,
    held: usize,
    blocks: BTreeMap<u32, Block>,
    /// Complete blocks that cannot be placed yet.
    kept: BTreeMap<u32, Kept>,
    complete: Option<(u32, Vec<u8>)>,
    room: Option<Room>,
    /// Whose turn it is to go to the file.
    turn: u32,
    /// What was read back, used again.
    written: Vec<u8>,
    /// Symbols that were of no use: duplicates.
    pub duplicates: u64,
    /// Blocks that needed decoding.
    pub decoded: u64,
    /// Bytes that went to the file.
    pub spilled: u64,
}

/// Where a complete block is.
#[derive(Debug)]
enum Kept {
    InMemory(Vec<u8>),
    /// In its slot: so many bytes.
    Written(usize),
}

#[derive(Debug)]
struct Block {
    symbols: usize,
    /// Of all symbols, in the order of arrival: those in the slot, then those in memory.
    ids: Vec<u32>,
    staged: Vec<u8>,
    /// Symbols needed beyond K, because decoding has failed so often.
    beyond: usize,
}

impl Gathering {
    /// Blocks of at most `symbols_per_block` symbols of `symbol_size` bytes; about `limit` bytes of them in memory and the
    /// rest in `room`. Without room everything stays in memory.
    pub fn new(symbol_size: usize, symbols_per_block: u16, limit: usize, room: Option<Room>) -> Gathering {
        Gathering {
            symbol_size,
            slot: (usize::from(symbols_per_block) + BEYOND) as u64 * symbol_size as u64,
            limit,
            held: 0,
            blocks: BTreeMap::new(),
            kept: BTreeMap::new(),
            complete: None,
            room,
            turn: 0,
            written: Vec::new(),
            duplicates: 0,
            decoded: 0,
            spilled: 0,
        }
    }

    /// From now on symbols that memory has no room for go there.
    ///
    /// # Errors
    /// As [`Gathering::add`].
    pub fn give_room(&mut self, room: Room) -> Result<(), ObjectError> {
        self.room = Some(room);
        self.relieve()
    }

    /// Bytes in memory beyond the limit.
    pub fn excess(&self) -> u64 {
        self.held.saturating_sub(self.limit) as u64
    }

    /// A symbol of a block of `symbols` source symbols has arrived.
    ///
    /// # Errors
    /// When the file cannot be written or read; nothing that was there is lost.
    pub fn add(
        &mut self,
        block: u32,
        symbols: u16,
        symbol: u32,
        payload: &[u8],
    ) -> Result<Added, ObjectError> {
        let symbols = usize::from(symbols);
        let fits = symbols > 0 && ((symbols + BEYOND) * self.symbol_size) as u64 <= self.slot;
        if payload.len() != self.symbol_size || !fits || self.kept.contains_key(&block) {
            return Ok(Added::Useless);
        }
        let entry = self.blocks.entry(block).or_insert_with(|| Block::new(symbols));
        if entry.symbols != symbols {
            return Ok(Added::Useless); // contradicts what came before
        }
        if entry.ids.contains(&symbol) {
            self.duplicates += 1;
            return Ok(Added::Useless);
        }
        entry.ids.push(symbol);
        self.held += entry.stage(payload);
        if entry.ids.len() >= symbols + entry.beyond {
            return self.assemble(block);
        }
        self.relieve()?;
        Ok(Added::Kept)
    }

    /// Write symbols until memory has room again.
    fn relieve(&mut self) -> Result<(), ObjectError> {
        while self.held > self.limit && self.room.is_some() {
            let Some(block) = self.next_to_spill() else { break };
            self.spill(block)?;
        }
        Ok(())
    }

    /// Take the block that [`Gathering::add`] has just completed: its K x T bytes.
    pub fn take(&mut self) -> Option<(u32, Vec<u8>)> {
        self.complete.take()
    }

    /// Keep a complete block that cannot be placed yet.
    ///
    /// # Errors
    /// When it has to go to the file and cannot be written.
    pub fn keep(&mut self, block: u32, bytes: Vec<u8>) -> Result<(), ObjectError> {
        if self.held + bytes.len() <= self.limit || self.room.is_none() {
            self.held += bytes.len();
            self.kept.insert(block, Kept::InMemory(bytes));
            return Ok(());
        }
        self.write(block, 0, &bytes)?;
        self.kept.insert(block, Kept::Written(bytes.len()));
        Ok(())
    }

    /// The first of the blocks that are kept.
    pub fn first_kept(&self) -> Option<u32> {
        self.kept.first_key_value().map(|(&block, _)| block)
    }

    /// Whether this block is kept.
    pub fn is_kept(&self, block: u32) -> bool {
        self.kept.contains_key(&block)
    }

    /// Take a block that is kept.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub fn take_kept(&mut self, block: u32) -> Result<Option<Vec<u8>>, ObjectError> {
        match self.kept.remove(&block) {
            Some(Kept::InMemory(bytes)) => {
                self.held -= bytes.len();
                Ok(Some(bytes))
            }
            Some(Kept::Written(len)) => {
                let mut bytes = vec![0; len];
                self.read(block, &mut bytes)?;
                self.free(block);
                Ok(Some(bytes))
            }
            None => Ok(None),
        }
    }

    /// Symbols that `block` still needs; `None` when none of it has arrived.
    pub fn needed(&self, block: u32) -> Option<u16> {
        let entry = self.blocks.get(&block)?;
        Some((entry.symbols + entry.beyond).saturating_sub(entry.ids.len()).max(1) as u16)
    }

    /// Forget the blocks below `oldest`.
    pub fn drop_before(&mut self, oldest: u32) {
        let blocks = self.blocks.split_off(&oldest);
        for (block, entry) in std::mem::replace(&mut self.blocks, blocks) {
            self.held -= entry.staged.capacity();
            self.free(block);
        }
        let kept = self.kept.split_off(&oldest);
        for (block, kept) in std::mem::replace(&mut self.kept, kept) {
            match kept {
                Kept::InMemory(bytes) => self.held -= bytes.len(),
                Kept::Written(_) => self.free(block),
            }
        }
    }

    /// Forget all blocks.
    pub fn forget_all(&mut self) {
        self.drop_before(u32::MAX);
    }

    /// Forget the symbols of this block, unless it is complete.
    pub fn forget(&mut self, block: u32) {
        if let Some(entry) = self.blocks.remove(&block) {
            self.held -= entry.staged.capacity();
            self.free(block);
        }
    }

    /// Put the symbols of a block together, if they suffice.
    fn assemble(&mut self, block: u32) -> Result<Added, ObjectError> {
        let Some(mut entry) = self.blocks.remove(&block) else { return Ok(Added::Useless) };
        let size = self.symbol_size;
        let mut written = std::mem::take(&mut self.written);
        written.resize(entry.written(size) * size, 0);
        let read = self.read(block, &mut written);
        if let Err(error) = read {
            self.blocks.insert(block, entry);
            return Err(error);
        }
        let symbols = written.chunks_exact(size).chain(entry.staged.chunks_exact(size));
        let all = entry.ids.iter().copied().zip(symbols);
        let shape = Shape::new(entry.symbols as u16, size as u16).ok();
        let bytes = shape.and_then(|shape| decode(shape, all));
        let is_source = entry.ids.iter().all(|&id| (id as usize) < entry.symbols);
        self.written = written;
        let Some(bytes) = bytes else {
            entry.beyond += 1;
            if entry.beyond <= BEYOND {
                self.blocks.insert(block, entry);
            } else {
                self.held -= entry.staged.capacity();
                self.free(block);
            }
            return Ok(Added::Kept);
        };
        self.decoded += u64::from(!is_source);
        self.held -= entry.staged.capacity();
        if entry.written(size) > 0 {
            self.free(block);
        }
        self.complete = Some((block, bytes));
        Ok(Added::Complete)
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

    /// Write what is in memory of a block behind what is in its slot.
    fn spill(&mut self, block: u32) -> Result<(), ObjectError> {
        let Some(entry) = self.blocks.get_mut(&block) else { return Ok(()) };
        let at = entry.written(self.symbol_size) * self.symbol_size;
        let staged = std::mem::take(&mut entry.staged);
        if let Err(error) = self.write(block, at as u64, &staged) {
            if let Some(entry) = self.blocks.get_mut(&block) {
                entry.staged = staged;
            }
            return Err(error);
        }
        self.held -= staged.capacity();
        Ok(())
    }

    fn write(&mut self, block: u32, at: u64, bytes: &[u8]) -> Result<(), ObjectError> {
        let Some(room) = &self.room else { return Ok(()) };
        let written = room.disk.write_all_at(&room.file, bytes, u64::from(block) * self.slot + at);
        written.map_err(|error| {
            ObjectError::writing(&room.path, "keep symbols in it", error, bytes.len() as u64)
        })?;
        self.spilled += bytes.len() as u64;
        Ok(())
    }

    fn read(&self, block: u32, into: &mut [u8]) -> Result<(), ObjectError> {
        let Some(room) = self.room.as_ref().filter(|_| !into.is_empty()) else { return Ok(()) };
        let read = room.file.read_exact_at(into, u64::from(block) * self.slot);
        read.map_err(|error| ObjectError::io(&room.path, "read back symbols from it", error))
    }

    /// Give the slot's space back; a filesystem that cannot keeps it until the end.
    fn free(&self, block: u32) {
        if let Some(room) = &self.room {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = rustix::fs::fallocate(&room.file, hole, u64::from(block) * self.slot, self.slot);
        }
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

    /// Symbols in the slot.
    fn written(&self, symbol_size: usize) -> usize {
        self.ids.len() - self.staged.len() / symbol_size
    }
}

#[cfg(test)]
mod tests;
