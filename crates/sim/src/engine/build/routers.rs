//! Construction of the routers of a network.

use super::super::nanos::NEVER;
use super::super::routers::{Entries, ROUTED, RouterNode};
use super::Builder;
use crate::network::NodeId;
use crate::routes::{Hop, NONE};
use faircast_core::node::{Port, RouterObservation, RouterSpec};
use faircast_core::rng::Rng;
use faircast_topology::Edge;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Builder<'_> {
    /// Returns the nodes whose routers process data, in ascending order.
    pub(in crate::engine) fn routers_that_see_data(&self) -> Vec<u32> {
        let routers = self.network.routers.iter();
        let seeing = routers.filter(|(_, spec)| spec.router().sees_data()).map(|(node, _)| node.0);
        let mut seeing: Vec<u32> = seeing.collect();
        seeing.sort_unstable();
        seeing
    }

    /// Returns the node at which a link starts.
    pub(in crate::engine) fn begin(&self, link: u32) -> u32 {
        self.network.topology.edges()[link as usize].from.0
    }

    /// Returns the routers, and for each link the router at the node where the link starts: [`NONE`] without a router, and no
    /// elements if the network has no routers. Packets that leave these nodes pass the routers.
    pub(in crate::engine) fn put_up_routers(
        &mut self,
        rng: impl Fn(u32) -> Rng,
    ) -> (Vec<RouterNode>, Vec<u32>) {
        let make = |(node, spec): &(NodeId, Arc<dyn RouterSpec>)| RouterNode {
            node: node.0,
            spec: Arc::clone(spec),
            router: spec.router(),
            before: RouterObservation::default(),
            scheduled: NEVER,
            rng: rng(node.0),
            neighbours: BTreeMap::new(),
            ports: BTreeMap::new(),
            exits: BTreeMap::new(),
            ways_up: BTreeMap::new(),
            entries: Entries::default(),
        };
        let mut routers: Vec<RouterNode> = self.network.routers.iter().map(make).collect();
        if routers.is_empty() {
            return (routers, Vec::new());
        }
        let mut at_node = vec![NONE; self.network.topology.nodes() as usize];
        routers.iter().zip(0..).for_each(|(it, index)| at_node[it.node as usize] = index);
        let edges = self.network.topology.edges();
        for (link, Edge { from, to, .. }) in (0..).zip(edges).filter(|(_, edge)| edge.from != edge.to) {
            for (node, other) in [(from, to), (to, from)] {
                if let Some(it) = routers.get_mut(at_node[node.0 as usize] as usize) {
                    it.add_link(link, other.0);
                }
            }
        }
        let of_link: Vec<u32> = edges.iter().map(|edge| at_node[edge.from.0 as usize]).collect();
        self.lead_through(&mut routers, &of_link);
        (routers, of_link)
    }

    /// Makes the packets that leave the nodes of the routers pass the routers.
    fn lead_through(&mut self, routers: &mut [RouterNode], of_link: &[u32]) {
        let of_branch: Vec<u32> = self.branches.iter().map(|branch| of_link[branch.link as usize]).collect();
        for (number, branch) in (0..).zip(&self.branches) {
            if let Some(it) = routers.get_mut(of_branch[number as usize] as usize) {
                it.exits.insert((branch.session, it.ports[&branch.link]), number);
            }
        }
        // The router that processes the data which leaves a node over these branches.
        let seen_by = |(first, end): (u32, u32)| {
            let router = (first < end).then(|| of_branch[first as usize])?;
            routers.get(router as usize)?.router.sees_data().then_some(ROUTED | router)
        };
        for branch in &mut self.branches {
            branch.bundle = seen_by(branch.children).unwrap_or(branch.bundle);
        }
        for session in &mut self.sessions {
            session.root_bundle = seen_by(session.root).unwrap_or(session.root_bundle);
        }
        for (session, agent) in (0..).zip(&self.sessions) {
            for (member, receiver) in (0..).zip(&agent.members) {
                let (mut hop, mut before) = (receiver.hop, None);
                while let Some(&Hop { link, next, .. }) = self.hops.get(hop as usize) {
                    if let Some(it) = routers.get_mut(of_link[link as usize] as usize) {
                        it.ways_up.insert(session, hop);
                        if let Some(before) = before {
                            it.entries.add(session, member, it.ports[&before]);
                        }
                    }
                    (hop, before) = (next, Some(link));
                }
            }
        }
    }

    /// Whether the node has a router that processes data.
    pub(in crate::engine) fn sees_data(&self, node: u32) -> bool {
        self.seeing.binary_search(&node).is_ok()
    }
}

impl RouterNode {
    /// Adds a link from or to a neighbour.
    fn add_link(&mut self, link: u32, neighbour: u32) {
        let next = Port(self.neighbours.len() as u16);
        self.ports.insert(link, *self.neighbours.entry(neighbour).or_insert(next));
    }
}
