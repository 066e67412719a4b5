//! Files and directories of results and figures.

use crate::failure::Failure;
use crate::sim_usage::SimUsage;
use faircast_experiments::figures::Named;
use faircast_experiments::results::write::{WriteError, clear, write_run};
use faircast_experiments::results::{self, Results, Totals};
use faircast_experiments::scenario::Scenario;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name and content of a file to write.
pub type File = (String, Vec<u8>);

/// Returns a path in the current directory: `lab-results` if the scenario is `DIR/lab.toml` and `what` is `results`.
pub fn beside(scenario: &Path, what: &str) -> PathBuf {
    let stem =
        scenario.file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy().into_owned());
    PathBuf::from(format!("{stem}-{what}"))
}

/// Writes results and further files, such as figures, into a directory, in place of the files of the previous run. Returns the
/// names of all files.
///
/// # Errors
/// When a file cannot be written, or a file of the previous run cannot be removed.
pub fn run(
    results: Option<&Results>,
    others: &[File],
    directory: &Path,
    threads: Option<NonZeroUsize>,
    took: Duration,
) -> Result<Vec<String>, Failure> {
    let mut paths = match results {
        Some(results) => results::write(results, directory).map_err(unwritable)?,
        None => remove_run(directory).map(|()| Vec::new())?,
    };
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.map_or(processors, NonZeroUsize::get);
    let totals = results.map_or(Totals::default(), |results| results.totals);
    // The list of the further files is written before the files. The next run therefore finds the files even if this run is
    // interrupted.
    let names: Vec<&str> = others.iter().map(|(name, _)| name.as_str()).collect();
    paths.push(write_run(directory, &totals, &names, threads, took).map_err(unwritable)?);
    let mut all: Vec<String> =
        paths.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect();
    all.extend(write(others, directory)?);
    Ok(all)
}

/// Removes the files of an earlier run from a directory.
///
/// # Errors
/// When a file cannot be removed.
pub fn remove_run(directory: &Path) -> Result<(), Failure> {
    clear(directory).map_err(unwritable)
}

/// Writes the TCP flows of the first run as a data file of Flent. `world` is its title.
///
/// # Errors
/// When there are no such flows, or the file cannot be written.
pub fn flent(file: &Path, scenario: &Scenario, results: &Results, world: &str) -> Result<(), Failure> {
    let bytes = results::flent(scenario, results, world).ok_or(SimUsage::NothingForFlent)?;
    std::fs::write(file, bytes).map_err(Failure::system(format!("write {}", file.display())))
}

/// Renders figures as SVG.
pub fn svg(figures: &[Named]) -> Vec<File> {
    figures.iter().map(|(name, figure)| (format!("{name}.svg"), figure.svg().into_bytes())).collect()
}

/// Renders figures as PDF.
pub fn pdf(figures: &[Named]) -> Vec<File> {
    figures.iter().map(|(name, figure)| (format!("{name}.pdf"), figure.pdf())).collect()
}

/// Writes files and returns their names.
///
/// # Errors
/// When a file cannot be written.
pub fn write(files: &[File], directory: &Path) -> Result<Vec<String>, Failure> {
    files.iter().map(|(name, content)| bytes(name, content, directory)).collect()
}

/// Writes one file and returns its name.
///
/// # Errors
/// When the file cannot be written.
pub fn page(name: &str, text: &str, directory: &Path) -> Result<String, Failure> {
    bytes(name, text.as_bytes(), directory)
}

fn bytes(name: &str, bytes: &[u8], directory: &Path) -> Result<String, Failure> {
    let path = directory.join(name);
    let write = || {
        std::fs::create_dir_all(path.parent().unwrap_or(directory))?;
        std::fs::write(&path, bytes)
    };
    write().map_err(Failure::system(format!("write {}", path.display())))?;
    Ok(name.to_owned())
}

fn unwritable(error: WriteError) -> Failure {
    match error {
        WriteError::Io { path, source } => {
            Failure::System { what: format!("write {}", path.display()), source }
        }
        error => Failure::Check(error.to_string()),
    }
}
