//! The names that the entries of a manifest get at a receiver.

use super::{Entry, Kind, Leaves, Manifest};
use crate::names::{NameError, Names, escaped, path_by};
use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

impl Manifest {
    /// Returns the manifest with the names that this receiver uses, and the number of changed names. The order of the entries
    /// stays the same. The targets of links change in the same way.
    ///
    /// # Errors
    /// When a name is refused, becomes too long, or becomes equal to the name of another entry.
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

    /// Checks that no two entries have the same path, and that each entry with entries below it is a directory.
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
    fn name_policies_escape_preserve_or_refuse_control_characters() {
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
    fn escaped_name_that_is_too_long_or_already_used_is_refused() {
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
