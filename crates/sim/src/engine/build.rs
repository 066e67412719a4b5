//! Construction of an engine from a description: routes, trees and agents, and the detection of work that may be done ahead of
//! the calendar.

mod border;
mod deal;
mod division;
mod relays;
mod routers;

use super::Island;
use super::agents::{
    Agent, Alive, Application, Ends, Host, MemberExtra, Mute, ReceiverAgent, Sampler, SenderAgent,
    SenderKind, SenderRest, SessionAgent, SinkAgent, Slot, Talks,
};
use super::bundles::Bundle;
use super::check::SimError;
use super::clocked::Clocked;
use super::delays::Delays;
use super::inboxes::Inboxes;
use super::islands::border::Border;
use super::islands::plan::Plan;
use super::layers::{MulticastForwarding, Subscription};
use super::links::{LinkMoments, Probe, SimLink};
use super::membership_schedule::{MembershipSchedule, merged};
use super::meter::{Meter, Moments};
use super::nanos::{NEVER, Phase};
use super::record::Records;
use super::relays::SessionSource;
use super::routers::{RESTART, ROUTER, RouterNode};
use super::tournament::Tournament;
use crate::calendar::{Calendar, Class, Entry};
use crate::delays::DelayCounts;
use crate::frame::Store;
use crate::network::{
    Events, Flow, LinkId, Network, NodeId, Options, PacketTransform, SessionExtras, SessionSpec,
    UnicastProtocol, UnicastSpec, Watch,
};
use crate::outcome::{FlowCounts, FlowOutcome, LayerOutcome};
use crate::routes::{ArrivalProcessing, Branch, Hop, NONE, SessionTrees};
use crate::traffic::ApplicationData;
use faircast_aqm::Link;
use faircast_core::node::Effects;
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_core::rng::Rng;
use faircast_core::time::Span;
use faircast_topology::{Edge, Routes};
use faircast_unicast::SenderView;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Kinds of owners of random streams. A stream is identified by this kind and a number.
enum Stream {
    Link = 1,
    Source = 2,
    Member = 3,
    Sender = 4,
    Sink = 5,
    Router = 6,
}

fn stream(seed: u64, kind: Stream, number: u64, part: u64) -> Rng {
    Rng::new(seed, ((kind as u64) << 56) | (number << 28) | part)
}

/// Random streams for programs that run a part of the network outside the simulator. They return the same numbers that the
/// simulator would draw.
impl Network {
    /// Returns the random stream that determines the actions of a link's queue and the random losses of the link.
    pub fn link_rng(&self, link: LinkId) -> Rng {
        stream(self.seed, Stream::Link, u64::from(link.0), 0)
    }

    /// Returns the random stream of this session's source. Sessions are numbered from zero; unicast flows do not count.
    pub fn source_rng(&self, session: u32) -> Rng {
        stream(self.seed, Stream::Source, u64::from(session), 0)
    }

    /// Returns the random stream of a member of this session.
    pub fn member_rng(&self, session: u32, member: u32) -> Rng {
        stream(self.seed, Stream::Member, u64::from(session), u64::from(member))
    }
}

/// The place of an island among others.
struct Place<'a> {
    plan: &'a Plan,
    me: u32,
    border: Border,
}

/// Links, and what is known before the run about the order of their packets.
struct Precomputed {
    links: Vec<SimLink>,
    bundles: Vec<Bundle>,
    inboxes: Inboxes,
    /// Feeders of inboxes: their nodes and their numbers.
    feeders: Vec<(u32, u32)>,
}

impl Place<'_> {
    fn has_host(&self, node: u32) -> bool {
        self.plan.of_node(node) == self.me
    }

    fn has_link(&self, link: LinkId) -> bool {
        self.plan.of_link(link.0) == self.me
    }
}

/// Computation of paths and trees.
pub(super) struct Paths<'a> {
    pub(super) routes: Routes<'a>,
    pub(super) trees: SessionTrees,
    /// By link: the latest hop created over the link. Paths to a common end share their last hops.
    latest_hop: Vec<u32>,
    /// Further hops by link and next hop.
    known_hops: BTreeMap<(u32, u32), u32>,
    path: Vec<LinkId>,
}

