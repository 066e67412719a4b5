//! Encoding of messages. If the format cannot carry a value, the encoder refuses it and leaves the buffer unchanged.

use crate::bodies::{Body, DATA_FIXED, DataFields, Fit, RATE_LEN};
use crate::codec::{Codec, Rounded, SEQ_LIMIT, U24, at_most};
use crate::error::EncodeError;
use crate::field::{Layout, fields_of, len_of, max_without_lists};
use crate::message::{
    Announce, DataPacket, Hashes, Kind, Member, Message, Need, Request, Status, SymbolMap, Tree, TreeNode,
    Verified, Window,
};
use crate::parse::{CRC_LEN, HEADER_LEN, LAYERS, MAGIC, RATE, RELAYED, SEALED, VERSION, checksum};
use crate::receipt::{Comparison, Receipt};
use crate::seal::{BOOT_LEN, KEY_ID_LEN, NONCE_LEN, TAG_LEN};
use crate::{marks, reports};
use faircast_core::packet::{Data, Layer, Mark, Payload, ReceiverId, ReportContent, SessionId};

/// Length of the sender's id before a message of a receiver, in bytes.
pub(crate) const ID_LEN: usize = 4;
/// Maximum size of receivers' datagrams, in bytes: it fits every path that carries IPv6.
pub const FEEDBACK_LIMIT: usize = 1232;
/// Protection of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Not encrypted, with a CRC.
    Open,
    /// Sealed under the group's key.
    Sealed,
}

/// Returns the number of bytes around the symbol of a data packet that states a rate; a packet without a rate has two bytes
/// fewer. All packets with the same kind of mark have the same size, as segmentation offload requires. In a sealed packet, 16 of
/// these bytes follow the symbol; a sealed packet without a symbol does not have these 16 bytes.
pub const fn data_header_len(mark: &Mark, form: Form) -> usize {
    overhead(Kind::Data, form) + DATA_FIXED + RATE_LEN + marks::len(mark)
}

/// Maximum of [`data_header_len`].
pub const MAX_DATA_HEADER: usize =
    overhead(Kind::Data, Form::Sealed) + DATA_FIXED + RATE_LEN + marks::MAX_LEN;

/// Maximum length of an announcement, in bytes. The limit of a source's datagrams must be at least this.
pub const MAX_ANNOUNCE: usize = max_overhead(Kind::Announce, Announce::LAYOUT) + RELAYED_LEN;
/// Maximum length of a status without the entries of its lists, in bytes.
pub const MAX_AROUND_STATUS: usize = max_overhead(Kind::Status, Status::LAYOUT) + RELAYED_LEN;
/// Maximum number of entries of a request in a datagram of [`FEEDBACK_LIMIT`] bytes.
pub const MAX_NEEDS: usize = max_needs(FEEDBACK_LIMIT);

/// Maximum length of a [`Member`], in bytes.
pub const MAX_MEMBER: usize = max_overhead(Kind::Member, Member::LAYOUT);
/// Maximum length of a receipt, in bytes.
pub const MAX_RECEIPT: usize = max_overhead(Kind::Receipt, Receipt::LAYOUT) + 1 + Comparison::LEN;

/// Returns the number of entries of a request that fit a datagram of `limit` bytes.
pub const fn max_needs(limit: usize) -> usize {
    room_for_list(limit, Kind::Request, Request::LAYOUT) / len_of(fields_of(Need::SHAPE))
}

/// Returns the number of entries of a request that fit a datagram of `limit` bytes, if each entry has a map of the cached
/// symbols.
pub const fn max_needs_with_maps(limit: usize) -> usize {
    let entry = len_of(fields_of(Need::SHAPE)) + len_of(fields_of(SymbolMap::SHAPE));
    room_for_list(limit, Kind::Request, Request::LAYOUT) / entry
}

/// Returns the number of relays of a tree that fit a datagram of `limit` bytes.
pub const fn max_relays(limit: usize) -> usize {
    room_for_list(limit, Kind::Tree, Tree::LAYOUT) / len_of(fields_of(TreeNode::SHAPE))
}

/// Returns the number of complete receivers that fit a datagram of `limit` bytes.
pub const fn max_verified(limit: usize) -> usize {
    room_for_list(limit, Kind::Verified, Verified::LAYOUT) / ID_LEN
}

/// Returns the number of bytes for list entries in an upstream datagram of `limit` bytes, sent by a receiver or relay.
const fn room_for_list(limit: usize, kind: Kind, layout: Layout) -> usize {
    let limit = if limit < FEEDBACK_LIMIT { limit } else { FEEDBACK_LIMIT };
    limit.saturating_sub(max_overhead(kind, layout))
}

/// Bytes that a relay adds to a source's packet in a sealed session: the relay's id and boot number.
const RELAYED_LEN: usize = ID_LEN + BOOT_LEN;

