//! Checks for parts that a scenario lacks: the tree or the routers that a scheme needs, or metrics that are to be drawn over a
//! sweep.

use super::diagnostic::{Diagnostic, Diagnostics, nearest};
use super::plan::{FlowKind, RouterKind, RunPlan};
use super::{Scenario, shapes};
use std::collections::BTreeSet;

/// Returns the kind of active routers that the scheme of this name needs, as in `is = KIND`.
pub fn router_kind(scheme: &str) -> Option<&'static str> {
    match scheme {
        "raccoom" => Some("acknowledgements"),
        "rmanp" => Some("rmanp"),
        _ => None,
    }
}

/// Returns the keys that a `[[flow]]` of this kind may have.
pub fn flow_keys(kind: &str) -> Vec<&'static str> {
    let shape = shapes::FLOWS.shape(kind);
    shape.map_or(Vec::new(), |shape| shape.fields.iter().map(|field| field.name).collect())
}

impl Scenario {
    /// Returns the groups of flows that are sessions, each with the name of its scheme at the first point.
    pub fn sessions(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let flows = self.plans.first().into_iter().flat_map(|plan| &plan.flows);
        flows.filter_map(|flow| match &flow.kind {
            FlowKind::Session(session) => Some((flow.name.value.as_str(), session.scheme.name())),
            _ => None,
        })
    }

    /// Returns the parts that a session's scheme needs and that are missing at some point of the sweep.
    pub fn lack(&self, flow: &str) -> Option<Diagnostics> {
        let points = 0..self.plans.len();
        let wrong = points.into_iter().find_map(|point| lack_at(&self.plans[point], self, point, flow));
        wrong.map(|wrong| Diagnostics::new(&self.file, &self.text, vec![wrong]))
    }

    /// Returns the reason why these metrics cannot be drawn over the sweep.
    pub fn lack_of_metrics(&self, wanted: &[String]) -> Option<Diagnostics> {
        let first = wanted.first()?;
        let known: BTreeSet<String> =
            (0..self.plans.len()).flat_map(|point| self.metric_names(point)).collect();
        let wrong = match wanted.iter().find(|name| !known.contains(*name)) {
            _ if self.axes.is_empty() => {
                let message = format!("the scenario has no `[sweep]` over which `{first}` could be drawn");
                Diagnostic::new(&(0..0), message, "no sweep")
            }
            Some(name) => {
                let near = nearest(name, known.iter().map(String::as_str));
                let help = near.map_or("`metrics.csv` of a run lists all metrics".to_owned(), |near| {
                    format!("did you mean `{near}`?")
                });
                Diagnostic::new(&(0..0), format!("no run has a metric `{name}`"), "unknown").help(help)
            }
            None => return None,
        };
        Some(Diagnostics::new(&self.file, &self.text, vec![wrong]))
    }
}

fn lack_at(plan: &RunPlan, scenario: &Scenario, point: usize, name: &str) -> Option<Diagnostic> {
    let group = plan.flows.iter().position(|flow| flow.name.value == name)?;
    let flow = &plan.flows[group];
    let FlowKind::Session(session) = &flow.kind else { return None };
    let layout = scenario.layout(point, plan.seeds.first().copied().unwrap_or(1));
    let laid = layout.flows.iter().find(|flow| flow.group == group)?;
    let receivers = laid.receivers.len();
    let is_flat = laid.parents.is_empty() && receivers > session.most_children as usize;
    let has_routers =
        |wanted: fn(&RouterKind) -> bool| layout.routers.iter().any(|(_, kind, ..)| wanted(kind));
    let scheme = session.scheme.name();
    let lack = |message: String, label: &str, help: String| {
        Some(Diagnostic::new(&flow.name.span, message, label).help(help))
    };
    let routers = || {
        let kind = router_kind(scheme).unwrap_or_default();
        let help = format!(
            "add `[[router]]` with `is = \"{kind}\"` and, as `at`, the nodes at which the paths of receivers separate, such as \"hub\"; in a comparison only `{scheme}` uses it"
        );
        lack(
            format!("`{scheme}` needs routers of its own kind, and the scenario has no such routers"),
            "no routers",
            help,
        )
    };
    match scheme {
        "mtcp" if is_flat && session.scheme.agents().is_none() => {
            let message = format!(
                "`{scheme}` with these options has no agents, but {receivers} receivers need a tree with agents"
            );
            lack(message, "no agents", format!("write `{scheme},repair=tree`"))
        }
        "mtcp" if is_flat => {
            let help = "give the flow `fan_out = 16`, `tree = \"nearest\"` or `agents`; schemes without agents ignore these";
            lack(format!("`{scheme}` needs a tree for {receivers} receivers"), "no tree", help.to_owned())
        }
        "raccoom" if is_flat && !has_routers(|kind| *kind == RouterKind::Acknowledgements) => routers(),
        "rmanp" if !has_routers(|kind| matches!(kind, RouterKind::Active(_))) => routers(),
        _ => None,
    }
}
