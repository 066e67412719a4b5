//! Networks to simulate.

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
    /// Bytes of a data packet on the link.
    pub packet_size: u16,
    /// Bytes of a report on the link.
    pub report_size: u16,
    /// Where the source is.
    pub source: NodeId,
    /// The receivers.
    pub members: Vec<ReceiverSpec>,
    /// When the source starts.
    pub start: Time,
    /// Time at which it stops sending; [`Time::NEVER`]: it does not stop.
    pub stop: Time,
    /// How long a join takes per router that has to be asked for the group.
    pub join_latency: Span,
    /// How long packets keep coming over a link after its last member left.
    pub leave_latency: Span,
    /// How often members say that they are there, as a transport's receivers do, which gives the source samples of the
    /// round-trip time; the source also sends up to four probes before it starts, so far apart. `None` for never.
    pub alive: Option<Span>,
}

/// A receiver of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverSpec {
    /// Where it is.
    pub node: NodeId,
    /// When it joins.
    pub join: Time,
    /// Time at which it leaves; [`Time::NEVER`]: it does not leave.
    pub leave: Time,
    /// Total time as the representative after which it sends no more reports (paper 000, 3.3.4).
    pub mute_after: Option<Span>,
}

/// How a unicast flow is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UnicastProtocol {
    /// With congestion control.
    Controlled(Protocol),
    /// At a constant rate while the application is on, without any control.
    Datagrams {
        /// Bits per second, of the packets' full size.
        rate: Rate,
        /// Each gap is the regular one times a uniform number in `1 - jitter .. 1 + jitter`.
        jitter: f64,
    },
}

/// A unicast flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnicastSpec {
    /// How it is sent.
    pub protocol: UnicastProtocol,
    /// Bytes of a data packet on the link.
    pub packet_size: u16,
    /// Bytes of an acknowledgement on the link.
    pub ack_size: u16,
    /// Where the sender is.
    pub from: NodeId,
    /// Where the receiver is.
    pub to: NodeId,
    /// When it starts.
    pub start: Time,
    /// Time at which it stops sending; [`Time::NEVER`]: it does not stop.
    pub stop: Time,
    /// Data of the application.
    pub supply: ApplicationData,
}

/// Flows of one host that share congestion control.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinationSpec {
    /// How.
    pub way: Coordination,
    /// The flows, and the number of each one's group, or of its atom. Groups have nothing to do with one another.
    pub flows: Vec<(FlowId, u32)>,
    /// The rule that forms groups.
    pub groups: Groups,
}

/// Rule that selects the flows of one group.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Groups {
    /// The numbers that flows were given.
    #[default]
    Given,
    /// The numbers name atoms; their groups form, merge and split by what the host measures
    /// ([`grouping`](faircast_unicast::cocoon::grouping)). Of TCP with windows of its own only.
    Measured(faircast_unicast::cocoon::grouping::Config),
}

/// A change of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Another bit rate.
    Rate(Rate),
    /// Another propagation delay.
    Delay(Span),
    /// Other losses on the wire.
    Loss(Option<LossSpec>),
    /// Down: all that is queued and all that comes is lost.
    Down,
    /// Up again.
    Up,
}

/// Members of a session whose arrivals are recorded per bin; sums are always recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// All members of a session with at most this number, otherwise the first ones up to this number.
    First(u32),
}

/// Whether what happens is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Events {
    /// Nothing but the outcome.
    #[default]
    Off,
    /// Everything that [`Happening`](crate::Happening) names, on all links and of all flows. Memory grows until it is taken.
    On,
}

/// How events are executed. The outcome is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Results that can be known at once are computed at once.
    #[default]
    Eager,
    /// Every arrival is an event of its own: the twin that the eager mode is tested against.
    Evented,
}

/// Every packet of a session passes through it when it leaves its host: a codec's round trip, for example.
pub trait PacketTransform: Send {
    /// The packet as it will travel.
    fn pass(&mut self, packet: &Packet) -> Packet;
}

/// How to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Simulated time.
    pub until: Time,
    /// How events are executed.
    pub mode: Mode,
    /// Length of a bin in which received bytes are summed; [`Span::MAX`] for none.
    pub bin: Span,
    /// How often senders and sources are sampled; [`Span::MAX`] for never.
    pub sample: Span,
    /// Members with bins of their own.
    pub watch: Watch,
    /// Whether [`Engine::take_events`](crate::Engine::take_events) has anything to give.
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
            events: Events::Off,
        }
    }
}

