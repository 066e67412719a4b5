//! The journal: a file in which a receiver lists the blocks that it has stored.
//!
//! ```text
//! header (64 bytes):  "fcjrnl1\n" ‖ transfer ‖ geometry ‖ zeros ‖ check
//! record (40 bytes):  u32 block ‖ hash ‖ check          block 0xffff_ffff: u64 length of the object stream
//! ```
//!
//! If a block has several records, the last record applies. A record with a hash of zeros withdraws the block.
//!
//! A block is recorded after its data was passed to the system. Killing the receiver therefore loses no recorded block. A crash
//! of the machine loses data that the system had not written to the disk. The next start detects the loss, because it reads and
//! verifies the blocks. Invalid records are skipped, and an incomplete last record is cut off.

use super::error::ObjectError;
use super::geometry::{Geometry, Hash, TransferId};
use crate::host::disk::Disk;
use std::fs::File;
use std::path::PathBuf;

const MAGIC: [u8; 8] = *b"fcjrnl1\n";
pub(crate) const HEADER: usize = 64;
pub(crate) const RECORD: usize = 40;
const STREAM_LEN: u32 = u32::MAX;

/// Value that replaces the hash in a record that withdraws a block.
pub(crate) const WITHDRAWN: Hash = Hash([0; 32]);

#[derive(Debug)]
pub(crate) struct Journal {
    disk: Disk,
    file: File,
    path: PathBuf,
    end: u64,
}

/// Content of a journal.
#[derive(Debug, Default)]
pub struct JournalContent {
    /// Blocks and hashes, in order of writing.
    pub(crate) blocks: Vec<(u32, Hash)>,
    /// The length of the object stream, if a record states it.
    pub(crate) stream_len: Option<u64>,
}

impl JournalContent {
    /// Returns the numbers of the recorded blocks, in order and each number once.
    pub fn block_numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.blocks.iter().map(|(block, _)| *block).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

impl Journal {
    /// Reads the journal in `file`. If the file is empty or belongs to another transfer, begins a new journal and returns `None`.
    pub(crate) fn open(
        disk: &Disk,
        file: File,
        path: PathBuf,
        transfer: TransferId,
        geometry: Geometry,
    ) -> Result<(Journal, Option<JournalContent>), ObjectError> {
        let reported = content_of(disk, &file, transfer, geometry);
        let Some((reported, end)) = reported.map_err(|e| ObjectError::io(&path, "read", e))? else {
            let write = disk
                .set_len(&file, 0)
                .and_then(|()| disk.write_all_at(&file, &header(transfer, geometry), 0));
            write.map_err(|e| ObjectError::io(&path, "write", e))?;
            let disk = disk.clone();
            return Ok((Journal { disk, file, path, end: HEADER as u64 }, None));
        };
        disk.set_len(&file, end).map_err(|e| ObjectError::io(&path, "write", e))?;
        Ok((Journal { disk: disk.clone(), file, path, end }, Some(reported)))
    }

    /// Records that a block is stored.
    pub(crate) fn block(&mut self, index: u32, hash: Hash) -> Result<(), ObjectError> {
        self.append(index, hash)
    }

    /// Records that a block is missing again.
    pub(crate) fn withdraw(&mut self, index: u32) -> Result<(), ObjectError> {
        self.append(index, WITHDRAWN)
    }

    /// Removes all records.
    pub(crate) fn start_over(&mut self) -> Result<(), ObjectError> {
        self.disk.set_len(&self.file, HEADER as u64).map_err(|e| ObjectError::io(&self.path, "write", e))?;
        self.end = HEADER as u64;
        Ok(())
    }

    /// Records the length of the object stream.
    pub(crate) fn stream_len(&mut self, len: u64) -> Result<(), ObjectError> {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&len.to_le_bytes());
        self.append(STREAM_LEN, Hash(bytes))
    }

    fn append(&mut self, index: u32, hash: Hash) -> Result<(), ObjectError> {
        let write = self.disk.write_all_at(&self.file, &record(index, hash), self.end);
        write.map_err(|e| ObjectError::io(&self.path, "write", e))?;
        self.end += RECORD as u64;
        Ok(())
    }
}