/// Returns the number of hashes in a page that fits a datagram of `limit` bytes at the source and at every relay that forwards
/// it. A page that a relay had to cut would be useless.
pub const fn max_hashes(limit: usize) -> usize {
    let hash = match <[u8; 32] as Codec>::SHAPE.fixed_len() {
        Some(len) => len,
        None => panic!("a hash has always the same length"),
    };
    limit.saturating_sub(max_overhead(Kind::Hashes, Hashes::LAYOUT) + RELAYED_LEN) / hash
}

const fn max_overhead(kind: Kind, layout: Layout) -> usize {
    let (open, sealed) = (overhead(kind, Form::Open), overhead(kind, Form::Sealed));
    (if sealed > open { sealed } else { open }) + max_without_lists(layout.fields)
}

/// Bytes of the headers of IPv4 and UDP.
pub const IPV4_HEADERS: usize = 28;
/// Bytes of the headers of IPv6 and UDP.
pub const IPV6_HEADERS: usize = 48;

const _: () = assert!(
    Announce::MIN_PACKET as usize == IPV4_HEADERS + overhead(Kind::Data, Form::Open) + DATA_FIXED,
    "the smallest packet is another one"
);

const _: () = assert!(
    overhead(Kind::Report, Form::Sealed) + 1 + reports::MAX_LEN <= FEEDBACK_LIMIT
        && max_overhead(Kind::Member, Member::LAYOUT) <= FEEDBACK_LIMIT
        && max_overhead(Kind::Window, Window::LAYOUT) <= FEEDBACK_LIMIT
        && MAX_RECEIPT <= FEEDBACK_LIMIT,
    "a message is longer than what receivers may send"
);

/// Returns the number of bytes around a body: header, CRC or seal, and sender.
pub(crate) const fn overhead(kind: Kind, form: Form) -> usize {
    match (form, kind) {
        (
            Form::Open,
            Kind::Data
            | Kind::Announce
            | Kind::Status
            | Kind::Hashes
            | Kind::Token
            | Kind::Invite
            | Kind::Order,
        ) => HEADER_LEN + CRC_LEN,
        (Form::Open, _) => HEADER_LEN + CRC_LEN + ID_LEN,
        (Form::Sealed, Kind::Data) => HEADER_LEN + TAG_LEN + TAG_LEN,
        (Form::Sealed, Kind::Status | Kind::Hashes) => HEADER_LEN + TAG_LEN,
        (Form::Sealed, Kind::Announce) => HEADER_LEN + KEY_ID_LEN + NONCE_LEN + TAG_LEN,
        (Form::Sealed, _) => HEADER_LEN + ID_LEN + BOOT_LEN + TAG_LEN,
    }
}

/// Appends a data packet that is not sealed.
///
/// # Errors
/// When a number does not fit its field.
pub fn encode_data(
    out: &mut Vec<u8>,
    session: SessionId,
    packet: &DataPacket<'_>,
) -> Result<(), EncodeError> {
    undo_on_error(out, |out, start| {
        out.reserve(data_header_len(&packet.data.mark, Form::Open) + packet.payload.len());
        put_data_header(out, session, 0, packet)?;
        out.extend_from_slice(&[0; CRC_LEN]);
        put_data_fields(out, packet)?;
        out.extend_from_slice(packet.payload);
        patch_checksum(out, start);
        Ok(())
    })
}

/// Appends a message that is not sealed, in at most `limit` bytes. Lists are cut to fit. `seq` has no effect on a data packet,
/// which has its own number.
///
/// # Errors
/// When a number does not fit its field, or the message without its lists does not fit `limit`.
pub fn encode(
    out: &mut Vec<u8>,
    session: SessionId,
    seq: u32,
    message: &Message<'_>,
    limit: usize,
) -> Result<Fit, EncodeError> {
    undo_on_error(out, |out, start| {
        if let Message::Data(packet) = message {
            encode_data(out, session, packet)?;
            return check_len(out.len() - start, limit).map(|()| Fit::default());
        }
        put_header(out, (message.kind(), 0), (0, message.layer()), session, seq)?;
        out.extend_from_slice(&[0; CRC_LEN]);
        if let Some(from) = message.from() {
            ReceiverId::put(out, "from", &from)?;
        }
        let fit = put_body(out, message, start + limit)?;
        patch_checksum(out, start);
        Ok(fit)
    })
}

/// Runs `put`; on failure, removes the bytes that it appended.
pub(crate) fn undo_on_error<T>(
    out: &mut Vec<u8>,
    put: impl FnOnce(&mut Vec<u8>, usize) -> Result<T, EncodeError>,
) -> Result<T, EncodeError> {
    let start = out.len();
    put(out, start).inspect_err(|_| out.truncate(start))
}

fn patch_checksum(out: &mut [u8], start: usize) {
    let crc = checksum(&out[start..]);
    out[start + HEADER_LEN..start + HEADER_LEN + CRC_LEN].copy_from_slice(&crc.to_be_bytes());
}

