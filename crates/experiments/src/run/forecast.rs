//! Forecast of the runs of a scenario, before they are simulated: simulated time, packets over links, and memory.
//!
//! Flows share the links of their paths like long connections: all rates grow together until a link is full or a flow has its
//! maximum rate (max-min fairness). A session has the rate of its slowest receiver. A session of several layers also uses the
//! remaining capacity on the paths to its faster receivers. Durations are means over the run. The feedback of sessions is not
//! counted, and lost packets are not counted.

use super::{RunError, RunOptions, admit};
use crate::scenario::plan::{FlowKind, FlowPlan, RunPlan, SessionPlan};
use crate::scenario::{Layout, Scenario};
use faircast_aqm::{LinkSpec, LossSpec};
use faircast_core::time::Time;
use faircast_sim::{ApplicationData, LinkId, NodeId};
use faircast_topology::{Routes, Topology};
use faircast_unicast::Protocol;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The estimated cost of the runs whose results are not stored yet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Forecast {
    /// Number of all runs.
    pub runs: usize,
    /// Number of stored runs. The fields after this one are about the runs that are not stored.
    pub stored: usize,
    /// Simulated time, in seconds.
    pub simulated: f64,
    /// Number of link traversals: a packet counts once for each link that it crosses.
    pub traversals: f64,
    /// Maximum memory for simultaneous runs, in bytes.
    pub working: u64,
    /// Maximum memory for the results of all runs, in bytes.
    pub results: u64,
    /// Number of simultaneous runs.
    pub threads: usize,
}

impl AddAssign for Forecast {
    /// Adds the forecast of further runs. They are executed after the runs of this forecast.
    fn add_assign(&mut self, next: Forecast) {
        self.runs += next.runs;
        self.stored += next.stored;
        self.simulated += next.simulated;
        self.traversals += next.traversals;
        self.working = self.working.max(next.working);
        self.results = self.results.saturating_add(next.results);
        self.threads = self.threads.max(next.threads);
    }
}

/// Maximum number of points for which a forecast is computed. The costs of other points are assumed to be similar.
const MAX_POINTS: usize = 16;
/// Maximum number of rounds in which rates are assigned. Flows without a rate after the last round get the share of that round.
const MAX_ROUNDS: usize = 1_000;
/// The constant of the square-root formula: a flow has `SQUARE_ROOT / sqrt(p)` packets in flight at the loss probability `p`.
const SQUARE_ROOT: f64 = 1.22;

/// Forecasts the runs of a scenario that are not stored.
///
/// # Errors
/// If the shard is empty, or the runs exceed the memory limit.
pub fn forecast(scenario: &Scenario, options: &RunOptions) -> Result<Forecast, RunError> {
    let admitted = admit(scenario, options)?;
    let is_stored = |(point, seed): &&(usize, u64)| {
        options.kept.as_ref().is_some_and(|kept| kept.has(scenario, *point, *seed))
    };
    let (stored, left): (Vec<_>, Vec<_>) = admitted.jobs.iter().partition(is_stored);
    let mut seeds: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
    for &(point, seed) in &left {
        seeds.entry(point).or_insert((seed, 0)).1 += 1;
    }
    let every = seeds.len().div_ceil(MAX_POINTS).max(1);
    let (mut seen, mut packets) = (0, 0.0);
    for (point, (seed, runs)) in seeds.iter().step_by(every) {
        seen += runs;
        packets += traversals(scenario.plan(*point), &scenario.layout(*point, *seed)) * *runs as f64;
    }
    let per_run = if seen > 0 { packets / seen as f64 } else { 0.0 };
    Ok(Forecast {
        runs: admitted.jobs.len(),
        stored: stored.len(),
        simulated: left.iter().map(|(point, _)| scenario.duration(*point)).sum(),
        traversals: per_run * left.len() as f64,
        working: admitted.working,
        results: admitted.results,
        threads: admitted.threads,
    })
}

/// A flow's demand and path.
struct Demand {
    /// Share of the run in which the flow sends.
    active: f64,
    /// Maximum rate while the flow sends, in bits per second.
    most: f64,
    /// Size of a packet, in bits.
    bits: f64,
    /// The links that carry the flow's data. Each link has the share of the flow's packets that crosses the link.
    links: Vec<(u32, f64)>,
    /// Number of link traversals on the reverse path for each data packet.
    back: f64,
    /// Path to each receiver, if the flow is a session of several layers.
    branches: Vec<Vec<u32>>,
}

/// Returns the number of link traversals of all packets in one run.
fn traversals(plan: &RunPlan, layout: &Layout) -> f64 {
    let topology = layout.nodes_and_links(|node| layout.hosts.contains(&node));
    let mut routes = Routes::new(&topology);
    let demands: Vec<Demand> =
        (0..layout.flows.len()).map(|flow| demand(plan, layout, flow, &mut routes)).collect();
    let mut free: Vec<f64> = topology.edges().iter().map(|edge| edge.spec.rate.bps()).collect();
    let rates = share(&demands, &mut free);
    let seconds = plan.duration.as_secs_f64();
    let of = |(demand, rate): (&Demand, &f64)| {
        let each: f64 = demand.links.iter().map(|(_, part)| part).sum();
        let packets = rate * demand.active * seconds / demand.bits;
        packets * (each + demand.back) + beyond(demand, &free) * demand.active * seconds / demand.bits
    };
    demands.iter().zip(&rates).map(of).sum()
}

