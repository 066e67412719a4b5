//! Packets that a host hands over as one: long TCP packets that a network card would split, and packets without checksums.
//!
//! The kernel puts a header (`virtio_net_hdr`) before every packet of a device.

use crate::ip;

/// Length of the kernel's header.
pub(crate) const PREFIX: usize = 10;
/// Flag: the checksum at a stated place lacks the sum of the bytes from a stated begin on.
const NEEDS_CHECKSUM: u8 = 1;
/// Kinds of packets that consist of several TCP packets, over IPv4 and IPv6.
const TCP_SEGMENTS: u8 = 1;
const TCP_SEGMENTS_6: u8 = 4;
/// Length of the fixed part of a TCP header.
pub(crate) const TCP_FIXED: usize = 20;
/// Maximum length of the headers of IP and TCP of a long packet.
const MAX_HEADERS: usize = 200;

/// Flags of TCP (RFC 9293, 3.1; RFC 3168, 6.1).
pub(crate) const FIN: u8 = 0x01;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const CWR: u8 = 0x80;

/// Returns the kernel's header of a packet whose headers have this length, and whose payload consists of segments of `size` bytes.
pub(crate) fn prefix_of_segments(packet: &[u8], headers: usize, size: usize) -> [u8; PREFIX] {
    let ([a, b], [c, d]) = ((headers as u16).to_ne_bytes(), (size as u16).to_ne_bytes());
    [0, kind_of_segments(packet), a, b, c, d, 0, 0, 0, 0]
}

/// Returns the kind of a long packet by the version of IP.
fn kind_of_segments(packet: &[u8]) -> u8 {
    if packet.first().is_some_and(|first| first >> 4 == 6) { TCP_SEGMENTS_6 } else { TCP_SEGMENTS }
}

/// The packets of one read from a device, one by one, each with its headers and checksums.
#[derive(Debug)]
pub(crate) struct Segments<'a> {
    bytes: &'a mut [u8],
    /// Headers of the long packet.
    header: [u8; MAX_HEADERS],
    headers: Headers,
    /// Length of the payload of each packet but the last.
    size: usize,
    /// Begin of the next packet, and its number. The headers of a packet take the place of bytes that the previous packet had.
    at: usize,
    number: u16,
}

impl<'a> Segments<'a> {
    /// Returns the packets in these bytes, which begin with the kernel's header.
    pub(crate) fn new(read: &'a mut [u8]) -> Segments<'a> {
        let (prefix, bytes) = read.split_at_mut(read.len().min(PREFIX));
        let field = |at: usize| {
            prefix.get(at..at + 2).map_or(0, |it| usize::from(u16::from_ne_bytes([it[0], it[1]])))
        };
        let (kind, size) = (prefix.get(1).copied().unwrap_or_default(), field(4));
        let mut header = [0; MAX_HEADERS];
        let is_long = kind == kind_of_segments(bytes) && size > 0;
        let headers = headers(bytes).filter(|it| is_long && it.all <= MAX_HEADERS).unwrap_or_default();
        header[..headers.all].copy_from_slice(&bytes[..headers.all]);
        if headers.all == 0 && prefix.first().is_some_and(|flags| flags & NEEDS_CHECKSUM != 0) {
            complete(bytes, field(6), field(8));
        }
        Segments { bytes, header, headers, size, at: 0, number: 0 }
    }

    /// Returns the next packet.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let (begin, Headers { network, all: headers }) = (self.at, self.headers);
        if headers == 0 {
            self.at = self.bytes.len();
            return Some(&self.bytes[begin..]).filter(|bytes| !bytes.is_empty());
        }
        let end = (begin + headers + self.size).min(self.bytes.len());
        if end <= begin + headers {
            return None;
        }
        let (is_first, is_last) = (begin == 0, end == self.bytes.len());
        let packet = &mut self.bytes[begin..end];
        packet[..headers].copy_from_slice(&self.header[..headers]);
        ip::renumber(&mut packet[..network], end - begin, self.number);
        let tcp = &mut packet[network..];
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(begin as u32);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        tcp[13] &= !(if is_first { 0 } else { CWR } | if is_last { 0 } else { FIN | PSH });
        tcp[16..18].fill(0);
        let checksum = !ip::sum(ip::pseudo_header(&self.header, ip::TCP, tcp.len()), tcp);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        (self.at, self.number) = (begin + self.size, self.number + 1);
        Some(packet)
    }
}

