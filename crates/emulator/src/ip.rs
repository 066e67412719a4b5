//! Fields of packets that the emulator reads and changes: addresses, flow, ECN field (RFC 791, RFC 8200, RFC 3168).

use faircast_aqm::Ecn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// The part of a packet that links and routes use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Destination port of TCP and UDP; 0 in other packets and in fragments.
    pub port: u16,
    /// Hash of protocol, addresses and, except in fragments, ports. It is the same for all packets of a flow.
    pub flow: u32,
    /// ECN field.
    pub ecn: Ecn,
}

/// Length of a header without options, and without extension headers.
const FIXED: usize = 20;
const FIXED_6: usize = 40;
/// Bits of the ECN field in the second byte of a packet.
const ECN: u8 = 0b11;
const ECN_6: u8 = 0b11 << 4;
pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;
/// Extension headers of IPv6 that may precede the payload (RFC 8200, 4), and their maximum number.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
const MAX_EXTENSIONS: usize = 8;

/// The parts of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Place of the source address and, behind it, the destination address.
    pub(crate) addresses: Range<usize>,
    /// Protocol of the payload.
    pub(crate) protocol: u8,
    /// Begin of the payload; `None` in fragments and behind incomplete extension headers.
    pub(crate) payload: Option<usize>,
}

/// Returns the parts of a packet; `None` if it is not an IP packet of the stated length.
pub(crate) fn parts(bytes: &[u8]) -> Option<Parts> {
    match bytes.first()? >> 4 {
        4 => parts_4(bytes),
        6 => parts_6(bytes),
        _ => None,
    }
}

fn parts_4(bytes: &[u8]) -> Option<Parts> {
    let fixed = bytes.first_chunk::<FIXED>()?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if header < FIXED || total < header || total != bytes.len() {
        return None;
    }
    let is_whole = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff == 0;
    Some(Parts { addresses: 12..20, protocol: fixed[9], payload: is_whole.then_some(header) })
}

fn parts_6(bytes: &[u8]) -> Option<Parts> {
    let fixed = bytes.first_chunk::<FIXED_6>()?;
    if usize::from(u16::from_be_bytes([fixed[4], fixed[5]])) != bytes.len() - FIXED_6 {
        return None;
    }
    let (mut protocol, mut payload) = (fixed[6], Some(FIXED_6));
    for _ in 0..MAX_EXTENSIONS {
        if !matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION) {
            break;
        }
        let Some((at, header)) = payload.and_then(|at| Some((at, bytes.get(at..)?.first_chunk::<4>()?)))
        else {
            break;
        };
        let is_part = protocol == FRAGMENT && u16::from_be_bytes([header[2], header[3]]) & 0xfff9 != 0;
        let length = if protocol == FRAGMENT { 8 } else { 8 + usize::from(header[1]) * 8 };
        protocol = header[0];
        payload = Some(at + length).filter(|at| !is_part && *at <= bytes.len());
    }
    Some(Parts { addresses: 8..40, protocol, payload })
}

/// Parses a packet. Returns `None` if it is not an IP packet of the stated length.
pub fn parse(bytes: &[u8]) -> Option<Header> {
    let Parts { addresses, protocol, payload } = parts(bytes)?;
    let (source, destination) = bytes[addresses.clone()].split_at(addresses.len() / 2);
    let has_ports = matches!(protocol, TCP | UDP);
    let ports = payload.filter(|_| has_ports).and_then(|at| bytes.get(at..at + 4)).unwrap_or(&[]);
    let ecn = if is_6(bytes) { bytes[1] >> 4 } else { bytes[1] };
    Some(Header {
        source: address(source)?,
        destination: address(destination)?,
        port: ports.last_chunk().map_or(0, |port| u16::from_be_bytes(*port)),
        flow: hash(std::iter::once(&protocol).chain(&bytes[addresses]).chain(ports)),
        ecn: match ecn & ECN {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        },
    })
}

fn is_6(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first >> 4 == 6)
}

/// Returns the address in 4 or 16 bytes.
pub(crate) fn address(bytes: &[u8]) -> Option<IpAddr> {
    let of_4 = |bytes: [u8; 4]| Ipv4Addr::from(bytes).into();
    let of_6 = |bytes: [u8; 16]| Ipv6Addr::from(bytes).into();
    bytes.try_into().map(of_4).or_else(|_| bytes.try_into().map(of_6)).ok()
}

