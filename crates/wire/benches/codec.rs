//! Measures how fast one core writes and reads data packets.
//!
//! Each iteration handles a batch of 64 packets of 1432 bytes in one buffer; the mark of each packet names a representative. The
//! printed rate is that of the median batch, in bytes of datagrams. The program also measures the cost of refusing a packet, and
//! of signing and verifying a page of hashes.

use faircast_core::packet::{
    Data, Echo, Flags, Layer, Mark, Payload, ReceiverId, Report, ReportContent, Seq, SessionId, Signal,
};
use faircast_core::time::{Span, Time};
use faircast_wire::encode::max_hashes;
use faircast_wire::{
    Announce, DataPacket, Form, GroupKey, Message, Name, ReceiverCodec, Signed, SigningKey, SourceCodec,
    TransferId, data_header_len,
};
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;

const BATCH: u64 = 64;
const DATAGRAM: usize = 1_432;
const BATCHES: usize = 20_000;
const AT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4_000);

fn packet(seq: u64, payload: &[u8]) -> DataPacket<'_> {
    let mark = mark();
    let data = Data {
        seq: Seq(seq),
        sent_at: Time::from_nanos(seq * 1_000),
        rate: 0.0,
        payload: Payload { block: (seq / 512) as u32, symbol: (seq % 512) as u32 },
        flags: Flags::default(),
        signal: Signal::None,
        mark,
    };
    DataPacket { data, layer: Layer(0), symbols: 512, payload }
}

fn mark() -> Mark {
    Mark::Representative { id: ReceiverId::new(77), mean: 1e7, deviation: 1e6, rtt_max: 0.1 }
}

fn announce() -> Message<'static> {
    Message::Announce(Announce {
        salt: [1; 16],
        unix_secs: 0,
        started: 0,
        source: AT,
        parent: AT,
        transfer: TransferId([2; 16]),
        stream_len: None,
        manifest_len: 0,
        symbol_size: 1_400,
        packet_size: 1_460,
        symbols_per_block: 512,
        first_block: 0,
        next_seq: 0,
        scheme: 0,
        hops: 0,
        spread_ms: 0,
        flags: 0,
        name: Name::EMPTY,
        layers: 1,
        options: Name::EMPTY,
        signer: 0,
        to_hosts: Name::EMPTY,
        series: None,
        dry_run: None,
        signature: None,
    })
}

/// Measures the time to sign and to verify a page of hashes.
fn pages() {
    const ROUNDS: u32 = 2_000;
    let key = SigningKey::from_seed([3; 32]);
    let about = Signed {
        session: SessionId(1),
        salt: [1; 16],
        transfer: TransferId([2; 16]),
        started: 1_800_000_000,
    };
    let (public, hashes) = (key.verify_key(), vec![[7; 32]; max_hashes(DATAGRAM)]);
    #[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
    let start = Instant::now();
    let signatures: Vec<_> = (0..ROUNDS).map(|first| key.sign_page(&about, first, &hashes)).collect();
    let signing = start.elapsed();
    #[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
    let start = Instant::now();
    for (first, signature) in (0..).zip(&signatures) {
        assert!(public.verifies_page(&about, first, &hashes, signature));
    }
    for (what, took) in [("sign", signing), ("verify", start.elapsed())] {
        let micros = took.as_secs_f64() * 1e6 / f64::from(ROUNDS);
        println!("{what:>6} {micros:5.1} us a page of {} hashes", hashes.len());
    }
}

