//! Schedule of one branch of a relay. It corresponds to the `RepairScheduler` of a source. Unlike a source, a relay has only the
//! symbols that it has received, and cannot create new symbols.
//!
//! Symbols are sent in this order. First repairs: symbols of blocks that are nearly complete downstream. Then the first pass:
//! each symbol of a block when it arrives, starting with the block with the lowest number. Last the backfill: symbols of blocks
//! of which a receiver lacks more than half.

use super::cache::{Cache, CachedBlock};
use faircast_core::packet::Seq;
use faircast_wire::SymbolMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of recent repairs that are recorded per block, because they may still be in flight.
const RECENT: usize = 512;

/// The schedule of one branch.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    ways: BTreeMap<u32, BlockProgress>,
    /// Blocks that have symbols waiting for the first pass.
    ready: BTreeSet<u32>,
    /// Blocks whose first pass is not finished.
    open: BTreeSet<u32>,
    repairs: BTreeSet<u32>,
    backfill: BTreeSet<u32>,
    /// Number of the first block that the first pass has not reached. Blocks before it are finished unless they are in `open`.
    passed: u32,
    /// Whether the first pass is skipped, because all receivers resume with nearly all content.
    on_request: bool,
    oldest: u32,
    pub(super) sent: u64,
}

/// Progress of a block.
#[derive(Debug, Default)]
struct BlockProgress {
    /// Number of symbols of the block that have been sent at least once. These are the first symbols in order of arrival.
    sent: usize,
    /// IDs of symbols to send again.
    again: VecDeque<u32>,
    /// IDs of the symbols most recently sent again, with their packet numbers.
    recent: VecDeque<(u32, Seq)>,
    /// Number of symbols that a receiver needs and that have not arrived yet.
    waiting: u16,
}

/// A symbol picked for sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) block: u32,
    /// Position of the symbol in order of arrival.
    pub(super) at: usize,
    pub(super) id: u32,
    pub(super) symbols: u16,
    /// Whether the symbol is sent in the first pass.
    pub(super) first: bool,
}

/// Result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Answer {
    /// Whether the request schedules additional symbols.
    pub(super) sends: bool,
    /// Number of symbols that must first be fetched from the parent.
    pub(super) lacks: u16,
}

impl Schedule {
    /// Records that a symbol of this block has arrived.
    pub(super) fn on_symbol(&mut self, block: u32, stored: &CachedBlock) {
        if block < self.oldest {
            return;
        }
        let way = self.ways.entry(block).or_default();
        if !stored.on_request && !self.on_request {
            if stored.len() == 1 {
                self.open.insert(block);
                self.passed = self.passed.max(block + 1);
            }
            if way.sent < usize::from(stored.symbols) {
                way.waiting = way.waiting.saturating_sub(1);
                self.ready.insert(block);
                return;
            }
        }
        if way.waiting > 0 {
            way.waiting -= 1;
            if way.sent + 1 == stored.len() {
                way.sent += 1;
            }
            way.again.push_back(stored.id(stored.len() - 1));
            self.repairs.insert(block);
        }
    }

    /// Records the removal of this block from the cache.
    pub(super) fn on_gone(&mut self, block: u32) {
        self.ways.remove(&block);
        self.ready.remove(&block);
        self.open.remove(&block);
        self.repairs.remove(&block);
        self.backfill.remove(&block);
    }

    /// Records that new symbols replace the cached symbols of this block. The number of expected symbols stays the same.
    pub(super) fn on_replaced(&mut self, block: u32) {
        let waiting = self.awaited(block);
        self.on_gone(block);
        if waiting > 0 {
            self.ways.insert(block, BlockProgress { waiting, ..BlockProgress::default() });
        }
    }

    /// Forgets the blocks before this one.
    pub(super) fn forget_before(&mut self, block: u32) {
        self.oldest = self.oldest.max(block);
        self.passed = self.passed.max(block);
        self.ways = self.ways.split_off(&block);
        for set in [&mut self.ready, &mut self.open, &mut self.repairs, &mut self.backfill] {
            *set = set.split_off(&block);
        }
    }

    /// Records that the source has sent all source symbols of the blocks before this one. The first pass of this branch then
    /// skips the blocks before this one of which no symbol was received.
    pub(super) fn on_passed(&mut self, block: u32) {
        self.passed = self.passed.max(block);
    }

