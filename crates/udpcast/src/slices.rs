//! The slices that receivers need now: the oldest slice that a receiver lacks, and the next one.

use crate::codec::{MAP_BITS, Map};
use std::collections::VecDeque;

/// Number of slices in transit. Stock receivers end with an error when a block of a later slice arrives.
pub(super) const SLICES: usize = 2;
/// Maximum number of consecutive repairs while new blocks wait. Without this maximum, a receiver that lacks all blocks could stop
/// the session for the others.
const REPAIRS_IN_A_ROW: u32 = 3;

/// A slice, and the state of its blocks.
#[derive(Debug)]
struct Slice {
    bytes: Vec<u8>,
    /// Number of blocks that have been sent.
    sent: usize,
    /// One more than the index of the newest transmission of each sent block.
    newest: Vec<u64>,
    /// Blocks that are to be repaired.
    queued: Map,
}

/// The slices in transit.
#[derive(Debug)]
pub(super) struct Slices {
    block_size: usize,
    slices: VecDeque<Slice>,
    /// Number of the first slice in transit.
    base: u32,
    /// Bytes of the slices before `base`.
    settled_bytes: u64,
    repairs: VecDeque<Block>,
    repairs_in_a_row: u32,
}

/// A block, by the numbers of its slice and within its slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) slice: u32,
    pub(super) number: usize,
}

/// The next block to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    New(Block),
    Repair(Block),
}

impl Slices {
    pub(super) fn new(block_size: usize) -> Slices {
        Slices {
            block_size,
            slices: VecDeque::new(),
            base: 0,
            settled_bytes: 0,
            repairs: VecDeque::new(),
            repairs_in_a_row: 0,
        }
    }

