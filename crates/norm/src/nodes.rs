//! The receivers that have sent feedback.

use super::codec::{CcNode, CcReport, NodeId, cc_flags, quantities};
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Rate, Span};
use faircast_transport::event::{Condition, ReceiverState};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Maximum number of receivers whose feedback is used.
pub(super) const MAX_NODES: usize = 4_096;
/// Maximum number of measurements in a probe.
const MAX_LISTED: usize = 16;

/// A receiver.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Address of its first feedback. Feedback from other addresses is refused, because anybody can claim a node ID.
    pub(super) address: IpAddr,
    /// The latest round-trip time.
    rtt: Option<Span>,
    /// Flags and rate of its latest report.
    flags: u8,
    rate: u16,
    /// Loss of its latest report.
    loss: f64,
    /// Whether the latest round-trip time has not been in a probe yet.
    is_unlisted: bool,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Active,
    /// It has acknowledged all content.
    Completed,
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct Nodes {
    known: BTreeMap<NodeId, Node>,
}

impl Nodes {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns the number of receivers that have not left.
    pub(super) fn members(&self) -> usize {
        self.known.values().filter(|node| node.state != State::Gone).count()
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&Node> {
        self.known.get(&id)
    }

    /// Returns the states of all receivers that have not left, for events. `sent` is the rate of the source. Receivers acknowledge
    /// only the end of the content. `limiting` is the receiver that limits the rate, and its round-trip time.
    pub(super) fn states(
        &self,
        port: u16,
        (sent, content): (Rate, u64),
        limiting: (Option<ReceiverId>, Span),
    ) -> Vec<ReceiverState> {
        let state = |(id, node): (&NodeId, &Node)| {
            let (state, verified_bytes) = match node.state {
                State::Active => (Condition::Receiving, 0),
                State::Completed => (Condition::Done, content),
                State::Gone => return None,
            };
            let receiver = receiver_id(*id)?;
            let reported = quantities::rate_of(node.rate);
            Some(ReceiverState {
                verified_bytes,
                rate: if reported < sent { reported } else { sent },
                loss: node.loss,
                rtt: (limiting.0 == Some(receiver)).then(|| limiting.1.into()),
                ..ReceiverState::unnamed(receiver, (node.address, port).into(), state)
            })
        };
        self.known.iter().filter_map(state).collect()
    }

    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.known.get_mut(&id)
    }

    /// Admits feedback of a node: returns whether the node is new, or `None` if the feedback is refused.
    pub(super) fn admit(&mut self, id: NodeId, address: IpAddr) -> Option<bool> {
        match self.known.get(&id) {
            Some(node) => (node.address == address).then_some(false),
            None if self.known.len() >= MAX_NODES => None,
            None => {
                let node = Node {
                    address,
                    rtt: None,
                    flags: 0,
                    rate: 0,
                    loss: 0.0,
                    is_unlisted: false,
                    state: State::Active,
                };
                self.known.insert(id, node);
                Some(true)
            }
        }
    }

    /// Returns the receivers that have not acknowledged the content, in the order of their numbers.
    pub(super) fn pending(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.known.iter().filter(|(_, node)| node.state == State::Active).map(|(id, node)| (*id, node))
    }

    /// Writes the list of a probe: the limiting receiver, and receivers with new round-trip times.
    pub(super) fn write_list(&mut self, limiting: Option<NodeId>, out: &mut Vec<u8>) {
        if let Some((id, node)) = limiting.and_then(|id| Some((id, self.known.get_mut(&id)?))) {
            node.list(id, cc_flags::CLR).encode(out);
        }
        let others = self.known.iter_mut().filter(|(id, node)| node.is_unlisted && Some(**id) != limiting);
        for (id, node) in others.take(MAX_LISTED) {
            node.list(*id, 0).encode(out);
        }
    }
}

impl Node {
    /// Records a report of the node.
    pub(super) fn on_report(&mut self, rtt: Span, cc: &CcReport) {
        (self.rtt, self.flags, self.rate, self.is_unlisted) = (Some(rtt), cc.flags, cc.rate, true);
        self.loss = quantities::loss_of(cc.loss);
    }

    fn list(&mut self, id: NodeId, role: u8) -> CcNode {
        self.is_unlisted = false;
        let known = if self.rtt.is_some() { cc_flags::RTT } else { 0 };
        CcNode {
            id,
            flags: role | known | self.flags & cc_flags::START,
            rtt: quantities::rtt_code(self.rtt.unwrap_or(Span::from_secs(1))),
            rate: self.rate,
        }
    }
}

/// Returns the identifier of a node for the scheme; `None` for numbers that no node has.
pub(super) fn receiver_id(id: NodeId) -> Option<ReceiverId> {
    ReceiverId::new(id.into()).filter(|_| id != NodeId::MAX)
}

/// Returns the node with this identifier.
pub(super) fn node_id(id: ReceiverId) -> Option<NodeId> {
    NodeId::try_from(id.get()).ok()
}
