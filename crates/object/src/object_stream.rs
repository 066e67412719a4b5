//! Reading files, trees and streams at the source.

use super::chunking::{Delta, with_chunks};
use super::error::{Change, ObjectError};
use super::geometry::{Geometry, TransferId};
use super::layout::Layout;
use super::links::{StrayLinks, stray_links};
use super::manifest::{Entry, Kind, Manifest, check_path};
use super::memory::MemoryFile;
use super::policy::Extraneous;
use super::spool::Spool;
use super::walk::{LeftOut, Reading, Skipped, Walk, mtime, top_name};
use super::withdrawn::Withdrawal;
use crate::host::block_device;
use crate::host::direct::Direct;
use crate::host::disk::{Disk, SYSTEM};
use crate::host::sys::OpenFiles;
use rustix::fs::{Advice, OFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of bytes from which a device is read past the page cache. Files with fewer bytes in a block need no look at their kind.
const DIRECT_FROM: usize = 16 << 10;

/// An object stream at the source: a manifest and the content of its files, read block by block.
#[derive(Debug)]
pub struct ObjectStream {
    manifest: Manifest,
    manifest_bytes: Vec<u8>,
    geometry: Geometry,
    transfer: TransferId,
    layout: Arc<Layout>,
    content: StreamContent,
    skipped: Vec<Skipped>,
    left_out: Vec<LeftOut>,
    notes: Vec<String>,
    withdrawals: Withdrawals,
    disk: Disk,
}

/// Files that changed or could not be read while they were sent.
#[derive(Debug, Default)]
struct Withdrawals {
    /// Whether withdrawals are allowed. If not, a changed file is an error. At least one file must not be withdrawn.
    allowed: bool,
    entries: BTreeSet<u32>,
    /// Withdrawals that the caller has not taken yet.
    fresh: Vec<Withdrawal>,
}

#[derive(Debug)]
enum StreamContent {
    /// Top-level names and their paths.
    Files {
        tops: BTreeMap<OsString, PathBuf>,
        open: OpenFiles,
        direct: Direct,
    },
    Stream(Spool),
    /// Content by name.
    Memory(BTreeMap<OsString, Arc<[u8]>>),
}

/// Result of reading a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockRead {
    /// The block's data is in the buffer.
    Data,
    /// The stream ended before this block. From now on, the geometry contains the length of the stream.
    End,
}

impl ObjectStream {
    /// Reads the names, sizes, modes and times of these files and trees, in a fixed order. A given path that is a link is
    /// followed. Links below the given paths are sent as links.
    ///
    /// # Errors
    /// As [`ObjectStream::open_with`].
    pub fn open(
        paths: &[PathBuf],
        symbol_size: u16,
        symbols_per_block: u16,
    ) -> Result<ObjectStream, ObjectError> {
        ObjectStream::open_with(paths, &Reading::default(), symbol_size, symbols_per_block)
    }

