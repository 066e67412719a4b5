//! Packets for one moment: TCP packets that follow one another are handed to their host as one, as a network card does.

use crate::ipv4;
use crate::net::Delivery;
use crate::split::{CWR, FIN, PREFIX, PSH, headers, prefix_of_segments};
use faircast_core::time::Time;

/// Maximum number of runs.
const MAX_RUNS: usize = 64;
/// Maximum length of an IPv4 packet.
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
    headers: usize,
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
        if self.arrivals.len() > 1 { prefix_of_segments(self.headers, self.size) } else { [0; PREFIX] }
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
        self.headers = headers(bytes).unwrap_or(bytes.len());
        self.size = bytes.len() - self.headers;
        let has_options = bytes[0] & 0x0f != 5;
        self.is_open = self.size > 0 && !has_options && bytes[33] & (FIN | SYN | RST | PSH | URG | CWR) == 0;
        if self.is_open {
            self.sum = sum_of_payload(bytes, self.headers);
        }
    }

    /// Returns whether the host, the protocol, the addresses and the ports are those of a packet.
    fn has_flow_of(&self, delivery: &Delivery<'_>) -> bool {
        let same = |from: usize, to: usize| self.bytes.get(from..to) == delivery.bytes.get(from..to);
        self.host == delivery.host && same(9, 10) && same(12, 24)
    }

    /// Appends a packet of the same flow, if it continues the run.
    fn append(&mut self, delivery: &Delivery<'_>) -> bool {
        let Delivery { at, bytes, .. } = *delivery;
        let (first, end) = (&self.bytes, self.headers);
        if !self.is_open || headers(bytes) != Some(end) {
            return false;
        }
        let so_far = first.len() - end;
        let same = |from: usize, to: usize| first[from..to] == bytes[from..to];
        let identification = |of: &[u8]| u16::from_be_bytes([of[4], of[5]]);
        let sequence = |of: &[u8]| u32::from_be_bytes([of[24], of[25], of[26], of[27]]);
        let payload = bytes.len() - end;
        // All of the headers but lengths, identification, sequence number, checksums, PSH and FIN.
        let follows = same(0, 2)
            && same(6, 10)
            && same(28, 33)
            && (first[33] ^ bytes[33]) & !(PSH | FIN) == 0
            && same(34, 36)
            && same(38, end)
            && identification(bytes) == identification(first).wrapping_add(self.arrivals.len() as u16)
            && sequence(bytes) == sequence(first).wrapping_add(so_far as u32)
            && (1..=self.size).contains(&payload)
            && first.len() + payload <= MAX_LENGTH;
        if !follows {
            return false;
        }
        let sum = sum_of_payload(bytes, end);
        let sum = if so_far.is_multiple_of(2) { sum } else { sum.swap_bytes() };
        self.sum = ipv4::sum(self.sum, &sum.to_be_bytes());
        self.is_open = payload == self.size && bytes[33] & (PSH | FIN) == 0;
        self.bytes[33] |= bytes[33];
        self.bytes.extend_from_slice(&bytes[end..]);
        self.arrivals.push(at);
        true
    }

    /// Adapts the headers to the payload of several packets. If a packet had a wrong checksum, the whole has one.
    fn finish(&mut self) {
        if self.arrivals.len() > 1 {
            let total = self.bytes.len();
            let (network, tcp) = self.bytes[..self.headers].split_at_mut(ipv4::FIXED);
            ipv4::renumber(network, total, 0);
            tcp[16..18].fill(0);
            let payload =
                ipv4::sum(self.sum, &ipv4::pseudo_header(network, total - ipv4::FIXED).to_be_bytes());
            let checksum = !ipv4::sum(payload, tcp);
            tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// Returns the sum of the payload of a TCP packet, from its checksum and its headers.
fn sum_of_payload(bytes: &[u8], headers: usize) -> u16 {
    !ipv4::sum(ipv4::pseudo_header(bytes, bytes.len() - ipv4::FIXED), &bytes[ipv4::FIXED..headers])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::tests::udp;
    use crate::split::Segments;
    use crate::split::tests::{ACK, long_packet, seal};
    use proptest::prelude::*;

    /// Returns the packets that a network card makes of a long packet with this payload.
    fn segments(payload: &[u8], options: usize, size: usize, flags: u8) -> Vec<Vec<u8>> {
        let (mut long, mut packets) = (long_packet(payload, options, size, flags), Vec::new());
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
        ) {
            let flags = ACK | if is_last { PSH | FIN } else { 0 };
            let packets = segments(&payload, options * 4, size, flags);
            prop_assert_eq!(packets.len(), payload.len().div_ceil(size));
            let mut whole = long_packet(&payload, options * 4, size, flags).split_off(PREFIX);
            seal(&mut whole);
            prop_assert_eq!(joined(&packets), [(packets.len(), whole)]);
        }
    }

    #[test]
    fn packets_that_differ_are_written_one_by_one() {
        let packets = segments(&[7; 4_000], 12, 1_000, ACK);
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut second = packets[1].clone();
            change(&mut second);
            let written = joined([&packets[0], &second, &packets[2]]);
            assert_eq!(written[1].1, second, "it is unchanged");
            written.iter().map(|(packets, _)| *packets).collect::<Vec<_>>()
        };
        assert_eq!(changed(&|packet| ipv4::mark(packet)), [1, 1, 1], "a congestion mark");
        for (place, field) in [(5, "identification"), (8, "time to live"), (27, "sequence number")] {
            assert_eq!(changed(&|packet| packet[place] ^= 1), [1, 1, 1], "{field}");
        }
        for (place, field) in [(31, "acknowledgement"), (35, "window"), (51, "time"), (33, "FIN")] {
            let written = changed(&|packet| packet[place] ^= if field == "FIN" { CWR } else { 1 });
            assert_eq!(written, [1, 1, 1], "{field}");
        }
        let lost = joined([&packets[0], &packets[2]]);
        assert_eq!(lost.len(), 2, "a packet between them is lost");
        assert_eq!(joined([&packets[0], &packets[1], &packets[3]])[0].0, 2);
    }

    #[test]
    fn flows_are_joined_apart_and_stay_in_order() {
        let packets = segments(&[7; 4_000], 0, 1_000, ACK);
        let mut other = packets.clone();
        other.iter_mut().for_each(|packet| packet[21] ^= 1);
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