/// Measures the cost of refusing a packet: random bytes, data and feedback that are sealed under another key, and data with a
/// changed symbol.
fn refusals() {
    let (ours, theirs) = (GroupKey::from_bytes([3; 32]), GroupKey::from_bytes([4; 32]));
    let session = SessionId(1);
    let id = |id| ReceiverId::new(id).expect("not zero");
    let mut source = SourceCodec::new(session, Some(&ours), [1; 16]);
    let mut stranger = SourceCodec::new(session, Some(&theirs), [1; 16]);
    let mut member = ReceiverCodec::new(std::slice::from_ref(&ours), id(5), 1);
    let mut outsider = ReceiverCodec::new(std::slice::from_ref(&theirs), id(6), 1);
    for (source, receiver) in [(&mut source, &mut member), (&mut stranger, &mut outsider)] {
        receiver.follow(session);
        let mut bytes = Vec::new();
        source.encode(&mut bytes, &announce(), DATAGRAM).expect("it fits");
        receiver.open(&mut bytes, AT).expect("announced");
    }
    let payload = vec![0xa5; DATAGRAM - data_header_len(&mark(), Form::Sealed) + 2];
    let data = |source: &mut SourceCodec| {
        let mut bytes = Vec::new();
        source.encode_data(&mut bytes, &packet(9, &payload)).expect("it fits");
        bytes
    };
    let noise: Vec<u8> =
        (0..DATAGRAM as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut changed = data(&mut source);
    changed[DATAGRAM / 2] ^= 1;
    let echo = Echo { seq: Seq(7), hold: Span::ZERO };
    let report = Report { from: id(6), layer: Layer(0), content: ReportContent::Alive { echo } };
    let mut feedback = Vec::new();
    outsider.encode(&mut feedback, session, &Message::Report(report)).expect("it fits");
    for (what, bytes) in
        [("noise", &noise), ("forged data", &data(&mut stranger)), ("changed symbol", &changed)]
    {
        refuse(what, bytes, |bytes| member.open(bytes, AT).is_err());
    }
    refuse("forged report", &feedback, |bytes| source.open(bytes, AT).is_err());
}

fn refuse(what: &str, packet: &[u8], mut is_refused: impl FnMut(&mut [u8]) -> bool) {
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..BATCHES / 4 {
        let mut batch = packet.repeat(BATCH as usize);
        #[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
        let start = Instant::now();
        for datagram in batch.chunks_exact_mut(packet.len()) {
            assert!(is_refused(datagram));
        }
        times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    times.sort_unstable_by(f64::total_cmp);
    println!("refuse {what:<14} {:4} bytes {:7.1} ns", packet.len(), times[times.len() / 2]);
}

fn main() {
    pages();
    refusals();
    let key = GroupKey::from_bytes([3; 32]);
    for (name, key) in [("open", None), ("sealed", Some(&key))] {
        let session = SessionId(1);
        let mut source = SourceCodec::new(session, key, [1; 16]);
        let mut receiver = ReceiverCodec::new(
            key.map_or(&[], std::slice::from_ref),
            ReceiverId::new(5).expect("not zero"),
            1,
        );
        receiver.follow(session);
        let mut bytes = Vec::new();
        source.encode(&mut bytes, &announce(), DATAGRAM).expect("it fits");
        receiver.open(&mut bytes, AT).expect("announced");
        let form = if key.is_some() { Form::Sealed } else { Form::Open };
        let overhead = data_header_len(&mark(), form) - 2;
        let payload = vec![0xa5; DATAGRAM - overhead];
        let mut batch = Vec::with_capacity(BATCH as usize * DATAGRAM);
        let (mut seq, mut writing, mut reading) = (0, Vec::new(), Vec::new());
        for _ in 0..BATCHES {
            batch.clear();
            #[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
            let start = Instant::now();
            for _ in 0..BATCH {
                source.encode_data(&mut batch, &packet(seq, &payload)).expect("it fits");
                seq += 1;
            }
            writing.push(start.elapsed());
            assert_eq!(batch.len(), BATCH as usize * DATAGRAM);
            #[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
            let start = Instant::now();
            for datagram in batch.chunks_exact_mut(DATAGRAM) {
                let (_, message) = receiver.open(datagram, AT).expect("made by the source");
                black_box(&message);
            }
            reading.push(start.elapsed());
        }
        for (what, mut times) in [("write", writing), ("read", reading)] {
            times.sort_unstable();
            let nanos = times[BATCHES / 2].as_nanos() as f64 / BATCH as f64;
            println!("{name:>6} {what:<5} {:6.2} GB/s {nanos:7.1} ns a packet", DATAGRAM as f64 / nanos);
        }
    }
}
