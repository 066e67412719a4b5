//! A packet transform through the wire format: every packet of a session is encoded and decoded. The simulation then uses the
//! values that packets carry on a real network, including rounding.

use faircast_core::packet::{Body, Layer, Packet, Payload, SessionId};
use faircast_sim::network::PacketTransform;
use faircast_wire::encode::FEEDBACK_LIMIT;
use faircast_wire::{DataPacket, Message, Newest, Quantised, encode, encode_data, parse};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Changes that the wire format made to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Differences {
    /// Number of transformed packets.
    pub packets: u64,
    /// Number of packets that did not change.
    pub same: u64,
    /// Number of packets with values that were rounded to the precision of the wire format. The relative precision of rates and
    /// levels is 1/2048; times are in microseconds.
    pub rounded: u64,
    /// Number of packets that changed in another way.
    pub wrong: u64,
    /// Number of packets that could not be encoded or decoded; they remain unchanged.
    pub refused: u64,
}

impl Differences {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Differences) {
        self.packets += other.packets;
        self.same += other.same;
        self.rounded += other.rounded;
        self.wrong += other.wrong;
        self.refused += other.refused;
    }
}

/// Shared counts of a [`RoundTrip`].
#[derive(Debug, Clone, Default)]
pub struct Counts(Arc<Mutex<Differences>>);

impl Counts {
    /// Returns the counts so far.
    pub fn get(&self) -> Differences {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Transform that encodes and decodes every packet.
#[derive(Debug, Default)]
pub struct RoundTrip {
    buffer: Vec<u8>,
    newest: BTreeMap<(SessionId, Layer), Newest>,
    counts: Counts,
}

impl RoundTrip {
    /// Returns a transform and its counts.
    pub fn new() -> (RoundTrip, Counts) {
        let passage = RoundTrip::default();
        let counts = passage.counts.clone();
        (passage, counts)
    }
}

/// Encodes a session's packet into `out`. Returns `None` if the wire format cannot represent the packet.
pub(crate) fn to_wire(out: &mut Vec<u8>, packet: &Packet, payload: &[u8]) -> Option<()> {
    match &packet.body {
        Body::Data(data) => {
            let symbols = u16::from(data.payload != Payload::NONE);
            let message = DataPacket { data: *data, layer: packet.layer, symbols, payload };
            encode_data(out, packet.session, &message).ok()
        }
        Body::Report(report) => {
            encode(out, packet.session, 0, &Message::Report(*report), FEEDBACK_LIMIT).ok().map(|_| ())
        }
        Body::Order(_) => None,
    }
}

impl PacketTransform for RoundTrip {
    fn pass(&mut self, packet: &Packet) -> Packet {
        self.buffer.clear();
        let newest = self.newest.entry((packet.session, packet.layer)).or_default();
        let read = to_wire(&mut self.buffer, packet, &[]).and_then(|()| parse(&self.buffer, newest).ok());
        let body = match read {
            Some((_, Message::Data(read))) => {
                newest.learn(&read.data);
                Some(Body::Data(read.data))
            }
            Some((_, Message::Report(report))) => Some(Body::Report(report)),
            _ => None,
        };
        let mut counts = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.packets += 1;
        match body {
            None => {
                counts.refused += 1;
                *packet
            }
            Some(body) => {
                match (&packet.body, &body) {
                    (sent, got) if sent == got => counts.same += 1,
                    (sent, got) if is_rounded(sent, got) => counts.rounded += 1,
                    _ => counts.wrong += 1,
                }
                Packet { body, ..*packet }
            }
        }
    }
}

/// Returns whether the packets differ only by the rounding of the wire format.
fn is_rounded(sent: &Body, got: &Body) -> bool {
    match (sent, got) {
        (Body::Data(sent), Body::Data(got)) => sent.quantised() == *got,
        (Body::Report(sent), Body::Report(got)) => sent.quantised() == *got,
        _ => false,
    }
}
