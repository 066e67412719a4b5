//! Signed content: statements that only the source can make, even in a group whose members all have the group's key.
//!
//! The source signs four statements (Ed25519, RFC 8032). Each statement covers a context and its subject:
//!
//! | statement | context | covers |
//! |---|---|---|
//! | an announcement | `faircast 2: announcement` | session, and the announcement's fields that relays may not change |
//! | a page of hashes | `faircast 2: page of hashes` | session, salt, transfer, start, the first block's number, the hashes |
//! | the root | `faircast 2: root` | session, salt, transfer, start, numbers of blocks and of withdrawn files, the root |
//! | withdrawn files | `faircast 2: withdrawn files` | session, salt, transfer, start, index of the first file, the files |
//!
//! Receivers sign a fifth statement ([`crate::receipt`]).
//!
//! A zero byte follows the context, so no context is a prefix of another. The rest has one encoding for each meaning.
//!
//! Key files have one key per line. Empty lines and lines that start with `#` are skipped:
//!
//! ```text
//! faircast-sign-2 <64 hexadecimal digits>        the private key's seed, for the source alone
//! faircast-verify-2 <64 hexadecimal digits>      the public key, for everybody; a file may have several
//! ```

use crate::bodies::Body;
use crate::encode;
use crate::error::EncodeError;
use crate::key::{KeyError, SIGN, VERIFY, line, one, read};
use crate::message::{Announce, Name, TransferId};
use crate::receipt::{Comparison, Receipt};
use crate::signature::Signature;
use crate::withdrawn::Withdrawn;
use curve25519_dalek::edwards::CompressedEdwardsY;
use faircast_core::packet::{ReceiverId, SessionId};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

/// Maximum number of keys in a file of public keys: the present one, the next one, and keys of several sources.
pub const MAX_KEYS: usize = 64;

/// The session and content that statements are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    /// The session.
    pub session: SessionId,
    /// Random number of the source's start.
    pub salt: [u8; 16],
    /// The transfer.
    pub transfer: TransferId,
    /// Time of the source's start, in nanoseconds since 1970.
    pub started: u64,
}

/// The source's private key. Its random seed is wiped when the key is dropped. Only [`SigningKey::to_line`] prints it.
pub struct SigningKey {
    seed: Zeroizing<[u8; 32]>,
    pair: Ed25519KeyPair,
}

/// The public key of a [`SigningKey`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VerifyKey([u8; 32]);

/// The public keys of the sources whose content is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyKeys(Vec<VerifyKey>);

impl SigningKey {
    /// Draws a new key from the operating system's random source.
    ///
    /// # Errors
    /// When the operating system provides no random bytes.
    pub fn generate() -> Result<SigningKey, KeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(&mut *seed).map_err(|_| KeyError::NoEntropy)?;
        Ok(SigningKey::from_seed(*seed))
    }

    /// Creates the key with this seed.
    pub fn from_seed(seed: [u8; 32]) -> SigningKey {
        let seed = Zeroizing::new(seed);
        let pair = Ed25519KeyPair::from_seed_unchecked(&*seed).expect("a seed has 32 bytes");
        SigningKey { seed, pair }
    }

    /// Returns the key file's line, without a line break. A holder of the line can sign as the source.
    pub fn to_line(&self) -> Zeroizing<String> {
        line(SIGN, &self.seed)
    }

    /// Returns the key that receivers need.
    pub fn verify_key(&self) -> VerifyKey {
        let public = self.pair.public_key().as_ref();
        VerifyKey(*public.first_chunk().expect("a public key has 32 bytes"))
    }

    /// Signs a page: the hashes of consecutive blocks.
    pub fn sign_page(&self, about: &Signed, first_block: u32, hashes: &[[u8; 32]]) -> Signature {
        self.sign(&about.page(first_block, hashes))
    }

    /// Signs the root of this number of blocks and of `withdrawn` withdrawn files.
    pub fn sign_root(&self, about: &Signed, blocks: u32, withdrawn: u32, root: &[u8; 32]) -> Signature {
        self.sign(&about.root(blocks, withdrawn, root))
    }

    /// Signs a part of the list of withdrawn files. The index of its first file in the list is `first`.
    pub fn sign_withdrawals(&self, about: &Signed, first: u32, files: &[Withdrawn]) -> Signature {
        self.sign(&about.withdrawals(first, files))
    }

    pub(crate) fn sign(&self, statement: &[u8]) -> Signature {
        *self.pair.sign(statement).as_ref().first_chunk().expect("a signature has 64 bytes")
    }
}

