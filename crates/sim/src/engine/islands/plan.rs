//! The islands of a network.

use crate::engine::nanos::NEVER;

/// The islands of a network.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Island of each link, then of each node; empty if there is only one island.
    pub owners: Vec<u8>,
    pub links: u32,
    /// Number of islands.
    pub count: usize,
    /// Least delay of a link between islands, nanoseconds.
    pub lookahead: u64,
}

impl Plan {
    /// Returns the plan that does not divide the network.
    pub const fn whole() -> Plan {
        Plan { owners: Vec::new(), links: 0, count: 1, lookahead: NEVER }
    }

    /// Returns the island of a link: the island in which packets are offered to it.
    pub fn of_link(&self, link: u32) -> u32 {
        self.owners.get(link as usize).copied().unwrap_or(0).into()
    }

    /// Returns the island of a node's agents and router.
    pub fn of_node(&self, node: u32) -> u32 {
        self.owners.get((self.links + node) as usize).copied().unwrap_or(0).into()
    }

    /// Whether this is the last island.
    pub const fn is_last(&self, me: u32) -> bool {
        me as usize + 1 == self.count
    }

    pub const fn is_whole(&self) -> bool {
        self.count == 1
    }
}
