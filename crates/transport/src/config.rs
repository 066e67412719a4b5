//! Configuration of a session.

use crate::ends::{Input, Output};
use crate::object::{
    BlockDevice, Delta, FollowLinks, Memory, MemoryFile, Names, ObjectError, OwnersBy, Preserve, Unreadable,
    replace_in,
};
use crate::session_filter::SessionFilter;
use faircast_core::packet::Layer;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span};
use faircast_wire::{GroupKey, KeyRing, Series, SigningKey, Spacing, VerifyKey, VerifyKeys};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

pub use crate::day_limits::{DayLimits, DayPeriod, Overlap, UtcOffset};
pub use crate::object::{Durability, Existing, Extraneous, KeepPartial, OverwritePolicy, ReplayPolicy};
pub use faircast_host::pipe::Pacing;

/// The default group: administratively scoped (RFC 2365), with faircast's own port.
pub const DEFAULT_GROUP: &str = "239.255.70.1:5777";

/// The default group on hosts without IPv4: site-local scope, not permanently assigned (RFC 4291, 2.7).
pub const DEFAULT_GROUP_V6: &str = "[ff15::4643:1]:5777";

/// The group in which hosts search for a relay, and relays answer. IPv6: site-local scope, not permanently assigned (RFC 4291,
/// 2.7).
pub const FIND_GROUP: &str = "239.255.70.2:5778";
/// See [`FIND_GROUP`]; for IPv6.
pub const FIND_GROUP_V6: &str = "[ff15::4643:2]:5778";

/// The port at which hosts without multicast attach to a relay, and at which hosts wait for an invitation.
pub const RELAY_PORT: u16 = 5778;

/// Memory for a relay's cache of each session, in bytes.
pub const RELAY_MEMORY: usize = 256_000_000;

/// The default congestion control.
pub const DEFAULT_SCHEME: &str = "ormcc";

/// Receive buffer requested from the system, in bytes. It holds the packets of a tenth of a second at 1 Gbit/s.
pub const RECEIVE_BUFFER: usize = 16 << 20;

/// Default duration for which transient faults are tolerated.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Action taken for slow receivers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum SlowReceiverPolicy {
    /// The group adapts to its slowest receiver.
    #[default]
    Follow,
    /// Receivers that cannot keep up with this rate are served after the other receivers have completed.
    Floor(Rate),
    /// Receivers that cannot keep up with this rate are dropped, and notified.
    Drop(Rate),
}

/// Whether a session sends only the list of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DryRun {
    /// It sends all content.
    #[default]
    Off,
    /// It sends the list only.
    On,
}

/// Content of a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Files and directory trees.
    Paths(Vec<PathBuf>),
    /// Files in memory, with these names or paths.
    Memory(Vec<MemoryFile>),
    /// An input that is sent as one file with this name. It is read to its end, and every receiver gets all of it. Until the
    /// session ends, the input is stored in a temporary file without a name.
    Reader {
        /// Name of the file at the receivers.
        name: String,
        /// Input to read.
        input: Input,
    },
    /// A live input. A late joiner starts at the present position, and data that was sent more than `history` ago is not
    /// repaired.
    Live {
        /// Input to read.
        input: Input,
        /// Duration for which sent data can be repaired.
        history: Duration,
        /// Aim for the delay from the input to the output of receivers, without delays of the path. A block holds the input of a
        /// quarter of this time. If half of it is too short for requests, repair symbols follow each block at once.
        latency: Duration,
    },
    /// A separate live stream on each layer of a layered scheme. Receivers request no repairs: repair symbols are sent with the
    /// data.
    Layers {
        /// Inputs of the layers, the base layer's first.
        inputs: Vec<LayerInput>,
        /// Age at which unsent input of a layer is dropped. Input from files is never dropped.
        history: Duration,
        /// Number of repair symbols per source symbol, 0 to 1. If receivers report high losses, the source sends up to twice this
        /// number.
        repair: f64,
        /// Aim for the delay from the input to the output of receivers. A block holds the input of half of this time.
        latency: Duration,
    },
}

/// Default aim for the delay of a live stream.
pub const LATENCY: Duration = Duration::from_millis(200);

