//! Small networks for tests.
#![allow(dead_code, reason = "each test program uses some of them")]

use faircast_aqm::{Limit, LinkSpec, LossSpec, QueueSpec};
use faircast_core::rng::Rng;
use faircast_core::schemes::ormcc::Config;
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{
    ApplicationData, Change, FlowId, Islands, Law, LinkId, Mode, Network, NodeId, Options, Outcome,
    ReceiverSpec, SessionSpec, UnicastProtocol, UnicastSpec,
};
use faircast_unicast::Protocol;

/// Runs the network in both engines, and divided into islands if it is short. Asserts that all agree, and returns the outcome.
#[track_caller]
pub fn in_both_engines(net: &Network, seconds: f64) -> Outcome {
    let outcome = |mode, islands| {
        let options = Options { until: Time::from_secs_f64(seconds), mode, islands, ..Options::default() };
        net.run(&options).expect("a sound network")
    };
    let eager = outcome(Mode::Eager, Islands::One);
    let divided = (seconds <= 60.0).then_some((Mode::Eager, Islands::AtMost(2)));
    for (mode, islands) in [(Mode::Evented, Islands::One)].into_iter().chain(divided) {
        let other = outcome(mode, islands);
        assert_eq!(eager.digest, other.digest, "{mode:?}, {islands:?}");
        assert!(
            eager.flows == other.flows && eager.links == other.links && eager.taps == other.taps,
            "{mode:?}, {islands:?}"
        );
    }
    eager
}

/// Runs the network with a thread for each island. Returns the outcome and the number of islands.
#[expect(clippy::disallowed_methods, reason = "the outcome must not depend on the threads")]
pub fn in_threads(net: &Network, options: &Options) -> (Outcome, usize) {
    let mut engine = net.engine(options).expect("a sound network");
    let islands = engine.islands();
    let outcome = std::thread::scope(|scope| {
        for helper in engine.helpers() {
            scope.spawn(|| helper.help());
        }
        engine.run();
        engine.finish(net).expect("nothing that cannot be done")
    });
    (outcome, islands)
}

#[derive(Clone, Copy, PartialEq)]
pub enum Background {
    None,
    Tcp,
    Sessions,
    Datagrams,
}

pub fn link(mbps: f64, millis: u64, packets: u32) -> LinkSpec {
    LinkSpec::new(
        Rate::from_mbps(mbps),
        Span::from_millis(millis),
        QueueSpec::DropTail(Limit::Packets(packets)),
    )
}

pub fn wide(mbps: f64, millis: u64) -> LinkSpec {
    LinkSpec { queue: QueueSpec::UNLIMITED, ..link(mbps, millis, 0) }
}

pub fn member(node: NodeId) -> ReceiverSpec {
    ReceiverSpec { node, join: Time::ZERO, leave: Time::NEVER, mute_after: None }
}

pub fn session(source: NodeId, members: Vec<ReceiverSpec>) -> SessionSpec {
    SessionSpec {
        scheme: Scheme::Ormcc(Config::published()),
        packet_size: 1000,
        report_size: 40,
        source,
        members,
        start: Time::ZERO,
        stop: Time::NEVER,
        join_latency: Span::from_millis(20),
        leave_latency: Span::from_millis(200),
        alive: None,
    }
}

pub fn unicast(protocol: UnicastProtocol, from: NodeId, to: NodeId, start: f64) -> UnicastSpec {
    UnicastSpec {
        protocol,
        packet_size: 1000,
        ack_size: 40,
        from,
        to,
        start: Time::from_secs_f64(start),
        stop: Time::NEVER,
        supply: ApplicationData::Endless,
    }
}

pub fn reno() -> UnicastProtocol {
    UnicastProtocol::Controlled("tcp-reno".parse::<Protocol>().expect("a protocol"))
}

