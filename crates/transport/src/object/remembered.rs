//! What an output directory has received: when the session of each top-level name had started, and which transfer it was.
//!
//! ```text
//! file `received`:  "fcrecv1\n" ‖ records, the oldest first ‖ BLAKE3 of all that (32 bytes)
//! record:           u64 started ‖ transfer (16) ‖ u16 length of the name ‖ name           (little endian)
//! ```
//!
//! Who has recorded the packets of a session can send them again years later, sealed as they are. A name that a newer
//! session has brought is therefore not given to the content of an older one, unless the user wants that.

use super::error::ObjectError;
use super::geometry::TransferId;
use super::manifest::{Manifest, STATE_DIR};
use super::names::Names;
use crate::config::{Durability, Older};
use crate::disk;
use rustix::fd::AsFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const FILE: &str = "received";
/// It becomes [`FILE`] when it is complete.
const NEW: &str = "received.new";
const MAGIC: [u8; 8] = *b"fcrecv1\n";
/// Bytes of a record without its name, and of the hash at the end.
const RECORD: usize = 8 + 16 + 2;
const HASH: usize = 32;

/// So many names are remembered; then the oldest are forgotten.
const MOST: usize = 1 << 16;
/// A larger file than this has not been written here.
const MOST_BYTES: u64 = (MOST * (RECORD + 255) + MAGIC.len() + HASH) as u64;

/// What is looked at before content gets its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission {
    /// When its source was started, in nanoseconds since 1970.
    pub started: u64,
    /// What is to be done when a newer session has brought one of its names.
    pub older: Older,
    /// What becomes of names that a terminal obeys.
    pub names: Names,
    /// Bytes that directories, names and attributes may take.
    pub most: Option<u64>,
}

/// The names that an output directory has received.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    names: BTreeMap<OsString, Known>,
    /// Order of the next one.
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    started: u64,
    transfer: TransferId,
    /// The later it was received, the larger.
    order: u64,
}

/// The file is not what was written there.
#[derive(Debug)]
pub(crate) struct Damaged;

impl Remembered {
    /// What is remembered in the directory `states`.
    pub(crate) fn load(states: impl AsFd) -> Result<Remembered, Damaged> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match disk::openat(states, FILE, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(Remembered::default()),
            Err(_) => return Err(Damaged),
        };
        if !file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MOST_BYTES) {
            return Err(Damaged);
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|_| Damaged)?;
        Remembered::read(&bytes).ok_or(Damaged)
    }

    /// What the file says; `None` when it is not sound.
    fn read(bytes: &[u8]) -> Option<Remembered> {
        let (written, hash) = bytes.split_last_chunk::<HASH>()?;
        if blake3::hash(written).as_bytes() != hash {
            return None;
        }
        let mut rest = written.strip_prefix(&MAGIC)?;
        let mut remembered = Remembered::default();
        while !rest.is_empty() {
            let (started, after) = rest.split_first_chunk::<8>()?;
            let (transfer, after) = after.split_first_chunk::<16>()?;
            let (len, after) = after.split_first_chunk::<2>()?;
            let (name, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
            remembered.put(OsStr::from_bytes(name), u64::from_le_bytes(*started), TransferId(*transfer));
            rest = after;
        }
        Some(remembered)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_unstable_by_key(|(_, known)| known.order);
        for (name, known) in &names[names.len().saturating_sub(MOST)..] {
            bytes.extend(known.started.to_le_bytes());
            bytes.extend(known.transfer.0);
            bytes.extend((name.len() as u16).to_le_bytes()); // a name has 255 bytes at most
            bytes.extend(name.as_bytes());
        }
        let hash = blake3::hash(&bytes);
        bytes.extend(hash.as_bytes());
        bytes
    }

    fn put(&mut self, name: impl AsRef<OsStr>, started: u64, transfer: TransferId) {
        self.names.insert(name.as_ref().to_os_string(), Known { started, transfer, order: self.next });
        self.next += 1;
    }

    /// This content has been received. The same content from an older session does not make it older.
    fn note(&mut self, name: impl AsRef<OsStr>, started: u64, transfer: TransferId) {
        let name = name.as_ref();
        let before = self.names.get(name).filter(|known| known.transfer == transfer);
        self.put(name, before.map_or(started, |known| known.started.max(started)), transfer);
    }

    /// Whether a session that had been started then may bring this transfer.
    ///
    /// # Errors
    /// [`ObjectError::Older`] when it would put a name's older content over newer.
    pub(crate) fn check(
        &self,
        out: &Path,
        manifest: &Manifest,
        transfer: TransferId,
        admission: Admission,
    ) -> Result<(), ObjectError> {
        for name in tops(manifest) {
            let newer = self.names.get(name);
            let newer = newer.filter(|known| known.transfer != transfer && known.started > admission.started);
            if let (Some(known), Older::Refuse) = (newer, admission.older) {
                let (received, offered) = (known.started, admission.started);
                return Err(ObjectError::Older { path: out.join(name), received, offered });
            }
        }
        Ok(())
    }
}

