//! The addresses at which senders and receivers find one another, and the conditions of the start.

use faircast_core::time::Span;
use faircast_net::broadcast_of;
use faircast_transport::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

/// Group of all hosts of the network, to which udpcast's programs send when the time to live is larger than 1.
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// Conditions of the start of the transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gathering {
    /// Number of receivers to wait for.
    pub(super) expect: Option<u32>,
    /// Maximum time to wait for the first receiver.
    pub(super) first: Option<Span>,
    /// Minimum and maximum time to wait for others after the first receiver has joined.
    pub(super) min: Span,
    pub(super) max: Option<Span>,
}

impl Gathering {
    /// Returns whether the transfer may start with this number of receivers, this time after the first one has joined.
    pub(super) fn is_over(&self, joined: u32, waited: Span) -> bool {
        let has_all = self.expect.is_none_or(|expect| joined >= expect);
        has_all && waited >= self.min || self.max.is_some_and(|max| waited >= max)
    }
}

/// Returns the addresses at which senders and receivers find one another: the broadcast address of the network, and a configured
/// address or the group of all hosts.
pub(super) fn addresses(local: Ipv4Addr, configured: Option<Ipv4Addr>) -> Result<Vec<Ipv4Addr>, Error> {
    let broadcast = broadcast_of(local)?;
    Ok(broadcast.into_iter().chain([configured.unwrap_or(ALL_HOSTS)]).collect())
}

/// Returns the groups among the rendezvous addresses.
pub(super) fn groups_of(rendezvous: &[Ipv4Addr], port: u16) -> Vec<SocketAddr> {
    rendezvous.iter().filter(|to| to.is_multicast()).map(|to| (*to, port).into()).collect()
}
