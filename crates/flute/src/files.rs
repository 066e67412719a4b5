//! A source's files: search, description, and reading block by block.

use crate::codec::{Blocks, Fec, File, Oti, Params, PayloadId};
use crate::error::AlcError;
use faircast_fec::{BlockEncoder, MAX_SYMBOLS, MIN_RAPTOR, RepairSource, Shape};
use faircast_transport::error::Error;
use faircast_transport::object::{NamedFile, NamedFiles};
use md5::{Digest, Md5};
use std::path::PathBuf;

/// Number of source symbols of a block without a code. Such blocks only serve to number the symbols.
const NO_CODE_BLOCK: u32 = 1_024;
/// Number of source symbols of a block with Raptor or RaptorQ, as in the native format; longer files have longer blocks.
const CODED_BLOCK: u64 = 256;
/// Maximum number of source symbols of a block with Raptor: its decoder takes time proportional to the square, 7 ms for this number.
const RAPTOR_BLOCK: u64 = 1_024;
/// Maximum number of blocks of a file with Raptor: this number has 16 bits in RFC 5053, 3.2.3.
const RAPTOR_BLOCKS: u64 = 65_535;
/// Maximum number of blocks of a file: this number has eight bits in RFC 6330, 3.3.3.
const RAPTORQ_BLOCKS: u64 = 255;
/// Maximum number of bytes of a block with a code. Source and receivers hold one block in memory. While they encode or decode
/// it, they need several times the memory of the block.
pub(super) const MAX_CODED: u64 = 128 << 20;

/// A file to send.
#[derive(Debug)]
pub(super) struct Object {
    /// Entry of the file in the table.
    pub file: File,
    /// Division and coding of the file.
    pub oti: Oti,
    pub blocks: Blocks,
}

/// The files to send, and the files that are not sent, with the reason.
#[derive(Debug)]
pub(super) struct Found {
    pub objects: Vec<Object>,
    pub content: NamedFiles,
    pub warnings: Vec<String>,
}

impl Found {
    /// Finds the files to send and reads each once for its MD5.
    pub fn look(paths: &[PathBuf], fec: Fec, symbol_size: u16) -> Result<Found, Error> {
        let (mut content, warnings) = NamedFiles::open(paths, "FLUTE")?;
        let mut objects = Vec::new();
        for (number, file) in content.files().to_vec().into_iter().enumerate() {
            objects.push(Object::new(number, &file, &mut content, fec, symbol_size)?);
        }
        Ok(Found { objects, content, warnings })
    }
}

impl Object {
    fn new(
        number: usize,
        found: &NamedFile,
        content: &mut NamedFiles,
        fec: Fec,
        symbol_size: u16,
    ) -> Result<Object, Error> {
        let size = found.size;
        let most = most_bytes(fec, symbol_size);
        let oti = oti_of(fec, size, symbol_size);
        let too_long = || AlcError::TooLong {
            path: content.path(number),
            bytes: size,
            fec: fec.name(),
            most,
            others: other_codes(size, symbol_size),
        };
        let blocks = oti.blocks().filter(|_| size <= most).ok_or_else(too_long)?;
        let file = File {
            location: super::names::uri_of(&found.name),
            toi: number as u128 + 1,
            content_length: Some(size),
            transfer_length: Some(size),
            content_type: Some("application/octet-stream".into()),
            content_encoding: None,
            md5: Some(md5_of(size, |at, into| content.read(number, at, into))?),
            oti: Some(oti),
        };
        Ok(Object { file, oti, blocks })
    }
}

