//! Reads the bytes of a datagram in order, and never beyond its end.

use crate::error::ParseError;

/// Where reading is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// The whole datagram: errors give offsets in it.
    pub(crate) bytes: &'a [u8],
    /// The next byte.
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    /// Bytes that have not been read.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// All that has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The next `len` bytes, which are those of `field`.
    pub(crate) fn take(&mut self, field: &'static str, len: usize) -> Result<&'a [u8], ParseError> {
        let Some(taken) = self.rest().get(..len) else { return Err(self.truncated(field, len)) };
        self.at += len;
        Ok(taken)
    }

    /// The same, when their number is known beforehand.
    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], ParseError> {
        let Some(&taken) = self.rest().first_chunk::<N>() else { return Err(self.truncated(field, N)) };
        self.at += N;
        Ok(taken)
    }

    #[cold]
    fn truncated(&self, field: &'static str, len: usize) -> ParseError {
        ParseError::Truncated { field, need: self.at + len, have: self.bytes.len() }
    }
}
