//! Metrics of sessions of several layers. Layers count from 1, the base layer.

use super::Rows;
use super::measure::{FlowMember, Metrics, Run};
use super::rows::Field::{Number, Text, Whole};
use crate::scenario::plan::{FlowKind, TimeWindow};
use crate::stats;
use crate::table::Table;
use faircast_core::time::{Span, Time};
use faircast_sim::SourceSample;

/// Maximum number of joins that have their own metrics; the same for leaves.
const FIRST: usize = 16;

/// Times of changes, and the number of a receiver's layers after each change. The number is 0 while the receiver is absent.
type Steps = Vec<(Time, u64)>;

impl Run<'_> {
    pub(super) fn is_layered(&self, group: usize) -> bool {
        matches!(&self.plan.flows[group].kind, FlowKind::Session(session) if session.scheme.layers() > 1)
    }

    /// Adds metrics of a group in a window: the receivers' numbers of layers, and the rates of layers.
    pub(super) fn layer_metrics(&self, group: usize, window: &TimeWindow, out: &mut Metrics) {
        if !self.is_layered(group) {
            return;
        }
        let name = self.name(group);
        let receivers: Vec<FlowMember<'_>> = self.receivers(group).collect();
        self.level_metrics(name, &receivers, window, out);
        let within = |at: Time| (window.from..=window.to).contains(&at);
        let layers = self.group(group).map(|(_, _, flow)| flow.layers.len()).max().unwrap_or(0);
        for layer in 0..layers {
            let rates = self.group(group).flat_map(|(_, _, flow)| {
                let sampled = flow.samples.iter().zip(&flow.layers[layer].rates);
                sampled.filter(|(sample, _)| within(moment(sample))).map(|(_, rate)| rate.bps())
            });
            let rates: Vec<f64> = rates.collect();
            out.add(name, &format!("layer.{}.rate", layer + 1), stats::mean(&rates));
        }
    }

    /// Adds the number of layers of some receivers, and the numbers of joins and leaves of these receivers.
    pub(super) fn level_metrics(
        &self,
        name: &str,
        receivers: &[FlowMember<'_>],
        window: &TimeWindow,
        out: &mut Metrics,
    ) {
        let steps: Vec<Steps> = receivers.iter().map(|who| self.steps(who)).collect();
        let means: Vec<f64> = steps.iter().filter_map(|steps| mean_in(steps, window)).collect();
        out.add(name, "layers", stats::mean(&means));
        let at_end = |steps: &Steps| value_before(steps, window.to).filter(|layers| *layers > 0);
        let ends: Vec<f64> = steps.iter().filter_map(at_end).map(|layers| layers as f64).collect();
        out.add(name, "layers.end", stats::mean(&ends));
        let most = steps.iter().map(|steps| most_in(steps, window)).max().unwrap_or(0);
        out.add(name, "layers.max", most as f64);
        if let Some(share) = agreement(&steps, window) {
            out.add(name, "layers.agreement", share);
        }
        let flows = receivers.iter().map(|who| who.flow).collect::<std::collections::BTreeSet<_>>().len();
        for (metric, which) in [("joins", Turn::Join), ("leaves", Turn::Leave)] {
            let within = |at: &Time| (window.from..=window.to).contains(at);
            let counts: Vec<f64> =
                receivers.iter().map(|who| turns(who, which).filter(within).count() as f64).collect();
            out.add(name, metric, counts.iter().sum::<f64>() / flows as f64);
            if counts.len() > 1 {
                out.add(name, &format!("{metric}.max"), counts.iter().copied().fold(0.0, f64::max));
            }
        }
    }

    /// Adds the times of the first joins and leaves of layers.
    pub(super) fn join_metrics(&self, name: &str, receivers: &[FlowMember<'_>], out: &mut Metrics) {
        for (metric, which) in [("join", Turn::Join), ("leave", Turn::Leave)] {
            let mut all: Vec<Time> = receivers.iter().flat_map(|who| turns(who, which)).collect();
            all.sort_unstable();
            for (number, at) in all.iter().take(FIRST).enumerate() {
                out.add(name, &format!("{metric}.{}", number + 1), at.as_secs_f64());
            }
        }
    }

    /// Returns the number of a receiver's layers over time.
    fn steps(&self, who: &FlowMember<'_>) -> Steps {
        let mut steps = Steps::new();
        let mut changes = who.member.subscriptions.iter().peekable();
        for (join, leave) in self.stays(who) {
            // Skip changes before this stay, which belong to the previous stay.
            while changes.next_if(|(at, _)| *at < join).is_some() {}
            steps.push((join, 1));
            while let Some((at, highest)) = changes.next_if(|(at, _)| *at < leave) {
                steps.push((*at, u64::from(*highest) + 1));
            }
            if leave < Time::NEVER {
                steps.push((leave, 0));
            }
        }
        steps
    }

    /// Returns the number of layers of a receiver after each change, for the first receivers of each group.
    pub(super) fn subscriptions(&self) -> Table {
        let mut rows = Rows::new("subscriptions");
        for group in (0..self.plan.flows.len()).filter(|group| self.is_layered(*group)) {
            for who in self.receivers(group).take(self.plan.probe.receivers as usize) {
                let receiver = self.receiver(who.flow, who.at);
                for (at, layers) in self.steps(&who).into_iter().filter(|(at, _)| *at <= self.plan.duration) {
                    let (flow, copy) = (Text(self.name(group)), Whole(who.copy));
                    let time = Number(at.as_secs_f64());
                    rows.push(&[
                        ("flow", flow),
                        ("copy", copy),
                        ("receiver", Text(&receiver)),
                        ("time", time),
                        ("layers", Whole(layers)),
                    ]);
                }
            }
        }
        rows.0
    }

    /// Returns the rates of layers over time, for the first flows of each group.
    pub(super) fn layers(&self) -> Table {
        let mut rows = Rows::new("layers");
        for group in 0..self.plan.flows.len() {
            for (copy, _, flow) in self.group(group).take(self.plan.probe.receivers as usize) {
                for (layer, outcome) in (1..).zip(&flow.layers) {
                    for (sample, rate) in flow.samples.iter().zip(&outcome.rates) {
                        let time = Number(moment(sample).as_secs_f64());
                        let name = Text(self.name(group));
                        rows.push(&[
                            ("flow", name),
                            ("copy", Whole(copy)),
                            ("layer", Whole(layer)),
                            ("time", time),
                            ("rate", Number(rate.bps())),
                        ]);
                    }
                }
            }
        }
        rows.0
    }
}

fn moment(sample: &SourceSample) -> Time {
    match sample {
        SourceSample::Session { at, .. } | SourceSample::Unicast { at, .. } => *at,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Join,
    Leave,
}

/// Returns the times at which a receiver joined or left a layer. A change by several layers gives the same time once for each
/// layer.
fn turns<'a>(who: &FlowMember<'a>, which: Turn) -> impl Iterator<Item = Time> + use<'a> {
    let changes = &who.member.subscriptions;
    let before = std::iter::once(0).chain(changes.iter().map(|(_, highest)| *highest));
    changes.iter().zip(before).flat_map(move |(&(at, highest), before)| {
        let layers = match which {
            Turn::Join => highest.saturating_sub(before),
            Turn::Leave => before.saturating_sub(highest),
        };
        std::iter::repeat_n(at, usize::from(layers))
    })
}

