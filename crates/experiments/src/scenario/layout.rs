//! Builds a network with named nodes from a [`RunPlan`] and a seed.

mod trees;

use super::coordinated;
use super::diagnostic::Diagnostic;
use super::membership_periods::{stays, turns};
use super::names::{Brackets, Names, Nothing, brackets};
use super::plan::{
    self, Ecn, Ends, FlowKind, FlowPlan, LinkPlan, Patterns, Per, RouterKind, RowValues, RunPlan,
    SessionPlan, Spanned, Usual, Wire,
};
use super::unused_parts;
use faircast_aqm::{LinkSpec, QueueSpec};
use faircast_core::rng::Rng;
use faircast_core::schemes::raccoom::router as acknowledgements;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{
    ApplicationData, Change, CoordinationSpec, Law, LinkId, Network, NodeId, ReceiverSpec, SessionSpec,
    Topology, UnicastProtocol, UnicastSpec,
};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// A network with names of nodes, and with the group of each flow.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    pub(crate) names: Names,
    /// Nodes that forward no packets.
    pub(crate) hosts: BTreeSet<u32>,
    /// One entry for each direction of a link; the two directions are adjacent.
    pub(crate) links: Vec<Laid>,
    pub(crate) specs: Vec<LinkSpec>,
    pub(crate) flows: Vec<LaidFlow>,
    pub(crate) changes: Vec<(Time, u32, Change)>,
    /// The nodes of each part of each group, by the indices of the group and the part.
    pub(crate) parts: Vec<Vec<Vec<u32>>>,
    pub(crate) aggregators: Vec<u32>,
    /// Routers: node, kind, restart time, and name.
    pub(crate) routers: Vec<(u32, RouterKind, Option<Time>, Option<String>)>,
    /// Flows that share congestion control, by their indices in `flows`.
    pub(crate) coordinated: Vec<CoordinationSpec>,
    pub(crate) probes: Vec<u32>,
    pub(crate) taps: Vec<u32>,
}

/// One direction of a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Laid {
    pub from: u32,
    pub to: u32,
    /// Index into `specs`.
    pub spec: u32,
    /// Whether the file states the link's rate; otherwise the rate is the default.
    pub is_stated: bool,
}

/// A flow of the network.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaidFlow {
    /// Index of the `[[flow]]` that describes the flow.
    pub group: usize,
    pub source: u32,
    pub receivers: Vec<u32>,
    pub start: Time,
    pub stop: Time,
    /// Times at which each receiver first joins and leaves; empty if all receivers are always present.
    pub stays: Vec<(Time, Time)>,
    /// Further stays: receiver, time of joining, time of leaving. The stays of one receiver are in order.
    pub returns: Vec<(u32, Time, Time)>,
    /// Spans in which the source's application has data to send; empty if the application always has data.
    pub talks: Vec<(Time, Time)>,
    /// Relative error of the sender's clock; positive if the clock is fast.
    pub clock_error: f64,
    /// Expected representatives: their member numbers, and the time from which on they are expected.
    pub expected: Vec<(Time, Vec<u32>)>,
    /// Parent of each receiver in the session's tree; `None` stands for the source. If the list is empty, all receivers are
    /// children of the source.
    pub parents: Vec<Option<u32>>,
}

/// Numbers of the random streams of the layout, one for each use. The numbers are far above those of the streams of nodes and
/// links.
const WIRE_STREAM: u64 = u64::MAX - 1;
const FLOW_STREAM: u64 = u64::MAX - 1_000;

impl Layout {
    /// Returns the numbers of the tapped links.
    pub fn taps(&self) -> &[u32] {
        &self.taps
    }

