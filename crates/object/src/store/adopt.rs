//! Reuse of content from an earlier version of the same tree: of files from incomplete transfers, and of files and chunks from the
//! output directory and from other files of this host.

use super::coverage::Coverage;
use super::in_place::{Opened, open_published};
use super::search::{Candidates, WantedChunks};
use super::{Stage, Store};
use crate::chunking::READ;
use crate::error::ObjectError;
use crate::file_work::{FileWork, WorkStage};
use crate::gather::seeds::{ReadBlock, Seeds};
use crate::geometry::{Geometry, TransferId};
use crate::host::disk::Disk;
use crate::host::sys::OpenFiles;
use crate::host::tree::Tree;
use crate::journal;
use crate::manifest::{Entry, Kind, STATE_DIR};
use crate::output_directory::{JOURNAL, existing_part, part_name};
use crate::partial_transfers::unfinished;
use crate::{Hash, hash_of};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that was taken over.
enum Adopted {
    /// From another transfer.
    Part {
        /// Position of its content in the object stream of the other transfer.
        from: u64,
        /// Index of the other transfer.
        of: usize,
    },
    /// From a file of this host; the file is complete.
    Whole,
}

impl Store {
    /// Also looks for content of the transfer in these files, directories and block devices.
    pub fn reuse(&mut self, paths: Vec<PathBuf>) {
        self.ledger.has_others |= !paths.is_empty();
        self.files.reuse = paths;
    }

