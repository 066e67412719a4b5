//! The plan of a run: a scenario file at one point of its sweep, with typed values instead of text.

use super::Claim;
use crate::stats::Scale;
use faircast_aqm::{Limit, LossSpec, QueueSpec};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::schemes::rmanp::router as rmanp;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{ApplicationData, Change, Events, Law, Network};
use faircast_unicast::Protocol;
use faircast_unicast::coordination::Coordination;
use std::ops::Range;
use std::sync::Arc;

/// A value and its position in the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spanned<T> {
    pub value: T,
    pub span: Range<usize>,
}

/// Names or patterns of nodes or links.
pub(crate) type Patterns = Vec<Spanned<String>>;

/// Specification of the numbers for several items.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowValues {
    /// Numbers that the items use in turn.
    Turn(Vec<f64>),
    /// A range from which the number of each item is drawn at random.
    Between(f64, f64),
}

impl RowValues {
    /// Specifies the same number for all items.
    pub fn one(value: f64) -> RowValues {
        RowValues::Turn(vec![value])
    }

    /// Returns the number for the item at `index`.
    pub fn get(&self, index: usize, rng: &mut Rng) -> f64 {
        match self {
            RowValues::Turn(values) => values[index % values.len()],
            RowValues::Between(low, high) => low + (high - low) * rng.unit(),
        }
    }
}

/// Properties of links; `None` for properties that the scenario does not specify.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Wire {
    pub rate: Option<RowValues>,
    pub delay: Option<RowValues>,
    pub queue: Option<QueueSpec>,
    pub loss: Option<Option<LossSpec>>,
    /// Maximum additional propagation delay, in seconds.
    pub jitter: Option<f64>,
    pub back: Option<Box<Wire>>,
}

/// Default properties of links.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usual {
    /// Rate, in bits per second.
    pub rate: f64,
    /// Propagation delay, in seconds.
    pub delay: f64,
    pub queue: QueueSpec,
}

impl Usual {
    pub const BOTTLENECK: Usual =
        Usual { rate: 1e6, delay: 0.02, queue: QueueSpec::DropTail(Limit::Bytes(50_000)) };
    /// A link between a host and the network.
    pub const ACCESS: Usual = Usual { rate: 100e6, delay: 0.001, queue: QueueSpec::UNLIMITED };
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Topology {
    None,
    Star {
        leaves: u32,
        sources: u32,
        access: Wire,
        leaf: Wire,
    },
    Dumbbell {
        leaves: u32,
        sources: u32,
        bottleneck: Wire,
        access: Wire,
        leaf: Wire,
    },
    Tree {
        fanout: Vec<u32>,
        levels: Vec<Wire>,
        sources: u32,
        access: Wire,
    },
    Chain {
        bottlenecks: u32,
        leaves: u32,
        sources: u32,
        bottleneck: Wire,
        access: Wire,
        leaf: Wire,
    },
    /// A network that the scenario describes line by line.
    Text(faircast_sim::Topology),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LinkPlan {
    pub span: Range<usize>,
    pub from: Patterns,
    pub to: Patterns,
    pub wire: Wire,
}

/// Ends of a flow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ends {
    Nodes { from: Patterns, to: Patterns },
    Along(Patterns),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlowPlan {
    pub span: Range<usize>,
    pub name: Spanned<String>,
    pub ends: Ends,
    pub count: u32,
    pub packet: u16,
    pub start: RowValues,
    pub stop: Option<RowValues>,
    pub jitter: f64,
    /// Relative error of the senders' clocks; positive if a clock is fast.
    pub clock_error: Option<RowValues>,
    pub parts: Vec<PartPlan>,
    pub kind: FlowKind,
    /// Trace of the application's transmissions: times since the start, each with the total number of packets until then. A trace
    /// replaces any other source of data.
    pub trace: Option<Arc<[(Span, u32)]>>,
}

impl FlowPlan {
    /// Returns the application's data: the trace, if there is one, else `otherwise`.
    pub(crate) fn supplied(&self, network: &mut Network, otherwise: ApplicationData) -> ApplicationData {
        self.trace.clone().map_or(otherwise, |trace| ApplicationData::Trace(network.trace(trace)))
    }
}

/// Receivers of a group with their own metrics.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartPlan {
    pub name: Spanned<String>,
    pub receivers: Patterns,
}

/// A line fitted through metrics of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FitPlan {
    pub name: String,
    pub of: Vec<String>,
    /// The abscissas of the metrics in `of`.
    pub against: Vec<Abscissa>,
    pub scale: Scale,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Abscissa {
    Number(f64),
    Metric(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FlowKind {
    Session(Box<SessionPlan>),
    Unicast { protocol: Protocol, ack: u16, supply: ApplicationData, is_timed: bool },
    Datagrams { rate: f64, jitter: f64, supply: ApplicationData },
}

/// Assignment of receivers to sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Per {
    Group,
    Receiver,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionPlan {
    pub scheme: Scheme,
    pub per: Per,
    pub report: u16,
    pub join: RowValues,
    pub leave: Option<RowValues>,
    pub join_latency: Span,
    pub leave_latency: Span,
    pub alive: Option<Span>,
    pub mute_after: Option<Span>,
    pub expected: Vec<(Time, Patterns)>,
    pub settle: Span,
    /// Distributions of the times for which receivers are present and absent. Receivers in `steady` are always present.
    pub presence: Option<(Law, Law)>,
    pub steady: Patterns,
    pub packets: Option<u64>,
    /// Number of packets that a receiver needs.
    pub content: Option<u64>,
    pub talks: Option<(Law, Law)>,
    pub ecn: Ecn,
    /// Whether delays of packets are measured.
    pub is_timed: bool,
    pub tree: TreePlan,
    /// Maximum number of children of a node of the tree.
    pub most_children: u32,
}

/// Parents of the receivers in a session's tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TreePlan {
    /// All receivers are children of the source.
    Flat,
    /// The receivers in order, divided into this number of runs. The first receiver of a run is a child of the source. The rest
    /// of the run is the subtree of this receiver, divided in the same way.
    FanOut(u32),
    /// A receiver's parent is the nearest receiver on its path from the source.
    Nearest,
    /// Agents and their children; all other receivers are children of the source.
    Agents(Vec<AgentPlan>),
}

/// An agent of a tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AgentPlan {
    pub span: Range<usize>,
    pub agent: Patterns,
    pub children: Patterns,
    /// Time at which the agent fails. The agent returns at the time `returns`.
    pub dies: Option<Time>,
    pub returns: Option<Time>,
}

/// Whether data packets may be marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecn {
    /// Queues drop packets only.
    Off,
    /// Queues may mark packets.
    On,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChangePlan {
    pub at: Time,
    pub links: Patterns,
    pub changes: Vec<Change>,
    /// Times of rate changes, in order, each with the new rate.
    pub rates: Vec<(Time, Rate)>,
}

/// Nodes with routers of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RouterPlan {
    /// Name of the routers, which is the prefix of their metrics.
    pub name: Option<String>,
    pub at: Patterns,
    pub kind: RouterKind,
    /// Time at which the routers lose their state.
    pub restarts: Option<Time>,
}

