//! Files that change while they are sent: they are withdrawn, both endpoints name them, and all other files arrive.

use crate::kit::{Stage, must, noise};
use faircast_testkit::{Lab, require_root};
use std::fs::{self, File};
use std::io::Write;

/// Needs a kernel: a file grows while the program reads it.
#[test]
fn growing_file_is_withdrawn_and_all_other_files_arrive() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let tree = stage.path("tree");
    must(fs::create_dir(&tree));
    let sizes = [("a", 4_000_000), ("m.log", 6_000_000), ("z", 3_000_000)];
    sizes.iter().for_each(|(name, len)| must(fs::write(tree.join(name), noise(name, *len))));
    let receivers = stage.recv_everywhere(&[]);
    let report = stage.text("report.json");
    let flags = ["--max", "20M", "--expect", "2", "--report", &report];
    let mut source = stage.send(&[&stage.text("tree")], &flags);
    source.reaches(0.1, 30);
    let mut log = must(File::options().append(true).open(tree.join("m.log")));
    must(log.write_all(b"one line more\n"));
    let source = source.ends(60);
    source.failed(5, "tree/m.log (changed while it was being sent");
    let done = source.done();
    assert!(done["verified"] == 2 && done["unsent_count"] == 1 && done["ok"] == false, "{source:?}");
    assert_eq!(source.all("error").next().map(|error| &error["class"]), Some(&"without_files".into()));
    assert!(
        source.all("warning").any(|one| one["message"].to_string().contains("is withdrawn")),
        "{source:?}"
    );
    let report: serde_json::Value = must(serde_json::from_str(&must(fs::read_to_string(report))));
    assert!(report["exit_code"] == 5 && report["verified"] == 2, "{report}");
    for (at, receiver) in receivers.into_iter().enumerate() {
        let ended = receiver.ends(20);
        ended.failed(5, "tree/m.log");
        assert_eq!(ended.done()["withdrawn"], serde_json::json!(["tree/m.log"]));
        let out = stage.path(&format!("r{at}")).join("tree");
        assert!(
            ["a", "z"].iter().all(|name| must(fs::read(out.join(name))) == must(fs::read(tree.join(name))))
        );
        assert!(!out.join("m.log").exists() && ended.number("files") == 2.0, "{ended:?}");
    }
    // The same commands are run again after the file has stopped changing.
    let receivers = stage.recv_everywhere(&[]);
    stage.send(&[&stage.text("tree")], &["--expect", "2"]).succeeds(60);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(20)));
    let got = must(fs::read(stage.path("r1").join("tree/m.log")));
    assert!(got == must(fs::read(tree.join("m.log"))));
}

/// Needs a kernel: a file changes while the program reads it.
#[test]
fn source_with_option_strict_ends_when_a_file_changes() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let (first, second) = (stage.file("first", 4_000_000), stage.file("second", 4_000_000));
    let receiver = stage.recv(0, "r0", &[]);
    let mut source = stage.send(&[&first, &second], &["--max", "20M", "--strict"]);
    source.reaches(0.1, 30);
    must(fs::write(&second, b"shorter"));
    source.ends(60).failed(3, "second");
    let ended = receiver.ends(60);
    assert_eq!(ended.code, 1, "{ended:?}");
}
