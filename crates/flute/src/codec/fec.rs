//! Erasure codes of ALC: their numbers, FEC payload IDs, object transmission information, and blocks.

use super::reader::{ParseError, Reader};

/// An erasure code, by its FEC Encoding ID (RFC 5052, 6). In FLUTE this is also the codepoint of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fec {
    /// Compact No-Code: only source symbols (RFC 5445, 3).
    NoCode,
    /// Raptor (RFC 5053).
    Raptor,
    /// Reed-Solomon over GF(2^8) (RFC 5510, 5).
    ReedSolomon,
    /// RaptorQ (RFC 6330).
    RaptorQ,
}

impl Fec {
    /// All codes.
    pub const ALL: [Fec; 4] = [Fec::NoCode, Fec::Raptor, Fec::ReedSolomon, Fec::RaptorQ];

    /// Returns the FEC Encoding ID.
    pub const fn id(self) -> u8 {
        match self {
            Fec::NoCode => 0,
            Fec::Raptor => 1,
            Fec::ReedSolomon => 5,
            Fec::RaptorQ => 6,
        }
    }

    /// Returns the code with this FEC Encoding ID.
    pub fn from_id(id: u8) -> Option<Fec> {
        Fec::ALL.into_iter().find(|fec| fec.id() == id)
    }

    /// Returns the name, as in options of programs.
    pub const fn name(self) -> &'static str {
        match self {
            Fec::NoCode => "none",
            Fec::Raptor => "raptor",
            Fec::ReedSolomon => "rs28",
            Fec::RaptorQ => "raptorq",
        }
    }
}

/// Block and symbol in a packet: four bytes, divided differently by each code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PayloadId {
    /// Source block number.
    pub block: u32,
    /// Encoding symbol ID.
    pub symbol: u32,
}

impl PayloadId {
    /// Length in bytes.
    pub const LEN: usize = 4;

    /// Returns the number of bits of the symbol number; the remaining bits are the block number.
    const fn symbol_bits(fec: Fec) -> u32 {
        match fec {
            Fec::NoCode => 16,     // RFC 5445, 3.1
            Fec::Raptor => 16,     // RFC 5053, 3.1
            Fec::ReedSolomon => 8, // RFC 5510, 5.1
            Fec::RaptorQ => 24,    // RFC 6330, 3.2
        }
    }

    /// Returns the encoded bytes; `None` if a number does not fit.
    pub const fn to_bytes(self, fec: Fec) -> Option<[u8; PayloadId::LEN]> {
        let bits = PayloadId::symbol_bits(fec);
        if self.symbol >> bits != 0 || self.block >> (32 - bits) != 0 {
            return None;
        }
        Some((self.block << bits | self.symbol).to_be_bytes())
    }

    /// Parses the bytes of a payload ID.
    pub const fn from_bytes(bytes: [u8; PayloadId::LEN], fec: Fec) -> PayloadId {
        let (word, bits) = (u32::from_be_bytes(bytes), PayloadId::symbol_bits(fec));
        PayloadId { block: word >> bits, symbol: word & ((1 << bits) - 1) }
    }
}

/// FEC object transmission information, from which a receiver assembles an object (RFC 5052, 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Oti {
    /// Length of the object as it is sent, in bytes.
    pub transfer_length: u64,
    /// Length of a symbol, in bytes. The last symbol of an object may be shorter without a code or with Reed-Solomon.
    pub symbol_size: u16,
    /// Parameters of the code.
    pub params: Params,
}

/// The part of an [`Oti`] that differs between codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Params {
    /// Compact No-Code.
    NoCode {
        /// Maximum number of source symbols of a block.
        max_block: u32,
    },
    /// Raptor (RFC 5053, 3.2.3).
    Raptor {
        /// Number of blocks of the object ("Z").
        blocks: u16,
        /// Number of sub-blocks of a block ("N").
        sub_blocks: u8,
        /// Symbol alignment in bytes ("Al"): symbol sizes are multiples of the alignment.
        alignment: u8,
    },
    /// Reed-Solomon over GF(2^8).
    ReedSolomon {
        /// Maximum number of source symbols of a block.
        max_block: u8,
        /// Maximum number of symbols of a block, including repair symbols.
        max_symbols: u8,
    },
    /// RaptorQ (RFC 6330, 3.3).
    RaptorQ {
        /// Number of blocks of the object ("Z").
        blocks: u8,
        /// Number of sub-blocks of a block ("N").
        sub_blocks: u16,
        /// Symbol alignment in bytes ("Al"): symbol sizes are multiples of the alignment.
        alignment: u8,
    },
}

/// Maximum length of an object in FEC object transmission information (RFC 5052, 6.2.3: 48 bits).
pub const MAX_TRANSFER: u64 = (1 << 48) - 1;
/// Maximum length of an object with RaptorQ (RFC 6330, 3.3.2: 40 bits).
pub const MAX_RAPTORQ: u64 = (1 << 40) - 1;

impl Oti {
    /// Returns the code.
    pub const fn fec(&self) -> Fec {
        match self.params {
            Params::NoCode { .. } => Fec::NoCode,
            Params::Raptor { .. } => Fec::Raptor,
            Params::ReedSolomon { .. } => Fec::ReedSolomon,
            Params::RaptorQ { .. } => Fec::RaptorQ,
        }
    }

