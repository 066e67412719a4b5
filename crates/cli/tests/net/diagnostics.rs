//! Log lines and traces of sessions.

use crate::kit::{Running, Stage, must};
use faircast_testkit::{Bottleneck, Lab, Offloads, require_root};

/// Needs a kernel: one of two paths is slow.
#[test]
fn trace_names_the_slow_receiver_and_the_log_all_receivers() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().receivers(2).offloads(Offloads::Off).bottleneck(1, Bottleneck::mbps(8.0));
    let stage = Stage::shared(&root, plan);
    let file = stage.file("image", 3_000_000);
    let (log, sent, got) = (stage.text("log"), stage.text("sent.sqlog"), stage.text("got.sqlog"));
    let receivers = [stage.recv(0, "r0", &[]), stage.recv(1, "r1", &["--trace", &got])];
    let flags = ["--expect", "2", "--join-timeout", "60", "--log", &log, "--trace", &sent];
    let source = stage.send(&[&file], &flags).succeeds(60);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(20)));

    let log = must(std::fs::read_to_string(log));
    for (message, host) in [("member joined", "r0"), ("member joined", "r1"), ("member left", "r1")] {
        let is_it = |line: &&str| line.contains(message) && line.contains(&format!(" host={host} "));
        let line = log.lines().find(is_it).unwrap_or_else(|| panic!("{message} {host}: {log}"));
        assert!(line.contains(" INFO faircast::join: ") && line.contains(" session=source "), "{line}");
    }
    assert!(log.contains("session ended") && log.contains(" verified=2"), "{log}");
    assert!(!log.contains(" DEBUG "), "the default is info: {log}");

    let show = |arguments: &[&str]| {
        let shown = Running::start(stage.lab.sender(), &[&["trace", "show"], arguments].concat()).ends(10);
        assert_eq!(shown.code, 0, "{shown:?}");
        shown.stdout
    };
    let middle = source.number("start_seconds") + source.number("seconds") / 2.0;
    let explained = show(&[&sent, "--at", &format!("{middle:.2}")]);
    assert!(explained.contains("The limit was congestion on the path to r1"), "{explained}");
    assert!(explained.contains("loss, reported by r1"), "{explained}");
    let received = show(&[&got]);
    assert!(received.contains("(receiver)") && received.contains("the content was complete"), "{received}");
}
