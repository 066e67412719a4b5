//! Arguments of the command line.

mod clean;
pub mod formats;
mod receipt;
pub mod relay;
mod trace;
mod unanswered;
mod watched;

use crate::{day, values};
use clap::{Args, Parser, Subcommand, ValueHint};
pub use clean::Clean;
use faircast::config::{DayLimits, ReceiverEvents, default_group_here, default_scheme};
use faircast::object::KeepPartial;
use faircast::{Names, Preserve, SlowReceiverPolicy};
use faircast_core::packet::Layer;
use faircast_core::schemes::Scheme;
use faircast_core::time::Rate;
use faircast_wire::Spacing;
use formats::{AtReceiver, AtSource, FormatArgs};
pub use receipt::{Receipt, ReceiptCommand, ReceiptVerify};
pub use relay::{Relay, Role};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
pub use trace::{Trace, TraceCommand, TraceShow};
pub use unanswered::Unanswered;
pub use watched::Watched;

/// Send files and live streams to many receivers over IP multicast, with TCP-fair congestion control.
#[derive(Debug, Parser)]
#[command(
    name = "faircast",
    version,
    max_term_width = 100,
    after_help = "Start with `faircast demo`, then `faircast doctor` on each host.\n\n\
                  Exit codes: 0 done, 1 a check or transfer failed, 2 usage, 3 network or system,\n\
                  4 complete except for receivers excluded by --slow drop, 5 complete except for unreadable\n\
                  or changed files."
)]
pub struct Cli {
    /// Read options from this configuration file instead of /etc/faircast/faircast.toml and the user's file; `/dev/null`: from none
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send files, directories or standard input until every receiver has verified them
    Send(Send),
    /// Receive the content of a source
    Recv(Recv),
    /// Send a live stream; late joiners start at the current position
    Stream(Stream),
    /// Start a waiting session with the receivers that have joined
    #[command(
        after_help = "Enter in the terminal of `send` and SIGUSR1 have the same effect.\n\nExamples:\n  faircast start\n  faircast start 1234"
    )]
    Start {
        /// Process ID of `send` or `stream` [default: the only one on this host]
        #[arg(value_name = "PID")]
        pid: Option<u32>,
    },
    /// Relay sessions to other networks, and repair losses there
    Relay(Relay),
    /// Create a group key, a relay key or a signing key
    Keygen(Keygen),
    /// Show the contents and permissions of a key file
    Key(Key),
    /// Verify the receipts of receivers in a report
    Receipt(Receipt),
    /// Explain the rates of sessions by their traces
    Trace(Trace),
    /// Check this host: interfaces, routes, buffers, and whether multicast works
    Doctor(Doctor),
    /// List or remove partial files of receivers
    Clean(Clean),
    /// Show the options in configuration files, or all options of a command, and where each value comes from
    #[command(after_help = "Examples:\n  faircast config\n  faircast config send\n  faircast config sim run")]
    Config {
        /// Command, as in `send` or `sim run` [default: the settings of all files]
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Print a Wireshark dissector for faircast's packets
    Dissector,
    /// Simulate 10,000 receivers, send to four on this host, and print the measurements
    Demo(Demo),
    /// List the congestion control schemes and their parameters
    Schemes(Schemes),
    /// Simulate networks described in scenario files
    #[cfg(feature = "simulator")]
    Sim(crate::sim::args::Sim),
    /// Emulate the network of a scenario for real programs
    #[cfg(feature = "simulator")]
    Emu(crate::emu::args::Emu),
    /// Repeat the experiments of the papers
    #[cfg(feature = "simulator")]
    Repro(crate::sim::args::Repro),
    /// Run queue disciplines under the scenarios of RFC 7928
    #[cfg(feature = "simulator")]
    Aqm(crate::aqm::args::Aqm),
    /// Compare congestion controls in one scenario
    #[cfg(feature = "simulator")]
    Compare(crate::sim::args::Compare),
    /// Make many runs on Dask, Ray, SLURM or this host, each run once; needs the Python package
    #[cfg(feature = "simulator")]
    #[command(
        disable_help_flag = true,
        after_help = "Examples:\n  faircast campaign run lab.toml --seeds 100\n  faircast campaign run lab.toml --executor dask:tcp://scheduler:8786 --dir /shared/runs\n  faircast campaign missing lab.toml --seeds 100\n  faircast campaign run --help"
    )]
    Campaign {
        /// Command of the Python package, with its options
        #[arg(value_name = "WORDS", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<OsString>,
    },
    /// Create a crate with a congestion control of your own for the simulator
    #[cfg(feature = "simulator")]
    #[command(
        after_help = "Examples:\n  faircast new-scheme gentle\n  faircast new-scheme gentle --checkout ~/faircast"
    )]
    NewScheme(crate::new_crate::NewCrate),
    /// Create a crate with a queue discipline of your own for the simulator
    #[cfg(feature = "simulator")]
    #[command(
        after_help = "Examples:\n  faircast new-queue gentle\n  faircast new-queue gentle --checkout ~/faircast"
    )]
    NewQueue(crate::new_crate::NewCrate),
    /// Print the manual page of a command, or write all pages into a directory
    #[command(
        after_help = "Examples:\n  faircast man send | man -l -\n  faircast man sim run\n  faircast man --into /usr/local/share/man/man1"
    )]
    Man {
        /// Command, as in `send` or `sim run` [default: faircast itself]
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
        /// Write the pages of all commands into this directory
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
        into: Option<PathBuf>,
    },
    /// Print the completion script of a shell
    #[command(after_help = "Examples:\n  faircast completions bash > /etc/bash_completion.d/faircast")]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
}

