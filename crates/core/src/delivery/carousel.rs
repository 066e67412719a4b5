//! A digital fountain over layers: which symbol of which block leaves next on each layer (paper 004, 5).
//!
//! Receivers send no requests. Every symbol is sent once, on one layer, and any K of a block's symbols give the block, so a receiver of any
//! level needs about as many packets as the content has symbols. For that, the layers of any subscription must bring all blocks forward at
//! the same pace, at any time and for any while:
//!
//! ```text
//!  layer 0     |==|==|==|==|  |  |  |  |     a goal per level: every block has had so many symbols on layers 0..=level
//!  layers 0-1  |==|==|==|==|==|==|==|  |     layer l walks around the blocks and brings each one up to level l's goal,
//!  layers 0-2  |==|==|==|==|==|==|==|==|     passes by what lower layers have brought there, and raises the goal a little
//!               0  1  2  3  4  5  6  7       at each turn (by a run)
//! ```
//!
//! The first blocks, which describe the content, lead on the base layer when receivers come.

use super::repair_scheduler::{Pick, PickKind, ids_of};
use crate::packet::Layer;

/// The number of symbols that the weight of a block has beyond its own: small blocks are cheap, and suffer more from single losses.
const MARGIN: u16 = 8;

/// With fewer blocks per describing one than this, those come soon enough without a lead.
const LEAD_FROM: usize = 8;

/// The account of all blocks and layers. Memory grows with blocks times layers, never with the receivers.
#[derive(Debug)]
pub struct Carousel {
    layers: usize,
    /// Symbols of a full block at one visit.
    run: u64,
    /// Weight of a full block.
    full: u64,
    blocks: Vec<Block>,
    /// Weight of all blocks.
    weight: u64,
    /// By block, then by level: symbols sent on all layers up to the level.
    served: Vec<u64>,
    rings: Vec<Ring>,
    lead: Lead,
    /// The blocks that describe the content get this number of shares.
    leading_shares: u64,
    /// Source symbols of all blocks.
    sources: u64,
    sent: u64,
    sent_first: u64,
    complete_to: u32,
    /// Turns that the base layer has begun.
    turns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    /// Source symbols, K.
    symbols: u16,
    /// Its share of the symbols, relative to the shares of other blocks.
    weight: u64,
    /// The next symbol to be sent, on whichever layer.
    next: u32,
    /// How often its content has changed.
    generation: u32,
    /// Nothing of it is sent any more.
    is_withdrawn: bool,
}

/// A layer's walk around the blocks.
#[derive(Debug, Clone, Copy)]
struct Ring {
    at: usize,
    is_visiting: bool,
    /// The goal of a full block in this turn.
    goal: u64,
    /// Symbols sent on all layers up to this one.
    total: u64,
}

/// The blocks that describe the content, sent in turns with the base layer's own visits.
#[derive(Debug, Default)]
struct Lead {
    blocks: usize,
    /// Symbols still to send of each of them.
    due: u64,
    at: usize,
    /// Symbols of the current block that remain in this visit.
    left: u64,
    /// The base layer's walk is next.
    gives_way: bool,
}

impl Carousel {
    /// A fountain on `layers` layers (at least 1), over blocks of `symbols_per_block` source symbols at most, the first
    /// `leading` of which describe the content.
    pub fn new(layers: u8, symbols_per_block: u16, leading: u32) -> Carousel {
        let layers = usize::from(layers.max(1));
        Carousel {
            layers,
            run: 1,
            full: weight_of(symbols_per_block),
            blocks: Vec::new(),
            weight: 0,
            served: Vec::new(),
            rings: vec![Ring { at: 0, is_visiting: false, goal: 0, total: 0 }; layers],
            lead: Lead { blocks: leading as usize, ..Lead::default() },
            leading_shares: 1,
            sources: 0,
            sent: 0,
            sent_first: 0,
            complete_to: 0,
            turns: 0,
        }
    }

    /// Sets the number of symbols of a full block that a layer sends at each visit. Few keep all blocks at one pace, so that the last block
    /// of a receiver is not late; many spare the work of making a block ready.
    pub fn set_run(&mut self, symbols: u16) {
        self.run = u64::from(symbols.max(1));
    }

    /// The blocks that describe the content get two shares from now on: without them a receiver can store no other block. This comes
    /// before the first [`push`](Carousel::push).
    pub fn double_leading(&mut self) {
        self.leading_shares = 2;
    }

