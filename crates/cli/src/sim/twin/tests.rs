use super::network::{Limit, paths};
use super::scenario::{Origin, Twin};
use super::session::Session;
use super::*;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A session of three receivers: one behind a queue, one with losses, one with neither.
fn report() -> Value {
    let receiver = |host: &str, loss: f64, rtt: f64, congested: Option<f64>| {
        json!({"host": host, "outcome": "verified", "receivers": 1, "loss": loss, "rtt_ms": rtt,
            "congested_rtt_ms": congested, "joined_seconds": 0.0})
    };
    let point = |second: u32| {
        json!({"from": second, "to": second + 1, "rate_bps": 4e6, "limited_by": "congestion", "host": "slow host",
            "cuts": [{"host": "slow host"}]})
    };
    json!({
        "seconds": 20.0, "packets": 6900, "packet_bytes": 1472, "repair_ratio": 1.01, "layers": 1,
        "course": {"scheme": "ormcc", "max_bps": null, "points": (0..20).map(point).collect::<Vec<_>>()},
        "receivers": [
            receiver("slow host", 0.01, 20.0, Some(60.0)),
            receiver("lossy", 0.005, 40.0, Some(40.5)),
            receiver("near", 0.0, 1.0, None),
        ],
    })
}

fn session(report: &Value) -> Session {
    serde_json::from_value(report.clone()).expect("the fields of a report")
}

fn written(directory: &tempfile::TempDir, report: &Value) -> PathBuf {
    let path = directory.path().join("lab.json");
    std::fs::write(&path, report.to_string()).expect("the directory is ours");
    path
}

#[test]
fn queue_is_distinguished_from_loss_by_the_round_trip() {
    let paths = paths(&session(&report()));
    assert!(matches!(paths[0].limit, Limit::Queue { delay, .. } if (delay - 0.04).abs() < 1e-9), "{paths:?}");
    assert_eq!((paths[0].node.as_str(), paths[1].limit), ("slow_host", Limit::Loss(0.005)));
    assert_eq!((paths[2].rtt, paths[2].limit), (0.001, Limit::Nothing));
}

#[test]
fn receiver_whose_window_limits_the_rate_is_a_slow_link() {
    let mut report = report();
    for point in report["course"]["points"].as_array_mut().expect("a list") {
        (point["limited_by"], point["host"]) = ("window".into(), "near".into());
    }
    let paths = paths(&session(&report));
    assert!(matches!(paths[2].limit, Limit::Host { rate } if (4e6..5e6).contains(&rate)), "{paths:?}");
}

#[test]
fn twin_is_as_slow_as_the_session_and_faster_without_slow_host() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = written(&directory, &report());
    let stop = AtomicBool::new(false);
    let completion = |text: &str| {
        let scenario = running::parse(text, &path, MEMORY).expect("a scenario");
        let (results, _) =
            running::run(&scenario, &RunOptions::default(), ProgressOutput::Nothing, &stop).expect("it runs");
        results.metric(0, "session.completion")[0]
    };
    let whole = text(Original::Report(&path), &[], &stop).expect("a twin");
    assert!((completion(&whole) / 20.0 - 1.0).abs() < 0.1, "{whole}");
    let without = text(Original::Report(&path), &["slow host".to_owned()], &stop).expect("a twin");
    assert!(completion(&without) < 15.0 && !without.contains("slow_host"), "{without}");
    assert!(whole.contains("published = 20") && !without.contains("[[claim]]"));
}

