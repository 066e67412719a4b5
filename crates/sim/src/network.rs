//! Descriptions of the networks to simulate.

use crate::clock::{Clock, ClockError};
use crate::traffic::{ApplicationData, TraceId};
use faircast_aqm::{LinkSpec, LossSpec, QueueSpec};
use faircast_core::node::{RelaySpec, RouterSpec};
use faircast_core::packet::Packet;
use faircast_core::routers::aggregation;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_unicast::Protocol;
use faircast_unicast::coordination::Coordination;
use std::collections::BTreeSet;
use std::sync::Arc;

pub use faircast_topology::{LinkId, NodeId, Topology};

/// A multicast session or a unicast flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// A multicast session.
#[derive(Debug, Clone)]
pub struct SessionSpec {
    /// The scheme and its parameters.
    pub scheme: Scheme,
    /// Size of a data packet on the link, bytes.
    pub packet_size: u16,
    /// Size of a report on the link, bytes.
    pub report_size: u16,
    /// Node of the source.
    pub source: NodeId,
    /// The receivers.
    pub members: Vec<ReceiverSpec>,
    /// Start time of the source.
    pub start: Time,
    /// Time at which the source stops sending; [`Time::NEVER`] if it never stops.
    pub stop: Time,
    /// Delay of a join for each router that must request the group.
    pub join_latency: Span,
    /// Time for which a link still carries packets after its last member has left.
    pub leave_latency: Span,
    /// Interval at which members report their presence, like receivers of a transport; `None` for never. The reports provide the
    /// source with samples of the round-trip time. The source also sends up to four probes at this interval before it starts.
    pub alive: Option<Span>,
}

/// A receiver of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverSpec {
    /// Node of the receiver.
    pub node: NodeId,
    /// Join time.
    pub join: Time,
    /// Time at which the receiver leaves; [`Time::NEVER`] if it never leaves.
    pub leave: Time,
    /// Total time as the representative after which the receiver sends no more reports (paper 000, 3.3.4).
    pub mute_after: Option<Span>,
}

/// Protocol of a unicast flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UnicastProtocol {
    /// A protocol with congestion control.
    Controlled(Protocol),
    /// Datagrams at a constant rate while the application is on, without congestion control.
    Datagrams {
        /// Rate in bits per second, including headers.
        rate: Rate,
        /// Relative variation of the gaps: each gap is multiplied by a uniform number in `1 - jitter .. 1 + jitter`.
        jitter: f64,
    },
}

/// A unicast flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnicastSpec {
    /// Protocol of the flow.
    pub protocol: UnicastProtocol,
    /// Size of a data packet on the link, bytes.
    pub packet_size: u16,
    /// Size of an acknowledgement on the link, bytes.
    pub ack_size: u16,
    /// Node of the sender.
    pub from: NodeId,
    /// Node of the receiver.
    pub to: NodeId,
    /// Start time.
    pub start: Time,
    /// Time at which the sender stops sending; [`Time::NEVER`] if it never stops.
    pub stop: Time,
    /// Data of the application.
    pub supply: ApplicationData,
}

/// Flows of one host that share congestion control.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinationSpec {
    /// Method of coordination.
    pub way: Coordination,
    /// The flows, each with the number of its group or atom. Different groups are independent.
    pub flows: Vec<(FlowId, u32)>,
    /// Rule that forms the groups.
    pub groups: Groups,
}

/// Rules that form groups of flows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Groups {
    /// The numbers of the flows are group numbers.
    #[default]
    Given,
    /// The numbers of the flows are atom numbers. Groups of atoms form, merge and split according to the measurements of the host
    /// ([`grouping`](faircast_unicast::cocoon::grouping)). Only for TCP flows with separate windows.
    Measured(faircast_unicast::cocoon::grouping::Config),
}

/// A change of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// A new bit rate.
    Rate(Rate),
    /// A new propagation delay.
    Delay(Span),
    /// A new loss model of the wire.
    Loss(Option<LossSpec>),
    /// Failure of the link: all queued and arriving packets are lost.
    Down,
    /// End of a failure.
    Up,
}

/// Members of a session whose arrivals are recorded per bin. Sums over all members are always recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// The first members of a session, at most this number.
    First(u32),
}

