//! Sockets of a receiver: for its groups, or for a parent that serves it by unicast.

use super::{Events, Groups, Moves, Outage, Sockets, Uplink, Watcher, emit_opened, explained};
use faircast_core::time::Time;
use faircast_net::{GroupOptions, GroupSocket, Membership, Meta, SourceOptions, choose};
use faircast_transport::endpoint::{Backlog, Endpoint, Transmit};
use faircast_transport::error::Error;
use faircast_transport::event::Event;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Pause before another attempt to join a group.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The sockets of a receiver.
pub(crate) enum ReceiverSockets {
    /// Sockets of joined groups.
    Groups(Groups),
    /// Sockets of a receiver with a parent. An agent's child also joins the session's group.
    Parent {
        /// Socket to the parent.
        uplink: Uplink,
        /// The session's group.
        group: Box<GroupBeside>,
    },
}

/// A group that is joined and left as the endpoint requires.
pub(crate) struct GroupBeside {
    pub(crate) group: SocketAddr,
    pub(crate) interface: Option<String>,
    pub(crate) membership: Membership,
    pub(crate) options: GroupOptions,
    pub(crate) idle_timeout: Duration,
    pub(crate) joined: Option<Groups>,
    /// Time and reason of the latest failure to join.
    pub(crate) failed: Option<(Instant, Error)>,
}

/// Group or parents of a receiver, and options of its sockets.
pub(crate) struct Listening<'a> {
    pub(crate) group: SocketAddr,
    pub(crate) interface: Option<String>,
    /// The only address from which packets are accepted.
    pub(crate) source: Option<IpAddr>,
    pub(crate) idle_timeout: Duration,
    /// Requested size of the receive buffer, bytes.
    pub(crate) buffer: usize,
    /// Possible parents; if any are given, they replace the group.
    pub(crate) parents: &'a [SocketAddr],
    /// Local address at which the receiver waits for an invitation from a source. If it is set, the receiver joins no group.
    pub(crate) invited: Option<SocketAddr>,
}

impl Listening<'_> {
    /// Joins the group, or opens a socket to the first parent.
    ///
    /// # Errors
    /// If there is no such interface, or the system cannot open the socket.
    pub(crate) fn open(self, events: &mut dyn FnMut(Event)) -> Result<ReceiverSockets, Error> {
        let options = SourceOptions { receive_buffer: self.buffer, ..SourceOptions::default() };
        // A source without feedback may send to the address of this host instead of to a group.
        let own = (self.parents.is_empty() && !self.group.ip().is_multicast()).then_some(self.group);
        let uplink = match (self.invited.or(own), self.parents.first()) {
            (Some(at), _) => Some((at, Uplink::listen(at, options, self.idle_timeout)?)),
            (None, Some(&parent)) => {
                // The parent may be a relay that is found by a search. So the local address may change.
                let uplink = Uplink::open(
                    parent,
                    self.interface.clone(),
                    options,
                    self.idle_timeout,
                    Moves::Anywhere,
                )?;
                Some((parent, uplink.hearing_data()))
            }
            (None, None) => None,
        };
        if let Some((place, uplink)) = uplink {
            emit_opened(place, uplink.choice(), events);
            uplink.warning().into_iter().for_each(|warning| events(Event::warning(warning)));
            let group = GroupBeside {
                group: self.group,
                interface: self.interface,
                membership: self.source.map_or(Membership::AnySource, Membership::OnlyFrom),
                options: GroupOptions { receive_buffer: self.buffer },
                idle_timeout: self.idle_timeout,
                joined: None,
                failed: None,
            };
            return Ok(ReceiverSockets::Parent { uplink, group: Box::new(group) });
        }
        let choice = choose(self.group.ip(), self.interface.as_deref())?;
        let outage = Outage::of_listener(self.group.ip(), self.interface, self.idle_timeout);
        let membership = self.source.map_or(Membership::AnySource, Membership::OnlyFrom);
        let options = GroupOptions { receive_buffer: self.buffer };
        let socket = GroupSocket::open(self.group, membership, &choice, &options)?;
        emit_opened(self.group, &choice, events);
        socket.receive_buffer().warning().into_iter().for_each(|warning| events(Event::warning(warning)));
        Ok(ReceiverSockets::Groups(Groups::new(socket, outage)))
    }
}

