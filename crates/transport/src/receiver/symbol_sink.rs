//! Receiver-side sinks of symbols: an object, a live stream on each layer, or a relay's cache.

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

/// The result of taking a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progressed {
    No,
    /// A block became complete.
    Block,
    /// Stored blocks are given up, as they contradict the source.
    Anew,
}

/// Symbols of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SymbolCounts {
    pub(crate) received: u64,
    pub(crate) needed: u64,
    /// Blocks that needed decoding.
    pub(crate) decoded: u64,
}

/// Takes the symbols of a session: [`Reassembly`](super::reassembly::Reassembly) of blocks that belong together, requested or
/// not, or [`Streams`](super::streams::Streams) without requests.
pub(crate) trait SymbolSink: Send {
    /// A data packet has come.
    ///
    /// # Errors
    /// When a block that it completes cannot be written.
    fn on_symbol(&mut self, packet: &DataPacket<'_>, now: Time, rng: &mut Rng) -> Result<Progressed, Error>;

    /// The source states its progress.
    fn on_status(&mut self, status: &Status, now: Time, rng: &mut Rng);

    /// The source has withdrawn these files.
    ///
    /// # Errors
    /// When that cannot be recorded, or the output cannot leave files out.
    fn withdraw(&mut self, _files: &[Withdrawn], _now: Time) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the number of files known to be withdrawn; `None` where that does not matter.
    fn withdrawn(&self) -> Option<usize> {
        None
    }

    /// The source announces the session, again or with changed fields.
    fn on_announce(&mut self, _announce: &Announce) {}

    /// A page of hashes has come. Returns whether it completes a block.
    ///
    /// # Errors
    /// When a block that it completes cannot be written.
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

    /// Something may be missing: schedules a request soon, if this sink sends any.
    fn arm(&mut self, _now: Time, _rng: &mut Rng) {}

    /// The source stores no blocks before this one.
    ///
    /// # Errors
    /// When stored blocks cannot be written.
    fn skip_before(&mut self, _oldest: u32) -> Result<(), Error> {
        Ok(())
    }

    /// The same content comes in a new session, which signs as `trust` states.
    ///
    /// # Errors
    /// When stored blocks cannot be written.
    fn restart(&mut self, now: Time, trust: Option<Trust>) -> Result<(), Error>;

    /// Layers were joined or left.
    ///
    /// # Errors
    /// When stored blocks cannot be written.
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

    /// Whether everything is here.
    fn is_complete(&self) -> bool;

    /// Everything is here, `blocks` blocks with this root: checks it, and gives it its name. Blocks that contradict the source are wanted
    /// again, as if they had not come ([`Ending::Anew`]). While files are being renamed this is called again ([`Ending::UnderWay`]).
    ///
    /// # Errors
    /// When the content is not as it should be, or cannot be written.
    fn finish(
        &mut self,
        blocks: u32,
        root: [u8; 32],
        durability: Durability,
        now: Time,
    ) -> Result<Ending, Error>;

    /// Jobs beside the session may have ended. Returns whether they have brought blocks.
    ///
    /// # Errors
    /// Why it failed.
    fn poll(&mut self, _now: Time, _rng: &mut Rng) -> Result<Progressed, Error> {
        Ok(Progressed::No)
    }

    /// Whether blocks are on their way to the disk: [`SymbolSink::poll`] returns when they are there.
    fn is_storing(&self) -> bool {
        false
    }

    /// Whether a job opens the files: the missing blocks are not known yet.
    fn is_opening(&self) -> bool {
        false
    }

    /// Returns work on files that is in progress, and how much of it is done, in percent.
    fn activity(&self) -> Option<(Activity, u8)> {
        None
    }

    /// Returns when the next request is due.
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// Returns the symbols to request now, as (block, symbols), when it is time.
    fn due(&mut self, _now: Time, _rng: &mut Rng) -> &[(u32, u16)] {
        &[]
    }

    /// Whether received symbols of this block, or with 0 symbols the page with its hash, did not verify.
    fn is_wrong(&self, _block: u32, _symbols: u16) -> bool {
        false
    }

    /// Returns the source symbols of an incomplete block that are here, where that is known.
    fn held(&self, _block: u32) -> Option<SymbolMap> {
        None
    }

    /// The parent, or the address of the source, has changed.
    fn on_other_parent(&mut self) {}

    /// Whether packets of the session are so old that no source can be behind them.
    fn is_outdated(&self, _now: Time) -> bool {
        false
    }

    /// At a relay: whether nobody below needs anything.
    fn needs_nothing(&self) -> bool {
        false
    }

    /// Sets the round-trip time of requests, and the time over which they are spread.
    fn set_pace(&mut self, _rtt: Span, _spread: Span) {}

    /// Whether received data has to be written before more is taken.
    fn waits_for_output(&self) -> bool {
        false
    }

    /// Returns the number of missing blocks that may still come; [`u32::MAX`] while that is unknown.
    fn missing(&self) -> u32;

    /// Returns the progress, in bytes of content.
    fn gathered_bytes(&self) -> u64;

    /// Bytes that are verified.
    fn verified_bytes(&self) -> u64;

    /// Returns the bytes that are verified and in their places, so that a restarted receiver continues from them.
    fn stored_bytes(&self) -> u64;

    /// Returns the bytes of the whole content, when known.
    fn content_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes verified in an earlier run, and those of them that had to come again.
    fn resumed_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    fn symbols(&self) -> SymbolCounts;

    /// Returns the received part of each layer's stream.
    fn streams(&self) -> Vec<StreamReceived> {
        Vec::new()
    }
}
