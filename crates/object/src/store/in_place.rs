//! Files of the output directory that stay in place, because they have the path, size and time of entries of the manifest. Their
//! bytes are hashed, or compared with received bytes, and are not copied. A file whose content differs is copied to a part file
//! before the first write.
//!
//! Other programs can write to these files. Each access therefore checks that the file is the one that was found, unchanged.

use super::existing::is_as_listed;
use super::{Files, Store};
use crate::apply::{Apply, Wanted};
use crate::error::ObjectError;
use crate::file_work::FileWork;
use crate::host::disk::Disk;
use crate::host::sys::OpenFiles;
use crate::host::tree::{Absent, Tree, names_in, split};
use crate::layout::Piece;
use crate::manifest::{Entry, Kind, Manifest};
use crate::output_directory::{LINK, OutputDirectory, part_name};
use crate::policy::Durability;
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, statat};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The files in place, by entry, with their state when they were found.
#[derive(Debug, Default)]
pub(super) struct InPlace(BTreeMap<u32, Stamp>);

/// The identity of a file, and the values that change with its content or metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(stat: &Stat) -> Stamp {
        Stamp {
            file: (stat.st_dev, stat.st_ino),
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}

/// Files that were opened for reading: files in place and part files.
pub(super) struct Opened<'a> {
    pub(super) files: OpenFiles,
    pub(super) tree: Tree<'a>,
}

