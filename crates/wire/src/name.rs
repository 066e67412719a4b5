//! Short texts in messages.

use std::fmt;

/// A short text, at most [`Name::MAX`] bytes of UTF-8, stored inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    len: u8,
    bytes: [u8; Name::MAX], // zero behind `len`, so that equal names are equal
}

/// The name is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the name has {len} bytes; at most {max} fit: shorten it", max = Name::MAX)]
pub struct NameTooLong {
    /// Length of the name, in bytes.
    pub len: usize,
}

impl Name {
    /// Maximum length, in bytes.
    pub const MAX: usize = 63;
    /// The empty name.
    pub const EMPTY: Name = Name { len: 0, bytes: [0; Name::MAX] };

    /// Creates a name from a text.
    ///
    /// # Errors
    /// When it has more than [`Name::MAX`] bytes.
    pub fn new(text: &str) -> Result<Name, NameTooLong> {
        if text.len() > Name::MAX {
            return Err(NameTooLong { len: text.len() });
        }
        Ok(Name::clipped(text))
    }

    /// Creates a name from a text. Control characters, which a terminal obeys, are removed. The text is cut between two
    /// characters if necessary.
    pub fn clipped(text: &str) -> Name {
        let mut name = Name::EMPTY;
        for character in text.chars().filter(|character| !character.is_control()) {
            let from = usize::from(name.len);
            let Some(room) = name.bytes.get_mut(from..from + character.len_utf8()) else { break };
            character.encode_utf8(room);
            name.len += character.len_utf8() as u8;
        }
        name
    }

    /// Whether the name is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)])
            .expect("made from a str, cut at its characters")
    }
}

/// A text of at most [`Words::MAX`] bytes of UTF-8 without control characters. An empty text allocates no memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Words(Box<str>);

impl Words {
    /// Maximum length, in bytes.
    pub const MAX: usize = 250;

    /// Replacement for the rest of a text that does not fit.
    const REST: &str = "…";

    /// Creates a text without control characters, which a terminal obeys. A text that is too long is cut between two words and
    /// ends with an ellipsis.
    pub fn clipped(text: &str) -> Words {
        let mut words: String = text.chars().filter(|character| !character.is_control()).collect();
        if words.len() > Words::MAX {
            let room = Words::MAX - Words::REST.len();
            let end = (0..=room).rev().find(|&at| words.is_char_boundary(at)).unwrap_or(0);
            words.truncate(end);
            if let Some(end) = words.rfind(' ') {
                words.truncate(end);
            }
            words.push_str(Words::REST);
        }
        Words(words.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Name {
    fn default() -> Name {
        Name::EMPTY
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_name_is_cut_between_characters() {
        let text = "é".repeat(40);
        assert_eq!(Name::clipped(&text).as_str(), "é".repeat(31));
        assert_eq!(Name::new(&text), Err(NameTooLong { len: 80 }));
    }

    #[test]
    fn name_has_no_control_characters() {
        assert_eq!(Name::clipped("a\u{1b}[2J\r\nb\u{9b}").as_str(), "a[2Jb");
    }

    #[test]
    fn long_text_is_cut_between_words_and_sanitized() {
        assert_eq!(Words::clipped(&"é".repeat(125)).as_str(), "é".repeat(125));
        assert_eq!(Words::clipped(&"é".repeat(200)).as_str(), "é".repeat(123) + "…");
        let cut = Words::clipped(&"what you want ".repeat(20));
        assert!(cut.as_str().ends_with(" what you…") && cut.as_str().len() <= Words::MAX, "{}", cut.as_str());
        assert_eq!(Words::clipped(cut.as_str()), cut);
        assert_eq!(Words::clipped("a\u{1b}[2J\r\nb\u{9b}").as_str(), "a[2Jb");
        assert_eq!(Words::clipped(""), Words::default());
    }
}
