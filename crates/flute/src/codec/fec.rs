//! Erasure codes as ALC names them: their numbers, FEC payload IDs, object transmission information, and blocks.

use super::reader::{ParseError, Reader};

/// An erasure code, by its FEC Encoding ID (RFC 5052, 6). In FLUTE it is also the codepoint of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fec {
    /// Compact No-Code: source symbols and nothing else (RFC 5445, 3).
    NoCode,
    /// Reed-Solomon over GF(2^8) (RFC 5510, 5).
    ReedSolomon,
    /// RaptorQ (RFC 6330).
    RaptorQ,
}

impl Fec {
    /// Its FEC Encoding ID.
    pub const fn id(self) -> u8 {
        match self {
            Fec::NoCode => 0,
            Fec::ReedSolomon => 5,
            Fec::RaptorQ => 6,
        }
    }

    /// The code with this FEC Encoding ID.
    pub const fn from_id(id: u8) -> Option<Fec> {
        match id {
            0 => Some(Fec::NoCode),
            5 => Some(Fec::ReedSolomon),
            6 => Some(Fec::RaptorQ),
            _ => None,
        }
    }
}

/// Which symbol of which block a packet carries: four bytes with each of the codes here, cut in different places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PayloadId {
    /// Source block number.
    pub block: u32,
    /// Encoding symbol ID.
    pub symbol: u32,
}

impl PayloadId {
    /// Bytes that it takes.
    pub const LEN: usize = 4;

    /// Bits of the symbol's number; the block's has the others.
    const fn symbol_bits(fec: Fec) -> u32 {
        match fec {
            Fec::NoCode => 16,     // RFC 5445, 3.1
            Fec::ReedSolomon => 8, // RFC 5510, 5.1
            Fec::RaptorQ => 24,    // RFC 6330, 3.2
        }
    }

    /// The bytes; `None` when a number does not fit.
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

/// FEC object transmission information: what a receiver needs to put an object together (RFC 5052, 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Oti {
    /// Bytes of the object as it travels.
    pub transfer_length: u64,
    /// Bytes of a symbol; the last one of an object may be shorter without a code or with Reed-Solomon.
    pub symbol_size: u16,
    /// Parameters of the code.
    pub params: Params,
}

/// The part of an [`Oti`] that differs from code to code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Params {
    /// Compact No-Code.
    NoCode {
        /// Source symbols of a block at most.
        max_block: u32,
    },
    /// Reed-Solomon over GF(2^8).
    ReedSolomon {
        /// Source symbols of a block at most.
        max_block: u8,
        /// Symbols of a block at most, those of the code included.
        max_symbols: u8,
    },
    /// RaptorQ (RFC 6330, 3.3).
    RaptorQ {
        /// Blocks of the object ("Z").
        blocks: u8,
        /// Sub-blocks of a block ("N").
        sub_blocks: u16,
        /// Symbols are multiples of this many bytes ("Al").
        alignment: u8,
    },
}

/// The longest object that FEC object transmission information can describe (RFC 5052, 6.2.3: 48 bits).
pub const MAX_TRANSFER: u64 = (1 << 48) - 1;
/// The same with RaptorQ (RFC 6330, 3.3.2: 40 bits).
pub const MAX_RAPTORQ: u64 = (1 << 40) - 1;

impl Oti {
    /// The code.
    pub const fn fec(&self) -> Fec {
        match self.params {
            Params::NoCode { .. } => Fec::NoCode,
            Params::ReedSolomon { .. } => Fec::ReedSolomon,
            Params::RaptorQ { .. } => Fec::RaptorQ,
        }
    }

    /// Whether the header extension has room for its numbers.
    pub(super) const fn is_writable(&self) -> bool {
        match self.params {
            Params::NoCode { .. } | Params::ReedSolomon { .. } => self.transfer_length <= MAX_TRANSFER,
            Params::RaptorQ { .. } => self.transfer_length <= MAX_RAPTORQ,
        }
    }

    /// The value of EXT_FTI, behind its type and length.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self.params {
            Params::NoCode { max_block } => {
                out.extend_from_slice(&self.transfer_length.to_be_bytes()[2..]);
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&self.symbol_size.to_be_bytes());
                out.extend_from_slice(&max_block.to_be_bytes());
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

    /// How the object is cut; `None` when the numbers contradict each other.
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
            Params::RaptorQ { blocks: 0, .. } => return None,
            Params::RaptorQ { blocks, .. } if symbols > 0 => u64::from(blocks),
            Params::RaptorQ { .. } => 0,
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

/// How an object is cut into source blocks that are as equal as can be (RFC 5052, 9.1; RFC 6330, 4.4.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    symbols: u64,
    count: u32,
    large: u32,
    small: u32,
}

impl Blocks {
    /// Blocks there are.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Source symbols of the object.
    pub const fn symbols(&self) -> u64 {
        self.symbols
    }

    /// Source symbols of a block; the first blocks may have one more than the others. 0 beyond the last.
    pub const fn len(&self, block: u32) -> u32 {
        match block {
            block if block < self.large => self.small + 1,
            block if block < self.count => self.small,
            _ => 0,
        }
    }

    /// Whether there is nothing to send.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The object's symbol that the block begins with.
    pub const fn first(&self, block: u32) -> u64 {
        let extra = if block < self.large { block } else { self.large };
        block as u64 * self.small as u64 + extra as u64
    }
}
