//! Standard input: a file of unknown length, and a live stream.

use crate::kit::{FAIRCAST, Running, Stage, must};
use faircast_testkit::{Damage, Lab, require_root};

/// Needs a kernel: pipes.
#[test]
fn piped_content_of_unknown_length_reaches_a_file_and_a_pipe() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let (file, group) = (stage.file("tar", 10_000_000), stage.group.clone());
    let mut into_file = stage.recv(0, "r0", &[]);
    let copy = stage.text("copy");
    let line = format!("{FAIRCAST} recv --stdout --group {group} --quiet > {copy}");
    let into_pipe = Running::shell(stage.lab.receiver(1), &line);
    let line = format!(
        "(cat {file}; sleep 1) | {FAIRCAST} send - --name tar --no-key --json --expect 2 --group {group}"
    );
    let source = Running::shell(stage.lab.sender(), &line).succeeds(40);
    into_file.prints("\"done\"", 5);
    into_file.succeeds(5);
    assert_eq!(into_pipe.ends(5).code, 0);
    assert!(stage.has("r0", &file));
    assert!(must(std::fs::read(copy)) == must(std::fs::read(&file)), "standard output has other bytes");
    assert_eq!(source.number("bytes"), 10e6, "{source:?}");
}

/// Needs a kernel: a pipe.
#[test]
fn file_of_known_length_arrives_on_standard_output() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().damage([0], Damage::loss(0.02)));
    let (file, copy) = (stage.file("image", 3_000_000), stage.text("copy"));
    let line = format!("{FAIRCAST} recv --stdout --group {} | cat > {copy}", stage.group);
    let receiver = Running::shell(stage.lab.receiver(0), &line);
    stage.send(&[&file], &[]).succeeds(20);
    assert_eq!(receiver.ends(5).code, 0);
    assert!(must(std::fs::read(copy)) == must(std::fs::read(&file)));
}

/// Returns numbered lines. The numbers in a received part show its position in the stream.
fn lines(until: u32) -> String {
    format!(
        "i=0; while [ $i -lt {until} ]; do echo line $i of a live stream; i=$((i+1)); [ $((i % 50)) = 0 ] && sleep 0.05; done"
    )
}

/// Needs a kernel: a process starts while other processes run.
#[test]
fn late_joiner_of_a_live_stream_starts_at_the_live_position() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2).damage([0], Damage::loss(0.02)));
    let (early, late) = (stage.text("early"), stage.text("late"));
    let listen = |at: usize, to: &str| {
        let line = format!("exec {FAIRCAST} recv --stdout --quiet --group {} > {to}", stage.group);
        Running::shell(stage.lab.receiver(at), &line)
    };
    let first = listen(0, &early);
    let line = format!(
        "({}) | {FAIRCAST} stream --history 1 --latency 20ms --no-key --json --group {}",
        lines(6000),
        stage.group
    );
    let mut source = Running::shell(stage.lab.sender(), &line);
    source.prints("\"joined\"", 10);
    std::thread::sleep(std::time::Duration::from_secs(4));
    let second = listen(1, &late);
    let source = source.succeeds(40);
    for receiver in [first, second] {
        let ended = receiver.ends(20);
        assert_eq!(ended.code, 0, "the end of the stream is a good end: {ended:?}");
    }
    let (early, late) = (must(std::fs::read_to_string(early)), must(std::fs::read_to_string(late)));
    assert!(early.starts_with("line 0 of"), "{:?} {source:?}", &early[..early.len().min(80)]);
    assert_eq!(early.lines().count(), 6000, "{source:?}");
    assert!(late.ends_with("line 5999 of a live stream\n"), "{} bytes: {source:?}", late.len());
    assert!(early.ends_with(&late), "the late part is no part of the stream");
    let missed = early.len() - late.len();
    assert!(missed > early.len() / 4 && missed < early.len() * 9 / 10, "missed {missed} of {}", early.len());
}