/// Splits a window at the changes of the number of layers. Returns the length and the number of layers of each part.
fn stretches<'a>(steps: &'a Steps, window: &TimeWindow) -> impl Iterator<Item = (Span, u64)> + use<'a> {
    let (from, to) = (window.from, window.to);
    let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([Time::NEVER]);
    let stretch =
        move |(&(begin, layers), end): (&(Time, u64), Time)| (end.min(to).since(begin.max(from)), layers);
    steps.iter().zip(ends).map(stretch).filter(|(length, _)| *length > Span::ZERO)
}

/// Returns the mean number of layers of a receiver while it is present; `None` if the receiver is never present.
fn mean_in(steps: &Steps, window: &TimeWindow) -> Option<f64> {
    let (mut there, mut sum) = (0.0, 0.0);
    for (length, layers) in stretches(steps, window).filter(|(_, layers)| *layers > 0) {
        there += length.as_secs_f64();
        sum += length.as_secs_f64() * layers as f64;
    }
    (there > 0.0).then(|| sum / there)
}

fn most_in(steps: &Steps, window: &TimeWindow) -> u64 {
    stretches(steps, window).map(|(_, layers)| layers).max().unwrap_or(0)
}

/// Returns the last value before `end`.
fn value_before(steps: &Steps, end: Time) -> Option<u64> {
    steps.iter().take_while(|(at, _)| *at < end).last().map(|(_, layers)| *layers)
}

/// Returns the share of time in which all receivers that are present have the same number of layers. Only times with at least two
/// receivers count.
fn agreement(all: &[Steps], window: &TimeWindow) -> Option<f64> {
    let mut moments: Vec<(Time, usize, u64)> = Vec::new();
    for (receiver, steps) in all.iter().enumerate() {
        moments.extend(steps.iter().map(|&(at, layers)| (at, receiver, layers)));
    }
    moments.sort_by_key(|(at, ..)| *at); // stable: the steps of a receiver stay in order
    let mut now = vec![0; all.len()];
    let (mut equal, mut total) = (Span::ZERO, Span::ZERO);
    for (number, &(at, receiver, layers)) in moments.iter().enumerate() {
        now[receiver] = layers;
        let end = moments.get(number + 1).map_or(Time::NEVER, |(next, ..)| *next);
        let length = end.min(window.to).since(at.max(window.from));
        let mut there = now.iter().filter(|layers| **layers > 0);
        let Some(first) = there.next() else { continue };
        if now.iter().filter(|layers| **layers > 0).count() > 1 && length > Span::ZERO {
            total = total + length;
            if there.all(|layers| layers == first) {
                equal = equal + length;
            }
        }
    }
    (total > Span::ZERO).then(|| equal.as_secs_f64() / total.as_secs_f64())
}
