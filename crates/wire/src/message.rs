//! Messages between a source and its receivers.
//!
//! On the wire a [`ReceiverId`] has 32 bits, and 0 means nobody: ids for a real network
//! are drawn from `1..=u32::MAX`. Larger ones (the simulator may use them) are refused by
//! the encoder.

use crate::key::KeyId;
use crate::layers::Spacing;
pub use crate::name::{Name, NameTooLong, Words};
use crate::receipt::Receipt;
use crate::signature::Signature;
use crate::withdrawn::{Withdrawn, WithdrawnPart};
use faircast_core::packet::{Data, Echo, Layer, ReceiverId, Report, Seq, SessionId};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Version of the format.
pub const VERSION: u8 = 3;

/// One datagram.
#[derive(Debug, Clone, PartialEq)]
pub enum Message<'a> {
    /// Source to all: one symbol, and the scheme's mark.
    Data(DataPacket<'a>),
    /// Receiver to source: congestion control.
    Report(Report),
    /// Source to all, every now and then: what is sent here and how to join.
    Announce(Announce),
    /// Source to all, every now and then: how far the session is, and who is confirmed.
    Status(Status),
    /// Receiver to source: how many symbols are missing.
    Request(Request),
    /// Receiver to source: who I am and how far I am.
    Member(Member),
    /// Receiver to source: how far it may send before my buffers overflow.
    Window(Window),
    /// Source to all: signed hashes of blocks.
    Hashes(Hashes),
    /// Receiver to who announces: why this session is not followed here.
    Refusal(Refusal),
    /// Receiver to a host that may become its parent: serve me by unicast.
    Attach(Attach),
    /// The answer: say this again, so that I know that you are where you say.
    Token(Token),
    /// A source to a host that waits for one: ask me to serve you.
    Invite(Invite),
    /// Relay to source or relay: the relays below it.
    Tree(Tree),
    /// A relay says which receivers behind it have everything.
    Verified(Verified),
    /// Agent to one of its children: where it belongs, a question, or an answer.
    Order(Order),
    /// Receiver to source, which relays pass on: the receiver has signed that it has everything.
    Receipt(Receipt),
}

/// A data packet: the core's view of it, and the symbol it carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataPacket<'a> {
    /// The core's part of the packet. Its rate and its mark's numbers travel as [`faircast_core::half`]s; a rate of
    /// zero ("the scheme does not say") is left out and saves two bytes.
    pub data: Data,
    /// Its layer.
    pub layer: Layer,
    /// Number of source symbols of its block; 0 when it carries none.
    pub symbols: u16,
    /// One symbol; empty if a relay sent one that does not open under the content key.
    pub payload: &'a [u8],
}

/// A session's content, and how to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announce {
    /// Drawn at random when the source started; the session's keys depend on it.
    pub salt: [u8; 16],
    /// When this announcement was sent, in seconds since 1970 (UTC).
    pub unix_secs: u64,
    /// When the source started, in nanoseconds since 1970 (UTC): an older session of the same name has older content.
    pub started: u64,
    /// The source's address and port.
    pub source: SocketAddr,
    /// Where this announcement comes from and feedback goes to: the source, or the relay that passed it on. One that comes from
    /// elsewhere is somebody's recording.
    pub parent: SocketAddr,
    /// Which transfer this session carries.
    pub transfer: TransferId,
    /// Bytes of the whole object stream (all files in a row); `None` for an open-ended stream.
    pub stream_len: Option<u64>,
    /// Bytes of the manifest. 0 with [`Announce::LIVE`]: each layer carries a stream of its own, blocks are numbered by
    /// layer, and nobody asks for repairs.
    pub manifest_len: u32,
    /// Bytes of a symbol.
    pub symbol_size: u16,
    /// Bytes of an IP packet with a symbol, headers included: what the source's scheme counts a packet as, and receivers' too.
    /// At least [`Announce::MIN_PACKET`].
    pub packet_size: u16,
    /// Source symbols of a full block.
    pub symbols_per_block: u16,
    /// First block that is sent in this session.
    pub first_block: u32,
    /// Number of layer 0's next packet, unwrapped: a late joiner learns the upper half from it.
    pub next_seq: u64,
    /// Congestion-control scheme.
    pub scheme: u8,
    /// How many layers there may be; 1 for a session at one rate. Where they are: [`crate::layers`].
    pub layers: u8,
    /// The scheme's options that differ from its preset for real networks, separated by commas.
    pub options: Name,
    /// Relays between the source and here.
    pub hops: u8,
    /// Feedback is spread over this window, in milliseconds.
    pub spread_ms: u32,
    /// See [`Announce::LIVE`], [`Announce::REGISTER`] and [`Announce::ONE_WAY`].
    pub flags: u8,
    /// The source's host or what it sends.
    pub name: Name,
    /// The fingerprint of the source's public key, when its content is signed; 0 otherwise.
    pub signer: u32,
    /// The source's signature, when its content is signed ([`Announce::sign`]).
    pub signature: Option<Signature>,
}

