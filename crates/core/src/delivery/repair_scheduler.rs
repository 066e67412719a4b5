//! The repair scheduler: the source's record of sent blocks and of blocks to be repeated.
//!
//! Three kinds of symbols wait to be sent, in this order of urgency: repairs (the few symbols of a block that a receiver lacks);
//! the front (blocks that were not sent yet); and the backfill (whole blocks for receivers that joined late or were deferred).
//! The first blocks describe the content; when they are repeated, they are as urgent as repairs.

use crate::packet::Seq;
use std::collections::BTreeSet;
use std::ops::Range;

/// The symbol to send next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// Block number.
    pub block: u32,
    /// Encoding symbol ID.
    pub symbol: u32,
    /// Reason for sending the symbol.
    pub kind: PickKind,
}

/// Reason for sending a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PickKind {
    /// A source symbol in the first pass.
    Front,
    /// A requested repair symbol.
    Repair,
    /// A repeated source symbol, for receivers that lack most of the block.
    Backfill,
}

/// State of all blocks. Its memory grows with the blocks, not with the number of receivers.
#[derive(Debug, Default)]
pub struct RepairScheduler {
    blocks: Vec<Block>,
    /// Block number of `blocks[0]`. Older blocks are removed in live streams.
    base: u32,
    /// Current block of the first pass. `front_symbol` is its next symbol.
    front: u32,
    front_symbol: u32,
    /// Blocks below this number are urgent.
    urgent_below: u32,
    repairs: BTreeSet<u32>,
    backfill: BTreeSet<u32>,
    sent: u64,
    sent_first: u64,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    /// Number of source symbols, K.
    symbols: u16,
    /// Number of symbols that are still to be sent, because they were requested or follow the first pass.
    want: u16,
    /// Next source symbol of a repetition; K if the block is not repeated.
    resend: u16,
    /// Next repair symbol that was not sent yet.
    fresh: u32,
    /// Number of changes of the block's content.
    generation: u32,
    /// Whether the first pass skips the block.
    is_withdrawn: bool,
    /// Ranges of packets that contained repairs, the latest last. Requests may still arrive from a receiver that has not reached
    /// these ranges.
    batches: [Stretch; 3],
}

/// `count` symbols, sent in packets from `first` to `last`.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    first: u64,
    last: u64,
    count: u16,
}

/// Limit at which symbol IDs wrap around. RaptorQ's IDs have 24 bits, minus the padding of a block (RFC 6330, 3.2).
pub const SYMBOL_LIMIT: u32 = (1 << 24) - 1024;

/// Returns the symbol IDs of a block's content after `generation` changes. The ranges of two contents do not overlap. The range
/// is empty if no IDs are left.
pub(crate) fn ids_of(generation: u32) -> Range<u32> {
    /// Number of IDs for the content after each change. The original content has half of all IDs.
    const EACH: u32 = 1 << 14;
    let (half, before) = (SYMBOL_LIMIT / 2, generation.saturating_sub(1).min(SYMBOL_LIMIT / EACH) * EACH);
    match generation {
        0 => 0..half,
        _ if half + before + EACH <= SYMBOL_LIMIT => half + before..half + before + EACH,
        _ => SYMBOL_LIMIT..SYMBOL_LIMIT,
    }
}

impl RepairScheduler {
    /// Creates a scheduler whose blocks below `urgent_below` describe the content.
    pub fn new(urgent_below: u32) -> RepairScheduler {
        RepairScheduler { urgent_below, ..RepairScheduler::default() }
    }

    /// Adds a block of `symbols` source symbols to the content. In the first pass, `repairs` repair symbols follow it at once.
    pub fn push(&mut self, symbols: u16, repairs: u16) {
        self.blocks.push(Block {
            symbols,
            want: repairs,
            resend: symbols,
            fresh: u32::from(symbols),
            generation: 0,
            is_withdrawn: false,
            batches: [Stretch::default(); 3],
        });
    }

    /// Skips the first pass, because an earlier session has sent all blocks. Only requested symbols are sent.
    pub fn skip_front(&mut self) {
        self.front = self.end();
        self.front_symbol = 0;
    }

