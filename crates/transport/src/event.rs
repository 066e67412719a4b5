//! Events and reports of sessions.

mod refused;
mod states;

use crate::dry_run::{DryRunReport, HostComparison};
use crate::json;
use crate::object::LeftOut;
use crate::receipts::{ReceiptReport, ReceiptsReport};
use faircast_core::packet::ReceiverId;
use faircast_core::time::Rate;
use faircast_wire::{Series, TransferId};
pub use refused::RefusedPackets;
use serde::{Deserialize, Serialize};
pub use states::{Busy, Condition, Counts, Queues, RateCut, ReceiverState};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

/// An event of a session. In its JSON form, the field `event` contains the name of the event. Later versions only add fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The sockets are open.
    Opened {
        /// Address and port of the group.
        group: SocketAddr,
        /// Interface in use.
        interface: String,
        /// Address of this host.
        local: IpAddr,
        /// Other available interfaces.
        alternatives: Vec<String>,
    },
    /// A condition that does not end the session: a small buffer, a skipped file.
    Warning {
        /// Human-readable text.
        message: String,
        /// The setting that the warning is about, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        concerns: Option<Setting>,
    },
    /// Events were dropped because the program did not read them in time.
    Dropped {
        /// Events dropped since the last `Dropped`.
        count: u64,
    },
    /// At a source: the content was opened. At a receiver: the manifest has arrived.
    Content {
        /// Identity of the transfer.
        transfer: TransferName,
        /// Number of files.
        files: u64,
        /// Number of symbolic links.
        links: u64,
        /// Number of directories.
        directories: u64,
        /// Bytes of file content; `None` for a stream.
        bytes: Option<u64>,
        /// Number of bytes that the receiver verified in an earlier run.
        resumed_bytes: u64,
    },
    /// At a source: a receiver has joined. At a receiver: the receiver has found a session of this source.
    Joined {
        /// Identifier of the receiver; `None` for PGM, which has no identifiers.
        #[serde(serialize_with = "json::receiver")]
        receiver: Option<ReceiverId>,
        /// Host name.
        host: String,
        /// Address.
        address: SocketAddr,
    },
    /// The session has a place in a series of sessions of its source. At a receiver, this event follows [`Event::Joined`].
    Numbered {
        /// Random number of the series.
        #[serde(serialize_with = "json::hex")]
        series: u64,
        /// Number of the session in the series; the first one has the number 1.
        number: u64,
        /// Name of the file, at a source that watches a directory.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// At a receiver that records a series: sessions of the series have not been received.
    Missed {
        /// Random number of the series.
        #[serde(serialize_with = "json::hex")]
        series: u64,
        /// Host name of the source.
        host: String,
        /// Number of the first of these sessions.
        first: u64,
        /// Number of the last of these sessions.
        last: u64,
    },
    /// At a receiver: another source sends to the group. The receiver ignores the session of the other source.
    OtherSource {
        /// Host name of the other source.
        host: String,
        /// Address.
        address: SocketAddr,
        /// Host name of the source whose session this receiver receives.
        followed: String,
    },
    /// At a source: a receiver receives the announcements of this session, but takes part in another session.
    Busy {
        /// Host name of the receiver.
        host: String,
        /// Address.
        address: SocketAddr,
        /// Host name of the source of the other session; `None` if unknown.
        source: Option<String>,
        /// Content of the other session; `None` if unknown.
        content: Option<String>,
        /// Expected end of the other session, by the clock of this host.
        #[serde(serialize_with = "json::unix_seconds")]
        until: Option<SystemTime>,
        /// Whether the receiver has completed the other session and will end. Another receiver must then be started at that host
        /// for this session.
        done: bool,
    },
    /// A receiver has left.
    Left {
        /// Identifier of the receiver.
        #[serde(serialize_with = "json::text")]
        receiver: ReceiverId,
        /// Host name.
        host: String,
        /// Whether it has verified all content.
        verified: bool,
        /// Reason, if the content is incomplete.
        reason: Option<String>,
    },
    /// At a source: a receiver has sent a signed receipt for the content.
    Receipt(ReceiptReport),
    /// At the source of a dry run: a receiver has compared its disk with the list of files.
    Compared(HostComparison),
    /// A receiver is too slow for the session. [`SlowReceiverPolicy`](crate::SlowReceiverPolicy) determines the action.
    #[serde(rename = "slow")]
    SlowReceiver {
        /// Identifier of the receiver.
        #[serde(serialize_with = "json::text")]
        receiver: ReceiverId,
        /// Host name.
        host: String,
        /// Rate that the receiver can follow.
        #[serde(rename = "rate_bps", with = "json::bps")]
        rate: Rate,
        /// Action taken.
        action: SlowAction,
    },
    /// This receiver has joined or left layers.
    Layers(Subscription),
    /// The output of a layer of a live stream starts, resumes or stops.
    Output {
        /// Number of the layer, from 0.
        layer: u8,
        /// New state of the output.
        flow: Flow,
        /// Number of bytes written so far.
        bytes: u64,
        /// Destination; `None` if the layer is not written.
        to: Option<String>,
    },
    /// State of the session, reported once a second.
    Progress(Progress),
    /// At a source with [`ReceiverEvents::EverySecond`](crate::config::ReceiverEvents): states of receivers, once a second. Each event
    /// has at most [`ReceiverState::LISTED`] receivers; of more receivers, the next event has the next ones.
    Receivers {
        /// States of the receivers, and of the relays that receive from this source.
        receivers: Vec<ReceiverState>,
    },
}

