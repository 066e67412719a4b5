//! All sessions of a relay process: which endpoint relays which session, and their status.

use super::hosts::Hosts;
use super::listen::Tokens;
use super::{RelayConfig, RelayRole, RelaySource, SessionHandle};
use crate::event::RelayBelow;
use crate::places::{OccupiedPlace, Standing, Vacancy, room_for};
use crate::system::{Monotonic, Random};
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_core::time::Rate;
use faircast_wire::Attach;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A relay process, for whoever wants to know how it is.
#[derive(Debug, Clone, Default)]
pub struct RelayHandle(Arc<Process>);

#[derive(Debug)]
struct Process {
    time: Monotonic,
    random: Random,
    registry: Mutex<Registry>,
    /// Count of attach packets, checked before each round of each session.
    asked: AtomicU64,
    tokens: Tokens,
    /// Whether its answers state that it is an agent.
    is_agent: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct Registry {
    /// Relayed sessions, by ID.
    sessions: BTreeMap<SessionId, SessionHandle>,
    /// When the newest of them began.
    began: Option<Instant>,
    /// Where this process announces from.
    own: BTreeSet<SocketAddr>,
    /// Hosts that want to be served by unicast, by address, and their largest number.
    children: BTreeMap<SocketAddr, AttachedHost>,
    most_children: usize,
    /// Proof that a child gives when it takes part in a session.
    shown: Standing,
    /// Count of refused hosts.
    turned_away: u64,
    pub(super) hosts: Hosts,
    /// The only session, for a source's own relay.
    only: Option<SessionId>,
    /// Whether hosts that look for a relay find this one, and how it is fed itself.
    feed: Feed,
    /// Its numbers as a receiver.
    own_ids: BTreeSet<ReceiverId>,
}

/// A host that has attached.
#[derive(Debug)]
struct AttachedHost {
    child: Child,
    /// When it did first, and last.
    since: Instant,
    last_received_at: Instant,
    /// When a session was last seen to serve it: then it need not ask again.
    served_at: Option<Instant>,
}

/// Where a relay hears sessions.
#[derive(Debug, Clone, Copy, Default)]
enum Feed {
    /// In groups, or from configured parents.
    #[default]
    Told,
    /// From a relay that it has found, and when that last answered.
    Found(Option<Instant>),
}

/// Duration for which a relay counts as found after its last answer.
const FED: Duration = Duration::from_secs(15);

/// A host that wants to be served by unicast.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) address: SocketAddr,
    /// Local address to which it has sent.
    pub(crate) local: SocketAddr,
    /// Its host name, as it states.
    pub(crate) host: String,
    /// Another process at the same place has another one.
    pub(crate) id: ReceiverId,
    /// 0: it was not invited.
    pub(crate) invitation: u64,
}

/// A host that has not attached for this duration wants nothing more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// How a relay is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayStatus {
    /// Relayed sessions.
    pub sessions: Vec<RelayedSession>,
    /// Hosts that wait to be served by unicast, as they call themselves.
    pub waiting: Vec<String>,
    /// Count of hosts that were refused for lack of room.
    pub turned_away: u64,
}

/// A relayed session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayedSession {
    /// Its number, in hexadecimal digits.
    pub session: String,
    /// The source's host, or the name of its content.
    pub name: String,
    /// The source's address and port.
    pub source: SocketAddr,
    /// Address from which it is received: the source's, or another relay's.
    pub parent: SocketAddr,
    /// Relays between the source and this one.
    pub hops: u8,
    /// Blocks that have passed, and how many there are, once that is known.
    pub blocks_passed: u32,
    /// See `blocks_passed`.
    pub blocks: Option<u32>,
    /// Bytes of symbols in the cache.
    pub cached_bytes: u64,
    /// Bytes of symbols that went to the cache's file.
    pub written_bytes: u64,
    /// Bytes of symbols that had to leave the cache for others.
    pub evicted_bytes: u64,
    /// The branches, in the configured order; an agent's children.
    pub branches: Vec<BranchStatus>,
    /// Counters of an agent.
    #[serde(default)]
    pub agent: Option<AgentStatus>,
    /// Counters of a hop with a router.
    #[serde(default)]
    pub hop: Option<HopStatus>,
}

/// How a branch is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchStatus {
    /// Where its packets go: a group, or a host.
    pub to: Option<SocketAddr>,
    /// The rate that its scheme allows.
    #[serde(rename = "rate_bps", with = "crate::json::bps")]
    pub rate: Rate,
    /// Its receivers, those behind relays further down included.
    pub receivers: u64,
    /// Those among them that have everything.
    pub done: u64,
    /// All source symbols of the blocks before this one have left once.
    pub blocks_sent: u32,
    /// Symbols sent.
    pub symbols_sent: u64,
    /// The relays downstream, each before those behind it.
    #[serde(default)]
    pub relays: Vec<RelayBelow>,
}

