//! Metrics of parts of a group, and of lines fitted through metrics.

use super::measure::{FlowMember, Metrics, Run};
use crate::scenario::plan::{Abscissa, FlowKind, RouterKind, TimeWindow};
use crate::stats;
use faircast_core::node::RouterObservation;
use faircast_core::time::Span;
use faircast_sim::{DelayCounts, DelayOutcome, MemberOutcome, NodeId};
use std::collections::BTreeSet;

/// Adds the delays of packets to some receivers.
fn delays(name: &str, receivers: &[FlowMember<'_>], out: &mut Metrics) {
    let all = || receivers.iter().map(|who| &who.member.delay).filter(|delay| delay.packets > 0);
    if all().next().is_none() {
        return;
    }
    let packets: u64 = all().map(|delay| delay.packets).sum();
    out.add(name, "delay", all().map(|delay| delay.total.as_secs_f64()).sum::<f64>() / packets as f64);
    let secs = |of: fn(&DelayOutcome) -> Span| all().map(of).map(Span::as_secs_f64).collect::<Vec<_>>();
    let least = secs(|delay| delay.least).into_iter().fold(f64::INFINITY, f64::min);
    let most = secs(|delay| delay.most).into_iter().fold(0.0, f64::max);
    out.add(name, "delay.min", least);
    out.add(name, "delay.max", most);
    let mut counts = DelayCounts::default();
    receivers.iter().flat_map(|who| &who.member.delays).for_each(|span| counts.merge(span));
    quantiles(name, &counts, out);
}

/// Adds the quantiles of the delays.
fn quantiles(name: &str, counts: &DelayCounts, out: &mut Metrics) {
    for (what, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        out.add(name, &format!("delay.{what}"), counts.quantile(share).unwrap_or(f64::NAN));
    }
}

impl<'a> Run<'a> {
    /// Adds the counters of the active routers.
    pub(super) fn router_metrics(&self, out: &mut Metrics) {
        self.active_routers("routers", None, out);
        for name in self.plan.routers.iter().filter_map(|router| router.name.as_ref()) {
            self.active_routers(&format!("routers.{name}"), Some(name), out);
        }
    }

    /// Adds the counters of the active routers with the name `of`, or of all active routers.
    fn active_routers(&self, owner: &str, of: Option<&String>, out: &mut Metrics) {
        let is_one = |node: NodeId| {
            self.layout.routers.iter().any(|(at, kind, _, name)| {
                let is_meant = of.is_none() || name.as_ref() == of;
                *at == node.0 && is_meant && matches!(kind, RouterKind::Active(_))
            })
        };
        let seen: Vec<&RouterObservation> =
            self.outcome.routers.iter().filter(|it| is_one(it.node)).map(|it| &it.seen).collect();
        if seen.is_empty() {
            return;
        }
        let seconds = self.plan.duration.as_secs_f64();
        let stored: Vec<f64> = seen.iter().map(|it| it.stored_for.as_secs_f64() / seconds).collect();
        let peaks: Vec<f64> = seen.iter().map(|it| it.stored_most as f64).collect();
        for (name, values) in [("stored", stored), ("peak", peaks)] {
            out.add(owner, name, stats::mean(&values));
            out.add(owner, &format!("{name}.min"), values.iter().copied().fold(f64::INFINITY, f64::min));
            out.add(owner, &format!("{name}.max"), values.iter().copied().fold(0.0, f64::max));
        }
        let mut sum = |name: &str, of: fn(&RouterObservation) -> u64| {
            out.add(owner, name, seen.iter().map(|it| of(it)).sum::<u64>() as f64);
        };
        sum("repairs", |it| it.repairs);
        sum("indications", |it| it.indications);
        sum("filtered", |it| it.filtered);
        sum("overflows", |it| it.overflows);
        sum("exclusions", |it| it.exclusions);
    }

    /// Returns the parts of a group, each with the prefix of its metrics and its receivers.
    fn parts(&self, group: usize) -> impl Iterator<Item = (String, Vec<FlowMember<'a>>)> {
        let named = self.plan.flows[group].parts.iter().zip(&self.layout.parts[group]);
        named.map(move |(part, nodes)| {
            let name = format!("{}.{}", self.name(group), part.name.value);
            (name, self.receivers(group).filter(|who| nodes.contains(&self.node(who))).collect())
        })
    }

    /// Adds rates, counts and layers of the parts in a window.
    pub(super) fn parts_in_window(&self, group: usize, window: &TimeWindow, out: &mut Metrics) {
        let range = self.range(window);
        for (name, receivers) in self.parts(group) {
            // Receivers beyond `probe.watch` have no bins.
            let members: Vec<&MemberOutcome> =
                receivers.iter().map(|who| who.member).filter(|member| !member.bins.is_empty()).collect();
            if let Some(mean) = self.spread_metrics(&name, &members, &range, out) {
                out.add(&name, "rate", mean);
            }
            self.part_counts(&name, &receivers, window, out);
            if self.is_layered(group) {
                self.level_metrics(&name, &receivers, window, out);
            }
        }
    }

    /// Adds the delays of packets to the receivers of a group, and the number of excluded receivers.
    pub(super) fn delay_metrics(&self, group: usize, out: &mut Metrics) {
        let FlowKind::Session(session) = &self.plan.flows[group].kind else { return };
        let (name, receivers) = (self.name(group), self.receivers(group).collect::<Vec<_>>());
        let flows = self.group(group).count().max(1) as f64;
        let excluded = receivers.iter().filter(|who| who.member.excluded.is_some()).count();
        out.add(name, "excluded", excluded as f64 / flows);
        if session.is_timed {
            delays(name, &receivers, out);
            self.parts(group).for_each(|(part, receivers)| delays(&part, &receivers, out));
        }
    }

    /// Adds the delays of packets in a window, for a group of unicast flows.
    pub(super) fn unicast_delays(&self, group: usize, window: &TimeWindow, out: &mut Metrics) {
        if let FlowKind::Unicast { is_timed: true, .. } = self.plan.flows[group].kind {
            let mut all = DelayCounts::default();
            self.receivers(group).for_each(|who| all.merge(&self.delays_in(&who.member.delays, window)));
            let name = self.name(group);
            out.add(name, "delay", all.mean().unwrap_or(f64::NAN));
            quantiles(name, &all, out);
        }
    }

    /// Adds counts of the parts over the whole run. A count is the sum over the receivers of a part, divided by the number of
    /// flows of these receivers.
    pub(super) fn parts_of_run(&self, group: usize, out: &mut Metrics) {
        for (name, receivers) in self.parts(group) {
            let flows = receivers.iter().map(|who| who.flow).collect::<BTreeSet<_>>().len() as f64;
            if flows == 0.0 {
                continue;
            }
            let sum =
                |count: fn(&MemberOutcome) -> u64| receivers.iter().map(|who| count(who.member)).sum::<u64>();
            out.add(&name, "reports", sum(|member| member.reports) as f64 / flows);
            if matches!(self.plan.flows[group].kind, FlowKind::Session(_)) {
                out.add(&name, "suppressed", sum(|member| member.suppressed) as f64 / flows);
            }
            self.join_metrics(&name, &receivers, out);
        }
    }

    /// Adds the lines fitted through metrics. A fit is skipped if a metric of the fit is missing.
    pub(super) fn fit_metrics(&self, out: &mut Metrics) {
        for fit in &self.plan.fits {
            let value = |name: &str| out.all.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            let point = |(of, against): (&String, &Abscissa)| {
                let x = match against {
                    Abscissa::Number(number) => *number,
                    Abscissa::Metric(metric) => value(metric)?,
                };
                Some((x, value(of)?))
            };
            let points: Option<Vec<(f64, f64)>> = fit.of.iter().zip(&fit.against).map(point).collect();
            if let Some(line) = points.and_then(|points| fit.scale.fit(&points)) {
                for (number, which) in [
                    ("slope", stats::Trait::Slope),
                    ("intercept", stats::Trait::Intercept),
                    ("r2", stats::Trait::Explained),
                ] {
                    out.add(&format!("fit.{}", fit.name), number, line.get(which));
                }
            }
        }
    }
}
