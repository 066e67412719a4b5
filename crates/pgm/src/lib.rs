//! Sessions over PGM (RFC 3208), for receivers and sources that know nothing of faircast.
//!
//! ```text
//!  content -> feed -> window -> packets paced by a scheme ------> multicast ------> gaps -> NAKs, order -> output
//!               ^        ^                                                             |
//!               |        +---- repairs, NCF at once <------- unicast NAKs <------------+
//!               +---- framing: whole packets, or ZeroMQ's messages
//! ```
//!
//! [`PgmSend`] and [`PgmReceive`] run a session on sockets. The two state machines below know no socket and no clock. The
//! source's scheme hears of every packet that a NAK names; the receivers need no part of a scheme for that. Where a
//! scheme does have a receiver's half, its words travel in an option that other programs skip.
//!
//! UDP ports: data goes to the group's port, and negative acknowledgements go to the same port of the source's
//! address, as ZeroMQ has it; [`PgmOptions::nak_port`] is for programs that keep the two apart.

// The code of the fuzz targets, which tests include, names this crate.
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

/// The items that the library `faircast` has of this format.
pub mod public {
    pub use crate::{
        Framing, LineTooLong, Messages, PgmError, PgmOptions, PgmReceive, PgmReceiveReport, PgmSend,
        PgmSendReport, WindowLimits, codec,
    };
}

/// How content becomes packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Application data units, each on its own.
    #[default]
    None,
    /// ZeroMQ's messages.
    Zmq,
}

/// Where one message ends and the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Messages {
    /// At the end of a line. ZeroMQ's messages do not have the line's end in them, application data units do.
    Lines,
    /// After this many bytes.
    Sized(usize),
}

/// Options of both ends of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PgmOptions {
    /// How content becomes packets.
    pub framing: Framing,
    /// How it is cut; in packets as large as can be when `None` (without framing), in lines (with ZeroMQ's).
    pub messages: Option<Messages>,
    /// UDP port that negative acknowledgements go to; the group's when `None`.
    pub nak_port: Option<u16>,
    /// PGM's own destination port; the group's UDP port when `None`.
    pub data_port: Option<u16>,
}

/// How a source over PGM runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PgmSend {
    /// Where it sends.
    pub place: SourcePlace,
    /// Congestion control.
    pub scheme: Scheme,
    /// Never slower than this.
    pub min: Option<Rate>,
    /// Never faster than this.
    pub max: Option<Rate>,
    /// How long no receiver must have missed anything before the session ends.
    pub linger: Duration,
    /// One file or stream.
    pub content: Content,
    /// Framing and ports.
    pub options: PgmOptions,
    /// Limits of the packets stored for repairs.
    pub window: WindowLimits,
}

/// How a receiver over PGM runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PgmReceive {
    /// Where it listens, and for how long.
    pub place: ReceiverPlace,
    /// Where content goes; in a directory, to a file named after the session.
    pub destination: Destination,
    /// A session that brings more bytes than this ends with an error.
    pub most: Option<u64>,
    /// Framing and ports.
    pub options: PgmOptions,
}

impl PgmSend {
    /// Send this to [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP) with LE-SBCC, the one scheme whose receivers can be any
    /// that speak PGM, until nothing has been missing for 10 s.
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
    /// Receive into this from [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP).
    pub fn new(destination: Destination) -> PgmReceive {
        PgmReceive {
            place: ReceiverPlace::default(),
            destination,
            most: None,
            options: PgmOptions::default(),
        }
    }
}

/// When a sent packet can no longer be repaired: whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowLimits {
    /// When it is as old as this.
    pub age: Span,
    /// When more bytes than these would have to be stored.
    pub bytes: usize,
}

impl Default for WindowLimits {
    /// A minute and 64 MiB: longer than OpenPGM's receivers ask for a packet (50 times, 0.25 s apart).
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

/// Result of a receiver over PGM.
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

/// Returns the identity of a host for a scheme: hosts on PGM have no name except their address.
fn receiver_id(address: Ipv4Addr) -> Option<ReceiverId> {
    ReceiverId::new(u32::from(address).into())
}

/// The address of a receiver; `None` if the id is not one of [`receiver_id`]'s.
fn address_of(id: ReceiverId) -> Option<Ipv4Addr> {
    u32::try_from(id.get()).ok().map(Ipv4Addr::from)
}

/// The IPv4 address, which is all that PGM over UDP is spoken on here.
fn ipv4(address: IpAddr) -> Result<Ipv4Addr, Error> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(PgmError::NeedsIpv4(address).into()),
    }
}
