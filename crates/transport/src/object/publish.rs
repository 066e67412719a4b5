//! Giving received files their names, without ever leaving the output directory.
//!
//! Every directory is opened from the one above it and never through a symbolic link, and files
//! are renamed between open directories: no path of a manifest and no link that was there before
//! can lead anywhere else. Two marks in the state directory make the work repeatable:
//!
//! 1. `finishing` while files are renamed. Found at the next start, all files are taken back.
//! 2. `published` from then on. Found at the next start, only the rest is done again.

use super::apply::Apply;
use super::error::{ObjectError, Obstacle};
use super::file_work::FileWork;
use super::geometry::Hash;
use super::manifest::{Entry, Kind, Manifest, STATE_DIR};
use super::names::shown;
use super::remembered::remember;
use super::store::{
    Durability, Finished, JOURNAL, LOCK, OutputDirectory, PARTS, SkippedLink, Stage, Store, part_name,
};
use crate::disk::Disk;
use faircast_wire::Activity;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(crate) const FINISHING: &str = "finishing";
pub(crate) const PUBLISHED: &str = "published";
/// How directories are opened.
pub const DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What to do about a directory that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absent {
    Create,
    Leave,
}

/// Walks below the output directory; remembers the way to the directory it was in last.
#[derive(Debug)]
pub struct Tree<'a> {
    disk: &'a Disk,
    out: BorrowedFd<'a>,
    out_path: &'a Path,
    /// Names and descriptors from the top down to the last directory.
    way: Vec<(OsString, OwnedFd)>,
}

impl<'a> Tree<'a> {
    /// The tree below this directory of a disk, which errors call by this path.
    pub fn new(disk: &'a Disk, out: &'a OwnedFd, out_path: &'a Path) -> Tree<'a> {
        Tree { disk, out: out.as_fd(), out_path, way: Vec::new() }
    }

    /// The directory `path` (the output directory for ""), or `None` if it is not there.
    fn dir(&mut self, path: &OsStr, absent: Absent) -> Result<Option<BorrowedFd<'_>>, ObjectError> {
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

    /// The directory that an entry lies in, created if need be, and its name there.
    fn place_of<'e>(&mut self, entry: &'e Entry) -> Result<(BorrowedFd<'_>, &'e OsStr), ObjectError> {
        let (above, name) = split(&entry.path);
        let dir = self.dir(above, Absent::Create)?;
        Ok((dir.expect("directories that are not there are created"), name))
    }

    /// The same for a path that no manifest has; it must have been checked.
    pub fn place<'p>(&mut self, path: &'p str) -> Result<(BorrowedFd<'_>, &'p OsStr), ObjectError> {
        let (above, name) = split(OsStr::new(path));
        let dir = self.dir(above, Absent::Create)?;
        Ok((dir.expect("directories that are not there are created"), name))
    }

    /// The part of `path`, which was just found not to be there, that ends with the first name that is not.
    fn first_absent<'p>(&self, path: &'p OsStr) -> &'p [u8] {
        let bytes = path.as_bytes();
        let end = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').nth(self.way.len());
        &bytes[..end.map_or(bytes.len(), |(at, _)| at)]
    }

    fn path_of(&self, entry: &Entry) -> PathBuf {
        self.out_path.join(&entry.path)
    }
}

/// The directory of a path, and the name in it.
fn split(path: &OsStr) -> (&OsStr, &OsStr) {
    let bytes = path.as_bytes();
    match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])),
        None => (OsStr::new(""), path),
    }
}

fn open_dir(disk: &Disk, above: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    disk.openat(above, name, DIR | OFlags::NOFOLLOW, Mode::empty())
}

/// Settings that the system refused.
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

/// Open the directory `name` in `above`, never through a link; create it with `mode` if need be.
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