    /// The content has one more block, of `symbols` source symbols. One that comes late is brought up soon.
    pub fn push(&mut self, symbols: u16) {
        let shares = if self.blocks.len() < self.lead.blocks { self.leading_shares } else { 1 };
        let weight = weight_of(symbols) * shares;
        self.blocks.push(Block { symbols, weight, next: 0, generation: 0, is_withdrawn: false });
        self.weight += weight;
        self.sources += u64::from(symbols);
        let own = u64::from(symbols) + u64::from(symbols) / 16;
        for level in 0..self.layers {
            let served = self.share(self.rings[level].goal, weight).saturating_sub(own);
            self.served.push(served);
            self.rings[level].total += served;
        }
    }

    /// The content of block `block` changes. Symbols that have left are not sent again: the block's symbols have other ids from now on.
    /// Returns whether there are any left.
    #[must_use]
    pub fn renew(&mut self, block: u32) -> bool {
        // A block of which no symbol has left since its last change may change again.
        let has_left = |block: &&mut Block| block.next != ids_of(block.generation).start;
        let Some(block) = self.blocks.get_mut(block as usize).filter(has_left) else { return true };
        block.generation += 1;
        let ids = ids_of(block.generation);
        block.next = ids.start;
        !ids.is_empty()
    }

    /// Nothing of block `block` is sent any more, and it counts as sent.
    pub fn withdraw(&mut self, block: u32) {
        let at = block as usize;
        let Some(block) = self.blocks.get_mut(at).filter(|block| !block.is_withdrawn) else { return };
        block.is_withdrawn = true;
        let symbols = block.symbols;
        self.weight -= block.weight;
        let left = u64::from(symbols).saturating_sub(block.next.into());
        self.sources -= left;
        for level in 0..self.layers {
            self.rings[level].total -= self.served[at * self.layers + level];
            self.served[at * self.layers + level] = 0;
        }
        self.pass_complete();
    }

    /// Receivers have come, on the base layer: symbols that describe the content are sent to them at once, in turns with the rest.
    pub fn lead(&mut self) {
        if self.blocks.len() >= self.lead.blocks * LEAD_FROM
            && let Some(first) = self.blocks.first().filter(|_| self.lead.blocks > 0)
        {
            self.lead.due = lead_of(first.symbols);
        }
    }

    /// Returns the symbol that leaves on `layer` now; `None` while there is no block, or no such layer.
    pub fn next(&mut self, layer: Layer) -> Option<Pick> {
        let level = usize::from(layer.0);
        if level >= self.layers || self.blocks.is_empty() {
            return None;
        }
        if level == 0
            && let Some(block) = self.next_leading()
        {
            // Half of the first lead counts for the goals. It falls into the start of the session, when much may be lost; a receiver that
            // lost too much of it must not wait until all other blocks have caught up. The lead for late joiners does not count for the
            // goals.
            let Block { symbols, next, .. } = self.blocks[block];
            let is_ahead = self.served[block * self.layers] >= lead_of(symbols) / 2;
            let counts = !is_ahead && next % 2 == 0;
            return Some(self.take(block, if counts { 0 } else { self.layers }));
        }
        let block = self.advance(level);
        Some(self.take(block, level))
    }

    /// The block that `layer` probably visits next, so that it can be made ready.
    pub fn coming(&self, layer: Layer) -> Option<u32> {
        let level = usize::from(layer.0);
        let ring = self.rings.get(level)?;
        let following = (ring.at + 1..self.blocks.len()).take(64).find(|&block| self.lacks(block, level));
        following.or(if self.blocks.is_empty() { None } else { Some(0) }).map(|block| block as u32)
    }

    /// All source symbols of the blocks below this one have been sent.
    pub fn complete_to(&self) -> u32 {
        self.complete_to
    }

