//! Complete transfers with default settings.

use crate::kit::{Ended, FAIRCAST, Stage, must, noise};
use faircast_testkit::{Lab, require_root};
use std::time::Duration;

const FILE: usize = 20_000_000;

/// Checks the fields of the last output line of each process, and that the numbers of all processes agree.
fn done_lines_make_sense(source: &Ended, receivers: &[Ended]) {
    let bytes = source.number("bytes");
    for (ended, fields) in receivers.iter().map(|r| (r, &RECEIVED[..])).chain([(source, &SENT[..])]) {
        for field in fields {
            assert!(!ended.done()[field].is_null(), "{field} is missing: {ended:?}");
        }
        let (seconds, goodput) = (ended.number("seconds"), ended.number("goodput_bps"));
        assert!(seconds > 0.0 && seconds <= ended.took.as_secs_f64(), "{seconds} s: {ended:?}");
        assert!((goodput * seconds / 8.0 / bytes - 1.0).abs() < 0.01, "{goodput} bit/s: {ended:?}");
        assert_eq!(ended.number("bytes"), bytes, "{ended:?}");
        assert_eq!(ended.number("refused"), 0.0, "{ended:?}");
    }
    assert_eq!(source.number("verified"), receivers.len() as f64, "{source:?}");
    assert_eq!(source.number("receivers"), receivers.len() as f64, "{source:?}");
    assert_eq!(source.all("joined").count(), receivers.len(), "{source:?}");
    assert_eq!(source.all("left").filter(|left| left["verified"] == true).count(), receivers.len());
}

const SENT: [&str; 13] = [
    "ok",
    "receivers",
    "verified",
    "bytes",
    "seconds",
    "start_seconds",
    "goodput_bps",
    "repair_ratio",
    "packets",
    "cuts",
    "incomplete",
    "slow",
    "cpu_seconds",
];
const RECEIVED: [&str; 13] = [
    "ok",
    "files",
    "bytes",
    "seconds",
    "goodput_bps",
    "resumed_bytes",
    "refetched_bytes",
    "packets",
    "lost",
    "symbol_ratio",
    "repaired_blocks",
    "dropped_local",
    "warnings",
];

/// Sends one file to all receivers. Returns the output of all processes.
fn transfer(stage: &Stage, len: usize, flags: &[&str]) -> (Ended, Vec<Ended>) {
    let file = stage.file("image", len);
    let receivers = stage.recv_everywhere(flags);
    let source = stage.send(&[&file], flags).succeeds(60);
    let receivers: Vec<_> = receivers.into_iter().map(|receiver| receiver.succeeds(20)).collect();
    for host in 0..receivers.len() {
        assert!(stage.has(&format!("r{host}"), &file), "r{host} has other bytes");
    }
    (source, receivers)
}

fn a_file_reaches(receivers: u16) {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(receivers));
    let (source, receivers) = transfer(&stage, FILE, &[]);
    done_lines_make_sense(&source, &receivers);
    crate::kit::print_line(&format!(
        "20 MB to {}: {:.2} s, {:.0} Mbit/s, sent/needed {:.3}, refused {}",
        receivers.len(),
        source.number("seconds"),
        source.number("goodput_bps") / 1e6,
        source.number("repair_ratio"),
        source.number("refused"),
    ));
}

/// Needs a kernel: the whole program, from the command line to the disk.
#[test]
fn file_reaches_one_receiver() {
    a_file_reaches(1);
}

/// Needs a kernel: a bridge copies multicast to four hosts.
#[test]
fn file_reaches_four_receivers() {
    a_file_reaches(4);
}

/// Needs a kernel: a bridge copies multicast to sixteen hosts.
#[test]
fn file_reaches_sixteen_receivers() {
    a_file_reaches(16);
}

/// Needs a kernel: IPv6 scopes.
#[test]
fn file_arrives_over_site_local_and_link_local_ipv6_groups() {
    let Some(root) = require_root() else { return };
    let mut stage = Stage::shared(&root, Lab::plan().receivers(2));
    for group in ["[ff15::7:1]:5801", "[ff12::7:1]:5802"] {
        stage = stage.with_group(group);
        // A link-local group needs a named interface, because the kernel's route does not determine the interface.
        let (source, receivers) = transfer(&stage, 5_000_000, &["--iface", "eth0"]);
        done_lines_make_sense(&source, &receivers);
        (0..2).for_each(|host| must(std::fs::remove_dir_all(stage.path(&format!("r{host}")))));
    }
}

/// Needs a kernel: sockets share a port and a group.
#[test]
fn each_of_several_receivers_on_one_host_gets_all_data() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 5_000_000);
    let receivers: Vec<_> = (0..3).map(|n| stage.recv(0, &format!("n{n}"), &[])).collect();
    // One receiver runs on the source's host.
    let near = stage.recv_on(stage.lab.sender(), "near", &[]);
    let source = stage.send(&[&file], &[]).succeeds(30);
    receivers.into_iter().chain([near]).for_each(|receiver| drop(receiver.succeeds(10)));
    assert_eq!(source.number("verified"), 4.0, "{source:?}");
    for host in ["n0", "n1", "n2", "near"] {
        assert!(stage.has(host, &file), "{host}");
    }
}

/// Needs a kernel: the output of two processes.
#[test]
fn text_output_reports_success_on_standard_error() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    must(std::fs::write(stage.path("note"), noise("note", 1_000_000)));
    let (group, out, note) = (stage.group.as_str(), stage.text("out"), stage.text("note"));
    let mut receiver = must(
        stage.lab.receiver(0).start(FAIRCAST, &["recv", "--group", group, "--out", &out, "--host", "lab-1"]),
    );
    must(receiver.wait_for("listening on", Duration::from_secs(10)));
    let sent =
        must(stage.lab.sender().run(FAIRCAST, &["send", &note, "--group", group], Duration::from_secs(30)));
    let got = must(must(receiver.finish(Duration::from_secs(10))).ok());
    assert!(sent.stderr.contains("1 receiver") && sent.stderr.contains("1 of 1 verified"), "{}", sent.stderr);
    assert!(got.stderr.contains("all verified"), "{}", got.stderr);
    assert_eq!((sent.stdout.as_str(), got.stdout.as_str()), ("", ""), "data only on standard output");
}