/// Returns how an object of this length is divided and coded.
fn oti_of(fec: Fec, bytes: u64, symbol_size: u16) -> Oti {
    let of = |symbol_size: u16, params| Oti { transfer_length: bytes, symbol_size, params };
    let symbols = bytes.div_ceil(symbol_size.into());
    match fec {
        // Neither code can express a file without bytes, which has no block, and Raptor has at least four symbols in a block.
        Fec::RaptorQ if bytes > 0 => {
            let per_block = symbols.div_ceil(RAPTORQ_BLOCKS).max(CODED_BLOCK);
            let blocks = u8::try_from(symbols.div_ceil(per_block)).unwrap_or(u8::MAX);
            of(symbol_size, Params::RaptorQ { blocks, sub_blocks: 1, alignment: 4 })
        }
        Fec::Raptor if bytes >= u64::from(MIN_RAPTOR) => {
            let (symbol_size, alignment) = match bytes / u64::from(MIN_RAPTOR) {
                _ if symbols >= u64::from(MIN_RAPTOR) => (symbol_size, 4),
                quarter @ ..4 => (quarter as u16, 1),
                quarter => ((quarter / 4 * 4) as u16, 4), // at most `symbol_size`
            };
            let symbols = bytes.div_ceil(symbol_size.into());
            let per_block = symbols.div_ceil(RAPTOR_BLOCKS).max(CODED_BLOCK);
            let blocks = u16::try_from(symbols.div_ceil(per_block)).unwrap_or(u16::MAX);
            of(symbol_size, Params::Raptor { blocks, sub_blocks: 1, alignment })
        }
        _ => {
            let per_block = u32::try_from(symbols.div_ceil(1 << 16)).unwrap_or(u32::MAX).max(NO_CODE_BLOCK);
            of(symbol_size, Params::NoCode { max_block: per_block.min(1 << 16) })
        }
    }
}

/// Returns the maximum length of a file with this code, in bytes.
fn most_bytes(fec: Fec, symbol_size: u16) -> u64 {
    let size = u64::from(symbol_size);
    let symbols = match fec {
        Fec::Raptor => RAPTOR_BLOCKS * RAPTOR_BLOCK.min(MAX_CODED / size),
        Fec::RaptorQ => RAPTORQ_BLOCKS * u64::from(MAX_SYMBOLS).min(MAX_CODED / size),
        _ => 1 << 32,
    };
    symbols * size
}

/// Names the codes that support a file of this length.
fn other_codes(bytes: u64, symbol_size: u16) -> String {
    let known =
        [Fec::RaptorQ, Fec::Raptor, Fec::NoCode].map(|fec| (fec.name(), most_bytes(fec, symbol_size)));
    let fit = known.iter().filter(|(_, most)| *most >= bytes);
    fit.map(|(name, most)| format!(", or the code {name} (at most {most})")).collect()
}

/// Returns the shape of a block of this number of symbols; `None` if the object has no code, or if the shape is not supported.
pub(super) fn shape(oti: &Oti, symbols: u32) -> Option<Shape> {
    let (symbols, size) = (u16::try_from(symbols).ok()?, oti.symbol_size);
    let shape = match oti.params {
        Params::Raptor { .. } => Shape::raptor(symbols, size).ok()?,
        Params::RaptorQ { .. } => Shape::new(symbols, size).ok()?,
        _ => return None,
    };
    (shape.block_len() as u64 <= MAX_CODED).then_some(shape)
}

/// Returns the MD5 of this number of bytes, which `read` reads from a position.
pub(super) fn md5_of<E>(
    len: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<[u8; 16], E> {
    let (mut hasher, mut buffer, mut at) = (Md5::new(), vec![0; 1 << 18], 0);
    while at < len {
        let part = &mut buffer[..(len - at).min(1 << 18) as usize];
        read(at, part)?;
        hasher.update(&*part);
        at += part.len() as u64;
    }
    Ok(hasher.finalize().into())
}

/// A symbol to be sent, and its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SymbolPlace {
    pub object: usize,
    pub id: PayloadId,
}

/// Number of passes over all blocks in each round after the first, with an erasure code. A receiver that lacks a few symbols of
/// every block thus does not have to wait for a whole round.
const TURNS: u64 = 8;

