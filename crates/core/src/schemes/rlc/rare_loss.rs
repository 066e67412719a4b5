//! Rule for losses that are so rare that they cost no layer ([`super::Config::beside`]).

use super::config::Config;
use crate::time::{Span, Time};

/// Compares the time between losses of a receiver with the time between losses of a TCP flow of the same rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct RareLoss {
    /// Round-trip time of the TCP flow.
    rtt: Span,
    /// Time between losses of the TCP flow at the rate of the base layer.
    base: Span,
    /// Time of the first loss of the latest overflow, or of the latest change of level.
    met_at: Time,
    /// Losses before this time belong to the latest overflow.
    excused_until: Time,
}

/// Number of round-trip times: losses within this time belong to one overflow of a queue. An overflow lasts until the senders
/// have detected it.
const OVERFLOW: u64 = 2;
/// Minimum time between losses of the TCP flow, in round-trip times, even at a low rate.
const MIN_ROUND_TRIPS: u64 = 4;

impl RareLoss {
    pub(super) fn new(config: &Config) -> Option<RareLoss> {
        let rtt = config.beside?;
        // The window of a TCP flow oscillates between W / 2 and W packets, so its mean is three quarters of W. The flow has one
        // loss in W / 2 round trips.
        let packets = rtt.as_secs_f64() / config.timetable().slot().as_secs_f64();
        let base = rtt.scaled(packets / 1.5);
        Some(RareLoss { rtt, base, met_at: Time::ZERO, excused_until: Time::ZERO })
    }

    /// Restarts the comparison after a change of level.
    pub(super) fn on_change(&mut self, now: Time) {
        (self.met_at, self.excused_until) = (now, Time::ZERO);
    }

    /// Returns whether the time since the previous losses is at least the time between losses of the TCP flow at the rate of
    /// `level`.
    pub(super) fn excuses(&mut self, level: u8, now: Time) -> bool {
        if now < self.excused_until {
            return true;
        }
        let apart = now.since(self.met_at);
        self.met_at = now;
        let is_rare = apart >= (self.base * (1 << level)).max(self.rtt * MIN_ROUND_TRIPS);
        if is_rare {
            self.excused_until = now + self.rtt * OVERFLOW;
        }
        is_rare
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(secs: f64) -> Time {
        Time::from_secs_f64(100.0 + secs)
    }

    /// At 8 Mbit/s and a round-trip time of 50 ms, a TCP flow has 34.5 packets of 1450 bytes in flight, and a loss every 23 round
    /// trips: every 1.15 s.
    #[test]
    fn losses_are_ignored_if_they_are_as_rare_as_those_of_tcp() {
        let config = Config::transport(1450);
        let level = 4;
        for (secs, excused) in [(1.0, false), (1.3, true)] {
            let mut rarity = RareLoss::new(&config).expect("on real networks");
            rarity.on_change(after(0.0));
            assert_eq!(rarity.excuses(level, after(secs)), excused, "{secs} s after the join");
            assert_eq!(rarity.excuses(level, after(secs + 0.05)), excused, "of the same overflow");
            assert!(!rarity.excuses(level, after(secs + 0.3)), "more often");
            assert_eq!(rarity.excuses(level, after(2.0 * secs + 0.3)), excused);
        }
        assert!(RareLoss::new(&Config::published()).is_none());
    }
}
