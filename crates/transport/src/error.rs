//! Errors of sessions.

use crate::config::BadLimits;
use crate::event::{LOOK_AT_PATH, ReceiverOutcome, ReceiverReport};
use crate::object::ObjectError;
use faircast_core::node::Effect;
use faircast_net::{ExitClass, NetError};
use faircast_wire::parse::VERSION;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// The class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The transfer did not succeed.
    Transfer,
    /// The configuration is not valid.
    Usage,
    /// The network or the system failed.
    System,
}

impl From<ExitClass> for Class {
    fn from(class: ExitClass) -> Class {
        match class {
            ExitClass::Usage => Class::Usage,
            ExitClass::System => Class::System,
        }
    }
}

/// An obstacle to joining a session, as observed by a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinObstacle {
    /// A sealed session was found, and this receiver has no key.
    #[error("a sealed session was found: give its key")]
    Sealed,
    /// An unsealed session was found, and this receiver has a key.
    #[error("an unsealed session was found: leave out the key to accept it")]
    Unsealed,
    /// A session was found whose packets appear to be minutes old.
    #[error(
        "a session was found, but its source's clock differs from this host's by minutes: set the clocks, or let this host answer the source; then the clocks need not agree"
    )]
    Stale,
    /// A session was found that is sealed under another key.
    #[error("a session was found that is sealed under another key ({0}); use that key")]
    OtherKey(faircast_wire::KeyId),
    /// A session of another format version was found.
    #[error(
        "a session of format version {0} was found, and this program supports version {VERSION}: update the older program"
    )]
    Version(u8),
    /// The source address that an announcement states is not the address from which it was sent.
    #[error(
        "a session is announced from {from}, but states the source address {stated}: it is a recording, or addresses are translated on the path"
    )]
    Elsewhere {
        /// The stated address.
        stated: std::net::SocketAddr,
        /// The address from which the announcement came.
        from: std::net::SocketAddr,
    },
    /// A session was found whose packets cannot be decrypted.
    #[error("packets arrive that cannot be decrypted: does the source use the same key?")]
    DoesNotOpen,
    /// A session with unsigned content was found, and signatures are required.
    #[error("a session was found whose content is not signed: leave out the public key to accept it")]
    Unsigned,
    /// A session was found that is signed with another key.
    #[error(
        "a session was found that is signed with another key: is the given public key the one of this source?"
    )]
    OtherSigner,
    /// A session was found whose announcement does not match its signature.
    #[error(
        "a session was found whose signature is wrong: another host has changed or forged its announcement"
    )]
    WrongSignature,
    /// A session with streams in layers was found, and signatures are required.
    #[error("streams in layers were found, which cannot be signed: leave out the public key to accept them")]
    UnsignedStreams,
    /// A session with an unknown scheme was found.
    #[error(
        "a session was found whose congestion control this version does not support: update this program"
    )]
    UnknownScheme,
    /// A host that should serve this receiver by unicast does not answer.
    #[error("{}", unanswered(.0))]
    NoParent(std::net::SocketAddr),
    /// No session was found, and this host was not invited.
    #[error(
        "no source has invited this host: does the source list this host, and does UDP from the source reach it?"
    )]
    Uninvited,
    /// A relay found a session with a live stream on each layer.
    #[error("a session with a stream on each layer was found: relays forward only files and single streams")]
    Layered,
    /// An agent found a session whose congestion control has no agents.
    #[error(
        "a session was found whose congestion control has no agents (only `mtcp` has agents): start the relay as a repeater"
    )]
    NoAgents,
    /// An active router found a session that it does not support.
    #[error(
        "a session was found that does not use `{0}`, the scheme of this router: the forwarding of its packets is left to the kernel"
    )]
    NoRouter(&'static str),
    /// A session without feedback was found, and this receiver requires answers from sources.
    #[error(
        "a session without feedback was found, so its source sends no answers: to receive it, accept sessions by this host's clock"
    )]
    OneWay,
    /// A session was found whose source or size this receiver does not accept.
    #[error(
        "a session was found that this host does not accept: its source has another name, or its content is too large"
    )]
    NotAccepted,
    /// A session was found whose source sends to other hosts only.
    #[error(
        "a session was found that is for other hosts: its source names the hosts that take part, and this host is not one of them; nothing of it is stored"
    )]
    OtherHosts,
    /// A session was found whose packet size and symbol size contradict each other.
    #[error("a session was found whose announced packet size does not fit its symbols")]
    PacketSize,
    /// A session was found with an invalid announcement.
    #[error("a session was found whose announcement contradicts itself")]
    Senseless,
    /// A session was found whose source does not answer.
    #[error(
        "a session is announced by {0}, which does not answer: is the reverse path blocked, or is the session a recording?"
    )]
    Unanswering(std::net::SocketAddr),
    /// Packets of another format arrived.
    #[error("{packets} packets arrived, but none in the format {format}")]
    OtherFormat {
        /// Number of these packets.
        packets: u64,
        /// Expected format.
        format: &'static str,
    },
}

