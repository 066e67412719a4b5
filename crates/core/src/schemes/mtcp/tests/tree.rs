//! A tree for tests. The source's multicast reaches every node over a separate bottleneck. The distance between parent and child
//! equals the distance between source and child.

use super::super::{Agent, Config, Receiver, Source};
use crate::node::{
    Cx, Departure, Effect, Effects, Receiver as _, Relay as _, Source as _, SourceControl, Stamp, To,
};
use crate::packet::{Arrival, Body, Data, Flags, Layer, Packet, ReceiverId, Report, ReportContent};
use crate::rng::Rng;
use crate::schemes::bench;
use crate::time::{Rate, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub rate: Rate,
    pub delay: Span,
    /// Capacity of the queue, in packets.
    pub buffer: u64,
}

impl Path {
    pub fn mbps(mbps: f64, millis: u64, buffer: u64) -> Path {
        Path { rate: Rate::from_mbps(mbps), delay: Span::from_millis(millis), buffer }
    }
}

#[expect(clippy::large_enum_variant, reason = "there are few in a test")]
enum Role {
    Leaf(Receiver),
    Agent(Agent),
}

pub struct Node {
    role: Role,
    pub parent: Option<usize>,
    pub path: Path,
    busy_until: Time,
    rng: Rng,
    /// Offset by which the node's clock is ahead.
    offset: Span,
    group: u8,
    pub got: BTreeSet<u64>,
    /// Packets that this node loses when they are sent for the first time.
    pub loses: BTreeSet<u64>,
    pub arrivals: Vec<(Time, u64, bool)>,
    pub reports: u64,
    /// Fraction of this node's reports that is lost.
    pub report_loss: f64,
    pub lost: u64,
}

pub struct TestTree {
    pub source: Source,
    pub nodes: Vec<Node>,
    pub now: Time,
    pub sent: u64,
    pub sent_at: Vec<Time>,
    rng: Rng,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    effects: Effects,
    /// Number of reports received by the source.
    pub reports_received: u64,
    /// The source's windows after every report.
    pub trace: Vec<(Time, f64)>,
    pub limit: u64,
}

enum Event {
    Data { to: usize, data: Data, size: u16, is_of_source: bool },
    Report { to: Option<usize>, report: Report },
    Order { to: usize, order: crate::packet::Order },
}

const SIZE: u16 = 1000;

impl TestTree {
    /// Creates a source, and nodes with their parents (`None` is the source), numbered from one.
    pub fn new(config: Config, nodes: &[(Option<usize>, Path)]) -> TestTree {
        TestTree::with_clocks(config, nodes, &[])
    }

    pub fn with_clocks(config: Config, nodes: &[(Option<usize>, Path)], offsets: &[Span]) -> TestTree {
        let make = |(number, (parent, path)): (usize, &(Option<usize>, Path))| {
            let me = ReceiverId::new(number as u64 + 1).expect("not zero");
            let children = nodes.iter().filter(|(parent, _)| *parent == Some(number)).count();
            let role = if children > 0 {
                let mut agent = Agent::new(me, &config);
                agent.control(SourceControl::Members(children), Time::ZERO);
                Role::Agent(agent)
            } else {
                Role::Leaf(Receiver::new(me, &config))
            };
            Node {
                role,
                parent: *parent,
                path: *path,
                busy_until: Time::ZERO,
                rng: Rng::new(7, number as u64),
                offset: offsets.get(number).copied().unwrap_or(Span::ZERO),
                group: 0,
                got: BTreeSet::new(),
                loses: BTreeSet::new(),
                arrivals: Vec::new(),
                reports: 0,
                report_loss: 0.0,
                lost: 0,
            }
        };
        let mut grove = TestTree {
            source: Source::new(config),
            nodes: nodes.iter().enumerate().map(make).collect(),
            now: Time::ZERO,
            sent: 0,
            sent_at: Vec::new(),
            rng: Rng::new(7, 1000),
            events: BTreeMap::new(),
            order: 0,
            effects: Effects::new(),
            reports_received: 0,
            trace: Vec::new(),
            limit: u64::MAX,
        };
        let top = nodes.iter().filter(|(parent, _)| parent.is_none()).count();
        grove.source.control(SourceControl::Members(top), Time::ZERO);
        let cx = &mut Cx { now: Time::ZERO, rng: &mut grove.rng, effects: &mut grove.effects };
        grove.source.start(cx);
        grove
    }

