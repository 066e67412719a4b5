//! Division of the object stream into blocks.

use faircast_fec::{ALIGNMENT, FecError, Shape};
use std::fmt;
use std::ops::Range;

/// Bytes of the trailer at the end of each block. The trailer contains the length of the block's data and the hash of the data.
pub const TRAILER: usize = 36;

/// Maximum number of source symbols of a block. It bounds the memory of a receiver, which holds several incomplete blocks at a
/// time.
pub const MAX_SYMBOLS: u16 = 1024;

/// Largest manifest, in bytes.
pub const MAX_MANIFEST_LEN: u32 = 256 << 20;

/// Bytes of memory that the hash of one block takes.
const HASH_COST: u64 = 33;

/// Bytes of memory that block hashes may always take. For large content, block hashes may take the length of the content divided
/// by `PART_FOR_HASHES`.
const LITTLE_MEMORY: u64 = 64 << 20;
const PART_FOR_HASHES: u64 = 16;

/// A BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

/// Identifier of a transfer, computed from the manifest and the geometry: equal manifests with equal geometry have the same
/// identifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId(pub [u8; 16]);

/// Division of an object stream into blocks. All fields are announced to the receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Length of the object stream in bytes; `None` for a stream that has not ended.
    pub stream_len: Option<u64>,
    /// Length of the manifest in bytes. The manifest is at the beginning of the object stream.
    pub manifest_len: u32,
    /// Bytes per symbol, "T".
    pub symbol_size: u16,
    /// Number of source symbols of a full block: the maximum of "K".
    pub symbols_per_block: u16,
}

/// Reason why a geometry is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// Symbol size or count are out of range.
    #[error(
        "blocks of {symbols} symbols of {symbol_size} bytes; use 1 to {MAX_SYMBOLS} symbols whose size is a multiple of {ALIGNMENT} bytes"
    )]
    Symbols {
        /// Symbols per block.
        symbols: u16,
        /// Bytes per symbol.
        symbol_size: u16,
    },
    /// The blocks are too short: the trailer leaves no room for data.
    #[error(
        "blocks of {0} bytes have no room for data and {TRAILER} bytes of trailer; use larger or more symbols"
    )]
    NoRoom(usize),
    /// The manifest is empty, too large or longer than the object stream.
    #[error(
        "the manifest has {0} bytes; it must have 1 to {MAX_MANIFEST_LEN} bytes and must not be longer than the object"
    )]
    ManifestLen(u32),
    /// The blocks are so small that their hashes, which a receiver holds in memory, take too much memory compared with the
    /// content.
    #[error("an object of {len} bytes in {blocks} blocks, whose hashes alone take {} bytes; use larger blocks", .blocks * HASH_COST)]
    BlocksTooSmall {
        /// Bytes of the object.
        len: u64,
        /// Number of blocks.
        blocks: u64,
    },
    /// The object has more blocks than can be numbered with 32 bits.
    #[error("an object of {0} bytes takes too many blocks; use larger blocks")]
    TooManyBlocks(u64),
}

impl Geometry {
    /// Checks all conditions that the other functions of the geometry require.
    ///
    /// # Errors
    /// A [`GeometryError`] names the value that is out of range.
    pub fn check(&self) -> Result<(), GeometryError> {
        let symbols =
            GeometryError::Symbols { symbols: self.symbols_per_block, symbol_size: self.symbol_size };
        if self.symbols_per_block > MAX_SYMBOLS {
            return Err(symbols);
        }
        let shape = Shape::new(self.symbols_per_block, self.symbol_size).map_err(|_: FecError| symbols)?;
        if shape.block_len() <= TRAILER {
            return Err(GeometryError::NoRoom(shape.block_len()));
        }
        let beyond_stream = self.stream_len.is_some_and(|len| len < u64::from(self.manifest_len));
        if self.manifest_len == 0 || self.manifest_len > MAX_MANIFEST_LEN || beyond_stream {
            return Err(GeometryError::ManifestLen(self.manifest_len));
        }
        match self.stream_len {
            // The largest block number is reserved (`faircast_core::packet::Payload::NONE`).
            Some(len) if len.div_ceil(self.capacity()) >= u64::from(u32::MAX) => {
                Err(GeometryError::TooManyBlocks(len))
            }
            Some(len) => {
                let blocks = len.div_ceil(self.capacity());
                let is_much = blocks * HASH_COST > LITTLE_MEMORY.max(len / PART_FOR_HASHES);
                if is_much { Err(GeometryError::BlocksTooSmall { len, blocks }) } else { Ok(()) }
            }
            None => Ok(()),
        }
    }

