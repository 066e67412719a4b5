//! The block sink: stores verified blocks, either in files of a directory or in order in a stream.

mod finishing;
mod opening;
mod to;

use super::one_file::{OneFile, explained};
use super::storage::{Given, Settled, Storage};
use crate::config::Destination;
use crate::error::Error;
use crate::object::gather::seeds::Seeds;
use crate::object::gather::spill::SpillFile;
use crate::object::host::disk::Disk;
use crate::object::host::quota::Quota;
use crate::object::memory::{Gathering, Memory};
use crate::object::{
    Affected, AnyStore, Comparing, Counts, FileWork, Finished, Geometry, Hash, Manifest, ObjectError,
    SinkResult, TransferId, WorkStage, data_of, replace_in,
};
use crate::worker::{Load, Worker};
use faircast_host::write_behind::{file_behind, write_behind};
use faircast_wire::{Activity, Withdrawn};
pub(super) use opening::Admitting;
use opening::{is_in_files, on_device, opened, temporary_room};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use to::{ContentSink, MayHave, Unwritten};
pub(super) use to::{Polled, StoreResult};

/// The memory of the sink divided by this number is available for blocks that arrive before the manifest.
const WAITING: usize = 4;

/// The memory of the sink divided by this number is available for blocks of a stream that arrive before their predecessors.
const EARLY: usize = 2;

/// The memory of the sink divided by this number is available for blocks that the worker has not written yet.
const BEHIND: u64 = 8;

/// Minimum memory for blocks that wait for their predecessors, bytes. It is enough for a few blocks.
const MIN_EARLY: usize = 4 << 20;

/// Maximum distance of a stream's block from the last written block, in blocks. The required memory grows with this distance.
const FARTHEST: u32 = 1 << 20;

/// Maximum number of times that stored data is fetched again because it contradicts the source.
const MAX_REFETCHES: u8 = 2;

/// The storage of one transfer's blocks.
pub(super) struct BlockSink {
    to: ContentSink,
    geometry: Geometry,
    /// The channel from which the temporary file for symbols is received after a job has made the file.
    room: Option<Receiver<Result<SpillFile, ObjectError>>>,
    /// Blocks that arrived before the manifest was known.
    waiting: BTreeMap<u32, (Vec<u8>, Hash)>,
    waiting_bytes: usize,
    max_waiting: usize,
    /// Maximum number of bytes that the worker has not written yet.
    behind_most: u64,
    spent: Vec<Vec<u8>>,
    resumed_bytes: u64,
    spoiled_bytes: u64,
    /// Whether stored blocks of an earlier run are being verified.
    is_verifying: bool,
    /// The reason to discard stored blocks as soon as no job uses the files.
    contradiction: Option<ObjectError>,
    /// Number of times that stored data was discarded.
    refetches: u8,
    warnings: Vec<String>,
    /// Length of the object stream according to its last block, the only block that may be short.
    short_end: Option<u64>,
    /// The entries and the title of published files.
    content: Option<(Counts, Option<String>)>,
    worker: Worker,
    /// Symbols of incomplete blocks that were found on the disk.
    seeds: Option<Seeds>,
    /// In a dry run: the comparison, the received list of files, and the disk.
    comparing: Option<Box<(Comparing, Gathering, Disk)>>,
}

/// Cancels a job that verifies, discards or renames files, because a dropped sink does not use the result of the job.
impl Drop for BlockSink {
    fn drop(&mut self) {
        if let ContentSink::Publishing { work, .. } | ContentSink::Preparing { work, .. } = &self.to {
            work.cancel();
        }
    }
}

/// The result of finishing, after all blocks were stored.
#[derive(Debug)]
pub(crate) enum Ending {
    /// All files have their names.
    Done(Finished),
    /// The blocks contradict the source: search for the missing blocks again.
    Anew,
    /// Files are being renamed. Call again.
    UnderWay,
}

