//! A relay on real sockets: a thread for each session that is passed on, and one that looks for the next.

use super::hop::kernel::Guard;
use super::listen::Listener;
use super::registry::Child;
use super::{
    Agent, AgentChild, Branch, BranchSetup, ExitSetup, Hop, HopExit, RelayHandle, RouterKind, Shared,
    Upstream,
};
use crate::config::FilePolicy;
use crate::driver::{Attached, Clock, Hearing, Listening, Moves, Uplink, random, run_growing, spread_within};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::event::Event;
use crate::object::ObjectError;
use crate::object::gather::spill::Room;
use crate::object::host::disk::Disk;
use crate::object::spool::nameless;
use crate::places::Standing as Shown;
use crate::{Destination, Durability, Freshness, Replace, receiver};
use faircast_core::packet::ReceiverId;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Time};
use faircast_net::{NetError, Port, SourceOptions, choose};
use faircast_wire::{HopKey, ReceiverCodec};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Sessions that are passed on at a time.
const MOST_SESSIONS: usize = 64;

/// The stop flag is looked at this often.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// After an error of the sockets it is tried again after this.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What a relay does.
#[derive(Debug, Clone)]
pub struct RelayConfig {
    /// Where sessions are heard.
    pub sources: Vec<RelaySource>,
    /// Where they are passed on to: all of them on each of these, but not to where they came from.
    pub branches: Vec<RelayBranch>,
    /// Without one only sessions that are not sealed are passed on.
    pub key: Option<HopKey>,
    /// Bytes of memory for the symbols of each session, about.
    pub memory: usize,
    /// Where what has no room in memory goes: a directory, in which it takes up to what the session has.
    pub cache: Option<PathBuf>,
    /// How long the source, or a receiver, may be silent.
    pub patience: Duration,
    /// What it calls itself.
    pub host: String,
    /// Bytes of receive buffer to ask for.
    pub buffer: usize,
    /// Serve those who ask at these addresses and ports by unicast; an address of zeros is all of this host's of its family, and
    /// left out when there are none while there is another.
    pub listen: Vec<SocketAddr>,
    /// So many of them at most.
    pub children: usize,
    /// Of a source's own relay, which nobody else hears: hold the source back to what the fastest branch takes and the memory keeps.
    pub paced: bool,
    /// Whether hosts that look for a relay find this one ([`FIND_GROUP`](crate::config::FIND_GROUP)).
    pub found: bool,
    /// What it is to its children.
    pub role: RelayRole,
}

/// What a relay is to its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RelayRole {
    /// It ends each session and has one of its own on each branch, of any congestion control.
    #[default]
    Repeater,
    /// An agent inside sessions of MTCP: its children hear the source's multicast and answer to the agent, which repairs for them and
    /// speaks for them.
    Agent,
    /// A hop that passes packets on one by one, with a router that helps this congestion control. Sessions of others are left to the
    /// kernel's forwarding.
    Router(RouterKind),
}

/// A group that is heard, on an interface.
#[derive(Debug, Clone)]
pub struct RelaySource {
    /// The group and its port.
    pub group: SocketAddr,
    /// The interface, or the one that the system would take.
    pub interface: Option<String>,
    /// Sources and relays with other addresses are not heard.
    pub only: Option<IpAddr>,
    /// In place of the group, be served by one of these by unicast; a group among them is where a relay is looked for.
    pub parents: Vec<SocketAddr>,
}

/// A branch: a group on an interface.
#[derive(Debug, Clone)]
pub struct RelayBranch {
    /// The group and its port, or the one that the session came from.
    pub group: Option<SocketAddr>,
    /// The interface, or the one that the system would take.
    pub interface: Option<String>,
    /// How many routers a packet may pass, plus one.
    pub ttl: u8,
    /// No more than this.
    pub max: Option<Rate>,
}

/// What is told of a session that is passed on.
#[derive(Debug, Clone)]
pub struct RelayEvent {
    /// How many sessions were found before this one.
    pub session: u64,
    /// Which branch; `None`: what is heard above.
    pub branch: Option<usize>,
    /// What happened.
    pub event: Event,
}

