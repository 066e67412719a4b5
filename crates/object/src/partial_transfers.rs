//! Incomplete content in an output directory: its size, its age, and its removal.
//!
//! ALC receivers store incomplete files in the same state directory: the symbols as `alc-FILE-0`, and the record of these symbols
//! as `alc-FILE-1`. A killed ALC receiver leaves `alc-SESSION-FILE` for a file whose entry in the table of files has no MD5.
//!
//! Incomplete content is stored so that a restarted receiver can continue the transfer. If the content is never sent again, it
//! would take its disk space indefinitely, including the space reserved for large files.

use super::error::ObjectError;
use super::geometry::TransferId;
use super::manifest::STATE_DIR;
use super::origin_records::Locked;
use super::output_directory::{FINISHING, HEAD, JOURNAL, LINK, LOCK, PARTS, PUBLISHED};
use super::policy::KeepPartial;
use crate::host::disk::file_time;
use crate::host::tree::DIR;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Content that is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// Identifier of the transfer, or of the ALC file or session.
    pub transfer: String,
    /// Bytes that it takes on the disk.
    pub bytes: u64,
    /// Time of the latest write to it.
    pub written: SystemTime,
    /// Whether a receiver is working on it.
    pub in_use: bool,
}

/// Maximum number of listed transfers.
const MAX_LISTED: usize = 100_000;

/// Returns the incomplete content of this output directory, the oldest first.
///
/// # Errors
/// When the directory cannot be read.
pub fn unfinished(out: &Path) -> Result<Vec<Unfinished>, ObjectError> {
    let path = out.join(STATE_DIR);
    let Some(states) = open_states(out)? else { return Ok(Vec::new()) };
    let failed = |e: Errno| ObjectError::io(&path, "list it", e);
    let (mut all, mut parts) = (Vec::new(), BTreeMap::new());
    for entry in Dir::read_from(&states).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if let Some(session) = parts_session(name) {
            add_part(
                &states,
                name,
                parts.entry(session.to_owned()).or_insert_with(|| Unfinished::empty(session)),
            );
        }
        if !is_transfer(name) {
            continue;
        }
        if let Some(state) = open_state(&states, name) {
            all.push(look(&state, name));
        }
        if all.len() + parts.len() >= MAX_LISTED {
            break;
        }
    }
    all.extend(parts.into_values());
    all.sort_by(|a, b| (a.written, &a.transfer).cmp(&(b.written, &b.transfer)));
    Ok(all)
}

/// Removes an incomplete transfer, unless a receiver is working on the transfer. Returns whether the transfer was removed.
///
/// # Errors
/// When its files cannot be removed.
pub fn let_go(out: &Path, transfer: &str) -> Result<bool, ObjectError> {
    let Some(states) = open_states(out)? else { return Ok(false) };
    if parts_session(transfer) == Some(transfer) {
        let failed = |e: Errno| ObjectError::io(out.join(STATE_DIR), "remove files from it", e);
        return remove_parts(&states, transfer).map_err(failed);
    }
    if !is_transfer(transfer) {
        return Ok(false);
    }
    let Some(state) = open_state(&states, transfer) else { return Ok(false) };
    // While this process holds the lock, no other receiver can begin work on this transfer.
    let Lock::Free(_lock) = lock(&state) else { return Ok(false) };
    let path: PathBuf = out.join(STATE_DIR).join(transfer);
    let failed = |e: Errno| ObjectError::io(&path, "remove it", e);
    if let Ok(parts) = rustix::fs::openat(&state, PARTS, DIR | OFlags::NOFOLLOW, Mode::empty()) {
        remove_files(&parts).map_err(failed)?;
        rustix::fs::unlinkat(&state, PARTS, AtFlags::REMOVEDIR).map_err(failed)?;
    }
    remove_files(&state).map_err(failed)?;
    match rustix::fs::unlinkat(&states, transfer, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(e) => Err(failed(e)),
    }
}

/// The result of removing transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LetGo {
    /// Number of removed transfers.
    pub transfers: u64,
    /// Bytes that their files took on the disk.
    pub bytes: u64,
}

