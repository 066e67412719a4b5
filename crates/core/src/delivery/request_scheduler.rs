//! The request scheduler of a receiver: it decides when to request missing symbols (negative acknowledgements that count
//! symbols).
//!
//! A request is delayed by a random time. If many receivers have the same loss, one receiver sends its request first. The source
//! then announces that it has scheduled the repair, and the other receivers send no request. A request is not repeated before an
//! answer can have arrived.

use crate::rng::Rng;
use crate::time::{Span, Time};
use std::collections::BTreeMap;

/// Maximum number of blocks that are requested at the same time. Further missing blocks are requested later.
const WINDOW: usize = 512;

/// Exponent of the delay distribution (`suppress`): most receivers draw long delays, and a few draw short ones.
const STEEPNESS: f64 = 10.0;

/// State of a receiver's requests.
#[derive(Debug, Default)]
pub struct RequestScheduler {
    asked: BTreeMap<u32, PendingRequest>,
    timer: Option<Time>,
    rtt: Span,
    spread: Span,
}

#[derive(Debug, Clone, Copy)]
struct PendingRequest {
    /// Earliest time of a repeated request.
    again_at: Time,
    tries: u32,
}

impl RequestScheduler {
    /// Creates a scheduler without requests, for a round-trip time of `rtt`. Receivers spread their requests over `spread`.
    pub fn new(rtt: Span, spread: Span) -> RequestScheduler {
        RequestScheduler { rtt, spread, ..RequestScheduler::default() }
    }

    /// Sets the source's largest round-trip time, and the time over which receivers spread their requests.
    pub fn set_pace(&mut self, rtt: Span, spread: Span) {
        (self.rtt, self.spread) = (rtt, spread);
    }

    /// Schedules a request after a random delay, because symbols may be missing.
    pub fn arm(&mut self, now: Time, rng: &mut Rng) {
        let wanted = now + self.delay(rng);
        self.timer = Some(self.timer.map_or(wanted, |timer| timer.min(wanted)));
    }

    /// Records the arrival of a symbol of `block`, and extends the wait for the block's other requested symbols.
    pub fn on_symbol(&mut self, block: u32, now: Time) {
        let patience = self.patience(0);
        if let Some(asked) = self.asked.get_mut(&block) {
            (asked.again_at, asked.tries) = (now + patience, 0);
        }
    }

    /// Records that the source has scheduled enough symbols for `block`, so that no request is needed.
    pub fn on_scheduled(&mut self, block: u32, now: Time) {
        let again_at = now + self.patience(1);
        let asked = self.asked.entry(block).or_insert(PendingRequest { again_at, tries: 0 });
        asked.again_at = asked.again_at.max(again_at);
    }

    /// Drops the requests for `block`, which is complete.
    pub fn on_complete(&mut self, block: u32) {
        self.asked.remove(&block);
    }

    /// Drops the requests for all blocks below `block`.
    pub fn forget_before(&mut self, block: u32) {
        self.asked = self.asked.split_off(&block);
    }

    /// Returns the time of the next call of [`RequestScheduler::due`].
    pub fn deadline(&self) -> Time {
        self.timer.unwrap_or(Time::NEVER)
    }

    /// Writes to `out` the entries of `missing` that are to be requested now, and sets the next deadline. An entry is a block
    /// number and the number of symbols needed; `missing` is sorted by block number.
    pub fn due(
        &mut self,
        now: Time,
        rng: &mut Rng,
        missing: impl Iterator<Item = (u32, u16)>,
        out: &mut Vec<(u32, u16)>,
    ) {
        if self.deadline() > now {
            return;
        }
        out.clear();
        self.timer = None;
        let mut next = Time::NEVER;
        for (block, symbols) in missing.take(WINDOW) {
            let tries = match self.asked.get(&block) {
                Some(asked) if asked.again_at > now => {
                    next = next.min(asked.again_at);
                    continue;
                }
                Some(asked) => asked.tries + 1,
                None => 0,
            };
            let again_at = now + self.patience(tries);
            self.asked.insert(block, PendingRequest { again_at, tries });
            next = next.min(again_at);
            out.push((block, symbols));
        }
        if !next.is_never() {
            self.timer = Some(next + self.delay(rng));
        }
    }

    /// Returns the waiting time for an answer to a request that was repeated `tries` times.
    fn patience(&self, tries: u32) -> Span {
        let base = (self.rtt * 2 + self.spread).max(Span::from_millis(10));
        (base * (1 << tries.min(6))).min(Span::from_secs(1).max(base))
    }

    fn delay(&self, rng: &mut Rng) -> Span {
        let law = (1.0 + rng.unit() * STEEPNESS.exp_m1()).ln() / STEEPNESS;
        self.spread.scaled(law)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(10);

    fn needs() -> (RequestScheduler, Rng) {
        (RequestScheduler::new(RTT, Span::from_millis(4)), Rng::new(1, 1))
    }

    fn ask(
        needs: &mut RequestScheduler,
        rng: &mut Rng,
        now: Time,
        missing: &[(u32, u16)],
    ) -> Vec<(u32, u16)> {
        let mut out = Vec::new();
        needs.due(now, rng, missing.iter().copied(), &mut out);
        out
    }

    #[test]
    fn no_request_is_sent_before_the_backoff_ends() {
        let (mut needs, mut rng) = needs();
        needs.arm(Time::ZERO, &mut rng);
        assert!(needs.deadline() <= Time::ZERO + Span::from_millis(4));
        assert!(ask(&mut needs, &mut rng, Time::ZERO, &[(1, 2)]).is_empty());
        let now = needs.deadline();
        assert_eq!(ask(&mut needs, &mut rng, now, &[(1, 2)]), [(1, 2)]);
    }

    #[test]
    fn requests_are_repeated_after_two_and_then_four_round_trips() {
        let (mut needs, mut rng) = needs();
        needs.arm(Time::ZERO, &mut rng);
        let first = needs.deadline();
        ask(&mut needs, &mut rng, first, &[(1, 2)]);
        let second = needs.deadline();
        assert!(second >= first + RTT * 2);
        assert_eq!(ask(&mut needs, &mut rng, second, &[(1, 2)]), [(1, 2)]);
        assert!(needs.deadline() >= second + RTT * 4, "and ever more slowly");
    }

    #[test]
    fn scheduled_symbols_are_not_requested() {
        let (mut needs, mut rng) = needs();
        needs.arm(Time::ZERO, &mut rng);
        needs.on_scheduled(1, Time::ZERO);
        let now = needs.deadline();
        assert_eq!(ask(&mut needs, &mut rng, now, &[(1, 2), (2, 1)]), [(2, 1)]);
    }

    #[test]
    fn no_deadline_is_set_when_nothing_is_missing() {
        let (mut needs, mut rng) = needs();
        needs.arm(Time::ZERO, &mut rng);
        let now = needs.deadline();
        assert!(ask(&mut needs, &mut rng, now, &[]).is_empty());
        assert!(needs.deadline().is_never());
    }

    #[test]
    fn number_of_blocks_in_a_request_is_limited() {
        let (mut needs, mut rng) = needs();
        needs.arm(Time::ZERO, &mut rng);
        let all: Vec<_> = (0..10_000).map(|block| (block, 9)).collect();
        let now = needs.deadline();
        assert_eq!(ask(&mut needs, &mut rng, now, &all).len(), WINDOW);
    }
}
