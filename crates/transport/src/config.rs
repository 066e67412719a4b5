//! Configuration of a session.

use crate::ends::{Input, Output};
use crate::object::{
    FollowLinks, Memory, MemoryFile, Names, ObjectError, OwnersBy, Preserve, Unreadable, replace_in,
};
use crate::session_filter::SessionFilter;
use faircast_core::packet::Layer;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span};
use faircast_wire::{GroupKey, KeyRing, SigningKey, Spacing, VerifyKey, VerifyKeys};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use crate::object::{Durability, KeepPartial, OverwritePolicy, ReplayPolicy};
pub use faircast_host::pipe::Pacing;

/// The group used when none is named: administratively scoped (RFC 2365), faircast's own port.
pub const DEFAULT_GROUP: &str = "239.255.70.1:5777";

/// The same on hosts without IPv4 (RFC 4291, 2.7: of the site, not assigned for good).
pub const DEFAULT_GROUP_V6: &str = "[ff15::4643:1]:5777";

/// The group in which relays answer hosts that look for one, and the same for IPv6 (RFC 4291, 2.7: of the site, not assigned
/// for good).
pub const FIND_GROUP: &str = "239.255.70.2:5778";
/// See [`FIND_GROUP`].
pub const FIND_GROUP_V6: &str = "[ff15::4643:2]:5778";

/// The port of relays at which hosts without multicast ask, and of hosts that wait to be invited.
pub const RELAY_PORT: u16 = 5778;

/// Memory for a relay's cache of each session, bytes.
pub const RELAY_MEMORY: usize = 256_000_000;

/// The congestion control used when none is named.
pub const DEFAULT_SCHEME: &str = "ormcc";

/// Receive buffer asked of the system, in bytes: a tenth of a second at 1 Gbit/s.
pub const RECEIVE_BUFFER: usize = 16 << 20;

/// Default timeout for transient faults.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Action taken on slow receivers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum SlowReceiverPolicy {
    /// The group adapts to its slowest receiver.
    #[default]
    Follow,
    /// Receivers that cannot keep up with this rate are served after the others are done.
    Floor(Rate),
    /// Receivers that cannot keep up with this rate are dropped, and notified.
    Drop(Rate),
}

/// Content of a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Files and directory trees.
    Paths(Vec<PathBuf>),
    /// Files in memory, of these names or paths.
    Memory(Vec<MemoryFile>),
    /// An input as one file of this name: it is read to its end, and every receiver gets all of it. It is stored in a nameless temporary
    /// file until the session ends.
    Reader {
        /// The file's name at the receivers.
        name: String,
        /// Input to read.
        input: Input,
    },
    /// A live input: a late joiner starts at the present, and data older than `history` is not repaired.
    Live {
        /// Input to read.
        input: Input,
        /// How long sent data can still be repaired.
        history: Duration,
    },
    /// A live stream of its own on each layer of a layered scheme. Repairs are not requested: they are sent with the data.
    Layers {
        /// Inputs of the layers, the base layer's first.
        inputs: Vec<LayerInput>,
        /// Age at which unsent input of a layer is dropped. Files wait instead.
        history: Duration,
        /// Repair symbols over source symbols, 0 to 1. Twice as many are sent to receivers that lose much.
        repair: f64,
    },
}

impl Content {
    /// Its kind in words, as in `a live stream`.
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
        /// Whether it waits for its layer.
        pacing: Pacing,
    },
    /// A file, or a named pipe.
    Path(PathBuf),
}

/// Hosts that a source serves by unicast, each at its own rate, without multicast.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unicast {
    /// Addresses to which hosts attach ([`ReceiveConfig::parents`]); an unspecified address stands for all of this host's. Without any, the
    /// system chooses a port, and only invited hosts are served.
    pub listen: Vec<SocketAddr>,
    /// Largest number of served hosts that were not invited.
    pub children: usize,
    /// Hosts that are invited ([`ReceiveConfig::listen`]).
    pub invite: Vec<InvitedHost>,
    /// Whether the group is sent to as well; otherwise it stays within this host.
    pub multicast: Multicast,
    /// Approximate memory for data that slower hosts still need, bytes; more of it is read again from the content.
    pub memory: usize,
}

/// Whether packets go to the group when hosts are served by unicast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multicast {
    /// They do.
    Also,
    /// They stay within this host.
    Not,
}

