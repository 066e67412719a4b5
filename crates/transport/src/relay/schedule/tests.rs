use super::*;
use crate::relay::cache::{Cache, Reason};
use proptest::prelude::*;

const K: u16 = 4;

/// Returns a cache and a schedule that have both received these symbols.
fn received(symbols: &[(u32, u32)]) -> (Cache, Schedule) {
    let (mut cache, mut schedule) = (Cache::new(1 << 20, None), Schedule::default());
    for (block, id) in symbols {
        receive(&mut cache, &mut schedule, *block, *id, Reason::Front);
    }
    (cache, schedule)
}

fn receive(cache: &mut Cache, schedule: &mut Schedule, block: u32, id: u32, why: Reason) {
    cache.add(block, K, id, &[id as u8; 8], why);
    schedule.on_symbol(block, cache.get(block).expect("it is kept"));
}

/// Sends all waiting symbols in packets numbered from `seq`; returns the symbols as (block, ID).
fn drain(cache: &Cache, schedule: &mut Schedule, seq: &mut u64) -> Vec<(u32, u32)> {
    let mut left = Vec::new();
    while let Some(pick) = schedule.pick(cache) {
        schedule.sent(pick, Seq(*seq), cache);
        *seq += 1;
        left.push((pick.block, pick.id));
    }
    left
}

fn held(block: u32, ids: &[u32]) -> SymbolMap {
    let mut symbols = [0; SymbolMap::BYTES];
    ids.iter().for_each(|id| symbols[*id as usize / 8] |= 1 << (id % 8));
    SymbolMap { block, symbols }
}

#[test]
fn received_symbols_are_sent_once_in_block_order() {
    let (cache, mut schedule) = received(&[(1, 0), (0, 2), (0, 0), (1, 3), (0, 1), (0, 3), (0, 9)]);
    let left = drain(&cache, &mut schedule, &mut 0);
    assert_eq!(
        left,
        [(0, 2), (0, 0), (0, 1), (0, 3), (1, 0), (1, 3)],
        "and nothing beyond what a block needs"
    );
    assert_eq!(schedule.complete_to(), 1, "block 1 is not whole");
    assert!(schedule.is_idle());
}

#[test]
fn only_lost_symbols_are_sent_again() {
    let (cache, mut schedule) = received(&[(0, 0), (0, 1), (0, 2), (0, 3)]);
    let mut seq = 0;
    drain(&cache, &mut schedule, &mut seq);
    let lacks_one = held(0, &[0, 1, 3]);
    let answer = schedule.request(&cache, 0, 1, Seq(3), Some(&lacks_one));
    assert_eq!(answer, Answer { sends: true, lacks: 0 });
    let again = schedule.request(&cache, 0, 1, Seq(3), Some(&lacks_one));
    assert_eq!(again, Answer::default(), "it is about to leave");
    assert_eq!(drain(&cache, &mut schedule, &mut seq), [(0, 2)]);
    let early = schedule.request(&cache, 0, 1, Seq(3), Some(&lacks_one));
    assert_eq!(early, Answer::default(), "it is on its way");
    assert!(schedule.request(&cache, 0, 1, Seq(seq), Some(&lacks_one)).sends, "it was lost");
    assert!(
        schedule.request(&cache, 0, 1, Seq(seq), Some(&held(0, &[0, 2, 3]))).sends,
        "another lacks another"
    );
    assert_eq!(drain(&cache, &mut schedule, &mut seq), [(0, 2), (0, 1)]);
}

#[test]
fn loss_is_repaired_with_an_unsent_symbol() {
    let (cache, mut schedule) = received(&[(0, 0), (0, 1), (0, 2), (0, 3), (0, 9)]);
    let mut seq = 0;
    drain(&cache, &mut schedule, &mut seq);
    assert!(schedule.request(&cache, 0, 1, Seq(seq), Some(&held(0, &[0, 1, 3]))).sends);
    assert_eq!(drain(&cache, &mut schedule, &mut seq), [(0, 9)]);
}

