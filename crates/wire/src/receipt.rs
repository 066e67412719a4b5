//! Receipts: statements that a receiver signs after it has verified everything, or makes unsigned at the end of a dry run.
//!
//! The statement begins like all statements about content ([`crate::sign`]): the context, here `faircast 2: receipt`, a byte of
//! zero, session, salt, transfer and start. Then follow the root, the receiver's number, the time on the receiver's clock in
//! seconds since 1970, and the name of the receiver's host. Any holder of the receiver's public key can check the statement at
//! any later time ([`Receipt::is_signed`], in [`crate::sign`]).

use crate::name::Name;
use crate::signature::Signature;
use faircast_core::packet::ReceiverId;

/// A receiver's signed statement that it has verified the content, or its unsigned comparison of a dry run. Relays forward it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Sender: the receiver, or a relay that forwards the receipt.
    pub from: ReceiverId,
    /// Number given by the sender; the answer, a [`crate::Welcome`], repeats it.
    pub nonce: u16,
    /// Receiver that has signed it.
    pub receiver: ReceiverId,
    /// Time of signing by the clock of the receiver's host, in seconds since 1970.
    pub unix_secs: u64,
    /// The root hash of the content.
    pub root: [u8; 32],
    /// The receiver's public key.
    pub key: [u8; 32],
    /// Signature over the session and over all fields except `from` and `nonce`.
    pub signature: Signature,
    /// The name of the receiver's host, as the receiver states it.
    pub host: Name,
    /// In a dry run: the comparison of the receiver's disk with the list of files. Key and signature are then zeros.
    pub comparison: Option<Box<Comparison>>,
}

/// A receiver's comparison of its disk with the list of files of a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Number of files and links that the receiver does not have.
    pub new_files: u32,
    /// Number of files and links that the receiver has in another form.
    pub changed_files: u32,
    /// Number of files and links that the receiver would delete.
    pub deleted: u32,
    /// Bytes of content that the receiver has.
    pub held_bytes: u64,
    /// Bytes of the object stream that the receiver would request, including the manifest.
    pub needed_bytes: u64,
    /// The blocks of the object stream in parts of equal numbers of blocks; the last parts may have no blocks.
    pub parts: [NeededPart; Comparison::PARTS],
}

/// The symbols that a receiver lacks in a part of the object stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NeededPart {
    /// Missing part of the symbols, in units of 1/255, rounded up.
    pub missing: u8,
    /// A hash of the blocks with missing symbols, and of the numbers of these symbols. Receivers that lack the same symbols have
    /// the same hash.
    pub hash: u8,
}

impl Comparison {
    /// Number of parts.
    pub const PARTS: usize = 256;
    pub(crate) const LEN: usize = 3 * 4 + 2 * 8 + 2 * Comparison::PARTS;

    pub(crate) fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let numbers = [self.new_files, self.changed_files, self.deleted];
        for (to, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            to.copy_from_slice(&number.to_be_bytes());
        }
        bytes[12..20].copy_from_slice(&self.held_bytes.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.needed_bytes.to_be_bytes());
        for (to, part) in bytes[28..].chunks_exact_mut(2).zip(&self.parts) {
            to.copy_from_slice(&[part.missing, part.hash]);
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; Self::LEN]) -> Comparison {
        let number = |at: usize, len: usize| {
            bytes[at..at + len].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        let mut parts = [NeededPart::default(); Comparison::PARTS];
        for (part, bytes) in parts.iter_mut().zip(bytes[28..].chunks_exact(2)) {
            *part = NeededPart { missing: bytes[0], hash: bytes[1] };
        }
        Comparison {
            new_files: number(0, 4) as u32,
            changed_files: number(4, 4) as u32,
            deleted: number(8, 4) as u32,
            held_bytes: number(12, 8),
            needed_bytes: number(20, 8),
            parts,
        }
    }
}
