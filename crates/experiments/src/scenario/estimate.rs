//! Estimates the memory of a run from the run's plan, before the network is laid out.
//!
//! Each constant was measured in runs and rounded up. A test compares the estimated memory with the measured memory.

use super::names::{Brackets, brackets};
use super::plan::{
    Ends, FlowKind, FlowPlan, Patterns, Per, RowValues, RunPlan, Spanned, Topology, Usual, Wire,
};
use crate::table::BOTTLENECKS;
use faircast_aqm::{Limit, QueueSpec};
use faircast_core::time::{Span, Time};
use faircast_sim::{Events, Law};
use faircast_topology::memory::{self, Estimate};
use std::collections::BTreeMap;

/// Bytes of a node with its name, its routes and its agents.
const NODE: u64 = 300;
/// Bytes of one direction of a link: in the layout, the specification and the simulation.
const LINK: u64 = memory::LINK;
/// Bytes of a receiver of a session: state, counts and metrics.
const RECEIVER: u64 = 1_400;
/// Bytes of a hop on a path, or of a branch of a tree.
const HOP: u64 = 100;
/// Bytes of a flow: its sender, its sink, its counts, and the reserved capacity for its records.
const FLOW: u64 = 8_000;
/// Additional bytes of a session's source, with the reserved capacity for representatives and cuts.
const SESSION: u64 = 400_000;
/// Bytes of a sample in a series, in the simulator and in the resulting table.
const SAMPLE: u64 = 200;
/// Bytes of a bin of a receiver or a flow, in the simulator and in the resulting table.
const BIN: u64 = 80;
/// Bytes of a stay of a receiver, of an on period of an application, or of a change of a link.
const TURN: u64 = 160;
/// Bytes of a link's counts at one moment.
const TALLY: u64 = 48;
/// Bytes of a histogram of delays.
const DELAYS: u64 = 2_000;
/// Bytes of a row of results, which is in the table of its run, in the table of all runs, and in a text.
const ROW: u64 = 550;
/// Bytes of the metrics and counts of a run; added once per run and once per flow.
const METRICS: u64 = 20_000;
/// Bytes of a recorded packet, including its bytes in a capture.
const RECORDED: u64 = 250;
/// Maximum length of a queue, as the time in seconds in which the narrowest link transmits the whole queue.
const MAX_QUEUE: f64 = 100.0;
/// Assumed maximum number of links on a path, if the scenario describes the network line by line.
const DEEPEST: u64 = 64;

struct Sizes<'a> {
    plan: &'a RunPlan,
    /// Number of nodes for each prefix of node names.
    rows: BTreeMap<String, u64>,
    links: u64,
    /// Maximum number of links on a path through the network.
    depth: u64,
    /// Size of the smallest packet of any flow, in bits.
    packet: f64,
    /// Maximum number of receivers of a flow that have bins.
    watched: u64,
    /// Rate of the narrowest link in bits per second. `widest` is the rate of the fastest link.
    narrow: f64,
    widest: f64,
    /// Number of packets on links and in queues. `tables` is the size of the queues' tables in bytes.
    packets: u64,
    tables: u64,
}

/// Memory of a run, and the part of this memory that is needed until the results are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfRun {
    pub run: Estimate,
    pub kept: u64,
}

/// Estimates the memory of a run.
pub(crate) fn of(plan: &RunPlan) -> OfRun {
    let mut sizes = Sizes {
        plan,
        rows: BTreeMap::new(),
        links: 0,
        depth: 1,
        packet: min_packet(plan),
        watched: plan.watched().into(),
        narrow: narrowest(plan),
        widest: 0.0,
        packets: 0,
        tables: 0,
    };
    sizes.topology();
    plan.links.iter().for_each(|link| sizes.link(link));
    let mut run = Estimate::new();
    run.add(sizes.rows.values().fold(0, |sum: u64, count| sum.saturating_add(*count)), "nodes", NODE);
    run.add(sizes.links, "links", LINK);
    run.add(sizes.links.saturating_mul(plan.moments().len() as u64), "counts of links", TALLY);
    run.add(sizes.tables, "bytes of queues' tables", 1);
    let overload = plan.flows.iter().fold(0, |sum: u64, flow| sum.saturating_add(sizes.overload(flow)));
    run.add(sizes.packets.saturating_add(overload), "packets in queues and on links", memory::PACKET);
    let series = plan.flows.iter().fold(0, |sum: u64, flow| sum.saturating_add(sizes.flow(flow, &mut run)));
    run.add(series, "moments of flows' series", BIN);
    let probed =
        moments(plan.duration, plan.probe.queue_every).saturating_mul(sizes.links_of(&plan.probe.links));
    run.add(probed, "samples of queues", SAMPLE);
    sizes.changes(&mut run);
    let before = run.total();
    sizes.records(&mut run);
    let records = run.total().saturating_sub(before);
    let bottlenecks = sizes.links.min(BOTTLENECKS as u64).saturating_mul(plan.windows.len() as u64);
    let fixed = probed.saturating_add(bottlenecks);
    let rows = plan.flows.iter().fold(fixed, |sum: u64, flow| sum.saturating_add(sizes.rows_of(flow)));
    OfRun { run, kept: rows.saturating_mul(ROW).saturating_add(METRICS).saturating_add(records) }
}

