//! Interfaces that go down, lose their address or are recreated, and paths that drop large packets. The session reports a warning
//! and continues.

use crate::kit::{Ended, Running, Stage, must};
use faircast_testkit::{Lab, Link, Node, Offloads, require_root, run};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

fn ip(namespace: &str, command: &str) {
    let args: Vec<_> = ["-n", namespace].into_iter().chain(command.split(' ')).collect();
    must(run("ip", &args, LIMIT));
}

fn route(node: &Node) {
    ip(node.namespace(), "route replace multicast 224.0.0.0/4 dev eth0");
}

fn down(node: &Node) {
    ip(node.namespace(), "link set eth0 down");
}

fn up(node: &Node) {
    ip(node.namespace(), "link set eth0 up");
    route(node);
    // The kernel removes IPv6 addresses from interfaces that go down.
    ip(node.namespace(), &format!("address replace {}/64 dev eth0 nodad", node.ipv6()));
}

/// Deletes the interface with its link. Returns its hardware address.
fn delete(node: &Node) -> String {
    let shown = must(run("ip", &["-n", node.namespace(), "-brief", "link", "show", "eth0"], LIMIT)).stdout;
    ip(node.namespace(), "link del eth0");
    shown.split_whitespace().nth(2).expect("it has an address").to_owned()
}

/// Recreates the interface with a new index and the same hardware address, as real hardware would have. With a new hardware
/// address, neighbours would send to the old address until their caches expire after half a minute.
fn make_again(lab: &Lab, node: &Node, hardware: &str) {
    let (host, bridge, port) = (node.namespace(), lab.bridge(), node.port());
    ip(host, &format!("link add eth0 address {hardware} type veth peer name {port} netns {bridge}"));
    ip(bridge, &format!("link set {port} master br0 up"));
    ip(host, &format!("address add {}/16 broadcast + dev eth0", node.ipv4()));
    up(node);
}

/// A transfer to two hosts that has started and takes some seconds.
struct OutageStage {
    stage: Stage,
    file: String,
    source: Running,
    receivers: Vec<Running>,
}

impl OutageStage {
    fn way(stage: Stage, bytes: usize, more: &[&str]) -> OutageStage {
        let file = stage.file("image", bytes);
        let receivers = stage.recv_everywhere(more);
        // The rate is low because the kernel may delay `ip` for seconds while other labs are removed. A part of the transfer must
        // remain after this delay.
        let mut source = stage.send(&[&file], &[&["--expect", "2", "--max", "8M"], more].concat());
        source.reaches(0.1, 30);
        OutageStage { stage, file, source, receivers }
    }

    fn of_two_hosts() -> Option<OutageStage> {
        let root = require_root()?;
        Some(OutageStage::way(Stage::shared(&root, Lab::plan().receivers(2)), 15_000_000, &[]))
    }

    /// Checks that the session succeeds.
    fn ends_well(self) -> (Ended, Vec<Ended>) {
        let source = self.source.succeeds(90);
        let receivers: Vec<Ended> =
            self.receivers.into_iter().map(|receiver| receiver.succeeds(20)).collect();
        assert!(self.stage.has("r0", &self.file) && self.stage.has("r1", &self.file));
        (source, receivers)
    }
}

fn warned(ended: &Ended, words: &str) -> usize {
    let is_named =
        |event: &&serde_json::Value| event["message"].as_str().is_some_and(|text| text.contains(words));
    ended.all("warning").filter(is_named).count()
}

/// Needs a kernel: an interface goes down.
#[test]
fn source_survives_ten_seconds_without_its_interface() {
    let Some(under) = OutageStage::of_two_hosts() else { return };
    down(under.stage.lab.sender());
    std::thread::sleep(Duration::from_secs(10));
    up(under.stage.lab.sender());
    let (source, receivers) = under.ends_well();
    assert_eq!(warned(&source, "eth0 is down"), 1, "{source:?}");
    assert_eq!(warned(&source, "the network is back after"), 1, "{source:?}");
    for receiver in receivers {
        assert_eq!(warned(&receiver, "the source has been silent"), 1, "{receiver:?}");
        assert_eq!(warned(&receiver, "data of the source arrives again"), 1, "{receiver:?}");
    }
}

/// Needs a kernel: an interface goes down.
#[test]
fn receiver_survives_ten_seconds_without_its_interface() {
    let Some(under) = OutageStage::of_two_hosts() else { return };
    down(under.stage.lab.receiver(0));
    std::thread::sleep(Duration::from_secs(10));
    up(under.stage.lab.receiver(0));
    let (source, receivers) = under.ends_well();
    assert_eq!(warned(&source, "r0 has been silent"), 1, "{source:?}");
    assert_eq!(warned(&receivers[0], "eth0 is down"), 1, "{:?}", receivers[0]);
    assert_eq!(warned(&receivers[0], "the network is back after"), 1, "{:?}", receivers[0]);
    assert_eq!(warned(&receivers[1], ""), 0, "{:?}", receivers[1]);
}

