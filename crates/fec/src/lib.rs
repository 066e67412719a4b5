//! Erasure codes. The [`Shape`] of a block names its code.
//!
//! A block is `K` source symbols of `T` bytes. Source symbols (symbols `0..K`) are sent unchanged. All other symbols are repair
//! symbols: each can replace any missing symbol. Any `K` different symbols, or a few more, suffice to decode the block.
//!
//! | module | code |
//! |---|---|
//! | `raptorq` | RaptorQ (RFC 6330), the default: practically unlimited repair symbols, any `K` up to 56,403 |
//! | `raptor` | Raptor (RFC 5053): symbols with numbers of 16 bits, `K` from 4 to 8,192, two or three symbols more than `K` |

mod block;
mod gathered;
mod octet;
mod raptor;
mod raptorq;

pub use crate::block::{BlockEncoder, decode};

/// Largest number of source symbols in a block (RFC 6330, 5.1.2: `K'_max`). Coding such a block takes seconds and hundreds of
/// megabytes. A format should use far smaller blocks.
pub const MAX_SYMBOLS: u16 = 56_403;

/// All symbol sizes of RaptorQ are multiples of this number of bytes.
pub const ALIGNMENT: u16 = 8;

/// Smallest number of source symbols in a block with Raptor (RFC 5053, 5.7: the table of systematic indices).
pub const MIN_RAPTOR: u16 = 4;
/// Largest number of source symbols in a block with Raptor.
pub const MAX_RAPTOR: u16 = 8_192;

/// Upper bound (exclusive) of symbol IDs with RaptorQ. RFC 6330, 3.2 gives symbol IDs 24 bits; the bound leaves room for the padding of a
/// block (at most 559 symbols).
pub const MAX_ESI: u32 = (1 << 24) - 1024;

/// An erasure code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// RaptorQ (RFC 6330).
    RaptorQ,
    /// Raptor (RFC 5053).
    Raptor,
}

/// The shape of a block: its code, and `K` source symbols of `T` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    code: Code,
    symbols: u16,
    symbol_size: u16,
}

/// Errors of making blocks or symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FecError {
    /// `K` is out of range.
    #[error("a block of {0} symbols; use 1 to {MAX_SYMBOLS}")]
    Symbols(u16),
    /// `K` is out of range for Raptor.
    #[error("a block of {0} symbols; Raptor has blocks of {MIN_RAPTOR} to {MAX_RAPTOR}")]
    RaptorSymbols(u16),
    /// `T` is zero or, with RaptorQ, not a multiple of [`ALIGNMENT`].
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
    #[error("symbol {esi} is not a repair symbol: the block has {symbols} source symbols, so repair symbols are {symbols} to {}", .end - 1)]
    NotARepair {
        /// Requested symbol ID.
        esi: u32,
        /// Number of source symbols, `K`.
        symbols: u16,
        /// Upper bound (exclusive) of symbol IDs.
        end: u32,
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
    /// Returns the shape of a block of RaptorQ with `symbols` source symbols of `symbol_size` bytes each.
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
        Ok(Shape { code: Code::RaptorQ, symbols, symbol_size })
    }

    /// Returns the shape of a block of Raptor with `symbols` source symbols of `symbol_size` bytes each.
    ///
    /// # Errors
    /// [`FecError::RaptorSymbols`] and [`FecError::SymbolSize`] when a value is out of range.
    pub const fn raptor(symbols: u16, symbol_size: u16) -> Result<Shape, FecError> {
        if symbols < MIN_RAPTOR || symbols > MAX_RAPTOR {
            return Err(FecError::RaptorSymbols(symbols));
        }
        if symbol_size == 0 {
            return Err(FecError::SymbolSize(symbol_size));
        }
        Ok(Shape { code: Code::Raptor, symbols, symbol_size })
    }

    /// Returns the code.
    pub const fn code(self) -> Code {
        self.code
    }

    /// Returns the upper bound (exclusive) of symbol IDs.
    pub const fn max_esi(self) -> u32 {
        match self.code {
            Code::RaptorQ => MAX_ESI,
            Code::Raptor => 1 << 16, // RFC 5053, 3.1: 16 bits
        }
    }

    /// Returns the number of source symbols, "K" of both codes.
    pub const fn symbols(self) -> u16 {
        self.symbols
    }

    /// Returns the bytes per symbol, "T" of both codes.
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
