//! `faircast relay` between hosts: it relays sessions to other groups, repairs losses in these groups, sends feedback for its
//! children, and survives failures. With a relay key it cannot read the content.

use crate::kit::{FAIRCAST, Running, Stage, must, noise, print_line};
use crate::security::key;
use faircast_testkit::{Capture, Damage, Lab, Node, fields, require_root, run};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The content. The tests search for this text in packets, to find unencrypted packets.
const WORDS: &[u8] = b"plain words that nobody but members may read; ";

/// Returns the group behind the relay.
fn below(stage: &Stage) -> String {
    let above: SocketAddr = must(stage.group.parse());
    SocketAddr::from(([239, 255, 71, 9], above.port())).to_string()
}

/// Starts a relay on this host, which forwards sessions from the stage's group to the group downstream of the relay. Waits until
/// the relay listens.
fn relay(stage: &Stage, node: &Node, more: &[&str]) -> Running {
    let (control, below) = (stage.text("relay.sock"), below(stage));
    let place = ["relay", "--json", "--from", &stage.group, "--to", &below, "--control", &control];
    let mut relay = Running::start(node, &[&place[..], more].concat());
    relay.prints("\"opened\"", 20);
    relay
}

/// Starts a receiver of the group downstream of the relay.
fn child(stage: &Stage, at: usize, more: &[&str]) -> Running {
    let (host, out, group) = (format!("r{at}"), stage.text(&format!("r{at}")), below(stage));
    let place = ["recv", "--json", "--host", &host, "--out", &out, "--group", &group];
    let mut child = Running::start(stage.lab.receiver(at), &[&place[..], more].concat());
    child.prints("\"opened\"", 20);
    child
}

/// Returns the relay's status.
fn status(stage: &Stage, node: &Node) -> String {
    Running::relay_status(node, &stage.text("relay.sock"), &["--json"])
}

/// Returns the state that the live page of this process shows, once it has numbers.
fn page(node: &Node, running: &mut Running) -> Value {
    running.prints("\"event\":\"progress\"", 20);
    let printed = running.task.stdout();
    let (_, rest) = printed.split_once("\"url\":\"http://").expect("the page has an address");
    let (at, _) = rest.split_once('/').expect("the path");
    let ask = || -> std::io::Result<String> {
        let (mut stream, mut answer) = (TcpStream::connect(at)?, String::new());
        write!(stream, "GET /state HTTP/1.1\r\nHost: {at}\r\n\r\n")?;
        stream.read_to_string(&mut answer).map(|_| answer)
    };
    let answer = must(must(node.inside(ask)));
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    must(serde_json::from_str(body))
}

/// Needs a kernel: a relay is a process between two groups.
#[test]
fn relay_with_the_hop_key_serves_receivers_and_cannot_decrypt() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3).damage(0..2, Damage::loss(0.05)));
    let group_key = key(&stage, "lab.key");
    let hop_key = stage.text("relay.key");
    must(run(FAIRCAST, &["keygen", "--relay", &group_key, &hop_key], Duration::from_secs(10)));
    let file = stage.text("letter");
    must(std::fs::write(&file, WORDS.repeat(2_000_000 / WORDS.len())));
    let pcap = stage.path("all.pcap");
    let capture = must(Capture::start(stage.lab.receiver(2), "udp", &pcap));
    let relay = relay(&stage, stage.lab.receiver(2), &["--key", &hop_key]);
    let children: Vec<_> = (0..2).map(|at| child(&stage, at, &["--key", &group_key])).collect();
    let flags = ["--key", &group_key, "--expect", "2", "--cc", "le-sbcc", "--max", "8M"];
    let ended = stage.send(&[&file], &flags).succeeds(40);
    for child in children {
        child.succeeds(10);
    }
    assert_eq!((ended.number("receivers"), ended.number("verified")), (2.0, 2.0), "it speaks for both");
    assert!(ended.number("repair_ratio") < 1.02, "what is lost below is repaired there: {ended:?}");
    relay.crashes();
    must(capture.stop());
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
    let payloads = must(fields(&pcap, "udp", &["udp.payload"]));
    // Segmentation offload joins packets, more of them on a busy host, so their number varies. The content passes twice.
    let bytes: usize = payloads.iter().map(|row| row[0].len() / 2).sum();
    assert!(bytes > 4_000_000, "{bytes} bytes in {} packets", payloads.len());
    let words: String = WORDS[..20].iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(!payloads.iter().any(|row| row[0].contains(&words)), "a capture shows content");
}

