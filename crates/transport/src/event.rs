//! What a session tells while it runs, and at its end.

use crate::json;
use crate::object::LeftOut;
use crate::receipts::{ReceiptReport, ReceiptsReport};
use faircast_core::packet::ReceiverId;
use faircast_core::time::Rate;
use faircast_wire::{Activity, TransferId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

/// Something worth telling. As JSON it is an object whose `event` says which; fields are added, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The sockets are open.
    Opened {
        /// Group address and port.
        group: SocketAddr,
        /// Interface in use.
        interface: String,
        /// Its address.
        local: IpAddr,
        /// Other interfaces that could have been used.
        alternatives: Vec<String>,
    },
    /// Worth knowing, not fatal: a small buffer, a skipped file.
    Warning {
        /// In words.
        message: String,
        /// What of the configuration it is about, if anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        concerns: Option<Setting>,
    },
    /// In place of events that were dropped, because the reader of the events did not read them in time.
    Dropped {
        /// Number of dropped events, since the last time.
        count: u64,
    },
    /// The content is known: a source has opened it, a receiver has its manifest.
    Content {
        /// Identity of the transfer.
        transfer: TransferName,
        /// Files in it.
        files: u64,
        /// Symbolic links in it.
        links: u64,
        /// Directories in it.
        directories: u64,
        /// Bytes of file content; `None` for a stream.
        bytes: Option<u64>,
        /// Bytes that a receiver had verified before (resume).
        resumed_bytes: u64,
    },
    /// A receiver has joined (source), or the session was found (receiver: the source's name).
    Joined {
        /// The receiver's id; at a receiver its own. PGM has none.
        #[serde(serialize_with = "json::receiver")]
        receiver: Option<ReceiverId>,
        /// Host name.
        host: String,
        /// Its address.
        address: SocketAddr,
    },
    /// At a receiver: another source sends on the group, and its session is not followed.
    OtherSource {
        /// The other source's host name.
        host: String,
        /// Its address.
        address: SocketAddr,
        /// Host name of the source whose session is followed.
        followed: String,
    },
    /// At the source: a receiver hears this session and takes part in another one.
    Busy {
        /// The receiver's host name.
        host: String,
        /// Its address.
        address: SocketAddr,
        /// Host name of the source of the other session; `None` where the receiver does not say.
        source: Option<String>,
        /// Content of the other session, likewise.
        content: Option<String>,
        /// When that session is expected to end, by this host's clock.
        #[serde(serialize_with = "json::unix_seconds")]
        until: Option<SystemTime>,
        /// Whether the receiver has everything of that session and ends: another one has to be started there for this session.
        done: bool,
    },
    /// A receiver is done, or gone.
    Left {
        /// The receiver's id.
        #[serde(serialize_with = "json::text")]
        receiver: ReceiverId,
        /// Host name.
        host: String,
        /// Whether it has everything, verified.
        verified: bool,
        /// Why it left, when it has not.
        reason: Option<String>,
    },
    /// At the source: a receiver has signed that it has verified everything.
    Receipt(ReceiptReport),
    /// A receiver cannot keep up; what is done about it follows from [`SlowReceiverPolicy`](crate::SlowReceiverPolicy).
    #[serde(rename = "slow")]
    SlowReceiver {
        /// The receiver's id.
        #[serde(serialize_with = "json::text")]
        receiver: ReceiverId,
        /// Host name.
        host: String,
        /// The rate that it can take.
        #[serde(rename = "rate_bps", with = "json::bps")]
        rate: Rate,
        /// What is done about it.
        action: SlowAction,
    },
    /// This receiver has joined or left layers of a layered session.
    Layers(Subscription),
    /// The bytes of a layer of a live stream begin to come, go on after a while without, or stop.
    Output {
        /// The layer.
        layer: u8,
        /// What it does from now on.
        flow: Flow,
        /// Bytes of it that have been written so far.
        bytes: u64,
        /// Where it is written; `None` when nobody wants it.
        to: Option<String>,
    },
    /// Once a second.
    Progress(Progress),
}

