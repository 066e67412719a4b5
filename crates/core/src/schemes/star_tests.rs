//! Properties of several schemes at drop-tail bottlenecks, tested with tables of cases.

use super::Scheme;
use super::bench::{Path, Star, receiver_id};
use crate::node::Source as _;
use crate::time::{Rate, Span, Time};

fn path(mbps: f64, rtt_millis: u64, buffer: u64) -> Path {
    Path { rate: Rate::from_mbps(mbps), rtt: Span::from_millis(rtt_millis), buffer }
}

fn star(scheme: &str, size: u16, paths: &[Path], seed: u64) -> Star {
    let scheme: Scheme = scheme.parse().expect("a scheme");
    Star::new(&scheme.with_packet_size(size), size, paths, seed)
}

/// Returns the fraction of the capacity of this receiver's path that is used from second `from` to second `to`.
fn used(star: &mut Star, receiver: usize, from: f64, to: f64) -> f64 {
    star.run_until(Time::from_secs_f64(from));
    let before = star.leaves[receiver].bytes;
    star.run_until(Time::from_secs_f64(to));
    let leaf = &star.leaves[receiver];
    (leaf.bytes - before) as f64 * 8.0 / (to - from) / leaf.path.rate.bps()
}

#[test]
fn slow_start_reaches_half_but_never_twice_the_path_rate() {
    const TENTH: Span = Span::from_millis(100);
    let paths = [
        (path(1.0, 20, 50_000), 2.0, 2.0),
        (path(10.0, 20, 50_000), 2.0, 2.0),
        (path(10.0, 100, 125_000), 2.0, 2.5),
        (path(100.0, 1, 100_000), 2.0, 2.0),
        (path(100.0, 20, 250_000), 2.0, 2.0),
        (path(1000.0, 100, 12_500_000), 6.0, f64::INFINITY),
    ];
    for (path, ormcc, le_sbcc) in paths {
        for (scheme, size, soon) in [("ormcc", 1400, ormcc), ("le-sbcc", 1000, le_sbcc)] {
            for seed in 1..=3 {
                if soon == f64::INFINITY {
                    continue;
                }
                let mut star = star(scheme, size, &[path], seed);
                let mut half_at = f64::INFINITY;
                for tenth in 1..100 {
                    star.run_until(Time::ZERO + TENTH * tenth as u64);
                    let sent = star.sent_between(tenth * 100 - 100, tenth * 100);
                    if half_at.is_infinite() && Rate::of(sent, TENTH).bps() >= path.rate.bps() / 2.0 {
                        half_at = tenth as f64 / 10.0;
                    }
                }
                let overload = star.peak(500).bps() / path.rate.bps();
                assert!(half_at <= soon, "{scheme}, {path:?}: half after {half_at} s");
                assert!(overload <= 2.0, "{scheme}, {path:?}: {overload} times the path");
            }
        }
    }
}

#[test]
fn all_kinds_of_paths_are_used_after_slow_start() {
    for (scheme, size, until, least) in [("ormcc", 1400, 15.0, 0.78), ("le-sbcc", 1000, 25.0, 0.55)] {
        for path in [
            path(1.0, 20, 15_000),
            path(10.0, 20, 50_000),
            path(100.0, 20, 250_000),
            path(1000.0, 1, 1_000_000),
        ] {
            let used = used(&mut star(scheme, size, &[path], 1), 0, 5.0, until);
            assert!(used > least, "{scheme}, {path:?}: {used}");
        }
    }
}

/// TFMCC with both distributions of report delays, and with a linear start.
const TFMCC: [&str; 3] = ["tfmcc", "tfmcc,timer=2001", "tfmcc,start=linear"];

/// Returns the number of bytes sent from second `from` to second `to`, as a fraction of the capacity of a path of `mbps` Mbit/s.
fn sent(star: &mut Star, mbps: f64, from: usize, to: usize) -> f64 {
    star.run_until(Time::from_secs_f64(to as f64));
    star.sent_between(from * 1000, to * 1000) as f64 * 8.0 / (to - from) as f64 / (mbps * 1e6)
}

#[test]
fn source_with_one_receiver_fills_the_bottleneck() {
    let rows = [("pgmcc,preset=published", 30, 60, 0.85, 1.025)].into_iter();
    for (scheme, from, to, least, most) in rows.chain(TFMCC.map(|scheme| (scheme, 40, 90, 0.8, 1.05))) {
        let part = sent(&mut star(scheme, 1000, &[path(2.0, 50, 15_000)], 1), 2.0, from, to);
        assert!((least..most).contains(&part), "{scheme}: {part}");
    }
}

#[test]
fn the_slowest_receiver_is_followed_and_sets_the_rate() {
    let rows =
        [("pgmcc,preset=published", 30, 60, 0.8), ("pgmcc,preset=published,start=doubling", 30, 60, 0.8)];
    for (scheme, from, to, least) in rows.into_iter().chain(TFMCC.map(|scheme| (scheme, 60, 120, 0.75))) {
        let paths = [path(5.0, 20, 30_000), path(1.0, 60, 20_000), path(3.0, 40, 30_000)];
        let mut star = star(scheme, 1000, &paths, 3);
        let part = sent(&mut star, 1.0, from, to);
        assert_eq!(star.source.observe().limiting, Some(receiver_id(2)), "{scheme}");
        assert!((least..1.1).contains(&part), "{scheme}: {part}");
    }
}

#[test]
fn source_follows_a_receiver_whose_path_becomes_slower() {
    let rows = [
        ("ormcc,preset=published", 50_000, 66.0, 0.5e6),
        ("mca-plus,preset=published", 200_000, 70.0, 0.4e6),
        ("mca-plus", 200_000, 70.0, 0.4e6),
    ];
    for (scheme, buffer, soon, most) in rows {
        let mut star = star(scheme, 1000, &[path(1.0, 50, buffer), path(4.0, 50, buffer)], 1);
        star.run_until(Time::from_secs_f64(60.0));
        assert_eq!(star.source.observe().limiting, Some(receiver_id(1)), "{scheme}");
        star.leaves[1].path.rate = Rate::from_mbps(0.3);
        star.run_until(Time::from_secs_f64(soon));
        assert_eq!(star.source.observe().limiting, Some(receiver_id(2)), "{scheme}");
        star.run_until(Time::from_secs_f64(120.0));
        let seen = star.source.observe();
        assert!(seen.level.is_some_and(|level| level.bps() < 0.35e6), "{scheme}: {:?}", seen.level);
        assert!(seen.rate.bps() < most, "{scheme}: {:?}", seen.rate);
    }
}
