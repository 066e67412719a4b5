//! Receivers that start late, and the time that is lost by waiting for them.

use super::*;
use faircast_core::schemes::{CATALOGUE, Feedback};

/// Returns the schemes whose receivers send reports. Sources of other schemes wait for no receiver.
fn schemes_with_feedback() -> impl Iterator<Item = &'static str> {
    let reporting = CATALOGUE.iter().filter(|entry| entry.feedback == Feedback::Reports);
    reporting.map(|entry| entry.name)
}

/// Checks that a late receiver does not slow the transfer down. The last receiver joins `late_secs` after the other receivers. A
/// transfer of 4 MB is measured from the first data packet, in three networks. Its median duration may grow by at most a fifth.
fn assert_wait_costs_nothing(scheme: &'static str, receivers: usize, late_secs: u64) {
    let (mut together, mut late) = (Vec::new(), Vec::new());
    for seed in [7, 8, 9] {
        for (times, secs) in [(&mut together, 0), (&mut late, late_secs)] {
            times.push(one_transfer(seed, scheme, receivers, secs));
            times.sort_by(f64::total_cmp);
        }
        // The median of three values is between the smaller and the larger one of any two of these values, so two networks can be
        // sufficient.
        if together.len() == 2 && late[1] <= 1.2 * together[0] {
            break;
        }
    }
    println!("{scheme}: {together:.2?} s together, {late:.2?} s after a wait of {late_secs} s");
    assert!(late[1] <= 1.2 * together[1], "{scheme}: {late:.2?} after {together:.2?}");
}

fn one_transfer(seed: u64, scheme: &'static str, receivers: usize, late_secs: u64) -> f64 {
    let mut net = Net::new(seed).with_trunk(Link::millis(5).mbps(40.0).fifo(100_000));
    let link = (Link::millis(5), Link::millis(10));
    net.receivers(receivers - 1, link.0, link.1);
    let source = net.source(Offer::bytes(4_000_000).by(scheme).expect(receivers as u32).wait_secs(60));
    net.run_for(secs(late_secs));
    net.receivers(1, link.0, link.1);
    net.run_to_end(secs(600));
    net.assert_all_verified(source, 0..receivers);
    net.sources[source].report().duration.as_secs_f64()
}

#[test]
fn wait_for_the_second_receiver_does_not_slow_the_transfer() {
    for scheme in schemes_with_feedback() {
        assert_wait_costs_nothing(scheme, 2, 15);
    }
}

#[test]
fn wait_for_thirty_receivers_does_not_slow_the_transfer() {
    for scheme in schemes_with_feedback() {
        assert_wait_costs_nothing(scheme, 30, 59);
    }
}

#[test]
fn expired_join_timeout_does_not_slow_present_receivers() {
    for scheme in schemes_with_feedback() {
        let run = |expect| {
            let mut net = Net::new(8).with_trunk(Link::millis(5).mbps(40.0).fifo(100_000));
            net.receivers(2, Link::millis(5), Link::millis(10));
            let source = net.source(Offer::bytes(4_000_000).by(scheme).expect(expect).wait_secs(20));
            net.run_to_end(secs(600));
            assert_eq!(net.sources[source].report().verified, 2);
            // Measure until the last receiver ends: afterwards the source still waits for the missing receiver.
            let last = net.receivers.iter().map(|node| node.ended_at.as_secs_f64()).fold(0.0, f64::max);
            last - net.sources[source].report().until_data.as_secs_f64()
        };
        let (all, missing) = (run(2), run(3));
        println!("{scheme}: {all:.2} s with all, {missing:.2} s after a wait in vain");
        assert!(missing <= 1.2 * all, "{scheme}: {missing} after {all}");
    }
}
