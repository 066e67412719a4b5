//! Runs the Wireshark dissector in tshark over every sample.

mod common;

use common::{SALT, SESSION, announce, from_receiver, from_source, key, receiver};
use faircast_wire::{Message, ReceiverCodec, SourceCodec, dissector_lua};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether tshark is installed. Without tshark these tests are skipped; with `CI=true` they fail.
fn has_tshark() -> bool {
    let found = Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "tshark must be installed with CI=true");
        eprintln!("skipped: tshark is not installed");
    }
    found
}

/// Returns a capture file (pcap, raw IPv4) with one UDP datagram for each packet.
fn capture(packets: &[Vec<u8>], port: u16) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_be_bytes());
    }
    for packet in packets {
        let (udp, ip) = (packet.len() + 8, packet.len() + 28);
        for word in [0, 0, ip as u32, ip as u32] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        let [high, low] = (ip as u16).to_be_bytes();
        file.extend_from_slice(&[0x45, 0, high, low, 0, 0, 0, 0, 1, 17, 0, 0, 10, 0, 0, 1, 239, 1, 2, 3]);
        for half in [40_000, port, udp as u16, 0] {
            file.extend_from_slice(&half.to_be_bytes());
        }
        file.extend_from_slice(packet);
    }
    file
}

/// Returns tshark's output for these packets.
fn dissected(name: &str, packets: &[Vec<u8>], port: u16, arguments: &[&str]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (script, file) = (folder.join(format!("{name}.lua")), folder.join(format!("{name}.pcap")));
    fs::write(&script, dissector_lua()).expect("the target folder can be written");
    fs::write(&file, capture(packets, port)).expect("the target folder can be written");
    let output = Command::new("tshark")
        .env("HOME", &folder)
        .args(["-X", &format!("lua_script:{}", text(&script)), "-r", text(&file)])
        .args(arguments)
        .output()
        .expect("tshark is here");
    let (printed, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !complaints.contains("Lua"), "{complaints}");
    assert!(!printed.contains("Lua Error"), "{printed}");
    printed.into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the target folder's path is UTF-8")
}

fn open_samples() -> Vec<Vec<u8>> {
    common::all().iter().map(|(_, message)| common::bytes_of(message)).collect()
}

fn sealed_samples() -> Vec<Vec<u8>> {
    let key = key();
    let mut source = SourceCodec::new(SESSION, Some(&key), SALT);
    let mut member = ReceiverCodec::new(std::slice::from_ref(&key), receiver(0x1122_3344), 0xb007);
    member.follow(SESSION);
    let mut announcement = Vec::new();
    source.encode(&mut announcement, &Message::Announce(announce()), 1_472).expect("it fits");
    member.open(&mut announcement, common::at()).expect("announced");
    let mut packets = Vec::new();
    for (name, message) in from_source() {
        let mut out = Vec::new();
        match &message {
            Message::Data(packet) => source.encode_data(&mut out, packet).expect(name),
            other => assert!(source.encode(&mut out, other, 1_472).is_ok()),
        }
        packets.push(out);
    }
    for (name, message) in from_receiver() {
        let mut out = Vec::new();
        member.encode(&mut out, SESSION, &message).expect(name);
        packets.push(out);
    }
    packets
}

#[test]
fn every_sample_is_shown_with_its_fields() {
    if !has_tshark() {
        return;
    }
    let packets = open_samples();
    let printed = dissected("open", &packets, 5_777, &["-V"]);
    assert!(!printed.contains("Malformed"), "{printed}");
    assert!(printed.matches("faircast multicast transfer").count() >= packets.len());
    for line in [
        "kind: data (1)",
        "mark: representative (1)",
        "mean: 1.25829e+07",
        "deviation: 786432",
        "rtt_max: 0.125",
        "rate: 2.51658e+07",
        "flags: 0x04 (repair)",
        "session: 0xfa1ca570",
        "block: 16909060",
        "symbol: 329223",
        "id: 0xa1b2c3d4",
        "slot: 168496141",
        "name: lab-server",
        "stream_len: 5000000000",
        "root: 74686520726f6f74",
        "scheduled: 2",
        "scheduled_symbols: 3",
        "dropped_id: 0xffffffff",
        "content: congested (1)",
        "cause: joining (4)",
        "level: 1.5e+06",
        "bitmap: 0xf00d0007",
        "echo_hold: 1234000",
        "needs: 2",
        "run: 90",
        "state: failed (3)",
        "loss: 0.25",
        "host: node-17",
        "source: 192.0.2.1:4000",
        "welcomed_nonce: 2571",
        "reason: another key (2)",
        "unix_secs: 1750000000",
    ] {
        assert!(printed.contains(line), "no {line:?} in:\n{printed}");
    }
}

#[test]
fn packets_on_another_port_are_recognised_by_the_heuristic() {
    if !has_tshark() {
        return;
    }
    let packets = open_samples();

    let printed = dissected(
        "guessed",
        &packets,
        50_123,
        &["--enable-heuristic", "faircast_udp", "-T", "fields", "-e", "faircast.kind"],
    );
    let kinds: Vec<_> = packets.iter().map(|packet| packet[2].to_string()).collect();
    assert_eq!(printed.lines().collect::<Vec<_>>(), kinds);
}

#[test]
fn dissector_port_is_a_preference() {
    if !has_tshark() {
        return;
    }
    let packets = open_samples();
    let printed = dissected(
        "preferred",
        &packets,
        50_124,
        &[
            "-o",
            "faircast.port:50124",
            "--disable-heuristic",
            "faircast_udp",
            "-T",
            "fields",
            "-e",
            "faircast.kind",
        ],
    );
    assert_eq!(printed.lines().filter(|line| !line.is_empty()).count(), packets.len(), "{printed}");
}

#[test]
fn sealed_packets_show_their_header_and_sealed_length() {
    if !has_tshark() {
        return;
    }
    let packets = sealed_samples();
    let printed = dissected("sealed", &packets, 5_777, &["-V"]);
    assert!(!printed.contains("Malformed"), "{printed}");
    assert!(!printed.contains("lab-server") && !printed.contains("node-17"));
    let open = packets.iter().filter(|packet| packet[2] == 10).count();
    assert_eq!(open, 1, "a wish to attach is never sealed");
    assert_eq!(printed.matches("sealed bytes: ").count(), packets.len() - open);
    assert!(printed.contains(&format!("key: 0x{}", key().id())));
    assert_eq!(printed.matches("boot: 0x000000000000b007").count(), from_receiver().len() - open);
}

#[test]
fn truncated_packets_are_marked_malformed() {
    if !has_tshark() {
        return;
    }
    let is_cut = |packet: &Vec<u8>| {
        let symbol = if packet[2] == 1 { common::SYMBOL.len() } else { 0 };
        packet[..packet.len() - symbol.min(packet.len().saturating_sub(30)) - 1].to_vec()
    };
    for (name, packets) in [("cut", open_samples()), ("cut-sealed", sealed_samples())] {
        let cut: Vec<_> = match name {
            "cut" => packets.iter().map(is_cut).collect(),
            _ => packets.iter().map(|packet| packet[..20].to_vec()).collect(),
        };
        let printed = dissected(name, &cut, 5_777, &["-T", "fields", "-e", "faircast.malformed"]);
        let marked = printed.lines().filter(|line| !line.is_empty()).count();
        assert_eq!(marked, cut.len(), "{name}: {printed}");
    }
}
