//! Repairs and what children may say (mtcp.md, 11: 5, and 10).

use super::*;
use crate::node::{Cx, Effect, Effects, Receiver as _, Source as _, SourceControl};
use crate::packet::{Arrival, Data, Flags, Mark, Order, OrderContent, Payload, Signal};
use crate::rng::Rng;
use crate::time::Time;

fn config() -> Config {
    Config { localize: Localize::Off, ..Config::published() }
}

/// 5: a burst of losses is repaired at the pace of its own acknowledgements.
#[test]
fn fifty_lost_packets_are_repaired_without_another_loss() {
    let nodes = [(None, Path::mbps(100.0, 5, 1000)), (Some(0), Path::mbps(4.0, 30, 12))];
    let mut grove = Grove::new(config(), &nodes);
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
fn a_node_that_missed_a_packet_itself_passes_the_repair_on() {
    let path = Path::mbps(50.0, 10, 1000);
    let nodes = [(None, path), (Some(0), path), (Some(0), path), (Some(0), path)];
    let mut grove = Grove::new(config(), &nodes);
    grove.nodes.iter_mut().for_each(|node| node.loses.extend([50, 51, 60]));
    grove.limit = 100;
    grove.run_until(30.0);
    assert!(grove.is_complete());
}

#[test]
fn scattered_losses_of_all_are_repaired() {
    let path = Path::mbps(20.0, 10, 1000);
    let mut nodes = vec![(None, path); 4];
    nodes.extend((0..16).map(|child| (Some(child % 4), path)));
    let mut grove = Grove::new(config(), &nodes);
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
    Data {
        seq: Seq(seq),
        sent_at: Time::from_secs_f64(1.0),
        rate: 0.0,
        payload: Payload::NONE,
        flags: Flags::default(),
        signal: Signal::None,
        mark: Mark::None,
    }
}

/// What a receiver says when these packets come.
fn says(packets: &[u64]) -> Vec<ReportContent> {
    let (mut receiver, mut rng, mut effects) =
        (Receiver::new(id(1), &config()), Rng::new(1, 1), Effects::new());
    let cx = &mut Cx { now: Time::from_secs_f64(2.0), rng: &mut rng, effects: &mut effects };
    for seq in packets {
        receiver.on_data(&packet(*seq), Layer(0), Arrival { size: 1000, ..Arrival::default() }, cx);
    }
    let reports = cx.effects.drain().map(|effect| match effect {
        Effect::Report(report) => report.content,
        other => panic!("a receiver reports: {other:?}"),
    });
    reports.collect()
}

#[test]
fn every_second_packet_is_acknowledged_and_every_hole_at_once() {
    assert_eq!(says(&[0, 1, 2, 3]).len(), 2);
    assert_eq!(says(&[0]).len(), 0, "a first packet waits");
    let with_hole = says(&[0, 1, 3]);
    assert_eq!(with_hole.len(), 2);
    let Some(ReportContent::Acknowledged { echo, behind, holes, newer: 0 }) = with_hole.last().copied()
    else {
        panic!("{with_hole:?}")
    };
    assert_eq!((echo.seq, behind, holes.iter().count()), (Seq(3), 2, 1));
    assert_eq!(holes.0[0], Hole { back: 1, count: 1 });
    assert_eq!(says(&[0, 1, 1, 1]).len(), 3, "duplicates, too");
}

#[test]
fn more_holes_than_fit_make_a_second_report() {
    let odd: Vec<u64> = (0..10).map(|number| number * 2).collect();
    let all = says(&odd);
    let last = &all[all.len() - 2..];
    let of = |content: &ReportContent| match content {
        ReportContent::Acknowledged { holes, newer, .. } => (holes.iter().count(), *newer),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(&last[0]), (3, 0), "the newest");
    assert!(of(&last[1]).1 >= 3, "and some of the older ones");
}

/// A parent knows after two reports what a child lacks, however they are cut.
#[test]
fn a_parent_learns_holes_from_reports_in_pieces() {
    let (mut source, mut rng, mut effects) = (Source::new(config()), Rng::new(1, 1), Effects::new());
    source.control(SourceControl::Members(1), Time::ZERO);
    let cx = &mut Cx { now: Time::from_secs_f64(1.0), rng: &mut rng, effects: &mut effects };
    source.start(cx);
    for _ in 0..40 {
        source.on_departure(Layer(0), 1000, cx);
    }
    let report = lacking(1, 39, 30, &[(38, 1), (30, 2), (20, 1)]);
    source.on_report(&report, cx);
    let child = &source.parent().children[0];
    assert_eq!(child.board.base(), 10);
    assert!((21..30).chain(32..38).chain([39]).all(|seq| child.board.has(seq)), "between holes all is there");
    assert!((10..20).all(|seq| !child.board.has(seq)), "behind the last of three nothing is said");
    source.on_report(&lacking(1, 39, 30, &[(38, 1), (10, 2)]), cx);
    let child = &source.parent().children[0];
    assert!((12..38).all(|seq| child.board.has(seq)), "this one says all down to its base");
    child.check();
}

#[test]
fn lies_are_bounded() {
    let (mut source, mut rng, mut effects) = (Source::new(config()), Rng::new(1, 1), Effects::new());
    source.control(SourceControl::Members(1), Time::ZERO);
    let cx = &mut Cx { now: Time::from_secs_f64(1.0), rng: &mut rng, effects: &mut effects };
    source.start(cx);
    for _ in 0..10 {
        source.on_departure(Layer(0), 1000, cx);
    }
    let far = Echo { seq: Seq(9), hold: Span::MAX };
    let content = ReportContent::Summary { echo: far, behind: 11, window: 5.0, transit: 0, lag: 0 };
    source.on_report(&Report { from: id(1), layer: Layer(0), content }, cx);
    assert!(source.parent().children.is_empty(), "it cannot lack what was before the first packet");
    for (window, transit) in [(f32::NAN, u16::MAX), (-5.0, 7), (f32::INFINITY, 0), (0.0, u16::MAX)] {
        let content = ReportContent::Summary { echo: far, behind: 0, window, transit, lag: u16::MAX };
        source.on_report(&Report { from: id(1), layer: Layer(0), content }, cx);
        let rate = source.observe().rate.bps();
        assert!(rate.is_finite() && rate > 0.0);
        let windows = source.windows().expect("it has some");
        assert!(windows.least >= 1.0, "{windows:?}");
        assert!(source.parent().transit() <= 512 + 10);
    }
}

#[test]
fn an_order_is_done_and_answered_and_others_are_ignored() {
    let (mut receiver, mut rng, mut effects) =
        (Receiver::new(id(1), &config()), Rng::new(1, 1), Effects::new());
    let cx = &mut Cx { now: Time::from_secs_f64(2.0), rng: &mut rng, effects: &mut effects };
    receiver.on_data(&packet(5), Layer(0), Arrival::default(), cx);
    let join = OrderContent::Join { group: 1, from: Seq(9) };
    receiver.on_order(&Order { to: id(2), number: 3, content: join }, cx);
    assert!(cx.effects.as_slice().is_empty());
    receiver.on_order(&Order { to: id(1), number: 4, content: join }, cx);
    let effects: Vec<Effect> = cx.effects.drain().collect();
    assert_eq!(effects[0], Effect::Attend(1));
    let said = |effect: &Effect| match effect {
        Effect::Report(report) => report.content,
        other => panic!("{other:?}"),
    };
    assert!(matches!(said(&effects[1]), ReportContent::Answered { number: 4, .. }));
    assert!(matches!(said(&effects[2]), ReportContent::Acknowledged { behind: 0, .. }));
}
