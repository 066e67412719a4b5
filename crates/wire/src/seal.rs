//! Sealed packets: AES-128-GCM under keys derived from the group's key, in two shells.
//!
//! ```text
//! data               | header 12 | (fields and mark, symbol (sealed), its tag 16), sealed | tag 16 |
//! status             | header 12 | body, sealed | tag 16 |
//! announce           | header 12 | key 4 | nonce 12 | body, sealed | tag 16 |
//! report, request,   | header 12 | from 4 | boot 8 | body, sealed | tag 16 |
//! member, window
//! from a relay       | header 12 | from 4 | boot 8 | the rest as above |
//! ```
//!
//! The **hop keys** seal every packet. They are derived from the hop key, which only members and relays have. All bytes before
//! the sealed part are authenticated. The symbol of a data packet is sealed twice: first under the content key, then with the
//! rest of the packet. A relay therefore forwards symbols that it cannot read, but it detects every change by a stranger. The
//! second sealing costs less than authentication of the symbol, because `ring` hashes additional authenticated data block by
//! block.
//!
//! * **announcements**: derived from the hop key alone, so that every holder can join. The packet carries the nonce.
//! * **the source's packets**: derived from the session's secret, which is derived from (hop key, session, salt). The nonce is kind,
//!   layer and the unwrapped 64-bit number.
//! * **a receiver's or relay's packets**: derived from (session's secret, id, boot). The boot number is random at each start.
//!   Otherwise a receiver that restarts under its old id would seal two messages under one nonce.
//!
//! The **content key** of a session is derived from (content key, session, salt). Only members have this key. The nonce
//! identifies the symbol: stream, block, symbol, number of source symbols. A repeated symbol therefore has the same bytes from
//! every sender, and a relay can repair with received symbols. The same nonce never belongs to two different contents
//! (`docs/wire.md`).
//!
//! **Later keys.** Every key has a limit. The upper bits of each sender's packet numbers of one kind (and layer), above
//! `PACKETS_BITS`, select the key. For symbols these are the bits of the block's number above `BLOCKS_BITS`. A change of keys is
//! not announced, because a late joiner knows the numbers. One key seals at most 2^35 blocks of 16 bytes. This keeps an
//! attacker's advantage against AES-GCM below 2^-57 (RFC 9001, B.1.1).
//!
//! Sealing proves that a *member* wrote the content, and that a member or relay wrote the other parts of the packet. All members
//! have the same key, so each member can send as any other member.

use crate::error::ParseError;
use crate::key::{GroupKey, HopKey, KeyId, Secret32};
use crate::message::Kind;

use faircast_core::packet::{Layer, ReceiverId, SessionId};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use std::fmt;
use std::net::SocketAddr;
use zeroize::{Zeroize, Zeroizing};

/// Length of the authentication tag after the sealed bytes.
pub const TAG_LEN: usize = 16;
/// Bytes of an announcement's nonce.
pub const NONCE_LEN: usize = 12;
/// Length of the key's id in an announcement, in bytes.
pub const KEY_ID_LEN: usize = 4;
/// Bytes of a receiver's boot number.
pub const BOOT_LEN: usize = 8;

/// Packets of one kind and layer have the same key if their numbers differ only in this many lower bits.
pub(crate) const PACKETS_BITS: u32 = 18;
/// Symbols have the same key if the numbers of their blocks differ only in this many lower bits.
pub(crate) const BLOCKS_BITS: u32 = 12;

/// Number of cached keys. Several keys are in use at a time, because packet numbers of layers and kinds grow at different speeds.
const AT_HAND: usize = 32;

