//! Features that few sessions use: a limited number of packets, marks, returning members, and nodes that aggregate reports.

mod nets;

use faircast_aqm::{LinkSpec, LossSpec, QueueSpec, red};
use faircast_core::time::{Span, Time};
use faircast_sim::{
    Mode, Network, Options, Outcome, ReceiverSpec, SessionSpec, SimError, SourceSample, Tapped,
};
use std::collections::BTreeSet;

fn run(network: &Network, seconds: f64) -> Outcome {
    network
        .run(&Options { until: Time::from_secs_f64(seconds), ..Options::default() })
        .expect("a sound network")
}

/// Builds a session with one receiver behind 1 Mbit/s.
fn pair(queue: QueueSpec) -> (Network, faircast_sim::FlowId) {
    let mut net = Network::new(3);
    let (source, leaf) = (net.node(), net.node());
    net.duplex(source, leaf, LinkSpec { queue, ..nets::link(1.0, 20, 0) }, nets::wide(1.0, 20));
    let flow = net.session(nets::session(source, vec![nets::member(leaf)]));
    (net, flow)
}

fn drop_tail() -> QueueSpec {
    nets::link(1.0, 20, 25).queue
}

#[test]
fn source_receives_reports_after_its_last_packet() {
    let (mut net, flow) = pair(drop_tail());
    let endless = run(&net, 60.0);
    net.send_only(flow, 2_000);
    let limited = run(&net, 60.0);
    let (sent, member) = (limited.flows[0].sent, &limited.flows[0].members[0]);
    assert!(endless.flows[0].sent > 5_000, "{}", endless.flows[0].sent);
    assert_eq!(sent, 2_000);
    assert_eq!(member.packets + member.lost, 2_000, "the last one arrived here");
    assert_eq!(limited.flows[0].feedback, member.reports, "all that was said was heard");
}

/// Runs one receiver that reports its presence at the interval `alive`. The round-trip time is 200 ms. Returns the time of the
/// first packet in ms, and the largest round-trip time that the source has measured by then.
fn probed(alive: Option<Span>, start: f64) -> (Option<u64>, Span) {
    let mut net = Network::new(3);
    let (source, leaf) = (net.node(), net.node());
    net.duplex(source, leaf, nets::link(10.0, 100, 200), nets::wide(10.0, 100));
    let start = Time::from_secs_f64(start);
    let scheme = "ormcc,preset=transport".parse().expect("a scheme");
    net.session(SessionSpec { alive, start, scheme, ..nets::session(source, vec![nets::member(leaf)]) });
    let options = Options {
        until: start + Span::from_secs(5),
        sample: Span::from_millis(100),
        bin: Span::from_millis(100),
        ..Options::default()
    };
    let flow = &net.run(&options).expect("a sound network").flows[0];
    let view = flow.samples.iter().find_map(|sample| match sample {
        SourceSample::Session { at, view } if *at > start => Some(view),
        _ => None,
    });
    let first = flow.sent_bins.iter().position(|bytes| *bytes > 0).map(|bin| bin as u64 * 100);
    (first, view.expect("it has started").rtt_max)
}

#[test]
fn probed_rtts_of_members_are_known_when_the_source_starts() {
    let (first, rtt) = probed(None, 2.0);
    assert_eq!((first, rtt), (Some(2000), Span::from_millis(100)), "it is assumed");
    let (first, rtt) = probed(Some(Span::from_millis(250)), 2.0);
    assert_eq!(first, Some(1000), "four probes");
    assert!((Span::from_millis(200)..Span::from_millis(205)).contains(&rtt), "{rtt}");
    let (first, _) = probed(Some(Span::from_millis(250)), 0.3);
    assert_eq!(first, Some(0), "there was time for one probe, 250 ms before");
    let (first, _) = probed(Some(Span::from_millis(250)), 0.0);
    assert_eq!(first, Some(0));
}

#[test]
fn intermittent_application_sends_only_in_its_periods() {
    let (mut net, flow) = pair(drop_tail());
    for (from, to) in [(5.5, 10.0), (20.0, 30.5)] {
        net.send_during(flow, Time::from_secs_f64(from), Time::from_secs_f64(to));
    }
    let bins = run(&net, 60.0).flows[0].sent_bins.clone();
    let sent: Vec<usize> = (0..60).filter(|&bin| bins[bin] > 0).collect();
    assert_eq!(sent, (5..10).chain(20..31).collect::<Vec<_>>());
    net.send_during(flow, Time::from_secs_f64(30.0), Time::NEVER);
    assert_eq!(net.run(&Options::default()).err(), Some(SimError::BadTalks { flow: 0 }));
}

