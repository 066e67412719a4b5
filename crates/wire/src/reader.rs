//! Reads the bytes of a datagram in order and within its bounds.

use crate::error::ParseError;

/// A position in a datagram.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// The whole datagram, because errors state offsets in it.
    pub(crate) bytes: &'a [u8],
    /// Offset of the next byte.
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    /// Returns the number of unread bytes.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns all unread bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Reads the next `len` bytes, the value of `field`.
    #[inline]
    pub(crate) fn take(&mut self, field: &'static str, len: usize) -> Result<&'a [u8], ParseError> {
        let Some(taken) = self.rest().get(..len) else { return Err(self.truncated(field, len)) };
        self.at += len;
        Ok(taken)
    }

    /// Reads the next N bytes, the value of `field`.
    #[inline]
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
