//! Runs of scenarios, and their results.

use crate::errors::failed;
use crate::own;
use crate::scenario::Scenario;
use crate::table::Table;
use faircast_experiments::repro;
use faircast_experiments::results::parquet::run_file::{RunFile, to_run_file};
use faircast_experiments::results::parquet::to_parquet;
use faircast_experiments::results::{self, Shard};
use faircast_experiments::run::precision::{self, Precision};
use faircast_experiments::run::stored_results::StoredResults;
use faircast_experiments::run::{self as runs, Progress, RunOptions, Status};
use faircast_experiments::table;
use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{ThreadId, current};

thread_local! {
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Ends the runs of other threads.
#[pyclass(frozen, module = "faircast._native")]
#[derive(Default)]
pub struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Stop {
        Stop::default()
    }

    /// Makes the runs that this thread starts end after `set`.
    fn adopt(&self) {
        STOP.set(Some(self.0.clone()));
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Calls a Python function with the progress of runs, and stops the runs when a signal arrives or the function raises an
/// exception. It does so in the thread that has started the runs, several times per second and once at the end.
pub struct Watcher {
    function: Option<Py<PyAny>>,
    thread: ThreadId,
    exception: Mutex<Option<PyErr>>,
    stops: AtomicBool,
    /// Set by another thread; see [`Stop`].
    stopped_by: Option<Arc<AtomicBool>>,
    /// Whether the simulator calls Python classes.
    calls_classes: bool,
}

impl Watcher {
    /// Creates a watcher that calls `function`, if there is one. `calls_classes`: whether the simulator calls Python classes.
    pub fn new(function: Option<Py<PyAny>>, calls_classes: bool) -> Watcher {
        Watcher {
            calls_classes,
            function,
            thread: current().id(),
            exception: Mutex::default(),
            stops: AtomicBool::new(false),
            stopped_by: STOP.with_borrow(Clone::clone),
        }
    }

    /// Returns the outcome of runs, or the exception that a signal or the function has raised. An exception in the last call comes
    /// too late to stop the runs, but is not lost.
    pub fn outcome<T>(&self, outcome: T) -> PyResult<T> {
        match self.lock().take() {
            Some(exception) => Err(exception),
            None => Ok(outcome),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.exception.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, py: Python<'_>, status: &Status) -> PyResult<()> {
        py.check_signals()?; // does nothing unless this is the main thread
        if let Some(function) = &self.function {
            let left = status.remaining().map(|left| left.as_secs_f64());
            let share = status.simulated / status.to_simulate;
            function.call1(py, (status.done, status.runs, share, left))?;
        }
        Ok(())
    }
}

impl Progress for Watcher {
    fn update(&self, status: &Status) {
        if self.is_cancelled() || current().id() != self.thread {
            return;
        }
        if let Err(exception) = Python::attach(|py| self.call(py, status)) {
            self.lock().get_or_insert(exception);
            self.stops.store(true, Ordering::Relaxed);
        }
    }

    fn in_thread(&self, runs: &mut dyn FnMut()) {
        if !self.calls_classes {
            return runs();
        }
        Python::attach(|_| runs());
        if let Some(exception) = own::take_exception() {
            self.lock().get_or_insert(exception);
        }
    }

    fn shares_runs(&self) -> bool {
        !self.calls_classes
    }

    fn is_cancelled(&self) -> bool {
        if own::has_raised() || self.stopped_by.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.stops.store(true, Ordering::Relaxed);
        }
        self.stops.load(Ordering::Relaxed)
    }
}

/// Returns whether a scenario names congestion control or queues of this program.
fn calls_classes(scenario: &faircast_experiments::scenario::Scenario) -> bool {
    !faircast_core::own::versions_in(scenario.text()).is_empty()
}

/// The results of runs.
#[pyclass(frozen, module = "faircast._native")]
pub struct Results {
    results: results::Results,
    /// The scenario with the seeds of the runs.
    scenario: faircast_experiments::scenario::Scenario,
}

#[pymethods]
impl Results {
    /// The names of the tables that have rows.
    #[getter]
    fn table_names(&self) -> Vec<&str> {
        let filled = self.results.tables.iter().filter(|table| table.rows() > 0);
        filled.map(|table| table.name.as_str()).collect()
    }

    /// Returns a table; a table without rows has no columns.
    fn table(&self, name: &str) -> PyResult<Table> {
        match self.results.table(name) {
            Some(table) => Table::new(table.clone()),
            None => {
                let known: Vec<&str> = self.results.tables.iter().map(|table| table.name.as_str()).collect();
                let known = known.join(", ");
                Err(PyKeyError::new_err(format!("no table `{name}`; there are {known}")))
            }
        }
    }

    /// Returns the judged claims of the scenario.
    fn claims(&self) -> PyResult<Table> {
        crate::repro::judged("claims", &repro::judge(&self.scenario, &self.results))
    }

    /// A hash over all arrivals of all runs.
    #[getter]
    fn digest(&self) -> String {
        format!("{:016x}", self.results.totals.digest)
    }

    /// Writes the files that the command `sim run` writes.
    fn write(&self, py: Python<'_>, directory: PathBuf) -> PyResult<Vec<PathBuf>> {
        py.detach(|| results::write(&self.results, &directory))
            .map_err(|error| PyOSError::new_err(error.to_string()))
    }
}

/// Runs one point of a scenario with one seed, and writes its tables as a file, which names the run `name`.
#[pyfunction]
#[pyo3(signature = (scenario, point, seed, name, path, memory = None))]
pub fn run_into(
    py: Python<'_>,
    scenario: &Scenario,
    point: usize,
    seed: u64,
    name: &str,
    path: PathBuf,
    memory: Option<u64>,
) -> PyResult<()> {
    let done = run(py, scenario, vec![seed], Some(point), 1, memory, None, None)?;
    let wrong = |error: &dyn Display| PyOSError::new_err(format!("{}: {error}", path.display()));
    let bytes = to_run_file(name, &results::tables_of_run(&done.results)).map_err(|error| wrong(&error))?;
    std::fs::write(&path, bytes).map_err(|error| wrong(&error))
}

/// Opens the file of a run, whose name is that of the run, and reads from it.
fn read_run<T>(path: &Path, read: impl FnOnce(RunFile<File>) -> Result<T, String>) -> Result<T, String> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let file = File::open(path).map_err(|error| error.to_string());
    let opened = file.and_then(|file| RunFile::of(&name, file).map_err(|error| error.to_string()));
    opened
        .and_then(read)
        .map_err(|reason| format!("{}: {reason}; remove the file to repeat this run", path.display()))
}

/// Returns the names of the tables that have rows in any of these files of runs, in the order of a result.
#[pyfunction]
pub fn tables_of_runs(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<&'static str>> {
    let read = || {
        let mut found = BTreeSet::new();
        for path in &paths {
            found.extend(read_run(path, |file| Ok(file.tables().map(str::to_owned).collect::<Vec<_>>()))?);
        }
        Ok(found)
    };
    let found = py.detach(read).map_err(|error: String| PyOSError::new_err(error))?;
    Ok(results::TABLES.iter().copied().filter(|name| found.contains(*name)).collect())
}

/// Concatenates a table of single runs: point, seed and file of each.
#[pyfunction]
pub fn stack_runs(
    py: Python<'_>,
    scenario: &Scenario,
    name: &str,
    runs: Vec<(usize, u64, PathBuf)>,
) -> PyResult<Table> {
    let points = scenario.scenario.points().len();
    let read = |(point, seed, path): &(usize, u64, PathBuf)| match *point < points {
        true => Ok(((*point, *seed), read_run(path, |file| file.table(name))?)),
        false => Err(format!("point {point} does not exist; the sweep has {points} points")),
    };
    let stacked = py.detach(|| {
        let runs: Vec<((usize, u64), table::Table)> = runs.iter().map(read).collect::<Result<_, _>>()?;
        results::stack_runs(&scenario.scenario, &runs).map_err(|(point, seed)| {
            format!("table `{name}` of point {point}, seed {seed} has other columns than the others")
        })
    });
    Table::new(stacked.map_err(PyOSError::new_err)?)
}

/// Runs a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, seeds, point = None, threads = 0, memory = None, kept = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are the keyword arguments of the Python function")]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    seeds: Vec<u64>,
    point: Option<usize>,
    threads: usize,
    memory: Option<u64>,
    kept: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let mut scenario = (*scenario.scenario).clone();
    if seeds.is_empty() {
        return Err(PyValueError::new_err("there are no seeds; each seed is one run of each point"));
    }
    if point.is_some() && seeds.len() > 1 {
        return Err(PyValueError::new_err("a run of one point has one seed"));
    }
    let points = scenario.points().len();
    scenario.set_seeds(seeds);
    // With one seed, the runs are the points in their order.
    let shard = point.map(|point| Shard { index: point + 1, of: points });
    let options = RunOptions { shard, ..options(&scenario, threads, memory, kept)? };
    let watcher = Watcher::new(progress, calls_classes(&scenario));
    let outcome = py.detach(|| runs::run(&scenario, &options, &watcher));
    let results = watcher.outcome(outcome)?.map_err(|error| failed(&error))?;
    Ok(Results { results, scenario })
}