impl BlockSink {
    /// Opens a sink for `transfer`, from block `first` on, with about `memory` bytes for early blocks. A live stream is written
    /// to a single file even if the destination is a directory, because late joiners do not receive the manifest.
    pub(super) fn open(
        destination: &Destination,
        transfer: TransferId,
        geometry: Geometry,
        live: Option<u32>,
        admitting: Admitting,
        (memory, worker): (usize, &Worker),
        (disk, temporary): (&Disk, &Path),
    ) -> Result<BlockSink, Error> {
        let mut admitting = admitting;
        let (order, room) = channel();
        let (room, order) = (admitting.spills.then_some(room), admitting.spills.then_some(order));
        let comparing = admitting.comparing.take();
        if let (Some(order), false) = (&order, is_in_files(destination, live) && comparing.is_none()) {
            let (order, disk, path) = (order.clone(), disk.clone(), temporary.to_path_buf());
            worker.run(Load::Opening, Box::new(move || _ = order.send(temporary_room(disk, path))));
        }
        let mut list = None;
        let to = match (destination, live) {
            _ if comparing.is_some() => {
                let gathering = Memory::new(0).gather(geometry.manifest_len.into());
                list = Some(gathering.clone());
                ContentSink::object(Box::new(gathering), None, None, geometry, memory)
            }
            (Destination::Directory(out), None) => {
                let (disk, out) = (disk.clone(), out.clone());
                let open = move || opened(&disk, &out, (transfer, geometry), admitting, order);
                ContentSink::opening(worker, open)
            }
            (Destination::Device(device), None) => {
                let (disk, device) = (disk.clone(), Arc::clone(device));
                ContentSink::opening(worker, move || on_device(&disk, &device, (transfer, geometry)))
            }
            (Destination::Device(device), Some(_)) => return Err(device.takes_no_stream().into()),
            (Destination::Directory(out), Some(first)) => {
                let name = format!("stream-{}", &transfer.to_string()[..8]);
                let (path, directory) = (out.join(&name), out.clone());
                let make = move || replace_in(&directory, &name);
                let (out, waiting) = file_behind(path, make, worker.blocks());
                out.begin().map_err(|e| ObjectError::io("-", "write the stream", e))?;
                ContentSink::stream(Box::new(out), Some(Unwritten::InFile(waiting)), geometry, first, memory)
            }
            (Destination::Writer(output), Some(first)) => {
                let (out, waiting) = write_behind(output);
                ContentSink::stream(Box::new(out), Some(Unwritten::Unread(waiting)), geometry, first, memory)
            }
            (Destination::Writer(output), None) => {
                let (out, waiting) = write_behind(output);
                let out = Box::new(OneFile::new(out, geometry.manifest_len));
                ContentSink::object(out, Some(Unwritten::Unread(waiting)), None, geometry, memory)
            }
            (Destination::Memory(to), Some(first)) => {
                ContentSink::stream(Box::new(to.stream("stream")), None, geometry, first, memory)
            }
            (Destination::Memory(to), None) => ContentSink::memory(to, geometry, memory)?,
        };
        let mut sink = BlockSink {
            to,
            geometry,
            room,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            max_waiting: memory / WAITING,
            behind_most: (memory as u64 / BEHIND).max(geometry.capacity()),
            spent: Vec::new(),
            resumed_bytes: 0,
            spoiled_bytes: 0,
            is_verifying: false,
            contradiction: None,
            refetches: 0,
            warnings: Vec::new(),
            short_end: None,
            content: None,
            worker: worker.clone(),
            seeds: None,
            comparing: comparing.zip(list).map(|(comparing, list)| Box::new((comparing, list, disk.clone()))),
        };
        sink.poll()?;
        Ok(sink)
    }

    /// Limits a live stream to this quota. Other content states its size in advance, and needs no such limit.
    pub(super) fn limited_to(mut self, quota: &Quota) -> BlockSink {
        if let ContentSink::Stream { sink, hashes: None, .. } = &mut self.to {
            sink.limit(quota);
        }
        self
    }

    pub(super) fn has(&self, block: u32) -> bool {
        let placed = match &self.to {
            ContentSink::Files(storage) => storage.ledger().has(block),
            ContentSink::Stream { sink, .. } => sink.has(block),
            ContentSink::Opening { .. } | ContentSink::Preparing { .. } => false,
            ContentSink::Publishing { .. } | ContentSink::Finished { .. } => true,
        };
        placed || (!self.waiting.is_empty() && self.waiting.contains_key(&block))
    }

