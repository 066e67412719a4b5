//! Search for content of a transfer in files of this host: for whole files, and for chunks of files.

use super::Known;
use crate::chunking::{READ, cut};
use crate::error::ObjectError;
use crate::file_work::FileWork;
use crate::host::disk::Disk;
use crate::manifest::chunks::{Chunk, ChunkSizes};
use crate::manifest::{Entry, STATE_DIR};
use crate::walk::mtime;
use rustix::fs::{Mode, OFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType};
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Files of this host that may have content of a transfer.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Paths and sizes, in the order of the search.
    files: Vec<(PathBuf, u64)>,
    /// Files by name, size and time of modification.
    same: BTreeMap<(OsString, u64, i64), usize>,
}

impl Candidates {
    /// Lists the given files and block devices, and all regular files below the given directories. Links below the directories
    /// are not followed. Returns a warning for each path that cannot be read.
    pub(super) fn list(paths: &[PathBuf]) -> (Candidates, Vec<String>) {
        let (mut found, mut warnings) = (Candidates::default(), Vec::new());
        for path in paths {
            let listed = path.canonicalize().and_then(|real| found.add(real));
            warnings.extend(
                listed.err().map(|e| format!("{}: {e}; no content from it is reused", path.display())),
            );
        }
        (found, warnings)
    }

    fn add(&mut self, path: PathBuf) -> std::io::Result<()> {
        let kind = path.metadata()?.file_type();
        if kind.is_block_device() {
            let size = File::open(&path)?.seek(SeekFrom::End(0))?;
            self.files.push((path, size));
            return Ok(());
        }
        match kind.is_dir() {
            true => drop(path.read_dir()?), // an unreadable directory is named, unlike directories below it
            false if kind.is_file() => {}
            false => return Err(std::io::Error::other("neither a file, a directory nor a block device")),
        }
        let mut pending = vec![(path, kind)];
        while let Some((path, kind)) = pending.pop() {
            if kind.is_dir() && path.file_name() != Some(OsStr::new(STATE_DIR)) {
                let mut below: Vec<(PathBuf, FileType)> = (path.read_dir().into_iter().flatten().flatten())
                    .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)))
                    .collect();
                // The order must not depend on the filesystem; otherwise runs of a simulated world would not be reproducible.
                below.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
                pending.append(&mut below);
            } else if kind.is_file()
                && let (Ok(about), Some(name)) = (path.symlink_metadata(), path.file_name())
            {
                self.same.insert((name.to_owned(), about.len(), mtime(&about)), self.files.len());
                self.files.push((path, about.len()));
            }
        }
        Ok(())
    }

    /// Opens the file that has the name, size and time of modification of an entry.
    pub(super) fn same(&self, entry: &Entry) -> Option<File> {
        let name = Path::new(&entry.path).file_name()?.to_owned();
        let file = open(&self.files[*self.same.get(&(name, entry.size(), entry.mtime))?].0)?;
        let about = file.metadata().ok()?;
        (about.is_file() && (about.len(), mtime(&about)) == (entry.size(), entry.mtime)).then_some(file)
    }

    /// Opens the files one after the other.
    pub(super) fn opened(&self) -> impl Iterator<Item = File> + '_ {
        self.files.iter().filter_map(|(path, _)| open(path))
    }

    /// Returns the number of bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, size)| size).sum()
    }
}

fn open(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from)
}

/// A place of a chunk in the files of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    chunk: Chunk,
    entry: u32,
    offset: u64,
}

/// Returns the range of a place in the object stream.
fn range_of(known: &Known, place: &Place) -> Option<Range<u64>> {
    let start = known.layout.range_of(place.entry)?.start + place.offset;
    Some(start..start + u64::from(place.chunk.len))
}

/// The chunks of a transfer that were not found so far.
pub(super) struct WantedChunks<'a> {
    known: &'a Known,
    sizes: ChunkSizes,
    /// Sorted by chunk.
    places: Vec<Place>,
    is_found: Vec<bool>,
    missing: usize,
    /// Files that were searched, by device and number.
    searched: BTreeSet<(u64, u64)>,
    /// Parts of the object stream that were found.
    pub(super) found: Vec<Range<u64>>,
}

impl<'a> WantedChunks<'a> {
    /// Lists the wanted chunks, given by their entry and their range in the object stream. Returns `None` if the manifest has no
    /// chunk table.
    pub(super) fn new(
        known: &'a Known,
        is_wanted: impl Fn(u32, &Range<u64>) -> bool,
    ) -> Option<WantedChunks<'a>> {
        let chunks = known.manifest.chunks()?;
        let mut places = Vec::new();
        chunks.each(known.manifest.entries(), |chunk, entry, offset| {
            let place = Place { chunk, entry, offset };
            if range_of(known, &place).is_some_and(|range| is_wanted(entry, &range)) {
                places.push(place);
            }
        });
        places.sort_unstable();
        let (is_found, missing) = (vec![false; places.len()], places.len());
        let (searched, found) = (BTreeSet::new(), Vec::new());
        Some(WantedChunks { known, sizes: chunks.sizes, places, is_found, missing, searched, found })
    }

    /// Returns the entries with wanted chunks.
    pub(super) fn entries(&self) -> BTreeSet<u32> {
        self.places.iter().map(|place| place.entry).collect()
    }

    /// Searches a file, and calls `write` with each wanted place (entry and offset) of each chunk in the file, and the chunk's
    /// bytes. A file that cannot be read is searched up to the error.
    ///
    /// # Errors
    /// The error of `write`, or [`ObjectError::Cancelled`].
    pub(super) fn search(
        &mut self,
        (disk, file): (&Disk, &File),
        (work, out): (&FileWork, &Path),
        mut write: impl FnMut(u32, u64, &[u8]) -> Result<(), ObjectError>,
    ) -> Result<(), ObjectError> {
        let Ok(about) = file.metadata() else { return Ok(()) };
        let is_searchable = about.is_file() || about.file_type().is_block_device();
        if self.missing == 0 || !is_searchable || !self.searched.insert((about.dev(), about.ino())) {
            return Ok(());
        }
        let read = |buf: &mut [u8], at: u64| {
            work.steps(buf.len().div_ceil(READ) as u64, out)?;
            Ok(disk.read_at(file, buf, at).unwrap_or(0))
        };
        cut(self.sizes, read, |chunk, bytes| self.take(chunk, bytes, &mut write))
    }

    fn take(
        &mut self,
        chunk: Chunk,
        bytes: &[u8],
        write: &mut impl FnMut(u32, u64, &[u8]) -> Result<(), ObjectError>,
    ) -> Result<(), ObjectError> {
        let first = self.places.partition_point(|place| place.chunk < chunk);
        let places = self.places[first..].iter().take_while(|place| place.chunk == chunk);
        for (place, is_found) in places.zip(&mut self.is_found[first..]) {
            if std::mem::replace(is_found, true) {
                break; // all places of the chunk were written
            }
            write(place.entry, place.offset, bytes)?;
            self.missing -= 1;
            self.found.extend(range_of(self.known, place));
        }
        Ok(())
    }
}
