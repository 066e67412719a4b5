//! Routes: the shortest paths to every host, and trees to the members of groups.

use crate::ip;
use crate::memberships::{Memberships, Message};
use crate::plan::{EmulationPlan, Groups, Host, PlanError, Unknown};
use crate::trees::{Latencies, Tree};
use faircast_core::time::Time;
use faircast_topology::{NodeId, Topology, Trees};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

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
    /// The packet is not IP, or does not have the stated length.
    NotIp,
    /// The packet is longer than the MTU of the plan.
    TooLong,
    /// The packet is for the local network only (such as 224.0.0.0/24, ff02::/16 or broadcast).
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
const OTHERS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Routes of packets. The number of a link is its index in [`EmulationPlan::link_names`]. The number of a host is its index among
/// the hosts.
#[derive(Debug)]
pub(crate) struct Routes {
    topology: Topology,
    nodes: u32,
    /// Node of each host. `host_at` is the inverse.
    node_of: Vec<NodeId>,
    host_at: Vec<Option<usize>>,
    /// Addresses of each host. `host_of` is the inverse.
    addresses: Vec<[IpAddr; 2]>,
    host_of: BTreeMap<IpAddr, u32>,
    /// The next link from each node towards each host.
    next: Vec<u32>,
    /// Groups of each host by the plan, and memberships by reports.
    groups: Vec<Groups>,
    joined: Vec<Memberships>,
    /// Times of joins by host and group; zero before the last [`Routes::settle`].
    since: BTreeMap<(usize, IpAddr), Time>,
    /// The groups that a host lists or has joined. All other groups have the same members.
    listed: BTreeSet<IpAddr>,
    unknown: Unknown,
    /// First and last group, with the latencies of these groups and those between.
    latencies: Vec<(IpAddr, IpAddr, Latencies)>,
    /// The trees that packets have used, by source and group; [`OTHERS`] stands for all groups that are not listed.
    tree_of: BTreeMap<(usize, IpAddr), u32>,
    trees: Vec<Tree>,
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
            host_of: (0..)
                .zip(&plan.hosts)
                .flat_map(|(number, host)| host.addresses().map(|it| (it, number)))
                .collect(),
            addresses: plan.hosts.iter().map(Host::addresses).collect(),
            groups: plan.hosts.iter().map(|host| host.groups.clone()).collect(),
            joined: vec![Memberships::default(); plan.hosts.len()],
            node_of,
            host_at,
            next: Vec::new(),
            listed: plan.hosts.iter().flat_map(|host| host.groups.listed()).copied().collect(),
            since: BTreeMap::new(),
            unknown: plan.unknown,
            latencies: plan.latencies.clone(),
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

    /// Applies a message of a host about its memberships.
    pub(crate) fn report(&mut self, now: Time, host: usize, message: &Message<'_>) {
        for changed in self.joined[host].apply(message) {
            if self.listed.len() < MAX_LISTED {
                self.listed.insert(changed);
            }
            match self.joined[host].has(changed) {
                true => _ = self.since.entry((host, changed)).or_insert(now),
                false => _ = self.since.remove(&(host, changed)),
            }
            let trees = self.tree_of.iter().filter(|((_, group), _)| *group == changed);
            let trees: Vec<(usize, u32)> = trees.map(|((source, _), tree)| (*source, *tree)).collect();
            for (source, tree) in trees {
                for member in 0..self.hosts() {
                    let (node, gets) = (self.node_of(member), self.gets(member, source, changed));
                    self.trees[tree as usize].set(now, node, gets);
                }
            }
        }
    }

    /// Returns whether a host has joined a group, apart from latencies.
    pub(crate) fn has_joined(&self, host: usize, group: IpAddr) -> bool {
        self.joined[host].has(group)
    }

    /// Ends the latencies of all joins and leaves.
    pub(crate) fn settle(&mut self, now: Time) {
        // A member that repeats its report has not joined again.
        self.since.values_mut().for_each(|since| *since = Time::ZERO);
        self.trees.iter_mut().for_each(|tree| tree.settle(now));
    }

    /// Returns the destination of a packet from this host: another host or a tree.
    pub(crate) fn goal(&mut self, now: Time, source: usize, destination: IpAddr) -> Result<Goal, Ignored> {
        if ip::is_local(destination) {
            return Err(Ignored::LocalOnly);
        }
        let node = self.node_of(source);
        if destination.is_multicast() {
            let tree = self.tree(now, source, destination)?;
            return self.branch(now, tree, node, &mut 0).map(|_| Goal::Tree(tree)).ok_or(Ignored::NoWay);
        }
        let host = *self.host_of.get(&destination).ok_or(Ignored::NoWay)?;
        if self.towards(host, node) == NONE { Err(Ignored::NoWay) } else { Ok(Goal::Host(host)) }
    }

