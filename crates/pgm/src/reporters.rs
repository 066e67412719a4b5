//! The hosts that have sent feedback to a source.

use super::address_of;
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Rate, Span};
use faircast_transport::event::{Condition, ReceiverState};
use std::collections::BTreeMap;

/// Maximum number of stored hosts.
const MAX_REPORTERS: usize = 100_000;

/// The hosts by address.
#[derive(Debug, Default)]
pub(super) struct Reporters {
    known: BTreeMap<ReceiverId, Reporter>,
    /// Packets sent until the latest states.
    packets: u64,
}

/// A host that has sent feedback.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reporter {
    /// Whether the host runs the receiver part of the scheme. The host's NAKs are then not passed to the scheme.
    pub(super) speaks: bool,
    /// Number of packets that it has requested, and those of them that the source had discarded.
    pub(super) requested: u64,
    pub(super) too_late: u64,
    /// Number of packets that it had requested at the latest states.
    stated: u64,
}

impl Reporters {
    /// Returns the host, which is new or known; `None` if too many are known.
    pub(super) fn of(&mut self, id: ReceiverId) -> Option<&mut Reporter> {
        if self.known.len() >= MAX_REPORTERS {
            return self.known.get_mut(&id);
        }
        Some(self.known.entry(id).or_default())
    }

    pub(super) fn count(&self) -> u64 {
        self.known.len() as u64
    }

    /// Returns the states of the hosts, for events. The loss is the share of requested packets since the latest call. `sent` is the
    /// rate of the source, and the number of packets that it has sent. `limiting` is the host that limits the rate, and its
    /// round-trip time. Hosts do not acknowledge content.
    pub(super) fn states(
        &mut self,
        port: u16,
        (sent, packets): (Rate, u64),
        limiting: (Option<ReceiverId>, Span),
    ) -> Vec<ReceiverState> {
        let new = (packets - std::mem::replace(&mut self.packets, packets)).max(1) as f64;
        let state = |(&id, host): (&ReceiverId, &mut Reporter)| {
            let requested = host.requested - std::mem::replace(&mut host.stated, host.requested);
            let (state, reason) = match host.too_late {
                0 => (Condition::Receiving, None),
                late => (Condition::Failed, Some(format!("{late} requests for discarded packets"))),
            };
            Some(ReceiverState {
                rate: sent,
                loss: (requested as f64 / new).min(1.0),
                rtt: (limiting.0 == Some(id)).then(|| limiting.1.into()),
                repair_symbols: host.requested,
                reason,
                ..ReceiverState::unnamed(id, (address_of(id)?, port).into(), state)
            })
        };
        self.known.iter_mut().filter_map(state).collect()
    }
}
