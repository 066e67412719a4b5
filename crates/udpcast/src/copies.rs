//! The transmissions of blocks, in their order, and the questions between them.
//!
//! A question asks for the blocks of a slice. Its answer shows the fate of all transmissions before the question.

use faircast_core::packet::Data;
use faircast_core::time::Time;
use std::collections::VecDeque;

/// Maximum number of stored transmissions. A host that answers later gets no report about older ones.
const MAX_COPIES: usize = 1 << 15;
/// Maximum number of questions whose answers are accepted.
const MAX_POLLS: usize = 1 << 12;

/// One transmission of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copy {
    /// The packet as the scheme sees it.
    pub(super) data: Data,
    /// Bytes of the packet, with IP and UDP headers.
    pub(super) size: u16,
    pub(super) slice: u32,
    pub(super) block: u16,
}

/// A question to receivers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Poll {
    pub(super) slice: u32,
    /// Index of the next transmission after the question.
    pub(super) end: u64,
    pub(super) departed: Time,
}

/// The newest transmissions and questions.
#[derive(Debug, Default)]
pub(super) struct Copies {
    copies: VecDeque<Copy>,
    /// Index of the first stored transmission.
    first: u64,
    polls: VecDeque<Poll>,
    /// Number of the first stored question.
    first_poll: u32,
}

impl Copies {
    /// Records a transmission and returns its index.
    pub(super) fn push(&mut self, copy: Copy) -> u64 {
        if self.copies.len() == MAX_COPIES {
            self.copies.pop_front();
            self.first += 1;
        }
        self.copies.push_back(copy);
        self.end() - 1
    }

    /// Returns the index of the next transmission.
    pub(super) fn end(&self) -> u64 {
        self.first + self.copies.len() as u64
    }

    /// Returns the index of the first stored transmission.
    pub(super) fn begin(&self) -> u64 {
        self.first
    }

    pub(super) fn get(&self, index: u64) -> Option<&Copy> {
        self.copies.get(usize::try_from(index.checked_sub(self.first)?).ok()?)
    }

    /// Removes the transmissions before `index`.
    pub(super) fn forget_before(&mut self, index: u64) {
        while self.first < index && self.copies.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Records a question about a slice, and returns its number.
    pub(super) fn ask(&mut self, slice: u32, now: Time) -> u32 {
        if self.polls.len() == MAX_POLLS {
            self.polls.pop_front();
            self.first_poll = self.first_poll.wrapping_add(1);
        }
        self.polls.push_back(Poll { slice, end: self.end(), departed: now });
        self.first_poll.wrapping_add(self.polls.len() as u32 - 1)
    }

    /// Returns the question with this number.
    pub(super) fn poll(&self, number: u32) -> Option<Poll> {
        self.polls.get(number.wrapping_sub(self.first_poll) as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::{Flags, Mark, Payload, Seq, Signal};

    fn copy(block: u16) -> Copy {
        let data = Data {
            seq: Seq(block.into()),
            sent_at: Time::ZERO,
            rate: 0.0,
            payload: Payload::NONE,
            flags: Flags::default(),
            signal: Signal::None,
            mark: Mark::None,
        };
        Copy { data, size: 1_500, slice: 0, block }
    }

    #[test]
    fn stored_transmissions_and_questions_are_bounded() {
        let mut copies = Copies::default();
        for number in 0..100_000u32 {
            assert_eq!(copies.push(copy(number as u16)), number.into());
            assert_eq!(copies.ask(0, Time::ZERO), number);
        }
        assert!(copies.copies.len() <= MAX_COPIES && copies.polls.len() <= MAX_POLLS);
        assert_eq!(copies.get(99_999).map(|copy| copy.block), Some(99_999u32 as u16));
        assert_eq!(copies.poll(99_999).map(|poll| poll.end), Some(100_000));
        assert!(copies.get(0).is_none() && copies.poll(0).is_none() && copies.poll(100_000).is_none());
        copies.forget_before(99_999);
        assert_eq!((copies.begin(), copies.end()), (99_999, 100_000));
    }
}
