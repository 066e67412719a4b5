//! Flows of one host that share congestion control. Both modes agree, a single coordinated flow behaves like an uncoordinated
//! one, and coordinated flows lose fewer packets.

use faircast_aqm::{Limit, LinkSpec, QueueSpec};
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{
    ApplicationData, CoordinationSpec, FlowId, Groups, Law, Mode, Network, NodeId, Options, Outcome,
    SimError, UnicastProtocol, UnicastSpec,
};
use faircast_unicast::Protocol;
use faircast_unicast::cocoon::grouping::Config;

fn wire(mbps: f64, millis: u64, packets: u32) -> LinkSpec {
    let queue = QueueSpec::DropTail(Limit::Packets(packets));
    LinkSpec::new(Rate::from_bps(mbps * 1e6), Span::from_millis(millis), queue)
}

struct Server {
    network: Network,
    server: NodeId,
    clients: Vec<NodeId>,
    flows: Vec<FlowId>,
}

/// Builds a server behind a link of 10 Mbit/s, a bottleneck of 1 Mbit/s with a buffer of 20 packets, and clients (paper 002,
/// figure 4.3).
fn server(seed: u64, clients: u32) -> Server {
    let mut network = Network::new(seed);
    let [server, left, right] = [0; 3].map(|_| network.node());
    network.duplex(server, left, wire(10.0, 2, 1000), wire(10.0, 2, 1000));
    network.duplex(left, right, wire(1.0, 20, 20), wire(1.0, 20, 1000));
    let clients: Vec<NodeId> = (0..clients).map(|_| network.node()).collect();
    for (number, &client) in clients.iter().enumerate() {
        let millis = 2 + 4 * (number as u64 % 2);
        network.duplex(right, client, wire(10.0, millis, 1000), wire(10.0, millis, 1000));
    }
    Server { network, server, clients, flows: Vec::new() }
}

impl Server {
    fn flow(&mut self, protocol: UnicastProtocol, to: usize, start: u64, supply: ApplicationData) {
        self.flows.push(self.network.unicast(UnicastSpec {
            protocol,
            packet_size: 500,
            ack_size: 40,
            from: self.server,
            to: self.clients[to],
            start: Time::from_nanos(start * 1_000_000),
            stop: Time::NEVER,
            supply,
        }));
    }

    fn tcp(&mut self, text: &str, to: usize, start: u64, supply: ApplicationData) {
        let protocol: Protocol = text.parse().expect("a protocol");
        self.flow(UnicastProtocol::Controlled(protocol.with_packet_size(500)), to, start, supply);
    }

    fn coordinate(&mut self, way: &str, group: impl Fn(usize) -> u32) {
        self.share(way, group, Groups::Given);
    }

    /// Coordinates the flows as numbered atoms, and measures the groups of atoms.
    fn measure(&mut self, way: &str, atom: impl Fn(usize) -> u32) {
        self.share(way, atom, Groups::Measured(Config::default()));
    }

    fn share(&mut self, way: &str, group: impl Fn(usize) -> u32, groups: Groups) {
        let way = way.parse().expect("a way");
        let flows = self.flows.iter().enumerate().map(|(number, flow)| (*flow, group(number))).collect();
        self.network.coordinate(CoordinationSpec { way, flows, groups });
    }

    fn run(&self, mode: Mode, secs: f64) -> Outcome {
        let options = Options { until: Time::from_secs_f64(secs), mode, ..Options::default() };
        self.network.run(&options).expect("it runs")
    }
}

const WAYS: [&str; 7] = [
    "cocoon",
    "cocoon,covers=cut,again=once",
    "cocoon,timer=own,below=cut",
    "ensemble",
    "tcp-int",
    "manager",
    "tcp-int,fast-start=off",
];

/// Builds downloads of all kinds that start almost simultaneously.
fn mixed(seed: u64, way: &str, protocol: &str) -> Server {
    let mut it = server(seed, 6);
    for number in 0..12_u64 {
        let supply = match number % 4 {
            0 => ApplicationData::Endless,
            1 => ApplicationData::Packets(60),
            2 => {
                let packets = Law::Pareto { mean: 30.0, shape: 1.3 };
                ApplicationData::Transfers { packets, pause: Law::Exponential { mean: 0.5 } }
            }
            _ => {
                let law = Law::Exponential { mean: 0.4 };
                ApplicationData::OnOff { on: law, off: law }
            }
        };
        it.tcp(protocol, number as usize % 6, (number * 7 + seed) % 30, supply);
    }
    let datagrams = !way.contains("tcp-int") && !way.contains("manager");
    for number in 0..2 {
        if datagrams {
            let rate = Rate::from_bps(2e5);
            it.flow(UnicastProtocol::Datagrams { rate, jitter: 0.5 }, number, 5, ApplicationData::Endless);
        }
    }
    it.coordinate(way, |number| number as u32 % 2);
    it
}

