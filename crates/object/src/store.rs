//! Writing files and trees at the receiver.
//!
//! Until a transfer is complete, all its files are in `.faircast/<transfer>/` inside the output directory: a file for the first
//! blocks (`head`), one part file for each received file, and the journal. Only [`Store::finish`] changes the output directory
//! itself.

mod adopt;
mod any;
mod compare;
mod coverage;
mod device;
mod distrust;
mod existing;
mod files;
mod in_place;
mod ledger;
mod obstacles;
mod publish;
mod search;

use super::apply::Wanted;
use super::block::hash_of;
use super::error::ObjectError;
use super::file_work::{FileWork, WorkStage};
use super::geometry::{Geometry, Hash, TransferId};
use super::journal::{Journal, JournalContent, WITHDRAWN};
use super::layout::Layout;
use super::manifest::{Counts, Manifest};
use super::metadata::{OwnersBy, Preserve};
use super::origin_records::Admission;
use super::output_directory::{HEAD, JOURNAL, OutputDirectory, has_others};
use super::policy::{Durability, Existing};
use crate::gather::spill::SpillFile;
use crate::host::disk::Disk;
use crate::host::sys::OpenFiles;
use in_place::{InPlace, Opened};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::Path;

pub use any::{AnyFiles, AnyStore};
pub use compare::{Compared, ComparedOutput, Comparing, Granularity};
pub use device::{DeviceFiles, DeviceStore};
pub use files::Files;
pub use ledger::Ledger;
pub use ledger::{Operation, Performed, Plan};

/// Maximum distance of a block of a stream from the highest stored block, in blocks. The memory for hashes grows with this
/// distance.
const FARTHEST: u32 = 1 << 20;

/// A transfer that is being received into an output directory: its files and its [`Ledger`]. A store dereferences to the ledger.
#[derive(Debug)]
pub struct Store {
    /// The record of its blocks.
    pub ledger: Ledger,
    /// Its files, with the operations on them.
    pub files: Files,
}

impl Deref for Store {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.ledger
    }
}

/// The manifest of a transfer and the positions of its files.
#[derive(Debug)]
pub struct Known {
    pub(crate) manifest: Manifest,
    layout: Layout,
}

/// The stage of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// All content is in part files.
    Receiving,
    /// All files have their final names. Links, directories and the removal of state may remain to be done.
    Published,
}

/// Result of storing a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The block is stored.
    Stored,
    /// The block is stored and completes the manifest. Pass blocks that were refused with `NeedsManifest` again.
    ManifestComplete,
    /// The block was stored before.
    AlreadyHad,
    /// The block cannot be stored before the manifest is complete. The caller holds the block and passes it again later.
    NeedsManifest,
}

/// Objects that [`Store::finish`] made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// Entries published.
    pub entries: Counts,
    /// Bytes in them.
    pub bytes: u64,
    /// Symbolic links that were not made because they would lead out of the output directory.
    pub skipped: Vec<SkippedLink>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Names of files that the source has withdrawn, in the order of the manifest. These files are missing.
    pub withdrawn: Vec<String>,
    /// Number of files and links that the source does not have and that were deleted.
    pub deleted: u64,
    /// For a dry run: the comparison of the output with the list of files.
    pub compared: Option<Box<Compared>>,
}

/// A link that was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLink {
    /// Its path in the transfer.
    pub path: String,
    /// Its target.
    pub target: String,
}

impl Store {
    /// Prepares to receive `transfer` into the directory `out`, which is created if necessary. Stored blocks of an earlier
    /// receiver of the same transfer are verified and reused. With an `admission`, the directory records the session of each
    /// received name. Without an `admission`, names stay unchanged.
    ///
    /// # Errors
    /// [`ObjectError::Busy`] when another receiver is working on the same transfer; otherwise an error that states the obstacle.
    pub fn open(
        out: &Path,
        transfer: TransferId,
        geometry: Geometry,
        admission: Option<Admission>,
    ) -> Result<Store, ObjectError> {
        let (mut store, reported) = Store::begin(&Disk::default(), out, transfer, geometry, admission)?;
        store.ledger.has_others = false; // only sessions take over what others have left
        if let Some(reported) = reported {
            store.go_on(reported, &FileWork::default())?;
        }
        Ok(store)
    }

