//! Receiver side of live streams in layers: receives blocks and writes the bytes of each layer in order.
//!
//! The source sends the blocks of a layer in order, each with its repair symbols. It sends no symbol of a block after the next
//! block has begun. So a receiver gives up an incomplete block soon after the first packet of a later block. It waits for a few
//! more packets, because a path may reorder packets. A gap never delays the following blocks.

use super::block_sink::Ending;
use super::symbol_sink::{Progressed, SymbolCounts, SymbolSink};
use super::trust::Trust;
use crate::config::{Destination, Durability};
use crate::error::Error;
use crate::event::{Event, Flow, StreamReceived, Subscription};
use crate::object::gather::assembly::{Added, Assembly};
use crate::object::host::quota::Quota;
use crate::object::{Counts, Finished, Geometry, ObjectError, TransferId, verify_block};
use crate::worker::Worker;
use faircast_core::packet::Layer;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_host::layer_output::{LayerOutput as Output, Written};
use faircast_wire::{DataPacket, Status};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

/// Memory for the incomplete blocks of one layer, bytes. There are rarely more than two such blocks at a time.
const INCOMPLETE: usize = 16 << 20;

/// The memory divided by this number is available for data that waits for files and programs.
const BEHIND: usize = 8;

/// Maximum distance of a stream's block from the newest known block, in blocks. Blocks beyond it are ignored.
const FARTHEST: u32 = 1 << 16;

/// The streams of a session, by layer.
pub(super) struct Streams {
    lanes: Vec<Lane>,
    reordering: u64,
    symbols_per_block: u16,
    /// Maximum number of bytes that may wait for files and programs.
    behind_most: usize,
    /// Set when the source has stated that the stream is complete.
    pub(super) ended: Option<Ended>,
    pub(super) events: Vec<Event>,
    pub(super) symbols: u64,
    pub(super) symbols_needed: u64,
}

/// Marks the end of all streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended;

/// One layer's stream.
struct Lane {
    output: Output,
    blocks: Assembly,
    state: State,
    /// Number of packets received since the layer was joined.
    packets: u64,
    /// The newest blocks, each with the value of `packets` at the arrival of its first packet.
    newest: VecDeque<(u32, u64)>,
    /// The next block to write.
    next: u32,
    /// The block that was incomplete because the layer was joined while the source sent it.
    cut: Option<u32>,
    /// Complete blocks that wait for earlier blocks.
    early: BTreeMap<u32, Vec<u8>>,
    joined_for: Span,
    got: StreamReceived,
    refused: u64,
    quota: Quota,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The layer is not joined.
    Left,
    /// The layer is joined, and no packet has arrived yet.
    Joined { since: Time },
    /// Blocks of the layer arrive.
    Flowing { since: Time },
}

impl Streams {
    /// Returns the streams of `layers` layers. The base layer is joined. `worker` writes the files.
    pub(super) fn new(
        destination: &Destination,
        layers_to: &[(Layer, PathBuf)],
        (transfer, geometry): (TransferId, &Geometry),
        layers: u8,
        reordering: u8,
        (worker, memory): (&Worker, usize),
        now: Time,
    ) -> Streams {
        let output = |layer: u8| {
            let own = layers_to.iter().rev().find(|(of, _)| *of == Layer(layer));
            match (own, destination) {
                (Some((_, path)), _) => Output::to(path, worker.blocks()),
                (None, Destination::Directory(out)) => {
                    let name = format!("stream-{}.layer{layer}", &transfer.to_string()[..8]);
                    Output::replacing(out, name, worker.blocks())
                }
                (None, Destination::Writer(output)) if layer == 0 => Output::writer(output),
                // A device is refused before.
                (None, Destination::Writer(_) | Destination::Device(_)) => Output::Nobody,
                (None, Destination::Memory(memory)) => {
                    Output::Memory(Box::new(memory.stream(format!("stream.layer{layer}"))))
                }
            }
        };
        let lanes = (0..layers.max(1)).map(|layer| Lane::new(output(layer), geometry.symbol_size));
        let mut streams = Streams {
            lanes: lanes.collect(),
            reordering: reordering.into(),
            symbols_per_block: geometry.symbols_per_block,
            behind_most: memory / BEHIND,
            ended: None,
            events: Vec::new(),
            symbols: 0,
            symbols_needed: 0,
        };
        for (Layer(layer), path) in layers_to.iter().filter(|(layer, _)| layer.0 >= layers) {
            let path = path.display();
            let text =
                format!("the session has only {layers} layers: no data arrives for layer {layer} ({path})");
            streams.events.push(Event::warning(text));
        }
        streams.lanes[0].state = State::Joined { since: now };
        streams
    }