/// Options that a source and a receiver must agree on.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// Multicast group, with or without a port; with --one-way also the address of the receiving host
    /// [default: 239.255.70.1:5777; on hosts without IPv4: [ff15::4643:1]:5777]
    #[arg(help_heading = "Network", long, value_name = "ADDRESS[:PORT]", value_parser = values::group_or_host)]
    pub group: Option<SocketAddr>,
    /// Network interface, by name or address [default: chosen by route]
    #[arg(help_heading = "Network", long, value_name = "NAME|ADDRESS")]
    pub iface: Option<String>,
    /// Encrypt the session with the group key in this file. Receivers try every key in the file
    #[arg(help_heading = "Security", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// Name of this host in messages [default: the host name of the system]
    #[arg(help_heading = "Network", long, value_name = "NAME", value_parser = values::host_name)]
    pub host: Option<String>,
}

/// Options of a source.
#[derive(Debug, Args)]
pub struct Sending {
    /// Local UDP port for feedback from receivers [default: the port of the group, or a free port if the group's port is in use]
    #[arg(help_heading = "Network", long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Time to live of multicast packets; 1 stays on the local network
    #[arg(help_heading = "Network", long, value_name = "HOPS", value_parser = values::ttl, default_value = "1")]
    pub ttl: u8,
    /// Congestion control, with options as in `ormcc,beta=0.7`; see `faircast schemes` [default: ormcc; foreign formats have
    /// their own]
    #[arg(help_heading = "Rate", long, value_name = "SCHEME[,K=V]", value_parser = scheme)]
    pub cc: Option<Scheme>,
    /// Spacing of the groups of a layered scheme: consecutive addresses or consecutive ports, starting at --group
    #[arg(help_heading = "Rate", long, value_name = "address|port", value_enum, default_value_t = LayersBy::Address)]
    pub layers_by: LayersBy,
    /// Minimum rate, in bit/s, as in 800k or 10M
    #[arg(help_heading = "Rate", long, value_name = "RATE", value_parser = values::rate)]
    pub min: Option<Rate>,
    /// Maximum rate, in bit/s, as in 800k or 10M
    #[arg(help_heading = "Rate", long, value_name = "RATE", value_parser = values::rate)]
    pub max: Option<Rate>,
    /// Maximum rate by the local time of day, as in `08:00-18:00 50M`. Separate several periods by commas; a rate without a period,
    /// or `unlimited`, applies at all other times. A lower --max applies, too
    #[arg(help_heading = "Rate", long, value_name = "PERIOD RATE,..", value_parser = day::limits)]
    pub bandwidth: Option<DayLimits>,
    /// Policy for slow receivers: follow the slowest one (follow), serve slow receivers after all others (floor:RATE), or exclude
    /// them (drop:RATE)
    #[arg(help_heading = "Rate", long, value_name = "POLICY", value_parser = values::slow, default_value = "follow")]
    pub slow: SlowReceiverPolicy,
    /// Send without a key, and print no warning about it
    #[arg(help_heading = "Security", long, conflicts_with = "key")]
    pub no_key: bool,
    /// Sign the content with the private key in this file (`keygen --sign`). Receivers that have the public key accept no
    /// other content
    #[arg(help_heading = "Security", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sign_key: Option<PathBuf>,
    /// Require a receipt from each receiver (`recv --sign-receipts`), signed by one of these public keys: a file, or a
    /// directory of files. Without this option, receipts are recorded but not required
    #[arg(help_heading = "Security", long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub receipts: Option<PathBuf>,
    /// Start when this number of receivers have joined; end when they are done
    #[arg(help_heading = "Receivers", long, value_name = "N", value_parser = values::receivers)]
    pub expect: Option<u32>,
    /// Require the hosts in this file: one name or address per line. The session starts when all have joined; missing hosts
    /// are named
    #[arg(help_heading = "Receivers", long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["invite", "listen"])]
    pub receivers: Option<PathBuf>,
    /// Send only to receivers whose host name matches this pattern; `*` matches any text. All other receivers store nothing. Can
    /// be given several times
    #[arg(
        help_heading = "Receivers",
        long,
        value_name = "PATTERN",
        value_delimiter = ',',
        conflicts_with = "invite"
    )]
    pub to_hosts: Vec<String>,
    /// Write the outcome of every receiver to this file when the session ends: JUnit XML if the name ends in .xml, a page for
    /// browsers if it ends in .html, otherwise JSON
    #[arg(help_heading = "Output", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Run this command of the shell when all receivers are complete; variables describe the session (docs/hooks.md)
    #[arg(help_heading = "Output", long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub on_complete: Option<OsString>,
    /// Maximum time to wait for receivers to join, in seconds. Enter or `faircast start` starts the session at once
    #[arg(help_heading = "Receivers", long, value_name = "SECONDS", value_parser = values::span, default_value = "10")]
    pub join_timeout: Duration,
    /// Maximum silence of a receiver, time without data at a receiver, and outage of the network, in seconds
    #[arg(help_heading = "Receivers", long, value_name = "SECONDS", value_parser = values::span, default_value = "60")]
    pub timeout: Duration,
    /// Serve hosts that connect by unicast (`recv --parent`), each at its own rate: a port, an address, or both. Without
    /// --group and --iface, nothing is sent by multicast
    #[arg(help_heading = "Unicast", long, value_name = "[ADDRESS:]PORT", value_parser = values::listen_at, num_args = 0..=1, default_missing_value = "5778")]
    pub listen: Option<values::Listen>,
    /// Invite the hosts in this file, one per line, and serve them by unicast. They run `recv --listen`. Their number is the
    /// default of --expect
    #[arg(help_heading = "Unicast", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub invite: Option<PathBuf>,
    /// Maximum number of uninvited hosts served by unicast. Hosts without the key get at most three quarters of these places
    #[arg(help_heading = "Unicast", long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024), requires = "listen")]
    pub max_children: u16,
    /// Memory for data that slower unicast hosts still need, in bytes; further data is read again
    #[arg(help_heading = "Unicast", long, value_name = "BYTES", value_parser = values::size, default_value = "256M")]
    pub memory: usize,
    /// Maximum size of a UDP datagram, in bytes [default: the MTU of the interface, at most 1500]
    #[arg(help_heading = "Network", long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(400..=65_507))]
    pub datagram: Option<u16>,
    /// Packet format.
    #[command(flatten)]
    pub format: FormatArgs<AtSource>,
}