    /// Returns the number of the tree from a source to the members of a group. Packets on their way follow a tree that changes.
    fn tree(&mut self, now: Time, source: usize, group: IpAddr) -> Result<u32, Ignored> {
        let group = if self.listed.contains(&group) { group } else { OTHERS };
        if let Some(tree) = self.tree_of.get(&(source, group)) {
            return Ok(*tree);
        }
        let mut members: Vec<(Time, NodeId)> = (0..self.hosts())
            .filter(|host| self.gets(*host, source, group))
            .map(|host| (self.since.get(&(host, group)).copied().unwrap_or_default(), self.node_of(host)))
            .collect();
        // A group without members needs no tree, so that nobody can fill the memory with groups.
        if members.is_empty() {
            return Err(Ignored::NoWay);
        }
        if self.trees.len() >= MAX_TREES {
            return Err(Ignored::NoRoom);
        }
        members.sort_unstable();
        let mut tree = self.grown(source, group);
        let settled = members.partition_point(|(since, _)| *since == Time::ZERO);
        members[..settled].iter().for_each(|(_, node)| tree.set(Time::ZERO, *node, true));
        tree.settle(Time::ZERO);
        members[settled..].iter().for_each(|(since, node)| tree.set(*since, *node, true));
        tree.turn(now);
        let number = self.trees.len() as u32;
        self.trees.push(tree);
        self.tree_of.insert((source, group), number);
        Ok(number)
    }

    /// Returns a tree without members from a source to all hosts that it reaches.
    fn grown(&self, source: usize, group: IpAddr) -> Tree {
        let node = self.node_of(source);
        let is_reached = |host: &usize| *host != source && self.towards(*host as u32, node) != NONE;
        let hosts: Vec<_> = (0..self.hosts()).filter(is_reached).map(|host| self.node_of[host]).collect();
        let mut trees = Trees::new(&self.topology);
        let grown = trees.grow(&mut faircast_topology::Routes::new(&self.topology), node, &hosts);
        grown.expect("all of them are reached");
        let to = |link: faircast_topology::LinkId| self.topology.edges()[link.0 as usize].to;
        let of = |node| trees.leaving(node).map(move |link| (node, to(link), link));
        let latencies = self.latencies.iter().find(|(first, last, _)| (*first..=*last).contains(&group));
        let latencies = latencies.map_or(Latencies::default(), |(.., latencies)| *latencies);
        Tree::new((0..self.nodes).map(NodeId).flat_map(of), latencies)
    }

    /// Returns whether a host receives packets of this source to this group, apart from latencies.
    fn gets(&self, host: usize, source: usize, group: IpAddr) -> bool {
        let is_reached = host != source && self.towards(host as u32, self.node_of(source)) != NONE;
        let is_member = || match &self.groups[host] {
            Groups::None => false,
            Groups::All => true,
            Groups::These(groups) => groups.contains(&group),
            Groups::Joined => {
                let source = self.addresses[source][usize::from(group.is_ipv6())];
                self.joined[host].receives(source, group)
            }
        };
        is_reached && (is_member() || self.unknown == Unknown::Flood && !self.is_known(group))
    }

    /// Returns whether a host is a member of a group.
    fn is_known(&self, group: IpAddr) -> bool {
        self.joined.iter().any(|joined| joined.has(group))
            || self.groups.iter().any(|groups| groups.listed().contains(&group))
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

    /// Returns the number of nodes.
    pub(crate) const fn nodes(&self) -> u32 {
        self.nodes
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

    /// Returns the next link of a tree from a node, at `place` or behind it; 0 is before the first link.
    pub(crate) fn branch(&mut self, now: Time, tree: u32, node: NodeId, place: &mut usize) -> Option<u32> {
        let tree = &mut self.trees[tree as usize];
        tree.turn(now);
        tree.next(node, place).map(|link| link.0)
    }
}

/// Checks that there are hosts and that their addresses differ.
fn check(plan: &EmulationPlan) -> Result<(), PlanError> {
    let of_host = |(name, host): (String, &Host)| host.addresses().map(|address| (address, name.clone()));
    let mut named: Vec<_> = plan.hosts().flat_map(of_host).collect();
    named.sort();
    if let Some(pair) = named.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (first, second, address) = (pair[0].1.clone(), pair[1].1.clone(), pair[0].0);
        return Err(PlanError::SameAddress { first, second, address });
    }
    if named.is_empty() { Err(PlanError::NoHost) } else { Ok(()) }
}
