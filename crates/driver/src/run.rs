//! The driver: runs any number of endpoints on real sockets and in real time, in one thread and one loop.

mod clock;
mod groups;
mod outage;
mod receiver_sockets;
#[cfg(test)]
mod tests;
#[cfg(feature = "tokio")]
pub(crate) mod tokio;
mod uplink;

pub(crate) use clock::Clock;
pub use faircast_transport::system::random;
pub(crate) use groups::Groups;
pub(crate) use outage::{Moves, Outage, explained};
pub(crate) use receiver_sockets::{Listening, ReceiverSockets};
pub(crate) use uplink::Uplink;

use crate::stop::Stop;
use faircast_core::time::{Span, Time};
use faircast_net::{Choice, Meta, Waiter, Want, Why};
use faircast_transport::config::{DEFAULT_GROUP, DEFAULT_GROUP_V6};
use faircast_transport::endpoint::{Backlog, Datagram, Endpoint, HostEvent, Transmit};
use faircast_transport::error::Error;
use faircast_transport::event::{Event, Setting};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Maximum interval between two turns of an endpoint, so that changes of the network and new hosts are noticed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Interval at which an endpoint that accepts no datagrams gets a turn.
const ROOM_CHECK: Duration = Duration::from_millis(1);

/// Minimum interval between two reads of the socket buffers' fill level.
const BACKLOG_EVERY: Span = Span::from_millis(1);

/// Approximate number of bytes that an endpoint sends per turn before its sockets are read.
const TURN: usize = 48_000;

/// Callback for events.
pub(crate) type Events<'a> = &'a mut dyn FnMut(Event);

/// The sockets of one endpoint.
pub(crate) trait Sockets {
    /// Checks for changes of the interface, and adapts the sockets to them.
    ///
    /// # Errors
    /// If the network has been down for too long, or the system cannot open a socket.
    fn look(&mut self, endpoint: &mut dyn Endpoint, now: Time, events: Events<'_>) -> Result<(), Error>;

    /// Passes received datagrams to `each`, in the order of arrival; returns their number.
    ///
    /// # Errors
    /// Permanent errors.
    fn receive(&mut self, each: &mut dyn FnMut(&mut [u8], &Meta)) -> Result<usize, Error>;

    /// Whether more datagrams are likely to follow the received ones. If so, the sockets are read again before the next wait.
    fn reads_on(&self) -> bool;

    /// Returns the fill level of the receive buffers; `None` if the loop does not need it.
    ///
    /// # Errors
    /// If the system does not report the fill level.
    fn backlog(&self) -> Result<Option<Backlog>, Error>;

    /// Joins the groups that the endpoint requires, and leaves all others.
    fn follow(&mut self, endpoint: &mut dyn Endpoint, now: Time);

    /// Sends the datagrams in `bytes`, or holds these datagrams and returns another buffer in `bytes`. Datagrams that cannot be
    /// sent count as lost on the path. Must not be called while [`Sockets::holds`] is true.
    ///
    /// # Errors
    /// Permanent errors, and errors that have lasted too long.
    fn send(&mut self, bytes: &mut Vec<u8>, transmit: Transmit, events: Events<'_>) -> Result<(), Error>;

    /// Sends held datagrams.
    ///
    /// # Errors
    /// Same as [`Sockets::send`].
    fn flush(&mut self, _events: Events<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Whether no datagrams may be sent now.
    fn holds(&self) -> bool;

    /// Whether the session may end. Otherwise errors of sent datagrams may still arrive.
    fn may_end(&self) -> bool {
        true
    }

    /// Returns the time of the next attempt to send, or `moment` if that is earlier.
    fn until(&self, moment: Instant) -> Instant;

    /// Registers the descriptors that end the wait early.
    fn watch(&self, watcher: &mut dyn Watcher);
}

/// Collects the descriptors to wait for.
pub(crate) trait Watcher {
    /// Forgets all descriptors.
    fn clear(&mut self);

    /// Adds a descriptor, which stays open until [`Watcher::clear`].
    fn watch(&mut self, on: BorrowedFd<'_>, want: Want);
}

impl Watcher for Waiter {
    fn clear(&mut self) {
        Waiter::clear(self);
    }

    fn watch(&mut self, on: BorrowedFd<'_>, want: Want) {
        Waiter::watch(self, &on, want);
    }
}

/// An endpoint with its sockets.
pub(crate) struct Attached<'a> {
    endpoint: MaybeOwned<'a, dyn Endpoint + Send + 'a>,
    sockets: MaybeOwned<'a, dyn Sockets + Send + 'a>,
    backlog_at: Time,
    state: State,
}

/// A borrowed value, or a value owned by the loop.
enum MaybeOwned<'a, T: ?Sized> {
    Borrowed(&'a mut T),
    Owned(Box<T>),
}

impl<T: ?Sized> MaybeOwned<'_, T> {
    fn get(&self) -> &T {
        match self {
            MaybeOwned::Borrowed(value) => value,
            MaybeOwned::Owned(value) => value,
        }
    }

    fn get_mut(&mut self) -> &mut T {
        match self {
            MaybeOwned::Borrowed(value) => value,
            MaybeOwned::Owned(value) => value,
        }
    }
}

#[derive(Debug)]
enum State {
    Runs,
    Stopped,
    Ended(Result<(), Error>),
}

/// Condition for the next turn of an endpoint.
enum Next {
    /// No condition: there is more work.
    Now,
    /// An event of the endpoint's sockets, or this time.
    Until(Instant),
    /// This time only.
    Pause(Instant),
    Ended,
}

impl<'a> Attached<'a> {
    pub(crate) fn new(
        endpoint: &'a mut (dyn Endpoint + Send),
        sockets: &'a mut (dyn Sockets + Send),
    ) -> Attached<'a> {
        let (endpoint, sockets) = (MaybeOwned::Borrowed(endpoint), MaybeOwned::Borrowed(sockets));
        Attached { endpoint, sockets, backlog_at: Time::ZERO, state: State::Runs }
    }

    /// Attaches an endpoint that the loop owns, together with its sockets.
    pub(crate) fn owned(
        endpoint: Box<dyn Endpoint + Send>,
        sockets: Box<dyn Sockets + Send>,
    ) -> Attached<'a> {
        let (endpoint, sockets) = (MaybeOwned::Owned(endpoint), MaybeOwned::Owned(sockets));
        Attached { endpoint, sockets, backlog_at: Time::ZERO, state: State::Runs }
    }

