//! Tests of the layers that links carry and that receivers get.

mod nets;

use faircast_core::packet::Body;
use faircast_core::time::{Span, Time};
use faircast_sim::{
    LinkId, MemberOutcome, Network, Options, Outcome, ReceiverSpec, SessionSpec, TappedPacket,
};

/// Latency of a join at each router; the next constant is the latency of a leave at each link.
const JOIN: Span = Span::from_millis(30);
const LEAVE: Span = Span::from_millis(400);

fn at(seconds: f64) -> Time {
    Time::from_secs_f64(seconds)
}

fn run(network: &Network, seconds: f64) -> Outcome {
    network.run(&Options { until: at(seconds), ..Options::default() }).expect("a sound network")
}

/// Builds an RLC session to receivers behind one router. Each receiver is behind a separate link with the given rate in Mbit/s.
/// All links are tapped; the link from the source is the first one.
fn star(mbps: &[f64], change: impl Fn(usize, &mut ReceiverSpec)) -> (Network, Vec<LinkId>) {
    let mut net = Network::new(31);
    let (source, router) = (net.node(), net.node());
    let mut links = vec![net.duplex(source, router, nets::wide(100.0, 1), nets::wide(100.0, 1)).0];
    let mut members = Vec::new();
    for (number, rate) in mbps.iter().enumerate() {
        let leaf = net.node();
        links.push(net.duplex(router, leaf, nets::link(*rate, 20, 20), nets::wide(1.0, 20)).0);
        let mut it = nets::member(leaf);
        change(number, &mut it);
        members.push(it);
    }
    let scheme = "rlc,preset=published".parse().expect("a scheme");
    net.session(SessionSpec {
        scheme,
        join_latency: JOIN,
        leave_latency: LEAVE,
        alive: None,
        ..nets::session(source, members)
    });
    links.iter().for_each(|link| net.tap(*link));
    (net, links)
}

/// Returns the times at which packets entered a link, and their layers.
fn packets(outcome: &Outcome, link: LinkId) -> Vec<(Time, u8)> {
    let of_link = outcome.taps.iter().filter(|tapped| tapped.link == link);
    let data = of_link.filter_map(|tapped| match tapped.what {
        TappedPacket::Session(packet) if matches!(packet.body, Body::Data(_)) => {
            Some((tapped.at, packet.layer.0))
        }
        _ => None,
    });
    data.collect()
}

/// Returns the highest layer to which a member was subscribed at any time in this interval.
fn highest_within(member: &MemberOutcome, from: Time, to: Time) -> u8 {
    let before = member.subscriptions.iter().rfind(|(at, _)| *at <= from).map_or(0, |(_, level)| *level);
    let within = member.subscriptions.iter().filter(|(at, _)| *at > from && *at <= to);
    within.map(|(_, level)| *level).max().unwrap_or(0).max(before)
}

fn before(moment: Time, span: Span) -> Time {
    Time::ZERO + moment.since(Time::ZERO + span)
}

#[test]
fn link_carries_a_layer_until_the_leave_delay_ends() {
    let (net, links) = star(&[0.5], |_, _| {});
    let outcome = run(&net, 120.0);
    let member = &outcome.flows[0].members[0];
    let leaves = member.subscriptions.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
    assert!(leaves > 0, "{:?}", member.subscriptions);
    let mut of_left_layers = 0;
    for (at, layer) in packets(&outcome, links[1]) {
        assert!(highest_within(member, before(at, LEAVE), at) >= layer, "{at}: layer {layer}");
        of_left_layers += usize::from(highest_within(member, at, at) < layer);
    }
    assert!(of_left_layers > leaves, "{of_left_layers} packets of layers that were left, {leaves} leaves");
}

#[test]
fn join_of_a_second_receiver_waits_for_only_one_router() {
    let (net, links) = star(&[0.5, 4.0], |number, it| {
        if number == 0 {
            it.join = at(60.0);
        }
    });
    let outcome = run(&net, 120.0);
    let [late, first] = &outcome.flows[0].members[..] else { panic!("two members") };
    let join = |member: &MemberOutcome| {
        *member.subscriptions.iter().find(|(_, level)| *level == 1).expect("it joins")
    };
    let begins = |link, since: Time| {
        let of_link = packets(&outcome, link);
        let first = of_link.iter().find(|(at, layer)| *layer == 1 && *at >= since);
        first.expect("it is carried").0
    };
    let (asked, _) = join(first);
    let begin = begins(links[2], asked);
    assert!(begin.since(asked) >= JOIN + JOIN, "{asked} {begin}");
    assert!(begins(links[0], asked).since(asked) >= JOIN + JOIN, "the link from the source opens last");
    let (asked, _) = join(late);
    assert!(asked > at(60.0));
    // The fast receiver already receives the layer, so packets of this layer reach the router many times per second.
    let waits = begins(links[1], asked).since(asked);
    assert!(waits >= JOIN && waits < JOIN + Span::from_millis(500), "{waits}");
}

#[test]
fn returning_receiver_starts_with_the_base_layer() {
    let (mut net, links) = star(&[2.0], |_, it| it.leave = at(60.0));
    net.come_back(faircast_sim::FlowId(0), 0, at(70.0), at(100.0));
    let outcome = run(&net, 120.0);
    let member = &outcome.flows[0].members[0];
    let there = |from: f64, to: f64| {
        let all =
            packets(&outcome, links[1]).into_iter().filter(|(when, _)| (at(from)..at(to)).contains(when));
        all.map(|(_, layer)| layer).collect::<Vec<_>>()
    };
    assert!(there(50.0, 60.0).contains(&2), "several layers before: {:?}", member.subscriptions);
    assert!(!there(60.0, 60.4).is_empty(), "packets keep coming for a while");
    assert_eq!(there(60.401, 70.0), []);
    assert!(member.subscriptions.contains(&(at(60.0), 0)), "{:?}", member.subscriptions);
    let again = there(70.0, 71.0);
    assert!(!again.is_empty() && again.iter().all(|layer| *layer == 0), "{again:?}");
    assert_eq!(there(100.401, 120.0), []);
}

#[test]
fn losses_are_counted_only_in_joined_layers() {
    let (net, links) = star(&[0.5], |_, _| {});
    let outcome = run(&net, 120.0);
    let member = &outcome.flows[0].members[0];
    assert!(member.lost > 0);
    let dropped = outcome.links[links[1].0 as usize].counts.overflow;
    assert!(member.lost <= dropped, "{} of {dropped}", member.lost);
    let sent: u64 = outcome.flows[0].layers.iter().map(|layer| layer.sent).sum();
    assert_eq!(sent, outcome.flows[0].sent);
    let layers = &outcome.flows[0].layers;
    assert!(
        layers[1].rates.len() == outcome.flows[0].samples.len() && layers[1].bytes == layers[1].sent * 1000
    );
}

#[test]
fn packets_of_layers_at_last_hops_need_no_calendar_entries() {
    let (net, _) = star(&[2.0; 40], |_, _| {});
    let outcome = run(&net, 20.0);
    assert!(outcome.flows[0].members.iter().all(|member| member.subscriptions.len() > 1));
    assert!(2 * outcome.events < outcome.arrivals, "{} and {}", outcome.events, outcome.arrivals);
}
