//! A receiver's files: symbols become blocks, blocks become a file, and a complete file gets its final name.

use super::files::{md5_of, shape};
use super::names;
use super::parts::{Identity, OutputDirectory, Part, Record};
use crate::codec::{self, Blocks, Oti, Params, PayloadId};
use faircast_fec::decode;
use faircast_transport::object::{Names, ObjectError, STATE_DIR, SYSTEM, name_by};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::FileExt;

/// Maximum number of symbols of a block without a code: a symbol number has 16 bits.
const MAX_NO_CODE: u32 = 1 << 16;

/// Maximum number of stored repair symbols of a block, in addition to its number of source symbols.
const MOST_EXTRA: usize = 40;

/// Reason why a file of the table is not received.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error("its name cannot be used: {0}")]
    Name(#[from] faircast_transport::object::PathError),
    #[error("{0}")]
    Names(#[from] faircast_transport::object::NameError),
    #[error("it is compressed ({0}), which is not supported")]
    Compressed(String),
    #[error("the table does not state its symbol size, or states it in an unknown form")]
    NoOti,
    #[error("its blocks of {0} symbols of {1} bytes are not supported")]
    Blocks(u32, u16),
    #[error("its blocks are cut into {0} sub-blocks, which is not supported")]
    SubBlocks(u16),
    #[error("its content has {0} bytes, but {1} bytes are sent, although it is not compressed")]
    Lengths(u64, u64),
    #[error("its {0} bytes would exceed the session's limit of {1}")]
    TooMuch(u64, u64),
}

/// A file that is being received.
#[derive(Debug)]
pub(super) struct Assembly {
    toi: u128,
    path: String,
    oti: Oti,
    blocks: Blocks,
    md5: Option<[u8; 16]>,
    part: Option<Part>,
    /// Whether symbols have arrived since the record was written.
    is_newer: bool,
    /// Incomplete blocks that have some symbols.
    open: BTreeMap<u32, Block>,
    /// Memory of the incomplete blocks, in bytes.
    held: usize,
    whole: HashSet<u32>,
    repaired: u64,
    symbols: u64,
}

/// An incomplete block.
#[derive(Debug, Default)]
struct Block {
    /// One bit for each source symbol that is in the file.
    have: Vec<u64>,
    count: u32,
    repairs: BTreeMap<u32, Box<[u8]>>,
    /// After failed decoding, the number of symbols with which it is tried again.
    wanted: u32,
}

/// Effect of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolResult {
    /// The symbol is a duplicate or useless.
    Useless,
    /// The file needs more symbols.
    More,
    /// The file is complete, matches the table, and has its final name.
    Done,
    /// The file does not match the table; its reception starts again from the beginning.
    Wrong,
}

impl Assembly {
    /// Begins a file of the table.
    pub fn begin(entry: &codec::File, names: Names) -> Result<Assembly, Unfit> {
        let path = name_by(names, names::path_of(&entry.location)?)?;
        if let Some(encoding) =
            entry.content_encoding.as_ref().filter(|text| !matches!(text.as_str(), "" | "null"))
        {
            return Err(Unfit::Compressed(encoding.clone()));
        }
        if let (Some(content), Some(transfer)) = (entry.content_length, entry.transfer_length)
            && content != transfer
        {
            return Err(Unfit::Lengths(content, transfer));
        }
        let oti = entry.oti.ok_or(Unfit::NoOti)?;
        let blocks = oti.blocks().ok_or(Unfit::NoOti)?;
        let sub_blocks = match oti.params {
            Params::Raptor { sub_blocks, .. } => Some(u16::from(sub_blocks)),
            Params::RaptorQ { sub_blocks, .. } => Some(sub_blocks),
            _ => None,
        };
        if let Some(many @ 2..) = sub_blocks {
            return Err(Unfit::SubBlocks(many));
        }
        // The first blocks are the longest and the last ones the shortest.
        for len in [0, blocks.count().saturating_sub(1)].map(|block| blocks.len(block)) {
            let fits = match sub_blocks {
                Some(_) => blocks.is_empty() || shape(&oti, len).is_some(),
                None => len <= MAX_NO_CODE,
            };
            if !fits {
                return Err(Unfit::Blocks(len, oti.symbol_size));
            }
        }
        let (open, whole) = (BTreeMap::new(), HashSet::new());
        Ok(Assembly {
            toi: entry.toi,
            path,
            oti,
            blocks,
            md5: entry.md5,
            part: None,
            is_newer: false,
            open,
            held: 0,
            whole,
            repaired: 0,
            symbols: 0,
        })
    }

