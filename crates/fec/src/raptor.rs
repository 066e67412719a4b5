//! Raptor (RFC 5053) for single source blocks without sub-blocks.
//!
//! Decoding takes time proportional to the square of `K`: in a block of 1,024 symbols of 1,424 bytes about 7 ms, in one of 8,192
//! symbols about 250 ms.

use crate::Shape;
use crate::gathered::Gathered;
use raptor_code::{SourceBlockDecoder, SourceBlockEncoder};

/// The intermediate symbols of a block.
pub(crate) struct Encoder(SourceBlockEncoder);

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    /// Encodes a block of this shape.
    pub fn new(shape: Shape, block: &[u8]) -> Encoder {
        let built = SourceBlockEncoder::new(block, shape.symbols().into());
        Encoder(built.expect("RFC 5053 has a systematic index for each valid K"))
    }

    /// Appends a symbol.
    pub fn put(&mut self, esi: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.fountain(esi));
    }
}

/// Number of repair symbols that are left out one after the other.
const LEFT_OUT: usize = 8;

/// Solves the system of the received symbols (RFC 5053, 5.5.2). The library returns wrong content for some sets of symbols of a block of five (`raptor-code` 1.0.12). The
/// content is therefore encoded again and compared with all received symbols; if it differs, fewer repair symbols are used.
pub(crate) fn solve(gathered: &Gathered<'_>, shape: Shape) -> Option<Vec<u8>> {
    let spare = gathered.repairs.len().saturating_sub(gathered.missing.len());
    (0..=spare.min(LEFT_OUT)).find_map(|left_out| {
        let mut decoder = SourceBlockDecoder::new(shape.symbols().into());
        received(gathered, left_out).for_each(|(esi, bytes)| decoder.push_encoding_symbol(bytes, esi));
        decoder.decode(shape.block_len()).filter(|block| is_consistent(block, gathered, shape))
    })
}

/// Returns the received symbols without the first repair symbols.
fn received<'a>(gathered: &Gathered<'a>, left_out: usize) -> impl Iterator<Item = (u32, &'a [u8])> {
    let source = (0..).zip(&gathered.source).filter_map(|(esi, symbol)| Some((esi, (*symbol)?)));
    source.chain(gathered.repairs.iter().copied().skip(left_out))
}

fn is_consistent(block: &[u8], gathered: &Gathered<'_>, shape: Shape) -> bool {
    let size = usize::from(shape.symbol_size());
    let mut sources = block.chunks(size).zip(&gathered.source);
    if !sources.all(|(decoded, symbol)| symbol.is_none_or(|symbol| symbol == decoded)) {
        return false;
    }
    let (mut encoder, mut symbol) = (Encoder::new(shape, block), Vec::new());
    gathered.repairs.iter().all(|&(esi, bytes)| {
        symbol.clear();
        encoder.put(esi, &mut symbol);
        symbol == bytes
    })
}
