//! Receivers that join late, and trees of many files.

use crate::kit::{Stage, must, noise};
use faircast_testkit::{Damage, Lab, require_root};
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// The example of the README: the source waits for the second of two receivers, which starts late. `pair/hosts.rs` in
/// crates/transport checks in virtual time that this wait does not prolong the transfer.
///
/// Needs a kernel: a process starts while another process runs.
#[test]
fn source_waits_for_the_last_receiver() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 10_000_000);
    let first = stage.recv(0, "r0", &[]);
    let mut source = stage.send(&[&file], &["--expect", "2", "--join-timeout", "60", "--max", "40M"]);
    source.prints("\"joined\"", 20);
    std::thread::sleep(std::time::Duration::from_secs(4));
    let last = stage.recv(1, "r1", &[]);
    let source = source.succeeds(60);
    first.succeeds(20);
    last.succeeds(20);
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
    assert_eq!(source.number("verified"), 2.0, "{source:?}");
    assert!(source.took.as_secs_f64() > 4.0 + source.number("seconds"), "it waited: {source:?}");
}

/// Returns the preserved properties of a tree: for each entry its kind, mode, time, and content or target.
fn described(root: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in must(std::fs::read_dir(&directory)) {
            let path = must(entry).path();
            let about = must(path.symlink_metadata());
            let name = path.strip_prefix(root).expect("it lies below").display().to_string();
            let mode = about.mode() & 0o7777;
            let words = if about.is_symlink() {
                format!("link to {}", must(std::fs::read_link(&path)).display())
            } else if about.is_dir() {
                waiting.push(path);
                format!("directory {mode:o}")
            } else {
                let hash = blake3::hash(&must(std::fs::read(&path)));
                format!("file {mode:o} {}.{:09} {hash}", about.mtime(), about.mtime_nsec())
            };
            all.insert(name, words);
        }
    }
    all
}

fn plant(tree: &Path) {
    for number in 0..1000 {
        let directory = tree.join(format!("d{}/e{}", number % 10, number % 7));
        must(std::fs::create_dir_all(&directory));
        must(std::fs::write(directory.join(format!("f{number}")), noise("f", number * 13 % 4000)));
    }
    must(std::fs::create_dir(tree.join("empty")));
    must(std::fs::create_dir_all(tree.join("čeština/日本語")));
    must(std::fs::write(tree.join("čeština/日本語/naïve – ☃.txt"), "snow"));
    must(std::fs::write(tree.join("nothing"), ""));
    must(std::fs::write(tree.join("run.sh"), "#!/bin/sh\n"));
    must(std::fs::set_permissions(tree.join("run.sh"), std::fs::Permissions::from_mode(0o750)));
    must(std::fs::set_permissions(tree.join("nothing"), std::fs::Permissions::from_mode(0o400)));
    must(std::fs::set_permissions(tree.join("empty"), std::fs::Permissions::from_mode(0o700)));
    let old = std::time::UNIX_EPOCH + std::time::Duration::new(981_173_106, 123_456_789);
    must(must(std::fs::File::options().append(true).open(tree.join("run.sh"))).set_modified(old));
    must(symlink("run.sh", tree.join("start")));
    must(symlink("d0/e0", tree.join("to-directory")));
    must(symlink("nowhere", tree.join("dangling")));
}

/// Needs a kernel: modes, times and links of a file system.
#[test]
fn tree_arrives_with_its_metadata() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3).damage(0..3, Damage::loss(0.02)));
    plant(&stage.path("tree"));
    let receivers = stage.recv_everywhere(&[]);
    stage.send(&[&stage.text("tree")], &["--expect", "3"]).succeeds(30);
    let sent = described(&stage.path("tree"));
    assert!(sent.len() > 1070, "{}", sent.len());
    for (host, receiver) in receivers.into_iter().enumerate() {
        let ended = receiver.succeeds(10);
        assert_eq!(ended.number("files"), 1003.0, "{ended:?}");
        let got = described(&stage.path(&format!("r{host}/tree")));
        for (name, words) in &sent {
            assert_eq!(got.get(name), Some(words), "{name} at r{host}");
        }
        assert_eq!(got.len(), sent.len(), "r{host} has more than was sent");
    }
}
