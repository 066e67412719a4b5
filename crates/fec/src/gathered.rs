//! Received symbols of a block.

use crate::Shape;

/// The received symbols, sorted into source and repair symbols.
pub(crate) struct Gathered<'a> {
    pub source: Vec<Option<&'a [u8]>>,
    pub missing: Vec<usize>,
    pub repairs: Vec<(u32, &'a [u8])>,
}

impl<'a> Gathered<'a> {
    pub fn from(shape: Shape, symbols: impl IntoIterator<Item = (u32, &'a [u8])>) -> Gathered<'a> {
        let k = u32::from(shape.symbols());
        let mut source = vec![None; k as usize];
        let mut repairs = Vec::new();
        for (esi, bytes) in symbols {
            if bytes.len() != usize::from(shape.symbol_size()) || esi >= shape.max_esi() {
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
    pub fn join(&self, shape: Shape) -> Vec<u8> {
        let mut block = Vec::with_capacity(shape.block_len());
        for symbol in &self.source {
            match symbol {
                Some(bytes) => block.extend_from_slice(bytes),
                None => block.resize(block.len() + usize::from(shape.symbol_size()), 0),
            }
        }
        block
    }
}