/// Returns the rule that the packet filter at a source needs.
pub(crate) fn must_accept(port: u16) -> String {
    format!("This host must accept UDP from receivers on port {port}")
}

/// Formats a time in seconds, as in `7 s` and `0.5 s`.
#[must_use]
pub fn seconds(secs: f64) -> String {
    if secs.fract() == 0.0 { format!("{secs:.0} s") } else { format!("{secs:.1} s") }
}

/// Formats a number of bytes, as in `92.2 MB`.
#[must_use]
pub fn amount(bytes: u64) -> String {
    let scaled = |unit: f64| bytes as f64 / unit;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", scaled(1e3)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", scaled(1e6)),
        _ => format!("{:.2} GB", scaled(1e9)),
    }
}

/// Describes the verified data of a failed receiver, and whether the receiver's next run resumes with this data.
fn stored(verified_bytes: u64, resumes: bool) -> String {
    match (verified_bytes, resumes) {
        (0, _) => "no data was verified; start the receiver again".to_owned(),
        (bytes, true) => {
            format!("{} are verified and stored; a restarted receiver resumes", amount(bytes))
        }
        (bytes, false) => {
            format!("{} were verified; a restarted receiver starts from the beginning", amount(bytes))
        }
    }
}

/// Returns the message that no receiver joined, with the reasons of hosts that refused to join.
fn no_receiver_joined(
    group: SocketAddr,
    waited: Duration,
    (ttl, port): (u8, u16),
    each: &[ReceiverReport],
) -> String {
    match named_refusals(each) {
        Some(refusals) => format!("no receiver joined; {refusals}"),
        None => format!(
            "no receiver answered on {group} within {}; does a receiver run on this group, with the same key, within {ttl} hops? {}",
            seconds(waited.as_secs_f64()),
            must_accept(port)
        ),
    }
}