/// A session behind 10 % of loss, by the test `alone::twin`: 12.3 s if reports are lost as well, otherwise 12.9 s.
#[test]
fn reports_are_lost_if_a_session_was_faster_than_its_twin() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut report = report();
    (report["packets"], report["packet_bytes"]) = (4_720.into(), 1_500.into());
    report["receivers"] = json!([{"host": "deaf", "outcome": "verified", "receivers": 1, "loss": 0.1045, "rtt_ms": 10.1,
        "congested_rtt_ms": 10.2, "joined_seconds": 0.0}]);
    for (seconds, is_lossy) in [(12.3, true), (13.1, false)] {
        report["seconds"] = seconds.into();
        let path = written(&directory, &report);
        let twin = text(Original::Report(&path), &[], &AtomicBool::new(false)).expect("a twin");
        let link = twin.lines().find(|line| line.starts_with("link net deaf")).expect("its link");
        assert_eq!(!link.ends_with("loss=none"), is_lossy, "{twin}");
        let scenario = running::parse(&twin, &path, MEMORY).expect("a scenario");
        let run =
            running::run(&scenario, &RunOptions::default(), ProgressOutput::Nothing, &AtomicBool::new(false));
        let took = run.expect("it runs").0.metric(0, "session.completion");
        let mean = took.iter().sum::<f64>() / took.len() as f64;
        assert!((mean / seconds - 1.0).abs() < 0.05, "{mean} s: {twin}");
    }
}

#[test]
fn reports_without_a_twin_are_refused_with_the_reason() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let stop = AtomicBool::new(false);
    let refusal = |change: &dyn Fn(&mut Value), without: &[String]| {
        let mut report = report();
        change(&mut report);
        text(Original::Report(&written(&directory, &report)), without, &stop)
            .expect_err("no twin")
            .to_string()
    };
    let no_course = refusal(&|report| report["course"]["points"] = json!([]), &[]);
    assert!(no_course.contains("no course"), "{no_course}");
    assert!(refusal(&|report| report["layers"] = 8.into(), &[]).contains("layers"));
    assert!(refusal(&|report| report["packets"] = "many".into(), &[]).contains("no report"));
    assert!(refusal(&|report| report["receivers"] = json!([]), &[]).contains("no receiver is complete"));
    let unknown = refusal(&|_| {}, &["lab-9".to_owned()]);
    assert!(unknown.contains("lab-9") && unknown.contains("slow host, lossy, near"), "{unknown}");
}

#[test]
fn hostile_names_and_numbers_give_a_valid_scenario() {
    let mut report = report();
    for (at, host) in ["net", "net", "*[\"\"\"]#\n"].into_iter().enumerate() {
        report["receivers"][at]["host"] = host.into();
        report["receivers"][at]["loss"] = 7.5.into();
        report["receivers"][at]["rtt_ms"] = json!(-1e9);
    }
    let twin = Twin::new(session(&report), Origin { option: "--from-report", name: "a\"b.json".to_owned() });
    running::parse(&twin.text(), Path::new("twin"), MEMORY).expect("a valid scenario");
}

/// A network with a slow link, random losses and a near receiver.
const LAB: &str = r#"
title = "lab"
duration = "60 s"
seeds = 1
start_jitter = "0 s"
[topology]
kind = "text"
network = """
host source
router net
link source net rate=1G
host slow
link net slow delay=10ms rate=3M queue=droptail,30 back rate=unlimited queue=droptail,1000 loss=none
host lossy
link net lossy delay=20ms loss=bernoulli,0.005 back rate=unlimited queue=droptail,1000 loss=none
host near
link net near delay=0.5ms
"""
[[flow]]
name = "session"
kind = "session"
scheme = "SCHEME"
from = "source"
to = ["RECEIVERS"]
packet = "1472 B"
content = 4000
alive = "250 ms"
[probe]
bin = "100 ms"
"#;

/// Runs a scenario once. Returns a metric.
fn measured(text: &str, metric: &str) -> f64 {
    let mut scenario = running::parse(text, Path::new("lab.toml"), MEMORY).expect("a scenario");
    scenario.set_seeds(vec![1, 2, 3]);
    let stop = AtomicBool::new(false);
    let run = running::run(&scenario, &RunOptions::default(), ProgressOutput::Nothing, &stop);
    let values = run.expect("it runs").0.metric(0, metric);
    values.iter().sum::<f64>() / values.len() as f64
}

/// Writes the trace of a scenario.
fn traced(directory: &tempfile::TempDir, text: &str) -> PathBuf {
    let path = directory.path().join("lab.sqlog");
    let scenario = running::parse(text, Path::new("lab.toml"), MEMORY).expect("a scenario");
    let file = crate::sim::traces::create(&path).expect("the directory is ours");
    crate::sim::traces::write(&scenario, file, &AtomicBool::new(false)).expect("it runs");
    path
}