impl Content {
    /// Returns the kind of the content in words, as in `a live stream`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Content::Paths(_) => "files",
            Content::Memory(_) => "memory",
            Content::Reader { .. } => "a stream",
            Content::Live { .. } => "a live stream",
            Content::Layers { .. } => "streams in layers",
        }
    }
}

/// Input of a layer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LayerInput {
    /// A reader.
    Reader {
        /// Input to read.
        input: Input,
        /// Whether the input is read at the rate of its layer, or as soon as bytes arrive.
        pacing: Pacing,
    },
    /// A file, or a named pipe.
    Path(PathBuf),
}

/// Hosts that a source serves by unicast, each at its own rate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unicast {
    /// Addresses at which hosts attach ([`ReceiveConfig::parents`]). An unspecified address means all addresses of this host. If
    /// the list is empty, the system chooses a port, and only invited hosts are served.
    pub listen: Vec<SocketAddr>,
    /// Maximum number of served hosts that were not invited.
    pub children: usize,
    /// Hosts that are invited ([`ReceiveConfig::listen`]).
    pub invite: Vec<InvitedHost>,
    /// Whether packets are also sent to the group on the network. Otherwise packets to the group stay within this host.
    pub multicast: Multicast,
    /// Approximate memory for data that slower hosts still need, in bytes. Data that does not fit is read again from the content.
    pub memory: usize,
}

/// Use of the group when hosts are served by unicast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multicast {
    /// Packets are also sent to the group.
    Also,
    /// Packets to the group are not sent on the network: they stay within this host.
    Not,
}

/// A host to be invited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvitedHost {
    /// Name of the host in reports.
    pub name: String,
    /// Address at which the host waits for the invitation.
    pub address: SocketAddr,
}

impl InvitedHost {
    /// Returns a host with this name that waits at this address.
    pub fn new(name: impl Into<String>, address: SocketAddr) -> InvitedHost {
        InvitedHost { name: name.into(), address }
    }
}

impl Unicast {
    /// Invites these hosts and serves no other host.
    pub fn invite(hosts: Vec<InvitedHost>) -> Unicast {
        Unicast {
            listen: Vec::new(),
            children: 0,
            invite: hosts,
            multicast: Multicast::Not,
            memory: RELAY_MEMORY,
        }
    }

    /// Serves up to `children` hosts that attach at these addresses.
    pub fn listen(at: Vec<SocketAddr>, children: usize) -> Unicast {
        Unicast { listen: at, children, ..Unicast::invite(Vec::new()) }
    }
}

