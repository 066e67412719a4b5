//! The groups of one process, for example of a server.

use crate::controller::CoordinatedFactory;
use crate::shared::{Prefixes, Shared};
use faircast_unicast::cocoon::{Config, Counters, GroupId};
use quinn_proto::congestion::ControllerFactory;
use std::net::IpAddr;
use std::sync::Arc;

/// The groups of one process. Clones share the same groups.
#[derive(Clone)]
pub struct Cocoon {
    shared: Arc<Shared>,
}

/// State of one group, as returned by [`Cocoon::groups`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupReport {
    /// The prefix, with trailing zeros.
    pub prefix: IpAddr,
    /// Number of connections in the group now.
    pub members: usize,
}

impl Cocoon {
    /// Creates groups by /24 and /64 prefixes, with controllers built by `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn ControllerFactory + Send + Sync>) -> Self {
        Self::with(inner, Prefixes::default(), Config::published())
    }

    /// Creates groups with other prefix lengths or other parameters of the coordinator.
    #[must_use]
    pub fn with(inner: Arc<dyn ControllerFactory + Send + Sync>, prefixes: Prefixes, config: Config) -> Self {
        Self { shared: Arc::new(Shared::new(inner, prefixes, config)) }
    }

    /// Returns the factory of controllers for connections to this peer. The call is cheap, so call it for each connection.
    #[must_use]
    pub fn factory(&self, peer: IpAddr) -> Arc<CoordinatedFactory> {
        Arc::new(CoordinatedFactory::new(Arc::clone(&self.shared), self.shared.prefixes.of(peer)))
    }

    /// Returns the groups that have connections now, in the order of their prefixes.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupReport> {
        let state = self.shared.lock();
        let report = |(prefix, group): (&IpAddr, &GroupId)| GroupReport {
            prefix: *prefix,
            members: state.coordinator.members_of(*group),
        };
        state.groups.iter().map(report).collect()
    }

    /// Returns the counters over all groups since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.lock().coordinator.counters()
    }
}
