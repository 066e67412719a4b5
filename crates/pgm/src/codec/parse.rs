//! Parsing of PGM packets.

use super::option::{
    BackOff, BackOffRange, DISCARD, END, EXTENSIBILITY, FIN, FRAGMENT, Fragment, JOIN, LENGTH, LENGTH_LEN,
    NAK_BO_IVL, NAK_BO_RNG, NAK_LIST, NakList, OPTION_HEADER, Options, OwnOption, PGMCC_DATA, PGMCC_FEEDBACK,
    PgmccData, PgmccFeedback, RST, SAYS_CONTENT, SAYS_STAMP, SEQUENCES_PER_NAK, SYN,
};
use super::{Ack, Body, Data, Gsi, HEADER_LEN, Nak, OPT_FAIRCAST, Packet, Spm, checksum};
use faircast_wire::stamp::{self, Stamp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const OPTIONS_PRESENT: u8 = 0x01;
pub(super) const OPTIONS_FOR_ROUTERS: u8 = 0x02;
pub(super) const PARITY: u8 = 0x80;
/// Address family numbers (RFC 1700).
pub(super) const AFI_IPV4: u16 = 1;
pub(super) const AFI_IPV6: u16 = 2;

/// Reason why bytes are not a usable PGM packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The datagram ends too early.
    #[error("the datagram has {have} bytes, but at least {need} are needed")]
    Truncated {
        /// Bytes needed to continue.
        need: usize,
        /// Bytes left.
        have: usize,
    },
    /// The bytes were changed in transit, or are not a PGM packet.
    #[error(
        "the packet states the checksum {found:#06x}, but its bytes give {computed:#06x}: it is damaged, or not PGM"
    )]
    Damaged {
        /// Checksum in the packet.
        found: u16,
        /// Checksum of its bytes.
        computed: u16,
    },
    /// A data packet has no checksum, although RFC 3208, 8, requires one.
    #[error("a data packet without a checksum")]
    NoChecksum,
    /// The packet has another version of PGM.
    #[error("PGM version {0} is not supported; only version 0 is")]
    Version(u8),
    /// RFC 3208 does not define the type.
    #[error("packet type {0:#04x} is not known")]
    UnknownType(u8),
    /// The packet is a parity packet. Such packets require an erasure code on which both endpoints agree.
    #[error("parity packets are not supported; switch the source's forward error correction off")]
    Parity,
    /// The family of an address is unknown.
    #[error("address family {0} is neither IPv4 (1) nor IPv6 (2)")]
    AddressFamily(u16),
    /// The payload length stated in the header differs from the actual payload length.
    #[error("the header states {stated} bytes of data, but {have} follow")]
    Length {
        /// Length in the header.
        stated: usize,
        /// Length of the datagram.
        have: usize,
    },
    /// An unknown option whose bits forbid the receiver to skip it.
    #[error("option {0:#04x} is not known and requires that the packet is discarded")]
    UnknownOption(u8),
    /// An option that cannot be read.
    #[error("option {kind:#04x} {flaw}")]
    Option {
        /// Its type.
        kind: u8,
        /// Error in the option.
        flaw: Flaw,
    },
}

/// Error in an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Its length is invalid.
    #[error("has an invalid length of {0} bytes")]
    Length(usize),
    /// The first option is not OPT_LENGTH, which states the length of all options.
    #[error("is the first option, but the total length of the options must be first")]
    NotFirst,
    /// The last option has no end flag, or an earlier option has one.
    #[error("does not end with the list of options, or is not the last")]
    End,
    /// Its value is invalid.
    #[error("has a value that is not valid")]
    Value,
}

