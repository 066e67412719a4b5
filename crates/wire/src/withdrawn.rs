//! Files that a source withdraws from a session, as statuses list them (docs/design/delivery.md).

use crate::signature::Signature;

/// Position of a status's `withdrawals` in the list of all withdrawn files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WithdrawnPart {
    /// Returns the number of files withdrawn so far.
    pub total: u32,
    /// Index of the first of `withdrawals` in the list.
    pub first: u32,
    /// The source's signature of `first` and `withdrawals` if its content is signed; otherwise zeros.
    pub signature: Signature,
}

impl WithdrawnPart {
    pub(crate) const LEN: usize = 4 + 4 + 64;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&self.total.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.first.to_be_bytes());
        bytes[8..].copy_from_slice(&self.signature);
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> WithdrawnPart {
        let [t0, t1, t2, t3, f0, f1, f2, f3, signature @ ..] = bytes;
        let (total, first) = (u32::from_be_bytes([t0, t1, t2, t3]), u32::from_be_bytes([f0, f1, f2, f3]));
        WithdrawnPart { total, first, signature }
    }
}

/// A withdrawn file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Withdrawn {
    /// Number of the file's entry in the manifest.
    pub entry: u32,
    /// The first block that contains bytes of the file. A relay, which has no manifest, discards the symbols of these blocks.
    pub first_block: u32,
    /// The last block that contains bytes of the file.
    pub last_block: u32,
}
