//! Symbols that a relay fetches from its parent for its children: a limited number at a time, the rest in turn.

use std::collections::BTreeMap;

/// Maximum number of symbols fetched at a time; also limited to this part of the cache.
pub(super) const MAX_SYMBOLS: usize = 8_192;
const PART: usize = 8;

/// Queued blocks per branch; a child that needs more requests it again.
pub(super) const MAX_QUEUED: usize = 8_192;

/// Symbols that are on their way, by block.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    wanted: BTreeMap<u32, u16>,
    /// All of them.
    under_way: usize,
    /// Something is to be fetched that was not before.
    pub(super) has_more: bool,
}

impl Fetches {
    /// Whether another block may be fetched when `room` symbols fit the cache, for a branch with this number of symbols waiting to leave:
    /// symbols that arrive before they can leave would be discarded.
    pub(super) fn has_room(&self, room: usize, waiting: usize) -> bool {
        self.under_way + waiting < (room / PART).clamp(1, MAX_SYMBOLS)
    }

    /// Requests this number of symbols of a block.
    pub(super) fn want(&mut self, block: u32, symbols: u16) {
        let wanted = self.wanted.entry(block).or_default();
        // Symbols fetched for one branch serve the others.
        let more = symbols.saturating_sub(*wanted);
        *wanted += more;
        self.under_way += usize::from(more);
        self.has_more |= more > 0;
    }

    /// Whether symbols of this block are wanted.
    pub(super) fn wants(&self, block: u32) -> bool {
        self.wanted.contains_key(&block)
    }

    /// Number of symbols of this block that are still expected.
    pub(super) fn left(&self, block: u32) -> u16 {
        self.wanted.get(&block).copied().unwrap_or(0)
    }

    /// One of them has come.
    pub(super) fn on_symbol(&mut self, block: u32) {
        let Some(left) = self.wanted.get_mut(&block) else { return };
        *left -= 1;
        self.under_way -= 1;
        if *left == 0 {
            self.wanted.remove(&block);
        }
    }

    /// Forgets the blocks before this one.
    pub(super) fn forget_before(&mut self, block: u32) {
        self.wanted = self.wanted.split_off(&block);
        self.under_way = self.iter().map(|(_, symbols)| usize::from(symbols)).sum();
    }

    /// Symbols that are on their way, by block.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        self.wanted.iter().map(|(block, symbols)| (*block, *symbols))
    }
}

/// Blocks that a branch lacks and that are not fetched yet.
#[derive(Debug, Default)]
pub(super) struct Queue(BTreeMap<u32, Queued>);

/// Symbols that a branch lacks of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Queued {
    pub(super) symbols: u16,
    /// Whether the received symbols did not verify.
    pub(super) wrong: bool,
}

impl Queue {
    /// Queues this number of symbols of a block; returns whether that is new.
    pub(super) fn add(&mut self, block: u32, symbols: u16, wrong: bool) -> bool {
        if self.0.len() >= MAX_QUEUED && !self.0.contains_key(&block) {
            return false;
        }
        let queued = self.0.entry(block).or_default();
        let is_more = symbols > queued.symbols;
        *queued = Queued { symbols: symbols.max(queued.symbols), wrong: wrong || queued.wrong };
        is_more
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first of them, whose turn it is.
    pub(super) fn pop(&mut self) -> Option<(u32, Queued)> {
        self.0.pop_first()
    }

    /// Forgets the blocks before this one.
    pub(super) fn forget_before(&mut self, block: u32) {
        self.0 = self.0.split_off(&block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_fetches_are_bounded() {
        let mut fetches = Fetches::default();
        for block in 0..10 {
            assert_eq!(fetches.has_room(90 * PART, 10), block < 8);
            fetches.want(block, 10);
        }
        fetches.want(3, 7);
        assert_eq!(fetches.under_way, 100, "what is wanted already is not wanted twice");
        (0..25).for_each(|_| fetches.on_symbol(3));
        assert!(!fetches.wants(3) && fetches.under_way == 90);
        fetches.forget_before(8);
        assert_eq!((fetches.under_way, fetches.iter().count()), (20, 2));
        assert!(!fetches.has_room(0, 0) && Fetches::default().has_room(0, 0));
    }

    #[test]
    fn waiting_fetches_are_ordered_and_bounded() {
        let mut queue = Queue::default();
        for block in (0..MAX_QUEUED as u32 + 10).rev() {
            queue.add(block, 4, false);
        }
        assert_eq!(queue.0.len(), MAX_QUEUED);
        assert!(!queue.add(5000, 3, true) && queue.add(5000, 9, false));
        assert_eq!(queue.pop(), Some((10, Queued { symbols: 4, wrong: false })));
        queue.forget_before(5000);
        assert_eq!(queue.pop(), Some((5000, Queued { symbols: 9, wrong: true })));
    }
}