/// Runs a scenario until metrics are precise. Returns the results, their seeds, and whether the precision was reached.
#[pyfunction]
#[pyo3(signature = (scenario, seeds, until, most_runs, threads = 0, memory = None, kept = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are the keyword arguments of the Python function")]
pub fn run_until(
    py: Python<'_>,
    scenario: &Scenario,
    seeds: Vec<u64>,
    until: Vec<(String, f64)>,
    most_runs: usize,
    threads: usize,
    memory: Option<u64>,
    kept: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Results, Vec<u64>, bool)> {
    if let Some((metric, share)) = until.iter().find(|(_, share)| !(share.is_finite() && *share > 0.0)) {
        return Err(PyValueError::new_err(format!(
            "the precision of `{metric}` is a positive share of its mean, not {share}"
        )));
    }
    let mut scenario = (*scenario.scenario).clone();
    scenario.set_seeds(seeds);
    let options = options(&scenario, threads, memory, kept)?;
    let until: Vec<Precision> =
        until.into_iter().map(|(metric, share)| Precision { metric, share }).collect();
    let watcher = Watcher::new(progress, calls_classes(&scenario));
    let outcome = py.detach(|| precision::run_until(&mut scenario, &options, &watcher, &until, most_runs));
    let done = watcher.outcome(outcome)?.map_err(|error| failed(&error))?;
    let seeds = scenario.seeds().to_vec();
    Ok((Results { results: done.results, scenario }, seeds, done.is_reached))
}

