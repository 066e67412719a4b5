//! Symbols in, verified blocks out: what a receiver has and what it lacks.

use super::place::{Place, Placed};
use crate::assembly::{Added, Assembly};
use crate::error::Error;
use crate::object::{Geometry, verify_block};
use faircast_core::delivery::gaps::Gaps;
use faircast_core::delivery::needs::Needs;
use faircast_core::rng::Rng;
use faircast_core::time::Time;
use faircast_wire::{DataPacket, Scheduled};

/// Memory for incomplete blocks, in bytes.
const INCOMPLETE: usize = 256 << 20;

/// A stream does not jump ahead by more blocks than this.
const FARTHEST: u32 = 1 << 16;

/// What a symbol changed.
pub(super) enum Progressed {
    No,
    /// A block is verified and in its place.
    Block,
}

/// The data path of a receiver.
pub(super) struct Intake {
    pub(super) gaps: Gaps,
    reordering: u8,
    pub(super) needs: Needs,
    assembly: Assembly,
    place: Place,
    geometry: Geometry,
    /// Blocks below this have been sent once by the source.
    passed: u32,
    /// Every block below this is in its place.
    low: u32,
    end: Option<u32>,
    wanted: Vec<(u32, u16)>,
    pub(super) symbols: u64,
    pub(super) symbols_needed: u64,
}

impl Intake {
    pub(super) fn new(place: Place, geometry: Geometry, first: u32, needs: Needs, reordering: u8) -> Intake {
        Intake {
            gaps: Gaps::new(reordering),
            reordering,
            needs,
            assembly: Assembly::new(usize::from(geometry.symbol_size), INCOMPLETE),
            place,
            geometry,
            passed: first,
            low: first,
            end: geometry.blocks(),
            wanted: Vec::new(),
            symbols: 0,
            symbols_needed: 0,
        }
    }

    /// The same content comes in a new session: its packets are numbered anew.
    pub(super) fn restart(&mut self) {
        self.gaps = Gaps::new(self.reordering);
        self.passed = self.low;
    }

    pub(super) fn on_symbol(
        &mut self,
        packet: &DataPacket<'_>,
        now: Time,
        rng: &mut Rng,
    ) -> Result<Progressed, Error> {
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
                self.needs.arm(now, rng);
            }
        }
        // Of a stream nobody has told how long its last block is; the packet does.
        let shaped = self.geometry.tape_len.is_none() || packet.symbols == self.geometry.symbols(block);
        if !shaped || packet.symbols > self.geometry.symbols_per_block || block < self.low {
            return Ok(Progressed::No);
        }
        if self.place.has(block) {
            return Ok(Progressed::No);
        }
        self.symbols += 1;
        if block < self.passed {
            self.needs.on_symbol(block, now);
        }
        match self.assembly.add(block, packet.symbols, packet.data.payload.symbol, packet.payload) {
            Added::Useless | Added::Kept => return Ok(Progressed::No),
            Added::Complete => {}
        }
        let Some((block, bytes)) = self.assembly.take() else { return Ok(Progressed::No) };
        self.symbols_needed += u64::from(packet.symbols);
        let Ok((data, hash)) = verify_block(&bytes) else {
            // Not what the source sealed: collect it again.
            self.assembly.recycle(bytes);
            return Ok(Progressed::No);
        };
        let placed = self.place.put(block, data, hash)?;
        self.assembly.recycle(bytes);
        if placed == Placed::Refused {
            return Ok(Progressed::No); // no room before the manifest is known: it will be asked for
        }
        self.needs.on_complete(block);
        while self.place.has(self.low) {
            self.low += 1;
        }
        Ok(Progressed::Block)
    }

    /// The source says how far it is.
    pub(super) fn on_complete_to(&mut self, complete_to: u32, end: Option<u32>, now: Time, rng: &mut Rng) {
        self.passed = self.passed.max(complete_to);
        if let (None, Some(end)) = (self.end, end) {
            self.end = Some(end);
        }
        if self.low < self.passed && self.needs.deadline().is_never() {
            self.needs.arm(now, rng);
        }
    }

    /// The source has scheduled repairs.
    pub(super) fn on_scheduled(&mut self, scheduled: &[Scheduled], now: Time) {
        for repair in scheduled {
            if repair.block < self.passed && !self.place.has(repair.block) {
                let enough = self.needed(repair.block) <= repair.symbols;
                if enough {
                    self.needs.on_scheduled(repair.block, now);
                }
            }
        }
    }

    /// The source keeps no blocks before this one.
    pub(super) fn skip_before(&mut self, oldest: u32) -> Result<(), Error> {
        if oldest > self.low {
            self.assembly.drop_before(oldest);
            self.needs.forget_before(oldest);
            self.place.skip_before(oldest)?;
            self.low = oldest;
            while !self.is_complete() && self.place.has(self.low) {
                self.low += 1;
            }
        }
        Ok(())
    }

    /// What to ask for now, as (block, symbols), when it is time.
    pub(super) fn due(&mut self, now: Time, rng: &mut Rng) -> &[(u32, u16)] {
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        let until = self.passed.min(self.end.unwrap_or(u32::MAX));
        let (place, assembly, geometry) = (&self.place, &self.assembly, &self.geometry);
        let missing = (self.low..until)
            .filter(|block| !place.has(*block))
            .map(|block| (block, assembly.needed(block).unwrap_or_else(|| geometry.symbols(block))));
        self.needs.due(now, rng, missing, &mut wanted);
        self.wanted = wanted;
        &self.wanted
    }

    /// Blocks not yet in their place; [`u32::MAX`] while nobody knows how many there are.
    pub(super) fn missing(&self) -> u32 {
        self.end.map_or(u32::MAX, |end| end.saturating_sub(self.place.blocks()))
    }

    pub(super) fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.low >= end)
    }

    pub(super) fn verified_bytes(&self) -> u64 {
        self.place.verified_bytes()
    }

    pub(super) fn resumed_bytes(&self) -> u64 {
        self.place.resumed_bytes()
    }

    /// Of what an earlier run had verified, the part that had to come again.
    pub(super) fn refetched_bytes(&self) -> u64 {
        self.place.spoiled_bytes()
    }

    pub(super) fn content_bytes(&self) -> Option<u64> {
        let manifest = u64::from(self.geometry.manifest_len);
        self.geometry.tape_len.map(|len| len.saturating_sub(manifest))
    }

    pub(super) fn place(&mut self) -> &mut Place {
        &mut self.place
    }

    pub(super) fn decoded(&self) -> u64 {
        self.assembly.decoded
    }

    fn needed(&self, block: u32) -> u16 {
        self.assembly.needed(block).unwrap_or_else(|| self.geometry.symbols(block))
    }
}
