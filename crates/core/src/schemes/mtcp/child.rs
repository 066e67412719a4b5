//! A node's record of one of its children.

use super::config::Config;
use super::delay::{RelativeDelay, RoundTrip};
use super::scoreboard::Scoreboard;
use crate::packet::ReceiverId;
use crate::time::{Span, Time};

/// A child, as its parent sees it.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) id: ReceiverId,
    pub(super) board: Scoreboard,
    /// One more than the highest packet that it has.
    pub(super) end: u64,
    /// Missing packets below this are requested, and not in flight any more.
    pub(super) lost_to: u64,
    /// How many packets that are.
    pub(super) lost: u64,
    /// The beginning of its silence while packets leave for it.
    pub(super) silent_since: Option<Time>,
    /// Its group, and whether it has confirmed that itself.
    pub(super) group: Group,
    pub(super) is_there: bool,
    /// The latest order about that, and the time of its repetition.
    pub(super) reported: Option<(u32, Time)>,
    pub(super) tell_at: Time,
    /// The first packet that it is to have, although it reported a later one.
    pub(super) begins: Option<u64>,
    pub(super) moved_at: Option<Time>,
    pub(super) delay: RelativeDelay,
    pub(super) round_trip: RoundTrip,
    /// The latest question, until it is answered.
    pub(super) asked: Option<(u32, Time)>,
    pub(super) ask_at: Time,
    /// When its next report is overdue, while packets are outstanding below it.
    pub(super) overdue_at: Time,
    /// It was asked about late packets below this one, and its answer is awaited before a timeout counts.
    pub(super) probed_to: u64,
    /// Packets acknowledged in this round of its group.
    pub(super) acknowledged: u64,
    pub(super) backoff: u32,
    pub(super) summary: Option<Summary>,
    /// When it caused slow starts, the latest ones.
    pub(super) slow_starts: SlowStarts,
    /// Since when its delay is high, or low.
    pub(super) high_since: Option<Time>,
    pub(super) low_since: Option<Time>,
}

/// To which of the two groups of a node a child belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// The session's: it receives from the source.
    Session,
    /// The node's own: it receives from the node.
    Local,
}

impl Group {
    pub(super) const BOTH: [Group; 2] = [Group::Session, Group::Local];

    /// The number in reports and orders.
    pub(super) const fn number(self) -> u8 {
        self as u8
    }
}

/// Where a parent stands in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The root: packets leave here, so relative delays are round trips.
    Sender,
    /// A sender's agent.
    Agent,
}

/// How the part of the tree below a child stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    /// The smallest window, in packets.
    pub(super) window: f64,
    /// Most packets under way, when the child had received all below its `end`.
    pub(super) transit: u64,
    /// The lowest packet that is missing somewhere.
    pub(super) low: u64,
}

/// Moments of the latest slow starts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SlowStarts {
    at: [Time; 8],
    next: usize,
}

impl SlowStarts {
    pub(super) const fn add(&mut self, now: Time) {
        self.at[self.next % self.at.len()] = now;
        self.next += 1;
    }

    /// How many there were within this time.
    pub(super) fn within(&self, span: Span, now: Time) -> usize {
        let known = &self.at[..self.next.min(self.at.len())];
        known.iter().filter(|at| now.since(**at) <= span).count()
    }

    pub(super) const fn clear(&mut self) {
        self.next = 0;
    }
}

/// No timeout is doubled more often (TCP's).
pub(super) const MAX_BACKOFF: u32 = 64;

impl Child {
    /// One that has everything below `base`.
    pub(super) fn new(id: ReceiverId, base: u64, config: &Config, now: Time) -> Child {
        Child {
            id,
            board: Scoreboard::new(base),
            end: base,
            lost_to: base,
            lost: 0,
            silent_since: None,
            group: Group::Session,
            is_there: true,
            reported: None,
            tell_at: Time::NEVER,
            begins: None,
            moved_at: None,
            delay: RelativeDelay::new(config.delay_memory),
            round_trip: RoundTrip::default(),
            asked: None,
            ask_at: now,
            overdue_at: Time::NEVER,
            probed_to: 0,
            acknowledged: 0,
            backoff: 1,
            summary: None,
            slow_starts: SlowStarts::default(),
            high_since: None,
            low_since: None,
        }
    }

    /// Whether it waits for this packet to be sent again.
    pub(super) const fn wants(&self, seq: u64) -> bool {
        seq < self.lost_to && !self.board.has(seq)
    }

