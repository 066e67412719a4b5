//! A relay on real sockets: a thread for each relayed session, and a thread that searches for the next session.

use crate::listen::Listener;
use crate::run::{
    Attached, Clock, Listening, Moves, ReceiverSockets, Uplink, emit_opened, random, run_growing,
};
use crate::stop::Stop;
use faircast_net::{NetError, Port, SourceOptions, choose};
use faircast_transport::endpoint::Endpoint;
use faircast_transport::error::{ConfigError, Error, SystemError, TransferError};
use faircast_transport::event::Event;
use faircast_transport::object::ObjectError;
use faircast_transport::object::gather::spill::SpillFile;
use faircast_transport::object::host::disk::Disk;
use faircast_transport::object::spool::nameless;
use faircast_transport::relay::{Forwarding, RelayConfig, RelayEvent, RelayHandle, RelaySource};
use faircast_transport::tree::{BranchPlace, RelaySession, ServedHost};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Maximum number of sessions relayed at a time.
const MAX_SESSIONS: usize = 64;

/// Pause after an error of the sockets.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A message of a session's thread.
enum SessionMessage {
    Event(Box<RelayEvent>),
    /// The thread has found a session.
    Found {
        place: usize,
    },
    Ended {
        place: usize,
        number: u64,
        found: bool,
        error: Option<Error>,
    },
}

/// Relays all announced sessions until `stop` is set.
///
/// # Errors
/// If sockets cannot be opened before the first session is found. Later failures to open sockets are reported as warnings, and
/// opening is tried again.
pub fn relay(
    config: &RelayConfig,
    handle: &RelayHandle,
    events: &mut dyn FnMut(RelayEvent),
    stop: &Stop,
) -> Result<(), Error> {
    handle.configure(config);
    let (say, reports) = mpsc::channel();
    // If the first search for a session fails, this stop request ends the threads that are already running.
    let halt = &stop.part()?;
    let listeners = open_listeners(config, handle)?;
    thread::scope(|scope| {
        for listener in &listeners {
            scope.spawn(move || listener.run(halt));
        }
        let (mut running, mut number) = (0, 0);
        let mut searching = vec![false; config.sources.len()];
        let (mut found_any, mut failure) = (false, None);
        loop {
            for (place, is_searched) in searching.iter_mut().enumerate() {
                if halt.is_set() || *is_searched || running >= MAX_SESSIONS {
                    continue;
                }
                let (say, handle, this) = (say.clone(), handle.clone(), number);
                scope.spawn(move || one((config, place), &handle, this, &say, halt));
                (running, *is_searched, number) = (running + 1, true, number + 1);
            }
            if running == 0 {
                halt.stop();
                return failure.map_or(Ok(()), Err);
            }
            match reports.recv().expect("this thread can send, too") {
                SessionMessage::Event(event) => events(*event),
                SessionMessage::Found { place } => (searching[place], found_any) = (false, true),
                SessionMessage::Ended { place, number, found, error } => {
                    running -= 1;
                    searching[place] &= found;
                    let Some(error) = error else { continue };
                    if !found && !found_any {
                        failure = Some(error);
                        halt.stop();
                        continue;
                    }
                    let what = if found { "the relayed session has ended" } else { "tried again" };
                    let event = Event::warning(format!("{what}: {error}"));
                    events(RelayEvent { session: number, branch: None, event });
                    if !found {
                        halt.wait(AGAIN_AFTER);
                    }
                }
            }
        }
    })
}

