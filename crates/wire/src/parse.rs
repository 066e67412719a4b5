//! Conversion of bytes to messages.
//!
//! ```text
//!  0               1               2               3
//!  0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//! +---------------+-------+-------+-------+-+-+-+-+---------------+
//! |  magic 0xfc   |version|L|R|O|S|     kind      | mark  | layer |
//! +---------------+-------+-------+-------+-+-+-+-+---------------+
//! |                            session                            |
//! +---------------------------------------------------------------+
//! |        seq: low half of the sender's counter (layer's)        |
//! +---------------------------------------------------------------+
//! |    CRC-32C of all, this field zero (absent when S is set)     |
//! +---------------------------------------------------------------+
//! S: sealed   O: options come before the body   R: the body has a rate   L: a relay wrote it (sealed packets only)
//! ```
//!
//! Numbers are big endian. `docs/wire.md` describes every field. Both `peek` and `parse` are total: for any bytes they return a
//! result or an error.

use crate::bodies::{Body, DataFields};
use crate::codec::{Codec, Rounded, SEQ_LIMIT, U24};
use crate::error::ParseError;
pub use crate::message::VERSION;
use crate::message::{
    Announce, Attach, DataPacket, Hashes, Header, Invite, Kind, Member, Message, Order, Refusal, Request,
    Status, Token, Tree, Verified, Window,
};
use crate::reader::Reader;
use crate::receipt::Receipt;
use crate::{marks, reports};
use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};
use faircast_core::packet::{Data, Flags, Layer, Mark, Payload, ReceiverId, Report, Seq, SessionId, Signal};
use faircast_core::time::Time;

/// First byte of every packet.
pub const MAGIC: u8 = 0xfc;
/// Bytes of the fixed header, without the CRC.
pub const HEADER_LEN: usize = 12;
/// Number of layers; layer numbers are below it.
pub(crate) const LAYERS: usize = 16;
/// Bytes of the CRC.
pub const CRC_LEN: usize = 4;
/// Bit of option types that must be understood. A packet with an unknown option of such a type is refused.
pub const MUST_UNDERSTAND: u8 = 0x80;
/// Option for padding.
pub const OPTION_PAD: u8 = 0;

pub(crate) const SEALED: u8 = 1;
pub(crate) const OPTIONS: u8 = 1 << 1;
pub(crate) const RATE: u8 = 1 << 2;
pub(crate) const RELAYED: u8 = 1 << 3;

/// The newest known numbers, from which the 32-bit numbers of a data packet are unwrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Newest {
    /// Newest number of the packet's layer.
    pub seq: Seq,
    /// Newest time of sending.
    pub sent_at: Time,
}

impl Newest {
    /// Updates the numbers from a data packet.
    pub fn learn(&mut self, data: &Data) {
        self.seq = self.seq.max(data.seq);
        self.sent_at = self.sent_at.max(data.sent_at);
    }
}

impl DataPacket<'_> {
    /// A packet without a symbol, to be filled.
    pub const EMPTY: DataPacket<'static> = DataPacket {
        data: Data {
            seq: Seq(0),
            sent_at: Time::ZERO,
            rate: 0.0,
            payload: Payload::NONE,
            flags: Flags(0),
            signal: Signal::None,
            mark: Mark::None,
        },
        layer: Layer(0),
        symbols: 0,
        payload: &[],
    };
}

/// Reads the fixed header only.
///
/// # Errors
/// When there are fewer than 12 bytes, or the bytes are not a header of this version.
pub fn peek(bytes: &[u8]) -> Result<Header, ParseError> {
    Fixed::read(bytes).map(|fixed| fixed.header)
}

/// Reads a packet that is not sealed.
///
/// # Errors
/// When the bytes are not exactly one intact packet; [`ParseError::Sealed`] when it is sealed.
pub fn parse<'a>(bytes: &'a [u8], newest: &Newest) -> Result<(Header, Message<'a>), ParseError> {
    let fixed = Fixed::read(bytes)?;
    let found = crc_field(&fixed, bytes)?;
    let mut reader = check_open(bytes, found, checksum_around_field(bytes))?;
    let from =
        if fixed.header.kind.is_feedback() { Some(ReceiverId::read(&mut reader, "from")?) } else { None };
    Ok((fixed.header, read_body(&fixed, from, reader, newest)?))
}

/// Reads a data packet that is not sealed into `packet`.
pub(crate) fn parse_data<'a>(
    fixed: &Fixed,
    bytes: &'a mut [u8],
    newest: &Newest,
    packet: &mut DataPacket<'a>,
) -> Result<(), ParseError> {
    let found = crc_field(fixed, bytes)?;
    let field = HEADER_LEN..HEADER_LEN + CRC_LEN;
    bytes[field.clone()].fill(0);
    let computed = checksum(bytes);
    bytes[field].copy_from_slice(&found.to_be_bytes());
    read_data(fixed, check_open(bytes, found, computed)?, newest, packet)
}

