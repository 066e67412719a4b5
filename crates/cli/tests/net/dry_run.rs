//! Dry runs: each host states what a session would send to it, and nothing changes.

use crate::kit::{Ended, Stage, must, print_line};
use faircast_testkit::{Lab, require_root};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

const FILES: usize = 200;
const LEN: usize = 100_000;

/// All files and directories below a directory: inode, mode, time of modification, size, content.
type Snapshot = BTreeMap<PathBuf, (u64, u32, i64, i64, u64, Vec<u8>)>;

fn snapshot(stage: &Stage, host: &str) -> Snapshot {
    let (mut all, mut pending) = (Snapshot::new(), vec![stage.path(host)]);
    while let Some(path) = pending.pop() {
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if about.is_dir() {
            pending.extend(must(fs::read_dir(&path)).map(|entry| must(entry).path()));
        }
        let content = if about.is_file() { must(fs::read(&path)) } else { Vec::new() };
        let (mtime, nanos) = (about.mtime(), about.mtime_nsec());
        all.insert(path, (about.ino(), about.mode(), mtime, nanos, about.size(), content));
    }
    all
}

/// Returns the comparison of a host.
fn of(dry: &Ended, host: &str) -> [f64; 5] {
    let compared = dry.all("compared").find(|one| one["host"] == host);
    let compared = compared.unwrap_or_else(|| panic!("{host} has stated nothing: {dry:?}"));
    ["held_bytes", "needed_bytes", "new_files", "changed_files", "deleted"]
        .map(|field| compared[field].as_f64().expect("a number"))
}

/// One host has nothing, one has a tree with 1 % changed files, and one has everything.
///
/// Needs a kernel: directories of three hosts, one of them with a daemon.
#[test]
fn dry_run_predicts_the_session_of_every_host() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    must(fs::create_dir(stage.path("tree")));
    (0..FILES).for_each(|n| drop(stage.file(&format!("tree/{n}"), LEN)));
    stage.file("tree/gone", LEN);
    let tree = stage.text("tree");
    let send = |more: &[&str]| stage.send(&[&tree], &[&["--delete", "--delta"], more].concat()).succeeds(60);
    let receiver = stage.recv(1, "r1", &[]);
    send(&["--expect", "1"]);
    receiver.succeeds(20);
    must(fs::remove_file(stage.path("tree/gone")));
    for n in [7, 150] {
        must(fs::write(stage.path(&format!("tree/{n}")), vec![n as u8; LEN + 1]));
    }
    let receiver = stage.recv(2, "r2", &[]);
    send(&["--expect", "1"]);
    receiver.succeeds(20);

    let before: Vec<_> = ["r0", "r1", "r2"].map(|host| snapshot(&stage, host)).into();
    let mut daemon = stage.recv(2, "r2", &["--serve"]);
    let marked = format!("touch {}", stage.text("mark"));
    let receivers =
        [stage.recv(0, "r0", &["--delete"]), stage.recv(1, "r1", &["--delete", "--on-complete", &marked])];
    let dry = send(&["--dry-run", "--max", "50M", "--expect", "3", "--on-complete", &marked]);
    for receiver in receivers {
        let ended = receiver.succeeds(20);
        assert!(ended.done()["dry_run"]["needed_bytes"].is_number(), "{ended:?}");
    }
    daemon.prints("\"dry_run\"", 20);
    let after: Vec<_> = ["r0", "r1", "r2"].map(|host| snapshot(&stage, host)).into();
    assert!(before == after && !stage.path("r0").exists() && !stage.path("mark").exists());
    let size = (FILES * LEN + 2) as f64;
    let [empty, changed, complete] = ["r0", "r1", "r2"].map(|host| of(&dry, host));
    assert_eq!((empty[0], empty[2..].to_vec()), (0.0, vec![FILES as f64, 0.0, 0.0]), "{empty:?}");
    assert_eq!(changed[2..], [0.0, 2.0, 1.0], "{changed:?}");
    assert_eq!((complete[0], complete[2..].to_vec()), (size, vec![0.0; 3]), "{complete:?}");
    let result = |ended: &Ended, field: &str| ended.done()["dry_run"][field].as_f64().expect("a number");
    assert_eq!(result(&dry, "needed_bytes"), empty[1], "one host lacks everything: {dry:?}");
    assert!(result(&dry, "seconds") > size * 8.0 / 50e6, "{dry:?}");

    // The daemon and the host with changed files.
    let receiver = stage.recv(1, "r1", &["--delete"]);
    let dry = send(&["--dry-run", "--expect", "2"]);
    receiver.succeeds(20);
    let receiver = stage.recv(1, "r1", &["--delete"]);
    let sent = send(&["--expect", "2"]);
    assert_eq!(receiver.succeeds(20).number("deleted"), 1.0);
    daemon.crashes();
    let predicted = result(&dry, "needed_bytes");
    let actual = sent.number("repair_ratio") * size;
    print_line(&format!("dry run: {predicted} bytes predicted, {actual:.0} sent of {size}"));
    assert!((predicted - actual).abs() < 0.1 * actual, "{dry:?} {sent:?}");
    assert!(predicted < 0.1 * size, "{dry:?}");
}
