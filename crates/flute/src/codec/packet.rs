//! Parsing and encoding of ALC packets.

use super::fec::{Fec, Oti, PayloadId};
use super::reader::{ParseError, Reader};

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet<'a> {
    /// Congestion control information: 4, 8, 12 or 16 bytes.
    pub cci: &'a [u8],
    /// Transport session identifier, up to 48 bits. Together with the source's address it identifies the session.
    pub tsi: Option<u64>,
    /// Transport object identifier, up to 112 bits.
    pub toi: Option<u128>,
    /// The erasure code, from the codepoint (RFC 6726, 5.1).
    pub fec: Fec,
    /// The two protocol-specific bits of LCT. In ALC the first bit states that only source symbols are sent (RFC 5775, 2.1).
    pub psi: u8,
    /// The end of a session or object that this packet announces, if any.
    pub closing: Closing,
    /// Header extensions known to this program.
    pub extensions: Extensions,
    /// Payload ID; `None` in a packet that only ends the session.
    pub payload_id: Option<PayloadId>,
    /// One or several consecutive symbols.
    pub symbols: &'a [u8],
}

/// Ends that a packet announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Closing {
    /// No end.
    #[default]
    Nothing,
    /// No packets of its object follow ("B").
    Object,
    /// No packets of its session follow ("A").
    Session,
    /// Both ends.
    Both,
}

/// Header extensions (RFC 5651, 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extensions {
    /// EXT_FDT: the packet belongs to a file delivery table.
    pub fdt: Option<FdtHeader>,
    /// EXT_CENC: compression of the table, 0 for none (RFC 6726, 3.4.3).
    pub encoding: Option<u8>,
    /// EXT_FTI: division and coding of the object.
    pub oti: Option<Oti>,
    /// EXT_TIME.
    pub time: Option<Times>,
}

/// Instance of the file delivery table (RFC 6726, 3.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FdtHeader {
    /// FLUTE's version, 4 bits.
    pub version: u8,
    /// Number of the instance, 20 bits.
    pub instance: u32,
}

/// Content of EXT_TIME (RFC 5651, 5.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// The source's present time in NTP's format: seconds since 1900 and, if stated, the fraction of a second in units of 2^-32
    /// s.
    pub current: Option<(u32, Option<u32>)>,
    /// Remaining time for which the object will be sent, in seconds.
    pub residual: Option<u32>,
    /// Time of the latest change of the session, in seconds since 1900.
    pub changed: Option<u32>,
}

/// Reason why a packet cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Congestion control information does not have 1 to 4 words.
    #[error("the congestion control information has {0} bytes instead of 4, 8, 12 or 16")]
    Cci(usize),
    /// The identifiers do not fit the header fields.
    #[error("the header has no room for the session {tsi:?} and the object {toi:?}")]
    Identifiers {
        /// Identifier of the session.
        tsi: Option<u64>,
        /// Identifier of the object.
        toi: Option<u128>,
    },
    /// A number in an extension does not fit.
    #[error("header extension {0} has a number that does not fit")]
    Extension(u8),
    /// The erasure code cannot express the number of the block or of the symbol.
    #[error("this erasure code has no number for symbol {symbol} of block {block}")]
    PayloadId {
        /// The block.
        block: u32,
        /// The symbol.
        symbol: u32,
    },
    /// A symbol has no payload ID.
    #[error("the packet has {0} bytes of symbols but no payload ID")]
    NoPayloadId(usize),
}

const EXT_TIME: u8 = 2;
const EXT_FTI: u8 = 64;
const EXT_FDT: u8 = 192;
const EXT_CENC: u8 = 193;
/// First type of the extensions that have one word and no length (RFC 5651, 5.2.1).
const FIXED: u8 = 128;

const CLOSE_SESSION: u8 = 0x02;
const CLOSE_OBJECT: u8 = 0x01;
const SCT_HIGH: u16 = 0x8000;
const SCT_LOW: u16 = 0x4000;
const ERT: u16 = 0x2000;
const SLC: u16 = 0x1000;

