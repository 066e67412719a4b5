//! Search for the entries below the paths that are sent, with their names, sizes, modes, times and further metadata.

use super::chunking::Delta;
use super::device_fault::DeviceFault;
use super::error::ObjectError;
use super::host::block_device;
use super::links::FollowLinks;
use super::manifest::{Entry, Kind, MAX_HOLES, MODE_BITS, PERMISSIONS, check_path};
use super::metadata::{Aspect, Attributes, MAX_NAMES, MAX_VALUE, Owner, Preserve};
use super::policy::Extraneous;
use nix::unistd::{Gid, Group, Uid, User};
use rustix::fs::{Access, Mode, OFlags, SeekFrom, lgetxattr, llistxattr};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Options for reading files and trees at the source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Metadata that is sent, beyond names, permission bits, times and hard links.
    pub preserve: Preserve,
    /// Treatment of files that cannot be read.
    pub unreadable: Unreadable,
    /// Treatment of several names of one file.
    pub hard_links: HardLinks,
    /// The symbolic links whose targets are sent in place of the links.
    pub follow: FollowLinks,
    /// Treatment of files that receivers have in the sent directories and the source does not.
    pub extraneous: Extraneous,
    /// Whether chunks of the files are listed.
    pub delta: Delta,
    /// Treatment of holes in files.
    pub holes: Holes,
}

/// Treatment of holes in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Holes {
    /// They are sent as zeros.
    #[default]
    AsZeros,
    /// The manifest lists them, and their blocks are not sent.
    Keep,
}

/// Treatment of files that cannot be read, or whose names cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unreadable {
    /// These files are left out and reported; the other files are sent.
    #[default]
    LeaveOut,
    /// The source refuses to send any file.
    Refuse,
}

/// Treatment of several names of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HardLinks {
    /// As several names of one file.
    #[default]
    Keep,
    /// As separate files, one for each name.
    AsFiles,
}

/// An entry of a tree that is never sent: a device, socket or pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
}

/// An entry that was selected for sending and was left out because of an error.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// Path of the entry. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Reason, and advice.
    pub reason: String,
}

impl LeftOut {
    /// Describes an entry that was left out because of `error`. The reason does not repeat the path.
    pub fn new(path: &Path, error: &ObjectError) -> LeftOut {
        let (path, words) = (path.display().to_string(), error.to_string());
        let reason = words.strip_prefix(&format!("{path}: ")).unwrap_or(&words).to_owned();
        LeftOut { path, reason }
    }
}

/// Entries that were found.
#[derive(Default)]
pub(super) struct Walk {
    reading: Reading,
    /// Minimum length in bytes of holes that are listed: the length of a block.
    least_hole: u64,
    /// Top-level names of the sent content.
    tops: BTreeSet<OsString>,
    /// Entries. Entries of a file with several names include the file's inode.
    entries: Vec<(Entry, Option<Inode>)>,
    skipped: Vec<Skipped>,
    left_out: Vec<LeftOut>,
    /// Error of the first file that was left out.
    first: Option<ObjectError>,
    notes: Vec<String>,
    owners: BTreeMap<(u32, u32), Arc<Owner>>,
    sets: BTreeSet<Arc<Attributes>>,
}

/// Device and inode number of a file.
type Inode = (u64, u64);

/// A path that has not been examined yet.
struct Pending {
    path: PathBuf,
    /// Its path at the receivers.
    name: OsString,
    meta: Metadata,
    within: Option<Rc<AncestorDirectories>>,
}

/// The directories that contain an entry, the innermost first.
struct AncestorDirectories {
    directory: Inode,
    above: Option<Rc<AncestorDirectories>>,
}

/// All results of a walk.
pub(super) struct Found {
    pub(super) entries: Vec<Entry>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) notes: Vec<String>,
}

impl Walk {
    pub(super) fn new(reading: &Reading, tops: BTreeSet<OsString>, least_hole: u64) -> Walk {
        Walk { reading: reading.clone(), tops, least_hole, ..Walk::default() }
    }