/// Spacing of the groups of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LayersBy {
    /// Consecutive addresses: routers forward each layer only to hosts that joined it
    Address,
    /// Consecutive ports: for networks that allow only one group
    Port,
}

impl From<LayersBy> for Spacing {
    fn from(by: LayersBy) -> Spacing {
        match by {
            LayersBy::Address => Spacing::Address,
            LayersBy::Port => Spacing::Port,
        }
    }
}

/// Output options of a session.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputOptions {
    /// Print events as JSON, one object per line, on standard output
    #[arg(help_heading = "Output", long)]
    pub json: bool,
    /// Print only errors
    #[arg(help_heading = "Output", long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more details
    #[arg(help_heading = "Output", long, short)]
    pub verbose: bool,
    /// Serve a live page of the session for browsers, at this port or address of this host [default: a free port of 127.0.0.1]
    #[cfg(feature = "page")]
    #[arg(help_heading = "Output", long, value_name = "ADDRESS[:PORT]|PORT", value_parser = values::page_at, num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub page: Option<SocketAddr>,
    /// Serve metrics of the session for Prometheus at this port or address of this host, as `/metrics` [default: a free port of
    /// 127.0.0.1]
    #[cfg(feature = "page")]
    #[arg(help_heading = "Output", long, value_name = "ADDRESS[:PORT]|PORT", value_parser = values::page_at, num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub metrics: Option<SocketAddr>,
    /// Append log lines to this file, or send them to the journal of systemd. The variable RUST_LOG selects lines, as in
    /// `faircast=debug` [default: faircast=info]
    #[cfg(feature = "tracing")]
    #[arg(help_heading = "Output", long, value_name = "FILE|journald", value_hint = ValueHint::FilePath, value_parser = values::log_to)]
    pub log: Option<values::LogTo>,
    /// Write a trace that explains the rate to this file, in the format qlog; see `faircast trace show`
    #[cfg(feature = "tracing")]
    #[arg(help_heading = "Output", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
}

