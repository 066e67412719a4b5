//! Attacks of hosts without the key, and the duration of the attacked sessions.

use crate::kit::{Ended, Stage, must, noise, print_line};
use crate::security::key;
use faircast_core::rng::Rng;
use faircast_testkit::{Capture, Lab, Node, Offloads, fields, require_root};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const FILE: usize = 8_000_000;

/// Maximum rate of the source: slow enough for an attack during the session, and fast enough for a short test.
const RATE: &str = "20M";

/// Number of packets that an attacker sends.
const ATTACK: usize = 100_000;

/// Packets and targets of an attacker.
struct Attack {
    payloads: Vec<Vec<u8>>,
    /// Destinations: the group and the source's feedback port.
    to: [SocketAddr; 2],
}

/// Returns the ID of the session in the group. Any host can read this ID.
fn overheard(node: &Node, group: SocketAddr) -> [u8; 4] {
    let SocketAddr::V4(group) = group else { panic!("{group} is not of this lab") };
    let socket = must(node.inside(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, group.port())).expect("the port is free there");
        socket.join_multicast_v4(group.ip(), &node.ipv4()).expect("it has the address");
        socket
    }));
    let mut bytes = [0; 2048];
    must(socket.recv(&mut bytes));
    [bytes[4], bytes[5], bytes[6], bytes[7]]
}

/// Sends [`ATTACK`] packets, or fewer if `stop` is set. Returns the number of sent packets.
fn strike(node: &Node, attack: &Attack, stop: &AtomicBool) -> usize {
    let socket = must(node.inside(|| {
        let socket = UdpSocket::bind((node.ipv4(), 0)).expect("some port is free");
        socket.set_nonblocking(false).expect("a socket can block");
        socket
    }));
    let session = overheard(node, attack.to[0]);
    let mut rng = Rng::new(1, 1);
    let mut sent = 0;
    for number in 0..ATTACK {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut bytes = attack.payloads[number % attack.payloads.len()].clone();
        if let Some(number) = bytes.get_mut(4..8) {
            number.copy_from_slice(&session);
        }
        // A third of the packets are copies of captured packets. A third have one wrong bit. A third are random bytes after a
        // plausible beginning.
        match number % 3 {
            1 => {
                let at = (rng.unit() * bytes.len() as f64) as usize;
                bytes[at] ^= 1 << (number / 3 % 8);
            }
            2 => {
                let keep = (rng.unit() * 24.0) as usize;
                bytes.iter_mut().skip(keep).for_each(|byte| *byte = (rng.unit() * 256.0) as u8);
            }
            _ => {}
        }
        sent += usize::from(socket.send_to(&bytes, attack.to[number % 2]).is_ok());
        if number % 50 == 49 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    sent
}

/// Sends a file, with or without an attack on the group and on the source's feedback port.
fn transfer(
    stage: &Stage,
    file: &str,
    flags: &[&str],
    attack: Option<&[Vec<u8>]>,
) -> (Ended, Vec<Ended>, usize) {
    let receivers: Vec<_> = (0..2).map(|at| stage.recv(at, &format!("r{at}"), flags)).collect();
    let args: Vec<_> = ["--max", RATE].iter().chain(flags).copied().collect();
    let mut source = stage.send(&[file], &args);
    source.prints("\"joined\"", 10);
    let feedback_port = |task: &faircast_testkit::Task| {
        let shown = must(stage.lab.sender().run("ss", &["-ulnpH"], Duration::from_secs(5))).stdout;
        let line = shown.lines().find(|line| line.contains(&format!("pid={},", task.pid())));
        let local = line.and_then(|line| line.split_whitespace().nth(3)).expect("the source has a socket");
        local.rsplit(':').next().and_then(|port| port.parse().ok()).expect("it has a port")
    };
    let port: u16 = feedback_port(&source.task);
    let to = [must(stage.group.parse()), SocketAddr::new(stage.lab.sender().address(), port)];
    let stop = AtomicBool::new(false);
    let (source, sent) = std::thread::scope(|scope| {
        let attacker = attack.map(|payloads| {
            let attack = Attack { payloads: payloads.to_vec(), to };
            let (node, stop) = (stage.lab.receiver(2), &stop);
            scope.spawn(move || strike(node, &attack, stop))
        });
        let source = source.succeeds(40);
        stop.store(true, Ordering::Relaxed);
        (source, attacker.map_or(0, |thread| thread.join().expect("the attacker does not panic")))
    });
    let receivers: Vec<_> = receivers.into_iter().map(|receiver| receiver.succeeds(10)).collect();
    for host in ["r0", "r1"] {
        assert!(stage.has(host, file), "{host} has other bytes");
        must(std::fs::remove_dir_all(stage.path(host)));
    }
    (source, receivers, sent)
}

/// Returns the payloads of all UDP packets in a capture.
fn captured(file: &std::path::Path) -> Vec<Vec<u8>> {
    let rows = must(fields(file, "udp", &["udp.payload"]));
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("hexadecimal"), 16);
    let bytes =
        |row: &Vec<String>| row[0].as_bytes().chunks(2).map(|pair| byte(pair).expect("hex")).collect();
    rows.iter().filter(|row| !row[0].is_empty()).map(bytes).collect()
}

