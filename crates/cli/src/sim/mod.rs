//! Simulations: `sim`, `repro` and `compare`.
//!
//! | module | contents |
//! |---|---|
//! | [`args`] | command line arguments |
//! | [`running`] | reading and running scenarios, with progress |
//! | [`table`] | results of a scenario, as tables and JSON |
//! | `outlook` | forecast before the first run |
//! | [`files`] | files of results and figures |
//! | `traces` | the trace of a run |
//! | `live` `served` | the page of a run, or of results, for browsers |
//! | `stored` | finished runs, with which an interrupted command resumes |
//! | `twin` | the scenario of a real session |
//! | `hurst` `series` | self-similarity of a series, and reading it |
//! | `design` | gains of queues for a link |
//! | [`repro`] [`compare`] | the other two commands |

pub mod args;
pub mod compare;
mod design;
pub mod files;
mod hurst;
#[cfg(feature = "page")]
mod live;
mod outlook;
pub mod repro;
pub mod running;
mod series;
pub mod served;
mod stored;
pub mod table;
#[cfg(test)]
mod tests;
mod traces;
mod twin;

use crate::failure::{Failure, unwritten};
use crate::json;
use crate::sim_usage::SimUsage;
use crate::units;
use args::{SimCheck, SimCommand, SimMerge, SimNew, SimRun};
use faircast_experiments::figures::curves::UnknownCurve;
use faircast_experiments::figures::{self, Named};
use faircast_experiments::report::results::ResultsPage;
use faircast_experiments::repro::{Judged, Verdict, judge};
use faircast_experiments::results::Results;
use faircast_experiments::run::forecast::forecast;
use faircast_experiments::run::{RunOptions, admit};
use faircast_experiments::scenario::{self, DiagnosticStyle, Diagnostics, Scenario, TEMPLATES};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use stored::Stored;

/// Runs a command of `sim`.
///
/// # Errors
/// The error of the command; [`Failure::Check`] when the results contradict a claim of the scenario.
pub fn run(command: SimCommand, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    match command {
        SimCommand::Run(typed) => run_scenario(&typed, out, stop),
        SimCommand::New(typed) => new(&typed, out, stop),
        SimCommand::Check(typed) => check(&typed, out),
        SimCommand::Merge(typed) => merge(&typed, out),
        SimCommand::Hurst(typed) => hurst::run(&typed, out),
        SimCommand::SfcDesign(typed) => design::run(&typed, out),
        SimCommand::Schema => writeln!(out, "{}", scenario::schema()).map_err(unwritten),
    }
}

/// The last line of a simulation, as JSON.
#[derive(Debug, Serialize)]
struct Done<'a> {
    event: &'static str,
    ok: bool,
    runs: usize,
    seconds: f64,
    packets: u64,
    digest: String,
    out: &'a Path,
    files: &'a [String],
}

fn run_scenario(typed: &SimRun, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    let mut scenario = running::read(&typed.file, &typed.set, typed.running.max_memory)?;
    if let Some(seeds) = &typed.running.seeds {
        scenario.set_seeds(seeds.0.clone());
    }
    running::warn(&scenario);
    check_curves(typed, &scenario)?;
    if let Some(lack) = scenario.lack_of_metrics(&typed.metrics) {
        return Err(running::mistaken(&lack, &typed.file).into());
    }
    let mut options = RunOptions {
        threads: typed.running.threads,
        shard: typed.shard,
        memory: Some(typed.running.max_memory),
        ..RunOptions::default()
    };
    admit(&scenario, &options).map_err(running::refused)?; // before a directory is created
    let stored = Stored::open(typed.out.as_deref())?;
    options.kept = stored.as_ref().map(Stored::kept);
    let trace = typed.trace.as_deref().map(traces::create).transpose()?;
    let forecast = forecast(&scenario, &options).map_err(running::refused)?;
    if !(typed.quiet || typed.json) {
        outlook::announce(&forecast, stored.as_ref(), &[&scenario])?;
    }
    #[cfg(feature = "page")]
    let live = match typed.page {
        Some(at) => Some(live::Live::open(at, typed.json, out)?),
        None => None,
    };
    #[cfg(feature = "page")]
    live.iter().try_for_each(|live| live.show(&scenario, stop))?;
    let quiet =
        if typed.quiet { running::ProgressOutput::Nothing } else { running::ProgressOutput::Progress };
    let run = match typed.until.is_empty() {
        true => running::run(&scenario, &options, quiet, stop).map(|(results, took)| (results, true, took)),
        false => running::run_until(&mut scenario, &options, (&typed.until, typed.max_seeds), quiet, stop),
    };
    let (mut results, is_precise, took) =
        run.inspect_err(|_| stored.iter().for_each(Stored::explain_resume))?;
    match (typed.pcap, results.captures.is_empty()) {
        (true, true) => return Err(SimUsage::NoTaps.into()),
        (false, _) => results.captures.clear(),
        (true, false) => {}
    }
    if let Some(file) = trace {
        traces::write(&scenario, file, stop)?;
    }
    typed.flent.iter().try_for_each(|file| files::flent(file, &scenario, &results, "simulation"))?;
    let directory = typed.out.clone().unwrap_or_else(|| {
        let part = typed.shard.map_or(String::new(), |shard| format!("-{}of{}", shard.index, shard.of));
        files::beside(&typed.file, &format!("results{part}"))
    });
    let claims = if typed.shard.is_some() { Vec::new() } else { judge(&scenario, &results) };
    let figures = draw(typed, &scenario, &results)?;
    let mut drawn = files::svg(&figures);
    if typed.pdf {
        drawn.extend(files::pdf(&figures));
    }
    if typed.plot {
        let page = page(typed, &scenario, &results, &claims, &figures);
        drawn.push(("index.html".to_owned(), page.into_bytes()));
    }
    #[cfg(feature = "page")]
    drawn.extend(live.iter().map(live::Live::file));
    let names = files::run(Some(&results), &drawn, &directory, typed.running.threads, took)?;
    stored::keep_only(&[&scenario], &directory)?;
    if typed.json {
        table::json(&results, out).map_err(unwritten)?;
        table::json_claims(&claims, out).map_err(unwritten)?;
        let done = Done {
            event: "done",
            ok: failed(&claims) == 0,
            runs: results.jobs.len(),
            seconds: took.as_secs_f64(),
            packets: results.totals.traversals,
            digest: format!("{:016x}", results.totals.digest),
            out: &directory,
            files: &names,
        };
        json::write(out, &done).map_err(unwritten)?;
    } else {
        let reported = RunReport {
            scenario: &scenario,
            results: &results,
            claims: &claims,
            stored: forecast.stored,
            directory: &directory,
            names: &names,
        };
        reported.write(typed, took, out).map_err(unwritten)?;
    }
    #[cfg(feature = "page")]
    live.iter().for_each(|live| live.stay(stop));
    verdict(&claims)?;
    match is_precise {
        true => Ok(()),
        false => Err(Failure::Check(format!(
            "the precision was not reached with {}; raise --max-seeds, or the share",
            units::count(scenario.seeds().len() as u64, "seed")
        ))),
    }
}