    /// Records that the source has withdrawn these files. Returns the blocks that change. Call [`BlockSink::settle`] afterwards.
    ///
    /// # Errors
    /// If the output is a stream.
    pub(super) fn withdraw(&mut self, files: &[Withdrawn]) -> Result<Vec<Affected>, Error> {
        match &mut self.to {
            ContentSink::Files(storage) => Ok(storage.withdraw(files)),
            ContentSink::Stream { .. } if !files.is_empty() => Err(ObjectError::Withdrawn.into()),
            _ => Ok(Vec::new()),
        }
    }

    /// Prepares for another session with the same content.
    pub(super) fn restart(&mut self) {
        if let ContentSink::Files(storage) = &mut self.to {
            storage.want_withdrawn();
        }
    }

    /// Returns the number of files known to be withdrawn; `None` for outputs other than files.
    pub(super) fn withdrawn(&self) -> Option<usize> {
        match &self.to {
            ContentSink::Files(storage) => Some(storage.ledger().withdrawn()),
            _ => None,
        }
    }

    /// Returns the hash of a block's data with zeros in place of withdrawn files; `None` if the block contains no withdrawn file.
    pub(super) fn blanked_hash(&self, block: u32, data: &[u8]) -> Option<Hash> {
        let ContentSink::Files(storage) = &self.to else { return None };
        storage.ledger().blanked(block, data).map(|(_, hash)| hash)
    }

    /// Whether the list of the files is known, which states the places of withdrawn files. Streams have no such list.
    pub(super) fn knows_files(&self) -> bool {
        match &self.to {
            ContentSink::Files(storage) => storage.ledger().manifest().is_some(),
            _ => true,
        }
    }

