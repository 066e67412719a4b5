//! Key files: `keygen` writes them, and sessions read them.

pub mod signing;

use crate::args::{KeyShow, Keygen};
use crate::failure::{Failure, Usage, unwritten};
use faircast_wire::{GroupKey, HopKey, KeyError, KeyId, KeyRing, SigningKey, VerifyKeys};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Maximum length of a key file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The users that can read a key file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// Only its owner.
    Owner,
    /// Other users of this host, too.
    Others,
}

/// Reads a group key file, and checks whether other users can read it.
///
/// # Errors
/// [`Usage`] when the file does not exist or contains no key.
pub fn read(path: &Path) -> Result<(KeyRing, Exposure), Usage> {
    let (text, exposure) = read_text(path)?;
    Ok((text.parse().map_err(malformed(path))?, exposure))
}

fn malformed(path: &Path) -> impl Fn(KeyError) -> Usage {
    |reason| Usage::KeyMalformed { path: path.to_owned(), reason }
}

pub(crate) fn read_text(path: &Path) -> Result<(Zeroizing<String>, Exposure), Usage> {
    let unreadable = |source| Usage::KeyUnreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.mode();
    let mut text = Zeroizing::new(String::with_capacity(MAX_BYTES as usize + 1));
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => Usage::KeyNotText(path.to_owned()),
        _ => unreadable(error),
    })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Usage::KeyNotText(path.to_owned()));
    }
    Ok((text, if mode & 0o077 == 0 { Exposure::Owner } else { Exposure::Others }))
}

/// Destination of a new key.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// Standard output.
    Stdout,
    /// A file that must not exist.
    New(PathBuf),
    /// A file that is replaced if it exists.
    Replace(PathBuf),
}

/// Description of a key to create.
#[derive(Debug)]
pub struct Resolved {
    place: Place,
    kind: KeyKind,
}

/// Purpose of a key.
#[derive(Debug)]
enum KeyKind {
    Group,
    /// A key for relays, derived from this group key.
    Relay(Box<GroupKey>),
    /// A pair of keys: the private key signs content, the public key verifies it.
    Pair,
}

impl Resolved {
    /// Returns the description of a new group key.
    pub const fn group(place: Place) -> Resolved {
        Resolved { place, kind: KeyKind::Group }
    }
}

impl Keygen {
    /// Resolves the kind and the destination of the key.
    ///
    /// # Errors
    /// [`Usage`] when the group key of a relay key cannot be read. [`Usage`] when a key pair would be written to standard output,
    /// because a pair needs two files.
    pub fn resolve(self) -> Result<Resolved, Usage> {
        let (kind, name) = match &self.relay {
            None if self.sign => (KeyKind::Pair, "faircast.sign"),
            None => (KeyKind::Group, "faircast.key"),
            // Sources seal with the first key.
            Some(group) => (KeyKind::Relay(Box::new(read(group)?.0.first().clone())), "relay.key"),
        };
        let file = self.file.unwrap_or_else(|| name.into());
        let place = match self.force {
            _ if file == Path::new("-") => Place::Stdout,
            true => Place::Replace(file),
            false => Place::New(file),
        };
        if let (Place::Stdout, KeyKind::Pair) = (&place, &kind) {
            return Err(Usage::SignStdout);
        }
        Ok(Resolved { place, kind })
    }
}

/// Creates a key, and prints its use.
///
/// # Errors
/// [`Usage::KeyExists`], or an error when the file cannot be written.
pub fn run(resolved: Resolved, out: &mut impl Write, people: &mut impl Write) -> Result<(), Failure> {
    let (line, id) = match &resolved.kind {
        KeyKind::Group => {
            let key = GroupKey::generate()?;
            (key.to_line(), key.id())
        }
        KeyKind::Relay(group) => (group.hop().to_line(), group.id()),
        KeyKind::Pair => return signing::make(&resolved.place, people),
    };
    let Some(path) = write(&resolved.place, "", &line, OWNERS)? else {
        return writeln!(out, "{}", line.as_str()).map_err(unwritten);
    };
    let file = path.display();
    match resolved.kind {
        KeyKind::Group | KeyKind::Pair => writeln!(
            people,
            "{file} holds a new key (id {id}); copy it to every host over a channel you trust, then add \
             --key {file} to `faircast send` and `faircast recv`"
        ),
        KeyKind::Relay(_) => writeln!(
            people,
            "{file} holds a relay key (id {id}); copy it only to relays, which can relay the sessions of the group with this key, but cannot \
             decrypt the content"
        ),
    }
    .map_err(unwritten)
}

