//! Measures the speed of the engine and prints one line of JSON. `speed KIND N SECONDS [THREADS [MBPS LOSS]]` runs one of these
//! networks:
//!
//! - `tcp`: the star of the ns-2 comparison. N receivers, each behind its own link with one TCP Reno flow, and a
//!   multicast stream at 0.3 Mbit/s to all receivers.
//! - `sack`: the dumbbell of the ns-2 comparison. N flows of TCP SACK share a bottleneck.
//! - `window`: the same star with fast last hops. No packet is lost, and the windows grow by 1,250 packets per second.
//! - `losses`: N flows of BBR, each over its own link with 100 Mbit/s, a delay of 100 ms and a loss rate of 1 %. A window
//!   contains thousands of packets, and some of them are lost.
//! - a scheme, for example `ormcc,preset=published`: a star with this scheme, each receiver behind a link of 1 Mbit/s,
//!   or of MBPS with this random loss.
//! - `tree`: a tree of two levels, with two sessions of one receiver each behind every last hop.
//! - `layers`: GMCC's layers to N receivers in six groups, with two PGMCC sessions of one receiver each in every group
//!   (paper 000, 4.3).
//! - `fattree`: N flows of TCP Reno between random hosts of a fat tree of switches with 32 ports.
//! - `mtcp`: a tree of MTCP in which every agent has sixteen children (paper 001, 5). `mtcp-FAN` is such a tree with FAN children
//!   of each agent; all links have MBPS and this random loss.
//! - `rmanp` and `raccoom`: a tree of routers of these schemes with ten receivers behind each of the last routers.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use faircast_aqm::{Limit, LinkSpec, LossSpec, QueueSpec};
use faircast_core::node::RouterSpec;
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::schemes::ormcc::Config;
use faircast_core::schemes::raccoom::router as acknowledgements;
use faircast_core::schemes::rmanp::router as rmanp;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{
    ApplicationData, Islands, Network, Options, ReceiverSpec, SessionSpec, UnicastProtocol, UnicastSpec,
    Watch,
};
use faircast_unicast::Protocol;
use std::sync::Arc;
use std::time::Instant;

fn link(mbps: f64, millis: u64, queue: QueueSpec) -> LinkSpec {
    LinkSpec::new(Rate::from_mbps(mbps), Span::from_millis(millis), queue)
}

fn wide(mbps: f64, millis: u64) -> LinkSpec {
    link(mbps, millis, QueueSpec::UNLIMITED)
}

fn bottleneck(millis: u64) -> LinkSpec {
    link(1.0, millis, QueueSpec::DropTail(Limit::Packets(50)))
}

fn session(source: faircast_sim::NodeId, members: Vec<ReceiverSpec>, config: Config) -> SessionSpec {
    SessionSpec {
        scheme: Scheme::Ormcc(config),
        packet_size: 1000,
        report_size: 40,
        source,
        members,
        start: Time::from_secs_f64(0.5),
        stop: Time::NEVER,
        join_latency: Span::ZERO,
        leave_latency: Span::ZERO,
        alive: None,
    }
}

fn tcp_star(receivers: usize, last_hop: LinkSpec) -> Network {
    let mut net = Network::new(1);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(10.0, 5), wide(10.0, 5));
    let mut rng = Rng::new(1, 99);
    let mut members = Vec::with_capacity(receivers);
    let protocol = UnicastProtocol::Controlled("tcp-reno".parse::<Protocol>().expect("a protocol"));
    for _ in 0..receivers {
        let (leaf, sender) = (net.node(), net.node());
        net.duplex(router, leaf, last_hop, wide(1.0, 5));
        net.duplex(sender, router, wide(10.0, 5), wide(10.0, 5));
        members.push(ReceiverSpec { node: leaf, join: Time::ZERO, leave: Time::NEVER, mute_after: None });
        net.unicast(UnicastSpec {
            protocol,
            packet_size: 1000,
            ack_size: 40,
            from: sender,
            to: leaf,
            start: Time::from_secs_f64(rng.unit()),
            stop: Time::NEVER,
            supply: ApplicationData::Endless,
        });
    }
    // The stream to all receivers has a constant rate.
    let constant = Rate::from_bps(300e3);
    let mut config = Config::published();
    config.sending.bounds.min = constant;
    config.sending.bounds.max = constant;
    net.session(session(source, members, config));
    net
}

