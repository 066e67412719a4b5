//! Codecs of a source, of a receiver, and of a relay between them.

use super::*;
use faircast_wire::{ReceiverCodec, SourceCodec};
use std::slice;

pub const ME: u64 = 0x1122_3344;

/// Creates a source that has announced its session.
pub fn source(key: Option<&GroupKey>) -> SourceCodec {
    let mut codec = SourceCodec::new(SESSION, key, SALT);
    encoded(&mut codec, &Message::Announce(announce()));
    codec
}

pub fn listener(key: Option<&GroupKey>) -> ReceiverCodec {
    let mut codec = ReceiverCodec::new(key.map_or(&[], slice::from_ref), receiver(ME), 0xb007);
    codec.follow(SESSION);
    codec
}

/// Creates a receiver that has received the announcement.
pub fn joined(source: &mut SourceCodec, key: Option<&GroupKey>) -> ReceiverCodec {
    let mut codec = listener(key);
    codec.open(&mut encoded(source, &Message::Announce(announce())), at()).expect("announced");
    codec
}

pub fn encoded(source: &mut SourceCodec, message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match message {
        Message::Data(packet) => source.encode_data(&mut out, packet).expect("it fits"),
        other => assert!(source.encode(&mut out, other, LIMIT).is_ok()),
    }
    out
}

pub fn answered(codec: &mut ReceiverCodec, message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    codec.encode(&mut out, SESSION, message).expect("it fits");
    out
}

pub fn numbered(seq: u64) -> DataPacket<'static> {
    data(seq, Mark::None)
}

pub fn damaged(bytes: &[u8], mut try_open: impl FnMut(&mut [u8])) {
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        try_open(&mut flipped);
    }
    for len in 0..bytes.len() {
        try_open(&mut bytes[..len].to_vec());
    }
}

/// Returns the sealed symbol of a packet, as a relay forwards it.
pub fn symbol_of(relay: &mut ReceiverCodec, mut packet: Vec<u8>) -> Vec<u8> {
    match relay.open(&mut packet, at()) {
        Ok((_, Message::Data(packet))) => packet.payload.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Creates the two codecs of a relay that has received the announcement: towards the source, and towards its children.
pub fn relay(source: &mut SourceCodec, key: &GroupKey) -> (ReceiverCodec, SourceCodec) {
    let mut above = ReceiverCodec::of_relay(Some(&key.hop()), receiver(9), 4);
    above.follow(SESSION);
    let mut announced = encoded(source, &Message::Announce(announce()));
    above.open(&mut announced, at()).expect("announced");
    (above, SourceCodec::of_relay(SESSION, Some(&key.hop()), announce().salt, receiver(9), 5))
}

/// Returns the address of the relay.
pub fn via() -> SocketAddr {
    "192.0.2.9:4009".parse().expect("an address")
}

/// Creates a receiver that has received the relay's announcement.
pub fn below(relay: &mut SourceCodec, key: &GroupKey) -> ReceiverCodec {
    let mut receiver = listener(Some(key));
    let mut ours = encoded(relay, &Message::Announce(Announce { parent: via(), ..announce() }));
    receiver.open(&mut ours, via()).expect("passed on");
    receiver
}