/// Needs a kernel: three processes on a path, and directories of two hosts.
#[test]
fn hosts_behind_a_relay_get_only_the_changed_parts_of_a_tree() {
    const FILES: usize = 20;
    const LEN: usize = 100_000;
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    must(fs::create_dir(stage.path("tree")));
    (0..FILES).for_each(|n| drop(stage.file(&format!("tree/{n}"), LEN)));
    let relay = relay(&stage, stage.lab.receiver(2), &[]);
    let children = [0, 1].map(|at| child(&stage, at, &["--serve"]));
    let tree = stage.text("tree");
    let send = |more: &[&str]| {
        let options = ["--delta", "--expect", "2", "--max", "20M"];
        stage.send(&[&tree], &[&options, more].concat()).succeeds(60)
    };
    send(&[]);
    for n in 0..FILES {
        let path = stage.path(&format!("tree/{n}"));
        let mut content = must(fs::read(&path));
        content[LEN / 2..LEN / 2 + LEN / 100].copy_from_slice(&noise(&n.to_string(), LEN / 100));
        must(fs::write(&path, content));
    }
    let missing = send(&["--dry-run"]).done()["dry_run"]["needed_bytes"].as_f64().expect("a number");
    let size = (FILES * LEN) as f64;
    let sent = [send(&[]), send(&[])].map(|ended| ended.number("repair_ratio") * size);
    print_line(&format!("behind a relay: {missing} of {size} bytes are missing, {sent:?} were sent"));
    // The list of chunks is in the first block, which is sent whole.
    assert!(missing < 0.3 * size && sent[0] < 1.1 * missing, "{missing}, {sent:?}");
    assert!(sent[1] < 0.2 * size, "{sent:?} of the same tree");
    for (host, n) in [0, 1].into_iter().flat_map(|host| (0..FILES).map(move |n| (host, n))) {
        let got = must(fs::read(stage.path(&format!("r{host}/tree/{n}"))));
        assert!(got == must(fs::read(stage.path(&format!("tree/{n}")))), "r{host} has another {n}");
    }
    children.into_iter().chain([relay]).for_each(Running::crashes);
}

/// Needs a kernel: a relay's control socket, and pages of three processes.
#[test]
fn one_relay_serves_two_sessions_and_reports_both() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let files = [stage.file("first", 4_000_000), stage.file("second", 4_000_000)];
    let node = stage.lab.receiver(2);
    let mut relay = relay(&stage, node, &["--page"]);
    assert!(status(&stage, node).contains("\"sessions\":[]"));
    // Receivers select their session by its signature.
    let signers = ["one.sign", "two.sign"].map(|name| stage.text(name));
    for signer in &signers {
        must(run(FAIRCAST, &["keygen", "--sign", signer], Duration::from_secs(10)));
    }
    let mut children =
        [0, 1].map(|at| child(&stage, at, &["--page", "--verify-key", &format!("{}.pub", signers[at])]));
    let mut sources = [0, 1].map(|at| {
        let flags =
            ["--page", "--expect", "1", "--max", "8M", "--join-timeout", "20", "--sign-key", &signers[at]];
        stage.send(&[&files[at]], &flags)
    });
    relay.prints("\"relayed\":1,\"branch\":0,\"event\":\"joined\"", 20);
    let printed = status(&stage, node);
    children[0].reaches(0.3, 20);
    let pages = [
        page(stage.lab.sender(), &mut sources[0]),
        page(stage.lab.receiver(0), &mut children[0]),
        page(node, &mut relay),
    ];
    let ended: Vec<_> = children.into_iter().chain(sources).map(|running| running.succeeds(30)).collect();
    print_line(&printed);
    let [source, child, relayed] = pages;
    for (page, ended) in [(&source, &ended[2]), (&child, &ended[0])] {
        let shown = &page["sessions"][0]["progress"];
        let is_shown =
            |event: &Value| shown.as_object().is_some_and(|all| all.iter().all(|(k, v)| event[k] == *v));
        assert_eq!(ended.all("progress").filter(|event| is_shown(event)).count(), 1, "{page}: {ended:?}");
    }
    // The interface has carried the session. The other session is other traffic.
    let (traffic, rate) = (&source["sessions"][0]["traffic"], &source["sessions"][0]["progress"]["rate_bps"]);
    let [all, other, rate] = [&traffic["all_bps"], &traffic["other_bps"], rate].map(Value::as_f64);
    assert!(all > rate.map(|rate| 0.8 * rate) && other >= Some(0.0) && other <= all, "{source}");
    let states = ended[2].all("receivers").flat_map(|event| event["receivers"].as_array()).flatten();
    let shown = &source["sessions"][0]["receivers"][0];
    assert_eq!(states.filter(|state| *state == shown).take(1).count(), 1, "{shown}: {:?}", ended[2]);
    let all = relayed["sessions"].as_array().map_or(&[][..], Vec::as_slice);
    let branches = all.iter().filter(|one| one["branch"] == 0 && one["receivers"][0]["host"].is_string());
    let above =
        all.iter().filter(|one| one["branch"].is_null() && one["progress"]["rate_bps"].as_f64() > Some(0.0));
    assert_eq!((branches.count(), above.count()), (2, 2), "{relayed}");
    assert_eq!(printed.matches("\"cached_bytes\"").count(), 2, "{printed}");
    assert!(stage.has("r0", &files[0]) && stage.has("r1", &files[1]));
    relay.crashes();
}

