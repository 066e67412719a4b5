//! The socket of a source: it sends to the groups, and receives the feedback.

use super::outage::{InterfaceCheck, Moves, Outage, received};
use super::{Events, Sockets, Watcher};
use faircast_core::time::Time;
use faircast_net::{
    Batch, Choice, Meta, NetError, Port, SendOutcome, SourceOptions, SourceSocket, Want, choose,
    choose_towards,
};
use faircast_transport::endpoint::{Backlog, Endpoint, HostEvent, Transmit};
use faircast_transport::error::Error;
use faircast_transport::event::{Event, Setting};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Duration without an accepted packet after which an interface counts as stuck instead of busy. At 12 kbit/s, an interface takes
/// this long for one packet.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// As `STUCK_AFTER`, for an interface that is already known to be stuck.
const STUCK_STILL: Duration = Duration::from_millis(20);

/// Interval of attempts to open the preferred port while another socket uses that port. The attempts end with the first answer of
/// a receiver.
const PORT_CHECK: Duration = Duration::from_millis(100);

/// Time from the first packet until a preferred port is reported as in use. An earlier session releases the port sooner.
const PORT_TAKEN: Duration = Duration::from_secs(2);

/// Time from the first packet within which the system notices that no neighbour answers. ARP makes three attempts in three
/// seconds.
const RESOLVES_WITHIN: Duration = Duration::from_secs(10);

/// Interval of attempts to send while the queue of the interface is full, because the system does not report free space in the
/// queue.
const ROOM_CHECK: Duration = Duration::from_millis(1);

/// Maximum number of datagrams (or coalesced runs) per receive call.
const SLOTS: usize = 8;

/// A source's socket and its state.
pub(crate) struct Uplink {
    socket: Option<SourceSocket>,
    choice: Choice,
    group: SocketAddr,
    options: SourceOptions,
    /// Time of the next attempt to open the preferred port; `None` after the first answer of a receiver, because all receivers
    /// answer to the same port.
    port_at: Option<Instant>,
    /// Time of the first packet.
    sent_at: Option<Instant>,
    has_answers: bool,
    /// Whether the preferred port was reported as taken.
    port_reported: bool,
    outage: Outage,
    batch: Batch,
    /// Whether the socket belongs to a receiver, so that arriving datagrams are data.
    receives_data: bool,
    /// Whether the socket listens at a fixed address, regardless of changes of interfaces.
    listens: bool,
    /// Number of the endpoint's groups that the socket has joined. Only a socket that receives everywhere joins groups.
    joined: usize,
    /// Buffer of the datagrams described by `pending`.
    unsent: Vec<u8>,
    pending: Option<Pending>,
}

/// Datagrams that the socket has not accepted yet.
struct Pending {
    /// Offset of the first of these datagrams in the buffer.
    from: usize,
    transmit: Transmit,
    /// Time at which the socket last accepted datagrams.
    taken_at: Instant,
}

/// Whether datagrams remain to be sent.
enum Rest {
    Nothing,
    Some,
}

impl Uplink {
    /// Chooses the interface and opens the socket.
    ///
    /// # Errors
    /// If there is no such interface, or the system cannot open the socket.
    pub(crate) fn open(
        group: SocketAddr,
        interface: Option<String>,
        options: SourceOptions,
        idle_timeout: Duration,
        moves: Moves,
    ) -> Result<Uplink, Error> {
        let choice = match group.ip().is_multicast() {
            true => choose(group.ip(), interface.as_deref())?,
            false => choose_towards(group.ip(), interface.as_deref())?,
        };
        let socket = SourceSocket::open(group, &choice, &options)?;
        let outage = Outage::new(group.ip(), interface, idle_timeout, moves);
        Ok(Uplink {
            socket: Some(socket),
            choice,
            group,
            options,
            port_at: Some(Instant::now() + PORT_CHECK),
            sent_at: None,
            has_answers: false,
            port_reported: false,
            outage,
            batch: Batch::new(SLOTS),
            receives_data: false,
            listens: false,
            joined: 0,
            unsent: Vec::with_capacity(1 << 17),
            pending: None,
        })
    }

    /// Listens at an address and port until the address of a source is known.
    ///
    /// # Errors
    /// If the port is in use, or the system cannot open the socket.
    pub(crate) fn listen(
        at: SocketAddr,
        options: SourceOptions,
        idle_timeout: Duration,
    ) -> Result<Uplink, Error> {
        let socket = SourceSocket::listen(at, &options)?;
        Ok(Uplink {
            choice: socket.choice().clone(),
            socket: Some(socket),
            group: at,
            options,
            port_at: None,
            sent_at: None,
            has_answers: false,
            port_reported: false,
            outage: Outage::of_listener(at.ip(), None, idle_timeout),
            batch: Batch::new(SLOTS),
            receives_data: true,
            listens: true,
            joined: 0,
            unsent: Vec::with_capacity(1 << 17),
            pending: None,
        })
    }

    /// Marks the socket as a receiver's: arriving datagrams are data, which is more frequent than feedback.
    #[must_use]
    pub(crate) fn hearing_data(self) -> Uplink {
        Uplink { receives_data: true, ..self }
    }

