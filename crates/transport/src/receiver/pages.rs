//! Pages of signed content at the receiver: a block is accepted if a page of the source contains its hash
//! (docs/design/security.md).

use super::trust::Trust;
use crate::object::Hash;
use faircast_core::time::{Span, Time};
use faircast_wire::Hashes;
use std::collections::{BTreeMap, BTreeSet};

/// Delay before a page is requested. During this time, the source may send the page without a request.
const GRACE: Span = Span::from_millis(200);

/// The smallest possible hash.
const MIN_HASH: Hash = Hash([0; 32]);

/// A complete block and the hash of its data.
type CompleteBlock = (Vec<u8>, Hash);

/// The verdict on a complete block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// The block is the source's.
    Right,
    /// The block is not the source's.
    Forged,
    /// No page of this block has arrived yet.
    Unknown,
}

/// The received pages, and the blocks that wait for their pages.
pub(super) struct Pages {
    trust: Trust,
    /// The hashes of each block. A block that changed while files were withdrawn has several hashes.
    hashes: BTreeSet<(u32, Hash)>,
    /// Blocks without a hash, complete or stored by an earlier run, each with the time at which to request its page. The time is
    /// `NEVER` until the source has reached the block.
    waiting: BTreeMap<u32, Time>,
    /// The earliest future time in `waiting`.
    ask_at: Time,
    /// All blocks of a live stream below this number are written; hashes of these blocks are ignored.
    written: u32,
    /// The source has reached all blocks below this number.
    passed: u32,
    /// The waiting blocks that are not stored.
    held: BTreeMap<u32, CompleteBlock>,
    held_bytes: usize,
    held_most: usize,
    forged: u64,
}

impl Pages {
    /// Creates the state without pages for the session that `trust` is about. Complete blocks that wait for their pages take up
    /// to `most` bytes.
    pub(super) fn new(trust: Trust, most: usize) -> Pages {
        Pages {
            trust,
            hashes: BTreeSet::new(),
            waiting: BTreeMap::new(),
            ask_at: Time::NEVER,
            written: 0,
            passed: 0,
            held: BTreeMap::new(),
            held_bytes: 0,
            held_most: most,
            forged: 0,
        }
    }

    /// Restarts for a new session with the same content, which sends its own pages.
    pub(super) fn restart(&mut self, trust: Trust) {
        self.trust = trust;
        self.hashes.clear();
        self.waiting.clear();
        self.held.clear();
        (self.held_bytes, self.passed, self.written, self.ask_at) = (0, 0, 0, Time::NEVER);
    }

    /// Adds a block that was stored by an earlier run. Returns whether it waits for its page; `false` if the page has already
    /// arrived.
    pub(super) fn doubt(&mut self, block: u32, now: Time) -> bool {
        let waits = self.hashes_of(block).next().is_none();
        if waits {
            let ask_at = if block < self.passed { now + GRACE } else { Time::NEVER };
            self.waiting.insert(block, ask_at);
            self.ask_at = self.ask_at.min(ask_at);
        }
        waits
    }

    /// Forgets stored blocks, except those for which `has` returns true. Also discards the held blocks.
    pub(super) fn forget_all_but(&mut self, has: impl Fn(u32) -> bool) {
        self.held.clear();
        self.held_bytes = 0;
        self.waiting.retain(|block, _| has(*block));
    }

    /// Whether a page contains a new hash.
    pub(super) fn is_news(&self, page: &Hashes) -> bool {
        let mut hashes = (page.first_block..).zip(&page.hashes);
        hashes.any(|(block, hash)| block >= self.written && !self.hashes.contains(&(block, Hash(*hash))))
    }

    /// Whether a block waits for this page.
    pub(super) fn is_awaited(&self, page: &Hashes) -> bool {
        let end = page.first_block.saturating_add(page.hashes.len() as u32);
        self.waiting.range(page.first_block..end).next().is_some()
    }

    /// Whether a page of this block has arrived.
    pub(super) fn has_page_of(&self, block: u32) -> bool {
        self.hashes_of(block).next().is_some()
    }

    /// Checks that the source has signed this page; if so, stores its hashes.
    pub(super) fn learn(&mut self, page: &Hashes) -> bool {
        let is_signed = self.trust.signed_page(page);
        if is_signed {
            let hashes = (page.first_block..).zip(&page.hashes);
            for (block, hash) in hashes.filter(|(block, _)| *block >= self.written) {
                self.hashes.insert((block, Hash(*hash)));
            }
        }
        is_signed
    }

    /// Returns whether the source's pages confirm this hash of a block, contradict it, or do not contain the block.
    pub(super) fn judge(&self, block: u32, hash: Hash) -> Judged {
        match self.hashes_of(block).next() {
            _ if self.hashes.contains(&(block, hash)) => Judged::Right,
            Some(_) => Judged::Forged,
            None => Judged::Unknown,
        }
    }

    fn hashes_of(&self, block: u32) -> impl Iterator<Item = &(u32, Hash)> {
        self.hashes.range((block, MIN_HASH)..).take_while(move |(of, _)| *of == block)
    }

    /// Forgets a block that contains no data any longer.
    pub(super) fn forget(&mut self, block: u32) {
        self.waiting.remove(&block);
        let held = self.held.remove(&block);
        self.held_bytes -= held.map_or(0, |(bytes, _)| bytes.len());
    }

    /// Counts a complete block that differs from the source's block. Returns the new count.
    pub(super) fn count_forged(&mut self) -> u64 {
        self.forged += 1;
        self.forged
    }

    /// Returns the number of complete blocks that differed from the source's blocks.
    pub(super) fn forged(&self) -> u64 {
        self.forged
    }