    /// Returns the path of the file below the output directory.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn len(&self) -> u64 {
        self.oti.transfer_length
    }

    /// Returns the memory of incomplete blocks, in bytes.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Removes the symbols of the last incomplete block and returns the number of freed bytes.
    pub fn let_last_go(&mut self) -> usize {
        let Some((number, block)) = self.open.pop_last() else { return std::mem::take(&mut self.held) };
        let freed = block.held(self.blocks.len(number), self.oti.symbol_size);
        self.held -= freed;
        freed
    }

    /// Returns whether the table states an MD5 for the content of the file.
    pub fn is_checked(&self) -> bool {
        self.md5.is_some()
    }

    pub fn oti(&self) -> &Oti {
        &self.oti
    }

    /// Returns the number of blocks that needed repair symbols.
    pub fn repaired(&self) -> u64 {
        self.repaired
    }

    /// Returns the number of received symbols, including useless ones, and the number of needed symbols.
    pub fn symbols(&self) -> (u64, u64) {
        (self.symbols, self.blocks.symbols())
    }

    /// Returns the number of bytes in complete blocks.
    pub fn received(&self) -> u64 {
        let size = u64::from(self.oti.symbol_size);
        let of = |block: u32| u64::from(self.blocks.len(block)) * size;
        let whole: u64 = self.whole.iter().map(|block| of(*block)).sum();
        whole.min(self.oti.transfer_length)
    }

    /// Continues with the data of an earlier session for this file. A file without bytes is complete immediately.
    pub fn resume(&mut self, place: &OutputDirectory) -> Result<SymbolResult, ObjectError> {
        if let Some((part, record)) = Part::resume(place, identity(&self.path, &self.md5, &self.oti)) {
            self.part = Some(part);
            let mut first = 0;
            for number in 0..self.blocks.count() {
                let len = self.blocks.len(number);
                let mut block = Block::default();
                (0..len).filter(|symbol| record.has(first + u64::from(*symbol))).for_each(|symbol| {
                    block.note(symbol, len);
                });
                first += u64::from(len);
                if block.count == len {
                    self.whole.insert(number);
                } else if block.count > 0 {
                    self.held += block.held(len, self.oti.symbol_size);
                    self.open.insert(number, block);
                }
            }
        }
        if self.is_whole() { self.finish(place) } else { Ok(SymbolResult::More) }
    }

    fn is_whole(&self) -> bool {
        self.whole.len() == self.blocks.count() as usize
    }

    /// Returns whether symbols have arrived since the latest record.
    pub fn is_newer(&self) -> bool {
        self.is_newer
    }

    /// Records the received symbols, so that a later session can continue.
    pub fn record(&mut self, place: &OutputDirectory) -> Result<(), ObjectError> {
        if !std::mem::take(&mut self.is_newer) {
            return Ok(());
        }
        let Some(part) = &self.part else { return Ok(()) };
        let mut record = Record::new(self.blocks.symbols());
        let mut first = 0;
        for number in 0..self.blocks.count() {
            let len = self.blocks.len(number);
            let (is_whole, block) = (self.whole.contains(&number), self.open.get(&number));
            let has = |symbol: &u32| is_whole || block.is_some_and(|block| block.has(*symbol));
            (0..len).filter(has).for_each(|symbol| record.note(first + u64::from(symbol)));
            first += u64::from(len);
        }
        part.names.write(place, &record)
    }

    /// Processes one or several consecutive symbols.
    pub fn take(
        &mut self,
        id: PayloadId,
        bytes: &[u8],
        place: &OutputDirectory,
    ) -> Result<SymbolResult, ObjectError> {
        let mut taken = SymbolResult::Useless;
        let size = usize::from(self.oti.symbol_size);
        for (symbol, bytes) in (id.symbol..).zip(bytes.chunks(size)) {
            match self.take_one(PayloadId { symbol, ..id }, bytes, place)? {
                SymbolResult::Useless => {}
                SymbolResult::More => taken = SymbolResult::More,
                last => return Ok(last),
            }
        }
        Ok(taken)
    }

    fn take_one(
        &mut self,
        id: PayloadId,
        bytes: &[u8],
        place: &OutputDirectory,
    ) -> Result<SymbolResult, ObjectError> {
        let len = self.blocks.len(id.block);
        self.symbols += 1;
        if len == 0 || self.whole.contains(&id.block) {
            return Ok(SymbolResult::Useless);
        }
        let place_of = (self.blocks.first(id.block) + u64::from(id.symbol)) * u64::from(self.oti.symbol_size);
        let size = self.oti.symbol_size;
        let block = match self.open.entry(id.block) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(free) => {
                self.held += Block::default().held(len, size);
                free.insert(Block::default())
            }
        };
        if id.symbol < len {
            let left = self.oti.transfer_length - place_of.min(self.oti.transfer_length);
            let wanted = left.min(self.oti.symbol_size.into()) as usize;
            let fits = bytes.len() == wanted || bytes.len() == usize::from(self.oti.symbol_size);
            if !fits || !block.note(id.symbol, len) {
                return Ok(SymbolResult::Useless);
            }
            let file = (identity(&self.path, &self.md5, &self.oti), self.toi);
            write(&mut self.part, place, file, &bytes[..wanted], place_of)?;
            self.is_newer = true;
        } else {
            let is_repair = shape(&self.oti, len).is_some_and(|shape| id.symbol < shape.max_esi());
            let full = bytes.len() == usize::from(self.oti.symbol_size);
            // A block needs only a few symbols more than it has source symbols; further repair symbols are not stored.
            if !is_repair
                || !full
                || block.repairs.len() > len as usize + MOST_EXTRA
                || block.repairs.contains_key(&id.symbol)
            {
                return Ok(SymbolResult::Useless);
            }
            block.repairs.insert(id.symbol, bytes.into());
            self.held += Block::repair(size);
        }
        let is_whole = block.count == len;
        let there = block.count + block.repairs.len() as u32;
        if is_whole || (there >= len.max(block.wanted) && self.solve(id.block, place)?) {
            if let Some(block) = self.open.remove(&id.block) {
                self.held -= block.held(len, size);
            }
            self.whole.insert(id.block);
            if self.is_whole() {
                return self.finish(place);
            }
        }
        Ok(SymbolResult::More)
    }

    /// Decodes a block from source symbols in the file and repair symbols. Returns whether that succeeded.
    fn solve(&mut self, number: u32, place: &OutputDirectory) -> Result<bool, ObjectError> {
        let (len, size) = (self.blocks.len(number), usize::from(self.oti.symbol_size));
        let shape = shape(&self.oti, len).expect("the file was refused otherwise");
        let from = self.blocks.first(number) * size as u64;
        let in_file = (self.oti.transfer_length - from).min((len as usize * size) as u64) as usize;
        let Some(block) = self.open.get_mut(&number) else { return Ok(false) };
        // Each failure makes the next attempt later, so that symbols that do not suffice take little processor time.
        let there = block.count + block.repairs.len() as u32;
        block.wanted = there + 1 + there.saturating_sub(len) / 2;
        let block = &*block;
        let mut bytes = vec![0; len as usize * size];
        if block.count > 0 {
            let part = self.part.as_ref().expect("its source symbols were written there");
            let read = SYSTEM.read_at(&part.file, &mut bytes[..in_file], from);
            read.map_err(|error| ObjectError::io(place.path.join(STATE_DIR), "read a part", error))?;
        }
        let source = (0..len).filter(|symbol| block.has(*symbol));
        let source = source.map(|symbol| (symbol, &bytes[symbol as usize * size..][..size]));
        let repairs = block.repairs.iter().map(|(symbol, bytes)| (*symbol, &bytes[..]));
        let Some(solved) = decode(shape, source.chain(repairs)) else { return Ok(false) };
        let file = (identity(&self.path, &self.md5, &self.oti), self.toi);
        write(&mut self.part, place, file, &solved[..in_file], from)?;
        self.is_newer = true;
        self.repaired += 1;
        Ok(true)
    }

    fn finish(&mut self, place: &OutputDirectory) -> Result<SymbolResult, ObjectError> {
        let part = match self.part.take() {
            Some(part) => part,
            None => Part::create(place, None, self.toi)?,
        };
        let failed = |error| ObjectError::io(place.path.join(&self.path), "read the received data", error);
        let right = match self.md5 {
            Some(md5) => {
                let read = |at, into: &mut [u8]| SYSTEM.read_at(&part.file, into, at).map(|_| ());
                md5_of(self.oti.transfer_length, read).map_err(failed)? == md5
            }
            None => true,
        };
        if !right {
            self.open.clear();
            self.held = 0;
            self.whole.clear();
            part.names.discard(place);
            return Ok(SymbolResult::Wrong);
        }
        let Part { file, names } = part;
        drop(file);
        place.publish(&names, &self.path).inspect_err(|_| names.discard(place))?;
        Ok(SymbolResult::Done)
    }

    /// Stores the data that a later session can continue with, and removes the rest. Returns whether data were stored.
    pub fn keep(&mut self, place: &OutputDirectory) -> bool {
        let is_stored = self.part.as_ref().is_some_and(|part| part.names.is_stored());
        if !is_stored || self.record(place).is_err() {
            self.abandon(place);
            return false;
        }
        self.part = None;
        true
    }

    /// Removes the incomplete file.
    pub fn abandon(&mut self, place: &OutputDirectory) {
        self.open.clear();
        if let Some(part) = self.part.take() {
            part.names.discard(place);
        }
    }
}