impl Event {
    /// A warning in these words.
    pub fn warning(message: impl Into<String>) -> Event {
        Event::Warning { message: message.into(), concerns: None }
    }

    /// A warning in these words, about this part of the configuration.
    pub fn warning_of(setting: Setting, message: impl Into<String>) -> Event {
        Event::Warning { message: message.into(), concerns: Some(setting) }
    }
}

/// Identity of a transfer. As JSON it is a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
#[non_exhaustive]
pub enum TransferName {
    /// In faircast's own format, where it stays the same when a session is resumed.
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

/// What of a session's configuration a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Setting {
    /// How long silence and outages are waited for, as the warning says.
    Timeout,
    /// The size of datagrams at the source: smaller ones may pass.
    Datagram,
    /// The congestion control.
    Scheme,
    /// What a relay is to those behind it.
    Role,
    /// The network interface.
    Interface,
    /// The port that receivers answer to.
    Port,
    /// The group.
    Group,
    /// The symbolic links that are followed.
    Links,
}

/// What is done about a slow receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SlowAction {
    /// Everybody waits for it.
    Follow,
    /// It is served when the others are done.
    Deferred,
    /// It is left out.
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

/// Whether a layer's bytes come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// They come: from here on the output holds the stream as it is at present.
    Comes,
    /// The layer was left, or the session has ended.
    Stops,
}

/// How much of a layered session a receiver takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Subscription {
    /// Layers joined, the base layer included.
    pub joined: u8,
    /// Layers that there may be.
    pub of: u8,
}

/// The state of a session, once a second.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Progress {
    /// Time since the session started.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub elapsed: Duration,
    /// Source: bytes of content sent once; receiver: bytes verified and, of a file in layers, whose blocks are
    /// all done at the end, bytes that have come.
    pub bytes: u64,
    /// Bytes of content that this session has moved: without those that were there from an earlier run.
    pub moved_bytes: u64,
    /// Bytes of content in all, when known.
    pub total_bytes: Option<u64>,
    /// Rate of the last second, headers included: sent (source) or received (receiver).
    #[serde(rename = "rate_bps", with = "json::bps")]
    pub rate: Rate,
    /// The rate that the congestion control allows (source).
    #[serde(rename = "allowed_bps", serialize_with = "json::optional_bps")]
    pub allowed: Option<Rate>,
    /// Round-trip time to the followed receiver (source); `None` while no receiver is heard.
    #[serde(rename = "rtt_ms", serialize_with = "json::optional_millis")]
    pub rtt: Option<Duration>,
    /// Fraction of packets lost over the last second (receiver), or reported (source).
    pub loss: f64,
    /// Host name of the receiver that limits the rate (source).
    pub representative: Option<String>,
    /// Receivers known and done (source).
    pub receivers: u64,
    /// Receivers done (source).
    pub verified: u64,
    /// Who has joined, while the start is waited for (source).
    pub joining: Option<Joining>,
    /// The layers that are joined (receiver of a layered session).
    pub layers: Option<Subscription>,
    /// What limited the rate over the last second (source of a session at one rate).
    pub limited_by: Option<Limit>,
    /// Host name of the receiver whose window that was.
    pub window_of: Option<String>,
    /// The relays that take part, each before those behind it (source).
    pub relays: Vec<RelayBelow>,
    /// Receivers whose hosts work on files, [`Busy::NAMED`] at most (at a receiver itself).
    pub busy: Vec<Busy>,
}

/// A receiver whose host works on files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// Host name.
    pub host: String,
    /// Its work, in words: "renaming files".
    pub activity: &'static str,
    /// How much of that is done, in percent.
    pub percent: u8,
}

impl Busy {
    /// This many are named.
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

/// The receivers before the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Joining {
    /// Receivers that have joined and have not failed.
    pub joined: u64,
    /// Receivers that are expected, when that was said.
    pub expected: Option<u64>,
    /// Some of those that must have everything and have not joined, 8 at most.
    pub absent: Vec<String>,
    /// Some of those that have joined and failed, 8 at most.
    pub failed: Vec<IncompleteReceiver>,
}