/// The source is far away, and the receivers are near one another and report often. Their last hops read packets from a log.
pub fn far_source(receivers: usize) -> Network {
    let mut net = Network::new(5);
    let (source, hub) = (net.node(), net.node());
    net.duplex(source, hub, wide(100.0, 30), wide(100.0, 30));
    let leaf = |net: &mut Network| {
        let leaf = net.node();
        net.duplex(hub, leaf, link(10.0, 4, 25), wide(10.0, 4));
        member(leaf)
    };
    let members = (0..receivers).map(|_| leaf(&mut net)).collect();
    net.session(SessionSpec { alive: Some(Span::from_millis(40)), ..session(source, members) });
    net
}

/// Builds a source, a router and receivers behind bottlenecks of 1 Mbit/s, each with competing flows.
pub fn star(receivers: usize, background: Background) -> Network {
    let mut net = Network::new(7);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(10.0, 1), wide(10.0, 1));
    let mut members = Vec::new();
    let mut pairs = Vec::new();
    for number in 0..receivers {
        let leaf = net.node();
        let (there, _) = net.duplex(router, leaf, link(1.0, 20, 25), wide(1.0, 20));
        if number == 0 && receivers <= 16 {
            net.probe_link(there, Span::from_millis(37));
            net.tap(there);
        }
        members.push(member(leaf));
        let sender = net.node();
        net.duplex(sender, router, wide(10.0, 3), wide(10.0, 3));
        pairs.push((sender, leaf));
    }
    net.session(session(source, members));
    for (number, (sender, leaf)) in pairs.into_iter().enumerate() {
        let start = number as f64 * 0.037;
        match background {
            Background::None => {}
            Background::Tcp => {
                let mut spec = unicast(reno(), sender, leaf, start);
                let mean = |mean| Law::Pareto { mean, shape: 1.5 };
                spec.supply = match number % 4 {
                    0 => ApplicationData::OnOff { on: mean(5.0), off: mean(3.0) },
                    1 => ApplicationData::Transfers {
                        packets: mean(40.0),
                        pause: Law::Exponential { mean: 0.5 },
                    },
                    2 => ApplicationData::Packets(500),
                    _ => ApplicationData::Endless,
                };
                net.unicast(spec);
            }
            Background::Sessions => {
                net.session(SessionSpec {
                    start: Time::from_secs_f64(start),
                    ..session(sender, vec![member(leaf)])
                });
            }
            Background::Datagrams => {
                let protocol = UnicastProtocol::Datagrams { rate: Rate::from_bps(500e3), jitter: 0.5 };
                let on = Law::Exponential { mean: 1.0 };
                net.unicast(UnicastSpec {
                    supply: ApplicationData::OnOff { on, off: on },
                    packet_size: 500,
                    ..unicast(protocol, sender, leaf, start)
                });
            }
        }
    }
    net
}

/// Builds a session to receivers behind bottlenecks, each with an endless TCP flow.
pub fn tcp_star(receivers: usize) -> Network {
    let mut net = Network::new(9);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(10.0, 1), wide(10.0, 1));
    let mut members = Vec::new();
    for number in 0..receivers {
        let (leaf, sender) = (net.node(), net.node());
        net.duplex(router, leaf, link(1.0, 20, 25), wide(1.0, 20));
        net.duplex(sender, router, wide(10.0, 3), wide(10.0, 3));
        members.push(member(leaf));
        net.unicast(unicast(reno(), sender, leaf, number as f64 * 0.037));
    }
    net.session(session(source, members));
    net
}

/// Builds a tree of two levels with bottlenecks at the leaves, and two sessions with one receiver each behind every bottleneck.
pub fn tree(branches: usize, leaves: usize) -> Network {
    let mut net = Network::new(3);
    let (source, root) = (net.node(), net.node());
    net.duplex(source, root, wide(1000.0, 5), wide(1000.0, 5));
    let mut members = Vec::new();
    let mut singles = Vec::new();
    for _ in 0..branches {
        let middle = net.node();
        net.duplex(root, middle, wide(1000.0, 15), wide(1000.0, 15));
        for _ in 0..leaves {
            let leaf = net.node();
            net.duplex(middle, leaf, link(1.0, 30, 50), wide(1.0, 30));
            members.push(member(leaf));
            for _ in 0..2 {
                let single = net.node();
                net.duplex(single, root, wide(100.0, 5), wide(100.0, 5));
                singles.push((single, leaf));
            }
        }
    }
    net.session(session(source, members));
    for (number, (single, leaf)) in singles.into_iter().enumerate() {
        let start = Time::from_secs_f64(number as f64 * 0.011);
        net.session(SessionSpec { start, ..session(single, vec![member(leaf)]) });
    }
    net
}

