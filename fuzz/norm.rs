//! The fuzz target for messages of NORM. A test of `faircast-norm` replays the corpus through it.

use faircast_norm::codec;

/// Parses any bytes as a message. An accepted message encodes and parses to the same value.
pub fn norm(input: &[u8]) {
    let Ok(message) = codec::parse(input) else { return };
    let mut again = Vec::new();
    codec::encode(&mut again, &message);
    assert_eq!(codec::parse(&again), Ok(message));
}
