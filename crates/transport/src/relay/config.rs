//! The configuration of a relay.

use crate::config::{PATIENCE, RECEIVE_BUFFER, RELAY_MEMORY};
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
    /// Where sessions are heard.
    pub sources: Vec<RelaySource>,
    /// Where they are passed on to: all of them on each of these, but not to where they came from.
    pub branches: Vec<RelayBranch>,
    /// Without one only sessions that are not sealed are passed on.
    pub key: Option<HopKey>,
    /// Bytes of memory for the symbols of each session, about.
    pub memory: usize,
    /// Where what has no room in memory goes: a directory, in which it takes up to what the session has.
    pub cache: Option<PathBuf>,
    /// How long the source, or a receiver, may be silent.
    pub patience: Duration,
    /// Its name.
    pub host: String,
    /// Bytes of receive buffer to ask for.
    pub buffer: usize,
    /// Serve those who ask at these addresses and ports by unicast; an address of zeros is all of this host's of its family, and
    /// left out when there are none while there is another.
    pub listen: Vec<SocketAddr>,
    /// So many of them at most.
    pub children: usize,
    /// It is a source's own relay, which nobody else hears: hold the source back to the rate of the fastest branch and to the memory.
    pub paced: bool,
    /// Whether hosts that look for a relay find this one ([`FIND_GROUP`](crate::config::FIND_GROUP)).
    pub found: bool,
    /// Its role towards its children.
    pub role: RelayRole,
    /// Beside a hop: stops the host's own forwarding of its sessions. Without it receivers hear a session twice where the host's kernel
    /// forwards multicast as well.
    pub forwarding: Option<Arc<dyn Forwarding>>,
}

impl RelayConfig {
    /// Hear sessions here and pass them on to nobody yet, as a repeater with the usual memory, buffer and patience.
    #[must_use]
    pub fn new(sources: Vec<RelaySource>) -> RelayConfig {
        RelayConfig {
            sources,
            branches: Vec::new(),
            key: None,
            memory: RELAY_MEMORY,
            cache: None,
            patience: PATIENCE,
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
    /// Stop forwarding packets from `source` to `group` by these interfaces, until the result is dropped; `None` where nothing is
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
    /// An agent inside sessions of MTCP: its children hear the source's multicast and answer to the agent, which repairs for them and
    /// speaks for them.
    Agent,
    /// A hop that passes packets on one by one, with a router that helps this congestion control. Sessions of others are left to the
    /// kernel's forwarding.
    Router(RouterKind),
}

/// For which congestion control a hop's router is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouterKind {
    /// RACCOOM: one acknowledgement of all (seed 002, 3.2).
    Raccoom,
    /// RMANP: limits at exits, local repair, filtered indications of congestion (seed 003, 2).
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

/// A group that is heard, on an interface.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RelaySource {
    /// The group and its port.
    pub group: SocketAddr,
    /// The interface, or the one that the system would take.
    pub interface: Option<String>,
    /// Sources and relays with other addresses are not heard.
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
    /// The group and its port, or the one that the session came from.
    pub group: Option<SocketAddr>,
    /// The interface, or the one that the system would take.
    pub interface: Option<String>,
    /// How many routers a packet may pass, plus one.
    pub ttl: u8,
    /// No more than this.
    pub max: Option<Rate>,
}

impl Default for RelayBranch {
    /// The session's own group on the local network, at any rate.
    fn default() -> RelayBranch {
        RelayBranch { group: None, interface: None, ttl: 1, max: None }
    }
}

/// An event of a session that is passed on.
#[derive(Debug, Clone)]
pub struct RelayEvent {
    /// How many sessions were found before this one.
    pub session: u64,
    /// Which branch; `None`: what is heard above.
    pub branch: Option<usize>,
    /// The event.
    pub event: Event,
}
