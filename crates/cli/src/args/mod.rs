//! Arguments of the command line.

mod clean;
pub mod formats;
mod receipt;
pub mod relay;
mod unanswered;

use crate::values;
use clap::{Args, Parser, Subcommand, ValueHint};
pub use clean::Clean;
use faircast::config::{default_group_here, default_scheme};
use faircast::object::KeepPartial;
use faircast::{Names, Preserve, SlowReceiverPolicy};
use faircast_core::packet::Layer;
use faircast_core::schemes::Scheme;
use faircast_core::time::Rate;
use faircast_wire::Spacing;
use formats::{AtReceiver, AtSource, FormatArgs};
pub use receipt::{Receipt, ReceiptCommand, ReceiptVerify};
pub use relay::{Relay, Role};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
pub use unanswered::Unanswered;

/// Send files and live streams to many receivers at once, fair to the other traffic.
#[derive(Debug, Parser)]
#[command(
    name = "faircast",
    version,
    max_term_width = 100,
    after_help = "Start with `faircast demo`, then `faircast doctor` on each host.\n\n\
                  Exit codes: 0 done, 1 a check or transfer failed, 2 usage, 3 network or system,\n\
                  4 all have everything but those that --slow drop has left out."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send files and directories, or standard input, until every receiver has verified them
    Send(Send),
    /// Receive what a source sends
    Recv(Recv),
    /// Send standard input live, or a stream on each layer: who joins late starts at the present
    Stream(Stream),
    /// Start a session that waits for receivers, with those that are there
    #[command(
        after_help = "Enter does the same where `send` runs, and the signal USR1.\n\nExamples:\n  faircast start\n  faircast start 1234"
    )]
    Start {
        /// The process of the `send` or `stream` [default: the only one on this host]
        #[arg(value_name = "PID")]
        pid: Option<u32>,
    },
    /// Pass sessions on to other networks, and repair what is lost there
    Relay(Relay),
    /// Make a key that seals sessions, or one for a relay
    Keygen(Keygen),
    /// Say what a key file holds and may do
    Key(Key),
    /// Check what receivers have signed, as a sender has reported it
    Receipt(Receipt),
    /// Check this host: interfaces, routes, buffers, and whether multicast works
    Doctor(Doctor),
    /// List, or remove, what receivers have begun and not finished in a directory
    Clean(Clean),
    /// Print a Wireshark dissector for faircast's packets
    Dissector,
    /// Simulate 10,000 receivers, then send to four on this host, and say what was measured
    Demo(Demo),
    /// List the congestion control schemes and their parameters
    Schemes(Schemes),
    /// Simulate networks described in scenario files
    #[cfg(feature = "simulator")]
    Sim(crate::sim::args::Sim),
    /// Repeat the experiments of the papers that the schemes come from
    #[cfg(feature = "simulator")]
    Repro(crate::sim::args::Repro),
    /// Run queue disciplines under the scenarios of RFC 7928, one by itself or several beside each other
    #[cfg(feature = "simulator")]
    Aqm(crate::aqm::args::Aqm),
    /// Run one scenario with several congestion controls in turn
    #[cfg(feature = "simulator")]
    Compare(crate::sim::args::Compare),
    /// Print the manual page of a command, or write those of all commands into a directory
    #[command(
        after_help = "Examples:\n  faircast man send | man -l -\n  faircast man sim run\n  faircast man --into /usr/local/share/man/man1"
    )]
    Man {
        /// The command, as in `send` or `sim run` [default: faircast itself]
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
        /// Write the pages of all commands into this directory
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
        into: Option<PathBuf>,
    },
    /// Print completions for a shell
    #[command(after_help = "Examples:\n  faircast completions bash > /etc/bash_completion.d/faircast")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What a source and a receiver must agree on.
#[derive(Debug, Args)]
pub struct SessionArgs {
    /// Multicast group; the port may be left out [default: 239.255.70.1:5777, on hosts without IPv4 [ff15::4643:1]:5777]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = values::group)]
    pub group: Option<SocketAddr>,
    /// Interface, by name or address; chosen by route when not given
    #[arg(long, value_name = "NAME|ADDRESS")]
    pub iface: Option<String>,
    /// Seal the session under the key in this file; receivers open what is sealed under any of the keys in it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// Name of this host in messages [default: the system's]
    #[arg(long, value_name = "NAME", value_parser = values::host_name)]
    pub host: Option<String>,
}

