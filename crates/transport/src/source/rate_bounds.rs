//! Bounds of the rate of a session.

use super::{Serving, SourceSession};
use crate::config::SlowReceiverPolicy;
use faircast_core::node::SourceControl;
use faircast_core::rate::Bounds;
use faircast_core::time::{Rate, Time};

impl SourceSession {
    /// Sets the rate bounds of the scheme. The bound of `--slow` does not apply while deferred receivers are served.
    pub(super) fn bound_rate(&mut self, now: Time) {
        let floor = match self.setup.slow {
            SlowReceiverPolicy::Floor(rate) | SlowReceiverPolicy::Drop(rate) => Some(rate),
            SlowReceiverPolicy::Follow => None,
        };
        let serving_deferred = self.serving == Serving::Deferred;
        let floor = floor.filter(|_| !serving_deferred);
        let lowest = [Some(self.setup.scheme.bounds().min), self.setup.min, floor].into_iter().flatten();
        let min = lowest.fold(Rate::ZERO, Rate::max);
        let max = self.setup.max.unwrap_or(self.setup.scheme.bounds().max).min(self.flood.limit()).max(min);
        self.control(SourceControl::Limits(Bounds { min, max }), now);
    }
}