    /// Like [`ObjectStream::open`], but `reading` selects further metadata and the treatment of files. By default, files that
    /// cannot be read or sent are left out ([`ObjectStream::left_out`]).
    ///
    /// # Errors
    /// An [`ObjectError`] with the path that cannot be read or sent, if no file may be left out or if all files would be left
    /// out.
    pub fn open_with(
        paths: &[PathBuf],
        reading: &Reading,
        symbol_size: u16,
        symbols_per_block: u16,
    ) -> Result<ObjectStream, ObjectError> {
        if paths.is_empty() {
            return Err(ObjectError::Nothing);
        }
        let names = paths.iter().filter_map(|path| top_name(path).ok()).collect();
        let block = u64::from(symbol_size) * u64::from(symbols_per_block);
        let mut walk = Walk::new(reading, names, block);
        let mut tops: BTreeMap<OsString, PathBuf> = BTreeMap::new();
        for path in paths {
            let name = match top_name(path) {
                Ok(name) => name,
                Err(error) => {
                    walk.leave_out(path, error)?;
                    continue;
                }
            };
            if let Some(first) = tops.insert(name.clone(), path.clone()) {
                let name = name.to_string_lossy().into_owned();
                return Err(ObjectError::NameClash { name, first, second: path.clone() });
            }
            match path.metadata() {
                Ok(meta) if meta.file_type().is_block_device() => {
                    walk.device(path, name, &meta).or_else(|error| walk.leave_out(path, error))?;
                }
                Ok(meta) if !meta.is_file() && !meta.is_dir() => {
                    walk.leave_out(path, ObjectError::Special { path: path.clone() })?;
                }
                Ok(meta) => walk.visit(path, name, &meta)?,
                Err(e) => walk.leave_out(path, ObjectError::io(path, "read", e))?,
            }
        }
        let found = walk.found()?;
        let mut manifest = Manifest::new(found.entries)?;
        let mut notes = found.notes;
        if reading.extraneous == Extraneous::Delete {
            let obstacle = match () {
                () if manifest.counts().directories == 0 => Some("the content has no directory"),
                () if !found.left_out.is_empty() => Some("some files of this host are not sent"),
                () => None,
            };
            match obstacle {
                None => manifest.extraneous = Extraneous::Delete,
                Some(why) => notes.push(format!("receivers delete no files, because {why}")),
            }
        }
        if reading.delta == Delta::On {
            manifest = with_chunks_of_files(manifest, &tops);
        }
        let content = StreamContent::Files { tops, open: OpenFiles::default(), direct: Direct::default() };
        let mut object = ObjectStream::new(manifest, content, symbol_size, symbols_per_block)?;
        (object.skipped, object.left_out, object.notes) = (found.skipped, found.left_out, notes);
        Ok(object)
    }

    /// Creates an object stream of one file, called `name`, that contains the bytes of `reader`. `started` (ns since 1970)
    /// distinguishes this stream from other streams of the same name. The bytes are stored in a temporary file in `spool_dir`.
    ///
    /// # Errors
    /// An [`ObjectError`] when the name is not allowed or `spool_dir` cannot store the stream.
    pub fn from_reader(
        reader: Box<dyn Read + Send>,
        name: &str,
        started: i64,
        spool_dir: &Path,
        symbol_size: u16,
        symbols_per_block: u16,
    ) -> Result<ObjectStream, ObjectError> {
        check_name(name)?;
        let entry = Entry::new(name, Kind::Stream, 0o644, started);
        let content = StreamContent::Stream(Spool::new(reader, spool_dir)?);
        ObjectStream::new(Manifest::new(vec![entry])?, content, symbol_size, symbols_per_block)
    }

    /// Creates an object stream of these files; `started` (ns since 1970) is their time of modification.
    ///
    /// # Errors
    /// An [`ObjectError`] when `files` is empty, or a name is not allowed or occurs twice.
    pub fn in_memory(
        files: &[MemoryFile],
        started: i64,
        symbol_size: u16,
        symbols_per_block: u16,
    ) -> Result<ObjectStream, ObjectError> {
        if files.is_empty() {
            return Err(ObjectError::Nothing);
        }
        let entry = |file: &MemoryFile| {
            Entry::new(&file.name, Kind::File { size: file.bytes.len() as u64 }, 0o644, started)
        };
        for file in files {
            check_name(&file.name)?;
        }
        let manifest = Manifest::new(files.iter().map(entry).collect())?;
        let content = files.iter().map(|file| (file.name.clone().into(), Arc::clone(&file.bytes))).collect();
        ObjectStream::new(manifest, StreamContent::Memory(content), symbol_size, symbols_per_block)
    }

    fn new(
        manifest: Manifest,
        content: StreamContent,
        symbol_size: u16,
        symbols_per_block: u16,
    ) -> Result<ObjectStream, ObjectError> {
        let manifest_bytes = manifest.encode();
        let whole = manifest_bytes.len() as u64 + manifest.content_len();
        let geometry = Geometry {
            stream_len: (!manifest.is_stream()).then_some(whole),
            manifest_len: u32::try_from(manifest_bytes.len()).unwrap_or(u32::MAX), // refused just below
            symbol_size,
            symbols_per_block,
        };
        geometry.check()?;
        let layout = Arc::new(Layout::new(&manifest, &geometry)?);
        let transfer = TransferId::of(&manifest_bytes, &geometry);
        let (skipped, left_out, notes) = (Vec::new(), Vec::new(), Vec::new());
        Ok(ObjectStream {
            manifest,
            manifest_bytes,
            geometry,
            transfer,
            layout,
            content,
            skipped,
            left_out,
            notes,
            withdrawals: Withdrawals::default(),
            disk: Disk::default(),
        })
    }

