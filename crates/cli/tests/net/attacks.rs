//! Attacks of outsiders with recorded and forged packets: replay, false announcements, impersonation.

use crate::kit::{Running, Stage, must, print_line};
use crate::security::key;
use faircast_core::packet::{Cause, Echo, Layer, ReceiverId, Report, ReportContent, Seq, SessionId};
use faircast_core::schemes::{CATALOGUE, LayerRates};
use faircast_core::time::Span;
use faircast_testkit::{Lab, Node, Root, require_root};
use faircast_wire::{
    Announce, Kind, Member, MemberState, Message, Name, Need, Newest, ReceiverCodec, Request, Words, encode,
    parse, peek,
};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Maximum rate of the source: slow enough for an attack during the session, and fast enough for a short test.
const RATE: &str = "10M";

/// Index of the outsider's host, which is the last receiver of the lab.
const OUTSIDER: usize = 2;

/// A session that takes some seconds, and the data that is needed to forge its packets.
struct Overheard {
    session: SessionId,
    source: SocketAddr,
    announce: Announce,
    /// Receivers that have joined, as the source lists them.
    members: Vec<ReceiverId>,
}

fn group_of(stage: &Stage) -> SocketAddr {
    must(stage.group.parse())
}

/// Opens a socket on a host. The socket receives the group and can send to it.
fn listener(stage: &Stage, node: &Node) -> UdpSocket {
    let SocketAddr::V4(group) = group_of(stage) else { panic!("these labs speak IPv4") };
    must(node.inside(|| {
        let socket = bind_soon((Ipv4Addr::UNSPECIFIED, group.port()).into());
        socket.join_multicast_v4(group.ip(), &node.ipv4()).expect("it has the address");
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("not zero");
        socket
    }))
}

/// Opens a socket at this address and port. Retries while the port is in use: a process that another test forks holds inherited
/// sockets until it executes its program.
fn bind_soon(place: SocketAddr) -> UdpSocket {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        match UdpSocket::bind(place) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(10));
            }
            bound => return bound.expect("the port is free there"),
        }
    }
}

/// Opens a socket on a host with the given address and port.
fn bound(node: &Node, address: SocketAddr) -> UdpSocket {
    must(node.inside(|| {
        let socket = bind_soon(address);
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("not zero");
        socket
    }))
}

/// Returns all packets that are received while `goes_on` returns `true`.
fn record(socket: &UdpSocket, mut goes_on: impl FnMut() -> bool) -> Vec<(SocketAddr, Vec<u8>)> {
    let (mut recorded, mut bytes) = (Vec::new(), [0; 2048]);
    while goes_on() {
        while let Ok((len, from)) = socket.recv_from(&mut bytes) {
            recorded.push((from, bytes[..len].to_vec()));
        }
    }
    recorded
}

/// Receives packets of a session without a key until an announcement and the IDs of `members` members are known.
fn overhear(socket: &UdpSocket, members: usize) -> Overheard {
    let (mut announced, mut heard, mut bytes) = (None, Vec::new(), [0; 2048]);
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        assert!(Instant::now() < end, "no session with {members} members: {announced:?} {heard:?}");
        let Ok((len, from)) = socket.recv_from(&mut bytes) else { continue };
        match parse(&bytes[..len], &Newest::default()) {
            Ok((header, Message::Announce(announce))) => announced = Some((header.session, from, announce)),
            Ok((_, Message::Status(status))) => {
                for welcome in status.welcomed {
                    if !heard.contains(&welcome.id) {
                        heard.push(welcome.id);
                    }
                }
            }
            _ => {}
        }
        if let Some((session, source, announce)) = announced
            && heard.len() >= members
        {
            return Overheard { session, source, announce, members: heard };
        }
    }
}

fn stage_with_an_outsider(root: &Root) -> Stage {
    Stage::shared(root, Lab::plan().receivers(3))
}

