//! The length of queue that gives a session the throughput of a TCP flow (paper 002, 3.7).

use crate::time::{Span, Time};

/// "E", updated at each cut, so that the session has three quarters of the largest window of a TCP flow with the same losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Friendly {
    queue: f64,
    /// Time of the latest cut.
    cut_at: Option<Time>,
}

/// Minimum of the wanted queue, in packets. The maximum is `MAX` or twice the expected packets, whichever is larger.
// Paper gap: (3.10) becomes negative when losses follow each other closely.
const SHORTEST: f64 = 1.0;
const MAX: f64 = 64.0;

impl Friendly {
    /// Creates the state with this queue, in packets.
    pub const fn new(queue: f64) -> Friendly {
        Friendly { queue, cut_at: None }
    }

    /// Returns "E", in packets.
    pub const fn queue(&self) -> f64 {
        self.queue
    }

    /// Updates "E" at a cut by equation (3.10). `expected` is the number of packets that are in flight when all queues are empty,
    /// "N_exp".
    pub fn on_cut(&mut self, expected: f64, rtt: Span, now: Time) {
        let before = self.cut_at.replace(now);
        let Some(before) = before else { return };
        let periods = now.since(before).as_secs_f64() / rtt.as_secs_f64().max(1e-6);
        let queue = 0.75 * self.queue + 0.375 * periods - 0.25 * expected;
        self.queue = queue.clamp(SHORTEST, MAX.max(2.0 * expected));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    #[test]
    fn wanted_queue_follows_the_time_between_losses() {
        let (rtt, mut friendly) = (Span::from_millis(100), Friendly::new(4.0));
        friendly.on_cut(10.0, rtt, at(1.0));
        assert_eq!(friendly.queue(), 4.0, "the first loss ends no period");
        friendly.on_cut(10.0, rtt, at(3.0));
        assert!((friendly.queue() - 8.0).abs() < 1e-9, "3 + 7.5 - 2.5: {}", friendly.queue());
    }

    #[test]
    fn packets_in_flight_approach_1_5_per_rtt_between_losses() {
        let (rtt, mut friendly, expected) = (Span::from_millis(100), Friendly::new(4.0), 10.0);
        (0..60).for_each(|turn| friendly.on_cut(expected, rtt, at(2.0 * f64::from(turn))));
        assert!((friendly.queue() + expected - 1.5 * 20.0).abs() < 1e-3, "{}", friendly.queue());
    }

    #[test]
    fn frequent_losses_reduce_the_wanted_queue_to_one_packet() {
        let mut friendly = Friendly::new(4.0);
        (0..9).for_each(|turn| friendly.on_cut(100.0, Span::from_millis(100), at(0.1 * f64::from(turn))));
        assert_eq!(friendly.queue(), 1.0);
    }
}
