//! The system calls that `socket2` does not cover. All unsafe code of the crate is here.
//!
//! `linux` has all features. `other` has the features that all Unix systems have in common: one datagram per call, no ECN, no
//! receive times. The module `other` exists so that programs can be built on these systems.

use socket2::SockAddr;
use std::ffi::CStr;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

#[cfg(target_os = "linux")]
mod arp;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(target_os = "linux")]
pub(crate) use arp::{open_arp, send_arp};
#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::*;

/// A network interface of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// The kernel's index of the interface.
    pub index: u32,
    /// Addresses of the interface.
    pub addrs: Vec<IpAddr>,
    /// Maximum size of an IP packet on the interface, bytes.
    pub mtu: u32,
    /// Whether the interface is administratively up.
    pub up: bool,
    /// Whether the interface has a carrier: a connected cable, or a joined wireless network.
    pub connected: bool,
    /// Whether the interface can carry multicast.
    pub multicast: bool,
    /// Whether the interface is a loopback interface.
    pub loopback: bool,
}

/// Maximum number of datagrams of one call.
pub(crate) const MAX_CALL: usize = 64;

/// The control data of one datagram, parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Control {
    /// The traffic-class or type-of-service octet.
    pub(crate) tos: Option<u8>,
    /// Time at which the kernel received the datagram, in nanoseconds since 1970.
    pub(crate) received_unix_ns: Option<u64>,
    /// Destination address.
    pub(crate) to: Option<IpAddr>,
    /// Size of each datagram, if several datagrams were coalesced.
    pub(crate) segment: Option<usize>,
}

/// Parses a `sockaddr_in` or `sockaddr_in6`.
fn parse_address(name: &[u8]) -> Option<SocketAddr> {
    #[cfg(target_os = "linux")]
    let family = libc::c_int::from(u16::from_ne_bytes(*name.first_chunk()?));
    #[cfg(not(target_os = "linux"))]
    let family = libc::c_int::from(*name.get(1)?); // after a length of one byte
    let port = u16::from_be_bytes(*name.get(2..)?.first_chunk()?);
    match family {
        libc::AF_INET => {
            let ip: [u8; 4] = *name.get(4..)?.first_chunk()?;
            Some(SocketAddrV4::new(Ipv4Addr::from(ip), port).into())
        }
        libc::AF_INET6 => {
            let flow = u32::from_be_bytes(*name.get(4..)?.first_chunk()?);
            let ip: [u8; 16] = *name.get(8..)?.first_chunk()?;
            let scope = u32::from_ne_bytes(*name.get(24..)?.first_chunk()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope).into())
        }
        _ => None,
    }
}

/// Sets a socket option whose value is a plain C structure or an int.
pub(crate) fn set_option<T: Copy>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid for reads of `len` bytes during the call, and the kernel only reads it.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, ptr::from_ref(value).cast(), len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Joins or leaves a group on one interface, for any source or for one source.
pub(crate) fn membership(
    fd: BorrowedFd<'_>,
    interface: u32,
    group: SocketAddr,
    source: Option<IpAddr>,
    change: Change,
) -> io::Result<()> {
    let level = if group.is_ipv4() { libc::IPPROTO_IP } else { libc::IPPROTO_IPV6 };
    match source {
        None => {
            let request = libc::group_req { gr_interface: interface, gr_group: storage(group) };
            let name = match change {
                Change::Join => libc::MCAST_JOIN_GROUP,
                Change::Leave => libc::MCAST_LEAVE_GROUP,
            };
            set_option(fd, level, name, &request)
        }
        Some(source) => {
            let request = libc::group_source_req {
                gsr_interface: interface,
                gsr_group: storage(group),
                gsr_source: storage(SocketAddr::new(source, 0)),
            };
            let name = match change {
                Change::Join => libc::MCAST_JOIN_SOURCE_GROUP,
                Change::Leave => libc::MCAST_LEAVE_SOURCE_GROUP,
            };
            set_option(fd, level, name, &request)
        }
    }
}

/// Change of a membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Join,
    Leave,
}

fn storage(address: SocketAddr) -> libc::sockaddr_storage {
    let address = SockAddr::from(address);
    // SAFETY: all-zero bytes are a valid `sockaddr_storage`, a plain C structure of integers.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let len = (address.len() as usize).min(size_of::<libc::sockaddr_storage>());
    // SAFETY: both sides are valid for `len` bytes and do not overlap: `len` is at most the length of `address` and the size of
    // `storage`.
    unsafe {
        ptr::copy_nonoverlapping(address.as_ptr().cast::<u8>(), (&raw mut storage).cast::<u8>(), len);
    }
    storage
}

/// Sets the multicast interface (by index) and the source address of an IPv4 socket.
pub(crate) fn set_multicast_interface_v4(
    fd: BorrowedFd<'_>,
    interface: u32,
    local: Ipv4Addr,
) -> io::Result<()> {
    let request = libc::ip_mreqn {
        imr_multiaddr: libc::in_addr { s_addr: 0 },
        imr_address: libc::in_addr { s_addr: u32::from_ne_bytes(local.octets()) },
        imr_ifindex: interface as libc::c_int,
    };
    set_option(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &request)
}

