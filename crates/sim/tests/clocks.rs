//! Senders with inexact clocks. All periods and timers of a sender follow its clock.

mod nets;

use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{Change, FlowId, Network, NodeId, Options, Outcome, SessionSpec, UnicastProtocol};
use nets::{in_both_engines, link, wide};

fn run(net: &Network, seconds: f64) -> Outcome {
    let options = Options { until: Time::from_secs_f64(seconds), ..Options::default() };
    net.run(&options).expect("a sound network")
}

/// Runs one sender and one receiver over a link that loses no packets.
fn alone(ppm: f64, flow: impl FnOnce(&mut Network) -> FlowId) -> Outcome {
    let mut net = Network::new(1);
    let (a, b) = (net.node(), net.node());
    net.duplex(a, b, wide(100.0, 5), wide(100.0, 5));
    let flow = flow(&mut net);
    net.clock_error(flow, ppm).expect("not too much");
    run(&net, 1000.0)
}

/// Returns the packets that a flow sends in 1000 s with an exact clock, and with a clock that is 1 % fast.
fn sent(flow: impl Fn(&mut Network) -> FlowId) -> (f64, f64) {
    let [exact, fast] = [0.0, 10_000.0].map(|ppm| alone(ppm, &flow).flows[0].sent as f64);
    (exact, fast)
}

fn timetable(net: &mut Network) -> FlowId {
    let scheme: Scheme = "rlc,preset=published,layers=1".parse().expect("a scheme");
    let [a, b] = [0, 1].map(NodeId);
    net.session(SessionSpec { scheme, packet_size: 500, ..nets::session(a, vec![nets::member(b)]) })
}

fn datagrams(net: &mut Network) -> FlowId {
    let [a, b] = [0, 1].map(NodeId);
    let protocol = UnicastProtocol::Datagrams { rate: Rate::from_bps(80_000.0), jitter: 0.0 };
    net.unicast(nets::unicast(protocol, a, b, 0.0))
}

#[test]
fn source_with_a_fast_clock_sends_its_timetable_faster() {
    let (exact, fast) = sent(timetable);
    assert!(exact > 7_990.0, "eight packets a second: {exact}");
    assert!((fast / exact - 1.01).abs() < 2e-4, "{exact} and {fast}");
}

#[test]
fn datagram_rate_follows_the_clock_of_the_source() {
    let (exact, fast) = sent(datagrams);
    assert!((fast / exact - 1.01).abs() < 2e-4, "{exact} and {fast}");
}

/// Over a failed link no host answers, so TCP has one timeout after another.
#[test]
fn tcp_timeouts_follow_the_clock_of_the_source() {
    let sent = |ppm: f64| {
        let mut net = Network::new(1);
        let (a, b, c) = (net.node(), net.node(), net.node());
        let (first, _) = net.duplex(a, b, wide(100.0, 5), wide(100.0, 5));
        let (second, _) = net.duplex(b, c, wide(100.0, 5), wide(100.0, 5));
        net.change(Time::ZERO, second, Change::Down);
        let flow = net.unicast(nets::unicast(nets::reno(), a, c, 0.0));
        net.clock_error(flow, ppm).expect("not too much");
        net.tap(first);
        let taps = run(&net, 60.0).taps;
        taps.iter().map(|tapped| tapped.at.as_secs_f64()).collect::<Vec<f64>>()
    };
    let (exact, slow) = (sent(0.0), sent(-100_000.0));
    assert!(exact.len() > 3, "{exact:?}");
    for (exact, slow) in exact.iter().zip(&slow).skip(1) {
        assert!((slow / exact - 1.0 / 0.9).abs() < 0.01, "{exact} and {slow}");
    }
}

#[test]
fn clock_error_of_zero_changes_nothing() {
    let net = nets::star(4, nets::Background::Tcp);
    let mut reported = net.clone();
    for flow in 0..5 {
        reported.clock_error(FlowId(flow), 0.0).expect("not too much");
    }
    assert_eq!(run(&net, 20.0).digest, run(&reported, 20.0).digest);
}

#[test]
fn both_engines_agree_on_networks_with_clock_errors() {
    for (seed, base) in
        [nets::star(6, nets::Background::Tcp), nets::layered("rlc", 4)].into_iter().enumerate()
    {
        let (mut net, exact) = (base.clone(), run(&base, 20.0));
        let flows = exact.flows.len() as u32;
        for flow in 0..flows {
            net.clock_error(FlowId(flow), f64::from(flow) * 37.0 - 50.0 - seed as f64).expect("not too much");
        }
        let outcome = in_both_engines(&net, 20.0);
        assert_ne!(outcome.digest, exact.digest, "clocks that are off move packets");
    }
}

/// Two sessions whose timetables have equal periods keep a constant offset. With clocks that differ by 10 ppm, the offset changes
/// by 10 us per second.
#[test]
fn timetables_of_sources_with_different_clocks_drift_apart() {
    let distance = |ppm: f64| {
        let mut net = Network::new(1);
        let (a, b, hub, end) = (net.node(), net.node(), net.node(), net.node());
        let (first, _) = net.duplex(a, hub, wide(100.0, 5), wide(100.0, 5));
        let (second, _) = net.duplex(b, hub, wide(100.0, 5), wide(100.0, 5));
        net.duplex(hub, end, link(100.0, 5, 100), wide(100.0, 5));
        let scheme: Scheme = "rlc,preset=published,layers=1".parse().expect("a scheme");
        for source in [a, b] {
            net.session(SessionSpec { scheme, ..nets::session(source, vec![nets::member(end)]) });
        }
        net.clock_error(FlowId(1), ppm).expect("not too much");
        net.tap(first);
        net.tap(second);
        let taps = run(&net, 1000.0).taps;
        let latest = |link| taps.iter().rev().find(|tapped| tapped.link == link).expect("it sends").at;
        latest(first).since(latest(second))
    };
    assert_eq!(distance(0.0), Span::ZERO);
    let drifted = distance(10.0).as_secs_f64();
    assert!((drifted - 0.01).abs() < 1e-4, "10 ms after 1000 s: {drifted}");
}

#[test]
fn excessive_clock_errors_are_refused() {
    let mut net = Network::new(1);
    let error = net.clock_error(FlowId(0), 1e6).expect_err("a clock of twice the speed");
    assert!(error.to_string().contains("1000000 ppm"), "{error}");
}
