//! The manifest: the list of all entries of a transfer.
//!
//! ```text
//! u8 version (1 to 3) ‖ version 3: u8 features ‖ count ‖ count entries, sorted by path ‖ tables of the features, in the order
//! of their bits, and nothing more
//! entry:  shared ‖ length ‖ rest of the path ‖ u8 kind ‖ mode ‖ mtime ‖ file: size, link: length ‖ target, hard link: entry
//!         ‖ from version 2 on: owner ‖ attributes
//! owner:       0: not said; n: the n-th of the manifest; one more than there are: uid ‖ gid ‖ text user ‖ text group follow
//! attributes:  0: none; n: the n-th set of the manifest; one more than there are: count ‖ (text name ‖ text value) follow
//! ```
//!
//! Numbers are LEB128 (7 bits per byte, least significant first). A text is encoded as its length and its bytes. `shared` is the
//! length of the prefix that the path has in common with the preceding path. `mtime` is in zigzag form. [`Manifest::decode`]
//! accepts any bytes: the result is an error, or a manifest whose paths all stay inside the output directory.
//!
//! Version 2 is written only if an entry needs it. An entry needs version 2 for an owner, attributes, a set-user-ID, set-group-ID
//! or sticky bit, a hard link, or a name that is not UTF-8. Version 3 is written only for a manifest with features. Any other
//! manifest is written in version 1, which older receivers can read. The bits of `features` are:
//!
//! | bit | feature |
//! |---|---|
//! | 1 | receivers may delete the files in the directories of the manifest that are no entries ([`Extraneous::Delete`]) |
//! | 2 | a chunk table that is not empty (`chunks`) follows the entries |
//! | 4 | files have holes; the table of holes follows (`holes`) |

pub(crate) mod chunks;
mod error;
mod holes;
mod named;
mod tables;

use super::metadata::{Attributes, Owner};
use super::names::shown;
pub use super::names::{MAX_NAME_LEN, MAX_PATH_LEN};
use super::policy::Extraneous;
use chunks::Chunks;
pub use error::{ManifestError, PathError};
pub use holes::MAX_HOLES;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use tables::{ReadTables, WriteTables};

/// Name of the directory for the state of the receiver, inside the output directory. No path of an entry may begin with this
/// name.
pub const STATE_DIR: &str = ".faircast";

/// Maximum number of entries of a manifest.
pub const MAX_ENTRIES: usize = 4_000_000;
/// Maximum number of directories in the path of an entry. All these directories are open while the entry is placed.
pub const MAX_DEPTH: usize = 256;
/// Maximum number of directories that occur in paths and have no entry. Without this limit, a short manifest of one-letter names
/// could require millions of directories.
const MAX_UNNAMED_DIRS: usize = 65_536;
/// Maximum number of bytes of all paths and link targets together. Without this limit, a short manifest with shared prefixes
/// could expand to very long paths.
const MAX_TEXT: usize = 256 << 20;
/// Permission bits, and the set-user-ID, set-group-ID and sticky bits.
pub const MODE_BITS: u32 = 0o7777;
/// Permission bits: the only mode bits of version 1.
pub const PERMISSIONS: u32 = 0o777;
/// Maximum number of bytes of the attributes of all entries together. A set of attributes counts once for each entry that uses
/// the set.
const MAX_ATTRIBUTES: usize = 256 << 20;

/// Minimum space that a file or directory takes on a disk, in bytes, for [`Manifest::footprint`].
const DISK_BLOCK: u64 = 4096;
const INODE: u64 = 256;

const VERSION: u8 = 3;
/// Feature: [`Manifest::extraneous`].
const DELETE: u8 = 1;
/// Feature: [`Manifest::chunks`].
const CHUNKS: u8 = 2;
/// Feature: a table of holes.
const HOLES: u8 = 4;
const MIN_ENTRY: usize = 6;

/// Maximum number of blocks in holes. The hash of each takes 33 bytes of memory, although a hole takes no space on a disk.
pub(crate) const MAX_VOID: u64 = 8 << 20;