    /// Returns whether the length of the object fits the header extension.
    pub(super) const fn is_writable(&self) -> bool {
        match self.params {
            Params::RaptorQ { .. } => self.transfer_length <= MAX_RAPTORQ,
            _ => self.transfer_length <= MAX_TRANSFER,
        }
    }

    /// Appends the value of EXT_FTI, without type and length.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self.params {
            Params::NoCode { max_block } => {
                out.extend_from_slice(&self.transfer_length.to_be_bytes()[2..]);
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&self.symbol_size.to_be_bytes());
                out.extend_from_slice(&max_block.to_be_bytes());
            }
            Params::Raptor { blocks, sub_blocks, alignment } => {
                out.extend_from_slice(&self.transfer_length.to_be_bytes()[2..]);
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&self.symbol_size.to_be_bytes());
                out.extend_from_slice(&blocks.to_be_bytes());
                out.extend_from_slice(&[sub_blocks, alignment]);
            }
            Params::ReedSolomon { max_block, max_symbols } => {
                out.extend_from_slice(&self.transfer_length.to_be_bytes()[2..]);
                out.extend_from_slice(&self.symbol_size.to_be_bytes());
                out.extend_from_slice(&[max_block, max_symbols]);
            }
            Params::RaptorQ { blocks, sub_blocks, alignment } => {
                out.extend_from_slice(&self.transfer_length.to_be_bytes()[3..]);
                out.push(0);
                out.extend_from_slice(&self.symbol_size.to_be_bytes());
                out.push(blocks);
                out.extend_from_slice(&sub_blocks.to_be_bytes());
                out.extend_from_slice(&[alignment, 0, 0]);
            }
        }
    }

    pub(super) fn read(fec: Fec, r: &mut Reader<'_>) -> Result<Oti, ParseError> {
        let high = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Ok(match fec {
            Fec::NoCode => {
                let transfer_length = high(&r.array::<6>()?);
                r.u16()?;
                let symbol_size = r.u16()?;
                Oti { transfer_length, symbol_size, params: Params::NoCode { max_block: r.u32()? } }
            }
            Fec::Raptor => {
                let transfer_length = high(&r.array::<6>()?);
                r.u16()?;
                let symbol_size = r.u16()?;
                let params = Params::Raptor { blocks: r.u16()?, sub_blocks: r.u8()?, alignment: r.u8()? };
                Oti { transfer_length, symbol_size, params }
            }
            Fec::ReedSolomon => {
                let (transfer_length, symbol_size) = (high(&r.array::<6>()?), r.u16()?);
                let params = Params::ReedSolomon { max_block: r.u8()?, max_symbols: r.u8()? };
                Oti { transfer_length, symbol_size, params }
            }
            Fec::RaptorQ => {
                let transfer_length = high(&r.array::<5>()?);
                r.u8()?;
                let symbol_size = r.u16()?;
                let params = Params::RaptorQ { blocks: r.u8()?, sub_blocks: r.u16()?, alignment: r.u8()? };
                Oti { transfer_length, symbol_size, params }
            }
        })
    }

    /// Returns the division of the object into blocks; `None` if the numbers contradict each other.
    pub fn blocks(&self) -> Option<Blocks> {
        let size = u64::from(self.symbol_size);
        if size == 0 {
            return None;
        }
        let symbols = self.transfer_length.div_ceil(size);
        let blocks = match self.params {
            Params::NoCode { max_block: 0 } | Params::ReedSolomon { max_block: 0, .. } => return None,
            Params::NoCode { max_block } => symbols.div_ceil(max_block.into()),
            Params::ReedSolomon { max_block, .. } => symbols.div_ceil(max_block.into()),
            Params::Raptor { blocks: 0, .. } | Params::RaptorQ { blocks: 0, .. } => return None,
            Params::Raptor { .. } | Params::RaptorQ { .. } if symbols == 0 => 0,
            Params::Raptor { blocks, .. } => u64::from(blocks),
            Params::RaptorQ { blocks, .. } => u64::from(blocks),
        };
        if blocks > symbols {
            return None;
        }
        let small = symbols.checked_div(blocks).unwrap_or(0);
        let large = symbols - small * blocks;
        Some(Blocks {
            symbols,
            count: u32::try_from(blocks).ok()?,
            large: u32::try_from(large).ok()?,
            small: u32::try_from(small).ok()?,
        })
    }
}

/// Division of an object into source blocks of nearly equal size (RFC 5052, 9.1; RFC 5053, 5.3.1.2; RFC 6330, 4.4.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    symbols: u64,
    count: u32,
    large: u32,
    small: u32,
}

impl Blocks {
    /// Returns the number of blocks.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of source symbols of the object.
    pub const fn symbols(&self) -> u64 {
        self.symbols
    }

    /// Returns the number of source symbols of a block. The first blocks may have one symbol more than the later blocks. 0 beyond
    /// the last block.
    pub const fn len(&self, block: u32) -> u32 {
        match block {
            block if block < self.large => self.small + 1,
            block if block < self.count => self.small,
            _ => 0,
        }
    }

    /// Returns whether the object has a length of 0.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of the object's symbol at which the block begins.
    pub const fn first(&self, block: u32) -> u64 {
        let extra = if block < self.large { block } else { self.large };
        block as u64 * self.small as u64 + extra as u64
    }
}
