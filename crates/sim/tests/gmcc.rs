//! GMCC on the networks of seed 000, 4.2: drop-tail buffers of 20 packets, TCP Reno as traffic, packets of 1000 bytes.

mod nets;

use faircast_aqm::LinkSpec;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Span, Time};
use faircast_sim::{Network, NodeId, Options, Outcome, SessionSpec, UnicastProtocol, UnicastSpec};
use nets::{link, member, reno, session, wide};

const BUFFER: u32 = 20;

fn gmcc(options: &str, source: NodeId, receivers: &[NodeId]) -> SessionSpec {
    let scheme: Scheme = format!("gmcc,preset=seed{options}").parse().expect("a scheme");
    let members = receivers.iter().map(|node| member(*node)).collect();
    SessionSpec { scheme, ..session(source, members) }
}

/// With headers of 40 bytes: packets of all the same size as the session's would arrive in step with departures, so that
/// TCP's never find the buffer full, or always.
fn unicast(protocol: UnicastProtocol, from: NodeId, to: NodeId, start: f64) -> UnicastSpec {
    UnicastSpec { packet_size: 1040, ..nets::unicast(protocol, from, to, start) }
}

fn bottleneck(mbps: f64, millis: u64) -> LinkSpec {
    link(mbps, millis, BUFFER)
}

/// Figure 4.4: two receivers behind a link each, and two TCP flows on each link.
fn two_links(seed: u64, options: &str, rates: [f64; 2]) -> Network {
    let mut net = Network::new(seed);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(100.0, 5), wide(100.0, 5));
    let receivers: Vec<NodeId> = rates.iter().map(|_| net.node()).collect();
    for (leaf, rate) in receivers.iter().zip(rates) {
        let hop = net.node();
        net.duplex(router, hop, bottleneck(rate, 5), wide(rate, 5));
        net.duplex(hop, *leaf, wide(100.0, 5), wide(100.0, 5));
        for copy in 0..2 {
            net.unicast(unicast(reno(), source, *leaf, 0.3 * f64::from(copy) + 0.1));
        }
    }
    net.session(gmcc(options, source, &receivers));
    net
}

/// Figure 4.6.
fn pausing(seed: u64, options: &str, rate: f64) -> Network {
    let mut net = Network::new(seed);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(100.0, 5), wide(100.0, 5));
    let receivers = [net.node(), net.node()];
    for (number, leaf) in receivers.iter().enumerate() {
        net.duplex(router, *leaf, bottleneck(rate, 10), wide(rate, 10));
        for copy in 0..6 {
            let mut spec = unicast(reno(), source, *leaf, 0.1 * f64::from(copy));
            if number == 1 && copy > 0 {
                spec.stop = Time::from_secs_f64(100.0);
                net.unicast(spec);
                spec.start = Time::from_secs_f64(200.0 + 0.1 * f64::from(copy));
                spec.stop = Time::NEVER;
            }
            net.unicast(spec);
        }
    }
    net.session(gmcc(options, source, &receivers));
    net
}

/// Figure 4.8.
fn shared(seed: u64, options: &str) -> Network {
    let mut net = Network::new(seed);
    let (source, left, right) = (net.node(), net.node(), net.node());
    net.duplex(source, left, wide(100.0, 5), wide(100.0, 5));
    net.duplex(left, right, bottleneck(2.0, 15), wide(2.0, 15));
    let receivers = [net.node(), net.node(), net.node()];
    net.duplex(right, receivers[0], wide(100.0, 5), wide(100.0, 5));
    net.duplex(right, receivers[1], wide(100.0, 5), wide(100.0, 5));
    net.duplex(right, receivers[2], bottleneck(0.5, 5), wide(0.5, 5));
    let (ts, tr) = (net.node(), net.node());
    net.duplex(ts, left, wide(100.0, 5), wide(100.0, 5));
    net.duplex(right, tr, wide(100.0, 5), wide(100.0, 5));
    net.unicast(unicast(reno(), ts, tr, 0.1));
    let mut spec = gmcc(options, source, &receivers);
    spec.members[1].join = Time::from_secs_f64(100.0);
    net.session(spec);
    net
}

/// Figure 4.10.
fn six(seed: u64, options: &str) -> Network {
    let mut net = Network::new(seed);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(100.0, 5), wide(100.0, 5));
    let mut receivers = Vec::new();
    for number in 1..=6u32 {
        let leaf = net.node();
        net.duplex(router, leaf, bottleneck(f64::from(number), 5), wide(10.0, 5));
        for copy in 0..2 {
            let ts = net.node();
            net.duplex(ts, router, wide(100.0, 5), wide(100.0, 5));
            net.unicast(unicast(reno(), ts, leaf, 0.1 * f64::from(number) + 0.05 * f64::from(copy)));
        }
        receivers.push(leaf);
    }
    net.session(gmcc(options, source, &receivers));
    net
}

