//! Tests of each filter and of the whole cascade.

use super::*;
use crate::schemes::le_sbcc::Part::Off;

/// A cascade with a constant round-trip time. Time advances in cycles slightly longer than a round trip.
struct Cycles {
    cascade: Cascade,
    round_trip: RoundTrip,
    rng: Rng,
    now: Time,
}

const RTT: Span = Span::from_millis(100);

fn id(number: u64) -> ReceiverId {
    ReceiverId::new(number).expect("receivers are numbered from one")
}

impl Cycles {
    fn new(config: &Config, seed: u64) -> Cycles {
        let mut round_trip = RoundTrip::new(config, RTT);
        (0..200).for_each(|_| round_trip.add(RTT));
        let (cascade, rng) = (Cascade::new(config), Rng::new(seed, 1));
        Cycles { cascade, round_trip, rng, now: Time::ZERO }
    }

    fn next(&mut self) {
        self.now += self.round_trip.window() + Span::from_micros(1);
    }

    /// Adds `count` indications of receiver `from`; returns the number of resulting reductions.
    fn indicate(&mut self, from: u64, count: u16) -> u32 {
        let reporter = self.cascade.reporter(id(from)).expect("there is room");
        self.cascade.on_indications(reporter, count, &self.round_trip, self.now, &mut self.rng)
    }
}

#[test]
fn indications_within_a_round_trip_are_one_event_per_receiver() {
    let mut cycles = Cycles::new(&Config::published(), 1);
    for receiver in 1..=7 {
        cycles.indicate(receiver, 5);
        cycles.indicate(receiver, 1);
    }
    cycles.now += cycles.round_trip.window();
    cycles.indicate(1, 3);
    assert_eq!((cycles.cascade.tally.indications, cycles.cascade.tally.events), (45, 7));
    cycles.now += Span::from_nanos(1);
    cycles.indicate(1, 3);
    assert_eq!(cycles.cascade.tally.events, 8, "more than SRTT + 2 sigma after the last one that passed");
}

#[test]
fn each_slot_counts_only_the_first_indication_of_a_receiver() {
    let mut cycles = Cycles::new(&Config { events: Events::Slots, ..Config::published() }, 1);
    let mut events_at = |millis: f64, from| {
        cycles.now = Time::from_secs_f64(millis / 1000.0);
        let before = cycles.cascade.tally.events;
        cycles.indicate(from, 5);
        cycles.cascade.tally.events - before
    };
    let slot = RTT.as_secs_f64() * 1000.0;
    assert_eq!([0.99, 0.999].map(|at| events_at(at * slot, 1)), [1, 0]);
    assert_eq!(
        [1.0, 1.01, 1.99].map(|at| events_at(at * slot, 1)),
        [1, 0, 0],
        "a hundredth of a round trip later"
    );
    assert_eq!([1.99, 2.01].map(|at| events_at(at * slot, 2)), [1, 1]);
    assert_eq!(
        [7.5, 7.99, 8.0].map(|at| events_at(at * slot, 1)),
        [1, 0, 1],
        "slots go on where nobody reports"
    );
}

/// Paper 000, 2.2.1.4: each packet is lost independently with probability `p`, at `x` packets per round trip. A slot has an event
/// with probability `1 - (1 - p)^x`. A filter that closes for a round trip after an event has one event in `1 / p + x` packets.
#[test]
fn independent_losses_make_more_events_in_slots_than_in_windows() {
    let (p, x, sent) = (0.1, 3, 60_000);
    let events = |events| {
        let mut cycles = Cycles::new(&Config { events, ..Config::published() }, 4);
        let spacing = cycles.round_trip.mean() / x;
        for _ in 0..sent {
            cycles.now += spacing;
            if cycles.rng.chance(p) {
                cycles.indicate(1, 1);
            }
        }
        cycles.cascade.tally.events as f64 / f64::from(sent)
    };
    let slots = (1.0 - (1.0 - p).powi(x as i32)) / x as f64;
    let window = 1.0 / (1.0 / p + x as f64);
    assert!((events(Events::Slots) / slots - 1.0).abs() < 0.03, "{} and {slots}", events(Events::Slots));
    assert!((events(Events::Window) / window - 1.0).abs() < 0.03, "{} and {window}", events(Events::Window));
}

#[test]
fn without_the_first_filter_every_indication_is_an_event() {
    let mut cycles = Cycles::new(&Config { li2le: Off, filter: Selection::All, ..Config::published() }, 1);
    assert_eq!(cycles.indicate(1, 30), 1, "but there is one reduction");
    assert_eq!((cycles.cascade.tally.events, cycles.cascade.tally.followed), (30, 30));
}

#[test]
fn without_the_last_filter_every_passed_event_reduces_the_rate() {
    let none = Config { li2le: Off, filter: Selection::All, atf: Off, ..Config::published() };
    let mut cycles = Cycles::new(&none, 1);
    assert_eq!(cycles.indicate(1, 30), 30);
    assert!(!cycles.cascade.is_congested(cycles.now));
}