#[test]
fn samples_and_outcome_contain_the_source_counters() {
    let (net, _) = pair(drop_tail());
    let flow = &run(&net, 60.0).flows[0];
    let SourceSample::Session { view, .. } = flow.samples.last().expect("sampled every second") else {
        panic!("it is a session");
    };
    assert!(flow.tally.indications > 3 && flow.tally.indications >= flow.tally.followed, "{:?}", flow.tally);
    assert!(view.tally.indications <= flow.tally.indications && view.tally.indications > 0);
    assert!(flow.cuts.len() as u64 <= flow.tally.followed);
}

#[test]
fn ecn_data_is_marked_where_other_data_is_dropped() {
    let red = QueueSpec::Red(red::Config { ecn: true, ..red::Config::red_parameters() });
    let (mut net, flow) = pair(red);
    let dropped = run(&net, 60.0).links[0].counts;
    net.allow_marks(flow);
    let marked = run(&net, 60.0);
    let counts = marked.links[0].counts;
    assert!(dropped.early > 5 && dropped.marked == 0, "{dropped:?}");
    assert!(counts.marked > 5 && counts.early < dropped.early, "{counts:?}");
    assert!(marked.flows[0].tally.indications > 5, "the scheme heard of marks");
}

#[test]
fn returning_member_is_counted_as_a_new_receiver() {
    let (mut net, _) = {
        let mut net = Network::new(3);
        let (source, router, first, second) = (net.node(), net.node(), net.node(), net.node());
        net.duplex(source, router, nets::wide(10.0, 1), nets::wide(10.0, 1));
        net.duplex(router, first, nets::link(1.0, 20, 25), nets::wide(1.0, 20));
        net.duplex(router, second, nets::link(1.0, 20, 25), nets::wide(1.0, 20));
        let mut goes = nets::member(second);
        goes.leave = Time::from_secs_f64(10.0);
        let flow = net.session(nets::session(source, vec![nets::member(first), goes]));
        net.come_back(flow, 1, Time::from_secs_f64(20.0), Time::from_secs_f64(30.0));
        net.come_back(flow, 1, Time::from_secs_f64(40.0), Time::NEVER);
        (net, flow)
    };
    let bins = run(&net, 60.0).flows[0].members[1].bins.clone();
    let there = |from: usize, to: usize| bins[from..to].iter().filter(|bytes| **bytes > 0).count();
    assert_eq!([there(1, 10), there(11, 20), there(21, 30), there(31, 40), there(41, 60)], [9, 0, 9, 0, 19]);
    let lost = run(&net, 60.0).flows[0].members[1].lost;
    assert!(lost < 300, "an absence is no loss: {lost}");
    let wrong = faircast_sim::FlowId(0);
    net.come_back(wrong, 1, Time::from_secs_f64(50.0), Time::NEVER);
    assert_eq!(net.run(&Options::default()).err(), Some(SimError::BadStays { flow: 0, member: 1 }));
}

/// A source with a window waits only for reports. Each acknowledgement permits packets immediately.
#[test]
fn window_based_source_sends_when_an_acknowledgement_arrives() {
    let mut net = Network::new(3);
    let (source, leaf) = (net.node(), net.node());
    let queue = drop_tail();
    let (there, back) =
        net.duplex(source, leaf, LinkSpec { queue, ..nets::link(1.0, 20, 0) }, nets::wide(1.0, 20));
    [there, back].into_iter().for_each(|link| net.tap(link));
    let scheme = "pgmcc,preset=published".parse().expect("a scheme");
    net.session(SessionSpec { scheme, ..nets::session(source, vec![nets::member(leaf)]) });
    let outcome = run(&net, 30.0);
    let (sent, reported): (Vec<&Tapped>, Vec<&Tapped>) =
        outcome.taps.iter().partition(|tapped| tapped.link == there);
    // The delay of an acknowledgement: 40 bytes at 1 Mbit/s, and 20 ms.
    let received: BTreeSet<Time> =
        reported.iter().map(|tapped| tapped.at + Span::from_micros(20_320)).collect();
    let at_once = sent.iter().filter(|tapped| received.contains(&tapped.at)).count();
    assert!(sent.len() > 1_000 && at_once * 100 > sent.len() * 95, "{at_once} of {}", sent.len());
}

