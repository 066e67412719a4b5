//! Sessions that start at a time, are limited by the time of day, or are for some of the hosts.

use crate::kit::{FAIRCAST, Running, Stage};
use chrono::Timelike as _;
use faircast_testkit::{Lab, require_root};
use std::time::{Duration, SystemTime};

/// Needs a kernel: the clock of the host.
#[test]
fn session_starts_at_its_time_and_not_before() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 2_000_000);
    let start = SystemTime::now() + Duration::from_secs(12);
    let text = humantime::format_rfc3339_seconds(start).to_string();
    // The receivers' timeout is shorter than the wait.
    let receivers = stage.recv_everywhere(&["--timeout", "4", "--join-timeout", "40"]);
    let source = stage.send(&[&file], &["--start-at", &text, "--join-timeout", "1"]).succeeds(30);
    let over = SystemTime::now();
    for receiver in receivers {
        receiver.succeeds(10);
    }
    assert!(over >= start - Duration::from_secs(1), "the session began before {text}: {source:?}");
    assert_eq!(source.number("verified"), 2.0, "{source:?}");
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
}

/// Needs a kernel: the time zone of a process.
#[test]
fn rate_falls_when_the_limit_of_the_day_begins() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 32_000_000);
    let receiver = stage.recv(0, "r0", &[]);
    // In this time zone it is ten seconds before eight. POSIX writes offsets with the opposite sign.
    let now = chrono::Utc::now().num_seconds_from_midnight();
    let west = (now + 86_400 - (8 * 3_600 - 10)) % 86_400;
    let (sign, west) = if west > 43_200 { ("-", 86_400 - west) } else { ("", west) };
    let zone = format!("LAB{sign}{}:{}:{}", west / 3_600, west / 60 % 60, west % 60);
    let line = format!(
        "TZ={zone} {FAIRCAST} send --json --no-key --group {} --max 20M --bandwidth '08:00-18:00 4M, unlimited' {file}",
        stage.group
    );
    let source = Running::shell(stage.lab.sender(), &line).succeeds(90);
    receiver.succeeds(10);
    assert!(stage.has("r0", &file));
    let allowed: Vec<f64> =
        source.all("progress").filter_map(|event| event["allowed_bps"].as_f64()).collect();
    let limited = allowed.iter().rev().take(8);
    assert!(limited.clone().count() == 8 && limited.clone().all(|rate| *rate <= 4e6), "{zone}: {allowed:?}");
    assert!(allowed.iter().any(|rate| *rate > 8e6), "{zone}: {allowed:?}");
}

/// Needs a kernel: processes with host names of their own.
#[test]
fn only_hosts_with_matching_names_take_part() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let file = stage.file("image", 2_000_000);
    let (lab, other) = (stage.recv(0, "lab-0", &[]), stage.recv(2, "office", &["--join-timeout", "20"]));
    let second = stage.recv(1, "LAB-1.example.org", &[]);
    let source = stage.send(&[&file], &["--to-hosts", "lab-*", "--join-timeout", "20"]).succeeds(60);
    assert_eq!(source.number("verified"), 2.0, "{source:?}");
    lab.succeeds(10);
    second.succeeds(10);
    assert!(stage.has("lab-0", &file) && stage.has("LAB-1.example.org", &file));
    let other = other.ends(40);
    other.failed(1, "for other hosts");
    assert!(
        !stage.path("office").exists()
            || std::fs::read_dir(stage.path("office")).is_ok_and(|mut all| all.next().is_none())
    );
}