/// Returns whether packets to an address stay in the local network (RFC 5771, 4; RFC 4291, 2.5.6 and 2.7).
pub(crate) fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_broadcast() || address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => {
            address.is_unicast_link_local() || address.is_multicast() && address.octets()[1] & 0x0f <= 2
        }
    }
}

/// Sets the congestion mark of a packet that [`parse`] accepted, and corrects the header checksum (RFC 1624, 3).
pub fn mark(bytes: &mut [u8]) {
    if is_6(bytes) {
        bytes[1] |= ECN_6;
        return;
    }
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

/// Returns the sum of a packet's addresses, protocol and length of the payload, which checksums of TCP and UDP also cover
/// (RFC 9293, 3.1; RFC 8200, 8.1). The packet has a whole fixed header.
pub(crate) fn pseudo_header(bytes: &[u8], protocol: u8, payload: usize) -> u16 {
    let addresses = if is_6(bytes) { 8..40 } else { 12..20 };
    let [high, low] = (payload as u16).to_be_bytes();
    sum(sum(0, &bytes[addresses]), &[0, protocol, high, low])
}

/// Sets the stated length of a packet. In IPv4 it also adds `number` to the identification, and sets the header checksum.
pub(crate) fn renumber(header: &mut [u8], total: usize, number: u16) {
    if is_6(header) {
        header[4..6].copy_from_slice(&((total - FIXED_6) as u16).to_be_bytes());
        return;
    }
    header[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    let identification = u16::from_be_bytes([header[4], header[5]]).wrapping_add(number);
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[10..12].fill(0);
    let checksum = !sum(0, header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Returns whether a packet has only its fixed header before a payload that begins at this place.
pub(crate) fn is_plain(bytes: &[u8], payload: usize) -> bool {
    payload == if is_6(bytes) { FIXED_6 } else { FIXED }
}

/// Returns whether two packets without options have the same protocol, addresses and ports.
pub(crate) fn have_same_flow(one: &[u8], other: &[u8]) -> bool {
    let (protocol, ends) = if is_6(one) { (6, 8..44) } else { (9, 12..24) };
    is_6(one) == is_6(other)
        && one.get(protocol) == other.get(protocol)
        && one.get(ends.clone()) == other.get(ends)
}

/// Returns whether the header of a packet is that of the first packet of a series, apart from its lengths, and has the
/// identification of the packet with this number. Both are of the same flow.
pub(crate) fn continues(first: &[u8], bytes: &[u8], number: usize) -> bool {
    let same = |range: Range<usize>| first[range.clone()] == bytes[range];
    let identification = |of: &[u8]| u16::from_be_bytes([of[4], of[5]]);
    match is_6(first) {
        true => same(0..4) && same(6..8),
        false => {
            same(0..2)
                && same(6..10)
                && identification(bytes) == identification(first).wrapping_add(number as u16)
        }
    }
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
    pub(crate) fn udp(
        source: impl Into<IpAddr>,
        destination: impl Into<IpAddr>,
        ecn: u8,
        size: u16,
    ) -> Vec<u8> {
        let mut packet = vec![0; usize::from(size)];
        match (source.into(), destination.into()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                packet[..2].copy_from_slice(&[0x45, ecn]);
                packet[8..10].copy_from_slice(&[64, UDP]);
                packet[12..16].copy_from_slice(&source.octets());
                packet[16..20].copy_from_slice(&destination.octets());
                renumber(&mut packet[..20], usize::from(size), 0);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                packet[..2].copy_from_slice(&[0x60 | ecn >> 4, ecn << 4]);
                packet[6..8].copy_from_slice(&[UDP, 64]);
                packet[8..24].copy_from_slice(&source.octets());
                packet[24..40].copy_from_slice(&destination.octets());
                renumber(&mut packet[..40], usize::from(size), 0);
            }
            pair => panic!("no packet has these addresses: {pair:?}"),
        }
        packet
    }

    /// Inserts extension headers behind the fixed header of an IPv6 packet. The last one states the protocol of the packet.
    pub(crate) fn extend(packet: &[u8], first: u8, headers: &[u8]) -> Vec<u8> {
        let mut packet = [&packet[..40], headers, &packet[40..]].concat();
        packet[6] = first;
        let total = packet.len();
        renumber(&mut packet[..40], total, 0);
        packet
    }

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 0, 2];
    const A_6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 1);
    const B_6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 2);

    /// Returns packets of both versions with this ECN field, and the length of their headers.
    fn both(ecn: u8) -> [(Vec<u8>, usize); 2] {
        [(udp(A, B, ecn, 100), 20), (udp(A_6, B_6, ecn, 100), 40)]
    }

    fn parsed(packet: &[u8]) -> Header {
        parse(packet).unwrap_or_else(|| panic!("this is a packet: {packet:?}"))
    }

    #[test]
    fn addresses_and_ecn_capability_are_parsed() {
        let ends = both(0).map(|(packet, _)| (parsed(&packet).source, parsed(&packet).destination));
        assert_eq!(ends, [(A.into(), B.into()), (A_6.into(), B_6.into())]);
        for (bits, ecn) in [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)] {
            assert_eq!(both(bits).map(|(packet, _)| parsed(&packet).ecn), [ecn; 2]);
        }
    }

    #[test]
    fn ports_distinguish_flows_except_in_fragments() {
        for (one, headers) in both(0) {
            let mut other = one.clone();
            other[headers + 3] = 7;
            assert_eq!([parsed(&one).port, parsed(&other).port], [0, 7]);
            assert_ne!(parsed(&one).flow, parsed(&other).flow);
            // A later fragment has no ports.
            let [one, other] = [one, other].map(|packet| match headers {
                20 => [&packet[..7], &[9], &packet[8..]].concat(),
                _ => extend(&packet, FRAGMENT, &[UDP, 0, 0, 8, 0, 0, 0, 1]),
            });
            assert_eq!(parsed(&one), parsed(&other));
        }
    }

    #[test]
    fn extension_headers_precede_the_ports() {
        let plain = udp(A_6, B_6, 0, 100);
        let long = [[DESTINATION, 0].as_slice(), &[1; 6], &[UDP, 1], &[1; 14]].concat();
        let atomic = [UDP, 0, 0, 0, 0, 0, 0, 1];
        for (first, headers) in [(HOP_BY_HOP, &long[..]), (FRAGMENT, &atomic)] {
            let packet = extend(&plain, first, headers);
            assert_eq!(parsed(&packet), parsed(&plain));
            assert_eq!(parts(&packet).and_then(|parts| parts.payload), Some(40 + headers.len()));
        }
        let endless = extend(&plain, HOP_BY_HOP, &[HOP_BY_HOP, 0, 1, 4, 0, 0, 0, 0].repeat(50));
        let beyond = extend(&plain, HOP_BY_HOP, &[UDP, 255, 1, 4, 0, 0, 0, 0]);
        let cut = extend(&plain[..40], HOP_BY_HOP, &[UDP]);
        for packet in [endless, beyond, cut] {
            let header = parsed(&packet);
            assert_eq!((header.destination, header.port), (B_6.into(), 0), "it is forwarded");
        }
    }

    #[test]
    fn every_truncation_is_refused() {
        for (packet, _) in both(0) {
            assert!((0..100).all(|length| parse(&packet[..length]).is_none()));
        }
    }

    #[test]
    fn other_versions_and_short_headers_are_refused() {
        for first in [0x55, 0x65, 0x44, 0x4f] {
            let mut packet = udp(A, B, 0, 44);
            packet[0] = first;
            assert_eq!(parse(&packet), None, "{first:x}");
        }
    }

    #[test]
    fn local_addresses_are_those_that_routers_keep() {
        let local = ["224.0.0.22", "255.255.255.255", "fe80::1", "ff02::16", "ff01::1", "ff32::1"];
        let wide = ["224.0.1.1", "239.1.2.3", "10.9.0.1", "fd09::1", "ff05::2", "ff3e::1", "ff15::1"];
        for (addresses, expected) in [(local.as_slice(), true), (&wide, false)] {
            for text in addresses {
                assert_eq!(is_local(text.parse().expect("an address")), expected, "{text}");
            }
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
        fn mark_changes_only_the_ecn_field_of_ipv6(source: [u8; 16], destination: [u8; 16], class: u8, size in 40..1500u16) {
            let mut packet = udp(source, destination, class, size);
            mark(&mut packet);
            prop_assert_eq!(&packet, &udp(source, destination, class | 3, size));
            prop_assert_eq!(parsed(&packet).ecn, Ecn::Ce);
        }

        #[test]
        fn sum_of_a_packet_equals_the_sum_of_its_words(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(!sum(0, &bytes), checksum(&bytes));
        }

        #[test]
        fn parser_handles_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64), size in 40..80u16) {
            if parse(&bytes).is_some() {
                prop_assert!(matches!(bytes[0] >> 4, 4 | 6));
            }
            let extended = extend(&udp(A_6, B_6, 0, size), bytes.first().copied().unwrap_or_default(), &bytes);
            prop_assert_eq!(parsed(&extended).source, IpAddr::from(A_6));
        }
    }
}
