//! The border of an island: packets to other islands cross it.

use super::Builder;
use crate::engine::bundles::Bundle;
use crate::engine::islands::border::{Border, BorderBranch};
use crate::engine::islands::plan::Plan;
use crate::routes::{ArrivalProcessing, NONE};

impl Builder<'_> {
    /// Leads packets to other islands over the border, and removes the children and members of other islands from branches.
    pub(in crate::engine) fn put_up_border(
        &mut self,
        plan: &Plan,
        me: u32,
        bundles: &mut [Bundle],
    ) -> Border {
        let mut border = Border::new(plan.count);
        if plan.is_whole() {
            return border;
        }
        for number in 0..self.hops.len() {
            let hop = self.hops[number];
            let next = self.hops.get(hop.next as usize).map(|next| plan.of_link(next.link));
            let next = next.unwrap_or_else(|| plan.of_node(self.end(hop.link)));
            if plan.of_link(hop.link) == me && next != me {
                self.hops[number].then = ArrivalProcessing::Border(next);
            }
        }
        for number in 0..self.branches.len() {
            let branch = &self.branches[number];
            let (link, children, member) = (branch.link, branch.children, branch.member);
            let island = |child: u32| plan.of_link(self.branches[child as usize].link);
            let end = (member != NONE).then(|| plan.of_node(self.end(link)));
            let mut islands: Vec<u32> = (children.0..children.1).map(island).chain(end).collect();
            islands.sort_unstable();
            islands.dedup();
            // Holes between the remaining children are branches without packets.
            let mine: Vec<u32> = (children.0..children.1).filter(|child| island(*child) == me).collect();
            let rest = match (mine.first(), mine.last()) {
                (Some(first), Some(last)) => (*first, *last + 1),
                _ => (children.0, children.0),
            };
            let is_empty = mine.is_empty() && end != Some(me);
            for child in (rest.0..rest.1).filter(|child| mine.binary_search(child).is_err()) {
                self.branches[child as usize].active = Some(Box::new([]));
            }
            let it = &mut self.branches[number];
            it.children = rest;
            if end.is_some_and(|end| end != me) {
                it.member = NONE;
            }
            if let Some(bundle) = bundles.get_mut(it.bundle as usize) {
                bundle.parts = rest;
            }
            islands.retain(|island| *island != me);
            if plan.of_link(link) == me && !islands.is_empty() {
                let here = (!is_empty).then_some(it.then);
                it.then = ArrivalProcessing::Border(border.branches.len() as u32);
                border.branches.push(BorderBranch { here, islands });
            }
        }
        border
    }
}
