//! Tests of the carousel: the number of packets that a receiver of any level needs.

use super::super::repair_scheduler::SYMBOL_LIMIT;
use super::*;
use crate::rng::Rng;
use proptest::prelude::*;
use std::collections::BTreeSet;

const K: u16 = 256;

/// Creates a fountain over these blocks; the first block describes the content.
fn fountain(layers: u8, run: u16, blocks: &[u16]) -> Carousel {
    let mut carousel = Carousel::new(layers, K, 1);
    carousel.set_run(run);
    blocks.iter().for_each(|&symbols| carousel.push(symbols));
    carousel
}

/// Returns `full` full blocks and one smaller block.
fn blocks(full: usize, rest: u16) -> Vec<u16> {
    let mut blocks = vec![K; full];
    blocks.push(rest);
    blocks
}

/// Returns the layers of consecutive packets. Each enhancement layer sends as often as all layers below it together.
fn departures(layers: u8) -> Vec<Layer> {
    let slots = 1_u32 << (layers - 1);
    let layer = |slot: u32| if slot == 0 { 0 } else { layers - 1 - slot.trailing_zeros() as u8 };
    (0..slots).map(|slot| Layer(layer(slot))).collect()
}

#[test]
fn withdrawn_block_is_skipped_and_renewed_block_has_new_symbols() {
    let blocks = blocks(6, 40);
    let mut carousel = fountain(1, 4, &blocks);
    let sent = |carousel: &mut Carousel, count: usize| {
        (0..count).filter_map(|_| carousel.next(Layer(0))).collect::<Vec<_>>()
    };
    let before = sent(&mut carousel, 700);
    carousel.withdraw(3);
    assert!(carousel.renew(2));
    let after = sent(&mut carousel, 4_000);
    assert!(after.iter().all(|pick| pick.block != 3));
    let ids = |picks: &[Pick]| picks.iter().filter(|pick| pick.block == 2).map(|pick| pick.symbol).collect();
    let (old, new): (BTreeSet<u32>, BTreeSet<u32>) = (ids(&before), ids(&after));
    assert!(!old.is_empty() && new.len() > 500 && old.is_disjoint(&new));
    let of = |block| after.iter().filter(|pick| pick.block == block).count();
    assert!(
        [0, 1, 4, 5].iter().all(|block| of(*block).abs_diff(of(2)) < 60),
        "{:?}",
        (0..7).map(of).collect::<Vec<_>>()
    );
    assert_eq!((carousel.complete_to(), carousel.withdraw(0)), (7, ()));
}

/// A receiver of layers 0 to `level`. It joins after `late` rounds of departures and loses the fraction `loss` of the packets.
struct Member {
    level: u8,
    late: usize,
    loss: f64,
    counts: Vec<u16>,
    received: u64,
    missing: usize,
}

impl Member {
    fn new(level: u8, late: usize, loss: f64, blocks: usize) -> Member {
        Member { level, late, loss, counts: vec![0; blocks], received: 0, missing: blocks }
    }

    fn take(&mut self, pick: Pick, blocks: &[u16], rng: &mut Rng) {
        if self.missing == 0 || rng.chance(self.loss) {
            return;
        }
        self.received += 1;
        let count = &mut self.counts[pick.block as usize];
        *count += 1;
        self.missing -= usize::from(*count == blocks[pick.block as usize]);
    }
}

/// Returns for each member the number of symbols that it needed, divided by the number of symbols of the content.
fn ratios(carousel: &mut Carousel, layers: u8, blocks: &[u16], members: &mut [Member]) -> Vec<f64> {
    let mut rng = Rng::new(7, 7);
    let order = departures(layers);
    for round in 0..4_000_000 {
        for &layer in &order {
            let pick = carousel.next(layer).expect("there are blocks");
            let here = members.iter_mut().filter(|member| member.level >= layer.0 && member.late <= round);
            here.for_each(|member| member.take(pick, blocks, &mut rng));
        }
        if members.iter().all(|member| member.missing == 0) {
            let content: u64 = blocks.iter().map(|&symbols| u64::from(symbols)).sum();
            return members.iter().map(|member| member.received as f64 / content as f64).collect();
        }
    }
    panic!("somebody never has everything");
}

/// Returns receivers of every level that lose the fraction `loss` of the packets. Some join at the start, the others later.
fn crowd(layers: u8, blocks: usize, loss: f64) -> Vec<Member> {
    let member = |level: u8| {
        [0, 1, 37, 1_001].map(|late| Member::new(level, late << (layers - 1 - level), loss, blocks))
    };
    (0..layers).flat_map(member).collect()
}

fn worst(layers: u8, run: u16, blocks: &[u16], loss: f64) -> f64 {
    let mut members = crowd(layers, blocks.len(), loss);
    let ratios = ratios(&mut fountain(layers, run, blocks), layers, blocks, &mut members);
    ratios.into_iter().fold(0.0, f64::max)
}

