//! Each transport preset competes with one TCP flow with the settings of Linux, over short and long paths. `make bench-tcp`
//! measures the same between network namespaces (docs/design/congestion-control.md).

mod nets;

use faircast_aqm::{Limit, LinkSpec, LossSpec, QueueSpec};
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_core::time::{Span, Time};
use faircast_sim::{Network, Options, SessionSpec, UnicastProtocol, UnicastSpec, Watch};
use faircast_unicast::Protocol;

const SECONDS: usize = 180;
const MBPS: f64 = 10.0;

/// A link of `MBPS` Mbit/s that a session shares with a TCP flow.
#[derive(Clone, Copy)]
struct Bottleneck {
    rtt_millis: u64,
    queue: QueueSpec,
    loss: Option<LossSpec>,
}

impl Bottleneck {
    /// Returns a link with a queue of `products` bandwidth-delay products, but at least `least` packets.
    fn new(rtt_millis: u64, products: f64, least: u32) -> Bottleneck {
        let product = MBPS * 1e3 / 8.0 * rtt_millis as f64 / 1500.0;
        let packets = ((product * products).ceil() as u32).max(least);
        Bottleneck { rtt_millis, queue: QueueSpec::DropTail(Limit::Packets(packets)), loss: None }
    }

    fn losing(self, loss: LossSpec) -> Bottleneck {
        Bottleneck { loss: Some(loss), ..self }
    }
}

/// Returns the bytes of a session and of TCP that arrive in each second. TCP starts with the session's first data, or not at all.
/// Receivers report their presence four times per second.
fn seconds(scheme: &str, bottleneck: Bottleneck, has_tcp: bool, seed: u64) -> Vec<Vec<u64>> {
    let mut net = Network::new(seed);
    let [left, right] = [net.node(), net.node()];
    let delay = Span::from_micros(bottleneck.rtt_millis * 500);
    let Bottleneck { queue, loss, .. } = bottleneck;
    net.duplex(
        left,
        right,
        LinkSpec { delay, queue, loss, ..nets::link(MBPS, 0, 1) },
        LinkSpec { delay, ..nets::wide(100.0, 0) },
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
    if has_tcp {
        net.unicast(UnicastSpec {
            packet_size: 1500,
            ..nets::unicast(UnicastProtocol::Controlled(tcp), sender, sink, begins)
        });
    }
    let options = Options {
        until: Time::from_secs_f64(SECONDS as f64 + 2.0),
        bin: Span::from_secs(1),
        sample: Span::MAX,
        watch: Watch::First(0),
        ..Options::default()
    };
    let flows = net.run(&options).expect("a sound network").flows;
    flows.into_iter().map(|flow| flow.received_bins).collect()
}

/// Returns the ratio of a session's rate to TCP's rate in each minute. The queue holds one bandwidth-delay product, but at least
/// 50 packets.
fn ratios(scheme: &str, rtt_millis: u64, seed: u64) -> Vec<f64> {
    let bottleneck = Bottleneck::new(rtt_millis, 1.0, 50);
    let received = seconds(scheme, bottleneck, true, seed);
    let QueueSpec::DropTail(Limit::Packets(packets)) = bottleneck.queue else { unreachable!("as created") };
    // The start is not measured. It lasts for twenty round-trip times, each computed with a full queue.
    let trip = rtt_millis as f64 / 1e3 + f64::from(packets) * 12e3 / (MBPS * 1e6);
    let first = 2 + (20.0 * trip) as usize;
    let minutes = [first..62, 62..122, 122..182].map(|seconds| {
        let bytes = |flow: usize| received[flow][seconds.clone()].iter().sum::<u64>() as f64;
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

/// Returns the schemes with the option `loss`.
fn tolerant() -> Vec<&'static str> {
    let has_option = |name: &&str| {
        let scheme: Scheme = name.parse().expect("it is in the catalogue");
        scheme.own_options().iter().any(|option| option.name == "loss")
    };
    CATALOGUE.iter().map(|entry| entry.name).filter(has_option).collect()
}

/// Returns the mean rate of the session and of TCP from the second minute on, in Mbit/s.
fn rates(scheme: &str, bottleneck: Bottleneck, has_tcp: bool) -> (f64, f64) {
    let received = seconds(scheme, bottleneck, has_tcp, 1);
    let rate = |flow: &Vec<u64>| flow[62..].iter().sum::<u64>() as f64 * 8e-6 / (SECONDS - 60) as f64;
    (rate(&received[0]), received.get(1).map_or(0.0, rate))
}

#[test]
fn tolerant_schemes_use_a_long_lossy_path_as_a_sound_one() {
    let bursts = LossSpec::GilbertElliott { to_bad: 0.001, to_good: 0.1, good: 0.0, bad: 1.0 };
    for scheme in tolerant() {
        let path = Bottleneck::new(400, 1.0, 1);
        let (sound, _) = rates(scheme, path, false);
        for loss in [LossSpec::Bernoulli(0.01), bursts] {
            let path = path.losing(loss);
            let [plain, tolerant] =
                ["", ",loss=tolerant"].map(|option| rates(&format!("{scheme}{option}"), path, false).0);
            println!(
                "{scheme}, {loss}: {plain:.2}, tolerant {tolerant:.2}, without losses {sound:.2} Mbit/s"
            );
            assert!(
                tolerant > 3.0 * plain && tolerant > 0.6 * sound,
                "{scheme}, {loss}: {plain}, {tolerant}"
            );
        }
    }
}

#[test]
fn tolerant_schemes_yield_to_tcp_at_a_short_queue() {
    for scheme in tolerant() {
        for queue in [Bottleneck::new(50, 0.5, 1).queue, "red,buffer=100".parse().expect("a queue")] {
            let path = Bottleneck { queue, ..Bottleneck::new(50, 0.5, 1) };
            let [plain, tolerant] = ["", ",loss=tolerant"].map(|option| {
                let (ours, tcp) = rates(&format!("{scheme}{option}"), path, true);
                ours / tcp
            });
            println!("{scheme}, {queue}: {plain:.2}, tolerant {tolerant:.2} of TCP");
            assert!(tolerant < 1.25 * plain.max(1.0), "{scheme}, {queue}: {plain}, {tolerant}");
        }
    }
}
