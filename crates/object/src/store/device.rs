//! Content of one file that is written to a block device.
//!
//! A machine that is imaged has started from the network and stores nothing. The journal therefore lies on the device itself. It is
//! a table in the last bytes of the content, with one record for each block. Blocks of these bytes stay in memory until all others are
//! written (40 bytes per block: about 0.01 % of the content). A receiver that starts again, also after a restart of the machine,
//! finds the table, hashes the blocks that it lists, and requests the others.
//!
//! ```text
//! device:  content of the file ... | table while the content is incomplete |  bytes after the content: unchanged
//! table:   header of a journal ‖ one record of a journal for each block
//! ```

use super::coverage::Coverage;
use super::ledger::{Learning, Operation, Performed, Spot};
use super::{Finished, Known, Ledger, Stage};
use crate::block::hash_of;
use crate::chunking::READ;
use crate::device_fault::{DeviceFault, Files};
use crate::error::ObjectError;
use crate::file_work::{FileWork, WorkStage};
use crate::gather::seeds::{ReadBlock, Seeds};
use crate::geometry::{Geometry, Hash, TransferId};
use crate::host::block_device::BlockDevice;
use crate::host::direct::Direct;
use crate::host::disk::Disk;
use crate::journal::{self, HEADER, JournalContent, RECORD, WITHDRAWN};
use crate::layout::Layout;
use crate::manifest::chunks::Chunk;
use crate::manifest::{Counts, Kind, Manifest};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Maximum length of a manifest of one file, in bytes. A list of chunks has about 10 bytes for each of a million chunks.
const MAX_MANIFEST: u32 = 32 << 20;

/// A device has no table if the table would take more than the content divided by this number.
const PART_FOR_TABLE: u64 = 4;

/// Number of bytes that are zeroed in one step.
const ZEROED_IN_A_STEP: u64 = 256 << 20;

/// A transfer that is being received onto a block device: the device and its [`Ledger`].
#[derive(Debug)]
pub struct DeviceStore {
    /// The record of its blocks.
    pub ledger: Ledger,
    /// The device, with the operations on it.
    pub files: DeviceFiles,
}

/// The device of one transfer. The thread that owns this value performs all operations on the device.
#[derive(Debug)]
pub struct DeviceFiles {
    disk: Disk,
    device: Arc<BlockDevice>,
    /// Writes.
    direct: Direct,
    /// Reads of blocks that this receiver has not written.
    reading: Direct,
    /// Blocks that the table does not list yet, because the last of their bytes may be in memory: number, end, and hash.
    unlisted: VecDeque<(u32, u64, Hash)>,
    transfer: TransferId,
    geometry: Geometry,
    /// The blocks with the manifest, which have no place on the device.
    head: Vec<u8>,
    /// Offset of the table on the device; `None` for content that is too short for a table.
    table: Option<u64>,
    /// The first block with bytes in the place of the table.
    first_held: u32,
    /// Content of blocks from `first_held` on, which is written last.
    held: BTreeMap<u32, Vec<u8>>,
    /// Symbols of incomplete blocks that the device had before this transfer.
    seeds: Option<Seeds>,
    /// Warnings for the user, in the order in which they arose.
    pub warnings: Vec<String>,
}

impl DeviceStore {
    /// Prepares to receive `transfer` onto a device. Returns the content of the table of an earlier receiver, whose blocks
    /// [`DeviceStore::go_on`] verifies. Nothing is written before the manifest is known.
    ///
    /// # Errors
    /// [`ObjectError::Device`] when the content does not fit.
    pub fn begin(
        disk: &Disk,
        device: &Arc<BlockDevice>,
        transfer: TransferId,
        geometry: Geometry,
    ) -> Result<(DeviceStore, Option<JournalContent>), ObjectError> {
        geometry.check()?;
        let files = DeviceFiles::new(disk, device, transfer, geometry)?;
        let reported = files.read_table()?;
        let mut ledger = Ledger::new(transfer, geometry, Stage::Receiving);
        (ledger.has_others, ledger.takes_only_chunks) = (true, true); // the device may hold an earlier version of the content
        Ok((DeviceStore { ledger, files }, reported))
    }

