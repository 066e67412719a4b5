//! Addresses of the hosts of a fuzzed world.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const fn host(last: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port)
}

pub(super) const SOURCE: SocketAddr = host(1, 5777);
pub(super) const RELAY: SocketAddr = host(2, 5778);
pub(super) const BRANCH: SocketAddr = host(2, 6000);
pub(super) const RECEIVER: SocketAddr = host(3, 5778);
pub(super) const STRANGER: SocketAddr = host(9, 5777);
