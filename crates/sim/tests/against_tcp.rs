//! Each transport preset competes with one TCP flow with the settings of Linux, over short and long paths. `make bench-tcp`
//! measures the same between network namespaces (docs/design/congestion-control.md).

mod nets;

use faircast_core::schemes::Scheme;
use faircast_core::time::{Span, Time};
use faircast_sim::{Network, Options, SessionSpec, UnicastProtocol, UnicastSpec, Watch};
use faircast_unicast::Protocol;

const SECONDS: usize = 180;
const MBPS: f64 = 10.0;

/// Returns the ratio of a session's rate to TCP's rate in each minute. TCP starts with the session's first data. The queue holds
/// one bandwidth-delay product, but at least 50 packets. Receivers report their presence four times per second.
fn ratios(scheme: &str, rtt_millis: u64, seed: u64) -> Vec<f64> {
    let mut net = Network::new(seed);
    let product = (MBPS * 1e3 / 8.0 * rtt_millis as f64 / 1500.0).ceil() as u32;
    let [left, right] = [net.node(), net.node()];
    let bottleneck = nets::link(MBPS, 0, product.max(50));
    let half = Span::from_micros(rtt_millis * 500);
    net.duplex(
        left,
        right,
        faircast_aqm::LinkSpec { delay: half, ..bottleneck },
        faircast_aqm::LinkSpec { delay: half, ..nets::wide(100.0, 0) },
    );
    let [source, sender] = [(); 2].map(|()| net.node());
    let [member, sink] = [(); 2].map(|()| net.node());
    for (edge, host) in [(left, source), (left, sender), (right, member), (right, sink)] {
        net.duplex(host, edge, nets::wide(1e3, 0), nets::wide(1e3, 0));
    }
    let start = Time::from_secs_f64(1.0 + (seed as f64 * 0.618).fract() / 10.0);
    net.session(SessionSpec {
        scheme: scheme.parse::<Scheme>().expect("a scheme").with_packet_size(1470),
        packet_size: 1470,
        start,
        alive: Some(Span::from_millis(250)),
        ..nets::session(source, vec![nets::member(member)])
    });
    let tcp = "tcp-sack,preset=linux,jitter=0.0012".parse::<Protocol>().expect("a protocol");
    let begins = start.as_nanos() as f64 / 1e9 + 0.1;
    net.unicast(UnicastSpec {
        packet_size: 1500,
        ..nets::unicast(UnicastProtocol::Controlled(tcp), sender, sink, begins)
    });
    let options = Options {
        until: Time::from_secs_f64(SECONDS as f64 + 2.0),
        bin: Span::from_secs(1),
        sample: Span::MAX,
        watch: Watch::First(0),
        ..Options::default()
    };
    let flows = net.run(&options).expect("a sound network").flows;
    // The start is not measured. It lasts for twenty round-trip times, each computed with a full queue.
    let trip = rtt_millis as f64 / 1e3 + f64::from(product.max(50)) * 12e3 / (MBPS * 1e6);
    let first = 2 + (20.0 * trip) as usize;
    let minutes = [first..62, 62..122, 122..182].map(|seconds| {
        let bytes = |flow: usize| flows[flow].received_bins[seconds.clone()].iter().sum::<u64>() as f64;
        bytes(0) / bytes(1)
    });
    minutes.to_vec()
}

/// Number of seeds at which the median of the first minute does not depend on the choice of seeds. A session may reach its rate
/// early or late in this minute.
const SEEDS: u64 = 25;

fn medians(scheme: &str, rtt_millis: u64) -> Vec<f64> {
    let runs: Vec<Vec<f64>> = (1..=SEEDS).map(|seed| ratios(scheme, rtt_millis, seed)).collect();
    let median = |minute: usize| {
        let mut values: Vec<f64> = runs.iter().map(|run| run[minute]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let medians = (0..3).map(median).collect();
    println!("{scheme} at {rtt_millis} ms: {medians:.2?}");
    medians
}

#[test]
fn ormcc_and_le_sbcc_share_fairly_with_tcp_at_every_rtt() {
    for (scheme, least, most) in [("ormcc", 0.75, 1.25), ("le-sbcc", 0.6, 1.4)] {
        for rtt in [1, 20, 50, 100, 200] {
            let medians = medians(scheme, rtt);
            // A cycle of the session's rate lasts 50 s. A session that is late in the first cycle must wait for the next one.
            let first = if rtt == 200 { 0.5 } else { least };
            assert!((first..most).contains(&medians[0]), "{scheme} at {rtt} ms: {medians:?}");
            assert!(
                medians[1..].iter().all(|ratio| (least..most).contains(ratio)),
                "{scheme} at {rtt} ms: {medians:?}"
            );
        }
    }
}

/// On short paths, TFMCC gets a larger share against this simulator's TCP than against the TCP of Linux.
#[test]
fn tfmcc_has_about_the_rate_of_tcp_after_the_first_minute() {
    for rtt in [1, 20, 50, 100, 200] {
        let medians = medians("tfmcc", rtt);
        assert!(medians[1..].iter().all(|ratio| (0.6..1.8).contains(ratio)), "{rtt} ms: {medians:?}");
    }
}