    /// Takes files from incomplete transfers and from the output directory, if they have the same path, size and time of
    /// modification in this transfer. Files of the output directory stay in place if they can; otherwise they are copied. Copies chunks of the other files, if the manifest lists chunks. Blocks whose bytes are all
    /// found count like stored blocks of an earlier receiver: the root hash or signed hashes decide whether they are correct. For
    /// other blocks, the source symbols that were found are recorded ([`Store::take_seeds`]).
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
            self.files.place.make_room(&known.manifest, |n| self.files.in_place.has(n))?;
        }
        let (candidates, warnings) = Candidates::list(&std::mem::take(&mut self.files.reuse));
        self.files.warnings.extend(warnings);
        self.copy_files(&mut adopted, &candidates, work)?;
        let mut found = self.copy_chunks(&adopted, &candidates, work)?;
        if let Some(known) = self.known.clone().filter(|_| self.stage == Stage::Receiving) {
            self.files.write_border(&self.ledger.about_manifest().border(&known))?;
        }
        self.add_adopted(&adopted, &others, &mut found);
        self.note_found(&found.into_iter().collect(), work)?;
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
            if !is_same
                || self.files.in_place.has(n)
                || self.has_content_of(n)
                || adopted.contains_key(&n)
                || !other.has_any(from..from + size)
            {
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

    /// Returns whether an earlier receiver has stored blocks with content of this file. The content in the last block of the
    /// manifest does not count, because it is written again.
    fn has_content_of(&self, entry: u32) -> bool {
        let range = self.known.as_ref().and_then(|known| known.layout.range_of(entry));
        range.is_some_and(|range| {
            let first = self.geometry.block_of(range.start).max(self.geometry.manifest_blocks());
            (first..=self.geometry.block_of(range.end - 1)).any(|block| self.has(block))
        })
    }

    /// Copies whole files to part files: from the output directory, or from files with the same name.
    fn copy_files(
        &self,
        adopted: &mut BTreeMap<u32, Adopted>,
        candidates: &Candidates,
        work: &FileWork,
    ) -> Result<(), ObjectError> {
        let Some(known) = &self.known else { return Ok(()) };
        let (place, entries) = (&self.files.place, known.manifest.entries());
        let mut tree = place.tree();
        work.begin(WorkStage::Verifying, entries.len() as u64);
        for (n, entry) in (0..).zip(entries) {
            work.step(&place.out_path)?;
            let is_absent =
                !adopted.contains_key(&n) && !self.files.in_place.has(n) && !self.has_content_of(n);
            if matches!(entry.kind, Kind::File { size } if size > 0) && is_absent {
                let file = open_published(&mut tree, &place.disk, entry).ok();
                let Some(file) = file.filter(|file| is_same(file, entry)).or_else(|| candidates.same(entry))
                else {
                    continue;
                };
                let part = place.part(n)?;
                match place.disk.copy(&file, &part) {
                    Ok(()) => drop(adopted.insert(n, Adopted::Whole)),
                    Err(_) => place.disk.set_len(&part, 0).map_err(|e| place.failed(&entry.path, e, 0))?,
                }
            }
        }
        Ok(())
    }

    /// Copies chunks to part files: from files of the output directory with the same path, and from the candidates. Returns the
    /// parts of the object stream that were found.
    fn copy_chunks(
        &self,
        adopted: &BTreeMap<u32, Adopted>,
        candidates: &Candidates,
        work: &FileWork,
    ) -> Result<Vec<Range<u64>>, ObjectError> {
        let Some(known) = &self.known else { return Ok(Vec::new()) };
        let is_there = |entry| adopted.contains_key(&entry) || self.files.in_place.has(entry);
        let is_wanted = |entry, bytes: &_| !is_there(entry) && !self.has_all(bytes);
        let Some(mut wanted) = WantedChunks::new(known, is_wanted) else { return Ok(Vec::new()) };
        let (place, entries) = (&self.files.place, known.manifest.entries());
        let changed: Vec<&Entry> =
            wanted.entries().into_iter().map(|entry| &entries[entry as usize]).collect();
        let bytes = changed.iter().map(|entry| entry.size()).sum::<u64>() + candidates.bytes();
        work.begin(WorkStage::Verifying, bytes / READ as u64);
        let mut open = OpenFiles::default();
        let mut write = |entry, offset, bytes: &[u8]| {
            let part = open.get(entry, || place.part(entry))?;
            let name = &entries[entry as usize].path;
            place.disk.write_all_at(part, bytes, offset).map_err(|e| place.failed(name, e, self.left()))
        };
        let mut tree = place.tree();
        for entry in changed {
            if let Ok(file) = open_published(&mut tree, &place.disk, entry) {
                wanted.search((&place.disk, &file), (work, &place.out_path), &mut write)?;
            }
        }
        for file in candidates.opened() {
            wanted.search((&place.disk, &file), (work, &place.out_path), &mut write)?;
        }
        Ok(wanted.found)
    }

    /// Adds the parts of the object stream that lie in adopted files and in files in place.
    fn add_adopted(&self, adopted: &BTreeMap<u32, Adopted>, others: &[Store], found: &mut Vec<Range<u64>>) {
        let Some(known) = &self.known else { return };
        found.extend(self.files.in_place.entries().filter_map(|entry| known.layout.range_of(entry)));
        for (entry, file) in adopted {
            let Some(range) = known.layout.range_of(*entry) else { continue };
            let Adopted::Part { from, of } = file else {
                found.push(range);
                continue;
            };
            let (other, end) = (&others[*of], from + (range.end - range.start));
            for block in other.geometry.block_of(*from)..=other.geometry.block_of(end - 1) {
                if other.has(block) {
                    let bytes = other.geometry.range(block);
                    let (start, stop) = (bytes.start.max(*from), bytes.end.min(end));
                    found.push(range.start + (start - from)..range.start + (stop - from));
                }
            }
        }
    }

    /// Records as stored each block whose bytes were all found, and the found symbols of other blocks.
    fn note_found(&mut self, found: &Coverage, work: &FileWork) -> Result<(), ObjectError> {
        let blocks = self.geometry.blocks().unwrap_or(0);
        work.begin(WorkStage::Verifying, blocks.into());
        let (mut open, mut buf, mut seeds) = (Opened::new(&self.files.place), Vec::new(), Vec::new());
        for index in 0..blocks {
            work.step(&self.files.place.out_path)?;
            if self.has(index) {
                continue;
            }
            if !found.covers(&self.geometry.range(index)) {
                seeds.push((index, found.symbols_of(&self.geometry, index)));
                continue;
            }
            if self.files.read_back(&self.spot(index), &mut buf, &mut open).is_ok() {
                let hash: Hash = hash_of(&buf);
                self.files.journal.block(index, hash)?;
                self.ledger.count_resumed(index, hash);
            }
        }
        self.files.seeds = self.reader()?.map(|read| {
            let mut found = Seeds::new(read);
            seeds.into_iter().for_each(|(index, seed)| found.insert(index, seed));
            found
        });
        Ok(())
    }

    /// Returns the found symbols of incomplete blocks, once.
    pub fn take_seeds(&mut self) -> Option<Seeds> {
        self.files.seeds.take()
    }

    /// Returns a function that reads bytes of blocks from the part files.
    fn reader(&self) -> Result<Option<ReadBlock>, ObjectError> {
        let Some(known) = self.known.clone() else { return Ok(None) };
        let place = &self.files.place;
        let copied = place.parts.try_clone().and_then(|parts| Ok((parts, place.out.try_clone()?)));
        let (parts, out) = copied.map_err(|e| ObjectError::io(&place.out_path, "open files in it", e))?;
        let (disk, path, geometry) = (place.disk.clone(), place.out_path.clone(), self.geometry);
        Ok(Some(Arc::new(move |block, bytes: Range<usize>, into| {
            let start = geometry.range(block).start;
            let mut rest = into;
            for piece in known.layout.pieces(start + bytes.start as u64..start + bytes.end as u64) {
                let (into, after) = std::mem::take(&mut rest).split_at_mut(piece.len);
                rest = after;
                let entry = &known.manifest.entries()[piece.entry as usize];
                let file = existing_part(&disk, &parts, piece.entry).or_else(|e| match e.kind() {
                    io::ErrorKind::NotFound => {
                        open_published(&mut Tree::new(&disk, &out, &path), &disk, entry)
                    }
                    _ => Err(e),
                })?;
                if disk.read_at(&file, into, piece.offset)? < piece.len {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        })))
    }
}

/// Returns whether a file has the size and time of modification of an entry.
pub(super) fn is_same(file: &File, entry: &Entry) -> bool {
    file.metadata().is_ok_and(|about| {
        let mtime = i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec());
        about.len() == entry.size() && mtime == i128::from(entry.mtime)
    })
}

/// Returns the transfer and geometry stated in the journal of an incomplete transfer.
fn header_of(disk: &Disk, out: &Path, transfer: &str) -> Option<(TransferId, Geometry)> {
    let path = out.join(STATE_DIR).join(transfer).join(JOURNAL);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = disk.openat(rustix::fs::CWD, path.as_path(), flags, Mode::empty()).ok()?;
    journal::header_of(disk, &file.into())
}