/// Lists the hosts that refuse to join, with their reasons, as in `pc1 has another key (1f2e3d4c), pc2 has no key`.
#[must_use]
pub fn named_refusals(each: &[ReceiverReport]) -> Option<String> {
    let refused = each.iter().filter(|one| one.outcome == ReceiverOutcome::Refused);
    let words = refused.map(|one| {
        let reason = one.reason.as_deref().unwrap_or_default();
        let reason = reason.strip_prefix("refused: ").unwrap_or(reason);
        match reason.strip_prefix("it ") {
            Some(verb) => format!("{} {verb}", one.host),
            None => format!("{}: {reason}", one.host),
        }
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn all_are_absent(invited: usize, waited: Duration) -> String {
    let waited = seconds(waited.as_secs_f64());
    match invited {
        0 => format!(
            "no host attached within {waited}; does a receiver with the same key have this host as its parent, and does UDP reach this host?"
        ),
        invited => format!(
            "none of the {invited} invited hosts joined within {waited}; do receivers with the same key wait on these hosts, and let UDP reach them"
        ),
    }
}

/// Returns the message that no session was found, with the obstacle if known.
fn nothing_found(group: SocketAddr, waited: Duration, seen: Option<JoinObstacle>) -> String {
    let waited = seconds(waited.as_secs_f64());
    match seen {
        Some(seen @ JoinObstacle::NoParent(_)) => format!("no session was found within {waited}: {seen}"),
        Some(seen) => format!("no session was announced on {group} within {waited}; {seen}"),
        None => format!("no session was announced on {group} within {waited}"),
    }
}

fn unanswered(place: &SocketAddr) -> String {
    match place.ip().is_multicast() {
        true => format!(
            "no relay answers in the group {place}: does a relay listen within 16 hops, and does multicast reach it?"
        ),
        false => {
            format!("{place} does not answer: does a relay listen at this address, and does UDP reach it?")
        }
    }
}

/// The reason for which a source ended a session before this receiver had completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndReason {
    /// The source drops slow receivers.
    #[error("this host was too slow, and its source drops slow receivers")]
    TooSlow,
    /// The source has completed its repetitions, and receives no feedback.
    #[error("it has completed its repetitions, and a session without feedback sends no repairs")]
    SentEnough,
    /// The source has stopped waiting.
    #[error("it has stopped waiting for this host")]
    WaitedEnough,
    /// The source was stopped.
    #[error("it was stopped")]
    Stopped,
}

impl EndReason {
    /// Returns the reason why a source ended a session. It is derived from the source's last status, and from whether the session
    /// has no feedback.
    pub(crate) const fn of(status: &faircast_wire::Status, is_one_way: bool) -> EndReason {
        match (status.flags & faircast_wire::Status::STOPPED != 0, is_one_way) {
            (true, _) => EndReason::Stopped,
            (false, true) => EndReason::SentEnough,
            (false, false) => EndReason::WaitedEnough,
        }
    }
}

/// Options that layered sessions do not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unlayered {
    /// A single live stream.
    #[error("a live stream")]
    LiveStream,
    /// A policy for slow receivers.
    #[error("a policy for slow receivers")]
    SlowPolicy,
    /// Hosts that are served by unicast.
    #[error("serving hosts by unicast")]
    Unicast,
    /// A session without feedback.
    #[error("a session without feedback")]
    OneWay,
}

impl Unlayered {
    /// Returns a hint about the alternative.
    const fn instead(self) -> &'static str {
        match self {
            Unlayered::LiveStream => "give each layer a separate stream, or choose another scheme",
            Unlayered::SlowPolicy => {
                "slow receivers join fewer layers, so they do not slow other receivers down; choose the policy `follow`"
            }
            Unlayered::Unicast => "choose a scheme at one rate: each host has its own rate",
            Unlayered::OneWay => {
                "such a session is sent at a fixed rate; omit the scheme, or choose a format without feedback"
            }
        }
    }
}

/// An error of a session in a specific format.
pub trait FormatFault: std::error::Error + Send + Sync + 'static {
    /// Returns the class of the error.
    fn class(&self) -> Class;

    /// Whether the error states only that packets are missing, so that a failure of this host's network may have caused it.
    fn may_be_the_network(&self) -> bool {
        false
    }
}

/// An error of a session in another format than faircast's own.
#[derive(Debug)]
pub struct FormatError(Box<dyn FormatFault>);

