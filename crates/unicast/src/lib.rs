//! Unicast flows that multicast shares bottlenecks with: TCP in its variants, TFRC, RAP and CMTCP.
//!
//! Pure state machines with the contract of [`faircast_core::node`]: one call, then read `departure` and `deadline` again. They
//! count whole packets, as the papers' simulators do; no bytes are carried.
//!
//! | module | what it holds |
//! |---|---|
//! | [`tcp`] | TCP: Tahoe, Reno, NewReno, SACK, Vegas, CUBIC, DCTCP, Prague, BBR |
//! | [`tfrc`] | TFRC, equation-based rates |
//! | [`rap`] | RAP, AIMD by rates |
//! | [`cmtcp`] | CMTCP, the formula's rate at fixed times |
//! | [`cocoon`] | COCOON: connections that share what they know of congestion |
//! | [`macroflow`] | TCP-Int and the Congestion Manager: connections under one window |
//! | [`coordination`] | such ways by name and options |
//! | `catalogue` | protocols by name and options |

#![forbid(unsafe_code)]

pub mod cmtcp;
pub mod cocoon;
pub mod coordination;
pub mod macroflow;
pub mod rap;
pub mod rtt;
pub mod tcp;
pub mod tfrc;

mod catalogue;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod pipe;

pub use catalogue::{AnySender, AnySink, CATALOGUE, Entry, Protocol};

use faircast_core::node::{Cx, Departure};
use faircast_core::time::{Rate, Span, Time};

/// A packet from a flow's sender to its receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Packet number, from 0.
    pub seq: u32,
    /// Kind of the packet, and its flags.
    pub flags: SegmentFlags,
    /// When it was sent, in the sender's time (the TCP timestamp; RFC 7323, 3).
    pub sent_at: Time,
    /// The sender's round-trip time, where the receiver needs it (TFRC); else zero.
    pub rtt: Span,
}

/// Flags of a [`Segment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentFlags(pub u16);

impl SegmentFlags {
    /// Opens the connection; carries no data.
    pub const SYN: SegmentFlags = SegmentFlags(1);
    /// Sent before (no round-trip sample; Karn).
    pub const AGAIN: SegmentFlags = SegmentFlags(1 << 1);
    /// Congestion window reduced (RFC 3168, 6.1.2).
    pub const CWR: SegmentFlags = SegmentFlags(1 << 2);
    /// ECN-capable (RFC 3168, 5): a queue may mark it where it would drop it.
    pub const ECT: SegmentFlags = SegmentFlags(1 << 3);

    /// Asks for a report at once (TFRC).
    pub const URGENT: SegmentFlags = SegmentFlags(1 << 4);

    /// With [`SegmentFlags::ECT`]: it is ECT(1), not ECT(0) (RFC 9331, 4.1).
    pub const ECT1: SegmentFlags = SegmentFlags(1 << 8);

    /// Says in which of its feedback rounds the sender is, modulo 8 (TFRC).
    pub const fn in_round(round: u32) -> SegmentFlags {
        SegmentFlags(((round & 7) as u16) << 5)
    }

    /// The sender's feedback round, modulo 8 (TFRC).
    pub const fn round(self) -> u8 {
        (self.0 >> 5 & 7) as u8
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: SegmentFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of flags.
    #[must_use]
    pub const fn with(self, other: SegmentFlags) -> SegmentFlags {
        SegmentFlags(self.0 | other.0)
    }
}

/// A packet from a flow's receiver to its sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Feedback {
    /// A TCP acknowledgement.
    Ack(Ack),
    /// A TFRC report (RFC 5348, 3.2.2).
    Rate(RateReport),
    /// A RAP acknowledgement, which CMTCP's receivers send as well.
    Rap(RapAck),
}

const _: () = assert!(size_of::<Feedback>() <= 48);
const _: () = assert!(size_of::<Segment>() <= 24);

/// A TCP acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// The next packet expected: all before it have arrived. 0 acknowledges the SYN alone.
    pub next: u32,
    /// The packet's timestamp that is echoed (RFC 7323, 4).
    pub echo: Time,
    /// Selective acknowledgements, `from..to`; the first holds the newest arrival, empty ones are `0..0` (RFC 2018).
    pub blocks: [(u32, u32); 3],
    /// An ECN echo (RFC 3168, 6.1.3).
    pub ece: bool,
    /// Acknowledges a SYN.
    pub syn: bool,
}

/// Report of a TFRC receiver, once per round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateReport {
    /// Send time of the newest packet received.
    pub echo: Time,
    /// How long ago that packet arrived.
    pub hold: Span,
    /// Received rate over the last round trip, in bytes per second.
    pub received: f32,
    /// Loss event rate, 0 to 1.
    pub loss: f32,
}

/// Acknowledgement of a RAP receiver for every packet. The last three count packets from 1; 0 means no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RapAck {
    /// The packet that arrived.
    pub seq: u32,
    /// Its timestamp.
    pub echo: Time,
    /// Highest packet of the newest run without loss.
    pub last_received: u32,
    /// Newest packet missing before that run.
    pub last_missing: u32,
    /// Highest packet received before that loss.
    pub previous_received: u32,
}

/// How a sender looks from outside, for probes. Nothing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SenderView {
    /// Congestion window in packets; 0 for senders without one.
    pub window: f64,
    /// Slow-start threshold in packets; 0 for senders without one.
    pub threshold: f64,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// Allowed rate; window over round-trip time where there is a window.
    pub rate: Rate,
    /// Packets sent, those sent again included.
    pub sent: u64,
    /// Packets sent again.
    pub again: u64,
    /// Packets known to have arrived, in order where the protocol keeps order.
    pub acked: u64,
    /// Reductions of window or rate.
    pub cuts: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// The sending end.
pub trait Sender {
    /// The connection opens now.
    fn start(&mut self, cx: &mut Cx<'_>);
    /// The application may have `packets` packets sent in all, from the connection's start ([`u32::MAX`]: no end).
    fn supply(&mut self, packets: u32, now: Time);
    /// When the next packet may leave; [`Departure::AfterReport`] for a full window or an empty supply. A window-limited
    /// sender that may send at once says [`Time::ZERO`].
    fn departure(&self) -> Departure;
    /// A packet leaves now.
    fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment;
    /// Feedback arrived.
    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>);
    /// When [`Sender::on_deadline`] wants to be called next.
    fn deadline(&self) -> Time;
    /// The deadline may have passed.
    fn on_deadline(&mut self, cx: &mut Cx<'_>);
    /// Returns the reductions of window or rate so far, as in [`SenderView::cuts`].
    fn cuts(&self) -> u32;
    /// How it looks.
    fn observe(&self) -> SenderView;
}

/// The receiving end.
pub trait Sink {
    /// A packet arrived; `marked` when a queue set its ECN mark. At most one packet of feedback answers at once.
    fn on_segment(&mut self, segment: &Segment, marked: bool, cx: &mut Cx<'_>) -> Option<Feedback>;
    /// When [`Sink::on_deadline`] wants to be called next.
    fn deadline(&self) -> Time;
    /// The deadline may have passed; feedback that is due.
    fn on_deadline(&mut self, cx: &mut Cx<'_>) -> Option<Feedback>;
    /// Packets delivered to the application: once each, in order where the protocol keeps order.
    fn delivered(&self) -> u64;
}
