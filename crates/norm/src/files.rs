//! The objects of a session: files on disk, divided into blocks of symbols.

use super::codec::{Fec, Fti, Item, PayloadId};
use super::error::NormError;
use super::rs::Code;
use faircast_transport::error::Error;
use faircast_transport::object::{NamedFile, NamedFiles};
use std::collections::VecDeque;
use std::path::PathBuf;

/// Maximum number of source symbols of a block, and number of parity symbols.
pub(super) const MAX_BLOCK: u8 = 64;
pub(super) const PARITY: u8 = 32;
/// Number of blocks in memory: one for new symbols, the others for repairs.
const LOADED: usize = 4;

const _: () = assert!(MAX_BLOCK as usize + PARITY as usize <= super::rs::MAX_SYMBOLS);

/// A file to send.
#[derive(Debug)]
pub(super) struct Object {
    /// Relative path that receivers get.
    pub(super) name: String,
    pub(super) size: u64,
    blocks: Blocks,
}

/// Division of a file into blocks (RFC 5052, 9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Blocks {
    count: u64,
    /// Number of symbols of the first `large_blocks` blocks. The other blocks have one symbol less.
    large: u64,
    large_blocks: u64,
}

impl Blocks {
    fn new(symbols: u64) -> Blocks {
        let count = symbols.div_ceil(MAX_BLOCK.into());
        let large = symbols.div_ceil(count.max(1));
        Blocks { count, large, large_blocks: count - (count * large - symbols) }
    }

    fn len(&self, block: u32) -> u64 {
        self.large - u64::from(u64::from(block) >= self.large_blocks)
    }

    /// Returns the number of symbols before a block.
    fn first(&self, block: u32) -> u64 {
        let block = u64::from(block);
        block * self.large - block.saturating_sub(self.large_blocks)
    }
}

impl Object {
    /// Creates the object of a file.
    ///
    /// # Errors
    /// If the file is too long for its name or for numbers of blocks.
    fn new(file: &NamedFile, path: impl Fn() -> PathBuf, segment: usize) -> Result<Object, Error> {
        let (name, size) = (file.name.clone(), file.size);
        let blocks = Blocks::new(size.div_ceil(segment as u64));
        if blocks.count > PayloadId::MAX_BLOCKS || size >> 48 != 0 {
            let most = PayloadId::MAX_BLOCKS * u64::from(MAX_BLOCK) * segment as u64;
            return Err(NormError::TooLong { path: path(), bytes: size, most }.into());
        }
        if name.len() > segment {
            return Err(NormError::LongName { path: path(), bytes: name.len(), most: segment }.into());
        }
        Ok(Object { name, size, blocks })
    }

    /// Returns the number of blocks.
    pub(super) fn block_count(&self) -> u32 {
        self.blocks.count as u32 // at most 2^24
    }

    /// Returns the number of source symbols of a block.
    pub(super) fn block_len(&self, block: u32) -> u8 {
        self.blocks.len(block) as u8 // at most `MAX_BLOCK`
    }

    /// Returns the position of the last source symbol; that of the first one if the file is empty.
    pub(super) fn end(&self) -> PayloadId {
        match self.block_count().checked_sub(1) {
            Some(block) => PayloadId { block, symbol: self.block_len(block) - 1 },
            None => PayloadId { block: 0, symbol: 0 },
        }
    }
}

/// The files of a session.
pub(super) struct Files {
    pub(super) objects: Vec<Object>,
    pub(super) fec: Fec,
    segment: usize,
    code: Code,
    content: NamedFiles,
    loaded: VecDeque<Loaded>,
}

struct Loaded {
    at: (usize, u32),
    bytes: Vec<u8>,
}

impl Files {
    /// Finds the files to send, and the reasons for which others are not sent.
    pub(super) fn look(paths: &[PathBuf], fec: Fec, segment: usize) -> Result<(Files, Vec<String>), Error> {
        let (content, warnings) = NamedFiles::open(paths, "NORM")?;
        let object = |(number, file)| Object::new(file, || content.path(number), segment);
        let objects = content.files().iter().enumerate().map(object).collect::<Result<_, _>>()?;
        let code = Code::new(MAX_BLOCK, PARITY);
        Ok((Files { objects, fec, segment, code, content, loaded: VecDeque::new() }, warnings))
    }

