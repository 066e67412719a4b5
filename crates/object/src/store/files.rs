//! The files of an incomplete transfer: the head, the part files and the journal.

use super::existing::backup_of;
use super::in_place::{InPlace, Opened};
use super::ledger::{Learning, Operation, Performed, Spot};
use super::obstacles::check_for_obstacles;
use super::{Known, Stage, publish};
use crate::apply::Wanted;
use crate::block::hash_of;
use crate::error::ObjectError;
use crate::gather::seeds::Seeds;
use crate::geometry::{Geometry, TransferId};
use crate::host::sys::OpenFiles;
use crate::journal::Journal;
use crate::layout::Layout;
use crate::manifest::Manifest;
use crate::names::{self, Names};
use crate::origin_records::{Admission, Damaged, Remembered};
use crate::output_directory::{HEAD, OutputDirectory};
use crate::spool::nameless;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The files of one transfer. The thread that owns this value performs all operations on the files.
#[derive(Debug)]
pub struct Files {
    pub(crate) place: OutputDirectory,
    pub(super) transfer: TransferId,
    pub(super) head: File,
    pub(super) journal: Journal,
    pub(crate) open: OpenFiles,
    /// Files of the output directory that stay there, because they have the content of their entries as far as it is known.
    pub(super) in_place: InPlace,
    /// Files that do not stay in place, because they changed or could not be read while the manifest was read.
    pub(super) not_in_place: BTreeSet<PathBuf>,
    pub(crate) admission: Option<Admission>,
    /// Warnings for the user, in the order in which they arose.
    pub warnings: Vec<String>,
    /// Metadata that is applied to files, beyond names, permission bits, times and hard links.
    pub wanted: Wanted,
    /// Other files, directories and block devices of this host that may have content of the transfer.
    pub(super) reuse: Vec<PathBuf>,
    /// Symbols of incomplete blocks that were found on the disk.
    pub(super) seeds: Option<Seeds>,
}

impl Files {
    /// Performs an operation.
    ///
    /// # Errors
    /// An [`ObjectError`]. A block whose write failed does not count as stored.
    pub fn perform(&mut self, operation: Operation) -> Result<Performed, ObjectError> {
        match operation {
            Operation::Write { spot, data, hash, ends_at } => {
                if let Some(len) = ends_at {
                    self.journal.stream_len(len)?;
                }
                self.write(&spot, &data)?;
                self.journal.block(spot.index, hash)?;
                Ok(Performed::Written { index: spot.index, hash, data })
            }
            Operation::Learn(about) => Ok(Performed::Learned(self.learn_manifest(about)?)),
            Operation::End(len) => self.journal.stream_len(len).map(|()| Performed::Noted),
            Operation::Forget(index) => self.journal.withdraw(index).map(|()| Performed::Noted),
            Operation::GiveBack(entry) => {
                self.give_back(entry);
                Ok(Performed::Noted)
            }
            Operation::Rehash(spot) => {
                let mut data = Vec::new();
                if self.read_back(&spot, &mut data, &mut Opened::new(&self.place)).is_err() {
                    return Ok(Performed::Rehashed(spot.index, None));
                }
                let hash = hash_of(&data);
                self.journal.block(spot.index, hash)?;
                Ok(Performed::Rehashed(spot.index, Some(hash)))
            }
            Operation::Verify(spot, hash) => {
                let mut data = Vec::new();
                let read = self.read_back(&spot, &mut data, &mut Opened::new(&self.place));
                Ok(Performed::Verified(spot.index, read.is_ok() && hash_of(&data) == hash))
            }
        }
    }

    /// Writes the data of a block to the head, to part files, or to both. Before the manifest is known, file content in the last
    /// block of the manifest is written only to the head.
    fn write(&mut self, spot: &Spot, data: &[u8]) -> Result<(), ObjectError> {
        if spot.in_head {
            let written = self.place.disk.write_all_at(&self.head, data, spot.range.start);
            written.map_err(|e| self.place.failed(HEAD, e, spot.left))?;
        }
        self.write_parts(spot, data)
    }

