//! RACCOOM in the simulator: aggregation by routers and by designated receivers, in both engines.

mod nets;

use faircast_core::schemes::raccoom::router as acknowledgements;
use faircast_core::time::Time;
use faircast_sim::{Change, LinkId, Network, NodeId, Outcome, ReceiverSpec, SessionSpec};
use std::sync::Arc;

/// Location of the aggregation of acknowledgements.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Routers,
    Designated,
    Nobody,
}

/// A tree with a source, a root, regions and receivers: `source - root - region - receivers`. The root and each region have an
/// attached host, which is also a member.
struct Tree {
    net: Network,
    routers: Vec<NodeId>,
    last_hops: Vec<LinkId>,
}

const REGIONS: usize = 3;
const RECEIVERS: usize = 8;

fn tree(by: By, scheme: &str, stay: impl Fn(usize) -> (f64, f64)) -> Tree {
    let mut net = Network::new(5);
    let (source, root) = (net.node(), net.node());
    net.duplex(source, root, nets::wide(10.0, 1), nets::wide(10.0, 1));
    let mut members = Vec::new();
    let mut parents: Vec<Option<u32>> = Vec::new();
    let (mut routers, mut last_hops) = (vec![root], Vec::new());
    let top = net.node();
    net.duplex(root, top, nets::wide(10.0, 1), nets::wide(10.0, 1));
    members.push(nets::member(top));
    parents.push(None);
    for region in 0..REGIONS {
        let (router, helper) = (net.node(), net.node());
        net.duplex(root, router, nets::wide(10.0, 3), nets::wide(10.0, 3));
        net.duplex(router, helper, nets::wide(10.0, 1), nets::wide(10.0, 1));
        routers.push(router);
        members.push(nets::member(helper));
        let place = members.len() as u32 - 1;
        parents.push(Some(0));
        for number in 0..RECEIVERS {
            let leaf = net.node();
            // The first receiver of the last region is behind the slowest link, and is the receiver farthest from the source.
            let slow = region == REGIONS - 1 && number == 0;
            let (mbps, millis) = if slow { (0.8, 40) } else { (4.0, 5 + number as u64) };
            let (there, _) = net.duplex(router, leaf, nets::link(mbps, millis, 20), nets::wide(4.0, millis));
            last_hops.push(there);
            let (join, leave) = stay(members.len());
            let leave = if leave.is_finite() { Time::from_secs_f64(leave) } else { Time::NEVER };
            members.push(ReceiverSpec { join: Time::from_secs_f64(join), leave, ..nets::member(leaf) });
            parents.push(Some(place));
        }
    }
    let scheme = scheme.parse().expect("a scheme");
    let spec = SessionSpec { scheme, packet_size: 500, ..nets::session(source, members) };
    let flow = net.session(spec);
    match by {
        By::Routers => routers.iter().for_each(|node| net.router(*node, Arc::new(acknowledgements::Config))),
        By::Designated => net.tree(flow, parents),
        By::Nobody => {}
    }
    Tree { net, routers, last_hops }
}

const SCHEME: &str = "raccoom,preset=published,law=steady,table=64";
const ALWAYS: fn(usize) -> (f64, f64) = |_| (0.0, f64::INFINITY);

/// Returns the rate of a member after the first `from` seconds, in bit/s.
fn rate(outcome: &Outcome, member: usize, from: usize) -> f64 {
    let bins = &outcome.flows[0].members[member].bins;
    bins[from..].iter().sum::<u64>() as f64 * 8.0 / (bins.len() - from) as f64
}

