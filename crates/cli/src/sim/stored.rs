//! Finished runs in the directory of `--out`. An interrupted command resumes from them.

use crate::failure::Failure;
use crate::units;
use faircast_experiments::run::forecast::Forecast;
use faircast_experiments::run::stored_results::StoredResults;
use faircast_experiments::scenario::Scenario;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the directory with finished runs inside a directory of results.
const RUNS: &str = "runs";

/// The finished runs of a directory of results.
pub struct Stored {
    runs: PathBuf,
    kept: StoredResults,
}

impl Stored {
    /// Opens the directory of finished runs below `out`, and creates it if it is missing. Returns `None` without `out`.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn open(out: Option<&Path>) -> Result<Option<Stored>, Failure> {
        let Some(out) = out else { return Ok(None) };
        let runs = out.join(RUNS);
        let kept = StoredResults::at(&runs).map_err(unwritable(&runs))?;
        Ok(Some(Stored { runs, kept }))
    }

    /// Returns a handle for the runner.
    pub fn kept(&self) -> StoredResults {
        self.kept.clone()
    }

    /// Prints on standard error the number of finished runs, and the number of runs of other scenarios that will be removed.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn announce(&self, forecast: &Forecast, scenarios: &[&Scenario]) -> Result<(), Failure> {
        let others = self.kept.others(scenarios).map_err(unwritable(&self.runs))?;
        let runs = self.runs.display();
        // A failure to write standard error is ignored.
        let mut people = std::io::stderr();
        let all = units::count(forecast.runs as u64, "run");
        let verb = if forecast.runs == 1 { "is" } else { "are" };
        let _ = writeln!(people, "{} of {all} {verb} already there", forecast.stored);
        if others > 0 {
            let others = units::count(others as u64, "run");
            let _ = writeln!(
                people,
                "{others} of another scenario or version in {runs} will be removed after this scenario is complete"
            );
        }
        Ok(())
    }

    /// Prints on standard error how to resume the command.
    pub fn explain_resume(&self) {
        let _ = writeln!(
            std::io::stderr(),
            "finished runs are in {}; repeat the same command to continue",
            self.runs.display()
        );
    }
}

/// Removes all runs from a directory of results, except the runs of these scenarios.
///
/// # Errors
/// When a run cannot be removed.
pub fn keep_only(scenarios: &[&Scenario], directory: &Path) -> Result<(), Failure> {
    let runs = directory.join(RUNS);
    if !runs.is_dir() {
        return Ok(());
    }
    StoredResults::at(&runs).and_then(|kept| kept.keep_only(scenarios)).map_err(unwritable(&runs))
}

fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    Failure::system(format!("write {}", path.display()))
}
