//! Where results and figures go.

use crate::failure::Failure;
use faircast_experiments::report::figures::Named;
use faircast_experiments::results::write::{WriteError, write_run};
use faircast_experiments::results::{self, Results};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `lab-results` for `DIR/lab.toml`, in the current directory.
pub fn beside(scenario: &Path, what: &str) -> PathBuf {
    let stem =
        scenario.file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy().into_owned());
    PathBuf::from(format!("{stem}-{what}"))
}

/// Write results; the names of the files.
///
/// # Errors
/// When one cannot be written.
pub fn results(
    results: &Results,
    directory: &Path,
    threads: Option<NonZeroUsize>,
    took: Duration,
) -> Result<Vec<String>, Failure> {
    let mut paths = results::write(results, directory).map_err(unwritable)?;
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.map_or(processors, NonZeroUsize::get);
    paths.push(write_run(directory, &results.totals, threads, took).map_err(unwritable)?);
    Ok(paths.iter().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
}

/// Write figures; the names of the files.
///
/// # Errors
/// When one cannot be written.
pub fn figures(figures: &[Named], directory: &Path) -> Result<Vec<String>, Failure> {
    figures.iter().map(|(name, figure)| page(&format!("{name}.svg"), &figure.svg(), directory)).collect()
}

/// The same as PDF.
///
/// # Errors
/// When one cannot be written.
pub fn figures_as_pdf(figures: &[Named], directory: &Path) -> Result<Vec<String>, Failure> {
    figures.iter().map(|(name, figure)| bytes(&format!("{name}.pdf"), &figure.pdf(), directory)).collect()
}

/// Write one file; its name.
///
/// # Errors
/// When it cannot be written.
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