impl Announce {
    /// Flag: a live stream; nobody waits for the head.
    pub const LIVE: u8 = 1;
    /// Flag: receivers must register ([`Member`]) before they report.
    pub const REGISTER: u8 = 1 << 1;
    /// Flag: layers differ by port; without it by address.
    pub const LAYERS_BY_PORT: u8 = 1 << 2;
    /// Flag: the source receives nothing; receivers send nothing, and complete blocks from later symbols.
    pub const ONE_WAY: u8 = 1 << 3;
    /// The smallest packet: headers of IPv4 and UDP, and a data packet without a rate, a mark and a symbol.
    pub const MIN_PACKET: u16 = 58;

    /// Whether each layer carries a stream of its own, with blocks numbered by layer.
    pub const fn has_streams(&self) -> bool {
        self.flags & Announce::LIVE != 0 && self.manifest_len == 0
    }

    /// Whether the source receives nothing.
    pub const fn is_one_way(&self) -> bool {
        self.flags & Announce::ONE_WAY != 0
    }

    /// How the groups of the layers follow each other.
    pub const fn spacing(&self) -> Spacing {
        if self.flags & Announce::LAYERS_BY_PORT != 0 { Spacing::Port } else { Spacing::Address }
    }
}

/// How far the session is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Number of layer 0's next packet, unwrapped.
    pub next_seq: u64,
    /// All source symbols of the blocks below this one have been sent once.
    pub complete_to: u32,
    /// Number of blocks, once known; less than `u32::MAX`.
    pub blocks: Option<u32>,
    /// Root hash of the object stream, once known.
    pub root: Option<[u8; 32]>,
    /// That a member of the group said the root and the number of blocks, and no relay. Codecs make it and check it.
    pub proof: Option<[u8; 16]>,
    /// The source's signature of the number of blocks, the number of withdrawn files and the root, when its content is signed.
    pub root_signature: Option<Signature>,
    /// Once files were withdrawn, because they changed or could not be read while they were sent. The root covers them.
    pub withdrawn: Option<WithdrawnPart>,
    /// Feedback is spread over this window, in milliseconds.
    pub spread_ms: u32,
    /// Receivers that the source knows of.
    pub members: u32,
    /// See [`Status::CLOSING`], [`Status::backoff`], [`Status::HELD`], [`Status::BY_NUMBER`] and
    /// [`Status::RECEIPTS`].
    pub flags: u8,
    /// Largest round-trip time, in microseconds.
    pub rtt_max_us: u32,
    /// Numbers of the next packets of layers 1, 2 and so on, unwrapped: who joins a layer late learns their upper halves.
    pub upper_seqs: Vec<u64>,
    /// Repairs that are under way: nobody needs to ask for them again.
    pub scheduled: Vec<Scheduled>,
    /// Receivers whose completion has reached the source.
    pub confirmed: Vec<ReceiverId>,
    /// Receivers that ask, with the numbers that they have drawn: proof to them that this session continues.
    pub welcomed: Vec<Welcome>,
    /// Receivers that hold the others up.
    pub lagging: Vec<ReceiverId>,
    /// Receivers that the source no longer waits for.
    pub dropped: Vec<ReceiverId>,
    /// Withdrawn files: a part of the list, and the next one in the next status. At most [`Status::MAX_WITHDRAWALS`].
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
    /// Flag: no more data leaves until a receiver's window opens ([`Window`]).
    pub const HELD: u8 = 1 << 3;
    /// Flag: the source wants relays to report complete receivers by number ([`Verified`]), and confirms each of them.
    pub const BY_NUMBER: u8 = 1 << 4;
    /// Flag: receipts are accepted, and answered like a join.
    pub const RECEIPTS: u8 = 1 << 5;
    /// Flag of a session that ends: its source was stopped.
    pub const STOPPED: u8 = 1 << 6;

    /// Number of files withdrawn so far.
    #[must_use]
    pub fn withdrawn_count(&self) -> u32 {
        self.withdrawn.map_or(0, |part| part.total)
    }

    /// How rarely receivers may ask for something, from 0 (as they like) to 3 (once in the spread).
    #[must_use]
    pub const fn backoff(&self) -> u8 {
        (self.flags & (Status::BACKOFF_LOW | Status::BACKOFF_HIGH)) / Status::BACKOFF_LOW
    }

    /// The flags of such a level.
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

