//! Every scheme without layers sends a real file through a real bottleneck, with its default settings. Layered schemes need a
//! router that processes memberships, which emulated links lack: see [`crate::layers`].

use crate::kit::{FAIRCAST, Running, must, noise, print_line};
use faircast_testkit::{EmulatedLab, require_root};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// A source and two receivers at round-trip times of 20 and 40 ms. The first receiver is behind a bottleneck of 10 Mbit/s.
const FORK: &str = "
    host source
    host slow groups=all
    host far groups=all
    router r
    link source r delay=5ms
    link r slow rate=10M delay=5ms queue=droptail,50
    link r far rate=40M delay=15ms queue=droptail,100";

/// Returns the schemes that `faircast schemes` lists, without layered ones.
fn schemes() -> Vec<String> {
    let listed = must(Command::new(FAIRCAST).args(["schemes", "--json"]).output());
    let lines = String::from_utf8_lossy(&listed.stdout).into_owned();
    let parse = |line: &str| -> Value { must(serde_json::from_str(line)) };
    let in_layers = |scheme: &Value| {
        let parameters = scheme["parameters"].as_array().expect("every scheme has parameters");
        parameters.iter().any(|parameter| parameter["name"] == "layers")
    };
    lines
        .lines()
        .map(parse)
        .filter(|scheme| !in_layers(scheme))
        .map(|scheme| scheme["name"].as_str().expect("every scheme has a name").to_owned())
        .collect()
}

/// Needs a kernel: a token bucket paces real sockets.
#[test]
fn every_single_rate_scheme_sends_a_file_through_a_bottleneck() {
    let Some(root) = require_root() else { return };
    let lab = must(EmulatedLab::shared(&root, FORK));
    let directory = must(tempfile::Builder::new().prefix("faircast-net-").tempdir());
    let path = |name: &str| directory.path().join(name).to_str().expect("the names are plain").to_owned();
    let content = noise("schemes", 3_000_000);
    must(std::fs::write(path("file"), &content));
    let schemes = schemes();
    assert!(schemes.len() >= 6, "{schemes:?}");
    for (number, scheme) in schemes.iter().enumerate() {
        let group = format!("239.255.70.12:{}", 21_000 + number);
        let receivers = ["slow", "far"].map(|name| {
            let out = path(&format!("{scheme}-{name}"));
            let args = ["recv", "--json", "--group", &group, "--host", name, "--out", &out];
            let mut running = Running::start(lab.host(name), &args);
            must(running.task.wait_for("\"opened\"", Duration::from_secs(20)));
            running
        });
        let file = path("file");
        let args = ["send", &file, "--json", "--no-key", "--group", &group, "--expect", "2", "--cc", scheme];
        let source = Running::start(lab.host("source"), &args).succeeds(60);
        for receiver in receivers {
            receiver.succeeds(10);
        }
        for name in ["slow", "far"] {
            let got = must(std::fs::read(path(&format!("{scheme}-{name}/file"))));
            assert!(got == content, "{scheme}: {name} has other bytes");
        }
        let rate = 3_000_000.0 / source.number("seconds") * 8.0 / 1e6;
        print_line(&format!("{scheme:<10} {rate:.2} Mbit/s of 10, {} cuts", source.number("cuts")));
        assert!((1.0..10.0).contains(&rate), "{scheme}: {rate} Mbit/s through 10 Mbit/s: {source:?}");
    }
}