/// How a source sends.
#[derive(Debug, Args)]
pub struct Sending {
    /// UDP port of this host that receivers answer to [default: the group's, or a free one while another program has that]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Time to live: 1 stays on the local network
    #[arg(long, value_name = "HOPS", value_parser = values::ttl, default_value = "1")]
    pub ttl: u8,
    /// Congestion control, with options as in `ormcc,beta=0.7`; see `faircast schemes` [default: ormcc; foreign formats have their own]
    #[arg(long, value_name = "SCHEME[,K=V]", value_parser = scheme)]
    pub cc: Option<Scheme>,
    /// Where the groups of a layered scheme are: at addresses or at ports in a row, from --group on
    #[arg(long, value_name = "address|port", value_enum, default_value_t = LayersBy::Address)]
    pub layers_by: LayersBy,
    /// Never send slower than this, in bit/s, like 800k or 10M
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub min: Option<Rate>,
    /// Never send faster than this, in bit/s
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub max: Option<Rate>,
    /// What one slow receiver may cost: follow it, serve it after the others (floor:RATE), or
    /// leave it out (drop:RATE)
    #[arg(long, value_name = "POLICY", value_parser = values::slow, default_value = "follow")]
    pub slow: SlowReceiverPolicy,
    /// Send without a key and do not remind me of it
    #[arg(long, conflicts_with = "key")]
    pub no_key: bool,
    /// Sign the content with the key in this file (`keygen --sign`): receivers with its public half take nothing else
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sign_key: Option<PathBuf>,
    /// Each receiver has to send a receipt (`recv --sign-receipts`) by one of these public keys: a file of them, or a directory of
    /// such files. Who has everything and no such receipt does not count as done. Without it receipts are recorded
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub receipts: Option<PathBuf>,
    /// Start when so many receivers have joined, and end when they are done
    #[arg(long, value_name = "N", value_parser = values::receivers)]
    pub expect: Option<u32>,
    /// The hosts in this file must have everything, one a line, by the name that they say or by address: the session starts when
    /// they have joined, and those that are missing are named
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["invite", "listen"])]
    pub receivers: Option<PathBuf>,
    /// Write what has become of every receiver to this file when the session ends: as JUnit XML when its name ends in .xml,
    /// otherwise as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// How long to wait for receivers to join, in seconds, in all; Enter, or `faircast start`, starts with those that are there
    #[arg(long, value_name = "SECONDS", value_parser = values::span, default_value = "10")]
    pub join_timeout: Duration,
    /// How long receivers may be silent, or not be reached by data, and the network be gone, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = values::span, default_value = "60")]
    pub timeout: Duration,
    /// Serve hosts that ask here by unicast (`recv --parent`), each at a rate of its own: a port, an address, or both. Without
    /// --group and --iface nothing is sent by multicast
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = values::listen_at, num_args = 0..=1, default_missing_value = "5778")]
    pub listen: Option<values::Listen>,
    /// Invite the hosts in this file, one a line, which wait with `recv --listen`, and serve them likewise; --expect is their
    /// number when not given
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub invite: Option<PathBuf>,
    /// Serve at most this number of hosts that ask without an invitation. A host that has not shown the key gets at most three
    /// quarters of these places
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024), requires = "listen")]
    pub max_children: u16,
    /// Memory for what slower hosts served by unicast have not got yet, in bytes; more than that is read again
    #[arg(long, value_name = "BYTES", value_parser = values::size, default_value = "256M")]
    pub memory: usize,
    /// Largest UDP datagram, in bytes [default: what the interface carries, at most 1500]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(400..=65_507))]
    pub datagram: Option<u16>,
    /// How packets look.
    #[command(flatten)]
    pub format: FormatArgs<AtSource>,
}

/// How the groups of the layers follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LayersBy {
    /// The base layer's address and the next ones: routers forward to each host the layers that it wants
    Address,
    /// The base layer's port and the next ones: for networks that grant one group only
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

/// How a session tells what it does.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputOptions {
    /// Tell everything as JSON, one object a line, on standard output
    #[arg(long)]
    pub json: bool,
    /// Tell only errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Tell more
    #[arg(long, short)]
    pub verbose: bool,
}

