//! Keys of a group's members and of its relays.
//!
//! ```text
//! group key (32 bytes) --+-- hop key      what relays read and write: headers, marks, feedback, announcements
//!                        +-- content key  symbols, end to end
//! ```
//!
//! A holder of the group's key has the group's key and the hop key. A relay has only the hop key.

use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::str::FromStr;
use zeroize::{Zeroize, Zeroizing};

/// First words of key lines.
pub(crate) const GROUP: &str = "faircast-group-2";
pub(crate) const RELAY: &str = "faircast-relay-2";
pub(crate) const SIGN: &str = "faircast-sign-2";
pub(crate) const VERIFY: &str = "faircast-verify-2";

/// Kinds of key files.
const KINDS: [(&str, &str); 4] = [
    (GROUP, "a group's key"),
    (RELAY, "a relay's key"),
    (SIGN, "a signing key"),
    (VERIFY, "a public key for verification"),
];

/// First word of a key's line in version 1.
const VERSION_1: &str = "faircast-key-1";

/// The group's key, 32 bytes. It is wiped when dropped. Only [`GroupKey::to_line`] prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupKey(Secret32);

/// A relay's key: it opens and seals everything except the symbols. It is derived from the group's key. The group's key cannot be
/// computed from the hop key.
#[derive(Clone, PartialEq, Eq)]
pub struct HopKey(Secret32);

/// The keys of a group during a change of keys. A source seals with the first key; receivers open packets sealed under any of the
/// keys.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRing(Vec<GroupKey>);

/// Distinguishes keys and reveals nothing else about them. A group's key and its hop key have the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub u32);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Reason why a text is not a key file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text has no key.
    #[error("no key found: the file needs a line \"{tag} <64 hexadecimal digits>\"")]
    NoKey {
        /// The expected first word of the line.
        tag: &'static str,
    },
    /// The line is neither a key, nor empty, nor a comment.
    #[error("line {line} does not start with \"{tag}\" or \"#\": not a key file of this kind")]
    UnknownLine {
        /// Number of the line, from 1.
        line: usize,
        /// Expected first word.
        tag: &'static str,
    },
    /// The key has another purpose.
    #[error("line {line} has {found}, but {expected} is expected: give the file with that key")]
    OtherKind {
        /// Number of the line, from 1.
        line: usize,
        /// Kind of the key found.
        found: &'static str,
        /// Kind of the key expected.
        expected: &'static str,
    },
    /// The key has the first version.
    #[error(
        "the key in line {line} is of version 1, which is no longer supported: create a new key for all hosts"
    )]
    Version1 {
        /// Number of the line, from 1.
        line: usize,
    },
    /// The key is truncated or too long.
    #[error("the key in line {line} has {digits} characters instead of 64: copy the whole line")]
    WrongLength {
        /// Number of the line, from 1.
        line: usize,
        /// Number of characters of the key.
        digits: usize,
    },
    /// The key has a character that is not a hexadecimal digit.
    #[error("character {position} of the key in line {line} is not a hexadecimal digit")]
    NotHex {
        /// Number of the line, from 1.
        line: usize,
        /// Position of the character in the key, from 1.
        position: usize,
    },
    /// The text has more keys than may be valid at the same time.
    #[error("the key in line {line} exceeds the maximum of {most} keys: remove keys")]
    TooMany {
        /// Number of the line, from 1.
        line: usize,
        /// Maximum number of keys.
        most: usize,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes: try again")]
    NoEntropy,
}

/// 32 bytes that are wiped when dropped.
#[derive(Clone)]
pub(crate) struct Secret32(pub(crate) [u8; 32]);

impl Drop for Secret32 {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Compares in constant time.
impl PartialEq for Secret32 {
    fn eq(&self, other: &Secret32) -> bool {
        self.0.iter().zip(other.0).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }
}

impl Eq for Secret32 {}

impl GroupKey {
    /// Draws a new key from the operating system's random source.
    ///
    /// # Errors
    /// When the operating system provides no random bytes.
    pub fn generate() -> Result<GroupKey, KeyError> {
        let mut key = Secret32([0; 32]);
        SystemRandom::new().fill(&mut key.0).map_err(|_| KeyError::NoEntropy)?;
        Ok(GroupKey(key))
    }

    /// Creates the key from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> GroupKey {
        GroupKey(Secret32(bytes))
    }

    /// Returns the key file's line, without a line break. Any holder of the line is a member of the group.
    pub fn to_line(&self) -> Zeroizing<String> {
        line(GROUP, &self.0.0)
    }

    /// Returns the key for relays.
    pub fn hop(&self) -> HopKey {
        HopKey(Secret32(blake3::derive_key("faircast wire 2: hop key", &self.0.0)))
    }

