//! Bytes to messages.
//!
//! ```text
//!  0               1               2               3
//!  0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//! +---------------+-------+-------+-------+-+-+-+-+---------------+
//! |  magic 0xfc   |version| kind  | mark  |0|R|O|S|     layer     |
//! +---------------+-------+-------+-------+-+-+-+-+---------------+
//! |                            session                            |
//! +---------------------------------------------------------------+
//! |        seq: low half of the sender's counter (layer's)        |
//! +---------------------------------------------------------------+
//! |    CRC-32C of all, this field zero (absent when S is set)     |
//! +---------------------------------------------------------------+
//! S: sealed   O: options come before the body   R: the body has a rate
//! ```
//!
//! Numbers are big endian. `docs/wire.md` has every field. Both functions here are total: they take
//! any bytes and either return what they mean or say what is wrong.

use crate::message::{
    Announce, DataPacket, Header, Kind, Member, MemberState, Message, Name, Need, Request, Scheduled, Status,
    TransferId, Window,
};
use crc_fast::{CrcAlgorithm, Digest};
use faircast_core::half::{self, Half};
use faircast_core::packet::{
    Cause, Data, Echo, Flags, Knows, Layer, LayerStates, Mark, Payload, ReceiverId, Report, ReportContent,
    Seq, SessionId, ShortId, Signal,
};
use faircast_core::time::{Span, Time};

/// First byte of every packet.
pub const MAGIC: u8 = 0xfc;
/// Version of the format.
pub const VERSION: u8 = 1;
/// Bytes of the fixed header, without the CRC.
pub const HEADER_LEN: usize = 12;
/// Bytes of the CRC.
pub const CRC_LEN: usize = 4;
/// Counters on the wire are below this, so that sums with them cannot overflow.
pub const SEQ_LIMIT: u64 = 1 << 62;
/// Options whose type has this bit must be understood, or the packet is refused.
pub const MUST_UNDERSTAND: u8 = 0x80;
/// Option: bytes without a meaning.
pub const OPTION_PAD: u8 = 0;

pub(crate) const SEALED: u8 = 1;
pub(crate) const OPTIONS: u8 = 1 << 1;
pub(crate) const RATE: u8 = 1 << 2;
pub(crate) const RESERVED: u8 = 1 << 3;
pub(crate) const NO_SYMBOL: u32 = 0xff_ffff;
pub(crate) const NO_BLOCKS: u32 = u32::MAX;
pub(crate) const OPEN_ENDED: u64 = u64::MAX;

/// Why bytes are not a packet of ours.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ParseError {
    /// The datagram ends too early.
    #[error("the datagram has {have} bytes where at least {need} are needed")]
    Truncated {
        /// Bytes needed to read on.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// Something else was sent to this port.
    #[error("the first byte is {0:#04x} and not 0xfc: not a faircast packet")]
    NotOurs(u8),
    /// Another version of the format.
    #[error("format version {0}; this program speaks version 1: update the older end")]
    Version(u8),
    /// No such kind.
    #[error("packet kind {0} is not known")]
    UnknownKind(u8),
    /// No such mark.
    #[error("mark kind {0} is not known")]
    UnknownMark(u8),
    /// Damaged on the way.
    #[error("the CRC is {found:#010x} but the bytes give {computed:#010x}: damaged on the way")]
    Damaged {
        /// What the packet says.
        found: u32,
        /// What its bytes say.
        computed: u32,
    },
    /// A sealed packet: only a codec with the key can read on.
    #[error("the packet is sealed; open it with the group's key")]
    Sealed,
    /// An unknown option that must be understood.
    #[error("option {0:#04x} must be understood and is not: update this program")]
    UnknownOption(u8),
    /// A field's number stands for nothing.
    #[error("{field} cannot be {value}")]
    BadValue {
        /// Which field.
        field: &'static str,
        /// What it says.
        value: u64,
    },
    /// A number that cannot be a rate, a loss fraction or a level.
    #[error("{field} is not a usable number")]
    NotANumber {
        /// Which field.
        field: &'static str,
    },
    /// A text that is not UTF-8.
    #[error("{field} is not UTF-8")]
    NotUtf8 {
        /// Which field.
        field: &'static str,
    },
    /// There is more than the message.
    #[error("{0} bytes follow the end of the message")]
    Trailing(usize),
}

