//! 32-bit numbers and times that have wrapped, and keys that have changed, as in long sessions.

mod common;

use common::{LIMIT, SALT, SESSION, announce, at, data, key, member, receiver, status};
use faircast_core::packet::{Data, Layer, Mark, Payload};
use faircast_core::time::{Span, Time};
use faircast_wire::{
    Announce, DataPacket, GroupKey, Hashes, Member, Message, OpenError, ReceiverCodec, SourceCodec, Status,
};
use std::slice;

const ME: u64 = 0x1122_3344;

/// Number of values of a 32-bit number.
const WRAP: u64 = 1 << 32;

/// The first packet number that a sender seals under its second key, and the first block that is sealed under the second key of
/// symbols.
const TURN: u64 = 1 << 18;
const BLOCK_TURN: u32 = 1 << 12;

fn listener(key: Option<&GroupKey>) -> ReceiverCodec {
    let mut codec = ReceiverCodec::new(key.map_or(&[], slice::from_ref), receiver(ME), 0xb007);
    codec.follow(SESSION);
    codec
}

/// Creates a source that has already sent this number of messages of each kind.
fn source(key: Option<&GroupKey>, sent: u64) -> SourceCodec {
    SourceCodec::new(SESSION, key, SALT).after(sent)
}

fn encoded(source: &mut SourceCodec, message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match message {
        Message::Data(packet) => source.encode_data(&mut out, packet).expect("it fits"),
        other => assert!(source.encode(&mut out, other, LIMIT).is_ok()),
    }
    out
}

/// Creates a receiver that has just received an announcement.
fn joined(source: &mut SourceCodec, key: Option<&GroupKey>, next_seq: u64) -> ReceiverCodec {
    let mut codec = listener(key);
    let announce = Announce { next_seq, ..announce() };
    codec.open(&mut encoded(source, &Message::Announce(announce)), at()).expect("announced");
    codec
}

fn page() -> Message<'static> {
    Message::Hashes(Hashes { first_block: 7, hashes: vec![[3; 32]; 2], signature: [1; 64] })
}

/// Asserts that the packet is admitted, and that a sealed packet is admitted only once.
fn once(receiver: &mut ReceiverCodec, bytes: &[u8], is_sealed: bool) {
    receiver.open(&mut bytes.to_vec(), at()).expect("of this session");
    let mut bytes = bytes.to_vec();
    let again = receiver.open(&mut bytes, at());
    assert!(!is_sealed || matches!(again, Err(OpenError::Replayed(_))), "{again:?}");
}

#[test]
fn status_and_announcement_numbers_wrap_across_key_epochs() {
    let key = key();
    for key in [None, Some(&key)] {
        for start in [TURN, 2 * TURN, WRAP / 2, WRAP, 2 * WRAP] {
            let mut source = source(key, start - 5);
            let mut receiver = joined(&mut source, key, 0);
            for _ in 0..10 {
                once(&mut receiver, &encoded(&mut source, &Message::Announce(announce())), key.is_some());
                once(&mut receiver, &encoded(&mut source, &Message::Status(status())), key.is_some());
                once(&mut receiver, &encoded(&mut source, &page()), key.is_some());
            }
        }
    }
}

#[test]
fn late_joiner_opens_a_status_after_wraps_despite_forgeries() {
    let key = key();
    for laps in 0..4 {
        let mut source = source(Some(&key), laps * WRAP + 12_345);
        let mut receiver = joined(&mut source, Some(&key), 0);
        let bytes = encoded(&mut source, &Message::Status(status()));
        let mut forged = bytes.clone();
        *forged.last_mut().expect("not empty") ^= 1;
        assert_eq!(receiver.open(&mut forged, at()).err(), Some(OpenError::Forged));
        once(&mut receiver, &bytes, true);
        once(&mut receiver, &encoded(&mut source, &Message::Status(status())), true);
        once(&mut receiver, &encoded(&mut source, &page()), true);
    }
    // The source has sent a hundred statuses per second for more than five years. A late joiner refuses its statuses from then
    // on, without any other effect.
    let mut source = source(Some(&key), 4 * WRAP + 12_345);
    let mut receiver = joined(&mut source, Some(&key), 0);
    let bytes = encoded(&mut source, &Message::Status(Status::default()));
    assert_eq!(receiver.open(&mut bytes.clone(), at()).err(), Some(OpenError::Forged));
}