#[test]
fn both_modes_agree_with_every_kind_of_coordination() {
    for way in WAYS {
        for protocol in [
            "tcp-reno,preset=ns2001",
            "tcp-newreno,preset=rfc",
            "tcp-sack,preset=linux",
            "tcp-reno,jitter=0.002",
        ] {
            for seed in 1..4 {
                let it = mixed(seed, way, protocol);
                let (eager, evented) = (it.run(Mode::Eager, 30.0), it.run(Mode::Evented, 30.0));
                assert_eq!(eager.digest, evented.digest, "{way} {protocol} {seed}");
                assert_eq!(eager.flows, evented.flows, "{way} {protocol} {seed}");
                assert_eq!(eager.coordinations, evented.coordinations, "{way} {protocol} {seed}");
                assert!(eager.flows.iter().all(|flow| flow.members[0].bytes > 0), "{way} {protocol} {seed}");
                let counters = eager.coordinations[0].counters;
                assert!(
                    !way.starts_with("cocoon") || counters.reactions > 5 && counters.cuts > 5,
                    "{counters:?}"
                );
            }
        }
    }
}

#[test]
fn single_coordinated_flow_behaves_like_uncoordinated_newreno() {
    for protocol in
        ["tcp-newreno,preset=ns2001", "tcp-newreno,preset=rfc", "tcp-newreno,preset=linux", "tcp-newreno"]
    {
        for supply in [ApplicationData::Endless, ApplicationData::Packets(400)] {
            let plain = |way: Option<&str>| {
                let mut it = server(3, 1);
                it.tcp(protocol, 0, 3, supply);
                way.into_iter().for_each(|way| it.coordinate(way, |_| 0));
                it.run(Mode::Eager, 120.0)
            };
            let (alone, without) = (plain(Some("cocoon")), plain(None));
            assert!(without.flows[0].cuts.len() > 2 || supply != ApplicationData::Endless);
            assert_eq!(alone.flows, without.flows, "{protocol}");
            assert_eq!(alone.digest, without.digest);
        }
    }
}

/// Returns the share of lost data packets, and the number of complete downloads.
fn loss(outcome: &Outcome) -> (f64, usize) {
    let counts = outcome.flows.iter().map(|flow| flow.counts.last().expect("the whole run"));
    let (lost, sent) = counts.fold((0, 0), |(lost, sent), it| (lost + it.lost, sent + it.sent));
    (lost as f64 / sent as f64, outcome.flows.iter().map(|flow| flow.transfers.len()).sum())
}

/// Builds a server and clients behind two slow links. `clients` contains the delay of each client in ms and the number of its
/// slow link. Two endless TCP connections to each client start at `start` ms.
fn behind(seed: u64, clients: &[(u64, usize)], start: u64) -> Server {
    let mut network = Network::new(seed);
    let [server, left, one, other] = [0; 4].map(|_| network.node());
    network.duplex(server, left, wire(100.0, 2, 1000), wire(100.0, 2, 1000));
    for right in [one, other] {
        network.duplex(left, right, wire(8.0, 20, 100), wire(8.0, 20, 1000));
    }
    let nodes: Vec<NodeId> = clients.iter().map(|_| network.node()).collect();
    for (&client, &(millis, which)) in nodes.iter().zip(clients) {
        network.duplex([one, other][which], client, wire(100.0, millis, 1000), wire(100.0, millis, 1000));
    }
    let mut it = Server { network, server, clients: nodes, flows: Vec::new() };
    for number in 0..2 * clients.len() as u64 {
        let to = number as usize % clients.len();
        it.tcp("tcp-newreno,preset=rfc", to, start + 17 * number, ApplicationData::Endless);
    }
    it
}

/// Returns the number of each client's group at the end of the run.
fn groups_of(outcome: &Outcome) -> Vec<u32> {
    let numbers = outcome.coordinations[0].groups.iter();
    numbers.map(|group| group.expect("all have had connections")).collect()
}

#[test]
fn clients_of_one_measured_group_share_a_path_in_both_modes() {
    // Clients whose round-trip times differ by 2 ms share a path. A difference of 8 ms makes a second path (figure 4.3 with delta
    // = 1 and 4 ms), and the second slow link makes a third path.
    let clients = [(2, 0), (2, 0), (3, 0), (6, 0), (6, 0), (2, 1), (2, 1)];
    for seed in 1..4 {
        let mut it = behind(seed, &clients, 5);
        it.measure("cocoon,again=none", |number| (number % clients.len()) as u32);
        let (eager, evented) = (it.run(Mode::Eager, 60.0), it.run(Mode::Evented, 60.0));
        assert_eq!((eager.digest, &eager.coordinations), (evented.digest, &evented.coordinations));
        let counters = eager.coordinations[0].grouping.expect("they are measured");
        assert_eq!(groups_of(&eager), [0, 0, 0, 1, 1, 2, 2], "seed {seed}: {counters:?}");
        assert!(counters.spent as f64 <= 0.025 * counters.acknowledgements as f64, "{counters:?}");
    }
}

