//! The door to the disk: what receivers create, write, rename, flush and remove goes through here, as descriptors and offsets.
//!
//! Each function is the system's own of the same name. With the feature `simulation` a [`Disk`](door::Disk) may stand in the door
//! of a thread: a simulated world that makes writes tear, disks fill up, and machines lose their power.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FallocateFlags, Gid, Mode, OFlags, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

#[cfg(feature = "simulation")]
pub(crate) mod door;

#[cfg(feature = "simulation")]
pub(crate) use door::{Mistake, is_watched, makes};
#[cfg(feature = "simulation")]
use door::{Op, ask};

/// Whoever stands in the door may refuse.
macro_rules! ask {
    ($op:ident) => {
        #[cfg(feature = "simulation")]
        ask(Op::$op)?
    };
}

/// Write all of it at this offset.
pub(crate) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    #[cfg(feature = "simulation")]
    if let Some((part, error)) = door::ask_to_write(file, bytes.len(), at)? {
        file.write_all_at(&bytes[..part.min(bytes.len())], at)?;
        return Err(error);
    }
    file.write_all_at(bytes, at)
}

/// Read until `buf` is full or the file ends; how many bytes were read.
pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    ask!(Read);
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

pub(crate) fn set_len(file: &File, len: u64) -> io::Result<()> {
    #[cfg(feature = "simulation")]
    ask(Op::Cut { file, len })?;
    file.set_len(len)
}

pub(crate) fn sync_all(file: &File) -> io::Result<()> {
    #[cfg(feature = "simulation")]
    ask(Op::Sync { file })?;
    file.sync_all()
}

pub(crate) fn openat(dir: impl AsFd, name: impl Arg, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    ask!(Open);
    rustix::fs::openat(dir, name, flags, mode)
}

pub(crate) fn mkdirat(dir: impl AsFd, name: impl Arg, mode: Mode) -> Result<(), Errno> {
    ask!(Make);
    rustix::fs::mkdirat(dir, name, mode)
}

pub(crate) fn renameat(from: impl AsFd, old: impl Arg, to: impl AsFd, new: impl Arg) -> Result<(), Errno> {
    ask!(Rename);
    rustix::fs::renameat(from, old, to, new)
}

pub(crate) fn unlinkat(dir: impl AsFd, name: impl Arg, flags: AtFlags) -> Result<(), Errno> {
    ask!(Remove);
    rustix::fs::unlinkat(dir, name, flags)
}

pub(crate) fn chmodat(dir: impl AsFd, name: impl Arg, mode: Mode) -> Result<(), Errno> {
    ask!(Mark);
    rustix::fs::chmodat(dir, name, mode, AtFlags::empty())
}

pub(crate) fn fchmod(fd: impl AsFd, mode: Mode) -> Result<(), Errno> {
    ask!(Mark);
    rustix::fs::fchmod(fd, mode)
}

pub(crate) fn futimens(fd: impl AsFd, times: &Timestamps) -> Result<(), Errno> {
    ask!(Mark);
    rustix::fs::futimens(fd, times)
}

pub(crate) fn utimensat(dir: impl AsFd, name: impl Arg, times: &Timestamps) -> Result<(), Errno> {
    ask!(Mark);
    rustix::fs::utimensat(dir, name, times, AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) fn symlinkat(target: impl Arg, dir: impl AsFd, name: impl Arg) -> Result<(), Errno> {
    ask!(Make);
    rustix::fs::symlinkat(target, dir, name)
}

pub(crate) fn fchown(fd: impl AsFd, owner: Option<Uid>, group: Option<Gid>) -> Result<(), Errno> {
    ask!(Mark);
    rustix::fs::fchown(fd, owner, group)
}

/// Of a link, not of what it leads to.
pub(crate) fn chownat(
    dir: impl AsFd,
    name: impl Arg,
    owner: Option<Uid>,
    group: Option<Gid>,
) -> Result<(), Errno> {
    ask!(Mark);
    rustix::fs::chownat(dir, name, owner, group, AtFlags::SYMLINK_NOFOLLOW)
}

pub(crate) fn fsetxattr(fd: impl AsFd, name: impl Arg, value: &[u8]) -> Result<(), Errno> {
    ask!(Mark);
    rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty())
}

/// One more name for a file, in the same directory.
pub(crate) fn linkat(dir: impl AsFd, old: impl Arg, new: impl Arg) -> Result<(), Errno> {
    ask!(Make);
    let dir = dir.as_fd();
    rustix::fs::linkat(dir, old, dir, new, AtFlags::empty())
}

/// Flush a directory.
pub(crate) fn fsync(dir: impl AsFd) -> Result<(), Errno> {
    ask!(Flush);
    rustix::fs::fsync(dir)
}

/// Reserve room from the beginning of a file on.
pub(crate) fn reserve(file: &File, len: u64) -> Result<(), Errno> {
    ask!(Reserve);
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len)
}

/// Bytes that are free where this directory is.
pub(crate) fn available(dir: impl AsFd) -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(free) = door::free() {
        return free;
    }
    rustix::fs::fstatvfs(dir).map_or(u64::MAX, |fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}

/// Bytes that are free where this path is, if it is anywhere.
pub(crate) fn available_at(path: &Path) -> Option<u64> {
    #[cfg(feature = "simulation")]
    if let Some(free) = door::free() {
        return Some(free);
    }
    rustix::fs::statvfs(path).ok().map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize))
}