/// A complete recorded session is replayed from the source's own address, after a newer session.
///
/// Needs a kernel: a socket takes the address and port of a source that has ended.
#[test]
fn replayed_session_does_not_restore_old_content() {
    let Some(root) = require_root() else { return };
    for is_sealed in [true, false] {
        let stage = stage_with_an_outsider(&root);
        let key = key(&stage, "lab.key");
        let flags: &[&str] = if is_sealed { &["--key", &key] } else { &[] };
        let outsider = stage.lab.receiver(OUTSIDER);
        let ear = listener(&stage, outsider);
        let image = stage.file("image", 12_000);
        let recv = |wait: &str| stage.recv(0, "r0", &[&["--join-timeout", wait], flags].concat());
        let first = recv("20");
        let mut source = stage.send(&[&image], &[&["--expect", "1"], flags].concat());
        let recorded = record(&ear, || source.task.is_running());
        source.succeeds(20);
        first.succeeds(5);
        let (place, _) = recorded[0];
        assert!(recorded.len() > 15 && recorded.iter().all(|(from, _)| *from == place), "{}", recorded.len());
        must(std::fs::write(stage.path("image"), crate::kit::noise("the second version", 12_000)));
        let second = recv("20");
        stage.send(&[&image], &[&["--expect", "1"], flags].concat()).succeeds(20);
        second.succeeds(5);
        assert!(stage.has("r0", &image));
        // The source has ended, and the outsider takes its address.
        let restarted = recv("6");
        let IpAddr::V4(address) = place.ip() else { panic!("these labs speak IPv4") };
        let node = stage.lab.sender();
        let ip = |on: &Node, args: &[&str]| must(on.run("ip", args, Duration::from_secs(5)));
        ip(node, &["link", "set", "eth0", "down"]);
        ip(outsider, &["addr", "add", &format!("{address}/16"), "dev", "eth0"]);
        ip(stage.lab.receiver(0), &["neigh", "flush", "dev", "eth0"]);
        drop(ear); // it uses the group's port, which the source also used
        let mouth = bound(outsider, place);
        must(must(outsider.inside(|| mouth.set_multicast_ttl_v4(1))));
        for _ in 0..4 {
            for (_, bytes) in &recorded {
                must(mouth.send_to(bytes, group_of(&stage)));
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let mut answers = 0;
        while mouth.recv_from(&mut [0; 2048]).is_ok() {
            answers += 1;
        }
        print_line(&format!("{} packets replayed four times, {answers} answers", recorded.len()));
        assert!((1..=7).contains(&answers), "{answers}: it asks, and only now and then");
        restarted.ends(20).failed(1, "does not answer");
        assert!(stage.has("r0", &image), "the older content is back");
    }
}

/// One recorded announcement is replayed from another address to receivers that search for a session.
///
/// Needs a kernel: a second host has to repeat packets from its own address.
#[test]
fn replayed_announcement_does_not_capture_receivers() {
    let Some(root) = require_root() else { return };
    let stage = stage_with_an_outsider(&root);
    let key = key(&stage, "lab.key");
    let file = stage.file("image", 4_000_000);
    for flags in [&["--key", key.as_str()][..], &[]] {
        let ear = listener(&stage, stage.lab.receiver(OUTSIDER));
        let early = stage.recv(0, "r0", flags);
        let mut source =
            stage.send(&[&file], &[&["--expect", "2", "--join-timeout", "3", "--max", RATE], flags].concat());
        source.prints("\"joined\"", 10);
        let mut announcement = Vec::new();
        while announcement.is_empty() {
            let mut bytes = [0; 2048];
            if let Ok((len, _)) = ear.recv_from(&mut bytes)
                && peek(&bytes[..len]).is_ok_and(|header| header.kind == faircast_wire::Kind::Announce)
            {
                announcement = bytes[..len].to_vec();
            }
        }
        // At first, the late joiner receives only the replayed announcement.
        let late = stage.recv(1, "r1", flags);
        for _ in 0..20 {
            must(ear.send_to(&announcement, group_of(&stage)));
            std::thread::sleep(Duration::from_millis(10));
        }
        source.succeeds(30);
        early.succeeds(10);
        let ended = late.succeeds(10);
        let from = ended.all("joined").next().expect("it has joined");
        assert!(
            from["address"].as_str().is_some_and(|at| at.starts_with(&stage.lab.sender().ipv4().to_string()))
        );
        assert!(stage.has("r0", &file) && stage.has("r1", &file));
        for host in ["r0", "r1"] {
            must(std::fs::remove_dir_all(stage.path(host)));
        }
    }
}

/// A host forges an announcement with its own address. It receives only a few packets, and no receiver joins.
///
/// Needs a kernel: a second host has to send packets from its own address.
#[test]
fn forged_announcement_gets_few_packets_and_no_receiver() {
    let Some(root) = require_root() else { return };
    let stage = stage_with_an_outsider(&root);
    let outsider = stage.lab.receiver(OUTSIDER);
    let file = stage.file("image", 4_000_000);
    let ear = listener(&stage, outsider);
    let first = stage.recv(0, "r0", &[]);
    let source = stage.send(&[&file], &["--expect", "1", "--max", RATE]);
    let heard = overhear(&ear, 1);
    let mouth = bound(outsider, SocketAddr::from((outsider.ipv4(), 0)));
    let place = must(mouth.local_addr());
    let announce = Announce {
        salt: [7; 16],
        source: place,
        parent: place,
        started: heard.announce.started + 1,
        unix_secs: heard.announce.unix_secs + 1,
        ..heard.announce
    };
    let idle = stage.recv(1, "r1", &["--join-timeout", "12"]);
    let mut answers = [0; 2];
    let end = Instant::now() + Duration::from_secs(5);
    let mut seq = 0;
    while Instant::now() < end {
        let mut bytes = Vec::new();
        must(
            encode(&mut bytes, SessionId(heard.session.0 ^ 1), seq, &Message::Announce(announce), 1_000)
                .map(drop),
        );
        seq += 1;
        must(mouth.send_to(&bytes, group_of(&stage)));
        while let Ok((_, from)) = mouth.recv_from(&mut [0; 2048]) {
            answers[usize::from(from.ip() == stage.lab.receiver(1).address())] += 1;
        }
    }
    print_line(&format!("answers to a made-up source within 5 s: {answers:?}"));
    assert!(answers[0] <= 2, "a receiver that is served says at most that it is busy: {answers:?}");
    assert!((0..=7).contains(&answers[1]), "{answers:?}");
    source.succeeds(30);
    first.succeeds(10);
    assert!(stage.has("r0", &file));
    drop(idle);
}

fn member_of(from: ReceiverId, state: MemberState) -> Message<'static> {
    Message::Member(Member {
        from,
        nonce: 0,
        state,
        reason: 0,
        receivers: 1,
        done: 0,
        verified_bytes: u64::MAX >> 1,
        resumed_bytes: 0,
        blocks_missing: 0,
        rate: 0.0,
        loss: 0.0,
        dropped_local: 0,
        unwritten_bytes: 0,
        activity: faircast_wire::Activity::Network,
        percent: 0,
        echo: Echo { seq: Seq(1), hold: Span::ZERO },
        host: Name::clipped("somebody"),
        why: Words::default(),
    })
}

/// A host receives the packets of the group, but not the feedback of the receivers. It sends packets in the names of receivers.
///
/// Needs a kernel: a second host has to send on the same link.
#[test]
fn forged_completions_and_reports_of_a_receiver_are_ignored() {
    let Some(root) = require_root() else { return };
    let stage = stage_with_an_outsider(&root);
    let outsider = stage.lab.receiver(OUTSIDER);
    let file = stage.file("image", 6_000_000);
    let ear = listener(&stage, outsider);
    let receivers: Vec<Running> = (0..2).map(|at| stage.recv(at, &format!("r{at}"), &[])).collect();
    let mut source = stage.send(&[&file], &["--expect", "2", "--min", "8M", "--max", RATE]);
    let heard = overhear(&ear, 2);
    source.reaches(0.1, 20);
    let mouth = bound(outsider, SocketAddr::from((outsider.ipv4(), 0)));
    let say = |codec: &mut ReceiverCodec, message: &Message<'_>| {
        let mut bytes = Vec::new();
        must(codec.encode(&mut bytes, heard.session, message).map(drop));
        must(mouth.send_to(&bytes, heard.source));
    };
    let echo = Echo { seq: Seq(1), hold: Span::ZERO };
    for id in &heard.members {
        let mut codec = ReceiverCodec::new(&[], *id, 9);
        codec.follow(heard.session);
        for _ in 0..13 {
            say(&mut codec, &member_of(*id, MemberState::Done));
            let content = ReportContent::Congested { echo, level: 1e3, mean: 1e3, cause: Cause::Loss };
            say(&mut codec, &Message::Report(Report { from: *id, layer: Layer(0), content }));
        }
    }
    let ended = source.succeeds(30);
    assert_eq!((ended.number("receivers"), ended.number("verified")), (2.0, 2.0));
    assert!(ended.done()["refused_by"]["sender"].as_u64() >= Some(52), "{ended:?}");
    assert!(ended.number("seconds") > 3.0, "it was not cut short: {ended:?}");
    for receiver in receivers {
        receiver.succeeds(10);
    }
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
}

