//! Results of a run.

use crate::delays::DelayCounts;
use crate::events::Event;
use crate::network::{FlowId, LinkId, NodeId};
use faircast_aqm::{Ecn, LinkCounts, LossCause};
use faircast_core::estimate::RoundTrip;
use faircast_core::node::{Observation, RouterObservation, Tally, Windows};
use faircast_core::packet::Packet;
use faircast_core::time::{Rate, Span, Time};
use faircast_unicast::{Feedback, Segment, SenderView};

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Outcomes of the flows, in the order in which the flows were added.
    pub flows: Vec<FlowOutcome>,
    /// Round-trip times to the receivers of each flow, by member number, up to the last one that has reported. Empty without
    /// [`Events::On`](crate::Events::On).
    pub round_trips: Vec<Vec<RoundTrip>>,
    /// Outcomes of the links, in the order in which the links were added.
    pub links: Vec<LinkOutcome>,
    /// Counts of each link before each moment of [`Network::count_until`](crate::Network::count_until): all moments of the first
    /// link, then of the second.
    pub link_moments: Vec<LinkTally>,
    /// Outcomes of the routers, in the order in which the routers were added.
    pub routers: Vec<RouterOutcome>,
    /// Packets on the tapped links, in order of time.
    pub taps: Vec<Tapped>,
    /// Events that were not taken during the run, in order of time; empty unless [`Options::events`](crate::Options::events)
    /// requests events.
    pub log: Vec<Event>,
    /// Outcomes of flows that share congestion control, in the order in which the coordinations were added.
    pub coordinations: Vec<CoordinationOutcome>,
    /// Hash of all arrivals at hosts: flow, member, packet and time.
    pub digest: u64,
    /// Number of packets carried over links; each link counts separately.
    pub traversals: u64,
    /// Number of packets that arrived at a receiver or sender.
    pub arrivals: u64,
    /// Number of entries taken from the calendar.
    pub events: u64,
}

/// Outcome of flows that share congestion control.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CoordinationOutcome {
    /// Counters of the coordinator; zero for macroflows.
    pub counters: faircast_unicast::cocoon::Counters,
    /// Datagrams dropped at the host because too many were waiting.
    pub held_back: u64,
    /// Counters of the grouping, if groups are measured.
    pub grouping: Option<faircast_unicast::cocoon::grouping::Counters>,
    /// Group number of each atom at the end, if groups are measured; `None` for an unused atom number. Groups are numbered from 0
    /// in the order of atoms.
    pub groups: Vec<Option<u32>>,
}

/// Outcome of a flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowOutcome {
    /// Outcomes of the receivers; a unicast flow has one.
    pub members: Vec<MemberOutcome>,
    /// Samples of the sender.
    pub samples: Vec<SourceSample>,
    /// Data packets sent.
    pub sent: u64,
    /// Counts before each moment of [`Network::count_until`](crate::Network::count_until) in order, followed by the counts of the
    /// whole run.
    pub counts: Vec<FlowCounts>,
    /// Reports or acknowledgements that reached the sender.
    pub feedback: u64,
    /// Bytes received per bin by all members together.
    pub received_bins: Vec<u64>,
    /// Bytes sent per bin.
    pub sent_bins: Vec<u64>,
    /// Start time, end time and number of packets of each complete transfer.
    pub transfers: Vec<(Time, Time, u32)>,
    /// Changes of the representative or limiting receiver at the source: time and member; `None` for no receiver.
    pub representatives: Vec<(Time, Option<u32>)>,
    /// Times at which the source cut its rate or the sender cut its window, over all connections.
    pub cuts: Vec<Time>,
    /// Expirations of the sender's retransmission timer over all connections. For TFRC and RAP: expirations of the feedback
    /// timer.
    pub timeouts: Vec<Time>,
    /// The source's counters of reports and cuts; empty for unicast flows.
    pub tally: Tally,
    /// Reports that intermediate nodes dropped because they had forwarded other reports about the same packets.
    pub aggregated: u64,
    /// Outcomes of the layers of a session with several layers, the base layer first; empty for all other flows.
    pub layers: Vec<LayerOutcome>,
    /// Outcome of the tree, if the members of the session form a tree.
    pub tree: Option<Box<TreeOutcome>>,
}

