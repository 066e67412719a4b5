//! Sends all content once, and then sends repairs on request. Used for sessions at one rate.

use super::{Amounts, BlockStatus, Chosen, EndProof, Looked, Requester, Scheduler, repairs_for};
use crate::object::{Affected, Counts, Geometry, Hash, Layout, LeftOut, ObjectError, TransferId};
use crate::source::block_source::{BlockSource, Leisure};
use crate::source::blocks::Blocks;
use faircast_core::delivery::repair_scheduler::{Pick, PickKind, RepairScheduler};
use faircast_core::packet::{Flags, Layer, Payload, Seq};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Scheduled, Withdrawn};

/// Time for a request and its answer in addition to the round trips: pauses of busy processors at both ends.
const REACTION: Span = Span::from_millis(10);

/// Number of round trips that a lost symbol takes: its loss is noticed, a request is delayed at random, a repair arrives.
const ROUND_TRIPS: u64 = 4;

/// Maximum ratio of repair symbols to source symbols that are sent without a request.
const MAX_UNASKED: f64 = 0.5;

/// Sends blocks in order, and repairs on request.
pub(crate) struct OnRequest {
    source: BlockSource,
    blocks: Blocks,
    repairs: RepairScheduler,
    /// Number of repair symbols that follow each source symbol without a request.
    unasked: f64,
    /// The chosen symbol, until it is recorded as sent.
    chosen: Option<Pick>,
}

impl OnRequest {
    pub(crate) fn new(source: BlockSource) -> OnRequest {
        let geometry = source.geometry();
        let blocks = Blocks::new(geometry.symbol_size, geometry.symbols_per_block, 1);
        let repairs = RepairScheduler::new(geometry.manifest_blocks());
        let mut scheduler = OnRequest { source, blocks, repairs, unasked: 0.0, chosen: None };
        scheduler.follow_source();
        scheduler
    }

    /// Prepares the blocks that contain withdrawn files to be sent again without these files.
    fn follow_withdrawals(&mut self) -> Result<(), ObjectError> {
        for affected in self.source.take_affected() {
            self.blocks.forget(affected.block());
            match affected {
                Affected::Void(block) => self.repairs.withdraw(block),
                Affected::Mixed(block) if self.repairs.renew(block) => {}
                Affected::Mixed(index) => return Err(ObjectError::WithdrawnTooOften { index }),
            }
        }
        Ok(())
    }

    /// Adds the blocks that have become ready at the block source.
    fn follow_source(&mut self) {
        while self.repairs.end() < self.source.ready() {
            let symbols = self.source.symbols(self.repairs.end());
            self.repairs.push(symbols, (f64::from(symbols) * self.unasked).ceil() as u16);
        }
        self.repairs.forget_before(self.source.oldest());
    }
}

impl Scheduler for OnRequest {
    fn geometry(&self) -> Geometry {
        self.source.geometry()
    }

    fn transfer(&self) -> TransferId {
        self.source.transfer()
    }

    fn is_live(&self) -> bool {
        self.source.is_live()
    }

    fn entries(&self) -> Counts {
        self.source.entries()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.source.take_warnings()
    }

    fn unsent(&self) -> &[LeftOut] {
        self.source.unsent()
    }

    fn withdrawn(&self) -> &[Withdrawn] {
        self.source.withdrawn()
    }

    fn layout(&self) -> Option<&Layout> {
        self.source.layout()
    }

    fn resume(&mut self) {
        self.repairs.skip_front();
    }

    fn look(
        &mut self,
        now: Time,
        leisure: Leisure,
        _: &dyn Fn(Layer) -> Rate,
    ) -> Result<Looked, ObjectError> {
        self.source.poll(now, leisure)?;
        self.follow_source();
        self.follow_withdrawals()?;
        Ok(Looked::Nothing)
    }

    fn has_work(&self) -> bool {
        self.source.has_work()
    }

    fn has(&self, _layer: Layer) -> bool {
        !self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.repairs.is_idle()
    }

    fn next(&mut self, _layer: Layer) -> Result<Option<Chosen<'_>>, ObjectError> {
        self.chosen = None;
        let pick = loop {
            self.follow_withdrawals()?;
            let Some(pick) = self.repairs.pick() else { return Ok(None) };
            self.blocks.load(pick.block, &mut self.source)?;
            // If a file was withdrawn while its block was read, the symbol numbers of the block have changed.
            if !self.source.has_affected() {
                break pick;
            }
        };
        self.chosen = Some(pick);
        let (symbols, payload) = self.blocks.symbol(pick, &mut self.source)?;
        let place = Payload { block: pick.block, symbol: pick.symbol };
        let flags = if pick.kind == PickKind::Front { Flags::default() } else { Flags::REPAIR };
        Ok(Some(Chosen { place, symbols, payload, flags }))
    }

    fn sent(&mut self, seq: Seq) {
        if let Some(pick) = self.chosen.take() {
            self.repairs.sent(pick, seq);
        }
    }

    /// Sends repairs of live blocks in advance if requests take longer than the stream's latency permits.
    fn on_reported_loss(&mut self, loss: f64, rtt: Span) {
        let is_late = self.source.repair_time().is_some_and(|time| time < rtt * ROUND_TRIPS + REACTION);
        self.unasked = if is_late { repairs_for(loss).min(MAX_UNASKED) } else { 0.0 };
    }

    fn request(&mut self, block: u32, symbols: u16, by: &Requester<'_>) -> bool {
        // A receiver that lacks the manifest does not know the holes yet.
        let is_void = self.source.layout().is_some_and(|layout| layout.is_void(block));
        !is_void && self.repairs.request(block, symbols, by.seen)
    }

    fn symbols_of(&self, block: u32) -> u16 {
        if block < self.source.ready() { self.source.symbols(block) } else { 0 }
    }

    fn clear_requests(&mut self) {
        self.repairs.clear_requests();
    }

    fn scheduled(&self, most: usize) -> Vec<Scheduled> {
        self.repairs.scheduled().take(most).map(|(block, symbols)| Scheduled { block, symbols }).collect()
    }

    fn is_drained(&self) -> bool {
        self.repairs.is_idle() && self.source.ready() > 0
    }

    fn hash(&self, block: u32) -> Option<Hash> {
        self.source.hash(block)
    }

    fn status(&self) -> BlockStatus {
        BlockStatus {
            oldest: self.repairs.oldest(),
            complete_to: self.repairs.complete_to(),
            blocks: self.source.blocks(),
            root: self.source.root(),
            withdrawn: self.source.withdrawn().len() as u32,
            end_proof: EndProof::default(),
        }
    }

    fn amounts(&self) -> Amounts {
        let geometry = self.source.geometry();
        let left = u64::from(self.repairs.complete_to()) * geometry.capacity();
        Amounts {
            content_bytes: self.source.content_bytes(),
            sent_bytes: left.saturating_sub(u64::from(geometry.manifest_len)),
            content_symbols: self.source.content_symbols(),
            sent_symbols: self.repairs.symbols_sent(),
        }
    }
}
