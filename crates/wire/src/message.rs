//! Messages between a source and its receivers.
//!
//! On the wire a [`ReceiverId`] has 32 bits, and 0 means no receiver. Ids for a real network are drawn from `1..=u32::MAX`. The
//! encoder refuses larger ids, which the simulator may use.

use crate::key::KeyId;
use crate::layers::Spacing;
pub use crate::name::{Name, NameTooLong, Words};
use crate::receipt::Receipt;
use crate::series::Series;
use crate::signature::Signature;
use crate::withdrawn::{Withdrawn, WithdrawnPart};
use faircast_core::packet::{Data, Echo, Layer, ReceiverId, Report, Seq, SessionId};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Version of the format.
pub const VERSION: u8 = 3;

/// The content of one datagram.
#[derive(Debug, Clone, PartialEq)]
pub enum Message<'a> {
    /// Source to all: one symbol, and the mark of the scheme.
    Data(DataPacket<'a>),
    /// Receiver to source: congestion control.
    Report(Report),
    /// Source to all, periodically: the content of the session and how to join it.
    Announce(Announce),
    /// Source to all, periodically: progress of the session, and confirmed receivers.
    Status(Status),
    /// Receiver to source: number of missing symbols.
    Request(Request),
    /// Receiver to source: its identity and progress.
    Member(Member),
    /// Receiver to source: the packet number up to which the receiver's buffers have room.
    Window(Window),
    /// Source to all: signed hashes of blocks.
    Hashes(Hashes),
    /// Receiver to the sender of an announcement: the reason why it does not follow this session.
    Refusal(Refusal),
    /// Receiver to a host that may become its parent: a request to be served by unicast.
    Attach(Attach),
    /// Parent to receiver, as the answer to [`Attach`]: a token, which the receiver must repeat to prove its address.
    Token(Token),
    /// Source to a host that waits for a session: an invitation to attach.
    Invite(Invite),
    /// Relay to its parent: the relays downstream of it.
    Tree(Tree),
    /// Relay to its parent: the complete receivers downstream of it.
    Verified(Verified),
    /// Agent to one of its children: an assignment, a poll, or an answer.
    Order(Order),
    /// Receiver to source, forwarded by relays: a signed statement that the receiver is complete.
    Receipt(Receipt),
}

/// A data packet: the part that the core reads, and a symbol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataPacket<'a> {
    /// The part that the core reads. Its rate and the numbers of its mark are encoded as [`faircast_core::half`]s. A rate of zero
    /// means "not stated"; a packet without a rate is two bytes shorter.
    pub data: Data,
    /// Layer of the packet.
    pub layer: Layer,
    /// Number of source symbols of the symbol's block; 0 in a packet without a symbol.
    pub symbols: u16,
    /// One symbol; empty if a relay sent a symbol that the content key does not open.
    pub payload: &'a [u8],
}

