//! Sessions without feedback: the order of symbols in rounds. A round sends every block once with some repair symbols, and later
//! rounds send other symbols of the blocks.
//!
//! An outage of the path must cost each block few symbols. Several *visitors* therefore walk around the blocks at the same pace
//! and at equal distances. In each slot, every visitor sends a few symbols of its block, and moves to the next block:
//!
//! ```text
//!   visitor        3        2        1        0
//!   slot 9         |        |        |        |
//!   blocks   0  1 [2] 3  4 [5] 6  7 [8] 9 10[11]12    a block leaves within a window of 10 blocks
//!   slot 10        [3]      [6]      [9]      [12]
//! ```
//!
//! Only the blocks of the window must be in memory, and blocks are read in order. The walk is a ring: when visitor 0 is at the
//! first block, the other visitors are at the last blocks. Thus all parts of a round are interleaved equally.
//!
//! The first blocks describe the content (*leading blocks*), and receivers can store no block without them. Besides their visits,
//! they are sent whole at the start of each window.

use super::repair_scheduler::{Pick, PickKind, ids_of};

/// Target number of symbols per visit. With a smaller number, an outage costs all blocks the same number of symbols more exactly;
/// a larger number saves work at receivers.
const VISIT: u32 = 4;

/// Number of symbols by which small blocks are favoured, because they suffer more from single losses.
const MARGIN: u32 = 8;

/// Minimum length of a window in leading blocks. The additional copies of the leading blocks thus cost at most an eighth of the
/// rate.
const LEAD_FROM: u32 = 8;

/// The order of the symbols of all blocks.
#[derive(Debug)]
pub struct Rounds {
    symbols_per_block: u16,
    /// Number of symbols of a full block per round.
    share: u32,
    /// Maximum number of blocks from the first to the last visitor.
    window: u32,
    leading: u32,
    blocks: Vec<Block>,
    /// Number of blocks that are not withdrawn.
    live: u32,
    /// Whether all blocks are known. Before, a round has one visitor, which sends whole blocks.
    is_whole: bool,
    plan: Plan,
    /// The next step.
    place: Place,
    current: Visit,
    /// Number of symbols of the current visit that have not been sent.
    left: u32,
    rounds: u64,
    sources: u64,
    sent: u64,
    sent_first: u64,
    complete_to: u32,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    /// Number of source symbols, K.
    symbols: u16,
    /// Next symbol to be sent.
    next: u32,
    /// Number of changes of the block's content.
    generation: u32,
    is_withdrawn: bool,
}

/// The walk of one round.
#[derive(Debug, Clone, Copy)]
struct Plan {
    visitors: u32,
    window: u32,
    /// The leading blocks are sent whole at the start of each slot whose number is a multiple of this number.
    lead_every: Option<u32>,
}

/// A step of the walk: first the copies of the leading blocks, then the visitors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    slot: u32,
    step: u32,
}

/// Part `part` of `of` equal parts of a block's symbols.
#[derive(Debug, Clone, Copy)]
struct Visit {
    block: u32,
    part: u32,
    of: u32,
}

const START: Place = Place { slot: 0, step: 0 };

impl Rounds {
    /// Creates rounds over blocks of at most `symbols_per_block` source symbols, of which the first `leading` blocks describe the
    /// content. A round sends `share` symbols of a full block, within about `window` blocks; a window of 1 sends whole blocks.
    pub fn new(symbols_per_block: u16, share: u32, window: u32, leading: u32) -> Rounds {
        Rounds {
            symbols_per_block,
            share: share.max(1),
            window: window.max(1),
            leading,
            blocks: Vec::new(),
            live: 0,
            is_whole: false,
            plan: Plan { visitors: 1, window: 1, lead_every: Some(u32::MAX) },
            place: START,
            current: Visit { block: 0, part: 0, of: 1 },
            left: 0,
            rounds: 0,
            sources: 0,
            sent: 0,
            sent_first: 0,
            complete_to: 0,
        }
    }