    /// Returns the number of bytes that wait for files and programs.
    fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.output.waiting()).sum()
    }

    /// Limits all layers together to this quota.
    pub(super) fn limited_to(mut self, quota: &Quota) -> Streams {
        self.lanes.iter_mut().for_each(|lane| lane.quota = quota.clone());
        self
    }

    /// Handles a data packet of a joined layer.
    fn take_symbol(&mut self, packet: &DataPacket<'_>) -> Result<(), Error> {
        let number = usize::from(packet.layer.0);
        let (block, symbol) = (packet.data.payload.block, packet.data.payload.symbol);
        let Some(lane) = self.lanes.get_mut(number).filter(|lane| lane.state != State::Left) else {
            return Ok(());
        };
        if block == u32::MAX || packet.symbols > self.symbols_per_block {
            return Ok(()); // invalid values
        }
        match lane.state {
            State::Joined { since } => {
                if block < lane.next {
                    return Ok(()); // an old block
                }
                (lane.state, lane.next) = (State::Flowing { since }, block);
                lane.cut = (symbol > 0).then_some(block);
                let (layer, to) = (packet.layer.0, lane.output.name());
                self.events.push(Event::Output { layer, flow: Flow::Starts, bytes: lane.got.bytes, to });
            }
            _ if block < lane.next || block > lane.newest().saturating_add(FARTHEST) => return Ok(()),
            _ => {}
        }
        self.symbols += 1;
        if let Some(needed) = lane.take_in(block, packet) {
            self.symbols_needed += u64::from(needed);
        }
        let given_up = lane.given_up(self.reordering);
        let written = lane.write(given_up);
        self.check(number, written)
    }

    /// Returns the warnings for the user at the end.
    fn warnings(&self) -> Vec<String> {
        let lost = (0..).zip(&self.lanes).filter(|(_, lane): &(u8, _)| lane.got.blocks_lost > 0);
        let refused = (0..).zip(&self.lanes).filter(|(_, lane): &(u8, _)| lane.refused > 0);
        let lost = lost.map(|(layer, lane)| {
            let (lost, all) = (lane.got.blocks_lost, lane.got.blocks + lane.got.blocks_lost);
            format!("{lost} of {all} blocks of layer {layer} are missing")
        });
        let refused = refused.map(|(layer, lane)| {
            format!(
                "the reader of layer {layer} was too slow, so that {} blocks are missing from its output",
                lane.refused
            )
        });
        lost.chain(refused).collect()
    }

    /// Ends the output of a layer until it is joined again, and writes its complete blocks.
    fn stop(&mut self, layer: usize, now: Time) -> Result<(), Error> {
        let lane = &mut self.lanes[layer];
        let since = match lane.state {
            State::Left => return Ok(()),
            State::Joined { since } | State::Flowing { since } => since,
        };
        let flowed = matches!(lane.state, State::Flowing { .. });
        lane.joined_for = lane.joined_for + now.since(since);
        lane.state = State::Left;
        if !flowed {
            return Ok(());
        }
        // The rest of the newest block does not count as lost, because the layer was left before that block was complete.
        if self.ended.is_none() {
            lane.cut = Some(lane.newest());
        }
        let written = lane.write(lane.newest().saturating_add(1));
        lane.newest.clear();
        (lane.packets, lane.cut) = (0, None);
        let to = lane.output.name();
        let bytes = lane.got.bytes;
        self.events.push(Event::Output { layer: layer as u8, flow: Flow::Stops, bytes, to });
        self.check(layer, written)
    }

    /// Checks the result of a write. A failure on an enhancement layer ends only the output of that layer.
    fn check(&mut self, layer: usize, written: Result<(), ObjectError>) -> Result<(), Error> {
        match written {
            Err(error) if layer > 0 => {
                self.lanes[layer].output = Output::Nobody;
                self.events.push(Event::warning(format!("layer {layer} is no longer written: {error}")));
                Ok(())
            }
            other => Ok(other?),
        }
    }
}

impl SymbolSink for Streams {
    fn on_symbol(
        &mut self,
        packet: &DataPacket<'_>,
        _now: Time,
        _rng: &mut Rng,
    ) -> Result<Progressed, Error> {
        self.take_symbol(packet).map(|()| Progressed::No)
    }

    fn on_status(&mut self, status: &Status, _now: Time, _rng: &mut Rng) {
        self.ended = self.ended.or(status.blocks.map(|_| Ended));
    }

    fn restart(&mut self, now: Time, _: Option<Trust>) -> Result<(), Error> {
        for layer in 0..self.lanes.len() {
            self.stop(layer, now)?;
            self.lanes[layer].next = 0;
        }
        self.lanes[0].state = State::Joined { since: now };
        Ok(())
    }

