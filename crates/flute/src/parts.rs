//! Parts of incomplete files: their location, and the record of their symbols, from which a later session continues.
//!
//! The name of a part depends on the content of its file, so that the next session with the same file finds the part. The record
//! may be older than the part, but never lists missing symbols. When the file is complete, its MD5 shows whether it is correct.

use crate::codec::{Oti, Params};
use faircast_transport::object::{
    DIR, ObjectError, PARTS_PREFIX, STATE_DIR, SYSTEM, Tree, open_or_create_dir,
};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The first bytes of a record.
const MAGIC: [u8; 8] = *b"fcalc-1\n";

/// Maximum number of symbols of a file whose part is stored for later sessions: 95 GB in packets of Ethernet, and 8 MB of record.
const MAX_RECORDED: u64 = 1 << 26;

/// The output directory.
#[derive(Debug)]
pub(super) struct OutputDirectory {
    pub(super) path: PathBuf,
    out: OwnedFd,
    /// Directory of incomplete files.
    parts: OwnedFd,
    /// Prefix of the names of parts that only this receiver can use.
    prefix: String,
}

/// A file of the table with its MD5. All sessions with the same content share this identity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity<'a> {
    pub path: &'a str,
    pub md5: &'a [u8; 16],
    pub oti: &'a Oti,
}

/// An incomplete file.
#[derive(Debug)]
pub(super) struct Part {
    pub file: File,
    pub names: PartNames,
}

/// The names of a part and, if it is stored for later sessions, of its record.
#[derive(Debug)]
pub(super) struct PartNames {
    part: String,
    record: Option<String>,
}

/// The source symbols that the part of a file contains.
#[derive(Debug)]
pub(super) struct Record {
    symbols: u64,
    bits: Vec<u8>,
}

impl OutputDirectory {
    /// Opens or creates the directory.
    pub fn open(path: &Path, random: u64) -> Result<OutputDirectory, ObjectError> {
        let failed = |doing| move |error: rustix::io::Errno| ObjectError::io(path, doing, error);
        std::fs::create_dir_all(path)
            .map_err(|error| ObjectError::io(path, "create this directory", error))?;
        let out = rustix::fs::open(path, DIR, Mode::empty()).map_err(failed("open this directory"))?;
        let state = path.join(STATE_DIR);
        let parts = open_or_create_dir(&SYSTEM, &out, STATE_DIR, Mode::RWXU, &state)?;
        Ok(OutputDirectory {
            path: path.to_path_buf(),
            out,
            parts,
            prefix: format!("{PARTS_PREFIX}{random:016x}"),
        })
    }

    /// Gives a complete file its final name, replacing an earlier object of this name.
    pub fn publish(&self, names: &PartNames, path: &str) -> Result<(), ObjectError> {
        let mut tree = Tree::new(&SYSTEM, &self.out, &self.path);
        let (above, name) = tree.place(path)?;
        rustix::fs::renameat(&self.parts, names.part(), above, name).map_err(|error| {
            ObjectError::io(self.path.join(path), "move this file to its final name", error)
        })?;
        names.discard(self);
        Ok(())
    }
}

/// Removes the directory of parts if it is empty.
impl Drop for OutputDirectory {
    fn drop(&mut self) {
        rustix::fs::unlinkat(self.out.as_fd(), STATE_DIR, AtFlags::REMOVEDIR).ok();
    }
}

impl Identity<'_> {
    /// Returns a number that is the same for the same content with the same division into symbols.
    fn number(&self) -> u64 {
        let mut hasher = blake3::Hasher::new_derive_key("faircast: part of a file over ALC");
        hasher.update(&(self.path.len() as u64).to_be_bytes()).update(self.path.as_bytes()).update(self.md5);
        hasher.update(&self.oti.transfer_length.to_be_bytes()).update(&self.oti.symbol_size.to_be_bytes());
        let cut = match self.oti.params {
            Params::NoCode { max_block } => [0, max_block, 0],
            Params::ReedSolomon { max_block, max_symbols } => [1, max_block.into(), max_symbols.into()],
            Params::RaptorQ { blocks, sub_blocks, .. } => [2, blocks.into(), sub_blocks.into()],
            Params::Raptor { blocks, sub_blocks, .. } => [3, blocks.into(), sub_blocks.into()],
        };
        cut.iter().for_each(|number: &u32| _ = hasher.update(&number.to_be_bytes()));
        let hash = hasher.finalize();
        u64::from_be_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
    }
}

impl PartNames {
    fn stored(identity: &Identity<'_>) -> PartNames {
        let number = identity.number();
        let name = |what: u8| format!("{PARTS_PREFIX}{number:016x}-{what}");
        PartNames { part: name(0), record: Some(name(1)) }
    }

    pub fn part(&self) -> &str {
        &self.part
    }

    /// Returns whether a later session can find the part.
    pub fn is_stored(&self) -> bool {
        self.record.is_some()
    }

    /// Removes the files of these names.
    pub fn discard(&self, place: &OutputDirectory) {
        for name in std::iter::once(&self.part).chain(&self.record) {
            rustix::fs::unlinkat(&place.parts, name, AtFlags::empty()).ok();
        }
    }

