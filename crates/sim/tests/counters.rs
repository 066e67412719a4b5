//! Counters of flows are exact, independent of sampling, and include all connections of a flow.

mod nets;

use faircast_aqm::LinkSpec;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{
    ApplicationData, FlowCounts, FlowOutcome, Law, LinkOutcome, Network, Options, Outcome, SourceSample,
    UnicastProtocol, UnicastSpec,
};
use faircast_unicast::Protocol;

fn at(seconds: f64) -> Time {
    Time::from_secs_f64(seconds)
}

fn run(net: &Network, seconds: f64, sample: Span) -> Outcome {
    net.run(&Options { until: at(seconds), sample, ..Options::default() }).expect("a sound network")
}

/// Builds `flows` flows over one bottleneck of 1 Mbit/s, each from a separate host.
fn bottleneck(flows: usize, protocol: &str, supply: ApplicationData) -> Network {
    let mut net = Network::new(4);
    let (left, right) = (net.node(), net.node());
    net.duplex(left, right, nets::link(1.0, 20, 12), nets::wide(1.0, 20));
    for number in 0..flows {
        let host = net.node();
        net.duplex(host, left, nets::wide(10.0, 3 + number as u64), nets::wide(10.0, 3 + number as u64));
        let tcp = UnicastProtocol::Controlled(protocol.parse::<Protocol>().expect("a protocol"));
        net.unicast(UnicastSpec { supply, ..nets::unicast(tcp, host, right, 0.1 * number as f64) });
    }
    net
}

fn transfers() -> ApplicationData {
    ApplicationData::Transfers { packets: Law::Constant { mean: 40.0 }, pause: Law::Constant { mean: 0.3 } }
}

fn whole(flow: &FlowOutcome) -> FlowCounts {
    *flow.counts.last().expect("the whole run is always counted")
}

#[test]
fn cuts_and_timeouts_do_not_depend_on_sampling() {
    for protocol in ["tcp-reno", "tcp-sack", "tfrc", "rap"] {
        let net = bottleneck(3, protocol, ApplicationData::Endless);
        let seldom = run(&net, 60.0, Span::MAX);
        let often = run(&net, 60.0, Span::from_millis(20));
        for (seldom, often) in seldom.flows.iter().zip(&often.flows) {
            assert_eq!((&seldom.cuts, &seldom.timeouts), (&often.cuts, &often.timeouts), "{protocol}");
            let Some(SourceSample::Unicast { view, .. }) = often.samples.last() else { panic!("no samples") };
            let since =
                |moments: &[Time]| moments.iter().filter(|moment| **moment > at(59.98)).count() as u64;
            assert_eq!(often.cuts.len() as u64 - since(&often.cuts), view.cuts, "{protocol}");
            assert_eq!(often.timeouts.len() as u64 - since(&often.timeouts), view.timeouts, "{protocol}");
        }
        let cuts: usize = seldom.flows.iter().map(|flow| flow.cuts.len()).sum();
        assert!(cuts > 30, "{protocol}: {cuts}");
    }
}

#[test]
fn counters_continue_across_the_connections_of_a_flow() {
    let outcome = run(&bottleneck(4, "tcp-reno", transfers()), 120.0, Span::from_millis(500));
    let mut timeouts = 0;
    for flow in &outcome.flows {
        assert!(flow.transfers.len() > 5, "{}", flow.transfers.len());
        let views: Vec<_> = flow
            .samples
            .iter()
            .filter_map(|sample| match sample {
                SourceSample::Unicast { view, .. } => Some(*view),
                SourceSample::Session { .. } => None,
            })
            .collect();
        for pair in views.windows(2) {
            let counts = |view: &faircast_unicast::SenderView| {
                [view.sent, view.again, view.acked, view.cuts, view.timeouts]
            };
            let (before, after) = (counts(&pair[0]), counts(&pair[1]));
            assert!(before.iter().zip(&after).all(|(a, b)| a <= b), "{before:?} then {after:?}");
        }
        timeouts += flow.timeouts.len();
        let delivered = whole(flow).delivered;
        assert!(delivered >= 40 * flow.transfers.len() as u64, "{delivered}");
        assert!(delivered <= 40 * (flow.transfers.len() as u64 + 1), "{delivered}");
    }
    assert!(timeouts > 0);
}

#[test]
fn each_sent_packet_arrives_or_is_lost() {
    let once = ApplicationData::Packets(500);
    for protocol in ["tcp-reno", "tcp-sack", "tcp-newreno"] {
        let outcome = run(&bottleneck(4, protocol, once), 200.0, Span::MAX);
        let mut lost = 0;
        for flow in &outcome.flows {
            let counts = whole(flow);
            assert_eq!(counts.sent, counts.received + counts.lost, "{protocol}");
            assert_eq!(counts.delivered, 500, "{protocol}");
            assert_eq!(counts.sent, 500 + counts.again, "{protocol}");
            lost += counts.lost;
        }
        let link = outcome.links[0].counts;
        assert_eq!(
            lost,
            link.offered - link.accepted,
            "{protocol}: nothing else was dropped at the bottleneck"
        );
        assert!(lost > 10, "{protocol}: {lost}");
    }
}

