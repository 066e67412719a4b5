//! The block sink: where verified blocks go, files in a directory, or a stream in order.

use super::one_file::{OneFile, explained};
use super::write_behind::{Waiting, write_behind};
use crate::config::{Destination, Durability, KeepUnfinished};
use crate::disk::Disk;
use crate::ends::{Gathering, Memory};
use crate::error::Error;
use crate::object::Told;
use crate::object::abandoned::{LetGo, let_go_beyond};
use crate::object::spool::nameless;
use crate::object::{
    Admission, Affected, Counts, FileWork, Geometry, Hash, Manifest, ObjectError, OwnersBy, Preserve, Put,
    RootHasher, Store, StreamSink, Sunk, TransferId, replace,
};
use crate::quota::Quota;
use crate::spill::Room;
use crate::worker::Worker;
use faircast_wire::{Activity, Withdrawn};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::SystemTime;

/// Blocks that arrive before the manifest wait in memory, in this part of it.
const WAITING: usize = 4;

/// Blocks of a stream that arrive before their predecessors, likewise.
const EARLY: usize = 2;

/// In memory at least so many bytes wait for their predecessors: some blocks.
const LEAST_EARLY: usize = 4 << 20;

/// A stream's block may be this far ahead of what is written; memory grows with it.
const FARTHEST: u32 = 1 << 20;

/// So often what is stored is fetched again when it is not what the source has.
const MOST_ANEW: u8 = 2;

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// It is in its place, or waits there for the manifest.
    Kept,
    /// There is no room for it now.
    Refused,
    /// What was stored is given up: look anew for what is missing.
    Anew,
}

/// The place of one transfer's blocks.
pub(super) struct BlockSink {
    to: To,
    geometry: Geometry,
    /// Where nameless files are made when there is no directory of its own.
    temporary: PathBuf,
    disk: Disk,
    /// Blocks before the manifest is known.
    waiting: BTreeMap<u32, (Vec<u8>, Hash)>,
    waiting_bytes: usize,
    waiting_most: usize,
    resumed_bytes: u64,
    spoiled_bytes: u64,
    /// How often what was stored had to be given up.
    anew: u8,
    warnings: Vec<String>,
    /// Length of the object stream by its last block, which alone may be short.
    short_end: Option<u64>,
    /// Blocks of an earlier run, by its journal.
    left: Option<Told>,
    worker: Worker,
}

enum To {
    Files(Box<Store>),
    Stream {
        sink: Box<StreamSink<Box<dyn Write + Send>>>,
        /// What waits for the reader of the output.
        waiting: Option<Waiting>,
        /// What is gathered in memory until it is whole.
        gathered: Option<Gathering>,
        /// Of all blocks, for the root; `None` for a live stream, which has none.
        hashes: Option<RootHasher>,
        /// Bytes at the beginning of what is written that are no content.
        head: u32,
        lost: u32,
    },
    /// Blocks of earlier runs are verified.
    Preparing {
        work: FileWork,
        outcome: Receiver<Result<Box<Store>, ObjectError>>,
    },
    /// Everything is here, and its files get their names.
    Publishing {
        blocks: u32,
        bytes: u64,
        work: FileWork,
        outcome: Receiver<Result<Done, Error>>,
    },
    Finished {
        blocks: u32,
        bytes: u64,
    },
}

/// Files that nobody waits for get no more names.
impl Drop for BlockSink {
    fn drop(&mut self) {
        if let To::Publishing { work, .. } | To::Preparing { work, .. } = &self.to {
            work.cancel();
        }
    }
}

/// How it ends when all blocks are there.
#[derive(Debug)]
pub(crate) enum Ending {
    /// Everything has its name.
    Done(Done),
    /// The blocks are not those that the source has: look anew for what is missing.
    Anew,
    /// Files get their names. Ask again.
    UnderWay,
}

/// What was placed when everything is.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(super) entries: Counts,
    pub(super) bytes: u64,
    pub(super) warnings: Vec<String>,
    pub(super) withdrawn: Vec<String>,
}

