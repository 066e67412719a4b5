//! The fuzz targets for packets and keys. Tests of `faircast-wire` replay the corpus through the same functions, so earlier
//! findings are checked without a fuzzer.

#[path = "checksum.rs"]
mod checksum;

use checksum::correct;
use faircast_core::packet::{Echo, Layer, ReceiverId, Report, ReportContent, Seq, SessionId, Signal};
use faircast_core::time::Span;
use faircast_wire::doctor;
use faircast_wire::{
    Announce, DataPacket, GroupKey, HopKey, KeyRing, Message, Name, Newest, OpenError, ReceiverCodec,
    SigningKey, SourceCodec, Status, TransferId, VerifyKeys, encode, parse as parse_packet,
};
use std::net::SocketAddr;

const SESSION: SessionId = SessionId(0xfa1c_a570);
const SALT: [u8; 16] = [7; 16];
const UNIX_SECS: u64 = 1_790_000_000;

/// Parses any bytes. Accepted input encodes and parses to the same value.
pub fn parse(input: &[u8]) {
    let newest = Newest { seq: Seq(1 << 33), ..Newest::default() };
    let _ = parse_packet(input, &newest);
    let mut packet = input.to_vec();
    correct(&mut packet);
    let Ok((header, message)) = parse_packet(&packet, &newest) else { return };
    let mut again = Vec::new();
    encode(&mut again, header.session, header.seq, &message, 1 << 20).expect("what was read can be written");
    let (_, read) = parse_packet(&again, &newest).expect("what was written is whole");
    assert_eq!(read, message);
}

/// Parses any bytes as a message between two `doctor` commands. Accepts no message without the correct tag. An accepted message
/// encodes and parses to the same value.
pub fn doctor(input: &[u8]) {
    let key = doctor::Key::of(None);
    let _ = doctor::Message::parse(input, &key);
    let mut datagram = input.to_vec();
    if !key.seal(&mut datagram) {
        return;
    }
    assert_eq!(
        doctor::Message::parse(&datagram, &doctor::Key::of(Some(&self::key()))),
        None,
        "of another key"
    );
    let Some(read) = doctor::Message::parse(&datagram, &key) else { return };
    let mut again = Vec::new();
    read.encode(&key, datagram.len(), &mut again);
    assert_eq!(again.len(), datagram.len());
    assert_eq!(doctor::Message::parse(&again, &key), Some(read));
    let last = datagram.len() - 1;
    datagram[last] ^= 1;
    assert_eq!(doctor::Message::parse(&datagram, &key), None, "it was changed");
}

/// Passes datagrams of receivers to two sources: one without a key and one with a key.
pub fn source_open(input: &[u8]) {
    let key = key();
    let mut open = SourceCodec::new(SESSION, None, SALT);
    let mut sealing = SourceCodec::new(SESSION, Some(&key), SALT);
    let mut member = receiver(Some(&key));
    let mut announcement = Vec::new();
    sealing.encode(&mut announcement, &announce(), 1_472).expect("it fits");
    member.open(&mut announcement, at()).expect("made by a source");
    for (mode, datagram) in datagrams(input) {
        let mut bytes = datagram.to_vec();
        let _ = sealing.open(&mut bytes, at());
        let mut bytes = datagram.to_vec();
        correct(&mut bytes);
        let _ = open.open(&mut bytes, at());
        // A sealed report is accepted once, and never after a change.
        let mut sealed = Vec::new();
        member.encode(&mut sealed, SESSION, &report()).expect("it fits");
        let change = datagram.iter().zip(&sealed).any(|(&change, _)| change != 0);
        let mut changed = sealed.clone();
        changed.iter_mut().zip(datagram).for_each(|(byte, change)| *byte ^= change);
        assert_eq!(sealing.open(&mut changed, at()).is_ok(), !change);
        if mode & 1 != 0 {
            assert_eq!(sealing.open(&mut sealed.clone(), at()).is_ok(), change, "once");
            assert!(matches!(sealing.open(&mut sealed, at()), Err(OpenError::Replayed(_))));
        }
    }
}