#[test]
fn every_datagram_that_a_link_loses_is_counted() {
    let mut net = Network::new(1);
    let (a, b) = (net.node(), net.node());
    net.duplex(a, b, nets::link(1.0, 20, 10), nets::wide(1.0, 20));
    let rate = UnicastProtocol::Datagrams { rate: Rate::from_mbps(2.0), jitter: 0.1 };
    let spec = nets::unicast(rate, a, b, 0.0);
    net.unicast(UnicastSpec { stop: at(10.0), ..spec });
    let flow = &run(&net, 20.0, Span::MAX).flows[0];
    let counts = whole(flow);
    assert_eq!(counts.sent, counts.received + counts.lost);
    assert!((0.45..0.55).contains(&(counts.lost as f64 / counts.sent as f64)), "{counts:?}");
    assert_eq!(flow.members[0].lost, counts.lost);
}

#[test]
fn flow_counts_at_a_time_equal_those_of_a_run_that_ends_then() {
    let mut net = bottleneck(3, "tcp-reno", transfers());
    let moments = [at(17.123), at(31.0), at(44.4)];
    let short: Vec<Outcome> =
        moments.iter().map(|moment| run(&net, moment.as_secs_f64() - 1e-9, Span::MAX)).collect();
    moments.iter().rev().for_each(|moment| net.count_until(*moment));
    for bin in [Span::MAX, Span::from_secs(1), Span::from_millis(7)] {
        let options = Options { until: at(60.0), bin, ..Options::default() };
        let outcome = net.run(&options).expect("a sound network");
        for (number, flow) in outcome.flows.iter().enumerate() {
            assert_eq!(flow.counts.len(), 4);
            for (counts, short) in flow.counts.iter().zip(&short) {
                assert_eq!(*counts, whole(&short.flows[number]), "bins of {bin:?}");
            }
            assert_eq!(flow.members[0].counts, flow.counts);
        }
    }
}

#[test]
fn link_counts_at_a_time_equal_those_of_a_run_that_ends_then() {
    let mut holding = bottleneck(3, "tcp-reno", transfers());
    let (a, b) = (holding.node(), holding.node());
    let red = LinkSpec { queue: "red,floyd,limit=30".parse().expect("a queue"), ..nets::link(1.0, 20, 12) };
    holding.duplex(a, b, red, LinkSpec { queue: "codel,limit=30".parse().expect("a queue"), ..red });
    for (from, to) in [(a, b), (b, a)] {
        let rate = UnicastProtocol::Datagrams { rate: Rate::from_mbps(1.5), jitter: 0.5 };
        holding.unicast(nets::unicast(rate, from, to, 0.0));
    }
    for net in [holding, nets::rough_star(8), nets::tree(4, 5), nets::layered("rlc", 6)] {
        // No transmission ends at any of these moments.
        let moments = [at(7.1237), at(12.3217), at(19.5371)];
        let short = moments.map(|moment| run(&net, moment.as_secs_f64() - 1e-9, Span::MAX));
        let mut counted = net.clone();
        moments.iter().for_each(|moment| counted.count_until(*moment));
        let (plain, outcome) = (run(&net, 25.0, Span::MAX), run(&counted, 25.0, Span::MAX));
        assert_eq!(plain.digest, outcome.digest);
        assert!(plain.link_moments.is_empty());
        let tallies = |of: &Outcome| of.links.iter().map(LinkOutcome::tally).collect::<Vec<_>>();
        assert_eq!(tallies(&plain), tallies(&outcome));
        for (link, tallies) in outcome.link_moments.chunks(moments.len()).enumerate() {
            let known = short.each_ref().map(|short| short.links[link].tally());
            assert_eq!(tallies, known, "link {link}");
        }
        let dropped = outcome.link_moments.iter().map(|tally| tally.overflow + tally.early).sum::<u64>();
        assert!(dropped > 0, "queues act");
    }
}

#[test]
fn session_counts_are_sums_over_members() {
    for mut net in [nets::rough_star(8), nets::layered("rlc", 6)] {
        net.count_until(at(11.7));
        let plain = run(&net, 40.0, Span::MAX);
        let flow = plain.flows.iter().find(|flow| flow.members.len() > 1).expect("a session of several");
        assert_eq!(flow.counts.len(), 2);
        for (moment, all) in flow.counts.iter().enumerate() {
            let sum = |of: fn(&FlowCounts) -> u64| {
                flow.members.iter().map(|it| of(&it.counts[moment])).sum::<u64>()
            };
            assert_eq!((all.received, all.lost), (sum(|it| it.received), sum(|it| it.lost)));
            assert!(all.received > 100 && all.sent > 100, "{all:?}");
        }
        assert!(flow.counts[0].received < flow.counts[1].received);
        assert_eq!(flow.counts[1].lost, flow.members.iter().map(|member| member.lost).sum::<u64>());
        assert_eq!(flow.counts[1].sent, flow.sent);
    }
}
