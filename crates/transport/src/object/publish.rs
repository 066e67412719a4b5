//! Giving received files their names, without ever leaving the output directory.
//!
//! Every directory is opened from the one above it and never through a symbolic link, and files
//! are renamed between open directories: no path of a manifest and no link that was there before
//! can lead anywhere else. Two marks in the state directory make the work repeatable:
//!
//! 1. `finishing` while files are renamed. Found at the next start, all files are taken back.
//! 2. `published` from then on. Found at the next start, only the rest is done again.

use super::error::{ObjectError, Obstacle};
use super::manifest::{Entry, Kind, Manifest, STATE_DIR};
use super::remembered::remember;
use super::store::{
    Durability, Finished, JOURNAL, LOCK, OutputDirectory, PARTS, SkippedLink, Stage, Store, part_name,
};
use crate::disk;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};

pub(crate) const FINISHING: &str = "finishing";
pub(crate) const PUBLISHED: &str = "published";
/// How directories are opened.
pub(crate) const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What to do about a directory that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    Create,
    Leave,
}

/// Walks below the output directory; remembers the way to the directory it was in last.
#[derive(Debug)]
pub(crate) struct Tree<'a> {
    out: BorrowedFd<'a>,
    out_path: &'a Path,
    /// Names and descriptors from the top down to the last directory.
    way: Vec<(String, OwnedFd)>,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(out: &'a OwnedFd, out_path: &'a Path) -> Tree<'a> {
        Tree { out: out.as_fd(), out_path, way: Vec::new() }
    }

    /// The directory `path` (the output directory for ""), or `None` if it is not there.
    fn dir(&mut self, path: &str, absent: Absent) -> Result<Option<BorrowedFd<'_>>, ObjectError> {
        let names = path.split('/').filter(|name| !name.is_empty());
        let same = self.way.iter().zip(names.clone()).take_while(|((have, _), name)| have == name).count();
        self.way.truncate(same);
        for name in names.skip(same) {
            let above = self.way.last().map_or(self.out, |(_, fd)| fd.as_fd());
            let full = || self.way.iter().fold(self.out_path.to_path_buf(), |p, (n, _)| p.join(n)).join(name);
            let fd = match absent {
                Absent::Create => open_or_create_dir(above, name, Mode::from_raw_mode(0o777), &full())?,
                Absent::Leave => match open_dir(above, name) {
                    Ok(fd) => fd,
                    Err(Errno::NOENT) => return Ok(None),
                    Err(e) => return Err(not_a_dir(above, name, &full(), e)),
                },
            };
            self.way.push((name.to_owned(), fd));
        }
        Ok(Some(self.way.last().map_or(self.out, |(_, fd)| fd.as_fd())))
    }

    /// The directory that an entry lies in, created if need be, and its name there.
    fn place_of<'e>(&mut self, entry: &'e Entry) -> Result<(BorrowedFd<'_>, &'e str), ObjectError> {
        let (above, name) = split(&entry.path);
        let dir = self.dir(above, Absent::Create)?;
        Ok((dir.expect("directories that are not there are created"), name))
    }

    /// The same for a path that no manifest has; it must have been checked.
    pub(crate) fn place<'p>(&mut self, path: &'p str) -> Result<(BorrowedFd<'_>, &'p str), ObjectError> {
        let (above, name) = split(path);
        let dir = self.dir(above, Absent::Create)?;
        Ok((dir.expect("directories that are not there are created"), name))
    }

    fn path_of(&self, entry: &Entry) -> PathBuf {
        self.out_path.join(&entry.path)
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn open_dir(above: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    disk::openat(above, name, DIR | OFlags::NOFOLLOW, Mode::empty())
}

/// Open the directory `name` in `above`, never through a link; create it with `mode` if need be.
pub(crate) fn open_or_create_dir(
    above: impl AsFd,
    name: &str,
    mode: Mode,
    path: &Path,
) -> Result<OwnedFd, ObjectError> {
    let above = above.as_fd();
    let fd = match open_dir(above, name) {
        Err(Errno::NOENT) => {
            match disk::mkdirat(above, name, mode) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(ObjectError::io(path, "create this directory", e)),
            }
            open_dir(above, name)
        }
        fd => fd,
    };
    fd.map_err(|e| not_a_dir(above, name, path, e))
}