impl Block {
    /// Returns the approximate memory of a block of `len` symbols of `size` bytes, in bytes.
    fn held(&self, len: u32, size: u16) -> usize {
        const AROUND: usize = 64;
        AROUND + len.div_ceil(64) as usize * 8 + self.repairs.len() * Block::repair(size)
    }

    /// Returns the approximate memory of a repair symbol, in bytes.
    const fn repair(size: u16) -> usize {
        size as usize + 32
    }

    /// Records a source symbol and returns whether it is new.
    fn note(&mut self, symbol: u32, len: u32) -> bool {
        self.have.resize(len.div_ceil(64) as usize, 0);
        let word = &mut self.have[symbol as usize / 64];
        let bit = 1 << (symbol % 64);
        let new = *word & bit == 0;
        *word |= bit;
        self.count += u32::from(new);
        new
    }

    fn has(&self, symbol: u32) -> bool {
        self.have.get(symbol as usize / 64).is_some_and(|word| word & 1 << (symbol % 64) != 0)
    }
}

/// Returns an identity that the content has in all sessions; `None` if the MD5 is unknown. Without the MD5, a complete file could
/// not be verified.
fn identity<'a>(path: &'a str, md5: &'a Option<[u8; 16]>, oti: &'a Oti) -> Option<Identity<'a>> {
    md5.as_ref().map(|md5| Identity { path, md5, oti })
}

/// Writes at this position of a file's part, which is created if it does not exist.
fn write(
    part: &mut Option<Part>,
    place: &OutputDirectory,
    (identity, toi): (Option<Identity<'_>>, u128),
    bytes: &[u8],
    offset: u64,
) -> Result<(), ObjectError> {
    let part = match part {
        Some(part) => part,
        None => part.insert(Part::create(place, identity, toi)?),
    };
    let failed =
        |error| ObjectError::writing(place.path.join(STATE_DIR), "write a part", error, bytes.len() as u64);
    part.file.write_all_at(bytes, offset).map_err(failed)
}
