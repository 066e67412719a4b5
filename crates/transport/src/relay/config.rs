//! The configuration of a relay.

use crate::config::{IDLE_TIMEOUT, RECEIVE_BUFFER, RELAY_MEMORY};
use crate::event::Event;
use faircast_core::schemes::Scheme;
use faircast_core::time::Rate;
use faircast_wire::HopKey;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The configuration of a relay.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelayConfig {
    /// Groups and interfaces on which sessions are received.
    pub sources: Vec<RelaySource>,
    /// Outputs: each session is sent on all of them, except the one from which it came.
    pub branches: Vec<RelayBranch>,
    /// Key of relays; without one only unsealed sessions are relayed.
    pub key: Option<HopKey>,
    /// Bytes of memory for the symbols of each session, about.
    pub memory: usize,
    /// Directory for symbols that do not fit in memory; it takes up to the size of the session.
    pub cache: Option<PathBuf>,
    /// How long the source, or a receiver, may be silent.
    pub idle_timeout: Duration,
    /// Its name.
    pub host: String,
    /// Bytes of receive buffer to ask for.
    pub buffer: usize,
    /// Serve hosts that attach at these addresses and ports by unicast. An unspecified address stands for all of this host's addresses of
    /// its family. Without any of that family it is left out, provided that another address is given.
    pub listen: Vec<SocketAddr>,
    /// Largest number of children.
    pub children: usize,
    /// Whether this is a source's own relay, and its only receiver: hold the source back to the rate of the fastest branch and to the
    /// memory.
    pub paced: bool,
    /// Whether hosts that look for a relay find this one ([`FIND_GROUP`](crate::config::FIND_GROUP)).
    pub found: bool,
    /// Its role towards its children.
    pub role: RelayRole,
    /// Next to a hop: stops the host's own forwarding of its sessions. Without it, receivers get a session twice where the host's kernel
    /// forwards multicast as well.
    pub forwarding: Option<Arc<dyn Forwarding>>,
}

impl RelayConfig {
    /// Receives sessions here and sends them nowhere yet, as a repeater with the usual memory, buffer and timeouts.
    #[must_use]
    pub fn new(sources: Vec<RelaySource>) -> RelayConfig {
        RelayConfig {
            sources,
            branches: Vec::new(),
            key: None,
            memory: RELAY_MEMORY,
            cache: None,
            idle_timeout: IDLE_TIMEOUT,
            host: String::new(),
            buffer: RECEIVE_BUFFER,
            listen: Vec::new(),
            children: 0,
            paced: false,
            found: false,
            role: RelayRole::Repeater,
            forwarding: None,
        }
    }
}

/// The host's own forwarding of multicast packets.
pub trait Forwarding: fmt::Debug + Send + Sync {
    /// Stops forwarding packets from `source` to `group` by these interfaces, until the result is dropped; `None` where nothing is
    /// forwarded.
    ///
    /// # Errors
    /// Why it cannot be stopped, for the user.
    fn stop(
        &self,
        source: SocketAddr,
        group: SocketAddr,
        interfaces: &[String],
    ) -> Result<Option<Box<dyn Send>>, String>;
}

/// The role of a relay towards its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RelayRole {
    /// It ends each session and has one of its own on each branch, of any congestion control.
    #[default]
    Repeater,
    /// An agent inside sessions of MTCP: its children receive the source's multicast and report to the agent, which repairs their losses
    /// and aggregates their reports.
    Agent,
    /// A hop that forwards packets one by one, with a router that helps this congestion control. Other sessions are left to the kernel's
    /// forwarding.
    Router(RouterKind),
}

/// For which congestion control a hop's router is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouterKind {
    /// RACCOOM: one acknowledgement of all (paper 002, 3.2).
    Raccoom,
    /// RMANP: limits at exits, local repair, filtered indications of congestion (paper 003, 2).
    Rmanp,
}

impl RouterKind {
    /// All of them.
    pub const ALL: [RouterKind; 2] = [RouterKind::Raccoom, RouterKind::Rmanp];

    /// The scheme that it is for.
    pub const fn scheme(self) -> &'static str {
        match self {
            RouterKind::Raccoom => "raccoom",
            RouterKind::Rmanp => "rmanp",
        }
    }

    /// Whether it can help this one.
    pub(crate) fn helps(self, scheme: &Scheme) -> bool {
        scheme.name() == self.scheme() && scheme.routers().is_some()
    }
}

impl fmt::Display for RouterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}

/// A group to receive, on an interface.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelaySource {
    /// The group and its port.
    pub group: SocketAddr,
    /// The interface, or the system's default.
    pub interface: Option<String>,
    /// The only address from which sources and relays are accepted.
    pub only: Option<IpAddr>,
    /// In place of the group, be served by one of these by unicast; a group among them is where a relay is looked for.
    pub parents: Vec<SocketAddr>,
}

impl RelaySource {
    /// This group, from any source, on the interface that the system takes.
    #[must_use]
    pub const fn new(group: SocketAddr) -> RelaySource {
        RelaySource { group, interface: None, only: None, parents: Vec::new() }
    }
}

/// A branch: a group on an interface.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelayBranch {
    /// The group and its port, or those of the received session.
    pub group: Option<SocketAddr>,
    /// The interface, or the system's default.
    pub interface: Option<String>,
    /// How many routers a packet may pass, plus one.
    pub ttl: u8,
    /// Highest rate.
    pub max: Option<Rate>,
}

impl Default for RelayBranch {
    /// The session's own group on the local network, at any rate.
    fn default() -> RelayBranch {
        RelayBranch { group: None, interface: None, ttl: 1, max: None }
    }
}

/// An event of a relayed session.
#[derive(Debug, Clone)]
pub struct RelayEvent {
    /// How many sessions were found before this one.
    pub session: u64,
    /// Number of the branch; `None`: the upstream side.
    pub branch: Option<usize>,
    /// The event.
    pub event: Event,
}
