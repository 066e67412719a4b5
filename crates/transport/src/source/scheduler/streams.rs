//! Live streams in layers: each layer has its own stream, the base layer first, without repairs on request.
//!
//! ```text
//!   layer l:  | K source symbols | R repairs || K' source symbols | R' repairs | more repairs while nothing waits
//!              block n                        block n + 1
//! ```
//!
//! A block is sent completely before the next block begins. A symbol of the next block thus shows a receiver that the source has
//! finished the block before it. The receiver then continues even if that block is incomplete. A layer drops whole blocks of data
//! that it could not send in time.

use super::{Amounts, BlockStatus, Chosen, EndProof, Looked, Scheduler, repairs_for};
use crate::announced::LIVE_ROOT;
use crate::config::{LayerInput, Pacing};
use crate::error::Error;
use crate::event::StreamSent;
use crate::object::{Counts, Entry, Geometry, Hash, Kind, Manifest, ObjectError, TransferId, seal_block};
use crate::source::block_source::{Leisure, MAX_BLOCKS};
use faircast_core::packet::{Flags, Layer, Payload};
use faircast_core::schemes::{LayerRates, Scheme};
use faircast_core::time::{Rate, Span, Time};
use faircast_fec::{BlockEncoder, RepairSource, Shape};
use faircast_host::pipe::Pipe;
use std::collections::VecDeque;
use std::time::Duration;

/// Minimum size of a block, in source symbols. Each block has at least one repair symbol, which would be a large share of a
/// smaller block.
const MIN_BLOCK: u16 = 8;

/// Maximum number of bytes of a live input that wait to be sent. Beyond it, the writer of the input has to wait.
const MAX_WAITING: usize = 8 << 20;

/// Number of blocks read ahead from an input that can wait.
const AHEAD: usize = 2;

/// Number of newest blocks of a live input that are stored before the start, regardless of their age.
const KEPT: usize = 4;

/// Interval at which inputs are polled when there is no other work.
const LOOK_EVERY: Span = Span::from_millis(2);

/// Time between the last symbol and the announcement of the end. In this time, receivers process the symbol.
const TAIL: Span = Span::from_millis(300);

/// Maximum number of repair symbols, as a multiple of the configured number.
const MAX_RAISED: f64 = 2.0;

/// Source of a layer's bytes.
pub(crate) trait Feed: Send {
    /// Returns up to `most` bytes, once `most` bytes are available, the oldest byte has waited for `timeout`, or the input has
    /// ended. Returns `None` before that.
    fn take(&mut self, most: usize, timeout: Span, now: Time) -> Result<Option<Vec<u8>>, ObjectError>;

    /// Whether the input has ended and all its bytes were taken.
    fn is_finished(&self) -> bool;

    /// Returns whether the input waits until its layer has sent earlier bytes.
    fn pacing(&self) -> Pacing;
}

/// A file or pipe.
pub(crate) struct Input {
    pipe: Pipe,
    pacing: Pacing,
}

impl Input {
    /// Opens a file, named pipe or reader. The writer of a pipe may open it later.
    ///
    /// # Errors
    /// If a file cannot be opened.
    fn open(input: &LayerInput) -> Result<Input, ObjectError> {
        let (pipe, pacing) = match input {
            LayerInput::Reader { input, pacing } => (Pipe::of(input).0, *pacing),
            LayerInput::Path(path) => {
                let meta = path.metadata().map_err(|e| ObjectError::io(path, "read", e))?;
                let pacing = if meta.is_file() { Pacing::Waits } else { Pacing::Live };
                (Pipe::open(path, pacing)?, pacing)
            }
        };
        Ok(Input { pipe, pacing })
    }
}

impl Feed for Input {
    fn take(&mut self, most: usize, timeout: Span, _: Time) -> Result<Option<Vec<u8>>, ObjectError> {
        self.pipe.take(most, Duration::from_nanos(timeout.as_nanos()))
    }

    fn is_finished(&self) -> bool {
        self.pipe.is_drained()
    }

    fn pacing(&self) -> Pacing {
        self.pacing
    }
}

/// Use of the turns in which a layer has no data: repair symbols in addition to those of each block.
///
/// Receivers decide from the arriving data of a layer whether they can take more layers. A layer far below its rate gives them no
/// information; RLC's receivers ignore a burst that is not full (paper 004, 3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fill {
    /// Uses all such turns, because the layers' rates are bounded.
    All,
    /// Sends at most this multiple of a block's source symbols as additional repair symbols, because the rates have no bound.
    Times(u32),
}

