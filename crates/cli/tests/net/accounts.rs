//! Text, JSON, report file and exit code of a session agree. The tests stop the session, let hosts be missing or refuse the
//! session, and close a reader's pipe. A source waits for missing hosts only until the join timeout or a request to start.

use crate::kit::{Ended, FAIRCAST, Running, Stage, must};
use crate::security::key;
use faircast_testkit::{Lab, require_root};
use serde_json::Value;
use std::time::Duration;

/// Returns the report that a source has written.
fn report(stage: &Stage, name: &str) -> Value {
    must(serde_json::from_str(&must(std::fs::read_to_string(stage.path(name)))))
}

/// Returns the outcome of each host.
fn outcomes(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let receivers = report["receivers"].as_array().unwrap_or_else(|| panic!("{report}"));
    receivers.iter().map(|one| (text(&one["host"]), text(&one["outcome"]))).collect()
}

fn hosts(stage: &Stage, names: &[&str]) -> String {
    must(std::fs::write(stage.path("hosts"), names.join("\n")));
    stage.text("hosts")
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(host, outcome)| ((*host).to_owned(), (*outcome).to_owned())).collect()
}

/// Needs a kernel: a signal stops one process while other processes run.
#[test]
fn stopped_source_reports_each_receiver_and_its_state() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 20_000_000);
    let receivers = stage.recv_everywhere(&[]);
    let path = stage.text("report.json");
    let flags = ["--expect", "2", "--max", "8M", "--report", &path, "--join-timeout", "60"];
    let mut source = stage.send(&[&file], &flags);
    source.reaches(0.1, 30);
    source.task.interrupt();
    let source = source.ends(10);
    assert_eq!(source.code, 1, "{source:?}");
    let done = source.done();
    assert!(done["ok"] == false && done["stopped"] == true && done["receivers"] == 2, "{source:?}");
    assert!(source.message().starts_with("stopped"), "{source:?}");
    let report = report(&stage, "report.json");
    assert_eq!(outcomes(&report), owned(&[("r0", "incomplete"), ("r1", "incomplete")]));
    assert!(report["exit_code"] == 1 && report["incomplete"] == 2, "{report}");
    assert_eq!(report["moved_bytes"], done["moved_bytes"]);
    for receiver in receivers {
        receiver.ends(10).failed(1, "it was stopped");
    }
}

/// Needs a kernel: a signal stops one process while another process runs.
#[test]
fn daemon_stopped_during_a_session_ends_with_exit_code_1() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 20_000_000);
    let mut daemon = stage.recv(0, "r0", &["--serve"]);
    let mut source = stage.send(&[&file], &["--expect", "1", "--max", "8M", "--join-timeout", "60"]);
    source.reaches(0.1, 30);
    daemon.task.interrupt();
    let daemon = daemon.ends(10);
    assert_eq!(daemon.code, 1, "{daemon:?}");
    let done = daemon.done();
    assert!(done["stopped"] == true && done["resumes"] == true, "{daemon:?}");
    assert!(daemon.message().contains("verified and stored"), "{daemon:?}");
    source.task.interrupt();
    let source = source.ends(10);
    assert_eq!(source.done()["incomplete"][0]["reason"], "the receiver was stopped", "{source:?}");
}

/// Needs a kernel: the reader of a pipe closes it.
#[test]
fn headline_has_no_rate_if_the_only_receiver_has_a_closed_pipe() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 30_000_000);
    let line = format!("{FAIRCAST} recv --stdout --group {} | head -c 100 >/dev/null", stage.group);
    let receiver = Running::shell(stage.lab.receiver(0), &line);
    let args = ["send", "--no-key", "--group", &stage.group, "--expect", "1", "--join-timeout", "60", &file];
    let source = Running::start(stage.lab.sender(), &args).ends(40);
    receiver.ends(10);
    assert_eq!(source.code, 1, "{source:?}");
    let headline = source.stderr.lines().find(|line| line.contains(" verified after ")).unwrap_or_default();
    assert!(headline.starts_with("0 of 1 receiver verified after "), "{source:?}");
    assert!(!headline.contains("bit/s"), "{headline}");
}

/// Needs a kernel: one process sends a signal that starts the session of another process.
#[test]
fn waiting_source_starts_on_request_and_names_the_missing_host() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 1_000_000);
    let (hosts, path) = (hosts(&stage, &["r0", "pc7"]), stage.text("report.json"));
    let receiver = stage.recv(0, "r0", &[]);
    let args = ["send", "--no-key", "--group", &stage.group, "--join-timeout", "600", &file];
    let args = [&args[..], &["--receivers", &hosts, "--report", &path]].concat();
    let mut source = Running::start(stage.lab.sender(), &args);
    source.prints("waiting: 1 of 2 receivers missing: pc7", 20);
    let pid = source.task.pid().to_string();
    let asked: Ended = Running::start(stage.lab.sender(), &["start", &pid]).ends(10);
    assert!(asked.code == 0 && asked.stdout.contains(&format!("asked process {pid} to start")), "{asked:?}");
    let source = source.ends(20);
    receiver.succeeds(5);
    assert_eq!(source.code, 1, "{source:?}");
    assert!(source.stderr.contains("; waited ") && source.stderr.contains("did not join: pc7"), "{source:?}");
    assert_eq!(outcomes(&report(&stage, "report.json")), owned(&[("pc7", "absent"), ("r0", "verified")]));
    // `start` sends no signal to a process that is not a source.
    let refused = Running::start(stage.lab.sender(), &["start", "1"]).ends(10);
    assert!(refused.code == 2 && refused.stderr.contains("process 1 is no"), "{refused:?}");
}

/// Needs a kernel: three processes with keys in files.
#[test]
fn host_with_another_key_appears_as_refused_in_the_report() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 100_000);
    let (ours, other) = (key(&stage, "lab.key"), key(&stage, "other.key"));
    let (hosts, path) = (hosts(&stage, &["r0", "r1"]), stage.text("report.json"));
    let receiver = stage.recv(0, "r0", &["--key", &ours]);
    let mut stranger = stage.recv(1, "r1", &["--key", &other]);
    let flags = ["--key", &ours, "--receivers", &hosts, "--report", &path, "--join-timeout", "4"];
    let source = stage.send(&[&file], &flags).ends(30);
    receiver.succeeds(5);
    stranger.task.interrupt();
    stranger.ends(5);
    assert_eq!(source.code, 1, "{source:?}");
    assert!(source.message().contains("r1 (refused: it has another key ("), "{source:?}");
    assert!(source.message().contains("give r1 this session's key"), "{source:?}");
    let report = report(&stage, "report.json");
    assert_eq!(outcomes(&report), owned(&[("r0", "verified"), ("r1", "refused")]));
    assert!(source.took < Duration::from_secs(60), "the wait is spent once: {source:?}");
}