/// Outcome of a session's tree. Members are numbered from zero; `None` is the source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TreeOutcome {
    /// Packets that parents sent again, not counting packets for local groups.
    pub repairs: u64,
    /// Data packets sent by all parents.
    pub sent: u64,
    /// Orders sent by all parents.
    pub orders: u64,
    /// Reports that reached agents. Reports that reached the source are in [`FlowOutcome::feedback`].
    pub reports: u64,
    /// Packets that reached a member that already had them.
    pub duplicates: u64,
    /// Number of times that a child moved into a local group.
    pub moves: u64,
    /// Timeouts that reset the window of an agent to slow start: time and agent.
    pub slow_starts: Vec<(Time, u32)>,
    /// Sending window of the source, recorded when it changed by 1 %.
    pub trace: Vec<(Time, f64)>,
    /// Windows at the times of [`FlowOutcome::samples`]. Windows of agents are only included in trees of up to a thousand
    /// members.
    pub samples: Vec<(Time, Option<u32>, Windows)>,
    /// Changes of groups: time, member and new group.
    pub changes: Vec<(Time, u32, u8)>,
    /// Windows of the agents at the end.
    pub agents: Vec<(u32, Windows)>,
    /// Windows of the source at the end.
    pub source: Windows,
}

/// Packets of a flow over all its connections and members. Packets that open a connection carry no data and are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Data packets sent by the source or sender, including packets sent again.
    pub sent: u64,
    /// Data packets that the protocol sent again.
    pub again: u64,
    /// Data packets received.
    pub received: u64,
    /// Lost data packets: for a unicast flow, packets lost by links; for a session, packets found lost by receivers.
    pub lost: u64,
    /// Packets delivered to applications, without duplicates.
    pub delivered: u64,
}

impl FlowCounts {
    /// Returns the counts since `before`.
    #[must_use]
    pub const fn since(&self, before: &FlowCounts) -> FlowCounts {
        FlowCounts {
            sent: self.sent - before.sent,
            again: self.again - before.again,
            received: self.received - before.received,
            lost: self.lost - before.lost,
            delivered: self.delivered - before.delivered,
        }
    }

    pub(crate) fn add(&mut self, other: &FlowCounts) {
        self.sent += other.sent;
        self.again += other.again;
        self.received += other.received;
        self.lost += other.lost;
        self.delivered += other.delivered;
    }
}

/// Outcome of a layer at its source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayerOutcome {
    /// Data packets sent.
    pub sent: u64,
    /// Total size of these packets, bytes.
    pub bytes: u64,
    /// Rate of the layer at the times of [`FlowOutcome::samples`]; zero while the layer is off.
    pub rates: Vec<Rate>,
}

/// Outcome of a receiver.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberOutcome {
    /// Data packets received, including late packets and duplicates.
    pub packets: u64,
    /// Total size of these packets, bytes.
    pub bytes: u64,
    /// Data packets found lost; for a unicast flow, data packets lost by links.
    pub lost: u64,
    /// Packets delivered to the application, without duplicates.
    pub delivered: u64,
    /// Reports or acknowledgements sent.
    pub reports: u64,
    /// Reports that acknowledge received packets; 0 for a unicast flow.
    pub acknowledgements: u64,
    /// Congestion events that were not reported.
    pub suppressed: u64,
    /// Changes of the receiver's subscription: time and new highest layer. Before the first change, the highest layer is the base
    /// layer.
    pub subscriptions: Vec<(Time, u8)>,
    /// Bytes received per bin; empty for members that are not watched.
    pub bins: Vec<u64>,
    /// Counts of received packets, as [`FlowOutcome::counts`]; empty for members that are not watched.
    pub counts: Vec<FlowCounts>,
    /// Time at which the receiver was excluded from its session.
    pub excluded: Option<Time>,
    /// Delivery delays of packets; empty unless requested by [`Network::time_deliveries`](crate::Network::time_deliveries).
    pub delay: DelayOutcome,
    /// Histograms of delivery delays: for a unicast flow, one for each interval between counted moments; for a member of a
    /// session, one for the run.
    pub delays: Vec<DelayCounts>,
}

/// Delays of packets from their first transmission by the source to the first arrival of any copy at a receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DelayOutcome {
    /// Number of packets.
    pub packets: u64,
    /// Sum of the delays.
    pub total: Span,
    /// Least delay.
    pub least: Span,
    /// Greatest delay.
    pub most: Span,
}

impl DelayOutcome {
    /// Returns the mean delay in seconds; NaN without packets.
    pub fn mean(&self) -> f64 {
        self.total.as_secs_f64() / self.packets as f64
    }

    pub(crate) fn add(&mut self, delay: Span) {
        self.least = if self.packets == 0 { delay } else { self.least.min(delay) };
        self.most = self.most.max(delay);
        self.total = self.total + delay;
        self.packets += 1;
    }
}

