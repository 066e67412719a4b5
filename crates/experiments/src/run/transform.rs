//! A packet transform: lets every packet of a session go through the wire format: what the simulator studies is then what a real network
//! carries, roundings included.

use faircast_core::half;
use faircast_core::packet::{
    Body, Data, Echo, Layer, Mark, Packet, Payload, Report, ReportContent, SessionId,
};
use faircast_core::time::{Span, Time};
use faircast_sim::network::PacketTransform;
use faircast_wire::{DataPacket, Message, Newest, encode, encode_data, parse};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What the wire format did to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Differences {
    /// Packets that went through.
    pub packets: u64,
    /// Came out to the last bit as they went in.
    pub same: u64,
    /// Came out with numbers rounded to what the format carries: rates and levels to 1/2048, times to microseconds.
    pub rounded: u64,
    /// Came out as something else.
    pub wrong: u64,
    /// Could not be encoded or decoded, and travelled as they were.
    pub refused: u64,
}

impl Differences {
    /// Count these, too.
    pub fn add(&mut self, other: &Differences) {
        self.packets += other.packets;
        self.same += other.same;
        self.rounded += other.rounded;
        self.wrong += other.wrong;
        self.refused += other.refused;
    }
}

/// Where a [`RoundTrip`] counts.
#[derive(Debug, Clone, Default)]
pub struct Counts(Arc<Mutex<Differences>>);

