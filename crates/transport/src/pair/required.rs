//! Reports of a source about each of its receivers, and about required hosts.

use super::*;
use crate::event::{ReceiverOutcome, ReceiverReport};
use std::fs;

/// Upper bound of the size of a manifest that lists one file, bytes.
const LIST: u64 = 1_000;

fn net(seed: u64) -> Net {
    Net::new(seed).with_trunk(Link::millis(5).mbps(100.0).fifo(100_000))
}

fn path() -> Link {
    Link::millis(2).losing(0.01)
}

pub(super) fn of<'a>(net: &'a Net, source: usize, host: &str) -> &'a ReceiverReport {
    let report = net.sources[source].report();
    let one = report.each.iter().find(|one| one.host == host);
    one.unwrap_or_else(|| panic!("nothing is said of {host}: {:?}", report.each))
}

#[test]
fn report_states_the_reason_if_the_only_receiver_fails() {
    let mut net = net(1);
    net.receivers(1, path(), path());
    let source = net.source(Offer::bytes(2_000_000).expect(1).wait_secs(60));
    // A non-empty directory exists at the path of the file.
    let name = net.sources[source].content.file_name().expect("it has a name").to_owned();
    fs::create_dir_all(net.receivers[0].dir.join(name).join("kept")).expect("a directory is made");
    net.run_to_end(secs(120));
    let report = net.sources[source].report();
    assert!(!report.ok && report.verified == 0, "{report:?}");
    let ended = net.now.as_secs_f64();
    assert!(ended < 10.0, "it ends {ended} s after its start, and does not wait for somebody who has failed");
    let Some(Err(error)) = &net.receivers[0].ended else { panic!("it cannot put the file there") };
    let reason = &report.incomplete[0].reason;
    assert!(reason.ends_with(&error.in_full()), "{reason:?} is not {error}");
    assert_eq!(of(&net, source, "host0").outcome, ReceiverOutcome::Incomplete);
    assert_eq!(of(&net, source, "host0").reason.as_ref(), Some(reason));
}

#[test]
fn session_starts_without_absent_required_hosts_and_names_them() {
    let mut net = net(2);
    net.receivers(2, path(), path());
    let source = net.source(Offer::bytes(1_000_000).require(&["HOST1", "host7"]).wait_secs(4));
    net.run_for(secs(2));
    let joining = net.sources[source].events.iter().rev().find_map(|(_, event)| match event {
        Event::Progress(progress) => progress.joining.clone(),
        _ => None,
    });
    let joining = joining.expect("two have joined, and one of those that must has not");
    assert_eq!((joining.joined, joining.expected, joining.absent), (2, Some(2), vec!["host7".to_owned()]));
    net.run_to_end(secs(60));
    let report = net.sources[source].report();
    assert!(!report.ok, "host7 has not come");
    assert_eq!((report.verified, &report.absent), (2, &vec!["host7".to_owned()]));
    assert_eq!(of(&net, source, "host7").outcome, ReceiverOutcome::Absent);
    let one = of(&net, source, "host1");
    assert_eq!((one.outcome, one.receivers), (ReceiverOutcome::Verified, 1));
    assert!((1_000_000..1_000_000 + LIST).contains(&one.verified_bytes), "{one:?}");
    assert!(one.duration.as_secs_f64() > 0.0 && one.rate.bps() > 1e6 && one.reason.is_none(), "{one:?}");
}

#[test]
fn source_waits_for_a_required_host_that_starts_late() {
    let mut net = net(3);
    net.receivers(1, path(), path());
    let source = net.source(Offer::bytes(1_000_000).require(&["host0", "host1"]).wait_secs(30));
    net.run_for(secs(3));
    assert!(net.trace.sent[source].total() < 100_000, "it has only announced itself");
    net.receivers(1, path(), path());
    net.run_to_end(secs(60));
    net.assert_all_verified(source, 0..2);
    assert!(net.now.as_secs_f64() < 10.0);
}

#[test]
fn progress_after_a_resume_excludes_earlier_bytes() {
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
    net.assert_all_verified(source, all.clone());
    let moved = all.map(|receiver| net.receivers[receiver].report()).map(|report| {
        assert_eq!(report.moved_bytes, report.bytes - report.resumed_bytes);
        let goodput = report.moved_bytes as f64 * 8.0 / report.duration.as_secs_f64();
        assert!((goodput / report.goodput.bps() - 1.0).abs() < 1e-9, "{report:?}");
        report.moved_bytes
    });
    let most = moved.max().expect("there are two");
    let report = net.sources[source].report();
    assert!(report.moved_bytes.abs_diff(most) < LIST, "what the one got that lacked most: {report:?}");
    assert!(report.moved_bytes < 15_000_000 && report.bytes == 20_000_000, "{report:?}");
    assert!(report.goodput.bps() < 41e6, "no faster than was sent: {} bit/s", report.goodput.bps());
    let one = of(&net, source, "host0");
    assert!(one.resumed_bytes > 5_000_000 && one.verified_bytes >= 20_000_000, "{one:?}");
    let progress = net.sources[source].events.iter().filter_map(|(_, event)| match event {
        Event::Progress(progress) if progress.joining.is_none() => Some(progress),
        _ => None,
    });
    progress.for_each(|progress| assert!(progress.moved_bytes < most + LIST, "{progress:?}"));
}
