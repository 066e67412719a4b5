//! The emulator and the simulator use the same paths.

use faircast_aqm::LinkSpec;
use faircast_core::time::{Rate, Span, Time};
use faircast_emulator::{EmulationPlan, Groups, Net};
use faircast_sim::{
    Network, NodeId, Options, ReceiverSpec, SessionSpec, SimError, Topology, UnicastProtocol, UnicastSpec,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

const SIZE: u16 = 100;

/// Returns random networks of hosts and routers with duplex links. Many links have equal delays.
fn networks() -> impl Strategy<Value = Topology> {
    let links = prop::collection::vec((0..10_u32, 0..10_u32, 1..4_u64, 1..4_u64), 4..20);
    (2..5_u32, 1..6_u32, links).prop_map(|(hosts, routers, links)| {
        let mut it = Topology::new();
        (0..hosts).for_each(|_| _ = it.host());
        (0..routers).for_each(|_| _ = it.router());
        let spec = |millis| LinkSpec {
            rate: Rate::from_mbps(10.0),
            delay: Span::from_millis(millis),
            ..faircast_topology::FREE
        };
        let node = |number: u32| NodeId(number % (hosts + routers));
        for (a, b, there, back) in links.into_iter().filter(|(a, b, ..)| node(*a) != node(*b)) {
            it.duplex(node(a), node(b), spec(there), spec(back));
        }
        it
    })
}

/// Returns the links that a simulation uses, or `None` if there is no path.
fn simulated(network: &Network) -> Option<BTreeSet<usize>> {
    let options = Options { until: Time::from_secs_f64(2.0), ..Options::default() };
    match network.run(&options) {
        Ok(outcome) => {
            let used =
                |(number, _): &(usize, &faircast_sim::LinkOutcome)| outcome.links[*number].counts.offered > 0;
            Some(outcome.links.iter().enumerate().filter(used).map(|(number, _)| number).collect())
        }
        Err(SimError::NoWay { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

/// Simulates one datagram without acknowledgement.
fn datagram(topology: &Topology, from: NodeId, to: NodeId) -> Option<BTreeSet<usize>> {
    let mut network = Network::of(topology.clone(), 1);
    network.unicast(UnicastSpec {
        protocol: UnicastProtocol::Datagrams { rate: Rate::from_bps(8e5), jitter: 0.0 },
        packet_size: SIZE,
        ack_size: SIZE,
        from,
        to,
        start: Time::ZERO,
        stop: Time::from_secs_f64(1.0),
        supply: faircast_sim::ApplicationData::Packets(1),
    });
    simulated(&network)
}

/// Simulates a session whose members send no feedback.
fn multicast(topology: &Topology, source: NodeId, members: &[NodeId]) -> Option<BTreeSet<usize>> {
    let mut network = Network::of(topology.clone(), 1);
    let member =
        |node: &NodeId| ReceiverSpec { node: *node, join: Time::ZERO, leave: Time::NEVER, mute_after: None };
    let flow = network.session(SessionSpec {
        scheme: "ormcc,preset=published".parse().expect("a scheme"),
        packet_size: SIZE,
        report_size: SIZE,
        source,
        members: members.iter().map(member).collect(),
        start: Time::ZERO,
        stop: Time::NEVER,
        join_latency: Span::ZERO,
        leave_latency: Span::ZERO,
        alive: None,
    });
    network.send_only(flow, 1);
    simulated(&network)
}

/// Returns the links that a packet takes in the emulator.
fn emulated(plan: &EmulationPlan, source: usize, to: Ipv4Addr) -> Option<BTreeSet<usize>> {
    let mut net = Net::new(plan).expect("a sound plan");
    let mut packet = vec![0; usize::from(SIZE)];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&SIZE.to_be_bytes());
    packet[9] = 17;
    packet[16..20].copy_from_slice(&to.octets());
    net.enter(Time::ZERO, source, &packet).ok()?;
    while net.due(Time::NEVER).is_some() {}
    let links = plan.link_names().len();
    Some((0..links).filter(|number| net.link(*number).offered > 0).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn packets_take_the_same_links_as_in_the_simulator(topology in networks()) {
        let mut plan = EmulationPlan::from(topology.clone());
        let hosts: Vec<NodeId> = topology.hosts().collect();
        let addresses: Vec<Ipv4Addr> = plan.hosts().map(|(_, host)| host.address).collect();
        for (source, &from) in hosts.iter().enumerate() {
            let mut reached = Vec::new();
            for (number, &to) in hosts.iter().enumerate().filter(|(_, to)| **to != from) {
                let way = emulated(&plan, source, addresses[number]);
                prop_assert_eq!(&way, &datagram(&topology, from, to), "{:?} {:?}", from, to);
                if way.is_some() {
                    reached.push(to);
                }
            }
            for (node, (_, host)) in hosts.iter().zip(plan.hosts_mut()) {
                host.groups = if reached.contains(node) { Groups::All } else { Groups::None };
            }
            let tree = emulated(&plan, source, Ipv4Addr::new(239, 1, 2, 3));
            let expected = if reached.is_empty() { None } else { multicast(&topology, from, &reached) };
            prop_assert_eq!(tree, expected, "{:?} {:?}", from, reached);
        }
    }
}
