//! Unicast children of a relay. Each child becomes a branch of a session, and has a place among the session's branches.

use super::registry::Child;
use super::{BranchState, End, RelayState, SessionHandle};
use crate::members::Tally;
#[cfg(any(test, fuzzing))]
use faircast_core::packet::ReceiverId;
#[cfg(any(test, fuzzing))]
use faircast_wire::Attach;
use std::net::SocketAddr;

/// Maximum number of branches of a session, including ended branches that have served a receiver. If this number is reached,
/// further children are refused.
const MAX_PLACES: usize = 4_096;

impl SessionHandle {
    /// Returns children that have attached since the last call and have no branch yet. An active router has no such children,
    /// because it stores no content.
    pub(crate) fn new_children(&self) -> Vec<Child> {
        if self.with_mode(|mode| mode.has_exits()) == Some(true) {
            return Vec::new();
        }
        let asked = self.process.asked();
        let mut passing = self.lock();
        if passing.asked == asked || passing.announce.is_none() || passing.end != End::No {
            return Vec::new();
        }
        passing.asked = asked;
        let mut children = self.process.children();
        passing.forget_served(&children);
        let mut room =
            MAX_PLACES.saturating_sub(passing.branches.iter().filter(|one| !one.is_vacant).count());
        children.retain(|child| {
            let is_taken = room > 0 && passing.is_new(child);
            room -= usize::from(is_taken);
            is_taken
        });
        children
    }

    /// Frees the place of a child whose endpoint has ended.
    pub(crate) fn vacate(&self, place: usize) {
        let mut passing = self.lock();
        let branch = &mut passing.branches[place];
        if branch.is_replaced || branch.tally.receivers == 0 && branch.tally.done == 0 {
            *branch = BranchState { is_vacant: true, is_replaced: true, ..BranchState::default() };
        }
    }

    /// Ends the branch of a child whose place was given to another child.
    pub(super) fn displace(&self, child: SocketAddr) {
        let mut passing = self.lock();
        passing.served.remove(&child);
        passing
            .replace(|branch| branch.to == Some(child) && branch.child.is_some() && branch.invitation == 0);
    }

    /// Frees the place of a child that could not be served. The child may attach again.
    pub(crate) fn not_served(&self, place: usize, child: SocketAddr) {
        let mut passing = self.lock();
        passing.served.remove(&child);
        passing.end_branch(place);
        drop(passing);
        self.vacate(place);
    }

    /// Adds a branch for a child and returns the number of the branch. On this branch, earlier content is sent on request.
    pub(crate) fn add_branch(&self, child: &Child) -> usize {
        let mut passing = self.lock();
        let mut branch = BranchState {
            to: Some(child.address),
            invitation: child.invitation,
            child: Some(child.id),
            ..BranchState::default()
        };
        // Ends the earlier branch of an invited host that was restarted.
        passing.replace(|other| child.invitation != 0 && other.invitation == child.invitation);
        branch.schedule.forget_before(passing.cache.first());
        branch.schedule.on_passed(passing.passed);
        let vacant = passing.branches.iter().position(|other| other.is_vacant);
        let place = vacant.unwrap_or(passing.branches.len());
        match vacant {
            Some(place) => passing.branches[place] = branch,
            None => passing.branches.push(branch),
        }
        place
    }
}

/// For tests and fuzzers.
#[cfg(any(test, fuzzing))]
impl SessionHandle {
    /// Returns the answer of a relay's port to an attach packet.
    pub(crate) fn at_port(
        &self,
        attach: &Attach,
        (from, local): (SocketAddr, SocketAddr),
    ) -> Option<Vec<u8>> {
        self.process.answer_to(attach, (from, local))
    }

    /// Adds branches for new children. Returns the number of each branch, and the child's ID and address.
    pub(crate) fn grown(&self) -> Vec<(usize, ReceiverId, SocketAddr)> {
        let children = self.new_children().into_iter();
        children.map(|child| (self.add_branch(&child), child.id, child.address)).collect()
    }

    /// Returns the number of branches, including ended ones.
    pub(crate) fn places(&self) -> usize {
        self.lock().branches.len()
    }

    /// Sets the maximum number of children.
    pub(crate) fn take_children(&self, most: usize, shown: crate::places::Standing) {
        self.process.take_children(most, shown);
    }
}

impl RelayState {
    /// Whether this child has no branch yet. If an earlier process had the same address, the child must wait until the branch of
    /// that process has ended: the sockets of both branches would have the same addresses.
    fn is_new(&mut self, child: &Child) -> bool {
        if self.served.get(&child.address) == Some(&child.id) {
            return false;
        }
        let waits = self.replace(|other| other.to == Some(child.address) && child.address.port() != 0);
        if waits {
            self.asked = 0; // check again at the next call
            return false;
        }
        self.served.insert(child.address, child.id);
        true
    }

    /// Forgets served children that have stopped attaching and have no branch.
    fn forget_served(&mut self, children: &[Child]) {
        let RelayState { served, branches, .. } = self;
        served.retain(|address, _| {
            let has_branch = |one: &BranchState| !one.is_vacant && one.to == Some(*address);
            children.iter().any(|child| child.address == *address) || branches.iter().any(has_branch)
        });
    }

    /// Ends the branches that `is_meant` selects; returns whether any of them was still active.
    fn replace(&mut self, is_meant: impl Fn(&BranchState) -> bool) -> bool {
        let mut found = false;
        for place in 0..self.branches.len() {
            if !self.branches[place].is_replaced && is_meant(&self.branches[place]) {
                self.end_branch(place);
                found = true;
            }
        }
        found
    }

    /// Ends this branch, which serves no receiver from now on.
    pub(super) fn end_branch(&mut self, place: usize) {
        let branch = &mut self.branches[place];
        (branch.is_replaced, branch.tally, branch.missing) = (true, Tally::default(), None);
        branch.relays.clear();
    }
}