    /// Builds the layout of a plan. On error, returns the faults with their positions.
    pub(crate) fn new(plan: &RunPlan, seed: u64) -> Result<Layout, Vec<Diagnostic>> {
        let mut builder = Builder {
            layout: Layout::default(),
            rng: Rng::new(seed, WIRE_STREAM),
            made: Vec::new(),
            wrong: Vec::new(),
        };
        builder.topology(&plan.topology);
        plan.links.iter().for_each(|link| builder.link(link));
        for (group, flow) in plan.flows.iter().enumerate() {
            let rng = Rng::new(seed, FLOW_STREAM - group as u64);
            builder.flow(group, flow, plan.duration, rng);
            builder.parts(group, flow);
        }
        for change in &plan.changes {
            for link in builder.find_links(&change.links) {
                builder.layout.changes.extend(change.changes.iter().map(|what| (change.at, link, *what)));
                let rates = change.rates.iter().map(|(at, rate)| (*at, link, Change::Rate(*rate)));
                builder.layout.changes.extend(rates);
            }
        }
        builder.layout.aggregators = builder.find(&plan.aggregators);
        for router in &plan.routers {
            let nodes = builder.find(&router.at).into_iter();
            let of = |node| (node, router.kind, router.restarts, router.name.clone());
            builder.layout.routers.extend(nodes.map(of));
        }
        let ends = builder.layout.flows.iter().map(|flow| (flow.group, flow.source, flow.receivers[0]));
        builder.layout.coordinated = coordinated::specs(ends, plan, &mut builder.wrong);
        builder.layout.probes = builder.find_links(&plan.probe.links);
        builder.layout.taps = builder.find_links(&plan.probe.taps);
        if builder.wrong.is_empty() {
            builder.wrong = builder.useless(plan);
        }
        if builder.wrong.is_empty() { Ok(builder.layout) } else { Err(builder.wrong) }
    }

    /// Builds the network for the simulator.
    pub(crate) fn network(&self, plan: &RunPlan, seed: u64) -> Network {
        let mut network = Network::of(self.nodes_and_links(|node| self.hosts.contains(&node)), seed);
        for flow in &self.flows {
            let plan = &plan.flows[flow.group];
            let id = match &plan.kind {
                FlowKind::Session(session) => {
                    let id = network.session(session_spec(plan, session, flow));
                    session.packets.into_iter().for_each(|packets| network.send_only(id, packets));
                    flow.talks.iter().for_each(|&(from, to)| network.send_during(id, from, to));
                    for &(member, join, leave) in &flow.returns {
                        network.come_back(id, member, join, leave);
                    }
                    if !flow.parents.is_empty() {
                        network.tree(id, flow.parents.clone());
                    }
                    if session.is_timed {
                        network.time_deliveries(id);
                    }
                    if session.ecn == Ecn::On {
                        network.allow_marks(id);
                    }
                    id
                }
                FlowKind::Unicast { protocol, ack, supply, is_timed } => {
                    let protocol = UnicastProtocol::Controlled(*protocol);
                    let supply = plan.supplied(&mut network, *supply);
                    let spec = unicast_spec(plan, flow, protocol);
                    let id = network.unicast(UnicastSpec { ack_size: *ack, supply, ..spec });
                    if *is_timed {
                        network.time_deliveries(id);
                    }
                    id
                }
                FlowKind::Datagrams { rate, jitter, supply } => {
                    let protocol =
                        UnicastProtocol::Datagrams { rate: Rate::from_bps(*rate), jitter: *jitter };
                    let supply = plan.supplied(&mut network, *supply);
                    network.unicast(UnicastSpec { supply, ..unicast_spec(plan, flow, protocol) })
                }
            };
            if flow.clock_error != 0.0 {
                let accepted = network.clock_error(id, flow.clock_error * 1e6);
                accepted.expect("was accepted when the tree was checked");
            }
        }
        self.aggregators.iter().for_each(|node| network.aggregate(NodeId(*node), plan.aggregate_for));
        for &(node, kind, restarts, _) in &self.routers {
            let node = NodeId(node);
            match kind {
                RouterKind::Acknowledgements => network.router(node, Arc::new(acknowledgements::Config)),
                RouterKind::Active(config) => network.router(node, Arc::new(config)),
            }
            restarts.into_iter().for_each(|at| network.restart_router(at, node));
        }
        self.coordinated.iter().for_each(|spec| network.coordinate(spec.clone()));
        self.changes.iter().for_each(|(at, link, change)| network.change(*at, LinkId(*link), *change));
        self.probes.iter().for_each(|link| network.probe_link(LinkId(*link), plan.probe.queue_every));
        plan.moments().into_iter().for_each(|moment| network.count_until(moment));
        self.taps.iter().for_each(|link| network.tap(LinkId(*link)));
        network
    }

