//! Why a session could not run, or failed.

use crate::object::ObjectError;
use faircast_core::node::Effect;
use faircast_net::NetError;
use std::time::Duration;

/// Whose fault it is, for exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The transfer did not succeed: exit code 1.
    Transfer,
    /// The request makes no sense: exit code 2.
    Usage,
    /// Network or system: exit code 3.
    System,
}

/// What keeps data from arriving where announcements do.
pub(crate) const LOOK_AT_PATH: &str =
    "look at the MTU of the path (`--datagram 1200` at the source sends smaller packets) and at firewalls";

/// What keeps answers from arriving.
pub(crate) const LOOK_AT_WAY_BACK: &str = "nobody was heard: look at the way back, UDP from the receivers to the port that this host sends from, and at firewalls";

/// Why a session could not run, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Sockets and interfaces.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Files and directories.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A scheme's role wanted what cannot be done for it here.
    #[error(
        "the congestion control's {role} wants what cannot be done for it here ({effect}): that is an error of the scheme, please report it"
    )]
    Effect {
        /// Which role.
        role: &'static str,
        /// What it wants.
        effect: String,
    },
    /// Nobody answered the announcement.
    #[error(
        "no receiver answered on {group} within {waited:?}; is `faircast recv` running there, on the same group, with the same key, within --ttl {ttl} hops?"
    )]
    NoReceiver {
        /// The group.
        group: std::net::SocketAddr,
        /// How long the source waited.
        waited: Duration,
        /// The time to live.
        ttl: u8,
    },
    /// The scheme's options do not fit into the announcement.
    #[error(
        "the options of --cc take {len} bytes where the announcement has room for {most}: set fewer of them"
    )]
    SchemeOptions {
        /// Bytes that they take.
        len: usize,
        /// Bytes that there is room for.
        most: usize,
    },
    /// The group's address or port is too high for all layers.
    #[error(
        "{scheme} sends {layers} layers and there is no group for layer {top} by {by} from {group}; choose a lower one with --group, or --layers-by {other}, or fewer layers"
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
    #[error("{what} does not go with {scheme}, which sends in layers: {instead}")]
    NotInLayers {
        /// What was asked for.
        what: &'static str,
        /// The scheme's name.
        scheme: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// Streams in layers with a scheme that has none.
    #[error(
        "--layer needs a scheme that sends in layers, which {scheme} does not; use --cc rlc or --cc gmcc"
    )]
    NeedsLayers {
        /// The scheme's name.
        scheme: &'static str,
    },
    /// Each stream needs a layer.
    #[error(
        "{count} streams (--layer) do not fit the {layers} layers of {scheme}; give 1 to {layers}, base layer first"
    )]
    LayerInputs {
        /// How many streams there are.
        count: usize,
        /// How many layers there are.
        layers: u8,
        /// The scheme's name.
        scheme: &'static str,
    },
    /// No session was announced.
    #[error("no session was announced on {group} within {waited:?}{hint}")]
    NoSession {
        /// The group.
        group: std::net::SocketAddr,
        /// How long the receiver waited.
        waited: Duration,
        /// What was seen instead, as a sentence, or nothing.
        hint: String,
    },
    /// The network was gone for too long.
    #[error("{why}; waited {} s for it (--patience). Run the command again when it is back: receivers resume", .lasted.as_secs())]
    Outage {
        /// How long it was gone.
        lasted: Duration,
        /// What is wrong with it.
        why: NetError,
    },
    /// The source is heard, but nothing that it sends arrives.
    #[error(
        "announcements arrive but no data: none of {packets} packets of up to {bytes} bytes within {} s; {LOOK_AT_PATH}; {verified_bytes} bytes are verified and kept",
        .lasted.as_secs()
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
    },
    /// The source went silent in the middle.
    #[error(
        "the source has been silent for {silent:?}; {verified_bytes} bytes are verified and kept, run the same command again to resume"
    )]
    SourceSilent {
        /// How long.
        silent: Duration,
        /// Bytes verified.
        verified_bytes: u64,
    },
    /// The source ended the session before this receiver had everything.
    #[error(
        "the source ended the session before everything had arrived ({reason}); {verified_bytes} bytes are verified and kept, run the same command again to resume"
    )]
    Ended {
        /// Why, in a word or two.
        reason: &'static str,
        /// Bytes verified.
        verified_bytes: u64,
    },
    /// The verified blocks do not make up the content that the source has.
    #[error(
        "the content does not match the source's root hash, although every block did; did files change while they were sent?"
    )]
    RootMismatch,
    /// A datagram size that leaves no room.
    #[error("datagrams of {datagram} bytes leave no room for a symbol; use 256 to {largest}")]
    DatagramSize {
        /// What was asked for.
        datagram: u16,
        /// The largest that the interface carries.
        largest: u16,
    },
    /// The interface's MTU is too small.
    #[error(
        "interface {interface} has an MTU of {mtu}, too small for faircast (at least 284, with IPv6 304); choose another with --iface"
    )]
    MtuTooSmall {
        /// Interface name.
        interface: String,
        /// Its MTU.
        mtu: u32,
    },
    /// Standard input or output.
    #[error("cannot read standard input or write standard output: {0}")]
    Pipe(#[source] std::io::Error),
    /// A tree cannot go to standard output.
    #[error("the session carries {files} files; `--stdout` takes one file or a stream, use `--out DIR`")]
    NotAStream {
        /// Files in the session.
        files: u64,
    },
    /// A packet could not be written: a number that the format has no room for.
    #[error("cannot write a packet: {0}")]
    Wire(#[from] faircast_wire::EncodeError),
    /// PGM over UDP is spoken on IPv4 here.
    #[error("{0} is an IPv6 address, but sessions over PGM use IPv4; choose an IPv4 group and interface")]
    PgmNeedsIpv4(std::net::IpAddr),
    /// A message or unit that does not fit.
    #[error(
        "messages of {size} bytes do not fit; without ZeroMQ's framing a message has 1 to {most} bytes with these datagrams"
    )]
    PgmMessage {
        /// What was asked for.
        size: usize,
        /// What fits.
        most: usize,
    },
    /// A PGM source sends one file or stream.
    #[error(
        "cannot send {what} over PGM, which knows no files; send one file, or pipe one in: `tar c ... | faircast send -`"
    )]
    PgmContent {
        /// What was asked for.
        what: String,
    },
    /// A packet could not be written: a number that the format has no room for.
    #[error("cannot write a PGM packet: {0}")]
    Pgm(#[from] faircast_wire::pgm::EncodeError),
    /// The PGM source gave up.
    #[error("the source has broken its session off (OPT_RST); what came before is kept")]
    PgmReset,
    /// The PGM source went silent.
    #[error(
        "the source has been silent for {silent:?} without saying that this was all; {bytes} bytes have come"
    )]
    PgmSilent {
        /// How long.
        silent: Duration,
        /// Bytes of content delivered.
        bytes: u64,
    },
    /// Content that FLUTE cannot carry.
    #[error("cannot send {what} over ALC: its files have names and lengths; write it to a file first")]
    AlcContent {
        /// What was asked for.
        what: &'static str,
    },
    /// A file that is too long for the erasure code.
    #[error(
        "{} has {bytes} bytes, but with these datagrams --fec {fec} reaches {most}; use larger ones (--datagram) or the other code",
        .path.display()
    )]
    AlcTooLong {
        /// The file.
        path: std::path::PathBuf,
        /// Its length.
        bytes: u64,
        /// The code.
        fec: &'static str,
        /// The longest file that it reaches.
        most: u64,
    },
    /// Layers beyond the last address or port.
    #[error(
        "layer {layer} of the group {group} would be no multicast group; choose a lower address, or fewer layers (--cc rlc,layers=N)"
    )]
    AlcLayer {
        /// The layer.
        layer: u8,
        /// The session's group.
        group: std::net::SocketAddr,
    },
    /// A packet could not be written: a number that the format has no room for.
    #[error("cannot write an ALC packet: {0}")]
    Alc(#[from] faircast_wire::alc::EncodeError),
    /// Nothing was heard.
    #[error(
        "no ALC session was heard on {group} within {waited:?}; is the source sending there, within its --ttl?"
    )]
    AlcNoSession {
        /// The group.
        group: std::net::SocketAddr,
        /// How long the receiver waited.
        waited: Duration,
    },
    /// The session ended, or nothing of it came any more, before everything was there.
    #[error(
        "{why} before everything had arrived: {files} of {known} files are whole; ask the source for more rounds (--repeat)"
    )]
    AlcEnded {
        /// What happened, as a sentence without an end.
        why: &'static str,
        /// Files that are whole.
        files: u64,
        /// Files of the table.
        known: u64,
    },
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// A role wants what cannot be done for it here.
    pub(crate) fn effect(role: &'static str, effect: &Effect) -> Error {
        Error::Effect { role, effect: format!("{effect:?}") }
    }

    /// Whether it says no more than that nothing was heard, which has another cause when this host's network was gone.
    pub(crate) const fn may_be_the_network(&self) -> bool {
        matches!(
            self,
            Error::NoReceiver { .. }
                | Error::NoSession { .. }
                | Error::SourceSilent { .. }
                | Error::NothingArrives { .. }
                | Error::Ended { .. }
                | Error::PgmSilent { .. }
                | Error::AlcNoSession { .. }
                | Error::AlcEnded { .. }
        )
    }

    /// Whose fault it is.
    pub fn class(&self) -> Class {
        match self {
            Error::NoReceiver { .. }
            | Error::NoSession { .. }
            | Error::SourceSilent { .. }
            | Error::NothingArrives { .. }
            | Error::Ended { .. }
            | Error::RootMismatch
            | Error::PgmReset
            | Error::PgmSilent { .. }
            | Error::AlcNoSession { .. }
            | Error::AlcEnded { .. }
            | Error::Stopped => Class::Transfer,
            Error::PgmNeedsIpv4(_)
            | Error::PgmMessage { .. }
            | Error::PgmContent { .. }
            | Error::AlcContent { .. }
            | Error::AlcTooLong { .. }
            | Error::AlcLayer { .. }
            | Error::DatagramSize { .. }
            | Error::SchemeOptions { .. }
            | Error::NoGroupForLayer { .. }
            | Error::NotInLayers { .. }
            | Error::NeedsLayers { .. }
            | Error::LayerInputs { .. }
            | Error::NotAStream { .. } => Class::Usage,
            Error::Net(_)
            | Error::Effect { .. }
            | Error::Outage { .. }
            | Error::Object(_)
            | Error::MtuTooSmall { .. }
            | Error::Pipe(_)
            | Error::Wire(_)
            | Error::Pgm(_)
            | Error::Alc(_) => Class::System,
        }
    }
}
