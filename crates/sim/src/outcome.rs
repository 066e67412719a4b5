//! Results of a run.

use crate::delays::DelayCounts;
use crate::events::Event;
use crate::network::{FlowId, LinkId, NodeId};
use faircast_aqm::{Ecn, LinkCounts, LossCause};
use faircast_core::node::{Observation, RouterObservation, Tally, Windows};
use faircast_core::packet::Packet;
use faircast_core::time::{Rate, Span, Time};
use faircast_unicast::{Feedback, Segment, SenderView};

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// One for each flow, in the order in which they were added.
    pub flows: Vec<FlowOutcome>,
    /// One for each link, in the order in which they were added.
    pub links: Vec<LinkOutcome>,
    /// The counts of each link before each of the moments of [`Network::count_until`](crate::Network::count_until): all
    /// moments of the first link, then of the second.
    pub link_moments: Vec<LinkTally>,
    /// One for each router, in the order in which they were added.
    pub routers: Vec<RouterOutcome>,
    /// Packets on the tapped links, in order of time.
    pub taps: Vec<Tapped>,
    /// Events that were not taken during the run, in order of time; empty unless
    /// [`Options::events`](crate::Options::events) asks for them.
    pub log: Vec<Event>,
    /// Outcomes of flows that share congestion control, in the order in which they were added.
    pub coordinations: Vec<CoordinationOutcome>,
    /// A hash over every arrival at a host: flow, member, packet and moment.
    pub digest: u64,
    /// Packets that were carried over a link, hop by hop.
    pub traversals: u64,
    /// Packets that arrived at a receiver or sender.
    pub arrivals: u64,
    /// Entries taken from the calendar.
    pub events: u64,
}

/// Outcome of flows that share congestion control.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CoordinationOutcome {
    /// Counters of the coordinator; zeros for macroflows.
    pub counters: faircast_unicast::cocoon::Counters,
    /// Datagrams that were dropped at the host because too many waited for their turn.
    pub held_back: u64,
    /// Counters of grouping, where groups are measured.
    pub grouping: Option<faircast_unicast::cocoon::grouping::Counters>,
    /// Where groups are measured: by the number of an atom that its flows were given, the number of its group at the end, from 0 in
    /// the order of atoms; `None` for one that was never there.
    pub groups: Vec<Option<u32>>,
}

/// Outcome of a flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowOutcome {
    /// The receivers; one for a unicast flow.
    pub members: Vec<MemberOutcome>,
    /// The sender over time.
    pub samples: Vec<SourceSample>,
    /// Data packets sent.
    pub sent: u64,
    /// Counts before each of the moments of [`Network::count_until`](crate::Network::count_until), in their order,
    /// and finally those of the whole run.
    pub counts: Vec<FlowCounts>,
    /// Reports or acknowledgements that reached the sender.
    pub feedback: u64,
    /// Bytes received per bin, by all members together.
    pub received_bins: Vec<u64>,
    /// Bytes sent per bin.
    pub sent_bins: Vec<u64>,
    /// Transfers that are complete: when each began and ended, and its packets.
    pub transfers: Vec<(Time, Time, u32)>,
    /// Changes of the representative or limiting receiver at the source: time and member; `None` while it has
    /// none.
    pub representatives: Vec<(Time, Option<u32>)>,
    /// When the source cut its rate or the sender its window, over all connections.
    pub cuts: Vec<Time>,
    /// Expirations of the sender's retransmission timer (TFRC and RAP: of the timer for feedback), over all
    /// connections.
    pub timeouts: Vec<Time>,
    /// How reports became cuts, in the source's own words; nothing for unicast flows.
    pub tally: Tally,
    /// Reports that nodes on the way dropped because they had passed on others about the same packets.
    pub aggregated: u64,
    /// The layers of a session that may use several, the base layer first; empty for all other flows.
    pub layers: Vec<LayerOutcome>,
    /// Outcome of the tree of a session whose members form one.
    pub tree: Option<Box<TreeOutcome>>,
}

/// Outcome of a session's tree. Members count from zero; `None` is the source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TreeOutcome {
    /// Packets that parents sent again, those for local groups not counted.
    pub repairs: u64,
    /// Data packets that parents sent in all.
    pub sent: u64,
    /// Orders that they sent.
    pub orders: u64,
    /// Reports that reached agents; those of the source are [`FlowOutcome::feedback`].
    pub reports: u64,
    /// Packets that reached a member that had them.
    pub duplicates: u64,
    /// Children that were moved into local groups.
    pub moves: u64,
    /// When a time-out closed the window of an agent, and whose.
    pub slow_starts: Vec<(Time, u32)>,
    /// The window that the source sends by, where it changed by a hundredth.
    pub trace: Vec<(Time, f64)>,
    /// Windows at the moments of [`FlowOutcome::samples`]; those of agents only in trees of up to a thousand members.
    pub samples: Vec<(Time, Option<u32>, Windows)>,
    /// When members went into a group, which members, and into which.
    pub changes: Vec<(Time, u32, u8)>,
    /// The agents' windows at the end.
    pub agents: Vec<(u32, Windows)>,
    /// The source's.
    pub source: Windows,
}

