//! The record of a transfer's blocks: the stored blocks, their hashes, and the files to which the blocks belong. The record does
//! no file access.

use super::{FARTHEST, Known, Stage};
use crate::block::{RootHasher, hash_of};
use crate::error::ObjectError;
use crate::geometry::{Geometry, Hash, TransferId};
use crate::manifest::{Entry, Kind, Manifest};
use crate::withdrawn::Affected;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The record of one transfer. It plans operations on the disk and processes their results.
#[derive(Debug)]
pub struct Ledger {
    pub(super) transfer: TransferId,
    pub(super) geometry: Geometry,
    /// The geometry as the source announced it. For a stream, this geometry has no length.
    pub(super) announced: Geometry,
    /// Hashes of stored blocks.
    pub(super) hashes: RootHasher,
    /// Blocks whose write is planned and not settled.
    writing: BTreeMap<u32, Hash>,
    writing_bytes: u64,
    /// Whether the manifest is being read.
    is_learning: bool,
    pub(crate) known: Option<Arc<Known>>,
    /// Blocks of an earlier receiver that are not verified yet, with their recorded hashes.
    claimed: BTreeMap<u32, Hash>,
    /// Number of blocks that were claimed.
    claims: u32,
    /// Verified blocks of an earlier receiver.
    pub(super) from_before: BTreeSet<u32>,
    resumed_bytes: u64,
    /// Bytes of blocks that the journal lists and whose verification has failed.
    pub(super) spoiled: u64,
    pub(super) verified: u64,
    pub(crate) stage: Stage,
    /// Whether the output directory contains state of other transfers, or the device may contain an earlier version.
    pub(super) has_others: bool,
    /// Whether only chunks are taken over, so that a manifest without chunks takes over nothing.
    pub(super) takes_only_chunks: bool,
}

/// Location of the bytes of a block: in the head, in part files, or in both.
#[derive(Debug, Clone)]
pub struct Spot {
    pub(super) index: u32,
    /// Its bytes in the object stream.
    pub(super) range: Range<u64>,
    pub(super) in_head: bool,
    pub(super) known: Option<Arc<Known>>,
    /// Withdrawn files with bytes in it.
    pub(super) withdrawn: Vec<u32>,
    /// Bytes of the transfer that are still missing.
    pub(super) left: u64,
}

/// One operation on the disk. The operations of a transfer are performed one after the other.
#[derive(Debug)]
pub enum Operation {
    /// Write a block of verified data. A block that is not full ends a stream.
    Write {
        /// Location of the block.
        spot: Spot,
        /// Its content.
        data: Vec<u8>,
        /// The hash of the data.
        hash: Hash,
        /// The length of the object stream, if this is its last block.
        ends_at: Option<u64>,
    },
    /// Read the manifest, whose blocks are all stored, and prepare the output directory for its files.
    Learn(Learning),
    /// Record the length of the object stream.
    End(u64),
    /// Record that a block is missing again.
    Forget(u32),
    /// Free the bytes of a withdrawn file.
    GiveBack(u32),
    /// Hash a stored block again, with zeros in place of bytes of withdrawn files.
    Rehash(Spot),
    /// Compare a block that an earlier receiver has stored with its recorded hash.
    Verify(Spot, Hash),
}

/// The part of a ledger that is needed for reading a manifest.
#[derive(Debug, Clone, Copy)]
pub struct Learning {
    pub(super) geometry: Geometry,
    pub(super) announced: Geometry,
    pub(super) stage: Stage,
    pub(super) has_others: bool,
    pub(super) left: u64,
}

/// The result of an [`Operation`].
#[derive(Debug)]
pub enum Performed {
    /// The block is written.
    Written {
        /// Its number.
        index: u32,
        /// The hash of its data.
        hash: Hash,
        /// The memory of its data.
        data: Vec<u8>,
    },
    /// The manifest is read.
    Learned(Arc<Known>),
    /// The number of a block and its new hash; `None` if the block could not be read.
    Rehashed(u32, Option<Hash>),
    /// The number of a block, and whether its stored data has the recorded hash.
    Verified(u32, bool),
    /// The operation succeeded and has no other result.
    Noted,
}

