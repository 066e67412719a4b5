//! Blocks in the form in which they are sent. A block has the same bytes at every read.
//!
//! A symbol is encrypted under a number that identifies its position. A position must therefore not have two different contents
//! in one session. A file can change between two reads although its size and time stay the same. The hash of the block that was
//! read again then reveals the change.

use super::block::seal_block;
use super::error::ObjectError;
use super::geometry::{Geometry, Hash};
use super::object_stream::{BlockRead, ObjectStream};
use super::withdrawn::Withdrawal;
use crate::host::disk::Disk;

/// The sealed blocks of an object stream, and the hash of each block at its first read (33 bytes per block).
#[derive(Debug)]
pub struct SealedBlocks {
    object: ObjectStream,
    hashes: Vec<Option<Hash>>,
    /// Withdrawals that the caller has not taken yet.
    withdrawn: Vec<Withdrawal>,
}

impl SealedBlocks {
    /// Creates the sealed blocks of `object`. No block is read yet.
    pub fn new(object: ObjectStream) -> SealedBlocks {
        SealedBlocks { object, hashes: Vec::new(), withdrawn: Vec::new() }
    }

    /// Returns the disk from which files are read.
    pub fn disk(&self) -> &Disk {
        self.object.disk()
    }

    /// Returns the division of the object stream into blocks.
    pub fn geometry(&self) -> Geometry {
        self.object.geometry()
    }

    /// Reads block `index` and seals it in `buf`, whose memory is reused. Returns the number of the block's source symbols and
    /// the block's hash; `None` if the stream has ended before this block.
    ///
    /// # Errors
    /// Those of [`ObjectStream::read_block`]. In addition [`ObjectError::Changed`] or [`ObjectError::ChangedOneOf`] when the
    /// block has changed since its first read.
    pub fn read(&mut self, index: u32, buf: &mut Vec<u8>) -> Result<Option<(u16, Hash)>, ObjectError> {
        let at = index as usize;
        loop {
            if self.object.read_block(index, buf)? == BlockRead::End {
                return Ok(None);
            }
            let (symbols, hash) = seal_block(buf, self.object.geometry().symbol_size);
            self.forget_withdrawn();
            if at >= self.hashes.len() {
                self.hashes.resize(at + 1, None);
            }
            if *self.hashes[at].get_or_insert(hash) == hash {
                return Ok(Some((symbols, hash)));
            }
            buf.clear();
            self.object.withdraw_block(index)?;
            self.forget_withdrawn();
        }
    }

    /// Removes the hashes of blocks that contain bytes of newly withdrawn files, because these blocks now have different content.
    fn forget_withdrawn(&mut self) {
        for withdrawal in self.object.take_withdrawals() {
            let geometry = self.object.geometry();
            if let Some(bytes) = self.object.layout().range_of(withdrawal.entry) {
                let blocks = geometry.block_of(bytes.start)..=geometry.block_of(bytes.end - 1);
                let hashes = self.hashes.iter_mut().take(*blocks.end() as usize + 1);
                hashes.skip(*blocks.start() as usize).for_each(|hash| *hash = None);
            }
            self.withdrawn.push(withdrawal);
        }
    }

    /// Takes the files that were withdrawn since the previous call.
    pub fn take_withdrawals(&mut self) -> Vec<Withdrawal> {
        std::mem::take(&mut self.withdrawn)
    }

    /// Returns the number of withdrawn files.
    pub fn withdrawn(&self) -> usize {
        self.object.withdrawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Change;
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};

    const T: u16 = 64;
    const K: u16 = 4;

    fn file(dir: &Path, name: &str, len: usize) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, vec![7; len]).expect("room for a small file");
        path
    }

    /// Changes one byte of a file, but neither its size nor its time of modification.
    fn change(path: &Path, at: u64) {
        let file = File::options().write(true).open(path).expect("our own file");
        let before = file.metadata().and_then(|meta| meta.modified()).expect("it has a time");
        file.write_all_at(b"!", at).expect("room for what was there");
        file.set_modified(before).expect("our own file");
    }

    fn read_all(blocks: &mut SealedBlocks) -> Result<u32, ObjectError> {
        let mut buf = Vec::new();
        for index in 0.. {
            if blocks.geometry().blocks().is_some_and(|end| index >= end)
                || blocks.read(index, &mut buf)?.is_none()
            {
                return Ok(index);
            }
        }
        unreachable!("blocks end before their numbers do")
    }

    #[test]
    fn changed_file_is_named_when_its_block_is_read_again() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = file(dir.path(), "image", 2_000);
        let mut blocks =
            SealedBlocks::new(ObjectStream::open(std::slice::from_ref(&path), T, K).expect("readable"));
        let end = read_all(&mut blocks).expect("nothing has changed");
        change(&path, 1_999);
        let mut buf = Vec::new();
        assert!(blocks.read(end - 2, &mut buf).is_ok(), "that part is as it was");
        match blocks.read(end - 1, &mut buf) {
            Err(ObjectError::Changed { path: named, change: Change::Content }) => assert_eq!(named, path),
            other => panic!("{other:?}"),
        }
        assert!(buf.is_empty(), "nothing of it is given out");
    }

    #[test]
    fn error_of_a_changed_block_names_the_first_and_last_file_in_it() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let paths = ["a", "b", "c"].map(|name| file(dir.path(), name, 10));
        let mut blocks = SealedBlocks::new(ObjectStream::open(&paths, T, K).expect("readable"));
        read_all(&mut blocks).expect("nothing has changed");
        change(&paths[1], 3);
        let error = read_all(&mut blocks).expect_err("it has changed");
        assert!(matches!(error, ObjectError::ChangedOneOf { files: 3, .. }), "{error:?}");
        let message = error.to_string();
        assert!(paths.iter().step_by(2).all(|path| message.contains(&*path.to_string_lossy())), "{message}");
    }

    #[test]
    fn change_in_the_spool_file_of_a_pipe_is_detected() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let pipe = Box::new(std::io::Cursor::new(vec![7; 1_000]));
        let object = ObjectStream::from_reader(pipe, "pipe", 1, dir.path(), T, K).expect("room");
        let mut blocks = SealedBlocks::new(object);
        read_all(&mut blocks).expect("nothing has changed");
        let spool = fs::read_dir("/proc/self/fd")
            .expect("this process has descriptors")
            .flatten()
            .find(|fd| fs::read_link(fd.path()).is_ok_and(|target| target.starts_with(dir.path())));
        change(&spool.expect("it is kept in a file").path(), 500);
        assert!(matches!(read_all(&mut blocks), Err(ObjectError::Changed { change: Change::Content, .. })));
    }
}
