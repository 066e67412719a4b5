//! Packets that a host hands over as one: long TCP packets that a network card would split, and packets without checksums.
//!
//! The kernel puts a header (`virtio_net_hdr`) before every packet of a device.

use crate::ipv4;

/// Length of the kernel's header.
pub(crate) const PREFIX: usize = 10;
/// Flag: the checksum at a stated place lacks the sum of the bytes from a stated begin on.
const NEEDS_CHECKSUM: u8 = 1;
/// Kind of a packet that consists of several TCP packets.
const TCP_SEGMENTS: u8 = 1;
/// Length of the fixed part of a TCP header.
pub(crate) const TCP_FIXED: usize = 20;
/// Maximum length of the headers of IP and TCP.
const MAX_HEADERS: usize = 120;

/// Flags of TCP (RFC 9293, 3.1; RFC 3168, 6.1).
pub(crate) const FIN: u8 = 0x01;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const CWR: u8 = 0x80;

/// Returns the kernel's header of a packet whose headers have this length, and whose payload consists of segments of `size` bytes.
pub(crate) fn prefix_of_segments(headers: usize, size: usize) -> [u8; PREFIX] {
    let ([a, b], [c, d]) = ((headers as u16).to_ne_bytes(), (size as u16).to_ne_bytes());
    [0, TCP_SEGMENTS, a, b, c, d, 0, 0, 0, 0]
}

/// The packets of one read from a device, one by one, each with its headers and checksums.
#[derive(Debug)]
pub(crate) struct Segments<'a> {
    bytes: &'a mut [u8],
    /// Headers of the long packet.
    header: [u8; MAX_HEADERS],
    headers: usize,
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
        let headers = headers(bytes).filter(|_| kind == TCP_SEGMENTS && size > 0).unwrap_or(0);
        header[..headers].copy_from_slice(&bytes[..headers]);
        if headers == 0 && prefix.first().is_some_and(|flags| flags & NEEDS_CHECKSUM != 0) {
            complete(bytes, field(6), field(8));
        }
        Segments { bytes, header, headers, size, at: 0, number: 0 }
    }

    /// Returns the next packet.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let (begin, headers) = (self.at, self.headers);
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
        let network = usize::from(packet[0] & 0x0f) * 4;
        ipv4::renumber(&mut packet[..network], end - begin, self.number);
        let tcp = &mut packet[network..];
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(begin as u32);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        tcp[13] &= !(if is_first { 0 } else { CWR } | if is_last { 0 } else { FIN | PSH });
        tcp[16..18].fill(0);
        let checksum = !ipv4::sum(ipv4::pseudo_header(&self.header, tcp.len()), tcp);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        (self.at, self.number) = (begin + self.size, self.number + 1);
        Some(packet)
    }
}

/// Returns the length of the headers of a TCP packet that is no fragment.
pub(crate) fn headers(bytes: &[u8]) -> Option<usize> {
    let network = usize::from(bytes.first()? & 0x0f) * 4;
    let is_tcp = bytes[0] >> 4 == 4
        && network >= ipv4::FIXED
        && bytes.get(9) == Some(&ipv4::TCP)
        && bytes[6] & 0x3f | bytes[7] == 0;
    let length = usize::from(bytes.get(network + 12)? >> 4) * 4;
    (is_tcp && length >= TCP_FIXED && network + length <= bytes.len()).then_some(network + length)
}