    /// Returns the interface in use.
    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Returns the local address and port; `None` while there is no network.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        self.socket.as_ref().map(SourceSocket::local_addr)
    }

    /// Returns a warning if the receive buffer is too small.
    pub(crate) fn warning(&self) -> Option<String> {
        self.socket.as_ref().and_then(|socket| socket.receive_buffer().warning())
    }

    /// Returns the outage of the network, if there is one now.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.outage.take_error()
    }

    /// Sets a preferred port. The socket uses this port from the first packet on, if the port is free. A session that sends no
    /// packets leaves the port to other sessions.
    #[must_use]
    pub(crate) fn preferring(mut self, port: u16) -> Uplink {
        self.options.port = Port::Preferred(port);
        self
    }

    /// Returns the preferred port, if the socket has another one.
    fn missed_port(&self) -> Option<u16> {
        let has = self.local()?.port();
        match self.options.port {
            Port::Preferred(port) if port != has => Some(port),
            _ => None,
        }
    }

    /// Opens the socket at the preferred port if the port has become free; returns whether the socket was opened.
    fn claim_port(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.sent_at.is_some() && self.port_at.is_some_and(|at| now >= at);
        let Some(port) = self.missed_port().filter(|_| is_due) else {
            return false;
        };
        self.port_at = Some(now + PORT_CHECK);
        let fixed = SourceOptions { port: Port::Fixed(port), ..self.options.clone() };
        let Ok(socket) = SourceSocket::open(self.group, &self.choice, &fixed) else { return false };
        self.socket = Some(socket);
        true
    }

    /// After the first answer of a receiver, fixes the port; sockets that are opened later use the same port. Reports that the
    /// local port is not the preferred one after the first answer, or after `PORT_TAKEN`.
    fn settle_port(&mut self, events: Events<'_>) {
        let (Some(_), Some(local)) = (self.port_at, self.local()) else { return };
        let is_taken = self.has_answers || self.sent_at.is_some_and(|at| at.elapsed() >= PORT_TAKEN);
        if let Some(port) = self.missed_port().filter(|_| is_taken && !self.port_reported) {
            self.port_reported = true;
            events(Event::warning_of(Setting::Port, port_taken(port, local)));
        }
        if !self.has_answers {
            return;
        }
        self.port_at = None;
        self.options.port = match self.outage.moves() {
            Moves::Anywhere if !matches!(self.options.port, Port::Fixed(_)) => Port::Preferred(local.port()),
            _ => Port::Fixed(local.port()),
        };
    }

    /// Returns the number of datagrams that the receive buffer has dropped.
    pub(crate) fn dropped(&self) -> u64 {
        let backlog = self.socket.as_ref().and_then(|socket| socket.backlog().ok());
        backlog.map_or(0, |backlog| backlog.drops.into())
    }

    fn open_again(&self, choice: &Choice) -> Result<SourceSocket, NetError> {
        SourceSocket::open(self.group, choice, &self.options)
    }

    /// Passes datagrams to the socket until the socket accepts no more of them.
    fn hand_over(&self, bytes: &[u8], pending: &mut Pending) -> Result<Rest, NetError> {
        let Some(socket) = &self.socket else { return Ok(Rest::Nothing) };
        let Transmit { segment, to, hops } = pending.transmit;
        if let Some(hops) = hops {
            socket.set_hops(hops)?;
        }
        let SendOutcome::Blocked { sent } = socket.send_batch_to(&bytes[pending.from..], segment, to)? else {
            return Ok(Rest::Nothing);
        };
        pending.from += sent * segment;
        if pending.from >= bytes.len() {
            return Ok(Rest::Nothing);
        }
        let now = Instant::now();
        let most = if self.outage.is_broken() { STUCK_STILL } else { STUCK_AFTER };
        if sent > 0 {
            pending.taken_at = now;
        } else if now.duration_since(pending.taken_at) >= most {
            return Err(NetError::Stuck { name: self.choice.chosen.name.clone() });
        }
        Ok(Rest::Some)
    }

    /// Processes the result of passing datagrams to the socket.
    fn conclude(
        &mut self,
        handed_over: Result<Rest, NetError>,
        pending: Pending,
        events: Events<'_>,
    ) -> Result<(), Error> {
        match handed_over {
            Ok(Rest::Nothing) => self.outage.works(events),
            Ok(Rest::Some) => self.pending = Some(pending),
            Err(error) if self.is_unresolved(&error) => return Err(error.into()),
            Err(error) => self.outage.failed(error, events)?,
        }
        Ok(())
    }

    /// Whether no neighbour answers for the host of a source without feedback. Without this error, the source would not notice.
    fn is_unresolved(&self, error: &NetError) -> bool {
        let is_unreachable = match error {
            NetError::NoNeighbour { .. } => true,
            NetError::System { source, .. } => source.kind() == std::io::ErrorKind::HostUnreachable,
            _ => false,
        };
        is_unreachable && self.options.reports_unresolved
    }
}

