//! Shortest paths and multicast trees.
//!
//! A path has the least delay. Among paths of equal delay it has the fewest links. Among several such paths, the next node is the
//! neighbour that is nearer to the destination, then the neighbour with the lowest number. Between two neighbours a path uses the
//! link with the least delay; among links of equal delay, the link with the lowest number. No path passes through a host
//! ([`Topology::is_host`]).
//!
//! The network consists of a core, which contains all loops, and of trees attached to the core. Within such a tree there is only
//! one path between two nodes; finding it needs neither a search nor memory. Paths through the core are computed per destination
//! and cached.

use crate::topology::{LinkId, NodeId, Topology};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// No link or no node.
const NONE: u32 = u32::MAX;

/// The shortest paths through a network.
#[derive(Debug)]
pub struct Routes<'a> {
    topology: &'a Topology,
    /// Links out of each node: `out[first[n] .. first[n + 1]]`.
    out: Vec<u32>,
    first: Vec<u32>,
    /// Links into each node, like `out`.
    into: Vec<u32>,
    into_first: Vec<u32>,
    /// For each node of an attached tree: the neighbour on the path to the core. For each node of the core: [`NONE`]. A network
    /// without loops has a core of one node.
    up: Vec<u32>,
    /// For each node: number of links on the path to the core.
    depth: Vec<u32>,
    /// For each destination in the core that was requested: the next link from every node of the core.
    towards: BTreeMap<u32, Vec<u32>>,
}

impl<'a> Routes<'a> {
    /// Returns the routes of this network. Paths are computed when they are requested.
    pub fn new(topology: &'a Topology) -> Routes<'a> {
        let (nodes, edges) = (topology.nodes(), topology.edges());
        let (first, out) = group(nodes, edges.iter().map(|edge| edge.from.0));
        let (into_first, into) = group(nodes, edges.iter().map(|edge| edge.to.0));
        let mut it = Routes {
            topology,
            out,
            first,
            into,
            into_first,
            up: vec![NONE; nodes as usize],
            depth: vec![0; nodes as usize],
            towards: BTreeMap::new(),
        };
        it.find_hanging_trees();
        it
    }

    /// Finds the attached trees: removes nodes with a single neighbour from the core, until no such node is left.
    fn find_hanging_trees(&mut self) {
        let neighbours = self.neighbours();
        let of = |node: u32| &neighbours.1[neighbours.0[node as usize]..neighbours.0[node as usize + 1]];
        let nodes = self.up.len() as u32;
        let mut left: Vec<u32> = (0..nodes).map(|node| of(node).len() as u32).collect();
        let mut taken: Vec<u32> = (0..nodes).filter(|node| left[*node as usize] == 1).collect();
        let mut next = 0;
        while let Some(&node) = taken.get(next) {
            next += 1;
            // In a network without loops, the last remaining node has no neighbour left.
            let Some(&only) = of(node).iter().find(|other| left[**other as usize] > 0) else { continue };
            self.up[node as usize] = only;
            left[node as usize] = 0;
            left[only as usize] -= 1;
            if left[only as usize] == 1 {
                taken.push(only);
            }
        }
        // Nodes that were removed later are nearer to the core.
        for &node in taken.iter().rev() {
            let up = self.up[node as usize];
            if up != NONE {
                self.depth[node as usize] = self.depth[up as usize] + 1;
            }
        }
    }

    /// Returns the neighbours of all nodes in one list, each neighbour of a node once, and the index at which the neighbours of
    /// each node begin.
    fn neighbours(&self) -> (Vec<usize>, Vec<u32>) {
        let edges = self.topology.edges();
        let (mut first, mut all) = (Vec::with_capacity(self.up.len() + 1), Vec::with_capacity(edges.len()));
        let mut here = Vec::new();
        for node in 0..self.up.len() {
            first.push(all.len());
            let out = self.out[self.first[node] as usize..self.first[node + 1] as usize].iter();
            let into = self.into[self.into_first[node] as usize..self.into_first[node + 1] as usize].iter();
            here.extend(out.map(|link| edges[*link as usize].to.0));
            here.extend(into.map(|link| edges[*link as usize].from.0));
            here.retain(|other| *other as usize != node);
            here.sort_unstable();
            here.dedup();
            all.append(&mut here);
        }
        first.push(all.len());
        (first, all)
    }

    /// Returns the network.
    pub const fn topology(&self) -> &'a Topology {
        self.topology
    }

