//! Tests of grouping with destinations behind bottlenecks.

use super::grouping::{BINS, Config, Counters, Grouping, Observations};
use super::{Config as Rules, Coordinator, MemberId, View};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use std::net::{IpAddr, Ipv4Addr};

/// A destination: its address, its round-trip time with empty queues, and its bottleneck.
#[derive(Clone, Copy)]
struct Place {
    at: IpAddr,
    millis: f64,
    bottleneck: usize,
}

const fn place(third: u8, millis: f64, bottleneck: usize) -> Place {
    Place { at: IpAddr::V4(Ipv4Addr::new(10, 1, third, 7)), millis, bottleneck }
}

struct World {
    coordinator: Coordinator,
    grouping: Grouping,
    places: Vec<Place>,
    members: Vec<MemberId>,
    rng: Rng,
    /// Queues of the bottlenecks, in ms.
    queues: [f64; 3],
    now: u64,
}

impl World {
    fn new(places: &[Place]) -> World {
        let mut coordinator = Coordinator::new(Rules::published());
        let mut grouping = Grouping::new(Config::default());
        let view = View::in_packets(0, 0, 2.0, 64.0);
        let mut join = |place: &Place| grouping.join(&mut coordinator, place.at, view, Time::ZERO);
        let members = places.iter().map(|place| join(place).expect("there is room").member).collect();
        World {
            coordinator,
            grouping,
            places: places.to_vec(),
            members,
            rng: Rng::new(5, 1),
            queues: [0.0; 3],
            now: 0,
        }
    }

    /// Runs for `secs` seconds in steps of a millisecond. In each step, each destination acknowledges five packets. The queueing
    /// delay of each bottleneck varies at random up to `most` milliseconds. A queue that is nearly full causes losses.
    fn run(&mut self, secs: u64, most: f64) {
        for _ in 0..secs * 1000 {
            self.now += 1_000_000;
            let now = Time::from_nanos(self.now);
            for queue in &mut self.queues {
                *queue = (*queue + (self.rng.unit() - 0.5) * most / 8.0).clamp(0.0, most);
            }
            for (place, &member) in self.places.iter().zip(&self.members) {
                let queue = self.queues[place.bottleneck];
                let rtt = Span::from_secs_f64((place.millis + queue) / 1e3);
                (0..5).for_each(|_| self.grouping.on_ack(member, Some(rtt), 1.0, now));
                if most > 5.0 && queue > 0.97 * most {
                    self.grouping.on_loss(member, now);
                }
            }
            if self.now.is_multiple_of(50_000_000) {
                self.grouping.work(&mut self.coordinator, now);
            }
        }
    }

    fn counters(&self) -> Counters {
        self.grouping.counters()
    }

    /// Returns one letter for the group of each destination. Checks that the coordinator has the same groups.
    fn groups(&self) -> String {
        let of = |place: &Place| self.grouping.group_of(place.at).expect("it is there");
        let mut known = Vec::new();
        let letter = |place: &Place| {
            let group = of(place);
            let at = known.iter().position(|it| *it == group).unwrap_or_else(|| {
                known.push(group);
                known.len() - 1
            });
            char::from(b'a' + at as u8)
        };
        let letters = self.places.iter().map(letter).collect();
        for (place, member) in self.places.iter().zip(&self.members) {
            assert_eq!(self.coordinator.group_of(*member), Some(of(place)));
        }
        letters
    }
}

#[test]
fn destinations_with_unequal_rtts_form_separate_groups() {
    // Figure 4.3: all destinations at 48 ms, then two at 48 ms and two at 56 ms, all over one bottleneck.
    let mut same = World::new(&[place(1, 48.0, 0), place(2, 48.0, 0), place(3, 48.0, 0), place(4, 48.0, 0)]);
    assert_eq!(same.groups(), "abcd");
    same.run(40, 60.0);
    assert_eq!((same.groups().as_str(), same.grouping.groups()), ("aaaa", 1));
    let mut apart = World::new(&[place(1, 48.0, 0), place(2, 48.0, 0), place(3, 56.0, 0), place(4, 56.0, 0)]);
    apart.run(40, 60.0);
    assert_eq!(apart.groups(), "aabb");
}

#[test]
fn group_of_two_bottlenecks_is_split_under_congestion() {
    let mut it = World::new(&[place(1, 48.0, 0), place(2, 48.0, 1)]);
    it.run(40, 2.0);
    assert_eq!(it.groups(), "aa", "nothing tells them apart");
    it.run(60, 60.0);
    assert_eq!(it.groups(), "ab");
    let changes = it.counters();
    // The groups stay separate.
    it.run(60, 60.0);
    assert_eq!((it.groups().as_str(), it.counters().splits), ("ab", changes.splits));
}

