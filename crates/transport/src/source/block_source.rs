//! The blocks of one content, from files, a pipe read to its end, or a live pipe.

use crate::announced::LIVE_ROOT;
use crate::ends::Input;
use crate::error::Error;
use crate::object::{
    Affected, Counts, Entry, Geometry, Hash, Kind, Layout, LeftOut, Manifest, ObjectError, ObjectStream,
    RootHasher, SealedBlocks, TransferId, Withdrawal, seal_block,
};
use faircast_core::time::{Span, Time};
use faircast_host::pipe::Pipe;
use faircast_host::read_ahead::{Age, Reader};
use faircast_wire::Withdrawn;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Whether there is time for work that is not urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leisure {
    Yes,
    No,
}

/// Maximum number of blocks of a session. The highest block number marks a packet without content (`docs/wire.md`), and the
/// number of all blocks must fit the announcement. A block of a live stream is complete when it holds 50 ms of input, or when it
/// is full. The block numbers thus last for 6.8 years of a slow stream, or for 140 days of a stream of 1 Gbit/s.
pub(crate) const MAX_BLOCKS: u32 = u32::MAX - 1;

/// Number of newest blocks of a live pipe that are stored regardless of their age.
const KEPT: usize = 4;

/// The blocks of a session's content.
pub(crate) enum BlockSource {
    /// Blocks of an object stream: each can be read at any time once it is available.
    ObjectStream(Box<ObjectBlocks>),
    /// Blocks of a live pipe: made of input as it arrives, and stored for a limited time.
    Live(Box<Live>),
}

pub(crate) struct ObjectBlocks {
    from: StreamReader,
    /// Geometry known so far: the length of a pipe is unknown until its end.
    geometry: Geometry,
    transfer: TransferId,
    entries: Counts,
    /// Warnings about inputs that are not sent, or sent only in part.
    warnings: Vec<String>,
    unsent: Vec<LeftOut>,
    ready: u32,
    hashes: RootHasher,
    root: Option<Hash>,
    /// The blocks before this number have been hashed.
    hashed_to: u32,
    scratch: Vec<u8>,
    layout: Arc<Layout>,
    /// Withdrawn files, in the order of their withdrawal.
    withdrawn: Vec<Withdrawn>,
    /// Bytes of withdrawn files.
    withdrawn_bytes: u64,
    /// Blocks that contain bytes of withdrawn files, or lie in holes, and that the caller has not taken yet.
    affected: BTreeMap<u32, Affected>,
}

/// Reader of an object stream.
enum StreamReader {
    /// Files, read ahead.
    Files(Reader),
    /// A pipe: input that has arrived can be read without waiting.
    Pipe(Box<SealedBlocks>, Pipe),
}

pub(crate) struct Live {
    pipe: Pipe,
    geometry: Geometry,
    transfer: TransferId,
    history: Span,
    latency: Span,
    /// Blocks from number `oldest` on.
    stored: VecDeque<LiveBlock>,
    oldest: u32,
    whole: bool,
    bytes: u64,
    symbols: u64,
}

/// A block of a live pipe.
struct LiveBlock {
    sealed: Vec<u8>,
    symbols: u16,
    hash: Hash,
    made: Time,
}

/// Maximum number of unsent inputs that are named. All others are only counted.
const NAMED: usize = 10;

/// Returns warnings about inputs that are not sent, or sent only in part.
fn warnings(object: &ObjectStream) -> Vec<String> {
    let skipped = object.skipped().iter().map(|skipped| {
        format!("{} is neither a file, a directory nor a link; not sent", skipped.path.display())
    });
    let unsent = object.left_out().iter().map(|one| format!("{}: {}; not sent", one.path, one.reason));
    let more = object.left_out().len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{more} more files could not be read and are not sent"));
    skipped.chain(unsent.take(NAMED)).chain(more).chain(object.notes().iter().cloned()).collect()
}

impl BlockSource {
    /// Returns a block source that sends files. A file that changes or cannot be read during the session is withdrawn.
    pub(crate) fn files(mut object: ObjectStream) -> BlockSource {
        object.allow_withdrawals();
        BlockSource::object(object, None)
    }

    /// Sends files; no file may be left out.
    pub(crate) fn all_files(object: ObjectStream) -> BlockSource {
        BlockSource::object(object, None)
    }