/// A host that has not joined sends small forged requests. The requests together are for many times the size of the content.
///
/// Needs a kernel: a second host has to send on the same link.
#[test]
fn forged_requests_cause_bounded_repairs() {
    let Some(root) = require_root() else { return };
    let stage = stage_with_an_outsider(&root);
    let outsider = stage.lab.receiver(OUTSIDER);
    let file = stage.file("image", 6_000_000);
    let ear = listener(&stage, outsider);
    let receiver = stage.recv(0, "r0", &[]);
    let mut source = stage.send(&[&file], &["--expect", "1", "--max", RATE]);
    let heard = overhear(&ear, 1);
    source.reaches(0.1, 20);
    let mouth = bound(outsider, SocketAddr::from((outsider.ipv4(), 0)));
    let id = ReceiverId::new(4_242).expect("not zero");
    let mut codec = ReceiverCodec::new(&[], id, 9);
    codec.follow(heard.session);
    let echo = Echo { seq: Seq(1 << 40), hold: Span::ZERO };
    let needs = vec![Need { first: 0, run: u16::MAX, symbols: u16::MAX, wrong: false }];
    let mut say = |message: &Message<'_>| {
        let mut bytes = Vec::new();
        must(codec.encode(&mut bytes, heard.session, message).map(drop));
        must(mouth.send_to(&bytes, heard.source));
    };
    for _ in 0..200 {
        say(&Message::Request(Request { from: id, needs: needs.clone(), held: Vec::new(), echo }));
        std::thread::sleep(Duration::from_millis(5));
    }
    receiver.succeeds(60);
    let ended = source.succeeds(60);
    print_line(&format!(
        "200 requests for everything of one that has not joined: {:.3} of it sent",
        ended.number("repair_ratio")
    ));
    assert!(ended.number("repair_ratio") < 1.05, "who has not joined is not served: {ended:?}");
    assert!(stage.has("r0", &file));
}