impl BlockSink {
    /// A place for `transfer`, from block `first` on, that keeps about `memory` bytes of blocks too early to be placed. A live stream goes to one file even into a
    /// directory, for whoever joins late never sees its name.
    pub(super) fn open(
        destination: &Destination,
        transfer: TransferId,
        geometry: Geometry,
        live: Option<u32>,
        admission: Option<Admission>,
        memory: usize,
        (disk, temporary): (&Disk, &Path),
    ) -> Result<BlockSink, Error> {
        let mut left = None;
        let to = match (destination, live) {
            (Destination::Directory(out), None) => {
                let (store, told) = Store::begin(disk, out, transfer, geometry, admission)?;
                left = told;
                To::Files(Box::new(store))
            }
            (Destination::Directory(out), Some(first)) => {
                std::fs::create_dir_all(out).map_err(|e| ObjectError::io(out, "create", e))?;
                let path = out.join(format!("stream-{}", &transfer.to_string()[..8]));
                let file = replace(&path).map_err(|e| ObjectError::io(&path, "create", e))?;
                To::stream(Box::new(file), None, geometry, first, memory)
            }
            (Destination::Writer(output), Some(first)) => {
                let (out, waiting) = write_behind(output);
                To::stream(Box::new(out), Some(waiting), geometry, first, memory)
            }
            (Destination::Writer(output), None) => {
                let (out, waiting) = write_behind(output);
                let out = Box::new(OneFile::new(out, geometry.manifest_len));
                To::object(out, Some(waiting), None, geometry, memory)
            }
            (Destination::Memory(to), Some(first)) => {
                To::stream(Box::new(to.stream("stream")), None, geometry, first, memory)
            }
            (Destination::Memory(to), None) => To::memory(to, geometry, memory)?,
        };
        Ok(BlockSink {
            to,
            geometry,
            temporary: temporary.to_path_buf(),
            disk: disk.clone(),
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            waiting_most: memory / WAITING,
            resumed_bytes: 0,
            spoiled_bytes: 0,
            left,
            anew: 0,
            warnings: Vec::new(),
            short_end: None,
            worker: Worker::at_once(),
        })
    }

    /// A live stream may bring so much; how much anything else has, it says beforehand.
    pub(super) fn limited_to(mut self, quota: &Quota) -> BlockSink {
        if let To::Stream { sink, hashes: None, .. } = &mut self.to {
            sink.limit(quota);
        }
        self
    }

    pub(super) fn has(&self, block: u32) -> bool {
        let placed = match &self.to {
            To::Files(store) => store.has(block),
            To::Stream { sink, .. } => sink.has(block),
            To::Preparing { .. } => false,
            To::Publishing { .. } | To::Finished { .. } => true,
        };
        placed || (!self.waiting.is_empty() && self.waiting.contains_key(&block))
    }

    /// The source has withdrawn these files. The blocks that change by that.
    ///
    /// # Errors
    /// When the journal cannot be written, or the output is a stream.
    pub(super) fn withdraw(&mut self, files: &[Withdrawn]) -> Result<Vec<Affected>, Error> {
        match &mut self.to {
            To::Files(store) => {
                let entries: Vec<u32> = files.iter().map(|file| file.entry).collect();
                Ok(store.withdraw_files(&entries)?)
            }
            To::Stream { .. } if !files.is_empty() => Err(ObjectError::Withdrawn.into()),
            _ => Ok(Vec::new()),
        }
    }