    /// Creates an object stream with this manifest of one tree, right or wrong.
    #[cfg(test)]
    pub(crate) fn of_manifest(
        manifest: Manifest,
        tree: PathBuf,
        symbol_size: u16,
        symbols: u16,
    ) -> ObjectStream {
        let tops = BTreeMap::from([(top_name(&tree).expect("it has a name"), tree)]);
        let content = StreamContent::Files { tops, open: OpenFiles::default(), direct: Direct::default() };
        ObjectStream::new(manifest, content, symbol_size, symbols).expect("it is sound")
    }

    /// Removes the content, so that only the manifest is sent, for a dry run. The geometry and the identifier of the transfer
    /// change.
    #[must_use]
    pub fn without_content(self) -> ObjectStream {
        let manifest_len = u64::from(self.geometry.manifest_len);
        let geometry = Geometry { stream_len: Some(manifest_len), ..self.geometry };
        let transfer = TransferId::of(&self.manifest_bytes, &geometry);
        let (layout, content) = (Layout::without_content(manifest_len), BTreeMap::new());
        let (layout, content) = (Arc::new(layout), StreamContent::Memory(content));
        ObjectStream { geometry, transfer, layout, content, ..self }
    }

    /// Sets the disk from which files are read.
    pub fn on(self, disk: &Disk) -> ObjectStream {
        ObjectStream { disk: disk.clone(), ..self }
    }

    /// Returns the disk from which files are read.
    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Returns the division of the object stream into blocks. If the content is read from a pipe, its length is known only after
    /// `read_block` has returned [`BlockRead::End`] or a block shorter than the others.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns the identifier of the transfer.
    pub fn transfer(&self) -> TransferId {
        self.transfer
    }

    /// Returns the manifest of the content.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the chunks of the files in the chunk table, as hashes and lengths.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let chunks = self.manifest.chunks().into_iter().flat_map(|chunks| &chunks.all);
        chunks.map(|chunk| (chunk.hash, chunk.len))
    }

    /// Returns the entries that are skipped.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Returns the entries that are left out because of errors, sorted by path.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Returns descriptions of metadata that is missing from sent entries.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the symbolic links whose targets receivers do not get.
    pub fn stray_links(&self) -> StrayLinks {
        stray_links(self.manifest.entries())
    }

    /// Reads the data of block `index` into `buf`, whose previous content is discarded and whose memory is reused. For a stream,
    /// waits until the block is complete or the stream has ended.
    ///
    /// # Errors
    /// [`ObjectError::Changed`] when a file has changed, and any error of a system call.
    pub fn read_block(&mut self, index: u32, buf: &mut Vec<u8>) -> Result<BlockRead, ObjectError> {
        let range = self.geometry.range(index);
        if range.is_empty() {
            let blocks = self.geometry.blocks().unwrap_or(u32::MAX);
            buf.clear();
            return match self.content {
                StreamContent::Stream(_) => Ok(BlockRead::End),
                StreamContent::Files { .. } | StreamContent::Memory(_) => {
                    Err(ObjectError::NoSuchBlock { index, blocks })
                }
            };
        }
        buf.resize((range.end - range.start) as usize, 0);
        let manifest_len = self.manifest_bytes.len() as u64;
        let from_manifest = (range.end.min(manifest_len)).saturating_sub(range.start) as usize;
        let (head, rest) = buf.split_at_mut(from_manifest);
        head.copy_from_slice(&self.manifest_bytes[range.start.min(manifest_len) as usize..][..from_manifest]);
        match &mut self.content {
            StreamContent::Files { .. } | StreamContent::Memory(_) => {
                let mut rest = rest;
                for piece in Arc::clone(&self.layout).pieces(range) {
                    let (into, after) = rest.split_at_mut(piece.len);
                    rest = after;
                    if self.withdrawals.entries.contains(&piece.entry) {
                        into.fill(0);
                    } else if let Err(error) = self.read_file(piece.entry, piece.offset, into) {
                        let path = self.path_of(&self.manifest.entries()[piece.entry as usize]);
                        self.withdrawals.add((piece.entry, path), error, &self.layout)?;
                        into.fill(0);
                    }
                }
            }
            StreamContent::Stream(spool) => {
                let offset = range.start.max(manifest_len) - manifest_len;
                let len = spool.read_at(rest, offset)?;
                self.geometry.stream_len = spool.total().map(|total| manifest_len + total);
                buf.truncate(from_manifest + len);
                if buf.is_empty() {
                    return Ok(BlockRead::End);
                }
            }
        }
        Ok(BlockRead::Data)
    }

    /// Reads from the file with this number in the manifest. A stream is one file.
    ///
    /// # Errors
    /// As [`ObjectStream::read_block`].
    pub(crate) fn read_file(&mut self, number: u32, offset: u64, into: &mut [u8]) -> Result<(), ObjectError> {
        let entry = &self.manifest.entries()[number as usize];
        match &mut self.content {
            StreamContent::Files { tops, open, direct } => {
                let file = open.get(number, || open_source(tops, entry))?;
                read_piece((&self.disk, file, direct), offset, into, || source_path(tops, entry), entry)
            }
            StreamContent::Memory(files) => {
                into.copy_from_slice(&files[&entry.path][offset as usize..][..into.len()]);
                Ok(())
            }
            StreamContent::Stream(spool) => spool.read_at(into, offset).map(|_| ()),
        }
    }
}

