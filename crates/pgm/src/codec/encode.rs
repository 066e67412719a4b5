//! Encoding of PGM packets.

use super::option::{
    END, FIN, FRAGMENT, JOIN, LENGTH, LENGTH_LEN, NAK_BO_IVL, NAK_BO_RNG, NAK_LIST, OPTION_HEADER, Options,
    OwnOption, PGMCC_DATA, PGMCC_FEEDBACK, RST, SAYS_CONTENT, SAYS_STAMP, SEQUENCES_PER_NAK, SYN,
};
use super::parse::{AFI_IPV4, AFI_IPV6, OPTIONS_FOR_ROUTERS, OPTIONS_PRESENT};
use super::{Body, DATA_HEADER_LEN, HEADER_LEN, Nak, OPT_FAIRCAST, Packet};
use faircast_wire::stamp::{MAX_CONTENT, MAX_STAMP, Stamp, put_content};
use std::net::IpAddr;

/// Largest length of an option.
const MAX_OPTION: usize = u8::MAX as usize;

const _: () = assert!(
    OPTION_HEADER + MAX_STAMP <= MAX_OPTION && OPTION_HEADER + MAX_CONTENT <= MAX_OPTION,
    "an option of PGM is too short for a mark or a report"
);

const CHECKSUM_AT: usize = 6;
const FLAGS_AT: usize = 5;

/// Reason why a packet cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum EncodeError {
    /// The packet has more data than the header can state.
    #[error("{0} bytes of data do not fit a PGM packet; use at most 65535")]
    TooLong(usize),
    /// A NAK has more sequence numbers than fit.
    #[error("a NAK cannot list {0} packets; use several NAKs")]
    TooManySequences(usize),
    /// The type is only parsed, never sent.
    #[error("packets of type {0:#04x} cannot be sent: this program only reads them")]
    NotSent(u8),
    /// A number in the scheme's fields is too large for its field.
    #[error(transparent)]
    Scheme(#[from] faircast_wire::EncodeError),
}