fn not_a_dir(above: BorrowedFd<'_>, name: &str, path: &Path, error: Errno) -> ObjectError {
    let path = path.to_path_buf();
    match file_type(above, name) {
        Ok(FileType::Symlink) => ObjectError::InTheWay { path, obstacle: Obstacle::Symlink },
        Ok(FileType::Directory) | Err(_) => ObjectError::io(path, "open this directory", error),
        Ok(_) => ObjectError::InTheWay { path, obstacle: Obstacle::File },
    }
}

fn file_type(above: impl AsFd, name: &str) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Find, before anything is received, what could not be published.
pub(crate) fn check_for_obstacles(place: &OutputDirectory, manifest: &Manifest) -> Result<(), ObjectError> {
    let mut tree = place.tree();
    for entry in manifest.entries() {
        let path = tree.path_of(entry);
        let (above, name) = split(&entry.path);
        let Some(above) = tree.dir(above, Absent::Leave)? else { continue };
        let found = match file_type(above, name) {
            Ok(found) => found,
            Err(Errno::NOENT) => continue,
            Err(e) => return Err(ObjectError::io(path, "look at it", e)),
        };
        let obstacle = match (&entry.kind, found) {
            (Kind::Dir, FileType::Directory) => continue,
            (Kind::Dir, FileType::Symlink) => Obstacle::Symlink,
            (Kind::Dir, _) => Obstacle::File,
            (_, FileType::Directory) => Obstacle::Directory,
            _ => continue,
        };
        return Err(ObjectError::InTheWay { path, obstacle });
    }
    Ok(())
}

/// Undo a publication that was cut short while it was renaming files, so that all of them can be
/// verified and published again. Each of them was complete, so a part that is not there has been
/// renamed.
pub(crate) fn take_back(place: &OutputDirectory, manifest: &Manifest) -> Result<(), ObjectError> {
    if !place.has(FINISHING)? {
        return Ok(());
    }
    let mut tree = place.tree();
    for (n, entry) in files_of(manifest) {
        let (path, part) = (tree.path_of(entry), part_name(n));
        if file_type(&place.parts, &part).is_err() {
            let (above, name) = split(&entry.path);
            let Some(above) = tree.dir(above, Absent::Leave)? else { continue };
            if file_type(above, name) != Ok(FileType::RegularFile) {
                continue; // it has been replaced since; its content is received again
            }
            match disk::renameat(above, name, &place.parts, &part) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(e) => return Err(ObjectError::io(path, "move it", e)),
            }
        }
        if file_type(&place.parts, &part) == Ok(FileType::RegularFile) {
            let mode = Mode::RUSR | Mode::WUSR;
            let reset = disk::chmodat(&place.parts, &part, mode);
            reset.map_err(|e| ObjectError::io(path, "change its mode", e))?;
        }
    }
    place.unmark(FINISHING)
}

fn files_of(manifest: &Manifest) -> impl Iterator<Item = (u32, &Entry)> {
    let files = (0..).zip(manifest.entries());
    files.filter(|(_, entry)| matches!(entry.kind, Kind::File { .. } | Kind::Stream))
}