/// The plan for a block.
#[derive(Debug)]
pub enum Plan {
    /// Perform this operation.
    Write(Operation),
    /// The block is already stored.
    AlreadyHad(Vec<u8>),
    /// The block cannot be stored before the manifest is complete. Its data is returned.
    NeedsManifest(Vec<u8>),
}

impl Ledger {
    /// Creates an empty record.
    pub(super) fn new(transfer: TransferId, geometry: Geometry, stage: Stage) -> Ledger {
        Ledger {
            transfer,
            geometry,
            announced: geometry,
            hashes: RootHasher::new(geometry),
            writing: BTreeMap::new(),
            writing_bytes: 0,
            is_learning: false,
            known: None,
            claimed: BTreeMap::new(),
            claims: 0,
            from_before: BTreeSet::new(),
            resumed_bytes: 0,
            spoiled: 0,
            verified: 0,
            stage,
            has_others: false,
            takes_only_chunks: false,
        }
    }

    /// Returns the identifier of the transfer.
    pub fn transfer(&self) -> TransferId {
        self.transfer
    }

    /// Returns the geometry, which includes the length of the object stream once the length is known.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns the manifest, once it is complete.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.known.as_ref().map(|known| &known.manifest)
    }

    /// Returns the entries of the manifest; an empty list before the manifest is complete.
    pub fn files(&self) -> &[Entry] {
        self.manifest().map_or(&[], Manifest::entries)
    }

    /// Returns the number of valid blocks that were stored by an earlier receiver.
    pub fn resumed_blocks(&self) -> u32 {
        self.from_before.len() as u32
    }

    /// Returns the number of bytes in valid blocks that were stored by an earlier receiver.
    pub fn resumed_bytes(&self) -> u64 {
        self.resumed_bytes
    }

    /// Returns the number of bytes that an earlier receiver stored and that have failed verification. They must be received
    /// again.
    pub fn spoiled_bytes(&self) -> u64 {
        self.spoiled
    }

    /// Returns the number of bytes of the object stream that are stored and verified.
    pub fn verified_bytes(&self) -> u64 {
        self.verified
    }

    /// Records blocks that an earlier receiver has stored according to its record. They count as received once they are verified.
    pub(super) fn claim(&mut self, blocks: impl IntoIterator<Item = (u32, Hash)>) {
        self.claimed = blocks.into_iter().collect();
        self.claims = self.claimed.len() as u32;
    }

    /// Returns the number of bytes in recorded blocks that are not verified yet.
    pub(super) fn claimed_bytes(&self) -> u64 {
        self.claimed.keys().map(|&index| u64::from(self.geometry.block_len(index))).sum()
    }

    /// Returns whether an earlier receiver has recorded block `index`, and the block is not verified yet.
    pub fn is_claimed(&self, index: u32) -> bool {
        self.claimed.contains_key(&index)
    }

    /// Returns the percentage of recorded blocks that are verified; `None` when no block remains to be verified.
    pub fn verifying(&self) -> Option<u8> {
        let left = self.claimed.len() as u64;
        (left > 0).then(|| (100 - left * 100 / u64::from(self.claims).max(left)) as u8)
    }

    /// Returns the verification of the first recorded block from `from` on, and the block's number.
    pub fn verification(&self, from: u32) -> Option<(u32, Operation)> {
        let (&index, &hash) = self.claimed.range(from..).next()?;
        Some((index, Operation::Verify(self.spot(index), hash)))
    }

    /// Returns whether block `index` is stored or being written.
    pub fn has(&self, index: u32) -> bool {
        self.hash(index).is_some()
    }

    /// Returns the hash of block `index`, if it is stored or being written.
    pub fn hash(&self, index: u32) -> Option<Hash> {
        self.hashes.get(index).or_else(|| self.writing.get(&index).copied())
    }

    /// Returns the number of blocks that are being written.
    pub fn blocks_written(&self) -> u32 {
        self.writing.len() as u32
    }

    /// Returns the number of bytes in the blocks that are being written.
    pub fn bytes_written(&self) -> u64 {
        self.writing_bytes
    }

    /// Returns the number of stored blocks.
    pub fn blocks_stored(&self) -> u32 {
        self.hashes.known()
    }

    /// Returns one more than the highest number of a block that is stored or being written.
    pub fn end(&self) -> u32 {
        let writing = self.writing.last_key_value().map_or(0, |(last, _)| last + 1);
        self.hashes.end().max(writing)
    }

    /// Returns whether all blocks are stored.
    pub fn is_complete(&self) -> bool {
        self.geometry.blocks() == Some(self.hashes.known())
    }

    /// Returns the missing blocks as ranges, in order. While the length of the object stream is unknown, only blocks below the
    /// highest stored block are returned.
    pub fn missing(&self) -> Vec<Range<u32>> {
        let end = self.geometry.blocks().unwrap_or(self.hashes.end());
        let mut runs: Vec<Range<u32>> = Vec::new();
        for index in (0..end).filter(|&index| !self.has(index)) {
            match runs.last_mut() {
                Some(run) if run.end == index => run.end += 1,
                _ => runs.push(index..index + 1),
            }
        }
        runs
    }

    /// Returns the names of the files that lack content, with their numbers of missing bytes. Before the manifest is known, no
    /// name is known.
    pub fn unfinished(&self) -> Vec<(String, u64)> {
        let Some(known) = &self.known else { return Vec::new() };
        let mut lacks: BTreeMap<u32, u64> = BTreeMap::new();
        for run in self.missing() {
            let bytes = self.geometry.range(run.start).start..self.geometry.range(run.end - 1).end;
            for piece in known.layout.pieces(bytes) {
                *lacks.entry(piece.entry).or_default() += piece.len as u64;
            }
        }
        let name = |entry: u32| known.manifest.entries()[entry as usize].name().into_owned();
        lacks.into_iter().map(|(entry, bytes)| (name(entry), bytes)).collect()
    }

    /// Returns the root hash over all blocks, for comparison with the source's root hash; `None` while blocks are missing.
    pub fn root(&self) -> Option<Hash> {
        self.hashes.root()
    }

    /// Checks that all blocks are stored and that their root hash equals the source's `root`.
    ///
    /// # Errors
    /// [`ObjectError::Incomplete`] or [`ObjectError::Root`].
    pub fn check(&self, root: &Hash) -> Result<(), ObjectError> {
        let incomplete = || {
            let blocks = self.geometry.blocks().unwrap_or(self.hashes.end());
            ObjectError::Incomplete { missing: blocks.saturating_sub(self.hashes.known()), blocks }
        };
        let found = self.hashes.root().ok_or_else(incomplete)?;
        if found == *root { Ok(()) } else { Err(ObjectError::Root { expected: *root, found }) }
    }

    /// Returns the number of bytes of content of an entry that is a file or a stream.
    pub(crate) fn content_len(&self, entry: &Entry) -> u64 {
        match entry.kind {
            Kind::Stream => {
                let stream_len = self.geometry.stream_len.unwrap_or(0);
                stream_len.saturating_sub(u64::from(self.geometry.manifest_len))
            }
            _ => entry.size(),
        }
    }

    /// Returns the number of missing bytes; 0 while the length of the object stream is unknown.
    pub fn left(&self) -> u64 {
        self.geometry.stream_len.unwrap_or(0).saturating_sub(self.verified)
    }

    pub(super) fn head_is_complete(&self) -> bool {
        (0..self.geometry.manifest_blocks()).all(|index| self.hashes.get(index).is_some())
    }

    pub(super) fn has_any(&self, bytes: Range<u64>) -> bool {
        (self.geometry.block_of(bytes.start)..=self.geometry.block_of(bytes.end - 1))
            .any(|block| self.has(block))
    }

    pub(super) fn has_all(&self, bytes: &Range<u64>) -> bool {
        (self.geometry.block_of(bytes.start)..=self.geometry.block_of(bytes.end - 1))
            .all(|block| self.has(block))
    }

    /// Returns whether file content can be written. Before that, the manifest must be known, and files of other transfers must
    /// have been taken over, because taking over a file replaces its part file.
    pub fn takes_content(&self) -> bool {
        self.known.is_some() && !self.may_adopt()
    }

    /// Returns whether files of other transfers may still be taken over into this transfer.
    pub fn may_adopt(&self) -> bool {
        let has_none = |known: &Arc<Known>| self.takes_only_chunks && known.manifest.chunks().is_none();
        self.has_others && self.stage == Stage::Receiving && !self.known.as_ref().is_some_and(has_none)
    }

    /// Plans the storage of block `index`. [`crate::verify_block`] must have verified that `data` has this `hash`. A block that
    /// is not full ends a stream.
    ///
    /// # Errors
    /// An [`ObjectError`]; the block then counts as missing.
    pub fn plan(&mut self, index: u32, data: Vec<u8>, hash: Hash) -> Result<Plan, ObjectError> {
        let far = self.geometry.stream_len.is_none() && index > self.hashes.end().saturating_add(FARTHEST);
        if self.geometry.range(index).is_empty() || index == u32::MAX || far {
            return Err(ObjectError::NoSuchBlock {
                index,
                blocks: self.geometry.blocks().unwrap_or(u32::MAX),
            });
        }
        let expected = self.geometry.block_len(index);
        let short = data.len() < expected as usize;
        if data.is_empty() || data.len() > expected as usize || (short && self.geometry.stream_len.is_some())
        {
            return Err(ObjectError::BlockLength { index, expected, found: data.len() });
        }
        let (data, hash) = self.blanked(index, &data).unwrap_or((data, hash));
        match self.hash(index) {
            Some(before) if before == hash => return Ok(Plan::AlreadyHad(data)),
            Some(_) => return Err(ObjectError::Conflict { index }),
            None => {}
        }
        if index >= self.geometry.manifest_blocks() && !self.takes_content() {
            return Ok(Plan::NeedsManifest(data));
        }
        self.claimed.remove(&index); // the received block replaces the recorded one
        let end = self.geometry.range(index).start + data.len() as u64;
        if short {
            self.set_stream_len(end)?;
        }
        let mut spot = self.spot(index);
        spot.range.end = end;
        self.writing.insert(index, hash);
        self.writing_bytes += u64::from(self.geometry.block_len(index));
        Ok(Plan::Write(Operation::Write { spot, data, hash, ends_at: short.then_some(end) }))
    }

    /// Processes the result of an operation. Returns the operation that must follow, if any.
    pub fn settle(&mut self, performed: Performed) -> Option<Operation> {
        match performed {
            Performed::Written { index, hash, .. } => {
                // A block that was withdrawn during its write must be received again.
                if self.writing.get(&index) == Some(&hash) {
                    self.written(index);
                    self.count(index, hash);
                }
                let is_due = self.known.is_none() && !self.is_learning && self.head_is_complete();
                self.is_learning |= is_due;
                is_due.then(|| Operation::Learn(self.about_manifest()))
            }
            Performed::Learned(known) => {
                self.is_learning = false;
                self.learn(known);
                None
            }
            Performed::Rehashed(index, Some(hash)) => {
                if self.hashes.get(index).is_some() {
                    self.hashes.push(index, hash);
                }
                None
            }
            Performed::Rehashed(index, None) => self.withdraw(index), // it comes again
            Performed::Verified(index, is_right) => self.on_verified(index, is_right),
            Performed::Noted => None,
        }
    }

    /// Counts a block as received if its verification succeeded.
    fn on_verified(&mut self, index: u32, is_right: bool) -> Option<Operation> {
        let hash = self.claimed.remove(&index)?;
        if self.claimed.is_empty() && is_right && self.left() == u64::from(self.geometry.block_len(index)) {
            self.has_others = false; // nothing is missing
        }
        if !is_right {
            self.spoiled += u64::from(self.geometry.block_len(index));
            return None;
        }
        self.count_resumed(index, hash);
        let is_affected = |known: &Arc<Known>| self.hashes.is_affected(&known.layout, index);
        self.known.as_ref().is_some_and(is_affected).then(|| Operation::Rehash(self.spot(index)))
    }

    /// Records the manifest. Blocks in holes of files count as received.
    pub(super) fn learn(&mut self, known: Arc<Known>) {
        for block in known.layout.void().iter().cloned().flatten() {
            let hash = self.hashes.void_hash(block);
            self.count(block, hash);
        }
        self.known = Some(known);
    }

    /// Clears the list of blocks that are being written, after an operation has failed.
    pub fn forget_writes(&mut self) {
        self.writing.clear();
        self.writing_bytes = 0;
    }

    /// Removes block `index` from the blocks that are being written. Returns whether it was one of them.
    fn written(&mut self, index: u32) -> bool {
        let was = self.writing.remove(&index).is_some();
        if was {
            self.writing_bytes -= u64::from(self.geometry.block_len(index));
        }
        was
    }

    pub(super) fn about_manifest(&self) -> Learning {
        Learning {
            geometry: self.geometry,
            announced: self.announced,
            stage: self.stage,
            has_others: self.has_others,
            left: self.left(),
        }
    }

    /// Returns the location of the bytes of block `index`.
    pub(super) fn spot(&self, index: u32) -> Spot {
        let range = self.geometry.range(index);
        let mut withdrawn = Vec::new();
        if let Some(known) = self.known.as_ref().filter(|_| self.withdrawn() > 0) {
            let entries = known.layout.pieces(range.clone()).map(|piece| piece.entry);
            withdrawn.extend(entries.filter(|entry| self.hashes.is_withdrawn(*entry)));
        }
        let in_head = index < self.geometry.manifest_blocks();
        Spot { index, range, in_head, known: self.known.clone(), withdrawn, left: self.left() }
    }

    /// Sets the length of the object stream.
    ///
    /// # Errors
    /// [`ObjectError::TwoEnds`] when another length is already known; [`ObjectError::BlockLength`] when a stored block lies
    /// beyond the end.
    pub fn set_stream_len(&mut self, len: u64) -> Result<(), ObjectError> {
        match self.geometry.stream_len {
            Some(first) if first == len => return Ok(()),
            Some(first) => return Err(ObjectError::TwoEnds { first, second: len }),
            None => {}
        }
        let ended = Geometry { stream_len: Some(len), ..self.geometry };
        ended.check()?;
        // All stored blocks before the last one are full (see `plan`), so only the last stored block can extend beyond the end.
        if let Some(last) = self.end().checked_sub(1)
            && ended.block_len(last) != self.geometry.block_len(last)
        {
            let (expected, found) = (ended.block_len(last), self.geometry.block_len(last) as usize);
            return Err(ObjectError::BlockLength { index: last, expected, found });
        }
        self.adopt_stream_len(len);
        Ok(())
    }

    pub(super) fn adopt_stream_len(&mut self, len: u64) {
        self.geometry.stream_len = Some(len);
        self.hashes.set_stream_len(len);
    }

    pub(super) fn count(&mut self, index: u32, hash: Hash) {
        if self.hashes.push(index, hash).is_none() {
            self.verified += u64::from(self.geometry.block_len(index));
        }
    }

    pub(super) fn count_resumed(&mut self, index: u32, hash: Hash) {
        self.count(index, hash);
        if self.from_before.insert(index) {
            self.resumed_bytes += u64::from(self.geometry.block_len(index));
        }
    }

    /// Clears the list of blocks that an earlier receiver stored, and returns the list. It includes blocks that are not verified.
    pub(super) fn forget_origin(&mut self) -> BTreeSet<u32> {
        self.resumed_bytes = 0;
        let mut old = std::mem::take(&mut self.from_before);
        old.extend(self.claimed.keys());
        old
    }

    /// Counts block `index`, which an earlier receiver stored, as spoiled and missing, because its content differs from the
    /// source's block. Returns the operation that records the missing block in the journal.
    pub fn reject(&mut self, index: u32) -> Option<Operation> {
        let bytes = u64::from(self.geometry.block_len(index));
        self.spoiled += bytes;
        if self.from_before.remove(&index) {
            self.resumed_bytes -= bytes;
        }
        self.withdraw(index)
    }

    /// Marks block `index` as missing. Returns the operation that records the missing block in the journal.
    pub(crate) fn withdraw(&mut self, index: u32) -> Option<Operation> {
        // A void block is not sent again.
        if self.is_void(index) {
            return None;
        }
        let was_writing = self.written(index);
        let was_claimed = self.claimed.remove(&index).is_some();
        let was_stored = self.hashes.forget(index).is_some();
        if was_stored {
            self.verified -= u64::from(self.geometry.block_len(index));
        }
        (was_stored || was_writing || was_claimed).then_some(Operation::Forget(index))
    }

    /// Records that the source has withdrawn these files: their bytes count as received zeros. Returns the affected blocks, and
    /// the operations to perform on the disk. The call has no effect before the manifest is known; the source will repeat its
    /// list of withdrawn files.
    pub fn withdraw_files(&mut self, entries: &[u32]) -> (Vec<Affected>, Vec<Operation>) {
        let (mut all, mut operations) = (Vec::new(), Vec::new());
        for entry in entries {
            let Some(known) = self.known.clone() else { break };
            let has_content = known.layout.range_of(*entry).is_some() && !known.manifest.is_stream();
            if !has_content || !self.hashes.withdraw(*entry) {
                continue;
            }
            let affected = self.hashes.affected(&known.layout, *entry);
            operations.push(Operation::GiveBack(*entry));
            for one in &affected {
                match *one {
                    Affected::Void(block) => {
                        self.written(block);
                        self.claimed.remove(&block);
                        let hash = self.hashes.void_hash(block);
                        self.count(block, hash);
                    }
                    // The stored blocks of published files already have zeros in place of withdrawn files.
                    Affected::Mixed(block) if self.stage == Stage::Receiving && self.has(block) => {
                        operations.push(Operation::Rehash(self.spot(block)));
                    }
                    Affected::Mixed(_) => {}
                }
            }
            all.extend(affected);
        }
        (all, operations)
    }

    /// Drops all blocks, including the blocks of the manifest. Returns the number of dropped bytes.
    pub(super) fn start_over(&mut self) -> u64 {
        let given_up = self.verified + self.claimed_bytes();
        let new = Ledger::new(self.transfer, self.announced, Stage::Receiving);
        let (has_others, takes_only_chunks) = (self.has_others, self.takes_only_chunks);
        *self = Ledger { spoiled: self.spoiled, has_others, takes_only_chunks, ..new };
        given_up
    }

    /// Clears the list of withdrawn files, so that these files are missing again. Call it when another session sends the same
    /// content and has withdrawn no file so far. Returns the operations that record the missing blocks in the journal.
    pub fn want_withdrawn(&mut self) -> Vec<Operation> {
        let Some(known) = self.known.clone() else { return Vec::new() };
        let entries = self.hashes.want_withdrawn();
        let ranges = entries.iter().filter_map(|entry| known.layout.range_of(*entry));
        let blocks = ranges
            .flat_map(|bytes| self.geometry.block_of(bytes.start)..=self.geometry.block_of(bytes.end - 1));
        let blocks: Vec<u32> = blocks.collect();
        blocks.into_iter().filter_map(|block| self.withdraw(block)).collect()
    }

    /// Returns the number of withdrawn files.
    pub fn withdrawn(&self) -> usize {
        self.hashes.withdrawn().len()
    }

    /// Returns whether a block contains only bytes of withdrawn files, or lies in holes of files.
    pub fn is_void(&self, block: u32) -> bool {
        let is_void = |known: &Arc<Known>| match self.withdrawn() {
            0 => known.layout.is_void(block),
            _ => self.hashes.is_void(&known.layout, block),
        };
        self.known.as_ref().is_some_and(is_void)
    }

    /// Returns the data of a block, with zeros in place of bytes of withdrawn files, and the hash of the result. Returns `None`
    /// if the block contains no bytes of withdrawn files.
    pub fn blanked(&self, block: u32, data: &[u8]) -> Option<(Vec<u8>, Hash)> {
        let known = self.known.as_ref().filter(|known| self.hashes.is_affected(&known.layout, block))?;
        let mut blanked = data.to_vec();
        self.hashes.blank(&known.layout, block, &mut blanked);
        let hash = hash_of(&blanked);
        Some((blanked, hash))
    }

    /// Returns whether this entry is a withdrawn file, or a hard link to a withdrawn file.
    pub(crate) fn is_withdrawn(&self, n: u32, entry: &Entry) -> bool {
        match entry.kind {
            Kind::HardLink { to } => self.hashes.is_withdrawn(to),
            _ => self.hashes.is_withdrawn(n),
        }
    }

    /// Returns the entries of all files in the manifest except withdrawn files. A file with several names has several entries.
    pub(crate) fn received<'a>(&'a self, manifest: &'a Manifest) -> impl Iterator<Item = (u32, &'a Entry)> {
        let files = (0..).zip(manifest.entries()).filter(|(_, entry)| entry.is_file());
        files.filter(|(n, entry)| !self.is_withdrawn(*n, entry))
    }

    /// Returns the names of withdrawn files.
    pub(crate) fn withdrawn_names(&self, manifest: &Manifest) -> Vec<String> {
        let entries = (0..).zip(manifest.entries()).filter(|(n, entry)| self.is_withdrawn(*n, entry));
        entries.map(|(_, entry)| entry.name().into_owned()).collect()
    }
}

