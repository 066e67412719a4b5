//! Errors of multicast sockets, with advice.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// An error of the network or of the operating system.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No interface has this name or address.
    #[error("no interface has the name or the address {wanted:?}; choose from: {}", exist.join(", "))]
    NoSuchInterface {
        /// Requested name or address.
        wanted: String,
        /// Names of the existing interfaces.
        exist: Vec<String>,
    },
    /// The interface is administratively down.
    #[error("interface {name} is down; bring it up (`ip link set {name} up`) or choose another")]
    InterfaceDown {
        /// Name of the interface.
        name: String,
    },
    /// The interface cannot carry multicast.
    #[error("interface {name} does not carry multicast (no MULTICAST flag); choose another")]
    NotMulticastCapable {
        /// Name of the interface.
        name: String,
    },
    /// The interface has no address of the group's family.
    #[error("interface {name} has no {} address, which the group {group} needs", family(group))]
    NoAddress {
        /// Name of the interface.
        name: String,
        /// The group.
        group: IpAddr,
    },
    /// Several interfaces could carry the group, and the kernel has no route that selects one of them.
    #[error("no route selects an interface for {group}; name one of: {}", candidates.join(", "))]
    WhichInterface {
        /// The group.
        group: IpAddr,
        /// Interfaces that could carry the group.
        candidates: Vec<String>,
    },
    /// The kernel has no route to the group.
    #[error("no route to the group {group}: name another interface, or {}", route(group))]
    NoMulticastRoute {
        /// The group.
        group: IpAddr,
    },
    /// The kernel has no route to a host.
    #[error("no route to {host}: name another interface, or check the route with `ip route get {host}`")]
    NoRoute {
        /// The host.
        host: IpAddr,
    },
    /// The address is not a multicast address.
    #[error("{address} is not a multicast address (IPv4: 224.0.0.0/4, IPv6: ff00::/8)")]
    NotMulticast {
        /// The address.
        address: IpAddr,
    },
    /// Two addresses have different families.
    #[error("{one} and {other} have different address families; use two IPv4 or two IPv6 addresses")]
    MixedFamilies {
        /// One address.
        one: IpAddr,
        /// The other address.
        other: IpAddr,
    },
    /// Another program uses the port exclusively.
    #[error("{address} is in use by another program that does not share the port; choose another port")]
    PortTaken {
        /// The address and port.
        address: SocketAddr,
    },
    /// The host has reached its limit of memberships.
    #[error(
        "joining {group} failed: this host's limit of memberships is reached; raise the sysctl \
         net.ipv4.igmp_max_memberships (many groups) or net.ipv4.igmp_max_msf (many sources)"
    )]
    TooManyMemberships {
        /// The group.
        group: IpAddr,
    },
    /// A datagram exceeds the MTU of the interface.
    #[error(
        "a datagram of {size} bytes is too large: the interface carries at most {mtu}; use smaller packets"
    )]
    TooLarge {
        /// Size of the UDP payload, in bytes.
        size: usize,
        /// Maximum size of the UDP payload, in bytes.
        mtu: usize,
    },
    /// A packet filter on this host refused the packet.
    #[error("the packet filter of this host drops packets to {to}; allow UDP to this address and port")]
    Denied {
        /// Destination.
        to: SocketAddr,
    },
    /// The interface has accepted no packets for some time.
    #[error("interface {name} accepts no packets (is its cable plugged in?)")]
    Stuck {
        /// Name of the interface.
        name: String,
    },
    /// An interface has lost the address that identifies a session.
    #[error("interface {name} has lost the address {address}, which identifies this session")]
    AddressGone {
        /// The address.
        address: IpAddr,
        /// The interface's name.
        name: String,
    },
    /// There is no route to a unicast address.
    #[error("{to} cannot be reached from this host")]
    Unreachable {
        /// Destination.
        to: SocketAddr,
    },
    /// No host answers for an address.
    #[error(
        "no host answers for {to} (ARP or neighbour discovery); where no answer can arrive, as behind a diode, set a static entry: \
         `ip neigh replace {} lladdr MAC dev IFACE`",
        to.ip()
    )]
    NoNeighbour {
        /// Destination.
        to: SocketAddr,
    },
    /// The receive buffer is too small.
    #[error(
        "the system granted a receive buffer of {granted} bytes, but at least {needed} are needed; raise \
         the sysctl net.core.rmem_max"
    )]
    BufferTooSmall {
        /// Bytes granted.
        granted: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// The kernel's metadata of a datagram exceeded its buffer: a bug of this crate.
    #[error(
        "the control data of a received datagram was truncated, so the ECN mark of the datagram is not known"
    )]
    ControlTruncated,
    /// Another failure of a system call.
    #[error("{doing} failed")]
    System {
        /// Operation that failed.
        doing: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// Class of an error, from which a program derives its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitClass {
    /// The request cannot be fulfilled: the user must change the request.
    Usage,
    /// The network or the operating system failed.
    System,
}

