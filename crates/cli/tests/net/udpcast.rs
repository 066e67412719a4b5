//! The program exchanges data with udpcast's own programs, `udp-sender` and `udp-receiver`.

use crate::kit::{Running, Stage, must, noise, print_line};
use faircast_testkit::{Damage, Lab, Task, require_root, run};
use std::time::Duration;

/// Size of a file, in bytes: six slices, and a part of a block.
const FILE: usize = 9_000_001;

/// Fraction of lost datagrams, in both directions.
const LOSS: f64 = 0.01;

/// Returns whether udpcast's programs are installed. Otherwise prints why the test is skipped.
pub fn is_installed() -> bool {
    let outcome = run("udp-receiver", &["--license"], Duration::from_secs(10));
    if let Err(error) = &outcome {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "needs udpcast: {error}");
        print_line(&format!("skipped: sessions with udpcast's programs: {error}"));
    }
    outcome.is_ok()
}

/// Builds a stage with this number of receivers, behind links with losses. If a requirement is missing, prints the reason and
/// returns `None`.
fn stage(receivers: u16) -> Option<Stage> {
    let root = require_root().filter(|_| is_installed())?;
    let loss = Damage::loss(LOSS);
    let plan = Lab::plan().receivers(receivers).damage(0..receivers, loss).damage_feedback(loss);
    Some(Stage::shared(&root, plan).with_group("239.255.70.9:9000"))
}

/// Starts udpcast's receiver on a host. It writes into a file with the name `name`.
fn udp_receiver(stage: &Stage, at: usize, name: &str) -> Task {
    let args = ["--nokbd", "--interface", "eth0", "--file", &stage.text(name)];
    let mut task = must(stage.lab.receiver(at).start("udp-receiver", &args));
    // It prints this line when its sockets are open.
    let _ = task.wait_for("UDP receiver", Duration::from_secs(10));
    task
}

/// Starts our receiver on a host.
fn recv(stage: &Stage, at: usize, name: &str) -> Running {
    stage.recv(at, name, &["--wire", "udpcast"])
}

fn send(stage: &Stage, file: &str, max: &str, more: &[&str]) -> Running {
    stage.send(&[file], &[&["--wire", "udpcast", "--expect", "3", "--max", max], more].concat())
}

/// Waits for the successful end of one of udpcast's programs.
pub fn finish(task: Task) {
    must(task.finish(Duration::from_secs(60)).and_then(|done| done.ok()));
}

/// Checks the content of a receiver: a file of udpcast's receiver, or a directory of ours with one file.
fn has(stage: &Stage, name: &str) {
    let path = stage.path(name);
    let file = match path.is_dir() {
        true => must(must(std::fs::read_dir(&path)).next().expect("one file")).path(),
        false => path,
    };
    let (got, expected) = (must(std::fs::read(file)), noise("image", FILE));
    assert!(got == expected, "{name} has {} bytes of {FILE}, or others", got.len());
}

/// Needs a kernel: udpcast uses kernel sockets and timers.
#[test]
fn udpcast_receivers_get_the_same_bytes_despite_losses() {
    let Some(stage) = stage(3) else { return };
    let file = stage.file("image", FILE);
    for scheme in ["ormcc", "le-sbcc", "pgmcc", "tfmcc"] {
        let names = [0, 1, 2].map(|at| format!("{scheme}-{at}"));
        let tasks: Vec<_> =
            names.iter().enumerate().map(|(at, name)| udp_receiver(&stage, at, name)).collect();
        let source = send(&stage, &file, "40M", &["--cc", scheme]).succeeds(60);
        tasks.into_iter().for_each(finish);
        names.iter().for_each(|name| has(&stage, name));
        assert!(source.number("repairs") > 50.0 && source.number("cuts") > 0.0, "{source:?}");
        assert_eq!(source.number("completed"), 3.0);
        print_line(&format!(
            "{scheme}: {:.1} Mbit/s, {} repairs, {} polls, {} answers, {} cuts",
            source.number("goodput_bps") / 1e6,
            source.number("repairs"),
            source.number("polls"),
            source.number("answers"),
            source.number("cuts"),
        ));
    }
}

/// Needs a kernel: udpcast uses kernel sockets and timers.
#[test]
fn udpcast_senders_serve_our_receivers_beside_theirs() {
    let Some(stage) = stage(3) else { return };
    let file = stage.file("image", FILE);
    let ours = [0, 1].map(|at| recv(&stage, at, &format!("ours-{at}")));
    let theirs = udp_receiver(&stage, 2, "theirs");
    let args =
        ["--nokbd", "--interface", "eth0", "--min-receivers", "3", "--max-bitrate", "40m", "--file", &file];
    let sender = must(stage.lab.sender().start("udp-sender", &args));
    ours.into_iter().for_each(|receiver| {
        let received = receiver.succeeds(60);
        assert_eq!(received.number("bytes"), FILE as f64);
    });
    finish(theirs);
    finish(sender);
    ["ours-0", "ours-1", "theirs"].iter().for_each(|name| has(&stage, name));
}

/// Needs a kernel: udpcast uses kernel sockets and timers.
#[test]
fn one_session_serves_receivers_of_both_programs() {
    let Some(stage) = stage(3) else { return };
    let file = stage.file("image", FILE);
    let ours = [0, 1].map(|at| recv(&stage, at, &format!("ours-{at}")));
    let theirs = udp_receiver(&stage, 2, "theirs");
    let source = send(&stage, &file, "40M", &[]).succeeds(60);
    ours.into_iter().for_each(|receiver| {
        receiver.succeeds(20);
    });
    finish(theirs);
    ["ours-0", "ours-1", "theirs"].iter().for_each(|name| has(&stage, name));
    assert_eq!(source.number("completed"), 3.0);
}

/// Needs a kernel: udpcast uses kernel sockets and timers.
#[test]
fn killed_udpcast_receiver_is_dropped_by_address() {
    let Some(stage) = stage(3) else { return };
    let file = stage.file("image", FILE);
    let mut tasks = [0, 1, 2].map(|at| udp_receiver(&stage, at, &format!("r{at}")));
    let mut source = send(&stage, &file, "10M", &["--timeout", "3"]);
    source.reaches(0.3, 30);
    tasks[1].kill();
    let ended = source.ends(60);
    let [first, killed, last] = tasks;
    [first, last].into_iter().for_each(finish);
    drop(killed);
    ["r0", "r2"].iter().for_each(|name| has(&stage, name));
    assert_ne!(ended.code, 0, "{ended:?}");
    assert_eq!((ended.number("completed"), ended.number("receivers")), (2.0, 3.0));
    let address = stage.lab.receiver(1).ipv4().to_string();
    assert!(ended.all("left").any(|left| left["host"] == address.as_str()), "{ended:?}");
}
