//! Arguments of `sim`, `repro` and `compare`.

use clap::{Args, Subcommand, ValueHint};
use faircast_core::schemes::{self, Scheme};
use faircast_core::spec::SpecError;
use faircast_core::time::{Rate, Span};
use faircast_experiments::figures::curves::Curve;
use faircast_experiments::results::Shard;
use faircast_experiments::run::precision::Precision;
use faircast_experiments::scenario::memory;
use faircast_unicast::Protocol;
#[cfg(feature = "page")]
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Simulate networks described in scenario files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast sim new dumbbell > lab.toml   writes a scenario to start from\n  \
    faircast sim run lab.toml --plot     simulates it and draws figures\n  \
    faircast sim check lab.toml          only checks for errors")]
pub struct Sim {
    /// Command to run.
    #[command(subcommand)]
    pub command: SimCommand,
}

/// The commands of `sim`.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Run a scenario, print a table of all groups of flows, and write result files
    Run(SimRun),
    /// Write a scenario to start from
    New(SimNew),
    /// Report errors in scenarios, with line and column
    Check(SimCheck),
    /// Combine results of a scenario that was run in parts with --shard
    Merge(SimMerge),
    /// Estimate the Hurst parameter (self-similarity) of a series or a capture
    Hurst(SimHurst),
    /// Compute gains and margins of the queues SFC, PI and RED for a link
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
    /// Text table with one value per line, or a capture in pcap format
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Column of the table, by name or by number from 1 [default: the last]
    #[arg(long, value_name = "NAME|N", conflicts_with = "bin")]
    pub column: Option<String>,
    /// Interval of a capture, in seconds [default: 0.01]
    #[arg(long, value_name = "SECONDS", value_parser = interval)]
    pub bin: Option<f64>,
    /// Count bytes of the capture instead of packets
    #[arg(long, conflicts_with = "column")]
    pub bytes: bool,
    /// Print every estimate as JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// Compute gains of queues.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast sim sfc-design --capacity 10M --min-flows 100 --max-rtt 280ms\n  \
    faircast sim sfc-design --capacity 10M --min-flows 100 --max-rtt 280ms --k1 0.0005 --k2 0.2 --plot design\n\n\
    The model assumes long TCP flows. It has no equilibrium for very large numbers of flows.")]