/// Reason why a packet is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// The bytes are not a packet.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The packet belongs to another session.
    #[error("the packet belongs to session {0}")]
    OtherSession(SessionId),
    /// Packets of this kind are for the other role: a source instead of a receiver, or the reverse.
    #[error("this codec does not receive packets of kind {0:?}")]
    NotForMe(Kind),
    /// The packet is not sealed, although this codec has a key.
    #[error("session {0} is not sealed, but a key was given: refuse it, or run without the key")]
    Unsealed(SessionId),
    /// The packet is sealed, and this codec has no key.
    #[error("session {0} is sealed: give the group's key")]
    NeedsKey(SessionId),
    /// The packet is sealed under a key that this codec does not have.
    #[error("session {session} is sealed under key {key}, which was not given")]
    OtherKey {
        /// The session.
        session: SessionId,
        /// The key that is needed.
        key: KeyId,
    },
    /// The packet is sealed, and no announcement has stated the session's salt yet.
    #[error("session {0} is sealed and has not been announced yet: wait for its announcement")]
    NotAnnounced(SessionId),
    /// The packet was not sealed with this key, or was changed on the path.
    #[error("the packet cannot be decrypted with this key: it is forged or damaged")]
    Forged,
    /// The packet was admitted before, or is older than the replay window.
    #[error("packet {0} was admitted before, or is older than the replay window")]
    Replayed(u64),
    /// The announcement came from another address than it states.
    #[error(
        "the announcement states the address {stated} but came from {from}: it was replayed, or an address was translated on the path"
    )]
    Elsewhere {
        /// The stated address.
        stated: SocketAddr,
        /// The source address of the packet.
        from: SocketAddr,
    },
    /// The announcement has a wrong time.
    #[error(
        "the announcement was sent at {sent} (seconds since 1970), but this host's clock shows {now}, more than {skew} s apart: it was replayed, or a clock is wrong"
    )]
    Stale {
        /// Stated time of sending, in seconds since 1970.
        sent: u64,
        /// Time at this host, in seconds since 1970.
        now: u64,
        /// Allowed difference, in seconds.
        skew: u64,
    },
    /// Two sources use the same session ID.
    #[error("another source also announces session {0}: restart one of the two sources")]
    TwoSources(SessionId),
}

/// One AES-128-GCM key.
pub(crate) struct Cipher(LessSafeKey);

impl Cipher {
    /// Takes the first 16 bytes of a derived key, and wipes all 32 bytes.
    fn new(mut derived: [u8; 32]) -> Cipher {
        let key = UnboundKey::new(&AES_128_GCM, &derived[..16]).expect("AES-128 keys have 16 bytes");
        derived.zeroize();
        Cipher(LessSafeKey::new(key))
    }

    /// Encrypts and authenticates `out[start + clear..]`, authenticates `out[start..start + clear]`, and appends the tag.
    pub(crate) fn seal(&self, out: &mut Vec<u8>, start: usize, clear: usize, nonce: [u8; NONCE_LEN]) {
        let (clear, body) = out[start..].split_at_mut(clear);
        let tag = self.seal_in_place(clear, body, nonce);
        out.extend_from_slice(tag.as_ref());
    }

    /// Encrypts `body` in place, and also authenticates `clear`.
    pub(crate) fn seal_in_place(&self, clear: &[u8], body: &mut [u8], nonce: [u8; NONCE_LEN]) -> Tag {
        self.0
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(clear), body)
            .expect("a datagram is shorter than AES-GCM's limit of 64 GB")
    }

    /// Decrypts `bytes[clear..]` in place and returns all bytes except the tag.
    pub(crate) fn open<'a>(
        &self,
        bytes: &'a mut [u8],
        clear: usize,
        nonce: [u8; NONCE_LEN],
    ) -> Result<&'a mut [u8], OpenError> {
        let have = bytes.len();
        let need = clear + TAG_LEN;
        if have < need {
            return Err(ParseError::Truncated { field: "tag", need, have }.into());
        }
        let (head, body) = bytes.split_at_mut(clear);
        self.open_in_place(head, body, nonce)?;
        Ok(&mut bytes[..have - TAG_LEN])
    }

    /// Decrypts `body`, which ends with its tag, in place.
    pub(crate) fn open_in_place(
        &self,
        clear: &[u8],
        body: &mut [u8],
        nonce: [u8; NONCE_LEN],
    ) -> Result<(), OpenError> {
        self.0
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(clear), body)
            .map(drop)
            .map_err(|_| OpenError::Forged)
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

