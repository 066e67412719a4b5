//! A session without feedback: it is announced for a while, and then sends a number of rounds at a fixed rate.
//!
//! The source ignores all arriving packets. Receivers complete each block from symbols of several rounds. A later session with
//! the same content supplies symbols that are still missing.
//!
//! An outage of the path may cover the start or the end of a session. The session therefore goes on for the length of an outage
//! after the root hash is known.

use super::SourceSession;
use crate::config::{OneWay, Repeat, span};
use faircast_core::time::{Span, Time};

/// Duration of announcements before the first data packet. Receivers must receive and parse one of the more than ten
/// announcements before they can use data.
const ANNOUNCED_FOR: Span = Span::from_secs(1);

impl SourceSession {
    /// Returns the start of the content in a session without feedback; `None` if the session waits for receivers.
    pub(super) fn begins_at(&self) -> Option<Time> {
        self.setup.one_way.map(|_| (Time::ZERO + ANNOUNCED_FOR).max(self.setup.not_before))
    }

    /// Repeats pages once a second, because late joiners and receivers that have lost a page cannot request pages.
    pub(super) fn repeat_pages(&mut self) {
        if let (Some(pages), Some(_)) = (&mut self.pages, self.setup.one_way) {
            pages.repeat_all();
        }
    }

    /// Ends the session after the required number of rounds or the required duration, once the root hash is known.
    pub(super) fn consider_one_way_end(&mut self, one_way: OneWay, now: Time) {
        let is_spent = match one_way.repeat {
            Repeat::Rounds(rounds) => self.scheduler.rounds() >= rounds,
            Repeat::For(time) => self.clocks.started.is_some_and(|began| now.since(began) >= span(time)),
            Repeat::Forever => false,
        };
        if self.clocks.hashed_at.is_none() && self.scheduler.status().root.is_some() {
            self.clocks.hashed_at = Some(now);
        }
        let is_announced = self.clocks.hashed_at.is_some_and(|at| now.since(at) >= span(one_way.burst));
        // If no round was completed, the session does not wait for the root hash.
        if is_spent && (is_announced || self.scheduler.rounds() == 0) {
            self.close(now);
        }
    }
}
