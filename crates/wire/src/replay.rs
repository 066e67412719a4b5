//! Window of seen packet numbers, as in RFC 6479: a ring of words, one of which is always being refilled.

/// Window of the last `64 * (WORDS - 1)` numbers.
#[derive(Debug, Clone)]
pub(crate) struct ReplayWindow<const WORDS: usize> {
    newest: Option<u64>,
    seen: [u64; WORDS],
}

impl<const WORDS: usize> ReplayWindow<WORDS> {
    const SIZE: u64 = 64 * (WORDS as u64 - 1);

    pub(crate) const fn new() -> ReplayWindow<WORDS> {
        ReplayWindow { newest: None, seen: [0; WORDS] }
    }

    /// Returns the newest number seen; 0 before the first.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.unwrap_or(0)
    }

    /// Whether no number has been seen.
    pub(crate) const fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    /// Whether `seq` is certainly new: not seen, and within the window.
    pub(crate) fn is_new(&self, seq: u64) -> bool {
        match self.newest {
            Some(newest) if seq <= newest => {
                newest - seq < Self::SIZE && self.seen[Self::word(seq)] & Self::bit(seq) == 0
            }
            _ => true,
        }
    }

    /// Marks `seq` as seen. Numbers older than the window change nothing.
    pub(crate) fn mark(&mut self, seq: u64) {
        match self.newest {
            None => self.newest = Some(seq),
            Some(newest) if seq > newest => {
                let words = (seq / 64 - newest / 64).min(WORDS as u64);
                for passed in 0..words {
                    self.seen[Self::word(seq - 64 * passed)] = 0;
                }
                self.newest = Some(seq);
            }
            Some(newest) if newest - seq >= Self::SIZE => return,
            Some(_) => {}
        }
        self.seen[Self::word(seq)] |= Self::bit(seq);
    }

    /// Makes `next` and all higher numbers new again. All lower numbers count as seen.
    pub(crate) fn go_back(&mut self, next: u64) {
        let Some(last) = next.checked_sub(1) else { return *self = Self::new() };
        self.newest = Some(last);
        self.seen = [u64::MAX; WORDS];
        self.seen[Self::word(last)] = u64::MAX >> (63 - last % 64);
    }

    fn word(seq: u64) -> usize {
        (seq / 64 % WORDS as u64) as usize
    }

    const fn bit(seq: u64) -> u64 {
        1 << (seq % 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replay_window_accepts_any_first_number() {
        let mut window = ReplayWindow::<3>::new();
        assert!(window.is_new(u64::MAX));
        window.mark(1 << 40);
        assert!(!window.is_new(1 << 40));
        assert!(window.is_new((1 << 40) - 127));
        assert!(!window.is_new((1 << 40) - 128));
    }

    #[test]
    fn rewound_window_accepts_newer_numbers_once_and_no_older_ones() {
        for next in [0_u64, 1, 63, 64, 65, 1_000, 1 << 40] {
            let mut window = ReplayWindow::<3>::new();
            (next.saturating_sub(5)..next + 300).for_each(|seq| window.mark(seq));
            window.go_back(next);
            assert!((next.saturating_sub(300)..next).all(|seq| !window.is_new(seq)), "{next}");
            for seq in next..next + 400 {
                assert!(window.is_new(seq), "{next} {seq}");
                window.mark(seq);
                assert!(!window.is_new(seq), "{next} {seq}");
            }
        }
    }

    proptest! {
        #[test]
        fn replay_window_agrees_with_a_list_of_all_seen_numbers(start in 0..1_000_u64, steps in prop::collection::vec(-140..200_i64, 1..400)) {
            let mut window = ReplayWindow::<3>::new();
            let mut seen = Vec::new();
            let mut seq = start + 200;
            for step in steps {
                seq = seq.saturating_add_signed(step);
                let newest = seen.iter().max().copied();
                let expected = !seen.contains(&seq) && newest.is_none_or(|newest| newest < seq + 128);
                prop_assert_eq!(window.is_new(seq), expected, "{}", seq);
                if expected {
                    window.mark(seq);
                    seen.push(seq);
                }
            }
        }
    }
}