impl OutputOptions {
    /// Returns the options of the log and of the trace, and whether they were given.
    pub const fn diagnostics(&self) -> [(&'static str, bool); 2] {
        #[cfg(feature = "tracing")]
        return [("--log", self.log.is_some()), ("--trace", self.trace.is_some())];
        #[cfg(not(feature = "tracing"))]
        [("--log", false), ("--trace", false)]
    }

    /// Returns the addresses of the page and of the metrics.
    pub const fn served_at(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        #[cfg(feature = "page")]
        return (self.page, self.metrics);
        #[cfg(not(feature = "page"))]
        (None, None)
    }

    /// Returns whether the source reports the state of each receiver.
    pub const fn receiver_events(&self) -> ReceiverEvents {
        match self.served_at() {
            (None, None) => ReceiverEvents::Off,
            _ => ReceiverEvents::EverySecond,
        }
    }
}

/// Send files, directories or standard input until every receiver has verified them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast send disk.img --expect 30\n  \
    faircast send disk.img --receivers lab.txt --report lab.xml\n  \
    faircast send models/ notes.txt --key lab.key --iface eth0\n  \
    faircast send rootfs/ --preserve all           with `recv --preserve all` as root\n  \
    faircast send disk.img --bandwidth \"08:00-18:00 50M\"      leave room during the day\n  \
    faircast send disk.img --slow floor:50M        serve slow hosts last\n  \
    faircast send disk.img --to-hosts 'lab-*'      other receivers store nothing\n  \
    faircast send tree/ --delta --delete --dry-run     what would be sent to each receiver?\n  \
    faircast send disk.img --start-at 02:00        at night; receivers join until then\n  \
    faircast send disk.img --cc rlc                in layers: each host at its own rate\n  \
    faircast send log.txt --wire pgm --framing zmq     to ZeroMQ's epgm:// subscribers\n  \
    faircast send maps/ --one-way --rate 5M        without feedback, to `recv --one-way`\n  \
    faircast send maps/ --wire alc --rate 5M       to FLUTE receivers\n  \
    faircast send disk.img --invite hosts.txt      by unicast, to hosts that run `recv --listen`\n  \
    faircast send disk.img --listen                by unicast, to hosts that run `recv --parent`\n  \
    tar c src | faircast send - --name src.tar")]