    /// Adds a block device as a file.
    ///
    /// # Errors
    /// When it cannot be read, or may change while it is sent.
    pub(super) fn device(&mut self, path: &Path, name: OsString, meta: &Metadata) -> Result<(), ObjectError> {
        block_device::check_source(path, meta)?;
        let file = File::open(path).map_err(|e| ObjectError::io(path, "read", e))?;
        let size = block_device::len(&file, meta).map_err(|e| ObjectError::io(path, "read its size", e))?;
        if size == 0 {
            return Err(ObjectError::Device { path: path.to_path_buf(), why: DeviceFault::Empty });
        }
        let entry = Entry::new(name, Kind::File { size }, meta.mode() & PERMISSIONS, mtime(meta));
        self.entries.push((entry, None));
        Ok(())
    }

    /// Leaves out a path that cannot be sent.
    ///
    /// # Errors
    /// `error`, when no path may be left out.
    pub(super) fn leave_out(&mut self, path: &Path, error: ObjectError) -> Result<(), ObjectError> {
        if self.reading.unreadable == Unreadable::Refuse {
            return Err(error);
        }
        self.left_out.push(LeftOut::new(path, &error));
        self.first.get_or_insert(error);
        Ok(())
    }

    /// Adds `path` and all entries below it. At the receivers, `path` has the name `name`.
    pub(super) fn visit(&mut self, path: &Path, name: OsString, meta: &Metadata) -> Result<(), ObjectError> {
        let mut pending = vec![Pending { path: path.to_path_buf(), name, meta: meta.clone(), within: None }];
        while let Some(mut next) = pending.pop() {
            if next.meta.is_symlink()
                && let Err(error) = self.follow(&mut next)
            {
                self.leave_out(&next.path, error)?;
                continue;
            }
            let Pending { path, name, meta, within } = next;
            if !meta.is_file() && !meta.is_dir() && !meta.is_symlink() {
                self.skipped.push(Skipped { path });
                continue;
            }
            match self.entry(&path, name, &meta, (within, &mut pending)) {
                Ok(entry) => {
                    let has_others = meta.is_file() && meta.nlink() > 1;
                    self.entries.push((entry, has_others.then(|| (meta.dev(), meta.ino()))));
                }
                Err(error) => self.leave_out(&path, error)?,
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        path: &Path,
        name: OsString,
        meta: &Metadata,
        (within, pending): (Option<Rc<AncestorDirectories>>, &mut Vec<Pending>),
    ) -> Result<Entry, ObjectError> {
        check_path(&name).map_err(|why| ObjectError::Name { path: path.to_path_buf(), why })?;
        let kind = if meta.is_file() {
            rustix::fs::access(path, Access::READ_OK).map_err(|e| ObjectError::io(path, "read", e))?;
            Kind::File { size: meta.len() }
        } else if meta.is_dir() {
            let within = Rc::new(AncestorDirectories { directory: (meta.dev(), meta.ino()), above: within });
            self.list(path, &name, &within, pending)?;
            Kind::Dir
        } else {
            let target = path.read_link().map_err(|e| ObjectError::io(path, "read", e))?;
            Kind::Symlink { target: target.into_os_string() }
        };
        let bits = if self.reading.preserve.has(Aspect::Setid) { MODE_BITS } else { PERMISSIONS };
        let mut entry = Entry::new(name, kind, meta.mode() & bits, mtime(meta));
        // A receiver sets the set-user-ID and set-group-ID bits only if the owner is the same, so these bits require the owner,
        // too.
        if self.reading.preserve.has(Aspect::Owner) || self.reading.preserve.has(Aspect::Setid) {
            entry.owner = Some(self.owner(meta.uid(), meta.gid()));
        }
        if !meta.is_symlink() {
            entry.attributes = self.attributes(path);
        }
        let is_sparse = meta.is_file() && meta.blocks() * 512 < meta.len();
        if self.reading.holes == Holes::Keep && is_sparse && meta.len() >= self.least_hole {
            // Without the holes, the file is sent with zeros in their place.
            entry.holes = holes_of(path, meta.len(), self.least_hole).ok().filter(|holes| !holes.is_empty());
        }
        Ok(entry)
    }

    /// If the link is to be followed, replaces it by its target.
    fn follow(&self, link: &mut Pending) -> Result<(), ObjectError> {
        let failed = |e| ObjectError::io(&link.path, "read", e);
        let target = link.path.read_link().map_err(failed)?;
        if !self.reading.follow.follows(&link.name, target.as_os_str(), &self.tops) {
            return Ok(());
        }
        link.meta = link.path.metadata().map_err(|e| ObjectError::io(&link.path, "follow this link", e))?;
        let led_to = (link.meta.dev(), link.meta.ino());
        let mut above = std::iter::successors(link.within.as_deref(), |within| within.above.as_deref());
        if link.meta.is_dir() && above.any(|within| within.directory == led_to) {
            return Err(ObjectError::LinkToOwnDirectory { path: link.path.clone() });
        }
        Ok(())
    }

    fn list(
        &mut self,
        path: &Path,
        name: &OsStr,
        within: &Rc<AncestorDirectories>,
        pending: &mut Vec<Pending>,
    ) -> Result<(), ObjectError> {
        for child in path.read_dir().map_err(|e| ObjectError::io(path, "list", e))? {
            let child = child.map_err(|e| ObjectError::io(path, "list", e))?;
            let below = child.path();
            match child.metadata() {
                Ok(meta) => {
                    let mut whole = name.to_os_string();
                    whole.push("/");
                    whole.push(child.file_name());
                    pending.push(Pending { path: below, name: whole, meta, within: Some(Rc::clone(within)) });
                }
                Err(e) => self.leave_out(&below, ObjectError::io(&below, "read", e))?,
            }
        }
        Ok(())
    }

    /// Returns the owner with these IDs. Each owner is looked up only once.
    fn owner(&mut self, uid: u32, gid: u32) -> Arc<Owner> {
        let owner = self.owners.entry((uid, gid)).or_insert_with(|| {
            let user = User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name);
            let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten().map(|group| group.name);
            let mut owner =
                Owner { uid, gid, user: user.unwrap_or_default(), group: group.unwrap_or_default() };
            if owner.check().is_err() {
                (owner.user, owner.group) = (String::new(), String::new()); // names of no use elsewhere
            }
            Arc::new(owner)
        });
        Arc::clone(owner)
    }

    /// Returns the selected attributes of a file. Adds a note for attributes that cannot be read or sent.
    fn attributes(&mut self, path: &Path) -> Option<Arc<Attributes>> {
        if !self.reading.preserve.has_attributes() {
            return None;
        }
        let list = |list: &mut [u8]| llistxattr(path, list);
        let get = |name: &str, value: &mut [u8]| lgetxattr(path, name, value);
        match read_attributes(&self.reading.preserve, list, get) {
            Ok(all) if all.is_empty() => None,
            Ok(all) => match Attributes::new(all) {
                Ok(set) => {
                    let set = Arc::new(set);
                    if let Some(known) = self.sets.get(&set) {
                        return Some(Arc::clone(known));
                    }
                    self.sets.insert(Arc::clone(&set));
                    Some(set)
                }
                Err(why) => {
                    self.notes.push(format!("{}: sent without its attributes: {why}", path.display()));
                    None
                }
            },
            Err(Errno::OPNOTSUPP) => None,
            Err(e) => {
                self.notes.push(format!("{}: sent without its attributes: {e}", path.display()));
                None
            }
        }
    }

    /// Returns all entries, sorted by path. If hard links are preserved, the content of a file with several names is sent once.
    ///
    /// # Errors
    /// The error of the first path that was left out, when all paths were left out.
    pub(super) fn found(mut self) -> Result<Found, ObjectError> {
        if let (true, Some(error)) = (self.entries.is_empty(), self.first) {
            return Err(error);
        }
        self.entries.sort_unstable_by(|(a, _), (b, _)| a.path.cmp(&b.path));
        if self.reading.hard_links == HardLinks::Keep {
            let mut first: BTreeMap<Inode, u32> = BTreeMap::new();
            for (n, (entry, inode)) in (0u32..).zip(&mut self.entries) {
                let Some(inode) = *inode else { continue };
                let to = *first.entry(inode).or_insert(n);
                if to < n {
                    *entry = Entry::new(std::mem::take(&mut entry.path), Kind::HardLink { to }, 0, 0);
                }
            }
        }
        limit_holes(self.entries.iter_mut().map(|(entry, _)| entry));
        self.skipped.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.left_out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let entries = self.entries.into_iter().map(|(entry, _)| entry).collect();
        Ok(Found { entries, skipped: self.skipped, left_out: self.left_out, notes: self.notes })
    }
}

/// Returns the holes of a file that have at least `least` bytes. If all of its holes are shorter, returns the longest one, which
/// marks the file as sparse.
fn holes_of(path: &Path, size: u64, least: u64) -> Result<Arc<[Range<u64>]>, ObjectError> {
    let failed = |e: Errno| ObjectError::io(path, "find its holes", e);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
    let (mut at, mut long, mut longest) = (0, Vec::new(), 0..0);
    while at < size {
        let hole = match rustix::fs::seek(&file, SeekFrom::Hole(at)) {
            Ok(hole) if hole < size => hole,
            Ok(_) => break,
            Err(e) => return Err(failed(e)),
        };
        at = match rustix::fs::seek(&file, SeekFrom::Data(hole)) {
            Ok(data) => data.clamp(hole, size),
            Err(Errno::NXIO) => size, // no data follow
            Err(e) => return Err(failed(e)),
        };
        if at - hole >= least {
            long.push(hole..at);
        } else if at - hole > longest.end - longest.start {
            longest = hole..at;
        }
        at = at.max(hole + 1);
    }
    if long.is_empty() && !longest.is_empty() {
        long.push(longest);
    }
    Ok(long.into())
}

/// If there are more holes than a manifest can list, removes the shortest ones.
fn limit_holes<'a>(entries: impl Iterator<Item = &'a mut Entry>) {
    let mut sparse: Vec<&mut Entry> = entries.filter(|entry| entry.holes.is_some()).collect();
    let lengths = sparse.iter().flat_map(|entry| entry.holes()).map(|hole| hole.end - hole.start);
    let mut lengths: Vec<u64> = lengths.collect();
    if lengths.len() <= MAX_HOLES {
        return;
    }
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let too_short = lengths[MAX_HOLES];
    for entry in &mut sparse {
        let holes = entry.holes().iter().filter(|hole| hole.end - hole.start > too_short);
        let holes: Vec<Range<u64>> = holes.cloned().collect();
        entry.holes = (!holes.is_empty()).then(|| holes.into());
    }
}

