//! The source's socket: it sends to the group and receives unicast feedback.

use crate::batch::Batch;
use crate::buffers::{Backlog, Granted};
use crate::ecn::Ecn;
use crate::error::NetError;
use crate::interface::Choice;
use crate::sys::{self, Change};
use crate::udp::{SendOutcome, Udp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// The UDP port to which a [`SourceSocket`] is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Port {
    /// A port that the system chooses.
    #[default]
    Any,
    /// This port; if another program uses it, a port that the system chooses.
    Preferred(u16),
    /// This port only.
    Fixed(u16),
}

/// Options of a [`SourceSocket`].
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// Time to live: number of routers that a packet may pass, plus one. With 1, packets stay on the local network.
    pub ttl: u8,
    /// Size of the send buffer to request, in bytes.
    pub send_buffer: usize,
    /// Size of the receive buffer for feedback to request, in bytes.
    pub receive_buffer: usize,
    /// Differentiated services code point, 0 to 63; `None` means 0.
    pub dscp: Option<u8>,
    /// ECN field of packets: [`Ecn::Ect0`] permits routers to mark instead of dropping.
    pub ect: Ecn,
    /// UDP port to send from and to receive feedback on.
    pub port: Port,
    /// Whether the socket serves one host only: it receives only from that host, and shares its address and port with a listening
    /// socket.
    pub connected: bool,
    /// Whether the socket receives at all addresses of this host, broadcast addresses included, and may send to broadcast
    /// addresses. Otherwise it receives at the address of its interface only.
    pub everywhere: bool,
    /// Whether sending to a host fails while no neighbour answers, as far as the system notices. See
    /// [`SourceSocket::ignore_unresolved`].
    pub reports_unresolved: bool,
}

impl Default for SourceOptions {
    fn default() -> SourceOptions {
        SourceOptions {
            ttl: 16,
            send_buffer: 1 << 20,
            receive_buffer: 2 << 20,
            dscp: None,
            ect: Ecn::NotEct,
            port: Port::Any,
            connected: false,
            everywhere: false,
            reports_unresolved: false,
        }
    }
}

/// Sends to one group (or several, with [`SourceSocket::send_batch_to`]) and receives feedback.
///
/// Receivers on the same host get the packets too.
#[derive(Debug)]
pub struct SourceSocket {
    udp: Udp,
    group: SocketAddr,
    local: SocketAddr,
    choice: Choice,
}

impl SourceSocket {
    /// Opens a socket that sends to `group`, or to one host, from the chosen interface.
    ///
    /// # Errors
    /// [`NetError::NotMulticast`], [`NetError::MixedFamilies`], [`NetError::PortTaken`], [`NetError::BufferTooSmall`], or
    /// [`NetError::System`] for other errors of system calls.
    pub fn open(
        group: SocketAddr,
        choice: &Choice,
        options: &SourceOptions,
    ) -> Result<SourceSocket, NetError> {
        let like = group.ip();
        if like.is_multicast() {
            check(like, choice)?;
        }
        let udp = Udp::new(like, choice, options.receive_buffer)?;
        udp.set_send_buffer(options.send_buffer)?;
        udp.set_traffic_class(like, options.dscp.unwrap_or(0) & 0x3f, options.ect)?;
        if like.is_multicast() {
            send_from(&udp, choice, options.ttl)?;
        }
        if options.connected {
            udp.share_port()?;
        }
        if options.everywhere {
            udp.permit_broadcast()?;
        }
        if options.reports_unresolved {
            udp.report_errors(true)?;
        }
        bind(&udp, choice, options)?;
        if options.connected {
            udp.connect(choice.here(like, group.port()))?;
        }
        let local = udp.local_addr()?;
        Ok(SourceSocket { udp, group: choice.here(like, group.port()), local, choice: choice.clone() })
    }

    /// Opens a socket for a receiver that waits for an invitation. The socket listens at this address and answers from it. An
    /// unspecified address means all addresses of this host.
    ///
    /// # Errors
    /// [`NetError::PortTaken`], [`NetError::BufferTooSmall`], or [`NetError::System`] for other errors of system calls.
    pub fn listen(at: SocketAddr, options: &SourceOptions) -> Result<SourceSocket, NetError> {
        let choice = Choice::of_listener(at.ip())?;
        let udp = Udp::new(at.ip(), &choice, options.receive_buffer)?;
        udp.set_send_buffer(options.send_buffer)?;
        udp.set_traffic_class(at.ip(), options.dscp.unwrap_or(0) & 0x3f, options.ect)?;
        udp.bind(at)?;
        let local = udp.local_addr()?;
        Ok(SourceSocket { udp, group: at, local, choice })
    }

    /// Ignores errors about earlier datagrams from now on. The system queues these errors, and its reports would wake the program
    /// again and again.
    ///
    /// # Errors
    /// [`NetError::System`].
    pub fn ignore_unresolved(&self) -> Result<(), NetError> {
        self.udp.report_errors(false)
    }

    /// Sets the time to live of further packets to groups.
    ///
    /// # Errors
    /// [`NetError::System`].
    pub fn set_hops(&self, hops: u8) -> Result<(), NetError> {
        let socket = self.udp.socket();
        let done = match self.choice.local {
            IpAddr::V4(_) => socket.set_multicast_ttl_v4(hops.into()),
            IpAddr::V6(_) => socket.set_multicast_hops_v6(hops.into()),
        };
        done.map_err(NetError::system("setting the time to live of multicast"))
    }

