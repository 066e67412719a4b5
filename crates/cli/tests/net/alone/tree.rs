//! The memory of a relay while one of its children stalls, and the completion of the other children.

use crate::kit::{Running, Stage, must, print_line};
use crate::tree::{child, relay};
use faircast_testkit::{Lab, require_root};
use serde_json::Value;

/// Returns a field of /proc/PID/status, in bytes.
fn memory(pid: u32, field: &str) -> u64 {
    let text = must(std::fs::read_to_string(format!("/proc/{pid}/status")));
    let line = text.lines().find(|line| line.starts_with(field)).expect("the kernel says so");
    let number = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    number.expect("a number of kB") * 1024
}

/// Memory of a relay in addition to its cache and its memory at rest, in bytes: batches of sockets, and the sessions of its branches.
const OVERHEAD: u64 = 7_000_000;

/// The other children complete while one child is stopped. Their rates are tested in virtual time
/// (`pair::tree::slow_branch_does_not_delay_other_branches`).
///
/// Needs a kernel: the memory of one process while another process is stopped.
#[test]
fn memory_of_a_relay_is_bounded_while_a_child_stalls() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan().receivers(4));
    let (file, len) = (stage.file("image", 80_000_000), 80_000_000.0);
    let node = |at: usize| stage.lab.receiver(at);
    let control = stage.text("a.sock");
    let relay = relay(node(3), &control, "relay", &["--from", &stage.group, "--memory", "16M"]);
    let (pid, parent) = (relay.task.pid(), node(3).ipv4().to_string());
    let at_rest = memory(pid, "VmRSS");
    let [mut stalls, one, other] = [0, 1, 2]
        .map(|at| child(node(at), &format!("r{at}"), &stage.text(&format!("r{at}")), &[&parent], &[]));
    let sends = stage.send(&[&file], &["--expect", "3", "--max", "200M"]);
    stalls.reaches(0.1, 30);
    stalls.task.pause();
    let (one, other) = (one.succeeds(60), other.succeeds(60));
    let most = memory(pid, "VmHWM");
    let stored: Value = must(serde_json::from_str(&Running::relay_status(node(3), &control, &["--json"])));
    stalls.task.resume();
    stalls.succeeds(90);
    sends.succeeds(30);
    assert!((0..3).all(|at| stage.has(&format!("r{at}"), &file)));
    let after = memory(pid, "VmHWM");
    relay.crashes();
    let session = &stored["sessions"][0];
    let rates = [&one, &other].map(|ended| ended.number("goodput_bps") / 1e6);
    print_line(&format!(
        "one of three children stopped at 10 % of 80 MB: the relay with --memory 16M had {:.1} MB at rest and {:.1} MB at \
         most, {:.1} MB until the end; {} bytes kept, {} let go; the others at {rates:.0?} Mbit/s",
        at_rest as f64 / 1e6,
        most as f64 / 1e6,
        after as f64 / 1e6,
        session["cached_bytes"],
        session["evicted_bytes"]
    ));
    assert!(most.max(after) <= at_rest + 16_000_000 + OVERHEAD, "{most} and {after} bytes");
    assert!(session["evicted_bytes"].as_u64().is_some_and(|bytes| bytes as f64 > len / 2.0), "{session}");
}
