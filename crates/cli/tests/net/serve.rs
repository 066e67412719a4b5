//! `recv --serve`: a receiver that runs until it is stopped.

use crate::kit::{Stage, must};
use crate::security;
use faircast_testkit::{Lab, require_root};
use std::fs;
use std::time::{Duration, Instant};

/// Needs a kernel: processes start and end while another process runs.
#[test]
fn daemon_receives_further_sessions_after_a_stopped_source() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let (small, image) = (stage.file("small", 200_000), stage.file("image", 3_000_000));
    let large = stage.file("large", 6_000_000);
    let mut receiver = stage.recv(0, "r0", &["--serve", "--max-size", "5M", "--accept", "sour*"]);
    stage.send(&[&small], &["--expect", "1"]).succeeds(20);
    // A receiver refuses content that is too large. The source is notified of the reason.
    let mut refused = stage.send(&[&large], &["--join-timeout", "6"]);
    refused.prints(
        "does not join it: its rules do not accept sessions from a source of this name, or of this size",
        5,
    );
    refused.task.interrupt();
    refused.ends(5);
    // A stopped source does not end the receiver.
    let mut stopped = stage.send(&[&image], &["--expect", "1", "--max", "8M"]);
    stopped.reaches(0.2, 20);
    stopped.task.interrupt();
    assert_eq!(stopped.ends(10).code, 1);
    let source = stage.send(&[&image], &["--expect", "1"]).succeeds(20);
    assert!(source.number("moved_bytes") < 3_000_000.0, "it goes on where it was: {source:?}");
    receiver.task.interrupt();
    let receiver = receiver.ends(10);
    assert_eq!(receiver.code, 0, "{receiver:?}");
    let ends: Vec<_> = receiver.all("done").map(|done| done["ok"] == true).collect();
    assert_eq!(ends, [true, false, true], "{receiver:?}");
    assert!(stage.has("r0", &small) && stage.has("r0", &image) && !stage.has("r0", &large));
}

/// Needs a kernel: events of a directory, and daemons on two hosts.
#[test]
fn files_and_directories_of_a_watched_directory_reach_daemons() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let (inbox, sent) = (stage.path("inbox"), stage.path("sent"));
    must(fs::create_dir(&inbox));
    must(fs::create_dir_all(stage.path("tree/sub")));
    stage.file("file", 200_000);
    stage.file("tree/sub/inner", 300_000);
    let receivers = stage.recv_everywhere(&["--serve"]);
    let watch = ["--watch", &stage.text("inbox"), "--sent-to", &stage.text("sent"), "--expect", "2"];
    let source = stage.send(&[], &watch);
    for name in ["file", "tree"] {
        must(fs::rename(stage.path(name), inbox.join(name)));
        let end = Instant::now() + Duration::from_secs(120);
        while !sent.join(name).exists() {
            assert!(Instant::now() < end, "{name} was not sent: {}", source.task.stdout());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    for mut process in receivers.into_iter().chain([source]) {
        process.task.interrupt();
        let ended = process.ends(20);
        assert_eq!(ended.code, 0, "{ended:?}");
        let numbers: Vec<_> = ended.all("numbered").map(|event| event["number"].as_u64()).collect();
        assert_eq!(numbers, [Some(1), Some(2)], "{ended:?}");
    }
    for (host, file) in
        ["r0", "r1"].into_iter().flat_map(|host| ["file", "tree/sub/inner"].map(|file| (host, file)))
    {
        let got = must(fs::read(stage.path(host).join(file)));
        assert!(got == must(fs::read(sent.join(file))), "{host} has another {file}");
    }
}

/// Needs a kernel: two processes send to one group.
#[test]
fn second_source_on_a_busy_group_gets_a_warning() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let (first, second) = (stage.file("first", 4_000_000), stage.file("second", 1_000));
    let receiver = stage.recv(0, "r0", &[]);
    let mut busy = stage.send(&[&first], &["--expect", "1", "--max", "8M"]);
    busy.reaches(0.1, 20);
    let mut late = stage.send(&[&second], &["--join-timeout", "30"]);
    // The second source is notified of the session that the receiver has joined. The receiver names both sources in its output.
    late.prints("\"event\":\"busy\"", 5);
    late.prints("\"source\":\"source\",\"content\":\"first\"", 5);
    late.crashes();
    busy.succeeds(20);
    let receiver = receiver.succeeds(5);
    let other = receiver.all("other_source").next().expect("it hears both");
    assert!(other["host"] == "source" && other["followed"] == "source", "{receiver:?}");
}

