//! The bodies of messages in their encoded form. The kind in the header selects one.

use crate::codec::Quantised;
use crate::codec::{
    BitRate, Bits32, Codec, Counter, Fraction, PacketSize, Rounded, U24, U32OrNone, U64OrNone,
};
use crate::error::{EncodeError, ParseError};
use crate::field::{Layout, Shape, fields_of, len_of};
use crate::key::KeyId;
use crate::message::{
    Activity, Announce, Attach, Hashes, Invite, Member, MemberState, Name, Need, Order, OrderAction, Refusal,
    RefusalReason, Request, Scheduled, Status, SymbolMap, Token, TransferId, Tree, TreeNode, Verified,
    Welcome, Window, Words,
};
use crate::reader::Reader;
use crate::receipt::Receipt;
use crate::withdrawn::{Withdrawn, WithdrawnPart};
use faircast_core::packet::{Data, Echo, Flags, ReceiverId, Seq};
use faircast_core::time::Time;
use std::net::SocketAddr;

/// The part of a message between its header and its end.
pub(crate) trait Body: Sized {
    /// The table of its fields.
    const LAYOUT: Layout;
    /// The part of the packet before the body that describes it.
    type Before;

    /// Appends the body. Lists are cut so that `out` ends at `end` at the latest, if the rest of the body permits it.
    fn put(&self, out: &mut Vec<u8>, end: usize) -> Result<Fit, EncodeError>;

    /// Reads the body from any bytes.
    fn read(r: &mut Reader<'_>, before: Self::Before) -> Result<Self, ParseError>;

    /// Any body that can be written.
    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self>;
}

/// Number of entries of each list that fit into a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fit {
    /// Entries of [`Status::upper_seqs`].
    pub upper_seqs: usize,
    /// Entries of [`Status::scheduled`].
    pub scheduled: usize,
    /// Entries of [`Status::confirmed`].
    pub confirmed: usize,
    /// Entries of [`Status::welcomed`].
    pub welcomed: usize,
    /// Entries of [`Status::lagging`].
    pub lagging: usize,
    /// Entries of [`Status::dropped`].
    pub dropped: usize,
    /// Entries of [`Status::withdrawals`].
    pub withdrawals: usize,
    /// Entries of [`Request::needs`].
    pub needs: usize,
    /// Entries of [`Request::held`].
    pub held: usize,
    /// Entries of [`Hashes::hashes`].
    pub hashes: usize,
    /// Entries of [`Tree::relays`].
    pub relays: usize,
    /// Entries of [`Verified::receivers`].
    pub receivers: usize,
}

/// Shares `room` bytes among lists of `lens` entries of `sizes` bytes. Every list gets at least an equal part. Lists in front
/// take the unused bytes first.
pub(crate) fn share<const N: usize>(mut room: usize, lens: [usize; N], sizes: [usize; N]) -> [usize; N] {
    let sure = room / N;
    let mut counts = [0; N];
    for list in 0..N {
        counts[list] = lens[list].min(sure / sizes[list]).min(usize::from(u16::MAX));
        room -= counts[list] * sizes[list];
    }
    for list in 0..N {
        let more =
            (lens[list] - counts[list]).min(room / sizes[list]).min(usize::from(u16::MAX) - counts[list]);
        counts[list] += more;
        room -= more * sizes[list];
    }
    counts
}

/// The bodies, by the header's kind.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        name: "data",
        number: 1,
        purpose: "source to all: one symbol. Then the rate (when the header says so), the mark, and the symbol",
        fields: fields_of(DataFields::SHAPE),
        bits: &[],
    },
    Layout {
        name: "report",
        number: 2,
        purpose: "receiver to source: congestion control. The content's number (1 byte) selects what follows",
        fields: &[],
        bits: &[],
    },
    Announce::LAYOUT,
    Status::LAYOUT,
    Request::LAYOUT,
    Member::LAYOUT,
    Window::LAYOUT,
    Hashes::LAYOUT,
    Refusal::LAYOUT,
    Attach::LAYOUT,
    Token::LAYOUT,
    Invite::LAYOUT,
    Tree::LAYOUT,
    Order::LAYOUT,
    Verified::LAYOUT,
    Receipt::LAYOUT,
];

/// The fields of every data packet between its header and its mark.
#[derive(Debug, Clone)]
pub(crate) struct DataFields {
    pub(crate) sent_at: u32,
    pub(crate) block: u32,
    pub(crate) symbol: u32,
    pub(crate) symbols: u16,
    pub(crate) flags: u8,
}

