//! Limit of the number of requests per second in a group. Receivers send membership messages in turns
//! ([`Members::spread`](crate::members::Members::spread)), but requests immediately. A repair serves all receivers, so one
//! request is enough for a loss that many receivers share. If losses are shared, there are few requests. If losses are
//! independent, the number of requests grows with the group.
//!
//! So the source counts requests. If more than [`REQUESTS_PER_SECOND`] arrive, the source announces a higher level in its status,
//! and receivers request less often. At the highest level, each receiver sends one request per spread. The spread is the time
//! over which all members distribute their feedback. The group then sends [`REQUESTS_PER_SECOND`] in total, regardless of its
//! size (docs/reliability.md, "The rate of feedback"). A request lists all symbols that its receiver lacks.
//!
//! If only a few receivers send requests, a lower level suffices. At the highest level, members of a large group wait for seconds
//! between requests, even if only two of them lack symbols.

use faircast_core::packet::ReceiverId;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use std::collections::BTreeSet;

/// Maximum number of requests per second that a source accepts, from all receivers together.
pub const REQUESTS_PER_SECOND: u64 = 1_000;

/// Maximum number of requests at once: the requests of half a second.
const BURST: f64 = REQUESTS_PER_SECOND as f64 / 2.0;

/// Maximum size of a group without a limit of requests. In such a small group, the data rate limits the number of requests, and
/// windows arrive as often as acknowledgements of TCP.
pub const SMALL: usize = 24;

/// The highest level.
const MAX_LEVEL: u8 = 3;

/// After a level change, the source waits for this time and two round trips before it raises the level again. Until then,
/// receivers that do not know the new level may still send requests.
const SETTLES: Span = Span::from_millis(100);

/// Interval after which a lower level is considered.
const LOOK: Span = Span::from_secs(2);

/// Ratio of the request limits of adjacent levels. The level is lowered if the number of requests, multiplied by this ratio, is
/// within the limit.
const STEP: u64 = 8;

/// The highest level is chosen at once if requests arrive at this multiple of [`REQUESTS_PER_SECOND`].
const FAR_TOO_MUCH: f64 = 4.0;

/// Divisor of the spread at each level. The quotient is the pause between two requests of a receiver. At the lowest level there
/// is no pause.
const PARTS: [usize; 4] = [usize::MAX, 64, 8, 1];

/// Returns the minimum time between two requests of one receiver.
pub fn pause(level: u8, spread: Span) -> Span {
    match level {
        0 => Span::ZERO,
        level => spread.scaled(1.0 / PARTS[usize::from(level.min(MAX_LEVEL))] as f64),
    }
}

/// The source's part: counts the requests and sets the level.
#[derive(Debug, Default)]
pub struct RequestRate {
    level: u8,
    /// Number of requests beyond [`REQUESTS_PER_SECOND`]: the fill of a leaky bucket that drains at this rate. `at` is the time
    /// of the last request.
    filled: f64,
    at: Time,
    /// Time since which the bucket has not been empty.
    since: Time,
    /// Receivers that have sent requests since that time; at most [`BURST`] are stored.
    askers: BTreeSet<ReceiverId>,
    /// Time at which the level was last changed or reviewed. `count` is the number of requests since that time.
    looked_at: Time,
    count: u64,
}

impl RequestRate {
    /// Counts a request from one of `members` members; `rtt` is the largest round-trip time. Returns whether the level has risen,
    /// so that receivers must be notified soon.
    pub fn on_request(&mut self, from: ReceiverId, members: usize, rtt: Span, now: Time) -> bool {
        if members <= SMALL {
            return false;
        }
        self.count += 1;
        let emptied = now.since(self.at).as_secs_f64() * REQUESTS_PER_SECOND as f64;
        (self.filled, self.at) = ((self.filled - emptied).max(0.0), now);
        if self.filled == 0.0 {
            self.since = now;
            self.askers.clear();
        }
        self.filled += 1.0;
        if self.askers.len() < BURST as usize {
            self.askers.insert(from);
        }
        let is_settled = self.level == 0 || now.since(self.looked_at) >= SETTLES + rtt * 2;
        if self.filled <= BURST || self.level == MAX_LEVEL || !is_settled {
            return false;
        }
        let rate = REQUESTS_PER_SECOND as f64 + self.filled / now.since(self.since).as_secs_f64().max(1e-3);
        let is_far = rate > REQUESTS_PER_SECOND as f64 * FAR_TOO_MUCH;
        let level = if is_far { MAX_LEVEL } else { self.level + 1 };
        let level = level.min(self.enough(members)).max(self.level);
        let has_risen = level > self.level;
        self.level = level;
        (self.filled, self.looked_at, self.count) = (0.0, now, 0);
        self.askers.clear();
        has_risen
    }

    /// Returns the lowest level that suffices if only the receivers in `askers` send requests. Returns the highest level if the
    /// number of these receivers exceeds half of [`BURST`].
    fn enough(&self, members: usize) -> u8 {
        let askers = self.askers.len();
        if askers as f64 > BURST / 2.0 {
            return MAX_LEVEL; // there may be any number of further requesters
        }
        // All receivers together may send one request per member in a spread. The entry of `PARTS` is the number of requests that
        // a receiver may send in a spread.
        (1..MAX_LEVEL).find(|level| askers * PARTS[usize::from(*level)] <= members).unwrap_or(MAX_LEVEL)
    }