impl GroupBeside {
    fn open(&self) -> Result<Groups, Error> {
        let choice = choose(self.group.ip(), self.interface.as_deref())?;
        let outage = Outage::of_listener(self.group.ip(), self.interface.clone(), self.idle_timeout);
        let socket = GroupSocket::open(self.group, self.membership, &choice, &self.options)?;
        Ok(Groups::new(socket, outage))
    }

    /// Joins or leaves the group.
    fn follow(&mut self, wanted: bool) {
        if !wanted {
            self.joined = None;
            return;
        }
        let waits = self.failed.as_ref().is_some_and(|(at, _)| at.elapsed() < AGAIN_AFTER);
        if self.joined.is_some() || waits {
            return;
        }
        match self.open() {
            Ok(groups) => (self.joined, self.failed) = (Some(groups), None),
            Err(error) => self.failed = Some((Instant::now(), error)),
        }
    }
}

impl ReceiverSockets {
    /// Closes the sockets, and returns the result of a session. If an outage of the network prevented reception, returns the
    /// outage as the error. To end a session takes time if its disk is slow, and nobody reads the sockets meanwhile.
    ///
    /// # Errors
    /// Errors of the report, or the outage of the network.
    pub(crate) fn explain<T>(self, report: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let gone = match self {
            ReceiverSockets::Groups(groups) => groups.close(),
            ReceiverSockets::Parent { mut uplink, mut group } => {
                uplink.take_error().or(group.failed.take().map(|(_, error)| error))
            }
        };
        explained(report(), gone)
    }

    /// Returns the group that is joined in addition to a parent.
    const fn beside(&self) -> Option<&Groups> {
        match self {
            ReceiverSockets::Parent { group, .. } => group.joined.as_ref(),
            ReceiverSockets::Groups(_) => None,
        }
    }

    const fn beside_mut(&mut self) -> Option<&mut Groups> {
        match self {
            ReceiverSockets::Parent { group, .. } => group.joined.as_mut(),
            ReceiverSockets::Groups(_) => None,
        }
    }

    fn sockets(&self) -> &dyn Sockets {
        match self {
            ReceiverSockets::Groups(groups) => groups,
            ReceiverSockets::Parent { uplink, .. } => uplink,
        }
    }

    fn sockets_mut(&mut self) -> &mut dyn Sockets {
        match self {
            ReceiverSockets::Groups(groups) => groups,
            ReceiverSockets::Parent { uplink, .. } => uplink,
        }
    }
}

impl Sockets for ReceiverSockets {
    fn look(&mut self, endpoint: &mut dyn Endpoint, now: Time, events: Events<'_>) -> Result<(), Error> {
        if let Some(groups) = self.beside_mut() {
            groups.look(endpoint, now, events)?;
        }
        self.sockets_mut().look(endpoint, now, events)
    }

    fn receive(&mut self, each: &mut dyn FnMut(&mut [u8], &Meta)) -> Result<usize, Error> {
        let beside = match self.beside_mut() {
            Some(groups) => groups.receive(each)?,
            None => 0,
        };
        Ok(beside + self.sockets_mut().receive(each)?)
    }

    fn reads_on(&self) -> bool {
        self.sockets().reads_on()
    }

    fn backlog(&self) -> Result<Option<Backlog>, Error> {
        match self.beside() {
            Some(groups) => groups.backlog(),
            None => self.sockets().backlog(),
        }
    }

    fn follow(&mut self, endpoint: &mut dyn Endpoint, now: Time) {
        match self {
            ReceiverSockets::Parent { group, .. } => group.follow(endpoint.receives_group()),
            ReceiverSockets::Groups(groups) => groups.follow(endpoint, now),
        }
    }

    fn send(&mut self, bytes: &mut Vec<u8>, transmit: Transmit, events: Events<'_>) -> Result<(), Error> {
        self.sockets_mut().send(bytes, transmit, events)
    }

    fn flush(&mut self, events: Events<'_>) -> Result<(), Error> {
        self.sockets_mut().flush(events)
    }

    fn holds(&self) -> bool {
        self.sockets().holds()
    }

    fn until(&self, moment: Instant) -> Instant {
        self.sockets().until(moment)
    }

    fn watch(&self, watcher: &mut dyn Watcher) {
        if let Some(groups) = self.beside() {
            groups.watch(watcher);
        }
        self.sockets().watch(watcher);
    }
}
