//! Why a session could not run, or failed.

use crate::config::BadLimits;
use crate::event::{LOOK_AT_PATH, ReceiverOutcome, ReceiverReport};
use crate::object::ObjectError;
use faircast_core::node::Effect;
use faircast_net::{ExitClass, NetError};
use faircast_wire::parse::VERSION;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The transfer did not succeed.
    Transfer,
    /// The configuration makes no sense.
    Usage,
    /// Network or system.
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

/// Sessions that a receiver saw and could not join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinObstacle {
    /// A sealed session, without a key here.
    #[error("a sealed session was found: give its key")]
    Sealed,
    /// An unsealed session, with a key here.
    #[error("an unsealed session was found: leave out the key to accept it")]
    Unsealed,
    /// One whose packets look minutes old.
    #[error(
        "a session was found whose clock differs from this host's by minutes: set the clocks, or let the source hear this host, which \
         needs none"
    )]
    Stale,
    /// A session sealed under another key.
    #[error("a session was found that is sealed under another key ({0}); use that key")]
    OtherKey(faircast_wire::KeyId),
    /// One of another version of the format.
    #[error(
        "a session of format version {0} was found, and this program supports version {VERSION}: update the older end"
    )]
    Version(u8),
    /// An announcement from another address than it states.
    #[error(
        "a session is announced from {from} in the name of {says}: a recording, or addresses are translated on the way"
    )]
    Elsewhere {
        /// Stated address.
        says: std::net::SocketAddr,
        /// Where its announcement came from.
        from: std::net::SocketAddr,
    },
    /// One whose packets do not open.
    #[error("packets arrive that cannot be opened: is it the same key?")]
    DoesNotOpen,
    /// One whose content is not signed, where it has to be.
    #[error("a session was found whose content is not signed: leave out the public key to accept it")]
    Unsigned,
    /// A session signed with another key.
    #[error("a session was found that another key has signed: is it the public key of this source?")]
    OtherSigner,
    /// A session whose announcement does not match its signature.
    #[error(
        "a session was found whose signature is wrong: another host has changed or forged its announcement"
    )]
    WrongSignature,
    /// Streams in layers, where content has to be signed.
    #[error("streams in layers were found, which cannot be signed: leave out the public key to accept them")]
    UnsignedStreams,
    /// A session with an unknown scheme.
    #[error("a session was found that uses a congestion control this version does not know")]
    UnknownScheme,
    /// A host that should serve this one by unicast does not answer.
    #[error("{}", unanswered(.0))]
    NoParent(std::net::SocketAddr),
    /// No session, and no invitation of this host.
    #[error("no source has invited this host: is this host on its list, and does UDP reach it?")]
    Uninvited,
    /// At a relay: it has a stream on each layer.
    #[error("a session with a stream on each layer is announced: relays pass on files and single streams")]
    Layered,
    /// At an agent: a session whose congestion control has no agents.
    #[error(
        "a session was found whose congestion control has no agents, only `mtcp` has: a relay that is a repeater passes it on"
    )]
    NoAgents,
    /// A session that this hop's router does not support.
    #[error(
        "a session was found that is not of `{0}`, for which this hop's router is: it is left to the kernel's forwarding"
    )]
    NoRouter(&'static str),
    /// One whose source receives nothing, where a session is believed when its source answers.
    #[error(
        "a session without feedback was found, whose source does not answer: accept sessions by this host's clock to follow it"
    )]
    OneWay,
    /// One whose source or size is not accepted here.
    #[error("a session was found that is not accepted here: its source has another name, or it is too large")]
    NotAccepted,
    /// One whose numbers contradict each other.
    #[error("a session was found whose announced packet size does not go with its symbols")]
    PacketSize,
    /// One whose announcement cannot be.
    #[error("a session was found whose announcement makes no sense")]
    Senseless,
    /// One whose source does not answer.
    #[error(
        "a session is announced by {0} that does not answer: is the way back to it blocked, or is it a recording?"
    )]
    Unanswering(std::net::SocketAddr),
    /// Packets that are not of the format that is received.
    #[error("{packets} packets arrived, but none in the format {format}")]
    OtherFormat {
        /// How many.
        packets: u64,
        /// The format that is received.
        format: &'static str,
    },
}

/// The rule that a source's packet filter needs.
pub(crate) fn must_accept(port: u16) -> String {
    format!("This host must accept UDP from receivers on port {port}")
}

/// A time in seconds, as in `7 s` and `0.5 s`.
#[must_use]
pub fn seconds(secs: f64) -> String {
    if secs.fract() == 0.0 { format!("{secs:.0} s") } else { format!("{secs:.1} s") }
}

/// An amount of bytes, as in `92.2 MB`.
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

