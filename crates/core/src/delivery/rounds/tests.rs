//! Tests of rounds: the share of each block, and the effect of outages.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const K: u16 = 256;

/// Creates rounds over these blocks; the first block describes the content.
fn rounds(share: u32, window: u32, blocks: &[u16]) -> Rounds {
    let mut rounds = Rounds::new(K, share, window, 1);
    blocks.iter().for_each(|&symbols| rounds.push(symbols));
    rounds.finish();
    rounds
}

fn blocks(full: usize, rest: u16) -> Vec<u16> {
    let mut blocks = vec![K; full];
    blocks.push(rest);
    blocks
}

/// Returns the symbols of the next round.
fn round(rounds: &mut Rounds) -> Vec<Pick> {
    let before = rounds.rounds();
    let mut picks = Vec::new();
    while rounds.rounds() == before {
        picks.push(rounds.next_pick().expect("there are blocks"));
    }
    assert!(rounds.is_between_rounds());
    picks
}

fn by_block(picks: &[Pick]) -> BTreeMap<u32, u32> {
    let mut counts = BTreeMap::new();
    picks.iter().for_each(|pick| *counts.entry(pick.block).or_default() += 1);
    counts
}

proptest! {
    #[test]
    fn each_round_sends_every_block_with_new_symbols(
        full in 1_usize..120,
        rest in 1_u16..K,
        share in 256_u32..600,
        window in 1_u32..150,
    ) {
        let blocks = blocks(full, rest);
        let mut rounds = rounds(share, window, &blocks);
        let mut sent = BTreeSet::new();
        for count in 1..=3 {
            let picks = round(&mut rounds);
            prop_assert!(picks.iter().all(|pick| sent.insert((pick.block, pick.symbol))));
            let counts = by_block(&picks);
            prop_assert!((1..full as u32).all(|block| counts[&block] == share), "{:?}", counts);
            prop_assert!(counts[&(full as u32)] >= u32::from(rest), "{:?}", counts);
            prop_assert!(counts[&0].is_multiple_of(share) && (counts[&0] > share) == (full + 1 >= 8), "{:?}", counts);
            prop_assert_eq!((rounds.rounds(), rounds.complete_to()), (count, blocks.len() as u32));
        }
        let sources: u64 = blocks.iter().map(|symbols| u64::from(*symbols)).sum();
        prop_assert_eq!((rounds.symbols_sent_first(), rounds.symbols_sent()), (sources, sent.len() as u64));
    }

    #[test]
    fn an_outage_costs_each_block_its_part_of_the_window(
        full in 100_usize..300,
        window in 50_u32..300,
        length in 0.02_f64..0.5,
        begin in 0.0_f64..1.0,
    ) {
        let mut rounds = rounds(320, window, &blocks(full, 100));
        let picks = round(&mut rounds);
        // The length is a part of the window.
        let lost = (length * f64::from(window.min(full as u32)) * 320.0) as usize;
        let begin = (begin * picks.len() as f64) as usize;
        let counts = by_block(&picks[begin..picks.len().min(begin + lost)]);
        let most = length * 320.0 + f64::from(2 * (VISIT + 1));
        for (block, count) in counts.range(1..) {
            prop_assert!(f64::from(*count) <= most, "block {}: {} of {}", block, count, most);
        }
        // Half of the symbols of the leading block are sent at once, the other half with the window.
        prop_assert!(f64::from(counts.get(&0).copied().unwrap_or(0)) <= most + 320.0 * (1.0 + length));
    }

    #[test]
    fn only_the_blocks_of_the_window_are_begun_and_unfinished(
        full in 20_usize..200,
        window in 1_u32..100,
    ) {
        let mut rounds = rounds(288, window, &blocks(full, 100));
        for _ in 0..2 {
            let picks = round(&mut rounds);
            // Visits of one pass are at most the window apart. A block that leaves at both ends of the round has two passes.
            let mut slots: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            for (at, pick) in picks.iter().enumerate().filter(|(_, pick)| pick.block > 0) {
                slots.entry(pick.block).or_default().push(at);
            }
            let far = (window.min(full as u32 + 1) + 3) as usize * 288 + 2 * 288;
            for (block, at) in slots {
                let gaps = at.windows(2).filter(|pair| pair[1] - pair[0] > far);
                let gap = gaps.count();
                let span = at.last().unwrap() - at[0];
                prop_assert!(span <= far || gap <= 1, "block {}: {} gaps, span {}", block, gap, span);
            }
        }
    }
}