/// Lengths of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Headers {
    pub(crate) network: usize,
    /// The headers of network and TCP together.
    pub(crate) all: usize,
}

/// Returns the lengths of the headers of a TCP packet that is no fragment.
pub(crate) fn headers(bytes: &[u8]) -> Option<Headers> {
    let parts = ip::parts(bytes).filter(|parts| parts.protocol == ip::TCP)?;
    let network = parts.payload?;
    let length = usize::from(bytes.get(network + 12)? >> 4) * 4;
    let all = network + length;
    (length >= TCP_FIXED && all <= bytes.len()).then_some(Headers { network, all })
}

/// Completes the checksum at `offset` behind `start`, which lacks the sum of the bytes from `start` on.
fn complete(bytes: &mut [u8], start: usize, offset: usize) {
    let Some(covered) = bytes.get_mut(start..).filter(|covered| offset + 2 <= covered.len()) else { return };
    let checksum = match !ip::sum(0, covered) {
        0 => 0xffff, // zero stands for no checksum in UDP
        checksum => checksum,
    };
    covered[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ip::tests::{checksum, extend, udp};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    pub(crate) const ACK: u8 = 0x10;

    const FIRST_6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 1);

    /// The ends of connections of both versions.
    pub(crate) const ENDS: [[IpAddr; 2]; 2] = [
        [IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2))],
        [IpAddr::V6(FIRST_6), IpAddr::V6(Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 2))],
    ];

    /// Returns a packet for `size` bytes of payload in each segment, as the kernel hands it over.
    pub(crate) fn long_packet(
        [from, to]: [IpAddr; 2],
        payload: &[u8],
        options: usize,
        (size, flags): (usize, u8),
    ) -> Vec<u8> {
        let network = if from.is_ipv4() { 20 } else { 40 };
        let headers = network + 20 + options;
        let mut packet = udp(from, to, 2, headers as u16);
        if network == 20 {
            packet[4..10].copy_from_slice(&[0xff, 0xfe, 0x40, 0, 64, ip::TCP]);
        } else {
            packet[6] = ip::TCP;
        }
        let tcp = &mut packet[network..];
        tcp[..4].copy_from_slice(&[0x12, 0x34, 0x14, 0x51]);
        tcp[4..8].copy_from_slice(&(u32::MAX - 700).to_be_bytes());
        (tcp[12], tcp[13]) = (((20 + options) << 2) as u8, flags);
        tcp[20..].fill(1);
        packet.extend_from_slice(payload);
        let total = packet.len();
        ip::renumber(&mut packet[..network], total, 0);
        let mut read = prefix_of_segments(&packet, headers, size).to_vec();
        read[0] = NEEDS_CHECKSUM;
        read.extend(packet);
        read
    }

    /// Sets the checksum of a TCP packet, whose network header has no options.
    pub(crate) fn seal(packet: &mut [u8]) {
        let (network, addresses) = if packet[0] >> 4 == 4 { (20, 12..20) } else { (40, 8..40) };
        packet[network + 16..network + 18].fill(0);
        let length = ((packet.len() - network) as u16).to_be_bytes();
        let sum = checksum(&[&packet[addresses], &[0, ip::TCP], &length, &packet[network..]].concat());
        packet[network + 16..network + 18].copy_from_slice(&sum.to_be_bytes());
    }

    #[test]
    fn segments_have_places_flags_and_checksums_of_their_own() {
        let payload: Vec<u8> = (0..2_500).map(|number| (number / 7) as u8).collect();
        for (ends, network) in ENDS.into_iter().zip([20, 40]) {
            let mut read = long_packet(ends, &payload, 12, (1_000, CWR | ACK | PSH | FIN));
            let (mut segments, mut number) = (Segments::new(&mut read), 0);
            while let Some(packet) = segments.next() {
                let tcp = &packet[network..];
                assert_eq!(tcp[13], [CWR | ACK, ACK, ACK | PSH | FIN][number], "{number}");
                let sequence = (u32::MAX - 700).wrapping_add(number as u32 * 1_000);
                assert_eq!(tcp[4..8], sequence.to_be_bytes());
                assert_eq!(tcp[20..32], [1; 12], "options");
                assert_eq!(tcp[32..], payload[number * 1_000..(number * 1_000 + 1_000).min(2_500)]);
                assert!(ip::parse(packet).is_some(), "it has the stated length");
                if network == 20 {
                    assert_eq!(packet[4..6], (0xfffe_u16.wrapping_add(number as u16)).to_be_bytes());
                    assert_eq!(checksum(&packet[..20]), 0);
                }
                let mut sealed = packet.to_vec();
                seal(&mut sealed);
                assert_eq!(packet, sealed);
                number += 1;
            }
            assert_eq!(number, 3);
        }
    }

    #[test]
    fn long_packet_with_extension_headers_is_split_behind_them() {
        let long = long_packet(ENDS[1], &[7; 2_500], 0, (1_000, ACK));
        for (options, count) in [(8, 3), (200, 1)] {
            let header = [&[ip::TCP, (options / 8 - 1) as u8][..], &vec![0; options - 2]].concat();
            let mut read = [&long[..PREFIX], &extend(&long[PREFIX..], 60, &header)].concat();
            read[0] = 0; // the checksum is complete
            let mut segments = Segments::new(&mut read);
            let mut sizes = Vec::new();
            while let Some(packet) = segments.next() {
                assert_eq!(ip::parts(packet).and_then(|parts| parts.payload), Some(40 + options));
                sizes.push(packet.len() - 60 - options);
            }
            assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (count, 2_500), "{options}");
        }
    }

    #[test]
    fn missing_checksum_of_a_packet_is_completed() {
        for ([from, to], network) in ENDS.into_iter().zip([20, 40]) {
            let mut datagram = udp(from, to, 0, network as u16 + 9);
            datagram[network + 8] = 0xff;
            // The kernel has put the sum of the pseudo-header into the field.
            let partial = ip::pseudo_header(&datagram, 17, 9);
            datagram[network + 6..network + 8].copy_from_slice(&partial.to_be_bytes());
            let places = [(network as u16).to_ne_bytes(), 6u16.to_ne_bytes()].concat();
            let mut read = [&[NEEDS_CHECKSUM, 0, 0, 0, 0, 0][..], &places].concat();
            read.extend(&datagram);
            let mut segments = Segments::new(&mut read);
            let packet = segments.next().expect("a packet").to_vec();
            assert_eq!(segments.next(), None);
            assert_eq!(packet[..network + 6], datagram[..network + 6]);
            let addresses = if network == 20 { 12..20 } else { 8..40 };
            let covered = [&packet[addresses], &[0, 17, 0, 9], &packet[network..]].concat();
            assert_eq!(checksum(&covered), 0);
        }
    }

    #[test]
    fn reads_of_any_bytes_are_handled() {
        for ends in ENDS {
            let read = long_packet(ends, &[1; 100], 40, (30, ACK));
            for length in 0..read.len() {
                for (place, value) in
                    [(0, 1), (1, 1), (1, 4), (6, 255), (10, 0x4f), (16, 0), (42, 0xf0), (62, 0xf0)]
                {
                    let mut read = read[..length].to_vec();
                    if let Some(byte) = read.get_mut(place) {
                        *byte = value;
                    }
                    let (mut segments, mut count) = (Segments::new(&mut read), 0);
                    while segments.next().is_some() {
                        count += 1;
                    }
                    assert!(count <= 4, "{length} {place}");
                }
            }
        }
    }
}