    /// Restarts the random numbers with another seed.
    pub fn reseed(&mut self, seed: u64) {
        self.rng = Rng::new(seed, 1000);
    }

    pub fn agent(&self, node: usize) -> &Agent {
        match &self.nodes[node].role {
            Role::Agent(agent) => agent,
            Role::Leaf(_) => panic!("node {node} is a leaf"),
        }
    }

    pub fn run_until(&mut self, seconds: f64) {
        let end = Time::from_secs_f64(seconds);
        while self.step(end) {}
        self.now = end;
    }

    /// Returns the number of packets that a node received from `from` to `to`, in seconds.
    pub fn received(&self, node: usize, from: f64, to: f64) -> usize {
        let within = |at: Time| at >= Time::from_secs_f64(from) && at < Time::from_secs_f64(to);
        self.nodes[node].arrivals.iter().filter(|(at, _, again)| within(*at) && !again).count()
    }

    fn departure(&self) -> Time {
        match self.source.departure(Layer(0)) {
            _ if self.sent >= self.limit => Time::NEVER,
            Departure::At(at) => at.max(self.now),
            Departure::AfterReport => Time::NEVER,
        }
    }

    fn timer(&self, node: usize) -> Time {
        let deadline = match &self.nodes[node].role {
            Role::Leaf(leaf) => leaf.deadline(),
            Role::Agent(agent) => agent.deadline(),
        };
        if deadline.is_never() { deadline } else { deadline - self.nodes[node].offset }
    }

    fn step(&mut self, end: Time) -> bool {
        let timers = (0..self.nodes.len()).map(|node| self.timer(node)).min().unwrap_or(Time::NEVER);
        let event = self.events.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        let source = self.source.deadline().min(self.departure());
        let next = timers.min(event).min(source);
        if next >= end {
            return false;
        }
        self.now = next.max(self.now);
        if event <= self.now {
            let (_, event) = self.events.pop_first().expect("just seen");
            self.happen(event);
        } else if timers <= self.now {
            for node in 0..self.nodes.len() {
                if self.timer(node) <= self.now {
                    self.with(node, |role, cx| match role {
                        Role::Leaf(leaf) => leaf.on_deadline(cx),
                        Role::Agent(agent) => agent.on_deadline(cx),
                    });
                }
            }
        } else if self.source.deadline() <= self.now {
            self.source.on_deadline(&mut Cx {
                now: self.now,
                rng: &mut self.rng,
                effects: &mut self.effects,
            });
            self.carry_out(None);
        } else {
            self.depart();
        }
        true
    }

    fn depart(&mut self) {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        let stamp = self.source.on_departure(Layer(0), SIZE, cx);
        self.carry_out(None);
        let Stamp { seq, flags, signal, mark, .. } = stamp;
        let data = Data { flags, signal, ..bench::data(seq.0, self.now, mark) };
        self.sent += 1;
        self.sent_at.push(self.now);
        for node in 0..self.nodes.len() {
            if self.nodes[node].group == 0 {
                self.carry(node, data, SIZE, true);
            }
        }
    }

