//! Directories below an output directory. Each directory is opened relative to its parent and never through a symbolic link.

use crate::error::{ObjectError, Obstacle};
use crate::host::disk::Disk;
use crate::manifest::Entry;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Flags for opening directories.
pub const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The treatment of a directory that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    Create,
    Leave,
}

/// Access to directories below the output directory. The descriptors on the path to the directory opened last stay open.
#[derive(Debug)]
pub struct Tree<'a> {
    disk: &'a Disk,
    out: BorrowedFd<'a>,
    out_path: &'a Path,
    /// Names and descriptors on the path from the output directory to the directory opened last.
    way: Vec<(OsString, OwnedFd)>,
}

impl<'a> Tree<'a> {
    /// Creates the tree below the directory `out` on a disk; errors state `out_path` as its path.
    pub fn new(disk: &'a Disk, out: &'a OwnedFd, out_path: &'a Path) -> Tree<'a> {
        Tree { disk, out: out.as_fd(), out_path, way: Vec::new() }
    }

    /// Opens the directory `path` (the output directory for ""). Returns `None` if it does not exist.
    pub(crate) fn dir(
        &mut self,
        path: &OsStr,
        absent: Absent,
    ) -> Result<Option<BorrowedFd<'_>>, ObjectError> {
        let names = path.as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        let names = names.map(OsStr::from_bytes);
        let same = self
            .way
            .iter()
            .zip(names.clone())
            .take_while(|((have, _), name)| have.as_os_str() == *name)
            .count();
        self.way.truncate(same);
        for name in names.skip(same) {
            let above = self.way.last().map_or(self.out, |(_, fd)| fd.as_fd());
            let opened = match absent {
                Absent::Create => open_or_create(self.disk, above, name, Mode::from_raw_mode(0o777)),
                Absent::Leave => match open_dir(self.disk, above, name) {
                    Err(Errno::NOENT) => return Ok(None),
                    opened => opened.map_err(Refused::Open),
                },
            };
            let fd = opened.map_err(|refused| {
                let path =
                    self.way.iter().fold(self.out_path.to_path_buf(), |path, (name, _)| path.join(name));
                refused.explained(above, name, &path.join(name))
            })?;
            self.way.push((name.to_os_string(), fd));
        }
        Ok(Some(self.way.last().map_or(self.out, |(_, fd)| fd.as_fd())))
    }

    /// Returns the directory that contains an entry, created if necessary, and the name of the entry in this directory.
    pub(crate) fn place_of<'e>(
        &mut self,
        entry: &'e Entry,
    ) -> Result<(BorrowedFd<'_>, &'e OsStr), ObjectError> {
        let (above, name) = split(&entry.path);
        let dir = self.dir(above, Absent::Create)?;
        Ok((dir.expect("directories that are not there are created"), name))
    }

    /// Like `place_of`, for a path that is not in a manifest. The caller must have checked the path.
    pub fn place<'p>(&mut self, path: &'p str) -> Result<(BorrowedFd<'_>, &'p OsStr), ObjectError> {
        let (above, name) = split(OsStr::new(path));
        let dir = self.dir(above, Absent::Create)?;
        Ok((dir.expect("directories that are not there are created"), name))
    }

    /// Returns `path` up to its first name that does not exist. The caller has just found that `path` does not exist.
    pub(crate) fn first_absent<'p>(&self, path: &'p OsStr) -> &'p [u8] {
        let bytes = path.as_bytes();
        let end = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').nth(self.way.len());
        &bytes[..end.map_or(bytes.len(), |(at, _)| at)]
    }

    pub(crate) fn path_of(&self, entry: &Entry) -> PathBuf {
        self.out_path.join(&entry.path)
    }
}

/// Splits a path into its directory and its last name.
pub(crate) fn split(path: &OsStr) -> (&OsStr, &OsStr) {
    let bytes = path.as_bytes();
    match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])),
        None => (OsStr::new(""), path),
    }
}

fn open_dir(disk: &Disk, above: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    disk.openat(above, name, DIR | OFlags::NOFOLLOW, Mode::empty())
}

/// The step that the system refused.
enum Refused {
    Open(Errno),
    Create(Errno),
}

impl Refused {
    fn explained(self, above: BorrowedFd<'_>, name: &OsStr, path: &Path) -> ObjectError {
        match self {
            Refused::Open(e) => not_a_dir(above, name, path, e),
            Refused::Create(e) => ObjectError::io(path, "create this directory", e),
        }
    }
}

fn open_or_create(disk: &Disk, above: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> Result<OwnedFd, Refused> {
    match open_dir(disk, above, name) {
        Err(Errno::NOENT) => match disk.mkdirat(above, name, mode) {
            Ok(()) | Err(Errno::EXIST) => open_dir(disk, above, name).map_err(Refused::Open),
            Err(e) => Err(Refused::Create(e)),
        },
        opened => opened.map_err(Refused::Open),
    }
}

/// Creates a directory and its missing parents.
///
/// # Errors
/// When the system refuses.
pub fn make_directory(path: &Path) -> Result<(), ObjectError> {
    std::fs::create_dir_all(path).map_err(|error| ObjectError::io(path, "create", error))
}

/// Creates a directory and its missing parents, and opens it.
///
/// # Errors
/// When the system refuses.
pub(crate) fn make_and_open(path: &Path) -> Result<OwnedFd, ObjectError> {
    make_directory(path)?;
    open_existing(path).map_err(|e| ObjectError::io(path, "open this directory", e))
}

/// Opens a directory.
pub(crate) fn open_existing(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, DIR, Mode::empty())
}

/// Returns the names in a directory, sorted.
pub(crate) fn names_in(directory: impl AsFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(OsStr::from_bytes(name).to_os_string());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Opens the directory `name` in the directory `above`, never through a link; creates it with `mode` if necessary.
pub fn open_or_create_dir(
    disk: &Disk,
    above: impl AsFd,
    name: impl AsRef<OsStr>,
    mode: Mode,
    path: &Path,
) -> Result<OwnedFd, ObjectError> {
    let (above, name) = (above.as_fd(), name.as_ref());
    open_or_create(disk, above, name, mode).map_err(|refused| refused.explained(above, name, path))
}

fn not_a_dir(above: BorrowedFd<'_>, name: &OsStr, path: &Path, error: Errno) -> ObjectError {
    let path = path.to_path_buf();
    match file_type(above, name) {
        Ok(FileType::Symlink) => ObjectError::InTheWay { path, obstacle: Obstacle::Symlink },
        Ok(FileType::Directory) | Err(_) => ObjectError::io(path, "open this directory", error),
        Ok(_) => ObjectError::InTheWay { path, obstacle: Obstacle::File },
    }
}

pub(crate) fn file_type(above: impl AsFd, name: impl Arg) -> Result<FileType, Errno> {
    let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}