/// Returns a warning that receivers answer to `local` because `port` is in use, so that a firewall may drop their answers.
fn port_taken(port: u16, local: SocketAddr) -> String {
    format!(
        "port {port} of {} is in use by another program on this host, so receivers send their feedback to port {}: allow UDP to that port on this host",
        local.ip(),
        local.port()
    )
}

impl Sockets for Uplink {
    fn look(&mut self, endpoint: &mut dyn Endpoint, now: Time, events: Events<'_>) -> Result<(), Error> {
        if self.listens {
            return Ok(());
        }
        self.settle_port(events);
        if self.options.reports_unresolved && self.sent_at.is_some_and(|at| at.elapsed() > RESOLVES_WITHIN) {
            self.options.reports_unresolved = false;
            self.socket.iter().try_for_each(SourceSocket::ignore_unresolved)?;
        }
        let has_moved = self.claim_port();
        let is_news = match self.outage.look(&self.choice, self.socket.is_some(), events)? {
            InterfaceCheck::Same => false,
            InterfaceCheck::Changed => true,
            InterfaceCheck::Other(choice) => {
                self.socket = None; // two sockets cannot share a port
                self.joined = 0;
                match self.open_again(&choice) {
                    Ok(socket) => {
                        self.outage.moved(&self.choice, &choice, events);
                        (self.socket, self.choice) = (Some(socket), *choice);
                        true
                    }
                    Err(error) => {
                        self.outage.failed(error, events)?;
                        false
                    }
                }
            }
        };
        if is_news || has_moved {
            endpoint.handle_host_event(HostEvent::NetworkChanged { local: self.local() }, now);
        }
        Ok(())
    }

    fn receive(&mut self, each: &mut dyn FnMut(&mut [u8], &Meta)) -> Result<usize, Error> {
        let Some(socket) = &self.socket else { return Ok(0) };
        let outcome = socket.receive(&mut self.batch);
        if outcome.as_ref().is_err_and(|error| self.is_unresolved(error)) {
            return Err(NetError::NoNeighbour { to: self.group }.into());
        }
        let count = received(outcome)?;
        self.has_answers |= count > 0;
        while let Some((bytes, meta)) = self.batch.take() {
            each(bytes, meta);
        }
        Ok(count)
    }

    /// Whether no datagram waits for a neighbour. A session may be shorter than the time in which the system notices that no
    /// neighbour answers.
    fn may_end(&self) -> bool {
        let unsent = self.socket.as_ref().and_then(|socket| socket.unsent().ok());
        !self.options.reports_unresolved || unsent.unwrap_or(0) == 0
    }

    /// Feedback datagrams arrive one at a time, so further datagrams are unlikely.
    fn reads_on(&self) -> bool {
        self.receives_data || self.batch.is_full()
    }

    fn backlog(&self) -> Result<Option<Backlog>, Error> {
        let Some(socket) = self.socket.as_ref().filter(|_| self.receives_data) else { return Ok(None) };
        let backlog = socket.backlog()?;
        Ok(Some(Backlog {
            used: backlog.used_bytes as u64,
            capacity: backlog.capacity_bytes as u64,
            dropped: u64::from(backlog.drops),
        }))
    }

    fn follow(&mut self, endpoint: &mut dyn Endpoint, now: Time) {
        let Some(socket) = self.socket.as_ref().filter(|_| self.options.everywhere) else { return };
        while let Some(&group) = endpoint.groups().get(self.joined) {
            // It is not repeated, so that the other groups are joined, and the endpoint is notified once.
            if let Err(why) = socket.join(group) {
                endpoint.handle_host_event(HostEvent::JoinFailed { place: self.joined, why: &why }, now);
            }
            self.joined += 1;
        }
    }

    fn send(&mut self, bytes: &mut Vec<u8>, transmit: Transmit, events: Events<'_>) -> Result<(), Error> {
        self.sent_at.get_or_insert_with(Instant::now);
        let mut pending = Pending { from: 0, transmit, taken_at: Instant::now() };
        let handed_over = self.hand_over(bytes, &mut pending);
        if let Ok(Rest::Some) = handed_over {
            std::mem::swap(bytes, &mut self.unsent);
        }
        self.conclude(handed_over, pending, events)
    }

    fn flush(&mut self, events: Events<'_>) -> Result<(), Error> {
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        let handed_over = self.hand_over(&self.unsent, &mut pending);
        self.conclude(handed_over, pending, events)
    }

    fn holds(&self) -> bool {
        self.pending.is_some() || self.outage.holds()
    }

    fn until(&self, moment: Instant) -> Instant {
        let moment = self.outage.until(moment);
        let moment = match self.port_at {
            Some(at) if self.sent_at.is_some() && self.missed_port().is_some() => moment.min(at),
            _ => moment,
        };
        if self.pending.is_some() { moment.min(Instant::now() + ROOM_CHECK) } else { moment }
    }

    fn watch(&self, watcher: &mut dyn Watcher) {
        if let Some(socket) = &self.socket {
            watcher.watch(socket.as_fd(), if self.pending.is_some() { Want::Either } else { Want::Readable });
        }
    }
}