/// Parses a packet.
///
/// # Errors
/// When the packet is malformed, or its code is unknown.
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let mut r = Reader { bytes, at: 0 };
    let [first, second, words, codepoint] = r.array()?;
    if first >> 4 != 1 {
        return Err(ParseError::Version(first >> 4));
    }
    let fec = Fec::from_id(codepoint).ok_or(ParseError::UnknownFec(codepoint))?;
    let (s, o, h) = (second >> 7, second >> 5 & 3, second >> 4 & 1);
    let cci = r.take(4 * (usize::from(first >> 2 & 3) + 1))?;
    let tsi = r.number(4 * usize::from(s) + 2 * usize::from(h))?.map(|tsi| tsi as u64); // six bytes at most
    let toi = r.number(4 * usize::from(o) + 2 * usize::from(h))?;
    let stated = 4 * usize::from(words);
    if stated < r.at || stated > bytes.len() {
        return Err(ParseError::HeaderLength { stated, fields: r.at, have: bytes.len() });
    }
    let extensions = read_extensions(Reader { bytes: &bytes[..stated], at: r.at }, fec)?;
    let closing = match second & (CLOSE_SESSION | CLOSE_OBJECT) {
        0 => Closing::Nothing,
        CLOSE_OBJECT => Closing::Object,
        CLOSE_SESSION => Closing::Session,
        _ => Closing::Both,
    };
    let mut r = Reader { bytes, at: stated };
    let payload_id = match stated == bytes.len() {
        true => None,
        false => Some(PayloadId::from_bytes(r.array()?, fec)),
    };
    Ok(Packet {
        cci,
        tsi,
        toi,
        fec,
        psi: first & 3,
        closing,
        extensions,
        payload_id,
        symbols: &bytes[r.at..],
    })
}

