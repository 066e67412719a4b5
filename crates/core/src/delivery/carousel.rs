//! A digital fountain over layers: chooses the block and symbol that each layer sends next (paper 004, 5).
//!
//! Receivers send no requests. Every symbol is sent once, on one layer, and any K symbols of a block are enough to decode it. So
//! a receiver needs about as many packets as the content has symbols, whatever its level (its highest layer). This requires that
//! the layers of each subscription together advance all blocks at the same pace, over any period:
//!
//! ```text
//!  layer 0     |==|==|==|==|  |  |  |  |     a goal per level: every block has had so many symbols on layers 0..=level
//!  layers 0-1  |==|==|==|==|==|==|==|  |     layer l walks around the blocks and brings each one up to level l's goal,
//!  layers 0-2  |==|==|==|==|==|==|==|==|     passes by what lower layers have brought there, and raises the goal a little
//!               0  1  2  3  4  5  6  7       at each turn (by a run)
//! ```
//!
//! The first blocks describe the content (*leading blocks*). After receivers have joined, these blocks have priority on the base
//! layer.

use super::repair_scheduler::{Pick, PickKind, ids_of};
use crate::packet::Layer;

/// The weight of a block is its number of source symbols plus this constant. The constant favours small blocks, which cost few
/// packets and suffer more from single losses.
const MARGIN: u16 = 8;

/// Minimum number of blocks per leading block. If the content has fewer blocks, the leading blocks need no priority.
const LEAD_FROM: usize = 8;

/// State of all blocks and layers. Its memory grows with blocks times layers, not with the number of receivers.
#[derive(Debug)]
pub struct Carousel {
    layers: usize,
    /// Number of symbols of a full block that one visit sends.
    run: u64,
    /// Weight of a full block.
    full: u64,
    blocks: Vec<Block>,
    /// Sum of the weights of all blocks.
    weight: u64,
    /// Number of symbols of a block sent on layers 0 to `level`, at index `block * layers + level`.
    served: Vec<u64>,
    rings: Vec<Ring>,
    lead: Lead,
    /// Number of source symbols of all blocks.
    sources: u64,
    sent: u64,
    sent_first: u64,
    complete_to: u32,
    /// Number of turns around all blocks that the base layer has started.
    turns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    /// Number of source symbols, K.
    symbols: u16,
    /// Share of this block relative to the shares of other blocks.
    weight: u64,
    /// Next symbol to be sent, on any layer.
    next: u32,
    /// Number of changes of the block's content.
    generation: u32,
    /// Whether the block is withdrawn: none of its symbols are sent.
    is_withdrawn: bool,
}

/// Position of a layer in its walk around the blocks.
#[derive(Debug, Clone, Copy)]
struct Ring {
    at: usize,
    is_visiting: bool,
    /// Number of symbols of a full block that layers 0 to this one are to have sent at the end of this turn.
    goal: u64,
    /// Number of symbols sent on all layers up to this one.
    total: u64,
}

/// The base layer's visits of leading blocks, which have priority: they alternate with the base layer's regular visits.
#[derive(Debug, Default)]
struct Lead {
    blocks: usize,
    /// Number of symbols of each leading block that are still to be sent with priority.
    due: u64,
    at: usize,
    /// Number of symbols of the current block that remain in this visit.
    left: u64,
    /// Whether the current visit is of a leading block, so that the next visit is a regular one.
    gives_way: bool,
}

