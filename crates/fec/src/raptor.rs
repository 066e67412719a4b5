//! Raptor (RFC 5053) for single source blocks without sub-blocks.
//!
//! Decoding takes time proportional to the square of `K`: in a block of 1,024 symbols of 1,424 bytes about 7 ms, in one of 8,192
//! symbols about 250 ms.

use crate::Shape;
use crate::gathered::Gathered;
use raptor_code::{SourceBlockDecoder, SourceBlockEncoder};

/// The intermediate symbols of a block.
pub(crate) struct Encoder {
    symbols: SourceBlockEncoder,
    size: usize,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    /// Encodes a block of this shape.
    pub fn new(shape: Shape, block: &[u8]) -> Encoder {
        let built = SourceBlockEncoder::new(block, shape.symbols().into());
        let symbols = built.expect("RFC 5053 has a systematic index for each valid K");
        Encoder { symbols, size: shape.symbol_size().into() }
    }

    /// Appends a symbol. The library returns no bytes for a symbol that is zero for any content, as some of a block of five are.
    pub fn put(&mut self, esi: u32, out: &mut Vec<u8>) {
        let end = out.len() + self.size;
        out.extend_from_slice(&self.symbols.fountain(esi));
        out.resize(end, 0);
    }
}

/// Solves the system of all received symbols (RFC 5053, 5.5.2).
pub(crate) fn solve(gathered: &Gathered<'_>, shape: Shape) -> Option<Vec<u8>> {
    let mut decoder = SourceBlockDecoder::new(shape.symbols().into());
    let source = (0..).zip(&gathered.source).filter_map(|(esi, symbol)| Some((esi, (*symbol)?)));
    for (esi, bytes) in source.chain(gathered.repairs.iter().copied()) {
        decoder.push_encoding_symbol(bytes, esi);
    }
    decoder.decode(shape.block_len())
}