pub(super) struct Builder<'a> {
    pub(super) network: &'a Network,
    pub(super) options: &'a Options,
    pub(super) hops: Vec<Hop>,
    pub(super) branches: Vec<Branch>,
    pub(super) gates: MulticastForwarding,
    pub(super) calendar: Calendar,
    pub(super) sessions: Vec<SessionAgent>,
    pub(super) senders: Vec<SenderAgent>,
    pub(super) sinks: Vec<SinkAgent>,
    /// Agents with their nodes.
    agents: Vec<(u32, Agent)>,
    /// Nodes with a router that processes data.
    pub(super) seeing: Vec<u32>,
}

impl<'a> Builder<'a> {
    /// Returns a builder with all flows, their paths and trees.
    pub(super) fn new(network: &'a Network, options: &'a Options) -> Result<Builder<'a>, SimError> {
        let mut builder = Builder {
            network,
            options,
            hops: Vec::new(),
            branches: Vec::new(),
            gates: MulticastForwarding::new(options.until.as_nanos()),
            calendar: Calendar::default(),
            sessions: Vec::new(),
            senders: Vec::new(),
            sinks: Vec::new(),
            agents: Vec::new(),
            seeing: Vec::new(),
        };
        builder.seeing = builder.routers_that_see_data();
        let mut paths = Paths {
            routes: Routes::new(&network.topology),
            trees: SessionTrees::new(&network.topology),
            latest_hop: vec![NONE; network.topology.edges().len()],
            known_hops: BTreeMap::new(),
            path: Vec::new(),
        };
        for (number, flow) in network.flows.iter().enumerate() {
            match flow {
                Flow::Session(spec, rare) => {
                    let rare = rare.as_deref().cloned().unwrap_or_default();
                    builder.session(&mut paths, number, spec, &rare)?;
                }
                Flow::Unicast(spec) => builder.unicast(&mut paths, number, spec)?,
            }
        }
        builder.put_up_relays()?;
        Ok(builder)
    }
}