impl Fill {
    /// Returns the use of idle turns for the receivers of this scheme.
    pub(crate) fn of(scheme: &Scheme) -> Fill {
        match scheme.entry().layers {
            LayerRates::Adaptive => Fill::Times(3),
            LayerRates::One | LayerRates::Bounded => Fill::All,
        }
    }
}

/// Block sizes and repairs of streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) symbol_size: u16,
    /// Maximum number of source symbols of a block.
    pub(crate) symbols: u16,
    /// Ratio of repair symbols to source symbols.
    pub(crate) repair: f64,
    /// Age at which unsent live input is dropped.
    pub(crate) history: Span,
    /// A block holds the data that a layer sends in this time. Input waits at most this long until its block is full.
    pub(crate) block_time: Span,
    pub(crate) fill: Fill,
}

/// The streams of all layers with an input.
pub(crate) struct Streams {
    lanes: Vec<Lane>,
    cut: Cut,
    geometry: Geometry,
    transfer: TransferId,
    /// Ratio of repair symbols to source symbols, adapted to the receivers' losses.
    repair: f64,
    started: Option<Time>,
    ended: Option<Time>,
    whole: Whole,
    scratch: Vec<u8>,
}

/// Whether the end of all streams has been sent, so that receivers may be notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    No,
    Yes,
}

/// The stream of one layer.
struct Lane {
    feed: Box<dyn Feed>,
    waiting: VecDeque<Sealed>,
    waiting_bytes: usize,
    sending: Option<Sending>,
    /// Number of the next new block.
    next: u32,
    /// Time since which the layer has been off.
    off_since: Option<Time>,
    sent: StreamSent,
    symbols: u64,
    source_symbols: u64,
    warned_of: u64,
}

/// A waiting block.
struct Sealed {
    number: u32,
    bytes: Vec<u8>,
    symbols: u16,
    /// Bytes of the stream in the block.
    data: u64,
    made: Time,
}

/// The block that is being sent, or that was sent last.
struct Sending {
    number: u32,
    encoder: BlockEncoder,
    data: u64,
    made: Time,
    next: u32,
    /// Number of the symbol after the block's own repairs.
    end: u32,
    /// Number of the symbol after the repairs that fill idle turns.
    limit: u32,
}

impl Streams {
    /// Opens these inputs, the base layer's first.
    ///
    /// # Errors
    /// If an input cannot be opened, or the symbol size allows no block.
    pub(crate) fn open(inputs: &[LayerInput], cut: Cut, unix_nanos: u64) -> Result<Streams, Error> {
        let open = |input| Input::open(input).map(|input| Box::new(input) as Box<dyn Feed>);
        let feeds = inputs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        Streams::new(feeds, cut, unix_nanos)
    }

    /// Creates a stream for each layer from the base layer up; `unix_nanos` distinguishes the session from others.
    ///
    /// # Errors
    /// If the symbol size allows no block.
    pub(crate) fn new(feeds: Vec<Box<dyn Feed>>, cut: Cut, unix_nanos: u64) -> Result<Streams, Error> {
        let entry = Entry::new("layers", Kind::Stream, 0o644, unix_nanos as i64);
        let manifest = Manifest::new(vec![entry]).map_err(ObjectError::from)?.encode();
        let named = Geometry {
            stream_len: None,
            manifest_len: manifest.len() as u32,
            symbol_size: cut.symbol_size,
            symbols_per_block: cut.symbols,
        };
        named.check().map_err(ObjectError::from)?;
        Ok(Streams {
            lanes: feeds.into_iter().map(Lane::new).collect(),
            cut,
            // The manifest is not sent: late joiners would never receive it.
            geometry: Geometry { manifest_len: 0, ..named },
            transfer: TransferId::of(&manifest, &named),
            repair: cut.repair,
            started: None,
            ended: None,
            whole: Whole::No,
            scratch: vec![0; usize::from(cut.symbol_size)],
        })
    }

    /// Returns the block and symbol number of the next symbol on `layer`, the number of source symbols of its block, and the
    /// symbol.
    fn turn(&mut self, layer: Layer) -> Option<(Payload, u16, &[u8])> {
        let lane = self.lanes.get_mut(usize::from(layer.0))?;
        if !lane.has() {
            return None;
        }
        lane.turn(&self.cut, self.repair);
        let sending = lane.sending.as_mut().filter(|sending| sending.next < sending.limit)?;
        let (symbol, symbols) = (sending.next, sending.encoder.shape().symbols());
        sending.next += 1;
        lane.symbols += 1;
        let payload = Payload { block: sending.number, symbol };
        if symbol < u32::from(symbols) {
            let bytes = sending.encoder.source(symbol).expect("a source symbol's id is below K");
            return Some((payload, symbols, bytes));
        }
        sending.encoder.repair(symbol, &mut self.scratch).expect("limits are ids, scratch is one symbol");
        Some((payload, symbols, &self.scratch))
    }

