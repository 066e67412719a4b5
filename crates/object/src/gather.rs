//! Assembly of blocks from symbols: in memory ([`assembly`]), or in a temporary file for symbols that do not fit into memory
//! ([`spill`]). Symbols may be on the disk already ([`seeds`]).

pub mod assembly;
pub mod seeds;
pub mod spill;