/// Length of [`DataFields`], in bytes.
pub(crate) const DATA_FIXED: usize = len_of(fields_of(DataFields::SHAPE));
/// Length of the rate, in bytes.
pub(crate) const RATE_LEN: usize = match Rounded::SHAPE.fixed_len() {
    Some(len) => len,
    None => panic!("a rate has always the same length"),
};

/// Flags of a data packet; the remaining bits belong to its mark.
enum DataFlags {}
/// Flags of an announcement.
enum AnnounceFlags {}
/// Flags of a status.
enum StatusFlags {}

written_as! {
    DataFlags: u8 as u8, Shape::Flags(&[
        (Flags::STARTING.0, "starting"),
        (Flags::ROUND_END.0, "round end"),
        (Flags::REPAIR.0, "repair"),
        (Flags::GAP_SEEN.0, "gap seen"),
        (Flags::EVERYBODY.0, "everybody"),
    ]), |flags| *flags, |bits| bits;
    AnnounceFlags: u8 as u8, Shape::Flags(&[
        (Announce::LIVE, "live"),
        (Announce::REGISTER, "register"),
        (Announce::LAYERS_BY_PORT, "layers_by_port"),
        (Announce::ONE_WAY, "one way"),
    ]), |flags| *flags, |bits| bits;
    StatusFlags: u8 as u8, Shape::Flags(&[
        (Status::CLOSING, "closing"),
        (Status::BACKOFF_LOW, "backoff, low bit"),
        (Status::BACKOFF_HIGH, "backoff, high bit"),
        (Status::HELD, "held"),
        (Status::BY_NUMBER, "by number"),
        (Status::RECEIPTS, "receipts"),
        (Status::STOPPED, "stopped"),
    ]), |flags| *flags, |bits| bits;
}

group! {
    DataFields {
        sent_at: u32, "when it was sent, in microseconds since the session started; wraps";
        block: u32, "block; 4294967295 with symbol 16777215: no symbol";
        symbol: U24, "encoding symbol id; source symbols come first";
        symbols: u16, "number of source symbols of the block";
        flags: DataFlags, "flags; the other bits belong to the mark";
    }
}

body! {
    Announce = 3 "announce" "source to all, every now and then: what is sent here and how to join";
    fields {
        salt: [u8; 16], "random at each start of the source; the keys depend on it";
        unix_secs: u64, "when it was sent, in seconds since 1970";
        started: u64, "when the source started, in nanoseconds since 1970";
        source: SocketAddr, "the source's address and port";
        parent: SocketAddr, "where this comes from and feedback goes to: the source, or a relay";
        transfer: TransferId, "which transfer; the same when the same content is offered again";
        stream_len: U64OrNone, "bytes of the whole object; 2^64 - 1: open-ended";
        manifest_len: u32, "bytes of the manifest";
        symbol_size: u16, "bytes of a symbol";
        packet_size: PacketSize, "bytes of an IP packet with a symbol, headers included, as the scheme counts it; at least 58";
        symbols_per_block: u16, "source symbols of a full block";
        first_block: u32, "first block that is sent in this session";
        next_seq: Counter, "number of layer 0's next packet, unwrapped; below 2^62";
        scheme: u8, "congestion-control scheme";
        layers: u8, "layers; 1: a session at one rate";
        hops: u8, "relays between the source and here";
        spread_ms: u32, "time over which feedback is spread, in milliseconds";
        flags: AnnounceFlags, "flags";
        name: Name, "the source's host or the name of its content; at most 63 bytes";
        options: Name, "the scheme's options, where they are not its preset; at most 63 bytes";
        signer: Bits32, "of signed content: the fingerprint of the source's public key; 0: not signed";
        signature: Option<[u8; 64]>, "of signed content: the source's, over everything that relays may not change";
    }
}

