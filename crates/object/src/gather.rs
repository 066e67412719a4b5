//! Assembly of blocks from symbols: in memory ([`assembly`]), and in a temporary file for blocks that do not fit into memory
//! ([`spill`]).

pub mod assembly;
pub mod spill;
