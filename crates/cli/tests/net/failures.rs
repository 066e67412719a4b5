//! Errors that a host or a command line causes: each has a distinct message and exit code.

use crate::kit::{FAIRCAST, Running, Stage, must};
use faircast_testkit::{Lab, Node, Offloads, require_root, run};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

fn ip(node: &Node, command: &str) {
    let args: Vec<_> = ["-n", node.namespace()].into_iter().chain(command.split(' ')).collect();
    must(run("ip", &args, SOON));
}

/// A separate file system in the stage's directory, which is unmounted when this value is dropped.
struct Mounted(String);

impl Mounted {
    fn new(path: String, size: &str) -> Mounted {
        must(std::fs::create_dir(&path));
        must(run("mount", &["-t", "tmpfs", "-o", size, "tmpfs", &path], SOON));
        Mounted(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run("umount", &[&self.0], SOON);
    }
}

/// Needs a kernel: a file system is full.
#[test]
fn full_disk_is_named_at_both_ends_and_delays_no_other_receiver() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 8_000_000);
    let disk = Mounted::new(stage.text("disk"), "size=4m");
    let full = stage.recv(0, "full", &["--out", &disk.0]);
    let other = stage.recv(1, "r1", &[]);
    let source = stage.send(&[&file], &["--max", "50M"]).ends(30);
    let full = full.ends(5);
    full.failed(3, "8000000 bytes are needed");
    assert!(full.message().contains(&disk.0), "{full:?}");
    other.succeeds(5);
    assert_eq!(source.code, 1, "{source:?}");
    let reason = source.done()["incomplete"][0]["reason"].as_str().unwrap_or_default();
    assert!(
        reason.starts_with("its disk is full: ") && reason.contains("8000000 bytes are needed"),
        "{source:?}"
    );
    assert!(source.took.as_secs_f64() < 6.0, "it waited for the one that had failed: {source:?}");
}

/// Space for partial files is preallocated, so only the journal needs more space. A page of the journal has entries for several
/// hundred blocks.
///
/// Needs a kernel: a file system is full.
#[test]
fn full_disk_for_the_journal_is_named_and_the_next_run_resumes() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 40_000_000);
    let disk = Mounted::new(stage.text("disk"), "size=48m");
    let recv = || stage.recv(0, "r0", &["--out", &disk.0]);
    let mut full = recv();
    let source = stage.send(&[&file], &["--max", "40M"]);
    full.prints("\"content\"", 20);
    let filler = format!("{}/filler", disk.0);
    let fill = must(
        std::process::Command::new("dd").args(["if=/dev/zero", "bs=4k", &format!("of={filler}")]).output(),
    );
    assert!(!fill.status.success(), "the disk is full: {fill:?}");
    let full = full.ends(40);
    full.failed(3, "free some space");
    assert!(full.message().contains("/journal: "), "{full:?}");
    let source = source.ends(20);
    let reason = source.done()["incomplete"][0]["reason"].as_str().unwrap_or_default();
    assert!(source.code == 1 && reason.starts_with("its disk is full: "), "{source:?}");
    must(std::fs::remove_file(filler));
    let again = recv();
    stage.send(&[&file], &[]).succeeds(40);
    let again = again.succeeds(10);
    assert!(again.number("resumed_bytes") > 1e6, "{again:?}");
    assert!(must(std::fs::read(&file)) == must(std::fs::read(format!("{}/image", disk.0))));
}

