//! Arguments of `relay`.

use super::OutputOptions;
use crate::values;
use clap::{Args, ValueEnum, ValueHint};
use faircast_core::time::Rate;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// What a relay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Sessions of its own below, of any congestion control.
    Repeater,
    /// An agent within sessions of MTCP.
    Agent,
    /// A hop with a router for sessions of RACCOOM.
    RouterRaccoom,
    /// A hop with an active router for sessions of RMANP.
    RouterRmanp,
}

/// Pass sessions on: from groups on one side to groups on others.
///
/// A relay hears each session once and sends it on, at a rate of its own for each branch, by the session's own congestion
/// control. It repairs what is lost behind it from what it keeps, and answers for everybody behind it. With the relay's key of
/// sealed sessions (`keygen --relay`) it cannot read what it passes on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast relay --from eth0 --to eth1\n  \
    faircast relay --from eth0 --to eth1 --to eth2 --key relay.key\n  \
    faircast relay --from 239.1.2.3@eth0 --to 239.9.9.9:6000@eth1 --max 50M\n  \
    faircast relay --from eth0 --listen                        and at another site:\n  \
    faircast relay --parent 192.0.2.7 --to eth0\n  \
    faircast relay --role agent --from eth0                     and on hosts near it: recv --parent find\n  \
    faircast relay --role router-raccoom --from eth0 --to eth1   packets as they come, one acknowledgement of all\n  \
    faircast relay --status")]
pub struct Relay {
    /// Where sessions are heard: an interface, a group, or both. Can be given several times
    #[arg(long, value_name = "[GROUP@]IFACE", value_parser = values::group_at, required_unless_present_any = ["status", "parent"])]
    pub from: Vec<values::GroupAt>,
    /// Where they are passed on to, likewise; without a group, to the one that they come from
    #[arg(long, value_name = "[GROUP@]IFACE", value_parser = values::group_at, required_unless_present_any = ["status", "listen", "role"])]
    pub to: Vec<values::GroupAt>,
    /// What it is to those behind it: `repeater` ends each session and has one of its own on each branch; `agent` (MTCP): its children
    /// hear the source's multicast, and it repairs for them and answers for them; `router-..`: it passes packets on one by one, with a router
    /// that helps this congestion control, and leaves other sessions to the kernel's forwarding
    #[arg(long, value_name = "ROLE", value_enum, default_value = "repeater", conflicts_with = "status")]
    pub role: Role,
    /// Be served by another relay by unicast, as with `recv --parent`: where multicast ends; `find`: by the nearest
    #[arg(long, value_name = "ADDRESS[:PORT]|find", value_parser = values::parent_or_find)]
    pub parent: Vec<SocketAddr>,
    /// Serve hosts and relays that ask here by unicast: a port, an address, or both
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = values::listen_at, num_args = 0..=1, default_missing_value = "5778")]
    pub listen: Option<values::Listen>,
    /// Do not answer hosts that look for a relay (`--parent find`)
    #[arg(long, requires = "listen")]
    pub hidden: bool,
    /// Serve at most this number of them. A host that has not shown the key gets at most three quarters of these places
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub max_children: u16,
    /// The relay's key (`keygen --relay`): without one only sessions that are not sealed are passed on
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key: Option<PathBuf>,
    /// Hear packets from this host only
    #[arg(long, value_name = "ADDRESS")]
    pub source: Option<IpAddr>,
    /// Memory for what is kept of each session, in bytes, like 256M
    #[arg(long, value_name = "BYTES", value_parser = values::size, default_value = "256M")]
    pub memory: usize,
    /// Keep in this directory what has no room in memory; without one it is let go, and fetched again when somebody asks
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cache: Option<PathBuf>,
    /// Never send faster than this on any branch, in bit/s
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    pub max: Option<Rate>,
    /// Time to live of what is passed on: 1 stays on the network of its interface
    #[arg(long, value_name = "HOPS", value_parser = values::ttl, default_value = "1")]
    pub ttl: u8,
    /// How long the source, or a receiver, may be silent, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = values::span, default_value = "60")]
    pub timeout: Duration,
    /// Name of this host in messages [default: the system's]
    #[arg(long, value_name = "NAME", value_parser = values::host_name)]
    pub host: Option<String>,
    /// Where a running relay tells its status [default: faircast-relay.sock in $XDG_RUNTIME_DIR, or in /run]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
    /// Say how the relay that runs on this host is, and end
    #[arg(long, conflicts_with_all = ["from", "to", "parent", "listen", "cache", "key", "source", "max", "host"])]
    pub status: bool,
    /// How it is told.
    #[command(flatten)]
    pub output_options: OutputOptions,
}
