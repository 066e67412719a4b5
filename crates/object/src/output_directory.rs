//! The directories of a store. They are created and locked, and files in them are opened without following links.

use super::error::{ObjectError, Obstacle};
use super::geometry::TransferId;
use super::manifest::{Manifest, STATE_DIR};
use super::origin_records::Locked;
use crate::host::disk::Disk;
use crate::host::tree::{DIR, Tree, make_and_open, names_in, open_existing, open_or_create_dir};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Minimum size of files that are preallocated, in bytes.
const PREALLOCATE_FROM: u64 = 1 << 20;

pub(crate) const HEAD: &str = "head";
pub(crate) const JOURNAL: &str = "journal";
pub(crate) const LOCK: &str = "lock";
pub(crate) const PARTS: &str = "parts";
/// Name of the mark (an empty file) that exists while files are renamed.
pub(crate) const FINISHING: &str = "finishing";
/// Name of the mark that exists once all files have their final names.
pub(crate) const PUBLISHED: &str = "published";
/// Temporary name of a symbolic link, or of a part file with the content of a published file, before it is renamed.
pub(crate) const LINK: &str = "link";

/// A directory for received files, by descriptor.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) disk: Disk,
    pub(crate) out_path: PathBuf,
    pub(crate) out: OwnedFd,
}

/// The directories of a store, by descriptor. Renaming a directory therefore has no effect on the store.
#[derive(Debug)]
pub(crate) struct OutputDirectory {
    root: Root,
    pub(crate) states: OwnedFd,
    pub(crate) state: OwnedFd,
    pub(crate) parts: OwnedFd,
    _lock: Locked<File>,
}

impl Deref for OutputDirectory {
    type Target = Root;

    fn deref(&self) -> &Root {
        &self.root
    }
}

impl Root {
    /// Opens an output directory if it exists. Nothing is created.
    pub(crate) fn existing(disk: &Disk, out: &Path) -> Result<Option<Root>, ObjectError> {
        match open_existing(out) {
            Ok(fd) => Ok(Some(Root { disk: disk.clone(), out_path: out.to_path_buf(), out: fd })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(ObjectError::io(out, "open this directory", e)),
        }
    }

    /// Opens the directory `path` below the output directory, for reading. Nothing is created, and links are not followed.
    pub(crate) fn existing_dir(&self, path: &[&str]) -> Option<OwnedFd> {
        let open = |above: BorrowedFd<'_>, name: &str| {
            self.disk.openat(above, name, DIR | OFlags::NOFOLLOW, Mode::empty()).ok()
        };
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(open(self.out.as_fd(), first)?, |above, name| open(above.as_fd(), name))
    }

    /// Opens the file `name` in a directory below the output directory, for reading.
    pub(crate) fn existing_file(&self, directory: &OwnedFd, name: &str) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        self.disk.openat(directory, name, flags, Mode::empty()).ok().map(File::from)
    }

    pub(crate) fn available(&self) -> u64 {
        self.disk.available(&self.out)
    }

    /// Returns the output directory as a [`Tree`], for access to directories below it.
    pub(crate) fn tree(&self) -> Tree<'_> {
        Tree::new(&self.disk, &self.out, &self.out_path)
    }
}

impl OutputDirectory {
    pub(crate) fn open(
        disk: &Disk,
        out: &Path,
        transfer: TransferId,
    ) -> Result<OutputDirectory, ObjectError> {
        let fd = make_and_open(out)?;
        let name = transfer.to_string();
        let path = out.join(STATE_DIR).join(&name);
        loop {
            let states = open_or_create_dir(disk, &fd, STATE_DIR, Mode::RWXU, &out.join(STATE_DIR))?;
            let Some((state, lock)) = OutputDirectory::lock(disk, &states, &name, (&path, out))? else {
                continue;
            };
            let parts = open_or_create_dir(disk, &state, PARTS, Mode::RWXU, &path.join(PARTS))?;
            return Ok(OutputDirectory {
                root: Root { disk: disk.clone(), out_path: out.to_path_buf(), out: fd },
                states,
                state,
                parts,
                _lock: lock,
            });
        }
    }