/// The entries of a transfer, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    entries: Vec<Entry>,
    /// Treatment of files that receivers have in the directories of this manifest and that are no entries.
    pub extraneous: Extraneous,
    chunks: Option<Chunks>,
}

/// A file, directory, link or stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative path whose components are separated by `/`. The path need not be UTF-8.
    pub path: OsString,
    /// Kind of the entry.
    pub kind: Kind,
    /// Permission, set-user-ID, set-group-ID and sticky bits, at most [`MODE_BITS`]; 0 for a hard link.
    pub mode: u32,
    /// Time of modification in nanoseconds since 1970; 0 for a hard link.
    pub mtime: i64,
    /// Its owner, if the source states it.
    pub owner: Option<Arc<Owner>>,
    /// Extended attributes and access control lists, if the source states them.
    pub attributes: Option<Arc<Attributes>>,
    /// Ranges of a file that are zeros and take no space at the source, in order. If there is one, receivers store zeros of the
    /// file as holes.
    pub holes: Option<Arc<[Range<u64>]>>,
}

/// Kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A file of this many bytes.
    File {
        /// Number of bytes.
        size: u64,
    },
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink {
        /// The target of the link, unchanged.
        target: OsString,
    },
    /// A further name of a file.
    HardLink {
        /// Entry of the file, which precedes this one.
        to: u32,
    },
    /// A stream: a file whose size is unknown until it ends. It is the only entry of its manifest.
    Stream,
}

/// Numbers of entries by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of names of files: a file with several names counts several times.
    pub files: u64,
    /// Symbolic links.
    pub links: u64,
    /// Directories.
    pub directories: u64,
}

impl Counts {
    /// Creates counts of files alone.
    pub fn of_files(files: u64) -> Counts {
        Counts { files, ..Counts::default() }
    }
}

/// Checks a relative path of a [`Manifest`].
///
/// # Errors
/// The first error in the path.
pub fn check_path(path: impl AsRef<OsStr>) -> Result<(), PathError> {
    let path = path.as_ref().as_bytes();
    if path.starts_with(b"/") {
        return Err(PathError::Absolute);
    }
    if path.len() > MAX_PATH_LEN {
        return Err(PathError::TooLong);
    }
    for (n, name) in path.split(|byte| *byte == b'/').enumerate() {
        match name {
            b"" => return Err(PathError::Empty),
            b"." | b".." => return Err(PathError::Dots),
            _ if n == 0 && name == STATE_DIR.as_bytes() => return Err(PathError::Reserved),
            _ if name.len() > MAX_NAME_LEN => return Err(PathError::TooLong),
            _ if name.contains(&0) => return Err(PathError::Nul),
            _ => {}
        }
        if n > MAX_DEPTH {
            return Err(PathError::TooDeep);
        }
    }
    Ok(())
}

/// Paths of entries that are not directories, if they are prefixes of the current path; the longest prefix is the last element.
/// Paths are added in sorted order, so all paths with a common prefix are consecutive.
#[derive(Debug, Default)]
struct Leaves<'a>(Vec<&'a [u8]>);

impl<'a> Leaves<'a> {
    /// Returns the entry that is not a directory and is above `path` in the tree, if there is one. `path` must follow all added
    /// paths in sorted order.
    fn above(&mut self, path: &[u8]) -> Option<&'a [u8]> {
        // An entry sorts before all paths below it. Several leaves can be prefixes of `path`. Only after the longest leaf can
        // `path` continue with a slash, because after a shorter leaf it continues with bytes of the longest leaf.
        while self.0.pop_if(|leaf| !path.starts_with(leaf)).is_some() {}
        self.0.last().copied().filter(|leaf| path.get(leaf.len()) == Some(&b'/'))
    }

    /// Adds a path of an entry that is not a directory. Paths are added in sorted order.
    fn push(&mut self, path: &'a [u8]) {
        self.0.push(path);
    }
}

impl Manifest {
    /// Creates a manifest of entries in any order.
    ///
    /// # Errors
    /// A [`ManifestError`] with the number of the invalid entry after sorting.
    pub fn new(mut entries: Vec<Entry>) -> Result<Manifest, ManifestError> {
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let manifest = Manifest { entries, ..Manifest::default() };
        manifest.check()?;
        Ok(manifest)
    }

