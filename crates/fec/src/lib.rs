//! Erasure codes behind a common trait.
//!
//! A block is `K` source symbols of `T` bytes. Source symbols (symbols `0..K`) are sent unchanged. All other symbols are repair
//! symbols: each can replace any missing symbol. Any `K` different symbols almost always suffice to decode the block.
//!
//! | module | code |
//! |---|---|
//! | [`raptorq`] | RaptorQ (RFC 6330), the default: practically unlimited repair symbols, any `K` up to 56,403 |

mod octet;
pub mod raptorq;

pub use crate::raptorq::{BlockEncoder, RaptorQ, decode};

/// Largest number of source symbols in a block (RFC 6330, 5.1.2: `K'_max`). Coding such a block takes seconds and hundreds of
/// megabytes. A format should use far smaller blocks.
pub const MAX_SYMBOLS: u16 = 56_403;

/// All symbol sizes are multiples of this number of bytes.
pub const ALIGNMENT: u16 = 8;

/// Upper bound (exclusive) of symbol IDs. RFC 6330, 3.2 gives symbol IDs 24 bits; the bound leaves room for the padding of a
/// block (at most 559 symbols).
pub const MAX_ESI: u32 = (1 << 24) - 1024;

/// The shape of a block: `K` source symbols of `T` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    symbols: u16,
    symbol_size: u16,
}

/// Errors of making blocks or symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FecError {
    /// `K` is out of range.
    #[error("a block of {0} symbols; use 1 to {MAX_SYMBOLS}")]
    Symbols(u16),
    /// `T` is zero or not a multiple of [`ALIGNMENT`].
    #[error("symbols of {0} bytes; use a multiple of {ALIGNMENT} above 0")]
    SymbolSize(u16),
    /// The block is not `K * T` bytes long.
    #[error("a block of {found} bytes instead of {expected}; pad it first")]
    BlockLength {
        /// Expected length, bytes: `K * T`.
        expected: usize,
        /// Actual length, bytes.
        found: usize,
    },
    /// The ID does not belong to a repair symbol.
    #[error("symbol {esi} is not a repair symbol: the block has {symbols} source symbols, so repair symbols are {symbols} to {}", MAX_ESI - 1)]
    NotARepair {
        /// Requested symbol ID.
        esi: u32,
        /// Number of source symbols, `K`.
        symbols: u16,
    },
    /// The buffer for a symbol is not `T` bytes long.
    #[error("the buffer has {found} bytes, but a symbol has {expected}")]
    Room {
        /// Expected length, bytes: `T`.
        expected: usize,
        /// Actual length, bytes.
        found: usize,
    },
}

/// An erasure code.
pub trait ErasureCode {
    /// Encoder of one block.
    type Encoder: RepairSource;

    /// Returns an encoder for a block. The encoding is deferred until the first repair symbol is requested.
    ///
    /// # Errors
    /// [`FecError::BlockLength`] when the block is not `K * T` bytes long.
    fn encoder(&self, shape: Shape, block: Vec<u8>) -> Result<Self::Encoder, FecError>;

    /// Returns the `K * T` bytes of the block, or `None` if the symbols do not suffice: then call again with at least one more
    /// symbol. Symbols that are repeated, out of range or not `T` bytes long are ignored.
    fn decode(&self, shape: Shape, symbols: &mut dyn Iterator<Item = (u32, &[u8])>) -> Option<Vec<u8>>;
}

/// The repair symbols of one block.
pub trait RepairSource {
    /// Writes repair symbol `esi` (`K` or above) into `out`, which is `T` bytes long.
    ///
    /// # Errors
    /// [`FecError::NotARepair`] when `esi` is not the ID of a repair symbol, and [`FecError::Room`] when `out` is not `T` bytes
    /// long.
    fn repair(&mut self, esi: u32, out: &mut [u8]) -> Result<(), FecError>;

    /// Appends the repair symbols `first..first + count` to `out`, in order.
    ///
    /// # Errors
    /// [`FecError::NotARepair`] when the range contains an ID that does not belong to a repair symbol; `out` is then unchanged.
    fn repair_batch(&mut self, first: u32, count: u32, out: &mut Vec<u8>) -> Result<(), FecError>;
}

impl Shape {
    /// Returns the shape of a block of `symbols` source symbols of `symbol_size` bytes each.
    ///
    /// # Errors
    /// [`FecError::Symbols`] and [`FecError::SymbolSize`] when a value is out of range.
    pub const fn new(symbols: u16, symbol_size: u16) -> Result<Shape, FecError> {
        if symbols == 0 || symbols > MAX_SYMBOLS {
            return Err(FecError::Symbols(symbols));
        }
        if symbol_size == 0 || !symbol_size.is_multiple_of(ALIGNMENT) {
            return Err(FecError::SymbolSize(symbol_size));
        }
        Ok(Shape { symbols, symbol_size })
    }

    /// Returns the number of source symbols, "K" of RFC 6330.
    pub const fn symbols(self) -> u16 {
        self.symbols
    }

    /// Returns the bytes per symbol, "T" of RFC 6330.
    pub const fn symbol_size(self) -> u16 {
        self.symbol_size
    }

    /// Returns the bytes of the whole block.
    pub const fn block_len(self) -> usize {
        self.symbols as usize * self.symbol_size as usize
    }
}

#[cfg(test)]
mod tests;