impl Learning {
    /// Returns the location of the last block of the manifest, which may also contain the beginning of the file content.
    pub(super) fn border(&self, known: &Arc<Known>) -> Spot {
        let index = self.geometry.manifest_blocks() - 1;
        let range = self.geometry.range(index);
        let range = range.start..range.end.min(self.geometry.stream_len.unwrap_or(u64::MAX));
        let known = Some(Arc::clone(known));
        Spot { index, range, in_head: true, known, withdrawn: Vec::new(), left: self.left }
    }
}

impl Spot {
    /// Returns the number of bytes of the block that belong to the manifest.
    fn manifest_part(&self, manifest_len: u64) -> usize {
        (manifest_len.clamp(self.range.start, self.range.end) - self.range.start) as usize
    }

    /// Returns the part of the block's data that belongs to files.
    pub(super) fn files_part<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        let manifest_len = self.known.as_ref().map_or(u64::MAX, |known| known.layout.manifest_len());
        &data[self.manifest_part(manifest_len)..]
    }

    /// Like [`Spot::files_part`].
    pub(super) fn files_part_mut<'a>(&self, data: &'a mut [u8]) -> &'a mut [u8] {
        let manifest_len = self.known.as_ref().map_or(u64::MAX, |known| known.layout.manifest_len());
        &mut data[self.manifest_part(manifest_len)..]
    }
}
