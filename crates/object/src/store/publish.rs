//! Publication of received files: giving them their final names inside the output directory.
//!
//! Every directory is opened relative to its parent and never through a symbolic link. Files are renamed from one open directory
//! to another. No path of a manifest and no existing link can therefore lead out of the output directory. Two marks in the state
//! directory make publication repeatable:
//!
//! 1. `finishing` exists while files are renamed. A receiver that finds this mark at its start moves all renamed files back to their parts.
//! 2. `published` exists after all files were renamed. A receiver that finds this mark at its start repeats only the steps after the renaming.

use super::existing::{Backup, Deleting, backup_of};
use super::in_place::InPlace;
use super::obstacles::check_for_obstacles;
use super::{Finished, SkippedLink, Stage, Store};
use crate::apply::Apply;
use crate::error::{ObjectError, Obstacle};
use crate::file_work::{FileWork, WorkStage};
use crate::geometry::Hash;
use crate::host::disk::Disk;
use crate::host::tree::{Absent, Tree, file_type, split};
use crate::links::stays_inside;
use crate::manifest::{Entry, Kind, Manifest};
use crate::names::shown;
use crate::origin_records::remember;
use crate::output_directory::{FINISHING, LINK, OutputDirectory, part_name};
use crate::policy::{Durability, Extraneous};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, fstat, readlinkat, statat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Moves renamed files back to the part files after a publication that was interrupted while it renamed files. All files can
/// then be verified and published again. Every file was complete before the publication, so a missing part file means that the
/// file was renamed. Files that can be verified in place stay there.
pub(super) fn take_back(
    place: &OutputDirectory,
    manifest: &Manifest,
    in_place: &InPlace,
) -> Result<(), ObjectError> {
    if !place.has(FINISHING)? {
        return Ok(());
    }
    let mut tree = place.tree();
    remove_hard_links(place, manifest, (&mut tree, in_place))?;
    for (n, entry) in files_of(manifest).filter(|(n, _)| !in_place.has(*n)) {
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

/// Removes all names of a file except the first, if a publication has created them. The next publication creates them again;
/// until then each file has only one name.
fn remove_hard_links(
    place: &OutputDirectory,
    manifest: &Manifest,
    (tree, in_place): (&mut Tree<'_>, &InPlace),
) -> Result<(), ObjectError> {
    for (n, entry, to) in hard_links_of(manifest).filter(|(_, _, to)| !in_place.has(*to)) {
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
                ObjectError::io(place.out_path.join(&entry.path), "remove this name of the file", e)
            })?;
        }
    }
    Ok(())
}

/// Returns the device and inode number of a file. If they are equal, two names refer to the same file.
fn same_file(above: impl AsFd, name: impl Arg) -> Option<(u64, u64)> {
    let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some((stat.st_dev, stat.st_ino))
}

fn files_of(manifest: &Manifest) -> impl Iterator<Item = (u32, &Entry)> {
    let files = (0..).zip(manifest.entries());
    files.filter(|(_, entry)| matches!(entry.kind, Kind::File { .. } | Kind::Stream))
}

/// Returns the entries for further names of files, each with its own number and the number of the file's entry.
fn hard_links_of(manifest: &Manifest) -> impl Iterator<Item = (u32, &Entry, u32)> {
    (0..).zip(manifest.entries()).filter_map(|(n, entry)| match entry.kind {
        Kind::HardLink { to } => Some((n, entry, to)),
        _ => None,
    })
}

impl Store {
    /// Like [`Store::finish`], with `work` for progress and cancellation. After the error [`ObjectError::ChangedInPlace`] no file
    /// has a new name, and [`Store::give_up`] drops the changed files.
    ///
    /// # Errors
    /// As [`Store::finish`], and [`ObjectError::Cancelled`].
    pub fn finish_as(
        &mut self,
        root: &Hash,
        durability: Durability,
        work: &FileWork,
    ) -> Result<Finished, ObjectError> {
        self.check(root)?;
        if let Some(known) = self.known.clone().filter(|_| self.stage == Stage::Receiving) {
            self.files.dig_holes(&known, &self.ledger.geometry)?;
        }
        self.files.open.clear();
        publish(self, durability, work)
    }
}