impl Clone for SigningKey {
    fn clone(&self) -> SigningKey {
        SigningKey::from_seed(*self.seed)
    }
}

impl VerifyKey {
    /// Creates the key from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> VerifyKey {
        VerifyKey(bytes)
    }

    /// Returns the bytes of the key.
    pub const fn to_bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Returns the key file's line, without a line break.
    pub fn to_line(&self) -> String {
        line(VERIFY, &self.0).to_string()
    }

    /// Returns four bytes that distinguish keys.
    pub fn fingerprint(&self) -> u32 {
        let hash = blake3::derive_key("faircast wire 2: fingerprint of a public key", &self.0);
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
    }

    /// Whether this key's private half has signed the page.
    pub fn verifies_page(
        &self,
        about: &Signed,
        first_block: u32,
        hashes: &[[u8; 32]],
        signature: &Signature,
    ) -> bool {
        self.verifies(&about.page(first_block, hashes), signature)
    }

    /// Whether this key's private half has signed the root.
    pub fn verifies_root(
        &self,
        about: &Signed,
        (blocks, withdrawn): (u32, u32),
        root: &[u8; 32],
        signature: &Signature,
    ) -> bool {
        self.verifies(&about.root(blocks, withdrawn, root), signature)
    }

    /// Whether this key's private half has signed a part of the list of withdrawn files.
    pub fn verifies_withdrawals(
        &self,
        about: &Signed,
        first: u32,
        files: &[Withdrawn],
        signature: &Signature,
    ) -> bool {
        self.verifies(&about.withdrawals(first, files), signature)
    }

    /// Whether the key is a point of small order. Anybody can forge signatures for such a key, because no private key is needed.
    pub fn is_weak(&self) -> bool {
        CompressedEdwardsY(self.0).decompress().is_some_and(|point| point.is_small_order())
    }

    pub(crate) fn verifies(&self, statement: &[u8], signature: &Signature) -> bool {
        !self.is_weak() && UnparsedPublicKey::new(&ED25519, &self.0).verify(statement, signature).is_ok()
    }
}

impl VerifyKeys {
    /// Returns the keys, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &VerifyKey> {
        self.0.iter()
    }
}

impl From<VerifyKey> for VerifyKeys {
    fn from(key: VerifyKey) -> VerifyKeys {
        VerifyKeys(vec![key])
    }
}

impl Signed {
    fn page(&self, first_block: u32, hashes: &[[u8; 32]]) -> Vec<u8> {
        let mut statement = self.statement("faircast 2: page of hashes", 4 + 32 * hashes.len());
        statement.extend(first_block.to_be_bytes());
        statement.extend(hashes.as_flattened());
        statement
    }

    fn root(&self, blocks: u32, withdrawn: u32, root: &[u8; 32]) -> Vec<u8> {
        let mut statement = self.statement("faircast 2: root", 8 + 32);
        statement.extend(blocks.to_be_bytes());
        statement.extend(withdrawn.to_be_bytes());
        statement.extend(root);
        statement
    }

    fn withdrawals(&self, first: u32, files: &[Withdrawn]) -> Vec<u8> {
        let mut statement = self.statement("faircast 2: withdrawn files", 4 + 12 * files.len());
        statement.extend(first.to_be_bytes());
        for file in files {
            let numbers = [file.entry, file.first_block, file.last_block];
            statement.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        }
        statement
    }

    /// Begins a statement about content; `more` bytes follow.
    fn statement(&self, context: &str, more: usize) -> Vec<u8> {
        let mut statement = Vec::with_capacity(context.len() + 1 + 4 + 16 + 16 + 8 + more);
        statement.extend(context.bytes());
        statement.push(0);
        statement.extend(self.session.0.to_be_bytes());
        statement.extend(self.salt);
        statement.extend(self.transfer.0);
        statement.extend(self.started.to_be_bytes());
        statement
    }
}