/// Returns the largest packet number among the data packets that arrive within 300 ms.
fn newest_data(ear: &UdpSocket) -> Seq {
    let (mut newest, mut bytes) = (None, [0; 2048]);
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end || newest.is_none() {
        let Ok((len, _)) = ear.recv_from(&mut bytes) else { continue };
        let header = peek(&bytes[..len]).ok().filter(|header| header.kind == Kind::Data);
        newest = header.map(|header| Seq(header.seq.into())).max(newest);
    }
    newest.expect("there is one")
}

/// An outsider sends two thousand datagrams, each in the name of another phantom member.
///
/// Needs a kernel: the source reads two thousand datagrams from its socket while it sends.
#[test]
fn phantom_members_do_not_slow_any_scheme() {
    let Some(root) = require_root() else { return };
    for scheme in CATALOGUE.iter().filter(|entry| entry.layers == LayerRates::One).map(|entry| entry.name) {
        let stage = stage_with_an_outsider(&root);
        let outsider = stage.lab.receiver(OUTSIDER);
        let file = stage.file("image", 6_000_000);
        let ear = listener(&stage, outsider);
        let receiver = stage.recv(0, "r0", &[]);
        let mut source = stage.send(&[&file], &["--expect", "1", "--cc", scheme, "--max", RATE]);
        let heard = overhear(&ear, 1);
        source.reaches(0.1, 20);
        let mouth = bound(outsider, SocketAddr::from((outsider.ipv4(), 0)));
        let echo = Echo { seq: newest_data(&ear), hold: Span::ZERO };
        for number in 0..2_000 {
            let id = ReceiverId::new(10_000 + number).expect("not zero");
            let mut codec = ReceiverCodec::new(&[], id, 9);
            codec.follow(heard.session);
            let Message::Member(member) = member_of(id, MemberState::Receiving) else { unreachable!() };
            let mut bytes = Vec::new();
            must(
                codec
                    .encode(&mut bytes, heard.session, &Message::Member(Member { echo, ..member }))
                    .map(drop),
            );
            must(mouth.send_to(&bytes, heard.source));
        }
        let received = receiver.succeeds(60).number("seconds");
        print_line(&format!("{scheme}: 6 MB at 10 Mbit/s took {received:.1} s beside 2,000 made-up members"));
        assert!(received < 12.0, "{scheme}: {received} s instead of 4.8");
        assert!(stage.has("r0", &file));
        source.ends(60);
    }
}

/// The receiver reports the format version of packets that have an older version.
///
/// Needs a kernel: the program reads foreign datagrams.
#[test]
fn receiver_reports_the_format_version_of_older_packets() {
    let Some(root) = require_root() else { return };
    let stage = stage_with_an_outsider(&root);
    let mut receiver = stage.recv(0, "r0", &["--join-timeout", "4"]);
    let mouth =
        bound(stage.lab.receiver(OUTSIDER), SocketAddr::from((stage.lab.receiver(OUTSIDER).ipv4(), 0)));
    mouth.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket waits");
    let mut old = vec![0xfc, 0x23, 0, 0, 1, 2, 3, 4, 0, 0, 0, 1];
    old.extend([0; 100]);
    for _ in 0..50 {
        must(mouth.send_to(&old, group_of(&stage)));
        std::thread::sleep(Duration::from_millis(50));
    }
    // The sender of the old packets receives an answer with the receiver's format version.
    let mut answer = [0; 1500];
    let (len, from) = mouth.recv_from(&mut answer).expect("the receiver answers");
    assert_eq!(
        (answer[0], answer[1] >> 4, from.ip()),
        (0xfc, 3, stage.lab.receiver(0).ipv4().into()),
        "{len} bytes"
    );
    receiver.prints("format version 2", 5);
    receiver.ends(10).failed(1, "update the older program");
}