/// Packets of a flow, over all its connections and members. Those that open a connection carry no data and do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Data packets that its source or sender sent, those sent again included.
    pub sent: u64,
    /// Those among them that its protocol had sent before.
    pub again: u64,
    /// Data packets that its receivers got.
    pub received: u64,
    /// Data packets of a unicast flow that links lost; of a session those that receivers found lost.
    pub lost: u64,
    /// Packets delivered to applications, each once.
    pub delivered: u64,
}

impl FlowCounts {
    /// The count since `before`.
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
    /// Their bytes.
    pub bytes: u64,
    /// Its rate at the moments of [`FlowOutcome::samples`]; zero while the layer is off.
    pub rates: Vec<Rate>,
}

/// Outcome of a receiver.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberOutcome {
    /// Data packets received, late ones and duplicates included.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Data packets found lost; of unicast flows those that links lost.
    pub lost: u64,
    /// Packets delivered to the application, each once.
    pub delivered: u64,
    /// Reports or acknowledgements sent.
    pub reports: u64,
    /// Reports of a session that acknowledge arrivals.
    pub acknowledgements: u64,
    /// Congestion events that were not reported.
    pub suppressed: u64,
    /// Changes of its subscription: when, and the highest layer from then on. Before the first one it is the base layer.
    pub subscriptions: Vec<(Time, u8)>,
    /// Bytes received per bin; empty for members that are not watched.
    pub bins: Vec<u64>,
    /// Counts of received packets, as [`FlowOutcome::counts`]; empty for members that are not watched.
    pub counts: Vec<FlowCounts>,
    /// When it was excluded from its session.
    pub excluded: Option<Time>,
    /// How long packets took to it; nothing unless [`Network::time_deliveries`](crate::Network::time_deliveries) asked for it.
    pub delay: DelayOutcome,
    /// The same as a histogram: of a unicast flow's receiver one for each span between the counted moments, of a session's
    /// member one for the run.
    pub delays: Vec<DelayCounts>,
}

/// How long packets took from the source's first sending to a receiver's first copy, whichever that was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DelayOutcome {
    /// Packets.
    pub packets: u64,
    /// Sum over all packets.
    pub total: Span,
    /// The shortest.
    pub least: Span,
    /// The longest.
    pub most: Span,
}

impl DelayOutcome {
    /// The mean, in seconds; not a number without packets.
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
    /// Its observations over the whole run, restarts included.
    pub seen: RouterObservation,
}

/// A sender at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SourceSample {
    /// A session's source; the limiting receiver as the number of a member.
    Session {
        /// When.
        at: Time,
        /// How it looks.
        view: Observation,
    },
    /// A unicast sender.
    Unicast {
        /// When.
        at: Time,
        /// How it looks.
        view: SenderView,
    },
}

impl SourceSample {
    /// When it was taken.
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
    /// Bytes that have left in the whole run.
    pub departed_bytes: u64,
    /// Samples, when it was probed.
    pub samples: Vec<LinkSample>,
    /// How long packets took from their offer to the end of their transmission, by span between counted moments
    /// ([`Network::count_until`](crate::Network::count_until)) in which they were offered, when it was probed.
    pub delays: Vec<DelayCounts>,
}

impl LinkOutcome {
    /// Counts over the whole run.
    pub const fn tally(&self) -> LinkTally {
        LinkTally::new(&self.counts, self.departed_bytes)
    }
}

/// Packets that were offered to a link, and what its queue did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkTally {
    /// Bytes that have left.
    pub departed_bytes: u64,
    /// Packets offered.
    pub offered: u64,
    /// Dropped by a full buffer.
    pub overflow: u64,
    /// Dropped by the queue discipline.
    pub early: u64,
    /// Marked by it.
    pub marked: u64,
}

impl LinkTally {
    pub(crate) const fn new(counts: &LinkCounts, departed_bytes: u64) -> LinkTally {
        let &LinkCounts { offered, overflow, early, marked, .. } = counts;
        LinkTally { departed_bytes, offered, overflow, early, marked }
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

/// A link at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSample {
    /// When.
    pub at: Time,
    /// Packets waiting, without the one in transmission.
    pub waiting: u32,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Bytes that have left so far.
    pub departed_bytes: u64,
    /// Counts so far.
    pub counts: LinkCounts,
}

/// A packet on a tapped link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tapped {
    /// When it was offered to the queue.
    pub at: Time,
    /// Which link.
    pub link: LinkId,
    /// Which flow.
    pub flow: FlowId,
    /// Its size, in bytes.
    pub size: u16,
    /// The packet.
    pub what: TappedPacket,
    /// Its ECN codepoint on the link: a mark of the link's own queue is in it.
    pub ecn: Ecn,
    /// Why it was lost there, if it was.
    pub lost: Option<LossCause>,
}

/// A tapped packet.
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
