//! Loss of reports on the path to a parent. Reports are not acknowledged, so a parent queries the children whose reports it
//! misses.

use super::windows::without_moves;
use super::*;

/// Two agents in a row and two leaves, on paths without data loss.
fn tree() -> TestTree {
    let nodes = [
        (None, Path::mbps(4.0, 15, 100)),
        (Some(0), Path::mbps(4.0, 20, 100)),
        (Some(1), Path::mbps(4.0, 40, 100)),
        (Some(1), Path::mbps(4.0, 40, 100)),
    ];
    TestTree::new(without_moves(), &nodes)
}

#[test]
fn source_continues_sending_if_half_of_all_reports_are_lost() {
    for seed in 1..=30 {
        let mut grove = tree();
        grove.reseed(seed);
        grove.nodes.iter_mut().for_each(|node| node.report_loss = 0.5);
        grove.run_until(60.0);
        let before = grove.sent;
        grove.run_until(120.0);
        assert!(grove.sent > before, "seed {seed}: nothing leaves after packet {before}");
    }
}

#[test]
fn first_packet_is_repeated_until_expected_children_report() {
    let path = Path::mbps(4.0, 20, 100);
    let mut grove = TestTree::new(without_moves(), &[(None, path), (None, path)]);
    grove.nodes[1].loses.insert(0);
    grove.run_until(15.0);
    assert!(grove.sent > 50, "{} packets left", grove.sent);
    assert!(grove.nodes.iter().all(|node| node.got.contains(&0)), "and everybody has it");
}

#[test]
fn lost_acknowledgement_of_the_last_packet_causes_no_slow_start() {
    let mut grove = tree();
    grove.run_until(20.0);
    grove.limit = grove.sent;
    grove.run_until(22.0);
    let slow_starts = |grove: &TestTree| {
        let agents = (0..2).map(|node| grove.agent(node).parent().windows().slow_starts).sum::<u64>();
        agents + grove.source.parent().windows().slow_starts
    };
    let before = slow_starts(&grove);
    // The answer to the query arrives when the acknowledgement is already late, but before the timeout.
    grove.limit += 1;
    grove.nodes[2].report_loss = 1.0;
    grove.run_until(22.25);
    grove.nodes[2].report_loss = 0.0;
    grove.run_until(30.0);
    assert!(grove.is_complete());
    assert_eq!(slow_starts(&grove), before);
    // Without an answer the timeout takes effect.
    grove.limit += 1;
    grove.nodes[2].report_loss = 1.0;
    grove.run_until(35.0);
    assert!(slow_starts(&grove) > before);
}
