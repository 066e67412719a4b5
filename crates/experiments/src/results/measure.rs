//! Conversion of the outcome of one run into rows and metrics.

use super::Rows;
use super::rows::Field::{Number, Text, Whole};
use crate::scenario::Layout;
use crate::scenario::plan::{FlowKind, RunPlan, TimeWindow};
use crate::stats;
use crate::table::Table;
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Span, Time};
use faircast_sim::{
    Change, DelayCounts, FlowOutcome, LinkOutcome, LinkSample, MemberOutcome, Outcome, SourceSample,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Measurements of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// One table for each kind of observation. The columns with point, axes and seed are added later.
    pub tables: Vec<Table>,
    /// Name and value of each metric.
    pub metrics: Vec<(String, f64)>,
}

/// The tables, in the order of output.
pub const TABLES: &[&str] = &[
    "metrics",
    "rates",
    "averages",
    "samples",
    "queues",
    "representatives",
    "feedback",
    "transfers",
    "subscriptions",
    "layers",
    "events",
    "flows",
    "bottlenecks",
];

/// One run with its plan and layout.
pub(super) struct Run<'a> {
    pub(super) plan: &'a RunPlan,
    pub(super) layout: &'a Layout,
    pub(super) outcome: &'a Outcome,
    /// Number of members of each session that have bins. The members with numbers below this number have bins.
    watched: usize,
}

/// A receiver of a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowMember<'a> {
    /// Number of the flow in its group, from 1.
    pub copy: u64,
    /// Number of the flow in the network.
    pub flow: usize,
    /// Number of the receiver in the flow.
    pub at: usize,
    pub member: &'a MemberOutcome,
}

/// Returns the interval at which the states of senders are sampled: one second, or more if the number of samples would otherwise
/// exceed about two million.
pub(crate) fn sample(plan: &RunPlan, layout: &Layout) -> Span {
    const SAMPLES: f64 = 2e6;
    let seldom = (layout.flows.len() as f64 * plan.duration.as_secs_f64() / SAMPLES).ceil().clamp(1.0, 1e9);
    plan.probe.sample.unwrap_or(Span::from_secs(seldom as u64))
}

/// Measures a run.
pub(crate) fn measure(plan: &RunPlan, layout: &Layout, outcome: &Outcome) -> Measured {
    let run = Run { plan, layout, outcome, watched: plan.watched() as usize };
    let metrics = run.metrics();
    let mut tables = vec![metric_table(&metrics)];
    tables.extend(run.rates());
    tables.push(run.samples());
    tables.push(run.queues());
    tables.push(run.representatives());
    tables.push(run.feedback());
    tables.push(run.transfers());
    tables.push(run.subscriptions());
    tables.push(run.layers());
    tables.push(run.events());
    tables.push(run.flows());
    tables.push(run.bottlenecks());
    Measured { tables, metrics }
}

pub(super) fn metric_table(metrics: &[(String, f64)]) -> Table {
    let mut rows = Rows::new("metrics");
    metrics.iter().for_each(|(name, value)| rows.push(&[("metric", Text(name)), ("value", Number(*value))]));
    rows.0
}

impl<'a> Run<'a> {
    /// Returns the flows of a group, each with its number in the group (from 1) and its index in the network.
    pub(super) fn group(&self, group: usize) -> impl Iterator<Item = (u64, usize, &'a FlowOutcome)> {
        let flows = self.layout.flows.iter().enumerate().filter(move |(_, flow)| flow.group == group);
        let outcomes = &self.outcome.flows;
        flows.zip(1..).map(move |((index, _), number)| (number, index, &outcomes[index]))
    }