    /// The number of blocks so far.
    pub fn end(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Symbols sent so far, on all layers.
    pub fn symbols_sent(&self) -> u64 {
        self.sent
    }

    /// Source symbols among them, each counted once.
    pub fn symbols_sent_first(&self) -> u64 {
        self.sent_first
    }

    /// Turns of the base layer around all blocks that are complete.
    pub fn rounds(&self) -> u64 {
        if self.is_between_rounds() { self.turns } else { self.turns.saturating_sub(1) }
    }

    /// Returns whether the base layer's next symbol begins another turn around the blocks.
    pub fn is_between_rounds(&self) -> bool {
        let Ring { at, is_visiting, .. } = self.rings[0];
        let goes_on = is_visiting && at < self.blocks.len() && self.is_below(at, 0);
        !goes_on && !(at + usize::from(is_visiting)..self.blocks.len()).any(|block| self.lacks(block, 0))
    }

    /// The leading block that the base layer sends now, if it does.
    fn next_leading(&mut self) -> Option<usize> {
        if self.lead.due == 0 {
            return None;
        }
        if self.lead.left == 0 {
            let ring = self.rings[0];
            if ring.is_visiting && self.is_below(ring.at, 0) {
                return None;
            }
            self.lead.gives_way = !self.lead.gives_way;
            if !self.lead.gives_way {
                return None;
            }
            self.lead.left = self.run.min(self.lead.due);
        }
        let block = self.lead.at;
        self.lead.left -= 1;
        if self.lead.left == 0 {
            self.lead.at += 1;
            if self.lead.at == self.lead.blocks {
                self.lead.at = 0;
                self.lead.due = self.lead.due.saturating_sub(self.run);
            }
        }
        Some(block)
    }

    /// Where `level`'s layer sends now: at the block it visits, or at the next one that lacks something.
    fn advance(&mut self, level: usize) -> usize {
        loop {
            let at = self.rings[level].at;
            if at == self.blocks.len() {
                // A layer that was off for long does not try to make up for it.
                let ring = &mut self.rings[level];
                let mean = ring.total * self.full / self.weight;
                (ring.at, ring.goal) = (0, mean.max(ring.goal + self.run));
                self.turns += u64::from(level == 0);
                continue;
            }
            let goes_on = self.rings[level].is_visiting && self.is_below(at, level);
            let begins = !self.rings[level].is_visiting && self.lacks(at, level);
            self.rings[level].is_visiting = goes_on || begins;
            if goes_on || begins {
                return at;
            }
            self.rings[level].at += 1;
        }
    }

    /// Whether the block has had less than its goal.
    fn is_below(&self, block: usize, level: usize) -> bool {
        !self.blocks[block].is_withdrawn
            && self.served[block * self.layers + level]
                < self.share(self.rings[level].goal, self.blocks[block].weight)
    }

    /// Returns whether it has received few enough symbols to be worth a visit.
    fn lacks(&self, block: usize, level: usize) -> bool {
        let Block { weight, is_withdrawn, .. } = self.blocks[block];
        let worth = self.share(self.run, weight).max(1).div_ceil(2);
        !is_withdrawn
            && self.served[block * self.layers + level] + worth <= self.share(self.rings[level].goal, weight)
    }

    /// Returns the share of a block of `weight` for the share `of_full` of a full block.
    fn share(&self, of_full: u64, weight: u64) -> u64 {
        of_full * weight / self.full
    }

    /// The block's next symbol leaves, and counts for this level and those above.
    fn take(&mut self, block: usize, level: usize) -> Pick {
        for above in level..self.layers {
            self.served[block * self.layers + above] += 1;
            self.rings[above].total += 1;
        }
        let entry = &mut self.blocks[block];
        let symbol = entry.next;
        let ids = ids_of(entry.generation);
        entry.next = if symbol + 1 >= ids.end { ids.start } else { symbol + 1 };
        let is_source = symbol < u32::from(entry.symbols);
        self.sent += 1;
        self.sent_first = (self.sent_first + u64::from(is_source)).min(self.sources);
        self.pass_complete();
        Pick { block: block as u32, symbol, kind: if is_source { PickKind::Front } else { PickKind::Repair } }
    }

    fn pass_complete(&mut self) {
        let is_sent = |block: &Block| block.is_withdrawn || block.next >= block.symbols.into();
        while self.blocks.get(self.complete_to as usize).is_some_and(is_sent) {
            self.complete_to += 1;
        }
    }
}

fn weight_of(symbols: u16) -> u64 {
    u64::from(symbols) + u64::from(MARGIN)
}

/// Symbols of a leading block that are enough for nearly all who have come: it arrives in spite of a loss of a tenth.
fn lead_of(symbols: u16) -> u64 {
    u64::from(symbols) * 9 / 8 + u64::from(MARGIN)
}

#[cfg(test)]
mod tests;
