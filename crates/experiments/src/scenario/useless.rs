//! What a scenario says and nothing can come of: nodes that hang on one link and that no flow uses, receivers that join after
//! the end. They are slips of the pen; without a word the run would be another one than was meant.

use super::diagnostic::Diagnostic;
use super::layout::Layout;
use super::plan::RunPlan;
use faircast_core::time::Time;
use std::collections::BTreeSet;
use std::ops::Range;

/// What is of no use; `made` are the nodes that links have made.
pub(super) fn of(layout: &Layout, plan: &RunPlan, made: &[(u32, Range<usize>)]) -> Vec<Diagnostic> {
    let mut wrong = dangling(layout, made);
    wrong.extend(late(layout, plan));
    wrong
}

/// Nodes at the edge that are no end of a flow. A topology's own may be: its flows choose among them.
fn dangling(layout: &Layout, made: &[(u32, Range<usize>)]) -> Vec<Diagnostic> {
    if made.is_empty() {
        return Vec::new();
    }
    let ends = layout
        .flows
        .iter()
        .flat_map(|flow| std::iter::once(flow.source).chain(flow.receivers.iter().copied()));
    let ends: BTreeSet<u32> = ends.collect();
    let mut neighbours: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); layout.names.len() as usize];
    for link in &layout.links {
        let known = &mut neighbours[link.from as usize];
        if known.len() < 2 {
            known.insert(link.to);
        }
    }
    let useless = |node: u32| neighbours[node as usize].len() < 2 && !ends.contains(&node);
    let mut wrong: Vec<Diagnostic> = Vec::new();
    // Of a row it is enough that one is of use.
    for row in made.chunk_by(|(_, one), (_, other)| one == other) {
        let [(node, span), ..] = row else { continue };
        if !row.iter().all(|(node, _)| useless(*node)) {
            continue;
        }
        let name = layout.names.name(*node);
        let message = format!("{name} hangs on one link, and no flow begins or ends there");
        let help = "a link makes the nodes that it names; correct the name, give it a flow or a second link, or take it away";
        wrong.push(Diagnostic::new(span, message, "nothing passes here").help(help));
    }
    wrong
}

/// Flows with receivers that join when the run is over.
fn late(layout: &Layout, plan: &RunPlan) -> Vec<Diagnostic> {
    let end = plan.duration;
    let mut wrong: Vec<Diagnostic> = Vec::new();
    for flow in &layout.flows {
        let late =
            flow.receivers.iter().zip(&flow.stays).find(|(_, (join, _))| *join >= end && *join < Time::NEVER);
        let Some((receiver, (join, _))) = late else { continue };
        let span = &plan.flows[flow.group].span;
        if wrong.last().is_some_and(|last| last.span == *span) {
            continue;
        }
        let message = format!("{} joins at {join}, and the run ends at {end}", layout.names.name(*receiver));
        let help = "let it join before that, or make `duration` longer";
        wrong.push(Diagnostic::new(span, message, "joins after the end").help(help));
    }
    wrong
}