    /// Records that the first pass has ended within this block. Its other symbols are sent on request.
    pub(super) fn on_skipped(&mut self, block: u32) {
        self.open.remove(&block);
    }

    /// Switches to sending on request, because all receivers have nearly all content.
    pub(super) fn send_on_request(&mut self) {
        self.on_request = true;
        self.ready.clear();
        self.open.clear();
    }

    /// Handles a request for symbols of a block. The receiver has seen packets up to `seen`, and has the symbols in `held`.
    pub(super) fn request(
        &mut self,
        cache: &Cache,
        block: u32,
        symbols: u16,
        seen: Seq,
        held: Option<&SymbolMap>,
    ) -> Answer {
        if symbols == 0 || block < self.oldest || block >= self.complete_to() {
            return Answer::default(); // the symbols will be sent anyway
        }
        let way = self.ways.entry(block).or_default();
        let Some(stored) = cache.get(block) else {
            let lacks = symbols.saturating_sub(way.waiting);
            way.waiting += lacks;
            return Answer { sends: lacks > 0, lacks };
        };
        let lacking = |id: u32| is_lacking(stored, held, id);
        let coming = way.coming(stored, seen, held);
        let mut need = usize::from(symbols.min(stored.symbols)).saturating_sub(coming);
        if need == 0 {
            return Answer::default();
        }
        let before = way.again.len();
        // Symbols that were never sent on this branch are useful to all its receivers, except those that reuse earlier content.
        while need > 0 && way.sent < stored.len() {
            let id = stored.id(way.sent);
            way.sent += 1;
            if lacking(id) {
                way.again.push_back(id);
                need -= 1;
            }
        }
        // Only symbols that the receiver has lost are sent again. Without a map of the receiver's symbols, its losses are
        // unknown, so any symbol may be sent again.
        let mostly = need * 2 > usize::from(stored.symbols);
        if need > 0 && (held.is_some() || mostly) {
            for at in 0..stored.len() {
                let id = stored.id(at);
                let is_reported = id < u32::from(stored.symbols) || held.is_none();
                let is_coming = way.again.contains(&id)
                    || way.recent.iter().any(|(recent, seq)| *recent == id && *seq > seen);
                if need > 0 && is_reported && lacking(id) && !is_coming {
                    way.again.push_back(id);
                    need -= 1;
                }
            }
        }
        let lacks = need as u16;
        way.waiting += lacks;
        let sends = way.again.len() > before;
        if sends {
            let queue = if mostly { &mut self.backfill } else { &mut self.repairs };
            queue.insert(block);
        }
        Answer { sends: sends || lacks > 0, lacks }
    }

    /// Picks the next symbol to send. The caller must call [`Schedule::sent`] before the next call.
    pub(super) fn pick(&mut self, cache: &Cache) -> Option<Pick> {
        loop {
            let repair = self.repairs.first().copied();
            let first = self.ready.first().copied();
            let (block, is_first) = match (repair, first) {
                (Some(block), _) => (block, false),
                (None, Some(block)) => (block, true),
                (None, None) => (*self.backfill.first()?, false),
            };
            let (stored, way) = (cache.get(block), self.ways.get_mut(&block));
            let (Some(stored), Some(way)) = (stored, way) else {
                self.on_gone(block);
                continue;
            };
            let pick =
                |at: usize| Pick { block, at, id: stored.id(at), symbols: stored.symbols, first: is_first };
            if is_first {
                if way.sent < stored.len().min(usize::from(stored.symbols)) {
                    return Some(pick(way.sent));
                }
                self.ready.remove(&block);
                continue;
            }
            match way.again.front().map(|id| stored.place_of(*id)) {
                Some(Some(at)) => return Some(pick(at)),
                Some(None) => drop(way.again.pop_front()),
                None => {
                    self.repairs.remove(&block);
                    self.backfill.remove(&block);
                }
            }
        }
    }