/// Returns the checksum that a packet without a seal states.
fn crc_field(fixed: &Fixed, bytes: &[u8]) -> Result<u32, ParseError> {
    if fixed.header.sealed {
        return Err(ParseError::Sealed);
    }
    let Some(found) = bytes[HEADER_LEN..].first_chunk::<CRC_LEN>() else {
        return Err(ParseError::Truncated { field: "crc", need: HEADER_LEN + CRC_LEN, have: bytes.len() });
    };
    Ok(u32::from_be_bytes(*found))
}

/// Returns the part after the checksum of an intact packet that is not sealed.
fn check_open(bytes: &[u8], found: u32, computed: u32) -> Result<Reader<'_>, ParseError> {
    if found != computed {
        return Err(ParseError::Damaged { found, computed });
    }
    Ok(Reader { bytes, at: HEADER_LEN + CRC_LEN })
}

/// Returns the CRC-32C of a datagram whose CRC field holds zeros.
pub(crate) fn checksum(datagram: &[u8]) -> u32 {
    crc32_iscsi(datagram)
}

/// Returns the CRC-32C of a datagram of at least 16 bytes. The bytes of the CRC field count as zeros.
fn checksum_around_field(datagram: &[u8]) -> u32 {
    let (head, rest) = datagram.split_at(HEADER_LEN);
    let mut start = [0; HEADER_LEN + CRC_LEN];
    start[..HEADER_LEN].copy_from_slice(head);
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&start);
    digest.update(&rest[CRC_LEN..]);
    digest.finalize() as u32 // a 32-bit algorithm
}

/// The fixed header with the parts that only the parser needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed {
    pub(crate) header: Header,
    flags: u8,
    mark: u8,
}

impl Fixed {
    pub(crate) fn read(bytes: &[u8]) -> Result<Fixed, ParseError> {
        let Some(&[magic, version_flags, kind, mark_layer, s0, s1, s2, s3, q0, q1, q2, q3]) =
            bytes.first_chunk::<HEADER_LEN>()
        else {
            return Err(ParseError::Truncated { field: "header", need: HEADER_LEN, have: bytes.len() });
        };
        if magic != MAGIC {
            return Err(ParseError::NotOurs(magic));
        }
        if version_flags >> 4 != VERSION {
            return Err(ParseError::Version(version_flags >> 4));
        }
        let kind = Kind::from_wire(kind).ok_or(ParseError::UnknownKind(kind))?;
        let (flags, mark, layer) = (version_flags & 15, mark_layer >> 4, mark_layer & 15);
        let is_data = kind == Kind::Data;
        let no_relays = flags & RELAYED != 0 && (flags & SEALED == 0 || kind.is_feedback());
        if no_relays || (!is_data && flags & RATE != 0) {
            return Err(ParseError::BadValue { field: "flags", value: flags.into() });
        }
        if mark != 0 && !is_data {
            return Err(ParseError::BadValue { field: "mark", value: mark.into() });
        }
        if layer != 0 && !is_data && kind != Kind::Report {
            return Err(ParseError::BadValue { field: "layer", value: layer.into() });
        }
        let header = Header {
            session: SessionId(u32::from_be_bytes([s0, s1, s2, s3])),
            seq: u32::from_be_bytes([q0, q1, q2, q3]),
            sealed: flags & SEALED != 0,
            kind,
            layer: Layer(layer),
        };
        Ok(Fixed { header, flags, mark })
    }

    /// Whether options come before the body.
    pub(crate) const fn has_options(&self) -> bool {
        self.flags & OPTIONS != 0
    }

    /// Whether a data packet has a rate.
    pub(crate) const fn has_rate(&self) -> bool {
        self.flags & RATE != 0
    }

    /// Whether a relay wrote the packet.
    pub(crate) const fn is_relayed(&self) -> bool {
        self.flags & RELAYED != 0
    }
}

/// Reads the part after the header, the CRC or the seal's fields, and the sender's id.
pub(crate) fn read_body<'a>(
    fixed: &Fixed,
    from: Option<ReceiverId>,
    mut reader: Reader<'a>,
    newest: &Newest,
) -> Result<Message<'a>, ParseError> {
    if fixed.header.kind == Kind::Data {
        let mut packet = DataPacket::EMPTY;
        return read_data(fixed, reader, newest, &mut packet).map(|()| Message::Data(packet));
    }
    skip_options(fixed, &mut reader)?;
    let message = match (fixed.header.kind, from) {
        (Kind::Announce, _) => Message::Announce(Announce::read(&mut reader, ())?),
        (Kind::Status, _) => Message::Status(Status::read(&mut reader, ())?),
        (Kind::Hashes, _) => Message::Hashes(Hashes::read(&mut reader, ())?),
        (Kind::Report, Some(from)) => {
            let content = reports::read(u8::read(&mut reader, "content")?, &mut reader)?;
            Message::Report(Report { from, layer: fixed.header.layer, content })
        }
        (Kind::Request, Some(from)) => Message::Request(Request::read(&mut reader, (from,))?),
        (Kind::Member, Some(from)) => Message::Member(Member::read(&mut reader, (from,))?),
        (Kind::Window, Some(from)) => Message::Window(Window::read(&mut reader, (from,))?),
        (Kind::Attach, Some(from)) => Message::Attach(Attach::read(&mut reader, (from,))?),
        (Kind::Token, _) => Message::Token(Token::read(&mut reader, ())?),
        (Kind::Invite, _) => Message::Invite(Invite::read(&mut reader, ())?),
        (Kind::Order, _) => Message::Order(Order::read(&mut reader, ())?),
        (Kind::Tree, Some(from)) => Message::Tree(Tree::read(&mut reader, (from,))?),
        (Kind::Verified, Some(from)) => Message::Verified(Verified::read(&mut reader, (from,))?),
        (Kind::Receipt, Some(from)) => Message::Receipt(Receipt::read(&mut reader, (from,))?),
        (Kind::Refusal, Some(from)) => Message::Refusal(Refusal::read(&mut reader, (from,))?),
        (Kind::Data, _) | (_, None) => return Err(ParseError::BadValue { field: "from", value: 0 }),
    };
    match reader.left() {
        0 => Ok(message),
        extra => Err(ParseError::Trailing(extra)),
    }
}