/// Cycles through all blocks of all files. With a code each pass sends new symbols: first the source symbols, then further repair
/// symbols of every block.
#[derive(Debug)]
pub(super) struct Carousel {
    content: NamedFiles,
    object: usize,
    block: u32,
    /// Number of symbols of this block sent in this pass.
    sent: u32,
    /// Number of completed passes.
    turn: u64,
    coded: bool,
    current: Option<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    at: (usize, u32),
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Plain(Vec<u8>),
    Coded(Box<BlockEncoder>),
}

impl Carousel {
    pub fn new(content: NamedFiles) -> Carousel {
        Carousel { content, object: 0, block: 0, sent: 0, turn: 0, coded: false, current: None }
    }

    /// Returns the number of completed rounds.
    pub const fn rounds(&self) -> u64 {
        match self.coded {
            true if self.turn > 0 => 1 + (self.turn - 1) / TURNS,
            _ => self.turn,
        }
    }

    /// Appends the next symbol to `out`; returns `None` if all files are empty.
    pub fn next(&mut self, objects: &[Object], out: &mut Vec<u8>) -> Result<Option<SymbolPlace>, Error> {
        if objects.iter().all(|object| object.blocks.is_empty()) {
            self.turn += 1;
            return Ok(None);
        }
        while objects[self.object].blocks.is_empty() {
            self.next_object(objects.len());
        }
        let object = &objects[self.object];
        let len = object.blocks.len(self.block);
        let shape = shape(&object.oti, len);
        self.coded |= shape.is_some();
        let (first, count) = shape.map_or((0, len), |shape| turn_of(self.turn, shape));
        let symbol = first + self.sent;
        let place = SymbolPlace { object: self.object, id: PayloadId { block: self.block, symbol } };
        self.load(objects)?;
        self.current.as_mut().expect("it was loaded just now").put(object, symbol, out);
        self.sent += 1;
        if self.sent == count {
            (self.sent, self.block) = (0, self.block + 1);
            if self.block == object.blocks.count() {
                self.next_object(objects.len());
            }
        }
        Ok(Some(place))
    }

    fn next_object(&mut self, count: usize) {
        (self.block, self.sent) = (0, 0);
        self.object += 1;
        if self.object == count {
            self.object = 0;
            self.turn += 1;
        }
    }

    /// Loads the bytes of the present block.
    fn load(&mut self, objects: &[Object]) -> Result<(), Error> {
        let at = (self.object, self.block);
        if self.current.as_ref().is_some_and(|loaded| loaded.at == at) {
            return Ok(());
        }
        let object = &objects[self.object];
        let size = u64::from(object.oti.symbol_size);
        let offset = object.blocks.first(self.block) * size;
        let full = u64::from(object.blocks.len(self.block)) * size;
        let mut bytes = vec![0; full as usize];
        let there = full.min(object.oti.transfer_length - offset) as usize;
        self.content.read(self.object, offset, &mut bytes[..there])?;
        let bytes = match shape(&object.oti, object.blocks.len(self.block)) {
            Some(shape) => {
                Bytes::Coded(Box::new(BlockEncoder::new(shape, bytes).expect("the block is whole")))
            }
            None => {
                bytes.truncate(there);
                Bytes::Plain(bytes)
            }
        };
        self.current = Some(Loaded { at, bytes });
        Ok(())
    }
}

impl Loaded {
    /// Appends a symbol.
    fn put(&mut self, object: &Object, symbol: u32, out: &mut Vec<u8>) {
        let size = usize::from(object.oti.symbol_size);
        match &mut self.bytes {
            Bytes::Plain(bytes) => {
                let from = symbol as usize * size;
                out.extend_from_slice(&bytes[from..bytes.len().min(from + size)]);
            }
            Bytes::Coded(block) => match block.source(symbol) {
                Some(bytes) => out.extend_from_slice(bytes),
                None => block.repair_batch(symbol, 1, out).expect("numbers of symbols stay in range"),
            },
        }
    }
}

