//! The upstream side of a relay: a receiver's sink that caches symbols for the downstream receivers.

use super::SessionHandle;
use super::cache::Added;
use crate::config::Durability;
use crate::error::{Error, TransferError};
use crate::event::Event;
use crate::object::Finished;
use crate::object::Geometry;
use crate::receiver::block_sink::Ending;
use crate::receiver::symbol_sink::{Progressed, SymbolCounts, SymbolSink};
use crate::receiver::trust::Trust;
use faircast_core::delivery::request_scheduler::RequestScheduler;
use faircast_core::packet::SessionId;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{Announce, DataPacket, Hashes, Status};

/// Duration without a newer announcement after which the source counts as gone. Packets of the source may then be circulating
/// between relays.
const OUTDATED: Span = Span::from_secs(15);

/// Maximum number of blocks by which a stream may jump ahead.
const FARTHEST: u32 = 1 << 16;

/// Passes received symbols to the cache, and requests missing ones.
pub(crate) struct UpstreamReassembler {
    shared: SessionHandle,
    geometry: Geometry,
    requests: RequestScheduler,
    /// Whether symbols arrive on layers continuously, so that the relay requests no symbols.
    is_fountain: bool,
    /// Start time of the session. From this time, the relay waits for its first child.
    since: Option<Time>,
    now: Time,
    /// Time at the source, as stated in its newest announcement, and the arrival time of the announcement that last changed this
    /// value.
    newest: (u64, Time),
    wanted: Vec<(u32, u16)>,
    symbols: u64,
    useful: u64,
}

impl UpstreamReassembler {
    /// Creates the sink, which passes the content of this session to `shared`.
    pub(crate) fn new(
        shared: SessionHandle,
        session: SessionId,
        announce: Announce,
        geometry: Geometry,
        requests: RequestScheduler,
    ) -> UpstreamReassembler {
        let live = announce.flags & Announce::LIVE != 0;
        let first = if live { announce.first_block } else { 0 };
        {
            let mut passing = shared.lock();
            passing.announce = Some((session, announce));
            passing.blocks = geometry.blocks();
            let bytes = geometry.stream_len.unwrap_or(u64::MAX);
            if announce.layers > 1 && !passing.cache.keeps(bytes) {
                passing.warnings.push(
                    "this session is in layers, and its content is larger than the memory of the relay, so blocks are evicted before they are complete; give the relay more memory, or a directory for its cache"
                        .to_owned(),
                );
            }
            passing.forget_before(first);
        }
        UpstreamReassembler {
            shared,
            geometry,
            requests,
            is_fountain: announce.layers > 1,
            since: None,
            now: Time::ZERO,
            newest: (announce.unix_secs, Time::ZERO),
            wanted: Vec::new(),
            symbols: 0,
            useful: 0,
        }
    }

    fn at(&mut self, now: Time) {
        self.now = now;
        if self.since.is_none() {
            self.since = Some(now);
            self.newest.1 = now;
        }
    }

    fn arm_when_needed(&mut self, now: Time, rng: &mut Rng) {
        let mut passing = self.shared.lock();
        let is_new = std::mem::take(&mut passing.fetches.has_more);
        let lacks = !self.is_fountain && passing.cache.incomplete().any(|(block, _)| block < passing.passed);
        drop(passing);
        if is_new || lacks && self.requests.deadline().is_never() {
            self.requests.arm(now, rng);
        }
    }
}

impl SymbolSink for UpstreamReassembler {
    fn on_symbol(&mut self, packet: &DataPacket<'_>, now: Time, rng: &mut Rng) -> Result<Progressed, Error> {
        self.at(now);
        let block = packet.data.payload.block;
        let mut passing = self.shared.lock();
        let end = passing.blocks.unwrap_or_else(|| passing.passed.saturating_add(FARTHEST));
        let is_shaped = self.geometry.stream_len.is_none() || packet.symbols == self.geometry.symbols(block);
        if block == u32::MAX || block >= end || !is_shaped || packet.symbols > self.geometry.symbols_per_block
        {
            return Ok(Progressed::No);
        }
        self.symbols += 1;
        let was_passed = passing.passed;
        passing.passed = was_passed.max(block);
        let added = passing.on_symbol(packet);
        drop(passing);
        if block < was_passed {
            self.requests.on_symbol(block, now);
        } else if block > was_passed {
            self.arm_when_needed(now, rng);
        }
        self.useful += u64::from(added != Added::Useless);
        if added == Added::Whole {
            self.requests.on_complete(block);
            return Ok(Progressed::Block);
        }
        Ok(Progressed::No)
    }

