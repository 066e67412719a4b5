//! Compares the rates of Prague and CUBIC on a link with DualPI2: `prague_against_cubic [SECONDS [QUEUE [PRAGUE [CUBIC]]]]`, for
//! example `prague_against_cubic 100 dualpi2,step_from=1 tcp-prague,delack=off`. Prints a Markdown table of each flow's rate,
//! relative to an equal share of the link rate, and of the frequency of window cuts. Packets have 1500 bytes, and the round-trip
//! time without a queue is 20 ms. Each result is taken from three seeds, and the first third of each run is not measured.

use faircast_aqm::{LinkSpec, QueueSpec};
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{ApplicationData, Network, NodeId, Options, UnicastProtocol, UnicastSpec};
use faircast_unicast::Protocol;

/// Results of one kind of flow in a run.
#[derive(Debug, Clone, Copy, Default)]
struct FlowResults {
    /// Mean rate of a flow relative to an equal share of the link rate.
    share: f64,
    /// Cuts of a flow per second.
    cuts: f64,
}

fn add(net: &mut Network, protocol: Protocol, ends: (NodeId, NodeId), start: Time) {
    net.unicast(UnicastSpec {
        protocol: UnicastProtocol::Controlled(protocol),
        packet_size: 1500,
        ack_size: 40,
        from: ends.0,
        to: ends.1,
        start,
        stop: Time::NEVER,
        supply: ApplicationData::Endless,
    });
}

fn run(queue: QueueSpec, mbps: f64, flows: &[(Protocol, u32)], seconds: f64, seed: u64) -> Vec<FlowResults> {
    let mut net = Network::new(seed);
    let (left, right) = (net.node(), net.node());
    let wire = LinkSpec::new(Rate::from_mbps(1000.0), Span::from_millis(5), QueueSpec::UNLIMITED);
    let bottleneck = LinkSpec::new(Rate::from_mbps(mbps), Span::from_millis(5), queue);
    net.duplex(left, right, bottleneck, LinkSpec { queue: QueueSpec::UNLIMITED, ..bottleneck });
    let mut number = 0;
    for &(protocol, count) in flows {
        for _ in 0..count {
            let (from, to) = (net.node(), net.node());
            net.duplex(from, left, wire, wire);
            net.duplex(
                right,
                to,
                LinkSpec { delay: Span::ZERO, ..wire },
                LinkSpec { delay: Span::ZERO, ..wire },
            );
            number += 1;
            add(&mut net, protocol, (from, to), Time::from_nanos(number * 83_000_003 + seed * 1_000_003));
        }
    }
    let (from, bin) = (seconds / 3.0, Span::from_secs(1));
    let options =
        Options { until: Time::from_secs_f64(seconds), bin, sample: Span::MAX, ..Options::default() };
    let outcome = net.run(&options).expect("it is well formed");
    let total: u32 = flows.iter().map(|(_, count)| count).sum();
    let even = mbps * 1e6 / f64::from(total);
    let mut rest = outcome.flows.iter();
    let mut all = Vec::new();
    for &(_, count) in flows {
        let mut got = FlowResults::default();
        for flow in rest.by_ref().take(count as usize) {
            let skipped = from.ceil() as usize;
            let bytes: u64 = flow.received_bins.iter().skip(skipped).sum();
            let each = f64::from(count);
            got.share += bytes as f64 * 8.0 / (seconds - skipped as f64) / even / each;
            let cuts = flow.cuts.iter().filter(|at| at.as_secs_f64() >= from).count();
            got.cuts += cuts as f64 / (seconds - from) / each;
        }
        all.push(got);
    }
    all
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |place: usize, otherwise: &str| arguments.get(place).cloned().unwrap_or(otherwise.into());
    let seconds: f64 = text(0, "100").parse().expect("seconds");
    let queue: QueueSpec = text(1, "dualpi2").parse().unwrap_or_else(|error| panic!("{error}"));
    let protocol = |text: String| -> Protocol { text.parse().unwrap_or_else(|error| panic!("{error}")) };
    let (prague, cubic) = (protocol(text(2, "tcp-prague")), protocol(text(3, "tcp-cubic")));
    println!("| Mbit/s | Prague + CUBIC | Prague | CUBIC | cuts/s | cuts/s |\n|---|---|---|---|---|---|");
    for mbps in [10.0, 40.0, 120.0] {
        for (few, many) in [(1, 1), (5, 5), (9, 1), (1, 9)] {
            let runs: Vec<_> = (1..=3)
                .map(|seed| run(queue, mbps, &[(prague, few), (cubic, many)], seconds, seed))
                .collect();
            let mean = |kind: usize, value: fn(&FlowResults) -> f64| {
                runs.iter().map(|run| value(&run[kind])).sum::<f64>() / runs.len() as f64
            };
            println!(
                "| {mbps} | {few} + {many} | {:.2} | {:.2} | {:.1} | {:.1} |",
                mean(0, |got| got.share),
                mean(1, |got| got.share),
                mean(0, |got| got.cuts),
                mean(1, |got| got.cuts),
            );
        }
    }
}