impl Joining {
    /// So many are named of each kind.
    pub(crate) const NAMED: usize = 8;
}

/// A relay below a source or relay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayBelow {
    /// 1 for one that hears this source or relay itself, 2 for one behind it, and so on, up to 16.
    pub depth: u8,
    /// Host name; of one behind others, its first 24 bytes.
    pub host: String,
    /// Its address.
    pub address: SocketAddr,
    /// Receivers below it.
    pub receivers: u64,
    /// Those among them that have everything.
    pub done: u64,
    /// The rate at which it received over its last second.
    #[serde(rename = "rate_bps", with = "json::bps")]
    pub rate: Rate,
}

impl RelayBelow {
    /// No relay is deeper.
    pub const MAX_DEPTH: u8 = 16;

    /// So many relays behind one are told of at most.
    pub(crate) const MAX_RELAYS: usize = 128;
}

/// What has become of a host that was invited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostReport {
    /// As the list names it.
    pub host: String,
    /// Where it was invited.
    pub address: SocketAddr,
    /// What has become of it.
    pub outcome: HostOutcome,
}

/// See [`HostReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostOutcome {
    /// It has everything, verified.
    Done,
    /// It has come, and does not have everything.
    Incomplete,
    /// It has never answered.
    Unanswered,
}

/// What limits a source's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// The network, as the congestion control sees it.
    Congestion,
    /// The buffers of a receiver's host: its disk, its processor, or who reads its output.
    Window,
    /// There is not more to send, or this host sends no faster.
    Application,
    /// The highest rate of the configuration.
    Max,
}

/// What has become of a receiver, or of a relay for those behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReceiverReport {
    /// Host name, as it says.
    pub host: String,
    /// Where it reported from; of one that has never come, nothing.
    pub address: Option<SocketAddr>,
    /// What has become of it.
    pub outcome: ReceiverOutcome,
    /// Receivers that it speaks for: 1, or those behind a relay.
    pub receivers: u64,
    /// Bytes that it has verified, the list of files among them.
    pub verified_bytes: u64,
    /// Those among them that it had when it joined, from an earlier run.
    pub resumed_bytes: u64,
    /// From the first data packet, or its joining when that was later, until it had everything or the session ended.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// Content that it has verified in this session over `duration`.
    #[serde(rename = "rate_bps", with = "json::bps")]
    pub rate: Rate,
    /// Fraction of packets that it has lost, as it said last.
    pub loss: f64,
    /// Symbols that it has asked for: lost ones, and those that left before it joined.
    pub repair_symbols: u64,
    /// Why it does not have everything, or has no receipt that counts.
    pub reason: Option<String>,
    /// What it has signed. Those of receivers behind relays are in [`ReceiptsReport::signed`] alone.
    pub receipt: Option<ReceiptReport>,
}

impl ReceiverReport {
    /// Its host and the reason.
    pub(crate) fn incomplete(&self) -> IncompleteReceiver {
        let reason = self.reason.clone().unwrap_or_default();
        IncompleteReceiver { host: self.host.clone(), reason }
    }

    /// Record of a required host after a failed session: it may have joined.
    #[must_use]
    pub fn unknown(host: String) -> ReceiverReport {
        let reason = Some("the session failed".to_owned());
        ReceiverReport { outcome: ReceiverOutcome::Incomplete, reason, ..ReceiverReport::absent(host) }
    }

    /// Record of a host that cannot take part.
    #[must_use]
    pub fn refused(host: String, reason: String) -> ReceiverReport {
        let reason = Some(format!("refused: {reason}"));
        ReceiverReport { outcome: ReceiverOutcome::Refused, reason, ..ReceiverReport::absent(host) }
    }

    /// Of one that has never come.
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
            repair_symbols: 0,
            reason: Some("it has not come".to_owned()),
            receipt: None,
        }
    }
}

