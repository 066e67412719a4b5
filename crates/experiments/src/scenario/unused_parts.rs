//! Parts of a scenario without effect: nodes that hang on one link and that no flow uses, flows whose receivers
//! join after the end. They are slips of the pen; without a warning the run would not be the intended one.

use super::diagnostic::Diagnostic;
use super::names::Names;
use super::plan::RunPlan;
use faircast_core::time::Time;
use std::collections::BTreeSet;
use std::ops::Range;

/// A flow's group, its receivers, and when each joins and leaves.
pub(super) type Joins<'a> = (usize, &'a [u32], &'a [(Time, Time)]);

/// Returns the parts without use; `ends` are the nodes where flows begin and end, `made` the nodes that links have
/// created.
pub(super) fn of<'a>(
    names: &Names,
    plan: &RunPlan,
    links: impl Iterator<Item = (u32, u32)>,
    ends: &BTreeSet<u32>,
    made: &[(u32, Range<usize>)],
    joins: impl Iterator<Item = Joins<'a>>,
) -> Vec<Diagnostic> {
    let mut wrong = if made.is_empty() { Vec::new() } else { dangling(names, links, ends, made) };
    wrong.extend(late(names, plan, joins));
    wrong
}

/// Nodes at the edge that are no end of a flow. A topology's own may be: its flows choose among them.
fn dangling(
    names: &Names,
    links: impl Iterator<Item = (u32, u32)>,
    ends: &BTreeSet<u32>,
    made: &[(u32, Range<usize>)],
) -> Vec<Diagnostic> {
    let mut neighbours: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); names.len() as usize];
    for (from, to) in links {
        let known = &mut neighbours[from as usize];
        if known.len() < 2 {
            known.insert(to);
        }
    }
    let useless = |node: u32| neighbours[node as usize].len() < 2 && !ends.contains(&node);
    let mut wrong: Vec<Diagnostic> = Vec::new();
    // A row is useful if one of its nodes is.
    for row in made.chunk_by(|(_, one), (_, other)| one == other) {
        let [(node, span), ..] = row else { continue };
        if !row.iter().all(|(node, _)| useless(*node)) {
            continue;
        }
        let message = format!("{} hangs on one link, and no flow begins or ends there", names.name(*node));
        let help = "a link makes the nodes that it names; correct the name, give it a flow or a second link, or take it away";
        wrong.push(Diagnostic::new(span, message, "nothing passes here").help(help));
    }
    wrong
}

/// Flows all of whose receivers join when the run is over. That some do may come of a shorter run of the same scenario.
fn late<'a>(names: &Names, plan: &RunPlan, joins: impl Iterator<Item = Joins<'a>>) -> Vec<Diagnostic> {
    let end = plan.duration;
    let mut wrong: Vec<Diagnostic> = Vec::new();
    for (group, receivers, stays) in joins {
        let is_late = !stays.is_empty() && stays.iter().all(|(join, _)| *join >= end);
        let (Some(receiver), Some((join, _))) = (receivers.first(), stays.first()) else { continue };
        let span = &plan.flows[group].span;
        if !is_late || wrong.last().is_some_and(|last| last.span == *span) {
            continue;
        }
        let message = format!("{} joins at {join}, and the run ends at {end}", names.name(*receiver));
        let help = "let it join before that, or make `duration` longer";
        wrong.push(Diagnostic::new(span, message, "joins after the end").help(help));
    }
    wrong
}
