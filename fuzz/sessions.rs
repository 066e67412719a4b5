//! What the target `sessions` does with its input. The tests of `faircast-transport` replay the corpus
//! through the same function.

#[path = "checksum.rs"]
mod checksum;

use std::path::Path;

/// A source, a receiver and a bad network between them, in an empty directory.
pub fn sessions(input: &[u8], scratch: &Path) {
    faircast_transport::fuzzing::sessions(input, scratch, checksum::correct);
}