/// Reads a data packet's body: fields, mark and symbol.
fn read_data<'a>(
    fixed: &Fixed,
    mut reader: Reader<'a>,
    newest: &Newest,
    packet: &mut DataPacket<'a>,
) -> Result<(), ParseError> {
    read_data_fields(fixed, &mut reader, newest, packet)?;
    packet.payload = reader.rest();
    match packet.data.payload {
        Payload::NONE if !packet.payload.is_empty() => Err(ParseError::Trailing(packet.payload.len())),
        _ => Ok(()),
    }
}

/// Reads a data packet's options, fields and mark into `packet`, without the symbol. The packet is filled in place: each copy of
/// fields that were written one by one takes longer than reading them.
pub(crate) fn read_data_fields(
    fixed: &Fixed,
    r: &mut Reader<'_>,
    newest: &Newest,
    packet: &mut DataPacket<'_>,
) -> Result<(), ParseError> {
    skip_options(fixed, r)?;
    let DataFields { sent_at, block, symbol, symbols, flags } = DataFields::read(r, "data")?;
    let data = &mut packet.data;
    data.payload = match (block, symbol) {
        (u32::MAX, U24::MAX) => Payload::NONE,
        (u32::MAX, _) => return Err(ParseError::BadValue { field: "symbol", value: symbol.into() }),
        _ => Payload { block, symbol },
    };
    data.sent_at = unwrap_micros(newest.sent_at, sent_at);
    (data.flags, data.signal) = marks::flags_of(fixed.mark, flags)?;
    data.rate = if fixed.has_rate() { Rounded::read(r, "rate")? } else { 0.0 };
    marks::read_into(fixed.mark, r, &mut data.mark)?;
    data.seq = Seq::unwrap(Seq(newest.seq.0.min(SEQ_LIMIT)), fixed.header.seq);
    (packet.layer, packet.symbols) = (fixed.header.layer, symbols);
    Ok(())
}

/// Unwraps a 32-bit number of microseconds to the time nearest to the newest known one.
fn unwrap_micros(newest: Time, wire: u32) -> Time {
    let micros = Seq::unwrap(Seq(newest.as_nanos() / 1_000), wire).0;
    Time::from_nanos(micros.saturating_mul(1_000))
}

/// Skips the options, if the packet has any: type, length and value of each.
fn skip_options(fixed: &Fixed, r: &mut Reader<'_>) -> Result<(), ParseError> {
    if !fixed.has_options() {
        return Ok(());
    }
    let len = usize::from(u8::read(r, "options")?);
    let start = r.at;
    r.take("options", len)?;
    let mut options = Reader { bytes: &r.bytes[..r.at], at: start };
    while options.left() > 0 {
        let (kind, len) = (u8::read(&mut options, "option")?, u8::read(&mut options, "option")?);
        options.take("option", len.into())?;
        if kind & MUST_UNDERSTAND != 0 {
            return Err(ParseError::UnknownOption(kind));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-32C bit by bit, as RFC 3720, 12.1 defines it.
    fn bit_by_bit(bytes: &[u8]) -> u32 {
        let step = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
        !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
    }

    #[test]
    fn bitwise_checksum_matches_the_values_of_rfc_3720() {
        let rising: Vec<u8> = (0..32).collect();
        let falling: Vec<u8> = (0..32).rev().collect();
        // RFC 3720, B.4 writes these checksums with the lowest octet first.
        assert_eq!(bit_by_bit(&[0; 32]), 0x8a91_36aa);
        assert_eq!(bit_by_bit(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(bit_by_bit(&rising), 0x46dd_794e);
        assert_eq!(bit_by_bit(&falling), 0x113f_db5c);
    }

    #[test]
    fn checksums_of_all_lengths_equal_the_bitwise_checksum() {
        let bytes: Vec<u8> = (0..2_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for len in HEADER_LEN + CRC_LEN..bytes.len() {
            let mut without = bytes[..len].to_vec();
            without[HEADER_LEN..HEADER_LEN + CRC_LEN].fill(0);
            let expected = bit_by_bit(&without);
            assert_eq!((checksum_around_field(&bytes[..len]), checksum(&without)), (expected, expected));
        }
    }
}