/// A repair that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// For this block,
    pub block: u32,
    /// this many more symbols.
    pub symbols: u16,
}

/// A counted negative acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Sender of the request.
    pub from: ReceiverId,
    /// For what.
    pub needs: Vec<Need>,
    /// Symbols that it has of them, for a parent that cannot make new symbols: a relay.
    pub held: Vec<SymbolMap>,
    /// The newest packet it has.
    pub echo: Echo,
}

/// Each of a run of blocks needs more symbols; any symbols will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// First block.
    pub first: u32,
    /// How many blocks from there on.
    pub run: u16,
    /// Symbols for each; 0 asks for a page with their hashes ([`Hashes`]).
    pub symbols: u16,
    /// Symbols of it did not verify: a relay must not answer with those in its cache, and fetches it again.
    pub wrong: bool,
}

/// Which source symbols of a block a receiver has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolMap {
    /// The block.
    pub block: u32,
    /// Bit `k % 8` of byte `k / 8`: symbol `k`.
    pub symbols: [u8; SymbolMap::BYTES],
}

impl SymbolMap {
    /// Bytes of the map, for blocks of at most 256 source symbols.
    pub const BYTES: usize = 32;

    /// Whether this symbol is there; not of one beyond the map.
    pub fn has(&self, symbol: u32) -> bool {
        self.symbols.get(symbol as usize / 8).is_some_and(|byte| byte >> (symbol % 8) & 1 == 1)
    }
}

/// A receiver's membership in the session.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its number.
    pub from: ReceiverId,
    /// Drawn at random when it started: with its id, the number that a source must have heard to answer it.
    pub nonce: u16,
    /// In which state.
    pub state: MemberState,
    /// Reason, in the transport's code; 0 without one.
    pub reason: u8,
    /// Receivers that it speaks for: 1 for a receiver, those below it for a relay.
    pub receivers: u32,
    /// Those among them that have everything.
    pub done: u32,
    /// Bytes that it has verified.
    pub verified_bytes: u64,
    /// Blocks that it lacks.
    pub blocks_missing: u32,
    /// Received rate, in bit/s.
    pub rate: f32,
    /// Smoothed loss fraction, 0 to 1.
    pub loss: f32,
    /// Datagrams that its own host dropped (socket buffer overflows).
    pub dropped_local: u32,
    /// Activity of its host.
    pub activity: Activity,
    /// How much of that is done, in percent.
    pub percent: u8,
    /// The newest packet it has.
    pub echo: Echo,
    /// Its host's name.
    pub host: Name,
    /// Why it has failed, in words; otherwise nothing.
    pub why: Words,
}