/// Send files and directories, or standard input, until every receiver has verified them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast send disk.img --expect 30\n  \
    faircast send disk.img --receivers lab.txt --report lab.xml\n  \
    faircast send models/ notes.txt --key lab.key --iface eth0\n  \
    faircast send rootfs/ --preserve all           and `recv --preserve all`, as root\n  \
    faircast send disk.img --slow floor:50M        slow hosts are served last\n  \
    faircast send disk.img --cc rlc                in layers: every host at its own speed\n  \
    faircast send log.txt --wire pgm --framing zmq     to ZeroMQ's epgm:// subscribers\n  \
    faircast send maps/ --one-way --rate 5M        to hosts that run `recv --one-way`, which never answer\n  \
    faircast send maps/ --wire alc --rate 5M       to FLUTE receivers, which never answer\n  \
    faircast send disk.img --invite hosts.txt          without multicast, to hosts that run `recv --listen`\n  \
    faircast send disk.img --listen                without multicast, to hosts that run `recv --parent`\n  \
    tar c src | faircast send - --name src.tar")]
pub struct Send {
    /// Files and directories; `-` is standard input
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// The session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// How it is sent.
    #[command(flatten)]
    pub sending: Sending,
    /// For sources that nobody answers.
    #[command(flatten)]
    pub unanswered: Unanswered,
    /// Say this of files too: `owner`, `setid`, `acls`, `xattrs`, `privileged`, `all`; receivers give it to them when they ask for it as well
    #[arg(long, value_name = "ATTRIBUTES", value_parser = values::preserve, default_value = "", hide_default_value = true)]
    pub preserve: Preserve,
    /// Send nothing when something cannot be read; otherwise the rest is sent, it is named, and the exit code is 5
    #[arg(long)]
    pub strict: bool,
    /// Send what every symbolic link leads to, in place of the link
    #[arg(long)]
    pub copy_links: bool,
    /// The same of those links alone that lead out of the paths that are sent
    #[arg(long)]
    pub copy_unsafe_links: bool,
    /// Name of the file that standard input becomes [default: stdin]
    #[arg(long, value_name = "NAME", value_parser = values::file_name)]
    pub name: Option<String>,
    /// How it is told.
    #[command(flatten)]
    pub output_options: OutputOptions,
}

/// Send standard input live, or a stream on each layer: who joins late starts at the present.
///
/// With --layer each receiver gets the base layer's stream and as many of the others as its path carries. Nobody asks
/// for repairs then: they are sent with the data, and what still is missing is left out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ffmpeg ... -f mpegts - | faircast stream --key lab.key\n  \
    journalctl -f | faircast stream --history 30\n  \
    faircast stream --cc rlc,base=2e6 --layer base.pipe --layer more.pipe      a stream on each layer")]
pub struct Stream {
    /// How long sent data can still be repaired, in seconds; with --layer, how long it may wait to be sent
    #[arg(long, value_name = "SECONDS", value_parser = values::span, default_value = "5")]
    pub history: Duration,
    /// A stream of its own for each layer of --cc rlc or gmcc, base layer first: a file, a named pipe, or `-`
    #[arg(long = "layer", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub layers: Vec<PathBuf>,
    /// With --layer: repairs that are sent with the data, in percent of it [default: 10%]
    #[arg(long, value_name = "PERCENT", value_parser = values::percent, requires = "layers")]
    pub repair: Option<f64>,
    /// The session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// How it is sent.
    #[command(flatten)]
    pub sending: Sending,
    /// How it is told.
    #[command(flatten)]
    pub output_options: OutputOptions,
}

/// Receive what a source sends.
///
/// A receiver that was stopped goes on where it was when the same command is run again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast recv --out /srv/images\n  \
    faircast recv --key lab.key --iface eth0 --join-timeout 60\n  \
    faircast recv --serve --out /srv/images --accept 'master*' --max-size 40G --json\n  \
    faircast recv --stdout | tar x\n  \
    faircast recv --stdout --layer-to 1=more.pipe | player      two layers of a live stream\n  \
    faircast recv --source 192.0.2.1 --group 232.1.1.1        source-specific multicast\n  \
    faircast recv --parent find                               by unicast, from the nearest relay\n  \
    faircast recv --listen --source 192.0.2.1                 by unicast, when that host invites")]
