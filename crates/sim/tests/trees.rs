//! Trees of members: reports to parents, repairs and orders by parents, changes of groups, and agents that leave and return.

mod nets;

use faircast_aqm::{LinkSpec, LossSpec};
use faircast_core::time::{Rate, Time};
use faircast_sim::{
    Change, FlowId, LinkId, Mode, Network, Options, Outcome, ReceiverSpec, SessionSpec, SimError,
};

struct Tree {
    net: Network,
    flow: FlowId,
    /// Links to the leaves.
    leaves: Vec<LinkId>,
}

/// Builds a source, `agents` agents behind 20 Mbit/s, and for each agent `each` leaves behind 8 Mbit/s.
fn tree(scheme: &str, agents: u32, each: u32, seed: u64) -> Tree {
    tree_until(scheme, (agents, each), &[], None, seed)
}

/// Builds the same tree, but the first agents leave after the times `until` (seconds), and links to leaves lose the share `loss`
/// of all packets.
fn tree_until(scheme: &str, (agents, each): (u32, u32), until: &[f64], loss: Option<f64>, seed: u64) -> Tree {
    let mut net = Network::new(seed);
    let (source, hub) = (net.node(), net.node());
    net.duplex(source, hub, nets::wide(100.0, 1), nets::wide(100.0, 1));
    let (mut members, mut parents, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
    let routers: Vec<_> = (0..agents).map(|_| net.node()).collect();
    for router in &routers {
        net.duplex(hub, *router, nets::link(20.0, 5, 60), nets::wide(100.0, 5));
        let host = net.node();
        net.duplex(*router, host, nets::wide(100.0, 1), nets::wide(100.0, 1));
        let leave = until.get(members.len()).map_or(Time::NEVER, |until| Time::from_secs_f64(*until));
        members.push(ReceiverSpec { leave, ..nets::member(host) });
        parents.push(None);
    }
    for (agent, router) in (0..).zip(&routers) {
        for _ in 0..each {
            let leaf = net.node();
            let to_leaf = LinkSpec { loss: loss.map(LossSpec::Bernoulli), ..nets::link(8.0, 10, 30) };
            let (there, _) = net.duplex(*router, leaf, to_leaf, nets::wide(10.0, 10));
            leaves.push(there);
            members.push(nets::member(leaf));
            parents.push(Some(agent));
        }
    }
    let scheme = scheme.parse().expect("a scheme");
    let flow = net.session(SessionSpec { scheme, ..nets::session(source, members) });
    net.tree(flow, parents);
    Tree { net, flow, leaves }
}

fn options(seconds: f64, mode: Mode) -> Options {
    Options { until: Time::from_secs_f64(seconds), mode, ..Options::default() }
}

fn run(tree: &Tree, seconds: f64) -> Outcome {
    let eager = tree.net.run(&options(seconds, Mode::Eager)).expect("it runs");
    let evented = tree.net.run(&options(seconds, Mode::Evented)).expect("it runs");
    assert_eq!(eager.digest, evented.digest, "both modes do the same");
    assert_eq!(eager.flows, evented.flows);
    eager
}

const PUBLISHED: &str = "mtcp,preset=published";

#[test]
fn tree_fills_its_slowest_link_and_receivers_have_equal_rates() {
    let tree = tree(PUBLISHED, 3, 4, 1);
    let outcome = run(&tree, 40.0);
    let flow = &outcome.flows[tree.flow.0 as usize];
    for member in &flow.members {
        let rate = member.bytes as f64 * 8.0 / 40.0;
        assert!((5.5e6..8.0e6).contains(&rate), "{rate}");
        assert!(flow.sent - member.packets < 200, "{} of {}", member.packets, flow.sent);
    }
    let tree = flow.tree.as_ref().expect("it has one");
    println!(
        "{} sent, {} repairs, {} duplicates, {} to the source, {} to agents",
        flow.sent, tree.repairs, tree.duplicates, flow.feedback, tree.reports
    );
    assert!(flow.feedback < 3 * 2 * flow.sent, "the source hears its children alone");
    assert!(tree.reports > flow.feedback, "agents hear more");
}

#[test]
fn reports_of_a_flat_session_go_to_the_source() {
    let mut net = Network::new(3);
    let (source, hub) = (net.node(), net.node());
    net.duplex(source, hub, nets::link(4.0, 10, 30), nets::wide(100.0, 10));
    let leaves: Vec<_> = (0..5).map(|_| net.node()).collect();
    for leaf in &leaves {
        net.duplex(hub, *leaf, nets::wide(50.0, 5), nets::wide(50.0, 5));
    }
    let members = leaves.iter().map(|leaf| nets::member(*leaf)).collect();
    let scheme = PUBLISHED.parse().expect("a scheme");
    let flow = net.session(SessionSpec { scheme, ..nets::session(source, members) });
    let outcome = net.run(&options(30.0, Mode::Eager)).expect("it runs");
    let flow = &outcome.flows[flow.0 as usize];
    let rate = flow.members[0].bytes as f64 * 8.0 / 30.0;
    assert!((3.0e6..4.0e6).contains(&rate), "{rate}");
    assert_eq!(flow.tree.as_ref().map(|tree| tree.reports), Some(0));
}

/// The rate of one leaf's link drops to a tenth. The leaf then receives the packets of its agent instead of those of the source,
/// and the leaf's link carries no other packets of the session.
#[test]
fn congested_leaf_moves_to_its_agent_and_returns() {
    let mut tree = tree("mtcp,preset=published,local-high=30ms,local-part=0,store=20000", 3, 4, 1);
    let (at, back) = (Time::from_secs_f64(15.0), Time::from_secs_f64(30.0));
    tree.net.change(at, tree.leaves[0], Change::Rate(Rate::from_mbps(0.8)));
    // The new rate exceeds the original rate, because the leaf must catch up while the session continues to send.
    tree.net.change(back, tree.leaves[0], Change::Rate(Rate::from_mbps(16.0)));
    let outcome = run(&tree, 90.0);
    let flow = &outcome.flows[tree.flow.0 as usize];
    let of_tree = flow.tree.as_ref().expect("it has one");
    println!("{:?} {} sent", of_tree.changes, flow.sent);
    assert!(of_tree.changes.iter().any(|(_, member, group)| (*member, *group) == (3, 1)), "it moves");
    assert_eq!(of_tree.changes.last().map(|(_, _, group)| *group), Some(0), "and comes back");
    let bytes =
        |member: usize, from: usize, to: usize| flow.members[member].bins[from..to].iter().sum::<u64>();
    let (before, during) = (bytes(8, 5, 15) as f64, bytes(8, 20, 30) as f64);
    assert!(during > 0.9 * before, "others get on: {before} {during}");
    let slow = bytes(3, 20, 30) as f64;
    assert!(slow < 0.13 * during, "{slow}");
    assert!(flow.sent - flow.members[3].packets < 300, "{} of {}", flow.members[3].packets, flow.sent);
}

/// Children of an agent that leaves move to its parent, and return to the agent when it returns. At the end, no receiver except
/// the agent misses any packet.
#[test]
fn children_miss_no_packet_while_their_agent_is_absent() {
    for (seed, loss) in [(1, None), (2, None), (3, Some(0.01)), (4, Some(0.03)), (5, Some(0.03))] {
        let mut tree = tree_until("mtcp,preset=published,localize=off", (3, 4), &[10.0], loss, seed);
        tree.net.come_back(tree.flow, 0, Time::from_secs_f64(15.0), Time::NEVER);
        // With this number of packets, the last ones are sent after the agent has returned.
        let packets = match loss {
            None => 20_000,
            Some(few) if few < 0.02 => 2_000,
            Some(_) => 600,
        };
        tree.net.send_only(tree.flow, packets);
        let outcome = run(&tree, 60.0);
        let flow = &outcome.flows[tree.flow.0 as usize];
        let of_tree = flow.tree.as_ref().expect("it has one");
        println!("{seed}: {} repairs, {} duplicates, {:?}", of_tree.repairs, of_tree.duplicates, loss);
        assert_eq!(flow.sent, packets);
        assert!(flow.members[0].packets < packets, "it was away");
        let lacking: Vec<u64> = flow.members[1..].iter().map(|member| packets - member.packets).collect();
        assert!(lacking.iter().all(|lacking| *lacking == 0), "seed {seed}: {lacking:?}");
    }
}

/// An agent leaves. The agent to which its children moved leaves as well, and returns later. The children always have a parent.
#[test]
fn children_of_failed_agents_move_to_live_ancestors() {
    for seed in 1..=3 {
        let scheme = "mtcp,preset=published,localize=off";
        let mut tree = tree_until(scheme, (3, 2), &[8.0, 4.0], Some(0.02), seed);
        let parents = [None, Some(0), None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2)];
        tree.net.tree(tree.flow, parents.into());
        tree.net.come_back(tree.flow, 1, Time::from_secs_f64(12.0), Time::NEVER);
        tree.net.send_only(tree.flow, 2_000);
        let outcome = run(&tree, 60.0);
        let flow = &outcome.flows[tree.flow.0 as usize];
        let lacking: Vec<u64> = flow.members[2..].iter().map(|member| 2_000 - member.packets).collect();
        assert_eq!((flow.sent, lacking), (2_000, vec![0; 7]), "seed {seed}");
    }
}

#[test]
fn tree_with_a_cycle_or_without_agents_is_refused() {
    let mut circle = tree(PUBLISHED, 2, 1, 1);
    circle.net.tree(circle.flow, vec![Some(1), Some(0), None, None]);
    let error = circle.net.run(&options(1.0, Mode::Eager)).expect_err("it is a circle");
    assert!(matches!(error, SimError::BadTree { .. }), "{error}");
    let error = tree("ormcc", 2, 1, 1).net.run(&options(1.0, Mode::Eager)).expect_err("it has no agents");
    assert!(matches!(error, SimError::NoAgents { .. }), "{error}");
}

/// Networks with competing TCP and datagrams, lossy and changing links, and receivers that leave and return.
#[test]
fn both_engines_agree_on_random_networks_with_flat_trees() {
    for seed in 1..16 {
        nets::in_both_engines(&nets::random_mtcp(seed), 20.0);
    }
}