    /// Records the blocks that an earlier receiver has stored according to its table. [`Operation::Verify`] verifies them.
    pub fn claim(&mut self, reported: JournalContent) {
        self.ledger.claim(reported.blocks);
    }

    /// Verifies the stored blocks of an earlier receiver; valid blocks count as received.
    ///
    /// # Errors
    /// [`ObjectError::Cancelled`].
    pub fn go_on(&mut self, reported: JournalContent, work: &FileWork) -> Result<(), ObjectError> {
        work.begin(WorkStage::Verifying, reported.blocks.len() as u64);
        self.claim(reported);
        while let Some((_, operation)) = self.ledger.verification(0) {
            work.step(self.files.device.path())?;
            self.ledger.settle(self.files.perform(operation)?);
        }
        Ok(())
    }

    /// Takes over the chunks that the device has in the places where the manifest lists them. Blocks whose bytes are all there
    /// count like stored blocks of an earlier receiver. For other blocks, the source symbols that are there are recorded.
    ///
    /// # Errors
    /// When the device cannot be written, or [`ObjectError::Cancelled`].
    pub fn adopt(&mut self, work: &FileWork) -> Result<(), ObjectError> {
        self.ledger.has_others = false;
        let Some(known) = self.ledger.known.clone() else { return Ok(()) };
        let found: Coverage = self.files.chunks_in_place(&known, work)?.into_iter().collect();
        let geometry = self.files.geometry;
        let end = self.files.first_held.min(geometry.blocks().unwrap_or(0));
        let (mut seeds, mut buf) = (Vec::new(), Vec::new());
        for index in geometry.manifest_blocks()..end {
            let range = geometry.range(index);
            if self.ledger.has(index) || range.is_empty() {
                continue;
            }
            if !found.covers(&range) {
                seeds.push((index, found.symbols_of(&geometry, index)));
            } else if self.files.read_block(index, &mut buf) {
                let hash = hash_of(&buf);
                self.files.record(index, hash)?;
                self.ledger.count_resumed(index, hash);
            }
        }
        if seeds.iter().any(|(_, seed)| seed.count() > 0) {
            let mut found = Seeds::new(self.files.reader()?);
            seeds.into_iter().for_each(|(index, seed)| found.insert(index, seed));
            self.files.seeds = Some(found);
        }
        Ok(())
    }

    /// Returns the symbols of incomplete blocks that [`DeviceStore::adopt`] has found, once.
    pub fn take_seeds(&mut self) -> Option<Seeds> {
        self.files.seeds.take()
    }

    /// Drops all blocks because of the contradiction `error`, and adds a warning.
    ///
    /// # Errors
    /// When the device cannot be written.
    pub fn give_up(&mut self, error: &ObjectError) -> Result<(), ObjectError> {
        let bytes = self.start_over()?;
        self.ledger.spoiled += bytes;
        self.files.warnings.push(format!(
            "stored data differs from the source's ({error}): {bytes} bytes are requested again"
        ));
        Ok(())
    }

    /// Drops all blocks. Returns the number of dropped bytes.
    ///
    /// # Errors
    /// When the device cannot be written.
    pub fn start_over(&mut self) -> Result<u64, ObjectError> {
        self.files.held.clear();
        self.files.unlisted.clear();
        // Before the manifest is known, the device is left unchanged.
        if self.files.read_table()?.is_some() {
            self.files.begin_table()?;
        }
        Ok(self.ledger.start_over())
    }