/// Ackers and limiting receivers may stop sending reports, like representatives. Another receiver then takes their role.
#[test]
fn silent_limiting_receivers_are_replaced_in_every_scheme() {
    for scheme in ["pgmcc,preset=published", "tfmcc,preset=published"] {
        let mut net = Network::new(3);
        let (source, router) = (net.node(), net.node());
        net.duplex(source, router, nets::wide(10.0, 1), nets::wide(10.0, 1));
        let leaves: Vec<_> = (0..4).map(|_| net.node()).collect();
        for &leaf in &leaves {
            let loss = Some(LossSpec::Bernoulli(0.02));
            net.duplex(router, leaf, LinkSpec { loss, ..nets::link(1.0, 20, 25) }, nets::wide(1.0, 20));
        }
        let mute_after = Some(Span::from_secs(10));
        let members = leaves.into_iter().map(|leaf| ReceiverSpec { mute_after, ..nets::member(leaf) });
        let spec = nets::session(source, members.collect());
        net.session(SessionSpec { scheme: scheme.parse().expect("a scheme"), ..spec });
        let outcome = run(&net, 60.0);
        let limiting: BTreeSet<u32> =
            outcome.flows[0].representatives.iter().filter_map(|(_, who)| *who).collect();
        assert!(limiting.len() >= 3, "{scheme}: {limiting:?}");
    }
}

/// Builds LE-SBCC over two routers behind a third router, with receivers that each lose 2 % at random. Only the given nodes
/// aggregate reports.
fn two_groups(aggregators: &[usize]) -> Network {
    let mut net = Network::new(5);
    let (source, top) = (net.node(), net.node());
    let mut routers = vec![top];
    net.duplex(source, top, nets::wide(100.0, 1), nets::wide(100.0, 1));
    let mut members = Vec::new();
    for _ in 0..2 {
        let router = net.node();
        net.duplex(top, router, nets::wide(100.0, 10), nets::wide(100.0, 10));
        routers.push(router);
        for _ in 0..20 {
            let leaf = net.node();
            let loss = Some(LossSpec::Bernoulli(0.02));
            net.duplex(router, leaf, LinkSpec { loss, ..nets::wide(10.0, 30) }, nets::wide(10.0, 30));
            members.push(nets::member(leaf));
        }
    }
    let scheme = "le-sbcc,preset=published".parse().expect("a scheme");
    net.session(SessionSpec { scheme, ..nets::session(source, members) });
    aggregators.iter().for_each(|&which| net.aggregate(routers[which], Span::from_secs(1)));
    net
}

/// Paper 000, 2.2.3: every node that aggregates reports hides loss reports from the upstream nodes.
#[test]
fn aggregation_limits_the_reports_per_packet() {
    let received = |aggregators: &[usize]| {
        let outcome = run(&two_groups(aggregators), 60.0);
        let flow = &outcome.flows[0];
        let reported: u64 = flow.members.iter().map(|member| member.reports).sum();
        assert!(
            reported - flow.feedback - flow.aggregated < 40,
            "but for those under way, all is accounted for"
        );
        flow.feedback as f64 / flow.sent as f64
    };
    // With probability 0.668, none of 20 receivers loses a packet; with probability 0.446, none of 40.
    let (none, groups, top, all) = (received(&[]), received(&[1, 2]), received(&[0]), received(&[0, 1, 2]));
    assert!((none / 0.8 - 1.0).abs() < 0.1, "{none}");
    assert!((groups / 0.665 - 1.0).abs() < 0.1, "{groups}");
    assert!((top / 0.554 - 1.0).abs() < 0.1, "{top}");
    assert!((all / 0.554 - 1.0).abs() < 0.1, "{all}");
}

#[test]
fn both_engines_aggregate_reports_equally() {
    let outcome = |mode| {
        let options = Options { until: Time::from_secs_f64(30.0), mode, ..Options::default() };
        two_groups(&[1, 2]).run(&options).expect("a sound network")
    };
    let (eager, evented) = (outcome(Mode::Eager), outcome(Mode::Evented));
    assert!(eager.flows == evented.flows && eager.digest == evented.digest);
    assert!(eager.flows[0].aggregated > 10, "{}", eager.flows[0].aggregated);
}

#[test]
fn aggregation_without_duplicate_reports_changes_nothing() {
    let mut net = nets::star(4, nets::Background::None);
    let without = run(&net, 30.0);
    net.aggregate(faircast_sim::NodeId(1), Span::from_secs(1));
    let mut with = run(&net, 30.0);
    with.routers.clear();
    assert_eq!(with, without);
}
