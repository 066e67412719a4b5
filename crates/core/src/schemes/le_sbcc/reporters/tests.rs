//! Tests that compare the table with a plain map, and a test of its memory use.

use super::*;
use crate::rng::Rng;
use std::collections::BTreeMap;

fn id(number: u64) -> ReceiverId {
    ReceiverId::new(number).expect("receivers are numbered from one")
}

fn find(reporters: &mut Reporters, who: u64) -> Reporter {
    reporters.find(id(who)).expect("there is room")
}

/// Records a loss event of this receiver.
fn event(reporters: &mut Reporters, who: u64, now: Time) -> Shares {
    let reporter = find(reporters, who);
    reporters.pass(reporter, now);
    reporters.count(reporter)
}

fn counted(reporters: &Reporters, who: u64) -> Option<f64> {
    let place = reporters.places[reporters.place_of(id(who))];
    place.is.map(|_| f64::from(place.count) * reporters.unit)
}

fn seconds(secs: f64) -> Time {
    Time::from_secs_f64(secs)
}

#[test]
fn decay_reduces_counts_by_a_tenth_and_preserves_shares() {
    let mut reporters = Reporters::new();
    (0..10).for_each(|_| _ = event(&mut reporters, 1, Time::ZERO));
    (0..4).for_each(|_| _ = event(&mut reporters, 2, Time::ZERO));
    let share = reporters.worst_share();
    assert_eq!(share, 10.0 / 14.0);
    reporters.decay(0.9);
    assert!((counted(&reporters, 1).expect("known") - 9.0).abs() < 1e-6);
    assert!((counted(&reporters, 2).expect("known") - 3.6).abs() < 1e-6);
    assert_eq!(reporters.worst_share(), share);
    event(&mut reporters, 2, Time::ZERO);
    assert!((counted(&reporters, 2).expect("known") - 4.6).abs() < 1e-6, "a new event is worth one");
    reporters.sweep(Time::ZERO);
    assert!((reporters.worst_share() - 9.0 / 13.6).abs() < 1e-6);
}

#[test]
fn receiver_without_recent_losses_is_forgotten_after_decay() {
    let mut reporters = Reporters::new();
    event(&mut reporters, 1, seconds(1.0));
    (0..43).for_each(|_| reporters.decay(0.9));
    reporters.sweep(seconds(2.0));
    assert!(counted(&reporters, 1).is_some(), "0.9^43 is above a hundredth");
    reporters.decay(0.9);
    reporters.sweep(seconds(0.5));
    assert!(counted(&reporters, 1).is_some(), "it had a loss event lately");
    reporters.sweep(seconds(2.0));
    assert_eq!((counted(&reporters, 1), reporters.worst()), (None, None));
}

#[test]
fn second_worst_receiver_becomes_worst_when_the_worst_leaves() {
    let mut reporters = Reporters::new();
    for (who, events) in [(1, 3), (2, 9), (3, 5)] {
        (0..events).for_each(|_| _ = event(&mut reporters, who, Time::ZERO));
    }
    assert_eq!(reporters.worst(), Some(id(2)));
    reporters.forget(id(2));
    assert_eq!(reporters.worst(), Some(id(3)));
    assert_eq!(reporters.worst_share(), 5.0 / 8.0);
    reporters.forget(id(17));
    assert_eq!(reporters.used, 2);
}

#[test]
fn packet_counts_as_new_only_in_the_first_report_of_a_receiver() {
    let mut reporters = Reporters::new();
    let old = [(7, true), (7, false), (9, true), (8, false)];
    let wrapping = [(0x7000_0000, true), (0xe000_0000, true), (0x1_0000_0003, true)];
    for (seq, anew) in old.into_iter().chain(wrapping) {
        let reporter = find(&mut reporters, 1);
        assert_eq!(reporters.names(reporter, Seq(seq)), anew, "{seq}");
        reporters.pass(reporter, Time::ZERO);
    }
}

#[test]
fn reporter_table_agrees_with_an_ordered_map() {
    let (mut reporters, mut model) = (Reporters::new(), BTreeMap::new());
    let mut rng = Rng::new(11, 4);
    for step in 0..60_000u64 {
        // Receiver IDs whose hashes collide: some IDs are close together, others far apart.
        let who = 1 + rng.below(400) * if rng.chance(0.5) { 1 } else { 0x0100_0000_0001 };
        match rng.below(10) {
            0..3 => {
                reporters.forget(id(who));
                model.remove(&who);
            }
            _ => {
                event(&mut reporters, who, seconds(step as f64));
                *model.entry(who).or_insert(0u32) += 1;
            }
        }
    }
    assert_eq!(reporters.used, model.len());
    for (&who, &events) in &model {
        assert_eq!(counted(&reporters, who), Some(f64::from(events)), "{who}");
    }
    let total: u32 = model.values().sum();
    let most = model.values().max().copied().expect("some are left");
    assert_eq!(reporters.worst_share(), f64::from(most) / f64::from(total));
}

/// 10,000 reporters need less than a megabyte, also while the table grows.
#[test]
fn ten_thousand_reporters_fit_into_a_megabyte() {
    let mut numbers = Rng::new(5, 5);
    for count in [10_000u64, 12_289, 25_000, 50_000] {
        let fill = || {
            let mut reporters = Reporters::new();
            (0..count).for_each(|_| _ = event(&mut reporters, numbers.bits() | 1, Time::ZERO));
            assert_eq!(reporters.used as u64, count);
        };
        let peak = allocation_counter::measure(fill).bytes_max;
        assert!(peak < 100 * count, "{peak} bytes for {count}");
    }
}

#[test]
fn events_of_known_receivers_allocate_no_memory() {
    let mut reporters = Reporters::new();
    (1..=1000).for_each(|who| _ = event(&mut reporters, who, Time::ZERO));
    let steady = || {
        for round in 0..100 {
            (1..=1000).for_each(|who| _ = event(&mut reporters, who, seconds(f64::from(round))));
            reporters.decay(0.9);
            reporters.sweep(Time::ZERO);
        }
    };
    assert_eq!(allocation_counter::measure(steady).count_total, 0);
}

#[test]
fn reporter_table_refuses_receivers_beyond_its_limit() {
    let mut reporters = Reporters::new();
    (1..=MAX as u64).for_each(|who| _ = find(&mut reporters, who));
    assert!(reporters.find(id(MAX as u64 + 1)).is_none());
    assert!(reporters.find(id(5)).is_some(), "known ones are still heard");
}

impl Reporters {
    fn worst_share(&self) -> f64 {
        f64::from(self.worst) / self.sum
    }
}
