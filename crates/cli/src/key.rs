//! Key files: made by `keygen`, read by sessions.

use crate::args::Keygen;
use crate::failure::{Failure, Usage, unwritten};
use faircast_wire::{GroupKey, KeyRing};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// More than any key file with comments holds, in bytes.
const LONGEST: u64 = 64 * 1024;

/// Who can read a key file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// Its owner.
    Owner,
    /// Others on this host.
    Others,
}

/// Read a key file, and see who else can.
///
/// # Errors
/// [`Usage`] when there is no such file or no key in it.
pub fn read(path: &Path) -> Result<(KeyRing, Exposure), Usage> {
    let unreadable = |source| Usage::KeyUnreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.mode();
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => Usage::KeyNotText(path.to_owned()),
        _ => unreadable(error),
    })?;
    if text.len() as u64 > LONGEST {
        return Err(Usage::KeyNotText(path.to_owned()));
    }
    let key = text.parse().map_err(|reason| Usage::KeyMalformed { path: path.to_owned(), reason })?;
    Ok((key, if mode & 0o077 == 0 { Exposure::Owner } else { Exposure::Others }))
}

/// Where a new key goes.
#[derive(Debug, PartialEq, Eq)]
pub enum Resolved {
    /// To standard output.
    Stdout,
    /// Into a file that must not exist.
    New(PathBuf),
    /// Into a file, whatever was there.
    Replace(PathBuf),
}

impl Keygen {
    /// Where the key will go.
    pub fn resolve(self) -> Resolved {
        match (self.file, self.force) {
            (file, _) if file == Path::new("-") => Resolved::Stdout,
            (file, true) => Resolved::Replace(file),
            (file, false) => Resolved::New(file),
        }
    }
}

/// Make a key and say what to do with it.
///
/// # Errors
/// [`Usage::KeyExists`], or that the file cannot be written.
pub fn run(resolved: Resolved, out: &mut impl Write, people: &mut impl Write) -> Result<(), Failure> {
    let key = GroupKey::generate()?;
    let line = key.to_line();
    let path = match resolved {
        Resolved::Stdout => return writeln!(out, "{}", line.as_str()).map_err(unwritten),
        Resolved::New(path) => {
            write_new(&path, &line).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Usage::KeyExists(path.clone()).into(),
                _ => Failure::system(format!("write the key file {}", path.display()))(error),
            })?;
            path
        }
        Resolved::Replace(path) => {
            replace(&path, &line)
                .map_err(Failure::system(format!("write the key file {}", path.display())))?;
            path
        }
    };
    let file = path.display();
    writeln!(
        people,
        "{file} holds a new key (id {}); copy it to every host over a channel you trust, then add \
         --key {file} to `faircast send` and `faircast recv`",
        key.id()
    )
    .map_err(unwritten)
}

fn write_new(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

/// Write beside the old file and rename, so that the mode is right and no half key is ever there.
fn replace(path: &Path, line: &str) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?; // made with mode 0600
    writeln!(file, "{line}")?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn made(resolved: Resolved) -> Result<(), Failure> {
        run(resolved, &mut Vec::new(), &mut Vec::new())
    }

    #[test]
    fn a_key_that_was_made_can_be_read_and_is_the_owners_alone() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lab.key");
        made(Resolved::New(path.clone())).expect("nothing is there yet");
        assert_eq!(fs::metadata(&path).expect("it was made").mode() & 0o777, 0o600);
        let (_, exposure) = read(&path).expect("it was just written");
        assert_eq!(exposure, Exposure::Owner);
    }

    #[test]
    fn a_key_is_only_replaced_by_force() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lab.key");
        made(Resolved::New(path.clone())).expect("nothing is there yet");
        let old = fs::read(&path).expect("it was made");
        let refused = made(Resolved::New(path.clone()));
        assert!(matches!(refused, Err(Failure::Usage(Usage::KeyExists(_)))));
        assert_eq!(fs::read(&path).expect("still there"), old);
        made(Resolved::Replace(path.clone())).expect("by force");
        assert_ne!(fs::read(&path).expect("still there"), old);
    }

    #[test]
    fn a_key_file_that_others_can_read_is_noticed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lab.key");
        made(Resolved::New(path.clone())).expect("nothing is there yet");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("it is ours");
        assert_eq!(read(&path).expect("a key").1, Exposure::Others);
    }

    #[test]
    fn what_is_no_key_file_is_refused_by_name() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x");
        assert!(matches!(read(&path), Err(Usage::KeyUnreadable { .. })));
        assert!(matches!(read(directory.path()), Err(Usage::KeyUnreadable { .. })));
        fs::write(&path, "hello\n").expect("the directory is ours");
        assert!(matches!(read(&path), Err(Usage::KeyMalformed { .. })));
        fs::write(&path, [0xff, 0xfe]).expect("the directory is ours");
        assert!(matches!(read(&path), Err(Usage::KeyNotText(_))));
    }

    #[test]
    fn a_key_for_standard_output_is_one_line() {
        let mut out = Vec::new();
        run(Resolved::Stdout, &mut out, &mut Vec::new()).expect("a vector takes everything");
        let text = String::from_utf8(out).expect("text");
        assert!(text.ends_with('\n') && text.lines().count() == 1);
        text.parse::<GroupKey>().expect("a key");
    }
}