/// Builds N flows of TCP SACK through one bottleneck, each between hosts of its own.
fn dumbbell(flows: usize) -> Network {
    let mut net = Network::new(1);
    let (left, right) = (net.node(), net.node());
    let queue = QueueSpec::DropTail(Limit::Packets(3 * flows as u32));
    net.duplex(left, right, link(0.3 * flows as f64, 10, queue), wide(0.3 * flows as f64, 10));
    let mut rng = Rng::new(1, 99);
    for _ in 0..flows {
        let (from, to) = (net.node(), net.node());
        net.duplex(from, left, wide(100.0, 5), wide(100.0, 5));
        net.duplex(to, right, wide(100.0, 5), wide(100.0, 5));
        net.unicast(UnicastSpec {
            protocol: UnicastProtocol::Controlled("tcp-sack".parse::<Protocol>().expect("a protocol")),
            packet_size: 1000,
            ack_size: 40,
            from,
            to,
            start: Time::from_secs_f64(rng.unit()),
            stop: Time::NEVER,
            supply: ApplicationData::Endless,
        });
    }
    net
}

/// Builds flows of BBR over links that lose packets at random.
fn lossy_paths(flows: usize) -> Network {
    let mut net = Network::new(1);
    let mut rng = Rng::new(1, 99);
    for _ in 0..flows {
        let (from, to) = (net.node(), net.node());
        let there = link(100.0, 100, QueueSpec::DropTail(Limit::Packets(2500)));
        net.duplex(from, to, LinkSpec { loss: Some(LossSpec::Bernoulli(0.01)), ..there }, wide(100.0, 100));
        net.unicast(UnicastSpec {
            protocol: UnicastProtocol::Controlled("tcp-bbr".parse::<Protocol>().expect("a protocol")),
            packet_size: 1000,
            ack_size: 40,
            from,
            to,
            start: Time::from_secs_f64(rng.unit()),
            stop: Time::NEVER,
            supply: ApplicationData::Endless,
        });
    }
    net
}

/// Builds a star of one session, with each receiver behind its own link.
fn star(receivers: usize, scheme: Scheme, last_hop: LinkSpec) -> Network {
    let mut net = Network::new(1);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(100.0, 1), wide(100.0, 1));
    let mut members = Vec::with_capacity(receivers);
    for _ in 0..receivers {
        let leaf = net.node();
        net.duplex(router, leaf, last_hop, wide(1.0, 50));
        members.push(ReceiverSpec { node: leaf, join: Time::ZERO, leave: Time::NEVER, mute_after: None });
    }
    net.session(SessionSpec { scheme, ..session(source, members, Config::published()) });
    net
}

