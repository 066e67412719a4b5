//! Incomplete blocks at a receiver. Without a fountain, blocks are filled one after the other. In a fountain, all blocks are
//! filled at the same time, and a temporary file may hold their symbols.

use super::batches::Batches;
use crate::object::gather::assembly::Assembly;
use crate::object::gather::spill::{Gathering, Operation, Performed, Slots, SpillFile};
use crate::object::{Geometry, ObjectError};
use crate::worker::Worker;
use faircast_wire::Announce;

/// Blocks that are filled at the same time.
pub(super) struct Fountain {
    /// The record of the blocks. Call [`Fountain::settle`] after changes.
    pub(super) gathering: Gathering,
    slots: Batches<Slots, Operation, Performed>,
}

impl Fountain {
    /// Creates a fountain that holds about `memory` bytes in memory. Once the temporary file exists, further bytes are written to
    /// it.
    pub(super) fn new(geometry: &Geometry, memory: usize, worker: &Worker) -> Fountain {
        Fountain {
            gathering: Gathering::new(geometry.symbol_size.into(), geometry.symbols_per_block, memory),
            slots: Batches::new(None, worker.clone(), Slots::perform),
        }
    }

    /// Sets the temporary file.
    pub(super) fn give_room(&mut self, room: SpillFile) {
        self.slots.give(self.gathering.give_room(room));
    }

    /// Closes the temporary file after the end of the session.
    pub(super) fn close(&mut self) {
        self.slots.close();
    }

    /// Processes the operations that have ended, and begins the planned operations.
    ///
    /// # Errors
    /// If the file cannot be written or read.
    pub(super) fn settle(&mut self) -> Result<(), ObjectError> {
        loop {
            self.slots.extend(self.gathering.take_operations());
            let Some(performed) = self.slots.next() else { return Ok(()) };
            self.gathering.settle(performed?);
        }
    }

    /// Whether operations are running.
    pub(super) fn is_busy(&self) -> bool {
        !self.slots.is_idle()
    }

    /// Whether operations are running or blocks wait to be decoded.
    pub(super) fn has_work(&self) -> bool {
        self.is_busy() || self.gathering.has_full()
    }
}

/// The delivery of missing symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// Missing symbols are requested.
    OnRequest,
    /// Missing symbols are not requested: the source sends new symbols of all blocks continuously. Used by layers and by sessions
    /// without feedback.
    Fountain,
}

impl Repair {
    /// Returns the kind of repair in this session.
    pub(super) fn of(announce: &Announce, is_layered: bool) -> Repair {
        if is_layered || announce.is_one_way() { Repair::Fountain } else { Repair::OnRequest }
    }

    /// Whether the incomplete blocks, with some room for additional symbols, may exceed this memory.
    pub(super) fn spills(self, geometry: &Geometry, memory: usize) -> bool {
        self == Repair::Fountain && geometry.stream_len.is_none_or(|len| len + len / 16 > memory as u64)
    }
}

/// The blocks that are not complete.
#[expect(clippy::large_enum_variant, reason = "there is one per session")]
pub(super) enum Incomplete {
    /// Blocks that are filled one after the other.
    InTurn(Assembly),
    /// Blocks that are all filled at the same time.
    Together(Box<Fountain>),
}

impl Incomplete {
    /// Creates an empty set of blocks.
    pub(super) fn new(repair: Repair, geometry: &Geometry, memory: usize, worker: &Worker) -> Incomplete {
        match repair {
            Repair::OnRequest => Incomplete::InTurn(Assembly::new(geometry.symbol_size.into(), memory)),
            Repair::Fountain => Incomplete::Together(Box::new(Fountain::new(geometry, memory, worker))),
        }
    }

    /// Removes the symbols of this block.
    pub(super) fn forget(&mut self, block: u32) {
        match self {
            Incomplete::InTurn(blocks) => blocks.forget(block),
            Incomplete::Together(blocks) => blocks.gathering.forget(block),
        }
    }

    /// Removes the blocks below `oldest`.
    pub(super) fn drop_before(&mut self, oldest: u32) {
        match self {
            Incomplete::InTurn(blocks) => blocks.drop_before(oldest),
            Incomplete::Together(blocks) => blocks.gathering.drop_before(oldest),
        }
    }

    /// Returns the number of symbols that `block` still needs; `None` if no symbol of it has arrived.
    pub(super) fn needed(&self, block: u32) -> Option<u16> {
        match self {
            Incomplete::InTurn(blocks) => blocks.needed(block),
            Incomplete::Together(blocks) => blocks.gathering.needed(block),
        }
    }
}