/// Describes the data that a failed receiver stores, and whether the next run resumes from it.
fn stored(verified_bytes: u64, resumes: bool) -> String {
    match (verified_bytes, resumes) {
        (0, _) => "nothing was verified, start the receiver again".to_owned(),
        (bytes, true) => {
            format!("{} are verified and kept, a receiver that is started again resumes", amount(bytes))
        }
        (bytes, false) => {
            format!("{} were verified, a restarted receiver begins again", amount(bytes))
        }
    }
}

/// Describes that no receiver joined, with reasons that hosts sent.
fn no_receiver_joined(
    group: SocketAddr,
    waited: Duration,
    (ttl, port): (u8, u16),
    each: &[ReceiverReport],
) -> String {
    match named_refusals(each) {
        Some(refusals) => format!("no receiver joined; {refusals}"),
        None => format!(
            "no receiver answered on {group} within {}; is one running there, on the same group, with the same key, within {ttl} hops? {}",
            seconds(waited.as_secs_f64()),
            must_accept(port)
        ),
    }
}

/// Hosts that refuse, with their reasons, as in `pc1 has another key (1f2e3d4c), pc2 has no key`.
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
            "no host asked to be served within {waited}; does a receiver run that has this host as its parent, with the same \
             key, and does UDP reach this host?"
        ),
        invited => format!(
            "none of {invited} hosts came within {waited} of being invited; do receivers wait there, with the same key, and does \
             UDP reach them?"
        ),
    }
}

/// Describes that a host, or a group in which relays are looked for, does not answer.
fn nothing_found(group: SocketAddr, waited: Duration, seen: Option<JoinObstacle>) -> String {
    let waited = seconds(waited.as_secs_f64());
    match seen {
        Some(seen @ JoinObstacle::NoParent(_)) => format!("no session within {waited}: {seen}"),
        Some(seen) => format!("no session was announced on {group} within {waited}; {seen}"),
        None => format!("no session was announced on {group} within {waited}"),
    }
}

fn unanswered(place: &SocketAddr) -> String {
    match place.ip().is_multicast() {
        true => format!(
            "no relay answers in {place}: does one listen within 16 hops, and does multicast reach it?"
        ),
        false => format!("{place} does not answer: does a relay listen there, and does UDP pass?"),
    }
}

/// Why a source ended a session that a receiver still took part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndReason {
    /// It leaves slow receivers out.
    #[error("this host was too slow, and its source drops slow receivers")]
    TooSlow,
    /// It has ended its repetitions and receives nothing.
    #[error("it has ended its repetitions, and receives nothing")]
    SentEnough,
    /// It waited no longer.
    #[error("it had waited long enough")]
    WaitedEnough,
    /// It was stopped.
    #[error("it was stopped")]
    Stopped,
}

impl EndReason {
    /// Returns why a session is over for a member, by its source's last status and whether the session has no feedback.
    pub(crate) const fn of(status: &faircast_wire::Status, is_one_way: bool) -> EndReason {
        match (status.flags & faircast_wire::Status::STOPPED != 0, is_one_way) {
            (true, _) => EndReason::Stopped,
            (false, true) => EndReason::SentEnough,
            (false, false) => EndReason::WaitedEnough,
        }
    }
}

/// Options that layers do not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unlayered {
    /// One live stream.
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
    /// Returns the alternative.
    const fn instead(self) -> &'static str {
        match self {
            Unlayered::LiveStream => "give each layer a stream of its own, or choose another scheme",
            Unlayered::SlowPolicy => {
                "slow receivers take fewer layers and cost the others nothing, follow them"
            }
            Unlayered::Unicast => "choose a scheme at one rate: each host has a rate of its own",
            Unlayered::OneWay => {
                "it is sent at a fixed rate: leave out the scheme, or send in a format without feedback"
            }
        }
    }
}

/// Error of a session of one format, in that format's terms.
pub trait FormatFault: std::error::Error + Send + Sync + 'static {
    /// Returns the class of the error.
    fn class(&self) -> Class;

    /// Whether it states only that nothing was received, which has another cause when this host's network was gone.
    fn may_be_the_network(&self) -> bool {
        false
    }
}

/// Error of a session of another format.
#[derive(Debug)]
pub struct FormatError(Box<dyn FormatFault>);

