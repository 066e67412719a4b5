//! Receipts: statements that a receiver signs after it has verified everything.
//!
//! The statement has the context `faircast 2: receipt`, a byte of zero, session, salt, transfer and start as all statements about
//! content ([`crate::sign`]). Then come the root, the receiver's number, its clock in seconds since 1970, and its host's name. Any holder
//! of the receiver's public key can check it at any later time ([`Receipt::is_signed`], in [`crate::sign`]).

use crate::name::Name;
use crate::signature::Signature;
use faircast_core::packet::ReceiverId;

/// A receiver's signed statement that it has verified the content. Relays forward it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Sender: the receiver, or a relay that forwards it.
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
    /// Signature over all fields except `from` and `nonce`, and over the session.
    pub signature: Signature,
    /// The name of the receiver's host, as stated by itself.
    pub host: Name,
}
