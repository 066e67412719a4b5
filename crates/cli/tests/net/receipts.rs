//! Receipts: hosts sign that they have verified all content, and any program can verify the signatures later.

use crate::kit::{FAIRCAST, Running, Stage, must};
use faircast_testkit::{Lab, require_root, run};
use std::time::Duration;

/// Creates a key pair for each of these hosts. The private keys are in the stage's directory, the public keys in its subdirectory
/// `keys`.
fn keys(stage: &Stage, hosts: &[&str]) -> String {
    must(std::fs::create_dir(stage.path("keys")));
    for host in hosts {
        let private = stage.text(&format!("{host}.sign"));
        must(run(FAIRCAST, &["keygen", "--sign", &private], Duration::from_secs(10)));
        let public = format!("{private}.pub");
        must(std::fs::rename(public, stage.path("keys").join(format!("{host}.pub"))));
    }
    stage.text("keys")
}

/// Needs a kernel: four processes, and keys and receipts in files.
#[test]
fn receipts_of_a_daemon_and_a_relay_child_can_be_verified_later() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let keys = keys(&stage, &["r0", "r1"]);
    let (file, other) = (stage.file("image", 300_000), stage.file("other", 100_000));
    let key = |host: &str| stage.text(&format!("{host}.sign"));
    let below = stage.group.replace("239.255.70.9", "239.255.70.8");
    let control = stage.text("relay.sock");
    let place = ["relay", "--json", "--from", &stage.group, "--to", &below, "--control", &control];
    let mut relay = Running::start(stage.lab.receiver(2), &place);
    relay.prints("\"opened\"", 20);
    let mut stays = stage.recv(0, "r0", &["--serve", "--sign-receipts", &key("r0")]);
    let (out, signs) = (stage.text("r1"), key("r1"));
    let place =
        ["recv", "--json", "--host", "r1", "--out", &out, "--group", &below, "--sign-receipts", &signs];
    let mut child = Running::start(stage.lab.receiver(1), &place);
    child.prints("\"opened\"", 20);
    let report = stage.text("report.json");
    let source =
        stage.send(&[&file], &["--expect", "2", "--receipts", &keys, "--report", &report]).succeeds(30);
    child.succeeds(10);
    assert_eq!(source.number("signed"), 2.0, "{source:?}");
    let mut signed: Vec<_> = source.all("receipt").filter_map(|one| one["host"].as_str()).collect();
    signed.sort_unstable();
    assert_eq!(signed, ["r0", "r1"], "{source:?}");
    let written: serde_json::Value = must(serde_json::from_str(&must(std::fs::read_to_string(&report))));
    let schema = crate::schema::Schema::read();
    must(schema.check_as("report", &written));
    assert_eq!(written["receipts"]["signed"].as_array().map(Vec::len), Some(2), "{written}");
    let verify = |more: &[&str]| {
        let args = [&["receipt", "verify", &report], more].concat();
        must(std::process::Command::new(FAIRCAST).args(args).output())
    };
    let checked = verify(&[&file, "--keys", &keys]);
    assert!(checked.status.success(), "{checked:?}");
    assert!(String::from_utf8_lossy(&checked.stdout).contains("2 keys signed"), "{checked:?}");
    assert_eq!(verify(&[&other]).status.code(), Some(1));
    // In a second session, the required key is that of `r1`. The remaining receiver signs with another key.
    let only = stage.text("keys/r1.pub");
    let source = stage.send(&[&other], &["--expect", "1", "--receipts", &only]).ends(30);
    source.failed(
        1,
        "without a valid receipt: r0 (it is complete, but its receipt is signed by an unknown key",
    );
    stays.task.interrupt();
    assert_eq!(stays.ends(10).code, 0);
    relay.task.interrupt();
    relay.ends(10);
}
