//! Reassembly: accepts symbols, produces verified blocks, and records the missing symbols.

mod storing;

use super::block_sink::{BlockSink, Ending, Polled};
use super::decoding::{Decoding, Symbols};
use super::fountain::{Incomplete, Repair};
use super::pages::{Judged, Pages};
use super::service::Reached;
use super::symbol_sink::{Progressed, SymbolCounts, SymbolSink};
use super::trust::Trust;
use crate::config::Durability;
use crate::error::Error;
use crate::event::Event;
use crate::object::gather::assembly::Added;
use crate::object::{Affected, Counts, Geometry};
use crate::trace::Scope;
use faircast_core::delivery::request_scheduler::RequestScheduler;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{Activity, DataPacket, Hashes, Scheduled, Status, SymbolMap, Withdrawn};
use std::collections::BTreeSet;

/// Default memory for incomplete blocks, in bytes.
pub(crate) const INCOMPLETE: usize = 256 << 20;

/// Maximum distance of a stream's block from the newest known block, in blocks. Blocks beyond it are ignored.
const FARTHEST: u32 = 1 << 16;

/// The memory divided by this number is available for complete blocks without a verified signature.
const HELD: usize = 4;

/// Number of bytes that may wait for the reader of standard output, regardless of the size of a block.
const LITTLE: u64 = 256 << 10;

/// The result of storing a complete block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Yes,
    /// The block was not stored.
    No,
    /// The block and earlier stored blocks must be received again.
    Anew,
}

/// The data path of a receiver.
pub(super) struct Reassembly {
    requests: RequestScheduler,
    repair: Repair,
    incomplete: Incomplete,
    decoding: Decoding,
    place: BlockSink,
    /// The pages of signed content.
    pages: Option<Pages>,
    warnings: Vec<String>,
    geometry: Geometry,
    /// The first wanted block.
    first: u32,
    /// Bytes of memory for incomplete blocks.
    memory: usize,
    /// The source has sent all blocks below this number once.
    passed: u32,
    /// All blocks below this number are stored.
    low: u32,
    end: Option<u32>,
    wanted: Vec<(u32, u16)>,
    symbols: u64,
    symbols_needed: u64,
    /// Number of complete blocks that did not verify.
    wrong: u64,
    /// Blocks for which this parent has sent a wrong symbol or a wrong page, and no correct data since.
    wrong_blocks: BTreeSet<u32>,
    /// Whether a slow temporary file was reported.
    slow_reported: bool,
    scope: Scope,
}

impl Reassembly {
    /// Returns the reassembly for the sink `place` from block `first` on. Incomplete blocks take about `memory` bytes.
    pub(super) fn new(
        place: BlockSink,
        geometry: Geometry,
        first: u32,
        requests: RequestScheduler,
        repair: Repair,
        memory: usize,
        trust: Option<Trust>,
    ) -> Result<Reassembly, Error> {
        let mut reassembly = Reassembly {
            requests,
            repair,
            incomplete: Incomplete::new(repair, &geometry, memory, place.worker()),
            decoding: Decoding::new(place.worker().clone()),
            place,
            pages: trust.map(|trust| Pages::new(trust, memory / HELD)),
            warnings: Vec::new(),
            geometry,
            first,
            memory,
            passed: first,
            low: first,
            end: geometry.blocks(),
            wanted: Vec::new(),
            symbols: 0,
            symbols_needed: 0,
            wrong: 0,
            wrong_blocks: BTreeSet::new(),
            slow_reported: false,
            scope: Scope::default(),
        };
        reassembly.take_room()?;
        reassembly.doubt_stored(Time::ZERO);
        reassembly.pass_by();
        Ok(reassembly)
    }

    /// Sets the scope in which the blocks are traced.
    pub(super) fn traced_in(self, scope: Scope) -> Reassembly {
        Reassembly { scope, ..self }
    }

    /// Advances the position past all blocks that are stored and, if necessary, signed.
    fn pass_by(&mut self) {
        let before = self.low;
        while !self.is_complete() && self.place.has(self.low) && !self.is_waiting(self.low) {
            self.low += 1;
        }
        if self.low > before
            && self.place.is_live()
            && let Some(pages) = &mut self.pages
        {
            pages.forget_written(self.low);
        }
    }

    /// Marks the blocks in files as unsigned in this session, until their pages arrive.
    fn doubt_stored(&mut self, now: Time) {
        let Some(pages) = &mut self.pages else { return };
        let stored = self.place.stored().filter(|block| !self.place.is_void(*block));
        let known: Vec<u32> = stored.filter(|block| !pages.doubt(*block, now)).collect();
        known.into_iter().for_each(|block| self.compare(block));
    }

