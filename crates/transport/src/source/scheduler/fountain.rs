//! A digital fountain: an endless sequence of new symbols of all blocks on every layer. It serves layered sessions, in which
//! receivers do not request symbols.

use super::{Amounts, BlockStatus, Chosen, EndProof, Looked, Scheduler};
use crate::object::{Affected, Counts, Geometry, Hash, Layout, LeftOut, ObjectError, TransferId};
use crate::source::block_source::{BlockSource, Leisure};
use crate::source::blocks::Blocks;
use faircast_core::delivery::carousel::Carousel;
use faircast_core::packet::{Flags, Layer, Payload};
use faircast_core::time::{Rate, Time};
use faircast_wire::Withdrawn;

/// Target number of visits to blocks per second, on all layers together. Preparing a block takes nearly half a millisecond, so
/// these visits cost about half a processor.
const VISITS: f64 = 1_200.0;

/// Maximum number of symbols sent per visit to a block. With more symbols, receivers would wait for their last blocks: see
/// [`Carousel::set_run`].
const MAX_RUN: f64 = 16.0;

/// Sends all blocks again and again.
pub(in crate::source) struct Fountain {
    source: BlockSource,
    blocks: Blocks,
    carousel: Carousel,
    /// The block that each layer has ordered most recently.
    ahead: Vec<Option<u32>>,
}

impl Fountain {
    pub(crate) fn new(mut source: BlockSource, layers: u8) -> Fountain {
        source.read_on_order();
        let Geometry { symbol_size, symbols_per_block, .. } = source.geometry();
        let blocks = Blocks::new(symbol_size, symbols_per_block, layers);
        Fountain::with_blocks(source, layers, blocks)
    }

    /// Creates a fountain on `layers` layers with the cache `blocks`.
    pub(in crate::source) fn with_blocks(source: BlockSource, layers: u8, blocks: Blocks) -> Fountain {
        let geometry = source.geometry();
        let carousel = Carousel::new(layers, geometry.symbols_per_block, geometry.manifest_blocks());
        Fountain::over(source, blocks, carousel, layers)
    }

    fn over(source: BlockSource, blocks: Blocks, carousel: Carousel, layers: u8) -> Fountain {
        let mut fountain = Fountain { source, blocks, carousel, ahead: vec![None; layers.into()] };
        fountain.follow_source();
        fountain
    }

    /// Prepares the blocks that contain withdrawn files to be sent again without these files.
    fn follow_withdrawals(&mut self) -> Result<(), ObjectError> {
        for affected in self.source.take_affected() {
            self.blocks.forget(affected.block());
            match affected {
                Affected::Void(block) => self.carousel.withdraw(block),
                Affected::Mixed(block) if self.carousel.renew(block) => {}
                Affected::Mixed(index) => return Err(ObjectError::WithdrawnTooOften { index }),
            }
        }
        Ok(())
    }

    fn follow_source(&mut self) {
        while self.carousel.end() < self.source.ready() {
            self.carousel.push(self.source.symbols(self.carousel.end()));
        }
    }
}

impl Scheduler for Fountain {
    fn geometry(&self) -> Geometry {
        self.source.geometry()
    }

    fn transfer(&self) -> TransferId {
        self.source.transfer()
    }

    fn is_live(&self) -> bool {
        self.source.is_live()
    }

    fn entries(&self) -> Counts {
        self.source.entries()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.source.take_warnings()
    }

    fn unsent(&self) -> &[LeftOut] {
        self.source.unsent()
    }

    fn withdrawn(&self) -> &[Withdrawn] {
        self.source.withdrawn()
    }

    fn layout(&self) -> Option<&Layout> {
        self.source.layout()
    }

    fn welcome(&mut self) {
        self.carousel.lead();
    }

    fn look(
        &mut self,
        now: Time,
        leisure: Leisure,
        _: &dyn Fn(Layer) -> Rate,
    ) -> Result<Looked, ObjectError> {
        self.source.poll(now, leisure)?;
        self.follow_source();
        self.follow_withdrawals()?;
        Ok(Looked::Nothing)
    }

    fn has_work(&self) -> bool {
        self.source.has_work()
    }

    fn has(&self, _layer: Layer) -> bool {
        !self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.carousel.end() == 0
    }

    fn next(&mut self, layer: Layer) -> Result<Option<Chosen<'_>>, ObjectError> {
        let pick = loop {
            self.follow_withdrawals()?;
            let Some(pick) = self.carousel.next(layer) else { return Ok(None) };
            self.blocks.load(pick.block, &mut self.source)?;
            // If a file was withdrawn while its block was read, the symbol numbers of the block have changed.
            if !self.source.has_affected() {
                break pick;
            }
        };
        let (symbols, payload) = self.blocks.symbol(pick, &mut self.source)?;
        let place = Payload { block: pick.block, symbol: pick.symbol };
        // A fountain never sends the same symbol again, so no flag is set.
        Ok(Some(Chosen { place, symbols, payload, flags: Flags::default() }))
    }

    /// Orders the block that `layer` sends next.
    fn prepare(&mut self, layer: Layer) {
        let ahead = &mut self.ahead[usize::from(layer.0)];
        let coming = self.carousel.coming(layer);
        if coming == *ahead {
            return;
        }
        *ahead = coming;
        if let Some(block) = coming.filter(|block| !self.blocks.has(*block)) {
            self.source.order(block);
        }
    }

    /// Sets the number of symbols per visit to a block, which grows with the packet rate. If all blocks fit the cache, no block
    /// needs preparation, and the default number applies.
    fn set_rate(&mut self, packets: f64) {
        if !self.blocks.keeps(self.carousel.end()) {
            self.carousel.set_run((packets / VISITS).clamp(2.0, MAX_RUN) as u16);
        }
    }

    fn hash(&self, block: u32) -> Option<Hash> {
        self.source.hash(block)
    }

    fn status(&self) -> BlockStatus {
        BlockStatus {
            oldest: 0,
            complete_to: self.carousel.complete_to(),
            blocks: self.source.blocks(),
            root: self.source.root(),
            withdrawn: self.source.withdrawn().len() as u32,
            end_proof: EndProof::default(),
        }
    }

    fn amounts(&self) -> Amounts {
        let geometry = self.source.geometry();
        let left = self.carousel.symbols_sent_first() * u64::from(geometry.symbol_size);
        Amounts {
            content_bytes: self.source.content_bytes(),
            sent_bytes: left.saturating_sub(u64::from(geometry.manifest_len)),
            content_symbols: self.source.content_symbols(),
            sent_symbols: self.carousel.symbols_sent(),
        }
    }
}

#[cfg(test)]
mod tests {
    use faircast_core::delivery::repair_scheduler::SYMBOL_LIMIT;

    #[test]
    fn symbol_limit_of_a_block_equals_the_erasure_code_limit() {
        assert_eq!(SYMBOL_LIMIT, faircast_fec::MAX_ESI);
    }
}
