//! The tree of relays: the status that the source and the relays display, the search for parents, and the cost of a stalled
//! child.

use crate::kit::{Running, Stage, must, noise, print_line};
use faircast_testkit::{Damage, EmulatedLab, Lab, Node, require_root};
use serde_json::Value;
use std::time::Duration;

/// Starts a relay that listens at its own address.
pub fn relay(node: &Node, control: &str, host: &str, more: &[&str]) -> Running {
    let place = ["relay", "--json", "--listen", "--host", host, "--control", control];
    let mut relay = Running::start(node, &[&place[..], more].concat());
    relay.prints("\"opened\"", 20);
    relay
}

/// Starts a receiver that is served by unicast.
pub fn child(node: &Node, host: &str, out: &str, parents: &[&str], more: &[&str]) -> Running {
    let mut args = vec!["recv", "--json", "--host", host, "--out", out];
    parents.iter().for_each(|parent| args.extend(["--parent", parent]));
    let mut child = Running::start(node, &[&args[..], more].concat());
    child.prints("\"opened\"", 20);
    child
}

/// Returns the depth, the name, the number of receivers and the number of complete receivers of each relay in a list.
fn shape(relays: &Value) -> Vec<(u64, String, u64, u64)> {
    let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    let relays = relays.as_array().map_or(&[][..], Vec::as_slice);
    let one = |relay: &Value| {
        let host = relay["host"].as_str().unwrap_or("").to_owned();
        (number(&relay["depth"]), host, number(&relay["receivers"]), number(&relay["done"]))
    };
    relays.iter().map(one).collect()
}

/// Needs a kernel: relays' control sockets.
#[test]
fn source_and_every_relay_show_their_downstream_tree() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(6));
    let file = stage.file("image", 12_000_000);
    let (node, address) =
        (|at: usize| stage.lab.receiver(at), |at: usize| stage.lab.receiver(at).ipv4().to_string());
    let sockets = ["a.sock", "b.sock", "c.sock"].map(|name| stage.text(name));
    // relay-a receives from the source, relay-b from relay-a, and relay-c from relay-b. One receiver is a child of relay-b, and
    // two receivers are children of relay-c.
    let relays = [
        relay(node(0), &sockets[0], "relay-a", &["--from", &stage.group]),
        relay(node(1), &sockets[1], "relay-b", &["--parent", &address(0)]),
        relay(node(2), &sockets[2], "relay-c", &["--parent", &address(1)]),
    ];
    let receivers = [(3, 1), (4, 2), (5, 2)].map(|(at, parent)| {
        child(node(at), &format!("r{at}"), &stage.text(&format!("r{at}")), &[&address(parent)], &[])
    });
    let mut sends = stage.send(&[&file], &["--expect", "3", "--max", "12M"]);
    sends.prints("\"depth\":3", 30);
    let below_a = Running::relay_status(node(0), &sockets[0], &[]);
    let below_b: Value =
        must(serde_json::from_str(&Running::relay_status(node(1), &sockets[1], &["--json"])));
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(40)));
    let ended = sends.succeeds(30);
    relays.into_iter().for_each(Running::crashes);
    print_line(&below_a);
    let whole = |of: &Value| {
        shape(of).into_iter().map(|(depth, host, all, _)| (depth, host, all)).collect::<Vec<_>>()
    };
    let named = |depth: u64, host: &str, all: u64| (depth, host.to_owned(), all);
    let expected = [named(1, "relay-a", 3), named(2, "relay-b", 3), named(3, "relay-c", 2)];
    // While receivers complete, the same receiver may be counted by the source and in the last report of its relay.
    let before_the_first_completes = ended.all("progress").filter(|progress| progress["verified"] == 0);
    let reported = before_the_first_completes
        .map(|progress| whole(&progress["relays"]))
        .filter(|relays| relays.len() == 3);
    assert_eq!(reported.last().as_deref(), Some(&expected[..]), "{ended:?}");
    let rates =
        ended.all("progress").flat_map(|progress| progress["relays"].as_array().cloned().unwrap_or_default());
    let far: Vec<f64> =
        rates.filter(|one| one["depth"] == 3).filter_map(|one| one["rate_bps"].as_f64()).collect();
    assert!(far.iter().any(|rate| *rate > 1e6), "relay-c has a rate: {far:?}");
    let at_last = shape(&ended.done()["relays"]);
    assert_eq!(at_last.first().map(|one| (one.2, one.3)), Some((3, 3)), "{at_last:?}");
    assert!(below_a.contains("    relay-b at ") && below_a.contains("      relay-c at "), "{below_a}");
    let branches = below_b["sessions"][0]["branches"].as_array().expect("it has branches");
    let shown: Vec<_> = branches.iter().flat_map(|branch| whole(&branch["relays"])).collect();
    assert_eq!(shown, [named(1, "relay-c", 2)]);
}

/// A source, and three relays at round-trip times of 4, 20 and 60 ms from the child.
const APART: &str = "
    host source
    host near groups=all
    host middle groups=all
    host far groups=all
    host child groups=all
    router r
    link source r rate=100M delay=1ms
    link near r rate=100M delay=1ms
    link middle r rate=100M delay=9ms
    link far r rate=100M delay=29ms
    link child r rate=100M delay=1ms";