/// Counters of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Packets sent again to children, copies counted.
    pub repairs: u64,
    /// Packets forwarded to children that were moved into the agent's own group.
    pub passed_on: u64,
    /// Reports of children received.
    pub reports_received: u64,
    /// Reports sent to its own parent.
    pub reports_sent: u64,
    /// Children in the agent's own group now.
    pub moved: u32,
    /// Smallest window downstream, packets.
    pub window: f64,
    /// Packets in its store.
    pub stored: u32,
}

/// Counters of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HopStatus {
    /// Packets that have come.
    pub packets: u64,
    /// Packets forwarded, copies for several exits counted.
    pub passed: u64,
    /// Requests for packets that the router met from its cache: cache hits.
    pub repairs: u64,
    /// Packets that found a queue full, the router's or that of an exit.
    pub dropped: u64,
    /// Indications of congestion that the router sent, and those that it suppressed because an earlier one had reported as much.
    pub indications: u64,
    /// See `indications`.
    pub filtered: u64,
    /// Reports received.
    pub reports_received: u64,
    /// Reports sent to its own parent.
    pub reports_sent: u64,
    /// Requests for repairs received.
    pub requests: u64,
    /// Packets that wait for their turn at the exits, now.
    pub held: u64,
    /// Packets in the router's cache, sent or not.
    pub stored: u64,
    /// Entries in the router's memory.
    pub entries: u64,
}

impl Default for Process {
    fn default() -> Process {
        Process::at(Monotonic::default(), Random::default())
    }
}

impl Process {
    fn at(time: Monotonic, random: Random) -> Process {
        let tokens = Tokens::new(random.draw(), time.now());
        Process {
            time,
            random,
            registry: Mutex::default(),
            asked: AtomicU64::default(),
            tokens,
            is_agent: AtomicBool::default(),
        }
    }
}

impl RelayHandle {
    /// A process with this clock and these random numbers.
    pub fn at(time: Monotonic, random: Random) -> RelayHandle {
        RelayHandle(Arc::new(Process::at(time, random)))
    }

    /// Random numbers.
    pub fn draw(&self) -> [u64; 4] {
        self.0.random.draw()
    }

