//! A source for hosts without multicast. It serves hosts that connect, and invites the hosts in a file. Each host has a separate
//! rate.

use crate::kit::{FAIRCAST, Running, Stage, must, print_line};
use crate::security::key;
use faircast_core::packet::SessionId;
use faircast_testkit::{Capture, Damage, Lab, Node, fields, require_root, run};
use faircast_wire::{Invite, Message, Name, encode};
use std::net::UdpSocket;
use std::time::Duration;

/// Disables multicast on the interfaces of all hosts, and removes the multicast routes.
pub fn without_multicast(lab: &Lab) {
    for node in std::iter::once(lab.sender()).chain(lab.receivers()) {
        let ip = |command: &str| {
            let mut words = vec!["-n", node.namespace()];
            words.extend(command.split_whitespace());
            run("ip", &words, Duration::from_secs(10))
        };
        must(must(ip("link set eth0 multicast off")).ok());
        // The lab may have added no such route.
        let _ = ip("route del multicast 224.0.0.0/4 dev eth0");
    }
}

/// Writes a file that lists the lab's receivers. Returns the path of the file.
pub fn list(stage: &Stage, hosts: &[String]) -> String {
    must(std::fs::write(stage.path("hosts.txt"), hosts.join("\n") + "\n"));
    stage.text("hosts.txt")
}

pub fn v4(stage: &Stage, at: usize) -> String {
    stage.lab.receiver(at).ipv4().to_string()
}

/// Starts a receiver that waits for an invitation.
pub fn waiting(stage: &Stage, at: usize, more: &[&str]) -> Running {
    let (host, out) = (format!("r{at}"), stage.text(&format!("r{at}")));
    let mut args = vec!["recv", "--json", "--host", &host];
    if !more.contains(&"--listen") {
        args.push("--listen");
    }
    if !more.contains(&"--stdout") {
        args.extend(["--out", &out]);
    }
    let mut running = Running::start(stage.lab.receiver(at), &[&args[..], more].concat());
    running.prints("\"opened\"", 20);
    running
}

/// Starts a source without multicast.
pub fn source(stage: &Stage, args: &[&str]) -> Running {
    let mut words = vec!["send", "--json", "--host", "source"];
    if !args.contains(&"--key") {
        words.push("--no-key");
    }
    Running::start(stage.lab.sender(), &[&words[..], args].concat())
}

/// Returns the outcomes of the listed hosts.
fn outcomes(done: &serde_json::Value) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("").to_owned();
    let hosts = done["hosts"].as_array().expect("a report lists hosts");
    hosts.iter().map(|host| (text(&host["host"]), text(&host["outcome"]))).collect()
}

/// Needs a kernel: hosts have no multicast route.
#[test]
fn source_serves_a_list_of_hosts_without_multicast() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3).damage(0..2, Damage::loss(0.02)));
    without_multicast(&stage.lab);
    let group_key = key(&stage, "lab.key");
    let signer = stage.text("lab.sign");
    must(run(FAIRCAST, &["keygen", "--sign", &signer], Duration::from_secs(10)));
    let (file, public) = (stage.file("image", 6_000_000), format!("{signer}.pub"));
    let hosts = list(&stage, &[v4(&stage, 0), format!("{} # in the cellar", v4(&stage, 1)), v4(&stage, 2)]);
    let pcap = stage.path("all.pcap");
    let capture = must(Capture::start(stage.lab.receiver(0), "udp and multicast", &pcap));
    let flags =
        ["--key", &group_key, "--verify-key", &public, "--source", &stage.lab.sender().ipv4().to_string()];
    let mut first = [0, 1].map(|at| waiting(&stage, at, &flags));
    let args = [
        &file,
        "--invite",
        &hosts,
        "--key",
        &group_key,
        "--sign-key",
        &signer,
        "--max",
        "4M",
        "--join-timeout",
        "1",
    ];
    let sends = source(&stage, &args);
    first[0].reaches(0.1, 20);
    // This host starts when the session will last about ten more seconds.
    let late = waiting(&stage, 2, &flags);
    for ended in first.into_iter().chain([late]) {
        ended.succeeds(30);
    }
    let ended = sends.succeeds(30);
    must(capture.stop());
    assert_eq!((ended.number("receivers"), ended.number("verified")), (3.0, 3.0), "{ended:?}");
    let printed = outcomes(ended.done());
    assert!(printed.len() == 3 && printed.iter().all(|(_, outcome)| outcome == "done"), "{printed:?}");
    assert!(["r0", "r1", "r2"].iter().all(|host| stage.has(host, &file)));
    let groups = must(fields(&pcap, "udp", &["ip.dst"]));
    assert!(groups.is_empty(), "somebody sent to {groups:?}");
}