/// Computes the Internet checksum of a packet (RFC 3208, 8); the checksum field counts as zero. If the result is zero, returns
/// all ones, because a checksum of zero means that the packet has no checksum.
pub fn checksum(packet: &[u8]) -> u16 {
    let (pairs, odd) = packet.as_chunks::<2>();
    let mut sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    if let Some(own) = pairs.get(CHECKSUM_AT / 2) {
        sum -= u64::from(u16::from_be_bytes(*own));
    }
    if let [last] = odd {
        sum += u64::from(*last) << 8;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    match !(sum as u16) {
        0 => 0xffff,
        folded => folded,
    }
}

/// Returns the length in bytes of a data packet with these options and a payload of `payload` bytes.
pub fn data_len(options: &Options<'_>, payload: usize) -> usize {
    let stamp = match &options.extension {
        Some(OwnOption::Stamp(stamp)) => OPTION_HEADER + Stamp::len_with(&stamp.mark),
        _ => 0,
    };
    let fragment = if options.fragment.is_some() { OPTION_HEADER + 12 } else { 0 };
    let pgmcc = options.pgmcc_data.map_or(0, |data| OPTION_HEADER + 8 + address_len(data.acker));
    let sum = stamp + fragment + pgmcc;
    DATA_HEADER_LEN + payload + if sum > 0 { sum + LENGTH_LEN } else { 0 }
}

const fn address_len(address: IpAddr) -> usize {
    if address.is_ipv4() { 4 } else { 16 }
}

/// Appends a packet, with its checksum, to `out`. On an error `out` stays unchanged.
///
/// # Errors
/// When a value does not fit its field, or the packet is of a type that faircast never sends.
pub fn encode(out: &mut Vec<u8>, packet: &Packet<'_>) -> Result<(), EncodeError> {
    let start = out.len();
    put(out, packet, start).inspect_err(|_| out.truncate(start))
}

fn put(out: &mut Vec<u8>, packet: &Packet<'_>, start: usize) -> Result<(), EncodeError> {
    let len = u16::try_from(packet.payload.len()).map_err(|_| EncodeError::TooLong(packet.payload.len()))?;
    out.extend_from_slice(&packet.source_port.to_be_bytes());
    out.extend_from_slice(&packet.destination_port.to_be_bytes());
    out.extend_from_slice(&[packet.body.kind(), 0, 0, 0]);
    out.extend_from_slice(&packet.gsi.0);
    out.extend_from_slice(&len.to_be_bytes());
    debug_assert_eq!(out.len() - start, HEADER_LEN);
    match packet.body {
        Body::Spm(spm) => {
            [spm.sqn, spm.trail, spm.lead].iter().for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
            put_address(out, spm.path, 0);
        }
        Body::Odata(data) | Body::Rdata(data) => {
            [data.sqn, data.trail].iter().for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
        }
        Body::Nak(nak) | Body::Nnak(nak) | Body::Ncf(nak) => put_nak(out, nak),
        Body::Spmr => {}
        Body::Ack(ack) => {
            [ack.newest, ack.bitmap].iter().for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
        }
        Body::Poll | Body::Polr => return Err(EncodeError::NotSent(packet.body.kind())),
    }
    out[start + FLAGS_AT] = put_options(out, &packet.options)?;
    out.extend_from_slice(packet.payload);
    let sum = checksum(&out[start..]);
    out[start + CHECKSUM_AT..start + CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}

fn put_nak(out: &mut Vec<u8>, nak: Nak) {
    out.extend_from_slice(&nak.sqn.to_be_bytes());
    put_address(out, nak.source, 0);
    put_address(out, nak.group, 0);
}

/// Appends the address family, the two octets `between`, and the address.
fn put_address(out: &mut Vec<u8>, address: IpAddr, between: u16) {
    let family = if address.is_ipv4() { AFI_IPV4 } else { AFI_IPV6 };
    out.extend_from_slice(&family.to_be_bytes());
    out.extend_from_slice(&between.to_be_bytes());
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
}

/// Appends the options. Returns the flags of the packet header that announce them.
fn put_options(out: &mut Vec<u8>, options: &Options<'_>) -> Result<u8, EncodeError> {
    let start = out.len();
    out.extend_from_slice(&[LENGTH, LENGTH_LEN as u8, 0, 0]);
    let mut list = List { out, last: None };
    if let Some(fragment) = options.fragment {
        list.numbers(FRAGMENT, &[fragment.first, fragment.offset, fragment.len]);
    }
    if !options.nak_list.is_empty() {
        let more = options.nak_list.0;
        if more.len() >= SEQUENCES_PER_NAK {
            return Err(EncodeError::TooManySequences(more.len() + 1));
        }
        list.option(NAK_LIST, 0, |out| out.extend_from_slice(more.as_flattened()));
    }
    if let Some(sqn) = options.join {
        list.numbers(JOIN, &[sqn]);
    }
    if let Some(back_off) = options.back_off {
        list.numbers(NAK_BO_IVL, &[back_off.micros, back_off.sqn]);
    }
    if let Some(range) = options.back_off_range {
        list.numbers(NAK_BO_RNG, &[range.longest, range.shortest]);
    }
    for (kind, present) in [(SYN, options.syn), (FIN, options.fin), (RST, options.rst)] {
        if present {
            list.numbers(kind, &[]);
        }
    }
    if let Some(data) = options.pgmcc_data {
        list.option(PGMCC_DATA, 0, |out| {
            out.extend_from_slice(&data.stamp.to_be_bytes());
            put_address(out, data.acker, 0);
        });
    }
    if let Some(feedback) = options.pgmcc_feedback {
        list.option(PGMCC_FEEDBACK, 0, |out| {
            out.extend_from_slice(&feedback.stamp.to_be_bytes());
            put_address(out, feedback.from, feedback.loss);
        });
    }
    match &options.extension {
        Some(OwnOption::Stamp(stamp)) => list.option(OPT_FAIRCAST, SAYS_STAMP, |out| stamp.put(out))?,
        Some(OwnOption::Content(content)) => {
            list.option(OPT_FAIRCAST, SAYS_CONTENT, |out| put_content(out, content))?;
        }
        None => {}
    }
    let Some(last) = list.last else {
        out.truncate(start);
        return Ok(0);
    };
    out[last] |= END;
    let total = (out.len() - start) as u16; // each option has at most 255 bytes, and there are a dozen
    out[start + 2..start + 4].copy_from_slice(&total.to_be_bytes());
    let for_routers = if options.nak_list.is_empty() { 0 } else { OPTIONS_FOR_ROUTERS };
    Ok(OPTIONS_PRESENT | for_routers)
}

/// Options in their order in the packet.
struct List<'o> {
    out: &'o mut Vec<u8>,
    /// Offset of the newest option.
    last: Option<usize>,
}

impl List<'_> {
    fn option<T>(&mut self, kind: u8, own: u8, value: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let at = self.out.len();
        self.out.extend_from_slice(&[kind, 0, 0, own]);
        let done = value(self.out);
        // The length fits one byte: the longest option is a full list of a NAK with 4 + 62 * 4 bytes.
        self.out[at + 1] = (self.out.len() - at) as u8;
        self.last = Some(at);
        done
    }

    fn numbers(&mut self, kind: u8, numbers: &[u32]) {
        self.option(kind, 0, |out| {
            numbers.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()))
        });
    }
}
