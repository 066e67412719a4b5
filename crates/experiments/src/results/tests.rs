use super::rows::Field::{Number, Text, Whole};
use super::*;
use crate::scenario::{Scenario, Setting};
use crate::table::Column;
use faircast_core::time::{Span, Time};
use faircast_sim::{FlowCounts, FlowOutcome, LinkOutcome, LinkSample, LinkTally, MemberOutcome, Outcome};

/// A session and a TCP flow in a star with two leaves. There are ten bins of one second each.
const TWO: &str = "title = \"t\"\nduration = \"10 s\"\nwarmup = \"4 s\"\nstart_jitter = 0\n[topology]\nkind = \"star\"\n\
    leaves = 2\n[[flow]]\nname = \"m\"\nkind = \"session\"\nscheme = \"ormcc\"\nfrom = \"src1\"\nto = \"leaf*\"\n\
    expected = [{ from = 0, is = \"leaf1\" }, { from = \"5 s\", is = \"leaf2\" }]\nsettle = \"1 s\"\n[[flow]]\nname = \"t\"\n\
    kind = \"tcp-reno\"\nfrom = \"src1\"\nto = \"leaf1\"\n[[window]]\nname = \"early\"\nfrom = 0\nto = \"2 s\"\n\
    [probe]\nlinks = \"hub->leaf1\"\n";

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn member(bins: [u64; 10], reports: u64, suppressed: u64) -> MemberOutcome {
    let bytes: u64 = bins.iter().sum();
    MemberOutcome {
        packets: bytes / 1000,
        bytes,
        lost: bytes / 10_000,
        delivered: bytes / 1000,
        reports,
        acknowledgements: 0,
        suppressed,
        subscriptions: Vec::new(),
        counts: [2, 4, 10].map(|end| counts(bins[..end].iter().sum())).to_vec(),
        bins: bins.to_vec(),
        ..MemberOutcome::default()
    }
}

/// Returns the counts after the arrival of `bytes` bytes, if every eleventh packet was lost.
fn counts(bytes: u64) -> FlowCounts {
    let (received, lost) = (bytes / 1000, bytes / 10_000);
    FlowCounts { sent: received + lost, again: lost, received, lost, delivered: received }
}

fn flow(members: Vec<MemberOutcome>) -> FlowOutcome {
    let sent = |moment: usize| {
        let bins = [2, 4, 10][moment];
        counts(members.iter().flat_map(|member| &member.bins[..bins]).sum())
    };
    let counts = (0..3).map(sent).collect();
    let sum = |bin: usize| members.iter().map(|member| member.bins[bin]).sum();
    FlowOutcome {
        received_bins: (0..10).map(sum).collect(),
        members,
        sent: 100,
        counts,
        ..FlowOutcome::default()
    }
}

/// The session's receivers get 80 and 160 kbit/s, TCP gets 80 kbit/s. No flow receives data in the first two seconds.
fn outcome(layout: &crate::scenario::Layout) -> Outcome {
    let steady = |bytes: u64| std::array::from_fn(|bin| if bin < 2 { 0 } else { bytes });
    let mut session = flow(vec![member(steady(10_000), 6, 2), member(steady(20_000), 0, 4)]);
    session.representatives = vec![(seconds(0), Some(0)), (seconds(8), None), (seconds(9), Some(1))];
    session.cuts = vec![seconds(1), seconds(5), seconds(6)];
    let mut tcp = flow(vec![member(steady(10_000), 80, 0)]);
    tcp.timeouts = vec![seconds(1), seconds(2), seconds(7), seconds(10)];
    let mut links = vec![LinkOutcome::default(); layout.links()];
    let sample = |second: u64| LinkSample {
        at: seconds(second),
        waiting: second as u32,
        waiting_bytes: 1000 * second,
        departed_bytes: 50_000 * second,
        counts: faircast_aqm::LinkCounts { offered: 100 * second, overflow: second, ..Default::default() },
    };
    let probed = layout.probes[0] as usize;
    links[probed].samples = (0..=10).map(sample).collect();
    // The counters are stored at 2 and 4 s. The queue of the second link drops no packets.
    let tally = |second: u64| LinkTally {
        departed_bytes: 50_000 * second,
        offered: 100 * second,
        overflow: second,
        early: 2 * second,
        marked: 3 * second,
    };
    let mut link_moments = vec![LinkTally::default(); 2 * links.len()];
    for link in 0..2 {
        let of = |second| {
            if link == 0 {
                tally(second)
            } else {
                LinkTally { overflow: 0, early: 0, marked: 0, ..tally(second) }
            }
        };
        let place = 2 * ((probed + link) % links.len());
        link_moments[place..place + 2].copy_from_slice(&[of(2), of(4)]);
        let LinkTally { departed_bytes, offered, overflow, early, marked } = of(10);
        let it = &mut links[(probed + link) % layout.links()];
        it.departed_bytes = departed_bytes;
        it.counts = faircast_aqm::LinkCounts { offered, overflow, early, marked, ..Default::default() };
    }
    Outcome { flows: vec![session, tcp], links, link_moments, ..Outcome::default() }
}

