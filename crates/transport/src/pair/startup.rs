//! Slow start: time until a path is filled, load on the path, and sharing of a bottleneck between sessions.

use super::*;

const HALF_SECOND: Span = Span::from_millis(500);

#[test]
fn half_of_a_fast_long_path_is_used_within_five_seconds() {
    let mut net = Net::new(1).with_trunk(Link::millis(45).mbps(1_000.0).fifo(6_000_000));
    net.receivers(2, Link::millis(5), Link::millis(50));
    let source = net.source(Offer::zeros(1_000_000_000).datagrams_of(8_972).expect(2));
    let half = 500e6 / 8.0 * 0.5;
    let mut filled = None;
    for _ in 0..40 {
        net.run_for(Span::from_millis(200));
        filled = net.trace.sent[source].first_with(HALF_SECOND, half as u64);
        if filled.is_some() {
            break;
        }
    }
    let at = filled.expect("the path is filled").as_secs_f64();
    println!("1 Gbit/s, 100 ms: half used after {at:.2} s; {} datagrams dropped", net.trunk.dropped);
    assert!(at <= 5.0, "{at}");
}

#[test]
fn slow_start_does_not_exceed_twice_the_capacity_of_the_path() {
    for (rtt, queue) in [(10, 50_000), (40, 50_000), (100, 50_000)] {
        let mut net = Net::new(2).with_trunk(Link::millis(rtt / 2).mbps(10.0).fifo(queue));
        net.receivers(2, Link::default(), Link::millis(rtt / 2));
        let source = net.source(Offer::zeros(100_000_000).expect(2));
        net.run_for(secs(20));
        let capacity = 10e6 / 8.0;
        let most = net.trace.sent[source].max_within(HALF_SECOND) as f64 / (capacity * 0.5);
        let fifth = Span::from_millis(200);
        let half = net.trace.sent[source].first_with(fifth, (capacity * 0.1) as u64);
        let half = half.expect("the path is used").as_secs_f64();
        let used = net.trace.sent[source].between(Time::ZERO + secs(5), Time::ZERO + secs(20)) as f64
            / (capacity * 15.0);
        println!(
            "10 Mbit/s, {rtt} ms: at most {most:.2} x the path in 500 ms, half used after {half:.2} s, then {used:.2}; {} lost",
            net.trunk.dropped
        );
        assert!(most <= 2.0, "{rtt} ms: {most}");
        // Joining also takes some round trips.
        assert!(half <= 2.0 + 4e-3 * rtt as f64, "{rtt} ms: {half}");
        assert!(used >= 0.7, "{rtt} ms: {used}");
    }
}

#[test]
fn rates_of_two_sessions_differ_by_at_most_a_factor_of_two() {
    for (seed, pause) in [(1, 0), (2, 0), (3, 10), (4, 10)] {
        let mut net = Net::new(seed).with_trunk(Link::millis(10).mbps(20.0).fifo(60_000));
        let offer = || Offer::zeros(200_000_000).expect(2);
        net.receivers_with(2, Link::millis(5), Link::millis(15), Some(0), None);
        net.source(offer());
        net.run_for(secs(pause));
        net.receivers_with(2, Link::millis(5), Link::millis(15), Some(1), None);
        net.source(offer());
        net.run_for(secs(60));
        let (from, to) = (net.now - secs(50), net.now);
        let [one, two] = [0, 1].map(|source| net.trace.sent[source].between(from, to) as f64);
        let (ratio, used) = (two / one, (one + two) / (20e6 / 8.0 * 50.0));
        println!("seed {seed}, second after {pause} s: ratio {ratio:.2}, path used {used:.2}");
        assert!((0.5..=2.0).contains(&ratio), "seed {seed}: {ratio}");
        assert!(used >= 0.7, "seed {seed}: {used}");
    }
}