    fn sum(&self, of: fn(&Lane) -> u64) -> u64 {
        self.lanes.iter().map(of).sum()
    }
}

impl Scheduler for Streams {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn transfer(&self) -> TransferId {
        self.transfer
    }

    fn is_live(&self) -> bool {
        true
    }

    fn entries(&self) -> Counts {
        Counts::of_files(self.lanes.len() as u64)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        let history = self.cut.history;
        let dropped = (0..).zip(&mut self.lanes).filter_map(|(layer, lane): (u8, _)| {
            let dropped = lane.sent.blocks_dropped - lane.warned_of;
            lane.warned_of = lane.sent.blocks_dropped;
            (dropped > 0).then(|| {
                format!(
                    "layer {layer} is sent more slowly than its stream arrives: dropped {dropped} blocks older than {history}"
                )
            })
        });
        dropped.collect()
    }

    /// Starts the session: from now on blocks are sent, or dropped when they are too old.
    fn start(&mut self, now: Time) {
        self.started.get_or_insert(now);
    }

    fn look(&mut self, now: Time, _: Leisure, rate: &dyn Fn(Layer) -> Rate) -> Result<Looked, ObjectError> {
        let (cut, started) = (self.cut, self.started);
        for (layer, lane) in (0..).zip(&mut self.lanes) {
            let rate = rate(Layer(layer));
            lane.off_since = if rate.bps() > 0.0 { None } else { lane.off_since.or(Some(now)) };
            lane.take_in(&cut, rate, now)?;
            lane.drop_old(&cut, started, now);
        }
        let is_finished = |lane: &Lane| lane.is_finished(cut.history, now);
        self.ended = match started {
            Some(_) if self.lanes.iter().all(is_finished) => self.ended.or(Some(now)),
            _ => None,
        };
        if self.whole == Whole::No && self.ended.is_some_and(|ended| now >= ended + TAIL) {
            self.whole = Whole::Yes;
            return Ok(Looked::AtTheEnd);
        }
        Ok(Looked::Nothing)
    }

    fn look_every(&self) -> Option<Span> {
        Some(LOOK_EVERY)
    }

    fn has(&self, layer: Layer) -> bool {
        self.lanes.get(usize::from(layer.0)).is_some_and(Lane::has)
    }

    fn is_idle(&self) -> bool {
        !self.lanes.iter().any(Lane::has)
    }

    fn next(&mut self, layer: Layer) -> Result<Option<Chosen<'_>>, ObjectError> {
        let flags = Flags::default();
        Ok(self.turn(layer).map(|(place, symbols, payload)| Chosen { place, symbols, payload, flags }))
    }

    fn on_reported_loss(&mut self, loss: f64, _rtt: Span) {
        self.repair = repairs_for(loss).clamp(self.cut.repair, self.cut.repair * MAX_RAISED);
    }

    /// Returns a status that states only the end of the content. It states no blocks, because each layer has its own blocks, and
    /// no receiver needs the blocks of all layers.
    fn status(&self) -> BlockStatus {
        let is_whole = self.whole == Whole::Yes;
        BlockStatus {
            oldest: 0,
            complete_to: 0,
            blocks: is_whole.then_some(0),
            root: is_whole.then_some(Hash(LIVE_ROOT)),
            withdrawn: 0,
            end_proof: EndProof::default(),
        }
    }

    fn amounts(&self) -> Amounts {
        let bytes = self.sum(|lane| lane.sent.bytes);
        Amounts {
            content_bytes: bytes,
            sent_bytes: bytes,
            content_symbols: self.sum(|lane| lane.source_symbols),
            sent_symbols: self.sum(|lane| lane.symbols),
        }
    }

    fn streams(&self) -> Vec<StreamSent> {
        self.lanes.iter().map(|lane| lane.sent).collect()
    }
}

impl Lane {
    fn new(feed: Box<dyn Feed>) -> Lane {
        Lane {
            feed,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            sending: None,
            next: 0,
            off_since: None,
            sent: StreamSent::default(),
            symbols: 0,
            source_symbols: 0,
            warned_of: 0,
        }
    }

