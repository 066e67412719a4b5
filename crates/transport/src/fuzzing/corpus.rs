//! The fuzzers' corpus, replayed in tests.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[path = "../../../../fuzz/sessions.rs"]
mod sessions;

use crate::object::seal_block;
use faircast_core::packet::{Data, Flags, Layer, Mark, Payload, ReceiverId, Seq, SessionId, Signal};
use faircast_core::time::Time;
use faircast_wire::{Announce, DataPacket, Message, Name, Status, TransferId, Welcome, encode};
use replay::{assert_harmless_when_changed, assert_stored as stored, folder, replay};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The source's address in the stored inputs.
const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 5777);

#[test]
fn corpus_of_the_sessions_fuzz_target_causes_no_panic() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    replay("sessions", |input| sessions::sessions(input, scratch.path()));
}

#[test]
fn corpus_of_the_relays_fuzz_target_causes_no_panic() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    replay("relays", |input| sessions::relays(input, scratch.path()));
}

#[test]
fn corpus_of_the_layers_fuzz_target_causes_no_panic() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    replay("layers", |input| sessions::layers(input, scratch.path()));
}

#[test]
fn changed_inputs_of_the_relays_fuzz_target_cause_no_panic() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    assert_harmless_when_changed("relays", |input| sessions::relays(input, scratch.path()));
}

#[test]
fn changed_inputs_of_the_layers_fuzz_target_cause_no_panic() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    assert_harmless_when_changed("layers", |input| sessions::layers(input, scratch.path()));
}

/// Returns inputs for sessions. Each input has a name that describes the behaviour of the network; [`super::sessions`] describes
/// the format.
fn journeys() -> Vec<(&'static str, Vec<u8>)> {
    let steps = |setup: u8, steps: &[[u8; 2]]| {
        let mut input = vec![setup];
        input.extend(steps.iter().flatten());
        input
    };
    let (run, lose) = (2 | 3 << 2, 3 | 3 << 2);
    let mut changed = steps(0, &[[run, 0], [run, 0], [run, 0]]);
    for at in 0..12 {
        let mut change = [0; 60];
        change[16 + 3 * at] = 1 << (at % 8);
        changed.extend([run, 60]);
        changed.extend(change);
    }
    vec![
        ("whole", steps(0, &[[run, 0]; 40])),
        (
            "lossy",
            steps(0, &[[run, 0], [run, 0], [run, 0], [lose, 0], [run, 0], [lose, 0], [run, 0]].repeat(6)),
        ),
        ("nothing-gets-through", steps(0, &[[lose, 0]; 40])),
        ("congested", steps(0, &[[run | 0x80, 0]; 40])),
        ("congested-to-the-floor", steps(1, &[[run | 0x80, 0]; 40])),
        ("drop", steps(2, &[[run | 0x80, 0]; 40])),
        ("changed", changed),
        ("leaping-stream", leaping_stream()),
    ]
}

/// The nodes between a source and a receiver, indexed by the lowest bits of an input of `relays`.
const BETWEEN: [&str; 7] = ["nothing", "repeater", "file", "unicast", "agent", "raccoom", "rmanp"];

/// Returns inputs for worlds with relays or layers; [`super::relays`] describes the format. 50 ms pass after most steps.
fn worlds(first: u8) -> Vec<(&'static str, Vec<u8>)> {
    let (run, lose) = (3 << 3, 1 | 3 << 3);
    let begin = |setup: [u8; 2], steps: &[u8]| [&setup[..], steps].concat();
    // A datagram of each direction is delivered to each host, with one bit changed. The position of this bit moves towards the
    // end.
    let changes = |mode: u8| {
        let mut steps = vec![run; 6];
        for at in 0..44u8 {
            steps.extend([
                mode | (2 + at % 4) | 1 << 3,
                at / 4 % 4 * 16 + at % 3,
                16 + 2 * at,
                1,
                1 << (at % 8),
            ]);
        }
        steps
    };
    let asks: Vec<u8> = (0..60).flat_map(|at| [6 | 3 << 3, at % 16]).collect();
    let ends: Vec<u8> =
        (0..30).flat_map(|at| [run, 7 | 3 << 3, [0, 4, 2, 6, 10, 1, 3][at % 7]]).take(60).collect();
    vec![
        ("whole", begin([first, 0], &[run; 40])),
        ("lossy", begin([first, 1 | 1 << 5], &[run, run, lose, run, lose, lose].repeat(8))),
        ("small", begin([first, 3 << 3 | 1 << 5], &[run, run, run, lose].repeat(10))),
        ("member", begin([first, 1 << 5], &changes(0))),
        ("stranger", begin([first, 0], &changes(0x40))),
        ("raw", begin([first, 0], &changes(0x80))),
        ("asks", begin([first, 0], &asks)),
        ("ends", begin([first, 0], &ends)),
    ]
}

