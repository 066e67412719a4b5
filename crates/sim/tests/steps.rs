//! Runs in steps: reports during a run are exact, and do not affect the outcome.

mod nets;

use faircast_core::time::{Span, Time};
use faircast_sim::{
    Engine, Event, Events, Happening, Islands, LinkId, Mode, Network, Options, Outcome, Snapshot,
    SnapshotError,
};
use std::collections::BTreeMap;

const EVERY: Span = Span::from_millis(500);
const ISLANDS: (Mode, Islands) = (Mode::Eager, Islands::AtMost(3));

fn options(mode: Mode, seconds: f64) -> Options {
    let until = Time::from_secs_f64(seconds);
    Options { until, mode, bin: EVERY, sample: EVERY, events: Events::On, ..Options::default() }
}

fn probed(mut network: Network) -> Network {
    for link in (0..network.link_count()).map(LinkId) {
        network.probe_link(link, EVERY);
    }
    (1..60).for_each(|count| network.count_until(Time::ZERO + EVERY * count));
    network
}

/// Returns networks of every kind, with all links probed.
fn networks() -> Vec<(String, Network, f64)> {
    use nets::Background::{Datagrams, Sessions, Tcp};
    let mut all = vec![
        ("star beside TCP".to_owned(), nets::star(8, Tcp), 20.0),
        ("star beside sessions".to_owned(), nets::star(5, Sessions), 20.0),
        ("star beside datagrams".to_owned(), nets::star(5, Datagrams), 20.0),
        ("tree".to_owned(), nets::tree(4, 5), 20.0),
        ("links that change".to_owned(), nets::rough_star(8), 30.0),
        ("members that come back".to_owned(), nets::coming_back(8), 20.0),
        ("far source".to_owned(), nets::far_source(20), 15.0),
        ("layers".to_owned(), nets::layered("rlc", 4), 20.0),
    ];
    let mut fair = nets::star(4, Tcp);
    for (link, queue) in [(2, "codel,ecn"), (6, "drr,limit=20"), (10, "fifo,limit=9,drops=front")] {
        fair.set_queue(LinkId(link), queue.parse().expect("a queue"));
    }
    all.push(("queues that hold packets".to_owned(), fair, 20.0));
    all.extend((0..12).map(|seed| (format!("random {seed}"), nets::random(seed), 8.0)));
    all.into_iter().map(|(name, network, seconds)| (name, probed(network), seconds)).collect()
}