/// Function of a router.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RouterKind {
    /// Aggregation of acknowledgements.
    Acknowledgements,
    /// RMANP's active router.
    Active(rmanp::Config),
}

/// Flows that share congestion control.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CoordinatePlan {
    pub span: Range<usize>,
    pub way: Coordination,
    pub flows: Vec<Spanned<String>>,
    pub groups: SharedBy,
}

/// Rule that divides flows into groups that share congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedBy {
    One,
    Flows,
    Hosts,
    /// Measurements decide which receivers form a group. All flows to the same receiver are in one group.
    Measured,
}

/// A period over which metrics are taken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeWindow {
    /// Name of the window; empty for the window from `warmup` to the end.
    pub name: String,
    pub from: Time,
    pub to: Time,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Probe {
    pub bin: Span,
    /// Length of the intervals whose rates are compared for the coefficient of variation.
    pub stretch: Span,
    /// Sampling interval; `None` means one second, or longer with many flows.
    pub sample: Option<Span>,
    pub links: Patterns,
    pub queue_every: Span,
    pub receivers: u32,
    pub watch: Option<u32>,
    pub taps: Patterns,
    pub events: Events,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunPlan {
    pub duration: Time,
    pub seeds: Vec<u64>,
    pub topology: Topology,
    pub links: Vec<LinkPlan>,
    pub flows: Vec<FlowPlan>,
    pub aggregators: Patterns,
    pub aggregate_for: Span,
    pub routers: Vec<RouterPlan>,
    pub coordinated: Vec<CoordinatePlan>,
    pub changes: Vec<ChangePlan>,
    pub windows: Vec<TimeWindow>,
    pub fits: Vec<FitPlan>,
    pub probe: Probe,
    pub claims: Vec<Claim>,
}

impl RunPlan {
    /// Returns the moments within the run at which windows begin or end, in order.
    pub fn moments(&self) -> Vec<Time> {
        let ends = self.windows.iter().flat_map(|window| [window.from, window.to]);
        let mut moments: Vec<Time> = ends.filter(|at| *at > Time::ZERO && *at < self.duration).collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    /// Returns the number of members that have bins. If parts have metrics, this is the number of all members. Otherwise the
    /// total number of bins is limited to two million, but at least 256 members have bins.
    pub fn watched(&self) -> u32 {
        const BINS: u64 = 2_000_000;
        if self.flows.iter().any(|flow| !flow.parts.is_empty()) {
            return self.probe.watch.unwrap_or(u32::MAX);
        }
        let bins = self.duration.as_nanos() / self.probe.bin.as_nanos().max(1) + 1;
        self.probe.watch.unwrap_or((BINS / bins).clamp(256, u64::from(u32::MAX)) as u32)
    }
}