/// Output about a key.
#[derive(Debug, serde::Serialize)]
struct Shown {
    file: String,
    kind: &'static str,
    id: String,
    may: &'static [&'static str],
    may_not: &'static [&'static str],
    readable_by_others: bool,
}

/// Prints type, permissions and readers of the keys in a file.
///
/// # Errors
/// [`Usage`] when the file does not exist or contains no key.
pub fn show(show: &KeyShow, out: &mut impl Write) -> Result<(), Failure> {
    let (text, exposure) = read_text(&show.file)?;
    let describe = |kind, id: KeyId, may, may_not| Shown {
        file: show.file.display().to_string(),
        kind,
        id: id.to_string(),
        may,
        may_not,
        readable_by_others: exposure == Exposure::Others,
    };
    let shown: Vec<Shown> = if let Ok(key) = text.parse::<HopKey>() {
        vec![describe("relay", key.id(), RELAYS_MAY, RELAYS_MAY_NOT)]
    } else if let Ok(key) = text.parse::<SigningKey>() {
        vec![describe("signs", KeyId(key.verify_key().fingerprint()), SIGNERS_MAY, SIGNERS_MAY_NOT)]
    } else if let Ok(keys) = text.parse::<VerifyKeys>() {
        let ids = keys.iter().map(|key| KeyId(key.fingerprint()));
        ids.map(|id| describe("verifies, public", id, VERIFIERS_MAY, VERIFIERS_MAY_NOT)).collect()
    } else {
        let ring: KeyRing = text.parse().map_err(malformed(&show.file))?;
        let kinds =
            ["group, encrypts and decrypts"].into_iter().chain(std::iter::repeat("group, decrypts only"));
        let keys = ring.keys().iter().zip(kinds);
        keys.map(|(key, kind)| describe(kind, key.id(), MEMBERS_MAY, MEMBERS_MAY_NOT)).collect()
    };
    let is_secret = shown.iter().any(|key| key.may != VERIFIERS_MAY);
    for key in &shown {
        if show.json {
            crate::json::write(out, key).map_err(unwritten)?;
            continue;
        }
        let Shown { file, kind, id, may, may_not, .. } = key;
        writeln!(
            out,
            "{file}: key {id}, {kind}\n  may     {}\n  may not {}",
            may.join(", "),
            may_not.join(", ")
        )
        .map_err(unwritten)?;
    }
    if is_secret && exposure == Exposure::Others && !show.json {
        writeln!(out, "other users of this host can read it: chmod 600 {}", show.file.display())
            .map_err(unwritten)?;
    }
    Ok(())
}

const MEMBERS_MAY: &[&str] =
    &["read content", "send as the source", "answer as any receiver", "derive the relay key"];
const MEMBERS_MAY_NOT: &[&str] = &["change content that is signed"];
const RELAYS_MAY: &[&str] = &["relay sessions", "change marks and feedback", "end sessions early"];
const RELAYS_MAY_NOT: &[&str] = &["read content", "change content", "report that content is complete"];
const SIGNERS_MAY: &[&str] = &["sign content as its source"];
const SIGNERS_MAY_NOT: &[&str] = &["decrypt sealed content"];
const VERIFIERS_MAY: &[&str] = &["verify signatures of its source"];
const VERIFIERS_MAY_NOT: &[&str] = &["sign", "decrypt sealed content"];

/// Mode of files that only their owner can read.
pub(crate) const OWNERS: u32 = 0o600;

/// Writes a key's line into a file. `more` is appended to the file name. Returns the path of the file; `None` for standard
/// output.
///
/// # Errors
/// [`Usage::KeyExists`], or an error when the file cannot be written.
pub(crate) fn write(place: &Place, more: &str, line: &str, mode: u32) -> Result<Option<PathBuf>, Failure> {
    let (path, is_new) = match place {
        Place::Stdout => return Ok(None),
        Place::New(path) => (path, true),
        Place::Replace(path) => (path, false),
    };
    let mut path = path.clone().into_os_string();
    path.push(more);
    let path = PathBuf::from(path);
    let written = if is_new { write_new(&path, line, mode) } else { replace(&path, line, mode) };
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists if is_new => Usage::KeyExists(path.clone()).into(),
        _ => Failure::system(format!("write the key file {}", path.display()))(error),
    })?;
    Ok(Some(path))
}

