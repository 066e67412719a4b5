//! Shortest paths, as chains of hops and as trees of branches.
//!
//! Paths are found per pair of routers and kept; hosts that hang on a single router cost nothing.

use crate::network::NodeId;
use faircast_aqm::LinkSpec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// No link, node, hop or branch.
pub const NONE: u32 = u32::MAX;

/// Where links lead, and the shortest ways.
#[derive(Debug)]
pub struct Routes<'a> {
    links: &'a [(NodeId, NodeId, LinkSpec)],
    /// Links out of each node: `out[first[n] .. first[n + 1]]`.
    out: Vec<u32>,
    first: Vec<u32>,
    /// The only node that each node has links to or from; [`NONE`] for routers.
    only_neighbour: Vec<u32>,
    /// For each destination router asked for: the link to take from every node.
    towards: BTreeMap<u32, Vec<u32>>,
    /// Links into each node, like `out`.
    into: Vec<u32>,
    into_first: Vec<u32>,
}

impl<'a> Routes<'a> {
    pub fn new(nodes: u32, links: &'a [(NodeId, NodeId, LinkSpec)]) -> Routes<'a> {
        let (first, out) = group(nodes, links.iter().map(|(from, _, _)| from.0));
        let (into_first, into) = group(nodes, links.iter().map(|(_, to, _)| to.0));
        let mut only_neighbour = vec![NONE; nodes as usize];
        let mut is_router = vec![false; nodes as usize];
        for (from, to, _) in links {
            for (a, b) in [(from.0, to.0), (to.0, from.0)] {
                let known = &mut only_neighbour[a as usize];
                if *known == NONE {
                    *known = b;
                } else if *known != b {
                    is_router[a as usize] = true;
                }
            }
        }
        for (node, router) in is_router.iter().enumerate() {
            if *router {
                only_neighbour[node] = NONE;
            }
        }
        Routes { links, out, first, only_neighbour, towards: BTreeMap::new(), into, into_first }
    }

    /// The links from `from` to `to`, in order, into `path`; `None` when there is no way.
    pub fn path(&mut self, from: u32, to: u32, path: &mut Vec<u32>) -> Option<()> {
        path.clear();
        let mut at = from;
        while at != to {
            let link = self.next_link(at, to)?;
            path.push(link);
            at = self.links[link as usize].1.0;
            if path.len() > self.first.len() {
                return None;
            }
        }
        Some(())
    }

    /// The link to take at `at` on the way to `to`.
    pub fn next_link(&mut self, at: u32, to: u32) -> Option<u32> {
        // A host with one neighbour goes through it, whatever the destination.
        let via = self.only_neighbour[at as usize];
        if via != NONE {
            return self.best_link(at, via);
        }
        let gate = self.only_neighbour[to as usize];
        let target = if gate == NONE { to } else { gate };
        if at == target {
            return self.best_link(at, to);
        }
        if !self.towards.contains_key(&target) {
            let ways = self.ways_to(target);
            self.towards.insert(target, ways);
        }
        let link = self.towards[&target][at as usize];
        (link != NONE).then_some(link)
    }

    /// The link between neighbours with the least delay.
    fn best_link(&self, from: u32, to: u32) -> Option<u32> {
        // Of the two ends, look at the one with fewer links: a router may have a million.
        let outgoing = &self.out[self.first[from as usize] as usize..self.first[from as usize + 1] as usize];
        let incoming =
            &self.into[self.into_first[to as usize] as usize..self.into_first[to as usize + 1] as usize];
        let candidates = if outgoing.len() <= incoming.len() { outgoing } else { incoming };
        let fitting = candidates.iter().filter(|&&link| {
            let (a, b, _) = &self.links[link as usize];
            a.0 == from && b.0 == to
        });
        fitting.copied().min_by_key(|&link| (self.links[link as usize].2.delay, link))
    }

    /// Dijkstra by delay, then by hops, over routers, backwards from `target`.
    fn ways_to(&self, target: u32) -> Vec<u32> {
        let nodes = self.only_neighbour.len();
        let mut way = vec![NONE; nodes];
        let mut best = vec![(u64::MAX, u32::MAX); nodes];
        let mut queue = BinaryHeap::new();
        best[target as usize] = (0, 0);
        queue.push(Reverse((0u64, 0u32, target)));
        while let Some(Reverse((delay, hops, node))) = queue.pop() {
            if (delay, hops) > best[node as usize] {
                continue;
            }
            let span = self.into_first[node as usize] as usize..self.into_first[node as usize + 1] as usize;
            for &link in &self.into[span] {
                let (from, _, spec) = &self.links[link as usize];
                if self.only_neighbour[from.0 as usize] != NONE {
                    continue; // a host: it knows its only way
                }
                let reached = (delay.saturating_add(spec.delay.as_nanos()), hops + 1);
                if reached < best[from.0 as usize] {
                    best[from.0 as usize] = reached;
                    way[from.0 as usize] = link;
                    queue.push(Reverse((reached.0, reached.1, from.0)));
                }
            }
        }
        way
    }
}

/// Indices of `keys` grouped by key: where each group begins, and the indices.
fn group(nodes: u32, keys: impl Iterator<Item = u32> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; nodes as usize + 2];
    for key in keys.clone() {
        first[key as usize + 2] += 1;
    }
    for node in 2..first.len() {
        first[node] += first[node - 1];
    }
    let mut grouped = vec![0; first[nodes as usize + 1] as usize];
    for (index, key) in keys.enumerate() {
        let place = &mut first[key as usize + 1];
        grouped[*place as usize] = index as u32;
        *place += 1;
    }
    first.pop();
    (first, grouped)
}