/// Builds a star whose receivers get flows of one host: sessions of one receiver each, and TCP flows. The host's links only delay.
pub fn crowd(flows: usize) -> Network {
    let mut net = Network::new(5);
    let (source, router) = (net.node(), net.node());
    let wire = LinkSpec::new(Rate::UNLIMITED, Span::from_millis(5), QueueSpec::UNLIMITED);
    net.duplex(source, router, wire, wire);
    let leaves: Vec<NodeId> = (0..flows / 20)
        .map(|number| {
            let leaf = net.node();
            net.duplex(router, leaf, link(1.0, 20 + number as u64 % 7, 50), wide(1.0, 30));
            leaf
        })
        .collect();
    for number in 0..flows {
        let (leaf, start) = (leaves[number % leaves.len()], number as f64 * 0.0013);
        if number % 3 == 0 {
            net.unicast(unicast(reno(), source, leaf, start));
        } else {
            let start = Time::from_secs_f64(start);
            net.session(SessionSpec { start, ..session(source, vec![member(leaf)]) });
        }
    }
    net
}

/// Builds a star with lossy links in both directions. One link changes its rate and delay, and another link fails.
pub fn rough_star(receivers: usize) -> Network {
    let mut net = Network::new(11);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(10.0, 1), wide(10.0, 1));
    let mut members = Vec::new();
    let mut downlinks: Vec<LinkId> = Vec::new();
    for number in 0..receivers {
        let leaf = net.node();
        let loss = match number % 3 {
            0 => None,
            1 => Some(LossSpec::Bernoulli(0.01)),
            _ => Some(LossSpec::GilbertElliott { to_bad: 0.002, to_good: 0.2, good: 0.0, bad: 0.5 }),
        };
        let back = LinkSpec { loss: Some(LossSpec::Bernoulli(0.1)), ..wide(1.0, 20) };
        let (there, _) = net.duplex(router, leaf, LinkSpec { loss, ..link(2.0, 20, 25) }, back);
        downlinks.push(there);
        members.push(member(leaf));
    }
    let at = Time::from_secs_f64;
    net.probe_link(downlinks[0], Span::from_millis(100));
    net.change(at(10.0), downlinks[0], Change::Rate(Rate::from_bps(300e3)));
    net.change(at(15.0), downlinks[0], Change::Delay(Span::from_millis(5)));
    net.change(at(20.0), downlinks[0], Change::Rate(Rate::from_mbps(1.0)));
    net.change(at(25.0), downlinks[1], Change::Down);
    net.change(at(30.0), downlinks[1], Change::Up);
    net.change(at(35.0), downlinks[2], Change::Loss(Some(LossSpec::Bernoulli(0.05))));
    let leaf = members[0].node;
    net.session(session(source, members));
    net.unicast(unicast(reno(), source, leaf, 0.5));
    net
}

/// Builds a session over links of a constant rate. Its members report their presence, and its source sends probes.
pub fn saying(receivers: usize, alive: Option<Span>) -> Network {
    let mut net = Network::new(5);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(10.0, 1), wide(10.0, 1));
    let leaves: Vec<NodeId> = (0..receivers).map(|_| net.node()).collect();
    for &leaf in &leaves {
        net.duplex(router, leaf, link(1.0, 20, 25), wide(1.0, 20));
    }
    let start = Time::from_secs_f64(2.0);
    let members = leaves.into_iter().map(member).collect();
    net.session(SessionSpec { alive, start, ..session(source, members) });
    net
}