/// A session's content, and how to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announce {
    /// Random bytes, drawn when the source started. The session's keys are derived from them.
    pub salt: [u8; 16],
    /// Time of sending, in seconds since 1970 (UTC).
    pub unix_secs: u64,
    /// Time at which the source started, in nanoseconds since 1970 (UTC). An older session of the same name has older content.
    pub started: u64,
    /// The source's address and port.
    pub source: SocketAddr,
    /// Sender of this announcement and destination of feedback: the source, or the relay that forwarded it. An announcement that
    /// arrives from another address was recorded and replayed.
    pub parent: SocketAddr,
    /// The transfer that this session carries.
    pub transfer: TransferId,
    /// Length of the whole object stream (all files in order), in bytes; `None` for an open-ended stream.
    pub stream_len: Option<u64>,
    /// Length of the manifest, in bytes. If it is 0 and [`Announce::LIVE`] is set, each layer carries its own stream. Blocks are
    /// then numbered per layer, and receivers request no repairs.
    pub manifest_len: u32,
    /// Bytes of a symbol.
    pub symbol_size: u16,
    /// Size of an IP packet with a symbol, headers included, in bytes: the packet size for the schemes of source and receivers.
    /// At least [`Announce::MIN_PACKET`].
    pub packet_size: u16,
    /// Source symbols of a full block.
    pub symbols_per_block: u16,
    /// First block of this session.
    pub first_block: u32,
    /// Unwrapped (64-bit) number of the next packet of layer 0. A late joiner takes the upper 32 bits of packet numbers from it.
    pub next_seq: u64,
    /// Congestion-control scheme.
    pub scheme: u8,
    /// Maximum number of layers; 1 for a session at one rate. See [`crate::layers`] for their groups.
    pub layers: u8,
    /// The scheme's options that differ from its preset for real networks, separated by commas.
    pub options: Name,
    /// Number of relays between the source and the receiver of the announcement.
    pub hops: u8,
    /// Time over which feedback is spread, in milliseconds.
    pub spread_ms: u32,
    /// See [`Announce::LIVE`], [`Announce::REGISTER`] and [`Announce::ONE_WAY`].
    pub flags: u8,
    /// Name of the source's host, or name of the content.
    pub name: Name,
    /// The fingerprint of the source's public key, when its content is signed; 0 otherwise.
    pub signer: u32,
    /// Patterns of the host names of the receivers that take part, separated by commas; `*` stands for any characters. If empty, all
    /// receivers take part. Older programs refuse an announcement with patterns.
    pub to_hosts: Name,
    /// The place of this session in a series of the source. Older programs refuse an announcement with it.
    pub series: Option<Series>,
    /// For a dry run: the length of the object stream of the session that would follow. This session carries only its manifest, and
    /// receivers change nothing on their disks. Older programs refuse an announcement with it.
    pub dry_run: Option<u64>,
    /// The source's signature, when its content is signed ([`Announce::sign`]).
    pub signature: Option<Signature>,
}

impl Announce {
    /// Flag: a live stream; receivers do not wait for its beginning.
    pub const LIVE: u8 = 1;
    /// Flag: receivers must register ([`Member`]) before they report.
    pub const REGISTER: u8 = 1 << 1;
    /// Flag: layers differ by port. Without the flag they differ by address.
    pub const LAYERS_BY_PORT: u8 = 1 << 2;
    /// Flag: the source receives nothing. Receivers send nothing and wait for later symbols to complete their blocks.
    pub const ONE_WAY: u8 = 1 << 3;
    /// Length of the smallest packet, in bytes: headers of IPv4 and UDP, and a data packet without a rate, a mark and a symbol.
    pub const MIN_PACKET: u16 = 58;

    /// Whether each layer carries its own stream, with blocks numbered per layer.
    pub const fn has_streams(&self) -> bool {
        self.flags & Announce::LIVE != 0 && self.manifest_len == 0
    }

    /// Whether the source receives nothing.
    pub const fn is_one_way(&self) -> bool {
        self.flags & Announce::ONE_WAY != 0
    }

    /// Returns the spacing of the layers' groups.
    pub const fn spacing(&self) -> Spacing {
        if self.flags & Announce::LAYERS_BY_PORT != 0 { Spacing::Port } else { Spacing::Address }
    }
}