    /// Sends data to a node over the node's bottleneck.
    fn carry(&mut self, to: usize, data: Data, size: u16, is_of_source: bool) {
        let node = &mut self.nodes[to];
        let waiting =
            node.busy_until.since(self.now).as_secs_f64() / node.path.rate.span_of(1000).as_secs_f64();
        if waiting >= node.path.buffer as f64 || (is_of_source && node.loses.remove(&data.seq.0)) {
            node.lost += 1;
            return;
        }
        node.busy_until = node.busy_until.max(self.now) + node.path.rate.span_of(u64::from(size));
        let at = node.busy_until + node.path.delay;
        self.schedule(at, Event::Data { to, data, size, is_of_source });
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Data { to, data, size, is_of_source } => {
                let node = &mut self.nodes[to];
                if is_of_source && node.group != 0 {
                    return; // it left the session's group meanwhile
                }
                let again = data.flags.has(Flags::REPAIR);
                node.arrivals.push((self.now, data.seq.0, again));
                node.got.insert(data.seq.0);
                let arrival = Arrival { size, ..Arrival::default() };
                self.with(to, |role, cx| match role {
                    Role::Leaf(leaf) => leaf.on_data(&data, Layer(0), arrival, cx),
                    Role::Agent(agent) => agent.on_data(&data, Layer(0), arrival, cx),
                });
            }
            Event::Order { to, order } => self.with(to, |role, cx| match role {
                Role::Leaf(leaf) => leaf.on_order(&order, cx),
                Role::Agent(agent) => agent.on_order(&order, cx),
            }),
            Event::Report { to: None, report } => {
                self.reports_received += u64::from(!matches!(report.content, ReportContent::Answered { .. }));
                let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
                self.source.on_report(&report, cx);
                self.source.parent().check();
                self.trace.push((self.now, self.source.windows().expect("it has some").least));
                self.carry_out(None);
            }
            Event::Report { to: Some(to), report } => self.with(to, |role, cx| {
                let Role::Agent(agent) = role else { panic!("leaves have no children") };
                agent.on_report(&report, cx);
            }),
        }
    }

    fn with(&mut self, node: usize, act: impl FnOnce(&mut Role, &mut Cx<'_>)) {
        let it = &mut self.nodes[node];
        let cx = &mut Cx { now: self.now + it.offset, rng: &mut it.rng, effects: &mut self.effects };
        act(&mut it.role, cx);
        if let Role::Agent(agent) = &it.role {
            agent.parent().check();
        }
        self.carry_out(Some(node));
    }

    fn carry_out(&mut self, node: Option<usize>) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain() {
            match effect {
                Effect::Report(report) => {
                    let it = &mut self.nodes[node.expect("the source does not report")];
                    it.reports += 1;
                    let (to, at, loss) = (it.parent, self.now + it.path.delay, it.report_loss);
                    if loss == 0.0 || !self.rng.chance(loss) {
                        self.schedule(at, Event::Report { to, report });
                    }
                }
                Effect::Attend(group) => self.nodes[node.expect("the source is in no group")].group = group,
                Effect::Send { to, packet } => self.send(node, to, &packet),
                Effect::Subscribe(_) | Effect::Leave => panic!("there are no layers, and nobody is excluded"),
            }
        }
        self.effects = effects;
    }

    fn send(&mut self, from: Option<usize>, to: To, packet: &Packet) {
        let children: Vec<usize> =
            (0..self.nodes.len()).filter(|node| self.nodes[*node].parent == from).collect();
        match (to, packet.body) {
            (To::Child(id), Body::Order(order)) => {
                let to = id.get() as usize - 1;
                let at = self.now + self.nodes[to].path.delay;
                self.schedule(at, Event::Order { to, order });
            }
            (To::Child(id), Body::Data(data)) => self.carry(id.get() as usize - 1, data, packet.size, false),
            (To::Group, Body::Data(data)) => {
                for child in children {
                    if self.nodes[child].group == packet.layer.0 {
                        self.carry(child, data, packet.size, false);
                    }
                }
            }
            (to, body) => panic!("nobody sends {body:?} to {to:?}"),
        }
    }

    /// Returns whether all nodes have all sent packets.
    pub fn is_complete(&self) -> bool {
        self.nodes.iter().all(|node| node.got.len() as u64 == self.sent)
    }
}
