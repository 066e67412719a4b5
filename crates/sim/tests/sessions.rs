//! What few sessions have: an end, marks, members that come back, nodes that aggregate.

mod nets;

use faircast_aqm::{LinkSpec, QueueSpec, red};
use faircast_core::time::{Span, Time};
use faircast_sim::{Network, Options, Outcome, SimError, SourceSample};

fn run(network: &Network, seconds: f64) -> Outcome {
    network
        .run(&Options { until: Time::from_secs_f64(seconds), ..Options::default() })
        .expect("a sound network")
}

/// One receiver behind 1 Mbit/s.
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
fn a_source_that_has_sent_all_it_had_goes_on_listening() {
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

#[test]
fn what_a_source_counted_is_part_of_its_samples_and_of_the_end() {
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
fn data_that_may_be_marked_is_marked_where_other_data_is_dropped() {
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
fn a_member_that_comes_back_gets_packets_again_and_is_a_new_receiver() {
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

#[test]
fn a_network_without_nodes_that_aggregate_is_not_changed_by_one_that_hears_no_loss_reports() {
    let mut net = nets::star(4, nets::Background::None);
    let without = run(&net, 30.0);
    net.aggregate(faircast_sim::NodeId(1), Span::from_secs(1));
    assert_eq!(run(&net, 30.0), without);
}