/// Removes the incomplete transfers that exceed the limits, except transfer `goes_on`, which a receiver is about to continue. A
/// missing directory counts as empty.
///
/// # Errors
/// When the directory cannot be read, or its files cannot be removed.
pub fn let_go_beyond(
    out: &Path,
    keep: KeepPartial,
    goes_on: Option<TransferId>,
    now: SystemTime,
) -> Result<LetGo, ObjectError> {
    let mut gone = LetGo::default();
    if keep == KeepPartial::default() || !out.join(STATE_DIR).exists() {
        return Ok(gone);
    }
    let goes_on = goes_on.map(|transfer| transfer.to_string());
    let is_other = |one: &Unfinished| goes_on.as_ref() != Some(&one.transfer);
    let all: Vec<Unfinished> = unfinished(out)?.into_iter().filter(is_other).collect();
    let mut bytes = all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.bytes));
    for one in all {
        let age = now.duration_since(one.written).unwrap_or_default();
        let is_old = keep.age.is_some_and(|most| age > most);
        let is_much = keep.bytes.is_some_and(|most| bytes > most);
        if (is_old || is_much) && !one.in_use && let_go(out, &one.transfer)? {
            bytes -= one.bytes;
            gone = LetGo { transfers: gone.transfers + 1, bytes: gone.bytes.saturating_add(one.bytes) };
        }
    }
    Ok(gone)
}

/// A lock, if it is free.
enum Lock {
    Free(Option<Locked<OwnedFd>>),
    Taken,
}

fn lock(state: impl AsFd) -> Lock {
    lock_file(state, LOCK)
}

fn lock_file(state: impl AsFd, name: &str) -> Lock {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(state, name, flags, Mode::empty()) {
        Ok(file) => Locked::at_once(file).map_or(Lock::Taken, |file| Lock::Free(Some(file))),
        // The transfer was interrupted before its lock file was created.
        Err(Errno::NOENT) => Lock::Free(None),
        Err(_) => Lock::Taken,
    }
}

fn look(state: &OwnedFd, name: &str) -> Unfinished {
    let mut found = Unfinished { in_use: matches!(lock(state), Lock::Taken), ..Unfinished::empty(name) };
    add(state, &mut found);
    if let Ok(parts) = rustix::fs::openat(state, PARTS, DIR | OFlags::NOFOLLOW, Mode::empty()) {
        add(&parts, &mut found);
    }
    found
}

impl Unfinished {
    fn empty(transfer: &str) -> Unfinished {
        Unfinished { transfer: transfer.to_owned(), bytes: 0, written: UNIX_EPOCH, in_use: false }
    }

    fn count(&mut self, stat: &Stat) {
        self.bytes = self.bytes.saturating_add((stat.st_blocks as u64).saturating_mul(512));
        self.written = self.written.max(modified(stat));
    }
}

/// Prefix of the names of ALC part files.
pub const PARTS_PREFIX: &str = "alc-";

/// Returns the prefix of a part file's name that identifies the ALC session: `alc-` and 16 hexadecimal digits. Also accepts a
/// name that consists only of this prefix.
fn parts_session(name: &str) -> Option<&str> {
    let (session, rest) = name.split_at_checked(PARTS_PREFIX.len() + 16)?;
    let number = session.strip_prefix(PARTS_PREFIX)?;
    let is_part = rest.is_empty()
        || rest.strip_prefix('-').is_some_and(|toi| toi.bytes().all(|byte| byte.is_ascii_digit()));
    (number.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) && is_part).then_some(session)
}

