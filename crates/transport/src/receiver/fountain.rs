//! Incomplete blocks at a receiver: one after the other, or those of a fountain with a temporary file for their symbols.

use super::batches::Batches;
use crate::object::gather::assembly::Assembly;
use crate::object::gather::spill::{Gathering, Operation, Performed, Slots, SpillFile};
use crate::object::{Geometry, ObjectError};
use crate::worker::Worker;
use faircast_wire::Announce;

/// Blocks that fill up at the same time.
pub(super) struct Fountain {
    /// The record of the blocks. A [`Fountain::settle`] is due after changes.
    pub(super) gathering: Gathering,
    slots: Batches<Slots, Operation, Performed>,
}

impl Fountain {
    /// About `memory` bytes stay in memory; others go to a file, once there is one.
    pub(super) fn new(geometry: &Geometry, memory: usize, worker: &Worker) -> Fountain {
        Fountain {
            gathering: Gathering::new(geometry.symbol_size.into(), geometry.symbols_per_block, memory),
            slots: Batches::new(None, worker.clone(), Slots::perform),
        }
    }

    /// The file is made.
    pub(super) fn give_room(&mut self, room: SpillFile) {
        self.slots.give(self.gathering.give_room(room));
    }

    /// Settle the operations that have ended, and begin those that are planned.
    ///
    /// # Errors
    /// When the file cannot be written or read.
    pub(super) fn settle(&mut self) -> Result<(), ObjectError> {
        loop {
            self.slots.extend(self.gathering.take_operations());
            let Some(performed) = self.slots.next() else { return Ok(()) };
            self.gathering.settle(performed?);
        }
    }

    /// Whether operations are under way.
    pub(super) fn is_busy(&self) -> bool {
        !self.slots.is_idle()
    }
}

/// The way in which missing symbols come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// It is asked for.
    OnRequest,
    /// By itself: the source sends ever new symbols of all blocks (layers, and sessions without feedback).
    Fountain,
}

impl Repair {
    /// How it comes in this session.
    pub(super) fn of(announce: &Announce, is_layered: bool) -> Repair {
        if is_layered || announce.is_one_way() { Repair::Fountain } else { Repair::OnRequest }
    }

    /// Whether incomplete blocks may need more than this memory: all of them, and their last symbols beside them.
    pub(super) fn spills(self, geometry: &Geometry, memory: usize) -> bool {
        self == Repair::Fountain && geometry.stream_len.is_none_or(|len| len + len / 16 > memory as u64)
    }
}

/// Blocks that are not complete.
#[expect(clippy::large_enum_variant, reason = "there is one per session")]
pub(super) enum Incomplete {
    /// One comes after the other.
    InTurn(Assembly),
    /// All fill up at the same time.
    Together(Box<Fountain>),
}

impl Incomplete {
    /// No symbols yet.
    pub(super) fn new(repair: Repair, geometry: &Geometry, memory: usize, worker: &Worker) -> Incomplete {
        match repair {
            Repair::OnRequest => Incomplete::InTurn(Assembly::new(geometry.symbol_size.into(), memory)),
            Repair::Fountain => Incomplete::Together(Box::new(Fountain::new(geometry, memory, worker))),
        }
    }

    /// Whether the block is complete and has no place yet.
    pub(super) fn is_stored(&self, block: u32) -> bool {
        matches!(self, Incomplete::Together(blocks) if blocks.gathering.is_stored(block))
    }

    /// Symbols that `block` still requests; `None` when none of it has arrived.
    pub(super) fn needed(&self, block: u32) -> Option<u16> {
        match self {
            Incomplete::InTurn(blocks) => blocks.needed(block),
            Incomplete::Together(blocks) => blocks.gathering.needed(block),
        }
    }
}