/// Returns the content of a journal, and the offset at which its complete records end; `None` if the file is no journal of the
/// transfer.
pub(crate) fn content_of(
    disk: &Disk,
    file: &File,
    transfer: TransferId,
    geometry: Geometry,
) -> std::io::Result<Option<(JournalContent, u64)>> {
    let mut found = [0; HEADER];
    let have = disk.read_at(file, &mut found, 0)?;
    let is_ours = have == HEADER && is_header_of(&found, transfer, geometry);
    is_ours.then(|| read_content(disk, file, longest(geometry))).transpose()
}

/// Returns the maximum length of a valid journal in bytes. A journal may have several records for each block, because a block can
/// be recorded and withdrawn repeatedly. This program does not write a longer journal.
fn longest(geometry: Geometry) -> u64 {
    let blocks = geometry.blocks().map_or(MAX_BLOCKS_OF_STREAM, u64::from);
    HEADER as u64 + RECORD as u64 * (TIMES * blocks + MAX_EXTRA_RECORDS)
}

/// Maximum number of records for each block; maximum number of blocks of a stream of unknown length; number of records allowed in
/// addition.
const TIMES: u64 = 16;
const MAX_BLOCKS_OF_STREAM: u64 = 1 << 22;
const MAX_EXTRA_RECORDS: u64 = 1 << 16;

/// Records that are read at a time.
const AT_A_TIME: usize = 16_384;

/// Reads the records in the first `longest` bytes of a file. Returns the content of the records, and the offset at which the
/// complete records end.
fn read_content(disk: &Disk, file: &File, longest: u64) -> std::io::Result<(JournalContent, u64)> {
    let (mut reported, mut end) = (JournalContent::default(), HEADER as u64);
    let mut bytes = vec![0; RECORD * AT_A_TIME];
    while end < longest {
        let have = disk.read_at(file, &mut bytes, end)?;
        let whole = have - have % RECORD;
        reported.take(&bytes[..whole]);
        end += whole as u64;
        if have < bytes.len() {
            break;
        }
    }
    Ok((reported, end))
}

impl JournalContent {
    /// Adds the content of complete records; invalid records are skipped.
    fn take(&mut self, records: &[u8]) {
        for record in records.as_chunks::<RECORD>().0 {
            match parse(record) {
                Some((STREAM_LEN, Hash([a, b, c, d, e, f, g, h, ..]))) => {
                    self.stream_len = Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
                }
                Some(block) => self.blocks.push(block),
                None => {}
            }
        }
    }
}

/// Returns the content of a journal, and the offset at which its complete records end; `None` if the journal belongs to another
/// transfer.
pub(crate) fn read(bytes: &[u8], transfer: TransferId, geometry: Geometry) -> Option<(JournalContent, u64)> {
    let (found, rest) = bytes.split_first_chunk::<HEADER>()?;
    if !is_header_of(found, transfer, geometry) {
        return None;
    }
    let mut reported = JournalContent::default();
    reported.take(rest);
    Some((reported, (bytes.len() - rest.len() % RECORD) as u64))
}

pub(crate) fn header(transfer: TransferId, geometry: Geometry) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..24].copy_from_slice(&transfer.0);
    header[24..41].copy_from_slice(&geometry.to_bytes());
    let check = check(&header[..HEADER - 4]);
    header[HEADER - 4..].copy_from_slice(&check);
    header
}

/// Returns the transfer and geometry in the header of a journal.
pub(crate) fn header_of(disk: &Disk, file: &File) -> Option<(TransferId, Geometry)> {
    let mut found = [0; HEADER];
    let have = disk.read_at(file, &mut found, 0).ok()?;
    let (mut transfer, mut geometry) = ([0; 16], [0; 17]);
    transfer.copy_from_slice(&found[8..24]);
    geometry.copy_from_slice(&found[24..41]);
    let (transfer, geometry) = (TransferId(transfer), Geometry::from_bytes(geometry));
    (have == HEADER && found == header(transfer, geometry) && geometry.check().is_ok())
        .then_some((transfer, geometry))
}