/// Opens the ports to which hosts attach.
fn open_listeners(config: &RelayConfig, handle: &RelayHandle) -> Result<Vec<Listener>, Error> {
    let (mut listeners, mut refused) = (Vec::new(), None);
    for &at in &config.listen {
        match Listener::open(at, handle.clone(), &config.host, config.found) {
            Ok(listener) => listeners.push(listener),
            Err(Error::System(SystemError::Net(taken @ NetError::PortTaken { .. }))) => {
                return Err(taken.into());
            }
            // A host without IPv6 cannot listen at the unspecified IPv6 address.
            Err(error) if at.ip().is_unspecified() => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    match refused {
        Some(error) if listeners.is_empty() => Err(error),
        _ => Ok(listeners),
    }
}

/// Opens an unnamed file in this directory.
fn room_in(directory: &Path) -> Result<SpillFile, Error> {
    let failed =
        |error| ObjectError::io(directory, "create the temporary file of the cache in this directory", error);
    let file = nameless(directory).map_err(failed)?;
    Ok(SpillFile { disk: Disk::default(), file, path: directory.to_owned() })
}

/// Searches for a session, and relays it until it has ended.
fn one(
    (config, place): (&RelayConfig, usize),
    handle: &RelayHandle,
    number: u64,
    say: &mpsc::Sender<SessionMessage>,
    stop: &Stop,
) {
    let random = random();
    let room = config.cache.as_deref().map(room_in).transpose();
    let relayed = match room {
        Ok(room) => RelaySession::new(config, handle, config.branches.len(), random, room),
        Err(error) => {
            let _ = say.send(SessionMessage::Ended { place, number, found: false, error: Some(error) });
            return;
        }
    };
    let mut found = false;
    let mut emit = |branch: Option<usize>, event: Event| {
        if branch.is_none() && matches!(event, Event::Joined { .. }) && !std::mem::replace(&mut found, true) {
            // Sending fails only if the main thread has ended. No further session is needed then.
            let _ = say.send(SessionMessage::Found { place });
        }
        let _ = say.send(SessionMessage::Event(Box::new(RelayEvent { session: number, branch, event })));
    };
    // A panic in one session must not end the others.
    let ended = catch_unwind(AssertUnwindSafe(|| pass_on((config, place), &relayed, &mut emit, stop)));
    let ended = ended.unwrap_or(Err(Error::System(SystemError::Panicked)));
    relayed.release();
    drop(relayed);
    let error = ended.err().filter(|error| !matches!(error, Error::Transfer(TransferError::Stopped)));
    let _ = say.send(SessionMessage::Ended { place, number, found, error });
}

fn pass_on(
    (config, place): (&RelayConfig, usize),
    relayed: &RelaySession,
    emit: &mut dyn FnMut(Option<usize>, Event),
    stop: &Stop,
) -> Result<(), Error> {
    let clock = Clock::start();
    let source = &config.sources[place];
    let mut groups = receive(config, source, &mut |event| emit(None, event))?;
    let mut upstream = relayed.above(source, clock.unix_secs(), clock.now());
    let mut branches = Vec::new();
    let received_on = match source.parents.is_empty() {
        true => choose(source.group.ip(), source.interface.as_deref())?.chosen.name,
        false => String::new(), // a session received by unicast is sent to any group
    };
    for (place, branch) in config.branches.iter().enumerate() {
        let group = branch.group.unwrap_or(source.group);
        let goes_on = choose(group.ip(), branch.interface.as_deref())?.chosen.name;
        if group == source.group && goes_on == received_on {
            continue; // the session was received from this group
        }
        let mut events = |event| emit(Some(place), event);
        let options = SourceOptions { ttl: branch.ttl, ..SourceOptions::default() };
        let uplink = open_branch(config, options, (group, branch.interface.clone()), &mut events)?;
        let [boot, seed, ..] = random();
        let local = uplink.local().unwrap_or(group);
        let (ttl, max) = (branch.ttl, branch.max);
        let at = BranchPlace { place, to: group, local, ttl, max, random: [boot, seed] };
        branches.push((place, relayed.branch(at), uplink.preferring(group.port())));
    }
    if branches.is_empty() && config.listen.is_empty() {
        return Err(Error::Config(ConfigError::NoBranch { group: source.group, interface: received_on }));
    }
    let exits: Vec<String> =
        branches.iter().map(|(.., uplink)| uplink.choice().chosen.name.clone()).collect();
    let places = RefCell::new(branches.iter().map(|(place, ..)| *place).collect::<Vec<usize>>());
    let emit = RefCell::new(emit);
    let mut attached = vec![Attached::new(&mut upstream, &mut groups)];
    attached.extend(branches.iter_mut().map(|(_, branch, uplink)| Attached::new(&mut **branch, uplink)));
    let place_of = |at: usize| at.checked_sub(1).map(|at| places.borrow()[at]);
    let mut forwarding = Beside { by: config.forwarding.as_deref(), stopped: None, of: None };
    // Each host that attaches at the relay's port becomes a branch of this session.
    let mut grow = |attached: &mut Vec<Attached<'_>>| {
        if relayed.is_hop()
            && let Some(why) = forwarding.look(relayed.parent(), source.group, &exits)
        {
            emit.borrow_mut()(None, Event::warning(why));
        }
        for host in relayed.new_hosts() {
            let mut events = |event| emit.borrow_mut()(Some(host.place), event);
            match open_host(config, relayed, &host, &mut events) {
                Ok(uplink) => {
                    let local = uplink.local().unwrap_or(host.address);
                    let endpoint = relayed.serve(&host, local, random);
                    let one = (host.place, endpoint, Box::new(uplink));
                    put(&mut places.borrow_mut(), attached, one);
                }
                Err(error) => {
                    relayed.not_served(&host);
                    events(Event::warning(format!("cannot serve {}: {error}", host.address)));
                }
            }
        }
    };
    let mut events = |at, event| emit.borrow_mut()(place_of(at), event);
    run_growing(&mut attached, &mut grow, &clock, &mut events, stop)?;
    let outcomes: Result<(), Error> = attached.into_iter().try_for_each(Attached::outcome);
    outcomes?;
    upstream.report().map(drop)
}

/// Adds the endpoint of a child: in place of a closed endpoint if there is one, and at the end otherwise.
fn put(
    places: &mut Vec<usize>,
    attached: &mut Vec<Attached<'_>>,
    (place, endpoint, uplink): (usize, Box<dyn Endpoint + Send>, Box<Uplink>),
) {
    let one = Attached::owned(endpoint, uplink);
    match attached.iter().position(Attached::is_closed) {
        Some(at) => (places[at - 1], attached[at]) = (place, one),
        None => {
            places.push(place);
            attached.push(one);
        }
    }
}

/// Control of the multicast forwarding by this host's kernel, at an active router.
struct Beside<'a> {
    by: Option<&'a dyn Forwarding>,
    /// Guard that keeps the forwarding stopped until it is dropped.
    stopped: Option<Box<dyn Send>>,
    /// Address of the upstream sender whose packets the kernel does not forward.
    of: Option<SocketAddr>,
}

