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
use faircast_wire::{Activity, Announce, DataPacket, Hashes, Held, Status, Withdrawn};

/// Whether a symbol has brought news.
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
    /// Blocks that took decoding.
    pub(crate) decoded: u64,
}

/// Takes the symbols of a session: [`Reassembly`](super::reassembly::Reassembly) of blocks that belong together, requested or
/// not, or [`Streams`](super::streams::Streams) without requests.
pub(crate) trait SymbolSink: Send {
    /// A data packet has come.
    ///
    /// # Errors
    /// When what it completes cannot be written.
    fn on_symbol(&mut self, packet: &DataPacket<'_>, now: Time, rng: &mut Rng) -> Result<Progressed, Error>;

    /// The source says how far it is.
    fn on_status(&mut self, status: &Status, now: Time, rng: &mut Rng);

    /// The source has withdrawn these files.
    ///
    /// # Errors
    /// When that cannot be noted, or the output cannot leave files out.
    fn withdraw(&mut self, _files: &[Withdrawn], _now: Time) -> Result<(), Error> {
        Ok(())
    }

    /// How many files are known to be withdrawn; `None` where that does not matter.
    fn withdrawn(&self) -> Option<usize> {
        None
    }

    /// The source announces the session, again or in other words.
    fn on_announce(&mut self, _announce: &Announce) {}

    /// A page of hashes has come: whether it completes anything.
    ///
    /// # Errors
    /// When what it completes cannot be written.
    fn on_page(&mut self, _page: &Hashes, _now: Time, _rng: &mut Rng) -> Result<Progressed, Error> {
        Ok(Progressed::No)
    }

    /// How far it has come.
    fn reached(&self) -> Reached {
        Reached { symbols: self.symbols().needed, ..Reached::default() }
    }

    /// Blocks that came complete and that the source has not signed.
    fn forged(&self) -> u64 {
        0
    }

    /// Something may be missing: ask for it soon, if one asks at all.
    fn arm(&mut self, _now: Time, _rng: &mut Rng) {}

    /// The source keeps no blocks before this one.
    ///
    /// # Errors
    /// When what was kept cannot be written.
    fn skip_before(&mut self, _oldest: u32) -> Result<(), Error> {
        Ok(())
    }

    /// The same content comes in a new session, which signs with what `trust` says.
    ///
    /// # Errors
    /// When what was kept cannot be written.
    fn restart(&mut self, now: Time, trust: Option<Trust>) -> Result<(), Error>;

    /// Layers were joined or left.
    ///
    /// # Errors
    /// When what was kept cannot be written.
    fn subscribe(&mut self, _subscription: Subscription, _now: Time) -> Result<(), Error> {
        Ok(())
    }

    /// What is to be told.
    fn take_events(&mut self) -> Vec<Event> {
        Vec::new()
    }

    /// Its content in a few words, once that is known.
    fn title(&self) -> Option<String> {
        None
    }

    /// How many entries there are, once that is known.
    fn entries(&self) -> Option<Counts> {
        None
    }

    /// Whether everything is here.
    fn is_complete(&self) -> bool;

    /// Everything is here, `blocks` blocks with this root: check it, and give it its name. What turns out not to be what
    /// the source has is wanted again, as if it had not come ([`Ending::Anew`]). While files get their names this is called again
    /// ([`Ending::UnderWay`]).
    ///
    /// # Errors
    /// When it is not what it should be, or cannot be written.
    fn finish(
        &mut self,
        blocks: u32,
        root: [u8; 32],
        durability: Durability,
        now: Time,
    ) -> Result<Ending, Error>;

    /// Work beside the session may have ended: whether it has brought blocks.
    ///
    /// # Errors
    /// Why it failed.
    fn poll(&mut self, _now: Time, _rng: &mut Rng) -> Result<Progressed, Error> {
        Ok(Progressed::No)
    }

    /// Whether blocks are on their way to the disk: [`SymbolSink::poll`] tells when they are there.
    fn is_storing(&self) -> bool {
        false
    }

    /// Whether a job opens the files: it is not known yet what is missing.
    fn is_opening(&self) -> bool {
        false
    }

    /// Work on files that is under way, and how much of it is done, in percent.
    fn activity(&self) -> Option<(Activity, u8)> {
        None
    }

    /// When something is asked for next.
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// What to ask for now, as (block, symbols), when it is time.
    fn due(&mut self, _now: Time, _rng: &mut Rng) -> &[(u32, u16)] {
        &[]
    }

    /// Whether what has come of this block, or with 0 symbols of the page with its hash, did not verify.
    fn is_wrong(&self, _block: u32, _symbols: u16) -> bool {
        false
    }

    /// Which source symbols of an incomplete block are here, where that can be told.
    fn held(&self, _block: u32) -> Option<Held> {
        None
    }

    /// Another parent, or the source elsewhere.
    fn on_other_parent(&mut self) {}

    /// Whether what comes of the session is so old that no source can be behind it.
    fn is_outdated(&self, _now: Time) -> bool {
        false
    }

    /// At a relay: whether nobody below needs anything.
    fn needs_nothing(&self) -> bool {
        false
    }

    /// Requests keep to this round-trip time, and are spread over this.
    fn set_pace(&mut self, _rtt: Span, _spread: Span) {}

    /// Whether what has come is to be written before more is taken.
    fn waits_for_output(&self) -> bool {
        false
    }

    /// Blocks that are not there yet, and may come; [`u32::MAX`] while nobody knows.
    fn missing(&self) -> u32;

    /// How far it is, in bytes of content.
    fn gathered_bytes(&self) -> u64;

    /// Bytes that are verified.
    fn verified_bytes(&self) -> u64;

    /// Bytes that are verified and in their places, so that a receiver that is started again goes on with them.
    fn stored_bytes(&self) -> u64;

    /// Bytes of the whole content, when known.
    fn content_bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes verified in an earlier run, and those among them which had to come again.
    fn resumed_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    fn symbols(&self) -> SymbolCounts;

    /// What has come of each layer's stream.
    fn streams(&self) -> Vec<StreamReceived> {
        Vec::new()
    }
}