/// Publish a store whose blocks are all there and right.
pub(crate) fn publish(mut store: Store, durability: Durability) -> Result<Finished, ObjectError> {
    store.open.clear();
    let known = store.known.as_ref().expect("when all blocks are there, so is the manifest");
    let (place, manifest) = (&store.place, &known.manifest);
    let mut finished = Finished::default();
    if store.stage == Stage::Receiving {
        // As late as this, something may have come into the way.
        check_for_obstacles(place, manifest)?;
        for (n, entry) in files_of(manifest) {
            complete_part(place, n, entry, store.content_len(entry), durability)?;
        }
        make_writable(place, manifest)?;
        place.mark(FINISHING)?;
        let mut tree = place.tree();
        for (n, entry) in files_of(manifest) {
            let path = tree.path_of(entry);
            // Only now: a part that cannot be written could not be resumed.
            let mode = Mode::from_raw_mode(entry.mode);
            let set = disk::chmodat(&place.parts, part_name(n), mode);
            set.map_err(|e| ObjectError::io(&path, "set the mode of it", e))?;
            let (above, name) = tree.place_of(entry)?;
            move_over(&place.parts, &part_name(n), above, name, path)?;
        }
        place.mark_published()?;
    }
    for (_, entry) in files_of(manifest) {
        finished.files += 1;
        finished.bytes += store.content_len(entry);
    }
    finished.skipped = make_links(place, manifest)?;
    set_dirs(place, manifest, durability)?;
    if let Some(origin) = store.origin {
        let (out, transfer) = (&place.out_path, store.transfer());
        if remember(&place.states, out, manifest, transfer, origin.started, durability)?.is_err() {
            finished.warnings.push(place.forgotten());
        }
    }
    place.remove(&store.transfer().to_string());
    Ok(finished)
}

/// Make directories writable that were there before; they get the manifest's modes at the end.
fn make_writable(place: &OutputDirectory, manifest: &Manifest) -> Result<(), ObjectError> {
    let mut tree = place.tree();
    for entry in manifest.entries().iter().filter(|entry| entry.kind == Kind::Dir) {
        if let Some(dir) = tree.dir(&entry.path, Absent::Leave)?
            && let Ok(stat) = rustix::fs::fstat(dir)
            && stat.st_mode & 0o700 != 0o700
        {
            // If it is another user's, writing into it will say so.
            disk::fchmod(dir, Mode::from_raw_mode(stat.st_mode) | Mode::RWXU).ok();
        }
    }
    Ok(())
}

/// Give a part its length and time; they travel with it when it is renamed.
fn complete_part(
    place: &OutputDirectory,
    n: u32,
    entry: &Entry,
    len: u64,
    durability: Durability,
) -> Result<(), ObjectError> {
    let failed = |e: std::io::Error| ObjectError::io(place.out_path.join(&entry.path), "complete it", e);
    let part = place.part(n)?;
    if part.metadata().map_err(failed)?.len() != len {
        disk::set_len(&part, len).map_err(failed)?;
    }
    disk::futimens(&part, &times(entry)).map_err(|e| failed(e.into()))?;
    match durability {
        Durability::Fast => Ok(()),
        Durability::Synced => disk::sync_all(&part).map_err(failed),
    }
}

fn times(entry: &Entry) -> Timestamps {
    let mtime = Timespec {
        tv_sec: entry.mtime.div_euclid(1_000_000_000),
        tv_nsec: entry.mtime.rem_euclid(1_000_000_000) as _, // below 10^9
    };
    Timestamps { last_access: mtime, last_modification: mtime }
}

fn move_over(
    from: impl AsFd,
    name: &str,
    to: impl AsFd,
    new_name: &str,
    path: PathBuf,
) -> Result<(), ObjectError> {
    match disk::renameat(from, name, to, new_name) {
        Ok(()) => Ok(()),
        Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
            Err(ObjectError::InTheWay { path, obstacle: Obstacle::Directory })
        }
        Err(e) => Err(ObjectError::io(path, "give the received file this name", e)),
    }
}

