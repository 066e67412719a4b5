//! Writing files and trees at the receiver.
//!
//! Until a transfer is complete, everything lies in `.faircast/<transfer>/` inside the output
//! directory: the first blocks as they are (`head`), one part file per file, and the journal. The
//! output directory itself is touched only by [`Store::finish`].

mod adopt;
mod distrust;
mod output_directory;
mod withdrawn;

use super::apply::Wanted;
use super::block::{RootHasher, hash_of};
use super::error::ObjectError;
use super::file_work::FileWork;
use super::geometry::{Geometry, Hash, TransferId};
use super::journal::{Journal, Told, WITHDRAWN};
use super::layout::Layout;
use super::manifest::{Counts, Entry, Kind, Manifest};
use super::metadata::{OwnersBy, Preserve};
use super::names::{self, Names};
use super::publish;
use super::remembered::{Admission, Damaged, Remembered};
use super::spool::nameless;
use super::sys::OpenFiles;
use crate::disk::Disk;
use faircast_wire::Activity;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub use crate::config::Durability;
pub(crate) use output_directory::{JOURNAL, LOCK, OutputDirectory, PARTS, part_name};

/// From this many bytes on, two threads verify what an earlier receiver left.
const TWO_THREADS_FROM: u64 = 64 << 20;

/// A stream's block may be this far beyond the highest one that is there; memory grows with it.
const FARTHEST: u32 = 1 << 20;

const HEAD: &str = "head";

/// A transfer on its way into an output directory.
#[derive(Debug)]
pub struct Store {
    pub(crate) place: OutputDirectory,
    geometry: Geometry,
    /// The geometry as it was announced: of a stream without its length.
    announced: Geometry,
    transfer: TransferId,
    head: File,
    journal: Journal,
    hashes: RootHasher,
    pub(crate) known: Option<Known>,
    pub(crate) open: OpenFiles,
    resumed: u32,
    /// Blocks that an earlier receiver left.
    from_before: Vec<u32>,
    /// Bytes of blocks that the journal names but that did not verify any more.
    spoiled: u64,
    verified: u64,
    pub(crate) stage: Stage,
    pub(crate) admission: Option<Admission>,
    pub(crate) warnings: Vec<String>,
    /// What files get beyond names, permission bits, times and hard links.
    pub(crate) wanted: Wanted,
    /// Other transfers have left something in the output directory.
    has_others: bool,
}

/// What is known once the manifest is complete.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) manifest: Manifest,
    layout: Layout,
}

/// How far a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// All content lies in part files.
    Receiving,
    /// All files have their names; links, directories and tidying may be left.
    Published,
}

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is stored.
    Stored,
    /// It is stored, and with it the manifest is complete: blocks kept back can come again.
    ManifestComplete,
    /// It was there before.
    AlreadyHad,
    /// It cannot be placed before the manifest is complete: keep it and bring it again.
    NeedsManifest,
}

/// What [`Store::finish`] made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// Entries published.
    pub entries: Counts,
    /// Bytes in them.
    pub bytes: u64,
    /// Links that were not made, because they would lead out of the output directory.
    pub skipped: Vec<SkippedLink>,
    /// What else the user should know.
    pub warnings: Vec<String>,
    /// Files that are not here, as the source has withdrawn them, in the order of the manifest.
    pub withdrawn: Vec<String>,
}

/// A link that was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLink {
    /// Its path in the transfer.
    pub path: String,
    /// Where it points.
    pub target: String,
}

impl Store {
    /// Prepare to receive `transfer` into the directory `out`, which is created if need be. What an
    /// earlier receiver of the same transfer left there is verified and kept. With an `admission`, the directory remembers
    /// when the names that it has received were sent; without one, names are kept as they are.
    ///
    /// # Errors
    /// [`ObjectError::Busy`] when another receiver is at work on the same; else an error that names
    /// what is in the way.
    pub fn open(
        out: &Path,
        transfer: TransferId,
        geometry: Geometry,
        admission: Option<Admission>,
    ) -> Result<Store, ObjectError> {
        let (mut store, told) = Store::begin(&Disk::default(), out, transfer, geometry, admission)?;
        if let Some(told) = told {
            store.go_on(told, &FileWork::default())?;
        }
        Ok(store)
    }