/// Needs a kernel: a process is killed.
#[test]
fn restarted_relay_completes_its_session() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let file = stage.file("image", 10_000_000);
    let node = stage.lab.receiver(2);
    let first = relay(&stage, node, &[]);
    let mut children = [child(&stage, 0, &[]), child(&stage, 1, &[])];
    let source = stage.send(&[&file], &["--expect", "2", "--max", "16M"]);
    children[0].reaches(0.4, 20);
    first.crashes();
    std::thread::sleep(Duration::from_millis(500));
    let second = relay(&stage, node, &[]);
    for child in children {
        child.succeeds(60);
    }
    let ended = source.ends(90);
    print_line(&format!("relay killed at 40 %: {:?}", ended.done()));
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
    assert_eq!((ended.number("receivers"), ended.number("verified")), (2.0, 2.0), "{ended:?}");
    second.crashes();
}

/// Needs a kernel: a relay joins the groups of layers.
#[test]
fn relay_forwards_a_layered_session_at_one_rate() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3).damage(0..2, Damage::loss(0.01)));
    let file = stage.file("image", 3_000_000);
    let relay = relay(&stage, stage.lab.receiver(2), &[]);
    let children = [0, 1].map(|at| child(&stage, at, &[]));
    let flags = ["--expect", "2", "--cc", "rlc,base=8e6,layers=2"];
    let ended = stage.send(&[&file], &flags).succeeds(60);
    for child in children {
        child.succeeds(10);
    }
    print_line(&format!("{:?}", ended.done()));
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
    assert_eq!((ended.number("receivers"), ended.number("verified")), (2.0, 2.0));
    relay.crashes();
}

/// Needs a kernel: processes end with exit code 2 before they receive.
#[test]
fn unsupported_options_of_a_relay_are_refused() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(1));
    let (node, group) = (stage.lab.receiver(0), stage.group.clone());
    let refuses = |args: &[&str], code: i32, words: &str| {
        let mut all = vec!["relay"];
        all.extend(args);
        let ended = Running::start(node, &all).ends(10);
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.stderr.contains(words), "{} does not say {words:?}", ended.stderr);
    };
    refuses(&["--status", "--control", &stage.text("none.sock")], 2, "no relay answers");
    refuses(
        &["--from", &group, "--to", &group, "--control", &stage.text("a.sock")],
        2,
        "only to the interface on which they arrived",
    );
    refuses(&["--from", "nowhere0", "--to", &group, "--control", &stage.text("b.sock")], 2, "nowhere0");
    refuses(&["--from", &group, "--to", "10.0.0.7:80@lo"], 2, "not a multicast address");
    let nobody = format!("{}:5999", stage.lab.sender().ipv4());
    let args = ["recv", "--parent", &nobody, "--join-timeout", "4", "--out", &stage.text("out")];
    let alone = Running::start(node, &args).ends(10);
    assert_ne!(alone.code, 0, "{alone:?}");
    assert!(alone.stderr.contains(&format!("{nobody} does not answer")), "{}", alone.stderr);
    let group_key = key(&stage, "lab.key");
    refuses(
        &["--from", &group, "--to", &below(&stage), "--key", &group_key],
        2,
        "but a relay's key is expected",
    );
    let running = relay(&stage, node, &[]);
    let control = stage.text("relay.sock");
    refuses(&["--from", &group, "--to", &below(&stage), "--control", &control], 2, "listens");
    running.crashes();
}

