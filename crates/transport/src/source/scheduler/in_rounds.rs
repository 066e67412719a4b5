//! Sessions without feedback: all blocks are sent in rounds, interleaved against outages of the path.

use super::{Amounts, BlockStatus, Chosen, EndProof, Looked, Scheduler};
use crate::config::{OneWay, Repeat, span};
use crate::object::{Affected, Counts, Geometry, Hash, Layout, LeftOut, ObjectError, TransferId};
use crate::source::block_source::{BlockSource, Leisure};
use crate::source::passes::Passes;
use faircast_core::delivery::rounds::Rounds;
use faircast_core::packet::{Flags, Layer, Payload};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::Withdrawn;

/// Maximum number of bytes of symbols in memory. On average, half of the symbols of a window have been sent and take no memory.
const MEMORY: u64 = 512 << 20;

/// Number of steps and slots whose blocks are read ahead.
const AHEAD: u32 = 4;

/// Bytes of all headers around a symbol, approximately.
const HEADERS: u64 = 64;

/// Time beyond an outage after which the last round begins: receivers that were cut off from the start get an announcement.
const AFTER_OUTAGE: Span = Span::from_millis(600);

/// Sends all blocks in rounds.
pub(in crate::source) struct InRounds {
    source: BlockSource,
    passes: Passes,
    order: Rounds,
    /// Maximum number of rounds.
    most: u64,
    /// Minimum time between the starts of two rounds.
    apart: Span,
    started: Time,
    /// Time of the latest poll of the inputs.
    now: Time,
    is_finished: bool,
}

impl InRounds {
    pub(crate) fn new(mut source: BlockSource, one_way: &OneWay) -> InRounds {
        source.read_on_order();
        let geometry = source.geometry();
        let (share, window) = (share(one_way, &geometry), window(one_way, &geometry));
        let (most, apart) = match one_way.repeat {
            Repeat::Rounds(rounds) => (rounds, apart(one_way, rounds)),
            Repeat::For(_) | Repeat::Forever => (u64::MAX, Span::ZERO),
        };
        let mut scheduler = InRounds {
            source,
            passes: Passes::new(geometry.symbol_size),
            order: Rounds::new(geometry.symbols_per_block, share, window, geometry.manifest_blocks()),
            most,
            apart,
            started: Time::ZERO,
            now: Time::ZERO,
            is_finished: false,
        };
        scheduler.follow_source();
        scheduler
    }

    /// Whether all rounds were sent, or the next round does not begin yet.
    fn rests(&self) -> bool {
        let rounds = self.order.rounds();
        let next_at = self.started + self.apart * rounds;
        self.order.is_between_rounds() && (rounds >= self.most || self.now < next_at)
    }

    /// Prepares the blocks that contain withdrawn files to be sent again without these files.
    fn follow_withdrawals(&mut self) -> Result<(), ObjectError> {
        for affected in self.source.take_affected() {
            self.passes.forget(affected.block());
            match affected {
                Affected::Void(block) => self.order.withdraw(block),
                Affected::Mixed(block) if self.order.renew(block) => {}
                Affected::Mixed(index) => return Err(ObjectError::WithdrawnTooOften { index }),
            }
        }
        Ok(())
    }

    fn follow_source(&mut self) {
        while self.order.end() < self.source.ready() {
            self.order.push(self.source.symbols(self.order.end()));
        }
        if self.source.blocks().is_some() && !self.is_finished {
            self.is_finished = true;
            self.order.finish();
        }
    }
}

/// Returns the number of symbols of a full block per round.
fn share(one_way: &OneWay, geometry: &Geometry) -> u32 {
    let symbols = f64::from(geometry.symbols_per_block);
    (symbols + (symbols * one_way.overhead).ceil()) as u32
}

/// Returns the number of blocks that are interleaved. An outage of the stated length then costs each block half of its repair
/// symbols, within the limit of the memory.
fn window(one_way: &OneWay, geometry: &Geometry) -> u32 {
    let (share, symbol_size) = (u64::from(share(one_way, geometry)), u64::from(geometry.symbol_size));
    let spare = (share - u64::from(geometry.symbols_per_block)) as f64 / share as f64;
    if one_way.burst.is_zero() || spare == 0.0 {
        return 1;
    }
    let bytes = one_way.rate.bps() / 8.0 * one_way.burst.as_secs_f64() * 2.0 / spare;
    let most = 2 * MEMORY / (share * symbol_size).max(1);
    ((bytes / (share * (symbol_size + HEADERS)) as f64) as u64).clamp(1, most.max(1)) as u32
}