    /// Returns the network without its flows. `is_host` returns whether a node is a host.
    pub(crate) fn nodes_and_links(&self, is_host: impl Fn(u32) -> bool) -> Topology {
        let mut topology = Topology::new();
        for node in 0..self.names.len() {
            _ = if is_host(node) { topology.host() } else { topology.router() };
        }
        for link in &self.links {
            topology.link(NodeId(link.from), NodeId(link.to), self.specs[link.spec as usize]);
        }
        topology
    }

    /// Returns the number of hosts and routers.
    pub fn nodes(&self) -> u32 {
        self.names.len()
    }

    /// Returns the number of links; the two directions of a link count separately.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Returns the number of flows; a session counts as one.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Returns the number of receivers of all flows.
    pub fn receivers(&self) -> usize {
        self.flows.iter().map(|flow| flow.receivers.len()).sum()
    }

    /// Returns the name of a link, `from->to`.
    pub(crate) fn link_name(&self, link: u32) -> String {
        let Laid { from, to, .. } = self.links[link as usize];
        format!("{}->{}", self.names.name(from), self.names.name(to))
    }
}

fn session_spec(plan: &FlowPlan, session: &SessionPlan, flow: &LaidFlow) -> SessionSpec {
    let member = |(index, node): (usize, &u32)| {
        let (join, leave) = flow.stays.get(index).copied().unwrap_or((Time::ZERO, Time::NEVER));
        ReceiverSpec { node: NodeId(*node), join, leave, mute_after: session.mute_after }
    };
    SessionSpec {
        scheme: session.scheme,
        packet_size: plan.packet,
        report_size: session.report,
        source: NodeId(flow.source),
        members: flow.receivers.iter().enumerate().map(member).collect(),
        start: flow.start,
        stop: flow.stop,
        join_latency: session.join_latency,
        leave_latency: session.leave_latency,
        alive: session.alive,
    }
}

fn unicast_spec(plan: &FlowPlan, flow: &LaidFlow, protocol: UnicastProtocol) -> UnicastSpec {
    UnicastSpec {
        protocol,
        packet_size: plan.packet,
        ack_size: plan.packet,
        from: NodeId(flow.source),
        to: NodeId(flow.receivers[0]),
        start: flow.start,
        stop: flow.stop,
        supply: ApplicationData::Endless,
    }
}

struct Builder {
    layout: Layout,
    rng: Rng,
    /// Nodes that links have created, each with the position of the link in the file.
    made: Vec<(u32, Range<usize>)>,
    wrong: Vec<Diagnostic>,
}

impl Builder {
    fn topology(&mut self, topology: &plan::Topology) {
        match topology {
            plan::Topology::None => {}
            plan::Topology::Text(network) => self.copy(network),
            plan::Topology::Star { leaves, sources, access, leaf } => {
                let hub = self.layout.names.single("hub");
                self.hosts("src", *sources, hub, access);
                self.leaves("leaf", *leaves, hub, leaf, Usual::BOTTLENECK);
            }
            plan::Topology::Dumbbell { leaves, sources, bottleneck, access, leaf } => {
                let left = self.layout.names.single("left");
                let right = self.layout.names.single("right");
                self.join(&[left], &[right], bottleneck, Usual::BOTTLENECK);
                self.hosts("src", *sources, left, access);
                self.leaves("leaf", *leaves, right, leaf, Usual::ACCESS);
            }
            plan::Topology::Tree { fanout, levels, sources, access } => {
                let root = self.layout.names.single("root");
                let mut parents = vec![root];
                for (level, fan) in fanout.iter().enumerate() {
                    let last = level + 1 == fanout.len();
                    let prefix = if last { "leaf".to_owned() } else { format!("r{}.", level + 1) };
                    let count = parents.len() as u32 * fan;
                    let first = self.layout.names.row(&prefix, 1, count);
                    let wire = levels.get(level).or(levels.last()).cloned().unwrap_or_default();
                    let from: Vec<u32> = (0..count).map(|child| parents[(child / fan) as usize]).collect();
                    parents = (first..first + count).collect();
                    self.join(&from, &parents, &wire, Usual::BOTTLENECK);
                }
                self.hosts("src", *sources, root, access);
            }
            plan::Topology::Chain { bottlenecks, leaves, sources, bottleneck, access, leaf } => {
                let first = self.layout.names.row("r", 0, bottlenecks + 1);
                let routers: Vec<u32> = (first..=first + bottlenecks).collect();
                self.join(&routers[..*bottlenecks as usize], &routers[1..], bottleneck, Usual::BOTTLENECK);
                for (number, router) in routers.into_iter().enumerate() {
                    self.hosts(&format!("src{number}."), *sources, router, access);
                    self.leaves(&format!("leaf{number}."), *leaves, router, leaf, Usual::ACCESS);
                }
            }
        }
    }