    /// Writes the record in place of an older one. A part that only this receiver can use has no record.
    pub fn write(&self, place: &OutputDirectory, record: &Record) -> Result<(), ObjectError> {
        let Some(name) = &self.record else { return Ok(()) };
        let (new, path) = (format!("{name}1"), place.path.join(STATE_DIR).join(name));
        let failed = |error: Errno| ObjectError::io(&path, "write this file", error);
        rustix::fs::unlinkat(&place.parts, &new, AtFlags::empty()).ok();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&place.parts, &new, flags, Mode::from_raw_mode(0o644));
        let mut file = File::from(file.map_err(failed)?);
        let written = file.write_all(&record.header()).and_then(|()| file.write_all(&record.bits));
        let len = record.bits.len() as u64;
        written.map_err(|error| ObjectError::writing(&path, "write this file", error, len))?;
        rustix::fs::renameat(&place.parts, &new, &place.parts, name).map_err(failed)
    }
}

impl Part {
    /// Creates a new part of this file. The part is stored for later sessions if the content of the file has an identity and no
    /// other receiver uses a part with this identity.
    pub fn create(
        place: &OutputDirectory,
        identity: Option<Identity<'_>>,
        toi: u128,
    ) -> Result<Part, ObjectError> {
        let own = || PartNames { part: format!("{}-{toi}", place.prefix), record: None };
        let stored = identity.filter(|one| one.is_recorded()).map(|one| PartNames::stored(&one));
        if let Some(names) = stored
            && let Some(file) = open(place, &names.part, OFlags::CREATE).ok().flatten()
            && file.set_len(0).is_ok()
        {
            if let Some(record) = &names.record {
                rustix::fs::unlinkat(&place.parts, record, AtFlags::empty()).ok(); // it is about other bytes
            }
            return Ok(Part { file, names });
        }
        let names = own();
        let path = || place.path.join(STATE_DIR).join(&names.part);
        match open(place, &names.part, OFlags::CREATE | OFlags::TRUNC) {
            Ok(Some(file)) => Ok(Part { file, names }),
            Ok(None) => Err(ObjectError::io(path(), "create this file", Errno::EXIST)),
            Err(error) => Err(ObjectError::io(path(), "create this file", error)),
        }
    }

    /// Returns the data of this file from an earlier session, unless another receiver uses them.
    pub fn resume(place: &OutputDirectory, identity: Option<Identity<'_>>) -> Option<(Part, Record)> {
        let identity = identity.filter(Identity::is_recorded)?;
        let names = PartNames::stored(&identity);
        let file = open(place, &names.part, OFlags::empty()).ok().flatten()?;
        let size = u64::from(identity.oti.symbol_size);
        let record =
            Record::read(place, names.record.as_deref()?, identity.oti.transfer_length.div_ceil(size))?;
        Some((Part { file, names }, record))
    }
}

impl Identity<'_> {
    fn is_recorded(&self) -> bool {
        let size = u64::from(self.oti.symbol_size).max(1);
        self.oti.transfer_length.div_ceil(size) <= MAX_RECORDED
    }
}

/// Opens a part for this receiver alone. Returns `None` if another receiver has opened it, or if it is not a file of faircast.
/// The open part is locked, so that no program removes it as an outdated part. On a filesystem without locks, parts are opened
/// without this check.
fn open(place: &OutputDirectory, name: &str, how: OFlags) -> Result<Option<File>, Errno> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | how;
    let file = rustix::fs::openat(&place.parts, name, flags, Mode::from_raw_mode(0o644))?;
    let stat = rustix::fs::fstat(&file)?;
    let is_ours = FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_nlink == 1;
    let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok((is_ours && lock != Err(Errno::WOULDBLOCK)).then(|| file.into()))
}

impl Record {
    pub fn new(symbols: u64) -> Record {
        Record { symbols, bits: vec![0; symbols.min(MAX_RECORDED).div_ceil(8) as usize] }
    }

    pub fn has(&self, symbol: u64) -> bool {
        self.bits.get((symbol / 8) as usize).is_some_and(|byte| byte & 1 << (symbol % 8) != 0)
    }

    pub fn note(&mut self, symbol: u64) {
        if let Some(byte) = self.bits.get_mut((symbol / 8) as usize) {
            *byte |= 1 << (symbol % 8);
        }
    }

    fn header(&self) -> [u8; 16] {
        let mut header = [0; 16];
        header[..8].copy_from_slice(&MAGIC);
        header[8..].copy_from_slice(&self.symbols.to_be_bytes());
        header
    }

    /// Reads the record of this number of symbols; `None` if it is invalid.
    fn read(place: &OutputDirectory, name: &str, symbols: u64) -> Option<Record> {
        let file = open(place, name, OFlags::empty()).ok().flatten()?;
        let mut record = Record::new(symbols);
        let len = 16 + record.bits.len() as u64;
        let mut bytes = Vec::with_capacity(len as usize + 1);
        file.take(len + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 != len || bytes[..16] != record.header() {
            return None;
        }
        record.bits.copy_from_slice(&bytes[16..]);
        Some(record)
    }
}
