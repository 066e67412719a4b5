//! Outputs that accept no data do not stall a session. Such outputs are a full pipe, a pipe whose reader reads only after the end
//! of the command, and a blocked disk. The tests need a kernel for pipes and for a file system that blocks writes.

use crate::kit::{Ended, FAIRCAST, Running, Stage};
use faircast_testkit::{Bottleneck, Lab, Node, require_root};
use std::process::Command;

/// Capacity of a pipe, in bytes.
const FULL: usize = 65_536;

/// Runs a command whose standard output and standard error are one pipe. No program reads the pipe, which already contains
/// `filled` bytes. After the end of the command, prints the pipe's content and the exit code.
fn unread(stage: &Stage, node: &Node, filled: usize, command: &str) -> Running {
    let pipe = stage.text(&format!("{}.pipe", command.split(' ').next().unwrap_or_default()));
    let line = format!(
        "mkfifo {pipe}; exec 8<>{pipe}; head -c {filled} /dev/zero >&8; {FAIRCAST} {command} >{pipe} 2>&1 & \
         trap \"kill -INT $!\" INT; wait $!; code=$?; [ $code -lt 128 ] || {{ wait $!; code=$?; }}; \
         timeout 1 cat <&8 | tr -d '\\0'; echo ended with $code"
    );
    Running::shell(node, &line)
}

fn code(ended: &Ended) -> i32 {
    let code = ended.stdout.lines().rev().find_map(|line| line.strip_prefix("ended with "));
    code.and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{ended:?}"))
}

/// Needs a kernel: unread pipes.
#[test]
fn unread_json_stalls_neither_source_nor_receiver() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let (file, group) = (stage.file("image", 3_000_000), stage.group.clone());
    let reading = stage.recv(0, "r0", &[]);
    let receiver = format!("recv --json --group {group} --host r1 --out {}", stage.text("r1"));
    // Half of the pipe remains free for the last lines.
    let receiver = unread(&stage, stage.lab.receiver(1), FULL / 2, &receiver);
    let source = format!("send {file} --json --no-key --group {group} --expect 2 --join-timeout 60");
    let source = unread(&stage, stage.lab.sender(), FULL, &source);
    reading.succeeds(30);
    let (source, receiver) = (source.ends(30), receiver.ends(30));
    assert_eq!((code(&source), code(&receiver)), (0, 0), "{source:?}{receiver:?}");
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
    let events: Vec<&str> = receiver.events.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events.last(), Some(&"done"), "{receiver:?}");
    assert!(events.contains(&"dropped"), "{receiver:?}");
}

/// Needs a kernel: unread pipes.
#[test]
fn unread_lines_stall_neither_a_stream_nor_a_daemon() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let group = stage.group.clone();
    let serve = format!("recv --serve --group {group} --host r0 --out {}", stage.text("r0"));
    let mut serve = unread(&stage, stage.lab.receiver(0), FULL, &serve);
    let live = stage.file("live", 400_000);
    let stream = format!("stream --no-key --group {group} --expect 1 --join-timeout 60 < {live}");
    let stream = unread(&stage, stage.lab.sender(), FULL, &stream).ends(30);
    assert_eq!(code(&stream), 0, "{stream:?}");
    let file = stage.file("image", 1_000_000);
    stage.send(&[&file], &["--expect", "1", "--join-timeout", "60"]).succeeds(30);
    assert!(stage.has("r0", &file));
    serve.task.interrupt();
    let serve = serve.ends(30);
    assert_eq!(code(&serve), 0, "{serve:?}");
}

/// Needs a kernel: an unread pipe.
#[test]
fn unread_json_does_not_stall_the_relay() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let (file, group) = (stage.file("image", 1_000_000), stage.group.clone());
    let below = format!("239.255.71.9:{}", group.rsplit(':').next().unwrap_or_default());
    let control = stage.text("relay.sock");
    let relay = format!("relay --json --verbose --from {group} --to {below} --control {control}");
    let mut relay = unread(&stage, stage.lab.receiver(1), FULL, &relay);
    let child = stage.with_group(&below);
    let receiver = child.recv(0, "r0", &[]);
    let args =
        ["send", "--json", "--no-key", "--group", &group, "--expect", "1", "--join-timeout", "60", &file];
    Running::start(child.lab.sender(), &args).succeeds(30);
    receiver.succeeds(10);
    assert!(child.has("r0", &file));
    relay.task.interrupt();
    let relay = relay.ends(30);
    assert_eq!(code(&relay), 0, "{relay:?}");
}

/// A separate file system below the stage's directory. While it is frozen, writes block.
struct Disk(String);

impl Disk {
    fn mounted(stage: &Stage, name: &str) -> Disk {
        let (image, at) = (stage.text(&format!("{name}.image")), stage.text(name));
        run("truncate", &["-s", "96M", &image]);
        run("mkfs.ext4", &["-q", "-F", &image]);
        run("mkdir", &[&at]);
        run("mount", &["-o", "loop", &image, &at]);
        Disk(at)
    }

    fn freeze(&self) {
        run("fsfreeze", &["--freeze", &self.0]);
    }

    fn thaw(&self) {
        run("fsfreeze", &["--unfreeze", &self.0]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // An error means that the file system was not frozen.
        Command::new("fsfreeze").args(["--unfreeze", &self.0]).output().ok();
        Command::new("umount").args(["--lazy", &self.0]).output().ok();
    }
}

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Another receiver completes while the disk of one receiver accepts no data. The stalled receiver continues to send reports, and
/// its window stays open.
///
/// Needs a kernel: a file system that blocks writes.
#[test]
fn stalled_disk_blocks_neither_feedback_nor_the_session() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().receivers(2).bottleneck(0, Bottleneck::mbps(40.0).queue(80_000));
    let stage = Stage::shared(&root, plan);
    let file = stage.file("image", 16_000_000);
    let disk = Disk::mounted(&stage, "r1");
    let (sound, mut stalled) = (stage.recv(0, "r0", &[]), stage.recv(1, "r1", &[]));
    let source = stage.send(&[&file], &["--expect", "2", "--join-timeout", "60"]);
    stalled.reaches(0.2, 20);
    disk.freeze();
    stalled.reaches(0.95, 30);
    sound.succeeds(30);
    assert!(!stage.has("r1", &file));
    disk.thaw();
    let (stalled, source) = (stalled.succeeds(30), source.succeeds(30));
    assert!(stage.has("r1", &file));
    assert_eq!(source.number("verified"), 2.0, "{source:?}");
    assert_eq!(stalled.number("dropped_local"), 0.0, "{stalled:?}");
}
