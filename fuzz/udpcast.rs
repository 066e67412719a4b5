//! The fuzz target for messages of udpcast. A test of `faircast-udpcast` replays the corpus through it.

use faircast_udpcast::codec;

/// Parses any bytes as a message. An accepted message encodes and parses to the same value.
pub fn udpcast(input: &[u8]) {
    let Ok(message) = codec::parse(input) else { return };
    let mut again = Vec::new();
    codec::encode(&mut again, &message);
    assert_eq!(codec::parse(&again), Ok(message));
}
