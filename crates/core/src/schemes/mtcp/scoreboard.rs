//! Record of the packets that have arrived somewhere: all below a number, and a bitmap of later ones.

/// Everything below `base`, and of the next [`Scoreboard::SPAN`] packets those whose bit is set.
#[derive(Debug, Clone)]
pub(super) struct Scoreboard {
    base: u64,
    /// How many bits are set.
    above: u32,
    /// All of them are below this.
    end: u64,
    bits: [u64; WORDS],
}

const WORDS: usize = Scoreboard::SPAN as usize / 64;

impl Scoreboard {
    /// Packets behind the first missing one that can be distinguished (the paper's selective acknowledgements; the number is open).
    pub(super) const SPAN: u64 = 1024;

    /// Nothing below `base` is missing.
    pub(super) const fn new(base: u64) -> Scoreboard {
        Scoreboard { base, above: 0, end: base, bits: [0; WORDS] }
    }

    /// The lowest packet that is missing.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// How many have arrived behind it.
    pub(super) const fn above(&self) -> u32 {
        self.above
    }

    /// Whether the packet has arrived.
    pub(super) const fn has(&self, seq: u64) -> bool {
        seq < self.base || (seq - self.base < Scoreboard::SPAN && self.bit(seq))
    }

    /// The packet has arrived; whether that is news. One too far ahead is not kept.
    pub(super) const fn set(&mut self, seq: u64) -> bool {
        if self.has(seq) || seq - self.base >= Scoreboard::SPAN {
            return false;
        }
        self.flip(seq);
        self.above += 1;
        if seq >= self.end {
            self.end = seq + 1;
        }
        self.settle();
        true
    }

    /// Nothing below `base` is missing any more; how many packets are new, and how many of them are below `mark`.
    pub(super) fn advance(&mut self, base: u64, mark: u64) -> (u64, u64) {
        if base <= self.base {
            return (0, 0);
        }
        let (mut new, mut marked) = (0, 0);
        let near = base.min(self.base + Scoreboard::SPAN);
        for seq in self.base..near {
            if self.bit(seq) {
                self.flip(seq);
                self.above -= 1;
            } else {
                new += 1;
                marked += u64::from(seq < mark);
            }
        }
        new += base - near;
        marked += mark.min(base).saturating_sub(near);
        self.base = base;
        self.settle();
        (new, marked)
    }

    /// All that has arrived is below this.
    pub(super) const fn end(&self) -> u64 {
        if self.end > self.base { self.end } else { self.base }
    }

    /// How many of the packets below `end` are missing.
    pub(super) fn missing_below(&self, end: u64) -> u64 {
        if end <= self.base {
            return 0;
        }
        let near = end.min(self.base + Scoreboard::SPAN);
        if self.above == 0 {
            return end - self.base;
        }
        (self.base..near).filter(|seq| !self.bit(*seq)).count() as u64 + (end - near)
    }

    /// Stretches of missing packets below `end`, the newest first: the first number, and how many.
    pub(super) fn holes(&self, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut end = end.clamp(self.base, self.base + Scoreboard::SPAN);
        std::iter::from_fn(move || {
            while end > self.base && self.bit(end - 1) {
                end -= 1;
            }
            let last = end;
            while end > self.base && !self.bit(end - 1) {
                end -= 1;
            }
            (end < last).then_some((end, last - end))
        })
    }

    const fn bit(&self, seq: u64) -> bool {
        self.bits[(seq % Scoreboard::SPAN / 64) as usize] >> (seq % 64) & 1 == 1
    }

    const fn flip(&mut self, seq: u64) {
        self.bits[(seq % Scoreboard::SPAN / 64) as usize] ^= 1 << (seq % 64);
    }

    const fn settle(&mut self) {
        while self.above > 0 && self.bit(self.base) {
            self.flip(self.base);
            self.above -= 1;
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(ops in prop::collection::vec((0u64..1400, any::<bool>()), 1..200)) {
            let (mut board, mut known) = (Scoreboard::new(0), BTreeSet::new());
            let mut below = 0;
            for (number, jump) in ops {
                if jump && number < below + 300 {
                    let new = (below..number).filter(|seq| !known.contains(seq)).count() as u64;
                    let expected = if number > below { new } else { 0 };
                    prop_assert_eq!(board.advance(number, 0).0, expected);
                    known.extend(below..number);
                } else if number < below + Scoreboard::SPAN {
                    prop_assert_eq!(board.set(number), number >= below && known.insert(number));
                }
                while known.contains(&below) {
                    below += 1;
                }
                prop_assert_eq!(board.base(), below);
                prop_assert_eq!(u64::from(board.above()), known.range(below..).count() as u64);
                let end = known.last().map_or(0, |last| last + 1);
                let missing: Vec<u64> = (below..end).filter(|seq| !known.contains(seq)).collect();
                prop_assert_eq!(board.missing_below(end), missing.len() as u64);
                let listed: BTreeSet<u64> = board.holes(end).flat_map(|(first, count)| first..first + count).collect();
                prop_assert_eq!(listed.into_iter().collect::<Vec<_>>(), missing);
            }
        }
    }
}