    /// Adds a block of `symbols` source symbols to the content.
    pub fn push(&mut self, symbols: u16) {
        self.blocks.push(Block { symbols, next: 0, generation: 0, is_withdrawn: false });
        self.sources += u64::from(symbols);
        self.live += 1;
    }

    /// Records that no further block follows. The blocks of the next round are interleaved.
    pub fn finish(&mut self) {
        self.is_whole = true;
        if self.is_between_rounds() {
            self.plan = self.planned();
        } else if self.left == 0 {
            self.seek();
        }
    }

    /// Records that the content of block `block` has changed. The new content uses other symbol IDs. Returns whether unused IDs
    /// remain.
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

    /// Withdraws block `block`: no further symbols of it are sent, and [`Rounds::complete_to`] treats the block as sent.
    pub fn withdraw(&mut self, block: u32) {
        let entry = self.blocks.get_mut(block as usize).filter(|entry| !entry.is_withdrawn);
        let Some(entry) = entry else { return };
        entry.is_withdrawn = true;
        self.live -= 1;
        self.sources -= u64::from(entry.symbols).saturating_sub(entry.next.into());
        if self.current.block == block {
            self.left = 0;
        }
        if self.left == 0 && self.place != START {
            self.seek();
        }
        self.pass_complete();
    }

    /// Returns the next symbol to send; `None` if no block is available.
    pub fn next_pick(&mut self) -> Option<Pick> {
        let misses_leading = !self.is_whole && self.end() < self.leading;
        if self.live == 0 || misses_leading {
            return None;
        }
        if self.left == 0 {
            self.seek();
            if self.place.slot >= self.end() {
                return None; // the input has not supplied the block yet
            }
            self.current = self.visit(self.place);
            self.left = self.count(self.current);
            self.place = self.after(self.place);
        }
        self.left -= 1;
        let pick = self.take(self.current.block);
        if self.left == 0 {
            self.seek();
        }
        Some(pick)
    }

    /// Returns the symbol IDs of a block from its symbol `pick`, which [`Rounds::next_pick`] has just returned, to the last visitor's visit.
    pub fn rest_of_pass(&self, Pick { block, symbol, .. }: Pick) -> Vec<u32> {
        let Visit { part, of, .. } = self.current;
        let share = self.share_of(block);
        let later = share - parts(share, part + 1, of);
        let ids = ids_of(self.blocks[block as usize].generation);
        let follows = |id: &u32| Some(if id + 1 >= ids.end { ids.start } else { id + 1 });
        std::iter::successors(Some(symbol), follows).take(1 + (self.left + later) as usize).collect()
    }

