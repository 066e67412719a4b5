//! Copies of hosts with very many sources.
//!
//! A host is one process: its agents are in one island, and one entry of the calendar follows the other. If the links of a host
//! only delay packets, its agents do not affect one another there. Each source then gets its own copy of the host and of its links,
//! so that threads share the sources, and each needs no search for the next of thousands of deadlines. Packets of different sources
//! that arrive in the same nanosecond behind these links are in the order of packets of different links ([`Entry::arrival`]).
//!
//! [`Entry::arrival`]: crate::calendar::Entry::arrival

use crate::network::{Flow, LinkId, Network, NodeId};
use crate::outcome::Outcome;
use faircast_aqm::{LinkSpec, QueueSpec};
use faircast_core::time::{Rate, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Smallest number of sources of a host that get copies.
const MANY: usize = 1_000;

/// Copies of links, and their originals.
#[derive(Debug, Default)]
pub(super) struct Copies {
    originals: Vec<LinkId>,
    /// Number of links without the copies.
    links: usize,
}

impl Copies {
    /// Returns the network with copies of its crowded hosts; `None` if it has no crowded host that can be copied.
    pub(super) fn of(network: &Network) -> Option<(Copies, Network)> {
        let crowded = crowded(network);
        if crowded.is_empty() {
            return None;
        }
        let mut copied = network.clone();
        let mut copies = Copies { originals: Vec::new(), links: network.topology.edges().len() };
        for (node, (links, flows)) in crowded {
            let is_host = network.topology.is_host(node);
            for flow in flows.into_iter().skip(1) {
                let copy = if is_host { copied.topology.host() } else { copied.topology.router() };
                for link in links {
                    let edge = &network.topology.edges()[link.0 as usize];
                    let end = |of: NodeId| if of == node { copy } else { of };
                    copied.topology.link(end(edge.from), end(edge.to), *edge.spec);
                    copies.originals.push(link);
                }
                *source(&mut copied.flows[flow]) = copy;
            }
        }
        Some((copies, copied))
    }

    /// Adds the counts of the copies to those of their originals.
    pub(super) fn fold(&self, outcome: &mut Outcome) {
        if self.originals.is_empty() {
            return;
        }
        let moments = outcome.link_moments.len() / outcome.links.len();
        let tallies = outcome.link_moments.split_off(self.links * moments);
        let links = outcome.links.split_off(self.links);
        for (number, (original, link)) in self.originals.iter().zip(&links).enumerate() {
            let place = original.0 as usize;
            outcome.links[place].add(link);
            let (into, from) = (place * moments, number * moments);
            let into = &mut outcome.link_moments[into..into + moments];
            into.iter_mut().zip(&tallies[from..from + moments]).for_each(|(into, tally)| into.add(tally));
        }
    }
}

/// Returns the hosts with very many sources that can be copied: their outgoing and incoming links, and their flows.
fn crowded(network: &Network) -> BTreeMap<NodeId, ([LinkId; 2], Vec<usize>)> {
    let mut flows: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    let mut receivers = BTreeSet::new();
    for (number, flow) in network.flows.iter().enumerate() {
        match flow {
            Flow::Session(spec, _) => {
                flows.entry(spec.source).or_default().push(number);
                receivers.extend(spec.members.iter().map(|member| member.node));
            }
            Flow::Unicast(spec) => {
                flows.entry(spec.from).or_default().push(number);
                receivers.insert(spec.to);
            }
        }
    }
    let coordinated: BTreeSet<usize> =
        network.coordinations.iter().flat_map(|it| &it.flows).map(|(flow, _)| flow.0 as usize).collect();
    // Routers and relays may know links and nodes.
    let is_plain = network.routers.is_empty() && network.relays.is_empty();
    flows.retain(|node, flows| {
        let is_alone = !receivers.contains(node) && !flows.iter().any(|flow| coordinated.contains(flow));
        is_plain && flows.len() >= MANY && is_alone
    });
    let watched: BTreeSet<LinkId> = (network.changes.iter().map(|(_, link, _)| *link))
        .chain(network.link_probes.iter().map(|(link, _)| *link))
        .chain(network.taps.iter().copied())
        .collect();
    let mut links: BTreeMap<NodeId, Vec<LinkId>> = BTreeMap::new();
    for (number, edge) in (0..).map(LinkId).zip(network.topology.edges()) {
        for node in [edge.from, edge.to] {
            if flows.contains_key(&node) {
                links.entry(node).or_default().push(number);
            }
        }
    }
    let edge = |link: LinkId| &network.topology.edges()[link.0 as usize];
    let both = |node| {
        let &[one, other] = links.get(&node)?.as_slice() else { return None };
        let is_wire = |link| is_wire(&edge(link).spec) && !watched.contains(&link);
        let is_pair = (edge(one).from, edge(one).to) == (edge(other).to, edge(other).from);
        (is_pair && is_wire(one) && is_wire(other)).then_some([one, other])
    };
    flows.into_iter().filter_map(|(node, flows)| Some((node, (both(node)?, flows)))).collect()
}

/// Whether a link only delays packets.
fn is_wire(spec: &LinkSpec) -> bool {
    let LinkSpec { rate, queue, loss, jitter, .. } = *spec;
    rate == Rate::UNLIMITED && queue == QueueSpec::UNLIMITED && loss.is_none() && jitter == Span::ZERO
}

fn source(flow: &mut Flow) -> &mut NodeId {
    match flow {
        Flow::Session(spec, _) => &mut spec.source,
        Flow::Unicast(spec) => &mut spec.from,
    }
}