/// Starts a waiting session early, with the receivers that have joined. All clones control the same session.
#[derive(Debug, Clone, Default)]
pub struct StartNow {
    asked: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl StartNow {
    /// Starts the session now, or with the first receiver if no receiver has joined. Has no effect on a session that has started.
    pub fn start(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the session has stopped waiting.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns the flag that [`StartNow::start`] sets. Signal handlers can set this flag directly.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Duration of a session without feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The whole content is sent this number of times.
    Rounds(u64),
    /// Content is sent for this duration.
    For(Duration),
    /// Content is sent until the session is stopped.
    Forever,
}

/// A session without feedback, for paths in one direction only, such as a data diode or a satellite link. The session has no
/// congestion control, so every path must have room for its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct OneWay {
    /// The sending rate, headers included.
    pub rate: Rate,
    /// The number of repetitions, or the duration.
    pub repeat: Repeat,
    /// Number of repair symbols of each block per repetition, divided by its number of source symbols; 0 to 4.
    pub overhead: f64,
    /// Length of the outages against which blocks are interleaved. Several repetitions begin so far apart that an outage of this
    /// length misses one of them. Zero: blocks are sent one after the other, without pauses.
    pub burst: Duration,
}

impl OneWay {
    /// Returns a session that sends at this rate, with an eighth of repair symbols, against outages of three seconds.
    #[must_use]
    pub const fn new(rate: Rate, repeat: Repeat) -> OneWay {
        OneWay { rate, repeat, overhead: 0.125, burst: Duration::from_secs(3) }
    }
}

/// Configuration of `send` and `stream`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SendConfig {
    /// Group address and port.
    pub group: SocketAddr,
    /// Hosts that are served by unicast.
    pub unicast: Option<Unicast>,
    /// Interface by name or address; chosen by route when `None`.
    pub interface: Option<String>,
    /// The only UDP port of this host for feedback. `None`: the group's port, or a port chosen by the system if another program
    /// uses that port.
    pub port: Option<u16>,
    /// Time to live (hop limit) of the packets. With 1, packets stay on the local network.
    pub ttl: u8,
    /// Congestion control.
    pub scheme: Scheme,
    /// Spacing of the layers' groups, if the scheme has several layers.
    pub spacing: Spacing,
    /// Minimum rate; for a layered scheme, the minimum rate of its base layer.
    pub min: Option<Rate>,
    /// Maximum rate, all layers together.
    pub max: Option<Rate>,
    /// Limits of the rate by the time of day; a lower `max` applies, too. The clock is read once, at the start of the session.
    pub day_limits: Option<DayLimits>,
    /// Action taken for slow receivers. Layered schemes have their own policy and require [`SlowReceiverPolicy::Follow`].
    pub slow: SlowReceiverPolicy,
    /// If set, sends without feedback, and ignores `min`, `max`, `day_limits`, `slow`, `expect`, `required`, `receipts` and `join_timeout`. Not
    /// possible with live streams, layered schemes and hosts that are served by unicast.
    pub one_way: Option<OneWay>,
    /// Key under which all packets are encrypted.
    pub key: Option<GroupKey>,
    /// Key with which the content is signed. Not possible for streams in layers.
    pub sign: Option<SigningKey>,
    /// Expected number of receivers. The session starts when this number of receivers have joined, and ends when this number have
    /// completed.
    pub expect: Option<u32>,
    /// Patterns of the names of the receivers that take part; `*` stands for any characters. If the list is empty, all receivers take
    /// part. A pattern matches a host name in full, or up to its first dot; case is ignored. All patterns together have at most 63
    /// bytes, with a comma between two of them.
    pub to_hosts: Vec<String>,
    /// Place of the session in a series of sessions of this source, from which receivers learn which sessions they have missed.
    pub series: Option<Series>,
    /// Whether to send only the list of files. Receivers then state what a session would send to them, and change nothing.
    pub dry_run: DryRun,
    /// Hosts that must receive all content. The session starts when these hosts have joined, and the report lists absent hosts.
    pub required: Vec<RequiredHost>,
    /// Accepted keys for receipts: each receiver must sign its receipt with one of these keys. If no keys are set, receipts are
    /// recorded without this check.
    pub receipts: Option<ReceiptKeys>,
    /// Total time of waiting for receivers. Before the start, the source waits for the first receiver, or for all receivers that
    /// `expect` and `required` demand. After all receivers have left, the source waits for further receivers for the rest of this
    /// time.
    pub join_timeout: Duration,
    /// Time at which the session starts to send. Receivers join from now on, and `join_timeout` ends no earlier. `None`: as soon as
    /// receivers have joined.
    pub start_at: Option<SystemTime>,
    /// Ends the waiting before the start, also before `start_at`.
    pub start: StartNow,
    /// Duration of silence, unreachability or network failure after which receivers are given up.
    pub idle_timeout: Duration,
    /// Maximum size of a UDP datagram in bytes, without IP and UDP headers. `None`: determined by the interface's MTU, at most
    /// 1500 bytes with headers.
    pub datagram: Option<u16>,
    /// Content to send.
    pub content: Content,
    /// File metadata to send, in addition to names, permission bits, times and hard links.
    pub preserve: Preserve,
    /// Action taken for files that cannot be read.
    pub unreadable: Unreadable,
    /// Selects the symbolic links that are sent as the files they point to.
    pub follow: FollowLinks,
    /// Treatment of files that receivers have in the sent directories and this source does not. Receivers must select the same.
    pub extraneous: Extraneous,
    /// Whether receivers get a list of the chunks of files, so that they reuse unchanged parts of earlier versions.
    pub delta: Delta,
    /// Name of this host in messages.
    pub host: String,
    /// Whether the session reports the state of each receiver.
    pub receiver_events: ReceiverEvents,
    /// Directory of temporary files without names.
    pub temporary: PathBuf,
}