impl Counts {
    /// So far.
    pub fn get(&self) -> Differences {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Encodes and decodes every packet.
#[derive(Debug, Default)]
pub struct RoundTrip {
    buffer: Vec<u8>,
    newest: BTreeMap<(SessionId, Layer), Newest>,
    counts: Counts,
}

impl RoundTrip {
    /// A passage, and where it counts.
    pub fn new() -> (RoundTrip, Counts) {
        let passage = RoundTrip::default();
        let counts = passage.counts.clone();
        (passage, counts)
    }
}

/// Most bytes of a report.
const REPORT_LIMIT: usize = 1232;

/// The wire form of a session's packet; `None` when the format cannot say it.
pub(crate) fn to_wire(out: &mut Vec<u8>, packet: &Packet, payload: &[u8]) -> Option<()> {
    match &packet.body {
        Body::Data(data) => {
            let symbols = u16::from(data.payload != Payload::NONE);
            let message = DataPacket { data: *data, layer: packet.layer, symbols, payload };
            encode_data(out, packet.session, &message).ok()
        }
        Body::Report(report) => {
            encode(out, packet.session, 0, &Message::Report(*report), REPORT_LIMIT).ok().map(|_| ())
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

/// Whether what came out is what went in but for the format's roundings.
fn is_rounded(sent: &Body, got: &Body) -> bool {
    match (sent, got) {
        (Body::Data(sent), Body::Data(got)) => {
            let same = Data { sent_at: got.sent_at, rate: got.rate, mark: got.mark, ..*sent };
            same == *got
                && time_is_near(sent.sent_at, got.sent_at)
                && near(sent.rate, got.rate)
                && mark_is_near(&sent.mark, &got.mark)
        }
        (Body::Report(sent), Body::Report(got)) => {
            let same = Report { content: got.content, ..*sent };
            same == *got && content_is_near(&sent.content, &got.content)
        }
        _ => false,
    }
}

fn near(sent: f32, got: f32) -> bool {
    let (sent, got) = (f64::from(sent), f64::from(got));
    sent == got
        || (sent - got).abs() <= sent.abs() * half::ERROR * 1.001
        || sent.abs() < 2e-6 && got.abs() < 2e-6
}

fn time_is_near(sent: Time, got: Time) -> bool {
    sent.since(got).as_nanos() + got.since(sent).as_nanos() <= 1_000
}

fn span_is_near(sent: Span, got: Span) -> bool {
    sent.as_nanos().abs_diff(got.as_nanos()) <= 1_000
}

fn echo_is_near(sent: Echo, got: Echo) -> bool {
    sent.seq == got.seq && span_is_near(sent.hold, got.hold)
}

fn mark_is_near(sent: &Mark, got: &Mark) -> bool {
    match (sent, got) {
        (
            Mark::Representative { id, mean, deviation, rtt_max },
            Mark::Representative { id: id2, mean: mean2, deviation: deviation2, rtt_max: rtt_max2 },
        ) => id == id2 && near(*mean, *mean2) && near(*deviation, *deviation2) && near(*rtt_max, *rtt_max2),
        (
            Mark::Equation { suppress_above, rtt_max, round, to, echo, limiting },
            Mark::Equation {
                suppress_above: above2,
                rtt_max: rtt_max2,
                round: round2,
                to: to2,
                echo: echo2,
                limiting: limiting2,
            },
        ) => {
            (round, to, echo, limiting) == (round2, to2, echo2, limiting2)
                && near(*suppress_above, *above2)
                && near(*rtt_max, *rtt_max2)
        }
        (
            Mark::Layered { id, mean, error, rtt, above, updates, states },
            Mark::Layered {
                id: id2,
                mean: mean2,
                error: error2,
                rtt: rtt2,
                above: above2,
                updates: updates2,
                states: standings2,
            },
        ) => {
            (id, above, updates, states) == (id2, above2, updates2, standings2)
                && near(*mean, *mean2)
                && near(*error, *error2)
                && near(*rtt, *rtt2)
        }
        (sent, got) => sent == got,
    }
}

fn content_is_near(sent: &ReportContent, got: &ReportContent) -> bool {
    match (sent, got) {
        (ReportContent::Alive(sent), ReportContent::Alive(got)) => echo_is_near(*sent, *got),
        (
            ReportContent::Congested { echo, level, mean, cause },
            ReportContent::Congested { echo: echo2, level: level2, mean: mean2, cause: cause2 },
        ) => cause == cause2 && echo_is_near(*echo, *echo2) && near(*level, *level2) && near(*mean, *mean2),
        (
            ReportContent::Received { echo, rate, loss },
            ReportContent::Received { echo: echo2, rate: rate2, loss: loss2 },
        ) => echo_is_near(*echo, *echo2) && near(*rate, *rate2) && (loss - loss2).abs() <= 1e-4,
        (
            ReportContent::Selective { echo, behind, bitmap, loss },
            ReportContent::Selective { echo: echo2, behind: behind2, bitmap: bitmap2, loss: loss2 },
        ) => {
            echo_is_near(*echo, *echo2)
                && (behind, bitmap) == (behind2, bitmap2)
                && (loss - loss2).abs() <= 1e-4
        }
        (
            ReportContent::Lost { echo, first, count, loss },
            ReportContent::Lost { echo: echo2, first: first2, count: count2, loss: loss2 },
        ) => {
            echo_is_near(*echo, *echo2) && (first, count) == (first2, count2) && (loss - loss2).abs() <= 1e-4
        }
        (
            ReportContent::Calculated { echo, rate, stamp, round, knows },
            ReportContent::Calculated {
                echo: echo2,
                rate: rate2,
                stamp: stamp2,
                round: round2,
                knows: knows2,
            },
        ) => {
            echo_is_near(*echo, *echo2)
                && (stamp, round, knows) == (stamp2, round2, knows2)
                && near(*rate, *rate2)
        }
        (
            ReportContent::Averaged { echo, mean, deviation, samples, rate, cause },
            ReportContent::Averaged {
                echo: echo2,
                mean: mean2,
                deviation: deviation2,
                samples: samples2,
                rate: rate2,
                cause: cause2,
            },
        ) => {
            echo_is_near(*echo, *echo2)
                && (samples, cause) == (samples2, cause2)
                && near(*mean, *mean2)
                && near(*deviation, *deviation2)
                && near(*rate, *rate2)
        }
        (sent, got) => sent == got,
    }
}
