//! Receivers and sources that start, end and return.

use super::*;
use crate::endpoint::Endpoint;
use crate::error::{Error, StartError};
use crate::event::IncompleteReceiver;

const MIN_INTERVAL: Span = Span::from_millis(5);

fn net(seed: u64) -> Net {
    Net::new(seed).with_trunk(Link::millis(5).mbps(100.0).fifo(100_000))
}

fn path() -> Link {
    Link::millis(2).losing(0.01)
}

/// Returns the number of content bytes that a receiver has verified.
fn verified(net: &Net, receiver: usize) -> u64 {
    let reported = net.receivers[receiver].events.iter().rev().find_map(|(_, event)| match event {
        Event::Progress(progress) => Some(progress.bytes),
        _ => None,
    });
    reported.unwrap_or(0)
}

#[test]
fn late_joiner_gets_the_whole_content() {
    let mut net = net(1);
    let early = net.receivers(2, path(), path());
    let source = net.source(Offer::bytes(20_000_000).at_most_mbps(50.0));
    net.run_for(secs(2));
    let late = net.receivers(1, path(), path());
    net.run_to_end(secs(60));
    net.assert_all_verified(source, early.start..late.end);
    let report = net.sources[source].report();
    assert_eq!(report.verified, 3);
    println!("late joiner: sent {:.3} x the content", report.repair_ratio);
    assert!(report.repair_ratio < 2.0, "only what it has missed is sent again: {}", report.repair_ratio);
}

#[test]
fn restarted_receiver_fetches_only_the_remainder() {
    let mut net = net(2);
    let all = net.receivers(2, path(), path());
    let source = net.source(Offer::bytes(20_000_000).at_most_mbps(40.0));
    net.run_for(secs(3));
    let sent = net.trace.sent[source].total();
    net.kill_receiver(0);
    net.run_for(Span::from_millis(300));
    net.start_receiver(0);
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all);
    let (report, resumed) = (net.sources[source].report(), net.receivers[0].report().resumed_bytes);
    println!("killed and resumed: {resumed} bytes resumed, sent {:.3} x the content", report.repair_ratio);
    // The remaining data was lost, and the repairs had not arrived yet.
    assert!(resumed as f64 > 0.8 * sent as f64, "{resumed} of {sent}");
    assert_eq!((report.verified, report.receivers), (2, 2), "the same host counts once");
    assert!(report.repair_ratio < 1.3, "{}", report.repair_ratio);
}

#[test]
fn receivers_resume_with_a_restarted_source() {
    let mut net = net(3);
    let all = net.receivers(3, path(), path());
    let source = net.source(Offer::bytes(20_000_000).at_most_mbps(40.0));
    net.run_for(secs(5));
    let first = net.sources[source].id;
    net.kill_source(source);
    net.run_for(secs(1));
    net.start_source(source);
    assert_ne!(net.sources[source].id, first);
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all.clone());
    let report = net.sources[source].report();
    println!("source restarted: sent {:.3} x the content in the second session", report.repair_ratio);
    assert!(report.repair_ratio < 0.7, "only the rest is sent: {}", report.repair_ratio);
    for receiver in all {
        assert!(net.receivers[receiver].report().refetched_bytes == 0);
    }
}

#[test]
fn session_resumes_after_source_and_receivers_restart() {
    let mut net = net(4);
    let all = net.receivers(2, path(), path());
    let source = net.source(Offer::bytes(20_000_000).at_most_mbps(40.0));
    net.run_for(secs(3));
    net.kill_source(source);
    all.clone().for_each(|receiver| net.kill_receiver(receiver));
    net.run_for(secs(5));
    net.start_source(source);
    all.clone().for_each(|receiver| net.start_receiver(receiver));
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all);
    let report = net.sources[source].report();
    assert!(report.repair_ratio < 0.8, "only the rest is sent: {}", report.repair_ratio);
}

#[test]
fn stopped_receiver_is_reported_and_does_not_delay_others() {
    let mut net = net(5);
    let all = net.receivers(2, path(), path());
    let source = net.source(Offer::bytes(20_000_000).at_most_mbps(40.0).wait_secs(2));
    net.run_for(secs(2));
    let now = net.now;
    if let Some(session) = &mut net.receivers[0].session {
        session.stop(now);
    }
    net.run_to_end(secs(60));
    let report = net.receivers[0].report();
    assert!(report.stopped && report.resumes && !report.ok, "{report:?}");
    assert!(net.receivers[1].report().ok);
    let report = net.sources[source].report();
    assert!(!report.ok);
    assert_eq!(
        report.incomplete,
        [IncompleteReceiver { host: "host0".to_owned(), reason: "the receiver was stopped".to_owned() }]
    );
    assert_eq!(report.verified, 1);
    assert_eq!(all.len(), 2);
}

#[test]
fn source_waits_for_all_expected_receivers() {
    let mut net = net(6);
    net.receivers(2, path(), path());
    let source = net.source(Offer::bytes(2_000_000).expect(3).wait_secs(30));
    net.run_for(secs(8));
    assert_eq!(verified(&net, 0), 0, "nothing is sent before the third has come");
    net.receivers(1, path(), path());
    net.run_to_end(secs(60));
    net.assert_all_verified(source, 0..3);
    let report = net.sources[source].report();
    assert!(
        report.until_data.as_secs_f64() >= 8.0 && report.until_data.as_secs_f64() < 9.5,
        "{}",
        report.until_data.as_secs_f64()
    );
}

#[test]
fn source_starts_after_the_join_timeout_and_names_absent_hosts() {
    let mut net = net(7);
    let all = net.receivers(2, path(), path());
    let source = net.source(Offer::bytes(2_000_000).expect(3).wait_secs(5));
    net.run_to_end(secs(60));
    all.for_each(|receiver| assert!(net.receivers[receiver].report().ok));
    let report = net.sources[source].report();
    assert!(!report.ok);
    assert_eq!((report.missing, report.verified), (1, 2));
    let warned = net.reported(
        source,
        |event| matches!(event, Event::Warning { message, .. } if message.contains("2 of 3")),
    );
    assert!(warned.is_some_and(|at| at >= Time::ZERO + secs(5) && at <= Time::ZERO + secs(5) + MIN_INTERVAL));
    assert!(
        report.until_data.as_secs_f64() >= 5.0 && report.until_data.as_secs_f64() < 5.1,
        "{}",
        report.until_data.as_secs_f64()
    );
}

#[test]
fn source_without_receivers_ends_after_the_join_timeout() {
    let mut net = net(8);
    let source = net.source(Offer::bytes(2_000).wait_secs(4));
    net.run_to_end(secs(10));
    assert!(matches!(net.sources[source].ended, Some(Err(Error::Start(StartError::NoReceiver { .. })))));
    // The source announces its end four times.
    let closing = MIN_INTERVAL + Span::from_millis(50);
    assert!(net.now >= Time::ZERO + secs(4) && net.now <= Time::ZERO + secs(4) + closing, "{:?}", net.now);
}