fn file_type(above: impl AsFd, name: impl Arg) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Find, before anything is received, what could not be published.
pub(crate) fn check_for_obstacles(place: &OutputDirectory, manifest: &Manifest) -> Result<(), ObjectError> {
    let mut tree = place.tree();
    // Nothing is in the way below a directory that is not there.
    let mut absent: Option<&[u8]> = None;
    for entry in manifest.entries() {
        if absent.is_some_and(|above| is_below(entry.path.as_bytes(), above)) {
            continue;
        }
        let (above, name) = split(&entry.path);
        let Some(at) = tree.dir(above, Absent::Leave)? else {
            absent = Some(tree.first_absent(above));
            continue;
        };
        let found = match file_type(at, name) {
            Ok(found) => found,
            Err(Errno::NOENT) => {
                absent = Some(entry.path.as_bytes());
                continue;
            }
            Err(e) => return Err(ObjectError::io(tree.path_of(entry), "look at it", e)),
        };
        let obstacle = match (&entry.kind, found) {
            (Kind::Dir, FileType::Directory) => continue,
            (Kind::Dir, FileType::Symlink) => Obstacle::Symlink,
            (Kind::Dir, _) => Obstacle::File,
            (_, FileType::Directory) => Obstacle::Directory,
            _ => continue,
        };
        return Err(ObjectError::InTheWay { path: tree.path_of(entry), obstacle });
    }
    Ok(())
}

/// Whether a path lies below a directory.
fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Undo a publication that was cut short while it was renaming files, so that all of them can be
/// verified and published again. Each of them was complete, so a part that is not there has been
/// renamed.
pub(crate) fn take_back(place: &OutputDirectory, manifest: &Manifest) -> Result<(), ObjectError> {
    if !place.has(FINISHING)? {
        return Ok(());
    }
    let mut tree = place.tree();
    remove_hard_links(place, manifest, &mut tree)?;
    for (n, entry) in files_of(manifest) {
        let (path, part) = (tree.path_of(entry), part_name(n));
        if file_type(&place.parts, part.as_str()).is_err() {
            let (above, name) = split(&entry.path);
            let Some(above) = tree.dir(above, Absent::Leave)? else { continue };
            if file_type(above, name) != Ok(FileType::RegularFile) {
                continue; // it has been replaced since; its content is received again
            }
            match place.disk.renameat(above, name, &place.parts, &part) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(e) => return Err(ObjectError::io(path, "move it", e)),
            }
        }
        if file_type(&place.parts, part.as_str()) == Ok(FileType::RegularFile) {
            let mode = Mode::RUSR | Mode::WUSR;
            let reset = place.disk.chmodat(&place.parts, &part, mode);
            reset.map_err(|e| ObjectError::io(path, "change its mode", e))?;
        }
    }
    place.unmark(FINISHING)
}

/// Remove names that a publication has given to a file beside its first one: they are made again, and until then each file has one name.
fn remove_hard_links(
    place: &OutputDirectory,
    manifest: &Manifest,
    tree: &mut Tree<'_>,
) -> Result<(), ObjectError> {
    for (n, entry, to) in hard_links_of(manifest) {
        place.disk.unlinkat(&place.parts, part_name(n).as_str(), AtFlags::empty()).ok(); // where it was not renamed yet
        let file = &manifest.entries()[to as usize];
        let first = match same_file(&place.parts, part_name(to)) {
            Some(first) => Some(first),
            None => {
                let (above, name) = split(&file.path);
                tree.dir(above, Absent::Leave)?.and_then(|above| same_file(above, name))
            }
        };
        let (above, name) = split(&entry.path);
        let Some(above) = tree.dir(above, Absent::Leave)? else { continue };
        if first.is_some() && same_file(above, name) == first {
            place.disk.unlinkat(above, name, AtFlags::empty()).map_err(|e| {
                ObjectError::io(place.out_path.join(&entry.path), "remove this name of it", e)
            })?;
        }
    }
    Ok(())
}

/// Device and number of a file, by which its names are known to be of one.
fn same_file(above: impl AsFd, name: impl Arg) -> Option<(u64, u64)> {
    let stat = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some((stat.st_dev, stat.st_ino))
}

fn files_of(manifest: &Manifest) -> impl Iterator<Item = (u32, &Entry)> {
    let files = (0..).zip(manifest.entries());
    files.filter(|(_, entry)| matches!(entry.kind, Kind::File { .. } | Kind::Stream))
}

