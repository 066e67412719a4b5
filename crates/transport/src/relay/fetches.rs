//! Symbols that a relay fetches from its parent for its children. The number of symbols that are being fetched is limited, and
//! further requests are queued.

use std::collections::BTreeMap;

/// Maximum number of symbols that are being fetched at the same time. The cache size divided by `PART` is a second limit.
pub(super) const MAX_SYMBOLS: usize = 8_192;
const PART: usize = 8;

/// Maximum number of queued blocks per branch. A child that needs symbols of further blocks must request them again.
pub(super) const MAX_QUEUED: usize = 8_192;

/// Number of expected symbols for each block.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    wanted: BTreeMap<u32, u16>,
    /// Number of expected symbols of all blocks.
    under_way: usize,
    /// Whether new requests must be sent upstream.
    pub(super) has_more: bool,
}

impl Fetches {
    /// Whether another block may be fetched: symbols that arrive too early would be discarded. `room` is the number of symbols
    /// that fit in the cache, and `waiting` the number of the branch's symbols that wait to be sent.
    pub(super) fn has_room(&self, room: usize, waiting: usize) -> bool {
        self.under_way + waiting < (room / PART).clamp(1, MAX_SYMBOLS)
    }

    /// Ensures that at least `symbols` symbols of a block are being fetched.
    pub(super) fn want(&mut self, block: u32, symbols: u16) {
        let wanted = self.wanted.entry(block).or_default();
        // Symbols fetched for one branch serve all branches.
        let more = symbols.saturating_sub(*wanted);
        *wanted += more;
        self.under_way += usize::from(more);
        self.has_more |= more > 0;
    }

    /// Whether symbols of this block are being fetched.
    pub(super) fn wants(&self, block: u32) -> bool {
        self.wanted.contains_key(&block)
    }

    /// Returns the number of expected symbols of this block.
    pub(super) fn left(&self, block: u32) -> u16 {
        self.wanted.get(&block).copied().unwrap_or(0)
    }

    /// Records that a symbol of this block has arrived.
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

    /// Returns the number of expected symbols for each block.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        self.wanted.iter().map(|(block, symbols)| (*block, *symbols))
    }
}

/// Blocks with symbols that a branch lacks, and that the relay does not fetch yet.
#[derive(Debug, Default)]
pub(super) struct Queue(BTreeMap<u32, Queued>);

/// A queued request for symbols of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Queued {
    pub(super) symbols: u16,
    /// Whether the received symbols failed verification.
    pub(super) wrong: bool,
}

impl Queue {
    /// Queues a request for `symbols` symbols of a block; returns whether this increases the number of requested symbols.
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

    /// Removes the first block from the queue.
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
    fn queued_fetches_are_ordered_by_block_and_bounded() {
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