    /// Records that the content of block `block` has changed. Repairs use other symbol IDs, so IDs that were sent are not reused.
    /// Returns whether unused IDs remain.
    #[must_use]
    pub fn renew(&mut self, block: u32) -> bool {
        let begun = block < self.front || (block, 0) < (self.front, self.front_symbol);
        // A block may change again without new IDs if no symbol was sent since its last change.
        let has_left =
            |entry: &&mut Block| entry.generation == 0 || entry.fresh != ids_of(entry.generation).start;
        let Some(entry) = self.entry(block).filter(|_| begun).filter(has_left) else { return true };
        entry.generation += 1;
        let ids = ids_of(entry.generation);
        (entry.fresh, entry.resend) = (ids.start, entry.symbols);
        if self.backfill.remove(&block) {
            self.repairs.insert(block);
        }
        !ids.is_empty()
    }

    /// Withdraws block `block`, which no receiver needs any more: the first pass skips it. Later requests for the block are still
    /// answered, for example the requests of a relay that does not know of the withdrawal yet.
    pub fn withdraw(&mut self, block: u32) {
        self.repairs.remove(&block);
        self.backfill.remove(&block);
        _ = self.renew(block); // without unused IDs, requests are not answered
        let Some(entry) = self.entry(block) else { return };
        (entry.is_withdrawn, entry.want, entry.resend) = (true, 0, entry.symbols);
        self.pass_withdrawn();
    }

    /// Moves the front past withdrawn blocks.
    fn pass_withdrawn(&mut self) {
        while self.entry(self.front).is_some_and(|entry| entry.is_withdrawn) {
            (self.front, self.front_symbol) = (self.front + 1, 0);
        }
    }

    /// Removes the blocks before this one, whether they were sent or not.
    pub fn forget_before(&mut self, block: u32) {
        let block = block.clamp(self.base, self.end());
        self.blocks.drain(..(block - self.base) as usize);
        self.base = block;
        if self.front < block {
            (self.front, self.front_symbol) = (block, 0);
        }
        self.repairs = self.repairs.split_off(&block);
        self.backfill = self.backfill.split_off(&block);
    }

    /// Adds a request of a receiver that has received the stream up to `seen` and needs `symbols` more symbols of `block`.
    /// Symbols sent after `seen` are still in the network and are not sent twice. Returns whether further symbols will be sent.
    pub fn request(&mut self, block: u32, symbols: u16, seen: Seq) -> bool {
        let (front, urgent) = (self.front, block < self.urgent_below);
        let Some(entry) = self.entry(block) else { return false };
        if symbols == 0 || block >= front || ids_of(entry.generation).is_empty() {
            return false; // the first pass will send this block anyway
        }
        let on_its_way =
            entry.batches.iter().fold(0, |sum: u16, batch| sum.saturating_add(batch.after(seen)));
        let needed = symbols.min(entry.symbols).saturating_sub(on_its_way);
        let resending = entry.resend < entry.symbols;
        if needed == 0 || needed <= entry.want || resending {
            return false;
        }
        if entry.want == 0 {
            entry.open_batch();
        }
        let mostly_missing = u32::from(needed) * 2 > u32::from(entry.symbols) && entry.symbols > 2;
        let repeats = mostly_missing && entry.generation == 0;
        if repeats {
            entry.resend = 0;
            entry.want = entry.symbols;
        } else {
            entry.want = needed;
        }
        let queue = if repeats && !urgent { &mut self.backfill } else { &mut self.repairs };
        queue.insert(block);
        true
    }

    /// Returns the next symbol to send. Call [`RepairScheduler::sent`] before the next call.
    pub fn pick(&self) -> Option<Pick> {
        if let Some(&block) = self.repairs.first() {
            return Some(self.again(block));
        }
        if self.front < self.end() {
            return Some(Pick { block: self.front, symbol: self.front_symbol, kind: PickKind::Front });
        }
        self.backfill.first().map(|&block| self.again(block))
    }