#[test]
fn receivers_of_each_level_need_few_extra_packets_without_loss() {
    for (run, most) in [(1, 1.02), (4, 1.06), (16, 1.25)] {
        let worst = worst(5, run, &blocks(40, 100), 0.0);
        assert!(worst <= most, "run {run}: {worst}");
    }
}

#[test]
fn losses_cost_receivers_of_each_level_a_few_percent_of_packets() {
    for (loss, most) in [(0.01, 1.06), (0.05, 1.07)] {
        let worst = worst(5, 4, &blocks(40, 100), loss);
        assert!(worst <= most, "loss {loss}: {worst}");
    }
}

#[test]
fn receiver_of_a_single_block_needs_no_extra_packets() {
    let ratio = worst(8, 8, &[40], 0.0);
    assert_eq!(ratio, 1.0);
}

#[test]
fn small_last_block_costs_receivers_at_most_six_percent_packets() {
    let worst = worst(4, 1, &blocks(3, 5), 0.0);
    assert!(worst <= 1.06, "{worst}");
}

#[test]
fn source_symbols_are_sent_first_and_in_order_on_one_layer() {
    let mut carousel = fountain(1, 2, &[3, 3]);
    let sent: Vec<_> = (0..10).map(|_| carousel.next(Layer(0)).expect("a block")).collect();
    let of_block =
        |block| sent.iter().filter(|pick| pick.block == block).map(|pick| pick.symbol).collect::<Vec<_>>();
    assert_eq!((of_block(0), of_block(1)), ((0..5).collect(), (0..5).collect()));
    assert_eq!(sent[0].kind, PickKind::Front);
    assert_eq!(sent[9].kind, PickKind::Repair);
    assert_eq!((carousel.complete_to(), carousel.symbols_sent(), carousel.symbols_sent_first()), (2, 10, 6));
}

#[test]
fn manifest_is_sent_first_and_again_for_late_joiners() {
    let all = vec![K; 200];
    let mut carousel = fountain(3, 1, &all);
    for _ in 0..2 {
        carousel.lead();
        let mut member = Member::new(0, 0, 0.05, all.len());
        let mut rng = Rng::new(1, 1);
        let mut packets = 0;
        while member.counts[0] < K {
            let pick = carousel.next(Layer(0)).expect("there are blocks");
            member.take(pick, &all, &mut rng);
            packets += 1;
        }
        assert!(packets <= 2 * u32::from(K) * 21 / 20 + 40, "{packets}");
        (0..10_000).for_each(|_| _ = carousel.next(Layer(0)));
    }
}

#[test]
fn repeated_manifest_costs_receivers_at_most_three_percent() {
    let all = vec![K; 100];
    let mut carousel = fountain(1, 1, &all);
    carousel.lead();
    let mut members = [Member::new(0, 0, 0.0, all.len())];
    let first = ratios(&mut carousel, 1, &all, &mut members)[0];
    assert!(first <= 1.01, "{first}");
    carousel.lead();
    let mut members = [Member::new(0, 0, 0.0, all.len())];
    let second = ratios(&mut carousel, 1, &all, &mut members)[0];
    assert!((1.01..=1.03).contains(&second), "{second}: it was led again");
}

#[test]
fn receiver_with_initial_losses_completes_the_manifest_first() {
    let all = vec![K; 55];
    let mut carousel = fountain(1, 2, &all);
    carousel.lead();
    let mut member = Member::new(0, 0, 0.05, all.len());
    let mut rng = Rng::new(3, 1);
    let mut packets = 0;
    while member.missing > 0 {
        // At the start the source doubles its rate until the rate is too high: a third of the packets is lost.
        member.loss = if packets < 600 { 0.33 } else { 0.05 };
        member.take(carousel.next(Layer(0)).expect("there are blocks"), &all, &mut rng);
        packets += 1;
        if (1..all.len()).all(|block| member.counts[block] >= K) {
            assert!(member.counts[0] >= K, "{} after {packets}", member.counts[0]);
        }
    }
    assert!(packets < 16_500, "{packets} packets for {} symbols at 5 % of loss", 55 * u32::from(K));
}

#[test]
fn blocks_added_later_catch_up_within_few_packets() {
    let mut carousel = fountain(2, 4, &[K; 10]);
    let mut counts = vec![[0_u32; 2]; 20];
    let send = |carousel: &mut Carousel, counts: &mut Vec<[u32; 2]>, packets: usize| {
        for packet in 0..packets {
            let layer = Layer((packet % 2) as u8);
            let pick = carousel.next(layer).expect("there are blocks");
            (usize::from(layer.0)..2).for_each(|level| counts[pick.block as usize][level] += 1);
        }
    };
    send(&mut carousel, &mut counts, 20_000);
    (0..10).for_each(|_| carousel.push(K));
    // On the base layer, ten new blocks need as many packets as they have symbols, plus the packets of one turn around the old
    // blocks.
    send(&mut carousel, &mut counts, 2 * (10 * 272 + 10 * 8));
    assert!(counts[10..].iter().all(|count| count[0] >= K.into()), "{counts:?}");
    assert!(counts[10..].iter().all(|count| count[1] <= 3 * u32::from(K)), "{counts:?}");
}

