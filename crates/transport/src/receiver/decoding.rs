//! Processing of blocks with enough symbols: the blocks are hashed. A worker decodes the blocks that lack source symbols; the
//! session continues meanwhile.

use crate::object::gather::assembly::Gathered;
use crate::object::gather::spill;
use crate::object::{Hash, verify_block};
use crate::worker::{Load, Worker};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The symbols of one block, enough to decode it.
pub(super) enum Symbols {
    /// Symbols of a block whose missing symbols were requested.
    OnRequest(Gathered),
    /// Symbols of a block of a fountain.
    OfFountain(spill::Symbols),
}

/// The blocks that the worker is decoding.
pub(super) struct Decoding {
    worker: Worker,
    sender: Sender<Decoded>,
    outcomes: Receiver<Decoded>,
    /// Number of bytes of each block.
    blocks: BTreeMap<u32, u64>,
}

/// A block that the worker has finished.
pub(super) struct Decoded {
    pub(super) block: u32,
    /// The block's symbols, without their bytes if decoding succeeded.
    pub(super) symbols: Symbols,
    /// The block's bytes, with the hash of its data if the seal of the block is valid; `None` if its symbols do not decode.
    pub(super) bytes: Option<(Vec<u8>, Option<Hash>)>,
}

impl Symbols {
    /// Returns the number of symbols that the block needed from the source.
    pub(super) fn needed(&self) -> u16 {
        match self {
            Symbols::OnRequest(gathered) => gathered.needed(),
            Symbols::OfFountain(symbols) => symbols.symbols(),
        }
    }

    /// Whether all source symbols are present, so that no decoding is needed.
    fn is_whole(&self) -> bool {
        matches!(self, Symbols::OnRequest(gathered) if gathered.is_whole())
    }

    /// Whether some of the symbols come from the disk. They may be wrong.
    pub(super) fn is_seeded(&self) -> bool {
        matches!(self, Symbols::OnRequest(gathered) if gathered.is_seeded())
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

    /// Decodes and hashes this block. If all source symbols are present, the block is only hashed, at once, while its bytes are
    /// in the cache of this processor.
    pub(super) fn begin(&mut self, block: u32, mut symbols: Symbols, bytes: u64) {
        let is_whole = symbols.is_whole();
        self.blocks.insert(block, bytes);
        let sender = self.sender.clone();
        let job = move || {
            let bytes = symbols.decode().map(|bytes| {
                let hash = verify_block(&bytes).ok().map(|(_, hash)| hash);
                (bytes, hash)
            });
            sender.send(Decoded { block, symbols, bytes }).ok(); // fails if the session has ended
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

    /// Whether the worker is decoding this block.
    pub(super) fn has(&self, block: u32) -> bool {
        !self.blocks.is_empty() && self.blocks.contains_key(&block)
    }

    /// Whether the worker is decoding no block.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the number of bytes of the blocks that the worker is decoding.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.values().sum()
    }
}
