//! Sessions that depend on the time of day.

use super::*;
use crate::error::{Error, StartError};
use faircast_core::schemes::{CATALOGUE, Scheme};

/// Time at which these sessions may start. It is later than the idle timeout of sources and receivers.
const START: u64 = 90;

fn net(seed: u64) -> Net {
    Net::new(seed).with_trunk(Link::millis(5).mbps(40.0).fifo(100_000))
}

/// Returns the time in seconds from the start of the source to the first content.
fn until_data(net: &Net, source: usize) -> f64 {
    net.sources[source].report().until_data.as_secs_f64()
}

#[test]
fn content_is_sent_at_the_start_time_with_every_scheme() {
    for entry in CATALOGUE {
        let mut net = net(1);
        let early = net.receivers(2, Link::millis(5), Link::millis(5));
        let source = net.source(Offer::bytes(500_000).by(entry.name).not_before_secs(START));
        net.run_for(secs(START - 1));
        let late = net.receivers(1, Link::millis(5), Link::millis(5));
        net.run_to_end(secs(300));
        net.assert_all_verified(source, early.start..late.end);
        let until_data = until_data(&net, source);
        assert!((START as f64..START as f64 + 0.2).contains(&until_data), "{}: {until_data}", entry.name);
    }
}

#[test]
fn one_way_content_is_sent_at_the_start_time() {
    let one_rate = |name: &&str| name.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() <= 1);
    for scheme in CATALOGUE.iter().map(|entry| entry.name).filter(one_rate) {
        let mut net = net(2);
        let all = net.receivers(1, Link::millis(5), Link::millis(5));
        net.receivers[0].replay_policy = crate::config::ReplayPolicy::Clock;
        net.start_receiver(0);
        let offer = Offer::bytes(100_000).by(scheme).not_before_secs(START);
        let source = net.source(offer.one_way_at_mbps(8.0, crate::config::Repeat::Rounds(1)));
        net.run_to_end(secs(300));
        net.assert_all_verified(source, all);
        let until_data = until_data(&net, source);
        assert!((START as f64..START as f64 + 0.01).contains(&until_data), "{scheme}: {until_data}");
    }
}

#[test]
fn expected_receivers_start_a_session_no_earlier_than_its_time() {
    let mut net = net(3);
    let all = net.receivers(2, Link::millis(5), Link::millis(5));
    let source = net.source(Offer::bytes(500_000).expect(2).not_before_secs(START).wait_secs(300));
    net.run_to_end(secs(400));
    net.assert_all_verified(source, all);
    assert!((START as f64..START as f64 + 0.1).contains(&until_data(&net, source)));
}

#[test]
fn start_time_ends_the_wait_for_missing_receivers() {
    let mut net = net(4);
    net.receivers(1, Link::millis(5), Link::millis(5));
    let source = net.source(Offer::bytes(500_000).expect(2).not_before_secs(START));
    net.run_to_end(secs(300));
    let report = net.sources[source].report();
    assert_eq!((report.ok, report.verified, report.missing), (false, 1, 1), "{report:?}");
    assert!((START as f64..START as f64 + 0.1).contains(&until_data(&net, source)));
}

#[test]
fn request_to_start_overrides_the_start_time() {
    let mut net = net(5);
    let all = net.receivers(1, Link::millis(5), Link::millis(5));
    let source = net.source(Offer::bytes(500_000).not_before_secs(START));
    net.run_for(secs(3));
    net.sources[source].offer.start.start();
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all);
}

#[test]
fn source_without_receivers_fails_at_the_start_time() {
    let mut net = net(6);
    let source = net.source(Offer::bytes(2_000).not_before_secs(START));
    net.run_to_end(secs(START + 1));
    let Some(Err(Error::Start(StartError::NoReceiver { waited, .. }))) = &net.sources[source].ended else {
        panic!("{:?}", net.sources[source].ended);
    };
    assert_eq!(waited.as_secs(), START);
}