#[test]
fn filters_pass_as_many_events_as_the_worst_receiver_has() {
    for others in [0, 1, 5, 50] {
        let mut cycles = Cycles::new(&Config::published(), 2);
        let rounds = 400;
        for _ in 0..rounds {
            for tenth in 0..10 {
                cycles.next();
                cycles.indicate(1, 1);
                if tenth % 5 == 0 {
                    (2..2 + others).for_each(|receiver| _ = cycles.indicate(receiver, 1));
                }
            }
        }
        let (worst, all) =
            (f64::from(10 * rounds), f64::from(10 * rounds) + f64::from(2 * rounds) * others as f64);
        let passes = worst / all;
        let deviation = (all * passes * (1.0 - passes)).sqrt();
        let followed = cycles.cascade.tally.followed as f64;
        assert_eq!(cycles.cascade.tally.events as f64, all);
        assert!((followed - worst).abs() <= 3.0 * deviation, "{followed} instead of {worst}");
        assert_eq!(cycles.cascade.worst(), Some(id(1)));
    }
}

#[test]
fn two_events_within_an_epoch_cause_one_reduction() {
    let mut cycles = Cycles::new(&Config::published(), 3);
    let epoch = cycles.round_trip.timeout() + cycles.round_trip.silence();
    assert_eq!(cycles.indicate(1, 1), 1);
    let begun = cycles.now;
    cycles.next();
    assert_eq!(cycles.indicate(1, 1), 0);
    assert!(cycles.cascade.is_congested(cycles.now));
    cycles.now = begun + epoch;
    assert!(!cycles.cascade.is_congested(cycles.now));
    cycles.next();
    assert_eq!(cycles.indicate(1, 1), 1);
    assert_eq!((cycles.cascade.tally.followed, cycles.cascade.reductions), (3, 2));
}

/// Returns two numbers for 6000 packets: events after the second filter, and reductions. One receiver loses the fraction `worst`
/// of the packets, and `others` receivers lose 2 % of them: paper 000, 2.2.1.4. A reduction halves the window; otherwise the
/// window grows by one.
fn star(worst: f64, others: u64, filter: Selection, seed: u64) -> (u64, u64) {
    let mut cycles = Cycles::new(&Config { filter, ..Config::published() }, seed);
    let (mut window, mut sent) = (1u64, 0);
    while sent < 6000 {
        sent += window;
        let mut reductions = 0;
        // A receiver indicates only its first lost packet, which causes the event. Receivers without losses are skipped.
        let mut indicate = |cycles: &mut Cycles, receiver| reductions += cycles.indicate(receiver, 1);
        if cycles.rng.chance(1.0 - (1.0 - worst).powf(window as f64)) {
            indicate(&mut cycles, 1);
        }
        let none = 0.98f64.powf(window as f64);
        let mut receiver = 2;
        loop {
            receiver += ((1.0 - cycles.rng.unit()).ln() / none.ln()) as u64;
            if receiver >= 2 + others {
                break;
            }
            indicate(&mut cycles, receiver);
            receiver += 1;
        }
        window = if reductions > 0 { (window / 2).max(1) } else { window + 1 };
        cycles.next();
    }
    (cycles.cascade.tally.followed, cycles.cascade.reductions)
}

/// Returns means over five seeds.
fn mean_star(worst: f64, others: u64, filter: Selection) -> (f64, f64) {
    let runs = (1..=5).map(|seed| star(worst, others, filter, seed));
    let sums = runs.fold((0, 0), |sums, run| (sums.0 + run.0, sums.1 + run.1));
    (sums.0 as f64 / 5.0, sums.1 as f64 / 5.0)
}

/// The published numbers of events after the second filter do not depend on the number of other receivers. They are 500 to 520 if
/// the worst receiver loses 10 %, and about 1000 if it loses 20 %. Several events within a round trip cause only one reduction, so a
/// large group has a fifth fewer reductions.
#[test]
fn number_of_passed_events_does_not_depend_on_the_group_size() {
    for (worst, range) in [(0.1, 480.0..=525.0), (0.2, 880.0..=1010.0)] {
        let (_, alone) = mean_star(worst, 0, Selection::MaxLprf);
        for others in [0, 10, 100, 1000, 5000] {
            let (followed, reductions) = mean_star(worst, others, Selection::MaxLprf);
            assert!(range.contains(&followed), "{followed} at {worst} with {others} others");
            if others > 0 {
                let part = reductions / alone;
                assert!((0.7..0.9).contains(&part), "{part} of {alone} at {worst} with {others} others");
            }
        }
    }
}

#[test]
fn lprf_passes_far_fewer_events_than_max_lprf() {
    for others in [10, 100, 1000] {
        let (max_lprf, _) = mean_star(0.1, others, Selection::MaxLprf);
        let (lprf, _) = mean_star(0.1, others, Selection::Lprf);
        assert!(lprf < max_lprf / 2.0, "{lprf} of {max_lprf} with {others} others");
    }
}

/// The scheme of Wang and Schwartz (paper 000, 1.6.2.6): the number of passed events is the mean over the receivers.
#[test]
fn even_selection_passes_the_mean_number_of_events() {
    let all = |others| mean_star(0.1, others, Selection::All).0;
    for others in [10, 100] {
        let (even, _) = mean_star(0.1, others, Selection::Even);
        let mean = all(others) / (others + 1) as f64;
        assert!((0.7..1.4).contains(&(even / mean)), "{even} of {mean} with {others} others");
    }
}
