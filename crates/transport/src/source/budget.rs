//! Limits of requested repairs: a host cannot request more symbols than it can have lost.

use super::SourceSession;
use faircast_core::packet::ReceiverId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Maximum number of symbols that a host may request for each of its members, as a multiple of the number of symbols sent. The
/// factor is greater than one, because lost symbols are requested again and may be lost again.
const TIMES: u64 = 4;

/// Number of further symbols that a host may request for each of its members, regardless of the number of symbols sent.
const SPARE: u64 = 4_096;

/// Maximum number of counted hosts. When a further host requests symbols, all counts are reset.
const MAX_HOSTS: usize = 65_536;

/// Number of symbols requested by each host.
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: BTreeMap<IpAddr, u64>,
}

impl Budget {
    /// Whether a host may request `symbols` more symbols, up to `most` in total.
    fn allows(&self, host: IpAddr, symbols: u16, most: u64) -> bool {
        self.spent.get(&host).copied().unwrap_or(0) + u64::from(symbols) <= most
    }

    /// Records that `symbols` symbols are sent at the request of `host`.
    pub(super) fn spend(&mut self, host: IpAddr, symbols: u16) {
        if self.spent.len() >= MAX_HOSTS && !self.spent.contains_key(&host) {
            self.spent.clear();
        }
        *self.spent.entry(host).or_default() += u64::from(symbols);
    }
}

impl SourceSession {
    /// Whether a host can lack the symbols that it requests. The limit grows with the blocks of the first pass, sent or skipped,
    /// and with the number of members at that host. Repairs do not count; otherwise each request would raise the limit. In a sealed session,
    /// requests of a relay have no limit, because a relay may serve different receivers one after another.
    pub(super) fn may_ask_for(&self, id: ReceiverId, from: SocketAddr, symbols: u16) -> bool {
        let is_sealed = self.codec.form() == faircast_wire::Form::Sealed;
        if is_sealed && self.members.get(id).is_some_and(|member| member.is_relay) {
            return true;
        }
        let members = self.members.at(from.ip()).max(1) as u64;
        let block = u64::from(self.scheduler.geometry().symbols_per_block);
        let passed = u64::from(self.scheduler.status().complete_to) * block;
        let sent = passed.min(self.scheduler.amounts().content_symbols);
        let most = (sent * TIMES + SPARE) * members;
        self.budget.allows(from.ip(), symbols, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_bounds_the_symbols_that_a_host_requests() {
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
    fn number_of_stored_hosts_is_bounded() {
        let mut budget = Budget::default();
        for host in 0..100_000_u32 {
            budget.spend(IpAddr::from(host.to_be_bytes()), 1);
            assert!(budget.spent.len() <= MAX_HOSTS);
        }
    }
}