    /// Returns the number of bytes of the object stream in a full block.
    pub const fn capacity(&self) -> u64 {
        self.symbols_per_block as u64 * self.symbol_size as u64 - TRAILER as u64
    }

    /// Returns the number of blocks; `None` while the length of the object stream is unknown.
    pub const fn blocks(&self) -> Option<u32> {
        match self.stream_len {
            Some(len) => Some(len.div_ceil(self.capacity()) as u32), // fits: see `check`
            None => None,
        }
    }

    /// Returns the number of blocks that hold a part of the manifest; these are the first blocks.
    pub const fn manifest_blocks(&self) -> u32 {
        (self.manifest_len as u64).div_ceil(self.capacity()) as u32
    }

    /// Returns the range of bytes of the object stream in block `index`; an empty range for a block beyond the end. While the
    /// length of the object stream is unknown, every block counts as full.
    pub fn range(&self, index: u32) -> Range<u64> {
        let end = self.stream_len.unwrap_or(u64::MAX);
        let start = u64::from(index) * self.capacity();
        start.min(end)..(start + self.capacity()).min(end)
    }

    /// Returns the number of bytes of the object stream in block `index`; 0 for a block beyond the end. While the length of the
    /// object stream is unknown, every block counts as full.
    pub fn block_len(&self, index: u32) -> u32 {
        let range = self.range(index);
        (range.end - range.start) as u32 // at most a block
    }

    /// Returns the number of source symbols ("K") of block `index`. While the length of the object stream is unknown, every block
    /// counts as full.
    pub fn symbols(&self, index: u32) -> u16 {
        symbols_for(self.block_len(index) as usize, self.symbol_size)
    }

    /// Returns the shape of block `index` for the erasure code.
    ///
    /// # Errors
    /// When [`Geometry::check`] refuses the geometry.
    pub fn shape(&self, index: u32) -> Result<Shape, FecError> {
        Shape::new(self.symbols(index), self.symbol_size)
    }

    /// Returns the number of the block that contains the byte at this offset of the object stream.
    pub const fn block_of(&self, offset: u64) -> u32 {
        (offset / self.capacity()) as u32
    }

    /// Returns the geometry encoded as 17 bytes, for hashes and journals.
    pub(crate) fn to_bytes(self) -> [u8; 17] {
        let mut bytes = [0; 17];
        bytes[0] = u8::from(self.stream_len.is_some());
        bytes[1..9].copy_from_slice(&self.stream_len.unwrap_or(0).to_le_bytes());
        bytes[9..13].copy_from_slice(&self.manifest_len.to_le_bytes());
        bytes[13..15].copy_from_slice(&self.symbol_size.to_le_bytes());
        bytes[15..17].copy_from_slice(&self.symbols_per_block.to_le_bytes());
        bytes
    }

    /// Inverts [`Geometry::to_bytes`].
    pub(crate) fn from_bytes(bytes: [u8; 17]) -> Geometry {
        let [known, a, b, c, d, e, f, g, h, m0, m1, m2, m3, t0, t1, k0, k1] = bytes;
        let stream_len = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Geometry {
            stream_len: (known == 1).then_some(stream_len),
            manifest_len: u32::from_le_bytes([m0, m1, m2, m3]),
            symbol_size: u16::from_le_bytes([t0, t1]),
            symbols_per_block: u16::from_le_bytes([k0, k1]),
        }
    }
}

/// Returns the number of source symbols of a block with `len` bytes of data.
pub const fn symbols_for(len: usize, symbol_size: u16) -> u16 {
    (len + TRAILER).div_ceil(symbol_size as usize) as u16
}

