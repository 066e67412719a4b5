//! Parts that a scheme of trees or routers needs, and that a scenario does not have.

use super::plan::{FlowKind, RouterKind, RunPlan};
use super::{Scenario, shape, shapes};

/// A part that a scheme needs and a scenario does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lack {
    /// Agents, of which a tree is made.
    #[error(
        "`{scheme}` as it is chosen has no agents, and so no tree for {receivers} receivers: write `{scheme},repair=tree`"
    )]
    Agents {
        /// The scheme.
        scheme: &'static str,
        /// How many receivers it has.
        receivers: usize,
    },
    /// A tree of receivers.
    #[error(
        "`{scheme}` needs a tree for {receivers} receivers, and `{flow}` has none: give the flow `fan_out = 16`, \
         `tree = \"nearest\"` or `agents`; schemes without agents ignore these keys"
    )]
    Tree {
        /// The scheme.
        scheme: &'static str,
        /// The flow.
        flow: String,
        /// How many receivers it has.
        receivers: usize,
    },
    /// Routers of a kind.
    #[error(
        "`{scheme}` needs routers, and the scenario has none of its kind: add `[[router]]` with `at = \"hub\"`, or where \
         packets to receivers part, and `is = \"{kind}\"`; a comparison gives them to `{scheme}` alone"
    )]
    Routers {
        /// The scheme.
        scheme: &'static str,
        /// The kind.
        kind: &'static str,
    },
}

/// The kind of routers that a scheme of this name is made for, as in `is = KIND`.
pub fn router_kind(scheme: &str) -> Option<&'static str> {
    match scheme {
        "raccoom" => Some("acknowledgements"),
        "rmanp" => Some("rmanp"),
        _ => None,
    }
}

/// The keys that a `[[flow]]` of this kind may have.
pub fn flow_keys(kind: &str) -> Vec<&'static str> {
    let shape: Result<&shape::Shape, String> = shapes::FLOWS.shape(kind);
    shape.map_or(Vec::new(), |shape| shape.fields.iter().map(|field| field.name).collect())
}

impl Scenario {
    /// The groups that are sessions, and the names of their schemes at the first point.
    pub fn sessions(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let flows = self.plans.first().into_iter().flat_map(|plan| &plan.flows);
        flows.filter_map(|flow| match &flow.kind {
            FlowKind::Session(session) => Some((flow.name.value.as_str(), session.scheme.name())),
            _ => None,
        })
    }

    /// What a session of this name needs at some point of the sweep and does not have.
    pub fn lack(&self, flow: &str) -> Option<Lack> {
        (0..self.plans.len()).find_map(|point| lack_at(&self.plans[point], self, point, flow))
    }
}

fn lack_at(plan: &RunPlan, scenario: &Scenario, point: usize, name: &str) -> Option<Lack> {
    let group = plan.flows.iter().position(|flow| flow.name.value == name)?;
    let FlowKind::Session(session) = &plan.flows[group].kind else { return None };
    let seed = plan.seeds.first().copied().unwrap_or(1);
    let layout = scenario.layout(point, seed);
    let laid = layout.flows.iter().find(|flow| flow.group == group)?;
    let receivers = laid.receivers.len();
    let is_flat = laid.parents.is_empty() && receivers > session.most_children as usize;
    let has_routers =
        |wanted: fn(&RouterKind) -> bool| layout.routers.iter().any(|(_, kind, ..)| wanted(kind));
    let scheme = session.scheme.name();
    let routers = || router_kind(scheme).map(|kind| Lack::Routers { scheme, kind });
    match scheme {
        "mtcp" if is_flat && session.scheme.agents().is_none() => Some(Lack::Agents { scheme, receivers }),
        "mtcp" if is_flat => Some(Lack::Tree { scheme, flow: name.to_owned(), receivers }),
        "raccoom" if is_flat && !has_routers(|kind| *kind == RouterKind::Acknowledgements) => routers(),
        "rmanp" if !has_routers(|kind| matches!(kind, RouterKind::Active(_))) => routers(),
        _ => None,
    }
}