/// Whether a source reports the state of each receiver ([`Event::Receivers`](crate::Event::Receivers)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReceiverEvents {
    /// No such events.
    #[default]
    Off,
    /// Once a second.
    EverySecond,
}

/// The public keys of receivers. Each receipt must be signed with one of these keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceiptKeys(BTreeSet<[u8; 32]>);

impl ReceiptKeys {
    /// Whether the set contains this key.
    pub(crate) fn has(&self, key: &[u8; 32]) -> bool {
        self.0.contains(key)
    }

    /// Returns the keys that are not among `used`.
    pub(crate) fn without(&self, used: &BTreeSet<[u8; 32]>) -> Vec<[u8; 32]> {
        self.0.difference(used).copied().collect()
    }
}

impl FromIterator<VerifyKey> for ReceiptKeys {
    fn from_iter<I: IntoIterator<Item = VerifyKey>>(keys: I) -> ReceiptKeys {
        ReceiptKeys(keys.into_iter().map(|key| key.to_bytes()).collect())
    }
}

/// A receiver that must receive all content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequiredHost {
    /// Host name that the receiver states; case is ignored. A name without dots also matches this name with any domain appended.
    Name(String),
    /// Address from which the receiver sends its reports.
    Address(IpAddr),
}

impl RequiredHost {
    /// Parses the text as an address, or takes it as a name.
    #[must_use]
    pub fn new(text: &str) -> RequiredHost {
        text.parse().map_or_else(|_| RequiredHost::Name(text.to_owned()), RequiredHost::Address)
    }

    /// Whether this entry matches a receiver with this host name that reports from this address.
    #[must_use]
    pub fn is(&self, host: &str, address: IpAddr) -> bool {
        match self {
            RequiredHost::Address(required) => *required == address.to_canonical(),
            RequiredHost::Name(name) => {
                let (short, _) = host.split_once('.').unwrap_or((host, ""));
                name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(short)
            }
        }
    }
}

impl std::fmt::Display for RequiredHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequiredHost::Name(name) => f.write_str(name),
            RequiredHost::Address(address) => address.fmt(f),
        }
    }
}

/// Destination of received content.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Destination {
    /// A directory. Files get the names that the source sends.
    Directory(PathBuf),
    /// Sequential output, which cannot hold a directory tree. For a live stream in layers, the base layer is written to this
    /// output.
    Writer(Output),
    /// Memory.
    Memory(Memory),
    /// A block device. It takes a session of exactly one file.
    Device(Arc<BlockDevice>),
}

impl Destination {
    /// Returns a writer for one stream to this destination. If the destination is a directory, creates a file with this name.
    ///
    /// # Errors
    /// If the file cannot be created, or the destination is a block device.
    pub fn stream(&self, name: &str) -> Result<Box<dyn Write + Send>, ObjectError> {
        Ok(match self {
            Destination::Writer(output) => Box::new(BufWriter::new(output.take())),
            Destination::Memory(memory) => Box::new(memory.stream(name)),
            Destination::Device(device) => return Err(device.takes_no_stream()),
            Destination::Directory(directory) => {
                Box::new(BufWriter::with_capacity(1 << 16, replace_in(directory, name)?))
            }
        })
    }
}

/// Rules for the files in an output directory, and for their metadata.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilePolicy {
    /// Whether content of a later session or of another source may be replaced.
    pub(crate) overwrite: OverwritePolicy,
    /// File metadata to restore, in addition to names, permission bits, times and hard links.
    pub(crate) preserve: Preserve,
    /// Whether file owners are identified by name or by number.
    pub(crate) owners_by: OwnersBy,
    /// Handling of names with terminal control characters.
    pub(crate) names: Names,
    /// Amount of incomplete data that is kept.
    pub(crate) keep_partial: KeepPartial,
    /// Treatment of existing files.
    pub(crate) existing: Existing,
    /// Files, directories and block devices whose content is reused.
    pub(crate) reuse: Vec<PathBuf>,
}