/// Needs a kernel: a process is killed, and packets determine the distances.
#[test]
fn nearest_relay_is_found_and_replaced_when_killed() {
    let Some(root) = require_root() else { return };
    let lab = must(EmulatedLab::shared(&root, APART));
    let directory = must(tempfile::Builder::new().prefix("faircast-net-").tempdir());
    let path = |name: &str| directory.path().join(name).to_str().expect("the names are plain").to_owned();
    let content = noise("found", 8_000_000);
    must(std::fs::write(path("file"), &content));
    let (group, file) = ("239.255.70.12:5777", path("file"));
    // The relay on the source's host and the relay `near` have equal round-trip times to the child. The relay on the source's
    // host is hidden.
    let hidden = relay(lab.host("source"), &path("h.sock"), "hidden", &["--from", group, "--hidden"]);
    let [near, middle, far] = ["near", "middle", "far"]
        .map(|name| relay(lab.host(name), &path(&format!("{name}.sock")), name, &["--from", group]));
    let sends = |rate: &str| {
        let args = [
            "send",
            "--json",
            "--no-key",
            &file,
            "--group",
            group,
            "--expect",
            "1",
            "--join-timeout",
            "30",
            "--max",
            rate,
        ];
        Running::start(lab.host("source"), &args)
    };
    let mut taken = child(lab.host("child"), "child", &path("out"), &["find"], &[]);
    let mut source = sends("10M");
    source.prints("\"host\":\"near\",\"address\"", 30);
    taken.reaches(0.3, 30);
    near.crashes();
    taken.succeeds(60);
    let ended = source.ends(120);
    let served: Vec<(String, u64)> =
        shape(&ended.done()["relays"]).into_iter().map(|(_, host, _, done)| (host, done)).collect();
    print_line(&format!("found in turn: {served:?}"));
    assert!(served.contains(&("middle".to_owned(), 1)), "{ended:?}");
    assert!(served.iter().all(|(host, done)| host == "middle" || *done == 0), "{ended:?}");
    assert!(must(std::fs::read(path("out/file"))) == content);
    [hidden, middle, far].into_iter().for_each(Running::crashes);
}

/// Needs a kernel: relays are processes that are searched by multicast.
#[test]
fn full_relay_is_not_found_and_the_named_parent_is_used() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(4));
    let file = stage.file("image", 2_000_000);
    let node = |at: usize| stage.lab.receiver(at);
    let full =
        relay(node(0), &stage.text("a.sock"), "full", &["--from", &stage.group, "--max-children", "1"]);
    let first = child(node(2), "r2", &stage.text("r2"), &[&node(0).ipv4().to_string()], &[]);
    let hidden = relay(node(1), &stage.text("b.sock"), "named", &["--from", &stage.group, "--hidden"]);
    std::thread::sleep(Duration::from_secs(1));
    let parents = ["find", &node(1).ipv4().to_string()];
    let second = child(node(3), "r3", &stage.text("r3"), &parents, &[]);
    let ended = stage.send(&[&file], &["--expect", "2", "--join-timeout", "30"]).succeeds(60);
    first.succeeds(10);
    second.succeeds(10);
    let mut served: Vec<(String, u64)> =
        shape(&ended.done()["relays"]).into_iter().map(|(_, host, _, done)| (host, done)).collect();
    served.sort();
    assert_eq!(served, [("full".to_owned(), 1), ("named".to_owned(), 1)], "{ended:?}");
    // Without any relay, the search reports that it found no relay.
    [full, hidden].into_iter().for_each(Running::crashes);
    let args = ["recv", "--parent", "find", "--join-timeout", "8", "--out", &stage.text("out")];
    let alone = Running::start(node(3), &args).ends(20);
    assert!(
        alone.code != 0 && alone.stderr.contains("no relay answers in the group 239.255.70.2:5778"),
        "{alone:?}"
    );
}

/// Needs a kernel: both families on one relay.
#[test]
fn ipv6_relay_serves_a_group_and_unicast_children() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().receivers(4).damage([0], Damage::loss(0.02));
    let stage = Stage::shared(&root, plan).with_group("[ff15::70:21]:5941");
    let file = stage.file("image", 4_000_000);
    let node = |at: usize| stage.lab.receiver(at);
    let below = "[ff15::70:22]:5942";
    let relay = relay(node(3), &stage.text("a.sock"), "relay", &["--from", &stage.group, "--to", below]);
    let parent = format!("[{}]", node(3).ipv6());
    let unicast = child(node(0), "r0", &stage.text("r0"), &[&parent], &[]);
    let found = child(node(1), "r1", &stage.text("r1"), &["find6"], &[]);
    let (host, out) = ("r2", stage.text("r2"));
    let args = ["recv", "--json", "--host", host, "--out", &out, "--group", below];
    let mut group = Running::start(node(2), &args);
    group.prints("\"opened\"", 20);
    let ended = stage.send(&[&file], &["--expect", "3", "--max", "20M", "--join-timeout", "30"]).succeeds(60);
    for receiver in [unicast, found, group] {
        receiver.succeeds(10);
    }
    relay.crashes();
    assert_eq!((ended.number("receivers"), ended.number("verified")), (3.0, 3.0), "{ended:?}");
    assert!(["r0", "r1", "r2"].iter().all(|host| stage.has(host, &file)));
    assert!(ended.number("repair_ratio") < 1.02, "what is lost below is repaired there: {ended:?}");
}