#[test]
fn reordered_data_numbers_wrap_across_key_epochs() {
    let key = key();
    for key in [None, Some(&key)] {
        for start in [TURN, 3 * TURN, WRAP / 2, WRAP, 5 * WRAP] {
            let mut source = source(key, 0);
            let mut receiver = joined(&mut source, key, start - 8);
            let numbers: Vec<u64> = (start - 8..start + 8).collect();
            let packets: Vec<Vec<u8>> = numbers
                .iter()
                .map(|seq| encoded(&mut source, &Message::Data(data(*seq, Mark::None))))
                .collect();
            // The packets of each pair arrive in reverse order.
            for (seq, bytes) in numbers
                .chunks(2)
                .zip(packets.chunks(2))
                .flat_map(|(seqs, bytes)| seqs.iter().zip(bytes).rev().collect::<Vec<_>>())
            {
                let mut copy = bytes.clone();
                let opened = receiver.open(&mut copy, at()).map(|(_, message)| message);
                assert_eq!(opened, Ok(Message::Data(data(*seq, Mark::None))), "{start}");
                assert!(key.is_none() || receiver.open(&mut bytes.clone(), at()).is_err(), "once");
            }
        }
    }
}

#[test]
fn symbols_of_several_key_epochs_open_in_any_order() {
    let key = key();
    let mut source = source(Some(&key), 0);
    let mut member = joined(&mut source, Some(&key), 0);
    let blocks = [BLOCK_TURN, 0, BLOCK_TURN - 1, 7 * BLOCK_TURN, 1, u32::MAX - 1, BLOCK_TURN];
    for (seq, block) in blocks.into_iter().enumerate() {
        let packet = data(seq as u64 + 1, Mark::None);
        let place = Payload { block, symbol: 3 };
        let packet = DataPacket { data: Data { payload: place, ..packet.data }, ..packet };
        let mut bytes = encoded(&mut source, &Message::Data(packet));
        assert_eq!(member.open(&mut bytes, at()), Ok((SESSION, Message::Data(packet))), "block {block}");
    }
}

#[test]
fn packets_of_layers_at_different_key_epochs_open() {
    let key = key();
    let mut source = source(Some(&key), 0);
    let mut receiver = joined(&mut source, Some(&key), TURN * 9);
    let upper_seqs = (1..9).map(|layer| TURN * (9 - layer)).collect();
    let status = Status { upper_seqs, ..Status::default() };
    receiver.open(&mut encoded(&mut source, &Message::Status(status)), at()).expect("of this session");
    for round in 0..3 {
        for layer in 0..9 {
            let packet =
                DataPacket { layer: Layer(layer), ..data(TURN * (9 - u64::from(layer)) + round, Mark::None) };
            let mut bytes = encoded(&mut source, &Message::Data(packet));
            assert_eq!(
                receiver.open(&mut bytes, at()),
                Ok((SESSION, Message::Data(packet))),
                "layer {layer}"
            );
        }
    }
}

#[test]
fn feedback_numbers_wrap_across_key_epochs() {
    let key = key();
    for key in [None, Some(&key)] {
        for start in [TURN, WRAP / 2, WRAP] {
            let mut source = source(key, 0);
            let mut receiver = joined(&mut source, key, 0).after(start - 5);
            for _ in 0..10 {
                let (mut out, encoded) = (Vec::new(), Member { from: common::receiver(ME), ..member() });
                receiver.encode(&mut out, SESSION, &Message::Member(encoded)).expect("it fits");
                source.open(&mut out.clone(), at()).expect("of a receiver");
                assert!(matches!(source.open(&mut out, at()), Err(OpenError::Replayed(_))), "{start}");
            }
        }
    }
}

#[test]
fn departure_time_is_exact_after_any_silence() {
    let key = key();
    let minutes = |minutes: u64| Span::from_secs(60 * minutes);
    for key in [None, Some(&key)] {
        let mut source = source(key, 0);
        let mut receiver = joined(&mut source, key, 0);
        let (mut sent_at, mut seq) = (Time::ZERO + minutes(3), 100);
        // The receiver's clock runs faster than the source's clock, and it started earlier.
        let here = |sent_at: Time| Time::ZERO + minutes(1_000) + sent_at.since(Time::ZERO).scaled(1.000_1);
        let mut first = None;
        for silence in [0, 1, 35, 36, 71, 72, 100, 24 * 60, 7 * 24 * 60, 5] {
            sent_at += minutes(silence);
            seq += 1;
            let packet = data(seq, Mark::None);
            let packet = DataPacket { data: Data { sent_at, ..packet.data }, ..packet };
            let mut bytes = encoded(&mut source, &Message::Data(packet));
            receiver.set_now(here(sent_at));
            let Ok((_, Message::Data(read))) = receiver.open(&mut bytes, at()) else {
                panic!("of this session")
            };
            // The number of wraps before the first packet is unknown, so only differences of times are compared.
            let (first_read, first_sent) = *first.get_or_insert((read.data.sent_at, sent_at));
            assert_eq!(
                read.data.sent_at.since(first_read),
                sent_at.since(first_sent),
                "after {silence} minutes"
            );
        }
    }
}
