//! The blocks that members lack.

use super::{MemberRecord, Members, Pace};
use faircast_wire::{Activity, MemberState};

impl Members {
    /// Returns the largest number of blocks that a served member lacks; `None` without such a member. Members that lack less since
    /// the last count may count with their former numbers.
    pub const fn most_missing(&self) -> Option<u32> {
        self.most_missing
    }

    /// Counts the missing blocks of all served members again.
    pub fn count_missing(&mut self) -> Option<u32> {
        self.most_missing = self.known.values().filter_map(MemberRecord::missing).max();
        self.most_missing
    }
}

impl MemberRecord {
    /// Returns the number of blocks that the member lacks; `None` if it is not served. A member that verifies its stored data does
    /// not know this number yet, and is assumed to lack few blocks.
    pub(super) fn missing(&self) -> Option<u32> {
        let has_left = matches!(self.state, MemberState::Failed | MemberState::Leaving)
            || matches!(self.pace, Pace::Gone | Pace::Dropped)
            || self.is_replaced;
        let verifies = self.activity.0 == Activity::Verifying;
        (!has_left).then_some(if verifies { 0 } else { self.blocks_missing })
    }
}
