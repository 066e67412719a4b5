//! Counts of receivers: of one member, of all members of a session, or of all branches of a relay.

use super::{MemberRecord, Pace};
use std::iter::Sum;

/// Counts of receivers, and of the members that report for these receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// Receivers, including those behind relays.
    pub(crate) receivers: u64,
    /// Completed receivers.
    pub(crate) done: u64,
    /// Completed receivers that the source knows by ID.
    pub(crate) known: u64,
    /// Completed receivers that were not reported by ID.
    pub(crate) unnamed: u64,
    /// Incomplete members, including relays, that are neither deferred nor dropped.
    pub(crate) unfinished: u64,
    /// Unfinished members that send and are reached.
    pub(crate) answering: u64,
    /// Answering members that have shown that they receive the source.
    pub(crate) counted_on: u64,
    /// Completed members.
    pub(crate) members_done: u64,
    /// Members that are deferred or dropped.
    pub(crate) set_aside: u64,
}

impl Tally {
    /// Returns the counts of one member.
    fn of(member: &MemberRecord) -> Tally {
        let unfinished = member.pace == Pace::Together && !member.is_finished();
        Tally {
            receivers: member.counted().into(),
            done: member.verified().into(),
            known: member.known_done().into(),
            unnamed: member.unnamed().into(),
            unfinished: unfinished.into(),
            answering: (unfinished && !member.is_mute()).into(),
            counted_on: (unfinished && member.counts()).into(),
            members_done: member.has_all().into(),
            set_aside: member.is_set_aside().into(),
        }
    }

    fn with(self, other: Tally, op: fn(u64, u64) -> u64) -> Tally {
        Tally {
            receivers: op(self.receivers, other.receivers),
            done: op(self.done, other.done),
            known: op(self.known, other.known),
            unnamed: op(self.unnamed, other.unnamed),
            unfinished: op(self.unfinished, other.unfinished),
            answering: op(self.answering, other.answering),
            counted_on: op(self.counted_on, other.counted_on),
            members_done: op(self.members_done, other.members_done),
            set_aside: op(self.set_aside, other.set_aside),
        }
    }

    /// Adds a member.
    pub(super) fn count(&mut self, member: &MemberRecord) {
        *self = self.with(Tally::of(member), |all, one| all + one);
    }

    /// Subtracts a member that was added.
    pub(super) fn discount(&mut self, member: &MemberRecord) {
        *self = self.with(Tally::of(member), |all, one| all - one);
    }

    /// Changes a member that was added.
    pub(super) fn update(&mut self, member: &mut MemberRecord, change: impl FnOnce(&mut MemberRecord)) {
        self.discount(member);
        change(member);
        self.count(member);
    }

    /// Returns the number of receivers whose completion the source does not know by ID, and the number of completed receivers
    /// among them.
    pub(crate) const fn outstanding(&self) -> (u64, u64) {
        (self.receivers - self.known, self.done - self.known)
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(all: I) -> Tally {
        all.fold(Tally::default(), |sum, one| sum.with(one, |sum, one| sum + one))
    }
}