/// Progress of the session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Unwrapped (64-bit) number of the next packet of layer 0.
    pub next_seq: u64,
    /// All source symbols of the blocks below this one have been sent once.
    pub complete_to: u32,
    /// Number of blocks, once known; less than `u32::MAX`.
    pub blocks: Option<u32>,
    /// Root hash of the object stream, once known.
    pub root: Option<[u8; 32]>,
    /// Proof that a member of the group, and not a relay, stated the root and the number of blocks. Codecs make and check it.
    pub proof: Option<[u8; 16]>,
    /// The source's signature of the number of blocks, the number of withdrawn files and the root, when its content is signed.
    pub root_signature: Option<Signature>,
    /// Present after files were withdrawn because they changed or could not be read during the transfer. The root hash also
    /// covers these files.
    pub withdrawn: Option<WithdrawnPart>,
    /// Time over which feedback is spread, in milliseconds.
    pub spread_ms: u32,
    /// Number of receivers that the source knows.
    pub members: u32,
    /// See [`Status::CLOSING`], [`Status::backoff`], [`Status::HELD`], [`Status::BY_NUMBER`] and
    /// [`Status::RECEIPTS`].
    pub flags: u8,
    /// Largest round-trip time, in microseconds.
    pub rtt_max_us: u32,
    /// Unwrapped (64-bit) numbers of the next packets of layers 1, 2 and so on. A receiver that joins a layer late takes the
    /// upper 32 bits of its packet numbers from here.
    pub upper_seqs: Vec<u64>,
    /// Repairs in progress, which receivers need not request again.
    pub scheduled: Vec<Scheduled>,
    /// Receivers whose report of completion has reached the source.
    pub confirmed: Vec<ReceiverId>,
    /// Receivers that sent a request, with the nonces that they drew. A receiver that reads its nonce here knows that the session
    /// continues.
    pub welcomed: Vec<Welcome>,
    /// Receivers that delay the others.
    pub lagging: Vec<ReceiverId>,
    /// Receivers for which the source no longer waits.
    pub dropped: Vec<ReceiverId>,
    /// A part of the list of withdrawn files, at most [`Status::MAX_WITHDRAWALS`]. The next status carries the next part.
    pub withdrawals: Vec<Withdrawn>,
}

impl Status {
    /// Maximum number of withdrawn files in one status.
    pub const MAX_WITHDRAWALS: usize = 8;
    /// Flag: the session ends.
    pub const CLOSING: u8 = 1;
    /// Flags: the bits of [`Status::backoff`].
    pub const BACKOFF_LOW: u8 = 1 << 1;
    /// See [`Status::BACKOFF_LOW`].
    pub const BACKOFF_HIGH: u8 = 1 << 2;
    /// Flag: no data is sent until a receiver's window opens ([`Window`]).
    pub const HELD: u8 = 1 << 3;
    /// Flag: relays must report the ids of complete receivers ([`Verified`]), and the source confirms each of these receivers.
    pub const BY_NUMBER: u8 = 1 << 4;
    /// Flag: receipts are accepted, and answered like a join.
    pub const RECEIPTS: u8 = 1 << 5;
    /// Flag of a session that ends: a user stopped its source.
    pub const STOPPED: u8 = 1 << 6;

    /// Returns the number of files withdrawn so far.
    #[must_use]
    pub fn withdrawn_count(&self) -> u32 {
        self.withdrawn.map_or(0, |part| part.total)
    }

    /// Returns the backoff of receivers' requests, from 0 (requests are not limited) to 3 (one request during each spread of
    /// feedback).
    #[must_use]
    pub const fn backoff(&self) -> u8 {
        (self.flags & (Status::BACKOFF_LOW | Status::BACKOFF_HIGH)) / Status::BACKOFF_LOW
    }

    /// Returns the flags of this backoff level.
    #[must_use]
    pub const fn backoff_flags(level: u8) -> u8 {
        (level * Status::BACKOFF_LOW) & (Status::BACKOFF_LOW | Status::BACKOFF_HIGH)
    }
}

/// The answer to a receiver's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// Sender of the request.
    pub id: ReceiverId,
    /// [`Member::nonce`].
    pub nonce: u16,
}

/// A repair in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// The block.
    pub block: u32,
    /// Number of symbols that will still be sent.
    pub symbols: u16,
}

/// A counted negative acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Sender of the request.
    pub from: ReceiverId,
    /// Needed symbols.
    pub needs: Vec<Need>,
    /// Symbols that the receiver has of the requested blocks. A relay needs this information, because it cannot make new symbols.
    pub held: Vec<SymbolMap>,
    /// Echo of the newest received packet.
    pub echo: Echo,
}

/// A request for more symbols of each block in a run of blocks. Any symbols of a block that the receiver does not have satisfy
/// the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// First block.
    pub first: u32,
    /// Number of blocks of the run.
    pub run: u16,
    /// Number of symbols for each block; 0 requests a page with the hashes of these blocks ([`Hashes`]).
    pub symbols: u16,
    /// Whether received symbols of the blocks did not verify. A relay must then fetch the blocks again instead of sending symbols
    /// from its cache.
    pub wrong: bool,
}