    /// Records that the picked symbol was sent as packet `seq`.
    pub(super) fn sent(&mut self, pick: Pick, seq: Seq, cache: &Cache) {
        self.sent += 1;
        let Some(way) = self.ways.get_mut(&pick.block) else { return };
        if !pick.first {
            way.again.pop_front();
            if way.recent.len() == RECENT {
                way.recent.pop_front();
            }
            way.recent.push_back((pick.id, seq));
            if way.again.is_empty() {
                self.repairs.remove(&pick.block);
                self.backfill.remove(&pick.block);
            }
            return;
        }
        way.sent += 1;
        let here = cache.get(pick.block).map_or(0, CachedBlock::len);
        if way.sent >= usize::from(pick.symbols) {
            self.open.remove(&pick.block);
        }
        if way.sent >= here.min(usize::from(pick.symbols)) {
            self.ready.remove(&pick.block);
        }
    }

    /// Returns the number of the first block with a symbol that has not been sent yet. Blocks that are not cached count as sent.
    pub(super) fn complete_to(&self) -> u32 {
        self.open.first().copied().unwrap_or(self.passed)
    }

    /// Returns the number of the oldest block that was not discarded.
    pub(super) const fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Whether no symbol waits to be sent.
    pub(super) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.repairs.is_empty() && self.backfill.is_empty()
    }

    /// Returns the number of symbols of a block that a receiver needs and that have not arrived yet.
    pub(super) fn awaited(&self, block: u32) -> u16 {
        self.ways.get(&block).map_or(0, |way| way.waiting)
    }

    /// Records that a receiver waits for `symbols` symbols of a block; returns whether this is more than before.
    pub(super) fn await_at_least(&mut self, block: u32, symbols: u16) -> bool {
        if symbols == 0 || block < self.oldest || block >= self.complete_to() {
            return false; // the symbols will be sent anyway
        }
        let waiting = &mut self.ways.entry(block).or_default().waiting;
        let is_more = symbols > *waiting;
        *waiting = symbols.max(*waiting);
        is_more
    }

    /// Limits the number of expected symbols of this block.
    pub(super) fn awaits_at_most(&mut self, block: u32, symbols: u16) {
        if let Some(way) = self.ways.get_mut(&block) {
            way.waiting = way.waiting.min(symbols);
        }
    }

    /// Returns the number of symbols that wait to be sent on request.
    pub(super) fn waiting(&self) -> usize {
        let blocks = self.repairs.iter().chain(&self.backfill);
        blocks.filter_map(|block| self.ways.get(block)).map(|way| way.again.len()).sum()
    }

    /// Returns, for each block, the number of symbols that wait to be sent on request.
    pub(super) fn scheduled(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        let blocks = self.repairs.iter().chain(&self.backfill);
        blocks.filter_map(|block| Some((*block, self.ways.get(block)?.again.len().min(0xffff) as u16)))
    }

    /// Returns the distance in blocks to the next use of a block on this branch. The distance is small until shortly after the
    /// block was sent, and very large later.
    pub(super) fn next_use(&self, block: u32) -> u32 {
        let first = self.ready.first().or(self.open.first()).copied().unwrap_or(self.passed);
        if self.repairs.contains(&block) || self.open.contains(&block) && block <= first {
            return 0;
        }
        if self.open.contains(&block) || self.backfill.contains(&block) {
            return block.abs_diff(first);
        }
        // The block was sent. If a receiver requests the block again, the request arrives soon.
        let age = self.passed.saturating_sub(block);
        if age < RECENT_BLOCKS { age } else { (u32::MAX / 2).saturating_add(age) }
    }
}

impl BlockProgress {
    /// Returns the number of symbols that a receiver may still expect. The receiver has seen packets up to `seen`, and has the
    /// symbols in `held`.
    fn coming(&self, stored: &CachedBlock, seen: Seq, held: Option<&SymbolMap>) -> usize {
        let lacking = |id: u32| is_lacking(stored, held, id);
        self.again.iter().filter(|id| lacking(**id)).count()
            + self.recent.iter().filter(|(id, seq)| *seq > seen && lacking(*id)).count()
            + usize::from(self.waiting)
    }
}

/// Whether a receiver that has the symbols in `held` may lack this symbol.
fn is_lacking(stored: &CachedBlock, held: Option<&SymbolMap>, id: u32) -> bool {
    held.is_none_or(|held| id >= u32::from(stored.symbols) || !held.has(id))
}

/// A repeated request for a block is expected until the branch has sent this number of further blocks.
const RECENT_BLOCKS: u32 = 32;

#[cfg(test)]
mod tests;