    /// Returns the secret from which the keys of symbols are derived, together with a session and the salt of the session.
    pub(crate) fn content(&self) -> Secret32 {
        Secret32(blake3::derive_key("faircast wire 3: content key", &self.0.0))
    }

    /// Returns the id of this key.
    pub fn id(&self) -> KeyId {
        self.hop().id()
    }
}

impl HopKey {
    /// Returns the key file's line, without a line break. A holder of the line can send as any relay or receiver and, except for
    /// the content, as the source.
    pub fn to_line(&self) -> Zeroizing<String> {
        line(RELAY, &self.0.0)
    }

    /// Returns the id of this key.
    pub fn id(&self) -> KeyId {
        let hash = blake3::derive_key("faircast wire 2: id of a hop key", &self.0.0);
        KeyId(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]))
    }

    pub(crate) const fn bytes(&self) -> &[u8; 32] {
        &self.0.0
    }
}

impl KeyRing {
    /// Maximum number of keys that are valid at the same time.
    pub const MAX_KEYS: usize = 4;

    /// Returns a ring of one key.
    pub fn of(key: GroupKey) -> KeyRing {
        KeyRing(vec![key])
    }

    /// Returns the key with which sources seal.
    pub fn first(&self) -> &GroupKey {
        &self.0[0]
    }

    /// Returns all keys, in the order of the file.
    pub fn keys(&self) -> &[GroupKey] {
        &self.0
    }
}

impl From<GroupKey> for KeyRing {
    fn from(key: GroupKey) -> KeyRing {
        KeyRing::of(key)
    }
}

pub(crate) fn line(tag: &str, key: &[u8; 32]) -> Zeroizing<String> {
    let mut line = Zeroizing::new(String::with_capacity(tag.len() + 65));
    line.push_str(tag);
    line.push(' ');
    for byte in key {
        line.extend(
            [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).expect("below 16")),
        );
    }
    line
}

/// Reads a key file: lines with a group key, the sealing key first. Empty lines and lines that start with `#` are skipped.
impl FromStr for KeyRing {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<KeyRing, KeyError> {
        let keys = read(text, GROUP, KeyRing::MAX_KEYS)?;
        Ok(KeyRing(keys.into_iter().map(GroupKey).collect()))
    }
}

/// Reads a key file with one key.
impl FromStr for GroupKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<GroupKey, KeyError> {
        one(read(text, GROUP, 1)?, GROUP).map(GroupKey)
    }
}

/// Reads a relay's key file.
impl FromStr for HopKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<HopKey, KeyError> {
        one(read(text, RELAY, 1)?, RELAY).map(HopKey)
    }
}

pub(crate) fn one(keys: Vec<Secret32>, tag: &'static str) -> Result<Secret32, KeyError> {
    keys.into_iter().next().ok_or(KeyError::NoKey { tag })
}

/// Reads the keys in lines that start with this word, in lower or upper case: at least one, at most `most`. A byte order mark at
/// the beginning, as editors on Windows write it, is skipped.
pub(crate) fn read(text: &str, tag: &'static str, most: usize) -> Result<Vec<Secret32>, KeyError> {
    let mut keys = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, content) in (1..).zip(text.lines().map(str::trim)) {
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let mut words = content.split_whitespace();
        let kind =
            |word: &str| KINDS.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(word)).map(|(_, kind)| *kind);
        match words.next() {
            Some(found) if found.eq_ignore_ascii_case(tag) => {}
            Some(found) if found.eq_ignore_ascii_case(VERSION_1) => return Err(KeyError::Version1 { line }),
            found => {
                return Err(match (found.and_then(kind), kind(tag)) {
                    (Some(found), Some(expected)) => KeyError::OtherKind { line, found, expected },
                    _ => KeyError::UnknownLine { line, tag },
                });
            }
        }
        let digits = words.next().unwrap_or("");
        if let Some(position) = digits.chars().position(|digit| !digit.is_ascii_hexdigit()) {
            return Err(KeyError::NotHex { line, position: position + 1 });
        }
        let wrong_length = KeyError::WrongLength { line, digits: digits.len() };
        let bytes = hex(digits).ok_or(wrong_length)?;
        if words.next().is_some_and(|word| !word.starts_with('#')) {
            return Err(KeyError::UnknownLine { line, tag });
        }
        if keys.len() == most {
            return Err(KeyError::TooMany { line, most });
        }
        keys.push(Secret32(bytes));
    }
    if keys.is_empty() { Err(KeyError::NoKey { tag }) } else { Ok(keys) }
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupKey({}..)", self.id())
    }
}

