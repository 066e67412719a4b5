//! Keys: those of a group's members, and those of its relays.
//!
//! ```text
//! group key (32 bytes) --+-- hop key      what relays read and write: headers, marks, feedback, announcements
//!                        +-- content key  symbols, end to end
//! ```
//!
//! A holder of the group's key has both. A relay has the hop key alone.

use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::str::FromStr;
use zeroize::{Zeroize, Zeroizing};

/// First words of the lines of keys.
pub(crate) const GROUP: &str = "faircast-group-2";
pub(crate) const RELAY: &str = "faircast-relay-2";
pub(crate) const SIGN: &str = "faircast-sign-2";
pub(crate) const VERIFY: &str = "faircast-verify-2";

/// Kinds of key files.
const KINDS: [(&str, &str); 4] = [
    (GROUP, "a group's key"),
    (RELAY, "a relay's key"),
    (SIGN, "a signing key"),
    (VERIFY, "a public key to verify with"),
];

/// First word of a key's line in version 1.
const VERSION_1: &str = "faircast-key-1";

/// The group's key, 32 bytes. It is wiped when dropped, and never printed but by
/// [`GroupKey::to_line`].
#[derive(Clone, PartialEq, Eq)]
pub struct GroupKey(Secret32);

/// A relay's key: it opens and writes all but the symbols. It comes from the group's and does not lead back to it.
#[derive(Clone, PartialEq, Eq)]
pub struct HopKey(Secret32);

/// The keys of a group while one replaces another: a source seals with the first, receivers open all.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRing(Vec<GroupKey>);

/// Distinguishes keys, and reveals nothing else about them. The group's key has that of its hop key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub u32);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Why a text is not a key file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no key in it.
    #[error("no key found: the file needs a line \"{tag} <64 hexadecimal digits>\"")]
    NoKey {
        /// The line's first word.
        tag: &'static str,
    },
    /// A line that is neither a key, nor empty, nor a comment.
    #[error("line {line} does not start with \"{tag}\" or \"#\": not a key file of this kind")]
    UnknownLine {
        /// Which line, from 1 on.
        line: usize,
        /// Expected first word.
        tag: &'static str,
    },
    /// A key for something else.
    #[error("line {line} has {found}, but here belongs {expected}: give the other file")]
    OtherKind {
        /// Which line, from 1 on.
        line: usize,
        /// Kind of the key found.
        found: &'static str,
        /// Kind of the key expected.
        expected: &'static str,
    },
    /// A key of the first version.
    #[error(
        "the key in line {line} is of version 1, which is no longer supported: make a new one for all hosts"
    )]
    Version1 {
        /// Which line, from 1 on.
        line: usize,
    },
    /// The key is cut or too long.
    #[error("the key in line {line} has {digits} characters instead of 64: copy the whole line")]
    WrongLength {
        /// Which line, from 1 on.
        line: usize,
        /// How many characters it has.
        digits: usize,
    },
    /// A character that is no hexadecimal digit.
    #[error("character {position} of the key in line {line} is not a hexadecimal digit")]
    NotHex {
        /// Which line, from 1 on.
        line: usize,
        /// Which character of the key, from 1 on.
        position: usize,
    },
    /// More keys than may be valid at a time.
    #[error("line {line} has one key too many: keep {most} at most")]
    TooMany {
        /// Which line, from 1 on.
        line: usize,
        /// How many there may be.
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

/// In a time that does not depend on where they differ.
impl PartialEq for Secret32 {
    fn eq(&self, other: &Secret32) -> bool {
        self.0.iter().zip(other.0).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }
}

impl Eq for Secret32 {}

impl GroupKey {
    /// A new key from the operating system's random source.
    ///
    /// # Errors
    /// When the operating system has no random bytes to give.
    pub fn generate() -> Result<GroupKey, KeyError> {
        let mut key = Secret32([0; 32]);
        SystemRandom::new().fill(&mut key.0).map_err(|_| KeyError::NoEntropy)?;
        Ok(GroupKey(key))
    }

    /// From its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> GroupKey {
        GroupKey(Secret32(bytes))
    }

    /// Returns the key file's line, without a line break. Its holder is a member.
    pub fn to_line(&self) -> Zeroizing<String> {
        line(GROUP, &self.0.0)
    }

    /// Returns the key for relays.
    pub fn hop(&self) -> HopKey {
        HopKey(Secret32(blake3::derive_key("faircast wire 2: hop key", &self.0.0)))
    }

    /// Returns the secret from which symbols are sealed, together with a session and its salt.
    pub(crate) fn content(&self) -> Secret32 {
        Secret32(blake3::derive_key("faircast wire 3: content key", &self.0.0))
    }

    /// Which key this is.
    pub fn id(&self) -> KeyId {
        self.hop().id()
    }
}

