//! Reassembly, symbols in and verified blocks out: what a receiver has and what it lacks.

use super::block_sink::{BlockSink, Ending, Placed};
use super::delivery::{Delivery, Progressed, SymbolCounts};
use crate::assembly::{Added, Assembly};
use crate::config::Durability;
use crate::error::Error;
use crate::event::Event;
use crate::object::{Geometry, verify_block};
use crate::spill::Gathering;
use faircast_core::delivery::request_scheduler::RequestScheduler;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{DataPacket, Scheduled, Status};

/// Memory for incomplete blocks, in bytes.
pub(crate) const INCOMPLETE: usize = 256 << 20;

/// A stream does not jump ahead by more blocks than this.
const FARTHEST: u32 = 1 << 16;

/// So many bytes may always wait for the reader of standard output.
const LITTLE: u64 = 256 << 10;

/// How what is missing comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// It is asked for.
    OnRequest,
    /// By itself: the source sends ever new symbols of all blocks (layers).
    Fountain,
}

/// What became of a complete block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Yes,
    /// It has to come again.
    No,
    /// So have others that were there before.
    Anew,
}

/// Blocks that are not complete.
#[expect(clippy::large_enum_variant, reason = "there is one per session")]
enum Incomplete {
    /// One comes after the other.
    InTurn(Assembly),
    /// All fill up at the same time.
    Together(Box<Gathering>),
}

/// The data path of a receiver.
pub(super) struct Reassembly {
    requests: RequestScheduler,
    repair: Repair,
    incomplete: Incomplete,
    place: BlockSink,
    geometry: Geometry,
    /// Nothing before this block is wanted.
    first: u32,
    /// Bytes of memory for incomplete blocks.
    memory: usize,
    /// Blocks below this have been sent once by the source.
    passed: u32,
    /// Every block below this is in its place.
    low: u32,
    end: Option<u32>,
    wanted: Vec<(u32, u16)>,
    symbols: u64,
    symbols_needed: u64,
}

impl Reassembly {
    /// What comes to `place` from block `first` on; incomplete blocks take about `memory` bytes.
    pub(super) fn new(
        place: BlockSink,
        geometry: Geometry,
        first: u32,
        requests: RequestScheduler,
        repair: Repair,
        memory: usize,
    ) -> Result<Reassembly, Error> {
        let mut reassembly = Reassembly {
            requests,
            repair,
            incomplete: Incomplete::new(repair, &place, &geometry, memory)?,
            place,
            geometry,
            first,
            memory,
            passed: first,
            low: first,
            end: geometry.blocks(),
            wanted: Vec::new(),
            symbols: 0,
            symbols_needed: 0,
        };
        reassembly.pass_by();
        Ok(reassembly)
    }

    /// Go past the blocks that are in their places.
    fn pass_by(&mut self) {
        while !self.is_complete() && self.place.has(self.low) {
            self.low += 1;
        }
    }

    /// A block is complete: to its place with it.
    fn store(&mut self, block: u32, bytes: Vec<u8>) -> Result<Stored, Error> {
        let Ok((data, hash)) = verify_block(&bytes) else {
            // Not what the source sealed: collect it again.
            self.recycle(bytes);
            return Ok(Stored::No);
        };
        match (self.place.put(block, data, hash)?, &mut self.incomplete) {
            (Placed::Kept, _) => self.recycle(bytes),
            (Placed::Anew, _) => {
                self.look_anew()?;
                return Ok(Stored::Anew);
            }
            // There is no room before the manifest is known, or what comes before it: it will be asked for,
            (Placed::Refused, Incomplete::InTurn(blocks)) => {
                blocks.recycle(bytes);
                return Ok(Stored::No);
            }
            // or must not be lost.
            (Placed::Refused, Incomplete::Together(blocks)) => {
                blocks.keep(block, bytes)?;
                return Ok(Stored::No);
            }
        }
        self.requests.on_complete(block);
        self.pass_by();
        Ok(Stored::Yes)
    }

