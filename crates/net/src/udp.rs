//! Common parts of the sockets: options, buffers, sending in batches, receiving.

use crate::batch::Batch;
use crate::buffers::{Backlog, Granted, MIN_RECEIVE_BUFFER};
use crate::ecn::Ecn;
use crate::error::NetError;
use crate::interface::Choice;
use crate::sys;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Result of sending a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a blocked batch must be sent again from its first unsent datagram"]
pub enum SendOutcome {
    /// The kernel has accepted the whole batch.
    Sent,
    /// The queue of the socket or the interface is full. Continue when the socket is writable, or after a short time.
    Blocked {
        /// Number of datagrams sent.
        sent: usize,
    },
}

/// Maximum number of datagrams handed to the kernel in one call; batches may be larger.
pub const MAX_SEGMENTS: usize = sys::MAX_CALL;
/// Maximum number of payload bytes per call: an IP packet of 65,535 bytes without IPv6 and UDP headers.
const MAX_BYTES: usize = 65_535 - 48;

/// A non-blocking UDP socket on one interface.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: Socket,
    /// Maximum payload that fits the interface, in bytes.
    largest: usize,
    /// Cleared once the kernel or the device refuses segmentation.
    segments: AtomicBool,
    receive: Granted,
}

impl Udp {
    /// Creates a socket of the address family of `like`, without binding it.
    pub(crate) fn new(like: IpAddr, choice: &Choice, receive_buffer: usize) -> Result<Udp, NetError> {
        let domain = if like.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let made = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
        let socket = made.map_err(NetError::system("opening a UDP socket"))?;
        let headers = if like.is_ipv4() { 28 } else { 48 };
        let largest = (choice.chosen.mtu as usize).saturating_sub(headers).min(65_535 - headers);
        socket.set_nonblocking(true).map_err(NetError::system("making a socket non-blocking"))?;
        if like.is_ipv6() {
            socket.set_only_v6(true).map_err(NetError::system("restricting a socket to IPv6"))?;
        }
        let receive = grant_receive(&socket, receive_buffer)?;
        let udp = Udp { socket, largest, segments: AtomicBool::new(true), receive };
        sys::ask_for_metadata(udp.as_fd(), like)
            .map_err(NetError::system("asking for ECN, receive time and destination"))?;
        sys::never_fragment(udp.as_fd(), like).map_err(NetError::system("forbidding fragmentation"))?;
        // Coalescing affects only the processor time, and old kernels do not support it.
        let _ = sys::coalesce(udp.as_fd());
        Ok(udp)
    }