/// Draws the requested figures.
fn draw(typed: &SimRun, scenario: &Scenario, results: &Results) -> Result<Vec<Named>, SimUsage> {
    let mut all = Vec::new();
    if typed.plot || (typed.pdf && typed.curves.is_empty() && typed.metrics.is_empty()) {
        all.extend(figures::figures(scenario, results));
    }
    if !typed.curves.is_empty() {
        let chosen = figures::curves::curves(scenario.title(), results, &typed.curves);
        all.push(("curves", chosen.map_err(SimUsage::NoCurve)?));
    }
    all.extend(
        figures::metrics(scenario.title(), results, &typed.metrics)
            .map(|figure| ("metrics", figure))
            .filter(|_| !typed.metrics.is_empty()),
    );
    Ok(all)
}

/// Returns the page of a run.
fn page(
    typed: &SimRun,
    scenario: &Scenario,
    results: &Results,
    claims: &[Judged],
    figures: &[Named],
) -> String {
    let mut about = vec![format!("{}.", table::what_would_run(scenario))];
    let mut tables = Vec::new();
    if !claims.is_empty() {
        tables.push((String::new(), table::claims(claims)));
    }
    for point in &results.points {
        let mut heading = point.to_string();
        let name = if heading.is_empty() { String::new() } else { format!("{heading}: ") };
        about.extend(table::remarks(scenario, results, point).iter().map(|line| format!("{name}{line}.")));
        for grid in table::grids(scenario, results, point) {
            tables.push((std::mem::take(&mut heading), grid));
        }
    }
    let (file, text) = (scenario.file(), scenario.text());
    let command = format!("faircast sim run {} --plot", typed.file.display());
    ResultsPage { title: scenario.title(), about, tables, figures, scenario: (file, text), command }.html()
}

/// Checks, before the run, that the scenario has the flows of the requested curves.
fn check_curves(typed: &SimRun, scenario: &Scenario) -> Result<(), SimUsage> {
    let flows: Vec<&str> = scenario.groups().collect();
    match typed.curves.iter().find(|curve| !flows.contains(&curve.flow.as_str())) {
        Some(curve) => {
            let known = flows.iter().map(ToString::to_string).collect();
            Err(SimUsage::NoCurve(UnknownCurve { curve: curve.to_string(), known }))
        }
        None => Ok(()),
    }
}

/// Output about a run for people.
struct RunReport<'a> {
    scenario: &'a Scenario,
    results: &'a Results,
    claims: &'a [Judged],
    /// Number of finished runs from an earlier command.
    stored: usize,
    directory: &'a Path,
    names: &'a [String],
}