/// Note in the directory `states`, which lies in `out`, that this transfer has been received. Others may do the same at the
/// same time. Whether what was there before was sound.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn remember(
    states: impl AsFd,
    out: &Path,
    manifest: &Manifest,
    transfer: TransferId,
    started: u64,
    durability: Durability,
) -> Result<Result<(), Damaged>, ObjectError> {
    let states = states.as_fd();
    let failed = |e: Errno| ObjectError::io(out.join(STATE_DIR).join(FILE), "write", e);
    let _unlocked_at_the_end = Locked::new(states).map_err(failed)?;
    let (mut remembered, sound) = match Remembered::load(states) {
        Ok(remembered) => (remembered, Ok(())),
        Err(damaged) => (Remembered::default(), Err(damaged)),
    };
    for name in tops(manifest) {
        remembered.note(name, started, transfer);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let new = disk::openat(states, NEW, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    let new = File::from(new);
    let written = disk::write_all_at(&new, &remembered.bytes(), 0).and_then(|()| match durability {
        Durability::Fast => Ok(()),
        Durability::Synced => disk::sync_all(&new),
    });
    written.map_err(|e| ObjectError::io(out.join(STATE_DIR).join(NEW), "write", e))?;
    disk::renameat(states, NEW, states, FILE).map_err(failed)?;
    Ok(sound)
}

/// The names at the top of a transfer, in order.
fn tops(manifest: &Manifest) -> impl Iterator<Item = &OsStr> {
    let mut before = None;
    let tops = manifest.entries().iter().map(|entry| {
        let top = entry.path.as_bytes().split(|byte| *byte == b'/').next();
        OsStr::from_bytes(top.unwrap_or_default())
    });
    tops.filter(move |top| before.replace(*top) != Some(*top))
}

/// A directory that nobody else has locked meanwhile.
struct Locked<Fd: AsFd>(Fd);

impl<Fd: AsFd> Locked<Fd> {
    fn new(directory: Fd) -> Result<Locked<Fd>, Errno> {
        rustix::fs::flock(&directory, FlockOperation::LockExclusive)?;
        Ok(Locked(directory))
    }
}

impl<Fd: AsFd> Drop for Locked<Fd> {
    fn drop(&mut self) {
        // Else it ends with the descriptor.
        rustix::fs::flock(&self.0, FlockOperation::Unlock).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: TransferId = TransferId([1; 16]);
    const B: TransferId = TransferId([2; 16]);

    #[test]
    fn what_is_remembered_reads_back_and_no_changed_bit_does() {
        let mut remembered = Remembered::default();
        for (name, started) in [("b", 7), ("a\n\u{1f600}", u64::MAX), ("b", 9), ("", 0)] {
            remembered.note(name, started, A);
        }
        let bytes = remembered.bytes();
        let read = Remembered::read(&bytes).expect("it was written just now");
        assert_eq!(read.bytes(), bytes);
        for at in 0..bytes.len() {
            assert!(Remembered::read(&bytes[..at]).is_none(), "cut after {at} bytes");
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                assert!(Remembered::read(&changed).is_none(), "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn the_oldest_names_are_forgotten_first() {
        let mut remembered = Remembered::default();
        (0..MOST + 10).for_each(|n| remembered.note(n.to_string(), 5, A));
        remembered.note("0", 6, A);
        let read = Remembered::read(&remembered.bytes()).expect("it was written just now");
        assert_eq!(read.names.len(), MOST);
        assert!(read.names.contains_key(OsStr::new("0")), "it came again");
        assert!((1..=10).all(|n| !read.names.contains_key(OsStr::new(&n.to_string()))));
    }

    #[test]
    fn the_same_content_does_not_grow_older_and_other_content_may() {
        let mut remembered = Remembered::default();
        remembered.note("name", 9, A);
        remembered.note("name", 3, A);
        assert_eq!(remembered.names[OsStr::new("name")].started, 9);
        remembered.note("name", 3, B);
        assert_eq!(remembered.names[OsStr::new("name")].started, 3, "the user has accepted it");
    }

    proptest! {
        #[test]
        fn any_bytes_under_a_right_hash_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            bytes.splice(..0, MAGIC);
            let hash = blake3::hash(&bytes);
            bytes.extend(hash.as_bytes());
            if let Some(read) = Remembered::read(&bytes) {
                prop_assert!(Remembered::read(&read.bytes()).is_some());
            }
        }
    }
}
