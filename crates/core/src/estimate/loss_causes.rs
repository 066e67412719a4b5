//! Losses that congestion has not caused. A receiver recognises them by the delays of the packets around them.
//!
//! ```text
//!   delay  │            ·····x        x: a loss beside a queue is congestion
//!          │        ····      ····
//!    limit │┄┄┄┄┄┄··┄┄┄┄┄┄┄┄┄┄┄┄┄··┄┄┄┄┄┄┄┄┄┄┄┄
//!  minimum │··o·o··················o···········   o: a loss without a queue is excused
//! ```
//!
//! The delay of a packet is the time from its transmission by the source's clock to its arrival by the receiver's clock. Only
//! differences of delays count, so the clocks need not agree. A loss is excused if all of these conditions hold:
//!
//! 1. The mean delay of the latest four packets exceeds the minimum of the latest 10 to 20 s by at most a limit. The limit is four
//!    times the mean difference between the delays of consecutive packets. It is at most three quarters of the range of delays in
//!    that time, so that a loss at the top of a short queue is congestion. It is at least the time in which the source sends
//!    four packets, or 5 ms if that is shorter.
//! 2. At most a tenth of the latest 2,048 to 4,096 packets are lost without a visible queue. A queue that is too short to be seen
//!    loses more, and so does a policer.
//! 3. The receiver has observed the path since the start of the session, or for 10 s. The delay of a late receiver may include a
//!    queue at first.
//!
//! The first condition is that of the Spike scheme (Tobe et al., 2000; Cen, Cosman and Voelker, 2003). Its limit is a fraction of
//! the range of delays, which a single delayed host changes for the whole session. Here the limit follows the noise of the path, and
//! the fraction only bounds it. TCP Veno (Fu and Liew, 2003) also excuses losses while few own packets are queued. As in LEDBAT
//! (RFC 6817, 3.4.2), extremes are forgotten, so the delay of a new route becomes the minimum. The extremes also approach each
//! other by 100 millionths of the time, so that clocks of different speed are not taken for a queue.
//!
//! After a loss beside a queue, further losses are excused while the queue drains: the source has responded already.

use crate::packet::{Arrival, Data, Flags};
use crate::time::{Span, Time};

/// Decides for each loss whether it is a sign of congestion. Delays are in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct LossCauses {
    /// Delays of the latest packets; `arrived` counts the packets.
    latest: [i64; AROUND],
    arrived: usize,
    latest_at: Time,
    /// Number and sending time of the latest packet, and mean time between two packets of the source.
    latest_sent: (u64, Time),
    spacing: f64,
    /// Extremes of the delays in the present period, which ends at `period_ends`, and in the period before.
    extremes: [Extremes; 2],
    period_ends: Time,
    /// Mean difference between the delays of consecutive packets.
    noise: f64,
    /// The latest loss that was congestion beside a queue.
    latest_congestion: Option<Congestion>,
    /// Numbers of packets in the present stretch, and in the stretch before.
    counts: [Counts; 2],
    /// From this time on, losses may be excused.
    excuses_from: Time,
}

#[derive(Debug, Clone, Copy, Default)]
struct Extremes {
    least: i64,
    most: i64,
}

/// A loss beside a queue: the delay at the loss, and the lowest delay since then.
#[derive(Debug, Clone, Copy)]
struct Congestion {
    delay: i64,
    lowest: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    all: u32,
    lost: u32,
}

/// Number of packets whose mean delay decides about a loss. If three later packets reveal a loss, one of the four preceded it.
const AROUND: usize = 4;
/// Duration of a period.
const PERIOD: Span = Span::from_secs(10);
/// Number of packets in a stretch.
const STRETCH: u32 = 2048;
/// Minimum number of packets for a statement about the lost fraction.
const FEW: u32 = 256;
/// Maximum relative difference between the speeds of two clocks, as the inverse.
const DRIFT: i64 = 10_000;
/// A receiver that receives a packet below this number has observed the path from the beginning.
const FIRST: u64 = 256;
/// Lost fraction above which every loss is congestion.
const MOST_LOST: f64 = 0.1;
/// Minimum limit: as a multiple of the time between two packets, and in nanoseconds.
const OWN_PACKETS: f64 = 4.0;
const LEAST_LIMIT: f64 = 5e6;
/// Limit as a multiple of the noise.
const OF_NOISE: f64 = 4.0;
/// Maximum limit, as a fraction of the range of delays.
const OF_RANGE: f64 = 0.75;
/// Gain of the two means.
const GAIN: f64 = 1.0 / 64.0;
/// Maximum contribution of a packet to the noise, in nanoseconds. A host that stopped for a while is not ordinary noise.
const MAX_STEP: f64 = 1e7;

