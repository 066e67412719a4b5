//! Waiting for receivers, and reports about absent hosts and stopped sessions, with every scheme.

use super::*;
use crate::endpoint::Endpoint as _;
use crate::error::{EndReason, Error, StartError, TransferError};
use crate::event::{ReceiverOutcome, ReceiverReport, SendReport};
use faircast_core::schemes::CATALOGUE;
use faircast_wire::GroupKey;
use std::fs;

fn net(seed: u64) -> Net {
    Net::new(seed).with_trunk(Link::millis(5).mbps(20.0).fifo(50_000))
}

fn path() -> Link {
    Link::millis(2)
}

fn outcomes(each: &[ReceiverReport]) -> Vec<(&str, ReceiverOutcome)> {
    each.iter().map(|one| (one.host.as_str(), one.outcome)).collect()
}

/// Runs until the source has ended. Returns the source's report, and the time in seconds.
fn ended(net: &mut Net, source: usize) -> (SendReport, f64) {
    net.run_until(secs(300), |net| net.sources[source].session.is_none());
    (net.sources[source].report().clone(), net.now.as_secs_f64())
}

#[test]
fn source_waits_for_the_join_timeout_only_once() {
    for entry in CATALOGUE {
        let mut net = net(1);
        net.receivers(2, path(), path());
        let offer = Offer::bytes(300_000).by(entry.name).require(&["host0", "host1", "host7"]).wait_secs(6);
        let source = net.source(offer);
        let (report, at) = ended(&mut net, source);
        let name = entry.name;
        assert!((5.9..7.0).contains(&report.until_data.as_secs_f64()), "{name}: {report:?}");
        assert!(
            at < report.until_data.as_secs_f64() + report.duration.as_secs_f64() + 1.0,
            "{name}: ended after {at} s: {report:?}"
        );
        assert_eq!((report.verified, &report.absent), (2, &vec!["host7".to_owned()]), "{name}");
        // The path takes 7 ms there and 2 ms back. RLC stores no sending times.
        for one in report.each.iter().filter(|one| one.outcome == ReceiverOutcome::Verified) {
            let is_near = one.rtt.is_some_and(|rtt| (8..30).contains(&rtt.as_millis()));
            assert_eq!(is_near, name != "rlc", "{name}: {one:?}");
        }
        // The duration that receivers report also excludes the wait.
        let took = net.receivers[0].report().duration.as_secs_f64();
        assert!(
            took > 0.0 && took < report.duration.as_secs_f64() + 0.5,
            "{name}: {took} s of {} s",
            report.duration.as_secs_f64()
        );
    }
}

#[test]
fn start_request_begins_a_session_with_the_present_receivers() {
    for entry in CATALOGUE {
        let mut net = net(2);
        net.receivers(2, path(), path());
        let offer = Offer::bytes(300_000).by(entry.name).require(&["host0", "host1", "host7"]).wait_secs(600);
        let start = offer.start.clone();
        let source = net.source(offer);
        net.run_for(secs(3));
        assert!(!start.is_finished() && net.sources[source].session.is_some(), "{}", entry.name);
        start.start();
        let (report, at) = ended(&mut net, source);
        assert!(report.until_data.as_secs_f64() < 5.0 && start.is_finished(), "{}: {report:?}", entry.name);
        assert!(
            at < report.until_data.as_secs_f64() + report.duration.as_secs_f64() + 1.0,
            "{}: {at} s: {report:?}",
            entry.name
        );
        assert_eq!((report.verified, report.absent.len()), (2, 1), "{}", entry.name);
    }
}

#[test]
fn start_request_before_any_join_waits_for_the_first_receiver() {
    let mut net = net(3);
    let offer = Offer::bytes(300_000).expect(2).wait_secs(600);
    offer.start.start();
    let source = net.source(offer);
    net.run_for(secs(3));
    assert!(net.sources[source].session.is_some());
    net.receivers(1, path(), path());
    let (report, at) = ended(&mut net, source);
    assert!(report.verified == 1 && report.missing == 1 && at < 10.0, "{at}: {report:?}");
}

#[test]
fn receiver_that_fails_before_the_start_is_counted_once() {
    for entry in CATALOGUE {
        let mut net = net(4);
        net.receivers(2, path(), path());
        let offer = Offer::bytes(300_000).by(entry.name).require(&["host0", "host1", "host7"]).wait_secs(6);
        let source = net.source(offer);
        // A non-empty directory exists at the path of the file.
        let name = net.sources[source].content.file_name().expect("it has a name").to_owned();
        fs::create_dir_all(net.receivers[0].dir.join(name).join("kept")).expect("a directory is made");
        let (report, _) = ended(&mut net, source);
        let expected = [
            ("host0", ReceiverOutcome::Incomplete),
            ("host1", ReceiverOutcome::Verified),
            ("host7", ReceiverOutcome::Absent),
        ];
        assert_eq!(outcomes(&report.each), expected, "{}", entry.name);
        let named: Vec<&str> = report.incomplete.iter().map(|one| one.host.as_str()).collect();
        assert_eq!((named, report.absent), (vec!["host0"], vec!["host7".to_owned()]), "{}", entry.name);
    }
}