/// A host that is invited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvitedHost {
    /// As people call it.
    pub name: String,
    /// Where it waits.
    pub address: SocketAddr,
}

impl InvitedHost {
    /// A host of this name that waits at this address.
    pub fn new(name: impl Into<String>, address: SocketAddr) -> InvitedHost {
        InvitedHost { name: name.into(), address }
    }
}

impl Unicast {
    /// Invites these hosts and serves no others.
    pub fn invite(hosts: Vec<InvitedHost>) -> Unicast {
        Unicast {
            listen: Vec::new(),
            children: 0,
            invite: hosts,
            multicast: Multicast::Not,
            memory: RELAY_MEMORY,
        }
    }

    /// Serve up to `children` hosts that ask here.
    pub fn listen(at: Vec<SocketAddr>, children: usize) -> Unicast {
        Unicast { listen: at, children, ..Unicast::invite(Vec::new()) }
    }
}

/// Starts a waiting session with the receivers that have joined. A clone is the same one.
#[derive(Debug, Clone, Default)]
pub struct StartNow {
    asked: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl StartNow {
    /// Starts now, or with the first receiver if none has joined. A session that has started is not affected.
    pub fn start(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the session no longer waits.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The flag that [`StartNow::start`] sets, for signal handlers.
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

/// How long a source without answers continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// This number of times the whole content.
    Rounds(u64),
    /// This long.
    For(Duration),
    /// Until it is stopped.
    Forever,
}

/// A session without feedback, for paths that carry nothing back: a data diode, a satellite. No congestion control is at work:
/// the rate has to be free on every path.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct OneWay {
    /// The rate at which it sends, headers included.
    pub rate: Rate,
    /// How often, or how long.
    pub repeat: Repeat,
}

impl OneWay {
    /// Send at this rate, for as long or as often.
    #[must_use]
    pub const fn new(rate: Rate, repeat: Repeat) -> OneWay {
        OneWay { rate, repeat }
    }
}

/// How `send` and `stream` run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SendConfig {
    /// Group address and port.
    pub group: SocketAddr,
    /// Hosts that are served by unicast.
    pub unicast: Option<Unicast>,
    /// Interface by name or address; chosen by route when `None`.
    pub interface: Option<String>,
    /// The only UDP port of this host for receivers' feedback. `None`: the group's, or one that the system chooses while another program
    /// has that.
    pub port: Option<u16>,
    /// Time to live (hop limit) of the packets: 1 stays on the local network.
    pub ttl: u8,
    /// Congestion control.
    pub scheme: Scheme,
    /// Where the groups of the layers are, when the scheme has several.
    pub spacing: Spacing,
    /// Never slower than this; of a layered scheme, its base layer.
    pub min: Option<Rate>,
    /// Never faster than this, all layers together.
    pub max: Option<Rate>,
    /// Action taken on slow receivers. Layers have their own: with them it is [`SlowReceiverPolicy::Follow`].
    pub slow: SlowReceiverPolicy,
    /// Send without feedback: `min`, `max`, `slow`, `expect`, `required`, `receipts` and `join_timeout` mean nothing then. Not for live
    /// streams, schemes with layers and hosts that are served by unicast.
    pub one_way: Option<OneWay>,
    /// Seal everything under this key.
    pub key: Option<GroupKey>,
    /// Sign the content with this key. Not for streams in layers.
    pub sign: Option<SigningKey>,
    /// End when this many receivers are done, and start when this many have joined.
    pub expect: Option<u32>,
    /// Hosts that must have everything: the session starts when they have joined, and the report names absent ones.
    pub required: Vec<RequiredHost>,
    /// Each receiver has to sign a receipt with one of these keys. Receipts are recorded without as well.
    pub receipts: Option<ReceiptKeys>,
    /// How long to wait for receivers, in all: before the start for the first, or all of `expect` and `required`; the rest of it
    /// at the end, when all have left.
    pub join_timeout: Duration,
    /// Ends the wait before the start.
    pub start: StartNow,
    /// Duration for which receivers may be silent or unreached, or the network gone, before they are given up.
    pub idle_timeout: Duration,
    /// Largest UDP datagram, in bytes, without IP and UDP headers; from the interface's MTU (at
    /// most 1500) when `None`.
    pub datagram: Option<u16>,
    /// Content to send.
    pub content: Content,
    /// Metadata of files to send beyond names, permission bits, times and hard links.
    pub preserve: Preserve,
    /// Action taken on files that cannot be read.
    pub unreadable: Unreadable,
    /// Which symbolic links are sent as the files that they lead to.
    pub follow: FollowLinks,
    /// This host's name in messages.
    pub host: String,
    /// Where nameless temporary files are made.
    pub temporary: PathBuf,
}

