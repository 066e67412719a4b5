//! `faircast aqm`: characterizes a queue discipline under many loads, and compares several.

pub mod args;

use crate::failure::{Failure, unwritten};
use crate::sim::files;
use crate::sim::running::{ProgressOutput, RunPrinter};
use crate::sim::served::Served;
use args::{AqmCommand, Characterize, Compare, Loads};
use faircast_experiments::aqm::{self, Bench, BenchError, Set, Settings};
use faircast_experiments::run::RunOptions;
use faircast_experiments::run::stored_results::StoredResults;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Runs a command of `aqm`.
///
/// # Errors
/// When an experiment cannot be run, or its result cannot be written.
pub fn run(command: AqmCommand, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    match command {
        AqmCommand::Characterize(typed) => characterize(&typed, out, stop),
        AqmCommand::Compare(typed) => compare(&typed, out, stop),
    }
}

fn characterize(typed: &Characterize, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    let name = typed.queue.split(',').next().unwrap_or_default();
    let directory = typed.bench.out.clone().unwrap_or_else(|| PathBuf::from(format!("aqm-{name}")));
    let served = Served::open(&typed.bench.shown, "aqm characterize", false, out)?;
    let bench = bench(Set::Rfc7928, vec![typed.queue.clone()], &typed.bench, &directory, stop)?;
    let command = format!("faircast aqm characterize --queue {}{}", typed.queue, behind(&typed.bench));
    let page = bench.page_of(0, &command);
    files::page("index.html", &page, &directory)?;
    write(&bench, &directory)?;
    let (silent, all) = bench.silent();
    writeln!(
        out,
        "{all} runs; in {silent} of them, the queue discipline did not act; the report marks these runs\nwrote {}, with runs.csv and figures in the same directory",
        directory.join("index.html").display()
    )
    .map_err(unwritten)?;
    served.show(&page, stop);
    Ok(())
}

fn compare(typed: &Compare, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    let directory = typed.bench.out.clone().unwrap_or_else(|| PathBuf::from("aqm-comparison"));
    let served = Served::open(&typed.bench.shown, "aqm compare", false, out)?;
    let bench = bench(typed.loads.into(), typed.queues.0.clone(), &typed.bench, &directory, stop)?;
    let queues = typed.queues.0.join(",");
    let loads = match typed.loads {
        Loads::Rfc7928 => "",
        Loads::Three => " --loads three",
        Loads::Multicast => " --loads multicast",
    };
    let command = format!("faircast aqm compare --queues {queues}{loads}{}", behind(&typed.bench));
    let page = bench.page(&command);
    files::page("index.html", &page, &directory)?;
    write(&bench, &directory)?;
    if typed.markdown {
        write!(out, "{}", bench.markdown()).map_err(unwritten)?;
        served.show(&page, stop);
        return Ok(());
    }
    for (number, load) in bench.loads.iter().enumerate() {
        writeln!(out, "{}: {}\n\n{}", load.name, load.about, bench.table(number).text())
            .map_err(unwritten)?;
    }
    writeln!(
        out,
        "wrote {}, with runs.csv and figures in the same directory",
        directory.join("index.html").display()
    )
    .map_err(unwritten)?;
    served.show(&page, stop);
    Ok(())
}

/// Returns the options `--quick`, `--seconds` and `--seeds` as typed, as text for a command line.
fn behind(typed: &args::Bench) -> String {
    let quick = if typed.quick { " --quick" } else { "" };
    let seconds = typed.seconds.map_or(String::new(), |seconds| format!(" --seconds {seconds}"));
    let seeds = typed.seeds.as_ref().map_or(String::new(), |seeds| {
        let list: Vec<String> = seeds.0.iter().map(u64::to_string).collect();
        format!(" --seeds {}", list.join(","))
    });
    format!("{quick}{seconds}{seeds}")
}

fn bench(
    set: Set,
    queues: Vec<String>,
    typed: &args::Bench,
    directory: &Path,
    stop: &AtomicBool,
) -> Result<Bench, Failure> {
    let runs = directory.join("runs");
    let kept = StoredResults::at(&runs).and_then(|kept| kept.forget_others().map(|()| kept));
    let kept = kept.map_err(Failure::system(format!("write {}", runs.display())))?;
    let count = if typed.quick { 1 } else { 5 };
    let settings = Settings {
        set,
        queues,
        seeds: typed.seeds.as_ref().map_or_else(|| (1..=count).collect(), |seeds| seeds.0.clone()),
        seconds: f64::from(typed.seconds.unwrap_or(if typed.quick { 30 } else { 100 })),
        options: RunOptions { threads: typed.threads, kept: Some(kept), ..RunOptions::default() },
    };
    let output_options = if typed.quiet { ProgressOutput::Nothing } else { ProgressOutput::Progress };
    let printer = RunPrinter::new(output_options, "", stop);
    aqm::bench(&settings, &printer).map_err(|error| match error {
        BenchError::Run(error) => crate::sim::running::refused(error),
        error @ BenchError::Scenario { .. } => Failure::Check(error.to_string()),
    })
}

fn write(bench: &Bench, directory: &Path) -> Result<(), Failure> {
    files::page("runs.csv", &bench.csv(), directory)?;
    let all: Vec<usize> = (0..bench.queues.len()).collect();
    for (name, figure) in bench.figures(&all) {
        files::page(&format!("{name}.svg"), &figure.svg(), directory)?;
    }
    Ok(())
}