    /// Compares the root hash of all blocks with the source's `root`. Then writes holes and the blocks in the place of the
    /// table, flushes the device, and has the kernel read its partition table.
    ///
    /// # Errors
    /// As [`Ledger::check`], or the error of the device.
    pub fn finish_as(&mut self, root: &Hash, work: &FileWork) -> Result<Finished, ObjectError> {
        self.ledger.check(root)?;
        let known = self.ledger.known.as_ref().expect("when all blocks are there, so is the manifest");
        let runs = known
            .layout
            .void()
            .iter()
            .map(|run| self.files.place_of(run.start).start..self.files.place_of(run.end - 1).end);
        let runs: Vec<Range<u64>> = runs.flat_map(in_steps).collect();
        work.begin(WorkStage::Completing, runs.len() as u64 + 2);
        self.files.flush(0)?;
        let (disk, device) = (self.files.disk.clone(), Arc::clone(&self.files.device));
        for bytes in runs {
            disk.zero(&device.file, bytes).map_err(|e| self.files.failed(e, 0))?;
            work.step(device.path())?;
        }
        // The blocks in place of the table follow when everything else is on the device.
        disk.sync_all(&device.file).map_err(|e| self.files.failed(e, 0))?;
        work.step(device.path())?;
        for (index, data) in std::mem::take(&mut self.files.held) {
            self.files.write_at(self.files.place_of(index).start, &data, 0)?;
        }
        self.files.flush(0)?;
        disk.sync_all(&device.file).map_err(|e| self.files.failed(e, 0))?;
        if let Err(error) = device.reread_partitions() {
            self.files.warnings.push(format!(
                "{}: the kernel has not read the new partition table ({error}); start the \
                 machine again",
                device.path().display()
            ));
        }
        let entries = Counts::of_files(1);
        let bytes = known.manifest.content_len();
        Ok(Finished {
            entries,
            bytes,
            warnings: std::mem::take(&mut self.files.warnings),
            ..Finished::default()
        })
    }
}

impl DeviceFiles {
    fn new(
        disk: &Disk,
        device: &Arc<BlockDevice>,
        transfer: TransferId,
        geometry: Geometry,
    ) -> Result<DeviceFiles, ObjectError> {
        let fault = |why| ObjectError::Device { path: device.path().to_path_buf(), why };
        let (Some(stream_len), Some(blocks)) = (geometry.stream_len, geometry.blocks()) else {
            return Err(fault(DeviceFault::NotOneFile(Files::Stream)));
        };
        let content = stream_len - u64::from(geometry.manifest_len);
        if content > device.size() {
            return Err(fault(DeviceFault::TooSmall { needed: content, size: device.size() }));
        }
        if geometry.manifest_len > MAX_MANIFEST {
            return Err(fault(DeviceFault::NotOneFile(Files::Long)));
        }
        let len = HEADER as u64 + RECORD as u64 * u64::from(blocks);
        let table = (len <= content / PART_FOR_TABLE).then(|| content - len);
        let in_stream = |at| geometry.block_of(u64::from(geometry.manifest_len) + at);
        let head_len = geometry.range(geometry.manifest_blocks() - 1).end;
        Ok(DeviceFiles {
            disk: disk.clone(),
            device: Arc::clone(device),
            direct: Direct::default(),
            reading: Direct::default(),
            unlisted: VecDeque::new(),
            transfer,
            geometry,
            head: vec![0; head_len as usize],
            table,
            first_held: table.map_or(u32::MAX, in_stream),
            held: BTreeMap::new(),
            seeds: None,
            warnings: Vec::new(),
        })
    }

    /// Performs an operation.
    ///
    /// # Errors
    /// An [`ObjectError`]. A block whose write failed does not count as stored.
    pub fn perform(&mut self, operation: Operation) -> Result<Performed, ObjectError> {
        match operation {
            Operation::Write { spot, data, hash, .. } => {
                if spot.in_head {
                    self.head[spot.range.start as usize..][..data.len()].copy_from_slice(&data);
                }
                if spot.known.is_some() {
                    self.store(&spot, spot.files_part(&data), hash)?;
                }
                Ok(Performed::Written { index: spot.index, hash, data })
            }
            Operation::Learn(about) => Ok(Performed::Learned(self.learn_manifest(about)?)),
            Operation::Forget(index) => {
                self.held.remove(&index);
                self.flush(0)?;
                self.record(index, WITHDRAWN)?;
                Ok(Performed::Noted)
            }
            Operation::Verify(spot, hash) => {
                let mut buf = Vec::new();
                let is_right = self.read_block(spot.index, &mut buf) && hash_of(&buf) == hash;
                Ok(Performed::Verified(spot.index, is_right))
            }
            // A source never withdraws its only file, and a device takes no stream.
            Operation::GiveBack(_) | Operation::Rehash(_) | Operation::End(_) => Err(ObjectError::Withdrawn),
        }
    }

