//! PGMCC and TFMCC, the schemes with which other schemes are compared. They compete with TCP in one queue, and they send to many
//! receivers with independent losses.

mod nets;

use faircast_aqm::{LinkSpec, LossSpec};
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{Network, Options, Outcome, SessionSpec, UnicastProtocol, UnicastSpec, Watch};
use faircast_unicast::Protocol;

fn scheme(text: &str) -> Scheme {
    text.parse().expect("a scheme")
}

fn run(net: &Network, seconds: f64) -> Outcome {
    let until = Time::from_secs_f64(seconds);
    let bin = Span::from_secs(1);
    let options = Options { until, bin, sample: Span::MAX, watch: Watch::First(0), ..Options::default() };
    net.run(&options).expect("a sound network")
}

/// Returns the mean rate of a flow's members after the first `from` seconds, in bit/s.
fn rate_from(outcome: &Outcome, flow: usize, from: usize) -> f64 {
    let bins = &outcome.flows[flow].received_bins[from..];
    let members = outcome.flows[flow].members.len() as f64;
    bins.iter().map(|bytes| *bytes as f64 * 8.0).sum::<f64>() / bins.len() as f64 / members
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Runs a session with one receiver and a TCP flow over a drop-tail bottleneck. Returns the session's rate relative to TCP's
/// rate. Small datagrams with irregular gaps use 3 % of the bottleneck. Without them, the two flows could fall into a rhythm in
/// which one flow always finds a full queue.
fn beside_tcp(scheme_text: &str, tcp: &str, mbps: f64, packets: u32, seed: u64) -> f64 {
    let mut net = Network::new(seed);
    let leaf = net.node();
    let router = net.node();
    net.duplex(router, leaf, nets::link(mbps, 22, packets), nets::wide(100.0, 22));
    let [source, sender, other] = [(); 3].map(|()| {
        let node = net.node();
        net.duplex(node, router, nets::wide(100.0, 3), nets::wide(100.0, 3));
        node
    });
    let start = (seed as f64 * 0.618).fract();
    net.session(SessionSpec {
        scheme: scheme(scheme_text),
        start: Time::from_secs_f64(start),
        ..nets::session(source, vec![nets::member(leaf)])
    });
    let tcp = UnicastProtocol::Controlled(tcp.parse::<Protocol>().expect("a protocol"));
    net.unicast(nets::unicast(tcp, sender, leaf, 1.0 - start));
    let datagrams = UnicastProtocol::Datagrams { rate: Rate::from_mbps(0.03 * mbps), jitter: 0.5 };
    net.unicast(UnicastSpec { packet_size: 200, ..nets::unicast(datagrams, other, leaf, 0.0) });
    let outcome = run(&net, 200.0);
    rate_from(&outcome, 0, 40) / rate_from(&outcome, 1, 40)
}

/// Returns the ratio of the rates at each of two bottlenecks, as the mean over six seeds.
fn ratios_beside(scheme_text: &str, tcp: &str) -> [f64; 2] {
    let ratios = [(2.0, 25), (5.0, 60)].map(|(mbps, packets)| {
        let ratios = [1, 2, 3, 4, 5, 6].map(|seed| beside_tcp(scheme_text, tcp, mbps, packets, seed));
        mean(&ratios)
    });
    println!("{scheme_text} over {tcp} at 2 and 5 Mbit/s: {ratios:.3?}");
    ratios
}

/// Like NewReno, PGMCC repairs any number of losses in a window without a timeout. Reno does not, and gets a smaller
/// share of a queue with bursts of losses.
#[test]
fn pgmcc_shares_a_queue_with_tcp_within_thirty_percent() {
    for preset in ["pgmcc,preset=published", "pgmcc,preset=transport"] {
        for ratio in ratios_beside(preset, "tcp-newreno") {
            assert!((0.7..1.3).contains(&ratio), "{ratio}");
        }
    }
    for ratio in ratios_beside("pgmcc,preset=published", "tcp-reno") {
        assert!((0.7..1.6).contains(&ratio), "{ratio}");
    }
}

#[test]
fn tfmcc_shares_a_queue_with_tcp_within_a_factor_of_two() {
    for options in ["preset=published", "preset=published,timer=2001", "preset=transport"] {
        for ratio in ratios_beside(&format!("tfmcc,{options}"), "tcp-reno") {
            assert!((0.5..2.0).contains(&ratio), "{ratio}");
        }
    }
}

/// Returns the mean rate of a session to `receivers` receivers. Each receiver loses one packet in a hundred independently.
fn with_independent_losses(scheme_text: &str, receivers: usize, seed: u64) -> f64 {
    let mut net = Network::new(seed);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, nets::wide(100.0, 5), nets::wide(100.0, 5));
    let mut members = Vec::new();
    for _ in 0..receivers {
        let leaf = net.node();
        let there = LinkSpec { loss: Some(LossSpec::Bernoulli(0.01)), ..nets::wide(100.0, 20) };
        net.duplex(router, leaf, there, nets::wide(100.0, 20));
        members.push(nets::member(leaf));
    }
    net.session(SessionSpec { scheme: scheme(scheme_text), ..nets::session(source, members) });
    rate_from(&run(&net, 150.0), 0, 50)
}

/// In theory, a scheme that follows one receiver keeps its rate when other receivers have independent losses of the same
/// probability. A scheme that uses the lowest of many estimates gets slower with the number of receivers, because one of the
/// estimates is always too low. At this loss probability and a round-trip time of 50 ms, the throughput equation gives TCP a rate
/// of 1.8 Mbit/s.
#[test]
fn independent_losses_slow_down_tfmcc_but_hardly_pgmcc() {
    let rates = |text: &str| {
        [1, 16, 64]
            .map(|receivers| mean(&[1, 2, 3].map(|seed| with_independent_losses(text, receivers, seed))))
    };
    let (pgmcc, tfmcc) = (rates("pgmcc,preset=published"), rates("tfmcc,preset=published"));
    println!("1, 16, 64 receivers: pgmcc {pgmcc:.0?}, tfmcc {tfmcc:.0?} bit/s");
    assert!((1.4e6..2.4e6).contains(&pgmcc[0]) && (1.4e6..2.4e6).contains(&tfmcc[0]));
    assert!(pgmcc[1] > 0.75 * pgmcc[0] && pgmcc[2] > 0.75 * pgmcc[0], "{pgmcc:?}");
    assert!(tfmcc[1] < 0.85 * tfmcc[0] && tfmcc[2] < tfmcc[1], "{tfmcc:?}");
}
