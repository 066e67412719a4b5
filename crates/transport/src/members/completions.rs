//! Completed receivers behind relays, recorded by ID.
//!
//! The counts of several relays can be added only while each receiver is behind one relay. Suppose that a relay is killed before
//! it confirms a completed receiver. Then the receiver reports again to the relay's next process, and downstream relays continue
//! under that process with all their receivers. So relays report completed receivers by ID ([`Verified`]), and the source counts
//! each ID once.
//!
//! Until the source has confirmed an ID, the relay counts the receiver as outstanding and does not confirm it. So no completion
//! is lost when a process is killed.

use super::{MAX_MEMBERS, MemberRecord, Members};
use faircast_core::packet::ReceiverId;
use faircast_wire::{MemberState, Verified};
use std::collections::BTreeMap;

/// Completed receivers behind relays. Each receiver is stored with the relay that has reported it.
#[derive(Debug, Default)]
pub(super) struct Completions {
    by: BTreeMap<ReceiverId, CompletionReporter>,
    /// At a relay: receivers that have completed since the last call of `Members::take_numbers`.
    fresh: Vec<ReceiverId>,
    /// Whether this is the member set of a relay. If so, a completion counts as known only after the source has confirmed it.
    of_relay: bool,
    /// Whether completed receivers are answered at once, because no parent confirms IDs.
    at_once: bool,
}

/// The relay that last reported a receiver's completion, and whether the source knows this completion.
#[derive(Debug, Clone, Copy)]
struct CompletionReporter {
    relay: ReceiverId,
    known: bool,
}

impl Members {
    /// Creates an empty set of members of a relay.
    pub fn of_relay() -> Members {
        let mut members = Members::default();
        members.report_ids();
        members
    }

    /// Makes this the member set of a relay. Completed receivers are reported to the source by ID, and count as known after the
    /// source has confirmed their IDs.
    pub fn report_ids(&mut self) {
        self.completions.of_relay = true;
    }

    /// Sets whether completed receivers are answered at once, because no parent confirms IDs now.
    pub fn answer_at_once(&mut self, at_once: bool) {
        self.completions.at_once = at_once;
    }

    /// Returns the receivers completed since the last call.
    pub fn take_numbers(&mut self) -> Vec<ReceiverId> {
        std::mem::take(&mut self.completions.fresh)
    }

    /// Returns the relay that last reported this receiver's completion. Returns `None` if the receiver itself has reported its
    /// completion to this member set.
    pub fn reported_by(&self, id: ReceiverId) -> Option<ReceiverId> {
        self.completions.by.get(&id).map(|reporter| reporter.relay)
    }

    /// Handles a relay's report of completed receivers.
    pub fn on_verified(&mut self, reported: &Verified) {
        if self.known.get(&reported.from).is_some_and(|member| member.is_relay) {
            reported.receivers.iter().for_each(|id| self.on_number(*id, reported.from));
        }
    }

    fn on_number(&mut self, id: ReceiverId, by: ReceiverId) {
        // The receiver itself has already reported its completion to this member set.
        if let Some(member) = self.known.get(&id).filter(|member| member.has_number()) {
            if member.is_known || self.completions.at_once {
                self.confirm(id);
            }
            return;
        }
        let is_full = self.completions.by.len() >= MAX_MEMBERS;
        match self.completions.by.get_mut(&id) {
            Some(reporter) => {
                let before = std::mem::replace(reporter, CompletionReporter { relay: by, ..*reporter });
                if before.relay != by {
                    self.count_number(before, -1);
                    self.count_number(CompletionReporter { relay: by, ..before }, 1);
                }
                if before.known || self.completions.at_once {
                    self.confirm(id);
                }
            }
            None if is_full => self.confirm(id), // the completion is not counted
            None => {
                let reporter = CompletionReporter { relay: by, known: !self.completions.of_relay };
                self.completions.by.insert(id, reporter);
                self.count_number(reporter, 1);
                if self.completions.of_relay {
                    self.completions.fresh.push(id);
                }
                if reporter.known || self.completions.at_once {
                    self.confirm(id);
                }
            }
        }
    }

    /// Adds `by` to the number of completions that this relay has reported.
    fn count_number(&mut self, reporter: CompletionReporter, by: i32) {
        let Some(member) = self.known.get_mut(&reporter.relay) else { return };
        self.tally.update(member, |member| {
            member.named = member.named.saturating_add_signed(by);
            if reporter.known {
                member.named_known = member.named_known.saturating_add_signed(by);
            }
        });
    }