impl RunReport<'_> {
    fn write(&self, typed: &SimRun, took: std::time::Duration, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "{}", self.scenario.title())?;
        writeln!(out, "{}\n", table::what_was_run(self.scenario, self.results, self.stored, took))?;
        table::text(self.scenario, self.results, out)?;
        if !self.claims.is_empty() {
            writeln!(out, "\n{}", table::claims(self.claims).text())?;
        }
        writeln!(
            out,
            "wrote {} into {}:",
            units::count(self.names.len() as u64, "file"),
            self.directory.display()
        )?;
        writeln!(out, "  {}", self.names.join(" "))?;
        if !typed.plot && typed.shard.is_none() {
            writeln!(out, "draw figures with --plot")?;
        }
        Ok(())
    }
}

fn failed(claims: &[Judged]) -> usize {
    claims.iter().filter(|claim| claim.verdict == Verdict::Fails).count()
}

/// Returns an error if a claim fails.
///
/// # Errors
/// [`Failure::Check`] when a claim fails.
pub fn verdict(claims: &[Judged]) -> Result<(), Failure> {
    match failed(claims) {
        0 => Ok(()),
        failed => {
            let noun = units::count(claims.len() as u64, "claim");
            Err(Failure::Check(format!("{failed} of {noun} {}", if failed == 1 { "fails" } else { "fail" })))
        }
    }
}

fn new(typed: &SimNew, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    if typed.list {
        return TEMPLATES
            .iter()
            .try_for_each(|template| writeln!(out, "{:<10} {}", template.name, template.summary))
            .map_err(unwritten);
    }
    if let Some(path) = typed.out.as_ref().filter(|path| path.exists() && !typed.force) {
        return Err(SimUsage::ScenarioExists(path.clone()).into());
    }
    let text = match twin::Original::of(typed) {
        Some(original) => twin::text(original, &typed.without, stop)?,
        None => template(typed)?.to_owned(),
    };
    let Some(path) = &typed.out else {
        return out.write_all(text.as_bytes()).map_err(unwritten);
    };
    std::fs::write(path, text).map_err(Failure::system(format!("write {}", path.display())))?;
    let path = path.display();
    writeln!(out, "wrote {path}\n\nnext:\n  faircast sim run {path} --plot").map_err(unwritten)
}

fn template(typed: &SimNew) -> Result<&'static str, SimUsage> {
    let name = typed.template.as_deref().unwrap_or(TEMPLATES[0].name);
    scenario::template(name).ok_or_else(|| SimUsage::NoSuchTemplate {
        name: name.to_owned(),
        known: TEMPLATES.iter().map(|template| template.name).collect::<Vec<_>>().join(", "),
    })
}

/// An error or a warning about a scenario as JSON.
#[derive(Serialize)]
struct Diagnostic<'a> {
    event: &'static str,
    file: &'a Path,
    line: usize,
    column: usize,
    message: &'a str,
    help: Option<&'a str>,
}

fn check(typed: &SimCheck, out: &mut impl Write) -> Result<(), Failure> {
    let mut wrong = 0;
    for file in &typed.files {
        let text = running::text(file)?;
        match Scenario::parse_within(&text, &file.display().to_string(), typed.max_memory) {
            Ok(scenario) => {
                if !typed.json {
                    writeln!(out, "{}: good; {}", file.display(), table::what_would_run(&scenario))
                        .map_err(unwritten)?;
                }
                print("warning", file, scenario.warnings(), typed, out).map_err(unwritten)?;
            }
            Err(mistakes) => {
                wrong += 1;
                print("mistake", file, &mistakes, typed, out).map_err(unwritten)?;
            }
        }
    }
    match wrong {
        0 => Ok(()),
        wrong => Err(Failure::Check(format!("{} cannot be run", units::count(wrong, "scenario")))),
    }
}

/// Prints errors or warnings about scenarios.
fn print(
    event: &'static str,
    file: &Path,
    all: &Diagnostics,
    typed: &SimCheck,
    out: &mut impl Write,
) -> std::io::Result<()> {
    if !typed.json {
        return write!(out, "{}", all.render(look(std::io::stdout().is_terminal())));
    }
    all.iter().try_for_each(|mistake| {
        let (line, column) = all.position(mistake);
        let (message, help) = (mistake.message.as_str(), mistake.help.as_deref());
        json::write(out, &Diagnostic { event, file, line, column, message, help })
    })
}

/// Returns the style of diagnostics: with colours on a terminal, unless the user has disabled them.
fn look(terminal: bool) -> DiagnosticStyle {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if terminal && !refused { DiagnosticStyle::Coloured } else { DiagnosticStyle::Plain }
}

fn merge(typed: &SimMerge, out: &mut impl Write) -> Result<(), Failure> {
    let parts: Vec<PathBuf> = typed.parts.clone();
    let merged = faircast_experiments::results::merge(&parts, &typed.out)
        .map_err(|error| Failure::Check(error.to_string()))?;
    let runs = units::count(merged.runs as u64, "run");
    writeln!(out, "{runs} from {} are in {}", units::count(parts.len() as u64, "part"), typed.out.display())
        .map_err(unwritten)?;
    match merged.missing.len() {
        0 => Ok(()),
        missing => Err(Failure::Check(format!("{} still missing", units::count(missing as u64, "run")))),
    }
}