    /// Blocks that had no place before may have one now.
    fn store_kept(&mut self) -> Result<Stored, Error> {
        while let Incomplete::Together(blocks) = &mut self.incomplete
            && let Some(block) = blocks.first_kept().filter(|block| self.place.takes(*block))
            && let Some(bytes) = blocks.take_kept(block)?
        {
            if self.store(block, bytes)? == Stored::Anew {
                return Ok(Stored::Anew);
            }
        }
        Ok(Stored::Yes)
    }

    /// Blocks that were there are not any more: collect what is missing.
    fn look_anew(&mut self) -> Result<(), Error> {
        self.incomplete = Incomplete::new(self.repair, &self.place, &self.geometry, self.memory)?;
        self.requests.forget_before(u32::MAX);
        self.low = self.first;
        self.pass_by();
        Ok(())
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        if let Incomplete::InTurn(blocks) = &mut self.incomplete {
            blocks.recycle(bytes);
        }
    }

    /// The source says how far it is.
    fn on_complete_to(&mut self, complete_to: u32, end: Option<u32>, now: Time, rng: &mut Rng) {
        self.passed = self.passed.max(complete_to);
        if let (None, Some(end)) = (self.end, end) {
            self.end = Some(end);
        }
        if self.low < self.passed && self.requests.deadline().is_never() {
            self.arm(now, rng);
        }
    }

    /// The source has scheduled repairs.
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

    fn needed(&self, block: u32) -> u16 {
        self.incomplete.needed(block).unwrap_or_else(|| self.geometry.symbols(block))
    }
}

impl Delivery for Reassembly {
    fn on_symbol(&mut self, packet: &DataPacket<'_>, now: Time, rng: &mut Rng) -> Result<Progressed, Error> {
        let block = packet.data.payload.block;
        // The last number names no block.
        if block == u32::MAX
            || self.end.is_none() && block > self.passed.saturating_add(FARTHEST)
            || self.end.is_some_and(|end| block >= end)
        {
            return Ok(Progressed::No); // makes no sense
        }
        if block > self.passed {
            self.passed = block;
            if self.low < block {
                self.arm(now, rng);
            }
        }
        // Of a stream nobody has told how long its last block is; the packet does.
        let shaped = self.geometry.stream_len.is_none() || packet.symbols == self.geometry.symbols(block);
        if !shaped || packet.symbols > self.geometry.symbols_per_block || block < self.low {
            return Ok(Progressed::No);
        }
        if self.place.has(block) || self.incomplete.is_kept(block) {
            return Ok(Progressed::No);
        }
        self.symbols += 1;
        if block < self.passed {
            self.requests.on_symbol(block, now);
        }
        let symbol = packet.data.payload.symbol;
        let added = match &mut self.incomplete {
            Incomplete::InTurn(blocks) => blocks.add(block, packet.symbols, symbol, packet.payload),
            Incomplete::Together(blocks) => blocks.add(block, packet.symbols, symbol, packet.payload)?,
        };
        if added != Added::Complete {
            return Ok(Progressed::No);
        }
        let complete = match &mut self.incomplete {
            Incomplete::InTurn(blocks) => blocks.take(),
            Incomplete::Together(blocks) => blocks.take(),
        };
        let Some((block, bytes)) = complete else { return Ok(Progressed::No) };
        self.symbols_needed += u64::from(packet.symbols);
        let mut stored = self.store(block, bytes)?;
        if stored == Stored::Yes {
            stored = self.store_kept()?;
        }
        match stored {
            Stored::Yes => Ok(Progressed::Block),
            Stored::No => Ok(Progressed::No),
            Stored::Anew => {
                self.arm(now, rng);
                Ok(Progressed::No)
            }
        }
    }

    fn on_status(&mut self, status: &Status, now: Time, rng: &mut Rng) {
        self.on_complete_to(status.complete_to, status.blocks, now, rng);
        self.on_scheduled(&status.scheduled, now);
    }

    fn arm(&mut self, now: Time, rng: &mut Rng) {
        if self.repair == Repair::OnRequest {
            self.requests.arm(now, rng);
        }
    }

    fn skip_before(&mut self, oldest: u32) -> Result<(), Error> {
        if oldest > self.low {
            match &mut self.incomplete {
                Incomplete::InTurn(blocks) => blocks.drop_before(oldest),
                Incomplete::Together(blocks) => blocks.drop_before(oldest),
            }
            self.requests.forget_before(oldest);
            self.place.skip_before(oldest)?;
            self.low = oldest;
            self.pass_by();
        }
        Ok(())
    }

