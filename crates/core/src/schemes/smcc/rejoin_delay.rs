//! Delay before a receiver rejoins a layer that it has left after a short stay ([`super::Joins::Early`]).

use super::config::LAYERS;
use crate::time::{Span, Time};

/// A receiver's stays in each layer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RejoinDelays([Visit; LAYERS]);

/// The latest stays in a layer.
#[derive(Debug, Clone, Copy, Default)]
struct Visit {
    joined_at: Time,
    /// Number of consecutive short stays.
    short: u8,
    /// Earliest time of the next join.
    again_at: Time,
}

/// If a stay in a layer is shorter than this, the join was a mistake.
const SHORT: Span = Span::from_secs(8);
/// Time between leaving a layer and rejoining it. It doubles after each short stay, up to a maximum number of doublings.
const AWAY: Span = Span::from_secs(1);
const MAX_DOUBLINGS: u8 = 4;

impl RejoinDelays {
    pub(super) fn on_join(&mut self, layer: u8, now: Time) {
        self.of(layer).joined_at = now;
    }

    pub(super) fn on_leave(&mut self, layer: u8, now: Time) {
        let visit = self.of(layer);
        let is_short = now.since(visit.joined_at) < SHORT;
        visit.short = if is_short { (visit.short + 1).min(MAX_DOUBLINGS) } else { 0 };
        visit.again_at = now + AWAY * (1 << visit.short);
    }

    pub(super) fn may_join(&self, layer: u8, now: Time) -> bool {
        now >= self.0[usize::from(layer).min(LAYERS - 1)].again_at
    }

    fn of(&mut self, layer: u8) -> &mut Visit {
        &mut self.0[usize::from(layer).min(LAYERS - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_short_stay_in_a_layer_doubles_its_rejoin_delay() {
        let (mut visits, mut now) = (RejoinDelays::default(), Time::ZERO);
        let mut away = |visits: &mut RejoinDelays, stay: u64| {
            visits.on_join(3, now);
            now += Span::from_secs(stay);
            visits.on_leave(3, now);
            (1..60).find(|secs| visits.may_join(3, now + Span::from_secs(*secs))).expect("some time")
        };
        let after_short: Vec<u64> = (0..6).map(|_| away(&mut visits, 2)).collect();
        assert_eq!(after_short, [2, 4, 8, 16, 16, 16]);
        assert_eq!(away(&mut visits, 20), 1);
        assert!(visits.may_join(2, Time::ZERO), "another layer");
    }
}
