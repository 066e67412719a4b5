//! Samples of the round-trip time, from reports that state a packet number (paper 000, 3.1.6).

use crate::packet::{Echo, Seq};
use crate::time::{Span, Time};

/// Sending times of the latest packets of a stream: a ring of eight bytes per packet. A large ring is allocated at once. A ring
/// for up to 4096 packets starts small, because a simulation may have thousands of such rings. It doubles if it would otherwise
/// drop packets of the latest six seconds.
#[derive(Debug, Clone)]
pub struct SendHistory {
    /// Sending times in nanoseconds.
    slots: Box<[u64]>,
    next: u64,
    limit: usize,
}

/// Minimum round-trip sample, which prevents divisions by zero.
const SHORTEST: Span = Span::from_micros(1);
/// Duration for which the sending times of packets are stored, if the ring is large enough.
const REMEMBERED: Span = Span::from_secs(6);
/// Maximum size of rings that start with [`FEWEST`] entries.
const SMALL: usize = 4096;
const FEWEST: usize = 64;

impl SendHistory {
    /// Creates a history of the latest `packets` packets, rounded up to a power of two, at least 4096.
    pub fn new(packets: usize) -> SendHistory {
        let limit = packets.max(SMALL).next_power_of_two();
        let places = if limit > SMALL { limit } else { FEWEST };
        SendHistory { slots: vec![0; places].into_boxed_slice(), next: 0, limit }
    }

    /// Records that packet [`Self::next`] is sent now, and returns its number.
    pub fn record(&mut self, now: Time) -> Seq {
        let seq = Seq(self.next);
        let mut place = self.place(seq);
        if self.next >= self.slots.len() as u64 && self.slots.len() < self.limit {
            let oldest = Time::from_nanos(self.slots[place]);
            if now.since(oldest) < REMEMBERED {
                self.grow();
                place = self.place(seq);
            }
        }
        self.slots[place] = now.as_nanos();
        self.next += 1;
        seq
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![0; self.slots.len() * 2].into_boxed_slice();
        for seq in self.next - self.slots.len() as u64..self.next {
            slots[seq as usize % (self.slots.len() * 2)] = self.slots[self.place(Seq(seq))];
        }
        self.slots = slots;
    }

    /// Returns the number of the next packet.
    pub const fn next(&self) -> Seq {
        Seq(self.next)
    }

    /// Returns the sending time of `seq`; `None` for a packet that was not sent yet or is too old.
    pub fn sent(&self, seq: Seq) -> Option<Time> {
        let slot = *self.slots.get(self.place(seq))?;
        self.knows(seq).then_some(Time::from_nanos(slot))
    }

    /// Returns the round-trip time of the packet `echo`, whose answer arrives now, minus the hold time at the receiver. `None`
    /// for an unknown packet, or for a hold time longer than the elapsed time.
    // Paper gap: 3.1.6 takes the whole time from sending to answer, although 3.1.4 delays answers at random. Here the hold is
    // subtracted, because it would otherwise count as round-trip time.
    pub fn sample(&self, echo: Echo, now: Time) -> Option<Span> {
        let passed = now.since(self.sent(echo.seq)?);
        (echo.hold <= passed).then(|| passed.saturating_sub(echo.hold).max(SHORTEST))
    }

    fn knows(&self, seq: Seq) -> bool {
        seq.0 < self.next && self.next - seq.0 <= self.slots.len() as u64
    }

    fn place(&self, seq: Seq) -> usize {
        seq.0 as usize & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(seq: u64, hold: Span) -> Echo {
        Echo { seq: Seq(seq), hold }
    }

    #[test]
    fn delay_at_the_receiver_is_excluded_from_the_rtt() {
        let mut history = SendHistory::new(1);
        let seq = history.record(Time::from_secs_f64(1.0));
        let answer = echo(seq.0, Span::from_millis(30));
        assert_eq!(history.sample(answer, Time::from_secs_f64(1.1)), Some(Span::from_millis(70)));
    }

    #[test]
    fn future_old_and_contradictory_echoes_give_no_rtt_sample() {
        let mut history = SendHistory::new(1);
        for nanos in 0..5000 {
            history.record(Time::from_nanos(nanos));
        }
        let now = Time::from_nanos(6000);
        assert_eq!(history.sample(echo(5000, Span::ZERO), now), None);
        assert_eq!(history.sample(echo(0, Span::ZERO), now), None);
        assert_eq!(history.sample(echo(u64::MAX, Span::ZERO), now), None);
        assert_eq!(history.sample(echo(4999, Span::from_secs(1)), now), None);
        assert_eq!(
            history.sample(echo(4999, Span::ZERO), now),
            Some(Span::from_micros(1).max(Span::from_nanos(1001)))
        );
    }
}