/// Names that are more than one of a file, and the file.
fn hard_links_of(manifest: &Manifest) -> impl Iterator<Item = (u32, &Entry, u32)> {
    (0..).zip(manifest.entries()).filter_map(|(n, entry)| match entry.kind {
        Kind::HardLink { to } => Some((n, entry, to)),
        _ => None,
    })
}

impl Store {
    /// As [`Store::finish`], while others look at `work`.
    ///
    /// # Errors
    /// As [`Store::finish`], and [`ObjectError::Cancelled`].
    pub(crate) fn finish_as(
        self,
        root: &Hash,
        durability: Durability,
        work: &FileWork,
    ) -> Result<Finished, ObjectError> {
        self.check(root)?;
        publish(self, durability, work)
    }
}

/// Publish a store whose blocks are all there and right.
fn publish(mut store: Store, durability: Durability, work: &FileWork) -> Result<Finished, ObjectError> {
    store.files.open.clear();
    let known = store.known.as_ref().expect("when all blocks are there, so is the manifest");
    let (place, manifest) = (&store.files.place, &known.manifest);
    let mut apply = Apply::new(&store.files.wanted, &store.files.place.disk);
    let mut finished = Finished::default();
    let parts = || store.received(manifest).filter(|(_, entry)| !matches!(entry.kind, Kind::HardLink { .. }));
    let files = parts().count() as u64;
    if store.stage == Stage::Receiving {
        // As late as this, something may have come into the way.
        check_for_obstacles(place, manifest)?;
        make_writable(place, manifest)?;
        place.mark(FINISHING)?;
        work.begin(Activity::Completing, files);
        for (n, entry) in parts() {
            complete_part(place, n, entry, store.content_len(entry), &mut apply, durability)?;
            work.step(&place.out_path)?;
        }
        work.begin(Activity::Renaming, files);
        name_files(&store, manifest, (&mut apply, work), durability)?;
        place.mark_published()?;
    }
    finished.entries = manifest.counts();
    finished.withdrawn = store.withdrawn_names(manifest);
    finished.entries.files -= finished.withdrawn.len() as u64;
    finished.bytes = parts().map(|(_, entry)| store.content_len(entry)).sum();
    work.begin(Activity::Linking, finished.entries.links + finished.entries.directories);
    finished.skipped = make_links(place, manifest, &mut apply, work)?;
    set_dirs(place, manifest, (&mut apply, work), durability)?;
    finished.warnings.extend(apply.told());
    if let Some(admission) = store.files.admission {
        let (out, transfer) = (&place.out_path, store.transfer());
        if remember((&place.disk, &place.states), out, manifest, transfer, admission, durability)?.is_err() {
            finished.warnings.push(place.forgotten());
        }
    }
    place.remove(&store.transfer().to_string());
    Ok(finished)
}