/// Builds a tree of two levels with `fan` branches each: 10,000 receivers for a fan of 100. Two ORMCC sessions with one receiver
/// each also end at every last hop (paper 000, 3.3.2).
fn tree(fan: usize) -> Network {
    let mut net = Network::new(1);
    let (source, root) = (net.node(), net.node());
    net.duplex(source, root, wide(1000.0, 5), wide(1000.0, 5));
    let mut rng = Rng::new(1, 99);
    let mut members = Vec::with_capacity(fan * fan);
    let mut singles = Vec::new();
    for _ in 0..fan {
        let middle = net.node();
        net.duplex(root, middle, wide(1000.0, 15), wide(1000.0, 15));
        for _ in 0..fan {
            let leaf = net.node();
            net.duplex(middle, leaf, bottleneck(30), wide(1.0, 30));
            members.push(ReceiverSpec { node: leaf, join: Time::ZERO, leave: Time::NEVER, mute_after: None });
            for _ in 0..2 {
                let single = net.node();
                net.duplex(single, root, wide(10.0, 5), wide(10.0, 5));
                singles.push((single, leaf));
            }
        }
    }
    for (single, leaf) in singles {
        let member = ReceiverSpec { node: leaf, join: Time::ZERO, leave: Time::NEVER, mute_after: None };
        let start = Time::from_secs_f64(rng.unit());
        net.session(SessionSpec { start, ..session(single, vec![member], Config::published()) });
    }
    net.session(session(source, members, Config::published()));
    net
}

/// Builds a fat tree (Al-Fares 2008) of switches with 32 ports, and TCP flows between random hosts. The delays between switches
/// differ by up to 20 %, so the least delay selects among the equal paths.
fn fat_tree(flows: usize) -> Network {
    const HALF: usize = 16;
    let mut net = Network::new(1);
    let mut rng = Rng::new(1, 99);
    let queue = QueueSpec::DropTail(Limit::Packets(100));
    let cores: Vec<_> = (0..HALF * HALF).map(|_| net.node()).collect();
    let mut hosts = Vec::new();
    for _ in 0..2 * HALF {
        let upper: Vec<_> = (0..HALF).map(|_| net.node()).collect();
        let mut between = |net: &mut Network, below, above| {
            let delay = Span::from_nanos(100_000 + rng.below(20_000));
            let spec = LinkSpec::new(Rate::from_mbps(100.0), delay, queue);
            net.duplex(below, above, spec, spec);
        };
        for (number, core) in cores.iter().enumerate() {
            between(&mut net, upper[number / HALF], *core);
        }
        for _ in 0..HALF {
            let edge = net.node();
            upper.iter().for_each(|above| between(&mut net, edge, *above));
            for _ in 0..HALF {
                let host = net.node();
                let spec = LinkSpec::new(Rate::from_mbps(100.0), Span::from_micros(50), queue);
                net.duplex(host, edge, spec, spec);
                hosts.push(host);
            }
        }
    }
    for _ in 0..flows {
        let (from, to) = (rng.below(hosts.len() as u64) as usize, rng.below(hosts.len() as u64 - 1) as usize);
        net.unicast(UnicastSpec {
            protocol: UnicastProtocol::Controlled("tcp-reno".parse::<Protocol>().expect("a protocol")),
            packet_size: 1000,
            ack_size: 40,
            from: hosts[from],
            to: hosts[if to < from { to } else { to + 1 }],
            start: Time::from_secs_f64(0.05 * rng.unit()),
            stop: Time::NEVER,
            supply: ApplicationData::Endless,
        });
    }
    net
}

/// Builds six groups of receivers behind last hops of 0.2 to 1.2 Mbit/s. GMCC sends to all receivers, and each group also has two
/// PGMCC sessions with one receiver each.
fn layers(receivers: usize) -> Network {
    let mut net = Network::new(1);
    let (source, hub) = (net.node(), net.node());
    net.duplex(source, hub, wide(100.0, 1), wide(100.0, 1));
    let scheme = |name: &str| name.parse::<Scheme>().expect("a scheme").with_packet_size(1000);
    let (gmcc, pgmcc) = (scheme("gmcc,preset=published"), scheme("pgmcc,preset=published"));
    let mut rng = Rng::new(1, 99);
    let mut members = Vec::with_capacity(receivers);
    for number in 0..receivers {
        let leaf = net.node();
        let rate = 0.2 * (number % 6 + 1) as f64;
        net.duplex(hub, leaf, LinkSpec { rate: Rate::from_mbps(rate), ..bottleneck(20) }, wide(1.0, 20));
        let member = ReceiverSpec { node: leaf, join: Time::ZERO, leave: Time::NEVER, mute_after: None };
        members.push(member);
        for _ in 0..2 {
            let single = net.node();
            net.duplex(single, hub, wide(10.0, 1), wide(10.0, 1));
            let start = Time::from_secs_f64(rng.unit());
            let spec = session(single, vec![member], Config::published());
            net.session(SessionSpec { scheme: pgmcc, start, ..spec });
        }
    }
    net.session(SessionSpec { scheme: gmcc, ..session(source, members, Config::published()) });
    net
}