fn check_len(need: usize, limit: usize) -> Result<(), EncodeError> {
    if need > limit { Err(EncodeError::TooLong { need, limit }) } else { Ok(()) }
}

/// Appends a data packet's header. If a relay writes the packet, the header does not name the relay: the source address
/// identifies it. Forwarded packets therefore have the size of the source's packets.
pub(crate) fn put_data_header(
    out: &mut Vec<u8>,
    session: SessionId,
    flags: u8,
    packet: &DataPacket<'_>,
) -> Result<(), EncodeError> {
    let mark = marks::number(&packet.data.mark);
    let rate = if stated_rate(&packet.data) { RATE } else { 0 };
    let seq = packet.data.seq.0 as u32;
    put_header(out, (Kind::Data, rate | flags), (mark, packet.layer), session, seq)
}

pub(crate) fn put_header(
    out: &mut Vec<u8>,
    (kind, flags): (Kind, u8),
    (mark, layer): (u8, Layer),
    session: SessionId,
    seq: u32,
) -> Result<(), EncodeError> {
    at_most("layer", layer.0.into(), LAYERS as u64 - 1)?;
    out.extend_from_slice(&[MAGIC, VERSION << 4 | flags, kind as u8, mark << 4 | layer.0]);
    out.extend_from_slice(&session.0.to_be_bytes());
    out.extend_from_slice(&seq.to_be_bytes());
    Ok(())
}

/// Returns the flags of a sealed packet that is written by this relay, or by the source if `relay` is `None`.
pub(crate) const fn sealed_by(relay: Option<(ReceiverId, u64)>) -> u8 {
    if relay.is_some() { SEALED | RELAYED } else { SEALED }
}

/// Writes the sender unless it is the source.
pub(crate) fn put_sender(out: &mut Vec<u8>, sender: Option<(ReceiverId, u64)>) -> Result<(), EncodeError> {
    if let Some((id, boot)) = sender {
        ReceiverId::put(out, "from", &id)?;
        out.extend_from_slice(&boot.to_be_bytes());
    }
    Ok(())
}

fn stated_rate(data: &Data) -> bool {
    data.rate != 0.0
}

/// Writes a data packet's fields, its rate and its mark.
pub(crate) fn put_data_fields(out: &mut Vec<u8>, packet: &DataPacket<'_>) -> Result<(), EncodeError> {
    let data = &packet.data;
    at_most("seq", data.seq.0, SEQ_LIMIT - 1)?;
    if data.payload == Payload::NONE {
        at_most("the length of data without a symbol", packet.payload.len() as u64, 0)?;
    }
    let (block, symbol) = match data.payload {
        Payload::NONE => (u32::MAX, U24::MAX),
        Payload { block, symbol } => {
            at_most("block", block.into(), u64::from(u32::MAX) - 1)?;
            (block, symbol)
        }
    };
    let fields = DataFields {
        sent_at: (data.sent_at.as_nanos() / 1_000) as u32, // wraps; the receiver unwraps it
        block,
        symbol,
        symbols: packet.symbols,
        flags: marks::flags_byte(&data.mark, data.flags, data.signal)?,
    };
    DataFields::put(out, "data", &fields)?;
    if stated_rate(data) {
        Rounded::put(out, "rate", &data.rate)?;
    }
    marks::put(out, &data.mark)
}

/// Writes the content of a report: its number and its fields.
pub(crate) fn put_content(out: &mut Vec<u8>, content: &ReportContent) -> Result<(), EncodeError> {
    out.reserve(1 + reports::len(content));
    out.push(reports::number(content));
    reports::put(out, content)
}

/// Writes the body of any message except data. `out` ends at `end` at the latest.
pub(crate) fn put_body(out: &mut Vec<u8>, message: &Message<'_>, end: usize) -> Result<Fit, EncodeError> {
    let body = out.len();
    let fit = match message {
        Message::Data(_) => return Err(EncodeError::NotMine(Kind::Data)),
        Message::Report(report) => put_content(out, &report.content).map(|()| Fit::default()),
        Message::Announce(announce) => announce.put(out, end),
        Message::Status(status) => status.put(out, end),
        Message::Request(request) => request.put(out, end),
        Message::Member(member) => member.put(out, end),
        Message::Window(window) => window.put(out, end),
        Message::Hashes(hashes) => hashes.put(out, end),
        Message::Refusal(refusal) => refusal.put(out, end),
        Message::Attach(attach) => attach.put(out, end),
        Message::Token(token) => token.put(out, end),
        Message::Invite(invite) => invite.put(out, end),
        Message::Tree(tree) => tree.put(out, end),
        Message::Verified(verified) => verified.put(out, end),
        Message::Order(order) => order.put(out, end),
        Message::Receipt(receipt) => receipt.put(out, end),
    }?;
    check_len(out.len() - body, end.saturating_sub(body))?;
    Ok(fit)
}