impl Withdrawals {
    /// Withdraws this file.
    ///
    /// # Errors
    /// `error`, when withdrawal is not allowed, no other file is left, or the file did not cause the error.
    fn add(
        &mut self,
        (entry, path): (u32, PathBuf),
        error: ObjectError,
        layout: &Layout,
    ) -> Result<(), ObjectError> {
        let is_files = !matches!(error, ObjectError::TooManyOpenFiles { .. });
        if !self.allowed || !is_files || self.entries.len() + 1 >= layout.count() {
            return Err(error);
        }
        if self.entries.insert(entry) {
            self.fresh.push(Withdrawal { entry, path, error });
        }
        Ok(())
    }
}

impl ObjectStream {
    /// Allows the withdrawal of files that change or cannot be read, except the last file that is left. The bytes of a withdrawn
    /// file count as zeros.
    pub fn allow_withdrawals(&mut self) {
        self.withdrawals.allowed = matches!(self.content, StreamContent::Files { .. });
    }

    /// Takes the files that were withdrawn since the previous call.
    pub(crate) fn take_withdrawals(&mut self) -> Vec<Withdrawal> {
        std::mem::take(&mut self.withdrawals.fresh)
    }

    /// Returns the number of withdrawn files.
    pub(crate) fn withdrawn(&self) -> usize {
        self.withdrawals.entries.len()
    }

    /// Returns the positions of files in the object stream.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Withdraws all files that have bytes in block `index`, because the block has different content than at its first read.
    /// Sizes and times of the files have not changed.
    ///
    /// # Errors
    /// [`ObjectError::Changed`] or [`ObjectError::ChangedOneOf`] when withdrawal is not allowed or no other file is left.
    pub(crate) fn withdraw_block(&mut self, index: u32) -> Result<(), ObjectError> {
        let pieces = self.layout.pieces(self.geometry.range(index)).map(|piece| piece.entry);
        let entries: Vec<u32> = pieces.filter(|entry| !self.withdrawals.entries.contains(entry)).collect();
        if !self.withdrawals.allowed || self.withdrawn() + entries.len() >= self.layout.count() {
            return Err(self.changed(index));
        }
        for entry in entries {
            let path = self.path_of(&self.manifest.entries()[entry as usize]);
            let error = ObjectError::Changed { path: path.clone(), change: Change::Content };
            self.withdrawals.add((entry, path), error, &self.layout)?;
        }
        Ok(())
    }

    pub(crate) fn path_of(&self, entry: &Entry) -> PathBuf {
        match &self.content {
            StreamContent::Files { tops, .. } => source_path(tops, entry),
            StreamContent::Stream(_) | StreamContent::Memory(_) => PathBuf::from(&entry.path),
        }
    }
}

/// Checks the name of content that has no path at the source. Receivers must be able to use the name.
fn check_name(name: &str) -> Result<(), ObjectError> {
    check_path(name).map_err(|why| ObjectError::Name { path: name.into(), why })
}