    pub(super) fn name(&self, group: usize) -> &'a str {
        &self.plan.flows[group].name.value
    }

    /// Returns all receivers of a group.
    pub(super) fn receivers(&self, group: usize) -> impl Iterator<Item = FlowMember<'a>> {
        self.group(group).flat_map(|(copy, flow, outcome)| {
            outcome.members.iter().enumerate().map(move |(at, member)| FlowMember { copy, flow, at, member })
        })
    }

    /// Returns the node of a receiver.
    pub(super) fn node(&self, who: &FlowMember<'_>) -> u32 {
        self.layout.flows[who.flow].receivers[who.at]
    }

    /// Returns the stays of a receiver: times of joining and leaving, regardless of the start and end of the receiver's flow.
    pub(super) fn stays(&self, who: &FlowMember<'_>) -> impl Iterator<Item = (Time, Time)> {
        let (flow, at) = (&self.layout.flows[who.flow], who.at);
        let first = flow.stays.get(at).copied().unwrap_or((Time::ZERO, Time::NEVER));
        let returns = flow.returns.iter().filter(move |(member, ..)| *member as usize == at);
        std::iter::once(first).chain(returns.map(|&(_, join, leave)| (join, leave)))
    }

    pub(super) fn receiver(&self, flow: usize, member: usize) -> String {
        self.layout.names.name(self.layout.flows[flow].receivers[member])
    }

    /// Returns the members of a group that have bins. Each member has the number of its flow in the group, the index of its flow
    /// in the network, and its own index in the flow.
    fn watched(&self, group: usize) -> impl Iterator<Item = (u64, usize, usize, &'a MemberOutcome)> {
        let watched = self.watched;
        self.group(group).flat_map(move |(number, flow, outcome)| {
            outcome
                .members
                .iter()
                .enumerate()
                .take(watched)
                .map(move |(at, member)| (number, flow, at, member))
        })
    }

    fn bins(&self) -> usize {
        (self.plan.duration.as_nanos() / self.plan.probe.bin.as_nanos()) as usize
    }

    /// Returns the range of whole bins within a window.
    pub(super) fn range(&self, window: &TimeWindow) -> std::ops::Range<usize> {
        let bin = self.plan.probe.bin.as_nanos();
        let from = window.from.as_nanos().div_ceil(bin) as usize;
        let to = (window.to.as_nanos() / bin) as usize;
        from..to.max(from)
    }

    fn rate(&self, bytes: u64, bins: usize) -> f64 {
        bytes as f64 * 8.0 / (self.plan.probe.bin.as_secs_f64() * bins.max(1) as f64)
    }

    pub(super) fn member_rate(&self, member: &MemberOutcome, range: &std::ops::Range<usize>) -> f64 {
        self.rate(sum(&member.bins, range), range.len())
    }

    /// Returns the tables `rates` and `averages`.
    fn rates(&self) -> [Table; 2] {
        let (mut rates, mut averages) = (Rows::new("rates"), Rows::new("averages"));
        for group in 0..self.plan.flows.len() {
            let name = self.name(group);
            let mut write = |copy: u64, receiver: &str, bins: &[u64], receivers: f64| {
                let mut so_far = 0;
                for bin in 0..self.bins() {
                    let bytes = bins.get(bin).copied().unwrap_or(0);
                    so_far += bytes;
                    let time = self.plan.probe.bin.as_secs_f64() * (bin + 1) as f64;
                    let rate = Number(self.rate(bytes, 1) / receivers);
                    let average = Number(self.rate(so_far, bin + 1) / receivers);
                    let row = |last| {
                        [
                            ("flow", Text(name)),
                            ("copy", Whole(copy)),
                            ("receiver", Text(receiver)),
                            ("time", Number(time)),
                            last,
                        ]
                    };
                    rates.push(&row(("rate", rate)));
                    averages.push(&row(("average", average)));
                }
            };
            let (mut all, mut receivers) = (vec![0; self.bins()], 0);
            for (_, _, flow) in self.group(group) {
                receivers += flow.members.len();
                all.iter_mut().zip(&flow.received_bins).for_each(|(sum, bytes)| *sum += bytes);
            }
            if receivers > 0 {
                write(0, "all", &all, receivers as f64);
            }
            for (copy, flow, at, member) in self.watched(group).take(self.plan.probe.receivers as usize) {
                write(copy, &self.receiver(flow, at), &member.bins, 1.0);
            }
        }
        [rates.0, averages.0]
    }

    /// Returns the states of senders over time, for the first flows of each group.
    fn samples(&self) -> Table {
        let mut rows = Rows::new("samples");
        for group in 0..self.plan.flows.len() {
            for (copy, flow, outcome) in self.group(group).take(self.plan.probe.receivers as usize) {
                for sample in &outcome.samples {
                    let receiver = |id: ReceiverId| self.receiver(flow, (id.get() - 1) as usize);
                    let (at, rate, rtt, cuts) = match sample {
                        SourceSample::Session { at, view } => (at, view.rate, view.rtt, view.cuts),
                        SourceSample::Unicast { at, view } => (at, view.rate, view.rtt, view.cuts),
                    };
                    let (limiting, level, tally) = match sample {
                        SourceSample::Session { view, .. } => {
                            (view.limiting.map(receiver), view.level, view.tally)
                        }
                        SourceSample::Unicast { .. } => Default::default(),
                    };
                    let (window, threshold, timeouts) = match sample {
                        SourceSample::Session { .. } => (f64::NAN, f64::NAN, 0),
                        SourceSample::Unicast { view, .. } => (view.window, view.threshold, view.timeouts),
                    };
                    rows.push(&[
                        ("flow", Text(self.name(group))),
                        ("copy", Whole(copy)),
                        ("time", Number(at.as_secs_f64())),
                        ("rate", Number(rate.bps())),
                        ("window", Number(window)),
                        ("threshold", Number(threshold)),
                        ("rtt", Number(rtt.as_secs_f64())),
                        ("limiting", Text(limiting.as_deref().unwrap_or_default())),
                        ("level", Number(level.map_or(f64::NAN, |level| level.bps()))),
                        ("cuts", Whole(cuts)),
                        ("timeouts", Whole(timeouts)),
                        ("indications", Whole(tally.indications)),
                        ("loss_events", Whole(tally.events)),
                        ("followed", Whole(tally.followed)),
                    ]);
                }
            }
        }
        rows.0
    }

    /// Returns the contents of probed links over time.
    fn queues(&self) -> Table {
        let mut rows = Rows::new("queues");
        for &link in &self.layout.probes {
            let name = self.layout.link_name(link);
            for sample in &self.outcome.links[link as usize].samples {
                rows.push(&[
                    ("link", Text(&name)),
                    ("time", Number(sample.at.as_secs_f64())),
                    ("packets", Whole(sample.waiting.into())),
                    ("bytes", Whole(sample.waiting_bytes)),
                    ("departed_bytes", Whole(sample.departed_bytes)),
                    ("drops", Whole(sample.counts.overflow + sample.counts.early)),
                    ("marks", Whole(sample.counts.marked)),
                    ("lost", Whole(sample.counts.lost)),
                ]);
            }
        }
        rows.0
    }

    /// Returns the changes of representatives, for the first flows of each group.
    fn representatives(&self) -> Table {
        let mut rows = Rows::new("representatives");
        for group in 0..self.plan.flows.len() {
            for (copy, flow, outcome) in self.group(group).take(self.plan.probe.receivers as usize) {
                for (at, member) in &outcome.representatives {
                    let receiver = member.map(|member| self.receiver(flow, member as usize));
                    rows.push(&[
                        ("flow", Text(self.name(group))),
                        ("copy", Whole(copy)),
                        ("time", Number(at.as_secs_f64())),
                        ("receiver", Text(receiver.as_deref().unwrap_or_default())),
                    ]);
                }
            }
        }
        rows.0
    }

    /// Returns the amount of feedback to each sender: the totals of groups, and the feedback of the first receivers of each
    /// group.
    fn feedback(&self) -> Table {
        let mut rows = Rows::new("feedback");
        for group in 0..self.plan.flows.len() {
            let name = Text(self.name(group));
            let mut write = |copy: u64, receiver: &str, sums: [u64; 4]| {
                let [packets, lost, reports, suppressed] = sums.map(Whole);
                rows.push(&[
                    ("flow", name),
                    ("copy", Whole(copy)),
                    ("receiver", Text(receiver)),
                    ("packets", packets),
                    ("lost", lost),
                    ("reports", reports),
                    ("suppressed", suppressed),
                ]);
            };
            let members = self.group(group).flat_map(|(_, _, flow)| &flow.members);
            let counts =
                |member: &MemberOutcome| [member.packets, member.lost, member.reports, member.suppressed];
            let sums = members.map(counts).fold([0; 4], |mut sums, counts| {
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
                sums
            });
            write(0, "all", sums);
            for (copy, flow, at, member) in self.watched(group).take(self.plan.probe.receivers as usize) {
                write(copy, &self.receiver(flow, at), counts(member));
            }
        }
        rows.0
    }

    /// Returns the complete transfers.
    fn transfers(&self) -> Table {
        let mut rows = Rows::new("transfers");
        for group in 0..self.plan.flows.len() {
            for (copy, _, outcome) in self.group(group) {
                for (begin, end, packets) in &outcome.transfers {
                    rows.push(&[
                        ("flow", Text(self.name(group))),
                        ("copy", Whole(copy)),
                        ("begin", Number(begin.as_secs_f64())),
                        ("end", Number(end.as_secs_f64())),
                        ("seconds", Number(end.since(*begin).as_secs_f64())),
                        ("packets", Whole((*packets).into())),
                    ]);
                }
            }
        }
        rows.0
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let mut out = Metrics::default();
        for window in &self.plan.windows {
            out.suffix = if window.name.is_empty() { String::new() } else { format!("@{}", window.name) };
            let mut shares = Vec::new();
            for group in 0..self.plan.flows.len() {
                shares.extend(self.rate_metrics(group, window, &mut out));
                self.count_metrics(group, window, &mut out);
                self.round_trip_metric(group, window, &mut out);
                self.layer_metrics(group, window, &mut out);
                self.windows_of_tree(group, window, &mut out);
                self.shares_of_tree(group, window, &mut out);
                self.parts_in_window(group, window, &mut out);
                self.unicast_delays(group, window, &mut out);
            }
            if shares.len() > 1 {
                out.add("", "jain", stats::jain(&shares));
            }
            self.bottleneck_metrics(window, &mut out);
            for &link in &self.layout.probes {
                self.link_metrics(link, window, &mut out);
            }
        }
        out.suffix.clear();
        for group in 0..self.plan.flows.len() {
            self.feedback_metrics(group, &mut out);
            self.flow_metrics(group, &mut out);
            self.tree_metrics(group, &mut out);
            self.join_metrics(self.name(group), &self.receivers(group).collect::<Vec<_>>(), &mut out);
            self.parts_of_run(group, &mut out);
            self.delay_metrics(group, &mut out);
        }
        self.router_metrics(&mut out);
        self.fit_metrics(&mut out);
        out.all
    }

    /// Adds the rates of a group in a window. Returns the mean rate; `None` if the group has no flow.
    fn rate_metrics(&self, group: usize, window: &TimeWindow, out: &mut Metrics) -> Option<f64> {
        let name = self.name(group);
        let range = self.range(window);
        let (mut bytes, mut receivers) = (0, 0);
        for (_, _, flow) in self.group(group) {
            receivers += flow.members.len();
            bytes += sum(&flow.received_bins, &range);
        }
        if receivers == 0 {
            return None;
        }
        let mean = self.rate(bytes, range.len()) / receivers as f64;
        out.add(name, "rate", mean);
        let watched: Vec<&MemberOutcome> = self.watched(group).map(|(.., member)| member).collect();
        self.spread_metrics(name, &watched, &range, out);
        Some(mean)
    }

    /// Adds metrics of the differences between the rates of some receivers. Returns the mean of these rates, if there are
    /// receivers.
    pub(super) fn spread_metrics(
        &self,
        name: &str,
        members: &[&MemberOutcome],
        range: &std::ops::Range<usize>,
        out: &mut Metrics,
    ) -> Option<f64> {
        let rates: Vec<f64> = members.iter().map(|member| self.member_rate(member, range)).collect();
        if rates.len() > 1 {
            out.add(name, "rate.sd", stats::deviation(&rates));
            out.add(name, "rate.min", rates.iter().copied().fold(f64::INFINITY, f64::min));
            out.add(name, "rate.max", rates.iter().copied().fold(0.0, f64::max));
            out.add(name, "jain", stats::jain(&rates));
        }
        let variations: Vec<f64> = members.iter().filter_map(|m| self.variation(m, range)).collect();
        if !variations.is_empty() {
            out.add(name, "cov", stats::mean(&variations));
        }
        (!rates.is_empty()).then(|| stats::mean(&rates))
    }

    /// Returns the coefficient of variation of a receiver's rate over intervals of `probe.stretch`.
    fn variation(&self, member: &MemberOutcome, range: &std::ops::Range<usize>) -> Option<f64> {
        let probe = &self.plan.probe;
        let bins = (probe.stretch.as_secs_f64() / probe.bin.as_secs_f64()).round().max(1.0) as usize;
        let whole = range.start..range.end - range.len() % bins;
        let stretches = whole.step_by(bins).map(|start| sum(&member.bins, &(start..start + bins)) as f64);
        let stretches: Vec<f64> = stretches.collect();
        (stretches.len() > 1 && stretches.iter().any(|bytes| *bytes > 0.0))
            .then(|| stats::variation(&stretches))
    }

    /// Adds the numbers of reports over the whole run, as means over the flows of the group.
    fn feedback_metrics(&self, group: usize, out: &mut Metrics) {
        let name = self.name(group);
        let flows = self.group(group).count() as f64;
        if flows == 0.0 {
            return;
        }
        let members = || self.group(group).flat_map(|(_, _, flow)| &flow.members);
        let sum = |count: fn(&MemberOutcome) -> u64| members().map(count).sum::<u64>() as f64;
        let (reports, suppressed) = (sum(|m| m.reports), sum(|m| m.suppressed));
        out.add(name, "reports", reports / flows);
        if matches!(self.plan.flows[group].kind, FlowKind::Session(_)) {
            let receivers = members().count() as f64;
            let acknowledgements = sum(|m| m.acknowledgements);
            out.add(name, "reports.acks", acknowledgements / flows);
            out.add(name, "reports.naks", (reports - acknowledgements) / flows);
            self.tally_metrics(group, out);
            out.add(name, "suppressed", suppressed / flows);
            out.add(name, "reports.hypothetical", (reports + suppressed) / receivers);
            if reports + suppressed > 0.0 {
                out.add(name, "suppression", suppressed / (reports + suppressed));
            }
        }
    }

    /// Adds the numbers of reports and loss events that the sources counted, as means over the sessions of the group.
    fn tally_metrics(&self, group: usize, out: &mut Metrics) {
        let name = self.name(group);
        let mut add = |metric: &str, count: fn(&FlowOutcome) -> u64| {
            let counts: Vec<f64> = self.group(group).map(|(_, _, flow)| count(flow) as f64).collect();
            out.add(name, metric, stats::mean(&counts));
        };
        add("reports.heard", |flow| flow.feedback);
        add("reports.aggregated", |flow| flow.aggregated);
        add("indications", |flow| flow.tally.indications);
        add("loss_events", |flow| flow.tally.events);
        add("followed", |flow| flow.tally.followed);
    }

    /// Adds the round-trip time that senders measured in a window, as a mean over the flows of the group.
    fn round_trip_metric(&self, group: usize, window: &TimeWindow, out: &mut Metrics) {
        let within = |at: Time| (window.from..=window.to).contains(&at);
        let mean = |(_, _, flow): (u64, usize, &FlowOutcome)| {
            let rtt: Vec<f64> = flow.samples.iter().filter_map(|sample| rtt(sample, &within)).collect();
            (!rtt.is_empty()).then(|| stats::mean(&rtt))
        };
        let means: Vec<f64> = self.group(group).filter_map(mean).collect();
        if !means.is_empty() {
            out.add(self.name(group), "rtt", stats::mean(&means));
        }
    }

    /// Adds the counts of senders over the whole run, as means over the flows of the group.
    fn flow_metrics(&self, group: usize, out: &mut Metrics) {
        let name = self.name(group);
        let mut means: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let (mut transfers, mut rates) = (Vec::new(), Vec::new());
        let (mut first, mut last) = (Time::NEVER, Time::ZERO);
        for (_, index, flow) in self.group(group) {
            if let FlowKind::Session(session) = &self.plan.flows[group].kind {
                means.entry("switches").or_default().push(switches(&flow.representatives) as f64);
                if let Some(seconds) =
                    session.content.and_then(|packets| self.completion(group, index, packets))
                {
                    means.entry("completion").or_default().push(seconds);
                }
                let expected = &self.layout.flows[index].expected;
                let end = self.layout.flows[index].stop.min(self.plan.duration);
                if let Some(share) = as_expected(&flow.representatives, expected, session.settle, end) {
                    means.entry("representative.as_expected").or_default().push(share);
                }
            }
            for (begin, end, packets) in &flow.transfers {
                let time = end.since(*begin).as_secs_f64();
                transfers.push(time);
                rates.push(f64::from(*packets) / time);
                (first, last) = (first.min(*begin), last.max(*end));
            }
        }
        for (metric, values) in means {
            out.add(name, metric, stats::mean(&values));
        }
        if !transfers.is_empty() {
            out.add(name, "transfers", transfers.len() as f64);
            out.add(name, "transfer_time", stats::mean(&transfers));
            out.add(name, "transfer_time.p50", stats::quantile(&transfers, 0.5));
            out.add(name, "transfer_time.p95", stats::quantile(&transfers, 0.95));
            out.add(name, "transfer_jain", stats::jain(&rates));
            out.add(name, "makespan", last.since(first).as_secs_f64());
        }
    }

    /// Returns the seconds from the start of a session until all watched receivers have this number of packets; `None` if one has
    /// fewer at the end. Within a bin, packets count as evenly spread.
    fn completion(&self, group: usize, flow: usize, packets: u64) -> Option<f64> {
        let needed = packets * u64::from(self.plan.flows[group].packet);
        let start = self.layout.flows[flow].start.as_secs_f64();
        let members = &self.outcome.flows[flow].members;
        let bin = self.plan.probe.bin;
        let complete = members
            .iter()
            .take(self.watched)
            .map(|member| complete_at(member, needed, bin).map(|at| at - start));
        complete.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    }

    fn link_metrics(&self, link: u32, window: &TimeWindow, out: &mut Metrics) {
        let outcome: &LinkOutcome = &self.outcome.links[link as usize];
        let samples: Vec<&LinkSample> =
            outcome.samples.iter().filter(|s| (window.from..=window.to).contains(&s.at)).collect();
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return };
        let name = &format!("link.{}", self.layout.link_name(link));
        let packets: Vec<f64> = samples.iter().map(|sample| f64::from(sample.waiting)).collect();
        let bytes: Vec<f64> = samples.iter().map(|sample| sample.waiting_bytes as f64).collect();
        out.add(name, "queue", stats::mean(&packets));
        if packets.len() > 1 {
            out.add(name, "queue.sd", stats::deviation(&packets));
        }
        out.add(name, "queue.bytes", stats::mean(&bytes));
        out.add(name, "queue.max", packets.iter().copied().fold(0.0, f64::max));
        let capacity = self.capacity(link, first.at, last.at);
        if capacity.is_finite() && capacity > 0.0 {
            let departed = (last.departed_bytes - first.departed_bytes) as f64 * 8.0;
            out.add(name, "utilisation", departed / capacity);
        }
        let drops = |s: &LinkSample| s.counts.overflow + s.counts.early;
        let dropped = (drops(last) - drops(first)) as f64;
        out.add(name, "drops", dropped);
        out.add(name, "drops.early", (last.counts.early - first.counts.early) as f64);
        self.link_delays(outcome, name, window, out);
        out.add(name, "marks", (last.counts.marked - first.counts.marked) as f64);
        let offered = (last.counts.offered - first.counts.offered) as f64;
        if offered > 0.0 {
            let lost = dropped + (last.counts.lost - first.counts.lost) as f64;
            out.add(name, "loss", lost / offered);
            let marked = (last.counts.marked - first.counts.marked) as f64;
            out.add(name, "acted", (dropped + marked) / offered);
        }
        let busy = samples.iter().filter(|sample| sample.waiting > 0).count();
        out.add(name, "busy", busy as f64 / samples.len() as f64);
    }

    fn link_delays(&self, outcome: &LinkOutcome, name: &str, window: &TimeWindow, out: &mut Metrics) {
        let delays = self.delays_in(&outcome.delays, window);
        for (what, value) in [
            ("delay", delays.mean()),
            ("reordered", Some(delays.reordered() as f64)),
            ("delay.p95", delays.quantile(0.95)),
            ("delay.p99", delays.quantile(0.99)),
        ] {
            out.add(name, what, value.unwrap_or(f64::NAN));
        }
    }

    /// Returns the delays of packets in a window. `spans` has a histogram for each time between two consecutive moments at which
    /// counts are stored.
    pub(super) fn delays_in(&self, spans: &[DelayCounts], window: &TimeWindow) -> DelayCounts {
        let moments = self.plan.moments();
        let first = moments.partition_point(|at| *at <= window.from);
        let last = moments.partition_point(|at| *at < window.to);
        let mut delays = DelayCounts::default();
        spans.iter().take(last + 1).skip(first).for_each(|span| delays.merge(span));
        delays
    }

    /// Returns the number of bits that a link could have carried from `from` to `to`. Changes of the link's rate are included.
    pub(super) fn capacity(&self, link: u32, from: Time, to: Time) -> f64 {
        let spec = self.layout.specs[self.layout.links[link as usize].spec as usize];
        let mut changes: Vec<(Time, f64)> = vec![(Time::ZERO, spec.rate.bps())];
        for (at, changed, change) in &self.layout.changes {
            if let (true, Change::Rate(rate)) = (*changed == link, change) {
                changes.push((*at, rate.bps()));
            }
        }
        changes.sort_by_key(|(at, _)| *at);
        let ends = changes.iter().skip(1).map(|(at, _)| *at).chain([Time::NEVER]);
        let parts = changes.iter().zip(ends).map(|((begin, rate), end)| {
            let length = end.min(to).since((*begin).max(from)).as_secs_f64();
            if length > 0.0 { rate * length } else { 0.0 }
        });
        parts.sum()
    }
}

