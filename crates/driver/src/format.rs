//! Foreign wire formats: the declaration of a format ([`Format`]), and the services of this host for sessions in such a format.
//! The services are sockets, a clock, random numbers, and the loop.
//!
//! The crate of a format implements [`Endpoint`] for a source and for a receiver. To run an endpoint, it first opens
//! [`SourceSockets`] or [`ReceiverSockets`] on a [`Host`]. It then creates the endpoint with the local address and the datagram
//! overhead of these sockets, and passes the endpoint to their `run` method.

mod declared;

use crate::run::{Clock, Groups, Moves, Outage, Uplink, emit_opened, explained, run_one};
use crate::stop::Stop;
use faircast_core::rate::Bounds;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Time};
use faircast_net::{GroupOptions, GroupSocket, Membership, Port, SourceOptions, choose};
use faircast_transport::config::{IDLE_TIMEOUT, KeepPartial, RECEIVE_BUFFER, ReceiverEvents, default_group};
use faircast_transport::datagram;
use faircast_transport::endpoint::{Backlog, Endpoint, HostEvent};
use faircast_transport::error::Error;
use faircast_transport::event::{Event, TransferName};
use faircast_transport::object::partial_transfers::tidied;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

pub use declared::{
    Declaration, Ends, Feature, Format, FormatOption, Given, Outcome, ReceiverRequest, Refused,
    SourceRequest, Values,
};
pub use faircast_host::pipe::{Feeder, Pipe};
pub use faircast_transport::config::span;
pub use faircast_transport::object::host::quota::Quota;
pub use faircast_transport::system::random;

/// An endpoint that returns a report when it has finished.
pub trait Reporting: Endpoint + Send {
    /// Report of a finished session.
    type Report;

    /// Returns the report of the session and removes incomplete content. Called once, even after a socket error.
    ///
    /// # Errors
    /// The reason for the failure of the session.
    fn report(self) -> Result<Self::Report, Error>;
}

/// Returns the limits of a source's rate: those of its scheme, and those that a user has set.
pub fn bounds(scheme: &Scheme, min: Option<Rate>, max: Option<Rate>) -> Bounds {
    let own = scheme.bounds();
    let min = min.map_or(own.min, |min| min.max(own.min));
    Bounds { min, max: max.unwrap_or(own.max).max(min) }
}

/// The host of a session: its clock, and the callback for events.
pub struct Host<'a> {
    clock: Clock,
    events: &'a mut dyn FnMut(Event),
    stop: &'a Stop,
}

/// Destination of a source's packets, and options of its socket.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourcePlace {
    /// Group address and port.
    pub group: SocketAddr,
    /// Name or address of the interface; `None` selects the interface of the route to the group.
    pub interface: Option<String>,
    /// Time to live of packets.
    pub ttl: u8,
    /// Maximum duration of an outage of the network; a longer outage ends the session.
    pub idle_timeout: Duration,
    /// Maximum size of a UDP datagram; `None` to derive it from the interface's MTU, at most 1500.
    pub datagram: Option<u16>,
    /// Whether the source reports the states of its receivers.
    pub receiver_events: ReceiverEvents,
}

impl Default for SourcePlace {
    /// Returns [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP) on the interface of its route, with a time to live of
    /// 1 and an idle timeout of 60 s.
    fn default() -> SourcePlace {
        SourcePlace {
            group: default_group(),
            interface: None,
            ttl: 1,
            idle_timeout: IDLE_TIMEOUT,
            datagram: None,
            receiver_events: ReceiverEvents::Off,
        }
    }
}

/// Group and interface of a receiver, and its timeouts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReceiverPlace {
    /// Group address and port.
    pub group: SocketAddr,
    /// Name or address of the interface; `None` selects the interface of the route to the group.
    pub interface: Option<String>,
    /// The only source from which packets are accepted.
    pub source: Option<IpAddr>,
    /// Time for which the receiver waits for a session; `None` to wait indefinitely.
    pub join_timeout: Option<Duration>,
    /// Duration of silence of the received session after which the receiver gives up.
    pub idle_timeout: Duration,
    /// Size of the receive buffer of each socket, bytes.
    pub buffer: usize,
}

impl Default for ReceiverPlace {
    /// Returns [`DEFAULT_GROUP`](faircast_transport::config::DEFAULT_GROUP) on the interface of its route, from any source. The
    /// receiver waits indefinitely for a session, and gives up when the session's source has been silent for 60 s.
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
    /// Source address of packets. It is fixed: the session ends if the host gets another address.
    pub local: IpAddr,
    /// Maximum size of a datagram, bytes.
    pub datagram: usize,
    /// Size of the IP and UDP headers of each datagram, bytes.
    pub overhead: usize,
}

/// The sockets of a receiver, one for each group that its endpoint joins.
pub struct ReceiverSockets {
    groups: Groups,
    /// The address of this host on the interface.
    pub local: IpAddr,
    /// Size of the IP and UDP headers of each datagram, bytes.
    pub overhead: usize,
}

