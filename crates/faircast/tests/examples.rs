//! Every example runs to its end and does its documented work, over the loopback interface.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Time limit, far above the duration of any example on a busy machine.
const LONG: Duration = Duration::from_secs(90);

/// Starts an example, which cargo builds in a folder next to the tests.
fn start(name: &str, arguments: &[&str]) -> Child {
    let test = std::env::current_exe().expect("a test has a path");
    let built: PathBuf = test.ancestors().nth(2).expect("tests lie in `deps`").join("examples").join(name);
    let mut command = Command::new(&built);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{}: {error}", built.display()))
}

/// Returns the output of an example that succeeds in time.
fn ends_well(mut child: Child) -> String {
    let until = Instant::now() + LONG;
    while child.try_wait().expect("it is ours").is_none() {
        if Instant::now() > until {
            child.kill().expect("it is ours");
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it is ours");
    let printed = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{status}: {printed}{}", String::from_utf8_lossy(&stderr));
    printed
}

/// Returns a group that no other test and no other run of this test uses.
fn group(number: u32) -> String {
    let pid = std::process::id();
    format!("239.255.{}.{}:{}", 100 + number, 1 + pid % 250, 10_000 + pid % 20_000)
}

#[test]
fn example_sends_a_buffer_to_two_receivers_in_one_process() {
    let printed = ends_well(start("two_receivers", &[&group(1)]));
    for words in ["left has joined", "right has everything: true", "sent to 2 receivers"] {
        assert!(printed.contains(words), "{printed}");
    }
    assert_eq!(printed.matches("numbers: 2000000 bytes, the same: true").count(), 2, "{printed}");
}

#[test]
fn examples_send_a_file_and_receive_it_into_memory() {
    let group = group(2);
    let receiver = start("receive_into_memory", &[&group, "lo"]);
    let source = start("send_a_file", &[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), &group, "lo"]);
    let bytes = include_bytes!("../Cargo.toml").len();
    let printed = ends_well(source);
    assert!(printed.contains(&format!("sent {bytes} bytes to 1 receivers")), "{printed}");
    let printed = ends_well(receiver);
    assert!(printed.contains(&format!("Cargo.toml: {bytes} bytes")), "{printed}");
}

#[test]
fn example_reports_events_while_a_file_arrives() {
    let (group, directory) = (group(3), tempfile::tempdir().expect("a temporary directory"));
    let out = directory.path().join("out");
    let watcher = start("watch_events", &[out.to_str().expect("text"), &group, "lo"]);
    let source = start("send_a_file", &[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), &group, "lo"]);
    ends_well(source);
    let printed = ends_well(watcher);
    for words in ["listening on lo", "found ", "1 files", "0 events were dropped", "verified "] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    let got = std::fs::read(out.join("Cargo.toml")).expect("it has arrived");
    assert!(got == include_bytes!("../Cargo.toml"));
}

#[test]
fn example_of_a_custom_congestion_control_runs() {
    let printed = ends_well(start("own_congestion_control", &[]));
    assert!(printed.contains("on average") && printed.contains("5 s: allowed"), "{printed}");
}

#[test]
fn examples_do_not_depend_on_the_simulator() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--edges", "normal,build,dev", "--prefix", "none"]);
    let printed = ends_well(
        tree.args(["--package", "faircast"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo runs"),
    );
    assert!(printed.contains("faircast-transport"), "{printed}");
    for package in ["faircast-sim", "faircast-experiments"] {
        assert!(!printed.lines().any(|line| line.starts_with(package)), "{printed}");
    }
}
