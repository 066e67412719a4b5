//! Schedule of one branch of a relay: the counterpart of a source's `RepairScheduler`, which can make new symbols where a relay has only
//! the received ones.
//!
//! The order is: repairs (symbols of blocks that are nearly complete there); the first pass (each symbol of a block when it arrives, the
//! lowest block first); the backfill (blocks of which a receiver lacks most).

use super::cache::{Cache, CachedBlock};
use faircast_core::packet::Seq;
use faircast_wire::SymbolMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The latest repairs of a block that are remembered: they may be on their way.
const RECENT: usize = 512;

/// One branch.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    ways: BTreeMap<u32, BlockProgress>,
    /// Blocks of which something has come and not left yet in the first pass.
    ready: BTreeSet<u32>,
    /// Blocks whose first pass is not over.
    open: BTreeSet<u32>,
    repairs: BTreeSet<u32>,
    backfill: BTreeSet<u32>,
    /// The first pass is beyond the blocks below this, those in `open` excepted.
    passed: u32,
    /// Whether the first pass skips the cached blocks: all receivers come back with nearly everything.
    on_request: bool,
    oldest: u32,
    pub(super) sent: u64,
}

/// How far a block is.
#[derive(Debug, Default)]
struct BlockProgress {
    /// Number of symbols, in order of arrival, that have left once.
    sent: usize,
    /// IDs of symbols to send again.
    again: VecDeque<u32>,
    /// Symbols most recently sent again, with their packet numbers.
    recent: VecDeque<(u32, Seq)>,
    /// Symbols that a receiver waits for and that have not arrived.
    waiting: u16,
}

/// A symbol picked for sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) block: u32,
    /// The how-manieth that came.
    pub(super) at: usize,
    pub(super) id: u32,
    pub(super) symbols: u16,
    /// Whether this is the first pass.
    pub(super) first: bool,
}

/// Result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Answer {
    /// Whether anything will be sent that would not have been.
    pub(super) sends: bool,
    /// Symbols that must be fetched from the parent first.
    pub(super) lacks: u16,
}

impl Schedule {
    /// A symbol of this block has come.
    pub(super) fn on_symbol(&mut self, block: u32, stored: &CachedBlock) {
        if block < self.oldest {
            return;
        }
        let way = self.ways.entry(block).or_default();
        if !stored.again && !self.on_request {
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

    /// Records that these blocks are no longer cached.
    pub(super) fn on_gone(&mut self, block: u32) {
        self.ways.remove(&block);
        self.ready.remove(&block);
        self.open.remove(&block);
        self.repairs.remove(&block);
        self.backfill.remove(&block);
    }

    /// Records that the cached symbols of this block are replaced by others; expected symbols stay expected.
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

    /// Records that all source symbols of the blocks before this one have left the source once: blocks of which nothing has arrived are
    /// passed here too.
    pub(super) fn on_passed(&mut self, block: u32) {
        self.passed = self.passed.max(block);
    }

    /// Switches to sending on request: all receivers here have nearly everything.
    pub(super) fn send_on_request(&mut self) {
        self.on_request = true;
        self.ready.clear();
        self.open.clear();
    }

    /// Handles a request for symbols of a block from a receiver that has seen the stream up to `seen`, and has `held` of the block.
    pub(super) fn request(
        &mut self,
        cache: &Cache,
        block: u32,
        symbols: u16,
        seen: Seq,
        held: Option<&SymbolMap>,
    ) -> Answer {
        if symbols == 0 || block < self.oldest || block >= self.complete_to() {
            return Answer::default(); // it will come anyway
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
        // Symbols that have never left here serve everybody.
        while need > 0 && way.sent < stored.len() {
            way.again.push_back(stored.id(way.sent));
            (way.sent, need) = (way.sent + 1, need - 1);
        }
        // Only sent symbols that are lost there are sent again; without a map the losses are unknown, and all are sent.
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

    /// Picks the next symbol to send. [`Schedule::sent`] must follow before the next call.
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

    /// Records that the picked symbol has left as packet `seq`.
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

    /// All symbols of the blocks before this one have left once, or are not cached.
    pub(super) fn complete_to(&self) -> u32 {
        self.open.first().copied().unwrap_or(self.passed)
    }

    /// Returns the oldest cached block.
    pub(super) const fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Whether nothing waits to leave.
    pub(super) fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.repairs.is_empty() && self.backfill.is_empty()
    }

    /// Number of symbols of a block that a receiver waits for and that have not arrived.
    pub(super) fn awaited(&self, block: u32) -> u16 {
        self.ways.get(&block).map_or(0, |way| way.waiting)
    }

    /// Records that a receiver waits for this number of symbols of a block; returns whether that is more than before.
    pub(super) fn await_at_least(&mut self, block: u32, symbols: u16) -> bool {
        if symbols == 0 || block < self.oldest || block >= self.complete_to() {
            return false; // it will come anyway
        }
        let waiting = &mut self.ways.entry(block).or_default().waiting;
        let is_more = symbols > *waiting;
        *waiting = symbols.max(*waiting);
        is_more
    }

    /// Limits the expected symbols of this block to this number.
    pub(super) fn awaits_at_most(&mut self, block: u32, symbols: u16) {
        if let Some(way) = self.ways.get_mut(&block) {
            way.waiting = way.waiting.min(symbols);
        }
    }

    /// Symbols that wait to leave again.
    pub(super) fn waiting(&self) -> usize {
        let blocks = self.repairs.iter().chain(&self.backfill);
        blocks.filter_map(|block| self.ways.get(block)).map(|way| way.again.len()).sum()
    }

    /// Symbols that leave again of each block that waits.
    pub(super) fn scheduled(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        let blocks = self.repairs.iter().chain(&self.backfill);
        blocks.filter_map(|block| Some((*block, self.ways.get(block)?.again.len().min(0xffff) as u16)))
    }

    /// In how many blocks this one is needed here: soon when it has not left, never when it has.
    pub(super) fn next_use(&self, block: u32) -> u32 {
        let first = self.ready.first().or(self.open.first()).copied().unwrap_or(self.passed);
        if self.repairs.contains(&block) || self.open.contains(&block) && block <= first {
            return 0;
        }
        if self.open.contains(&block) || self.backfill.contains(&block) {
            return block.abs_diff(first);
        }
        // It has left, and any repeated request follows shortly after.
        let age = self.passed.saturating_sub(block);
        if age < RECENT_BLOCKS { age } else { (u32::MAX / 2).saturating_add(age) }
    }
}

impl BlockProgress {
    /// Number of symbols on their way to a receiver that has seen the stream up to `seen`, and has `held`.
    fn coming(&self, stored: &CachedBlock, seen: Seq, held: Option<&SymbolMap>) -> usize {
        let lacking = |id: u32| is_lacking(stored, held, id);
        self.again.iter().filter(|id| lacking(**id)).count()
            + self.recent.iter().filter(|(id, seq)| *seq > seen && lacking(*id)).count()
            + usize::from(self.waiting)
    }
}

/// Whether a receiver that has `held` lacks this symbol, as far as the map shows.
fn is_lacking(stored: &CachedBlock, held: Option<&SymbolMap>, id: u32) -> bool {
    held.is_none_or(|held| id >= u32::from(stored.symbols) || !held.has(id))
}

/// A block that has left is requested again, if at all, before this number of further blocks have left.
const RECENT_BLOCKS: u32 = 32;

#[cfg(test)]
mod tests;
