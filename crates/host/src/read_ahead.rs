//! A thread that reads and seals blocks ahead, so that sending does not wait for files and hashes.

use faircast_object::{Hash, ObjectError, SealedBlocks, Withdrawal};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Blocks that are read ahead.
const AHEAD: u32 = 4;

/// Blocks that were read ahead and are not wanted yet, when they are not read in a row.
const MAX_EARLY: usize = 16;

/// Which blocks are read ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    /// Those that follow.
    InARow,
    /// Those that are ordered.
    AsTold,
}

/// Whether a block was read with all files withdrawn that are withdrawn by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// It was.
    Current,
    /// A file was withdrawn afterwards.
    Stale,
}

/// Reads the blocks of an object stream of files, mostly in order.
pub struct Reader {
    orders: Sender<(u32, Vec<u8>)>,
    read: Receiver<Read>,
    /// With faults of the disk: reads in the session's thread, when their result is needed.
    here: Option<Box<dyn FnMut() + Send>>,
    /// Ordered and not yet taken, in the order in which they will come.
    under_way: VecDeque<u32>,
    /// Came before they were wanted.
    early: Vec<Read>,
    spare: Vec<Vec<u8>>,
    blocks: u32,
    ahead: Ahead,
    /// Files withdrawn by reads that have come, and not taken.
    withdrawals: Vec<Withdrawal>,
    /// How many files were withdrawn by these reads and earlier ones.
    withdrawn: usize,
}

/// Nobody takes blocks any more.
struct NotWanted;

/// A block as read.
struct Read {
    block: u32,
    bytes: Vec<u8>,
    sealed: Result<(u16, Hash), ObjectError>,
    /// Files that this read has withdrawn, and how many are withdrawn with them.
    withdrawals: Vec<Withdrawal>,
    withdrawn: usize,
}

impl Reader {
    /// Begin to read the `blocks` blocks of `object`.
    pub fn new(mut object: SealedBlocks, blocks: u32) -> Reader {
        let has_faults = object.disk().has_faults();
        let (orders, ordered) = channel::<(u32, Vec<u8>)>();
        let (done, read) = channel();
        let mut carry_out = move |(block, mut bytes): (u32, Vec<u8>)| {
            let sealed = object.read(block, &mut bytes).and_then(|sealed| {
                sealed.ok_or(ObjectError::NoSuchBlock { index: block, blocks }) // files do not end
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
                    return; // nobody wants it any more
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

    /// From now on blocks are read ahead when they are ordered, and no others.
    pub fn read_on_order(&mut self) {
        self.ahead = Ahead::AsTold;
    }

    /// Files that were withdrawn since this was called last.
    pub fn take_withdrawals(&mut self) -> Vec<Withdrawal> {
        std::mem::take(&mut self.withdrawals)
    }

    /// Block `block`, sealed, in exchange for the memory in `bytes`; its source symbols and hash, and whether it was read before a
    /// file was withdrawn. The blocks after it are read meanwhile.
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
                self.spare.push(self.early.remove(0).bytes); // ordered in vain
            }
            self.spare.truncate(MAX_EARLY);
            return sealed;
        }
        let next = block + 1..self.blocks.min(block.saturating_add(1 + AHEAD));
        // Blocks that were read ahead in vain (the front has moved elsewhere) give their memory back.
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

    /// Read `block` when what was ordered before has been read.
    pub fn order(&mut self, block: u32) {
        let known = self.under_way.contains(&block) || self.early.iter().any(|read| read.block == block);
        if block < self.blocks && !known {
            self.under_way.push_back(block);
            // A thread that has ended is noticed when its answer is missing.
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
    fn blocks_that_were_ordered_are_read_and_no_others() {
        let (mut reader, content, _dir) = reader_of(20_000);
        reader.read_on_order();
        let blocks = reader.blocks;
        let mut all = vec![Vec::new(); blocks as usize];
        for at in 0..blocks {
            let block = at * 7 % blocks; // a prime to the number of blocks
            reader.order((at + 1) * 7 % blocks);
            all[block as usize] = data(&mut reader, block);
            assert!(reader.early.len() + reader.under_way.len() <= 6, "four from the start, and one");
        }
        assert!(all.concat().ends_with(&content));
    }

    #[test]
    fn unused_blocks_read_ahead_are_bounded() {
        let (mut reader, _, _dir) = reader_of(60_000);
        reader.read_on_order();
        (0..100).for_each(|block| reader.order(block));
        (0..30).for_each(|_| _ = data(&mut reader, 99));
        assert!(reader.early.len() <= 100 - 30 + MAX_EARLY, "{}", reader.early.len());
    }

    #[test]
    fn blocks_come_in_any_order() {
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
