//! A parent in a session whose delivery repairs losses under new packet numbers. A packet that the parent misses never arrives
//! under its original number, so no child may wait for it.

use super::child::Group;
use super::parent::{From, Parent};
use crate::time::Time;
use std::ops::Range;

impl Parent {
    /// Returns the lowest packet known to be in flight to a node of this part of the tree.
    pub(super) fn under_way(&self) -> u64 {
        if self.has(Group::Session) { self.children.extremes().under_way } else { self.end }
    }

    /// Returns whether a packet missing here will never arrive, because several later packets have arrived.
    pub(super) fn never_comes(&self, seq: u64) -> bool {
        self.from == From::Delivery && seq + u64::from(self.config.duplicates) < self.end
    }

    /// Gives up the packets of this range that are missing here, so that no child waits for them.
    pub(super) fn give_up(&mut self, packets: Range<u64>, now: Time) {
        let store = &self.store;
        let gone = packets.filter(|seq| store.get(*seq).is_none());
        if gone.clone().next().is_none() {
            return;
        }
        let mut any = false;
        self.children.edit_all(|child| {
            for seq in gone.clone() {
                any |= !child.board.has(seq) && child.set(seq);
            }
        });
        if any {
            self.regroup(now);
        }
    }

    /// Skips the next packet for the local group if the packet is missing here and will never arrive. This is certain when later
    /// packets have arrived or, at the end of the stream, after a wait.
    pub(super) fn pass_over(&mut self, now: Time) {
        let first = self.next_local;
        if first >= self.end || self.store.get(first).is_some() {
            self.hole_since = None;
            return;
        }
        let is_old = self.hole_since.is_some_and(|at| now.since(at) >= self.config.local.check);
        let next = (first..self.end).find(|seq| self.store.get(*seq).is_some()).unwrap_or(self.end);
        if self.from == From::Delivery && (is_old || self.never_comes(next - 1)) {
            self.next_local = next;
            self.give_up(first..next, now);
        }
        self.hole_since.get_or_insert(now);
    }
}
