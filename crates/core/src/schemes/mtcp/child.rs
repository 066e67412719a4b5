//! A node's record of one of its children.

use super::config::Config;
use super::delay::{RelativeDelay, RoundTrip};
use super::scoreboard::Scoreboard;
use crate::packet::ReceiverId;
use crate::time::{Span, Time};

/// The state of a child at its parent.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) id: ReceiverId,
    pub(super) board: Scoreboard,
    /// One more than the highest packet number that the child has received.
    pub(super) end: u64,
    /// Missing packets below this number count as lost, not as in flight.
    pub(super) lost_to: u64,
    /// Number of missing packets below `lost_to`.
    pub(super) lost: u64,
    /// Start of the child's silence while packets are sent to it.
    pub(super) silent_since: Option<Time>,
    /// The child's group, and whether the child has confirmed it.
    pub(super) group: Group,
    pub(super) is_there: bool,
    /// Number and sending time of the latest unconfirmed order about the child's group. `tell_at` is the time at which the order
    /// is repeated.
    pub(super) reported: Option<(u32, Time)>,
    pub(super) tell_at: Time,
    /// The first packet that the child must have, although the child reported that it began with a later packet.
    pub(super) begins: Option<u64>,
    pub(super) moved_at: Option<Time>,
    /// Relative delays of the packets of each group. The source's clock measures those of the session, the parent's clock those of
    /// the local group.
    delays: [RelativeDelay; 2],
    pub(super) round_trip: RoundTrip,
    /// Number and sending time of the latest unanswered query. `ask_at` is the time of the next query.
    pub(super) asked: Option<(u32, Time)>,
    pub(super) ask_at: Time,
    /// Time at which the child's next report is overdue, if packets are outstanding at the child's descendants.
    pub(super) overdue_at: Time,
    /// The child was queried about late packets below this number. A timeout takes effect only if the query is not answered in
    /// time.
    pub(super) probed_to: u64,
    /// Number of packets that the child has acknowledged in the present round of its group.
    pub(super) acknowledged: u64,
    pub(super) backoff: u32,
    pub(super) summary: Option<Summary>,
    /// Times of the latest slow starts caused by this child.
    pub(super) slow_starts: SlowStarts,
    /// Start of the present period of high delay, and of the present period of low delay.
    pub(super) high_since: Option<Time>,
    pub(super) low_since: Option<Time>,
}

/// The two groups of a node's children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// The session's group: the child receives from the source.
    Session,
    /// The node's local group: the child receives from the node.
    Local,
}

impl Group {
    pub(super) const BOTH: [Group; 2] = [Group::Session, Group::Local];

    /// Returns the number of the group in reports and orders.
    pub(super) const fn number(self) -> u8 {
        self as u8
    }
}

/// The position of a parent in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The root of the tree. Its clock stamps the packets, so relative delays are round-trip times.
    Sender,
    /// A sender's agent.
    Agent,
}

/// The state of the part of the tree below a child.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    /// The smallest window, in packets.
    pub(super) window: f64,
    /// Maximum number of packets below the child's `end` that are in flight to a node of this part of the tree.
    pub(super) transit: u64,
    /// The lowest packet that a node of this part of the tree misses.
    pub(super) low: u64,
}

/// Times of the latest slow starts.
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

    /// Returns the number of slow starts within the last `span`.
    pub(super) fn within(&self, span: Span, now: Time) -> usize {
        let known = &self.at[..self.next.min(self.at.len())];
        known.iter().filter(|at| now.since(**at) <= span).count()
    }

    pub(super) const fn clear(&mut self) {
        self.next = 0;
    }
}

/// Maximum factor by which doublings extend a timeout, as in TCP.
pub(super) const MAX_BACKOFF: u32 = 64;

impl Child {
    /// Creates a child that has all packets below `base`.
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
            delays: [RelativeDelay::new(config.delay_memory), RelativeDelay::new(config.delay_memory)],
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

    /// Returns the relative delays in the child's group.
    pub(super) const fn delay(&self) -> &RelativeDelay {
        &self.delays[self.group as usize]
    }

    pub(super) const fn delay_mut(&mut self) -> &mut RelativeDelay {
        &mut self.delays[self.group as usize]
    }

    /// Moves the child to a group. The minimum delays in both groups remain known (paper 001, 3.2: "the minimum RTD measured over a
    /// long time period").
    pub(super) fn move_to(&mut self, group: Group, now: Time) {
        self.delay_mut().rest();
        self.group = group;
        (self.is_there, self.tell_at, self.moved_at) = (false, now, Some(now));
        (self.high_since, self.low_since, self.backoff) = (None, None, 1);
    }

    /// Records a round trip that a query measured. Its minimum is the minimum delay in the local group.
    pub(super) fn on_round_trip(&mut self, span: Span, now: Time) {
        self.round_trip.sample(span);
        self.delays[Group::Local as usize].note_least(span.as_nanos() as i64, now);
    }

