//! A thread that reads and seals blocks in advance, so that sending need not wait until blocks are read and hashed.

use faircast_object::{Hash, ObjectError, SealedBlocks, Withdrawal};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Number of blocks that are read ahead.
const AHEAD: u32 = 4;

/// Maximum number of blocks in `early`, if only requested blocks are read ahead.
const MAX_EARLY: usize = 16;

/// Selection of the blocks that are read ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    /// The blocks that follow the block taken last.
    InARow,
    /// The blocks that were requested by [`Reader::order`].
    AsTold,
}

/// Whether files were withdrawn after a block was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// No file was withdrawn afterwards.
    Current,
    /// A file was withdrawn afterwards.
    Stale,
}

/// Reads the blocks of an object stream from files. The numbers of the blocks are mostly ascending.
pub struct Reader {
    orders: Sender<(u32, Vec<u8>)>,
    read: Receiver<Read>,
    /// Used in place of the thread if the disk has fault injection: reads the requested blocks in the session's thread.
    here: Option<Box<dyn FnMut() + Send>>,
    /// Blocks that were requested and that the thread has not delivered yet, in the order of delivery.
    under_way: VecDeque<u32>,
    /// Blocks that arrived and were not taken yet.
    early: Vec<Read>,
    spare: Vec<Vec<u8>>,
    blocks: u32,
    ahead: Ahead,
    /// Files that reads have withdrawn, and that the caller has not taken yet.
    withdrawals: Vec<Withdrawal>,
    /// Number of files that all reads together have withdrawn so far.
    withdrawn: usize,
}

/// The receiving end of the blocks has been dropped.
struct NotWanted;

/// A block and the result of its read.
struct Read {
    block: u32,
    bytes: Vec<u8>,
    sealed: Result<(u16, Hash), ObjectError>,
    /// Files that this read has withdrawn. `withdrawn` is the number of files withdrawn by this read and all earlier reads.
    withdrawals: Vec<Withdrawal>,
    withdrawn: usize,
}

impl Reader {
    /// Starts reading the `blocks` blocks of `object`.
    pub fn new(mut object: SealedBlocks, blocks: u32) -> Reader {
        let has_faults = object.disk().has_faults();
        let (orders, ordered) = channel::<(u32, Vec<u8>)>();
        let (done, read) = channel();
        let mut carry_out = move |(block, mut bytes): (u32, Vec<u8>)| {
            let sealed = object.read(block, &mut bytes).and_then(|sealed| {
                sealed.ok_or(ObjectError::NoSuchBlock { index: block, blocks }) // never for files
            });
            let (withdrawals, withdrawn) = (object.take_withdrawals(), object.withdrawn());
            let read = Read { block, bytes, sealed, withdrawals, withdrawn };
            done.send(read).map_err(|_| NotWanted)
        };
        if has_faults {
            let here = Box::new(move || ordered.try_iter().for_each(|order| _ = carry_out(order)));
            return Reader::with(orders, read, blocks, Some(here));
        }
        std::thread::spawn(move || {
            for order in ordered {
                if carry_out(order).is_err() {
                    return; // the reader was dropped
                }
            }
        });
        Reader::with(orders, read, blocks, None)
    }

    fn with(
        orders: Sender<(u32, Vec<u8>)>,
        read: Receiver<Read>,
        blocks: u32,
        here: Option<Box<dyn FnMut() + Send>>,
    ) -> Reader {
        let mut reader = Reader {
            orders,
            read,
            here,
            under_way: VecDeque::new(),
            early: Vec::new(),
            spare: Vec::new(),
            blocks,
            ahead: Ahead::InARow,
            withdrawals: Vec::new(),
            withdrawn: 0,
        };
        (0..AHEAD).for_each(|block| reader.order(block));
        reader
    }

    /// From now on, only blocks that [`Reader::order`] requests are read ahead.
    pub fn read_on_order(&mut self) {
        self.ahead = Ahead::AsTold;
    }

    /// Returns the files that were withdrawn since the last call.
    pub fn take_withdrawals(&mut self) -> Vec<Withdrawal> {
        std::mem::take(&mut self.withdrawals)
    }