fn options(
    scenario: &faircast_experiments::scenario::Scenario,
    threads: usize,
    memory: Option<u64>,
    kept: Option<PathBuf>,
) -> PyResult<RunOptions> {
    // Python classes run in one thread at a time.
    let threads = if calls_classes(scenario) { 1 } else { threads };
    let kept = kept.map(|directory| stored(&directory)).transpose()?;
    Ok(RunOptions { threads: NonZeroUsize::new(threads), kept, memory, ..RunOptions::default() })
}

/// Opens a directory of stored runs. The exception is that of Python for this error of the operating system, with the path.
pub fn stored(directory: &Path) -> PyResult<StoredResults> {
    StoredResults::at(directory).map_err(|error| match error.raw_os_error() {
        Some(number) => {
            PyOSError::new_err((number, error.kind().to_string(), directory.display().to_string()))
        }
        None => PyOSError::new_err(format!("{}: {error}", directory.display())),
    })
}

/// Writes tables as Parquet files `NAME.parquet` into a directory, and creates the directory.
#[pyfunction]
pub fn write_parquet(
    py: Python<'_>,
    tables: Vec<(String, Py<Table>)>,
    directory: PathBuf,
) -> PyResult<Vec<PathBuf>> {
    let tables: PyResult<Vec<table::Table>> =
        tables.into_iter().map(|(name, table)| table.get().to_results(name)).collect();
    write_tables(py, &tables?, &directory)
}

fn write_tables(py: Python<'_>, tables: &[table::Table], directory: &Path) -> PyResult<Vec<PathBuf>> {
    let write = |table: &table::Table| {
        let path = directory.join(format!("{}.parquet", table.name));
        let wrong = |error: &dyn Display| format!("{}: {error}", path.display());
        let bytes = to_parquet(table).map_err(|error| wrong(&error))?;
        std::fs::write(&path, bytes).map_err(|error| wrong(&error))?;
        Ok(path)
    };
    let written = py.detach(|| {
        std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        tables.iter().filter(|table| table.rows() > 0).map(write).collect::<Result<Vec<_>, String>>()
    });
    written.map_err(PyOSError::new_err)
}