impl Builder<'_> {
    /// Creates the hops of the path between two nodes, and returns the first hop.
    pub(super) fn way(
        &mut self,
        paths: &mut Paths<'_>,
        flow: usize,
        from: u32,
        to: u32,
    ) -> Result<u32, SimError> {
        let mut path = std::mem::take(&mut paths.path);
        let found = paths.routes.path(NodeId(from), NodeId(to), &mut path).filter(|()| !path.is_empty());
        found.ok_or(SimError::NoWay { flow, from, to })?;
        let mut next = NONE;
        for &link in path.iter().rev() {
            next = self.hop(paths, link.0, next);
        }
        paths.path = path;
        Ok(next)
    }

    fn hop(&mut self, paths: &mut Paths<'_>, link: u32, next: u32) -> u32 {
        let latest = paths.latest_hop[link as usize];
        if let Some(known) = self.hops.get(latest as usize) {
            if known.next == next {
                return latest;
            }
            paths.known_hops.insert((link, known.next), latest);
            if let Some(&known) = paths.known_hops.get(&(link, next)) {
                return known;
            }
        }
        self.hops.push(Hop { link, next, then: ArrivalProcessing::Event });
        let new = self.hops.len() as u32 - 1;
        paths.latest_hop[link as usize] = new;
        new
    }

    fn session(
        &mut self,
        paths: &mut Paths<'_>,
        flow: usize,
        spec: &SessionSpec,
        rare: &SessionExtras,
    ) -> Result<(), SimError> {
        let number = self.sessions.len() as u32;
        let seed = self.network.seed;
        let nodes: Vec<NodeId> = spec.members.iter().map(|member| member.node).collect();
        let mut sorted = nodes.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SimError::TwoMembers { flow, node: pair[0].0 });
        }
        if let Some(&NodeId(node)) = nodes.iter().find(|node| **node == spec.source) {
            return Err(SimError::NoWay { flow, from: node, to: node });
        }
        let root = paths
            .trees
            .add(&mut paths.routes, number, spec.source, &nodes, &mut self.branches)
            .map_err(|member| SimError::NoWay { flow, from: spec.source.0, to: nodes[member].0 })?;
        let stays = MembershipSchedule::of(spec, rare);
        let layers = spec.scheme.layers().max(1);
        let gates = if layers > 1 { self.put_up_gates(spec, &stays, root, layers) } else { Vec::new() };
        let tree = self.put_up_tree(paths, flow, (spec, rare), &stays, root)?;
        if layers == 1 && tree.is_none() {
            self.activate(spec, &stays, root);
        }
        let Watch::First(watched) = self.options.watch;
        let mut members = Vec::with_capacity(spec.members.len());
        for (index, member) in spec.members.iter().enumerate() {
            let hop = match &tree {
                Some(tree) => tree.way_up(index),
                None => self.way(paths, flow, member.node.0, spec.source.0)?,
            };
            let me = ReceiverId::new(index as u64 + 1).expect("members are numbered from one");
            let mute =
                member.mute_after.map(|after| Mute { after: after.as_nanos(), represented: 0, since: None });
            let bins = (index < watched as usize && self.options.bin != Span::MAX).then(Vec::new);
            let returns = stays.after_the_first(index);
            let subscription = gates.get(index).map(|&gates| Subscription::new(gates, layers));
            let alive = spec.alive.map(|every| {
                // The reports of the members are spread over the interval.
                let turn = index as u64 * every.as_nanos() / spec.members.len() as u64;
                Alive { every: every.as_nanos(), next: member.join.as_nanos() + turn }
            });
            let delays = rare.is_timed.then(Box::default);
            let extra = (mute.is_some()
                || delays.is_some()
                || alive.is_some()
                || bins.is_some()
                || !returns.is_empty()
                || subscription.is_some())
            .then(|| {
                let rest = MemberExtra::default();
                Box::new(MemberExtra { bins, mute, alive, returns, subscription, delays, ..rest })
            });
            members.push(ReceiverAgent {
                receiver: spec.scheme.receiver(me),
                gaps: Default::default(),
                rng: stream(seed, Stream::Member, u64::from(number), index as u64),
                deadline: member.leave.as_nanos(),
                host: member.node.0,
                number: index as u32,
                slot: 0,
                hop,
                join: member.join.as_nanos(),
                leave: member.leave.as_nanos(),
                meter: Meter::default(),
                digest: 0,
                packets: 0,
                reports: 0,
                acknowledgements: 0,
                bytes: 0,
                extra,
            });
            self.agents.push((member.node.0, Agent::Member { session: number, member: index as u32 }));
        }
        self.agents.push((spec.source.0, Agent::Source(number)));
        let latest = self.sessions.last().filter(|session| *session.scheme == spec.scheme);
        let scheme = latest.map_or_else(|| Arc::new(spec.scheme), |session| Arc::clone(&session.scheme));
        self.sessions.push(SessionAgent {
            source: SessionSource::Scheme(Box::new(Clocked::new(
                spec.scheme.source(),
                self.network.clock(flow),
            ))),
            rng: stream(seed, Stream::Source, u64::from(number), 0),
            id: SessionId(number + 1),
            flow: flow as u32,
            host: spec.source.0,
            slot: 0,
            packet_size: spec.packet_size,
            report_size: spec.report_size,
            stated_rate: spec.scheme.entry().stated_rate,
            layers,
            root,
            root_bundle: NONE,
            phase: Phase::Waiting,
            start: spec.start.as_nanos(),
            stop: spec.stop.as_nanos(),
            sampler: Sampler::new(self.options.sample.as_nanos()),
            sent_meter: Meter::default(),
            sent: 0,
            again: 0,
            followed: None,
            starting: false,
            cuts: 0,
            left: rare.packets,
            talks: rare.talks.iter().map(|(from, to)| (from.as_nanos(), to.as_nanos())).collect(),
            capable: rare.capable,
            scheme,
            present: stays.together(),
            at_start: match &tree {
                Some(tree) => tree.at_the_top(),
                None => stays.how_many(spec.start.as_nanos()),
            },
            alive: spec.alive.map(Span::as_nanos),
            probes_left: probes(spec),
            tree,
            members,
        });
        Ok(())
    }

    /// Creates gates for the branches of a session of several layers. Returns the base layer's gate at the last hop of each
    /// member.
    fn put_up_gates(
        &mut self,
        spec: &SessionSpec,
        stays: &MembershipSchedule,
        root: (u32, u32),
        layers: u8,
    ) -> Vec<u32> {
        let (join, leave) = (spec.join_latency.as_nanos(), spec.leave_latency.as_nanos());
        self.gates.build(&mut self.branches, root.0, layers, join, leave);
        let mut last_hops = vec![NONE; spec.members.len()];
        for branch in &self.branches[root.0 as usize..] {
            if let Some(gate) = last_hops.get_mut(branch.member as usize) {
                *gate = branch.gates;
            }
        }
        let session = self.sessions.len() as u32;
        for (member, &gate) in last_hops.iter().enumerate() {
            for &(join, _) in stays.of_member(member) {
                if join == 0 {
                    self.gates.open_at_start(gate);
                } else {
                    self.gates.add_entrance(session, member as u32, join, &mut self.calendar);
                }
            }
        }
        last_hops
    }

    /// Computes the periods in which packets flow over each branch, if members join and leave.
    fn activate(&mut self, spec: &SessionSpec, stays: &MembershipSchedule, root: (u32, u32)) {
        if matches!(stays, MembershipSchedule::Always(_)) {
            return;
        }
        // Children follow their parents in the list, so the reverse order processes children first.
        for number in (root.0..self.branches.len() as u32).rev() {
            let branch = &self.branches[number as usize];
            let mut spans = Vec::new();
            if branch.member != NONE {
                spans.extend_from_slice(stays.of_member(branch.member as usize));
            }
            for child in branch.children.0..branch.children.1 {
                match &self.branches[child as usize].active {
                    None => spans.push((0, NEVER)),
                    Some(active) => spans.extend(active.iter().copied()),
                }
            }
            let (join, leave) = (spec.join_latency.as_nanos(), spec.leave_latency.as_nanos());
            let spans = merged(&spans, join, leave);
            let always = spans.iter().any(|&(from, to)| from == 0 && to == NEVER);
            self.branches[number as usize].active = (!always).then(|| spans.into_boxed_slice());
        }
    }

    fn unicast(&mut self, paths: &mut Paths<'_>, flow: usize, spec: &UnicastSpec) -> Result<(), SimError> {
        let number = self.senders.len() as u32;
        let (from, to, seed) = (spec.from.0, spec.to.0, self.network.seed);
        let hop = self.way(paths, flow, from, to)?;
        let clock = self.network.clock(flow);
        let (kind, protocol, back) = match spec.protocol {
            UnicastProtocol::Controlled(protocol) => {
                let kind = SenderKind::Controlled(Clocked::new(protocol.sender(), clock));
                (kind, Some(protocol), self.way(paths, flow, to, from)?)
            }
            UnicastProtocol::Datagrams { rate, jitter } => {
                let gap = clock.lasts(f64::from(spec.packet_size) * 8e9 / rate.bps());
                (
                    SenderKind::Datagrams { gap, jitter: jitter.clamp(0.0, 1.0), next: 0, number: 0 },
                    None,
                    NONE,
                )
            }
        };
        self.agents.push((from, Agent::Sender(number)));
        self.agents.push((to, Agent::Sink(number)));
        let application =
            Application { supply: spec.supply, next: NEVER, talks: Talks::Off, transfer: (0, 0), entry: 0 };
        let ends = match spec.supply {
            ApplicationData::Endless | ApplicationData::OnOff { .. } | ApplicationData::Trace(_) => {
                Ends::Never
            }
            ApplicationData::Packets(_) | ApplicationData::Transfers { .. } => Ends::Sometimes,
        };
        let mut sender = SenderAgent {
            host: from,
            slot: 0,
            hop,
            flow: flow as u32,
            membership: NONE,
            size: spec.packet_size,
            small: spec.ack_size,
            generation: 0,
            phase: Phase::Waiting,
            ends,
            deadline: NEVER,
            other: NEVER,
            sent: 0,
            again: 0,
            cuts: 0,
            feedback: 0,
            digest: 0,
            sent_meter: Meter::default(),
            kind,
            rng: stream(seed, Stream::Sender, u64::from(number), 0),
            rest: Box::new(SenderRest {
                protocol,
                application,
                sampler: Sampler::new(self.options.sample.as_nanos()),
                start: spec.start.as_nanos(),
                stop: spec.stop.as_nanos(),
                before: SenderView::default(),
                timeouts: 0,
            }),
        };
        sender.find_other();
        self.senders.push(sender);
        self.sinks.push(SinkAgent {
            host: to,
            slot: 0,
            hop: back,
            small: spec.ack_size,
            generation: 0,
            deadline: NEVER,
            packets: 0,
            bytes: 0,
            reports: 0,
            digest: 0,
            meter: Meter::default(),
            sink: protocol.map(|protocol| protocol.sink()),
            rng: stream(seed, Stream::Sink, u64::from(number), 0),
            delivered_before: 0,
            delays: self
                .network
                .timed
                .contains(&(flow as u32))
                .then(|| vec![DelayCounts::default(); self.network.moments.len() + 1].into_boxed_slice()),
        });
        Ok(())
    }

    pub(super) fn end(&self, link: u32) -> u32 {
        self.network.topology.edges()[link as usize].to.0
    }

    fn links(&self) -> Vec<SimLink> {
        let seed = self.network.seed;
        let changed: BTreeSet<u32> = self.network.changes.iter().map(|(_, link, _)| link.0).collect();
        let make = |(number, edge): (usize, &Edge)| {
            let rng = stream(seed, Stream::Link, number as u64, 0);
            SimLink::new(match changed.contains(&(number as u32)) {
                true => Link::new(&edge.spec, rng),
                false => Link::sharing(&edge.spec, rng),
            })
        };
        let mut links: Vec<SimLink> = self.network.topology.edges().iter().enumerate().map(make).collect();
        self.network.link_probes.iter().for_each(|(link, _)| links[link.0 as usize].watch_by_probe());
        if !self.network.moments.is_empty() {
            links.iter_mut().for_each(SimLink::watch_for_moments);
        }
        self.network.taps.iter().for_each(|link| links[link.0 as usize].watch_by_tap());
        changed.iter().for_each(|link| links[*link as usize].expect_changes());
        if self.options.events == Events::On {
            links.iter_mut().for_each(SimLink::watch_for_events);
        }
        links
    }

    fn finish(
        mut self,
        place: Place<'_>,
        Precomputed { links, bundles, inboxes, feeders }: Precomputed,
        (routers, router_of_link): (Vec<RouterNode>, Vec<u32>),
        passage: Option<Box<dyn PacketTransform>>,
    ) -> Island {
        let until = self.options.until.as_nanos();
        let mut hosts = vec![Host::new(); self.network.topology.nodes() as usize];
        let mut slots = Vec::with_capacity(self.agents.len());
        self.agents.sort_by_key(|(node, _)| *node); // stable: flows stay in order
        for (node, agent) in std::mem::take(&mut self.agents) {
            let slot = slots.len() as u32;
            let deadline = match agent {
                Agent::Source(number) => {
                    let it = &mut self.sessions[number as usize];
                    it.slot = slot;
                    it.start.min(it.probe_at()).min(it.sampler.next)
                }
                Agent::Member { session, member } => {
                    let it = &mut self.sessions[session as usize].members[member as usize];
                    it.slot = slot;
                    it.leave
                }
                Agent::Sender(number) => {
                    let it = &mut self.senders[number as usize];
                    it.slot = slot;
                    it.deadline = it.other;
                    it.other
                }
                Agent::Sink(number) => {
                    self.sinks[number as usize].slot = slot;
                    NEVER
                }
            };
            let host = &mut hosts[node as usize];
            if host.count == 0 {
                host.first = slot;
            }
            host.count += 1;
            host.next = host.next.min(deadline);
            slots.push(Slot { deadline, agent });
        }
        for (number, it) in links.iter().enumerate() {
            if it.bundled != NONE {
                hosts[self.end(number as u32) as usize].set_bundled_link(number as u32);
            }
        }
        let mut tournaments = Vec::new();
        for host in hosts.iter_mut().filter(|host| host.count >= MANY_AGENTS) {
            host.tournament = tournaments.len() as u32;
            let slots = &slots[host.first as usize..(host.first + host.count) as usize];
            tournaments.push(Tournament::new(slots.iter().map(|slot: &Slot| slot.deadline)));
        }
        for (node, feeder) in feeders.into_iter().filter(|(node, _)| place.has_host(*node)) {
            hosts[node as usize].set_feeder(feeder);
        }
        let mut calendar = self.calendar;
        let changes = self.network.changes.iter().enumerate();
        for (number, (at, ..)) in changes.filter(|(_, (_, link, _))| place.has_link(*link)) {
            calendar.push(Entry::new(at.as_nanos(), Class::Change, number as u32));
        }
        for (at, node) in self.network.router_restarts.iter().filter(|(_, node)| place.has_host(node.0)) {
            if let Some(router) = routers.iter().position(|it| it.node == node.0) {
                calendar.push(Entry::new(at.as_nanos(), Class::Change, ROUTER | RESTART | router as u32));
            }
        }
        // Reserves memory for all periodic records, so that the run allocates nothing.
        let room = |every: Span| {
            if every == Span::MAX { 0 } else { until.div_ceil(every.as_nanos().max(1)) as usize }
        };
        let moments = Moments(self.network.moments.iter().map(|moment| moment.as_nanos()).collect());
        let (bins, samples) = (room(self.options.bin), room(self.options.sample));
        let flows = self.network.flows.iter().map(|flow| {
            let source = match flow {
                Flow::Session(spec, _) => spec.source,
                Flow::Unicast(spec) => spec.from,
            };
            let events = match flow {
                Flow::Session(spec, _) if spec.members.len() > 1 => 4096,
                _ => (until / 500_000_000).clamp(64, 4096) as usize,
            };
            let (bins, samples, events) =
                if place.has_host(source.0) { (bins, samples, events) } else { (0, 0, 0) };
            let layers = match flow {
                Flow::Session(spec, _) if spec.scheme.layers() > 1 => spec.scheme.layers(),
                _ => 0,
            };
            let layer = |_| LayerOutcome { rates: Vec::with_capacity(samples), ..LayerOutcome::default() };
            FlowOutcome {
                layers: (0..layers).map(layer).collect(),
                samples: Vec::with_capacity(samples),
                received_bins: Vec::with_capacity(bins),
                sent_bins: Vec::with_capacity(bins),
                representatives: Vec::with_capacity(events),
                cuts: Vec::with_capacity(events),
                timeouts: Vec::with_capacity(events),
                counts: vec![FlowCounts::default(); moments.0.len() + 1],
                ..FlowOutcome::default()
            }
        });
        let flows = flows.collect();
        let lost = vec![0; self.senders.len() * (moments.0.len() + 1)];
        let rings = self.hops.iter().filter(|hop| hop.then == ArrivalProcessing::Event).count()
            + self.branches.iter().filter(|branch| branch.then == ArrivalProcessing::Event).count();
        let rings = Vec::with_capacity(rings);
        let probes = self.network.link_probes.iter().filter(|(link, _)| place.has_link(*link));
        let probes = probes.map(|(link, every)| {
            let every = every.as_nanos().max(1);
            let moments = self.network.moments.iter().map(|at| at.as_nanos()).collect();
            let delays = Delays::new(moments, self.network.link_spec(*link).delay.as_nanos());
            (link.0, Probe { next: 0, every, samples: Vec::new(), rates: Vec::new(), delays })
        });
        let mut island = Island {
            calendar,
            until,
            bin: self.options.bin.as_nanos(),
            link_moments: LinkMoments::new(links.len(), moments.0.len()),
            moments,
            sample: self.options.sample.as_nanos(),
            is_large: links.len() >= MANY_LINKS,
            links,
            rings,
            queues: Vec::new(),
            probes: probes.collect(),
            routers,
            router_of_link,
            trouble: None,
            hops: self.hops,
            branches: self.branches,
            gates: self.gates,
            bundles,
            inboxes,
            hosts,
            slots,
            tournaments,
            sessions: self.sessions,
            senders: self.senders,
            sinks: self.sinks,
            coordinations: Vec::new(),
            memberships: Vec::new(),
            store: Store::default(),
            effects: Effects::new(),
            passage,
            changes: self.network.changes.clone(),
            traces: self.network.traces.clone(),
            taps: Vec::new(),
            records: Records::new(flows, lost, self.options.events),
            border: place.border,
            traversals: 0,
            arrivals: 0,
            events: 0,
        };
        island.put_up_queues();
        (0..island.hosts.len() as u32).for_each(|host| island.schedule_host(host));
        island
    }
}

/// Smallest number of links of a network whose state does not fit the caches.
const MANY_LINKS: usize = 2500;

/// Smallest number of agents with which a host uses a tournament to find the next deadline.
const MANY_AGENTS: u32 = 12;

/// Returns the number of probes that fit before the start of the session: at most four.
fn probes(spec: &SessionSpec) -> u8 {
    let Some(every) = spec.alive.filter(|every| *every > Span::ZERO) else { return 0 };
    (spec.start.as_nanos() / every.as_nanos()).min(4) as u8
}
