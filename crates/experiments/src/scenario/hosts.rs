//! A scenario's network for those who run it with other means: the emulator.

use super::layout::Layout;
use faircast_topology::{NodeId, Topology};
use std::collections::BTreeSet;

/// A node that sends or receives, and that others' packets may pass in the simulator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{node} is an end of a flow and forwards packets of other flows; connect a host to it, and make that host the end of the flow"
)]
pub struct HostThatForwards {
    /// Its name.
    pub node: String,
}

impl Layout {
    /// The network with its names, without its flows. The ends of flows are hosts, and what the scenario calls one; all other nodes are
    /// routers. Its form as text is a plan of the emulator.
    ///
    /// # Errors
    /// When an end of a flow has several neighbours, and the scenario does not call it a host.
    pub fn topology(&self) -> Result<Topology, HostThatForwards> {
        let ends = self.flows.iter().flat_map(|flow| flow.receivers.iter().copied().chain([flow.source]));
        let hosts: BTreeSet<u32> = ends.chain(self.hosts.iter().copied()).collect();
        let mut neighbour = vec![None; self.names.len() as usize];
        for link in &self.links {
            let known = neighbour[link.from as usize].get_or_insert(link.to);
            if *known != link.to && hosts.contains(&link.from) && !self.hosts.contains(&link.from) {
                return Err(HostThatForwards { node: self.names.name(link.from) });
            }
        }
        let mut topology = self.nodes_and_links(|node| hosts.contains(&node));
        for node in 0..self.names.len() {
            topology.rename(NodeId(node), &self.names.name(node));
        }
        Ok(topology)
    }
}