/// Returns the first symbol and the number of symbols in this pass for a block. When the code has no further symbols, the sequence
/// starts again.
fn turn_of(turn: u64, shape: Shape) -> (u32, u32) {
    let len = u32::from(shape.symbols());
    let count = len.div_ceil(TURNS as u32);
    let turns = u64::from((shape.max_esi() - len) / count);
    match turn % (turns + 1) {
        0 => (0, len),
        later => (len + (later - 1) as u32 * count, count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_send_new_symbols_until_the_code_has_no_more() {
        for of in [Shape::new, Shape::raptor] {
            let shape = of(100, 8).expect("a shape");
            assert_eq!([0, 1, 2].map(|turn| turn_of(turn, shape)), [(0, 100), (100, 13), (113, 13)]);
            let turns = u64::from((shape.max_esi() - 100) / 13);
            assert_eq!(turn_of(turns + 1, shape), (0, 100));
            let ends = (1..=turns).map(|turn| turn_of(turn, shape)).map(|(first, count)| first + count);
            assert!(ends.max() <= Some(shape.max_esi()));
        }
        let single = Shape::new(1, 8).expect("a shape");
        assert_eq!([0, 1, 2].map(|turn| turn_of(turn, single)), [(0, 1), (1, 1), (2, 1)]);
    }

    #[test]
    fn every_supported_length_can_be_divided_into_blocks() {
        for (fec, most) in [(Fec::RaptorQ, 255 * 56_403), (Fec::Raptor, 65_535 * 1_024)] {
            for symbols in [1, 255, 256, 257, 65_280, 65_281, 255 * 1_024, 255 * 1_024 + 1, most] {
                let oti = oti_of(fec, symbols * 8, 8);
                let blocks = oti.blocks().expect("it can be cut");
                assert!(symbols * 8 <= most_bytes(fec, 8), "{fec:?}: {symbols}");
                for block in [0, blocks.count() - 1] {
                    assert!(shape(&oti, blocks.len(block)).is_some(), "{fec:?}: {symbols}");
                }
            }
        }
        // Datagrams for Ethernet and for the loopback interface.
        for (fec, symbol_size, gigabytes) in
            [(Fec::RaptorQ, 1_424, 20.4), (Fec::RaptorQ, 65_000, 34.2), (Fec::Raptor, 1_424, 95.6)]
        {
            let bytes = most_bytes(fec, symbol_size) as f64 / 1e9;
            assert!((bytes - gigabytes).abs() < 0.1, "{fec:?}: {bytes} GB in symbols of {symbol_size}");
        }
        for symbols in [0, 1, 1_024, 1_025, 1 << 26, (1 << 26) + 1, 1 << 32] {
            let blocks = oti_of(Fec::NoCode, symbols * 8, 8).blocks().expect("it can be cut");
            assert!(
                symbols * 8 <= most_bytes(Fec::NoCode, 8)
                    && blocks.len(0) <= 1 << 16
                    && blocks.count() <= 1 << 16,
                "{symbols}"
            );
        }
    }

    #[test]
    fn short_files_with_raptor_have_at_least_four_symbols() {
        for bytes in (4..300).chain([1_423, 1_424, 4_271, 4_272, 4_273, 5_000]) {
            let oti = oti_of(Fec::Raptor, bytes, 1_424);
            let Params::Raptor { blocks: 1, sub_blocks: 1, alignment } = oti.params else {
                panic!("{oti:?}")
            };
            assert!(oti.symbol_size <= 1_424 && oti.symbol_size.is_multiple_of(alignment.into()), "{oti:?}");
            assert!((4..20).contains(&oti.blocks().expect("it can be cut").len(0)), "{oti:?}");
        }
        assert!((0..4).all(|bytes| oti_of(Fec::Raptor, bytes, 1_424).fec() == Fec::NoCode));
    }

    #[test]
    fn error_about_a_long_file_names_codes_that_support_it() {
        let codes = other_codes(21_000_000_000, 1_424);
        assert_eq!(
            codes,
            ", or the code raptor (at most 95561564160), or the code none (at most 6116033429504)"
        );
        assert_eq!(other_codes(u64::MAX, 1_424), "");
    }
}