#[test]
fn host_with_another_key_is_reported_as_refused() {
    let keys = [7, 8].map(|byte| GroupKey::from_bytes([byte; 32]));
    let mut net = net(5);
    for key in &keys {
        net.receivers_with(1, path(), path(), None, Some(key.clone()));
    }
    let offer =
        Offer::bytes(300_000).sealed(keys[0].clone()).require(&["host0", "host1", "host7"]).wait_secs(6);
    let source = net.source(offer);
    let (report, _) = ended(&mut net, source);
    let expected = [
        ("host0", ReceiverOutcome::Verified),
        ("host1", ReceiverOutcome::Refused),
        ("host7", ReceiverOutcome::Absent),
    ];
    assert_eq!(outcomes(&report.each), expected);
    let reason = report.each[1].reason.as_deref().unwrap_or_default();
    assert!(reason.starts_with("refused: it has another key ("), "{reason}");
    assert_eq!((report.refused_hosts.len(), report.absent), (1, vec!["host7".to_owned()]));
}

#[test]
fn error_without_receivers_lists_the_hosts_that_refused() {
    let keys = [7, 8].map(|byte| GroupKey::from_bytes([byte; 32]));
    let mut net = net(6);
    net.receivers_with(1, path(), path(), None, Some(keys[1].clone()));
    net.receivers(1, path(), path());
    let source = net.source(Offer::bytes(1_000).sealed(keys[0].clone()).expect(2).wait_secs(6));
    net.run_until(secs(60), |net| net.sources[source].session.is_none());
    let Some(Err(error @ Error::Start(StartError::NoReceiver { each, .. }))) = &net.sources[source].ended
    else {
        panic!("{:?}", net.sources[source].ended)
    };
    assert_eq!(each.len(), 2, "{each:?}");
    let message = error.to_string();
    assert!(message.starts_with("no receiver joined; host0 has another key ("), "{message}");
    assert!(message.ends_with("host1 has no key"), "{message}");
    let last = net.sources[source].events.iter().rev().find_map(|(_, event)| match event {
        Event::Progress(progress) => Some(progress.joining.is_some()),
        _ => None,
    });
    assert_eq!(last, Some(true), "no progress of a transfer that never began");
}

#[test]
fn stopped_source_reports_its_receivers_and_notifies_them() {
    for entry in CATALOGUE {
        let mut net = net(7);
        let all = net.receivers(2, path(), path());
        let source = net.source(Offer::bytes(20_000_000).by(entry.name).at_most_mbps(8.0).expect(2));
        net.run_for(secs(3));
        let now = net.now;
        net.sources[source].session.as_mut().expect("it sends").stop(now);
        net.run_to_end(secs(60));
        let report = net.sources[source].report();
        assert!(report.stopped && !report.ok && report.verified == 0, "{}: {report:?}", entry.name);
        let expected = [("host0", ReceiverOutcome::Incomplete), ("host1", ReceiverOutcome::Incomplete)];
        assert_eq!(outcomes(&report.each), expected, "{}", entry.name);
        let most = report.each.iter().map(|one| one.verified_bytes).max().unwrap_or_default();
        assert_eq!(report.moved_bytes, most, "{}: content that no receiver has is not counted", entry.name);
        for receiver in all {
            let ended = &net.receivers[receiver].ended;
            let is_reported = matches!(
                ended,
                Some(Err(Error::Transfer(TransferError::Ended { reason: EndReason::Stopped, .. })))
            );
            assert!(is_reported, "{}: {ended:?}", entry.name);
        }
    }
}

/// Stops the first receiver after its completion has reached `parent`, and before the receiver is confirmed. Returns the number
/// of verified receivers in the source's report.
fn stop_once_completed(net: &mut Net, parent: impl Fn(&Net) -> &[(Time, Event)]) -> u64 {
    let completed = |(_, event): &(Time, Event)| matches!(event, Event::Left { host, verified: true, .. } if host == "host0");
    net.run_until(secs(60), |net| parent(net).iter().any(completed));
    let now = net.now;
    net.receivers[0].session.as_mut().expect("it waits for the answer").stop(now);
    net.run_to_end(secs(120));
    let report = net.sources[0].report();
    assert!(report.ok && report.incomplete.is_empty(), "{report:?}");
    report.verified
}

#[test]
fn receiver_stopped_after_its_completion_counts_as_verified() {
    for entry in CATALOGUE {
        let mut net = net(8);
        net.receivers(1, path(), path());
        net.receivers(1, Link::millis(300), path());
        net.source(Offer::bytes(300_000).by(entry.name).expect(2));
        assert_eq!(stop_once_completed(&mut net, |net| &net.sources[0].events), 2, "{}", entry.name);
    }
    for name in tree::schemes() {
        let mut tree = Net::of(8, Offer::bytes(300_000).by(name).expect(2));
        let relay = tree.relay(Head::Source(0), 1, 64 << 20, Link::millis(200).mbps(50.0));
        tree.behind(tree::branch(relay, 0), 2, Link::millis(3).mbps(40.0));
        tree.start();
        assert_eq!(stop_once_completed(&mut tree, |tree| &tree.relays[0].events), 2, "{name}");
    }
}
