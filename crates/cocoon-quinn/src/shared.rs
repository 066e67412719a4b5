//! Groups of connections by prefix, and their common coordinator.

use faircast_core::time::Time;
use faircast_unicast::cocoon::{Config, Coordinator, GroupId, Joined, MemberId, View};
use quinn_proto::congestion::ControllerFactory;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A factory of quinn's controllers that can be shared.
pub(crate) type Inner = Arc<dyn ControllerFactory + Send + Sync>;

/// Prefix lengths that define groups of peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefixes {
    /// Prefix length for IPv4 addresses, 0 to 32.
    pub ipv4: u8,
    /// Prefix length for IPv6 addresses, 0 to 128.
    pub ipv6: u8,
}

impl Default for Prefixes {
    /// Returns the prefix lengths /24 and /64.
    fn default() -> Self {
        Self { ipv4: 24, ipv6: 64 }
    }
}

impl Prefixes {
    /// Returns the prefix of an address, with trailing zeros. An IPv4-mapped IPv6 address counts as IPv4.
    pub(crate) fn of(self, peer: IpAddr) -> IpAddr {
        match peer.to_canonical() {
            IpAddr::V4(it) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.ipv4.min(32))).unwrap_or(0);
                Ipv4Addr::from(u32::from(it) & mask).into()
            }
            IpAddr::V6(it) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.ipv6.min(128))).unwrap_or(0);
                Ipv6Addr::from(u128::from(it) & mask).into()
            }
        }
    }
}

pub(crate) struct Shared {
    pub(crate) inner: Inner,
    pub(crate) prefixes: Prefixes,
    /// Start of the coordinator's time.
    epoch: Instant,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) coordinator: Coordinator,
    pub(crate) groups: BTreeMap<IpAddr, GroupId>,
}

impl Shared {
    pub(crate) fn new(inner: Inner, prefixes: Prefixes, config: Config) -> Self {
        let state = State { coordinator: Coordinator::new(config), groups: BTreeMap::new() };
        Self { inner, prefixes, epoch: Instant::now(), state: Mutex::new(state) }
    }

    /// Locks the state. The coordinator is consistent even after a panic in another thread, so a poisoned lock is accepted.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Converts quinn's time to the coordinator's time. A time before the epoch is converted to the epoch.
    pub(crate) fn time(&self, at: Instant) -> Time {
        let nanos = at.saturating_duration_since(self.epoch).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2))
    }

    /// Adds a new connection to the group of its prefix. Returns `None` if the coordinator is full; the connection is then not
    /// coordinated.
    pub(crate) fn join(&self, prefix: IpAddr, view: View) -> Option<Joined> {
        let mut state = self.lock();
        let known = state.groups.get(&prefix).copied();
        let group = match known {
            Some(group) => group,
            None => {
                let group = state.coordinator.open_group().ok()?;
                state.groups.insert(prefix, group);
                group
            }
        };
        state.coordinator.join(group, view).ok()
    }

    /// Removes a connection that has ended. Closes the group if it has no other connection.
    pub(crate) fn leave(&self, prefix: IpAddr, member: MemberId) {
        let mut state = self.lock();
        state.coordinator.leave(member);
        if let Some(group) = state.groups.get(&prefix).copied()
            && state.coordinator.members_of(group) == 0
        {
            state.coordinator.close_group(group);
            state.groups.remove(&prefix);
        }
    }
}
