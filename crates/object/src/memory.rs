//! Files in memory instead of on a disk.

use super::manifest::{Kind, Manifest, ManifestError};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file in memory.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryFile {
    /// Its name or path in the transfer.
    pub name: String,
    /// Its content.
    pub bytes: Arc<[u8]>,
}

impl MemoryFile {
    /// Creates a file of this name.
    pub fn new(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> MemoryFile {
        MemoryFile { name: name.into(), bytes: bytes.into() }
    }
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFile").field("name", &self.name).field("bytes", &self.bytes.len()).finish()
    }
}

/// Received files in memory. Clones share the same memory: pass one clone to a session, and take the files from another clone
/// after the session has ended. Directories and links are not stored.
#[derive(Clone)]
pub struct Memory {
    limit: u64,
    stored: Arc<Mutex<StoredFiles>>,
}

#[derive(Default)]
struct StoredFiles {
    files: Vec<MemoryFile>,
    bytes: u64,
}

impl Memory {
    /// Creates memory for `limit` bytes of content in total. A session with more content fails. Content that arrives out of order
    /// takes additional memory: at most `limit` bytes, or 4 MiB if `limit` is smaller.
    pub fn new(limit: u64) -> Memory {
        Memory { limit, stored: Arc::default() }
    }

    /// Returns the maximum number of bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Takes the complete, verified files, in the order of their names, and the received parts of streams. Afterwards the memory
    /// is empty and can be used again.
    pub fn take(&self) -> Vec<MemoryFile> {
        let mut stored = self.lock();
        stored.bytes = 0;
        std::mem::take(&mut stored.files)
    }

    /// Creates a buffer that collects the bytes of an object until the object is complete. The first `free` bytes of the object
    /// are not content and do not count against the limit.
    pub fn gather(&self, free: u64) -> Gathering {
        Gathering { memory: self.clone(), free, bytes: Arc::default() }
    }

    /// Creates a stream. When the stream is dropped, its bytes become a file of this name, even if the stream is incomplete.
    pub fn stream(&self, name: impl Into<String>) -> MemoryStream {
        MemoryStream { gathering: self.gather(0), name: name.into() }
    }

    fn keep(&self, files: Vec<MemoryFile>) {
        self.lock().files.extend(files);
    }

    /// Reserves this number of bytes.
    fn claim(&self, bytes: u64) -> io::Result<()> {
        let mut stored = self.lock();
        let all = stored.bytes + bytes;
        if all > self.limit {
            return Err(io::Error::other(format!(
                "the content exceeds its memory limit of {} bytes",
                self.limit
            )));
        }
        stored.bytes = all;
        Ok(())
    }

    fn release(&self, bytes: u64) {
        let mut stored = self.lock();
        stored.bytes = stored.bytes.saturating_sub(bytes);
    }

    /// Locks the files. A poisoned lock is safe, because a panicking thread never leaves an incomplete file in the list.
    fn lock(&self) -> MutexGuard<'_, StoredFiles> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl PartialEq for Memory {
    fn eq(&self, other: &Memory) -> bool {
        Arc::ptr_eq(&self.stored, &other.stored)
    }
}

/// The bytes of an object stream, beginning with the manifest. The content counts against the limit of its [`Memory`].
#[derive(Clone)]
pub struct Gathering {
    memory: Memory,
    free: u64,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Gathering {
    /// Splits the bytes, which are complete and verified, into files and stores the files. Returns the number of files.
    ///
    /// # Errors
    /// When the manifest is not valid.
    pub fn split(&self, manifest_len: u32) -> Result<u64, ManifestError> {
        let bytes = std::mem::take(&mut *self.lock());
        let (head, mut rest) = bytes.split_at((manifest_len as usize).min(bytes.len()));
        let manifest = Manifest::decode(head)?;
        let mut files: Vec<MemoryFile> = Vec::new();
        // Index in `files` of each entry's file.
        let mut placed = BTreeMap::new();
        for (n, entry) in (0..).zip(manifest.entries()) {
            let len = match &entry.kind {
                Kind::File { size } => (*size).min(rest.len() as u64) as usize,
                Kind::Stream => rest.len(),
                Kind::HardLink { to } => {
                    if let Some(at) = placed.get(to) {
                        let bytes: &MemoryFile = &files[*at];
                        let bytes = Arc::clone(&bytes.bytes);
                        files.push(MemoryFile { name: entry.name().into_owned(), bytes });
                    }
                    continue;
                }
                Kind::Dir | Kind::Symlink { .. } => continue,
            };
            let (content, after) = rest.split_at(len);
            placed.insert(n, files.len());
            files.push(MemoryFile::new(entry.name(), content));
            rest = after;
        }
        let count = files.len() as u64;
        self.memory.keep(files);
        Ok(count)
    }

    /// Takes all bytes.
    pub fn take_bytes(&self) -> Vec<u8> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Gathering {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut bytes = self.lock();
        let content = (bytes.len() + data.len()) as u64;
        let before = (bytes.len() as u64).saturating_sub(self.free);
        self.memory.claim(content.saturating_sub(self.free) - before)?;
        bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A session that failed releases its memory.
impl Drop for Gathering {
    fn drop(&mut self) {
        if Arc::strong_count(&self.bytes) == 1 {
            let gathered = self.lock().len() as u64;
            self.memory.release(gathered.saturating_sub(self.free));
        }
    }
}

/// A stream in memory.
pub struct MemoryStream {
    gathering: Gathering,
    name: String,
}

impl Write for MemoryStream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.gathering.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for MemoryStream {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut *self.gathering.lock());
        self.gathering.memory.keep(vec![MemoryFile::new(std::mem::take(&mut self.name), bytes)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entry;

    fn names(memory: &Memory) -> Vec<(String, Vec<u8>)> {
        memory.take().into_iter().map(|file| (file.name, file.bytes.to_vec())).collect()
    }

    #[test]
    fn incomplete_object_in_memory_yields_no_files() {
        let file = |path: &str, size| Entry::new(path, Kind::File { size }, 0o644, 0);
        let dir = Entry::new("d", Kind::Dir, 0o755, 0);
        let manifest = Manifest::new(vec![file("d/two", 3), dir, file("one", 2)]).expect("it is in order");
        let mut stream = manifest.encode();
        let manifest_len = stream.len() as u32;
        stream.extend_from_slice(b"twoab");
        let memory = Memory::new(5);
        let mut gathering = memory.gather(manifest_len.into());
        gathering.write_all(&stream).expect("there is room");
        drop(gathering.clone());
        assert!(memory.take().is_empty());
        assert_eq!(gathering.split(manifest_len).expect("a manifest"), 2);
        assert_eq!(names(&memory), [("d/two".into(), b"two".to_vec()), ("one".into(), b"ab".to_vec())]);
    }

    #[test]
    fn dropped_object_that_exceeds_the_limit_releases_its_memory() {
        let memory = Memory::new(10);
        let mut first = memory.gather(0);
        first.write_all(&[0; 10]).expect("just enough");
        let error = first.write_all(&[0]).expect_err("too much");
        assert!(error.to_string().contains("memory limit of 10 bytes"), "{error}");
        drop(first);
        memory.stream("again").write_all(&[1; 10]).expect("the room is there again");
        assert_eq!(names(&memory), [("again".into(), vec![1; 10])]);
    }
}