    /// Adds a chunk table, unless it is empty. The table must describe the files of this manifest.
    pub(crate) fn with_chunks(self, chunks: Chunks) -> Manifest {
        Manifest { chunks: Some(chunks).filter(|chunks| !chunks.all.is_empty()), ..self }
    }

    /// Returns the chunk table, if the source sent one.
    pub(crate) fn chunks(&self) -> Option<&Chunks> {
        self.chunks.as_ref()
    }

    /// Returns the entries, sorted by path.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the numbers of entries by kind.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for entry in &self.entries {
            match entry.kind {
                Kind::Dir => counts.directories += 1,
                Kind::Symlink { .. } => counts.links += 1,
                Kind::File { .. } | Kind::HardLink { .. } | Kind::Stream => counts.files += 1,
            }
        }
        counts
    }

    /// Returns the top-level names, in order.
    pub fn tops(&self) -> impl Iterator<Item = &OsStr> {
        let mut before = None;
        let tops = self.entries.iter().map(|entry| {
            let top = entry.path.as_bytes().split(|byte| *byte == b'/').next();
            OsStr::from_bytes(top.unwrap_or_default())
        });
        tops.filter(move |top| before.replace(*top) != Some(*top))
    }

    /// Returns the bytes of all files together.
    pub fn content_len(&self) -> u64 {
        // `Manifest::new` and `decode` check that the sum does not overflow.
        self.entries.iter().map(Entry::size).sum()
    }

    /// Returns the bytes of all files together that are not in holes.
    pub fn data_len(&self) -> u64 {
        let holes = self.entries.iter().flat_map(Entry::holes).map(|hole| hole.end - hole.start);
        self.content_len() - holes.sum::<u64>()
    }

    /// Returns the approximate number of bytes that all entries take on a disk in addition to their content. Each directory or
    /// link takes a disk block. Each file takes its inode, name, attributes and the unused rest of its last disk block.
    pub fn footprint(&self) -> u64 {
        let (mut bytes, mut before) = (0, &b""[..]);
        for entry in &self.entries {
            let path = entry.path.as_bytes();
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            let attributes = entry.attributes.as_ref().map_or(0, |set| set.bytes());
            let own = match entry.kind {
                // A directory with entries is counted by `entered`.
                Kind::Dir => 0,
                Kind::File { size } => INODE + size.next_multiple_of(DISK_BLOCK) - size,
                Kind::Symlink { .. } => DISK_BLOCK,
                Kind::HardLink { .. } | Kind::Stream => INODE,
            };
            bytes += own + (name.len() + attributes) as u64 + entered(before, path) as u64 * DISK_BLOCK;
            before = path;
        }
        let is_parent = |dir: &Entry, next: Option<&Entry>| {
            let rest = next.and_then(|next| next.path.as_bytes().strip_prefix(dir.path.as_bytes()));
            rest.is_some_and(|rest| rest.first() == Some(&b'/'))
        };
        let nexts = self.entries.iter().skip(1).map(Some).chain([None]);
        let empty = self.entries.iter().zip(nexts);
        let empty = empty.filter(|(entry, next)| entry.kind == Kind::Dir && !is_parent(entry, *next)).count();
        bytes + empty as u64 * DISK_BLOCK
    }

    /// Returns whether this is the manifest of a stream.
    pub fn is_stream(&self) -> bool {
        matches!(self.entries[..], [Entry { kind: Kind::Stream, .. }])
    }

    /// Returns the entries, so that a receiver can change their paths.
    fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    fn check(&self) -> Result<(), ManifestError> {
        if self.entries.len() > MAX_ENTRIES {
            return Err(ManifestError::TooMany(self.entries.len() as u64));
        }
        let (mut text, mut total, mut dirs, mut attributes) = (0usize, 0u64, 0usize, 0usize);
        let mut holes = 0usize;
        let mut leaves = Leaves::default();
        for (entry, e) in self.entries.iter().enumerate() {
            check_path(&e.path).map_err(|why| ManifestError::Path { entry, why })?;
            if entry > 0 && self.entries[entry - 1].path >= e.path {
                return Err(ManifestError::Order { entry });
            }
            let path = e.path.as_bytes();
            text = text.saturating_add(path.len()).saturating_add(self.check_kind(entry)?);
            total = total.checked_add(e.size()).filter(|&t| t < 1 << 63).ok_or(ManifestError::Sizes)?;
            if text > MAX_TEXT {
                return Err(ManifestError::TooMuchText);
            }
            holes += holes::check(entry, e)?;
            if holes > MAX_HOLES {
                return Err(ManifestError::TooManyHoles(holes as u64));
            }
            attributes += e.attributes.as_ref().map_or(0, |set| set.bytes());
            if attributes > MAX_ATTRIBUTES {
                return Err(ManifestError::TooManyAttributes);
            }
            // Counts the directories of `path` that do not occur in the preceding path. Each of them has no entry, or its entry
            // precedes this one and its path is `path` up to a slash.
            let before = entry.checked_sub(1).map_or(&b""[..], |before| self.entries[before].path.as_bytes());
            dirs += entered(before, path);
            if dirs > MAX_UNNAMED_DIRS + 2 * entry {
                return Err(ManifestError::TooManyDirs { entry });
            }
            if let Some(leaf) = leaves.above(path) {
                let above = String::from_utf8_lossy(leaf).into_owned();
                return Err(ManifestError::BelowFile { entry, above });
            }
            if e.kind != Kind::Dir {
                leaves.push(path);
            }
        }
        Ok(())
    }

    /// Checks an entry except for its path; returns the number of bytes of text in the checked part.
    fn check_kind(&self, entry: usize) -> Result<usize, ManifestError> {
        let e = &self.entries[entry];
        if e.mode & !MODE_BITS != 0 {
            return Err(ManifestError::Mode { entry, mode: e.mode.into() });
        }
        let owner = e.owner.as_ref().map_or(Ok(()), |owner| owner.check());
        let attributes = e.attributes.as_ref().map_or(Ok(()), |set| set.check());
        owner.and(attributes).map_err(|why| ManifestError::Metadata { entry, why })?;
        match &e.kind {
            Kind::Symlink { target } => {
                let target = target.as_bytes();
                if target.is_empty() || target.len() > MAX_PATH_LEN || target.contains(&0) {
                    return Err(ManifestError::Target { entry });
                }
                Ok(target.len())
            }
            Kind::Stream if self.entries.len() > 1 => Err(ManifestError::StreamNotAlone { entry }),
            Kind::HardLink { to } => {
                let to = self.entries[..entry].get(*to as usize);
                let is_file = to.is_some_and(|to| matches!(to.kind, Kind::File { .. }));
                let is_bare = (e.mode, e.mtime) == (0, 0) && e.owner.is_none() && e.attributes.is_none();
                if is_file && is_bare { Ok(0) } else { Err(ManifestError::HardLink { entry }) }
            }
            Kind::File { .. } | Kind::Dir | Kind::Stream => Ok(0),
        }
    }

    /// Returns whether an entry needs version 2.
    fn needs_version_2(&self) -> bool {
        let is_text = |text: &OsString| std::str::from_utf8(text.as_bytes()).is_ok();
        !self.entries.iter().all(|e| {
            let is_known = match &e.kind {
                Kind::Symlink { target } => is_text(target),
                Kind::HardLink { .. } => false,
                Kind::File { .. } | Kind::Dir | Kind::Stream => true,
            };
            let is_bare = e.owner.is_none() && e.attributes.is_none();
            is_known && is_bare && e.mode & !PERMISSIONS == 0 && is_text(&e.path)
        })
    }

    /// Encodes the manifest.
    pub fn encode(&self) -> Vec<u8> {
        let delete = if self.extraneous == Extraneous::Delete { DELETE } else { 0 };
        let chunks = if self.chunks.is_some() { CHUNKS } else { 0 };
        let has_holes = self.entries.iter().any(|entry| entry.holes.is_some());
        let features = delete | chunks | if has_holes { HOLES } else { 0 };
        let version = if features != 0 { 3 } else { 1 + u8::from(self.needs_version_2()) };
        let mut tables = (version > 1).then(WriteTables::default);
        let mut out = vec![version];
        if version == 3 {
            out.push(features);
        }
        put_number(&mut out, self.entries.len() as u64);
        let mut before: &[u8] = &[];
        for entry in &self.entries {
            let path = entry.path.as_bytes();
            let shared = path.iter().zip(before).take_while(|(a, b)| a == b).count();
            put_number(&mut out, shared as u64);
            put_text(&mut out, &path[shared..]);
            out.push(match entry.kind {
                Kind::File { .. } => 0,
                Kind::Dir => 1,
                Kind::Symlink { .. } => 2,
                Kind::Stream => 3,
                Kind::HardLink { .. } => 4,
            });
            put_number(&mut out, entry.mode.into());
            put_number(&mut out, ((entry.mtime << 1) ^ (entry.mtime >> 63)) as u64);
            match &entry.kind {
                Kind::File { size } => put_number(&mut out, *size),
                Kind::Symlink { target } => put_text(&mut out, target.as_bytes()),
                Kind::HardLink { to } => put_number(&mut out, (*to).into()),
                Kind::Dir | Kind::Stream => {}
            }
            if let Some(tables) = &mut tables {
                tables.put(&mut out, entry);
            }
            before = path;
        }
        if let Some(chunks) = &self.chunks {
            chunks.put(&mut out);
        }
        holes::put(&mut out, &self.entries);
        out
    }

    /// Decodes a manifest. Each manifest has exactly one encoding.
    ///
    /// # Errors
    /// A [`ManifestError`] with the error and its position.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let mut from = Reader { bytes, at: 0 };
        let version = from.byte()?;
        if !(1..=VERSION).contains(&version) {
            return Err(ManifestError::Version(version));
        }
        let mut tables = (version > 1).then(ReadTables::default);
        let features = if version == 3 { from.byte()? } else { 0 };
        if features & !(DELETE | CHUNKS | HOLES) != 0 {
            return Err(ManifestError::Features(features));
        }
        let count = from.number()?;
        if count > MAX_ENTRIES as u64 || count > (bytes.len() / MIN_ENTRY) as u64 {
            return Err(ManifestError::TooMany(count));
        }
        let mut entries = Vec::with_capacity(count as usize); // bounded by the bytes there are
        let mut path = Vec::new();
        let mut text = 0;
        for entry in 0..count as usize {
            let (shared, at) = (from.number()?, from.at);
            let shared = usize::try_from(shared).ok().filter(|&s| s <= path.len());
            let Some(shared) = shared else { return Err(ManifestError::Number { at }) };
            let rest = from.text()?;
            // The shared prefix must have its maximum length, so that there is only one encoding.
            if shared < path.len() && rest.first() == Some(&path[shared]) {
                return Err(ManifestError::Number { at });
            }
            path.truncate(shared);
            path.extend_from_slice(rest);
            text += path.len();
            if text > MAX_TEXT {
                return Err(ManifestError::TooMuchText);
            }
            entries.push(from.entry(entry, &path, tables.as_mut())?);
        }
        let has_chunks = features & CHUNKS != 0;
        let chunks = has_chunks.then(|| Chunks::read(&mut from, &entries)).transpose()?;
        if features & HOLES != 0 {
            holes::read(&mut from, &mut entries)?;
        }
        if from.at < bytes.len() {
            return Err(ManifestError::Trailing(bytes.len() - from.at));
        }
        let extraneous = if features & DELETE != 0 { Extraneous::Delete } else { Extraneous::Keep };
        let is_empty = chunks.as_ref().is_some_and(|chunks| chunks.all.is_empty());
        let manifest = Manifest { entries, extraneous, chunks };
        manifest.check()?;
        let is_unneeded = (version == 3 && features == 0) || (version == 2 && !manifest.needs_version_2());
        if is_unneeded || is_empty {
            return Err(ManifestError::Unneeded(version));
        }
        Ok(manifest)
    }
}

