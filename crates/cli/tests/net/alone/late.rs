//! A late joiner, and its effect on the session's duration for the other receivers.

use crate::kit::{Stage, print_line};
use faircast_testkit::{Lab, require_root};

/// Needs a kernel: a process starts while other processes run.
#[test]
fn late_joiner_gets_the_content_without_delaying_others() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan().receivers(3));
    let file = stage.file("image", 10_000_000);
    let mut early = vec![stage.recv(0, "r0", &[]), stage.recv(1, "r1", &[])];
    // At this rate, the second half of the transfer lasts about three seconds. The late joiner has this time to join.
    let source = stage.send(&[&file], &["--max", "12M"]);
    early[0].reaches(0.5, 20);
    let late = stage.recv(2, "r2", &[]);
    let early: Vec<_> = early.into_iter().map(|receiver| receiver.succeeds(20)).collect();
    let late = late.succeeds(20);
    let source = source.succeeds(20);
    assert_eq!(source.number("verified"), 3.0, "{source:?}");
    for host in ["r0", "r1", "r2"] {
        assert!(stage.has(host, &file), "{host}");
    }
    let front = 10e6 * 8.0 / 12e6;
    for receiver in &early {
        assert!(receiver.number("seconds") < front * 1.25 + 0.5, "a late one held it up: {receiver:?}");
    }
    let ratio = source.number("repair_ratio");
    assert!(ratio < 1.8, "the head is sent again, once: {source:?}");
    print_line(&format!(
        "late joiner at 50 %: early {:.1} s, late {:.1} s, sent/needed {ratio:.3}",
        early[0].number("seconds"),
        late.number("seconds")
    ));
}