/// Needs a kernel: an interface is deleted.
#[test]
fn recreated_interfaces_are_detected_at_both_ends() {
    let Some(under) = OutageStage::of_two_hosts() else { return };
    let lab = &under.stage.lab;
    for node in [lab.receiver(1), lab.sender()] {
        let hardware = delete(node);
        std::thread::sleep(Duration::from_secs(2));
        make_again(lab, node, &hardware);
        std::thread::sleep(Duration::from_secs(1));
    }
    let (source, receivers) = under.ends_well();
    assert_eq!(warned(&source, "eth0 exists again"), 1, "{source:?}");
    assert_eq!(warned(&receivers[1], "eth0 exists again"), 1, "{:?}", receivers[1]);
}

/// Needs a kernel: an interface is deleted, and its memberships with it.
#[test]
fn layers_are_rejoined_on_a_recreated_interface() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan());
    let file = stage.file("image", 12_000_000);
    let mut receiver = stage.recv(0, "r0", &[]);
    let source = stage.send(&[&file], &["--cc", "rlc,base=1000000", "--expect", "1", "--max", "16M"]);
    receiver.prints("\"joined\":3", 30);
    let hardware = delete(stage.lab.receiver(0));
    std::thread::sleep(Duration::from_secs(1));
    make_again(&stage.lab, stage.lab.receiver(0), &hardware);
    let got = receiver.succeeds(90);
    source.succeeds(20);
    assert!(stage.has("r0", &file));
    let after = got.events.iter().skip_while(|event| !event.to_string().contains("exists again"));
    let joined =
        after.filter(|event| event["event"] == "layers").filter_map(|event| event["joined"].as_u64());
    assert!(joined.max() >= Some(3), "{got:?}");
}

/// Needs a kernel: an interface gets another address.
#[test]
fn receivers_follow_an_open_or_sealed_source_to_its_new_address() {
    for sealed in [false, true] {
        let Some(root) = require_root() else { return };
        let stage = Stage::shared(&root, Lab::plan().receivers(2));
        let key = stage.text("key");
        if sealed {
            Running::start(stage.lab.sender(), &["keygen", &key]).ends(5);
        }
        let more = ["--key", key.as_str()];
        let under = OutageStage::way(stage, 15_000_000, if sealed { &more } else { &[] });
        let (host, address) = (under.stage.lab.sender().namespace(), under.stage.lab.sender().ipv4());
        let other = "10.77.200.9";
        ip(host, &format!("address del {address}/16 dev eth0"));
        ip(host, &format!("address add {other}/16 broadcast + dev eth0"));
        let (source, receivers) = under.ends_well();
        assert_eq!(
            warned(&source, &format!("the session continues with the address {other} of eth0")),
            1,
            "{source:?}"
        );
        for receiver in receivers {
            assert_eq!(warned(&receiver, &format!("to {other}:")), 1, "{receiver:?}");
        }
    }
}

/// Needs a kernel: an interface gets another address.
#[test]
fn session_survives_a_new_ipv4_or_ipv6_address_of_a_receiver() {
    for group in ["239.255.70.9:5931", "[ff15::70:9]:5932"] {
        let Some(root) = require_root() else { return };
        let stage = Stage::shared(&root, Lab::plan().receivers(2)).with_group(group);
        let under = OutageStage::way(stage, 15_000_000, &[]);
        let node = under.stage.lab.receiver(0);
        let host = node.namespace();
        match group.starts_with('[') {
            true => {
                ip(host, &format!("address del {}/64 dev eth0", node.ipv6()));
                let mut segments = node.ipv6().segments();
                segments[7] = 0x9999;
                ip(host, &format!("address add {}/64 dev eth0 nodad", std::net::Ipv6Addr::from(segments)));
            }
            false => {
                ip(host, &format!("address del {}/16 dev eth0", node.ipv4()));
                ip(host, "address add 10.77.201.9/16 broadcast + dev eth0");
            }
        }
        let (_, receivers) = under.ends_well();
        assert_eq!(warned(&receivers[0], "the session continues with the address"), 1, "{:?}", receivers[0]);
    }
}

/// Needs a kernel: an interface goes down, and its IPv6 address with it.
#[test]
fn ipv6_session_survives_an_outage_of_its_source_interface() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2)).with_group("[ff15::70:9]:5933");
    let under = OutageStage::way(stage, 15_000_000, &[]);
    down(under.stage.lab.sender());
    std::thread::sleep(Duration::from_secs(3));
    up(under.stage.lab.sender());
    under.ends_well();
}

/// Needs a kernel: a bridge's ports go down.
#[test]
fn temporary_link_failure_does_not_end_the_session() {
    let Some(under) = OutageStage::of_two_hosts() else { return };
    let (bridge, port) = (under.stage.lab.bridge(), under.stage.lab.sender().port());
    ip(bridge, &format!("link set {port} down"));
    must(under.stage.lab.set_link(0, Link::Down));
    std::thread::sleep(Duration::from_secs(4));
    ip(bridge, &format!("link set {port} up"));
    must(under.stage.lab.set_link(0, Link::Up));
    under.ends_well();
}

