//! Times at which receivers are present.

use super::plan::{RowValues, SessionPlan};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_sim::Law;

/// Returns the first stay of each receiver; empty if all receivers are always present.
pub(super) fn stays(session: &SessionPlan, receivers: usize, rng: &mut Rng) -> Vec<(Time, Time)> {
    if session.join == RowValues::one(0.0) && session.leave.is_none() {
        return Vec::new();
    }
    let stay = |index| {
        let join = Time::from_secs_f64(session.join.get(index, rng));
        let leave =
            session.leave.as_ref().map_or(Time::NEVER, |leave| Time::from_secs_f64(leave.get(index, rng)));
        (join, leave)
    };
    (0..receivers).map(stay).collect()
}

/// Draws spans from two distributions in alternation, beginning at `start`. Returns only the spans from the first distribution.
/// The last span may extend beyond `end`.
pub(super) fn turns((on, off): &(Law, Law), start: Time, end: Time, rng: &mut Rng) -> Vec<(Time, Time)> {
    const SHORTEST: Span = Span::from_micros(1);
    let mut spans = Vec::new();
    let mut at = start;
    while at < end {
        let until = at + on.span(rng).max(SHORTEST);
        spans.push((at, until));
        at = until + off.span(rng).max(SHORTEST);
    }
    spans
}
