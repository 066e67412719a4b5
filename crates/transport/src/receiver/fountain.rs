//! Blocks of a fountain at a receiver, and the temporary file for their symbols.

use super::batches::Batches;
use crate::object::gather::spill::{Gathering, Operation, Performed, Room, Slots};
use crate::object::{Geometry, ObjectError};
use crate::worker::Worker;

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
    pub(super) fn give_room(&mut self, room: Room) {
        self.slots.give(self.gathering.give_room(room));
    }

    /// Settle the operations that have ended, and begin those that are planned.
    ///
    /// # Errors
    /// When the file cannot be written or read.
    pub(super) fn settle(&mut self) -> Result<(), ObjectError> {
        loop {
            self.slots.extend(self.gathering.take_operations());
            let Some(ended) = self.slots.next() else { return Ok(()) };
            ended.performed.into_iter().for_each(|one| self.gathering.settle(one));
            if let Some(error) = ended.error {
                return Err(error);
            }
        }
    }

    /// Whether operations are under way.
    pub(super) fn is_busy(&self) -> bool {
        !self.slots.is_idle()
    }
}