    /// Another session brings the same content.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(super) fn restart(&mut self) -> Result<(), Error> {
        match &mut self.to {
            To::Files(store) => Ok(store.want_withdrawn()?),
            _ => Ok(()),
        }
    }

    /// How many files are known to be withdrawn, where that is of interest.
    pub(super) fn withdrawn(&self) -> Option<usize> {
        match &self.to {
            To::Files(store) => Some(store.withdrawn()),
            _ => None,
        }
    }

    /// The hash of a block's data with zeros in the place of withdrawn files; `None` when it has none of these.
    pub(super) fn blanked_hash(&self, block: u32, data: &[u8]) -> Option<Hash> {
        let To::Files(store) = &self.to else { return None };
        store.blanked(block, data).map(|(_, hash)| hash)
    }

    /// The blocks that lie in files, and could be wrong there.
    pub(super) fn stored(&self) -> impl Iterator<Item = u32> + '_ {
        let store = match &self.to {
            To::Files(store) => Some(store),
            _ => None,
        };
        let end = store.map_or(0, |store| store.end());
        (0..end).filter(move |block| store.is_some_and(|store| store.has(*block)))
    }

    /// Block `block` lies in a file and is not the source's when its hash is not: then it is missing from now on. Whether it was the
    /// source's.
    ///
    /// # Errors
    /// When that cannot be noted.
    pub(super) fn compare(&mut self, block: u32, is_right: impl Fn(Hash) -> bool) -> Result<bool, Error> {
        let To::Files(store) = &mut self.to else { return Ok(true) };
        let is_right = store.hash(block).is_some_and(is_right) || store.is_void(block);
        if !is_right {
            store.withdraw(block)?;
            let bytes = u64::from(self.geometry.block_len(block));
            self.spoiled_bytes += bytes;
            self.resumed_bytes = self.resumed_bytes.saturating_sub(bytes);
        }
        Ok(is_right)
    }

    pub(super) fn put(&mut self, block: u32, data: &[u8], hash: Hash) -> Result<Placed, Error> {
        match self.try_put(block, data, hash) {
            Err(Error::Object(error)) if error.is_contradiction() => {
                self.give_up(error).map(|()| Placed::Anew)
            }
            placed => placed,
        }
    }

    /// What is stored contradicts what the source says. Give up as much of it as may be wrong, so that it comes again;
    /// nothing stays of what has been wrong too often, so that the next receiver begins anew.
    ///
    /// # Errors
    /// `error` when that has been done before and did not help, or for standard output, which cannot take anything back.
    fn give_up(&mut self, error: ObjectError) -> Result<(), Error> {
        let To::Files(store) = &mut self.to else { return Err(error.into()) };
        self.waiting.clear();
        (self.waiting_bytes, self.short_end) = (0, None);
        if self.anew == MOST_ANEW {
            store.start_over()?;
            return Err(error.into());
        }
        self.anew += 1;
        let bytes = store.distrust()?;
        (self.resumed_bytes, self.spoiled_bytes) = (0, self.spoiled_bytes + bytes);
        self.warnings.push(format!(
            "what was stored here is not what the source has ({error}): {bytes} bytes are fetched again"
        ));
        Ok(())
    }

    /// What the user is to be told.
    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        if let To::Files(store) = &mut self.to {
            self.warnings.extend(store.take_warnings());
        }
        std::mem::take(&mut self.warnings)
    }

    fn try_put(&mut self, block: u32, data: &[u8], hash: Hash) -> Result<Placed, Error> {
        let capacity = self.geometry.capacity();
        if self.geometry.stream_len.is_none() && (data.len() as u64) < capacity {
            self.short_end = Some(u64::from(block) * capacity + data.len() as u64);
        }
        match &mut self.to {
            To::Preparing { .. } => Ok(Placed::Refused),
            To::Publishing { .. } | To::Finished { .. } => Ok(Placed::Kept),
            To::Stream { sink, .. } if block > sink.next().saturating_add(FARTHEST) => Ok(Placed::Refused),
            To::Stream { sink, hashes, .. } => match sink.put(block, data.to_vec()).map_err(explained)? {
                Sunk::Full(_) => Ok(Placed::Refused),
                Sunk::Written(_) | Sunk::Kept | Sunk::AlreadyHad => {
                    if let Some(hashes) = hashes {
                        hashes.push(block, hash);
                    }
                    Ok(Placed::Kept)
                }
            },
            To::Files(store) => match store.put(block, data, hash)? {
                Put::NeedsManifest if self.waiting_bytes + data.len() > self.waiting_most => {
                    Ok(Placed::Refused)
                }
                Put::NeedsManifest => {
                    self.waiting_bytes += data.len();
                    self.waiting.insert(block, (data.to_vec(), hash));
                    Ok(Placed::Kept)
                }
                Put::ManifestComplete => {
                    self.waiting_bytes = 0;
                    for (block, (data, hash)) in std::mem::take(&mut self.waiting) {
                        store.put(block, &data, hash)?;
                    }
                    if store.may_adopt() {
                        self.prepare(Store::adopt);
                    }
                    Ok(Placed::Kept)
                }
                Put::Stored | Put::AlreadyHad => Ok(Placed::Kept),
            },
        }
    }

    /// Whether what is written is not looked at again: a live stream.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.to, To::Stream { hashes: None, .. })
    }

    /// Whether there is room for this block now, as far as can be told.
    pub(super) fn takes(&self, block: u32) -> bool {
        match &self.to {
            To::Files(store) => store.manifest().is_some() || block < self.geometry.manifest_blocks(),
            To::Stream { sink, .. } => block == sink.next(),
            To::Preparing { .. } | To::Publishing { .. } | To::Finished { .. } => false,
        }
    }

    /// Room on the disk for symbols of incomplete blocks: beside the files to be, or where temporary files are.
    pub(super) fn room(&self) -> Result<Room, Error> {
        if let To::Files(store) = &self.to {
            let (file, path) = store.room()?;
            return Ok(Room { disk: self.disk.clone(), file, path });
        }
        let path = self.temporary.clone();
        let file = nameless(&path).map_err(|e| ObjectError::io(&path, "create a temporary file in it", e))?;
        Ok(Room { disk: self.disk.clone(), file, path })
    }

    /// The source has forgotten the blocks before this one (a live stream). How many are lost.
    pub(super) fn skip_before(&mut self, oldest: u32) -> Result<u32, Error> {
        match &mut self.to {
            To::Stream { sink, lost, .. } => {
                let gone = sink.skip_to(oldest)?;
                *lost += gone;
                Ok(gone)
            }
            _ => Ok(0),
        }
    }

    /// Everything is here, `blocks` blocks in all: check the root and give the files their names. Where that takes long it goes on
    /// beside the session, and this is called until it has ended.
    pub(super) fn finish(
        &mut self,
        blocks: u32,
        root: [u8; 32],
        durability: Durability,
    ) -> Result<Ending, Error> {
        if let To::Files(store) = &mut self.to {
            let end = self.short_end.unwrap_or(u64::from(blocks) * self.geometry.capacity());
            // What a journal told, or the last block, is checked with the root.
            let known =
                if store.geometry().stream_len.is_some() { Ok(()) } else { store.set_stream_len(end) };
            match known.and_then(|()| store.check(&Hash(root))) {
                Err(error) if error.is_contradiction() => return self.give_up(error).map(|()| Ending::Anew),
                checked => checked?,
            }
        }
        if let To::Publishing { blocks, bytes, outcome, .. } = &self.to {
            let outcome = match outcome.try_recv() {
                Err(TryRecvError::Empty) => return Ok(Ending::UnderWay),
                Err(TryRecvError::Disconnected) => panic!("the work on files says how it ended"),
                Ok(outcome) => outcome,
            };
            self.to = To::Finished { blocks: *blocks, bytes: *bytes };
            return outcome.map(Ending::Done);
        }
        let (held, verified) = (self.blocks(), self.verified_bytes());
        let stream_len = self.short_end.unwrap_or(u64::from(blocks) * self.geometry.capacity());
        let done = match std::mem::replace(&mut self.to, To::Finished { blocks: held, bytes: verified }) {
            To::Preparing { .. } | To::Publishing { .. } | To::Finished { .. } => Done::default(),
            To::Stream { sink, hashes, head, lost, gathered, .. } => {
                let bytes = sink.written().saturating_sub(head.into());
                sink.finish()?;
                if let Some(mut hashes) = hashes.filter(|_| lost == 0 && root != LIVE_ROOT) {
                    if self.geometry.stream_len.is_none() {
                        hashes.set_stream_len(stream_len);
                    }
                    if hashes.root() != Some(Hash(root)) {
                        return Err(Error::RootMismatch);
                    }
                }
                let mut files = 1;
                if let Some(gathered) = gathered {
                    files = gathered.split(self.geometry.manifest_len).map_err(ObjectError::from)?;
                }
                let warnings = match lost {
                    0 => Vec::new(),
                    lost => vec![format!("{lost} blocks of the stream came too late and are missing")],
                };
                Done { entries: Counts::of_files(files), bytes, warnings, ..Done::default() }
            }
            To::Files(store) => {
                let (tell, outcome) = channel();
                let work = FileWork::default();
                work.begin(Activity::Completing, 1);
                let ours = work.clone();
                self.to = To::Publishing { blocks: held, bytes: verified, work, outcome };
                self.worker.run(Box::new(move || {
                    // A session that has ended does not listen.
                    tell.send(published(*store, &Hash(root), durability, &ours)).ok();
                }));
                return self.finish(blocks, root, durability);
            }
        };
        Ok(Ending::Done(done))
    }

    /// The first name of its content, and how many others there are beside it.
    pub(super) fn title(&self) -> Option<String> {
        let To::Files(store) = &self.to else { return None };
        let mut names = store.manifest()?.tops();
        let first = names.next()?.to_string_lossy().into_owned();
        Some(match names.count() {
            0 => first,
            more => format!("{first} and {more} more"),
        })
    }

    /// Entries known to come, once the manifest is here.
    pub(super) fn entries(&self) -> Option<Counts> {
        match &self.to {
            To::Files(store) => store.manifest().map(Manifest::counts),
            _ => None,
        }
    }

    pub(super) fn blocks(&self) -> u32 {
        let placed = match &self.to {
            To::Files(store) => store.blocks_stored(),
            To::Stream { sink, .. } => sink.next(),
            To::Preparing { .. } => 0,
            To::Publishing { blocks, .. } | To::Finished { blocks, .. } => *blocks,
        };
        placed + self.waiting.len() as u32
    }

    /// Bytes of verified content. Blocks that wait for the manifest are among them.
    pub(super) fn verified_bytes(&self) -> u64 {
        self.stored_bytes() + self.waiting_bytes as u64
    }

    /// Bytes of verified content that lie in their places. Blocks that wait for the manifest are lost if the session ends before it
    /// comes.
    pub(super) fn stored_bytes(&self) -> u64 {
        match &self.to {
            To::Files(store) => store.verified_bytes(),
            To::Stream { sink, head, .. } => sink.written().saturating_sub((*head).into()),
            To::Preparing { .. } => 0,
            To::Publishing { bytes, .. } | To::Finished { bytes, .. } => *bytes,
        }
    }

    /// Bytes that are verified and that the reader of the output has not taken.
    pub(super) fn waiting_for_output(&self) -> u64 {
        match &self.to {
            To::Stream { waiting: Some(waiting), .. } => waiting.bytes() as u64,
            _ => 0,
        }
    }

    pub(super) fn spoiled_bytes(&self) -> u64 {
        self.spoiled_bytes
    }

    pub(super) fn resumed_bytes(&self) -> u64 {
        self.resumed_bytes
    }
}

