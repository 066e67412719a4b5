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

    /// Starts the first period without a cut ([`Friendly::growing`]).
    pub fn begin(&mut self, now: Time) {
        self.cut_at = Some(now);
    }

    /// Updates "E" at a cut by equation (3.10). `expected` is the number of packets that are in flight when all queues are empty,
    /// "N_exp".
    pub fn on_cut(&mut self, expected: f64, rtt: Span, now: Time) {
        if let Some(queue) = self.after_cut(expected, rtt, now) {
            self.queue = queue;
        }
        self.cut_at = Some(now);
    }

    /// Returns "E" between cuts, in packets: it has at least the value that a cut would set now.
    // Paper gap: (3.10) changes "E" at cuts alone. A session that wants few packets may have no loss for minutes, and until then
    // it gets a tenth of the rate of a TCP flow.
    pub fn growing(&self, expected: f64, rtt: Span, now: Time) -> f64 {
        self.after_cut(expected, rtt, now).map_or(self.queue, |queue| queue.max(self.queue))
    }

    /// Returns the value that a cut would set now; `None` before the first cut.
    fn after_cut(&self, expected: f64, rtt: Span, now: Time) -> Option<f64> {
        let periods = now.since(self.cut_at?).as_secs_f64() / rtt.as_secs_f64().max(1e-6);
        let queue = 0.75 * self.queue + 0.375 * periods - 0.25 * expected;
        Some(queue.clamp(SHORTEST, MAX.max(2.0 * expected)))
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

    #[test]
    fn growing_queue_reaches_the_value_that_the_next_cut_sets() {
        let (rtt, mut friendly) = (Span::from_millis(100), Friendly::new(4.0));
        assert_eq!(friendly.growing(10.0, rtt, at(9.0)), 4.0, "no period has begun");
        friendly.begin(at(1.0));
        assert_eq!(friendly.growing(10.0, rtt, at(1.2)), 4.0, "not below the value of the latest cut");
        let before = friendly.growing(10.0, rtt, at(4.0));
        assert!((before - 11.75).abs() < 1e-9, "3 + 11.25 - 2.5: {before}");
        friendly.on_cut(10.0, rtt, at(4.0));
        assert_eq!(friendly.queue(), before);
        assert_eq!(friendly.growing(10.0, rtt, at(100.0)), MAX);
    }
}