impl Carousel {
    /// Creates a fountain on `layers` layers (at least 1), over blocks of at most `symbols_per_block` source symbols. The first
    /// `leading` blocks describe the content.
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
            sources: 0,
            sent: 0,
            sent_first: 0,
            complete_to: 0,
            turns: 0,
        }
    }

    /// Sets the number of symbols of a full block that a layer sends at each visit. With a small number all blocks advance at the
    /// same pace, so a receiver does not wait long for its last block. A large number saves work in the preparation of blocks.
    pub fn set_run(&mut self, symbols: u16) {
        self.run = u64::from(symbols.max(1));
    }

    /// Adds a block of `symbols` source symbols to the content. If it is added late, it soon catches up with the other blocks.
    pub fn push(&mut self, symbols: u16) {
        let weight = weight_of(symbols);
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

    /// Records that the content of block `block` has changed. The new content uses other symbol IDs, so IDs that were sent are
    /// not reused. Returns whether unused IDs remain.
    #[must_use]
    pub fn renew(&mut self, block: u32) -> bool {
        // A block may change again without new IDs if no symbol was sent since its last change.
        let has_left = |block: &&mut Block| block.next != ids_of(block.generation).start;
        let Some(block) = self.blocks.get_mut(block as usize).filter(has_left) else { return true };
        block.generation += 1;
        let ids = ids_of(block.generation);
        block.next = ids.start;
        !ids.is_empty()
    }

    /// Withdraws block `block`: no further symbols of it are sent, and [`Carousel::complete_to`] treats the block as sent.
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

    /// Gives the leading blocks priority on the base layer, for new receivers: visits of leading blocks alternate with regular
    /// visits.
    pub fn lead(&mut self) {
        if self.blocks.len() >= self.lead.blocks * LEAD_FROM
            && let Some(first) = self.blocks.first().filter(|_| self.lead.blocks > 0)
        {
            self.lead.due = lead_of(first.symbols);
        }
    }

    /// Returns the symbol to send on `layer` now; `None` if there are no blocks or `layer` does not exist.
    pub fn next(&mut self, layer: Layer) -> Option<Pick> {
        let level = usize::from(layer.0);
        if level >= self.layers || self.blocks.is_empty() {
            return None;
        }
        if level == 0
            && let Some(block) = self.next_leading()
        {
            // At the start of a session losses may be high, so of the symbols that are sent with priority, only half count
            // towards the goals. A receiver that lost too many of these symbols must not wait until all other blocks have caught
            // up. Symbols that are sent with priority for late joiners do not count.
            let Block { symbols, next, .. } = self.blocks[block];
            let is_ahead = self.served[block * self.layers] >= lead_of(symbols) / 2;
            let counts = !is_ahead && next % 2 == 0;
            return Some(self.take(block, if counts { 0 } else { self.layers }));
        }
        let block = self.advance(level);
        Some(self.take(block, level))
    }

    /// Returns the block that `layer` probably visits next, so that it can be prepared.
    pub fn coming(&self, layer: Layer) -> Option<u32> {
        let level = usize::from(layer.0);
        let ring = self.rings.get(level)?;
        let following = (ring.at + 1..self.blocks.len()).take(64).find(|&block| self.lacks(block, level));
        following.or(if self.blocks.is_empty() { None } else { Some(0) }).map(|block| block as u32)
    }

    /// Returns the number of the first block with a source symbol that was not sent yet.
    pub fn complete_to(&self) -> u32 {
        self.complete_to
    }

    /// Returns the number of blocks so far.
    pub fn end(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns the number of symbols sent so far, on all layers.
    pub fn symbols_sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of source symbols sent so far, each counted once.
    pub fn symbols_sent_first(&self) -> u64 {
        self.sent_first
    }

    /// Returns the number of complete turns of the base layer around all blocks.
    pub fn rounds(&self) -> u64 {
        if self.is_between_rounds() { self.turns } else { self.turns.saturating_sub(1) }
    }

    /// Returns whether the base layer's next symbol starts another turn around the blocks.
    fn is_between_rounds(&self) -> bool {
        let Ring { at, is_visiting, .. } = self.rings[0];
        let goes_on = is_visiting && at < self.blocks.len() && self.is_below(at, 0);
        !goes_on && !(at + usize::from(is_visiting)..self.blocks.len()).any(|block| self.lacks(block, 0))
    }

    /// Returns the leading block that the base layer sends now; `None` if its regular walk continues.
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

    /// Returns the block that a layer sends now: the block of its visit, or the next one that needs symbols.
    fn advance(&mut self, level: usize) -> usize {
        loop {
            let at = self.rings[level].at;
            if at == self.blocks.len() {
                // The goal is at least the mean over all blocks, so a layer that was off for a long time does not catch up.
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

    /// Returns whether the number of symbols sent of the block is below the block's share of this level's goal.
    fn is_below(&self, block: usize, level: usize) -> bool {
        !self.blocks[block].is_withdrawn
            && self.served[block * self.layers + level]
                < self.share(self.rings[level].goal, self.blocks[block].weight)
    }

    /// Returns whether the block lacks at least half a visit's symbols to reach its share of this level's goal.
    fn lacks(&self, block: usize, level: usize) -> bool {
        let Block { weight, is_withdrawn, .. } = self.blocks[block];
        let worth = self.share(self.run, weight).max(1).div_ceil(2);
        !is_withdrawn
            && self.served[block * self.layers + level] + worth <= self.share(self.rings[level].goal, weight)
    }

    /// Returns the number of symbols for a block of weight `weight`, where `of_full` is the number for a full block.
    fn share(&self, of_full: u64, weight: u64) -> u64 {
        of_full * weight / self.full
    }

    /// Returns the block's next symbol and counts it for this level and the levels above.
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

/// Returns a number of symbols of a leading block that is enough for nearly all new receivers, even at a packet loss of 10 %.
fn lead_of(symbols: u16) -> u64 {
    u64::from(symbols) * 9 / 8 + u64::from(MARGIN)
}

#[cfg(test)]
mod tests;