/// Needs a kernel: interfaces go down.
#[test]
fn lasting_outage_ends_both_sides_after_the_idle_timeout() {
    let Some(root) = require_root() else { return };
    let under =
        OutageStage::way(Stage::shared(&root, Lab::plan().receivers(2)), 15_000_000, &["--timeout", "4"]);
    down(under.stage.lab.sender());
    down(under.stage.lab.receiver(0));
    let OutageStage { source, receivers, .. } = under;
    let source = source.ends(20);
    source.failed(3, "eth0 is down");
    assert!(source.message().contains("--timeout"), "{source:?}");
    let mut receivers = receivers.into_iter();
    receivers.next().expect("there are two").ends(10).failed(3, "eth0 is down");
    // The other receiver's network works, but its source is silent.
    receivers.next().expect("there are two").ends(10).failed(1, "the source has been silent for");
}

/// Needs a kernel: a bridge's port has a smaller MTU.
#[test]
fn mtu_black_hole_is_named_at_both_ends() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().receivers(1).offloads(Offloads::Off);
    let stage = Stage::shared(&root, plan);
    let file = stage.file("image", 2_000_000);
    // A bridge's port drops frames above its MTU without a report.
    ip(stage.lab.bridge(), &format!("link set {} mtu 1300", stage.lab.receiver(0).port()));
    let receiver = stage.recv(0, "r0", &["--timeout", "12"]);
    let source = stage.send(&[&file], &["--expect", "1", "--timeout", "12"]).ends(60);
    let receiver = receiver.ends(20);
    receiver.failed(1, "announcements arrive but no data");
    assert!(receiver.message().contains("--datagram 1200"), "{receiver:?}");
    assert_eq!(warned(&receiver, "packets (up to 1500 bytes each)"), 1, "{receiver:?}");
    source.failed(1, "no data reaches it");
    assert!(source.message().contains("--datagram 1200"), "{source:?}");
    assert_eq!(warned(&source, "packets of 149"), 1, "{source:?}");
    // Follows the advice.
    let receiver = stage.recv(0, "r0", &[]);
    stage.send(&[&file], &["--expect", "1", "--datagram", "1200"]).succeeds(30);
    receiver.succeeds(10);
    assert!(stage.has("r0", &file));
}

/// Needs a kernel: a route prohibits answers.
#[test]
fn error_of_a_source_without_answers_names_the_reverse_path() {
    let Some(root) = require_root() else { return };
    let under =
        OutageStage::way(Stage::shared(&root, Lab::plan().receivers(2)), 40_000_000, &["--timeout", "6"]);
    // Multicast needs no return path, but answers do.
    for node in under.stage.lab.receivers() {
        ip(node.namespace(), &format!("route add prohibit {}/32", under.stage.lab.sender().ipv4()));
    }
    let OutageStage { source, receivers, .. } = under;
    let source = source.ends(40);
    source.failed(1, "the reverse path");
    assert_eq!(source.number("verified"), 0.0, "{source:?}");
    for receiver in receivers {
        receiver.ends(20).failed(3, "packet filter");
    }
}

/// A source of PGM or ALC continues after an outage of its interface. Receivers identify such a source by its address.
///
/// Needs a kernel: an interface goes down.
#[test]
fn pgm_and_alc_sources_wait_for_their_interface() {
    let Some(root) = require_root() else { return };
    for (wire, more) in [
        ("pgm", ["--cc", "le-sbcc,rtt=0.005", "--max", "4M", "--join-timeout", "2"]),
        ("alc", ["--rate", "4M", "--repeat", "4", "--datagram", "1400"]),
    ] {
        let stage = Stage::shared(&root, Lab::plan());
        let file = stage.file("image", 2_000_000);
        let out = stage.text("r0");
        let common = ["--wire", wire, "--json", "--group", &stage.group];
        let mut receiver =
            Running::start(stage.lab.receiver(0), &[&["recv", "--out", &out], &common[..]].concat());
        receiver.prints("\"opened\"", 10);
        let mut source =
            Running::start(stage.lab.sender(), &[&["send", &file], &common[..], &more[..]].concat());
        source.prints("\"progress\"", 20);
        down(stage.lab.sender());
        std::thread::sleep(Duration::from_secs(2));
        up(stage.lab.sender());
        let (source, receiver) = (source.ends(60), receiver.ends(20));
        assert_eq!((source.code, receiver.code), (0, 0), "{source:?} {receiver:?}");
        assert_eq!(warned(&source, "eth0 is down"), 1, "{source:?}");
        assert_eq!(warned(&source, "the network is back after"), 1, "{source:?}");
        let files = must(std::fs::read_dir(&out)).flatten().map(|entry| entry.path());
        let got = files.filter(|path| path.is_file()).map(|path| must(std::fs::read(path)));
        assert!(got.eq([must(std::fs::read(&file))]), "{wire}: it is something else");
    }
}