impl BlockSink {
    /// Tell this as well.
    pub(super) fn warning(mut self, text: Option<String>) -> BlockSink {
        self.warnings.extend(text);
        self
    }

    /// Work on files that may take long is done by this; what an earlier run has left is verified from now on.
    ///
    /// # Errors
    /// When that cannot be read, or contradicts what is announced.
    pub(super) fn worked_by(mut self, worker: &Worker) -> Result<BlockSink, Error> {
        self.worker = worker.clone();
        if let Some(told) = self.left.take() {
            self.prepare(move |store, work| store.go_on(told, work));
            self.poll()?;
        }
        Ok(self)
    }

    /// Have the store do this beside the session.
    fn prepare(
        &mut self,
        how: impl FnOnce(&mut Store, &FileWork) -> Result<(), ObjectError> + Send + 'static,
    ) {
        let work = FileWork::default();
        let (tell, outcome) = channel();
        let ours = work.clone();
        let To::Files(mut store) = std::mem::replace(&mut self.to, To::Preparing { work, outcome }) else {
            unreachable!("only files are prepared for")
        };
        self.worker.run(Box::new(move || {
            let done = how(&mut store, &ours);
            // A session that has ended does not listen.
            tell.send(done.map(|()| store)).ok();
        }));
    }

    /// Whether what earlier runs have left is verified just now, and what is missing is known.
    ///
    /// # Errors
    /// Why that failed.
    pub(super) fn poll(&mut self) -> Result<bool, Error> {
        let To::Preparing { outcome, .. } = &self.to else { return Ok(false) };
        let store = match outcome.try_recv() {
            Err(TryRecvError::Empty) => return Ok(false),
            Err(TryRecvError::Disconnected) => panic!("the work on files says how it ended"),
            Ok(store) => store?,
        };
        (self.resumed_bytes, self.spoiled_bytes) = (store.resumed_bytes(), store.spoiled_bytes());
        self.to = To::Files(store);
        Ok(true)
    }