body! {
    Status = 4 "status" "source to all, from time to time: progress of the session";
    fields {
        next_seq: Counter, "number of layer 0's next packet, unwrapped; below 2^62";
        complete_to: u32, "all source symbols of the blocks below have been sent once";
        blocks: U32OrNone, "number of blocks; 2^32 - 1: not known yet";
        spread_ms: u32, "time over which feedback is spread, in milliseconds";
        members: u32, "members known to the source";
        flags: StatusFlags, "flags";
        rtt_max_us: u32, "largest round-trip time, in microseconds";
        root: Option<[u8; 32]>, "root hash of the object, once known";
        proof: Option<[u8; 16]>, "where the session is sealed: that a member sent root and blocks";
        root_signature: Option<[u8; 64]>, "of signed content: the source's, over the number of blocks, the number of withdrawn files and the root";
        withdrawn: WithdrawnHead, "once files are withdrawn: their number (4), the place of the first of withdrawals in the list of them (4), and of signed content the source's signature of that place and withdrawals, otherwise zeros (64)";
    }
    lists {
        upper_seqs: [Counter as upper_seq "unwrapped; below 2^62"], "numbers of the next packets of layers 1, 2 and so on";
        scheduled: [Scheduled], "repairs under way";
        confirmed: [ReceiverId as confirmed_id "a receiver"], "known to be finished";
        welcomed: [Welcome], "receivers that ask whether the session continues";
        lagging: [ReceiverId as lagging_id "a receiver"], "holding up the others";
        dropped: [ReceiverId as dropped_id "a receiver"], "no longer waited for";
        withdrawals: [Withdrawn], "files that changed or could not be read while they were sent";
    }
}

group! {
    Welcome {
        id as "welcomed_id": ReceiverId, "a receiver";
        nonce as "welcomed_nonce": u16, "the number that it has drawn";
    }
}

written_as! {
    WithdrawnHead: Option<WithdrawnPart> as Option<[u8; WithdrawnPart::LEN]>, Shape::Optional(WithdrawnPart::LEN),
        |part| part.map(WithdrawnPart::to_bytes), |bytes| bytes.map(WithdrawnPart::from_bytes);
}

/// Encoding of [`Status::withdrawn`].
pub(crate) enum WithdrawnHead {}

group! {
    Withdrawn {
        entry as "withdrawn_entry": u32, "an entry of the manifest";
        first_block as "withdrawn_first_block": u32, "the first block with bytes of it";
        last_block as "withdrawn_last_block": u32, "the last one";
    }
}

group! {
    Scheduled {
        block as "scheduled_block": u32, "for this block";
        symbols as "scheduled_symbols": u16, "number of further symbols";
    }
}

body! {
    Request = 5 "request" "receiver to source: a counted negative acknowledgement";
    before { from: ReceiverId }
    fields {
        echo: Echo, "the packet that is answered";
    }
    lists {
        needs: [Need], "missing symbols";
        held: [SymbolMap], "to a relay: received symbols of missing blocks";
    }
}

group! {
    SymbolMap {
        block as "held_block": u32, "of this block";
        symbols as "held_symbols": [u8; 32], "bit k % 8 of byte k / 8: source symbol k is there";
    }
}

group! {
    Need {
        first: u32, "first block";
        run: u16, "number of blocks from there";
        symbols: u16, "symbols that each of them lacks; 0: a page with their hashes";
        wrong: bool, "1: received symbols of it did not verify";
    }
}

body! {
    Member = 6 "member" "receiver to source: identity and progress";
    before { from: ReceiverId }
    fields {
        nonce: u16, "drawn at random when the receiver started";
        state: MemberState, "state of the receiver";
        reason: u8, "reason, in the transport's code; 0: without a reason";
        receivers: u32, "receivers that this one represents: 1 for a receiver, those below it for a relay";
        done: u32, "those among them that have everything";
        verified_bytes: u64, "bytes verified";
        blocks_missing: u32, "blocks missing";
        rate: BitRate, "received rate, in bit/s; not negative";
        loss: Fraction, "smoothed loss fraction, 0 to 1";
        dropped_local: u32, "datagrams that the receiver's own host dropped";
        activity: Activity, "activity of its host";
        percent: u8, "progress of that activity, in percent";
        echo: Echo, "the packet that is answered";
        host: Name, "the receiver's host; at most 63 bytes";
        why: Words, "reason of its failure, in words; at most 250 bytes";
    }
}

body! {
    Window = 7 "window" "receiver to source: limit of packets before this receiver's buffers overflow";
    before { from: ReceiverId }
    fields {
        echo: Echo, "the packet that is answered";
        limit: Seq, "packets of layer 0 below this number fit, unwrapped; 2^62 - 1: no limit";
    }
}