    fn set(&self, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
        sys::set_option(self.socket.as_fd(), level, name, &value)
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn bind(&self, address: SocketAddr) -> Result<(), NetError> {
        self.socket.bind(&address.into()).map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => NetError::PortTaken { address },
            _ => NetError::System { doing: "binding a UDP socket", source: e },
        })
    }

    /// Permits other sockets at the same address and port.
    pub(crate) fn share_port(&self) -> Result<(), NetError> {
        let shared = self.socket.set_reuse_address(true).and_then(|()| self.socket.set_reuse_port(true));
        shared.map_err(NetError::system("sharing a UDP port"))
    }

    /// Permits packets to broadcast addresses.
    pub(crate) fn permit_broadcast(&self) -> Result<(), NetError> {
        self.socket.set_broadcast(true).map_err(NetError::system("permitting broadcast"))
    }

    /// Sets whether calls fail because of errors about earlier datagrams that may pass, such as a neighbour that does not answer
    /// (`ip(7)`, `IP_RECVERR`).
    pub(crate) fn report_errors(&self, reports: bool) -> Result<(), NetError> {
        let is_v4 = self.local_addr().map_or(true, |local| local.is_ipv4());
        let (level, name) = match is_v4 {
            true => (libc::IPPROTO_IP, libc::IP_RECVERR),
            false => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        };
        self.set(level, name, reports.into()).map_err(NetError::system("requesting reports of errors"))
    }

    /// Restricts the socket to packets from this host. For these packets, the socket takes precedence over a socket at the same
    /// port that receives from all hosts.
    pub(crate) fn connect(&self, host: SocketAddr) -> Result<(), NetError> {
        self.socket.connect(&host.into()).map_err(NetError::system("connecting a UDP socket"))
    }

    pub(crate) fn local_addr(&self) -> Result<SocketAddr, NetError> {
        let unnamed = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        let address = self.socket.local_addr().and_then(|a| a.as_socket().ok_or_else(unnamed));
        address.map_err(NetError::system("asking for the socket's own address"))
    }

    /// Sets the type of service or traffic class of all packets.
    pub(crate) fn set_traffic_class(&self, like: IpAddr, dscp: u8, ect: Ecn) -> Result<(), NetError> {
        let octet = libc::c_int::from(dscp << 2 | ect.bits());
        let done = if like.is_ipv4() {
            self.set(libc::IPPROTO_IP, libc::IP_TOS, octet)
        } else {
            self.set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, octet)
        };
        done.map_err(NetError::system("setting the traffic class"))
    }

    /// Requests a send buffer of `bytes` bytes. A smaller buffer than requested is not an error: sending then blocks earlier.
    pub(crate) fn set_send_buffer(&self, bytes: usize) -> Result<(), NetError> {
        let size = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX / 2);
        if sys::force_send_buffer(self.as_fd(), size).is_ok() {
            return Ok(());
        }
        self.socket.set_send_buffer_size(bytes).map_err(NetError::system("sizing the send buffer"))
    }

    pub(crate) fn receive_buffer(&self) -> Granted {
        self.receive
    }

    pub(crate) fn largest(&self) -> usize {
        self.largest
    }

    /// Whether the kernel segments batches.
    pub(crate) fn segments(&self) -> bool {
        self.segments.load(Ordering::Relaxed)
    }

    pub(crate) fn stop_segments(&self) {
        self.segments.store(false, Ordering::Relaxed);
    }

    pub(crate) fn backlog(&self) -> Result<Backlog, NetError> {
        sys::backlog(self.as_fd()).map_err(NetError::system("reading the fill level of the receive buffer"))
    }

    /// Returns the number of bytes that were sent and are still in queues of this host.
    pub(crate) fn unsent(&self) -> Result<usize, NetError> {
        sys::unsent(self.as_fd()).map_err(NetError::system("reading the fill level of the send buffer"))
    }

    /// Sends datagrams of `segment` bytes; the last one may be shorter.
    pub(crate) fn send_batch(
        &self,
        to: SocketAddr,
        bytes: &[u8],
        segment: usize,
    ) -> Result<SendOutcome, NetError> {
        let size = segment.min(bytes.len());
        if size > self.largest {
            return Err(NetError::TooLarge { size, mtu: self.largest });
        }
        if size == 0 {
            return Ok(SendOutcome::Sent);
        }
        let address = SockAddr::from(to);
        let per_call = (MAX_BYTES / size).clamp(1, MAX_SEGMENTS) * size;
        let (mut rest, mut sent, mut tries) = (bytes, 0, MAX_TRIES);
        while !rest.is_empty() {
            let part = &rest[..rest.len().min(per_call)];
            match self.send_part(&address, part, size) {
                Ok(went) => {
                    sent += went;
                    rest = &rest[(went * size).min(rest.len())..];
                }
                Err(e) => match classify(&e) {
                    Trouble::Full => return Ok(SendOutcome::Blocked { sent }),
                    Trouble::Others if tries > 0 => tries -= 1,
                    Trouble::Others | Trouble::Real => return Err(self.send_error(e, to, size)),
                },
            }
        }
        Ok(SendOutcome::Sent)
    }

    /// Sends the datagrams of one call; returns the number sent (at least one).
    fn send_part(&self, to: &SockAddr, part: &[u8], size: usize) -> io::Result<usize> {
        if part.len() <= size {
            return sys::send(self.socket.as_fd(), to, part, None).map(|_| 1);
        }
        if self.segments() {
            let segment = u16::try_from(size).expect("the largest datagram has less than 64 KiB");
            match sys::send(self.socket.as_fd(), to, part, Some(segment)) {
                Ok(_) => return Ok(part.len().div_ceil(size)),
                Err(e) if !refuses_segments(&e) => return Err(e),
                Err(_) => {
                    let went = sys::send_each(self.socket.as_fd(), to, part, size)?;
                    self.stop_segments();
                    return Ok(went);
                }
            }
        }
        sys::send_each(self.socket.as_fd(), to, part, size)
    }

    /// Sends one datagram.
    pub(crate) fn send_to(&self, bytes: &[u8], to: SocketAddr) -> Result<SendOutcome, NetError> {
        self.send_batch(to, bytes, bytes.len())
    }

    fn send_error(&self, e: io::Error, to: SocketAddr, size: usize) -> NetError {
        match e.raw_os_error() {
            Some(libc::EMSGSIZE) => NetError::TooLarge { size, mtu: self.largest.min(size - 1) },
            Some(libc::ENETUNREACH | libc::EADDRNOTAVAIL | libc::ENODEV | libc::ENETDOWN | libc::EINVAL)
                if to.ip().is_multicast() =>
            {
                NetError::NoMulticastRoute { group: to.ip() }
            }
            Some(libc::EHOSTUNREACH) => NetError::NoNeighbour { to },
            Some(libc::ENETUNREACH | libc::ENETDOWN | libc::EADDRNOTAVAIL | libc::ENODEV | libc::EINVAL) => {
                NetError::Unreachable { to }
            }
            Some(libc::EPERM | libc::EACCES) => NetError::Denied { to },
            _ => NetError::System { doing: "sending", source: e },
        }
    }

    /// Receives the waiting datagrams into `batch` and returns their number, which may be 0.
    pub(crate) fn receive(&self, batch: &mut Batch, own: SocketAddr) -> Result<usize, NetError> {
        let mut tries = MAX_TRIES;
        loop {
            match batch.fill(self.socket.as_fd(), own) {
                Ok(_) if batch.is_cut() => return Err(NetError::ControlTruncated),
                // All received datagrams are empty. No faircast endpoint sends empty datagrams, so the call reads again.
                Ok(0) if !batch.is_empty() && tries > 0 => tries -= 1,
                Ok(count) => return Ok(count),
                Err(e) => match classify(&e) {
                    Trouble::Full => return Ok(0),
                    Trouble::Others if tries > 0 => tries -= 1,
                    Trouble::Others | Trouble::Real => {
                        return Err(NetError::System { doing: "receiving", source: e });
                    }
                },
            }
        }
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn grant_receive(socket: &Socket, asked: usize) -> Result<Granted, NetError> {
    let size = libc::c_int::try_from(asked).unwrap_or(libc::c_int::MAX / 2).min(libc::c_int::MAX / 2);
    let forced = sys::force_receive_buffer(socket.as_fd(), size);
    if forced.is_err() {
        socket.set_recv_buffer_size(asked).map_err(NetError::system("sizing the receive buffer"))?;
    }
    let reported =
        socket.recv_buffer_size().map_err(NetError::system("reading the size of the receive buffer"))?;
    let granted = sys::usable(reported);
    if granted < MIN_RECEIVE_BUFFER {
        return Err(NetError::BufferTooSmall { granted, needed: MIN_RECEIVE_BUFFER });
    }
    Ok(Granted { asked, granted })
}

/// Maximum number of attempts that one call repeats, because they returned an ICMP error or only empty datagrams.
const MAX_TRIES: u32 = 64;

/// Meaning of an error of a socket call.
enum Trouble {
    /// No datagram can be received, or the queue for sending is full.
    Full,
    /// The error does not concern this call: a signal, or an ICMP error about an earlier datagram. The kernel reports each such
    /// error once, so the call is repeated.
    Others,
    /// An error of this call.
    Real,
}

fn classify(e: &io::Error) -> Trouble {
    match e.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS) => Trouble::Full,
        Some(libc::EINTR | libc::ECONNREFUSED | libc::ECONNRESET | libc::EPROTO | libc::ENOPROTOOPT) => {
            Trouble::Others
        }
        _ => Trouble::Real,
    }
}

