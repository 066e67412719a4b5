//! Conversion of content to slices.

use crate::codec::MAP_BITS;
use faircast_driver::format::Pipe;
use faircast_transport::object::ObjectError;
use std::time::Duration;

/// Divides content into slices. All slices but the last one have the maximum number of blocks.
pub(super) struct Feed {
    pipe: Pipe,
    /// Size of a full slice, in bytes.
    full: usize,
    slice: Vec<u8>,
}

impl Feed {
    pub(super) fn new(pipe: Pipe, block_size: usize) -> Feed {
        Feed { pipe, full: block_size * MAP_BITS, slice: Vec::new() }
    }

    /// Returns the next slice; `None` if it has not been read yet, or after the last one.
    ///
    /// # Errors
    /// If the content cannot be read.
    pub(super) fn take(&mut self) -> Result<Option<Vec<u8>>, ObjectError> {
        while self.slice.len() < self.full
            && let Some(bytes) = self.pipe.take(self.full - self.slice.len(), Duration::ZERO)?
        {
            self.slice.extend_from_slice(&bytes);
        }
        let is_ready = self.slice.len() == self.full || self.pipe.is_drained() && !self.slice.is_empty();
        Ok(is_ready.then(|| std::mem::take(&mut self.slice)))
    }

    /// Returns whether all slices have been taken.
    pub(super) fn is_drained(&self) -> bool {
        self.slice.is_empty() && self.pipe.is_drained()
    }
}
