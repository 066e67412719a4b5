//! All versions of a world's content, and checks of output directories.

use faircast_core::rng::Rng;
use faircast_transport::object::LeftOut;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes that repeat in the content, so that unencrypted content can be recognized in packets.
const MARK: [u8; 8] = *b"\xfa\x1c\xa5\x7eVOPR";
const EVERY: usize = 64;

/// Modification time of the first version's files and directories, in seconds since 1970.
const CHANGED: u64 = 1_799_000_000;

/// The directory of a receiver's partial files.
const STATE: &str = ".faircast";

/// All versions of the content.
pub struct Contents {
    directory: PathBuf,
    /// For each version: the bytes of its files, by path.
    versions: Vec<BTreeMap<String, Vec<u8>>>,
}

impl Contents {
    /// Writes the first version of these files into `directory`.
    pub fn new(directory: PathBuf, files: &[(String, usize)], rng: &mut Rng) -> io::Result<Contents> {
        let mut contents = Contents { directory, versions: Vec::new() };
        contents.add(files, rng)?;
        Ok(contents)
    }

    /// Writes a further version in place of the newest one.
    pub fn add(&mut self, files: &[(String, usize)], rng: &mut Rng) -> io::Result<()> {
        let version: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(name, len)| (name.clone(), bytes(*len, rng))).collect();
        let root = self.root();
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        let time: SystemTime = UNIX_EPOCH + Duration::from_secs(CHANGED + self.versions.len() as u64);
        for (name, bytes) in &version {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap_or(&root))?;
            fs::write(&path, bytes)?;
            File::options().write(true).open(&path)?.set_modified(time)?;
        }
        for directory in ["tree/below", "tree"].map(|name| root.join(name)) {
            if directory.exists() {
                File::open(&directory)?.set_modified(time)?;
            }
        }
        self.versions.push(version);
        Ok(())
    }

    /// Changes, truncates, extends or replaces a file in place; the result is a new version. Returns a description of the change.
    pub fn change(&mut self, rng: &mut Rng) -> io::Result<String> {
        let mut version = self.newest().clone();
        let at = rng.below(version.len() as u64) as usize;
        let (name, content) = version.iter_mut().nth(at).expect("there are so many");
        let path = self.root().join(name);
        let len = content.len();
        let how = rng.below(4);
        match how {
            1 => content.truncate(rng.below(len as u64 + 1) as usize),
            2 => content.extend(bytes(1 + rng.below(5_000) as usize, rng)),
            _ => *content = bytes(len, rng),
        }
        let digest =
            format!("{name} is {} at the source", ["changed", "cut", "continued", "replaced"][how as usize]);
        let place = if how == 3 { self.directory.with_extension("new") } else { path.clone() };
        let file = File::options().write(true).create(true).truncate(false).open(&place)?;
        file.set_len(content.len() as u64)?;
        file.write_all_at(content, 0)?;
        file.set_modified(UNIX_EPOCH + Duration::from_secs(CHANGED + self.versions.len() as u64))?;
        if how == 3 {
            let above = path.parent().unwrap_or(&self.directory);
            let time = fs::metadata(above)?.modified()?;
            fs::rename(&place, &path)?;
            File::open(above)?.set_modified(time)?;
        }
        self.versions.push(version);
        Ok(digest)
    }

    fn root(&self) -> PathBuf {
        self.directory.clone()
    }

    /// Returns the paths for a source to send.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut tops: Vec<&str> = self.newest().keys().map(|name| top(name)).collect();
        tops.dedup();
        tops.into_iter().map(|top| self.directory.join(top)).collect()
    }

    /// Returns the number of versions.
    pub fn versions(&self) -> usize {
        self.versions.len()
    }

    fn newest(&self) -> &BTreeMap<String, Vec<u8>> {
        self.versions.last().expect("there is one from the beginning on")
    }

    /// Returns a description of the first file in an output directory that differs from every version of the file with its name.
    pub fn wrong_in(&self, out: &Path) -> Option<String> {
        let mut found = Vec::new();
        list(out, "", &mut found);
        found.into_iter().find_map(|name| {
            let bytes = fs::read(out.join(&name)).unwrap_or_default();
            let is_right = self.versions.iter().any(|version| version.get(&name) == Some(&bytes));
            (!is_right).then(|| format!("{name} has {} bytes that nobody sent", bytes.len()))
        })
    }

    /// Whether the output directory has the complete newest version.
    pub fn is_in(&self, out: &Path) -> bool {
        is_in(self.newest(), out)
    }

    /// Whether the output directory has any complete version.
    pub fn any_is_in(&self, out: &Path) -> bool {
        self.any_is_in_without(out, &[])
    }

    /// Whether the output directory has any version that is complete except for the files that the source left out.
    pub fn any_is_in_without(&self, out: &Path, unsent: &[LeftOut]) -> bool {
        let is_unsent = |name: &str| unsent.iter().any(|one| Path::new(&one.path).ends_with(name));
        self.versions.iter().any(|version| {
            let sent = version.iter().filter(|(name, _)| !is_unsent(name));
            sent.into_iter().all(|(name, bytes)| lies_in(out, name, bytes))
        })
    }

    /// Returns the plaintexts that must not appear in sealed packets.
    pub fn secrets(&self) -> Vec<Vec<u8>> {
        vec![MARK.to_vec(), b"tree/below"[..8].to_vec(), b"content0".to_vec()]
    }
}

fn is_in(version: &BTreeMap<String, Vec<u8>>, out: &Path) -> bool {
    version.iter().all(|(name, bytes)| lies_in(out, name, bytes))
}

fn lies_in(out: &Path, name: &str, bytes: &[u8]) -> bool {
    fs::read(out.join(name)).is_ok_and(|found| found == bytes)
}

fn top(name: &str) -> &str {
    name.split_once('/').map_or(name, |(top, _)| top)
}

pub(crate) fn bytes(len: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes()).collect();
    bytes.truncate(len);
    for place in bytes.chunks_mut(EVERY) {
        if let Some(mark) = place.first_chunk_mut::<8>() {
            *mark = MARK;
        }
    }
    bytes
}

/// Lists all files below a directory, except for a receiver's directory of partial files.
fn list(directory: &Path, below: &str, into: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if below.is_empty() && name == STATE {
            continue;
        }
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list(&entry.path(), &path, into),
            _ => into.push(path),
        }
    }
    into.sort();
}