/// The public keys of receivers, of which one has to sign each receipt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceiptKeys(BTreeSet<[u8; 32]>);

impl ReceiptKeys {
    /// Whether it is one of them.
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

/// A receiver that must have everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequiredHost {
    /// By the name that it states, in any case; a name without dots also matches a host with a domain.
    Name(String),
    /// By the address that it reports from.
    Address(IpAddr),
}

impl RequiredHost {
    /// An address when it is one, otherwise a name.
    #[must_use]
    pub fn new(text: &str) -> RequiredHost {
        text.parse().map_or_else(|_| RequiredHost::Name(text.to_owned()), RequiredHost::Address)
    }

    /// Whether it is the receiver that calls itself `host` and reports from `address`.
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

/// Where received content goes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Destination {
    /// Into this directory, under the names that the source sends.
    Directory(PathBuf),
    /// Sequential output, not for a tree. With a live stream in layers it is the base layer.
    Writer(Output),
    /// Into memory.
    Memory(Memory),
}

impl Destination {
    /// A writer of one stream to this destination. In a directory it becomes a new file of this name.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn stream(&self, name: &str) -> Result<Box<dyn Write + Send>, ObjectError> {
        Ok(match self {
            Destination::Writer(output) => Box::new(BufWriter::new(output.take())),
            Destination::Memory(memory) => Box::new(memory.stream(name)),
            Destination::Directory(directory) => {
                Box::new(BufWriter::with_capacity(1 << 16, replace_in(directory, name)?))
            }
        })
    }
}

/// Files that an output directory accepts, and their metadata.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilePolicy {
    /// Whether content of a later session or of another source may be replaced.
    pub(crate) overwrite: OverwritePolicy,
    /// Beyond names, permission bits, times and hard links.
    pub(crate) preserve: Preserve,
    /// How owners are known.
    pub(crate) owners_by: OwnersBy,
    /// Handling of names with terminal control characters.
    pub(crate) names: Names,
    /// How much unfinished data stays.
    pub(crate) keep_partial: KeepPartial,
}

/// How `recv` runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReceiveConfig {
    /// Hosts that may serve this one by unicast, the first of them first; without any, the group is joined. In place of a host
    /// that is a group ([`FIND_GROUP`]), the nearest relay that answers there is taken.
    pub parents: Vec<SocketAddr>,
    /// In place of parents: wait here until a source invites this host ([`Unicast::invite`]).
    pub listen: Option<SocketAddr>,
    /// Group address and port.
    pub group: SocketAddr,
    /// Interface by name or address; chosen by route when `None`.
    pub interface: Option<String>,
    /// Accept packets from this source only (a source-specific join).
    pub source: Option<IpAddr>,
    /// Where content goes.
    pub destination: Destination,
    /// Metadata of files to restore beyond names, permission bits, times and hard links, if the source sends it and this user may.
    pub preserve: Preserve,
    /// How owners are known here, when files get them.
    pub owners_by: OwnersBy,
    /// Handling of names with terminal control characters.
    pub names: Names,
    /// How much unfinished data of earlier sessions in an output directory stays when a session begins.
    pub keep_partial: KeepPartial,
    /// Whether content of a later session or of another source may be replaced: output directories remember them.
    pub overwrite: OverwritePolicy,
    /// Where single layers of a live stream go instead: files, or named pipes.
    pub layers_to: Vec<(Layer, PathBuf)>,
    /// Open sealed sessions under these keys; without any only unsealed sessions are accepted.
    pub key: Option<KeyRing>,
    /// Why a session is believed to go on now.
    pub replay_policy: ReplayPolicy,
    /// Accept only content that was signed with the private half of one of these keys; without them signatures are ignored.
    pub verify: Option<VerifyKeys>,
    /// Sign a receipt with this key when everything is verified and in its place.
    pub sign_receipts: Option<SigningKey>,
    /// Give up when no session is announced for this duration; `None`: wait without limit.
    pub join_timeout: Option<Duration>,
    /// Give up when a started session is silent, brings no data, or the network is gone for this duration.
    pub idle_timeout: Duration,
    /// Whether content is flushed to the disk.
    pub durability: Durability,
    /// This host's name in the source's messages.
    pub host: String,
    /// Receive buffer of the socket, in bytes.
    pub buffer: usize,
    /// Where nameless temporary files are made, when the destination is no directory.
    pub temporary: PathBuf,
    /// Which sessions are followed.
    pub accept: SessionFilter,
}

