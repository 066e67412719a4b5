//! Links: the effects of a path on datagrams.

use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};

/// The properties of a link. The default link has no delay, no rate limit and no losses.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    rate: Rate,
    delay: Span,
    /// Capacity of the queue, in bytes.
    queue: u64,
    loss: f64,
    duplication: f64,
    corruption: f64,
    /// Size above which datagrams are dropped, bytes.
    largest: usize,
    /// Fraction of the datagrams that are delayed, and the maximum additional delay.
    reordering: (f64, Span),
}

/// The copies of a datagram that arrive: the delay of each copy in addition to the link's delay.
pub type Copies = [Option<Span>; 3];

impl Default for Link {
    fn default() -> Link {
        Link {
            rate: Rate::UNLIMITED,
            delay: Span::ZERO,
            queue: u64::MAX,
            loss: 0.0,
            duplication: 0.0,
            corruption: 0.0,
            largest: usize::MAX,
            reordering: (0.0, Span::ZERO),
        }
    }
}

impl Link {
    /// Returns a link with this delay in milliseconds and no limits.
    #[must_use]
    pub fn millis(delay: u64) -> Link {
        Link::after(Span::from_millis(delay))
    }

    /// Returns a link with this delay and no limits.
    #[must_use]
    pub fn after(delay: Span) -> Link {
        Link { delay, ..Link::default() }
    }

    /// Sets the rate, in Mbit/s.
    #[must_use]
    pub fn mbps(self, rate: f64) -> Link {
        self.at(Rate::from_mbps(rate))
    }

    /// Sets the rate.
    #[must_use]
    pub fn at(self, rate: Rate) -> Link {
        Link { rate, ..self }
    }

    /// Sets a FIFO queue of `bytes` bytes.
    #[must_use]
    pub fn fifo(self, bytes: u64) -> Link {
        Link { queue: bytes, ..self }
    }

    /// Sets the share of datagrams that are lost.
    #[must_use]
    pub fn losing(self, loss: f64) -> Link {
        Link { loss, ..self }
    }

    /// Sets the share of datagrams that are duplicated.
    #[must_use]
    pub fn duplicating(self, duplication: f64) -> Link {
        Link { duplication, ..self }
    }

    /// Sets the fraction of datagrams in which one bit is changed.
    #[must_use]
    pub fn corrupting(self, corruption: f64) -> Link {
        Link { corruption, ..self }
    }

    /// Drops datagrams of more than `largest` bytes.
    #[must_use]
    pub fn dropping_above(self, largest: usize) -> Link {
        Link { largest, ..self }
    }

    /// Delays the fraction `part` of the datagrams by at most `by`.
    #[must_use]
    pub fn reordering(self, part: f64, by: Span) -> Link {
        Link { reordering: (part, by), ..self }
    }

    /// Returns a link with the same rate, delay and queue, but without damage.
    #[must_use]
    pub fn sound(self) -> Link {
        Link { rate: self.rate, delay: self.delay, queue: self.queue, ..Link::default() }
    }

    /// Damages a datagram on its way to one host, and returns the copies that arrive.
    pub fn damage(&self, bytes: &mut [u8], rng: &mut Rng) -> Copies {
        if bytes.len() > self.largest || (self.loss > 0.0 && rng.chance(self.loss)) {
            return [None; 3];
        }
        if self.corruption > 0.0 && rng.chance(self.corruption) && !bytes.is_empty() {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        let (part, by) = self.reordering;
        let later = if part > 0.0 && rng.chance(part) { by.scaled(rng.unit()) } else { Span::ZERO };
        let is_double = self.duplication > 0.0 && rng.chance(self.duplication);
        [Some(later), is_double.then_some(Span::from_micros(100)), None]
    }
}

/// The transmitter and the queue of a link, in one direction.
#[derive(Debug)]
pub struct Pipe {
    link: Link,
    free_at: Time,
    /// Number of datagrams dropped by a full queue.
    pub dropped: u64,
    /// Available share of the link's rate.
    pub slowed: f64,
    /// Time until which all packets are dropped.
    pub cut_until: Time,
    /// Packets with more bytes than the first value are dropped until the time in the second value.
    pub hole: (u64, Time),
}

impl Pipe {
    /// Returns an empty pipe without faults.
    #[must_use]
    pub fn new(link: Link) -> Pipe {
        let (slowed, cut_until, hole) = (1.0, Time::ZERO, (0, Time::ZERO));
        Pipe { link, free_at: Time::ZERO, dropped: 0, slowed, cut_until, hole }
    }

    /// Returns the link.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Replaces the link. Queued packets stay queued.
    pub fn set_link(&mut self, link: Link) {
        self.link = link;
    }

    /// Ends the effects of `slowed`, `cut_until` and `hole`.
    pub fn heal(&mut self) {
        *self = Pipe { free_at: self.free_at, dropped: self.dropped, ..Pipe::new(self.link) };
    }

    /// Returns the arrival time of a packet of `size` bytes that is offered at `now`; `None` when the packet is dropped.
    pub fn pass(&mut self, size: u64, now: Time) -> Option<Time> {
        if now < self.cut_until || (now < self.hole.1 && size > self.hole.0) {
            return None;
        }
        if self.link.rate.bps().is_infinite() {
            return Some(now + self.link.delay);
        }
        let rate = Rate::from_bps(self.link.rate.bps() * self.slowed);
        let begin = self.free_at.max(now);
        if rate.bytes_in(begin.since(now)).saturating_add(size) > self.link.queue {
            self.dropped += 1;
            return None;
        }
        self.free_at = begin + rate.span_of(size);
        Some(self.free_at + self.link.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_queue_drops_packets_until_it_has_room_again() {
        let mut pipe = Pipe::new(Link::millis(5).mbps(8.0).fifo(2_500)); // a kilobyte takes a millisecond
        let now = Time::ZERO;
        assert_eq!(pipe.pass(1_000, now), Some(now + Span::from_millis(6)));
        assert_eq!(pipe.pass(1_000, now), Some(now + Span::from_millis(7)));
        assert_eq!((pipe.pass(1_000, now), pipe.dropped), (None, 1));
        let later = now + Span::from_millis(1);
        assert_eq!(pipe.pass(1_000, later), Some(now + Span::from_millis(8)));
    }
}