/// Whether the error means that the kernel has no segmentation, or that the device cannot compute checksums.
fn refuses_segments(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::ENOPROTOOPT | libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GroupOptions, GroupSocket, Membership, choose};

    fn loopback() -> Choice {
        choose(IpAddr::from([239, 255, 78, 1]), Some("lo")).expect("there is a loopback interface")
    }

    fn group(port: u16) -> SocketAddr {
        ([239, 255, 78, 1], port).into()
    }

    fn sender() -> Udp {
        let udp = Udp::new(group(0).ip(), &loopback(), 1 << 20).expect("opens");
        let index = loopback().chosen.index;
        sys::set_multicast_interface_v4(udp.as_fd(), index, std::net::Ipv4Addr::LOCALHOST).expect("sets");
        udp
    }

    #[test]
    fn datagrams_are_sent_singly_if_segmentation_is_refused() {
        let (to, options) = (group(47201), GroupOptions::default());
        let receiver = GroupSocket::open(to, Membership::AnySource, &loopback(), &options).expect("joins");
        let udp = sender();
        // Without checksums the kernel cannot segment and returns EINVAL.
        udp.set(libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).expect("may be set");
        assert!(udp.segments());
        let bytes: Vec<u8> = (0..100u8).flat_map(|n| [n; 300]).collect();
        assert_eq!(udp.send_batch(to, &bytes[..29_900], 300).expect("sends"), SendOutcome::Sent);
        assert!(!udp.segments());
        let (mut batch, mut got) = (Batch::new(64), Vec::new());
        while receiver.receive(&mut batch).expect("receives") > 0 {
            got.extend(batch.segments().map(|(part, _)| (part[0], part.len())));
        }
        let expected = (0..100u8).map(|n| (n, if n == 99 { 200 } else { 300 }));
        assert!(got.into_iter().eq(expected));
    }

    #[test]
    fn remote_errors_and_full_queues_are_tolerated() {
        let of = |code| classify(&io::Error::from_raw_os_error(code));
        assert!(matches!(of(libc::ECONNREFUSED), Trouble::Others));
        assert!(matches!(of(libc::ENOBUFS), Trouble::Full));
        assert!(matches!(of(libc::EAGAIN), Trouble::Full));
        assert!(matches!(of(libc::EBADF), Trouble::Real));
    }

    #[test]
    fn send_errors_are_classified_by_error_code() {
        let udp = sender();
        let error_of = |code, to| udp.send_error(io::Error::from_raw_os_error(code), to, 1500);
        let host: SocketAddr = ([192, 0, 2, 1], 7).into();
        assert!(matches!(error_of(libc::ENETUNREACH, group(7)), NetError::NoMulticastRoute { .. }));
        assert!(matches!(error_of(libc::ENETUNREACH, host), NetError::Unreachable { .. }));
        assert!(matches!(error_of(libc::EPERM, group(7)), NetError::Denied { .. }));
        assert!(matches!(error_of(libc::EMSGSIZE, group(7)), NetError::TooLarge { size: 1500, mtu: 1499 }));
    }
}
