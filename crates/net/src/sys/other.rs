//! Code that all Unix systems share.

use super::{Control, MAX_CALL};
use crate::buffers::Backlog;
use socket2::{SockAddr, SockRef, Socket};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Metadata of one received datagram.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    from: Option<SocketAddr>,
    /// Bytes received.
    pub(crate) len: usize,
}

impl Head {
    pub(crate) const EMPTY: Head = Head { from: None, len: 0 };

    /// Unknown on these systems.
    pub(crate) fn truncated(&self) -> bool {
        false
    }

    /// These systems have no control data.
    pub(crate) fn control_truncated(&self) -> bool {
        false
    }

    pub(crate) fn from(&self) -> Option<SocketAddr> {
        self.from
    }

    pub(crate) fn control(&self) -> Control {
        Control::default()
    }
}

/// Does nothing: these systems report only the sender.
pub(crate) fn ask_for_metadata(_fd: BorrowedFd<'_>, _like: IpAddr) -> io::Result<()> {
    Ok(())
}

/// Does nothing: the system's default applies.
pub(crate) fn never_fragment(_fd: BorrowedFd<'_>, _like: IpAddr) -> io::Result<()> {
    Ok(())
}

/// Not supported on these systems.
pub(crate) fn coalesce(_fd: BorrowedFd<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing: on these systems a socket that is bound to a group receives no packets to other groups.
pub(crate) fn only_own_groups(_fd: BorrowedFd<'_>, _like: IpAddr) -> io::Result<()> {
    Ok(())
}

/// Not supported on these systems.
pub(crate) fn force_receive_buffer(_fd: BorrowedFd<'_>, _bytes: libc::c_int) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Not supported on these systems.
pub(crate) fn force_send_buffer(_fd: BorrowedFd<'_>, _bytes: libc::c_int) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns `reported`: these systems report the requested size.
pub(crate) fn usable(reported: usize) -> usize {
    reported
}

/// Not reported on these systems.
pub(crate) fn backlog(_fd: BorrowedFd<'_>) -> io::Result<Backlog> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sends one datagram. If there are several datagrams, returns the error of a system without segmentation.
pub(crate) fn send(
    fd: BorrowedFd<'_>,
    to: &SockAddr,
    bytes: &[u8],
    segment: Option<u16>,
) -> io::Result<usize> {
    match segment {
        None => SockRef::from(&fd).send_to(bytes, to),
        Some(_) => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
    }
}

/// Sends up to [`MAX_CALL`] datagrams of `segment` bytes one by one and returns the number sent.
pub(crate) fn send_each(
    fd: BorrowedFd<'_>,
    to: &SockAddr,
    bytes: &[u8],
    segment: usize,
) -> io::Result<usize> {
    let mut sent = 0;
    for chunk in bytes.chunks(segment).take(MAX_CALL) {
        match send(fd, to, chunk, None) {
            Ok(_) => sent += 1,
            Err(e) if sent == 0 => return Err(e),
            Err(_) => break, // the next call will tell
        }
    }
    Ok(sent)
}

/// Receives datagrams one by one, each into its own `slot` bytes, and returns their number.
pub(crate) fn receive_each(
    fd: BorrowedFd<'_>,
    bytes: &mut [u8],
    slot: usize,
    heads: &mut [Head],
) -> io::Result<usize> {
    let socket = UdpSocket::from(fd.try_clone_to_owned()?);
    let mut received = 0;
    for (chunk, head) in bytes.chunks_exact_mut(slot).zip(heads) {
        match socket.recv_from(chunk) {
            Ok((len, from)) => *head = Head { from: Some(from), len },
            Err(e) if received == 0 => return Err(e),
            Err(_) => break, // the next call will tell
        }
        received += 1;
    }
    Ok(received)
}

/// Waits until a descriptor is ready or the time is over, with a precision of a millisecond; `None` waits without a limit.
pub(crate) fn poll(watched: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<usize> {
    let millis =
        timeout.map_or(-1, |t| t.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as libc::c_int);
    // SAFETY: `watched` is valid for reads and writes of its length.
    let ready = unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, millis) };
    if ready >= 0 { Ok(ready as usize) } else { Err(io::Error::last_os_error()) }
}

/// Not supported on these systems.
pub(crate) fn sharpen_timers() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Not supported on these systems.
pub(crate) fn listen_for_changes() -> io::Result<Socket> {
    Err(io::ErrorKind::Unsupported.into())
}

/// These systems have no packet sockets.
pub(crate) fn open_arp(_index: u32) -> io::Result<(Socket, [u8; 6])> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn send_arp(_socket: &Socket, _index: u32, _packet: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Unknown on these systems.
pub(crate) fn refused_addresses() -> Vec<(Ipv6Addr, String)> {
    Vec::new()
}
