//! Arguments of `sim`, `repro` and `compare`.

use clap::{Args, Subcommand, ValueHint};
use faircast_core::schemes::{self, Scheme};
use faircast_core::spec::SpecError;
use faircast_core::time::{Rate, Span};
use faircast_experiments::figures::curves::Curve;
use faircast_experiments::results::Shard;
use faircast_experiments::scenario::memory;
use faircast_unicast::Protocol;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Simulate networks described in scenario files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast sim new dumbbell > lab.toml   a scenario to start from\n  \
    faircast sim run lab.toml --plot     simulates it and draws figures\n  \
    faircast sim check lab.toml          only looks for mistakes")]
pub struct Sim {
    /// What to do.
    #[command(subcommand)]
    pub command: SimCommand,
}

/// The verbs of `sim`.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Run a scenario: a table of what every group of flows got, and files with all results
    Run(SimRun),
    /// Print a scenario to start from, or write it to a file
    New(SimNew),
    /// Say what is wrong in scenarios, with line and column
    Check(SimCheck),
    /// Put the results of parts of a scenario, run elsewhere with --shard, together
    Merge(SimMerge),
    /// Estimate how self-similar traffic is: the Hurst parameter of a series or a capture
    Hurst(SimHurst),
    /// Compute gains of the queues SFC, PI and RED for a link, with their margins
    SfcDesign(SimSfcDesign),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
}

/// Estimate the Hurst parameter.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast sim hurst packets.csv               the last column of a table\n  \
    faircast sim hurst samples.csv --column bytes\n  \
    faircast sim hurst traffic.pcap --bin 0.02   packets in intervals of 20 ms\n\n\
    Some thousand values are needed for a useful answer.")]
pub struct SimHurst {
    /// A table as text, one value a line, or a capture of the format pcap
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Column of a table, by its name or its number from 1 [default: the last]
    #[arg(long, value_name = "NAME|N", conflicts_with = "bin")]
    pub column: Option<String>,
    /// Intervals of a capture, in seconds [default: 0.01]
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    pub bin: Option<f64>,
    /// Count a capture's bytes, not its packets
    #[arg(long, conflicts_with = "column")]
    pub bytes: bool,
    /// Tell every estimate as JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

/// Compute gains of queues.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast sim sfc-design --capacity 10M --min-flows 100 --max-rtt 280ms\n  \
    faircast sim sfc-design --capacity 10M --min-flows 100 --max-rtt 280ms --k1 0.0005 --k2 0.2 --plot design\n\n\
    The model is of long TCP flows; it has no equilibrium for very many flows.")]
pub struct SimSfcDesign {
    /// The link's rate
    #[arg(long, value_name = "RATE", value_parser = crate::values::rate)]
    pub capacity: Rate,
    /// The fewest flows
    #[arg(long, value_name = "N", value_parser = above_zero)]
    pub min_flows: f64,
    /// The longest round-trip time, with the queue at its target
    #[arg(long, value_name = "SECONDS", value_parser = round_trip)]
    pub max_rtt: Span,
    /// Bytes of a packet
    #[arg(long, value_name = "BYTES", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..))]
    pub packet_size: u16,
    /// Packets for each acknowledgement: 2 with delayed ones
    #[arg(long, value_name = "N", default_value = "1", value_parser = above_zero)]
    pub per_ack: f64,
    /// The queue to steer to, in packets
    #[arg(long, value_name = "PACKETS", default_value = "50", value_parser = above_zero)]
    pub target: f64,
    /// SFC's gain for a packet of queue [default: with margins of 45 degrees and 6 dB]
    #[arg(long, value_name = "GAIN", value_parser = above_zero)]
    pub k1: Option<f64>,
    /// SFC's gain for arrivals of twice the link's rate [default: 0.4 of the largest stable one]
    #[arg(long, value_name = "GAIN", value_parser = above_zero)]
    pub k2: Option<f64>,
    /// Draw Bode and Nyquist plots into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub plot: Option<PathBuf>,
    /// Tell every queue as JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

/// How runs are executed.
#[derive(Debug, Clone, Args)]
pub struct Running {
    /// How many runs with random numbers of their own, or which: 10, or 3,7,9, or 9001..9010 [default: the scenario's]
    #[arg(long, value_name = "N|A,B,..", value_parser = seeds)]
    pub seeds: Option<Seeds>,
    /// Runs at a time [default: one for each processor]; results do not depend on it
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Memory that all runs together may take, by an estimate made before anything is built, as in 32G
    #[arg(long, value_name = "SIZE", value_parser = memory::bytes, default_value = "8G")]
    pub max_memory: u64,
}

/// Run a scenario.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast sim run lab.toml\n  \
    faircast sim run lab.toml --plot --seeds 10 --out results\n  \
    faircast sim run lab.toml --curves multicast:leaf1,multicast:leaf2,tcp --pdf\n  \
    faircast sim run lab.toml --set \"duration=60 s\" --set topology.leaves=100\n  \
    faircast sim run lab.toml --shard 2/8 --out part-2       on one of eight machines\n\n\
    Every metric is the mean over the seeds; +- is half of its 95 % interval (Student's t). With --out, finished runs \
    are stored in DIR/runs: after an interruption the same command runs only the others.")]
