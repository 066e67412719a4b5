//! Erasure codes behind one trait.
//!
//! A block is `K` source symbols of `T` bytes. The source symbols travel as they are (symbols
//! `0..K`); any further symbol is a repair symbol that serves every receiver alike. A receiver
//! that holds `K` symbols, whichever they are, almost always has the block.
//!
//! | module | code |
//! |---|---|
//! | [`raptorq`] | RaptorQ (RFC 6330), the default: practically without end, any `K` up to 56,403 |

mod octet;
pub mod raptorq;

pub use crate::raptorq::{BlockEncoder, RaptorQ, decode};

/// Largest number of source symbols in a block (RFC 6330, 5.1.2: `K'_max`). Such a block takes seconds and hundreds of megabytes; a
/// format that can choose has far smaller ones.
pub const MAX_SYMBOLS: u16 = 56_403;

/// Symbol sizes are multiples of this many bytes.
pub const ALIGNMENT: u16 = 8;

/// Symbol ids end below this: RFC 6330, 3.2 gives them 24 bits, and the padding of a block
/// (at most 559 symbols) needs room too.
pub const MAX_ESI: u32 = (1 << 24) - 1024;

/// The shape of a block: `K` source symbols of `T` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    symbols: u16,
    symbol_size: u16,
}

/// Why a block or symbol cannot be made.
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
        /// `K * T`.
        expected: usize,
        /// Given value.
        found: usize,
    },
    /// The id is not that of a repair symbol.
    #[error("{esi} is not a repair symbol of a block of {symbols}; repair symbols are {symbols} to {}", MAX_ESI - 1)]
    NotARepair {
        /// Requested symbol.
        esi: u32,
        /// `K`.
        symbols: u16,
    },
    /// The buffer for one symbol is not `T` bytes long.
    #[error("room for {found} bytes, but a symbol has {expected}")]
    Room {
        /// `T`.
        expected: usize,
        /// Given value.
        found: usize,
    },
}

/// An erasure code.
pub trait ErasureCode {
    /// Makes repair symbols of one block.
    type Encoder: RepairSource;

    /// Takes a block for encoding; the work is deferred until the first repair is requested.
    ///
    /// # Errors
    /// [`FecError::BlockLength`] when the block is not `K * T` bytes long.
    fn encoder(&self, shape: Shape, block: Vec<u8>) -> Result<Self::Encoder, FecError>;

    /// The `K * T` bytes of the block, or `None` when these symbols do not suffice: add one more
    /// and call again. Symbols that are repeated, out of range or not `T` bytes long are passed over.
    fn decode(&self, shape: Shape, symbols: &mut dyn Iterator<Item = (u32, &[u8])>) -> Option<Vec<u8>>;
}

/// The repair symbols of one block.
pub trait RepairSource {
    /// Write repair symbol `esi` (`K` or above) into `out`, which is `T` bytes long.
    ///
    /// # Errors
    /// [`FecError::NotARepair`] and [`FecError::Room`].
    fn repair(&mut self, esi: u32, out: &mut [u8]) -> Result<(), FecError>;

    /// Append the repair symbols `first..first + count` to `out`, one after the other.
    ///
    /// # Errors
    /// [`FecError::NotARepair`] when one of them is not a repair symbol; `out` is unchanged then.
    fn repair_batch(&mut self, first: u32, count: u32, out: &mut Vec<u8>) -> Result<(), FecError>;
}

impl Shape {
    /// The shape of a block of `symbols` source symbols of `symbol_size` bytes each.
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

    /// Source symbols, "K" of RFC 6330.
    pub const fn symbols(self) -> u16 {
        self.symbols
    }

    /// Bytes per symbol, "T" of RFC 6330.
    pub const fn symbol_size(self) -> u16 {
        self.symbol_size
    }

    /// Bytes of the whole block.
    pub const fn block_len(self) -> usize {
        self.symbols as usize * self.symbol_size as usize
    }
}

#[cfg(test)]
mod tests;
