//! Storage of complete blocks: decoded blocks are verified and passed to the sink, and wrong blocks are received again.

use super::super::block_sink::StoreResult;
use super::super::decoding::{Decoded, Symbols};
use super::super::fountain::{Incomplete, Repair};
use super::super::pages::Judged;
use super::{Reassembly, Stored};
use crate::error::Error;
use crate::object::gather::assembly::Assembly;
use crate::object::{Hash, data_of, verify_block};
use faircast_core::time::Time;

/// Maximum number of recorded blocks with wrong symbols.
const MAX_WRONG: usize = 4_096;

impl Reassembly {
    /// Stores the blocks that the worker has decoded.
    pub(super) fn store_decoded(&mut self, now: Time) -> Result<Stored, Error> {
        let mut all = Stored::No;
        while let Some(Decoded { block, symbols, bytes }) = self.decoding.next() {
            let (needed, is_seeded) = (symbols.needed(), symbols.is_seeded());
            match (&mut self.incomplete, symbols) {
                (Incomplete::InTurn(blocks), Symbols::OnRequest(symbols)) => match bytes {
                    Some(_) => blocks.reuse(symbols),
                    None => blocks.put_back(block, symbols),
                },
                (Incomplete::Together(blocks), Symbols::OfFountain(symbols)) => match bytes {
                    Some(_) => blocks.gathering.on_decoded(block, &symbols),
                    None => blocks.gathering.put_back(block, symbols),
                },
                _ => unreachable!("blocks of a session come in one way"),
            }
            let Some((bytes, hash)) = bytes else { continue };
            if let (true, None, Incomplete::InTurn(blocks)) = (is_seeded, hash, &mut self.incomplete) {
                blocks.forget(block); // the whole block is requested
                blocks.recycle(bytes);
                continue;
            }
            self.symbols_needed += u64::from(needed);
            if block < self.low || self.place.has(block) {
                self.recycle(bytes);
                continue;
            }
            match self.store(block, bytes, hash, now)? {
                Stored::No => {}
                Stored::Yes => all = Stored::Yes,
                Stored::Anew => return Ok(Stored::Anew),
            }
        }
        Ok(all)
    }

    /// Passes blocks with enough symbols to the worker, and stores the decoded blocks. Blocks of a fountain wait with their symbols
    /// until the worker and the output have room for them, so that packets can be received meanwhile.
    pub(super) fn go_on_decoding(&mut self, now: Time) -> Result<Stored, Error> {
        while let Incomplete::Together(blocks) = &mut self.incomplete {
            blocks.settle()?;
            while let Some((block, symbols)) = blocks.gathering.next_ready() {
                self.decoding.begin(block, Symbols::OfFountain(symbols), self.geometry.capacity());
            }
            let read = blocks.gathering.being_read() as u64 * self.geometry.capacity();
            if !self.place.has_room(self.decoding.bytes() + read) || !blocks.gathering.begin_next() {
                break;
            }
        }
        self.report_slow_spill();
        let stored = self.store_decoded(now)?;
        match &mut self.incomplete {
            Incomplete::Together(_) if stored != Stored::Anew => match self.store_waiting_blocks(now)? {
                Stored::No => Ok(stored),
                kept => Ok(kept),
            },
            _ => Ok(stored),
        }
    }

    /// Stores a complete block. `hash` is the hash of its data, if the seal of the block is valid.
    pub(super) fn store(
        &mut self,
        block: u32,
        bytes: Vec<u8>,
        hash: Option<Hash>,
        now: Time,
    ) -> Result<Stored, Error> {
        let Some(hash) = hash else {
            self.on_wrong(block, "damaged", now); // the block is received again
            self.recycle(bytes);
            return Ok(Stored::No);
        };
        match self.judge(block, &bytes, hash) {
            Judged::Right => self.put(block, bytes, hash, now),
            Judged::Forged => {
                self.on_wrong(block, "not signed", now);
                self.recycle(bytes);
                self.report_forged();
                Ok(Stored::No)
            }
            Judged::Unknown => {
                if self.pages.as_ref().is_some_and(|pages| pages.has_page_of(block)) {
                    // The page may be older than the block. A relay must not answer with its copy of this page.
                    self.on_wrong_symbol(block);
                }
                match self.pages.as_mut().map_or(Ok(()), |pages| pages.hold(block, bytes, hash, now)) {
                    Ok(()) => self.requests.on_complete(block),
                    Err(bytes) => self.recycle(bytes), // the block will be requested
                }
                Ok(Stored::No)
            }
        }
    }

    /// Records that a symbol, a whole block or its page did not verify.
    pub(super) fn on_wrong_symbol(&mut self, block: u32) {
        let is_lacking = block >= self.low && (!self.place.has(block) || self.is_waiting(block));
        if is_lacking && self.repair == Repair::OnRequest && self.wrong_blocks.len() < MAX_WRONG {
            self.wrong_blocks.insert(block);
        }
    }

    /// Records that a complete block did not verify.
    pub(super) fn on_wrong(&mut self, block: u32, reason: &str, now: Time) {
        self.scope.wrong(block, reason, now);
        self.wrong += 1;
        self.on_wrong_symbol(block);
    }

