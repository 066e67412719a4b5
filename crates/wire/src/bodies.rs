//! The bodies of messages in their encoded form. The kind in the header selects the body.

use crate::codec::Quantised;
use crate::codec::{
    BitRate, Bits32, Codec, Counter, Fraction, PacketSize, RareComparison, RareLength, RareName, RareSeries,
    Rounded, U24, U32OrNone, U64OrNone,
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
    /// Table of the body's fields.
    const LAYOUT: Layout;
    /// The message's fields that precede the body in the packet.
    type Before;

    /// Appends the body. Lists are cut so that the length of `out` is at most `end`, if the rest of the body permits this.
    fn put(&self, out: &mut Vec<u8>, end: usize) -> Result<Fit, EncodeError>;

    /// Reads the body from any bytes.
    fn read(r: &mut Reader<'_>, before: Self::Before) -> Result<Self, ParseError>;

    /// Generates any body that can be written.
    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self>;
}

/// For each list of a message: the number of entries that fit into the message.
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

/// Shares `room` bytes among lists of `lens` entries of `sizes` bytes. Every list gets at least an equal part. Bytes that one
/// list does not need go to the other lists, the first lists before the later ones.
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
        purpose: "source to all: one symbol, after the rate (if the header has the bit for it) and the mark",
        fields: fields_of(DataFields::SHAPE),
        bits: &[],
    },
    Layout {
        name: "report",
        number: 2,
        purpose: "receiver to source: feedback for congestion control. The content's number (1 byte) selects the fields that follow",
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
        sent_at: u32, "time of sending, in microseconds since the start of the session; wraps";
        block: u32, "number of the block; 4294967295 with symbol 16777215: the packet has no symbol";
        symbol: U24, "encoding symbol ID; source symbols have the lowest ones";
        symbols: u16, "number of source symbols of the block";
        flags: DataFlags, "flags; the remaining bits belong to the mark";
    }
}

body! {
    Announce = 3 "announce" "source to all, at intervals: description of the session, and addresses for joining";
    fields {
        salt: [u8; 16], "random number, drawn at each start of the source; the keys depend on it";
        unix_secs: u64, "time of sending, in seconds since 1970";
        started: u64, "time of the source's start, in nanoseconds since 1970";
        source: SocketAddr, "address and port of the source";
        parent: SocketAddr, "address and port of the sender of this packet, which receives feedback: the source, or a relay";
        transfer: TransferId, "ID of the transfer; stays the same if the same content is sent again";
        stream_len: U64OrNone, "length of the object stream, in bytes; 2^64 - 1: without a known end";
        manifest_len: u32, "length of the manifest, in bytes";
        symbol_size: u16, "length of a symbol, in bytes";
        packet_size: PacketSize, "length of an IP packet with a symbol, in bytes, headers included, as the scheme counts it; at least 58";
        symbols_per_block: u16, "number of source symbols of a full block";
        first_block: u32, "first block of this session";
        next_seq: Counter, "number of the next packet of layer 0, unwrapped; below 2^62";
        scheme: u8, "number of the congestion-control scheme";
        layers: u8, "number of layers; 1: a session at one rate";
        hops: u8, "number of relays between the source and the receiver of this packet";
        spread_ms: u32, "time over which receivers distribute their feedback, in milliseconds";
        flags: AnnounceFlags, "flags";
        name: Name, "host name of the source, or name of the content; at most 63 bytes";
        options: Name, "options of the scheme that differ from its preset; at most 63 bytes";
        signer: Bits32, "for signed content: fingerprint of the source's public key; 0: not signed";
        to_hosts: RareName, "patterns of the host names of the receivers that take part, separated by commas; `*` stands for any characters. Nothing: all receivers; at most 63 bytes";
        series: RareSeries, "place of the session in a series of sessions: random number of the series (8 bytes), then the number of the session, from 1 (8 bytes)";
        dry_run: RareLength, "for a dry run: length of the object stream of the session that would follow; this session carries only its manifest";
        signature: Option<[u8; 64]>, "for signed content: the source's signature over all values that relays may not change";
    }
}