    /// Returns a block source that sends an input as one file. The input is stored in an unnamed temporary file in `dir`.
    pub(crate) fn pipe(
        (name, input): (&str, &Input),
        dir: &Path,
        symbol_size: u16,
        symbols: u16,
        unix_nanos: u64,
    ) -> Result<BlockSource, Error> {
        let (pipe, reader) = Pipe::of(input);
        let object =
            ObjectStream::from_reader(Box::new(reader), name, unix_nanos as i64, dir, symbol_size, symbols)?;
        Ok(BlockSource::object(object, Some(pipe)))
    }

    /// Sends an input live, with a history and a latency.
    pub(crate) fn live(
        input: &Input,
        symbol_size: u16,
        symbols: u16,
        unix_nanos: u64,
        times: (Span, Span),
        now: Time,
    ) -> Result<BlockSource, Error> {
        BlockSource::live_pipe(Pipe::of(input).0, symbol_size, symbols, unix_nanos, times, now)
    }

    /// Sends the input of `pipe` live.
    pub(crate) fn live_pipe(
        pipe: Pipe,
        symbol_size: u16,
        symbols: u16,
        unix_nanos: u64,
        (history, latency): (Span, Span),
        now: Time,
    ) -> Result<BlockSource, Error> {
        let entry = Entry::new("stream", Kind::Stream, 0o644, unix_nanos as i64);
        let mut manifest = Manifest::new(vec![entry]).map_err(ObjectError::from)?.encode();
        let manifest_len = manifest.len() as u32;
        let geometry = Geometry { stream_len: None, manifest_len, symbol_size, symbols_per_block: symbols };
        geometry.check().map_err(ObjectError::from)?;
        let transfer = TransferId::of(&manifest, &geometry);
        let (k, hash) = seal_block(&mut manifest, symbol_size);
        let stored = VecDeque::from([LiveBlock { sealed: manifest, symbols: k, hash, made: now }]);
        let symbols = u64::from(k);
        Ok(BlockSource::Live(Box::new(Live {
            pipe,
            geometry,
            transfer,
            history,
            latency,
            stored,
            oldest: 0,
            whole: false,
            bytes: 0,
            symbols,
        })))
    }

    fn object(object: ObjectStream, pipe: Option<Pipe>) -> BlockSource {
        let geometry = object.geometry();
        let ready = geometry.blocks().unwrap_or(0);
        let mut hashes = RootHasher::new(geometry);
        let void: Vec<u32> = object.layout().void().iter().cloned().flatten().collect();
        for block in &void {
            let hash = hashes.void_hash(*block);
            hashes.push(*block, hash);
        }
        BlockSource::ObjectStream(Box::new(ObjectBlocks {
            geometry,
            transfer: object.transfer(),
            entries: object.manifest().counts(),
            warnings: warnings(&object),
            unsent: object.left_out().to_vec(),
            ready,
            hashes,
            root: None,
            hashed_to: 0,
            scratch: Vec::new(),
            layout: Arc::clone(object.layout()),
            withdrawn: Vec::new(),
            withdrawn_bytes: 0,
            affected: void.into_iter().map(|block| (block, Affected::Void(block))).collect(),
            from: match pipe {
                Some(pipe) => StreamReader::Pipe(Box::new(SealedBlocks::new(object)), pipe),
                None => StreamReader::Files(Reader::new(SealedBlocks::new(object), ready)),
            },
        }))
    }

    pub(crate) fn geometry(&self) -> Geometry {
        match self {
            // Keeps the geometry as announced: receivers learn the length of a pipe from its last block.
            BlockSource::ObjectStream(object) if object.is_pipe() => {
                Geometry { stream_len: None, ..object.geometry }
            }
            BlockSource::ObjectStream(object) => object.geometry,
            BlockSource::Live(live) => live.geometry,
        }
    }

    pub(crate) fn transfer(&self) -> TransferId {
        match self {
            BlockSource::ObjectStream(object) => object.transfer,
            BlockSource::Live(live) => live.transfer,
        }
    }