impl NetError {
    /// Returns the class of this error.
    pub fn exit_class(&self) -> ExitClass {
        match self {
            NetError::NoSuchInterface { .. }
            | NetError::NotMulticast { .. }
            | NetError::MixedFamilies { .. } => ExitClass::Usage,
            _ => ExitClass::System,
        }
    }

    /// Whether the error may be transient: a missing interface, address or route, an interface that is down, a packet filter, or
    /// a full queue.
    pub fn may_pass(&self) -> bool {
        match self {
            NetError::NoSuchInterface { .. }
            | NetError::InterfaceDown { .. }
            | NetError::NoAddress { .. }
            | NetError::WhichInterface { .. }
            | NetError::NoMulticastRoute { .. }
            | NetError::NoRoute { .. }
            | NetError::Denied { .. }
            | NetError::Unreachable { .. }
            | NetError::NoNeighbour { .. }
            | NetError::AddressGone { .. }
            | NetError::Stuck { .. } => true,
            NetError::System { source, .. } => source.raw_os_error().is_some_and(passes),
            NetError::NotMulticastCapable { .. }
            | NetError::NotMulticast { .. }
            | NetError::MixedFamilies { .. }
            | NetError::PortTaken { .. }
            | NetError::TooManyMemberships { .. }
            | NetError::TooLarge { .. }
            | NetError::BufferTooSmall { .. }
            | NetError::ControlTruncated => false,
        }
    }

    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> NetError {
        move |source| NetError::System { doing, source }
    }
}

/// Whether a change of the network can cause this error of the kernel. Some kernels return EINVAL in two such cases: the socket
/// is bound to an address that the host has lost, or the route has the type blackhole.
fn passes(code: i32) -> bool {
    matches!(
        code,
        libc::ENETDOWN
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::EHOSTUNREACH
            | libc::EADDRNOTAVAIL
            | libc::ENODEV
            | libc::ENXIO
            | libc::EINVAL
            | libc::EPERM
            | libc::EACCES
            | libc::ENOBUFS
            | libc::ENOMEM
            | libc::EIO
            | libc::ECONNREFUSED
    )
}

fn family(address: &IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    }
}

/// Returns advice about a missing route. Linux creates IPv6 multicast routes on every interface except loopback.
fn route(group: &IpAddr) -> String {
    match group {
        IpAddr::V4(_) => format!("add a route (`ip route add {group} dev IFACE`)"),
        IpAddr::V6(_) => {
            "to stay on this host add a route (`ip -6 route add local ff00::/8 dev lo`)".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_network_errors_are_transient() {
        let of = |code| NetError::System { doing: "sending", source: io::Error::from_raw_os_error(code) };
        assert!(
            [libc::ENETDOWN, libc::ENODEV, libc::EADDRNOTAVAIL].into_iter().all(|code| of(code).may_pass())
        );
        assert!(
            ![libc::EBADF, libc::EMSGSIZE, libc::EAFNOSUPPORT].into_iter().any(|code| of(code).may_pass())
        );
        assert!(NetError::InterfaceDown { name: "eth0".into() }.may_pass());
        assert!(!NetError::TooLarge { size: 9000, mtu: 1472 }.may_pass());
    }
}
