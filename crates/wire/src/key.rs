//! The group's key: what every member of a sealed session holds.

use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::str::FromStr;
use zeroize::{Zeroize, Zeroizing};

/// First word of a key's line.
const TAG: &str = "faircast-key-1";

/// The group's key, 32 bytes. It is wiped when dropped, and never printed but by
/// [`GroupKey::to_line`].
#[derive(Clone)]
pub struct GroupKey([u8; 32]);

/// Why a text is not a key file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no key in it.
    #[error(
        "no key found: the file needs a line \"faircast-key-1 <64 hexadecimal digits>\"; make one with `faircast keygen`"
    )]
    NoKey,
    /// A line that is neither a key, nor empty, nor a comment.
    #[error("line {line} does not start with \"faircast-key-1\" or \"#\": not a key file of this version")]
    UnknownLine {
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
    /// More than one key.
    #[error("line {line} has a second key: keep one")]
    TwoKeys {
        /// Which line, from 1 on.
        line: usize,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes: try again")]
    NoEntropy,
}

impl GroupKey {
    /// A new key from the operating system's random source.
    ///
    /// # Errors
    /// When the operating system has no random bytes to give.
    pub fn generate() -> Result<GroupKey, KeyError> {
        let mut key = GroupKey([0; 32]);
        SystemRandom::new().fill(&mut key.0).map_err(|_| KeyError::NoEntropy)?;
        Ok(key)
    }

    /// From its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> GroupKey {
        GroupKey(bytes)
    }

    /// The key file's line, without a line break. Whoever holds it is a member.
    pub fn to_line(&self) -> Zeroizing<String> {
        let mut line = Zeroizing::new(String::with_capacity(TAG.len() + 65));
        line.push_str(TAG);
        line.push(' ');
        for byte in self.0 {
            line.extend(
                [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).expect("below 16")),
            );
        }
        line
    }

    /// Four bytes that tell keys apart and say nothing else about them.
    pub fn fingerprint(&self) -> u32 {
        let hash = blake3::derive_key("faircast wire 1: fingerprint of a group key", &self.0);
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
    }

    pub(crate) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Drop for GroupKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// From a key file: one line with a key; empty lines and lines that start with `#` are skipped.
impl FromStr for GroupKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<GroupKey, KeyError> {
        let mut key = None;
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let mut words = content.split_whitespace();
            if words.next() != Some(TAG) {
                return Err(KeyError::UnknownLine { line });
            }
            let digits = words.next().unwrap_or("");
            if let Some(position) = digits.chars().position(|digit| !digit.is_ascii_hexdigit()) {
                return Err(KeyError::NotHex { line, position: position + 1 });
            }
            let wrong_length = KeyError::WrongLength { line, digits: digits.len() };
            let bytes = hex(digits).ok_or(wrong_length)?;
            if words.next().is_some_and(|word| !word.starts_with('#')) {
                return Err(KeyError::UnknownLine { line });
            }
            if key.replace(GroupKey(bytes)).is_some() {
                return Err(KeyError::TwoKeys { line });
            }
        }
        key.ok_or(KeyError::NoKey)
    }
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupKey({:08x}..)", self.fingerprint())
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

    const LINE: &str = "faircast-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn read(text: &str) -> Result<String, KeyError> {
        text.parse::<GroupKey>().map(|key| key.to_line().to_string())
    }

    #[test]
    fn a_key_reads_back_from_its_line() {
        assert_eq!(read(LINE).as_deref(), Ok(LINE));
        assert_eq!(read(&format!("# the lab's\r\n\r\n{LINE}  # ours\r\n")).as_deref(), Ok(LINE));
        let fresh = GroupKey::generate().expect("the system has random bytes");
        assert_eq!(read(&fresh.to_line()).as_deref(), Ok(fresh.to_line().as_str()));
    }

    #[test]
    fn two_new_keys_differ() {
        let [a, b] = [(); 2].map(|()| GroupKey::generate().expect("the system has random bytes"));
        assert_ne!(a.bytes(), b.bytes());
    }

    #[test]
    fn a_bad_key_file_is_refused_with_the_place() {
        assert_eq!(read(""), Err(KeyError::NoKey));
        assert_eq!(read("\nfaircast-key-2 00"), Err(KeyError::UnknownLine { line: 2 }));
        assert_eq!(read("faircast-key-1"), Err(KeyError::WrongLength { line: 1, digits: 0 }));
        assert_eq!(read(&LINE[..LINE.len() - 1]), Err(KeyError::WrongLength { line: 1, digits: 63 }));
        assert_eq!(read("faircast-key-1 00é1"), Err(KeyError::NotHex { line: 1, position: 3 }));
        assert_eq!(read(&format!("{LINE} 00")), Err(KeyError::UnknownLine { line: 1 }));
        assert_eq!(read(&format!("{LINE}\n{LINE}")), Err(KeyError::TwoKeys { line: 2 }));
    }

    #[test]
    fn printing_a_key_for_debugging_does_not_give_it_away() {
        let key: GroupKey = LINE.parse().expect("a key");
        let shown = format!("{key:?}");
        assert!(shown.starts_with("GroupKey(") && shown.len() < 24, "{shown}");
    }
}
