//! Numbers of receivers: of one member, of all members of a session, or of all branches of a relay.

use super::{MemberRecord, Pace};
use std::iter::Sum;

/// Numbers of receivers, and of the members that speak for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// Receivers, those behind relays included.
    pub(crate) receivers: u64,
    /// Receivers that have everything.
    pub(crate) done: u64,
    /// Receivers among the done that the source knows by number.
    pub(crate) known: u64,
    /// Receivers among the done whose numbers have not been reported.
    pub(crate) unnamed: u64,
    /// Members, relays included, that are served with the others and lack something.
    pub(crate) unfinished: u64,
    /// Members among the unfinished that send and are reached.
    pub(crate) answering: u64,
    /// Members among the answering that have shown that they receive the source.
    pub(crate) counted_on: u64,
    /// Members that have everything.
    pub(crate) members_done: u64,
    /// Members that are deferred or dropped.
    pub(crate) set_aside: u64,
}

impl Tally {
    /// The numbers of one member.
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

    /// Receivers that the source does not know by number to be done, and those among them that have everything.
    pub(crate) const fn outstanding(&self) -> (u64, u64) {
        (self.receivers - self.known, self.done - self.known)
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(all: I) -> Tally {
        all.fold(Tally::default(), |sum, one| sum.with(one, |sum, one| sum + one))
    }
}
