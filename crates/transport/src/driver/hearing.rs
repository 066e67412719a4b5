//! Where a receiver hears a session: in its groups, or from a parent that serves it by unicast.

use super::{Events, Groups, Sockets, Uplink, Watcher};
use crate::endpoint::{Backlog, Endpoint, Transmit};
use crate::error::Error;
use faircast_core::time::Time;
use faircast_net::Meta;
use std::time::Instant;

/// The sockets of a receiver.
pub(crate) enum Hearing {
    /// It has joined groups.
    Groups(Groups),
    /// It has attached to a parent.
    Parent(Uplink),
}

impl Hearing {
    /// What came of a session: when nothing was heard because the network is gone, that is what is wrong.
    ///
    /// # Errors
    /// Those of the report, or why the network is gone.
    pub(crate) fn explain<T>(&mut self, report: Result<T, Error>) -> Result<T, Error> {
        match self {
            Hearing::Groups(groups) => groups.explain(report),
            Hearing::Parent(uplink) => match (report, uplink.take_error()) {
                (Err(error), Some(gone)) if error.may_be_the_network() => Err(gone),
                (report, _) => report,
            },
        }
    }

    fn sockets(&self) -> &dyn Sockets {
        match self {
            Hearing::Groups(groups) => groups,
            Hearing::Parent(uplink) => uplink,
        }
    }

    fn sockets_mut(&mut self) -> &mut dyn Sockets {
        match self {
            Hearing::Groups(groups) => groups,
            Hearing::Parent(uplink) => uplink,
        }
    }
}

impl Sockets for Hearing {
    fn look(&mut self, endpoint: &mut dyn Endpoint, now: Time, events: Events<'_>) -> Result<(), Error> {
        self.sockets_mut().look(endpoint, now, events)
    }

    fn receive(&mut self, each: &mut dyn FnMut(&mut [u8], Meta)) -> Result<usize, Error> {
        self.sockets_mut().receive(each)
    }

    fn reads_on(&self) -> bool {
        self.sockets().reads_on()
    }

    fn backlog(&self) -> Result<Option<Backlog>, Error> {
        self.sockets().backlog()
    }

    fn follow(&mut self, endpoint: &mut dyn Endpoint, now: Time) {
        self.sockets_mut().follow(endpoint, now);
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
        self.sockets().watch(watcher);
    }
}