    /// Whether it is not known yet what is missing.
    pub(super) fn is_preparing(&self) -> bool {
        matches!(self.to, To::Preparing { .. })
    }

    /// Whether the manifest decides what is missing, and has not come.
    pub(super) fn wants_manifest(&self) -> bool {
        matches!(&self.to, To::Files(store) if store.may_adopt())
    }

    /// The work on files that is under way, and how much of it is done, in percent.
    pub(super) fn activity(&self) -> Option<(Activity, u8)> {
        match &self.to {
            To::Publishing { work, .. } | To::Preparing { work, .. } => Some(work.progress()),
            _ if self.wants_manifest() => Some((Activity::Verifying, 0)),
            _ => None,
        }
    }

    /// Give files this as well when they get their names.
    pub(super) fn preserving(mut self, preserve: &Preserve, owners_by: OwnersBy) -> BlockSink {
        if let To::Files(store) = &mut self.to {
            store.preserve(preserve.clone(), owners_by);
        }
        self
    }
}

/// Let go of what is unfinished in the output directory beyond what is to be kept; what was, or why it could not be, in words.
pub(crate) fn tidied(out: &Path, keep: KeepUnfinished, goes_on: Option<TransferId>) -> Option<String> {
    match let_go_beyond(out, keep, goes_on, SystemTime::now()) {
        Ok(LetGo { transfers: 0, .. }) => None,
        Ok(LetGo { transfers, bytes }) => Some(format!(
            "{}: {transfers} unfinished of earlier sessions let go ({bytes} bytes), beyond what is kept",
            out.display()
        )),
        Err(error) => Some(format!("what earlier sessions have left unfinished was not let go: {error}")),
    }
}

