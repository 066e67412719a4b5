//! Treatment of names with terminal control characters at a receiver.
//!
//! A file name may contain any byte except `/` and NUL. It can therefore contain escape sequences, line ends and bidirectional
//! control characters. Listings show names on a terminal, and scripts read names line by line. With such a name, a source could
//! control the terminal of anyone who lists the received files. By default, a receiver therefore writes the bytes of control
//! characters as `\x1b` and so on; `printf '%b'` converts them back.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::str::FromStr;

/// Maximum length of a path, and of a link target, in bytes (the limit of Linux).
pub const MAX_PATH_LEN: usize = 4095;
/// Maximum length of a component of a path, in bytes (the limit of Linux).
pub const MAX_NAME_LEN: usize = 255;

/// Treatment of a name with terminal control characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// Control characters are written in escaped form, such as `\x1b`.
    #[default]
    Escape,
    /// Names are unchanged.
    Keep,
    /// Content with such a name is refused.
    Refuse,
}

/// Reason why a name cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The receiver refuses names with control characters.
    #[error("\"{0}\" has control characters; receive it with names escaped or kept")]
    Refused(String),
    /// The escaped form of a name or path is longer than allowed.
    #[error(
        "\"{0}\" has control characters, and is too long after they are escaped; receive it with names kept"
    )]
    TooLong(String),
    /// Another entry already has the escaped name.
    #[error(
        "\"{0}\" is a name with escaped control characters, and another entry already has this name; receive it with names kept"
    )]
    Clash(String),
}

/// A word other than `escape`, `keep` and `refuse`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not escape, keep or refuse")]
pub struct UnknownNames(String);

impl FromStr for Names {
    type Err = UnknownNames;

    fn from_str(text: &str) -> Result<Names, UnknownNames> {
        match text {
            "escape" => Ok(Names::Escape),
            "keep" => Ok(Names::Keep),
            "refuse" => Ok(Names::Refuse),
            _ => Err(UnknownNames(text.to_owned())),
        }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Names::Escape => "escape",
            Names::Keep => "keep",
            Names::Refuse => "refuse",
        })
    }
}

/// Returns whether a terminal or log viewer interprets this character instead of displaying it. Such characters are control
/// characters, Unicode's line and paragraph separators, and Unicode's bidirectional controls.
pub fn is_command(c: char) -> bool {
    let breaks_line = matches!(c, '\u{2028}' | '\u{2029}');
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}');
    c.is_control() || breaks_line || turns
}

/// Returns a name or path in which each byte of a control character is written in escaped form, such as `\x1b`. Bytes that are
/// not UTF-8 stay unchanged.
pub(super) fn escaped(name: &OsStr) -> Cow<'_, OsStr> {
    let bytes = name.as_bytes();
    if !bytes.utf8_chunks().any(|chunk| chunk.valid().contains(is_command)) {
        return Cow::Borrowed(name);
    }
    let mut shown = Vec::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut room = [0; 4];
            let c_bytes = c.encode_utf8(&mut room).as_bytes();
            match is_command(c) {
                true => c_bytes.iter().for_each(|byte| shown.extend(format!("\\x{byte:02x}").bytes())),
                false => shown.extend(c_bytes),
            }
        }
        shown.extend(chunk.invalid());
    }
    Cow::Owned(OsString::from_vec(shown))
}

/// Returns a name or path for display on one line.
pub(super) fn shown(name: &OsStr) -> Cow<'_, str> {
    match escaped(name) {
        Cow::Borrowed(name) => name.to_string_lossy(),
        Cow::Owned(shown) => Cow::Owned(shown.to_string_lossy().into_owned()),
    }
}

/// Returns the path that an entry gets at the receiver; `None` if the path stays unchanged.
pub(super) fn path_by(names: Names, path: &OsStr) -> Result<Option<OsString>, NameError> {
    let (Names::Escape | Names::Refuse) = names else { return Ok(None) };
    let Cow::Owned(shown) = escaped(path) else { return Ok(None) };
    let reported = || shown.to_string_lossy().into_owned();
    if names == Names::Refuse {
        return Err(NameError::Refused(reported()));
    }
    let too_long = |name: &[u8]| name.len() > MAX_NAME_LEN;
    if shown.len() > MAX_PATH_LEN || shown.as_bytes().split(|byte| *byte == b'/').any(too_long) {
        return Err(NameError::TooLong(reported()));
    }
    Ok(Some(shown))
}

/// Returns a message with the number of names that were escaped.
pub(crate) fn reported(changed: u64) -> String {
    let names = if changed == 1 { "name has" } else { "names have" };
    format!("{changed} {names} control characters, which were escaped, for example as \\x1b")
}

/// Returns the name that a single file gets at the receiver.
///
/// # Errors
/// When the name is refused, or becomes too long.
pub fn name_by(names: Names, path: String) -> Result<String, NameError> {
    let shown = path_by(names, OsStr::new(&path))?;
    Ok(shown.map_or(path, |shown| shown.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_control_characters_of_names_are_escaped() {
        let names = [
            ("plain Größe 大小", "plain Größe 大小"),
            ("a\u{1b}[2Jb", "a\\x1b[2Jb"),
            ("two\nlines\t", "two\\x0alines\\x09"),
            ("gpj.\u{202e}exe", "gpj.\\xe2\\x80\\xaeexe"),
            ("c1\u{9b}x", "c1\\xc2\\x9bx"),
        ];
        for (name, shown) in names {
            assert_eq!(escaped(OsStr::new(name)), OsStr::new(shown));
        }
        let broken = OsStr::from_bytes(b"\xff\x1b\xfe");
        assert_eq!(escaped(broken).as_bytes(), b"\xff\\x1b\xfe");
    }
}
