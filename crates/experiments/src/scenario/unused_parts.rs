//! Finds parts of a scenario without effect: nodes with one link and without a flow, and flows whose receivers join after the
//! end. These are probably mistakes, so a warning is given.

use super::diagnostic::Diagnostic;
use super::names::Names;
use super::plan::RunPlan;
use faircast_core::time::Time;
use std::collections::BTreeSet;
use std::ops::Range;

/// A flow's group, its receivers, and their times of joining and leaving.
pub(super) type Joins<'a> = (usize, &'a [u32], &'a [(Time, Time)]);

/// Returns warnings about parts without effect. `ends` are the ends of flows, `made` the nodes that links have created.
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

/// Returns warnings about nodes with at most one link that are no end of a flow. Only nodes that links have created are checked,
/// because flows select among the nodes of a topology.
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
    // A row has an effect if one of its nodes has one.
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

/// Returns warnings about flows whose receivers all join after the end of the run. Single late receivers are permitted: they may
/// result from a shorter run of the same scenario.
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
