//! How large datagrams may be.

use crate::error::{ConfigError, Error, SystemError};
use faircast_net::Choice;
use faircast_wire::encode::{IPV4_HEADERS, IPV6_HEADERS, MAX_ANNOUNCE};
use std::net::SocketAddr;

/// Datagrams are no larger than an Ethernet frame carries unless asked for.
const ETHERNET_MTU: usize = 1500;

/// An announcement fits, and symbols are worth their headers.
const MIN_SIZE: usize = 400;

const _: () = assert!(MAX_ANNOUNCE <= MIN_SIZE, "an announcement would not fit");

/// Beyond this nothing is gained.
const MAX_SIZE: usize = 65_000;

/// Bytes of the IP and UDP headers.
pub fn overhead(group: SocketAddr) -> usize {
    if group.is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS }
}

/// The largest datagram to the group by this interface, in bytes: what was asked for, if it fits.
///
/// # Errors
/// When it does not, or the interface takes nothing that makes sense.
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
