//! All sessions of a relay process: who passes on which, and how they are.

use super::{Shared, Standing};
use faircast_core::packet::SessionId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A relay process, for whoever wants to know how it is.
#[derive(Debug, Clone, Default)]
pub struct RelayHandle(Arc<Process>);

#[derive(Debug, Default)]
struct Process {
    registry: Mutex<Registry>,
    /// How often children have asked: looked at before every round of every session.
    asked: AtomicU64,
}

#[derive(Debug, Default)]
struct Registry {
    /// Sessions that are passed on, by session.
    sessions: BTreeMap<SessionId, Shared>,
    /// Where this process announces from.
    own: BTreeSet<SocketAddr>,
    /// Those who want to be served by unicast, by address, and so many at most.
    children: BTreeMap<SocketAddr, (Child, Instant)>,
    most_children: usize,
    /// Those who were turned away.
    turned_away: u64,
}

/// Who wants to be served by unicast.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) address: SocketAddr,
    /// Where it has asked.
    pub(crate) local: SocketAddr,
    /// What it calls itself.
    pub(crate) host: String,
}

/// Who has not asked for so long wants nothing more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// How a relay is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayStatus {
    /// The sessions that it passes on.
    pub sessions: Vec<RelayedSession>,
    /// Hosts that wait to be served by unicast, as they call themselves.
    pub waiting: Vec<String>,
    /// How often somebody was turned away because there were too many.
    pub turned_away: u64,
}

/// A session that is passed on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelayedSession {
    /// Its number, in hexadecimal digits.
    pub session: String,
    /// The source's host, or what it sends.
    pub name: String,
    /// The source's address and port.
    pub source: SocketAddr,
    /// Where it is heard from: the source, or another relay.
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
    /// The branches, in the order in which they were asked for.
    pub branches: Vec<BranchStatus>,
}

/// How a branch is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchStatus {
    /// Where its packets go: a group, or a host.
    pub to: Option<SocketAddr>,
    /// The rate that its scheme allows, in bit/s.
    pub rate_bps: f64,
    /// Its receivers, those behind relays further down included.
    pub receivers: u64,
    /// Those among them that have everything.
    pub done: u64,
    /// All source symbols of the blocks below this one have left once.
    pub blocks_sent: u32,
    /// Symbols sent.
    pub symbols_sent: u64,
}

impl RelayHandle {
    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it is now.
    pub fn status(&self) -> RelayStatus {
        let sessions: Vec<_> = self.lock().sessions.values().cloned().collect();
        let registry = self.lock();
        let now = Instant::now();
        let asks = |heard_at: &Instant| now.duration_since(*heard_at) < FORGOTTEN_AFTER;
        let waiting = registry.children.values().filter(|(_, heard_at)| asks(heard_at));
        let waiting = waiting.map(|(child, _)| child.host.clone()).collect();
        let turned_away = registry.turned_away;
        drop(registry);
        RelayStatus { sessions: sessions.iter().filter_map(Shared::status).collect(), waiting, turned_away }
    }

    /// How many receivers are below in all sessions.
    pub fn standing(&self) -> Vec<Standing> {
        self.lock().sessions.values().map(Shared::standing).collect()
    }

    /// So many children are served at most.
    pub(super) fn take_children(&self, most: usize) {
        self.lock().most_children = most;
    }

    /// A host that has shown to be where it says wants to be served.
    pub(super) fn attach(&self, address: SocketAddr, local: SocketAddr, host: &str) {
        let (mut registry, now) = (self.lock(), Instant::now());
        registry.children.retain(|_, (_, heard_at)| now.duration_since(*heard_at) < FORGOTTEN_AFTER);
        if registry.children.len() >= registry.most_children && !registry.children.contains_key(&address) {
            registry.turned_away += 1;
            return;
        }
        registry.children.insert(address, (Child { address, local, host: host.to_owned() }, now));
        self.0.asked.fetch_add(1, Ordering::Release);
    }

    /// How often children have asked.
    pub(super) fn asked(&self) -> u64 {
        self.0.asked.load(Ordering::Acquire)
    }

    /// Those who want to be served.
    pub(super) fn children(&self) -> Vec<Child> {
        self.lock().children.values().map(|(child, _)| child.clone()).collect()
    }

    /// This process announces from here.
    pub(crate) fn add_own(&self, place: SocketAddr) {
        self.lock().own.insert(place);
    }

    /// Whether an announcement is this process's own.
    pub(super) fn is_own(&self, place: SocketAddr) -> bool {
        self.lock().own.contains(&place)
    }

    /// Whether somebody passes the session on already.
    pub(super) fn is_taken(&self, session: SessionId) -> bool {
        self.lock().sessions.contains_key(&session)
    }

    /// Pass this session on from now on; `false`: somebody does already.
    pub(super) fn take(&self, session: SessionId, shared: &Shared) -> bool {
        let mut registry = self.lock();
        if registry.sessions.contains_key(&session) {
            return false;
        }
        registry.sessions.insert(session, shared.clone());
        true
    }

    /// The session is over.
    pub(super) fn release(&self, session: SessionId) {
        self.lock().sessions.remove(&session);
    }
}
