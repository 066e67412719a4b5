//! Files to receivers of NORM (RFC 5740), with congestion control by TFMCC.
//!
//! ```text
//!  files -> blocks of symbols -> packets paced by TFMCC ----> multicast ----> NORM receivers
//!                  ^                ^                                              |
//!                  |                +-- rates, losses <--- nodes <--- ACK, NACK <--+
//!                  +------ repairs: symbols and parity <----------------- NACK <---+
//! ```
//!
//! [`NormSend`] runs a source on sockets. Its state machine has no sockets and no clock. NORM's receivers calculate TCP's rate from
//! their losses, as those of TFMCC do, so their feedback becomes reports for the source of TFMCC.
//!
//! The protocol has neither hashes nor encryption: content is not verified.

// The tests include code of the fuzz targets, which refers to this crate by its name.
#[cfg(test)]
extern crate self as faircast_norm;

pub mod codec;
mod drive;
pub mod error;
mod files;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
#[cfg(test)]
mod model;
mod nodes;
mod probes;
mod repairs;
mod rs;
mod source;
#[cfg(test)]
mod tests;

pub use codec::Fec;
pub use error::NormError;
pub use format::Norm;

use faircast_core::schemes::Scheme;
use faircast_core::time::Rate;
use faircast_driver::format::SourcePlace;
use faircast_transport::config::Content;
use faircast_transport::event::IncompleteReceiver;
use faircast_transport::json;
use serde::Serialize;
use std::time::Duration;

/// The items of this crate that the library `faircast` exports.
pub mod public {
    pub use crate::{NormError, NormReceive, NormReceiveReport, NormSend, NormSendReport, codec};
}

/// Configuration of a source for NORM receivers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NormSend {
    /// Group and port of the session, interface and limits of its packets.
    pub place: SourcePlace,
    /// Congestion control: TFMCC.
    pub scheme: Scheme,
    /// Minimum rate.
    pub min: Option<Rate>,
    /// Maximum rate.
    pub max: Option<Rate>,
    /// Number of receivers to wait for; `None` to start soon after the first answer.
    pub expect: Option<u32>,
    /// Maximum time to wait for receivers.
    pub join_timeout: Duration,
    /// The FEC Encoding ID of all packets.
    pub fec: Fec,
    /// Files and directory trees.
    pub content: Content,
}

impl NormSend {
    /// Creates a source that waits 10 s for receivers.
    pub fn new(content: Content) -> NormSend {
        NormSend {
            place: SourcePlace::default(),
            scheme: format::default_scheme(),
            min: None,
            max: None,
            expect: None,
            join_timeout: Duration::from_secs(10),
            fec: Fec::default(),
            content,
        }
    }
}

/// Configuration of a receiver, without values: this crate has only a source.
#[derive(Debug, Clone)]
pub enum NormReceive {}

/// Result of a receiver, without values: this crate has only a source.
#[derive(Debug, Serialize)]
pub enum NormReceiveReport {}

/// Result of a source.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NormSendReport {
    /// Whether all expected and known receivers have acknowledged all content.
    pub ok: bool,
    /// Number of receivers that have sent feedback.
    pub receivers: u64,
    /// Number of receivers that have acknowledged all content.
    pub completed: u64,
    /// Number of expected receivers that have not sent feedback.
    pub absent: u64,
    /// Receivers that have not acknowledged all content, by address.
    pub incomplete: Vec<IncompleteReceiver>,
    /// Number of files.
    pub files: u64,
    /// Bytes of content that were sent.
    pub bytes: u64,
    /// Time from the first data packet to the last.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// Time from the start of the session to the first data packet.
    #[serde(rename = "start_seconds", with = "json::seconds")]
    pub until_data: Duration,
    /// `bytes` divided by `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Number of data packets sent, without repairs.
    pub packets: u64,
    /// Number of repairs.
    pub repairs: u64,
    /// Number of repairs that were parity symbols.
    pub parity: u64,
    /// Number of NACKs.
    pub naks: u64,
    /// Number of probes.
    pub probes: u64,
    /// Number of answers to probes.
    pub answers: u64,
    /// Number of loss indications for the scheme.
    pub indications: u64,
    /// Number of congestion events.
    pub events: u64,
    /// Number of loss indications from the representative.
    pub followed: u64,
    /// Number of rate cuts.
    pub cuts: u64,
    /// Minimum rate that the scheme allowed, sampled once a second.
    #[serde(rename = "min_bps", with = "json::bps")]
    pub min_rate: Rate,
    /// Maximum rate that the scheme allowed, sampled once a second.
    #[serde(rename = "max_bps", with = "json::bps")]
    pub max_rate: Rate,
    /// Number of rejected datagrams: malformed, of other sessions, or of unknown objects.
    pub refused: u64,
}