/// Returns the time at which a source had sent all content, accurate to a second. The time of the session's end would be less
/// accurate, because receivers may write to a busy disk.
fn sent_after(source: &Ended) -> f64 {
    let is_sent = |progress: &&Value| progress["bytes"] == progress["total_bytes"];
    let seconds = source.all("progress").find(is_sent).and_then(|progress| progress["seconds"].as_f64());
    seconds.unwrap_or_else(|| source.number("seconds"))
}

/// Needs a kernel: a second host has to send on the same link.
#[test]
fn outsider_cannot_change_slow_or_stop_a_sealed_session() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan().receivers(3).offloads(Offloads::Off));
    let file = stage.file("image", FILE);
    let key = key(&stage, "lab.key");
    let flags = ["--key", key.as_str()];
    // The attacker gets a capture of the feedback. It could not receive feedback itself: feedback is unicast, and a bridge
    // forwards it to one port only.
    let pcap = stage.path("all.pcap");
    let capture = must(Capture::start(stage.lab.sender(), "udp", &pcap));
    let (quiet, ..) = transfer(&stage, &file, &flags, None);
    let payloads = captured(&must(capture.stop()));
    assert!(payloads.len() > 5000, "only {} packets were captured", payloads.len());
    let (attacked, receivers, sent) = transfer(&stage, &file, &flags, Some(&payloads));
    let mut refused = vec![attacked.number("refused")];
    // A busy host drops some of the attack's packets in its socket buffer.
    refused.extend(receivers.iter().map(|ended| ended.number("refused") + ended.number("dropped_local")));
    let (before, after) = (sent_after(&quiet), sent_after(&attacked));
    print_line(&format!(
        "sealed, {sent} forged and replayed packets: {after:.2} s, {before:.2} s without, refused {refused:?}"
    ));
    assert!(sent > 20_000, "the attack was over before it began: {sent}");
    // Half of the attack's packets were sent to the group, half to the source.
    assert!(refused.iter().all(|refused| *refused > 0.4 * sent as f64), "{refused:?} of {sent}");
    // A source that accepted forged packets would take many times as long. The margin allows for a busy machine.
    assert!(after < before * 1.5 + 1.5, "{after} s, {before} s without the attack: {attacked:?}");
    assert!(attacked.number("repair_ratio") < quiet.number("repair_ratio") + 0.05, "{attacked:?}");
}

/// Needs a kernel: a second host has to repeat packets on the same link.
#[test]
fn outsider_cannot_replay_packets_of_the_current_session() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan().receivers(3).offloads(Offloads::Off));
    let file = stage.file("image", FILE);
    let key = key(&stage, "lab.key");
    let receivers: Vec<_> = (0..2).map(|at| stage.recv(at, &format!("r{at}"), &["--key", &key])).collect();
    let eavesdropper = must(stage.lab.receiver(2).inside(|| {
        let (address, port) = stage.group.rsplit_once(':').expect("a group has a port");
        let (address, port) = (address.parse().expect("IPv4"), port.parse().expect("a number"));
        let socket =
            UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, port)).expect("the port is free there");
        socket.join_multicast_v4(&address, &stage.lab.receiver(2).ipv4()).expect("it has the address");
        socket.set_read_timeout(Some(Duration::from_millis(500))).expect("not zero");
        (socket, (address, port))
    }));
    let source = stage.send(&[&file], &["--max", RATE, "--key", &key]);
    let (socket, to) = eavesdropper;
    let mut bytes = vec![0; 2048];
    let mut replayed = 0;
    // Repeats every packet immediately from another address. The repeated packets also arrive at this socket, and are skipped.
    while let Ok((len, from)) = socket.recv_from(&mut bytes) {
        if from.ip() == stage.lab.sender().address() {
            replayed += usize::from(socket.send_to(&bytes[..len], to).is_ok());
        }
    }
    let source = source.succeeds(30);
    let ended: Vec<_> = receivers.into_iter().map(|receiver| receiver.succeeds(10)).collect();
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
    print_line(&format!("sealed, {replayed} packets replayed at once: {:.2} s", source.number("seconds")));
    assert!(replayed > 3000, "{replayed}");
    assert!(ended.iter().all(|r| r.number("refused") > 0.9 * replayed as f64), "{replayed}: {ended:?}");
    let due = FILE as f64 * 8.0 / 20e6;
    assert!(source.number("seconds") < due * 1.25 + 0.5, "{source:?}");
}

/// Needs a kernel: a second host has to send on the same link.
#[test]
fn random_packets_do_not_slow_an_unsealed_session() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan().receivers(3).offloads(Offloads::Off));
    let file = stage.file("image", FILE);
    let (quiet, ..) = transfer(&stage, &file, &[], None);
    let payloads: Vec<_> = (0..500).map(|n| noise(&n.to_string(), 1 + n * 7 % 1450)).collect();
    let (attacked, receivers, sent) = transfer(&stage, &file, &[], Some(&payloads));
    let refused: Vec<_> = receivers.iter().chain([&attacked]).map(|ended| ended.number("refused")).collect();
    let (before, after) = (quiet.number("seconds"), attacked.number("seconds"));
    print_line(&format!(
        "open, {sent} packets of noise: {after:.2} s, {before:.2} s without, refused {refused:?}"
    ));
    assert!(sent > 20_000, "the attack was over before it began: {sent}");
    assert!(refused.iter().all(|refused| *refused > 0.4 * sent as f64), "{refused:?} of {sent}");
    // A source that accepted forged packets would take many times as long. The margin allows for a busy machine.
    assert!(after < before * 1.5 + 0.5, "{after} s, {before} s without the attack: {attacked:?}");
}