    /// Holds a complete block until its page arrives. Returns the block if there is no room for it.
    pub(super) fn hold(&mut self, block: u32, bytes: Vec<u8>, hash: Hash, now: Time) -> Result<(), Vec<u8>> {
        if self.held_bytes + bytes.len() > self.held_most {
            return Err(bytes);
        }
        self.held_bytes += bytes.len();
        self.held.insert(block, (bytes, hash));
        self.waiting.insert(block, now + GRACE);
        self.ask_at = self.ask_at.min(now + GRACE);
        Ok(())
    }

    /// Whether the block is complete and is held here until its page arrives.
    pub(super) fn holds(&self, block: u32) -> bool {
        self.held.contains_key(&block)
    }

    /// Whether this block waits for its page, either held here or stored.
    pub(super) fn is_waiting(&self, block: u32) -> bool {
        !self.waiting.is_empty() && self.waiting.contains_key(&block)
    }

    /// Removes and returns the first block that waits for this page, with its bytes and hash if the block was held here.
    pub(super) fn release(&mut self, page: &Hashes) -> Option<(u32, Option<CompleteBlock>)> {
        let end = page.first_block.saturating_add(page.hashes.len() as u32);
        let (&block, _) = self.waiting.range(page.first_block..end).next()?;
        self.waiting.remove(&block);
        let bytes = self.held.remove(&block);
        self.held_bytes -= bytes.as_ref().map_or(0, |(bytes, _)| bytes.len());
        Some((block, bytes))
    }

    /// Records that the source has reached the blocks below `passed`. Their pages are due from now on.
    pub(super) fn pass(&mut self, passed: u32, now: Time) {
        if passed <= self.passed {
            return;
        }
        for (_, ask_at) in self.waiting.range_mut(self.passed..passed) {
            *ask_at = (*ask_at).min(now + GRACE);
            self.ask_at = self.ask_at.min(now + GRACE);
        }
        self.passed = passed;
    }

    /// Returns the time at which the next page is to be requested; `NEVER` if no page is missing.
    pub(super) fn deadline(&self) -> Time {
        self.ask_at
    }

    /// Begins a request of the pages that are due; [`Pages::wants`] then selects their blocks.
    pub(super) fn ask(&mut self, now: Time) {
        let later = self.waiting.values().copied().filter(|ask_at| *ask_at > now);
        self.ask_at = later.min().unwrap_or(Time::NEVER);
    }

    /// Whether the page of this block is to be requested.
    pub(super) fn wants(&self, block: u32, now: Time) -> bool {
        self.waiting.get(&block).is_some_and(|ask_at| *ask_at <= now)
    }

    /// Removes the hashes of blocks of a live stream below `written`. These blocks are written and will not be examined again.
    pub(super) fn forget_written(&mut self, written: u32) {
        self.written = self.written.max(written);
        while self.hashes.first().is_some_and(|(block, _)| *block < self.written) {
            self.hashes.pop_first();
        }
    }

    /// Drops the blocks below `oldest`, which are not wanted any longer.
    pub(super) fn drop_before(&mut self, oldest: u32) {
        self.hashes = self.hashes.split_off(&(oldest, MIN_HASH));
        self.waiting = self.waiting.split_off(&oldest);
        self.held = self.held.split_off(&oldest);
        self.held_bytes = self.held.values().map(|(bytes, _)| bytes.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::SessionId;
    use faircast_wire::{Signed, SigningKey, TransferId};

    #[test]
    fn hashes_of_a_live_stream_are_dropped_after_their_blocks() {
        let key = SigningKey::from_seed([7; 32]);
        let about =
            Signed { session: SessionId(1), salt: [2; 16], transfer: TransferId([3; 16]), started: 4 };
        let mut pages = Pages::new(Trust::of_key(key.verify_key(), about), 1 << 20);
        let page = |first: u32| {
            let hashes: Vec<[u8; 32]> = (0..8).map(|_| [first as u8; 32]).collect();
            Hashes { first_block: first, signature: key.sign_page(&about, first, &hashes), hashes }
        };
        for first in (0..800).step_by(8) {
            assert!(pages.is_news(&page(first)) && pages.learn(&page(first)));
            assert_eq!(pages.judge(first + 3, Hash([first as u8; 32])), Judged::Right);
            // All blocks except the newest two are written.
            pages.forget_written(first + 6);
            assert_eq!(pages.hashes.len(), 2);
        }
        assert!(!pages.is_news(&page(400)), "what is written needs no hash");
        pages.learn(&page(400));
        assert_eq!(pages.hashes.len(), 2);
    }

    #[test]
    fn page_of_hashes_is_requested_for_a_stored_block_without_hash() {
        let key = SigningKey::from_seed([7; 32]);
        let about =
            Signed { session: SessionId(1), salt: [2; 16], transfer: TransferId([3; 16]), started: 4 };
        let mut pages = Pages::new(Trust::of_key(key.verify_key(), about), 1 << 20);
        pages.pass(5, Time::ZERO);
        // The verification takes place at this moment, because the disk is slow.
        let now = Time::ZERO + Span::from_secs(2);
        assert!(pages.doubt(7, now) && pages.deadline().is_never(), "the source comes to it");
        assert!(pages.doubt(3, now));
        assert_eq!(pages.deadline(), now + GRACE);
        assert!(pages.wants(3, now + GRACE) && !pages.wants(7, now + GRACE));
        let hashes = vec![[9; 32]; 8];
        let page = Hashes { first_block: 0, signature: key.sign_page(&about, 0, &hashes), hashes };
        assert!(pages.learn(&page));
        assert!(!pages.doubt(2, now), "its page is here");
    }
}
