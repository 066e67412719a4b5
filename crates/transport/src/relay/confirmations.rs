//! IDs of completed downstream receivers. A relay reports each ID to its parent until the parent confirms it.

use crate::members::Tally;
use faircast_core::packet::ReceiverId;
use std::collections::BTreeSet;
use std::ops::Bound;

/// Maximum number of receivers reported by ID. Further receivers are neither reported nor counted.
const MAX_IDS: usize = 200_000;

/// Completed receivers, grouped by the state of their report to the parent.
#[derive(Debug, Default)]
pub(super) struct Confirmations {
    /// Receivers that were not reported yet.
    unreported: BTreeSet<ReceiverId>,
    /// Receivers that were reported, but not confirmed.
    reported: BTreeSet<ReceiverId>,
    /// Confirmed receivers.
    known: BTreeSet<ReceiverId>,
    /// Receiver whose report was repeated last.
    again: Option<ReceiverId>,
    /// Whether the parent confirms IDs; `None` before the first status of the parent.
    pub(super) confirms: Option<bool>,
}

impl Confirmations {
    /// Adds a completed receiver; returns whether it is already confirmed or needs no confirmation.
    pub(super) fn add(&mut self, id: ReceiverId) -> bool {
        let is_known = self.known.contains(&id);
        if is_known || self.reported.contains(&id) {
            return is_known;
        }
        if self.unreported.len() + self.reported.len() + self.known.len() >= MAX_IDS {
            return true;
        }
        self.unreported.insert(id);
        false
    }

    /// Records whether the parent confirms IDs, and which IDs the parent has confirmed. Returns the newly confirmed IDs.
    pub(super) fn on_confirmed(&mut self, confirms: bool, ids: &[ReceiverId]) -> Vec<ReceiverId> {
        self.confirms = Some(confirms);
        if confirms { self.confirm(ids) } else { Vec::new() }
    }

    /// Returns two counts to report to the parent: receivers whose completion the source does not know by ID, and completed
    /// receivers. If the parent confirms IDs, the second count excludes receivers that are reported by ID.
    pub(super) fn outstanding(&self, below: Tally) -> (u64, u64) {
        let (outstanding, done) = below.outstanding();
        (outstanding, if self.confirms == Some(false) { done } else { below.unnamed })
    }

    /// Returns up to `most` receivers to report now, if the parent confirms IDs.
    pub(super) fn due(&mut self, most: usize) -> Vec<ReceiverId> {
        if self.confirms == Some(true) { self.next(most) } else { Vec::new() }
    }

    /// Marks receivers as confirmed; returns those that were not confirmed before.
    fn confirm(&mut self, ids: &[ReceiverId]) -> Vec<ReceiverId> {
        let was_open = |id: &&ReceiverId| self.reported.remove(id) || self.unreported.remove(id);
        let confirmed: Vec<ReceiverId> = ids.iter().filter(was_open).copied().collect();
        self.known.extend(&confirmed);
        confirmed
    }

    /// Returns up to `most` receivers to report now. Unreported receivers come first; then reports are repeated in turn.
    fn next(&mut self, most: usize) -> Vec<ReceiverId> {
        let mut next: Vec<ReceiverId> = self.unreported.iter().take(most).copied().collect();
        let from = self.again.map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.reported.range((from, Bound::Unbounded));
        let sooner = self.reported.iter().take_while(|id| self.again.is_some_and(|again| **id <= again));
        let again: Vec<ReceiverId> = later.chain(sooner).take(most - next.len()).copied().collect();
        self.again = again.last().copied().or(self.again);
        for id in &next {
            self.unreported.remove(id);
            self.reported.insert(*id);
        }
        next.extend(again);
        next
    }

    /// Whether a completed receiver has not yet been reported by ID.
    pub(super) fn has_unsent(&self) -> bool {
        self.confirms == Some(true) && !self.unreported.is_empty()
    }

    /// Whether a receiver still waits for its confirmation.
    pub(super) fn waits(&self) -> bool {
        self.confirms != Some(false) && !(self.unreported.is_empty() && self.reported.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> ReceiverId {
        ReceiverId::new(number).expect("not zero")
    }

    #[test]
    fn completion_ids_are_reported_in_turn_until_confirmed() {
        let mut numbers = Confirmations { confirms: Some(true), ..Confirmations::default() };
        assert!((1..=5).all(|number| !numbers.add(id(number))));
        assert!(numbers.has_unsent());
        assert_eq!(numbers.next(3), [1, 2, 3].map(id));
        assert_eq!(numbers.next(3), [4, 5, 1].map(id));
        assert!(!numbers.has_unsent() && numbers.waits());
        assert_eq!(numbers.confirm(&[2, 9, 4].map(id)), [2, 4].map(id), "nobody has told of the ninth");
        assert_eq!(numbers.next(2), [3, 5].map(id));
        assert_eq!(numbers.next(2), [1, 3].map(id));
        assert!(numbers.add(id(2)), "that one is known");
        assert_eq!(numbers.confirm(&[1, 2, 3, 5].map(id)), [1, 3, 5].map(id));
        assert!(!numbers.waits() && numbers.next(3).is_empty());
    }

    #[test]
    fn number_of_stored_completion_ids_is_bounded() {
        let mut numbers = Confirmations::default();
        (1..=MAX_IDS as u64).for_each(|number| _ = numbers.add(id(number)));
        assert!(numbers.add(id(MAX_IDS as u64 + 1)), "nobody waits for its confirmation");
        assert_eq!(numbers.unreported.len(), MAX_IDS);
    }
}