/// A network to be simulated. Numbers of nodes, links and flows count from zero in the order in which they are added.
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
    /// Unicast flows whose packets are timed.
    pub(crate) timed: BTreeSet<u32>,
    pub(crate) relays: Vec<(FlowId, u32, FlowId, Arc<dyn RelaySpec>)>,
    pub(crate) clocks: Vec<(FlowId, Clock)>,
    pub(crate) coordinations: Vec<CoordinationSpec>,
    pub(crate) traces: Vec<Arc<[(Span, u32)]>>,
}

/// A flow of either kind.
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
    /// When the application has something to send, in order; always when empty.
    pub talks: Vec<(Time, Time)>,
    /// A member, when it joins, when it leaves: stays after the first one, those of a member in order.
    pub returns: Vec<(u32, Time, Time)>,
    /// By member: its parent in the session's tree, `None` for the source; all are the source's children when empty.
    pub parents: Vec<Option<u32>>,
    /// Whether it is measured how long packets take.
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
    /// An empty network. Everything random in it follows from `seed`.
    pub fn new(seed: u64) -> Network {
        Network { seed, ..Network::default() }
    }

    /// A network of these nodes and links, without flows. Everything random in it follows from `seed`.
    pub fn of(topology: Topology, seed: u64) -> Network {
        Network { seed, topology, ..Network::default() }
    }

    /// Add a node: a router, or a host. Packets of others may pass through it.
    pub const fn node(&mut self) -> NodeId {
        self.topology.router()
    }

    /// Add a link in one direction.
    pub fn link(&mut self, from: NodeId, to: NodeId, spec: LinkSpec) -> LinkId {
        self.topology.link(from, to, spec)
    }

    /// Add a link in both directions; the second is the way back.
    pub fn duplex(&mut self, a: NodeId, b: NodeId, there: LinkSpec, back: LinkSpec) -> (LinkId, LinkId) {
        self.topology.duplex(a, b, there, back)
    }

    /// A link as it was added.
    ///
    /// # Panics
    /// When there is no such link.
    pub fn link_spec(&self, link: LinkId) -> &LinkSpec {
        &self.topology.edges()[link.0 as usize].spec
    }

    /// Give a link another queue.
    ///
    /// # Panics
    /// When there is no such link.
    pub fn set_queue(&mut self, link: LinkId, queue: QueueSpec) {
        self.topology.spec_mut(link).expect("the caller names a link of the network").queue = queue;
    }

    /// How many links there are.
    pub fn link_count(&self) -> u32 {
        self.topology.edges().len() as u32
    }

    /// Add a multicast session. Its packets follow the shortest paths by delay from the source; reports the shortest
    /// paths back.
    pub fn session(&mut self, spec: SessionSpec) -> FlowId {
        self.flows.push(Flow::Session(spec, None));
        FlowId(self.flows.len() as u32 - 1)
    }

    /// Limits the session's source to `packets` packets; it continues to receive feedback afterwards.
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn send_only(&mut self, flow: FlowId, packets: u64) {
        self.rare(flow).packets = packets;
    }

    /// Gives the session's application data in this span; any other span needs a call of its own. Spans are
    /// added in order.
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn send_during(&mut self, flow: FlowId, from: Time, to: Time) {
        self.rare(flow).talks.push((from, to));
    }

    /// The session's data may be marked instead of dropped (ECN).
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn allow_marks(&mut self, flow: FlowId) {
        self.rare(flow).capable = true;
    }

    /// Lets a member that has left come back as a new receiver of the same name, and leave again. The stays of
    /// a member are added in order.
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn come_back(&mut self, flow: FlowId, member: u32, join: Time, leave: Time) {
        self.rare(flow).returns.push((member, join, leave));
    }

    /// The members of the session form a tree: by member its parent, `None` for the source. Members with children are agents. An
    /// agent that leaves is gone without a word, and its children go to its own parent until it comes back.
    ///
    /// # Panics
    /// When `flow` is not a session of this network.
    pub fn tree(&mut self, flow: FlowId, parents: Vec<Option<u32>>) {
        self.rare(flow).parents = parents;
    }

    /// It is measured how long packets take: a session's from their first sending to each member
    /// ([`MemberOutcome::delay`](crate::MemberOutcome::delay)), a unicast flow's from each sending to its receiver, of datagrams
    /// none ([`MemberOutcome::delays`](crate::MemberOutcome::delays)). Not for sessions with a tree or of several layers.
    ///
    /// # Panics
    /// When `flow` is not a flow of this network.
    pub fn time_deliveries(&mut self, flow: FlowId) {
        match self.flows.get(flow.0 as usize) {
            Some(Flow::Unicast(_)) => _ = self.timed.insert(flow.0),
            _ => self.rare(flow).is_timed = true,
        }
    }

    fn rare(&mut self, flow: FlowId) -> &mut SessionExtras {
        match self.flows.get_mut(flow.0 as usize) {
            Some(Flow::Session(_, rare)) => rare.get_or_insert_default(),
            _ => panic!("flow {} is not a session of this network", flow.0),
        }
    }

    /// Makes this node aggregate loss reports on their way to a source, as network elements of reliable
    /// multicast do (paper 000, 2.2.3). It forwards only the first of the reports about a packet, for as long
    /// as `hold`.
    pub fn aggregate(&mut self, node: NodeId, hold: Span) {
        self.router(node, Arc::new(aggregation::Config { hold }));
    }

    /// This node has a router: what sessions send through it passes that. The latest one of a node counts.
    pub fn router(&mut self, node: NodeId, spec: Arc<dyn RouterSpec>) {
        self.routers.retain(|(other, _)| *other != node);
        self.routers.push((node, spec));
    }

    /// The router of this node loses all that it knows at this moment.
    pub fn restart_router(&mut self, at: Time, node: NodeId) {
        self.router_restarts.push((at, node));
    }

    /// This member of the session `above` is a relay: the source of the session `below`, which begins at the member's node and whose
    /// members are its children. They report to it, and it reports as a member of `above`.
    pub fn relay(&mut self, above: FlowId, member: u32, below: FlowId, spec: Arc<dyn RelaySpec>) {
        self.relays.push((above, member, below, spec));
    }

    /// The clock of the flow's sender or source is too fast by `ppm` millionths, or too slow: all its periods and timers go by
    /// that. Receivers' clocks are exact, and so are the moments at which flows start and stop and applications turn. The latest word on a flow counts.
    ///
    /// # Errors
    /// When it would be off by more than a tenth.
    pub fn clock_error(&mut self, flow: FlowId, ppm: f64) -> Result<(), ClockError> {
        self.clocks.push((flow, Clock::fast_by(ppm)?));
        Ok(())
    }

    /// The clock of a flow's sender.
    pub(crate) fn clock(&self, flow: usize) -> Clock {
        let reported = self.clocks.iter().rev().find(|(reported, _)| reported.0 as usize == flow);
        reported.map_or_else(Clock::default, |(_, clock)| *clock)
    }

    /// Add a unicast flow. Its packets follow the shortest path by delay.
    pub fn unicast(&mut self, spec: UnicastSpec) -> FlowId {
        self.flows.push(Flow::Unicast(spec));
        FlowId(self.flows.len() as u32 - 1)
    }

    /// These flows share congestion control.
    pub fn coordinate(&mut self, spec: CoordinationSpec) {
        self.coordinations.push(spec);
    }

    /// Add a trace: when, after a flow's start, its application has how many packets to send, all before them counted. For
    /// [`ApplicationData::Trace`]; moments and counts never fall.
    pub fn trace(&mut self, entries: Arc<[(Span, u32)]>) -> TraceId {
        self.traces.push(entries);
        TraceId(self.traces.len() as u32 - 1)
    }

    /// Change a link at a moment.
    pub fn change(&mut self, at: Time, link: LinkId, change: Change) {
        self.changes.push((at, link, change));
    }

    /// Count what flows send, lose and get up to this moment, beside the whole run
    /// ([`FlowOutcome::counts`](crate::FlowOutcome::counts)): what happens at the very moment comes after it.
    pub fn count_until(&mut self, moment: Time) {
        let place = self.moments.partition_point(|at| *at < moment);
        self.moments.insert(place, moment);
    }

    /// The moments of [`Network::count_until`], in order.
    pub fn counted(&self) -> &[Time] {
        &self.moments
    }

    /// Sample a link's queue and counts at multiples of `every`.
    pub fn probe_link(&mut self, link: LinkId, every: Span) {
        self.link_probes.push((link, every));
    }

    /// Record every packet that enters a link's transmitter.
    pub fn tap(&mut self, link: LinkId) {
        self.taps.push(link);
    }
}
