//! Receivers that have content of an earlier session: the source sends only the symbols that they request.

use super::{Phase, SourceSession};

/// A receiver resumes if it lacks less than this percentage of the blocks that the first pass has not sent yet.
const LACKS: u64 = 98;

impl SourceSession {
    /// Returns the largest number of blocks that a receiver lacks; `None` without receivers. `recount` states whether receivers
    /// count that lack less than before.
    pub(crate) fn most_missing(&mut self, recount: bool) -> Option<u32> {
        if recount { self.members.count_missing() } else { self.members.most_missing() }
    }

    /// Whether each receiver that is served has some of the remaining blocks already, or is verifying its data.
    pub(super) fn all_resume(&mut self) -> bool {
        let status = self.scheduler.status();
        let Some(total) = status.blocks else { return false };
        let void = self.scheduler.layout().map_or(0, |layout| layout.void_from(status.complete_to));
        let unsent = u64::from(total.saturating_sub(status.complete_to).saturating_sub(void));
        self.members.count_missing().is_some_and(|missing| u64::from(missing) * 100 < unsent * LACKS)
    }

    /// Sends only requested symbols from now on.
    pub(super) fn resume(&mut self) {
        self.resumes = true;
        self.scheduler.resume();
    }

    /// Ends the first pass when all receivers resume. Receivers with busy disks join before they know which blocks they have,
    /// so the source learns this only after the start. The first passes of layers and streams are not ended. That of a relay ends with that of its
    /// source.
    pub(super) fn consider_resume(&mut self) {
        let is_whole = self.scheduler.geometry().stream_len.is_some() && self.layers() == 1;
        let is_own = self.scheduler.source_is_finished().is_none();
        let is_sending = matches!(self.phase, Phase::Sending) && self.setup.one_way.is_none();
        if !self.resumes && is_sending && is_whole && is_own && self.all_resume() {
            self.resume();
        }
    }
}
