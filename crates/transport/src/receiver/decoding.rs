//! Blocks with enough symbols: they are hashed, and a worker decodes those that lack source symbols while the session goes on.

use crate::object::gather::assembly::Gathered;
use crate::object::gather::spill;
use crate::object::{Hash, verify_block};
use crate::worker::{Load, Worker};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Enough symbols of one block to decode it.
pub(super) enum Symbols {
    /// Symbols of a block whose missing symbols are requested.
    OnRequest(Gathered),
    /// Symbols of a fountain's block.
    OfFountain(spill::Symbols),
}

/// The blocks that the worker decodes.
pub(super) struct Decoding {
    worker: Worker,
    sender: Sender<Decoded>,
    outcomes: Receiver<Decoded>,
    /// The bytes by block.
    blocks: BTreeMap<u32, u64>,
}

/// A block that the worker returns.
pub(super) struct Decoded {
    pub(super) block: u32,
    /// Its symbols, without their bytes when it was decoded.
    pub(super) symbols: Symbols,
    /// Its bytes, and the hash of its data where they are as sealed; `None` when its symbols do not decode.
    pub(super) bytes: Option<(Vec<u8>, Option<Hash>)>,
}

impl Symbols {
    /// Returns the number of source symbols of the block.
    pub(super) fn needed(&self) -> u16 {
        match self {
            Symbols::OnRequest(gathered) => gathered.symbols(),
            Symbols::OfFountain(symbols) => symbols.symbols(),
        }
    }

    /// Whether all source symbols are in their places, so that nothing is decoded.
    fn is_whole(&self) -> bool {
        matches!(self, Symbols::OnRequest(gathered) if gathered.is_whole())
    }

    fn decode(&mut self) -> Option<Vec<u8>> {
        match self {
            Symbols::OnRequest(gathered) => gathered.decode(),
            Symbols::OfFountain(symbols) => symbols.decode(),
        }
    }
}

impl Decoding {
    pub(super) fn new(worker: Worker) -> Decoding {
        let (sender, outcomes) = channel();
        Decoding { worker, sender, outcomes, blocks: BTreeMap::new() }
    }

    /// Decodes and hashes this block. One with all its source symbols is only hashed, at once: its bytes are in the cache of this
    /// processor.
    pub(super) fn begin(&mut self, block: u32, mut symbols: Symbols, bytes: u64) {
        let is_whole = symbols.is_whole();
        self.blocks.insert(block, bytes);
        let sender = self.sender.clone();
        let job = move || {
            let bytes = symbols.decode().map(|bytes| {
                let hash = verify_block(&bytes).ok().map(|(_, hash)| hash);
                (bytes, hash)
            });
            sender.send(Decoded { block, symbols, bytes }).ok(); // a session that has ended does not listen
        };
        if is_whole {
            return job();
        }
        self.worker.run(Load::Decoding, Box::new(job));
    }

    /// Returns a block that the worker has finished.
    pub(super) fn next(&mut self) -> Option<Decoded> {
        if self.blocks.is_empty() {
            return None;
        }
        let decoded = self.outcomes.try_recv().ok()?;
        self.blocks.remove(&decoded.block);
        Some(decoded)
    }

    /// Whether the worker has this block.
    pub(super) fn has(&self, block: u32) -> bool {
        !self.blocks.is_empty() && self.blocks.contains_key(&block)
    }

    /// Whether the worker has none.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the bytes of the blocks that the worker has.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.values().sum()
    }
}
