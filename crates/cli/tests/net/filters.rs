//! Packet filters that admit only the port of the group. `doctor` and the documentation advise one rule, which is enough for each
//! role.

use crate::kit::{FAIRCAST, Running, Stage, must};
use faircast_testkit::{Lab, Node, require_root};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(20);

/// Drops all packets to this host, except for UDP to these ports. Answers to this host's own packets are dropped, too.
pub fn admit_only(node: &Node, ports: &str) {
    admit(node, &format!("udp dport {{ {ports} }} accept"));
}

/// Drops all packets to this host, except for packets that `rule` accepts and packets that IPv6 needs.
fn admit(node: &Node, rule: &str) {
    let needed = "iif lo accept\nicmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept";
    let chain = format!("type filter hook input priority 0; policy drop\n{needed}\n{rule}\n");
    let table = format!(
        "table inet closed\ndelete table inet closed\ntable inet closed {{\nchain input {{\n{chain}}}\n}}\n"
    );
    must(node.run("nft", &[&table], WITHIN));
}

fn port(stage: &Stage) -> u16 {
    must::<SocketAddr, _>(stage.group.parse()).port()
}

fn admit_group_only(stage: &Stage) {
    let hosts = std::iter::once(stage.lab.sender()).chain(stage.lab.receivers());
    hosts.for_each(|node| admit_only(node, &port(stage).to_string()));
}

/// Returns the names of all congestion controls.
fn schemes() -> Vec<String> {
    let listed = must(Command::new(FAIRCAST).args(["schemes", "--json"]).output());
    let lines = String::from_utf8_lossy(&listed.stdout).into_owned();
    let name = |line: &str| -> String {
        let scheme: serde_json::Value = must(serde_json::from_str(line));
        scheme["name"].as_str().expect("every scheme has a name").to_owned()
    };
    lines.lines().map(name).collect()
}

/// Needs a kernel: nftables admits one port.
#[test]
fn one_filter_rule_at_each_end_suffices_for_every_scheme() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    admit_group_only(&stage);
    let file = stage.file("image", 400_000);
    let schemes = schemes();
    assert!(schemes.len() >= 12, "{schemes:?}");
    for scheme in &schemes {
        let receivers = [0, 1].map(|at| stage.recv(at, &format!("{scheme}-r{at}"), &[]));
        stage.send(&[&file], &["--expect", "2", "--join-timeout", "30", "--cc", scheme]).succeeds(40);
        for (at, receiver) in receivers.into_iter().enumerate() {
            receiver.succeeds(10);
            assert!(stage.has(&format!("{scheme}-r{at}"), &file), "{scheme}");
        }
    }
}

/// Needs a kernel: nftables admits one port.
#[test]
fn one_filter_rule_suffices_for_ipv6_and_several_receivers() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    for group in [stage.group.clone(), format!("[ff15::7:1]:{}", port(&stage))] {
        let stage = &stage;
        admit_group_only(stage);
        let file = stage.file("image", 2_000_000);
        let recv = |node, host: &str| {
            let out = stage.text(host);
            let mut receiver = Running::start(
                node,
                &["recv", "--json", "--group", &group, "--host", host, "--out", &out, "--iface", "eth0"],
            );
            receiver.prints("\"opened\"", 10);
            receiver
        };
        // Two receivers on one host, and two on the source's host.
        let (here, there) = (stage.lab.sender(), stage.lab.receiver(0));
        let receivers = [recv(here, "a"), recv(there, "b"), recv(here, "c"), recv(there, "d")];
        let args =
            ["send", &file, "--json", "--no-key", "--group", &group, "--expect", "4", "--iface", "eth0"];
        let source = Running::start(here, &args).succeeds(30);
        receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
        assert!(!source.stdout.contains("is in use"), "{source:?}");
        assert!(["a", "b", "c", "d"].iter().all(|host| stage.has(host, &file)));
        for host in ["a", "b", "c", "d"] {
            must(std::fs::remove_dir_all(stage.path(host)));
        }
    }
}

