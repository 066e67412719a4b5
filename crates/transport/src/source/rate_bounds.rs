//! Bounds of the rate of a session.

use super::{Serving, SourceSession};
use crate::config::SlowReceiverPolicy;
use faircast_core::node::SourceControl;
use faircast_core::rate::Bounds;
use faircast_core::time::{Rate, Time};

impl SourceSession {
    /// Adapts the rate bounds to the time of day. Its caller calls it once a second, because the offset of the time zone may change.
    pub(super) fn follow_the_day(&mut self, now: Time) {
        let Some(limits) = &self.setup.day_limits else { return };
        let limit = limits.at((self.setup.started + now.as_nanos()) / 1_000_000_000);
        if std::mem::replace(&mut self.day_limit, limit) != limit {
            self.bound_rate(now);
        }
    }

    /// Returns the configured maximum rate at this time of day; `None` without a maximum rate.
    pub(super) fn max_rate(&self) -> Option<Rate> {
        let max = self.setup.max.unwrap_or(Rate::UNLIMITED).min(self.day_limit);
        max.is_usable().then_some(max)
    }

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
        let max = self.max_rate().unwrap_or(self.setup.scheme.bounds().max).min(self.flood.limit()).max(min);
        self.control(SourceControl::Limits(Bounds { min, max }), now);
    }
}