/// The source symbols of a block that a receiver has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolMap {
    /// The block.
    pub block: u32,
    /// Bit `k % 8` of byte `k / 8` stands for symbol `k`.
    pub symbols: [u8; SymbolMap::BYTES],
}

impl SymbolMap {
    /// Length of the map, in bytes, for blocks of at most 256 source symbols.
    pub const BYTES: usize = 32;

    /// Whether the receiver has this symbol; `false` for a symbol outside the map.
    pub fn has(&self, symbol: u32) -> bool {
        self.symbols.get(symbol as usize / 8).is_some_and(|byte| byte >> (symbol % 8) & 1 == 1)
    }
}

/// A receiver's membership in the session.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The receiver's id.
    pub from: ReceiverId,
    /// Random number drawn at the receiver's start. Only a source that has received this number can send it back with the
    /// receiver's id.
    pub nonce: u16,
    /// The receiver's state.
    pub state: MemberState,
    /// Reason, as a code of the transport; 0 without a reason.
    pub reason: u8,
    /// Number of represented receivers: 1 for a receiver; for a relay, the number of receivers downstream of it.
    pub receivers: u32,
    /// Number of represented receivers that are complete.
    pub done: u32,
    /// Number of verified bytes.
    pub verified_bytes: u64,
    /// Number of these bytes that the receiver verified in an earlier run and that are not sent again.
    pub resumed_bytes: u64,
    /// Number of missing blocks.
    pub blocks_missing: u32,
    /// Received rate, in bit/s.
    pub rate: f32,
    /// Smoothed loss fraction, 0 to 1.
    pub loss: f32,
    /// Number of datagrams that the receiver's host dropped (socket buffer overflows).
    pub dropped_local: u32,
    /// Number of bytes that wait for the receiver's disk or for the reader of its output.
    pub unwritten_bytes: u64,
    /// Activity of the receiver's host.
    pub activity: Activity,
    /// Progress of that activity, in percent.
    pub percent: u8,
    /// Echo of the newest received packet.
    pub echo: Echo,
    /// Name of the receiver's host.
    pub host: Name,
    /// Reason of a failure, in words; otherwise empty.
    pub why: Words,
}

/// A receive window: flow control, as in TCP and QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Receiver with this window.
    pub from: ReceiverId,
    /// Echo of the newest packet that left the receiver's buffers.
    pub echo: Echo,
    /// Packets of the base layer below this number fit the receiver's buffers; [`Window::UNLIMITED`] means no limit.
    pub limit: Seq,
}

impl Window {
    /// The largest number that can be encoded: no limit.
    pub const UNLIMITED: Seq = Seq((1 << 62) - 1);
}

/// A page of hashes: the hashes of consecutive blocks, with a signature of this page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashes {
    /// The first of these blocks.
    pub first_block: u32,
    /// The source's signature ([`crate::sign`]).
    pub signature: Signature,
    /// One hash for each block.
    pub hashes: Vec<[u8; 32]>,
}

/// The reason why a receiver does not follow a session that it observes. A receiver without the session's key cannot seal this
/// message. The message then proves nothing, so the source only reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Receiver that refuses.
    pub from: ReceiverId,
    /// The reason.
    pub reason: RefusalReason,
    /// Id of the first of the receiver's keys; 0 without a key.
    pub key: KeyId,
    /// Name of the receiver's host.
    pub host: Name,
    /// For a busy receiver: the source of the session that it follows. Empty if the addressee must not learn the name of this
    /// source.
    pub source: Name,
    /// For a busy receiver: the content of that session.
    pub content: Name,
    /// For a busy receiver: estimated seconds until that session ends; 0 if the receiver has completed it.
    pub seconds: Option<u32>,
}

impl Refusal {
    /// Creates a refusal that names no other session.
    #[must_use]
    pub const fn new(from: ReceiverId, reason: RefusalReason, key: KeyId, host: Name) -> Refusal {
        Refusal { from, reason, key, host, source: Name::EMPTY, content: Name::EMPTY, seconds: None }
    }
}

