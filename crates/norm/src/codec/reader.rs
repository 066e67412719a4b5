//! Reading of fields, with errors instead of panics.

use super::ParseError;

/// The remaining bytes of a message or header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// Creates a reader that has already read `at` bytes.
    pub(super) const fn after(bytes: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes, at }
    }

    /// Returns the number of bytes read.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn take(&mut self, need: usize) -> Result<&'a [u8], ParseError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..need).ok_or(ParseError::Truncated { need, have: rest.len() })?;
        self.at += need;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, ParseError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads the next header extension: its type and its content. `None` at the end of the header.
    pub(super) fn extension(&mut self) -> Result<Option<(u8, &'a [u8])>, ParseError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let [het, length, ..] = *rest else { return Ok(None) };
        // Types above 127 have one word.
        let words = if het > 127 { 1 } else { usize::from(length) };
        let whole = rest.get(..words * 4).filter(|whole| !whole.is_empty());
        let whole = whole.ok_or(ParseError::Extension(het))?;
        self.at += whole.len();
        Ok(Some((het, &whole[2..])))
    }
}