    /// Performs all pending work of the endpoint.
    fn turn(
        &mut self,
        clock: &Clock,
        out: &mut Vec<u8>,
        events: Events<'_>,
        is_stopped: bool,
    ) -> Result<Next, Error> {
        let (endpoint, sockets) = (self.endpoint.get_mut(), self.sockets.get_mut());
        if matches!(self.state, State::Runs) && is_stopped {
            self.state = State::Stopped;
            endpoint.stop(clock.now());
        }
        sockets.look(endpoint, clock.now(), events)?;
        sockets.flush(events)?;
        let accepts = endpoint.accepts(clock.now());
        let (mut received, mut handled_at, mut last) = (0, None, None);
        if accepts {
            received = sockets.receive(&mut |bytes, meta| {
                let now = *handled_at.get_or_insert_with(|| clock.now());
                // Datagrams that were coalesced have one time of arrival.
                let arrived = match last {
                    Some((at, arrived)) if at == meta.received_at => arrived,
                    _ => clock.time(meta.received_at).min(now),
                };
                last = Some((meta.received_at, arrived));
                endpoint.handle_datagram(Datagram { bytes, from: meta.from, ecn: meta.ecn, arrived }, now);
            })?;
        }
        let now = clock.now();
        if received == 0 {
            // If the endpoint accepts no datagrams, its sockets were not read, so the receive buffers may contain datagrams.
            if accepts {
                endpoint.handle_host_event(HostEvent::Drained, now);
            }
        } else if now >= self.backlog_at
            && let Some(backlog) = sockets.backlog()?
        {
            self.backlog_at = now + BACKLOG_EVERY;
            endpoint.handle_host_event(HostEvent::Backlog(backlog), now);
        }
        endpoint.handle_timeout(now);
        sockets.follow(endpoint, now);
        let mut sent = 0;
        while sent < TURN && !sockets.holds() {
            let now = clock.now();
            if sent > 0 {
                endpoint.handle_timeout(now);
            }
            let Some(transmit) = endpoint.poll_transmit(now, out) else { break };
            sent += out.len();
            sockets.send(out, transmit, events)?;
        }
        std::iter::from_fn(|| endpoint.poll_event()).for_each(&mut *events);
        let holds = sockets.holds();
        let is_finished = endpoint.is_finished();
        if is_finished && !holds && sockets.may_end() {
            return Ok(Next::Ended);
        }
        let now = clock.now();
        let wake = endpoint.poll_timeout(now);
        let wake = if wake > now && !is_finished { Some(clock.instant(wake)) } else { None };
        Ok(match wake {
            _ if !accepts => Next::Pause(Instant::now() + ROOM_CHECK),
            _ if received > 0 && sockets.reads_on() => Next::Now,
            None if !holds && !is_finished => Next::Now,
            wake => Next::Until(sockets.until(wake.unwrap_or_else(|| Instant::now() + LOOK_EVERY))),
        })
    }

