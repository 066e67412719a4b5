//! The record of an output directory. For each top-level name it contains the transfer, the source of the transfer, and the start
//! of the session.
//!
//! ```text
//! file `received`:  "fcrecv2\n" ‖ records, the oldest first ‖ BLAKE3 of all that (32 bytes)
//! record:           u64 started ‖ u64 began ‖ transfer (16) ‖ address (16) ‖ u8 proven ‖ u8 length of the host ‖ host
//!                   ‖ u16 length of the name ‖ name                                              (little endian)
//! ```
//!
//! A sealed session can be recorded and replayed years later. Content of an earlier session therefore does not replace newer
//! content, unless the user allows it. A session whose source has answered cannot be a recording. The start of such a session is
//! measured by this host's clock, so a wrong clock at the source does no harm. Different content of another source also does not
//! replace content, unless the user allows it.

use super::error::ObjectError;
use super::geometry::TransferId;
use super::manifest::{Manifest, STATE_DIR};
use super::names::Names;
use super::origin::Origin;
use super::policy::{Durability, OverwritePolicy, ReplayPolicy};
use crate::host::disk::Disk;
use rustix::fd::AsFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const FILE: &str = "received";
/// Temporary name of the record, which is renamed to [`FILE`] when it is complete.
const NEW: &str = "received.new";
const MAGIC: [u8; 8] = *b"fcrecv2\n";
/// Bytes of a record without host and name; bytes of the hash at the end of the file.
const RECORD: usize = 8 + 8 + 16 + 16 + 1 + 1 + 2;
const HASH: usize = 32;

/// Maximum number of recorded names. Beyond this number the oldest names are dropped.
const MAX_NAMES: usize = 1 << 16;
/// Maximum size of the file in bytes. This program does not write a larger file.
const MAX_BYTES: u64 = (MAX_NAMES * (RECORD + Origin::MAX_HOST + 255) + MAGIC.len() + HASH) as u64;

/// Sessions whose starts differ by at most this number of nanoseconds count as simultaneous, because announcements state times in
/// whole seconds.
const SAME_TIME: u64 = 2_000_000_000;

/// A session that requests to write its names in the output directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// Start of the session by the source's clock, in nanoseconds since 1970.
    pub started: u64,
    /// Start of the session by this host's clock, in nanoseconds since 1970; as precise as announcements, which state whole
    /// seconds.
    pub began: u64,
    /// Present time of this host, in nanoseconds since 1970.
    pub now: u64,
    /// Evidence that the session is not a recording.
    pub replay_policy: ReplayPolicy,
    /// Its source.
    pub origin: Origin,
    /// Whether the session may replace content of a later session or of another source.
    pub overwrite: OverwritePolicy,
    /// Treatment of names with terminal control characters.
    pub names: Names,
    /// Maximum number of bytes that all entries may take on the disk in addition to their content.
    pub most: Option<u64>,
}

/// The names in the record of an output directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    names: BTreeMap<OsString, Known>,
    /// Position of the next record in the order of reception.
    next: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    started: u64,
    began: u64,
    transfer: TransferId,
    origin: Origin,
    /// Position in the order of reception; larger is later.
    order: u64,
}

/// The file of the record is damaged: it does not contain the bytes that this program wrote.
#[derive(Debug)]
pub(crate) struct Damaged;

