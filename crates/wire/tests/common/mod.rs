//! Named samples: one for each kind of message, each mark and each content of a report.
#![allow(dead_code, reason = "every test file uses a part")]

pub mod ends;

use faircast_core::half::Half;
use faircast_core::packet::{
    Cause, Data, Echo, Flags, Hole, Holes, Knows, Layer, LayerStates, Mark, Payload, ReceiverId, Report,
    ReportContent, Seq, SessionId, ShortId, Signal,
};
use faircast_core::time::{Span, Time};
use faircast_wire::{
    Activity, Announce, Attach, Comparison, DataPacket, GroupKey, Hashes, Invite, KeyId, Member, MemberState,
    Message, Name, Need, NeededPart, Order, OrderAction, Receipt, Refusal, RefusalReason, Request, Scheduled,
    Series, Signed, SigningKey, Status, SymbolMap, Token, TransferId, Tree, TreeNode, Verified, Welcome,
    Window, Withdrawn, WithdrawnPart, Words,
};
use std::net::SocketAddr;

pub const SESSION: SessionId = SessionId(0xfa1c_a570);
pub const SALT: [u8; 16] = *b"a pinch of salt.";
pub const UNIX_SECS: u64 = 1_790_000_000;
pub const LIMIT: usize = 1_472;
pub const SYMBOL: [u8; 20] = *b"twenty bytes of data";

/// Returns the address from which the source sends.
pub fn at() -> SocketAddr {
    "192.0.2.1:4000".parse().expect("an address")
}

pub fn key() -> GroupKey {
    GroupKey::from_bytes(*b"thirty-two bytes of a known key.")
}

pub fn receiver(id: u64) -> ReceiverId {
    ReceiverId::new(id).expect("not zero")
}

pub const fn echo(seq: u64) -> Echo {
    Echo { seq: Seq(seq), hold: Span::from_micros(1_234) }
}

pub const fn data(seq: u64, mark: Mark) -> DataPacket<'static> {
    DataPacket {
        data: Data {
            seq: Seq(seq),
            sent_at: Time::from_nanos(7_654_321_000),
            rate: 0.0,
            payload: Payload { block: 0x0102_0304, symbol: 0x0005_0607 },
            flags: Flags::REPAIR,
            signal: Signal::None,
            mark,
        },
        layer: Layer(0),
        symbols: 0x0809,
        payload: &SYMBOL,
    }
}

pub fn marks() -> Vec<(&'static str, Mark)> {
    let id = Some(receiver(0xa1b2_c3d4));
    vec![
        ("no mark", Mark::None),
        (
            "representative",
            Mark::Representative { id, mean: 12_582_912.0, deviation: 786_432.0, rtt_max: 0.125 },
        ),
        (
            "no representative",
            Mark::Representative { id: None, mean: 0.0, deviation: 0.0, rtt_max: f32::INFINITY },
        ),
        ("acker", Mark::Acker { id }),
        ("election", Mark::Acker { id: None }),
        ("equation", {
            let (suppress_above, rtt_max, round, echo) = (1_048_576.0, 0.5, 9, 0xdead_beef);
            Mark::Equation { suppress_above, rtt_max, round, to: id, echo, limiting: true }
        }),
        ("timetable", Mark::Timetable { slot: 0x0a0b_0c0d }),
        ("layered", {
            let (id, error, rtt, above) = (id.and_then(ShortId::of), 0.0625, 0.125, Half::from(2_097_152.0));
            Mark::Layered { id, mean: 0.25, error, rtt, above, updates: 7, states: LayerStates(0x8000_001b) }
        }),
        ("windows", Mark::Window { window: 17.5, rtt: 0.125 }),
        ("target", {
            let id = id.and_then(ShortId::of);
            Mark::Target { id, since_cut: 0x0102, rtt_max: 0.125, every: 0.5 }
        }),
        ("everybody", Mark::TARGET),
        ("floor", {
            let excluded = id.and_then(ShortId::of);
            Mark::Floor { least: 16_000.0, rtt_max: 0.125, every: 0.5, excluded }
        }),
        ("listened to", Mark::FLOOR),
    ]
}

