//! The start of a session: when enough receivers have joined, the source begins to send.

use super::{Phase, SourceSession};
use crate::error::{Error, StartError, seconds};
use crate::event::Event;
use crate::members::onset;
use faircast_core::node::{Cx, Source as _, SourceControl};
use faircast_core::time::{Span, Time};
use std::time::Duration;

impl SourceSession {
    /// Returns the time from which no further receiver is expected to join, if the newest receiver joined at `last_received`.
    fn settled_at(&self, last_received: Time) -> Time {
        last_received + (self.setup.spread * 2).max(Span::from_millis(20)) + onset(self.setup.spread)
    }

    /// Returns the time of the start if no other receiver joins.
    pub(super) fn start_at(&self, last_received: Time) -> Time {
        if let Some(at) = self.begins_at() {
            return at;
        }
        let waited = self.waits_until();
        let first = self.setup.not_before;
        match self.setup.expect {
            _ if !self.scheduler.may_start() => Time::NEVER,
            None if self.members.receivers() > 0 && self.roll.absent().is_empty() => {
                self.settled_at(last_received).max(first).min(waited)
            }
            Some(_) if self.have_all_joined() => first,
            _ => waited,
        }
    }

    /// Returns the end of the waiting for receivers before the start.
    fn waits_until(&self) -> Time {
        (Time::ZERO + self.setup.join_timeout).max(self.setup.not_before)
    }

    /// Whether the expected receivers have joined; without this number, at least one receiver.
    fn have_all_joined(&self) -> bool {
        let joined = self.members.receivers();
        joined >= self.setup.expect.map_or(1, u64::from) && self.roll.absent().is_empty()
    }

    pub(super) fn consider_start(&mut self, last_received: Time, now: Time) {
        if let Some(at) = self.begins_at() {
            if now >= at {
                self.begin(now);
            }
            return;
        }
        if !self.scheduler.may_start() {
            return;
        }
        let joined = self.members.receivers();
        let until = self.waits_until();
        let asked = self.setup.start.is_asked() && joined > 0;
        let is_settled = self.setup.expect.is_some() || now >= self.settled_at(last_received);
        let enough = self.have_all_joined() && is_settled && now >= self.setup.not_before;
        if !enough && now < until && !asked {
            return;
        }
        // The join timeout covers the waiting before the start and at the end: the remainder is available at the end.
        self.clocks.wait_left = if asked { Span::ZERO } else { until.since(now) };
        if joined == 0 {
            let error = Error::Start(StartError::NoReceiver {
                group: self.setup.groups[0],
                waited: Duration::from_nanos(until.as_nanos()),
                ttl: self.setup.ttl,
                port: self.setup.local.port(),
                each: self.not_here(),
            });
            // The receivers must be notified of the end: relays without receivers, and receivers whose answers were lost, still
            // wait for content.
            self.fail(error, now);
            return;
        }
        if let Some(expected) = self.setup.expect.filter(|expected| joined < u64::from(*expected)) {
            let when =
                if asked { String::new() } else { format!(" within {}", seconds(until.as_secs_f64())) };
            self.events.push_back(Event::warning(format!(
                "{joined} of {expected} receivers have joined{when}; starting with them"
            )));
        }
        if let Some(names) = self.roll.named(&self.refusals) {
            self.events.push_back(Event::warning(format!("not joined: {names}")));
        }
        if self.all_resume() {
            self.resume();
        }
        self.begin(now);
    }

    /// Starts to send.
    pub(super) fn begin(&mut self, now: Time) {
        self.scheduler.welcome();
        self.pass_rate_to_scheduler();
        self.scheduler.start(now);
        self.phase = Phase::Sending;
        self.trace_begin(now);
        self.setup.start.end();
        // The number includes members that have not proved yet that they receive the source: these members have one second to do
        // so.
        self.answering = self.members.answering();
        self.control(SourceControl::Members(self.answering), now);
        self.source.start(&mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
        self.refuse_effects(now);
        self.clocks.status_at = now;
        self.clocks.announce_at = now + Span::from_millis(500);
    }
}
