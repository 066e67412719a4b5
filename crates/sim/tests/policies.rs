//! The rate policy is exchangeable: every scheme with a policy parameter uses a bottleneck with each policy.

mod nets;

use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_sim::{Network, Options, SessionSpec};

/// Duration of a run, seconds. After a linear start, the policy iiad (inverse increase) raises the rate slowly.
const SECONDS: f64 = 300.0;

/// Returns the utilisation of a link of 2 Mbit/s and 40 ms by a session to two receivers behind the link, and the share of lost
/// packets.
fn used_and_lost(scheme: &str) -> (f64, f64) {
    let mut net = Network::new(5);
    let (source, router) = (net.node(), net.node());
    net.duplex(source, router, nets::link(2.0, 10, 40), nets::wide(100.0, 10));
    let members = (0..2).map(|_| {
        let leaf = net.node();
        net.duplex(router, leaf, nets::wide(100.0, 10), nets::wide(100.0, 10));
        nets::member(leaf)
    });
    let members = members.collect();
    let scheme: Scheme = scheme.parse().expect("a scheme and its policy");
    net.session(SessionSpec { scheme, ..nets::session(source, members) });
    let options = Options { until: Time::from_secs_f64(SECONDS), ..Options::default() };
    let outcome = net.run(&options).expect("a sound network");
    let member = &outcome.flows[0].members[0];
    let used = member.bytes as f64 * 8.0 / SECONDS / 2e6;
    (used, member.lost as f64 / (member.packets + member.lost) as f64)
}

#[test]
fn every_policy_fills_a_bottleneck_under_every_scheme() {
    for scheme in ["le-sbcc", "ormcc", "mca-plus"] {
        for policy in ["aimd", "sqrt", "iiad", "equation"] {
            let name = format!("{scheme},preset=published,policy={policy}");
            let (used, lost) = used_and_lost(&name);
            println!("{name:<40} uses {used:.2}, loses {lost:.4}");
            assert!(used > 0.5 && used < 1.0, "{name}: {used}");
            assert!(lost < 0.1, "{name}: {lost}");
        }
    }
}
