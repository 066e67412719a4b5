//! Sessions with signed content.

use crate::kit::{FAIRCAST, Running, Stage, must, print_line};
use crate::overwrite::ear;
use crate::security;
use faircast_core::packet::{Data, Flags, Layer, Payload, ReceiverId, Seq};
use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_testkit::{Damage, Lab, Node, require_root, run};
use faircast_transport::object::{Geometry, seal_block};
use faircast_wire::{
    Announce, DataPacket, Form, GroupKey, Kind, Message, ReceiverCodec, SourceCodec, data_header_len, peek,
};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const DATAGRAM: usize = 1_000;

/// Creates a key pair. Returns the paths of the private and of the public key.
fn pair(stage: &Stage, name: &str) -> (String, String) {
    let path = stage.text(name);
    must(run(FAIRCAST, &["keygen", "--sign", &path], Duration::from_secs(10)));
    (path.clone(), format!("{path}.pub"))
}

/// Opens a socket on a host, with the address of another host. The host answers no ARP requests for this address.
fn mouth(node: &Node, as_if: SocketAddr) -> UdpSocket {
    let script = format!(
        "dev=$(ip -o -4 addr show scope global | awk '{{print $2; exit}}' | cut -d@ -f1) && \
         echo 8 > /proc/sys/net/ipv4/conf/all/arp_ignore && ip addr add {}/32 dev $dev",
        as_if.ip()
    );
    let done = must(node.run("sh", &["-c", &script], Duration::from_secs(5)));
    assert!(done.status.success(), "{}", done.stderr);
    must(node.inside(|| UdpSocket::bind(as_if).expect("the address is there, and nobody listens")))
}

/// State of a group member that forges packets of the source.
struct Forger {
    codec: SourceCodec,
    announced: Announce,
    from: SocketAddr,
}

impl Forger {
    /// Waits for the announcement of the session in the group, and decrypts it with the group key.
    fn overhears(ear: &UdpSocket, key: &GroupKey) -> Forger {
        let mut codec =
            ReceiverCodec::new(std::slice::from_ref(key), ReceiverId::new(0x6666).expect("not zero"), 1);
        let mut bytes = vec![0; 2048];
        loop {
            let (len, from) = must(ear.recv_from(&mut bytes));
            if let Ok((session, Message::Announce(announced))) = codec.open(&mut bytes[..len], from) {
                let mut codec = SourceCodec::new(session, Some(key), announced.salt);
                // Encoding the announcement configures the codec with the numbering of blocks. The packet is not sent.
                must(codec.encode(&mut Vec::new(), &Message::Announce(announced), 1_472));
                return Forger { codec, announced, from };
            }
        }
    }

    fn geometry(&self) -> Geometry {
        let Announce { stream_len, manifest_len, symbol_size, symbols_per_block, .. } = self.announced;
        Geometry { stream_len, manifest_len, symbol_size, symbols_per_block }
    }

    /// Returns a data packet with the packet number `seq` and forged content. It contains the only symbol of the last block.
    fn last_block(&mut self, seq: u64) -> Vec<u8> {
        let geometry = self.geometry();
        let block = geometry.blocks().expect("a file has a length") - 1;
        let mut bytes = vec![0x66; geometry.block_len(block) as usize];
        let (symbols, _) = seal_block(&mut bytes, geometry.symbol_size);
        assert_eq!(symbols, 1, "the file was cut to that");
        let scheme: Scheme = "ormcc".parse().expect("the scheme is there");
        let data = Data {
            seq: Seq(seq),
            sent_at: Time::ZERO,
            rate: 0.0,
            payload: Payload { block, symbol: 0 },
            flags: Flags::default(),
            signal: Default::default(),
            mark: scheme.mark(),
        };
        let mut out = Vec::new();
        let packet = DataPacket { data, layer: Layer(0), symbols, payload: &bytes };
        must(self.codec.encode_data(&mut out, &packet));
        out
    }
}

/// Writes a file whose last block has one symbol.
fn file_with_a_short_end(stage: &Stage) -> String {
    let scheme: Scheme = "ormcc".parse().expect("the scheme is there");
    let symbol = (DATAGRAM - data_header_len(&scheme.mark(), Form::Sealed)) / 8 * 8;
    stage.file("image", 20 * (256 * symbol - 36) + 200)
}

