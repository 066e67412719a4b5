//! The endpoint: one session at one host, without sockets and without a clock.
//!
//! Whoever drives it gives it datagrams and the present, sends what it wants sent, and is in the groups that it wants to
//! be in: `faircast-driver` does so with sockets, tests do so with a network in virtual time.
//!
//! ```text
//!   handle_datagram(..)            poll_transmit(..) until None   -> datagrams to a group or a host
//!   handle_timeout(now)     --->   poll_event() until None        -> what is to be told
//!   handle_notice(..)              groups(), accepts(now)         -> what sockets are to be read
//!                                  poll_timeout(now)              -> when to call handle_timeout
//! ```
//!
//! After each call what it polls may be different. Calls that were not needed do no harm.

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
    /// Who sent it.
    pub from: SocketAddr,
    /// The congestion mark of its IP header.
    pub ecn: Ecn,
    /// When the kernel received it: not after the present.
    pub arrived: Time,
}

/// What is to leave: datagrams in the buffer that was given, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Bytes of each of them; the last may be shorter.
    pub segment: usize,
    /// The group or host that they go to.
    pub to: SocketAddr,
    /// How many routers they may pass on the way to a group, plus one, where that is not what the socket is set to.
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

/// What the host has to say.
#[derive(Clone, Copy)]
pub enum Notice<'a> {
    /// The buffers of this endpoint's sockets: fill of the base group's, drops of all.
    Backlog(Backlog),
    /// All that has arrived was handled: a good moment to write what was collected.
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

    /// The host has something to say.
    fn handle_notice(&mut self, _notice: Notice<'_>, _now: Time) {}

    /// What is to leave now goes into `out`, which is emptied first; `None` when nothing is.
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit>;

    /// When [`Endpoint::handle_timeout`] wants to be called next, whatever arrives. Not after `now` if it wants to send.
    fn poll_timeout(&self, now: Time) -> Time;

    /// Something worth telling, the oldest first.
    fn poll_event(&mut self) -> Option<Event>;

    /// The groups that datagrams are wanted from besides the session's own, in the order in which they are joined.
    fn groups(&self) -> &[SocketAddr] {
        &[]
    }

    /// Whether the session's own group is wanted as well, by one that has a parent.
    fn hears_group(&self) -> bool {
        false
    }

    /// Whether datagrams are taken. If not, leave them in the sockets for a moment: whoever reads this endpoint's output is
    /// slower than what comes.
    fn accepts(&mut self, _now: Time) -> bool {
        true
    }

    /// For how long nothing has come from the source that it follows; `None` while it follows none, or is a source.
    fn silence(&self, _now: Time) -> Option<Span> {
        None
    }

    /// End early, and tell the others.
    fn stop(&mut self, now: Time);

    /// Whether nothing is left to do. What still waits in [`Endpoint::poll_transmit`] was sent before.
    fn is_over(&self) -> bool;
}