body! {
    Status = 4 "status" "source to all, at intervals: progress of the session";
    fields {
        next_seq: Counter, "number of the next packet of layer 0, unwrapped; below 2^62";
        complete_to: u32, "all source symbols of the blocks below this number have been sent once";
        blocks: U32OrNone, "number of blocks; 2^32 - 1: not known yet";
        spread_ms: u32, "time over which receivers distribute their feedback, in milliseconds";
        members: u32, "number of members known to the source";
        flags: StatusFlags, "flags";
        rtt_max_us: u32, "largest round-trip time, in microseconds";
        root: Option<[u8; 32]>, "root hash of the object stream, as soon as it is known";
        proof: Option<[u8; 16]>, "for sealed sessions: proof that a member sent root and number of blocks";
        root_signature: Option<[u8; 64]>, "for signed content: the source's signature over the number of blocks, the number of withdrawn files and the root";
        withdrawn: WithdrawnHead, "present as soon as files are withdrawn: number of withdrawn files (4 bytes); index of the first entry of `withdrawals` (4 bytes); for signed content the signature of this index and of `withdrawals`, otherwise zeros (64 bytes)";
    }
    lists {
        upper_seqs: [Counter as upper_seq "unwrapped; below 2^62"], "numbers of the next packets of layers 1, 2 and so on";
        scheduled: [Scheduled], "scheduled repairs";
        confirmed: [ReceiverId as confirmed_id "ID of a receiver"], "receivers that the source knows to be complete";
        welcomed: [Welcome], "answers to receivers that asked whether the session continues";
        lagging: [ReceiverId as lagging_id "ID of a receiver"], "receivers that delay the other receivers";
        dropped: [ReceiverId as dropped_id "ID of a receiver"], "receivers for which the source no longer waits";
        withdrawals: [Withdrawn], "files that changed or could not be read during the transmission";
    }
}

group! {
    Welcome {
        id as "welcomed_id": ReceiverId, "ID of a receiver";
        nonce as "welcomed_nonce": u16, "random number of this receiver";
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
        entry as "withdrawn_entry": u32, "index of an entry of the manifest";
        first_block as "withdrawn_first_block": u32, "first block that contains bytes of the entry";
        last_block as "withdrawn_last_block": u32, "last block that contains bytes of the entry";
    }
}

group! {
    Scheduled {
        block as "scheduled_block": u32, "number of the block";
        symbols as "scheduled_symbols": u16, "number of symbols that will still be sent";
    }
}

body! {
    Request = 5 "request" "receiver to source: a negative acknowledgement with numbers of missing symbols";
    before { from: ReceiverId }
    fields {
        echo: Echo, "packet of the source that is answered";
    }
    lists {
        needs: [Need], "missing symbols";
        held: [SymbolMap], "for relays: received symbols of missing blocks";
    }
}

group! {
    SymbolMap {
        block as "held_block": u32, "number of the block";
        symbols as "held_symbols": [u8; 32], "bit k % 8 of byte k / 8: source symbol k was received";
    }
}

group! {
    Need {
        first: u32, "first block";
        run: u16, "number of consecutive blocks";
        symbols: u16, "number of symbols missing in each block; 0: a page with the hashes of these blocks";
        wrong: bool, "1: received symbols of these blocks could not be verified";
    }
}

body! {
    Member = 6 "member" "receiver to source: identity and progress";
    before { from: ReceiverId }
    fields {
        nonce: u16, "random number, drawn at the start of the receiver";
        state: MemberState, "state of the receiver";
        reason: u8, "reason, as a code of the transport; 0: no reason";
        receivers: u32, "number of receivers represented by the sender: 1 for a receiver, all receivers downstream for a relay";
        done: u32, "number of these receivers that have everything";
        verified_bytes: u64, "number of verified bytes";
        resumed_bytes: u64, "number of these bytes verified in an earlier run and not sent again";
        blocks_missing: u32, "number of missing blocks; of a relay: the most that one receiver behind it lacks";
        rate: BitRate, "received rate, in bit/s; not negative";
        loss: Fraction, "smoothed loss fraction, 0 to 1";
        dropped_local: u32, "number of datagrams dropped by the receiver's own host";
        unwritten_bytes: u64, "number of bytes that wait for the receiver's disk or for the reader of its output";
        activity: Activity, "activity of the receiver's host";
        percent: u8, "progress of the activity, in percent";
        echo: Echo, "packet of the source that is answered";
        host: Name, "name of the receiver's host; at most 63 bytes";
        why: Words, "description of the failure; at most 250 bytes";
    }
}

body! {
    Window = 7 "window" "receiver to source: first packet number beyond this receiver's buffers";
    before { from: ReceiverId }
    fields {
        echo: Echo, "packet of the source that is answered";
        limit: Seq, "unwrapped packet number of layer 0: packets below it fit into the buffers; 2^62 - 1: no limit";
    }
}

