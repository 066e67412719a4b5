//! Arguments of `emu`.

use crate::sim::args::setting;
use crate::values;
use clap::{Args, Subcommand, ValueHint};
use faircast_experiments::scenario::memory;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Emulate the network of a scenario for real programs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast emu run lab.toml            the flows of the scenario as real programs\n  \
    faircast emu run lab.toml -- leaf1: iperf3 -s -1 -- src1: iperf3 -c leaf1\n  \
    faircast emu up lab.toml             a network that stays until `faircast emu down`\n\n\
    Each host is a network namespace of this machine. Without root, it needs user namespaces and a writable /dev/net/tun, and \
    has no real-time priority.")]
pub struct Emu {
    /// Command to run.
    #[command(subcommand)]
    pub command: EmuCommand,
}

/// The commands of `emu`.
#[derive(Debug, Subcommand)]
pub enum EmuCommand {
    /// Run the flows of a scenario, or programs of your own, in an emulated network
    Run(EmuRun),
    /// Build an emulated network that stays
    Up(EmuUp),
    /// Remove emulated networks
    Down(EmuDown),
    /// List emulated networks
    Status(EmuStatus),
}

/// Options of a network.
#[derive(Debug, Clone, Args)]
pub struct Building {
    /// Override a key of the scenario, as in topology.leaves=3
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Random seed of losses, queues and times [default: the first seed of the scenario]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Maximum size of IP packets of the hosts, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(576..=9000))]
    pub mtu: u16,
    /// Packets to groups that no host has joined
    #[arg(long, value_enum, default_value_t = UnknownGroups::Prune)]
    pub unknown_groups: UnknownGroups,
    /// Maximum memory of the network, as in 32G: routes, links, and packets on their way
    #[arg(long, value_name = "SIZE", value_parser = memory::bytes, default_value = "8G")]
    pub max_memory: u64,
}

/// Treatment of groups without members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum UnknownGroups {
    /// They are dropped, as by routers
    Prune,
    /// They reach all hosts, as over switches without snooping
    Flood,
}

/// Run programs in an emulated network.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast emu run lab.toml\n  \
    faircast emu run lab.toml --omit --set \"duration=30 s\" --out record\n  \
    faircast emu run lab.toml -- leaf1: iperf3 -s -1 -- src1: iperf3 -c leaf1\n  \
    faircast emu run emu-3f2a -- src1: ping -c 3 leaf2     in a network of `faircast emu up`\n\n\
    A program starts when the one before it waits or has ended. The run ends when all programs have ended; then the network \
    is removed. Exit codes: 0 good, 1 a program failed or the run is invalid, 2 usage, 3 system.")]
pub struct EmuRun {
    /// Scenario file, or ID of a network from `faircast emu up`
    #[arg(value_name = "FILE|ID", value_hint = ValueHint::FilePath)]
    pub network: PathBuf,
    /// Network.
    #[command(flatten)]
    pub building: Building,
    /// Run the flows of the scenario beside the programs
    #[arg(long, requires = "words")]
    pub flows: bool,
    /// Send the flows of the scenario over IPv6, and not over IPv4
    #[arg(long)]
    pub ipv6: bool,
    /// Run without the parts of the scenario that have no program, and list these parts
    #[arg(long)]
    pub omit: bool,
    /// End programs that still run after this time, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = values::span)]
    pub timeout: Option<Duration>,
    /// Directory for the record: rates and queues over time as `sim run` writes them
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Write the TCP flows of the scenario for Flent, as in lab.flent.gz
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub flent: Option<PathBuf>,
    /// Capture packets on the links of `probe.taps`, or on all links, as pcapng for Wireshark
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub pcap: Option<PathBuf>,
    /// Maximum number of captured bytes of a packet [default: all]
    #[arg(long, value_name = "BYTES", requires = "pcap", value_parser = clap::value_parser!(u32).range(20..=65_535))]
    pub snaplen: Option<u32>,
    /// Print output, the state of each second and results as JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// Programs: `HOST: PROGRAM ARGUMENTS`, separated by `--`
    #[arg(last = true, value_name = "HOST: PROGRAM")]
    pub words: Vec<OsString>,
}

impl EmuRun {
    /// Returns whether files of the run need all of its samples.
    pub const fn records(&self) -> bool {
        self.out.is_some() || self.flent.is_some()
    }
}

/// Build a network that stays.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  faircast emu up lab.toml\n  faircast emu run emu-3f2a -- src1: ping -c 3 leaf1"
)]
pub struct EmuUp {
    /// Scenario file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Network.
    #[command(flatten)]
    pub building: Building,
    /// Print the network as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Remove emulated networks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast emu down            all\n  faircast emu down emu-3f2a")]
pub struct EmuDown {
    /// IDs of networks [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
}

/// List emulated networks.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast emu status\n  faircast emu status --json")]
pub struct EmuStatus {
    /// Print every network as JSON, one object per line
    #[arg(long)]
    pub json: bool,
}