/// A receive window: flow control, as in TCP and QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Receiver with this window.
    pub from: ReceiverId,
    /// The newest packet that it has taken out of its buffers.
    pub echo: Echo,
    /// Packets of the base layer below this number fit its buffers; [`Window::UNLIMITED`] when it sets no limit.
    pub limit: Seq,
}

impl Window {
    /// The largest number that can be sent: no limit.
    pub const UNLIMITED: Seq = Seq((1 << 62) - 1);
}

/// A page: the hashes of blocks in a row, signed by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashes {
    /// The first of these blocks.
    pub first_block: u32,
    /// The source's signature ([`crate::sign`]).
    pub signature: Signature,
    /// One for each block.
    pub hashes: Vec<[u8; 32]>,
}

/// A receiver observes a session and does not follow it. Without the session's key it cannot be sealed and proves nothing, so the source
/// only reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Receiver that refuses.
    pub from: ReceiverId,
    /// Why.
    pub reason: RefusalReason,
    /// The first of its keys; 0 without one.
    pub key: KeyId,
    /// Its host's name.
    pub host: Name,
    /// For a busy receiver: the source of the session that it follows. Empty if this source may not know it.
    pub source: Name,
    /// For a busy receiver: the content of that session.
    pub content: Name,
    /// For a busy receiver: estimated seconds until that session ends; 0 when it has everything of that session.
    pub seconds: Option<u32>,
}

impl Refusal {
    /// A refusal for this reason that names no other session.
    #[must_use]
    pub const fn new(from: ReceiverId, reason: RefusalReason, key: KeyId, host: Name) -> Refusal {
        Refusal { from, reason, key, host, source: Name::EMPTY, content: Name::EMPTY, seconds: None }
    }
}

/// A receiver (or relay) without multicast asks to be served by unicast. It is never sealed, because the session and its keys
/// are learned afterwards; it grants nothing but announcements, and these only to a host that has repeated a [`Token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attach {
    /// Receiver that attaches.
    pub from: ReceiverId,
    /// Token of the parent; zeros before it is known.
    pub token: [u8; 16],
    /// [`Invite::number`] of the invitation; 0 without one.
    pub invitation: u64,
    /// Whether it is a relay.
    pub relay: bool,
    /// Its host's name.
    pub host: Name,
}

/// A source asks a host to attach to it. It is never sealed, and proves nothing: the host answers with one [`Attach`], and
/// continues when a [`Token`] comes back, which proves the address of the inviter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invite {
    /// Drawn at random for this host; not 0.
    pub number: u64,
    /// The source's host or what it sends.
    pub name: Name,
}

/// The relays below a relay, those behind others too, each before those behind it: all of them, or a part.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// Sender of the message.
    pub from: ReceiverId,
    /// How many relays come before those of this part.
    pub first: u16,
    /// How many there are in all parts together.
    pub count: u16,
    /// The relays of this part.
    pub relays: Vec<TreeNode>,
}

/// Complete receivers behind a relay, each by its number: so they are counted once, whichever relays report them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The relay that reports them.
    pub from: ReceiverId,
    /// The receivers.
    pub receivers: Vec<ReceiverId>,
}

/// A relay, as the one that it is attached to knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeNode {
    /// Relays between it and the reporting one: 0 for one that is attached there. Less than 16.
    pub level: u8,
    /// Receivers below it.
    pub receivers: u32,
    /// Those among them that have everything.
    pub done: u32,
    /// Receive rate, in bit/s.
    pub rate: f32,
    /// Where it is.
    pub address: SocketAddr,
    /// Its host name, in UTF-8, padded with zeros.
    pub host: [u8; 24],
}

impl TreeNode {
    /// Bytes of a host's name.
    pub const HOST: usize = 24;

    /// The beginning of a name.
    pub fn cut(name: &str) -> [u8; 24] {
        let mut host = [0; TreeNode::HOST];
        let fits = (0..=name.len().min(TreeNode::HOST)).rev().find(|end| name.is_char_boundary(*end));
        let end = fits.unwrap_or(0);
        host[..end].copy_from_slice(&name.as_bytes()[..end]);
        host
    }

