//! Assembly of blocks from symbols: in memory ([`assembly`]), or in a temporary file for symbols that do not fit into memory
//! ([`spill`]).

pub mod assembly;
pub mod spill;
