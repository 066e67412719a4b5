//! Turns in which members send feedback.

use super::Members;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};

/// Target of reports per second at the source, all receivers together: about 1 Mbit/s.
const REPORTS_PER_SECOND: u64 = 1_000;

/// Duration over which reports are counted before the spread follows them.
const SPREAD_WINDOW: Span = Span::from_millis(20);

/// Longest wait of a receiver for its turn.
const MAX_SPREAD: Span = Span::from_secs(60);

/// Exponent of the law of first turns.
const STEEPNESS: f64 = 10.0;

/// A receiver shows that it is alive at least this often.
const ALIVE: Span = Span::from_millis(250);

/// How far apart the signs of life of one of this many members are.
pub fn alive_every(members: u32) -> Span {
    ALIVE.max(Members::turns(members as usize)).min(MAX_SPREAD)
}

impl Members {
    /// Returns the time in which this number of receivers can report one after the other.
    pub fn turns(receivers: usize) -> Span {
        Span::from_nanos(1_000_000_000 / REPORTS_PER_SECOND) * receivers as u64
    }

    /// Returns the time over which receivers spread their reports, so that the source receives about [`REPORTS_PER_SECOND`]; it grows at
    /// once when more arrive.
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

/// Draws the delay before a receiver that has just discovered a session reports. The number of receivers is unknown then, so few report
/// early; the source asks all others of a crowd to take more time.
pub fn first_turn(spread: Span, rng: &mut Rng) -> Span {
    let early_few = (1.0 + rng.unit() * STEEPNESS.exp_m1()).ln() / STEEPNESS;
    spread.scaled(rng.unit()) + onset(spread).scaled(early_few)
}

/// How much longer than `spread` the first turns take.
pub fn onset(spread: Span) -> Span {
    (spread * 2).max(Span::from_millis(20)).min(Span::from_millis(200))
}

/// A turn that has not come yet, when `spread` becomes `other`. Turns are counted in spreads, whether these become longer or shorter: a turn
/// that was put off each time and never brought forward would never come while the spread goes up and down.
pub fn stretched(turn: Time, now: Time, spread: Span, other: Span) -> Time {
    if other == spread || turn <= now {
        return turn;
    }
    let least = Span::from_millis(1);
    now + turn.since(now).scaled(other.max(least).as_secs_f64() / spread.max(least).as_secs_f64())
}
