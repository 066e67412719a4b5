//! Reuse of files from an earlier version of the same tree, in which most files are equal: from incomplete transfers, and from
//! the output directory.

use super::{Stage, Store};
use crate::error::ObjectError;
use crate::file_work::{FileWork, WorkStage};
use crate::geometry::{Geometry, TransferId};
use crate::host::disk::Disk;
use crate::host::sys::OpenFiles;
use crate::host::tree::{Absent, Tree, split};
use crate::journal;
use crate::manifest::{Entry, Kind, STATE_DIR};
use crate::output_directory::{JOURNAL, part_name};
use crate::partial_transfers::unfinished;
use crate::{Hash, hash_of};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A file that was taken over.
enum Adopted {
    /// From another transfer.
    Part {
        /// Position of its content in the object stream of the other transfer.
        from: u64,
        /// Index of the other transfer.
        of: usize,
    },
    /// From the output directory; the file is complete.
    Whole,
}

impl Store {
    /// Takes files from incomplete transfers and copies files of the output directory, if they have the same path, size and time of
    /// modification in this transfer. Their blocks count like stored blocks of an earlier receiver: the root hash or signed hashes
    /// decide whether they are correct.
    ///
    /// # Errors
    /// When the journal cannot be written or the disk has no space for the missing content; [`ObjectError::Cancelled`].
    pub fn adopt(&mut self, work: &FileWork) -> Result<(), ObjectError> {
        self.ledger.has_others = false;
        self.files.open.clear();
        let others: Vec<Store> = self.others(work)?;
        let mut adopted: BTreeMap<u32, Adopted> = BTreeMap::new();
        for (of, other) in others.iter().enumerate() {
            self.take_files(other, of, &mut adopted);
        }
        if let Some(known) = &self.known {
            self.files.place.make_room(&known.manifest)?;
        }
        self.copy_files(&mut adopted, work)?;
        if let Some(known) = self.known.clone().filter(|_| self.stage == Stage::Receiving) {
            self.files.write_border(&self.ledger.about_manifest().border(&known))?;
        }
        self.note_adopted(&adopted, &others, work)?;
        for (of, mut other) in others.into_iter().enumerate() {
            if adopted.values().any(|file| matches!(file, Adopted::Part { of: taken, .. } if *taken == of)) {
                // Files of the other transfer were moved to this transfer. If the rest of the other transfer cannot be removed,
                // it does no harm.
                other.start_over().ok();
                other.files.place.remove(&other.transfer.to_string());
            }
        }
        Ok(())
    }

    /// Returns the other incomplete transfers that no receiver uses and whose manifests are known, after verifying their stored
    /// blocks.
    fn others(&self, work: &FileWork) -> Result<Vec<Store>, ObjectError> {
        let out = &self.files.place.out_path;
        let mut others = Vec::new();
        let mut left = unfinished(out)?;
        // The order must not depend on times of writing; otherwise runs of a simulated world would not be reproducible.
        left.sort_by(|a, b| a.transfer.cmp(&b.transfer));
        for one in left {
            let Some((transfer, geometry)) = header_of(&self.files.place.disk, out, &one.transfer) else {
                continue;
            };
            if one.in_use || transfer == self.transfer || transfer.to_string() != one.transfer {
                continue;
            }
            // Skips a transfer that cannot be opened, or that another receiver has locked in the meantime.
            let Ok((mut other, Some(reported))) =
                Store::begin(&self.files.place.disk, out, transfer, geometry, None)
            else {
                continue;
            };
            other.ledger.has_others = false;
            if other.go_on(reported, work).is_ok() && other.known.is_some() && other.stage == Stage::Receiving
            {
                others.push(other);
            }
        }
        Ok(others)
    }

