//! The upstream side of a relay within a session. It is a receiver's sink that stores no content, and reports in place of the
//! downstream receivers.

use super::super::SessionHandle;
use crate::config::Durability;
use crate::error::{Error, TransferError};
use crate::object::Finished;
use crate::object::Geometry;
use crate::receiver::block_sink::Ending;
use crate::receiver::symbol_sink::{Progressed, SymbolCounts, SymbolSink};
use crate::receiver::trust::Trust;
use faircast_core::packet::SessionId;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{Announce, DataPacket, Hashes, Status};

/// Duration without a newer announcement after which a source is considered gone.
const OUTDATED_AFTER: Span = Span::from_secs(15);

/// Sink that discards the content of a session.
pub(crate) struct UpstreamMode {
    shared: SessionHandle,
    geometry: Geometry,
    since: Option<Time>,
    now: Time,
    symbols: u64,
    wanted: Vec<(u32, u16)>,
    /// Whether the session cannot continue, because a later announcement states much lower packet numbers.
    is_other: bool,
    /// Time at the source, as stated in its latest announcement. The next field is the arrival time of the announcement that last
    /// changed this value.
    announced: u64,
    announced_at: Time,
}

impl UpstreamMode {
    pub(crate) fn new(
        shared: SessionHandle,
        session: SessionId,
        announce: Announce,
        geometry: Geometry,
    ) -> UpstreamMode {
        {
            let mut passing = shared.lock();
            passing.announce = Some((session, announce));
            passing.blocks = geometry.blocks();
        }
        UpstreamMode {
            shared,
            geometry,
            since: None,
            now: Time::ZERO,
            symbols: 0,
            wanted: Vec::new(),
            is_other: false,
            announced: 0,
            announced_at: Time::ZERO,
        }
    }

    fn at(&mut self, now: Time) {
        self.now = now;
        self.since.get_or_insert(now);
    }
}

impl SymbolSink for UpstreamMode {
    fn on_symbol(&mut self, packet: &DataPacket<'_>, now: Time, _: &mut Rng) -> Result<Progressed, Error> {
        self.at(now);
        if self.is_other {
            return Err(Error::Transfer(TransferError::SourceRestarted));
        }
        self.symbols += 1;
        let block = packet.data.payload.block;
        let mut passing = self.shared.lock();
        if passing.blocks.is_none_or(|blocks| block < blocks) && block < u32::MAX {
            passing.passed = passing.passed.max(block);
        }
        Ok(Progressed::No)
    }

    fn on_status(&mut self, status: &Status, now: Time, _: &mut Rng) {
        self.at(now);
        {
            let mut passing = self.shared.lock();
            passing.passed = passing.passed.max(status.complete_to);
            passing.blocks = status.blocks.or(passing.blocks);
        }
        self.shared.with_mode(|mode| mode.on_status(status, now));
    }

    fn on_announce(&mut self, announce: &Announce) {
        if let Some((_, known)) = &mut self.shared.lock().announce {
            *known = *announce;
        }
        let now = self.now;
        let goes_on = self.shared.with_mode(|mode| mode.on_announce(announce, now)).unwrap_or(true);
        self.is_other |= !goes_on;
        if announce.unix_secs > self.announced {
            (self.announced, self.announced_at) = (announce.unix_secs, now);
        }
    }

    fn on_page(&mut self, page: &Hashes, now: Time, _: &mut Rng) -> Result<Progressed, Error> {
        self.at(now);
        self.shared.with_mode(|mode| mode.on_page(page, now));
        Ok(Progressed::No)
    }

    /// Whether the time that the source states has stopped advancing. Without this check, relays that receive only from each
    /// other would announce the session indefinitely.
    fn is_outdated(&self, now: Time) -> bool {
        let has_exits = self.shared.with_mode(|mode| mode.has_exits()).unwrap_or(false);
        has_exits && self.announced > 0 && now.since(self.announced_at) > OUTDATED_AFTER
    }

    /// Ends the session with an error: children follow a restarted source by themselves.
    fn restart(&mut self, _: Time, _: Option<Trust>) -> Result<(), Error> {
        Err(Error::Transfer(TransferError::SourceRestarted))
    }

    /// Returns `false`, because the relay serves late joiners until its source ends.
    fn is_complete(&self) -> bool {
        false
    }

    fn finish(&mut self, _: u32, _: [u8; 32], _: Durability, _: Time) -> Result<Ending, Error> {
        Ok(Ending::Done(Finished::default()))
    }

    fn deadline(&self) -> Time {
        self.shared
            .with_mode(|mode| mode.needs().map(|needs| needs.deadline()))
            .flatten()
            .unwrap_or(Time::NEVER)
    }

    fn due(&mut self, now: Time, _: &mut Rng) -> &[(u32, u16)] {
        self.at(now);
        let wanted = &mut self.wanted;
        wanted.clear();
        self.shared.with_mode(|mode| mode.needs().map(|needs| needs.take_due(now, wanted)));
        &self.wanted
    }

    fn is_wrong(&self, block: u32, symbols: u16) -> bool {
        self.shared
            .with_mode(|mode| mode.needs().is_some_and(|needs| needs.is_wrong(block, symbols)))
            .unwrap_or(false)
    }

    fn needs_nothing(&self) -> bool {
        let below = self.shared.with_mode(|mode| mode.tally()).unwrap_or_default();
        self.shared.lock().needs_nothing(below, self.since.unwrap_or(self.now), self.now)
    }

    fn missing(&self) -> u32 {
        let most = self.shared.with_mode(|mode| mode.most_missing()).flatten();
        self.shared.lock().missing(most, self.since.unwrap_or(self.now), self.now)
    }

    fn gathered_bytes(&self) -> u64 {
        self.symbols * u64::from(self.geometry.symbol_size)
    }

    fn verified_bytes(&self) -> u64 {
        0 // it verifies nothing
    }

    fn stored_bytes(&self) -> u64 {
        0
    }

    fn content_bytes(&self) -> Option<u64> {
        let manifest = u64::from(self.geometry.manifest_len);
        self.geometry.stream_len.map(|len| len.saturating_sub(manifest))
    }

    fn symbols(&self) -> SymbolCounts {
        SymbolCounts { received: self.symbols, needed: self.symbols, decoded: 0 }
    }
}
