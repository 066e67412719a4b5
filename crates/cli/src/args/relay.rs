//! Arguments of `relay`.

use super::OutputOptions;
use crate::values;
use clap::{Args, ValueEnum, ValueHint};
use faircast_core::time::Rate;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Role of a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Ends each session and sends its own session on each branch, with any congestion control.
    Repeater,
    /// MTCP agent: children receive the multicast of the source; the agent repairs their losses and aggregates their feedback.
    Agent,
    /// RACCOOM active router: forwards packets one by one; the kernel forwards other sessions.
    RouterRaccoom,
    /// RMANP active router: forwards packets one by one; the kernel forwards other sessions.
    RouterRmanp,
}

/// Relay sessions to other networks, and repair losses there.
///
/// A relay receives each session once and sends it on each branch at the rate of that branch, with the congestion control of
/// the session. It repairs downstream losses from its cache and aggregates feedback from downstream. A relay key
/// (`keygen --relay`) does not decrypt content.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast relay --from eth0 --to eth1\n  \
    faircast relay --from eth0 --to eth1 --to eth2 --key relay.key\n  \
    faircast relay --from 239.1.2.3@eth0 --to 239.9.9.9:6000@eth1 --max 50M\n  \
    faircast relay --from eth0 --listen                        and at another site:\n  \
    faircast relay --parent 192.0.2.7 --to eth0\n  \
    faircast relay --role agent --from eth0                   and on hosts nearby: recv --parent find\n  \
    faircast relay --role router-raccoom --from eth0 --to eth1\n  \
    faircast relay --status")]
pub struct Relay {
    /// Receive from this interface, group, or both. Can be given several times
    #[arg(help_heading = "Network", long, value_name = "[GROUP@]IFACE", value_parser = values::group_at, required_unless_present_any = ["status", "parent"])]
    pub from: Vec<values::GroupAt>,
    /// Send to this interface, group, or both [default group: the group of the session]. Can be given several times
    #[arg(help_heading = "Network", long, value_name = "[GROUP@]IFACE", value_parser = values::group_at, required_unless_present_any = ["status", "listen", "role"])]
    pub to: Vec<values::GroupAt>,
    /// Role of this relay
    #[arg(
        help_heading = "Role",
        long,
        value_name = "ROLE",
        value_enum,
        default_value = "repeater",
        conflicts_with = "status"
    )]
    pub role: Role,
    /// Receive by unicast from this relay or source, as with `recv --parent`; `find`: from the nearest relay
    #[arg(help_heading = "Unicast", long, value_name = "ADDRESS[:PORT]|find", value_parser = values::parent_or_find)]
    pub parent: Vec<SocketAddr>,
    /// Serve hosts and relays that connect by unicast: a port, an address, or both
    #[arg(help_heading = "Unicast", long, value_name = "[ADDRESS:]PORT", value_parser = values::listen_at, num_args = 0..=1, default_missing_value = "5778")]
    pub listen: Option<values::Listen>,
    /// Do not answer hosts that search for a relay (`--parent find`)
    #[arg(help_heading = "Unicast", long, requires = "listen")]
    pub hidden: bool,
    /// Maximum number of hosts served by unicast. Hosts without the key get at most three quarters of these places
    #[arg(help_heading = "Unicast", long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub max_children: u16,
    /// Key of the relay (`keygen --relay`). Without it, only open sessions are relayed
    #[arg(help_heading = "Security", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// Accept packets from this host only
    #[arg(help_heading = "Network", long, value_name = "ADDRESS")]
    pub source: Option<IpAddr>,
    /// Memory for the cache of each session, in bytes, as in 256M
    #[arg(help_heading = "Cache", long, value_name = "BYTES", value_parser = values::size, default_value = "256M")]
    pub memory: usize,
    /// Directory for blocks that do not fit in memory. Without it, they are discarded and fetched again on request
    #[arg(help_heading = "Cache", long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cache: Option<PathBuf>,
    /// Maximum rate on any branch, in bit/s
    #[arg(help_heading = "Rate", long, value_name = "RATE", value_parser = values::rate)]
    pub max: Option<Rate>,
    /// Time to live of relayed packets; 1 stays on the network of the interface
    #[arg(help_heading = "Network", long, value_name = "HOPS", value_parser = values::ttl, default_value = "1")]
    pub ttl: u8,
    /// Maximum silence of the source or of a receiver, in seconds
    #[arg(help_heading = "Role", long, value_name = "SECONDS", value_parser = values::span, default_value = "60")]
    pub timeout: Duration,
    /// Name of this host in messages [default: the host name of the system]
    #[arg(help_heading = "Network", long, value_name = "NAME", value_parser = values::host_name)]
    pub host: Option<String>,
    /// Socket for the status of a running relay [default: faircast-relay.sock in $XDG_RUNTIME_DIR, or in /run]
    #[arg(help_heading = "Output", long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
    /// Print the status of the relay that runs on this host, and exit
    #[arg(help_heading = "Output", long, conflicts_with_all = ["from", "to", "parent", "listen", "cache", "key", "source", "max", "host"])]
    pub status: bool,
    /// Output.
    #[command(flatten)]
    pub output_options: OutputOptions,
}