    fn on_status(&mut self, status: &Status, now: Time, rng: &mut Rng) {
        self.at(now);
        self.shared.lock().on_status(status);
        self.arm_when_needed(now, rng);
    }

    fn on_announce(&mut self, announce: &Announce) {
        if announce.unix_secs != self.newest.0 {
            self.newest = (announce.unix_secs, self.now);
        }
        let mut passing = self.shared.lock();
        if let Some((_, known)) = &mut passing.announce {
            *known = *announce;
        }
    }

    fn on_page(&mut self, page: &Hashes, now: Time, _rng: &mut Rng) -> Result<Progressed, Error> {
        self.at(now);
        self.shared.lock().on_page(page);
        Ok(Progressed::No)
    }

    fn arm(&mut self, now: Time, rng: &mut Rng) {
        self.requests.arm(now, rng);
    }

    fn skip_before(&mut self, oldest: u32) -> Result<(), Error> {
        self.requests.forget_before(oldest);
        self.shared.lock().forget_before(oldest);
        Ok(())
    }

    /// Ends the session with an error. The cached symbols are encrypted for the ended session, and downstream receivers follow
    /// the new session by themselves.
    fn restart(&mut self, _now: Time, _trust: Option<Trust>) -> Result<(), Error> {
        Err(Error::Transfer(TransferError::SourceRestarted))
    }

    /// Returns `false`, because the relay serves late joiners until its source ends.
    fn is_complete(&self) -> bool {
        false
    }

    fn finish(
        &mut self,
        _blocks: u32,
        _root: [u8; 32],
        _durability: Durability,
        _now: Time,
    ) -> Result<Ending, Error> {
        Ok(Ending::Done(Finished::default()))
    }

    fn needs_nothing(&self) -> bool {
        let since = self.since.unwrap_or(self.now);
        let passing = self.shared.lock();
        passing.needs_nothing(passing.tally(), since, self.now)
    }

    fn deadline(&self) -> Time {
        if self.shared.wants_more() { Time::ZERO } else { self.requests.deadline() }
    }

    fn due(&mut self, now: Time, rng: &mut Rng) -> &[(u32, u16)] {
        self.at(now);
        self.wanted.clear();
        self.arm_when_needed(now, rng);
        if self.requests.deadline() > now {
            return &self.wanted;
        }
        let mut needs = Vec::new();
        self.shared.lock().needs(&mut needs);
        if self.is_fountain {
            needs.retain(|(_, symbols)| *symbols == 0); // only pages of hashes are requested
        }
        self.requests.due(now, rng, needs.into_iter(), &mut self.wanted);
        &self.wanted
    }

    fn is_wrong(&self, block: u32, symbols: u16) -> bool {
        self.shared.lock().is_wrong(block, symbols)
    }

    fn set_pace(&mut self, rtt: Span, spread: Span) {
        self.requests.set_pace(rtt, spread);
    }

    fn is_outdated(&self, now: Time) -> bool {
        self.since.is_some() && now.since(self.newest.1) >= OUTDATED
    }

    fn waits_for_output(&self) -> bool {
        self.shared.lock().is_ahead()
    }

    fn take_events(&mut self) -> Vec<Event> {
        self.shared.lock().warnings.drain(..).map(Event::warning).collect()
    }

    fn missing(&self) -> u32 {
        let passing = self.shared.lock();
        let most = passing.branches.iter().filter_map(|branch| branch.missing).max();
        passing.missing(most, self.since.unwrap_or(self.now), self.now)
    }

    fn gathered_bytes(&self) -> u64 {
        self.useful * u64::from(self.geometry.symbol_size)
    }

    fn verified_bytes(&self) -> u64 {
        0 // a relay cannot verify what it cannot read
    }

    fn stored_bytes(&self) -> u64 {
        0
    }

    fn content_bytes(&self) -> Option<u64> {
        let manifest = u64::from(self.geometry.manifest_len);
        self.geometry.stream_len.map(|len| len.saturating_sub(manifest))
    }

    fn symbols(&self) -> SymbolCounts {
        SymbolCounts { received: self.symbols, needed: self.useful, decoded: 0 }
    }
}
