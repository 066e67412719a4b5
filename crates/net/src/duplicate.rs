//! Detection of another host that uses an address of this host (RFC 5227, RFC 4862).

use crate::error::NetError;
use crate::interface::Choice;
use crate::sys;
use crate::wait::{Waiter, Want, Watch};
use std::fmt;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// Number of ARP probes, and the interval between two probes. RFC 5227, 2.1.1 has a longer interval, for hosts that do not use
/// the address yet.
const PROBES: u32 = 3;
const PROBE_EVERY: Duration = Duration::from_millis(150);

/// Length of an ARP packet for IPv4 on Ethernet (RFC 826).
const LEN: usize = 28;
/// Beginning of the ARP packet: the types of Ethernet and IPv4, and the lengths of their addresses.
const KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: [u8; 2] = [0, 1];

/// Evidence of another host that uses an address of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicate {
    /// The other host answers from this hardware address.
    Hardware([u8; 6]),
    /// The kernel detected the other host when the address was added, and does not use the address.
    Refused,
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Duplicate::Hardware([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x} answers for it")
            }
            Duplicate::Refused => f.write_str("the kernel has refused it"),
        }
    }
}

/// Checks whether another host has the source address of this host's packets. For IPv4, sends ARP probes: this takes half a
/// second and requires permission to open packet sockets. For IPv6, reads the kernel's list of addresses.
///
/// # Errors
/// [`NetError::System`] without the permission to open packet sockets, or if the interface is not an Ethernet interface.
pub fn duplicate(choice: &Choice) -> Result<Option<(IpAddr, Duplicate)>, NetError> {
    let name = choice.chosen.name.as_str();
    if let Some(address) = sys::refused_addresses().into_iter().find(|(_, of)| of == name) {
        return Ok(Some((address.0.into(), Duplicate::Refused)));
    }
    match choice.local {
        IpAddr::V4(address) => {
            let found = probe(choice.chosen.index, address)?;
            Ok(found.map(|hardware| (address.into(), Duplicate::Hardware(hardware))))
        }
        IpAddr::V6(_) => Ok(None),
    }
}

fn probe(index: u32, address: Ipv4Addr) -> Result<Option<[u8; 6]>, NetError> {
    let failed = NetError::system;
    let (mut socket, own) = sys::open_arp(index).map_err(failed("opening a packet socket for ARP"))?;
    let (question, mut waiter) = (question(own, address), Waiter::new());
    for _ in 0..PROBES {
        sys::send_arp(&socket, index, &question).map_err(failed("sending an ARP probe"))?;
        let until = Instant::now() + PROBE_EVERY;
        while Instant::now() < until {
            waiter.wait(&[Watch::new(&socket, Want::Readable)], Some(until))?;
            let mut packet = [0; LEN];
            while let Ok(len) = socket.read(&mut packet) {
                if let Some(other) = holder(&packet[..len], own, address) {
                    return Ok(Some(other));
                }
            }
        }
    }
    Ok(None)
}

/// Returns an ARP probe. Its sender IP address is zero, so that no host updates its ARP cache (RFC 5227, 1.1).
fn question(own: [u8; 6], address: Ipv4Addr) -> [u8; LEN] {
    let mut packet = [0; LEN];
    packet[..6].copy_from_slice(&KIND);
    packet[6..8].copy_from_slice(&REQUEST);
    packet[8..14].copy_from_slice(&own);
    packet[24..].copy_from_slice(&address.octets());
    packet
}

/// Returns the hardware address of another host that claims the address.
fn holder(packet: &[u8], own: [u8; 6], address: Ipv4Addr) -> Option<[u8; 6]> {
    let (packet, _) = packet.split_first_chunk::<LEN>()?;
    let hardware: [u8; 6] = *packet[8..].first_chunk()?;
    (packet[..6] == KIND && packet[14..18] == address.octets() && hardware != own).then_some(hardware)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

    #[test]
    fn only_a_claim_by_another_host_reveals_a_duplicate_address() {
        let probe = question(OWN, ADDRESS);
        assert_eq!(probe[14..18], [0; 4], "nobody learns from a probe");
        let mut claim = question(OTHER, ADDRESS);
        claim[14..18].copy_from_slice(&ADDRESS.octets());
        assert_eq!(holder(&claim, OWN, ADDRESS), Some(OTHER));
        assert_eq!(holder(&claim, OTHER, ADDRESS), None, "it is this host itself");
        assert_eq!(holder(&claim, OWN, Ipv4Addr::new(192, 0, 2, 8)), None);
        assert_eq!(holder(&probe, OTHER, ADDRESS), None, "a probe claims nothing");
        for have in 0..LEN {
            assert_eq!(holder(&claim[..have], OWN, ADDRESS), None);
        }
    }
}
