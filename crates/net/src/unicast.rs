//! The feedback socket: unicast on the chosen interface.

use crate::batch::Batch;
use crate::buffers::Granted;
use crate::error::NetError;
use crate::interface::Choice;
use crate::udp::{SendOutcome, Udp};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Options of a [`UnicastSocket`].
#[derive(Debug, Clone)]
pub struct UnicastOptions {
    /// Size of the receive buffer to request, in bytes.
    pub receive_buffer: usize,
    /// UDP port; 0 means that the system chooses.
    pub port: u16,
}

impl Default for UnicastOptions {
    fn default() -> UnicastOptions {
        UnicastOptions { receive_buffer: 256 * 1024, port: 0 }
    }
}

/// Sends and receives unicast datagrams from the chosen interface's address.
#[derive(Debug)]
pub struct UnicastSocket {
    udp: Udp,
    local: SocketAddr,
    choice: Choice,
}

impl UnicastSocket {
    /// Opens a socket on the chosen interface's address.
    ///
    /// # Errors
    /// [`NetError::PortTaken`], [`NetError::BufferTooSmall`], or [`NetError::System`].
    pub fn open(choice: &Choice, options: &UnicastOptions) -> Result<UnicastSocket, NetError> {
        let udp = Udp::new(choice.local, choice, options.receive_buffer)?;
        udp.bind(choice.here(choice.local, options.port))?;
        let local = udp.local_addr()?;
        Ok(UnicastSocket { udp, local, choice: choice.clone() })
    }

    /// Listens at this address; an unspecified address means all addresses of this host. Shares the port with sockets that are
    /// connected to one host each ([`SourceOptions::connected`](crate::SourceOptions::connected)).
    ///
    /// # Errors
    /// As [`UnicastSocket::open`].
    pub fn listen(at: SocketAddr, receive_buffer: usize) -> Result<UnicastSocket, NetError> {
        let choice = Choice::of_listener(at.ip())?;
        // This socket does not share the port, so binding fails if another program listens at the same address and port. Two such
        // listeners would each receive only a part of the packets.
        Udp::new(at.ip(), &choice, receive_buffer)?.bind(at)?;
        let udp = Udp::new(at.ip(), &choice, receive_buffer)?;
        udp.share_port()?;
        udp.bind(at)?;
        let local = udp.local_addr()?;
        Ok(UnicastSocket { udp, local, choice })
    }

    /// Sends one datagram to `to`.
    ///
    /// # Errors
    /// [`NetError::TooLarge`], [`NetError::Unreachable`], [`NetError::Denied`], or
    /// [`NetError::System`].
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> Result<SendOutcome, NetError> {
        self.udp.send_to(bytes, self.choice.here(to.ip(), to.port()))
    }

    /// Receives the waiting datagrams and returns their number, which may be 0.
    ///
    /// # Errors
    /// [`NetError::ControlTruncated`], or [`NetError::System`].
    pub fn receive(&self, batch: &mut Batch) -> Result<usize, NetError> {
        self.udp.receive(batch, self.local)
    }

    /// Returns the source address and port of datagrams.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the maximum payload of a datagram, in bytes.
    pub fn largest_datagram(&self) -> usize {
        self.udp.largest()
    }

    /// Returns the requested and the granted size of the receive buffer.
    pub fn receive_buffer(&self) -> Granted {
        self.udp.receive_buffer()
    }
}

impl AsFd for UnicastSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}