/// A local network.
fn local(seed: u64, options: &str, rates: &[f64], millis: u64, buffer: u32) -> Network {
    let mut net = Network::new(seed);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(1000.0, 0), wide(1000.0, 0));
    let mut receivers = Vec::new();
    for rate in rates {
        let leaf = net.node();
        net.duplex(router, leaf, link(*rate, millis, buffer), wide(*rate, millis));
        receivers.push(leaf);
    }
    let scheme: Scheme = format!("gmcc{options}").parse().expect("a scheme");
    let scheme = scheme.with_packet_size(1400);
    net.session(SessionSpec { scheme, packet_size: 1400, ..gmcc("", source, &receivers) });
    net
}

fn run(net: &Network, secs: f64) -> Outcome {
    let options = Options { until: Time::from_secs_f64(secs), sample: Span::from_secs(5), ..Options::default() };
    net.run(&options).expect("a sound network")
}

fn show(name: &str, outcome: &Outcome, secs: f64) {
    println!("=== {name}");
    for (index, flow) in outcome.flows.iter().enumerate() {
        for (number, member) in flow.members.iter().enumerate() {
            let rate = member.bytes as f64 * 8.0 / secs / 1e6;
            let changes: Vec<String> =
                member.subscriptions.iter().map(|(at, to)| format!("{:.1}:{to}", at.as_secs_f64())).collect();
            println!(
                "flow {index} member {number}: {rate:.3} Mbit/s, lost {}, reports {}, suppressed {}: {}",
                member.lost,
                member.reports,
                member.suppressed,
                changes.join(" ")
            );
        }
        if flow.layers.len() > 1 {
            println!("representatives {:?}", flow.representatives.iter().map(|(at, who)| (at.as_secs_f64() as u32, *who)).take(40).collect::<Vec<_>>());
            for layer in &flow.layers {
                let rates: Vec<u32> = layer.rates.iter().map(|rate| (rate.bps() / 1e3) as u32).collect();
                println!("  layer sent {} rates {rates:?}", layer.sent);
            }
        }
    }
}

fn brief(name: &str, outcome: &Outcome, secs: f64) {
    let flow = outcome.flows.iter().find(|flow| flow.layers.len() > 1).expect("a layered session");
    print!("{name}:");
    for member in &flow.members {
        let rate = member.bytes as f64 * 8.0 / secs / 1e6;
        let mut level = 0;
        let (mut joins, mut leaves) = (0, 0);
        for (_, to) in &member.subscriptions {
            if *to > level { joins += 1 } else { leaves += 1 }
            level = *to;
        }
        let all: Vec<String> =
            member.subscriptions.iter().map(|(at, to)| format!("{:.0}:{to}", at.as_secs_f64())).collect();
        if all.len() < 8 { print!(" [{}]", all.join(" ")); }
        let first = member.subscriptions.first().map_or(0.0, |s| s.0.as_secs_f64());
        print!(" | {rate:.2} +{joins} -{leaves} ({first:.0}s) r{}", member.reports);
    }
    println!();
}

#[test]
fn look() {
    let only = std::env::var("LOOK").unwrap_or_default();
    let options = std::env::var("OPTIONS").unwrap_or_default();
    let show = if std::env::var("FULL").is_ok() { show } else { brief };
    let seeds = 1..=std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2u64);
    for seed in seeds {
        if only.contains('5') {
            for (millis, buffer) in [(0, 40), (0, 200), (1, 100), (20, 100)] {
                for rates in [&[2.0, 10.0, 40.0, 100.0][..], &[5.0, 50.0], &[20.0, 20.0, 22.0], &[100.0, 1.0, 100.0]] {
                    let name = format!("LAN {millis} ms {buffer} {rates:?}");
                    show(&name, &run(&local(seed, &options, rates, millis, buffer), 60.0), 60.0);
                }
            }
        }
        if only.contains('1') {
            show("GM-1a", &run(&two_links(seed, &options, [1.0, 5.0]), 100.0), 100.0);
            show("GM-1b", &run(&two_links(seed, &options, [1.0, 10.0]), 100.0), 100.0);
        }
        if only.contains('2') {
            for rate in [2.0, 3.5, 7.0, 14.0] {
                show(&format!("GM-2 {rate:>5}"), &run(&pausing(seed, &options, rate), 300.0), 300.0);
            }
        }
        if only.contains('3') {
            show("GM-3", &run(&shared(seed, &options), 600.0), 600.0);
        }
        if only.contains('4') {
            show("GM-4", &run(&six(seed, &options), 600.0), 600.0);
        }
    }
}