/// Returns a live stream that jumps to the highest block numbers.
fn leaping_stream() -> Vec<u8> {
    let mut input = vec![0];
    let mut seq = 0u32;
    let mut say = |message: Message<'_>| {
        let mut bytes = Vec::new();
        encode(&mut bytes, SessionId(77), seq, &message, 250).expect("it is small");
        seq += 1;
        input.extend([1, bytes.len() as u8]);
        input.extend(bytes);
        input.extend([2 | 5 << 2, 0]);
    };
    let announce = |first_block| {
        Message::Announce(Announce {
            salt: [7; 16],
            unix_secs: 1_790_000_000,
            started: 1_790_000_000_000_000_000,
            source: SOURCE,
            parent: SOURCE,
            transfer: TransferId([3; 16]),
            stream_len: None,
            manifest_len: 20,
            symbol_size: 64,
            packet_size: 144,
            symbols_per_block: 1,
            first_block,
            next_seq: 0,
            scheme: 1,
            layers: 1,
            options: Name::EMPTY,
            hops: 0,
            spread_ms: 10,
            flags: Announce::LIVE,
            name: Name::EMPTY,
            signer: 0,
            to_hosts: Name::EMPTY,
            series: None,
            dry_run: None,
            signature: None,
        })
    };
    let mut sealed = vec![9; 28];
    let (symbols, _) = seal_block(&mut sealed, 64);
    let data = |block| {
        let payload = Payload { block, symbol: 0 };
        let (sent_at, flags, mark) = (Time::ZERO, Flags::default(), Mark::None);
        let data = Data {
            seq: Seq(u64::from(block)),
            sent_at,
            rate: 0.0,
            payload,
            flags,
            signal: Signal::None,
            mark,
        };
        Message::Data(DataPacket { data, layer: Layer(0), symbols, payload: &sealed })
    };
    let status = |complete_to| Message::Status(Status { complete_to, rtt_max_us: 100, ..Status::default() });
    let me = Welcome { id: ReceiverId::new(5).expect("five is not zero"), nonce: 7 };
    let welcome = Message::Status(Status { welcomed: vec![me], ..Status::default() });
    for first in [5, 1 << 20, u32::MAX - 1, u32::MAX] {
        say(announce(first));
        say(welcome.clone());
        for ahead in [0, 2, 1] {
            say(data(first.saturating_add(ahead).min(u32::MAX - 1)));
        }
        say(status(first.saturating_add(9)));
    }
    let end = Status { blocks: Some(u32::MAX - 1), root: Some([0; 32]), ..Status::default() };
    say(Message::Status(end));
    input
}

/// With `FAIRCAST_BLESS=1`, the test writes the initial inputs.
#[test]
fn corpus_contains_every_generated_sample() {
    for (name, input) in journeys() {
        stored("sessions", name, &input);
    }
    for (between, kind) in BETWEEN.iter().zip(0..) {
        for (form, is_sealed) in [("open", 0), ("sealed", 8)] {
            for (name, input) in worlds(kind | is_sealed) {
                stored("relays", &format!("{between}-{form}-{name}"), &input);
            }
        }
    }
    for (scheme, number) in ["rlc", "gmcc", "smcc"].iter().zip(0..) {
        for (between, kind) in [("nothing", 0), ("repeater", 1), ("sealed-file", 2 | 8)] {
            for (name, input) in worlds(kind | number << 4) {
                stored("layers", &format!("{scheme}-{between}-{name}"), &input);
            }
        }
    }
    // Deliver every sample message of the wire format to both endpoints of an active session.
    for file in fs::read_dir(folder("parse")).expect("the corpus is part of the repository") {
        let path = file.expect("the folder can be read").path();
        let name = path.file_name().expect("it was listed").to_string_lossy().into_owned();
        let bytes = fs::read(&path).expect("the file can be read");
        if !name.starts_with("sample-") || bytes.len() > 255 {
            continue;
        }
        let run = [2 | 3 << 2, 0];
        let mut input = [&[0][..], &run.repeat(6)].concat();
        for to in [0, 1] {
            input.extend([to, bytes.len() as u8]);
            input.extend(&bytes);
            input.extend(run);
        }
        stored("sessions", &name["sample-".len()..], &input);
    }
}
