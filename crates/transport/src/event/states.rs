//! States of receivers, rate cuts and counts of a session.

use super::Event;
use super::refused::RefusedPackets;
use crate::json;
use faircast_core::packet::ReceiverId;
use faircast_core::time::Rate;
use faircast_wire::Activity;
use serde::Serialize;
use std::net::SocketAddr;
use std::time::Duration;

/// A receiver whose host is processing files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// Host name.
    pub host: String,
    /// Work in progress: "renaming files".
    pub activity: &'static str,
    /// Progress of this work, percent.
    pub percent: u8,
}

impl Busy {
    /// Maximum number of listed receivers.
    pub const NAMED: usize = 8;

    pub(crate) fn new(host: &str, (activity, percent): (Activity, u8)) -> Busy {
        let activity = match activity {
            Activity::Network => "receiving",
            Activity::Verifying => "verifying files",
            Activity::Completing => "completing files",
            Activity::Renaming => "renaming files",
            Activity::Linking => "making directories",
        };
        Busy { host: host.to_owned(), activity, percent: percent.min(100) }
    }
}

/// Counts of a session since its start. They never fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Number of data packets sent (source) or received (receiver).
    pub packets: u64,
    /// Number of packets lost (receiver).
    pub lost: u64,
    /// At a source: number of sent packets with repair symbols. At a receiver: number of blocks that needed them.
    pub repairs: u64,
    /// Number of rejected packets: forged, replayed or damaged.
    pub refused: u64,
    /// The same packets by reason.
    pub refused_by: RefusedPackets,
    /// Number of datagrams that the socket buffer of this host dropped (receiver).
    pub dropped_local: u64,
    /// Number of rate cuts (source).
    pub cuts: u64,
}

/// Bytes that wait at a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Queues {
    /// Number of verified bytes that wait for the disk, or for the reader of the output.
    pub unwritten_bytes: u64,
    /// Kernel memory of the datagrams that wait in the socket's buffer, bytes.
    pub socket_bytes: u64,
    /// Maximum of `socket_bytes`. Further datagrams are dropped.
    pub socket_size_bytes: u64,
}

/// A rate cut by the congestion control.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RateCut {
    /// Time since the start of the session.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub at: Duration,
    /// Allowed rate before the cut.
    #[serde(rename = "from_bps", with = "json::bps")]
    pub from: Rate,
    /// Allowed rate after the cut.
    #[serde(rename = "to_bps", with = "json::bps")]
    pub to: Rate,
    /// Host name of the receiver whose report caused the cut. Without such a report: of the receiver that limits the rate.
    pub host: Option<String>,
    /// Cause, as in `docs/tracing.md`: "loss", "mark", "accumulation", "rate", "deadline".
    pub cause: &'static str,
}

impl RateCut {
    /// Maximum number of listed cuts of a second.
    pub const LISTED: usize = 8;
}

/// State of a receiver at a source, or of a relay that receives from this source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReceiverState {
    /// Identifier.
    #[serde(serialize_with = "json::text")]
    pub receiver: ReceiverId,
    /// Host name.
    pub host: String,
    /// Address.
    pub address: SocketAddr,
    /// Condition of the receiver.
    pub state: Condition,
    /// Number of verified bytes, including bytes of the manifest.
    pub verified_bytes: u64,
    /// Rate at which it receives.
    #[serde(rename = "rate_bps", with = "json::bps")]
    pub rate: Rate,
    /// Fraction of lost packets in its last report.
    pub loss: f64,
    /// Round-trip time; `None` except for the receiver that limits the rate.
    #[serde(rename = "rtt_ms", serialize_with = "json::optional_millis")]
    pub rtt: Option<Duration>,
    /// Whether its window limited the rate in the last second: its disk, its processor or the reader of its output is too slow.
    pub holds: bool,
    /// Number of datagrams that the socket buffer of its host has dropped.
    pub dropped_local: u64,
    /// Number of bytes that wait for its disk, or for the reader of its output.
    pub unwritten_bytes: u64,
    /// Number of symbols that it has requested.
    pub repair_symbols: u64,
    /// Work on files in progress, as in [`Progress::busy`](super::Progress::busy).
    pub busy: Option<Busy>,
    /// 1 for a receiver; for a relay, the number of its downstream receivers.
    pub receivers: u64,
    /// Number of completed receivers among these.
    pub done: u64,
    /// Reason, if it has failed.
    pub reason: Option<String>,
}

impl ReceiverState {
    /// Maximum number of receivers in an event.
    pub const LISTED: usize = 1_000;

    /// Returns the state of a receiver about which nothing else is known. The address is also the name.
    pub fn unnamed(receiver: ReceiverId, address: SocketAddr, state: Condition) -> ReceiverState {
        ReceiverState {
            receiver,
            host: address.ip().to_string(),
            address,
            state,
            verified_bytes: 0,
            rate: Rate::ZERO,
            loss: 0.0,
            rtt: None,
            holds: false,
            dropped_local: 0,
            unwritten_bytes: 0,
            repair_symbols: 0,
            busy: None,
            receivers: 1,
            done: u64::from(state == Condition::Done),
            reason: None,
        }
    }

    /// Returns the events that report these states.
    pub fn events(states: &[ReceiverState]) -> impl Iterator<Item = Event> + '_ {
        states.chunks(ReceiverState::LISTED).map(|some| Event::Receivers { receivers: some.to_vec() })
    }
}

/// Condition of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Condition {
    /// It receives with the other receivers.
    Receiving,
    /// It is served after the other receivers have completed.
    Deferred,
    /// It was dropped as too slow.
    Dropped,
    /// It has been silent for some time.
    Silent,
    /// It sends, but data does not reach it.
    Unreached,
    /// It has failed or left before it was complete.
    Failed,
    /// It has verified all content.
    Done,
}
