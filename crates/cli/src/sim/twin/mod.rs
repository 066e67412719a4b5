//! `sim new --from-report` and `--from-trace`: the twin of a session.
//!
//! | module | contents |
//! |---|---|
//! | [`session`] | the session in a report |
//! | [`traced`] | the session in a trace |
//! | [`network`] | the network that the session has seen |
//! | [`scenario`] | the scenario file |

mod network;
mod scenario;
mod session;
#[cfg(test)]
mod tests;
mod traced;

use super::args::SimNew;
use super::running::{self, ProgressOutput};
use crate::failure::Failure;
use crate::sim_usage::SimUsage;
use faircast_experiments::run::RunOptions;
use scenario::{Origin, Twin};
use session::Session;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Maximum number of runs that determine the rates of limited links.
const TRIES: usize = 5;
/// The rates are good if the twin's time differs from the session's by at most this part.
const GOOD: f64 = 0.02;
/// Limits of the factor of a try.
const STEP: (f64, f64) = (0.5, 2.0);
/// A session with random losses is faster than its twin if the difference exceeds this part: twice the deviation of such sessions.
const FASTER: f64 = 0.05;
/// Random seeds of the runs that determine the losses of reports.
const REPORT_SEEDS: u64 = 5;
/// Memory limit of a run, in bytes.
const MEMORY: u64 = 8 << 30;

/// The file in which a session was recorded.
#[derive(Debug, Clone, Copy)]
pub enum Original<'a> {
    /// A report.
    Report(&'a Path),
    /// A trace, and the name of one of its sessions.
    Trace(&'a Path, Option<&'a str>),
}

impl<'a> Original<'a> {
    /// Returns the file that the user has named.
    pub fn of(typed: &'a SimNew) -> Option<Original<'a>> {
        let report = typed.from_report.as_deref().map(Original::Report);
        report.or_else(|| Some(Original::Trace(typed.from_trace.as_deref()?, typed.session.as_deref())))
    }
}

/// Returns the scenario of the twin of a session, without some of its receivers.
///
/// # Errors
/// When the session has no twin, a host of `without` is not in it, or the runs that determine rates fail.
pub fn text(original: Original<'_>, without: &[String], stop: &AtomicBool) -> Result<String, Failure> {
    let (path, option, session) = match original {
        Original::Report(path) => (path, "--from-report", Session::read(path)?),
        Original::Trace(path, name) => (path, "--from-trace", traced::read(path, name)?),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut twin = Twin::new(session, Origin { option, name });
    if twin.is_limited() {
        fit(&mut twin, path, stop)?;
    } else if twin.is_lossy() {
        fit_reports(&mut twin, path, stop)?;
    }
    for host in without {
        let known = twin.hosts().join(", ");
        if !twin.leave_out(host) {
            return Err(SimUsage::NoSuchReceiver { host: host.clone(), known }.into());
        }
    }
    let text = twin.text();
    running::parse(&text, path, MEMORY)?;
    Ok(text)
}

/// Runs the twin, and scales the rates of limited links until it takes as long as the session.
fn fit(twin: &mut Twin, path: &Path, stop: &AtomicBool) -> Result<(), Failure> {
    let (least, most) = STEP;
    for _ in 0..TRIES {
        // Without a time, the twin is slower than its longest duration.
        let factor = slowness(twin, 1, path, stop)?.unwrap_or(most).clamp(least, most);
        if (factor - 1.0).abs() <= GOOD {
            break;
        }
        twin.scale(factor);
    }
    Ok(())
}

/// Runs the twin of a session whose losses are random. A source that misses reports of losses is faster. If the session was faster
/// than its twin, finds the part of the losses that reports have as well.
fn fit_reports(twin: &mut Twin, path: &Path, stop: &AtomicBool) -> Result<(), Failure> {
    let Some(none) = slowness(twin, REPORT_SEEDS, path, stop)?.filter(|none| *none > 1.0 + FASTER) else {
        return Ok(());
    };
    twin.lose_reports(1.0);
    let all = slowness(twin, REPORT_SEEDS, path, stop)?.unwrap_or(none);
    twin.lose_reports(if all < none { ((none - 1.0) / (none - all)).clamp(0.0, 1.0) } else { 0.0 });
    Ok(())
}

/// Returns the mean time of the twin in runs with this number of random seeds, as a multiple of the session's.
fn slowness(twin: &Twin, seeds: u64, path: &Path, stop: &AtomicBool) -> Result<Option<f64>, Failure> {
    let mut scenario = running::parse(&twin.text(), path, MEMORY)?;
    scenario.set_seeds((1..=seeds).collect());
    let (results, _) = running::run(&scenario, &RunOptions::default(), ProgressOutput::Progress, stop)?;
    let took = results.metric(0, "session.completion");
    let mean = took.iter().sum::<f64>() / took.len().max(1) as f64;
    Ok((!took.is_empty()).then(|| mean / twin.seconds()))
}
