//! RMANP in the simulator, with active routers at all, some or no nodes, in both engines. The tests cover losses, exclusion and
//! restarts.

mod nets;

use faircast_aqm::{LinkSpec, LossSpec};
use faircast_core::node::RouterSpec;
use faircast_core::routers::aggregation;
use faircast_core::schemes::raccoom::router as acknowledgements;
use faircast_core::schemes::rmanp::router as rmanp;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{Change, FlowId, LinkId, Network, NodeId, Outcome, SessionSpec};
use std::sync::Arc;

/// A tree with a source, a root, regions and receivers: `source - root - region - receivers`.
struct Tree {
    net: Network,
    flow: FlowId,
    nodes: Vec<NodeId>,
    trunks: Vec<LinkId>,
    last_hops: Vec<LinkId>,
}

const REGIONS: usize = 2;
const RECEIVERS: usize = 4;
const SCHEME: &str = "rmanp,preset=published,rtt=0.1,is=0.1";

/// Builds a tree in which each link loses the share `loss` of packets in both directions.
fn tree(scheme: &str, loss: f64) -> Tree {
    let mut net = Network::new(5);
    let lossy = |spec: LinkSpec| LinkSpec {
        loss: (loss > 0.0).then(|| format!("bernoulli,{loss}").parse::<LossSpec>().expect("a loss")),
        ..spec
    };
    let (source, root) = (net.node(), net.node());
    let (first, _) = net.duplex(source, root, lossy(nets::wide(1.0, 2)), lossy(nets::wide(1.0, 2)));
    let (mut nodes, mut trunks, mut last_hops, mut members) =
        (vec![root], vec![first], Vec::new(), Vec::new());
    for _ in 0..REGIONS {
        let region = net.node();
        let (there, _) = net.duplex(root, region, lossy(nets::link(0.5, 15, 10)), lossy(nets::wide(1.0, 15)));
        nodes.push(region);
        trunks.push(there);
        for number in 0..RECEIVERS {
            let leaf = net.node();
            let near = nets::wide(1.0, 2 + number as u64);
            let (there, _) = net.duplex(region, leaf, lossy(near), lossy(near));
            last_hops.push(there);
            members.push(nets::member(leaf));
        }
    }
    let scheme = scheme.parse().expect("a scheme");
    let flow = net.session(SessionSpec { scheme, packet_size: 1057, ..nets::session(source, members) });
    net.time_deliveries(flow);
    Tree { net, flow, nodes, trunks, last_hops }
}

fn with(tree: Tree, active: &[usize]) -> Tree {
    with_routers(tree, active, rmanp::Config::default())
}

fn with_routers(mut tree: Tree, active: &[usize], config: rmanp::Config) -> Tree {
    for which in active {
        tree.net.router(tree.nodes[*which], Arc::new(config));
    }
    tree
}

/// Returns the bytes that a member received per second in this interval.
fn rate(outcome: &Outcome, member: usize, from: usize, to: usize) -> f64 {
    let bins = &outcome.flows[0].members[member].bins;
    bins[from..to].iter().sum::<u64>() as f64 / (to - from) as f64
}

#[test]
fn receivers_get_every_packet_with_active_routers_at_any_nodes() {
    for active in [&[0, 1, 2][..], &[1, 2], &[0], &[1], &[]] {
        // These random losses keep the rate at the minimum, so the exclusion of receivers is off.
        let config = rmanp::Config { exclude: 0, ..rmanp::Config::default() };
        let mut tree = with_routers(tree(&format!("{SCHEME},begin=start,exclude=0"), 0.05), active, config);
        tree.net.send_only(tree.flow, 300);
        let outcome = nets::in_both_engines(&tree.net, 400.0);
        let flow = &outcome.flows[0];
        let got: Vec<u64> = flow.members.iter().map(|member| member.delay.packets).collect();
        assert_eq!(got, [300; REGIONS * RECEIVERS], "with {active:?}: {} sent", flow.sent);
        let lost: u64 = flow.members.iter().map(|member| member.lost).sum();
        assert!(lost > 50, "{lost}");
        let repairs: u64 = outcome.routers.iter().map(|router| router.seen.repairs).sum();
        assert_eq!(repairs > 20, !active.is_empty(), "{repairs}");
        if active.len() == 3 {
            let again = flow.counts.last().expect("of the whole run").again;
            assert!(again < 60, "the source repairs what was lost before the first router alone: {again}");
        }
    }
}

#[test]
fn active_routers_merge_acknowledgements_and_repair_losses() {
    let outcome = nets::in_both_engines(&with(tree(SCHEME, 0.0), &[0, 1, 2]).net, 120.0);
    let flow = &outcome.flows[0];
    assert!(flow.feedback < flow.sent + flow.sent / 10, "{} of {}", flow.feedback, flow.sent);
    let used = rate(&outcome, 0, 60, 120) / 62_500.0;
    assert!((0.6..1.0).contains(&used), "the trunks of 0.5 Mbit/s are used: {used}");
    assert!(flow.cuts.len() > 2, "{:?}", flow.cuts);
    let alone = nets::in_both_engines(&tree(SCHEME, 0.0).net, 120.0);
    assert!(alone.flows[0].feedback > 6 * flow.feedback, "{}", alone.flows[0].feedback);
    let used = rate(&alone, 0, 60, 120) / 62_500.0;
    assert!((0.5..1.0).contains(&used), "and without any active router: {used}");
}