    /// Returns the blocks that are stored in files.
    pub(super) fn stored(&self) -> impl Iterator<Item = u32> + '_ {
        let ledger = match &self.to {
            ContentSink::Files(storage) => Some(storage.ledger()),
            _ => None,
        };
        let end = ledger.map_or(0, |ledger| ledger.end());
        (0..end).filter(move |block| ledger.is_some_and(|ledger| ledger.has(*block)))
    }

    /// Whether a block contains only bytes of withdrawn files, or lies in holes of files.
    pub(super) fn is_void(&self, block: u32) -> bool {
        matches!(&self.to, ContentSink::Files(storage) if storage.ledger().is_void(block))
    }

    /// Compares a stored block with the source's hash; returns whether they agree. Otherwise the block counts as missing. Call
    /// [`BlockSink::settle`] afterwards.
    pub(super) fn compare(&mut self, block: u32, is_right: impl Fn(Hash) -> bool) -> bool {
        let ContentSink::Files(storage) = &mut self.to else { return true };
        let ledger = storage.ledger();
        let is_right = ledger.hash(block).is_some_and(is_right) || ledger.is_void(block);
        if !is_right {
            storage.reject(block);
            let bytes = u64::from(self.geometry.block_len(block));
            self.spoiled_bytes += bytes;
            self.resumed_bytes = self.resumed_bytes.saturating_sub(bytes);
        }
        is_right
    }

    /// Handles stored blocks that contradict the source. As soon as no job uses the files, discards the blocks that may be wrong,
    /// so that they are received again. If blocks were already discarded [`MAX_REFETCHES`] times, deletes the stored transfer
    /// instead, so that the next receiver starts from the beginning.
    ///
    /// # Errors
    /// The contradiction, if blocks were discarded too often without success. Also if the output is not files, because other
    /// output cannot be corrected.
    fn give_up(&mut self, contradiction: ObjectError) -> Result<Polled, Error> {
        let ContentSink::Files(storage) = &mut self.to else { return Err(contradiction.into()) };
        storage.drop_waiting();
        self.waiting.clear();
        (self.waiting_bytes, self.short_end) = (0, None);
        if !storage.is_idle() {
            self.contradiction.get_or_insert(contradiction);
            return Ok(Polled::Nothing);
        }
        let error = self.contradiction.take().unwrap_or(contradiction);
        let is_enough = self.refetches == MAX_REFETCHES;
        self.refetches += u8::from(!is_enough);
        self.prepare(MayHave::Any, move |store, _| {
            if is_enough {
                store.start_over()?;
                return Err(error);
            }
            store.give_up(&error)
        });
        self.poll()
    }

    /// Returns pending warnings for the user.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        if let ContentSink::Files(storage) = &mut self.to
            && let Some(files) = storage.files()
        {
            self.warnings.append(files.warnings());
        }
        std::mem::take(&mut self.warnings)
    }

    /// Stores a block that was verified to have this hash.
    ///
    /// # Errors
    /// If the block cannot be stored.
    pub(super) fn put(&mut self, block: u32, mut bytes: Vec<u8>, hash: Hash) -> Result<StoreResult, Error> {
        let capacity = self.geometry.capacity();
        let len = data_of(&bytes).expect("its hash was computed, so it is a block").len();
        if self.geometry.stream_len.is_none() && (len as u64) < capacity {
            self.short_end = Some(u64::from(block) * capacity + len as u64);
        }
        match &mut self.to {
            ContentSink::Opening { .. } | ContentSink::Preparing { .. } => {
                if self.may_have(block) || self.waiting_bytes + len > self.max_waiting {
                    return Ok(StoreResult::Refused(bytes));
                }
                bytes.truncate(len);
                self.wait(block, bytes, hash);
            }
            ContentSink::Publishing { .. } | ContentSink::Finished { .. } => {}
            ContentSink::Stream { sink, .. } if block > sink.next().saturating_add(FARTHEST) => {
                return Ok(StoreResult::Refused(bytes));
            }
            ContentSink::Stream { sink, hashes, .. } => {
                match sink.put(block, bytes[..len].to_vec()).map_err(explained)? {
                    SinkResult::Full(_) => return Ok(StoreResult::Refused(bytes)),
                    SinkResult::Written(_) | SinkResult::Kept | SinkResult::AlreadyHad => {
                        if let Some(hashes) = hashes {
                            hashes.push(block, hash);
                        }
                    }
                }
                self.spent.push(bytes);
            }
            ContentSink::Files(_) if self.contradiction.is_some() => return Ok(StoreResult::Refused(bytes)),
            ContentSink::Files(storage) => {
                let is_early = !storage.ledger().takes_content() && block >= self.geometry.manifest_blocks();
                if is_early && self.waiting_bytes + len > self.max_waiting {
                    return Ok(StoreResult::Refused(bytes));
                }
                bytes.truncate(len);
                let is_given = self.give(block, bytes, hash);
                if self.settled(is_given)? == Polled::GivenUp {
                    return Ok(StoreResult::Anew);
                }
            }
        }
        Ok(StoreResult::Kept)
    }

    /// Passes a block to the storage, or holds it until the manifest is known.
    fn give(&mut self, block: u32, data: Vec<u8>, hash: Hash) -> Result<(), ObjectError> {
        let ContentSink::Files(storage) = &mut self.to else { return Ok(()) };
        if let Given::NeedsManifest(data) = storage.put(block, data, hash)? {
            self.wait(block, data, hash);
        }
        Ok(())
    }

    fn wait(&mut self, block: u32, data: Vec<u8>, hash: Hash) {
        self.waiting_bytes += data.len();
        self.waiting.insert(block, (data, hash));
    }

    /// Passes the held blocks to the storage. Blocks of files remain held until the manifest is known.
    fn give_waiting(&mut self) -> Result<(), ObjectError> {
        self.waiting_bytes = 0;
        let mut waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.try_for_each(|(block, (data, hash))| self.give(block, data, hash))
    }

    /// Processes the results of the worker and begins pending work.
    ///
    /// # Errors
    /// The error of an operation, or the error in `before`.
    fn settled(&mut self, before: Result<(), ObjectError>) -> Result<Polled, Error> {
        match before.and_then(|()| self.take_results()) {
            Err(error) if error.is_contradiction() => self.give_up(error),
            Ok(settled) => match self.contradiction.take() {
                Some(error) => self.give_up(error),
                None => Ok(settled),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Does the same as [`BlockSink::poll`], but does not process the results of jobs that use the whole store.
    ///
    /// # Errors
    /// If an operation failed.
    pub(super) fn settle(&mut self) -> Result<Polled, Error> {
        self.settled(Ok(()))
    }

    fn take_results(&mut self) -> Result<Polled, ObjectError> {
        let mut polled = Polled::Nothing;
        while let ContentSink::Files(storage) = &mut self.to {
            match storage.poll()? {
                Settled::Some => polled = Polled::Stored,
                Settled::Lost => polled = Polled::GivenUp,
                Settled::Nothing if storage.ledger().takes_content() && !self.waiting.is_empty() => {
                    self.give_waiting()?;
                }
                Settled::Nothing => break,
            }
        }
        if let ContentSink::Files(storage) = &self.to
            && self.contradiction.is_none()
            && !self.is_verifying
            && storage.is_idle()
            && storage.ledger().manifest().is_some()
            && storage.ledger().may_adopt()
        {
            let stored = MayHave::Known(self.stored().collect());
            self.prepare(stored, AnyStore::adopt);
        }
        Ok(polled)
    }

    /// Returns the memory of a stored block for reuse.
    pub(super) fn take_spent(&mut self) -> Option<Vec<u8>> {
        match &mut self.to {
            ContentSink::Files(storage) => storage.take_spent(),
            _ => self.spent.pop(),
        }
    }

    /// Whether [`BlockSink::poll`] will return results: blocks are being written to the disk or discarded.
    pub(super) fn is_storing(&self) -> bool {
        match &self.to {
            ContentSink::Files(storage) => !storage.is_idle(),
            ContentSink::Opening { .. } => true,
            ContentSink::Preparing { may_have, .. } => matches!(may_have, MayHave::Any),
            ContentSink::Stream { waiting: Some(waiting), .. } => waiting.bytes() > 0,
            _ => false,
        }
    }

    /// Whether the bytes that are being written to the disk, plus `more`, exceed the limit.
    pub(super) fn is_behind(&self, more: u64) -> bool {
        self.exceeds(more + self.waiting_for_disk())
    }

    /// Returns the number of bytes that are being written to the disk.
    fn waiting_for_disk(&self) -> u64 {
        match &self.to {
            // Blocks that wait for the manifest are included, because they are written as soon as a job has read the manifest.
            ContentSink::Files(storage) if !storage.is_idle() => {
                storage.ledger().bytes_written() + self.waiting_bytes as u64
            }
            ContentSink::Stream { waiting: Some(waiting @ Unwritten::InFile(_)), .. } => waiting.bytes(),
            ContentSink::Opening { .. } | ContentSink::Preparing { .. } => self.waiting_bytes as u64,
            _ => 0,
        }
    }

    /// Whether this number of bytes exceeds the memory for bytes that wait for the disk.
    pub(super) fn exceeds(&self, bytes: u64) -> bool {
        bytes > self.behind_most
    }

    /// Whether there is room for one more block, while blocks of `decoding` bytes are being decoded.
    pub(super) fn has_room(&self, decoding: u64) -> bool {
        !self.is_behind(decoding + self.geometry.capacity() + self.waiting_for_output())
    }

    /// Returns the worker of its jobs.
    pub(super) fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Whether written data is never read again, as in a live stream.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.to, ContentSink::Stream { hashes: None, .. })
    }

    /// Whether the sink probably accepts this block now.
    pub(super) fn takes(&self, block: u32) -> bool {
        match &self.to {
            ContentSink::Files(storage) => {
                storage.ledger().manifest().is_some() || block < self.geometry.manifest_blocks()
            }
            ContentSink::Stream { sink, .. } => block == sink.next(),
            ContentSink::Opening { .. }
            | ContentSink::Preparing { .. }
            | ContentSink::Publishing { .. }
            | ContentSink::Finished { .. } => false,
        }
    }

    /// Returns the temporary file for symbols of incomplete blocks, once, after a job has made it.
    pub(super) fn take_room(&mut self) -> Result<Option<SpillFile>, Error> {
        let Some(Ok(room)) = self.room.as_ref().map(Receiver::try_recv) else { return Ok(None) };
        self.room = None;
        Ok(Some(room?))
    }

    /// Returns the symbols of incomplete blocks that were found on the disk, once.
    pub(super) fn take_seeds(&mut self) -> Option<Seeds> {
        self.seeds.take()
    }

    /// Whether a job is making the temporary file.
    pub(super) fn waits_for_room(&self) -> bool {
        self.room.is_some()
    }

    /// Skips all blocks of a live stream before block `oldest`, which the source has dropped. Returns the number of lost blocks.
    pub(super) fn skip_before(&mut self, oldest: u32) -> Result<u32, Error> {
        match &mut self.to {
            ContentSink::Stream { sink, lost, .. } => {
                let gone = sink.skip_to(oldest)?;
                *lost += gone;
                Ok(gone)
            }
            _ => Ok(0),
        }
    }

    /// Returns a short title of the content: the first name in the output directory and the number of the other names there.
    pub(super) fn title(&self) -> Option<String> {
        let ContentSink::Files(storage) = &self.to else { return self.content.as_ref()?.1.clone() };
        let mut names = storage.ledger().manifest()?.tops();
        let first = names.next()?.to_string_lossy().into_owned();
        Some(match names.count() {
            0 => first,
            more => format!("{first} and {more} more"),
        })
    }

    /// Returns the number of expected entries, once the manifest is known.
    pub(super) fn entries(&self) -> Option<Counts> {
        match &self.to {
            ContentSink::Files(storage) => storage.ledger().manifest().map(Manifest::counts),
            _ => self.content.as_ref().map(|(entries, _)| *entries),
        }
    }

    pub(super) fn blocks(&self) -> u32 {
        let placed = match &self.to {
            ContentSink::Files(storage) => {
                storage.ledger().blocks_stored() + storage.ledger().blocks_written()
            }
            ContentSink::Stream { sink, .. } => sink.next(),
            ContentSink::Opening { .. } | ContentSink::Preparing { .. } => 0,
            ContentSink::Publishing { blocks, .. } | ContentSink::Finished { blocks, .. } => *blocks,
        };
        placed + self.waiting.len() as u32
    }

    /// Returns the number of verified bytes of content, including blocks that wait for the manifest.
    pub(super) fn verified_bytes(&self) -> u64 {
        let written = match &self.to {
            ContentSink::Files(storage) => storage.ledger().bytes_written(),
            _ => 0,
        };
        self.stored_bytes() + written + self.waiting_bytes as u64
    }

    /// Returns the number of stored bytes of content. Blocks that are being written, and blocks that wait for the manifest, do
    /// not count, because they may be lost if the session ends.
    pub(super) fn stored_bytes(&self) -> u64 {
        match &self.to {
            ContentSink::Files(storage) => storage.ledger().verified_bytes(),
            ContentSink::Stream { sink, head, .. } => sink.written().saturating_sub((*head).into()),
            ContentSink::Opening { .. } | ContentSink::Preparing { .. } => 0,
            ContentSink::Publishing { bytes, .. } | ContentSink::Finished { bytes, .. } => *bytes,
        }
    }

    /// Returns the names of the files that lack content, with their numbers of missing bytes, as far as they are known.
    pub(super) fn unfinished(&self) -> Vec<(String, u64)> {
        if let ContentSink::Files(storage) = &self.to { storage.ledger().unfinished() } else { Vec::new() }
    }

    /// Returns the number of verified bytes that the reader of the output has not taken yet.
    pub(super) fn waiting_for_output(&self) -> u64 {
        match &self.to {
            ContentSink::Stream { waiting: Some(waiting @ Unwritten::Unread(_)), .. } => waiting.bytes(),
            _ => 0,
        }
    }

    /// Returns the number of verified bytes that wait for the disk or for the reader of the output.
    pub(super) fn unwritten_bytes(&self) -> u64 {
        self.waiting_for_disk() + self.waiting_for_output()
    }

    pub(super) fn spoiled_bytes(&self) -> u64 {
        self.spoiled_bytes
    }

    pub(super) fn resumed_bytes(&self) -> u64 {
        self.resumed_bytes
    }
}

