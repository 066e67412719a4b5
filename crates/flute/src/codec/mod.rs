//! ALC (RFC 5775) over LCT (RFC 5651), with FLUTE's file delivery tables (RFC 6726): a third wire format, for sessions without
//! feedback.
//!
//! ```text
//!  0               1               2               3
//!  0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//! +-------+---+---+-+---+-+---+-+-+---------------+---------------+
//! |   1   | C |PSI|S| O |H| 0 |A|B| header length |   codepoint   |
//! +-------+---+---+-+---+-+---+-+-+---------------+---------------+
//! | congestion control information, 32 * (C+1) bits               |
//! | session, 32*S + 16*H bits     | object, 32*O + 16*H bits      |
//! | header extensions                                             |
//! +---------------------------------------------------------------+
//! | FEC payload ID: which symbol of which block                   |
//! | the symbol                                                    |
//! A: the session ends   B: the object ends   header length: in words of 32 bits, up to the FEC payload ID
//! ```
//!
//! [`parse`] is total: it accepts any bytes, never panics and never allocates. [`encode()`] appends to a buffer. Each congestion
//! control defines the layout of its information (RFC 5651, 5.1); [`Rlc`] is the layout of RLC.
//!
//! | item | content |
//! |---|---|
//! | [`Packet`] [`parse`] [`encode()`] | the packet |
//! | [`Fec`] [`Oti`] [`Blocks`] | erasure codes: their numbers, their description of an object, and its division into blocks |
//! | [`Fdt`] | the files of the session, as XML |
//! | [`Rlc`] | congestion control information of RLC |

mod cci;
mod fdt;
mod fec;
mod packet;
mod reader;
#[cfg(test)]
mod tests;

pub use cci::Rlc;
pub use fdt::{FAIRCAST_NAMESPACE, Fdt, FdtError, File, Layering, MAX_FDT, MAX_FILES};
pub use fec::{Blocks, Fec, MAX_RAPTORQ, MAX_TRANSFER, Oti, Params, PayloadId};
pub use packet::{Closing, EncodeError, Extensions, FdtHeader, Packet, Times, encode, parse};
pub use reader::ParseError;

/// The object that carries the file delivery table (RFC 6726, 3.3).
pub const FDT_TOI: u128 = 0;
/// The version of FLUTE (RFC 6726, 3.4.1); RFC 3926 had 1.
pub const FLUTE_VERSION: u8 = 2;
/// Seconds from 1900, the start of NTP's time, to 1970, the start of Unix's time.
pub const NTP_UNIX_SECS: u64 = 2_208_988_800;
