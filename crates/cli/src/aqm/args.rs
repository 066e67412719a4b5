//! Arguments of `faircast aqm`.

use clap::{Args, Subcommand, ValueEnum};
use faircast_aqm::QueueSpec;
use faircast_experiments::aqm::Set;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr as _;

use crate::sim::args::{Seeds, Shown};

/// Run queue disciplines under the scenarios of RFC 7928.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast aqm characterize --queue codel --quick\n  \
    faircast aqm compare --queues all --loads three")]
pub struct Aqm {
    /// Command to run
    #[command(subcommand)]
    pub command: AqmCommand,
}

/// The commands of `aqm`.
#[derive(Debug, Subcommand)]
pub enum AqmCommand {
    /// Run a queue discipline under the scenarios of RFC 7928, and write a report
    Characterize(Characterize),
    /// Run several queue disciplines under the same loads, and write one page
    Compare(Compare),
}

/// Characterize a queue discipline.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast aqm characterize --queue codel\n  \
    faircast aqm characterize --queue paqm,target=20 --quick\n\n\
    The tables mark runs in which the queue was not the bottleneck or did not act.")]
pub struct Characterize {
    /// Queue discipline, in the syntax of scenarios
    #[arg(long, value_name = "SPEC", value_parser = queue)]
    pub queue: String,
    /// Execution
    #[command(flatten)]
    pub bench: Bench,
}

/// Compare queue disciplines.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast aqm compare --queues droptail,100,codel,fq_codel --quick\n  \
    faircast aqm compare --queues all --loads three --markdown\n  \
    faircast aqm compare --queues all --loads multicast")]
pub struct Compare {
    /// Queue disciplines, separated by commas, each followed by its options [all: every discipline with default options]
    #[arg(long, value_name = "A,B,..", value_parser = queues)]
    pub queues: Queues,
    /// Set of loads
    #[arg(long, value_enum, default_value_t = Loads::Rfc7928)]
    pub loads: Loads,
    /// Print the tables as Markdown
    #[arg(long)]
    pub markdown: bool,
    /// Execution
    #[command(flatten)]
    pub bench: Bench,
}

/// Options of the execution.
#[derive(Debug, Args)]
pub struct Bench {
    /// Make shorter runs with one seed: seconds instead of minutes, with less precision
    #[arg(long)]
    pub quick: bool,
    /// Random seeds: a number, a list, or a range, as in 9701..9710 [default: 5; with --quick: 1]
    #[arg(long, value_name = "N|LIST", value_parser = crate::sim::args::seeds)]
    pub seeds: Option<Seeds>,
    /// Simulated duration of a run, in seconds [default: 100; with --quick: 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(10..=10_000))]
    pub seconds: Option<u32>,
    /// Directory for the report, the figures and the runs; existing runs are reused
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Page
    #[command(flatten)]
    pub shown: Shown,
    /// Number of processors [default: all]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Print no progress
    #[arg(long)]
    pub quiet: bool,
}

/// Sets of loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Loads {
    /// The scenarios of RFC 7928
    Rfc7928,
    /// Three loads: 60 long flows, web transfers, and an unresponsive sender
    Three,
    /// ORMCC, LE-SBCC and GMCC competing with TCP
    Multicast,
}

impl From<Loads> for Set {
    fn from(loads: Loads) -> Set {
        match loads {
            Loads::Rfc7928 => Set::Rfc7928,
            Loads::Three => Set::Three,
            Loads::Multicast => Set::Multicast,
        }
    }
}

/// A list of queue disciplines with their options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queues(pub Vec<String>);

fn queue(text: &str) -> Result<String, String> {
    QueueSpec::from_str(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Returns every discipline with its default options.
fn every() -> Vec<String> {
    let known = QueueSpec::known().into_iter();
    known
        .map(|(form, _)| if form.starts_with("droptail") { "droptail,100".into() } else { name(form) })
        .collect()
}

fn name(form: &str) -> String {
    form.split([',', '[']).next().unwrap_or_default().to_owned()
}

/// Parses a list of queue disciplines. The name of a discipline starts a new entry; other parts are its options.
pub fn queues(text: &str) -> Result<Queues, String> {
    if text.trim() == "all" {
        return Ok(Queues(every()));
    }
    let names: Vec<String> = QueueSpec::known().into_iter().map(|(form, _)| name(form)).collect();
    let mut all: Vec<String> = Vec::new();
    for part in text.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()) {
        match all.last_mut() {
            Some(last) if !names.iter().any(|name| name == part) => *last = format!("{last},{part}"),
            _ => all.push(part.to_owned()),
        }
    }
    if all.is_empty() {
        return Err(format!("no queue was given; choose from: {}, or write `all`", names.join(", ")));
    }
    if let Some(twice) = all.iter().enumerate().find(|(place, it)| all[..*place].contains(it)) {
        return Err(format!("`{}` is given twice; give each queue once", twice.1));
    }
    all.into_iter().map(|text| queue(&text)).collect::<Result<_, _>>().map(Queues)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_disciplines_are_parsed_with_their_options() {
        let all = queues("droptail,100,codel,target=10ms,ecn,fq_codel").expect("they exist");
        assert_eq!(all.0, ["droptail,100", "codel,target=10ms,ecn", "fq_codel"]);
        assert!(queues("nosuch").expect_err("it does not exist").contains("nosuch"));
        assert!(queues("codel,codel").expect_err("twice").contains("twice"));
        assert!(queues(",").is_err());
    }

    #[test]
    fn value_all_selects_every_queue_discipline() {
        let Queues(all) = queues("all").expect("they exist");
        assert_eq!(all.len(), QueueSpec::known().len());
        assert!(all.iter().all(|text| text.parse::<QueueSpec>().is_ok()), "{all:?}");
    }
}
