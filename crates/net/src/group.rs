//! The receiver's socket: a membership in one group on one interface.

use crate::batch::Batch;
use crate::buffers::{Backlog, Granted};
use crate::error::NetError;
use crate::interface::Choice;
use crate::source::check;
use crate::sys::{self, Change};
use crate::udp::{SendOutcome, Udp};
use crate::unicast::{UnicastOptions, UnicastSocket};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Sources from which packets to the group are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Membership {
    /// All sources (any-source multicast).
    #[default]
    AnySource,
    /// This source only (source-specific multicast, RFC 4607).
    OnlyFrom(IpAddr),
}

/// Options of a [`GroupSocket`].
#[derive(Debug, Clone)]
pub struct GroupOptions {
    /// Size of the receive buffer to request, in bytes.
    pub receive_buffer: usize,
}

impl Default for GroupOptions {
    fn default() -> GroupOptions {
        GroupOptions { receive_buffer: 16 << 20 }
    }
}

/// Receives one group on one interface, and sends feedback from a second, unicast socket.
///
/// Several sockets on one host can receive the same group, in the same program or in different programs. Each of them receives
/// every packet to its group, and no packets to other groups on the same port.
#[derive(Debug)]
pub struct GroupSocket {
    udp: Udp,
    /// Shared with the sockets opened by [`GroupSocket::open_beside`].
    feedback: Arc<UnicastSocket>,
    group: SocketAddr,
    membership: Membership,
    choice: Choice,
}

impl GroupSocket {
    /// Joins `group` on the chosen interface. Dropping the socket leaves the group.
    ///
    /// # Errors
    /// [`NetError::NotMulticast`], [`NetError::MixedFamilies`], [`NetError::PortTaken`] if a program uses the port exclusively,
    /// [`NetError::TooManyMemberships`], [`NetError::BufferTooSmall`], or [`NetError::System`] for other errors of system calls.
    pub fn open(
        group: SocketAddr,
        membership: Membership,
        choice: &Choice,
        options: &GroupOptions,
    ) -> Result<GroupSocket, NetError> {
        check(group.ip(), choice)?;
        if let Membership::OnlyFrom(source) = membership
            && source.is_ipv4() != group.is_ipv4()
        {
            return Err(NetError::MixedFamilies { one: group.ip(), other: source });
        }
        let feedback = Arc::new(UnicastSocket::open(choice, &UnicastOptions::default())?);
        GroupSocket::with_feedback(feedback, group, membership, choice, options.receive_buffer)
    }

    /// Joins another group (a layer) on the same interface, with the same membership and the same requested receive buffer. The
    /// new socket shares the feedback socket.
    ///
    /// # Errors
    /// As [`GroupSocket::open`].
    pub fn open_beside(&self, group: SocketAddr) -> Result<GroupSocket, NetError> {
        check(group.ip(), &self.choice)?;
        let (feedback, buffer) = (Arc::clone(&self.feedback), self.udp.receive_buffer().asked);
        GroupSocket::with_feedback(feedback, group, self.membership, &self.choice, buffer)
    }

    /// Joins the same group with the same membership on the interface of `choice`. This can be another interface, or the same one
    /// after it was created again or got another address. The new socket sends feedback from the interface of `choice`.
    ///
    /// # Errors
    /// As [`GroupSocket::open`].
    pub fn open_again(&self, choice: &Choice) -> Result<GroupSocket, NetError> {
        let options = GroupOptions { receive_buffer: self.udp.receive_buffer().asked };
        let group = SocketAddr::new(self.group.ip(), self.group.port());
        GroupSocket::open(group, self.membership, choice, &options)
    }

    fn with_feedback(
        feedback: Arc<UnicastSocket>,
        group: SocketAddr,
        membership: Membership,
        choice: &Choice,
        receive_buffer: usize,
    ) -> Result<GroupSocket, NetError> {
        let udp = Udp::new(group.ip(), choice, receive_buffer)?;
        udp.socket().set_reuse_address(true).map_err(NetError::system("sharing the group's port"))?;
        sys::only_own_groups(udp.as_fd(), group.ip())
            .map_err(NetError::system("refusing other groups' packets"))?;
        let group = choice.here(group.ip(), group.port());
        udp.bind(group)?;
        let socket = GroupSocket { udp, feedback, group, membership, choice: choice.clone() };
        socket.join()?;
        Ok(socket)
    }

    /// Joins again after [`GroupSocket::leave`], or because routers have lost the membership.
    ///
    /// # Errors
    /// [`NetError::TooManyMemberships`], or [`NetError::System`].
    pub fn rejoin(&self) -> Result<(), NetError> {
        self.leave()?;
        self.join()
    }

    /// Leaves the group but keeps the socket. Does nothing if the socket has already left the group or the interface was removed.
    ///
    /// # Errors
    /// [`NetError::System`].
    pub fn leave(&self) -> Result<(), NetError> {
        match self.change(Change::Leave) {
            Err(e) if matches!(e.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::ENODEV)) => Ok(()),
            done => done.map_err(NetError::system("leaving a group")),
        }
    }

    fn join(&self) -> Result<(), NetError> {
        let group = self.group.ip();
        self.change(Change::Join).map_err(|e| match e.raw_os_error() {
            Some(libc::ENOBUFS) => NetError::TooManyMemberships { group },
            Some(libc::ENODEV) => NetError::NoMulticastRoute { group },
            _ => NetError::System { doing: "joining a group", source: e },
        })
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let source = match self.membership {
            Membership::AnySource => None,
            Membership::OnlyFrom(source) => Some(source),
        };
        sys::membership(self.udp.as_fd(), self.choice.chosen.index, self.group, source, change)
    }

    /// Receives the waiting datagrams and returns their number, which may be 0.
    ///
    /// # Errors
    /// [`NetError::ControlTruncated`], or [`NetError::System`].
    pub fn receive(&self, batch: &mut Batch) -> Result<usize, NetError> {
        self.udp.receive(batch, self.group)
    }

    /// Sends one datagram of feedback to `to`, from [`GroupSocket::feedback`].
    ///
    /// # Errors
    /// As [`UnicastSocket::send_to`].
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> Result<SendOutcome, NetError> {
        self.feedback.send_to(bytes, to)
    }

    /// Returns the socket that sends feedback and receives answers to it.
    pub fn feedback(&self) -> &UnicastSocket {
        &self.feedback
    }

    /// Returns the fill level of the receive buffer, and the number of dropped datagrams.
    ///
    /// # Errors
    /// [`NetError::System`].
    pub fn backlog(&self) -> Result<Backlog, NetError> {
        self.udp.backlog()
    }

    /// Returns the requested and the granted size of the receive buffer.
    pub fn receive_buffer(&self) -> Granted {
        self.udp.receive_buffer()
    }

    /// Returns the group's address and port.
    pub fn group(&self) -> SocketAddr {
        self.group
    }

    /// Returns the accepted sources.
    pub fn membership(&self) -> Membership {
        self.membership
    }

    /// Returns the interface in use.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }
}

/// The descriptor of the socket for the group's packets. The feedback socket ([`GroupSocket::feedback`]) has its own descriptor.
impl AsFd for GroupSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}