/// A request of a receiver (or relay) without multicast to be served by unicast. It is never sealed, because the requester learns
/// the session and its keys later. It entitles a host only to announcements, and only if the host has repeated a [`Token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attach {
    /// Receiver that attaches.
    pub from: ReceiverId,
    /// Token of the parent; zeros before it is known.
    pub token: [u8; 16],
    /// [`Invite::number`] of the invitation; 0 without one.
    pub invitation: u64,
    /// Whether the requester is a relay.
    pub relay: bool,
    /// Name of the receiver's host.
    pub host: Name,
}

/// A source's request to a host to attach to the source. It is never sealed and proves nothing. The host answers with one
/// [`Attach`]. It continues when it receives a [`Token`], which proves the address of the inviter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invite {
    /// Drawn at random for this host; not 0.
    pub number: u64,
    /// Name of the source's host, or name of the content.
    pub name: Name,
}

/// All relays downstream of the sender, or a part of this list. Each relay precedes the relays downstream of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// Sender of the message.
    pub from: ReceiverId,
    /// Number of relays of the list before this part.
    pub first: u16,
    /// Number of relays of the whole list.
    pub count: u16,
    /// The relays of this part.
    pub relays: Vec<TreeNode>,
}

/// Complete receivers downstream of a relay, listed by id. A receiver is counted once, even if several relays report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The relay that reports the receivers.
    pub from: ReceiverId,
    /// The receivers.
    pub receivers: Vec<ReceiverId>,
}

/// Description of a relay by its parent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeNode {
    /// Number of relays between this relay and the reporting relay, below 16; 0 for a direct child.
    pub level: u8,
    /// Number of receivers downstream of it.
    pub receivers: u32,
    /// Number of represented receivers that are complete.
    pub done: u32,
    /// Receive rate, in bit/s.
    pub rate: f32,
    /// Address of the relay.
    pub address: SocketAddr,
    /// Name of the relay's host, in UTF-8, padded with zeros.
    pub host: [u8; 24],
}

impl TreeNode {
    /// Length of the field for a host's name, in bytes.
    pub const HOST: usize = 24;

    /// Returns as much of the beginning of a name as fits the field.
    pub fn cut(name: &str) -> [u8; 24] {
        let mut host = [0; TreeNode::HOST];
        let fits = (0..=name.len().min(TreeNode::HOST)).rev().find(|end| name.is_char_boundary(*end));
        let end = fits.unwrap_or(0);
        host[..end].copy_from_slice(&name.as_bytes()[..end]);
        host
    }

    /// Returns the name, without terminal control characters.
    pub fn name(&self) -> Name {
        let end = self.host.iter().position(|byte| *byte == 0).unwrap_or(TreeNode::HOST);
        Name::clipped(&String::from_utf8_lossy(&self.host[..end]))
    }
}

/// Challenge that a receiver repeats to attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Receiver that asked.
    pub to: ReceiverId,
    /// The bytes to repeat.
    pub token: [u8; 16],
    /// Whether the sender is an agent (MTCP). The children of an agent also receive the source's packets.
    pub agent: bool,
}

/// A message of an agent to one of its children. In a sealed session it is sealed under the agent's own key, like a relay's
/// message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Addressee.
    pub to: ReceiverId,
    /// Action of the order.
    pub action: OrderAction,
    /// The meaning depends on the action. [`OrderAction::Join`] and [`OrderAction::Poll`]: number of the order, which the answer
    /// repeats. [`OrderAction::Serves`]: [`Order::BY_NUMBER`] or 0. [`OrderAction::Heard`] to an agent: id of the receiver
    /// downstream of the agent that is known to be complete; 0 for the agent itself.
    pub number: u32,
    /// The agent's group of [`OrderAction::Join`]. 0 is the session's group, in which the child receives the source's packets; in
    /// group 1 the child receives only the agent's packets.
    pub group: u8,
    /// First packet in the group of [`OrderAction::Join`].
    pub from: Seq,
    /// In answers: [`Member::nonce`] of the answered message.
    pub nonce: u16,
}