pub struct SimSfcDesign {
    /// Rate of the link, in bit/s
    #[arg(long, value_name = "RATE", value_parser = crate::values::rate)]
    pub capacity: Rate,
    /// Minimum number of flows
    #[arg(long, value_name = "N", value_parser = above_zero)]
    pub min_flows: f64,
    /// Maximum round-trip time, with the queue at its target
    #[arg(long, value_name = "SECONDS", value_parser = round_trip)]
    pub max_rtt: Span,
    /// Size of a packet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..))]
    pub packet_size: u16,
    /// Packets per acknowledgement; 2 with delayed acknowledgements
    #[arg(long, value_name = "N", default_value = "1", value_parser = above_zero)]
    pub per_ack: f64,
    /// Target length of the queue, in packets
    #[arg(long, value_name = "PACKETS", default_value = "50", value_parser = above_zero)]
    pub target: f64,
    /// Gain of SFC for a packet in the queue [default: with margins of 45 degrees and 6 dB]
    #[arg(long, value_name = "GAIN", value_parser = above_zero)]
    pub k1: Option<f64>,
    /// Gain of SFC for arrivals at twice the rate of the link [default: 0.4 of the largest stable gain]
    #[arg(long, value_name = "GAIN", value_parser = above_zero)]
    pub k2: Option<f64>,
    /// Draw Bode and Nyquist plots into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub plot: Option<PathBuf>,
    /// Print every queue as JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// Where browsers find the page of the results.
#[derive(Debug, Clone, Default, Args)]
pub struct Shown {
    /// Serve the page of the results for browsers, at this port or address of this host [default: a free port of 127.0.0.1], until
    /// Enter
    #[cfg(feature = "page")]
    #[arg(long, value_name = "ADDRESS[:PORT]|PORT", value_parser = crate::values::page_at, num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub page: Option<SocketAddr>,
}

/// Options for the execution of runs.
#[derive(Debug, Clone, Args)]
pub struct Running {
    /// Random seeds: a number, a list, or a range, as in 10, 3,7,9 or 9001..9010 [default: from the scenario]
    #[arg(long, value_name = "N|A,B,..", value_parser = seeds)]
    pub seeds: Option<Seeds>,
    /// Number of threads [default: one per processor]. Results do not depend on it
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Maximum memory of all parallel runs, as in 32G; it is estimated before the runs start
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
    faircast sim run lab.toml --page     shows the first run to browsers\n  \
    faircast sim run lab.toml --shard 2/8 --out part-2       on one of eight machines\n\n\
    Every metric is the mean over the seeds; +- is half of its 95 % interval (Student's t). With --out, finished runs \
    are stored in DIR/runs. After an interruption, the same command makes only the missing runs.")]
pub struct SimRun {
    /// Scenario file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Draw figures as SVG, and write a page with all results, next to the results
    #[arg(long)]
    pub plot: bool,
    /// Also draw the rates of these flows or receivers on one axis, as in multicast:leaf1,tcp
    #[arg(long, value_name = "FLOW[:RECEIVER],..", value_delimiter = ',')]
    pub curves: Vec<Curve>,
    /// Also draw these metrics over the sweep, as in multicast.rate,tcp.delay.p99
    #[arg(long, value_name = "METRIC,..", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Also write figures as PDF; without --curves and --metrics, all of them
    #[arg(long)]
    pub pdf: bool,
    /// Directory for results and finished runs [default: NAME-results for NAME.toml, without finished runs]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Execution.
    #[command(flatten)]
    pub running: Running,
    /// Add seeds until the 95 % interval of this metric is within this share of its mean at every point, as in tcp.rate=0.02
    #[arg(long, value_name = "METRIC=SHARE", value_parser = precision, conflicts_with = "shard")]
    pub until: Vec<Precision>,
    /// Maximum number of seeds with --until
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "until")]
    pub max_seeds: usize,
    /// Run only part I of N, on one of several machines; `sim merge` combines the parts
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<Shard>,
    /// Capture packets on the tapped links of the scenario, for Wireshark
    #[arg(long)]
    pub pcap: bool,
    /// Also write a trace of the first run, which explains the rates of its sessions; see `faircast trace show`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Also write the TCP flows of the first run for Flent, as in lab.flent.gz
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub flent: Option<PathBuf>,
    /// Serve a live page of the first run for browsers, at this port or address of this host [default: a free port of 127.0.0.1],
    /// and write it as page.html next to the results
    #[cfg(feature = "page")]
    #[arg(long, value_name = "ADDRESS[:PORT]|PORT", value_parser = crate::values::page_at, num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub page: Option<SocketAddr>,
    /// Override a key of the scenario, as in flow.multicast.scheme=ormcc,beta=0.6
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Print events and results as JSON, one object per line, on standard output
    #[arg(long)]
    pub json: bool,
    /// Print no estimate and no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Write a scenario to start from.
#[derive(Debug, Default, Args)]
#[command(
    after_help = "Examples:\n  faircast sim new dumbbell > lab.toml\n  faircast sim new tree --out big.toml\n  \
    faircast sim new --list\n  \
    faircast sim new --from-report lab.json --out twin.toml        the twin of a session\n  \
    faircast sim new --from-report lab.json --without lab-07 --out faster.toml"
)]
pub struct SimNew {
    /// Template; see --list
    #[arg(value_name = "TEMPLATE", required_unless_present_any = ["list", "original"])]
    pub template: Option<String>,
    /// Make the twin of a real session, from the file of `send --report FILE.json`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "original", conflicts_with_all = ["template", "list"])]
    pub from_report: Option<PathBuf>,
    /// Make the twin of a session from its trace, by `--trace FILE` of its source or relay, or of `sim run`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, group = "original", conflicts_with_all = ["template", "list"])]
    pub from_trace: Option<PathBuf>,
    /// Session of the trace, by its name, or by the address of a relay's branch
    #[arg(long, value_name = "NAME", requires = "from_trace", conflicts_with_all = ["template", "list", "from_report"])]
    pub session: Option<String>,
    /// Leave this receiver out of the twin; repeatable
    #[arg(long, value_name = "HOST", requires = "original")]
    pub without: Vec<String>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// List the templates
    #[arg(long)]
    pub list: bool,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// Combine results of a scenario that was run in parts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast sim merge lab-results-* --out lab-results")]
pub struct SimMerge {
    /// Result directories of one scenario with the same seeds
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub parts: Vec<PathBuf>,
    /// Directory for the combined results
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
}

/// Report errors in scenarios.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast sim check lab.toml\n  faircast sim check scenarios/*.toml")]
pub struct SimCheck {
    /// Scenario files
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Maximum estimated memory of a run, as in 32G
    #[arg(long, value_name = "SIZE", value_parser = memory::bytes, default_value = "8G")]
    pub max_memory: u64,
    /// Print every error as JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// Repeat the experiments of the papers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast repro list\n  \
    faircast repro run 000/fig-3.4\n  \
    faircast repro verify --out report       all, with a page of all figures")]
pub struct Repro {
    /// Command to run.
    #[command(subcommand)]
    pub command: ReproCommand,
}

/// The commands of `repro`.
#[derive(Debug, Subcommand)]
pub enum ReproCommand {
    /// List the repeatable figures and tables
    List(ReproList),
    /// Repeat a figure or table, and compare the result with the paper
    Run(ReproRun),
    /// Repeat all figures and tables, and write a report
    Verify(ReproVerify),
}

/// List the repeatable figures and tables.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast repro list\n  faircast repro list --json")]
pub struct ReproList {
    /// Print every entry as JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// Repeat a figure or table, and compare the result with the paper.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast repro run 000/fig-3.4 --plot\n  \
    faircast repro run 000/table-3.2 --out table --seeds 30\n  \
    faircast repro run 000/fig-3.6 --quick\n\n\
    Exit codes: 0 every claim holds or is open, 1 one fails, 2 usage, 3 system.")]
pub struct ReproRun {
    /// Figure or table, as in 000/fig-3.4; see `faircast repro list`
    #[arg(value_name = "ID")]
    pub id: String,
    /// Execution.
    #[command(flatten)]
    pub running: Running,
    /// Draw figures as SVG, next to scenario and results [default directory: 000-fig-3.4-results for 000/fig-3.4]
    #[arg(long)]
    pub plot: bool,
    /// Also draw figures as PDF
    #[arg(long)]
    pub pdf: bool,
    /// Directory for scenario, results and figures
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Page.
    #[command(flatten)]
    pub shown: Shown,
    /// Override a key of the scenario, as in flow.multicast.scheme=ormcc,beta=0.6
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Also run the alternatives of values that the paper leaves open, with this number of seeds
    #[arg(long, value_name = "SEEDS", default_value_t = 0)]
    pub alternatives: usize,
    /// Make two short runs: a functional check without a verdict
    #[arg(long)]
    pub quick: bool,
    /// Print the result as one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Repeat all figures and tables, and write a report.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast repro verify\n  \
    faircast repro verify --out report --seeds 3\n  \
    faircast repro verify 000/fig-4 000/sec-3.3.5\n\n\
    Exit codes: 0 every claim holds or is open, 1 one fails, 2 usage, 3 system.")]
pub struct ReproVerify {
    /// Select figures and tables by prefix, as in 000/fig-4 [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Directory for the report
    #[arg(long, value_name = "DIR", default_value = "reproduction", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Execution.
    #[command(flatten)]
    pub running: Running,
    /// Also run the alternatives of values that the paper leaves open, with this number of seeds
    #[arg(long, value_name = "SEEDS", default_value_t = 3)]
    pub alternatives: usize,
    /// Make two short runs of each: a functional check without a verdict
    #[arg(long)]
    pub quick: bool,
    /// Print every result as JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// Print no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// Compare congestion controls in one scenario.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast compare --schemes ormcc,tcp-reno,tfrc --scenario lab.toml\n  \
    faircast compare --schemes ormcc,beta=0.6,ormcc,beta=0.8 --scenario lab.toml --out comparison\n  \
    faircast compare --schemes ormcc,tfmcc --scenario lab.toml --page      shows the results to browsers\n  \
    faircast compare --worlds sim,emu lab.toml     simulated and emulated\n\n\
    The replaced flow is the first session of the scenario, or --flow. A unicast protocol such as tcp-reno \
    replaces it by one flow for each receiver.")]
pub struct Compare {
    /// Schemes and unicast protocols to compare, each followed by its options
    #[arg(long, value_name = "A,B,..", value_parser = contenders, required_unless_present = "worlds")]
    pub schemes: Option<Contenders>,
    /// Compare the simulation of the scenario with its emulation, instead of schemes
    #[arg(long, value_name = "sim,emu", value_enum, value_delimiter = ',', conflicts_with_all = ["schemes", "flow", "out", "Shown"])]
    pub worlds: Vec<World>,
    /// Scenario file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "scenario")]
    pub file: Option<PathBuf>,
    /// Scenario file, as an option
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "file")]
    pub scenario: Option<PathBuf>,
    /// Flow to replace [default: the first session]
    #[arg(long, value_name = "NAME")]
    pub flow: Option<String>,
    /// Directory for results, figures and finished runs [default: NAME-comparison for NAME.toml, without finished runs]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Page.
    #[command(flatten)]
    pub shown: Shown,
    /// Execution.
    #[command(flatten)]
    pub running: Running,
    /// Print every result as JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// Print no estimate and no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// A way to run a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum World {
    /// The simulator.
    Sim,
    /// The emulator, with real kernels and programs.
    Emu,
}

impl Compare {
    /// Returns the scenario file.
    pub fn path(&self) -> &std::path::Path {
        self.file.as_deref().or(self.scenario.as_deref()).expect("one of them is required")
    }
}

/// A list of random seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

pub fn seeds(text: &str) -> Result<Seeds, String> {
    const MAX_SEEDS: u64 = 100_000;
    let wanted = || {
        format!(
            "`{text}` is not a number of seeds; write a number from 1 to {MAX_SEEDS}, or a list of seeds, as in 3,7,9 or 9001..9010"
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

/// A list of contenders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contenders(pub Vec<Contender>);

/// A multicast scheme or a unicast protocol, with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contender {
    /// A multicast scheme.
    Scheme(String),
    /// A unicast protocol.
    Protocol(String),
}

impl Contender {
    /// Returns the contender as given.
    pub fn text(&self) -> &str {
        match self {
            Contender::Scheme(text) | Contender::Protocol(text) => text,
        }
    }
}

/// Parses contenders. A part with `=`, or a flag such as `delack`, belongs to the preceding name.
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

/// Returns the protocol options that take no value.
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
    number.ok_or_else(|| format!("`{text}` is not a number above 0"))
}

fn round_trip(text: &str) -> Result<Span, String> {
    let (number, factor) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * factor);
    let fits = seconds.filter(|seconds| (1e-5..=100.0).contains(seconds));
    fits.map(Span::from_secs_f64)
        .ok_or_else(|| format!("`{text}` is not a round-trip time; write 280ms or 0.28"))
}

fn interval(text: &str) -> Result<f64, String> {
    let wanted = || format!("`{text}` is not an interval; write seconds from 0.000001 to 1000, as in 0.01");
    above_zero(text).ok().filter(|seconds| (1e-6..=1e3).contains(seconds)).ok_or_else(wanted)
}

/// Reads a required precision.
fn precision(text: &str) -> Result<Precision, String> {
    let wrong = || format!("a precision is METRIC=SHARE, as in tcp.rate=0.02 for 2 %, not {text:?}");
    let (metric, share) = text.split_once('=').ok_or_else(wrong)?;
    let share: f64 = share.parse().map_err(|_| wrong())?;
    let is_valid = share.is_finite() && share > 0.0;
    is_valid.then(|| Precision { metric: metric.to_owned(), share }).ok_or_else(wrong)
}

/// Reads a change of a key.
pub fn setting(text: &str) -> Result<(String, String), String> {
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
    fn seeds_are_parsed_as_a_number_a_list_or_a_range() {
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
    fn shard_is_parsed_as_an_index_and_a_count() {
        assert_eq!(shard("2/8"), Ok(Shard { index: 2, of: 8 }));
        for bad in ["0/8", "9/8", "2", "a/b"] {
            assert!(shard(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn compared_schemes_are_parsed_with_their_options() {
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
    fn round_trip_time_is_in_seconds_unless_it_has_a_unit() {
        assert_eq!(round_trip("280ms"), Ok(Span::from_millis(280)));
        assert_eq!((round_trip("0.28"), round_trip("0.28s")), (round_trip("280ms"), round_trip("280 ms")));
        assert!(["0", "x", "200", "-1ms"].iter().all(|bad| round_trip(bad).is_err()));
    }

    #[test]
    fn zero_and_negative_numbers_and_intervals_are_refused() {
        assert_eq!((above_zero("0.5"), interval("0.02")), (Ok(0.5), Ok(0.02)));
        for bad in ["0", "-1", "x", "inf", "NaN"] {
            assert!(above_zero(bad).is_err() && interval(bad).is_err(), "{bad}");
        }
        assert!(interval("1e-9").is_err());
    }

    #[test]
    fn setting_is_parsed_as_a_key_and_a_value() {
        assert_eq!(setting("a.b = 3"), Ok(("a.b".into(), "3".into())));
        assert!(setting("a").is_err() && setting("=3").is_err());
    }
}