    /// Records that a receiver has reported its completion itself. If a relay has reported the same completion, it is not counted
    /// for that relay any longer.
    pub(super) fn on_own_number(&mut self, id: ReceiverId) {
        let reporter = self.completions.by.remove(&id);
        if let Some(reporter) = reporter {
            self.count_number(reporter, -1);
        }
        let is_known = reporter.map_or(!self.completions.of_relay, |reporter| reporter.known);
        self.know(id, is_known);
        if !is_known {
            self.completions.fresh.push(id);
        }
    }

    fn know(&mut self, id: ReceiverId, is_known: bool) {
        let Some(member) = self.known.get_mut(&id) else { return };
        self.tally.update(member, |member| member.is_known = is_known);
    }

    /// Records that the source knows the completion of these receivers. Returns whether any of these receivers waits here for a
    /// confirmation.
    pub fn on_known(&mut self, ids: &[ReceiverId]) -> bool {
        let mut is_news = false;
        for id in ids {
            if self.known.get(id).is_some_and(MemberRecord::has_number) {
                self.know(*id, true);
            } else if let Some(reporter) = self.completions.by.get_mut(id) {
                let before = std::mem::replace(reporter, CompletionReporter { known: true, ..*reporter });
                self.count_number(before, -1);
                self.count_number(CompletionReporter { known: true, ..before }, 1);
            } else {
                continue;
            }
            is_news = true;
            self.confirm(*id);
        }
        is_news
    }

    /// Whether this receiver must wait for its confirmation.
    pub(super) fn is_to_wait(&self, id: ReceiverId) -> bool {
        let waits = |member: &MemberRecord| member.has_number() && !member.is_known;
        self.completions.of_relay && !self.completions.at_once && self.known.get(&id).is_some_and(waits)
    }

    /// Discards the completions reported by a relay that has moved: the relay reports them to its new parent.
    pub(super) fn forget_numbers(&mut self, relay: ReceiverId) {
        self.completions.by.retain(|_, reporter| reporter.relay != relay);
    }
}

impl MemberRecord {
    /// Whether this member is a receiver that has reported its completion itself.
    pub(super) fn has_number(&self) -> bool {
        !self.is_relay && self.state == MemberState::Done && self.receivers == 1
    }

    /// Returns the number of completed receivers that a relay has reported by ID.
    pub fn named(&self) -> u32 {
        self.named
    }

    /// Returns the number of completed receivers of this member that the source knows by ID.
    pub(super) fn known_done(&self) -> u32 {
        if self.is_relay { self.named_known } else { u32::from(self.is_known && self.has_number()) }
    }

