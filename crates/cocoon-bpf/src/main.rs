//! The command `faircast-cocoon`.

use clap::{Parser, Subcommand};
use faircast_cocoon_bpf::regulator::Opening;
use faircast_cocoon_bpf::{CocoonError, Place, Settings, gate, group_map, load, status, trace, unload};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// COCOON in Linux: connections to one destination prefix share round-trip times, congestion cuts and initial windows
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Name of the congestion control, as programs and routes choose it
    #[arg(long, global = true, default_value = "cocoon")]
    name: String,
    /// BPF file system to pin in
    #[arg(long, global = true, default_value = "/sys/fs/bpf")]
    bpffs: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Register the congestion control; nothing uses it until it is chosen
    Load(Load),
    /// Show groups, members, round trips, windows and cuts
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Unregister the congestion control; live connections use it until they end
    Unload,
    /// Write every decision as CSV to standard output until interrupted
    Trace,
    /// Group destination hosts that share a bottleneck, by their round-trip times and losses, until interrupted
    Group,
    /// Forward UDP packets at the rate of the virtual connection of a destination's group
    UdpGate {
        /// Address that local programs send to
        #[arg(long)]
        listen: SocketAddr,
        /// Destination
        #[arg(long)]
        to: SocketAddr,
        /// Open the window by all data that the TCP connections have acknowledged, as in the paper, not by the UDP flows' share of it
        #[arg(long)]
        open_by_all: bool,
    },
}

#[derive(clap::Args)]
struct Load {
    /// Length of the IPv4 prefix of a group, in bits
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=32))]
    prefix4: u32,
    /// Length of the IPv6 prefix of a group, in bits
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=128))]
    prefix6: u32,
    /// Do not cut the windows of other members at a loss (for measurements)
    #[arg(long)]
    no_coordination: bool,
    /// Start every connection with the kernel's initial window (for measurements)
    #[arg(long)]
    no_shared_start: bool,
    /// Limit the windows of all members of a group together after a cut, so that long answers lose fewer packets
    #[arg(long)]
    group_limit: bool,
    /// Halve a member's window also at its losses below the watermark, as TCP does
    #[arg(long)]
    cut_below: bool,
    /// Minimum initial window of a new connection in a group with a reference, in packets
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10))]
    min_start: u32,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: &Cli) -> Result<(), CocoonError> {
    let place = Place::new(&cli.name, &cli.bpffs)?;
    match &cli.command {
        Command::Load(wanted) => {
            load(&place, &wanted.settings())?;
            eprintln!(
                "{}: registered; select it with the socket option TCP_CONGESTION, a route (congctl) or a sysctl",
                place.name()
            );
        }
        Command::Status { json } => {
            let status = status::Status::read(&place)?;
            let text = match json {
                true => serde_json::to_string_pretty(&status).expect("a status has only text keys") + "\n",
                false => status::text(&status),
            };
            let _ = io::stdout().write_all(text.as_bytes()); // a closed output is not an error
        }
        Command::Unload => {
            unload(&place)?;
            eprintln!("{}: unregistered; live connections keep it until they end", place.name());
        }
        Command::Trace => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            let (events, lost) = trace::record(&place, &mut out, &interrupted())?;
            eprintln!("{}: {events} events written, {lost} events lost", place.name());
        }
        Command::Group => {
            let summary = group_map::run(&place, &interrupted())?;
            println!("{}", serde_json::to_string(&summary).expect("counters have only text keys"));
        }
        Command::UdpGate { listen, to, open_by_all } => {
            let opening = if *open_by_all { Opening::All } else { Opening::Share };
            let passed = gate::run(&place, *listen, *to, opening, &interrupted())?;
            println!("{}", serde_json::to_string(&passed).expect("counters have only text keys"));
        }
    }
    Ok(())
}

impl Load {
    fn settings(&self) -> Settings {
        Settings {
            prefix4: self.prefix4,
            prefix6: self.prefix6,
            coordinate: !self.no_coordination,
            share_start: !self.no_shared_start,
            group_limit: self.group_limit,
            cut_below: self.cut_below,
            min_start: self.min_start,
        }
    }
}

/// Returns a flag that SIGINT and SIGTERM set.
fn interrupted() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).expect("these two signals can be handled");
    }
    stop
}
