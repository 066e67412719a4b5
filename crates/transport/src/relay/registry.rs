//! All sessions of a relay process, their endpoints and their status.

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

/// Handle of a relay process, which is shared by its sessions and by queries of its status.
#[derive(Debug, Clone, Default)]
pub struct RelayHandle(Arc<Process>);

#[derive(Debug)]
struct Process {
    time: Monotonic,
    random: Random,
    registry: Mutex<Registry>,
    /// Number of attach packets received. A session looks for new children only after this number has changed.
    asked: AtomicU64,
    tokens: Tokens,
    /// Whether the relay is an agent. The relay's answers state this.
    is_agent: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct Registry {
    /// Relayed sessions, by ID.
    sessions: BTreeMap<SessionId, SessionHandle>,
    /// Start time of the newest session.
    began: Option<Instant>,
    /// Addresses from which this process announces sessions.
    own: BTreeSet<SocketAddr>,
    /// Hosts that want unicast service, by address. The next field is the maximum number of such hosts.
    children: BTreeMap<SocketAddr, AttachedHost>,
    most_children: usize,
    /// The proof that a child gives by taking part in a session.
    shown: Standing,
    /// Number of refused hosts.
    turned_away: u64,
    pub(super) hosts: Hosts,
    /// The only session that is relayed, if the relay belongs to a source.
    only: Option<SessionId>,
    /// The origin of the relay's sessions, which decides whether searching hosts can find the relay.
    feed: Feed,
    /// IDs of this relay as a receiver.
    own_ids: BTreeSet<ReceiverId>,
}

#[derive(Debug)]
struct AttachedHost {
    child: Child,
    /// Time of the first attach packet. The next field is the time of the latest one.
    since: Instant,
    last_received_at: Instant,
    /// Time at which a session last served the host. A served host need not attach again.
    served_at: Option<Instant>,
}

/// The origin of a relay's sessions.
#[derive(Debug, Clone, Copy, Default)]
enum Feed {
    /// Groups or configured parents.
    #[default]
    Told,
    /// A relay that was found by a search, and the time of the found relay's last answer.
    Found(Option<Instant>),
}

/// Duration for which a found relay counts as alive after its last answer.
const FED: Duration = Duration::from_secs(15);

/// A host that wants unicast service.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) address: SocketAddr,
    /// Local address to which the host has sent.
    pub(crate) local: SocketAddr,
    /// Name of the host, as stated by the host itself.
    pub(crate) host: String,
    /// ID of the process. Another process at the same address has another ID.
    pub(crate) id: ReceiverId,
    /// Number of the invitation; 0 if the host was not invited.
    pub(crate) invitation: u64,
}

/// Duration without attach packets after which a host is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// Status of a relay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayStatus {
    /// Relayed sessions.
    pub sessions: Vec<RelayedSession>,
    /// Names of the hosts that wait for unicast service, as stated by the hosts themselves.
    pub waiting: Vec<String>,
    /// Number of hosts that were refused for lack of room.
    pub turned_away: u64,
}

/// A relayed session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayedSession {
    /// Session ID, in hexadecimal digits.
    pub session: String,
    /// Host name of the source, or name of the session's content.
    pub name: String,
    /// Address and port of the source.
    pub source: SocketAddr,
    /// Address from which the session is received: the address of the source or of another relay.
    pub parent: SocketAddr,
    /// Number of relays between the source and this one.
    pub hops: u8,
    /// Number of blocks that the source has sent completely. `blocks` is the total number of blocks, if known.
    pub blocks_passed: u32,
    /// Number of all blocks, once known; see `blocks_passed`.
    pub blocks: Option<u32>,
    /// Bytes of symbols in the cache.
    pub cached_bytes: u64,
    /// Bytes of symbols written to the cache's file.
    pub written_bytes: u64,
    /// Bytes of symbols evicted from the cache.
    pub evicted_bytes: u64,
    /// The branches in the configured order, or an agent's children.
    pub branches: Vec<BranchStatus>,
    /// Counters of an agent.
    #[serde(default)]
    pub agent: Option<AgentStatus>,
    /// Counters of an active router.
    #[serde(default)]
    pub hop: Option<HopStatus>,
}

/// Status of a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchStatus {
    /// Destination of packets: a group, or a host.
    pub to: Option<SocketAddr>,
    /// Rate that the scheme of the branch allows.
    #[serde(rename = "rate_bps", with = "crate::json::bps")]
    pub rate: Rate,
    /// Number of receivers, including those of downstream relays.
    pub receivers: u64,
    /// Number of receivers that have all content.
    pub done: u64,
    /// Number of blocks whose source symbols have all been sent at least once.
    pub blocks_sent: u32,
    /// Number of symbols sent.
    pub symbols_sent: u64,
    /// The downstream relays, each listed before its own relays.
    #[serde(default)]
    pub relays: Vec<RelayBelow>,
}

/// Counters of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Packets sent again to children, including copies.
    pub repairs: u64,
    /// Packets forwarded to children that were moved into the agent's own group.
    pub passed_on: u64,
    /// Reports received from children.
    pub reports_received: u64,
    /// Reports sent to the parent.
    pub reports_sent: u64,
    /// Number of children that are currently in the agent's own group.
    pub moved: u32,
    /// Smallest downstream window, packets.
    pub window: f64,
    /// Number of packets in the agent's store.
    pub stored: u32,
}

