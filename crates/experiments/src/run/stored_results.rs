//! Stored results of earlier runs. The file name of a run depends on all its inputs: the code, the network at
//! its point of the sweep, and the seed. So an interrupted experiment continues, and after a change only the
//! runs that it concerns are repeated.

use super::Done;
use crate::results::Totals;
use crate::results::capture::Capture;
use crate::results::measure::Measured;
use crate::scenario::Scenario;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of files that are not whole yet: another thread, or process, may do the same run.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

/// Which code makes the runs of this build: a hash of the simulator, the congestion control and what measures them.
pub const CODE: &str = env!("FAIRCAST_CODE");

/// Content of a file of a run before its checksum: rows and metrics, counts, and the captured packets.
type Content = (Measured, Totals, Option<Vec<u8>>);

/// Hexadecimal digits of a fingerprint in a file's name.
const DIGITS: usize = 32;

/// A directory with runs.
#[derive(Debug, Clone)]
pub struct StoredResults {
    directory: PathBuf,
}

impl StoredResults {
    /// The runs in this directory, which is made where it is not there.
    ///
    /// # Errors
    /// When that fails.
    pub fn at(directory: &Path) -> io::Result<StoredResults> {
        let directory = directory.join(CODE);
        fs::create_dir_all(&directory)?;
        Ok(StoredResults { directory })
    }

    /// Remove what other code has made.
    ///
    /// # Errors
    /// When that fails.
    pub fn forget_others(&self) -> io::Result<()> {
        self.of_other_code()?.into_iter().try_for_each(fs::remove_dir_all)
    }

    /// The directories with runs of other code.
    fn of_other_code(&self) -> io::Result<Vec<PathBuf>> {
        let Some(parent) = self.directory.parent() else { return Ok(Vec::new()) };
        let is_other = |path: &PathBuf| *path != self.directory && is_code(path);
        Ok(paths(parent)?.into_iter().filter(is_other).collect())
    }

    /// Whether the run of a scenario at this point with this seed is stored here.
    pub fn has(&self, scenario: &Scenario, point: usize, seed: u64) -> bool {
        self.path(scenario.fingerprint(point), seed).is_file()
    }

    /// Counts the stored runs of other scenarios and of other code.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn others(&self, scenarios: &[&Scenario]) -> io::Result<usize> {
        let mut count = self.foreign(scenarios)?.len();
        for directory in self.of_other_code()? {
            count += fs::read_dir(directory)?.count();
        }
        Ok(count)
    }

    /// Removes the runs of all other scenarios and of other code, and files that an interrupted process left unfinished; the
    /// directory, too, when it is empty then.
    ///
    /// # Errors
    /// When that fails.
    pub fn keep_only(&self, scenarios: &[&Scenario]) -> io::Result<()> {
        self.forget_others()?;
        self.foreign(scenarios)?.into_iter().try_for_each(fs::remove_file)?;
        for directory in [Some(self.directory.as_path()), self.directory.parent()].into_iter().flatten() {
            if fs::read_dir(directory)?.next().is_none() {
                fs::remove_dir(directory)?;
            }
        }
        Ok(())
    }

    /// The files that belong to none of these scenarios.
    fn foreign(&self, scenarios: &[&Scenario]) -> io::Result<Vec<PathBuf>> {
        let points = scenarios.iter().flat_map(|scenario| {
            (0..scenario.points().len()).map(|point| short(scenario.fingerprint(point)))
        });
        let known: BTreeSet<&str> = points.collect();
        let belongs = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let parts = name.split_once('-').filter(|(_, seed)| seed.parse::<u64>().is_ok());
            parts.is_some_and(|(fingerprint, _)| known.contains(fingerprint))
        };
        Ok(paths(&self.directory)?.into_iter().filter(|path| !belongs(path)).collect())
    }

    fn path(&self, fingerprint: &str, seed: u64) -> PathBuf {
        self.directory.join(format!("{}-{seed}", short(fingerprint)))
    }

    /// Returns the results of this run; `None` when it was not made, or its file is incomplete.
    pub(super) fn get(&self, fingerprint: &str, (point, seed): (usize, u64)) -> Option<Done> {
        let bytes = fs::read(self.path(fingerprint, seed)).ok()?;
        let (content, sum) = bytes.split_last_chunk::<32>()?;
        let ((measured, totals, packets), rest): (Content, _) = postcard::take_from_bytes(content).ok()?;
        let whole = rest.is_empty() && blake3::hash(content).as_bytes() == sum;
        let capture = packets.map(|bytes| Capture { point, seed, bytes });
        whole.then_some(Done { measured, totals, capture, codec: None })
    }

    /// Stores the results of a run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn put(&self, fingerprint: &str, seed: u64, done: &Done) -> io::Result<()> {
        let packets = done.capture.as_ref().map(|capture| &capture.bytes);
        let mut bytes =
            postcard::to_stdvec(&(&done.measured, &done.totals, packets)).map_err(io::Error::other)?;
        let sum = blake3::hash(&bytes);
        bytes.extend_from_slice(sum.as_bytes());
        let path = self.path(fingerprint, seed);
        let number = UNFINISHED.fetch_add(1, Ordering::Relaxed);
        let unfinished = path.with_extension(format!("{}-{number}.part", std::process::id()));
        fs::File::create(&unfinished)?.write_all(&bytes)?;
        fs::rename(unfinished, path)
    }
}