fn measured() -> measure::Measured {
    let scenario = Scenario::parse(TWO, "two.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let layout = scenario.layout(0, 1);
    measure::measure(scenario.plan(0), &layout, &outcome(&layout))
}

fn metric(name: &str) -> f64 {
    let all = measured().metrics;
    let found = all.iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no {name} in {all:?}")).1
}

#[test]
fn rates_are_means_over_receivers_in_the_window() {
    assert_eq!(metric("m.rate"), 120_000.0);
    assert_eq!(metric("t.rate"), 80_000.0);
    assert_eq!(metric("m.rate.min"), 80_000.0);
    assert_eq!(metric("m.rate.max"), 160_000.0);
    assert_eq!(metric("m.cov"), 0.0);
    assert_eq!(metric("m.rate@early"), 0.0);
    assert!((metric("jain") - 200.0f64.powi(2) / (2.0 * (120.0f64.powi(2) + 80.0f64.powi(2)))).abs() < 1e-12);
}

#[test]
fn completion_is_the_time_at_which_the_last_receiver_has_enough() {
    let completion = |content: u64| {
        let text = TWO.replacen("settle =", &format!("content = {content}\nsettle ="), 1);
        let scenario = Scenario::parse(&text, "two.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
        let layout = scenario.layout(0, 1);
        let metrics = measure::measure(scenario.plan(0), &layout, &outcome(&layout)).metrics;
        metrics.into_iter().find(|(name, _)| name == "m.completion").map(|(_, seconds)| seconds)
    };
    // From 2 s on, the slower receiver gets ten packets a second.
    assert_eq!([35, 80, 81].map(completion), [Some(5.5), Some(10.0), None]);
}

#[test]
fn feedback_is_counted_per_session_and_per_receiver() {
    assert_eq!(metric("m.reports"), 6.0);
    assert_eq!(metric("m.suppressed"), 6.0);
    assert_eq!(metric("m.reports.hypothetical"), 6.0);
    assert_eq!(metric("m.suppression"), 0.5);
    assert_eq!(metric("m.cuts"), 2.0, "the cut during warm-up does not count");
    assert!((metric("m.loss") - 24.0 / 264.0).abs() < 1e-12);
}

#[test]
fn counts_and_goodput_are_measured_per_window() {
    assert!((metric("t.loss") - 1.0 / 11.0).abs() < 1e-12);
    assert_eq!(metric("t.timeouts"), 2.0, "what happens at the end of the run belongs to it");
    assert_eq!(metric("t.timeouts@early"), 1.0, "what happens at the end of a window is behind it");
    assert_eq!((metric("t.sent"), metric("t.again"), metric("t.lost")), (66.0, 6.0, 6.0));
    assert_eq!((metric("t.sent@early"), metric("m.cuts@early")), (0.0, 1.0));
    assert_eq!(metric("t.goodput"), 80_000.0);
    assert_eq!(metric("m.goodput"), 120_000.0);
    let tables = measured().tables;
    let flows = tables.iter().find(|table| table.name == "flows").expect("always there");
    let Some(Column::Number(shares)) = flows.column("share") else { panic!("a number") };
    assert_eq!(shares[..2], [0.6, 0.4]);
}

#[test]
fn total_goodput_of_late_flows_is_at_most_the_link_rate() {
    let text = r#"
        title = "Flows that start late"
        duration = "12 s"
        warmup = "2 s"
        [topology]
        kind = "dumbbell"
        leaves = 1
        bottleneck = { rate = "1 Mbit/s", delay = "5 ms", queue = "20 packets" }
        [[flow]]
        name = "tcp"
        kind = "tcp-sack"
        from = "src1"
        to = "leaf1"
        count = 10
        start = "2 s .. 11 s"
    "#;
    let scenario = Scenario::parse(text, "late.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = crate::run::run(&scenario, &Default::default(), &crate::run::Silent).expect("it runs");
    let sum = |name: &str| results.metric(0, name)[0] * 10.0;
    assert!((0.5e6..=1e6).contains(&sum("tcp.goodput")), "{}", sum("tcp.goodput"));
    assert!(sum("tcp.goodput.present") > 1.2e6, "{}", sum("tcp.goodput.present"));
}

#[test]
fn link_metrics_cover_only_the_window() {
    assert_eq!(metric("link.hub->leaf1.queue"), 7.0);
    assert_eq!(metric("link.hub->leaf1.drops"), 6.0);
    assert_eq!(metric("link.hub->leaf1.loss"), 0.01);
    assert!((metric("link.hub->leaf1.utilisation") - 0.4).abs() < 1e-12);
}

#[test]
fn unprobed_links_that_drop_or_mark_packets_are_bottlenecks() {
    // The link carries 400 kbit/s for 6 s, and its capacity is 1 Mbit/s.
    assert_eq!((metric("links.bottlenecks"), metric("links.others")), (1.0, 1.0));
    assert!((metric("links.others.utilisation") - 0.4).abs() < 1e-12);
    assert_eq!(metric("links.bottlenecks@early"), 1.0);
    let (plan, tables) = (vec![(0, 1), (0, 2)], measured().tables);
    let runs = plan.iter().map(|job| (*job, tables.clone())).collect::<Vec<_>>();
    let point = Point { index: 0, values: Vec::new() };
    let table = rows_of_runs(&[], &[point], &runs).pop().expect("the last one");
    let Some(Column::Whole(dropped)) = table.column("dropped_early") else { panic!("a number") };
    assert_eq!((table.name.as_str(), &dropped[..]), ("bottlenecks", &[12, 4, 12, 4][..]));
    let found = bottlenecks::of(&table, 0);
    let [it] = &found[..] else { panic!("{found:?}") };
    assert_eq!((it.link.as_str(), it.runs), ("hub->leaf1", 2));
    assert!((it.utilisation - 0.4).abs() < 1e-12);
    assert_eq!([it.dropped_full, it.dropped_early, it.marked], [0.01, 0.02, 0.03]);
}

#[test]
fn representative_is_compared_with_the_expected_timetable() {
    // leaf1 is expected from 1 to 5 s, and is the representative all of this time. leaf2 is expected from 6 to 10 s, and is the
    // representative only from 9 s on.
    assert!((metric("m.representative.as_expected") - 5.0 / 8.0).abs() < 1e-12);
    assert_eq!(metric("m.switches"), 1.0);
    assert_eq!(measure::as_expected(&[], &[], Span::ZERO, seconds(9)), None);
}

#[test]
fn running_averages_cover_all_time_since_the_start() {
    let tables = measured().tables;
    let averages = tables.iter().find(|table| table.name == "averages").expect("always there");
    let Some(Column::Number(values)) = averages.column("average") else { panic!("a number") };
    assert_eq!(&values[..4], [0.0, 0.0, 40_000.0, 60_000.0]);
    assert_eq!(tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>(), measure::TABLES);
}

#[test]
fn written_numbers_read_back_unchanged() {
    let mut rows = Rows::new("t");
    let mut push = |name, count, value| {
        rows.push(&[("name", Text(name)), ("count", Whole(count)), ("value", Number(value))]);
    };
    push("a,\"b\"", u64::MAX, 0.1 + 0.2);
    push("", 0, f64::NAN);
    let text = String::from_utf8(to_csv(&rows.0)).expect("text");
    let expected = "name,count,value\n\"a,\"\"b\"\"\",18446744073709551615,0.30000000000000004\n,0,\n";
    assert_eq!(text, expected);
}

#[test]
fn stacked_tables_begin_with_columns_for_point_axes_and_seed() {
    let axes = [
        Axis { name: "n".into(), values: vec![Setting::Number(1.0), Setting::Number(2.0)] },
        Axis { name: "q".into(), values: vec![Setting::Text("red".into())] },
    ];
    let point = |index, n| Point {
        index,
        values: vec![("n".into(), Setting::Number(n)), ("q".into(), Setting::Text("red".into()))],
    };
    let (empty, mut rows) = (Rows::new("t"), Rows::new("t"));
    rows.push(&[("x", Whole(9))]);
    let runs = [(0, 4, empty), (0, 5, rows.clone()), (1, 5, rows)];
    let runs = runs.map(|(point, seed, rows)| ((point, seed), vec![rows.0]));
    let tables = rows_of_runs(&axes, &[point(0, 1.0), point(1, 2.0)], &runs);
    let text = String::from_utf8(to_csv(&tables[0])).expect("text");
    assert_eq!(text, "point,n,q,seed,x\n0,1,red,5,9\n1,2,red,5,9\n");
}

mod layers;