impl Extremes {
    fn of(delay: i64) -> Extremes {
        Extremes { least: delay, most: delay }
    }

    fn with(self, other: Extremes) -> Extremes {
        Extremes { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

impl LossCauses {
    /// Returns the arrival with its losses either as losses or as excused losses.
    pub fn judge(&mut self, data: &Data, arrival: Arrival, now: Time) -> Arrival {
        if !arrival.late {
            self.note_delay(data, now);
        }
        let is_congestion = arrival.lost > 0 && self.is_congestion();
        self.count(arrival.lost, is_congestion);
        if is_congestion || now < self.excuses_from || self.loses_too_many() {
            return arrival;
        }
        Arrival { lost: 0, excused: arrival.lost, ..arrival }
    }

    /// Returns the mean delay of the latest packets.
    fn delay(&self) -> i64 {
        self.latest.iter().map(|delay| delay / AROUND as i64).sum()
    }

    fn note_delay(&mut self, data: &Data, now: Time) {
        let delay = now.as_nanos().wrapping_sub(data.sent_at.as_nanos()) as i64;
        if self.arrived == 0 || now.since(self.latest_at) > PERIOD {
            let is_early = data.flags.has(Flags::STARTING) || data.seq.0 < FIRST;
            *self = LossCauses {
                latest: [delay; AROUND],
                latest_at: now,
                latest_sent: (data.seq.0, data.sent_at),
                extremes: [Extremes::of(delay); 2],
                period_ends: now + PERIOD,
                excuses_from: if is_early { Time::ZERO } else { now + PERIOD },
                ..LossCauses::default()
            };
        }
        if now >= self.period_ends {
            self.period_ends = now + PERIOD;
            self.extremes = [Extremes::of(delay), self.extremes[0]];
        }
        let drift = now.since(self.latest_at).as_nanos() as i64 / DRIFT;
        for extremes in &mut self.extremes {
            extremes.least = extremes.least.saturating_add(drift);
            extremes.most = extremes.most.saturating_sub(drift);
        }
        let before = self.latest[self.arrived.wrapping_sub(1) % AROUND];
        let step = (delay.saturating_sub(before).unsigned_abs() as f64).min(MAX_STEP);
        self.noise += GAIN * (step - self.noise);
        let packets = data.seq.0.saturating_sub(self.latest_sent.0).max(1);
        let spacing = data.sent_at.since(self.latest_sent.1).as_nanos() as f64 / packets as f64;
        self.spacing += GAIN * (spacing - self.spacing);
        self.latest_sent = (data.seq.0, data.sent_at);
        self.extremes[0] = self.extremes[0].with(Extremes::of(delay));
        self.latest[self.arrived % AROUND] = delay;
        self.arrived += 1;
        self.latest_at = now;
        let delay = self.delay();
        if let Some(congestion) = &mut self.latest_congestion {
            congestion.lowest = congestion.lowest.min(delay);
        }
    }

    /// Counts a packet and the losses before it. Losses beside a queue do not count as lost.
    fn count(&mut self, lost: u32, is_congestion: bool) {
        if self.counts[0].all >= STRETCH {
            self.counts = [Counts::default(), self.counts[0]];
        }
        let counts = &mut self.counts[0];
        counts.all = counts.all.saturating_add(lost).saturating_add(1);
        if !is_congestion {
            counts.lost = counts.lost.saturating_add(lost);
        }
    }

    fn loses_too_many(&self) -> bool {
        let [now, before] = self.counts;
        let (all, lost) = (now.all.saturating_add(before.all), now.lost.saturating_add(before.lost));
        all >= FEW && f64::from(lost) > MOST_LOST * f64::from(all)
    }

    /// Returns whether a loss before the latest packet is congestion, by the delays of the latest packets.
    fn is_congestion(&mut self) -> bool {
        let Extremes { least, most } = self.extremes[0].with(self.extremes[1]);
        let above = |delay: i64, other: i64| delay.saturating_sub(other).max(0) as f64;
        let least_limit = (OWN_PACKETS * self.spacing).min(LEAST_LIMIT);
        let limit = (OF_NOISE * self.noise).min(OF_RANGE * above(most, least)).max(least_limit);
        let delay = self.delay();
        if above(delay, least) <= limit {
            return false;
        }
        let drains =
            |before: Congestion| above(before.delay, delay) > limit && above(delay, before.lowest) <= limit;
        if self.latest_congestion.is_some_and(drains) {
            return false;
        }
        self.latest_congestion = Some(Congestion { delay, lowest: delay });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Mark;
    use crate::rng::Rng;
    use crate::schemes::bench::data;

    /// Distance of the receiver's clock from the source's clock.
    const CLOCKS: Span = Span::from_secs(1_000);
    const EVERY: Span = Span::from_millis(2);

    /// A receiver at the end of a path.
    struct Path {
        causes: LossCauses,
        seq: u64,
        sent_at: Time,
        rng: Rng,
        /// Maximum random addition to the delay.
        jitter: Span,
    }

    impl Path {
        fn new() -> Path {
            Path {
                causes: LossCauses::default(),
                seq: 0,
                sent_at: Time::ZERO,
                rng: Rng::new(1, 1),
                jitter: Span::ZERO,
            }
        }

        /// Sends `packets` packets with this delay. Returns whether the losses before the last packet are excused.
        fn send(&mut self, packets: u64, delay: Span, lost: u32) -> bool {
            for place in 1..=packets {
                self.sent_at += EVERY;
                self.seq += 1;
                let now = self.sent_at + CLOCKS + delay + self.jitter.scaled(self.rng.unit());
                let arrival = Arrival { lost: if place == packets { lost } else { 0 }, ..Arrival::default() };
                let packet = data(self.seq, self.sent_at, Mark::None);
                let judged = self.causes.judge(&packet, arrival, now);
                assert_eq!(judged.lost + judged.excused, arrival.lost);
                if place == packets {
                    return judged.excused == lost;
                }
            }
            unreachable!("at least one packet is sent")
        }

        /// Returns the number of excused losses among 100 single losses, one in 20 packets of this delay.
        fn excused(&mut self, delay: Span) -> usize {
            (0..100).filter(|_| self.send(20, delay, 1)).count()
        }
    }

    fn millis(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    #[test]
    fn a_loss_is_excused_unless_packets_are_queued_beside_it() {
        let mut path = Path::new();
        assert!(path.send(500, millis(300), 1));
        assert!(!path.send(8, millis(310), 1), "a queue of 10 ms");
        assert!(path.send(8, millis(300), 5), "the queue has emptied");
    }

    #[test]
    fn noise_of_the_delay_is_not_a_queue() {
        let mut path = Path { jitter: millis(20), ..Path::new() };
        path.send(2_000, millis(300), 0);
        assert!(path.excused(millis(300)) > 90);
        assert!(path.excused(millis(400)) < 5, "a queue of 100 ms");
    }

    #[test]
    fn losses_at_the_top_of_a_short_queue_are_congestion() {
        let mut path = Path { jitter: millis(6), ..Path::new() };
        for _ in 0..10 {
            path.send(100, millis(300), 0);
            path.jitter = Span::ZERO;
            assert!(!path.send(8, millis(306), 1), "less than four times the noise");
            path.jitter = millis(6);
        }
    }

    #[test]
    fn all_losses_are_congestion_while_a_tenth_is_lost() {
        let mut path = Path::new();
        path.send(500, millis(300), 0);
        assert!((0..500).any(|_| !path.send(1, millis(300), 1)), "half of all packets are lost");
        assert!(!path.send(1, millis(300), 1));
        assert!((0..100).any(|_| path.send(50, millis(300), 1)), "one in fifty");
    }

    #[test]
    fn a_late_receiver_excuses_no_loss_for_ten_seconds() {
        let mut path = Path { seq: 1_000, ..Path::new() };
        assert!(!path.send(4_900, millis(300), 1), "the delay may include a queue");
        assert!(path.send(200, millis(300), 1));
        path.sent_at += Span::from_secs(60);
        assert!(!path.send(100, millis(300), 1), "after a pause it is late again");
    }

    #[test]
    fn a_longer_route_becomes_the_minimum_in_twenty_seconds() {
        let mut path = Path::new();
        path.send(5_000, millis(300), 0);
        assert!(!path.send(4_000, millis(350), 1));
        assert!(path.send(8_000, millis(350), 1));
    }

    #[test]
    fn drift_of_clocks_is_not_a_queue() {
        for forwards in [true, false] {
            let mut path = Path::new();
            for step in 0..600 {
                let drift = Span::from_micros(10 * if forwards { step } else { 600 - step });
                assert!(path.send(50, millis(300) + drift, 1), "{} s", path.sent_at.as_secs_f64());
            }
        }
    }
}
