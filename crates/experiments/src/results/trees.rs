//! Metrics of sessions whose receivers form a tree: fairness among receivers, windows, and the amount of feedback.

use super::measure::{Metrics, Run};
use crate::scenario::plan::{FlowKind, TimeWindow};
use crate::stats;
use faircast_core::time::Time;
use faircast_sim::{FlowOutcome, LinkId, NodeId, TreeOutcome};
use faircast_topology::Routes;

/// Number of agents with metrics of their own.
const FIRST: usize = 16;
/// Tolerance in packets: the source's window counts as small as an agent's window if it is larger by at most this number.
const AS_SMALL: f64 = 0.5;

impl Run<'_> {
    fn trees(&self, group: usize) -> Vec<(usize, &FlowOutcome, &TreeOutcome)> {
        let all = self.group(group);
        all.filter_map(|(_, flow, outcome)| Some((flow, outcome, outcome.tree.as_deref()?))).collect()
    }

    /// Adds the fairness of the receivers and their mean relative rate (paper 001, 5). A relative rate is a receiver's rate
    /// divided by the capacity of the receiver's path.
    pub(super) fn shares_of_tree(&self, group: usize, window: &TimeWindow, out: &mut Metrics) {
        if !matches!(&self.plan.flows[group].kind, FlowKind::Session(session) if session.scheme.agents().is_some())
        {
            return;
        }
        let (range, seconds) = (self.range(window), window.to.since(window.from).as_secs_f64());
        let topology = self.layout.nodes_and_links(|node| self.layout.hosts.contains(&node));
        let (mut routes, mut path) = (Routes::new(&topology), Vec::new());
        let mut shares = Vec::new();
        for who in self.receivers(group).filter(|who| !who.member.bins.is_empty()) {
            let (from, to) = (self.layout.flows[who.flow].source, self.node(&who));
            if routes.path(NodeId(from), NodeId(to), &mut path).is_none() {
                continue;
            }
            let rate = |link: &LinkId| self.capacity(link.0, window.from, window.to) / seconds;
            let available = path.iter().map(rate).fold(f64::INFINITY, f64::min);
            if available > 0.0 {
                shares.push(self.member_rate(who.member, &range) / available);
            }
        }
        let name = self.name(group);
        out.add(name, "F", stats::jain(&shares));
        out.add(name, "U", stats::mean(&shares));
    }

    /// Adds the windows of the source and of the first agents.
    pub(super) fn windows_of_tree(&self, group: usize, window: &TimeWindow, out: &mut Metrics) {
        let (trees, name) = (self.trees(group), self.name(group));
        let Some((_, _, tree)) = trees.first() else { return };
        let within = |at: Time| (window.from..=window.to).contains(&at);
        let median = |who: Option<u32>, of: fn(&faircast_core::node::Windows) -> f64| {
            let samples = tree.samples.iter().filter(|(at, node, _)| *node == who && within(*at));
            let values: Vec<f64> =
                samples.map(|(.., windows)| of(windows)).filter(|it| it.is_finite()).collect();
            if values.is_empty() { f64::NAN } else { stats::quantile(&values, 0.5) }
        };
        out.add(name, "window", median(None, |windows| windows.least));
        out.add(name, "window.own", median(None, |windows| windows.own));
        for (number, (member, _)) in (1..).zip(tree.agents.iter().take(FIRST)) {
            out.add(name, &format!("agent.{number}.window"), median(Some(*member), |windows| windows.own));
        }
    }

    /// Adds counts of the session's tree over the whole run, as means over the flows.
    pub(super) fn tree_metrics(&self, group: usize, out: &mut Metrics) {
        let (trees, name) = (self.trees(group), self.name(group));
        if trees.is_empty() {
            return;
        }
        let mut add = |metric: &str, of: &dyn Fn(&FlowOutcome, &TreeOutcome) -> f64| {
            let values: Vec<f64> = trees.iter().map(|(_, flow, tree)| of(flow, tree)).collect();
            out.add(name, metric, stats::mean(&values));
        };
        add("repairs", &|_, tree| tree.repairs as f64);
        add("duplicates", &|_, tree| tree.duplicates as f64);
        add("orders", &|_, tree| tree.orders as f64);
        add("moves", &|_, tree| tree.moves as f64);
        add("slow_starts", &|_, tree| tree.slow_starts.len() as f64);
        add("reports.per_packet", &|flow, _| flow.feedback as f64 / flow.sent as f64);
        add("reports.of_agents", &|flow, tree| {
            tree.reports as f64 / tree.agents.len() as f64 / flow.sent as f64
        });
        let lags: Vec<f64> = trees.iter().flat_map(|(_, _, tree)| lags(tree)).collect();
        if !lags.is_empty() {
            out.add(name, "lag", stats::mean(&lags));
            out.add(name, "lag.max", lags.iter().copied().fold(0.0, f64::max));
        }
    }
}

/// Returns a time for each slow start of an agent: the time until the source's window is as small as the agent's window. A slow
/// start sets the agent's window to one packet.
fn lags(tree: &TreeOutcome) -> Vec<f64> {
    let mut lags = Vec::new();
    for (at, _) in &tree.slow_starts {
        let next = tree.trace.partition_point(|(traced, _)| traced < at);
        let Some((_, before)) = next.checked_sub(1).and_then(|place| tree.trace.get(place)) else { continue };
        if *before <= 1.0 + AS_SMALL {
            continue;
        }
        if let Some((then, _)) = tree.trace[next..].iter().find(|(_, window)| *window <= 1.0 + AS_SMALL) {
            lags.push(then.since(*at).as_secs_f64());
        }
    }
    lags
}
