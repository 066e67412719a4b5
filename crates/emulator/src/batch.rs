//! Packets for one moment: TCP packets that follow one another are handed to their host as one, as a network card does.

use crate::ip;
use crate::net::Delivery;
use crate::split::{CWR, FIN, Headers, PREFIX, PSH, headers, prefix_of_segments};
use faircast_core::time::Time;

/// Maximum number of runs.
const MAX_RUNS: usize = 64;
/// Maximum length of an IP packet.
const MAX_LENGTH: usize = 65_535;
/// Flags of TCP that begin or interrupt a stream of data.
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const URG: u8 = 0x20;

/// Packets that have arrived. Packets of a flow stay in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The runs in use, and behind them runs whose memory is reused.
    runs: Vec<Run>,
    used: usize,
}

/// A packet, or packets of a TCP connection that follow one another and have equal headers, apart from their places in the stream.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Number of the host.
    pub(crate) host: usize,
    /// Times of arrival of the packets.
    pub(crate) arrivals: Vec<Time>,
    /// The headers of the first packet, and the payload of all packets.
    bytes: Vec<u8>,
    /// Whether another packet can follow.
    is_open: bool,
    headers: Headers,
    /// Length of the payload of each packet but the last.
    size: usize,
    /// Sum of the payload for the checksum.
    sum: u16,
}

impl Batch {
    /// Returns whether the batch has no space for another packet.
    pub(crate) fn is_full(&self) -> bool {
        self.used == MAX_RUNS
    }

    /// Adds a packet to a batch that is not full.
    pub(crate) fn add(&mut self, delivery: &Delivery<'_>) {
        let latest = self.runs[..self.used].iter_mut().rev().find(|run| run.has_flow_of(delivery));
        if latest.is_some_and(|run| run.append(delivery)) {
            return;
        }
        if self.runs.len() == self.used {
            self.runs.push(Run::default());
        }
        self.runs[self.used].begin(delivery);
        self.used += 1;
    }

    /// Empties the batch. Returns its runs in their order.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = &Run> {
        let used = std::mem::take(&mut self.used);
        self.runs[..used].iter_mut().map(|run| {
            run.finish();
            &*run
        })
    }
}

impl Run {
    /// Returns the kernel's header for the write.
    pub(crate) fn prefix(&self) -> [u8; PREFIX] {
        match self.arrivals.len() {
            0 | 1 => [0; PREFIX],
            _ => prefix_of_segments(&self.bytes, self.headers.all, self.size),
        }
    }

