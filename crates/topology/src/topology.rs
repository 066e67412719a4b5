//! Nodes and the links between them.

use faircast_aqm::{LinkSpec, QueueSpec};
use faircast_core::time::{Rate, Span};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A host or router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// One direction of a link: its ends and its specification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// Where packets enter it.
    pub from: NodeId,
    /// Where they leave it.
    pub to: NodeId,
    /// Rate, delay, queue and loss.
    pub spec: LinkSpec,
}

/// A link without limit and delay.
pub const FREE: LinkSpec = LinkSpec::new(Rate::UNLIMITED, Span::ZERO, QueueSpec::UNLIMITED);

/// A network. Nodes and links are numbered from zero in the order in which they are added.
///
/// A node with links to one other node costs nothing in routes, named nodes cost their names: a million receivers need neither.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    nodes: u32,
    edges: Vec<Edge>,
    /// Nodes that pass nothing on.
    hosts: BTreeSet<NodeId>,
    names: BTreeMap<NodeId, String>,
    by_name: BTreeMap<String, NodeId>,
}

impl Topology {
    /// No node yet.
    pub fn new() -> Topology {
        Topology::default()
    }

    /// Add a node that passes packets on where they have a way through it.
    pub const fn router(&mut self) -> NodeId {
        self.nodes += 1;
        NodeId(self.nodes - 1)
    }

    /// Add a node through which no packet goes that is not from it or for it.
    pub fn host(&mut self) -> NodeId {
        let node = self.router();
        self.hosts.insert(node);
        node
    }

    /// Call a node so. A name that another node has goes over to this one.
    pub fn rename(&mut self, node: NodeId, name: &str) {
        if let Some(before) = self.names.insert(node, name.to_owned()) {
            self.by_name.remove(&before);
        }
        if let Some(other) = self.by_name.insert(name.to_owned(), node).filter(|other| *other != node) {
            self.names.remove(&other);
        }
    }

    /// Add a link in one direction.
    pub fn link(&mut self, from: NodeId, to: NodeId, spec: LinkSpec) -> LinkId {
        self.edges.push(Edge { from, to, spec });
        LinkId(self.edges.len() as u32 - 1)
    }

    /// Add a link in both directions; the second is the way back.
    pub fn duplex(&mut self, a: NodeId, b: NodeId, there: LinkSpec, back: LinkSpec) -> (LinkId, LinkId) {
        (self.link(a, b, there), self.link(b, a, back))
    }

    /// How many nodes.
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The links, each direction on its own.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the specification of a link, to be changed; `None` when there is no such link.
    pub fn spec_mut(&mut self, link: LinkId) -> Option<&mut LinkSpec> {
        self.edges.get_mut(link.0 as usize).map(|edge| &mut edge.spec)
    }

    /// Whether no packet of others goes through this node because it was added as a host.
    #[inline]
    pub fn is_host(&self, node: NodeId) -> bool {
        !self.hosts.is_empty() && self.hosts.contains(&node)
    }

    /// The nodes that were added as hosts, in order.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = NodeId> {
        self.hosts.iter().copied()
    }

    /// Returns the name of a node; `node7` for a node without a name.
    pub fn name(&self, node: NodeId) -> Cow<'_, str> {
        self.names.get(&node).map_or_else(|| format!("node{}", node.0).into(), |name| name.as_str().into())
    }

    /// The node that was given this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }
}