/// Returns the rate of each flow while it sends, in bits per second. `free` has the rate of each link; on return it has the
/// unused part of this rate.
fn share(demands: &[Demand], free: &mut [f64]) -> Vec<f64> {
    let mut rates = vec![0.0; demands.len()];
    let mut weights = vec![0.0; free.len()];
    let mut open: Vec<usize> = (0..demands.len()).filter(|flow| demands[*flow].active > 0.0).collect();
    for demand in open.iter().map(|flow| &demands[*flow]) {
        demand.links.iter().for_each(|(link, _)| weights[*link as usize] += demand.active);
    }
    // All flows without an assigned rate have the rate `level`. The assigned rates are already subtracted from `free`.
    let mut level = 0.0_f64;
    for round in 0..MAX_ROUNDS {
        let used = open.iter().flat_map(|flow| demands[*flow].links.iter().map(|(link, _)| *link as usize));
        let full = |link: usize| free[link] / weights[link].max(1e-12);
        let links = used.map(full).fold(f64::INFINITY, f64::min);
        level = open.iter().map(|flow| demands[*flow].most).fold(links, f64::min).max(level);
        let last = round + 1 == MAX_ROUNDS;
        let is_done = |flow: &usize| {
            let demand = &demands[*flow];
            let narrow = demand.links.iter().any(|(link, _)| full(*link as usize) <= level * (1.0 + 1e-9));
            last || demand.most <= level || narrow || !level.is_finite()
        };
        let (done, others): (Vec<usize>, Vec<usize>) = open.into_iter().partition(is_done);
        for flow in done {
            // If `level` is infinite, the flow crosses no link with a limited rate. Such a flow counts as sending no packets.
            rates[flow] = if level.is_finite() { level } else { 0.0 };
            let Demand { active, links, .. } = &demands[flow];
            for (link, _) in links {
                weights[*link as usize] -= active;
                free[*link as usize] = (free[*link as usize] - active * rates[flow]).max(0.0);
            }
        }
        open = others;
        if open.is_empty() {
            break;
        }
    }
    rates
}

/// Returns the rate of the layers that only the faster receivers of a session have, in bits per second, summed over links.
fn beyond(demand: &Demand, free: &[f64]) -> f64 {
    let mut extra: BTreeMap<u32, f64> = BTreeMap::new();
    for path in &demand.branches {
        let rate = path.iter().map(|link| free[*link as usize]).fold(f64::INFINITY, f64::min);
        for link in path {
            let most = extra.entry(*link).or_default();
            *most = most.max(if rate.is_finite() { rate } else { 0.0 });
        }
    }
    extra.values().sum()
}

/// Returns the demand of a flow.
fn demand(plan: &RunPlan, layout: &Layout, flow: usize, routes: &mut Routes<'_>) -> Demand {
    let laid = &layout.flows[flow];
    let reported = &plan.flows[laid.group];
    let bits = f64::from(reported.packet.max(1)) * 8.0;
    let seconds = plan.duration.as_secs_f64();
    let stop = laid.stop.min(plan.duration);
    let sends = stop.since(laid.start.min(stop)).as_secs_f64() / seconds;
    let traced = reported.trace.as_ref().map(|trace| {
        let here = trace.iter().filter(|(at, _)| laid.start + *at < stop);
        here.map(|(_, packets)| u64::from(*packets)).sum::<u64>() as f64
    });
    let (supplied, limited) = supply(reported, traced, bits, sends * seconds);
    let talks = if laid.talks.is_empty() { 1.0 } else { share_of(&laid.talks, laid.start, stop) };
    let mut demand = Demand {
        active: sends * supplied * talks,
        most: limited,
        bits,
        links: Vec::new(),
        back: 0.0,
        branches: Vec::new(),
    };
    let topology = routes.topology();
    let (mut path, mut crossed) = (Vec::new(), BTreeMap::new());
    let mut again = vec![0.0; laid.receivers.len()];
    for &(member, join, leave) in &laid.returns {
        again[member as usize] += share_of(&[(join, leave)], laid.start, stop);
    }
    for (member, node) in laid.receivers.iter().enumerate() {
        if routes.path(NodeId(laid.source), NodeId(*node), &mut path).is_none() {
            continue;
        }
        let here = laid.stays.get(member).map_or(1.0, |stay| share_of(&[*stay], laid.start, stop));
        let here = here + again[member];
        for link in &path {
            let part: &mut f64 = crossed.entry(link.0).or_default();
            *part = (*part + here).min(1.0);
        }
        // A flow that sends only for a part of the run cannot exceed the rates of its links in this part.
        let narrowest = specs(topology, &path).map(|spec| spec.rate.bps()).fold(f64::INFINITY, f64::min);
        demand.most = demand.most.min(narrowest);
        let elastic = !matches!(reported.kind, FlowKind::Datagrams { .. });
        if elastic {
            demand.most = demand.most.min(formula(topology, &path, bits));
        }
        match &reported.kind {
            FlowKind::Session(session) if session.scheme.layers() > 1 => {
                demand.branches.push(path.iter().map(|link| link.0).collect());
            }
            FlowKind::Unicast { protocol, .. } => {
                demand.most = demand.most.min(window(protocol, topology, &path, bits));
                let answers = answers(protocol);
                if routes.path(NodeId(*node), NodeId(laid.source), &mut path).is_some() {
                    demand.back = answers * path.len() as f64;
                }
            }
            _ => {}
        }
    }
    demand.links = crossed.into_iter().collect();
    demand
}