impl Order {
    /// [`Order::number`] of [`OrderAction::Serves`]: a downstream agent must report complete receivers by number ([`Verified`]),
    /// and receives the numbers of the receivers that are already known to be complete.
    pub const BY_NUMBER: u32 = 1;
}

/// Action of an agent's message to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderAction {
    /// The child must join this group and leave all others.
    Join,
    /// The child must answer.
    Poll,
    /// The agent serves this child and is active.
    Serves,
    /// The agent knows that the child is complete, has failed, or has left.
    Heard,
}

/// Reason why a receiver does not follow a session that it observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// The session is sealed, and the receiver has no key.
    NoKey,
    /// The session is sealed under a key that the receiver does not have.
    OtherKey,
    /// The receiver has a key, and the session is not sealed.
    Unsealed,
    /// The receiver accepts signed content only.
    Unsigned,
    /// The content is signed with a key that the receiver does not accept.
    OtherSigner,
    /// The signature of the announcement is wrong.
    WrongSignature,
    /// The receiver's version does not support the congestion control.
    UnknownScheme,
    /// The announcement contradicts itself.
    Senseless,
    /// The receiver supports another version of the format. The addressee cannot read the message, but sees this version.
    OtherVersion,
    /// The receiver does not accept the source's name or the session's size.
    NotAccepted,
    /// The receiver follows another session.
    Busy,
}

/// State of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// The receiver has joined and has no data yet.
    Joined,
    /// The receiver receives data.
    Receiving,
    /// The receiver has verified everything.
    Done,
    /// The receiver has failed.
    Failed,
    /// The receiver leaves before the end.
    Leaving,
    /// The receiver asks whether the session is active. It has not joined, because it may wait for another session.
    Asking,
    /// A relay: it represents other receivers, and the source does not wait for it.
    Relaying,
}

/// Activity of a receiver's host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activity {
    /// Receiving from the network.
    #[default]
    Network,
    /// Verifying the data of an earlier run.
    Verifying,
    /// Setting times, owners and modes of files, and flushing them.
    Completing,
    /// Renaming files.
    Renaming,
    /// Creating links and directories.
    Linking,
}

/// Content of a packet's fixed header. The header of a sealed packet is authenticated only when the packet is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The session.
    pub session: SessionId,
    /// Lower 32 bits of the sender's counter for this kind and layer.
    pub seq: u32,
    /// Whether the packet is sealed.
    pub sealed: bool,
    /// Kind of the packet.
    pub kind: Kind,
    /// Layer of a data packet, or the layer that a report describes; otherwise the base layer.
    pub layer: Layer,
}

/// Kinds of packets, with their numbers in the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// [`Message::Data`].
    Data = 1,
    /// [`Message::Report`].
    Report = 2,
    /// [`Message::Announce`].
    Announce = 3,
    /// [`Message::Status`].
    Status = 4,
    /// [`Message::Request`].
    Request = 5,
    /// [`Message::Member`].
    Member = 6,
    /// [`Message::Window`].
    Window = 7,
    /// [`Message::Hashes`].
    Hashes = 8,
    /// [`Message::Refusal`].
    Refusal = 9,
    /// [`Message::Attach`].
    Attach = 10,
    /// [`Message::Token`].
    Token = 11,
    /// [`Message::Invite`].
    Invite = 12,
    /// [`Message::Tree`].
    Tree = 13,
    /// [`Message::Order`].
    Order = 14,
    /// [`Message::Verified`].
    Verified = 15,
    /// [`Message::Receipt`].
    Receipt = 16,
}