fn is_header_of(found: &[u8; HEADER], transfer: TransferId, geometry: Geometry) -> bool {
    let mut bytes = [0; 17];
    bytes.copy_from_slice(&found[24..41]);
    let mut theirs = Geometry::from_bytes(bytes);
    if geometry.stream_len.is_none() || theirs.stream_len.is_none() {
        theirs.stream_len = geometry.stream_len; // a stream's length is not known at all times
    }
    let theirs_whole = Geometry::from_bytes(bytes);
    theirs == geometry && *found == header(transfer, theirs_whole)
}

pub(crate) fn record(index: u32, hash: Hash) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&index.to_le_bytes());
    record[4..36].copy_from_slice(&hash.0);
    let check = check(&record[..36]);
    record[36..].copy_from_slice(&check);
    record
}

fn parse(bytes: &[u8; RECORD]) -> Option<(u32, Hash)> {
    let (index, rest) = bytes.split_first_chunk::<4>()?;
    let (index, hash) = (u32::from_le_bytes(*index), Hash(*rest.first_chunk::<32>()?));
    (record(index, hash) == *bytes).then_some((index, hash))
}

fn check(bytes: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = *blake3::hash(bytes).as_bytes();
    [a, b, c, d]
}

/// Entry point for fuzzers: checks that valid records are read even if arbitrary bytes precede and follow them.
#[cfg(any(test, fuzzing))]
pub fn fuzz(input: &[u8]) {
    let geometry = Geometry { stream_len: None, manifest_len: 100, symbol_size: 64, symbols_per_block: 8 };
    let transfer = TransferId([7; 16]);
    if let Some((_, end)) = read(input, transfer, geometry) {
        assert!(end <= input.len() as u64);
    }
    let mut bytes = [&header(transfer, geometry)[..], input].concat();
    let mut recorded = Vec::new();
    for found in bytes[HEADER..].as_chunks_mut::<RECORD>().0 {
        let (index, hash) = (u32::from(found[0]), Hash([found[4]; 32]));
        if found[1] % 2 == 0 {
            *found = record(index, hash);
            recorded.push((index, hash));
        }
    }
    let (reported, end) = read(&bytes, transfer, geometry).expect("the header is sound");
    assert!(recorded.iter().all(|block| reported.blocks.contains(block)));
    bytes.truncate(usize::try_from(end).expect("it is within the bytes"));
    let last = (300, Hash([1; 32]));
    bytes.extend(record(last.0, last.1));
    let (more, _) = read(&bytes, transfer, geometry).expect("the header is sound");
    assert_eq!(more.blocks.split_last(), Some((&last, &reported.blocks[..])));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_with_a_length_of_one_terabyte_is_read_and_truncated() {
        let geometry = Geometry {
            stream_len: Some(64 * 7 * 100),
            manifest_len: 100,
            symbol_size: 64,
            symbols_per_block: 8,
        };
        let transfer = TransferId([7; 16]);
        let file = || tempfile::tempfile().expect("a temporary file");
        let original = file();
        let again = || original.try_clone().expect("the same file");
        let (mut journal, reported) =
            Journal::open(&Disk::default(), again(), "j".into(), transfer, geometry).expect("a new one");
        assert!(reported.is_none());
        (0..50).for_each(|index| journal.block(index, Hash([index as u8 + 1; 32])).expect("written"));
        original.set_len(1 << 40).expect("a file with a hole");
        let (journal, reported) =
            Journal::open(&Disk::default(), again(), "j".into(), transfer, geometry).expect("opened");
        let blocks: Vec<u32> = reported.expect("it is ours").blocks.iter().map(|(index, _)| *index).collect();
        assert!(blocks.iter().copied().eq(0..50), "{blocks:?}");
        assert!(journal.end <= longest(geometry) + (RECORD * AT_A_TIME) as u64, "{}", journal.end);
        assert_eq!(original.metadata().expect("it is there").len(), journal.end);
    }
}