#[test]
fn receiver_below_the_minimum_rate_is_excluded() {
    for active in [&[0, 1, 2][..], &[]] {
        let mut tree = with(tree(SCHEME, 0.0), active);
        // A receiver's link has half of the minimum rate, and a short queue.
        let slow = tree.last_hops[2];
        tree.net.set_queue(slow, "droptail,3".parse().expect("a queue"));
        tree.net.change(Time::from_secs_f64(20.0), slow, Change::Rate(Rate::from_bps(8_000.0)));
        let outcome = nets::in_both_engines(&tree.net, 240.0);
        let members = &outcome.flows[0].members;
        let excluded: Vec<usize> =
            (0..members.len()).filter(|member| members[*member].excluded.is_some()).collect();
        assert_eq!(excluded, [2], "with {active:?}");
        let counted: u64 = outcome.routers.iter().map(|router| router.seen.exclusions).sum();
        assert_eq!(counted, u64::from(!active.is_empty()));
        assert!(rate(&outcome, 0, 180, 240) > 20_000.0, "{active:?}: {}", rate(&outcome, 0, 180, 240));
    }
}

/// Paper 003, 2: "receivers that cannot reach Rm are excluded from the session", also behind a link between two active routers.
#[test]
fn receivers_behind_a_trunk_below_the_minimum_are_excluded() {
    // The rate falls by a fifth for each congestion event. The slower the trunk, the longer an event lasts.
    for (rate, end) in [(12_000.0, 800), (8_000.0, 800), (4_000.0, 1200)] {
        for active in [&[0, 1, 2][..], &[0]] {
            let mut tree = with(tree(SCHEME, 0.0), active);
            let slow = tree.trunks[1];
            tree.net.set_queue(slow, "droptail,3".parse().expect("a queue"));
            tree.net.change(Time::from_secs_f64(20.0), slow, Change::Rate(Rate::from_bps(rate)));
            let outcome = nets::in_both_engines(&tree.net, end as f64);
            let members = &outcome.flows[0].members;
            let excluded: Vec<bool> = members.iter().map(|member| member.excluded.is_some()).collect();
            assert_eq!(
                excluded,
                [[true; RECEIVERS], [false; RECEIVERS]].concat(),
                "{rate} bit/s with {active:?}"
            );
            let after = self::rate(&outcome, RECEIVERS, end - 60, end);
            assert!(after > 20_000.0, "{rate} bit/s with {active:?}: {after}");
        }
    }
}

#[test]
fn session_survives_router_restarts_and_link_failures() {
    let mut tree = with(tree(&format!("{SCHEME},begin=start"), 0.0), &[0, 1, 2]);
    for (turn, node) in tree.nodes.iter().enumerate() {
        tree.net.restart_router(Time::from_secs_f64(40.0 + 5.0 * turn as f64), *node);
        tree.net.restart_router(Time::from_secs_f64(60.0), *node);
    }
    tree.net.change(Time::from_secs_f64(80.0), tree.trunks[1], Change::Down);
    tree.net.change(Time::from_secs_f64(86.0), tree.trunks[1], Change::Up);
    let outcome = nets::in_both_engines(&tree.net, 160.0);
    assert!(rate(&outcome, 0, 60, 80) > 5_000.0, "through the restarts: {}", rate(&outcome, 0, 60, 80));
    assert!(rate(&outcome, 7, 120, 160) > 15_000.0, "after the break: {}", rate(&outcome, 7, 120, 160));
    assert!(rate(&outcome, 0, 120, 160) > 15_000.0, "behind it: {}", rate(&outcome, 0, 120, 160));
}

#[test]
fn session_through_routers_of_several_schemes_loses_no_packet() {
    let all: [(&str, Arc<dyn RouterSpec>); 3] = [
        ("rmanp", Arc::new(rmanp::Config::default())),
        ("acknowledgements", Arc::new(acknowledgements::Config)),
        ("losses", Arc::new(aggregation::Config { hold: Span::from_millis(100) })),
    ];
    for scheme in [&format!("{SCHEME},begin=start"), "raccoom,preset=published,law=steady"] {
        for (root, above) in &all {
            for (regions, below) in &all {
                let mut tree = tree(scheme, 0.0);
                tree.net.router(tree.nodes[0], Arc::clone(above));
                tree.nodes[1..].iter().for_each(|node| tree.net.router(*node, Arc::clone(below)));
                tree.net.send_only(tree.flow, 200);
                let outcome = nets::in_both_engines(&tree.net, 120.0);
                let flow = &outcome.flows[0];
                let got = flow.members.iter().map(|member| member.delay.packets).min();
                let least = if scheme.starts_with("rmanp") { 200 } else { 180 };
                assert!(got >= Some(least), "{scheme} by {root} and {regions}: {got:?}");
                assert!(flow.feedback > 20, "{scheme} by {root} and {regions}: {}", flow.feedback);
            }
        }
    }
}

#[test]
fn active_router_is_transparent_to_other_schemes() {
    for entry in faircast_core::schemes::CATALOGUE {
        let plain = nets::in_both_engines(&tree(entry.name, 0.01).net, 20.0);
        let routed = nets::in_both_engines(&with(tree(entry.name, 0.01), &[0, 1, 2]).net, 20.0);
        let packets = |outcome: &Outcome| outcome.flows[0].members.iter().map(|it| it.packets).min();
        assert!(packets(&routed) > Some(20), "{}: {:?}", entry.name, packets(&routed));
        if entry.name != "rmanp" {
            assert_eq!(plain.digest, routed.digest, "{}", entry.name);
            assert!(routed.routers.iter().all(|router| router.seen == Default::default()), "{}", entry.name);
        }
    }
}