    /// Fills `bytes` with the sealed block `block`; the previous memory of `bytes` is reused for a later block. Returns the
    /// number of source symbols of the block, its hash and its age. In the meantime, the thread reads the following blocks.
    pub fn take(&mut self, block: u32, bytes: &mut Vec<u8>) -> Result<(u16, Hash, Age), ObjectError> {
        self.spare.push(std::mem::take(bytes));
        let read = loop {
            if let Some(at) = self.early.iter().position(|read| read.block == block) {
                break self.early.swap_remove(at);
            }
            self.order(block);
            self.under_way.pop_front();
            self.here.iter_mut().for_each(|carry_out| carry_out());
            let mut read = self.read.recv().expect("the thread answers every order");
            self.withdrawals.append(&mut read.withdrawals);
            self.withdrawn = read.withdrawn;
            if read.block == block {
                break read;
            }
            self.early.push(read);
        };
        *bytes = read.bytes;
        let age = if read.withdrawn == self.withdrawn { Age::Current } else { Age::Stale };
        let sealed = read.sealed.map(|(symbols, hash)| (symbols, hash, age));
        if self.ahead == Ahead::AsTold {
            if self.early.len() > MAX_EARLY {
                self.spare.push(self.early.remove(0).bytes); // ordered but unused
            }
            self.spare.truncate(MAX_EARLY);
            return sealed;
        }
        let next = block + 1..self.blocks.min(block.saturating_add(1 + AHEAD));
        // Blocks other than the following blocks are dropped, and the memory of the dropped blocks is reused.
        if self.early.len() > AHEAD as usize {
            for index in (0..self.early.len()).rev() {
                if !next.contains(&self.early[index].block) {
                    self.spare.push(self.early.swap_remove(index).bytes);
                }
            }
        }
        next.for_each(|block| self.order(block));
        sealed
    }

    /// Requests block `block`; it is read after all blocks that were requested before.
    pub fn order(&mut self, block: u32) {
        let known = self.under_way.contains(&block) || self.early.iter().any(|read| read.block == block);
        if block < self.blocks && !known {
            self.under_way.push_back(block);
            // An error is ignored, because `take` notices when the thread has ended.
            _ = self.orders.send((block, self.spare.pop().unwrap_or_default()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_object::{ObjectStream, verify_block};

    fn reader_of(len: usize) -> (Reader, Vec<u8>, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let content: Vec<u8> = (0..len).map(|at| (at / 7) as u8).collect();
        let path = dir.path().join("file");
        std::fs::write(&path, &content).expect("room for a small file");
        let object = ObjectStream::open(&[path], 64, 8).expect("a readable file");
        let blocks = object.geometry().blocks().expect("files have a length");
        (Reader::new(SealedBlocks::new(object), blocks), content, dir)
    }

    fn data(reader: &mut Reader, block: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        reader.take(block, &mut bytes).expect("readable");
        verify_block(&bytes).expect("sealed").0.to_vec()
    }

    #[test]
    fn only_requested_blocks_are_read_ahead() {
        let (mut reader, content, _dir) = reader_of(20_000);
        reader.read_on_order();
        let blocks = reader.blocks;
        let mut all = vec![Vec::new(); blocks as usize];
        for at in 0..blocks {
            let block = at * 7 % blocks; // coprime to the number of blocks
            reader.order((at + 1) * 7 % blocks);
            all[block as usize] = data(&mut reader, block);
            assert!(reader.early.len() + reader.under_way.len() <= 6, "four from the start, and one");
        }
        assert!(all.concat().ends_with(&content));
    }

    #[test]
    fn number_of_unused_blocks_read_ahead_is_bounded() {
        let (mut reader, _, _dir) = reader_of(60_000);
        reader.read_on_order();
        (0..100).for_each(|block| reader.order(block));
        (0..30).for_each(|_| _ = data(&mut reader, 99));
        assert!(reader.early.len() <= 100 - 30 + MAX_EARLY, "{}", reader.early.len());
    }

    #[test]
    fn blocks_can_be_read_in_any_order() {
        let (mut reader, content, _dir) = reader_of(20_000);
        let blocks = reader.blocks;
        let forward: Vec<u8> = (0..blocks).flat_map(|block| data(&mut reader, block)).collect();
        assert!(forward.ends_with(&content));
        let mut backward: Vec<Vec<u8>> = (0..blocks).rev().map(|block| data(&mut reader, block)).collect();
        backward.reverse();
        assert_eq!(backward.concat(), forward);
        assert_eq!(data(&mut reader, 3), data(&mut reader, 3));
    }
}