/// Give parts their names.
fn name_files(
    store: &Store,
    manifest: &Manifest,
    (apply, work): (&mut Apply<'_>, &FileWork),
    durability: Durability,
) -> Result<(), ObjectError> {
    let place = &store.files.place;
    let mut tree = place.tree();
    // Among the parts, where nobody can have put anything else in the place of the file.
    for (n, entry, to) in hard_links_of(manifest).filter(|(n, entry, _)| !store.is_withdrawn(*n, entry)) {
        let file = &manifest.entries()[to as usize];
        link_part(place, n, (to, file), apply, durability)
            .map_err(|e| ObjectError::io(tree.path_of(entry), "make this hard link", e))?
            .then(|| apply.copies.add(entry, None));
    }
    for (n, entry) in store.received(manifest) {
        let (path, part) = (tree.path_of(entry), part_name(n));
        let (above, name) = tree.place_of(entry)?;
        move_over(&place.disk, &place.parts, &part, above, name, path)?;
        if matches!(entry.kind, Kind::HardLink { .. }) {
            // Of two names of one file the system renames neither.
            place.disk.unlinkat(&place.parts, part.as_str(), AtFlags::empty()).ok();
        }
        work.step(&place.out_path)?;
    }
    Ok(())
}

/// Make part `n` one more name of the part of a file; whether it had to be a copy, as the filesystem has no such links, or no more.
fn link_part(
    place: &OutputDirectory,
    n: u32,
    (to, file): (u32, &Entry),
    apply: &mut Apply<'_>,
    durability: Durability,
) -> std::io::Result<bool> {
    let (part, of) = (part_name(n), part_name(to));
    place.disk.unlinkat(&place.parts, part.as_str(), AtFlags::empty()).ok(); // of an earlier try
    match place.disk.linkat(&place.parts, of.as_str(), part.as_str()) {
        Ok(()) => return Ok(false),
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {}
        Err(e) => return Err(e.into()),
    }
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let from = place.disk.openat(&place.parts, of.as_str(), OFlags::RDONLY | flags, Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | flags;
    let copy = place.disk.openat(&place.parts, part.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
    let (from, copy) = (File::from(from), File::from(copy));
    let (mut at, mut bytes) = (0, vec![0; COPIED_AT_A_TIME]);
    loop {
        let have = place.disk.read_at(&from, &mut bytes, at)?;
        place.disk.write_all_at(&copy, &bytes[..have], at)?;
        at += have as u64;
        if have < bytes.len() {
            break;
        }
    }
    apply.give(&copy, file);
    place.disk.futimens(&copy, &times(file))?;
    if durability == Durability::Synced {
        place.disk.sync_all(&copy)?;
    }
    place.disk.fchmod(&copy, apply.mode(file, || rustix::fs::fstat(&copy)))?;
    Ok(true)
}

const COPIED_AT_A_TIME: usize = 1 << 20;

/// Make directories writable that were there before; they get the manifest's modes at the end.
fn make_writable(place: &OutputDirectory, manifest: &Manifest) -> Result<(), ObjectError> {
    let mut tree = place.tree();
    for entry in manifest.entries().iter().filter(|entry| entry.kind == Kind::Dir) {
        if let Some(dir) = tree.dir(&entry.path, Absent::Leave)?
            && let Ok(stat) = rustix::fs::fstat(dir)
            && stat.st_mode & 0o700 != 0o700
        {
            // If it is another user's, writing into it will say so.
            place.disk.fchmod(dir, Mode::from_raw_mode(stat.st_mode) | Mode::RWXU).ok();
        }
    }
    Ok(())
}

/// Give a part its length, owner, attributes, time and mode; they travel with it when it is renamed.
fn complete_part(
    place: &OutputDirectory,
    n: u32,
    entry: &Entry,
    len: u64,
    apply: &mut Apply<'_>,
    durability: Durability,
) -> Result<(), ObjectError> {
    let failed = |e: std::io::Error| ObjectError::io(place.out_path.join(&entry.path), "complete it", e);
    let part = place.part(n)?;
    if part.metadata().map_err(failed)?.len() != len {
        place.disk.set_len(&part, len).map_err(failed)?;
    }
    apply.give(&part, entry);
    place.disk.futimens(&part, &times(entry)).map_err(|e| failed(e.into()))?;
    let mode = apply.mode(entry, || rustix::fs::fstat(&part));
    place.disk.fchmod(&part, mode).map_err(|e| failed(e.into()))?;
    match durability {
        Durability::Fast => Ok(()),
        Durability::Synced => place.disk.sync_all(&part).map_err(failed),
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
    disk: &Disk,
    from: impl AsFd,
    name: &str,
    to: impl AsFd,
    new_name: &OsStr,
    path: PathBuf,
) -> Result<(), ObjectError> {
    match disk.renameat(from, name, to, new_name) {
        Ok(()) => Ok(()),
        Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
            Err(ObjectError::InTheWay { path, obstacle: Obstacle::Directory })
        }
        Err(e) => Err(ObjectError::io(path, "give the received file this name", e)),
    }
}

/// Make the links that stay inside; return the others.
fn make_links(
    place: &OutputDirectory,
    manifest: &Manifest,
    apply: &mut Apply<'_>,
    work: &FileWork,
) -> Result<Vec<SkippedLink>, ObjectError> {
    const NEW: &str = "link";
    let mut tree = place.tree();
    let mut skipped = Vec::new();
    for entry in manifest.entries() {
        let Kind::Symlink { target } = &entry.kind else { continue };
        work.step(&place.out_path)?;
        if !apply.wants_all_links() && !stays_inside(&entry.path, target) {
            let target = shown(target).into_owned();
            skipped.push(SkippedLink { path: entry.name().into_owned(), target });
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
        place.disk.unlinkat(&place.state, NEW, AtFlags::empty()).ok(); // of an earlier try
        place.disk.symlinkat(target.as_os_str(), &place.state, NEW).map_err(failed)?;
        apply.give_link(&place.state, NEW, entry);
        place.disk.utimensat(&place.state, NEW, &times(entry)).map_err(failed)?;
        move_over(&place.disk, &place.state, NEW, above, name, path.clone())?;
    }
    Ok(skipped)
}

/// Whether a link at `path` with this target cannot lead out of the output directory, whatever
/// other links it passes: a target is `..` as often as the link has directories above it, at most,
/// and then names only. A `..` after a name could undo less or more than that name.
pub(crate) fn stays_inside(path: impl AsRef<OsStr>, target: impl AsRef<OsStr>) -> bool {
    let target = target.as_ref().as_bytes();
    let depth = path.as_ref().as_bytes().iter().filter(|byte| **byte == b'/').count();
    let names = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let ups = names.clone().take_while(|name| *name == b"..").count();
    let into_state = ups == depth && names.clone().nth(ups) == Some(STATE_DIR.as_bytes());
    !target.starts_with(b"/")
        && ups <= depth
        && !names.clone().skip(ups).any(|name| name == b"..")
        && !into_state
}

/// Make all directories and give them their modes and times, the lowest first: what is written
/// into a directory changes its time, and a mode may forbid writing.
fn set_dirs(
    place: &OutputDirectory,
    manifest: &Manifest,
    (apply, work): (&mut Apply<'_>, &FileWork),
    durability: Durability,
) -> Result<(), ObjectError> {
    let dirs = manifest.entries().iter().filter(|entry| entry.kind == Kind::Dir);
    let mut tree = place.tree();
    for entry in dirs.rev() {
        let path = tree.path_of(entry);
        let dir = tree.dir(&entry.path, Absent::Create)?.expect("directories that are not there are created");
        apply.give(dir, entry);
        let mut done = place.disk.futimens(dir, &times(entry));
        done = done.and_then(|()| place.disk.fchmod(dir, apply.mode(entry, || rustix::fs::fstat(dir))));
        if durability == Durability::Synced {
            done = done.and_then(|()| place.disk.fsync(dir));
        }
        done.map_err(|e| ObjectError::io(path, "set the mode and time of it", e))?;
        work.step(&place.out_path)?;
    }
    if durability == Durability::Synced {
        let synced = place.disk.fsync(&place.out);
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
        let mark = self.disk.openat(&self.state, name, flags, Mode::RUSR | Mode::WUSR);
        mark.map(File::from).map(drop).map_err(|e| self.state_failed(e))
    }

    fn mark_published(&self) -> Result<(), ObjectError> {
        self.disk.renameat(&self.state, FINISHING, &self.state, PUBLISHED).map_err(|e| self.state_failed(e))
    }

    fn unmark(&self, name: &str) -> Result<(), ObjectError> {
        match self.disk.unlinkat(&self.state, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(self.state_failed(e)),
        }
    }

    /// Remove the state directory. All is published: what cannot be removed does no harm.
    pub(super) fn remove(&self, name: &str) {
        self.disk.unlinkat(&self.state, PARTS, AtFlags::REMOVEDIR).ok();
        for file in ["head", JOURNAL, PUBLISHED, LOCK] {
            self.disk.unlinkat(&self.state, file, AtFlags::empty()).ok();
        }
        self.disk.unlinkat(&self.states, name, AtFlags::REMOVEDIR).ok();
        self.disk.unlinkat(&self.out, STATE_DIR, AtFlags::REMOVEDIR).ok();
    }
}