#[test]
fn source_gets_one_acknowledgement_per_packet() {
    let received = |by| {
        let outcome = nets::in_both_engines(&tree(by, SCHEME, ALWAYS).net, 20.0);
        let flow = &outcome.flows[0];
        let used = rate(&outcome, 1, 10) / 0.8e6;
        assert!((0.93..1.01).contains(&used), "the slowest receiver's link is used: {used}");
        let slowest = 2 + (REGIONS - 1) * (RECEIVERS + 1);
        assert_eq!(flow.representatives.last().map(|(_, who)| *who), Some(Some(slowest as u32)));
        // Without aggregation, near receivers answer first, and the source is briefly too fast.
        assert!(flow.cuts.len() <= if by == By::Nobody { 3 } else { 0 }, "{:?}", flow.cuts);
        (flow.feedback as f64, flow.sent as f64)
    };
    let (by_routers, sent) = received(By::Routers);
    let (by_designated, as_many) = received(By::Designated);
    let (by_nobody, _) = received(By::Nobody);
    assert!(by_routers <= sent && by_designated <= as_many, "{by_routers} and {by_designated} of {sent}");
    assert!((by_designated / by_routers - 1.0).abs() < 0.02, "{by_designated} and {by_routers}");
    assert!(by_nobody > 20.0 * sent, "{by_nobody}");
}

#[test]
fn losses_cut_the_rate_with_either_kind_of_aggregation() {
    for by in [By::Routers, By::Designated] {
        let Tree { mut net, last_hops, .. } = tree(by, SCHEME, ALWAYS);
        // The link of a near receiver has a very low rate for a short time.
        let slow = |mbps| Change::Rate(faircast_core::time::Rate::from_mbps(mbps));
        net.change(Time::from_secs_f64(10.0), last_hops[3], slow(0.05));
        net.change(Time::from_secs_f64(11.0), last_hops[3], slow(4.0));
        let outcome = nets::in_both_engines(&net, 20.0);
        let cuts = &outcome.flows[0].cuts;
        assert!((1..8).contains(&cuts.len()), "{cuts:?}");
        assert!(cuts.iter().all(|cut| (10.0..13.0).contains(&cut.as_secs_f64())), "{cuts:?}");
    }
}

#[test]
fn slow_receiver_lowers_the_rate_from_its_join_to_its_leave() {
    let slowest = 2 + (REGIONS - 1) * (RECEIVERS + 1);
    let stay = move |member: usize| if member == slowest { (8.0, 16.0) } else { (0.0, f64::INFINITY) };
    for by in [By::Routers, By::Designated] {
        let outcome = nets::in_both_engines(&tree(by, SCHEME, stay).net, 30.0);
        let bins = &outcome.flows[0].members[1].bins;
        let mean =
            |from: usize, to: usize| bins[from..to].iter().sum::<u64>() as f64 * 8.0 / (to - from) as f64;
        let (before, with, after) = (mean(4, 8), mean(12, 16), mean(24, 30));
        assert!(before > 3.0e6 && after > 3.0e6, "{before} and {after}");
        assert!((0.7e6..0.82e6).contains(&with), "{with}");
    }
}

#[test]
fn session_survives_router_restarts_and_link_failures() {
    let Tree { mut net, routers, last_hops, .. } = tree(By::Routers, SCHEME, ALWAYS);
    for (turn, router) in routers.iter().enumerate() {
        net.restart_router(Time::from_secs_f64(8.0 + turn as f64), *router);
        net.restart_router(Time::from_secs_f64(13.0), *router);
    }
    // The link to a receiver fails for a while. The router still stores the exit to this receiver, but the receiver sends no
    // reports.
    net.change(Time::from_secs_f64(20.0), last_hops[2], Change::Down);
    net.change(Time::from_secs_f64(28.0), last_hops[2], Change::Up);
    let outcome = nets::in_both_engines(&net, 45.0);
    let flow = &outcome.flows[0];
    let bins = &flow.members[1].bins;
    let mean = |from: usize, to: usize| bins[from..to].iter().sum::<u64>() as f64 * 8.0 / (to - from) as f64;
    assert!(mean(8, 16) > 0.7e6, "through the restarts: {}", mean(8, 16));
    assert!(mean(38, 45) > 0.7e6, "after the break: {}", mean(38, 45));
    assert!(flow.feedback <= flow.sent + 20, "{} of {}", flow.feedback, flow.sent);
}