    /// As [`Store::open`]; what an earlier receiver left is not verified before [`Store::go_on`].
    ///
    /// # Errors
    /// As [`Store::open`].
    pub(crate) fn begin(
        disk: &Disk,
        out: &Path,
        transfer: TransferId,
        geometry: Geometry,
        admission: Option<Admission>,
    ) -> Result<(Store, Option<Told>), ObjectError> {
        geometry.check()?;
        let place = OutputDirectory::open(disk, out, transfer)?;
        let journal = place.create(JOURNAL)?;
        let (journal, told) =
            Journal::open(disk, journal, place.path(transfer).join(JOURNAL), transfer, geometry)?;
        let stage = match (&told, place.has(publish::PUBLISHED)?) {
            (Some(_), true) => Stage::Published,
            _ => Stage::Receiving,
        };
        let head = place.create(HEAD)?;
        let hashes = RootHasher::new(geometry);
        let open = OpenFiles::default();
        let mut store = Store {
            place,
            geometry,
            announced: geometry,
            transfer,
            head,
            journal,
            hashes,
            known: None,
            open,
            resumed: 0,
            from_before: Vec::new(),
            spoiled: 0,
            verified: 0,
            stage,
            admission,
            warnings: Vec::new(),
            wanted: Wanted::default(),
            has_others: false,
        };
        if told.is_none() {
            store.place.wipe()?;
            store.has_others = store.place.has_others(transfer);
        }
        Ok((store, told))
    }

    /// Verify what an earlier receiver left, and go on with that.
    ///
    /// # Errors
    /// As [`Store::open`], and [`ObjectError::Cancelled`].
    pub(crate) fn go_on(&mut self, told: Told, work: &FileWork) -> Result<(), ObjectError> {
        work.begin(Activity::Verifying, told.blocks.len() as u64);
        match self.take_up(told, work) {
            Err(error) if error.is_contradiction() => {
                self.start_over()?;
                (self.spoiled, self.resumed) = (self.spoiled.max(1), 0);
                Ok(())
            }
            taken_up => taken_up,
        }
    }

    /// Give files this as well when they get their names, as far as the source says it and this user may.
    #[must_use]
    pub fn preserving(mut self, preserve: Preserve, owners_by: OwnersBy) -> Store {
        self.preserve(preserve, owners_by);
        self
    }

    /// As [`Store::preserving`].
    pub(crate) fn preserve(&mut self, preserve: Preserve, owners_by: OwnersBy) {
        self.wanted = Wanted { preserve, owners_by };
    }

    /// The transfer.
    pub fn transfer(&self) -> TransferId {
        self.transfer
    }

