//! Receipts: statements that a receiver signs after it has verified everything.
//!
//! The statement begins like all statements about content ([`crate::sign`]): the context, here `faircast 2: receipt`, a byte of
//! zero, session, salt, transfer and start. Then follow the root, the receiver's number, the time on the receiver's clock in
//! seconds since 1970, and the name of the receiver's host. Any holder of the receiver's public key can check the statement at
//! any later time ([`Receipt::is_signed`], in [`crate::sign`]).

use crate::name::Name;
use crate::signature::Signature;
use faircast_core::packet::ReceiverId;

/// A receiver's signed statement that it has verified the content. Relays forward it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}