impl Announce {
    /// Signs the announcement for this session.
    ///
    /// # Errors
    /// When a number does not fit its field.
    pub fn sign(&mut self, session: SessionId, key: &SigningKey) -> Result<(), EncodeError> {
        self.signer = key.verify_key().fingerprint();
        self.signature = Some(key.sign(&self.statement(session)?));
        Ok(())
    }

    /// Whether this key's private half has signed the announcement for this session.
    pub fn is_signed_by(&self, session: SessionId, key: &VerifyKey) -> bool {
        let (Some(signature), Ok(statement)) = (&self.signature, self.statement(session)) else {
            return false;
        };
        key.verifies(&statement, signature)
    }

    /// Returns the statement to sign: everything except the signature and the fields that a relay may change. A relay may change
    /// the address, the numbers, the number of relays, the packet size, the spread of feedback, and the congestion control with
    /// its layers.
    fn statement(&self, session: SessionId) -> Result<Vec<u8>, EncodeError> {
        let mut statement = Vec::with_capacity(encode::MAX_ANNOUNCE);
        statement.extend(b"faircast 2: announcement\0");
        statement.extend(session.0.to_be_bytes());
        let (parent, packet_size) = (self.source, Announce::MIN_PACKET);
        let (options, flags) = (crate::Name::EMPTY, self.flags & !Announce::LAYERS_BY_PORT);
        Announce {
            parent,
            packet_size,
            next_seq: 0,
            scheme: 0,
            layers: 1,
            options,
            hops: 0,
            spread_ms: 0,
            flags,
            signature: None,
            ..*self
        }
        .put(&mut statement, usize::MAX)?;
        Ok(statement)
    }
}

impl Receipt {
    /// Signs a statement that the receiver `receiver` at `host` has verified the content with this root at `unix_secs`.
    pub fn sign(
        about: &Signed,
        root: [u8; 32],
        (receiver, host): (ReceiverId, Name),
        unix_secs: u64,
        key: &SigningKey,
    ) -> Receipt {
        let public = key.verify_key().to_bytes();
        let mut receipt =
            Receipt { key: public, ..Receipt::unsigned(root, (receiver, host), unix_secs, None) };
        receipt.signature = key.sign(&receipt.statement(about));
        receipt
    }

    /// Makes a statement without a signature, for a comparison.
    pub fn unsigned(
        root: [u8; 32],
        (receiver, host): (ReceiverId, Name),
        unix_secs: u64,
        comparison: Option<Box<Comparison>>,
    ) -> Receipt {
        let (from, key, signature) = (receiver, [0; 32], [0; 64]);
        Receipt { from, nonce: 0, receiver, unix_secs, root, key, signature, host, comparison }
    }

    /// Whether the receipt is signed for this session and content, with the private half of the key that the receipt names.
    pub fn is_signed(&self, about: &Signed) -> bool {
        VerifyKey::from_bytes(self.key).verifies(&self.statement(about), &self.signature)
    }

    fn statement(&self, about: &Signed) -> Vec<u8> {
        let mut statement = about.statement("faircast 2: receipt", 32 + 8 + 8 + Name::MAX);
        statement.extend(self.root);
        statement.extend(self.receiver.get().to_be_bytes());
        statement.extend(self.unix_secs.to_be_bytes());
        statement.extend(self.host.as_str().as_bytes());
        statement
    }
}

impl FromStr for SigningKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<SigningKey, KeyError> {
        Ok(SigningKey::from_seed(one(read(text, SIGN, 1)?, SIGN)?.0))
    }
}

impl FromStr for VerifyKeys {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<VerifyKeys, KeyError> {
        Ok(VerifyKeys(read(text, VERIFY, MAX_KEYS)?.iter().map(|key| VerifyKey(key.0)).collect()))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({:?})", self.verify_key())
    }
}

