//! The fuzz target for packets of PGM. A test of `faircast-pgm` replays the corpus through it.

use faircast_pgm::codec::{self, Body, MessageSink, Unframer};

/// Parses any bytes as PGM. Accepted input encodes and parses to the same value.
pub fn pgm(input: &[u8]) {
    let _ = codec::parse(input);
    let mut packet = input.to_vec();
    if packet.len() < codec::HEADER_LEN {
        return;
    }
    let sum = codec::checksum(&packet).to_be_bytes();
    packet[6..8].copy_from_slice(&sum);
    let Ok(read) = codec::parse(&packet) else { return };
    if let Body::Odata(_) | Body::Rdata(_) = read.body {
        let mut lines = Lines::default();
        let _ = Unframer::new(1 << 16).packet(read.payload, &mut lines);
        assert!(lines.0 <= read.payload.len());
    }
    let mut again = Vec::new();
    if let Body::Poll | Body::Polr = read.body {
        return assert!(codec::encode(&mut again, &read).is_err(), "polls are not sent");
    }
    codec::encode(&mut again, &read).expect("what was read can be written");
    assert_eq!(codec::parse(&again).expect("what was written is whole"), read);
}

/// Counts the bytes of messages.
#[derive(Default)]
struct Lines(usize);

impl MessageSink for Lines {
    fn bytes(&mut self, part: &[u8]) {
        self.0 += part.len();
    }
    fn end(&mut self) {}
    fn broken(&mut self) {}
}
