//! RaptorQ (RFC 6330) for single source blocks without sub-blocks.
//!
//! Building an encoder requires solving a system of equations that depends on `K` only. The solution is cached and replayed for
//! every block with the same `K`. Decoding generally requires solving another system, which depends on the received symbols. If
//! few symbols are missing, [`decode`] uses a faster method with the same result.

use crate::octet::{add_scaled, inverse, scale};
use crate::{ErasureCode, FecError, MAX_ESI, RepairSource, Shape};
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder,
};

/// Largest number of missing source symbols for which the direct method is used. Measurements show that the general method is
/// faster above this number.
const FEW: usize = 24;

/// RaptorQ as an [`ErasureCode`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RaptorQ;

/// Encoder of one block. Its state is built when the first repair symbol is requested.
#[derive(Debug)]
pub struct BlockEncoder {
    shape: Shape,
    block: Vec<u8>,
    built: Option<SourceBlockEncoder>,
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
        let symbols = self.shape.symbols();
        let end = first.saturating_add(count);
        match first.checked_sub(u32::from(symbols)) {
            Some(offset) if end <= MAX_ESI => Ok(offset),
            Some(_) => Err(FecError::NotARepair { esi: end.saturating_sub(1), symbols }),
            None => Err(FecError::NotARepair { esi: first, symbols }),
        }
    }

    fn built(&mut self) -> &SourceBlockEncoder {
        self.built.get_or_insert_with(|| encode(self.shape.symbol_size(), &self.block))
    }
}

impl RepairSource for BlockEncoder {
    fn repair(&mut self, esi: u32, out: &mut [u8]) -> Result<(), FecError> {
        let expected = usize::from(self.shape.symbol_size());
        if out.len() != expected {
            return Err(FecError::Room { expected, found: out.len() });
        }
        let offset = self.check(esi, 1)?;
        for symbol in self.built().repair_packets(offset, 1) {
            out.copy_from_slice(symbol.data());
        }
        Ok(())
    }

    fn repair_batch(&mut self, first: u32, count: u32, out: &mut Vec<u8>) -> Result<(), FecError> {
        let offset = self.check(first, count)?;
        out.reserve(count as usize * usize::from(self.shape.symbol_size()));
        for symbol in self.built().repair_packets(offset, count) {
            out.extend_from_slice(symbol.data());
        }
        Ok(())
    }
}

impl ErasureCode for RaptorQ {
    type Encoder = BlockEncoder;

    fn encoder(&self, shape: Shape, block: Vec<u8>) -> Result<BlockEncoder, FecError> {
        BlockEncoder::new(shape, block)
    }

    fn decode(&self, shape: Shape, symbols: &mut dyn Iterator<Item = (u32, &[u8])>) -> Option<Vec<u8>> {
        decode(shape, symbols)
    }
}

/// The received symbols, sorted into source and repair symbols.
struct Gathered<'a> {
    source: Vec<Option<&'a [u8]>>,
    missing: Vec<usize>,
    repairs: Vec<(u32, &'a [u8])>,
}

/// Returns the `K * T` bytes of the block, or `None` if the symbols do not suffice: then call again with at least one more
/// symbol. Symbols that are repeated, out of range or not `T` bytes long are ignored.
///
/// With `K` symbols about 1 in 200 blocks needs one more symbol; with `K + 1`, about 1 in 30,000.
pub fn decode<'a>(shape: Shape, symbols: impl IntoIterator<Item = (u32, &'a [u8])>) -> Option<Vec<u8>> {
    let gathered = Gathered::from(shape, symbols);
    match gathered.missing.len() {
        0 => Some(gathered.join(shape)),
        missing if missing > gathered.repairs.len() => None,
        missing if missing <= FEW => gathered.solve_few(shape),
        _ => gathered.solve(shape),
    }
}