    /// Compares a block of an earlier run with the hash of its received page. A block that differs is received again.
    fn compare(&mut self, block: u32) {
        let pages = &self.pages;
        let is_right = |hash| pages.as_ref().is_none_or(|pages| pages.judge(block, hash) == Judged::Right);
        if !self.place.compare(block, is_right) {
            self.warnings.push(format!(
                "block {block}, stored by an earlier run, differs from the signed content: it is requested again"
            ));
        }
    }

    /// Whether the block waits for the page with its hash.
    fn is_waiting(&self, block: u32) -> bool {
        self.pages.as_ref().is_some_and(|pages| pages.is_waiting(block))
    }

    /// Uses the symbols that were found on the disk. In a fountain, only whole blocks that were found are used.
    fn seed(&mut self) {
        if let (Some(seeds), Incomplete::InTurn(blocks)) = (self.place.take_seeds(), &mut self.incomplete) {
            blocks.seed(seeds);
        }
    }

    /// Takes the temporary file after a job has made it.
    fn take_room(&mut self) -> Result<(), Error> {
        if let (Some(room), Incomplete::Together(blocks)) = (self.place.take_room()?, &mut self.incomplete) {
            blocks.give_room(room);
        }
        Ok(())
    }

    /// Processes the results of the worker.
    fn settle(&mut self, now: Time) -> Result<Polled, Error> {
        let polled = self.place.settle()?;
        self.go_on(polled, now)
    }

    fn go_on(&mut self, polled: Polled, now: Time) -> Result<Polled, Error> {
        match polled {
            Polled::Nothing => {}
            Polled::Stored | Polled::Prepared => {
                self.recycle_spent();
                if polled == Polled::Prepared {
                    self.doubt_stored(now);
                    self.forget_stored();
                    self.seed();
                }
                self.pass_by(); // the manifest may have listed holes
                if self.store_waiting_blocks(now)? == Stored::Anew {
                    return Ok(Polled::GivenUp);
                }
            }
            Polled::GivenUp => self.look_again(),
        }
        Ok(polled)
    }

    /// Reuses the memory of stored blocks.
    fn recycle_spent(&mut self) {
        while let Some(bytes) = self.place.take_spent() {
            self.recycle(bytes);
        }
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        if let Incomplete::InTurn(blocks) = &mut self.incomplete {
            blocks.recycle(bytes);
        }
    }

    /// Returns the progress of the session after a block was stored.
    fn after_store(&mut self, stored: Stored, now: Time, rng: &mut Rng) -> Progressed {
        match stored {
            Stored::Yes => Progressed::Block,
            Stored::No if self.is_storing() => Progressed::Block,
            Stored::No => Progressed::No,
            Stored::Anew => {
                self.arm(now, rng);
                Progressed::No
            }
        }
    }

    /// Records the progress that the source states.
    fn on_complete_to(&mut self, complete_to: u32, end: Option<u32>, now: Time, rng: &mut Rng) {
        self.passed = self.passed.max(complete_to);
        if let Some(pages) = &mut self.pages {
            pages.pass(self.passed, now);
        }
        if let (None, Some(end)) = (self.end, end) {
            self.end = Some(end);
        }
        if self.low < self.passed && self.requests.deadline().is_never() {
            self.arm(now, rng);
        }
    }

    /// Records the repairs that the source has scheduled.
    fn on_scheduled(&mut self, scheduled: &[Scheduled], now: Time) {
        for repair in scheduled {
            if repair.block < self.passed && !self.place.has(repair.block) {
                let enough = self.needed(repair.block) <= repair.symbols;
                if enough {
                    self.requests.on_scheduled(repair.block, now);
                }
            }
        }
    }

    /// Whether the block takes no more symbols, because it has enough.
    fn takes_none(&self, block: u32) -> bool {
        match &self.incomplete {
            Incomplete::InTurn(_) => self.decoding.has(block),
            Incomplete::Together(blocks) => blocks.gathering.is_whole(block),
        }
    }

    fn needed(&self, block: u32) -> u16 {
        self.incomplete.needed(block).unwrap_or_else(|| self.geometry.symbols(block))
    }
}

