//! Reader for the fields of a packet.

/// Reason why bytes are not a usable packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The datagram ends too early.
    #[error("the datagram has {have} bytes, but at least {need} are needed")]
    Truncated {
        /// Bytes needed to continue.
        need: usize,
        /// Bytes left.
        have: usize,
    },
    /// The packet has another version of LCT.
    #[error("LCT version {0} is not supported; only version 1 is")]
    Version(u8),
    /// The header's length is too short for its fields, or exceeds the datagram.
    #[error(
        "the header states a length of {stated} bytes, but its fields take {fields} bytes and the datagram has {have}"
    )]
    HeaderLength {
        /// Length in the header.
        stated: usize,
        /// Length of its fields.
        fields: usize,
        /// Bytes of the datagram.
        have: usize,
    },
    /// A header extension has no length, or does not end within the header.
    #[error("header extension {kind} of {words} words exceeds the remaining {left} bytes of the header")]
    Extension {
        /// Type of the extension.
        kind: u8,
        /// Length of the extension, in words.
        words: u8,
        /// Bytes from its beginning to the header's end.
        left: usize,
    },
    /// The erasure code is unknown.
    #[error(
        "FEC Encoding ID {0} is not supported; 0 (none), 1 (Raptor), 5 (Reed-Solomon) and 6 (RaptorQ) are"
    )]
    UnknownFec(u8),
}

/// Reads fields in order; never beyond the end.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], ParseError> {
        let Some(taken) = self.bytes[self.at..].get(..len) else {
            return Err(ParseError::Truncated { need: self.at + len, have: self.bytes.len() });
        };
        self.at += len;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let Some(&taken) = self.bytes[self.at..].first_chunk::<N>() else {
            return Err(ParseError::Truncated { need: self.at + N, have: self.bytes.len() });
        };
        self.at += N;
        Ok(taken)
    }

    /// Reads a number of `len` bytes; `None` if `len` is 0.
    pub(super) fn number(&mut self, len: usize) -> Result<Option<u128>, ParseError> {
        let bytes = self.take(len)?;
        Ok((len > 0).then(|| bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))))
    }

    pub(super) fn u8(&mut self) -> Result<u8, ParseError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_be_bytes)
    }
}