/// Returns the bytes of a plan. A plan stays in memory until its scenario is dropped.
pub(crate) fn of_plan(plan: &RunPlan) -> u64 {
    let traces = plan.flows.iter().filter_map(|flow| flow.trace.as_ref()).map(|trace| trace.len() as u64);
    let rates = plan.changes.iter().map(|change| change.rates.len() as u64);
    4_000 + 24 * traces.chain(rates).sum::<u64>() + 600 * (plan.flows.len() + plan.links.len()) as u64
}

/// Returns the size of the smallest packet of any flow, in bits.
fn min_packet(plan: &RunPlan) -> f64 {
    let smallest = plan.flows.iter().map(|flow| flow.packet).min().unwrap_or(1_000);
    f64::from(smallest.max(1)) * 8.0
}

/// Returns the number of moments until `until` if there is one moment in each period.
fn moments(until: Time, every: Span) -> u64 {
    until.as_nanos() / every.as_nanos().max(1) + 1
}

fn largest(many: Option<&RowValues>, otherwise: f64) -> f64 {
    match many {
        None => otherwise,
        Some(RowValues::Turn(values)) => values.iter().copied().fold(0.0, f64::max),
        Some(RowValues::Between(low, high)) => low.max(*high),
    }
}

/// Converts a number to a count; NaN becomes 0.
fn whole(number: f64) -> u64 {
    // The conversion saturates: a number above the range of `u64` becomes the largest `u64`.
    number.max(0.0) as u64
}