    /// Returns the number of completed receivers that were not reported by ID.
    pub(super) fn unnamed(&self) -> u32 {
        if self.has_number() { 0 } else { self.verified().saturating_sub(self.named) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::RELAYS;
    use faircast_core::packet::{Echo, Seq};
    use faircast_core::time::{Span, Time};
    use faircast_wire::{Member, Name, Words};
    use std::net::SocketAddr;

    fn id(number: u64) -> ReceiverId {
        ReceiverId::new(number).expect("not zero")
    }

    fn member_of(number: u64) -> Member {
        Member {
            from: id(number),
            nonce: 1,
            state: MemberState::Receiving,
            reason: RELAYS,
            receivers: 3,
            done: 0,
            verified_bytes: 0,
            resumed_bytes: 0,
            blocks_missing: 1,
            rate: 8e6,
            loss: 0.0,
            dropped_local: 0,
            unwritten_bytes: 0,
            activity: faircast_wire::Activity::Network,
            percent: 0,
            echo: Echo { seq: Seq(1), hold: Span::ZERO },
            host: Name::clipped("relay"),
            why: Words::default(),
        }
    }

    fn report(members: &mut Members, number: u64, (reason, state): (u8, MemberState), receivers: u32) {
        let member = Member { reason, state, receivers, ..member_of(number) };
        let at = SocketAddr::from(([10, 0, 0, 1], 4000));
        members.on_report(&member, number, at, Time::ZERO);
    }

    fn relay(members: &mut Members, number: u64, outstanding: u32) {
        report(members, number, (RELAYS, MemberState::Receiving), outstanding);
    }

    fn confirms(members: &mut Members, from: u64, receivers: &[u64]) -> Vec<u64> {
        while members.has_any_confirmation() {
            confirmed(members);
        }
        let receivers = receivers.iter().map(|number| id(*number)).collect();
        members.on_verified(&Verified { from: id(from), receivers });
        confirmed(members)
    }

    /// Returns the counts in a relay's report to its parent: outstanding receivers, the completed receivers among them, and
    /// completed receivers without an ID.
    fn above(members: &Members) -> (u64, u64, u64) {
        let (outstanding, done) = members.tally().outstanding();
        (outstanding, done, members.tally().unnamed)
    }

    fn confirmed(members: &mut Members) -> Vec<u64> {
        members.take_confirmations(usize::MAX).0.into_iter().map(ReceiverId::get).collect()
    }

    #[test]
    fn receiver_reported_by_two_relay_processes_counts_once() {
        let mut members = Members::default();
        relay(&mut members, 1, 3);
        assert_eq!(confirms(&mut members, 1, &[11, 12]), [11, 12]);
        relay(&mut members, 1, 1);
        assert_eq!((members.receivers(), members.verified()), (3, 2));
        // The relay's next process starts. Receiver 12 has not been confirmed yet, and receiver 13 completes at this process.
        relay(&mut members, 2, 2);
        assert_eq!(confirms(&mut members, 2, &[12, 13]), [12, 13]);
        relay(&mut members, 2, 0);
        assert_eq!((members.receivers(), members.verified()), (3, 3));
        assert_eq!(confirms(&mut members, 1, &[12]), [12], "what is late is answered");
        assert_eq!((members.receivers(), members.verified()), (3, 3));
        // Receiver 13 has joined the source directly in the meantime.
        report(&mut members, 13, (0, MemberState::Done), 1);
        assert_eq!(confirms(&mut members, 2, &[13]), [13]);
        assert_eq!((members.receivers(), members.verified()), (3, 3));
    }

    #[test]
    fn relay_confirms_only_completions_confirmed_by_its_source() {
        let mut members = Members::default();
        members.report_ids();
        relay(&mut members, 1, 2);
        assert!(confirms(&mut members, 1, &[11]).is_empty());
        relay(&mut members, 1, 1);
        report(&mut members, 12, (0, MemberState::Done), 1);
        assert!(confirmed(&mut members).is_empty());
        assert_eq!(members.take_numbers(), [11, 12].map(id));
        assert_eq!(above(&members), (3, 2, 0));
        assert!(members.on_known(&[11, 12, 99].map(id)));
        assert_eq!(confirmed(&mut members), [11, 12]);
        assert_eq!(above(&members), (1, 0, 0));
        assert_eq!(confirms(&mut members, 1, &[11]), [11], "the answer was lost");
        // A relay of an older version reports no IDs, but only the number of completed receivers. No parent confirms IDs now.
        let older = Member { done: 2, ..member_of(3) };
        members.on_report(&older, 1, SocketAddr::from(([10, 0, 0, 3], 4000)), Time::ZERO);
        members.answer_at_once(true);
        assert_eq!(confirms(&mut members, 1, &[14]), [14]);
        assert_eq!(above(&members), (5, 3, 2));
    }

    #[test]
    fn restarted_receiver_behind_a_relay_counts_once_with_first_id() {
        let mut members = Members::of_relay();
        let mut report = |number, state, secs| {
            let host = Name::clipped("lab1");
            let member = Member { reason: 0, state, receivers: 1, host, ..member_of(number) };
            let at = SocketAddr::from(([10, 0, 0, 7], 4000));
            members.on_report(&member, number, at, Time::ZERO + Span::from_secs(secs));
            members.take_numbers()
        };
        assert!(report(11, MemberState::Joined, 0).is_empty());
        assert_eq!(report(11, MemberState::Done, 1), [id(11)]);
        assert!(report(12, MemberState::Joined, 5).is_empty());
        assert!(report(12, MemberState::Done, 6).is_empty());
        assert_eq!(above(&members), (1, 1, 0));
        assert_eq!(confirmed(&mut members), [id(12).get()], "it need not wait for the source");
    }

    #[test]
    fn completions_are_accepted_only_from_relays_and_up_to_a_limit() {
        let mut members = Members::default();
        report(&mut members, 5, (0, MemberState::Receiving), 1);
        assert!(confirms(&mut members, 5, &[11]).is_empty() && confirms(&mut members, 6, &[11]).is_empty());
        relay(&mut members, 1, 0);
        let all: Vec<u64> = (1_000..1_000 + MAX_MEMBERS as u64 + 5).collect();
        all.chunks(1_000).for_each(|part| _ = confirms(&mut members, 1, part));
        assert_eq!(members.verified(), MAX_MEMBERS as u64);
        assert_eq!(confirms(&mut members, 1, &[7]), [7], "it is confirmed and not counted");
    }
}
