//! The network of a scenario in a form for other programs, such as the emulator.

use super::layout::Layout;
use faircast_topology::{NodeId, Topology};
use std::collections::BTreeSet;

/// An end of a flow that must be a host in other programs, although packets of other flows pass through this node in the
/// simulator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{node} is an end of a flow and forwards packets of other flows; connect a host to it, and make that host the end of the flow"
)]
pub struct HostThatForwards {
    /// Name of the node.
    pub node: String,
}

impl Layout {
    /// Returns the network with the names of its nodes and without its flows. Hosts are the ends of flows and the nodes that the
    /// scenario calls hosts; all other nodes are routers. The text form of the network is a plan for the emulator.
    ///
    /// # Errors
    /// If an end of a flow has several neighbours and the scenario does not call the end a host.
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
