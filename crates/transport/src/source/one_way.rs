//! A session without feedback: announced for a while, sent a number of rounds at a fixed rate, and ended.
//!
//! It ignores everything that arrives. Receivers complete each block from the symbols of any generation; the next session with the same
//! content completes what they miss of this one.

use super::{Phase, SourceSession};
use crate::config::{OneWay, Repeat, span};
use faircast_core::node::{Cx, Source as _, SourceControl};
use faircast_core::time::{Span, Time};

/// Announcements leave for this duration before the first data packet: more than ten of them, which receivers must receive and parse before
/// they can use data.
const ANNOUNCED_FOR: Span = Span::from_secs(1);

impl SourceSession {
    /// Returns when a session without feedback starts its content; `None` if it waits for receivers.
    pub(super) fn begins_at(&self) -> Option<Time> {
        self.setup.one_way.map(|_| Time::ZERO + ANNOUNCED_FOR)
    }

    /// Start to send.
    pub(super) fn begin(&mut self, now: Time) {
        self.scheduler.welcome();
        self.pass_rate_to_scheduler();
        self.scheduler.start(now);
        self.phase = Phase::Sending;
        self.setup.start.end();
        // Members that have not yet shown that they receive the source have a second for that.
        self.answering = self.members.answering();
        self.control(SourceControl::Members(self.answering), now);
        self.source.start(&mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
        self.refuse_effects(now);
        self.clocks.status_at = now;
        self.clocks.announce_at = now + Span::from_millis(500);
    }

    /// Repeats pages once a second: late joiners, and receivers that have lost a page, cannot request it.
    pub(super) fn repeat_pages(&mut self) {
        if let (Some(pages), Some(_)) = (&mut self.pages, self.setup.one_way) {
            pages.repeat_all(self.scheduler.status().complete_to);
        }
    }

    /// End when everything has been sent often, or long, enough, and receivers can be sent the hash of all of it.
    pub(super) fn consider_one_way_end(&mut self, one_way: OneWay, now: Time) {
        let is_spent = match one_way.repeat {
            Repeat::Rounds(rounds) => self.scheduler.rounds() >= rounds,
            Repeat::For(time) => self.clocks.started.is_some_and(|began| now.since(began) >= span(time)),
            Repeat::Forever => false,
        };
        // Content that was not sent even once is hashed at leisure.
        let is_hashed = self.scheduler.status().root.is_some() || self.scheduler.rounds() == 0;
        if is_spent && is_hashed {
            self.close(now);
        }
    }
}
