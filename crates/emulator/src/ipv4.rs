//! Fields of a packet that the emulator reads and changes: addresses, flow, ECN field (RFC 791, RFC 3168).

use faircast_aqm::Ecn;
use std::net::Ipv4Addr;

/// The part of an IPv4 packet that links and routes use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Destination port of TCP and UDP; 0 in other packets and in fragments.
    pub port: u16,
    /// Hash of protocol, addresses and, except in fragments, ports. It is the same for all packets of a flow.
    pub flow: u32,
    /// ECN field.
    pub ecn: Ecn,
}

/// Length of a header without options.
pub(crate) const FIXED: usize = 20;
const ECN: u8 = 0b11;
pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;

/// Parses a packet. Returns `None` if it is not an IPv4 packet of the stated length.
pub fn parse(bytes: &[u8]) -> Option<Header> {
    let fixed = bytes.first_chunk::<FIXED>()?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if fixed[0] >> 4 != 4 || header < FIXED || total < header || total != bytes.len() {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff;
    let has_ports = fragment == 0 && matches!(fixed[9], TCP | UDP);
    let ports = bytes.get(header..header + 4).filter(|_| has_ports).unwrap_or(&[]);
    Some(Header {
        source: address(12),
        destination: address(16),
        port: ports.last_chunk().map_or(0, |port| u16::from_be_bytes(*port)),
        flow: hash(fixed[9..10].iter().chain(&fixed[12..20]).chain(ports)),
        ecn: match fixed[1] & ECN {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        },
    })
}

/// Returns the payload of a packet that [`parse`] accepted, if it is an unfragmented packet of this protocol.
pub fn payload(bytes: &[u8], protocol: u8) -> Option<&[u8]> {
    let is_whole = u16::from_be_bytes([bytes[6], bytes[7]]) & 0x3fff == 0;
    let payload = bytes.get(usize::from(bytes[0] & 0x0f) * 4..)?;
    (is_whole && bytes[9] == protocol).then_some(payload)
}

/// Sets the congestion mark of a packet that [`parse`] accepted, and corrects the header checksum (RFC 1624, 3).
pub fn mark(bytes: &mut [u8]) {
    let before = u16::from_be_bytes([bytes[0], bytes[1]]);
    bytes[1] |= ECN;
    let after = u16::from_be_bytes([bytes[0], bytes[1]]);
    let sum = u32::from(!u16::from_be_bytes([bytes[10], bytes[11]])) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    bytes[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

/// Returns the sum of 16-bit words for Internet checksums (RFC 1071), added to `before`. A last odd byte is the high byte of a word.
pub(crate) fn sum(before: u16, bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<4>();
    let total: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let mut total = total + u64::from(u32::from_be_bytes(last)) + u64::from(before);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Returns the sum of the part of a packet's addresses, protocol and payload that checksums of TCP and UDP cover besides the
/// payload (RFC 9293, 3.1). The packet has a header of [`FIXED`] bytes or more.
pub(crate) fn pseudo_header(bytes: &[u8], payload: usize) -> u16 {
    let [high, low] = (payload as u16).to_be_bytes();
    sum(sum(0, &bytes[12..20]), &[0, bytes[9], high, low])
}

/// Sets the total length of a packet, adds `number` to its identification, and sets its header checksum.
pub(crate) fn renumber(header: &mut [u8], total: usize, number: u16) {
    header[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    let identification = u16::from_be_bytes([header[4], header[5]]).wrapping_add(number);
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[10..12].fill(0);
    let checksum = !sum(0, header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Returns the FNV-1a hash.
fn hash<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Packets for tests.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the Internet checksum of a header. The result is zero if the checksum field is correct.
    pub(crate) fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|word| {
            let low = word.get(1).copied().unwrap_or_default();
            u32::from(u16::from_be_bytes([word[0], low]))
        });
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    /// Returns a UDP packet of this total size.
    pub(crate) fn udp(source: [u8; 4], destination: [u8; 4], ecn: u8, size: u16) -> Vec<u8> {
        let mut packet = vec![0; usize::from(size)];
        packet[..2].copy_from_slice(&[0x45, ecn]);
        packet[2..4].copy_from_slice(&size.to_be_bytes());
        packet[8..10].copy_from_slice(&[64, UDP]);
        packet[12..16].copy_from_slice(&source);
        packet[16..20].copy_from_slice(&destination);
        let sum = checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 0, 2];

    #[test]
    fn addresses_and_ecn_capability_are_parsed() {
        let header = parse(&udp(A, B, 2, 100)).expect("this is a packet");
        assert_eq!((header.source, header.destination), (A.into(), B.into()));
        let ecn = |bits| parse(&udp(A, B, bits, 100)).expect("this is a packet").ecn;
        assert_eq!([0, 1, 2, 3].map(ecn), [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]);
    }

    #[test]
    fn ports_distinguish_flows_except_in_fragments() {
        let flow = |packet: &[u8]| parse(packet).expect("this is a packet").flow;
        let (mut one, mut other) = (udp(A, B, 0, 100), udp(A, B, 0, 100));
        (one[21], other[21]) = (1, 2);
        assert_ne!(flow(&one), flow(&other));
        (one[7], other[7]) = (9, 9); // a later fragment has no ports
        assert_eq!(flow(&one), flow(&other));
    }

    #[test]
    fn every_truncation_is_refused() {
        let packet = udp(A, B, 0, 100);
        assert!((0..100).all(|length| parse(&packet[..length]).is_none()));
    }

    #[test]
    fn other_versions_and_short_headers_are_refused() {
        for first in [0x65, 0x44, 0x4f] {
            let mut packet = udp(A, B, 0, 40);
            packet[0] = first;
            assert_eq!(parse(&packet), None, "{first:x}");
        }
    }

    proptest! {
        #[test]
        fn marked_packet_has_a_valid_checksum(source: [u8; 4], destination: [u8; 4], tos: u8, size in 28..1500u16) {
            let mut packet = udp(source, destination, tos, size);
            mark(&mut packet);
            prop_assert_eq!(packet[1] & 3, 3);
            prop_assert_eq!(checksum(&packet[..20]), 0);
        }

        #[test]
        fn sum_of_a_packet_equals_the_sum_of_its_words(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(!sum(0, &bytes), checksum(&bytes));
        }

        #[test]
        fn parser_handles_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if parse(&bytes).is_some() {
                prop_assert_eq!(bytes[0] >> 4, 4);
            }
        }
    }
}
