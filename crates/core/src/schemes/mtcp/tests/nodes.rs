//! Repairs, and valid reports of children.

use super::*;
use crate::node::{Effect, Receiver as _, Source as _};
use crate::packet::{Arrival, Data, Mark, Order, OrderContent};

fn config() -> Config {
    Config { localize: Localize::Off, ..Config::published() }
}

/// After a burst of losses, acknowledgements of repairs control the rate of repairs.
#[test]
fn fifty_lost_packets_are_repaired_without_another_loss() {
    let nodes = [(None, Path::mbps(100.0, 5, 1000)), (Some(0), Path::mbps(4.0, 30, 12))];
    let mut grove = TestTree::new(config(), &nodes);
    grove.run_until(20.0);
    let (next, before) = (grove.sent, grove.nodes[1].lost);
    grove.nodes[1].loses.extend(next..next + 50);
    grove.limit = next + 200;
    let mut most: f64 = 0.0;
    for tick in 0..6000 {
        grove.run_until(20.0 + f64::from(tick) * 0.005);
        let parent = grove.agent(0).parent();
        let (size, out) = parent.groups[0].repairs.state();
        assert!(f64::from(out) <= size.max(1.0), "{out} of {size}");
        most = most.max(size);
    }
    assert!(grove.is_complete());
    assert!(most >= 4.0, "the window opened: {most}");
    assert_eq!(grove.nodes[1].lost - before, 50, "repairs get through");
}

#[test]
fn agent_that_missed_a_packet_forwards_its_repair() {
    let path = Path::mbps(50.0, 10, 1000);
    let nodes = [(None, path), (Some(0), path), (Some(0), path), (Some(0), path)];
    let mut grove = TestTree::new(config(), &nodes);
    grove.nodes.iter_mut().for_each(|node| node.loses.extend([50, 51, 60]));
    grove.limit = 100;
    grove.run_until(30.0);
    assert!(grove.is_complete());
}

#[test]
fn scattered_losses_at_all_nodes_are_repaired() {
    let path = Path::mbps(20.0, 10, 1000);
    let mut nodes = vec![(None, path); 4];
    nodes.extend((0..16).map(|child| (Some(child % 4), path)));
    let mut grove = TestTree::new(config(), &nodes);
    let mut rng = Rng::new(3, 3);
    for node in &mut grove.nodes {
        node.loses.extend((0..600).filter(|_| rng.unit() < 0.02));
    }
    grove.limit = 600;
    grove.run_until(300.0);
    let lacking: Vec<usize> = grove.nodes.iter().map(|node| 600 - node.got.len()).collect();
    assert!(grove.is_complete(), "{lacking:?} of {}", grove.sent);
}

fn packet(seq: u64) -> Data {
    bench::data(seq, Time::from_secs_f64(1.0), Mark::None)
}

fn receiver() -> Ear<Receiver> {
    Ear::by_hand(Receiver::new(id(1), &config()), Time::from_secs_f64(2.0))
}

/// Returns the reports of a receiver for these packets.
fn reports_of(packets: &[u64]) -> Vec<ReportContent> {
    let (mut ear, arrival) = (receiver(), Arrival { size: 1000, ..Arrival::default() });
    packets.iter().flat_map(|seq| ear.receive(&packet(*seq), arrival)).collect()
}

#[test]
fn every_second_packet_and_each_hole_cause_an_acknowledgement() {
    assert_eq!(reports_of(&[0, 1, 2, 3]).len(), 2);
    assert_eq!(reports_of(&[0]).len(), 0, "a first packet waits");
    let with_hole = reports_of(&[0, 1, 3]);
    assert_eq!(with_hole.len(), 2);
    let Some(ReportContent::Acknowledged { echo, behind, holes, newer: 0 }) = with_hole.last().copied()
    else {
        panic!("{with_hole:?}")
    };
    assert_eq!((echo.seq, behind, holes.iter().count()), (Seq(3), 2, 1));
    assert_eq!(holes.0[0], Hole { back: 1, count: 1 });
    assert_eq!(reports_of(&[0, 1, 1, 1]).len(), 3, "duplicates, too");
}

#[test]
fn second_report_is_sent_if_the_holes_do_not_fit_in_one() {
    let odd: Vec<u64> = (0..10).map(|number| number * 2).collect();
    let all = reports_of(&odd);
    let last = &all[all.len() - 2..];
    let of = |content: &ReportContent| match content {
        ReportContent::Acknowledged { holes, newer, .. } => (holes.iter().count(), *newer),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(&last[0]), (3, 0), "the newest");
    assert!(of(&last[1]).1 >= 3, "and some of the older ones");
}

/// After two reports, a parent has all holes of a child, regardless of their distribution over the reports.
#[test]
fn parent_combines_the_holes_of_several_reports() {
    let mut sender = Sender::new(config(), 1, 1.0);
    sender.departs(40);
    sender.receives(&lacking(1, 39, 30, &[(38, 1), (30, 2), (20, 1)]));
    let child = &sender.source.parent().children[0];
    assert_eq!(child.board.base(), 10);
    assert!((21..30).chain(32..38).chain([39]).all(|seq| child.board.has(seq)), "between holes all is there");
    assert!((10..20).all(|seq| !child.board.has(seq)), "behind the last of three nothing is said");
    sender.receives(&lacking(1, 39, 30, &[(38, 1), (10, 2)]));
    let child = &sender.source.parent().children[0];
    assert!((12..38).all(|seq| child.board.has(seq)), "this one says all down to its base");
    child.check();
}

#[test]
fn false_reports_have_bounded_effects_on_rate_and_window() {
    let mut sender = Sender::new(Config { store: 512, ..config() }, 1, 1.0);
    sender.departs(10);
    let far = Echo { seq: Seq(9), hold: Span::MAX };
    let content = ReportContent::Summary { echo: far, behind: 11, window: 5.0, transit: 0, lag: 0 };
    sender.report(1, content);
    assert!(sender.source.parent().children.is_empty(), "it cannot lack what was before the first packet");
    for (window, transit) in [(f32::NAN, u16::MAX), (-5.0, 7), (f32::INFINITY, 0), (0.0, u16::MAX)] {
        let content = ReportContent::Summary { echo: far, behind: 0, window, transit, lag: u16::MAX };
        sender.report(1, content);
        let rate = sender.source.observe().rate.bps();
        assert!(rate.is_finite() && rate > 0.0);
        let windows = sender.source.windows().expect("it has some");
        assert!(windows.least >= 1.0, "{windows:?}");
        assert!(sender.source.parent().transit() <= 512 + 10);
    }
}

#[test]
fn receiver_executes_and_answers_only_its_own_orders() {
    let mut ear = receiver();
    ear.receive(&packet(5), Arrival::default());
    let join = OrderContent::Join { group: 1, from: Seq(9) };
    let mut order = |to, number| {
        let order = Order { to: id(to), number, content: join };
        ear.call(|receiver, cx| receiver.on_order(&order, cx))
    };
    assert_eq!(order(2, 3), []);
    let mut effects = order(1, 4);
    assert_eq!(effects.remove(0), Effect::Attend(1));
    let [ReportContent::Answered { number: 4, .. }, ReportContent::Acknowledged { behind: 0, .. }] =
        bench::reports(effects)[..]
    else {
        panic!("an answer and an acknowledgement")
    };
}