    fn copy(&mut self, network: &Topology) {
        for node in (0..network.nodes()).map(NodeId) {
            let here = self.layout.names.single(&network.name(node));
            if network.is_host(node) {
                self.layout.hosts.insert(here);
            }
        }
        for edge in network.edges() {
            let spec = self.keep(*edge.spec);
            self.layout.links.push(Laid { from: edge.from.0, to: edge.to.0, spec, is_stated: true });
        }
    }

    fn hosts(&mut self, prefix: &str, count: u32, router: u32, wire: &Wire) {
        let first = self.layout.names.row(prefix, 1, count);
        self.join(&(first..first + count).collect::<Vec<_>>(), &[router], wire, Usual::ACCESS);
    }

    fn leaves(&mut self, prefix: &str, count: u32, router: u32, wire: &Wire, usual: Usual) {
        let first = self.layout.names.row(prefix, 1, count);
        self.join(&[router], &(first..first + count).collect::<Vec<_>>(), wire, usual);
    }

    /// Adds links: from a single node to each of `to`, from each of `from` to a single node, or pair by pair. The caller ensures
    /// that one of the three cases applies.
    fn join(&mut self, from: &[u32], to: &[u32], wire: &Wire, usual: Usual) {
        let count = if from.is_empty() || to.is_empty() { 0 } else { from.len().max(to.len()) };
        let mut known = None;
        for index in 0..count {
            let (there, back) = match known {
                Some(known) => known,
                None => self.specs(wire, index, usual),
            };
            if is_uniform(wire) {
                known = Some((there, back));
            }
            let (from, to) = (from[index % from.len()], to[index % to.len()]);
            let is_stated = wire.rate.is_some();
            self.layout.links.push(Laid { from, to, spec: there, is_stated });
            let is_stated = is_stated || wire.back.as_ref().is_some_and(|back| back.rate.is_some());
            self.layout.links.push(Laid { from: to, to: from, spec: back, is_stated });
        }
    }

    fn specs(&mut self, wire: &Wire, index: usize, usual: Usual) -> (u32, u32) {
        let Usual { rate, delay, queue } = usual;
        let usual = LinkSpec::new(Rate::from_bps(rate), Span::from_secs_f64(delay), queue);
        let there = changed(usual, wire, index, &mut self.rng);
        let back = LinkSpec { queue: QueueSpec::UNLIMITED, loss: None, ..there };
        let back = match &wire.back {
            Some(wire) => changed(back, wire, index, &mut self.rng),
            None => back,
        };
        (self.keep(there), self.keep(back))
    }

    fn keep(&mut self, spec: LinkSpec) -> u32 {
        // Links with equal specifications are adjacent or nearly so. A comparison with the newest two specifications is therefore
        // sufficient.
        let specs = &mut self.layout.specs;
        let newest = specs.len().saturating_sub(2);
        if let Some(place) = specs[newest..].iter().position(|known| *known == spec) {
            return (newest + place) as u32;
        }
        specs.push(spec);
        specs.len() as u32 - 1
    }