    fn subscribe(&mut self, subscription: Subscription, now: Time) -> Result<(), Error> {
        for layer in 0..self.lanes.len() {
            let is_joined = layer < usize::from(subscription.joined);
            let lane = &mut self.lanes[layer];
            match lane.state {
                State::Left if is_joined => lane.state = State::Joined { since: now },
                State::Joined { .. } | State::Flowing { .. } if !is_joined => self.stop(layer, now)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn is_complete(&self) -> bool {
        self.ended.is_some()
    }

    fn finish(
        &mut self,
        _blocks: u32,
        _root: [u8; 32],
        _durability: Durability,
        now: Time,
    ) -> Result<Ending, Error> {
        (0..self.lanes.len()).try_for_each(|layer| self.stop(layer, now))?;
        if self.is_storing() {
            return Ok(Ending::UnderWay);
        }
        for layer in 0..self.lanes.len() {
            let written = self.lanes[layer].output.finish();
            self.check(layer, written)?;
        }
        let brought = |lane: &&Lane| lane.got.blocks > 0 && lane.got.to.is_some();
        let files = self.lanes.iter().filter(brought).count() as u64;
        let entries = Counts::of_files(files);
        let (bytes, warnings) = (self.verified_bytes(), self.warnings());
        let done = Finished { entries, bytes, warnings, ..Finished::default() };
        Ok(Ending::Done(done))
    }

    fn is_storing(&self) -> bool {
        self.is_complete() && self.waiting() > 0
    }

    fn waits_for_output(&self) -> bool {
        self.waiting() > self.behind_most
    }

    fn missing(&self) -> u32 {
        if self.is_complete() { 0 } else { u32::MAX }
    }

    fn gathered_bytes(&self) -> u64 {
        self.verified_bytes()
    }

    fn verified_bytes(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.got.bytes).sum()
    }

    fn stored_bytes(&self) -> u64 {
        self.verified_bytes()
    }

    fn unwritten_bytes(&self) -> u64 {
        self.waiting() as u64
    }

    fn symbols(&self) -> SymbolCounts {
        let decoded = self.lanes.iter().map(|lane| lane.blocks.decoded).sum();
        SymbolCounts { received: self.symbols, needed: self.symbols_needed, decoded }
    }

    fn streams(&self) -> Vec<StreamReceived> {
        let of = |lane: &Lane| StreamReceived { joined_for: lane.joined_for.into(), ..lane.got.clone() };
        self.lanes.iter().map(of).collect()
    }
}

impl Lane {
    fn new(output: Output, symbol_size: u16) -> Lane {
        let got = StreamReceived { to: output.name(), ..StreamReceived::default() };
        Lane {
            output,
            blocks: Assembly::new(usize::from(symbol_size), INCOMPLETE),
            state: State::Left,
            packets: 0,
            newest: VecDeque::new(),
            next: 0,
            cut: None,
            early: BTreeMap::new(),
            joined_for: Span::ZERO,
            got,
            refused: 0,
            quota: Quota::default(),
        }
    }

    /// Returns the newest received block.
    fn newest(&self) -> u32 {
        self.newest.back().map_or(self.next, |(block, _)| *block)
    }

    /// Stores a symbol. If it completes a block, returns the number of symbols that this block needed.
    fn take_in(&mut self, block: u32, packet: &DataPacket<'_>) -> Option<u16> {
        self.packets += 1;
        if self.newest.back().is_none_or(|(newest, _)| block > *newest) {
            self.newest.push_back((block, self.packets));
        }
        if self.early.contains_key(&block) {
            return None; // a surplus repair symbol
        }
        let symbol = packet.data.payload.symbol;
        if self.blocks.add(block, packet.symbols, symbol, packet.payload) != Added::Complete {
            return None;
        }
        let (block, bytes) = self.blocks.take()?;
        // A block that differs from the source's is not stored and counts as lost.
        let sound = verify_block(&bytes).ok().map(|(data, _)| data.len());
        if let Some(len) = sound {
            let mut data = bytes;
            data.truncate(len);
            self.early.insert(block, data);
        }
        sound.map(|_| packet.symbols)
    }

    /// Returns the block below which no more symbols are expected.
    fn given_up(&mut self, reordering: u64) -> u32 {
        let mut below = self.next;
        while let Some(&(block, first)) = self.newest.front() {
            if block > self.next && first + reordering > self.packets {
                break;
            }
            below = below.max(block);
            if self.newest.len() == 1 {
                break; // the newest block remains recorded
            }
            self.newest.pop_front();
        }
        below
    }

    /// Writes complete blocks up to the first gap. Gaps below `given_up` are skipped.
    fn write(&mut self, given_up: u32) -> Result<(), ObjectError> {
        let before = self.next;
        loop {
            if let Some(data) = self.early.remove(&self.next) {
                self.next += 1;
                let name = self.got.to.as_deref().unwrap_or("-");
                self.quota.spend(data.len()).map_err(|e| ObjectError::io(name, "write the stream", e))?;
                match self.output.write(&data)? {
                    Written::Yes => {
                        self.got.bytes += data.len() as u64;
                        self.got.blocks += 1;
                    }
                    Written::Full => self.refused += 1,
                }
                continue;
            }
            if self.next >= given_up {
                if self.next > before {
                    self.blocks.drop_before(self.next);
                }
                return Ok(());
            }
            let found = self.early.first_key_value().map_or(given_up, |(block, _)| (*block).min(given_up));
            let missing = u64::from(found - self.next);
            let is_cut = self.cut.take_if(|cut| (self.next..found).contains(cut)).is_some();
            self.got.blocks_lost += missing - u64::from(is_cut);
            self.next = found;
        }
    }
}

#[cfg(test)]
mod tests;
