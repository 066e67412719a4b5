//! Layers as group memberships of a host. The tests read the output of `ip maddr` and of the bridge during and after a session.

use crate::kit::{Running, Stage, must, noise};
use faircast_testkit::{Forwarding, Lab, Link, Node, require_root, run};
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

/// RLC with eight layers, from 1 Mbit/s, each with twice the rate of the layer below it. A receiver joins the layers one after
/// another within seconds.
const RLC: &str = "rlc,base=1000000";

/// Returns the groups of this session that the host has joined according to its kernel.
fn joined(node: &Node, stage: &Stage) -> Vec<IpAddr> {
    let shown =
        must(run("ip", &["-n", node.namespace(), "maddr", "show", "dev", Node::INTERFACE], LIMIT)).stdout;
    let words = shown.lines().filter_map(|line| line.trim().strip_prefix("inet"));
    let mut groups = Vec::new();
    for group in words {
        let named = group.trim_start_matches('6').split_whitespace().next();
        groups.extend(named.and_then(|word| word.parse().ok()).filter(|group| is_of(stage, *group)));
    }
    groups.sort_unstable();
    groups
}

const LIMIT: Duration = Duration::from_secs(20);

/// Whether the address is one of the session's first eight groups.
fn is_of(stage: &Stage, group: IpAddr) -> bool {
    let session: std::net::SocketAddr = must(stage.group.parse());
    let distance = match (session.ip(), group) {
        (IpAddr::V4(base), IpAddr::V4(group)) => u128::from(u32::from(group).wrapping_sub(u32::from(base))),
        (IpAddr::V6(base), IpAddr::V6(group)) => u128::from(group).wrapping_sub(u128::from(base)),
        _ => u128::MAX,
    };
    distance < 8
}

/// Waits until a condition holds.
fn until(what: &str, within: u64, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(within);
    while !so() {
        assert!(Instant::now() < end, "not so within {within} s: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until the host has joined at least `groups` of the session's groups. Checks that the bridge forwards at least the same
/// number of groups to the host.
fn climbs(stage: &Stage, receiver: &mut Running, groups: usize) {
    let node = stage.lab.receiver(0);
    // A busy host loses packets, and a receiver that loses packets joins no layer for some time.
    until("it joins layers", 120, || {
        assert!(receiver.task.is_running(), "{}", receiver.task.stdout());
        joined(node, stage).len() >= groups
    });
    // A membership report reaches the bridge shortly after the join.
    until("the bridge knows", 5, || {
        let known = must(stage.lab.groups(0));
        known.into_iter().filter(|group| is_of(stage, *group)).count() >= groups
    });
}

/// Sends the file in layers to one host. Checks that the host joins several groups, and has left all of them after the session.
fn layers_are_memberships(group: &str, from: impl Fn(&Stage) -> Option<String>) {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().forwarding(Forwarding::ToMembers)).with_group(group);
    // The file is large because `ip` must run during the session, and the kernel may delay `ip` for seconds while other labs are
    // removed.
    let file = stage.file("image", 20_000_000);
    let source = from(&stage);
    let only: Vec<&str> = source.iter().flat_map(|source| ["--source", source.as_str()]).collect();
    let mut receiver = stage.recv(0, "r0", &[&["--iface", Node::INTERFACE], &only[..]].concat());
    let sent = stage.send(&[&file], &["--iface", Node::INTERFACE, "--cc", RLC, "--expect", "1"]);
    climbs(&stage, &mut receiver, 3);
    let got = receiver.succeeds(60);
    assert_eq!(joined(stage.lab.receiver(0), &stage), Vec::<IpAddr>::new());
    sent.succeeds(20);
    assert!(stage.has("r0", &file));
    let layers = &got.done()["layers"];
    assert_eq!(layers["of"], 8, "{got:?}");
    assert!(layers["highest"].as_u64() >= Some(3) && layers["joins"].as_u64() >= Some(2), "{got:?}");
    let most = got.all("layers").filter_map(|event| event["joined"].as_u64()).max();
    assert_eq!(most, layers["highest"].as_u64(), "{got:?}");
    assert!(got.all("progress").any(|event| event["layers"]["joined"].as_u64() >= Some(2)), "{got:?}");
}

/// Needs a kernel: memberships of a host by IGMP.
#[test]
fn layers_are_joined_by_any_source_memberships_over_ipv4() {
    layers_are_memberships("239.255.71.1:5901", |_| None);
}

/// Needs a kernel: source-specific memberships of a host by IGMP.
#[test]
fn layers_are_joined_by_source_specific_memberships_over_ipv4() {
    layers_are_memberships("232.1.71.9:5902", |stage| Some(stage.lab.sender().ipv4().to_string()));
}

/// Needs a kernel: memberships of a host by MLD.
#[test]
fn layers_are_joined_by_any_source_memberships_over_ipv6() {
    layers_are_memberships("[ff15::71:1]:5903", |_| None);
}

/// Needs a kernel: source-specific memberships of a host by MLD.
#[test]
fn layers_are_joined_by_source_specific_memberships_over_ipv6() {
    layers_are_memberships("[ff35::71:1]:5904", |stage| Some(stage.lab.sender().ipv6().to_string()));
}

/// Needs a kernel: memberships of a host by IGMP.
#[test]
fn layers_on_separate_ports_share_one_membership() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 8_000_000);
    let mut receiver = stage.recv(0, "r0", &[]);
    let sent = stage.send(&[&file], &["--cc", RLC, "--layers-by", "port", "--expect", "1"]);
    receiver.prints("\"joined\":3", 30);
    assert_eq!(joined(stage.lab.receiver(0), &stage).len(), 1);
    receiver.succeeds(60);
    sent.succeeds(20);
    assert!(stage.has("r0", &file));
}