/// The secrets from which the hop keys of a session are derived.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    pub(crate) fn new(key: &HopKey, session: SessionId, salt: &[u8; 16]) -> Secret {
        let context = "faircast wire 3: secret of a session";
        Secret(Zeroizing::new(derive(context, &[key.bytes(), &session.0.to_be_bytes(), salt])))
    }

    /// Returns the key of this sender's packets in an epoch. A receiver or relay has other keys after each restart.
    fn cipher(&self, of: KeyOwner, epoch: u64) -> Cipher {
        let epoch_bytes = epoch.to_be_bytes();
        let derived = match of {
            KeyOwner::Source if epoch == 0 => derive("faircast wire 3: packets of the source", &[&*self.0]),
            KeyOwner::Source => {
                derive("faircast wire 3: later packets of the source", &[&*self.0, &epoch_bytes])
            }
            KeyOwner::Member(id, boot) => {
                let parts: [&[u8]; 4] =
                    [&*self.0, &id.get().to_be_bytes(), &boot.to_be_bytes(), &epoch_bytes];
                match epoch {
                    0 => derive("faircast wire 3: packets of a receiver or relay", &parts[..3]),
                    _ => derive("faircast wire 3: later packets of a receiver or relay", &parts),
                }
            }
        };
        Cipher::new(derived)
    }

    /// Returns the nonce of the `count`-th announcement of the source, or of a relay.
    pub(crate) fn announce_nonce(&self, relay: Option<(ReceiverId, u64)>, count: u64) -> [u8; NONCE_LEN] {
        let (id, boot) = relay.map_or((0, 0), |(id, boot)| (id.get(), boot));
        let parts: [&[u8]; 4] = [&*self.0, &id.to_be_bytes(), &boot.to_be_bytes(), &count.to_be_bytes()];
        let hash = derive("faircast wire 3: nonces of announcements", &parts);
        *hash.first_chunk().expect("a hash is longer than a nonce")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The sender of the packets that a key seals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOwner {
    Source,
    /// A receiver or relay, and its boot number.
    Member(ReceiverId, u64),
}

/// The keys of one sender's packets, with a cache of the keys used last.
#[derive(Debug)]
pub(crate) struct PacketKeys {
    of: KeyOwner,
    secret: Secret,
    ring: Ring,
}

impl PacketKeys {
    pub(crate) fn new(secret: &Secret, of: KeyOwner) -> PacketKeys {
        PacketKeys { of, secret: secret.clone(), ring: Ring::default() }
    }

    /// Returns the key of the packet with this unwrapped number.
    pub(crate) fn of(&mut self, seq: u64) -> &Cipher {
        let PacketKeys { of, secret, ring } = self;
        ring.get(seq >> PACKETS_BITS, |epoch| secret.cipher(*of, epoch))
    }
}

/// Keys of epochs. A new key replaces the least recently used one.
#[derive(Debug, Default)]
struct Ring {
    keys: Vec<Recent>,
    /// The most recently used key.
    latest: usize,
    uses: u64,
}

/// A key of an epoch.
#[derive(Debug)]
struct Recent {
    epoch: u64,
    used: u64,
    cipher: Cipher,
}

impl Ring {
    fn get(&mut self, epoch: u64, make: impl FnOnce(u64) -> Cipher) -> &Cipher {
        if self.keys.get(self.latest).is_none_or(|key| key.epoch != epoch) {
            self.latest = self.keys.iter().position(|key| key.epoch == epoch).unwrap_or_else(|| {
                let key = Recent { epoch, used: 0, cipher: make(epoch) };
                if self.keys.len() < AT_HAND {
                    self.keys.push(key);
                    return self.keys.len() - 1;
                }
                let oldest = (0..AT_HAND).min_by_key(|&at| self.keys[at].used).expect("there are some");
                self.keys[oldest] = key;
                oldest
            });
        }
        self.uses += 1;
        let key = &mut self.keys[self.latest];
        key.used = self.uses;
        &key.cipher
    }
}

/// The keys of a session's content.
pub(crate) struct ContentKeys {
    /// The content key, the session and the salt.
    material: Zeroizing<[u8; 52]>,
    symbols: Ring,
    prover: Secret32,
}

impl ContentKeys {
    pub(crate) fn new(key: &GroupKey, session: SessionId, salt: &[u8; 16]) -> ContentKeys {
        let mut material = Zeroizing::new([0; 52]);
        material[..32].copy_from_slice(&key.content().0);
        material[32..36].copy_from_slice(&session.0.to_be_bytes());
        material[36..].copy_from_slice(salt);
        let prover = Secret32(derive("faircast wire 3: root of a session", &[&*material]));
        ContentKeys { material, symbols: Ring::default(), prover }
    }

    /// Returns the key of this block's symbols.
    pub(crate) fn symbols_of(&mut self, block: u32) -> &Cipher {
        let ContentKeys { material, symbols, .. } = self;
        symbols.get((block >> BLOCKS_BITS).into(), |epoch| {
            let epoch_bytes = epoch.to_be_bytes();
            Cipher::new(match epoch {
                0 => derive("faircast wire 3: symbols of a session", &[&**material]),
                _ => derive("faircast wire 3: later symbols of a session", &[&**material, &epoch_bytes]),
            })
        })
    }

    /// Returns the proof that a member of the group states this root, for this number of blocks and of withdrawn files.
    pub(crate) fn proof(&self, root: &[u8; 32], (blocks, withdrawn): (Option<u32>, u32)) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.prover.0);
        hasher.update(root).update(&blocks.unwrap_or(u32::MAX).to_be_bytes());
        hasher.update(&withdrawn.to_be_bytes());
        *hasher.finalize().as_bytes().first_chunk().expect("a hash is longer than a proof")
    }

    /// Whether this is the proof. The comparison takes constant time.
    pub(crate) fn proves(&self, proof: &[u8; 16], root: &[u8; 32], of: (Option<u32>, u32)) -> bool {
        let right = self.proof(root, of);
        right.iter().zip(proof).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }
}

