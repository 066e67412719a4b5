//! The size of datagrams.

use crate::error::{ConfigError, Error, SystemError};
use faircast_net::Choice;
use faircast_wire::encode::{IPV4_HEADERS, IPV6_HEADERS, MAX_ANNOUNCE};
use std::net::SocketAddr;

/// Default limit of the packet size: the payload of an Ethernet frame.
const ETHERNET_MTU: usize = 1500;

/// Minimum size, in bytes. An announcement fits this size, and symbols are large compared with their headers.
const MIN_SIZE: usize = 400;

const _: () = assert!(MAX_ANNOUNCE <= MIN_SIZE, "an announcement would not fit");

/// Maximum size, in bytes; larger datagrams have no advantage.
const MAX_SIZE: usize = 65_000;

/// Returns the size of the IP and UDP headers in bytes.
pub fn overhead(group: SocketAddr) -> usize {
    if group.is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS }
}

/// Returns the maximum size of datagrams to the group on this interface, in bytes: the requested size, or the default.
///
/// # Errors
/// If the requested size does not fit, or the interface's MTU is too small.
pub fn largest(asked: Option<u16>, choice: &Choice, group: SocketAddr) -> Result<usize, Error> {
    let headers = overhead(group);
    let mtu = choice.chosen.mtu as usize;
    let largest = mtu.saturating_sub(headers).min(MAX_SIZE);
    if largest < MIN_SIZE {
        return Err(Error::System(SystemError::MtuTooSmall {
            interface: choice.chosen.name.clone(),
            mtu: choice.chosen.mtu,
        }));
    }
    let datagram = asked.map_or(largest.min(ETHERNET_MTU - headers), usize::from);
    if !(MIN_SIZE..=largest).contains(&datagram) {
        let (datagram, least) = (datagram as u16, MIN_SIZE as u16);
        return Err(Error::Config(ConfigError::DatagramSize { datagram, least, largest: largest as u16 }));
    }
    Ok(datagram)
}