/// The newest numbers known, from which a data packet's 32-bit ones are unwrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Newest {
    /// Newest number of the packet's layer.
    pub seq: Seq,
    /// Newest send time.
    pub sent_at: Time,
}

impl Newest {
    /// Take a data packet's numbers in.
    pub fn learn(&mut self, data: &Data) {
        self.seq = self.seq.max(data.seq);
        self.sent_at = self.sent_at.max(data.sent_at);
    }
}

/// Read the fixed header, and nothing behind it.
///
/// # Errors
/// When there are fewer than 12 bytes, or they are not a header of this version.
pub fn peek(bytes: &[u8]) -> Result<Header, ParseError> {
    Fixed::read(bytes).map(|fixed| fixed.header)
}

/// Read a packet that is not sealed.
///
/// # Errors
/// When the bytes are not exactly one intact packet; [`ParseError::Sealed`] when it is sealed.
pub fn parse<'a>(bytes: &'a [u8], newest: &Newest) -> Result<(Header, Message<'a>), ParseError> {
    let fixed = Fixed::read(bytes)?;
    if fixed.header.sealed {
        return Err(ParseError::Sealed);
    }
    let Some(found) = bytes[HEADER_LEN..].first_chunk::<CRC_LEN>() else {
        return Err(ParseError::Truncated { need: HEADER_LEN + CRC_LEN, have: bytes.len() });
    };
    let (found, computed) = (u32::from_be_bytes(*found), checksum(bytes));
    if found != computed {
        return Err(ParseError::Damaged { found, computed });
    }
    let mut reader = Reader { bytes, at: HEADER_LEN + CRC_LEN };
    let from = if fixed.header.kind.is_feedback() { Some(reader.id("from")?) } else { None };
    Ok((fixed.header, read_body(&fixed, from, reader, newest)?))
}

/// CRC-32C of a datagram of at least 16 bytes, its CRC field taken as zero.
pub(crate) fn checksum(datagram: &[u8]) -> u32 {
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
        let Some(&[magic, version_kind, flags, layer, s0, s1, s2, s3, q0, q1, q2, q3]) =
            bytes.first_chunk::<HEADER_LEN>()
        else {
            return Err(ParseError::Truncated { need: HEADER_LEN, have: bytes.len() });
        };
        if magic != MAGIC {
            return Err(ParseError::NotOurs(magic));
        }
        if version_kind >> 4 != VERSION {
            return Err(ParseError::Version(version_kind >> 4));
        }
        let kind = Kind::from_wire(version_kind & 15).ok_or(ParseError::UnknownKind(version_kind & 15))?;
        let (mark, is_data) = (flags >> 4, kind == Kind::Data);
        if flags & RESERVED != 0 || (!is_data && (flags & RATE != 0 || mark != 0)) {
            return Err(ParseError::BadValue { field: "flags", value: flags.into() });
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
}

/// Read what follows the header, the CRC or what the seal added, and the sender's id.
pub(crate) fn read_body<'a>(
    fixed: &Fixed,
    from: Option<ReceiverId>,
    mut reader: Reader<'a>,
    newest: &Newest,
) -> Result<Message<'a>, ParseError> {
    if fixed.flags & OPTIONS != 0 {
        reader.skip_options()?;
    }
    let message = match (fixed.header.kind, from) {
        (Kind::Data, _) => return read_data(fixed, reader, newest).map(Message::Data),
        (Kind::Announce, _) => Message::Announce(read_announce(&mut reader)?),
        (Kind::Status, _) => Message::Status(read_status(&mut reader)?),
        (Kind::Report, Some(from)) => {
            let content = read_content(&mut reader)?;
            Message::Report(Report { from, layer: fixed.header.layer, content })
        }
        (Kind::Request, Some(from)) => Message::Request(read_request(from, &mut reader)?),
        (Kind::Member, Some(from)) => Message::Member(read_member(from, &mut reader)?),
        (Kind::Window, Some(from)) => {
            Message::Window(Window { from, echo: reader.echo()?, limit: reader.seq("limit")? })
        }
        (_, None) => return Err(ParseError::BadValue { field: "from", value: 0 }),
    };
    match reader.left() {
        0 => Ok(message),
        extra => Err(ParseError::Trailing(extra)),
    }
}

