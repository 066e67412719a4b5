//! Exclusion of receivers whose paths cannot carry the least rate (paper 003, 2).

use crate::packet::ReceiverId;
use crate::time::{Span, Time};

/// Rule for excluding a receiver.
// Paper gap: the paper does not define how to detect that a receiver cannot have the least rate. Here the receiver repeatedly
// requests less than the least rate, and acknowledges less than four fifths of the least rate meanwhile. Requests alone are not sufficient: TCP
// beside the session causes them, too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Exclusion {
    /// Number of congestion indications below the least rate.
    pub count: u8,
    /// Minimum time from the first of these indications to the last.
    pub within: Span,
    /// The least rate, packets per second.
    pub least: f64,
}

/// A receiver that has requested less than the least rate.
#[derive(Debug, Clone, Copy)]
struct LowRate {
    from: ReceiverId,
    count: u8,
    /// Time of the first request, and the number of packets that the receiver had acknowledged at this time.
    since: Time,
    acked: u64,
}

/// Receivers that have requested less than the least rate.
#[derive(Debug, Clone, Default)]
pub(crate) struct LowRates(Vec<LowRate>);

/// Fraction of the least rate that is enough. At the least rate, some packets are lost beside TCP and sent again.
const ENOUGH: f64 = 0.8;

/// Maximum number of stored receivers.
const MAX: usize = 16;

impl LowRates {
    /// Counts a request of a receiver for less than the least rate. The receiver has acknowledged all packets below `acked`.
    /// Returns whether the receiver is to be excluded.
    pub(crate) fn on_low(&mut self, from: ReceiverId, acked: u64, rule: Exclusion, now: Time) -> bool {
        let place = match self.0.iter().position(|low| low.from == from) {
            Some(place) => place,
            None => {
                if self.0.len() >= MAX {
                    self.0.remove(0);
                }
                self.0.push(LowRate { from, count: 0, since: now, acked });
                self.0.len() - 1
            }
        };
        let low = &mut self.0[place];
        low.count = low.count.saturating_add(1);
        let passed = now.since(low.since);
        if passed < rule.within {
            return false;
        }
        let received = acked.saturating_sub(low.acked) as f64;
        let is_slow = received < ENOUGH * rule.least * passed.as_secs_f64();
        if is_slow && low.count < rule.count {
            return false; // the count continues: the requests of a very slow receiver are rare
        }
        self.0.remove(place);
        is_slow
    }

    /// Forgets all requests.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_below_the_least_rate_is_excluded() {
        let rule = Exclusion { count: 3, within: Span::from_secs(10), least: 2.0 };
        let mut low = LowRates::default();
        let (one, other) = (ReceiverId::new(1).expect("not zero"), ReceiverId::new(2).expect("not zero"));
        let mut at = |id, acked, secs| low.on_low(id, acked, rule, Time::from_secs_f64(secs));
        assert!(!at(one, 100, 0.0) && !at(one, 110, 5.0) && !at(other, 0, 5.0));
        assert!(!at(one, 120, 10.0), "it has received two packets per second");
        assert!(!at(one, 120, 11.0) && !at(one, 125, 15.0) && !at(other, 0, 11.0));
        assert!(at(one, 135, 21.0) && at(other, 9, 21.0));
        assert!(!at(one, 140, 22.0), "and it begins anew");
        assert!(!at(one, 141, 43.0), "two requests are too few");
        assert!(at(one, 142, 80.0), "rare requests count, too, because it has received almost nothing");
        assert!(
            !at(one, 150, 90.0) && !at(one, 400, 200.0),
            "it has received enough since the first request"
        );
    }
}