impl fmt::Debug for HopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HopKey({}..)", self.id())
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

/// Decodes exactly N bytes in hexadecimal.
pub(crate) fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |at: usize| char::from(digits[at]).to_digit(16).map(|digit| digit as u8);
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = digit(2 * at)? << 4 | digit(2 * at + 1)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "faircast-group-2 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn read(text: &str) -> Result<String, KeyError> {
        text.parse::<GroupKey>().map(|key| key.to_line().to_string())
    }

    fn ring(text: &str) -> Result<usize, KeyError> {
        text.parse::<KeyRing>().map(|ring| ring.keys().len())
    }

    #[test]
    fn key_round_trips_as_text() {
        assert_eq!(read(LINE).as_deref(), Ok(LINE));
        assert_eq!(read(&format!("# the lab's\r\n\r\n{LINE}  # ours\r\n")).as_deref(), Ok(LINE));
        let fresh = GroupKey::generate().expect("the system has random bytes");
        assert_eq!(read(&fresh.to_line()).as_deref(), Ok(fresh.to_line().as_str()));
        let relay = fresh.hop();
        assert_eq!(relay.to_line().parse::<HopKey>().as_ref(), Ok(&relay));
    }

    #[test]
    fn byte_order_mark_and_upper_case_are_accepted_in_key_files() {
        assert_eq!(read(&format!("\u{feff}{LINE}\r\n")).as_deref(), Ok(LINE));
        assert_eq!(read(&LINE.to_uppercase()).as_deref(), Ok(LINE));
        let relay = LINE.parse::<GroupKey>().expect("a key").hop().to_line().to_uppercase();
        assert!(matches!(read(&relay), Err(KeyError::OtherKind { .. })), "the message names its kind");
    }

    #[test]
    fn two_new_keys_differ() {
        let [a, b] = [(); 2].map(|()| GroupKey::generate().expect("the system has random bytes"));
        assert_ne!(a, b);
        assert_ne!(a.id(), b.id());
    }

    #[test]
    fn hop_key_has_the_id_of_its_group_key_but_differs() {
        let group: GroupKey = LINE.parse().expect("a key");
        assert_eq!(group.id(), group.hop().id());
        assert_ne!(group.hop().bytes(), &group.0.0);
        let [group_key, relay_key] = ["a group's key", "a relay's key"];
        let other = |found, expected| KeyError::OtherKind { line: 1, found, expected };
        assert_eq!(read(&group.hop().to_line()), Err(other(relay_key, group_key)));
        assert_eq!(LINE.parse::<HopKey>(), Err(other(group_key, relay_key)));
    }

    #[test]
    fn key_ring_contains_the_new_and_the_old_key() {
        let (new, old) = (GroupKey::from_bytes([1; 32]), GroupKey::from_bytes([2; 32]));
        let text = format!("# from Monday on\n{}\n{}\n", *new.to_line(), *old.to_line());
        let both: KeyRing = text.parse().expect("two keys");
        assert_eq!((both.first(), both.keys()), (&new, &[new.clone(), old][..]));
        assert_eq!(ring(&format!("{LINE}\n").repeat(5)), Err(KeyError::TooMany { line: 5, most: 4 }));
    }

    #[test]
    fn bad_key_file_is_refused_with_the_line() {
        assert_eq!(read(""), Err(KeyError::NoKey { tag: GROUP }));
        assert_eq!(ring("# nothing"), Err(KeyError::NoKey { tag: GROUP }));
        assert_eq!(read("\nfaircast-group-3 00"), Err(KeyError::UnknownLine { line: 2, tag: GROUP }));
        assert_eq!(read("faircast-key-1 00"), Err(KeyError::Version1 { line: 1 }));
        assert_eq!(read("faircast-group-2"), Err(KeyError::WrongLength { line: 1, digits: 0 }));
        assert_eq!(read(&LINE[..LINE.len() - 1]), Err(KeyError::WrongLength { line: 1, digits: 63 }));
        assert_eq!(read("faircast-group-2 00é1"), Err(KeyError::NotHex { line: 1, position: 3 }));
        assert_eq!(read(&format!("{LINE} 00")), Err(KeyError::UnknownLine { line: 1, tag: GROUP }));
        assert_eq!(read(&format!("{LINE}\n{LINE}")), Err(KeyError::TooMany { line: 2, most: 1 }));
    }

    #[test]
    fn debug_output_hides_the_key() {
        let key: GroupKey = LINE.parse().expect("a key");
        let shown = format!("{key:?} {:?}", key.hop());
        assert!(shown.starts_with("GroupKey(") && shown.len() < 44, "{shown}");
        assert!(!shown.contains("0001020304"), "{shown}");
    }
}
