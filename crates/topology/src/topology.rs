//! Nodes and the links between them.

use faircast_aqm::{LinkSpec, QueueSpec};
use faircast_core::time::{Rate, Span};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A host or router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// One direction of a link: its ends and its specification.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Node at which packets enter the link.
    pub from: NodeId,
    /// Node at which packets arrive.
    pub to: NodeId,
    /// Rate, delay, queue and loss. Similar links share it.
    pub spec: Arc<LinkSpec>,
}

/// Number of latest links whose specification a new link may share.
const RECENT: usize = 8;

/// A link without rate limit and delay.
pub const FREE: LinkSpec = LinkSpec::new(Rate::UNLIMITED, Span::ZERO, QueueSpec::UNLIMITED);

/// A network. Nodes and links are numbered from zero in the order in which they are added.
///
/// A million receivers need little memory: routes need no memory for a node with links to only one other node, and names need no
/// memory for a node without a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    nodes: u32,
    edges: Vec<Edge>,
    /// Nodes that forward no packets.
    hosts: BTreeSet<NodeId>,
    names: BTreeMap<NodeId, String>,
    by_name: BTreeMap<String, NodeId>,
}

impl Topology {
    /// Returns a network without nodes.
    pub fn new() -> Topology {
        Topology::default()
    }

    /// Adds a node that forwards packets.
    pub const fn router(&mut self) -> NodeId {
        self.nodes += 1;
        NodeId(self.nodes - 1)
    }

    /// Adds a node that forwards no packets.
    pub fn host(&mut self) -> NodeId {
        let node = self.router();
        self.hosts.insert(node);
        node
    }

    /// Names a node. A name has only one node: another node with this name loses the name.
    pub fn rename(&mut self, node: NodeId, name: &str) {
        if let Some(before) = self.names.insert(node, name.to_owned()) {
            self.by_name.remove(&before);
        }
        if let Some(other) = self.by_name.insert(name.to_owned(), node).filter(|other| *other != node) {
            self.names.remove(&other);
        }
    }

    /// Adds a link in one direction.
    pub fn link(&mut self, from: NodeId, to: NodeId, spec: LinkSpec) -> LinkId {
        let recent = self.edges.iter().rev().take(RECENT).find(|edge| *edge.spec == spec);
        let spec = recent.map_or_else(|| Arc::new(spec), |edge| Arc::clone(&edge.spec));
        self.edges.push(Edge { from, to, spec });
        LinkId(self.edges.len() as u32 - 1)
    }

    /// Adds two links, from `a` to `b` and from `b` to `a`, in this order.
    pub fn duplex(&mut self, a: NodeId, b: NodeId, there: LinkSpec, back: LinkSpec) -> (LinkId, LinkId) {
        (self.link(a, b, there), self.link(b, a, back))
    }

    /// Returns the number of nodes.
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Returns the links, one for each direction.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns a mutable reference to the specification of a link; `None` if the link does not exist.
    pub fn spec_mut(&mut self, link: LinkId) -> Option<&mut LinkSpec> {
        self.edges.get_mut(link.0 as usize).map(|edge| Arc::make_mut(&mut edge.spec))
    }

    /// Returns whether this node was added as a host; hosts forward no packets.
    #[inline]
    pub fn is_host(&self, node: NodeId) -> bool {
        !self.hosts.is_empty() && self.hosts.contains(&node)
    }

    /// Returns the nodes that were added as hosts, in the order of their numbers.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = NodeId> {
        self.hosts.iter().copied()
    }

    /// Returns the name of a node; `node7` for a node without a name.
    pub fn name(&self, node: NodeId) -> Cow<'_, str> {
        self.names.get(&node).map_or_else(|| format!("node{}", node.0).into(), |name| name.as_str().into())
    }

    /// Returns the node with this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }
}
