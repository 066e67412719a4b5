//! The fuzz targets `sessions`, `relays` and `layers`. The tests of `faircast-transport` replay the corpus
//! through the same functions.

#[path = "checksum.rs"]
mod checksum;

use std::path::Path;

/// Runs a source and a receiver in an empty directory, with a faulty network between them.
pub fn sessions(input: &[u8], scratch: &Path) {
    faircast_transport::fuzzing::sessions(input, scratch, checksum::correct);
}

/// Runs a relay, agent or hop between malicious peers.
pub fn relays(input: &[u8], scratch: &Path) {
    faircast_transport::fuzzing::relays(input, scratch, checksum::correct);
}

/// Runs a source with layers against malicious peers.
pub fn layers(input: &[u8], scratch: &Path) {
    faircast_transport::fuzzing::layers(input, scratch, checksum::correct);
}