/// What a session's thread says.
enum Said {
    Event(RelayEvent),
    /// It has found a session.
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

/// Pass on whatever is announced, until it is told to stop.
///
/// # Errors
/// When sockets cannot be opened before anything was passed on. Later that is tried again.
pub fn relay(
    config: &RelayConfig,
    handle: &RelayHandle,
    events: &mut dyn FnMut(RelayEvent),
    stop: &AtomicBool,
) -> Result<(), Error> {
    if config.role == RelayRole::Agent {
        handle.be_agent();
    }
    let (say, said) = mpsc::channel();
    // Those that were started stop when one of the first cannot start, too.
    let halt = &AtomicBool::new(false);
    let listeners = open_listeners(config, handle)?;
    let is_told = |source: &RelaySource| {
        source.parents.is_empty() || source.parents.iter().any(|parent| !parent.ip().is_multicast())
    };
    if !config.sources.iter().any(is_told) {
        handle.looks_for_parents();
    }
    thread::scope(|scope| {
        for listener in &listeners {
            scope.spawn(move || listener.run(halt));
        }
        let (mut running, mut number) = (0, 0);
        let mut searching = vec![false; config.sources.len()];
        let (mut found_any, mut failure) = (false, None);
        loop {
            let is_stopped = stop.load(Ordering::Relaxed) || failure.is_some();
            halt.fetch_or(is_stopped, Ordering::Relaxed);
            for (place, is_searched) in searching.iter_mut().enumerate() {
                if is_stopped || *is_searched || running >= MOST_SESSIONS {
                    continue;
                }
                let (say, handle, this) = (say.clone(), handle.clone(), number);
                scope.spawn(move || one((config, place), handle, this, &say, halt));
                (running, *is_searched, number) = (running + 1, true, number + 1);
            }
            if running == 0 {
                halt.store(true, Ordering::Relaxed);
                return failure.map_or(Ok(()), Err);
            }
            match said.recv_timeout(STOP_CHECK) {
                Ok(Said::Event(event)) => events(event),
                Ok(Said::Found { place }) => (searching[place], found_any) = (false, true),
                Ok(Said::Ended { place, number, found, error }) => {
                    running -= 1;
                    searching[place] &= found;
                    let Some(error) = error else { continue };
                    if !found && !found_any {
                        failure = Some(error);
                        continue;
                    }
                    let what = if found { "the session that was passed on has ended" } else { "tried again" };
                    let event = Event::warning(format!("{what}: {error}"));
                    events(RelayEvent { session: number, branch: None, event });
                    if !found {
                        thread::sleep(AGAIN_AFTER);
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    })
}

/// Where hosts ask to be served.
fn open_listeners(config: &RelayConfig, handle: &RelayHandle) -> Result<Vec<Listener>, Error> {
    let shown = if config.key.is_some() { Shown::HasKey } else { Shown::TakesPart };
    handle.take_children(config.children, shown);
    let (mut listeners, mut refused) = (Vec::new(), None);
    for &at in &config.listen {
        match Listener::open(at, handle.clone(), &config.host, config.found) {
            Ok(listener) => listeners.push(listener),
            Err(Error::Net(taken @ NetError::PortTaken { .. })) => return Err(taken.into()),
            // A host without IPv6 has no addresses of that family.
            Err(error) if at.ip().is_unspecified() => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    match refused {
        Some(error) if listeners.is_empty() => Err(error),
        _ => Ok(listeners),
    }
}

/// A file without a name in this directory.
fn room_in(directory: &Path) -> Result<Room, Error> {
    let failed = |error| ObjectError::io(directory, "create the cache's file in it", error);
    let file = nameless(directory).map_err(failed)?;
    Ok(Room { disk: Disk::default(), file, path: directory.to_owned() })
}

/// Look for a session, and pass it on until it is over.
fn one(
    (config, place): (&RelayConfig, usize),
    handle: RelayHandle,
    number: u64,
    say: &mpsc::Sender<Said>,
    stop: &AtomicBool,
) {
    let random = random();
    let id = ReceiverId::new(u64::from(random[0] as u32 | 1)).expect("an odd number is not zero");
    let room = config.cache.as_deref().map(room_in).transpose();
    let shared = match room {
        Ok(room) => match config.role {
            RelayRole::Agent => {
                let [boot, seed, ..] = crate::driver::random();
                Shared::of_agent(handle, Agent::new(id, boot, config.key.clone(), seed))
            }
            RelayRole::Router(kind) => {
                let [seed, ..] = crate::driver::random();
                let hop = Hop::new(id, kind, config.key.clone(), seed);
                Shared::of_hop(handle, hop, config.branches.len())
            }
            RelayRole::Repeater => Shared::new(handle, config.branches.len(), config.memory, room),
        },
        Err(error) => {
            let _ = say.send(Said::Ended { place, number, found: false, error: Some(error) });
            return;
        }
    };
    if config.paced {
        shared.hold_above(config.memory as u64 / 2);
    }
    let mut found = false;
    let mut tell = |branch: Option<usize>, event: Event| {
        if branch.is_none() && matches!(event, Event::Joined { .. }) && !std::mem::replace(&mut found, true) {
            // Nobody listens any more when this fails: then there is nothing to look for either.
            let _ = say.send(Said::Found { place });
        }
        let _ = say.send(Said::Event(RelayEvent { session: number, branch, event }));
    };
    // A mistake in one session must not end the others.
    shared.process.add_own_id(id);
    let ended =
        catch_unwind(AssertUnwindSafe(|| pass_on((config, place), &shared, (id, random), &mut tell, stop)));
    let ended = ended.unwrap_or(Err(Error::Panicked));
    shared.release();
    shared.process.remove_own_id(id);
    let error = ended.err().filter(|error| !matches!(error, Error::Stopped));
    let _ = say.send(Said::Ended { place, number, found, error });
}

fn pass_on(
    (config, place): (&RelayConfig, usize),
    shared: &Shared,
    (id, random): (ReceiverId, [u64; 4]),
    tell: &mut dyn FnMut(Option<usize>, Event),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let clock = Clock::start();
    let source = &config.sources[place];
    let (session, mut groups) =
        open_above((config, source), shared, id, &clock, random, &mut |event| tell(None, event))?;
    let mut upstream = Upstream::new(session, shared.clone());
    let (mut branches, mut exits) = (Vec::new(), Vec::new());
    let heard_on = match source.parents.is_empty() {
        true => choose(source.group.ip(), source.interface.as_deref())?.chosen.name,
        false => String::new(), // what comes by unicast goes to any group
    };
    for (place, branch) in config.branches.iter().enumerate() {
        let group = branch.group.unwrap_or(source.group);
        let goes_on = choose(group.ip(), branch.interface.as_deref())?.chosen.name;
        if group == source.group && goes_on == heard_on {
            continue; // back to where it came from
        }
        let mut events = |event| tell(Some(place), event);
        let to = (group, branch.interface.clone());
        let options = SourceOptions { ttl: branch.ttl, ..SourceOptions::default() };
        let place_of = (shared, place);
        if shared.is_hop() {
            let (place, exit, uplink) = open_exit((config, options), to, place_of, &mut events)?;
            exits.push((place, exit, uplink.preferring(group.port())));
            continue;
        }
        let (endpoint, uplink) = open_branch((config, options, branch.max), to, place_of, id, &mut events)?;
        branches.push((place, endpoint, uplink.preferring(group.port())));
    }
    if branches.is_empty() && exits.is_empty() && config.listen.is_empty() {
        return Err(Error::NoBranch { group: source.group, interface: heard_on });
    }
    let exit_names = exits.iter().map(|(.., uplink)| uplink.choice().chosen.name.clone()).collect();
    let of_exits = exits.iter().map(|(place, ..)| *place);
    let places: RefCell<Vec<usize>> =
        RefCell::new(branches.iter().map(|(place, ..)| *place).chain(of_exits).collect());
    let tell = RefCell::new(tell);
    let mut attached = vec![Attached::new(&mut upstream, &mut groups)];
    attached.extend(branches.iter_mut().map(|(_, branch, uplink)| Attached::new(branch, uplink)));
    attached.extend(exits.iter_mut().map(|(_, exit, uplink)| Attached::new(exit, uplink)));
    let place_of = |at: usize| at.checked_sub(1).map(|at| places.borrow()[at]);
    let mut beside = KernelBeside { group: source.group, exits: exit_names, guard: None, at: None };
    // Whoever asks at the relay's port becomes a branch of this session.
    let mut grow = |attached: &mut Vec<Attached<'_>>| {
        if shared.is_hop()
            && let Some(why) = beside.look(shared.parent())
        {
            tell.borrow_mut()(None, Event::warning(why));
        }
        for child in shared.new_children() {
            let Child { address, local, .. } = child;
            let place = shared.add_branch(&child);
            let mut events = |event| tell.borrow_mut()(Some(place), event);
            let port = Port::Fixed(local.port());
            let options = SourceOptions { port, connected: true, ..SourceOptions::default() };
            let to = (address, Some(local.ip().to_string()));
            if shared.is_agent() {
                match Uplink::open(to.0, to.1, options, config.patience, Moves::Anywhere) {
                    Ok(uplink) => {
                        let endpoint = AgentChild::new(shared.clone(), place, child.id, address);
                        put(
                            &mut places.borrow_mut(),
                            attached,
                            (place, Box::new(endpoint), Box::new(uplink)),
                        );
                    }
                    Err(error) => {
                        shared.not_served(place, address);
                        events(Event::warning(format!("cannot serve {address}: {error}")));
                    }
                }
                continue;
            }
            match open_branch((config, options, None), to, (shared, place), id, &mut events) {
                Ok((endpoint, uplink)) => {
                    put(&mut places.borrow_mut(), attached, (place, Box::new(endpoint), Box::new(uplink)));
                }
                Err(error) => {
                    shared.not_served(place, address);
                    events(Event::warning(format!("cannot serve {address}: {error}")));
                }
            }
        }
    };
    let mut events = |at, event| tell.borrow_mut()(place_of(at), event);
    run_growing(&mut attached, &mut grow, &clock, &mut events, stop)?;
    let outcomes: Result<(), Error> = attached.into_iter().try_for_each(Attached::outcome);
    outcomes?;
    upstream.report().map(drop)
}

/// A child comes to this place, where one that is gone was, or at the end.
fn put(
    places: &mut Vec<usize>,
    attached: &mut Vec<Attached<'_>>,
    (place, endpoint, uplink): (usize, Box<dyn Endpoint + Send>, Box<Uplink>),
) {
    let one = Attached::owned(endpoint, uplink);
    match attached.iter().position(Attached::is_gone) {
        Some(at) => (places[at - 1], attached[at]) = (place, one),
        None => {
            places.push(place);
            attached.push(one);
        }
    }
}

/// The kernel's forwarding beside a hop.
struct KernelBeside {
    group: SocketAddr,
    /// The interfaces of its exits.
    exits: Vec<String>,
    guard: Option<Guard>,
    /// Whose packets were looked at last.
    at: Option<SocketAddr>,
}

impl KernelBeside {
    /// See to it that the kernel does not forward what comes from here as well; why that fails.
    fn look(&mut self, from: Option<SocketAddr>) -> Option<String> {
        if self.at == from {
            return None;
        }
        self.at = from;
        let Some(from) = from else {
            self.guard = None;
            return None;
        };
        if self.guard.as_ref().is_some_and(|guard| guard.is_of(from, self.group)) || !Guard::is_needed() {
            return None;
        }
        self.guard = None;
        match Guard::new(from, self.group, &self.exits, GUARDS.fetch_add(1, Ordering::Relaxed)) {
            Ok(guard) => {
                self.guard = Some(guard);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }
}

/// Tables are told apart by numbers.
static GUARDS: AtomicU64 = AtomicU64::new(0);

/// What hears above, and its sockets.
fn open_above(
    (config, source): (&RelayConfig, &RelaySource),
    shared: &Shared,
    id: ReceiverId,
    clock: &Clock,
    random: [u64; 4],
    events: &mut dyn FnMut(Event),
) -> Result<(receiver::ReceiverSession, Hearing), Error> {
    let listening = Listening {
        group: source.group,
        interface: source.interface.clone(),
        source: source.only,
        patience: config.patience,
        buffer: config.buffer,
        faults: None,
        parents: &source.parents,
        invited: None,
    };
    let groups = listening.open(random[3], events)?;
    let session = above_at((config, source), shared, id, random, (clock.unix_secs(), clock.now()));
    Ok((session, groups))
}

/// What hears above, at a host that has drawn these numbers, where it is so many seconds after 1970.
pub(crate) fn above_at(
    (config, source): (&RelayConfig, &RelaySource),
    shared: &Shared,
    id: ReceiverId,
    random: [u64; 4],
    (unix_secs, now): (u64, Time),
) -> receiver::ReceiverSession {
    let setup = receiver::Setup {
        codec: ReceiverCodec::of_relay(config.key.as_ref(), id, random[1]),
        id,
        nonce: (random[0] >> 32) as u16,
        seed: random[2],
        scheme_rng: Rng::new(random[2], 0),
        reordering: receiver::REORDERING,
        host: config.host.clone(),
        temporary: std::env::temp_dir(),
        destination: Destination::Writer(crate::Output::new(std::io::sink())),
        layers_to: Vec::new(),
        durability: Durability::Fast,
        files: FilePolicy { replace: Replace::Accept, ..FilePolicy::default() },
        verify: None,
        sign_receipts: None,
        only: source.only,
        overhead: crate::datagram::overhead(source.group),
        wait: None,
        patience: crate::config::span(config.patience),
        group: source.group,
        freshness: Freshness::Answer,
        unix_secs,
        memory: receiver::INCOMPLETE,
        parents: source.parents.clone(),
        invited: false,
        accept: crate::accept::Accept::default(),
        worker: crate::worker::Worker::at_once(), // a relay writes no files
        disk: Disk::default(),
        relay: Some(Box::new(shared.clone())),
    };
    receiver::ReceiverSession::new(setup, now)
}

/// An exit of a hop and its socket.
fn open_exit(
    (config, options): (&RelayConfig, SourceOptions),
    (to, interface): (SocketAddr, Option<String>),
    (shared, place): (&Shared, usize),
    events: &mut dyn FnMut(Event),
) -> Result<(usize, HopExit, Uplink), Error> {
    let uplink = Uplink::open(to, interface, options, config.patience, Moves::Anywhere)?;
    crate::driver::tell_opened(to, uplink.choice(), events);
    uplink.warning().into_iter().for_each(|warning| events(Event::warning(warning)));
    let [boot, ..] = random();
    let local = uplink.local().unwrap_or(to);
    shared.announces_from(local);
    let setup = ExitSetup { boot, local, overhead: crate::datagram::overhead(to) };
    let exit = shared.with_hop(|hop| hop.add_exit(setup)).unwrap_or_default();
    Ok((place, HopExit::new(shared.clone(), place, exit, to), uplink))
}

/// A branch and its socket.
fn open_branch(
    (config, options, max): (&RelayConfig, SourceOptions, Option<Rate>),
    (to, interface): (SocketAddr, Option<String>),
    (shared, place): (&Shared, usize),
    me: ReceiverId,
    events: &mut dyn FnMut(Event),
) -> Result<(Branch, Uplink), Error> {
    let ttl = options.ttl;
    let uplink = Uplink::open(to, interface, options, config.patience, Moves::Anywhere)?;
    crate::driver::tell_opened(to, uplink.choice(), events);
    uplink.warning().into_iter().for_each(|warning| events(Event::warning(warning)));
    let [boot, seed, ..] = random();
    let place = BranchPlace { place, to, local: uplink.local().unwrap_or(to), ttl, max, boot, seed };
    Ok((branch_at(config, shared, me, place), uplink))
}

/// Where a branch is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BranchPlace {
    /// Its number.
    pub(crate) place: usize,
    /// The group or host that it sends to.
    pub(crate) to: SocketAddr,
    /// And where from.
    pub(crate) local: SocketAddr,
    pub(crate) ttl: u8,
    pub(crate) max: Option<Rate>,
    /// Drawn for it.
    pub(crate) boot: u64,
    pub(crate) seed: u64,
}

/// A branch at this place.
pub(crate) fn branch_at(config: &RelayConfig, shared: &Shared, me: ReceiverId, at: BranchPlace) -> Branch {
    let BranchPlace { place, to, local, ttl, max, boot, seed } = at;
    let is_group = to.ip().is_multicast();
    shared.announces_from(local);
    // One host has nobody to wait for.
    let spread = spread_within(if is_group { ttl } else { 1 });
    let setup = BranchSetup {
        me,
        boot,
        key: config.key.clone(),
        to,
        local,
        overhead: crate::datagram::overhead(to),
        max,
        ttl,
        patience: config.patience,
        spread,
        seed,
        to_host: !is_group,
    };
    Branch::new(shared.clone(), place, setup)
}
