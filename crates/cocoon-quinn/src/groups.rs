//! The groups of one process, as a server holds them.

use crate::controller::CoordinatedFactory;
use crate::shared::{Prefixes, Shared};
use faircast_unicast::cocoon::{Config, Counters, GroupId};
use quinn_proto::congestion::ControllerFactory;
use std::net::IpAddr;
use std::sync::Arc;

/// The groups of one process. Clones are the same groups.
#[derive(Clone)]
pub struct Cocoon {
    shared: Arc<Shared>,
}

/// One group, as [`Cocoon::groups`] shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupReport {
    /// The prefix, with zeros behind it.
    pub prefix: IpAddr,
    /// Connections in it now.
    pub members: usize,
}

impl Cocoon {
    /// Groups by /24 and /64, over the controllers that `inner` builds.
    #[must_use]
    pub fn new(inner: Arc<dyn ControllerFactory + Send + Sync>) -> Self {
        Self::with(inner, Prefixes::default(), Config::published())
    }

    /// Groups by other prefixes, or by other parameters of the coordinator.
    #[must_use]
    pub fn with(inner: Arc<dyn ControllerFactory + Send + Sync>, prefixes: Prefixes, config: Config) -> Self {
        Self { shared: Arc::new(Shared::new(inner, prefixes, config)) }
    }

    /// Returns the factory of controllers for connections to this peer. It is cheap: call it for each connection.
    #[must_use]
    pub fn factory(&self, peer: IpAddr) -> Arc<CoordinatedFactory> {
        Arc::new(CoordinatedFactory::new(Arc::clone(&self.shared), self.shared.prefixes.of(peer)))
    }

    /// The groups that have connections now, in the order of their prefixes.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupReport> {
        let state = self.shared.lock();
        let report = |(prefix, group): (&IpAddr, &GroupId)| GroupReport {
            prefix: *prefix,
            members: state.coordinator.members_of(*group),
        };
        state.groups.iter().map(report).collect()
    }

    /// Returns the counts of all groups since the beginning.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared.lock().coordinator.counters()
    }
}