/// Give the files their names.
fn published(store: Store, root: &Hash, durability: Durability, work: &FileWork) -> Result<Done, Error> {
    let finished = store.finish_as(root, durability, work)?;
    let mut warnings = finished.warnings;
    warnings.extend(
        finished.skipped.iter().map(|link| {
            format!("{} -> {} leads out of the output directory; not made", link.path, link.target)
        }),
    );
    Ok(Done { entries: finished.entries, bytes: finished.bytes, warnings, withdrawn: finished.withdrawn })
}

/// A live stream has no root: nobody need have all of it.
pub(crate) const LIVE_ROOT: [u8; 32] = [0; 32];

impl To {
    fn stream(
        to: Box<dyn Write + Send>,
        waiting: Option<Waiting>,
        geometry: Geometry,
        first: u32,
        memory: usize,
    ) -> To {
        let skip = if first == 0 { u64::from(geometry.manifest_len) } else { 0 };
        let sink = Box::new(StreamSink::new(to, first, skip, memory / EARLY));
        To::Stream { sink, waiting, gathered: None, hashes: None, head: 0, lost: 0 }
    }

    /// Files in memory.
    fn memory(to: &Memory, geometry: Geometry, memory: usize) -> Result<To, Error> {
        let (limit, manifest) = (to.limit(), u64::from(geometry.manifest_len));
        if let Some(bytes) = geometry.stream_len.filter(|bytes| *bytes > limit.saturating_add(manifest)) {
            return Err(Error::OverMemory { bytes: bytes - manifest, limit });
        }
        let gathering = to.gather(manifest);
        let early = memory.min((limit as usize).max(EARLY * LEAST_EARLY));
        Ok(To::object(Box::new(gathering.clone()), None, Some(gathering), geometry, early))
    }