impl Remembered {
    /// Loads the record in the directory `states`.
    pub(crate) fn load(disk: &Disk, states: impl AsFd) -> Result<Remembered, Damaged> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match disk.openat(states, FILE, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(Remembered::default()),
            Err(_) => return Err(Damaged),
        };
        if !file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_BYTES) {
            return Err(Damaged);
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|_| Damaged)?;
        Remembered::read(&bytes).ok_or(Damaged)
    }

    /// Returns whether a name has content of this source.
    pub(crate) fn has_any_of(&self, origin: &Origin) -> bool {
        self.names.values().any(|known| known.origin.is_same(origin))
    }

    /// Parses the file; `None` if it is damaged.
    fn read(bytes: &[u8]) -> Option<Remembered> {
        let (written, hash) = bytes.split_last_chunk::<HASH>()?;
        if blake3::hash(written).as_bytes() != hash {
            return None;
        }
        let mut rest = written.strip_prefix(&MAGIC)?;
        let mut remembered = Remembered::default();
        while !rest.is_empty() {
            let (started, after) = rest.split_first_chunk::<8>()?;
            let (began, after) = after.split_first_chunk::<8>()?;
            let (transfer, after) = after.split_first_chunk::<16>()?;
            let (address, after) = after.split_first_chunk::<16>()?;
            let (&[proven, len], after) = after.split_first_chunk::<2>()?;
            let (host, after) = after.split_at_checked(usize::from(len))?;
            let (len, after) = after.split_first_chunk::<2>()?;
            let (name, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
            let address = IpAddr::from(Ipv6Addr::from(*address)).to_canonical();
            let host = std::str::from_utf8(host).ok()?;
            let origin = Origin::new(address, host, proven != 0);
            if origin.host != host {
                return None;
            }
            let known = Known {
                started: u64::from_le_bytes(*started),
                began: u64::from_le_bytes(*began),
                transfer: TransferId(*transfer),
                origin,
                order: 0,
            };
            remembered.put(OsStr::from_bytes(name), known);
            rest = after;
        }
        Some(remembered)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_unstable_by_key(|(_, known)| known.order);
        for (name, known) in &names[names.len().saturating_sub(MAX_NAMES)..] {
            let Origin { address, host, proven } = &known.origin;
            let address = match *address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            bytes.extend(known.started.to_le_bytes());
            bytes.extend(known.began.to_le_bytes());
            bytes.extend(known.transfer.0);
            bytes.extend(address.octets());
            bytes.extend([u8::from(*proven), host.len() as u8]); // a host name has 63 bytes at most
            bytes.extend(host.as_bytes());
            bytes.extend((name.len() as u16).to_le_bytes()); // a name has 255 bytes at most
            bytes.extend(name.as_bytes());
        }
        let hash = blake3::hash(&bytes);
        bytes.extend(hash.as_bytes());
        bytes
    }

    fn put(&mut self, name: impl AsRef<OsStr>, known: Known) {
        self.names.insert(name.as_ref().to_os_string(), Known { order: self.next, ..known });
        self.next += 1;
    }

    /// Records `transfer` as the content of `name`. If the recorded content is the same, the recorded start never decreases. If
    /// it differs, the start by the source's clock decreases only if replacement is allowed. Otherwise a source whose clock is
    /// slow would make old recordings acceptable.
    fn note(&mut self, name: impl AsRef<OsStr>, transfer: TransferId, admission: &Admission) {
        let &Admission { mut started, mut began, overwrite, .. } = admission;
        if let Some(before) = self.names.get(name.as_ref()) {
            if before.transfer == transfer {
                began = began.max(before.began);
            }
            if before.transfer == transfer || overwrite == OverwritePolicy::Refuse {
                started = started.max(before.started);
            }
        }
        self.put(name, Known { started, began, transfer, origin: admission.origin.clone(), order: 0 });
    }

    /// Checks whether the session may replace the present content of the manifest's names by `transfer`.
    ///
    /// # Errors
    /// When the present content of a name is different and is of a later session ([`ObjectError::Older`]) or of another source
    /// ([`ObjectError::OtherSource`]).
    pub(crate) fn check(
        &self,
        out: &Path,
        manifest: &Manifest,
        transfer: TransferId,
        admission: &Admission,
    ) -> Result<(), ObjectError> {
        if admission.overwrite == OverwritePolicy::Accept {
            return Ok(());
        }
        for name in manifest.tops() {
            let Some(known) = self.names.get(name).filter(|known| known.transfer != transfer) else {
                continue;
            };
            if let Some((received, offered)) = known.is_later(admission) {
                return Err(ObjectError::Older { path: out.join(name), received, offered });
            }
            if !known.origin.is_same(&admission.origin) {
                let (received, offered) = (known.origin.clone(), admission.origin.clone());
                let (received, offered) = (Box::new(received), Box::new(offered));
                return Err(ObjectError::OtherSource { path: out.join(name), received, offered });
            }
        }
        Ok(())
    }
}

impl Known {
    /// Returns the starts of the recorded and the requesting session, if the recorded session is later.
    fn is_later(&self, admission: &Admission) -> Option<(u64, u64)> {
        match admission.replay_policy {
            ReplayPolicy::Clock => {
                (self.started > admission.started).then_some((self.started, admission.started))
            }
            // A recorded start in the future is ignored: this host's clock has been set back since the start was recorded.
            ReplayPolicy::Answer => {
                let is_later = self.began > admission.began.saturating_add(SAME_TIME);
                (is_later && self.began <= admission.now).then_some((self.began, admission.began))
            }
        }
    }
}

