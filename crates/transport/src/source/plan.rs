//! What is sent next: what receivers asked for, or ever new symbols on every layer.

use crate::object::Geometry;
use faircast_core::delivery::carousel::Carousel;
use faircast_core::delivery::ledger::{Ledger, Pick, PickKind};
use faircast_core::packet::{Flags, Layer, Seq};
use faircast_wire::Scheduled;

/// At this many packets per second, all layers together, a visit to a block lasts one symbol longer. Making a block ready
/// takes nearly half a millisecond, so it costs about half a processor.
const VISITS: f64 = 1_200.0;

/// More symbols at a visit would make receivers wait for their last blocks: see [`Carousel::set_run`].
const LONGEST_RUN: f64 = 16.0;

/// The order of symbols.
#[derive(Debug)]
pub(super) enum Plan {
    /// Everything once, then what was asked for: sessions at one rate.
    Asked(Ledger),
    /// A fountain: layered sessions, where nobody asks.
    Fountain(Carousel),
}

impl Plan {
    /// A plan for so many layers; blocks are told with [`Plan::push`].
    pub(super) fn new(layers: u8, geometry: &Geometry) -> Plan {
        let describing = geometry.manifest_blocks();
        match layers {
            0 | 1 => Plan::Asked(Ledger::new(describing)),
            _ => Plan::Fountain(Carousel::new(layers, geometry.symbols_per_block, describing)),
        }
    }

    /// The content has one more block, of `symbols` source symbols.
    pub(super) fn push(&mut self, symbols: u16) {
        match self {
            Plan::Asked(ledger) => ledger.push(symbols),
            Plan::Fountain(carousel) => carousel.push(symbols),
        }
    }

    /// The symbol that leaves on `layer` now, and what its packet's flags say about it. [`Plan::sent`] must follow.
    pub(super) fn pick(&mut self, layer: Layer) -> Option<(Pick, Flags)> {
        match self {
            Plan::Asked(ledger) => ledger.pick().map(|pick| (pick, flags(pick.kind))),
            // Nothing is sent again here.
            Plan::Fountain(carousel) => carousel.next(layer).map(|pick| (pick, Flags::default())),
        }
    }

    /// The symbol has left as packet `seq` of its layer.
    pub(super) fn sent(&mut self, pick: Pick, seq: Seq) {
        if let Plan::Asked(ledger) = self {
            ledger.sent(pick, seq);
        }
    }

    /// A receiver that had seen the stream up to `seen` lacks symbols of a block; whether anything is sent for it.
    pub(super) fn request(&mut self, block: u32, symbols: u16, seen: Seq) -> bool {
        match self {
            Plan::Asked(ledger) => ledger.request(block, symbols, seen),
            Plan::Fountain(_) => false,
        }
    }

    /// A receiver has come.
    pub(super) fn welcome(&mut self) {
        if let Plan::Fountain(carousel) = self {
            carousel.lead();
        }
    }

    /// Blocks have this much to do at a visit when `rate` packets leave in a second, and not all blocks are kept ready.
    pub(super) fn spare_visits(&mut self, rate: f64) {
        if let Plan::Fountain(carousel) = self {
            carousel.set_run((rate / VISITS).clamp(2.0, LONGEST_RUN) as u16);
        }
    }

    /// The block that `layer` visits next, where blocks are not sent in a row.
    pub(super) fn coming(&self, layer: Layer) -> Option<u32> {
        match self {
            Plan::Asked(_) => None,
            Plan::Fountain(carousel) => carousel.coming(layer),
        }
    }

    /// Everything has been sent before, in an earlier session.
    pub(super) fn skip_front(&mut self) {
        if let Plan::Asked(ledger) = self {
            ledger.skip_front();
        }
    }

    /// Drop all requests.
    pub(super) fn clear_requests(&mut self) {
        if let Plan::Asked(ledger) = self {
            ledger.clear_requests();
        }
    }

    /// Blocks before this one are gone.
    pub(super) fn forget_before(&mut self, block: u32) {
        if let Plan::Asked(ledger) = self {
            ledger.forget_before(block);
        }
    }

    /// Repairs under way.
    pub(super) fn scheduled(&self, most: usize) -> Vec<Scheduled> {
        match self {
            Plan::Asked(ledger) => {
                let scheduled = ledger.scheduled().take(most);
                scheduled.map(|(block, symbols)| Scheduled { block, symbols }).collect()
            }
            Plan::Fountain(_) => Vec::new(),
        }
    }

    /// All source symbols of the blocks below this one have been sent once.
    pub(super) fn complete_to(&self) -> u32 {
        match self {
            Plan::Asked(ledger) => ledger.complete_to(),
            Plan::Fountain(carousel) => carousel.complete_to(),
        }
    }

    /// Source symbols sent, each counted once.
    pub(super) fn symbols_sent_first(&self) -> u64 {
        match self {
            Plan::Asked(ledger) => ledger.symbols_sent_first(),
            Plan::Fountain(carousel) => carousel.symbols_sent_first(),
        }
    }

    /// All symbols sent, on all layers.
    pub(super) fn symbols_sent(&self) -> u64 {
        match self {
            Plan::Asked(ledger) => ledger.symbols_sent(),
            Plan::Fountain(carousel) => carousel.symbols_sent(),
        }
    }

    /// The oldest block still kept.
    pub(super) fn oldest(&self) -> u32 {
        match self {
            Plan::Asked(ledger) => ledger.oldest(),
            Plan::Fountain(_) => 0,
        }
    }

    /// The number of blocks so far.
    pub(super) fn end(&self) -> u32 {
        match self {
            Plan::Asked(ledger) => ledger.end(),
            Plan::Fountain(carousel) => carousel.end(),
        }
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_idle(&self) -> bool {
        match self {
            Plan::Asked(ledger) => ledger.is_idle(),
            Plan::Fountain(carousel) => carousel.end() == 0,
        }
    }
}

fn flags(kind: PickKind) -> Flags {
    if kind == PickKind::Front { Flags::default() } else { Flags::REPAIR }
}

#[cfg(test)]
mod tests {
    use faircast_core::delivery::carousel::SYMBOL_LIMIT;

    #[test]
    fn the_fountain_knows_where_the_codes_ids_end() {
        assert_eq!(SYMBOL_LIMIT, faircast_fec::MAX_ESI);
    }
}
