//! Conversion of content to slices.

use crate::codec::MAP_BITS;
use std::io;

/// Bytes requested from the input at once.
const CHUNK: usize = 256 << 10;

/// The input of content.
pub(super) trait Input: Send {
    /// Appends up to `most` bytes.
    fn read(&mut self, most: usize, into: &mut Vec<u8>) -> io::Result<ReadResult>;
}

/// Result of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadResult {
    /// Some bytes were read.
    Bytes,
    /// No bytes are available now.
    NotYet,
    /// The content has ended.
    End,
}

/// Divides content into slices. All slices but the last one have the maximum number of blocks.
pub(super) struct Feed {
    input: Box<dyn Input>,
    /// Size of a full slice, in bytes.
    full: usize,
    slice: Vec<u8>,
    has_ended: bool,
}

impl Feed {
    pub(super) fn new(input: Box<dyn Input>, block_size: usize) -> Feed {
        Feed { input, full: block_size * MAP_BITS, slice: Vec::new(), has_ended: false }
    }

    /// Returns the next slice; `None` if it is not complete yet, or after the last one.
    pub(super) fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        while !self.has_ended && self.slice.len() < self.full {
            match self.input.read(CHUNK.min(self.full - self.slice.len()), &mut self.slice)? {
                ReadResult::Bytes => {}
                ReadResult::NotYet => return Ok(None),
                ReadResult::End => self.has_ended = true,
            }
        }
        Ok(Some(std::mem::take(&mut self.slice)).filter(|slice| !slice.is_empty()))
    }

    /// Returns whether all slices have been taken.
    pub(super) fn is_drained(&self) -> bool {
        self.has_ended && self.slice.is_empty()
    }
}
