//! The source's half: which packets are control packets.

use crate::packet::Signal;
use crate::time::{Span, Time};

/// How often a control packet leaves, "T".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Interval {
    /// Once in this time.
    Every(Span),
    /// Four times per round-trip time, between once in 50 ms and once in a millisecond.
    OfRtt,
}

const SHORTEST: Span = Span::from_millis(1);
const MAX: Span = Span::from_millis(50);
const PER_RTT: u64 = 4;

impl Interval {
    /// The time of [`Interval::Every`].
    pub const fn time(self) -> Option<Span> {
        match self {
            Interval::Every(span) => Some(span),
            Interval::OfRtt => None,
        }
    }

    /// The interval at this round-trip time.
    pub fn at(self, rtt: Span) -> Span {
        match self {
            Interval::Every(span) => span,
            Interval::OfRtt => (rtt / PER_RTT).clamp(SHORTEST, MAX),
        }
    }
}

/// Makes a packet a control packet when one is due: at `t0 + i T`, or the first one after that (paper 000, D.1).
#[derive(Debug, Clone, Copy)]
pub struct ControlClock {
    interval: Interval,
    due: Time,
    last_departure: Option<Time>,
}

impl ControlClock {
    /// The first packet is the first control packet.
    pub const fn new(interval: Interval) -> ControlClock {
        ControlClock { interval, due: Time::ZERO, last_departure: None }
    }

    /// A packet leaves now; evenly paced ones are `gap` apart. Returns its signal.
    // Paper gap: D.1 assumes that packets leave evenly. A host sends several at a moment and catches up after a delay;
    // a control packet waits for the first one of such a burst, an interval at most.
    pub fn on_departure(&mut self, gap: Span, rtt: Span, now: Time) -> Signal {
        let interval = self.interval.at(rtt);
        let first_of_burst = self.last_departure.is_none_or(|last| now.since(last) >= gap / 2);
        self.last_departure = Some(now);
        if now < self.due || !(first_of_burst || now >= self.due + interval) {
            return Signal::None;
        }
        let next = self.due + interval;
        self.due = if next > now { next } else { now + interval };
        Signal::Control
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Milliseconds at which control packets leave, of packets that leave at these.
    fn controls(clock: &mut ControlClock, gap: u64, departures: impl Iterator<Item = u64>) -> Vec<u64> {
        let gap = Span::from_millis(gap);
        departures.filter(|&now| clock.on_departure(gap, RTT, at(now)) == Signal::Control).collect()
    }

    #[test]
    fn the_first_packet_of_each_interval_is_a_control_packet() {
        let mut clock = ControlClock::new(Interval::Every(Span::from_millis(50)));
        assert_eq!(controls(&mut clock, 8, (0..30).map(|n| n * 8)), [0, 56, 104, 152, 200]);
    }

    #[test]
    fn every_packet_is_a_control_packet_where_they_are_rare() {
        let mut clock = ControlClock::new(Interval::Every(Span::from_millis(50)));
        assert_eq!(controls(&mut clock, 60, (0..5).map(|n| n * 60)), [0, 60, 120, 180, 240]);
    }

    #[test]
    fn a_control_packet_is_the_first_of_a_burst() {
        let mut clock = ControlClock::new(Interval::OfRtt);
        let departures = (0..60).map(|n| n / 10 * 20); // ten at a moment, every 20 ms
        assert_eq!(controls(&mut clock, 2, departures), [0, 40, 60, 80, 100]);
    }
}
