//! The symbol scheduler: what is sent next, what receivers asked for, or ever new symbols on every layer.

use crate::object::Geometry;
use faircast_core::delivery::carousel::Carousel;
use faircast_core::delivery::repair_scheduler::{Pick, PickKind, RepairScheduler};
use faircast_core::packet::{Flags, Layer, Seq};
use faircast_wire::Scheduled;

/// At this many packets per second, all layers together, a visit to a block lasts one symbol longer. Making a block ready
/// takes nearly half a millisecond, so it costs about half a processor.
const VISITS: f64 = 1_200.0;

/// More symbols at a visit would make receivers wait for their last blocks: see [`Carousel::set_run`].
const LONGEST_RUN: f64 = 16.0;

/// The order of symbols.
#[derive(Debug)]
pub(super) enum SymbolScheduler {
    /// Everything once, then what was asked for: sessions at one rate.
    Asked(RepairScheduler),
    /// A fountain: layered sessions, where nobody asks.
    Fountain(Carousel),
}

impl SymbolScheduler {
    /// A plan for so many layers; blocks are told with [`SymbolScheduler::push`].
    pub(super) fn new(layers: u8, geometry: &Geometry) -> SymbolScheduler {
        let describing = geometry.manifest_blocks();
        match layers {
            0 | 1 => SymbolScheduler::Asked(RepairScheduler::new(describing)),
            _ => SymbolScheduler::Fountain(Carousel::new(layers, geometry.symbols_per_block, describing)),
        }
    }

    /// The content has one more block, of `symbols` source symbols.
    pub(super) fn push(&mut self, symbols: u16) {
        match self {
            SymbolScheduler::Asked(repairs) => repairs.push(symbols),
            SymbolScheduler::Fountain(carousel) => carousel.push(symbols),
        }
    }

    /// The symbol that leaves on `layer` now, and what its packet's flags say about it. [`SymbolScheduler::sent`] must follow.
    pub(super) fn pick(&mut self, layer: Layer) -> Option<(Pick, Flags)> {
        match self {
            SymbolScheduler::Asked(repairs) => repairs.pick().map(|pick| (pick, flags(pick.kind))),
            // Nothing is sent again here.
            SymbolScheduler::Fountain(carousel) => carousel.next(layer).map(|pick| (pick, Flags::default())),
        }
    }

    /// The symbol has left as packet `seq` of its layer.
    pub(super) fn sent(&mut self, pick: Pick, seq: Seq) {
        if let SymbolScheduler::Asked(repairs) = self {
            repairs.sent(pick, seq);
        }
    }

    /// A receiver that had seen the stream up to `seen` lacks symbols of a block; whether anything is sent for it.
    pub(super) fn request(&mut self, block: u32, symbols: u16, seen: Seq) -> bool {
        match self {
            SymbolScheduler::Asked(repairs) => repairs.request(block, symbols, seen),
            SymbolScheduler::Fountain(_) => false,
        }
    }

    /// A receiver has come.
    pub(super) fn welcome(&mut self) {
        if let SymbolScheduler::Fountain(carousel) = self {
            carousel.lead();
        }
    }

    /// Blocks have this much to do at a visit when `rate` packets leave in a second, and not all blocks are kept ready.
    pub(super) fn spare_visits(&mut self, rate: f64) {
        if let SymbolScheduler::Fountain(carousel) = self {
            carousel.set_run((rate / VISITS).clamp(2.0, LONGEST_RUN) as u16);
        }
    }

    /// The block that `layer` visits next, where blocks are not sent in a row.
    pub(super) fn coming(&self, layer: Layer) -> Option<u32> {
        match self {
            SymbolScheduler::Asked(_) => None,
            SymbolScheduler::Fountain(carousel) => carousel.coming(layer),
        }
    }

    /// Everything has been sent before, in an earlier session.
    pub(super) fn skip_front(&mut self) {
        if let SymbolScheduler::Asked(repairs) = self {
            repairs.skip_front();
        }
    }

    /// Drop all requests.
    pub(super) fn clear_requests(&mut self) {
        if let SymbolScheduler::Asked(repairs) = self {
            repairs.clear_requests();
        }
    }

    /// Blocks before this one are gone.
    pub(super) fn forget_before(&mut self, block: u32) {
        if let SymbolScheduler::Asked(repairs) = self {
            repairs.forget_before(block);
        }
    }

    /// Repairs under way.
    pub(super) fn scheduled(&self, most: usize) -> Vec<Scheduled> {
        match self {
            SymbolScheduler::Asked(repairs) => {
                let scheduled = repairs.scheduled().take(most);
                scheduled.map(|(block, symbols)| Scheduled { block, symbols }).collect()
            }
            SymbolScheduler::Fountain(_) => Vec::new(),
        }
    }

    /// All source symbols of the blocks below this one have been sent once.
    pub(super) fn complete_to(&self) -> u32 {
        match self {
            SymbolScheduler::Asked(repairs) => repairs.complete_to(),
            SymbolScheduler::Fountain(carousel) => carousel.complete_to(),
        }
    }

    /// Source symbols sent, each counted once.
    pub(super) fn symbols_sent_first(&self) -> u64 {
        match self {
            SymbolScheduler::Asked(repairs) => repairs.symbols_sent_first(),
            SymbolScheduler::Fountain(carousel) => carousel.symbols_sent_first(),
        }
    }

    /// All symbols sent, on all layers.
    pub(super) fn symbols_sent(&self) -> u64 {
        match self {
            SymbolScheduler::Asked(repairs) => repairs.symbols_sent(),
            SymbolScheduler::Fountain(carousel) => carousel.symbols_sent(),
        }
    }

    /// The oldest block still kept.
    pub(super) fn oldest(&self) -> u32 {
        match self {
            SymbolScheduler::Asked(repairs) => repairs.oldest(),
            SymbolScheduler::Fountain(_) => 0,
        }
    }

    /// The number of blocks so far.
    pub(super) fn end(&self) -> u32 {
        match self {
            SymbolScheduler::Asked(repairs) => repairs.end(),
            SymbolScheduler::Fountain(carousel) => carousel.end(),
        }
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_idle(&self) -> bool {
        match self {
            SymbolScheduler::Asked(repairs) => repairs.is_idle(),
            SymbolScheduler::Fountain(carousel) => carousel.end() == 0,
        }
    }
}

fn flags(kind: PickKind) -> Flags {
    if kind == PickKind::Front { Flags::default() } else { Flags::REPAIR }
}

#[cfg(test)]
mod tests {
    use faircast_core::delivery::repair_scheduler::SYMBOL_LIMIT;

    #[test]
    fn the_fountain_knows_where_the_codes_ids_end() {
        assert_eq!(SYMBOL_LIMIT, faircast_fec::MAX_ESI);
    }
}