    /// Returns the number of the first slice in transit.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    pub(super) fn len(&self) -> usize {
        self.slices.len()
    }

    /// Returns whether another slice may be added.
    pub(super) fn has_room(&self) -> bool {
        self.slices.len() < SLICES
    }

    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        let newest = vec![0; bytes.len().div_ceil(self.block_size).min(MAP_BITS)];
        self.slices.push_back(Slice { bytes, sent: 0, newest, queued: Map::EMPTY });
    }

    /// Removes the first slice, which all receivers have.
    pub(super) fn pop(&mut self) {
        if let Some(slice) = self.slices.pop_front() {
            self.base = self.base.wrapping_add(1);
            self.settled_bytes += slice.bytes.len() as u64;
        }
    }

    /// Returns the position of a slice in transit.
    pub(super) fn position(&self, slice: u32) -> Option<usize> {
        Some(slice.wrapping_sub(self.base) as usize).filter(|at| *at < self.slices.len())
    }

    /// Returns the number of blocks, and the number of sent blocks, of the slice at a position.
    pub(super) fn blocks(&self, at: usize) -> (usize, usize) {
        self.slices.get(at).map_or((0, 0), |slice| (slice.newest.len(), slice.sent))
    }

    /// Returns whether all blocks of the slice at a position have been sent.
    pub(super) fn is_sent(&self, at: usize) -> bool {
        self.slices.get(at).is_some_and(|slice| slice.sent == slice.newest.len())
    }

    /// Returns the number of bytes of the slices that all receivers have.
    pub(super) fn settled_bytes(&self) -> u64 {
        self.settled_bytes
    }

    /// Returns the number of bytes of this number of blocks of the slice at a position.
    pub(super) fn bytes_of(&self, at: usize, blocks: usize) -> u64 {
        u64::from(self.bytes(at)).min((blocks * self.block_size) as u64)
    }

    /// Returns the size of the slice at a position, in bytes.
    pub(super) fn bytes(&self, at: usize) -> u32 {
        self.slices.get(at).map_or(0, |slice| slice.bytes.len() as u32)
    }

    /// Returns the content of a block; empty if its slice is not in transit.
    pub(super) fn payload(&self, block: Block) -> &[u8] {
        let Some(slice) = self.position(block.slice).and_then(|at| self.slices.get(at)) else { return &[] };
        let from = (block.number * self.block_size).min(slice.bytes.len());
        &slice.bytes[from..(from + self.block_size).min(slice.bytes.len())]
    }

    /// Returns whether a receiver lacks blocks that were sent before a question after transmission `end`, and not again since then.
    pub(super) fn lacks(&self, at: usize, present: &Map, end: u64) -> bool {
        self.slices
            .get(at)
            .is_some_and(|slice| present.missing(slice.sent).any(|block| slice.newest[block] <= end))
    }

    /// Schedules repairs of the blocks that a receiver lacks, as an answer to a question after transmission `end` shows. Blocks
    /// that were sent again since then are not repaired.
    pub(super) fn repair(&mut self, at: usize, present: &Map, end: u64) {
        let number = self.base.wrapping_add(at as u32);
        let Some(slice) = self.slices.get_mut(at) else { return };
        for block in present.missing(slice.sent) {
            if slice.newest[block] <= end && !slice.queued.has(block) {
                slice.queued.set(block);
                self.repairs.push_back(Block { slice: number, number: block });
            }
        }
    }

    /// Selects the next block. Repairs precede new blocks, as long as not too many of them follow one another. `may_open` states
    /// whether the second slice may begin.
    pub(super) fn next(&mut self, may_open: bool) -> Option<Choice> {
        while self.repairs.front().is_some_and(|block| self.position(block.slice).is_none()) {
            self.repairs.pop_front();
        }
        let new = self.next_new(may_open);
        let repair = self
            .repairs
            .front()
            .copied()
            .filter(|_| self.repairs_in_a_row < REPAIRS_IN_A_ROW || new.is_none());
        repair.map(Choice::Repair).or(new.map(Choice::New))
    }

    /// Returns whether a block can be sent now.
    pub(super) fn has_work(&self, may_open: bool) -> bool {
        !self.repairs.is_empty() || self.next_new(may_open).is_some()
    }

    /// Returns whether a block that was never sent can be sent now.
    pub(super) fn has_new(&self, may_open: bool) -> bool {
        self.next_new(may_open).is_some()
    }

    fn next_new(&self, may_open: bool) -> Option<Block> {
        let at = self.slices.iter().position(|slice| slice.sent < slice.newest.len())?;
        let slice = &self.slices[at];
        let opens = at > 0 && slice.sent == 0;
        let number = self.base.wrapping_add(at as u32);
        (!opens || may_open).then_some(Block { slice: number, number: slice.sent })
    }

    /// Records that the selected block is sent, as transmission `index`.
    pub(super) fn sent(&mut self, choice: Choice, index: u64) {
        let (Choice::New(block) | Choice::Repair(block)) = choice;
        if let Choice::Repair(_) = choice {
            self.repairs.pop_front();
            self.repairs_in_a_row = self.repairs_in_a_row.saturating_add(1);
        } else {
            self.repairs_in_a_row = 0;
        }
        let Some(slice) = self.position(block.slice).and_then(|at| self.slices.get_mut(at)) else { return };
        if let Choice::New(_) = choice {
            slice.sent += 1;
        }
        slice.newest[block.number] = index + 1;
        slice.queued.clear(block.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send_all(slices: &mut Slices, may_open: bool, index: &mut u64) -> Vec<Choice> {
        let next = std::iter::from_fn(|| {
            let choice = slices.next(may_open)?;
            slices.sent(choice, *index);
            *index += 1;
            Some(choice)
        });
        next.collect()
    }

    #[test]
    fn second_slice_begins_only_when_it_may() {
        let (mut slices, mut index) = (Slices::new(100), 0);
        slices.push(vec![1; 250]);
        slices.push(vec![2; 100]);
        assert!(!slices.has_room());
        assert_eq!(send_all(&mut slices, false, &mut index).len(), 3);
        assert!(slices.is_sent(0) && !slices.has_work(false) && slices.has_work(true));
        let block = Block { slice: 1, number: 0 };
        assert_eq!(send_all(&mut slices, true, &mut index), [Choice::New(block)]);
        assert_eq!(slices.payload(block), [2; 100]);
        assert_eq!(slices.payload(Block { slice: 0, number: 2 }), [1; 50]);
        slices.pop();
        assert_eq!((slices.base(), slices.position(1), slices.position(0)), (1, Some(0), None));
    }

    #[test]
    fn block_is_repaired_once_per_question() {
        let (mut slices, mut index) = (Slices::new(100), 0);
        slices.push(vec![1; 400]);
        send_all(&mut slices, true, &mut index);
        let mut present = Map::EMPTY;
        [0, 2, 3].iter().for_each(|block| present.set(*block));
        slices.repair(0, &present, 4);
        slices.repair(0, &present, 4);
        let repair = Choice::Repair(Block { slice: 0, number: 1 });
        assert_eq!(send_all(&mut slices, true, &mut index), [repair]);
        slices.repair(0, &present, 4);
        assert_eq!(send_all(&mut slices, true, &mut index), [], "the question precedes the repair");
        slices.repair(0, &present, 5);
        assert_eq!(send_all(&mut slices, true, &mut index), [repair]);
    }

    #[test]
    fn new_blocks_are_sent_despite_endless_repairs() {
        let (mut slices, mut index) = (Slices::new(10), 0);
        slices.push(vec![1; 1_000]);
        slices.push(vec![1; 1_000]);
        (0..100).for_each(|_| {
            let choice = slices.next(false).expect("a new block");
            slices.sent(choice, index);
            index += 1;
        });
        let mut new = 0;
        for _ in 0..40 {
            slices.repair(0, &Map::EMPTY, index);
            let choice = slices.next(true).expect("a block");
            new += usize::from(matches!(choice, Choice::New(_)));
            slices.sent(choice, index);
            index += 1;
        }
        assert_eq!(new, 10);
    }
}