    /// Changes the existing links between two sets of nodes. Adds new links if no links exist.
    fn link(&mut self, plan: &LinkPlan) {
        if let (Some(from), Some(to)) = (self.existing(&plan.from), self.existing(&plan.to)) {
            let matching = self.between(&from, &to);
            for (index, link) in matching.iter().enumerate() {
                self.change(*link, &plan.wire, index);
            }
            if !matching.is_empty() {
                return;
            }
        }
        let (from, to) = (self.find_or_make(&plan.from), self.find_or_make(&plan.to));
        if from.len() != to.len() && from.len() != 1 && to.len() != 1 {
            let message = format!("{} nodes cannot be linked to {} nodes", from.len(), to.len());
            let help =
                "link one node to all others, all nodes to one, or equal numbers of nodes pair by pair";
            self.wrong.push(Diagnostic::new(&plan.span, message, "which to which?").help(help));
            return;
        }
        self.join(&from, &to, &plan.wire, Usual::BOTTLENECK);
    }

    fn change(&mut self, link: u32, wire: &Wire, index: usize) {
        let (there, back) = (link as usize, (link ^ 1) as usize);
        let spec =
            changed(self.layout.specs[self.layout.links[there].spec as usize], wire, index, &mut self.rng);
        let mut reverse = self.layout.specs[self.layout.links[back].spec as usize];
        if wire.rate.is_some() {
            reverse.rate = spec.rate;
            self.layout.links[there].is_stated = true;
            self.layout.links[back].is_stated = true;
        }
        if wire.delay.is_some() {
            reverse.delay = spec.delay;
        }
        if let Some(wire) = &wire.back {
            reverse = changed(reverse, wire, index, &mut self.rng);
        }
        self.layout.links[there].spec = self.keep(spec);
        self.layout.links[back].spec = self.keep(reverse);
    }

    fn between(&self, from: &[u32], to: &[u32]) -> Vec<u32> {
        let (from, to) = (self.set(from), self.set(to));
        let links = self.layout.links.iter().enumerate();
        let matching = links.filter(|(_, link)| from[link.from as usize] && to[link.to as usize]);
        matching.map(|(number, _)| number as u32).collect()
    }

    fn set(&self, nodes: &[u32]) -> Vec<bool> {
        let mut set = vec![false; self.layout.names.len() as usize];
        nodes.iter().for_each(|node| set[*node as usize] = true);
        set
    }

    /// Returns all nodes that the patterns name; `None` if any node does not exist.
    fn existing(&self, patterns: &Patterns) -> Option<Vec<u32>> {
        let found: Option<Vec<_>> = patterns.iter().map(|p| self.layout.names.existing(&p.value)).collect();
        found.map(|found| found.concat())
    }

    /// Returns the nodes that match the patterns. For a plain name or a row that does not exist, creates the nodes.
    fn find_or_make(&mut self, patterns: &Patterns) -> Vec<u32> {
        let mut all = Vec::new();
        for pattern in patterns {
            let before = self.layout.names.len();
            match self.layout.names.existing(&pattern.value) {
                Some(found) => all.extend(found),
                None if pattern.value.contains('*') => self.refuse(pattern),
                None => match brackets(&pattern.value) {
                    Brackets::None => all.push(self.layout.names.single(&pattern.value)),
                    Brackets::Range { before, from, to, after: "" } => {
                        let first = self.layout.names.row(before, from, to - from + 1);
                        all.extend(first..=first + (to - from));
                    }
                    Brackets::Range { .. } | Brackets::Bad => self.refuse(pattern),
                },
            }
            let made = before..self.layout.names.len();
            self.made.extend(made.map(|node| (node, pattern.span.clone())));
        }
        all
    }

    fn find(&mut self, patterns: &Patterns) -> Vec<u32> {
        let mut all = Vec::new();
        for pattern in patterns {
            match self.layout.names.find(&pattern.value) {
                Ok(found) => all.extend(found),
                Err(_) => self.refuse(pattern),
            }
        }
        all
    }

    /// Reports why a pattern matches no node.
    fn refuse(&mut self, pattern: &Spanned<String>) {
        self.refuse_part(pattern, &pattern.value);
    }