/// Returns the names and values of attributes, sorted by name. Attributes whose names are not UTF-8 are omitted, because other
/// hosts cannot use them.
pub(super) fn read_attributes(
    preserve: &Preserve,
    list_into: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
    get_into: impl Fn(&str, &mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<(String, Vec<u8>)>, Errno> {
    let mut list = vec![0; MAX_VALUE]; // Linux's own limit of a list
    let len = list_into(&mut list)?;
    let names = list[..len].split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    let mut all = Vec::new();
    let mut value = vec![0; MAX_VALUE];
    for name in names.filter(|name| preserve.has_attribute(name)).take(MAX_NAMES + 1) {
        match get_into(name, &mut value) {
            Ok(len) => all.push((name.to_owned(), value[..len].to_vec())),
            Err(Errno::NODATA) => {} // removed meanwhile
            Err(e) => return Err(e),
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// Returns the time of modification in ns since 1970.
pub(super) fn mtime(meta: &Metadata) -> i64 {
    meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec())
}

/// Returns the name that a path given by the user gets at the receivers.
pub(super) fn top_name(path: &Path) -> Result<OsString, ObjectError> {
    let named = match path.file_name() {
        Some(_) => path.to_path_buf(),
        // Paths such as `.` and `..` have a name only after they are resolved.
        None => path.canonicalize().map_err(|e| ObjectError::io(path, "read", e))?,
    };
    let name = named.file_name().ok_or_else(|| ObjectError::NoName { path: path.to_path_buf() })?;
    check_path(name).map_err(|why| ObjectError::Name { path: path.to_path_buf(), why })?;
    debug_assert!(!name.as_bytes().contains(&b'/'), "a file's name has no separator");
    Ok(name.to_os_string())
}
