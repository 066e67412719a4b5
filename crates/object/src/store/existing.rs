//! Existing files of an output directory: backups of replaced files, and deletion of files that the source does not have.

use super::obstacles::find_obstacles;
use crate::apply::Tally;
use crate::error::ObjectError;
use crate::file_work::FileWork;
use crate::host::disk::Disk;
use crate::host::tree::{Absent, DIR, Tree, file_type, make_and_open, names_in, split};
use crate::manifest::{Entry, Kind, MAX_DEPTH, Manifest, STATE_DIR};
use crate::output_directory::{OutputDirectory, Root};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, stat, statat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The directory for replaced and deleted files.
pub(super) struct Backup<'a> {
    disk: &'a Disk,
    path: &'a Path,
    root: OwnedFd,
}

impl<'a> Backup<'a> {
    /// Opens the directory, and creates it if necessary.
    ///
    /// # Errors
    /// [`ObjectError::OtherFilesystem`] when files cannot be moved to the directory; otherwise the obstacle.
    pub(super) fn open(place: &'a OutputDirectory, path: &'a Path) -> Result<Backup<'a>, ObjectError> {
        let root = make_and_open(path)?;
        let examined = |e| ObjectError::io(path, "examine it", e);
        if device_of(&root).map_err(examined)? != device_of(&place.out).map_err(examined)? {
            return Err(ObjectError::OtherFilesystem {
                path: path.to_path_buf(),
                of: place.out_path.clone(),
            });
        }
        Ok(Backup { disk: &place.disk, path, root })
    }

    /// Moves the file `name` of the directory `above` to `path` in the backup.
    fn take(&self, above: impl AsFd, name: &OsStr, path: &OsStr) -> Result<(), ObjectError> {
        let mut tree = Tree::new(self.disk, &self.root, self.path);
        let (to, new) = split(path);
        let to = tree.dir(to, Absent::Create)?.expect("directories that are not there are created");
        let moved = self.disk.renameat(above, name, to, new);
        moved.map_err(|e| ObjectError::io(self.path.join(path), "move a file to this backup", e))
    }

    /// Moves the existing file with the name of an entry to the backup, unless it has the size and time of the new file.
    pub(super) fn save(
        &self,
        above: impl AsFd,
        name: &OsStr,
        entry: &Entry,
        manifest: &Manifest,
    ) -> Result<(), ObjectError> {
        let new = match entry.kind {
            Kind::HardLink { to } => &manifest.entries()[to as usize],
            _ => entry,
        };
        match statat(&above, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if !is_as_listed(&stat, new) => self.take(above, name, &entry.path),
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(ObjectError::io(self.path.join(&entry.path), "examine the file to back up", e)),
        }
    }
}

/// Returns whether a file has the size and time of an entry.
pub(super) fn is_as_listed(stat: &Stat, entry: &Entry) -> bool {
    let mtime = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    matches!(entry.kind, Kind::File { size } if is_file && stat.st_size as u64 == size)
        && mtime == i128::from(entry.mtime)
}

fn device_of(fd: impl AsFd) -> Result<u64, Errno> {
    Ok(fstat(fd)?.st_dev)
}

/// All paths of a manifest, sorted. The names of the receiver may have changed their order.
struct Paths<'a>(Vec<&'a [u8]>);

impl<'a> Paths<'a> {
    fn of(manifest: &'a Manifest) -> Paths<'a> {
        let mut all: Vec<&[u8]> = manifest.entries().iter().map(|entry| entry.path.as_bytes()).collect();
        all.sort_unstable();
        Paths(all)
    }

    /// Returns whether a path is an entry, or a directory above an entry.
    fn has(&self, path: &OsStr) -> bool {
        let below = [path.as_bytes(), b"/"].concat();
        let next = self.0.partition_point(|known| *known < &below[..]);
        self.0.get(next).is_some_and(|known| known.starts_with(&below))
            || self.0.binary_search(&path.as_bytes()).is_ok()
    }
}

/// The effect of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Delete,
    /// Files are counted and stay.
    Count,
}

/// Deletion of files that the source does not have. Other filesystems, the backup, and state directories of receivers stay.
pub(super) struct Deleting<'a> {
    place: &'a Root,
    effect: Effect,
    backup: Option<&'a Backup<'a>>,
    /// The backup, which may be inside a received directory.
    kept: Option<(u64, u64)>,
    device: u64,
    work: &'a FileWork,
    deleted: u64,
    failed: Tally,
}

