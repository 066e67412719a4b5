//! Timeouts of a parent: packets that children did not acknowledge in time, and silent children (paper 001, 3.1).

use super::child::{Child, Group, MAX_BACKOFF};
use super::config::Repair;
use super::parent::Parent;
use crate::time::Time;

/// Minimum number of timeouts that must have passed before a silent child is given up.
const TIMEOUTS: u64 = 3;

impl Parent {
    /// Returns the time at which the earliest timer of a child expires.
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

    /// Returns the time at which the first packet is repeated for announced children that have not reported.
    fn calls_at(&self) -> Time {
        if self.is_calling || self.end == 0 || !self.waits_for_children() {
            return Time::NEVER;
        }
        self.started_at + self.config.first_timeout
    }

    /// Repeats the first packet for announced children that have not reported, if the retransmission window allows it. These
    /// children may have lost the packet; before their first packet they cannot request it.
    pub(super) fn call_missing(&mut self, now: Time) {
        if self.calls_at() <= now {
            self.is_calling = true;
            self.groups[Group::Session as usize].repairs.ask(self.store.first());
        }
    }

    /// Returns the packet of this group that is repeated for announced children that have not reported.
    pub(super) fn called(&self, group: Group) -> Option<u64> {
        let is_called = group == Group::Session && self.is_calling && self.waits_for_children();
        is_called.then(|| self.store.first())
    }

    /// Returns the first packet that this child has not acknowledged, and the time at which it is late.
    fn late(&self, child: &Child) -> Option<(u64, Time)> {
        let end = if child.group == Group::Local { self.next_local } else { self.end };
        let first = child.lost_to.max(child.board.base());
        let sent = |seq: u64| {
            let slot = self.store.get(seq).filter(|_| !child.board.has(seq))?;
            match child.group {
                Group::Session => Some((seq, slot.sent_at, slot.here_at)),
                // The packet may have been skipped because all members of the local group had it.
                Group::Local if slot.local_at.is_never() => None,
                Group::Local => Some((seq, Some(slot.local_at), slot.local_at)),
            }
        };
        let (seq, sent_at, here_at) = (first..end).find_map(sent)?;
        let round_trip = child.round_trip.timeout(&self.config);
        let late = sent_at.and_then(|at| child.delay().late(at, &self.config, child.backoff));
        let late = late.unwrap_or_else(|| {
            // For a repeated packet there is no relative delay. The round-trip time to the child is used instead (paper 001,
            // 3.1).
            let is_known = child.round_trip.samples() > 0;
            let timeout = if is_known { round_trip } else { self.config.first_timeout };
            here_at + self.config.doubled(timeout, child.backoff)
        });
        Some((seq, if seq < child.probed_to { late + round_trip } else { late }))
    }

    /// Handles a packet that a child did not acknowledge in time. In a tree the child is first queried, as by the probes of RFC
    /// 8985, 7. Without the query, each lost acknowledgement would restart the whole session, and in a large group some
    /// acknowledgement is always lost.
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
                self.charge(place, seq, now);
                let mut child = self.children.edit(place);
                child.backoff = (child.backoff * 2).min(MAX_BACKOFF);
                if self.config.repair == Repair::Session {
                    // Acknowledgements of packets in flight no longer open the window.
                    let it = &mut self.groups[group as usize];
                    it.acknowledged = it.acknowledged.max(next);
                }
            }
            self.losses += 1;
            match self.config.repair {
                // No packet counts as in flight after a timeout, as in TCP. An agent whose store was full has nothing new to
                // report, so the parent cannot wait for its acknowledgement.
                Repair::Session => {
                    let mut child = self.children.edit(place);
                    child.advance(next);
                    child.end = child.end.max(next);
                }
                Repair::Tree => self.miss(place, seq),
            }
        }
    }

    /// Charges a slow start to the child of the group that misses the most packets up to `seq`, unless this node missed the packet as
    /// well: then the path to this node is congested. `place` is the child whose timer expired.
    fn charge(&mut self, place: usize, seq: u64, now: Time) {
        let group = self.children[place].group;
        let is_upstream =
            group == Group::Session && self.store.get(seq).is_none_or(|slot| slot.sent_at.is_none());
        if is_upstream {
            return;
        }
        let missing = |place: &usize| self.children[*place].board.missing_below(seq + 1);
        let places = (0..self.children.len()).filter(|at| self.children[*at].group == group);
        let most = places.max_by_key(|at| (missing(at), *at == place)).unwrap_or(place);
        self.children.edit(most).slow_starts.add(now);
    }

    /// Removes children that have been silent for too long.
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
    /// Checks that the values stored for all children together agree with the values of each child.
    pub(super) fn check(&self) {
        self.children.check(self.end);
        for (place, child) in self.children.iter().enumerate().filter(|_| !self.has(Group::Local)) {
            if let Some(known) = self.children.known_late(place) {
                assert_eq!(known, self.late(child).map_or(Time::NEVER, |(_, at)| at));
            }
        }
    }
}