impl fmt::Debug for VerifyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyKey({:08x}..)", self.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::SIGNATURE_LEN;
    use proptest::prelude::*;

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed([seed; 32])
    }

    fn about() -> Signed {
        Signed { session: SessionId(7), salt: [3; 16], transfer: TransferId([9; 16]), started: 1 << 60 }
    }

    #[test]
    fn keys_match_the_test_vector_of_rfc_8032() {
        // RFC 8032, 7.1, test 1.
        let seed = "faircast-sign-2 9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let public = "faircast-verify-2 d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let key: SigningKey = seed.parse().expect("a key");
        assert_eq!(key.to_line().as_str(), seed);
        assert_eq!(key.verify_key().to_line(), public);
        let keys: VerifyKeys = format!("# the lab's\n\n{public}  # ours\r\n").parse().expect("a key");
        assert_eq!(keys, VerifyKeys::from(key.verify_key()));
    }

    /// The signature R = key, S = 0 verifies any statement under the point of order one, and half of all statements under the
    /// point of order two.
    #[test]
    fn key_of_small_order_verifies_nothing() {
        let of_order_one = std::array::from_fn(|at| u8::from(at == 0));
        let of_order_two = std::array::from_fn(|at| match at {
            0 => 0xec,
            31 => 0x7f,
            _ => 0xff,
        });
        for bytes in [of_order_one, [0; 32], of_order_two] {
            let weak = VerifyKey::from_bytes(bytes);
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(&bytes);
            assert!(weak.is_weak());
            let forged =
                (0..16).filter(|block| weak.verifies_root(&about(), (*block, 0), &[5; 32], &signature));
            assert_eq!(forged.count(), 0, "{bytes:02x?}");
        }
        assert!(!key(1).verify_key().is_weak());
    }

    #[test]
    fn key_file_has_one_private_key_or_several_public_keys() {
        let public = [1, 2].map(|seed| key(seed).verify_key());
        let text = public.map(|key| key.to_line()).join("\n");
        assert!(text.parse::<VerifyKeys>().expect("two keys").iter().eq(&public));
        let private = [1, 2].map(|seed| key(seed).to_line().to_string()).join("\n");
        assert_eq!(private.parse::<SigningKey>().err(), Some(KeyError::TooMany { line: 2, most: 1 }));
        let many = vec![public[0].to_line(); MAX_KEYS + 1].join("\n");
        let error = KeyError::TooMany { line: MAX_KEYS + 1, most: MAX_KEYS };
        assert_eq!(many.parse::<VerifyKeys>(), Err(error));
    }

    #[test]
    fn bad_key_file_is_refused_with_the_line() {
        let read = |text: &str| text.parse::<SigningKey>().map(|_| ());
        let line = key(1).to_line();
        assert_eq!(read("# nothing"), Err(KeyError::NoKey { tag: SIGN }));
        assert_eq!(read("\nfaircast-sign-3 00"), Err(KeyError::UnknownLine { line: 2, tag: SIGN }));
        assert_eq!(read("faircast-sign-2"), Err(KeyError::WrongLength { line: 1, digits: 0 }));
        assert_eq!(read(&line[..line.len() - 1]), Err(KeyError::WrongLength { line: 1, digits: 63 }));
        assert_eq!(read("faircast-sign-2 00x1"), Err(KeyError::NotHex { line: 1, position: 3 }));
        assert!(matches!(read(&key(1).verify_key().to_line()), Err(KeyError::OtherKind { line: 1, .. })));
        assert!(matches!(line.parse::<VerifyKeys>(), Err(KeyError::OtherKind { line: 1, .. })));
    }

    #[test]
    fn new_keys_differ_and_debug_output_hides_them() {
        let [a, b] = [(); 2].map(|()| SigningKey::generate().expect("the system has random bytes"));
        assert_ne!(a.verify_key(), b.verify_key());
        let shown = format!("{a:?}");
        assert!(shown.len() < 40 && !shown.contains(&a.to_line()[16..24]), "{shown}");
    }

    #[test]
    fn receipt_covers_session_content_receiver_host_and_time() {
        let about = about();
        let id = |number| ReceiverId::new(number).expect("it is not zero");
        let key = key(1);
        let receipt = Receipt::sign(&about, [5; 32], (id(7), Name::clipped("lab-07")), 1_000, &key);
        assert!(receipt.is_signed(&about));
        assert!(
            Receipt { from: id(8), nonce: 4, ..receipt.clone() }.is_signed(&about),
            "who passes it on says so"
        );
        for other in [
            Signed { session: SessionId(8), ..about },
            Signed { salt: [4; 16], ..about },
            Signed { transfer: TransferId([8; 16]), ..about },
            Signed { started: 5, ..about },
        ] {
            assert!(!receipt.is_signed(&other), "{other:?}");
        }
        let mut flipped = receipt.clone();
        flipped.signature[0] ^= 1;
        for other in [
            Receipt { receiver: id(8), ..receipt.clone() },
            Receipt { unix_secs: 1_001, ..receipt.clone() },
            Receipt { root: [6; 32], ..receipt.clone() },
            Receipt { key: super::tests::key(2).verify_key().to_bytes(), ..receipt.clone() },
            Receipt { host: Name::clipped("lab-08"), ..receipt.clone() },
            Receipt { host: Name::clipped("lab-0"), ..receipt.clone() },
            flipped,
        ] {
            assert!(!other.is_signed(&about), "{other:?}");
        }
        assert!(!VerifyKey::from_bytes(receipt.key).verifies_root(
            &about,
            (1, 0),
            &[5; 32],
            &receipt.signature
        ));
    }

    #[test]
    fn page_signature_is_bound_to_type_session_and_position() {
        let (key, about, hashes) = (key(1), about(), [[1; 32], [2; 32]]);
        let (public, signature) = (key.verify_key(), key.sign_page(&about, 5, &hashes));
        assert!(public.verifies_page(&about, 5, &hashes, &signature));
        assert!(!super::tests::key(2).verify_key().verifies_page(&about, 5, &hashes, &signature));
        assert!(!public.verifies_page(&about, 6, &hashes, &signature));
        assert!(!public.verifies_page(&about, 5, &hashes[..1], &signature));
        assert!(!public.verifies_page(&about, 5, &[hashes[1], hashes[0]], &signature));
        for other in [
            Signed { session: SessionId(8), ..about },
            Signed { salt: [4; 16], ..about },
            Signed { transfer: TransferId([8; 16]), ..about },
            Signed { started: 5, ..about },
        ] {
            assert!(!public.verifies_page(&other, 5, &hashes, &signature), "{other:?}");
        }
        let one = key.sign_page(&about, 5, &hashes[..1]);
        assert!(!public.verifies_root(&about, (5, 0), &hashes[0], &one), "their contexts differ");
        let root = key.sign_root(&about, 5, 1, &hashes[0]);
        assert!(public.verifies_root(&about, (5, 1), &hashes[0], &root));
        assert!(!public.verifies_root(&about, (4, 1), &hashes[0], &root));
        assert!(!public.verifies_root(&about, (5, 0), &hashes[0], &root));
        let files = [7, 9].map(|entry| Withdrawn { entry, first_block: 1, last_block: 2 });
        let withdrawals = key.sign_withdrawals(&about, 3, &files);
        assert!(public.verifies_withdrawals(&about, 3, &files, &withdrawals));
        assert!(!public.verifies_withdrawals(&about, 4, &files, &withdrawals));
        assert!(!public.verifies_withdrawals(&about, 3, &files[..1], &withdrawals));
        assert!(!public.verifies_page(&about, 5, &hashes[..1], &root));
    }

    proptest! {
        #[test]
        fn every_changed_bit_of_a_hash_page_is_detected(
            first in any::<u32>(),
            hashes in proptest::collection::vec(any::<[u8; 32]>(), 1..40),
            at in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let (key, about) = (key(1), about());
            let mut signature = key.sign_page(&about, first, &hashes);
            let public = key.verify_key();
            prop_assert!(public.verifies_page(&about, first, &hashes, &signature));
            let mut changed = hashes.clone();
            let at_hash = at.index(hashes.len() * 32);
            changed[at_hash / 32][at_hash % 32] ^= 1 << bit;
            prop_assert!(!public.verifies_page(&about, first, &changed, &signature));
            prop_assert!(!public.verifies_page(&about, first ^ (1 << (bit * 4)), &hashes, &signature));
            prop_assert!(!public.verifies_page(&about, first, &hashes[..hashes.len() - 1], &signature));
            signature[at.index(SIGNATURE_LEN)] ^= 1 << bit;
            prop_assert!(!public.verifies_page(&about, first, &hashes, &signature));
        }
    }
}