pub fn announce() -> Announce {
    Announce {
        salt: SALT,
        unix_secs: UNIX_SECS,
        started: (UNIX_SECS - 20) * 1_000_000_000 + 5,
        source: at(),
        parent: at(),
        transfer: TransferId(*b"transfer is this"),
        stream_len: Some(5_000_000_000),
        manifest_len: 4_321,
        symbol_size: 1_400,
        packet_size: 1_470,
        symbols_per_block: 512,
        first_block: 0,
        next_seq: 77,
        scheme: 2,
        hops: 0,
        spread_ms: 500,
        flags: Announce::REGISTER,
        name: Name::new("lab-server").expect("short"),
        layers: 3,
        options: Name::new("beta=0.7,start=linear").expect("short"),
        signer: 0,
        to_hosts: Name::EMPTY,
        series: None,
        dry_run: None,
        signature: None,
    }
}

pub fn status() -> Status {
    Status {
        next_seq: 123_456,
        complete_to: 40,
        blocks: Some(99),
        root: Some(*b"the root hash of the whole tape!"),
        proof: None,
        root_signature: None,
        withdrawn: Some(WithdrawnPart { total: 3, first: 1, signature: [0; 64] }),
        spread_ms: 250,
        members: 3,
        flags: Status::backoff_flags(3),
        rtt_max_us: 80_000,
        upper_seqs: vec![0x1_0000_0002, 3],
        scheduled: vec![Scheduled { block: 7, symbols: 3 }, Scheduled { block: 9, symbols: 1 }],
        confirmed: vec![receiver(1), receiver(2)],
        welcomed: vec![Welcome { id: receiver(0x5566_7788), nonce: 0x0a0b }],
        lagging: vec![receiver(3)],
        dropped: vec![receiver(0xffff_ffff)],
        withdrawals: vec![Withdrawn { entry: 0x0102_0304, first_block: 7, last_block: 9 }],
    }
}

pub fn member() -> Member {
    Member {
        from: receiver(0x1122_3344),
        nonce: 0x0c0d,
        state: MemberState::Receiving,
        reason: 5,
        receivers: 1,
        done: 0,
        verified_bytes: 1_000_000,
        resumed_bytes: 400_000,
        blocks_missing: 12,
        rate: 9.5e6,
        loss: 0.25,
        dropped_local: 2,
        unwritten_bytes: 70_000,
        activity: Activity::Renaming,
        percent: 62,
        echo: echo(500),
        host: Name::new("node-17").expect("short"),
        why: Words::default(),
    }
}

pub fn request() -> Request {
    let needs = vec![
        Need { first: 3, run: 1, symbols: 4, wrong: true },
        Need { first: 10, run: 90, symbols: 512, wrong: false },
    ];
    Request {
        from: receiver(0x1122_3344),
        needs,
        held: vec![SymbolMap { block: 9, symbols: [0x5a; 32] }],
        echo: echo(501),
    }
}

pub fn window() -> Window {
    Window { from: receiver(0x1122_3344), echo: echo(502), limit: Seq(0x1_0000_0203) }
}

pub fn receipt() -> Receipt {
    let about = Signed { session: SESSION, salt: [3; 16], transfer: TransferId([9; 16]), started: 1 << 60 };
    let key = SigningKey::from_seed([1; 32]);
    let (signed_by, host) = (receiver(0x5566_7788), Name::clipped("lab-07"));
    let receipt = Receipt::sign(&about, [0x5a; 32], (signed_by, host), 1_750_000_000, &key);
    Receipt { from: receiver(0x1122_3344), nonce: 0x0203, ..receipt }
}

pub fn comparison() -> Receipt {
    let mut parts = [NeededPart::default(); Comparison::PARTS];
    (parts[0], parts[255]) = (NeededPart { missing: 1, hash: 2 }, NeededPart { missing: 255, hash: 7 });
    let (held_bytes, needed_bytes) = (0x0102_0304_0506, 0x0708_090a);
    let comparison =
        Comparison { new_files: 3, changed_files: 0x0102, deleted: 4, held_bytes, needed_bytes, parts };
    Receipt { comparison: Some(Box::new(comparison)), key: [0; 32], signature: [0; 64], ..receipt() }
}