impl Event {
    /// Returns a warning with this text.
    pub fn warning(message: impl Into<String>) -> Event {
        Event::Warning { message: message.into(), concerns: None }
    }

    /// Returns the event of a session with this place in a series.
    pub const fn of_series(Series { id, number }: Series) -> Event {
        Event::Numbered { series: id, number, name: None }
    }

    /// Returns a warning with this text about this setting.
    pub fn warning_of(setting: Setting, message: impl Into<String>) -> Event {
        Event::Warning { message: message.into(), concerns: Some(setting) }
    }
}

/// Identity of a transfer; a string in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
#[non_exhaustive]
pub enum TransferName {
    /// Identifier in faircast's own format. A resumed session has the same identifier.
    Own(TransferId),
    /// The name of the session in a foreign format.
    Foreign(String),
}

impl fmt::Display for TransferName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferName::Own(id) => id.fmt(f),
            TransferName::Foreign(name) => f.write_str(name),
        }
    }
}

impl From<TransferName> for String {
    fn from(name: TransferName) -> String {
        name.to_string()
    }
}

/// The setting that a warning concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Setting {
    /// The idle timeout.
    Timeout,
    /// The size of datagrams of the source.
    Datagram,
    /// The congestion control.
    Scheme,
    /// The role of a relay.
    Role,
    /// The network interface.
    Interface,
    /// The port for feedback.
    Port,
    /// The group.
    Group,
    /// The selection of symbolic links to follow.
    Links,
}

/// Action taken on a slow receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SlowAction {
    /// The session adapts to it.
    Follow,
    /// The receiver is served after the other receivers have completed.
    Deferred,
    /// It is dropped.
    Dropped,
}

impl fmt::Display for SlowAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SlowAction::Follow => "followed",
            SlowAction::Deferred => "deferred",
            SlowAction::Dropped => "dropped",
        })
    }
}

/// State of the output of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// The output starts: from now on it contains the current stream.
    Starts,
    /// The output stops: the layer was left, or the session has ended.
    Stops,
}

/// Layers that a receiver has joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Subscription {
    /// Number of joined layers, including the base layer.
    pub joined: u8,
    /// Maximum number of layers.
    pub of: u8,
}

