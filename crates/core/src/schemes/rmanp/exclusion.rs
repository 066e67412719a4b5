//! Exclusion of receivers whose paths cannot carry the least rate (paper 003, 2).

use crate::packet::ReceiverId;
use crate::time::{Span, Time};

/// Rule for excluding a receiver.
// Paper gap: the paper does not define how to detect that a receiver cannot have the least rate. Here it is a number of
// congestion indications below the least rate within a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Exclusion {
    /// Number of congestion indications below the least rate.
    pub count: u8,
    /// Time within which these indications are counted.
    pub within: Span,
}

/// Receivers that have recently requested less than the least rate.
#[derive(Debug, Clone, Default)]
pub(crate) struct LowRates(Vec<(ReceiverId, u8, Time)>);

/// Maximum number of stored receivers.
const MAX: usize = 16;

impl LowRates {
    /// Counts a request of a receiver for less than the least rate. Returns whether the receiver is to be excluded.
    pub(crate) fn on_low(&mut self, from: ReceiverId, rule: Exclusion, now: Time) -> bool {
        self.0.retain(|(_, _, since)| now.since(*since) <= rule.within);
        let place = match self.0.iter().position(|(id, _, _)| *id == from) {
            Some(place) => place,
            None => {
                if self.0.len() >= MAX {
                    self.0.remove(0);
                }
                self.0.push((from, 0, now));
                self.0.len() - 1
            }
        };
        self.0[place].1 += 1;
        let is_enough = self.0[place].1 >= rule.count;
        if is_enough {
            self.0.remove(place);
        }
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_is_excluded_after_repeated_low_rate_requests() {
        let rule = Exclusion { count: 3, within: Span::from_secs(10) };
        let mut low = LowRates::default();
        let (one, other) = (ReceiverId::new(1).expect("not zero"), ReceiverId::new(2).expect("not zero"));
        let mut at = |id, secs| low.on_low(id, rule, Time::from_secs_f64(secs));
        assert!(!at(one, 0.0) && !at(one, 9.0) && !at(other, 9.0));
        assert!(!at(one, 10.5), "the first one was too long ago");
        assert!(!at(one, 11.0) && !at(other, 11.0));
        assert!(at(one, 12.0));
        assert!(!at(one, 12.5), "and it begins anew");
    }
}
