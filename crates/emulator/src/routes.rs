//! Routes: the shortest paths to every host, and trees to the members of groups.

use crate::plan::{EmulationPlan, Groups, Host, PlanError};
use faircast_topology::{LinkId, NodeId, Trees};
use std::net::Ipv4Addr;

/// Value for "no link".
const NONE: u32 = u32::MAX;

/// Destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A host by its number.
    Host(u32),
    /// The members of a tree, by the number of the tree.
    Tree(u32),
}

/// Reason for ignoring a packet of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// The packet is not IPv4, or does not have the stated length.
    NotIpv4,
    /// The packet is longer than the MTU of the plan.
    TooLong,
    /// The packet is for the local network only (224.0.0.0/24 or broadcast).
    LocalOnly,
    /// No host has the destination address, no host is a member of the group, or there is no path.
    NoWay,
    /// The packets in transit use all memory of the plan.
    NoRoom,
}

/// Routes of packets. The number of a link is its index in [`EmulationPlan::link_names`]. The number of a host is its index among
/// the hosts.
#[derive(Debug)]
pub(crate) struct Routes {
    nodes: u32,
    /// Node of each host. `host_at` is the inverse.
    node_of: Vec<NodeId>,
    host_at: Vec<Option<usize>>,
    addresses: Vec<Ipv4Addr>,
    /// The next link from each node towards each host.
    next: Vec<u32>,
    groups: Vec<Ipv4Addr>,
    /// One tree for each pair of source and group. The last tree of each source serves all groups that no host lists.
    trees: Vec<Tree>,
}

/// For each node, the links that a packet takes from it.
#[derive(Debug)]
struct Tree(Vec<Vec<LinkId>>);

impl Routes {
    pub(crate) fn new(plan: &EmulationPlan) -> Result<Routes, PlanError> {
        check(plan)?;
        let topology = &plan.topology;
        let node_of: Vec<NodeId> = topology.hosts().collect();
        let mut host_at = vec![None; topology.nodes() as usize];
        for (host, node) in node_of.iter().enumerate() {
            host_at[node.0 as usize] = Some(host);
        }
        let mut routes = Routes {
            nodes: topology.nodes(),
            addresses: plan.hosts.iter().map(|host| host.address).collect(),
            groups: named_groups(&plan.hosts),
            node_of,
            host_at,
            next: Vec::new(),
            trees: Vec::new(),
        };
        let mut shortest = faircast_topology::Routes::new(topology);
        let mut path = Vec::new();
        for &host in &routes.node_of {
            let first = |node| {
                shortest.path(NodeId(node), host, &mut path).and(path.first()).map_or(NONE, |link| link.0)
            };
            routes.next.extend((0..routes.nodes).map(first));
        }
        let mut trees = Trees::new(topology);
        for (source, &node) in routes.node_of.iter().enumerate() {
            for group in routes.groups.iter().copied().map(Some).chain([None]) {
                let gets_it = |host: &usize| {
                    let reached = routes.towards(*host as u32, node) != NONE;
                    *host != source && reached && gets(&plan.hosts[*host].groups, group)
                };
                let members = (0..plan.hosts.len()).filter(gets_it).map(|host| routes.node_of[host]);
                let grown = trees.grow(&mut shortest, node, &members.collect::<Vec<_>>());
                grown.expect("all of them are reached");
                let branches = (0..routes.nodes).map(|node| trees.leaving(NodeId(node)).collect());
                routes.trees.push(Tree(branches.collect()));
            }
        }
        Ok(routes)
    }

    /// Returns the destination of a packet from this host: another host or a tree.
    pub(crate) fn goal(&self, source: usize, destination: Ipv4Addr) -> Result<Goal, Ignored> {
        if destination.is_broadcast() || destination.octets()[..3] == [224, 0, 0] {
            return Err(Ignored::LocalOnly);
        }
        let node = self.node_of(source);
        if destination.is_multicast() {
            let group = self.groups.binary_search(&destination).unwrap_or(self.groups.len());
            let tree = (source * (self.groups.len() + 1) + group) as u32;
            return if self.branch(tree, node, 0).is_some() {
                Ok(Goal::Tree(tree))
            } else {
                Err(Ignored::NoWay)
            };
        }
        let host =
            self.addresses.iter().position(|address| *address == destination).ok_or(Ignored::NoWay)? as u32;
        if self.towards(host, node) == NONE { Err(Ignored::NoWay) } else { Ok(Goal::Host(host)) }
    }

    /// Returns the number of hosts.
    pub(crate) const fn hosts(&self) -> usize {
        self.node_of.len()
    }

    pub(crate) fn node_of(&self, host: usize) -> NodeId {
        self.node_of[host]
    }

    pub(crate) fn host_at(&self, node: NodeId) -> Option<usize> {
        self.host_at[node.0 as usize]
    }

    /// Returns the link from a node towards a host.
    pub(crate) fn towards(&self, host: u32, node: NodeId) -> u32 {
        self.next[host as usize * self.nodes as usize + node.0 as usize]
    }

    /// Returns the link with index `number` among the tree's links from a node.
    pub(crate) fn branch(&self, tree: u32, node: NodeId, number: usize) -> Option<u32> {
        self.trees[tree as usize].0[node.0 as usize].get(number).map(|link| link.0)
    }
}

/// Checks that there are hosts and that their addresses differ.
fn check(plan: &EmulationPlan) -> Result<(), PlanError> {
    let mut named: Vec<_> = plan.hosts().map(|(name, host)| (host.address, name)).collect();
    named.sort();
    if let Some(pair) = named.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (first, second, address) = (pair[0].1.clone(), pair[1].1.clone(), pair[0].0);
        return Err(PlanError::SameAddress { first, second, address });
    }
    if named.is_empty() { Err(PlanError::NoHost) } else { Ok(()) }
}

/// Returns all groups that the hosts list by address.
fn named_groups(hosts: &[Host]) -> Vec<Ipv4Addr> {
    let named = hosts.iter().filter_map(|host| match &host.groups {
        Groups::These(groups) => Some(groups.iter().copied()),
        Groups::None | Groups::All => None,
    });
    let mut groups: Vec<_> = named.flatten().collect();
    groups.sort();
    groups.dedup();
    groups
}

/// Returns whether a host is a member of a group. `None` stands for a group that no host lists.
fn gets(member_of: &Groups, group: Option<Ipv4Addr>) -> bool {
    match member_of {
        Groups::None => false,
        Groups::All => true,
        Groups::These(groups) => group.is_some_and(|group| groups.contains(&group)),
    }
}