/// How reasons of receivers that do not have everything begin.
pub mod reasons {
    /// No space is left.
    pub const DISK_FULL: &str = "its disk is full";
    /// The directory or a file refuses.
    pub const PERMISSION: &str = "it may not write there";
    /// It has newer content.
    pub const OLDER: &str = "it has content of a newer session";
    /// It has content of another source under a name of this one.
    pub const OTHER_SOURCE: &str = "it has content of another source under this name";
}

/// See [`ReceiverReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiverOutcome {
    /// It has everything, verified.
    Verified,
    /// It has come and does not have everything.
    Incomplete,
    /// It was left out as too slow.
    Dropped,
    /// It was expected and cannot take part: it has another key, say. Nothing proves who says that.
    Refused,
    /// It must have everything and has not come.
    Absent,
}

/// So many files that could not be sent are named in a report.
pub const MAX_UNSENT: usize = 1_000;

/// How a `send` ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SendReport {
    /// Whether all have everything: as many as were expected, those that must, and all that have joined. One that was left out
    /// as too slow does not; and what could not be read at the source nobody has.
    pub ok: bool,
    /// Whether the session was stopped at its source. The report has its state at that moment.
    pub stopped: bool,
    /// Rounds of a session without feedback: how often the whole content was sent; 0 otherwise.
    pub rounds: u64,
    /// Receivers seen; one that was started again counts once.
    pub receivers: u64,
    /// Receivers that were expected and have never come.
    pub missing: u64,
    /// Receivers that have everything, verified.
    pub verified: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Those that this session has moved: without those that all receivers had from an earlier run; when no receiver has
    /// everything, those that the receiver with the most of them has verified.
    pub moved_bytes: u64,
    /// From the first data packet until no receiver lacked anything, or to the end.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// From then to the end: all had left, and the rest of the wait was for them.
    #[serde(rename = "waited_seconds", with = "json::seconds")]
    pub waited: Duration,
    /// From the start of the session to the first data packet.
    #[serde(rename = "start_seconds", with = "json::seconds")]
    pub until_data: Duration,
    /// `moved_bytes` over `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Symbols sent, on all layers together, over symbols of the content.
    pub repair_ratio: f64,
    /// Layers that the session might use; 1 for one rate.
    pub layers: u8,
    /// Datagrams sent.
    pub packets: u64,
    /// Rate cuts.
    pub cuts: u64,
    /// Receivers that are incomplete.
    pub incomplete: Vec<IncompleteReceiver>,
    /// Host names of receivers that were deferred or dropped as slow.
    pub slow: Vec<String>,
    /// Host names of receivers that were dropped as slow and do not have everything.
    pub dropped: Vec<String>,
    /// Those that must have everything and have not come, as they were named.
    pub absent: Vec<String>,
    /// Receivers that were expected and cannot take part, with the reason.
    pub refused_hosts: Vec<IncompleteReceiver>,
    /// What should have been sent and could not be read, or changed while it was sent, up to [`MAX_UNSENT`].
    pub unsent: Vec<LeftOut>,
    /// How many there are of those.
    pub unsent_count: u64,
    /// Packets that were refused: forged, replayed, damaged.
    pub refused: u64,
    /// Of a session that ended without everybody: what to look at, when something shows.
    pub advice: Option<Advice>,
    /// Of a live stream in layers: what has become of each, the base layer first.
    pub streams: Vec<StreamSent>,
    /// The relays that took part, each before those behind it.
    pub relays: Vec<RelayBelow>,
    /// Of a session to a list of hosts: what has become of each.
    pub hosts: Vec<HostReport>,
    /// What receivers have signed; `None` when nobody has, and nobody has to.
    #[serde(skip)]
    pub receipts: Option<ReceiptsReport>,
    /// Receipts that count: of receivers that have signed that they have verified everything.
    pub signed: u64,
    /// What has become of each receiver. No part of the JSON, as there may be very many.
    #[serde(skip)]
    pub each: Vec<ReceiverReport>,
}

/// Reasons for data that does not arrive where announcements do.
pub(crate) const LOOK_AT_PATH: &str =
    "look at the MTU of the path (smaller datagrams at the source may pass) and at firewalls";

