//! Encoding and decoding of one block with the code of its shape.

use crate::gathered::Gathered;
use crate::{Code, FecError, RepairSource, Shape, raptor, raptorq};

/// Largest number of missing source symbols for which the direct method is used. Measurements show that the general method is
/// faster above this number.
const FEW: usize = 24;

/// Encoder of one block. Its state is built when the first repair symbol is requested.
#[derive(Debug)]
pub struct BlockEncoder {
    shape: Shape,
    block: Vec<u8>,
    built: Option<Built>,
}

#[derive(Debug)]
enum Built {
    RaptorQ(::raptorq::SourceBlockEncoder),
    Raptor(raptor::Encoder),
}

impl BlockEncoder {
    /// Takes a block of `shape.block_len()` bytes.
    ///
    /// # Errors
    /// [`FecError::BlockLength`] when the block is not `shape.block_len()` bytes long.
    pub fn new(shape: Shape, block: Vec<u8>) -> Result<BlockEncoder, FecError> {
        if block.len() != shape.block_len() {
            return Err(FecError::BlockLength { expected: shape.block_len(), found: block.len() });
        }
        Ok(BlockEncoder { shape, block, built: None })
    }

    /// Returns the shape of the block.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the block's bytes: its source symbols in order.
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// Returns source symbol `esi`, or `None` when `esi` is not below `K`.
    pub fn source(&self, esi: u32) -> Option<&[u8]> {
        let size = usize::from(self.shape.symbol_size());
        self.block.chunks_exact(size).nth(usize::try_from(esi).ok()?)
    }

    /// Returns the buffer for reuse with the next block.
    pub fn into_block(self) -> Vec<u8> {
        self.block
    }

    fn check(&self, first: u32, count: u32) -> Result<u32, FecError> {
        let (symbols, end) = (self.shape.symbols(), self.shape.max_esi());
        let after = first.saturating_add(count);
        match first.checked_sub(u32::from(symbols)) {
            Some(offset) if after <= end => Ok(offset),
            Some(_) => Err(FecError::NotARepair { esi: after.saturating_sub(1), symbols, end }),
            None => Err(FecError::NotARepair { esi: first, symbols, end }),
        }
    }

    fn built(&mut self) -> &mut Built {
        self.built.get_or_insert_with(|| match self.shape.code() {
            Code::RaptorQ => Built::RaptorQ(raptorq::encode(self.shape.symbol_size(), &self.block)),
            Code::Raptor => Built::Raptor(raptor::Encoder::new(self.shape, &self.block)),
        })
    }
}

impl RepairSource for BlockEncoder {
    fn repair(&mut self, esi: u32, out: &mut [u8]) -> Result<(), FecError> {
        let expected = usize::from(self.shape.symbol_size());
        if out.len() != expected {
            return Err(FecError::Room { expected, found: out.len() });
        }
        let mut symbol = Vec::new();
        self.repair_batch(esi, 1, &mut symbol)?;
        out.copy_from_slice(&symbol);
        Ok(())
    }

    fn repair_batch(&mut self, first: u32, count: u32, out: &mut Vec<u8>) -> Result<(), FecError> {
        let offset = self.check(first, count)?;
        out.reserve(count as usize * usize::from(self.shape.symbol_size()));
        match self.built() {
            Built::RaptorQ(encoder) => {
                encoder
                    .repair_packets(offset, count)
                    .iter()
                    .for_each(|symbol| out.extend_from_slice(symbol.data()));
            }
            Built::Raptor(encoder) => (first..first + count).for_each(|esi| encoder.put(esi, out)),
        }
        Ok(())
    }
}

/// Returns the `K * T` bytes of the block, or `None` if the symbols do not suffice: then call again with at least one more
/// symbol. Symbols that are repeated, out of range or not `T` bytes long are ignored.
///
/// With `K` symbols of RaptorQ about 1 in 200 blocks needs one more symbol; with `K + 1`, about 1 in 30,000. Raptor needs two more
/// symbols on average.
pub fn decode<'a>(shape: Shape, symbols: impl IntoIterator<Item = (u32, &'a [u8])>) -> Option<Vec<u8>> {
    let gathered = Gathered::from(shape, symbols);
    match gathered.missing.len() {
        0 => Some(gathered.join(shape)),
        missing if missing > gathered.repairs.len() => None,
        _ if shape.code() == Code::Raptor => raptor::solve(&gathered, shape),
        missing if missing <= FEW => raptorq::solve_few(&gathered, shape),
        _ => raptorq::solve(&gathered, shape),
    }
}