impl<'a> Gathered<'a> {
    fn from(shape: Shape, symbols: impl IntoIterator<Item = (u32, &'a [u8])>) -> Gathered<'a> {
        let k = u32::from(shape.symbols());
        let mut source = vec![None; k as usize];
        let mut repairs = Vec::new();
        for (esi, bytes) in symbols {
            if bytes.len() != usize::from(shape.symbol_size()) || esi >= MAX_ESI {
                continue;
            }
            match source.get_mut(esi as usize) {
                Some(slot) => *slot = Some(bytes),
                None => repairs.push((esi, bytes)),
            }
        }
        repairs.sort_unstable_by_key(|&(esi, _)| esi);
        repairs.dedup_by_key(|&mut (esi, _)| esi);
        let missing = (0..source.len()).filter(|&i| source[i].is_none()).collect();
        Gathered { source, missing, repairs }
    }

    /// Returns the block with zeros in place of missing symbols.
    fn join(&self, shape: Shape) -> Vec<u8> {
        let mut block = Vec::with_capacity(shape.block_len());
        for symbol in &self.source {
            match symbol {
                Some(bytes) => block.extend_from_slice(bytes),
                None => block.resize(block.len() + usize::from(shape.symbol_size()), 0),
            }
        }
        block
    }

    /// Solves for a few missing symbols.
    ///
    /// A repair symbol is a sum of multiples of source symbols. The block is encoded with zeros in place of missing symbols. The
    /// difference between a repair symbol of this encoding and the received repair symbol is the contribution of the missing
    /// symbols. The coefficients of this contribution come from encoding a second, narrow block in which missing symbol `n` is
    /// the `n`th unit vector. Both encodings replay the cached solution for `K`, so only a small system remains to be solved. The
    /// small system has a solution exactly when the large system has one.
    fn solve_few(&self, shape: Shape) -> Option<Vec<u8>> {
        let (size, width) = (usize::from(shape.symbol_size()), self.missing.len());
        let k = u32::from(shape.symbols());
        let mut block = self.join(shape);
        let mut units = vec![0; self.source.len() * width];
        for (n, &symbol) in self.missing.iter().enumerate() {
            units[symbol * width + n] = 1;
        }
        let known = encode(shape.symbol_size(), &block);
        let unit = encode(width as u16, &units); // at most FEW

        let mut system = System::new(width);
        for &(esi, bytes) in &self.repairs {
            let multiples = unit.repair_packets(esi - k, 1).swap_remove(0).split().1;
            let mut rest = known.repair_packets(esi - k, 1).swap_remove(0).split().1;
            add_scaled(&mut rest, bytes, 1);
            system.add(multiples, rest);
            if system.is_complete() {
                break;
            }
        }
        for (solution, &symbol) in system.solve()?.iter().zip(&self.missing) {
            block[symbol * size..][..size].copy_from_slice(solution);
        }
        Some(block)
    }

    /// Solves the general system (RFC 6330, 5.4.2).
    fn solve(&self, shape: Shape) -> Option<Vec<u8>> {
        let config = config(shape.symbol_size());
        let mut decoder = SourceBlockDecoder::new(0, &config, shape.block_len() as u64);
        let source = (0..).zip(&self.source).filter_map(|(esi, symbol)| Some((esi, (*symbol)?)));
        let all = source.chain(self.repairs.iter().copied());
        decoder.decode(all.map(|(esi, bytes)| EncodingPacket::new(PayloadId::new(0, esi), bytes.to_vec())))
    }
}

/// Linear equations, reduced as they are added. Row `n`, if present, has its first nonzero coefficient, a 1, in column `n`.
struct System {
    rows: Vec<Option<(Vec<u8>, Vec<u8>)>>,
    rank: usize,
}

impl System {
    fn new(width: usize) -> System {
        System { rows: vec![None; width], rank: 0 }
    }

    fn is_complete(&self) -> bool {
        self.rank == self.rows.len()
    }

    fn add(&mut self, mut multiples: Vec<u8>, mut value: Vec<u8>) {
        for column in 0..self.rows.len() {
            let factor = multiples[column];
            if factor == 0 {
                continue;
            }
            match &self.rows[column] {
                Some((row, row_value)) => {
                    add_scaled(&mut multiples, row, factor);
                    add_scaled(&mut value, row_value, factor);
                }
                None => {
                    scale(&mut multiples, inverse(factor));
                    scale(&mut value, inverse(factor));
                    self.rows[column] = Some((multiples, value));
                    self.rank += 1;
                    return;
                }
            }
        }
    }

    fn solve(self) -> Option<Vec<Vec<u8>>> {
        let rows: Vec<(Vec<u8>, Vec<u8>)> = self.rows.into_iter().collect::<Option<_>>()?;
        let mut solved: Vec<Vec<u8>> = Vec::with_capacity(rows.len()); // last column first
        let width = rows.len();
        for (multiples, mut value) in rows.into_iter().rev() {
            for (column, solution) in (0..width).rev().zip(&solved) {
                add_scaled(&mut value, solution, multiples[column]);
            }
            solved.push(value);
        }
        solved.reverse();
        Some(solved)
    }
}

/// Returns the parameters of one source block without sub-blocks. Only the symbol size affects the encoding.
fn config(symbol_size: u16) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(0, symbol_size, 1, 1, 1)
}

/// Encodes a block. The library caches the solution for each `K` in a process-wide cache.
fn encode(symbol_size: u16, block: &[u8]) -> SourceBlockEncoder {
    SourceBlockEncoder::new(0, &config(symbol_size), block)
}

#[cfg(test)]
pub(crate) mod test_access {
    use super::*;

    /// Decodes the block by the direct method and by the general method.
    pub(crate) fn both_ways<'a>(
        shape: Shape,
        symbols: impl IntoIterator<Item = (u32, &'a [u8])>,
    ) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let gathered = Gathered::from(shape, symbols);
        (gathered.solve_few(shape), gathered.solve(shape))
    }
}