    fn refuse_part(&mut self, pattern: &Spanned<String>, part: &str) {
        let help = match self.layout.names.find(part) {
            Err(Nothing::Unknown(Some(near))) => format!("did you mean {near}?"),
            Err(Nothing::Beyond(row)) => format!("there are {row}"),
            Err(Nothing::BadRange) => "a row is written as in leaf[1-16]".to_owned(),
            _ => format!("the nodes here are: {}", self.layout.names.known()),
        };
        let message = format!("no node is called \"{part}\"");
        self.wrong.push(Diagnostic::new(&pattern.span, message, "unknown").help(help));
    }

    /// Returns the links that match patterns of the form `from->to`.
    fn find_links(&mut self, patterns: &Patterns) -> Vec<u32> {
        let mut all = Vec::new();
        for pattern in patterns {
            let Some((from, to)) = pattern.value.split_once("->") else {
                let message = format!("\"{}\" is no link", pattern.value);
                let help = "a link is written as in \"left->right\" or \"hub->leaf*\"";
                self.wrong.push(Diagnostic::new(&pattern.span, message, "not a link").help(help));
                continue;
            };
            let (from, to) = (from.trim(), to.trim());
            match (self.layout.names.find(from), self.layout.names.find(to)) {
                (Ok(from), Ok(to)) => {
                    let found = self.between(&from, &to);
                    if found.is_empty() {
                        let message = format!("there is no link \"{}\"", pattern.value);
                        self.wrong.push(Diagnostic::new(&pattern.span, message, "these are not neighbours"));
                    }
                    all.extend(found);
                }
                (Err(_), _) => self.refuse_part(pattern, from),
                (_, Err(_)) => self.refuse_part(pattern, to),
            }
        }
        all
    }

    fn useless(&self, plan: &RunPlan) -> Vec<Diagnostic> {
        let Layout { names, links, flows, .. } = &self.layout;
        let ends =
            flows.iter().flat_map(|flow| flow.receivers.iter().copied().chain([flow.source])).collect();
        let links = links.iter().map(|link| (link.from, link.to));
        let joins = flows.iter().map(|flow| (flow.group, &*flow.receivers, &*flow.stays));
        unused_parts::of(names, plan, links, &ends, &self.made, joins)
    }

    fn flow(&mut self, group: usize, plan: &FlowPlan, end: Time, mut rng: Rng) {
        let sessions = self.sessions(plan);
        let mut index = 0;
        for (source, receivers) in sessions {
            if receivers.contains(&source) {
                let message = format!("{} would send to itself", self.layout.names.name(source));
                self.wrong.push(Diagnostic::new(&plan.span, message, "both ends are one"));
                return;
            }
            for _ in 0..plan.count {
                let jitter = plan.jitter * rng.unit();
                let start = Time::from_secs_f64(plan.start.get(index, &mut rng) + jitter);
                let stop = plan
                    .stop
                    .as_ref()
                    .map_or(Time::NEVER, |stop| Time::from_secs_f64(stop.get(index, &mut rng)));
                let receivers = receivers.clone();
                let mut flow = LaidFlow { group, source, receivers, start, stop, ..LaidFlow::default() };
                if let FlowKind::Session(session) = &plan.kind {
                    flow.stays = stays(session, flow.receivers.len(), &mut rng);
                    if let Some(laws) = &session.presence {
                        let steady = self.find(&session.steady);
                        come_and_go(&mut flow, laws, &steady, end, &mut rng);
                    }
                    if let Some(laws) = &session.talks {
                        flow.talks = turns(laws, start, end, &mut rng);
                    }
                    flow.expected = self.expected(session, &flow.receivers);
                    self.tree(session, &plan.span, &mut flow);
                }
                if let Some(errors) = &plan.clock_error {
                    flow.clock_error = errors.get(index, &mut rng);
                }
                self.layout.flows.push(flow);
                index += 1;
            }
        }
    }

    /// Adds the parts of a group; each part must have at least one receiver.
    fn parts(&mut self, group: usize, plan: &FlowPlan) {
        let mut all = Vec::new();
        for part in &plan.parts {
            let nodes = self.find(&part.receivers);
            let mut receivers =
                self.layout.flows.iter().filter(|flow| flow.group == group).flat_map(|flow| &flow.receivers);
            if !nodes.is_empty() && !receivers.any(|receiver| nodes.contains(receiver)) {
                let message = format!("no node of this part is a receiver of \"{}\"", plan.name.value);
                self.wrong.push(Diagnostic::new(&part.name.span, message, "an empty part"));
            }
            all.push(nodes);
        }
        self.layout.parts.push(all);
    }