#[test]
fn equal_paths_are_one_group_until_congestion_separates_them() {
    // Small windows leave both slow links uncongested. From 40 s on, both links are congested.
    let clients = [(2, 0), (2, 1)];
    let mut it = behind(4, &clients, 40_000);
    for number in 0..8 {
        it.tcp("tcp-newreno,preset=rfc,window=8", number % 2, 7 * number as u64, ApplicationData::Endless);
    }
    it.measure("cocoon,again=none", |number| (number % clients.len()) as u32);
    let before = it.run(Mode::Eager, 38.0);
    assert_eq!((groups_of(&before), before.coordinations[0].counters.reactions), (vec![0, 0], 0));
    let after = it.run(Mode::Eager, 100.0);
    assert_eq!(groups_of(&after), [0, 1]);
    let counters = after.coordinations[0].grouping.expect("they are measured");
    assert!(counters.merges >= 1 && counters.splits >= 1, "{counters:?}");
}

#[test]
fn all_downloads_complete_with_every_kind_of_coordination() {
    for way in WAYS {
        let mut it = server(5, 10);
        for number in 0..20 {
            it.tcp("tcp-newreno,preset=rfc", number % 10, number as u64, ApplicationData::Packets(60));
        }
        it.coordinate(way, |number| number as u32 % 2);
        let outcome = it.run(Mode::Eager, 120.0);
        assert_eq!(loss(&outcome).1, 20, "{way}");
    }
}

#[test]
fn datagram_flow_has_the_mean_rate_of_tcp_flows_in_its_group() {
    let shares = |way: Option<&str>| {
        let mut it = server(2, 6);
        for number in 0..4 {
            it.tcp("tcp-newreno,preset=rfc", number, 5 * number as u64, ApplicationData::Endless);
        }
        for number in 4..6 {
            // Each flow sends ten times its fair share.
            let protocol = UnicastProtocol::Datagrams { rate: Rate::from_bps(1.6e6), jitter: 0.5 };
            it.flow(protocol, number, 100, ApplicationData::Endless);
        }
        way.into_iter().for_each(|way| it.coordinate(way, |_| 0));
        let outcome = it.run(Mode::Eager, 200.0);
        let bytes = |flow: usize| outcome.flows[flow].members[0].bytes as f64;
        let tcp = (0..4).map(bytes).sum::<f64>() / 4.0;
        (4..6).map(|flow| bytes(flow) / tcp).collect::<Vec<_>>()
    };
    assert!(shares(None).iter().all(|ratio| *ratio > 10.0));
    let kept = shares(Some("cocoon"));
    assert!(kept.iter().all(|ratio| (0.5..1.5).contains(ratio)), "{kept:?}");
}

#[test]
fn flows_that_cannot_be_coordinated_are_reported() {
    let refused = |it: &Server| match it.network.run(&Options::default()) {
        Err(SimError::BadCoordination { flow, why }) => (flow, why),
        other => panic!("it runs: {:?}", other.map(|outcome| outcome.digest)),
    };
    let mut it = server(1, 2);
    it.tcp("tcp-reno", 0, 0, ApplicationData::Endless);
    it.flow(
        UnicastProtocol::Datagrams { rate: Rate::from_bps(1e5), jitter: 0.0 },
        0,
        0,
        ApplicationData::Endless,
    );
    it.coordinate("manager", |_| 0);
    assert_eq!(refused(&it), (1, "this way of coordination has no place for datagrams"));

    let mut it = server(1, 2);
    it.tcp("tcp-reno", 0, 0, ApplicationData::Endless);
    it.flow(
        UnicastProtocol::Datagrams { rate: Rate::from_bps(1e5), jitter: 0.0 },
        0,
        0,
        ApplicationData::Endless,
    );
    it.measure("cocoon", |_| 0);
    assert_eq!(refused(&it), (1, "measured groups have no place for datagrams"));

    let mut it = server(1, 2);
    it.tcp("tcp-reno", 0, 0, ApplicationData::Endless);
    it.measure("tcp-int", |_| 0);
    assert!(refused(&it).1.starts_with("one window for all"));

    let mut it = server(1, 2);
    it.tcp("tcp-reno", 0, 0, ApplicationData::Endless);
    it.server = it.clients[1];
    it.tcp("tcp-reno", 0, 0, ApplicationData::Endless);
    it.coordinate("cocoon", |_| 0);
    assert!(refused(&it).1.starts_with("it begins at another host"));

    let mut it = server(1, 2);
    it.tcp("tfrc", 0, 0, ApplicationData::Endless);
    it.coordinate("cocoon", |_| 0);
    assert!(refused(&it).1.starts_with("it is neither TCP"));
}
