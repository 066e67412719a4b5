//! Construction of the routers of a network.

use super::super::nanos::NEVER;
use super::super::routers::{ROUTED, RouterNode};
use super::Builder;
use crate::routes::{Hop, NONE};
use faircast_core::node::{Port, RouterObservation};
use faircast_core::rng::Rng;
use faircast_topology::Edge;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Builder<'_> {
    /// Returns the nodes whose routers process data.
    pub(in crate::engine) fn routers_that_see_data(&self) -> Vec<u32> {
        let routers = self.network.routers.iter();
        routers.filter(|(_, spec)| spec.router().sees_data()).map(|(node, _)| node.0).collect()
    }

    /// Returns the node at which a link starts.
    pub(in crate::engine) fn begin(&self, link: u32) -> u32 {
        self.network.topology.edges()[link as usize].from.0
    }

    /// Returns the routers, and for each link the router at the node where the link starts. Packets that leave these nodes pass
    /// the routers.
    pub(in crate::engine) fn put_up_routers(
        &mut self,
        rng: impl Fn(u32) -> Rng,
    ) -> (Vec<RouterNode>, BTreeMap<u32, u32>) {
        let mut routers = Vec::new();
        let mut of_link = BTreeMap::new();
        for (index, (node, spec)) in (0u32..).zip(&self.network.routers) {
            let node = node.0;
            let router = spec.router();
            let mut neighbours = Vec::new();
            let mut ports = BTreeMap::new();
            for (link, Edge { from, to, .. }) in (0u32..).zip(self.network.topology.edges()) {
                let other = match (from.0 == node, to.0 == node) {
                    (true, false) => to.0,
                    (false, true) => from.0,
                    _ => continue,
                };
                let place = neighbours.iter().position(|known| *known == other).unwrap_or_else(|| {
                    neighbours.push(other);
                    neighbours.len() - 1
                });
                ports.insert(link, Port(place as u16));
                if from.0 == node {
                    of_link.insert(link, index);
                }
            }
            let mut it = RouterNode {
                node,
                spec: Arc::clone(spec),
                before: RouterObservation::default(),
                scheduled: NEVER,
                rng: rng(node),
                ports,
                exits: BTreeMap::new(),
                ways_up: BTreeMap::new(),
                entries: BTreeMap::new(),
                router,
            };
            self.lead_through(node, index, &mut it);
            routers.push(it);
        }
        (routers, of_link)
    }

    /// Makes the packets that leave this node pass the router.
    fn lead_through(&mut self, node: u32, index: u32, it: &mut RouterNode) {
        let begins: Vec<bool> = self.branches.iter().map(|branch| self.begin(branch.link) == node).collect();
        for (number, branch) in (0u32..).zip(&self.branches) {
            if begins[number as usize] {
                it.exits.insert((branch.session, it.ports[&branch.link]), number);
            }
        }
        let leaves = |(first, end): (u32, u32)| first < end && begins[first as usize];
        if it.router.sees_data() {
            for branch in self.branches.iter_mut().filter(|branch| leaves(branch.children)) {
                branch.bundle = ROUTED | index;
            }
            for session in self.sessions.iter_mut().filter(|session| leaves(session.root)) {
                session.root_bundle = ROUTED | index;
            }
        }
        for (session, agent) in (0u32..).zip(&self.sessions) {
            for (member, receiver) in (0u32..).zip(&agent.members) {
                let (mut hop, mut before) = (receiver.hop, None);
                while hop != NONE {
                    let Hop { link, next, .. } = self.hops[hop as usize];
                    if self.begin(link) == node {
                        it.ways_up.insert(session, hop);
                        if let Some(before) = before {
                            it.entries.insert((session, member), it.ports[&before]);
                        }
                        break;
                    }
                    (hop, before) = (next, Some(link));
                }
            }
        }
    }

    /// Whether the node has a router that processes data.
    pub(in crate::engine) fn sees_data(&self, node: u32) -> bool {
        self.seeing.contains(&node)
    }
}