/// Counters of an active router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HopStatus {
    /// Packets received.
    pub packets: u64,
    /// Packets forwarded, including copies for several exits.
    pub passed: u64,
    /// Number of requests for packets that were answered from the router's cache (cache hits).
    pub repairs: u64,
    /// Packets dropped at a full queue of the router or of an exit.
    pub dropped: u64,
    /// Number of congestion indications that the router has sent. `filtered` is the number of indications that it suppressed,
    /// because an earlier indication had reported at least as much congestion.
    pub indications: u64,
    /// Suppressed congestion indications; see `indications`.
    pub filtered: u64,
    /// Reports received.
    pub reports_received: u64,
    /// Reports sent to the parent.
    pub reports_sent: u64,
    /// Requests for repairs received.
    pub requests: u64,
    /// Number of packets that currently wait at the exits.
    pub held: u64,
    /// Number of packets in the router's cache, both sent and unsent.
    pub stored: u64,
    /// Number of entries in the router's tables.
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
    /// Creates a process with this clock and this source of random numbers.
    pub fn at(time: Monotonic, random: Random) -> RelayHandle {
        RelayHandle(Arc::new(Process::at(time, random)))
    }

    /// Draws random numbers.
    pub fn draw(&self) -> [u64; 4] {
        self.0.random.draw()
    }

    pub(super) fn now(&self) -> Instant {
        self.0.time.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tokens that children must return.
    pub(super) fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    /// Marks the process as an agent.
    pub(crate) fn be_agent(&self) {
        self.0.is_agent.store(true, Ordering::Relaxed);
    }

    /// Applies this configuration; must be called before the first session.
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

    /// Whether the process is an agent.
    pub(super) fn is_agent(&self) -> bool {
        self.0.is_agent.load(Ordering::Relaxed)
    }

    /// Returns the current status.
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

    /// Sets the maximum number of children. `shown` is the proof that a child gives by taking part in a session.
    pub(crate) fn take_children(&self, most: usize, shown: Standing) {
        let mut registry = self.lock();
        (registry.most_children, registry.shown) = (most, shown);
    }

    /// Sets the maximum number of hosts served by unicast.
    pub fn serve(&self, most: usize) {
        self.take_children(most, Standing::default());
    }

    /// Registers a host that has proved its address and wants unicast service; returns whether the relay will serve it.
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
            // Release the lock first: sessions lock their own state before they lock the registry.
            let sessions: Vec<_> = registry.sessions.values().cloned().collect();
            drop(registry);
            sessions.iter().for_each(|session| session.displace(other));
        }
        true
    }

    /// Records that a session serves this host now.
    pub(crate) fn note_served(&self, address: SocketAddr) {
        if let Some(asked) = self.lock().children.get_mut(&address) {
            asked.served_at = Some(self.0.time.now());
        }
    }

    /// Whether this relay answers a searching host. If this relay has itself found its parent by a search, it answers only while
    /// that parent is alive. It then does not answer relays, because two relays could otherwise wait for each other.
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

    /// Records that the parent is alive.
    pub(super) fn note_upstream_alive(&self) {
        if let Feed::Found(last_received_at) = &mut self.lock().feed {
            *last_received_at = Some(self.0.time.now());
        }
    }

    /// Adds an ID with which this relay attaches to its own parent.
    pub(crate) fn add_own_id(&self, id: ReceiverId) {
        self.lock().own_ids.insert(id);
    }

    /// Removes an ID with which this relay attached to its own parent.
    pub(crate) fn remove_own_id(&self, id: ReceiverId) {
        self.lock().own_ids.remove(&id);
    }

    /// Restricts the relay to this session.
    pub fn take_only(&self, session: SessionId) {
        self.lock().only = Some(session);
    }

    /// Whether this session may be relayed.
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

    /// Returns the hosts that want unicast service.
    pub(super) fn children(&self) -> Vec<Child> {
        let now = self.0.time.now();
        let registry = self.lock();
        registry.children.values().filter(|asked| asked.asks(now)).map(|asked| asked.child.clone()).collect()
    }

    /// Records that this process announces sessions from this address.
    pub(crate) fn add_own(&self, place: SocketAddr) {
        self.lock().own.insert(place);
    }

    /// Whether an announcement from this address was sent by this process.
    pub(super) fn is_own(&self, place: SocketAddr) -> bool {
        self.lock().own.contains(&place)
    }

    /// Whether the session is already relayed.
    pub(super) fn is_taken(&self, session: SessionId) -> bool {
        self.lock().sessions.contains_key(&session)
    }

    /// Starts relaying this session; returns `false` if it is already relayed.
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
    /// Forgets children that have not attached for some time and are not served.
    fn forget_children(&mut self, now: Instant) {
        self.children.retain(|_, asked| asked.asks(now) || asked.is_served(now));
    }

    /// Returns the attached hosts without an invitation.
    fn uninvited(&self) -> impl Iterator<Item = &AttachedHost> {
        self.children.values().filter(|asked| asked.child.invitation == 0)
    }

    /// Finds a place for a child at this address. Only places of children that were not invited count.
    fn room_for(&self, address: SocketAddr, now: Instant) -> Vacancy {
        if self.children.contains_key(&address) {
            return Vacancy::Free;
        }
        // Before a session starts, a child can prove only its address.
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