/// Completes the checksum at `offset` behind `start`, which lacks the sum of the bytes from `start` on.
fn complete(bytes: &mut [u8], start: usize, offset: usize) {
    let Some(covered) = bytes.get_mut(start..).filter(|covered| offset + 2 <= covered.len()) else { return };
    let checksum = match !ipv4::sum(0, covered) {
        0 => 0xffff, // zero stands for no checksum in UDP
        checksum => checksum,
    };
    covered[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ipv4::tests::checksum;

    pub(crate) const ACK: u8 = 0x10;

    /// Returns a packet for `size` bytes of payload in each segment, as the kernel hands it over.
    pub(crate) fn long_packet(payload: &[u8], options: usize, size: usize, flags: u8) -> Vec<u8> {
        let headers = 40 + options;
        let mut packet = vec![0; headers];
        packet[..10].copy_from_slice(&[0x45, 2, 0, 0, 0xff, 0xfe, 0x40, 0, 64, 6]);
        packet[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
        packet[20..24].copy_from_slice(&[0x12, 0x34, 0x14, 0x51]);
        packet[24..28].copy_from_slice(&(u32::MAX - 700).to_be_bytes());
        (packet[32], packet[33]) = (((headers - 20) << 2) as u8, flags);
        packet[40..].fill(1);
        packet.extend_from_slice(payload);
        let total = packet.len();
        ipv4::renumber(&mut packet[..20], total, 0);
        let mut read = prefix_of_segments(headers, size).to_vec();
        read[0] = NEEDS_CHECKSUM;
        read.extend(packet);
        read
    }

    /// Sets the checksum of a TCP packet, whose network header has no options.
    pub(crate) fn seal(packet: &mut [u8]) {
        packet[36..38].fill(0);
        let length = (packet.len() as u16 - 20).to_be_bytes();
        let sum = checksum(&[&packet[12..20], &[0, 6], &length, &packet[20..]].concat());
        packet[36..38].copy_from_slice(&sum.to_be_bytes());
    }

    #[test]
    fn segments_have_places_flags_and_checksums_of_their_own() {
        let payload: Vec<u8> = (0..2_500).map(|number| (number / 7) as u8).collect();
        let mut read = long_packet(&payload, 12, 1_000, CWR | ACK | PSH | FIN);
        let (mut segments, mut number) = (Segments::new(&mut read), 0);
        while let Some(packet) = segments.next() {
            let flags = [CWR | ACK, ACK, ACK | PSH | FIN][number];
            assert_eq!(packet[33], flags, "{number}");
            assert_eq!(packet[4..6], (0xfffe_u16.wrapping_add(number as u16)).to_be_bytes());
            let sequence = (u32::MAX - 700).wrapping_add(number as u32 * 1_000);
            assert_eq!(packet[24..28], sequence.to_be_bytes());
            assert_eq!(packet[40..52], [1; 12], "options");
            assert_eq!(packet[52..], payload[number * 1_000..(number * 1_000 + 1_000).min(2_500)]);
            assert!(ipv4::parse(packet).is_some() && checksum(&packet[..20]) == 0);
            let mut sealed = packet.to_vec();
            seal(&mut sealed);
            assert_eq!(packet, sealed);
            number += 1;
        }
        assert_eq!(number, 3);
    }

    #[test]
    fn missing_checksum_of_a_packet_is_completed() {
        let mut datagram = crate::ipv4::tests::udp([10, 9, 0, 1], [10, 9, 0, 2], 0, 29);
        datagram[28] = 0xff;
        // The kernel has put the sum of the pseudo-header into the field.
        let partial = ipv4::pseudo_header(&datagram, 9);
        datagram[26..28].copy_from_slice(&partial.to_be_bytes());
        let mut read =
            [&[NEEDS_CHECKSUM, 0, 0, 0, 0, 0][..], &20u16.to_ne_bytes(), &6u16.to_ne_bytes()].concat();
        read.extend(&datagram);
        let mut segments = Segments::new(&mut read);
        let packet = segments.next().expect("a packet").to_vec();
        assert_eq!(segments.next(), None);
        assert_eq!(packet[..26], datagram[..26]);
        assert_eq!(checksum(&[&packet[12..20], &[0, 17, 0, 9], &packet[20..]].concat()), 0);
    }

    #[test]
    fn reads_of_any_bytes_are_handled() {
        let read = long_packet(&[1; 100], 40, 30, ACK);
        for length in 0..read.len() {
            for (place, value) in [(0, 1), (1, 1), (6, 255), (10, 0x4f), (42, 0xf0)] {
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