    /// Returns whether a complete block equals the source's block. A block's content changes when files in the block are
    /// withdrawn.
    pub(super) fn judge(&self, block: u32, bytes: &[u8], hash: Hash) -> Judged {
        let Some(pages) = &self.pages else { return Judged::Right };
        let judged = pages.judge(block, hash);
        let blanked = || data_of(bytes).and_then(|data| self.place.blanked_hash(block, data));
        match (judged, blanked) {
            (Judged::Forged, blanked) => match blanked() {
                Some(hash) if pages.judge(block, hash) == Judged::Right => Judged::Right,
                Some(_) => Judged::Unknown, // its page may still arrive
                // The source may have withdrawn files of this block after it sent the page.
                None if !self.place.knows_files() => Judged::Unknown,
                None => Judged::Forged,
            },
            _ => judged,
        }
    }

    /// Stores a block of the source, which has this hash.
    pub(super) fn put(&mut self, block: u32, bytes: Vec<u8>, hash: Hash, now: Time) -> Result<Stored, Error> {
        match (self.place.put(block, bytes, hash)?, &mut self.incomplete) {
            (StoreResult::Kept, _) => self.recycle_spent(),
            (StoreResult::Anew, _) => {
                self.look_again();
                return Ok(Stored::Anew);
            }
            // There is no room for blocks that arrive before the manifest or before their predecessors. The block is requested
            // again.
            (StoreResult::Refused(bytes), Incomplete::InTurn(blocks)) => {
                blocks.recycle(bytes);
                return Ok(Stored::No);
            }
            // Blocks of a fountain are not requested, so the block must be held.
            (StoreResult::Refused(bytes), Incomplete::Together(blocks)) => {
                blocks.gathering.keep(block, bytes);
                return Ok(Stored::No);
            }
        }
        self.scope.verified(block, self.geometry.block_len(block), now);
        self.requests.on_complete(block);
        self.pass_by();
        Ok(Stored::Yes)
    }

    /// Reports forged blocks once.
    pub(super) fn report_forged(&mut self) {
        let Some(pages) = &mut self.pages else { return };
        if pages.count_forged() == 1 {
            self.warnings.push(
                "a block arrived that the source has not signed: a member of the group forges content; the block is dropped and requested again"
                    .to_owned(),
            );
        }
    }

    /// Stores held blocks for which there is room now.
    pub(super) fn store_waiting_blocks(&mut self, now: Time) -> Result<Stored, Error> {
        let mut all = Stored::No;
        while let Incomplete::Together(blocks) = &mut self.incomplete {
            let takes = |block: &u32| self.place.takes(*block) && self.place.has_room(self.decoding.bytes());
            while let Some(block) = blocks.gathering.first_stored().filter(takes) {
                blocks.gathering.recall(block);
            }
            blocks.settle()?;
            let Some((block, bytes)) = blocks.gathering.next_recalled() else { break };
            let hash = hash_of_block(&bytes);
            match self.store(block, bytes, hash, now)? {
                Stored::No => {}
                Stored::Yes => all = Stored::Yes,
                Stored::Anew => return Ok(Stored::Anew),
            }
        }
        Ok(all)
    }

    /// Whether the temporary file takes symbols so slowly that they do not fit into memory.
    pub(super) fn spills_slowly(&self) -> bool {
        let Incomplete::Together(blocks) = &self.incomplete else { return false };
        (blocks.is_busy() || self.place.waits_for_room()) && self.place.exceeds(blocks.gathering.excess())
    }

    /// Reports a slow temporary file once.
    fn report_slow_spill(&mut self) {
        if !self.slow_reported && self.spills_slowly() {
            self.slow_reported = true;
            self.warnings.push(
                "symbols arrive faster than the disk takes them: the receiver reads no packets until the temporary file holds them, and packets may be lost; use a faster disk, or have the source reduce its rate"
                    .to_owned(),
            );
        }
    }

    /// Searches for the missing blocks again, after stored blocks were discarded.
    pub(super) fn look_again(&mut self) {
        match &mut self.incomplete {
            Incomplete::InTurn(blocks) => {
                *blocks = Assembly::new(self.geometry.symbol_size.into(), self.memory)
            }
            Incomplete::Together(blocks) => blocks.gathering.forget_all(),
        }
        self.requests.forget_before(u32::MAX);
        if let Some(pages) = &mut self.pages {
            pages.forget_all_but(|block| self.place.has(block));
        }
        self.low = self.first;
        self.pass_by();
    }

    /// Discards the symbols of blocks that turned out to be stored, and searches for the missing blocks again.
    pub(super) fn forget_stored(&mut self) {
        for block in self.place.stored() {
            self.incomplete.forget(block);
            self.requests.on_complete(block);
        }
        self.low = self.first;
        self.pass_by();
    }
}

/// Returns the hash of a block's data, if the seal of the block is valid.
fn hash_of_block(bytes: &[u8]) -> Option<Hash> {
    verify_block(bytes).ok().map(|(_, hash)| hash)
}
