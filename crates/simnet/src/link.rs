//! Links: the effects of a path on datagrams.

use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};

/// The properties of a link. The default passes everything at once.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    rate: Rate,
    delay: Span,
    /// Capacity of the queue, in bytes.
    queue: u64,
    loss: f64,
    duplication: f64,
    corruption: f64,
    /// Larger datagrams are dropped.
    largest: usize,
    /// The part of the datagrams that is delayed, and the greatest extra delay.
    reordering: (f64, Span),
}

/// The copies of a datagram that arrive, by their delay beyond a sound link's.
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
    /// A link with this delay and no limits.
    #[must_use]
    pub fn millis(delay: u64) -> Link {
        Link::after(Span::from_millis(delay))
    }

    /// A link with this delay and no limits.
    #[must_use]
    pub fn after(delay: Span) -> Link {
        Link { delay, ..Link::default() }
    }

    /// With this rate, in Mbit/s.
    #[must_use]
    pub fn mbps(self, rate: f64) -> Link {
        self.at(Rate::from_mbps(rate))
    }

    /// With this rate.
    #[must_use]
    pub fn at(self, rate: Rate) -> Link {
        Link { rate, ..self }
    }

    /// With a FIFO queue of this many bytes.
    #[must_use]
    pub fn fifo(self, bytes: u64) -> Link {
        Link { queue: bytes, ..self }
    }

    /// Loses this part of the datagrams.
    #[must_use]
    pub fn losing(self, loss: f64) -> Link {
        Link { loss, ..self }
    }

    /// Duplicates this part of the datagrams.
    #[must_use]
    pub fn duplicating(self, duplication: f64) -> Link {
        Link { duplication, ..self }
    }

    /// Changes a bit in this part of the datagrams.
    #[must_use]
    pub fn corrupting(self, corruption: f64) -> Link {
        Link { corruption, ..self }
    }

    /// Drops datagrams of more than this many bytes.
    #[must_use]
    pub fn dropping_above(self, largest: usize) -> Link {
        Link { largest, ..self }
    }

    /// Delays this part of the datagrams by up to this span.
    #[must_use]
    pub fn reordering(self, part: f64, by: Span) -> Link {
        Link { reordering: (part, by), ..self }
    }

    /// The same rate, delay and queue, without damage.
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

/// A link's transmitter and its queue, in one direction.
#[derive(Debug)]
pub struct Pipe {
    link: Link,
    free_at: Time,
    /// Datagrams that found the queue full.
    pub dropped: u64,
    /// The present part of its rate.
    pub slowed: f64,
    /// Nothing passes until this time.
    pub cut_until: Time,
    /// Packets of more than this number of bytes do not pass until then.
    pub hole: (u64, Time),
}

impl Pipe {
    /// Returns a sound and empty one.
    #[must_use]
    pub fn new(link: Link) -> Pipe {
        let (slowed, cut_until, hole) = (1.0, Time::ZERO, (0, Time::ZERO));
        Pipe { link, free_at: Time::ZERO, dropped: 0, slowed, cut_until, hole }
    }

    /// Its link.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Changes the link from now on. Queued packets stay queued.
    pub fn set_link(&mut self, link: Link) {
        self.link = link;
    }

    /// Ends the effects of `slowed`, `cut_until` and `hole`.
    pub fn heal(&mut self) {
        *self = Pipe { free_at: self.free_at, dropped: self.dropped, ..Pipe::new(self.link) };
    }

    /// Returns the time at which a packet of `size` bytes that comes at `now` is at the other end; `None` when it is dropped.
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
    fn a_full_queue_drops_and_an_empty_one_takes_again() {
        let mut pipe = Pipe::new(Link::millis(5).mbps(8.0).fifo(2_500)); // a kilobyte takes a millisecond
        let now = Time::ZERO;
        assert_eq!(pipe.pass(1_000, now), Some(now + Span::from_millis(6)));
        assert_eq!(pipe.pass(1_000, now), Some(now + Span::from_millis(7)));
        assert_eq!((pipe.pass(1_000, now), pipe.dropped), (None, 1));
        let later = now + Span::from_millis(1);
        assert_eq!(pipe.pass(1_000, later), Some(now + Span::from_millis(8)));
    }
}