    /// Returns the source and the receivers of each session or unicast flow.
    fn sessions(&mut self, plan: &FlowPlan) -> Vec<(u32, Vec<u32>)> {
        let (from, to) = match &plan.ends {
            Ends::Along(patterns) => {
                let links = self.find_links(patterns);
                let ends = links.into_iter().map(|link| self.layout.links[link as usize]);
                return ends.map(|link| (link.from, vec![link.to])).collect();
            }
            Ends::Nodes { from, to } => (self.find(from), self.find(to)),
        };
        if from.is_empty() || to.is_empty() {
            return Vec::new();
        }
        let together = matches!(&plan.kind, FlowKind::Session(session) if session.per == Per::Group);
        if from.len() == 1 && together {
            return vec![(from[0], to)];
        }
        if together || from.len() != 1 && from.len() != to.len() {
            let message = format!("{} senders for {} receivers", from.len(), to.len());
            let help = if together {
                "a session has one source; `per = \"receiver\"` makes one session, with its own source, for each receiver"
            } else {
                "give one sender for all receivers, or one sender for each receiver"
            };
            self.wrong.push(Diagnostic::new(&plan.span, message, "who sends to whom?").help(help));
            return Vec::new();
        }
        let pair = |(index, receiver): (usize, &u32)| (from[index % from.len()], vec![*receiver]);
        to.iter().enumerate().map(pair).collect()
    }

    fn expected(&mut self, session: &SessionPlan, receivers: &[u32]) -> Vec<(Time, Vec<u32>)> {
        let mut lines = Vec::new();
        for (from, patterns) in &session.expected {
            let nodes = self.find(patterns);
            let member =
                |node: &u32| receivers.iter().position(|receiver| receiver == node).map(|at| at as u32);
            lines.push((*from, nodes.iter().filter_map(member).collect()));
        }
        lines
    }
}

/// Lets each receiver, except the steady receivers, be alternately present and absent. This lasts until the end of the run or
/// until the receiver's final leave.
fn come_and_go(flow: &mut LaidFlow, laws: &(Law, Law), steady: &[u32], end: Time, rng: &mut Rng) {
    if flow.stays.is_empty() {
        flow.stays = vec![(Time::ZERO, Time::NEVER); flow.receivers.len()];
    }
    let is_steady = |member: usize| steady.contains(&flow.receivers[member]);
    for (member, stay) in flow.stays.iter_mut().enumerate().filter(|(member, _)| !is_steady(*member)) {
        let turns = turns(laws, stay.0, end.min(stay.1), rng);
        let mut turns = turns.into_iter();
        if let Some(first) = turns.next() {
            *stay = first;
        }
        flow.returns.extend(turns.map(|(join, leave)| (member as u32, join, leave)));
    }
}

/// Returns whether all links of this wire have equal properties.
fn is_uniform(wire: &Wire) -> bool {
    let uniform = |many: &Option<RowValues>| match many {
        None => true,
        Some(RowValues::Turn(values)) => values.len() == 1,
        Some(RowValues::Between(..)) => false,
    };
    uniform(&wire.rate) && uniform(&wire.delay) && wire.back.as_deref().is_none_or(is_uniform)
}

fn changed(mut spec: LinkSpec, wire: &Wire, index: usize, rng: &mut Rng) -> LinkSpec {
    if let Some(rate) = &wire.rate {
        spec.rate = Rate::from_bps(rate.get(index, rng));
    }
    if let Some(delay) = &wire.delay {
        spec.delay = Span::from_secs_f64(delay.get(index, rng));
    }
    if let Some(queue) = wire.queue {
        spec.queue = queue;
    }
    if let Some(loss) = wire.loss {
        spec.loss = loss;
    }
    if let Some(jitter) = wire.jitter {
        spec.jitter = Span::from_secs_f64(jitter);
    }
    spec
}
