//! At a relay's branch: who is done, by number.

use super::SourceSession;
use faircast_core::packet::ReceiverId;
use faircast_core::time::Time;

impl SourceSession {
    /// This is a relay's branch: who is done here is told above, and confirmed when it is known there.
    pub(crate) fn tell_numbers(&mut self) {
        self.members.tell_numbers();
    }

    /// Who has become done since this was last asked.
    pub(crate) fn take_numbers(&mut self) -> Vec<ReceiverId> {
        self.members.take_numbers()
    }

    /// The source knows of these.
    pub(crate) fn on_known(&mut self, ids: &[ReceiverId], now: Time) {
        if self.members.on_known(ids) {
            self.status_soon(now);
        }
    }

    /// Whether who is done is told so without waiting for the source.
    pub(crate) fn answer_at_once(&mut self, at_once: bool) {
        self.members.answer_at_once(at_once);
    }
}