#[test]
fn destination_changes_groups_with_its_path_without_flapping() {
    let mut it = World::new(&[place(1, 48.0, 0), place(2, 48.0, 0), place(3, 48.0, 0)]);
    it.run(40, 60.0);
    assert_eq!(it.groups(), "aaa");
    it.places[2].bottleneck = 1;
    let before = it.counters();
    it.run(60, 60.0);
    assert_eq!(it.groups(), "aab");
    // The path changes every 2 s, which is more than two periods of tests.
    let period = Span::from_millis(50).as_secs_f64() * BINS as f64 / 4.0;
    for _ in 0..30 {
        it.places[2].bottleneck = 1 - it.places[2].bottleneck;
        it.run(2, 60.0);
    }
    let after = it.counters();
    let changes = (after.merges + after.splits - before.merges - before.splits) as f64;
    assert!(changes <= 1.0 + 120.0 / period / 3.0, "{changes}");
}

#[test]
fn grouping_spends_at_most_one_step_per_forty_acknowledgements() {
    let places: Vec<Place> = (0..20).map(|number| place(number, 40.0 + f64::from(number), 0)).collect();
    let mut it = World::new(&places);
    it.run(10, 60.0);
    let Counters { spent, acknowledgements, tests, .. } = it.counters();
    assert!(tests > 10 && spent == tests * BINS as u64, "{tests}");
    assert!(spent as f64 <= 0.025 * acknowledgements as f64, "{spent} of {acknowledgements}");
}

#[test]
fn groups_are_equal_if_acks_are_reported_singly_or_as_counters() {
    let places = [place(1, 48.0, 0), place(2, 48.0, 0), place(3, 48.0, 1)];
    let mut each = World::new(&places);
    let mut together = World::new(&places);
    let mut rng = Rng::new(9, 1);
    let mut seen = [Observations::default(); 3];
    let mut queues = [0.0_f64; 2];
    for step in 1..60_000_u64 {
        let now = Time::from_nanos(step * 1_000_000);
        for queue in &mut queues {
            *queue = (*queue + (rng.unit() - 0.5) * 8.0).clamp(0.0, 60.0);
        }
        for (at, place) in places.iter().enumerate() {
            let rtt = Span::from_secs_f64((place.millis + queues[place.bottleneck]) / 1e3);
            let it = &mut seen[at];
            for _ in 0..5 {
                each.grouping.on_ack(each.members[at], Some(rtt), 1.0, now);
                it.shortest = if it.samples == 0 { rtt } else { it.shortest.min(rtt) };
                (it.acknowledgements, it.newly, it.samples) =
                    (it.acknowledgements + 1, it.newly + 1.0, it.samples + 1);
                it.round_trips = it.round_trips + rtt;
            }
            // This is the last millisecond of a bin.
            if step % 50 == 49 {
                together.grouping.on_seen(together.members[at], &std::mem::take(it), now);
            }
        }
        if step % 50 == 49 {
            each.grouping.work(&mut each.coordinator, now);
            together.grouping.work(&mut together.coordinator, now);
        }
    }
    assert_eq!((each.groups().as_str(), together.groups().as_str()), ("aab", "aab"));
    let (one, other) = (each.counters(), together.counters());
    assert_eq!((one.merges, one.acknowledgements), (other.merges, other.acknowledgements));
}

#[test]
fn new_destination_joins_the_group_of_its_subnet() {
    let mut it = World::new(&[place(1, 48.0, 0), place(2, 80.0, 0)]);
    it.run(2, 20.0);
    let neighbour = IpAddr::V4(Ipv4Addr::new(10, 1, 1, 99));
    let stranger = IpAddr::V4(Ipv4Addr::new(10, 1, 9, 9));
    let now = Time::from_nanos(it.now);
    let view = View::in_packets(0, 0, 2.0, 64.0);
    for at in [neighbour, stranger] {
        it.grouping.join(&mut it.coordinator, at, view, now).expect("there is room");
    }
    let first = it.grouping.group_of(it.places[0].at);
    assert_eq!(it.grouping.group_of(neighbour), first);
    assert_ne!(it.grouping.group_of(stranger), first);
}

#[test]
fn unused_destination_is_removed_to_make_room_for_a_new_one() {
    let mut coordinator = Coordinator::new(Rules::published());
    let mut grouping = Grouping::new(Config { max_atoms: 2, ..Config::default() });
    let view = View::in_packets(0, 0, 2.0, 64.0);
    let mut members = Vec::new();
    for third in 0..2 {
        members.push(
            grouping.join(&mut coordinator, place(third, 1.0, 0).at, view, Time::ZERO).expect("room").member,
        );
    }
    assert!(grouping.join(&mut coordinator, place(7, 1.0, 0).at, view, Time::ZERO).is_err());
    grouping.leave(&mut coordinator, members[0]);
    assert!(grouping.join(&mut coordinator, place(7, 1.0, 0).at, view, Time::ZERO).is_ok());
    assert_eq!((grouping.groups(), grouping.group_of(place(0, 1.0, 0).at)), (2, None));
}