/// Builds N receivers, each the child of an earlier receiver or of the source, with `fan` children per parent.
fn mtcp_tree(receivers: usize, fan: usize, link: impl Fn(Place) -> LinkSpec) -> Network {
    let parent = |member: usize| member.checked_sub(fan).map(|at| at / fan);
    let mut net = Network::new(1);
    let source = net.node();
    let mut members: Vec<ReceiverSpec> = Vec::with_capacity(receivers);
    for number in 0..receivers {
        let node = net.node();
        let above = parent(number).map_or(source, |parent| members[parent].node);
        let place = if (number + 1) * fan >= receivers { Place::Leaf } else { Place::Agent };
        net.duplex(above, node, link(place), wide(10.0, 5));
        members.push(ReceiverSpec { node, join: Time::ZERO, leave: Time::NEVER, mute_after: None });
    }
    let scheme = "mtcp,preset=published,localize=off".parse().expect("a scheme");
    let parents = (0..receivers).map(|number| parent(number).map(|parent| parent as u32)).collect();
    let flow = net.session(SessionSpec { scheme, ..session(source, members, Config::published()) });
    net.tree(flow, parents);
    net
}

/// Builds a tree in which every router has ten routers behind it. N receivers are behind the last routers, ten at each, with last
/// hops of 1 Mbit/s.
fn routed_tree(receivers: usize, scheme: &str, router: &Arc<dyn RouterSpec>) -> Network {
    const FAN: usize = 10;
    let mut net = Network::new(1);
    let (source, root) = (net.node(), net.node());
    net.duplex(source, root, wide(100.0, 2), wide(100.0, 2));
    net.router(root, Arc::clone(router));
    let mut level = vec![root];
    while level.len() * FAN < receivers {
        let mut next = Vec::with_capacity(level.len() * FAN);
        for above in level {
            for _ in 0..FAN {
                let node = net.node();
                net.duplex(above, node, wide(10.0, 5), wide(10.0, 5));
                net.router(node, Arc::clone(router));
                next.push(node);
            }
        }
        level = next;
    }
    let mut members = Vec::with_capacity(receivers);
    for number in 0..receivers {
        let leaf = net.node();
        net.duplex(level[number / FAN % level.len()], leaf, bottleneck(5), wide(1.0, 5));
        members.push(ReceiverSpec { node: leaf, join: Time::ZERO, leave: Time::NEVER, mute_after: None });
    }
    let scheme = scheme.parse::<Scheme>().expect("a scheme").with_packet_size(1000);
    net.session(SessionSpec { scheme, ..session(source, members, Config::published()) });
    net
}

/// Place of a receiver in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Leaf,
    Agent,
}

fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// Returns the processor time of all threads in seconds.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn main() {
    let mut args = std::env::args().skip(1);
    let kind = args.next().unwrap_or_else(|| "tcp".to_owned());
    let receivers: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(64);
    let seconds: f64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(60.0);
    let threads: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let begin = Instant::now();
    let net = match kind.as_str() {
        "tcp" => tcp_star(receivers, bottleneck(5)),
        "sack" => dumbbell(receivers),
        "window" => tcp_star(receivers, wide(100.0, 5)),
        "losses" => lossy_paths(receivers),
        "tree" => tree(receivers.isqrt()),
        "fattree" => fat_tree(receivers),
        "layers" => layers(receivers),
        "mtcp" => mtcp_tree(receivers, 16, |place| {
            let rate = Rate::from_mbps(if place == Place::Leaf { 0.2 } else { 10.0 });
            LinkSpec { rate, ..bottleneck(5) }
        }),
        "rmanp" => {
            let router: Arc<dyn RouterSpec> = Arc::new(rmanp::Config::default());
            routed_tree(receivers, "rmanp,preset=published,least=400000,is=0.02", &router)
        }
        "raccoom" => {
            let router: Arc<dyn RouterSpec> = Arc::new(acknowledgements::Config);
            routed_tree(receivers, "raccoom,preset=published,law=steady,first=400000", &router)
        }
        scheme => {
            let rate = Rate::from_mbps(args.next().and_then(|n| n.parse().ok()).unwrap_or(1.0));
            let loss = args.next().and_then(|n| n.parse().ok()).map(LossSpec::Bernoulli);
            match scheme.strip_prefix("mtcp-") {
                Some(fan) => {
                    let fan = fan.parse().expect("a number of children");
                    mtcp_tree(receivers, fan, |_| LinkSpec { rate, loss, ..bottleneck(5) })
                }
                None => {
                    let scheme = scheme.parse::<Scheme>().expect("a scheme").with_packet_size(1000);
                    star(receivers, scheme, LinkSpec { rate, loss, ..bottleneck(50) })
                }
            }
        }
    };
    let until = Time::from_secs_f64(seconds);
    let islands = if threads > 1 { Islands::IfFaster(threads) } else { Islands::One };
    let options = Options { until, sample: Span::MAX, watch: Watch::First(0), islands, ..Options::default() };
    let mut engine = net.engine(&options).expect("a sound network");
    let setup = begin.elapsed().as_secs_f64();
    let idle = peak_memory();
    let (begin, before) = (Instant::now(), processor_time());
    let (run, cpu, used, outcome) = std::thread::scope(|scope| {
        for helper in engine.helpers() {
            scope.spawn(|| helper.help());
        }
        engine.run();
        let (run, cpu, used) = (begin.elapsed().as_secs_f64(), processor_time() - before, peak_memory());
        (run, cpu, used, engine.finish(&net).expect("nothing that cannot be done"))
    });
    let session = &outcome.flows[outcome.flows.len() - 1];
    let received = session.members.iter().map(|member| member.bytes).sum::<u64>() as f64;
    let rate = received * 8.0 / seconds / receivers as f64;
    let others = &outcome.flows[..outcome.flows.len() - 1];
    let goodput = others.iter().map(|flow| flow.members[0].delivered * 8000).sum::<u64>() as f64 / seconds;
    let (to_agents, repairs) = session.tree.as_ref().map_or((0, 0), |tree| (tree.reports, tree.repairs));
    println!(
        "{{\"kind\":\"{kind}\",\"N\":{receivers},\"T_s\":{seconds},\"setup_s\":{setup:.3},\"run_s\":{run:.3},\"cpu_s\":{cpu:.2},\
         \"idle_MiB\":{idle:.1},\"run_MiB\":{used:.1},\"peak_MiB\":{:.1},\"link_traversals\":{},\"trav_per_s\":{:.0},\"arrivals\":{},\
         \"arrivals_per_s\":{:.0},\"events\":{},\"sent\":{},\"reports\":{},\"to_agents\":{to_agents},\"repairs\":{repairs},\"mcast_rate_bps\":{rate:.0},\
         \"other_goodput_bps_mean\":{:.0},\"digest\":\"{:016x}\"}}",
        peak_memory(),
        outcome.traversals,
        outcome.traversals as f64 / run,
        outcome.arrivals,
        outcome.arrivals as f64 / run,
        outcome.events,
        session.sent,
        session.feedback,
        goodput / others.len().max(1) as f64,
        outcome.digest,
    );
}