impl FormatError {
    /// Returns the format's own error if it has this type.
    #[must_use]
    pub fn downcast_ref<T: std::error::Error + 'static>(&self) -> Option<&T> {
        let error: &(dyn std::error::Error + 'static) = &*self.0;
        error.downcast_ref()
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for FormatError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl<T: FormatFault> From<T> for FormatError {
    fn from(fault: T) -> FormatError {
        FormatError(Box::new(fault))
    }
}

/// An invalid configuration. It is invalid in itself, or does not suit the session that was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Contradictory limits of the rate.
    #[error(transparent)]
    Limits(#[from] BadLimits),
    /// A datagram size that is too small for symbols, or that exceeds the interface's MTU.
    #[error(
        "datagrams of {datagram} bytes are not possible: the interface carries at most {largest} bytes, and symbols need at least {least} bytes"
    )]
    DatagramSize {
        /// The requested size.
        datagram: u16,
        /// The minimum size.
        least: u16,
        /// The maximum size on this interface.
        largest: u16,
    },
    /// The options of the scheme do not fit the announcement.
    #[error(
        "the congestion control's options take {len} bytes, but the announcement has room for {most}: set fewer options"
    )]
    SchemeOptions {
        /// Length of the options, in bytes.
        len: usize,
        /// Room in the announcement, in bytes.
        most: usize,
    },
    /// The patterns of the receivers' names are too long.
    #[error(
        "the patterns of the receivers' names take {len} bytes, but the announcement has room for {most}: set fewer or shorter patterns"
    )]
    HostPatterns {
        /// Length of the patterns, in bytes.
        len: usize,
        /// Room in the announcement, in bytes.
        most: usize,
    },
    /// A scheme or a policy of another crate, which receivers do not have.
    #[error(
        "{own} runs only in simulations, because receivers have the built-in schemes and policies alone: choose one of them"
    )]
    OwnScheme {
        /// Name of the scheme or policy.
        own: String,
    },
    /// The group has so high an address or port that there are not enough groups for all layers.
    #[error(
        "{scheme} sends {layers} layers, but there is no group for layer {top} by {by}, starting at {group}; choose a lower group, groups by {other}, or fewer layers"
    )]
    NoGroupForLayer {
        /// Name of the scheme.
        scheme: &'static str,
        /// Number of layers of the scheme.
        layers: u8,
        /// Number of the highest layer.
        top: u8,
        /// The present spacing of the groups.
        by: &'static str,
        /// The alternative spacing.
        other: &'static str,
        /// The group of the base layer.
        group: std::net::SocketAddr,
    },
    /// An option that layered sessions do not support.
    #[error("{what} is not supported with {scheme}, which sends in layers: {}", .what.instead())]
    NotInLayers {
        /// The option.
        what: Unlayered,
        /// Name of the scheme.
        scheme: &'static str,
    },
    /// Streams in layers with a scheme that has no layers.
    #[error("streams in layers need a scheme with layers, but {scheme} has none; use rlc or gmcc")]
    NeedsLayers {
        /// Name of the scheme.
        scheme: &'static str,
    },
    /// A number of streams that does not match the number of layers.
    #[error(
        "{count} streams do not match the {layers} layers of {scheme}; give 1 to {layers} streams, starting with the base layer"
    )]
    LayerInputs {
        /// Number of streams.
        count: usize,
        /// Number of layers.
        layers: u8,
        /// Name of the scheme.
        scheme: &'static str,
    },
    /// Streams in layers cannot be signed.
    #[error(
        "streams in layers cannot be signed: their blocks expire before pages of hashes arrive; send one stream, or do not sign"
    )]
    LayersUnsigned,
    /// An option that requires feedback, in a session without feedback.
    #[error(
        "{what} is not possible in a session without feedback: send files to a group or to the address of one host, at a rate above 0"
    )]
    NotOneWay {
        /// The option.
        what: &'static str,
    },
    /// Content or an option for which no dry run is possible.
    #[error("a dry run of {what} is not possible: it needs files or directories, and feedback of receivers")]
    NoDryRun {
        /// The content or the option.
        what: &'static str,
    },
    /// The address of one host was given as the group of a session with feedback.
    #[error(
        "{} is not a multicast address; only sessions without feedback send to the address of one host",
        .group.ip()
    )]
    HostAsGroup {
        /// The address.
        group: SocketAddr,
    },
    /// Receipts were requested for a live stream, which has no hash.
    #[error(
        "a live stream has no receipts, because late joiners receive another part of it; omit the keys for receipts"
    )]
    LiveReceipts,
    /// The relay has one branch, which sends to the interface and group from which the relay receives packets.
    #[error(
        "packets to {group} on {interface} would be forwarded only to the interface on which they arrived; choose another interface or group"
    )]
    NoBranch {
        /// The group.
        group: SocketAddr,
        /// The interface.
        interface: String,
    },
    /// Content larger than the allowed memory.
    #[error(
        "the session carries {bytes} bytes, but only {limit} bytes of memory are allowed; allow more memory, or receive into a directory"
    )]
    OverMemory {
        /// Size of the content, in bytes.
        bytes: u64,
        /// Allowed memory, in bytes.
        limit: u64,
    },
    /// The content is not a single file, so it cannot be written as one stream.
    #[error(
        "the session carries {files} files, but an output stream can take only one; receive into a directory"
    )]
    NotAStream {
        /// Number of files in the session.
        files: u64,
    },
}