    /// Stores the content of a block: on the device, or in memory if its place is the place of the table.
    fn store(&mut self, spot: &Spot, content: &[u8], hash: Hash) -> Result<(), ObjectError> {
        if spot.index >= self.first_held {
            self.held.insert(spot.index, content.to_vec());
            return Ok(());
        }
        let place = self.place_of(spot.index);
        self.write_at(place.start, content, spot.left)?;
        if !spot.in_head {
            self.unlisted.push_back((spot.index, place.end, hash));
        }
        while let Some(&(index, _, hash)) = self.unlisted.front().filter(|one| self.direct.has_written(one.1))
        {
            self.record(index, hash)?;
            self.unlisted.pop_front();
        }
        Ok(())
    }

    /// Reads the manifest, whose blocks are all in memory, and begins the table.
    fn learn_manifest(&mut self, about: Learning) -> Result<Arc<Known>, ObjectError> {
        let bytes = &self.head[..about.geometry.manifest_len as usize];
        let found = TransferId::of(bytes, &about.announced);
        if found != self.transfer {
            return Err(ObjectError::OtherManifest { expected: self.transfer, found });
        }
        let manifest = Manifest::decode(bytes)?;
        self.check_one_file(&manifest)?;
        let layout = Layout::new(&manifest, &about.geometry)?;
        let known = Arc::new(Known { manifest, layout });
        if self.read_table()?.is_none() {
            self.begin_table()?;
        }
        let border = about.border(&known);
        let data = self.head[border.range.start as usize..border.range.end as usize].to_vec();
        let content = border.files_part(&data);
        if !content.is_empty() {
            self.store(&border, content, hash_of(&data))?;
        }
        Ok(known)
    }

    /// Checks that the content is one file.
    pub(super) fn check_one_file(&self, manifest: &Manifest) -> Result<(), ObjectError> {
        let tree = match manifest.entries() {
            [one] if matches!(one.kind, Kind::File { .. }) => None,
            [one] if one.kind == Kind::Stream => Some(Files::Stream),
            entries => Some(Files::Tree(entries.len())),
        };
        if let Some(files) = tree {
            let why = DeviceFault::NotOneFile(files);
            return Err(ObjectError::Device { path: self.device.path().to_path_buf(), why });
        }
        Ok(())
    }

    /// Reads the content of a block that this receiver has not written. Returns whether all of it was read.
    fn read_block(&mut self, index: u32, buf: &mut Vec<u8>) -> bool {
        let bytes = self.place_of(index);
        buf.resize((bytes.end - bytes.start) as usize, 0);
        let read = self.reading.read((&self.disk, &self.device.file), buf, bytes.start);
        read.is_ok_and(|have| have == buf.len())
    }

    /// Returns the parts of the object stream whose chunks are in their places on the device.
    pub(super) fn chunks_in_place(
        &mut self,
        known: &Known,
        work: &FileWork,
    ) -> Result<Vec<Range<u64>>, ObjectError> {
        let Some(chunks) = known.manifest.chunks() else { return Ok(Vec::new()) };
        work.begin(WorkStage::Verifying, known.manifest.content_len());
        let (mut buf, mut from, mut found, mut result) = (Vec::new(), 0, Vec::new(), Ok(()));
        chunks.each(known.manifest.entries(), |chunk, _, offset| {
            if result.is_ok() {
                result = work.steps(chunk.len.into(), self.device.path());
            }
            let (len, end) = (chunk.len as usize, offset + u64::from(chunk.len));
            if result.is_ok() && end > from + buf.len() as u64 {
                from = offset;
                buf.resize(READ.max(len), 0);
                let read = self.direct.read((&self.disk, &self.device.file), &mut buf, from);
                buf.truncate(read.unwrap_or(0));
            }
            let start = (offset - from) as usize;
            if buf.get(start..start + len).is_some_and(|bytes| Chunk::of(bytes) == chunk) {
                let manifest = u64::from(self.geometry.manifest_len);
                found.push(manifest + offset..manifest + end);
            }
        });
        result.map(|()| found)
    }