    /// Returns warnings about unsent inputs.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        match self {
            BlockSource::ObjectStream(object) => std::mem::take(&mut object.warnings),
            BlockSource::Live(_) => Vec::new(),
        }
    }

    /// Returns the inputs that should have been sent but cannot be read.
    pub(crate) fn unsent(&self) -> &[LeftOut] {
        match self {
            BlockSource::ObjectStream(object) => &object.unsent,
            BlockSource::Live(_) => &[],
        }
    }

    /// Returns the files withdrawn during the session, in the order of their withdrawal.
    pub(crate) fn withdrawn(&self) -> &[Withdrawn] {
        match self {
            BlockSource::ObjectStream(object) => &object.withdrawn,
            BlockSource::Live(_) => &[],
        }
    }

    /// Returns the positions of files and holes; `None` for a live pipe.
    pub(crate) fn layout(&self) -> Option<&Layout> {
        match self {
            BlockSource::ObjectStream(object) => Some(&object.layout),
            BlockSource::Live(_) => None,
        }
    }

    /// Returns the blocks affected by withdrawals since the last call, and at the first call all blocks in holes.
    pub(crate) fn take_affected(&mut self) -> Vec<Affected> {
        match self {
            BlockSource::ObjectStream(object) if !object.affected.is_empty() => {
                std::mem::take(&mut object.affected).into_values().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether withdrawals have affected blocks since the last call of `take_affected`.
    pub(crate) fn has_affected(&self) -> bool {
        matches!(self, BlockSource::ObjectStream(object) if !object.affected.is_empty())
    }

    pub(crate) fn entries(&self) -> Counts {
        match self {
            BlockSource::ObjectStream(object) => object.entries,
            BlockSource::Live(_) => Counts::of_files(1),
        }
    }

    /// Returns the number of the first block that cannot be read yet.
    pub(crate) fn ready(&self) -> u32 {
        match self {
            BlockSource::ObjectStream(object) => object.ready,
            BlockSource::Live(live) => live.oldest + live.stored.len() as u32,
        }
    }

    /// Returns the number of the oldest stored block.
    pub(crate) fn oldest(&self) -> u32 {
        match self {
            BlockSource::ObjectStream(_) => 0,
            BlockSource::Live(live) => live.oldest,
        }
    }

    /// Returns the number of blocks, once known.
    pub(crate) fn blocks(&self) -> Option<u32> {
        self.is_whole().then(|| self.ready())
    }

    /// Whether all blocks are available.
    fn is_whole(&self) -> bool {
        match self {
            BlockSource::ObjectStream(object) => object.is_whole(),
            BlockSource::Live(live) => live.whole,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self, BlockSource::Live(_))
    }

    /// Returns the time in which missing symbols of a live block must be repaired. The rest of the latency passes while the block
    /// is filled and sent.
    pub(crate) fn repair_time(&self) -> Option<Span> {
        match self {
            BlockSource::ObjectStream(_) => None,
            BlockSource::Live(live) => Some(live.latency / 2),
        }
    }

    /// Returns the number of source symbols of a block.
    pub(crate) fn symbols(&self, block: u32) -> u16 {
        match self {
            BlockSource::ObjectStream(object) => object.geometry.symbols(block),
            BlockSource::Live(live) => {
                live.get(block).map_or(0, |stored| stored.symbols) // zero for a discarded block
            }
        }
    }

    /// Returns the number of source symbols of all blocks.
    pub(crate) fn content_symbols(&self) -> u64 {
        match self {
            BlockSource::ObjectStream(object) => match object.ready.checked_sub(1) {
                Some(last) => {
                    u64::from(last) * u64::from(object.geometry.symbols_per_block)
                        + u64::from(self.symbols(last))
                }
                None => 0,
            },
            BlockSource::Live(live) => live.symbols,
        }
    }

    /// Returns the number of bytes of content so far, without the manifest and withdrawn files.
    pub(crate) fn content_bytes(&self) -> u64 {
        match self {
            BlockSource::ObjectStream(object) => {
                let so_far = u64::from(object.ready) * object.geometry.capacity();
                let manifest = u64::from(object.geometry.manifest_len);
                let content = object.geometry.stream_len.unwrap_or(so_far).saturating_sub(manifest);
                content.saturating_sub(object.withdrawn_bytes)
            }
            BlockSource::Live(live) => live.bytes,
        }
    }

    /// Prepares for reads of blocks out of sequence. Before each such read, [`BlockSource::order`] announces the block.
    pub(crate) fn read_on_order(&mut self) {
        if let BlockSource::ObjectStream(object) = self
            && let StreamReader::Files(reader) = &mut object.from
        {
            reader.read_on_order();
        }
    }

    /// Announces that block `block` will be read soon.
    pub(crate) fn order(&mut self, block: u32) {
        if let BlockSource::ObjectStream(object) = self
            && let StreamReader::Files(reader) = &mut object.from
        {
            reader.order(block);
        }
    }

    /// Returns the hash of a block's data, once known.
    pub(crate) fn hash(&self, block: u32) -> Option<Hash> {
        match self {
            BlockSource::ObjectStream(object) => object.hashes.get(block),
            BlockSource::Live(live) => live.get(block).map(|stored| stored.hash),
        }
    }

    /// Returns the root hash, once all blocks are hashed.
    pub(crate) fn root(&self) -> Option<Hash> {
        match self {
            BlockSource::ObjectStream(object) => object.root,
            BlockSource::Live(_) => self.is_whole().then_some(Hash(LIVE_ROOT)),
        }
    }

    /// Whether [`BlockSource::poll`] has work to do if there is leisure.
    pub(crate) fn has_work(&self) -> bool {
        match self {
            BlockSource::ObjectStream(object) => object.is_whole() && object.root.is_none(),
            BlockSource::Live(_) => false,
        }
    }

    /// Reads the input of a pipe. If there is leisure, also hashes one block that has not been read yet.
    pub(crate) fn poll(&mut self, now: Time, leisure: Leisure) -> Result<(), ObjectError> {
        match self {
            BlockSource::ObjectStream(object) => object.poll(leisure),
            BlockSource::Live(live) => live.poll(now),
        }
    }

    /// Reads block `block`, sealed, into `bytes`. Returns its number of source symbols.
    pub(crate) fn read(&mut self, block: u32, bytes: &mut Vec<u8>) -> Result<u16, ObjectError> {
        match self {
            BlockSource::ObjectStream(object) => object.read(block, bytes),
            BlockSource::Live(live) => {
                let blocks = live.oldest + live.stored.len() as u32;
                let stored = live.get(block).ok_or(ObjectError::NoSuchBlock { index: block, blocks })?;
                bytes.clear();
                bytes.extend_from_slice(&stored.sealed);
                Ok(stored.symbols)
            }
        }
    }
}

impl ObjectBlocks {
    fn poll(&mut self, leisure: Leisure) -> Result<(), ObjectError> {
        self.take_from_pipe()?;
        if !self.is_whole() || self.root.is_some() {
            return Ok(());
        }
        while self.hashed_to < self.ready && self.hashes.get(self.hashed_to).is_some() {
            self.hashed_to += 1;
        }
        if self.hashed_to == self.ready {
            self.root = self.hashes.root();
        } else if leisure == Leisure::Yes {
            let mut scratch = std::mem::take(&mut self.scratch);
            self.read(self.hashed_to, &mut scratch)?;
            self.scratch = scratch;
        }
        Ok(())
    }

    /// Reads the next block of a pipe once all input for this block has arrived, so that the session's thread does not wait.
    fn take_from_pipe(&mut self) -> Result<(), ObjectError> {
        if self.is_whole() {
            return Ok(());
        }
        let StreamReader::Pipe(object, pipe) = &mut self.from else { return Ok(()) };
        let room = self.geometry.capacity();
        let manifest = if self.ready == 0 { u64::from(self.geometry.manifest_len).min(room) } else { 0 };
        if !pipe.has(room - manifest) {
            return Ok(());
        }
        if self.ready >= MAX_BLOCKS {
            return Err(ObjectError::StreamTooLong { blocks: MAX_BLOCKS });
        }
        if let Some((_, hash)) = object.read(self.ready, &mut self.scratch)? {
            self.hashes.push(self.ready, hash);
            self.ready += 1;
        }
        self.geometry = object.geometry();
        if let (Some(blocks), Some(len)) = (self.geometry.blocks(), self.geometry.stream_len) {
            self.ready = blocks;
            self.hashes.set_stream_len(len);
        }
        Ok(())
    }

    fn read(&mut self, block: u32, bytes: &mut Vec<u8>) -> Result<u16, ObjectError> {
        loop {
            let (symbols, hash, age) = match &mut self.from {
                StreamReader::Files(reader) => reader.take(block, bytes)?,
                StreamReader::Pipe(object, _) => {
                    let missing = ObjectError::NoSuchBlock { index: block, blocks: self.ready };
                    let (symbols, hash) = object.read(block, bytes)?.ok_or(missing)?;
                    (symbols, hash, Age::Current)
                }
            };
            self.follow_withdrawals();
            // A block that was read ahead may contain bytes of a file that was withdrawn afterwards.
            if age == Age::Current || !self.hashes.is_affected(&self.layout, block) {
                self.hashes.push(block, hash);
                return Ok(symbols);
            }
        }
    }

    /// Processes new withdrawals of files, and adds warnings that name the files.
    fn follow_withdrawals(&mut self) {
        let StreamReader::Files(reader) = &mut self.from else { return };
        for Withdrawal { entry, path, error } in reader.take_withdrawals() {
            self.hashes.withdraw(entry);
            let affected = self.hashes.affected(&self.layout, entry);
            let first_block = affected.first().map_or(0, |first| first.block());
            let last_block = affected.last().map_or(0, |last| last.block());
            self.withdrawn_bytes += self.layout.range_of(entry).map_or(0, |bytes| bytes.end - bytes.start);
            self.withdrawn.push(Withdrawn { entry, first_block, last_block });
            for affected in affected {
                match affected {
                    Affected::Void(block) => {
                        let hash = self.hashes.void_hash(block);
                        self.hashes.push(block, hash);
                    }
                    Affected::Mixed(block) => {
                        self.hashes.forget(block);
                        self.hashed_to = self.hashed_to.min(block);
                    }
                }
                self.affected.insert(affected.block(), affected);
            }
            self.root = None;
            if self.withdrawn.len() <= NAMED {
                self.warnings.push(format!("{error}. The file is withdrawn, and all other files are sent"));
            } else if self.withdrawn.len() == NAMED + 1 {
                self.warnings.push("more files are withdrawn: the report names them".to_owned());
            }
            self.unsent.push(LeftOut::new(&path, &error));
        }
    }

    fn is_pipe(&self) -> bool {
        matches!(self.from, StreamReader::Pipe(..))
    }

    /// Whether the number of blocks is known.
    fn is_whole(&self) -> bool {
        self.geometry.stream_len.is_some()
    }
}

impl Live {
    fn get(&self, block: u32) -> Option<&LiveBlock> {
        block.checked_sub(self.oldest).and_then(|at| self.stored.get(at as usize))
    }

    fn poll(&mut self, now: Time) -> Result<(), ObjectError> {
        let capacity = self.geometry.capacity() as usize;
        let block_time = Duration::from_nanos(self.latency.as_nanos() / 4);
        while let Some(mut data) = self.pipe.take(capacity, block_time)? {
            if self.oldest + self.stored.len() as u32 >= MAX_BLOCKS {
                return Err(ObjectError::StreamTooLong { blocks: MAX_BLOCKS });
            }
            self.bytes += data.len() as u64;
            let (symbols, hash) = seal_block(&mut data, self.geometry.symbol_size);
            self.symbols += u64::from(symbols);
            self.stored.push_back(LiveBlock { sealed: data, symbols, hash, made: now });
        }
        self.whole = self.pipe.is_drained();
        // The newest blocks are stored regardless of their age, because a receiver may still be reading them. The block with the
        // manifest is discarded like any other block: late joiners do not need it.
        while self.stored.len() > KEPT && now.since(self.stored[0].made) > self.history {
            self.stored.pop_front();
            self.oldest += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_host::pipe::Feeder;

    #[test]
    fn live_stream_fails_when_block_numbers_are_exhausted() {
        let (feeder, pipe) = Feeder::pipe();
        let source =
            BlockSource::live_pipe(pipe, 64, 2, 1, (Span::from_secs(5), Span::from_millis(200)), Time::ZERO);
        let BlockSource::Live(mut live) = source.expect("a stream") else { panic!("it is live") };
        let capacity = live.geometry.capacity() as usize;
        // Simulates years of streaming: only two block numbers are left.
        live.oldest = MAX_BLOCKS - 3;
        for number in [MAX_BLOCKS - 2, MAX_BLOCKS - 1] {
            feeder.put(&vec![1; capacity]);
            live.poll(Time::ZERO).expect("there is a number");
            assert!(live.get(number).is_some());
        }
        feeder.put(&vec![1; capacity]);
        let error = live.poll(Time::ZERO).expect_err("no number is left");
        assert!(
            matches!(error, ObjectError::StreamTooLong { .. })
                && error.to_string().contains("start the source again"),
            "{error}"
        );
    }
}