    /// Joins a group on the interface of the socket, until the socket is closed. Only a socket that receives everywhere gets the
    /// group's packets.
    ///
    /// # Errors
    /// [`NetError::System`].
    pub fn join(&self, group: SocketAddr) -> Result<(), NetError> {
        sys::membership(self.udp.as_fd(), self.choice.chosen.index, group, None, Change::Join)
            .map_err(NetError::system("joining a group"))
    }

    /// Sends `bytes` to the group as datagrams of `segment` bytes; the last datagram may be shorter. A system call sends up to 64
    /// datagrams or 64 KiB; larger batches need several calls.
    ///
    /// # Errors
    /// [`NetError::TooLarge`] if a datagram does not fit the interface; datagrams are not fragmented.
    /// [`NetError::NoMulticastRoute`] if the interface was removed. ICMP errors from single receivers are ignored.
    pub fn send_batch(&self, bytes: &[u8], segment: usize) -> Result<SendOutcome, NetError> {
        self.udp.send_batch(self.group, bytes, segment)
    }

    /// Sends a batch to another group (a layer) or to a host.
    ///
    /// # Errors
    /// As [`SourceSocket::send_batch`].
    pub fn send_batch_to(
        &self,
        bytes: &[u8],
        segment: usize,
        to: SocketAddr,
    ) -> Result<SendOutcome, NetError> {
        self.udp.send_batch(self.choice.here(to.ip(), to.port()), bytes, segment)
    }

    /// Sends one datagram to `to`.
    ///
    /// # Errors
    /// As [`SourceSocket::send_batch`], and [`NetError::Unreachable`].
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> Result<SendOutcome, NetError> {
        self.udp.send_to(bytes, to)
    }

    /// Receives the waiting feedback and returns the number of datagrams, which may be 0.
    ///
    /// # Errors
    /// [`NetError::ControlTruncated`], or [`NetError::System`].
    pub fn receive(&self, batch: &mut Batch) -> Result<usize, NetError> {
        self.udp.receive(batch, self.local)
    }

    /// Returns the group's address and port.
    pub fn group(&self) -> SocketAddr {
        self.group
    }

    /// Returns the source address and port of packets, which is the destination of feedback.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the interface in use.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Returns the maximum payload of a datagram, in bytes: the interface's MTU without IP and UDP headers.
    pub fn largest_datagram(&self) -> usize {
        self.udp.largest()
    }

    /// Whether the kernel segments batches (GSO). If the kernel has refused segmentation once, this stays false, and sending
    /// takes more processor time.
    pub fn segments_in_kernel(&self) -> bool {
        self.udp.segments()
    }

    /// Segments all further batches in user space instead of in the kernel.
    pub fn stop_segments_in_kernel(&self) {
        self.udp.stop_segments();
    }

    /// Returns the requested and the granted size of the receive buffer.
    pub fn receive_buffer(&self) -> Granted {
        self.udp.receive_buffer()
    }

    /// Returns the number of bytes that were sent and are still in queues of this host, for example because no neighbour has
    /// answered yet.
    ///
    /// # Errors
    /// [`NetError::System`].
    pub fn unsent(&self) -> Result<usize, NetError> {
        self.udp.unsent()
    }

    /// Returns the fill level of the receive buffer.
    ///
    /// # Errors
    /// [`NetError::System`].
    pub fn backlog(&self) -> Result<Backlog, NetError> {
        self.udp.backlog()
    }
}

impl AsFd for SourceSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

/// Binds to the address of the interface only, so that other sockets can use the same port at other addresses. With
/// `everywhere`, binds to all addresses.
fn bind(udp: &Udp, choice: &Choice, options: &SourceOptions) -> Result<(), NetError> {
    let local = match (options.everywhere, choice.local) {
        (true, IpAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
        (true, IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        (false, local) => local,
    };
    let at = |port| choice.here(local, port);
    match options.port {
        Port::Any => udp.bind(at(0)),
        Port::Fixed(port) => udp.bind(at(port)),
        Port::Preferred(port) => match udp.bind(at(port)) {
            Err(NetError::PortTaken { .. }) => udp.bind(at(0)),
            bound => bound,
        },
    }
}

/// Checks that the group is a multicast address, and has the family of the local address.
pub(crate) fn check(group: IpAddr, choice: &Choice) -> Result<(), NetError> {
    if !group.is_multicast() {
        return Err(NetError::NotMulticast { address: group });
    }
    if group.is_ipv4() != choice.local.is_ipv4() {
        return Err(NetError::MixedFamilies { one: group, other: choice.local });
    }
    Ok(())
}

/// Sets the interface and the time to live of multicast packets, and requests copies for receivers on this host.
fn send_from(udp: &Udp, choice: &Choice, ttl: u8) -> Result<(), NetError> {
    let (socket, index, hops) = (udp.socket(), choice.chosen.index, u32::from(ttl));
    let done = match choice.local {
        IpAddr::V4(local) => sys::set_multicast_interface_v4(socket.as_fd(), index, local)
            .and_then(|()| socket.set_multicast_ttl_v4(hops))
            .and_then(|()| socket.set_multicast_loop_v4(true)),
        IpAddr::V6(_) => socket
            .set_multicast_if_v6(index)
            .and_then(|()| socket.set_multicast_hops_v6(hops))
            .and_then(|()| socket.set_multicast_loop_v6(true)),
    };
    done.map_err(NetError::system("setting the multicast interface"))
}
