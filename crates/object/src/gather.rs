//! Symbols become blocks: in memory ([`assembly`]), and in a temporary file where a block is larger than the memory for it ([`spill`]).

pub mod assembly;
pub mod spill;