/// Needs a kernel: a host has no interface but lo.
#[test]
fn host_without_a_network_warns_that_it_sends_through_lo() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 100_000);
    ip(stage.lab.sender(), "link set eth0 down");
    let receiver = stage.recv_on(stage.lab.sender(), "r0", &[]);
    let args = ["send", "--no-key", "--expect", "1", "--group", &stage.group, &file];
    let source = Running::start(stage.lab.sender(), &args).ends(20);
    let sending = format!("sending to {} through lo, 127.0.0.1", stage.group);
    assert!(source.code == 0 && source.stderr.contains(&sending), "{source:?}");
    let receiver = receiver.succeeds(5);
    assert_eq!(receiver.all("opened").next().map(|opened| &opened["interface"]), Some(&"lo".into()));
    let warned = receiver.all("warning").find(|warning| warning["concerns"] == "interface");
    let warned = warned.and_then(|warning| warning["message"].as_str()).unwrap_or_default().to_owned();
    for printed in [&source.stderr, &warned] {
        assert!(printed.contains("only programs on this host can join"), "{printed}");
        assert!(printed.contains("--iface") && printed.contains("`faircast doctor`"), "{printed}");
    }
    assert!(stage.has("r0", &file));
}

/// Needs a kernel: the permissions of a directory.
#[test]
fn unwritable_output_directory_is_named() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 100_000);
    let out = stage.text("locked");
    must(std::fs::create_dir(&out));
    let lock = |mode| must(std::fs::set_permissions(&out, std::fs::Permissions::from_mode(mode)));
    lock(0o777);
    must(std::fs::set_permissions(stage.path(""), std::fs::Permissions::from_mode(0o755)));
    // An ordinary user cannot read the directory of the program, so the program is passed as an open file.
    let line = format!(
        "exec 9< {FAIRCAST}; exec setpriv --reuid 65534 --regid 65534 --clear-groups \
         /proc/self/fd/9 recv --json --group {} --out {out} --host nobody",
        stage.group
    );
    let mut receiver = Running::shell(stage.lab.receiver(0), &line);
    receiver.prints("\"opened\"", 10);
    lock(0o755);
    let source = stage.send(&[&file], &["--join-timeout", "3"]).ends(20);
    let receiver = receiver.ends(5);
    receiver.failed(3, "no permission");
    assert!(receiver.message().contains(&out), "{receiver:?}");
    assert_eq!(source.code, 1, "{source:?}");
    let reason = source.done()["incomplete"][0]["reason"].as_str().unwrap_or_default();
    assert!(
        reason.starts_with("it has no permission to write this file or directory: ") && reason.contains(&out),
        "{source:?}"
    );
    // An error that is detectable at the start is reported at once, without waiting for a session.
    let late = Running::shell(stage.lab.receiver(0), &line).ends(5);
    late.failed(2, &format!("nothing can be written into {out}"));
}

/// Needs a kernel: a directory cannot be created.
#[test]
fn receiver_refuses_an_impossible_output_directory_at_once() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 10);
    let ended = stage.recv(0, "r0", &["--out", &file]).ends(5);
    ended.failed(2, "`--out` takes a directory");
}

/// Needs a kernel: an interface is down.
#[test]
fn unknown_interface_and_interface_that_is_down_are_named() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 10);
    stage.recv(0, "r0", &["--iface", "eth7"]).ends(5).failed(2, "eth7");
    stage.send(&[&file], &["--iface", "eth7"]).ends(5).failed(2, "eth7");
    for node in [stage.lab.receiver(0), stage.lab.sender()] {
        ip(node, "link set eth0 down");
    }
    stage.recv(0, "r0", &["--iface", "eth0"]).ends(5).failed(3, "is down");
    stage.send(&[&file], &["--iface", "eth0"]).ends(5).failed(3, "is down");
}

/// Needs a kernel: a host has no route.
#[test]
fn missing_route_to_the_group_is_reported_with_a_remedy() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 100_000);
    // With only one interface, no route is needed.
    for node in [stage.lab.receiver(0), stage.lab.sender()] {
        ip(node, "route del multicast 224.0.0.0/4");
    }
    let receiver = stage.recv(0, "r0", &[]);
    stage.send(&[&file], &[]).succeeds(20);
    receiver.succeeds(5);
    // With two interfaces, the user must choose.
    for node in [stage.lab.receiver(0), stage.lab.sender()] {
        ip(node, "link add other0 type veth peer name other1");
        ip(node, "link set other1 up");
        ip(node, "address add 10.99.0.1/24 dev other0");
        ip(node, "link set other0 up multicast on");
    }
    let (receiver, source) = (stage.recv(0, "r0", &[]).ends(5), stage.send(&[&file], &[]).ends(5));
    for ended in [receiver, source] {
        ended.failed(3, "no route selects an interface");
        assert!(ended.message().contains("eth0") && ended.message().contains("other0"), "{ended:?}");
    }
}