    /// Returns a function that reads bytes of blocks from the device. It has its own open file, because other threads use it.
    fn reader(&self) -> Result<ReadBlock, ObjectError> {
        let file = self.device.open_again()?;
        let (disk, geometry) = (self.disk.clone(), self.geometry);
        Ok(Arc::new(move |block, bytes: Range<usize>, into| {
            let content = geometry.range(block).start - u64::from(geometry.manifest_len);
            match disk.read_at(&file, into, content + bytes.start as u64)? < into.len() {
                true => Err(std::io::ErrorKind::UnexpectedEof.into()),
                false => Ok(()),
            }
        }))
    }

    /// Returns the bytes of the device that hold the content of a block.
    fn place_of(&self, index: u32) -> Range<u64> {
        let (range, manifest) = (self.geometry.range(index), u64::from(self.geometry.manifest_len));
        range.start.saturating_sub(manifest)..range.end.saturating_sub(manifest)
    }

    /// Writes content. The last of its bytes may stay in memory until [`DeviceFiles::flush`].
    fn write_at(&mut self, at: u64, bytes: &[u8], left: u64) -> Result<(), ObjectError> {
        if !self.direct.continues(at) {
            self.flush(left)?;
        }
        let written = self.direct.write((&self.disk, &self.device.file), bytes, at);
        written.map_err(|e| self.failed(e, left))
    }

    /// Writes the bytes in memory, and lists their blocks in the table.
    fn flush(&mut self, left: u64) -> Result<(), ObjectError> {
        self.direct.flush((&self.disk, &self.device.file)).map_err(|e| self.failed(e, left))?;
        std::mem::take(&mut self.unlisted)
            .into_iter()
            .try_for_each(|(index, _, hash)| self.record(index, hash))
    }

    fn failed(&self, error: std::io::Error, left: u64) -> ObjectError {
        ObjectError::writing(self.device.path(), "write to this device", error, left)
    }

    /// Returns the blocks of the table; `None` if the device holds no table of this transfer.
    fn read_table(&self) -> Result<Option<JournalContent>, ObjectError> {
        let Some(at) = self.table else { return Ok(None) };
        let mut bytes = vec![0; self.table_len()];
        let read = self.disk.read_at(&self.device.file, &mut bytes, at);
        read.map_err(|e| ObjectError::io(self.device.path(), "read this device", e))?;
        let Some((mut content, _)) = journal::read(&bytes, self.transfer, self.geometry) else {
            return Ok(None);
        };
        let on_device = self.geometry.manifest_blocks()..self.first_held;
        content.blocks.retain(|(index, hash)| on_device.contains(index) && *hash != WITHDRAWN);
        content.blocks.sort_unstable();
        content.blocks.dedup_by_key(|(index, _)| *index);
        content.stream_len = None;
        Ok(Some(content))
    }

    fn table_len(&self) -> usize {
        HEADER + RECORD * self.geometry.blocks().unwrap_or(0) as usize
    }

    /// Writes a table without blocks.
    fn begin_table(&self) -> Result<(), ObjectError> {
        let Some(at) = self.table else { return Ok(()) };
        let mut table = journal::header(self.transfer, self.geometry).to_vec();
        table.resize(self.table_len(), 0);
        self.write_table_at(at, &table)
    }

    /// Writes a part of the table, through the page cache.
    fn write_table_at(&self, at: u64, bytes: &[u8]) -> Result<(), ObjectError> {
        self.disk.write_all_at(&self.device.file, bytes, at).map_err(|e| self.failed(e, 0))
    }

    /// Records the hash of a block in the table.
    fn record(&self, index: u32, hash: Hash) -> Result<(), ObjectError> {
        match self.table {
            Some(at) if (self.geometry.manifest_blocks()..self.first_held).contains(&index) => {
                let at = at + HEADER as u64 + RECORD as u64 * u64::from(index);
                self.write_table_at(at, &journal::record(index, hash))
            }
            _ => Ok(()),
        }
    }
}

/// A session that stops keeps the end of its last block.
impl Drop for DeviceFiles {
    fn drop(&mut self) {
        self.flush(0).ok(); // otherwise the block is received again
    }
}

/// Divides a range of bytes into parts that are zeroed in one step.
fn in_steps(bytes: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = (bytes.start..bytes.end).step_by(ZEROED_IN_A_STEP as usize);
    starts.map(move |start| start..(start + ZEROED_IN_A_STEP).min(bytes.end))
}