    /// Returns the level to announce now.
    pub fn level(&mut self, now: Time) -> u8 {
        let span = now.since(self.looked_at);
        if self.level > 0 && span >= LOOK {
            let bound = span.as_secs_f64() * REQUESTS_PER_SECOND as f64;
            self.level -= u8::from(self.count as f64 * (STEP as f64) < bound);
            (self.looked_at, self.count) = (now, 0);
        }
        self.level
    }
}

/// A receiver's part: determines the earliest time of its next request.
#[derive(Debug, Default)]
pub struct RequestBackoff {
    pause: Span,
    free_at: Time,
}

impl RequestBackoff {
    /// Follows the source's minimum time between two requests ([`pause`]).
    pub fn follow(&mut self, pause: Span, now: Time, rng: &mut Rng) {
        if pause > self.pause {
            // All receivers learn the level at the same moment, so each receiver draws a random time of its next request.
            self.free_at = self.free_at.max(now + pause.scaled(rng.unit()));
        } else if pause < self.pause {
            self.free_at = self.free_at.min(now + pause.scaled(rng.unit()));
        }
        self.pause = pause;
    }

    /// Returns the earliest time of the next request.
    pub const fn free_at(&self) -> Time {
        self.free_at
    }

    /// Records that this receiver has sent a request.
    pub fn on_asked(&mut self, now: Time, rng: &mut Rng) {
        if self.pause > Span::ZERO {
            self.free_at = now + self.pause.scaled(0.5 + rng.unit());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(10);

    fn id(number: u64) -> ReceiverId {
        ReceiverId::new(number).expect("it is not zero")
    }

    /// Simulates `count` receivers for `seconds` seconds. Each receiver sends requests without end, at intervals of at least
    /// `least`. Returns the number of requests in each second.
    fn seconds(count: u32, seconds: u64, least: Span) -> (Vec<u64>, RequestRate) {
        let spread = Span::from_millis(u64::from(count)).max(Span::from_millis(10));
        let mut rng = Rng::new(1, u64::from(count));
        let mut all: Vec<_> = (0..count).map(|_| (Time::ZERO, RequestBackoff::default())).collect();
        let (mut request_rate, mut reported, mut requests) =
            (RequestRate::default(), 0, vec![0; seconds as usize]);
        for millis in 0..seconds * 1_000 {
            let now = Time::ZERO + Span::from_millis(millis);
            if millis % 20 == 0 {
                reported = request_rate.level(now);
            }
            for (of, (next, backoff)) in (1..).zip(&mut all) {
                if millis % 20 == 5 {
                    backoff.follow(pause(reported, spread), now, &mut rng);
                }
                if (*next).max(backoff.free_at()) <= now {
                    *next = now + least.scaled(0.5 + rng.unit());
                    backoff.on_asked(now, &mut rng);
                    requests[(millis / 1_000) as usize] += 1;
                    request_rate.on_request(id(of), count as usize, RTT, now);
                }
            }
        }
        (requests, request_rate)
    }

    #[test]
    fn request_rate_at_the_source_is_bounded_for_any_group_size() {
        for count in [25, 100, 1_000, 10_000] {
            let (requests, _) = seconds(count, 30, Span::from_millis(20));
            let later = &requests[15..];
            let (mean, most) = (later.iter().sum::<u64>() / 15, later.iter().max().copied().unwrap_or(0));
            println!("{count}: {requests:?}");
            assert!(mean <= REQUESTS_PER_SECOND * 5 / 4, "{count}: {mean} a second");
            assert!(most <= REQUESTS_PER_SECOND * 2, "{count}: {most} in a second");
        }
    }

    #[test]
    fn backoff_level_follows_the_rate_of_requests() {
        let mut request_rate = RequestRate::default();
        let rises = |request_rate: &mut RequestRate, from: u64, seconds: u64, every: u64| {
            let micros = (0..seconds * 1_000_000).step_by(every as usize);
            micros
                .filter(|micros| {
                    let now = Time::ZERO + Span::from_micros(from * 1_000_000 + micros);
                    request_rate.level(now);
                    request_rate.on_request(id(1 + micros), 10_000, RTT, now)
                })
                .count()
        };
        assert_eq!(rises(&mut request_rate, 0, 20, 1_100), 0, "900 a second");
        assert_eq!(rises(&mut request_rate, 20, 1, 300), 3, "3,300 a second, whatever they are told");
        assert_eq!(rises(&mut request_rate, 21, 20, 10_000), 0, "and 100 a second then");
        assert_eq!(request_rate.level, 0);
    }

    #[test]
    fn backoff_level_follows_the_number_of_requesters() {
        for (askers, level) in [(2, 1), (78, 1), (80, 2), (249, 2), (400, 3)] {
            let mut request_rate = RequestRate::default();
            for micros in (0..1_000_000).step_by(100) {
                let now = Time::ZERO + Span::from_micros(micros);
                request_rate.level(now);
                request_rate.on_request(id(1 + micros / 100 % askers), 5_000, RTT, now);
            }
            assert_eq!(request_rate.level, level, "{askers} who ask ten thousand times a second");
        }
    }

    #[test]
    fn small_groups_do_not_raise_the_backoff_level() {
        let (requests, request_rate) = seconds(SMALL as u32, 3, Span::from_millis(2));
        assert!(requests[1] > REQUESTS_PER_SECOND * 5 && request_rate.level == 0, "{requests:?}");
    }
}
