//! Windows, summaries and the sending rule.

use super::*;
use crate::node::{Departure, Receiver as _, Relay as _, Source as _};
use crate::packet::{Arrival, Mark};

pub(super) fn without_moves() -> Config {
    Config { localize: Localize::Off, ..Config::published() }
}

/// A chain of two agents and a leaf as in figure 3 of the paper. The leaf has the lowest rate.
fn chain(config: Config, offsets: &[Span]) -> TestTree {
    let nodes = [
        (None, Path::mbps(4.0, 15, 30)),
        (Some(0), Path::mbps(4.0, 20, 30)),
        (Some(1), Path::mbps(1.0, 40, 30)),
    ];
    TestTree::with_clocks(config, &nodes, offsets)
}

#[test]
fn a_chain_fills_its_slowest_link_without_a_loss() {
    let mut grove = chain(without_moves(), &[]);
    grove.run_until(60.0);
    let packets = grove.received(2, 20.0, 60.0);
    assert!((4_600..=5_000).contains(&packets), "125 packets a second fit: {packets} in 40 s");
    println!("{packets} packets, {} lost, {:?}", grove.nodes[2].lost, grove.agent(1).parent().windows());
    for node in &grove.nodes {
        assert!(grove.sent - node.got.len() as u64 <= 64, "all but what is under way: {}", node.got.len());
    }
}

/// Only relative delays have an effect.
#[test]
fn clock_offsets_do_not_change_any_window() {
    let mut exact = chain(without_moves(), &[]);
    exact.run_until(30.0);
    for offset in [1, 1000] {
        let mut off = chain(without_moves(), &[Span::from_secs(offset), Span::ZERO, Span::from_secs(7)]);
        off.run_until(30.0);
        assert_eq!(off.sent, exact.sent, "a clock is ahead by {offset} s");
        let same = off.trace.iter().zip(&exact.trace).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-3);
        assert!(same, "the windows are those of exact clocks");
    }
}

/// A summary contains the smallest window downstream. With each report, this window moves up one level of the tree.
#[test]
fn smallest_window_of_a_tree_is_reported_to_the_source() {
    let mut grove = chain(without_moves(), &[]);
    grove.run_until(20.0);
    let (top, low) = (grove.agent(0).parent().windows(), grove.agent(1).parent().windows());
    let source = grove.source.windows().expect("it has some");
    assert!(top.least <= top.own && top.least <= low.own * 1.3, "{top:?} {low:?}");
    assert!(source.least <= source.own && (source.least / low.own - 1.0).abs() < 0.5, "{source:?} {low:?}");
}

/// This limit applies at every time of a run.
#[test]
fn new_packets_never_exceed_the_smallest_window() {
    let mut grove = chain(without_moves(), &[]);
    for tick in 1..2000 {
        grove.run_until(f64::from(tick) * 0.01);
        let parent = grove.source.parent();
        parent.children.iter().for_each(super::super::child::Child::check);
    }
    // A window may become smaller than the number of packets in flight, so the limit is checked only when a packet is sent.
    let mut grove = chain(without_moves(), &[]);
    let mut sent = 0;
    for tick in 1..20_000 {
        grove.run_until(f64::from(tick) * 0.001);
        if grove.sent > sent {
            sent = grove.sent;
            let parent = grove.source.parent();
            let out = parent.transit() as f64;
            assert!(
                out <= parent.session_window + 1.0,
                "{out} of {} at {}",
                parent.session_window,
                grove.now
            );
        }
    }
}

/// Sixteen children lose the same packet.
#[test]
fn loss_at_many_children_causes_one_cut_per_round() {
    let nodes: Vec<_> = (0..16).map(|_| (None, Path::mbps(50.0, 10, 1000))).collect();
    let mut grove = TestTree::new(without_moves(), &nodes);
    grove.nodes.iter_mut().for_each(|node| node.loses.extend([100, 101, 103]));
    grove.limit = 130;
    grove.run_until(20.0);
    assert_eq!(grove.source.parent().window().cuts, 1);
    assert!(grove.is_complete(), "and all is repaired");
    let again: usize = grove.nodes[3].arrivals.iter().filter(|(_, _, again)| *again).count();
    assert_eq!(again, 3, "by one multicast of each");
}

/// A timeout occurs three levels below the source.
#[test]
fn timeout_of_a_leaf_closes_the_source_window_within_250_ms() {
    let mut grove = chain(without_moves(), &[]);
    grove.run_until(20.0);
    let before = grove.agent(1).parent().windows().slow_starts;
    let next = grove.sent;
    grove.nodes[2].loses.extend(next..next + 400);
    grove.nodes[2].path.buffer = 0; // nothing gets through, repairs neither
    let mut at = 20.0;
    while grove.agent(1).parent().windows().slow_starts == before {
        at += 0.005;
        grove.run_until(at);
        assert!(at < 30.0, "the leaf's parent notices");
    }
    let noticed = at;
    while grove.source.windows().expect("it has some").least > 2.0 {
        at += 0.005;
        grove.run_until(at);
        assert!(at < 30.0, "the source hears");
    }
    assert!(at - noticed <= 0.25 + 0.06, "after {:.3} s", at - noticed);
    grove.nodes[2].path.buffer = 30;
    grove.nodes[2].loses.clear();
    grove.limit = grove.sent + 50;
    grove.run_until(at + 120.0);
    assert!(grove.is_complete(), "and all comes in the end");
}

