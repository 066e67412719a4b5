//! Routes: the shortest paths to every host, and trees to the members of groups.

use crate::igmp::Memberships;
use crate::plan::{EmulationPlan, Groups, PlanError};
use faircast_topology::{LinkId, NodeId, Topology, Trees};
use std::collections::{BTreeMap, BTreeSet};
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

/// Maximum numbers of trees and of listed groups.
const MAX_TREES: usize = 10_000;
const MAX_LISTED: usize = 10_000;
/// Stands for the groups that are not listed.
const OTHERS: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// Routes of packets. The number of a link is its index in [`EmulationPlan::link_names`]. The number of a host is its index among
/// the hosts.
#[derive(Debug)]
pub(crate) struct Routes {
    topology: Topology,
    nodes: u32,
    /// Node of each host. `host_at` is the inverse.
    node_of: Vec<NodeId>,
    host_at: Vec<Option<usize>>,
    addresses: Vec<Ipv4Addr>,
    /// The next link from each node towards each host.
    next: Vec<u32>,
    /// Groups of each host by the plan, and memberships by reports.
    groups: Vec<Groups>,
    joined: Vec<Memberships>,
    /// The groups that a host lists or has joined. All other groups have the same members.
    listed: BTreeSet<Ipv4Addr>,
    /// The trees that packets have used, by source and group; [`OTHERS`] stands for all groups that are not listed.
    tree_of: BTreeMap<(usize, Ipv4Addr), u32>,
    trees: Vec<Tree>,
}

/// The links of a tree, each with the node from which packets take it, in the order of the nodes.
#[derive(Debug, Default)]
struct Tree {
    links: Vec<(NodeId, LinkId)>,
    /// Whether the members may have changed since the tree was made.
    is_outdated: bool,
}

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
            topology: topology.clone(),
            nodes: topology.nodes(),
            addresses: plan.hosts.iter().map(|host| host.address).collect(),
            groups: plan.hosts.iter().map(|host| host.groups.clone()).collect(),
            joined: vec![Memberships::default(); plan.hosts.len()],
            node_of,
            host_at,
            next: Vec::new(),
            listed: plan.hosts.iter().flat_map(|host| host.groups.listed()).copied().collect(),
            tree_of: BTreeMap::new(),
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
        Ok(routes)
    }

    /// Applies an IGMP message of a host.
    pub(crate) fn report(&mut self, host: usize, message: &[u8]) {
        for changed in self.joined[host].apply(message) {
            if self.listed.len() < MAX_LISTED {
                self.listed.insert(changed);
            }
            for ((_, group), tree) in &self.tree_of {
                self.trees[*tree as usize].is_outdated |= *group == changed;
            }
        }
    }

    /// Returns the destination of a packet from this host: another host or a tree.
    pub(crate) fn goal(&mut self, source: usize, destination: Ipv4Addr) -> Result<Goal, Ignored> {
        if destination.is_broadcast() || destination.octets()[..3] == [224, 0, 0] {
            return Err(Ignored::LocalOnly);
        }
        let node = self.node_of(source);
        if destination.is_multicast() {
            let tree = self.tree(source, destination)?;
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

    /// Returns the number of the tree from a source to the present members of a group. Packets on their way follow a tree that
    /// changes.
    fn tree(&mut self, source: usize, group: Ipv4Addr) -> Result<u32, Ignored> {
        let group = if self.listed.contains(&group) { group } else { OTHERS };
        let known = self.tree_of.get(&(source, group)).copied();
        if let Some(tree) = known.filter(|tree| !self.trees[*tree as usize].is_outdated) {
            return Ok(tree);
        }
        let mut links = Vec::new();
        let node = self.node_of(source);
        let is_member = |host: &usize| {
            let reached = self.towards(*host as u32, node) != NONE;
            *host != source && reached && self.gets(*host, self.addresses[source], group)
        };
        let members: Vec<_> =
            (0..self.groups.len()).filter(is_member).map(|host| self.node_of[host]).collect();
        if !members.is_empty() {
            let mut trees = Trees::new(&self.topology);
            let grown = trees.grow(&mut faircast_topology::Routes::new(&self.topology), node, &members);
            grown.expect("all of them are reached");
            let of = |node| trees.leaving(node).map(move |link| (node, link));
            links.extend((0..self.nodes).map(NodeId).flat_map(of));
        }
        let tree = Tree { links, is_outdated: false };
        if let Some(known) = known {
            self.trees[known as usize] = tree;
            return Ok(known);
        }
        // A group without members needs no tree, so that nobody can fill the memory with groups.
        if tree.links.is_empty() {
            return Err(Ignored::NoWay);
        }
        if self.trees.len() >= MAX_TREES {
            return Err(Ignored::NoRoom);
        }
        let number = self.trees.len() as u32;
        self.trees.push(tree);
        self.tree_of.insert((source, group), number);
        Ok(number)
    }

    /// Returns whether a host receives packets of this source to this group.
    fn gets(&self, host: usize, source: Ipv4Addr, group: Ipv4Addr) -> bool {
        match &self.groups[host] {
            Groups::None => false,
            Groups::All => true,
            Groups::These(groups) => groups.contains(&group),
            Groups::Joined => self.joined[host].receives(source, group),
        }
    }

    /// Returns the number of trees.
    #[cfg(test)]
    pub(crate) fn trees(&self) -> usize {
        self.trees.len()
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
        let links = &self.trees[tree as usize].links;
        let first = links.partition_point(|(from, _)| *from < node);
        links.get(first + number).filter(|(from, _)| *from == node).map(|(_, link)| link.0)
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
