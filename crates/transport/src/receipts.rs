//! Receipts in reports, and their verification later, without the session.
//!
//! A receipt is a receiver's signature (Ed25519) under the session, the content's root and the time ([`faircast_wire::receipt`]). The root
//! is a hash over the cut of the content into blocks and the hashes of all blocks. A receiver compares it with its own before it is done,
//! in signed sessions and in others.

use crate::object::{
    HardLinks, Hash, ObjectError, ObjectStream, Preserve, Reading, RootHasher, Unreadable, hash_of,
};
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_wire::{Name, Receipt, Signed, TransferId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A receiver's receipt: its signature that it has verified the content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptReport {
    /// The receiver's id, in hexadecimal.
    pub receiver: String,
    /// Its host, as it says.
    pub host: String,
    /// Its public key, in hexadecimal.
    pub key: String,
    /// When it signed, by the clock of its host, in seconds since 1970.
    pub signed_at: u64,
    /// The signature, in hexadecimal.
    pub signature: String,
    /// The root that it has signed, in hexadecimal: another than the session's when files were withdrawn later. `None`: the session's.
    #[serde(default)]
    pub root: Option<String>,
    /// Whether the holder of the key has signed what this session has sent.
    pub valid: bool,
    /// Whether the key is one of those that have to sign; `None` when any may.
    pub known: Option<bool>,
}

/// A receiver that has everything, or a relay for those below it, without a receipt that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacking {
    /// Host name.
    pub host: String,
    /// Reason, in words.
    pub reason: String,
}

/// The receipts of a session, and what they are about: enough to check them again later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptsReport {
    /// The session, in hexadecimal digits as all that follows.
    pub session: String,
    /// Drawn at random when the source started.
    pub salt: String,
    /// Which transfer.
    pub transfer: String,
    /// When the source started, in nanoseconds since 1970, as a text: larger than what all readers of JSON can hold.
    pub started: String,
    /// The hash that names the content: over how it is cut and the hashes of all its blocks.
    pub root: Option<String>,
    /// How it is cut: bytes of a symbol,
    pub symbol_size: u16,
    /// and symbols of a full block.
    pub symbols_per_block: u16,
    /// Receipts that count: valid, and by a known key where keys were given.
    pub good: u64,
    /// Known keys that have signed nothing.
    pub keys_without: Vec<String>,
    /// Receivers, and relays for those behind them, that have everything and lack receipts that count, where keys were given.
    pub lacking: Vec<Lacking>,
    /// All receipts.
    pub signed: Vec<ReceiptReport>,
}

impl ReceiptReport {
    /// Returns the receipt as signed, for the content with this root; `None` when a field does not have its form.
    pub fn receipt(&self, root: [u8; 32]) -> Option<Receipt> {
        let receiver = ReceiverId::new(u64::from_str_radix(&self.receiver, 16).ok()?)?;
        let (key, signature) = (bytes_of(&self.key)?, bytes_of(&self.signature)?);
        let (host, unix_secs) = (Name::new(&self.host).ok()?, self.signed_at);
        Some(Receipt { from: receiver, nonce: 0, receiver, unix_secs, root, key, signature, host })
    }
}

impl ReceiptsReport {
    /// Returns the subject of all its receipts; `None` when a field does not have its form.
    pub fn about(&self) -> Option<Signed> {
        Some(Signed {
            session: SessionId(u32::from_str_radix(&self.session, 16).ok()?),
            salt: bytes_of(&self.salt)?,
            transfer: TransferId(bytes_of(&self.transfer)?),
            started: self.started.parse().ok()?,
        })
    }

    /// Returns the root; `None` when it was not known, or does not have its form.
    pub fn root_hash(&self) -> Option<[u8; 32]> {
        bytes_of(self.root.as_deref()?)
    }

    /// Whether the holder of its key has signed this one, about this session and content.
    pub fn is_signed(&self, one: &ReceiptReport) -> bool {
        let root = || one.root.as_deref().map_or_else(|| self.root_hash(), bytes_of);
        let checked = || Some(one.receipt(root()?)?.is_signed(&self.about()?));
        checked().unwrap_or(false)
    }

    /// Returns the root of these files and trees, cut as in this session: the same when names, times, modes and content are those that were
    /// sent.
    ///
    /// # Errors
    /// When something cannot be read, or changes meanwhile.
    pub fn root_of(&self, paths: &[PathBuf], preserve: &Preserve) -> Result<[u8; 32], ObjectError> {
        let (unreadable, hard_links) = (Unreadable::LeaveOut, HardLinks::Keep);
        let reading = Reading { preserve: preserve.clone(), unreadable, hard_links, ..Reading::default() };
        let mut object = ObjectStream::open_with(paths, &reading, self.symbol_size, self.symbols_per_block)?;
        let geometry = object.geometry();
        let (mut hashes, mut block) = (RootHasher::new(geometry), Vec::new());
        for index in 0..geometry.blocks().unwrap_or(0) {
            object.read_block(index, &mut block)?;
            hashes.push(index, hash_of(&block));
        }
        Ok(hashes.root().map(|Hash(root)| root).expect("the length of files and all their hashes are known"))
    }
}

/// In hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses hexadecimal digits; `None` when their number is wrong.
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
