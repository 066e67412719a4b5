//! Receiver-side sinks of symbols: an object, live streams in layers, or the cache of a relay.

use super::block_sink::Ending;
use super::service::Reached;
use super::trust::Trust;
use crate::config::Durability;
use crate::error::Error;
use crate::event::{Event, StreamReceived, Subscription};
use crate::object::Counts;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{Activity, Announce, DataPacket, Hashes, Status, SymbolMap, Withdrawn};

/// The result of accepting a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progressed {
    No,
    /// A block became complete.
    Block,
    /// Stored blocks were discarded because they contradict the source.
    Anew,
}

/// Counts of content symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SymbolCounts {
    pub(crate) received: u64,
    pub(crate) needed: u64,
    /// Number of blocks that needed decoding.
    pub(crate) decoded: u64,
}

/// Accepts the symbols of a session. [`Reassembly`](super::reassembly::Reassembly) handles blocks of one object, with or without
/// requests. [`Streams`](super::streams::Streams) handles live streams in layers, without requests.
pub(crate) trait SymbolSink: Send {
    /// Handles a data packet.
    ///
    /// # Errors
    /// If the packet completes a block that cannot be written.
    fn on_symbol(&mut self, packet: &DataPacket<'_>, now: Time, rng: &mut Rng) -> Result<Progressed, Error>;

    /// Handles the source's statement of its progress.
    fn on_status(&mut self, status: &Status, now: Time, rng: &mut Rng);

    /// Handles the withdrawal of these files by the source.
    ///
    /// # Errors
    /// If the withdrawal cannot be recorded, or the output cannot omit files.
    fn withdraw(&mut self, _files: &[Withdrawn], _now: Time) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the number of files known to be withdrawn; `None` if this sink does not depend on them.
    fn withdrawn(&self) -> Option<usize> {
        None
    }

    /// Handles an announcement of the session, which may contain changed fields.
    fn on_announce(&mut self, _announce: &Announce) {}

    /// Handles a page of hashes. Returns whether the page completes a block.
    ///
    /// # Errors
    /// If the page completes a block that cannot be written.
    fn on_page(&mut self, _page: &Hashes, _now: Time, _rng: &mut Rng) -> Result<Progressed, Error> {
        Ok(Progressed::No)
    }

    /// Returns the progress.
    fn reached(&self) -> Reached {
        Reached { symbols: self.symbols().needed, ..Reached::default() }
    }

    /// Returns the number of complete blocks that the source has not signed.
    fn forged(&self) -> u64 {
        0
    }

    /// Schedules a request soon, because symbols may be missing. Has no effect in sinks without requests.
    fn arm(&mut self, _now: Time, _rng: &mut Rng) {}

    /// Skips all blocks before block `oldest`, which the source has dropped.
    ///
    /// # Errors
    /// If stored blocks cannot be written.
    fn skip_before(&mut self, _oldest: u32) -> Result<(), Error> {
        Ok(())
    }

    /// Restarts for a new session with the same content; `trust` verifies its signatures.
    ///
    /// # Errors
    /// If stored blocks cannot be written.
    fn restart(&mut self, now: Time, trust: Option<Trust>) -> Result<(), Error>;

    /// Handles a change of the joined layers.
    ///
    /// # Errors
    /// If stored blocks cannot be written.
    fn subscribe(&mut self, _subscription: Subscription, _now: Time) -> Result<(), Error> {
        Ok(())
    }

    /// Returns pending events.
    fn take_events(&mut self) -> Vec<Event> {
        Vec::new()
    }

    /// Returns a short title of the content, once known.
    fn title(&self) -> Option<String> {
        None
    }

    /// Returns the number of entries, once known.
    fn entries(&self) -> Option<Counts> {
        None
    }

    /// Whether all content has been received.
    fn is_complete(&self) -> bool;

    /// Finishes content of `blocks` blocks: compares its root hash with `root`, and gives files their names. Blocks that
    /// contradict the source are received again ([`Ending::Anew`]). While files are being renamed, call this again
    /// ([`Ending::UnderWay`]).
    ///
    /// # Errors
    /// If the content is not as expected, or cannot be written.
    fn finish(
        &mut self,
        blocks: u32,
        root: [u8; 32],
        durability: Durability,
        now: Time,
    ) -> Result<Ending, Error>;

    /// Processes results of jobs. Returns whether blocks were added.
    ///
    /// # Errors
    /// If a job failed.
    fn poll(&mut self, _now: Time, _rng: &mut Rng) -> Result<Progressed, Error> {
        Ok(Progressed::No)
    }

    /// Whether blocks are being written to the disk; [`SymbolSink::poll`] reports the result.
    fn is_storing(&self) -> bool {
        false
    }

    /// Whether a job is opening the files, so that the missing blocks are not known yet.
    fn is_opening(&self) -> bool {
        false
    }

    /// Whether work on the files begins only after the manifest has arrived from the source.
    fn needs_manifest(&self) -> bool {
        false
    }

    /// Returns the work in progress on files, and the percentage that is done.
    fn activity(&self) -> Option<(Activity, u8)> {
        None
    }

    /// Returns the time of the next request.
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// Returns the symbols to request now, as pairs of a block and a number of symbols, if a request is due.
    fn due(&mut self, _now: Time, _rng: &mut Rng) -> &[(u32, u16)] {
        &[]
    }

    /// Whether received symbols of this block did not verify. If `_symbols` is 0: whether the page with the hash of this block
    /// did not verify.
    fn is_wrong(&self, _block: u32, _symbols: u16) -> bool {
        false
    }

    /// Returns the received source symbols of an incomplete block, if known.
    fn held(&self, _block: u32) -> Option<SymbolMap> {
        None
    }

    /// Handles a change of the parent or of the source's address.
    fn on_other_parent(&mut self) {}

    /// Whether the latest packets of the session are so old that the source cannot be active any longer.
    fn is_outdated(&self, _now: Time) -> bool {
        false
    }

    /// At a relay: whether no downstream receiver needs symbols.
    fn needs_nothing(&self) -> bool {
        false
    }

    /// Sets the round-trip time of requests, and the time over which they are spread.
    fn set_pace(&mut self, _rtt: Span, _spread: Span) {}

    /// Whether received data must be written before more is accepted.
    fn waits_for_output(&self) -> bool {
        false
    }

    /// Returns the number of missing blocks that may still arrive; [`u32::MAX`] if unknown.
    fn missing(&self) -> u32;

    /// Returns the progress, in bytes of content.
    fn gathered_bytes(&self) -> u64;

    /// Returns the number of verified bytes.
    fn verified_bytes(&self) -> u64;

    /// Returns the number of verified and stored bytes, from which a restarted receiver continues.
    fn stored_bytes(&self) -> u64;

    /// Returns the number of bytes that wait for the disk or for the reader of the output.
    fn unwritten_bytes(&self) -> u64 {
        0
    }

    /// Returns the names of the files that lack content, with their numbers of missing bytes, as far as they are known.
    fn unfinished(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// Returns the number of bytes of the whole content, if known.
    fn content_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the number of bytes verified in an earlier run, and the number of these bytes that had to be received again.
    fn resumed_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    fn symbols(&self) -> SymbolCounts;

    /// Closes temporary files after the end of the session.
    fn close(&mut self) {}

    /// Returns the received part of each layer's stream.
    fn streams(&self) -> Vec<StreamReceived> {
        Vec::new()
    }
}
