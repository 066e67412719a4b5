//! Reading and running of scenarios, with progress.

use super::look;
use crate::failure::Failure;
use crate::sim_usage::SimUsage;
use crate::units;
use faircast_experiments::edit::Edit;
use faircast_experiments::results::Results;
use faircast_experiments::run::precision::{self, Precision};
use faircast_experiments::run::{self, Progress, RunError, RunOptions, Status};
use faircast_experiments::scenario::{Diagnostics, Scenario};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Returns the text of a scenario file. Trace files that the scenario names are included in the text.
///
/// # Errors
/// When a file cannot be read.
pub fn text(path: &Path) -> Result<String, SimUsage> {
    let unreadable = |path: &Path, source| SimUsage::ScenarioUnreadable { path: path.to_owned(), source };
    let bytes = std::fs::metadata(path).map_err(|source| unreadable(path, source))?.len();
    if bytes > MAX_BYTES {
        let why = format!("a scenario may have at most {MAX_BYTES} bytes, but this file has {bytes}");
        return Err(unreadable(path, std::io::Error::other(why)));
    }
    let text = std::fs::read_to_string(path).map_err(|source| unreadable(path, source))?;
    if !["trace_file", "rates_file"].iter().any(|key| text.contains(key)) {
        return Ok(text);
    }
    let Ok(mut edit) = Edit::of(&text) else { return Ok(text) }; // the parser reports the errors later
    let beside = path.parent().unwrap_or(Path::new(""));
    edit.read_traces(|name| {
        let file = beside.join(name);
        let bytes = std::fs::metadata(&file).map_err(|source| unreadable(&file, source))?.len();
        if bytes > MAX_TRACE_BYTES {
            let why = format!("a trace may have at most {MAX_TRACE_BYTES} bytes, but this file has {bytes}; shorten the trace, or merge entries");
            return Err(unreadable(&file, std::io::Error::other(why)));
        }
        std::fs::read_to_string(&file).map_err(|source| unreadable(&file, source))
    })?;
    Ok(edit.text())
}

/// Maximum length of a scenario file, in bytes.
const MAX_BYTES: u64 = 32 << 20;
/// Maximum length of a trace file, in bytes.
const MAX_TRACE_BYTES: u64 = 32 << 20;

/// Reads a scenario and applies changes of keys. A run may use up to `memory` bytes. Errors in the scenario are shown on standard
/// error.
///
/// # Errors
/// When the scenario cannot be read, changed or run.
pub fn read(path: &Path, changes: &[(String, String)], memory: u64) -> Result<Scenario, SimUsage> {
    let mut text = text(path)?;
    // Errors of the file are shown with its original lines, before any change.
    let mut scenario = parse(&text, path, memory)?;
    if !changes.is_empty() {
        let mut edit = Edit::of(&text)?;
        changes.iter().try_for_each(|(key, value)| edit.set(key, value))?;
        text = edit.text();
        scenario = parse(&text, path, memory)?;
    }
    Ok(scenario)
}

/// Parses a scenario. A run may use up to `memory` bytes. Errors in the scenario are shown on standard error.
///
/// # Errors
/// When the scenario has errors.
pub fn parse(text: &str, path: &Path, memory: u64) -> Result<Scenario, SimUsage> {
    Scenario::parse_within(text, &path.display().to_string(), memory)
        .map_err(|mistakes| mistaken(&mistakes, path))
}

/// Shows the errors of a scenario on standard error, and returns a summary.
pub fn mistaken(mistakes: &Diagnostics, path: &Path) -> SimUsage {
    let mut people = std::io::stderr();
    // A failure to print is ignored, because the returned error states the number of errors.
    let _ = write!(people, "{}", mistakes.render(look(people.is_terminal())));
    SimUsage::ScenarioWrong { path: path.to_owned(), mistakes: mistakes.len() }
}

/// Shows the warnings about a scenario on standard error.
pub fn warn(scenario: &Scenario) {
    let mut people = std::io::stderr();
    // A failure to write standard error is ignored.
    let _ = write!(people, "{}", scenario.warnings().render(look(people.is_terminal())));
}

/// Amount of output during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressOutput {
    /// Progress.
    Progress,
    /// No output.
    Nothing,
}