/// Make the links that stay inside; return the others.
fn make_links(place: &OutputDirectory, manifest: &Manifest) -> Result<Vec<SkippedLink>, ObjectError> {
    const NEW: &str = "link";
    let mut tree = place.tree();
    let mut skipped = Vec::new();
    for entry in manifest.entries() {
        let Kind::Symlink { target } = &entry.kind else { continue };
        if !stays_inside(&entry.path, target) {
            skipped.push(SkippedLink { path: entry.path.clone(), target: target.clone() });
            continue;
        }
        let path = tree.path_of(entry);
        let failed = |e: Errno| ObjectError::io(&path, "make this link", e);
        let (above, name) = tree.place_of(entry)?;
        if rustix::fs::readlinkat(above, name, Vec::new())
            .is_ok_and(|there| there.as_bytes() == target.as_bytes())
        {
            continue; // of an earlier try, when its directory may be read-only by now
        }
        disk::unlinkat(&place.state, NEW, AtFlags::empty()).ok(); // of an earlier try
        disk::symlinkat(target.as_str(), &place.state, NEW).map_err(failed)?;
        disk::utimensat(&place.state, NEW, &times(entry)).map_err(failed)?;
        move_over(&place.state, NEW, above, name, path.clone())?;
    }
    Ok(skipped)
}

/// Whether a link at `path` with this target cannot lead out of the output directory, whatever
/// other links it passes: a target is `..` as often as the link has directories above it, at most,
/// and then names only. A `..` after a name could undo less or more than that name.
pub(crate) fn stays_inside(path: &str, target: &str) -> bool {
    let depth = path.matches('/').count();
    let names = target.split('/').filter(|name| !matches!(*name, "" | "."));
    let ups = names.clone().take_while(|name| *name == "..").count();
    let into_state = ups == depth && names.clone().nth(ups) == Some(STATE_DIR);
    !target.starts_with('/')
        && ups <= depth
        && !names.clone().skip(ups).any(|name| name == "..")
        && !into_state
}

/// Make all directories and give them their modes and times, the lowest first: what is written
/// into a directory changes its time, and a mode may forbid writing.
fn set_dirs(place: &OutputDirectory, manifest: &Manifest, durability: Durability) -> Result<(), ObjectError> {
    let dirs = manifest.entries().iter().filter(|entry| entry.kind == Kind::Dir);
    let mut tree = place.tree();
    for entry in dirs.clone() {
        tree.dir(&entry.path, Absent::Create)?;
    }
    for entry in dirs.rev() {
        let path = tree.path_of(entry);
        let dir = tree.dir(&entry.path, Absent::Create)?.expect("it was created just now");
        let mut done = disk::futimens(dir, &times(entry));
        done = done.and_then(|()| disk::fchmod(dir, Mode::from_raw_mode(entry.mode)));
        if durability == Durability::Synced {
            done = done.and_then(|()| disk::fsync(dir));
        }
        done.map_err(|e| ObjectError::io(path, "set the mode and time of it", e))?;
    }
    if durability == Durability::Synced {
        let synced = disk::fsync(&place.out);
        synced.map_err(|e| ObjectError::io(&place.out_path, "flush it", e))?;
    }
    Ok(())
}

impl OutputDirectory {
    fn state_failed(&self, e: Errno) -> ObjectError {
        ObjectError::io(self.out_path.join(STATE_DIR), "change files in it", e)
    }

    fn mark(&self, name: &str) -> Result<(), ObjectError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mark = disk::openat(&self.state, name, flags, Mode::RUSR | Mode::WUSR);
        mark.map(File::from).map(drop).map_err(|e| self.state_failed(e))
    }

    fn mark_published(&self) -> Result<(), ObjectError> {
        disk::renameat(&self.state, FINISHING, &self.state, PUBLISHED).map_err(|e| self.state_failed(e))
    }

    fn unmark(&self, name: &str) -> Result<(), ObjectError> {
        match disk::unlinkat(&self.state, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(self.state_failed(e)),
        }
    }

    /// Remove the state directory. All is published: what cannot be removed does no harm.
    fn remove(&self, name: &str) {
        disk::unlinkat(&self.state, PARTS, AtFlags::REMOVEDIR).ok();
        for file in ["head", JOURNAL, PUBLISHED, LOCK] {
            disk::unlinkat(&self.state, file, AtFlags::empty()).ok();
        }
        disk::unlinkat(&self.states, name, AtFlags::REMOVEDIR).ok();
        disk::unlinkat(&self.out, STATE_DIR, AtFlags::REMOVEDIR).ok();
    }
}
