//! Paths that fail.

use super::*;
use crate::error::{Error, TransferError};

#[test]
fn source_without_feedback_slows_down_and_names_silent_hosts() {
    let mut net = Net::new(1).with_trunk(Link::millis(5).mbps(50.0).fifo(100_000));
    let all = net.receivers(2, Link::millis(5), Link::millis(5));
    let source = net.source(Offer::zeros(100_000_000).expect(2));
    net.run_for(secs(5));
    net.group_of(all.start).up.set_link(Link::millis(5).losing(1.0));
    net.run_until(secs(120), |net| net.sources[source].ended.is_some());
    let cut = Time::ZERO + secs(5);
    let rate = |from: u64, to: u64| {
        let sent = net.trace.sent[source].between(cut + secs(from), cut + secs(to));
        sent as f64 * 8e-6 / (to - from) as f64
    };
    let before = net.trace.sent[source].between(cut - secs(2), cut) as f64 * 8e-6 / 2.0;
    let (ended, report) = (net.now.since(cut).as_secs_f64(), net.sources[source].report());
    println!(
        "feedback dead: {before:.1} Mbit/s before, {:.1} in the first 2 s, {:.1} in 6..8, {:.1} in 8..10; ended after {ended:.1} s",
        rate(0, 2),
        rate(6, 8),
        rate(8, 10)
    );
    assert!(rate(8, 10) < 0.5 * before, "it slows down");
    assert!(ended < 40.0, "{ended}");
    assert!(!report.ok);
    assert_eq!(report.verified, 0);
    assert_eq!(report.incomplete.len(), 2);
    assert!(report.incomplete.iter().all(|one| one.reason == "silent"), "{:?}", report.incomplete);
}

#[test]
fn receivers_of_a_silent_source_end_and_report_verified_bytes() {
    let mut net = Net::new(2).with_trunk(Link::millis(5).mbps(50.0).fifo(100_000));
    let all = net.receivers(2, Link::millis(5), Link::millis(5));
    net.source(Offer::bytes(40_000_000).expect(2));
    net.run_for(secs(4));
    net.group_of(all.start).down.set_link(Link::millis(5).losing(1.0));
    net.run_to_end(secs(120));
    for receiver in all {
        let node = &net.receivers[receiver];
        assert!(node.ended_at <= Time::ZERO + secs(26), "{}", node.ended_at.as_secs_f64());
        match &node.ended {
            Some(Err(Error::Transfer(TransferError::SourceSilent { verified_bytes, .. }))) => {
                assert!(*verified_bytes > 5_000_000, "{verified_bytes}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn transfer_completes_soon_after_an_outage_of_four_seconds() {
    let mut net = Net::new(3).with_trunk(Link::millis(5).mbps(50.0).fifo(100_000));
    let all = net.receivers(2, Link::millis(5), Link::millis(5));
    let source = net.source(Offer::bytes(30_000_000).expect(2));
    net.run_for(secs(3));
    for dead in [true, false] {
        let loss = if dead { 1.0 } else { 0.0 };
        net.group_of(all.start).down.set_link(Link::millis(5).losing(loss));
        net.group_of(all.start).up.set_link(Link::millis(5).losing(loss));
        net.run_for(secs(4));
    }
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all);
    println!(
        "4 s of outage: done after {:.1} s (4.8 s of sending)",
        net.sources[source].report().duration.as_secs_f64()
    );
    assert!(net.sources[source].report().duration.as_secs_f64() < 30.0);
}
