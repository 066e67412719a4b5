//! Congestion localization.

use super::*;
use crate::node::Windows;

/// Vegas keeps one to three packets queued in front of a slow link, which delays packets by 10 to 30 ms here. Therefore a delay
/// above 8 ms is high. The preset's 100 ms is for links that other flows fill.
fn moving() -> Config {
    let published = Config::published();
    let local = Local { high: Span::from_millis(8), high_part: 0.0, ..published.local };
    Config { local, store: 512, ..published }
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

/// Returns the packets that a child of the second agent receives from 30 to 50 s, and the windows of the first agent. From 15 s on,
/// `slow` children of the first agent have a twentieth of the rate of all others.
fn with_slow_children(children: usize, slow: usize) -> (usize, Windows) {
    let path = Path::mbps(8.0, 20, 40);
    let mut nodes = vec![(None, Path::mbps(20.0, 5, 100)); 2];
    nodes.extend((0..children).map(|_| (Some(0), path)));
    nodes.extend((0..2).map(|_| (Some(1), path)));
    let mut grove = TestTree::new(Config::published(), &nodes);
    grove.run_until(15.0);
    for child in 0..slow {
        grove.nodes[2 + child].path = Path::mbps(0.4, 20, 40);
    }
    grove.run_until(50.0);
    (grove.received(2 + children, 30.0, 50.0), grove.agent(0).parent().windows())
}

/// Paper 001, 3.2: "When an SA determines that one or more of its children suffer from persistent congestion, it directs these
/// children to leave."
#[test]
fn only_child_and_all_children_move_if_they_are_congested() {
    let (free, windows) = with_slow_children(2, 0);
    assert_eq!(windows.moves, 0);
    for (children, slow) in [(1, 1), (2, 1), (2, 2), (3, 3)] {
        let (received, windows) = with_slow_children(children, slow);
        println!("{slow} of {children} slow: {received} of {free} packets elsewhere, {windows:?}");
        assert_eq!(windows.moved as usize, slow, "{children} children");
        assert!(received * 10 > free * 9, "{slow} of {children} slow: {received} of {free}");
    }
}

/// The rate of a session without receivers would have no limit.
#[test]
fn source_never_moves_all_of_its_children() {
    let path = Path::mbps(8.0, 20, 40);
    for agents in [1, 3] {
        let mut grove = TestTree::new(Config::published(), &vec![(None, path); agents]);
        grove.run_until(15.0);
        grove.nodes.iter_mut().for_each(|node| node.path = Path::mbps(0.4, 20, 40));
        let sent = grove.sent;
        grove.run_until(60.0);
        let carried = 45 * 50;
        assert!(grove.sent - sent < 2 * carried, "{} packets, {carried} of which fit", grove.sent - sent);
    }
}

/// Congestion on the path to an agent also delays the session's packets to its children behind it. It is the parent's to handle.
#[test]
fn congestion_before_an_agent_does_not_move_its_children() {
    let (slow, path) = (Path::mbps(0.4, 20, 40), Path::mbps(8.0, 20, 40));
    let nodes = [(None, slow), (None, path), (Some(0), slow), (Some(0), slow), (Some(1), path)];
    let mut grove = TestTree::new(Config::published(), &nodes);
    grove.run_until(60.0);
    assert_eq!(grove.agent(0).parent().windows().moves, 0);
}

/// A queue that is full before and after the move is not the minimum delay. The child stays in the local group until the queue is
/// short.
#[test]
fn minimum_delay_survives_a_move() {
    let mut grove = tree(moving(), 8.0);
    grove.run_until(20.0);
    // Other flows fill a queue of 60 ms and leave a tenth of the rate.
    grove.nodes[2].path = Path::mbps(0.8, 20 + 60, 40);
    grove.run_until(60.0);
    let windows = grove.agent(0).parent().windows();
    assert_eq!((windows.moved, windows.moves), (1, 1), "it stays: {windows:?}");
    grove.nodes[2].path = Path::mbps(8.0, 20, 40);
    grove.run_until(150.0);
    assert_eq!(grove.agent(0).parent().windows().moved, 0, "it returns");
}

/// Two children time out for packets of one burst. The one that misses more of them is charged, whatever their numbers.
#[test]
fn slow_start_is_charged_to_the_child_that_misses_the_most() {
    let path = Path::mbps(20.0, 10, 1000);
    let nodes = [(None, path), (Some(0), path), (Some(0), path)];
    let mut grove = TestTree::new(Config { localize: Localize::Off, ..Config::published() }, &nodes);
    grove.run_until(5.0);
    let next = grove.sent;
    grove.limit = next + 40;
    grove.nodes[1].loses.extend(next + 39..next + 40);
    grove.nodes[2].loses.extend(next + 20..next + 40);
    grove.run_until(30.0);
    let charged = |place: usize| {
        let child = &grove.agent(0).parent().children[place];
        child.slow_starts.within(Span::from_secs(30), grove.now)
    };
    assert!(charged(1) > charged(0), "{} and {}", charged(0), charged(1));
}

/// The retransmission window alone limits repairs (paper 001, 3.1): after a slow start the congestion window is one packet.
#[test]
fn congestion_window_does_not_limit_repairs() {
    let config = Config { localize: Localize::Off, ..Config::published() };
    let mut repairs = super::super::repairs::Repairs::new(&config);
    (0..8).for_each(|seq| repairs.ask(seq));
    let mut at = Time::ZERO;
    for round in 0..3 {
        let mut sent = Vec::new();
        while let Some(seq) = repairs.next(at) {
            repairs.on_sent(seq, Some(Span::from_millis(10)), at);
            sent.push(seq);
            at += Span::from_millis(5);
        }
        assert_eq!(sent.len(), [1, 2, 4][round], "the window doubles with each round");
        repairs.settle(|seq, _| !sent.contains(&seq), at);
    }
}
