//! The real binary: exit codes, streams, closed pipes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

fn faircast(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faircast"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn ended(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = faircast(arguments).output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code().expect("no signal"), text(stdout), text(stderr))
}

/// A group of this process and number, so that tests do not hear each other.
fn group(number: u8) -> String {
    let [.., a, b] = std::process::id().to_be_bytes();
    format!("239.255.{}.{}:{}", 1 + a % 254, b, 20_000 + u16::from(number))
}

#[test]
fn what_makes_no_sense_exits_with_2_and_says_what_to_do() {
    for (arguments, said) in [
        (vec!["send"], "PATH"),
        (vec!["send", "Cargo.toml", "--ttl", "0"], "TTL of 0"),
        (vec!["send", "Cargo.toml", "--group", "192.0.2.1"], "not a multicast address"),
        (vec!["send", "Cargo.toml", "--min", "9M", "--max", "8M"], "`--min` (9.0 Mbit/s) is above `--max`"),
        (vec!["send", "no/such/file"], "there is nothing at no/such/file"),
        (vec!["recv", "--key", "no/such/key"], "cannot read the key file"),
        (vec!["send", "Cargo.toml", "--open", "--iface", "nosuch0"], "nosuch0"),
        (vec!["schemes", "nosuch"], "there is no scheme"),
        (vec!["nosuch"], "nosuch"),
    ] {
        let (code, out, err) = ended(&arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
        assert!(err.contains("error: "), "{arguments:?}: {err}");
    }
}

#[test]
fn a_program_is_told_too_that_its_request_makes_no_sense() {
    let (code, out, _) = ended(&["send", "no/such/file", "--json"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(code, 2);
    assert!(lines[0].starts_with(r#"{"event":"error","class":"usage","message":"#), "{out}");
    assert_eq!(lines[1], r#"{"event":"done","ok":false}"#);
}

#[test]
fn help_is_on_standard_output_for_every_command() {
    for command in ["send", "recv", "stream", "keygen", "doctor", "dissector", "demo", "schemes"] {
        let (code, out, err) = ended(&[command, "--help"]);
        assert_eq!((code, err.as_str()), (0, ""), "{command}");
        assert!(out.contains("Usage: faircast"), "{command}: {out}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for arguments in [vec!["completions", "bash"], vec!["schemes"], vec!["dissector"], vec!["man"]] {
        let mut child = faircast(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{arguments:?}");
        assert_eq!(said, "", "{arguments:?}");
    }
}

#[test]
fn a_source_whose_listener_goes_away_ends_without_a_word() {
    let group = group(6);
    let mut child = faircast(&["send", "Cargo.toml", "--json", "--iface", "lo", "--group", &group])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert_eq!((child.wait().expect("it ends").code(), said.as_str()), (Some(1), ""));
}

#[test]
fn doctor_exits_with_1_when_a_check_fails() {
    let (code, out, err) = ended(&["doctor", "--iface", "nosuch0"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("FAIL  choice") && out.contains("nosuch0"), "{out}");
}

#[test]
fn a_key_that_exists_is_not_overwritten() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("lab.key");
    let path = path.to_str().expect("text");
    assert_eq!(ended(&["keygen", path]).0, 0);
    let (code, _, err) = ended(&["keygen", path]);
    assert_eq!(code, 2);
    assert!(err.contains("exists") && err.contains("hint: "), "{err}");
    let (code, key, _) = ended(&["keygen", "-"]);
    assert_eq!((code, key.lines().count()), (0, 1));
}

#[test]
fn doctor_finds_this_host_able_to_hear_itself() {
    let (code, out, err) = ended(&["doctor", "--json", "--iface", "lo"]);
    assert_eq!(code, 0, "{out}{err}");
    let last = out.lines().last().expect("a done line");
    assert!(last.starts_with(r#"{"event":"done","ok":true"#), "{last}");
    let loopback = out.lines().find(|line| line.contains(r#""check":"loopback""#)).expect("it was checked");
    assert!(loopback.contains(r#""verdict":"ok""#), "{loopback}");
}

#[test]
fn a_source_that_nobody_answers_exits_with_1() {
    let group = group(1);
    let (code, out, err) = ended(&[
        "send",
        "Cargo.toml",
        "--open",
        "--json",
        "--iface",
        "lo",
        "--group",
        &group,
        "--wait",
        "0.5",
    ]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.lines().last().expect("a done line").contains(r#""ok":false"#), "{out}");
    assert!(err.contains("no receiver answered"), "{err}");
}

#[test]
fn a_receiver_that_hears_no_source_exits_with_1() {
    let (group, directory) = (group(2), tempfile::tempdir().expect("a temporary directory"));
    let out = directory.path().to_str().expect("text");
    let (code, _, err) = ended(&["recv", "--iface", "lo", "--group", &group, "--wait", "0.5", "--out", out]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("no session was announced"), "{err}");
}

#[test]
fn a_file_arrives_whole_and_both_ends_say_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (source, out) = (directory.path().join("data.bin"), directory.path().join("out"));
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&source, &content).expect("it is ours");
    let group = group(3);
    let common = ["--iface", "lo", "--group", &group, "--json"];
    let receiver = faircast(&["recv", "--wait", "20", "--out", out.to_str().expect("text")])
        .args(common)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let sent = faircast(&["send", "--open", "--expect", "1", "--wait", "20", source.to_str().expect("text")])
        .args(common)
        .output()
        .expect("the binary starts");
    let received = receiver.wait_with_output().expect("it ends");
    for (output, counted) in
        [(sent, r#""verified":1,"bytes":3000000"#), (received, r#""files":1,"bytes":3000000"#)]
    {
        let text = String::from_utf8(output.stdout).expect("text");
        let last = text.lines().last().expect("a done line");
        assert!(last.contains(r#""event":"done","ok":true"#) && last.contains(counted), "{text}");
        assert_eq!(output.status.code(), Some(0));
    }
    assert_eq!(std::fs::read(out.join("data.bin")).expect("it arrived"), content);
}

#[test]
fn a_stream_is_data_on_standard_output_and_nothing_else() {
    let group = group(4);
    let common = ["--iface", "lo", "--group", &group];
    let receiver = faircast(&["recv", "--stdout", "--json", "--wait", "20"])
        .args(common)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut source =
        faircast(&["send", "-", "--name", "lines", "--open", "--expect", "1", "--wait", "20", "-q"])
            .args(common)
            .stdin(Stdio::piped())
            .spawn()
            .expect("the binary starts");
    let mut input = source.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"one\ntwo\n").expect("it reads");
    drop(input);
    assert!(source.wait().expect("it ends").success());
    let output = receiver.wait_with_output().expect("it ends");
    assert_eq!(output.stdout, b"one\ntwo\n");
    let last = BufReader::new(&*output.stderr).lines().last().expect("a done line").expect("text");
    assert!(last.contains(r#""event":"done","ok":true"#), "{last}");
}

#[test]
fn an_interrupted_receiver_ends_in_order_with_1() {
    let (group, directory) = (group(5), tempfile::tempdir().expect("a temporary directory"));
    let child = faircast(&["recv", "--json", "--iface", "lo", "--group", &group, "--out"])
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let opened = lines.next().expect("it opens").expect("text");
    assert!(opened.contains(r#""event":"opened""#), "{opened}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let last = lines.map_while(Result::ok).last().expect("a done line");
    assert_eq!(last, r#"{"event":"done","ok":false}"#);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}
