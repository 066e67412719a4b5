//! A file in memory, sent or received.

use std::fmt;
use std::sync::Arc;

/// A file in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// Its name or path, as in the transfer.
    pub name: String,
    /// Its content.
    pub bytes: Arc<[u8]>,
}

impl MemoryFile {
    /// A file of this name.
    pub fn new(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> MemoryFile {
        MemoryFile { name: name.into(), bytes: bytes.into() }
    }
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFile").field("name", &self.name).field("bytes", &self.bytes.len()).finish()
    }
}