fn write_new(path: &Path, line: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

/// Writes a temporary file in the same directory and renames it. The key file therefore has the right mode and never contains a
/// part of a key.
fn replace(path: &Path, line: &str, mode: u32) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?; // made with mode 0600
    writeln!(file, "{line}")?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn made(place: Place) -> Result<(), Failure> {
        run(Resolved::group(place), &mut Vec::new(), &mut Vec::new())
    }

    #[test]
    fn new_key_file_is_valid_and_readable_only_by_its_owner() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lab.key");
        made(Place::New(path.clone())).expect("nothing is there yet");
        assert_eq!(fs::metadata(&path).expect("it was made").mode() & 0o777, 0o600);
        let (_, exposure) = read(&path).expect("it was just written");
        assert_eq!(exposure, Exposure::Owner);
    }

    #[test]
    fn existing_key_file_is_replaced_only_with_force() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lab.key");
        made(Place::New(path.clone())).expect("nothing is there yet");
        let old = fs::read(&path).expect("it was made");
        let refused = made(Place::New(path.clone()));
        assert!(matches!(refused, Err(Failure::Usage(Usage::KeyExists(_)))));
        assert_eq!(fs::read(&path).expect("still there"), old);
        made(Place::Replace(path.clone())).expect("by force");
        assert_ne!(fs::read(&path).expect("still there"), old);
    }

    #[test]
    fn key_file_readable_by_other_users_is_detected() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lab.key");
        made(Place::New(path.clone())).expect("nothing is there yet");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("it is ours");
        assert_eq!(read(&path).expect("a key").1, Exposure::Others);
    }

    #[test]
    fn invalid_key_files_are_refused_with_distinct_errors() {
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
    fn key_on_standard_output_is_one_line() {
        let mut out = Vec::new();
        run(Resolved::group(Place::Stdout), &mut out, &mut Vec::new()).expect("a vector takes everything");
        let text = String::from_utf8(out).expect("text");
        assert!(text.ends_with('\n') && text.lines().count() == 1);
        text.parse::<GroupKey>().expect("a key");
    }

    #[test]
    fn files_of_hop_keys_and_group_keys_state_their_use() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let [group, relay] = ["lab.key", "relay.key"].map(|name| directory.path().join(name));
        made(Place::New(group.clone())).expect("nothing is there yet");
        let keygen = |file: &Path, from: &Path| Keygen {
            file: Some(file.to_owned()),
            relay: Some(from.to_owned()),
            sign: false,
            force: false,
        };
        let resolved = keygen(&relay, &group).resolve().expect("a group's key");
        run(resolved, &mut Vec::new(), &mut Vec::new()).expect("nothing is there yet");
        assert!(matches!(read(&relay), Err(Usage::KeyMalformed { .. })), "it is no group key");
        assert!(matches!(keygen(&group, &relay).resolve(), Err(Usage::KeyMalformed { .. })));
        let shown = |file: &Path| {
            let mut out = Vec::new();
            show(&KeyShow { file: file.to_owned(), json: false }, &mut out).expect("a key");
            String::from_utf8(out).expect("text")
        };
        let id = read(&group).expect("a key").0.first().id().to_string();
        assert!(shown(&group).contains(&id) && shown(&relay).contains(&id));
        assert!(
            shown(&group).contains("may     read content") && shown(&relay).contains("may not read content")
        );
        let secret = fs::read_to_string(&group).expect("ours");
        assert!(!shown(&group).contains(secret.split(' ').nth(1).expect("the key").trim()));
    }

    #[test]
    fn both_files_of_a_key_pair_state_their_use() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("lab.sign");
        signing::make(&Place::New(path.clone()), &mut Vec::new()).expect("nothing is there yet");
        let shown = |file: PathBuf| {
            let mut out = Vec::new();
            show(&KeyShow { file, json: false }, &mut out).expect("a key");
            String::from_utf8(out).expect("text")
        };
        let (private, public) = (shown(path.clone()), shown(directory.path().join("lab.sign.pub")));
        assert!(private.contains("signs") && private.contains("may     sign content"), "{private}");
        assert!(public.contains("verifies, public") && !public.contains("chmod"), "{public}");
        let id = private.split("key ").nth(1).and_then(|rest| rest.split(',').next()).expect("an id");
        assert!(public.contains(id));
    }
}