/// Records in the directory `states` (inside `out`) that this transfer has been received. Other processes may do the same
/// concurrently. The inner result is an error if the previous record was damaged.
///
/// # Errors
/// When the record cannot be written.
pub(crate) fn remember(
    (disk, states): (&Disk, impl AsFd),
    out: &Path,
    manifest: &Manifest,
    transfer: TransferId,
    admission: &Admission,
    durability: Durability,
) -> Result<Result<(), Damaged>, ObjectError> {
    let states = states.as_fd();
    let failed = |e: Errno| ObjectError::io(out.join(STATE_DIR).join(FILE), "write", e);
    let _unlocked_at_the_end = Locked::new(states).map_err(failed)?;
    let (mut remembered, sound) = match Remembered::load(disk, states) {
        Ok(remembered) => (remembered, Ok(())),
        Err(damaged) => (Remembered::default(), Err(damaged)),
    };
    for name in manifest.tops() {
        remembered.note(name, transfer, admission);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let new = disk.openat(states, NEW, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    let new = File::from(new);
    let written = disk.write_all_at(&new, &remembered.bytes(), 0).and_then(|()| match durability {
        Durability::Fast => Ok(()),
        Durability::Synced => disk.sync_all(&new),
    });
    written.map_err(|e| ObjectError::io(out.join(STATE_DIR).join(NEW), "write", e))?;
    disk.renameat(states, NEW, states, FILE).map_err(failed)?;
    Ok(sound)
}

/// A file or directory that this process has locked against other processes. The lock ends with this value, also if a process that
/// is being started has inherited the descriptor.
#[derive(Debug)]
pub(crate) struct Locked<Fd: AsFd>(Fd);

impl<Fd: AsFd> Locked<Fd> {
    fn new(directory: Fd) -> Result<Locked<Fd>, Errno> {
        rustix::fs::flock(&directory, FlockOperation::LockExclusive)?;
        Ok(Locked(directory))
    }

    /// Locks without waiting for another process.
    ///
    /// # Errors
    /// [`Errno::WOULDBLOCK`] if another process holds the lock.
    pub(crate) fn at_once(file: Fd) -> Result<Locked<Fd>, Errno> {
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Locked(file))
    }

    pub(crate) const fn file(&self) -> &Fd {
        &self.0
    }
}

impl<Fd: AsFd> Drop for Locked<Fd> {
    fn drop(&mut self) {
        // If this fails, closing the descriptor ends the lock.
        rustix::fs::flock(&self.0, FlockOperation::Unlock).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: TransferId = TransferId([1; 16]);
    const B: TransferId = TransferId([2; 16]);

    fn admitted(started: u64) -> Admission {
        let origin = Origin::new(IpAddr::from([192, 0, 2, 1]), "lab1", true);
        Admission {
            started,
            began: started,
            now: u64::MAX,
            replay_policy: ReplayPolicy::Clock,
            origin,
            overwrite: OverwritePolicy::Refuse,
            names: Names::Escape,
            most: None,
        }
    }

    /// A test or a program that starts a process passes its descriptors to the process until the process executes its file.
    #[test]
    fn lock_ends_although_a_copy_of_its_descriptor_is_open() {
        let file = tempfile::tempfile().expect("a file");
        let inherited = file.try_clone().expect("a copy");
        let other = std::fs::File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
        let other = other.expect("another description of the file");
        let lock = Locked::at_once(file).expect("it is free");
        assert_eq!(Locked::at_once(&other).expect_err("it is taken"), Errno::WOULDBLOCK);
        drop(lock);
        Locked::at_once(&other).expect("it is free again");
        drop(inherited);
    }

    #[test]
    fn record_is_read_back_and_refused_after_any_bit_flip() {
        let mut remembered = Remembered::default();
        for (name, started) in [("b", 7), ("a\n\u{1f600}", u64::MAX), ("b", 9), ("", 0)] {
            remembered.note(name, A, &admitted(started));
        }
        let bytes = remembered.bytes();
        let read = Remembered::read(&bytes).expect("it was written just now");
        assert_eq!(read.bytes(), bytes);
        assert_eq!(read.names[OsStr::new("b")].origin, admitted(9).origin);
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
    fn oldest_names_are_dropped_at_the_maximum_number_of_names() {
        let mut remembered = Remembered::default();
        (0..MAX_NAMES + 10).for_each(|n| remembered.note(n.to_string(), A, &admitted(5)));
        remembered.note("0", A, &admitted(6));
        let read = Remembered::read(&remembered.bytes()).expect("it was written just now");
        assert_eq!(read.names.len(), MAX_NAMES);
        assert!(read.names.contains_key(OsStr::new("0")), "it came again");
        assert!((1..=10).all(|n| !read.names.contains_key(OsStr::new(&n.to_string()))));
    }

    #[test]
    fn recorded_start_decreases_only_if_overwriting_is_accepted() {
        let mut remembered = Remembered::default();
        let started = |remembered: &Remembered| remembered.names[OsStr::new("name")].started;
        remembered.note("name", A, &admitted(9));
        remembered.note("name", A, &admitted(3));
        assert_eq!(started(&remembered), 9);
        remembered.note("name", B, &admitted(3));
        assert_eq!(started(&remembered), 9, "its source has a slow clock, and recordings are still refused");
        remembered.note("name", A, &Admission { overwrite: OverwritePolicy::Accept, ..admitted(3) });
        assert_eq!(started(&remembered), 3);
    }

    proptest! {
        #[test]
        fn any_record_with_a_valid_hash_is_parsed_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            bytes.splice(..0, MAGIC);
            let hash = blake3::hash(&bytes);
            bytes.extend(hash.as_bytes());
            if let Some(read) = Remembered::read(&bytes) {
                prop_assert!(Remembered::read(&read.bytes()).is_some());
            }
        }
    }
}
