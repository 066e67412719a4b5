//! The three filters between loss indications and rate reductions (paper 000, 2.1.1 and appendix A).

#[cfg(test)]
mod tests;

use super::config::{Config, Events, Part, Selection};
use super::reporters::{Reporter, Reporters, Shares};
use super::round_trip::RoundTrip;
use crate::node::Tally;
use crate::packet::{ReceiverId, Seq};
use crate::rng::Rng;
use crate::time::{Span, Time};

/// The filters and their state.
#[derive(Debug, Clone)]
pub(super) struct Cascade {
    li2le: Part,
    slots: Option<Slots>,
    filter: Selection,
    atf: Part,
    decay: f64,
    reporters: Reporters,
    /// End of the present epoch, "CongestionEpoch". Until then the rate is neither reduced nor increased.
    epoch_until: Time,
    decay_at: Time,
    decays: u32,
    tally: Tally,
    reductions: u64,
}

/// The number of round trips after which counts decay (paper 000, 2.1.1).
const DECAY_AFTER: u64 = 100;
/// The number of decays after which receivers without recent loss events are removed.
// Paper gap: 2.1.2 stores state for every receiver that ever reported. Here a receiver is removed when its count is below 0.01
// and it has had no loss event for 1000 round trips.
const SWEEP_AFTER: u32 = 10;
/// Maximum number of indications that are processed per report if LI2LE is off.
const MAX_AT_ONCE: u32 = 1024;

impl Cascade {
    pub(super) fn new(config: &Config) -> Cascade {
        Cascade {
            li2le: config.li2le,
            slots: (config.events == Events::Slots).then(Slots::default),
            filter: config.filter,
            atf: config.atf,
            decay: config.decay,
            reporters: Reporters::new(),
            epoch_until: Time::ZERO,
            decay_at: Time::NEVER,
            decays: 0,
            tally: Tally::default(),
            reductions: 0,
        }
    }

    pub(super) fn start(&mut self, round_trip: &RoundTrip, now: Time) {
        self.decay_at = now + round_trip.mean() * DECAY_AFTER;
    }

    /// Returns the receiver with the most loss events.
    pub(super) const fn worst(&self) -> Option<ReceiverId> {
        self.reporters.worst()
    }

    pub(super) const fn tally(&self) -> Tally {
        self.tally
    }

    pub(super) const fn reductions(&self) -> u64 {
        self.reductions
    }

    /// Returns whether the latest reduction is so recent that the rate must not grow yet.
    pub(super) fn is_congested(&self, now: Time) -> bool {
        now < self.epoch_until
    }

    /// Returns the record of a reporting receiver; `None` when the table is full.
    pub(super) fn reporter(&mut self, from: ReceiverId) -> Option<Reporter> {
        self.reporters.find(from)
    }

    /// Records that a report of the receiver contains packet `seq`. Returns whether this is the newest packet that the receiver
    /// has reported.
    pub(super) fn names(&mut self, reporter: Reporter, seq: Seq) -> bool {
        self.reporters.names(reporter, seq)
    }

    /// Processes `count` indications of one receiver; returns the number of resulting reductions.
    pub(super) fn on_indications(
        &mut self,
        reporter: Reporter,
        count: u16,
        round_trip: &RoundTrip,
        now: Time,
        rng: &mut Rng,
    ) -> u32 {
        self.tally.indications += u64::from(count);
        let events = self.events_of(reporter, u32::from(count), round_trip, now);
        let reduces = |_: &u32| {
            self.tally.events += 1;
            let shares = self.reporters.count(reporter);
            let follows = rng.chance(passing(self.filter, shares));
            self.tally.followed += u64::from(follows);
            follows && self.begins_epoch(round_trip, now)
        };
        (0..events).filter(reduces).count() as u32
    }

    /// "LI2LE": returns the number of loss events. An indication is a loss event if the receiver's previous loss event was more
    /// than `SRTT + 2 sigma` ago, or in an earlier slot.
    fn events_of(&mut self, reporter: Reporter, indications: u32, round_trip: &RoundTrip, now: Time) -> u32 {
        let passed_at = self.reporters.passed_at(reporter);
        let begins = |passed_at: Time| match &mut self.slots {
            None => now.since(passed_at) > round_trip.window(),
            Some(slots) => passed_at < slots.since(round_trip.mean(), now),
        };
        let events = match self.li2le {
            Part::Off => indications.min(MAX_AT_ONCE),
            Part::On => u32::from(passed_at.is_none_or(begins)),
        };
        if events > 0 {
            self.reporters.pass(reporter, now);
        }
        events
    }

    /// "ATF": returns whether a loss event reduces the rate.
    // Paper gap: 2.1.1 allows one reduction per SRTT + 4 sigma, appendix A one per 1.5 times this duration. Here the longer
    // duration is used, which satisfies both.
    fn begins_epoch(&mut self, round_trip: &RoundTrip, now: Time) -> bool {
        if self.atf == Part::On {
            if self.is_congested(now) {
                return false;
            }
            self.epoch_until = now + round_trip.silence() + round_trip.timeout();
        }
        self.reductions += 1;
        true
    }

    pub(super) const fn deadline(&self) -> Time {
        self.decay_at
    }

    /// Applies the decay of all counts, every 100 round trips.
    pub(super) fn on_deadline(&mut self, round_trip: &RoundTrip, now: Time) {
        if now < self.decay_at {
            return;
        }
        self.decay_at = now + round_trip.mean() * DECAY_AFTER;
        self.reporters.decay(self.decay);
        self.decays += 1;
        if self.decays.is_multiple_of(SWEEP_AFTER) {
            self.reporters.sweep(now - round_trip.mean() * (DECAY_AFTER * u64::from(SWEEP_AFTER)));
        }
    }

    /// Ends a `pause` of the application. Counts did not decay during the pause.
    pub(super) fn resume(&mut self, pause: Span) {
        self.decay_at += pause;
    }

    /// Removes a receiver that left.
    pub(super) fn forget(&mut self, receiver: ReceiverId) {
        self.reporters.forget(receiver);
    }

    /// Removes all receivers after a change of the group.
    pub(super) fn forget_all(&mut self) {
        self.reporters = Reporters::new();
        self.epoch_until = Time::ZERO;
    }
}

/// Consecutive round trips, for [`Events::Slots`].
#[derive(Debug, Clone, Copy, Default)]
struct Slots {
    /// Start and end of the present slot.
    since: Time,
    until: Time,
}

impl Slots {
    /// Returns the start of the slot that contains `now`. New slots have this `length`.
    fn since(&mut self, length: Span, now: Time) -> Time {
        if now >= self.until {
            let whole = now.since(self.until).as_nanos() / length.as_nanos().max(1);
            self.since = self.until + length * whole;
            self.until = self.since + length;
        }
        self.since
    }
}

/// Returns the probability that a loss event passes.
fn passing(filter: Selection, shares: Shares) -> f64 {
    match filter {
        Selection::MaxLprf => shares.worst / shares.all,
        Selection::Lprf => shares.own / shares.all,
        Selection::Even => 1.0 / shares.reporters,
        Selection::All => 1.0,
    }
}
