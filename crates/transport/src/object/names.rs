//! Names that a terminal obeys: what a receiver does about files that a source calls so.
//!
//! A name of a file may have any byte but `/` and NUL. Whoever lists a directory shows names to a terminal, and scripts read them line by
//! line: a name with an escape sequence, a line end or a character that turns the direction of writing is a way for a source to give
//! orders to whoever looks at what was received. Unless the receiver wants such names as they are, their bytes are written as `\x1b`,
//! which `printf '%b'` reads back.

use super::manifest::{Entry, Kind, Leaves, MAX_NAME_LEN, MAX_PATH_LEN, Manifest};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::str::FromStr;

/// What becomes of a name with characters that a terminal obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// Their bytes are written as `\x1b`, and so on.
    #[default]
    Escape,
    /// The files get their names as they are.
    Keep,
    /// Content with such a name is not received.
    Refuse,
}

/// Why a name cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A receiver that refuses such names.
    #[error("\"{0}\" has characters that a terminal obeys; receive it with names escaped or kept")]
    Refused(String),
    /// Its escaped form is longer than a name or path may be.
    #[error(
        "\"{0}\" has characters that a terminal obeys, and is too long with these escaped; receive it with names kept"
    )]
    TooLong(String),
    /// Another entry has the name that it would get.
    #[error(
        "\"{0}\" has characters that a terminal obeys, and there is an entry that is called so already; receive it with names kept"
    )]
    Clash(String),
}

/// A word that is none of `escape`, `keep` and `refuse`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of escape, keep and refuse")]
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

/// Whether a terminal does something else with this character than show it: control characters, and those that turn the direction of
/// what follows (Unicode's bidirectional controls).
pub fn is_command(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}');
    c.is_control() || turns
}

/// A name or path whose commands are written as `\x1b`, byte by byte. What is no UTF-8 stays as it is, but for ASCII's control
/// characters in it.
fn escaped(name: &OsStr) -> Cow<'_, OsStr> {
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

/// A name or path for people, in one line.
pub(super) fn shown(name: &OsStr) -> Cow<'_, str> {
    match escaped(name) {
        Cow::Borrowed(name) => name.to_string_lossy(),
        Cow::Owned(shown) => Cow::Owned(shown.to_string_lossy().into_owned()),
    }
}

/// The path that an entry gets, and whether that is another one.
fn path_by(names: Names, path: &OsStr) -> Result<Option<OsString>, NameError> {
    let (Names::Escape | Names::Refuse) = names else { return Ok(None) };
    let Cow::Owned(shown) = escaped(path) else { return Ok(None) };
    let told = || shown.to_string_lossy().into_owned();
    if names == Names::Refuse {
        return Err(NameError::Refused(told()));
    }
    let too_long = |name: &[u8]| name.len() > MAX_NAME_LEN;
    if shown.len() > MAX_PATH_LEN || shown.as_bytes().split(|byte| *byte == b'/').any(too_long) {
        return Err(NameError::TooLong(told()));
    }
    Ok(Some(shown))
}

/// In words, that so many names are others than at the source.
pub(crate) fn told(changed: u64) -> String {
    let names = if changed == 1 { "name has" } else { "names have" };
    format!("{changed} {names} characters that a terminal obeys, which were written as \\x1b and the like")
}

/// The name that a single file gets. See [`Names`].
///
/// # Errors
/// When it is refused, or becomes too long.
pub(crate) fn name_by(names: Names, path: String) -> Result<String, NameError> {
    let shown = path_by(names, OsStr::new(&path))?;
    Ok(shown.map_or(path, |shown| shown.to_string_lossy().into_owned()))
}

impl Manifest {
    /// The same entries in the same order, under the names that they get here, and how many have another one than at the source. Links
    /// lead to the new names.
    ///
    /// # Errors
    /// When names are refused, become too long, or are another entry's.
    pub(crate) fn named_by(mut self, names: Names) -> Result<(Manifest, u64), NameError> {
        let mut changed = 0;
        for entry in self.entries_mut() {
            if let Some(shown) = path_by(names, &entry.path)? {
                (entry.path, changed) = (shown, changed + 1);
            }
            if let (Names::Escape, Kind::Symlink { target }) = (names, &mut entry.kind)
                && let Cow::Owned(shown) = escaped(target)
            {
                *target = shown;
            }
        }
        match changed {
            0 => Ok((self, 0)),
            _ => self.check_for_clashes().map(|()| (self, changed)),
        }
    }

    /// That no entry has the path of another, or lies below one that is no directory.
    fn check_for_clashes(&self) -> Result<(), NameError> {
        let mut sorted: Vec<&Entry> = self.entries().iter().collect();
        sorted.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut leaves = Leaves::default();
        let mut before: Option<&Entry> = None;
        for entry in sorted {
            let path = entry.path.as_bytes();
            let is_twice = before.is_some_and(|before| before.path == entry.path);
            if is_twice || leaves.above(path).is_some() {
                return Err(NameError::Clash(entry.name().into_owned()));
            }
            if entry.kind != Kind::Dir {
                leaves.push(path);
            }
            before = Some(entry);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(entries: &[(&str, Kind)]) -> Manifest {
        let entries = entries.iter().map(|(path, kind)| Entry::new(path, kind.clone(), 0o644, 0));
        Manifest::new(entries.collect()).expect("in order")
    }

    fn paths(manifest: &Manifest) -> Vec<&str> {
        manifest.entries().iter().map(|entry| entry.path.to_str().expect("text")).collect()
    }

    const FILE: Kind = Kind::File { size: 1 };

    #[test]
    fn what_a_terminal_would_obey_in_names_is_written_as_text_and_the_rest_as_it_is() {
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

    #[test]
    fn names_are_escaped_kept_or_refused_as_the_receiver_wants() {
        let link = Kind::Symlink { target: "bad\u{7}/file".into() };
        let sent = manifest(&[("bad\u{7}", Kind::Dir), ("bad\u{7}/file", FILE), ("link", link)]);
        let (named, changed) = sent.clone().named_by(Names::Escape).expect("fits");
        assert_eq!((paths(&named), changed), (vec!["bad\\x07", "bad\\x07/file", "link"], 2));
        assert_eq!(named.entries()[2].kind, Kind::Symlink { target: "bad\\x07/file".into() });
        assert_eq!(sent.clone().named_by(Names::Keep), Ok((sent.clone(), 0)));
        assert_eq!(sent.named_by(Names::Refuse), Err(NameError::Refused("bad\\x07".to_owned())));
        let plain = manifest(&[("plain", FILE)]);
        assert_eq!(plain.clone().named_by(Names::Refuse), Ok((plain, 0)));
    }

    #[test]
    fn an_escaped_name_takes_nobody_elses_place_and_is_not_cut() {
        let taken = manifest(&[("a\u{7}", FILE), ("a\\x07", FILE)]);
        let clash = |path: &str| Err(NameError::Clash(path.to_owned()));
        assert_eq!(taken.named_by(Names::Escape), clash("a\\x07"));
        let below_a_file = manifest(&[("a\u{7}/b", FILE), ("a\\x07", FILE)]);
        assert_eq!(below_a_file.named_by(Names::Escape), clash("a\\x07/b"));
        let above_a_file = manifest(&[("a\u{7}", FILE), ("a\\x07/b\u{8}", FILE)]);
        assert_eq!(above_a_file.named_by(Names::Escape), clash("a\\x07/b\\x08"));
        let long = "\u{7}".repeat(64);
        let long = manifest(&[(&long, FILE)]);
        assert!(matches!(long.named_by(Names::Escape), Err(NameError::TooLong(_))));
    }
}