impl<'a> Opened<'a> {
    pub(super) fn new(place: &'a OutputDirectory) -> Opened<'a> {
        Opened { files: OpenFiles::default(), tree: place.tree() }
    }
}

impl InPlace {
    /// Finds the files that can stay: those without a part file, whose size, time, owner, names and attributes need no other file.
    /// Excluded files do not stay.
    pub(super) fn find(
        place: &OutputDirectory,
        manifest: &Manifest,
        wanted: &Wanted,
        excluded: &BTreeSet<PathBuf>,
    ) -> Result<InPlace, ObjectError> {
        let mut links: BTreeMap<u32, Vec<&Entry>> = BTreeMap::new();
        for entry in manifest.entries() {
            if let Kind::HardLink { to } = entry.kind {
                links.entry(to).or_default().push(entry);
            }
        }
        let parts =
            names_in(&place.parts).map_err(|e| ObjectError::io(&place.out_path, "list part files", e))?;
        let (mut tree, mut found, apply) =
            (place.tree(), InPlace::default(), Apply::new(wanted, &place.disk));
        for (n, entry) in (0..).zip(manifest.entries()) {
            let is_candidate = matches!(entry.kind, Kind::File { .. }) && entry.holes.is_none();
            let has_part =
                || parts.binary_search_by(|part| part.as_bytes().cmp(part_name(n).as_bytes())).is_ok();
            if !is_candidate || has_part() || excluded.contains(&tree.path_of(entry)) {
                continue;
            }
            let Some(stat) = examined(&mut tree, entry).filter(|stat| is_as_listed(stat, entry)) else {
                continue;
            };
            let others = links.get(&n).map_or(&[][..], Vec::as_slice);
            let is_same = |stat: Stat| (stat.st_dev, stat.st_ino);
            let has_names = stat.st_nlink as usize == 1 + others.len()
                && others.iter().all(|other| examined(&mut tree, other).map(is_same) == Some(is_same(stat)));
            let is_readable = Mode::from_raw_mode(stat.st_mode).contains(Mode::RUSR);
            let mut has_attributes = || {
                !apply.wants_attributes()
                    || apply.has_attributes(entry, open_published(&mut tree, &place.disk, entry))
            };
            if has_names && is_readable && apply.may_keep_owner(&stat) && has_attributes() {
                found.0.insert(n, Stamp::of(&stat));
            }
        }
        Ok(found)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the file of this entry stays in place.
    pub(super) fn has(&self, entry: u32) -> bool {
        self.0.contains_key(&entry)
    }

    /// Returns the entries of the files.
    pub(super) fn entries(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.keys().copied()
    }

    /// Opens a file in place.
    ///
    /// # Errors
    /// [`ObjectError::ChangedInPlace`] when it is not as it was found or cannot be opened, inside an [`io::Error`].
    pub(super) fn open(&self, n: u32, entry: &Entry, disk: &Disk, tree: &mut Tree<'_>) -> io::Result<File> {
        let is_found = |file: &File| fstat(file).is_ok_and(|stat| self.0.get(&n) == Some(&Stamp::of(&stat)));
        let file = open_object(tree, disk, entry).ok().filter(is_found);
        file.ok_or_else(|| io::Error::other(changed(tree, entry)))
    }

    /// Checks that all files are as they were found, and sets the modes and owners that differ from the manifest's. With
    /// [`Durability::Synced`], flushes the files.
    ///
    /// # Errors
    /// [`ObjectError::ChangedInPlace`] names the first file that has changed.
    pub(super) fn complete(
        &self,
        store: &Store,
        manifest: &Manifest,
        (apply, durability): (&mut Apply<'_>, Durability),
        work: &FileWork,
    ) -> Result<(), ObjectError> {
        let place = &store.files.place;
        let mut tree = place.tree();
        let mut to_open = Vec::new();
        for (n, stamp) in &self.0 {
            let entry = &manifest.entries()[*n as usize];
            work.step(&place.out_path)?;
            if store.is_withdrawn(*n, entry) {
                continue;
            }
            let stat = examined(&mut tree, entry).filter(|stat| Stamp::of(stat) == *stamp);
            let stat = stat.ok_or_else(|| changed(&tree, entry))?;
            let mode = apply.has_owner(entry, &stat).then(|| apply.mode(entry, || Ok(stat)));
            if mode != Some(Mode::from_raw_mode(stat.st_mode)) || durability == Durability::Synced {
                to_open.push((*n, mode));
            }
        }
        for (n, mode) in to_open {
            let entry = &manifest.entries()[n as usize];
            let path = tree.path_of(entry);
            let failed = |e: io::Error| ObjectError::io(&path, "complete it", e);
            let file = self.open(n, entry, &place.disk, &mut tree).map_err(failed)?;
            let mode = mode.unwrap_or_else(|| {
                apply.give(&file, entry);
                apply.mode(entry, || fstat(&file))
            });
            place.disk.fchmod(&file, mode).map_err(|e| failed(e.into()))?;
            if durability == Durability::Synced {
                place.disk.sync_all(&file).map_err(failed)?;
            }
        }
        Ok(())
    }
}

impl Files {
    /// Opens the file with the content of an entry: the file in place, or the part file.
    pub(super) fn open_content(
        &self,
        (n, manifest): (u32, &Manifest),
        tree: &mut Tree<'_>,
    ) -> io::Result<File> {
        match self.in_place.has(n) {
            true => self.in_place.open(n, &manifest.entries()[n as usize], &self.place.disk, tree),
            false => self.place.existing_part(n),
        }
    }

    /// Returns whether the file of this piece stays in place because it has these bytes. Otherwise makes a part file of it, if it
    /// has none yet.
    pub(super) fn stays_in_place(
        &mut self,
        manifest: &Manifest,
        piece: Piece,
        bytes: &[u8],
    ) -> Result<bool, ObjectError> {
        if !self.in_place.has(piece.entry) {
            return Ok(false);
        }
        let (disk, entry) = (&self.place.disk, &manifest.entries()[piece.entry as usize]);
        let failed = |e| ObjectError::io(self.place.out_path.join(&entry.path), "read", e);
        let open = || self.in_place.open(piece.entry, entry, disk, &mut self.place.tree());
        let file = self.open.get(piece.entry, open).map_err(failed)?;
        let mut there = vec![0; bytes.len()];
        let read = disk.read_at(file, &mut there, piece.offset);
        if read.map_err(|_| changed(&self.place.tree(), entry))? == bytes.len() && there == bytes {
            return Ok(true);
        }
        let copy = self.place.create(LINK)?;
        let copied = disk.set_len(&copy, 0).and_then(|()| disk.copy(file, &copy));
        copied.map_err(|e| self.place.failed(&entry.path, e, entry.size()))?;
        // The stored blocks have the hashes of the file that was found.
        open().map_err(failed)?;
        let renamed = disk.renameat(&self.place.state, LINK, &self.place.parts, part_name(piece.entry));
        renamed.map_err(|e| ObjectError::io(&self.place.out_path, "make a part file in it", e))?;
        self.open.clear();
        self.in_place.0.remove(&piece.entry);
        Ok(false)
    }

    /// Removes the files that have changed from the files in place, and the file of `error`. Returns their entries.
    pub(super) fn drop_changed(&mut self, manifest: &Manifest, error: &ObjectError) -> Vec<u32> {
        self.open.clear();
        let mut tree = self.place.tree();
        let mut dropped = Vec::new();
        self.in_place.0.retain(|n, stamp| {
            let entry = &manifest.entries()[*n as usize];
            let is_named =
                matches!(error, ObjectError::ChangedInPlace { path } if *path == tree.path_of(entry));
            let is_kept =
                !is_named && examined(&mut tree, entry).is_some_and(|stat| Stamp::of(&stat) == *stamp);
            if !is_kept {
                dropped.push(*n);
            }
            is_kept
        });
        dropped
    }
}

fn changed(tree: &Tree<'_>, entry: &Entry) -> ObjectError {
    ObjectError::ChangedInPlace { path: tree.path_of(entry) }
}

/// Returns the state of the file with the path of an entry. Links are not followed.
pub(super) fn examined(tree: &mut Tree<'_>, entry: &Entry) -> Option<Stat> {
    let (above, name) = split(&entry.path);
    statat(tree.dir(above, Absent::Leave).ok()??, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// Opens the file of the output directory that has the path of an entry. Other objects than files are not opened.
pub(super) fn open_published(tree: &mut Tree<'_>, disk: &Disk, entry: &Entry) -> io::Result<File> {
    let file = open_object(tree, disk, entry)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

fn open_object(tree: &mut Tree<'_>, disk: &Disk, entry: &Entry) -> io::Result<File> {
    let (above, name) = split(&entry.path);
    let above = tree.dir(above, Absent::Leave).map_err(io::Error::other)?.ok_or(io::ErrorKind::NotFound)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(disk.openat(above, name, flags, Mode::empty())?))
}
