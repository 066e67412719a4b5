//! Timeouts of a parent: packets that children did not acknowledge in time, and children that are silent (paper 001, 3.1).

use super::child::{Child, Group, MAX_BACKOFF};
use super::config::Repair;
use super::parent::Parent;
use crate::time::Time;

/// A silent child is not given up before this many of its timeouts could have passed.
const TIMEOUTS: u64 = 3;

impl Parent {
    /// When the earliest timer of a child expires.
    pub(super) fn next_timer(&mut self) -> Time {
        if self.has(Group::Local) {
            self.children.all_stale(); // what was forwarded to them is late later
        }
        self.refresh_late();
        self.children.late().min(self.calls_at())
    }

    fn refresh_late(&mut self) {
        while let Some(place) = self.children.next_stale() {
            let late = self.late(&self.children[place]);
            self.children.set_late(place, late.map_or(Time::NEVER, |(_, at)| at));
        }
    }

    /// Declares packets lost that children did not acknowledge in time.
    pub(super) fn time_out_all(&mut self, now: Time) {
        self.next_timer();
        while let Some(place) = self.children.first_late(now) {
            self.time_out(place, now);
            self.children.note_stale(place);
            self.refresh_late();
        }
    }

    /// When the first packet is sent again for children that are missing.
    fn calls_at(&self) -> Time {
        if self.is_calling || self.end == 0 || !self.waits_for_children() {
            return Time::NEVER;
        }
        self.started_at + self.config.first_timeout
    }

    /// Children that are missing may have lost the first packet, so they cannot ask for it. The retransmission window repeats it.
    pub(super) fn call_missing(&mut self, now: Time) {
        if self.calls_at() <= now {
            self.is_calling = true;
            self.groups[Group::Session as usize].repairs.ask(self.store.first());
        }
    }

    /// The packet of this group that is sent again for children that are missing.
    pub(super) fn called(&self, group: Group) -> Option<u64> {
        let is_called = group == Group::Session && self.is_calling && self.waits_for_children();
        is_called.then(|| self.store.first())
    }

    /// The first packet whose acknowledgement by this child is awaited, and when it is late.
    fn late(&self, child: &Child) -> Option<(u64, Time)> {
        let end = if child.group == Group::Local { self.next_local } else { self.end };
        let first = child.lost_to.max(child.board.base());
        let sent = |seq: u64| {
            let slot = self.store.get(seq).filter(|_| !child.board.has(seq))?;
            match child.group {
                Group::Session => Some((seq, slot.sent_at, slot.here_at)),
                // Some may have been skipped, for all who were in the group had them.
                Group::Local if slot.local_at.is_never() => None,
                Group::Local => Some((seq, Some(slot.local_at), slot.local_at)),
            }
        };
        let (seq, sent_at, here_at) = (first..end).find_map(sent)?;
        let round_trip = child.round_trip.timeout(&self.config);
        let late = sent_at.and_then(|at| child.delay.late(at, &self.config, child.backoff));
        let late = late.unwrap_or_else(|| {
            // A packet that came here again has no relative delay: round trips are measured for these (paper 001, 3.1).
            let is_known = child.round_trip.samples() > 0;
            let timeout = if is_known { round_trip } else { self.config.first_timeout };
            here_at + self.config.doubled(timeout, child.backoff)
        });
        Some((seq, if seq < child.probed_to { late + round_trip } else { late }))
    }

    /// A packet that a child did not acknowledge in time is lost. In a tree the child is asked first, as by the probes of RFC 8985, 7:
    /// in a large group some acknowledgement is always lost, and each one would start the whole session again.
    fn time_out(&mut self, place: usize, now: Time) {
        while let Some((seq, at)) = self.late(&self.children[place])
            && at <= now
        {
            let group = self.children[place].group;
            let next = if group == Group::Local { self.next_local } else { self.end };
            let mut child = self.children.edit(place);
            if self.config.repair == Repair::Tree && seq >= child.probed_to {
                (child.probed_to, child.overdue_at) = (next, now);
                continue;
            }
            drop(child);
            if self.groups[group as usize].window.on_timeout(seq, next) {
                let mut child = self.children.edit(place);
                child.slow_starts.add(now);
                child.backoff = (child.backoff * 2).min(MAX_BACKOFF);
                if self.config.repair == Repair::Session {
                    // Nothing that is out opens the window any more.
                    let it = &mut self.groups[group as usize];
                    it.acknowledged = it.acknowledged.max(next);
                }
            }
            self.losses += 1;
            match self.config.repair {
                // Packets in flight do not count any more, as in TCP: an agent whose store was full has nothing new to report.
                Repair::Session => {
                    let mut child = self.children.edit(place);
                    child.advance(next);
                    child.end = child.end.max(next);
                }
                Repair::Tree => self.miss(place, seq),
            }
        }
    }

    /// Gives up children that have been silent for too long.
    pub(super) fn give_up_the_silent(&mut self, now: Time) {
        let (end, silence) = (self.end, self.config.silence);
        let next_local = self.next_local;
        let config = self.config;
        let gone = |child: &Child| {
            let sent = if child.group == Group::Local { next_local } else { end };
            let patience = silence.max(child.round_trip.timeout(&config) * TIMEOUTS);
            child.board.base() < sent && child.silent_since.is_some_and(|since| now.since(since) > patience)
        };
        while let Some(child) = self.children.iter().find(|child| gone(child)) {
            let id = child.id;
            self.forget(id, now);
        }
        if self.waits_for_children() && now.since(self.started_at) > silence {
            self.expected = self.children.len();
            self.regroup(now);
        }
    }
}

#[cfg(test)]
impl Parent {
    /// Values stored of all children must be those of each.
    pub(super) fn check(&self) {
        self.children.check(self.end);
        for (place, child) in self.children.iter().enumerate().filter(|_| !self.has(Group::Local)) {
            if let Some(known) = self.children.known_late(place) {
                assert_eq!(known, self.late(child).map_or(Time::NEVER, |(_, at)| at));
            }
        }
    }
}