pub struct Recv {
    /// The session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// Accept packets from this host only
    #[arg(long, value_name = "ADDRESS")]
    pub source: Option<IpAddr>,
    /// Be served by this relay or source by unicast, where multicast does not come, or by the nearest relay (`find`, over IPv6
    /// `find6`); given several times, the next takes over when one is silent
    #[arg(long, value_name = "ADDRESS[:PORT]|find", value_parser = values::parent_or_find)]
    pub parent: Vec<SocketAddr>,
    /// Wait here until a source invites this host (`send --invite`): a port, an address, or both
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = values::listen, num_args = 0..=1, default_missing_value = "5778", conflicts_with = "parent")]
    pub listen: Option<SocketAddr>,
    /// Stay: take part in one session after another, and in several at once, until stopped. What becomes of each is told as it ends
    #[arg(long, conflicts_with_all = ["stdout", "join_timeout", "layer_to"])]
    pub serve: bool,
    /// With --serve: take part in so many sessions at once at most; with --parent and --listen in one
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64), requires = "serve")]
    pub max_sessions: u16,
    /// Accept only sessions of sources that call themselves so, where `*` stands for anything; can be given several times
    #[arg(long, value_name = "NAME")]
    pub accept: Vec<String>,
    /// Take at most this many bytes of content from a session, like 8G, and at most as many again for directories, names and attributes: a session that announces more is refused, and a stream that exceeds it ends with an error
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    pub max_size: Option<usize>,
    /// Directory for what is received; made when it is not there
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Follow sessions whose source cannot hear this host (`send --one-way`): their time is compared with this host's clock instead
    #[arg(long)]
    pub one_way: bool,
    /// Accept only content that was signed with the private half of a key in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub verify_key: Option<PathBuf>,
    /// When everything is verified and in its place, send the source a receipt that is signed with the key in this file
    /// (`keygen --sign`)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sign_receipts: Option<PathBuf>,
    /// Write one file or a stream to standard output; of a stream in layers, the base layer
    #[arg(long, conflicts_with = "out")]
    pub stdout: bool,
    /// Write this layer of a live stream to a file or named pipe; 0 is the base layer. Can be given for each layer
    #[arg(long, value_name = "N=PATH", value_parser = values::layer_to)]
    pub layer_to: Vec<(Layer, PathBuf)>,
    /// Give up when no session begins for so many seconds [default: wait for ever]
    #[arg(long, value_name = "SECONDS", value_parser = values::span)]
    pub join_timeout: Option<Duration>,
    /// Give up when the source is silent, none of its data arrives, or the network is gone for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = values::span, default_value = "60")]
    pub timeout: Duration,
    /// Give files this too, where the source says it: `owner`, `setid` (set-user-ID and its like), `acls`, `xattrs`, `privileged`,
    /// `links` (that lead out of DIR), `all`
    #[arg(long, value_name = "ATTRIBUTES", value_parser = values::preserve, default_value = "", hide_default_value = true)]
    pub preserve: Preserve,
    /// With --preserve owner: users and groups by number, whatever their names are here
    #[arg(long)]
    pub numeric_owner: bool,
    /// When a session begins, delete unfinished data of earlier sessions in DIR: what is so old (`7d`), the oldest beyond so
    /// much (`40G`), both (`7d,40G`), or nothing (`all` is kept) [default: 7d with --serve, otherwise all]
    #[arg(long, value_name = "AGE,BYTES", value_parser = values::keep_partial)]
    pub keep_partial: Option<KeepPartial>,
    /// What becomes of names with control characters and others that a terminal obeys: `escape` (as \x1b), `keep`, or `refuse`
    #[arg(long, value_name = "escape|keep|refuse", default_value = "escape")]
    pub unsafe_names: Names,
    /// Flush every file to the disk before it gets its name
    #[arg(long)]
    pub sync: bool,
    /// Replace files that came from another source, or in a later session; otherwise such a session is refused
    #[arg(long)]
    pub overwrite: bool,
    /// How packets look.
    #[command(flatten)]
    pub format: FormatArgs<AtReceiver>,
    /// How it is told.
    #[command(flatten)]
    pub output_options: OutputOptions,
}

/// Make a key that seals sessions, one for a relay, or a pair that signs content.
///
/// Copy the file to every host, over a channel you trust: who has it can read, send and answer. A relay gets its own, with
/// which it passes sessions on that it cannot read. With --sign the file stays with the source, and FILE.pub goes to the receivers.
///
/// To change a key, give receivers a file with two lines, the new key and the old one; then give the source the new key; then
/// take the old line away.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast keygen lab.key\n  \
    faircast keygen --sign lab.sign                 and lab.sign.pub\n  \
    faircast keygen - | ssh host 'umask 077; cat > lab.key'\n  \
    faircast keygen --relay lab.key relay.key       the key of the relays of lab.key's sessions")]