#[test]
fn layer_sends_all_blocks_evenly_after_it_was_off() {
    let all = vec![K; 20];
    let mut carousel = fountain(2, 4, &all);
    (0..50_000).for_each(|_| _ = carousel.next(Layer(0)));
    let mut visits = vec![0_u32; all.len()];
    for _ in 0..20 * 100 {
        visits[carousel.next(Layer(1)).expect("there are blocks").block as usize] += 1;
    }
    let (least, most) = (visits.iter().min(), visits.iter().max());
    assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 12), "{visits:?}");
}

#[test]
fn symbol_ids_restart_at_zero_after_the_last_one() {
    let mut carousel = fountain(1, 1, &[4]);
    carousel.blocks[0].next = SYMBOL_LIMIT - 1;
    let ids = [(); 2].map(|()| carousel.next(Layer(0)).expect("a block").symbol);
    assert_eq!(ids, [SYMBOL_LIMIT - 1, 0]);
}

#[test]
fn no_symbol_is_sent_without_blocks_or_on_absent_layers() {
    assert_eq!(fountain(2, 1, &[]).next(Layer(0)), None);
    assert_eq!(fountain(2, 1, &[9]).next(Layer(2)), None);
    assert_eq!(fountain(2, 1, &[9]).coming(Layer(2)), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn symbols_are_sent_once_and_evenly_at_all_levels(
        layers in 1..6_u8,
        run in 1..12_u16,
        full in 1..30_usize,
        rest in 1..K,
        seed in any::<u64>(),
    ) {
        let all = blocks(full, rest);
        let mut carousel = fountain(layers, run, &all);
        let mut rng = Rng::new(seed, 1);
        let mut seen = BTreeSet::new();
        let mut counts = vec![vec![0_u64; usize::from(layers)]; all.len()];
        for _ in 0..all.len() * 300 {
            // Lower layers may send more or less than upper layers, or pause for a while.
            let most = 1 + rng.below(u64::from(layers));
            let layer = Layer(rng.below(most) as u8);
            let pick = carousel.next(layer).expect("there are blocks");
            prop_assert!(seen.insert((pick.block, pick.symbol)), "{:?}", pick);
            let levels = usize::from(layer.0)..usize::from(layers);
            levels.for_each(|level| counts[pick.block as usize][level] += 1);
        }
        for level in 0..usize::from(layers) {
            let of_full = counts[..full].iter().map(|count| count[level]);
            let (least, most) = (of_full.clone().min().unwrap_or(0), of_full.max().unwrap_or(0));
            // The bound allows for one block that is a visit behind, one block that is a visit ahead, and the symbols of faster
            // lower layers.
            prop_assert!(most - least <= u64::from(run) * (level as u64 + 2) + 2, "level {}: {} to {}", level, least, most);
        }
    }
}

#[test]
fn a_generation_sends_each_block_once_with_new_symbols() {
    let mut carousel = Carousel::new(1, 100, 1);
    carousel.set_run(113);
    [100, 100, 100, 7].into_iter().for_each(|symbols| carousel.push(symbols));
    assert!(carousel.is_between_rounds() && carousel.rounds() == 0);
    let mut sent = std::collections::BTreeSet::new();
    for round in 1..=5 {
        let mut blocks = Vec::new();
        while blocks.is_empty() || !carousel.is_between_rounds() {
            let pick = carousel.next(Layer(0)).expect("there are blocks");
            assert!(sent.insert((pick.block, pick.symbol)), "{pick:?} in round {round}");
            blocks.push(pick.block);
        }
        assert!(blocks.is_sorted() && carousel.rounds() == round, "{blocks:?}");
        let of = |block: u32| blocks.iter().filter(|one| **one == block).count();
        assert_eq!([0, 1, 2].map(of), [113; 3]);
        assert!((15..=17).contains(&of(3)), "{}", of(3));
    }
}

#[test]
fn blocks_added_during_a_generation_are_sent_before_it_ends() {
    let mut carousel = Carousel::new(1, 100, 1);
    carousel.set_run(113);
    for block in 0..4 {
        carousel.push(100);
        assert_eq!(carousel.is_between_rounds(), block == 0);
        let picks = std::iter::from_fn(|| {
            let begins = carousel.rounds() == 0 && block == 0;
            (begins || !carousel.is_between_rounds()).then(|| carousel.next(Layer(0)).expect("a block"))
        });
        let picks: Vec<_> = picks.collect();
        assert!(picks.iter().all(|pick| pick.block == block) && picks.len() >= 106, "{picks:?}");
        assert_eq!(carousel.rounds(), 1);
    }
}