/// State of a session, reported once a second.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Progress {
    /// Time since the start of the session.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub elapsed: Duration,
    /// At a source: number of content bytes sent, without repairs. At a receiver: number of verified bytes; for a file in layers,
    /// number of received bytes.
    pub bytes: u64,
    /// Number of content bytes transferred by this session, without the bytes of an earlier run.
    pub moved_bytes: u64,
    /// Total number of content bytes, if known.
    pub total_bytes: Option<u64>,
    /// Rate in the last second, headers included. At a source: sent data. At a receiver: received data.
    #[serde(rename = "rate_bps", with = "json::bps")]
    pub rate: Rate,
    /// The rate that the congestion control allows (source).
    #[serde(rename = "allowed_bps", serialize_with = "json::optional_bps")]
    pub allowed: Option<Rate>,
    /// At a source: round-trip time to the representative; `None` without feedback.
    #[serde(rename = "rtt_ms", serialize_with = "json::optional_millis")]
    pub rtt: Option<Duration>,
    /// Fraction of packets lost in the last second. At a receiver: as measured. At a source: as reported to it.
    pub loss: f64,
    /// At a source: host name of the representative, which limits the rate.
    pub representative: Option<String>,
    /// Number of receivers, completed ones included (source).
    pub receivers: u64,
    /// Number of completed receivers (source).
    pub verified: u64,
    /// Receivers that have joined before the start (source).
    pub joining: Option<Box<Joining>>,
    /// Joined layers (receiver of a layered session).
    pub layers: Option<Subscription>,
    /// At the source of a session with one rate: the factor that limited the rate in the last second.
    pub limited_by: Option<Limit>,
    /// Host name of the receiver whose window limited the rate.
    pub window_of: Option<String>,
    /// At a source: relays of the session, each listed before its downstream relays.
    pub relays: Vec<RelayBelow>,
    /// Receivers whose hosts are processing files, at most [`Busy::NAMED`]. At a receiver: only this receiver.
    pub busy: Vec<Busy>,
    /// Rate cuts of the last second, at most [`RateCut::LISTED`] (source).
    pub cuts: Vec<RateCut>,
    /// Bytes that wait at this host (receiver); `None` with a foreign format.
    pub queues: Option<Queues>,
    /// Counts since the start of the session; `None` with a foreign format.
    pub counts: Option<Box<Counts>>,
}

/// Receivers that have joined before the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Joining {
    /// Number of receivers that have joined and not failed.
    pub joined: u64,
    /// Number of expected receivers, if given.
    pub expected: Option<u64>,
    /// Required receivers that have not joined, at most 8.
    pub absent: Vec<String>,
    /// Receivers that have joined and failed, at most 8.
    pub failed: Vec<IncompleteReceiver>,
    /// Seconds until the start time, if it is in the future.
    pub seconds_to_start: Option<u64>,
}

impl Joining {
    /// Maximum number of listed receivers of each kind.
    pub(crate) const NAMED: usize = 8;
}

/// A relay downstream of a source or another relay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayBelow {
    /// Number of relays between this relay and the reporting source or relay, plus 1; at most 16.
    pub depth: u8,
    /// Host name, cut to 24 bytes if `depth` exceeds 1.
    pub host: String,
    /// Address.
    pub address: SocketAddr,
    /// Number of its downstream receivers.
    pub receivers: u64,
    /// Number of its completed downstream receivers.
    pub done: u64,
    /// Rate at which the relay received data in the last second before its report.
    #[serde(rename = "rate_bps", with = "json::bps")]
    pub rate: Rate,
}

impl RelayBelow {
    /// Maximum depth of a relay.
    pub const MAX_DEPTH: u8 = 16;

    /// Maximum number of reported relays downstream of one relay.
    pub(crate) const MAX_RELAYS: usize = 128;
}

/// Outcome of an invited host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostReport {
    /// Configured name of the host.
    pub host: String,
    /// Address to which the invitation was sent.
    pub address: SocketAddr,
    /// Outcome.
    pub outcome: HostOutcome,
}

/// Outcome of an invited host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostOutcome {
    /// It has verified all content.
    Done,
    /// It joined and is incomplete.
    Incomplete,
    /// It did not answer.
    Unanswered,
}