pub struct Keygen {
    /// The file to make [default: faircast.key, relay.key or faircast.sign]; `-` is standard output
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Make the key of relays, which comes from this group key
    #[arg(long, value_name = "GROUP KEY", value_hint = ValueHint::FilePath)]
    pub relay: Option<PathBuf>,
    /// Make a key to sign content with, and beside it FILE.pub to verify it with
    #[arg(long, conflicts_with = "relay")]
    pub sign: bool,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

/// About keys.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast key show lab.key")]
pub struct Key {
    /// What about them
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// What can be asked about keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Say what a key file holds, what it may do, and who can read it
    Show(KeyShow),
}

/// Say what a key file holds, what it may do, and who can read it. The key itself is not shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast key show lab.key\n  faircast key show relay.key --json")]
pub struct KeyShow {
    /// The key file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Tell it as JSON, one object for each key
    #[arg(long)]
    pub json: bool,
}

/// Check this host: interfaces, routes, buffers, and whether multicast works.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  faircast doctor\n  faircast doctor --iface eth0 --group 239.1.2.3 --json\n  \
                  faircast doctor --serve                  on one host, and on the other:\n  faircast doctor --with 192.0.2.7"
)]
pub struct Doctor {
    /// Multicast group that will be used [default: 239.255.70.1:5777, on hosts without IPv4 [ff15::4643:1]:5777]
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = values::group)]
    pub group: Option<SocketAddr>,
    /// Interface that will be used, by name or address
    #[arg(long, value_name = "NAME|ADDRESS")]
    pub iface: Option<String>,
    /// Address of the source that will send: whether what it sends can come in here
    #[arg(long, value_name = "ADDRESS")]
    pub source: Option<IpAddr>,
    /// Measure the network to a host that runs `doctor --serve`, and back: rate, loss, order, MTU, the group, and the clocks. It
    /// takes some seconds, and loads the network for moments
    #[arg(long, value_name = "HOST[:PORT]", value_parser = values::doctor)]
    pub with: Option<SocketAddr>,
    /// Answer hosts that run `doctor --with`, one at a time, until stopped: at the group's port, or a port, an address, or both
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = values::doctor_at, num_args = 0..=1, default_missing_value = "0.0.0.0", conflicts_with_all = ["with", "source"])]
    pub serve: Option<SocketAddr>,
    /// Answer, or be answered by, those only that have a key in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// With --with or --serve: time to live of what is sent to the group
    #[arg(long, value_name = "HOPS", value_parser = values::ttl, default_value = "1")]
    pub ttl: u8,
    /// This host will run `recv --one-way`, which needs clocks that agree
    #[arg(long)]
    pub one_way: bool,
    /// Seconds that this host's clock is taken to be ahead of what it says, for tests
    #[arg(long, value_name = "SECONDS", hide = true, default_value_t = 0, allow_negative_numbers = true)]
    pub clock_ahead: i64,
    /// Tell every check as JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

/// Simulate 10,000 receivers, then send to four on this host, and say what was measured.
#[derive(Debug, Args)]
#[command(
    after_help = "It needs no root and no network, takes about a minute and leaves nothing behind but its page."
)]
pub struct Demo {
    /// Megabytes (10^6 bytes) to send
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4_000))]
    pub size: u64,
    /// Where to write a page with figures and tables, for a browser
    #[cfg(feature = "simulator")]
    #[arg(long, value_name = "FILE", default_value = "faircast-demo.html", value_hint = ValueHint::FilePath)]
    pub page: PathBuf,
    /// Tell the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// List the congestion control schemes and their parameters.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  faircast schemes\n  faircast schemes ormcc\n  faircast schemes tcp-sack\n  faircast schemes --json"
)]
pub struct Schemes {
    /// Only this scheme, or a unicast protocol of simulations
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Tell every scheme as JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

impl SessionArgs {
    /// The group and its port.
    pub fn group(&self) -> SocketAddr {
        self.group.unwrap_or_else(|| default_group_here(self.iface.as_deref()))
    }
}

impl Doctor {
    /// The group and its port.
    pub fn group(&self) -> SocketAddr {
        let of_host =
            self.with.or(self.serve).map(|host| host.ip()).filter(|address| !address.is_unspecified());
        let address = of_host.map(|address| address.to_string());
        self.group.unwrap_or_else(|| default_group_here(self.iface.as_deref().or(address.as_deref())))
    }
}

impl Sending {
    /// The congestion control.
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
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