/// Runs the network in steps of `step`, with a snapshot at every multiple of the period.
fn in_steps(
    network: &Network,
    (mode, islands): (Mode, Islands),
    seconds: f64,
    step: Span,
) -> (Vec<Snapshot>, Vec<Event>, Outcome) {
    let options = Options { islands, ..options(mode, seconds) };
    let mut engine = network.engine(&options).expect("a sound network");
    let (mut snapshots, mut events, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
    let mut next = Time::ZERO;
    while now < Time::from_secs_f64(seconds) {
        now += step;
        engine.run_until(now);
        while next <= now && next <= Time::from_secs_f64(seconds) {
            snapshots.push(engine.snapshot(next).expect("it was kept"));
            next += EVERY;
        }
        let new: Vec<Event> = engine.take_events();
        assert!(new.iter().all(|event| event.at <= now) && new.is_sorted_by_key(|event| event.at));
        assert!(events.last().is_none_or(|last: &Event| new.first().is_none_or(|first| last.at <= first.at)));
        events.extend(new);
    }
    (snapshots, events, finish(engine, network))
}

fn finish(mut engine: Engine, network: &Network) -> Outcome {
    engine.run();
    engine.finish(network).expect("no role wants what it cannot have")
}

#[track_caller]
fn assert_same(a: &Outcome, b: &Outcome, what: &str) {
    assert_eq!(a.digest, b.digest, "{what}");
    assert!(a.flows == b.flows && a.links == b.links && a.taps == b.taps, "{what}");
    assert_eq!((a.traversals, a.arrivals), (b.traversals, b.arrivals), "{what}");
}

#[test]
fn stepwise_runs_equal_whole_runs_in_both_engines_and_islands() {
    for (name, network, seconds) in networks() {
        let plain = Options { events: Events::Off, ..options(Mode::Eager, seconds) };
        let plain = network.run(&plain).expect("a sound network");
        let (snapshots, events, whole) = in_steps(&network, (Mode::Eager, Islands::One), seconds, EVERY);
        assert_same(&plain, &whole, &name);
        for (way, step) in [((Mode::Evented, Islands::One), EVERY), (ISLANDS, Span::from_micros(1_733_017))] {
            let (other, others, outcome) = in_steps(&network, way, seconds, step);
            assert_same(&plain, &outcome, &name);
            assert_eq!(whole.round_trips, outcome.round_trips, "{name}");
            for (a, b) in snapshots.iter().zip(&other) {
                assert_eq!(a, b, "{name}");
            }
            let first = events.iter().zip(&others).find(|(a, b)| a != b);
            assert_eq!(first, None, "{name}: the first different event");
            assert_eq!(events.len(), others.len(), "{name}");
        }
        assert!(events.len() > 10, "{name}: {}", events.len());
    }
}

/// The outcome of a run that ends at the time of the snapshot is exact, because no state can be ahead of the end of a run.
#[test]
fn snapshot_equals_outcome_of_a_run_that_ends_at_the_snapshot() {
    for (name, network, seconds) in networks() {
        let (snapshots, ..) = in_steps(&network, ISLANDS, seconds, EVERY);
        for snapshot in snapshots.iter().skip(3).step_by(4) {
            // Events exactly at the time of the snapshot are not included in the snapshot.
            let until = Time::from_nanos(snapshot.at.as_nanos() - 1);
            let options = Options { until, ..options(Mode::Eager, seconds) };
            let outcome = network.run(&options).expect("a sound network");
            for (number, (flow, known)) in snapshot.flows.iter().zip(&outcome.flows).enumerate() {
                let received: u64 = known.members.iter().map(|member| member.bytes).sum();
                assert_eq!(flow.received_bytes, received, "{name}, flow {number} at {:?}", snapshot.at);
                assert_eq!(flow.sent_bytes, known.sent_bins.iter().sum::<u64>(), "{name}, flow {number}");
                for member in &flow.members {
                    let known = &known.members[member.number as usize];
                    let seen = (member.received_bytes, member.lost, member.excluded);
                    let expected = (known.bytes, Some(known.lost), known.excluded);
                    assert_eq!(seen, expected, "{name}, flow {number} at {:?}", snapshot.at);
                }
            }
            for link in &snapshot.links {
                let known = outcome.links[link.link.0 as usize].counts;
                assert_eq!(link.sample.counts, known, "{name}, {:?} at {:?}", link.link, snapshot.at);
            }
        }
    }
}

#[test]
fn events_agree_with_the_counts_of_the_outcome() {
    for (name, network, seconds) in networks() {
        let outcome = network.run(&options(Mode::Eager, seconds)).expect("a sound network");
        let (_, events, _) = in_steps(&network, ISLANDS, seconds, EVERY);
        assert!(events == outcome.log, "{name}: in steps or at the end");
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut running = std::collections::BTreeSet::new();
        for event in &events {
            let kind = match event.what {
                Happening::Lost { .. } => "lost",
                Happening::Marked { .. } => "marked",
                Happening::Cut { .. } => "cut",
                Happening::Follows { .. } => "follows",
                Happening::Subscribed { .. } => "subscribed",
                Happening::Transferred { .. } => "transferred",
                Happening::Started { flow } => {
                    assert!(running.insert(flow), "{name}: {flow:?} started twice");
                    "started"
                }
                Happening::Joined { .. } => "joined",
                _ => continue,
            };
            *counts.entry(kind).or_default() += 1;
        }
        let mut count = |kind| counts.remove(kind).unwrap_or_default();
        let flows = || outcome.flows.iter();
        assert_eq!(count("cut"), flows().map(|flow| flow.cuts.len() as u64).sum::<u64>(), "{name}");
        assert_eq!(count("follows"), flows().map(|flow| flow.representatives.len() as u64).sum::<u64>());
        assert_eq!(count("transferred"), flows().map(|flow| flow.transfers.len() as u64).sum::<u64>());
        let members = || outcome.flows.iter().flat_map(|flow| &flow.members);
        assert_eq!(count("subscribed"), members().map(|it| it.subscriptions.len() as u64).sum::<u64>());
        let links = || outcome.links.iter().map(|link| link.counts);
        assert_eq!(count("marked"), links().map(|it| it.marked).sum::<u64>(), "{name}");
        if !name.starts_with("links that") {
            // A failing link also counts packets that had already left, so networks with failures are excluded.
            let lost = links().map(|it| it.overflow + it.early + it.lost).sum::<u64>();
            assert_eq!(count("lost"), lost, "{name}");
        }
        assert!(count("started") > 0 && count("joined") > 0, "{name}");
    }
}

#[test]
fn snapshot_is_refused_at_times_that_were_not_stored() {
    let network = probed(nets::star(2, nets::Background::Tcp));
    let mut engine = network.engine(&options(Mode::Eager, 5.0)).expect("a sound network");
    let (two, three) = (Time::from_secs_f64(2.0), Time::from_secs_f64(3.0));
    engine.run_until(two);
    assert_eq!(engine.snapshot(three), Err(SnapshotError::NotReached { at: three, reached: two }));
    let odd = Time::from_secs_f64(1.3);
    assert_eq!(engine.snapshot(odd), Err(SnapshotError::NotKept { at: odd, period: "bin" }));
    let snapshot = engine.snapshot(Time::from_secs_f64(1.5)).expect("that is past, and was kept");
    assert_eq!(snapshot.links.len(), network.link_count() as usize);
    let busy = snapshot.links.iter().map(|link| link.utilisation).fold(0.0, f64::max);
    assert!(busy > 0.9 && busy <= 1.0, "a bottleneck is busy: {busy}");
    assert!(snapshot.flows.iter().all(|flow| flow.source.is_some()));
}

#[test]
fn events_are_logged_only_if_requested() {
    let network = nets::star(2, nets::Background::Tcp);
    let options = Options { events: Events::Off, ..options(Mode::Eager, 5.0) };
    assert_eq!(network.run(&options).expect("a sound network").log, []);
}
