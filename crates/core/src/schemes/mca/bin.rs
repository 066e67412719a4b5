//! The filters of Bin-CI (paper 000, D.2): reports become events, and of each receiver's events a part passes.

use super::config::Excess;
use crate::estimate::Ewma;
use crate::packet::ReceiverId;
use crate::rng::Rng;
use crate::time::{Rate, Span, Time};
use std::collections::BTreeMap;

/// State that grows with the number of receivers that report.
#[derive(Debug, Clone)]
pub(super) struct Bin {
    counts: BTreeMap<ReceiverId, Count>,
    /// Sum and maximum of all counts.
    sum: f64,
    most: f64,
    /// The receiver with the most events.
    leader: Option<ReceiverId>,
    /// Events that should have been passed since the latest cut, "P_d".
    due: f64,
    /// The rate when that became one, "V_d".
    due_rate: Option<Rate>,
    /// Mean of the increments of the rate, "V_e", in bit/s.
    increments: Ewma,
    decay_at: Time,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    /// Events so far, "X_i", less the decayed ones.
    events: f64,
    /// When the latest report was accepted.
    accepted_at: Time,
}

/// The filters' verdict on a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It belongs to an event that is known.
    Known,
    /// A new event, which is not passed on.
    Dropped,
    /// A new event, passed on.
    Passed,
}

const INCREMENT_GAIN: f64 = 0.125;
// Paper gap: D.2 never forgets events, so a receiver that was slow an hour ago would count for ever. As in LE-SBCC
// (paper 000, 2.1.1), a tenth is forgotten every hundred round-trip times.
const KEPT: f64 = 0.9;
const DECAY_AFTER: u64 = 100;
/// A count below this is forgotten altogether.
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

    /// The receiver with the most events.
    pub(super) const fn leader(&self) -> Option<ReceiverId> {
        self.leader
    }

    /// A report from this receiver; `window` is `RTT + 2 sigma`. CI2CE, then MaxLPRF.
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

    /// The rate after a cut from `rate`.
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

    /// The rate grew by this much.
    pub(super) fn on_increment(&mut self, increment: Rate) {
        self.increments.add(increment.bps(), 0.0);
    }

    /// Once per round-trip time: forget a little now and then.
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

    /// This receiver is there no longer.
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
