//! Sessions over PGM (RFC 3208), with receivers and sources that need not be faircast.
//!
//! ```text
//!  content -> feed -> window -> packets paced by a scheme ------> multicast ------> gaps -> NAKs, order -> output
//!               ^        ^                                                             |
//!               |        +---- repairs, NCF at once <------- unicast NAKs <------------+
//!               +---- framing: whole packets, or ZeroMQ's messages
//! ```
//!
//! [`PgmSend`] and [`PgmReceive`] run a session on sockets. The two state machines below have no sockets and no clock. The source
//! passes every packet in a NAK to its scheme, for which receivers need no part of the scheme. If a scheme has a receiver part,
//! its fields are in an option that other programs skip.
//!
//! UDP ports: data is sent to the group's port. Negative acknowledgements are sent to the same port of the source's address, like
//! ZeroMQ's. [`PgmOptions::nak_port`] is for programs that use different ports.

// The code of the fuzz targets, which the tests include, uses this crate's name.
#[cfg(test)]
extern crate self as faircast_pgm;

pub mod codec;
mod content_writer;
mod drive;
pub mod error;
mod feed;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
#[cfg(test)]
mod hostile;
mod missing;
mod receiver;
mod source;
#[cfg(test)]
mod tests;
mod window;

pub use error::{LineTooLong, PgmError};
pub use format::Pgm;

use faircast_core::packet::ReceiverId;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span};
use faircast_driver::format::{ReceiverPlace, SourcePlace};
use faircast_transport::config::{Content, Destination};
use faircast_transport::error::Error;
use faircast_transport::json;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The items of this format that the library `faircast` exports.
pub mod public {
    pub use crate::{
        Framing, LineTooLong, Messages, PgmError, PgmOptions, PgmReceive, PgmReceiveReport, PgmSend,
        PgmSendReport, WindowLimits, codec,
    };
}

/// Conversion of content to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Separate application data units.
    #[default]
    None,
    /// ZeroMQ's messages.
    Zmq,
}

/// Boundary between messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Messages {
    /// The end of a line. ZeroMQ's messages do not include the line end, application data units do.
    Lines,
    /// A message has this number of bytes.
    Sized(usize),
}

/// Options for both endpoints of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PgmOptions {
    /// Conversion of content to packets.
    pub framing: Framing,
    /// Boundary between messages. `None` means packets of maximum size without framing, and lines with ZeroMQ's framing.
    pub messages: Option<Messages>,
    /// UDP port for negative acknowledgements; the group's port when `None`.
    pub nak_port: Option<u16>,
    /// PGM's own destination port; the group's UDP port when `None`.
    pub data_port: Option<u16>,
}

/// Configuration of a source over PGM.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PgmSend {
    /// Group address, interface and limits of its packets.
    pub place: SourcePlace,
    /// Congestion control.
    pub scheme: Scheme,
    /// Minimum rate.
    pub min: Option<Rate>,
    /// Maximum rate.
    pub max: Option<Rate>,
    /// Time without requests after which the session ends.
    pub linger: Duration,
    /// One file or stream.
    pub content: Content,
    /// Framing and ports.
    pub options: PgmOptions,
    /// Limits of the packets stored for repairs.
    pub window: WindowLimits,
}

/// Configuration of a receiver over PGM.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PgmReceive {
    /// Group address, interface and timeouts.
    pub place: ReceiverPlace,
    /// Destination of content; in a directory, a file named after the session.
    pub destination: Destination,
    /// Maximum number of bytes; a session with more bytes ends with an error.
    pub most: Option<u64>,
    /// Framing and ports.
    pub options: PgmOptions,
}

impl PgmSend {
    /// Creates a source to [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP) with LE-SBCC, the only scheme that works
    /// with all PGM receivers. It ends when no packet has been requested for 10 s.
    pub fn new(content: Content) -> PgmSend {
        PgmSend {
            place: SourcePlace::default(),
            scheme: "le-sbcc".parse().expect("it is in the catalogue"),
            min: None,
            max: None,
            linger: Duration::from_secs(10),
            content,
            options: PgmOptions::default(),
            window: WindowLimits::default(),
        }
    }
}

impl PgmReceive {
    /// Creates a receiver from [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP) into this destination.
    pub fn new(destination: Destination) -> PgmReceive {
        PgmReceive {
            place: ReceiverPlace::default(),
            destination,
            most: None,
            options: PgmOptions::default(),
        }
    }
}

/// Limits of the packets that can be repaired. The limit that is reached first applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowLimits {
    /// Maximum age of a packet.
    pub age: Span,
    /// Maximum number of stored bytes.
    pub bytes: usize,
}

impl Default for WindowLimits {
    /// Returns limits of a minute and 64 MiB: longer than OpenPGM's receivers request a packet (50 times, 0.25 s apart).
    fn default() -> WindowLimits {
        WindowLimits { age: Span::from_secs(60), bytes: 64 << 20 }
    }
}

/// Result of a source over PGM.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PgmSendReport {
    /// Whether all requested packets could be sent again.
    pub ok: bool,
    /// Number of addresses that sent feedback. A receiver without losses sends none.
    pub receivers: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Number of messages or application data units.
    pub messages: u64,
    /// Time from the first data packet to the last.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// From the start of the session to the first data packet.
    #[serde(rename = "start_seconds", with = "json::seconds")]
    pub until_data: Duration,
    /// `bytes` divided by `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Number of data packets sent, without repairs.
    pub packets: u64,
    /// Number of data packets sent again.
    pub repairs: u64,
    /// Number of NAK packets received.
    pub naks: u64,
    /// Number of packets that NAKs requested, repetitions included.
    pub requested: u64,
    /// Number of packets requested too late for a repair.
    pub too_late: u64,
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
    /// Number of rejected packets: damaged, or of another session.
    pub refused: u64,
}

/// Result of a PGM receiver.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PgmReceiveReport {
    /// Whether no packet since the join is missing.
    pub ok: bool,
    /// Bytes of content.
    pub bytes: u64,
    /// Number of messages or application data units.
    pub messages: u64,
    /// Time from the first packet to the last.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// `bytes` divided by `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Number of data packets received, with repairs and duplicates.
    pub packets: u64,
    /// Number of packets that were missing at first.
    pub missed: u64,
    /// Number of packets that did not arrive.
    pub unrecoverable: u64,
    /// Number of incomplete messages.
    pub broken: u64,
    /// Number of NAK packets sent.
    pub naks: u64,
    /// Number of rejected packets: damaged or malformed.
    pub refused: u64,
    /// Datagrams that the socket buffer of this host dropped.
    pub dropped_local: u64,
}

/// Returns the identity of a host for a scheme: hosts on PGM are identified only by their address.
fn receiver_id(address: Ipv4Addr) -> Option<ReceiverId> {
    ReceiverId::new(u32::from(address).into())
}

/// Returns the address of a receiver; `None` if the ID is not from [`receiver_id`].
fn address_of(id: ReceiverId) -> Option<Ipv4Addr> {
    u32::try_from(id.get()).ok().map(Ipv4Addr::from)
}

/// Returns the IPv4 address; PGM over UDP supports no other addresses here.
fn ipv4(address: IpAddr) -> Result<Ipv4Addr, Error> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(PgmError::NeedsIpv4(address).into()),
    }
}
