//! Cache of blocks to send: a block is read from its file once for the first pass, and stored for some time for repairs.

use super::block_source::BlockSource;
use crate::object::ObjectError;
use faircast_core::delivery::repair_scheduler::Pick;
use faircast_fec::{BlockEncoder, RepairSource, Shape};

/// Size of the cache for blocks that may be requested again, bytes.
const CACHE: usize = 16 << 20;

/// Size of the cache of a fountain, bytes. It is larger because a fountain sends every block repeatedly. The encoders of the
/// blocks take another two times this size.
const FOUNTAIN_CACHE: usize = 32 << 20;

/// Recently sent blocks with their encoders.
pub(super) struct Blocks {
    slots: Vec<Slot>,
    most: usize,
    clock: u64,
    symbol_size: u16,
    scratch: Vec<u8>,
}

struct Slot {
    block: u32,
    used: u64,
    encoder: BlockEncoder,
}

impl Blocks {
    /// Creates the cache for a session with `layers` layers, which send different blocks at the same time.
    pub(super) fn new(symbol_size: u16, symbols_per_block: u16, layers: u8) -> Blocks {
        let block_len = usize::from(symbol_size) * usize::from(symbols_per_block);
        let cache = if layers > 1 { FOUNTAIN_CACHE } else { CACHE };
        Blocks::with_room(symbol_size, (cache / block_len.max(1)).clamp(1 + usize::from(layers), 1024))
    }

    /// Creates the cache for `most` blocks.
    pub(super) fn with_room(symbol_size: u16, most: usize) -> Blocks {
        let scratch = vec![0; usize::from(symbol_size)];
        Blocks { slots: Vec::with_capacity(most), most, clock: 0, symbol_size, scratch }
    }

    /// Returns the number of source symbols of a block, and the symbol that `pick` selects.
    pub(super) fn symbol(
        &mut self,
        pick: Pick,
        block_source: &mut BlockSource,
    ) -> Result<(u16, &[u8]), ObjectError> {
        let at = self.slot(pick.block, block_source)?;
        let encoder = &mut self.slots[at].encoder;
        let symbols = encoder.shape().symbols();
        if pick.symbol < u32::from(symbols) {
            let symbol = encoder.source(pick.symbol).expect("a source symbol's id is below K");
            return Ok((symbols, symbol));
        }
        encoder
            .repair(pick.symbol, &mut self.scratch)
            .expect("the repairs picks repair ids in range, scratch is one symbol");
        Ok((symbols, &self.scratch))
    }

    /// Loads a block into the cache.
    pub(super) fn load(&mut self, block: u32, block_source: &mut BlockSource) -> Result<(), ObjectError> {
        self.slot(block, block_source).map(|_| ())
    }

    /// Removes a block whose content changes.
    pub(super) fn forget(&mut self, block: u32) {
        self.slots.retain(|slot| slot.block != block);
    }

    /// Whether the block is cached.
    pub(super) fn has(&self, block: u32) -> bool {
        self.slots.iter().any(|slot| slot.block == block)
    }

    /// Whether the cache has room for this number of blocks.
    pub(super) fn keeps(&self, blocks: u32) -> bool {
        blocks as usize <= self.most
    }

    fn slot(&mut self, block: u32, block_source: &mut BlockSource) -> Result<usize, ObjectError> {
        self.clock += 1;
        if let Some(at) = self.slots.iter().rposition(|slot| slot.block == block) {
            self.slots[at].used = self.clock;
            return Ok(at);
        }
        let mut bytes = Vec::new();
        if self.slots.len() >= self.most
            && let Some(oldest) = (0..self.slots.len()).min_by_key(|&at| self.slots[at].used)
        {
            bytes = self.slots.swap_remove(oldest).encoder.into_block();
        }
        let symbols = block_source.read(block, &mut bytes)?;
        let shape =
            Shape::new(symbols, self.symbol_size).expect("the block_source seals blocks of its geometry");
        let encoder = BlockEncoder::new(shape, bytes).expect("a sealed block has K times T bytes");
        self.slots.push(Slot { block, used: self.clock, encoder });
        Ok(self.slots.len() - 1)
    }
}