/// Configuration of `recv`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReceiveConfig {
    /// Hosts that may serve this one by unicast, in order of preference. If empty, the group is joined. If an entry is a group
    /// ([`FIND_GROUP`]), this host searches for relays in that group, and the nearest relay that answers serves it.
    pub parents: Vec<SocketAddr>,
    /// Address at which this host waits for an invitation from a source ([`Unicast::invite`]). Used in place of `parents`.
    pub listen: Option<SocketAddr>,
    /// Group address and port.
    pub group: SocketAddr,
    /// Interface by name or address; chosen by route when `None`.
    pub interface: Option<String>,
    /// The only accepted source (source-specific join).
    pub source: Option<IpAddr>,
    /// Destination of the content.
    pub destination: Destination,
    /// File metadata to restore, in addition to names, permission bits, times and hard links. The source must send this metadata,
    /// and this user must have permission to restore it.
    pub preserve: Preserve,
    /// Whether file owners are identified at this host by name or by number.
    pub owners_by: OwnersBy,
    /// Handling of names with terminal control characters.
    pub names: Names,
    /// Amount of incomplete data of earlier sessions that is kept in an output directory when a session begins.
    pub keep_partial: KeepPartial,
    /// Treatment of existing files in an output directory.
    pub existing: Existing,
    /// Files, directories and block devices of this host whose content is reused, in addition to the output directory.
    pub reuse: Vec<PathBuf>,
    /// Whether content of a later session or of another source may be replaced. Output directories record the session and source
    /// of their content.
    pub overwrite: OverwritePolicy,
    /// Alternative destinations of single layers of a live stream: files, or named pipes.
    pub layers_to: Vec<(Layer, PathBuf)>,
    /// Keys of accepted sealed sessions. If not set, only unsealed sessions are accepted.
    pub key: Option<KeyRing>,
    /// Evidence that is required to show that a session is active now, and not a recording.
    pub replay_policy: ReplayPolicy,
    /// Accepted keys for content: one of them must have signed it. If not set, signatures are ignored.
    pub verify: Option<VerifyKeys>,
    /// Key with which a receipt is signed after all content was verified and stored.
    pub sign_receipts: Option<SigningKey>,
    /// Duration without an announced session after which the receiver gives up; `None`: unlimited.
    pub join_timeout: Option<Duration>,
    /// Duration of silence, missing data or network failure after which the receiver gives up a session that has started.
    pub idle_timeout: Duration,
    /// Whether content is flushed to the disk.
    pub durability: Durability,
    /// Name of this host in the messages of sources.
    pub host: String,
    /// Receive buffer of the socket, in bytes.
    pub buffer: usize,
    /// Directory of temporary files without names, if the destination is not a directory.
    pub temporary: PathBuf,
    /// Selects the sessions to receive.
    pub accept: SessionFilter,
}

/// Default directory of temporary files.
const TEMPORARY: &str = "/tmp";

impl SendConfig {
    /// Returns a configuration that sends this content to [`DEFAULT_GROUP`] with ORMCC, unsealed. Receivers have 10 s to join,
    /// and the idle timeout is 60 s.
    pub fn new(content: Content) -> SendConfig {
        SendConfig {
            group: default_group(),
            unicast: None,
            interface: None,
            port: None,
            ttl: 1,
            scheme: default_scheme(),
            spacing: Spacing::Address,
            min: None,
            max: None,
            day_limits: None,
            slow: SlowReceiverPolicy::Follow,
            one_way: None,
            key: None,
            sign: None,
            expect: None,
            to_hosts: Vec::new(),
            series: None,
            dry_run: DryRun::Off,
            required: Vec::new(),
            receipts: None,
            join_timeout: Duration::from_secs(10),
            start_at: None,
            start: StartNow::default(),
            idle_timeout: IDLE_TIMEOUT,
            datagram: None,
            content,
            preserve: Preserve::nothing(),
            unreadable: Unreadable::LeaveOut,
            follow: FollowLinks::Never,
            extraneous: Extraneous::Keep,
            delta: Delta::Off,
            host: String::new(),
            receiver_events: ReceiverEvents::Off,
            temporary: TEMPORARY.into(),
        }
    }
}

