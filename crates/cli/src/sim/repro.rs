//! `faircast repro`: repeats the figures and tables of the papers.

use super::args::{ReproCommand, ReproList, ReproRun, ReproVerify};
use super::running::{ProgressOutput, RunPrinter, mistaken, refused};
use super::served::Served;
use super::{files, verdict};
use crate::failure::{Failure, unwritten};
use crate::json;
use crate::sim_usage::SimUsage;
use crate::units;
use faircast_experiments::report::page;
use faircast_experiments::repro::{
    Entry, Pace, ReproError, ReproOutcome, Reproduction, Settings, Verdict, entries, find, reproduce,
};
use faircast_experiments::run::stored_results::StoredResults;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Runs a command of `repro`.
///
/// # Errors
/// The error of the command; [`Failure::Check`] when the results contradict a claim.
pub fn run(command: ReproCommand, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    match command {
        ReproCommand::List(typed) => list(&typed, out).map_err(unwritten),
        ReproCommand::Run(typed) => one(&typed, out, stop),
        ReproCommand::Verify(typed) => verify(&typed, out, stop),
    }
}

/// An entry as JSON.
#[derive(Serialize)]
struct EntryLine {
    id: &'static str,
    about: &'static str,
    also: &'static [String],
    can_be_run: bool,
    claims: usize,
    open: usize,
}

fn claims(entry: &Entry) -> usize {
    let scenario = entry.scenario.as_ref().and_then(|embedded| embedded.scenario(&Settings::default()).ok());
    scenario.map_or(0, |scenario| scenario.claims().len()) + entry.restates.len()
}

fn list(typed: &ReproList, out: &mut impl Write) -> io::Result<()> {
    for entry in entries() {
        let (claims, open) = (claims(entry), entry.open.len());
        if typed.json {
            let Entry { id, about, aliases, .. } = entry;
            let can_be_run =
                entry.scenario.is_some() || entry.calculation.is_some() || !entry.restates.is_empty();
            json::write(out, &EntryLine { id, about, also: aliases, can_be_run, claims, open })?;
            continue;
        }
        let state = match (claims, open) {
            (0, 0) => "computed".into(),
            (0, open) => format!("{open} open"),
            (claims, 0) => units::count(claims as u64, "claim"),
            (claims, open) => format!("{}, {open} open", units::count(claims as u64, "claim")),
        };
        writeln!(out, "{:<15} {}", entry.id, entry.about)?;
        let also = if entry.aliases.is_empty() {
            String::new()
        } else {
            format!("; also {}", entry.aliases.join(", "))
        };
        writeln!(out, "{:<15}   {state}{also}", "")?;
    }
    if !typed.json {
        writeln!(
            out,
            "\nRepeat one with `faircast repro run ID`. Status `open`: it needs a feature that does not exist yet."
        )?;
    }
    Ok(())
}

fn settings(running: &super::args::Running, quick: bool, alternatives: usize) -> Settings {
    Settings {
        seeds: running.seeds.as_ref().map(|seeds| seeds.0.clone()),
        threads: running.threads,
        pace: if quick { Pace::Quick } else { Pace::Full },
        set: Vec::new(),
        alternatives: if quick { 0 } else { alternatives },
        kept: None,
        memory: Some(running.max_memory),
    }
}

/// Converts the error of a reproduction into a failure.
fn unrepeated(error: ReproError) -> Failure {
    match error {
        ReproError::Edit(error) => SimUsage::from(error).into(),
        ReproError::Scenario(mistakes) => mistaken(&mistakes, Path::new(mistakes.file())).into(),
        ReproError::Run(error) => refused(error),
    }
}

fn output_options(quiet: bool) -> ProgressOutput {
    if quiet { ProgressOutput::Nothing } else { ProgressOutput::Progress }
}

fn one(typed: &ReproRun, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    let entry = find(&typed.id).map_err(SimUsage::from)?;
    let served = Served::open(&typed.shown, "repro run", typed.json, out)?;
    let began = Instant::now();
    let done = {
        let printer = RunPrinter::new(output_options(typed.quiet), &entry.id, stop);
        let mut settings = settings(&typed.running, typed.quick, typed.alternatives);
        settings.set.clone_from(&typed.set);
        reproduce(entry, &settings, &printer).map_err(unrepeated)?
    };
    let took = began.elapsed();
    let mut written = Vec::new();
    let out_of_id = || PathBuf::from(format!("{}-results", entry.id.replace('/', "-")));
    let directory = typed.out.clone().or_else(|| (typed.plot || typed.pdf).then(out_of_id));
    let html = page::html(std::slice::from_ref(&done), &format!("{}: {}", entry.id, entry.about));
    if let Some(directory) = directory.as_ref().filter(|_| !done.figures.is_empty()) {
        let mut others = files::svg(&done.figures);
        if typed.pdf {
            others.extend(files::pdf(&done.figures));
        }
        others.push(("index.html".into(), html.clone().into_bytes()));
        let results = done.run.as_ref().map(|run| &run.results);
        written = files::run(results, &others, directory, typed.running.threads, took)?;
    }
    if typed.json {
        json::write(out, &done.outcome).map_err(unwritten)?;
    } else {
        print(&done, took, out).map_err(unwritten)?;
        if let (Some(directory), false) = (&directory, written.is_empty()) {
            let count = units::count(written.len() as u64, "file");
            writeln!(out, "wrote {count} into {}; look at index.html", directory.display())
                .map_err(unwritten)?;
        } else if directory.is_some() {
            writeln!(out, "nothing is written: {} has no figure", entry.id).map_err(unwritten)?;
        }
    }
    served.show(&html, stop);
    decide(&done.outcome, typed.quick, out, typed.json)
}

