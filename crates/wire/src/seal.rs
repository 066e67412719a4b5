//! Sealed packets: AES-128-GCM under keys derived from the group's key.
//!
//! ```text
//! data, status       | header 12 | body, encrypted | tag 16 |
//! announce           | header 12 | nonce 12 | body, encrypted | tag 16 |
//! report, request,   | header 12 | from 4 | boot 8 | body, encrypted | tag 16 |
//! member
//! ```
//!
//! Everything before the encrypted body is authenticated with it. The keys (BLAKE3 `derive_key`,
//! contexts below):
//!
//! * **announcements**: from the group's key alone, so that whoever holds it can join. The nonce is
//!   in the packet: a hash of (group's key, session, salt, count), and the salt is random.
//! * **the source's packets**: from the session's secret, which comes from (group's key, session,
//!   salt). The nonce is kind, layer and the unwrapped 64-bit number.
//! * **a receiver's packets**: from (session's secret, receiver, boot). The boot number is random at
//!   each start of the receiver: without it, a receiver that starts again under its old id would seal
//!   two messages under one nonce. The nonce is kind, layer and the receiver's own count.
//!
//! What sealing proves is that a *member* wrote the packet. Members hold the same key and can speak
//! in each other's name.

use crate::error::ParseError;
use crate::key::GroupKey;
use crate::message::Kind;

use faircast_core::packet::{Layer, ReceiverId, SessionId};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of the authentication tag behind a sealed body.
pub const TAG_LEN: usize = 16;
/// Bytes of an announcement's nonce.
pub const NONCE_LEN: usize = 12;
/// Bytes of a receiver's boot number.
pub const BOOT_LEN: usize = 8;

/// Why a packet is not let in.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// The bytes are not a packet.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It belongs to another session.
    #[error("the packet belongs to session {0}")]
    OtherSession(SessionId),
    /// It is meant for the other end.
    #[error("packets of kind {0:?} are not for this end")]
    NotForMe(Kind),
    /// It is not sealed, and there is a key.
    #[error("session {0} is not sealed, but a key was given: refuse it, or run without the key")]
    Unsealed(SessionId),
    /// It is sealed, and there is no key.
    #[error("session {0} is sealed: give the group's key")]
    NeedsKey(SessionId),
    /// It is sealed, and no announcement has told the session's salt yet.
    #[error("session {0} is sealed and has not been announced yet: wait for its announcement")]
    NotAnnounced(SessionId),
    /// It was not sealed with this key, or was changed on the way.
    #[error("the packet does not open with this key: another group's key, or a forged or damaged packet")]
    Forged,
    /// It was let in before, or is too old to know.
    #[error("packet {0} was let in before, or is too old to know")]
    Replayed(u64),
    /// An announcement from another time.
    #[error(
        "the announcement was sent at {sent} (seconds since 1970) and it is {now} here; more than {skew} s apart: replayed, or a clock is wrong"
    )]
    Stale {
        /// When it says it was sent, in seconds since 1970.
        sent: u64,
        /// What time it is here, in seconds since 1970.
        now: u64,
        /// The difference allowed, in seconds.
        skew: u64,
    },
    /// Two sources use the same session number.
    #[error("another source announces session {0} too: let one of them start again")]
    TwoSources(SessionId),
}

/// One AES-128-GCM key.
pub(crate) struct Cipher(LessSafeKey);

impl Cipher {
    /// The first 16 bytes of a derived key; all of it is wiped.
    fn new(mut derived: [u8; 32]) -> Cipher {
        let key = UnboundKey::new(&AES_128_GCM, &derived[..16]).expect("AES-128 keys have 16 bytes");
        derived.zeroize();
        Cipher(LessSafeKey::new(key))
    }

    /// Encrypt `out[start + clear..]`, authenticate `out[start..start + clear]` with it, append the tag.
    pub(crate) fn seal(&self, out: &mut Vec<u8>, start: usize, clear: usize, nonce: [u8; NONCE_LEN]) {
        let (clear, body) = out[start..].split_at_mut(clear);
        let tag = self
            .0
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(&*clear), body)
            .expect("a datagram is shorter than AES-GCM's limit of 64 GB");
        out.extend_from_slice(tag.as_ref());
    }

    /// Decrypt `bytes[clear..]` in place; return all but the tag.
    pub(crate) fn open<'a>(
        &self,
        bytes: &'a mut [u8],
        clear: usize,
        nonce: [u8; NONCE_LEN],
    ) -> Result<&'a [u8], OpenError> {
        let have = bytes.len();
        let need = clear + TAG_LEN;
        if have < need {
            return Err(ParseError::Truncated { field: "tag", need, have }.into());
        }
        let (head, body) = bytes.split_at_mut(clear);
        self.0
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(&*head), body)
            .map_err(|_| OpenError::Forged)?;
        Ok(&bytes[..have - TAG_LEN])
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

/// What a session's keys come from.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    pub(crate) fn new(key: &GroupKey, session: SessionId, salt: &[u8; 16]) -> Secret {
        let context = "faircast wire 1: secret of a session";
        Secret(Zeroizing::new(derive(context, &[key.bytes(), &session.0.to_be_bytes(), salt])))
    }

    /// The key of the source's packets.
    pub(crate) fn source(&self) -> Cipher {
        Cipher::new(derive("faircast wire 1: packets of the source", &[&*self.0]))
    }

    /// The key of what one receiver sends between one start and the next.
    pub(crate) fn receiver(&self, id: ReceiverId, boot: u64) -> Cipher {
        let parts: [&[u8]; 3] = [&*self.0, &id.get().to_be_bytes(), &boot.to_be_bytes()];
        Cipher::new(derive("faircast wire 1: packets of a receiver", &parts))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The key of announcements.
pub(crate) fn announcer(key: &GroupKey) -> Cipher {
    Cipher::new(derive("faircast wire 1: announcements", &[key.bytes()]))
}

/// The nonce of the `count`-th announcement of a session.
pub(crate) fn announce_nonce(secret: &Secret, count: u64) -> [u8; NONCE_LEN] {
    let hash = derive("faircast wire 1: nonces of announcements", &[&*secret.0, &count.to_be_bytes()]);
    *hash.first_chunk().expect("a hash is longer than a nonce")
}

/// The nonce of any other packet.
pub(crate) fn nonce(kind: Kind, layer: Layer, seq: u64) -> [u8; NONCE_LEN] {
    let [a, b, c, d, e, f, g, h] = seq.to_be_bytes();
    [kind as u8, layer.0, 0, 0, a, b, c, d, e, f, g, h]
}

fn derive(context: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(part); // every part has a fixed length, so no two lists run together
    }
    *hasher.finalize().as_bytes()
}