impl Sizes<'_> {
    fn row(&mut self, prefix: &str, count: u64) {
        let nodes = self.rows.entry(prefix.to_owned()).or_default();
        *nodes = nodes.saturating_add(count);
    }

    fn topology(&mut self) {
        let product = |a: u32, b: u32| u64::from(a).saturating_mul(u64::from(b));
        match &self.plan.topology {
            Topology::None => {}
            Topology::Star { leaves, sources, access, leaf } => {
                self.row("hub", 1);
                self.hosts("src", (*sources).into(), access);
                self.row("leaf", (*leaves).into());
                self.wire(leaf, (*leaves).into(), Usual::BOTTLENECK);
                self.depth += 1;
            }
            Topology::Dumbbell { leaves, sources, bottleneck, access, leaf } => {
                self.row("left", 1);
                self.row("right", 1);
                self.wire(bottleneck, 1, Usual::BOTTLENECK);
                self.hosts("src", (*sources).into(), access);
                self.hosts("leaf", (*leaves).into(), leaf);
                self.depth += 2;
            }
            Topology::Tree { fanout, levels, sources, access } => {
                self.row("root", 1);
                let mut count: u64 = 1;
                for (level, fan) in fanout.iter().enumerate() {
                    count = count.saturating_mul((*fan).into());
                    let last = level + 1 == fanout.len();
                    self.row(if last { "leaf" } else { "r" }, count);
                    let wire = levels.get(level).or(levels.last()).cloned().unwrap_or_default();
                    self.wire(&wire, count, Usual::BOTTLENECK);
                }
                self.hosts("src", (*sources).into(), access);
                self.depth += fanout.len() as u64;
            }
            Topology::Chain { bottlenecks, leaves, sources, bottleneck, access, leaf } => {
                let routers = bottlenecks.saturating_add(1);
                self.row("r", routers.into());
                self.wire(bottleneck, (*bottlenecks).into(), Usual::BOTTLENECK);
                self.hosts("src", product(*sources, routers), access);
                self.hosts("leaf", product(*leaves, routers), leaf);
                self.depth += u64::from(*bottlenecks) + 1;
            }
            Topology::Text(network) => {
                for node in (0..network.nodes()).map(faircast_sim::NodeId) {
                    self.row(&network.name(node), 1);
                }
                for edge in network.edges() {
                    let spec = &edge.spec;
                    let (rate, delay) = (spec.rate.bps(), spec.delay.as_secs_f64());
                    self.links += 1;
                    self.packets_of(&spec.queue, 1, rate, delay);
                }
                self.depth = DEEPEST.min(u64::from(network.nodes()));
            }
        }
    }

    /// Adds hosts and their links. By default these links are fast.
    fn hosts(&mut self, prefix: &str, count: u64, wire: &Wire) {
        self.row(prefix, count);
        self.wire(wire, count, Usual::ACCESS);
    }

    /// Adds `count` links with the properties of this wire, in both directions.
    fn wire(&mut self, wire: &Wire, count: u64, usual: Usual) {
        self.links = self.links.saturating_add(count.saturating_mul(2));
        for wire in [Some(wire), wire.back.as_deref()].into_iter().flatten() {
            let (rate, delay) =
                (largest(wire.rate.as_ref(), usual.rate), largest(wire.delay.as_ref(), usual.delay));
            let queue = wire.queue.unwrap_or(usual.queue);
            self.packets_of(&queue, count, rate, delay);
        }
    }

    /// Adds the packets that `count` links can hold. The number of packets is limited by the rate of the narrowest link.
    fn packets_of(&mut self, queue: &QueueSpec, count: u64, rate: f64, delay: f64) {
        self.tables = self.tables.saturating_add(count.saturating_mul(memory::of_queue(queue)));
        let rate = if rate.is_finite() { rate } else { 0.0 };
        self.widest = self.widest.max(rate);
        let until = self.plan.duration.as_secs_f64();
        let bits = self.packet;
        let through = self.narrow.min(rate) / bits;
        let under_way = whole(through * delay.min(until));
        // The buffer may be large, but congestion control limits the queue to this length. `overload` counts the packets of flows
        // without congestion control.
        let waits = whole(through * until.min(MAX_QUEUE));
        let (waits, queues) = match limit(queue, bits) {
            None => (waits, 1),
            Some(limit) => (waits.min(limit), count),
        };
        let all = under_way.saturating_mul(count).saturating_add(waits.saturating_mul(queues));
        self.packets = self.packets.saturating_add(all);
    }

    fn link(&mut self, link: &super::plan::LinkPlan) {
        let (from, to) = (self.nodes_of(&link.from), self.nodes_of(&link.to));
        let count = from.0.max(to.0);
        // Nodes that do not exist are created.
        for (fresh, patterns) in [(from.1, &link.from), (to.1, &link.to)] {
            if fresh > 0 {
                let prefix = patterns
                    .first()
                    .map_or("", |pattern| pattern.value.split('[').next().unwrap_or_default());
                self.row(prefix, fresh);
            }
        }
        self.wire(&link.wire, count, Usual::BOTTLENECK);
        self.depth = self.depth.max((self.depth + 1).min(DEEPEST));
    }

    /// Returns the number of nodes in all rows whose prefix begins with `prefix`, or whose prefix is the beginning of `prefix`.
    fn known(&self, prefix: &str) -> u64 {
        let longer = self.rows.range(prefix.to_owned()..).take_while(|(row, _)| row.starts_with(prefix));
        let shorter = prefix.char_indices().filter_map(|(end, _)| self.rows.get(&prefix[..end]));
        longer.map(|(_, count)| count).chain(shorter).fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the maximum number of nodes that match the patterns, and the number of these nodes that are in no known row.
    fn nodes_of(&self, patterns: &Patterns) -> (u64, u64) {
        let (mut all, mut fresh) = (0_u64, 0_u64);
        for Spanned { value, .. } in patterns {
            let prefix = value.split(['*', '[']).next().unwrap_or_default();
            let known = self.known(prefix);
            let count = match brackets(value) {
                Brackets::Range { from, to, .. } => u64::from(to - from) + 1,
                _ if value.contains('*') => known,
                _ => 1,
            };
            all = all.saturating_add(count);
            if known == 0 {
                fresh = fresh.saturating_add(count);
            }
        }
        (all, fresh)
    }

    /// Returns the number of links that match patterns such as `hub->leaf*`.
    fn links_of(&self, patterns: &Patterns) -> u64 {
        let ends = |pattern: &Spanned<String>| {
            let (from, to) = pattern.value.split_once("->")?;
            let end = |text: &str| vec![Spanned { value: text.trim().to_owned(), span: 0..0 }];
            Some(self.nodes_of(&end(from)).0.max(self.nodes_of(&end(to)).0))
        };
        patterns.iter().filter_map(ends).fold(0, u64::saturating_add).min(self.links)
    }

    /// Returns the number of flows of a `[[flow]]`, and the number of receivers of each flow.
    fn crowd(&self, flow: &FlowPlan) -> (u64, u64) {
        let receivers = match &flow.ends {
            Ends::Along(links) => self.links_of(links),
            Ends::Nodes { to, from } => self.nodes_of(to).0.max(self.nodes_of(from).0),
        };
        let together = matches!(&flow.kind, FlowKind::Session(session) if session.per == Per::Group)
            && matches!(flow.ends, Ends::Nodes { .. });
        let (flows, members) = if together { (1, receivers) } else { (receivers, 1) };
        (flows.saturating_mul(flow.count.into()), members)
    }

    /// Returns the number of rows that a `[[flow]]` adds to rates, averages and samples.
    fn rows_of(&self, flow: &FlowPlan) -> u64 {
        let ((flows, members), probe) = (self.crowd(flow), &self.plan.probe);
        let shown = flows.saturating_mul(members).min(probe.receivers.into()) + 1;
        let rates = moments(self.plan.duration, probe.bin).saturating_mul(shown).saturating_mul(2);
        let sample = probe.sample.unwrap_or(Span::from_secs(1));
        rates.saturating_add(
            moments(self.plan.duration, sample).saturating_mul(flows.min(probe.receivers.into())),
        )
    }

    /// Adds a `[[flow]]`. Returns the number of entries in its time series.
    fn flow(&self, flow: &FlowPlan, run: &mut Estimate) -> u64 {
        let (flows, members) = self.crowd(flow);
        let all = flows.saturating_mul(members);
        let name = &flow.name.value;
        let duration = self.plan.duration;
        run.add(flows, &format!("flows of \"{name}\""), FLOW);
        if let FlowKind::Session(session) = &flow.kind {
            run.add(flows, &format!("sources of \"{name}\""), if members > 1 { SESSION } else { FLOW });
            run.add(all, &format!("receivers of \"{name}\""), RECEIVER);
            let turns = |laws: &(Law, Law)| turns(duration, laws);
            let stays = session.presence.as_ref().map_or(0, turns).saturating_mul(all);
            run.add(stays, &format!("stays of receivers of \"{name}\""), TURN);
            let talks = session.talks.as_ref().map_or(0, turns).saturating_mul(flows);
            run.add(talks, &format!("turns of \"{name}\""), TURN);
        }
        let is_timed = match &flow.kind {
            FlowKind::Session(session) => session.is_timed,
            FlowKind::Unicast { is_timed, .. } => *is_timed,
            FlowKind::Datagrams { .. } => false,
        };
        let spans = self.plan.moments().len() as u64 + 1;
        run.add(
            if is_timed { all.saturating_mul(spans) } else { 0 },
            &format!("delays of \"{name}\""),
            DELAYS,
        );
        // Paths in both directions. For a session this is an upper bound, because its receivers share all branches except the
        // last hop.
        run.add(all.saturating_mul(self.depth).saturating_mul(2), &format!("hops of \"{name}\""), HOP);
        let watched = self.watched.min(members);
        let bins = moments(duration, self.plan.probe.bin).saturating_mul(flows.saturating_mul(2 + watched));
        let seldom = (flows as f64 * duration.as_secs_f64() / 2e6).ceil().clamp(1.0, 1e9);
        let seldom = Span::from_secs(seldom as u64);
        let samples = moments(duration, self.plan.probe.sample.unwrap_or(seldom)).saturating_mul(flows);
        bins.saturating_add(samples.saturating_mul(SAMPLE.div_ceil(BIN)))
    }

    /// Returns the number of packets that wait because a flow without congestion control sends faster than the narrowest link.
    fn overload(&self, flow: &FlowPlan) -> u64 {
        let FlowKind::Datagrams { rate, .. } = &flow.kind else { return 0 };
        let beyond = (*rate - self.narrow).max(0.0) * f64::from(flow.count);
        let comes = whole(beyond * self.plan.duration.as_secs_f64() / (f64::from(flow.packet.max(1)) * 8.0));
        if self.is_endless() { comes } else { 0 }
    }

    /// Returns whether the plan has a queue without a limit.
    fn is_endless(&self) -> bool {
        if let Topology::Text(network) = &self.plan.topology {
            let endless = |edge: &faircast_topology::Edge| limit(&edge.spec.queue, 8.0).is_none();
            return network.edges().iter().any(endless);
        }
        wires(self.plan).iter().any(|(wire, usual)| limit(&wire.queue.unwrap_or(usual.queue), 8.0).is_none())
    }

    fn changes(&self, run: &mut Estimate) {
        let of = |change: &super::plan::ChangePlan| {
            let each = (change.changes.len() + change.rates.len()) as u64;
            each.saturating_mul(self.links_of(&change.links))
        };
        let changes = self.plan.changes.iter().map(of).fold(0, u64::saturating_add);
        run.add(changes, "changes of links", TURN);
        let entries =
            self.plan.flows.iter().filter_map(|flow| flow.trace.as_ref()).map(|trace| trace.len() as u64);
        run.add(entries.sum(), "entries of traces", 24);
    }

    /// Adds the records of single packets. The number of records follows from the rate of the fastest link that the scenario
    /// specifies.
    fn records(&self, run: &mut Estimate) {
        let packets = whole(self.widest * self.plan.duration.as_secs_f64() / self.packet);
        let taps = self.links_of(&self.plan.probe.taps);
        run.add(packets.saturating_mul(taps), "packets on tapped links", RECORDED);
        if self.plan.probe.events == Events::On {
            // Assume that one packet in a hundred is lost or marked.
            run.add(packets.saturating_mul(self.links) / 100, "events", RECORDED);
        }
    }
}