/// All that lies in a directory.
fn paths(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

/// The part of a fingerprint that names files.
fn short(fingerprint: &str) -> &str {
    &fingerprint[..DIGITS.min(fingerprint.len())]
}

/// Whether a directory is called as those of [`StoredResults`] are.
fn is_code(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.is_dir() && name.len() == CODE.len() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunOptions, Silent, run};

    const TAPPED: &str = r#"
title = "A tapped link"
duration = "2 s"
[topology]
kind = "star"
leaves = 1
[[flow]]
name = "tcp"
kind = "tcp-sack"
from = "src1"
to = "leaf1"
[probe]
taps = ["hub->leaf1"]
"#;

    fn scenario(text: &str) -> Scenario {
        Scenario::parse(text, "t.toml").unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    #[test]
    fn captured_packets_are_stored_with_a_run() {
        let place = tempfile::tempdir().expect("a directory");
        let options = RunOptions {
            kept: Some(StoredResults::at(place.path()).expect("writable")),
            ..RunOptions::default()
        };
        let first = run(&scenario(TAPPED), &options, &Silent).expect("it runs");
        assert!(
            first.captures[0].bytes.len() > 10_000
                && options.kept.as_ref().is_some_and(|kept| kept.has(&scenario(TAPPED), 0, 1))
        );
        // The same network is at the second point of this sweep.
        let sweep = format!("{TAPPED}\n[sweep]\n\"duration\" = [\"1 s\", \"2 s\"]\n");
        let swept = run(&scenario(&sweep), &options, &Silent).expect("it runs");
        assert_eq!((swept.captures[1].point, &swept.captures[1].bytes), (1, &first.captures[0].bytes));
    }

    #[test]
    fn runs_of_other_scenarios_and_unfinished_files_are_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let kept = StoredResults::at(place.path()).expect("writable");
        let (one, other) = (scenario(TAPPED), scenario(&TAPPED.replace("2 s", "1 s")));
        let options = RunOptions { kept: Some(kept.clone()), ..RunOptions::default() };
        for scenario in [&one, &other] {
            run(scenario, &options, &Silent).expect("it runs");
        }
        fs::write(kept.directory.join("0123-1.part"), "half").expect("written");
        fs::create_dir(place.path().join("0123456789abcdef")).expect("made");
        fs::write(place.path().join("0123456789abcdef/0123-1"), "other code").expect("written");
        assert_eq!(kept.others(&[&one]).expect("readable"), 3);
        kept.keep_only(&[&one]).expect("removed");
        assert!(kept.has(&one, 0, 1) && !kept.has(&other, 0, 1));
        assert_eq!(kept.others(&[&one]).expect("readable"), 0);
        kept.keep_only(&[]).expect("removed");
        assert!(!place.path().exists(), "a directory without runs is removed");
    }
}