fn read_data<'a>(fixed: &Fixed, mut r: Reader<'a>, newest: &Newest) -> Result<DataPacket<'a>, ParseError> {
    let sent_at = unwrap_micros(newest.sent_at, r.u32()?);
    let (block, symbol, symbols) = (r.u32()?, r.u24()?, r.u16()?);
    let payload = match (block, symbol) {
        (u32::MAX, NO_SYMBOL) => Payload::NONE,
        (u32::MAX, _) => return Err(ParseError::BadValue { field: "symbol", value: symbol.into() }),
        _ => Payload { block, symbol },
    };
    let (flags, signal) = read_flags(fixed.mark, &mut r)?;
    let rate = if fixed.flags & RATE != 0 { half::decode(r.u16()?) } else { 0.0 };
    let mark = read_mark(fixed.mark, &mut r)?;
    let known = Seq(newest.seq.0.min(SEQ_LIMIT));
    let data =
        Data { seq: Seq::unwrap(known, fixed.header.seq), sent_at, rate, payload, flags, signal, mark };
    Ok(DataPacket { data, layer: fixed.header.layer, symbols, payload: r.rest() })
}

/// The byte of flags, and the signal that packets with such a mark have in it.
pub(crate) fn read_flags(mark: u8, r: &mut Reader<'_>) -> Result<(Flags, Signal), ParseError> {
    let byte = r.u8()?;
    let signal = match (mark, byte & !Flags::ALL.0) {
        (_, 0) => Signal::None,
        (1, 64) => Signal::Control,
        (4, 8) => Signal::Burst,
        (4, 24) => Signal::SyncPoint,
        (5, 8) => Signal::Gains,
        (5, 16) => Signal::Gives,
        _ => return Err(ParseError::BadValue { field: "flags", value: byte.into() }),
    };
    Ok((Flags(byte & Flags::ALL.0), signal))
}

/// The fields of a mark of this number.
pub(crate) fn read_mark(number: u8, r: &mut Reader<'_>) -> Result<Mark, ParseError> {
    Ok(match number {
        0 => Mark::None,
        1 => Mark::Representative {
            id: r.id_or_none()?,
            mean: r.half()?,
            deviation: r.half()?,
            rtt_max: r.half()?,
        },
        2 => Mark::Acker(r.id_or_none()?),
        3 => Mark::Equation {
            suppress_above: r.half()?,
            rtt_max: r.half()?,
            round: r.u8()?,
            limiting: match r.u8()? {
                0 => false,
                1 => true,
                value => return Err(ParseError::BadValue { field: "limiting", value: value.into() }),
            },
            to: r.id_or_none()?,
            echo: r.u32()?,
        },
        4 => Mark::Timetable { slot: r.u32()? },
        5 => Mark::Layered {
            id: r.id_or_none()?.and_then(ShortId::of),
            mean: r.half()?,
            error: r.half()?,
            rtt: r.half()?,
            above: Half(r.u16()?),
            updates: r.u8()?,
            states: LayerStates(r.u32()?),
        },
        unknown => return Err(ParseError::UnknownMark(unknown)),
    })
}

/// Unwrap a 32-bit number of microseconds: the moment nearest to the newest known one.
fn unwrap_micros(newest: Time, wire: u32) -> Time {
    let micros = Seq::unwrap(Seq(newest.as_nanos() / 1_000), wire).0;
    Time::from_nanos(micros.saturating_mul(1_000))
}

fn read_cause(r: &mut Reader<'_>) -> Result<Cause, ParseError> {
    Ok(match r.u8()? {
        0 => Cause::Loss,
        1 => Cause::Mark,
        2 => Cause::Heartbeat,
        3 => Cause::Leaving,
        4 => Cause::Joining,
        5 => Cause::Accumulation,
        value => return Err(ParseError::BadValue { field: "cause", value: value.into() }),
    })
}