impl fmt::Debug for ContentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentKeys")
    }
}

/// Returns the key of announcements.
pub(crate) fn announcer(key: &HopKey) -> Cipher {
    Cipher::new(derive("faircast wire 3: announcements", &[key.bytes()]))
}

/// Returns the nonce of any packet except an announcement.
pub(crate) fn nonce(kind: Kind, layer: Layer, seq: u64) -> [u8; NONCE_LEN] {
    upper(u128::from(kind as u8) << 120 | u128::from(layer.0) << 112 | u128::from(seq) << 32)
}

/// Returns the nonce of a symbol, which identifies the symbol.
pub(crate) fn symbol_nonce(stream: u8, block: u32, symbol: u32, symbols: u16) -> [u8; NONCE_LEN] {
    let place = u128::from(block) << 88 | u128::from(symbol & 0x00ff_ffff) << 64 | u128::from(symbols) << 48;
    upper(u128::from(stream) << 120 | place)
}

/// Returns the upper bytes. The processor would stall on a nonce that is written byte by byte and read as words immediately
/// afterwards.
fn upper(number: u128) -> [u8; NONCE_LEN] {
    *number.to_be_bytes().first_chunk().expect("16 bytes are more than 12")
}

fn derive(context: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(part); // every part has a fixed length, so no two lists run together
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::Seq;

    fn number(nonce: [u8; NONCE_LEN]) -> u128 {
        nonce.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
    }

    /// Checks that a mapping of `bits` bits to nonces is injective. Each bit of the input sets a different bit of the nonce, and
    /// other bits of the input do not change that bit.
    fn is_one_to_one(bits: u32, nonce: impl Fn(u128) -> [u8; NONCE_LEN]) {
        let nothing = number(nonce(0));
        let of: Vec<u128> = (0..bits).map(|bit| number(nonce(1 << bit)) ^ nothing).collect();
        assert!(of.iter().all(|bit| bit.count_ones() == 1), "{of:x?}");
        assert_eq!(of.iter().fold(0, |all, bit| all | bit).count_ones(), bits, "two bits fall together");
        // Each bit has the same position in the nonce when two bits are set, and when all bits are set, as when it is set alone.
        for a in 0..bits {
            for b in 0..a {
                let sum = of[a as usize] ^ of[b as usize] ^ nothing;
                assert_eq!(number(nonce(1 << a | 1 << b)), sum);
            }
        }
        let all = (0..bits).fold(0, |all, bit| all | 1 << bit);
        assert_eq!(number(nonce(all)), of.iter().fold(nothing, |all, bit| all ^ bit));
    }

    #[test]
    fn nonces_of_packets_and_symbols_are_unique() {
        for kind in [Kind::Data, Kind::Status] {
            // Layer (8 bits) and number (64).
            is_one_to_one(72, |input| nonce(kind, Layer((input >> 64) as u8), input as u64));
        }
        let any = |kind| number(nonce(kind, Layer(0xff), u64::MAX)) >> 88;
        assert_ne!(any(Kind::Data), any(Kind::Status), "kinds are apart whatever else is said");
        // Stream (8), block (32), symbol (24), number of symbols (16).
        is_one_to_one(80, |input| {
            symbol_nonce(
                (input >> 72) as u8,
                (input >> 40) as u32,
                (input >> 16) as u32 & 0x00ff_ffff,
                input as u16,
            )
        });
    }

    #[test]
    fn packet_number_near_the_newest_is_unwrapped_exactly() {
        let half = 1_i64 << 31;
        let near = [-half + 1, -half / 2, -3, -2, -1, 0, 1, 2, 3, half / 2, half - 1];
        for turn in [1_u64, 2, 3, 1 << 20, 1 << 30] {
            for at in -300..=300_i64 {
                let newest = (turn << 32).saturating_add_signed(at);
                for distance in near {
                    let seq = newest.saturating_add_signed(distance);
                    assert_eq!(Seq::unwrap(Seq(newest), seq as u32), Seq(seq), "{newest} {distance}");
                }
            }
        }
    }

    /// Computes the tag of constant bytes under a key.
    fn tag(cipher: &Cipher) -> [u8; TAG_LEN] {
        let tag = cipher.seal_in_place(b"clear", &mut b"sealed".to_owned(), [7; NONCE_LEN]);
        tag.as_ref().try_into().expect("a tag has 16 bytes")
    }

    #[test]
    fn packet_keys_differ_by_epoch_and_sender() {
        let (key, salt) = (GroupKey::from_bytes([1; 32]), [2; 16]);
        let secret = Secret::new(&key.hop(), SessionId(5), &salt);
        let member = |id, boot| KeyOwner::Member(ReceiverId::new(id).expect("not zero"), boot);
        let mut tags = Vec::new();
        for of in [KeyOwner::Source, member(1, 1), member(1, 2), member(2, 1)] {
            let mut keys = PacketKeys::new(&secret, of);
            for epoch in [0, 1, 2, 63, 64, 1 << 20, (1 << 38) - 1] {
                let first = epoch << PACKETS_BITS;
                let last = first + ((1 << PACKETS_BITS) - 1);
                assert_eq!(tag(keys.of(first)), tag(keys.of(last)), "{of:?} {epoch}");
                tags.push(tag(keys.of(first)));
            }
            // The result does not depend on earlier requests.
            assert_eq!(
                tag(keys.of(1 << PACKETS_BITS)),
                tag(PacketKeys::new(&secret, of).of(1 << PACKETS_BITS))
            );
        }
        let mut content = ContentKeys::new(&key, SessionId(5), &salt);
        for epoch in [0, 1, 2, (1 << 20) - 1] {
            let first = epoch << BLOCKS_BITS;
            assert_eq!(tag(content.symbols_of(first)), tag(content.symbols_of(first | 0xfff)), "{epoch}");
            tags.push(tag(content.symbols_of(first)));
        }
        let all = tags.len();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), all, "two keys are the same");
    }

    #[test]
    fn usage_of_one_key_is_below_the_limit_of_quic() {
        // RFC 9001, B.1.1: 2^35 blocks of the cipher. A datagram has at most 2^16 bytes. In a block with the maximum number of
        // symbols, a symbol has at most 2^11 bytes.
        let cipher_blocks = |packets: u64, bytes: u64| packets * bytes.div_ceil(16);
        let kinds_and_layers = 3 + 16;
        assert!(kinds_and_layers * cipher_blocks(1 << PACKETS_BITS, 1 << 16) <= 1 << 35);
        let usual = 256 + 256; // as many repairs as symbols
        assert!(cipher_blocks(usual << BLOCKS_BITS, 1 << 16) <= 1 << 35);
        assert!(cipher_blocks((1 << 16) << BLOCKS_BITS, 1 << 11) <= 1 << 35);
    }
}
