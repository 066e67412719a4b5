//! The Reed-Solomon code over GF(2^8) whose parity libnorm sends and decodes, for FEC Encoding ID 5.
//!
//! A block is a polynomial over GF(2^8) with the field polynomial x^8 + x^4 + x^3 + x^2 + 1. Symbol `j` of a block is its value at
//! point `j`: the points are 0, 1, a, a^2, a^3 and so on. A block with fewer source symbols than the largest block is filled up
//! with zeros, which are not sent. RFC 5510, 8 describes the same code with the points 1, a, a^2, so its parity differs: captured
//! packets of libnorm 1.5.9 show the points from 0 (`parity_matches_captured_packets_of_libnorm`).

/// Field polynomial, without its highest term.
const POLYNOMIAL: u8 = 0x1d;

/// Largest number of symbols of a block: source symbols and parity symbols.
pub(super) const MAX_SYMBOLS: usize = 255;

/// Products of all pairs of elements.
type Products = [[u8; 256]; 256];

/// The code for blocks of at most `source` symbols, with `parity` parity symbols.
pub(super) struct Code {
    products: Box<Products>,
    /// For each parity symbol, the factors of the source symbols.
    rows: Vec<Vec<u8>>,
}

impl Code {
    /// Creates the code. The number of all symbols is at most [`MAX_SYMBOLS`].
    pub(super) fn new(source: u8, parity: u8) -> Code {
        let products = products();
        let known: Vec<u8> = (0..source).collect();
        let rows = (0..parity).map(|row| factors(&products, &known, source + row)).collect();
        Code { products, rows }
    }

    /// Appends parity symbol `number` of a block, which consists of symbols of `segment` bytes.
    pub(super) fn parity(&self, block: &[u8], segment: usize, number: u8, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + segment, 0);
        let Some(row) = self.rows.get(usize::from(number)) else { return };
        for (symbol, factor) in block.chunks(segment).zip(row) {
            let products = &self.products[usize::from(*factor)];
            for (sum, byte) in out[start..].iter_mut().zip(symbol) {
                *sum ^= products[usize::from(*byte)];
            }
        }
    }
}

/// Returns the factors by which the symbols with the numbers `known` yield symbol `wanted`: Lagrange's interpolation.
fn factors(products: &Products, known: &[u8], wanted: u8) -> Vec<u8> {
    let times = |a: u8, b: u8| products[usize::from(a)][usize::from(b)];
    let to = point(wanted);
    let factor = |at: u8| {
        let others = known.iter().filter(|other| **other != at).map(|other| point(*other));
        let (above, below) = others.fold((1, 1), |(above, below), other| {
            (times(above, to ^ other), times(below, point(at) ^ other))
        });
        times(above, inverse(products, below))
    };
    known.iter().map(|at| factor(*at)).collect()
}

fn inverse(products: &Products, of: u8) -> u8 {
    products[usize::from(of)].iter().position(|product| *product == 1).map_or(0, |found| found as u8)
}

/// Returns the point of a symbol.
fn point(symbol: u8) -> u8 {
    (1..symbol).fold(u8::from(symbol > 0), |power, _| double(power))
}

const fn double(element: u8) -> u8 {
    (element << 1) ^ if element & 0x80 != 0 { POLYNOMIAL } else { 0 }
}

fn products() -> Box<Products> {
    let mut products = Box::new([[0; 256]; 256]);
    for a in 0..=255u8 {
        // Bit by bit: the product with b is twice the product with half of b, plus a if b is odd.
        for b in 1..=255u8 {
            let half = products[usize::from(a)][usize::from(b >> 1)];
            products[usize::from(a)][usize::from(b)] = double(half) ^ if b & 1 == 1 { a } else { 0 };
        }
    }
    products
}

/// Returns the source symbols of a block of `source` symbols. `known` has the numbers of `source` received symbols, and the symbols
/// in the same order. Numbers from `most` on are parity symbols of blocks of at most `most` symbols.
#[cfg(test)]
pub(super) fn decode(known: &[(u8, Vec<u8>)], source: u8, most: u8, segment: usize) -> Vec<u8> {
    let products = products();
    let filled = |number: u8| (number, vec![0; segment]);
    let all: Vec<_> = known.iter().cloned().chain((source..most).map(filled)).collect();
    let numbers: Vec<u8> = all.iter().map(|(number, _)| *number).collect();
    let symbol = |wanted: u8| {
        let mut sum = vec![0; segment];
        for (factor, (_, symbol)) in factors(&products, &numbers, wanted).iter().zip(&all) {
            let products = &products[usize::from(*factor)];
            sum.iter_mut().zip(symbol).for_each(|(sum, byte)| *sum ^= products[usize::from(*byte)]);
        }
        sum
    };
    (0..source).flat_map(symbol).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn products_are_those_of_the_field() {
        let products = products();
        assert_eq!(products[2][0x80], POLYNOMIAL);
        for a in 1..=255u8 {
            assert_eq!(products[usize::from(a)][usize::from(inverse(&products, a))], 1);
            assert_eq!(products[usize::from(a)][3], a ^ double(a));
        }
        let points: std::collections::BTreeSet<u8> = (0..=254).map(point).collect();
        assert_eq!(points.len(), MAX_SYMBOLS);
    }

    /// libnorm 1.5.9 has sent these parity symbols for a file of 1,100 bytes, in symbols of 16 bytes and blocks of at most six.
    #[test]
    fn parity_matches_captured_packets_of_libnorm() {
        let file: Vec<u8> = (0..1_100u32).map(|i| ((i * i * 7 + i * 13 + 5) % 251) as u8).collect();
        let code = Code::new(6, 4);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        for (symbols, parity, captured) in [
            (24..30, 0, "5fec31f80ffc720bb7593fe77f4b3718"),
            (24..30, 1, "43e732c4c8f3264b0beeed6911f78652"),
            (54..59, 1, "8b6188b1e7b3f21b544f5dc1c6be2635"),
            (64..69, 0, "6325839b83f89f914ffebced8d1afeef"),
        ] {
            let mut symbol = Vec::new();
            code.parity(&file[symbols.start * 16..file.len().min(symbols.end * 16)], 16, parity, &mut symbol);
            assert_eq!(hex(&symbol), captured, "{symbols:?}");
        }
    }

    proptest! {
        #[test]
        fn any_symbols_of_a_block_restore_it(
            block in prop::collection::vec(any::<u8>(), 7 * 5),
            lost in prop::collection::btree_set(0..7u8, 4),
        ) {
            let code = Code::new(10, 4);
            let mut known: Vec<(u8, Vec<u8>)> = (0..7).map(|n| (n, block[usize::from(n) * 5..][..5].to_vec())).collect();
            known.retain(|(number, _)| !lost.contains(number));
            for parity in 0..4 {
                let mut symbol = Vec::new();
                code.parity(&block, 5, parity, &mut symbol);
                known.push((10 + parity, symbol));
            }
            prop_assert_eq!(decode(&known, 7, 10, 5), block);
        }
    }
}