/// Passes datagrams of sources to two receivers: one without a key and one with a key.
pub fn receiver_open(input: &[u8]) {
    let key = key();
    let mut open = receiver(None);
    let mut keyed = receiver(Some(&key));
    let mut source = SourceCodec::new(SESSION, Some(&key), SALT);
    source.encode(&mut Vec::new(), &announce(), 1_472).expect("it fits");
    let mut seq = 0;
    for (mode, datagram) in datagrams(input) {
        let mut bytes = datagram.to_vec();
        let _ = keyed.open(&mut bytes, at());
        let mut bytes = datagram.to_vec();
        correct(&mut bytes);
        let _ = open.open(&mut bytes, at());
        let mut sealed = Vec::new();
        let written = match mode % 3 {
            0 => source.encode(&mut sealed, &announce(), 1_472).map(|_| ()),
            1 => source.encode(&mut sealed, &Message::Status(Status::default()), 1_472).map(|_| ()),
            _ => {
                seq += u64::from(mode);
                source.encode_data(&mut sealed, &data(seq, datagram))
            }
        };
        written.expect("it fits");
        let change = datagram.iter().zip(&sealed).any(|(&change, _)| change != 0);
        let mut changed = sealed.clone();
        changed.iter_mut().zip(datagram).for_each(|(byte, change)| *byte ^= change);
        let result = keyed.open(&mut changed, at()).map(|_| ());
        if change {
            assert!(result.is_err());
        } else {
            assert!(matches!(result, Ok(()) | Err(OpenError::NotAnnounced(_))));
        }
        let let_in = keyed.open(&mut sealed.clone(), at()).is_ok();
        assert!(!let_in || keyed.open(&mut sealed, at()).is_err(), "once");
    }
}

/// Parses a key file. Accepted input encodes and parses to the same value.
pub fn key_file(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(key) = text.parse::<GroupKey>() {
        let again: GroupKey = key.to_line().parse().expect("a key's own line");
        assert_eq!(*again.to_line(), *key.to_line());
    }
    if let Ok(key) = text.parse::<HopKey>() {
        assert_eq!(key.to_line().parse::<HopKey>(), Ok(key));
    }
    if let Ok(key) = text.parse::<SigningKey>() {
        assert_eq!(*key.to_line().parse::<SigningKey>().expect("a key's own line").to_line(), *key.to_line());
    }
    if let Ok(keys) = text.parse::<VerifyKeys>() {
        for key in keys.iter() {
            assert_eq!(key.to_line().parse::<VerifyKeys>(), Ok(VerifyKeys::from(*key)));
        }
    }
    if let Ok(ring) = text.parse::<KeyRing>() {
        assert!((1..=KeyRing::MAX_KEYS).contains(&ring.keys().len()));
    }
}

/// Splits the input into datagrams. Each has one byte of mode, one byte of length, and its content.
fn datagrams(mut input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[mode, len], rest) = input.split_first_chunk()?;
        let (datagram, rest) = rest.split_at(usize::from(len).min(rest.len()));
        input = rest;
        Some((mode, datagram))
    })
}

fn key() -> GroupKey {
    GroupKey::from_bytes([9; 32])
}

fn me() -> ReceiverId {
    ReceiverId::new(5).expect("not zero")
}

fn at() -> SocketAddr {
    "192.0.2.1:4000".parse().expect("an address")
}

fn receiver(key: Option<&GroupKey>) -> ReceiverCodec {
    let mut codec = ReceiverCodec::new(key.map_or(&[], std::slice::from_ref), me(), 0xb007);
    codec.follow(SESSION);
    codec
}

fn report() -> Message<'static> {
    let content = ReportContent::Alive { echo: Echo { seq: Seq(1), hold: Span::ZERO } };
    Message::Report(Report { from: me(), layer: Layer(0), content })
}

fn data(seq: u64, payload: &[u8]) -> DataPacket<'_> {
    use faircast_core::packet::{Data, Flags, Mark, Payload};
    use faircast_core::time::Time;
    let data = Data {
        seq: Seq(seq),
        sent_at: Time::ZERO,
        rate: 0.0,
        payload: Payload { block: seq as u32, symbol: 2 },
        flags: Flags::default(),
        signal: Signal::None,
        mark: Mark::None,
    };
    DataPacket { data, layer: Layer(0), symbols: 3, payload }
}

fn announce() -> Message<'static> {
    Message::Announce(Announce {
        salt: SALT,
        unix_secs: UNIX_SECS,
        started: 1,
        source: at(),
        parent: at(),
        transfer: TransferId([3; 16]),
        stream_len: None,
        manifest_len: 1,
        symbol_size: 1_400,
        packet_size: 1_500,
        symbols_per_block: 100,
        first_block: 0,
        next_seq: 0,
        scheme: 0,
        hops: 0,
        spread_ms: 100,
        flags: 0,
        name: Name::EMPTY,
        layers: 1,
        options: Name::EMPTY,
        to_hosts: Name::EMPTY,
        series: None,
        dry_run: None,
        signer: 0,
        signature: None,
    })
}