/// Factor that limits the rate of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Congestion control.
    Congestion,
    /// The window of a receiver: the disk or processor of its host, or the reader of its output, is too slow.
    Window,
    /// The source: its program has no more data, or its host is too slow.
    Application,
    /// The configured maximum rate.
    Max,
}

/// Outcome of a receiver, or of a relay and its downstream receivers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReceiverReport {
    /// Host name, as the receiver states it.
    pub host: String,
    /// Address from which the receiver reports; `None` if it did not join.
    pub address: Option<SocketAddr>,
    /// Outcome.
    pub outcome: ReceiverOutcome,
    /// 1 for a receiver; for a relay, the number of its downstream receivers.
    pub receivers: u64,
    /// Number of verified bytes, including bytes of the manifest.
    pub verified_bytes: u64,
    /// Number of bytes verified in an earlier run and not sent again, as the receiver states it.
    pub resumed_bytes: u64,
    /// Time to completion, or to the end of the session. It starts with the first data packet, or with the join if the receiver
    /// joined later.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// Content verified in this session, divided by `duration`.
    #[serde(rename = "rate_bps", with = "json::bps")]
    pub rate: Rate,
    /// Fraction of lost packets in its last report.
    pub loss: f64,
    /// Least round-trip time; `None` if it was not measured.
    #[serde(rename = "rtt_ms", serialize_with = "json::optional_millis")]
    pub rtt: Option<Duration>,
    /// Mean round-trip time of its congestion reports. It exceeds `rtt` if the losses are due to a full queue.
    #[serde(rename = "congested_rtt_ms", serialize_with = "json::optional_millis")]
    pub congested_rtt: Option<Duration>,
    /// Time from the first data packet to its join; zero if it joined before.
    #[serde(rename = "joined_seconds", with = "json::seconds")]
    pub joined: Duration,
    /// Number of symbols that the receiver requested: lost symbols, and symbols sent before it joined.
    pub repair_symbols: u64,
    /// If the receiver is incomplete or has no valid receipt: the reason.
    pub reason: Option<String>,
    /// Receipt of the receiver. Receipts of receivers behind relays appear in [`ReceiptsReport::signed`] only.
    pub receipt: Option<ReceiptReport>,
}

impl ReceiverReport {
    /// Returns its host name with the reason.
    pub(crate) fn incomplete(&self) -> IncompleteReceiver {
        let reason = self.reason.clone().unwrap_or_default();
        IncompleteReceiver { host: self.host.clone(), reason }
    }

    /// Returns the report of a required host after a failed session. It is unknown whether the host had joined.
    #[must_use]
    pub fn unknown(host: String) -> ReceiverReport {
        let reason = Some("the session failed".to_owned());
        ReceiverReport { outcome: ReceiverOutcome::Incomplete, reason, ..ReceiverReport::absent(host) }
    }

    /// Returns the report of a host that cannot take part.
    #[must_use]
    pub fn refused(host: String, reason: String) -> ReceiverReport {
        let reason = Some(format!("refused: {reason}"));
        ReceiverReport { outcome: ReceiverOutcome::Refused, reason, ..ReceiverReport::absent(host) }
    }

    /// Returns the report of a required host that did not join.
    #[must_use]
    pub fn absent(host: String) -> ReceiverReport {
        ReceiverReport {
            host,
            address: None,
            outcome: ReceiverOutcome::Absent,
            receivers: 1,
            verified_bytes: 0,
            resumed_bytes: 0,
            duration: Duration::ZERO,
            rate: Rate::ZERO,
            loss: 0.0,
            rtt: None,
            congested_rtt: None,
            joined: Duration::ZERO,
            repair_symbols: 0,
            reason: Some("it did not join".to_owned()),
            receipt: None,
        }
    }
}

/// Prefixes of the reasons why receivers are incomplete.
pub mod reasons {
    /// The disk is full.
    pub const DISK_FULL: &str = "its disk is full";
    /// The directory or a file is not writable.
    pub const PERMISSION: &str = "it has no permission to write this file or directory";
    /// The host has newer content.
    pub const OLDER: &str = "it has content of a newer session";
    /// The host has content of another source under the same name.
    pub const OTHER_SOURCE: &str = "it has content of another source under this name";
}