impl FormatError {
    /// The format's own error, if it is of this type.
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

/// Why a configuration cannot be run, alone or with the session that it meets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Limits of the rate that contradict each other.
    #[error(transparent)]
    Limits(#[from] BadLimits),
    /// A datagram size that leaves no room for symbols, or that the interface does not carry.
    #[error(
        "datagrams of {datagram} bytes: the interface carries {largest} at most, and below {least} there is no room for symbols"
    )]
    DatagramSize {
        /// The requested value.
        datagram: u16,
        /// The smallest that makes sense.
        least: u16,
        /// The largest that the interface carries.
        largest: u16,
    },
    /// The scheme's options do not fit into the announcement.
    #[error(
        "the congestion control's options take {len} bytes where the announcement has room for {most}: set fewer of them"
    )]
    SchemeOptions {
        /// Bytes that they take.
        len: usize,
        /// Bytes that there is room for.
        most: usize,
    },
    /// The group's address or port is too high for all layers.
    #[error(
        "{scheme} sends {layers} layers and there is no group for layer {top} by {by} from {group}; choose a lower one, or layers by {other}, or fewer layers"
    )]
    NoGroupForLayer {
        /// The scheme's name.
        scheme: &'static str,
        /// How many layers it has.
        layers: u8,
        /// The highest one.
        top: u8,
        /// How the groups follow each other.
        by: &'static str,
        /// How else they could.
        other: &'static str,
        /// The base layer's group.
        group: std::net::SocketAddr,
    },
    /// Layers with something that they do not go with.
    #[error("{what} is not supported with {scheme}, which sends in layers: {}", .what.instead())]
    NotInLayers {
        /// The requested value.
        what: Unlayered,
        /// The scheme's name.
        scheme: &'static str,
    },
    /// Streams in layers with a scheme without layers.
    #[error("streams on layers need a scheme that sends in layers, which {scheme} does not; use rlc or gmcc")]
    NeedsLayers {
        /// The scheme's name.
        scheme: &'static str,
    },
    /// Each stream needs a layer.
    #[error(
        "{count} streams do not fit the {layers} layers of {scheme}; give 1 to {layers}, base layer first"
    )]
    LayerInputs {
        /// How many streams there are.
        count: usize,
        /// How many layers there are.
        layers: u8,
        /// The scheme's name.
        scheme: &'static str,
    },
    /// Streams in layers cannot be signed.
    #[error(
        "streams in layers cannot be signed: their blocks are given up sooner than pages of hashes could come; send one stream, or do not sign"
    )]
    LayersUnsigned,
    /// It cannot be done without feedback.
    #[error("{what} cannot be sent without feedback: send files, by multicast, at a rate above nothing")]
    NotOneWay {
        /// The requested value.
        what: &'static str,
    },
    /// Receipts are asked for of what no hash names.
    #[error(
        "a live stream has no receipts, because late joiners receive another part of it; leave the keys of receipts out"
    )]
    LiveReceipts,
    /// A relay has nowhere to pass on to.
    #[error(
        "what comes to {group} on {interface} would be passed on to where it came from and nowhere else; name another interface or group"
    )]
    NoBranch {
        /// The group.
        group: SocketAddr,
        /// The interface.
        interface: String,
    },
    /// More content than the memory that it may take.
    #[error(
        "the session carries {bytes} bytes, and {limit} bytes of memory are allowed; allow more, or receive into a directory"
    )]
    OverMemory {
        /// Bytes of content.
        bytes: u64,
        /// The allowed number of bytes.
        limit: u64,
    },
    /// A tree cannot be written as one stream.
    #[error("the session carries {files} files, which one output cannot take; receive into a directory")]
    NotAStream {
        /// Files in the session.
        files: u64,
    },
}

/// Reason why a session did not begin: no receiver joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No receiver answered the announcement.
    #[error("{}", no_receiver_joined(*.group, *.waited, (*.ttl, *.port), .each))]
    NoReceiver {
        /// The group.
        group: std::net::SocketAddr,
        /// How long the source waited.
        waited: Duration,
        /// The time to live.
        ttl: u8,
        /// The port of this host that receivers answer to.
        port: u16,
        /// Expected hosts: refusing or absent.
        each: Vec<ReceiverReport>,
    },
    /// No host came to be served by unicast.
    #[error("{}", all_are_absent(*.invited, *.waited))]
    NoHost {
        /// How many were invited.
        invited: usize,
        /// How long the source waited.
        waited: Duration,
    },
    /// No session was announced.
    #[error("{}", nothing_found(*.group, *.waited, *.seen))]
    NoSession {
        /// The group.
        group: std::net::SocketAddr,
        /// How long the receiver waited.
        waited: Duration,
        /// Session seen instead, if any.
        seen: Option<JoinObstacle>,
    },
}