    /// The geometry, with the object stream's length once that is known.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// What the transfer consists of, once all of that has come.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.known.as_ref().map(|known| &known.manifest)
    }

    /// The entries of the manifest; none before it is complete.
    pub fn files(&self) -> &[Entry] {
        self.manifest().map_or(&[], Manifest::entries)
    }

    /// Blocks that an earlier receiver left and that need not come again.
    pub fn resumed_blocks(&self) -> u32 {
        self.resumed
    }

    /// Bytes in them.
    pub(crate) fn resumed_bytes(&self) -> u64 {
        self.from_before.iter().map(|block| u64::from(self.geometry.block_len(*block))).sum()
    }

    /// Bytes that an earlier receiver had verified and that are not what they were: they have to be
    /// fetched again.
    pub fn spoiled_bytes(&self) -> u64 {
        self.spoiled
    }

    /// Bytes of the object stream that are stored and verified.
    pub fn verified_bytes(&self) -> u64 {
        self.verified
    }

    /// Whether block `index` is there.
    pub fn has(&self, index: u32) -> bool {
        self.hashes.get(index).is_some()
    }

    /// The hash of block `index`, when that is there.
    pub fn hash(&self, index: u32) -> Option<Hash> {
        self.hashes.get(index)
    }

    /// Blocks that are there.
    pub fn blocks_stored(&self) -> u32 {
        self.hashes.known()
    }

    /// The block after the highest one that is there.
    pub fn end(&self) -> u32 {
        self.hashes.end()
    }

    /// Whether all blocks are there.
    pub fn is_complete(&self) -> bool {
        self.geometry.blocks() == Some(self.hashes.known())
    }

    /// The missing blocks as runs, in order; before the length of the object stream is known, those below
    /// the highest block that is there.
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

    /// The root over all blocks, once they are there; compare it with the source's.
    pub fn root(&self) -> Option<Hash> {
        self.hashes.root()
    }

    /// Say how long the object stream is, when a stream has ended.
    ///
    /// # Errors
    /// [`ObjectError::TwoEnds`] when it is known to have another length, and
    /// [`ObjectError::BlockLength`] when a block beyond the end is there.
    pub fn set_stream_len(&mut self, len: u64) -> Result<(), ObjectError> {
        match self.geometry.stream_len {
            Some(first) if first == len => return Ok(()),
            Some(first) => return Err(ObjectError::TwoEnds { first, second: len }),
            None => {}
        }
        let ended = Geometry { stream_len: Some(len), ..self.geometry };
        ended.check()?;
        // Every block stored so far is full (see `put`), so only these can lie beyond the end.
        if let Some(last) = self.hashes.end().checked_sub(1)
            && ended.block_len(last) != self.geometry.block_len(last)
        {
            let (expected, found) = (ended.block_len(last), self.geometry.block_len(last) as usize);
            return Err(ObjectError::BlockLength { index: last, expected, found });
        }
        self.journal.stream_len(len)?;
        self.adopt_stream_len(len);
        Ok(())
    }

    /// Go on with what the journal tells.
    fn take_up(&mut self, told: Told, work: &FileWork) -> Result<(), ObjectError> {
        if let (Some(len), None) = (told.stream_len, self.geometry.stream_len) {
            if (Geometry { stream_len: Some(len), ..self.geometry }).check().is_err() {
                return Err(ObjectError::TwoEnds { first: len, second: 0 });
            }
            self.adopt_stream_len(len);
        }
        self.resume(told.blocks, work)
    }

    fn adopt_stream_len(&mut self, len: u64) {
        self.geometry.stream_len = Some(len);
        self.hashes.set_stream_len(len);
    }

    /// Store block `index`, whose `data` was verified to have this `hash`
    /// ([`super::verify_block`]). A short block ends a stream.
    ///
    /// # Errors
    /// An [`ObjectError`]; the block counts as missing then.
    pub fn put(&mut self, index: u32, data: &[u8], hash: Hash) -> Result<Put, ObjectError> {
        let range = self.geometry.range(index);
        let far = self.geometry.stream_len.is_none() && index > self.hashes.end().saturating_add(FARTHEST);
        if range.is_empty() || index == u32::MAX || far {
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
        let blanked = self.blanked(index, data);
        let (data, hash) = blanked.as_ref().map_or((data, hash), |(data, hash)| (&data[..], *hash));
        match self.hashes.get(index) {
            Some(before) if before == hash => return Ok(Put::AlreadyHad),
            Some(_) => return Err(ObjectError::Conflict { index }),
            None => {}
        }
        let in_head = index < self.geometry.manifest_blocks();
        if !in_head && self.known.is_none() {
            return Ok(Put::NeedsManifest);
        }
        if short {
            self.set_stream_len(range.start + data.len() as u64)?;
        }
        let range = range.start..range.start + data.len() as u64;
        if in_head {
            self.place
                .disk
                .write_all_at(&self.head, data, range.start)
                .map_err(|e| self.place.failed(HEAD, e, self.left()))?;
        } else {
            self.write_files(range, data)?;
        }
        self.journal.block(index, hash)?;
        self.count(index, hash);
        if in_head && self.head_is_complete() {
            self.learn_manifest()?;
            return Ok(Put::ManifestComplete);
        }
        Ok(Put::Stored)
    }

    /// A file without a name beside the parts, for what is not placed yet: as much as is still to come, at
    /// most. It goes with its descriptor.
    ///
    /// # Errors
    /// [`ObjectError::DiskFull`] when there is no room for that and for the files.
    pub(crate) fn room(&self) -> Result<(File, PathBuf), ObjectError> {
        let to_allocate = self.geometry.stream_len.unwrap_or(0).saturating_sub(self.place.allocated());
        let (needed, available) = (to_allocate + self.left(), self.place.available());
        if needed > available {
            return Err(ObjectError::DiskFull { path: self.place.out_path.clone(), needed, available });
        }
        let path = self.place.path(self.transfer);
        let file = nameless(&path).map_err(|e| ObjectError::io(&path, "create a temporary file in it", e))?;
        Ok((file, path))
    }

    /// Check that all blocks are there and are those of the source's `root`.
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

    /// Check all blocks against the source's `root`, give every file its mode, time and name, make
    /// links and directories, and tidy up. If this is cut short, opening the store and finishing it
    /// again goes on.
    ///
    /// # Errors
    /// As [`Store::check`], or what was in the way.
    pub fn finish(self, root: &Hash, durability: Durability) -> Result<Finished, ObjectError> {
        self.finish_as(root, durability, &FileWork::default())
    }

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
        publish::publish(self, durability, work)
    }

    /// Bytes of content of the stream or file of this entry.
    pub(crate) fn content_len(&self, entry: &Entry) -> u64 {
        match entry.kind {
            Kind::Stream => {
                let stream_len = self.geometry.stream_len.unwrap_or(0);
                stream_len.saturating_sub(u64::from(self.geometry.manifest_len))
            }
            _ => entry.size(),
        }
    }

    fn count(&mut self, index: u32, hash: Hash) {
        if self.hashes.push(index, hash).is_none() {
            self.verified += u64::from(self.geometry.block_len(index));
        }
    }

    fn count_resumed(&mut self, index: u32, hash: Hash) {
        self.count(index, hash);
        self.from_before.push(index);
        self.resumed += 1;
    }

    /// Bytes still to come, as far as known.
    fn left(&self) -> u64 {
        self.geometry.stream_len.unwrap_or(0).saturating_sub(self.verified)
    }

    fn head_is_complete(&self) -> bool {
        (0..self.geometry.manifest_blocks()).all(|index| self.has(index))
    }

    /// Write the files' part of this range of the object stream.
    fn write_files(&mut self, range: Range<u64>, data: &[u8]) -> Result<(), ObjectError> {
        let Some(known) = &self.known else { return Ok(()) };
        let left = self.left();
        // Without its part of the manifest.
        let mut rest = &data[data.len() - files_part(&self.geometry, &range)..];
        for piece in known.layout.pieces(range) {
            let (bytes, after) = rest.split_at(piece.len);
            rest = after;
            if self.hashes.is_withdrawn(piece.entry) {
                continue;
            }
            let part = self.open.get(piece.entry, || self.place.part(piece.entry))?;
            let name = &known.manifest.entries()[piece.entry as usize].path;
            self.place
                .disk
                .write_all_at(part, bytes, piece.offset)
                .map_err(|e| self.place.failed(name, e, left))?;
        }
        Ok(())
    }

    /// That no name gets older content than it has.
    fn check_age(&mut self, manifest: &Manifest) -> Result<(), ObjectError> {
        let Some(admission) = self.admission else { return Ok(()) };
        match Remembered::load(&self.place.disk, &self.place.states) {
            Ok(remembered) => remembered.check(&self.place.out_path, manifest, self.transfer, admission),
            Err(Damaged) => {
                self.warnings.push(self.place.forgotten());
                Ok(())
            }
        }
    }

    /// That entries take no more beside their content than is allowed for the content.
    fn check_footprint(&self, manifest: &Manifest) -> Result<(), ObjectError> {
        let Some(most) = self.admission.and_then(|admission| admission.most) else { return Ok(()) };
        let bytes = manifest.footprint();
        if bytes > most {
            return Err(ObjectError::TooManyEntries { entries: manifest.entries().len(), bytes, most });
        }
        Ok(())
    }

    /// The manifest with the names that its entries get here.
    fn named(&mut self, manifest: Manifest) -> Result<Manifest, ObjectError> {
        let names = self.admission.map_or(Names::Keep, |admission| admission.names);
        let (manifest, changed) = manifest.named_by(names)?;
        if changed > 0 && self.stage == Stage::Receiving {
            self.warnings.push(names::told(changed));
        }
        Ok(manifest)
    }

    /// What the user is to be told.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// The manifest's blocks are all there: read it and prepare for its files.
    fn learn_manifest(&mut self) -> Result<(), ObjectError> {
        let mut bytes = vec![0; self.geometry.manifest_len as usize];
        self.place
            .disk
            .read_at(&self.head, &mut bytes, 0)
            .map_err(|e| ObjectError::io(self.place.path(self.transfer).join(HEAD), "read", e))?;
        let found = TransferId::of(&bytes, &self.announced);
        if found != self.transfer {
            return Err(ObjectError::OtherManifest { expected: self.transfer, found });
        }
        let manifest = self.named(Manifest::decode(&bytes)?)?;
        let layout = Layout::new(&manifest, &self.geometry)?;
        if self.stage == Stage::Receiving {
            self.check_age(&manifest)?;
            publish::check_for_obstacles(&self.place, &manifest)?;
            self.check_footprint(&manifest)?;
            publish::take_back(&self.place, &manifest)?;
            self.place.remove_foreign_parts()?;
            if !self.has_others {
                self.place.make_room(&manifest)?; // otherwise when it is known what can be taken over
            }
        }
        self.known = Some(Known { manifest, layout });
        self.write_border()
    }

    /// Write the beginning of the content, which shares a block with the end of the manifest.
    fn write_border(&mut self) -> Result<(), ObjectError> {
        // The last of these blocks may hold content as well.
        let border = self.geometry.range(self.geometry.manifest_blocks() - 1);
        let border = border.start..border.end.min(self.geometry.stream_len.unwrap_or(u64::MAX));
        if border.end > u64::from(self.geometry.manifest_len) && self.stage == Stage::Receiving {
            let mut data = vec![0; (border.end - border.start) as usize];
            self.place
                .disk
                .read_at(&self.head, &mut data, border.start)
                .map_err(|e| ObjectError::io(self.place.path(self.transfer).join(HEAD), "read", e))?;
            self.write_files(border, &data)?;
        }
        Ok(())
    }

    /// Keep what an earlier receiver stored, as far as it can be read back.
    fn resume(&mut self, blocks: Vec<(u32, Hash)>, work: &FileWork) -> Result<(), ObjectError> {
        let end = self.geometry.blocks().unwrap_or(u32::MAX);
        // Of two records of a block the later counts.
        let latest: BTreeMap<u32, Hash> = blocks.into_iter().filter(|&(index, _)| index < end).collect();
        let journaled: Vec<(u32, Hash)> = latest.into_iter().filter(|(_, hash)| *hash != WITHDRAWN).collect();
        self.spoiled = journaled.iter().map(|&(index, _)| u64::from(self.geometry.block_len(index))).sum();
        let head = journaled.partition_point(|&(index, _)| index < self.geometry.manifest_blocks());
        if self.stage == Stage::Published {
            if self.that_verify(&journaled[..head], work)?.len() < self.geometry.manifest_blocks() as usize {
                // Without the manifest nothing can be said about what was published.
                self.stage = Stage::Receiving;
                return self.place.wipe();
            }
            journaled.iter().for_each(|&(index, hash)| self.count_resumed(index, hash));
            self.spoiled = 0;
            return self.learn_manifest();
        }
        for (index, hash) in self.that_verify(&journaled[..head], work)? {
            self.count_resumed(index, hash);
        }
        if self.head_is_complete() {
            self.learn_manifest()?;
            let rest = &journaled[head..];
            let bytes = rest.len() as u64 * self.geometry.capacity();
            let good = if bytes < TWO_THREADS_FROM {
                self.that_verify(rest, work)?
            } else {
                let (a, b) = rest.split_at(rest.len() / 2);
                std::thread::scope(|scope| {
                    let other = scope.spawn(|| self.that_verify(b, work));
                    let mut good = self.that_verify(a, work)?;
                    good.extend(other.join().expect("verifying does not panic")?);
                    Ok::<_, ObjectError>(good)
                })?
            };
            for (index, hash) in good {
                self.count_resumed(index, hash);
            }
        }
        self.spoiled = self.spoiled.saturating_sub(self.verified);
        Ok(())
    }

    /// Those blocks whose stored data have the journaled hash. What cannot be read does not.
    fn that_verify(&self, blocks: &[(u32, Hash)], work: &FileWork) -> Result<Vec<(u32, Hash)>, ObjectError> {
        let (mut open, mut buf) = (OpenFiles::default(), Vec::new());
        let mut verifies = |&(index, hash): &(u32, Hash)| {
            self.read_back(index, &mut buf, &mut open).is_ok_and(|()| hash_of(&buf) == hash)
        };
        let mut good = Vec::new();
        for block in blocks {
            work.step(&self.place.out_path)?;
            if verifies(block) {
                good.push(*block);
            }
        }
        Ok(good)
    }

    fn read_back(&self, index: u32, buf: &mut Vec<u8>, open: &mut OpenFiles) -> io::Result<()> {
        let range = self.geometry.range(index);
        buf.resize((range.end - range.start) as usize, 0);
        if index < self.geometry.manifest_blocks() {
            let have = self.place.disk.read_at(&self.head, buf, range.start)?;
            if let Some(known) = &self.known {
                self.hashes.blank(&known.layout, index, buf);
            }
            return if have == buf.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        let Some(known) = &self.known else { return Err(io::ErrorKind::NotFound.into()) };
        let mut rest = &mut buf[..];
        for piece in known.layout.pieces(range) {
            let (into, after) = rest.split_at_mut(piece.len);
            rest = after;
            if self.hashes.is_withdrawn(piece.entry) {
                into.fill(0);
                continue;
            }
            let part = open.get(piece.entry, || self.place.existing_part(piece.entry))?;
            if self.place.disk.read_at(part, into, piece.offset)? < into.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }
}

/// How many of these bytes of the object stream belong to files.
fn files_part(geometry: &Geometry, range: &Range<u64>) -> usize {
    (range.end - range.start.max(u64::from(geometry.manifest_len))) as usize
}
