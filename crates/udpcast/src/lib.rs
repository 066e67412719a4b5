//! Sessions with udpcast: its programs `udp-sender` and `udp-receiver` are the other endpoints, unmodified.
//!
//! ```text
//!  content -> feed -> slices -> blocks paced by a scheme ----> multicast ----> udp-receiver, or our receiver -> output
//!                       ^  ^                                                             |
//!                       |  +--- repairs <--- roster: maps of blocks <--- answers <-------+
//!                       +------ reports <--- shadow: the scheme's receiver, one per host
//! ```
//!
//! [`UdpcastSend`] and [`UdpcastReceive`] run a session on sockets. The state machines of the source and of the receiver have no
//! sockets and no clock. The receivers of udpcast implement no congestion control, but they answer questions about the blocks
//! that they have. From these answers the source derives the time and the loss of each packet at each host, and runs the
//! receiver part of its scheme for each host itself.
//!
//! The protocol has neither hashes nor encryption: content is not verified.

// The tests include code of the fuzz targets, which refers to this crate by its name.
#[cfg(test)]
extern crate self as faircast_udpcast;

pub mod codec;
mod copies;
mod drive;
pub mod error;
mod feed;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod receiver;
mod rendezvous;
mod roster;
mod shadow;
mod slices;
mod source;
#[cfg(test)]
mod tests;

pub use error::UdpcastError;
pub use format::Udpcast;

use faircast_core::schemes::Scheme;
use faircast_core::time::Rate;
use faircast_driver::format::{ReceiverPlace, SourcePlace};
use faircast_transport::config::{Content, Destination, default_group, default_scheme};
use faircast_transport::event::IncompleteReceiver;
use faircast_transport::json;
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The items of this crate that the library `faircast` exports.
pub mod public {
    pub use crate::{
        DEFAULT_PORT, SCHEMES, UdpcastError, UdpcastReceive, UdpcastReceiveReport, UdpcastSend,
        UdpcastSendReport, codec,
    };
}

/// Names of the schemes whose receiver part can be run from udpcast's answers. Other schemes need layers, agents, routers, or exact
/// arrival times.
pub const SCHEMES: [&str; 4] = ["ormcc", "le-sbcc", "pgmcc", "tfmcc"];

/// Default UDP port of receivers. The sender has the next port.
pub const DEFAULT_PORT: u16 = 9000;

/// Configuration of a source for udpcast's receivers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UdpcastSend {
    /// Group of the data, interface and limits of its packets. The port is the port of the receivers. The address of faircast's
    /// default group stands for udpcast's default: a group derived from the address of this host.
    pub place: SourcePlace,
    /// Multicast group of the announcements, in addition to the broadcast address of the network.
    pub rendezvous: Option<Ipv4Addr>,
    /// Congestion control.
    pub scheme: Scheme,
    /// Minimum rate.
    pub min: Option<Rate>,
    /// Maximum rate.
    pub max: Option<Rate>,
    /// Number of receivers to wait for; `None` to start soon after the first receiver.
    pub expect: Option<u32>,
    /// Maximum time to wait for the first receiver; `None` to wait indefinitely.
    pub join_timeout: Option<Duration>,
    /// Minimum time to wait for other receivers after the first one has joined.
    pub min_wait: Duration,
    /// Maximum time to wait for the expected receivers after the first one has joined; `None` to wait indefinitely.
    pub max_wait: Option<Duration>,
    /// One file or stream.
    pub content: Content,
}

/// Configuration of a receiver for udpcast's senders.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UdpcastReceive {
    /// Port, interface and timeouts. The sender states the group.
    pub place: ReceiverPlace,
    /// Multicast group, or address of the sender, to which requests are sent in addition to the broadcast address of the network.
    pub rendezvous: Option<Ipv4Addr>,
    /// Destination of the content. If it is a directory, the content becomes a file that is named after the sender.
    pub destination: Destination,
    /// Maximum number of bytes of content. A session with more content ends with an error.
    pub most: Option<u64>,
}

impl UdpcastSend {
    /// Creates a source with the default scheme that waits 10 s for the first receiver, and then 10 s for others.
    pub fn new(content: Content) -> UdpcastSend {
        let mut place = SourcePlace::default();
        place.group = standard_group();
        UdpcastSend {
            place,
            rendezvous: None,
            scheme: default_scheme(),
            min: None,
            max: None,
            expect: None,
            join_timeout: Some(Duration::from_secs(10)),
            min_wait: Duration::ZERO,
            max_wait: Some(Duration::from_secs(10)),
            content,
        }
    }
}

impl UdpcastReceive {
    /// Creates a receiver into this destination.
    pub fn new(destination: Destination) -> UdpcastReceive {
        let mut place = ReceiverPlace::default();
        place.group = standard_group();
        UdpcastReceive { place, rendezvous: None, destination, most: None }
    }
}

/// Result of a source.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct UdpcastSendReport {
    /// Whether all expected and joined receivers have confirmed all content.
    pub ok: bool,
    /// Number of receivers that have joined.
    pub receivers: u64,
    /// Number of receivers that have confirmed all content.
    pub completed: u64,
    /// Number of expected receivers that have not joined.
    pub absent: u64,
    /// Receivers that were dropped or have left, by address.
    pub incomplete: Vec<IncompleteReceiver>,
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
    /// Number of data packets sent again.
    pub repairs: u64,
    /// Number of questions about received blocks.
    pub polls: u64,
    /// Number of answers.
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
    /// Number of rejected datagrams: malformed, or of unknown hosts.
    pub refused: u64,
}

/// Result of a receiver.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct UdpcastReceiveReport {
    /// Whether all content has been received.
    pub ok: bool,
    /// Bytes of content.
    pub bytes: u64,
    /// Time from the first data packet to the last.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// `bytes` divided by `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Number of data packets received, with duplicates.
    pub packets: u64,
    /// Number of data packets whose content had arrived before.
    pub duplicates: u64,
    /// Number of answers that reported missing blocks.
    pub requests: u64,
    /// Number of rejected datagrams: malformed, or of other hosts.
    pub refused: u64,
    /// Datagrams that the socket buffer of this host dropped.
    pub dropped_local: u64,
}

/// Returns the default group of faircast with udpcast's default port.
fn standard_group() -> SocketAddr {
    SocketAddr::new(default_group().ip(), DEFAULT_PORT)
}