/// Returns all network interfaces with their addresses.
pub(crate) fn interfaces() -> io::Result<Vec<Interface>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: `first` is valid for the write of one pointer.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let list = InterfaceList(first);
    let sizes = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)
        .or_else(|_| socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::DGRAM, None))?;
    let mut found: Vec<Interface> = Vec::new();
    let mut next = list.0;
    // SAFETY: `next` is null or an entry of the list, which is freed only when `list` is dropped.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: `ifa_name` is a zero-terminated string that is valid as long as the list.
        let c_name = unsafe { CStr::from_ptr(entry.ifa_name) };
        let name = c_name.to_string_lossy();
        let position = found.iter().position(|i| i.name == name);
        let interface = match position {
            Some(known) => &mut found[known],
            None => {
                // SAFETY: the argument is a zero-terminated string.
                let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
                if index == 0 {
                    continue; // it has just gone
                }
                let has = |flag: libc::c_int| entry.ifa_flags & flag as libc::c_uint != 0;
                found.push(Interface {
                    name: name.into_owned(),
                    index,
                    addrs: Vec::new(),
                    mtu: mtu(sizes.as_fd(), c_name).unwrap_or(MINIMUM_MTU),
                    up: has(libc::IFF_UP),
                    connected: has(libc::IFF_RUNNING),
                    multicast: has(libc::IFF_MULTICAST),
                    loopback: has(libc::IFF_LOOPBACK),
                });
                found.last_mut().expect("one was pushed just now")
            }
        };
        interface.addrs.extend(address_of(entry));
    }
    Ok(found)
}

/// MTU to assume when the system reports none: the size that every IPv4 link must carry (RFC 791), bytes.
const MINIMUM_MTU: u32 = 576;

struct InterfaceList(*mut libc::ifaddrs);

impl Drop for InterfaceList {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `getifaddrs` and is freed once.
        unsafe { libc::freeifaddrs(self.0) }
    }
}

/// Returns the broadcast address of the network of an address of this host; `None` if this host does not have the address, or
/// if the network has no broadcast address.
pub(crate) fn broadcast_of(local: Ipv4Addr) -> io::Result<Option<Ipv4Addr>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: `first` is valid for the write of one pointer.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let list = InterfaceList(first);
    let mut next = list.0;
    // SAFETY: `next` is null or an entry of the list, which is freed only when `list` is dropped.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        let has_broadcast = entry.ifa_flags & libc::IFF_BROADCAST as libc::c_uint != 0;
        if has_broadcast
            && address_of(entry) == Some(local.into())
            && let Some(IpAddr::V4(mask)) = parse_raw(entry.ifa_netmask)
        {
            return Ok(Some(Ipv4Addr::from(u32::from(local) | !u32::from(mask))).filter(|all| *all != local));
        }
    }
    Ok(None)
}

fn address_of(entry: &libc::ifaddrs) -> Option<IpAddr> {
    parse_raw(entry.ifa_addr)
}

/// Parses an address of the list of `getifaddrs`, which must not have been freed.
fn parse_raw(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: a non-null address points to at least a `sockaddr`, and every address has the family. It is read unaligned because
    // the list guarantees no alignment.
    let family = unsafe { (&raw const (*address).sa_family).read_unaligned() };
    let len = match libc::c_int::from(family) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    // SAFETY: an address of this family has this length, and the list outlives the slice.
    let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), len) };
    parse_address(bytes).map(|address| address.ip())
}

/// Returns the number of bytes that were sent and are still in queues of this host.
pub(crate) fn unsent(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes an int, which is valid for writes during the call.
    match unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ as _, &raw mut bytes) } {
        0 => Ok(usize::try_from(bytes).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn mtu(fd: BorrowedFd<'_>, name: &CStr) -> Option<u32> {
    // SAFETY: all-zero bytes are a valid `ifreq`, a plain C structure.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let bytes = name.to_bytes();
    if bytes.len() >= request.ifr_name.len() {
        return None;
    }
    request.ifr_name.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from as libc::c_char);
    // SAFETY: the request requires an `ifreq`, which is valid for reads and writes during the call.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) } != 0 {
        return None;
    }
    // SAFETY: this request fills in the number `ifru_mtu`; any bytes are a valid int.
    u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok().filter(|mtu| *mtu > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_addresses_of_both_families_are_parsed() {
        for text in ["192.0.2.1:7000", "[fe80::1%3]:7001"] {
            let address: SocketAddr = text.parse().expect("a literal address");
            let raw = SockAddr::from(address);
            // SAFETY: `raw` is valid for reads of its own length.
            let bytes = unsafe { std::slice::from_raw_parts(raw.as_ptr().cast::<u8>(), raw.len() as usize) };
            assert_eq!(parse_address(bytes), Some(address));
            for have in 0..bytes.len() {
                assert!(parse_address(&bytes[..have]).is_none_or(|a| a.is_ipv4()));
            }
        }
    }
}