/// Prints the progress of a run, and stops the run when the flag is set.
pub struct RunPrinter<'a> {
    label: String,
    screen: Screen,
    stop: &'a AtomicBool,
}

enum Screen {
    Nothing,
    Bar(ProgressBar),
    /// Lines of text. The value is the number of tenths of the run that were complete at the last printed line.
    Lines(AtomicU64),
}

const STEPS: u64 = 1000;

/// Number of progress lines of a run without a terminal.
const LINES: f64 = 10.0;

impl<'a> RunPrinter<'a> {
    /// Creates a printer on standard error. `label` precedes each output and may be empty.
    pub fn new(output_options: ProgressOutput, label: &str, stop: &'a AtomicBool) -> RunPrinter<'a> {
        let screen = match output_options {
            ProgressOutput::Nothing => Screen::Nothing,
            ProgressOutput::Progress if std::io::stderr().is_terminal() => {
                let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
                let style = ProgressStyle::with_template("{prefix}{bar:24} {percent:>3} %  {msg}");
                bar.set_style(
                    style.expect("the template is valid").progress_chars("\u{2588}\u{2588}\u{2591}"),
                );
                bar.set_prefix(if label.is_empty() { String::new() } else { format!("{label}  ") });
                Screen::Bar(bar)
            }
            ProgressOutput::Progress => Screen::Lines(AtomicU64::new(0)),
        };
        RunPrinter { label: label.to_owned(), screen, stop }
    }
}

impl Drop for RunPrinter<'_> {
    fn drop(&mut self) {
        if let Screen::Bar(bar) = &self.screen {
            bar.finish_and_clear();
        }
    }
}

impl Progress for RunPrinter<'_> {
    fn update(&self, status: &Status) {
        match &self.screen {
            Screen::Nothing => {}
            Screen::Bar(bar) => {
                bar.set_position((status.simulated / status.to_simulate * STEPS as f64) as u64);
                bar.set_message(message(status));
            }
            Screen::Lines(last) => {
                let part = status.simulated / status.to_simulate;
                let tenth = (part * LINES) as u64;
                if last.fetch_max(tenth, Ordering::Relaxed) < tenth {
                    let percent = part * 100.0;
                    let label =
                        if self.label.is_empty() { String::new() } else { format!("{}  ", self.label) };
                    // A failure to write standard error is ignored.
                    let _ = writeln!(std::io::stderr(), "{label}{percent:.0} %  {}", message(status));
                }
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn message(status: &Status) -> String {
    let runs = format!("{} of {} done", status.done, units::count(status.runs as u64, "run"));
    match status.remaining() {
        Some(left) => format!("{runs}, {} left", units::seconds(left.as_secs_f64().round())),
        None => runs,
    }
}

/// Runs a scenario and prints its progress. Returns the results and the duration.
///
/// # Errors
/// When the simulator rejects the scenario, or the run was stopped.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    output_options: ProgressOutput,
    stop: &AtomicBool,
) -> Result<(Results, Duration), Failure> {
    let printer = RunPrinter::new(output_options, "", stop);
    let began = Instant::now();
    let results = run::run(scenario, options, &printer).map_err(refused)?;
    Ok((results, began.elapsed()))
}

/// Runs a scenario until metrics are precise, and prints its progress. Returns the results, whether the precision was reached, and
/// the duration.
///
/// # Errors
/// When the simulator rejects the scenario, a metric does not exist, or the run was stopped.
pub fn run_until(
    scenario: &mut Scenario,
    options: &RunOptions,
    (until, most): (&[Precision], usize),
    output_options: ProgressOutput,
    stop: &AtomicBool,
) -> Result<(Results, bool, Duration), Failure> {
    let printer = RunPrinter::new(output_options, "", stop);
    let began = Instant::now();
    let done = precision::run_until(scenario, options, &printer, until, most).map_err(refused)?;
    Ok((done.results, done.is_reached, began.elapsed()))
}

/// Converts the error of a run into a failure of the command.
pub fn refused(error: RunError) -> Failure {
    match error {
        RunError::Cancelled => faircast::Error::Transfer(faircast::error::TransferError::Stopped).into(),
        error => Failure::Check(error.to_string()),
    }
}