    /// Moves part files from `other` to this transfer, if the file has the same path, size and time of modification in both
    /// transfers.
    fn take_files(&self, other: &Store, of: usize, adopted: &mut BTreeMap<u32, Adopted>) {
        let (Some(ours), Some(theirs)) = (&self.known, &other.known) else { return };
        let mut at = u64::from(other.geometry.manifest_len);
        let mut known: BTreeMap<&OsStr, (u32, u64)> = BTreeMap::new();
        for (n, entry) in (0..).zip(theirs.manifest.entries()) {
            known.insert(&entry.path, (n, at));
            at += entry.size();
        }
        for (n, entry) in (0..).zip(ours.manifest.entries()) {
            let Kind::File { size } = entry.kind else { continue };
            let Some(&(their, from)) = known.get(entry.path.as_os_str()).filter(|_| size > 0) else {
                continue;
            };
            let before = &theirs.manifest.entries()[their as usize];
            let is_same = (&before.kind, before.mtime) == (&entry.kind, entry.mtime);
            if !is_same || adopted.contains_key(&n) || !other.has_any(from..from + size) {
                continue;
            }
            let (their, our) = (part_name(their), part_name(n));
            if self
                .files
                .place
                .disk
                .renameat(&other.files.place.parts, &their, &self.files.place.parts, &our)
                .is_ok()
            {
                adopted.insert(n, Adopted::Part { from, of });
            }
        }
    }

    /// Copies files of the output directory to part files.
    fn copy_files(&self, adopted: &mut BTreeMap<u32, Adopted>, work: &FileWork) -> Result<(), ObjectError> {
        let Some(known) = &self.known else { return Ok(()) };
        let (place, entries) = (&self.files.place, known.manifest.entries());
        let mut tree = place.tree();
        work.begin(WorkStage::Verifying, entries.len() as u64);
        for (n, entry) in (0..).zip(entries) {
            work.step(&place.out_path)?;
            if matches!(entry.kind, Kind::File { size } if size > 0) && !adopted.contains_key(&n) {
                let Some(file) = published(&mut tree, &place.disk, entry) else { continue };
                let part = place.part(n)?;
                match place.disk.copy(&file, &part) {
                    Ok(()) => drop(adopted.insert(n, Adopted::Whole)),
                    Err(_) => place.disk.set_len(&part, 0).map_err(|e| place.failed(&entry.path, e, 0))?,
                }
            }
        }
        Ok(())
    }

    /// Records as stored each block whose bytes all lie in stored blocks of transfers from which files were taken.
    fn note_adopted(
        &mut self,
        adopted: &BTreeMap<u32, Adopted>,
        others: &[Store],
        work: &FileWork,
    ) -> Result<(), ObjectError> {
        let blocks = self.geometry.blocks().unwrap_or(0);
        work.begin(WorkStage::Verifying, blocks.into());
        let (mut open, mut buf) = (OpenFiles::default(), Vec::new());
        for index in 0..blocks {
            work.step(&self.files.place.out_path)?;
            if self.has(index) || !self.is_adopted(index, adopted, others) {
                continue;
            }
            if self.files.read_back(&self.spot(index), &mut buf, &mut open).is_ok() {
                let hash: Hash = hash_of(&buf);
                self.files.journal.block(index, hash)?;
                self.ledger.count_resumed(index, hash);
            }
        }
        Ok(())
    }

    fn is_adopted(&self, index: u32, adopted: &BTreeMap<u32, Adopted>, others: &[Store]) -> bool {
        let Some(known) = &self.known else { return false };
        known.layout.pieces(self.geometry.range(index)).all(|piece| match adopted.get(&piece.entry) {
            Some(Adopted::Part { from, of }) => {
                let from = from + piece.offset;
                others[*of].has_all(from..from + piece.len as u64)
            }
            Some(Adopted::Whole) => true,
            None => false,
        })
    }
}

/// Opens the file of the output directory that has the path, size and time of modification of an entry.
fn published(tree: &mut Tree<'_>, disk: &Disk, entry: &Entry) -> Option<File> {
    let (above, name) = split(&entry.path);
    let above = tree.dir(above, Absent::Leave).ok()??;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(disk.openat(above, name, flags, Mode::empty()).ok()?);
    let about = file.metadata().ok().filter(|about| about.is_file() && about.len() == entry.size())?;
    let mtime = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
    (mtime == i128::from(entry.mtime)).then_some(file)
}

/// Returns the transfer and geometry stated in the journal of an incomplete transfer.
fn header_of(disk: &Disk, out: &Path, transfer: &str) -> Option<(TransferId, Geometry)> {
    let path = out.join(STATE_DIR).join(transfer).join(JOURNAL);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = disk.openat(rustix::fs::CWD, path.as_path(), flags, Mode::empty()).ok()?;
    journal::header_of(disk, &file.into())
}