/// What to look at when receivers are incomplete. As JSON it is a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
#[non_exhaustive]
pub enum Advice {
    /// Announcements arrive where data does not.
    Path,
    /// No answers arrive.
    WayBack,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Advice::Path => LOOK_AT_PATH,
            Advice::WayBack => {
                "nobody was heard: look at the way back, UDP from the receivers to the port that this host sends from, and at firewalls"
            }
        })
    }
}

impl From<Advice> for String {
    fn from(advice: Advice) -> String {
        advice.to_string()
    }
}

/// A receiver that does not have everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncompleteReceiver {
    /// Host name.
    pub host: String,
    /// Why, in words.
    pub reason: String,
}

/// What has become of a layer's stream at its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StreamSent {
    /// Bytes sent.
    pub bytes: u64,
    /// Blocks sent.
    pub blocks: u64,
    /// Blocks that grew too old before the layer could send them.
    pub blocks_dropped: u64,
}

/// How a `recv` ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ReceiveReport {
    /// Whether everything has arrived and is verified: no file is withdrawn.
    pub ok: bool,
    /// Whether it was stopped at this host. The report has its state at that moment.
    pub stopped: bool,
    /// Whether a receiver that is started again goes on where this one was: not when everything has arrived, and not when it
    /// was written to no directory.
    pub resumes: bool,
    /// Files received.
    pub files: u64,
    /// Symbolic links among what was sent.
    pub links: u64,
    /// Directories received.
    pub directories: u64,
    /// Bytes of content; when not everything has arrived, those that are verified.
    pub bytes: u64,
    /// From the first data packet of the session to the end.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub duration: Duration,
    /// `moved_bytes` over `duration`.
    #[serde(rename = "goodput_bps", with = "json::bps")]
    pub goodput: Rate,
    /// Bytes of content that this session has moved.
    pub moved_bytes: u64,
    /// Bytes that had been verified in an earlier run and did not have to be sent again.
    pub resumed_bytes: u64,
    /// Bytes that had been verified in an earlier run and were fetched again all the same.
    pub refetched_bytes: u64,
    /// Packets received.
    pub packets: u64,
    /// Packets lost.
    pub lost: u64,
    /// Symbols received over symbols needed.
    pub symbol_ratio: f64,
    /// Blocks that needed repair symbols.
    pub repaired_blocks: u64,
    /// Packets that were refused: forged, replayed, damaged.
    pub refused: u64,
    /// Of signed content: blocks that came complete and that the source had not signed.
    pub forged_blocks: u64,
    /// Datagrams that this host's own socket buffer dropped.
    pub dropped_local: u64,
    /// Worth knowing: links and modes that could not be set.
    pub warnings: Vec<String>,
    /// Files that are not received, because they changed or could not be read at the source while they were sent, up to
    /// [`MAX_UNSENT`].
    pub withdrawn: Vec<String>,
    /// Number of these files.
    pub withdrawn_count: u64,
    /// What became of the layers of a layered session.
    pub layers: Option<LayersReport>,
    /// Of a live stream in layers: what has come of each, the base layer first.
    pub streams: Vec<StreamReceived>,
}

/// What has come of a layer's stream.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StreamReceived {
    /// Bytes in order, without those of lost blocks.
    pub bytes: u64,
    /// Blocks, each verified.
    pub blocks: u64,
    /// Blocks that could not be completed while the layer was joined.
    pub blocks_lost: u64,
    /// For how long the layer was joined.
    #[serde(rename = "seconds", with = "json::seconds")]
    pub joined_for: Duration,
    /// Where it was written; `None` when nobody wants it.
    pub to: Option<String>,
}

/// What a receiver did with the layers of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LayersReport {
    /// Layers that there may be.
    pub of: u8,
    /// The most that were joined at one time, the base layer included.
    pub highest: u8,
    /// Layers joined above the base layer, each time counted.
    pub joins: u64,
    /// Layers left again while the session went on.
    pub leaves: u64,
}