/// Returns an error if the results contradict a claim of the entry. A quick run never fails.
fn decide(outcome: &ReproOutcome, quick: bool, out: &mut impl Write, json: bool) -> Result<(), Failure> {
    if !quick {
        return verdict(&outcome.claims);
    }
    if !json {
        writeln!(out, "A quick run shows that the experiment works; its verdicts have no meaning.")
            .map_err(unwritten)?;
    }
    Ok(())
}

fn print(done: &Reproduction, took: Duration, out: &mut impl Write) -> io::Result<()> {
    let entry = done.entry;
    writeln!(out, "{}: {}\n", entry.id, entry.about)?;
    paragraph("published", &entry.published, out)?;
    let simulated = if done.run.is_some() {
        format!(" In {}.", units::seconds(took.as_secs_f64()))
    } else {
        String::new()
    };
    paragraph("here", &format!("{}{simulated}", page::what_was_run(done)), out)?;
    writeln!(out, "\n{}", page::claims(&done.outcome).text())?;
    for note in page::notes(done) {
        paragraph("", &note, out)?;
    }
    writeln!(out, "{}", page::counts(&[&done.outcome]))
}

/// Writes text after a label, in lines of at most 100 characters.
fn paragraph(label: &str, text: &str, out: &mut impl Write) -> io::Result<()> {
    const WIDTH: usize = 100;
    let indent = if label.is_empty() { 0 } else { 11 };
    let mut line = format!("{label:<indent$}");
    for word in text.split_whitespace() {
        if line.chars().count() + word.chars().count() > WIDTH {
            writeln!(out, "{}", line.trim_end())?;
            line = " ".repeat(indent);
        }
        line.push_str(word);
        line.push(' ');
    }
    writeln!(out, "{}", line.trim_end())
}

/// Returns the entries that match one of `ids`. An element of `ids` matches an entry if it is a prefix of the entry's ID, or
/// equals one of the entry's aliases. Returns all entries if `ids` is empty.
fn chosen(ids: &[String]) -> Result<Vec<&'static Entry>, Failure> {
    let fits = |entry: &Entry, id: &String| entry.id.starts_with(id) || entry.aliases.contains(id);
    for id in ids {
        if !entries().any(|entry| fits(entry, id)) {
            find(id).map_err(SimUsage::from)?; // the error names the list of IDs
        }
    }
    Ok(entries().filter(|entry| ids.is_empty() || ids.iter().any(|id| fits(entry, id))).collect())
}

fn verify(typed: &ReproVerify, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    let entries = chosen(&typed.ids)?;
    let mut settings = settings(&typed.running, typed.quick, typed.alternatives);
    let runs = typed.out.join("runs");
    let kept = StoredResults::at(&runs).and_then(|kept| kept.forget_others().map(|()| kept));
    settings.kept = Some(kept.map_err(Failure::system(format!("write {}", runs.display())))?);
    let mut all = Vec::new();
    for entry in entries {
        let began = Instant::now();
        let mut done = {
            let printer = RunPrinter::new(output_options(typed.quiet), &entry.id, stop);
            reproduce(entry, &settings, &printer).map_err(unrepeated)?
        };
        for (name, figure) in &done.figures {
            files::page(&page::figure_path(&entry.id, name), &figure.svg(), &typed.out)?;
        }
        if let Some(run) = &mut done.run {
            run.results.tables.clear(); // hundreds of megabytes, not in the report
        }
        if typed.json {
            json::write(out, &done.outcome).map_err(unwritten)?;
        } else {
            progress(&done, began.elapsed(), out).map_err(unwritten)?;
        }
        all.push(done);
    }
    report(&all, typed)?;
    let outcomes: Vec<&ReproOutcome> = all.iter().map(|done| &done.outcome).collect();
    if !typed.json {
        let path = typed.out.join("index.html");
        writeln!(
            out,
            "\n{}\nwrote {}, with report.md in the same directory",
            page::counts(&outcomes),
            path.display()
        )
        .map_err(unwritten)?;
    }
    let claims = all.iter().flat_map(|done| done.outcome.claims.iter().cloned()).collect();
    decide(&ReproOutcome { id: String::new(), claims }, typed.quick, out, typed.json)
}

fn progress(done: &Reproduction, took: Duration, out: &mut impl Write) -> io::Result<()> {
    let seconds = if done.run.is_some() { units::seconds(took.as_secs_f64()) } else { "not run".into() };
    writeln!(out, "{:<15} {:>9}   {}", done.entry.id, seconds, page::counts(&[&done.outcome]))?;
    for claim in done.outcome.claims.iter().filter(|claim| claim.verdict == Verdict::Fails) {
        writeln!(out, "{:<28}fails: {}", "", claim.name)?;
    }
    out.flush()
}

fn report(all: &[Reproduction], typed: &ReproVerify) -> Result<(), Failure> {
    let heading = match typed.quick {
        true => "Reproduction, quick runs without meaningful verdicts",
        false => "Reproduction",
    };
    let directory: &Path = &typed.out;
    files::page("index.html", &page::overview(all, heading), directory)?;
    for (name, text) in page::documents(all) {
        files::page(&name, &text, directory)?;
    }
    files::page("report.md", &page::markdown(all, heading), directory)?;
    Ok(())
}