    /// A whole object, its manifest first.
    fn object(
        to: Box<dyn Write + Send>,
        waiting: Option<Waiting>,
        gathered: Option<Gathering>,
        geometry: Geometry,
        memory: usize,
    ) -> To {
        let sink = Box::new(StreamSink::new(to, 0, 0, memory / EARLY));
        let (hashes, head) = (Some(RootHasher::new(geometry)), geometry.manifest_len);
        To::Stream { sink, waiting, gathered, hashes, head, lost: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{ObjectStream, seal_block, verify_block};
    use std::path::Path;

    /// A place with all blocks of a file, and what it was made for.
    fn with_all(dir: &Path) -> (BlockSink, TransferId, Geometry, Vec<Vec<u8>>) {
        std::fs::write(dir.join("file"), [7; 3_000]).expect("room");
        let mut object = ObjectStream::open(&[dir.join("file")], 64, 8).expect("readable");
        let (transfer, geometry) = (object.transfer(), object.geometry());
        let out = Destination::Directory(dir.join("out"));
        let blocks = (0..geometry.blocks().expect("it has a length")).map(|block| {
            let mut bytes = Vec::new();
            object.read_block(block, &mut bytes).expect("readable");
            seal_block(&mut bytes, 64);
            bytes
        });
        let blocks: Vec<_> = blocks.collect();
        let mut sink =
            BlockSink::open(&out, transfer, geometry, None, None, 1 << 20, (&Disk::default(), dir))
                .expect("opened");
        fill(&mut sink, &blocks);
        (sink, transfer, geometry, blocks)
    }

    fn fill(sink: &mut BlockSink, blocks: &[Vec<u8>]) {
        for (index, bytes) in (0..).zip(blocks) {
            let (data, hash) = verify_block(bytes).expect("sealed");
            assert_eq!(sink.put(index, data, hash).expect("room"), Placed::Kept);
        }
    }

    #[test]
    fn what_never_becomes_right_is_fetched_twice_more_and_then_an_error_that_leaves_nothing_behind() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut sink, transfer, geometry, blocks) = with_all(dir.path());
        for _ in 0..2 {
            let ending = sink.finish(blocks.len() as u32, [1; 32], Durability::Fast).expect("it tries again");
            assert!(matches!(ending, Ending::Anew));
            assert_eq!((sink.blocks(), sink.verified_bytes()), (0, 0));
            assert!(sink.take_warnings()[0].contains("fetched again"));
            fill(&mut sink, &blocks);
        }
        let error = sink.finish(blocks.len() as u32, [1; 32], Durability::Fast).expect_err("that is enough");
        assert!(matches!(error, Error::Object(ObjectError::Root { .. })), "{error}");
        drop(sink);
        let store = Store::open(&dir.path().join("out"), transfer, geometry, None).expect("opened again");
        assert_eq!(store.resumed_blocks(), 0);
    }

    #[test]
    fn a_live_stream_makes_the_directory_that_it_goes_to() {
        let geometry = Geometry { stream_len: None, manifest_len: 0, symbol_size: 16, symbols_per_block: 4 };
        let dir = tempfile::tempdir().expect("a temporary directory");
        let out = Destination::Directory(dir.path().join("not/there/yet"));
        let id = TransferId([7; 16]);
        let mut sink =
            BlockSink::open(&out, id, geometry, Some(0), None, 1 << 20, (&Disk::default(), dir.path()))
                .expect("it is made");
        assert_eq!(sink.put(0, &[1; 28], Hash([2; 32])).expect("room"), Placed::Kept);
        assert!(dir.path().join("not/there/yet/stream-07070707").is_file());
    }

    #[test]
    fn what_is_kept_of_a_live_stream_does_not_grow_with_what_was_written() {
        let geometry = Geometry { stream_len: None, manifest_len: 0, symbol_size: 16, symbols_per_block: 4 };
        let dir = tempfile::tempdir().expect("a temporary directory");
        let out = Destination::Directory(dir.path().to_owned());
        let mut sink = BlockSink::open(
            &out,
            TransferId([7; 16]),
            geometry,
            Some(0),
            None,
            1 << 20,
            (&Disk::default(), dir.path()),
        )
        .expect("opened");
        let (data, hash) = ([1; 28], Hash([2; 32]));
        let mut write = |blocks: std::ops::Range<u32>| {
            let all = || {
                blocks.for_each(|block| {
                    assert_eq!(sink.put(block, &data, hash).expect("room"), Placed::Kept);
                });
            };
            allocation_counter::measure(all).bytes_current
        };
        write(0..100);
        assert_eq!(write(100..20_000), 0, "bytes more than after a hundred blocks");
    }
}
