//! The endpoint: one session at one host, without sockets or a clock.
//!
//! The driver of an endpoint delivers datagrams and the time, sends the endpoint's packets, and joins its groups. The driver is
//! `faircast-driver` with sockets, or a test with a virtual network.
//!
//! ```text
//!   handle_datagram(..)            poll_transmit(..) until None   -> datagrams to a group or a host
//!   handle_timeout(now)     --->   poll_event() until None        -> what is to be told
//!   handle_host_event(..)          groups(), accepts(now)         -> what sockets are to be read
//!                                  poll_timeout(now)              -> when to call handle_timeout
//! ```
//!
//! Any of these calls may change the polled values. Unnecessary calls are harmless.

use crate::event::Event;
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use std::fmt;
use std::net::SocketAddr;

/// A datagram that has arrived at this host.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The payload, which is decrypted in place.
    pub bytes: &'a mut [u8],
    /// Address of the sender.
    pub from: SocketAddr,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Time at which the kernel received the datagram; not later than the present.
    pub arrived: Time,
}

/// Description of datagrams to send, which are contiguous in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Size of each datagram in bytes; the last one may be shorter.
    pub segment: usize,
    /// The destination: a group or a host.
    pub to: SocketAddr,
    /// Time to live: the maximum number of routers on the path to a group, plus one. `None`: the socket's default.
    pub hops: Option<u8>,
}

/// Fill of a socket's buffer, in the kernel's units (`SO_MEMINFO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Bytes of kernel memory in use, including the kernel's own overhead.
    pub used: u64,
    /// Maximum bytes of kernel memory.
    pub capacity: u64,
    /// Number of datagrams dropped so far because the buffer was full.
    pub dropped: u64,
}

/// An event at the host.
#[derive(Clone, Copy)]
pub enum HostEvent<'a> {
    /// State of this endpoint's socket buffers: the fill of the buffer of the base group, and the number of drops at all sockets.
    Backlog(Backlog),
    /// All arrived datagrams have been handled, so that collected data can be written now.
    Drained,
    /// The network has changed, or has recovered from a failure.
    NetworkChanged {
        /// New address from which a source sends its packets.
        local: Option<SocketAddr>,
    },
    /// One of [`Endpoint::groups`] could not be joined.
    JoinFailed {
        /// Index of this group in `Endpoint::groups`.
        place: usize,
        /// Reason of the failure.
        why: &'a dyn fmt::Display,
    },
}

/// A session at one host.
pub trait Endpoint {
    /// Handles a datagram. Damaged, forged and foreign datagrams are counted and have no other effect.
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time);

    /// Runs the work that is due.
    fn handle_timeout(&mut self, now: Time);

    /// Handles an event at the host.
    fn handle_host_event(&mut self, _notice: HostEvent<'_>, _now: Time) {}

    /// Empties `out`, and writes into it packets that must be sent now. Returns `None` if there are no packets.
    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit>;

    /// Returns the time of the next call of [`Endpoint::handle_timeout`]: not later than `now` if packets are to be sent.
    fn poll_timeout(&self, now: Time) -> Time;

    /// Returns the oldest pending event.
    fn poll_event(&mut self) -> Option<Event>;

    /// Returns the groups to join in addition to the session's own group, in the order of joining.
    fn groups(&self) -> &[SocketAddr] {
        &[]
    }

    /// Whether an endpoint with a parent must also join the session's own group.
    fn receives_group(&self) -> bool {
        false
    }

    /// Whether datagrams are accepted. If not, leave datagrams in the sockets for now: the reader of this endpoint's output is
    /// slower than the input.
    fn accepts(&mut self, _now: Time) -> bool {
        true
    }

    /// Returns the duration for which the source that this receiver follows has been silent; `None` at a source, and while no
    /// source is followed.
    fn silence(&self, _now: Time) -> Option<Span> {
        None
    }

    /// Ends the session early and notifies its peers.
    fn stop(&mut self, now: Time);

    /// Whether all work is done. Call this method after sending the datagrams of [`Endpoint::poll_transmit`].
    fn is_finished(&self) -> bool;
}