    /// Writes the bytes of a block that belong to files to the part files.
    fn write_parts(&mut self, spot: &Spot, data: &[u8]) -> Result<(), ObjectError> {
        let Some(known) = &spot.known else { return Ok(()) };
        let mut rest = spot.files_part(data);
        for piece in known.layout.pieces(spot.range.clone()) {
            let (bytes, after) = rest.split_at(piece.len);
            rest = after;
            if spot.withdrawn.contains(&piece.entry) {
                continue;
            }
            if self.stays_in_place(&known.manifest, piece, bytes)? {
                continue;
            }
            let part = self.open.get(piece.entry, || self.place.part(piece.entry))?;
            let entry = &known.manifest.entries()[piece.entry as usize];
            let written = match entry.holes {
                Some(_) => self.place.disk.write_sparse_at(part, bytes, piece.offset),
                None => self.place.disk.write_all_at(part, bytes, piece.offset),
            };
            written.map_err(|e| self.place.failed(&entry.path, e, spot.left))?;
            let end = piece.offset + piece.len as u64;
            self.place.disk.write_back(part, entry.size(), piece.offset..end);
        }
        Ok(())
    }

    /// Reads the data of a stored block, with zeros in place of withdrawn files.
    pub(super) fn read_back(&self, spot: &Spot, buf: &mut Vec<u8>, open: &mut Opened<'_>) -> io::Result<()> {
        buf.resize((spot.range.end - spot.range.start) as usize, 0);
        if spot.in_head {
            let have = self.place.disk.read_at(&self.head, buf, spot.range.start)?;
            if let Some(known) = &spot.known {
                let mut rest = spot.files_part_mut(buf);
                for piece in known.layout.pieces(spot.range.clone()) {
                    let (bytes, after) = rest.split_at_mut(piece.len);
                    rest = after;
                    if spot.withdrawn.contains(&piece.entry) {
                        bytes.fill(0);
                    }
                }
            }
            return if have == buf.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        let Some(known) = &spot.known else { return Err(io::ErrorKind::NotFound.into()) };
        let mut rest = &mut buf[..];
        for piece in known.layout.pieces(spot.range.clone()) {
            let (into, after) = rest.split_at_mut(piece.len);
            rest = after;
            if spot.withdrawn.contains(&piece.entry) {
                into.fill(0);
                continue;
            }
            let content = || self.open_content((piece.entry, &known.manifest), &mut open.tree);
            let file = open.files.get(piece.entry, content)?;
            if self.place.disk.read_at(file, into, piece.offset)? < into.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let size = known.manifest.entries()[piece.entry as usize].size();
            self.place.disk.release(file, size, piece.offset);
        }
        Ok(())
    }

    /// Frees the disk space of a file's content. The part file remains, with length zero, because a missing part file would mean
    /// that the file was already renamed.
    fn give_back(&mut self, entry: u32) {
        if self.in_place.has(entry) {
            return;
        }
        self.open.clear();
        if let Ok(part) = self.place.part(entry) {
            self.place.disk.set_len(&part, 0).ok(); // all parts go at the end
        }
    }

    /// Makes the blocks in holes zeros. A part file that was taken from another transfer, or copied, may hold other bytes there.
    pub(super) fn dig_holes(&mut self, known: &Known, geometry: &Geometry) -> Result<(), ObjectError> {
        for run in known.layout.void() {
            let bytes = geometry.range(run.start).start..geometry.range(run.end - 1).end;
            for piece in known.layout.pieces(bytes) {
                let part = self.open.get(piece.entry, || self.place.part(piece.entry))?;
                let zeroed = self.place.disk.zero(part, piece.offset..piece.offset + piece.len as u64);
                let name = &known.manifest.entries()[piece.entry as usize].path;
                zeroed.map_err(|e| self.place.failed(name, e, 0))?;
            }
        }
        Ok(())
    }

    /// Reads the manifest, whose blocks are all stored, and prepares the output directory for its files.
    pub(super) fn learn_manifest(&mut self, about: Learning) -> Result<Arc<Known>, ObjectError> {
        let mut bytes = vec![0; about.geometry.manifest_len as usize];
        self.place
            .disk
            .read_at(&self.head, &mut bytes, 0)
            .map_err(|e| ObjectError::io(self.place.path(self.transfer).join(HEAD), "read", e))?;
        let found = TransferId::of(&bytes, &about.announced);
        if found != self.transfer {
            return Err(ObjectError::OtherManifest { expected: self.transfer, found });
        }
        let manifest = self.named(Manifest::decode(&bytes)?, about.stage)?;
        let layout = Layout::new(&manifest, &about.geometry)?;
        let known = Arc::new(Known { manifest, layout });
        if about.stage == Stage::Receiving {
            let manifest = &known.manifest;
            self.check_age(manifest)?;
            check_for_obstacles(&self.place, manifest, &self.wanted)?;
            backup_of(&self.place, &self.wanted.existing.backup)?;
            check_footprint(manifest, self.admission.as_ref())?;
            self.in_place = InPlace::find(&self.place, manifest, &self.wanted, &self.not_in_place)?;
            publish::take_back(&self.place, manifest, &self.in_place)?;
            self.place.remove_foreign_parts()?;
            if !about.has_others {
                self.place.make_room(manifest, |n| self.in_place.has(n))?; // otherwise when it is known what can be taken over
            }
            self.write_border(&about.border(&known))?;
        }
        Ok(known)
    }

    /// Writes the file content in the last block of the manifest to part files.
    pub(super) fn write_border(&mut self, border: &Spot) -> Result<(), ObjectError> {
        let mut data = vec![0; (border.range.end - border.range.start) as usize];
        if border.files_part(&data).is_empty() {
            return Ok(());
        }
        self.place
            .disk
            .read_at(&self.head, &mut data, border.range.start)
            .map_err(|e| ObjectError::io(self.place.path(self.transfer).join(HEAD), "read", e))?;
        self.write_parts(border, &data)
    }

    /// Creates a file without a name next to the part files, for content whose final position is not known yet. The file vanishes
    /// when its descriptor is closed. The object stream has `stream_len` bytes, of which `left` bytes are missing.
    ///
    /// # Errors
    /// [`ObjectError::DiskFull`] when the disk has no space for both the temporary file and the received files.
    pub fn room(&self, stream_len: u64, left: u64) -> Result<(File, PathBuf), ObjectError> {
        let to_allocate = stream_len.saturating_sub(self.place.allocated());
        let (needed, available) = (to_allocate + left, self.place.available());
        if needed > available {
            return Err(ObjectError::DiskFull {
                path: self.place.out_path.clone(),
                needed,
                available: Some(available),
            });
        }
        let path = self.place.path(self.transfer);
        let file = nameless(&path).map_err(|e| ObjectError::io(&path, "create a temporary file in it", e))?;
        Ok((file, path))
    }

    /// Returns whether the output directory has content of this source.
    pub(super) fn knows_origin(&self) -> bool {
        let has_any = |admission: &Admission| {
            let remembered = Remembered::load(&self.place.disk, &self.place.states).unwrap_or_default();
            remembered.has_any_of(&admission.origin)
        };
        self.admission.as_ref().is_some_and(has_any)
    }

    /// Checks that no name would get older content than its present content.
    fn check_age(&mut self, manifest: &Manifest) -> Result<(), ObjectError> {
        let Some(admission) = &self.admission else { return Ok(()) };
        match Remembered::load(&self.place.disk, &self.place.states) {
            Ok(remembered) => remembered.check(&self.place.out_path, manifest, self.transfer, admission),
            Err(Damaged) => {
                self.warnings.push(self.place.forgotten());
                Ok(())
            }
        }
    }

    /// Returns the manifest with the names that this receiver uses.
    fn named(&mut self, manifest: Manifest, stage: Stage) -> Result<Manifest, ObjectError> {
        let names = self.admission.as_ref().map_or(Names::Keep, |admission| admission.names);
        let (manifest, changed) = manifest.named_by(names)?;
        if changed > 0 && stage == Stage::Receiving {
            self.warnings.push(names::reported(changed));
        }
        Ok(manifest)
    }
}

/// Checks that the disk space of all entries, without their content, does not exceed the maximum that is set for content.
pub(super) fn check_footprint(manifest: &Manifest, admission: Option<&Admission>) -> Result<(), ObjectError> {
    let Some(most) = admission.and_then(|admission| admission.most) else { return Ok(()) };
    let bytes = manifest.footprint();
    if bytes > most {
        return Err(ObjectError::TooManyEntries { entries: manifest.entries().len(), bytes, most });
    }
    Ok(())
}
