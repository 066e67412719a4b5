//! Unicast flows that share bottlenecks with multicast: TCP in its variants, TFRC, RAP and CMTCP.
//!
//! Pure state machines with the contract of [`faircast_core::node`]: make one call, then read `departure` and `deadline` again.
//! They count whole packets, like the papers' simulators; packets have no content.
//!
//! | module | content |
//! |---|---|
//! | [`tcp`] | TCP: Tahoe, Reno, NewReno, SACK, Vegas, CUBIC, DCTCP, Prague, BBR |
//! | [`tfrc`] | TFRC, equation-based rates |
//! | [`rap`] | RAP, AIMD by rates |
//! | [`cmtcp`] | CMTCP, the formula's rate at fixed times |
//! | [`cocoon`] | COCOON: connections that share information about congestion |
//! | [`macroflow`] | TCP-Int and the Congestion Manager: connections under one window |
//! | [`coordination`] | methods of sharing by name and options |
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
    /// Time of sending by the sender's clock (the TCP timestamp; RFC 7323, 3).
    pub sent_at: Time,
    /// The sender's round-trip time if the receiver needs it (TFRC); otherwise zero.
    pub rtt: Span,
}

/// Flags of a [`Segment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentFlags(pub u16);

impl SegmentFlags {
    /// Opens the connection; carries no data.
    pub const SYN: SegmentFlags = SegmentFlags(1);
    /// Retransmission (no round-trip sample; Karn).
    pub const AGAIN: SegmentFlags = SegmentFlags(1 << 1);
    /// Congestion window reduced (RFC 3168, 6.1.2).
    pub const CWR: SegmentFlags = SegmentFlags(1 << 2);
    /// ECN-capable (RFC 3168, 5): a queue may mark it where it would drop it.
    pub const ECT: SegmentFlags = SegmentFlags(1 << 3);

    /// Requests an immediate report (TFRC).
    pub const URGENT: SegmentFlags = SegmentFlags(1 << 4);

    /// With [`SegmentFlags::ECT`]: it is ECT(1), not ECT(0) (RFC 9331, 4.1).
    pub const ECT1: SegmentFlags = SegmentFlags(1 << 8);

    /// Returns flags with the sender's feedback round, modulo 8 (TFRC).
    pub const fn in_round(round: u32) -> SegmentFlags {
        SegmentFlags(((round & 7) as u16) << 5)
    }

    /// Returns the sender's feedback round, modulo 8 (TFRC).
    pub const fn round(self) -> u8 {
        (self.0 >> 5 & 7) as u8
    }

    /// Returns whether all flags of `other` are set.
    pub const fn has(self, other: SegmentFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets of flags.
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
    /// A RAP acknowledgement, also sent by CMTCP's receivers.
    Rap(RapAck),
}

const _: () = assert!(size_of::<Feedback>() <= 48);
const _: () = assert!(size_of::<Segment>() <= 24);

/// A TCP acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// The next packet expected: all packets before it have arrived. 0 acknowledges only the SYN.
    pub next: u32,
    /// The echoed timestamp of a packet (RFC 7323, 4).
    pub echo: Time,
    /// Selective acknowledgements, `from..to`. The first contains the newest arrival; empty blocks are `0..0` (RFC 2018).
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
    /// Time since that packet arrived.
    pub hold: Span,
    /// Received rate over the last round trip, in bytes per second.
    pub received: f32,
    /// Loss event rate, 0 to 1.
    pub loss: f32,
}

/// Acknowledgement of a RAP receiver for every packet. The last three fields count packets from 1; 0 means no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RapAck {
    /// The packet that arrived.
    pub seq: u32,
    /// Timestamp of that packet.
    pub echo: Time,
    /// Highest packet of the newest run without loss.
    pub last_received: u32,
    /// Newest packet missing before that run.
    pub last_missing: u32,
    /// Highest packet received before that loss.
    pub previous_received: u32,
}

/// State of a sender for probes. No protocol depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SenderView {
    /// Congestion window in packets; 0 for senders without one.
    pub window: f64,
    /// Slow-start threshold in packets; 0 for senders without one.
    pub threshold: f64,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// Allowed rate: window divided by round-trip time for senders with a window.
    pub rate: Rate,
    /// Number of packets sent, including retransmissions.
    pub sent: u64,
    /// Number of retransmissions.
    pub again: u64,
    /// Number of packets known to have arrived, in order if the protocol keeps the order.
    pub acked: u64,
    /// Number of reductions of window or rate.
    pub cuts: u64,
    /// Number of retransmission timeouts.
    pub timeouts: u64,
}

/// The sending end.
pub trait Sender {
    /// Opens the connection now.
    fn start(&mut self, cx: &mut Cx<'_>);
    /// Sets the total number of packets that the application has supplied since the start of the connection ([`u32::MAX`]: no
    /// end).
    fn supply(&mut self, packets: u32, now: Time);
    /// Returns the time at which the next packet may be sent; [`Departure::AfterReport`] for a full window or an empty supply. A
    /// window-limited sender that may send immediately returns [`Time::ZERO`].
    fn departure(&self) -> Departure;
    /// Sends a packet now and returns it.
    fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment;
    /// Processes feedback that has arrived.
    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>);
    /// Returns the time of the next call of [`Sender::on_deadline`].
    fn deadline(&self) -> Time;
    /// Checks timers; the deadline may have passed.
    fn on_deadline(&mut self, cx: &mut Cx<'_>);
    /// Returns the reductions of window or rate so far, as in [`SenderView::cuts`].
    fn cuts(&self) -> u32;
    /// Returns the state for probes.
    fn observe(&self) -> SenderView;
}

/// The receiving end.
pub trait Sink {
    /// Processes a packet that has arrived; `marked` if a queue set its ECN mark. Returns at most one packet of feedback.
    fn on_segment(&mut self, segment: &Segment, marked: bool, cx: &mut Cx<'_>) -> Option<Feedback>;
    /// Returns the time of the next call of [`Sink::on_deadline`].
    fn deadline(&self) -> Time;
    /// Checks timers, as the deadline may have passed. Returns feedback that is due.
    fn on_deadline(&mut self, cx: &mut Cx<'_>) -> Option<Feedback>;
    /// Returns the number of packets delivered to the application: each once, in order if the protocol keeps the order.
    fn delivered(&self) -> u64;
}