/// One hop of a unicast path or of the way of reports.
#[derive(Debug, Clone, Copy)]
pub struct Hop {
    pub link: u32,
    /// The hop after this one; [`NONE`] at the destination.
    pub next: u32,
    pub then: Then,
}

/// How an arrival is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// By an event of its own.
    Event,
    /// At once, when the packet is offered to the link.
    AtOnce,
    /// Together with others that go into the same link, by that link's inbox; for branches, by those of its children.
    Inbox(u32),
}

/// A link of a session's tree.
#[derive(Debug, Clone)]
pub struct Branch {
    pub link: u32,
    pub session: u32,
    /// The member at the link's end; [`NONE`] for none.
    pub member: u32,
    /// The branches after this one.
    pub children: (u32, u32),
    pub then: Then,
    /// The inbox of its link; [`NONE`] for none.
    pub inbox: u32,
    /// The bundle that the children form; [`NONE`] for none.
    pub bundle: u32,
    /// The bundle that this branch is part of; [`NONE`] for none.
    pub part_of: u32,
    /// How many of that bundle's packets it has taken, modulo 2^32.
    pub taken: u32,
    /// The gate of the base layer, those of other layers follow; [`NONE`] in sessions of one layer.
    pub gates: u32,
    /// When packets flow, in nanoseconds; `None` for always. Not for branches with gates.
    pub active: Option<Box<[(u64, u64)]>>,
}

const _: () = assert!(size_of::<Branch>() <= 64);

impl Branch {
    pub const fn new(link: u32, session: u32, member: u32) -> Branch {
        Branch {
            link,
            session,
            member,
            children: (0, 0),
            then: Then::Event,
            inbox: NONE,
            bundle: NONE,
            part_of: NONE,
            taken: 0,
            gates: NONE,
            active: None,
        }
    }
}

/// Memory for building trees, used again for each; stamped so that nothing has to be cleared.
#[derive(Debug)]
pub struct Trees {
    stamp: u32,
    /// By link: the latest tree that has it.
    link_seen: Vec<u32>,
    /// By node: the latest tree with links from it, and the first and last of these links.
    node_seen: Vec<u32>,
    first: Vec<u32>,
    last: Vec<u32>,
    /// By link: the next link of the same tree from the same node.
    sibling: Vec<u32>,
    /// By node: the latest tree that has a member there, and which.
    member_seen: Vec<u32>,
    member: Vec<u32>,
}

impl Trees {
    pub fn new(nodes: u32, links: usize) -> Trees {
        let (nodes, none) = (nodes as usize, NONE);
        Trees {
            stamp: 0,
            link_seen: vec![0; links],
            node_seen: vec![0; nodes],
            first: vec![none; nodes],
            last: vec![none; nodes],
            sibling: vec![none; links],
            member_seen: vec![0; nodes],
            member: vec![none; nodes],
        }
    }