/// Parses a packet.
///
/// # Errors
/// When the packet is damaged or malformed, or its type is not supported.
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let Some(fixed) = bytes.first_chunk::<HEADER_LEN>() else {
        return Err(ParseError::Truncated { need: HEADER_LEN, have: bytes.len() });
    };
    let [s0, s1, d0, d1, kind, flags, c0, c1, gsi @ .., l0, l1] = *fixed;
    check_sum(bytes, kind, u16::from_be_bytes([c0, c1]))?;
    if kind >> 6 != 0 {
        return Err(ParseError::Version(kind >> 6));
    }
    let mut reader = Reader { bytes, at: HEADER_LEN };
    let body = read_body(kind & 0x0f, &mut reader)?;
    if flags & PARITY != 0 {
        return Err(ParseError::Parity);
    }
    let options = if flags & OPTIONS_PRESENT != 0 { read_options(&mut reader)? } else { Options::default() };
    let payload = &bytes[reader.at..];
    let stated = usize::from(u16::from_be_bytes([l0, l1]));
    let counts = matches!(body, Body::Odata(_) | Body::Rdata(_));
    if counts && stated != payload.len() {
        return Err(ParseError::Length { stated, have: payload.len() });
    }
    Ok(Packet {
        gsi: Gsi(gsi),
        source_port: u16::from_be_bytes([s0, s1]),
        destination_port: u16::from_be_bytes([d0, d1]),
        body,
        options,
        payload: if counts { payload } else { &[] },
    })
}

fn check_sum(bytes: &[u8], kind: u8, found: u16) -> Result<(), ParseError> {
    if found == 0 {
        return if matches!(kind, 0x04 | 0x05) { Err(ParseError::NoChecksum) } else { Ok(()) };
    }
    match checksum(bytes) {
        computed if computed == found => Ok(()),
        computed => Err(ParseError::Damaged { found, computed }),
    }
}

fn read_body(kind: u8, r: &mut Reader<'_>) -> Result<Body, ParseError> {
    Ok(match kind {
        0x00 => Body::Spm(Spm { sqn: r.u32()?, trail: r.u32()?, lead: r.u32()?, path: r.address()? }),
        0x01 => {
            // Skips the fields of a poll: number, round, kind, path, interval, random octets and mask.
            r.take(8)?;
            r.address()?;
            r.take(12)?;
            Body::Poll
        }
        0x02 => {
            r.take(8)?;
            Body::Polr
        }
        0x04 => Body::Odata(Data { sqn: r.u32()?, trail: r.u32()? }),
        0x05 => Body::Rdata(Data { sqn: r.u32()?, trail: r.u32()? }),
        0x08 => Body::Nak(r.nak()?),
        0x09 => Body::Nnak(r.nak()?),
        0x0a => Body::Ncf(r.nak()?),
        0x0c => Body::Spmr,
        0x0d => Body::Ack(Ack { newest: r.u32()?, bitmap: r.u32()? }),
        unknown => return Err(ParseError::UnknownType(unknown)),
    })
}

/// Reads the options. The first option is OPT_LENGTH, which states the length of all options (RFC 3208, 9.1).
fn read_options<'a>(r: &mut Reader<'a>) -> Result<Options<'a>, ParseError> {
    let start = r.at;
    let [kind, len, high, low] = r.array()?;
    if kind & !END != LENGTH {
        return Err(ParseError::Option { kind: kind & !END, flaw: Flaw::NotFirst });
    }
    let total = usize::from(u16::from_be_bytes([high, low]));
    if usize::from(len) != LENGTH_LEN || total < LENGTH_LEN {
        return Err(ParseError::Option { kind: LENGTH, flaw: Flaw::Length(total) });
    }
    r.take(total - LENGTH_LEN)?;
    let end = r.at;
    let mut inner = Reader { bytes: &r.bytes[..end], at: start + LENGTH_LEN };
    let mut options = Options::default();
    let mut last = kind & END != 0;
    while !last {
        let [typed, len, extensibility, own] = inner.array()?;
        let kind = typed & !END;
        let Some(value) = usize::from(len).checked_sub(OPTION_HEADER) else {
            return Err(ParseError::Option { kind, flaw: Flaw::Length(len.into()) });
        };
        let value = inner.take(value)?;
        let known = read_option(kind, own, value, &mut options)?;
        if known == Known::No && extensibility & EXTENSIBILITY == DISCARD {
            return Err(ParseError::UnknownOption(kind));
        }
        last = typed & END != 0;
        if last != (inner.at == end) {
            return Err(ParseError::Option { kind, flaw: Flaw::End });
        }
    }
    Ok(options)
}