    /// Returns the packet for the write.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn begin(&mut self, delivery: &Delivery<'_>) {
        let Delivery { host, at, bytes } = *delivery;
        self.host = host;
        self.arrivals.clear();
        self.arrivals.push(at);
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        let headers = headers(bytes).filter(|it| ip::is_plain(bytes, it.network));
        self.headers = headers.unwrap_or_default();
        self.size = bytes.len() - self.headers.all;
        self.is_open = headers.is_some_and(|it| {
            self.size > 0 && bytes[it.network + 13] & (FIN | SYN | RST | PSH | URG | CWR) == 0
        });
        if self.is_open {
            self.sum = sum_of_payload(bytes, self.headers);
        }
    }

    /// Returns whether the host, the protocol, the addresses and the ports are those of a packet.
    fn has_flow_of(&self, delivery: &Delivery<'_>) -> bool {
        self.host == delivery.host && ip::have_same_flow(&self.bytes, delivery.bytes)
    }

    /// Appends a packet of the same flow, if it continues the run.
    fn append(&mut self, delivery: &Delivery<'_>) -> bool {
        let Delivery { at, bytes, .. } = *delivery;
        let Headers { network, all: end } = self.headers;
        if !self.is_open || headers(bytes) != Some(self.headers) {
            return false;
        }
        let (first, other) = (&self.bytes[network..end], &bytes[network..end]);
        let so_far = self.bytes.len() - end;
        let same = |from: usize, to: usize| first[from..to] == other[from..to];
        let sequence = |tcp: &[u8]| u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let payload = bytes.len() - end;
        // All of the headers but lengths, identification, sequence number, checksums, PSH and FIN.
        let follows = ip::continues(&self.bytes, bytes, self.arrivals.len())
            && same(8, 13)
            && (first[13] ^ other[13]) & !(PSH | FIN) == 0
            && same(14, 16)
            && same(18, end - network)
            && sequence(other) == sequence(first).wrapping_add(so_far as u32)
            && (1..=self.size).contains(&payload)
            && self.bytes.len() + payload <= MAX_LENGTH;
        if !follows {
            return false;
        }
        let flags = other[13];
        let sum = sum_of_payload(bytes, self.headers);
        let sum = if so_far.is_multiple_of(2) { sum } else { sum.swap_bytes() };
        self.sum = ip::sum(self.sum, &sum.to_be_bytes());
        self.is_open = payload == self.size && flags & (PSH | FIN) == 0;
        self.bytes[network + 13] |= flags;
        self.bytes.extend_from_slice(&bytes[end..]);
        self.arrivals.push(at);
        true
    }

    /// Adapts the headers to the payload of several packets. If a packet had a wrong checksum, the whole has one.
    fn finish(&mut self) {
        if self.arrivals.len() > 1 {
            let total = self.bytes.len();
            let (network, tcp) = self.bytes[..self.headers.all].split_at_mut(self.headers.network);
            ip::renumber(network, total, 0);
            tcp[16..18].fill(0);
            let pseudo_header = ip::pseudo_header(network, ip::TCP, total - network.len());
            let checksum = !ip::sum(ip::sum(self.sum, &pseudo_header.to_be_bytes()), tcp);
            tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// Returns the sum of the payload of a TCP packet, from its checksum and its headers.
fn sum_of_payload(bytes: &[u8], Headers { network, all }: Headers) -> u16 {
    !ip::sum(ip::pseudo_header(bytes, ip::TCP, bytes.len() - network), &bytes[network..all])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::tests::udp;
    use crate::split::Segments;
    use crate::split::tests::{ACK, ENDS, long_packet, seal};
    use proptest::prelude::*;
    use std::net::IpAddr;

    /// Returns the packets that a network card makes of a long packet with this payload.
    fn segments(ends: [IpAddr; 2], payload: &[u8], options: usize, kind: (usize, u8)) -> Vec<Vec<u8>> {
        let (mut long, mut packets) = (long_packet(ends, payload, options, kind), Vec::new());
        let mut segments = Segments::new(&mut long);
        while let Some(packet) = segments.next() {
            packets.push(packet.to_vec());
        }
        packets
    }

    /// Returns the packets for the writes, with the number of packets of each.
    fn joined<'a>(packets: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<(usize, Vec<u8>)> {
        let mut batch = Batch::default();
        let deliver = |bytes: &'a Vec<u8>| batch.add(&Delivery { host: 3, at: Time::ZERO, bytes });
        packets.into_iter().for_each(deliver);
        batch.take().map(|run| (run.arrivals.len(), run.bytes().to_vec())).collect()
    }

    proptest! {
        #[test]
        fn joined_segments_are_the_long_packet(
            payload in prop::collection::vec(any::<u8>(), 1..5_000),
            options in 0..11usize,
            size in 1..1_500usize,
            is_last: bool,
            version in 0..2usize,
        ) {
            let flags = ACK | if is_last { PSH | FIN } else { 0 };
            let (ends, kind) = (ENDS[version], (size, flags));
            let packets = segments(ends, &payload, options * 4, kind);
            prop_assert_eq!(packets.len(), payload.len().div_ceil(size));
            let mut whole = long_packet(ends, &payload, options * 4, kind).split_off(PREFIX);
            seal(&mut whole);
            prop_assert_eq!(joined(&packets), [(packets.len(), whole)]);
        }
    }

    #[test]
    fn packets_that_differ_are_written_one_by_one() {
        ENDS.into_iter().for_each(differing_packets_are_written_one_by_one);
    }

    fn differing_packets_are_written_one_by_one(ends: [IpAddr; 2]) {
        let packets = segments(ends, &[7; 4_000], 12, (1_000, ACK));
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut second = packets[1].clone();
            change(&mut second);
            let written = joined([&packets[0], &second, &packets[2]]);
            assert_eq!(written[1].1, second, "it is unchanged");
            written.iter().map(|(packets, _)| *packets).collect::<Vec<_>>()
        };
        assert_eq!(changed(&|packet| ip::mark(packet)), [1, 1, 1], "a congestion mark");
        let (in_network, tcp): (&[_], _) = match ends[0] {
            IpAddr::V4(_) => (&[(5, "identification"), (8, "time to live")], 20),
            IpAddr::V6(_) => (&[(3, "flow label"), (7, "hop limit")], 40),
        };
        for (place, field) in in_network.iter().chain(&[(tcp + 7, "sequence number")]) {
            assert_eq!(changed(&|packet| packet[*place] ^= 1), [1, 1, 1], "{field}");
        }
        for (place, field) in [(11, "acknowledgement"), (15, "window"), (31, "time"), (13, "FIN")] {
            let written = changed(&|packet| packet[tcp + place] ^= if field == "FIN" { CWR } else { 1 });
            assert_eq!(written, [1, 1, 1], "{field}");
        }
        let lost = joined([&packets[0], &packets[2]]);
        assert_eq!(lost.len(), 2, "a packet between them is lost");
        assert_eq!(joined([&packets[0], &packets[1], &packets[3]])[0].0, 2);
    }

    #[test]
    fn flows_are_joined_apart_and_stay_in_order() {
        let packets = segments(ENDS[0], &[7; 4_000], 0, (1_000, ACK));
        let mut other = packets.clone();
        other.iter_mut().for_each(|packet| packet[21] ^= 1);
        let newer = segments(ENDS[1], &[7; 4_000], 0, (1_000, ACK));
        let datagram = udp([10, 9, 0, 1], [10, 9, 0, 2], 0, 100);
        let (mut end, mut wrong) = (packets[2].clone(), packets[2].clone());
        end[33] |= PSH;
        wrong[50] ^= 1;
        let count = |packets: &[&Vec<u8>]| {
            joined(packets.iter().copied()).iter().map(|(packets, _)| *packets).collect::<Vec<_>>()
        };
        assert_eq!(
            count(&[&packets[0], &other[0], &packets[1], &datagram, &other[1], &datagram, &packets[2]]),
            [3, 2, 1, 1]
        );
        assert_eq!(count(&[&packets[0], &newer[0], &packets[1], &newer[1]]), [2, 2]);
        assert_eq!(count(&[&packets[0], &packets[1], &end, &packets[3]]), [3, 1], "PSH ends a run");
        let whole = &joined([&packets[0], &packets[1], &wrong])[0].1;
        let mut right = whole.clone();
        seal(&mut right);
        assert_ne!(*whole, right, "a wrong checksum stays wrong");
    }

    #[test]
    fn full_batch_says_so_and_is_reused() {
        let (mut batch, packet) = (Batch::default(), udp([10, 9, 0, 1], [10, 9, 0, 2], 0, 100));
        for _ in 0..2 {
            while !batch.is_full() {
                batch.add(&Delivery { host: 0, at: Time::ZERO, bytes: &packet });
            }
            assert_eq!(batch.take().filter(|run| run.bytes() == packet).count(), MAX_RUNS);
        }
    }
}