impl BlockSink {
    /// Runs this operation as a job with the whole store.
    fn prepare(
        &mut self,
        may_have: MayHave,
        how: impl FnOnce(&mut AnyStore, &FileWork) -> Result<(), ObjectError> + Send + 'static,
    ) {
        let work = FileWork::default();
        let (sender, outcome) = channel();
        let (ours, preparing) = (work.clone(), ContentSink::Preparing { work, outcome, may_have });
        let ContentSink::Files(storage) = std::mem::replace(&mut self.to, preparing) else {
            unreachable!("only files are prepared for")
        };
        self.is_verifying = false; // the job's store states whether blocks remain to be verified
        let mut store = storage.into_store().expect("no job has the files of an idle storage");
        let job = Box::new(move || {
            let done = how(&mut store, &ours);
            // Sending fails if the session has ended.
            sender.send(done.map(|()| Box::new(store))).ok();
        });
        self.worker.run(Load::Files, job);
    }

    /// Processes the results of jobs and starts their successors.
    ///
    /// # Errors
    /// If an operation failed.
    pub(super) fn poll(&mut self) -> Result<Polled, Error> {
        if let ContentSink::Opening { outcome } = &self.to {
            let store = match outcome.try_recv() {
                Err(TryRecvError::Empty) => return Ok(Polled::Nothing),
                Err(TryRecvError::Disconnected) => panic!("a job on files states its result"),
                Ok(opened) => opened?,
            };
            let has_some = store.ledger().blocks_stored() > 0;
            return self.use_files(*store, if has_some { Polled::Prepared } else { Polled::Stored });
        }
        if self.is_verifying {
            return self.verify();
        }
        let ContentSink::Preparing { outcome, may_have, .. } = &self.to else { return self.settle() };
        let mut store = match outcome.try_recv() {
            Err(TryRecvError::Empty) => return Ok(Polled::Nothing),
            Err(TryRecvError::Disconnected) => panic!("a job on files states its result"),
            Ok(store) => store?,
        };
        self.seeds = store.take_seeds();
        let polled = if matches!(may_have, MayHave::Any) { Polled::GivenUp } else { Polled::Prepared };
        self.use_files(*store, polled)
    }

