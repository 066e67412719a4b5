//! Sessions over ALC with FLUTE (RFC 5775, 6726): files to any number of receivers, without feedback.
//!
//! ```text
//!  files -> blocks -> carousel -> packets at a fixed rate ------------> one group ------> objects -> verified files
//!             |          ^                                                                   ^
//!             |          +- the table of files, again and again                              |
//!             +- RaptorQ or Raptor, new symbols -> layers by a timetable -> groups -> joined and left by RLC
//! ```
//!
//! [`AlcSend`] and [`AlcReceive`] run a session on sockets; the state machines below have no sockets and no clock. A receiver
//! with losses waits for the next round of the carousel. With an erasure code each round sends new symbols, so a receiver needs
//! only as many symbols as a block has. For the same reason a session can have layers: each layer carries other symbols of the
//! same blocks, and a receiver of fewer layers needs more time for all files.

// The code of the fuzz targets, which the tests include, uses this crate's name.
#[cfg(test)]
extern crate self as faircast_flute;

pub mod codec;
mod drive;
pub mod error;
mod files;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod names;
mod objects;
mod parts;
mod receiver;
mod source;
#[cfg(test)]
mod tests;

pub use codec::Fec;
pub use error::AlcError;
use faircast_core::schemes::Scheme;
use faircast_core::time::Rate;
use faircast_driver::format::{ReceiverPlace, SourcePlace};
pub use faircast_transport::config::Repeat;
use faircast_transport::config::{Content, KeepPartial};
use faircast_transport::json;
use faircast_transport::object::Names;
use faircast_wire::Spacing;
pub use format::Alc;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The items of this format that the library `faircast` exports.
pub mod public {
    pub use crate::{
        AlcError, AlcReceive, AlcReceiveReport, AlcSend, AlcSendReport, Fec, Pacing, Repeat, codec,
    };
}

/// Rate and groups of a source.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one per session")]
pub enum Pacing {
    /// A fixed rate, headers included, on the session's group.
    Fixed(Rate),
    /// The timetable of a scheme whose source needs no feedback (RLC), with one group per layer.
    Layered {
        /// The scheme.
        scheme: Scheme,
        /// Distance between the groups of successive layers.
        spacing: Spacing,
    },
}

/// Configuration of a source over ALC.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AlcSend {
    /// Group address, interface and limits of its packets.
    pub place: SourcePlace,
    /// Rate and groups.
    pub pacing: Pacing,
    /// The erasure code.
    pub fec: Fec,
    /// Number of rounds, or duration.
    pub repeat: Repeat,
    /// Files and directory trees.
    pub content: Content,
}

/// Configuration of a receiver over ALC.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AlcReceive {
    /// Group address, interface and timeouts.
    pub place: ReceiverPlace,
    /// The output directory for files.
    pub out: PathBuf,
    /// Treatment of names with terminal control characters.
    pub names: Names,
    /// Limits for incomplete files of earlier sessions in the directory, applied when a session begins.
    pub keep_partial: KeepPartial,
    /// Maximum number of bytes of all files together. A file is left out if it would raise the total above this maximum.
    pub most: Option<u64>,
}

impl AlcSend {
    /// Creates a source that sends this content three times to [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP), with
    /// this pacing and with RaptorQ: each round has new symbols.
    pub fn new(pacing: Pacing, content: Content) -> AlcSend {
        AlcSend {
            place: SourcePlace::default(),
            pacing,
            fec: Fec::RaptorQ,
            repeat: Repeat::Rounds(3),
            content,
        }
    }
}

impl AlcReceive {
    /// Creates a receiver from [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP) into this directory.
    pub fn new(out: impl Into<PathBuf>) -> AlcReceive {
        AlcReceive {
            place: ReceiverPlace::default(),
            out: out.into(),
            names: Names::Escape,
            keep_partial: KeepPartial::default(),
            most: None,
        }
    }
}

/// Result of a source over ALC.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AlcSendReport {
    /// Whether every file was sent at least once.
    pub ok: bool,
    /// Number of files.
    pub files: u64,
    /// Length of the content, in bytes.
    pub bytes: u64,
    /// Number of layers.
    pub layers: u64,
    /// Number of completed rounds of the carousel.
    pub rounds: u64,
    /// Time from the first packet to the last.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// Bytes sent, headers included, divided by `duration`.
    #[serde(rename = "rate_bps", with = "json::bps")]
    pub rate: Rate,
    /// Number of packets sent.
    pub packets: u64,
    /// Number of packets that carried the table of files.
    pub table_packets: u64,
}

/// Result of a receiver over ALC.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AlcReceiveReport {
    /// Whether every file of the table has arrived and matches the table.
    pub ok: bool,
    /// Number of complete files in the output directory.
    pub files: u64,
    /// Number of files in the table.
    pub known: u64,
    /// Number of complete files whose MD5 matches the table.
    pub verified: u64,
    /// Total length of the complete files, in bytes.
    pub bytes: u64,
    /// Time from the first packet of the session to the end.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// `bytes` divided by `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Number of packets received.
    pub packets: u64,
    /// Number of lost packets. Only sessions with layers have packet numbers that show losses.
    pub lost: u64,
    /// Symbols received, divided by symbols needed.
    pub symbol_ratio: f64,
    /// Number of blocks that needed repair symbols.
    pub repaired_blocks: u64,
    /// Number of layers of the session.
    pub layers: u64,
    /// Highest joined layer; 0 is the base layer.
    pub highest_layer: u64,
    /// Number of times that an enhancement layer was joined.
    pub joins: u64,
    /// Number of times that the receiver left a layer.
    pub leaves: u64,
    /// Number of rejected packets: damaged, of another session, or of an unknown kind.
    pub refused: u64,
    /// Datagrams that the socket buffers of this host dropped.
    pub dropped_local: u64,
    /// Files that could not be received, with the reason; at most 1,000.
    pub skipped: Vec<String>,
    /// Number of these files.
    pub skipped_count: u64,
}

/// Bytes of a packet before its symbols, without the congestion control information. These are LCT's header, with the long
/// identifiers that a session of many files needs, and the payload ID.
const FIXED_LEN: usize = 4 + 8 + 4;
/// Additional length of a packet of the table: EXT_FDT and EXT_FTI.
const TABLE_LEN: usize = 4 + 16;