/// Needs a kernel: a process is killed.
#[test]
fn interrupted_session_is_replaced_by_the_next_session() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let key = security::key(&stage, "lab.key");
    let (first, other) = (stage.file("first", 4_000_000), stage.file("other", 3_000_000));
    for (case, second, flags) in
        [("same", &first, &[][..]), ("other", &other, &[][..]), ("sealed", &other, &["--key", &key][..])]
    {
        let (plain, served) = (format!("{case}-plain"), format!("{case}-served"));
        let receiver = stage.recv(0, &plain, flags);
        let mut serving = stage.recv(1, &served, &[flags, &["--serve"]].concat());
        let mut killed = stage.send(&[&first], &[flags, &["--expect", "2", "--max", "8M"]].concat());
        killed.reaches(0.2, 20);
        killed.crashes();
        let sent =
            stage.send(&[second], &[flags, &["--expect", "2", "--join-timeout", "60"]].concat()).succeeds(60);
        assert_eq!(sent.number("verified"), 2.0, "{sent:?}");
        let receiver = receiver.succeeds(10);
        let reported = |line: &serde_json::Value| {
            line["message"].as_str().unwrap_or_default().contains("started a new session")
        };
        assert!(receiver.all("warning").any(reported), "{receiver:?}");
        serving.task.interrupt();
        let served_end = serving.ends(10);
        // A second receiver may have joined the new session while the first receiver still waits for the killed source.
        assert!(served_end.code == 0 || served_end.message().contains("stopped; "), "{case}: {served_end:?}");
        assert!(stage.has(&plain, second) && stage.has(&served, second), "{case}");
    }
}

/// Needs a kernel: sources on two hosts, and files on a disk.
#[test]
fn content_of_another_source_is_replaced_only_on_request() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let key = security::key(&stage, "lab.key");
    let [first, second, third] = [("1", 300_000), ("2", 310_000), ("3", 320_000)].map(|(name, len)| {
        must(std::fs::create_dir(stage.path(name)));
        stage.file(&format!("{name}/image"), len)
    });
    let other = stage.lab.receiver(1);
    let send_from_other = |file: &str, flags: &[&str]| {
        let args = ["send", file, "--json", "--group", &stage.group, "--join-timeout", "20"];
        crate::kit::Running::start(other, &[&args, flags].concat())
    };
    let receiver = stage.recv(0, "r0", &[]);
    stage.send(&[&first], &[]).succeeds(20);
    receiver.succeeds(5);
    let receiver = stage.recv(0, "r0", &[]);
    let refused = send_from_other(&second, &["--no-key", "--host", "lab2"]).ends(30);
    assert!(refused.code == 1, "{refused:?}");
    let left = refused.all("left").next().expect("the receiver says why");
    assert!(
        left["reason"].as_str().is_some_and(|why| why.contains("content of another source")),
        "{refused:?}"
    );
    receiver.ends(10).failed(1, "--overwrite");
    assert!(stage.has("r0", &first), "nothing was touched");
    let receiver = stage.recv(0, "r0", &["--overwrite"]);
    send_from_other(&second, &["--no-key", "--host", "lab2"]).succeeds(30);
    receiver.succeeds(5);
    assert!(stage.has("r0", &second), "the user wants it");
    // With a key, a source is identified by its name, independently of its address.
    for (from_other, file) in [(false, &first), (true, &third)] {
        let receiver = stage.recv(0, "sealed", &["--key", &key]);
        match from_other {
            false => stage.send(&[file], &["--key", &key]).succeeds(20),
            true => send_from_other(file, &["--key", &key, "--host", "source"]).succeeds(30),
        };
        receiver.succeeds(5);
        assert!(stage.has("sealed", file));
    }
}

