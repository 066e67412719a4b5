//! How much may be asked for: whoever asks, no more is repaired than can have been lost.

use super::SourceSession;
use faircast_core::packet::ReceiverId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Of what was sent, a host may ask for so much: what is lost is asked for again, and may be lost once more.
const TIMES: u64 = 4;

/// So many symbols may be asked for in any case.
const SPARE: u64 = 4_096;

/// Hosts that are counted; when there are more, counting begins anew.
const MOST: usize = 65_536;

/// What each host has asked for.
#[derive(Debug, Default)]
pub(super) struct Budget {
    spent: BTreeMap<IpAddr, u64>,
    /// Symbols that were sent in an earlier session: all receivers go on from there.
    earlier: u64,
}

impl Budget {
    /// So many symbols are sent when they are asked for.
    pub(super) fn resume(&mut self, symbols: u64) {
        self.earlier = symbols;
    }

    /// Whether a host that may have so many symbols in all may have these.
    fn allows(&self, host: IpAddr, symbols: u16, most: u64) -> bool {
        self.spent.get(&host).copied().unwrap_or(0) + u64::from(symbols) <= most
    }

    /// So many symbols are sent because this host has asked.
    pub(super) fn spend(&mut self, host: IpAddr, symbols: u16) {
        if self.spent.len() >= MOST && !self.spent.contains_key(&host) {
            self.spent.clear();
        }
        *self.spent.entry(host).or_default() += u64::from(symbols);
    }
}

impl SourceSession {
    /// Whether a host that asks for so many symbols can lack them: all members there together no more than the content that was sent, lost,
    /// asked for and lost again. Repairs do not count as sent, or who asks for them could ask for ever. Of a sealed session, relays are
    /// believed: those behind them may come one after the other.
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
    fn a_host_asks_for_so_much_and_no_more() {
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
            assert!(budget.spent.len() <= MOST);
        }
    }
}
