//! A toy relay with the hop key alone: it forwards a sealed session into another group, repairs from what it has heard,
//! answers for its children, and cannot read what it carries.

use crate::kit::{FAIRCAST, Running, Stage, must, tell};
use crate::security::key;
use faircast_core::packet::{Echo, Payload, ReceiverId, Report, Seq, SessionId};
use faircast_core::time::Span;
use faircast_testkit::{Capture, Lab, Node, fields, require_root, run};
use faircast_wire::{
    Announce, DataPacket, HopKey, Member, MemberState, Message, Name, RelayCodec, Request, Status, Welcome,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the content is made of: whoever can read it finds this.
const WORDS: &[u8] = b"plain words that nobody but members may read; ";

/// Datagrams are no longer.
const LIMIT: usize = 1_472;

/// Reports of children within this are one.
const MERGED: Duration = Duration::from_millis(50);

/// A relay at work.
struct Relay {
    codec: RelayCodec,
    me: ReceiverId,
    above: UdpSocket,
    below: UdpSocket,
    children_group: SocketAddr,
    source: Option<(SessionId, SocketAddr)>,
    announce: Option<Announce>,
    status: Status,
    /// Sealed symbols, by block, and their packets' other fields.
    kept: BTreeMap<u32, BTreeMap<u32, (DataPacket<'static>, Vec<u8>)>>,
    /// Own numbers, and the source's for each.
    numbers: Vec<Seq>,
    welcomed: Vec<Welcome>,
    confirmed: Vec<ReceiverId>,
    done: BTreeSet<ReceiverId>,
    children: BTreeSet<ReceiverId>,
    held: Option<Report>,
    report_at: Instant,
    member_at: Instant,
    status_at: Instant,
    counts: Counts,
}

/// What it did.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    forwarded: usize,
    repaired: usize,
    reports_heard: usize,
    reports_sent: usize,
    readable: usize,
}

impl Relay {
    fn new(node: &Node, key: &HopKey, groups: [SocketAddr; 2]) -> Relay {
        let SocketAddr::V4(group) = groups[0] else { panic!("these labs speak IPv4") };
        let (above, below) = must(node.inside(|| {
            let above =
                UdpSocket::bind((Ipv4Addr::UNSPECIFIED, group.port())).expect("the port is free there");
            above.join_multicast_v4(group.ip(), &node.ipv4()).expect("it has the address");
            let below = UdpSocket::bind((node.ipv4(), 0)).expect("some port is free");
            for socket in [&above, &below] {
                socket.set_read_timeout(Some(Duration::from_millis(1))).expect("not zero");
            }
            (above, below)
        }));
        let me = ReceiverId::new(0x00c0_ffee).expect("not zero");
        let now = Instant::now();
        Relay {
            codec: RelayCodec::new(Some(key), me, 77),
            me,
            above,
            below,
            children_group: groups[1],
            source: None,
            announce: None,
            status: Status::default(),
            kept: BTreeMap::new(),
            numbers: Vec::new(),
            welcomed: Vec::new(),
            confirmed: Vec::new(),
            done: BTreeSet::new(),
            children: BTreeSet::new(),
            held: None,
            report_at: now,
            member_at: now,
            status_at: now,
            counts: Counts::default(),
        }
    }

    fn run(mut self, stop: &AtomicBool) -> Counts {
        let mut bytes = [0; 2048];
        while !stop.load(Ordering::Relaxed) {
            while let Ok((len, from)) = self.above.recv_from(&mut bytes) {
                self.hear_above(&mut bytes[..len], from);
            }
            while let Ok((len, from)) = self.below.recv_from(&mut bytes) {
                self.hear_below(&mut bytes[..len], from);
            }
            self.speak();
        }
        self.counts
    }

    fn hear_above(&mut self, bytes: &mut [u8], from: SocketAddr) {
        let Ok((session, message)) = self.codec.open_above(bytes, from) else { return };
        match message {
            Message::Announce(announce) => {
                self.codec.follow(session);
                (self.source, self.announce) = (Some((session, from)), Some(announce));
                self.announce_below();
            }
            Message::Data(packet) => {
                let own = DataPacket { payload: &[], ..packet };
                let sealed = packet.payload.to_vec();
                self.counts.readable += usize::from(holds_words(&sealed));
                if packet.data.payload != Payload::NONE {
                    let Payload { block, symbol } = packet.data.payload;
                    self.kept.entry(block).or_default().insert(symbol, (own, sealed.clone()));
                }
                self.send_data(own, &sealed);
                self.counts.forwarded += 1;
            }
            Message::Status(status) => {
                self.status = Status { welcomed: Vec::new(), confirmed: Vec::new(), ..status };
                self.status_at = Instant::now();
            }
            _ => {}
        }
    }

    /// The same symbol under a number of this relay's.
    fn send_data(&mut self, own: DataPacket<'static>, sealed: &[u8]) {
        let mut packet = DataPacket { payload: sealed, ..own };
        self.numbers.push(packet.data.seq);
        packet.data.seq = Seq(self.numbers.len() as u64 - 1);
        let mut out = Vec::new();
        if self.codec.encode_data(&mut out, &packet).is_ok() {
            // What does not leave is lost, as on any network.
            let _ = self.below.send_to(&out, self.children_group);
        }
    }

    fn announce_below(&mut self) {
        let Some(announce) = self.announce else { return };
        let parent = must(self.below.local_addr());
        let ours = Announce { parent, next_seq: self.numbers.len() as u64, ..announce };
        let mut out = Vec::new();
        must(self.codec.encode(&mut out, &Message::Announce(ours), LIMIT).map(drop));
        let _ = self.below.send_to(&out, self.children_group);
    }

    fn hear_below(&mut self, bytes: &mut [u8], from: SocketAddr) {
        let Ok((_, message)) = self.codec.open_below(bytes, from) else { return };
        match message {
            Message::Member(member) => {
                if member.state != MemberState::Asking {
                    self.children.insert(member.from);
                }
                match member.state {
                    MemberState::Asking | MemberState::Joined => {
                        self.welcomed.push(Welcome { id: member.from, nonce: member.nonce });
                    }
                    MemberState::Done => {
                        self.done.insert(member.from);
                        self.confirmed.push(member.from);
                        self.status_at = Instant::now();
                    }
                    _ => {}
                }
            }
            Message::Report(report) => {
                self.counts.reports_heard += 1;
                self.held.get_or_insert(report);
            }
            Message::Request(request) => self.repair(&request),
            _ => {}
        }
    }

    /// Send again what was heard of the blocks that are asked for.
    fn repair(&mut self, request: &Request) {
        for need in &request.needs {
            for block in need.first..need.first.saturating_add(u32::from(need.run).min(64)) {
                let Some(symbols) = self.kept.get(&block) else { continue };
                let symbols: Vec<_> = symbols.values().cloned().collect();
                for (own, sealed) in symbols {
                    self.send_data(own, &sealed);
                    self.counts.repaired += 1;
                }
            }
        }
    }

    fn speak(&mut self) {
        let now = Instant::now();
        let Some((_, source)) = self.source else { return };
        if !self.welcomed.is_empty() || !self.confirmed.is_empty() || self.status_at <= now {
            let status = Status {
                next_seq: self.numbers.len() as u64,
                welcomed: std::mem::take(&mut self.welcomed),
                confirmed: std::mem::take(&mut self.confirmed),
                ..self.status.clone()
            };
            let mut out = Vec::new();
            must(self.codec.encode(&mut out, &Message::Status(status), LIMIT).map(drop));
            let _ = self.below.send_to(&out, self.children_group);
            self.status_at = now + Duration::from_millis(100);
        }
        if let Some(mut report) = self.held.take_if(|_| self.report_at <= now) {
            self.report_at = now + MERGED;
            report.from = self.me;
            let echo = report.content.echo_mut();
            echo.seq = self.numbers.get(echo.seq.0 as usize).copied().unwrap_or(Seq(0));
            self.up(&Message::Report(report), source);
            self.counts.reports_sent += 1;
        }
        if self.member_at <= now && !self.children.is_empty() {
            self.member_at = now + Duration::from_millis(100);
            let all = self.done.len() == self.children.len();
            let newest = self.numbers.last().copied();
            let state = match newest {
                None => MemberState::Joined,
                Some(_) if all => MemberState::Done,
                Some(_) => MemberState::Receiving,
            };
            let member = Member {
                from: self.me,
                nonce: 5,
                state,
                reason: 0,
                verified_bytes: 0,
                blocks_missing: if all { 0 } else { u32::MAX },
                rate: 0.0,
                loss: 0.0,
                dropped_local: 0,
                echo: Echo { seq: newest.unwrap_or(Seq((1 << 62) - 1)), hold: Span::ZERO },
                host: Name::clipped("relay"),
            };
            self.up(&Message::Member(member), source);
        }
    }

    fn up(&mut self, message: &Message<'_>, source: SocketAddr) {
        let mut out = Vec::new();
        must(self.codec.encode(&mut out, message, LIMIT).map(drop));
        let _ = self.below.send_to(&out, source);
    }
}

/// The relay stops when this goes, also when the test fails.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn holds_words(bytes: &[u8]) -> bool {
    bytes.windows(20).any(|window| window == &WORDS[..20])
}