/// Needs a kernel: several processes send to one group.
#[test]
fn daemon_receives_concurrent_sessions_and_reports_each() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let files = ["first", "second", "third"].map(|name| stage.file(name, 300_000));
    let mut receiver = stage.recv(0, "r0", &["--serve", "--max-sessions", "2"]);
    // Each session starts when a second host has joined. Until then, the two sessions of the daemon cannot end.
    let both = &["--expect", "2", "--join-timeout", "120"];
    let mut sources: Vec<_> = files[..2].iter().map(|file| stage.send(&[file], both)).collect();
    sources.iter_mut().for_each(|source| source.prints("\"joined\"", 20));
    let mut third = stage.send(&[&files[2]], both);
    third.prints("\"event\":\"busy\"", 20);
    let mut other = stage.recv(1, "r1", &["--serve"]);
    sources.into_iter().chain([third]).for_each(|source| {
        source.succeeds(30);
    });
    for (host, receiver) in [("r0", &mut receiver), ("r1", &mut other)] {
        receiver.task.interrupt();
        assert!(files.iter().all(|file| stage.has(host, file)), "{host}");
    }
    let (receiver, other) = (receiver.ends(10), other.ends(10));
    assert_eq!((receiver.code, other.code), (0, 0), "{receiver:?}{other:?}");
    let numbers =
        |event: &str| receiver.all(event).filter_map(|line| line["session"].as_u64()).collect::<Vec<_>>();
    let (joined, mut done) = (numbers("joined"), numbers("done"));
    done.sort_unstable();
    assert_eq!((joined, done), (vec![1, 2, 3], vec![1, 2, 3]), "{receiver:?}");
    assert!(receiver.all("done").all(|done| done["ok"] == true && done["bytes"] == 300_000), "{receiver:?}");
    // The second session started before the first one ended.
    let at = |event: &str, session: u64| {
        receiver.events.iter().position(|line| line["event"] == event && line["session"] == session)
    };
    assert!(at("joined", 2) < at("done", 1), "{receiver:?}");
}

/// Needs a kernel: processes start other processes.
#[test]
fn hooks_run_after_complete_sessions_only() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let files = ["first", "second"].map(|name| stage.file(name, 1_000_000));
    let hook = "printf '%s %s %s\n' \"$FAIRCAST_SOURCE\" \"$FAIRCAST_BYTES\" \"$FAIRCAST_FILES\" >> \"$FAIRCAST_OUT.said\"";
    let mut served = stage.recv(0, "r0", &["--serve", "--on-complete", hook]);
    let one = stage.recv(1, "r1", &["--on-complete", "exit 7"]);
    let told = stage.text("told");
    let at_source = format!("printf %s \"$FAIRCAST_VERIFIED of $FAIRCAST_RECEIVERS\" > '{told}'");
    let source = stage.send(&[&files[0]], &["--expect", "2", "--on-complete", &at_source]);
    source.succeeds(30);
    let one = one.ends(20);
    assert!(one.code == 3 && one.stderr.contains("exit status: 7") && stage.has("r1", &files[0]), "{one:?}");
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(read(&told), "2 of 2");
    // No command runs after a stopped session.
    let mut stopped =
        stage.send(&[&files[1]], &["--expect", "1", "--max", "1M", "--on-complete", &at_source]);
    stopped.reaches(0.1, 20);
    must(std::fs::remove_file(&told));
    stopped.task.interrupt();
    assert_eq!(stopped.ends(20).code, 1);
    served.prints("\"stopped\"", 20);
    served.task.interrupt();
    let served = served.ends(20);
    assert_eq!((served.code, read(&told)), (0, String::new()), "{served:?}");
    assert_eq!(read(&format!("{}.said", stage.text("r0"))), "source 1000000 1\n", "{served:?}");
}