impl<'a> Deleting<'a> {
    pub(super) fn new(
        place: &'a Root,
        backup: Option<&'a Backup<'a>>,
        work: &'a FileWork,
    ) -> Result<Deleting<'a>, ObjectError> {
        let kept = backup.map(|backup| fstat(&backup.root)).transpose();
        let kept = kept.map_err(|e| ObjectError::io(&place.out_path, "examine it", e))?;
        let kept = kept.as_ref().map(identity);
        Ok(Deleting { backup, kept, effect: Effect::Delete, ..Deleting::counting(place, None, work)? })
    }

    /// Only counts the files that would be deleted. The directory `kept` is the backup, if it exists.
    pub(super) fn counting(
        place: &'a Root,
        kept: Option<&Path>,
        work: &'a FileWork,
    ) -> Result<Deleting<'a>, ObjectError> {
        let device = device_of(&place.out).map_err(|e| ObjectError::io(&place.out_path, "examine it", e))?;
        let kept = kept.and_then(|path| stat(path).ok()).as_ref().map(identity);
        let (effect, failed) = (Effect::Count, Tally::default());
        Ok(Deleting { place, effect, backup: None, kept, device, work, deleted: 0, failed })
    }

    /// Deletes files in the place of directories, and directories in the place of other received entries.
    pub(super) fn clear_the_way(
        &mut self,
        manifest: &Manifest,
        is_received: impl Fn(u32, &Entry) -> bool,
    ) -> Result<(), ObjectError> {
        let place = self.place;
        find_obstacles(place, manifest, &mut |above, (n, entry), _| {
            if !is_received(n, entry) {
                return Ok(());
            }
            let (_, name) = split(&entry.path);
            let deleted = self.delete(above, name, &entry.path, 0)?;
            deleted.map_err(|e| ObjectError::io(place.out_path.join(&entry.path), "delete it", e))
        })
    }

    /// Deletes everything in the directories of the manifest that is no entry.
    pub(super) fn delete_extraneous(&mut self, manifest: &Manifest) -> Result<(), ObjectError> {
        let known = Paths::of(manifest);
        let mut tree = self.place.tree();
        for entry in manifest.entries().iter().filter(|entry| entry.kind == Kind::Dir) {
            let directory = match tree.dir(&entry.path, Absent::Leave) {
                // An obstacle that would have been deleted.
                Err(ObjectError::InTheWay { .. }) if self.effect == Effect::Count => None,
                opened => opened?,
            };
            if let Some(directory) = directory {
                self.visit(directory, &entry.path, 0, &|path| known.has(path))?;
            }
        }
        Ok(())
    }

    /// Returns the number of deleted files and links, and a warning about those that could not be deleted.
    pub(super) fn end(self) -> (u64, Option<String>) {
        (self.deleted, self.failed.words("cannot be deleted"))
    }

    /// Deletes everything in a directory except the paths to keep.
    fn visit(
        &mut self,
        directory: BorrowedFd<'_>,
        path: &OsStr,
        depth: usize,
        keep: &dyn Fn(&OsStr) -> bool,
    ) -> Result<(), ObjectError> {
        let names = match names_in(directory) {
            Ok(names) => names,
            Err(e) => {
                self.failed.add_path(path, Some(e));
                return Ok(());
            }
        };
        for name in names {
            let below = [path.as_bytes(), b"/", name.as_bytes()].concat();
            let below = OsString::from_vec(below);
            if name != STATE_DIR && !keep(&below) {
                self.work.step(&self.place.out_path)?;
                if let Err(e) = self.delete(directory, &name, &below, depth)? {
                    self.failed.add_path(&below, Some(e));
                }
            }
        }
        Ok(())
    }

    /// Deletes a file, or a directory with everything below it.
    fn delete(
        &mut self,
        above: BorrowedFd<'_>,
        name: &OsStr,
        path: &OsStr,
        depth: usize,
    ) -> Result<Result<(), Errno>, ObjectError> {
        let disk = &self.place.disk;
        if file_type(above, name) != Ok(FileType::Directory) {
            match (self.effect, self.backup) {
                (Effect::Count, _) => {}
                (Effect::Delete, Some(backup)) => backup.take(above, name, path)?,
                (Effect::Delete, None) => {
                    if let Err(e) = disk.unlinkat(above, name, AtFlags::empty()) {
                        return Ok(Err(e));
                    }
                }
            }
            self.deleted += 1;
            return Ok(Ok(()));
        }
        if depth >= MAX_DEPTH {
            return Ok(Err(Errno::NAMETOOLONG));
        }
        let opened = disk.openat(above, name, DIR | OFlags::NOFOLLOW, Mode::empty());
        let opened = opened.and_then(|directory| fstat(&directory).map(|stat| (directory, stat)));
        let (directory, stat) = match opened {
            Ok(opened) => opened,
            Err(e) => return Ok(Err(e)),
        };
        if Some(identity(&stat)) == self.kept {
            return Ok(Ok(()));
        }
        if stat.st_dev != self.device {
            return Ok(Err(Errno::XDEV));
        }
        self.visit(directory.as_fd(), path, depth + 1, &|_| false)?;
        if self.effect == Effect::Count {
            return Ok(Ok(()));
        }
        match disk.unlinkat(above, name, AtFlags::REMOVEDIR) {
            // The cause is a file below it that was kept, or could not be deleted and is counted.
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Ok(())),
            removed => Ok(removed),
        }
    }
}

/// Returns the device and inode number of a file.
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Opens the backup that a receiver wants, if it wants one.
pub(super) fn backup_of<'a>(
    place: &'a OutputDirectory,
    path: &'a Option<PathBuf>,
) -> Result<Option<Backup<'a>>, ObjectError> {
    path.as_deref().map(|path| Backup::open(place, path)).transpose()
}