pub struct Send {
    /// Files, directories and block devices; `-` is standard input
    #[arg(required_unless_present = "watch", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// Transmission.
    #[command(flatten)]
    pub sending: Sending,
    /// Transmission without feedback.
    #[command(flatten)]
    pub unanswered: Unanswered,
    /// Watched directory.
    #[command(flatten)]
    pub watched: Watched,
    /// Start to send at this time: `HH:MM` today or tomorrow, or a date and time as in `2026-12-24T02:00`. Receivers join from
    /// now on; Enter or `faircast start` starts the session earlier
    #[arg(help_heading = "Receivers", long, value_name = "TIME", value_parser = day::start_time)]
    pub start_at: Option<SystemTime>,
    /// Also send these attributes, separated by commas: `owner`, `setid`, `acls`, `xattrs`, `privileged`, `all`. Receivers
    /// apply them with their own --preserve
    #[arg(help_heading = "Files", long, value_name = "ATTRIBUTES", value_parser = values::preserve, default_value = "", hide_default_value = true)]
    pub preserve: Preserve,
    /// Send nothing if a file cannot be read. Default: send the other files, name the unreadable ones, and exit with code 5
    #[arg(help_heading = "Files", long)]
    pub strict: bool,
    /// Send the target of every symbolic link instead of the link
    #[arg(help_heading = "Files", long)]
    pub copy_links: bool,
    /// Send the targets of symbolic links that lead out of the given paths
    #[arg(help_heading = "Files", long)]
    pub copy_unsafe_links: bool,
    /// Let receivers with --delete remove the files in the sent directories that this host does not have
    #[arg(help_heading = "Files", long)]
    pub delete: bool,
    /// Send only the changed parts of files that receivers have in earlier versions, in their output directories or below
    /// --reuse. Reads all files before the session
    #[arg(help_heading = "Files", long)]
    pub delta: bool,
    /// Send only the list of files, and print what a session would send to each receiver. Receivers compare their disks with the
    /// list and change nothing
    #[arg(help_heading = "Files", long, conflicts_with_all = ["watch", "report", "one_way"])]
    pub dry_run: bool,
    /// File name for standard input [default: stdin]
    #[arg(help_heading = "Files", long, value_name = "NAME", value_parser = values::file_name)]
    pub name: Option<String>,
    /// Output.
    #[command(flatten)]
    pub output_options: OutputOptions,
}

/// Send a live stream; late joiners start at the current position.
///
/// With --layer, each receiver gets the stream of the base layer and as many further layers as its path carries. Receivers
/// do not request repairs then: repair data is sent with the stream, and remaining gaps are skipped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ffmpeg ... -f mpegts - | faircast stream --key lab.key\n  \
    journalctl -f | faircast stream --history 30\n  \
    arecord -f cd | faircast stream --latency 20ms\n  \
    faircast stream --cc rlc,base=2e6 --layer base.pipe --layer more.pipe      one stream per layer")]
pub struct Stream {
    /// Time during which sent data can be repaired, in seconds. With --layer: maximum delay of unsent data
    #[arg(help_heading = "Stream", long, value_name = "SECONDS", value_parser = values::span, default_value = "5")]
    pub history: Duration,
    /// Aim for the delay from the input to the receivers' outputs, without delays of the path, as in 20ms. A short delay costs
    /// bandwidth: blocks are small, and if requests would take too long, repair data follows each block [default: 200ms]
    #[arg(help_heading = "Stream", long, value_name = "TIME", value_parser = values::latency)]
    pub latency: Option<Duration>,
    /// Input of one layer of --cc rlc or gmcc, base layer first: a file, a named pipe, or `-`. Give it once for each layer
    #[arg(help_heading = "Stream", long = "layer", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub layers: Vec<PathBuf>,
    /// With --layer: repair data that is sent with the stream, in percent [default: 10%]
    #[arg(help_heading = "Stream", long, value_name = "PERCENT", value_parser = values::percent, requires = "layers")]
    pub repair: Option<f64>,
    /// Session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// Transmission.
    #[command(flatten)]
    pub sending: Sending,
    /// Output.
    #[command(flatten)]
    pub output_options: OutputOptions,
}

