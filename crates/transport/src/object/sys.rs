//! Files by descriptor: a few open ones kept at hand, whole reads and writes at offsets.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// How many files an object stream or store keeps open.
const OPEN_FILES: usize = 64;

/// The files used last, by entry of the manifest.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    /// Most recently used first.
    files: Vec<(u32, File)>,
}

impl OpenFiles {
    /// The file of this entry, opened with `open` if it is not at hand.
    pub(crate) fn get<E>(&mut self, entry: u32, open: impl FnOnce() -> Result<File, E>) -> Result<&File, E> {
        match self.files.iter().position(|&(at_hand, _)| at_hand == entry) {
            Some(0) => {}
            Some(n) => self.files[..=n].rotate_right(1),
            None => {
                let file = open()?;
                self.files.truncate(OPEN_FILES - 1);
                self.files.insert(0, (entry, file));
            }
        }
        Ok(&self.files[0].1)
    }

    /// Close all.
    pub(crate) fn clear(&mut self) {
        self.files.clear();
    }
}

/// Read until `buf` is full or the file ends; how many bytes were read.
pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}