    /// Returns the blocks of the next `most` steps, and the blocks that visitor 0 visits in the next `most` slots.
    pub fn coming(&self, most: u32) -> impl Iterator<Item = u32> + '_ {
        let wrapped = |place: Place| if place.slot >= self.end() { START } else { place };
        let steps =
            std::iter::successors(Some(wrapped(self.place)), move |&place| Some(wrapped(self.after(place))));
        let slots = (1..=most).map(|ahead| (self.place.slot + ahead) % self.end().max(1));
        let blocks = steps.take(most as usize).map(|place| self.visit(place).block).chain(slots);
        blocks.filter(|block| *block < self.end() && !self.blocks[*block as usize].is_withdrawn)
    }

    /// Returns the number of the first block with a source symbol that was not sent yet.
    pub fn complete_to(&self) -> u32 {
        self.complete_to
    }

    /// Returns the number of blocks so far.
    pub fn end(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns the number of symbols sent so far.
    pub fn symbols_sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of source symbols sent so far, each counted once.
    pub fn symbols_sent_first(&self) -> u64 {
        self.sent_first
    }

    /// Returns the number of complete rounds.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Returns whether the next symbol starts another round.
    pub fn is_between_rounds(&self) -> bool {
        self.place == START && self.left == 0
    }

    /// Returns whether all blocks that are known so far were sent, and further blocks may follow.
    pub fn waits_for_blocks(&self) -> bool {
        let misses_leading = !self.is_whole && self.end() < self.leading;
        self.live == 0 || misses_leading || self.left == 0 && self.place.slot >= self.end()
    }

    fn planned(&self) -> Plan {
        let blocks = self.end().max(1);
        let window = self.window.min(blocks);
        let visitors = self.share.div_ceil(VISIT).min(window);
        let lead_every = [window, blocks].into_iter().find(|every| every / LEAD_FROM >= self.leading.max(1));
        Plan { visitors, window, lead_every }
    }

    /// Moves the next step past visits without symbols. At the end of a round, moves it to the start of the next round.
    fn seek(&mut self) {
        loop {
            if self.place.slot >= self.end() {
                if self.is_whole {
                    self.rounds += 1;
                    (self.place, self.plan) = (START, self.planned());
                }
                return;
            }
            if self.count(self.visit(self.place)) > 0 {
                return;
            }
            self.place = self.after(self.place);
        }
    }

    /// Returns the number of copies of leading blocks at the start of a slot.
    fn leads(&self, slot: u32) -> u32 {
        match self.plan.lead_every {
            Some(every) if slot.is_multiple_of(every) => self.leading.min(self.end()),
            _ => 0,
        }
    }

    fn visit(&self, Place { slot, step }: Place) -> Visit {
        match step.checked_sub(self.leads(slot)) {
            None => Visit { block: step, part: 0, of: 1 },
            Some(visitor) => {
                let Plan { visitors, window, .. } = self.plan;
                let behind = parts(window, visitor, visitors);
                let block = if slot >= behind { slot - behind } else { slot + self.end() - behind };
                Visit { block, part: visitor, of: visitors }
            }
        }
    }

    fn after(&self, Place { slot, step }: Place) -> Place {
        match step + 1 < self.leads(slot) + self.plan.visitors {
            true => Place { slot, step: step + 1 },
            false => Place { slot: slot + 1, step: 0 },
        }
    }

    /// Returns the number of symbols of a visit.
    fn count(&self, Visit { block, part, of }: Visit) -> u32 {
        if self.blocks[block as usize].is_withdrawn {
            return 0;
        }
        let share = self.share_of(block);
        parts(share, part + 1, of) - parts(share, part, of)
    }

    /// Returns the number of symbols of a block per round.
    fn share_of(&self, block: u32) -> u32 {
        let weight = |symbols: u16| u64::from(symbols) + u64::from(MARGIN);
        let symbols = self.blocks[block as usize].symbols;
        (u64::from(self.share) * weight(symbols) / weight(self.symbols_per_block)) as u32
    }

    fn take(&mut self, block: u32) -> Pick {
        let entry = &mut self.blocks[block as usize];
        let symbol = entry.next;
        let ids = ids_of(entry.generation);
        entry.next = if symbol + 1 >= ids.end { ids.start } else { symbol + 1 };
        let is_source = symbol < u32::from(entry.symbols);
        self.sent += 1;
        self.sent_first = (self.sent_first + u64::from(is_source)).min(self.sources);
        self.pass_complete();
        Pick { block, symbol, kind: if is_source { PickKind::Front } else { PickKind::Repair } }
    }

    fn pass_complete(&mut self) {
        let is_sent = |block: &Block| block.is_withdrawn || block.next >= block.symbols.into();
        while self.blocks.get(self.complete_to as usize).is_some_and(is_sent) {
            self.complete_to += 1;
        }
    }
}

/// Returns `part` parts of `all`, if it is divided into `of` equal parts.
fn parts(all: u32, part: u32, of: u32) -> u32 {
    (u64::from(all) * u64::from(part) / u64::from(of)) as u32
}

#[cfg(test)]
mod tests;