/// Starts a relay that serves received sessions by unicast. Returns the relay, and its address.
fn serving(stage: &Stage, at: usize, name: &str, more: &[&str]) -> (Running, String) {
    let node = stage.lab.receiver(at);
    let (control, port) = (stage.text(name), "5778");
    let place = ["relay", "--json", "--listen", port, "--control", &control];
    let mut relay = Running::start(node, &[&place[..], more].concat());
    relay.prints("\"opened\"", 20);
    (relay, format!("{}:{port}", node.ipv4()))
}

/// Starts a receiver that is served by these parents.
fn fed(stage: &Stage, at: usize, parents: &[&str], more: &[&str]) -> Running {
    let (host, out) = (format!("r{at}"), stage.text(&format!("r{at}")));
    let mut args = vec!["recv", "--json", "--host", &host, "--out", &out];
    parents.iter().for_each(|parent| args.extend(["--parent", parent]));
    let mut child = Running::start(stage.lab.receiver(at), &[&args[..], more].concat());
    child.prints("\"opened\"", 20);
    child
}

/// Needs a kernel: hosts have no multicast route.
#[test]
fn hosts_without_multicast_are_served_by_unicast() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(4).damage(0..2, Damage::loss(0.02)));
    let group_key = key(&stage, "lab.key");
    let hop_key = stage.text("relay.key");
    must(run(FAIRCAST, &["keygen", "--relay", &group_key, &hop_key], Duration::from_secs(10)));
    let file = stage.file("image", 4_000_000);
    let (relay, parent) = serving(&stage, 3, "a.sock", &["--from", &stage.group, "--key", &hop_key]);
    let children = [0, 1].map(|at| fed(&stage, at, &[&parent], &["--key", &group_key]));
    let member = stage.recv(2, "r2", &["--key", &group_key]);
    let ended = stage.send(&[&file], &["--key", &group_key, "--expect", "3", "--max", "20M"]).succeeds(40);
    for ended in children.into_iter().chain([member]) {
        ended.succeeds(10);
    }
    relay.crashes();
    assert_eq!((ended.number("receivers"), ended.number("verified")), (3.0, 3.0), "{ended:?}");
    assert!(ended.number("repair_ratio") < 1.02, "losses below the relay are its own: {ended:?}");
    assert!(["r0", "r1", "r2"].iter().all(|host| stage.has(host, &file)));
}

/// Needs a kernel: a process is killed, and sites have no multicast between them.
#[test]
fn second_relay_replaces_a_killed_relay_between_two_sites() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(5));
    let file = stage.file("image", 10_000_000);
    // Two relays are at the source's site. One relay and two receivers are at the other site.
    let (first, one) = serving(&stage, 0, "a.sock", &["--from", &stage.group]);
    let (second, other) = serving(&stage, 1, "b.sock", &["--from", &stage.group]);
    let (control, below) = (stage.text("c.sock"), below(&stage));
    let args =
        ["relay", "--json", "--parent", &one, "--parent", &other, "--to", &below, "--control", &control];
    let mut far = Running::start(stage.lab.receiver(2), &args);
    far.prints("\"opened\"", 20);
    let mut children = [child(&stage, 3, &[]), child(&stage, 4, &[])];
    let source = stage.send(&[&file], &["--expect", "2", "--max", "16M"]);
    children[0].reaches(0.4, 20);
    first.crashes();
    for child in children {
        child.succeeds(60);
    }
    assert!(stage.has("r3", &file) && stage.has("r4", &file));
    let ended = source.succeeds(30);
    print_line(&format!("a relay between sites killed at 40 %: {:?}", ended.done()));
    assert_eq!((ended.number("receivers"), ended.number("verified")), (2.0, 2.0), "{ended:?}");
    second.crashes();
    far.crashes();
}
