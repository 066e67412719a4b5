//! One slow receiver among faster ones, with each policy of `--slow`.

use crate::kit::{Ended, Running, Stage, print_line};
use faircast_testkit::{Bottleneck, Lab, Offloads, require_root};

const FILE: usize = 8_000_000;
const SLOW: usize = 3;

/// Returns a stage with three receivers at 100 Mbit/s, and the receiver `r3` at `slowest` Mbit/s.
fn stage(root: &faircast_testkit::Root, slowest: f64) -> (Stage, String) {
    let mut plan = Lab::plan().receivers(4).offloads(Offloads::Off);
    for (receiver, rate) in [100.0, 100.0, 100.0, slowest].into_iter().enumerate() {
        plan = plan.bottleneck(receiver as u16, Bottleneck::mbps(rate).queue((rate * 1e3) as u32 + 40_000));
    }
    let stage = Stage::new(root, plan);
    let file = stage.file("image", FILE);
    (stage, file)
}

fn slow_event(source: &Ended, action: &str) {
    let slow = source.all("slow").find(|slow| slow["action"] == action);
    let slow = slow.unwrap_or_else(|| panic!("no slow event for {action}: {source:?}"));
    assert_eq!(slow["host"], "r3", "{source:?}");
}

/// Starts a source and its receivers. Waits for the `slow` event, which must arrive within 5 s of the first data.
fn send(stage: &Stage, file: &str, policy: &str) -> (Running, Vec<Running>) {
    let receivers = stage.recv_everywhere(&[]);
    let mut source = stage.send(&[file], &["--slow", policy]);
    source.prints("\"joined\"", 10);
    source.prints("\"event\":\"slow\"", 6);
    (source, receivers)
}

/// Needs a kernel: a token bucket at one receiver.
#[test]
fn source_uses_the_slowest_receivers_rate_under_policy_follow() {
    let Some(root) = require_root() else { return };
    let (stage, file) = stage(&root, 10.0);
    let (source, receivers) = send(&stage, &file, "follow");
    let source = source.succeeds(40);
    let ended: Vec<_> = receivers.into_iter().map(|receiver| receiver.succeeds(10)).collect();
    slow_event(&source, "follow");
    let goodput = source.number("goodput_bps") / 1e6;
    print_line(&format!(
        "follow: {:.1} s, {goodput:.2} Mbit/s of 10, loss {:.1} %, sent/needed {:.3}",
        source.number("seconds"),
        100.0 * ended[SLOW].number("lost") / ended[SLOW].number("packets"),
        source.number("repair_ratio"),
    ));
    assert!((6.0..10.0).contains(&goodput), "{goodput} Mbit/s: {source:?}");
    assert_eq!(source.number("verified"), 4.0, "{source:?}");
}

/// Needs a kernel: a token bucket at one receiver.
#[test]
fn slow_receiver_is_served_last_under_the_policy_floor() {
    let Some(root) = require_root() else { return };
    let (fast, file) = stage(&root, 100.0);
    let receivers = fast.recv_everywhere(&[]);
    let unhindered = fast.send(&[&file], &["--slow", "floor:50M"]).succeeds(30);
    assert_eq!(unhindered.all("slow").count(), 0, "nobody is slow: {unhindered:?}");
    let alone = receivers.into_iter().map(|r| r.succeeds(10).number("seconds")).fold(0.0, f64::max);
    drop(fast);
    let (stage, file) = stage(&root, 10.0);
    let (source, mut receivers) = send(&stage, &file, "floor:50M");
    let slow = receivers.pop().expect("there are four");
    let others = receivers.into_iter().map(|r| r.succeeds(30).number("seconds")).fold(0.0, f64::max);
    let source = source.succeeds(60);
    let slow = slow.succeeds(10);
    slow_event(&source, "deferred");
    print_line(&format!(
        "floor: others {others:.2} s (without the slow one {alone:.2} s), slow one {:.1} s, sent/needed {:.3}",
        slow.number("seconds"),
        source.number("repair_ratio"),
    ));
    // The floor rate limits the delay that the slow receiver causes for the other receivers.
    let at_floor = FILE as f64 * 8.0 / 50e6;
    assert!(
        others <= alone.max(at_floor) * 1.25 + 0.25,
        "{others} s, and {alone} s without the slow one: {source:?}"
    );
    assert_eq!(source.done()["slow"][0], "r3", "{source:?}");
    for host in ["r0", "r1", "r2", "r3"] {
        assert!(stage.has(host, &file), "{host}");
    }
    assert!(slow.number("seconds") < 4.0 * FILE as f64 * 8.0 / 10e6, "{slow:?}");
}

/// Needs a kernel: a token bucket at one receiver.
#[test]
fn slow_receiver_ends_with_a_reason_under_the_policy_drop() {
    let Some(root) = require_root() else { return };
    let (stage, file) = stage(&root, 10.0);
    let (list, report) = (stage.text("lab.txt"), stage.text("report.json"));
    std::fs::write(&list, "r0\nr1\nr2\nR3  # the slow one\n").expect("the stage is writable");
    let mut receivers = stage.recv_everywhere(&[]);
    let more = ["--slow", "drop:50M", "--receivers", &list, "--report", &report];
    let source = stage.send(&[&file], &more);
    let slow = receivers.pop().expect("there are four").ends(20);
    slow.failed(1, "slower than the source allows (--slow drop)");
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(20)));
    let source = source.ends(20);
    source.failed(4, "left out as too slow: r3");
    slow_event(&source, "dropped");
    assert_eq!(source.done()["slow"][0], "r3", "{source:?}");
    assert_eq!(source.number("verified"), 3.0, "{source:?}");
    assert!(!stage.has("r3", &file));
    let report = std::fs::read_to_string(&report).expect("the report is written");
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    assert_eq!((&report["exit_code"], &report["dropped"]), (&4.into(), &1.into()), "{report}");
    let outcomes = report["receivers"].as_array().expect("a list").iter();
    let outcomes: Vec<_> = outcomes.map(|one| (one["host"].as_str(), one["outcome"].as_str())).collect();
    let verified = ["r0", "r1", "r2"].map(|host| (Some(host), Some("verified")));
    assert_eq!(outcomes, [&verified[..], &[(Some("r3"), Some("dropped"))]].concat(), "{report}");
    assert!(report["receivers"][0]["rate_bps"].as_f64().is_some_and(|rate| rate > 1e6), "{report}");
}