pub fn contents() -> Vec<(&'static str, ReportContent)> {
    let congested = |cause| ReportContent::Congested { echo: echo(41), level: 1.5e6, mean: 2e6, cause };
    vec![
        ("alive", ReportContent::Alive { echo: echo(40) }),
        ("loss", congested(Cause::Loss)),
        ("ecn mark", congested(Cause::Mark)),
        ("heartbeat", congested(Cause::Heartbeat)),
        ("leaving", congested(Cause::Leaving)),
        ("joining", congested(Cause::Joining)),
        ("accumulation", congested(Cause::Accumulation)),
        ("lost", ReportContent::Lost { echo: echo(47), first: Seq(42), count: 3, loss: 0.25 }),
        ("received", ReportContent::Received { echo: echo(43), rate: 3e6, loss: 0.5 }),
        (
            "selective",
            ReportContent::Selective { echo: echo(44), behind: 3, bitmap: 0xf00d_0007, loss: 0.125 },
        ),
        ("calculated", {
            let knows = Knows::RTT.with(Knows::LOSS);
            ReportContent::Calculated { echo: echo(46), rate: 5e6, stamp: 0x0102_0304, round: 9, knows }
        }),
        ("averaged", {
            let (mean, deviation, rate, cause) = (0.5, 0.25, 6e6, Cause::Joining);
            ReportContent::Averaged { echo: echo(48), mean, deviation, samples: 30, rate, cause }
        }),
        ("acknowledged", {
            let hole = |back, count| Hole { back, count };
            let holes = Holes([hole(2, 1), hole(9, 3), hole(0x0102, 0x0030)]);
            ReportContent::Acknowledged { echo: echo(0x0304), behind: 0x0103, holes, newer: 5 }
        }),
        ("all acknowledged", {
            let echo = Echo { seq: Seq(51), hold: Span::MAX };
            ReportContent::Acknowledged { echo, behind: 0, holes: Holes::default(), newer: 0 }
        }),
        (
            "summary",
            ReportContent::Summary { echo: echo(52), behind: 1, window: 12.25, transit: 9, lag: 0x0405 },
        ),
        ("answered", ReportContent::Answered { echo: echo(53), number: 0x0607_0809 }),
        ("newest", {
            let of = ShortId::of(receiver(0x0102_0304));
            ReportContent::Newest { echo: echo(49), past_lost: Seq(45), of }
        }),
        ("newest of nobody", {
            let echo = Echo { hold: Span::MAX, ..echo(50) };
            ReportContent::Newest { echo, past_lost: Seq(0), of: None }
        }),
    ]
}

/// Returns every message that a source sends.
pub fn from_source() -> Vec<(&'static str, Message<'static>)> {
    let mut all: Vec<_> =
        (100..).zip(marks()).map(|(seq, (name, mark))| (name, Message::Data(data(seq, mark)))).collect();
    let mut rated = data(200, marks()[1].1);
    rated.data.rate = 25_165_824.0;
    all.push(("rated", Message::Data(rated)));
    let mut empty = data(201, Mark::None);
    (empty.data.payload, empty.symbols, empty.payload, empty.layer) = (Payload::NONE, 0, &[], Layer(3));
    all.push(("empty", Message::Data(empty)));
    all.push(("announce", Message::Announce(announce())));
    let stream = Announce { stream_len: None, flags: Announce::LIVE, name: Name::EMPTY, ..announce() };
    all.push(("stream", Message::Announce(stream)));
    let to_hosts = Name::new("lab-*,server").expect("short");
    all.push(("targeted announce", Message::Announce(Announce { to_hosts, ..announce() })));
    let series = Some(Series { id: 0x0123_4567_89ab_cdef, number: 41 });
    all.push(("numbered announce", Message::Announce(Announce { series, ..announce() })));
    let dry_run = Some(0x0123_4567_89ab);
    all.push((
        "dry announce",
        Message::Announce(Announce { dry_run, stream_len: Some(4_321), ..announce() }),
    ));
    all.push(("status", Message::Status(status())));
    let signature = [*b"half of a signature, 32 bytes of", *b" it, and the other half of these"];
    let signature: [u8; 64] = signature.as_flattened().try_into().expect("two halves");
    all.push((
        "signed announce",
        Message::Announce(Announce { signer: 0xfeed_f00d, signature: Some(signature), ..announce() }),
    ));
    all.push((
        "signed status",
        Message::Status(Status {
            root_signature: Some(signature),
            withdrawn: None,
            withdrawals: vec![],
            ..status()
        }),
    ));
    let hashes = vec![*b"the hash of a block, which is 32", *b"bytes long, and that of the next"];
    all.push(("hashes", Message::Hashes(Hashes { first_block: 76, signature, hashes })));
    all.push(("bare status", Message::Status(Status { flags: Status::CLOSING, ..Status::default() })));
    all
}

