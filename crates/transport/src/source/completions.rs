//! Completed receivers of a relay's branch, which the relay reports upstream by receiver ID.

use super::SourceSession;
use faircast_core::packet::ReceiverId;
use faircast_core::time::Time;

impl SourceSession {
    /// Marks the session as a relay's branch. Completed receivers are then reported upstream, and are confirmed by this session
    /// after the source has confirmed them.
    pub(crate) fn report_ids(&mut self) {
        self.members.report_ids();
    }

    /// Calls `exchange` with the receivers completed since the last call. `exchange` returns the receivers that the source has
    /// confirmed, and whether all receivers are confirmed from now on without an answer of the source.
    pub(crate) fn exchange_completions(
        &mut self,
        exchange: impl FnOnce(&[ReceiverId]) -> (Vec<ReceiverId>, bool),
        now: Time,
    ) {
        let (known, at_once) = exchange(&self.members.take_numbers());
        if self.members.on_known(&known) {
            self.status_soon(now);
        }
        self.members.answer_at_once(at_once);
    }
}