/// Returns the number of directories in `path` that do not occur in `before`, the path of the preceding entry.
fn entered(before: &[u8], path: &[u8]) -> usize {
    let shared = before.iter().zip(path).take_while(|(a, b)| a == b).count();
    path[shared..].iter().filter(|byte| **byte == b'/').count()
}

impl Entry {
    /// Creates an entry without owner and attributes.
    pub fn new(path: impl Into<OsString>, kind: Kind, mode: u32, mtime: i64) -> Entry {
        Entry { path: path.into(), kind, mode, mtime, owner: None, attributes: None, holes: None }
    }

    /// Returns the holes of a file, in order.
    pub fn holes(&self) -> &[Range<u64>] {
        self.holes.as_deref().unwrap_or_default()
    }

    /// Returns the path for display. Bytes that are not UTF-8 are replaced. Terminal control characters, including line ends, are
    /// written as `\x1b` and so on.
    pub fn name(&self) -> Cow<'_, str> {
        shown(&self.path)
    }

    /// Returns whether the entry names a file or a stream.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File { .. } | Kind::HardLink { .. } | Kind::Stream)
    }

    /// Returns the size of a file in bytes; 0 for every other kind of entry, including hard links and streams.
    pub fn size(&self) -> u64 {
        match self.kind {
            Kind::File { size } => size,
            Kind::Dir | Kind::Symlink { .. } | Kind::HardLink { .. } | Kind::Stream => 0,
        }
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, ManifestError> {
        let byte = *self.bytes.get(self.at).ok_or(ManifestError::Truncated { at: self.at })?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads 8 bytes, least significant first.
    fn word(&mut self) -> Result<u64, ManifestError> {
        let truncated = ManifestError::Truncated { at: self.bytes.len() };
        let word = self.bytes[self.at..].first_chunk().ok_or(truncated)?;
        self.at += word.len();
        Ok(u64::from_le_bytes(*word))
    }

    fn number(&mut self) -> Result<u64, ManifestError> {
        let at = self.at;
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) || (byte == 0 && shift > 0) {
                return Err(ManifestError::Number { at });
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn text(&mut self) -> Result<&'a [u8], ManifestError> {
        let len = self.number()?;
        let truncated = ManifestError::Truncated { at: self.bytes.len() };
        let end = usize::try_from(len).ok().and_then(|len| self.at.checked_add(len));
        let text = end.and_then(|end| self.bytes.get(self.at..end)).ok_or(truncated)?;
        self.at += text.len();
        Ok(text)
    }

    fn entry(
        &mut self,
        entry: usize,
        path: &[u8],
        tables: Option<&mut ReadTables>,
    ) -> Result<Entry, ManifestError> {
        let is_first = tables.is_none();
        let name = |bytes: &[u8]| match is_first && std::str::from_utf8(bytes).is_err() {
            true => Err(ManifestError::NotUtf8 { entry }),
            false => Ok(OsString::from_vec(bytes.to_vec())),
        };
        let path = name(path)?;
        let kind = self.byte()?;
        let stated = self.number()?;
        let bits = if is_first { PERMISSIONS } else { MODE_BITS };
        let mode = u32::try_from(stated).ok().filter(|mode| mode & !bits == 0);
        let mode = mode.ok_or(ManifestError::Mode { entry, mode: stated })?;
        let zigzag = self.number()?;
        let mtime = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        let kind = match kind {
            0 => Kind::File { size: self.number()? },
            1 => Kind::Dir,
            2 => Kind::Symlink { target: name(self.text()?)? },
            3 => Kind::Stream,
            4 if !is_first => {
                let to = u32::try_from(self.number()?).map_err(|_| ManifestError::HardLink { entry })?;
                Kind::HardLink { to }
            }
            _ => return Err(ManifestError::Kind { entry, kind }),
        };
        let mut read = Entry::new(path, kind, mode, mtime);
        if let Some(tables) = tables {
            tables.read(self, entry, &mut read)?;
        }
        Ok(read)
    }
}

/// Entry point for fuzzers: checks that decoding does not panic, and that an accepted manifest has only one encoding.
#[cfg(any(test, fuzzing))]
pub fn fuzz(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes) {
        assert_eq!(manifest.encode(), bytes, "a manifest has one form");
        for entry in manifest.entries() {
            assert_eq!(check_path(&entry.path), Ok(()));
        }
    }
}