    /// Continues with a store that a job has returned. Returns `polled`, unless stored blocks were discarded.
    fn use_files(&mut self, store: AnyStore, polled: Polled) -> Result<Polled, Error> {
        self.waiting.retain(|block, _| !store.ledger().has(*block));
        let ledger = store.ledger();
        self.is_verifying = ledger.verifying().is_some();
        (self.resumed_bytes, self.spoiled_bytes) = (ledger.resumed_bytes(), ledger.spoiled_bytes());
        self.to = ContentSink::Files(Storage::new(store, self.worker.clone()));
        let given = self.give_waiting();
        match self.settled(given)? {
            Polled::GivenUp => Ok(Polled::GivenUp),
            _ => Ok(polled),
        }
    }

    /// Continues the verification of stored blocks of an earlier run.
    fn verify(&mut self) -> Result<Polled, Error> {
        if let (ContentSink::Files(storage), None) = (&mut self.to, &self.contradiction) {
            storage.verify_more();
        }
        let polled = self.settle()?;
        let ContentSink::Files(storage) = &self.to else { return Ok(polled) };
        let ledger = storage.ledger();
        (self.resumed_bytes, self.spoiled_bytes) = (ledger.resumed_bytes(), ledger.spoiled_bytes());
        self.is_verifying = ledger.verifying().is_some();
        match polled {
            Polled::Nothing | Polled::Stored if !self.is_verifying => Ok(Polled::Prepared),
            _ => Ok(polled),
        }
    }