/// Builds a session with a late joiner and members that leave early.
pub fn coming_and_going(receivers: usize) -> Network {
    let mut net = Network::new(5);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(10.0, 1), wide(10.0, 1));
    let mut members = Vec::new();
    for number in 0..receivers {
        let leaf = net.node();
        net.duplex(router, leaf, link(1.0 + number as f64 * 0.2, 20, 25), wide(1.0, 20));
        let mut it = member(leaf);
        match number {
            0 => it.leave = Time::from_secs_f64(20.0),
            5 => it.join = Time::from_secs_f64(45.0),
            _ => {}
        }
        members.push(it);
    }
    members[0].leave = Time::from_secs_f64(40.0);
    net.session(session(source, members));
    net
}

/// Builds a session with members that leave and return repeatedly, as new receivers, after absences of any length.
pub fn coming_back(receivers: usize) -> Network {
    let mut rng = Rng::new(17, 4712);
    let mut net = Network::new(17);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, wide(10.0, 1), wide(10.0, 1));
    let mut members = Vec::new();
    let mut later = Vec::new();
    for number in 0..receivers {
        let leaf = net.node();
        net.duplex(router, leaf, link(1.0, 20, 25), wide(1.0, 20));
        let mut it = member(leaf);
        if number > 0 {
            later.push((number as u32, come_and_go(&mut it, 60.0, &mut rng)));
        }
        members.push(it);
    }
    let flow = net.session(session(source, members));
    come_back(&mut net, flow, later);
    net
}

/// Makes the member leave and return repeatedly until `end`. Stays last up to an eighth of the run, and some absences are shorter
/// than a round-trip time. Returns the stays after the first one.
fn come_and_go(it: &mut ReceiverSpec, end: f64, rng: &mut Rng) -> Vec<(Time, Time)> {
    let mut at = end / 6.0 * rng.unit();
    it.leave = Time::from_secs_f64(at);
    let mut stays = Vec::new();
    while at < end {
        let join = at + if rng.chance(0.3) { 0.01 } else { 0.01 + end / 8.0 * rng.unit() };
        at = join + 0.01 + end / 8.0 * rng.unit();
        stays.push((Time::from_secs_f64(join), Time::from_secs_f64(at)));
    }
    stays
}

fn come_back(net: &mut Network, flow: FlowId, later: Vec<(u32, Vec<(Time, Time)>)>) {
    for (member, stays) in later {
        stays.into_iter().for_each(|(join, leave)| net.come_back(flow, member, join, leave));
    }
}

/// Builds a session of several layers to receivers behind two routers. Each receiver is behind a separate bottleneck with a
/// competing TCP flow. One receiver joins late, one leaves, and one returns. A session of one layer uses the same paths.
pub fn layered(scheme: &str, receivers: usize) -> Network {
    let mut net = Network::new(23);
    let (source, root) = (net.node(), net.node());
    net.duplex(source, root, wide(100.0, 1), wide(100.0, 1));
    let middle = [net.node(), net.node()];
    middle.iter().for_each(|node| {
        net.duplex(root, *node, wide(20.0, 10), wide(20.0, 10));
    });
    let mut members = Vec::new();
    for number in 0..receivers {
        let (leaf, sender) = (net.node(), net.node());
        let rate = 0.25 * (1 + number) as f64;
        let (there, _) = net.duplex(middle[number % 2], leaf, link(rate, 15, 15), wide(1.0, 15));
        net.duplex(sender, root, wide(10.0, 3), wide(10.0, 3));
        if number % 3 == 1 {
            net.unicast(unicast(reno(), sender, leaf, 5.0));
        }
        if number == 1 {
            net.tap(there);
        }
        let mut it = member(leaf);
        match number {
            2 => it.join = Time::from_secs_f64(20.0),
            3 => it.leave = Time::from_secs_f64(25.0),
            4 => (it.join, it.leave) = (Time::from_secs_f64(5.0), Time::from_secs_f64(15.0)),
            _ => {}
        }
        members.push(it);
    }
    let plain = members.clone();
    let scheme: Scheme = format!("{scheme},preset=published").parse().expect("a scheme");
    let flow = net.session(SessionSpec { scheme, ..session(source, members) });
    if receivers > 4 {
        net.come_back(flow, 4, Time::from_secs_f64(15.1), Time::from_secs_f64(30.0));
    }
    let sender = net.node();
    net.duplex(sender, root, wide(10.0, 3), wide(10.0, 3));
    net.session(session(sender, plain));
    net
}

