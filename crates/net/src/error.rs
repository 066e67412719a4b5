//! Errors of multicast sockets, with advice.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// An error of the network or of the system below it.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// No interface has this name or address.
    #[error("no interface is called or has the address {wanted:?}; there are: {}", exist.join(", "))]
    NoSuchInterface {
        /// Requested name or address.
        wanted: String,
        /// The names that exist.
        exist: Vec<String>,
    },
    /// The interface is administratively down.
    #[error("interface {name} is down; bring it up (`ip link set {name} up`) or choose another")]
    InterfaceDown {
        /// Its name.
        name: String,
    },
    /// The interface cannot carry multicast.
    #[error("interface {name} does not carry multicast (no MULTICAST flag); choose another")]
    NotMulticastCapable {
        /// Its name.
        name: String,
    },
    /// The interface has no address of the group's family.
    #[error("interface {name} has no {} address, which the group {group} needs", family(group))]
    NoAddress {
        /// Its name.
        name: String,
        /// The group.
        group: IpAddr,
    },
    /// Several interfaces could carry the group, and the kernel has no route that decides.
    #[error("no route says which interface carries {group}; name one of: {}", candidates.join(", "))]
    WhichInterface {
        /// The group.
        group: IpAddr,
        /// Interfaces that could carry it.
        candidates: Vec<String>,
    },
    /// The kernel does not know where to send the group's packets.
    #[error("no route to the group {group}: name another interface, or {}", route(group))]
    NoMulticastRoute {
        /// The group.
        group: IpAddr,
    },
    /// The kernel does not know the way to a host.
    #[error("no route to {host}: name another interface, or look at `ip route get {host}`")]
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
    /// Addresses of different families where one family is needed.
    #[error("{one} and {other} are not of the same address family")]
    MixedFamilies {
        /// One address.
        one: IpAddr,
        /// The other.
        other: IpAddr,
    },
    /// Another program holds the port for itself.
    #[error("{address} is taken by another program that does not share it; choose another port")]
    PortTaken {
        /// The address and port.
        address: SocketAddr,
    },
    /// The host has joined as many groups as it allows.
    #[error(
        "joining {group} failed: this host's limit of memberships is reached; raise the sysctl \
         net.ipv4.igmp_max_memberships (many groups) or net.ipv4.igmp_max_msf (many sources)"
    )]
    TooManyMemberships {
        /// The group.
        group: IpAddr,
    },
    /// A datagram is larger than the interface carries in one piece.
    #[error(
        "a datagram of {size} bytes is too large: the interface carries at most {mtu}; use smaller packets"
    )]
    TooLarge {
        /// Bytes of UDP payload that were to be sent.
        size: usize,
        /// Bytes of UDP payload that fit.
        mtu: usize,
    },
    /// A packet filter on this host refused the packet.
    #[error("this host's packet filter does not let packets to {to} out; allow UDP to it")]
    Denied {
        /// Where to.
        to: SocketAddr,
    },
    /// The interface accepts nothing for a while.
    #[error("interface {name} takes no packets (is its cable plugged in?)")]
    Stuck {
        /// Its name.
        name: String,
    },
    /// An interface has lost the address that a session is known by.
    #[error("interface {name} has lost the address {address}, which this session is known by")]
    AddressGone {
        /// The address.
        address: IpAddr,
        /// The interface's name.
        name: String,
    },
    /// There is no way to a unicast address.
    #[error("{to} cannot be reached from this host")]
    Unreachable {
        /// Where to.
        to: SocketAddr,
    },
    /// The receive buffer is too small to work with.
    #[error(
        "the system granted a receive buffer of {granted} bytes, at least {needed} are needed; raise \
         the sysctl net.core.rmem_max"
    )]
    BufferTooSmall {
        /// Bytes granted.
        granted: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// The kernel's metadata of a datagram exceeded its buffer: a bug of this crate.
    #[error("the control data of a received datagram was cut short; its ECN mark is not known")]
    ControlTruncated,
    /// A system call failed in a way that has no better name.
    #[error("{doing} failed")]
    System {
        /// Operation that failed.
        doing: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// Which kind of ending an error means for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitClass {
    /// The request does not exist or does not fit: another choice by the user helps.
    Usage,
    /// The network, or the system below it.
    System,
}

impl NetError {
    /// The kind of ending this error means: whether the user's choice or the system has to change.
    pub fn exit_class(&self) -> ExitClass {
        match self {
            NetError::NoSuchInterface { .. }
            | NetError::NotMulticast { .. }
            | NetError::MixedFamilies { .. } => ExitClass::Usage,
            _ => ExitClass::System,
        }
    }

    /// Whether the error may be transient: an interface that is down, removed or without its address, a route that has
    /// vanished, a packet filter, a full queue.
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

/// Errors of the kernel while the network below a socket has changed. A socket bound to an address that the
/// host has lost, or a route of type blackhole, give EINVAL in some kernels.
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

/// Returns advice about a missing route. Linux makes IPv6's own on every interface but loopback.
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
