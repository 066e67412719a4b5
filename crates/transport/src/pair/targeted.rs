//! Sessions for some of the receivers, which are named by patterns.

use super::*;
use crate::config::{Repeat, ReplayPolicy};
use crate::error::JoinObstacle;
use faircast_core::schemes::{CATALOGUE, Scheme};

/// Patterns of the first two receivers' host names.
const FIRST: &str = "host0,HOST1*";

/// Checks that a receiver has not joined, has stored nothing, and knows the reason.
fn assert_left_out(net: &Net, receiver: usize, why: &str) {
    let node = &net.receivers[receiver];
    let session = node.session.as_ref().unwrap_or_else(|| panic!("{why}: it waits for another session"));
    assert_eq!((session.seen(), session.scheme()), (Some(JoinObstacle::OtherHosts), None), "{why}");
    let stored = std::fs::read_dir(&node.dir).map_or(0, Iterator::count);
    assert_eq!(stored, 0, "{why}: nothing is stored");
    let reported = node.events.iter().any(
        |(_, event)| matches!(event, Event::Warning { message, .. } if message.contains("for other hosts")),
    );
    assert!(reported, "{why}: {:?}", node.events);
}

#[test]
fn only_named_hosts_take_part_with_every_scheme() {
    for entry in CATALOGUE {
        let mut net = Net::new(1).with_trunk(Link::millis(5).mbps(40.0).fifo(100_000));
        net.receivers(3, Link::millis(5), Link::millis(5));
        let source = net.source(Offer::bytes(2_000_000).by(entry.name).at_most_mbps(4.0).for_hosts(FIRST));
        net.run_until(secs(100), |net| net.sources[source].session.is_none());
        net.assert_all_verified(source, 0..2);
        assert_eq!(net.sources[source].report().receivers, 2, "{}", entry.name);
        assert_left_out(&net, 2, entry.name);
    }
}

#[test]
fn hosts_that_are_not_named_ignore_a_one_way_session() {
    let one_rate = |name: &&str| name.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() <= 1);
    for scheme in CATALOGUE.iter().map(|entry| entry.name).filter(one_rate) {
        let mut net = Net::new(2);
        for receiver in net.receivers(3, Link::millis(5), Link::millis(5)) {
            net.receivers[receiver].replay_policy = ReplayPolicy::Clock;
            net.start_receiver(receiver);
        }
        let offer = Offer::bytes(2_000_000).by(scheme).for_hosts(FIRST);
        let source = net.source(offer.one_way_at_mbps(4.0, Repeat::Rounds(1)));
        net.run_until(secs(100), |net| net.sources[source].session.is_none());
        net.assert_all_verified(source, 0..2);
        assert_left_out(&net, 2, scheme);
    }
}

#[test]
fn host_that_is_not_named_joins_the_next_session() {
    let mut net = Net::new(3);
    net.receivers(2, Link::millis(5), Link::millis(5));
    let first = net.source(Offer::bytes(500_000).for_hosts("host0"));
    net.run_until(secs(60), |net| net.sources[first].session.is_none());
    let second = net.source(Offer::bytes(500_000).for_hosts("host1"));
    net.run_to_end(secs(60));
    net.assert_all_verified(first, 0..1);
    net.assert_all_verified(second, 1..2);
}
