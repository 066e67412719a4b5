//! Records that are replaced as a whole, so that a crash leaves the old or the new record.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Reads a record; `None` if there is no file.
///
/// # Errors
/// If the file cannot be read, or contains no such record.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{error}; move the file away to start anew"))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces a record, and waits until it is on the disk.
///
/// # Errors
/// If the file cannot be written.
pub fn replace(path: &Path, record: &impl Serialize) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::with_prefix_in(".faircast-", directory)?;
    serde_json::to_writer_pretty(&mut file, record)?;
    writeln!(file)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}
