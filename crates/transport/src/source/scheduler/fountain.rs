//! A digital fountain: new symbols of all blocks on every layer, without end. It serves sessions in layers and sessions without feedback,
//! where nothing is requested.

use super::{Amounts, BlockStatus, Chosen, EndProof, Looked, Scheduler};
use crate::config::Repeat;
use crate::object::{Affected, Counts, Geometry, Hash, LeftOut, ObjectError, TransferId};
use crate::source::block_source::{BlockSource, Leisure};
use crate::source::blocks::Blocks;
use faircast_core::delivery::carousel::Carousel;
use faircast_core::packet::{Flags, Layer, Payload};
use faircast_core::time::{Rate, Time};
use faircast_wire::Withdrawn;

/// At this many packets per second, all layers together, a visit to a block lasts one symbol longer. Making a block ready
/// takes nearly half a millisecond, so it costs about half a processor.
const VISITS: f64 = 1_200.0;

/// More symbols at a visit would make receivers wait for their last blocks: see [`Carousel::set_run`].
const MAX_RUN: f64 = 16.0;

/// Without feedback, a visit to a block sends as many symbols as the block has, and one more for each of this number. Nearly every block
/// then completes at once at a loss of 5 %: of 288 symbols, 14 are lost on average, and 32 are more than four deviations away.
const REPAIRED: u16 = 8;

/// Without feedback, with this number of blocks per block that describes the content, the latter get two shares of each round.
/// They then arrive in spite of a loss of 40 %, and the round is at most an eighth longer.
const DOUBLED_FROM: u32 = 8;

/// All blocks again and again.
pub(in crate::source) struct Fountain {
    source: BlockSource,
    blocks: Blocks,
    carousel: Carousel,
    /// The block that each layer was last made ready for.
    ahead: Vec<Option<u32>>,
    /// Without feedback: the number of times that everything is sent.
    most_rounds: Option<u64>,
}

impl Fountain {
    pub(crate) fn new(mut source: BlockSource, layers: u8) -> Fountain {
        source.read_on_order();
        let Geometry { symbol_size, symbols_per_block, .. } = source.geometry();
        let blocks = Blocks::new(symbol_size, symbols_per_block, layers);
        Fountain::with_blocks(source, layers, blocks)
    }

    /// Without feedback: one block after the other, with some repair symbols, and other symbols of each in the next round.
    pub(crate) fn in_rounds(mut source: BlockSource, repeat: Repeat) -> Fountain {
        source.read_on_order();
        let geometry = source.geometry();
        let Geometry { symbol_size, symbols_per_block: symbols, .. } = geometry;
        let leading = geometry.manifest_blocks();
        let mut carousel = Carousel::new(1, symbols, leading);
        carousel.set_run(symbols + symbols.div_ceil(REPAIRED));
        if source.blocks().is_none_or(|blocks| blocks / DOUBLED_FROM >= leading) {
            carousel.double_leading();
        }
        let most_rounds = match repeat {
            Repeat::Rounds(rounds) => rounds,
            Repeat::For(_) | Repeat::Forever => u64::MAX,
        };
        let blocks = Blocks::new(symbol_size, symbols, 1);
        Fountain { most_rounds: Some(most_rounds), ..Fountain::over(source, blocks, carousel, 1) }
    }

    /// Whether it has sent all that is there as often as it may: of an input that goes on, once.
    fn rests(&self) -> bool {
        let Some(most) = self.most_rounds.filter(|_| self.carousel.is_between_rounds()) else { return false };
        let most = if self.source.blocks().is_some() { most } else { 1 };
        self.carousel.rounds() >= most
    }

    /// Creates a fountain on `layers` layers with these cached blocks.
    pub(in crate::source) fn with_blocks(source: BlockSource, layers: u8, blocks: Blocks) -> Fountain {
        let geometry = source.geometry();
        let carousel = Carousel::new(layers, geometry.symbols_per_block, geometry.manifest_blocks());
        Fountain::over(source, blocks, carousel, layers)
    }

    fn over(source: BlockSource, blocks: Blocks, carousel: Carousel, layers: u8) -> Fountain {
        let mut fountain =
            Fountain { source, blocks, carousel, ahead: vec![None; layers.into()], most_rounds: None };
        fountain.follow_source();
        fountain
    }

    /// Sends the remainder of blocks with withdrawn files.
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

    fn welcome(&mut self) {
        if self.most_rounds.is_none() {
            self.carousel.lead(); // otherwise each round begins with what describes the content
        }
    }

    fn look(
        &mut self,
        now: Time,
        leisure: Leisure,
        _: &dyn Fn(Layer) -> Rate,
    ) -> Result<Looked, ObjectError> {
        let knew_root = self.source.root().is_some();
        self.source.poll(now, leisure)?;
        self.follow_source();
        self.follow_withdrawals()?;
        // Without feedback, a receiver that has all blocks waits only for the root.
        let is_news = self.most_rounds.is_some() && !knew_root && self.source.root().is_some();
        Ok(if is_news { Looked::AtTheEnd } else { Looked::Nothing })
    }

    fn has_work(&self) -> bool {
        self.source.has_work()
    }

    fn has(&self, _layer: Layer) -> bool {
        !self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.carousel.end() == 0 || self.rests()
    }

    fn next(&mut self, layer: Layer) -> Result<Option<Chosen<'_>>, ObjectError> {
        if self.rests() {
            return Ok(None);
        }
        let pick = loop {
            self.follow_withdrawals()?;
            let Some(pick) = self.carousel.next(layer) else { return Ok(None) };
            self.blocks.load(pick.block, &mut self.source)?;
            // Reading the block may have withdrawn a file: then its symbols have other ids.
            if !self.source.has_affected() {
                break pick;
            }
        };
        let (symbols, payload) = self.blocks.symbol(pick, &mut self.source)?;
        let place = Payload { block: pick.block, symbol: pick.symbol };
        // Nothing is sent again here.
        Ok(Some(Chosen { place, symbols, payload, flags: Flags::default() }))
    }

    /// Lets the block be read that the layer comes to next.
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

    /// How long layers stay with a block: as long as blocks have to be made ready for it, longer at higher rates.
    fn set_rate(&mut self, packets: f64) {
        if self.most_rounds.is_none() && !self.blocks.keeps(self.carousel.end()) {
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
            said: EndProof::default(),
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

    fn rounds(&self) -> u64 {
        if self.source.blocks().is_some() { self.carousel.rounds() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use faircast_core::delivery::repair_scheduler::SYMBOL_LIMIT;

    #[test]
    fn symbol_limit_is_that_of_the_code() {
        assert_eq!(SYMBOL_LIMIT, faircast_fec::MAX_ESI);
    }
}