impl SymbolSink for Reassembly {
    fn on_symbol(&mut self, packet: &DataPacket<'_>, now: Time, rng: &mut Rng) -> Result<Progressed, Error> {
        let block = packet.data.payload.block;
        // The largest number is never the number of a block.
        if block == u32::MAX
            || self.end.is_none() && block > self.passed.saturating_add(FARTHEST)
            || self.end.is_some_and(|end| block >= end)
        {
            return Ok(Progressed::No); // an invalid block number
        }
        if block > self.passed {
            self.passed = block;
            if self.low < block {
                self.arm(now, rng);
            }
        }
        // The length of a stream's last block is unknown in advance; the packet states it.
        let shaped = self.geometry.stream_len.is_none() || packet.symbols == self.geometry.symbols(block);
        if !shaped || packet.symbols > self.geometry.symbols_per_block || block < self.low {
            return Ok(Progressed::No);
        }
        let is_held = self.pages.as_ref().is_some_and(|pages| pages.holds(block));
        if self.place.has(block) || self.takes_none(block) || is_held || self.place.may_have(block) {
            return Ok(Progressed::No);
        }
        if packet.payload.is_empty() {
            self.on_wrong_symbol(block);
            return Ok(Progressed::No);
        }
        self.symbols += 1;
        if block < self.passed {
            self.requests.on_symbol(block, now);
        }
        let symbol = packet.data.payload.symbol;
        match &mut self.incomplete {
            Incomplete::InTurn(blocks) => {
                self.wrong_blocks.remove(&block);
                if blocks.gather(block, packet.symbols, symbol, packet.payload) != Added::Complete {
                    return Ok(Progressed::No);
                }
                let Some((block, gathered)) = blocks.take_gathered() else { return Ok(Progressed::No) };
                self.decoding.begin(block, Symbols::OnRequest(gathered), self.geometry.capacity());
            }
            Incomplete::Together(blocks) => {
                let added = blocks.gathering.add(block, packet.symbols, symbol, packet.payload);
                if added != Added::Complete && blocks.gathering.excess() == 0 {
                    return Ok(Progressed::No);
                }
            }
        }
        let stored = self.go_on_decoding(now)?;
        Ok(self.after_store(stored, now, rng))
    }

    fn on_status(&mut self, status: &Status, now: Time, rng: &mut Rng) {
        self.on_complete_to(status.complete_to, status.blocks, now, rng);
        self.on_scheduled(&status.scheduled, now);
    }

    fn withdraw(&mut self, files: &[Withdrawn], now: Time) -> Result<(), Error> {
        for affected in self.place.withdraw(files)? {
            let block = affected.block();
            // Symbols received so far belong to the former content of the block.
            self.incomplete.forget(block);
            if affected == Affected::Void(block) {
                self.requests.on_complete(block);
                self.pages.iter_mut().for_each(|pages| pages.forget(block));
            }
        }
        self.settle(now)?;
        self.pass_by();
        Ok(())
    }

    fn withdrawn(&self) -> Option<usize> {
        self.place.withdrawn()
    }

    fn on_page(&mut self, page: &Hashes, now: Time, rng: &mut Rng) -> Result<Progressed, Error> {
        let end = self.end.unwrap_or(self.passed.saturating_add(FARTHEST));
        let is_within = u32::try_from(page.hashes.len())
            .is_ok_and(|len| page.first_block.checked_add(len).is_some_and(|last| last <= end));
        // A requested page that is the same again shows that the blocks that wait for it are not the source's.
        let is_answer = self.repair == Repair::OnRequest;
        let is_useful = |pages: &Pages| pages.is_news(page) || is_answer && pages.is_awaited(page);
        let Some(pages) = self.pages.as_mut().filter(|pages| is_within && is_useful(pages)) else {
            return Ok(Progressed::No);
        };
        if !pages.learn(page) {
            for block in page.first_block..page.first_block.saturating_add(page.hashes.len() as u32) {
                if self.is_waiting(block) {
                    self.on_wrong_symbol(block);
                }
            }
            self.report_forged();
            return Ok(Progressed::No);
        }
        let mut progressed = Progressed::No;
        while let Some((block, bytes)) = self.pages.as_mut().and_then(|pages| pages.release(page)) {
            self.requests.on_complete(block);
            self.wrong_blocks.remove(&block);
            match bytes {
                Some((bytes, hash)) if self.judge(block, &bytes, hash) != Judged::Right => {
                    self.on_wrong(block, "not signed", now);
                    self.recycle(bytes);
                    self.report_forged();
                }
                Some((bytes, hash)) => {
                    let stored = self.put(block, bytes, hash, now)?;
                    if self.after_store(stored, now, rng) == Progressed::Block {
                        progressed = Progressed::Block;
                    }
                }
                None => {
                    self.compare(block);
                    progressed = Progressed::Block;
                }
            }
        }
        if self.settle(now)? == Polled::GivenUp || self.store_waiting_blocks(now)? == Stored::Anew {
            self.arm(now, rng);
        }
        self.pass_by();
        if self.low < self.passed {
            self.arm(now, rng);
        }
        Ok(progressed)
    }