/// Needs a kernel: an address without a host.
#[test]
fn silent_invited_host_is_named_and_other_hosts_complete() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    without_multicast(&stage.lab);
    let file = stage.file("image", 2_000_000);
    let hosts = list(&stage, &[v4(&stage, 0), v4(&stage, 1), format!("{}:6000", v4(&stage, 2))]);
    let receivers = [waiting(&stage, 0, &[]), waiting(&stage, 1, &[])];
    // The third host listens at another port, and accepts only packets from the second host.
    let mut other = waiting(&stage, 2, &["--listen", "7000", "--source", &v4(&stage, 1)]);
    let ended = source(&stage, &[&file, "--invite", &hosts, "--join-timeout", "2"]).ends(30);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!((ended.number("verified"), ended.number("missing")), (2.0, 1.0), "{ended:?}");
    let printed: Vec<String> = outcomes(ended.done()).into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(printed, ["done", "done", "unanswered"], "{ended:?}");
    assert!(other.task.is_running(), "nobody has invited it");
    // The same with text output.
    let again = [waiting(&stage, 0, &[]), waiting(&stage, 1, &[])];
    let args = ["send", "--no-key", &file, "--invite", &hosts, "--join-timeout", "2"];
    let ended = Running::start(stage.lab.sender(), &args).ends(30);
    again.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
    let words = format!("1 of 3 never answered: {}:6000", v4(&stage, 2));
    assert!(ended.code == 1 && ended.stderr.contains(&words), "{}", ended.stderr);
    other.crashes();
}

/// Needs a kernel: processes on hosts with separate addresses.
#[test]
fn host_that_refuses_the_source_continues_to_wait() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 1_000_000);
    let hosts = list(&stage, &[v4(&stage, 0)]);
    let mut waits = waiting(&stage, 0, &["--source", &v4(&stage, 1)]);
    let ended = source(&stage, &[&file, "--invite", &hosts, "--join-timeout", "2"]).ends(20);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(waits.task.is_running() && !stage.path("r0").join("image").exists());
    waits.crashes();
}

/// Needs a kernel: a process is killed.
#[test]
fn restarted_host_is_served_again() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    without_multicast(&stage.lab);
    let file = stage.file("image", 16_000_000);
    let hosts = list(&stage, &[v4(&stage, 0), v4(&stage, 1)]);
    let (mut dies, stays) = (waiting(&stage, 0, &[]), waiting(&stage, 1, &[]));
    let sends = source(&stage, &[&file, "--invite", &hosts, "--max", "12M"]);
    dies.reaches(0.3, 20);
    dies.crashes();
    std::thread::sleep(Duration::from_millis(500));
    let back = waiting(&stage, 0, &[]).succeeds(60);
    stays.succeeds(60);
    let ended = sends.succeeds(60);
    print_line(&format!("host killed at 30 %: {:?}", ended.done()));
    assert!(back.number("resumed_bytes") > 0.0, "{back:?}");
    assert_eq!((ended.number("receivers"), ended.number("verified")), (2.0, 2.0), "{ended:?}");
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
}

