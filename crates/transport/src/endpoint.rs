//! The endpoint: one session at one host, without sockets and without a clock.
//!
//! Its driver delivers datagrams and the time, sends its packets, and joins the groups that it wants: `faircast-driver` with sockets, tests
//! with a virtual network.
//!
//! ```text
//!   handle_datagram(..)            poll_transmit(..) until None   -> datagrams to a group or a host
//!   handle_timeout(now)     --->   poll_event() until None        -> what is to be told
//!   handle_host_event(..)          groups(), accepts(now)         -> what sockets are to be read
//!                                  poll_timeout(now)              -> when to call handle_timeout
//! ```
//!
//! After each call the polled values may have changed. Unnecessary calls are harmless.

use crate::event::Event;
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use std::fmt;
use std::net::SocketAddr;

/// A datagram that has reached this host.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Its payload. It is decrypted in place.
    pub bytes: &'a mut [u8],
    /// Sender's address.
    pub from: SocketAddr,
    /// The congestion mark of its IP header.
    pub ecn: Ecn,
    /// When the kernel received it: not after the present.
    pub arrived: Time,
}

/// Datagrams to send: in the caller's buffer, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Bytes of each of them; the last may be shorter.
    pub segment: usize,
    /// The group or host that they go to.
    pub to: SocketAddr,
    /// Time to live: the number of routers on the path to a group, plus one, if it differs from the socket's.
    pub hops: Option<u8>,
}

/// How full the buffer of a socket is, in the kernel's own units (`SO_MEMINFO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Bytes of kernel memory in use, the kernel's own overhead included.
    pub used: u64,
    /// Bytes of kernel memory allowed.
    pub capacity: u64,
    /// Datagrams dropped so far because the buffer was full.
    pub dropped: u64,
}

/// An event at the host.
#[derive(Clone, Copy)]
pub enum HostEvent<'a> {
    /// The buffers of this endpoint's sockets: fill of the base group's, drops of all.
    Backlog(Backlog),
    /// All arrived datagrams were handled: a good moment to write collected data.
    Drained,
    /// The network has changed, or is back after it was gone.
    NetworkChanged {
        /// Where the packets of a source leave from now.
        local: Option<SocketAddr>,
    },
    /// One of [`Endpoint::groups`] could not be joined.
    JoinFailed {
        /// Its place among them.
        place: usize,
        /// Why not.
        why: &'a dyn fmt::Display,
    },
}

/// A session at one host.
pub trait Endpoint {
    /// A datagram has arrived. Damaged, forged and foreign ones are counted and change nothing.
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time);

    /// Time has passed.
    fn handle_timeout(&mut self, now: Time);

    /// Handles an event at the host.
    fn handle_host_event(&mut self, _notice: HostEvent<'_>, _now: Time) {}

    /// Writes the packets to send now to `out`, which is emptied first; `None`: no packets.
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit>;

    /// When [`Endpoint::handle_timeout`] wants to be called next, whatever arrives. Not after `now` if it wants to send.
    fn poll_timeout(&self, now: Time) -> Time;

    /// Something worth telling, the oldest first.
    fn poll_event(&mut self) -> Option<Event>;

    /// Returns the groups to join besides the session's own, in the order in which they are joined.
    fn groups(&self) -> &[SocketAddr] {
        &[]
    }

    /// Whether an endpoint with a parent also wants the session's own group.
    fn receives_group(&self) -> bool {
        false
    }

    /// Whether datagrams are accepted. If not, leave them in the sockets for a moment: the reader of this endpoint's output is slower than
    /// the input.
    fn accepts(&mut self, _now: Time) -> bool {
        true
    }

    /// Returns for how long the followed source has been silent; `None` for a source, and while no source is followed.
    fn silence(&self, _now: Time) -> Option<Span> {
        None
    }

    /// Ends early, and notifies the peers.
    fn stop(&mut self, now: Time);

    /// Whether all work is done; call it after the datagrams of [`Endpoint::poll_transmit`] were sent.
    fn is_finished(&self) -> bool;
}
