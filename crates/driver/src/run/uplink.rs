//! The socket of a source: to its groups, and the feedback back.

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

/// An interface that takes nothing for this long is not merely busy: at 12 kbit/s a packet takes as long.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// The same while that is known.
const STUCK_STILL: Duration = Duration::from_millis(20);

/// Until the first answer comes, a preferred port that another socket has is tried again after this,
const PORT_CHECK: Duration = Duration::from_millis(100);

/// and is reported as taken when this has passed since the first packet left: a session before this one lets go of it sooner.
const PORT_TAKEN: Duration = Duration::from_secs(2);

/// A full queue of an interface does not say when it has room, so it is tried again after this.
const ROOM_CHECK: Duration = Duration::from_millis(1);

/// Receive calls take at most this many datagrams (or coalesced runs).
const SLOTS: usize = 8;

/// A source's socket, and what becomes of it.
pub(crate) struct Uplink {
    socket: Option<SourceSocket>,
    choice: Choice,
    group: SocketAddr,
    options: SourceOptions,
    /// When the preferred port is tried next; `None` once an answer has come, as others answer to the same port.
    port_at: Option<Instant>,
    /// When the first packet left.
    sent_at: Option<Instant>,
    has_answers: bool,
    /// It was reported that the preferred port is taken.
    port_reported: bool,
    outage: Outage,
    batch: Batch,
    /// It belongs to a receiver: datagrams that arrive are data.
    receives_data: bool,
    /// It is bound to what it listens at, whatever becomes of interfaces.
    listens: bool,
    /// The datagrams that `pending` is about.
    unsent: Vec<u8>,
    pending: Option<Pending>,
}

/// Datagrams that the socket has not taken yet.
struct Pending {
    /// Where they begin.
    from: usize,
    transmit: Transmit,
    /// When it last took some.
    taken_at: Instant,
}

/// Whether something is left to be sent.
enum Rest {
    Nothing,
    Some,
}

impl Uplink {
    /// Chooses the interface and opens the socket.
    ///
    /// # Errors
    /// When there is no interface, or the system refuses.
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
            unsent: Vec::with_capacity(1 << 17),
            pending: None,
        })
    }

    /// Listen at an address and port, until somebody says where the source is.
    ///
    /// # Errors
    /// When the port is taken, or the system refuses.
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
            unsent: Vec::with_capacity(1 << 17),
            pending: None,
        })
    }

    /// Datagrams that arrive here are data, and there are more of them than of feedback.
    #[must_use]
    pub(crate) fn hearing_data(self) -> Uplink {
        Uplink { receives_data: true, ..self }
    }

    /// The interface in use.
    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Where packets leave from; `None` while there is no network.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        self.socket.as_ref().map(SourceSocket::local_addr)
    }

    /// A warning when the receive buffer is too small.
    pub(crate) fn warning(&self) -> Option<String> {
        self.socket.as_ref().and_then(|socket| socket.receive_buffer().warning())
    }

    /// Why the network is gone, if it is.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.outage.take_error()
    }

    /// From the first packet on, have this port when it is free: whoever has nothing to send yet leaves it to others.
    #[must_use]
    pub(crate) fn preferring(mut self, port: u16) -> Uplink {
        self.options.port = Port::Preferred(port);
        self
    }

    /// The preferred port, where the socket has another.
    fn missed_port(&self) -> Option<u16> {
        let has = self.local()?.port();
        match self.options.port {
            Port::Preferred(port) if port != has => Some(port),
            _ => None,
        }
    }

    /// Open the socket at the preferred port when it has become free; whether it has.
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

    /// Once an answer has come, the port stays, also of a socket that is opened again. One that was not asked for is reported then, or when
    /// the preferred one stays taken.
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

    fn open_again(&self, choice: &Choice) -> Result<SourceSocket, NetError> {
        SourceSocket::open(self.group, choice, &self.options)
    }

    /// Hand over as much of these datagrams as the socket takes.
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

    /// The result of handing datagrams over.
    fn conclude(
        &mut self,
        handed_over: Result<Rest, NetError>,
        pending: Pending,
        events: Events<'_>,
    ) -> Result<(), Error> {
        match handed_over {
            Ok(Rest::Nothing) => self.outage.works(events),
            Ok(Rest::Some) => self.pending = Some(pending),
            Err(error) => self.outage.failed(error, events)?,
        }
        Ok(())
    }
}

/// Receivers answer to another port than the one that firewalls are open for.
fn port_taken(port: u16, local: SocketAddr) -> String {
    format!(
        "port {port} of {} is taken by another program on this host, so receivers answer to port {}: this host must accept UDP to it",
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
        let has_moved = self.claim_port();
        let is_news = match self.outage.look(&self.choice, self.socket.is_some(), events)? {
            InterfaceCheck::Same => false,
            InterfaceCheck::Changed => true,
            InterfaceCheck::Other(choice) => {
                self.socket = None; // two sockets cannot have one port
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

    fn receive(&mut self, each: &mut dyn FnMut(&mut [u8], Meta)) -> Result<usize, Error> {
        let Some(socket) = &self.socket else { return Ok(0) };
        let count = received(socket.receive(&mut self.batch))?;
        self.has_answers |= count > 0;
        self.batch.segments().for_each(|(bytes, meta)| each(bytes, meta));
        Ok(count)
    }

    /// Feedback comes one by one.
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

    fn follow(&mut self, _endpoint: &mut dyn Endpoint, _now: Time) {}

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
