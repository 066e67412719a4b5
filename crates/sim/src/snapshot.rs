//! The state of a run at a given time.

use crate::network::LinkId;
use crate::outcome::{LinkSample, SourceSample};
use faircast_core::time::Time;

/// A run at a given time, before any arrival at exactly this time.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Time of the snapshot.
    pub at: Time,
    /// Snapshots of the flows, in the order in which the flows were added.
    pub flows: Vec<FlowSnapshot>,
    /// Snapshots of the links that are probed at this time, by link number.
    pub links: Vec<LinkSnapshot>,
}

impl Snapshot {
    /// Adds the flows and links of another part of the network.
    pub(crate) fn with(mut self, other: Snapshot) -> Snapshot {
        for (flow, more) in self.flows.iter_mut().zip(other.flows) {
            flow.sent_bytes += more.sent_bytes;
            flow.received_bytes += more.received_bytes;
            flow.source = flow.source.or(more.source);
            flow.members.extend(more.members);
            flow.members.sort_by_key(|it| it.number);
        }
        self.links.extend(other.links);
        self.links.sort_by_key(|it| it.link);
        self
    }
}

/// The state of a flow at a given time.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSnapshot {
    /// Bytes sent so far.
    pub sent_bytes: u64,
    /// Bytes received so far by all members together.
    pub received_bytes: u64,
    /// Sample of the source or sender: rate, window, limiting receiver; `None` for datagrams without congestion control.
    pub source: Option<SourceSample>,
    /// Snapshots of the watched members of a session in their order ([`Options::watch`](crate::Options::watch)); empty for a unicast flow.
    pub members: Vec<MemberSnapshot>,
}

/// The state of a session's member at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberSnapshot {
    /// Number of the member in its session.
    pub number: u32,
    /// Bytes received so far.
    pub received_bytes: u64,
    /// Data packets found lost so far; `None` if flows are not counted at this time
    /// ([`Network::count_until`](crate::Network::count_until)).
    pub lost: Option<u64>,
    /// Time at which the member was excluded from its session.
    pub excluded: Option<Time>,
}

/// The state of a link at a given time.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSnapshot {
    /// The link.
    pub link: LinkId,
    /// Queue length, and drops and marks so far.
    pub sample: LinkSample,
    /// Utilisation since the preceding sample, relative to the current rate, 0 to 1. It is 0 for a link without a rate limit and
    /// for the first sample.
    pub utilisation: f64,
}

/// Reasons for a missing snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The run has not reached the requested time.
    #[error("the run has only reached {reached:?}, and not {at:?}: call Engine::run_until first")]
    NotReached {
        /// Requested time.
        at: Time,
        /// Time that the run has reached.
        reached: Time,
    },
    /// No records exist for the requested time, and hosts and links may already be beyond it.
    #[error("{at:?} is not a multiple of Options::{period}, so no state was stored for it")]
    NotKept {
        /// Requested time.
        at: Time,
        /// Name of the period of which the requested time is not a multiple.
        period: &'static str,
    },
}
