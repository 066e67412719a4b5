//! The receiver that the source of ORMCC or MCA+ follows.

use crate::packet::{Mark, ReceiverId};
use crate::time::Span;

/// A receiver, and whether it is known to be active. If it is not known to be active, every receiver may report.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Representative {
    id: Option<ReceiverId>,
    is_valid: bool,
}

impl Representative {
    /// Returns the receiver that headers name.
    pub(super) fn named(&self) -> Option<ReceiverId> {
        self.id.filter(|_| self.is_valid)
    }

    pub(super) fn is(&self, receiver: ReceiverId) -> bool {
        self.id == Some(receiver)
    }

    pub(super) const fn is_valid(&self) -> bool {
        self.is_valid
    }

    /// Makes this receiver the representative.
    pub(super) fn elect(&mut self, receiver: ReceiverId) {
        *self = Representative { id: Some(receiver), is_valid: true };
    }

    /// From now on, headers state that every receiver may report. The representative remains stored, and its next report makes it
    /// valid again.
    pub(super) fn distrust(&mut self) {
        self.is_valid = false;
    }

    /// Returns whether a round-trip sample from receiver `from` counts for the rate. Without a representative, samples from all
    /// receivers count, but only after start-up.
    pub(super) fn times(&self, from: ReceiverId, is_starting: bool) -> bool {
        self.id.map_or(!is_starting, |id| id == from)
    }

    /// Returns the mark of packets. `level` is the mean and deviation of the representative's level in bit/s, if known.
    pub(super) fn mark(&self, level: Option<(f64, f64)>, rtt_max: Span) -> Mark {
        let id = self.named();
        let (mean, deviation) = level.filter(|_| id.is_some()).unwrap_or((f64::INFINITY, 0.0));
        let (mean, deviation, rtt_max) = (mean as f32, deviation as f32, rtt_max.as_secs_f64() as f32);
        Mark::Representative { id, mean, deviation, rtt_max }
    }
}