/// Outcome of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiverOutcome {
    /// It has verified all content.
    Verified,
    /// It joined and is incomplete.
    Incomplete,
    /// It was dropped as too slow.
    Dropped,
    /// The host was expected but cannot take part, for example because it has another key. Its refusal message is not
    /// authenticated.
    Refused,
    /// It was required and did not join.
    Absent,
}

/// Maximum number of unsent files that a report lists.
pub const MAX_UNSENT: usize = 1_000;

/// Result of `send`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SendReport {
    /// Whether all expected, required and joined receivers have verified all content. `false` if receivers were dropped, or if
    /// the source could not read files.
    pub ok: bool,
    /// Whether the session was stopped at the source; the report then describes the state at that time.
    pub stopped: bool,
    /// Number of repetitions of the whole content in a session without feedback; otherwise 0.
    pub rounds: u64,
    /// Number of receivers. A restarted receiver is counted once.
    pub receivers: u64,
    /// Number of expected receivers that did not join.
    pub missing: u64,
    /// Number of receivers that have verified all content.
    pub verified: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Number of content bytes transferred by this session, without bytes that all receivers had from an earlier run. If no
    /// receiver is complete: the largest number of bytes that a receiver has verified.
    pub moved_bytes: u64,
    /// Time from the first data packet to completion at all receivers, or to the end.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// Time for which the source waited for further receivers after `duration`, at most until the join timeout.
    #[serde(rename = "waited_seconds", with = "json::seconds")]
    pub waited: Duration,
    /// Time from the start of the session to the first data packet.
    #[serde(rename = "start_seconds", with = "json::seconds")]
    pub until_data: Duration,
    /// `moved_bytes` divided by `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Number of symbols sent on all layers, divided by the number of symbols of the content.
    pub repair_ratio: f64,
    /// Maximum number of layers; 1 for a session with one rate.
    pub layers: u8,
    /// Number of datagrams sent.
    pub packets: u64,
    /// Size of a datagram with a symbol, IP and UDP headers included.
    pub packet_bytes: u64,
    /// Number of rate cuts.
    pub cuts: u64,
    /// Incomplete receivers.
    pub incomplete: Vec<IncompleteReceiver>,
    /// Host names of receivers that were deferred or dropped as too slow.
    pub slow: Vec<String>,
    /// Host names of receivers that were dropped as too slow and are incomplete.
    pub dropped: Vec<String>,
    /// Required receivers that did not join, by their configured name or address.
    pub absent: Vec<String>,
    /// Expected receivers that cannot take part, with the reasons.
    pub refused_hosts: Vec<IncompleteReceiver>,
    /// Files that could not be read or that changed during the session; at most [`MAX_UNSENT`].
    pub unsent: Vec<LeftOut>,
    /// Total number of files that were not sent.
    pub unsent_count: u64,
    /// Number of rejected packets: forged, replayed or damaged.
    pub refused: u64,
    /// The same packets by reason.
    pub refused_by: RefusedPackets,
    /// Advice, if receivers are incomplete and the cause is apparent.
    pub advice: Option<Advice>,
    /// Results of the layers of a live stream, the base layer first.
    pub streams: Vec<StreamSent>,
    /// Relays of the session, each listed before its downstream relays.
    pub relays: Vec<RelayBelow>,
    /// Outcomes of the invited hosts.
    pub hosts: Vec<HostReport>,
    /// In a dry run: its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRunReport>,
    /// Receipts; `None` if no receiver has sent a receipt and the source requires none.
    #[serde(skip)]
    pub receipts: Option<ReceiptsReport>,
    /// Number of valid receipts.
    pub signed: u64,
    /// Outcomes of the receivers. They are not part of the JSON output, because their number is unlimited.
    #[serde(skip)]
    pub each: Vec<ReceiverReport>,
}

/// Advice for the case that announcements arrive, but data packets do not.
pub(crate) const LOOK_AT_PATH: &str =
    "check the MTU of the path (smaller datagrams at the source may pass) and firewalls";