    fn restart(&mut self, _now: Time) -> Result<(), Error> {
        self.passed = self.low;
        Ok(())
    }

    fn files(&self) -> Option<u64> {
        self.place.files()
    }

    fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.low >= end)
    }

    fn finish(
        &mut self,
        blocks: u32,
        root: [u8; 32],
        durability: Durability,
        _now: Time,
    ) -> Result<Ending, Error> {
        let ending = self.place.finish(blocks, root, durability)?;
        if matches!(ending, Ending::Anew) {
            self.look_anew()?;
        }
        Ok(ending)
    }

    fn take_events(&mut self) -> Vec<Event> {
        self.place.take_warnings().into_iter().map(Event::warning).collect()
    }

    fn deadline(&self) -> Time {
        self.requests.deadline()
    }

    fn due(&mut self, now: Time, rng: &mut Rng) -> &[(u32, u16)] {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        let until = self.passed.min(self.end.unwrap_or(u32::MAX));
        let (place, incomplete, geometry) = (&self.place, &self.incomplete, &self.geometry);
        let missing = (self.low..until)
            .filter(|block| !place.has(*block))
            .map(|block| (block, incomplete.needed(block).unwrap_or_else(|| geometry.symbols(block))));
        self.requests.due(now, rng, missing, &mut wanted);
        self.wanted = wanted;
        &self.wanted
    }

    fn set_pace(&mut self, rtt: Span, spread: Span) {
        self.requests.set_pace(rtt, spread);
    }

    fn waits_for_output(&self) -> bool {
        let waiting = self.place.waiting_for_output();
        let coming = match self.incomplete {
            Incomplete::InTurn(_) => self.symbols.saturating_sub(self.symbols_needed),
            Incomplete::Together(_) => 0, // all blocks come at the same time
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
        // Some symbols are more than their block requests, and some describe the content.
        gathered.min(self.content_bytes().unwrap_or(u64::MAX)).max(verified)
    }

    fn verified_bytes(&self) -> u64 {
        self.place.verified_bytes()
    }

    fn content_bytes(&self) -> Option<u64> {
        let manifest = u64::from(self.geometry.manifest_len);
        self.geometry.stream_len.map(|len| len.saturating_sub(manifest))
    }

    fn resumed_bytes(&self) -> (u64, u64) {
        (self.place.resumed_bytes(), self.place.spoiled_bytes())
    }

    fn symbols(&self) -> SymbolCounts {
        let decoded = match &self.incomplete {
            Incomplete::InTurn(blocks) => blocks.decoded,
            Incomplete::Together(blocks) => blocks.decoded,
        };
        SymbolCounts { received: self.symbols, needed: self.symbols_needed, decoded }
    }
}

impl Incomplete {
    /// Nothing yet of what is missing in `place`.
    fn new(
        repair: Repair,
        place: &BlockSink,
        geometry: &Geometry,
        memory: usize,
    ) -> Result<Incomplete, Error> {
        let symbol_size = usize::from(geometry.symbol_size);
        Ok(match repair {
            Repair::OnRequest => Incomplete::InTurn(Assembly::new(symbol_size, memory)),
            Repair::Fountain => {
                // All of what is missing, and its last symbols beside it.
                let may_be_large = geometry.stream_len.is_none_or(|len| len + len / 16 > memory as u64);
                let room = if may_be_large { Some(place.room()?) } else { None };
                let blocks = Gathering::new(symbol_size, geometry.symbols_per_block, memory, room);
                Incomplete::Together(Box::new(blocks))
            }
        })
    }

    /// Whether the block is complete and has no place yet.
    fn is_kept(&self, block: u32) -> bool {
        matches!(self, Incomplete::Together(blocks) if blocks.is_kept(block))
    }

    /// Symbols that `block` still requests; `None` when none of it has arrived.
    fn needed(&self, block: u32) -> Option<u16> {
        match self {
            Incomplete::InTurn(blocks) => blocks.needed(block),
            Incomplete::Together(blocks) => blocks.needed(block),
        }
    }
}
