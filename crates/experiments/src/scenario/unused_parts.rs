//! Warns about parts of a scenario that have no effect and are probably mistakes. These are nodes with a single link and without
//! a flow, and flows whose receivers join after the end of the run.

use super::diagnostic::Diagnostic;
use super::names::Names;
use super::plan::RunPlan;
use faircast_core::time::Time;
use std::collections::BTreeSet;
use std::ops::Range;

/// The group of a flow, its receivers, and their times of joining and leaving.
pub(super) type Joins<'a> = (usize, &'a [u32], &'a [(Time, Time)]);

/// Returns warnings about parts without effect. `ends` are the ends of flows; `made` are the nodes that links have created.
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

/// Returns warnings about nodes that have at most one link and are not an end of a flow. Only nodes that a `[[link]]` has created
/// are checked, because flows need not use all nodes of a topology.
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
    // If one node of a row has an effect, no warning is given for the row.
    for row in made.chunk_by(|(_, one), (_, other)| one == other) {
        let [(node, span), ..] = row else { continue };
        if !row.iter().all(|(node, _)| useless(*node)) {
            continue;
        }
        let message = format!("{} has only one link, and no flow begins or ends there", names.name(*node));
        let help = "a [[link]] creates nodes that do not exist; correct the name of the node, give the node a flow or a second link, or remove the [[link]]";
        wrong.push(Diagnostic::new(span, message, "nothing passes here").help(help));
    }
    wrong
}

/// Returns warnings about flows whose receivers all join after the end of the run. If only some receivers join too late, no
/// warning is given: the scenario may have been shortened.
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
        let help = "set an earlier `join`, or a longer `duration`";
        wrong.push(Diagnostic::new(span, message, "joins after the end").help(help));
    }
    wrong
}
