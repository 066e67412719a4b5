//! RaptorQ (RFC 6330) for single source blocks without sub-blocks.
//!
//! Building an encoder requires solving a system of equations that depends on `K` only. The solution is cached and replayed for
//! every block with the same `K`. Decoding generally requires solving another system, which depends on the received symbols. If
//! few symbols are missing, [`solve_few`] is a faster method with the same result.

use crate::Shape;
use crate::gathered::Gathered;
use crate::octet::{add_scaled, inverse, scale};
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder, SourceBlockEncoder,
};

/// Solves for a few missing symbols.
///
/// A repair symbol is a sum of multiples of source symbols. The block is encoded with zeros in place of missing symbols. The
/// difference between a repair symbol of this encoding and the received repair symbol is the contribution of the missing
/// symbols. The coefficients of this contribution come from encoding a second, narrow block in which missing symbol `n` is
/// the `n`th unit vector. Both encodings replay the cached solution for `K`, so only a small system remains to be solved. The
/// small system has a solution exactly when the large system has one.
pub(crate) fn solve_few(gathered: &Gathered<'_>, shape: Shape) -> Option<Vec<u8>> {
    let (size, width) = (usize::from(shape.symbol_size()), gathered.missing.len());
    let k = u32::from(shape.symbols());
    let mut block = gathered.join(shape);
    let mut units = vec![0; gathered.source.len() * width];
    for (n, &symbol) in gathered.missing.iter().enumerate() {
        units[symbol * width + n] = 1;
    }
    let known = encode(shape.symbol_size(), &block);
    let unit = encode(width as u16, &units); // at most FEW

    let mut system = System::new(width);
    for &(esi, bytes) in &gathered.repairs {
        let multiples = unit.repair_packets(esi - k, 1).swap_remove(0).split().1;
        let mut rest = known.repair_packets(esi - k, 1).swap_remove(0).split().1;
        add_scaled(&mut rest, bytes, 1);
        system.add(multiples, rest);
        if system.is_complete() {
            break;
        }
    }
    for (solution, &symbol) in system.solve()?.iter().zip(&gathered.missing) {
        block[symbol * size..][..size].copy_from_slice(solution);
    }
    Some(block)
}

/// Solves the general system (RFC 6330, 5.4.2).
pub(crate) fn solve(gathered: &Gathered<'_>, shape: Shape) -> Option<Vec<u8>> {
    let config = config(shape.symbol_size());
    let mut decoder = SourceBlockDecoder::new(0, &config, shape.block_len() as u64);
    let source = (0..).zip(&gathered.source).filter_map(|(esi, symbol)| Some((esi, (*symbol)?)));
    let all = source.chain(gathered.repairs.iter().copied());
    decoder.decode(all.map(|(esi, bytes)| EncodingPacket::new(PayloadId::new(0, esi), bytes.to_vec())))
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
pub(crate) fn encode(symbol_size: u16, block: &[u8]) -> SourceBlockEncoder {
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
        (solve_few(&gathered, shape), solve(&gathered, shape))
    }
}
