//! Malicious hosts within trees: children of an agent, receivers behind active routers, and active routers themselves.

use super::forged_reports::Lie;
use super::tree::branch;
use super::*;
use crate::relay::RouterKind;

const BYTES: u64 = 1_500_000;
const FLOOR: f64 = 0.5;
const LIES: [Lie; 6] = [Lie::Congested, Lie::Full, Lie::Fine, Lie::Stuck, Lie::Greedy, Lie::Endless];

fn lan() -> Link {
    Link::millis(2).mbps(8.0).fifo(60_000)
}

/// Returns the duration of a session at its rate floor, seconds.
fn at_the_floor() -> f64 {
    BYTES as f64 * 8.0 / (FLOOR * 1e6)
}

#[test]
fn rate_floor_holds_despite_forged_reports_to_an_agent() {
    for lie in LIES {
        let offer = Offer::bytes(BYTES).by("mtcp").at_least_mbps(FLOOR).at_most_mbps(6.0).expect(3);
        let mut grove = Net::of(71, offer);
        let agent = grove.agent(&[], 16, lan());
        let address = grove.agents[agent].address;
        grove.children(&[address], 2, lan());
        grove.children(&[], 1, lan());
        grove.children(&[address], 1, lan());
        grove.lies.0.insert(Who::Receiver(3), lie);
        grove.start();
        grove.run_until(secs(120), |grove| grove.receivers[..3].iter().all(|node| node.ended.is_some()));
        let honest = grove.now.as_secs_f64();
        grove.run_until(secs(200), |grove| grove.sources[0].session.is_none());
        let report = grove.sources[0].report();
        println!(
            "{lie:?}: honest at {honest:.1} s, over at {:.1} s, {} verified",
            grove.now.as_secs_f64(),
            report.verified
        );
        assert!(grove.receivers[..3].iter().all(|node| node.has(&grove.sources[0])), "{lie:?}");
        assert!(honest < 1.25 * at_the_floor() + 5.0, "{lie:?}: {honest:.1} s");
        assert!(report.verified >= 3, "{lie:?}: {report:?}");
    }
}

/// Builds two active routers with three receivers each.
fn two_routers(kind: RouterKind, expect: u32) -> Net {
    let offer = Offer::bytes(BYTES).by(kind.scheme()).at_least_mbps(FLOOR).at_most_mbps(6.0).expect(expect);
    let mut tree = Net::of(73, offer);
    for _ in 0..2 {
        let hop = tree.hop(Head::Source(0), kind, 1, lan());
        tree.behind(branch(hop, 0), 3, lan());
    }
    tree
}

fn honest_at(tree: &mut Net, honest: &[usize]) -> f64 {
    tree.run_until(secs(200), |tree| honest.iter().all(|at| tree.receivers[*at].ended.is_some()));
    assert!(honest.iter().all(|at| tree.receivers[*at].has(&tree.sources[0])), "something else");
    tree.now.as_secs_f64()
}

#[test]
fn rate_floor_holds_despite_forged_reports_to_a_router() {
    for kind in RouterKind::ALL {
        for lie in LIES {
            let mut tree = two_routers(kind, 5);
            tree.lies.0.insert(Who::Receiver(5), lie);
            tree.start();
            let honest = honest_at(&mut tree, &[0, 1, 2, 3, 4]);
            tree.run_until(secs(200), |tree| tree.sources[0].session.is_none());
            let report = tree.sources[0].report();
            println!("{kind}, {lie:?}: honest at {honest:.1} s, over at {:.1} s", tree.now.as_secs_f64());
            assert!(honest < 1.25 * at_the_floor() + 5.0, "{kind}, {lie:?}: {honest:.1} s");
            assert!(report.verified >= 5, "{kind}, {lie:?}: {report:?}");
        }
    }
}

#[test]
fn rate_floor_holds_despite_forged_reports_of_routers() {
    for kind in RouterKind::ALL {
        for lie in LIES {
            let mut tree = two_routers(kind, 3);
            tree.lies.0.insert(Who::Relay(1), lie);
            tree.start();
            let honest = honest_at(&mut tree, &[0, 1, 2]);
            tree.run_until(secs(200), |tree| tree.sources[0].session.is_none());
            let report = tree.sources[0].report();
            println!("{kind}, {lie:?}: others at {honest:.1} s, over at {:.1} s", tree.now.as_secs_f64());
            assert!(honest < 1.25 * at_the_floor() + 5.0, "{kind}, {lie:?}: {honest:.1} s");
            assert!(report.verified >= 3, "{kind}, {lie:?}: {report:?}");
        }
    }
}

/// The malicious router forwards only messages without content.
#[test]
fn rate_floor_holds_despite_routers_that_withhold_data() {
    for kind in RouterKind::ALL {
        let offer = Offer::bytes(BYTES).by(kind.scheme()).at_least_mbps(FLOOR).at_most_mbps(6.0).expect(3);
        let mut tree = Net::of(79, offer);
        let good = tree.hop(Head::Source(0), kind, 1, lan());
        let bad = tree.hop(Head::Source(0), kind, 1, lan());
        tree.behind(branch(good, 0), 3, lan());
        tree.behind(branch(bad, 0), 2, lan().dropping_above(1_000));
        tree.start();
        let honest = honest_at(&mut tree, &[0, 1, 2]);
        tree.run_until(secs(200), |tree| tree.sources[0].session.is_none());
        let report = tree.sources[0].report();
        println!("{kind}: others at {honest:.1} s, over at {:.1} s", tree.now.as_secs_f64());
        assert!(honest < 1.25 * at_the_floor() + 5.0, "{kind}: {honest:.1} s");
        assert!(report.verified >= 3, "{kind}: {report:?}");
    }
}