impl ObjectStream {
    /// Returns the error for block `index`, which has different content than at its first read. The error names the files with
    /// bytes in the block.
    pub(crate) fn changed(&self, index: u32) -> ObjectError {
        let entries = self.manifest.entries();
        let in_block: Vec<&Entry> = (self.layout.pieces(self.geometry.range(index)))
            .map(|piece| &entries[piece.entry as usize])
            .collect();
        match in_block.as_slice() {
            [first, .., last] => ObjectError::ChangedOneOf {
                first: self.path_of(first),
                last: self.path_of(last),
                files: in_block.len(),
            },
            // A block without file content comes from the manifest in memory and does not change.
            one => ObjectError::Changed {
                path: one.first().map_or_else(PathBuf::new, |entry| self.path_of(entry)),
                change: Change::Content,
            },
        }
    }
}

/// Returns the manifest with the chunks of its files.
fn with_chunks_of_files(manifest: Manifest, tops: &BTreeMap<OsString, PathBuf>) -> Manifest {
    let mut open: Option<(OsString, File)> = None;
    with_chunks(manifest, |entry, buf, at| {
        let file = match open.take().filter(|(path, _)| *path == entry.path) {
            Some((_, file)) => file,
            None => open_source(tops, entry)?,
        };
        let (_, file) = open.insert((entry.path.clone(), file));
        SYSTEM.release(file, entry.size(), at);
        SYSTEM.read_at(file, buf, at).map_err(|e| ObjectError::io(source_path(tops, entry), "read", e))
    })
}

fn source_path(tops: &BTreeMap<OsString, PathBuf>, entry: &Entry) -> PathBuf {
    let path = entry.path.as_bytes();
    match path.iter().position(|byte| *byte == b'/') {
        Some(at) => tops[OsStr::from_bytes(&path[..at])].join(OsStr::from_bytes(&path[at + 1..])),
        None => tops[&entry.path].clone(),
    }
}

fn open_source(tops: &BTreeMap<OsString, PathBuf>, entry: &Entry) -> Result<File, ObjectError> {
    let path = source_path(tops, entry);
    // Opening must not block if the file was replaced by a pipe.
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(&path);
    let file = file.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => ObjectError::Changed { path: path.clone(), change: Change::Gone },
        _ => ObjectError::io(&path, "read", e),
    })?;
    check_unchanged(&file, &path, entry)?;
    // The call is only advice to the kernel: if it fails, the file can still be read.
    rustix::fs::fadvise(&file, 0, None, Advice::Sequential).ok();
    Ok(file)
}

fn check_unchanged(file: &File, path: &Path, entry: &Entry) -> Result<(), ObjectError> {
    let now = file.metadata().map_err(|e| ObjectError::io(path, "read", e))?;
    let len = block_device::len(file, &now).map_err(|e| ObjectError::io(path, "read its size", e))?;
    let change = if !now.is_file() && !now.file_type().is_block_device() {
        Change::Replaced
    } else if len != entry.size() {
        Change::Size { before: entry.size(), now: len }
    } else if mtime(&now) != entry.mtime {
        Change::Modified
    } else {
        return Ok(());
    };
    Err(ObjectError::Changed { path: path.to_path_buf(), change })
}

fn read_piece(
    (disk, file, direct): (&Disk, &File, &mut Direct),
    offset: u64,
    into: &mut [u8],
    path: impl Fn() -> PathBuf,
    entry: &Entry,
) -> Result<(), ObjectError> {
    let is_device = || file.metadata().is_ok_and(|about| about.file_type().is_block_device());
    let have = match into.len() >= DIRECT_FROM && is_device() {
        true => direct.read((disk, file), into, offset),
        false => disk.read_at(file, into, offset),
    };
    let have = have.map_err(|e| ObjectError::io(path(), "read", e))?;
    disk.release(file, entry.size(), offset);
    let unchanged = check_unchanged(file, &path(), entry);
    match unchanged {
        Ok(()) if have < into.len() => {
            let change = Change::Size { before: entry.size(), now: offset + have as u64 };
            Err(ObjectError::Changed { path: path(), change })
        }
        other => other,
    }
}
