//! Times at which members send feedback.

use super::Members;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};

/// Target of reports per second at the source, for all receivers together: about 1 Mbit/s.
const REPORTS_PER_SECOND: u64 = 1_000;

/// Duration over which reports are counted before the spread is adapted.
const SPREAD_WINDOW: Span = Span::from_millis(20);

/// Maximum time that a receiver waits for its turn.
const MAX_SPREAD: Span = Span::from_secs(60);

/// Exponent of the exponential distribution from which first turns are drawn.
const STEEPNESS: f64 = 10.0;

/// Minimum interval of a receiver's signs of life.
const ALIVE: Span = Span::from_millis(250);

/// Returns the interval at which each member sends signs of life, for this number of members.
pub fn alive_every(members: u32) -> Span {
    ALIVE.max(Members::turns(members as usize)).min(MAX_SPREAD)
}

impl Members {
    /// Returns the time in which this number of receivers can report, one receiver after the other.
    pub fn turns(receivers: usize) -> Span {
        Span::from_nanos(1_000_000_000 / REPORTS_PER_SECOND) * receivers as u64
    }

    /// Returns the time over which receivers spread their reports, so that about [`REPORTS_PER_SECOND`] arrive. If more reports
    /// arrive, the time grows at once.
    pub fn spread(&mut self, now: Time, least: Span) -> Span {
        let current = least.max(Members::turns(self.known.len())).max(self.floor).min(MAX_SPREAD);
        let elapsed = now.since(self.window_from);
        if elapsed < SPREAD_WINDOW {
            return current;
        }
        let excess = self.reports as f64 / (REPORTS_PER_SECOND as f64 * elapsed.as_secs_f64());
        self.floor = match excess > 2.0 {
            true => current.scaled(excess).min(MAX_SPREAD),
            false => self.floor.scaled(0.65_f64.powf(elapsed.as_secs_f64())),
        };
        (self.reports, self.window_from) = (0, now);
        current.max(self.floor)
    }
}

/// Draws the delay before a receiver's first report in a newly discovered session. At this time the number of receivers is
/// unknown, so the distribution lets few receivers report early. The source then asks the other receivers to spread their reports
/// over a longer time.
pub fn first_turn(spread: Span, rng: &mut Rng) -> Span {
    let early_few = (1.0 + rng.unit() * STEEPNESS.exp_m1()).ln() / STEEPNESS;
    spread.scaled(rng.unit()) + onset(spread).scaled(early_few)
}

/// Returns the maximum additional delay of a first turn, beyond `spread`.
pub fn onset(spread: Span) -> Span {
    (spread * 2).max(Span::from_millis(20)).min(Span::from_millis(200))
}

/// Returns the new time of a future turn when `spread` changes to `other`. The remaining time is scaled up or down. If a turn
/// could only be delayed, a fluctuating spread could delay it indefinitely.
pub fn stretched(turn: Time, now: Time, spread: Span, other: Span) -> Time {
    if other == spread || turn <= now {
        return turn;
    }
    let least = Span::from_millis(1);
    now + turn.since(now).scaled(other.max(least).as_secs_f64() / spread.max(least).as_secs_f64())
}