impl Kind {
    /// Returns the kind with this number.
    pub const fn from_wire(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Data,
            2 => Kind::Report,
            3 => Kind::Announce,
            4 => Kind::Status,
            5 => Kind::Request,
            6 => Kind::Member,
            7 => Kind::Window,
            8 => Kind::Hashes,
            9 => Kind::Refusal,
            10 => Kind::Attach,
            11 => Kind::Token,
            12 => Kind::Invite,
            13 => Kind::Tree,
            14 => Kind::Order,
            15 => Kind::Verified,
            16 => Kind::Receipt,
            _ => return None,
        })
    }

    /// Whether receivers, and not the source, send packets of this kind.
    pub const fn is_feedback(self) -> bool {
        matches!(
            self,
            Kind::Report
                | Kind::Request
                | Kind::Member
                | Kind::Window
                | Kind::Refusal
                | Kind::Attach
                | Kind::Tree
                | Kind::Verified
                | Kind::Receipt
        )
    }
}

impl Message<'_> {
    /// Returns the kind of the message.
    pub const fn kind(&self) -> Kind {
        match self {
            Message::Data(_) => Kind::Data,
            Message::Report(_) => Kind::Report,
            Message::Announce(_) => Kind::Announce,
            Message::Status(_) => Kind::Status,
            Message::Request(_) => Kind::Request,
            Message::Member(_) => Kind::Member,
            Message::Window(_) => Kind::Window,
            Message::Hashes(_) => Kind::Hashes,
            Message::Refusal(_) => Kind::Refusal,
            Message::Attach(_) => Kind::Attach,
            Message::Token(_) => Kind::Token,
            Message::Invite(_) => Kind::Invite,
            Message::Tree(_) => Kind::Tree,
            Message::Order(_) => Kind::Order,
            Message::Verified(_) => Kind::Verified,
            Message::Receipt(_) => Kind::Receipt,
        }
    }

    /// Returns the sender if it is a receiver.
    pub const fn from(&self) -> Option<ReceiverId> {
        match self {
            Message::Report(report) => Some(report.from),
            Message::Request(request) => Some(request.from),
            Message::Member(member) => Some(member.from),
            Message::Window(window) => Some(window.from),
            Message::Refusal(refusal) => Some(refusal.from),
            Message::Attach(attach) => Some(attach.from),
            Message::Tree(tree) => Some(tree.from),
            Message::Verified(verified) => Some(verified.from),
            Message::Receipt(receipt) => Some(receipt.from),
            Message::Data(_)
            | Message::Announce(_)
            | Message::Status(_)
            | Message::Hashes(_)
            | Message::Token(_)
            | Message::Invite(_)
            | Message::Order(_) => None,
        }
    }

    /// Returns the layer that the message belongs to or describes.
    pub const fn layer(&self) -> Layer {
        match self {
            Message::Data(packet) => packet.layer,
            Message::Report(report) => report.layer,
            _ => Layer(0),
        }
    }
}

/// Identifies a transfer. The same content has the same id when it is sent again, so that receivers can resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TransferId(pub [u8; 16]);

impl fmt::Display for TransferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text that is not a [`TransferId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a transfer id is 32 hexadecimal digits")]
pub struct NotATransferId;

impl FromStr for TransferId {
    type Err = NotATransferId;

    fn from_str(text: &str) -> Result<TransferId, NotATransferId> {
        crate::key::hex(text).map(TransferId).ok_or(NotATransferId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_node_name_is_cut_between_characters_and_sanitized() {
        let name = |text: &str| {
            let host = TreeNode::cut(text);
            let address = SocketAddr::from(([10, 0, 0, 1], 1));
            TreeNode { level: 0, receivers: 0, done: 0, rate: 0.0, address, host }.name().to_string()
        };
        assert_eq!(name("relay.example.org"), "relay.example.org");
        assert_eq!(name(&"\u{e9}".repeat(20)), "\u{e9}".repeat(12));
        assert_eq!(name(&format!("a{}", "\u{e9}".repeat(20))), format!("a{}", "\u{e9}".repeat(11)));
        assert_eq!(name("a\u{1b}[2J"), "a[2J");
        assert_eq!(name(""), "");
    }

    #[test]
    fn transfer_id_round_trips_as_text() {
        let id = TransferId(*b"0123456789abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!("12".parse::<TransferId>(), Err(NotATransferId));
    }
}