#[test]
fn a_relay_with_the_hop_key_forwards_repairs_and_answers_and_cannot_read() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let group_key = key(&stage, "lab.key");
    let hop_key = stage.text("relay.key");
    must(run(FAIRCAST, &["keygen", "--relay", &group_key, &hop_key], Duration::from_secs(10)));
    let hop: HopKey = must(must(std::fs::read_to_string(&hop_key)).parse());
    let file = stage.text("letter");
    must(std::fs::write(&file, WORDS.repeat(2_000_000 / WORDS.len())));
    let pcap = stage.path("all.pcap");
    let capture = must(Capture::start(stage.lab.receiver(2), "udp", &pcap));
    let above: SocketAddr = must(stage.group.parse());
    let below = SocketAddr::from(([239, 255, 71, 9], above.port()));
    let stop = AtomicBool::new(false);
    let counts = std::thread::scope(|scope| {
        let relay = Relay::new(stage.lab.receiver(2), &hop, [above, below]);
        let relay = scope.spawn(|| relay.run(&stop));
        let stopping = Stopping(&stop);
        let children: Vec<_> = (0..2)
            .map(|at| {
                let (host, out, group) = (format!("r{at}"), stage.text(&format!("r{at}")), below.to_string());
                let place = ["recv", "--json", "--host", &host, "--out", &out, "--group", &group];
                let flags = ["--key", &group_key, "--faults", "loss=0.05"];
                let mut child = Running::start(stage.lab.receiver(at), &[&place[..], &flags].concat());
                child.said("\"opened\"", 20);
                child
            })
            .collect();
        let flags = ["--key", &group_key, "--expect", "1", "--cc", "le-sbcc", "--max", "8M"];
        let ended = stage.send(&[&file], &flags).succeeds(40);
        for child in children {
            child.succeeds(10);
        }
        drop(stopping);
        assert_eq!((ended.number("receivers"), ended.number("verified")), (1.0, 1.0), "it speaks for all");
        relay.join().expect("the relay does not panic")
    });
    must(capture.stop());
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
    tell(&format!("{counts:?}"));
    assert!(counts.forwarded > 1_000 && counts.repaired > 100, "{counts:?}");
    assert!(counts.reports_heard > counts.reports_sent && counts.reports_sent > 0, "{counts:?}");
    assert_eq!(counts.readable, 0, "what it opens with its key shows nothing");
    let payloads = must(fields(&pcap, "udp", &["udp.payload"]));
    assert!(payloads.len() > 2_000, "{}", payloads.len());
    let words: String = WORDS[..20].iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(!payloads.iter().any(|row| row[0].contains(&words)), "a capture shows content");
}