/// Outcome of a node's router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouterOutcome {
    /// The node.
    pub node: NodeId,
    /// Observations of the router over the whole run, restarts included.
    pub seen: RouterObservation,
}

/// The state of a sender at a given time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SourceSample {
    /// A session's source. The limiting receiver is given by its member number.
    Session {
        /// Time of the sample.
        at: Time,
        /// State of the sender.
        view: Observation,
    },
    /// A unicast sender.
    Unicast {
        /// Time of the sample.
        at: Time,
        /// State of the sender.
        view: SenderView,
    },
}

impl SourceSample {
    /// Returns the time of the sample.
    pub const fn at(&self) -> Time {
        match *self {
            SourceSample::Session { at, .. } | SourceSample::Unicast { at, .. } => at,
        }
    }
}

/// Outcome of a link.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkOutcome {
    /// Counts over the whole run.
    pub counts: LinkCounts,
    /// Bytes that left the link during the whole run.
    pub departed_bytes: u64,
    /// Samples of the link, if it was probed.
    pub samples: Vec<LinkSample>,
    /// Delays of packets from their offer to the end of their transmission, if the link was probed. There is one histogram for
    /// each interval between counted moments ([`Network::count_until`](crate::Network::count_until)). A packet belongs to the
    /// interval in which it was offered.
    pub delays: Vec<DelayCounts>,
}

impl LinkOutcome {
    /// Adds the counts of another link.
    pub(crate) const fn add(&mut self, other: &LinkOutcome) {
        let LinkCounts { offered, accepted, accepted_bytes, overflow, early, marked, lost } = other.counts;
        self.counts.offered += offered;
        self.counts.accepted += accepted;
        self.counts.accepted_bytes += accepted_bytes;
        self.counts.overflow += overflow;
        self.counts.early += early;
        self.counts.marked += marked;
        self.counts.lost += lost;
        self.departed_bytes += other.departed_bytes;
    }

    /// Returns the counts over the whole run.
    pub const fn tally(&self) -> LinkTally {
        LinkTally::new(&self.counts, self.departed_bytes)
    }
}

/// Packets offered to a link, and the actions of its queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkTally {
    /// Bytes that left the link.
    pub departed_bytes: u64,
    /// Packets offered.
    pub offered: u64,
    /// Packets dropped by a full buffer.
    pub overflow: u64,
    /// Packets dropped by the queue discipline.
    pub early: u64,
    /// Packets marked by the queue discipline.
    pub marked: u64,
}

impl LinkTally {
    pub(crate) const fn new(counts: &LinkCounts, departed_bytes: u64) -> LinkTally {
        let &LinkCounts { offered, overflow, early, marked, .. } = counts;
        LinkTally { departed_bytes, offered, overflow, early, marked }
    }

    /// Adds the counts of another link.
    pub(crate) const fn add(&mut self, other: &LinkTally) {
        self.departed_bytes += other.departed_bytes;
        self.offered += other.offered;
        self.overflow += other.overflow;
        self.early += other.early;
        self.marked += other.marked;
    }

    /// Returns the counts since `before`.
    #[must_use]
    pub const fn since(&self, before: &LinkTally) -> LinkTally {
        LinkTally {
            departed_bytes: self.departed_bytes - before.departed_bytes,
            offered: self.offered - before.offered,
            overflow: self.overflow - before.overflow,
            early: self.early - before.early,
            marked: self.marked - before.marked,
        }
    }
}

/// The state of a link at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSample {
    /// Time of the sample.
    pub at: Time,
    /// Waiting packets, without the packet in transmission.
    pub waiting: u32,
    /// Total size of these packets, bytes.
    pub waiting_bytes: u64,
    /// Bytes that have left the link so far.
    pub departed_bytes: u64,
    /// Counts so far.
    pub counts: LinkCounts,
}

/// A packet on a tapped link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tapped {
    /// Time at which the packet was offered to the queue.
    pub at: Time,
    /// The tapped link.
    pub link: LinkId,
    /// Flow of the packet.
    pub flow: FlowId,
    /// Size of the packet, bytes.
    pub size: u16,
    /// Content of the packet.
    pub what: TappedPacket,
    /// ECN codepoint on the link, including a mark of the link's own queue.
    pub ecn: Ecn,
    /// Cause of a loss on this link; `None` if the packet was not lost.
    pub lost: Option<LossCause>,
}

/// Content of a tapped packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TappedPacket {
    /// A session's data or report.
    Session(Packet),
    /// A unicast flow's data.
    Segment(Segment),
    /// A unicast flow's feedback.
    Feedback(Feedback),
    /// A datagram with this number.
    Datagram(u32),
}
