//! Shortest paths as chains of hops, and multicast trees as branches.

use faircast_topology::{NodeId, Routes, Topology, Trees};

/// No link, node, hop or branch.
pub const NONE: u32 = u32::MAX;

/// One hop of a unicast path or of the path of reports.
#[derive(Debug, Clone, Copy)]
pub struct Hop {
    pub link: u32,
    /// The next hop; [`NONE`] at the destination.
    pub next: u32,
    pub then: ArrivalProcessing,
}

/// Method of processing an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalProcessing {
    /// As a separate event.
    Event,
    /// At once, when the packet is offered to the link.
    AtOnce,
    /// In a batch of the next link's inbox, through this lane. Branches use the lanes of their children.
    Inbox(u32),
    /// In another island: the number of the island for a hop, and the number of the border branch for a branch.
    Border(u32),
}

/// A link of a session's tree.
#[derive(Debug, Clone)]
pub struct Branch {
    pub link: u32,
    pub session: u32,
    /// The member at the link's end; [`NONE`] for none.
    pub member: u32,
    /// The child branches.
    pub children: (u32, u32),
    pub then: ArrivalProcessing,
    /// Lane from the parent branch's link to the inbox of this branch's link; [`NONE`] for none.
    pub lane: u32,
    /// Bundle of the children; [`NONE`] for none.
    pub bundle: u32,
    /// Bundle that contains this branch; [`NONE`] for none.
    pub part_of: u32,
    /// Number of packets of that bundle that this branch has processed, modulo 2^32.
    pub taken: u32,
    /// Gate of the base layer, followed by the gates of the other layers; [`NONE`] in sessions of one layer.
    pub gates: u32,
    /// Periods in which packets flow, nanoseconds; `None` for the whole run. Not used for branches with gates.
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
            then: ArrivalProcessing::Event,
            lane: NONE,
            bundle: NONE,
            part_of: NONE,
            taken: 0,
            gates: NONE,
            active: None,
        }
    }
}

/// Computation of the trees of sessions, one after the other.
#[derive(Debug)]
pub struct SessionTrees {
    trees: Trees,
    stamp: u32,
    /// By node: stamp of the latest tree with a member at the node. `member` contains the member's number.
    member_seen: Vec<u32>,
    member: Vec<u32>,
}

impl SessionTrees {
    pub fn new(topology: &Topology) -> SessionTrees {
        let nodes = topology.nodes() as usize;
        SessionTrees {
            trees: Trees::new(topology),
            stamp: 0,
            member_seen: vec![0; nodes],
            member: vec![NONE; nodes],
        }
    }

    /// Appends the branches of a session's tree to `branches`; the children of a node are consecutive. Returns the range of the
    /// root's children.
    ///
    /// # Errors
    /// The index of a member that cannot be reached.
    pub fn add(
        &mut self,
        routes: &mut Routes<'_>,
        session: u32,
        source: NodeId,
        members: &[NodeId],
        branches: &mut Vec<Branch>,
    ) -> Result<(u32, u32), usize> {
        self.stamp += 1;
        for (number, node) in members.iter().enumerate() {
            self.member_seen[node.0 as usize] = self.stamp;
            self.member[node.0 as usize] = number as u32;
        }
        self.trees.grow(routes, source, members)?;
        let topology = routes.topology();
        // Breadth-first order makes the children of a node consecutive.
        branches.reserve(members.len());
        let root = self.lay_out(source, session, topology, branches);
        let mut next = root.0;
        while (next as usize) < branches.len() {
            let node = topology.edges()[branches[next as usize].link as usize].to;
            branches[next as usize].children = self.lay_out(node, session, topology, branches);
            next += 1;
        }
        Ok(root)
    }

    fn lay_out(
        &self,
        node: NodeId,
        session: u32,
        topology: &Topology,
        branches: &mut Vec<Branch>,
    ) -> (u32, u32) {
        let start = branches.len() as u32;
        for link in self.trees.leaving(node) {
            let end = topology.edges()[link.0 as usize].to.0 as usize;
            let member = if self.member_seen[end] == self.stamp { self.member[end] } else { NONE };
            branches.push(Branch::new(link.0, session, member));
        }
        (start, branches.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_aqm::{LinkSpec, QueueSpec};
    use faircast_core::time::{Rate, Span};

    #[test]
    fn session_tree_has_each_link_once_and_names_its_members() {
        let delay = Span::from_millis(1);
        let spec = LinkSpec::new(Rate::from_mbps(1.0), delay, QueueSpec::UNLIMITED);
        // 0 - 1 - {2, 3 - {4, 5}}
        let mut topology = Topology::new();
        (0..6).for_each(|_| _ = topology.router());
        for (a, b) in [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)] {
            topology.duplex(NodeId(a), NodeId(b), spec, spec);
        }
        let mut branches = Vec::new();
        let (mut routes, mut trees) = (Routes::new(&topology), SessionTrees::new(&topology));
        let members = [2, 4, 5].map(NodeId);
        let root = trees.add(&mut routes, 0, NodeId(0), &members, &mut branches);
        assert_eq!(root, Ok((0, 1)));
        let shape: Vec<_> = branches.iter().map(|b| (b.link, b.member, b.children)).collect();
        let expected = [(0, NONE, (1, 3)), (2, 0, (3, 3)), (4, NONE, (3, 5)), (6, 1, (5, 5)), (8, 2, (5, 5))];
        assert_eq!(shape, expected);
    }
}