#[test]
fn missing_symbols_are_requested_from_the_parent_once() {
    let (mut cache, mut schedule) = received(&[(0, 0), (0, 1), (0, 2), (0, 3)]);
    let mut seq = 0;
    drain(&cache, &mut schedule, &mut seq);
    cache.forget_before(0);
    assert!(cache.make_room(|_, _| u32::MAX).gone.is_empty(), "there is room");
    // Symbol 9 was received in place of symbol 2, so the relay does not have symbol 2.
    let answer = schedule.request(&cache, 0, 2, Seq(seq), Some(&held(0, &[0, 1])));
    assert_eq!(answer, Answer { sends: true, lacks: 0 });
    schedule.on_gone(0);
    let answer = schedule.request(&Cache::new(100, None), 0, 3, Seq(seq), None);
    assert_eq!(answer, Answer { sends: true, lacks: 3 });
    let again = schedule.request(&Cache::new(100, None), 0, 3, Seq(seq), None);
    assert_eq!(again, Answer::default(), "it is waited for");
}

#[test]
fn block_that_the_first_pass_skips_is_sent_only_on_request() {
    let (mut cache, mut schedule) = received(&[(0, 0)]);
    let mut seq = 0;
    drain(&cache, &mut schedule, &mut seq);
    assert_eq!(schedule.complete_to(), 0);
    cache.fetch_on_request(0);
    schedule.on_skipped(0);
    schedule.on_passed(9);
    assert_eq!((schedule.complete_to(), cache.incomplete().count()), (9, 0));
    // Repairs of other receivers stay in the cache. A receiver that reuses earlier content has symbol 1 already.
    (1..3).for_each(|id| receive(&mut cache, &mut schedule, 5, id, Reason::Repair));
    assert!(schedule.is_idle() && cache.incomplete().count() == 0);
    let answer = schedule.request(&cache, 5, 2, Seq(seq), Some(&held(5, &[1, 3])));
    assert_eq!(answer, Answer { sends: true, lacks: 1 });
    assert_eq!(drain(&cache, &mut schedule, &mut seq), [(5, 2)]);
    receive(&mut cache, &mut schedule, 5, 9, Reason::Wanted);
    assert_eq!(drain(&cache, &mut schedule, &mut seq), [(5, 9)]);
}

proptest! {
    /// The cache has the complete block. A receiver that repeats its request gets the whole block, regardless of its losses.
    #[test]
    fn repeated_requests_get_a_whole_block(lost in proptest::collection::vec(0.0..0.9f64, 1..4), seed in any::<u64>(), ids in Just((0..12u32).collect::<Vec<_>>()).prop_shuffle()) {
        let (mut cache, mut schedule) = (Cache::new(1 << 20, None), Schedule::default());
        let mut rng = faircast_core::rng::Rng::new(seed, 1);
        let mut here: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); lost.len()];
        for id in ids.iter().take(usize::from(K)) {
            receive(&mut cache, &mut schedule, 0, *id, Reason::Front);
        }
        let (mut seq, mut fetched) = (0, usize::from(K));
        for _ in 0..200 {
            while let Some(pick) = schedule.pick(&cache) {
                schedule.sent(pick, Seq(seq), &cache);
                seq += 1;
                for (receiver, lost) in here.iter_mut().zip(&lost) {
                    if !rng.chance(*lost) {
                        receiver.insert(pick.id);
                    }
                }
            }
            for receiver in &here {
                let lacks = usize::from(K).saturating_sub(receiver.len()) as u16;
                let own: Vec<u32> = receiver.iter().copied().filter(|id| *id < K.into()).collect();
                let answer = schedule.request(&cache, 0, lacks, Seq(seq), Some(&held(0, &own)));
                for _ in 0..answer.lacks {
                    if let Some(id) = ids.get(fetched) {
                        receive(&mut cache, &mut schedule, 0, *id, Reason::Wanted);
                    }
                    fetched += 1;
                }
            }
        }
        // If the cached repair symbols cannot repair a loss, symbols are fetched from the parent. In this test the parent has
        // twelve repair symbols.
        for receiver in &here {
            prop_assert!(receiver.len() >= usize::from(K) || fetched > ids.len(), "{here:?} {fetched}");
        }
    }
}
