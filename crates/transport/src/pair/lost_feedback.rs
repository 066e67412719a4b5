//! Loss of feedback or data, for a while or permanently: the rate must fall, and recover after the loss.

use super::*;
use faircast_core::schemes::{CATALOGUE, Feedback};

/// Returns the schemes whose receivers send reports. RLC has no reports: its rates are fixed, and receivers leave layers that are
/// too fast for them.
fn schemes_with_feedback() -> impl Iterator<Item = &'static str> {
    let reporting = CATALOGUE.iter().filter(|entry| entry.feedback == Feedback::Reports);
    reporting.map(|entry| entry.name)
}

const TRUNK: f64 = 20.0;

/// Builds three receivers 40 ms away, and a source that has been sending for this number of seconds.
fn running(scheme: &'static str, seconds: u64) -> Net {
    let mut net = Net::new(11).with_trunk(trunk());
    net.receivers(3, Link::millis(10), Link::millis(20));
    net.source(Offer::zeros(150_000_000).by(scheme).expect(3).wait_secs(120));
    net.run_for(secs(seconds));
    net
}

fn trunk() -> Link {
    Link::millis(10).mbps(TRUNK).fifo(100_000)
}

/// Returns the bytes per second sent within the last `millis` milliseconds.
fn sent(net: &Net, millis: u64) -> f64 {
    let bytes = net.trace.sent[0].between(net.now - Span::from_millis(millis), net.now);
    bytes as f64 * 1000.0 / millis as f64
}

/// Returns the rate in each half second after a fault, as a fraction of the rate before.
fn falls(net: &mut Net, halves: usize) -> Vec<f64> {
    let before = sent(net, 2_000);
    let half = |net: &mut Net| {
        net.run_for(Span::from_millis(500));
        sent(net, 500) / before
    };
    (0..halves).map(|_| half(net)).collect()
}

/// Checks the rate as a fraction of the earlier rate: below an eighth after four seconds, and below 3 % after six seconds.
#[track_caller]
fn assert_gives_way(scheme: &str, parts: &[f64]) {
    println!("{scheme}: {}", parts.iter().map(|part| format!("{part:.3}")).collect::<Vec<_>>().join(" "));
    assert!(parts[8..].iter().all(|part| *part < 0.125), "{scheme}: {parts:?}");
    assert!(parts[12..].iter().all(|part| *part < 0.03), "{scheme}: {parts:?}");
}

#[test]
fn every_source_slows_down_without_feedback() {
    for scheme in schemes_with_feedback() {
        let mut net = running(scheme, 10);
        net.group_of(0).up.set_link(Link::millis(20).losing(1.0));
        let parts = falls(&mut net, 16);
        assert_gives_way(scheme, &parts);
    }
}

#[test]
fn every_source_slows_down_when_only_small_packets_pass() {
    for scheme in schemes_with_feedback() {
        let mut net = running(scheme, 10);
        net.group_of(0).down.set_link(Link::millis(10).dropping_above(1000));
        let parts = falls(&mut net, 16);
        assert_gives_way(scheme, &parts);
    }
}

#[test]
fn rate_reaches_half_its_earlier_value_soon_after_an_outage() {
    for scheme in schemes_with_feedback() {
        for outage in [4, 10] {
            let mut net = running(scheme, 20);
            let before = sent(&net, 5_000);
            net.trunk.set_link(trunk().losing(1.0));
            net.group_of(0).up.set_link(Link::millis(20).losing(1.0));
            net.run_for(secs(outage));
            net.trunk.set_link(trunk());
            net.group_of(0).up.set_link(Link::millis(20));
            let restored = net.now;
            let mut back = None;
            while back.is_none() && net.now < restored + secs(20) {
                net.run_for(Span::from_millis(100));
                // The measurement window is short. TFMCC's rate may grow by only one packet per round trip, and the mean over a
                // longer window would be outdated.
                let is_back = sent(&net, 100) >= before / 2.0;
                back = is_back.then(|| net.now.since(restored).as_secs_f64());
            }
            println!("{scheme}: after {outage} s back at half of {:.1} Mbit/s in {back:?} s", before * 8e-6);
            assert!(back.is_some_and(|back| back <= 2.0), "{scheme}: {back:?}");
        }
    }
}
