//! Unicast flows that share bottlenecks with multicast sessions: TCP in its variants, TFRC, RAP and CMTCP.
//!
//! The protocols are state machines with the contract of [`faircast_core::node`]: after each call, read `departure` and
//! `deadline` again. Like the simulators used in the papers, they count whole packets; packets have no content.
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
//! | [`own`] | protocols of other crates |
//! | `catalogue` | protocols by name and options |

#![forbid(unsafe_code)]

pub mod cmtcp;
pub mod cocoon;
pub mod coordination;
pub mod macroflow;
pub mod own;
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
    /// The round-trip time that the sender estimates, for receivers that need it (TFRC); otherwise zero.
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
    /// The packet is ECN-capable (RFC 3168, 5): a queue may mark it instead of dropping it.
    pub const ECT: SegmentFlags = SegmentFlags(1 << 3);

    /// Requests an immediate report (TFRC).
    pub const URGENT: SegmentFlags = SegmentFlags(1 << 4);

    /// Together with [`SegmentFlags::ECT`]: the packet carries ECT(1), not ECT(0) (RFC 9331, 4.1).
    pub const ECT1: SegmentFlags = SegmentFlags(1 << 8);

    /// Returns flags that contain the sender's feedback round, modulo 8 (TFRC).
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
    /// The next expected packet: all packets with lower numbers have arrived. 0 acknowledges only the SYN.
    pub next: u32,
    /// The timestamp of a received packet, echoed by the receiver (RFC 7323, 4).
    pub echo: Time,
    /// Selectively acknowledged ranges of packets, `from..to`. The first range contains the packet that arrived last; unused
    /// ranges are `0..0` (RFC 2018).
    pub blocks: [(u32, u32); 3],
    /// An ECN echo (RFC 3168, 6.1.3).
    pub ece: bool,
    /// Acknowledges a SYN.
    pub syn: bool,
}

/// Report of a TFRC receiver, which sends one per round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateReport {
    /// Send time of the newest packet received.
    pub echo: Time,
    /// Time since that packet arrived.
    pub hold: Span,
    /// Rate at which data arrived in the last round trip, in bytes per second.
    pub received: f32,
    /// Loss event rate, 0 to 1.
    pub loss: f32,
}

/// Acknowledgement that a RAP receiver sends for each packet. In the last three fields, packet numbers are counted from 1; 0
/// means no packet.
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

/// State of a sender, for measurements. No protocol depends on these values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SenderView {
    /// Congestion window in packets; 0 for senders without a window.
    pub window: f64,
    /// Slow-start threshold in packets; 0 for senders without a threshold.
    pub threshold: f64,
    /// Smoothed round-trip time.
    pub rtt: Span,
    /// Allowed rate. For senders with a window: window divided by round-trip time.
    pub rate: Rate,
    /// Number of packets sent, including retransmissions.
    pub sent: u64,
    /// Number of retransmissions.
    pub again: u64,
    /// Number of packets known to have arrived. If the protocol delivers in order, only packets before the first gap count.
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
    /// Sets the total number of packets that the application has supplied since the start of the connection; [`u32::MAX`] means
    /// an endless supply.
    fn supply(&mut self, packets: u32, now: Time);
    /// Returns the time at which the next packet may be sent; [`Departure::AfterReport`] if the window is full or the supply is
    /// exhausted. A sender with a window returns [`Time::ZERO`] if it may send immediately.
    fn departure(&self) -> Departure;
    /// Sends a packet now and returns it.
    fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment;
    /// Processes feedback that has arrived.
    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>);
    /// Returns the time at which [`Sender::on_deadline`] must be called.
    fn deadline(&self) -> Time;
    /// Checks timers; the deadline may have passed.
    fn on_deadline(&mut self, cx: &mut Cx<'_>);
    /// Returns the number of reductions of window or rate so far ([`SenderView::cuts`]).
    fn cuts(&self) -> u32;
    /// Returns the state for probes.
    fn observe(&self) -> SenderView;
}

/// The receiving end.
pub trait Sink {
    /// Processes a packet that has arrived; `marked` means that a queue has set the packet's ECN mark. Returns at most one packet
    /// of feedback.
    fn on_segment(&mut self, segment: &Segment, marked: bool, cx: &mut Cx<'_>) -> Option<Feedback>;
    /// Returns the time at which [`Sink::on_deadline`] must be called.
    fn deadline(&self) -> Time;
    /// Checks timers; the deadline may have passed. Returns feedback if it must be sent now.
    fn on_deadline(&mut self, cx: &mut Cx<'_>) -> Option<Feedback>;
    /// Returns the number of packets delivered to the application. Each packet counts once. If the protocol delivers in order,
    /// only packets before the first gap count.
    fn delivered(&self) -> u64;
}