/// Needs a kernel: a second host with the key has to send on the same link.
#[test]
fn forged_block_deceives_only_receivers_without_a_public_key() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(4));
    let file = file_with_a_short_end(&stage);
    let group_key = security::key(&stage, "lab.key");
    let (private, public) = pair(&stage, "lab.sign");
    let careful = stage.recv(0, "r0", &["--key", &group_key, "--verify-key", &public]);
    let careless = stage.recv(1, "r1", &["--key", &group_key]);
    let ear = ear(stage.lab.receiver(2), &stage.group);
    let datagram = DATAGRAM.to_string();
    let flags = [
        "--key",
        &group_key,
        "--sign-key",
        &private,
        "--expect",
        "2",
        "--max",
        "10M",
        "--datagram",
        &datagram,
    ];
    let source = stage.send(&[&file], &flags);
    let text = must(std::fs::read_to_string(&group_key));
    let key: GroupKey = must(text.parse::<faircast_wire::KeyRing>()).first().clone();
    let mut forger = Forger::overhears(&ear, &key);
    let mouth = mouth(stage.lab.receiver(3), forger.from);
    let to: SocketAddr = must(stage.group.parse());
    let (mut bytes, mut forged) = (vec![0; 2048], 0);
    let end = Instant::now() + Duration::from_secs(20);
    while forged < 30 && Instant::now() < end {
        let (len, _) = must(ear.recv_from(&mut bytes));
        let Ok(header) = peek(&bytes[..len]) else { continue };
        // The forged packet must arrive before the packet with the real block, and needs a packet number that the source will use
        // soon. On a busy machine, most forged packets arrive too late.
        if header.kind == Kind::Data && header.seq > 50 * (forged + 1) {
            must(mouth.send_to(&forger.last_block(u64::from(header.seq) + 20), to));
            forged += 1;
        }
    }
    let source = source.succeeds(60);
    let (careful, careless) = (careful.succeeds(20), careless.succeeds(20));
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
    assert_eq!(careful.number("refetched_bytes"), 0.0, "{careful:?}");
    assert!(careful.number("forged_blocks") >= 1.0, "{careful:?}");
    assert!(careless.number("refetched_bytes") > 1e6, "it found out at the end: {careless:?}");
    print_line(&format!(
        "a member forged a block: {} left out with the public key, {} B fetched again without, {:.1} s",
        careful.number("forged_blocks"),
        careless.number("refetched_bytes"),
        source.number("seconds")
    ));
}

/// Needs a kernel: processes with keys in files.
#[test]
fn receiver_with_a_public_key_refuses_unverified_content() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(1));
    let file = stage.file("image", 1_000_000);
    let ((private, public), (other, _)) = (pair(&stage, "lab.sign"), pair(&stage, "other.sign"));
    for (flags, words) in [(vec![], "not signed"), (vec!["--sign-key", other.as_str()], "another key")] {
        let careful = stage.recv(0, "r0", &["--verify-key", &public, "--join-timeout", "5"]);
        let flags = [&flags[..], &["--join-timeout", "4"]].concat();
        stage.send(&[&file], &flags).ends(20).failed(1, "no receiver joined");
        careful.ends(10).failed(1, words);
    }
    let careful = stage.recv(0, "r0", &["--verify-key", &public]);
    stage.send(&[&file], &["--sign-key", &private]).succeeds(20);
    careful.succeeds(10);
    assert!(stage.has("r0", &file), "without a group's key, too");
    let layers = ["stream", "--json", "--no-key", "--cc", "rlc", "--layer", &file, "--layer", &file];
    let refused = Running::start(stage.lab.sender(), &[&layers[..], &["--sign-key", &private]].concat());
    refused.ends(10).failed(2, "cannot be signed");
}

/// Needs a kernel: pipes between processes.
#[test]
fn piped_content_and_a_live_stream_can_be_signed() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().damage([0], Damage::loss(0.01)));
    let (private, public) = pair(&stage, "lab.sign");
    let file = stage.file("tar", 5_000_000);
    for (command, copy) in [("send - --name tar", "sent"), ("stream --history 5", "streamed")] {
        let copy = stage.text(copy);
        let group = &stage.group;
        let listen =
            format!("{FAIRCAST} recv --stdout --quiet --verify-key {public} --group {group} > {copy}");
        let receiver = Running::shell(stage.lab.receiver(0), &listen);
        let line = format!(
            "(sleep 1; cat {file}; sleep 1) | {FAIRCAST} {command} --sign-key {private} --no-key --json --expect 1 --max 20M --group {group}"
        );
        Running::shell(stage.lab.sender(), &line).succeeds(40);
        assert_eq!(receiver.ends(10).code, 0, "{command}");
        assert!(must(std::fs::read(copy)) == must(std::fs::read(&file)), "{command}: other bytes came out");
    }
}