    /// Records that the symbol from [`RepairScheduler::pick`] was sent as packet `seq`.
    pub fn sent(&mut self, pick: Pick, seq: Seq) {
        self.sent += 1;
        if pick.kind == PickKind::Front {
            self.sent_first += 1;
            self.front_symbol += 1;
            let (symbols, repairs) =
                self.entry(pick.block).map_or((0, 0), |entry| (entry.symbols, entry.want));
            if self.front_symbol >= u32::from(symbols) {
                if repairs > 0 {
                    self.repairs.insert(pick.block);
                }
                self.front += 1;
                self.front_symbol = 0;
                self.pass_withdrawn();
            }
            return;
        }
        let Some(entry) = self.entry(pick.block) else { return };
        match pick.kind {
            PickKind::Backfill => entry.resend += 1,
            _ => {
                let ids = ids_of(entry.generation);
                let first = ids.start.max(entry.symbols.into());
                entry.fresh = if entry.fresh + 1 >= ids.end { first } else { entry.fresh + 1 }
            }
        }
        entry.want = entry.want.saturating_sub(1);
        entry.batches[2].add(seq);
        if entry.want == 0 {
            entry.resend = entry.symbols;
            self.repairs.remove(&pick.block);
            self.backfill.remove(&pick.block);
        }
    }

    /// Drops all requests, because the requesting receivers are deferred or have left.
    pub fn clear_requests(&mut self) {
        for block in std::mem::take(&mut self.repairs).into_iter().chain(std::mem::take(&mut self.backfill)) {
            if let Some(entry) = self.entry(block) {
                (entry.want, entry.resend) = (0, entry.symbols);
            }
        }
    }

    /// Returns each block that waits for repairs or repetition, with the number of symbols to send. Repairs precede the backfill.
    pub fn scheduled(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        let waiting = self.repairs.iter().chain(&self.backfill);
        waiting.map(|&block| (block, self.blocks[(block - self.base) as usize].want))
    }

    /// Returns the number of the first block with a source symbol that was not sent yet.
    pub fn complete_to(&self) -> u32 {
        self.front
    }

    /// Returns the number of the oldest stored block.
    pub fn oldest(&self) -> u32 {
        self.base
    }

    /// Returns the number of blocks so far.
    pub fn end(&self) -> u32 {
        self.base + self.blocks.len() as u32
    }

    /// Returns whether no symbol waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.repairs.is_empty() && self.backfill.is_empty() && self.front >= self.end()
    }

    /// Returns the number of symbols sent so far.
    pub fn symbols_sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of symbols sent in the first pass.
    pub fn symbols_sent_first(&self) -> u64 {
        self.sent_first
    }

    fn again(&self, block: u32) -> Pick {
        let entry = &self.blocks[(block - self.base) as usize];
        if entry.resend < entry.symbols {
            Pick { block, symbol: u32::from(entry.resend), kind: PickKind::Backfill }
        } else {
            Pick { block, symbol: entry.fresh, kind: PickKind::Repair }
        }
    }

    fn entry(&mut self, block: u32) -> Option<&mut Block> {
        self.blocks.get_mut(block.checked_sub(self.base)? as usize)
    }
}

impl Block {
    /// Opens a batch for packets sent from now on; the two oldest batches are merged.
    fn open_batch(&mut self) {
        let [oldest, older, latest] = self.batches;
        if latest.count > 0 {
            self.batches = [oldest.and(older), latest, Stretch::default()];
        }
    }
}

impl Stretch {
    /// Merges this stretch with a later one.
    fn and(self, later: Stretch) -> Stretch {
        match (self.count, later.count) {
            (0, _) => later,
            (_, 0) => self,
            (a, b) => Stretch { first: self.first, last: later.last, count: a.saturating_add(b) },
        }
    }

    fn add(&mut self, seq: Seq) {
        if self.count == 0 {
            self.first = seq.0;
        }
        self.last = seq.0;
        self.count = self.count.saturating_add(1);
    }

