//! Where packets go: the fewest links to every host, and trees of such ways to the members of groups.

use crate::plan::{EmulationPlan, Groups, Host, PlanError};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Stands for no link.
const NONE: u32 = u32::MAX;

/// What a packet is on its way to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A host, by number.
    Host(u32),
    /// The members of a tree.
    Tree(u32),
}

/// Why a packet that a host sent goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// It is no IPv4 packet, or one that is not as long as it says.
    NotIpv4,
    /// It is longer than the plan's MTU.
    TooLong,
    /// It is for the local network only (224.0.0.0/24, broadcast).
    LocalOnly,
    /// Nobody has its address, or is a member of its group, or no way leads there.
    NoWay,
}

/// Where packets go. A link is numbered as in [`EmulationPlan::link_names`], a host by its place among the hosts.
#[derive(Debug)]
pub(crate) struct Routes {
    nodes: usize,
    /// The node of each host, and the host of each node.
    node_of: Vec<u16>,
    host_at: Vec<Option<u16>>,
    addresses: Vec<Ipv4Addr>,
    /// For each host and each node the next link towards the host.
    next: Vec<u32>,
    groups: Vec<Ipv4Addr>,
    /// For each host as source and each group, and at last for all other groups.
    trees: Vec<Tree>,
}

/// For each node the links on which a packet goes on.
#[derive(Debug)]
struct Tree(Vec<Vec<u32>>);

impl Routes {
    pub(crate) fn new(plan: &EmulationPlan) -> Result<Routes, PlanError> {
        let hosts = hosts(plan)?;
        let node_of: Vec<_> =
            (0..plan.nodes.len()).filter(|at| plan.nodes[*at].host.is_some()).map(|at| at as u16).collect();
        let mut host_at = vec![None; plan.nodes.len()];
        for (host, node) in node_of.iter().enumerate() {
            host_at[usize::from(*node)] = Some(host as u16);
        }
        let mut routes = Routes {
            nodes: plan.nodes.len(),
            addresses: hosts.iter().map(|host| host.address).collect(),
            groups: named_groups(&hosts),
            node_of,
            host_at,
            next: Vec::new(),
            trees: Vec::new(),
        };
        let outwards: Vec<_> = plan
            .cables
            .iter()
            .flat_map(|c| [(c.ends[0].0, c.ends[1].0), (c.ends[1].0, c.ends[0].0)])
            .collect();
        let inwards: Vec<_> = outwards.iter().map(|(from, to)| (*to, *from)).collect();
        for (source, node) in routes.node_of.clone().into_iter().enumerate() {
            routes.next.extend(routes.walk(node, &inwards));
            let led_by = routes.walk(node, &outwards);
            for group in routes.groups.clone().into_iter().map(Some).chain([None]) {
                let is_member = |host: &usize| *host != source && gets(&hosts[*host].groups, group);
                let members: Vec<_> = (0..hosts.len()).filter(is_member).collect();
                routes.trees.push(routes.tree(&members, &led_by, &outwards));
            }
        }
        Ok(routes)
    }

    /// From `root` by the fewest links, and not through hosts: for every node the link that led there.
    fn walk(&self, root: u16, links: &[(u16, u16)]) -> Vec<u32> {
        let mut led_by = vec![NONE; self.nodes];
        let mut todo = VecDeque::from([root]);
        while let Some(node) = todo.pop_front() {
            if node != root && self.host_at(node).is_some() {
                continue;
            }
            for (link, (_, to)) in links.iter().enumerate().filter(|(_, (from, _))| *from == node) {
                if *to != root && led_by[usize::from(*to)] == NONE {
                    led_by[usize::from(*to)] = link as u32;
                    todo.push_back(*to);
                }
            }
        }
        led_by
    }

    fn tree(&self, members: &[usize], led_by: &[u32], links: &[(u16, u16)]) -> Tree {
        let mut branches = vec![Vec::new(); self.nodes];
        for member in members {
            let mut link = led_by[usize::from(self.node_of[*member])];
            while link != NONE {
                let node = usize::from(links[link as usize].0);
                if branches[node].contains(&link) {
                    break;
                }
                branches[node].push(link);
                link = led_by[node];
            }
        }
        Tree(branches)
    }

    /// What a packet of this host with this destination is on its way to.
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

    pub(crate) fn node_of(&self, host: usize) -> u16 {
        self.node_of[host]
    }

    pub(crate) fn host_at(&self, node: u16) -> Option<usize> {
        self.host_at[usize::from(node)].map(usize::from)
    }

    /// The link from a node towards a host.
    pub(crate) fn towards(&self, host: u32, node: u16) -> u32 {
        self.next[host as usize * self.nodes + usize::from(node)]
    }

    /// One of the links from a node down a tree.
    pub(crate) fn branch(&self, tree: u32, node: u16, number: usize) -> Option<u32> {
        self.trees[tree as usize].0[usize::from(node)].get(number).copied()
    }
}

fn hosts(plan: &EmulationPlan) -> Result<Vec<&Host>, PlanError> {
    let mut named: Vec<_> =
        plan.nodes.iter().filter_map(|node| Some((node.host.as_ref()?.address, &node.name))).collect();
    named.sort();
    if let Some(pair) = named.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (first, second, address) = (pair[0].1.clone(), pair[1].1.clone(), pair[0].0);
        return Err(PlanError::SameAddress { first, second, address });
    }
    if named.is_empty() {
        return Err(PlanError::NoHost);
    }
    Ok(plan.nodes.iter().filter_map(|node| node.host.as_ref()).collect())
}

/// The groups that any host names.
fn named_groups(hosts: &[&Host]) -> Vec<Ipv4Addr> {
    let named = hosts.iter().filter_map(|host| match &host.groups {
        Groups::These(groups) => Some(groups.iter().copied()),
        Groups::None | Groups::All => None,
    });
    let mut groups: Vec<_> = named.flatten().collect();
    groups.sort();
    groups.dedup();
    groups
}

/// Whether it gets this group, or one that nobody has named.
fn gets(member_of: &Groups, group: Option<Ipv4Addr>) -> bool {
    match member_of {
        Groups::None => false,
        Groups::All => true,
        Groups::These(groups) => group.is_some_and(|group| groups.contains(&group)),
    }
}