/// Publishes the files of a store whose blocks are all complete and verified.
fn publish(store: &Store, durability: Durability, work: &FileWork) -> Result<Finished, ObjectError> {
    let known = store.known.as_ref().expect("when all blocks are there, so is the manifest");
    let (place, manifest) = (&store.files.place, &known.manifest);
    let mut apply = Apply::new(&store.files.wanted, &store.files.place.disk);
    let mut finished = Finished::default();
    let existing = &store.files.wanted.existing;
    let backup = backup_of(place, &existing.backup)?;
    let mut deleting = match manifest.extraneous.and(existing.extraneous) {
        Extraneous::Keep => None,
        Extraneous::Delete => Some(Deleting::new(place, backup.as_ref(), work)?),
    };
    let parts = || store.received(manifest).filter(|(_, entry)| !matches!(entry.kind, Kind::HardLink { .. }));
    let in_place = &store.files.in_place;
    let moved = || parts().filter(|(n, _)| !in_place.has(*n));
    if store.stage == Stage::Receiving {
        work.begin(WorkStage::Completing, parts().count() as u64);
        in_place.complete(store, manifest, (&mut apply, durability), work)?;
        // An obstacle may have appeared since the first check.
        check_for_obstacles(place, manifest, &store.files.wanted)?;
        if let Some(deleting) = &mut deleting {
            deleting.clear_the_way(manifest, |n, entry| !store.is_withdrawn(n, entry))?;
        }
        make_writable(place, manifest)?;
        place.mark(FINISHING)?;
        for (n, entry) in moved() {
            complete_part(place, n, entry, store.content_len(entry), &mut apply, durability)?;
            work.step(&place.out_path)?;
        }
        work.begin(WorkStage::Renaming, moved().count() as u64);
        name_files(store, manifest, (&mut apply, backup.as_ref(), work), durability)?;
        place.mark_published()?;
    }
    finished.entries = manifest.counts();
    finished.withdrawn = store.withdrawn_names(manifest);
    finished.entries.files -= finished.withdrawn.len() as u64;
    finished.bytes = parts().map(|(_, entry)| store.content_len(entry)).sum();
    work.begin(WorkStage::Linking, finished.entries.links + finished.entries.directories);
    finished.skipped = make_links(place, manifest, (&mut apply, backup.as_ref()), work)?;
    if let Some(mut deleting) = deleting {
        deleting.delete_extraneous(manifest)?;
        let (deleted, warning) = deleting.end();
        finished.deleted = deleted;
        finished.warnings.extend(warning);
    }
    set_dirs(place, manifest, (&mut apply, work), durability)?;
    finished.warnings.extend(apply.reported());
    if let Some(admission) = &store.files.admission {
        let (out, transfer) = (&place.out_path, store.transfer());
        if remember((&place.disk, &place.states), out, manifest, transfer, admission, durability)?.is_err() {
            finished.warnings.push(place.forgotten());
        }
    }
    place.remove(&store.transfer().to_string());
    Ok(finished)
}

/// Gives parts their final names.
fn name_files(
    store: &Store,
    manifest: &Manifest,
    (apply, backup, work): (&mut Apply<'_>, Option<&Backup<'_>>, &FileWork),
    durability: Durability,
) -> Result<(), ObjectError> {
    let place = &store.files.place;
    let mut tree = place.tree();
    // A file stays in place with all its names.
    let stays = |n, entry: &Entry| match entry.kind {
        Kind::HardLink { to } => store.files.in_place.has(to),
        _ => store.files.in_place.has(n),
    };
    let is_moved = |n, entry: &Entry| !store.is_withdrawn(n, entry) && !stays(n, entry);
    // Hard links are made among the part files, because no other program can replace a file there.
    for (n, entry, to) in hard_links_of(manifest).filter(|(n, entry, _)| is_moved(*n, entry)) {
        let file = &manifest.entries()[to as usize];
        link_part(place, n, (to, file), apply, durability)
            .map_err(|e| ObjectError::io(tree.path_of(entry), "make this hard link", e))?
            .then(|| apply.copies.add(entry, None));
    }
    for (n, entry) in store.received(manifest).filter(|(n, entry)| !stays(*n, entry)) {
        let (path, part) = (tree.path_of(entry), part_name(n));
        let (above, name) = tree.place_of(entry)?;
        if let Some(backup) = backup {
            backup.save(above, name, entry, manifest)?;
        }
        move_over(&place.disk, &place.parts, &part, above, name, path)?;
        if matches!(entry.kind, Kind::HardLink { .. }) {
            // If both names refer to the same file, renaming removes neither name.
            place.disk.unlinkat(&place.parts, part.as_str(), AtFlags::empty()).ok();
        }
        work.step(&place.out_path)?;
    }
    Ok(())
}

