//! `recv --serve`: a receiver that stays.

use crate::kit::Stage;
use faircast_testkit::{Lab, require_root};

#[test]
fn a_receiver_that_stays_takes_one_session_after_another_and_outlives_their_sources() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let (small, image) = (stage.file("small", 200_000), stage.file("image", 3_000_000));
    let large = stage.file("large", 6_000_000);
    let mut receiver = stage.recv(0, "r0", &["--serve", "--most", "5M", "--accept", "sour*"]);
    stage.send(&[&small], &["--expect", "1"]).succeeds(20);
    // What is too large is refused, and its sender hears why.
    let mut refused = stage.send(&[&large], &["--wait", "6"]);
    refused.said("does not follow it: it accepts no sessions of this host's name, or none so large", 5);
    refused.task.interrupt();
    refused.ends(5);
    // A source that is stopped leaves the receiver where it is.
    let mut stopped = stage.send(&[&image], &["--expect", "1", "--max", "8M"]);
    stopped.reaches(0.2, 20);
    stopped.task.interrupt();
    assert_eq!(stopped.ends(10).code, 1);
    let source = stage.send(&[&image], &["--expect", "1"]).succeeds(20);
    assert!(source.number("moved_bytes") < 3_000_000.0, "it goes on where it was: {source:?}");
    receiver.task.interrupt();
    let receiver = receiver.ends(10);
    assert_eq!(receiver.code, 0, "{receiver:?}");
    let ends: Vec<_> = receiver.all("done").map(|done| done["ok"] == true).collect();
    assert_eq!(ends, [true, false, true], "{receiver:?}");
    assert!(stage.has("r0", &small) && stage.has("r0", &image) && !stage.has("r0", &large));
}

#[test]
fn a_second_sender_on_a_busy_group_is_told_so() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let (first, second) = (stage.file("first", 4_000_000), stage.file("second", 1_000));
    let receiver = stage.recv(0, "r0", &[]);
    let mut busy = stage.send(&[&first], &["--expect", "1", "--max", "8M"]);
    busy.reaches(0.1, 20);
    let mut late = stage.send(&[&second], &["--wait", "30"]);
    late.said("it takes part in another session on this group", 5);
    late.crashes();
    busy.succeeds(20);
    receiver.succeeds(5);
}
