//! Tests of the program: exit codes, streams, closed pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time limit of a session, longer than any of these sessions takes.
const PATIENCE: Duration = Duration::from_secs(40);

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

/// Returns the output and exit status of a session. A session that hangs is killed, and its exit code fails the test.
fn finish(child: Child) -> Output {
    let (ended, waiting) = mpsc::channel::<()>();
    let pid = rustix::process::Pid::from_child(&child);
    let watchdog = thread::spawn(move || {
        if waiting.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            // The process may have ended in the meantime.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().expect("it can be waited for");
    drop(ended);
    watchdog.join().expect("the watchdog does not panic");
    output
}

/// Starts a session with captured output.
fn session(arguments: &[&str], group: &str) -> Child {
    faircast(arguments)
        .args(["--iface", "lo", "--group", group])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

fn last_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().last().unwrap_or_default().to_owned()
}

/// Returns bytes with a long period.
fn content(len: u32) -> Vec<u8> {
    (0..len).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Returns a group that depends on this process and on `number`, so that tests do not receive each other's packets.
fn group(number: u8) -> String {
    let [.., a, b] = std::process::id().to_be_bytes();
    format!("239.255.{}.{}:{}", 1 + a % 254, b, 20_000 + u16::from(number))
}

#[test]
fn invalid_arguments_cause_exit_code_2_and_a_hint() {
    for (arguments, words) in [
        (vec!["send"], "PATH"),
        (vec!["send", "Cargo.toml", "--ttl", "0"], "TTL of 0"),
        (vec!["send", "Cargo.toml", "--group", "192.0.2.1"], "not a multicast address"),
        (vec!["send", "Cargo.toml", "--min", "9M", "--max", "8M"], "`--min` (9.0 Mbit/s) is above `--max`"),
        (vec!["send", "no/such/file"], "no/such/file does not exist"),
        (vec!["recv", "--key", "no/such/key"], "cannot read the key file"),
        (vec!["send", "Cargo.toml", "--no-key", "--iface", "nosuch0"], "nosuch0"),
        (vec!["schemes", "nosuch"], "there is no scheme"),
        (vec!["nosuch"], "nosuch"),
    ] {
        let (code, out, err) = ended(&arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
        assert!(err.contains("error: "), "{arguments:?}: {err}");
    }
}

#[test]
fn usage_error_is_reported_in_json() {
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
fn closed_output_of_a_print_command_is_not_an_error() {
    for arguments in [vec!["completions", "bash"], vec!["schemes"], vec!["dissector"], vec!["man"]] {
        let mut child = faircast(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        drop(child.stdout.take());
        let mut words = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut words).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{arguments:?}");
        assert_eq!(words, "", "{arguments:?}");
    }
}

#[test]
fn source_with_closed_output_ends_silently() {
    let group = group(6);
    let mut child = faircast(&["send", "Cargo.toml", "--json", "--iface", "lo", "--group", &group])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let mut words = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut words).expect("text");
    assert_eq!((child.wait().expect("it ends").code(), words.as_str()), (Some(1), ""));
}

#[test]
fn failed_check_of_doctor_causes_exit_code_1() {
    let (code, out, err) = ended(&["doctor", "--iface", "nosuch0"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("FAIL  choice") && out.contains("nosuch0"), "{out}");
}

#[test]
fn existing_key_file_is_not_overwritten() {
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
fn doctor_finds_working_loopback_on_this_host() {
    let (code, out, err) = ended(&["doctor", "--json", "--iface", "lo"]);
    assert_eq!(code, 0, "{out}{err}");
    let last = out.lines().last().expect("a done line");
    assert!(last.starts_with(r#"{"event":"done","ok":true"#), "{last}");
    let loopback = out.lines().find(|line| line.contains(r#""check":"loopback""#)).expect("it was checked");
    assert!(loopback.contains(r#""verdict":"ok""#), "{loopback}");
}

#[test]
fn source_without_receivers_ends_with_exit_code_1() {
    let group = group(1);
    let (code, out, err) = ended(&[
        "send",
        "Cargo.toml",
        "--no-key",
        "--json",
        "--iface",
        "lo",
        "--group",
        &group,
        "--join-timeout",
        "0.5",
    ]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.lines().last().expect("a done line").contains(r#""ok":false"#), "{out}");
    assert!(err.contains("no receiver answered"), "{err}");
}

#[test]
fn receiver_without_a_source_ends_with_exit_code_1() {
    let (group, directory) = (group(2), tempfile::tempdir().expect("a temporary directory"));
    let out = directory.path().to_str().expect("text");
    let (code, _, err) =
        ended(&["recv", "--iface", "lo", "--group", &group, "--join-timeout", "0.5", "--out", out]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("no session was announced"), "{err}");
}

#[test]
fn file_arrives_and_both_ends_report_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (source, out) = (directory.path().join("data.bin"), directory.path().join("out"));
    std::fs::write(&source, content(3_000_000)).expect("it is ours");
    let group = group(3);
    let out_text = out.to_str().expect("text");
    let receiver = session(&["recv", "--json", "--join-timeout", "20", "--out", out_text], &group);
    let source = source.to_str().expect("text");
    let sent = finish(session(
        &["send", source, "--json", "--no-key", "--expect", "1", "--join-timeout", "20"],
        &group,
    ));
    let received = finish(receiver);
    let ends = [
        (sent, r#""verified":1,"bytes":3000000"#),
        (received, r#""files":1,"links":0,"directories":0,"deleted":0,"bytes":3000000"#),
    ];
    for (output, counted) in ends {
        let last = last_line(&output.stdout);
        assert!(last.contains(r#""event":"done","ok":true"#) && last.contains(counted), "{last}");
        assert_eq!(output.status.code(), Some(0));
    }
    assert!(std::fs::read(out.join("data.bin")).expect("it arrived") == content(3_000_000));
}

/// Pipes `input` through a source and a receiver. Returns the received bytes, and the last line of the receiver's standard error.
fn piped(arguments: &[&str], group: &str, input: &[u8]) -> (Vec<u8>, String) {
    let receiver = session(&["recv", "--stdout", "--json", "--join-timeout", "20"], group);
    // The receiver's output must be read. Otherwise the receiver waits for room in the pipe, and the source waits for the
    // receiver.
    let receiver = thread::spawn(move || finish(receiver));
    let common = ["--no-key", "--expect", "1", "--join-timeout", "20", "-q"];
    let mut source = session(&[arguments, &common].concat(), group);
    source.stdin.take().expect("a pipe").write_all(input).expect("it reads");
    let sent = finish(source);
    assert_eq!(sent.status.code(), Some(0), "{}", String::from_utf8_lossy(&sent.stderr));
    let output = receiver.join().expect("it is waited for");
    (output.stdout, last_line(&output.stderr))
}

#[test]
fn standard_input_arrives_unchanged_on_standard_output() {
    let (out, last) = piped(&["send", "-", "--name", "lines"], &group(4), b"one\ntwo\n");
    assert_eq!(out, b"one\ntwo\n");
    assert!(last.contains(r#""event":"done","ok":true"#), "{last}");
}

#[test]
fn live_stream_arrives_completely() {
    let (out, last) = piped(&["stream"], &group(7), &content(1_000_000));
    assert!(out == content(1_000_000), "{} bytes", out.len());
    assert!(last.contains(r#""event":"done","ok":true"#), "{last}");
}

#[test]
fn receiver_with_closed_output_ends_silently() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("data.bin");
    std::fs::write(&source, content(3_000_000)).expect("it is ours");
    let group = group(8);
    let mut receiver = session(&["recv", "--stdout", "-q", "--join-timeout", "20"], &group);
    drop(receiver.stdout.take());
    let source = source.to_str().expect("text");
    let sent = finish(session(&["send", source, "--no-key", "--expect", "1", "--join-timeout", "5"], &group));
    let received = finish(receiver);
    assert_eq!((received.status.code(), String::from_utf8_lossy(&received.stderr).as_ref()), (Some(1), ""));
    assert_eq!(sent.status.code(), Some(1), "the source knows that nobody has everything");
}

#[test]
fn interrupted_receiver_ends_cleanly_with_exit_code_1() {
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
    assert!(last.starts_with(r#"{"event":"done","ok":false,"stopped":true,"#), "{last}");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}

/// Writes a user's configuration file. Returns the output of a command that reads it.
fn configured(directory: &std::path::Path, file: &str, arguments: &[&str]) -> (i32, String, String) {
    let place = directory.join("faircast");
    std::fs::create_dir_all(&place).expect("a directory");
    std::fs::write(place.join("faircast.toml"), file).expect("a file");
    let output = faircast(arguments).env("XDG_CONFIG_HOME", directory).output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

#[test]
fn options_of_the_users_file_are_in_force_and_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = "[send]\nmax = \"40M\"\nmin = \"50M\"\n";
    let (code, shown, _) = configured(directory.path(), file, &["config"]);
    let path = directory.path().join("faircast/faircast.toml").display().to_string();
    assert!(code == 0 && shown.contains(&format!("# {path}: read\n")), "{shown}");
    assert!(shown.contains(&format!("[send]\nmax = \"40M\"  # {path}, line 2\n")), "{shown}");
    let (_, shown, _) = configured(directory.path(), file, &["config", "send"]);
    assert!(shown.contains("\nttl = \"1\"  # default\n") && shown.contains("max = \"40M\"  # "), "{shown}");
    assert!(
        shown.contains("\n# expect is not set\n") && shown.contains("\nquiet = false  # default\n"),
        "{shown}"
    );
    let (code, _, error) = configured(directory.path(), file, &["send", "Cargo.toml"]);
    assert!(code == 2 && error.contains("`--min` (50.0 Mbit/s) is above `--max` (40.0 Mbit/s)"), "{error}");
    let (code, shown, _) = configured(directory.path(), file, &["--config", "/dev/null", "config"]);
    assert!(code == 0 && !shown.contains("40M"), "{shown}");
}

#[test]
fn wrong_and_exposed_configuration_files_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let (code, _, error) = configured(directory.path(), "[recv]\nserv = true\n", &["config"]);
    assert!(code == 2 && error.contains("line 2: `recv` has no option `serv`"), "{error}");
    assert!(error.contains("a similar name is `serve`"), "{error}");
    let path = directory.path().join("faircast/faircast.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("our own file");
    let (code, _, error) = configured(directory.path(), "", &["config"]);
    assert!(code == 2 && error.contains("other users can change"), "{error}");
    let missing = directory.path().join("none.toml").display().to_string();
    let (code, _, error) = ended(&["config", "--config", &missing]);
    assert!(code == 2 && error.contains("cannot read the configuration file"), "{error}");
}
