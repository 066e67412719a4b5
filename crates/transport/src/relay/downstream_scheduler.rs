//! The scheduler of a branch's source session, which sends the symbols in the relay's cache.

use super::schedule::Pick;
use super::{End, SessionHandle};
use crate::object::{Counts, Geometry, Hash, ObjectError, TransferId};
use crate::source::block_source::Leisure;
use crate::source::scheduler::{Amounts, BlockStatus, Chosen, Looked, Requester, Scheduler};
use crate::withdrawals::Slice;
use faircast_core::packet::{Flags, Layer, Payload, Seq};
use faircast_core::time::{Rate, Time};
use faircast_wire::{Announce, Hashes, Receipt, Scheduled};

/// Scheduler of one branch.
pub(super) struct DownstreamScheduler {
    shared: SessionHandle,
    branch: usize,
    geometry: Geometry,
    transfer: TransferId,
    live: bool,
    chosen: Option<Pick>,
    symbol: Vec<u8>,
}

impl DownstreamScheduler {
    pub(super) fn new(
        shared: SessionHandle,
        branch: usize,
        announce: &Announce,
        geometry: Geometry,
    ) -> DownstreamScheduler {
        DownstreamScheduler {
            shared,
            branch,
            geometry,
            transfer: TransferId(announce.transfer.0),
            live: announce.flags & Announce::LIVE != 0,
            chosen: None,
            symbol: Vec::new(),
        }
    }
}

impl Scheduler for DownstreamScheduler {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn transfer(&self) -> TransferId {
        self.transfer
    }

    fn is_live(&self) -> bool {
        self.live
    }

    fn entries(&self) -> Counts {
        Counts::default()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn may_start(&self) -> bool {
        // A branch may also start without cached symbols. If a child requests content that the source sent before the relay
        // joined, the relay fetches it.
        let passing = self.shared.lock();
        !passing.cache.is_untouched() || passing.passed > 0
    }

    fn source_is_finished(&self) -> Option<bool> {
        Some(self.shared.lock().end != End::No)
    }

    fn is_upstream_alive(&self, now: Time) -> bool {
        self.shared.lock().is_upstream_alive(now)
    }

    fn announced(&self) -> Option<Announce> {
        let passing = self.shared.lock();
        let (_, announce) = passing.announce?;
        Some(Announce { hops: announce.hops.saturating_add(1), ..announce })
    }

    fn pass_withdrawals(&mut self) -> Option<Slice> {
        Some(self.shared.lock().withdrawals.next())
    }

    fn takes_receipts(&self) -> bool {
        self.shared.takes_receipts()
    }

    fn pass_receipt(&mut self, receipt: &Receipt) -> Option<bool> {
        Some(self.shared.keep_receipt(receipt))
    }

    fn next_page(&mut self) -> Option<Hashes> {
        self.shared.lock().next_page(self.branch)
    }

    fn request_pages(&mut self, first: u32, run: u32, by: &Requester<'_>) {
        self.shared.lock().request_pages(self.branch, first, run, by);
    }

    fn resume(&mut self) {
        self.shared.lock().branches[self.branch].schedule.send_on_request();
    }

    fn look(&mut self, _: Time, _: Leisure, _: &dyn Fn(Layer) -> Rate) -> Result<Looked, ObjectError> {
        Ok(Looked::Nothing)
    }

    fn has(&self, _layer: Layer) -> bool {
        !self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.shared.lock().branches[self.branch].schedule.is_idle()
    }

    fn next(&mut self, _layer: Layer) -> Result<Option<Chosen<'_>>, ObjectError> {
        let mut passing = self.shared.lock();
        self.chosen = passing.pick(self.branch);
        let Some(pick) = self.chosen else { return Ok(None) };
        if !passing.cache.symbol(pick.block, pick.at, &mut self.symbol) {
            // The file cannot be read, so the relay fetches the lost symbols again.
            passing.lose(pick.block);
            self.chosen = None;
            return Ok(None);
        }
        let place = Payload { block: pick.block, symbol: pick.id };
        let flags = if pick.first { Flags::default() } else { Flags::REPAIR };
        Ok(Some(Chosen { place, symbols: pick.symbols, payload: &self.symbol, flags }))
    }

    fn sent(&mut self, seq: Seq) {
        if let Some(pick) = self.chosen.take() {
            self.shared.lock().sent(self.branch, pick, seq);
        }
    }

    fn request(&mut self, block: u32, symbols: u16, by: &Requester<'_>) -> bool {
        self.shared.lock().request(self.branch, block, symbols, by)
    }

    fn symbols_of(&self, block: u32) -> u16 {
        match self.shared.lock().cache.get(block) {
            Some(stored) => stored.symbols,
            None if self.geometry.stream_len.is_some() => self.geometry.symbols(block),
            None => self.geometry.symbols_per_block,
        }
    }

    fn scheduled(&self, most: usize) -> Vec<Scheduled> {
        let passing = self.shared.lock();
        let scheduled = passing.branches[self.branch].schedule.scheduled();
        scheduled.take(most).map(|(block, symbols)| Scheduled { block, symbols }).collect()
    }

    fn hash(&self, _block: u32) -> Option<Hash> {
        None
    }

    fn is_drained(&self) -> bool {
        let passing = self.shared.lock();
        let schedule = &passing.branches[self.branch].schedule;
        schedule.is_idle() && passing.blocks.is_some_and(|blocks| schedule.complete_to() >= blocks)
    }

    fn status(&self) -> BlockStatus {
        let passing = self.shared.lock();
        let schedule = &passing.branches[self.branch].schedule;
        BlockStatus {
            oldest: schedule.oldest(),
            complete_to: schedule.complete_to().min(passing.blocks.unwrap_or(u32::MAX)),
            blocks: passing.blocks,
            root: passing.root,
            withdrawn: passing.withdrawn,
            end_proof: passing.end_proof,
        }
    }

    fn amounts(&self) -> Amounts {
        let passing = self.shared.lock();
        let schedule = &passing.branches[self.branch].schedule;
        let content = self.geometry.stream_len.unwrap_or(0);
        let left = u64::from(schedule.complete_to()) * self.geometry.capacity();
        Amounts {
            content_bytes: content.saturating_sub(self.geometry.manifest_len.into()),
            sent_bytes: left.min(content),
            content_symbols: content.div_ceil(u64::from(self.geometry.symbol_size).max(1)),
            sent_symbols: schedule.sent,
        }
    }
}