pub struct SimRun {
    /// The scenario
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Draw figures as SVG beside the results
    #[arg(long)]
    pub plot: bool,
    /// Draw the rates of these on one axis too (`curves`): flows, or one of their receivers, as in multicast:leaf1,tcp
    #[arg(long, value_name = "FLOW[:RECEIVER],..", value_delimiter = ',')]
    pub curves: Vec<Curve>,
    /// Draw these metrics over the sweep too (`metrics`), as in multicast.rate,tcp.delay.p99
    #[arg(long, value_name = "METRIC,..", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Write figures as PDF too; without --curves and --metrics all of them
    #[arg(long)]
    pub pdf: bool,
    /// Directory for results, which also stores finished runs [default: NAME-results for a scenario NAME.toml, without finished runs]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// How it is run.
    #[command(flatten)]
    pub running: Running,
    /// Only part I of N of all runs, for many machines; `sim merge` puts the parts together
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<Shard>,
    /// Capture the packets of the links that the scenario taps, for Wireshark
    #[arg(long)]
    pub pcap: bool,
    /// Change a key of the scenario, as in flow.multicast.scheme=ormcc,beta=0.6
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Tell everything as JSON, one object a line, on standard output
    #[arg(long)]
    pub json: bool,
    /// Tell no estimate and no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Write a scenario to start from.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  faircast sim new dumbbell > lab.toml\n  faircast sim new tree --out big.toml\n  \
    faircast sim new --list"
)]
pub struct SimNew {
    /// What it should be like; see --list
    #[arg(value_name = "TEMPLATE", required_unless_present = "list")]
    pub template: Option<String>,
    /// Write it to this file instead of to standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// List what it can be like
    #[arg(long)]
    pub list: bool,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// Put the results of parts of a scenario together.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast sim merge lab-results-* --out lab-results")]
pub struct SimMerge {
    /// Directories of results of the same scenario and seeds
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub parts: Vec<PathBuf>,
    /// Directory for all results
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
}

/// Say what is wrong in scenarios.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast sim check lab.toml\n  faircast sim check scenarios/*.toml")]
pub struct SimCheck {
    /// The scenarios
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Memory that a run of one may take, by an estimate, as in 32G
    #[arg(long, value_name = "SIZE", value_parser = memory::bytes, default_value = "8G")]
    pub max_memory: u64,
    /// Tell every mistake as JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

/// Repeat the experiments of the papers that the schemes come from.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast repro list\n  \
    faircast repro run 000/fig-3.4\n  \
    faircast repro verify --out report       all of them, with a page that shows every figure")]
pub struct Repro {
    /// What to do.
    #[command(subcommand)]
    pub command: ReproCommand,
}

/// The verbs of `repro`.
#[derive(Debug, Subcommand)]
pub enum ReproCommand {
    /// List the figures and tables that can be repeated
    List(ReproList),
    /// Repeat one, and compare with what is published
    Run(ReproRun),
    /// Repeat all, and write a report
    Verify(ReproVerify),
}

/// List the figures and tables that can be repeated.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast repro list\n  faircast repro list --json")]
pub struct ReproList {
    /// Tell every entry as JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

/// Repeat one, and compare with what is published.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast repro run 000/fig-3.4 --plot\n  \
    faircast repro run 000/table-3.2 --out table --seeds 30\n  \
    faircast repro run 000/fig-3.6 --quick\n\n\
    Exit codes: 0 every claim holds or is open, 1 one fails, 2 usage, 3 system.")]
pub struct ReproRun {
    /// Figure or table, e.g. 000/fig-3.4; see `faircast repro list`
    #[arg(value_name = "ID")]
    pub id: String,
    /// How it is run.
    #[command(flatten)]
    pub running: Running,
    /// Draw its figures as SVG, beside scenario and results, without --out in 000-fig-3.4-results for 000/fig-3.4
    #[arg(long)]
    pub plot: bool,
    /// Draw its figures as PDF too
    #[arg(long)]
    pub pdf: bool,
    /// Write scenario, results and figures into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Change a key of the scenario, as in flow.multicast.scheme=ormcc,beta=0.6
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Where the paper leaves a value open, run what else it might be with so many seeds, too
    #[arg(long, value_name = "SEEDS", default_value_t = 0)]
    pub alternatives: usize,
    /// Two short runs: shows that it works, and decides nothing
    #[arg(long)]
    pub quick: bool,
    /// Tell the result as one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Tell no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Repeat all, and write a report.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast repro verify\n  \
    faircast repro verify --out report --seeds 3\n  \
    faircast repro verify 000/fig-4 000/sec-3.3.5\n\n\
    Exit codes: 0 every claim holds or is open, 1 one fails, 2 usage, 3 system.")]
pub struct ReproVerify {
    /// Only figures and tables whose names begin so, e.g. 000/fig-4, in place of all
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Directory for the report
    #[arg(long, value_name = "DIR", default_value = "reproduction", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// How it is run.
    #[command(flatten)]
    pub running: Running,
    /// Where the paper leaves a value open, run what else it might be with so many seeds, too
    #[arg(long, value_name = "SEEDS", default_value_t = 3)]
    pub alternatives: usize,
    /// Two short runs of each: shows that it works, and decides nothing
    #[arg(long)]
    pub quick: bool,
    /// Tell every result as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Tell no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Run one scenario with several congestion controls in turn.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast compare --schemes ormcc,tcp-reno,tfrc --scenario lab.toml\n  \
    faircast compare --schemes ormcc,beta=0.6,ormcc,beta=0.8 --scenario lab.toml --out comparison\n\n\
    The main flow is the scenario's first session, or what --flow says. Where a unicast protocol such as tcp-reno \
    takes its place, every receiver gets a flow of its own.")]
pub struct Compare {
    /// What to compare: schemes and unicast protocols, each with its options behind it
    #[arg(long, value_name = "A,B,..", value_parser = contenders)]
    pub schemes: Contenders,
    /// The scenario
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub scenario: PathBuf,
    /// The flow that is replaced [default: the first session]
    #[arg(long, value_name = "NAME")]
    pub flow: Option<String>,
    /// Directory for results and figures, which also stores finished runs [default: NAME-comparison for a scenario NAME.toml, without finished runs]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// How it is run.
    #[command(flatten)]
    pub running: Running,
    /// Tell every result as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Tell no estimate and no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Which seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

pub fn seeds(text: &str) -> Result<Seeds, String> {
    const MAX_SEEDS: u64 = 100_000;
    let wanted = || {
        format!(
            "`{text}` is not a number of seeds; write how many (1 to {MAX_SEEDS}), or which, as in 3,7,9 or 9001..9010"
        )
    };
    if let Ok(count) = text.trim().parse() {
        return if (1..=MAX_SEEDS).contains(&count) {
            Ok(Seeds((1..=count).collect()))
        } else {
            Err(wanted())
        };
    }
    let mut which: Vec<u64> = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
            (Ok(first), Ok(last)) if first <= last && last - first < MAX_SEEDS => which.extend(first..=last),
            _ => return Err(wanted()),
        }
    }
    if which.len() as u64 <= MAX_SEEDS { Ok(Seeds(which)) } else { Err(wanted()) }
}

/// Subject of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contenders(pub Vec<Contender>);

/// A multicast scheme or a unicast protocol, with options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contender {
    /// A multicast scheme.
    Scheme(String),
    /// A unicast protocol.
    Protocol(String),
}

impl Contender {
    /// As it was typed.
    pub fn text(&self) -> &str {
        match self {
            Contender::Scheme(text) | Contender::Protocol(text) => text,
        }
    }
}

/// A part with `=`, or a flag such as `delack`, belongs to the name before it.
fn contenders(text: &str) -> Result<Contenders, String> {
    let flags = flags();
    let mut texts: Vec<String> = Vec::new();
    for part in text.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()) {
        let flag = flags.contains(&part);
        match texts.last_mut() {
            Some(last) if flag || part.contains('=') => *last = format!("{last},{part}"),
            _ => texts.push(part.to_owned()),
        }
    }
    if texts.is_empty() {
        return Err("nothing to compare; name schemes, as in ormcc,tcp-reno".into());
    }
    texts.into_iter().map(contender).collect::<Result<_, _>>().map(Contenders)
}

/// Options of protocols that stand without a value.
fn flags() -> Vec<&'static str> {
    let protocols =
        faircast_unicast::CATALOGUE.iter().filter_map(|entry| entry.name.parse::<Protocol>().ok());
    let options = protocols.flat_map(|protocol| protocol.options());
    options.filter(|option| option.may_stand_alone).map(|option| option.name).collect()
}

fn contender(text: String) -> Result<Contender, String> {
    let name = text.split(',').next().unwrap_or_default();
    if faircast_unicast::CATALOGUE.iter().any(|entry| entry.name == name) {
        return text
            .parse::<Protocol>()
            .map_err(|error| error.to_string())
            .map(|_| Contender::Protocol(text));
    }
    match text.parse::<Scheme>() {
        Ok(_) => Ok(Contender::Scheme(text)),
        Err(SpecError::UnknownName { name, .. }) => {
            let schemes = schemes::CATALOGUE.iter().map(|entry| entry.name);
            let known: Vec<&str> =
                schemes.chain(faircast_unicast::CATALOGUE.iter().map(|entry| entry.name)).collect();
            Err(format!("there is no scheme or protocol `{name}`; choose from: {}", known.join(", ")))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn shard(text: &str) -> Result<Shard, String> {
    text.parse().map_err(|error: faircast_experiments::results::NotAShard| error.to_string())
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("`{text}` is no number above 0"))
}

fn round_trip(text: &str) -> Result<Span, String> {
    let (number, factor) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * factor);
    let fits = seconds.filter(|seconds| (1e-5..=100.0).contains(seconds));
    fits.map(Span::from_secs_f64)
        .ok_or_else(|| format!("`{text}` is no round-trip time; write 280ms or 0.28"))
}

fn interval(text: &str) -> Result<f64, String> {
    let wanted = || format!("`{text}` is no interval; write seconds from 0.000001 to 1000, as in 0.01");
    above_zero(text).ok().filter(|seconds| (1e-6..=1e3).contains(seconds)).ok_or_else(wanted)
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{text}` changes nothing; write KEY=VALUE, as in \"duration=60 s\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_a_list_or_a_range() {
        assert_eq!(seeds("3"), Ok(Seeds(vec![1, 2, 3])));
        assert_eq!(seeds("7,9"), Ok(Seeds(vec![7, 9])));
        assert_eq!(seeds("9001..9003, 7"), Ok(Seeds(vec![9001, 9002, 9003, 7])));
        assert_eq!(seeds("5..5"), Ok(Seeds(vec![5])));
        for bad in [
            "0",
            "",
            "x",
            "1,",
            "100001",
            "3..1",
            "1..100001",
            "1..50000,1..50001",
            "..",
            "1..",
            "0..18446744073709551615",
        ] {
            assert!(seeds(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn shard_is_an_index_and_a_count() {
        assert_eq!(shard("2/8"), Ok(Shard { index: 2, of: 8 }));
        for bad in ["0/8", "9/8", "2", "a/b"] {
            assert!(shard(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn schemes_to_compare_carry_their_options() {
        let texts = |text: &str| {
            let Contenders(all) = contenders(text).expect("they exist");
            all.iter().map(|one| one.text().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            texts("ormcc,beta=0.6,ormcc,tcp-reno,delack,tfrc"),
            ["ormcc,beta=0.6", "ormcc", "tcp-reno,delack", "tfrc"]
        );
        assert_eq!(contenders("tcp-sack"), Ok(Contenders(vec![Contender::Protocol("tcp-sack".into())])));
        assert!(
            contenders("nosuch").expect_err("it does not exist").contains("smcc, mtcp, raccoom, rmanp, tcp-")
        );
        assert!(contenders("ormcc,gamma=1").expect_err("no such option").contains("gamma"));
        assert!(contenders(",").is_err());
    }

    #[test]
    fn round_trip_times_have_a_unit_or_are_seconds() {
        assert_eq!(round_trip("280ms"), Ok(Span::from_millis(280)));
        assert_eq!((round_trip("0.28"), round_trip("0.28s")), (round_trip("280ms"), round_trip("280 ms")));
        assert!(["0", "x", "200", "-1ms"].iter().all(|bad| round_trip(bad).is_err()));
    }

    #[test]
    fn numbers_and_intervals_are_above_zero() {
        assert_eq!((above_zero("0.5"), interval("0.02")), (Ok(0.5), Ok(0.02)));
        for bad in ["0", "-1", "x", "inf", "NaN"] {
            assert!(above_zero(bad).is_err() && interval(bad).is_err(), "{bad}");
        }
        assert!(interval("1e-9").is_err());
    }

    #[test]
    fn a_setting_is_a_key_and_a_value() {
        assert_eq!(setting("a.b = 3"), Ok(("a.b".into(), "3".into())));
        assert!(setting("a").is_err() && setting("=3").is_err());
    }
}
