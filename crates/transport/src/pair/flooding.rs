//! Sessions in layers on networks that carry every layer to every host.

use super::*;
use faircast_core::schemes::{CATALOGUE, Scheme};

/// Returns the schemes with several layers. All layers together have a higher rate than any link of these tests.
fn layered() -> Vec<&'static str> {
    let schemes = CATALOGUE.iter().map(|entry| entry.name);
    let layered = schemes.filter(|name| name.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() > 1));
    layered.collect()
}

/// Builds a fast receiver, and a receiver behind a link of 20 Mbit/s.
fn two(scheme: &'static str, network: Network) -> (Net, usize, Range<usize>, Range<usize>) {
    let mut net = Net::new(17);
    let fast = net.receivers(1, Link::millis(5).mbps(100.0).fifo(200_000), Link::millis(5));
    let slow = net.receivers(1, Link::millis(5).mbps(20.0).fifo(100_000), Link::millis(5));
    for receiver in [fast.start, slow.start] {
        net.group_of(receiver).floods = network == Network::Floods;
    }
    let source = net.source(Offer::bytes(20_000_000).by(scheme).expect(2));
    (net, source, fast, slow)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    Snoops,
    Floods,
}

fn warned(events: &[(Time, Event)]) -> Option<f64> {
    let found = events
        .iter()
        .find(|(_, event)| matches!(event, Event::Warning { message, .. } if message.contains("querier")));
    found.map(|(at, _)| at.as_secs_f64())
}

#[test]
fn flooded_receiver_completes_within_ninety_seconds() {
    for scheme in layered() {
        let (mut net, source, fast, slow) = two(scheme, Network::Floods);
        net.run_to_end(secs(300));
        net.assert_all_verified(source, fast.clone());
        net.assert_all_verified(source, slow.clone());
        let ended = |receivers: &Range<usize>| net.receivers[receivers.start].ended_at.as_secs_f64();
        let reported = (warned(&net.receivers[slow.start].events), warned(&net.sources[source].events));
        println!("{scheme}: fast {} s, slow {} s, warned {reported:?}", ended(&fast), ended(&slow));
        assert!(ended(&slow) < 90.0, "{scheme}: {} s for what takes 8 s at the link's rate", ended(&slow));
        // The rates of RLC are fixed, so both endpoints must detect the flooding.
        if scheme == "rlc" {
            assert!(
                reported.0.is_some_and(|at| at < 15.0) && reported.1.is_some_and(|at| at < 16.0),
                "{reported:?}"
            );
        }
    }
}

#[test]
fn no_flood_warning_is_given_if_routers_prune_groups() {
    for scheme in layered() {
        let (mut net, source, fast, slow) = two(scheme, Network::Snoops);
        net.run_to_end(secs(300));
        for receiver in [fast.start, slow.start] {
            assert_eq!(warned(&net.receivers[receiver].events), None, "{scheme}");
        }
        assert_eq!(warned(&net.sources[source].events), None, "{scheme}");
    }
}

/// The link of the receiver that reports flooding is too slow for the base layer itself. Slowing other receivers down does not
/// help this receiver.
#[test]
fn unfounded_flood_report_delays_others_by_seconds_only() {
    let time_of_fast = |slow: usize| {
        let mut net = Net::new(3);
        let fast = net.receivers(1, Link::millis(5).mbps(40.0).fifo(60_000), Link::millis(5));
        net.receivers(slow, Link::millis(5).mbps(0.3).fifo(15_000), Link::millis(5));
        net.source(Offer::bytes(20_000_000).by("rlc").expect(1 + slow as u32));
        net.run_until(secs(300), |net| net.receivers[fast.start].ended_at > Time::ZERO);
        net.receivers[fast.start].ended_at.as_secs_f64()
    };
    let (alone, beside) = (time_of_fast(0), time_of_fast(1));
    println!("{alone} s alone, {beside} s beside one that complains");
    assert!(beside <= alone + 15.0, "{beside} s beside one that complains, {alone} s alone");
}