/// Returns the minimum time between the starts of two of `rounds` rounds. An outage of the stated length then leaves one round
/// undamaged, however small the content is.
fn apart(one_way: &OneWay, rounds: u64) -> Span {
    match rounds.saturating_sub(1) {
        0 => Span::ZERO,
        _ if one_way.burst.is_zero() => Span::ZERO,
        pauses => (span(one_way.burst) + AFTER_OUTAGE) / pauses,
    }
}

impl Scheduler for InRounds {
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

    fn start(&mut self, now: Time) {
        (self.started, self.now) = (now, now);
    }

    fn look(
        &mut self,
        now: Time,
        leisure: Leisure,
        _: &dyn Fn(Layer) -> Rate,
    ) -> Result<Looked, ObjectError> {
        self.now = now;
        let knew_root = self.source.root().is_some();
        self.source.poll(now, leisure)?;
        self.follow_source();
        self.follow_withdrawals()?;
        // Receivers that have all blocks wait only for the root hash.
        let is_news = !knew_root && self.source.root().is_some();
        Ok(if is_news { Looked::AtTheEnd } else { Looked::Nothing })
    }

    fn has_work(&self) -> bool {
        self.source.has_work()
    }

    fn has(&self, _layer: Layer) -> bool {
        !self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.order.waits_for_blocks() || self.rests()
    }

    fn next(&mut self, _layer: Layer) -> Result<Option<Chosen<'_>>, ObjectError> {
        if self.rests() {
            return Ok(None);
        }
        let pick = loop {
            self.follow_withdrawals()?;
            let Some(pick) = self.order.next_pick() else { return Ok(None) };
            if !self.passes.has(pick) {
                self.passes.load(pick.block, self.order.rest_of_pass(pick), &mut self.source)?;
            }
            // If a file was withdrawn while its block was read, the symbol numbers of the block have changed.
            if !self.source.has_affected() {
                break pick;
            }
        };
        let (symbols, payload) = self.passes.take(pick);
        let place = Payload { block: pick.block, symbol: pick.symbol };
        // A symbol is never sent again, so no flag is set.
        Ok(Some(Chosen { place, symbols, payload, flags: Flags::default() }))
    }

    /// Orders the blocks that are sent next.
    fn prepare(&mut self, _layer: Layer) {
        for block in self.order.coming(AHEAD) {
            if !self.passes.has_block(block) {
                self.source.order(block);
            }
        }
    }

    fn hash(&self, block: u32) -> Option<Hash> {
        self.source.hash(block)
    }

    fn status(&self) -> BlockStatus {
        BlockStatus {
            oldest: 0,
            complete_to: self.order.complete_to(),
            blocks: self.source.blocks(),
            root: self.source.root(),
            withdrawn: self.source.withdrawn().len() as u32,
            end_proof: EndProof::default(),
        }
    }

    fn amounts(&self) -> Amounts {
        let geometry = self.source.geometry();
        let left = self.order.symbols_sent_first() * u64::from(geometry.symbol_size);
        Amounts {
            content_bytes: self.source.content_bytes(),
            sent_bytes: left.saturating_sub(u64::from(geometry.manifest_len)),
            content_symbols: self.source.content_symbols(),
            sent_symbols: self.order.symbols_sent(),
        }
    }

    fn rounds(&self) -> u64 {
        self.order.rounds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn geometry() -> Geometry {
        Geometry { symbol_size: 1400, symbols_per_block: 256, stream_len: Some(1 << 30), manifest_len: 100 }
    }

    fn one_way(mbps: f64, overhead: f64, burst: u64) -> OneWay {
        let mut one_way = OneWay::new(Rate::from_mbps(mbps), Repeat::Rounds(3));
        (one_way.overhead, one_way.burst) = (overhead, Duration::from_secs(burst));
        one_way
    }

    #[test]
    fn window_spans_an_outage_within_the_memory() {
        // 320 symbols per block, 64 of them repair symbols: the window is ten times the outage.
        let (rate, geometry) = (20.0, geometry());
        let blocks = window(&one_way(rate, 0.25, 3), &geometry);
        let seconds = f64::from(blocks) * 320.0 * 1464.0 * 8.0 / (rate * 1e6);
        assert!((29.0..=30.0).contains(&seconds), "{seconds}");
        let most = window(&one_way(10_000.0, 0.25, 3), &geometry);
        assert_eq!(u64::from(most) * 320 * 1400 / (1 << 20), 1023);
        assert_eq!(window(&one_way(rate, 0.25, 0), &geometry), 1);
        assert_eq!(window(&one_way(rate, 0.0, 3), &geometry), 1);
    }

    #[test]
    fn rounds_begin_so_far_apart_that_one_outage_misses_one() {
        let all = |rounds| apart(&one_way(20.0, 0.25, 3), rounds) * rounds.saturating_sub(1);
        assert_eq!(
            (all(1), all(2), all(4)),
            (Span::ZERO, Span::from_millis(3_600), Span::from_millis(3_600))
        );
    }
}