impl HopKey {
    /// Returns the key file's line, without a line break. Its holder can speak for relays, receivers and, except for the content,
    /// the source.
    pub fn to_line(&self) -> Zeroizing<String> {
        line(RELAY, &self.0.0)
    }

    /// Which key this is.
    pub fn id(&self) -> KeyId {
        let hash = blake3::derive_key("faircast wire 2: id of a hop key", &self.0.0);
        KeyId(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]))
    }

    pub(crate) const fn bytes(&self) -> &[u8; 32] {
        &self.0.0
    }
}

impl KeyRing {
    /// Keys that may be valid at a time, at most.
    pub const MAX_KEYS: usize = 4;

    /// One key.
    pub fn of(key: GroupKey) -> KeyRing {
        KeyRing(vec![key])
    }

    /// The key that sources seal with.
    pub fn first(&self) -> &GroupKey {
        &self.0[0]
    }

    /// All of them, the first one first.
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

/// From a key file: lines with a group key, the one to seal with first; empty lines and lines that start with `#` are skipped.
impl FromStr for KeyRing {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<KeyRing, KeyError> {
        let keys = read(text, GROUP, KeyRing::MAX_KEYS)?;
        Ok(KeyRing(keys.into_iter().map(GroupKey).collect()))
    }
}

/// From a key file with one key.
impl FromStr for GroupKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<GroupKey, KeyError> {
        one(read(text, GROUP, 1)?, GROUP).map(GroupKey)
    }
}

/// From a relay's key file.
impl FromStr for HopKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<HopKey, KeyError> {
        one(read(text, RELAY, 1)?, RELAY).map(HopKey)
    }
}

pub(crate) fn one(keys: Vec<Secret32>, tag: &'static str) -> Result<Secret32, KeyError> {
    keys.into_iter().next().ok_or(KeyError::NoKey { tag })
}

/// The keys in lines that start with this word, in lower or upper case, `most` of them; at least one. Editors on Windows begin
/// a file with a byte order mark.
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

/// Exactly N bytes in hexadecimal.
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
    fn a_byte_order_mark_and_upper_case_are_accepted() {
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
    fn a_relays_key_has_the_groups_id_and_is_no_group_key() {
        let group: GroupKey = LINE.parse().expect("a key");
        assert_eq!(group.id(), group.hop().id());
        assert_ne!(group.hop().bytes(), &group.0.0);
        let [group_key, relay_key] = ["a group's key", "a relay's key"];
        let other = |found, expected| KeyError::OtherKind { line: 1, found, expected };
        assert_eq!(read(&group.hop().to_line()), Err(other(relay_key, group_key)));
        assert_eq!(LINE.parse::<HopKey>(), Err(other(group_key, relay_key)));
    }

    #[test]
    fn a_ring_holds_the_new_key_and_the_old_one() {
        let (new, old) = (GroupKey::from_bytes([1; 32]), GroupKey::from_bytes([2; 32]));
        let text = format!("# from Monday on\n{}\n{}\n", *new.to_line(), *old.to_line());
        let both: KeyRing = text.parse().expect("two keys");
        assert_eq!((both.first(), both.keys()), (&new, &[new.clone(), old][..]));
        assert_eq!(ring(&format!("{LINE}\n").repeat(5)), Err(KeyError::TooMany { line: 5, most: 4 }));
    }

    #[test]
    fn a_bad_key_file_is_refused_with_the_place() {
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
