//! Limits of requested repairs: no more is repaired than can have been lost.

use super::SourceSession;
use faircast_core::packet::ReceiverId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// A host may request this multiple of the content sent: lost symbols are requested again, and may be lost once more.
const TIMES: u64 = 4;

/// Symbols that may be requested in any case.
const SPARE: u64 = 4_096;

/// Maximum number of hosts counted; with more, counting starts again.
const MAX_HOSTS: usize = 65_536;

/// Symbols requested per host.
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: BTreeMap<IpAddr, u64>,
    /// Symbols that were sent in an earlier session: all receivers go on from there.
    earlier: u64,
}

impl Budget {
    /// Adds symbols that are sent on request.
    pub(super) fn resume(&mut self, symbols: u64) {
        self.earlier = symbols;
    }

    /// Whether a host with this total limit of symbols may request these.
    fn allows(&self, host: IpAddr, symbols: u16, most: u64) -> bool {
        self.spent.get(&host).copied().unwrap_or(0) + u64::from(symbols) <= most
    }

    /// Records that this number of symbols is sent at this host's request.
    pub(super) fn spend(&mut self, host: IpAddr, symbols: u16) {
        if self.spent.len() >= MAX_HOSTS && !self.spent.contains_key(&host) {
            self.spent.clear();
        }
        *self.spent.entry(host).or_default() += u64::from(symbols);
    }
}

impl SourceSession {
    /// Whether a host can lack the symbols that it requests. All its members together can lack no more than the content sent, lost,
    /// requested and lost again. Repairs do not count as sent; otherwise a host could request without end. In a sealed session relays are
    /// believed: their receivers may come one after the other.
    pub(super) fn may_ask_for(&self, id: ReceiverId, from: SocketAddr, symbols: u16) -> bool {
        let is_sealed = self.codec.form() == faircast_wire::Form::Sealed;
        if is_sealed && self.members.get(id).is_some_and(|member| member.is_relay) {
            return true;
        }
        let members = self.members.at(from.ip()).max(1) as u64;
        let amounts = self.scheduler.amounts();
        let sent = amounts.sent_symbols.min(amounts.content_symbols) + self.budget.earlier;
        let most = (sent * TIMES + SPARE) * members;
        self.budget.allows(from.ip(), symbols, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_bounds_the_requests_of_a_host() {
        let mut budget = Budget::default();
        let [here, there] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        for _ in 0..10 {
            assert!(budget.allows(here, 100, 1_000));
            budget.spend(here, 100);
        }
        assert!(!budget.allows(here, 1, 1_000));
        assert!(budget.allows(here, 1, 1_001), "more has been sent");
        assert!(budget.allows(there, 1_000, 1_000));
    }

    #[test]
    fn memory_is_bounded() {
        let mut budget = Budget::default();
        for host in 0..100_000_u32 {
            budget.spend(IpAddr::from(host.to_be_bytes()), 1);
            assert!(budget.spent.len() <= MAX_HOSTS);
        }
    }
}