    /// Opens the state directory of a transfer and locks it. Returns `None` if another receiver has just finished the transfer
    /// and removed the directory.
    fn lock(
        disk: &Disk,
        states: &OwnedFd,
        name: &str,
        (path, out): (&Path, &Path),
    ) -> Result<Option<(OwnedFd, Locked<File>)>, ObjectError> {
        let state = match open_or_create_dir(disk, states, name, Mode::RWXU, path) {
            Err(ObjectError::NotFound { .. }) => return Ok(None),
            state => state?,
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = match disk.openat(&state, LOCK, flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::NOENT) => return Ok(None),
            lock => lock.map_err(|e| ObjectError::io(path.join(LOCK), "create", e))?,
        };
        let lock = match Locked::at_once(File::from(lock)) {
            Err(Errno::WOULDBLOCK) => return Err(ObjectError::Busy { path: out.to_path_buf() }),
            locked => locked.map_err(|e| ObjectError::io(path.join(LOCK), "lock", e))?,
        };
        let links = lock.file().metadata().map_err(|e| ObjectError::io(path.join(LOCK), "read", e))?.nlink();
        Ok((links > 0).then_some((state, lock)))
    }

    pub(crate) fn path(&self, transfer: TransferId) -> PathBuf {
        self.out_path.join(STATE_DIR).join(transfer.to_string())
    }

    /// Opens or creates the state file `name`. An object of this name is removed first if it is not a regular file or is a file
    /// with several names.
    pub(crate) fn create(&self, name: &str) -> Result<File, ObjectError> {
        self.remove_unless_own(&self.state, name);
        self.own(&self.state, name)
    }