/// Counts a part file of an ALC session.
fn add_part(states: &OwnedFd, name: &str, found: &mut Unfinished) {
    let Ok(stat) = rustix::fs::statat(states, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
    if FileType::from_raw_mode(stat.st_mode).is_file() {
        found.count(&stat);
        found.in_use |= matches!(lock_file(states, name), Lock::Taken);
    }
}

/// Removes the part files of an ALC session, unless a receiver is working on one of the files. Returns whether files were
/// removed.
fn remove_parts(states: &OwnedFd, session: &str) -> Result<bool, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(states)? {
        let entry = entry?;
        let name = entry.file_name().to_str().ok().filter(|name| parts_session(name) == Some(session));
        names.extend(name.map(str::to_owned));
    }
    let locks: Vec<Lock> = names.iter().map(|name| lock_file(states, name)).collect();
    if names.is_empty() || locks.iter().any(|lock| matches!(lock, Lock::Taken)) {
        return Ok(false);
    }
    for name in &names {
        match rustix::fs::unlinkat(states, name.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// Counts the files of a directory.
fn add(directory: &OwnedFd, found: &mut Unfinished) {
    for entry in Dir::read_from(directory).into_iter().flatten().flatten() {
        let Ok(stat) = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        // The lock file does not count: it is not received content, and testing the lock may create or change the file.
        if FileType::from_raw_mode(stat.st_mode).is_file() && entry.file_name().to_bytes() != LOCK.as_bytes()
        {
            found.count(&stat);
        }
    }
}

fn modified(stat: &Stat) -> SystemTime {
    u64::try_from(stat.st_mtime).map_or(UNIX_EPOCH, |secs| UNIX_EPOCH + Duration::from_secs(secs))
}

/// Removes all files in this directory that a receiver could have created.
fn remove_files(directory: &OwnedFd) -> Result<(), Errno> {
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let is_ours = [HEAD, JOURNAL, FINISHING, PUBLISHED, LOCK, LINK].map(str::as_bytes).contains(&name)
            || name.iter().all(u8::is_ascii_digit);
        if is_ours && !name.is_empty() {
            match rustix::fs::unlinkat(directory, entry.file_name(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(())
}

fn open_states(out: &Path) -> Result<Option<OwnedFd>, ObjectError> {
    let failed = |e: Errno| ObjectError::io(out, "open this directory", e);
    let out_fd = rustix::fs::open(out, DIR, Mode::empty()).map_err(failed)?;
    match rustix::fs::openat(&out_fd, STATE_DIR, DIR | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(states) => Ok(Some(states)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(ObjectError::io(out.join(STATE_DIR), "open this directory", e)),
    }
}

fn open_state(states: &OwnedFd, name: &str) -> Option<OwnedFd> {
    rustix::fs::openat(states, name, DIR | OFlags::NOFOLLOW, Mode::empty()).ok()
}

/// Returns whether this name is the identifier of a transfer: 16 bytes as hexadecimal digits.
fn is_transfer(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Removes the incomplete content that exceeds the limits from the output directory. Returns a message about the removed content,
/// or about the error.
pub fn tidied(out: &Path, keep: KeepPartial, goes_on: Option<TransferId>) -> Option<String> {
    match let_go_beyond(out, keep, goes_on, file_time()) {
        Ok(LetGo { transfers: 0, .. }) => None,
        Ok(LetGo { transfers, bytes }) => Some(format!(
            "{}: deleted {transfers} partial transfers of earlier sessions ({bytes} bytes), because they exceeded the limit",
            out.display()
        )),
        Err(error) => Some(format!("partial transfers of earlier sessions were not deleted: {error}")),
    }
}

#[allow(clippy::disallowed_methods, reason = "tests compare with the times of real files")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Geometry, Store, TransferId};
    use std::fs;

    fn begun(out: &Path, number: u8) -> Store {
        let geometry =
            Geometry { stream_len: Some(4000), manifest_len: 100, symbol_size: 64, symbols_per_block: 8 };
        let mut store = Store::open(out, TransferId([number; 16]), geometry, None).expect("opened");
        // Block 0 contains the manifest, so block 1 contains file content.
        let data = vec![number; geometry.block_len(1) as usize];
        store.put(1, &data, crate::block::hash_of(&data)).expect("put");
        store
    }

    #[test]
    fn partial_transfers_are_listed_and_removed_unless_locked() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let out = directory.path();
        assert_eq!(unfinished(out).expect("an empty directory"), []);
        drop(begun(out, 1));
        let at_work = begun(out, 2);
        fs::write(out.join("precious"), b"not ours").expect("written");
        fs::create_dir(out.join(STATE_DIR).join("not a transfer")).expect("made");
        let listed = unfinished(out).expect("listed");
        let short: Vec<_> = listed.iter().map(|one| (one.transfer.as_str(), one.in_use)).collect();
        let names = ["01".repeat(16), "02".repeat(16)];
        assert!(short.contains(&(&names[0], false)) && short.contains(&(&names[1], true)), "{short:?}");
        assert!(listed.iter().all(|one| one.bytes > 0 && one.written > UNIX_EPOCH), "{listed:?}");
        assert!(let_go(out, &names[0]).expect("let go"));
        assert!(!let_go(out, &names[0]).expect("it is gone"));
        assert!(!let_go(out, &names[1]).expect("somebody is at work"));
        assert!(!let_go(out, "../precious").expect("no transfer"));
        drop(at_work);
        assert!(let_go(out, &names[1]).expect("let go"));
        assert_eq!(unfinished(out).expect("listed"), []);
        assert!(out.join("precious").exists() && out.join(STATE_DIR).join("not a transfer").exists());
    }

    #[test]
    fn oldest_partial_transfers_over_the_limits_are_removed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let out = directory.path();
        let nothing = KeepPartial::default();
        let now = SystemTime::now();
        let day = Duration::from_secs(86_400);
        let tidy = |keep, goes_on, now| {
            let_go_beyond(out, keep, Some(TransferId([goes_on; 16])), now).expect("tidied")
        };
        assert_eq!(tidy(KeepPartial { age: Some(day), ..nothing }, 9, now), LetGo::default());
        for number in 1..=4 {
            drop(begun(out, number));
            let journal = out.join(STATE_DIR).join(format!("{number:02x}").repeat(16)).join(JOURNAL);
            let written = now - day * (5 - u32::from(number));
            for file in ["head", JOURNAL, "parts/0"] {
                let file = journal.with_file_name(file);
                if let Ok(file) = fs::File::options().write(true).open(file) {
                    file.set_modified(written).expect("its time is set");
                }
            }
        }
        let at_work = begun(out, 5);
        let left = || {
            let all = unfinished(out).expect("listed");
            let mut left: Vec<u8> = all.iter().map(|one| one.transfer.as_bytes()[1] - b'0').collect();
            left.sort_unstable();
            left
        };
        assert_eq!(tidy(nothing, 9, now), LetGo::default());
        // The first transfer, four days old, continues now.
        assert_eq!(tidy(KeepPartial { age: Some(day * 5 / 2), ..nothing }, 1, now).transfers, 1);
        assert_eq!(left(), [1, 3, 4, 5]);
        let each = unfinished(out).expect("listed")[0].bytes;
        let gone = tidy(KeepPartial { bytes: Some(each * 3), ..nothing }, 9, now);
        assert_eq!(gone, LetGo { transfers: 1, bytes: each });
        assert_eq!(left(), [3, 4, 5]);
        assert_eq!(tidy(KeepPartial { bytes: Some(0), ..nothing }, 9, now).transfers, 2);
        assert_eq!(left(), [5]);
        drop(at_work);
    }

    #[test]
    fn part_files_of_a_killed_alc_receiver_are_listed_and_removed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (out, states) = (directory.path(), directory.path().join(STATE_DIR));
        fs::create_dir(&states).expect("made");
        let session = |digit: &str| format!("{PARTS_PREFIX}{}", digit.repeat(16));
        for name in [session("a") + "-1", session("a") + "-22", session("b") + "-1"] {
            fs::write(states.join(name), [1; 5_000]).expect("written");
        }
        for other in ["alc-notes".to_owned(), session("a") + "-x", session("c") + "1"] {
            fs::write(states.join(other), b"precious").expect("written");
        }
        let at_work = fs::File::open(states.join(session("b") + "-1")).expect("opened");
        at_work.lock().expect("locked");
        let listed = unfinished(out).expect("listed");
        let short: Vec<_> = listed.iter().map(|one| (one.transfer.as_str(), one.in_use)).collect();
        assert_eq!(short.len(), 2, "{short:?}");
        assert!(
            short.contains(&(&session("a"), false)) && short.contains(&(&session("b"), true)),
            "{short:?}"
        );
        assert!(listed.iter().all(|one| one.bytes >= 5_000));
        assert!(let_go(out, &session("a")).expect("let go") && !let_go(out, &session("a")).expect("gone"));
        assert!(!let_go(out, &session("b")).expect("somebody is at work"));
        drop(at_work);
        let keep = KeepPartial { age: None, bytes: Some(0) };
        assert_eq!(
            let_go_beyond(out, keep, Some(TransferId([9; 16])), SystemTime::now()).expect("tidied").transfers,
            1
        );
        assert_eq!(unfinished(out).expect("listed"), []);
        assert_eq!(fs::read_dir(&states).expect("listed").count(), 3);
    }

    #[test]
    fn links_in_place_of_state_directories_are_not_followed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (out, other) = (directory.path().join("out"), directory.path().join("other"));
        let states = out.join(STATE_DIR);
        fs::create_dir_all(&states).expect("made");
        fs::create_dir(&other).expect("made");
        fs::write(other.join("head"), b"precious").expect("written");
        std::os::unix::fs::symlink(&other, states.join("ab".repeat(16))).expect("a link");
        assert_eq!(unfinished(&out).expect("listed"), []);
        assert!(!let_go(&out, &"ab".repeat(16)).expect("nothing there"));
        assert!(other.join("head").exists());
    }
}
