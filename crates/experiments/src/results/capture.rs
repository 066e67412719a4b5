//! Packets of tapped links as pcapng, with the bytes that the packets would have on a real network.
//!
//! Node `n` has the address `10.x.y.z` with `x.y.z = n + 1`. Flow `f` has the group `232.x.y.z` with `x.y.z = f + 1`. Packets of
//! sessions are faircast packets in UDP. TCP packets have sequence numbers, timestamps and selective acknowledgements in bytes.
//! Packets of other unicast protocols have blank payloads. The two ECN bits include a mark by the queue of the tapped link. A
//! packet that was lost on the tapped link has a comment with the reason.

use super::pcapng::{LinkKind, PcapNg};
use super::transform::to_wire;
use crate::scenario::Layout;
use crate::scenario::plan::{FlowKind, RunPlan};
use faircast_aqm::Ecn;
use faircast_core::packet::{Body, Data, Packet, Payload};
use faircast_core::time::Time;
use faircast_sim::{Outcome, Tapped, TappedPacket};
use faircast_unicast::{Ack, Feedback, Protocol, Segment, SegmentFlags};

/// A captured run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Number of the point.
    pub point: usize,
    /// The seed.
    pub seed: u64,
    /// A pcapng file with one interface for each tapped link.
    pub bytes: Vec<u8>,
}

impl Capture {
    /// Returns the file name, such as `packets-p0-s1.pcapng`.
    pub fn file_name(&self) -> String {
        file_name(self.point, self.seed)
    }
}

pub(super) fn file_name(point: usize, seed: u64) -> String {
    format!("packets-p{point}-s{seed}.pcapng")
}

/// UDP port of sessions.
const SESSION_PORT: u16 = 4_747;
/// Port of unicast receivers.
const SINK_PORT: u16 = 5_001;
/// First port of unicast senders.
const SENDER_PORTS: u16 = 10_000;

/// Captures the packets of the tapped links.
pub(crate) fn capture(
    plan: &RunPlan,
    layout: &Layout,
    outcome: &Outcome,
    (point, seed): (usize, u64),
) -> Capture {
    let mut file = PcapNg::new(LinkKind::Ethernet, u32::MAX);
    layout.taps.iter().for_each(|link| file.interface(&layout.link_name(*link)));
    for tapped in &outcome.taps {
        let Some(interface) = layout.taps.iter().position(|link| *link == tapped.link.0) else { continue };
        let packet = frame(plan, layout, tapped);
        file.packet(interface as u32, tapped.at, &packet, tapped.lost);
    }
    Capture { point, seed, bytes: file.take() }
}

const UDP: u8 = 17;
const TCP: u8 = 6;
const ETHERNET: usize = 14;
const IPV4: usize = 20;

/// Returns the bytes of a session's packet. A data packet is padded to `room` bytes. Returns no bytes if the wire format cannot
/// represent the packet.
fn session_packet(packet: &Packet, room: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if to_wire(&mut bytes, packet, &[]).is_none() {
        return Vec::new();
    }
    let (Body::Data(data), true) = (&packet.body, room > bytes.len()) else { return bytes };
    // A session without an object has no symbols. In the wire format all payload bytes belong to a symbol, so a symbol is
    // invented.
    let payload = match data.payload {
        Payload::NONE => Payload { block: (data.seq.0 >> 8) as u32, symbol: (data.seq.0 & 0xff) as u32 },
        named => named,
    };
    let packet = Packet { body: Body::Data(Data { payload, ..*data }), ..*packet };
    let filling = vec![0; room - bytes.len()];
    bytes.clear();
    let again = to_wire(&mut bytes, &packet, &filling);
    debug_assert!(again.is_some(), "what fits without a payload fits with one");
    bytes
}

/// Returns an Ethernet frame.
fn frame(plan: &RunPlan, layout: &Layout, tapped: &Tapped) -> Vec<u8> {
    let number = tapped.flow.0;
    let flow = &layout.flows[number as usize];
    let size = usize::from(tapped.size);
    let host = |node: u32| address(10, node + 1);
    let receiver = flow.receivers.first().copied().unwrap_or_default();
    let sender_port = SENDER_PORTS + (number % 50_000) as u16;
    let (from, to, protocol, body) = match &tapped.what {
        TappedPacket::Session(packet) => {
            let (from, to) = match &packet.body {
                Body::Report(report) => {
                    let member = usize::try_from(report.from.get() - 1).unwrap_or(usize::MAX);
                    (host(flow.receivers.get(member).copied().unwrap_or(receiver)), host(flow.source))
                }
                Body::Data(_) | Body::Order(_) => (host(flow.source), address(232, number + 1)),
            };
            let bytes = session_packet(packet, size.saturating_sub(IPV4 + 8));
            (from, to, UDP, udp(SESSION_PORT, SESSION_PORT, &bytes))
        }
        TappedPacket::Segment(segment) => {
            let bytes = match is_tcp(plan, flow.group) {
                true => tcp_segment(sender_port, segment, size),
                false => udp(sender_port, SINK_PORT, &vec![0; size.saturating_sub(IPV4 + 8)]),
            };
            let protocol = if is_tcp(plan, flow.group) { TCP } else { UDP };
            (host(flow.source), host(receiver), protocol, bytes)
        }
        TappedPacket::Feedback(feedback) => {
            let payload = payload_of(plan.flows[flow.group].packet.into());
            let (protocol, bytes) = match feedback {
                Feedback::Ack(ack) => (TCP, tcp_ack(sender_port, ack, payload, tapped.at)),
                _ => (UDP, udp(SINK_PORT, sender_port, &vec![0; size.saturating_sub(IPV4 + 8)])),
            };
            (host(receiver), host(flow.source), protocol, bytes)
        }
        TappedPacket::Datagram(count) => {
            let mut payload = vec![0; size.saturating_sub(IPV4 + 8).max(4)];
            payload[..4].copy_from_slice(&count.to_be_bytes());
            (host(flow.source), host(receiver), UDP, udp(sender_port, SINK_PORT, &payload))
        }
    };
    let link = layout.links[tapped.link.0 as usize];
    let mut out = Vec::with_capacity(ETHERNET + size);
    match to {
        [232, b, c, d] => out.extend_from_slice(&[0x01, 0x00, 0x5e, b & 0x7f, c, d]),
        _ => out.extend_from_slice(&station(link.to)),
    }
    out.extend_from_slice(&station(link.from));
    out.extend_from_slice(&[0x08, 0x00]);
    ip(&mut out, (from, to), tapped.ecn, protocol, body);
    out
}