    /// Opens or creates a file and checks that it has no other name. Writes to the file therefore change no other file.
    fn own(&self, directory: &OwnedFd, name: &str) -> Result<File, ObjectError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let state = || self.out_path.join(STATE_DIR);
        let file = self.disk.openat(directory, name, flags, Mode::RUSR | Mode::WUSR);
        let file: File =
            file.map_err(|e| ObjectError::io(state(), "create files in this directory", e))?.into();
        match file.metadata() {
            Ok(meta) if meta.is_file() && meta.nlink() == 1 => Ok(file),
            Ok(_) => Err(ObjectError::InTheWay { path: state().join(name), obstacle: Obstacle::NotOwn }),
            Err(e) => Err(ObjectError::io(state(), "examine files in this directory", e)),
        }
    }

    pub(crate) fn has(&self, name: &str) -> Result<bool, ObjectError> {
        match rustix::fs::statat(&self.state, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(ObjectError::io(self.out_path.join(STATE_DIR), "read it", e)),
        }
    }

    /// Returns whether all files have their final names.
    pub(crate) fn is_published(&self) -> Result<bool, ObjectError> {
        self.has(PUBLISHED)
    }

    /// Opens or creates the part file of entry `entry`.
    pub(crate) fn part(&self, entry: u32) -> Result<File, ObjectError> {
        self.own(&self.parts, &part_name(entry))
    }

    /// Removes objects among the part files that are not regular files or have several names. Another program has put them there.
    pub(crate) fn remove_foreign_parts(&self) -> Result<(), ObjectError> {
        let failed = |e: Errno| ObjectError::io(self.out_path.join(STATE_DIR), "list it", e);
        for part in names_in(&self.parts).map_err(failed)? {
            self.remove_unless_own(&self.parts, &part);
        }
        Ok(())
    }

    pub(crate) fn existing_part(&self, entry: u32) -> io::Result<File> {
        existing_part(&self.disk, &self.parts, entry)
    }

    /// Removes all marks and part files of this transfer. Call it while the journal lists no stored blocks.
    pub(crate) fn wipe(&self) -> Result<(), ObjectError> {
        for name in [FINISHING, PUBLISHED] {
            self.disk.unlinkat(&self.state, name, AtFlags::empty()).ok(); // usually not there
        }
        let failed = |e: Errno| ObjectError::io(self.out_path.join(STATE_DIR), "clean it up", e);
        for part in names_in(&self.parts).map_err(failed)? {
            self.disk.unlinkat(&self.parts, &part, AtFlags::empty()).map_err(failed)?;
        }
        Ok(())
    }

    /// Checks that all content fits on the disk, and reserves disk space for large files without holes. Files that stay in place
    /// need no space.
    pub(crate) fn make_room(
        &self,
        manifest: &Manifest,
        is_in_place: impl Fn(u32) -> bool,
    ) -> Result<(), ObjectError> {
        let numbered = || (0..).zip(manifest.entries());
        let there: u64 = numbered().filter(|(n, _)| is_in_place(*n)).map(|(_, entry)| entry.size()).sum();
        let needed = manifest.data_len().saturating_sub(self.allocated()).saturating_sub(there);
        let available = self.available();
        if needed > available {
            return Err(ObjectError::DiskFull {
                path: self.out_path.clone(),
                needed,
                available: Some(available),
            });
        }
        for (n, entry) in numbered().filter(|(n, _)| !is_in_place(*n)) {
            if entry.size() >= PREALLOCATE_FROM || entry.holes.is_some() {
                let part = self.part(n)?;
                if entry.holes.is_some() {
                    let len = self.disk.set_len(&part, entry.size());
                    len.map_err(|e| ObjectError::io(&self.out_path, "create sparse files in it", e))?;
                    continue;
                }
                match self.disk.reserve(&part, entry.size()) {
                    Ok(()) => {}
                    Err(Errno::NOSPC | Errno::DQUOT) => {
                        let available = self.available();
                        return Err(ObjectError::DiskFull {
                            path: self.out_path.clone(),
                            needed,
                            available: Some(available),
                        });
                    }
                    // The filesystem cannot reserve space. The file then grows as data is written.
                    Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
                    Err(e) => return Err(ObjectError::io(&self.out_path, "reserve space in it", e)),
                }
            }
        }
        Ok(())
    }

    /// Returns the number of bytes that all part files take on the disk.
    pub(crate) fn allocated(&self) -> u64 {
        let parts = names_in(&self.parts).unwrap_or_default();
        let stats = parts
            .iter()
            .filter_map(|part| rustix::fs::statat(&self.parts, part, AtFlags::SYMLINK_NOFOLLOW).ok());
        stats
            .filter(|stat| FileType::from_raw_mode(stat.st_mode).is_file())
            .map(|stat| stat.st_blocks as u64 * 512)
            .sum()
    }

    /// Returns the error for a failed write to `name`; `needed` bytes are still to be written.
    pub(crate) fn failed(&self, name: impl AsRef<Path>, error: io::Error, needed: u64) -> ObjectError {
        ObjectError::writing(self.out_path.join(name), "write", error, needed)
    }

    fn state_failed(&self, e: Errno) -> ObjectError {
        ObjectError::io(self.out_path.join(STATE_DIR), "change files in it", e)
    }

    pub(crate) fn mark(&self, name: &str) -> Result<(), ObjectError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mark = self.disk.openat(&self.state, name, flags, Mode::RUSR | Mode::WUSR);
        mark.map(File::from).map(drop).map_err(|e| self.state_failed(e))
    }

    pub(crate) fn mark_published(&self) -> Result<(), ObjectError> {
        self.disk.renameat(&self.state, FINISHING, &self.state, PUBLISHED).map_err(|e| self.state_failed(e))
    }

    pub(crate) fn unmark(&self, name: &str) -> Result<(), ObjectError> {
        match self.disk.unlinkat(&self.state, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(self.state_failed(e)),
        }
    }

    /// Removes the state directory `name`. All files are published, so state files that cannot be removed do no harm.
    pub(crate) fn remove(&self, name: &str) {
        self.disk.unlinkat(&self.state, PARTS, AtFlags::REMOVEDIR).ok();
        for file in [HEAD, JOURNAL, PUBLISHED, LINK, LOCK] {
            self.disk.unlinkat(&self.state, file, AtFlags::empty()).ok();
        }
        self.disk.unlinkat(&self.states, name, AtFlags::REMOVEDIR).ok();
        self.disk.unlinkat(&self.out, STATE_DIR, AtFlags::REMOVEDIR).ok();
    }

    /// Returns the warning about an unreadable record of earlier sessions.
    pub(crate) fn forgotten(&self) -> String {
        let state = self.out_path.join(STATE_DIR);
        format!(
            "{}: the record of earlier sessions cannot be read; this session is not compared with it",
            state.display()
        )
    }

    /// Removes the object `name` if it is not a regular file or is a file with several names.
    fn remove_unless_own(&self, directory: &OwnedFd, name: impl rustix::path::Arg + Copy) {
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_foreign =
            |stat: rustix::fs::Stat| !FileType::from_raw_mode(stat.st_mode).is_file() || stat.st_nlink > 1;
        if stat.is_ok_and(is_foreign) {
            // If the object cannot be removed, opening the file will fail and report an error.
            self.disk.unlinkat(directory, name, AtFlags::empty()).ok();
        }
    }
}

/// Returns whether state of other transfers exists in the directory of states.
pub(crate) fn has_others(states: &OwnedFd, transfer: TransferId) -> bool {
    let own = transfer.to_string();
    let states = names_in(states).unwrap_or_default();
    states.iter().any(|name| name.len() == own.len() && *name != *own)
}

/// Opens the part file of entry `entry` for reading.
pub(crate) fn existing_part(disk: &Disk, parts: &OwnedFd, entry: u32) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(disk.openat(parts, part_name(entry), flags, Mode::empty())?.into())
}

pub(crate) fn part_name(entry: u32) -> String {
    entry.to_string()
}
