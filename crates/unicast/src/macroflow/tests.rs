//! Tests of windows and repairs, with numbers computed by hand.

use super::*;
use crate::tcp::{self, Variant};
use crate::{Ack, Segment};
use faircast_core::time::{Span, Time};

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// Returns a macroflow whose connections send data immediately, without a SYN.
fn started(config: Config, connections: usize) -> Macroflow {
    let tcp =
        tcp::Config { initial_window: 1, tick: Span::from_millis(10), ..tcp::Config::ns2001(Variant::Reno) };
    let mut it = Macroflow::new(config, tcp, connections);
    (0..connections).for_each(|connection| it.open(connection, u32::MAX, Time::ZERO));
    it
}

fn leaving(it: &mut Macroflow, now: Time) -> Vec<(usize, Segment)> {
    std::iter::from_fn(|| it.next(now)).collect()
}

fn ack(next: u32, echo: Time) -> Ack {
    Ack { next, echo, blocks: [(0, 0); 3], ece: false, syn: false }
}

/// Runs `rounds` rounds. Each packet is acknowledged after 50 ms, unless `lost` selects it. Returns all sent packets.
fn run(
    it: &mut Macroflow,
    rounds: u64,
    mut lost: impl FnMut(usize, u32, u64) -> bool,
) -> Vec<Vec<(usize, u32)>> {
    let mut next = [0_u32; 8];
    let mut beyond: [Vec<u32>; 8] = Default::default();
    let mut all = Vec::new();
    for round in 0..rounds {
        let now = at(round * 50);
        if it.deadline() <= now {
            it.on_deadline(now);
        }
        let sent = leaving(it, now);
        all.push(sent.iter().map(|(connection, segment)| (*connection, segment.seq)).collect());
        for (connection, segment) in sent {
            if lost(connection, segment.seq, round) {
                continue;
            }
            let (next, beyond) = (&mut next[connection], &mut beyond[connection]);
            beyond.push(segment.seq);
            while beyond.contains(next) {
                *next += 1;
            }
            it.on_feedback(connection, &ack(*next, segment.sent_at), at(round * 50 + 49));
        }
    }
    all
}

#[test]
fn idle_connection_resumes_with_a_reduced_window() {
    for law in [Config::integrated(), Config::manager()] {
        let mut it = started(law, 1);
        run(&mut it, 5, |_, _, _| false);
        let window = it.observe(0).window;
        assert!(window > 4.0, "{window}");
        it.supply(0, 0, at(250));
        assert!(leaving(&mut it, at(250)).is_empty(), "{law:?}: nothing is left to send");
        it.supply(0, u32::MAX, at(60_000));
        let left = it.observe(0).window;
        assert!(left < window, "{law:?}: {left} of {window}");
        let again = leaving(&mut it, at(60_000));
        assert_eq!(again[0].1.seq, it.acked(0), "{law:?}: numbers go on");
    }
}

#[test]
fn connections_take_turns_in_a_shared_window_in_slow_start() {
    let mut it = started(Config::integrated(), 3);
    let all = run(&mut it, 4, |_, _, _| false);
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 4, 8]);
    let mut by_connection = [0; 3];
    all.iter().flatten().for_each(|(connection, _)| by_connection[*connection] += 1);
    assert_eq!(by_connection, [5, 5, 5]);
}

#[test]
fn losses_of_three_connections_halve_the_shared_window_once() {
    let mut it = started(Config::integrated(), 3);
    run(&mut it, 6, |_, _, _| false);
    assert_eq!(it.observe(0).window, 64.0);
    let mut it = started(Config::integrated(), 3);
    // In round 5, in which 32 packets are sent, the first packet of each connection is lost.
    let mut hit = [false; 3];
    run(&mut it, 6, |connection, _, round| round == 5 && !std::mem::replace(&mut hit[connection], true));
    let cuts: u64 = (0..3).map(|connection| it.observe(connection).cuts).sum();
    let after = it.observe(0).window;
    assert!(cuts == 1 && (16.0..40.0).contains(&after), "{cuts} {after}");
    // All three losses are repaired without a timeout.
    run_on(&mut it, 6);
    assert!((0..3).all(|connection| it.observe(connection).timeouts == 0));
}

/// Continues [`run`] at round `from`, without losses. When it is called, each connection has one gap.
fn run_on(it: &mut Macroflow, from: u64) {
    for round in from..from + 6 {
        let now = at(round * 50);
        if it.deadline() <= now {
            it.on_deadline(now);
        }
        for (connection, segment) in leaving(it, now) {
            // Once a gap is filled, one acknowledgement covers all packets sent before.
            let next = it.acked(connection).max(segment.seq + 1);
            it.on_feedback(connection, &ack(next, segment.sent_at), at(round * 50 + 49));
        }
    }
}

