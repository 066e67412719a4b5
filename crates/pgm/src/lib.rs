//! Sessions over PGM (RFC 3208). The other endpoints of such a session need not run faircast.
//!
//! ```text
//!  content -> feed -> window -> packets paced by a scheme ------> multicast ------> gaps -> NAKs, order -> output
//!               ^        ^                                                             |
//!               |        +---- repairs, NCF at once <------- unicast NAKs <------------+
//!               +---- framing: whole packets, or ZeroMQ's messages
//! ```
//!
//! [`PgmSend`] and [`PgmReceive`] run a session on sockets. The state machines of the source and of the receiver have no sockets
//! and no clock. A source passes the packet numbers in NAKs to its scheme as loss reports, so receivers need not implement the
//! scheme. If a scheme has a receiver part, the fields of this part are in an option that other programs skip.
//!
//! UDP ports: data is sent to the group's port. By default, negative acknowledgements are sent to the port with the same number
//! at the source, as by ZeroMQ. [`PgmOptions::nak_port`] sets a different port.

// The tests include code of the fuzz targets, which refers to this crate by its name.
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
mod reporters;
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

/// The items of this crate that the library `faircast` exports.
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
    /// A message ends at the end of a line. An application data unit includes the line end; a ZeroMQ message does not.
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
    /// Boundary between messages. `None` means units that fill a packet (without framing), or lines (with ZeroMQ's framing).
    pub messages: Option<Messages>,
    /// UDP port for negative acknowledgements; `None` means the group's port.
    pub nak_port: Option<u16>,
    /// Destination port in PGM's header; `None` means the group's UDP port.
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
    /// Destination of the content. If it is a directory, the content becomes a file that is named after the session.
    pub destination: Destination,
    /// Maximum number of bytes of content. A session with more content ends with an error.
    pub most: Option<u64>,
    /// Framing and ports.
    pub options: PgmOptions,
}

impl PgmSend {
    /// Creates a source that sends to [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP) with LE-SBCC, the only scheme
    /// that works with all PGM receivers. The session ends when no packet has been requested for 10 s.
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

/// Limits of the packets that a source stores for repairs. The limit that is reached first applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowLimits {
    /// Maximum age of a packet.
    pub age: Span,
    /// Maximum number of stored bytes.
    pub bytes: usize,
}

impl Default for WindowLimits {
    /// Returns limits of one minute and 64 MiB. OpenPGM's receivers request a packet for less than a minute: 50 times, at
    /// intervals of 0.25 s.
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
    /// Time from the start of the session to the first data packet.
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
    /// Whether all packets that were sent since the receiver joined have been received.
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
    /// Number of missing packets that never arrived.
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

/// Returns the identity under which a scheme knows a host. PGM identifies hosts only by their address.
fn receiver_id(address: Ipv4Addr) -> Option<ReceiverId> {
    ReceiverId::new(u32::from(address).into())
}

/// Returns the address of a receiver; `None` if [`receiver_id`] did not create the ID.
fn address_of(id: ReceiverId) -> Option<Ipv4Addr> {
    u32::try_from(id.get()).ok().map(Ipv4Addr::from)
}

/// Returns the IPv4 address. An IPv6 address is an error, because PGM over UDP supports only IPv4.
fn ipv4(address: IpAddr) -> Result<Ipv4Addr, Error> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(PgmError::NeedsIpv4(address).into()),
    }
}
