//! Record of received packets: all packets below a number, and a bitmap of later ones.

/// All packets below `base`, and a bitmap of the next [`Scoreboard::SPAN`] packets.
#[derive(Debug, Clone)]
pub(super) struct Scoreboard {
    base: u64,
    /// Number of set bits.
    above: u32,
    /// Exclusive upper bound of all received packets.
    end: u64,
    bits: [u64; WORDS],
}

const WORDS: usize = Scoreboard::SPAN as usize / 64;

impl Scoreboard {
    /// Number of packets after the first missing one that the bitmap covers (the paper's selective acknowledgements; the number
    /// is open).
    pub(super) const SPAN: u64 = 1024;

    /// Creates a record with all packets below `base`.
    pub(super) const fn new(base: u64) -> Scoreboard {
        Scoreboard { base, above: 0, end: base, bits: [0; WORDS] }
    }

    /// Returns the lowest missing packet.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// Returns the number of received packets after the first missing one.
    pub(super) const fn above(&self) -> u32 {
        self.above
    }

    /// Returns whether the packet was received.
    pub(super) const fn has(&self, seq: u64) -> bool {
        seq < self.base || (seq - self.base < Scoreboard::SPAN && self.bit(seq))
    }

    /// Records a packet; returns whether it is new. A packet too far ahead is not recorded.
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

    /// Records all packets below `base`; returns the number of new packets, and the number of new packets below `mark`.
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

    /// Returns the exclusive upper bound of all received packets.
    pub(super) const fn end(&self) -> u64 {
        if self.end > self.base { self.end } else { self.base }
    }

    /// Returns the number of missing packets below `end`.
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

    /// Returns the ranges of missing packets below `end`, newest first. Each range is its first packet and its number of packets.
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
        fn scoreboard_agrees_with_a_set_of_received_packet_numbers(ops in prop::collection::vec((0u64..1400, any::<bool>()), 1..200)) {
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
