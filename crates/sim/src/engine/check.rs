//! Validation of a network: all items that it names must exist, and times must be in order.

use crate::network::{Flow, LinkId, Network, NodeId, SessionExtras, SessionSpec, UnicastProtocol};
use faircast_core::time::Time;
use faircast_topology::Edge;

/// Reasons why a network cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// A role requested an action that the simulator cannot carry out for this role.
    #[error("in this run, {role} {what}: this is an error of its scheme")]
    Effect {
        /// Name of the role.
        role: &'static str,
        /// The requested action.
        what: &'static str,
    },
    /// The network has no such node.
    #[error("{what} refers to node {node}, but there are only {nodes} nodes: add it with Network::node")]
    NoSuchNode {
        /// The item that refers to it.
        what: String,
        /// Number of the missing item.
        node: u32,
        /// Number of existing items of this kind.
        nodes: u32,
    },
    /// The network has no such link.
    #[error("{what} refers to link {link}, but there are only {links} links: add it with Network::link")]
    NoSuchLink {
        /// The item that refers to it.
        what: String,
        /// Number of the missing item.
        link: u32,
        /// Number of existing items of this kind.
        links: usize,
    },
    /// There is no path between two nodes.
    #[error("flow {flow}: there is no path from node {from} to node {to}")]
    NoWay {
        /// The flow.
        flow: usize,
        /// First node of the path.
        from: u32,
        /// Last node of the path.
        to: u32,
    },
    /// A member cannot be a relay.
    #[error("flow {flow}: member {member} of the upstream session cannot be the source of this flow: {why}")]
    NoRelay {
        /// The downstream flow.
        flow: u32,
        /// Member of the upstream session.
        member: u32,
        /// The reason.
        why: &'static str,
    },
    /// The tree of a session is invalid.
    #[error("flow {flow}: the tree is invalid at member {member}: {why}")]
    BadTree {
        /// The flow.
        flow: usize,
        /// The member's number, from zero.
        member: u32,
        /// The reason.
        why: &'static str,
    },
    /// A tree was requested for a scheme without agents.
    #[error(
        "flow {flow}: {scheme} with these options has no agents, but a tree needs agents (`mtcp,repair=tree`)"
    )]
    NoAgents {
        /// The flow.
        flow: usize,
        /// The scheme.
        scheme: &'static str,
    },
    /// The size of a packet is zero.
    #[error("flow {flow}: packets of 0 bytes cannot be sent")]
    NoBytes {
        /// The flow.
        flow: usize,
    },
    /// Two members of a session are at the same node.
    #[error("flow {flow}: two members are at node {node}; put each member on a separate host")]
    TwoMembers {
        /// The flow.
        flow: usize,
        /// The node.
        node: u32,
    },
    /// The periods in which an application sends are not in order.
    #[error("flow {flow}: the sending periods of its application overlap or are not in order")]
    BadTalks {
        /// The flow.
        flow: usize,
    },
    /// The stays of a member are not in order.
    #[error(
        "flow {flow}: the stays of member {member} overlap or are not in order; each stay must begin after the end of the preceding stay"
    )]
    BadStays {
        /// The flow.
        flow: usize,
        /// The member's number, from zero.
        member: u32,
    },
    /// Flows cannot share congestion control.
    #[error("flow {flow} cannot be coordinated with the others: {why}")]
    BadCoordination {
        /// The flow.
        flow: u32,
        /// The reason.
        why: &'static str,
    },
    /// A rate is not a positive number.
    #[error("{what}: a rate of {rate} bit/s cannot carry packets")]
    NoRate {
        /// Owner of the rate.
        what: String,
        /// The rate.
        rate: String,
    },
}

pub(super) fn check(network: &Network) -> Result<(), SimError> {
    let node = |what: String, node: NodeId| {
        let nodes = network.topology.nodes();
        if node.0 < nodes { Ok(()) } else { Err(SimError::NoSuchNode { what, node: node.0, nodes }) }
    };
    let link = |what: String, link: LinkId| {
        let links = network.topology.edges().len();
        if (link.0 as usize) < links {
            Ok(())
        } else {
            Err(SimError::NoSuchLink { what, link: link.0, links })
        }
    };
    for (number, Edge { from, to, spec }) in network.topology.edges().iter().enumerate() {
        node(format!("link {number}"), *from)?;
        node(format!("link {number}"), *to)?;
        if spec.rate.bps().is_nan() || spec.rate.bps() <= 0.0 {
            let rate = spec.rate.bps().to_string();
            return Err(SimError::NoRate { what: format!("link {number}"), rate });
        }
    }
    for (number, flow) in network.flows.iter().enumerate() {
        match flow {
            Flow::Session(spec, rare) => {
                if let Some(member) = rare.as_ref().and_then(|rare| badly_ordered(spec, rare)) {
                    return Err(SimError::BadStays { flow: number, member });
                }
                let talks = rare.iter().flat_map(|rare| &rare.talks);
                let moments = talks.flat_map(|&(from, to)| [from, to]);
                if !moments.is_sorted_by(|a, b| a < b) {
                    return Err(SimError::BadTalks { flow: number });
                }
                node(format!("flow {number}"), spec.source)?;
                for member in &spec.members {
                    node(format!("flow {number}"), member.node)?;
                }
                if spec.packet_size == 0 || spec.report_size == 0 {
                    return Err(SimError::NoBytes { flow: number });
                }
            }
            Flow::Unicast(spec) => {
                node(format!("flow {number}"), spec.from)?;
                node(format!("flow {number}"), spec.to)?;
                if spec.packet_size == 0 || spec.ack_size == 0 {
                    return Err(SimError::NoBytes { flow: number });
                }
                if let UnicastProtocol::Datagrams { rate, .. } = spec.protocol
                    && !rate.is_usable()
                {
                    return Err(SimError::NoRate {
                        what: format!("flow {number}"),
                        rate: rate.bps().to_string(),
                    });
                }
            }
        }
    }
    for (_, changed, _) in &network.changes {
        link("a change".to_owned(), *changed)?;
    }
    for (router, _) in &network.routers {
        node("a router".to_owned(), *router)?;
    }
    for (_, router) in &network.router_restarts {
        node("a restart".to_owned(), *router)?;
    }
    for (probed, _) in &network.link_probes {
        link("a probe".to_owned(), *probed)?;
    }
    network.taps.iter().try_for_each(|tapped| link("a tap".to_owned(), *tapped))
}

/// Returns a member whose stays are out of order, or that does not exist.
fn badly_ordered(spec: &SessionSpec, rare: &SessionExtras) -> Option<u32> {
    let mut left: Vec<Time> = spec.members.iter().map(|member| member.leave).collect();
    rare.returns.iter().find_map(|&(member, join, leave)| {
        let last = left.get_mut(member as usize);
        let fits = last.is_some_and(|last| std::mem::replace(last, leave) < join && join < leave);
        (!fits).then_some(member)
    })
}
