//! Where a receiver hears a session: in its groups, or from a parent that serves it by unicast.

use super::{Events, Groups, Moves, Outage, Sockets, Uplink, Watcher, emit_opened};
use faircast_core::time::Time;
use faircast_net::{GroupOptions, GroupSocket, Membership, Meta, SourceOptions, choose};
use faircast_transport::endpoint::{Backlog, Endpoint, Transmit};
use faircast_transport::error::Error;
use faircast_transport::event::Event;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// A group that could not be joined is tried again after this.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The sockets of a receiver.
pub(crate) enum ReceiverSockets {
    /// It has joined groups.
    Groups(Groups),
    /// It has attached to a parent, and hears its session's group as well while it wants to (an agent's child).
    Parent {
        /// To the parent.
        uplink: Uplink,
        /// The group.
        group: Box<GroupBeside>,
    },
}

/// A group that is joined and left as the endpoint wants.
pub(crate) struct GroupBeside {
    pub(crate) group: SocketAddr,
    pub(crate) interface: Option<String>,
    pub(crate) membership: Membership,
    pub(crate) options: GroupOptions,
    pub(crate) idle_timeout: Duration,
    pub(crate) joined: Option<Groups>,
    /// When it could not be joined, and why.
    pub(crate) failed: Option<(Instant, Error)>,
}

/// Where a session is heard.
pub(crate) struct Listening<'a> {
    pub(crate) group: SocketAddr,
    pub(crate) interface: Option<String>,
    /// Other addresses are not heard.
    pub(crate) source: Option<IpAddr>,
    pub(crate) idle_timeout: Duration,
    /// Bytes of receive buffer to ask for.
    pub(crate) buffer: usize,
    /// Served by one of these in place of the group.
    pub(crate) parents: &'a [SocketAddr],
    /// Wait here until a source invites, in place of the group.
    pub(crate) invited: Option<SocketAddr>,
}

impl Listening<'_> {
    /// Join the group, or open a socket towards the first parent.
    ///
    /// # Errors
    /// When there is no such interface, or the system refuses.
    pub(crate) fn open(self, events: &mut dyn FnMut(Event)) -> Result<ReceiverSockets, Error> {
        let options = SourceOptions { receive_buffer: self.buffer, ..SourceOptions::default() };
        let uplink = match (self.invited, self.parents.first()) {
            (Some(at), _) => Some((at, Uplink::listen(at, options, self.idle_timeout)?)),
            (None, Some(&parent)) => {
                // A relay that is found may be anywhere that queries come to.
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

    /// Be joined, or not.
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
    /// The outcome of a session: when nothing was heard because the network is gone, that is the error.
    ///
    /// # Errors
    /// Those of the report, or why the network is gone.
    pub(crate) fn explain<T>(&mut self, report: Result<T, Error>) -> Result<T, Error> {
        match self {
            ReceiverSockets::Groups(groups) => groups.explain(report),
            ReceiverSockets::Parent { uplink, group } => {
                let gone = uplink.take_error().or(group.failed.take().map(|(_, error)| error));
                match (report, gone) {
                    (Err(error), Some(gone)) if error.may_be_the_network() => Err(gone),
                    (report, _) => report,
                }
            }
        }
    }

    /// The group that is heard beside a parent.
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

    fn receive(&mut self, each: &mut dyn FnMut(&mut [u8], Meta)) -> Result<usize, Error> {
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