/// Needs a kernel: two sockets of one host cannot have one port.
#[test]
fn second_source_on_one_host_reports_the_port_in_use() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let (file, port) = (stage.file("image", 2_000_000), port(&stage));
    let first = stage.send(&[&file], &["--expect", "1", "--join-timeout", "60"]);
    let other = format!("239.255.71.9:{port}");
    let start = |more: &[&str]| {
        let args =
            ["send", &file, "--json", "--no-key", "--group", &other, "--expect", "1", "--join-timeout", "60"];
        Running::start(stage.lab.sender(), &[&args, more].concat())
    };
    let mut first = first;
    first.prints("\"joining\"", 10);
    // A requested port that is in use is an error.
    start(&["--port", &port.to_string()]).ends(10).failed(3, "is in use by another program");
    let mut second = start(&[]);
    second.prints(&format!("port {port} of 10.77.0.1 is in use by another program on this host"), 10);
    // Each source receives the answers of its receiver.
    let receivers = [
        stage.recv(0, "r0", &[]),
        Running::start(
            stage.lab.receiver(1),
            &["recv", "--json", "--group", &other, "--host", "r1", "--out", &stage.text("r1")],
        ),
    ];
    first.succeeds(30);
    let second = second.succeeds(30);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
    let warning = second.all("warning").find(|warning| warning["concerns"] == "port");
    assert!(
        warning
            .is_some_and(|it| it["message"].as_str().is_some_and(|it| it.contains("allow UDP to that port")))
    );
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
}

/// Needs a kernel: nftables admits one port.
#[test]
fn requested_port_is_used_and_a_filtered_port_is_named() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 500_000);
    admit_only(stage.lab.sender(), "7001");
    let receiver = stage.recv(0, "r0", &[]);
    let closed = stage.send(&[&file], &["--expect", "1", "--join-timeout", "2"]).ends(20);
    closed.failed(1, &format!("This host must accept UDP from receivers on port {}", port(&stage)));
    stage.send(&[&file], &["--expect", "1", "--port", "7001"]).succeeds(20);
    receiver.succeeds(10);
    assert!(stage.has("r0", &file));
}

/// Needs a kernel: nftables admits one port.
#[test]
fn relay_receives_feedback_on_the_port_of_its_group() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let below = format!("239.255.71.9:{}", port(&stage));
    admit_group_only(&stage);
    let control = stage.text("relay.sock");
    let args = ["relay", "--json", "--from", &stage.group, "--to", &below, "--control", &control];
    let mut relay = Running::start(stage.lab.receiver(1), &args);
    relay.prints("\"opened\"", 20);
    let file = stage.file("image", 500_000);
    // After the next session has begun, the relay may still have the branch of the previous session for a while.
    for host in ["r0", "r1", "r2"] {
        let out = stage.text(host);
        let args = ["recv", "--json", "--group", &below, "--host", host, "--out", &out];
        let mut receiver = Running::start(stage.lab.receiver(0), &args);
        receiver.prints("\"opened\"", 20);
        stage.send(&[&file], &["--expect", "1", "--join-timeout", "20"]).succeeds(30);
        receiver.succeeds(10);
        assert!(stage.has(host, &file), "{host}");
    }
    assert!(!relay.task.stdout().contains("is in use"), "{}", relay.task.stdout());
    relay.task.interrupt();
}

/// Needs a kernel: nftables admits one port.
#[test]
fn unicast_receivers_need_the_documented_firewall_rule() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let (file, there) = (stage.file("image", 500_000), stage.lab.receiver(1));
    let control = stage.text("relay.sock");
    admit_only(there, &format!("5778, {}", port(&stage)));
    admit_only(stage.lab.sender(), &port(&stage).to_string());
    let args = ["relay", "--json", "--from", &stage.group, "--listen", "--control", &control];
    let mut relay = Running::start(there, &args);
    relay.prints("\"opened\"", 20);
    let parent = there.address().to_string();
    for (parent, rule) in
        [(parent.as_str(), "ct state established accept"), ("find", "udp sport 5778 accept")]
    {
        admit(stage.lab.receiver(0), rule);
        let receiver = stage.recv(0, "r0", &["--parent", parent]);
        stage.send(&[&file], &["--expect", "1", "--join-timeout", "30"]).succeeds(60);
        receiver.succeeds(10);
        assert!(stage.has("r0", &file), "{parent}");
        must(std::fs::remove_dir_all(stage.path("r0")));
    }
    relay.task.interrupt();
}
