//! The filters of Bin-CI (paper 000, D.2): the first combines reports into events, the second passes only a fraction of each
//! receiver's events.

use super::config::Excess;
use crate::estimate::Ewma;
use crate::packet::ReceiverId;
use crate::rng::Rng;
use crate::time::{Rate, Span, Time};
use std::collections::BTreeMap;

/// The filters' state. It grows with the number of receivers that have sent reports.
#[derive(Debug, Clone)]
pub(super) struct Bin {
    counts: BTreeMap<ReceiverId, Count>,
    /// Sum and maximum of all counts.
    sum: f64,
    most: f64,
    /// The receiver with the most events.
    leader: Option<ReceiverId>,
    /// Number of events that the second filter should have passed since the latest cut, "P_d".
    due: f64,
    /// Rate at the moment when `due` reached one, "V_d".
    due_rate: Option<Rate>,
    /// Mean increment of the rate, "V_e", in bit/s.
    increments: Ewma,
    decay_at: Time,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    /// Number of events, with decay, "X_i".
    events: f64,
    /// Time of the latest accepted report.
    accepted_at: Time,
}

/// The filters' result for a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The report belongs to a known event.
    Known,
    /// A new event that does not pass.
    Dropped,
    /// A new event that passes.
    Passed,
}

const INCREMENT_GAIN: f64 = 0.125;
// Paper gap: D.2 never removes events, so a receiver that was slow an hour ago would count indefinitely. As in LE-SBCC (paper
// 000, 2.1.1), counts lose a tenth every hundred round-trip times.
const KEPT: f64 = 0.9;
const DECAY_AFTER: u64 = 100;
/// A receiver with a count below this value is removed.
const FORGOTTEN: f64 = 0.1;

impl Bin {
    pub(super) fn new(first_increment: Rate) -> Bin {
        let mut increments = Ewma::new(INCREMENT_GAIN);
        increments.restart(first_increment.bps(), 0.0);
        Bin {
            counts: BTreeMap::new(),
            sum: 0.0,
            most: 0.0,
            leader: None,
            due: 0.0,
            due_rate: None,
            increments,
            decay_at: Time::ZERO,
        }
    }

    /// Returns the receiver with the most events.
    pub(super) const fn leader(&self) -> Option<ReceiverId> {
        self.leader
    }

    /// Filters a report of this receiver: first by CI2CE, then by MaxLPRF. `window` is `RTT + 2 sigma`.
    pub(super) fn on_report(
        &mut self,
        from: ReceiverId,
        rate: Rate,
        window: Span,
        now: Time,
        rng: &mut Rng,
    ) -> Verdict {
        let count = self.counts.entry(from).or_insert(Count { events: 0.0, accepted_at: Time::ZERO });
        if count.events > 0.0 && now.since(count.accepted_at) <= window {
            return Verdict::Known;
        }
        count.events += 1.0;
        count.accepted_at = now;
        self.sum += 1.0;
        if count.events > self.most {
            (self.most, self.leader) = (count.events, Some(from));
        }
        let share = (self.most / self.sum).min(1.0);
        let due = self.due + share;
        if self.due < 1.0 && due >= 1.0 {
            self.due_rate = Some(rate);
        }
        self.due = due;
        if rng.chance(share) { Verdict::Passed } else { Verdict::Dropped }
    }

    /// Returns the rate after a cut from `rate`.
    pub(super) fn lowered(&mut self, rate: Rate, beta: f64, excess: Excess) -> Rate {
        let (rate, step) = (rate.bps(), self.increments.mean().unwrap_or_default());
        let due_rate = self.due_rate.take().filter(|_| self.due >= 1.0);
        self.due = 0.0;
        Rate::from_bps(match due_rate {
            None => beta * (rate - step),
            Some(due) => {
                let due = due.bps().min(rate);
                let lowered = beta * (due - step);
                match excess {
                    Excess::Once => lowered,
                    Excess::Twice => lowered - (rate - due),
                }
            }
        })
    }

    /// Records an increment of the rate.
    pub(super) fn on_increment(&mut self, increment: Rate) {
        self.increments.add(increment.bps(), 0.0);
    }

    /// Multiplies the counts by the decay factor if their period has passed. Must be called once per round-trip time.
    pub(super) fn decay(&mut self, srtt: Span, now: Time) {
        if now < self.decay_at {
            return;
        }
        if self.decay_at > Time::ZERO {
            self.counts.values_mut().for_each(|count| count.events *= KEPT);
            self.counts.retain(|_, count| count.events >= FORGOTTEN);
            self.add_up();
        }
        self.decay_at = now + srtt * DECAY_AFTER;
    }

    /// Removes a receiver that left.
    pub(super) fn forget(&mut self, receiver: ReceiverId) {
        self.counts.remove(&receiver);
        self.add_up();
    }

    fn add_up(&mut self) {
        self.sum = self.counts.values().map(|count| count.events).sum();
        (self.most, self.leader) = (0.0, None);
        for (id, count) in &self.counts {
            if count.events > self.most {
                (self.most, self.leader) = (count.events, Some(*id));
            }
        }
    }
}