    /// Returns the number of these symbols that were sent after packet `seen`.
    fn after(&self, seen: Seq) -> u16 {
        if self.count == 0 || seen.0 >= self.last {
            0
        } else if seen.0 < self.first {
            self.count
        } else {
            self.count.min((self.last - seen.0).min(u64::from(u16::MAX)) as u16)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a scheduler with `blocks` blocks of 10 symbols, all sent once in packets 0, 1, 2..., and the next packet number.
    fn sent_once(blocks: u32) -> (RepairScheduler, u64) {
        let mut scheduler = RepairScheduler::new(1);
        (0..blocks).for_each(|_| scheduler.push(10, 0));
        let mut seq = 0;
        drain(&mut scheduler, &mut seq);
        (scheduler, seq)
    }

    fn drain(scheduler: &mut RepairScheduler, seq: &mut u64) -> Vec<Pick> {
        let mut picks = Vec::new();
        while let Some(pick) = scheduler.pick() {
            scheduler.sent(pick, Seq(*seq));
            *seq += 1;
            picks.push(pick);
        }
        picks
    }

    #[test]
    fn repairs_in_advance_follow_their_block_and_count_as_sent() {
        let mut scheduler = RepairScheduler::new(0);
        (0..2).for_each(|_| scheduler.push(4, 2));
        let mut seq = 0;
        let sent = drain(&mut scheduler, &mut seq);
        let numbers: Vec<_> = sent.iter().map(|pick| (pick.block, pick.symbol, pick.kind)).collect();
        let front = |block| (0..4).map(move |symbol| (block, symbol, PickKind::Front));
        let repairs = |block| (4..6).map(move |symbol| (block, symbol, PickKind::Repair));
        let expected = front(0).chain(repairs(0)).chain(front(1)).chain(repairs(1));
        assert_eq!(numbers, expected.collect::<Vec<_>>());
        assert!(!scheduler.request(0, 2, Seq(3)), "both were sent after packet 3");
        assert!(scheduler.request(0, 2, Seq(5)));
        assert_eq!(scheduler.pick(), Some(Pick { block: 0, symbol: 6, kind: PickKind::Repair }));
    }

    #[test]
    fn source_symbols_are_sent_first_and_in_order() {
        let mut scheduler = RepairScheduler::new(0);
        scheduler.push(2, 0);
        scheduler.push(1, 0);
        let sent: Vec<_> = drain(&mut scheduler, &mut 0).iter().map(|p| (p.block, p.symbol)).collect();
        assert_eq!(sent, [(0, 0), (0, 1), (1, 0)]);
        assert!(scheduler.is_idle());
    }

    #[test]
    fn repairs_always_use_new_symbols() {
        let (mut scheduler, mut seq) = sent_once(3);
        assert!(scheduler.request(1, 2, Seq(seq)));
        assert_eq!(drain(&mut scheduler, &mut seq).iter().map(|p| p.symbol).collect::<Vec<_>>(), [10, 11]);
        assert!(scheduler.request(1, 1, Seq(seq)));
        assert_eq!(drain(&mut scheduler, &mut seq)[0].symbol, 12);
    }

    #[test]
    fn number_of_repairs_equals_the_largest_request() {
        let (mut scheduler, mut seq) = sent_once(3);
        for need in [1, 3, 2, 3] {
            scheduler.request(2, need, Seq(seq));
        }
        assert_eq!(drain(&mut scheduler, &mut seq).len(), 3);
    }

    #[test]
    fn repairs_in_flight_are_subtracted_from_a_repeated_request() {
        let (mut scheduler, mut seq) = sent_once(3);
        let before = Seq(seq - 1);
        scheduler.request(1, 3, before);
        drain(&mut scheduler, &mut seq);
        assert!(!scheduler.request(1, 3, before));
        assert!(scheduler.request(1, 4, before), "one more than is on its way");
        assert_eq!(drain(&mut scheduler, &mut seq).len(), 1);
    }

    #[test]
    fn all_batches_in_flight_are_subtracted_from_a_late_request() {
        let (mut scheduler, mut seq) = sent_once(3);
        let before = Seq(seq - 1);
        for needed in [3, 1, 1, 1, 1] {
            assert!(scheduler.request(1, needed, Seq(seq)));
            assert_eq!(drain(&mut scheduler, &mut seq).len(), usize::from(needed));
        }
        assert!(!scheduler.request(1, 5, before), "seven symbols are on their way to it");
        assert!(scheduler.request(1, 5, Seq(seq - 2)), "one is");
        assert_eq!(drain(&mut scheduler, &mut seq).len(), 4);
    }

    #[test]
    fn mostly_missing_block_is_sent_again_after_new_blocks() {
        let (mut scheduler, mut seq) = sent_once(3);
        scheduler.push(10, 0);
        assert!(scheduler.request(2, 10, Seq(seq)));
        let picks = drain(&mut scheduler, &mut seq);
        assert_eq!(picks[0].kind, PickKind::Front);
        assert_eq!((picks[10].block, picks[10].symbol, picks[10].kind), (2, 0, PickKind::Backfill));
        assert_eq!(picks.len(), 20);
    }

    #[test]
    fn manifest_blocks_are_repaired_before_new_blocks_are_sent() {
        let (mut scheduler, mut seq) = sent_once(3);
        scheduler.push(10, 0);
        scheduler.request(0, 10, Seq(seq));
        assert_eq!(drain(&mut scheduler, &mut seq)[0].block, 0);
    }

    #[test]
    fn requests_for_unsent_or_unknown_blocks_are_ignored() {
        let mut scheduler = RepairScheduler::new(0);
        scheduler.push(10, 0);
        assert!(!scheduler.request(0, 10, Seq(0)));
        assert!(!scheduler.request(77, 10, Seq(0)));
    }

    #[test]
    fn a_forgotten_block_is_not_sent_again() {
        let (mut scheduler, seq) = sent_once(3);
        scheduler.request(0, 2, Seq(seq));
        scheduler.forget_before(2);
        assert!(scheduler.is_idle());
        assert!(!scheduler.request(1, 2, Seq(seq)));
        assert!(scheduler.request(2, 2, Seq(seq)));
    }

    #[test]
    fn unsent_symbols_of_forgotten_blocks_are_skipped() {
        let mut scheduler = RepairScheduler::new(0);
        (0..3).for_each(|_| scheduler.push(2, 0));
        scheduler.sent(scheduler.pick().expect("nothing was sent"), Seq(0));
        scheduler.forget_before(2);
        assert_eq!(scheduler.pick().map(|pick| (pick.block, pick.symbol)), Some((2, 0)));
    }

    #[test]
    fn cleared_requests_can_be_made_again() {
        let (mut scheduler, seq) = sent_once(3);
        scheduler.request(0, 10, Seq(seq));
        scheduler.clear_requests();
        assert!(scheduler.is_idle());
        assert!(scheduler.request(0, 10, Seq(seq)));
    }

    #[test]
    fn renewed_block_repeats_no_symbol() {
        let (mut scheduler, mut seq) = sent_once(2);
        assert!(scheduler.request(0, 3, Seq(seq)));
        let before = drain(&mut scheduler, &mut seq);
        assert!(scheduler.renew(0));
        assert!(scheduler.request(0, u16::MAX, Seq(seq)), "all of it is missing");
        let after = drain(&mut scheduler, &mut seq);
        assert!(!after.is_empty() && after.iter().all(|pick| pick.kind == PickKind::Repair));
        let last = before.iter().map(|pick| pick.symbol).max().expect("something was sent");
        assert!(after.iter().all(|pick| pick.symbol > last));
        let ends = (0..1_000).any(|_| {
            let renewed = scheduler.renew(0);
            scheduler.request(0, 1, Seq(seq));
            drain(&mut scheduler, &mut seq);
            !renewed
        });
        assert!(ends, "symbol ids end");
    }

    #[test]
    fn generations_of_a_block_share_no_symbol_id() {
        let ids: Vec<_> = (0..600).map(ids_of).collect();
        assert!(ids.windows(2).all(|pair| pair[0].end <= pair[1].start && pair[1].end <= SYMBOL_LIMIT));
        assert!(ids[500].len() >= 16_000 && ids[599].is_empty() && ids_of(u32::MAX).is_empty());
    }

    #[test]
    fn withdrawn_blocks_are_skipped_until_they_are_requested() {
        let (mut scheduler, mut seq) = sent_once(1);
        (0..3).for_each(|_| scheduler.push(4, 0));
        scheduler.withdraw(2);
        assert!(scheduler.request(0, 1, Seq(seq)));
        scheduler.withdraw(0);
        let sent: Vec<u32> = drain(&mut scheduler, &mut seq).iter().map(|pick| pick.block).collect();
        assert_eq!(sent, [[1; 4], [3; 4]].concat());
        assert!(scheduler.request(0, 10, Seq(seq)));
        let again = drain(&mut scheduler, &mut seq);
        assert!(again.len() == 10 && again.iter().all(|pick| ids_of(1).contains(&pick.symbol)));
        scheduler.push(4, 0);
        scheduler.withdraw(4);
        assert_eq!((scheduler.complete_to(), scheduler.is_idle()), (5, true), "it counts as sent");
    }
}