#[derive(PartialEq, Eq)]
enum Known {
    Yes,
    No,
}

fn read_option<'a>(
    kind: u8,
    own: u8,
    value: &'a [u8],
    options: &mut Options<'a>,
) -> Result<Known, ParseError> {
    let wrong = ParseError::Option { kind, flaw: Flaw::Length(value.len() + OPTION_HEADER) };
    let mut r = Reader { bytes: value, at: 0 };
    match kind {
        FRAGMENT => options.fragment = Some(Fragment { first: r.u32()?, offset: r.u32()?, len: r.u32()? }),
        NAK_LIST => {
            let (list, rest) = value.as_chunks::<4>();
            if !rest.is_empty() || list.len() >= SEQUENCES_PER_NAK {
                return Err(wrong);
            }
            (options.nak_list, r.at) = (NakList(list), value.len());
        }
        JOIN => options.join = Some(r.u32()?),
        NAK_BO_IVL => options.back_off = Some(BackOff { micros: r.u32()?, sqn: r.u32()? }),
        NAK_BO_RNG => options.back_off_range = Some(BackOffRange { longest: r.u32()?, shortest: r.u32()? }),
        SYN => options.syn = true,
        FIN => options.fin = true,
        RST => options.rst = true,
        PGMCC_DATA => {
            let stamp = r.u32()?;
            options.pgmcc_data = Some(PgmccData { stamp, acker: r.address()? });
        }
        PGMCC_FEEDBACK => {
            let (stamp, family, loss) = (r.u32()?, r.u16()?, r.u16()?);
            options.pgmcc_feedback = Some(PgmccFeedback { stamp, loss, from: r.address_of(family)? });
        }
        OPT_FAIRCAST if own == SAYS_STAMP || own == SAYS_CONTENT => {
            options.extension = Some(read_own_option(own, value)?);
            r.at = value.len();
        }
        _ => return Ok(Known::No),
    }
    if r.at == value.len() { Ok(Known::Yes) } else { Err(wrong) }
}

/// Reads the value of faircast's option, which has the encoding of faircast's native format.
fn read_own_option(own: u8, value: &[u8]) -> Result<OwnOption, ParseError> {
    let value = match own {
        SAYS_CONTENT => stamp::parse_content(value).map(OwnOption::Content),
        _ => Stamp::parse(value).map(OwnOption::Stamp),
    };
    value.map_err(|_| ParseError::Option { kind: OPT_FAIRCAST, flaw: Flaw::Value })
}

/// Reads fields in order; never beyond the end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], ParseError> {
        let Some(taken) = self.bytes[self.at..].get(..len) else {
            return Err(ParseError::Truncated { need: self.at + len, have: self.bytes.len() });
        };
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let Some(&taken) = self.bytes[self.at..].first_chunk::<N>() else {
            return Err(ParseError::Truncated { need: self.at + N, have: self.bytes.len() });
        };
        self.at += N;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads an address of the network layer: address family, two reserved octets, and the address.
    fn address(&mut self) -> Result<IpAddr, ParseError> {
        let family = self.u16()?;
        self.u16()?;
        self.address_of(family)
    }

    fn address_of(&mut self, family: u16) -> Result<IpAddr, ParseError> {
        match family {
            AFI_IPV4 => self.array().map(|octets: [u8; 4]| Ipv4Addr::from(octets).into()),
            AFI_IPV6 => self.array().map(|octets: [u8; 16]| Ipv6Addr::from(octets).into()),
            unknown => Err(ParseError::AddressFamily(unknown)),
        }
    }

    fn nak(&mut self) -> Result<Nak, ParseError> {
        Ok(Nak { sqn: self.u32()?, source: self.address()?, group: self.address()? })
    }
}
