//! Several sessions at once, processes that wait, and the ends of sessions.

use crate::kit::{Stage, print_line};
use faircast_testkit::{Lab, require_root};

/// Needs a kernel: two processes send to one group.
#[test]
fn two_sources_in_one_group_do_not_disturb_each_other() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(4));
    let (one, two) = (stage.file("one", 5_000_000), stage.file("two", 6_000_000));
    let (first, second) = (stage.lab.sender().ipv4().to_string(), stage.lab.receiver(3).ipv4().to_string());
    let mut receivers = vec![
        stage.recv(0, "r0", &["--source", &first]),
        stage.recv(1, "r1", &["--source", &second]),
        stage.recv(2, "r2", &["--source", &second]),
    ];
    let mut source = stage.send(&[&one], &["--max", "30M", "--join-timeout", "3"]);
    // A receiver that accepts any session continues to receive the session that it joined first.
    receivers.push(stage.recv(2, "any", &[]));
    source.prints("\"any\"", 5);
    let args =
        ["send", &two, "--no-key", "--json", "--max", "30M", "--group", &stage.group, "--join-timeout", "3"];
    let other = crate::kit::Running::start(stage.lab.receiver(3), &args);
    let (source, other) = (source.succeeds(30), other.succeeds(30));
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
    assert!(stage.has("r0", &one) && stage.has("any", &one));
    assert!(stage.has("r1", &two) && stage.has("r2", &two));
    assert_eq!((source.number("verified"), other.number("verified")), (2.0, 2.0), "{source:?} {other:?}");
}

/// Needs a kernel: a process starts while another process waits.
#[test]
fn early_receiver_waits_for_its_source() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 1_000_000);
    let receiver = stage.recv(0, "r0", &["--join-timeout", "20"]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    stage.send(&[&file], &[]).succeeds(20);
    receiver.succeeds(5);
    assert!(stage.has("r0", &file));
}

/// Needs a kernel: the exit code of a waiting process.
#[test]
fn receiver_without_a_source_ends_after_its_timeout() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let ended = stage.recv(0, "r0", &["--join-timeout", "1.5"]).ends(10);
    ended.failed(1, "no session was announced");
    assert!((1.4..12.0).contains(&ended.took.as_secs_f64()), "{ended:?}");
}

/// Needs a kernel: the exit code of a waiting process.
#[test]
fn source_without_receivers_ends_after_the_join_timeout() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 1_000_000);
    let ended = stage.send(&[&file], &["--join-timeout", "1.5"]).ends(10);
    ended.failed(1, "no receiver answered");
    assert!((1.4..12.0).contains(&ended.took.as_secs_f64()), "{ended:?}");
}

/// Needs a kernel: the exit code of a waiting process.
#[test]
fn source_reports_absent_receivers() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 2_000_000);
    let receivers = stage.recv_everywhere(&[]);
    let source = stage.send(&[&file], &["--expect", "3", "--join-timeout", "2"]).ends(30);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(5)));
    source.failed(1, "2 of 3 receivers have joined");
    assert_eq!(source.number("missing"), 1.0, "{source:?}");
    assert!(source.took.as_secs_f64() < 15.0, "{source:?}");
    assert_eq!(source.number("verified"), 2.0, "{source:?}");
}

/// Needs a kernel: three processes.
#[test]
fn source_ends_when_all_known_receivers_are_done() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let file = stage.file("image", 2_000_000);
    let receivers = stage.recv_everywhere(&[]);
    let source = stage.send(&[&file], &[]).succeeds(20);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(5)));
    let idle = source.took.as_secs_f64() - source.number("seconds");
    print_line(&format!("2 MB to 3: {:.2} s of it sending, {idle:.2} s around it", source.number("seconds")));
    assert!(idle < 3.0, "{source:?}");
}

/// Needs a kernel: a signal stops a process.
#[test]
fn receivers_report_a_stopped_source() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 10_000_000);
    let mut receivers = stage.recv_everywhere(&[]);
    let mut source = stage.send(&[&file], &["--max", "10M"]);
    receivers[0].reaches(0.1, 20);
    source.task.interrupt();
    let source = source.ends(5);
    source.failed(1, "stopped");
    for receiver in receivers {
        receiver.ends(5).failed(1, "run the same command again to resume");
    }
}