    /// Everything below `base` has arrived there; how many packets are new.
    pub(super) fn advance(&mut self, base: u64) -> u64 {
        let (new, found) = self.board.advance(base, self.lost_to);
        self.lost = self.lost.saturating_sub(found);
        self.lost_to = self.lost_to.max(self.board.base());
        if self.lost_to == self.board.base() {
            self.lost = 0;
        }
        new
    }

    /// The packet has arrived there; whether that is news.
    pub(super) fn set(&mut self, seq: u64) -> bool {
        let new = self.board.set(seq);
        if new && seq < self.lost_to {
            self.lost = self.lost.saturating_sub(1);
        }
        self.lost_to = self.lost_to.max(self.board.base());
        new
    }

    /// Declares its missing packets up to this one lost on the path to it.
    pub(super) fn lose(&mut self, seq: u64) {
        let new = (self.lost_to..=seq).filter(|seq| !self.board.has(*seq)).count();
        self.lost += new as u64;
        self.lost_to = self.lost_to.max(seq + 1);
    }

    /// Packets below `end` that are on their way to it.
    pub(super) fn outstanding(&self, end: u64) -> u64 {
        self.board.missing_below(end).saturating_sub(self.lost)
    }

    /// The lowest packet that it or a descendant misses.
    pub(super) fn low(&self) -> u64 {
        let own = self.board.base();
        self.summary.map_or(own, |summary| summary.low.min(own))
    }

    /// The lowest packet that is on its way to it for the first time. A lost packet is not: the retransmission window has it.
    pub(super) fn first_under_way(&self) -> u64 {
        let from = self.lost_to.max(self.board.base());
        (from..self.end).find(|seq| !self.board.has(*seq)).unwrap_or(from.max(self.end))
    }

    /// The same, to it or to a descendant.
    pub(super) fn under_way(&self) -> u64 {
        let own = self.first_under_way();
        self.summary.map_or(own, |summary| summary.low.min(own))
    }

    /// Packets below `end` that are in flight to it or to a descendant.
    pub(super) fn transit(&self, end: u64) -> u64 {
        let below = self.summary.map_or(0, |summary| summary.transit + end.saturating_sub(self.end));
        self.outstanding(end).max(below)
    }

    /// The same less `end`, and the least `end` for which that holds.
    pub(super) fn transit_behind(&self) -> (i64, u64) {
        let known = self.board.base() + u64::from(self.board.above()) + self.lost;
        let own = -(known as i64);
        let below = self.summary.map(|summary| summary.transit as i64 - self.end as i64);
        (own.max(below.unwrap_or(own)), self.end.max(self.board.end()))
    }

    /// When it is asked next.
    pub(super) fn asks_at(&self, role: Role) -> Time {
        match role {
            // Relative delays are round trips at the sender.
            Role::Sender => self.overdue_at,
            Role::Agent => self.ask_at.min(self.overdue_at),
        }
    }

    /// It misses more than it reported before, down to `base`: it has taken on others, or their needs.
    pub(super) fn fall_back(&mut self, base: u64) {
        let before = std::mem::replace(&mut self.board, Scoreboard::new(base));
        for seq in (before.base()..self.end).filter(|seq| before.has(*seq)) {
            self.board.set(seq);
        }
        self.lost_to = self.lost_to.max(before.base());
        self.lost = (base..self.lost_to).filter(|seq| !self.board.has(*seq)).count() as u64;
    }

    /// Orders it to have everything from this packet on, if it began later.
    pub(super) fn begin(&mut self, from: u64, now: Time) {
        if from < self.board.base() {
            (self.begins, self.tell_at) = (Some(from), now);
        }
    }

    /// Returns whether its latest summary has packets outstanding below it.
    pub(super) fn has_outstanding_below(&self) -> bool {
        self.summary.is_some_and(|it| it.transit > 0 || it.low < self.end)
    }

    /// A report of it has arrived, and it may wait for packets below `end`.
    pub(super) fn receive(&mut self, end: u64, now: Time) {
        self.silent_since = if self.board.base() < end { Some(now) } else { None };
    }

    /// Counts of lost packets must agree with the missing ones.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let missing = (self.board.base()..self.lost_to).filter(|seq| self.wants(*seq)).count() as u64;
        assert_eq!(self.lost, missing, "{self:?}");
    }
}