    /// The name, without terminal control characters.
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
    /// To be repeated.
    pub token: [u8; 16],
    /// Whether the sender is an agent (MTCP), whose children receive the source as well.
    pub agent: bool,
}

/// A message of an agent to one of its children. In sealed sessions it is sealed as a relay's, under the agent's own key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// To whom.
    pub to: ReceiverId,
    /// Action of the order.
    pub action: OrderAction,
    /// Of [`OrderAction::Join`] and [`OrderAction::Poll`]: its number, which is in the answer. Of [`OrderAction::Serves`]:
    /// [`Order::BY_NUMBER`], or 0. Of [`OrderAction::Heard`] to an agent: the receiver below it that is known to be done; 0: the child itself.
    pub number: u32,
    /// Of [`OrderAction::Join`]: which of the agent's groups. 0 is the session's, and the child hears the source; in 1 it hears the
    /// agent alone.
    pub group: u8,
    /// Of [`OrderAction::Join`]: the first packet that comes there.
    pub from: Seq,
    /// In answers: [`Member::nonce`] of the message that is answered.
    pub nonce: u16,
}

impl Order {
    /// [`Order::number`] of [`OrderAction::Serves`]: a downstream agent is to report complete receivers by number
    /// ([`Verified`]), and receives the known ones.
    pub const BY_NUMBER: u32 = 1;
}

/// A request of an agent to a child, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderAction {
    /// Be in this group and in no other.
    Join,
    /// Answer, and nothing else.
    Poll,
    /// The agent serves this child, or is still there.
    Serves,
    /// It knows that the child is done, or has failed or left.
    Heard,
}

/// Reason why a receiver does not follow a session that it observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// The session is sealed, and there is no key.
    NoKey,
    /// The session is sealed under a key that is not there.
    OtherKey,
    /// There is a key, and the session is not sealed.
    Unsealed,
    /// Only signed content is wanted.
    Unsigned,
    /// Content that other keys have signed is wanted.
    OtherSigner,
    /// The signature of the announcement is wrong.
    WrongSignature,
    /// Its version does not know the congestion control.
    UnknownScheme,
    /// The announcement is impossible.
    Senseless,
    /// It is of another version of the format: whoever gets this cannot read it, and sees whose version is another one.
    OtherVersion,
    /// It is not accepted, by its source's name or its size.
    NotAccepted,
    /// Another session is followed.
    Busy,
}

/// State of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It has joined and has nothing yet.
    Joined,
    /// It receives.
    Receiving,
    /// It has everything, verified.
    Done,
    /// It has given up.
    Failed,
    /// It leaves before the end.
    Leaving,
    /// It asks whether the session goes on now, and has not joined: another one may be the one that it waits for.
    Asking,
    /// It is a relay, which speaks for others and is not waited for.
    Relaying,
}

/// Activity of a receiver's host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activity {
    /// Receives from the network.
    #[default]
    Network,
    /// It verifies the data of an earlier run.
    Verifying,
    /// It gives files their times, owners and modes, and flushes them.
    Completing,
    /// It renames files.
    Renaming,
    /// It makes links and directories.
    Linking,
}

/// Content of a packet's fixed header. In a sealed packet nothing of it is authenticated before the packet
/// is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Session.
    pub session: SessionId,
    /// Low half of the sender's counter for this kind (and layer).
    pub seq: u32,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Kind.
    pub kind: Kind,
    /// Layer: of a data packet its own, of a report the one it is about, else the base layer.
    pub layer: Layer,
}

/// The kinds of packet, as numbered on the wire.
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
    /// From its number.
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

    /// Whether receivers send it (and not the source).
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
    /// Its kind.
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

    /// The sender, if it is a receiver.
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

    /// The layer it belongs to or is about.
    pub const fn layer(&self) -> Layer {
        match self {
            Message::Data(packet) => packet.layer,
            Message::Report(report) => report.layer,
            _ => Layer(0),
        }
    }
}

/// Which transfer: the same content offered again has the same one, so that receivers can resume.
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
    fn a_name_in_a_tree_is_cut_at_a_character_and_cleaned() {
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