impl<'a> Host<'a> {
    /// Starts session time. `events` receives the events, and `stop` ends the session early.
    pub fn new(events: &'a mut dyn FnMut(Event), stop: &'a Stop) -> Host<'a> {
        Host { clock: Clock::start(), events, stop }
    }

    /// Returns the session time.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Returns the start of session time, in seconds since 1970.
    pub fn unix_secs(&self) -> u64 {
        self.clock.unix_secs()
    }

    /// Reports an event.
    pub fn emit(&mut self, event: Event) {
        (self.events)(event);
    }

    /// Reports the content of a source, which has files but neither links nor directories.
    pub fn content(&mut self, transfer: String, files: usize, bytes: Option<u64>) {
        self.emit(Event::Content {
            transfer: TransferName::Foreign(transfer),
            files: files as u64,
            links: 0,
            directories: 0,
            bytes,
            resumed_bytes: 0,
        });
    }

    /// Opens the socket of a source. `port` is its local port, to which receivers answer.
    ///
    /// # Errors
    /// If there is no such interface, its MTU is too small, or the system cannot open the socket.
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

    /// Opens the socket of a source that receives at all addresses of this host, broadcast addresses included, and may send to
    /// broadcast addresses. It joins the groups of its endpoint.
    ///
    /// # Errors
    /// As [`Host::source`].
    pub fn source_everywhere(&mut self, place: &SourcePlace, port: u16) -> Result<SourceSockets, Error> {
        let options = SourceOptions {
            ttl: place.ttl,
            port: Port::Fixed(port),
            everywhere: true,
            ..SourceOptions::default()
        };
        let uplink =
            Uplink::open(place.group, place.interface.clone(), options, place.idle_timeout, Moves::Nowhere)?;
        self.opened(uplink, place)
    }

    /// Opens the socket of a receiver that receives at all addresses of this host, as [`Host::source_everywhere`]. The endpoint
    /// sends from the same port.
    ///
    /// # Errors
    /// As [`Host::receiver`].
    pub fn receiver_everywhere(&mut self, place: &ReceiverPlace, port: u16) -> Result<SourceSockets, Error> {
        let options = SourceOptions {
            ttl: 1,
            port: Port::Fixed(port),
            everywhere: true,
            receive_buffer: place.buffer,
            ..SourceOptions::default()
        };
        let (group, interface) = (place.group, place.interface.clone());
        let uplink = Uplink::open(group, interface, options, place.idle_timeout, Moves::Nowhere)?;
        self.opened(uplink.hearing_data(), &SourcePlace { group, ..SourcePlace::default() })
    }

    /// Reports that the socket of an endpoint is open.
    fn opened(&mut self, uplink: Uplink, place: &SourcePlace) -> Result<SourceSockets, Error> {
        emit_opened(place.group, uplink.choice(), self.events);
        uplink.warning().into_iter().for_each(|warning| self.emit(Event::warning(warning)));
        let (local, overhead) = (uplink.choice().local, datagram::overhead(place.group));
        let datagram = datagram::largest(place.datagram, uplink.choice(), place.group)?;
        Ok(SourceSockets { uplink, local, datagram, overhead })
    }

    /// Opens the socket of a receiver and joins its group.
    ///
    /// # Errors
    /// If there is no such interface, or the system cannot open the socket.
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

    /// Removes incomplete content beyond the limits of `keep` from an output directory, and reports the removal as a warning.
    pub fn tidy(&mut self, out: &Path, keep: KeepPartial) {
        tidied(out, keep, None).into_iter().for_each(|message| self.emit(Event::warning(message)));
    }
}

impl SourceSockets {
    /// Runs the endpoint until it has finished.
    ///
    /// # Errors
    /// Errors of the sockets and of the endpoint's report.
    pub fn run<E: Reporting>(mut self, mut endpoint: E, host: Host<'_>) -> Result<E::Report, Error> {
        run_one(&mut endpoint, &mut self.uplink, &host.clock, host.events, host.stop)?;
        let backlog = Backlog { dropped: self.uplink.dropped(), ..Backlog::default() };
        endpoint.handle_host_event(HostEvent::Backlog(backlog), host.clock.now());
        endpoint.report()
    }
}

impl ReceiverSockets {
    /// Runs the endpoint until it has finished. If an outage of the network prevented reception, returns the outage as the error.
    ///
    /// # Errors
    /// Errors of the sockets and of the endpoint's report.
    pub fn run<E: Reporting>(mut self, mut endpoint: E, host: Host<'_>) -> Result<E::Report, Error> {
        let run = run_one(&mut endpoint, &mut self.groups, &host.clock, host.events, host.stop);
        let backlog = Backlog { dropped: self.groups.dropped(), ..Backlog::default() };
        endpoint.handle_host_event(HostEvent::Backlog(backlog), host.clock.now());
        let gone = self.groups.close();
        let report = endpoint.report();
        run?;
        explained(report, gone)
    }
}