    /// Returns whether the child waits for a retransmission of this packet.
    pub(super) const fn wants(&self, seq: u64) -> bool {
        seq < self.lost_to && !self.board.has(seq)
    }

    /// Records that the child has all packets below `base`; returns the number of new packets.
    pub(super) fn advance(&mut self, base: u64) -> u64 {
        let (new, found) = self.board.advance(base, self.lost_to);
        self.lost = self.lost.saturating_sub(found);
        self.lost_to = self.lost_to.max(self.board.base());
        if self.lost_to == self.board.base() {
            self.lost = 0;
        }
        new
    }

    /// Records that the child has this packet; returns whether it is new.
    pub(super) fn set(&mut self, seq: u64) -> bool {
        let new = self.board.set(seq);
        if new && seq < self.lost_to {
            self.lost = self.lost.saturating_sub(1);
        }
        self.lost_to = self.lost_to.max(self.board.base());
        new
    }

    /// Declares lost, on the path to the child, all missing packets up to and including `seq`.
    pub(super) fn lose(&mut self, seq: u64) {
        let new = (self.lost_to..=seq).filter(|seq| !self.board.has(*seq)).count();
        self.lost += new as u64;
        self.lost_to = self.lost_to.max(seq + 1);
    }

    /// Returns the number of packets below `end` in flight to the child.
    pub(super) fn outstanding(&self, end: u64) -> u64 {
        self.board.missing_below(end).saturating_sub(self.lost)
    }

    /// Returns the lowest packet that the child or a descendant misses.
    pub(super) fn low(&self) -> u64 {
        let own = self.board.base();
        self.summary.map_or(own, |summary| summary.low.min(own))
    }

    /// Returns the lowest packet in flight to the child for the first time. Lost packets are excluded, because the retransmission
    /// window covers them.
    pub(super) fn first_under_way(&self) -> u64 {
        let from = self.lost_to.max(self.board.base());
        (from..self.end).find(|seq| !self.board.has(*seq)).unwrap_or(from.max(self.end))
    }

    /// Returns the lowest packet in flight to the child or to a descendant.
    pub(super) fn under_way(&self) -> u64 {
        let own = self.first_under_way();
        self.summary.map_or(own, |summary| summary.low.min(own))
    }

    /// Returns the number of packets below `end` in flight to the child or to a descendant.
    pub(super) fn transit(&self, end: u64) -> u64 {
        let below = self.summary.map_or(0, |summary| summary.transit + end.saturating_sub(self.end));
        self.outstanding(end).max(below)
    }

    /// Returns the number of packets below `end` in flight, minus `end`. This difference is the same for every `end` from the
    /// second returned value on.
    pub(super) fn transit_behind(&self) -> (i64, u64) {
        let known = self.board.base() + u64::from(self.board.above()) + self.lost;
        let own = -(known as i64);
        let below = self.summary.map(|summary| summary.transit as i64 - self.end as i64);
        (own.max(below.unwrap_or(own)), self.end.max(self.board.end()))
    }

    /// Returns the time of the next query to the child.
    pub(super) fn asks_at(&self, role: Role) -> Time {
        match role {
            // At the sender, relative delays are round-trip times.
            Role::Sender => self.overdue_at,
            Role::Agent => self.ask_at.min(self.overdue_at),
        }
    }

    /// Handles a report in which the child misses more packets than before, from `base` on. The child has new descendants, or its
    /// descendants need more packets.
    pub(super) fn fall_back(&mut self, base: u64) {
        let before = std::mem::replace(&mut self.board, Scoreboard::new(base));
        for seq in (before.base()..self.end).filter(|seq| before.has(*seq)) {
            self.board.set(seq);
        }
        self.lost_to = self.lost_to.max(before.base());
        self.lost = (base..self.lost_to).filter(|seq| !self.board.has(*seq)).count() as u64;
    }

    /// Orders the child to get all packets from `from` on, if the child began with a later packet.
    pub(super) fn begin(&mut self, from: u64, now: Time) {
        if from < self.board.base() {
            (self.begins, self.tell_at) = (Some(from), now);
        }
    }

    /// Returns whether packets are outstanding at the child's descendants, according to the latest summary.
    pub(super) fn has_outstanding_below(&self) -> bool {
        self.summary.is_some_and(|it| it.transit > 0 || it.low < self.end)
    }

    /// Records a report of the child. The child counts as silent from now on if it still waits for packets below `end`.
    pub(super) fn receive(&mut self, end: u64, now: Time) {
        self.silent_since = if self.board.base() < end { Some(now) } else { None };
    }

    /// Checks that the count of lost packets agrees with the missing packets.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let missing = (self.board.base()..self.lost_to).filter(|seq| self.wants(*seq)).count() as u64;
        assert_eq!(self.lost, missing, "{self:?}");
    }
}