    /// Replaces the contents of `path` with the links from `from` to `to`, in order. Returns `None` if no path exists.
    ///
    /// # Panics
    /// When a node does not exist.
    pub fn path(&mut self, from: NodeId, to: NodeId, path: &mut Vec<LinkId>) -> Option<()> {
        path.clear();
        let mut at = from;
        while at != to {
            let link = self.next_link(at, to)?;
            path.push(link);
            at = self.end(link);
            if path.len() > self.first.len() {
                return None;
            }
        }
        Some(())
    }

    /// Returns the next link from `at` towards `to`; `None` if `at` is `to`. If a path exists, the sequence of next links is the
    /// path; otherwise the sequence ends or forms a loop.
    ///
    /// # Panics
    /// When a node does not exist.
    #[inline]
    pub fn next_link(&mut self, at: NodeId, to: NodeId) -> Option<LinkId> {
        if at == to {
            return None;
        }
        // Walks from the destination towards the core.
        let (mut below, mut gate) = (NONE, to.0);
        while self.depth[gate as usize] > self.depth[at.0 as usize] {
            (below, gate) = (gate, self.up[gate as usize]);
        }
        let link = if gate == at.0 {
            self.best_link(at.0, below)?
        } else if self.up[at.0 as usize] != NONE {
            self.best_link(at.0, self.up[at.0 as usize])?
        } else {
            if !self.towards.contains_key(&gate) {
                let ways = self.ways_to(gate);
                self.towards.insert(gate, ways);
            }
            let link = self.towards[&gate][at.0 as usize];
            (link != NONE).then_some(LinkId(link))?
        };
        let end = self.end(link);
        (end == to || !self.topology.is_host(end)).then_some(link)
    }

    #[inline]
    fn end(&self, link: LinkId) -> NodeId {
        self.topology.edges()[link.0 as usize].to
    }

    /// Returns the link with the least delay between two neighbours.
    fn best_link(&self, from: u32, to: u32) -> Option<LinkId> {
        // Searches the shorter of two lists: a router may have a million links.
        let outgoing = &self.out[self.first[from as usize] as usize..self.first[from as usize + 1] as usize];
        let incoming =
            &self.into[self.into_first[to as usize] as usize..self.into_first[to as usize + 1] as usize];
        let candidates = if outgoing.len() <= incoming.len() { outgoing } else { incoming };
        let edges = self.topology.edges();
        let fitting = candidates.iter().filter(|&&link| {
            let edge = &edges[link as usize];
            edge.from.0 == from && edge.to.0 == to
        });
        fitting.copied().min_by_key(|&link| (edges[link as usize].spec.delay, link)).map(LinkId)
    }

    /// Returns the next link of each node towards `target`, by Dijkstra's algorithm over the core, backwards from `target`. The
    /// delay is minimised first, then the number of links.
    fn ways_to(&self, target: u32) -> Vec<u32> {
        let nodes = self.up.len();
        let edges = self.topology.edges();
        let mut way = vec![NONE; nodes];
        let mut best = vec![(u64::MAX, u32::MAX); nodes];
        let mut queue = BinaryHeap::new();
        best[target as usize] = (0, 0);
        queue.push(Reverse((0u64, 0u32, target)));
        while let Some(Reverse((delay, links, node))) = queue.pop() {
            if (delay, links) > best[node as usize] {
                continue;
            }
            let span = self.into_first[node as usize] as usize..self.into_first[node as usize + 1] as usize;
            for &link in &self.into[span] {
                let edge = &edges[link as usize];
                let from = edge.from.0;
                if self.up[from as usize] != NONE {
                    continue; // it knows its only way
                }
                let reached = (delay.saturating_add(edge.spec.delay.as_nanos()), links + 1);
                if reached < best[from as usize] {
                    best[from as usize] = reached;
                    way[from as usize] = link;
                    if !self.topology.is_host(edge.from) {
                        queue.push(Reverse((reached.0, reached.1, from)));
                    }
                }
            }
        }
        way
    }
}