/// A session did not begin: a source found no receiver, or a receiver found no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No receiver answered the announcement.
    #[error("{}", no_receiver_joined(*.group, *.waited, (*.ttl, *.port), .each))]
    NoReceiver {
        /// The group.
        group: std::net::SocketAddr,
        /// Time for which the source waited.
        waited: Duration,
        /// Time to live of the packets.
        ttl: u8,
        /// Port of this host for feedback.
        port: u16,
        /// Reports of expected hosts that refused to join or are absent.
        each: Vec<ReceiverReport>,
    },
    /// No host attached to be served by unicast.
    #[error("{}", all_are_absent(*.invited, *.waited))]
    NoHost {
        /// Number of invited hosts.
        invited: usize,
        /// Time for which the source waited.
        waited: Duration,
    },
    /// No session was announced.
    #[error("{}", nothing_found(*.group, *.waited, *.seen))]
    NoSession {
        /// The group.
        group: std::net::SocketAddr,
        /// Time for which the receiver waited.
        waited: Duration,
        /// The observed obstacle, if any.
        seen: Option<JoinObstacle>,
    },
}

/// A session failed after it had begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Announcements of the source arrive, but no data packets.
    #[error(
        "announcements arrive but no data: none of {packets} packets of up to {bytes} bytes arrived within {} s; {LOOK_AT_PATH}; {}",
        .lasted.as_secs(), stored(*.verified_bytes, *.resumes)
    )]
    NothingArrives {
        /// Number of missing packets.
        packets: u64,
        /// Maximum size of these packets in bytes, including IP and UDP headers.
        bytes: usize,
        /// Time without data.
        lasted: Duration,
        /// Number of verified bytes.
        verified_bytes: u64,
        /// Whether a restarted receiver resumes from these bytes.
        resumes: bool,
    },
    /// The source, or a relay in its place, answers but does not send the requested data.
    #[error(
        "{source_address} answers but has sent none of the requested data within {} s; {}",
        .lasted.as_secs(), stored(*.verified_bytes, *.resumes)
    )]
    NothingServed {
        /// Address of this source or relay.
        source_address: std::net::SocketAddr,
        /// Time without the requested data.
        lasted: Duration,
        /// Number of verified bytes.
        verified_bytes: u64,
        /// Whether a restarted receiver resumes from these bytes.
        resumes: bool,
    },
    /// The source has been silent during the session.
    #[error(
        "the source has been silent for {}; {}", seconds(.silent.as_secs_f64()), stored(*.verified_bytes, *.resumes)
    )]
    SourceSilent {
        /// Duration of the silence.
        silent: Duration,
        /// Number of verified bytes.
        verified_bytes: u64,
        /// Whether a restarted receiver resumes from these bytes.
        resumes: bool,
    },
    /// After this session was interrupted, the source has started another session.
    #[error(
        "{host} started a new session, so the session that was interrupted {} s ago has ended", .silent.as_secs()
    )]
    Superseded {
        /// Host name of the source.
        host: String,
        /// Duration of the silence of this session.
        silent: Duration,
    },
    /// The source of a relayed session was restarted.
    #[error("the source was restarted, and continues in a new session")]
    SourceRestarted,
    /// The source ended the session before this receiver had completed.
    #[error(
        "the source ended the session before all data had arrived ({reason}); {}", stored(*.verified_bytes, *.resumes)
    )]
    Ended {
        /// Reason for the end.
        reason: EndReason,
        /// Number of verified bytes.
        verified_bytes: u64,
        /// Whether a restarted receiver resumes from these bytes.
        resumes: bool,
    },
    /// A session of another source has replaced this one, because this host had reached its maximum number of sessions.
    #[error(
        "a session of another host replaced the session of {source_address}; {verified_bytes} bytes are verified and stored"
    )]
    GaveWay {
        /// Address of the source of the replaced session.
        source_address: std::net::SocketAddr,
        /// Number of verified bytes.
        verified_bytes: u64,
    },
    /// The verified blocks do not match the root hash of the source.
    #[error(
        "the content does not match the source's root hash, although every block was verified; did files change while they were sent?"
    )]
    RootMismatch,
    /// The session was stopped by the user.
    #[error("stopped")]
    Stopped,
}