/// Needs a kernel: a process is killed.
#[test]
fn waiting_hosts_continue_with_a_restarted_source() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    without_multicast(&stage.lab);
    let file = stage.file("image", 16_000_000);
    let hosts = list(&stage, &[v4(&stage, 0), v4(&stage, 1)]);
    let mut receivers = [waiting(&stage, 0, &[]), waiting(&stage, 1, &[])];
    let first = source(&stage, &[&file, "--invite", &hosts, "--max", "12M"]);
    receivers[0].reaches(0.4, 20);
    first.crashes();
    let ended = source(&stage, &[&file, "--invite", &hosts, "--max", "12M"]).succeeds(60);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
    assert_eq!(ended.number("verified"), 2.0, "{ended:?}");
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
}

/// Needs a kernel: unicast and multicast on one socket.
#[test]
fn source_serves_unicast_children_and_multicast_members() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let file = stage.file("image", 4_000_000);
    let member = stage.recv(2, "r2", &[]);
    let parent = stage.lab.sender().ipv4().to_string();
    let children = [0, 1].map(|at| {
        let (host, out) = (format!("r{at}"), stage.text(&format!("r{at}")));
        let args = ["recv", "--json", "--host", &host, "--out", &out, "--parent", &parent];
        let mut child = Running::start(stage.lab.receiver(at), &args);
        child.prints("\"opened\"", 20);
        child
    });
    let sends = stage.send(&[&file], &["--expect", "3", "--max", "16M", "--listen"]);
    let ended = sends.succeeds(40);
    for receiver in children.into_iter().chain([member]) {
        receiver.succeeds(10);
    }
    assert_eq!((ended.number("receivers"), ended.number("verified")), (3.0, 3.0), "{ended:?}");
    // The source serves its children without a relay, so it lists no relays.
    let relays = ended.events.iter().filter_map(|event| event["relays"].as_array());
    assert!(relays.flatten().next().is_none(), "{ended:?}");
    assert!(["r0", "r1", "r2"].iter().all(|host| stage.has(host, &file)));
}

/// Needs a kernel: hosts have no multicast route.
#[test]
fn stream_reaches_hosts_without_multicast() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    without_multicast(&stage.lab);
    let file = stage.file("stream", 3_000_000);
    let hosts = list(&stage, &[v4(&stage, 0), v4(&stage, 1)]);
    let receivers = [0, 1].map(|at| {
        let out = stage.text(&format!("out{at}"));
        let line = format!("{FAIRCAST} recv --json --listen --host r{at} --stdout > {out}");
        Running::shell(stage.lab.receiver(at), &line)
    });
    // Standard output carries the stream, so the test cannot read when the receivers listen. The stream therefore starts after
    // three seconds.
    let line = format!(
        "(sleep 3; head -c 1500000 {file}; sleep 1; tail -c +1500001 {file}) | {FAIRCAST} stream --json --no-key --invite {hosts}"
    );
    let ended = Running::shell(stage.lab.sender(), &line).ends(40);
    assert_eq!(ended.code, 0, "{ended:?}");
    for (at, receiver) in receivers.into_iter().enumerate() {
        assert_eq!(receiver.ends(20).code, 0);
        assert!(must(std::fs::read(stage.path(&format!("out{at}")))) == must(std::fs::read(&file)));
    }
}

/// Needs a kernel: both families on one socket.
#[test]
fn one_host_list_serves_both_address_families() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    without_multicast(&stage.lab);
    let file = stage.file("image", 3_000_000);
    let six = format!("[{}]", stage.lab.receiver(1).ipv6());
    let hosts = list(&stage, &[v4(&stage, 0), six]);
    let receivers = [waiting(&stage, 0, &[]), waiting(&stage, 1, &["--listen", "[::]:5778"])];
    let ended = source(&stage, &[&file, "--invite", &hosts]).succeeds(40);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
    assert_eq!(ended.number("verified"), 2.0, "{ended:?}");
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
}