/// Why a session that had begun failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// Packets of the source arrive, but none of its data.
    #[error(
        "announcements arrive but no data: none of {packets} packets of up to {bytes} bytes within {} s; {LOOK_AT_PATH}; {}",
        .lasted.as_secs(), stored(*.verified_bytes, *.resumes)
    )]
    NothingArrives {
        /// Packets that the source has sent and that are not here.
        packets: u64,
        /// Bytes of each, IP and UDP headers included.
        bytes: usize,
        /// For how long.
        lasted: Duration,
        /// Bytes verified.
        verified_bytes: u64,
        /// Whether a receiver that is started again goes on there.
        resumes: bool,
    },
    /// The source, or a relay in its place, answers and serves nothing that is requested.
    #[error(
        "{source_address} answers but has sent none of the requested data within {} s; {}",
        .lasted.as_secs(), stored(*.verified_bytes, *.resumes)
    )]
    NothingServed {
        /// Where it is.
        source_address: std::net::SocketAddr,
        /// For how long.
        lasted: Duration,
        /// Bytes verified.
        verified_bytes: u64,
        /// Whether a receiver that is started again goes on there.
        resumes: bool,
    },
    /// The source went silent in the middle.
    #[error(
        "the source has been silent for {}; {}", seconds(.silent.as_secs_f64()), stored(*.verified_bytes, *.resumes)
    )]
    SourceSilent {
        /// How long.
        silent: Duration,
        /// Bytes verified.
        verified_bytes: u64,
        /// Whether a receiver that is started again goes on there.
        resumes: bool,
    },
    /// The source started another session after this one had broken off.
    #[error(
        "{host} started a new session; the session that broke off {} s ago ends here", .silent.as_secs()
    )]
    Superseded {
        /// The source's host name.
        host: String,
        /// How long the session had been silent.
        silent: Duration,
    },
    /// The source of a relayed session was restarted.
    #[error("the source was restarted: the session goes on as a new one")]
    SourceRestarted,
    /// The source ended the session before this receiver had everything.
    #[error(
        "the source ended the session before all data had arrived ({reason}); {}", stored(*.verified_bytes, *.resumes)
    )]
    Ended {
        /// Why.
        reason: EndReason,
        /// Bytes verified.
        verified_bytes: u64,
        /// Whether a receiver that is started again goes on there.
        resumes: bool,
    },
    /// All places for sessions of this host were taken, and another source needed one.
    #[error(
        "the session of {source_address} gave its place to one of another host; {verified_bytes} bytes are verified and kept"
    )]
    GaveWay {
        /// Its source.
        source_address: std::net::SocketAddr,
        /// Bytes verified.
        verified_bytes: u64,
    },
    /// The verified blocks do not make up the content that the source has.
    #[error(
        "the content does not match the source's root hash, although every block did; did files change while they were sent?"
    )]
    RootMismatch,
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

/// A failure of files or streams on this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// Files and directories.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A stream that content is read from or written to, standard input and output among them.
    #[error("cannot read what is sent or write what is received: {0}")]
    Pipe(#[source] std::io::Error),
}

/// A failure of the network or of this host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SystemError {
    /// Sockets and interfaces.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The network was gone for too long.
    #[error("{why}; waited {} s for it. Start again when it is back: receivers resume", .lasted.as_secs())]
    Outage {
        /// How long it was gone.
        lasted: Duration,
        /// The fault of the network.
        why: NetError,
    },
    /// The interface's MTU is too small.
    #[error(
        "interface {interface} has an MTU of {mtu}, too small for faircast (at least 284, with IPv6 304); choose another interface"
    )]
    MtuTooSmall {
        /// Interface name.
        interface: String,
        /// Its MTU.
        mtu: u32,
    },
    /// A packet could not be written: a number that the format has no room for.
    #[error("cannot write a packet: {0}")]
    Wire(#[from] faircast_wire::EncodeError),
    /// A scheme's role requested an effect that is not supported here.
    #[error(
        "the congestion control's {role} wants what cannot be done for it here ({effect}): that is an error of the scheme, please report it"
    )]
    Effect {
        /// Which role.
        role: &'static str,
        /// The requested effect.
        effect: String,
    },
    /// No thread could be started.
    #[error("cannot start a thread for the session: {0}")]
    Thread(#[source] std::io::Error),
    /// The thread of the session has panicked.
    #[error("the thread of the session has panicked; that is an error of faircast, please report it")]
    Panicked,
}

/// Why a session could not run, or failed, by the stage in which it did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The session did not begin.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The session failed after it had begun.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// Files, and streams that content is read from or written to.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Network and host.
    #[error(transparent)]
    System(#[from] SystemError),
    /// In a session of another format: see [`FormatError`].
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Errors that become an [`Error`] by way of a stage.
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
    /// Returns the message, and those of its causes that it does not contain already.
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

    /// A role requested an effect that is not supported here.
    pub fn effect(role: &'static str, effect: &Effect) -> Error {
        SystemError::Effect { role, effect: format!("{effect:?}") }.into()
    }

    /// Whether it states only that nothing was received, which has another cause when this host's network was gone.
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
