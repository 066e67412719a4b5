//! The outputs of a block sink, and the jobs that use them.

use super::super::storage::Storage;
use super::{EARLY, Geometry, MIN_EARLY};
use crate::error::{ConfigError, Error};
use crate::object::memory::{Gathering, Memory};
use crate::object::{AnyStore, FileWork, Finished, ObjectError, RootHasher, StreamSink};
use crate::worker::{Load, Worker};
use faircast_host::write_behind::Waiting;
use std::io::Write;
use std::sync::mpsc::{Receiver, channel};

#[expect(clippy::large_enum_variant, reason = "there is one per session")]
pub(super) enum ContentSink {
    Files(Storage),
    Stream {
        sink: Box<StreamSink<Box<dyn Write + Send>>>,
        /// Bytes that another thread or the reader of the output has not taken yet.
        waiting: Option<Unwritten>,
        /// Content that is collected in memory until it is complete.
        gathered: Option<Gathering>,
        /// The hashes of all blocks, for the root hash; `None` for a live stream, which has no root hash.
        hashes: Option<RootHasher>,
        /// Number of bytes at the beginning of the output that are not content.
        head: u32,
        lost: u32,
    },
    /// A job is opening the store.
    Opening {
        outcome: Receiver<Result<Box<AnyStore>, ObjectError>>,
    },
    /// A job uses the whole store: it takes over content of other transfers, or discards blocks.
    Preparing {
        work: FileWork,
        outcome: Receiver<Result<Box<AnyStore>, ObjectError>>,
        /// Which blocks may be stored when the job ends.
        may_have: MayHave,
    },
    /// All blocks are stored, and the files are being renamed.
    Publishing {
        blocks: u32,
        bytes: u64,
        work: FileWork,
        outcome: Receiver<Published>,
    },
    Finished {
        blocks: u32,
        bytes: u64,
    },
}

/// The result of giving files their names; if the blocks contradict the source, with the store, for another try. Also the result of
/// the comparison of a dry run, which has no store.
pub(super) type Published = Result<Finished, (ObjectError, Option<Box<AnyStore>>)>;

/// The result of storing a block.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum StoreResult {
    /// The block is stored, is being stored, or waits for the manifest.
    Kept,
    /// There is no room for the block now; the block is returned.
    Refused(Vec<u8>),
    /// Stored blocks were discarded: search for the missing blocks again.
    Anew,
}

/// The result of `BlockSink::poll`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Polled {
    Nothing,
    /// Blocks were stored.
    Stored,
    /// The blocks of earlier runs were verified: search for the missing blocks again.
    Prepared,
    /// Stored blocks were discarded: search for the missing blocks again.
    GivenUp,
}

/// The blocks that may be stored when a job ends that uses the whole store.
pub(super) enum MayHave {
    /// Any block: the job discards blocks that may be wrong.
    Any,
    /// These blocks, in order: the other blocks are probably missing.
    Known(Vec<u32>),
}

/// The bytes that an output has accepted but not written.
pub(super) enum Unwritten {
    /// Bytes that wait for the reader of the output.
    Unread(Waiting),
    /// Bytes that wait for the disk.
    InFile(Waiting),
}

impl Unwritten {
    pub(super) fn bytes(&self) -> u64 {
        let (Unwritten::Unread(waiting) | Unwritten::InFile(waiting)) = self;
        waiting.bytes() as u64
    }
}

impl ContentSink {
    /// Returns the sink of a store that a job opens with `open`.
    pub(super) fn opening(
        worker: &Worker,
        open: impl FnOnce() -> Result<Box<AnyStore>, ObjectError> + Send + 'static,
    ) -> ContentSink {
        let (sender, outcome) = channel();
        // Sending fails if the session has ended.
        worker.run(Load::Opening, Box::new(move || _ = sender.send(open())));
        ContentSink::Opening { outcome }
    }

    pub(super) fn stream(
        to: Box<dyn Write + Send>,
        waiting: Option<Unwritten>,
        geometry: Geometry,
        first: u32,
        memory: usize,
    ) -> ContentSink {
        let skip = if first == 0 { u64::from(geometry.manifest_len) } else { 0 };
        let sink = Box::new(StreamSink::new(to, first, skip, memory / EARLY));
        ContentSink::Stream { sink, waiting, gathered: None, hashes: None, head: 0, lost: 0 }
    }

    /// Returns a sink that stores files in memory.
    pub(super) fn memory(to: &Memory, geometry: Geometry, memory: usize) -> Result<ContentSink, Error> {
        let (limit, manifest) = (to.limit(), u64::from(geometry.manifest_len));
        if let Some(bytes) = geometry.stream_len.filter(|bytes| *bytes > limit.saturating_add(manifest)) {
            return Err(Error::Config(ConfigError::OverMemory { bytes: bytes - manifest, limit }));
        }
        let gathering = to.gather(manifest);
        let early = memory.min((limit as usize).max(EARLY * MIN_EARLY));
        Ok(ContentSink::object(Box::new(gathering.clone()), None, Some(gathering), geometry, early))
    }

    /// Returns a sink for a whole object, whose manifest comes first.
    pub(super) fn object(
        to: Box<dyn Write + Send>,
        waiting: Option<Unwritten>,
        gathered: Option<Gathering>,
        geometry: Geometry,
        memory: usize,
    ) -> ContentSink {
        let sink = Box::new(StreamSink::new(to, 0, 0, memory / EARLY));
        let (hashes, head) = (Some(RootHasher::new(geometry)), geometry.manifest_len);
        ContentSink::Stream { sink, waiting, gathered, hashes, head, lost: 0 }
    }
}