#[test]
fn blocks_of_a_growing_content_are_sent_whole_until_its_end() {
    let mut rounds = Rounds::new(100, 113, 50, 1);
    assert_eq!((rounds.next_pick(), rounds.waits_for_blocks()), (None, true));
    for block in 0..20 {
        rounds.push(100);
        assert!(!rounds.waits_for_blocks());
        let picks: Vec<_> = std::iter::from_fn(|| rounds.next_pick()).collect();
        assert!(picks.iter().all(|pick| pick.block == block));
        assert_eq!(picks.len(), if block == 0 { 226 } else { 113 });
    }
    assert_eq!((rounds.rounds(), rounds.is_between_rounds()), (0, false));
    rounds.finish();
    assert_eq!((rounds.rounds(), rounds.is_between_rounds()), (1, true));
    let picks = round(&mut rounds);
    let first: BTreeSet<u32> = picks[..400].iter().map(|pick| pick.block).collect();
    assert!(first.len() > 10, "interleaved: {first:?}");
}

#[test]
fn withdrawn_block_is_skipped_and_renewed_block_has_new_symbols() {
    let mut rounds = rounds(288, 5, &blocks(6, 40));
    let before: Vec<Pick> = (0..700).map_while(|_| rounds.next_pick()).collect();
    rounds.withdraw(3);
    assert!(rounds.renew(2));
    let mut after: Vec<Pick> = Vec::new();
    (0..3).for_each(|_| after.extend(round(&mut rounds)));
    assert!(after.iter().all(|pick| pick.block != 3));
    let ids = |picks: &[Pick]| picks.iter().filter(|pick| pick.block == 2).map(|pick| pick.symbol).collect();
    let (old, new): (BTreeSet<u32>, BTreeSet<u32>) = (ids(&before), ids(&after));
    assert!(!old.is_empty() && new.len() > 500 && old.is_disjoint(&new));
    assert_eq!(rounds.complete_to(), 7);
    for block in [0, 1, 2, 4, 5, 6] {
        rounds.withdraw(block);
    }
    assert_eq!((rounds.next_pick(), rounds.waits_for_blocks()), (None, true));
}

#[test]
fn rest_of_a_pass_lists_the_symbols_that_are_sent_next() {
    let mut rounds = rounds(288, 40, &blocks(60, 40));
    let picks: Vec<_> =
        (0..40_000).map_while(|_| rounds.next_pick().map(|pick| (pick, rounds.rest_of_pass(pick)))).collect();
    let mut expected: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (pick, rest) in picks.into_iter().filter(|(pick, _)| pick.block > 0) {
        if let Some(left) = expected.get(&pick.block).filter(|left| !left.is_empty()) {
            assert_eq!(*left, rest, "block {}", pick.block);
        }
        assert_eq!(rest[0], pick.symbol);
        expected.insert(pick.block, rest[1..].to_vec());
    }
}

#[test]
fn coming_blocks_are_those_of_the_next_visits() {
    let mut rounds = rounds(288, 40, &blocks(60, 40));
    for _ in 0..30_000 {
        let coming: Vec<u32> = rounds.coming(4).collect();
        let between = rounds.left == 0;
        let pick = rounds.next_pick().expect("a block");
        assert!(!between || coming[0] == pick.block, "{coming:?}, {pick:?}");
    }
}