    /// Ends the endpoint; closes owned sockets and drops an owned endpoint.
    fn end(&mut self, outcome: Result<(), Error>) {
        self.state = State::Ended(outcome);
        if matches!(self.sockets, MaybeOwned::Owned(_)) {
            self.sockets = MaybeOwned::Owned(Box::new(Closed));
        }
        if matches!(self.endpoint, MaybeOwned::Owned(_)) {
            self.endpoint = MaybeOwned::Owned(Box::new(Gone));
        }
    }

    /// Whether an owned endpoint has ended without an error, so that another endpoint may take its position.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Ended(Ok(()))) && matches!(self.endpoint, MaybeOwned::Owned(_))
    }

    /// Returns the result of the endpoint's run.
    ///
    /// # Errors
    /// Errors of the endpoint's sockets.
    pub(crate) fn outcome(self) -> Result<(), Error> {
        match self.state {
            State::Ended(outcome) => outcome,
            State::Runs | State::Stopped => Ok(()),
        }
    }
}

/// Placeholder for a dropped endpoint.
struct Gone;

impl Endpoint for Gone {
    fn handle_datagram(&mut self, _: Datagram<'_>, _: Time) {}

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self, _: Time) -> Time {
        Time::NEVER
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    fn stop(&mut self, _: Time) {}

    fn is_finished(&self) -> bool {
        true
    }
}

/// Placeholder for closed sockets.
struct Closed;

impl Sockets for Closed {
    fn look(&mut self, _: &mut dyn Endpoint, _: Time, _: Events<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn receive(&mut self, _: &mut dyn FnMut(&mut [u8], &Meta)) -> Result<usize, Error> {
        Ok(0)
    }

    fn reads_on(&self) -> bool {
        false
    }

    fn backlog(&self) -> Result<Option<Backlog>, Error> {
        Ok(None)
    }

    fn follow(&mut self, _: &mut dyn Endpoint, _: Time) {}

    fn send(&mut self, _: &mut Vec<u8>, _: Transmit, _: Events<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn holds(&self) -> bool {
        false
    }

    fn until(&self, moment: Instant) -> Instant {
        moment
    }

    fn watch(&self, _: &mut dyn Watcher) {}
}

/// Condition for the next round.
#[derive(Debug, PartialEq, Eq)]
enum Round {
    /// No condition: an endpoint has more work.
    Again,
    /// An event of a watched socket, or this time.
    Wait(Instant),
    /// No further round: all endpoints have ended.
    Over,
}

/// Runs a turn of each endpoint that has not ended.
fn round(
    attached: &mut [Attached<'_>],
    clock: &Clock,
    (out, watcher): (&mut Vec<u8>, &mut dyn Watcher),
    events: &mut dyn FnMut(usize, Event),
    stop: &Stop,
) -> Round {
    watcher.clear();
    let is_stopped = stop.is_set();
    if !is_stopped {
        stop.descriptors().for_each(|one| watcher.watch(one, Want::Readable));
    }
    let (mut round, mut first) = (Round::Over, Instant::now() + LOOK_EVERY);
    for (place, one) in attached.iter_mut().enumerate() {
        if matches!(one.state, State::Ended(_)) {
            continue;
        }
        let next = match one.turn(clock, out, &mut |event| events(place, event), is_stopped) {
            Ok(Next::Ended) => Err(Ok(())),
            Ok(next) => Ok(next),
            Err(error) => Err(Err(error)),
        };
        match next {
            Ok(Next::Until(moment)) => {
                first = first.min(moment);
                one.sockets.get().watch(watcher);
            }
            Ok(Next::Pause(moment)) => first = first.min(moment),
            Ok(Next::Now | Next::Ended) => round = Round::Again,
            Err(outcome) => {
                one.end(outcome);
                continue;
            }
        }
        if round != Round::Again {
            round = Round::Wait(first);
        }
    }
    round
}

/// Runs until all endpoints have ended. `events` receives each event with the index of its endpoint.
///
/// # Errors
/// If the system's wait fails.
pub(crate) fn run(
    attached: &mut [Attached<'_>],
    clock: &Clock,
    events: &mut dyn FnMut(usize, Event),
    stop: &Stop,
) -> Result<(), Error> {
    let mut waiter = Waiter::new();
    let mut out = Vec::with_capacity(1 << 17);
    while step(attached, clock, (&mut out, &mut waiter), events, stop)? {}
    Ok(())
}

/// Runs one round and then waits; returns whether an endpoint is still running.
fn step(
    attached: &mut [Attached<'_>],
    clock: &Clock,
    (out, waiter): (&mut Vec<u8>, &mut Waiter),
    events: &mut dyn FnMut(usize, Event),
    stop: &Stop,
) -> Result<bool, Error> {
    match round(attached, clock, (out, waiter), events, stop) {
        Round::Again => {}
        Round::Wait(until) => {
            waiter.wait_watched(Some(until))?;
        }
        Round::Over => return Ok(false),
    }
    Ok(true)
}

/// Same as `run`, but endpoints can be added meanwhile. `grow` is called before each round; it appends endpoints or replaces
/// closed ones.
///
/// # Errors
/// Same as [`run`].
pub(crate) fn run_growing<'a>(
    attached: &mut Vec<Attached<'a>>,
    grow: &mut dyn FnMut(&mut Vec<Attached<'a>>),
    clock: &Clock,
    events: &mut dyn FnMut(usize, Event),
    stop: &Stop,
) -> Result<(), Error> {
    let mut waiter = Waiter::new();
    let mut out = Vec::with_capacity(1 << 17);
    grow(attached);
    while step(attached, clock, (&mut out, &mut waiter), events, stop)? {
        grow(attached);
    }
    Ok(())
}

/// Runs one endpoint until it has ended.
///
/// # Errors
/// Errors of the endpoint's sockets.
pub(crate) fn run_one(
    endpoint: &mut (dyn Endpoint + Send),
    sockets: &mut (dyn Sockets + Send),
    clock: &Clock,
    events: Events<'_>,
    stop: &Stop,
) -> Result<(), Error> {
    let mut attached = [Attached::new(endpoint, sockets)];
    run(&mut attached, clock, &mut |_, event| events(event), stop)?;
    let [one] = attached;
    one.outcome()
}

/// Reports the opened sockets of a session, and warns if only this host can receive it.
pub(crate) fn emit_opened(group: SocketAddr, choice: &Choice, events: &mut dyn FnMut(Event)) {
    events(Event::Opened {
        group,
        interface: choice.chosen.name.clone(),
        local: choice.local,
        alternatives: choice.alternatives.iter().map(|other| other.name.clone()).collect(),
    });
    if choice.why == Why::Loopback {
        events(no_network(group));
    }
}

/// Returns a warning with the reason why only this host can receive a group.
fn no_network(group: SocketAddr) -> Event {
    let all = faircast_net::interfaces().unwrap_or_default();
    let of_other_family = all.iter().find(|interface| {
        let can_carry = interface.up && interface.multicast && !interface.loopback;
        can_carry && interface.addrs.iter().any(|address| address.is_ipv4() != group.is_ipv4())
    });
    let alone = "only programs on this host can join";
    match of_other_family {
        Some(interface) => {
            let (family, other) = match group.is_ipv4() {
                true => ("IPv4", DEFAULT_GROUP_V6),
                false => ("IPv6", DEFAULT_GROUP),
            };
            let name = &interface.name;
            let message = format!(
                "{name} has no {family} address, which {group} needs, so {alone}; use a group that {name} carries, such as {other}"
            );
            Event::warning_of(Setting::Group, message)
        }
        None => {
            let message = format!("no interface of this host leads to a network, so {alone}");
            Event::warning_of(Setting::Interface, message)
        }
    }
}