/// Returns every message that a receiver sends.
pub fn from_receiver() -> Vec<(&'static str, Message<'static>)> {
    let from = receiver(0x1122_3344);
    let report = |(name, content)| (name, Message::Report(Report { from, layer: Layer(2), content }));
    let mut all: Vec<_> = contents().into_iter().map(report).collect();
    all.push(("request", Message::Request(request())));
    all.push(("no request", Message::Request(Request { needs: vec![], ..request() })));
    all.push(("member", Message::Member(member())));
    all.push(("window", Message::Window(window())));
    all.push(("receipt", Message::Receipt(receipt())));
    all.push(("comparison", Message::Receipt(comparison())));
    let (reason, host) = (RefusalReason::OtherKey, Name::clipped("b7"));
    let refusal = Refusal::new(from, reason, KeyId(0x0bad_cafe), host);
    all.push(("refusal", Message::Refusal(refusal)));
    let (source, content) = (Name::clipped("lab1"), Name::clipped("image"));
    let busy = Refusal { reason: RefusalReason::Busy, source, content, seconds: Some(240), ..refusal };
    all.push(("busy", Message::Refusal(busy)));
    let attach = Attach { from, token: [7; 16], invitation: 0x0123_4567_89ab_cdef, relay: true, host };
    all.push(("attach", Message::Attach(attach)));
    let relay = TreeNode {
        level: 0,
        receivers: 5,
        done: 2,
        rate: 2.5e7,
        address: std::net::SocketAddr::from(([192, 0, 2, 7], 40_000)),
        host: TreeNode::cut("relay-b"),
    };
    let relays = vec![relay, TreeNode { level: 1, receivers: 3, ..relay }];
    all.push(("tree", Message::Tree(Tree { from, first: 0, count: 2, relays })));
    for (name, state) in [
        ("joined", MemberState::Joined),
        ("done", MemberState::Done),
        ("failed", MemberState::Failed),
        ("gone", MemberState::Leaving),
    ] {
        let is_failed = state == MemberState::Failed;
        let why = if is_failed {
            Words::clipped("cannot write disk.img: the disk is full")
        } else {
            Words::default()
        };
        all.push((name, Message::Member(Member { state, why, ..member() })));
    }
    let receivers = vec![from, ReceiverId::new(0xabcd_ef01).expect("not zero")];
    all.push(("verified", Message::Verified(Verified { from, receivers })));
    all
}

/// Returns an order of an agent to a child.
pub fn order() -> Order {
    let (to, from) = (receiver(0x1122_3344), Seq(0x1_0000_0007));
    Order { to, action: OrderAction::Join, number: 17, group: 1, from, nonce: 0 }
}

/// Returns every message.
pub fn all() -> Vec<(&'static str, Message<'static>)> {
    let token = Message::Token(Token { to: receiver(0x1122_3344), token: [7; 16], agent: true });
    let invite = Message::Invite(Invite { number: 0x0123_4567_89ab_cdef, name: Name::clipped("source") });
    let others = [("token", token), ("invite", invite), ("order", Message::Order(order()))];
    from_source().into_iter().chain(from_receiver()).chain(others).collect()
}

/// Returns the message as a packet that is not sealed.
pub fn bytes_of(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    faircast_wire::encode(&mut out, SESSION, 0x0000_beef, message, LIMIT).expect("it fits");
    out
}

/// Asserts that a file contains `text`. The path starts at this crate's folder. With `FAIRCAST_BLESS=1` the file is rewritten
/// instead.
pub fn agree(path: &str, text: String) {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var("FAIRCAST_BLESS").as_deref() == Ok("1") {
        std::fs::write(&file, text).expect("the source tree can be written");
        return;
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    for (line, (found, text)) in (1..).zip(found.lines().zip(text.lines())) {
        assert_eq!(found, text, "{path}, line {line}; if that is right, run the test with FAIRCAST_BLESS=1");
    }
    assert!(found == text, "{path} has another length; if that is right, run the test with FAIRCAST_BLESS=1");
}
