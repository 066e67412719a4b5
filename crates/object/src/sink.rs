//! Writing a stream in order to a pipe or file, although its blocks arrive in any order.

use super::error::ObjectError;
use crate::host::quota::Quota;
use std::collections::BTreeMap;
use std::io::Write;

/// Writes blocks in order. Stores blocks that arrive early, up to a limit.
#[derive(Debug)]
pub struct StreamSink<W> {
    to: W,
    next: u32,
    skip: u64,
    early: BTreeMap<u32, Vec<u8>>,
    stored: usize,
    limit: usize,
    written: u64,
    /// Whether the sink begins at a block after the first one and has not written a block yet.
    may_begin_later: bool,
}

/// Result of passing a block to the sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkResult {
    /// The block was written, with the stored blocks that follow it directly. The value is the number of bytes written.
    Written(u64),
    /// The block is stored until all blocks before it have arrived.
    Kept,
    /// The block was written or stored before.
    AlreadyHad,
    /// The block exceeds the memory limit and is returned: pass it again later.
    Full(Vec<u8>),
}

impl StreamSink<Box<dyn Write + Send>> {
    /// Sets a quota. Bytes that are written from now on are deducted from it.
    pub fn limit(&mut self, quota: &Quota) {
        let to = std::mem::replace(&mut self.to, Box::new(std::io::sink()));
        self.to = quota.limit(to);
    }
}

impl<W: Write> StreamSink<W> {
    /// Creates a sink that writes blocks to `to`, beginning with block `first` and omitting the first `skip` bytes (a manifest).
    /// The sink stores at most `limit` bytes of blocks that arrive early.
    pub fn new(to: W, first: u32, skip: u64, limit: usize) -> StreamSink<W> {
        let early = BTreeMap::new();
        StreamSink { to, next: first, skip, early, stored: 0, limit, written: 0, may_begin_later: first > 0 }
    }

    /// Takes block `index`.
    ///
    /// # Errors
    /// When writing fails, for example because the reader has closed the pipe.
    pub fn put(&mut self, index: u32, data: Vec<u8>) -> Result<SinkResult, ObjectError> {
        if index < self.next || self.early.contains_key(&index) {
            return Ok(SinkResult::AlreadyHad);
        }
        if index > self.next {
            if self.stored + data.len() > self.limit {
                return Ok(SinkResult::Full(data));
            }
            self.stored += data.len();
            self.early.insert(index, data);
            return Ok(SinkResult::Kept);
        }
        let before = self.written;
        self.write(&data)?;
        self.drain()?;
        Ok(SinkResult::Written(self.written - before))
    }

    /// Gives up on the missing blocks before block `index` and continues at block `index`. This serves live streams whose source
    /// can no longer repair the missing blocks. Returns the number of missing blocks that belong to the stream.
    ///
    /// # Errors
    /// As [`StreamSink::put`].
    pub fn skip_to(&mut self, index: u32) -> Result<u32, ObjectError> {
        let mut lost = 0;
        while self.next < index {
            match self.early.first_key_value() {
                Some((&first, _)) if first < index => {
                    lost += self.give_up(first);
                    self.drain()?;
                }
                _ => lost += self.give_up(index),
            }
        }
        self.drain()?;
        Ok(lost)
    }

    /// Returns whether block `index` is written or stored.
    pub fn has(&self, index: u32) -> bool {
        index < self.next || self.early.contains_key(&index)
    }

    /// Returns the block that is written next.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Returns the number of bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the number of bytes in stored blocks, which arrived early.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// Flushes the output and returns the writer.
    ///
    /// # Errors
    /// When flushing fails.
    pub fn finish(mut self) -> Result<W, ObjectError> {
        self.to.flush().map_err(|e| ObjectError::io("-", "write the stream", e))?;
        Ok(self.to)
    }

    /// Continues at the later block `index`. Returns the number of blocks in between, without the block that contains only the
    /// manifest of a live stream. Returns 0 for a late joiner that has written no block yet.
    fn give_up(&mut self, index: u32) -> u32 {
        let given_up = index - self.next;
        self.next = index;
        let missing = given_up - u32::from(std::mem::take(&mut self.skip) > 0);
        if self.may_begin_later { 0 } else { missing }
    }

    fn drain(&mut self) -> Result<(), ObjectError> {
        while let Some(data) = self.early.remove(&self.next) {
            self.stored -= data.len();
            self.write(&data)?;
        }
        Ok(())
    }

    /// Writes the next block.
    fn write(&mut self, data: &[u8]) -> Result<(), ObjectError> {
        let skipped = self.skip.min(data.len() as u64);
        let data = &data[skipped as usize..];
        self.to.write_all(data).map_err(|e| ObjectError::io("-", "write the stream", e))?;
        self.skip -= skipped;
        self.may_begin_later = false;
        self.next += 1;
        self.written += data.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_manifest_block_does_not_count_as_a_lost_block() {
        let mut sink = StreamSink::new(Vec::new(), 0, 10, 1_000);
        assert_eq!(sink.put(1, vec![1; 30]).expect("memory takes it"), SinkResult::Kept);
        assert_eq!(sink.put(3, vec![3; 5]).expect("memory takes it"), SinkResult::Kept);
        assert_eq!(sink.skip_to(1).expect("memory takes it"), 0, "it is no part of the stream");
        assert_eq!(sink.skip_to(3).expect("memory takes it"), 1);
        assert_eq!(sink.finish().expect("memory takes it"), [vec![1; 30], vec![3; 5]].concat());
    }

    #[test]
    fn late_joiner_counts_no_block_before_its_first_one_as_lost() {
        let mut sink = StreamSink::new(Vec::new(), 7, 0, 1_000);
        sink.put(10, vec![10; 5]).expect("memory takes it");
        assert_eq!(sink.skip_to(9).expect("memory takes it"), 0, "it begins later");
        assert_eq!(sink.skip_to(10).expect("memory takes it"), 0);
        assert_eq!(sink.skip_to(13).expect("memory takes it"), 2, "11 and 12");
        assert_eq!(sink.finish().expect("memory takes it"), vec![10; 5]);
        let mut sink = StreamSink::new(Vec::new(), 0, 0, 1_000);
        assert_eq!(
            sink.skip_to(3).expect("memory takes it"),
            3,
            "who was there from the beginning wants all"
        );
    }
}