/// Builds one TCP flow over one link.
pub fn one_tcp() -> Network {
    let mut net = Network::new(1);
    let (a, b) = (net.node(), net.node());
    let (there, _) = net.duplex(a, b, link(1.0, 20, 50), wide(1.0, 20));
    net.probe_link(there, Span::from_millis(50));
    net.unicast(unicast(reno(), a, b, 0.0));
    net
}

/// Number of catalogue schemes from which random networks draw. It is constant, so that an additional scheme of the catalogue
/// does not change the random networks.
const DRAWN: u64 = 9;

/// Draws a configuration of MTCP, with or without repairs by parents.
fn mtcp(rng: &mut Rng) -> Scheme {
    let preset = if rng.chance(0.7) { "published" } else { "transport" };
    format!("mtcp,preset={preset}").parse().expect("a scheme and a preset")
}

/// Draws a scheme with the preset of its paper or of a transport.
fn any_scheme(rng: &mut Rng) -> Scheme {
    let entry = &CATALOGUE[rng.below(DRAWN) as usize];
    let preset = if rng.chance(0.5) { "published" } else { "transport" };
    let scheme: Scheme = format!("{},preset={preset}", entry.name).parse().expect("a scheme and a preset");
    scheme.with_packet_size(1000)
}

/// Draws a scheme with several layers, with the preset of its paper or of a transport.
fn any_layered_scheme(rng: &mut Rng) -> Scheme {
    std::iter::repeat_with(|| any_scheme(rng))
        .find(|scheme| scheme.layers() > 1)
        .expect("the catalogue has some")
}

/// Returns a random network of routers in a row or tree, with hosts. Some hosts have sessions of all schemes, TCP, TFRC, RAP or
/// datagrams. The network also has RED, losses, changes, members that leave and return, sources that stop, and nodes that
/// aggregate reports.
pub fn random(seed: u64) -> Network {
    random_with(seed, any_scheme)
}

/// Returns a random network like `random` in which all sessions have several layers.
pub fn random_layered(seed: u64) -> Network {
    random_with(seed, any_layered_scheme)
}

/// Returns a random network like `random` in which all sessions use MTCP and all receivers are children of the source.
pub fn random_mtcp(seed: u64) -> Network {
    random_with(seed, mtcp)
}