/// Receive the content of a source.
///
/// Run the same command again to resume an interrupted transfer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast recv --out /srv/images\n  \
    faircast recv --key lab.key --iface eth0 --join-timeout 60\n  \
    faircast recv --serve --out /srv/images --accept 'master*' --max-size 40G --json\n  \
    faircast recv --out-device /dev/sda                       write a disk image\n  \
    faircast recv --stdout | tar x\n  \
    faircast recv --stdout --layer-to 1=more.pipe | player      two layers of a live stream\n  \
    faircast recv --source 192.0.2.1 --group 232.1.1.1        source-specific multicast\n  \
    faircast recv --parent find                               by unicast, from the nearest relay\n  \
    faircast recv --listen --source 192.0.2.1                 by unicast, on invitation of that host")]
pub struct Recv {
    /// Session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// Accept packets from this host only
    #[arg(help_heading = "Network", long, value_name = "ADDRESS")]
    pub source: Option<IpAddr>,
    /// Receive by unicast from this relay or source, or from the nearest relay (`find`; over IPv6: `find6`). Give it several
    /// times to name alternatives
    #[arg(help_heading = "Unicast", long, value_name = "ADDRESS[:PORT]|find", value_parser = values::parent_or_find)]
    pub parent: Vec<SocketAddr>,
    /// Wait for the invitation of a source (`send --invite`): a port, an address, or both
    #[arg(help_heading = "Unicast", long, value_name = "[ADDRESS:]PORT", value_parser = values::listen, num_args = 0..=1, default_missing_value = "5778", conflicts_with = "parent")]
    pub listen: Option<SocketAddr>,
    /// Receive session after session, several at the same time, until stopped. Print the outcome of each
    #[arg(help_heading = "Sessions", long, conflicts_with_all = ["stdout", "join_timeout", "layer_to"])]
    pub serve: bool,
    /// With --serve: maximum number of sessions at the same time; 1 with --parent and --listen
    #[arg(help_heading = "Sessions", long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64), requires = "serve")]
    pub max_sessions: u16,
    /// Accept only sources with this host name; `*` matches any text. Can be given several times
    #[arg(help_heading = "Sessions", long, value_name = "NAME")]
    pub accept: Vec<String>,
    /// Maximum content of a session, in bytes, as in 8G. The same limit applies to directories, names and attributes. Larger
    /// sessions are refused; longer streams end with an error
    #[arg(help_heading = "Sessions", long, value_name = "BYTES", value_parser = values::size)]
    pub max_size: Option<usize>,
    /// Directory for received files; created if missing
    #[arg(help_heading = "Files", long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Accept sessions without feedback (`send --one-way`). The clocks of both hosts must agree
    #[arg(help_heading = "Sessions", long)]
    pub one_way: bool,
    /// Accept only content that is signed by a key in this file
    #[arg(help_heading = "Security", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub verify_key: Option<PathBuf>,
    /// Send the source a receipt, signed with the key in this file (`keygen --sign`), when all content is verified and stored
    #[arg(help_heading = "Security", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sign_receipts: Option<PathBuf>,
    /// Write one file or a stream to standard output; of a layered stream, the base layer
    #[arg(help_heading = "Files", long, conflicts_with = "out")]
    pub stdout: bool,
    /// Write the only file of a session to this block device, such as /dev/sda. All data on it is lost. The device must not be
    /// in use. An interrupted transfer resumes on the same device, also after a restart of this host
    #[arg(help_heading = "Files", long, value_name = "DEVICE", value_hint = ValueHint::FilePath, conflicts_with_all = ["out", "stdout", "serve", "layer_to"])]
    pub out_device: Option<PathBuf>,
    /// With --out-device: overwrite the device without a question
    #[arg(help_heading = "Files", long, requires = "out_device")]
    pub yes: bool,
    /// Write layer N of a live stream to a file or named pipe; 0 is the base layer. Can be given for each layer
    #[arg(help_heading = "Files", long, value_name = "N=PATH", value_parser = values::layer_to)]
    pub layer_to: Vec<(Layer, PathBuf)>,
    /// Maximum time to wait for a session, in seconds [default: no limit]
    #[arg(help_heading = "Sessions", long, value_name = "SECONDS", value_parser = values::span)]
    pub join_timeout: Option<Duration>,
    /// Maximum silence of the source, maximum time without data, and maximum outage of the network, in seconds
    #[arg(help_heading = "Sessions", long, value_name = "SECONDS", value_parser = values::span, default_value = "60")]
    pub timeout: Duration,
    /// Apply these attributes if the source sends them, separated by commas: `owner`, `setid` (set-user-ID, set-group-ID,
    /// sticky), `acls`, `xattrs`, `privileged`, `links` (that lead out of DIR), `all`
    #[arg(help_heading = "Files", long, value_name = "ATTRIBUTES", value_parser = values::preserve, default_value = "", hide_default_value = true)]
    pub preserve: Preserve,
    /// With --preserve owner: use user and group numbers, not names
    #[arg(help_heading = "Files", long)]
    pub numeric_owner: bool,
    /// Keep partial files of earlier sessions in DIR up to an age (`7d`), up to a total size (`40G`), both (`7d,40G`), or without
    /// limit (`all`). Other partial files are deleted when a session begins [default: 7d with --serve, otherwise all]
    #[arg(help_heading = "Files", long, value_name = "AGE,BYTES", value_parser = values::keep_partial)]
    pub keep_partial: Option<KeepPartial>,
    /// Reuse content of this file, of this block device or of the files below this directory, in addition to DIR. Parts of files
    /// are reused if the source sends with --delta, otherwise files with equal name, size and time. Can be given several times
    #[arg(help_heading = "Files", long, value_name = "PATH", value_hint = ValueHint::AnyPath, conflicts_with = "stdout")]
    pub reuse: Vec<PathBuf>,
    /// Treatment of file names with control characters: write them as \x1b (escape), keep them, or refuse them
    #[arg(help_heading = "Files", long, value_name = "escape|keep|refuse", default_value = "escape")]
    pub unsafe_names: Names,
    /// Run this command of the shell after each session whose content is complete; variables describe the session
    /// (docs/hooks.md)
    #[arg(help_heading = "Sessions", long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub on_complete: Option<OsString>,
    /// Flush every file to disk before it gets its final name
    #[arg(help_heading = "Files", long)]
    pub sync: bool,
    /// Replace files of another source or of a later session. Default: refuse such a session
    #[arg(help_heading = "Files", long)]
    pub overwrite: bool,
    /// Remove files in received directories that the source does not have, if the source has --delete
    #[arg(help_heading = "Files", long)]
    pub delete: bool,
    /// Move replaced and deleted files to this directory, which must be on the filesystem of --out
    #[arg(help_heading = "Files", long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "stdout")]
    pub backup: Option<PathBuf>,
    /// Packet format.
    #[command(flatten)]
    pub format: FormatArgs<AtReceiver>,
    /// Output.
    #[command(flatten)]
    pub output_options: OutputOptions,
}