body! {
    Hashes = 8 "hashes" "source to all: a page with the hashes of consecutive blocks, and a signature of this page";
    fields {
        first_block: u32, "first block of the page";
        signature: [u8; 64], "the source's signature over the page and its context";
    }
    lists {
        hashes: [[u8; 32] as hash "BLAKE3 hash of a block's data"], "hash of each block";
    }
}

body! {
    Refusal = 9 "refusal" "receiver to source: reason for not following this session; sealed if the receiver has the key of the session";
    before { from: ReceiverId }
    fields {
        reason: RefusalReason, "reason";
        key: KeyId, "first of the receiver's keys; 0: the receiver has no key";
        host: Name, "name of the receiver's host; at most 63 bytes";
        source: Name, "for busy: source of the followed session; at most 63 bytes";
        content: Name, "for busy: content of the followed session; at most 63 bytes";
        seconds: U32OrNone, "for busy: estimated seconds until the followed session ends; 0: this receiver has its complete content; 2^32 - 1: not known";
    }
}

body! {
    Attach = 10 "attach" "receiver to a possible parent: request for service by unicast; never sealed";
    before { from: ReceiverId }
    fields {
        token: [u8; 16], "token received from the parent; zeros before the first token";
        invitation: u64, "number of the invitation that is answered; 0: no invitation";
        relay: bool, "1: the receiver is a relay";
        host: Name, "name of the receiver's host; at most 63 bytes";
    }
}

body! {
    Token = 11 "token" "answer to attach: a value that the receiver repeats, which proves its address; never sealed";
    fields {
        to: ReceiverId, "ID of the receiver that sent attach";
        token: [u8; 16], "value to be repeated in the next attach";
        agent: bool, "1: the sender is an agent (MTCP), whose children also receive the source's packets";
    }
}

body! {
    Order = 14 "order" "agent to one of its children (MTCP): a change of groups, a query, or an answer";
    fields {
        to: ReceiverId, "ID of the child";
        action: OrderAction, "action";
        number: u32, "for join and poll: number of the order, which the answer repeats; for serves: 1: complete receivers are reported by number; for heard: the downstream receiver that is known to be complete; 0: the child itself";
        group: u8, "for join: 0: the child receives the source's packets; 1: the child receives only the agent's packets";
        from: Seq, "for join: first packet in this group, unwrapped";
        nonce: u16, "for serves and heard: nonce of the answered packet";
    }
}

body! {
    Invite = 12 "invite" "source to a host that waits for an invitation: request to attach; never sealed";
    fields {
        number: u64, "random number for this host; not 0";
        name: Name, "host name of the source, or name of the content; at most 63 bytes";
    }
}

body! {
    Tree = 13 "tree" "relay to its parent: the relays downstream of it, each before the relays that are downstream of that relay";
    before { from: ReceiverId }
    fields {
        first: u16, "number of relays in the list before this part";
        count: u16, "number of relays in the whole list";
    }
    lists {
        relays: [TreeNode], "downstream relays";
    }
}

group! {
    TreeNode {
        level as "relay_level": u8, "number of relays between this relay and the relay that sent the packet; below 16";
        receivers as "relay_receivers": u32, "number of receivers below this relay";
        done as "relay_done": u32, "number of these receivers that have everything";
        rate as "relay_rate": BitRate, "received rate, in bit/s; not negative";
        address as "relay_address": SocketAddr, "address and port of the relay";
        host as "relay_host": [u8; 24], "name of the relay, in UTF-8, followed by zeros";
    }
}

body! {
    Verified = 15 "verified" "relay to its parent: downstream receivers that have everything";
    before { from: ReceiverId }
    fields {}
    lists {
        receivers: [ReceiverId as verified_id "ID of a receiver"], "receivers that have everything";
    }
}

body! {
    Receipt = 16 "receipt" "receiver to source, forwarded by relays: signed statement that the receiver has verified everything";
    before { from: ReceiverId }
    fields {
        nonce: u16, "number that the sender gives this packet; the answer repeats it in welcomed_nonce";
        receiver: ReceiverId, "ID of the receiver that signed";
        unix_secs: u64, "time of signing by the clock of the receiver's host, in seconds since 1970";
        root: [u8; 32], "root hash of the object stream";
        key: [u8; 32], "the receiver's public key (Ed25519)";
        signature: [u8; 64], "the receiver's signature over all other fields except nonce, and over the session";
        comparison: RareComparison, "for a dry run, with zeros as key and signature: numbers of new, changed and deleted files (4 bytes each), held bytes of content (8), needed bytes of the object stream (8). Then 256 parts of its blocks follow: missing symbols in units of 1/255, rounded up (1), and their hash (1)";
        host: Name, "name of the receiver's host; at most 63 bytes";
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
