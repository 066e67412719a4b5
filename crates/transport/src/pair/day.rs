//! Sessions that depend on the time of day.

use super::node::UNIX_SECS;
use super::*;
use crate::config::{DayLimits, DayPeriod};
use crate::error::{Error, StartError};
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_core::time::Rate;

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

/// Time of the clock at the start of these sessions: 08:00 UTC.
const EIGHT: u32 = (UNIX_SECS % 86_400) as u32;

/// Limits the rate to 1 Mbit/s from 10 s to 25 s after 08:00 by a clock that is an hour ahead of UTC.
fn limits() -> DayLimits {
    let at = |secs: u32| EIGHT + 3_600 + secs;
    let period = DayPeriod { from: at(10), to: at(25), limit: Some(Rate::from_mbps(1.0)) };
    DayLimits::new(vec![period], None, |_| 3_600).expect("one period")
}

/// Returns the mean rate of the source between two times in seconds, in Mbit/s.
fn mbps(net: &Net, source: usize, from: u64, to: u64) -> f64 {
    let bytes = net.trace.sent[source].between(Time::ZERO + secs(from), Time::ZERO + secs(to));
    bytes as f64 * 8.0 / (to - from) as f64 / 1e6
}

/// Layers that the limit has switched off are joined again up to 30 s after its end.
#[test]
fn rate_respects_the_limit_of_the_time_of_day_with_every_scheme() {
    for entry in CATALOGUE {
        let mut net = Net::new(7).with_trunk(Link::millis(5).mbps(5.0).fifo(20_000));
        let all = net.receivers(2, Link::millis(5), Link::millis(5));
        let offer = Offer::zeros(30_000_000).by(entry.name).at_most_mbps(4.0);
        let source = net.source(offer.limited_by_day(limits()));
        net.run_for(secs(65));
        let rates = [(3, 10), (12, 25), (57, 65)].map(|(from, to)| mbps(&net, source, from, to));
        println!("{}: {rates:.2?} Mbit/s", entry.name);
        let [before, limited, after] = rates;
        assert!((0.7..=1.1).contains(&limited), "{}: {limited}", entry.name);
        assert!(before > 1.5 && after > 1.5, "{}: {before} before, {after} after", entry.name);
        net.run_to_end(secs(600));
        net.assert_all_verified(source, all);
    }
}

#[test]
fn lower_one_of_two_limits_applies() {
    let mut net = Net::new(8).with_trunk(Link::millis(5).mbps(8.0).fifo(40_000));
    net.receivers(1, Link::millis(5), Link::millis(5));
    let source = net.source(Offer::zeros(20_000_000).at_most_mbps(2.0).limited_by_day(limits()));
    net.run_for(secs(45));
    let rates = [(4, 10), (12, 25), (30, 45)].map(|(from, to)| mbps(&net, source, from, to));
    for (rate, limit) in rates.into_iter().zip([2.0, 1.0, 2.0]) {
        assert!((0.8 * limit..=1.1 * limit).contains(&rate), "{rates:?}");
    }
}
