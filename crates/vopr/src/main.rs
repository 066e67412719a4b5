//! `faircast-vopr`: runs simulated worlds, one seed after the other, and reports findings.

use clap::{Parser, ValueEnum};
use faircast_vopr::{Kind, Mutation, Options, Outcome, run};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Run faircast's sessions in simulated worlds whose faults are determined by a seed.
#[derive(Debug, Parser)]
#[command(name = "faircast-vopr", version)]
struct Args {
    /// Run only this seed, and print its log.
    #[arg(long)]
    seed: Option<u64>,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Number of seeds; unlimited by default.
    #[arg(long)]
    count: Option<u64>,
    /// Append seeds with findings, and their logs, to this file.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Stop after this number of findings.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    findings: u64,
    /// Inject this deliberate fault, which the checks must find.
    #[arg(long = "break", value_enum)]
    broken: Option<Broken>,
    /// Run only worlds of this kind, whatever the seed selects.
    #[arg(long, value_enum)]
    kind: Option<OfKind>,
    /// Directory for the temporary files of worlds.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Print events as they happen.
    #[arg(long, short)]
    verbose: bool,
}

/// Deliberate faults; see [`Mutation`].
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Broken {
    /// Disks and readers get wrong bytes.
    Spoilt,
    /// Requests of receivers are lost.
    Deaf,
}

/// Kinds of worlds; see [`Kind`].
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OfKind {
    /// Files by multicast through repeaters.
    Files,
    /// Files through active routers.
    Hops,
    /// Files by MTCP with agents.
    Agents,
    /// A live stream.
    Live,
    /// A live stream on each of several layers.
    Layers,
    /// Files to hosts that are served by unicast.
    Unicast,
}

/// Interval of progress reports.
const SAID_EVERY: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match go(&Args::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("faircast-vopr: {error}");
            ExitCode::from(3)
        }
    }
}

/// Runs the seeds. Returns the number of findings.
fn go(args: &Args) -> io::Result<u64> {
    let mut options = Options { verbose: args.verbose, ..Options::default() };
    options.directory = args.directory.clone().unwrap_or(options.directory);
    options.mistake = args.broken.map(|broken| match broken {
        Broken::Spoilt => Mutation::Spoilt,
        Broken::Deaf => Mutation::Deaf,
    });
    options.kind = args.kind.map(|kind| match kind {
        OfKind::Files => Kind::Files,
        OfKind::Hops => Kind::Hops,
        OfKind::Agents => Kind::Agents,
        OfKind::Live => Kind::Live,
        OfKind::Layers => Kind::Layers,
        OfKind::Unicast => Kind::Unicast,
    });
    if let Some(seed) = args.seed {
        let outcome = run(seed, &options)?;
        println!("{outcome}");
        println!(
            "trace {}, {:.3} s, {:.3} s of them calm",
            outcome.trace,
            outcome.lasted.as_secs_f64(),
            outcome.calm
        );
        return Ok(u64::from(outcome.finding.is_some()));
    }
    let (begin, mut printed_at, mut findings, mut ran) = (Instant::now(), Instant::now(), 0, 0_u64);
    let (mut datagrams, mut calm) = (0, 0_f64);
    while args.count.is_none_or(|count| ran < count) && findings < args.findings {
        let outcome = run(args.from + ran, &options)?;
        ran += 1;
        datagrams += outcome.datagrams;
        calm = calm.max(outcome.calm);
        if outcome.finding.is_some() {
            findings += 1;
            report(args, &outcome)?;
        }
        if printed_at.elapsed() >= SAID_EVERY || args.count == Some(ran) {
            printed_at = Instant::now();
            let minutes = begin.elapsed().as_secs_f64() / 60.0;
            println!(
                "{ran} seeds from {}, {findings} findings, {:.0} a minute, {datagrams} datagrams, at most {calm:.1} s until all were done",
                args.from,
                ran as f64 / minutes
            );
        }
    }
    Ok(findings)
}

/// Reports a finding, and the command that reproduces it.
fn report(args: &Args, outcome: &Outcome) -> io::Result<()> {
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let commit = commit
        .ok()
        .filter(|out| out.status.success())
        .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    let broken = args.broken.and_then(|broken| broken.to_possible_value());
    let broken = broken.map(|value| format!(" --break {}", value.get_name())).unwrap_or_default();
    let kind = args.kind.and_then(|kind| kind.to_possible_value());
    let kind = kind.map(|value| format!(" --kind {}", value.get_name())).unwrap_or_default();
    let words = format!(
        "{outcome}\n  commit {}\n  again: faircast-vopr --seed {}{broken}{kind}\n",
        commit.as_deref().unwrap_or("unknown"),
        outcome.seed
    );
    println!("{words}");
    if let Some(path) = &args.keep {
        writeln!(File::options().create(true).append(true).open(path)?, "{words}")?;
    }
    Ok(())
}