/// Groups the indices of `keys` by key. Returns the position at which each group starts, and the grouped indices.
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

/// The tree of shortest paths from a source to a set of nodes. The next tree reuses the memory. Each tree has a stamp of its own,
/// so the memory need not be cleared.
#[derive(Debug)]
pub struct Trees {
    stamp: u32,
    /// For each link: the stamp of the latest tree that contains the link.
    link_seen: Vec<u32>,
    /// For each node: the stamp of the latest tree that contains links from the node. `first` and `last` are the first and the
    /// last of these links.
    node_seen: Vec<u32>,
    first: Vec<u32>,
    last: Vec<u32>,
    /// For each link: the next link of the same tree that starts at the same node.
    sibling: Vec<u32>,
}

impl Trees {
    /// Returns an empty tree, with enough memory for any tree in this network.
    pub fn new(topology: &Topology) -> Trees {
        let (nodes, links) = (topology.nodes() as usize, topology.edges().len());
        Trees {
            stamp: 0,
            link_seen: vec![0; links],
            node_seen: vec![0; nodes],
            first: vec![NONE; nodes],
            last: vec![NONE; nodes],
            sibling: vec![NONE; links],
        }
    }

    /// Replaces the tree with the tree from `source` to all of `members`.
    ///
    /// # Errors
    /// Returns the index in `members` of the first node that cannot be reached.
    ///
    /// # Panics
    /// When a node does not exist.
    pub fn grow(&mut self, routes: &mut Routes<'_>, source: NodeId, members: &[NodeId]) -> Result<(), usize> {
        self.stamp += 1;
        for (number, &node) in members.iter().enumerate() {
            let mut at = source;
            let mut steps = 0usize;
            while at != node {
                let link = routes.next_link(at, node).ok_or(number)?;
                if self.link_seen[link.0 as usize] != self.stamp {
                    self.link_seen[link.0 as usize] = self.stamp;
                    self.add_link(at.0, link.0);
                }
                at = routes.end(link);
                steps += 1;
                if steps > routes.first.len() {
                    return Err(number);
                }
            }
        }
        Ok(())
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

    /// Returns the links of the tree that start at a node, in the order in which `grow` added them.
    #[inline]
    pub fn leaving(&self, node: NodeId) -> impl Iterator<Item = LinkId> {
        let node = node.0 as usize;
        let first = if self.node_seen[node] == self.stamp { self.first[node] } else { NONE };
        let next =
            |link: &LinkId| Some(self.sibling[link.0 as usize]).filter(|next| *next != NONE).map(LinkId);
        std::iter::successors((first != NONE).then_some(LinkId(first)), next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::FREE;
    use faircast_aqm::LinkSpec;
    use faircast_core::time::Span;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Builds a network of bidirectional links. A link is given by its two nodes and its delay in milliseconds.
    fn network(nodes: u32, links: &[(u32, u32, u64)]) -> Topology {
        let mut topology = Topology::new();
        (0..nodes).for_each(|_| _ = topology.router());
        for &(a, b, millis) in links {
            let spec = LinkSpec { delay: Span::from_millis(millis), ..FREE };
            topology.duplex(NodeId(a), NodeId(b), spec, spec);
        }
        topology
    }

    fn path(topology: &Topology, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut path = Vec::new();
        let found = Routes::new(topology).path(NodeId(from), NodeId(to), &mut path);
        found.map(|()| path.iter().map(|link| link.0).collect())
    }

    #[test]
    fn path_with_the_lowest_delay_is_chosen() {
        let it = network(5, &[(0, 1, 1), (1, 2, 10), (1, 3, 2), (3, 2, 2), (2, 4, 1)]);
        assert_eq!(path(&it, 0, 4), Some(vec![0, 4, 6, 8]));
        assert_eq!(path(&it, 4, 0), Some(vec![9, 7, 5, 1]));
    }

    #[test]
    fn path_choice_at_equal_delay_is_by_hops_then_by_numbers() {
        let it = network(6, &[(0, 1, 2), (1, 5, 2), (0, 2, 1), (2, 3, 1), (3, 5, 2), (0, 4, 2), (4, 5, 2)]);
        assert_eq!(path(&it, 0, 5), Some(vec![0, 2]));
        let parallel = network(3, &[(0, 1, 2), (0, 1, 1), (0, 1, 1), (1, 2, 1)]);
        assert_eq!(path(&parallel, 0, 2), Some(vec![2, 6]));
    }

    #[test]
    fn two_hosts_on_one_link_have_a_path() {
        assert_eq!(path(&network(2, &[(0, 1, 1)]), 0, 1), Some(vec![0]));
    }

    #[test]
    fn unconnected_nodes_have_no_path() {
        assert_eq!(path(&network(4, &[(0, 1, 1), (2, 3, 1)]), 0, 3), None);
    }

    #[test]
    fn routes_inside_trees_at_a_core_are_not_cached() {
        // Routers 0 to 3 form a square. Attached to router 0 is a chain of two nodes, and to router 2 a node from which two
        // branches start.
        let square = [(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 2)];
        let trees = [(0, 4, 1), (4, 5, 1), (2, 6, 1), (6, 7, 1), (6, 8, 1), (8, 9, 1)];
        let it = network(10, &[&square[..], &trees].concat());
        let mut routes = Routes::new(&it);
        let nodes = |path: &[LinkId]| path.iter().map(|link| routes_end(&it, *link)).collect::<Vec<_>>();
        let mut path = Vec::new();
        assert_eq!(routes.path(NodeId(7), NodeId(9), &mut path), Some(()));
        assert_eq!(nodes(&path), [6, 8, 9]);
        assert_eq!(routes.path(NodeId(9), NodeId(2), &mut path), Some(()));
        assert_eq!(nodes(&path), [8, 6, 2]);
        assert!(routes.towards.is_empty(), "that is no way through the core");
        assert_eq!(routes.path(NodeId(5), NodeId(9), &mut path), Some(()));
        assert_eq!(nodes(&path), [4, 0, 1, 2, 6, 8, 9]);
        assert_eq!(routes.path(NodeId(4), NodeId(7), &mut path), Some(()));
        assert_eq!(routes.towards.keys().collect::<Vec<_>>(), [&2], "both destinations hang on one node");
    }

    fn routes_end(it: &Topology, link: LinkId) -> u32 {
        it.edges()[link.0 as usize].to.0
    }

    #[test]
    fn no_path_leads_through_a_host() {
        let mut it = Topology::new();
        let [a, between, b, c, d] = [(); 5].map(|()| it.host());
        let router = it.router();
        it.duplex(a, between, FREE, FREE);
        it.duplex(between, b, FREE, FREE);
        it.duplex(b, router, FREE, FREE);
        it.duplex(between, router, FREE, FREE);
        it.duplex(c, a, FREE, FREE);
        it.duplex(router, d, FREE, FREE);
        assert_eq!(path(&it, a.0, between.0), Some(vec![0]));
        assert_eq!(path(&it, a.0, b.0), None, "its neighbours are hosts");
        assert_eq!(path(&it, between.0, b.0), Some(vec![2]));
        assert_eq!(path(&it, b.0, between.0), Some(vec![3]));
        assert_eq!(path(&it, c.0, between.0), None, "its only neighbour is a host");
        assert_eq!(path(&it, between.0, c.0), None, "the destination's only neighbour is one");
        assert_eq!(path(&it, d.0, between.0), Some(vec![11, 7]));
    }

    #[test]
    fn tree_has_each_link_once_in_the_order_of_members() {
        // 0 - 1 - {2, 3 - {4, 5}}
        let it = network(6, &[(0, 1, 1), (1, 2, 1), (1, 3, 1), (3, 4, 1), (3, 5, 1)]);
        let (mut routes, mut trees) = (Routes::new(&it), Trees::new(&it));
        let leaving = |trees: &Trees| -> Vec<Vec<u32>> {
            (0..6).map(|node| trees.leaving(NodeId(node)).map(|link| link.0).collect()).collect()
        };
        let members = [2, 5, 4].map(NodeId);
        assert_eq!(trees.grow(&mut routes, NodeId(0), &members), Ok(()));
        assert_eq!(leaving(&trees), [vec![0], vec![2, 4], vec![], vec![8, 6], vec![], vec![]]);
        assert_eq!(trees.grow(&mut routes, NodeId(3), &[NodeId(4)]), Ok(()));
        assert_eq!(leaving(&trees), [vec![], vec![], vec![], vec![6], vec![], vec![]]);
    }

    /// Computes the shortest path from every node to `to` with the Bellman-Ford algorithm. Returns delay and number of links. No
    /// path passes through a host.
    fn distances(it: &Topology, to: NodeId) -> Vec<Option<(u64, u32)>> {
        let mut known = vec![None; it.nodes() as usize];
        known[to.0 as usize] = Some((0, 0));
        for _ in 0..it.nodes() {
            for edge in it.edges().iter().filter(|edge| edge.to == to || !it.is_host(edge.to)) {
                if let Some((delay, links)) = known[edge.to.0 as usize] {
                    let way = (delay + edge.spec.delay.as_nanos(), links + 1);
                    let from = &mut known[edge.from.0 as usize];
                    *from = Some(from.map_or(way, |other| way.min(other)));
                }
            }
        }
        known
    }

    /// Networks with many equal paths.
    fn networks() -> impl Strategy<Value = Topology> {
        let links = prop::collection::vec((0..12_u32, 0..12_u32, 0..3_u64, 0..3_u64, any::<bool>()), 0..40);
        (prop::collection::vec(0..3_u8, 2..12), links).prop_map(|(kinds, links)| {
            let mut it = Topology::new();
            for kind in &kinds {
                _ = if *kind == 0 { it.host() } else { it.router() };
            }
            let node = |number: u32| NodeId(number % kinds.len() as u32);
            let spec = |millis| LinkSpec { delay: Span::from_millis(millis), ..FREE };
            for (a, b, there, back, both) in links {
                it.link(node(a), node(b), spec(there));
                if both {
                    it.link(node(b), node(a), spec(back));
                }
            }
            it
        })
    }

    proptest! {
        #[test]
        fn every_path_is_shortest_and_trees_follow_the_paths(it in networks()) {
            let (mut routes, mut trees) = (Routes::new(&it), Trees::new(&it));
            let nodes = || (0..it.nodes()).map(NodeId);
            let mut paths = vec![Vec::new(); it.nodes() as usize];
            for source in nodes() {
                let mut members = Vec::new();
                for to in nodes().filter(|to| *to != source) {
                    let path = &mut paths[to.0 as usize];
                    let found = routes.path(source, to, path).is_some();
                    let edges: Vec<_> = path.iter().map(|link| &it.edges()[link.0 as usize]).collect();
                    let length = edges.iter().map(|edge| edge.spec.delay.as_nanos()).sum();
                    let expected = distances(&it, to)[source.0 as usize];
                    let way = found.then_some((length, edges.len() as u32));
                    prop_assert_eq!(way, expected, "{:?} {:?}", source, to);
                    if found {
                        members.push(to);
                    }
                }
                prop_assert_eq!(trees.grow(&mut routes, source, &members), Ok(()));
                let wanted: BTreeSet<LinkId> =
                    members.iter().flat_map(|to| paths[to.0 as usize].iter().copied()).collect();
                let links: Vec<LinkId> = nodes().flat_map(|node| trees.leaving(node)).collect();
                prop_assert_eq!(&links.iter().copied().collect::<BTreeSet<_>>(), &wanted);
                let ends: BTreeSet<NodeId> = links.iter().map(|link| it.edges()[link.0 as usize].to).collect();
                prop_assert_eq!(ends.len(), links.len(), "two links of a tree lead to one node");
            }
        }
    }
}