/// Makes part file `n` a further name of the part file of entry `to`. If the filesystem allows no hard links, or no more to this
/// file, copies the file and returns `true`.
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
    place.disk.copy(&from, &copy)?;
    apply.give(&copy, file);
    place.disk.futimens(&copy, &times(file))?;
    if durability == Durability::Synced {
        place.disk.sync_all(&copy)?;
    }
    place.disk.fchmod(&copy, apply.mode(file, || fstat(&copy)))?;
    Ok(true)
}

/// Makes existing directories writable. After the publication, directories get the modes stated in the manifest.
fn make_writable(place: &OutputDirectory, manifest: &Manifest) -> Result<(), ObjectError> {
    let mut tree = place.tree();
    for entry in manifest.entries().iter().filter(|entry| entry.kind == Kind::Dir) {
        if let Some(dir) = tree.dir(&entry.path, Absent::Leave)?
            && let Ok(stat) = fstat(dir)
            && stat.st_mode & 0o700 != 0o700
        {
            // If this call fails because the directory belongs to another user, writing to the directory fails later.
            place.disk.fchmod(dir, Mode::from_raw_mode(stat.st_mode) | Mode::RWXU).ok();
        }
    }
    Ok(())
}

/// Sets length, owner, attributes, time and mode of a part file. Renaming preserves all of them.
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
    let mode = apply.mode(entry, || fstat(&part));
    place.disk.fchmod(&part, mode).map_err(|e| failed(e.into()))?;
    if durability == Durability::Synced {
        place.disk.sync_all(&part).map_err(failed)?;
    }
    place.disk.release(&part, len, u64::MAX);
    Ok(())
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

/// Makes the symbolic links that stay inside the output directory, or all links if the receiver wants them. Returns the omitted
/// links.
fn make_links(
    place: &OutputDirectory,
    manifest: &Manifest,
    (apply, backup): (&mut Apply<'_>, Option<&Backup<'_>>),
    work: &FileWork,
) -> Result<Vec<SkippedLink>, ObjectError> {
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
        if leads_to(above, name, target) {
            continue; // of an earlier try, when its directory may be read-only by now
        }
        place.disk.unlinkat(&place.state, LINK, AtFlags::empty()).ok(); // of an earlier try
        place.disk.symlinkat(target.as_os_str(), &place.state, LINK).map_err(failed)?;
        apply.give_link(&place.state, LINK, entry);
        place.disk.utimensat(&place.state, LINK, &times(entry)).map_err(failed)?;
        if let Some(backup) = backup {
            backup.save(above, name, entry, manifest)?;
        }
        move_over(&place.disk, &place.state, LINK, above, name, path.clone())?;
    }
    Ok(skipped)
}

/// Returns whether this object is a symbolic link with this target.
pub(super) fn leads_to(above: impl AsFd, name: &OsStr, target: &OsStr) -> bool {
    readlinkat(above, name, Vec::new()).is_ok_and(|there| there.as_bytes() == target.as_bytes())
}

/// Makes all directories and sets their modes and times. Begins with the deepest directories, because a write into a directory
/// changes its time, and a mode may forbid writing.
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
        done = done.and_then(|()| place.disk.fchmod(dir, apply.mode(entry, || fstat(dir))));
        if durability == Durability::Synced {
            done = done.and_then(|()| place.disk.fsync(dir));
        }
        done.map_err(|e| ObjectError::io(path, "set the mode and time of the file", e))?;
        work.step(&place.out_path)?;
    }
    if durability == Durability::Synced {
        let synced = place.disk.fsync(&place.out);
        synced.map_err(|e| ObjectError::io(&place.out_path, "flush it", e))?;
    }
    Ok(())
}
