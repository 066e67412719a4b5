//! How a run looks at a moment.

use crate::network::LinkId;
use crate::outcome::{LinkSample, SourceSample};
use faircast_core::time::Time;

/// A run at a moment, before whatever arrives at that very moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// When.
    pub at: Time,
    /// One for each flow, in the order in which they were added.
    pub flows: Vec<FlowSnapshot>,
    /// The links that are probed at this moment, in the order of their numbers.
    pub links: Vec<LinkSnapshot>,
}

/// A flow at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSnapshot {
    /// Bytes sent so far.
    pub sent_bytes: u64,
    /// Bytes received so far, by all members together.
    pub received_bytes: u64,
    /// Its source or sender: rate, window, who limits it; `None` for datagrams without control.
    pub source: Option<SourceSample>,
}

/// A link at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSnapshot {
    /// Which.
    pub link: LinkId,
    /// Queue, drops and marks so far.
    pub sample: LinkSample,
    /// The part of its present rate that it has used since the sample before, 0 to 1; 0 for a link without a rate, and for the first sample.
    pub utilisation: f64,
}

/// Why there is no snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The run has not come so far.
    #[error("the run has reached {reached:?}, not {at:?}: go on with Engine::run_until first")]
    NotReached {
        /// The moment of the snapshot.
        at: Time,
        /// Where the run is.
        reached: Time,
    },
    /// Nothing was kept for this moment, and hosts and links may be beyond it.
    #[error("{at:?} is not a multiple of Options::{period}, so no state was stored for it")]
    NotKept {
        /// The moment of the snapshot.
        at: Time,
        /// Which period.
        period: &'static str,
    },
}