/// Returns the share of time in which an application has data to send, and the application's maximum rate in bits per second.
fn supply(reported: &FlowPlan, traced: Option<f64>, bits: f64, seconds: f64) -> (f64, f64) {
    let spread = |packets: f64| packets * bits / seconds.max(1e-9);
    let (most, supply) = match &reported.kind {
        FlowKind::Session(session) => (session_most(session, spread), &ApplicationData::Endless),
        FlowKind::Unicast { supply, .. } => (f64::INFINITY, supply),
        FlowKind::Datagrams { rate, supply, .. } => (*rate, supply),
    };
    if let Some(packets) = traced {
        return (1.0, most.min(spread(packets)));
    }
    match supply {
        ApplicationData::Endless | ApplicationData::Trace(_) => (1.0, most),
        ApplicationData::Packets(packets) => (1.0, most.min(spread(f64::from(*packets)))),
        ApplicationData::OnOff { on, off } => (on.mean() / (on.mean() + off.mean()).max(1e-9), most),
        ApplicationData::Transfers { packets, pause } => {
            (1.0, most.min(packets.mean().max(1.0) * bits / pause.mean().max(1e-9)))
        }
    }
}

fn session_most(session: &SessionPlan, spread: impl Fn(f64) -> f64) -> f64 {
    session.packets.map_or(f64::INFINITY, |packets| spread(packets as f64))
}

/// Returns the share of the time from `start` to `stop` that the stays cover.
fn share_of(stays: &[(Time, Time)], start: Time, stop: Time) -> f64 {
    let within = |(from, to): &(Time, Time)| {
        let to = (*to).min(stop);
        to.since((*from).max(start).min(to))
    };
    let all = stop.since(start.min(stop)).as_secs_f64();
    let there: f64 = stays.iter().map(|stay| within(stay).as_secs_f64()).sum();
    (there / all.max(1e-9)).min(1.0)
}

/// Returns the round-trip time of a path without queueing delays, in seconds. The reverse path is assumed to have the same delay.
fn round_trip(topology: &Topology, path: &[LinkId]) -> f64 {
    2.0 * specs(topology, path).map(|spec| spec.delay.as_secs_f64()).sum::<f64>()
}

fn specs<'a>(topology: &'a Topology, path: &'a [LinkId]) -> impl Iterator<Item = &'a LinkSpec> {
    path.iter().map(|link| &*topology.edges()[link.0 as usize].spec)
}

/// Returns the maximum rate of a flow with congestion control on a path with random losses, in bits per second.
fn formula(topology: &Topology, path: &[LinkId], bits: f64) -> f64 {
    let passes: f64 = specs(topology, path).map(|spec| 1.0 - spec.loss.map_or(0.0, probability)).product();
    let lost = 1.0 - passes;
    let round_trip = round_trip(topology, path).max(1e-6);
    if lost > 0.0 { SQUARE_ROOT * bits / (round_trip * lost.sqrt()) } else { f64::INFINITY }
}

fn probability(loss: LossSpec) -> f64 {
    match loss {
        LossSpec::Bernoulli(lost) => lost,
        LossSpec::GilbertElliott { to_bad, to_good, good, bad } => {
            let share = to_bad / (to_bad + to_good).max(1e-12);
            share * bad + (1.0 - share) * good
        }
    }
}

/// Returns the maximum rate that the receiver's window permits, in bits per second.
fn window(protocol: &Protocol, topology: &Topology, path: &[LinkId], bits: f64) -> f64 {
    let Protocol::Tcp(config) = protocol else { return f64::INFINITY };
    let sent: f64 =
        specs(topology, path).map(|spec| bits / spec.rate.bps()).filter(|time| time.is_finite()).sum();
    f64::from(config.receiver_window) * bits / (round_trip(topology, path) + sent).max(1e-6)
}

/// Returns the number of acknowledgements per data packet.
fn answers(protocol: &Protocol) -> f64 {
    match protocol {
        Protocol::Tcp(config) if config.delayed_ack.is_some() => 0.5,
        Protocol::Tcp(_) | Protocol::Rap(_) | Protocol::Own(_) => 1.0,
        Protocol::Tfrc(_) | Protocol::Cmtcp(_) => 0.0,
    }
}