pub(crate) fn read_content(r: &mut Reader<'_>) -> Result<ReportContent, ParseError> {
    Ok(match r.u8()? {
        0 => ReportContent::Alive(r.echo()?),
        1 => ReportContent::Congested {
            echo: r.echo()?,
            level: r.level("level")?,
            mean: r.level("mean")?,
            cause: read_cause(r)?,
        },
        2 => ReportContent::Lost {
            echo: r.echo()?,
            first: r.seq("first")?,
            count: r.u16()?,
            loss: r.fraction("loss")?,
        },
        3 => ReportContent::Received { echo: r.echo()?, rate: r.rate("rate")?, loss: r.fraction("loss")? },
        4 => ReportContent::Selective {
            echo: r.echo()?,
            behind: r.u32()?,
            bitmap: r.u32()?,
            loss: r.fraction("loss")?,
        },
        6 => ReportContent::Calculated {
            echo: r.echo()?,
            rate: r.rate("rate")?,
            stamp: r.u32()?,
            round: r.u8()?,
            knows: Knows(r.u8()?),
        },
        7 => ReportContent::Averaged {
            echo: r.echo()?,
            mean: r.level("mean")?,
            deviation: r.level("deviation")?,
            samples: r.u16()?,
            rate: r.rate("rate")?,
            cause: read_cause(r)?,
        },
        value => return Err(ParseError::BadValue { field: "content", value: value.into() }),
    })
}

fn read_announce(r: &mut Reader<'_>) -> Result<Announce, ParseError> {
    Ok(Announce {
        salt: r.array()?,
        unix_secs: r.u64()?,
        transfer: TransferId(r.array()?),
        stream_len: Some(r.u64()?).filter(|&len| len != OPEN_ENDED),
        manifest_len: r.u32()?,
        symbol_size: r.u16()?,
        symbols_per_block: r.u16()?,
        first_block: r.u32()?,
        next_seq: r.seq("next_seq")?.0,
        scheme: r.u8()?,
        layers: r.u8()?,
        spread_ms: r.u32()?,
        flags: r.u8()?,
        name: r.name("name")?,
        options: r.name("options")?,
    })
}

fn read_status(r: &mut Reader<'_>) -> Result<Status, ParseError> {
    let mut status = Status {
        next_seq: r.seq("next_seq")?.0,
        complete_to: r.u32()?,
        blocks: Some(r.u32()?).filter(|&blocks| blocks != NO_BLOCKS),
        spread_ms: r.u32()?,
        members: r.u32()?,
        flags: r.u8()?,
        rtt_max_us: r.u32()?,
        root: match r.u8()? {
            0 => None,
            1 => Some(r.array()?),
            value => return Err(ParseError::BadValue { field: "has_root", value: value.into() }),
        },
        ..Status::default()
    };
    let counts = [r.u16()?, r.u16()?, r.u16()?, r.u16()?, r.u16()?];
    status.upper_seqs = r.list(counts[0], 8, |r| r.seq("upper_seq").map(|seq| seq.0))?;
    status.scheduled = r.list(counts[1], 6, |r| Ok(Scheduled { block: r.u32()?, symbols: r.u16()? }))?;
    status.confirmed = r.list(counts[2], 4, |r| r.id("confirmed"))?;
    status.lagging = r.list(counts[3], 4, |r| r.id("lagging"))?;
    status.dropped = r.list(counts[4], 4, |r| r.id("dropped"))?;
    Ok(status)
}

fn read_request(from: ReceiverId, r: &mut Reader<'_>) -> Result<Request, ParseError> {
    let echo = r.echo()?;
    let count = r.u16()?;
    let needs = r.list(count, 8, |r| Ok(Need { first: r.u32()?, run: r.u16()?, symbols: r.u16()? }))?;
    Ok(Request { from, needs, echo })
}

fn read_member(from: ReceiverId, r: &mut Reader<'_>) -> Result<Member, ParseError> {
    Ok(Member {
        from,
        state: match r.u8()? {
            0 => MemberState::Joined,
            1 => MemberState::Receiving,
            2 => MemberState::Done,
            3 => MemberState::Failed,
            4 => MemberState::Leaving,
            value => return Err(ParseError::BadValue { field: "state", value: value.into() }),
        },
        reason: r.u8()?,
        verified_bytes: r.u64()?,
        blocks_missing: r.u32()?,
        rate: r.rate("rate")?,
        loss: r.fraction("loss")?,
        dropped_local: r.u32()?,
        echo: r.echo()?,
        host: r.name("host")?,
    })
}