/// A failure of files or streams on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// A failure of files or directories.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A failure of a stream of content, such as standard input or output.
    #[error("cannot read the content to send or write the received content: {0}")]
    Pipe(#[source] std::io::Error),
}

/// A failure of the network or of this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SystemError {
    /// A failure of sockets or interfaces.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The network failed for too long.
    #[error("{why}; waited {} s for the network. Start the session again when the network is back: receivers resume", .lasted.as_secs())]
    Outage {
        /// Duration of the failure.
        lasted: Duration,
        /// The error of the network.
        why: NetError,
    },
    /// The interface's MTU is too small.
    #[error(
        "interface {interface} has an MTU of {mtu} bytes, but faircast needs at least 284 (with IPv6 304); choose another interface"
    )]
    MtuTooSmall {
        /// Name of the interface.
        interface: String,
        /// MTU of the interface, in bytes.
        mtu: u32,
    },
    /// A packet cannot be encoded, because a number exceeds its field.
    #[error("cannot encode a packet: {0}")]
    Wire(#[from] faircast_wire::EncodeError),
    /// A scheme requested an effect that is not supported here.
    #[error(
        "the congestion control's {role} requests an action that is not possible here ({effect}): this is an error of the scheme, please report it"
    )]
    Effect {
        /// Role of the scheme at this host.
        role: &'static str,
        /// The requested effect.
        effect: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread for the session: {0}")]
    Thread(#[source] std::io::Error),
    /// The thread of the session has panicked.
    #[error("the thread of the session has panicked: this is an error of faircast, please report it")]
    Panicked,
}

/// An error of a session, grouped by the stage in which it occurred.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The session did not begin.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The session failed after it had begun.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// Files or streams of content failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The network or the host failed.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A session in another format failed: see [`FormatError`].
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Implements the conversion from each cause to [`Error`], through the error type of its stage.
macro_rules! by_way_of {
    ($($cause:ty => $stage:ty;)*) => {
        $(impl From<$cause> for Error {
            fn from(cause: $cause) -> Error {
                <$stage>::from(cause).into()
            }
        })*
    };
}

by_way_of! {
    BadLimits => ConfigError;
    ObjectError => StorageError;
    NetError => SystemError;
    faircast_wire::EncodeError => SystemError;
}

impl Error {
    /// Returns the message of the error. Appends the message of each cause, unless the text already contains it.
    pub(crate) fn in_full(&self) -> String {
        let mut message = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        message
    }

    /// Returns the error for an unsupported effect that a scheme has requested in this role.
    pub fn effect(role: &'static str, effect: &Effect) -> Error {
        SystemError::Effect { role, effect: format!("{effect:?}") }.into()
    }

    /// Whether the error states only that packets are missing, so that a failure of this host's network may have caused it.
    pub fn may_be_the_network(&self) -> bool {
        match self {
            Error::Start(StartError::NoReceiver { .. } | StartError::NoSession { .. }) => true,
            Error::Transfer(
                TransferError::Superseded { .. } | TransferError::RootMismatch | TransferError::Stopped,
            ) => false,
            Error::Transfer(_) => true,
            Error::Format(error) => error.0.may_be_the_network(),
            Error::Config(_) | Error::Start(_) | Error::Storage(_) | Error::System(_) => false,
        }
    }

    /// Returns the class of the error.
    pub fn class(&self) -> Class {
        match self {
            Error::Config(_) => Class::Usage,
            Error::Start(_) | Error::Transfer(_) => Class::Transfer,
            Error::Storage(StorageError::Object(
                ObjectError::Older { .. } | ObjectError::OtherSource { .. },
            )) => Class::Transfer,
            Error::Storage(_) => Class::System,
            Error::System(SystemError::Net(error)) => error.exit_class().into(),
            Error::System(_) => Class::System,
            Error::Format(error) => error.0.class(),
        }
    }
}
