//! Trees of groups: the links from a source to the members, with the latencies of joins and leaves.
//!
//! Every link of a tree has a gate, as in the simulator. A member asks at the gate of its last link. A gate that opens asks the next
//! gate towards the source, and a gate that nobody asks for closes.

use faircast_core::time::{Span, Time};
use faircast_topology::{LinkId, NodeId};

/// Latencies of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latencies {
    /// Time after which a link carries a group that was asked for.
    pub join: Span,
    /// Time for which a link still carries a group that nobody asks for.
    pub leave: Span,
}

/// A link of a tree.
#[derive(Debug, Clone, Copy)]
struct Branch {
    from: NodeId,
    to: NodeId,
    link: LinkId,
    /// Number of members and open gates that ask for the packets of this link.
    asked: u32,
    is_open: bool,
    /// Time at which the gate opens or closes; [`Time::NEVER`] if it does not.
    turns: Time,
}

/// The links from a source to the hosts that may be members of a group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    /// In the order of `from`.
    branches: Vec<Branch>,
    latencies: Latencies,
    members: Vec<NodeId>,
    /// Time of the next turn of a gate.
    due: Time,
}

impl Tree {
    /// Returns a tree of these links, which are sorted by their first nodes: no gate is open.
    pub(crate) fn new(links: impl Iterator<Item = (NodeId, NodeId, LinkId)>, latencies: Latencies) -> Tree {
        let branch =
            |(from, to, link)| Branch { from, to, link, asked: 0, is_open: false, turns: Time::NEVER };
        Tree { branches: links.map(branch).collect(), latencies, members: Vec::new(), due: Time::NEVER }
    }

    /// Returns the next open link from a node, at `place` or behind it, and moves `place` behind this link. A place of 0 is before
    /// the first link.
    pub(crate) fn next(&self, node: NodeId, place: &mut usize) -> Option<LinkId> {
        if *place == 0 {
            *place = self.branches.partition_point(|branch| branch.from < node);
        }
        let leaving = self.branches[*place..].iter().take_while(|branch| branch.from == node);
        let open = leaving.take_while(|branch| !branch.is_open).count() + *place;
        let branch = self.branches.get(open).filter(|branch| branch.from == node)?;
        *place = open + 1;
        Some(branch.link)
    }

    /// Makes a host a member, or not.
    pub(crate) fn set(&mut self, now: Time, host: NodeId, is_member: bool) {
        let place = self.members.binary_search(&host);
        match (place, is_member) {
            (Err(place), true) => self.members.insert(place, host),
            (Ok(place), false) => _ = self.members.remove(place),
            _ => return,
        }
        self.ask(now, host, is_member);
        self.turn(now);
    }

    /// Asks for the packets at a node, or withdraws a request.
    fn ask(&mut self, now: Time, node: NodeId, is_asked: bool) {
        let Some(branch) = self.branches.iter_mut().find(|branch| branch.to == node) else { return };
        branch.asked = if is_asked { branch.asked + 1 } else { branch.asked - 1 };
        match (branch.is_open, branch.asked) {
            (false, 1) if is_asked => branch.turns = now + self.latencies.join,
            (true, 0) => branch.turns = now + self.latencies.leave,
            // A request that is withdrawn before it has an effect, and one that comes before the gate has closed.
            (false, 0) | (true, 1) => branch.turns = Time::NEVER,
            _ => {}
        }
        self.due = self.due.min(branch.turns);
    }

    /// Opens and closes the gates that are due by `now`.
    pub(crate) fn turn(&mut self, now: Time) {
        while self.due <= now {
            let due = self.branches.iter_mut().min_by_key(|branch| branch.turns);
            let Some(branch) = due.filter(|branch| branch.turns <= now) else { break };
            let (at, node) = (std::mem::replace(&mut branch.turns, Time::NEVER), branch.from);
            branch.is_open = !branch.is_open;
            let is_open = branch.is_open;
            self.ask(at, node, is_open);
        }
        self.due = self.branches.iter().map(|branch| branch.turns).min().unwrap_or(Time::NEVER);
    }

    /// Opens the gates towards all members at once.
    pub(crate) fn settle(&mut self, now: Time) {
        let latencies = std::mem::take(&mut self.latencies);
        for branch in &mut self.branches {
            if !branch.turns.is_never() {
                branch.turns = now;
            }
        }
        self.due = now;
        self.turn(now);
        self.latencies = latencies;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Node 0 sends to hosts 3 and 4 over the routers 1 and 2. Links have the numbers of the nodes to which they lead.
    fn tree(join: u64, leave: u64) -> Tree {
        let links = [(0, 1), (1, 2), (2, 3), (2, 4)];
        let link = |(from, to)| (NodeId(from), NodeId(to), LinkId(to));
        let latencies = Latencies { join: Span::from_millis(join), leave: Span::from_millis(leave) };
        Tree::new(links.into_iter().map(link), latencies)
    }

    /// Returns the links that packets take at a time, in milliseconds.
    fn taken(tree: &mut Tree, at: u64) -> Vec<u32> {
        tree.turn(millis(at));
        let (mut nodes, mut links) = (vec![NodeId(0)], Vec::new());
        while let Some(node) = nodes.pop() {
            let mut place = 0;
            while let Some(link) = tree.next(node, &mut place) {
                links.push(link.0);
                nodes.push(NodeId(link.0));
            }
        }
        links.sort_unstable();
        links
    }

    fn millis(at: u64) -> Time {
        Time::ZERO + Span::from_millis(at)
    }

    #[test]
    fn join_takes_its_latency_on_each_link_without_the_group() {
        let mut tree = tree(10, 0);
        tree.set(millis(100), NodeId(3), true);
        assert_eq!([taken(&mut tree, 129), taken(&mut tree, 130)], [vec![], vec![1, 2, 3]]);
        tree.set(millis(200), NodeId(4), true);
        assert_eq!([taken(&mut tree, 209), taken(&mut tree, 210)], [vec![1, 2, 3], vec![1, 2, 3, 4]]);
        tree.set(millis(300), NodeId(3), false);
        assert_eq!(taken(&mut tree, 300), [1, 2, 4], "a leave has no latency here");
    }

    #[test]
    fn leave_takes_its_latency_and_a_return_withdraws_it() {
        let mut tree = tree(0, 10);
        tree.set(millis(0), NodeId(3), true);
        tree.set(millis(5), NodeId(3), false);
        assert_eq!(taken(&mut tree, 14), [1, 2, 3]);
        tree.set(millis(14), NodeId(3), true);
        assert_eq!(taken(&mut tree, 1_000), [1, 2, 3], "it has come back in time");
        tree.set(millis(1_000), NodeId(3), false);
        assert_eq!(
            [taken(&mut tree, 1_010), taken(&mut tree, 1_020), taken(&mut tree, 1_030)],
            [vec![1, 2], vec![1], vec![]]
        );
    }

    #[test]
    fn withdrawn_join_has_no_effect_and_members_are_settled() {
        let mut tree = tree(10, 0);
        tree.set(millis(0), NodeId(3), true);
        tree.set(millis(9), NodeId(3), false);
        assert_eq!(taken(&mut tree, 500), [0; 0]);
        tree.set(millis(500), NodeId(4), true);
        tree.settle(millis(501));
        assert_eq!(taken(&mut tree, 501), [1, 2, 4]);
    }
}