/// Create a group key, a relay key or a signing key.
///
/// Copy a group key to every host over a trusted channel: every holder of the key can read, send and answer. A relay needs only a relay
/// key, which cannot decrypt content. With --sign, FILE stays at the source, and FILE.pub goes to the receivers.
///
/// To change a group key: give the receivers a file with two lines, the new key and the old key; then give the source the new
/// key; then remove the old line.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast keygen lab.key\n  \
    faircast keygen --sign lab.sign                 also creates lab.sign.pub\n  \
    faircast keygen - | ssh host 'umask 077; cat > lab.key'\n  \
    faircast keygen --relay lab.key relay.key       the relay key for sessions of lab.key")]
pub struct Keygen {
    /// File to create [default: faircast.key, relay.key or faircast.sign]; `-` is standard output
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Derive the key for relays from this group key
    #[arg(long, value_name = "GROUP KEY", value_hint = ValueHint::FilePath)]
    pub relay: Option<PathBuf>,
    /// Create a key pair to sign content: FILE, and FILE.pub to verify
    #[arg(long, conflicts_with = "relay")]
    pub sign: bool,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

/// Inspect keys.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast key show lab.key")]
pub struct Key {
    /// Command for keys
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// Commands for keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Show the contents, permissions and readers of a key file
    Show(KeyShow),
}

/// Show the contents, permissions and readers of a key file. The key itself is not shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast key show lab.key\n  faircast key show relay.key --json")]
pub struct KeyShow {
    /// Key file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON, one object per key
    #[arg(long)]
    pub json: bool,
}

/// Check this host: interfaces, routes, buffers, and whether multicast works.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  faircast doctor\n  faircast doctor --iface eth0 --group 239.1.2.3 --json\n  \
                  faircast doctor --serve                  on one host; on the other:\n  faircast doctor --with 192.0.2.7"
)]
pub struct Doctor {
    /// Multicast group to check [default: 239.255.70.1:5777; on hosts without IPv4: [ff15::4643:1]:5777]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = values::group)]
    pub group: Option<SocketAddr>,
    /// Interface to check, by name or address
    #[arg(long, value_name = "NAME|ADDRESS")]
    pub iface: Option<String>,
    /// Address of the source: check whether its packets can reach this host
    #[arg(long, value_name = "ADDRESS")]
    pub source: Option<IpAddr>,
    /// Measure the network to a host that runs `doctor --serve`, in both directions: rate, loss, order, MTU, the group, and
    /// the clocks. The test takes some seconds and loads the network briefly
    #[arg(long, value_name = "HOST[:PORT]", value_parser = values::doctor)]
    pub with: Option<SocketAddr>,
    /// Answer hosts that run `doctor --with`, one at a time, until stopped: a port, an address, or both [default port: the
    /// port of the group]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = values::doctor_at, num_args = 0..=1, default_missing_value = "0.0.0.0", conflicts_with_all = ["with", "source"])]
    pub serve: Option<SocketAddr>,
    /// Exchange packets only with hosts that have a key in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// With --with or --serve: time to live of packets to the group
    #[arg(long, value_name = "HOPS", value_parser = values::ttl, default_value = "1")]
    pub ttl: u8,
    /// Check the clock for `recv --one-way`
    #[arg(long)]
    pub one_way: bool,
    /// Add this number of seconds to the clock of this host, for tests
    #[arg(long, value_name = "SECONDS", hide = true, default_value_t = 0, allow_negative_numbers = true)]
    pub clock_ahead: i64,
    /// Print every check as JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// Simulate 10,000 receivers, send to four on this host, and print the measurements.
#[derive(Debug, Args)]
#[command(
    after_help = "The demo needs no root and no network. It takes about a minute and leaves only its HTML page."
)]
pub struct Demo {
    /// Size of the content, in megabytes (10^6 bytes)
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4_000))]
    pub size: u64,
    /// HTML file for figures and tables
    #[cfg(feature = "simulator")]
    #[arg(long, value_name = "FILE", default_value = "faircast-demo.html", value_hint = ValueHint::FilePath)]
    pub page: PathBuf,
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// List the congestion control schemes and their parameters.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  faircast schemes\n  faircast schemes ormcc\n  faircast schemes tcp-sack\n  faircast schemes --json"
)]
pub struct Schemes {
    /// Show only this scheme or unicast protocol
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print every scheme as JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

impl SessionArgs {
    /// Returns the address and port of the group.
    pub fn group(&self) -> SocketAddr {
        self.group.unwrap_or_else(|| default_group_here(self.iface.as_deref()))
    }

    /// Whether the address of one host was given instead of a group.
    pub fn is_to_host(&self) -> bool {
        self.group.is_some_and(|group| !group.ip().is_multicast())
    }
}

impl Doctor {
    /// Returns the address and port of the group.
    pub fn group(&self) -> SocketAddr {
        let of_host =
            self.with.or(self.serve).map(|host| host.ip()).filter(|address| !address.is_unspecified());
        let address = of_host.map(|address| address.to_string());
        self.group.unwrap_or_else(|| default_group_here(self.iface.as_deref().or(address.as_deref())))
    }
}

impl Sending {
    /// Returns the congestion control.
    pub fn scheme(&self) -> Scheme {
        self.cc.unwrap_or_else(default_scheme)
    }
}

fn scheme(text: &str) -> Result<Scheme, String> {
    text.parse::<Scheme>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