/// Returns all wires of a plan, each with the defaults of its unspecified properties. A network in the text form has no wires.
fn wires(plan: &RunPlan) -> Vec<(&Wire, Usual)> {
    let of_topology: Vec<(&Wire, Usual)> = match &plan.topology {
        Topology::Star { access, leaf, .. } => vec![(access, Usual::ACCESS), (leaf, Usual::BOTTLENECK)],
        Topology::Dumbbell { bottleneck, access, leaf, .. }
        | Topology::Chain { bottleneck, access, leaf, .. } => {
            vec![(bottleneck, Usual::BOTTLENECK), (access, Usual::ACCESS), (leaf, Usual::ACCESS)]
        }
        Topology::Tree { levels, access, .. } => {
            levels.iter().map(|level| (level, Usual::BOTTLENECK)).chain([(access, Usual::ACCESS)]).collect()
        }
        Topology::Text(_) | Topology::None => Vec::new(),
    };
    of_topology.into_iter().chain(plan.links.iter().map(|link| (&link.wire, Usual::BOTTLENECK))).collect()
}

/// Returns the rate of the narrowest link in bits per second.
fn narrowest(plan: &RunPlan) -> f64 {
    let lines = match &plan.topology {
        Topology::Text(network) => network.edges(),
        _ => &[],
    };
    let rates = wires(plan).into_iter().map(|(wire, usual)| largest(wire.rate.as_ref(), usual.rate));
    let rates = rates.chain(lines.iter().map(|edge| edge.spec.rate.bps()));
    rates.filter(|rate| *rate > 0.0).fold(f64::INFINITY, f64::min)
}