/// Needs a kernel: the MTU of an interface.
#[test]
fn datagram_over_the_mtu_is_refused_with_both_sizes() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 100_000);
    let ended = stage.send(&[&file], &["--datagram", "2000"]).ends(5);
    ended.failed(2, "2000");
    assert!(ended.message().contains("1472"), "{ended:?}");
    ip(stage.lab.sender(), "link set eth0 mtu 280");
    stage.send(&[&file], &[]).ends(5).failed(3, "MTU of 280");
    // This MTU is small but sufficient.
    ip(stage.lab.sender(), "link set eth0 mtu 576");
    let receiver = stage.recv(0, "r0", &[]);
    stage.send(&[&file], &[]).succeeds(20);
    receiver.succeeds(5);
}

/// Needs a kernel: the MTU of every link.
#[test]
fn large_datagrams_arrive_if_every_link_has_a_large_mtu() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().mtu(9_000).offloads(Offloads::Off));
    let file = stage.file("image", 3_000_000);
    let key = crate::security::key(&stage, "lab.key");
    for (host, flags) in [("open", &[][..]), ("sealed", &["--key", key.as_str()])] {
        let receiver = stage.recv(0, host, flags);
        let flags = [flags, &["--expect", "1", "--datagram", "8900"]].concat();
        let source = stage.send(&[&file], &flags).succeeds(20);
        receiver.succeeds(5);
        assert!(stage.has(host, &file));
        // With datagrams of 1472 bytes there would be 2,100 packets.
        assert!(source.number("packets") < 1_500.0, "{source:?}");
    }
    stage.send(&[&file], &["--datagram", "8973"]).ends(5).failed(2, "at most 8972");
}

/// Needs a kernel: the limit of receive buffers.
#[test]
fn small_receive_buffer_is_reported_with_a_remedy() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 2_000_000);
    must(std::fs::set_permissions(stage.path(""), std::fs::Permissions::from_mode(0o777)));
    // A user without the privilege to exceed the system's limit gets a buffer of this limit, and a warning.
    let line = format!(
        "exec 9< {FAIRCAST}; exec setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all \
         /proc/self/fd/9 recv --json --group {} --out {} --host small",
        stage.group,
        stage.text("small")
    );
    let mut receiver = Running::shell(stage.lab.receiver(0), &line);
    receiver.prints("\"opened\"", 10);
    stage.send(&[&file], &[]).succeeds(20);
    let receiver = receiver.succeeds(5);
    let limit: f64 = must(must(std::fs::read_to_string("/proc/sys/net/core/rmem_max")).trim().parse::<f64>());
    let warned = receiver.all("warning").any(|w| w["message"].to_string().contains("net.core.rmem_max"));
    assert_eq!(warned, limit < 16e6, "the limit here is {limit}: {receiver:?}");
}

/// Needs a kernel: exit codes of processes with keys in files.
#[test]
fn missing_wrong_and_invalid_keys_have_different_errors() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 1000);
    stage.send(&[&file], &["--key", "/no/such/key"]).ends(5).failed(2, "cannot read the key file");
    stage.send(&[&file], &["--key", &file]).ends(5).failed(2, "is not a key file");
    let ended = Running::start(stage.lab.sender(), &["send", &file, "--group", "10.1.2.3:5777"]).ends(5);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(format!("{ended:?}").contains("not a multicast address"), "{ended:?}");
}