    /// The tree of a session: branches appended to `branches`, children of a node side by side. Gives the root's
    /// children.
    ///
    /// # Errors
    /// The number of a member that cannot be reached.
    pub fn add(
        &mut self,
        routes: &mut Routes<'_>,
        session: u32,
        source: u32,
        members: &[u32],
        branches: &mut Vec<Branch>,
    ) -> Result<(u32, u32), usize> {
        self.stamp += 1;
        for (number, &node) in members.iter().enumerate() {
            self.member_seen[node as usize] = self.stamp;
            self.member[node as usize] = number as u32;
            let mut at = source;
            let mut steps = 0usize;
            while at != node {
                let link = routes.next_link(at, node).ok_or(number)?;
                if self.link_seen[link as usize] != self.stamp {
                    self.link_seen[link as usize] = self.stamp;
                    self.add_link(at, link);
                }
                at = routes.links[link as usize].1.0;
                steps += 1;
                if steps > routes.first.len() {
                    return Err(number);
                }
            }
        }
        // Breadth first, so that children are neighbours.
        branches.reserve(members.len());
        let root = self.lay_out(source, session, routes, branches);
        let mut next = root.0;
        while (next as usize) < branches.len() {
            let node = routes.links[branches[next as usize].link as usize].1.0;
            branches[next as usize].children = self.lay_out(node, session, routes, branches);
            next += 1;
        }
        Ok(root)
    }

    fn add_link(&mut self, from: u32, link: u32) {
        let node = from as usize;
        self.sibling[link as usize] = NONE;
        if self.node_seen[node] == self.stamp {
            self.sibling[self.last[node] as usize] = link;
        } else {
            self.node_seen[node] = self.stamp;
            self.first[node] = link;
        }
        self.last[node] = link;
    }

    fn lay_out(
        &self,
        node: u32,
        session: u32,
        routes: &Routes<'_>,
        branches: &mut Vec<Branch>,
    ) -> (u32, u32) {
        let start = branches.len() as u32;
        let mut link =
            if self.node_seen[node as usize] == self.stamp { self.first[node as usize] } else { NONE };
        while link != NONE {
            let end = routes.links[link as usize].1.0 as usize;
            let member = if self.member_seen[end] == self.stamp { self.member[end] } else { NONE };
            branches.push(Branch::new(link, session, member));
            link = self.sibling[link as usize];
        }
        (start, branches.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_aqm::QueueSpec;
    use faircast_core::time::{Rate, Span};

    fn link(from: u32, to: u32, millis: u64) -> (NodeId, NodeId, LinkSpec) {
        let spec = LinkSpec {
            rate: Rate::from_mbps(1.0),
            delay: Span::from_millis(millis),
            queue: QueueSpec::UNLIMITED,
            loss: None,
        };
        (NodeId(from), NodeId(to), spec)
    }

    fn path(routes: &mut Routes<'_>, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut path = Vec::new();
        routes.path(from, to, &mut path).map(|()| path)
    }

    fn both(pairs: &[(u32, u32, u64)]) -> Vec<(NodeId, NodeId, LinkSpec)> {
        pairs.iter().flat_map(|&(a, b, millis)| [link(a, b, millis), link(b, a, millis)]).collect()
    }

    #[test]
    fn the_path_with_the_least_delay_is_taken() {
        let links = both(&[(0, 1, 1), (1, 2, 10), (1, 3, 2), (3, 2, 2), (2, 4, 1)]);
        let mut routes = Routes::new(5, &links);
        assert_eq!(path(&mut routes, 0, 4), Some(vec![0, 4, 6, 8]));
        assert_eq!(path(&mut routes, 4, 0), Some(vec![9, 7, 5, 1]));
    }

    #[test]
    fn two_hosts_on_one_link_find_each_other() {
        let links = both(&[(0, 1, 1)]);
        assert_eq!(path(&mut Routes::new(2, &links), 0, 1), Some(vec![0]));
    }

    #[test]
    fn there_may_be_no_way() {
        let links = both(&[(0, 1, 1), (2, 3, 1)]);
        assert_eq!(path(&mut Routes::new(4, &links), 0, 3), None);
    }

    #[test]
    fn a_tree_carries_each_packet_once_over_each_link() {
        // 0 - 1 - {2, 3 - {4, 5}}
        let links = both(&[(0, 1, 1), (1, 2, 1), (1, 3, 1), (3, 4, 1), (3, 5, 1)]);
        let mut branches = Vec::new();
        let (mut routes, mut trees) = (Routes::new(6, &links), Trees::new(6, links.len()));
        let root = trees.add(&mut routes, 0, 0, &[2, 4, 5], &mut branches).expect("all reachable");
        assert_eq!(root, (0, 1));
        let shape: Vec<_> = branches.iter().map(|b| (b.link, b.member, b.children)).collect();
        let expected = [(0, NONE, (1, 3)), (2, 0, (3, 3)), (4, NONE, (3, 5)), (6, 1, (5, 5)), (8, 2, (5, 5))];
        assert_eq!(shape, expected);
    }
}