impl ReceiveConfig {
    /// Returns a configuration that receives from [`DEFAULT_GROUP`] to this destination. The receiver waits for a session without
    /// limit, and the idle timeout is 60 s.
    pub fn new(destination: Destination) -> ReceiveConfig {
        ReceiveConfig {
            parents: Vec::new(),
            listen: None,
            group: default_group(),
            interface: None,
            source: None,
            destination,
            preserve: Preserve::nothing(),
            owners_by: OwnersBy::Name,
            names: Names::Escape,
            keep_partial: KeepPartial::default(),
            existing: Existing::default(),
            reuse: Vec::new(),
            overwrite: OverwritePolicy::Refuse,
            layers_to: Vec::new(),
            key: None,
            replay_policy: ReplayPolicy::Answer,
            verify: None,
            sign_receipts: None,
            join_timeout: None,
            idle_timeout: IDLE_TIMEOUT,
            durability: Durability::Fast,
            host: String::new(),
            buffer: RECEIVE_BUFFER,
            temporary: TEMPORARY.into(),
            accept: SessionFilter::default(),
        }
    }
}

/// Returns [`DEFAULT_SCHEME`] with its default options.
pub fn default_scheme() -> Scheme {
    DEFAULT_SCHEME.parse().expect("it is in the catalogue")
}

/// Returns [`DEFAULT_GROUP`].
pub fn default_group() -> SocketAddr {
    DEFAULT_GROUP.parse().expect("it is an address and a port")
}

/// Returns [`DEFAULT_GROUP_V6`].
pub fn default_group_v6() -> SocketAddr {
    DEFAULT_GROUP_V6.parse().expect("it is an address and a port")
}

/// Returns the default group for this host, or for one of its interfaces: [`DEFAULT_GROUP_V6`] if only IPv6 can be used
/// ([`faircast_net::is_ipv6_only`]), otherwise [`DEFAULT_GROUP`].
pub fn default_group_here(interface: Option<&str>) -> SocketAddr {
    if faircast_net::is_ipv6_only(interface) { default_group_v6() } else { default_group() }
}

/// If `group` is a default group, returns a hint that hosts with the other address family use another default group.
pub fn other_default(group: SocketAddr) -> Option<String> {
    let (four, six) = (default_group(), default_group_v6());
    match group {
        group if group == four => Some(format!("hosts without IPv4 use the group {six} by default")),
        group if group == six => Some(format!("hosts with IPv4 use the group {four} by default")),
        _ => None,
    }
}

/// Contradictory limits of the rate.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BadLimits {
    /// The minimum rate exceeds the maximum rate.
    #[error("the minimum rate ({min}) is above the maximum rate ({max}); swap them, or omit one of them")]
    MinAboveMax {
        /// Configured minimum rate.
        min: Rate,
        /// Configured maximum rate.
        max: Rate,
    },
    /// The rate below which receivers count as slow exceeds the maximum rate.
    #[error(
        "receivers below {rate} count as slow, but the maximum rate is {max}, so every receiver would be slow; lower the first of these rates"
    )]
    SlowAboveMax {
        /// Configured rate below which receivers count as slow.
        rate: Rate,
        /// Configured maximum rate.
        max: Rate,
    },
}

/// Checks that the limits of a source's rate are consistent.
///
/// # Errors
/// Returns [`BadLimits`] if the limits contradict each other.
pub fn check_limits(min: Option<Rate>, max: Option<Rate>, slow: SlowReceiverPolicy) -> Result<(), BadLimits> {
    let Some(max) = max else { return Ok(()) };
    match (min, slow) {
        (Some(min), _) if min > max => Err(BadLimits::MinAboveMax { min, max }),
        (_, SlowReceiverPolicy::Floor(rate) | SlowReceiverPolicy::Drop(rate)) if rate > max => {
            Err(BadLimits::SlowAboveMax { rate, max })
        }
        _ => Ok(()),
    }
}

/// Converts a duration of the configuration to the type that sessions use.
pub fn span(duration: Duration) -> Span {
    Span::from_nanos(duration.as_nanos().min(u128::from(u64::MAX)) as u64)
}
/// Minimum time over which feedback is spread on the local network. `SPREAD_FAR` is the minimum for larger networks.
const SPREAD_LOCAL: Span = Span::from_millis(10);
const SPREAD_FAR: Span = Span::from_millis(200);

/// Returns the minimum time over which feedback is spread, for a group with this TTL.
pub(crate) const fn spread_within(ttl: u8) -> Span {
    if ttl <= 1 { SPREAD_LOCAL } else { SPREAD_FAR }
}
