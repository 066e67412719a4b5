//! The network of a scenario for other programs: the emulator.

use super::layout::Layout;
use faircast_topology::{NodeId, Topology};
use std::collections::BTreeSet;

/// A node that is an end of a flow, although packets of other flows may pass through it in the simulator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{node} is an end of a flow and forwards packets of other flows; connect a host to it, and make that host the end of the flow"
)]
pub struct HostThatForwards {
    /// Name of the node.
    pub node: String,
}

impl Layout {
    /// Returns the network with its names, without its flows. Ends of flows and nodes that the scenario calls hosts are hosts;
    /// all other nodes are routers. The text form of the network is a plan of the emulator.
    ///
    /// # Errors
    /// If an end of a flow has several neighbours, and the scenario does not call it a host.
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