/// Whether events are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Events {
    /// No events are recorded.
    #[default]
    Off,
    /// All events of [`Happening`](crate::Happening) are recorded, on all links and for all flows. The memory grows until the
    /// events are taken.
    On,
}

/// Division of the network into islands, which several threads can simulate at the same time; see [`Engine`](crate::Engine). It
/// does not affect the outcome, except for the number of calendar entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Islands {
    /// One island.
    #[default]
    One,
    /// At most this number of islands, if the division is estimated to make the run faster with as many threads.
    IfFaster(usize),
    /// At most this number of islands.
    AtMost(usize),
}

/// Method of executing events. It does not affect the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Results that are known in advance are computed at once.
    #[default]
    Eager,
    /// Every arrival is a separate event. This mode is the reference for tests of the eager mode.
    Evented,
}

/// A transformation that changes every packet of a session when the packet leaves its host, for example encoding followed by
/// decoding.
pub trait PacketTransform: Send {
    /// Returns the packet to be sent.
    fn pass(&mut self, packet: &Packet) -> Packet;
}

/// Options of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// End of the run.
    pub until: Time,
    /// Method of executing events.
    pub mode: Mode,
    /// Length of a bin, in which received bytes are summed; [`Span::MAX`] for none.
    pub bin: Span,
    /// Sampling interval of senders and sources; [`Span::MAX`] for none.
    pub sample: Span,
    /// Members with separate bins.
    pub watch: Watch,
    /// Division of the network into islands, which several threads can simulate.
    pub islands: Islands,
    /// Whether events are recorded for [`Engine::take_events`](crate::Engine::take_events).
    pub events: Events,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            until: Time::from_secs_f64(100.0),
            mode: Mode::Eager,
            bin: Span::from_secs(1),
            sample: Span::from_secs(1),
            watch: Watch::First(256),
            islands: Islands::One,
            events: Events::Off,
        }
    }
}

/// A network to simulate. Nodes, links and flows are numbered from zero in the order in which they are added.
#[derive(Debug, Clone, Default)]
pub struct Network {
    pub(crate) seed: u64,
    pub(crate) topology: Topology,
    pub(crate) flows: Vec<Flow>,
    pub(crate) changes: Vec<(Time, LinkId, Change)>,
    pub(crate) link_probes: Vec<(LinkId, Span)>,
    pub(crate) taps: Vec<LinkId>,
    pub(crate) routers: Vec<(NodeId, Arc<dyn RouterSpec>)>,
    pub(crate) router_restarts: Vec<(Time, NodeId)>,
    pub(crate) moments: Vec<Time>,
    /// Unicast flows whose delivery delays are measured.
    pub(crate) timed: BTreeSet<u32>,
    pub(crate) relays: Vec<(FlowId, u32, FlowId, Arc<dyn RelaySpec>)>,
    pub(crate) clocks: Vec<(FlowId, Clock)>,
    pub(crate) coordinations: Vec<CoordinationSpec>,
    pub(crate) traces: Vec<Arc<[(Span, u32)]>>,
}

/// A session or a unicast flow.
#[expect(clippy::large_enum_variant, reason = "a network is described once, and flows are read in a row")]
#[derive(Debug, Clone)]
pub(crate) enum Flow {
    Session(SessionSpec, Option<Box<SessionExtras>>),
    Unicast(UnicastSpec),
}

/// Properties that few sessions have.
#[derive(Debug, Clone)]
pub(crate) struct SessionExtras {
    /// Number of packets that the source sends.
    pub packets: u64,
    /// Whether data may be marked.
    pub capable: bool,
    /// Periods in which the application has data, in order; empty if it always has data.
    pub talks: Vec<(Time, Time)>,
    /// Member, join time and leave time of each stay after the first one. The stays of a member are in order.
    pub returns: Vec<(u32, Time, Time)>,
    /// By member: its parent in the session's tree, `None` for the source. If empty, all members are children of the source.
    pub parents: Vec<Option<u32>>,
    /// Whether delivery delays are measured.
    pub is_timed: bool,
}

impl Default for SessionExtras {
    fn default() -> SessionExtras {
        SessionExtras {
            packets: u64::MAX,
            capable: false,
            talks: Vec::new(),
            returns: Vec::new(),
            parents: Vec::new(),
            is_timed: false,
        }
    }
}

