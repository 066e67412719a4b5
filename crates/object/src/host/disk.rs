//! Access to the disk. Receivers create, write, rename, flush and remove files through a [`Disk`], by descriptor and offset.
//!
//! Each method performs the system call of the same name. A simulated world can interpose [`Faults`]: incomplete writes, full
//! disks, power failures.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    Advice, AtFlags, FallocateFlags, Gid, Mode, OFlags, Timestamps, Uid, XattrFlags, fadvise, fallocate,
    statfs,
};
use rustix::io::Errno;
use rustix::path::Arg;
use std::fmt;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// An operation that a session is about to perform.
#[derive(Debug)]
pub enum Op<'a> {
    /// Open a file or directory, or create it.
    Open,
    /// Make a directory or a link.
    Make,
    /// Read from a file.
    Read,
    /// Write into a file.
    Write {
        /// The file.
        file: &'a File,
        /// Offset of the first byte.
        at: u64,
        /// Bytes to write.
        len: usize,
    },
    /// Set the length of a file.
    Cut {
        /// The file.
        file: &'a File,
        /// New length in bytes.
        len: u64,
    },
    /// Flush a file.
    Sync {
        /// The file.
        file: &'a File,
    },
    /// Flush a directory.
    Flush,
    /// Reserve room for a file.
    Reserve,
    /// Give a file another name.
    Rename,
    /// Remove a file or directory.
    Remove,
    /// Set a mode or a time.
    Mark,
}

/// The outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The operation is performed.
    Done,
    /// The operation fails without an effect.
    Fails(Failure),
    /// The write fails after this number of bytes.
    Torn(usize, Failure),
}

/// Reason for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// `ENOSPC`.
    Full,
    /// `EIO`.
    Broken,
}

/// Decides the outcome of each operation on a disk.
pub trait Faults: Send + Sync {
    /// Returns the verdict on an operation that is about to be performed.
    fn before(&self, op: &Op<'_>) -> Verdict;

    /// Returns the number of free bytes; `None` for the number that the system reports.
    fn free(&self) -> Option<u64> {
        None
    }
}

/// Returns the present time by the clock from which files get their times.
#[allow(
    clippy::disallowed_methods,
    reason = "the time is compared with times that the operating system's clock sets"
)]
pub(crate) fn file_time() -> SystemTime {
    SystemTime::now()
}

/// Number of bytes of a file that are copied at a time.
const COPIED_AT_A_TIME: usize = 1 << 20;

/// Unit of holes in files, and of zeros that a device writes by itself, in bytes.
pub(crate) const HOLE_UNIT: u64 = 4096;

/// Files of this size or more leave the page cache while they are read and written, so that the pages of other programs stay.
const LARGE: u64 = 1 << 30;

/// Number of bytes of a large file that stay in the page cache: those before the last access.
const KEPT: u64 = 64 << 20;

/// The disk of a host.
#[derive(Clone, Default)]
pub struct Disk(Option<Arc<dyn Faults>>);

/// The disk of the system, without faults.
pub static SYSTEM: Disk = Disk(None);

impl Disk {
    /// Creates a disk with interposed faults.
    pub fn with_faults(faults: Arc<dyn Faults>) -> Disk {
        Disk(Some(faults))
    }

    /// Returns whether faults are interposed. If they are, the session performs operations in its own thread, so that runs are
    /// reproducible.
    pub fn has_faults(&self) -> bool {
        self.0.is_some()
    }

