//! Congestion localization: children with persistent congestion receive from their parent instead of the source (paper 001, 3.2).

use super::child::{Child, Group, Role};
use super::config::{Localize, Repair};
use super::parent::Parent;
use super::scoreboard::Scoreboard;
use super::window::Window;
use crate::node::{Effects, To};
use crate::packet::Flags;
use crate::time::{Span, Time};

/// Minimum interval between two packets to the local group.
pub(super) const MIN_GAP: Span = Span::from_micros(50);
/// Maximum difference, in packets, at which the session's window and the window of this part of the tree count as equal.
const EQUAL: f64 = 1.0;

impl Parent {
    /// Moves children with persistent congestion to the local group, and moves recovered children back to the session's group.
    pub(super) fn localize(&mut self, now: Time) {
        if self.config.localize == Localize::Off || self.config.repair == Repair::Session {
            return;
        }
        self.watch_delays(now);
        self.bring_back(now);
        let congested = |child: &Child| child.group == Group::Session && self.is_congested(child, now);
        let places: Vec<usize> =
            (0..self.children.len()).filter(|at| congested(&self.children[*at])).collect();
        // The source keeps a child in the session's group: the rate of a session without receivers would have no limit.
        let stays = self.role == Role::Sender && places.len() == self.of(Group::Session).count();
        if !places.is_empty() && !stays {
            self.move_away(&places, now);
        }
    }

    /// Updates the start times of high and low delay. The delay of the session's packets up to this node is not the child's: that
    /// path is the parent's to judge.
    fn watch_delays(&mut self, now: Time) {
        let (local, own) = (self.config.local, self.own_queueing());
        for child in self.children.each_aside() {
            let Some(queueing) = child.delay().queueing() else { continue };
            let queueing = queueing - if child.group == Group::Session { own } else { 0.0 };
            let round = child.round_trip.mean().map_or(0.0, Span::as_secs_f64);
            let high = local.high.as_secs_f64().max(local.high_part * round);
            let low = high * local.low_part;
            let since = |old: Option<Time>, holds: bool| if holds { old.or(Some(now)) } else { None };
            child.high_since = since(child.high_since, queueing > high);
            child.low_since = since(child.low_since, queueing < low);
        }
    }

    fn is_congested(&self, child: &Child, now: Time) -> bool {
        let local = self.config.local;
        if child.moved_at.is_some_and(|at| now.since(at) < local.again) {
            return false;
        }
        let often = child.slow_starts.within(local.within, now) >= usize::from(local.slow_starts);
        let limits = self.min_window() <= self.session_window + EQUAL;
        let slow = child.high_since.is_some_and(|since| now.since(since) >= local.hold) && limits;
        match self.config.localize {
            Localize::Off => false,
            Localize::SlowStarts => often,
            Localize::Delay => slow,
            Localize::Either => often || slow,
        }
    }

    pub(super) fn move_away(&mut self, places: &[usize], now: Time) {
        let is_new = !self.has(Group::Local);
        let first = places.iter().map(|place| self.children[*place].board.base()).min().unwrap_or(self.end);
        let size = self.window().size();
        if is_new {
            let half = (size / 2.0).max(2.0);
            let local = &mut self.groups[Group::Local as usize];
            local.window = Window::new(half, half, first, now);
            (local.acknowledged, self.next_local) = (first, first);
            local.repairs.clear();
        } else {
            self.next_local = self.next_local.min(first.max(self.store.first()));
        }
        for place in places {
            let mut child = self.children.edit(*place);
            child.move_to(Group::Local, now);
            (child.lost_to, child.lost) = (child.board.base(), 0);
            child.slow_starts.clear();
            self.moves += 1;
        }
        self.local_at = now;
        self.regroup(now);
    }

    /// Moves children back to the session's group after a long period of short queues without backlog. The window of the
    /// session's group restarts in slow start.
    fn bring_back(&mut self, now: Time) {
        let local = self.config.local;
        let (end, store) = (self.end, u64::from(self.config.store));
        let recovered = |child: &Child| {
            child.group == Group::Local
                && child.is_there
                && child.low_since.is_some_and(|since| now.since(since) >= local.recover)
                && child.moved_at.is_none_or(|at| now.since(at) >= local.recover)
                // Paper gap: delays alone are insufficient for a group that is sent at a separate rate. A child that falls behind
                // would return and be moved again.
                && end.saturating_sub(child.board.base()) < (store / 4).min(Scoreboard::SPAN / 2)
        };
        let threshold = self.groups[Group::Local as usize].window.size();
        let mut any = false;
        for place in 0..self.children.len() {
            if !recovered(&self.children[place]) {
                continue;
            }
            any = true;
            let mut child = self.children.edit(place);
            child.move_to(Group::Session, now);
            if end > 0 {
                child.lose(end - 1);
            }
            let missing: Vec<u64> = (child.board.base()..end).filter(|seq| child.wants(*seq)).collect();
            for seq in missing.into_iter().filter(|seq| self.store.get(*seq).is_some()) {
                self.groups[Group::Session as usize].repairs.ask(seq);
            }
        }
        if any {
            self.groups[Group::Session as usize].window.restart(threshold);
            self.regroup(now);
        }
    }

    /// Sends the next packet to the local group, if the window of this group allows it.
    pub(super) fn forward(&mut self, now: Time, effects: &mut Effects) {
        if self.local_at > now {
            return;
        }
        self.local_at = Time::NEVER;
        if !self.has(Group::Local) {
            return;
        }
        if !self.of(Group::Local).any(|child| child.is_there) {
            self.local_at = now + self.config.local.check; // until they say that they are there
            return;
        }
        // Packets that all children of the group have are skipped.
        let next = self.of(Group::Local).map(|child| child.board.base()).min().unwrap_or(self.next_local);
        self.next_local = self.next_local.max(next).max(self.store.first());
        while self.next_local < self.end
            && self.of(Group::Local).all(|child| child.board.has(self.next_local))
        {
            self.next_local += 1;
        }
        self.pass_over(now);
        let seq = self.next_local;
        if seq >= self.end || self.store.get(seq).is_none() {
            self.local_at = if seq < self.end { now + self.config.local.check } else { Time::NEVER };
            return;
        }
        let out = self.of(Group::Local).map(|child| child.outstanding(seq)).max().unwrap_or(0);
        let size = self.groups[Group::Local as usize].window.size();
        if (out as f64) + 1.0 > size {
            return;
        }
        if let Some(slot) = self.store.get_mut(seq) {
            slot.local_at = now;
        }
        self.next_local += 1;
        self.send_data(To::Group, Group::Local, seq, Flags::default(), now, effects);
        let round = self.round_trip(Group::Local).unwrap_or(Span::ZERO);
        self.local_at = now + round.scaled(0.5 / size.max(1.0)).max(MIN_GAP);
    }

    /// Schedules sending to the local group after a packet has arrived.
    pub(super) fn wake_local(&mut self, now: Time) {
        if self.local_at.is_never() && self.has(Group::Local) {
            self.local_at = now;
        }
    }
}
