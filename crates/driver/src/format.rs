//! Foreign wire formats: what they declare ([`Format`]), and what their sessions need of this host: sockets, a clock, random numbers, and
//! the loop.
//!
//! A format's crate implements [`Endpoint`] for a source and for a receiver. To run one of them on sockets it asks a [`Host`] for
//! [`SourceSockets`] or [`ReceiverSockets`], makes the endpoint from what they say (address, size of datagrams), and has them run it until
//! its end.

mod declared;

use crate::run::{Clock, Groups, Moves, Outage, Uplink, emit_opened, run_one};
use crate::stop::Stop;
use faircast_core::time::Time;
use faircast_net::{GroupOptions, GroupSocket, Membership, Port, SourceOptions, choose};
use faircast_transport::config::{IDLE_TIMEOUT, KeepPartial, RECEIVE_BUFFER, default_group};
use faircast_transport::datagram;
use faircast_transport::endpoint::{Backlog, Endpoint, HostEvent};
use faircast_transport::error::Error;
use faircast_transport::event::Event;
use faircast_transport::object::partial_transfers::tidied;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

pub use declared::{
    Declaration, Ends, Feature, Format, FormatOption, Given, Outcome, ReceiverRequest, Refused,
    SourceRequest, Values,
};
pub use faircast_host::pipe::Pipe;
pub use faircast_transport::config::span;
pub use faircast_transport::object::host::quota::Quota;
pub use faircast_transport::system::random;

/// An endpoint that has something to say in the end.
pub trait Reporting: Endpoint + Send {
    /// How its session ended.
    type Report;

    /// How the session ended. Called once, also when the sockets have failed: what is not whole is cleaned up here.
    ///
    /// # Errors
    /// Why it failed.
    fn report(self) -> Result<Self::Report, Error>;
}

/// The host that a session runs on: its clock, and the receiver of its events.
pub struct Host<'a> {
    clock: Clock,
    events: &'a mut dyn FnMut(Event),
    stop: &'a Stop,
}

/// Where a source sends, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourcePlace {
    /// Group address and port.
    pub group: SocketAddr,
    /// Interface by name or address; chosen by route when `None`.
    pub interface: Option<String>,
    /// Time to live of the packets.
    pub ttl: u8,
    /// How long the network may be gone.
    pub idle_timeout: Duration,
    /// Largest UDP datagram; from the interface's MTU (at most 1500) when `None`.
    pub datagram: Option<u16>,
}

impl Default for SourcePlace {
    /// [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP) by the interface of the route to it, in the own network, with an idle timeout of 60 s.
    fn default() -> SourcePlace {
        SourcePlace {
            group: default_group(),
            interface: None,
            ttl: 1,
            idle_timeout: IDLE_TIMEOUT,
            datagram: None,
        }
    }
}

/// Where a receiver listens, and for how long.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReceiverPlace {
    /// Group address and port.
    pub group: SocketAddr,
    /// Interface by name or address; chosen by route when `None`.
    pub interface: Option<String>,
    /// Accept packets from this source only.
    pub source: Option<IpAddr>,
    /// Gives up when no session is received for this long; waits without limit when `None`.
    pub join_timeout: Option<Duration>,
    /// Gives up when a session that was received is silent for this long.
    pub idle_timeout: Duration,
    /// Receive buffer of each socket, in bytes.
    pub buffer: usize,
}

impl Default for ReceiverPlace {
    /// [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP) by the interface of the route to it, from any source: wait for a session for ever,
    /// and 60 s for its source.
    fn default() -> ReceiverPlace {
        ReceiverPlace {
            group: default_group(),
            interface: None,
            source: None,
            join_timeout: None,
            idle_timeout: IDLE_TIMEOUT,
            buffer: RECEIVE_BUFFER,
        }
    }
}

/// The socket of a source.
pub struct SourceSockets {
    uplink: Uplink,
    /// The address that packets leave from. It stays: a network that gives the host another one ends the session.
    pub local: IpAddr,
    /// Bytes of the largest datagram.
    pub datagram: usize,
    /// Bytes of the IP and UDP headers of each.
    pub overhead: usize,
}