body! {
    Hashes = 8 "hashes" "source to all: a page, the hashes of blocks in a row, signed by itself";
    fields {
        first_block: u32, "the first of these blocks";
        signature: [u8; 64], "the source's, over the page and what it belongs to";
    }
    lists {
        hashes: [[u8; 32] as hash "BLAKE3 of a block's data"], "one for each block";
    }
}

body! {
    Refusal = 9 "refusal" "receiver to source: reason why this session is not followed; sealed if the receiver has its key";
    before { from: ReceiverId }
    fields {
        reason: RefusalReason, "why";
        key: KeyId, "the first of the receiver's keys; 0: it has none";
        host: Name, "the receiver's host; at most 63 bytes";
        source: Name, "of busy: the source of the session that is followed; at most 63 bytes";
        content: Name, "of busy: the content of that session; at most 63 bytes";
        seconds: U32OrNone, "of busy: estimated seconds until that session ends; 0: it is complete here; 2^32 - 1: not known";
    }
}

body! {
    Attach = 10 "attach" "receiver to a host that may become its parent: serve me by unicast; never sealed";
    before { from: ReceiverId }
    fields {
        token: [u8; 16], "as received from the parent; zeros before";
        invitation: u64, "the number of the invitation that this follows; 0: none";
        relay: bool, "1: the receiver is a relay";
        host: Name, "the receiver's host; at most 63 bytes";
    }
}

body! {
    Token = 11 "token" "the answer to attach: to be repeated, from where the receiver is; never sealed";
    fields {
        to: ReceiverId, "the receiver that asked";
        token: [u8; 16], "to be repeated";
        agent: bool, "1: it is an agent (MTCP), whose children receive the source as well";
    }
}

body! {
    Order = 14 "order" "agent to one of its children (MTCP): where it belongs, a question, or an answer";
    fields {
        to: ReceiverId, "the child";
        action: OrderAction, "the action";
        number: u32, "of join and poll: its number, which is in the answer; of serves: 1: finished receivers are reported by number; of heard: the receiver below that is known to be finished; 0: the child itself";
        group: u8, "of join: 0: it receives the source; 1: it receives the agent alone";
        from: Seq, "of join: the first packet that comes there, unwrapped";
        nonce: u16, "of serves and heard: the nonce of what is answered";
    }
}

body! {
    Invite = 12 "invite" "source to a host that waits for one: attach to me; never sealed";
    fields {
        number: u64, "drawn at random for this host; not 0";
        name: Name, "the source's host or the name of its content; at most 63 bytes";
    }
}

body! {
    Tree = 13 "tree" "relay to source or relay: the relays below it, each before those behind it";
    before { from: ReceiverId }
    fields {
        first: u16, "relays of the list that come before these";
        count: u16, "relays of the whole list";
    }
    lists {
        relays: [TreeNode], "the relays below";
    }
}

group! {
    TreeNode {
        level as "relay_level": u8, "relays between this one and the sender; below 16";
        receivers as "relay_receivers": u32, "receivers below it";
        done as "relay_done": u32, "those among them that have everything";
        rate as "relay_rate": BitRate, "what it receives, in bit/s; not negative";
        address as "relay_address": SocketAddr, "where it is";
        host as "relay_host": [u8; 24], "what it calls itself, in UTF-8, zeros behind it";
    }
}

body! {
    Verified = 15 "verified" "relay to source or relay: receivers behind it that have everything";
    before { from: ReceiverId }
    fields {}
    lists {
        receivers: [ReceiverId as verified_id "a receiver"], "who has everything";
    }
}

body! {
    Receipt = 16 "receipt" "receiver to source, passed on by relays: its signature that it has verified everything";
    before { from: ReceiverId }
    fields {
        nonce: u16, "by which who sends it numbers it; the answer is in welcomed_nonce";
        receiver: ReceiverId, "who has signed it";
        unix_secs: u64, "when, by the clock of its host, in seconds since 1970";
        root: [u8; 32], "root hash of the object";
        key: [u8; 32], "the receiver's public key (Ed25519)";
        signature: [u8; 64], "the receiver's, over all of it but nonce, and over the session";
        host: Name, "the receiver's host; at most 63 bytes";
    }
}

impl Quantised for Data {
    fn quantised(&self) -> Data {
        Data {
            sent_at: Time::from_nanos(self.sent_at.as_nanos() / 1_000 * 1_000),
            rate: Rounded::quantised(&self.rate),
            mark: self.mark.quantised(),
            ..*self
        }
    }
}