impl Network {
    /// Returns an empty network. All random numbers are derived from `seed`.
    pub fn new(seed: u64) -> Network {
        Network { seed, ..Network::default() }
    }

    /// Returns a network of these nodes and links, without flows. All random numbers are derived from `seed`.
    pub fn of(topology: Topology, seed: u64) -> Network {
        Network { seed, topology, ..Network::default() }
    }

    /// Adds a node, which may be a router or a host. Packets between other nodes may pass through the node.
    pub const fn node(&mut self) -> NodeId {
        self.topology.router()
    }

    /// Adds a link in one direction.
    pub fn link(&mut self, from: NodeId, to: NodeId, spec: LinkSpec) -> LinkId {
        self.topology.link(from, to, spec)
    }

    /// Adds one link in each direction: the first from `a` to `b`, the second from `b` to `a`.
    pub fn duplex(&mut self, a: NodeId, b: NodeId, there: LinkSpec, back: LinkSpec) -> (LinkId, LinkId) {
        self.topology.duplex(a, b, there, back)
    }

    /// Returns the specification of a link.
    ///
    /// # Panics
    /// When the link does not exist.
    pub fn link_spec(&self, link: LinkId) -> &LinkSpec {
        &self.topology.edges()[link.0 as usize].spec
    }

    /// Replaces the queue of a link.
    ///
    /// # Panics
    /// When the link does not exist.
    pub fn set_queue(&mut self, link: LinkId, queue: QueueSpec) {
        self.topology.spec_mut(link).expect("the caller names a link of the network").queue = queue;
    }

    /// Returns the number of links.
    pub fn link_count(&self) -> u32 {
        self.topology.edges().len() as u32
    }

    /// Adds a multicast session. Its packets follow the paths of least delay from the source; reports follow the paths of least
    /// delay to the source.
    pub fn session(&mut self, spec: SessionSpec) -> FlowId {
        self.flows.push(Flow::Session(spec, None));
        FlowId(self.flows.len() as u32 - 1)
    }

    /// Limits the session's source to `packets` packets. The source continues to receive feedback afterwards.
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn send_only(&mut self, flow: FlowId, packets: u64) {
        self.rare(flow).packets = packets;
    }

    /// Adds a period in which the session's application has data. Periods must be added in order.
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn send_during(&mut self, flow: FlowId, from: Time, to: Time) {
        self.rare(flow).talks.push((from, to));
    }

    /// Allows queues to mark the session's data instead of dropping it (ECN).
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn allow_marks(&mut self, flow: FlowId) {
        self.rare(flow).capable = true;
    }

    /// Adds a stay of a member that has left before. The member returns as a new receiver with the same ID. The stays of a member
    /// must be added in order.
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn come_back(&mut self, flow: FlowId, member: u32, join: Time, leave: Time) {
        self.rare(flow).returns.push((member, join, leave));
    }

    /// Makes the members of the session form a tree. `parents` contains the parent of each member, `None` for the source. Members
    /// with children are agents. An agent leaves without a message, and its children become children of its parent until the
    /// agent returns.
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn tree(&mut self, flow: FlowId, parents: Vec<Option<u32>>) {
        self.rare(flow).parents = parents;
    }

    /// Measures delivery delays. Delays of a session run from the first transmission of a packet to its arrival at each member
    /// ([`MemberOutcome::delay`](crate::MemberOutcome::delay)). Delays of a unicast flow run from each transmission to the
    /// arrival at the receiver ([`MemberOutcome::delays`](crate::MemberOutcome::delays)). Datagrams are not measured. Not
    /// supported for sessions with a tree or with several layers.
    ///
    /// # Panics
    /// When `flow` is not a flow of this network.
    pub fn time_deliveries(&mut self, flow: FlowId) {
        match self.flows.get(flow.0 as usize) {
            Some(Flow::Unicast(_)) => _ = self.timed.insert(flow.0),
            _ => self.rare(flow).is_timed = true,
        }
    }

    /// Returns the members of a flow; none if it is not a session.
    pub(crate) fn members(&self, flow: u32) -> &[ReceiverSpec] {
        match &self.flows[flow as usize] {
            Flow::Session(spec, _) => &spec.members,
            Flow::Unicast(_) => &[],
        }
    }