/// Default directory of temporary files.
const TEMPORARY: &str = "/tmp";

impl SendConfig {
    /// Sends this to [`DEFAULT_GROUP`] with ORMCC, unsealed, to the receivers that join within 10 s, and with an idle timeout of 60 s.
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
            slow: SlowReceiverPolicy::Follow,
            one_way: None,
            key: None,
            sign: None,
            expect: None,
            required: Vec::new(),
            receipts: None,
            join_timeout: Duration::from_secs(10),
            start: StartNow::default(),
            idle_timeout: IDLE_TIMEOUT,
            datagram: None,
            content,
            preserve: Preserve::nothing(),
            unreadable: Unreadable::LeaveOut,
            follow: FollowLinks::Never,
            host: String::new(),
            temporary: TEMPORARY.into(),
        }
    }
}

impl ReceiveConfig {
    /// Receives into this from [`DEFAULT_GROUP`]: waits for a session without limit, and with an idle timeout of 60 s for its source.
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

/// [`DEFAULT_SCHEME`] with its usual options.
pub fn default_scheme() -> Scheme {
    DEFAULT_SCHEME.parse().expect("it is in the catalogue")
}

/// [`DEFAULT_GROUP`].
pub fn default_group() -> SocketAddr {
    DEFAULT_GROUP.parse().expect("it is an address and a port")
}

/// [`DEFAULT_GROUP_V6`].
pub fn default_group_v6() -> SocketAddr {
    DEFAULT_GROUP_V6.parse().expect("it is an address and a port")
}

/// The group of sessions that name none, on this host or one interface of it: [`DEFAULT_GROUP_V6`] where only IPv6 can be used
/// ([`faircast_net::is_ipv6_only`]), otherwise [`DEFAULT_GROUP`].
pub fn default_group_here(interface: Option<&str>) -> SocketAddr {
    if faircast_net::is_ipv6_only(interface) { default_group_v6() } else { default_group() }
}

/// Hosts of the other family that name no group are in another one than this.
pub fn other_default(group: SocketAddr) -> Option<String> {
    let (four, six) = (default_group(), default_group_v6());
    match group {
        group if group == four => Some(format!("hosts without IPv4 use the group {six} when none is named")),
        group if group == six => Some(format!("hosts with IPv4 use the group {four} when none is named")),
        _ => None,
    }
}

/// Limits of the rate that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BadLimits {
    /// The slowest rate is above the fastest.
    #[error("the lowest rate ({min}) is above the highest ({max}); swap them, or leave one out")]
    MinAboveMax {
        /// As given.
        min: Rate,
        /// As given.
        max: Rate,
    },
    /// The rate below which receivers are slow is above the fastest.
    #[error(
        "receivers below {rate} would be slow, and the highest rate is {max}, so every receiver would be; lower it"
    )]
    SlowAboveMax {
        /// As given.
        rate: Rate,
        /// As given.
        max: Rate,
    },
}

/// Whether the limits of a source's rate go together.
///
/// # Errors
/// [`BadLimits`].
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

/// A time of the configuration, as sessions count it.
pub fn span(duration: Duration) -> Span {
    Span::from_nanos(duration.as_nanos().min(u128::from(u64::MAX)) as u64)
}
/// Feedback is spread over at least this on the local network, and farther away.
const SPREAD_LOCAL: Span = Span::from_millis(10);
const SPREAD_FAR: Span = Span::from_millis(200);

/// The time over which the feedback to a group of this TTL is spread at least.
pub(crate) const fn spread_within(ttl: u8) -> Span {
    if ttl <= 1 { SPREAD_LOCAL } else { SPREAD_FAR }
}
