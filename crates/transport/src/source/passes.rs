//! Symbols of the blocks that are being sent in a session without feedback. Each block is read and encoded once per pass, and
//! its symbols are dropped as soon as they are sent.

use super::block_source::BlockSource;
use crate::object::ObjectError;
use faircast_core::delivery::repair_scheduler::Pick;
use faircast_fec::{BlockEncoder, RepairSource, Shape};
use std::collections::{BTreeMap, VecDeque};

/// Number of symbols per buffer. A buffer is reused after all its symbols are sent.
const STEP: usize = 16;

/// Blocks with symbols to send.
pub(super) struct Passes {
    symbol_size: usize,
    blocks: BTreeMap<u32, Pass>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    /// Memory for the block that is read next.
    scratch: Vec<u8>,
    /// The symbol taken last.
    taken: Vec<u8>,
}

/// The symbols of a block that have not been sent.
struct Pass {
    /// Number of source symbols.
    symbols: u16,
    ids: VecDeque<u32>,
    /// The symbols in the order of `ids`, [`STEP`] per buffer.
    buffers: VecDeque<Vec<u8>>,
    /// Number of symbols of the first buffer that were taken.
    taken: usize,
}

impl Passes {
    pub(super) fn new(symbol_size: u16) -> Passes {
        let symbol_size = usize::from(symbol_size);
        Passes {
            symbol_size,
            blocks: BTreeMap::new(),
            spare: Vec::new(),
            scratch: Vec::new(),
            taken: vec![0; symbol_size],
        }
    }

    /// Whether this symbol is the next one of its block.
    pub(super) fn has(&self, pick: Pick) -> bool {
        self.blocks.get(&pick.block).is_some_and(|pass| pass.ids.front() == Some(&pick.symbol))
    }

    /// Whether symbols of this block are in memory.
    pub(super) fn has_block(&self, block: u32) -> bool {
        self.blocks.contains_key(&block)
    }

    /// Reads a block, and makes its symbols `ids`, which replace earlier symbols.
    ///
    /// # Errors
    /// If the block cannot be read.
    pub(super) fn load(
        &mut self,
        block: u32,
        ids: Vec<u32>,
        source: &mut BlockSource,
    ) -> Result<(), ObjectError> {
        self.forget(block);
        let mut bytes = std::mem::take(&mut self.scratch);
        let symbols = source.read(block, &mut bytes)?;
        let shape =
            Shape::new(symbols, self.symbol_size as u16).expect("blocks are sealed by their geometry");
        let mut encoder = BlockEncoder::new(shape, bytes).expect("a sealed block has K times T bytes");
        let mut buffers = VecDeque::with_capacity(ids.len().div_ceil(STEP));
        for ids in ids.chunks(STEP) {
            let mut buffer = self.spare.pop().unwrap_or_default();
            buffer.resize(STEP * self.symbol_size, 0);
            for (id, symbol) in ids.iter().zip(buffer.chunks_exact_mut(self.symbol_size)) {
                match encoder.source(*id).filter(|_| *id < u32::from(symbols)) {
                    Some(source) => symbol.copy_from_slice(source),
                    None => encoder.repair(*id, symbol).expect("the rounds have repair IDs in range"),
                }
            }
            buffers.push_back(buffer);
        }
        self.scratch = encoder.into_block();
        self.blocks.insert(block, Pass { symbols, ids: ids.into(), buffers, taken: 0 });
        Ok(())
    }

    /// Takes a symbol for which [`Passes::has`] is true. Returns the number of source symbols of its block, and the symbol.
    pub(super) fn take(&mut self, pick: Pick) -> (u16, &[u8]) {
        let pass = self.blocks.get_mut(&pick.block).expect("the block was loaded");
        pass.ids.pop_front();
        let symbol = &pass.buffers[0][pass.taken * self.symbol_size..][..self.symbol_size];
        self.taken.copy_from_slice(symbol);
        pass.taken += 1;
        let symbols = pass.symbols;
        if pass.ids.is_empty() {
            self.forget(pick.block);
        } else if pass.taken == STEP {
            pass.taken = 0;
            self.spare.extend(pass.buffers.pop_front());
        }
        (symbols, &self.taken)
    }

    /// Removes the symbols of a block.
    pub(super) fn forget(&mut self, block: u32) {
        if let Some(pass) = self.blocks.remove(&block) {
            self.spare.extend(pass.buffers);
        }
    }
}