/// The sockets of a receiver, one for each group that its endpoint wants to be in.
pub struct ReceiverSockets {
    groups: Groups,
    /// The address of this host on the interface.
    pub local: IpAddr,
    /// Bytes of the IP and UDP headers of each datagram.
    pub overhead: usize,
}

impl<'a> Host<'a> {
    /// This host from now on. `events` receives the events, and `stop` ends the session early.
    pub fn new(events: &'a mut dyn FnMut(Event), stop: &'a Stop) -> Host<'a> {
        Host { clock: Clock::start(), events, stop }
    }

    /// Session time.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Seconds from 1970 to the start of session time.
    pub fn unix_secs(&self) -> u64 {
        self.clock.unix_secs()
    }

    /// Report an event.
    pub fn emit(&mut self, event: Event) {
        (self.events)(event);
    }

    /// Open the socket of a source. `port` is the one that answers come to.
    ///
    /// # Errors
    /// When there is no such interface, its MTU is too small, or the system refuses.
    pub fn source(&mut self, place: &SourcePlace, port: Option<u16>) -> Result<SourceSockets, Error> {
        let group = place.group;
        let options = SourceOptions { ttl: place.ttl, ..SourceOptions::default() };
        let options = match port {
            Some(port) => SourceOptions { port: Port::Fixed(port), ..options },
            None => options,
        };
        let uplink =
            Uplink::open(group, place.interface.clone(), options, place.idle_timeout, Moves::Nowhere)?;
        emit_opened(group, uplink.choice(), self.events);
        if port.is_some() {
            uplink.warning().into_iter().for_each(|warning| self.emit(Event::warning(warning)));
        }
        let (local, overhead) = (uplink.choice().local, datagram::overhead(group));
        let datagram = datagram::largest(place.datagram, uplink.choice(), group)?;
        Ok(SourceSockets { uplink, local, datagram, overhead })
    }

    /// Open the socket of a receiver and join its group.
    ///
    /// # Errors
    /// When there is no such interface, or the system refuses.
    pub fn receiver(&mut self, place: &ReceiverPlace) -> Result<ReceiverSockets, Error> {
        let group = place.group;
        let choice = choose(group.ip(), place.interface.as_deref())?;
        let outage = Outage::of_listener(group.ip(), place.interface.clone(), place.idle_timeout);
        let membership = place.source.map_or(Membership::AnySource, Membership::OnlyFrom);
        let options = GroupOptions { receive_buffer: place.buffer };
        let socket = GroupSocket::open(group, membership, &choice, &options)?;
        emit_opened(group, &choice, self.events);
        socket.receive_buffer().warning().into_iter().for_each(|warning| self.emit(Event::warning(warning)));
        let groups = Groups::new(socket, outage);
        Ok(ReceiverSockets { groups, local: choice.local, overhead: datagram::overhead(group) })
    }

    /// Let go of what is unfinished in an output directory beyond what is to be kept, and report it.
    pub fn tidy(&mut self, out: &Path, keep: KeepPartial) {
        tidied(out, keep, None).into_iter().for_each(|said| self.emit(Event::warning(said)));
    }
}

impl SourceSockets {
    /// Run the endpoint until it is over.
    ///
    /// # Errors
    /// Those of the sockets and of the endpoint's report.
    pub fn run<E: Reporting>(mut self, mut endpoint: E, host: Host<'_>) -> Result<E::Report, Error> {
        run_one(&mut endpoint, &mut self.uplink, &host.clock, host.events, host.stop)?;
        endpoint.report()
    }
}

impl ReceiverSockets {
    /// Runs the endpoint until it is over. When nothing was received because the network is gone, that is the error.
    ///
    /// # Errors
    /// Those of the sockets and of the endpoint's report.
    pub fn run<E: Reporting>(mut self, mut endpoint: E, host: Host<'_>) -> Result<E::Report, Error> {
        let run = run_one(&mut endpoint, &mut self.groups, &host.clock, host.events, host.stop);
        let backlog = Backlog { dropped: self.groups.dropped(), ..Backlog::default() };
        endpoint.handle_host_event(HostEvent::Backlog(backlog), host.clock.now());
        let report = endpoint.report();
        run?;
        self.groups.explain(report)
    }
}