fn random_with(seed: u64, scheme: fn(&mut Rng) -> Scheme) -> Network {
    let mut rng = Rng::new(seed, 4711);
    let mut net = Network::new(seed);
    let routers: Vec<NodeId> = (0..1 + rng.below(4)).map(|_| net.node()).collect();
    let mut links = Vec::new();
    let spec = |rng: &mut Rng| {
        let queue = match rng.below(4) {
            0 => QueueSpec::UNLIMITED,
            1 => QueueSpec::Red(faircast_aqm::red::Config {
                ecn: rng.chance(0.5),
                ..faircast_aqm::red::Config::red_parameters()
            }),
            2 => QueueSpec::DropTail(Limit::Bytes(20_000)),
            _ => QueueSpec::DropTail(Limit::Packets(10 + rng.below(40) as u32)),
        };
        let loss = rng.chance(0.15).then_some(LossSpec::Bernoulli(0.01));
        let rate = Rate::from_bps(300e3 * 2f64.powf(6.0 * rng.unit()));
        LinkSpec { loss, ..LinkSpec::new(rate, Span::from_micros(rng.below(40_000)), queue) }
    };
    let mut join = |net: &mut Network, rng: &mut Rng, a, b| {
        let (there, back) = (spec(rng), spec(rng));
        let (there, back) = net.duplex(a, b, there, back);
        links.extend([there, back]);
    };
    for at in 1..routers.len() {
        let parent = routers[rng.below(at as u64) as usize];
        join(&mut net, &mut rng, parent, routers[at]);
    }
    let hosts: Vec<NodeId> = (0..4 + rng.below(14)).map(|_| net.node()).collect();
    for &host in &hosts {
        let router = routers[rng.below(routers.len() as u64) as usize];
        join(&mut net, &mut rng, router, host);
    }
    let pick = |rng: &mut Rng| hosts[rng.below(hosts.len() as u64) as usize];
    for _ in 0..1 + rng.below(4) {
        let source = pick(&mut rng);
        let receivers: Vec<NodeId> =
            hosts.iter().copied().filter(|&h| h != source && rng.chance(0.6)).collect();
        let mut later = Vec::new();
        let members = receivers.into_iter().zip(0..).map(|(node, number)| {
            let mut it = member(node);
            match rng.below(20) {
                0 | 1 => {
                    it.join = Time::from_secs_f64(3.0 * rng.unit());
                    it.leave = Time::from_secs_f64(4.0 + 4.0 * rng.unit());
                }
                2 => later.push((number, come_and_go(&mut it, 8.0, &mut rng))),
                _ => {}
            }
            it
        });
        let members: Vec<_> = members.collect();
        let start = Time::from_secs_f64(rng.unit());
        let scheme = scheme(&mut rng);
        let flow = net.session(SessionSpec { scheme, start, ..session(source, members) });
        come_back(&mut net, flow, later);
        if rng.chance(0.2) {
            net.send_only(flow, 1 + rng.below(500));
        }
        if rng.chance(0.2) {
            let mut at = 0.0;
            while at < 8.0 {
                let from = at + 0.01 + rng.unit();
                at = from + 0.01 + 2.0 * rng.unit();
                net.send_during(flow, Time::from_secs_f64(from), Time::from_secs_f64(at));
            }
        }
        if rng.chance(0.3) {
            net.allow_marks(flow);
        }
    }
    for &router in &routers {
        if rng.chance(0.2) {
            net.aggregate(router, Span::from_millis(1 + rng.below(2000)));
        }
    }
    for _ in 0..rng.below(12) {
        let (from, to) = (pick(&mut rng), pick(&mut rng));
        if from == to {
            continue;
        }
        let names =
            ["tcp-reno", "tcp-sack", "tcp-vegas", "tcp-newreno,delack", "tfrc", "rap", "tcp-reno,ecn"];
        let protocol = match rng.below(8) {
            7 => UnicastProtocol::Datagrams { rate: Rate::from_bps(100e3), jitter: 0.3 },
            n => UnicastProtocol::Controlled(names[n as usize].parse::<Protocol>().expect("a protocol")),
        };
        let mean = |mean| Law::Exponential { mean };
        let supply = match rng.below(4) {
            0 => ApplicationData::OnOff { on: mean(1.0), off: mean(0.5) },
            1 => ApplicationData::Transfers { packets: mean(20.0), pause: mean(0.2) },
            _ => ApplicationData::Endless,
        };
        net.unicast(UnicastSpec { supply, ..unicast(protocol, from, to, rng.unit()) });
    }
    if rng.chance(0.3) {
        let link = links[rng.below(links.len() as u64) as usize];
        net.change(Time::from_secs_f64(2.0), link, Change::Rate(Rate::from_bps(200e3)));
        net.change(Time::from_secs_f64(4.0), link, Change::Rate(Rate::from_mbps(2.0)));
    }
    net.probe_link(links[0], Span::from_millis(111));
    net.tap(links[links.len() - 1]);
    net
}

/// Builds one host that sends a session to each of many receivers, and a TCP flow to some receivers.
pub fn one_sender(receivers: usize) -> Network {
    let mut net = Network::new(13);
    let (sender, router) = (net.node(), net.node());
    net.duplex(sender, router, wide(100.0, 5), wide(100.0, 5));
    for number in 0..receivers {
        let leaf = net.node();
        net.duplex(router, leaf, link(1.0, 20, 25), wide(1.0, 20));
        let start = Time::from_secs_f64(0.013 * number as f64);
        net.session(SessionSpec { start, ..session(sender, vec![member(leaf)]) });
        if number % 3 == 0 {
            net.unicast(unicast(reno(), sender, leaf, 0.2));
        }
    }
    net
}
