//! The configuration of a relay.

use crate::config::{IDLE_TIMEOUT, RECEIVE_BUFFER, RELAY_MEMORY, ReceiverEvents};
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
    /// Groups and interfaces for the reception of sessions.
    pub sources: Vec<RelaySource>,
    /// Outputs. Each session is sent on all outputs, except to the interface and group from which it is received.
    pub branches: Vec<RelayBranch>,
    /// Key of relays. Without it only unsealed sessions are relayed.
    pub key: Option<HopKey>,
    /// Approximate memory for the symbols of each session, bytes.
    pub memory: usize,
    /// Directory for symbols that do not fit in memory. These symbols take at most as much space as the content of the session.
    pub cache: Option<PathBuf>,
    /// Duration of silence after which the source or a receiver is given up.
    pub idle_timeout: Duration,
    /// Host name of the relay.
    pub host: String,
    /// Requested size of the receive buffer, bytes.
    pub buffer: usize,
    /// Addresses and ports at which hosts attach for unicast service. An unspecified address means all addresses of this host in
    /// the same family. If this host has no address of that family, the entry is ignored, unless it is the only entry.
    pub listen: Vec<SocketAddr>,
    /// Maximum number of children.
    pub children: usize,
    /// Whether this relay belongs to a source and is the source's only receiver. Such a relay limits the source to the rate of
    /// the fastest branch and to the memory of the relay.
    pub paced: bool,
    /// Whether hosts that search for a relay can find this relay ([`FIND_GROUP`](crate::config::FIND_GROUP)).
    pub found: bool,
    /// Role of the relay towards its children.
    pub role: RelayRole,
    /// For an active router: a method to stop the forwarding of the router's sessions by the host itself. Without it, receivers
    /// get a session twice if the host's kernel also forwards multicast.
    pub forwarding: Option<Arc<dyn Forwarding>>,
    /// Whether the branches report the state of each of their receivers.
    pub receiver_events: ReceiverEvents,
}

impl RelayConfig {
    /// Creates the configuration of a repeater with default memory, buffer and timeouts, and without branches.
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
            receiver_events: ReceiverEvents::Off,
        }
    }
}

/// The host's own forwarding of multicast packets.
pub trait Forwarding: fmt::Debug + Send + Sync {
    /// Stops the forwarding of packets from `source` to `group` over these interfaces by the host itself, until the result is
    /// dropped. Returns `None` if the host does not forward these packets.
    ///
    /// # Errors
    /// Returns the reason why the forwarding cannot be stopped, as a text for the user.
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
    /// A repeater: the relay receives each session, and starts a session with the same congestion control on each branch.
    #[default]
    Repeater,
    /// An agent of MTCP. The children receive the source's multicast, and report to the agent. The agent repairs the children's
    /// losses and aggregates their reports.
    Agent,
    /// An active router, which forwards packets one by one and helps this congestion control. The kernel forwards sessions with
    /// other congestion controls.
    Router(RouterKind),
}

/// Congestion control that an active router helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouterKind {
    /// RACCOOM: aggregated acknowledgements (paper 002, 3.2).
    Raccoom,
    /// RMANP: limits at exits, local repair, filtered indications of congestion (paper 003, 2).
    Rmanp,
}

impl RouterKind {
    /// All kinds of active routers.
    pub const ALL: [RouterKind; 2] = [RouterKind::Raccoom, RouterKind::Rmanp];

    /// Returns the name of the scheme that the router helps.
    pub const fn scheme(self) -> &'static str {
        match self {
            RouterKind::Raccoom => "raccoom",
            RouterKind::Rmanp => "rmanp",
        }
    }

    /// Whether the router can help this scheme.
    pub(crate) fn helps(self, scheme: &Scheme) -> bool {
        scheme.name() == self.scheme() && scheme.routers().is_some()
    }
}

impl fmt::Display for RouterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}

/// A group to receive on an interface.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelaySource {
    /// The group and its port.
    pub group: SocketAddr,
    /// The interface; `None` for the system's default.
    pub interface: Option<String>,
    /// The only address from which sources and relays are accepted.
    pub only: Option<IpAddr>,
    /// Parents that serve the relay by unicast, in place of the group. The relay uses one of them. If the list contains a group,
    /// the relay searches for a parent in this group.
    pub parents: Vec<SocketAddr>,
}

impl RelaySource {
    /// Receives this group from any source, on the system's default interface.
    #[must_use]
    pub const fn new(group: SocketAddr) -> RelaySource {
        RelaySource { group, interface: None, only: None, parents: Vec::new() }
    }
}

/// A branch: a group on an interface.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelayBranch {
    /// The group and port to send to; `None` for the group and port of the received session.
    pub group: Option<SocketAddr>,
    /// The interface; `None` for the system's default.
    pub interface: Option<String>,
    /// Time to live: the maximum number of routers on the path, plus one.
    pub ttl: u8,
    /// Maximum rate.
    pub max: Option<Rate>,
}

impl Default for RelayBranch {
    /// Returns a branch that sends to the session's own group on the local network, without a maximum rate.
    fn default() -> RelayBranch {
        RelayBranch { group: None, interface: None, ttl: 1, max: None }
    }
}

/// An event of a relayed session.
#[derive(Debug, Clone)]
pub struct RelayEvent {
    /// Number of sessions found before this one.
    pub session: u64,
    /// Number of the branch; `None` for an event of the upstream side.
    pub branch: Option<usize>,
    /// The event.
    pub event: Event,
}