    /// Whether a job is opening the store: blocks are accepted, but the missing blocks are not known yet.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.to, ContentSink::Opening { .. })
    }

    /// Whether a block may turn out to be stored when the present job ends.
    pub(super) fn may_have(&self, block: u32) -> bool {
        match &self.to {
            ContentSink::Preparing { may_have: MayHave::Known(stored), .. } => {
                self.contradiction.is_some() || stored.binary_search(&block).is_ok()
            }
            ContentSink::Files(storage) if storage.ledger().is_claimed(block) => true,
            _ => self.is_preparing(),
        }
    }

    /// Whether the missing blocks are not known yet.
    pub(super) fn is_preparing(&self) -> bool {
        matches!(self.to, ContentSink::Preparing { .. }) || self.contradiction.is_some()
    }

    /// Whether the missing blocks depend on the manifest, which has not arrived yet.
    pub(super) fn wants_manifest(&self) -> bool {
        matches!(&self.to, ContentSink::Files(storage) if storage.ledger().may_adopt())
    }

    /// Returns the work in progress on files, and the percentage that is done.
    pub(super) fn activity(&self) -> Option<(Activity, u8)> {
        match &self.to {
            ContentSink::Publishing { work, .. } | ContentSink::Preparing { work, .. } => {
                let (stage, percent) = work.progress();
                let activity = match stage {
                    WorkStage::Verifying => Activity::Verifying,
                    WorkStage::Completing => Activity::Completing,
                    WorkStage::Renaming => Activity::Renaming,
                    WorkStage::Linking => Activity::Linking,
                };
                Some((activity, percent))
            }
            ContentSink::Files(storage) if self.is_verifying => {
                Some((Activity::Verifying, storage.ledger().verifying().unwrap_or(100)))
            }
            _ if self.wants_manifest() => Some((Activity::Verifying, 0)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
