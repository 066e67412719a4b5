//! Congestion localization.

use super::*;

/// Vegas keeps one to three packets queued in front of a slow link, which delays packets by 10 to 30 ms here. Therefore a delay
/// above 8 ms is high. The preset's 100 ms is for links that other flows fill.
fn moving() -> Config {
    let published = Config::published();
    let local = Local { high: Span::from_millis(8), high_part: 0.0, ..published.local };
    Config { local, ..published }
}

/// Returns a source with two agents. One agent has four children, one of which is slow; the other agent has three children.
fn tree(config: Config, slow: f64) -> TestTree {
    let path = Path::mbps(8.0, 20, 40);
    let mut nodes = vec![(None, Path::mbps(20.0, 5, 100)); 2];
    nodes.extend((0..4).map(|child| (Some(0), if child == 0 { Path::mbps(slow, 20, 40) } else { path })));
    nodes.extend((0..3).map(|_| (Some(1), path)));
    TestTree::new(config, &nodes)
}

#[test]
fn local_group_of_a_congested_child_speeds_up_its_siblings() {
    let without = |slow, localize| {
        let mut grove = tree(Config { localize, store: 50_000, ..moving() }, slow);
        grove.run_until(60.0);
        (grove.received(8, 30.0, 50.0), grove.agent(0).parent().windows())
    };
    let (free, _) = without(8.0, Localize::Off);
    let (held, _) = without(0.8, Localize::Off);
    let (local, windows) = without(0.8, Localize::Either);
    println!("{free} packets without congestion, {held} with it, {local} with a local group: {windows:?}");
    assert!(held * 4 < free, "one slow child holds all: {held} {free}");
    assert!(windows.moves >= 1);
    assert!(local > held * 2, "{local} {held}");
}

/// The link recovers: the child returns to the session's group, and no packet is missing.
#[test]
fn recovered_child_returns_to_the_group_and_misses_no_packet() {
    let mut grove = tree(moving(), 0.8);
    grove.run_until(30.0);
    assert_eq!(grove.agent(0).parent().windows().moved, 1);
    grove.nodes[2].path = Path::mbps(8.0, 20, 40);
    let mut at = 30.0;
    while grove.agent(0).parent().windows().moved > 0 {
        at += 0.5;
        grove.run_until(at);
        assert!(at < 150.0, "it comes back: {:?}", grove.agent(0).parent().windows());
    }
    grove.limit = grove.sent + 500;
    grove.run_until(at + 120.0);
    let lacking: Vec<u64> = grove.nodes.iter().map(|node| grove.sent - node.got.len() as u64).collect();
    assert!(grove.is_complete(), "{lacking:?} of {}", grove.sent);
}

/// The store of the agent fills and drops packets, and the parent of the agent detects these losses.
#[test]
fn full_agent_store_makes_the_source_move_the_agent() {
    let config = Config { store: 64, ..moving() };
    let mut grove = tree(config, 0.4);
    grove.run_until(120.0);
    let agent = grove.agent(0);
    println!("{:?} refused {}", agent.parent().windows(), agent.refused());
    assert!(agent.parent().windows().moves >= 1);
    assert!(agent.refused() > 0, "its store is full");
    let source = grove.source.parent().windows();
    println!("{source:?}");
    assert!(source.moves >= 1, "the source moves the agent into a group of its own");
    let pace = grove.received(2, 60.0, 120.0) as f64 / 60.0;
    assert!(pace > 25.0, "the slow child gets what its link carries: {pace} of 50 a second");
}