    pub(super) fn now(&self) -> Instant {
        self.0.time.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tokens that children must repeat.
    pub(super) fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    /// It is an agent.
    pub(crate) fn be_agent(&self) {
        self.0.is_agent.store(true, Ordering::Relaxed);
    }

    /// Applies this configuration; call it before any of its sessions.
    pub fn configure(&self, config: &RelayConfig) {
        if config.role == RelayRole::Agent {
            self.be_agent();
        }
        self.take_children(
            config.children,
            if config.key.is_some() { Standing::HasKey } else { Standing::TakesPart },
        );
        let is_given = |source: &RelaySource| {
            source.parents.is_empty() || source.parents.iter().any(|parent| !parent.ip().is_multicast())
        };
        if !config.sources.iter().any(is_given) {
            self.lock().feed = Feed::Found(None);
        }
    }

    /// Whether it is one.
    pub(super) fn is_agent(&self) -> bool {
        self.0.is_agent.load(Ordering::Relaxed)
    }

    /// How it is now.
    pub fn status(&self) -> RelayStatus {
        let sessions: Vec<_> = self.lock().sessions.values().cloned().collect();
        let registry = self.lock();
        let now = self.0.time.now();
        let waiting = registry.children.values().filter(|asked| asked.asks(now));
        let waiting = waiting.map(|asked| asked.child.host.clone()).collect();
        let turned_away = registry.turned_away;
        drop(registry);
        RelayStatus {
            sessions: sessions.iter().filter_map(SessionHandle::status).collect(),
            waiting,
            turned_away,
        }
    }

    /// Sets the largest number of children. A host that takes part in a session has proved its address to this standing.
    pub(crate) fn take_children(&self, most: usize, shown: Standing) {
        let mut registry = self.lock();
        (registry.most_children, registry.shown) = (most, shown);
    }

    /// Serve at most this many hosts that ask.
    pub fn serve(&self, most: usize) {
        self.take_children(most, Standing::default());
    }

    /// Registers a host with a proved address that wants to be served; returns whether it will be.
    pub(super) fn attach(&self, address: SocketAddr, local: SocketAddr, attach: &Attach) -> bool {
        let (mut registry, now) = (self.lock(), self.0.time.now());
        registry.forget_children(now);
        let invitation = Some(attach.invitation).filter(|number| registry.hosts.knows(*number)).unwrap_or(0);
        let room = if invitation == 0 { registry.room_for(address, now) } else { Vacancy::Free };
        let other = match room {
            Vacancy::Free => None,
            Vacancy::Of(place) => registry.uninvited().nth(place).map(|asked| asked.child.address),
            Vacancy::None => {
                registry.turned_away += 1;
                return false;
            }
        };
        other.into_iter().for_each(|other| drop(registry.children.remove(&other)));
        registry.hosts.asks(invitation, now);
        let host = attach.host.as_str().to_owned();
        let child = Child { address, local, host, id: attach.from, invitation };
        let known = registry.children.get(&address);
        let (since, served_at) = known.map_or((now, None), |asked| (asked.since, asked.served_at));
        registry.children.insert(address, AttachedHost { child, since, last_received_at: now, served_at });
        self.0.asked.fetch_add(1, Ordering::Release);
        if let Some(other) = other {
            // A session locks itself before it asks here for children.
            let sessions: Vec<_> = registry.sessions.values().cloned().collect();
            drop(registry);
            sessions.iter().for_each(|session| session.displace(other));
        }
        true
    }

    /// A session serves this host now.
    pub(crate) fn note_served(&self, address: SocketAddr) {
        if let Some(asked) = self.lock().children.get_mut(&address) {
            asked.served_at = Some(self.0.time.now());
        }
    }

    /// Whether a searching host gets an answer from this relay. A relay that has found its own parent serves hosts while it has it, but no
    /// relays: two could wait for one another.
    pub(super) fn answers_search(&self, address: SocketAddr, attach: &Attach) -> bool {
        let (mut registry, now) = (self.lock(), self.0.time.now());
        registry.forget_children(now);
        let is_upstream_alive = match registry.feed {
            Feed::Told => true,
            Feed::Found(last_received_at) => {
                let answers = last_received_at.is_some_and(|at| now.duration_since(at) < FED);
                !attach.relay && (answers || !registry.sessions.is_empty())
            }
        };
        is_upstream_alive
            && !registry.own_ids.contains(&attach.from)
            && registry.room_for(address, now) != Vacancy::None
    }

    /// Its parent answers.
    pub(super) fn note_upstream_alive(&self) {
        if let Feed::Found(last_received_at) = &mut self.lock().feed {
            *last_received_at = Some(self.0.time.now());
        }
    }

    /// Adds a number under which this relay attaches itself.
    pub(crate) fn add_own_id(&self, id: ReceiverId) {
        self.lock().own_ids.insert(id);
    }

    /// Removes such a number.
    pub(crate) fn remove_own_id(&self, id: ReceiverId) {
        self.lock().own_ids.remove(&id);
    }

    /// Pass on this session and no other.
    pub fn take_only(&self, session: SessionId) {
        self.lock().only = Some(session);
    }

    /// Whether this session is one to pass on.
    pub(super) fn is_wanted(&self, session: SessionId) -> bool {
        self.lock().only.is_none_or(|only| only == session)
    }

    /// Whether no session is relayed.
    pub fn is_idle(&self) -> bool {
        self.lock().sessions.is_empty()
    }

    /// Returns the count of attach packets.
    pub(super) fn asked(&self) -> u64 {
        self.0.asked.load(Ordering::Acquire)
    }

    /// Returns the hosts that want to be served.
    pub(super) fn children(&self) -> Vec<Child> {
        let now = self.0.time.now();
        let registry = self.lock();
        registry.children.values().filter(|asked| asked.asks(now)).map(|asked| asked.child.clone()).collect()
    }

    /// This process announces from here.
    pub(crate) fn add_own(&self, place: SocketAddr) {
        self.lock().own.insert(place);
    }

    /// Whether an announcement is this process's own.
    pub(super) fn is_own(&self, place: SocketAddr) -> bool {
        self.lock().own.contains(&place)
    }

    /// Whether the session is relayed already.
    pub(super) fn is_taken(&self, session: SessionId) -> bool {
        self.lock().sessions.contains_key(&session)
    }

    /// Starts relaying this session; `false`: it is relayed already.
    pub(super) fn take(&self, session: SessionId, shared: &SessionHandle) -> bool {
        let mut registry = self.lock();
        if registry.sessions.contains_key(&session) {
            return false;
        }
        registry.sessions.insert(session, shared.clone());
        registry.began = Some(self.0.time.now());
        true
    }

    /// Ends the session.
    pub(super) fn release(&self, session: SessionId) {
        self.lock().sessions.remove(&session);
    }
}

impl AttachedHost {
    fn asks(&self, now: Instant) -> bool {
        now.duration_since(self.last_received_at) < FORGOTTEN_AFTER
    }

    fn is_served(&self, now: Instant) -> bool {
        self.served_at.is_some_and(|at| now.duration_since(at) < FORGOTTEN_AFTER)
    }
}

impl Registry {
    /// Forgets children that have not attached for a while, and are not served.
    fn forget_children(&mut self, now: Instant) {
        self.children.retain(|_, asked| asked.asks(now) || asked.is_served(now));
    }

    /// Returns the hosts that were not invited.
    fn uninvited(&self) -> impl Iterator<Item = &AttachedHost> {
        self.children.values().filter(|asked| asked.child.invitation == 0)
    }

    /// Finds a place for a child at this address among those that were not invited.
    fn room_for(&self, address: SocketAddr, now: Instant) -> Vacancy {
        if self.children.contains_key(&address) {
            return Vacancy::Free;
        }
        // Before a session a child can show nothing but its address.
        let began = self.began.filter(|_| !self.sessions.is_empty()).unwrap_or(now);
        let of = |asked: &AttachedHost| OccupiedPlace {
            host: asked.child.address.ip(),
            since: asked.since.max(began),
            standing: asked.served_at.map_or(Standing::Unproved, |_| self.shown),
        };
        let held: Vec<OccupiedPlace> = self.uninvited().map(of).collect();
        room_for(address.ip(), &held, self.most_children, now)
    }
}
