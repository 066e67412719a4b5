//! Evenly paced departures on an absolute schedule.
//!
//! Each packet of `s` bytes books the next departure: `8 s / rate` after the packet's booked time, not after its actual time. So
//! a host that wakes late catches up: it sends packets back to back. Two limits apply to these packets: a few packets within a
//! round-trip time, and the packets of a few milliseconds; the larger one counts. The second limit does not depend on the
//! round-trip time. Without it, a busy host would send below its rate in a local network, where a process may wait for the CPU
//! longer than a round trip. A change of rate rescales the remaining wait.

use crate::time::{Rate, Span, Time};

/// Limit on the packets that a delayed host may send back to back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CatchUp {
    /// Limit as a number of packets, but at most the packets of one round-trip time.
    pub packets: u32,
    /// Limit as the sending time of the packets. The larger of the two limits applies.
    pub span: Span,
}

impl Default for CatchUp {
    fn default() -> CatchUp {
        CatchUp { packets: 2, span: Span::from_millis(10) }
    }
}

/// Departure schedule of one layer.
#[derive(Debug, Clone, Copy)]
pub struct Pacer {
    catch_up: CatchUp,
    rate: Rate,
    next: Time,
}

impl Pacer {
    /// Creates a schedule whose first packet may be sent at once.
    pub const fn new(rate: Rate, catch_up: CatchUp) -> Pacer {
        Pacer { catch_up, rate, next: Time::ZERO }
    }

    /// Moves the next departure to `now`.
    pub fn restart(&mut self, now: Time) {
        self.next = now;
    }

    /// Returns the time of the next departure. It is in the past if the host is late or has nothing to send.
    pub const fn departure(&self) -> Time {
        self.next
    }

    /// Returns the rate of the schedule.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Books the next departure after a packet of `size` bytes is sent at `now`. The limit [`CatchUp::packets`] is at most the
    /// packets of one `rtt`.
    pub fn book(&mut self, now: Time, size: u16, rtt: Span) {
        let gap = self.rate.span_of(u64::from(size));
        let credit = (gap * u64::from(self.catch_up.packets)).min(rtt).max(self.catch_up.span);
        self.next = self.next.max(now - credit) + gap;
    }

    /// Changes the rate and rescales the remaining wait.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        if rate == self.rate {
            return;
        }
        let left = self.next.since(now);
        if left > Span::ZERO && rate.is_usable() {
            self.next = now + left.scaled(self.rate.bps() / rate.bps());
        }
        self.rate = rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Creates a schedule of 1000 bytes every 8 ms.
    fn pacer() -> Pacer {
        Pacer::new(Rate::from_mbps(1.0), CatchUp::default())
    }

    #[test]
    fn packets_are_sent_on_an_absolute_schedule() {
        let mut pacer = pacer();
        for (now, next) in [(0, 8), (8, 16), (19, 24), (24, 32)] {
            pacer.book(at(now), 1000, RTT);
            assert_eq!(pacer.departure(), at(next));
        }
    }

    #[test]
    fn a_late_host_catches_up_by_at_most_two_packets() {
        let mut pacer = pacer();
        pacer.book(at(0), 1000, RTT);
        let burst = (0..10).take_while(|_| {
            let may = pacer.departure() <= at(1000);
            pacer.book(at(1000), 1000, RTT);
            may
        });
        assert_eq!(burst.count(), 3, "the packet that is due and two more");
    }

    #[test]
    fn catch_up_is_limited_to_an_rtt_or_ten_milliseconds() {
        let mut slow = Pacer::new(Rate::from_mbps(0.08), CatchUp::default());
        slow.book(at(1000), 1000, Span::from_millis(150));
        assert_eq!(slow.departure(), at(950), "two packets would be 200 ms");
        let mut fast = Pacer::new(Rate::from_mbps(80.0), CatchUp::default());
        fast.book(at(1000), 1000, Span::from_millis(1));
        assert_eq!(fast.departure(), at(990) + Span::from_micros(100));
    }

    #[test]
    fn rate_change_rescales_the_remaining_wait() {
        let mut pacer = pacer();
        pacer.book(at(0), 1000, RTT);
        pacer.set_rate(Rate::from_mbps(2.0), at(4));
        assert_eq!(pacer.departure(), at(6));
        pacer.set_rate(Rate::from_mbps(0.5), at(4));
        assert_eq!(pacer.departure(), at(12));
    }
}