#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) all: Vec<(String, f64)>,
    suffix: String,
}

impl Metrics {
    /// Adds a metric. `owner` is a group, link or fit; an empty `owner` stands for all groups together. Values that are not
    /// finite are ignored.
    pub(super) fn add(&mut self, owner: &str, name: &str, value: f64) {
        if value.is_finite() {
            let dot = if owner.is_empty() { "" } else { "." };
            self.all.push((format!("{owner}{dot}{name}{}", self.suffix), value));
        }
    }
}

fn sum(bins: &[u64], range: &std::ops::Range<usize>) -> u64 {
    let end = range.end.min(bins.len());
    bins[range.start.min(end)..end].iter().sum()
}

fn rtt(sample: &SourceSample, within: &impl Fn(Time) -> bool) -> Option<f64> {
    let (at, rtt) = match sample {
        SourceSample::Session { at, view } => (*at, view.rtt),
        SourceSample::Unicast { at, view } => (*at, view.rtt),
    };
    (within(at) && rtt > Span::ZERO).then(|| rtt.as_secs_f64())
}

/// Returns the number of changes from one representative to another. Periods without a representative are ignored.
fn switches(representatives: &[(Time, Option<u32>)]) -> usize {
    let known: Vec<u32> = representatives.iter().filter_map(|(_, member)| *member).collect();
    known.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Returns the time in seconds at which a watched member has `needed` bytes, with bins of this length; `None` if it has fewer at the
/// end. Within a bin, bytes count as evenly spread.
pub(crate) fn complete_at(member: &MemberOutcome, needed: u64, bin: Span) -> Option<f64> {
    let mut had = 0;
    let last = member.bins.iter().position(|bytes| {
        had += bytes;
        had >= needed
    })?;
    let part = (member.bins[last] - (had - needed)) as f64 / member.bins[last].max(1) as f64;
    Some((last as f64 + part) * bin.as_secs_f64())
}

/// Returns the share of time in which the representative is one of the expected receivers. Returns `None` without a timetable.
pub(crate) fn as_expected(
    representatives: &[(Time, Option<u32>)],
    expected: &[(Time, Vec<u32>)],
    settle: Span,
    end: Time,
) -> Option<f64> {
    let (mut right, mut total) = (Span::ZERO, Span::ZERO);
    for (line, (from, members)) in expected.iter().enumerate() {
        let begin = *from + settle;
        let until = expected.get(line + 1).map_or(end, |(next, _)| *next).min(end);
        if until <= begin {
            continue;
        }
        total = total + until.since(begin);
        for (index, (at, member)) in representatives.iter().enumerate() {
            let next = representatives.get(index + 1).map_or(end, |(next, _)| *next);
            if member.is_some_and(|member| members.contains(&member)) {
                right = right + next.min(until).since((*at).max(begin));
            }
        }
    }
    (total > Span::ZERO).then(|| right.as_secs_f64() / total.as_secs_f64())
}