fn is_tcp(plan: &RunPlan, group: usize) -> bool {
    matches!(&plan.flows[group].kind, FlowKind::Unicast { protocol: Protocol::Tcp(_), .. })
}

fn address(first: u8, number: u32) -> [u8; 4] {
    let [_, b, c, d] = number.to_be_bytes();
    [first, b, c, d]
}

/// Returns a locally administered MAC address for a node.
fn station(node: u32) -> [u8; 6] {
    let [a, b, c, d] = (node + 1).to_be_bytes();
    [0x02, 0x00, a, b, c, d]
}

/// Writes an IPv4 packet around a UDP or TCP payload; fills in both checksums.
fn ip(out: &mut Vec<u8>, (from, to): ([u8; 4], [u8; 4]), ecn: Ecn, protocol: u8, mut body: Vec<u8>) {
    let length = (body.len() as u16).to_be_bytes();
    let pseudo = [&from[..], &to, &[0, protocol], &length, &body].concat();
    let place = if protocol == TCP { 16 } else { 6 };
    let sum = match checksum(&pseudo) {
        0 if protocol == UDP => 0xffff,
        sum => sum,
    };
    body[place..place + 2].copy_from_slice(&sum.to_be_bytes());
    let length = ((IPV4 + body.len()) as u16).to_be_bytes();
    // RFC 3168, 5, and RFC 9331, 4.1.
    let class = match ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    };
    let mut header = [&[0x45, class][..], &length, &[0, 0, 0x40, 0, 64, protocol, 0, 0], &from, &to].concat();
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(&body);
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) * 256 + u32::from(pair.get(1).copied().unwrap_or(0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let [from, to, length] = [from, to, length].map(u16::to_be_bytes);
    [&from[..], &to, &length, &[0, 0], payload].concat()
}

/// Bytes of the IPv4 header, the TCP header and a timestamp option.
const TCP_HEADERS: usize = IPV4 + 20 + 12;

/// Returns the number of data bytes in a TCP packet of this size.
fn payload_of(size: usize) -> usize {
    size.saturating_sub(TCP_HEADERS).max(1)
}

/// Returns the sequence number of the first byte of a TCP packet. The SYN has the sequence number 0.
fn sequence(packet: u32, payload: usize) -> u32 {
    packet.wrapping_mul(payload as u32).wrapping_add(1)
}

const ACK: u8 = 0x10;
const SYN: u8 = 0x02;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

fn tcp_segment(port: u16, segment: &Segment, size: usize) -> Vec<u8> {
    let payload = payload_of(size);
    let syn = segment.flags.has(SegmentFlags::SYN);
    let (number, acked) = if syn { (0, 0) } else { (sequence(segment.seq, payload), 1) };
    let mut flags = if syn { SYN } else { ACK };
    if segment.flags.has(SegmentFlags::CWR) {
        flags |= CWR;
    }
    let options = timestamps(segment.sent_at, Time::ZERO);
    let mut out = tcp(port, SINK_PORT, number, acked, flags, &options);
    out.extend(std::iter::repeat_n(0, if syn { 0 } else { payload }));
    out
}

fn tcp_ack(port: u16, ack: &Ack, payload: usize, now: Time) -> Vec<u8> {
    let mut options = timestamps(now, ack.echo);
    let blocks = ack.blocks.iter().filter(|(from, to)| from < to);
    let edges: Vec<u32> =
        blocks.flat_map(|(from, to)| [sequence(*from, payload), sequence(*to, payload)]).collect();
    if !edges.is_empty() {
        options.extend_from_slice(&[1, 1, 5, 2 + 4 * edges.len() as u8]);
        edges.iter().for_each(|edge| options.extend_from_slice(&edge.to_be_bytes()));
    }
    let (number, mut flags) = if ack.syn { (0, ACK | SYN) } else { (1, ACK) };
    if ack.ece {
        flags |= ECE;
    }
    tcp(SINK_PORT, port, number, if ack.syn { 1 } else { sequence(ack.next, payload) }, flags, &options)
}

/// Timestamps of RFC 7323, 3.2, in milliseconds.
fn timestamps(value: Time, echo: Time) -> Vec<u8> {
    let millis = |time: Time| ((time.as_nanos() / 1_000_000) as u32).to_be_bytes();
    [&[1, 1, 8, 10][..], &millis(value), &millis(echo)].concat()
}

fn tcp(from: u16, to: u16, number: u32, acked: u32, flags: u8, options: &[u8]) -> Vec<u8> {
    let ([from, to], [number, acked]) =
        ([from, to].map(u16::to_be_bytes), [number, acked].map(u32::to_be_bytes));
    let rest = [((20 + options.len()) / 4) as u8 * 16, flags, 0xff, 0xff, 0, 0, 0, 0];
    [&from[..], &to, &number, &acked, &rest, options].concat()
}
