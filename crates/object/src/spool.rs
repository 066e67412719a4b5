//! Storage of a stream at its source, for repairs and late joiners.

use super::error::ObjectError;
use crate::host::disk::Disk;
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Reads a stream once and stores all its bytes in a temporary file without a name, which vanishes with the process.
pub struct Spool {
    reader: Box<dyn Read + Send>,
    stored: File,
    dir: PathBuf,
    len: u64,
    ended: Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    No,
    Yes,
}

impl Spool {
    /// Creates a spool that stores the bytes of `reader` in the directory `dir`. The directory needs free space for the whole
    /// stream.
    ///
    /// # Errors
    /// When no file can be created there.
    pub fn new(reader: Box<dyn Read + Send>, dir: &Path) -> Result<Spool, ObjectError> {
        let failed = |e: io::Error| ObjectError::io(dir, "create a temporary file in it", e);
        let stored = nameless(dir).map_err(failed)?;
        Ok(Spool { reader, stored, dir: dir.to_path_buf(), len: 0, ended: Ended::No })
    }

    /// Returns the number of bytes read so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether no byte has been read so far.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the length of the stream in bytes; `None` before the stream has ended.
    pub fn total(&self) -> Option<u64> {
        (self.ended == Ended::Yes).then_some(self.len)
    }

    /// Fills `buf` with the bytes of the stream that begin at `offset`. Returns the number of bytes, which is smaller only at the
    /// end of the stream. Waits indefinitely for bytes that have not arrived yet.
    ///
    /// # Errors
    /// When the stream cannot be read or stored.
    pub fn read_at(&mut self, buf: &mut [u8], offset: u64) -> Result<usize, ObjectError> {
        let (want, before) = (offset + buf.len() as u64, self.len);
        let mut aside = Vec::new();
        while self.len < want && self.ended == Ended::No {
            // Usually the caller reads the bytes that arrive next, so these are read directly into `buf`.
            let room = match self.len.checked_sub(offset) {
                Some(at) => &mut buf[at as usize..],
                None => {
                    aside.resize((offset - self.len).min(1 << 20) as usize, 0);
                    &mut aside[..]
                }
            };
            match self.reader.read(room) {
                Ok(0) => self.ended = Ended::Yes,
                Ok(n) => {
                    let keep = self.stored.write_all_at(&room[..n], self.len);
                    keep.map_err(|e| ObjectError::writing(&self.dir, "store the stream in it", e, n as u64))?;
                    self.len += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(ObjectError::io("-", "read the stream", e)),
            }
        }
        let len = |end: u64| end.saturating_sub(offset).min(buf.len() as u64) as usize;
        let (len, stored) = (len(self.len), len(before));
        let failed = |e| ObjectError::io(&self.dir, "read the stored stream", e);
        Disk::default().read_at(&self.stored, &mut buf[..stored], offset).map_err(failed)?;
        Ok(len)
    }
}

/// Creates a file without a name in `dir`. The file vanishes when its last descriptor is closed.
pub fn nameless(dir: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(dir, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(fd) => Ok(fd.into()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            // The filesystem does not support files without a name: create a named file and unlink it.
            let path = dir.join(format!(".faircast-spool-{}", std::process::id()));
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        Err(e) => Err(e.into()),
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool").field("len", &self.len).field("ended", &self.ended).finish_non_exhaustive()
    }
}
