//! Sessions with keys, and hosts without the key.

use crate::kit::{FAIRCAST, Stage, must};
use faircast_testkit::{Lab, require_root, run};
use std::time::Duration;

/// Creates a key. Returns its path.
pub fn key(stage: &Stage, name: &str) -> String {
    let path = stage.text(name);
    must(run(FAIRCAST, &["keygen", &path], Duration::from_secs(10)));
    path
}

/// Needs a kernel: processes with keys in files.
#[test]
fn receiver_without_the_key_gets_nothing_and_reports_why() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(4));
    let file = stage.file("image", 1_000_000);
    let (ours, theirs) = (key(&stage, "lab.key"), key(&stage, "other.key"));
    let friend = stage.recv(0, "r0", &["--key", &ours]);
    let mut keyless = stage.recv(1, "r1", &["--join-timeout", "5"]);
    let mut stranger = stage.recv(2, "r2", &["--join-timeout", "5", "--key", &theirs]);
    let mut source = stage.send(&[&file], &["--key", &ours, "--expect", "2", "--join-timeout", "4"]);
    // The source reports a missing key while it waits, and not only at the end.
    source.prints("it has no key", 4);
    source.prints("it has another key", 4);
    let source = source.ends(20);
    friend.succeeds(5);
    keyless.prints("a sealed session was found", 5);
    stranger.prints("sealed under another key", 5);
    keyless.ends(10).failed(1, "give its --key");
    stranger.ends(10).failed(1, "use that key");
    assert_eq!(source.number("receivers"), 1.0, "strangers are not members: {source:?}");
    assert!(!stage.has("r1", &file) && !stage.has("r2", &file));
    // Conversely, a receiver with a key accepts no unsealed session.
    let careful = stage.recv(3, "r3", &["--join-timeout", "5", "--key", &ours]);
    stage.send(&[&file], &["--join-timeout", "4"]).ends(20).failed(1, "no receiver joined");
    careful.ends(10).failed(1, "leave out --key");
}
