//! Trees of sessions: the parent of each receiver.

use super::super::diagnostic::Diagnostic;
use super::super::plan::{AgentPlan, SessionPlan, TreePlan};
use super::{Builder, LaidFlow};
use faircast_core::time::Time;
use faircast_sim::NodeId;
use faircast_topology::Routes;
use std::ops::Range;

/// Returns a tree in which no node has more than `fan` children. The sequence of members is divided into `fan` runs. The first
/// member of a run is a child of the source. The rest of the run forms the subtree of this member and is divided in the same way.
/// Therefore, members that are close in the sequence are close in the tree.
fn in_runs(count: usize, fan: usize) -> Vec<Option<u32>> {
    let mut parents = vec![None; count];
    let mut undivided = vec![(0..count, None)];
    while let Some((members, parent)) = undivided.pop() {
        let (begin, count) = (members.start, members.len());
        let runs = fan.min(count);
        for run in 0..runs {
            let (first, end) = (begin + count * run / runs, begin + count * (run + 1) / runs);
            parents[first] = parent;
            undivided.push((first + 1..end, Some(first as u32)));
        }
    }
    parents
}

impl Builder {
    /// Adds a session's tree: the parent of each receiver, and the failures of agents.
    pub(super) fn tree(&mut self, session: &SessionPlan, span: &Range<usize>, flow: &mut LaidFlow) {
        let count = flow.receivers.len();
        if session.scheme.agents().is_none() {
            return; // a warning says so where a tree is described
        }
        match &session.tree {
            TreePlan::Flat => {}
            TreePlan::FanOut(fan) => {
                flow.parents = in_runs(count, *fan as usize);
            }
            TreePlan::Nearest => flow.parents = self.nearest(flow),
            TreePlan::Agents(agents) => {
                flow.parents = vec![None; count];
                agents.iter().for_each(|agent| self.agent(agent, flow));
            }
        }
        for member in 0..count {
            let (mut next, mut steps) = (flow.parents.get(member).copied().flatten(), 0);
            while let Some(parent) = next.filter(|_| steps <= count) {
                next = flow.parents[parent as usize];
                steps += 1;
            }
            if steps > count {
                let message = format!(
                    "{} is its own parent or ancestor in the tree",
                    self.layout.names.name(flow.receivers[member])
                );
                self.wrong.push(Diagnostic::new(span, message, "no tree"));
                return;
            }
        }
        self.check_children(session, span, flow);
    }

    /// Checks that no node has more children than the session allows.
    fn check_children(&mut self, session: &SessionPlan, span: &Range<usize>, flow: &LaidFlow) {
        let mut children = vec![0; flow.receivers.len() + 1];
        for parent in &flow.parents {
            children[parent.map_or(flow.receivers.len(), |parent| parent as usize)] += 1;
        }
        let (at, most) = (0..).zip(children).max_by_key(|(_, count)| *count).unwrap_or((0, 0));
        if most > session.most_children {
            let parent = flow.receivers.get(at).copied().unwrap_or(flow.source);
            let name = self.layout.names.name(parent);
            let message = format!(
                "{name} has {most} children in the tree, but at most {} are allowed",
                session.most_children
            );
            let help = format!(
                "put agents between the node and some of its children, or allow the number: most_children = {most}"
            );
            self.wrong.push(Diagnostic::new(span, message, "too many children").help(help));
        }
    }

    /// Returns the parent of each receiver: the nearest other receiver on the path from the source.
    fn nearest(&self, flow: &LaidFlow) -> Vec<Option<u32>> {
        let mut member_at = vec![None; self.layout.names.len() as usize];
        for (member, node) in (0..).zip(&flow.receivers) {
            member_at[*node as usize] = Some(member);
        }
        let topology = self.layout.nodes_and_links(|node| self.layout.hosts.contains(&node));
        let (mut routes, mut path) = (Routes::new(&topology), Vec::new());
        let parent = |node: &u32| {
            routes.path(NodeId(flow.source), NodeId(*node), &mut path)?;
            let passed = path.iter().rev().map(|link| topology.edges()[link.0 as usize].from);
            passed.filter_map(|node| member_at[node.0 as usize]).next()
        };
        flow.receivers.iter().map(parent).collect()
    }

    fn agent(&mut self, plan: &AgentPlan, flow: &mut LaidFlow) {
        let (agent, children) = (self.find(&plan.agent), self.find(&plan.children));
        let member = |node: &u32| flow.receivers.iter().position(|receiver| receiver == node);
        let (Some(at), 1) = (agent.first().and_then(member), agent.len()) else {
            let message = "an agent must be one receiver of the flow";
            self.wrong.push(Diagnostic::new(&plan.span, message, "not one of them"));
            return;
        };
        for child in &children {
            match member(child) {
                Some(child) => flow.parents[child] = Some(at as u32),
                None => {
                    let message = format!("{} is not a receiver of the flow", self.layout.names.name(*child));
                    self.wrong.push(Diagnostic::new(&plan.span, message, "cannot be a child"));
                }
            }
        }
        if let Some(dies) = plan.dies {
            if flow.stays.is_empty() {
                flow.stays = vec![(Time::ZERO, Time::NEVER); flow.receivers.len()];
            }
            flow.stays[at].1 = dies;
            flow.returns.extend(plan.returns.map(|back| (at as u32, back, Time::NEVER)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_member_of_each_run_is_the_ancestor_of_the_run() {
        let [top, a, b, c, d] = [None, Some(0), Some(4), Some(8), Some(11)];
        assert_eq!(in_runs(3, 4), [top; 3]);
        assert_eq!(in_runs(3, 1), [top, a, Some(1)]);
        assert_eq!(in_runs(1_000_000, 1).last(), Some(&Some(999_998)), "a chain of any length");
        assert_eq!(in_runs(13, 3), [top, a, a, a, top, b, b, b, top, c, c, c, d]);
    }
}