/// Needs a kernel: memberships end with the process.
#[test]
fn stopped_and_killed_receivers_leave_every_group() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2).forwarding(Forwarding::ToMembers));
    let file = stage.file("image", 8_000_000);
    let other = stage.recv(1, "r1", &[]);
    let mut stopped = stage.recv(0, "r0", &[]);
    let sent = stage.send(&[&file], &["--cc", RLC, "--expect", "2", "--max", "8M"]);
    climbs(&stage, &mut stopped, 3);
    stopped.task.interrupt();
    stopped.ends(5).failed(1, "stopped");
    assert_eq!(joined(stage.lab.receiver(0), &stage), Vec::<IpAddr>::new());
    let mut killed = stage.recv(0, "r0", &[]);
    climbs(&stage, &mut killed, 2);
    killed.crashes();
    assert_eq!(joined(stage.lab.receiver(0), &stage), Vec::<IpAddr>::new());
    // The state directory contains only the verified data and its metadata.
    let state = must(std::fs::read_dir(stage.path("r0").join(".faircast"))).flatten().next();
    let files = must(std::fs::read_dir(state.expect("the transfer's").path())).flatten();
    let names: Vec<_> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    assert!(
        names.iter().all(|name| ["head", "journal", "lock", "parts"].contains(&name.as_str())),
        "{names:?}"
    );
    other.succeeds(60);
    drop(sent);
}

/// Needs a kernel: a link fails.
#[test]
fn receiver_with_a_failed_link_leaves_every_group_at_timeout() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 20_000_000);
    let mut receiver = stage.recv(0, "r0", &["--timeout", "2"]);
    let _sent = stage.send(&[&file], &["--cc", RLC, "--expect", "1"]);
    receiver.prints("\"joined\":3", 30);
    must(stage.lab.set_link(0, Link::Down));
    receiver.ends(20).failed(1, "silent");
    assert_eq!(joined(stage.lab.receiver(0), &stage), Vec::<IpAddr>::new());
}

/// Needs a kernel: another socket has the port.
#[test]
fn layer_whose_port_is_in_use_is_skipped_and_named() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 4_000_000);
    let base: std::net::SocketAddr = must(stage.group.parse());
    // Another program uses the third layer's address and port.
    let taken = must(stage.lab.receiver(0).inside(move || UdpSocket::bind(("239.255.70.11", base.port()))));
    let _held = must(taken);
    let mut receiver = stage.recv(0, "r0", &[]);
    let sent = stage.send(&[&file], &["--cc", RLC, "--expect", "1"]);
    receiver.prints("cannot join layer 2", 30);
    assert_eq!(joined(stage.lab.receiver(0), &stage).len(), 2);
    let got = receiver.succeeds(60);
    sent.succeeds(20);
    assert!(stage.has("r0", &file));
    assert_eq!(
        got.all("warning").filter(|event| event["message"].to_string().contains("cannot join")).count(),
        1
    );
}

/// Needs a kernel: a pipe.
#[test]
fn content_of_a_layered_session_arrives_in_a_pipe() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 4_000_000);
    let line = format!(
        "{} recv -q --stdout --group {} > {}",
        crate::kit::FAIRCAST,
        stage.group,
        stage.text("piped")
    );
    let receiver = Running::shell(stage.lab.receiver(0), &line);
    // The shell does not report when the program listens, so the source waits for the receiver.
    let sent = stage.send(&[&file], &["--cc", RLC, "--expect", "1"]);
    assert_eq!(receiver.ends(60).code, 0);
    sent.succeeds(20);
    assert!(must(std::fs::read(stage.path("piped"))) == noise("image", 4_000_000));
}
