//! The source's part of the measurement: choosing the control packets.

use crate::packet::Signal;
use crate::time::{Span, Time};

/// Interval of control packets, "T".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Interval {
    /// A fixed interval.
    Every(Span),
    /// A quarter of the round-trip time, between 1 ms and 50 ms.
    OfRtt,
}

const SHORTEST: Span = Span::from_millis(1);
const MAX: Span = Span::from_millis(50);
const PER_RTT: u64 = 4;

impl Interval {
    /// Returns the interval of [`Interval::Every`].
    pub const fn time(self) -> Option<Span> {
        match self {
            Interval::Every(span) => Some(span),
            Interval::OfRtt => None,
        }
    }

    /// Returns the interval at this round-trip time.
    pub fn at(self, rtt: Span) -> Span {
        match self {
            Interval::Every(span) => span,
            Interval::OfRtt => (rtt / PER_RTT).clamp(SHORTEST, MAX),
        }
    }
}

/// Chooses the control packets: the first packet at or after each time `t0 + i T` (paper 000, D.1).
#[derive(Debug, Clone, Copy)]
pub struct ControlClock {
    interval: Interval,
    due: Time,
    last_departure: Option<Time>,
}

impl ControlClock {
    /// Creates a clock that marks the first packet as a control packet.
    pub const fn new(interval: Interval) -> ControlClock {
        ControlClock { interval, due: Time::ZERO, last_departure: None }
    }

    /// Records a sent packet, and returns the signal that the packet carries. Evenly paced packets are `gap` apart.
    // Paper gap: D.1 assumes that packets are sent evenly. A host sends several packets at once and catches up after a delay.
    // Here the control packet is the first one of such a burst, but at most one interval late.
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

    /// Returns the times of control packets in milliseconds, for packets sent at the times `departures`.
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
    fn every_packet_is_a_control_packet_at_low_packet_rates() {
        let mut clock = ControlClock::new(Interval::Every(Span::from_millis(50)));
        assert_eq!(controls(&mut clock, 60, (0..5).map(|n| n * 60)), [0, 60, 120, 180, 240]);
    }

    #[test]
    fn first_packet_of_a_burst_is_the_control_packet() {
        let mut clock = ControlClock::new(Interval::OfRtt);
        let departures = (0..60).map(|n| n / 10 * 20); // ten packets at once, every 20 ms
        assert_eq!(controls(&mut clock, 2, departures), [0, 40, 60, 80, 100]);
    }
}
