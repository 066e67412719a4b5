//! Relays: hosts that receive one session and are the source of another session for their children.

mod nets;
#[path = "../../core/tests/toy/relay.rs"]
mod toy;

use faircast_sim::{FlowId, Network, Options, SessionSpec, SimError};
use std::sync::Arc;
use toy::ToyRelay;

const REPORTING: [&str; 6] = ["ormcc", "le-sbcc", "pgmcc", "mca", "mca-plus", "tfmcc"];

/// Builds a source, `relays` relays, each behind a link of 4 Mbit/s, and three children behind each relay. One child of each
/// relay is behind a link of `worst` Mbit/s.
fn tree(scheme: &str, relays: usize, worst: f64) -> Network {
    let mut net = Network::new(11);
    let scheme = scheme.parse().expect("a scheme");
    let (source, top) = (net.node(), net.node());
    net.duplex(source, top, nets::wide(100.0, 1), nets::wide(100.0, 1));
    let hosts: Vec<_> = (0..relays).map(|_| net.node()).collect();
    for host in &hosts {
        net.duplex(top, *host, nets::link(4.0, 5, 30), nets::wide(100.0, 5));
    }
    let members = hosts.iter().map(|host| nets::member(*host)).collect();
    let above = net.session(SessionSpec { scheme, ..nets::session(source, members) });
    for (number, host) in hosts.iter().enumerate() {
        let mut children = Vec::new();
        for child in 0..3 {
            let leaf = net.node();
            let mbps = if number == 0 && child == 0 { worst } else { 3.0 };
            net.duplex(*host, leaf, nets::link(mbps, 20, 20), nets::wide(10.0, 20));
            children.push(nets::member(leaf));
        }
        let below = net.session(SessionSpec { scheme, ..nets::session(*host, children) });
        net.relay(above, number as u32, below, Arc::new(ToyRelay(scheme)));
    }
    net
}

/// A slow child slows only the group of its relay. The rate of the other group is the same as without the slow child.
#[test]
fn relays_isolate_a_slow_child_with_every_scheme() {
    for scheme in REPORTING {
        let outcome = nets::in_both_engines(&tree(scheme, 2, 0.5), 60.0);
        let received = |flow: usize, member: usize| outcome.flows[flow].members[member].packets;
        assert!(received(0, 0) > 500 && received(0, 1) > 500, "{scheme}: relays receive");
        assert!(
            outcome.flows[1].feedback > 5 && outcome.flows[2].feedback > 5,
            "{scheme}: children report to relays"
        );
        let (slow, fast) = (received(1, 0), received(2, 0));
        assert!(fast > 2 * slow && slow > 100, "{scheme}: {slow} and {fast}");
        // A relay never sends more packets to its children than it has received.
        for (number, flow) in outcome.flows[1..].iter().enumerate() {
            assert!(flow.sent <= received(0, number), "{scheme}: {} of {}", flow.sent, received(0, number));
        }
        // The children's reports reach only their parent.
        let reported: u64 = outcome.flows[0].members.iter().map(|member| member.reports).sum();
        assert!(outcome.flows[0].feedback <= reported, "{scheme}");
    }
}

#[test]
fn relay_is_refused_if_member_and_source_are_on_different_hosts() {
    let mut net = tree("ormcc", 2, 3.0);
    net.relay(FlowId(0), 1, FlowId(1), Arc::new(ToyRelay("ormcc".parse().expect("a scheme"))));
    let error = net.run(&Options::default()).expect_err("member 1 is another host");
    assert!(matches!(error, SimError::NoRelay { flow: 1, member: 1, .. }), "{error}");
}

#[test]
fn relay_with_a_clock_error_is_refused() {
    let mut net = tree("ormcc", 2, 3.0);
    net.clock_error(FlowId(1), 10.0).expect("not too much");
    let error = net.run(&Options::default()).expect_err("a relay hears its parent and sends by one clock");
    assert!(matches!(error, SimError::NoRelay { flow: 1, .. }), "{error}");
}