#[test]
fn twin_of_a_simulated_trace_is_as_slow_as_the_simulation() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let all = [
        ("ormcc", "slow\", \"lossy\", \"near"),
        ("ormcc", "lossy\", \"near"),
        ("tfmcc", "slow\", \"near"),
        ("pgmcc", "slow\", \"near"),
    ];
    for (scheme, receivers) in all {
        let lab = LAB.replace("SCHEME", scheme).replace("RECEIVERS", receivers);
        let path = traced(&directory, &lab);
        let stop = AtomicBool::new(false);
        let twin = text(Original::Trace(&path, None), &[], &stop).expect("a twin");
        let (real, like) = [&lab, &twin].map(|text| measured(text, "session.completion")).into();
        println!("{scheme}: {real:.2} s, twin {:+.1} %", (like / real - 1.0) * 100.0);
        assert!((like / real - 1.0).abs() < 0.15, "{scheme}: {like} s instead of {real} s: {twin}");
        assert!(
            twin.contains("--from-trace lab.sqlog") && twin.contains(&format!("scheme = \"{scheme}\"")),
            "{twin}"
        );
        assert!(twin.contains("[[claim]]") && twin.contains("packet = \"1472 B\""), "{twin}");
        let link = |host: &str| {
            twin.lines().find(|line| line.starts_with(&format!("link net {host} "))).unwrap_or_default()
        };
        assert_eq!(link("slow").contains("queue=droptail"), receivers.contains("slow"), "{twin}");
        assert!(!link("near").contains("rate="), "{twin}");
        let without = text(Original::Trace(&path, None), &["near".to_owned()], &stop).expect("a twin");
        assert!(!without.contains("link net near"), "{without}");
    }
}

#[test]
fn traces_without_a_twin_are_refused_with_the_reason() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let lab = LAB.replace("SCHEME", "ormcc").replace("RECEIVERS", "slow\", \"near");
    let path = traced(&directory, &lab);
    let whole = std::fs::read_to_string(&path).expect("text");
    let refusal = |trace: &str, name: Option<&str>| {
        std::fs::write(&path, trace).expect("the directory is ours");
        text(Original::Trace(&path, name), &[], &AtomicBool::new(false)).expect_err("no twin").to_string()
    };
    let other = refusal("{\"seconds\": 1}", None);
    assert!(other.contains("is not a trace") && other.contains("--trace FILE"), "{other}");
    let cut = refusal(&whole[..whole.len() / 2], None);
    assert!(cut.contains("session ended") && cut.contains("truncated"), "{cut}");
    let old = refusal(&whole.replace("packet_bytes", "bytes_of_packets"), None);
    assert!(old.contains("older version"), "{old}");
    let receiver = whole
        .replace("\"role\":\"source\"", "\"role\":\"receiver\"")
        .replace("session_started", "session_found");
    let receiver = refusal(&receiver, None);
    assert!(receiver.contains("trace of a receiver") && receiver.contains("its source"), "{receiver}");
    let idle = refusal(&whole.replace("session_started", "member_found"), None);
    assert!(idle.contains("no session of it has begun to send"), "{idle}");
    let nothing = refusal(whole.lines().next().expect("a header"), None);
    assert!(nothing.contains("has no sessions"), "{nothing}");
    let unknown = refusal(&whole, Some("other"));
    assert!(unknown.contains("--session: session"), "{unknown}");
    let nobody = refusal(&whole.replace("\"done\"", "\"left\""), None);
    assert!(nobody.contains("no receiver is complete"), "{nobody}");
    let layered = refusal(&whole.replace("\"layers\":1.0", "\"layers\":4.0"), None);
    assert!(layered.contains("layers"), "{layered}");
    // A damaged record in the middle is counted.
    std::fs::write(&path, whole.replacen("rate_sampled", "\u{1e}{", 1)).expect("the directory is ours");
    let twin = text(Original::Trace(&path, Some("session")), &[], &AtomicBool::new(false)).expect("a twin");
    assert!(twin.contains("of its trace are missing or damaged"), "{twin}");
}