    fn reached(&self) -> Reached {
        let symbols = match &self.incomplete {
            Incomplete::InTurn(blocks) => blocks.gathered(),
            Incomplete::Together(_) => 0, // no requests
        };
        Reached { blocks: self.place.blocks().into(), symbols, wrong: self.wrong }
    }

    /// Discards the incomplete blocks if the former parent has sent wrong symbols.
    fn on_other_parent(&mut self) {
        self.wrong_blocks.clear();
        if let Incomplete::InTurn(blocks) = &mut self.incomplete
            && std::mem::take(&mut self.wrong) > 0
        {
            blocks.drop_before(u32::MAX);
            self.requests.forget_before(u32::MAX);
        }
    }

    fn forged(&self) -> u64 {
        self.pages.as_ref().map_or(0, Pages::forged)
    }

    fn arm(&mut self, now: Time, rng: &mut Rng) {
        if self.repair == Repair::OnRequest {
            self.requests.arm(now, rng);
        }
    }

    fn skip_before(&mut self, oldest: u32) -> Result<(), Error> {
        if oldest > self.low {
            self.incomplete.drop_before(oldest);
            self.requests.forget_before(oldest);
            self.place.skip_before(oldest)?;
            if let Some(pages) = &mut self.pages {
                pages.drop_before(oldest);
            }
            self.wrong_blocks = self.wrong_blocks.split_off(&oldest);
            self.low = oldest;
            self.pass_by();
        }
        Ok(())
    }

    fn restart(&mut self, now: Time, trust: Option<Trust>) -> Result<(), Error> {
        if self.place.withdrawn().is_some_and(|withdrawn| withdrawn > 0) {
            self.place.restart();
            self.settle(now)?;
            self.low = self.first;
            self.pass_by();
        }
        self.passed = self.low;
        if let (Some(pages), Some(trust)) = (&mut self.pages, trust) {
            pages.restart(trust);
            self.doubt_stored(now);
            self.low = self.first;
            self.pass_by();
        }
        Ok(())
    }

    fn title(&self) -> Option<String> {
        self.place.title()
    }

    fn entries(&self) -> Option<Counts> {
        self.place.entries()
    }

    fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.low >= end) && !self.place.is_opening()
    }

    fn finish(
        &mut self,
        blocks: u32,
        root: [u8; 32],
        durability: Durability,
        _now: Time,
    ) -> Result<Ending, Error> {
        let ending = self.place.finish(blocks, root, durability);
        // Short content may be stored, read and published within this call.
        self.warnings.extend(self.place.take_warnings());
        let ending = ending?;
        if matches!(ending, Ending::Anew) {
            self.look_again();
        }
        Ok(ending)
    }

    fn poll(&mut self, now: Time, rng: &mut Rng) -> Result<Progressed, Error> {
        let polled = self.place.poll()?;
        self.take_room()?;
        let mut polled = self.go_on(polled, now)?;
        match self.go_on_decoding(now)? {
            Stored::No => {}
            Stored::Yes if polled == Polled::Nothing => polled = Polled::Stored,
            Stored::Yes => {}
            Stored::Anew => polled = Polled::GivenUp,
        }
        if let Polled::Prepared | Polled::GivenUp = polled {
            self.arm(now, rng);
        }
        Ok(match polled {
            Polled::Nothing => Progressed::No,
            Polled::Stored | Polled::Prepared => Progressed::Block,
            Polled::GivenUp => Progressed::Anew,
        })
    }

    fn is_storing(&self) -> bool {
        let has_work = matches!(&self.incomplete, Incomplete::Together(blocks) if blocks.has_work());
        has_work || self.place.is_storing() || !self.decoding.is_empty()
    }

    fn is_opening(&self) -> bool {
        self.place.is_opening()
    }

    fn needs_manifest(&self) -> bool {
        self.place.wants_manifest() && !self.place.knows_files()
    }

    fn activity(&self) -> Option<(Activity, u8)> {
        self.place.activity()
    }

    fn take_events(&mut self) -> Vec<Event> {
        self.warnings.extend(self.place.take_warnings());
        self.warnings.drain(..).map(Event::warning).collect()
    }

    fn deadline(&self) -> Time {
        self.requests.deadline().min(self.pages.as_ref().map_or(Time::NEVER, Pages::deadline))
    }

    fn due(&mut self, now: Time, rng: &mut Rng) -> &[(u32, u16)] {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        let until = match () {
            () if self.place.is_preparing() || self.place.is_opening() => self.low, // the missing blocks are unknown
            () if self.place.wants_manifest() => self.passed.min(self.geometry.manifest_blocks()),
            () => self.passed.min(self.end.unwrap_or(u32::MAX)),
        };
        if let Some(pages) = &mut self.pages {
            if pages.deadline() <= now {
                self.requests.arm(now, rng);
            }
            pages.ask(now);
        }
        let (place, incomplete, geometry) = (&self.place, &self.incomplete, &self.geometry);
        let (pages, repair, decoding) = (&self.pages, self.repair, &self.decoding);
        let missing = (self.low..until).filter_map(|block| match pages {
            // A request for 0 symbols requests the page with the block's hash.
            Some(pages) if pages.is_waiting(block) => pages.wants(block, now).then_some((block, 0)),
            _ if repair == Repair::Fountain || place.has(block) || decoding.has(block) => None,
            _ if place.may_have(block) => None,
            _ => Some((block, incomplete.needed(block).unwrap_or_else(|| geometry.symbols(block)))),
        });
        self.requests.due(now, rng, missing, &mut wanted);
        self.wanted = wanted;
        &self.wanted
    }

    fn is_wrong(&self, block: u32, _symbols: u16) -> bool {
        self.wrong_blocks.contains(&block)
    }

    fn held(&self, block: u32) -> Option<SymbolMap> {
        match &self.incomplete {
            Incomplete::InTurn(blocks) => blocks.held(block).map(|symbols| SymbolMap { block, symbols }),
            Incomplete::Together(_) => None, // no requests
        }
    }

    fn set_pace(&mut self, rtt: Span, spread: Span) {
        self.requests.set_pace(rtt, spread);
    }

    fn waits_for_output(&self) -> bool {
        let is_behind = match &self.incomplete {
            Incomplete::InTurn(_) => self.place.is_behind(self.decoding.bytes()),
            Incomplete::Together(_) => self.spills_slowly(),
        };
        if is_behind {
            return true;
        }
        let waiting = self.place.waiting_for_output();
        let coming = match self.incomplete {
            Incomplete::InTurn(_) => self.symbols.saturating_sub(self.symbols_needed),
            Incomplete::Together(_) => 0, // all blocks are filled at the same time
        };
        let all = waiting + coming * u64::from(self.geometry.symbol_size);
        waiting > 0 && all > (self.geometry.capacity() * 5 / 4).max(LITTLE)
    }

    fn missing(&self) -> u32 {
        self.end.map_or(u32::MAX, |end| end.saturating_sub(self.place.blocks()))
    }

    fn gathered_bytes(&self) -> u64 {
        let verified = self.place.verified_bytes();
        let Incomplete::Together(_) = self.incomplete else { return verified };
        let incomplete = self.symbols.saturating_sub(self.symbols_needed);
        let gathered = verified + incomplete * u64::from(self.geometry.symbol_size);
        // The received symbols may exceed the content: some symbols were not needed, and some contain metadata.
        gathered.min(self.content_bytes().unwrap_or(u64::MAX)).max(verified)
    }

    fn verified_bytes(&self) -> u64 {
        self.place.verified_bytes()
    }

    fn stored_bytes(&self) -> u64 {
        self.place.stored_bytes()
    }

    fn unwritten_bytes(&self) -> u64 {
        self.place.unwritten_bytes()
    }

    fn unfinished(&self) -> Vec<(String, u64)> {
        self.place.unfinished()
    }

    fn content_bytes(&self) -> Option<u64> {
        let manifest = u64::from(self.geometry.manifest_len);
        self.geometry.stream_len.map(|len| len.saturating_sub(manifest))
    }

    fn resumed_bytes(&self) -> (u64, u64) {
        let seeded = match &self.incomplete {
            Incomplete::InTurn(blocks) => blocks.seeded_bytes(),
            Incomplete::Together(_) => 0,
        };
        (self.place.resumed_bytes() + seeded, self.place.spoiled_bytes())
    }

    fn symbols(&self) -> SymbolCounts {
        let decoded = match &self.incomplete {
            Incomplete::InTurn(blocks) => blocks.decoded,
            Incomplete::Together(blocks) => blocks.gathering.decoded,
        };
        SymbolCounts { received: self.symbols, needed: self.symbols_needed, decoded }
    }

    fn close(&mut self) {
        if let Incomplete::Together(blocks) = &mut self.incomplete {
            blocks.close();
        }
    }
}