#[test]
fn acks_of_later_packets_of_another_connection_reveal_a_loss() {
    let mut it = started(Config::integrated(), 2);
    run(&mut it, 3, |_, _, _| false); // 1, 2, 4
    let sent = leaving(&mut it, at(150));
    assert_eq!(sent.len(), 8);
    // The four packets of connection 0 are not acknowledged. Connection 1 gets acknowledgements of packets that it sent later.
    let mine = |connection: usize| move |(of, _): &&(usize, Segment)| *of == connection;
    let last = sent.iter().rfind(mine(1)).expect("it sent").1;
    it.on_feedback(1, &ack(last.seq + 1, at(150)), at(199));
    let news = leaving(&mut it, at(200));
    let echo = news.iter().rfind(mine(1)).expect("it has room").1.sent_at;
    let before = it.observe(0).cuts;
    for more in 0..3 {
        it.on_feedback(1, &ack(last.seq + 2 + more, echo), at(250));
    }
    assert_eq!((before, it.observe(0).cuts), (0, 1));
}

#[test]
fn timeout_makes_other_connections_go_back_only_with_tcp_int() {
    for (config, again) in [(Config::integrated(), 2), (Config::manager(), 1)] {
        let mut it = started(config, 2);
        run(&mut it, 3, |_, _, _| false);
        let mut now = at(200);
        for _ in 0..40 {
            leaving(&mut it, now);
            now += Span::from_millis(5);
        }
        let expired = it.deadline();
        it.on_deadline(expired);
        assert_eq!(it.observe(0).window, 1.0);
        let lost: Vec<u64> = (0..2).map(|connection| it.observe(connection).timeouts).collect();
        assert_eq!(lost.iter().sum::<u64>(), 1);
        let waiting = it.waiting_to_be_sent_again();
        assert_eq!(waiting, again);
    }
}

#[test]
fn congestion_manager_sends_packets_one_by_one_with_gaps() {
    let mut it = started(Config::manager(), 2);
    run(&mut it, 5, |_, _, _| false);
    let sent = leaving(&mut it, at(300));
    assert_eq!(sent.len(), 1, "one grant at a time");
    let next = it.departure();
    assert!(next > at(300) && next < at(325), "{next:?}");
}

#[test]
fn fast_start_after_a_pause_halves_the_slow_start_window() {
    for (fast_start, expected) in [(FastStart::On, 8.0), (FastStart::Off, 1.0)] {
        let mut it = started(Config { fast_start, ..Config::integrated() }, 1);
        run(&mut it, 4, |_, _, _| false);
        assert_eq!(it.observe(0).window, 16.0);
        it.close(0);
        it.open(0, 10, at(60_000));
        assert_eq!(it.observe(0).window, expected);
    }
}

#[test]
fn macroflow_delivers_all_data_despite_random_losses() {
    for config in [Config::integrated(), Config::manager()] {
        for seed in 0..20 {
            let mut rng = faircast_core::rng::Rng::new(seed, 3);
            let mut it = started(config, 3);
            (0..3).for_each(|connection| it.open(connection, 200, Time::ZERO));
            let mut next = [0_u32; 3];
            let mut beyond: [Vec<u32>; 3] = Default::default();
            let mut now = Time::ZERO;
            // Packets in transit with their times of arrival, in order of arrival.
            let mut under_way = std::collections::VecDeque::new();
            while (0..3).any(|connection| it.acked(connection) < 200) {
                assert!(now < Time::from_secs_f64(3600.0), "{config:?} {seed}: it stands still");
                while let Some((connection, segment)) = it.next(now) {
                    if rng.unit() > 0.2 {
                        under_way.push_back((now + Span::from_millis(50), connection, segment));
                    }
                }
                let arrives = under_way.front().map_or(Time::NEVER, |(at, ..)| *at);
                let departs = it.departure();
                let departs = if departs == Time::ZERO { Time::NEVER } else { departs };
                now = arrives.min(departs).min(it.deadline()).max(now);
                assert!(!now.is_never(), "{config:?} {seed}: nothing happens any more");
                if it.deadline() <= now {
                    it.on_deadline(now);
                }
                while under_way.front().is_some_and(|(at, ..)| *at <= now) {
                    let (_, connection, segment) = under_way.pop_front().expect("it was there");
                    let (next, beyond) = (&mut next[connection], &mut beyond[connection]);
                    beyond.push(segment.seq);
                    while beyond.contains(next) {
                        *next += 1;
                    }
                    // Acknowledgements are lost too.
                    if rng.unit() > 0.1 {
                        it.on_feedback(connection, &ack(*next, segment.sent_at), now);
                    }
                }
            }
        }
    }
}