impl TransferId {
    /// Returns the identifier of the transfer with this manifest and geometry. The identifier of a stream is computed without its
    /// length, and does not change when the length becomes known.
    pub fn of(manifest: &[u8], geometry: &Geometry) -> TransferId {
        let mut hasher = blake3::Hasher::new_derive_key("faircast 2026 transfer id");
        hasher.update(&geometry.to_bytes()).update(manifest);
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        TransferId(id)
    }
}

impl fmt::Display for TransferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TransferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransferId({self})")
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(stream_len: u64) -> Geometry {
        Geometry { stream_len: Some(stream_len), manifest_len: 10, symbol_size: 16, symbols_per_block: 4 }
    }

    #[test]
    fn blocks_cover_the_stream_without_gaps() {
        for len in 10..200 {
            let geometry = geometry(len);
            let blocks = geometry.blocks().expect("the length is known");
            let mut at = 0;
            for index in 0..blocks {
                let range = geometry.range(index);
                assert_eq!(range.start, at);
                assert!(range.end > at);
                assert!((range.start..range.end).all(|offset| geometry.block_of(offset) == index));
                at = range.end;
            }
            assert_eq!(at, len);
            assert_eq!(geometry.block_len(blocks), 0);
        }
    }

    #[test]
    fn last_block_has_only_the_necessary_symbols() {
        let geometry = geometry(28 + 1);
        assert_eq!((geometry.symbols(0), geometry.symbols(1)), (4, 3)); // 37 bytes in 16-byte symbols
    }

    #[test]
    fn blocks_whose_hashes_take_too_much_memory_are_refused() {
        let small = Geometry { symbol_size: 40, symbols_per_block: 1, ..geometry(2 << 30) };
        let blocks = (2u64 << 30).div_ceil(4);
        assert_eq!(small.check(), Err(GeometryError::BlocksTooSmall { len: 2 << 30, blocks }));
        assert!(
            GeometryError::BlocksTooSmall { len: 2 << 30, blocks }.to_string().contains("17716740096 bytes")
        );
        let usual = Geometry { symbol_size: 1400, symbols_per_block: 64, ..geometry(100 << 40) };
        assert_eq!(usual.check(), Ok(()));
        assert_eq!(Geometry { symbol_size: 40, symbols_per_block: 1, ..geometry(4 << 20) }.check(), Ok(()));
    }

    #[test]
    fn stream_of_unknown_length_has_full_blocks() {
        let open = Geometry { stream_len: None, ..geometry(0) };
        assert_eq!((open.blocks(), open.block_len(1_000_000), open.symbols(7)), (None, 28, 4));
    }

    #[test]
    fn invalid_geometry_is_refused() {
        let good = geometry(100);
        assert_eq!(good.check(), Ok(()));
        let bad = |change: fn(&mut Geometry)| {
            let mut geometry = good;
            change(&mut geometry);
            geometry.check().is_err()
        };
        assert!(bad(|g| g.symbol_size = 15));
        assert!(bad(|g| g.symbols_per_block = 0));
        assert!(bad(|g| g.symbols_per_block = 2));
        assert!(bad(|g| g.manifest_len = 0));
        assert!(bad(|g| g.manifest_len = u32::MAX));
        assert!(bad(|g| g.stream_len = Some(9)));
        assert!(bad(|g| g.stream_len = Some(u64::MAX)));
    }

    #[test]
    fn geometry_round_trips_as_bytes() {
        let open = Geometry { stream_len: None, ..geometry(0) };
        assert_eq!(Geometry::from_bytes(open.to_bytes()), open);
        assert_eq!(Geometry::from_bytes(geometry(77).to_bytes()), geometry(77));
    }

    #[test]
    fn transfer_id_depends_on_manifest_and_geometry() {
        let id = TransferId::of(b"manifest", &geometry(100));
        assert_eq!(id, TransferId::of(b"manifest", &geometry(100)));
        assert_ne!(id, TransferId::of(b"Manifest", &geometry(100)));
        assert_ne!(id, TransferId::of(b"manifest", &geometry(101)));
    }
}
