//! Runs that were made before. What a run gave is kept in a file whose name says all that it depends on: the code, the network at
//! its point of the sweep, and the seed. So what was interrupted goes on, and after a change only what it concerns runs again.

use super::Done;
use crate::results::Totals;
use crate::results::measure::Measured;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of files that are not whole yet: another thread, or process, may do the same run.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

/// Which code makes the runs of this build: a hash of the simulator, the congestion control and what measures them.
pub const CODE: &str = env!("FAIRCAST_CODE");

/// A directory with runs.
#[derive(Debug, Clone)]
pub struct Kept {
    directory: PathBuf,
}

impl Kept {
    /// The runs in this directory, which is made where it is not there.
    ///
    /// # Errors
    /// When that fails.
    pub fn at(directory: &Path) -> io::Result<Kept> {
        let directory = directory.join(CODE);
        fs::create_dir_all(&directory)?;
        Ok(Kept { directory })
    }

    /// Remove what other code has made.
    ///
    /// # Errors
    /// When that fails.
    pub fn forget_others(&self) -> io::Result<()> {
        let Some(parent) = self.directory.parent() else { return Ok(()) };
        for entry in fs::read_dir(parent)? {
            let path = entry?.path();
            if path != self.directory && is_code(&path) {
                fs::remove_dir_all(path)?;
            }
        }
        Ok(())
    }

    fn path(&self, fingerprint: &str, seed: u64) -> PathBuf {
        self.directory.join(format!("{}-{seed}", &fingerprint[..32.min(fingerprint.len())]))
    }

    /// What this run gave; `None` when it was not made, or its file is not whole.
    pub(super) fn get(&self, fingerprint: &str, seed: u64) -> Option<Done> {
        let bytes = fs::read(self.path(fingerprint, seed)).ok()?;
        let (content, sum) = bytes.split_last_chunk::<32>()?;
        let ((measured, totals), rest): ((Measured, Totals), _) = postcard::take_from_bytes(content).ok()?;
        let whole = rest.is_empty() && blake3::hash(content).as_bytes() == sum;
        whole.then_some(Done { measured, totals, capture: None, codec: None })
    }

    /// Keep what a run gave.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn put(&self, fingerprint: &str, seed: u64, done: &Done) -> io::Result<()> {
        let mut bytes = postcard::to_stdvec(&(&done.measured, &done.totals)).map_err(io::Error::other)?;
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(sum.as_bytes());
        let path = self.path(fingerprint, seed);
        let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
        let unfinished = path.with_extension(format!("{}-{number}.part", std::process::id()));
        fs::File::create(&unfinished)?.write_all(&bytes)?;
        fs::rename(unfinished, path)
    }
}

/// Whether a directory is called as those of [`Kept`] are.
fn is_code(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.is_dir() && name.len() == CODE.len() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