    /// Returns the object transmission information of an object.
    pub(super) fn fti(&self, object: usize) -> Fti {
        let size = self.objects[object].size;
        Fti { size, segment: self.segment as u16, max_block: MAX_BLOCK, parity: PARITY }
    }

    /// Returns the position of the last symbol.
    pub(super) fn end(&self) -> Item {
        let last = self.objects.len() - 1;
        let id = self.objects[last].end();
        Item { fec: self.fec, object: last as u16, id, block_len: self.stated_len(last, id.block) }
    }

    /// Returns the number of source symbols of a block as packets state it; 0 if they do not.
    pub(super) fn stated_len(&self, object: usize, block: u32) -> u16 {
        match self.fec {
            Fec::SmallBlock if self.objects[object].size > 0 => self.objects[object].block_len(block).into(),
            _ => 0,
        }
    }

    /// Returns the total size of all files, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.size).sum()
    }

    /// Returns the total number of source symbols.
    pub(super) fn symbols(&self) -> u64 {
        self.objects.iter().map(|object| object.size.div_ceil(self.segment as u64)).sum()
    }

    /// Returns the length of a symbol, in bytes.
    pub(super) fn symbol_len(&self, object: usize, id: PayloadId) -> usize {
        let object = &self.objects[object];
        if id.symbol >= object.block_len(id.block) {
            return self.segment;
        }
        let before = (object.blocks.first(id.block) + u64::from(id.symbol)) * self.segment as u64;
        (object.size - before).min(self.segment as u64) as usize
    }

    /// Appends a source symbol or a parity symbol.
    pub(super) fn put(&mut self, object: usize, id: PayloadId, out: &mut Vec<u8>) -> Result<(), Error> {
        let len = self.objects[object].block_len(id.block);
        let symbol_len = self.symbol_len(object, id);
        self.load(object, id.block)?;
        let Some(loaded) = self.loaded.front() else { return Ok(()) };
        match id.symbol.checked_sub(len) {
            Some(parity) => self.code.parity(&loaded.bytes, self.segment, parity, out),
            None => {
                let from = usize::from(id.symbol) * self.segment;
                out.extend_from_slice(&loaded.bytes[from..from + symbol_len]);
            }
        }
        Ok(())
    }

    /// Moves a block to the front of the loaded blocks; reads it if it is not loaded.
    fn load(&mut self, object: usize, block: u32) -> Result<(), Error> {
        let at = (object, block);
        if let Some(found) = self.loaded.iter().position(|loaded| loaded.at == at) {
            self.loaded.swap(0, found);
            return Ok(());
        }
        let from = &self.objects[object];
        let offset = from.blocks.first(block) * self.segment as u64;
        let full = from.blocks.len(block) * self.segment as u64;
        let mut bytes = vec![0; full.min(from.size - offset) as usize];
        self.content.read(object, offset, &mut bytes)?;
        self.loaded.truncate(LOADED - 1);
        self.loaded.push_front(Loaded { at, bytes });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_differ_by_at_most_one_symbol_and_cover_the_file() {
        for symbols in [1, 63, 64, 65, 127, 128, 129, 215, 1_000, 100_003] {
            let blocks = Blocks::new(symbols);
            let lens: Vec<u64> = (0..blocks.count as u32).map(|block| blocks.len(block)).collect();
            assert_eq!(lens.iter().sum::<u64>(), symbols);
            assert!(lens.iter().all(|len| *len <= MAX_BLOCK.into() && *len + 1 >= lens[0]), "{lens:?}");
            let mut before = 0;
            for (block, len) in lens.iter().enumerate() {
                assert_eq!(blocks.first(block as u32), before);
                before += len;
            }
        }
        // The division that libnorm's sender uses for 300,000 bytes in symbols of 1,400 bytes.
        assert_eq!([0, 2, 3].map(|block| Blocks::new(215).len(block)), [54, 54, 53]);
        assert_eq!(Blocks::new(0).count, 0);
    }
}
