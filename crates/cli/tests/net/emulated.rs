//! The program over emulated links: real round-trip times, random losses, and a queue that marks.

use crate::kit::{Running, must, noise};
use faircast_testkit::{EmulatedLab, require_root};
use std::time::Duration;

/// A source and three receivers, at round-trip times of 20, 60 and 100 ms. One receiver is behind a bottleneck, and one is behind
/// a link with losses.
const FAR_APART: &str = "
    host source
    host near groups=all
    host slow groups=all
    host lossy groups=all
    router r
    router s
    link source r rate=50M delay=5ms queue=droptail,400
    link r near delay=5ms
    link r s delay=15ms
    link s slow rate=8M delay=10ms queue=red,buffer=60
    link s lossy delay=30ms loss=bernoulli,0.01";

/// Needs a kernel: the program and the emulator in separate processes.
#[test]
fn distant_receivers_get_a_file_despite_loss_and_a_bottleneck() {
    let Some(root) = require_root() else { return };
    let lab = must(EmulatedLab::shared(&root, FAR_APART));
    let directory = must(tempfile::Builder::new().prefix("faircast-net-").tempdir());
    let path = |name: &str| directory.path().join(name).to_str().expect("the names are plain").to_owned();
    let content = noise("far apart", 3_000_000);
    must(std::fs::write(path("file"), &content));
    let group = "239.255.70.11:5777";
    let receivers = ["near", "slow", "lossy"].map(|name| {
        let out = path(name);
        let args = ["recv", "--json", "--group", group, "--host", name, "--out", &out];
        let mut running = Running::start(lab.host(name), &args);
        must(running.task.wait_for("\"opened\"", Duration::from_secs(20)));
        running
    });
    let file = path("file");
    let args = ["send", &file, "--json", "--no-key", "--group", group, "--expect", "3"];
    let source = Running::start(lab.host("source"), &args).succeeds(60);
    for receiver in receivers {
        receiver.succeeds(10);
    }
    for name in ["near", "slow", "lossy"] {
        assert!(must(std::fs::read(path(&format!("{name}/file")))) == content, "{name} has other bytes");
    }
    let report = must(lab.stop());
    let link = |name: &str| report.links.iter().find(|(other, _)| other == name).expect("the plan has it").1;
    assert!(link("s>lossy").lost > 10, "{report}");
    let once = 3_000_000.0 / source.number("seconds") * 8.0;
    assert!(once < 8e6, "{once} bit/s through 8 Mbit/s: {source:?}");
}

/// A long path that loses packets at random, whose queue stays empty.
const LOSSY: &str = "
    host source
    host lossy groups=all
    link source lossy rate=100M delay=50ms loss=bernoulli,0.02";

/// Needs a kernel: delays of datagrams between the clocks and sockets of two processes.
#[test]
fn losses_without_a_queue_hardly_cut_a_tolerant_rate() {
    let Some(root) = require_root() else { return };
    let lab = must(EmulatedLab::shared(&root, LOSSY));
    let directory = must(tempfile::Builder::new().prefix("faircast-net-").tempdir());
    let path = |name: &str| directory.path().join(name).to_str().expect("the names are plain").to_owned();
    let content = noise("lossy", 8_000_000);
    must(std::fs::write(path("file"), &content));
    let (file, out, group) = (path("file"), path("out"), "239.255.70.12:5777");
    let args = ["recv", "--json", "--group", group, "--host", "lossy", "--out", &out];
    let mut receiver = Running::start(lab.host("lossy"), &args);
    must(receiver.task.wait_for("\"opened\"", Duration::from_secs(20)));
    let cc = ["--cc", "ormcc,loss=tolerant", "--max", "20M"];
    let args = ["send", &file, "--json", "--no-key", "--group", group, "--expect", "1"];
    let source = Running::start(lab.host("source"), &[&args[..], &cc].concat()).succeeds(60);
    receiver.succeeds(10);
    assert!(must(std::fs::read(path("out/file"))) == content, "other bytes");
    let report = must(lab.stop());
    let lost = report.links.iter().map(|(_, link)| link.lost).sum::<u64>();
    assert!(lost > 50 && source.number("cuts") < lost as f64 / 4.0, "{lost} lost: {source:?}");
}