/// Needs a kernel: processes end with exit code 2 before they send.
#[test]
fn invalid_list_of_hosts_is_refused_with_its_line() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(1));
    let file = stage.file("image", 1_000);
    let refuses = |text: &str, words: &str| {
        must(std::fs::write(stage.path("hosts.txt"), text));
        let ended = source(&stage, &[&file, "--invite", &stage.text("hosts.txt")]).ends(10);
        assert!(ended.code == 2 && ended.stderr.contains(words), "{ended:?}");
    };
    refuses("10.0.0.1\nno such host\n", "hosts.txt, line 2");
    refuses("10.0.0.1\n10.0.0.1:5778\n", "which is on line 1 already");
    refuses("#\n", "names no host");
    let busy = waiting(&stage, 0, &[]);
    let taken =
        Running::start(stage.lab.receiver(0), &["recv", "--listen", "--out", &stage.text("x")]).ends(10);
    assert!(taken.code != 0 && taken.stderr.contains("5778"), "{taken:?}");
    busy.crashes();
    let args = ["recv", "--listen", "7000", "--join-timeout", "1", "--out", &stage.text("x")];
    let uninvited = Running::start(stage.lab.receiver(0), &args).ends(10);
    assert!(
        uninvited.code == 1 && uninvited.stderr.contains("no source has invited this host"),
        "{uninvited:?}"
    );
    let nobody = source(&stage, &[&file, "--listen", "--join-timeout", "1"]).ends(10);
    nobody.failed(1, "no host requested service within 1 s");
    let alone = source(&stage, &[&file, "--listen", "--cc", "rlc"]).ends(10);
    alone.failed(2, "--listen or --invite is not supported with rlc");
}

/// Sends forged invitations with another host's source address.
fn forge_invitations(node: &Node, to: &str, victim: &str, count: u32) {
    // The forging host must neither answer ARP requests for that address nor announce it.
    for setting in ["net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.arp_announce=2"] {
        must(must(node.run("sysctl", &["-qw", setting], Duration::from_secs(10))).ok());
    }
    let address = format!("{victim}/32");
    let args = ["-n", node.namespace(), "address", "add", &address, "dev", "lo"];
    must(must(run("ip", &args, Duration::from_secs(10))).ok());
    let mut bytes = Vec::new();
    let message = Message::Invite(Invite { number: 7, name: Name::clipped("liar") });
    must(encode(&mut bytes, SessionId(0), 0, &message, 128));
    let sent = node.inside(|| {
        let socket = must(UdpSocket::bind((victim, 5778)));
        (0..count).all(|_| {
            std::thread::sleep(Duration::from_millis(2));
            socket.send_to(&bytes, (to, 5778)).is_ok()
        })
    });
    assert!(must(sent), "all are sent");
}

/// Needs a kernel: packets come from a spoofed source address.
#[test]
fn spoofed_invitations_cause_almost_no_traffic() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let (file, hosts) = (stage.file("image", 1_000_000), list(&stage, &[v4(&stage, 0)]));
    let waits = waiting(&stage, 0, &[]);
    let pcap = stage.path("victim.pcap");
    let capture = must(Capture::start(stage.lab.receiver(2), "udp", &pcap));
    forge_invitations(stage.lab.receiver(1), &v4(&stage, 0), &v4(&stage, 2), 500);
    std::thread::sleep(Duration::from_secs(5));
    must(capture.stop());
    let filter = format!("udp && ip.src == {}", v4(&stage, 0));
    let reached = must(fields(&pcap, &filter, &["udp.length"]));
    let bytes: u32 = reached.iter().map(|row| row[0].parse::<u32>().unwrap_or(0)).sum();
    print_line(&format!("500 forged invitations: {} packets, {bytes} bytes to the victim", reached.len()));
    assert!(!reached.is_empty(), "an invitation is answered");
    assert!(reached.len() <= 30 && bytes < 3_000, "{} packets, {bytes} bytes", reached.len());
    // A real invitation is still accepted.
    source(&stage, &[&file, "--invite", &hosts]).succeeds(30);
    waits.succeeds(10);
    assert!(stage.has("r0", &file));
}
