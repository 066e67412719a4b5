//! Receipts in reports, and their verification after the session.
//!
//! A receipt is a receiver's signature (Ed25519) over the session, the root of the content and the time
//! ([`faircast_wire::receipt`]). The root is a hash over the division of the content into blocks, and over the hashes of all
//! blocks. Before a receiver completes, it compares the source's root with the root of the received content, whether the session
//! is signed or not.

use crate::object::{
    Delta, HardLinks, Hash, ObjectError, ObjectStream, Preserve, Reading, RootHasher, Unreadable, hash_of,
};
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_wire::{Name, Receipt, Signed, TransferId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Receipt of a receiver: a signature that confirms verified content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptReport {
    /// Identifier of the receiver, hexadecimal.
    pub receiver: String,
    /// Host name, as the receiver states it.
    pub host: String,
    /// Public key of the receiver, hexadecimal.
    pub key: String,
    /// Time of the signature, seconds since 1970 by the clock of the receiver.
    pub signed_at: u64,
    /// Signature, hexadecimal.
    pub signature: String,
    /// The signed root hash, hexadecimal. It is set only if it differs from the session's root, because files were withdrawn
    /// later.
    #[serde(default)]
    pub root: Option<String>,
    /// Whether the signature is valid for the content of this session.
    pub valid: bool,
    /// Whether the key is one of the required keys; `None` if no keys are required.
    pub known: Option<bool>,
}

/// A complete receiver without a valid receipt, or a relay that has such a receiver downstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithoutReceipt {
    /// Host name.
    pub host: String,
    /// Reason.
    pub reason: String,
}

/// The receipts of a session, with all data needed to verify them later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptsReport {
    /// Identifier of the session, hexadecimal.
    pub session: String,
    /// Random number of the session, hexadecimal.
    pub salt: String,
    /// Identifier of the transfer, hexadecimal.
    pub transfer: String,
    /// Start time of the source, nanoseconds since 1970. The time is a string, because some JSON readers do not support such
    /// large numbers.
    pub started: String,
    /// Root hash of the content, hexadecimal: a hash over the division of the content into blocks, and over the hashes of all
    /// blocks.
    pub root: Option<String>,
    /// Size of a symbol, bytes.
    pub symbol_size: u16,
    /// Number of symbols of a full block.
    pub symbols_per_block: u16,
    /// Number of valid receipts. If keys are required, receipts with other keys do not count.
    pub good: u64,
    /// Required keys without a receipt.
    pub unused_keys: Vec<String>,
    /// If keys are required: complete receivers without a valid receipt, and relays that have such receivers downstream.
    pub without_receipt: Vec<WithoutReceipt>,
    /// All receipts.
    pub signed: Vec<ReceiptReport>,
}

impl ReceiptReport {
    /// Returns the receipt in its signed form, for content with this root; `None` if a field is malformed.
    pub fn receipt(&self, root: [u8; 32]) -> Option<Receipt> {
        let receiver = ReceiverId::new(u64::from_str_radix(&self.receiver, 16).ok()?)?;
        let (key, signature) = (bytes_of(&self.key)?, bytes_of(&self.signature)?);
        let (host, unix_secs) = (Name::new(&self.host).ok()?, self.signed_at);
        let by = (receiver, host);
        Some(Receipt { key, signature, ..Receipt::unsigned(root, by, unix_secs, None) })
    }
}

impl ReceiptsReport {
    /// Returns the session data that is signed in each receipt of the session; `None` if a field is malformed.
    pub fn about(&self) -> Option<Signed> {
        Some(Signed {
            session: SessionId(u32::from_str_radix(&self.session, 16).ok()?),
            salt: bytes_of(&self.salt)?,
            transfer: TransferId(bytes_of(&self.transfer)?),
            started: self.started.parse().ok()?,
        })
    }

    /// Returns the root hash; `None` if it is unknown or malformed.
    pub fn root_hash(&self) -> Option<[u8; 32]> {
        bytes_of(self.root.as_deref()?)
    }

    /// Whether this receipt has a valid signature for this session and its content.
    pub fn is_signed(&self, one: &ReceiptReport) -> bool {
        let root = || one.root.as_deref().map_or_else(|| self.root_hash(), bytes_of);
        let checked = || Some(one.receipt(root()?)?.is_signed(&self.about()?));
        checked().unwrap_or(false)
    }

    /// Returns the root hash of these files and directory trees, divided into blocks as in this session. The hash equals the
    /// session's root if names, times, modes and content are unchanged.
    ///
    /// # Errors
    /// If a file cannot be read, or changes during the call.
    pub fn root_of(&self, paths: &[PathBuf], preserve: &Preserve) -> Result<[u8; 32], ObjectError> {
        let open = |delta| {
            let (unreadable, hard_links) = (Unreadable::LeaveOut, HardLinks::Keep);
            let preserve = preserve.clone();
            let reading = Reading { preserve, unreadable, hard_links, delta, ..Reading::default() };
            ObjectStream::open_with(paths, &reading, self.symbol_size, self.symbols_per_block)
        };
        let mut object = open(Delta::Off)?;
        if bytes_of(&self.transfer) != Some(object.transfer().0) {
            object = open(Delta::On)?; // the manifest of the session may have a chunk table
        }
        let geometry = object.geometry();
        let (mut hashes, mut block) = (RootHasher::new(geometry), Vec::new());
        for index in 0..geometry.blocks().unwrap_or(0) {
            object.read_block(index, &mut block)?;
            hashes.push(index, hash_of(&block));
        }
        Ok(hashes.root().map(|Hash(root)| root).expect("the length of files and all their hashes are known"))
    }
}

/// Formats bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses hexadecimal digits; `None` if their number is wrong.
fn bytes_of<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