    /// Writes all bytes at this offset.
    pub(crate) fn write_all_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        if let Some((part, error)) = self.ask_to_write(file, bytes.len(), at)? {
            file.write_all_at(&bytes[..part.min(bytes.len())], at)?;
            return Err(error);
        }
        file.write_all_at(bytes, at)
    }

    /// Makes a range of a file or block device zeros. Frees the space of the range where the filesystem or the device can;
    /// otherwise writes zeros over other bytes.
    pub(crate) fn zero(&self, file: &File, range: Range<u64>) -> io::Result<()> {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        if let Some((_, error)) = self.ask_to_write(file, len, range.start)? {
            return Err(error);
        }
        let whole = range.start.next_multiple_of(HOLE_UNIT)..range.end / HOLE_UNIT * HOLE_UNIT;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if whole.is_empty() || fallocate(file, flags, whole.start, whole.end - whole.start).is_err() {
            return self.clear(file, range);
        }
        self.clear(file, range.start..whole.start)?;
        self.clear(file, whole.end..range.end)
    }

    /// Writes zeros over the other bytes of a range.
    fn clear(&self, file: &File, range: Range<u64>) -> io::Result<()> {
        let (mut at, mut bytes) = (range.start, Vec::new());
        while at < range.end {
            bytes.resize((range.end - at).min(COPIED_AT_A_TIME as u64) as usize, 0);
            let have = self.read_at(file, &mut bytes, at)?;
            if bytes[..have].iter().any(|byte| *byte != 0) {
                bytes.fill(0);
                self.write_all_at(file, &bytes[..have], at)?;
            }
            if have < bytes.len() {
                return Ok(()); // zeros follow the end of a file
            }
            at += have as u64;
        }
        Ok(())
    }

    /// Writes all bytes at this offset; units of zeros become holes.
    pub(crate) fn write_sparse_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        let is_hole = |run: &(usize, usize)| {
            let unit = &bytes[run.0..run.1];
            unit.len() as u64 == HOLE_UNIT && unit.iter().all(|byte| *byte == 0)
        };
        let first = (at.next_multiple_of(HOLE_UNIT) - at) as usize;
        let starts = std::iter::once(0).chain((first..bytes.len()).step_by(HOLE_UNIT as usize));
        let ends = (first..bytes.len()).step_by(HOLE_UNIT as usize).chain([bytes.len()]);
        let units: Vec<(usize, usize)> = starts.zip(ends).filter(|(from, to)| from < to).collect();
        for run in units.chunk_by(|a, b| is_hole(a) == is_hole(b)) {
            let (from, to) = (run[0].0, run[run.len() - 1].1);
            match is_hole(&run[0]) {
                true => self.zero(file, at + from as u64..at + to as u64)?,
                false => self.write_all_at(file, &bytes[from..to], at + from as u64)?,
            }
        }
        Ok(())
    }

    /// Reads until `buf` is full or the file ends, and returns the number of bytes read.
    ///
    /// # Errors
    /// When the system cannot read.
    pub fn read_at(&self, file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.ask(&Op::Read)?;
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

    /// Begins to write the pages of a range to the disk, if the file is large.
    pub(crate) fn write_back(&self, file: &File, size: u64, range: Range<u64>) {
        if size >= LARGE {
            // For pages that are not on the disk, this advice begins to write them.
            let len = NonZeroU64::new(range.end - range.start);
            fadvise(file, range.start, len, Advice::DontNeed).ok();
            self.release(file, size, range.start);
        }
    }

    /// Removes the pages of a large file from the page cache, except the last ones before the offset `to`, and those that are
    /// not on the disk yet.
    pub(crate) fn release(&self, file: &File, size: u64, to: u64) {
        if let Some(len) = NonZeroU64::new(to.saturating_sub(KEPT)).filter(|_| size >= LARGE) {
            fadvise(file, 0, Some(len), Advice::DontNeed).ok();
        }
    }

    pub(crate) fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        self.ask(&Op::Cut { file, len })?;
        file.set_len(len)
    }

    pub(crate) fn sync_all(&self, file: &File) -> io::Result<()> {
        self.ask(&Op::Sync { file })?;
        file.sync_all()
    }

    pub(crate) fn openat(
        &self,
        dir: impl AsFd,
        name: impl Arg,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        self.ask(&Op::Open)?;
        rustix::fs::openat(dir, name, flags, mode)
    }

    pub(crate) fn mkdirat(&self, dir: impl AsFd, name: impl Arg, mode: Mode) -> Result<(), Errno> {
        self.ask(&Op::Make)?;
        rustix::fs::mkdirat(dir, name, mode)
    }

    pub(crate) fn renameat(
        &self,
        from: impl AsFd,
        old: impl Arg,
        to: impl AsFd,
        new: impl Arg,
    ) -> Result<(), Errno> {
        self.ask(&Op::Rename)?;
        rustix::fs::renameat(from, old, to, new)
    }

    pub(crate) fn unlinkat(&self, dir: impl AsFd, name: impl Arg, flags: AtFlags) -> Result<(), Errno> {
        self.ask(&Op::Remove)?;
        rustix::fs::unlinkat(dir, name, flags)
    }

    pub(crate) fn chmodat(&self, dir: impl AsFd, name: impl Arg, mode: Mode) -> Result<(), Errno> {
        self.ask(&Op::Mark)?;
        rustix::fs::chmodat(dir, name, mode, AtFlags::empty())
    }

    pub(crate) fn fchmod(&self, fd: impl AsFd, mode: Mode) -> Result<(), Errno> {
        self.ask(&Op::Mark)?;
        rustix::fs::fchmod(fd, mode)
    }

    pub(crate) fn futimens(&self, fd: impl AsFd, times: &Timestamps) -> Result<(), Errno> {
        self.ask(&Op::Mark)?;
        rustix::fs::futimens(fd, times)
    }

    pub(crate) fn utimensat(&self, dir: impl AsFd, name: impl Arg, times: &Timestamps) -> Result<(), Errno> {
        self.ask(&Op::Mark)?;
        rustix::fs::utimensat(dir, name, times, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn symlinkat(&self, target: impl Arg, dir: impl AsFd, name: impl Arg) -> Result<(), Errno> {
        self.ask(&Op::Make)?;
        rustix::fs::symlinkat(target, dir, name)
    }

    pub(crate) fn fchown(&self, fd: impl AsFd, owner: Option<Uid>, group: Option<Gid>) -> Result<(), Errno> {
        self.ask(&Op::Mark)?;
        rustix::fs::fchown(fd, owner, group)
    }

    /// Changes the owner of a link itself, not of its target.
    pub(crate) fn chownat(
        &self,
        dir: impl AsFd,
        name: impl Arg,
        owner: Option<Uid>,
        group: Option<Gid>,
    ) -> Result<(), Errno> {
        self.ask(&Op::Mark)?;
        rustix::fs::chownat(dir, name, owner, group, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn fsetxattr(&self, fd: impl AsFd, name: impl Arg, value: &[u8]) -> Result<(), Errno> {
        self.ask(&Op::Mark)?;
        rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty())
    }

    /// Gives a file a further name in the same directory.
    pub(crate) fn linkat(&self, dir: impl AsFd, old: impl Arg, new: impl Arg) -> Result<(), Errno> {
        self.ask(&Op::Make)?;
        let dir = dir.as_fd();
        rustix::fs::linkat(dir, old, dir, new, AtFlags::empty())
    }

    /// Flushes a directory.
    pub(crate) fn fsync(&self, dir: impl AsFd) -> Result<(), Errno> {
        self.ask(&Op::Flush)?;
        rustix::fs::fsync(dir)
    }

    /// Copies the content of a file into an empty file. The copy shares the blocks of the disk where the filesystem permits it.
    pub(crate) fn copy(&self, from: &File, to: &File) -> io::Result<()> {
        self.ask(&Op::Reserve)?;
        if rustix::fs::ioctl_ficlone(to, from).is_ok() {
            return Ok(());
        }
        let (mut at, mut bytes) = (0, vec![0; COPIED_AT_A_TIME]);
        loop {
            let have = self.read_at(from, &mut bytes, at)?;
            self.write_all_at(to, &bytes[..have], at)?;
            at += have as u64;
            if have < bytes.len() {
                return Ok(());
            }
        }
    }

    /// Reserves space for the first `len` bytes of a file.
    pub(crate) fn reserve(&self, file: &File, len: u64) -> Result<(), Errno> {
        self.ask(&Op::Reserve)?;
        fallocate(file, FallocateFlags::empty(), 0, len)
    }

    /// Returns the number of free bytes on the filesystem of this directory.
    pub(crate) fn available(&self, dir: impl AsFd) -> u64 {
        if let Some(free) = self.0.as_ref().and_then(|faults| faults.free()) {
            return free;
        }
        rustix::fs::fstatvfs(dir).map_or(u64::MAX, |fs| fs.f_bavail.saturating_mul(fs.f_frsize))
    }

    /// Returns the error of the interposed faults, if the operation must fail.
    fn ask(&self, op: &Op<'_>) -> Result<(), Errno> {
        match self.verdict(op) {
            Verdict::Done => Ok(()),
            Verdict::Fails(why) | Verdict::Torn(_, why) => Err(why.errno()),
        }
    }

    /// Returns an error if the write must fail without writing a byte. Returns `Some` with a number of bytes and an error if the
    /// write must fail after this number of bytes.
    fn ask_to_write(&self, file: &File, len: usize, at: u64) -> io::Result<Option<(usize, io::Error)>> {
        match self.verdict(&Op::Write { file, at, len }) {
            Verdict::Done => Ok(None),
            Verdict::Fails(why) => Err(why.errno().into()),
            Verdict::Torn(part, why) => Ok(Some((part, why.errno().into()))),
        }
    }

    fn verdict(&self, op: &Op<'_>) -> Verdict {
        self.0.as_ref().map_or(Verdict::Done, |faults| faults.before(op))
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

impl Failure {
    fn errno(self) -> Errno {
        match self {
            Failure::Full => Errno::NOSPC,
            Failure::Broken => Errno::IO,
        }
    }
}

/// Returns whether a directory is in memory (`TMPFS_MAGIC` or `RAMFS_MAGIC` of `statfs(2)`). No disk then delays operations on
/// files in the directory.
pub fn is_in_memory(directory: &Path) -> bool {
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    statfs(directory).is_ok_and(|about| IN_MEMORY.contains(&(about.f_type as u64 & 0xffff_ffff)))
}
