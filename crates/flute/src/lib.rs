//! Sessions over ALC with FLUTE (RFC 5775, 6726): files to any number of receivers that never answer.
//!
//! ```text
//!  files -> blocks -> carousel -> packets at a fixed rate ------------> one group ------> objects -> verified files
//!             |          ^                                                                   ^
//!             |          +- the table of files, again and again                              |
//!             +- RaptorQ, new symbols each round -> layers by a timetable -> groups -> joined and left by RLC
//! ```
//!
//! [`AlcSend`] and [`AlcReceive`] run a session on sockets; the state machines below know no socket and no clock. A source
//! hears nothing: who lost something waits for the next round of the carousel. With an erasure code a round brings new
//! symbols, so that a receiver needs as many as a block has, whichever they are; that is what makes layers work: all
//! layers are fed from one fountain, and a receiver of some of them gets everything too, only later.

// The code of the fuzz targets, which tests include, names this crate.
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

/// The items that the library `faircast` has of this format.
pub mod public {
    pub use crate::{
        AlcError, AlcReceive, AlcReceiveReport, AlcSend, AlcSendReport, Fec, Pacing, Repeat, codec,
    };
}

/// How fast a source sends, and on what.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one per session")]
pub enum Pacing {
    /// Always at this rate, headers included, on the session's group.
    Fixed(Rate),
    /// By the timetable of a scheme whose source needs no answers (RLC), on a group for each of its layers.
    Layered {
        /// The scheme.
        scheme: Scheme,
        /// How the groups of the layers follow each other.
        spacing: Spacing,
    },
}

/// How a source over ALC runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AlcSend {
    /// Where it sends.
    pub place: SourcePlace,
    /// How fast.
    pub pacing: Pacing,
    /// The erasure code.
    pub fec: Fec,
    /// How long.
    pub repeat: Repeat,
    /// Files and directory trees.
    pub content: Content,
}

/// How a receiver over ALC runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AlcReceive {
    /// Where it listens, and for how long.
    pub place: ReceiverPlace,
    /// The directory that files go to.
    pub out: PathBuf,
    /// Treatment of names with terminal control characters.
    pub names: Names,
    /// How much of what earlier sessions have left unfinished in the directory stays when a session begins.
    pub keep_partial: KeepPartial,
    /// Files of the table that together have more bytes than this are left out, beginning with the first that does not fit.
    pub most: Option<u64>,
}

impl AlcSend {
    /// Send this three times to [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP), at this pace and with RaptorQ: each round
    /// brings other symbols.
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
    /// Receive into this directory from [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP).
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
    /// Bytes of content.
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
    /// Bytes of the complete files.
    pub bytes: u64,
    /// Time from the first packet of the session to the end.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// `bytes` divided by `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Number of packets received.
    pub packets: u64,
    /// Number of packets lost, as far as layers show it.
    pub lost: u64,
    /// Symbols received, divided by symbols needed.
    pub symbol_ratio: f64,
    /// Number of blocks that needed repair symbols.
    pub repaired_blocks: u64,
    /// Number of layers of the session.
    pub layers: u64,
    /// Highest joined layer; 0 is the base layer.
    pub highest_layer: u64,
    /// Number of joins of layers above the base layer.
    pub joins: u64,
    /// Number of layers left.
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

/// Bytes of a packet before its symbols, the congestion control information left out: LCT's header with the longer
/// identifiers that many files need, and the payload ID.
const FIXED_LEN: usize = 4 + 8 + 4;
/// Additional length of a packet of the table: EXT_FDT and EXT_FTI.
const TABLE_LEN: usize = 4 + 16;