/// Otherwise a near agent would change its window many times within one round of the tree.
#[test]
fn agent_near_the_source_judges_queues_once_per_tree_round() {
    let mean = |rounds| {
        // Two children behind equal bottlenecks: one is a child of an agent next to the source, the other is a distant child of
        // the source.
        let nodes = [
            (None, Path::mbps(100.0, 1, 1000)),
            (Some(0), Path::mbps(2.0, 1, 60)),
            (None, Path::mbps(2.0, 150, 60)),
        ];
        let narrow = Config { alpha: 1.0, beta: 3.0, gamma: 1.0, decrease: 0.5, ..without_moves() };
        let mut grove = TestTree::new(Config { rounds, ..narrow }, &nodes);
        let (mut sum, mut ticks) = (0.0, 0);
        for tick in 200..600 {
            grove.run_until(f64::from(tick) * 0.1);
            sum += grove.agent(0).parent().windows().own;
            ticks += 1;
        }
        (sum / f64::from(ticks), grove.received(2, 20.0, 60.0))
    };
    let ((tree, carried), (own, less)) = (mean(Rounds::Tree), mean(Rounds::Own));
    println!("window {tree:.1} and {own:.1}, packets {carried} and {less}");
    assert!(own < 0.85 * tree, "{own} {tree}");
    assert!(carried > less, "{carried} {less}");
}

#[test]
fn source_without_receivers_sends_one_packet_per_second() {
    let mut grove = TestTree::new(without_moves(), &[]);
    grove.run_until(30.5);
    assert!((30..=32).contains(&grove.sent), "{}", grove.sent);
}

#[test]
fn window_over_own_children_overloads_distant_bottlenecks() {
    let lost = |mode| {
        let nodes = [(None, Path::mbps(100.0, 1, 1000)), (Some(0), Path::mbps(1.0, 100, 15))];
        let mut grove = TestTree::new(Config { mode, pacing: None, ..without_moves() }, &nodes);
        grove.run_until(60.0);
        grove.nodes[1].lost as f64 / grove.sent as f64
    };
    let (transit, own) = (lost(Mode::Transit), lost(Mode::Own));
    println!("lost: {transit:.4} with transit windows, {own:.4} without");
    assert!(own > 2.0 * transit + 0.005, "{transit} {own}");
}

#[test]
fn single_losses_cause_no_cut_if_the_loss_filter_is_on() {
    let cuts = |loss_filter| {
        let mut grove =
            TestTree::new(Config { loss_filter, ..without_moves() }, &[(None, Path::mbps(50.0, 10, 1000))]);
        grove.nodes[0].loses.extend([200, 1000, 2000]);
        grove.limit = 3000;
        grove.run_until(60.0);
        assert!(grove.is_complete());
        grove.source.parent().window().cuts
    };
    assert_eq!((cuts(LossFilter::Off), cuts(LossFilter::On)), (3, 0));
}

/// A leaf and a parent, without a network between them.
#[test]
fn a_source_waits_for_all_expected_children() {
    let mut sender = Sender::new(without_moves(), 2, 0.1);
    sender.departs(3);
    sender.receives(&all_up_to(1, 2));
    assert_eq!(sender.source.departure(Layer(0)), Departure::AfterReport, "the other may have nothing");
    sender.receives(&all_up_to(2, 2));
    assert!(matches!(sender.source.departure(Layer(0)), Departure::At(_)));
}

#[test]
fn agent_with_a_full_store_refuses_new_packets() {
    let config = Config { store: 16, ..without_moves() };
    let mut ear = Ear::by_hand(Agent::new(id(1), &config), Time::from_secs_f64(1.0));
    ear.receiver.control(SourceControl::Members(1), Time::ZERO);
    let arrival = Arrival { size: 1000, ..Arrival::default() };
    for seq in 0..40 {
        let data = bench::data(seq, Time::from_secs_f64(0.9), Mark::None);
        ear.call(|agent, cx| agent.on_data(&data, Layer(0), arrival, cx));
        if seq == 0 {
            ear.call(|agent, cx| agent.on_report(&all_up_to(7, 0), cx));
        }
    }
    let agent = ear.receiver;
    assert_eq!((agent.refused(), agent.windows().map(|it| it.stored)), (23, Some(16)));
}