/// Returns the number of packets of `bits` bits in a full buffer; `None` for a buffer without a limit.
fn limit(queue: &QueueSpec, bits: f64) -> Option<u64> {
    match queue {
        QueueSpec::DropTail(Limit::Packets(u32::MAX)) => None,
        QueueSpec::DropTail(Limit::Packets(packets)) => Some((*packets).into()),
        QueueSpec::DropTail(Limit::Bytes(bytes)) => Some(whole(f64::from(*bytes) * 8.0 / bits) + 1),
        QueueSpec::Red(config) => Some(config.limit.into()),
        QueueSpec::Sred(config) => Some(config.limit.into()),
        QueueSpec::Sfb(config) => Some(config.limit.into()),
        QueueSpec::FqCodel(config) => Some(config.limit.into()),
        QueueSpec::Drr(faircast_aqm::drr::Config { limit: Limit::Packets(packets), .. }) => {
            Some((*packets).into())
        }
        // The other disciplines drop packets long before this limit. If an option sets a larger limit, it is not considered.
        _ => Some(10_000),
    }
}

/// Returns the number of alternations until `until`: pairs of a span from the first distribution and a span from the second.
fn turns(until: Time, (on, off): &(Law, Law)) -> u64 {
    let mean = (on.mean() + off.mean()).max(2e-6);
    whole(until.as_secs_f64() / mean) + 1
}