/// Reads the extensions up to the header's end. Unknown extensions and authentication are skipped (RFC 5651, 5.2.1).
fn read_extensions(mut r: Reader<'_>, fec: Fec) -> Result<Extensions, ParseError> {
    let mut found = Extensions::default();
    while r.at < r.bytes.len() {
        let left = r.bytes.len() - r.at;
        let [kind, second, third, fourth] = r.array()?;
        if kind >= FIXED {
            match kind {
                EXT_FDT => {
                    let instance = u32::from_be_bytes([0, second & 0x0f, third, fourth]);
                    found.fdt = Some(FdtHeader { version: second >> 4, instance });
                }
                EXT_CENC => found.encoding = Some(second),
                _ => {}
            }
            continue;
        }
        let broken = ParseError::Extension { kind, words: second, left };
        let rest = (4 * usize::from(second)).checked_sub(4).ok_or(broken)?;
        let mut inner = Reader { bytes: r.take(rest).map_err(|_| broken)?, at: 0 };
        match kind {
            EXT_TIME => {
                found.time = Some(read_times(u16::from_be_bytes([third, fourth]), &mut inner).ok_or(broken)?)
            }
            EXT_FTI => {
                // The value begins in the first word, after type and length.
                let mut value = [0; 18];
                let known = inner.bytes.len().min(16);
                value[..2].copy_from_slice(&[third, fourth]);
                value[2..2 + known].copy_from_slice(&inner.bytes[..known]);
                let mut value = Reader { bytes: &value[..2 + known], at: 0 };
                found.oti = Some(Oti::read(fec, &mut value).map_err(|_| broken)?);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Reads the times that the bits announce, in the order of the bits; `None` if a time is missing.
fn read_times(bits: u16, r: &mut Reader<'_>) -> Option<Times> {
    let mut time = |bit| if bits & bit != 0 { r.u32().ok().map(Some) } else { Some(None) };
    let (high, low) = (time(SCT_HIGH)?, time(SCT_LOW)?);
    let (residual, changed) = (time(ERT)?, time(SLC)?);
    // A fraction without its seconds has no meaning.
    Some(Times { current: high.map(|high| (high, low)), residual, changed })
}

/// Appends a packet.
///
/// # Errors
/// When a number does not fit the format; `out` is then unchanged.
pub fn encode(out: &mut Vec<u8>, packet: &Packet<'_>) -> Result<(), EncodeError> {
    if !matches!(packet.cci.len(), 4 | 8 | 12 | 16) {
        return Err(EncodeError::Cci(packet.cci.len()));
    }
    let unfit = EncodeError::Identifiers { tsi: packet.tsi, toi: packet.toi };
    let (s, o, h) = shortest(packet.tsi, packet.toi).ok_or(unfit)?;
    check(packet)?;
    let payload_id = match packet.payload_id {
        None if packet.symbols.is_empty() => None,
        None => return Err(EncodeError::NoPayloadId(packet.symbols.len())),
        Some(id) => {
            let unfit = EncodeError::PayloadId { block: id.block, symbol: id.symbol };
            Some(id.to_bytes(packet.fec).ok_or(unfit)?)
        }
    };
    let start = out.len();
    let closing = match packet.closing {
        Closing::Nothing => 0,
        Closing::Object => CLOSE_OBJECT,
        Closing::Session => CLOSE_SESSION,
        Closing::Both => CLOSE_SESSION | CLOSE_OBJECT,
    };
    let c = (packet.cci.len() / 4 - 1) as u8;
    out.extend_from_slice(&[
        1 << 4 | c << 2 | packet.psi & 3,
        s << 7 | o << 5 | h << 4 | closing,
        0,
        packet.fec.id(),
    ]);
    out.extend_from_slice(packet.cci);
    let (tsi_len, toi_len) =
        (4 * usize::from(s) + 2 * usize::from(h), 4 * usize::from(o) + 2 * usize::from(h));
    out.extend_from_slice(&packet.tsi.unwrap_or(0).to_be_bytes()[8 - tsi_len..]);
    out.extend_from_slice(&packet.toi.unwrap_or(0).to_be_bytes()[16 - toi_len..]);
    put_extensions(out, &packet.extensions);
    // The maximum is 4 + 16 + 6 + 14 bytes of fields and 44 bytes of extensions.
    out[start + 2] = ((out.len() - start) / 4) as u8;
    out.extend_from_slice(payload_id.as_ref().map_or(&[], |id| &id[..]));
    out.extend_from_slice(packet.symbols);
    Ok(())
}

fn check(packet: &Packet<'_>) -> Result<(), EncodeError> {
    let Extensions { fdt, oti, .. } = packet.extensions;
    if fdt.is_some_and(|fdt| fdt.version >> 4 != 0 || fdt.instance >> 20 != 0) {
        return Err(EncodeError::Extension(EXT_FDT));
    }
    if oti.is_some_and(|oti| oti.fec() != packet.fec || !oti.is_writable()) {
        return Err(EncodeError::Extension(EXT_FTI));
    }
    Ok(())
}

/// Returns the shortest fields that hold these identifiers, as the header bits S, O and H.
fn shortest(tsi: Option<u64>, toi: Option<u128>) -> Option<(u8, u8, u8)> {
    let all = (0..2).flat_map(|h| (0..2).flat_map(move |s| (0..4).map(move |o| (s, o, h))));
    let fits = |value: Option<u128>, bits: u32| match value {
        None => bits == 0,
        Some(value) => bits > 0 && value.checked_shr(bits).unwrap_or(0) == 0,
    };
    all.filter(|&(s, o, h): &(u8, u8, u8)| {
        let half = 16 * u32::from(h);
        fits(tsi.map(u128::from), 32 * u32::from(s) + half) && fits(toi, 32 * u32::from(o) + half)
    })
    .min_by_key(|&(s, o, h)| s + o + h)
}

fn put_extensions(out: &mut Vec<u8>, extensions: &Extensions) {
    if let Some(FdtHeader { version, instance }) = extensions.fdt {
        out.extend_from_slice(
            &(u32::from(EXT_FDT) << 24 | u32::from(version) << 20 | instance).to_be_bytes(),
        );
    }
    if let Some(encoding) = extensions.encoding {
        out.extend_from_slice(&[EXT_CENC, encoding, 0, 0]);
    }
    if let Some(oti) = &extensions.oti {
        let start = out.len();
        out.extend_from_slice(&[EXT_FTI, 0]);
        oti.put(out);
        out[start + 1] = ((out.len() - start) / 4) as u8; // 3 or 4
    }
    if let Some(time) = extensions.time {
        put_times(out, time);
    }
}

fn put_times(out: &mut Vec<u8>, time: Times) {
    let (high, low) = (time.current.map(|(high, _)| high), time.current.and_then(|(_, low)| low));
    let words = [(SCT_HIGH, high), (SCT_LOW, low), (ERT, time.residual), (SLC, time.changed)];
    let stated = words.iter().filter(|(_, word)| word.is_some());
    let (bits, count) = stated.fold((0, 1), |(bits, count), (bit, _)| (bits | bit, count + 1));
    out.extend_from_slice(&[EXT_TIME, count]);
    out.extend_from_slice(&bits.to_be_bytes());
    words.iter().filter_map(|(_, word)| *word).for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
}
