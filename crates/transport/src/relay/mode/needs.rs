//! Requests of downstream receivers. They are merged, and each request is sent upstream once. The relay stores no symbols, and
//! one repair by the source serves all receivers.

use faircast_core::time::{Span, Time};
use faircast_wire::Request;
use std::collections::BTreeMap;

/// Time for which requests are collected: children that lost the same packet send their requests at nearly the same time.
const GATHER: Span = Span::from_millis(5);

/// Minimum interval between repeated requests upstream, unless a child needs more.
const AGAIN: Span = Span::from_millis(60);

/// Maximum number of blocks requested or remembered at a time.
const MAX_BLOCKS: usize = 8192;

/// Symbols and pages that children lack.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// Needs by block number. The flag states whether the need is for the block's page of hashes, not for its symbols.
    wanted: BTreeMap<(u32, bool), Lacking>,
    due: Option<Time>,
    /// Requests that were sent, and the time of sending.
    asked: BTreeMap<(u32, bool), (Lacking, Time)>,
}

/// A need: the maximum number of symbols that a child lacks, and whether received symbols failed verification at a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Lacking {
    symbols: u16,
    wrong: bool,
}

impl Lacking {
    /// Combines two needs into one that covers both.
    fn and(self, other: Lacking) -> Lacking {
        Lacking { symbols: self.symbols.max(other.symbols), wrong: self.wrong || other.wrong }
    }
}

impl Needs {
    pub(crate) fn on_request(&mut self, request: &Request, now: Time) {
        self.asked.retain(|_, (_, at)| now.since(*at) < AGAIN);
        for need in &request.needs {
            for block in need.first..need.first.saturating_add(need.run.into()) {
                let key = (block, need.symbols == 0);
                let lacking = Lacking { symbols: need.symbols, wrong: need.wrong };
                let is_asked = self.asked.get(&key).is_some_and(|(asked, _)| asked.and(lacking) == *asked);
                if is_asked || self.wanted.len() + self.asked.len() >= MAX_BLOCKS {
                    continue;
                }
                let wanted = self.wanted.entry(key).or_default();
                *wanted = wanted.and(lacking);
                self.due.get_or_insert(now + GATHER);
            }
        }
    }

    pub(crate) fn deadline(&self) -> Time {
        self.due.unwrap_or(Time::NEVER)
    }

    /// Appends to `into` the requests that must be sent now.
    pub(crate) fn take_due(&mut self, now: Time, into: &mut Vec<(u32, u16)>) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        self.due = None;
        for (key, lacking) in std::mem::take(&mut self.wanted) {
            self.asked.insert(key, (lacking, now));
            into.push((key.0, lacking.symbols));
        }
    }

    /// Whether the symbols received for a recent request failed verification.
    pub(crate) fn is_wrong(&self, block: u32, symbols: u16) -> bool {
        self.asked.get(&(block, symbols == 0)).is_some_and(|(lacking, _)| lacking.wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::{Echo, ReceiverId, Seq};
    use faircast_wire::Need;

    fn asks(first: u32, run: u16, symbols: u16) -> Request {
        let echo = Echo { seq: Seq(0), hold: Span::ZERO };
        let from = ReceiverId::new(1).expect("not zero");
        Request { from, needs: vec![Need { first, run, symbols, wrong: false }], held: Vec::new(), echo }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn due(needs: &mut Needs, millis: u64) -> Vec<(u32, u16)> {
        let mut all = Vec::new();
        needs.take_due(at(millis), &mut all);
        all
    }

    #[test]
    fn requests_of_children_are_merged_by_their_maximum() {
        let mut needs = Needs::default();
        for (child, symbols) in [(0, 2), (1, 5), (2, 3)] {
            needs.on_request(&asks(7, 2, symbols), at(child));
        }
        assert_eq!(needs.deadline(), at(5));
        assert_eq!(due(&mut needs, 4), []);
        assert_eq!(due(&mut needs, 5), [(7, 5), (8, 5)]);
        needs.on_request(&asks(7, 1, 5), at(10));
        assert_eq!(due(&mut needs, 30), [], "it is on its way");
        needs.on_request(&asks(7, 1, 6), at(31));
        assert_eq!(due(&mut needs, 40), [(7, 6)], "somebody needs more");
        needs.on_request(&asks(7, 1, 6), at(120));
        assert_eq!(due(&mut needs, 130), [(7, 6)], "and again when it did not come");
        needs.on_request(&asks(7, 1, 0), at(131));
        assert_eq!(due(&mut needs, 140), [(7, 0)], "a page is something else");
        assert!(needs.deadline().is_never() && !needs.is_wrong(7, 6));
        let mut wrong = asks(7, 1, 6);
        wrong.needs[0].wrong = true;
        needs.on_request(&wrong, at(141));
        assert_eq!(due(&mut needs, 150), [(7, 6)], "the parent does not know yet that it is wrong");
        assert!(needs.is_wrong(7, 6) && !needs.is_wrong(7, 0));
        needs.on_request(&wrong, at(151));
        needs.on_request(&asks(7, 1, 6), at(152));
        assert_eq!(due(&mut needs, 160), []);
    }

    #[test]
    fn number_of_blocks_with_stored_requests_is_bounded() {
        let mut needs = Needs::default();
        for first in 0..100_u32 {
            needs.on_request(&asks(first * 60_000, 60_000, 1), at(u64::from(first)));
        }
        assert!(needs.wanted.len() <= MAX_BLOCKS);
    }
}