    /// Like [`Store::open`], but stored blocks of an earlier receiver are verified only by [`Store::go_on`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn begin(
        disk: &Disk,
        out: &Path,
        transfer: TransferId,
        geometry: Geometry,
        admission: Option<Admission>,
    ) -> Result<(Store, Option<JournalContent>), ObjectError> {
        geometry.check()?;
        let place = OutputDirectory::open(disk, out, transfer)?;
        let journal = place.create(JOURNAL)?;
        let (journal, reported) =
            Journal::open(disk, journal, place.path(transfer).join(JOURNAL), transfer, geometry)?;
        let stage = match (&reported, place.is_published()?) {
            (Some(_), true) => Stage::Published,
            _ => Stage::Receiving,
        };
        let head = place.create(HEAD)?;
        let mut ledger = Ledger::new(transfer, geometry, stage);
        if reported.is_none() {
            place.wipe()?;
        }
        let is_content = |&(index, _): &(u32, Hash)| index >= geometry.manifest_blocks();
        let has_content = reported.as_ref().is_some_and(|reported| reported.blocks.iter().any(is_content));
        ledger.has_others = !has_content && has_others(&place.states, transfer);
        let files = Files {
            place,
            transfer,
            head,
            journal,
            open: OpenFiles::default(),
            in_place: InPlace::default(),
            not_in_place: BTreeSet::new(),
            admission,
            warnings: Vec::new(),
            wanted: Wanted::default(),
            reuse: Vec::new(),
            seeds: None,
        };
        ledger.has_others |= !has_content && files.knows_origin();
        Ok((Store { ledger, files }, reported))
    }

    /// Verifies the stored blocks of an earlier receiver; valid blocks count as received.
    ///
    /// # Errors
    /// As [`Store::open`], and [`ObjectError::Cancelled`].
    pub fn go_on(&mut self, reported: JournalContent, work: &FileWork) -> Result<(), ObjectError> {
        work.begin(WorkStage::Verifying, reported.blocks.len() as u64);
        self.claim(reported)?;
        while let Some((_, operation)) = self.ledger.verification(0) {
            work.step(&self.files.place.out_path)?;
            self.perform(operation)?;
        }
        Ok(())
    }

    /// Reads the manifest of an earlier receiver, and records its stored blocks. [`Operation::Verify`] verifies them.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn claim(&mut self, reported: JournalContent) -> Result<(), ObjectError> {
        match self.take_up(reported) {
            Err(error) if error.is_contradiction() => {
                self.start_over()?;
                self.ledger.spoiled = self.spoiled.max(1);
            }
            taken_up => taken_up?,
        }
        // Chunks of incomplete blocks are not in the journal, so they are searched again. Files in place may not all be hashed.
        let has_chunks = self.manifest().is_some_and(|manifest| manifest.chunks().is_some());
        let may_find = has_chunks || !self.files.in_place.is_empty() && self.files.knows_origin();
        self.ledger.has_others |= may_find && !self.is_complete();
        Ok(())
    }

    /// Creates a temporary file next to the part files, for symbols of incomplete blocks. The blocks of `reported` need no space
    /// in it, although they are not verified yet.
    ///
    /// # Errors
    /// [`ObjectError::DiskFull`] when the disk has no space for both the temporary file and the received files.
    pub fn room(&self, reported: Option<&JournalContent>) -> Result<SpillFile, ObjectError> {
        let blocks = reported.map_or_else(Vec::new, JournalContent::block_numbers);
        let stored: u64 = blocks.into_iter().map(|block| u64::from(self.geometry.block_len(block))).sum();
        let left = self.left().saturating_sub(stored);
        let (file, path) = self.files.room(self.geometry.stream_len.unwrap_or(0), left)?;
        Ok(SpillFile { disk: self.files.place.disk.clone(), file, path })
    }

    /// Selects metadata that is applied to each file before its renaming, if the source states the metadata and this user has the
    /// permission.
    #[must_use]
    pub fn preserving(mut self, preserve: Preserve, owners_by: OwnersBy) -> Store {
        self.preserve(preserve, owners_by);
        self
    }

    /// Selects the treatment of existing files.
    #[must_use]
    pub fn treating(mut self, existing: Existing) -> Store {
        self.files.wanted.existing = existing;
        self
    }

    /// Like [`Store::preserving`].
    pub(crate) fn preserve(&mut self, preserve: Preserve, owners_by: OwnersBy) {
        self.files.wanted.preserve = preserve;
        self.files.wanted.owners_by = owners_by;
    }

    /// Sets the length of the object stream after the end of a stream.
    ///
    /// # Errors
    /// [`ObjectError::TwoEnds`] when another length is already known; [`ObjectError::BlockLength`] when a stored block lies
    /// beyond the end.
    pub fn set_stream_len(&mut self, len: u64) -> Result<(), ObjectError> {
        if self.geometry.stream_len != Some(len) {
            self.ledger.set_stream_len(len)?;
            self.perform(Operation::End(len))?;
        }
        Ok(())
    }

    /// Performs an operation, and then each operation that results from the preceding one.
    fn perform(&mut self, operation: Operation) -> Result<(), ObjectError> {
        let mut next = Some(operation);
        while let Some(operation) = next {
            next = self.ledger.settle(self.files.perform(operation)?);
        }
        Ok(())
    }

    /// Continues with the blocks of the journal.
    fn take_up(&mut self, reported: JournalContent) -> Result<(), ObjectError> {
        if let (Some(len), None) = (reported.stream_len, self.geometry.stream_len) {
            if (Geometry { stream_len: Some(len), ..self.geometry }).check().is_err() {
                return Err(ObjectError::TwoEnds { first: len, second: 0 });
            }
            self.ledger.adopt_stream_len(len);
        }
        self.resume(reported.blocks)
    }

    /// Stores block `index`. [`super::verify_block`] must have verified that `data` has this `hash`. A block that is not full
    /// ends a stream.
    ///
    /// # Errors
    /// An [`ObjectError`]; the block then counts as missing.
    pub fn put(&mut self, index: u32, data: &[u8], hash: Hash) -> Result<Put, ObjectError> {
        let had_manifest = self.manifest().is_some();
        match self.ledger.plan(index, data.to_vec(), hash)? {
            Plan::AlreadyHad(_) => return Ok(Put::AlreadyHad),
            Plan::NeedsManifest(_) => return Ok(Put::NeedsManifest),
            Plan::Write(operation) => self.perform(operation)?,
        }
        let is_new = !had_manifest && self.manifest().is_some();
        Ok(if is_new { Put::ManifestComplete } else { Put::Stored })
    }

    /// Compares the root hash of all blocks with the source's `root`. Then gives every file its mode, time and name, makes links
    /// and directories, and removes the state. After an interruption, open the store and call this function again.
    ///
    /// # Errors
    /// As [`Ledger::check`], or the obstacle.
    pub fn finish(mut self, root: &Hash, durability: Durability) -> Result<Finished, ObjectError> {
        self.finish_as(root, durability, &FileWork::default())
    }

    /// Returns the new warnings for the user.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.files.warnings)
    }

    /// Reads the complete manifest and prepares for its files.
    fn learn_manifest(&mut self) -> Result<(), ObjectError> {
        let known = self.files.learn_manifest(self.ledger.about_manifest())?;
        self.ledger.learn(known);
        Ok(())
    }

    /// Counts the valid blocks of the manifest of an earlier receiver as received, and records its other blocks.
    fn resume(&mut self, blocks: Vec<(u32, Hash)>) -> Result<(), ObjectError> {
        let end = self.geometry.blocks().unwrap_or(u32::MAX);
        // If a block has several records, the last record applies.
        let mut head: BTreeMap<u32, Hash> = blocks.into_iter().filter(|&(index, _)| index < end).collect();
        head.retain(|_, hash| *hash != WITHDRAWN);
        let rest = head.split_off(&self.geometry.manifest_blocks());
        let (mut open, mut buf) = (Opened::new(&self.files.place), Vec::new());
        let mut good = head.clone();
        good.retain(|&index, hash| {
            let read = self.files.read_back(&self.spot(index), &mut buf, &mut open);
            read.is_ok() && hash_of(&buf) == *hash
        });
        let is_whole = good.len() as u32 == self.geometry.manifest_blocks();
        if !is_whole {
            // Without the manifest, the places of the other blocks are unknown.
            let lost = head.keys().chain(rest.keys()).map(|&index| u64::from(self.geometry.block_len(index)));
            self.ledger.spoiled = lost.sum();
        }
        if self.stage == Stage::Published && !is_whole {
            self.ledger.stage = Stage::Receiving;
            return self.files.place.wipe();
        }
        good.into_iter().for_each(|(index, hash)| self.ledger.count_resumed(index, hash));
        if !is_whole {
            self.ledger.spoiled = self.spoiled.saturating_sub(self.verified);
            return Ok(());
        }
        match self.stage {
            Stage::Published => {
                rest.into_iter().for_each(|(index, hash)| self.ledger.count_resumed(index, hash));
            }
            Stage::Receiving => self.ledger.claim(rest),
        }
        self.learn_manifest()
    }
}