    /// Makes blocks of the input, each with the data that the layer sends in the time of a block.
    fn take_in(&mut self, cut: &Cut, rate: Rate, now: Time) -> Result<(), ObjectError> {
        let in_time = rate.bps() / 8.0 * cut.block_time.as_secs_f64() / f64::from(cut.symbol_size);
        let symbols = (in_time as u16).clamp(MIN_BLOCK.min(cut.symbols), cut.symbols);
        let most = usize::from(symbols) * usize::from(cut.symbol_size) - crate::object::TRAILER;
        let has_room = |lane: &Lane| match lane.feed.pacing() {
            Pacing::Waits => lane.waiting.len() < AHEAD,
            Pacing::Live => lane.waiting_bytes < MAX_WAITING,
        };
        while has_room(self) {
            let Some(mut bytes) = self.feed.take(most, cut.block_time, now)? else { break };
            if self.next >= MAX_BLOCKS {
                return Err(ObjectError::StreamTooLong { blocks: MAX_BLOCKS });
            }
            let data = bytes.len() as u64;
            let (symbols, _) = seal_block(&mut bytes, cut.symbol_size);
            self.waiting_bytes += bytes.len();
            self.waiting.push_back(Sealed { number: self.next, bytes, symbols, data, made: now });
            self.next += 1;
        }
        Ok(())
    }

    /// Drops input older than the history, in whole blocks.
    fn drop_old(&mut self, cut: &Cut, started: Option<Time>, now: Time) {
        if self.feed.pacing() == Pacing::Waits {
            return;
        }
        let is_old = |made: Time| now.since(made.max(started.unwrap_or(made))) > cut.history;
        while self.waiting.front().is_some_and(|block| is_old(block.made))
            && (started.is_some() || self.waiting.len() > KEPT)
            && let Some(block) = self.waiting.pop_front()
        {
            self.waiting_bytes -= block.bytes.len();
            // Blocks dropped before the start are not counted, because no receiver misses them.
            self.sent.blocks_dropped += u64::from(started.is_some());
        }
        let stuck = |sending: &mut Sending| {
            sending.next < u32::from(sending.encoder.shape().symbols()) && is_old(sending.made)
        };
        if let Some(sending) = self.sending.take_if(stuck) {
            self.sent.blocks -= 1;
            self.sent.bytes -= sending.data;
            self.sent.blocks_dropped += 1;
        }
        // All source symbols of the current block were sent. If the block is old, its unsent repairs are dropped.
        if let Some(sending) = self.sending.as_mut().filter(|sending| is_old(sending.made)) {
            sending.end = sending.end.min(sending.next);
        }
    }

    /// Continues with the next waiting block, if the current one was sent.
    fn turn(&mut self, cut: &Cut, repair: f64) {
        if self.is_leaving() {
            return;
        }
        let Some(block) = self.waiting.pop_front() else { return };
        self.waiting_bytes -= block.bytes.len();
        let Sealed { number, bytes, symbols, data, made } = block;
        let shape = Shape::new(symbols, cut.symbol_size).expect("blocks are sealed within the geometry");
        let encoder = BlockEncoder::new(shape, bytes).expect("a sealed block has K times T bytes");
        let end = u32::from(symbols) + repairs(symbols, repair);
        let limit = match cut.fill {
            Fill::All => faircast_fec::MAX_ESI,
            Fill::Times(times) => end + u32::from(symbols) * times,
        };
        self.sent.bytes += data;
        self.sent.blocks += 1;
        self.source_symbols += u64::from(symbols);
        self.sending = Some(Sending { number, encoder, data, made, next: 0, end, limit });
    }

    /// Whether a block is being sent.
    fn is_leaving(&self) -> bool {
        self.sending.as_ref().is_some_and(|sending| sending.next < sending.end)
    }

    fn has(&self) -> bool {
        let fills = |sending: &Sending| sending.next < sending.limit && !self.feed.is_finished();
        self.is_leaving() || !self.waiting.is_empty() || self.sending.as_ref().is_some_and(fills)
    }

    /// Whether the stream has no more to send: its input has ended, or its input is a file and the layer has been off for longer
    /// than `idle_timeout`.
    fn is_finished(&self, idle_timeout: Span, now: Time) -> bool {
        let ended = self.feed.is_finished() && self.waiting.is_empty() && !self.is_leaving();
        let is_unwanted = self.feed.pacing() == Pacing::Waits
            && self.off_since.is_some_and(|since| now.since(since) > idle_timeout);
        ended || is_unwanted
    }
}

/// Returns the fraction `share` of `symbols`, rounded up. Rounding errors of the product are ignored: a tenth of ten is one.
fn repairs(symbols: u16, share: f64) -> u32 {
    (f64::from(symbols) * share - 1e-6).ceil() as u32
}

#[cfg(test)]
mod tests;