    fn rare(&mut self, flow: FlowId) -> &mut SessionExtras {
        match self.flows.get_mut(flow.0 as usize) {
            Some(Flow::Session(_, rare)) => rare.get_or_insert_default(),
            _ => panic!("flow {} is not a session of this network", flow.0),
        }
    }

    /// Makes this node aggregate loss reports on their path to a source, like network elements of reliable multicast (paper 000,
    /// 2.2.3). For the time `hold`, the node forwards only the first report about each packet.
    pub fn aggregate(&mut self, node: NodeId, hold: Span) {
        self.router(node, Arc::new(aggregation::Config { hold }));
    }

    /// Adds a router to a node, in place of an earlier router of the node. The router processes the packets of sessions that
    /// leave the node.
    pub fn router(&mut self, node: NodeId, spec: Arc<dyn RouterSpec>) {
        self.routers.retain(|(other, _)| *other != node);
        self.routers.push((node, spec));
    }

    /// Restarts the router of this node at `at`. The router loses all its state.
    pub fn restart_router(&mut self, at: Time, node: NodeId) {
        self.router_restarts.push((at, node));
    }

    /// Makes a member of the session `above` a relay, which is the source of the session `below`. The session `below` starts at
    /// the member's node, and its members are the children of the relay. They report to the relay, and the relay reports as a
    /// member of `above`.
    pub fn relay(&mut self, above: FlowId, member: u32, below: FlowId, spec: Arc<dyn RelaySpec>) {
        self.relays.push((above, member, below, spec));
    }

    /// Makes the clock of a flow's sender or source too fast by `ppm` millionths, or too slow if `ppm` is negative. All periods
    /// and timers of the sender or source follow this clock. The clocks of receivers are exact, and so are the start and stop
    /// times of flows and the times of applications. The last call for a flow applies.
    ///
    /// # Errors
    /// When the error exceeds 10 %.
    pub fn clock_error(&mut self, flow: FlowId, ppm: f64) -> Result<(), ClockError> {
        self.clocks.push((flow, Clock::fast_by(ppm)?));
        Ok(())
    }

    /// Returns the clock of a flow's sender.
    pub(crate) fn clock(&self, flow: usize) -> Clock {
        let reported = self.clocks.iter().rev().find(|(reported, _)| reported.0 as usize == flow);
        reported.map_or_else(Clock::default, |(_, clock)| *clock)
    }

    /// Adds a unicast flow. Its packets follow the path of least delay.
    pub fn unicast(&mut self, spec: UnicastSpec) -> FlowId {
        self.flows.push(Flow::Unicast(spec));
        FlowId(self.flows.len() as u32 - 1)
    }

    /// Makes flows share congestion control.
    pub fn coordinate(&mut self, spec: CoordinationSpec) {
        self.coordinations.push(spec);
    }

    /// Adds a trace for [`ApplicationData::Trace`]. Each entry contains a time after the start of the flow, and the total number
    /// of packets supplied by then. Times and totals never decrease.
    pub fn trace(&mut self, entries: Arc<[(Span, u32)]>) -> TraceId {
        self.traces.push(entries);
        TraceId(self.traces.len() as u32 - 1)
    }

    /// Schedules a change of a link.
    pub fn change(&mut self, at: Time, link: LinkId, change: Change) {
        self.changes.push((at, link, change));
    }

    /// Adds a moment up to which packets are counted, in addition to the whole run
    /// ([`FlowOutcome::counts`](crate::FlowOutcome::counts)). Events exactly at the moment are not included.
    pub fn count_until(&mut self, moment: Time) {
        let place = self.moments.partition_point(|at| *at < moment);
        self.moments.insert(place, moment);
    }

    /// Returns the moments of [`Network::count_until`], in order.
    pub fn counted(&self) -> &[Time] {
        &self.moments
    }

    /// Samples the queue and counts of a link at multiples of `every`.
    pub fn probe_link(&mut self, link: LinkId, every: Span) {
        self.link_probes.push((link, every));
    }

    /// Records every packet that is offered to a link.
    pub fn tap(&mut self, link: LinkId) {
        self.taps.push(link);
    }
}
