//! The numbers of a source's sessions, and the files that were sent. They survive a restart of the source.

use super::record;
use crate::failure::Failure;
use crate::system;
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Name of the record in the directory of the sent files, or in the watched directory.
const FILE: &str = ".faircast-watch.json";

/// Maximum number of files that have a number and are not sent.
const MAX_UNFINISHED: usize = 1_000;

/// Maximum number of entries of a directory that identify its version.
const MAX_ENTRIES: usize = 1 << 20;

/// Identity of a version of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub name: String,
    bytes: u64,
    modified_secs: i64,
    modified_nanos: i64,
}

impl Version {
    pub fn new(name: &str, of: &Metadata) -> Version {
        let (name, bytes) = (name.to_owned(), of.size());
        Version { name, bytes, modified_secs: of.mtime(), modified_nanos: of.mtime_nsec() }
    }

    /// Returns the version of a directory: the sum of the sizes and the latest time of modification of everything below it.
    ///
    /// # Errors
    /// If the directory cannot be read, or has more than [`MAX_ENTRIES`] entries.
    pub fn of_directory(name: &str, path: &Path) -> io::Result<Version> {
        let mut version = Version::new(name, &fs::symlink_metadata(path)?);
        let (mut pending, mut entries) = (vec![path.to_owned()], 0);
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory)? {
                let entry = entry?;
                let of = entry.metadata()?;
                version.bytes = version.bytes.saturating_add(of.size());
                let modified = (of.mtime(), of.mtime_nsec());
                (version.modified_secs, version.modified_nanos) =
                    modified.max((version.modified_secs, version.modified_nanos));
                if of.is_dir() {
                    pending.push(entry.path());
                }
                entries += 1;
                if entries > MAX_ENTRIES {
                    return Err(io::Error::other(format!("{name} has more than {MAX_ENTRIES} entries")));
                }
            }
        }
        Ok(version)
    }
}

/// A file that has a number.
#[derive(Debug, Serialize, Deserialize)]
struct Numbered {
    number: u64,
    file: Version,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    series: u64,
    /// The next unused number.
    next: u64,
    unfinished: Vec<Numbered>,
    /// Sent files that are still in the watched directory.
    sent: Vec<Version>,
}

/// The numbers of a source.
#[derive(Debug)]
pub struct Numbers {
    path: PathBuf,
    stored: Stored,
}

impl Numbers {
    /// Reads the record of a directory, or begins a series.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn open(directory: &Path) -> Result<Numbers, Failure> {
        let path = directory.join(FILE);
        let read = record::read(&path).map_err(Failure::system(format!("read {}", path.display())))?;
        let begin = || Stored { series: system::random(), next: 1, unfinished: Vec::new(), sent: Vec::new() };
        Ok(Numbers { stored: read.unwrap_or_else(begin), path })
    }

    pub fn series(&self) -> u64 {
        self.stored.series
    }

    /// Returns the number of the session that sends this version of a file. A new number is recorded before it is used.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn number_of(&mut self, file: &Version) -> Result<u64, Failure> {
        let known = self.stored.unfinished.iter().find(|one| one.file == *file);
        if let Some(known) = known {
            return Ok(known.number);
        }
        let number = self.stored.next;
        self.stored.next += 1;
        // An older version of the file cannot be sent any longer. Receivers then name its number.
        self.stored.unfinished.retain(|one| one.file.name != file.name);
        if self.stored.unfinished.len() == MAX_UNFINISHED {
            self.stored.unfinished.remove(0);
        }
        self.stored.unfinished.push(Numbered { number, file: file.clone() });
        self.save()?;
        Ok(number)
    }

    /// Records that this version of a file was sent. `stays` states whether it stays in the watched directory.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn sent(&mut self, file: &Version, stays: bool) -> Result<(), Failure> {
        self.stored.unfinished.retain(|one| one.file != *file);
        self.stored.sent.retain(|one| one.name != file.name);
        if stays {
            self.stored.sent.push(file.clone());
        }
        self.save()
    }

    pub fn is_sent(&self, file: &Version) -> bool {
        self.stored.sent.contains(file)
    }

    /// Forgets files that are not in the watched directory any longer.
    pub fn keep_only(&mut self, is_there: impl Fn(&str) -> bool) {
        self.stored.sent.retain(|one| is_there(&one.name));
        self.stored.unfinished.retain(|one| is_there(&one.file.name));
    }

    fn save(&self) -> Result<(), Failure> {
        let written = record::replace(&self.path, &self.stored);
        written.map_err(Failure::system(format!("write {}", self.path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(name: &str, bytes: u64) -> Version {
        Version { name: name.into(), bytes, modified_secs: 7, modified_nanos: 9 }
    }

    #[test]
    fn numbers_count_up_across_restarts_and_repeat_only_for_a_retry() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = || Numbers::open(dir.path()).expect("a record");
        let (a, b, newer) = (version("a", 1), version("b", 1), version("a", 2));
        let mut numbers = open();
        let series = numbers.series();
        let number = |numbers: &mut Numbers, file| numbers.number_of(file).expect("it is written");
        assert_eq!((number(&mut numbers, &a), number(&mut numbers, &a)), (1, 1), "a retry");
        let mut numbers = open();
        assert_eq!((numbers.series(), number(&mut numbers, &a), number(&mut numbers, &b)), (series, 1, 2));
        numbers.sent(&a, true).expect("it is written");
        numbers.sent(&b, false).expect("it is written");
        let mut numbers = open();
        assert!(numbers.is_sent(&a) && !numbers.is_sent(&b) && !numbers.is_sent(&newer));
        assert_eq!((number(&mut numbers, &newer), number(&mut numbers, &b)), (3, 4));
        numbers.keep_only(|name| name == "b");
        assert!(!numbers.is_sent(&a), "it was removed");
        assert_eq!(number(&mut numbers, &b), 4);
    }

    #[test]
    fn damaged_record_is_an_error_with_advice() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join(FILE), "{ \"series\": 3").expect("room");
        let error = Numbers::open(dir.path()).expect_err("it is damaged").to_string();
        assert!(error.contains(FILE) && error.contains("move the file away"), "{error}");
    }
}
