//! Metrics of some receivers of a group, and lines through metrics.

use super::measure::{Metrics, Run, Who};
use crate::scenario::plan::{Abscissa, FlowKind, TimeWindow};
use crate::stats;
use faircast_sim::MemberOutcome;
use std::collections::BTreeSet;

impl<'a> Run<'a> {
    /// The parts of a group: what their metrics are called by, and their receivers.
    fn parts(&self, group: usize) -> impl Iterator<Item = (String, Vec<Who<'a>>)> {
        let named = self.plan.flows[group].parts.iter().zip(&self.layout.parts[group]);
        named.map(move |(part, nodes)| {
            let name = format!("{}.{}", self.name(group), part.name.value);
            (name, self.receivers(group).filter(|who| nodes.contains(&self.node(who))).collect())
        })
    }

    /// Rates, counts and layers in a window.
    pub(super) fn parts_in_window(&self, group: usize, window: &TimeWindow, out: &mut Metrics) {
        let range = self.range(window);
        for (name, receivers) in self.parts(group) {
            // Beyond `probe.watch` receivers have no bins.
            let members: Vec<&MemberOutcome> =
                receivers.iter().map(|who| who.member).filter(|member| !member.bins.is_empty()).collect();
            if let Some(mean) = self.spread_metrics(&name, &members, &range, out) {
                out.add(&format!("{name}.rate"), mean);
            }
            self.part_counts(&name, &receivers, window, out);
            if self.is_layered(group) {
                self.level_metrics(&name, &receivers, window, out);
            }
        }
    }

    /// Counts over the whole run: sums over the part, means over the flows that it belongs to.
    pub(super) fn parts_of_run(&self, group: usize, out: &mut Metrics) {
        for (name, receivers) in self.parts(group) {
            let flows = receivers.iter().map(|who| who.flow).collect::<BTreeSet<_>>().len() as f64;
            if flows == 0.0 {
                continue;
            }
            let sum =
                |count: fn(&MemberOutcome) -> u64| receivers.iter().map(|who| count(who.member)).sum::<u64>();
            out.add(&format!("{name}.reports"), sum(|member| member.reports) as f64 / flows);
            if matches!(self.plan.flows[group].kind, FlowKind::Session(_)) {
                out.add(&format!("{name}.suppressed"), sum(|member| member.suppressed) as f64 / flows);
            }
            self.join_metrics(&name, &receivers, out);
        }
    }

    /// Lines through metrics; none where one of them is missing.
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
                    out.add(&format!("fit.{}.{number}", fit.name), line.get(which));
                }
            }
        }
    }
}
