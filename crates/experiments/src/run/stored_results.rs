//! Stored results of earlier runs. The file name of a run depends on all inputs of the run: the code, the network at the point of
//! the sweep, and the seed. An interrupted experiment can therefore be continued, and a change repeats only the runs that it
//! affects.

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

/// Counter that makes the names of temporary files unique, because another thread or process may execute the same run.
static UNFINISHED: AtomicU64 = AtomicU64::new(0);

/// Hash of the code that determines results in this build: the simulator, the congestion control and the measurement.
pub const CODE: &str = env!("FAIRCAST_CODE");

/// Content of a run's file: tables and metrics, totals, and captured packets. A checksum follows the content.
type Content = (Measured, Totals, Option<Vec<u8>>);

/// Number of hexadecimal digits of a fingerprint in a file's name.
const DIGITS: usize = 32;

/// A directory with stored runs.
#[derive(Debug, Clone)]
pub struct StoredResults {
    directory: PathBuf,
}

impl StoredResults {
    /// Opens the store in this directory; creates the directory if it is missing.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn at(directory: &Path) -> io::Result<StoredResults> {
        let directory = directory.join(CODE);
        fs::create_dir_all(&directory)?;
        Ok(StoredResults { directory })
    }

    /// Removes the stored runs of other versions of the code.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn forget_others(&self) -> io::Result<()> {
        self.of_other_code()?.into_iter().try_for_each(fs::remove_dir_all)
    }

    /// Returns the directories with the runs of other versions of the code.
    fn of_other_code(&self) -> io::Result<Vec<PathBuf>> {
        let Some(parent) = self.directory.parent() else { return Ok(Vec::new()) };
        let is_other = |path: &PathBuf| *path != self.directory && is_code(path);
        Ok(paths(parent)?.into_iter().filter(is_other).collect())
    }

    /// Returns whether the run of a scenario at this point with this seed is stored.
    pub fn has(&self, scenario: &Scenario, point: usize, seed: u64) -> bool {
        self.path(scenario.fingerprint(point), seed).is_file()
    }

    /// Counts the stored runs of other scenarios and of other versions of the code.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn others(&self, scenarios: &[&Scenario]) -> io::Result<usize> {
        let mut count = self.foreign(scenarios)?.len();
        for directory in self.of_other_code()? {
            count += fs::read_dir(directory)?.count();
        }
        Ok(count)
    }

    /// Removes the runs of all other scenarios and of other versions of the code, and the temporary files of interrupted
    /// processes. Also removes the directory if it is then empty.
    ///
    /// # Errors
    /// If a file cannot be removed.
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

    /// Returns the files that belong to none of these scenarios.
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

    /// Returns the results of this run; `None` if no results are stored, or their file is incomplete.
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
    /// If the file cannot be written.
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

/// Returns the paths of all entries of a directory.
fn paths(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

/// Returns the part of a fingerprint that is used in file names.
fn short(fingerprint: &str) -> &str {
    &fingerprint[..DIGITS.min(fingerprint.len())]
}

/// Returns whether the name of a directory has the form of `CODE`.
fn is_code(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.is_dir() && name.len() == CODE.len() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunOptions, Silent, run};

    /// A stored run is used only if the code through which its packets passed is unchanged.
    #[test]
    fn code_of_stored_runs_includes_every_crate_of_the_simulator() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| std::fs::read_to_string(crates.join(path)).expect("the repository has it");
        let (build, manifest) = (read("experiments/build.rs"), read("sim/Cargo.toml"));
        let (used, _) = manifest.split_once("[dev-dependencies]").expect("the simulator has tests");
        let names = used.lines().filter_map(|line| line.strip_prefix("faircast-")?.split('.').next());
        for name in names.chain(["sim"]) {
            assert!(build.contains(&format!("\"../{name}/src\"")), "build.rs does not hash crates/{name}");
        }
    }

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
    fn captured_packets_are_stored_with_their_run() {
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
        // The second point of the sweep is the same network as the stored run.
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