/// Reads fields in order; never beyond the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], ParseError> {
        let Some(taken) = self.rest().get(..len) else {
            return Err(ParseError::Truncated { need: self.at + len, have: self.bytes.len() });
        };
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let Some(&taken) = self.rest().first_chunk::<N>() else {
            return Err(ParseError::Truncated { need: self.at + N, have: self.bytes.len() });
        };
        self.at += N;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ParseError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u24(&mut self) -> Result<u32, ParseError> {
        self.array().map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ParseError> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn half(&mut self) -> Result<f32, ParseError> {
        self.u16().map(half::decode)
    }

    fn level(&mut self, field: &'static str) -> Result<f32, ParseError> {
        let value = f32::from_bits(self.u32()?);
        if value.is_nan() { Err(ParseError::NotANumber { field }) } else { Ok(value) }
    }

    fn rate(&mut self, field: &'static str) -> Result<f32, ParseError> {
        let value = self.level(field)?;
        if value < 0.0 { Err(ParseError::NotANumber { field }) } else { Ok(value) }
    }

    fn fraction(&mut self, field: &'static str) -> Result<f32, ParseError> {
        let value = self.level(field)?;
        if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(ParseError::NotANumber { field }) }
    }

    fn seq(&mut self, field: &'static str) -> Result<Seq, ParseError> {
        match self.u64()? {
            value if value < SEQ_LIMIT => Ok(Seq(value)),
            value => Err(ParseError::BadValue { field, value }),
        }
    }

    fn echo(&mut self) -> Result<Echo, ParseError> {
        Ok(Echo { seq: self.seq("echo")?, hold: Span::from_nanos(self.u64()?) })
    }

    fn id_or_none(&mut self) -> Result<Option<ReceiverId>, ParseError> {
        Ok(ReceiverId::new(self.u32()?.into()))
    }

    pub(crate) fn id(&mut self, field: &'static str) -> Result<ReceiverId, ParseError> {
        self.id_or_none()?.ok_or(ParseError::BadValue { field, value: 0 })
    }

    fn name(&mut self, field: &'static str) -> Result<Name, ParseError> {
        let len = self.u8()?;
        if usize::from(len) > Name::MAX {
            return Err(ParseError::BadValue { field, value: len.into() });
        }
        let text = str::from_utf8(self.take(len.into())?).map_err(|_| ParseError::NotUtf8 { field })?;
        Ok(Name::clipped(text))
    }

    /// `count` entries of `size` bytes each. Memory is asked for only once their bytes are there.
    fn list<T>(
        &mut self,
        count: u16,
        size: usize,
        read: impl Fn(&mut Reader<'_>) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let (count, start) = (usize::from(count), self.at);
        self.take(count * size)?;
        let mut entries = Reader { bytes: self.bytes, at: start };
        (0..count).map(|_| read(&mut entries)).collect()
    }

    /// Options: their length (u8), then type, length and value of each.
    fn skip_options(&mut self) -> Result<(), ParseError> {
        let len = self.u8()?;
        let start = self.at;
        self.take(len.into())?;
        let mut options = Reader { bytes: &self.bytes[..self.at], at: start };
        while options.left() > 0 {
            let (kind, len) = (options.u8()?, options.u8()?);
            options.take(len.into())?;
            if kind & MUST_UNDERSTAND != 0 {
                return Err(ParseError::UnknownOption(kind));
            }
        }
        Ok(())
    }
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
    fn the_definition_gives_the_checksums_of_the_rfc() {
        let rising: Vec<u8> = (0..32).collect();
        let falling: Vec<u8> = (0..32).rev().collect();
        // RFC 3720, B.4 writes them with the lowest octet first.
        assert_eq!(bit_by_bit(&[0; 32]), 0x8a91_36aa);
        assert_eq!(bit_by_bit(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(bit_by_bit(&rising), 0x46dd_794e);
        assert_eq!(bit_by_bit(&falling), 0x113f_db5c);
    }

    #[test]
    fn checksums_of_all_lengths_are_those_of_the_definition() {
        let bytes: Vec<u8> = (0..2_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for len in HEADER_LEN + CRC_LEN..bytes.len() {
            let mut without = bytes[..len].to_vec();
            without[HEADER_LEN..HEADER_LEN + CRC_LEN].fill(0);
            assert_eq!(checksum(&bytes[..len]), bit_by_bit(&without), "{len} bytes");
        }
    }
}
