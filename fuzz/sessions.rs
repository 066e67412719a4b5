//! The fuzz targets `sessions`, `relays` and `layers`. The tests of `faircast-transport` replay the corpus
//! through the same functions.

#[path = "checksum.rs"]
mod checksum;

use std::path::Path;

/// A source, a receiver and a bad network between them, in an empty directory.
pub fn sessions(input: &[u8], scratch: &Path) {
    faircast_transport::fuzzing::sessions(input, scratch, checksum::correct);
}

/// A relay, agent or hop between those who mean harm.
pub fn relays(input: &[u8], scratch: &Path) {
    faircast_transport::fuzzing::relays(input, scratch, checksum::correct);
}

/// A source in layers, and those who mean harm.
pub fn layers(input: &[u8], scratch: &Path) {
    faircast_transport::fuzzing::layers(input, scratch, checksum::correct);
}