/// Advice if receivers are incomplete; a sentence in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
#[non_exhaustive]
pub enum Advice {
    /// Announcements arrive, but data does not.
    Path,
    /// No feedback arrives.
    WayBack,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Advice::Path => LOOK_AT_PATH,
            Advice::WayBack => {
                "no feedback arrived: check the reverse path and firewalls: UDP from the receivers must reach the port from which this host sends"
            }
        })
    }
}

impl From<Advice> for String {
    fn from(advice: Advice) -> String {
        advice.to_string()
    }
}

/// An incomplete receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncompleteReceiver {
    /// Host name.
    pub host: String,
    /// Reason.
    pub reason: String,
}

/// Stream of a layer, at the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StreamSent {
    /// Bytes sent.
    pub bytes: u64,
    /// Number of blocks sent.
    pub blocks: u64,
    /// Number of blocks that expired before the layer could send them.
    pub blocks_dropped: u64,
}

/// Result of `recv`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ReceiveReport {
    /// Whether all content is verified and no file was withdrawn.
    pub ok: bool,
    /// Whether the session was stopped at this host; the report then describes the state at that time.
    pub stopped: bool,
    /// Whether a restarted receiver would resume from this state, because the content is incomplete and is stored in a directory.
    pub resumes: bool,
    /// Number of files received.
    pub files: u64,
    /// Number of symbolic links.
    pub links: u64,
    /// Number of directories received.
    pub directories: u64,
    /// Number of deleted files and links: they were in received directories, and the source does not have them.
    pub deleted: u64,
    /// Number of content bytes; if the content is incomplete, number of verified bytes.
    pub bytes: u64,
    /// Time from the first data packet to the end.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// `moved_bytes` divided by `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Bytes of content that this session has transferred.
    pub moved_bytes: u64,
    /// Number of bytes verified in an earlier run and not sent again.
    pub resumed_bytes: u64,
    /// Number of bytes that were verified in an earlier run, but fetched again.
    pub refetched_bytes: u64,
    /// Number of packets received.
    pub packets: u64,
    /// Number of packets lost.
    pub lost: u64,
    /// Symbols received, divided by symbols needed.
    pub symbol_ratio: f64,
    /// Number of blocks that needed repair symbols.
    pub repaired_blocks: u64,
    /// Number of rejected packets: forged, replayed or damaged.
    pub refused: u64,
    /// The same packets by reason.
    pub refused_by: RefusedPackets,
    /// In signed content: number of complete blocks that the source has not signed.
    pub forged_blocks: u64,
    /// Number of datagrams that were dropped at a full socket buffer of this host.
    pub dropped_local: u64,
    /// Warnings about file links and file modes that could not be set.
    pub warnings: Vec<String>,
    /// Withdrawn files, which changed or could not be read at the source during the session; at most [`MAX_UNSENT`].
    pub withdrawn: Vec<String>,
    /// Number of all withdrawn files.
    pub withdrawn_count: u64,
    /// In a dry run: the comparison of this host. Nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<HostComparison>,
    /// Layers of a layered session.
    pub layers: Option<LayersReport>,
    /// Results of the layers of a live stream, the base layer first.
    pub streams: Vec<StreamReceived>,
}

/// Stream of a layer, at a receiver.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StreamReceived {
    /// Number of bytes written in order, without lost blocks.
    pub bytes: u64,
    /// Number of verified blocks.
    pub blocks: u64,
    /// Number of blocks that stayed incomplete while the layer was joined.
    pub blocks_lost: u64,
    /// Time for which the layer was joined.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub joined_for: Duration,
    /// Destination; `None` if the layer was not written.
    pub to: Option<String>,
}

/// Layers that a receiver joined and left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LayersReport {
    /// Maximum number of layers.
    pub of: u8,
    /// Maximum number of simultaneously joined layers, including the base layer.
    pub highest: u8,
    /// Number of joins of layers above the base layer.
    pub joins: u64,
    /// Number of times that the receiver left a layer during the session.
    pub leaves: u64,
}
