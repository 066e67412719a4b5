//! Layered sessions between real hosts: each layer has a multicast group, which is forwarded only to its members.

use crate::kit::{Ended, FAIRCAST, Stage, must, print_line};
use faircast_testkit::{Bottleneck, Capture, Forwarding, Lab, MemberWatch, Membership, Offloads, Root};
use faircast_testkit::{require_root, run};
use std::net::IpAddr;
use std::time::{Duration, Instant};

const SLOW: usize = 0;
const FAST: usize = 2;

/// Builds a stage with receivers behind links of 1, 4 and 30 Mbit/s. The bridge forwards groups only to members.
fn stage(root: &Root, bytes: usize) -> (Stage, String) {
    let mut plan = Lab::plan().receivers(3).offloads(Offloads::Off).forwarding(Forwarding::ToMembers);
    for (receiver, rate) in [1.0, 4.0, 30.0].into_iter().enumerate() {
        plan = plan.bottleneck(receiver as u16, Bottleneck::mbps(rate).queue(30_000));
    }
    let stage = Stage::shared(root, plan);
    let file = stage.file("image", bytes);
    (stage, file)
}

/// Sends the file to all receivers with this scheme. Checks that all receivers get the same bytes, and that receivers with more
/// capacity complete earlier and join more groups.
fn each_at_its_own_rate(stage: &Stage, file: &str, scheme: &str) {
    let watch = must(stage.lab.watch_members());
    let receivers = stage.recv_everywhere(&[]);
    let source = stage.send(&[file], &["--cc", scheme, "--expect", "3"]);
    let ended: Vec<Ended> = receivers.into_iter().map(|receiver| receiver.succeeds(55)).collect();
    let source = source.succeeds(20);
    assert_eq!(source.number("verified"), 3.0, "{source:?}");
    for host in ["r0", "r1", "r2"] {
        assert!(stage.has(host, file), "{scheme}: {host} has other bytes");
    }
    let seconds: Vec<_> = ended.iter().map(|receiver| receiver.number("seconds")).collect();
    let joins: Vec<_> = (0..3).map(|receiver| watch.count(receiver, Membership::Joined)).collect();
    print_line(&format!(
        "{scheme}: done after {seconds:.1?} s, joined {joins:?} groups, of them 1 at the start"
    ));
    assert!(seconds[FAST] < 0.7 * seconds[SLOW], "{scheme}: {seconds:?} s: {source:?}");
    assert!(joins.iter().all(|&count| count >= 1) && joins[FAST] >= 2, "{scheme}: {:?}", watch.changes());
    for receiver in 0..3 {
        nothing_left(stage, receiver, &watch);
    }
}

/// Checks that the bridge stops forwarding groups to a receiver when the bridge's timers expire.
fn nothing_left(stage: &Stage, receiver: u16, watch: &MemberWatch) {
    // The timers expire after two queries at an interval of a second (RFC 3376, 8.8 and 8.9). The remaining time is a margin for
    // a busy machine.
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let left: Vec<IpAddr> = must(stage.lab.groups(receiver));
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "receiver {receiver} still in {left:?}: {:?}", watch.changes());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Kills a receiver that has joined layers. Checks that the bridge soon forwards no group to this receiver, and that the other
/// receiver completes.
fn a_killed_receiver_leaves_no_group(scheme: &str) {
    let Some(root) = require_root() else { return };
    let (stage, file) = stage(&root, 3_000_000);
    let watch = must(stage.lab.watch_members());
    let survivor = stage.recv(1, "r1", &[]);
    let mut victim = stage.recv(FAST, "victim", &[]);
    let _source = stage.send(&[&file], &["--cc", scheme, "--expect", "2", "--max", "8M"]);
    let end = Instant::now() + Duration::from_secs(40);
    while must(stage.lab.groups(FAST as u16)).len() < 2 {
        assert!(Instant::now() < end && victim.task.is_running(), "{scheme}: {:?}", watch.changes());
        std::thread::sleep(Duration::from_millis(10));
    }
    victim.crashes();
    nothing_left(&stage, FAST as u16, &watch);
    let (joins, leaves) = (watch.count(FAST, Membership::Joined), watch.count(FAST, Membership::Left));
    assert_eq!(joins, leaves, "{scheme}: {:?}", watch.changes());
    survivor.succeeds(55);
    assert!(stage.has("r1", &file), "{scheme}");
}

/// Returns the number of congestion reports that the source has received. tshark counts them with the program's dissector.
/// Returns `None` without tshark.
fn reports(stage: &Stage, capture: Capture) -> Option<usize> {
    let pcap = must(capture.stop());
    if let Err(error) = run("tshark", &["--version"], Duration::from_secs(20)) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "needs tshark: {error}");
        print_line(&format!("skipped: reports on the wire: needs tshark: {error}"));
        return None;
    }
    let lua = stage.text("faircast.lua");
    let dissector = must(run(FAIRCAST, &["dissector"], Duration::from_secs(10))).stdout;
    must(std::fs::write(&lua, dissector));
    let (path, script) = (pcap.to_string_lossy(), format!("lua_script:{lua}"));
    let to = stage.lab.sender().ipv4();
    let count = |what: &str| {
        let filter = format!("{what} && ip.dst == {to}");
        let args = ["-n", "-r", &path, "-X", &script, "-Y", &filter];
        must(run("tshark", &args, Duration::from_secs(60))).stdout.lines().count()
    };
    assert!(count("faircast") > 0, "receivers say at least that they are there and done");
    Some(count("faircast.kind == 2"))
}

/// Needs a kernel: a bridge forwards each group to its members, through token buckets.
#[test]
fn rlc_receivers_get_their_own_rates_and_send_no_reports() {
    let Some(root) = require_root() else { return };
    let (stage, file) = stage(&root, 2_000_000);
    let capture =
        must(Capture::start(stage.lab.sender(), "udp and not multicast", &stage.path("reports.pcap")));
    each_at_its_own_rate(&stage, &file, "rlc");
    if let Some(count) = reports(&stage, capture) {
        assert_eq!(count, 0, "RLC is driven by receivers alone (paper 004, III)");
    }
}

/// Needs a kernel: a bridge forwards each group to its members, through token buckets.
#[test]
fn gmcc_receivers_get_their_own_rates_and_some_send_reports() {
    let Some(root) = require_root() else { return };
    let (stage, file) = stage(&root, 2_000_000);
    let capture =
        must(Capture::start(stage.lab.sender(), "udp and not multicast", &stage.path("reports.pcap")));
    each_at_its_own_rate(&stage, &file, "gmcc");
    if let Some(count) = reports(&stage, capture) {
        assert!(count > 0, "the source of GMCC hears its representatives");
    }
}

/// Needs a kernel: memberships end with the process.
#[test]
fn killed_rlc_receiver_leaves_every_group() {
    a_killed_receiver_leaves_no_group("rlc");
}

/// Needs a kernel: memberships end with the process.
#[test]
fn killed_gmcc_receiver_leaves_every_group() {
    a_killed_receiver_leaves_no_group("gmcc");
}