impl Beside<'_> {
    /// Stops the forwarding of packets from `from`; returns the reason if the forwarding cannot be stopped.
    fn look(&mut self, from: Option<SocketAddr>, group: SocketAddr, exits: &[String]) -> Option<String> {
        let by = self.by.filter(|_| self.of != from)?;
        (self.of, self.stopped) = (from, None);
        match by.stop(from?, group, exits) {
            Ok(stopped) => self.stopped = stopped,
            Err(why) => return Some(why),
        }
        None
    }
}

/// Opens the sockets that receive the upstream session.
fn receive(
    config: &RelayConfig,
    source: &RelaySource,
    events: &mut dyn FnMut(Event),
) -> Result<ReceiverSockets, Error> {
    let listening = Listening {
        group: source.group,
        interface: source.interface.clone(),
        source: source.only,
        idle_timeout: config.idle_timeout,
        buffer: config.buffer,
        parents: &source.parents,
        invited: None,
    };
    listening.open(events)
}

/// Opens the socket of a branch.
fn open_branch(
    config: &RelayConfig,
    options: SourceOptions,
    (to, interface): (SocketAddr, Option<String>),
    events: &mut dyn FnMut(Event),
) -> Result<Uplink, Error> {
    let uplink = Uplink::open(to, interface, options, config.idle_timeout, Moves::Anywhere)?;
    emit_opened(to, uplink.choice(), events);
    uplink.warning().into_iter().for_each(|warning| events(Event::warning(warning)));
    Ok(uplink)
}

/// Opens the socket that serves a host, with the local address and port at which the host has attached.
fn open_host(
    config: &RelayConfig,
    relayed: &RelaySession,
    host: &ServedHost,
    events: &mut dyn FnMut(Event),
) -> Result<Uplink, Error> {
    let port = Port::Fixed(host.local.port());
    let options = SourceOptions { port, connected: true, ..SourceOptions::default() };
    let interface = Some(host.local.ip().to_string());
    match relayed.is_agent() {
        // An agent does not report opened branches, because its children receive the source's multicast.
        true => Uplink::open(host.address, interface, options, config.idle_timeout, Moves::Anywhere),
        false => open_branch(config, options, (host.address, interface), events),
    }
}
